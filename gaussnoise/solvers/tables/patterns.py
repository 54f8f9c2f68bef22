"""The change of measurements by a replaced record, by one transform for all patterns at once."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .orbits import Orbits, Type

# Beyond this number of patterns, up to exchange of equivalent attributes, the largest change is
# bounded instead of computed.
MOST_PATTERNS = 2**24


def pattern_shape(orbits: Orbits) -> tuple[int, ...]:
    """Return the shape of patterns up to exchange: how many attributes of every class differ."""
    return tuple(len(members) + 1 for members in orbits.classes)


def is_enumerable(orbits: Orbits) -> bool:
    """Return whether all patterns can be checked."""
    return math.prod(pattern_shape(orbits)) <= MOST_PATTERNS


def pattern_sums(
    orbits: Orbits,
    shares: Mapping[Type, Any],
    equal: Sequence[Any],
    unequal: Sequence[Any],
    dtype: type = np.float64,
) -> NDArray[Any]:
    """Return ``Σ_T share_T Π_{i∈T∩D} unequal_i Π_{i∈T∖D} equal_i``, shape :func:`pattern_shape`.

    ``shares`` are per subset, by type; ``equal`` and ``unequal`` belong to the classes. The result
    is exact with ``dtype=object`` and integers.
    """
    counts = [tuple(kind.count(k) for k in range(len(orbits.classes))) for kind in shares]
    most = [max((count[k] for count in counts), default=0) for k in range(len(orbits.classes))]
    table = np.zeros([m + 1 for m in most], dtype=dtype)
    for count, share in zip(counts, shares.values(), strict=True):
        table[count] = share
    for axis, members in enumerate(orbits.classes):
        matrix = products(len(members), most[axis], equal[axis], unequal[axis], dtype)
        table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    return table


def products(
    count: int, most: int, equal: Any, unequal: Any, dtype: type = np.float64
) -> NDArray[Any]:
    """Return entries (j, t): with j of ``count`` attributes unequal, the sum over all t of these of
    the product of their factors.
    """
    matrix = np.zeros((count + 1, most + 1), dtype=dtype)
    for j in range(count + 1):
        for t in range(most + 1):
            matrix[j, t] = sum(
                math.comb(j, m) * math.comb(count - j, t - m) * unequal**m * equal ** (t - m)
                for m in range(max(0, t - count + j), min(j, t) + 1)
            )
    return matrix
