"""Strategy matrices of linear recursions with few states and coefficients that change with time.

The matrix is a diagonal plus, below it, q terms of rank one that decay geometrically with the lag.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from domains.floats import UNIT, Array
from domains.sets.stream import StreamWorkload

from .covariances import covariances

_LEAST = 1e-3  # least coefficient at the start of a search: from zero it might never grow


@dataclass(frozen=True, eq=False)
class Recursion:
    """A strategy matrix C with ``C_tt = d_t`` and, for s < t, ``C_ts = Σ_j u_tj v_sj θ_j^{t−s−1}``.

    Noise for contributions is ``y = C⁻¹ z``, z independent standard normal. This noise is computed
    in one pass, with states x that are zero at first: ``y_t = (z_t − Σ_j u_tj x_tj) / d_t`` and
    ``x_{t+1,j} = θ_j x_tj + v_tj y_t``. With the same u, v and d at every tick, C is a buffered
    Toeplitz matrix of Dvijotham et al. (2024).

    Attributes:
        workload: the matrix A of the answers over time.
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
        """All arrays of the recursion: the workload's bands, d, u, v and θ."""
        return self.workload.bands, self.diagonal, self.shown, self.kept, self.fading

    def scaled(self, factor: float) -> "Recursion":
        """Return the recursion with ``factor`` times the noise of this one."""
        return replace(self, diagonal=self.diagonal / factor, shown=self.shown / factor)

    def strategy(self) -> Array:
        """Return the strategy matrix C, shape (n, n), lower triangular."""
        return np.diag(self.diagonal) + _below_diagonal(self.shown, self.kept, self.fading)

    def rounding(self) -> float:
        """Return a bound on the length of the rounding error of any column of :meth:`strategy`."""
        sizes = np.diag(self.diagonal) + _below_diagonal(
            np.abs(self.shown), np.abs(self.kept), self.fading
        )
        lost = 8 * (self.buffers + 4) * UNIT  # errors of quotients, a power, products and sums
        return lost * float(np.sqrt(np.square(sizes).sum(axis=0).max()))

    def squared_columns(self) -> Array:
        """Return upper bounds on the squared norms of the columns of C, shape (n,).

        The bounds hold for the stored numbers exactly. Rounding is bounded by the same sums and
        products of absolute values.
        """
        found, without_signs = (
            np.square(d) + np.einsum("tj,tjk,tk->t", v, later_products(u, self.fading), v)
            for d, u, v in (
                (self.diagonal, self.shown, self.kept),
                (self.diagonal, np.abs(self.shown), np.abs(self.kept)),
            )
        )
        return found + 8 * (self.ticks + self.buffers**2 + 4) * UNIT * without_signs

    def variances(self) -> Array:
        """Return the variances of the answers' noise, shape (n,)."""
        found = covariances(*steps_of(*self.arrays))
        return found[1:, self.buffers, self.buffers].copy()

    def advanced(self, t: int, states: list[Any], normal: Any) -> tuple[Any, list[Any]]:
        """Return the noise of the contribution at tick t, and the states of the next tick.

        ``states`` are those of tick t, and ``normal`` is the tick's standard normal draw.
        """
        noise = float(1 / self.diagonal[t]) * normal
        for share, state in zip((self.shown[t] / self.diagonal[t]).tolist(), states, strict=True):
            noise = noise - share * state
        coefficients = zip(self.fading.tolist(), self.kept[t].tolist(), states, strict=True)
        return noise, [fade * state + gain * noise for fade, gain, state in coefficients]


def later_products(shown: Array, fading: Array) -> Array:
    """Return ``G_s = Σ_{t>s} Θ^{t−s−1} u_t u_tᵀ Θ^{t−s−1}`` for every tick s, shape (n, q, q).

    u is ``shown``, and Θ = diag(``fading``). The part of column s of the strategy matrix below the
    diagonal has the squared norm ``v_sᵀ G_s v_s``.
    """
    n, q = shown.shape
    found = np.zeros((n, q, q))
    for j in range(q):
        for k in range(j + 1):
            products = (shown[:, j] * shown[:, k])[::-1]
            summed = scipy.signal.lfilter([1.0], [1.0, -fading[j] * fading[k]], products)[::-1]
            found[:-1, j, k] = found[:-1, k, j] = summed[1:]
    return found


def steps_of(
    bands: Array, diagonal: Array, shown: Array, kept: Array, fading: Array
) -> tuple[Array, Array]:
    """Return matrices M_t and vectors g_t: every tick t turns the state x into ``M_t x + g_t z_t``.

    x has the q states of the recursion, then the noise of the last b answers, the newest first; z_t
    is the tick's normal draw. Shapes (n, q + b, q + b) and (n, q + b).
    """
    n, q = shown.shape
    b = len(bands) - 1
    moves, draws = np.zeros((n, q + b, q + b)), np.zeros((n, q + b))
    moves[:, :q, :q] = np.diag(fading) - (kept / diagonal[:, None])[:, :, None] * shown[:, None, :]
    moves[:, q, :q] = -shown / (diagonal * bands[0])[:, None]
    moves[:, q, q:] = -(bands[1:] / bands[0]).T
    older = np.arange(q + 1, q + b)
    moves[:, older, older - 1] = 1
    draws[:, :q] = kept / diagonal[:, None]
    draws[:, q] = 1 / (diagonal * bands[0])
    return moves, draws


def fading_root(n: int, states: int, reach: float) -> tuple[Array, Array]:
    """Return factors c and decays θ for which ``Σ_j c_j θ_j^{lag − 1}`` is near a square root.

    The root is that of the matrix of running totals, whose entries depend on the lag only. Its
    entries are first multiplied by exp(−lag/reach).
    """
    lags = np.arange(1, n)
    fading = np.exp(-1 / np.geomspace(1.0, max(n / 2, 2.0), states))
    root = np.cumprod(1 - 1 / (2 * lags)) * np.exp(-lags / reach)
    rows = fading ** (lags[:, None] - 1)
    sizes, _ = scipy.optimize.nnls(rows / np.sqrt(root)[:, None], np.sqrt(root))
    return np.maximum(sizes, _LEAST), fading


def _below_diagonal(shown: Array, kept: Array, fading: Array) -> Array:
    n = len(shown)
    lags = np.maximum(np.subtract.outer(np.arange(n), np.arange(n)) - 1, 0)
    total = np.zeros((n, n))
    for u, v, fade in zip(shown.T, kept.T, fading, strict=True):
        total += (fade ** np.arange(n))[lags] * u[:, None] * v
    return np.tril(total, -1)
