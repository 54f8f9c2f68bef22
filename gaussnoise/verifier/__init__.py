"""Checks of published folders and saved answers, by code that is independent of the package."""

from .verify import verdict, verified

__all__ = ["verdict", "verified"]
