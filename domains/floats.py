"""Double precision: arrays, rounding units, exact scaling by powers of two, the largest array."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Map = Callable[[Array], Array]  # maps each row without regard to the others

EPS = np.finfo(np.float64).eps  # distance from 1 to the next number
TINY = float(np.finfo(np.float64).tiny)  # smallest positive normal number
UNIT = 2.0**-53  # relative rounding error of one operation: half of EPS
MOST_NUMBERS = 2**27  # largest number of entries in an array that is written out: 1 GB


def power_of_two(size: float) -> float:
    """Return the largest power of two up to ``size`` > 0; dividing by it does not round.

    >>> power_of_two(1000.0), power_of_two(0.25)
    (512.0, 0.25)
    """
    return float(np.ldexp(0.5, np.frexp(size)[1]))
