"""A strategy that is not banded: the columns of one person's ticks need not be orthogonal."""

import numpy as np

from domains.floats import Array

from .banded_strategy import MEMORY, Band
from .descent import descended, mean_power
from .path_bound import PathBound

# for each stage: β, since ``log(Σ exp(β x))/β`` replaces maxima, and the largest number of steps
_STAGES = ((300.0, 100), (3000.0, 300), (30000.0, 600))
_DECREASE = 1e-10


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
