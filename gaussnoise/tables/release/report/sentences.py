"""Sentences of findings: one number, the difference of two, the largest of several."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ....text import and_text
from ..marks import MARKS, marks_of
from .render import digits_of, number, shown

SEEN = " that the noise allows to see"
SAME = f"No difference {{between}}{SEEN}."
NONE = SAME.format(between="between the groups")
JOINTLY = "jointly"  # the kind of simultaneous intervals
MOST_NAME = 60  # most characters of a label in a sentence
_MOST_LEFT = 3  # most names, in a sentence, of groups with too few rows

Array = NDArray[np.float64]


def gap_text(
    first: str, second: str, gap: float, ends: tuple[float, float], sd: float, noun: str = ""
) -> str:
    """Return a sentence about the difference of two means, or of two counts, with its interval."""
    sign, digits = 1 if gap > 0 else -1, digits_of(sd)
    low, high = sorted((sign * ends[0], sign * ends[1]))
    size = number(sign * gap, digits)
    interval = f"between {number(low, digits)} and {number(high, digits)}"
    interval = "exactly" if low == high else interval
    if not noun:
        way = "higher" if sign > 0 else "lower"
        return f"{first} is {size} {way} than {second} ({interval})."
    way = "more" if sign > 0 else "fewer"
    return f"{first} has {size} {way} {noun} than {second} ({interval})."


def highest(
    noun: str,
    is_mean: bool,
    names: Sequence[str],
    estimate: Array,
    interval: tuple[Array, Array],
    sd: Array,
    attributes: int,
) -> str:
    """Return a sentence on the largest number, or on a gap; "" if neither is clear.

    A gap is the difference of the largest and the smallest number, for groups by one of
    ``attributes``. Other pairs of groups are arbitrary, and would be read as a finding.

    ``interval`` has simultaneous intervals. The sentence says so, because the tables have other
    intervals, for each number by itself. ``sd`` has the standard deviations of the noise.

    Groups with the last mark of reliability are not named if other groups have better marks. If the
    numbers are means, such groups are not compared, because their means are of few rows or none.
    """
    low, high = interval
    known = np.isfinite(low) & np.isfinite(high)
    clear = known & (marks_of(estimate, sd) != MARKS[-1])
    clear = clear if clear.sum() > 1 else known
    if not clear.any():
        return NONE
    compared = clear if is_mean else known

    def said(k: int) -> str:
        return range_text(*(float(part[k]) for part in (estimate, low, high, sd)), kind=JOINTLY)

    named = np.flatnonzero(clear)
    top = int(named[np.argmax(estimate[named])])
    most, as_high, more = f"has the most {noun}", "have as many", f"has more {noun}"
    if is_mean:
        most, as_high, more = "is highest", "be as high", "is higher"
    left = [name for name, own in zip(names, compared, strict=True) if not own]
    few = _left_out(left, noun) if is_mean else ""
    lowest = int(np.argmin(np.where(compared, high, math.inf)))
    if low[top] > high[lowest] and (compared & ~(high < low[top])).sum() == 1:
        return f"{names[top]} {most}, {said(top)}; no other can {as_high}.{few}"
    # no group alone is the largest: only a gap between two is supported; the largest lower bound
    # may be that of another group, as intervals differ in width
    above = int(named[np.argmax(low[named])])
    if not low[above] > high[lowest]:
        return NONE
    least = int(np.argmin(np.where(compared, estimate, math.inf)))
    if attributes > 1 or (above, lowest) != (top, least):
        return ""
    return f"{names[above]} {more}, {said(above)}, than {names[lowest]}, {said(lowest)}.{few}"


def _left_out(names: Sequence[str], noun: str) -> str:
    """Return a sentence about the groups that are not compared."""
    if not names:
        return ""
    if len(names) > _MOST_LEFT:
        return f" {len(names):,} other groups have too few {noun} to be compared."
    return f" Too few {noun} to be compared: {and_text(names)}."


def range_text(estimate: float, low: float, high: float, deviation: float, kind: str = "") -> str:
    """Return an estimate and its interval as text, with the decimals that noise does not hide.

    ``kind`` is a word for the kind of interval, such as "jointly".
    """
    digits = digits_of(deviation)
    if low == high:
        return f"{number(estimate, digits)} (exactly)"
    ends = f"{number(low, digits)} to {number(high, digits)}"
    return f"{number(estimate, digits)} ({ends}{' ' * bool(kind)}{kind})"


def labels_text(labels: Iterable[object]) -> str:
    """Return the name of a group: the labels of its categories, joined."""
    return " · ".join(shown(label, MOST_NAME) for label in labels)
