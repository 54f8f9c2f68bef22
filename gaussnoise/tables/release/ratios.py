"""Ratios of noisy counts and their differences, with intervals."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CANCELLED = 1e-12  # smaller differences, relative to a variance, are rounding errors
_WHOLE = 1e-9  # a ratio without noise that is so near to an integer is this integer


class Ratios(NamedTuple):
    """Estimates x/y, and intervals for the true x/y.

    Attributes:
        estimate: NaN if y is not positive.
        standard_deviation: to first order; NaN if y is not positive.
        low: lower bounds; -∞ if y may be zero.
        high: upper bounds; ∞ if y may be zero.
    """

    estimate: Array
    standard_deviation: Array
    low: Array
    high: Array


def fieller(x: Array, y: Array, covariance: Array, z: float) -> Ratios:
    """Return ratios x/y of Gaussians with known covariance, shapes (k,), (k,) and (k, 2, 2).

    The interval contains every r for which ``|x - r y|`` is at most ``z`` of its standard
    deviations. At the true ratio, ``x - r y`` is Gaussian with mean zero, so the coverage is exact.
    The set of these r is an interval if y is more than z deviations above zero (Fieller 1954).
    """
    vx, vxy, vy = covariance[:, 0, 0], covariance[:, 0, 1], covariance[:, 1, 1]
    a, b, c = y**2 - z**2 * vy, x * y - z**2 * vxy, x**2 - z**2 * vx
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.where(y > 0, x / y, np.nan)
        squared = vx - 2 * estimate * vxy + estimate**2 * vy
        # a group divided by itself has variance 0, apart from rounding errors
        deviation = np.sqrt(np.where(squared > CANCELLED * vx, squared, 0)) / y
        # a ratio of exactly 0 or 1 has no noise
        whole = (deviation == 0) & (vx > 0) & (np.abs(estimate - np.rint(estimate)) < _WHOLE)
        estimate = np.where(whole, np.rint(estimate), estimate)
        half = np.sqrt(np.maximum(b**2 - a * c, 0)) / a
        low, high = b / a - half, b / a + half
    known = (a > 0) & (y > 0)
    low, high = np.where(known, low, -np.inf), np.where(known, high, np.inf)
    deviation = np.where(np.isnan(estimate), np.nan, deviation)
    return Ratios(estimate, deviation, low, high)


def difference_of_ratios(first: Ratios, second: Ratios, covariance: Array) -> Ratios:
    """Return the differences ``first - second`` of ratios, with intervals.

    ``covariance`` is the covariance of the two estimates, to first order.

    The bounds of the differences are computed from the distances between estimates and bounds of
    both ratios (Zou & Donner 2008, "Construction of confidence limits about effect measures").
    """
    estimate = first.estimate - second.estimate
    s, t = first.standard_deviation, second.standard_deviation
    variance = s**2 + t**2 - 2 * covariance
    # NaN if either ratio is NaN
    deviation = np.sqrt(np.where(variance <= CANCELLED * (s**2 + t**2), 0, variance))
    with np.errstate(divide="ignore", invalid="ignore"):
        r = np.clip(np.where(s * t > 0, covariance / (s * t), 0), -1, 1)

        def reach(own: Array, other: Array) -> Array:
            finite = np.isfinite(own) & np.isfinite(other)
            length = np.sqrt(np.maximum(own**2 - 2 * r * own * other + other**2, 0))
            return np.where(finite, length, np.inf)

        down = reach(first.estimate - first.low, second.high - second.estimate)
        up = reach(first.high - first.estimate, second.estimate - second.low)
        return Ratios(estimate, deviation, estimate - down, estimate + up)
