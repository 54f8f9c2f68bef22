"""A strategy that is not banded: the columns of one person's ticks need not be orthogonal."""

import numpy as np

from domains.floats import Array

from .banded_strategy import Band
from .descent import mean_power, sharpened
from .path_bound import PathBound


def wide_strategy(C: Array, A: Array, k: int, b: int, p: float, *, signed: bool) -> Array:
    """Return a strategy matrix C that is not banded, with a small error ``‖sd‖_p``.

    C has shape (n, n), and its sensitivity is about one. Quasi-Newton steps change all entries, to
    lower the error and the bound of :class:`PathBound` on the squared sensitivity.

    Args:
        C: the first strategy, lower triangular.
        A: the workload, shape (n, n), lower triangular, with entries near one.
        k: largest number of ticks of one person.
        b: least distance between these ticks.
        p: norm of the error, in [2, ∞].
        signed: whether negative entries of CᵀC count by their size, as for vectors.
    """
    wide = _Wide(A, k, b, signed=signed)
    return wide.strategy(sharpened(wide.value, C[wide.band.places], p))


class _Wide:
    def __init__(self, A: Array, k: int, b: int, *, signed: bool) -> None:
        self.A, self.band = A, Band(A, k, len(A))
        self.path = PathBound(len(A), k, b, signed=signed)

    def strategy(self, x: Array) -> Array:
        """Return the strategy matrix C whose entries on and below the diagonal are x."""
        C = np.zeros_like(self.A)
        C[self.band.places] = x
        return C

    def value(self, x: Array, power: float, sharpness: float) -> tuple[float, Array]:
        """Return log(squared error) plus a bound on the squared sensitivity, and derivatives."""
        C = self.strategy(x)
        mixing, inverses = self.band.mixing(C)
        error, by_variance = mean_power(np.square(mixing).sum(axis=1), power, len(C))
        bound, by_form = self.path.bound(C.T @ C, sharpness)
        slope = self.band.slope(C, mixing, inverses, by_variance) + 2 * C @ by_form
        # the sum is least at a scale where the bound is about one
        return error + bound, slope[self.band.places]
