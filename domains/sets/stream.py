"""Workloads over time whose inverse is banded: sums, decayed sums, momentum, running means."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ..domain import AbstractFiniteDomain, QuadraticMax
from ..errors import DimensionError, DomainTooLargeError, InvalidDomainError
from ..floats import Array
from ..records import real_numbers
from .finite import FiniteSet

_MOST_LISTED = 4096  # number of ticks whose points take 128 MB


@final
@dataclass(frozen=True, eq=False)
class StreamWorkload(AbstractFiniteDomain):
    """The columns of a lower-triangular workload A (n, n), given by the few bands of A⁻¹.

    Row t of A gives the answer at tick t. Column i is the effect of the contribution at tick i on
    all answers. A is not written out if n is large.

    Args:
        bands: shape (b + 1, n): row m holds ``A⁻¹[t, t − m]`` for every tick t, zero where t < m.
            The first row, the diagonal, has no zeros.

    Raises:
        InvalidDomainError: not two-dimensional, no ticks, NaN or infinite, a zero on the diagonal,
            entries before the first tick, or a workload whose entries overflow.

    >>> totals = StreamWorkload([[1.0, 1.0, 1.0], [0.0, -1.0, -1.0]])
    >>> totals.apply([1.0, 2.0, 3.0])
    array([1., 3., 6.])
    """

    bands: Array

    def __init__(self, bands: "ArrayLike") -> None:
        array = real_numbers("StreamWorkload", bands)
        if array.ndim != 2 or 0 in array.shape or len(array) > array.shape[1]:
            raise InvalidDomainError(
                f"StreamWorkload: expected bands of shape (b + 1, n) with b < n, got {array.shape}"
            )
        if not np.isfinite(array).all() or (array[0] == 0).any():
            raise InvalidDomainError(
                "StreamWorkload: expected finite bands without zeros on the diagonal"
            )
        if any(band[:m].any() for m, band in enumerate(array)):
            raise InvalidDomainError("StreamWorkload: expected zeros in band m before tick m")
        object.__setattr__(self, "bands", array)
        largest = self.apply(np.ones(self.ticks)), self.transpose_apply(np.ones(self.ticks))
        if not all(np.isfinite(sums).all() for sums in largest):
            raise InvalidDomainError(
                "StreamWorkload: expected answers that do not overflow; hint: fewer ticks"
            )

    @property
    def ticks(self) -> int:
        """The number n of ticks; a tick is one release of the stream."""
        return self.bands.shape[1]

    @property
    def dim(self) -> int:
        return self.ticks

    @property
    def cardinality(self) -> int:
        return self.ticks

    @property
    def is_symmetric(self) -> bool:
        return False  # the columns are linearly independent, so that −K ≠ K

    def apply(self, x: "ArrayLike") -> Array:
        """Return A x for x of shape (n,) or (n, k): the answers to the contributions x."""
        return self._back(self._rows("apply", x), transposed=False)

    def transpose_apply(self, x: "ArrayLike") -> Array:
        """Return Aᵀ x for x of shape (n,) or (n, k)."""
        return self._back(self._rows("transpose_apply", x), transposed=True)

    def solve(self, y: "ArrayLike") -> Array:
        """Return A⁻¹ y for y of shape (n,) or (n, k): the contributions that have the answers y."""
        rows = self._rows("solve", y)
        bands = self.bands if rows.ndim == 1 else self.bands[..., None]
        x = bands[0] * rows
        for m in range(1, len(bands)):
            x[m:] += bands[m, m:] * rows[:-m]
        return x

    def toarray(self) -> Array:
        """Return A as a new array of shape (n, n).

        Raises:
            DomainTooLargeError: more than 4096 ticks.
        """
        return self._dense.copy()

    def to_finite_set(self) -> FiniteSet:
        return FiniteSet(self._dense.T)

    def _listed(self, most: float = np.inf) -> FiniteSet | None:
        return self.to_finite_set() if self.ticks**2 <= most else None

    @cached_property
    def _dense(self) -> Array:
        if self.ticks > _MOST_LISTED:
            raise DomainTooLargeError(
                f"StreamWorkload: {self.ticks} columns, more than the {_MOST_LISTED} that are "
                'listed; hint: optimal_noise(…, neighbors="add-remove") needs none where the '
                "inverse has one to eight subdiagonals"
            )
        dense = np.tril(self.apply(np.eye(self.ticks)))
        dense.flags.writeable = False
        return dense

    def _back(self, rows: Array, *, transposed: bool) -> Array:
        """Return A or Aᵀ times ``rows``, by solving equations with the banded matrix A⁻¹."""
        below = np.zeros_like(self.bands)  # m below the diagonal, by column of A⁻¹
        for m, band in enumerate(self.bands):
            below[m, : self.ticks - m] = band[m:]
        (banded_solve,) = scipy.linalg.get_lapack_funcs(("tbtrs",), dtype=np.float64)
        x, _ = banded_solve(
            below, rows.reshape(self.ticks, -1), uplo="L", trans="T" if transposed else "N"
        )
        return x.reshape(rows.shape)

    def _column(self, tick: int) -> Array:
        unit = np.zeros(self.ticks)
        unit[tick] = 1.0
        return self.apply(unit)

    def _support_point(self, theta: Array) -> Array:
        return self._column(int(np.argmax(self.transpose_apply(theta))))

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        return self.to_finite_set()._max_quadratic(form, center)

    def _contains(self, x: Array) -> bool:
        # column i has its first nonzero entry at tick i: compare x with the only possible column
        return bool(x.any()) and np.array_equal(x, self._column(int(np.argmax(x != 0))))

    def _rows(self, method: str, x: "ArrayLike") -> Array:
        rows = np.array(x, dtype=np.float64)
        if rows.ndim not in (1, 2) or len(rows) != self.ticks:
            raise DimensionError(
                f"{method}: expected shape ({self.ticks},) or ({self.ticks}, k), got {rows.shape}"
            )
        return rows

    def __repr__(self) -> str:
        return (
            f"StreamWorkload({self.ticks} ticks, {len(self.bands) - 1} subdiagonals in its inverse)"
        )
