"""A banded strategy, and one weighted total of all ticks that is measured beside it.

With a strategy matrix C of few diagonals, one person's ticks have orthogonal effects: X = CᵀC is
zero between them. If a person takes part in few of all ticks, the best X is positive, small and
smooth between the ticks of one person. A weighted total ``Σ v_t x_t`` beside C adds v vᵀ to X. By
the formula of Sherman and Morrison, it lowers the variances of the answers A x by
``(B g)²/(1 + g·g)``, where B = A C⁻¹ and Cᵀg = v.
"""

import numpy as np
import scipy

from domains.floats import Array

from .banded_strategy import Band, banded_strategy
from .descent import STAGES, mean_power, sharpened
from .total_bound import TotalBound

# stages where steps start from a strategy for fewer ticks
_LAST = ((3000.0, 60), (30000.0, 200))
_FIRST = 0.3  # one person's change of the total, at the start
_FEW = 128  # with twice as many ticks or more, steps start on every second, fourth, … tick


def total_strategy(C: Array, A: Array, k: int, b: int, p: float) -> Array:
    """Return a strategy matrix D with ``DᵀD = CᵀC + v vᵀ`` and a small error ``‖sd‖_p``.

    The result is lower triangular, shape (n, n), and its sensitivity is about one. Quasi-Newton
    steps change C and v, to lower the error and :class:`TotalBound`.

    Args:
        C: the first strategy, lower triangular with at most b diagonals.
        A: the workload, shape (n, n), lower triangular, with entries near one.
        k: largest number of ticks of one person.
        b: least distance between these ticks.
        p: norm of the error, in [2, ∞].
    """
    search, n = _Search(A, k, b), len(A)
    every = 2 ** max(int(np.log2(n / _FEW)), 0)
    few, apart = -(-n // every), max(b // every, 1)
    if every == 1 or (k - 1) * apart >= few:  # k ticks must be far enough apart, too
        v, stages = np.full(n, _FIRST / k), STAGES
    else:
        ratios, v = _of_fewer(A[::every, ::every], k, apart, p)
        ticks = (np.arange(n) - (every - 1) / 2) / every
        ratios, v = (np.interp(ticks, np.arange(few), y) for y in (ratios, v))
        C, stages = C * ratios, _LAST
    return search.strategy(sharpened(search.value, search.packed(C, v), p, stages))


def _of_fewer(A: Array, k: int, b: int, p: float) -> tuple[Array, Array]:
    """Return the ratios of column lengths with and without the best total, and this total."""
    C, search = banded_strategy(A, k, b, p), _Search(A, k, b)
    x = search.packed(C, np.full(len(A), _FIRST / k))
    beside, v = search.unpacked(sharpened(search.value, x, p))
    return np.linalg.norm(beside, axis=0) / np.linalg.norm(C, axis=0), v


class _Search:
    def __init__(self, A: Array, k: int, b: int) -> None:
        self.A, self.band, self.bound = A, Band(A, k, b), TotalBound(len(A), k, b)

    def packed(self, C: Array, v: Array) -> Array:
        """Return the variables x that stand for C and v."""
        return np.concatenate([C[self.band.places], v])

    def unpacked(self, x: Array) -> tuple[Array, Array]:
        """Return the C and v that the variables x stand for: entries of C on the band, then v."""
        C, count = np.zeros_like(self.A), len(x) - len(self.A)
        C[self.band.places] = x[:count]
        return C, x[count:]

    def strategy(self, x: Array) -> Array:
        """Return a lower triangular D with ``DᵀD = CᵀC + v vᵀ``, for the C and v of x."""
        C, v = self.unpacked(x)
        D = np.zeros_like(C)
        D[::-1, ::-1] = np.linalg.cholesky((C.T @ C + np.outer(v, v))[::-1, ::-1]).T
        return D

    def value(self, x: Array, power: float, sharpness: float) -> tuple[float, Array]:
        """Return log(squared error) plus a bound on the squared sensitivity, and derivatives."""
        C, v = self.unpacked(x)
        i, j = self.band.places
        mixing, inverses = self.band.mixing(C)
        g = scipy.linalg.solve_triangular(C, v, trans=1, lower=True)
        size = 1 + g @ g
        seen = mixing @ g
        variances = np.square(mixing).sum(axis=1) - np.square(seen) / size
        error, weights = mean_power(variances, power, len(C))
        # minus the derivative of the error by X is Y = X⁻¹A'WA X⁻¹, where W = diag(weights) and
        # X⁻¹ = C⁻¹(I − g g'/size)C⁻ᵀ; derivatives are −2 C Y by C, and −2 Y v by v
        part = mixing.T @ (weights * seen) / size
        one, other = (scipy.linalg.solve_triangular(C, y, lower=True) for y in (part, g))
        both = g @ part / size
        slope = self.band.slope(C, mixing, inverses, weights)[i, j]
        slope += 2 * (g[i] * (one[j] - both * other[j]) + part[i] * other[j])
        bound, by_norm, by_total = self.bound.bound(np.square(C).sum(axis=0), v, sharpness)
        slope += 2 * C[i, j] * by_norm[j]
        # the sum is least at a scale where the bound is about one
        return error + bound, np.concatenate([slope, by_total - 2 * (one - both * other)])
