"""Noisy tables, the answers computed from them, and the folder that stores them."""
