"""Mechanisms: Gaussian noise on points and bodies, local messages, and their releases."""
