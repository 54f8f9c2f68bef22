"""Workloads over time whose inverse is banded: the columns of A, known through the recursion that computes A x."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import get_lapack_funcs

from ..domain import AbstractFiniteDomain, Array, QuadraticMax, read_only
from ..errors import DimensionError, DomainTooLargeError, InvalidDomainError
from .finite import FiniteSet

(_dtbtrs,) = get_lapack_funcs(("tbtrs",), dtype=np.float64)  # banded triangular systems
_MOST_ENTRIES = 2**26  # of the dense matrix: 512 MB


@final
@dataclass(frozen=True, eq=False)
class Stream(AbstractFiniteDomain):
    """What one contribution can do to all answers over n ticks: the columns of a lower triangular A, banded A⁻¹.

    Row t of A is what is published at tick t, column i what a contribution at tick i does to all of it. A itself is
    never formed: ``y = A x`` is the recursion that A⁻¹ y = x spells out, with as many terms as there are bands.

    Args:
        bands: shape (b + 1, n), the diagonals of A⁻¹: ``bands[k, i]`` is ``A⁻¹[i + k, i]``, so ``bands[0]`` is the
            diagonal, without zeros, and ``bands[k]`` the k-th subdiagonal, whose last k entries must be zero.

    Raises:
        InvalidDomainError: not two-dimensional, more bands than ticks, NaN or infinite, a zero on the diagonal, or
            numbers outside of the matrix.

    >>> sums = Stream([[1, 1, 1], [-1, -1, 0]])  # y_t = x_t + y_{t-1}
    >>> sums.apply([1.0, 2.0, 3.0])
    array([1., 3., 6.])
    >>> sums.toarray()
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """

    bands: Array

    def __init__(self, bands: ArrayLike) -> None:
        try:
            array = read_only(bands)
        except (TypeError, ValueError):
            raise InvalidDomainError("Stream: expected a regular array of real numbers as bands") from None
        if array.ndim != 2 or not 1 <= array.shape[0] <= array.shape[1]:
            raise InvalidDomainError(
                f"Stream: expected bands of shape (b + 1, n) with b < n, got {array.shape}; "
                "hint: bands[k, i] is entry [i + k, i] of the inverse"
            )
        if not np.isfinite(array).all():
            raise InvalidDomainError("Stream: expected finite bands, got NaN or infinity")
        if not array[0].all():
            raise InvalidDomainError("Stream: expected a diagonal without zeros, or A does not exist")
        if any(array[k, -k:].any() for k in range(1, len(array))):
            raise InvalidDomainError("Stream: expected zeros as the last k entries of bands[k], outside of the matrix")
        object.__setattr__(self, "bands", array)

    @property
    def ticks(self) -> int:
        """Number of ticks n."""
        return self.bands.shape[1]

    @property
    def dim(self) -> int:
        return self.ticks

    @property
    def cardinality(self) -> int:
        return self.ticks

    def apply(self, x: ArrayLike) -> Array:
        """A x: what is published when x arrives.

        Args:
            x: shape (n,), or (n, k) for k streams at once.

        >>> Stream([[1, 2, 3], [-1, -2, 0]]).apply([2.0, 4.0, 6.0])  # running means
        array([2., 3., 4.])
        """
        return self._solved(x, "N")

    def transpose_apply(self, y: ArrayLike) -> Array:
        """Aᵀ y, for y of shape (n,) or (n, k)."""
        return self._solved(y, "T")

    def solve(self, y: ArrayLike) -> Array:
        """A⁻¹ y, for y of shape (n,) or (n, k): what must have arrived for y to be published."""
        given = self._checked(y)
        rest = (slice(None),) + (None,) * (given.ndim - 1)
        x = self.bands[0][rest] * given
        for k in range(1, len(self.bands)):
            x[k:] += self.bands[k, :-k][rest] * given[:-k]
        return x

    def toarray(self) -> Array:
        """The dense A, shape (n, n).

        Raises:
            DomainTooLargeError: more than half a gigabyte.
        """
        if self.ticks**2 > _MOST_ENTRIES:
            raise DomainTooLargeError(
                f"Stream: the dense matrix of {self.ticks} ticks needs {self.ticks**2 * 8 / 1e9:.3g} GB; "
                'hint: apply, transpose_apply and solve need no matrix, and neighbors="add-remove" lists no points'
            )
        return self.apply(np.eye(self.ticks))

    def to_finite_set(self) -> FiniteSet:
        return FiniteSet(self.toarray().T)

    def _solved(self, x: ArrayLike, transposed: str) -> Array:
        given = self._checked(x)
        with np.errstate(all="ignore"):
            solved, info = _dtbtrs(self.bands, given.reshape(self.ticks, -1), uplo="L", trans=transposed)
        if info != 0 or not np.isfinite(solved).all():
            raise InvalidDomainError("Stream: expected answers within the range of doubles; hint: the recursion grows")
        return solved.reshape(given.shape)

    def _checked(self, x: ArrayLike) -> Array:
        given = np.array(x, dtype=np.float64)
        if given.ndim not in (1, 2) or len(given) != self.ticks:
            raise DimensionError(f"Stream: expected shape ({self.ticks},) or ({self.ticks}, k), got {given.shape}")
        return given

    def _column(self, i: int) -> Array:
        unit = np.zeros(self.ticks)
        unit[i] = 1.0
        return self.apply(unit)

    def _support_point(self, theta: Array) -> Array:
        return self._column(int(np.argmax(self.transpose_apply(theta))))

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        return self.to_finite_set()._max_quadratic(form, center)

    def _contains(self, x: Array) -> bool:
        # the column that begins where x does: all others begin elsewhere
        return bool(x.any()) and np.array_equal(x, self._column(int(np.argmax(x != 0))))

    def __repr__(self) -> str:
        return f"Stream({self.ticks} ticks, {len(self.bands) - 1} subdiagonals in the inverse)"
