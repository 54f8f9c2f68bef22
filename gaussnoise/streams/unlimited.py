"""Running totals of a stream without an end: a strategy whose columns have bounded norms."""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from ..numerics.rounding import ROUNDING_MARGIN

Array = NDArray[np.float64]

_QUADRATURE = 1e-7  # relative error that quad may report; the result is increased by it
_PIECES = (0.0, 2.0, 10.0, 60.0, 600.0)  # breakpoints of log(π/θ)
_LARGEST_LOGARITHM = 200.0


@final
@dataclass(frozen=True)
class UnlimitedTotals:
    """Noise for running totals of a stream without an end.

    Its variance at tick t is of order ``log(t)^(2 + 2 exponent)``.

    The strategy is the lower-triangular Toeplitz matrix of ``(1 − z)^-1/2 (log(1/(1 − z))/z)^-(1/2
    + exponent)``. The squares of its coefficients have a finite sum, so no column, of any length,
    has a norm above ``sensitivity``. All past noise must be kept in memory. If the largest length
    is known, the noise of :func:`unknown_length` is far better.

    Args:
        exponent: positive; smaller values are better only for extremely long streams.

    Source: Jacobsen & Fawaz (2025). Their doubly logarithmic factor is omitted: up to 4096 ticks it
    would change the standard deviation by less than a tenth.

    >>> forever = gn.streams.UnlimitedTotals(0.2)
    >>> print(f"{forever.sensitivity:.4f}", forever.standard_deviation(1000)[-1].round(4))
    1.2195 6.2079
    """

    exponent: float = 0.2

    def __post_init__(self) -> None:
        if not 0.01 <= self.exponent <= 2:
            raise ParameterError(
                f"UnlimitedTotals: expected an exponent between 0.01 and 2, got {self.exponent!r}"
            )

    @cached_property
    def sensitivity(self) -> float:
        """The norm of a column of the infinite strategy, rounded up.

        Let f(z) be the power series whose coefficients are a column of the strategy. By Parseval's
        identity, the squared norm is ``∫ |f(e^iθ)|² dθ/2π``. The integral is computed over u with θ
        = π e^-u; for large u, over log u.
        """
        from scipy.integrate import quad  # imported here, since it takes a tenth of a second

        pieces = [
            quad(self._density, low, high, epsabs=0, epsrel=1e-10, limit=500)
            for low, high in itertools.pairwise(_PIECES)
        ]
        start = math.log(_PIECES[-1])
        end = start + 60 / (2 * self.exponent)
        pieces.append(quad(self._slow_density, start, end, epsabs=0, epsrel=1e-10, limit=2000))
        # the integral beyond ``end`` is less than that of the leading term of the density, times
        # 1.01
        pieces.append(
            (math.exp(-2 * self.exponent * end) / (2 * self.exponent * math.pi) * 1.01, 0.0)
        )
        total, error = (sum(column) for column in zip(*pieces, strict=True))
        if error > _QUADRATURE * total:
            raise ParameterError(
                f"UnlimitedTotals: the exponent {self.exponent} is too small to integrate"
            )
        return math.sqrt((total + error) * (1 + ROUNDING_MARGIN))

    def _density(self, u: float) -> float:
        theta = math.pi * math.exp(-u)
        chord = 2 * math.sin(theta / 2)
        return (
            theta
            / chord
            * math.hypot(-math.log(chord), (math.pi - theta) / 2) ** -(1 + 2 * self.exponent)
            / math.pi
        )

    def _slow_density(self, y: float) -> float:
        if y > _LARGEST_LOGARITHM:
            return math.exp(-2 * self.exponent * y) / math.pi
        u = math.exp(y)
        return (
            u * math.hypot(u - math.log(math.pi), math.pi / 2) ** -(1 + 2 * self.exponent) / math.pi
        )

    def strategy(self, ticks: int) -> Array:
        """Return the first column of the Toeplitz strategy at sensitivity 1, shape (ticks,)."""
        return _coefficients(ticks, -0.5 - self.exponent) / self.sensitivity

    def standard_deviation(self, ticks: int) -> Array:
        """Return the running totals' standard deviations at sensitivity 1, shape (ticks,)."""
        left = _coefficients(ticks, 0.5 + self.exponent) * self.sensitivity
        return np.sqrt(np.cumsum(left**2))


def _coefficients(count: int, power: float) -> Array:
    """Return the first ``count`` coefficients of ``(1 − z)^-1/2 (log(1/(1 − z))/z)^power``."""
    # Miller's recurrence for powers of a series
    logarithm = 1 / np.arange(1, count + 1)
    powers = np.ones(count)
    orders = np.arange(count)
    for k in range(1, count):
        j = orders[1 : k + 1]
        powers[k] = ((power * j - (k - j)) * logarithm[j] * powers[k - j]).sum() / k
    root = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / orders[1:]]))
    return np.convolve(root, powers)[:count]
