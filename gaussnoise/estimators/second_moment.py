"""The second moment of clipped rows with symmetric noise, computed in exact integers."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..numerics.integers import MOST_SUM
from ..privacy.lattice_bound import MIN_STEPS, MOST_STEPS
from ..privacy.sampler import IntegerQuery

Array = NDArray[np.float64]

# bits of a coordinate as an integer: its rounding is far below the noise for any number of rows
_BITS = 20
_EXACT = 2**53  # sums of integers below this limit are exact in floats, in any order
# since 41² <= 2 · 29², entries 29 M_ii and 41 M_ij (i < j) have norm at most 29 ‖M‖_F, and nearly
# this much (to 0.03 %)
DIAGONAL, OFF = 29, 41


@dataclass(frozen=True, eq=False)
class NoisyMoment:
    """The noisy mean of the matrices x xᵀ over records x.

    Attributes:
        estimate: shape (d, d), symmetric.
        diagonal: standard deviation of the noise of each entry (i, i).
        off: standard deviation of the noise of each entry (i, j), i < j; noises of different
            entries are independent.
        rounding: upper bound on the rounding of a row's coordinates.
    """

    estimate: Array
    diagonal: float
    off: float
    rounding: float


@dataclass(frozen=True)
class MomentLattice:
    r"""A lattice of integers for n rows of the unit ball in R^d, with noise for the mean of x xᵀ.

    A row x becomes the integers ``z = rint(2^bits x)``. A row with ‖z‖² above ``longest``, which is
    impossible in the ball, counts as zero. The sums M of neighbours differ by ``z zᵀ − w wᵀ`` for
    two rows z and w, and

        ‖z zᵀ − w wᵀ‖²_F = ‖z‖⁴ + ‖w‖⁴ − 2 (z·w)² <= 2 longest²,

    with equality for orthogonal z and w. (In one dimension, ``(z² − w²)² <= longest²``.) One
    discrete Gaussian is added to each of ``29 M_ii`` and ``41 M_ij``, i < j. If M changes by a
    length of x in Frobenius norm, these numbers together change by at most 29 x. Entries off the
    diagonal get half the variance that they would have with equal noise on all entries of the upper
    triangle.

    Attributes:
        dim: d.
        rows: n.
        rho: ρ.
    """

    dim: int
    rows: int
    rho: float

    @property
    def bits(self) -> int:
        """The binary digits of a coordinate: at most 20, since sums must fit into 64 bits."""
        for bits in range(_BITS, 0, -1):
            longest = self._longest(bits)
            if self.rows * longest < MOST_SUM and DIAGONAL * longest <= MOST_STEPS * math.sqrt(
                self.rho
            ):
                return bits
        raise ParameterError(f"noise: no lattice for {self.rows} rows and rho = {self.rho:.3g}")

    @property
    def longest(self) -> int:
        """The largest squared length of a row of integers; longer rows count as zero."""
        return self._longest(self.bits)

    def _longest(self, bits: int) -> int:
        # a row of length 2^bits becomes longer by at most √d/2 when it is rounded
        return (2**bits + math.isqrt(self.dim) + 1) ** 2

    @property
    def query(self) -> IntegerQuery:
        """The query that adds integer noise to the sums.

        Raises:
            ParameterError: the lattice has fewer steps than the privacy guarantees need.
        """
        far = 2 if self.dim > 1 else 1
        query = IntegerQuery(far * (DIAGONAL * self.longest) ** 2, self.rho)
        if query.scale < MIN_STEPS:
            raise ParameterError(
                f"noise: rho = {self.rho:.3g} needs a lattice too fine for {self.rows} rows"
            )
        return query

    def integers(self, inside: Array) -> NDArray[np.int64]:
        """Return the integers ``rint(2^bits x)`` for rows x of the unit ball."""
        steps = np.rint(np.ldexp(inside, self.bits)).astype(np.int64)
        steps[np.square(steps).sum(axis=1) > self.longest] = 0
        return steps

    def total(self, integers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the exact integer matrix ``Σ z zᵀ`` over the rows z, shape (d, d)."""
        total = np.zeros((self.dim, self.dim), dtype=np.int64)
        size = max(_EXACT // self.longest, 1)
        for start in range(0, len(integers), size):
            piece = integers[start : start + size].astype(np.float64)
            total += (piece.T @ piece).astype(np.int64)
        return total

    def release(self, inside: Array) -> NoisyMoment:
        """Return the noisy mean of x xᵀ over rows x of the unit ball, shape (n, d), without NaN."""
        total, query = self.total(self.integers(inside)), self.query
        estimate = np.zeros((self.dim, self.dim))
        noise = iter(query.draw(self.dim * (self.dim + 1) // 2))
        for i in range(self.dim):
            for j in range(i, self.dim):
                weight = DIAGONAL if i == j else OFF
                value = (weight * int(total[i, j]) + next(noise)) / (weight * self.rows)
                estimate[i, j] = estimate[j, i] = math.ldexp(value, -2 * self.bits)
        deviation = math.ldexp(query.scale, -2 * self.bits) / self.rows
        rounding = math.ldexp(0.5, -self.bits)
        return NoisyMoment(estimate, deviation / DIAGONAL, deviation / OFF, rounding)
