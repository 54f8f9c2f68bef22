"""Checks of published folders and saved answers, by code independent of the rest of the package."""

from .verify import verdict, verified

__all__ = ["verdict", "verified"]
