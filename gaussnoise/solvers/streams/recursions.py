"""Strategies of few states, whose coefficients may all change from tick to tick.

The matrix has a diagonal and, below it, a sum of products that fade with the distance in time.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from domains.floats import UNIT, Array
from domains.sets.stream import StreamWorkload


@dataclass(frozen=True, eq=False)
class Recursion:
    """The strategy C with ``C_tt = d_t`` and, for s < t, ``C_ts = Σ_j u_tj v_sj θ_j^{t−s−1}``.

    Noise for contributions is ``y = C⁻¹ z``, z independent standard normal, in one pass: with
    states x (zero at first), ``y_t = (z_t − Σ_j u_tj x_tj) / d_t`` and ``x_{t+1,j} = θ_j x_tj +
    v_tj y_t``. Toeplitz matrices of this kind, with the same u, v and d at every tick, are the
    buffered ones of Dvijotham et al. (2024).

    Attributes:
        workload: A.
        diagonal: d, shape (n,), positive.
        shown: u, shape (n, q).
        kept: v, shape (n, q).
        fading: θ, shape (q,), in (0, 1).
    """

    workload: StreamWorkload
    diagonal: Array
    shown: Array
    kept: Array
    fading: Array

    @property
    def ticks(self) -> int:
        return len(self.diagonal)

    @property
    def buffers(self) -> int:
        return len(self.fading)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays with all numbers of the recursion."""
        return self.workload.bands, self.diagonal, self.shown, self.kept, self.fading

    def scaled(self, factor: float) -> "Recursion":
        """Return the same noise, times ``factor``."""
        return replace(self, diagonal=self.diagonal / factor, shown=self.shown / factor)

    def strategy(self) -> Array:
        """Return C, shape (n, n), lower triangular."""
        return np.diag(self.diagonal) + _below(self.shown, self.kept, self.fading)

    def rounding(self) -> float:
        """Return a bound on the rounding of the columns of :meth:`strategy`."""
        sizes = np.diag(self.diagonal) + _below(np.abs(self.shown), np.abs(self.kept), self.fading)
        lost = 8 * (self.buffers + 4) * UNIT  # quotients, a power, two products, and sums
        return lost * float(np.sqrt(np.square(sizes).sum(axis=0).max()))

    def variances(self) -> Array:
        """Return the variances of the answers' noise, shape (n,)."""
        mixing = scipy.linalg.solve_triangular(self.strategy(), np.eye(self.ticks), lower=True)
        return np.square(self.workload.apply(mixing)).sum(axis=1)

    def advanced(self, t: int, states: list[Any], normal: Any) -> tuple[Any, list[Any]]:
        """Return the noise of the contribution at tick t, and the states of the next tick."""
        noise = float(1 / self.diagonal[t]) * normal
        for share, state in zip((self.shown[t] / self.diagonal[t]).tolist(), states, strict=True):
            noise = noise - share * state
        coefficients = zip(self.fading.tolist(), self.kept[t].tolist(), states, strict=True)
        return noise, [fade * state + gain * noise for fade, gain, state in coefficients]


def _below(shown: Array, kept: Array, fading: Array) -> Array:
    n = len(shown)
    lags = np.maximum(np.subtract.outer(np.arange(n), np.arange(n)) - 1, 0)
    total = np.zeros((n, n))
    for u, v, fade in zip(shown.T, kept.T, fading, strict=True):
        total += (fade ** np.arange(n))[lags] * u[:, None] * v
    return np.tril(total, -1)
