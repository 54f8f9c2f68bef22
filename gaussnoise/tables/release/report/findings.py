"""The finding of a table in one sentence, which intervals support."""

import math

import numpy as np

from ...schema.schema import Category
from ..marks import MARKS, marks_of
from ..sums import MeanTable
from ..table import AbstractEstimates
from ..tidy import LEVEL
from .numbers import Numbers
from .render import digits_of, number, shown

_SAME = "No difference {between} that the noise allows to see"
_NONE = _SAME.format(between="between the groups") + "."
_MOST_NAME = 60


def finding_of(numbers: Numbers) -> str | None:
    """Return a sentence that holds at the level of intervals; None for tables without one.

    It is about one number, the difference of two, or the largest of several. Intervals of several
    hold together, since their largest is chosen from all of them. For means by one attribute of
    several groups, a second sentence compares the two groups with the largest counts.
    """
    table = numbers.table
    if numbers.kind not in ("cells", "mean") and table.estimate.size > 1:
        return None
    if table.estimate.size == 1:
        return _single(numbers)
    if table.estimate.shape == (2,):
        return _pair(numbers)
    said, pair = _several(numbers), _largest_pair(numbers)
    if pair is None:
        return said
    return f"{numbers.title}: {pair}" if said.endswith(_NONE) else f"{said} {pair}"


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
    one, other = numbers.table.labels[0]
    said = _gap(numbers, one, other, LEVEL)
    if said is None:
        first, second = (shown(label, _MOST_NAME) for label in (one, other))
        return _SAME.format(between=f"between {first} and {second}") + "."
    return f"{numbers.title}: {said}" if numbers.kind == "mean" else said


def _gap(numbers: Numbers, one: Category, other: Category, level: float) -> str | None:
    """Return how much one group has more than another; None where noise hides it."""
    difference = numbers.table.difference(numbers.table.attributes[0], one, other)
    estimate = float(difference.estimate)
    low, high = (float(end) for end in difference.confidence_interval(level))
    if not (math.isfinite(low) and math.isfinite(high)) or low <= 0 <= high:
        return None
    first, second = (shown(label, _MOST_NAME) for label in (one, other))
    sign = 1 if estimate > 0 else -1
    low, high = sorted((sign * low, sign * high))
    digits = digits_of(float(difference.standard_deviation))
    size = number(sign * estimate, digits)
    interval = f"between {number(low, digits)} and {number(high, digits)}"
    if numbers.kind == "mean":
        way = "higher" if sign > 0 else "lower"
        return f"{first} is {size} {way} than {second} ({interval})."
    way = "more" if sign > 0 else "fewer"
    return f"{first} has {size} {way} {numbers.unit} than {second} ({interval})."


def _largest_pair(numbers: Numbers) -> str | None:
    """Return the difference of the means of the two groups with the largest released counts.

    The counts choose the pair, so that the interval is one of those of all pairs, which hold
    together (Šidák 1967).
    """
    table = numbers.table
    if not isinstance(table, MeanTable) or table.estimate.ndim != 1:
        return None
    labels = table.labels[0]
    one, other = (labels[k] for k in sorted(np.argsort(-table.counts, kind="stable")[:2].tolist()))
    said = _gap(numbers, one, other, LEVEL ** (1 / math.comb(len(labels), 2)))
    return None if said is None else f"Of the two largest groups, {said}"


def _several(numbers: Numbers) -> str:
    """Return the group with the largest number, as far as the noise allows to say.

    Groups with the last mark are not named while others are better known, and may be as high.
    """
    table = numbers.table
    low, high = (np.ravel(end) for end in table.confidence_interval(simultaneous=True))
    estimate, deviation = np.ravel(table.estimate), np.ravel(table.standard_deviation)
    prefix = f"{numbers.title}: " if numbers.kind == "mean" else ""
    same = f"{prefix}{_NONE}"
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
