"""A strategy without a band: the columns of one person's ticks need not be orthogonal.

X = CᵀC then has entries between ticks of one person. A person's squared move is at most the sum of
``|X_ij|`` over pairs of that person's ticks. Successive ticks are counted exactly, as steps of a
path. Other pairs have m − 1 >= 1 ticks between them and are at least m b apart: half of each is
charged to either tick, as the largest entry of its row or column from that distance on. The path's
ticks have places 0, …, k − 1, which say how often a tick is charged. The bound is exact where X is
zero between ticks that are 2b or more apart.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from .banded_strategy import MEMORY, Band
from .descent import descended
from .repeated import mean_power

# a maximum is replaced by ``log Σ exp(β ·)/β``: β, and the largest number of steps, one stage each
_STAGES = ((300.0, 100), (3000.0, 300), (30000.0, 600))
_SHARPER = 20.0  # factor of β for the maxima of rows and columns
_DECREASE = 1e-10
_LEAST = 1e-300


def wide_strategy(C: Array, A: Array, k: int, b: int, p: float, *, signed: bool) -> Array:
    """Return C, shape (n, n), with a small error ``‖sd‖_p`` at about unit sensitivity.

    Quasi-Newton steps change all entries, to lower the error plus the bound that the module states.

    Args:
        C: where the steps begin, lower triangular.
        A: the workload, shape (n, n), lower triangular, with entries near one.
        k: ticks of one person.
        b: least distance between them.
        p: norm of the error, in [2, ∞].
        signed: whether entries of X below zero count as much as those above, as for vectors.
    """
    wide = _Wide(A, k, b, signed=signed)
    x = C[wide.band.places]
    for sharpness, steps in _STAGES:
        power = sharpness / 30 if np.isinf(p) else p / 2
        given = power, sharpness
        x = descended(
            lambda y, given=given: wide.value(y, *given),
            x,
            steps=steps,
            memory=MEMORY,
            decrease=_DECREASE,
        )
    return wide.strategy(x)


class _Wide:
    def __init__(self, A: Array, k: int, b: int, *, signed: bool) -> None:
        self.A, self.k, self.b, self.signed = A, k, b, signed
        self.band = Band(A, k, len(A))
        ticks = np.arange(len(A))
        self.gaps = ticks - ticks[:, None]
        self.apart = self.gaps >= b
        self.far = self.gaps >= 2 * b
        # whether the tick at place a has a tick of the set m places after it, and before it
        self.counts = np.arange(2, k)
        places = np.arange(k)[:, None]
        self.after = 1.0 * (self.counts <= k - 1 - places)
        self.before = 1.0 * (self.counts <= places)

    def strategy(self, x: Array) -> Array:
        """Return C."""
        C = np.zeros_like(self.A)
        C[self.band.places] = x
        return C

    def value(self, x: Array, power: float, sharpness: float) -> tuple[float, Array]:
        """Return the logarithm of the squared error plus the bound, and the derivatives.

        The sum is least where the bound, a square too, is about one.
        """
        C = self.strategy(x)
        mixing, inverses = self.band.mixing(C)
        error, by_variance = mean_power(np.square(mixing).sum(axis=1), power, len(C))
        bound, by_form = self.bound(C.T @ C, sharpness)
        slope = self.band.slope(C, mixing, inverses, by_variance) + 2 * C @ by_form
        return error + bound, slope[self.band.places]

    def bound(self, X: Array, sharpness: float) -> tuple[float, Array]:
        """Return the smoothed bound, and its derivatives by X."""
        n, k = len(X), self.k
        sizes = np.abs(X) if self.signed else np.maximum(X, 0.0)
        charged, spread = self._charged(sizes, _SHARPER * sharpness)
        gains = sharpness * (X.diagonal() + charged)
        steps = np.where(self.apart, 2 * sharpness * sizes, -np.inf)
        reached, comes_from = [gains[0]], []
        for gain in gains[1:]:
            paths = reached[-1][:, None] + steps
            top = paths.max(axis=0)
            top[np.isneginf(top)] = 0.0
            shares = np.exp(paths - top)
            total = shares.sum(axis=0)
            comes_from.append(shares / np.maximum(total, _LEAST))
            # no path reaches the first ticks at the later places
            log = np.log(total, out=np.full(n, -np.inf), where=total > 0)
            reached.append(gain + top + log)
        ends = np.stack(reached)
        top = ends.max()
        weights = np.exp(ends - top)
        bound = top + np.log(weights.sum())
        weights /= weights.sum()  # shares of paths, by the tick and place of their end
        pairs = np.zeros((n, n))
        for a in range(k - 1, 0, -1):
            visits = comes_from[a - 1] * weights[a]
            pairs += 2 * visits
            weights[a - 1] += visits.sum(axis=1)
        pairs += spread(weights)
        pairs *= np.sign(X) if self.signed else X > 0
        by_form = (pairs + pairs.T) / 2
        by_form[np.arange(n), np.arange(n)] = weights.sum(axis=0)
        return float(bound / sharpness), by_form

    def _charged(self, sizes: Array, sharpness: float) -> tuple[Array, Callable[[Array], Array]]:
        """Return the charges of ticks by place, shape (k, n).

        Also return how derivatives by these give derivatives by pairs.
        """
        if self.k == 2:
            return np.zeros((2, len(sizes))), lambda _: np.zeros_like(sizes)
        found = [
            self._largest(part, far, sharpness)
            for part, far in ((sizes, self.far), (sizes.T[::-1, ::-1], self.far.T[::-1, ::-1]))
        ]
        (later, spread), (earlier, spread_back) = found
        charged = self.after @ later + (self.before @ earlier)[:, ::-1]

        def both(weights: Array) -> Array:
            back = spread_back(self.before.T @ weights[:, ::-1])
            return spread(self.after.T @ weights) + back[::-1, ::-1].T

        return charged, both

    def _largest(
        self, sizes: Array, far: NDArray[np.bool_], sharpness: float
    ) -> tuple[Array, Callable[[Array], Array]]:
        """Return the smoothed maxima of rows from 2b, 3b, … ticks on, shape (k − 2, n)."""
        n = len(sizes)
        ticks, starts = np.arange(n), np.arange(n) + self.b * self.counts[:, None]
        inside = starts < n
        exponents = np.where(far, sharpness * sizes, -np.inf)
        totals = np.logaddexp.accumulate(exponents[:, ::-1], axis=1)[:, ::-1]
        totals = np.where(inside, totals[ticks, np.minimum(starts, n - 1)], 0.0)
        which = np.clip(self.gaps // self.b - 2, 0, len(self.counts) - 1)

        def spread(weights: Array) -> Array:
            logs = np.log(weights, out=np.full(weights.shape, -np.inf), where=weights > 0)
            below = np.logaddexp.accumulate(np.where(inside, logs - totals, -np.inf), axis=0)
            return np.exp(exponents + below[which, ticks[:, None]])

        return totals / sharpness, spread
