"""Moments of degree at most two of the vectors of a box."""

import abc
import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import numbers
from ..domain import SLACK, AbstractDomain, QuadraticMax
from ..errors import DomainTooLargeError, InvalidDomainError
from ..floats import EPS, Array
from ..oracles.box import largest_quadratic, largest_squares
from ..oracles.distance import ROUNDING
from ..oracles.image import unit_diagonal
from ..records import own_array, real_array

_MOST = 5  # numbers: the oracle's polynomials have 5^d coefficients
_MOST_PAIRED = 3  # numbers whose differences are bounded as polynomials of 2d numbers


class AbstractBoxImage(AbstractDomain):
    """The image of the box [−1, 1]^m under a map whose coordinates are quadratic polynomials."""

    @abc.abstractmethod
    def _polynomials(self) -> tuple[Array, NDArray[np.intp]]:
        """Return the coefficients (dim, N) of all coordinates, and the monomials' exponents."""

    @abc.abstractmethod
    def _at(self, v: Array) -> Array:
        """Return the point of the set that belongs to v in [−1, 1]^m, shape (dim,)."""

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        matrix, exponents = self._polynomials()
        moved = np.column_stack([matrix, -center])
        v, upper = _largest(form, moved, np.pad(exponents, ((0, 1), (0, 0))))
        x = self._at(v)
        value = float((x - center) @ form @ (x - center))
        terms = self._magnitudes() + np.abs(center)
        rounding = 4 * (self.dim + 16) * EPS * float(terms @ np.abs(form) @ terms)
        return QuadraticMax(x, value, max(upper + rounding, value))

    def _max_pulled(self, A: Array, form: Array) -> QuadraticMax:
        matrix, exponents = self._polynomials()
        v, upper = _largest(form, A @ matrix, exponents)
        x = self._at(v)
        value = float(A @ x @ form @ (A @ x))
        return QuadraticMax(x, value, max(upper, value))


@final
@dataclass(frozen=True, eq=False)
class BoxMoments(AbstractBoxImage):
    r"""``{(1, x_1, …, x_d, x_1², x_1 x_2, …, x_d²) : low <= x <= high}``.

    Sums of these over records are the count, the sums, and the sums of squares and products of d
    numbers: all that means, variances, correlations and linear regressions need. Products
    ``x_i x_j``, i <= j, are in lexicographic order. Tables with squares of clipped numbers
    (:class:`Clipped`) protect more points, so the best noise for this set is smaller than theirs.
    Errors of a sum of squares and of a count are in different units: ``np.diag(weights) @ K`` makes
    them comparable.

    ``support_point`` is exact. ``max_quadratic`` bounds a polynomial of degree four by branch and
    bound on its coefficients in the Bernstein basis (Garloff 1986), to about a relative 5e-10. For
    ``K − K``, it does the same for up to three numbers. With three, the limit on parts may leave a
    wider gap (0.6 % on [−1, 1]³). With more than three, the bound is within a factor two.

    Args:
        low: smallest values of the numbers, shape (d,), 1 <= d <= 5.
        high: largest values, shape (d,), each larger than in ``low``.

    Raises:
        InvalidDomainError: other shapes, NaN or infinity, an end beyond ±1e100, ``low >= high``, or
            a difference below 1e-100.
        DomainTooLargeError: more than five numbers.

    >>> K = BoxMoments([0.0, -1.0], [2.0, 1.0])
    >>> K.embed([[2.0, 0.5]])
    array([[1.  , 2.  , 0.5 , 4.  , 1.  , 0.25]])
    >>> print(f"{gn.optimal_noise(K, neighbors='add-remove').gamma:.4f}")
    7.4244
    """

    low: Array
    high: Array

    def __init__(self, low: "ArrayLike", high: "ArrayLike") -> None:
        ends = [numbers("BoxMoments", name, x) for name, x in (("low", low), ("high", high))]
        if ends[0].ndim != 1 or ends[0].shape != ends[1].shape or not len(ends[0]):
            raise InvalidDomainError(
                "BoxMoments: expected low and high of one shape (d,), d >= 1, got "
                f"{ends[0].shape} and {ends[1].shape}"
            )
        if len(ends[0]) > _MOST:
            raise DomainTooLargeError(
                f"BoxMoments: expected at most {_MOST} numbers, got {len(ends[0])}; hint: a plan "
                "of tables of every two clipped numbers, whose noise is somewhat larger"
            )
        # narrower boxes would lose digits among subnormal numbers, and their squares vanish
        if not ((np.abs(ends) <= 1e100).all() and (ends[1] - ends[0] >= 1e-100).all()):
            raise InvalidDomainError(
                "BoxMoments: expected low < high for every number, at least 1e-100 apart, all "
                "between -1e100 and 1e100"
            )
        object.__setattr__(self, "low", own_array(ends[0] + 0.0))
        object.__setattr__(self, "high", own_array(ends[1] + 0.0))

    @property
    def dim(self) -> int:
        d = len(self.low)
        return 1 + d + d * (d + 1) // 2

    def embed(self, values: "ArrayLike") -> Array:
        """Return the moments of vectors: the points that belong to the rows of ``values``.

        Args:
            values: shape (n, d), ``low <= values <= high``.

        Returns:
            Rows of K, shape (n, dim).

        Raises:
            DimensionError: wrong shape.
            InvalidDomainError: not real numbers, a number outside its interval, NaN or infinity;
                the message shows no value.

        >>> BoxMoments([0.0], [10.0]).embed([[3.0]])
        array([[1., 3., 9.]])
        """
        d = len(self.low)
        x = real_array("embed", f"values of shape (n, {d})", (None, d), values).astype(np.float64)
        if not ((x >= self.low) & (x <= self.high)).all():
            raise InvalidDomainError(
                "embed: expected low <= values <= high; hint: np.clip(values, K.low, K.high)"
            )
        return self._moments(x)

    def _moments(self, x: Array) -> Array:
        i, j = self._pairs
        return np.hstack([np.ones((len(x), 1)), x, x[:, i] * x[:, j]])

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.triu_indices(len(self.low))

    def _polynomials(self) -> tuple[Array, NDArray[np.intp]]:
        return self._from_unit, self._exponents

    @cached_property
    def _exponents(self) -> NDArray[np.intp]:
        each, (i, j) = np.eye(len(self.low), dtype=np.intp), self._pairs
        return np.vstack([np.zeros_like(each[:1]), each, each[i] + each[j]])

    @cached_property
    def _from_unit(self) -> Array:
        """The matrix from monomials of v in [−1, 1]^d to those of x = middle + half width · v."""
        middle, half = self.low / 2 + self.high / 2, self.high / 2 - self.low / 2
        d, (i, j) = len(self.low), self._pairs
        matrix, rows = np.diag(self._moments(half[None])[0]), 1 + d + np.arange(len(i))
        matrix[:, 0] = self._moments(middle[None])[0]
        np.add.at(matrix, (rows, 1 + i), half[i] * middle[j])
        np.add.at(matrix, (rows, 1 + j), half[j] * middle[i])
        return matrix

    def _at(self, v: Array) -> Array:
        x = self.low / 2 + self.high / 2 + v * (self.high / 2 - self.low / 2)
        x = np.where(v == 1, self.high, np.where(v == -1, self.low, x))  # ends are not rounded
        return self._moments(np.clip(x, self.low, self.high)[None])[0]

    def _support_point(self, theta: Array) -> Array:
        d, (i, j) = len(self.low), self._pairs
        terms = (theta / (np.abs(theta).max() or 1.0)) @ self._from_unit / 2
        form = np.zeros((d + 1, d + 1))
        form[0, 1:] = terms[1 : d + 1]
        form[1 + i, 1 + j] = terms[d + 1 :]
        size = np.abs(form).max() or 1.0  # so that products of large numbers do not overflow
        return self._at(largest_quadratic((form + form.T) / size))

    def _difference(self) -> AbstractDomain:
        many = len(self.low) > _MOST_PAIRED
        return super()._difference() if many else MomentDifferences(self)

    def _near(self, X: Array) -> Array:
        return self._moments(np.clip(X[:, 1 : 1 + len(self.low)], self.low, self.high))

    def _magnitudes(self) -> Array:
        return self._moments(np.maximum(np.abs(self.low), np.abs(self.high))[None])[0]

    def _contains(self, x: Array) -> bool:
        points = self._axis_points
        widths = points[1].diagonal() - points[0].diagonal()
        slack = SLACK * widths + ROUNDING * self._magnitudes()
        return bool((np.abs(x - self._near(x[None])[0]) <= slack).all())

    def __repr__(self) -> str:
        return f"BoxMoments({self.low.tolist()}, {self.high.tolist()})"


