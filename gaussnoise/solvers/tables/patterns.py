"""Changes of measurements by a replaced record, for all sets of differing attributes at once.

The set of attributes in which a record and its replacement differ is called a pattern.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .orbits import Orbits, Type

# If there are more patterns, counted up to permuting equivalent attributes, the largest change is
# bounded by a search instead of computed.
MOST_PATTERNS = 2**24


def pattern_shape(orbits: Orbits) -> tuple[int, ...]:
    """Return the shape of an array with one entry for every pattern of differing attributes.

    Index j of axis k means that two records differ in j attributes of class k.
    """
    return tuple(len(members) + 1 for members in orbits.classes)


def is_enumerable(orbits: Orbits) -> bool:
    """Return whether patterns of differing attributes are few enough to check all of them."""
    return math.prod(pattern_shape(orbits)) <= MOST_PATTERNS


def pattern_sums(
    orbits: Orbits,
    shares: Mapping[Type, Any],
    equal: Sequence[Any],
    unequal: Sequence[Any],
    dtype: type = np.float64,
) -> NDArray[Any]:
    """Return ``Σ_T share_T Π_{i∈T∩D} unequal_i Π_{i∈T∖D} equal_i`` for all patterns D.

    A pattern D is a set of attributes in which two records differ, and T runs over all attribute
    sets of the types in ``shares``. ``shares`` map a type to the share of each T of this type;
    ``equal`` and ``unequal`` have one factor per class of attributes. The result has the shape of
    :func:`pattern_shape`. With ``dtype=object`` and integers, it is exact.
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
    """Return a matrix with the entries ``Σ_T Π_{i∈T} f_i``, over all sets T of t attributes.

    There are ``count`` attributes. In row j, the factor f_i is ``unequal`` for the first j
    attributes, and ``equal`` for the others. Column t is for sets of t attributes, t = 0..most.
    """
    matrix = np.zeros((count + 1, most + 1), dtype=dtype)
    for j in range(count + 1):
        for t in range(most + 1):
            matrix[j, t] = sum(
                math.comb(j, m) * math.comb(count - j, t - m) * unequal**m * equal ** (t - m)
                for m in range(max(0, t - count + j), min(j, t) + 1)
            )
    return matrix
