"""Numbers: rounding, exact sums, spans, factorizations with proven errors."""
