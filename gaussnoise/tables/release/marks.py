"""The reliability of an estimate as one mark beside it, the same for files and pages."""

import numpy as np
from numpy.typing import NDArray

RELATIVE_ERRORS = (0.10, 0.25, 0.50)  # limits of standard deviation / |estimate| between marks
MARKS = ("", "^", "*", "**")
LOW_RELIABILITY = MARKS[2:]  # offices flag or withhold these
MARKS_TEXT = (
    "A mark beside an estimate says how large its relative standard error is, the standard "
    "deviation divided by the estimate: no mark below 10 %, ^ from 10 %, * from 25 % (use with "
    "caution), ** from 50 % (too unreliable for most uses)."
)


def marks_of(
    estimate: NDArray[np.float64], standard_deviation: NDArray[np.float64]
) -> NDArray[np.str_]:
    """Return the mark of every estimate: none for exact numbers, the last mark for estimates of 0.

    Source: the Australian Bureau of Statistics uses limits of 10, 25 and 50 %; Eurostat flags low
    reliability ("u") by similar limits.
    """
    # compared without division, which would fail at 0
    limits = np.multiply.outer(RELATIVE_ERRORS, np.abs(estimate))
    level = np.sum((standard_deviation >= limits) & (standard_deviation > 0), axis=0)
    return np.array(MARKS)[level]
