"""Noisy tables, the answers made of them, and the folder they are stored in."""
