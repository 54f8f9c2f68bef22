"""Shapes on [0, 1] with a known mean, and the numbers that represent them.

Nothing here is random: a shape is read at the shares of :func:`even_shares`, which are spread
evenly, so that means of these numbers are nearer to the shape's than those of random draws.
"""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_HALVINGS = 60  # an interval of rates, halved so often, is below the spacing of floats
_SMALL_RATE = 1e-4  # below it, the mean by its series loses less than by its formula
_SIZES = 1e-6, 1e8  # beyond them, Beta distributions are their ends, or their mean, to 1e-4
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71)


def even_shares(n: int, column: int) -> Array:
    r"""Return n numbers in (0, 1), of which all runs are spread evenly: multiples of a square root.

    They are the fractions of :math:`k \sqrt p`, with another prime p for each of 20 columns, so
    that columns are spread evenly together, too.

    Source: Weyl (1916), "Über die Gleichverteilung von Zahlen mod. Eins".

    >>> even_shares(3, 0).round(4)
    array([0.4142, 0.8284, 0.2426])
    """
    return np.arange(1, n + 1, dtype=np.float64) * math.sqrt(_PRIMES[column % len(_PRIMES)]) % 1


def exponential(means: Array, shares: Array) -> Array:
    r"""Return the quantile at each share of the shape of most entropy that has this mean.

    Its density is proportional to :math:`e^{λt}` on [0, 1]: flat for a mean of 1/2, and the
    steeper the nearer the mean is to an end. A mean at an end gives the end itself.

    Args:
        means: in [0, 1], shape (n,).
        shares: in (0, 1), shape (n,).

    Returns:
        Numbers in [0, 1], shape (n,).

    Source: Jaynes (1957), "Information theory and statistical mechanics".

    >>> exponential(np.array([0.0, 0.5, 0.9]), np.array([0.3, 0.3, 0.3])).round(4)
    array([0.    , 0.3   , 0.8796])
    """
    near = np.minimum(means, 1 - means)  # distance to the end from which the density falls
    distinct, which = np.unique(near, return_inverse=True)
    rate = falling_rates(distinct)[which]
    upper = means > 0.5
    shares = np.where(upper, 1 - shares, shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        places = -np.log1p(shares * np.expm1(-rate)) / rate
    places = np.where(near > 0, np.where(rate > 0, places, shares), 0.0)
    return np.clip(np.where(upper, 1 - places, places), 0.0, 1.0)


def falling_rates(means: Array) -> Array:
    """Return the rates r ≥ 0 at which densities like exp(−rt) on [0, 1] have these means.

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
    """Return the quantile at each share of the Beta distribution with this mean and mean square.

    Where there is no variance, ``squares ≤ means²``, the number is the mean itself. Where there is
    the largest one, ``squares = means``, it is an end.

    Args:
        means: in [0, 1], shape (n,).
        squares: means of squares, at most ``means``, shape (n,).
        shares: in (0, 1), shape (n,).

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
