"""The best strategy with at most b diagonals, if the ticks of one person are b ticks apart.

The strategy C is lower triangular with at most b diagonals. One person takes part at most k times,
at least b ticks apart, so X = CᵀC is zero between any two ticks of one person. The squared
sensitivity is then the largest sum of squared column norms over such sets of ticks. This also holds
if vectors are added.

Sets of at most k ticks, at least b apart, are the vertices of
``{λ >= 0 : Σ λ <= k, every b successive λ sum to at most one}``, since the rows of these
constraints are intervals, and so totally unimodular. Let d be the squared column norms. By duality,
no sum of d over such a set exceeds one if and only if ``d_t <= v + Σ_{t − b < i <= t} u_i`` with u,
v >= 0 and ``Σ u + k v <= 1``. So no sets are listed.
"""

import numpy as np
import scipy

from domains.floats import Array

from .descent import MEMORY, descended, mean_power

_STEPS = 600
_POWERS = (16, 128, 1024)  # means of these powers replace a maximum, one stage each


def banded_strategy(A: Array, k: int, b: int, p: float) -> Array:
    """Return a strategy matrix C with at most b diagonals and nearly the least error ``‖sd‖_p``.

    C has shape (n, n), and the sensitivity is at most one, up to rounding. Quasi-Newton steps
    change the columns' directions and the roots of u and v, which bound the columns' squared norms:
    see the module docstring. The gradient takes products of blocks of b columns.

    Args:
        A: the workload, shape (n, n), lower triangular, with entries near one.
        k: largest number of ticks of one person.
        b: least distance between these ticks.
        p: norm of the error, in [2, ∞].
    """
    band = Band(A, k, b)
    x = band.start()
    for power in _POWERS if np.isinf(p) else (p / 2,):
        x = descended(lambda y, power=power: band.value(y, power), x, steps=_STEPS, memory=MEMORY)
    return band.strategy(x)


class Band:
    """Errors of strategy matrices C with few diagonals, and their derivatives by the entries.

    A search varies x: the columns of C, then the roots of u and v, which give the squared norms of
    the columns as ``d_t = v + Σ_{t − b < i <= t} u_i``, up to scale.
    """

    def __init__(self, A: Array, k: int, b: int) -> None:
        n = len(A)
        self.A, self.k, self.width = A, k, min(b, n)
        self.rows = np.arange(n)[:, None] + np.arange(self.width)
        self.inside = self.rows < n
        self.places = self.rows[self.inside], np.nonzero(self.inside)[0]
        self.windows = n - self.width + 1
        self.parts = [slice(i, min(i + self.width, n)) for i in range(0, n, self.width)]

    def start(self) -> Array:
        """Return first variables x: columns of a truncated square root, then the roots of u and v.

        The square root is that of the running-total matrix; all u are equal, with Σ u = k v = 1/2.
        """
        lags = np.arange(1, self.width)
        root = np.cumprod(np.append(1.0, 1 - 1 / (2 * lags)))
        shares = np.full(self.windows, np.sqrt(0.5 / self.windows))
        return np.concatenate([np.tile(root, len(self.A)), shares, [np.sqrt(0.5 / self.k)]])

    def _unpacked(self, x: Array) -> tuple[Array, Array, Array, Array, float]:
        """Return unit columns, their lengths in x, the squared norms, and the roots in x."""
        n, h, m = len(self.A), self.width, self.windows
        columns = np.where(self.inside, x[: n * h].reshape(n, h), 0.0)
        lengths = np.linalg.norm(columns, axis=1)
        u, v = x[n * h :][:m], float(x[-1])
        before = np.concatenate([np.zeros(h), np.cumsum(np.append(u**2, np.zeros(h - 1)))])
        return columns / lengths[:, None], lengths, v**2 + before[h:] - before[:-h], u, v

    def strategy(self, x: Array) -> Array:
        """Return the strategy matrix C of the variables x, scaled to unit sensitivity."""
        directions, _, norms, u, v = self._unpacked(x)
        C = np.zeros_like(self.A)
        scales = np.sqrt(norms / (u @ u + self.k * v**2))
        C[self.places] = (directions * scales[:, None])[self.inside]
        return C

    def value(self, x: Array, power: float) -> tuple[float, Array]:
        """Return log(squared error) of the strategy of x, and its derivatives by x.

        The strategy is scaled to unit sensitivity. Variances enter by a mean with this ``power``.
        """
        directions, lengths, norms, u, v = self._unpacked(x)
        total, scales = u @ u + self.k * v**2, np.sqrt(norms)
        C = np.zeros_like(self.A)
        C[self.places] = (directions * scales[:, None])[self.inside]
        mixing, inverses = self.mixing(C)
        error, by_variance = mean_power(np.square(mixing).sum(axis=1), power, len(C))
        slope = np.zeros_like(directions)
        slope[self.inside] = self.slope(C, mixing, inverses, by_variance)[self.places]
        by_norm = (slope * directions).sum(axis=1) / (2 * scales)
        slope *= scales[:, None]
        slope -= directions * (slope * directions).sum(axis=1)[:, None]
        summed = np.concatenate([[0.0], np.cumsum(by_norm)])
        by_window = summed[self.width :] - summed[: self.windows]
        gradient = np.concatenate(
            [
                (slope / lengths[:, None]).ravel(),
                2 * u * (by_window + 1 / total),
                [2 * v * (summed[-1] + self.k / total)],
            ]
        )
        return error + float(np.log(total)), gradient

    def mixing(self, C: Array) -> tuple[Array, list[Array]]:
        """Return A C⁻¹, which maps noise to answers, and the inverses of C's diagonal blocks.

        A is the workload, and C the strategy matrix.
        """
        mixing, inverses = np.zeros_like(C), []
        later = None
        for own in reversed(self.parts):
            eye = np.eye(own.stop - own.start)
            inverse = scipy.linalg.solve_triangular(C[own, own], eye, lower=True)
            part = self.A[own.start :, own]
            if later is not None:
                part = part - mixing[own.start :, later] @ C[later, own]
            mixing[own.start :, own] = part @ inverse
            inverses.insert(0, inverse)
            later = own
        return mixing, inverses

    def slope(self, C: Array, mixing: Array, inverses: list[Array], weights: Array) -> Array:
        """Return ``−2 Bᵀ diag(weights) B C⁻ᵀ`` on the band, B = A C⁻¹.

        The squared row norms of B are the answers' variances. The result is the derivative by C of
        the weighted sum of these variances. ``mixing`` is B, and ``inverses`` are those of the
        diagonal blocks of C.
        """
        slope, before, earlier = np.zeros_like(C), None, None
        for own, inverse in zip(self.parts, inverses, strict=True):
            first = own.start
            part = weights[first:, None] * mixing[first:, own]
            if before is not None and earlier is not None:
                part -= before[first - earlier.start :] @ C[own, earlier].T
            before, earlier = part @ inverse.T, own
            after = slice(own.stop, min(own.stop + self.width, len(C)))
            slope[own, own] = -2 * mixing[first:, own].T @ before
            slope[after, own] = -2 * mixing[own.stop :, after].T @ before[own.stop - first :]
        return slope
