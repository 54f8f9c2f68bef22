"""Checks of published folders and saved answers, with nothing of the package: see verify.py."""

from .verify import verdict, verified

__all__ = ["verdict", "verified"]
