"""Distributions on [0, 1] with a known mean ("shapes"), and numbers that represent them.

Nothing here is random. The numbers are quantiles of a shape at the evenly spread probabilities of
:func:`even_shares`. Their mean is nearer to the mean of the shape than the mean of random draws.
"""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_HALVINGS = 60  # enough to make an interval of rates shorter than the spacing of floats
_SMALL_RATE = 1e-4  # for smaller rates, the series of the mean is more accurate than the formula
_SIZES = 1e-6, 1e8  # outside, Beta distributions are near 0 and 1, or their mean, to 1e-4
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)


def even_shares(n: int, column: int) -> Array:
    r"""Return n numbers spread evenly over (0, 1); consecutive ones are spread evenly too.

    They are the fractional parts of :math:`k \sqrt p`, with a different prime p for each of 20
    columns. So several columns are jointly spread evenly too.

    Source: Weyl (1916), "Über die Gleichverteilung von Zahlen mod. Eins".

    >>> even_shares(3, 0).round(4)
    array([0.4142, 0.8284, 0.2426])
    """
    return np.arange(1, n + 1, dtype=np.float64) * math.sqrt(_PRIMES[column % len(_PRIMES)]) % 1


def exponential(means: Array, shares: Array) -> Array:
    r"""Return quantiles of the distributions of largest entropy on [0, 1] that have these means.

    For each mean, the quantile at the probability in ``shares`` is returned.

    A density is proportional to :math:`e^{λt}`: flat for a mean of 1/2, and steeper if the mean is
    nearer to 0 or 1. A mean of 0 or 1 gives this number itself.

    Args:
        means: in [0, 1], shape (n,).
        shares: the probabilities of the quantiles, in (0, 1), shape (n,).

    Returns:
        Numbers in [0, 1], shape (n,).

    Source: Jaynes (1957), "Information theory and statistical mechanics".

    >>> exponential(np.array([0.0, 0.5, 0.9]), np.array([0.3, 0.3, 0.3])).round(4)
    array([0.    , 0.3   , 0.8796])
    """
    near = np.minimum(means, 1 - means)  # distance to the bound from which the density falls
    distinct, which = np.unique(near, return_inverse=True)
    rate = falling_rates(distinct)[which]
    upper = means > 0.5
    shares = np.where(upper, 1 - shares, shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        places = -np.log1p(shares * np.expm1(-rate)) / rate
    places = np.where(near > 0, np.where(rate > 0, places, shares), 0.0)
    return np.clip(np.where(upper, 1 - places, places), 0.0, 1.0)


def falling_rates(means: Array) -> Array:
    """Return the rates r ≥ 0 of the densities proportional to exp(−rt) that have these means.

    The densities are on [0, 1].

    Args:
        means: in [0, 1/2], any shape; a mean of 0 has an infinite rate.

    >>> falling_rates(np.array([0.5, 0.1])).round(4)
    array([0.    , 9.9954])
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        low, high = np.zeros_like(means), 1 / means  # the mean at rate r is below 1/r
        for _ in range(_HALVINGS):
            r = low / 2 + high / 2
            mean = np.where(r < _SMALL_RATE, 0.5 - r / 12, 1 / r - 1 / np.expm1(r))
            low, high = np.where(mean > means, r, low), np.where(mean > means, high, r)
    return np.where(means < 0.5, high, 0.0)


def beta(means: Array, squares: Array, shares: Array) -> Array:
    """Return quantiles of the Beta distributions with these means and mean squares.

    If the variance is zero, ``squares ≤ means²``, the number is the mean itself. If it is the
    largest possible, ``squares = means``, the number is 0 or 1.

    Args:
        means: in [0, 1], shape (n,).
        squares: means of squares, at most ``means``, shape (n,).
        shares: the probabilities of the quantiles, in (0, 1), shape (n,).

    Returns:
        Numbers in [0, 1], shape (n,).

    >>> one = np.ones(2)
    >>> beta(0.4 * one, np.array([0.2, 0.16]), 0.5 * one).round(4)
    array([0.3857, 0.4   ])
    """
    from scipy.special import betaincinv

    variance = squares - means**2
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        size = np.maximum(means * (1 - means) / variance - 1, _SIZES[0])
    varies = (variance > 0) & (size < _SIZES[1])
    size, mean = size[varies], means[varies]
    places = means.copy()
    places[varies] = betaincinv(mean * size, (1 - mean) * size, shares[varies])
    return places
