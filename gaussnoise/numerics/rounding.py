"""Rounding on the safe side: rationals as floats, and margins for sums."""

import math
from fractions import Fraction

# Relative margin put on both ends of a bracket computed in double precision: thousands of times the
# rounding error of the sums behind it, a millionth of the usual tolerance.
ROUNDING_MARGIN = 2.0**-40
SAFE_SIDE = 1 + 2.0**-30  # by which what is said of privacy is enlarged
CANCELLATION = 2.0**-45  # absolute error of 1 − Π, and relative of sums to one, many times over


def rounded_up(value: Fraction) -> float:
    """The least float that is not below."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def rounded_down(value: Fraction) -> float:
    """The largest float that is not above."""
    return -rounded_up(-value)
