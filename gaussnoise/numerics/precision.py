"""Extended precision for computations in which it takes almost no time."""

import numpy as np

LONG_OPERATIONS = 2**26  # products in extended precision (without BLAS) in half a second


def precision_for(operations: int, most: int = LONG_OPERATIONS) -> type:
    """Return the float type in which to compute ``operations`` products.

    The type is extended precision if there are at most ``most`` products, otherwise double
    precision.
    """
    return np.longdouble if operations <= most else np.float64
