"""A smooth bound on one person's squared change of C x, for strategies C that are not banded.

X = CᵀC may be nonzero between ticks of one person. The squared change is at most the sum of
``|X_ij|`` over pairs of the person's ticks. A path steps from each of these ticks to the next, and
adds X_ij of successive ticks exactly. Any other pair has m − 1 >= 1 ticks of the person between its
two ticks, so these are at least m b apart. Half of such a pair's share of the sum is charged to
each of its two ticks. The charge is the largest entry of the tick's row or column from the distance
m b on. The index 0, …, k − 1 of a tick on the path decides for which m the tick is charged. The
bound is exact if X is zero between ticks that are at least 2b apart.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

_SHARPER = 20.0  # maxima of rows and columns are sharper than those of paths by this factor
_LEAST = 1e-300


class PathBound:
    """A smooth bound on one person's squared change of C x, for strategy matrices C.

    The person takes part at most k times in n ticks, at least b ticks apart. If ``signed``,
    negative entries of X = CᵀC count by their size.
    """

    def __init__(self, n: int, k: int, b: int, *, signed: bool) -> None:
        self.k, self.b, self.signed = k, b, signed
        ticks = np.arange(n)
        self.gaps = ticks - ticks[:, None]
        self.apart = self.gaps >= b
        self.far = self.gaps >= 2 * b
        # whether a path with a tick of index a also has one of index a + m, and one of index a − m
        self.counts = np.arange(2, k)
        places = np.arange(k)[:, None]
        self.after = 1.0 * (self.counts <= k - 1 - places)
        self.before = 1.0 * (self.counts <= places)

    def bound(self, X: Array, sharpness: float) -> tuple[float, Array]:
        """Return the bound for X = CᵀC, with smoothed maxima, and its derivatives by X.

        Larger ``sharpness`` means less smoothing.
        """
        n, k = len(X), self.k
        sizes = np.abs(X) if self.signed else np.maximum(X, 0.0)
        charged, spread = self._charges(sizes, _SHARPER * sharpness)
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
            # early ticks have no earlier tick at distance b: no path has them at this index
            log = np.log(total, out=np.full(n, -np.inf), where=total > 0)
            reached.append(gain + top + log)
        ends = np.stack(reached)
        top = ends.max()
        weights = np.exp(ends - top)
        bound = top + np.log(weights.sum())
        weights /= weights.sum()  # shares of paths, by their last tick and its index
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

    def _charges(self, sizes: Array, sharpness: float) -> tuple[Array, Callable[[Array], Array]]:
        """Return the charge of every tick for pairs that are not successive, and its derivative."""
        # half of a pair's contribution is charged to each tick: the largest entry of X in its row
        # or column at the pair's least distance or more; axes: place of the tick in its set, tick
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
        """Return each row's smoothed maxima at distances >= 2b, >= 3b, …, and their derivative."""
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
