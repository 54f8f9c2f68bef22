"""Bounds on the tails of lengths of normal vectors, by Chernoff's method."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..numerics.rounding import SAFE_SIDE

Array = NDArray[np.float64]

_ODDS = np.geomspace(1e-12, 1e6, 600)  # s/(s_max − s) for exponents s below the limit s_max


@dataclass(frozen=True, eq=False)
class SquaredLength:
    r"""Bounds on the squared length Q of Z + v, for Z normal with mean 0 and independent of v.

    Let λ be the ``variances``. For 0 <= s < 1/(2 max λ), ``E e^{sQ} <= Π (1 − 2sλ_i)^{−1/2} · exp(s
    shift²/(1 − 2s max λ))``. Every s gives a valid bound, so a finite grid of s only costs
    accuracy. (Laurent & Massart 2000, Lemma 1, is the bound for one choice of s and v = 0.)

    Attributes:
        variances: eigenvalues of an upper bound on the covariance of Z, shape (d,).
        shift: upper bound on ‖v‖.
    """

    variances: Array
    shift: float = 0.0

    @cached_property
    def _exponents(self) -> Array:
        return _ODDS / (1 + _ODDS) / (2 * float(self.variances.max()))

    @cached_property
    def _log_moments(self) -> Array:
        relative = self.variances / self.variances.max()
        part = _ODDS / (1 + _ODDS)
        return -0.5 * np.log1p(-np.outer(part, relative)).sum(
            axis=1
        ) + self._exponents * self.shift**2 * (1 + _ODDS)

    def quantile(self, log_odds: float) -> float:
        """Return a number q with P(Q > q) <= ``exp(−log_odds)`` for the squared length Q."""
        return float(((log_odds + self._log_moments) / self._exponents).min())

    def excess(self, q: float) -> float:
        """Return an upper bound on ``E max(Q − q, 0)``, for the squared length Q.

        The bound follows from ``max(x, 0) <= e^{sx − 1}/s`` for every s > 0.
        """
        with np.errstate(over="ignore"):
            return float(
                (np.exp(self._log_moments - self._exponents * q - 1) / self._exponents).min()
                * SAFE_SIDE
            )

    def excess_length(self, q: float) -> float:
        """Return an upper bound on ``E max(√Q − √q, 0)``, for the squared length Q.

        The square root is concave, so it lies below its tangent at q.
        """
        return self.excess(q) / (2 * math.sqrt(q))
