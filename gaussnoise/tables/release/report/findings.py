"""The finding of a table: one sentence that its intervals support."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ....text import capital
from ...schema.schema import Category
from ..sums import MeanTable
from ..table import AbstractEstimates
from ..tidy import LEVEL
from .numbers import Numbers, listed_in
from .render import shown
from .sentences import MOST_NAME, NONE, SAME, SEEN, gap_text, highest, labels_text, range_text

NONE_LISTED = SAME.format(between="between the groups with listed values")


def finding_of(numbers: Numbers, others: Mapping[str, str]) -> str | None:
    """Return a sentence about a table, true with the confidence level of intervals; or None.

    The sentence is about one number, the difference of two numbers, or the largest of several
    numbers. Intervals of several numbers are simultaneous, since the largest is selected by its
    estimate. For means of several groups of one attribute, a second sentence compares the two
    groups with the largest counts.

    ``others`` is {attribute: its catch-all category}. Groups of such a category are not compared,
    unless fewer than two groups would remain.
    """
    if numbers.kind not in ("cells", "mean") and numbers.table.estimate.size > 1:
        return None
    said = _finding(numbers, others)
    return said.replace(SEEN, "") if said and not numbers.table.standard_deviation.any() else said


def _finding(numbers: Numbers, others: Mapping[str, str]) -> str | None:
    """Return a sentence on the main finding in a table; None if it shows none."""
    table = numbers.table
    if table.estimate.size == 1:
        return _single(numbers)
    listed = listed_in(table, others)
    if table.estimate.ndim == 1 and listed.sum() == 2:
        return _pair(numbers, listed)
    said, pair = _several(numbers, listed), _largest_pair(numbers, listed)
    if said and not listed.all():
        said = NONE_LISTED if said == NONE else f"Of the groups with listed values, {said}"
    if pair is None:
        return said or None
    return pair if said in ("", NONE, NONE_LISTED) else f"{said} {pair}"


def _single(numbers: Numbers) -> str | None:
    table = numbers.table
    low, high = (float(np.ravel(end)[0]) for end in table.confidence_interval())
    estimate, deviation = (
        float(np.ravel(part)[0]) for part in (table.estimate, table.standard_deviation)
    )
    if math.isnan(estimate):
        return None
    said = range_text(estimate, low, high, deviation)
    if numbers.kind == "mean":
        return f"The mean is {said}."
    what = capital(numbers.noun) if numbers.kind == "cells" else numbers.title
    return f"{what}: {said}."


def _pair(numbers: Numbers, listed: NDArray[np.bool_]) -> str:
    """Return a sentence about the difference of a table's two listed numbers, with its interval."""
    one, other = (numbers.table.labels[0][k] for k in np.flatnonzero(listed).tolist())
    said = _gap(numbers, one, other, LEVEL)
    if said is None:
        first, second = (shown(label, MOST_NAME) for label in (one, other))
        return SAME.format(between=f"between {first} and {second}")
    return said


def _gap(numbers: Numbers, one: Category, other: Category, level: float) -> str | None:
    """Return a sentence about the difference of two groups' numbers; None if noise hides it."""
    difference = numbers.table.difference(numbers.table.attributes[0], one, other)
    estimate = float(difference.estimate)
    low, high = (float(end) for end in difference.confidence_interval(level))
    if not (math.isfinite(low) and math.isfinite(high)) or low <= 0 <= high:
        return None
    first, second = (shown(label, MOST_NAME) for label in (one, other))
    noun = "" if numbers.kind == "mean" else numbers.noun
    sd = float(difference.standard_deviation)
    return gap_text(first, second, estimate, (low, high), sd, noun)


def _largest_pair(numbers: Numbers, listed: NDArray[np.bool_]) -> str | None:
    """Return a sentence comparing the means of the two groups with the largest counts."""
    # the counts select the pair, so its interval is a simultaneous one for all pairs (Šidák 1967)
    table = numbers.table
    if not isinstance(table, MeanTable) or table.estimate.ndim != 1:
        return None
    labels = table.labels[0]
    counts = np.where(listed, table.counts, -math.inf)
    one, other = (labels[k] for k in sorted(np.argsort(-counts, kind="stable")[:2].tolist()))
    said = _gap(numbers, one, other, LEVEL ** (1 / math.comb(len(labels), 2)))
    return None if said is None else f"Of the two largest groups, {said}"


def _several(numbers: Numbers, listed: NDArray[np.bool_]) -> str:
    """Return a sentence on which group has the largest number, as far as the noise allows."""
    table = numbers.table
    low, high = (end[listed] for end in table.confidence_interval(simultaneous=True))
    estimate, deviation = table.estimate[listed], table.standard_deviation[listed]
    names = [_name(table, k) for k in np.flatnonzero(listed).tolist()]
    is_mean = numbers.kind == "mean"
    axes = table.estimate.ndim
    return highest(numbers.noun, is_mean, names, estimate, (low, high), deviation, axes)


def _name(table: AbstractEstimates, k: int) -> str:
    where = np.unravel_index(k, table.estimate.shape)
    return labels_text(own[i] for own, i in zip(table.labels, where, strict=True))
