"""Extended precision, where it takes no time."""

import numpy as np

LONG_OPERATIONS = 2**26  # products in extended precision, which no BLAS helps: half a second


def precision_for(operations: int, most: int = LONG_OPERATIONS) -> type:
    """Of so many products: extended where they are few, double elsewhere."""
    return np.longdouble if operations <= most else np.float64
