"""Checks for the arguments of set operations, and lists of points."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..domain import AbstractDomain, AbstractFiniteDomain
from ..errors import DomainTooLargeError, InvalidDomainError
from ..floats import MOST_NUMBERS, Array
from ..oracles.image import ConvexImage
from ..records import real_numbers
from ..sets.finite import FiniteSet
from ..sets.polytope import Polytope

LISTED_ENTRIES = 2**22  # largest number of numbers in a list of combinations of points: 32 MB


def checked_domains(operation: str, *parts: AbstractDomain) -> tuple[AbstractDomain, ...]:
    """Return the arguments of a set operation if all are domains, or raise InvalidDomainError."""
    for K in parts:
        if not isinstance(K, AbstractDomain):
            raise InvalidDomainError(f"{operation}: expected domains, got {type(K).__name__}")
    return parts


def finite_array(operation: str, values: "ArrayLike") -> Array:
    """Return a new finite float64 array, or raise InvalidDomainError."""
    array = real_numbers(operation, values)
    if not np.isfinite(array).all():
        raise InvalidDomainError(f"{operation}: expected finite numbers, got NaN or infinity")
    return array


def points_of(K: AbstractDomain) -> Array | None:
    """Return the points of a finite K, or points whose convex hull is K, shape (N, dim).

    Return None if K has no such list, or if the list is too long.
    """
    listed = K._listed(LISTED_ENTRIES)
    return None if listed is None else listed.points


def points_of_all(parts: Sequence[AbstractDomain], dim: int) -> list[Array] | None:
    """Return a list of points for each part, or None if a list is missing or there are too many.

    The limit is on the number of choices of one point from every part; each choice is a vector in
    R^dim.
    """
    points = [listed for listed in map(points_of, parts) if listed is not None]
    combinations = math.prod(map(len, points))
    return points if len(points) == len(parts) and combinations * dim <= LISTED_ENTRIES else None


def same_kind(parts: Sequence[AbstractDomain], points: Array) -> AbstractDomain:
    """Return the points as a finite set if all parts are finite sets, otherwise as a polytope."""
    finite = all(isinstance(K, AbstractFiniteDomain) for K in parts)
    return FiniteSet(points) if finite else Polytope(points)


def convex(K: AbstractDomain) -> AbstractDomain:
    """Return the convex hull of K if the points of K can be listed, and otherwise K itself."""
    points = points_of(K)
    return K if points is None else Polytope(points)


def few_offsets(images: list[ConvexImage], dim: int) -> bool:
    """Return whether the list of all sums of one offset per image fits into memory.

    An offset is the translation vector of one copy of the body; see :class:`ConvexImage`.
    """
    return math.prod(len(inner.offsets) for inner in images) * dim <= LISTED_ENTRIES


def check_entries(operation: str, entries: int) -> None:
    """Raise DomainTooLargeError if a matrix of ``entries`` entries would not fit into memory."""
    if entries > MOST_NUMBERS:
        raise DomainTooLargeError(
            f"{operation}: a matrix of {entries * 8 / 1e9:.3g} GB would be needed, more than "
            f"{MOST_NUMBERS * 8 / 1e9:.3g}; hint: treat the factors of a product one by one"
        )
