"""Quantiles read off noisy cumulative counts: biased, since those must first be made
to increase.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ..schema.schema import Attribute

Array = NDArray[np.float64]


class Support(NamedTuple):
    """Where the cells of an attribute lie: between ``low`` and ``high``, evenly
    if ``interpolate``.
    """

    low: Array
    high: Array
    interpolate: bool


def support(attribute: Attribute) -> Support:
    """Of a numeric attribute, without its catch-all."""
    if attribute.edges is not None:
        return Support(np.array(attribute.edges[:-1]), np.array(attribute.edges[1:]), True)
    categories = attribute.categories or ()
    numbers = [c for c in categories if isinstance(c, int) and not isinstance(c, bool)]
    if len(numbers) < len(categories) or any(a >= b for a, b in itertools.pairwise(numbers)):
        raise ParameterError(
            "quantiles: expected edges, or increasing integer categories, for "
            f"{attribute.name!r}; hint: cdf()"
        )
    values = np.array(numbers, dtype=np.float64)
    return Support(values, values, False)


def steps_of(attribute: Attribute) -> tuple[float, ...]:
    """Where cumulative counts of an attribute are reached: ends of its bins, its numbers, or else
    places in its order.
    """
    try:
        return tuple(support(attribute).high.tolist())
    except ParameterError:
        return tuple(map(float, range(len(attribute.categories or ()))))


def probabilities_of(values: Sequence[float]) -> list[float]:
    """The probabilities, as a list of floats in [0, 1]."""
    try:
        listed = [math.nan] if isinstance(values, set | frozenset) else [float(p) for p in values]
    except (TypeError, ValueError):
        listed = [math.nan]
    if not listed or not all(0 <= p <= 1 for p in listed):
        raise ParameterError(
            f"quantiles: expected a list of probabilities in [0, 1], got {values!r:.60}"
        )
    return listed


def interpolated(cumulative: Array, ends: Support, probabilities: Sequence[float]) -> Array:
    """Quantiles along the last axis: (…, cells) cumulative counts become (…, probabilities).

    >>> bins = Support(np.array([0.0, 10.0]), np.array([10.0, 20.0]), True)
    >>> interpolated(np.array([30.0, 40.0]), bins, [0.375, 0.875])
    array([ 5., 15.])
    """
    from scipy.optimize import isotonic_regression

    quantiles = np.full((*cumulative.shape[:-1], len(probabilities)), np.nan)
    for place in np.ndindex(cumulative.shape[:-1]):
        reached = np.maximum(isotonic_regression(cumulative[place]).x, 0.0)
        before = np.concatenate([[0.0], reached[:-1]])
        if not reached[-1] > 0:
            continue
        for k, p in enumerate(probabilities):
            goal = p * reached[-1]
            # a bin that holds someone: at p = 0 the first of them
            cell = int(np.argmax((reached >= goal) & (reached > before)))
            low, high = ends.low[cell], ends.high[cell]
            if not ends.interpolate or math.isinf(high) or math.isinf(low):
                quantiles[*place, k] = high if math.isinf(high) else low
            else:
                quantiles[*place, k] = low + (high - low) * (goal - before[cell]) / (
                    reached[cell] - before[cell]
                )
    return quantiles
