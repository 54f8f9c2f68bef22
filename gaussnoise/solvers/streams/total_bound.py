"""A smooth bound on one person's squared change, for a banded strategy and a total beside it.

The strategy C is banded, so one person's ticks change orthogonal columns, of squared norms d_t. A
weighted total ``Σ v_t x_t`` is measured too. Let π be the ticks of a person, and
``s = Σ_{t∈π} |v_t|``. The squared changes of both measurements add up to at most
``Σ_{t∈π} d_t + s²``. Between α and β, the square s² is at most its chord ``(α + β) s − α β``, and
this chord is linear in π. For a cell [α, β] of a grid, the bound is the largest sum of
``d_t + (α + β) |v_t|`` over sets π, minus α β. The final bound is the largest one of all cells. No
sets are listed.
"""

import numpy as np

from domains.floats import Array

# cells of the interval [0, 1], in which s lies where the bound is one: chords add 1.1e-4
_CELLS = 48


class TotalBound:
    """A smooth bound on the squared change that one person makes to both C x and ``Σ v_t x_t``.

    C is a banded strategy matrix, and the squares of the two changes are added. The person takes
    part at most k times in n ticks, at least b ticks apart.
    """

    def __init__(self, n: int, k: int, b: int) -> None:
        self.n, self.k, self.b = n, k, b
        ends = np.arange(_CELLS + 1)[:, None] / _CELLS
        self.sums, self.products = ends[1:] + ends[:-1], ends[1:] * ends[:-1]

    def bound(self, d: Array, v: Array, sharpness: float) -> tuple[float, Array, Array]:
        """Return the bound, with smoothed maxima, and its derivatives by d and by v.

        Larger ``sharpness`` means less smoothing.
        """
        last = self.n - self.b
        gains = sharpness * (d + self.sums * np.abs(v))
        # logarithms of sums over the sets that end at a tick, by cell and tick; and over the sets
        # that end at this tick or before
        reached, before = [gains], []
        for _ in range(self.k - 1):
            before.append(np.logaddexp.accumulate(reached[-1], axis=1)[:, :last])
            now = np.full_like(gains, -np.inf)
            now[:, self.b :] = gains[:, self.b :] + before[-1]
            reached.append(now)
        ends = np.stack(reached) - sharpness * self.products
        top = ends.max()
        weights = np.exp(ends - top)
        total = weights.sum()
        weights /= total  # shares of sets, by their size, cell and last tick
        visits, shares = weights[-1].copy(), weights[-1]
        for own, sums, ending in zip(weights[-2::-1], before[::-1], reached[-2::-1], strict=True):
            later, used = np.full_like(sums, -np.inf), shares[:, self.b :] > 0
            later[used] = np.log(shares[:, self.b :][used]) - sums[used]
            later = np.logaddexp.accumulate(later[:, ::-1], axis=1)[:, ::-1]
            shares = own
            shares[:, :last] += np.exp(ending[:, :last] + later)
            visits += shares
        by_total = np.sign(v) * (self.sums * visits).sum(axis=0)
        return float((top + np.log(total)) / sharpness), visits.sum(axis=0), by_total
