"""Values that often stand for "no answer": n/a, 999, -1 or 31 December 9999."""

import math
from collections.abc import Iterable, Set

import numpy as np

# 97, 98, 99, 88, 77, and the like with more digits; of negative numbers, also -9 to -1
_DIGITS = range(2, 9)
_USUAL = {int(digit * k) for digit in "789" for k in _DIGITS} | {
    10**k - below for k in _DIGITS for below in (2, 3)
}
CODES = np.array(sorted(_USUAL | {-code for code in _USUAL} | {-k for k in range(1, 10)}), float)
# the first months of the years 1 and 1900, and the last of the year 9999, from year 0
_MONTHS = {1 * 12, 1900 * 12, 9999 * 12 + 11}
_MONTHS_APART = 120
NO_ANSWER = {  # in lower case
    *("?", "n/a", "n.a.", "#n/a", "null", "not available", "not stated", "no answer"),
    *("k.a.", "k. a.", "keine angabe", "ohne angabe"),
}
_MOST_TEXTS = 20  # most codes of a column
_FAR = 2.0  # a code is at least this many times the largest other number


def suspects(codes: Iterable[float], low: float, high: float) -> list[int]:
    """Return the numbers of a column that may be codes for "no answer", in increasing order.

    A negative code is returned if no other number is negative. A positive code is returned in two
    cases: it is at least twice every other number, or it is the largest number and has three nines
    or more.

    Args:
        codes: the values of :data:`CODES` that a column holds.
        low: the least of its other numbers.
        high: the largest other number; -inf if there is none, and then no code is returned.
    """
    found = sorted(map(int, codes))
    if not math.isfinite(high):
        return []
    negative = [code for code in found if code < 0 <= low]
    far = [code for code in found if 0 < _FAR * high <= code]
    last = found[-1:] if found and found[-1] > high and set(str(found[-1])) == {"9"} else []
    return negative + sorted({*far, *(code for code in last if code > 99)})


def no_answers(texts: Iterable[str]) -> list[str]:
    """Return the texts among categories that mean "no answer", like "n/a", but not "unknown".

    >>> no_answers(["F", "N/A", "M", "k.A.", "unknown", "?"])
    ['?', 'N/A', 'k.A.']
    """
    return sorted(text for text in texts if text.strip().casefold() in NO_ANSWER)[:_MOST_TEXTS]


def months_apart(months: Set[int]) -> list[int]:
    """Return months that may mean "no date": common codes, ten years or more from all other months.

    Months are counted from the year 0.
    """
    if not (others := months - _MONTHS):
        return []
    low, high = min(others) - _MONTHS_APART, max(others) + _MONTHS_APART
    return sorted(month for month in months & _MONTHS if not low < month < high)
