"""Rounding, exact sums, spans, and factorizations with proven errors."""
