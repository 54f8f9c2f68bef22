"""Indicators of published tables, as functions for :meth:`TableRelease.function`.

Each function takes arrays of released numbers and returns one number:
``release.function(concentration, "town")``. If possible, a function uses only arithmetic, so that
intervals are computed from the exact distribution of the noise.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ParameterError

__all__ = [
    "concentration",
    "entropy",
    "life_expectancy",
    "odds_ratio",
    "price_index",
    "standardized_rate",
]


def concentration(counts: NDArray[Any]) -> Any:
    """Return the sum of squared shares of all cells (Herfindahl–Hirschman index).

    The sum is 1 if one cell has the whole count, and 1/k if k cells have equal counts and the
    others 0.

    Args:
        counts: counts or sums, any shape.

    >>> float(concentration(np.array([50.0, 50.0])))
    0.5
    """
    return (counts**2).sum() / counts.sum() ** 2


def entropy(counts: NDArray[Any]) -> Any:
    """Return Shannon's entropy of the shares of all cells, in nats; NaN if a share is negative.

    Args:
        counts: counts or sums, any shape.

    >>> float(entropy(np.array([50.0, 50.0])).round(4))
    0.6931
    """
    shares = counts / counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        return -(shares * np.log(shares)).sum()


def odds_ratio(counts: NDArray[Any]) -> Any:
    """Return ``n₀₀ n₁₁ / (n₀₁ n₁₀)`` of a table of two by two cells.

    Raises:
        ParameterError: a table of another shape.

    >>> float(odds_ratio(np.array([[10.0, 20.0], [30.0, 40.0]])).round(4))
    0.6667
    """
    if counts.shape != (2, 2):
        raise ParameterError(
            f"odds_ratio: expected a table of shape (2, 2), got {counts.shape}; hint: "
            "lambda n: odds_ratio(n[:2, :2])"
        )
    return counts[0, 0] * counts[1, 1] / (counts[0, 1] * counts[1, 0])


def standardized_rate(events: NDArray[Any], population: NDArray[Any], weights: ArrayLike) -> Any:
    """Return the directly standardised rate ``Σ_x w_x events_x / population_x / Σ_x w_x``.

    The sums are over groups x of the population, and w are the weights.

    Args:
        events: counts of events in each group, shape (k,).
        population: counts of all persons in each group, shape (k,).
        weights: public counts of the groups in the standard population, shape (k,).

    >>> float(standardized_rate(np.array([1.0, 8.0]), np.array([100.0, 200.0]), [3, 1]).round(4))
    0.0175
    """
    own = np.asarray(weights, dtype=np.float64)
    return (own / own.sum() * (events / population)).sum()


def life_expectancy(
    deaths: NDArray[Any],
    exposure: NDArray[Any],
    widths: Sequence[float],
    lived: Sequence[float] | None = None,
) -> Any:
    """Return the life expectancy at the first age of the first age group, in years.

    The computation uses an abridged life table (Chiang 1984). Let an age group have n years and the
    death rate m, and let a be its number in ``lived``. Of the persons who reach this age group, the
    share ``n m / (1 + (n − a) m)`` dies in it.

    Args:
        deaths: deaths in each age group, shape (k,).
        exposure: years lived by all persons in each age group, shape (k,); for the deaths of one
            year, the population.
        widths: the lengths in years of all groups except the last, which is open: k − 1 numbers.
        lived: a for each group but the last: the mean years in the group of persons who die in it,
            k − 1 numbers; by default, half the width.

    Raises:
        ParameterError: the arrays do not have these lengths.

    >>> deaths, exposure = np.array([10.0, 20.0, 100.0]), np.array([5000.0, 4000.0, 1000.0])
    >>> float(life_expectancy(deaths, exposure, [30, 30]).round(2))
    63.51
    """
    n = np.asarray(widths, dtype=np.float64)
    a = n / 2 if lived is None else np.asarray(lived, dtype=np.float64)
    if not deaths.shape == exposure.shape == (len(n) + 1,) == (len(a) + 1,):
        raise ParameterError(
            "life_expectancy: expected deaths and exposure of k age groups and k − 1 widths, the "
            f"last group is open, got {deaths.shape}, {exposure.shape} and {len(n)} widths"
        )
    rates = deaths / exposure
    alive, years = 1.0, 0.0
    for m, width, part in zip(rates[:-1], n, a, strict=True):
        dying = alive * width * m / (1 + (width - part) * m)
        years = years + width * (alive - dying) + part * dying
        alive = alive - dying
    return years + alive / rates[-1]


def price_index(before: NDArray[Any], after: NDArray[Any], quantities: ArrayLike) -> Any:
    """Return Laspeyres' index ``Σ q·after / Σ q·before``, for public quantities q.

    Args:
        before: prices, or means, in the first period, shape (k,).
        after: prices, or means, in the second period, shape (k,).
        quantities: weights, shape (k,).

    >>> float(price_index(np.array([1.0, 2.0]), np.array([2.0, 2.0]), [1, 1]).round(4))
    1.3333
    """
    own = np.asarray(quantities, dtype=np.float64)
    return (own * after).sum() / (own * before).sum()