@final
@dataclass(frozen=True, eq=False)
class MomentDifferences(AbstractBoxImage):
    """The differences {y − z : y, z in K} of a set K of moments of at most three numbers."""

    body: BoxMoments

    def __post_init__(self) -> None:
        if not isinstance(self.body, BoxMoments) or len(self.body.low) > _MOST_PAIRED:
            raise InvalidDomainError(
                f"K - K: expected the moments of at most {_MOST_PAIRED} numbers of a box"
            )

    @property
    def dim(self) -> int:
        return self.body.dim

    @property
    def is_symmetric(self) -> bool:
        return True

    def _polynomials(self) -> tuple[Array, NDArray[np.intp]]:
        matrix, exponents = self.body._polynomials()
        matrix, d = matrix[:, 1:], len(self.body.low)  # constants cancel
        first = np.pad(exponents[1:], ((0, 0), (0, d)))
        return np.hstack([matrix, -matrix]), np.vstack([first, np.roll(first, d, axis=1)])

    def _at(self, v: Array) -> Array:
        d = len(self.body.low)
        return self.body._at(v[:d]) - self.body._at(v[d:])

    def _support_point(self, theta: Array) -> Array:
        return self.body._support_point(theta) - self.body._support_point(-theta)

    def _magnitudes(self) -> Array:
        return 2 * self.body._magnitudes()

    def __repr__(self) -> str:
        return f"({self.body!r} − itself)"


def _largest(form: Array, columns: Array, exponents: NDArray[np.intp]) -> tuple[Array, float]:
    """Return v in [−1, 1]^m, and an upper bound on y' form y; y = columns @ monomials of v."""
    # of a form with coordinates of very different units, only a root after scaling is accurate
    scale, root, residual = unit_diagonal(form)
    v, upper = largest_squares(root * scale @ columns, exponents)
    reach = scale * np.abs(columns).sum(axis=1)
    rounding = 4 * (len(form) + 16) * EPS * float(np.linalg.norm(np.abs(root) @ reach))
    return v, (math.sqrt(upper) + rounding) ** 2 + float(reach @ residual @ reach)
