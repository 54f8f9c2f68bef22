"""The finding of a table in one sentence, which intervals support."""

import math

import numpy as np

from ..marks import MARKS, marks_of
from ..table import AbstractEstimates
from .numbers import Numbers
from .render import digits_of, number, shown

_SAME = "No difference {between} that the noise allows to see"
_MOST_NAME = 60


def finding_of(numbers: Numbers) -> str | None:
    """Return a sentence that holds at the level of intervals; None for tables without one.

    It is about one number, the difference of two, or the largest of several. Intervals of several
    hold together, since their largest is chosen from all of them.
    """
    table = numbers.table
    if numbers.kind not in ("cells", "mean") and table.estimate.size > 1:
        return None
    if table.estimate.size == 1:
        return _single(numbers)
    if table.estimate.shape == (2,):
        return _pair(numbers)
    return _several(numbers)


def _single(numbers: Numbers) -> str | None:
    table = numbers.table
    low, high = (float(np.ravel(end)[0]) for end in table.confidence_interval())
    estimate, deviation = (
        float(np.ravel(part)[0]) for part in (table.estimate, table.standard_deviation)
    )
    if math.isnan(estimate):
        return None
    what = numbers.unit.capitalize() if numbers.kind == "cells" else numbers.title
    return f"{what}: {_with_range(estimate, low, high, deviation)}."


def _pair(numbers: Numbers) -> str:
    """Return the difference of two numbers, with its interval."""
    table = numbers.table
    first, second = (shown(label, _MOST_NAME) for label in table.labels[0])
    between = f"between {first} and {second}"
    difference = table.difference(table.attributes[0], *table.labels[0])
    estimate = float(difference.estimate)
    low, high = (float(end) for end in difference.confidence_interval())
    if not (math.isfinite(low) and math.isfinite(high)) or low <= 0 <= high:
        return _SAME.format(between=between) + "."
    sign = 1 if estimate > 0 else -1
    low, high = sorted((sign * low, sign * high))
    digits = digits_of(float(difference.standard_deviation))
    size = number(sign * estimate, digits)
    interval = f"between {number(low, digits)} and {number(high, digits)}"
    if numbers.kind == "mean":
        way = "higher" if sign > 0 else "lower"
        return f"{numbers.title}: {first} is {size} {way} than {second} ({interval})."
    way = "more" if sign > 0 else "fewer"
    return f"{first} has {size} {way} {numbers.unit} than {second} ({interval})."


def _several(numbers: Numbers) -> str:
    """Return the group with the largest number, as far as the noise allows to say.

    Groups with the last mark are not named while others are better known, and may be as high.
    """
    table = numbers.table
    low, high = (np.ravel(end) for end in table.confidence_interval(simultaneous=True))
    estimate, deviation = np.ravel(table.estimate), np.ravel(table.standard_deviation)
    prefix = f"{numbers.title}: " if numbers.kind == "mean" else ""
    same = f"{prefix}{_SAME.format(between='between the groups')}."
    known = np.isfinite(low) & np.isfinite(high)
    clear = known & (marks_of(estimate, deviation) != MARKS[-1])
    named = np.flatnonzero(clear if clear.sum() > 1 else known)
    if not len(named):
        return same

    def said(k: int) -> str:
        return _with_range(*(float(part[k]) for part in (estimate, low, high, deviation)))

    top = int(named[np.argmax(estimate[named])])
    most, as_high, more = f"has the most {numbers.unit}", "have as many", "has more"
    if numbers.kind == "mean":
        most, as_high, more = "is highest", "be as high", "is higher"
    lowest = int(np.argmin(np.where(known, high, math.inf)))
    if low[top] > high[lowest]:
        rivals = int((~(high < low[top])).sum()) - 1
        others = f"{rivals:,} other{'s' if rivals > 1 else ''} may" if rivals else "no other can"
        return f"{prefix}{_name(table, top)} {most}, {said(top)}; {others} {as_high}."
    # the interval of the largest may be wide, and those of others narrow
    above = int(named[np.argmax(low[named])])
    if not low[above] > high[lowest]:
        return same
    return (
        f"{prefix}{_name(table, above)} {more}, {said(above)}, than {_name(table, lowest)}, "
        f"{said(lowest)}."
    )


def _with_range(estimate: float, low: float, high: float, deviation: float) -> str:
    digits = digits_of(deviation)
    if low == high:
        return f"{number(estimate, digits)} (exactly)"
    return f"{number(estimate, digits)} ({number(low, digits)} to {number(high, digits)})"


def _name(table: AbstractEstimates, k: int) -> str:
    where = np.unravel_index(k, table.estimate.shape)
    labels = (own[i] for own, i in zip(table.labels, where, strict=True))
    return " · ".join(shown(label, _MOST_NAME) for label in labels)
