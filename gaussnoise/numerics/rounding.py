"""Rationals rounded up or down to floats, and margins for the rounding of sums."""

import math
from fractions import Fraction

# Relative margin by which a lower and an upper bound in double precision are moved apart. It is
# thousands of times the rounding error of the sums in them, and a millionth of the usual tolerance.
ROUNDING_MARGIN = 2.0**-40
SAFE_SIDE = 1 + 2.0**-30  # factor that enlarges numbers on which privacy guarantees depend
CANCELLATION = 2.0**-45  # far above the error of 1 − Π for a product Π, and that of sums


def rounded_up(value: Fraction) -> float:
    """Return the least float that is not below the value."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def rounded_down(value: Fraction) -> float:
    """Return the largest float that is not above the value."""
    return -rounded_up(-value)
