"""Proven bounds on the bias of clipping, for averages of records with bounded moments."""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from ..numerics.rounding import SAFE_SIDE

Array = NDArray[np.float64]

_MOST_ORDER = 20  # largest order of a moment that is computed term by term
# Sizes of the grids over which bounds are minimised. Every grid point gives a valid bound, so a
# coarse grid costs accuracy only.
_PLACES, _RATES = 32, 64


@dataclass(frozen=True)
class Averages:
    """Bounds for the mean X̄ of ``samples`` independent records X in R^dim with mean μ.

    It is assumed that ``E|⟨v, X − μ⟩|^k <= 1`` for every unit vector v.

    All lengths are in units of the moment. A bound for averages of ``samples`` records also holds
    for averages of more records.

    Attributes:
        dim: number of coordinates.
        samples: number of records in an average.
        k: order of the moment, at least 2.
    """

    dim: int
    samples: int
    k: float

    def moment(self, order: int) -> float:
        """Return an upper bound on ``E|⟨v, X̄ − μ⟩|^order`` for every unit vector v.

        X̄ is the average, and ``order`` is even and at most k. The power of the sum expands into
        products of records. A product has mean zero unless every record in it occurs at least
        twice. In that case, the mean of the product is at most one. The number of these products is
        that of set partitions without single elements.
        """
        counted = sum(
            _partitions(order, blocks) * math.perm(self.samples, blocks)
            for blocks in range(1, order // 2 + 1)
        )
        return counted / self.samples**order

    def clipping_bias(self, reach: Array, off: float) -> Array:
        """Return an upper bound on the norm of the bias of an average that is clipped to a ball.

        The bound also holds if the center was chosen from the same people. For every direction, the
        largest change by clipping, over all centers within ``off`` of the mean, has an expectation
        of at most the bound.

        Args:
            reach: radius of the ball minus ``off``, positive, shape (t,).
            off: upper bound on the distance of the ball's center from the mean.
        """
        with np.errstate(all="ignore"):  # a power that overflows gives an infinite bound
            bounds = [self._by_moment(order, reach, off) for order in self._orders()]
            bounds.append(
                self._by_truncation_on_a_line(reach)
                if self.dim == 1
                else self._by_truncation(reach, off)
            )
        return np.nan_to_num(bounds, nan=math.inf, posinf=math.inf).min(axis=0) * SAFE_SIDE

    def _orders(self) -> list[tuple[float, float]]:
        """Return pairs (q, M) with ``E|⟨v, X̄ − μ⟩|^q <= M`` for all unit vectors v."""
        even = range(2, min(math.floor(self.k), _MOST_ORDER) + 1, 2)
        return [*((float(order), self.moment(order)) for order in even), (self.k, 1.0)]

    def _by_moment(self, known: tuple[float, float], t: Array, off: float) -> Array:
        """Return the bound of :meth:`clipping_bias` that follows from a pair of :meth:`_orders`."""
        # known is (order q, bound M on the moment).
        # Let c be the center, T the radius, R = ‖x − μ‖ and t = reach. Clipping changes x by (‖x −
        # c‖ − T)₊, towards c. The norm of the bias is at most E (R − t)₊, and (R − t)₊ <= C_q R^q /
        # t^(q−1) with E R^q <= d^(q/2) M. In direction v the bias is at most the mean of (|⟨v, x −
        # μ⟩| + off) (R − t)₊ / R; Hölder's inequality bounds the first part.
        q, moment = known
        root = math.sqrt(self.dim)
        norm = _excess(q) * root**q * moment / t ** (q - 1)
        direction = moment * (root / t) ** (q - 1) * (_excess(q) + off * root / t * _excess(q + 1))
        return np.minimum(norm, direction)

    def _by_truncation_on_a_line(self, t: Array) -> Array:
        """Return the bound of :meth:`clipping_bias` for d = 1, proven by truncation of records."""
        # (ΣX − x)₊ <= (ΣY − x)₊ + Σ(X − y)₊ for the m records X minus μ, x = mt, and Y = min(X, y).
        # The k-th moment bounds the second sum. For the first sum, u₊ <= exp(λu − 1)/λ and
        # E exp(λY) <= exp(Σ_j λ^j E Y₊^j / j!); E Y₊^j is at most 1 for j <= k, and y^(j−k) beyond.
        m, k = self.samples, self.k
        t, y, rate = self._grids(t, t)
        z = rate * y
        with np.errstate(over="ignore"):
            bulk = sum(rate**j / math.factorial(j) for j in range(2, math.ceil(k)))
            growth = bulk + y**-k * np.exp(z) * scipy.special.gammainc(math.ceil(k), z)
            light = 2 * np.exp(np.minimum(m * (growth - rate * t), 700.0) - 1) / (m * rate)
        light = np.where(y <= t, 0.0, light)
        return (_excess(k) * y ** (1 - k) + light).min(axis=(1, 2))

    def _by_truncation(self, t: Array, off: float) -> Array:
        """Return the bound of :meth:`clipping_bias` for d > 1, proven by truncation of records."""
        # A record is far if its distance from the mean exceeds a length y.
        # With probability at most m d^(k/2) / y^k there is a far record, and clipping then changes
        # an average X̄ in a direction v by at most |⟨v, X̄ − μ⟩| + off. Otherwise Bousquet's
        # inequality bounds the norm of the sum of the m records minus μ (Boucheron, Lugosi &
        # Massart 2013, Theorem 12.5), with E‖·‖ <= √(md) and a variance of at most m in every
        # direction.
        m, k, d = self.samples, self.k, self.dim
        t, y, rate = self._grids(t, t * math.sqrt(d))
        heavy = (math.sqrt(d) / y) ** (k - 1)
        far = (math.sqrt(d) / y) ** k
        width = y + heavy
        z = rate * width
        with np.errstate(over="ignore"):
            variance = m / width**2 + 2 * math.sqrt(m * d) / width
            exponent = (
                variance * (np.expm1(z) - z) + rate * math.sqrt(m * d) - rate * m * (t - heavy)
            )
            light = np.exp(np.minimum(exponent, 700.0) - 1) / (m * rate)
        light = np.where(y <= t, 0.0, light)
        return (heavy + (math.sqrt(m) + off * m) * far + light).min(axis=(1, 2))

    def _grids(self, t: Array, first: Array) -> tuple[Array, Array, Array]:
        """Return grids of t, of lengths y from ``first`` on, and of rates, along three axes."""
        share = np.geomspace(1.0, 2.0 * max(self.samples, 2), _PLACES)
        rates = np.geomspace(min(0.1 * t.min(), 1 / (self.samples * t.max())), 20.0, _RATES)
        # each grid of lengths begins with y = t
        y = np.concatenate([t[:, None], first[:, None] * share], axis=1)
        return t[:, None, None], y[:, :, None], rates[None, None, :]


def _excess(q: float) -> float:
    """Return the least C with ``max(R − t, 0) <= C R^q / t^(q−1)`` for all R >= 0 and t > 0."""
    return math.exp((q - 1) * math.log(q - 1) - q * math.log(q))


def _partitions(elements: int, blocks: int) -> int:
    """Return the number of partitions of a set into ``blocks`` blocks of two or more elements."""
    if elements == 0 or blocks == 0:
        return int(elements == blocks == 0)
    if elements < 2 * blocks:
        return 0
    # the last element joins an existing block, or forms a block with one other element
    return blocks * _partitions(elements - 1, blocks) + (elements - 1) * _partitions(
        elements - 2, blocks - 1
    )
