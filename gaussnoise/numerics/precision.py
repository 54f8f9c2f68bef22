"""Extended precision, where it takes almost no time."""

import numpy as np

LONG_OPERATIONS = 2**26  # products in extended precision (without BLAS) that take half a second


def precision_for(operations: int, most: int = LONG_OPERATIONS) -> type:
    """Return the float type for this many products: extended if they are few, or else double."""
    return np.longdouble if operations <= most else np.float64
