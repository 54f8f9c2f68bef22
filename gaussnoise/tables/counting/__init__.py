"""Exact counts of rows, in any engine."""
