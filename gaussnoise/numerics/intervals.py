"""Gaussian confidence intervals, one rule for every release."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..errors import ParameterError

Array = NDArray[np.float64]


class ConfidenceInterval(NamedTuple):
    """Ends of intervals, arrays shaped like the estimate."""

    low: Array
    high: Array


def quantile(level: float, count: int = 1) -> float:
    """Half-width in standard deviations at confidence ``level``.

    ``count`` > 1: simultaneous over that many correlated Gaussians, by Šidák's inequality (1967),
    hence conservative.
    """
    if not 0 < level < 1:
        raise ParameterError(
            f"confidence_interval: expected 0 < level < 1, got {level!r}; hint: 0.95"
        )
    return float(-ndtri(-np.expm1(np.log(level) / max(count, 1)) / 2))


def confidence_interval(
    estimate: Array, sd: Array, level: float, simultaneous: bool
) -> ConfidenceInterval:
    """``estimate ∓ quantile · sd``."""
    half = quantile(level, np.size(estimate) if simultaneous else 1) * sd
    return ConfidenceInterval(estimate - half, estimate + half)


class Contrast(NamedTuple):
    """A released linear combination with its exact standard deviation."""

    estimate: float
    standard_deviation: float

    def confidence_interval(self, level: float = 0.95) -> ConfidenceInterval:
        """Interval that holds the true value with probability ``level``."""
        return confidence_interval(
            np.asarray(self.estimate), np.asarray(self.standard_deviation), level, False
        )


class Contrasts(NamedTuple):
    """Released linear combinations and their noise's exact covariance, shapes (k,), (k, k).

    >>> pair = Contrasts(np.array([10.0, 40.0]), np.array([[4.0, 1.0], [1.0, 9.0]]))
    >>> pair.standard_deviation.tolist()
    [2.0, 3.0]
    >>> low, high = pair.confidence_interval(0.95, simultaneous=True)
    >>> high.round(2).tolist()
    [14.47, 46.71]
    """

    estimate: Array
    covariance: Array

    @property
    def standard_deviation(self) -> Array:
        """Of every combination, shape (k,)."""
        return np.sqrt(np.diagonal(self.covariance))

    def confidence_interval(
        self, level: float = 0.95, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Intervals that hold the true values with probability ``level``, each alone or all
        together (Šidák 1967).

        Whatever the correlations, simultaneous intervals hold together at least that often.

        Returns:
            ``(low, high)``, arrays of shape (k,).

        Raises:
            ParameterError: level outside (0, 1).
        """
        return confidence_interval(self.estimate, self.standard_deviation, level, simultaneous)
