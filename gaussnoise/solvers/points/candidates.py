"""Candidates for points with dual weight: listed points, or all differences of two of them.

These candidates are called members. Coordinates are called "even" if the covariance of all members,
with equal weights, is the identity.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import Array

from ...numerics.pairs import all_far_pairs, far_pairs
from .fidelity import Evaluation, Fidelity, affine_basis

Rows = NDArray[np.intp]

_CHUNK = 2**12  # number of points whose coordinates are computed together: they stay in the cache
_FIRST = 10  # number of points per dimension in the first round
_MOST = 1000  # members added per round
# With few points per dimension, as in prefix sums, most pairs may carry weight: all distances are
# computed, and many pairs are added. With only one partner per point it took 38 rounds, not 7.
_FEW, _MOST_DISTANCES = 4, 2**22  # points per dimension; distances: 32 MB
_PAIRS = 20  # number of pairs added per dimension in that case
# With more than _MANY points, pairs are first searched among the _OUTER outermost points and those
# with weight: this takes a tenth of a second, whereas a search of 10⁵ points takes 20 s.
_MANY, _OUTER = 2**14, 2**11
_CLEARLY = 1e-6  # least ratio of the smallest to the largest eigenvalue that is not rounding


class Far(NamedTuple):
    """The longest members above a threshold, and the largest squared length among searched members.

    Members are points or differences, given by ``rows`` of point indices. ``of_all`` says whether
    all members were searched.
    """

    rows: Rows
    largest: float
    of_all: bool = True


class Candidates(Protocol):
    """Members (points, or differences of two points), each given by a row of point indices.

    Rows have shape (k, 1), or (k, 2) for differences.
    """

    @property
    def note(self) -> str:
        """A phrase that says what the members are, and how they are found."""
        ...

    def members(self, rows: Rows) -> Array:
        """Return the points or differences with these rows of point indices, shape (k, d)."""
        ...

    def first(self) -> tuple[Rows, Rows]:
        """Return the members of the first round, and a few of them that span all members.

        Both are rows of point indices.
        """
        ...

    def far(self, factor: Array, center: Array, beyond: float, known: Rows | None) -> Far:
        """Return members m with ``‖L⁺(m − center)‖² > beyond``, where L is ``factor``.

        If ``known`` rows are given, members near these rows may be searched first. All members are
        then searched only if the first search finds none.
        """
        ...


@dataclass(frozen=True, eq=False)
class Points:
    """Listed points, shape (N, d); ``basis`` has orthonormal columns that span them.

    If ``centered``, the mean of all points is subtracted.
    """

    points: Array
    basis: Array | None
    centered: bool
    note = "points found by their lengths"

    def members(self, rows: Rows) -> Array:
        return self.points[rows[:, 0]]

    def first(self) -> tuple[Rows, Rows]:
        """Return rows of the longest points and of a few that span all; then only the latter."""
        count, dim = self.points.shape
        fidelity = Fidelity(self.points, 2.0, self.centered, self.basis)
        even = fidelity.at(np.full(count, 1 / count), np.full(dim, 1 / dim))
        most = min(_FIRST * len(even.roots), count)
        longest = np.argpartition(even.lengths, -most)[-most:]
        corners = longest if self._span(even, longest) else np.arange(count)
        corners = corners[affine_basis(even.coordinates[corners] / np.sqrt(even.roots))]
        return np.union1d(longest, corners)[:, None], corners[:, None]

    def _span(self, even: Evaluation, rows: Rows) -> bool:
        """Return whether the points with these rows clearly span all points, beyond rounding."""
        some = even.coordinates[rows] / np.sqrt(even.roots)
        some = some - some.mean(axis=0) if self.centered else some
        squares = np.linalg.eigvalsh(some.T @ some)
        return bool(squares[0] > _CLEARLY * squares[-1])

    def far(self, factor: Array, center: Array, beyond: float, known: Rows | None) -> Far:
        inverse = _inverse(factor)
        squares = np.empty(len(self.points))
        for start in range(0, len(self.points), _CHUNK):
            part = slice(start, start + _CHUNK)
            inside = (self.points[part] - center) @ inverse.T
            squares[part] = np.einsum("ij,ij->i", inside, inside)
        rows = np.flatnonzero(squares > beyond)
        return Far(_longest(rows[:, None], squares[rows], _MOST), float(squares.max()))


@dataclass(frozen=True, eq=False)
class Differences:
    """All differences of two listed points, shape (N, d); columns of ``basis`` span them."""

    points: Array
    basis: Array | None
    note = "pairs found by the farthest-pair oracle"

    def members(self, rows: Rows) -> Array:
        return self.points[rows[:, 0]] - self.points[rows[:, 1]]

    def first(self) -> tuple[Rows, Rows]:
        """Return pairs of points at large distances, then a few pairs that span all differences.

        Distances are in coordinates in which the covariance for equal weights is the identity.
        """
        whitened, even = self._whitened
        outer = self._outer
        longest = outer[self._far_pairs(even[outer], 0.0, 200, 4).rows]
        corners = affine_basis(whitened)
        spanning: Rows = np.sort(
            np.column_stack([np.full(len(corners) - 1, corners[0]), corners[1:]]), axis=1
        )
        return np.unique(np.vstack([longest, spanning]), axis=0), spanning

    def far(self, factor: Array, center: Array, beyond: float, known: Rows | None) -> Far:
        """Return the longest differences in the coordinates of ``factor``; ``center`` is not used.

        Differences need no center.
        """
        inside = self.points @ _inverse(factor).T
        if known is not None and len(inside) > _MANY:
            near = np.union1d(known, self._outer)
            pairs = self._far_pairs(inside[near], beyond, _MOST, 0)
            if len(pairs.rows):
                return Far(near[pairs.rows], pairs.largest, of_all=False)
        return self._far_pairs(inside, beyond, _MOST, 0)

    @cached_property
    def _whitened(self) -> tuple[Array, Array]:
        """The centered points with singular values 1, and with the roots of their own."""
        moved = self.points - self.points.mean(axis=0)
        moved = moved if self.basis is None else moved @ self.basis
        left, singular, _ = np.linalg.svd(moved, full_matrices=False)
        # even: equal weights on all differences have a multiple of the identity as covariance
        return left, left * np.sqrt(singular)

    @cached_property
    def _outer(self) -> Rows:
        """Sorted indices of the ``_OUTER`` outermost points, or of all points up to ``_MANY``."""
        lengths = np.square(self._whitened[1]).sum(axis=1)
        if len(lengths) <= _MANY:
            return np.arange(len(lengths))
        return np.sort(np.argpartition(lengths, -_OUTER)[-_OUTER:])

    def _far_pairs(self, points: Array, beyond: float, most: int, each: int) -> Far:
        """Return the farthest pairs of points that have a squared distance above ``beyond``."""
        # ``most`` pairs, or ``each`` for a dimension if that is more; of many points, one pair each
        count, rank = points.shape
        if count <= _FEW * rank and count**2 <= _MOST_DISTANCES:
            most = max(most, _PAIRS * rank)
            pairs = all_far_pairs(points, beyond)
        else:
            most = max(most, each * rank)
            pairs = far_pairs(points, beyond, most)
        return Far(_longest(pairs.rows, pairs.squares, most), pairs.largest)


def _longest(rows: Rows, squares: Array, most: int) -> Rows:
    if len(rows) <= most:
        return rows
    return rows[np.argpartition(squares, -most)[-most:]]


def _inverse(factor: Array) -> Array:
    """Return the left inverse of the factor, shape (r, d)."""
    Q, R = np.linalg.qr(factor)
    return np.asarray(scipy.linalg.solve_triangular(R, Q.T), dtype=np.float64)
