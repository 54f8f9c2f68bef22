"""Finitely many points: exact oracles by one matrix product."""

from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import ArrayLike

from ..domain import AbstractFiniteDomain, QuadraticMax
from ..errors import InvalidDomainError
from ..floats import Array
from ..records import dense, real_numbers


@final
@dataclass(frozen=True, eq=False)
class FiniteSet(AbstractFiniteDomain):
    """N points of R^d: the columns of a workload matrix, or any list of possible records.

    The optimal noise depends on their convex hull alone (Nikolov & Tang 2023, Theorem 20), but only
    the points are members.

    Args:
        points: shape (N, d), N >= 1, d >= 1, finite; copied to read-only float64. Duplicates are
            kept, so that row i stays row i.

    Raises:
        InvalidDomainError: not two-dimensional, empty, NaN or infinite.

    >>> K = FiniteSet([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    >>> K.dim, K.cardinality, K.is_symmetric
    (2, 3, False)
    """

    points: Array

    def __init__(self, points: "ArrayLike") -> None:
        array = real_numbers("FiniteSet", points)
        if array.ndim != 2 or 0 in array.shape:
            raise InvalidDomainError(
                f"FiniteSet: expected points of shape (N, d) with N, d >= 1, got {array.shape}; "
                "hint: one point per row, [[x] for x in values] for numbers"
            )
        if not np.isfinite(array).all():
            raise InvalidDomainError("FiniteSet: expected finite points, got NaN or infinity")
        object.__setattr__(self, "points", array)

    @classmethod
    def from_workload(cls, W: "ArrayLike") -> Self:
        """Return all contributions of one record to the answers of a workload of counting queries.

        Args:
            W: shape (queries, cells); a record in cell j contributes column j. A scipy.sparse
                matrix is converted to a dense array.

        Raises:
            InvalidDomainError: not a matrix of finite real numbers.
            DomainTooLargeError: a sparse matrix of more than a gigabyte of numbers.

        >>> FiniteSet.from_workload([[1, 0, 0], [1, 1, 0]]).points
        array([[1., 1.],
               [0., 1.],
               [0., 0.]])
        """
        return cls(real_numbers("FiniteSet", dense(W)).T)

    @property
    def dim(self) -> int:
        return self.points.shape[1]

    @property
    def cardinality(self) -> int:
        return self.points.shape[0]

    @property
    def is_symmetric(self) -> bool:
        forward = np.unique(self.points + 0.0, axis=0)  # adding 0.0 turns -0.0 into 0.0
        return bool(np.array_equal(forward, np.unique(-self.points + 0.0, axis=0)))

    def to_finite_set(self) -> "FiniteSet":
        return self

    def _listed(self, most: float = np.inf) -> "FiniteSet":
        return self

    def _apart(self) -> tuple["FiniteSet", Array]:
        return FiniteSet(self.points - self.points[0]), self.points[0].copy()

    def _drift(self, shift: Array) -> float:
        return 0.0

    def _support_point(self, theta: Array) -> Array:
        return self.points[np.argmax(self.points @ theta)].copy()

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        moved = self.points - center
        values = np.einsum("ij,ij->i", moved @ form, moved)
        best = int(np.argmax(values))
        return QuadraticMax(self.points[best].copy(), float(values[best]), float(values[best]))

    def _contains(self, x: Array) -> bool:
        return bool((self.points == x).all(axis=1).any())

    def __repr__(self) -> str:
        return f"FiniteSet({self.cardinality} points in R^{self.dim})"
