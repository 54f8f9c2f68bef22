"""Numbers in double precision: what rounds, what does not, and how many are too many."""

import numpy as np

EPS = np.finfo(np.float64).eps  # from one to the next number
UNIT = 2.0**-53  # what one operation rounds, relative: half of that
MOST_NUMBERS = 2**27  # of an array that is written out: 1 GB


def power_of_two(size: float) -> float:
    """The largest power of two up to ``size`` > 0, by which numbers are divided without rounding.

    >>> power_of_two(1000.0), power_of_two(0.25)
    (512.0, 0.25)
    """
    return float(np.ldexp(0.5, np.frexp(size)[1]))
