"""The private steps of all estimators, on exact integers, with noise drawn by OpenDP."""

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from domains import LpBall
from domains.floats import EPS

from ..errors import ParameterError
from ..mechanisms.gaussian import GaussianMechanism
from ..noise.optimal_noise import OptimalNoise
from ..noise.solve import optimal_noise
from ..numerics.integers import MOST_SUM
from ..privacy.definitions import zCDP
from ..privacy.laplace import LaplaceQuery, NoisyMaximum
from ..privacy.lattice_bound import lattice_bits
from ..privacy.sampler import IntegerQuery
from ..privacy.threshold import Change, ThresholdQuery
from .samples import clipped, clipping_error

Array = NDArray[np.float64]

_GRID = 2.0**30  # approximate scale of Laplace noise in lattice steps
_MOST_RHO = 1e100  # for a larger ρ, integers of a lattice that is fine enough exceed floats
_COARSEST = 10  # least bits of a row: its rounding is far below the noise on one record


@dataclass(frozen=True)
class NoisyMean:
    """A noisy mean of clipped records.

    Attributes:
        estimate: shape (d,).
        deviation: standard deviation of its noise, shape (d,).
        rounding: bound on the change of the estimate by all rounding, shape (d,). Without rounding
            and noise, the estimate would be the mean of clipped records.
    """

    estimate: Array
    deviation: Array
    rounding: Array

    def carried(self, center: Array, unit: Array | float) -> "NoisyMean":
        """Return the noisy mean of ``center + unit · record``."""
        return NoisyMean(
            center + unit * self.estimate,
            unit * self.deviation,
            unit * self.rounding + 2 * EPS * (np.abs(center) + unit * np.abs(self.estimate)),
        )


def ball_mean(rows: Array, center: Array, radius: float, amount: float, *, pure: bool) -> NoisyMean:
    """Return the noisy mean of rows clipped to a ball, at a cost of ``amount``.

    The cost is a ρ, or an ε if ``pure``. Every record is mapped into the ball
    (:func:`~gaussnoise.estimators.samples.clipped`) and then to a lattice of integers,
    independently of other records. Replacing one record changes the sum by at most twice the
    radius.
    """
    n, d = rows.shape
    inside = clipped(rows, center, radius)
    if pure:
        noisy = laplace_mean(inside, math.sqrt(d), amount)
    else:
        noisy = released_mean(_unit_ball(d, amount, n), inside)
    noisy = replace(noisy, rounding=noisy.rounding + clipping_error(center, radius))
    return noisy.carried(center, radius)


def check_ball_mean(d: int, amount: float, n: int, *, pure: bool) -> None:
    """Raise ParameterError, before data are read, if no noise exists for :func:`ball_mean`.

    Raises:
        ParameterError: there is no such noise.
    """
    if pure:
        check_laplace_mean(d, math.sqrt(d), amount, n)
    else:
        _unit_ball(d, amount, n)


def released_mean(mechanism: GaussianMechanism, rows: Array) -> NoisyMean:
    """Return the mean of rows, mapped into the mechanism's domain, with its noise."""
    released = mechanism.release(rows, on_outside="project")
    # The mechanism's bound on rounding is for numbers of the set's size, but noise may be larger.
    # In the product of a matrix and independent noises, d terms are rounded; no noise exceeds 64
    # deviations.
    deviation, d = released.standard_deviation, len(released.estimate)
    decoding = 32 * (d + 3) * math.sqrt(d) * EPS * deviation
    return NoisyMean(released.estimate, deviation, mechanism.rounding_bias + decoding)


@lru_cache(maxsize=64)
def _unit_ball(d: int, rho: float, n: int) -> GaussianMechanism:
    return GaussianMechanism(_ball_noise(d), zCDP(rho), n=n)


@lru_cache(maxsize=1)
def _ball_noise(d: int) -> OptimalNoise:
    """Return the optimal noise for the mean of records in the unit ball of R^d; it is cached."""
    return optimal_noise(LpBall(d, 2))


def laplace_mean(rows: Array, length: float, epsilon: float) -> NoisyMean:
    """Return the mean of rows whose ℓ1 norm is at most ``length``, with Laplace noise of cost ε.

    Each row is rounded to integers, independently of other rows. If rounding makes a row longer
    than the limit, the row is counted as zero.
    """
    n, d = rows.shape
    query, longest, bits = _laplace_query(d, length, epsilon, n)
    integers = np.rint(np.ldexp(rows, bits)).astype(np.int64)
    integers[np.abs(integers).sum(axis=1) > longest] = 0
    noisy = [
        int(total) + noise for total, noise in zip(integers.sum(axis=0), query.draw(d), strict=True)
    ]
    estimate = np.array([math.ldexp(value, -bits) / n for value in noisy])
    return NoisyMean(
        estimate,
        np.full(d, math.ldexp(query.standard_deviation, -bits) / n),
        math.ldexp(0.5, -bits) + 2 * EPS * np.abs(estimate),
    )


def check_laplace_mean(d: int, length: float, epsilon: float, n: int) -> None:
    """Raise ParameterError, before data are read, if no noise exists for :func:`laplace_mean`.

    Raises:
        ParameterError: there is no such noise.
    """
    _laplace_query(d, length, epsilon, n)[0].scale  # noqa: B018 (refuses)


def _laplace_query(d: int, length: float, epsilon: float, n: int) -> tuple[LaplaceQuery, int, int]:
    """Return the Laplace query, the largest ℓ1 norm of integer rows, and their binary digits."""
    # the scale of the noise, 2 · length/ε, is 2^steps lattice steps
    steps = math.log2(min(_GRID, MOST_SUM / (8 * n * max(epsilon, 1.0))))
    bits = max(math.floor(steps + math.log2(epsilon) - math.log2(2 * length)), _COARSEST)
    # rounding changes a row's ℓ1 norm by at most d/2
    longest = math.floor(math.ldexp(length, bits)) + d
    return LaplaceQuery(2 * longest, epsilon), longest, bits


def laplace_deviation(length: float, epsilon: float, n: int) -> float:
    """Return √8 · length / (nε), the standard deviation of the noise of :func:`laplace_mean`."""
    return math.sqrt(8) * length / (n * epsilon)


def noisy_counts(counts: NDArray[np.int64], rho: float) -> Array:
    """Return counts with discrete Gaussian noise that costs ``rho``.

    A replaced record may change two of the counts, by one each.
    """
    query, bits = lattice_query(2, rho)
    noise = query.draw(len(counts))
    return np.array(
        [math.ldexp((int(c) << bits) + e, -bits) for c, e in zip(counts, noise, strict=True)]
    )


def laplace_counts(counts: NDArray[np.int64], epsilon: float) -> Array:
    """Return counts with discrete Laplace noise that costs ``epsilon``.

    A replaced record may change two of the counts, by one each.
    """
    noise = LaplaceQuery(2, epsilon).draw(len(counts))
    return np.array([float(int(c) + e) for c, e in zip(counts, noise, strict=True)])


def count_deviation(amount: float, *, pure: bool) -> float:
    """Return the standard deviation of a count's noise, about ``1/√ρ``, or ``√8/ε`` if pure.

    ``amount`` is the cost of all counts: ρ, or ε if ``pure``.

    Raises:
        ParameterError: there is no such noise.
    """
    if pure:
        query = LaplaceQuery(2, amount)
        query.scale  # noqa: B018 (refuses)
        return query.standard_deviation
    query, bits = lattice_query(2, amount)
    return math.ldexp(query.scale, -bits)


@lru_cache(maxsize=8)
def lattice_query(squared: int, rho: float, grid: int = 0) -> tuple[IntegerQuery, int]:
    """Return a query that adds noise of cost ρ, and its lattice's number of binary digits.

    Numbers are multiplied by 2^digits. ``squared`` bounds their squared change between neighbours
    before this multiplication. There are at least ``grid`` digits, and as many as privacy
    guarantees need.

    Raises:
        ParameterError: there is no such noise.
    """
    if not 0 < rho <= _MOST_RHO:
        raise ParameterError(
            f"noise: expected more than zero and at most {_MOST_RHO:g} as rho of every step, got "
            f"{rho:.3g}"
        )
    bits = grid + lattice_bits(2 * rho, grid)
    query = IntegerQuery(squared << (2 * bits), rho)
    query.scale  # noqa: B018 (refuses)
    return query, bits


def fullest(counts: NDArray[np.int64], amount: float, *, pure: bool) -> int:
    """Return the index of the largest noisy count; ``amount`` is the cost, ρ or (``pure``) ε."""
    if pure:
        return NoisyMaximum(1, amount).choose(counts.tolist())
    return int(np.argmax(noisy_counts(counts, amount)))


def fullest_shortfall(bins: int, amount: float, beta: float, *, pure: bool) -> float:
    """Return an upper bound on the count of the fullest bin minus the count of the chosen bin.

    :func:`fullest` chooses the bin. The bound fails with probability at most ``beta``.
    """
    if pure:
        return NoisyMaximum(1, amount).shortfall(bins, beta)
    # by a union bound, no noise exceeds √(2 log(bins/β)) deviations of 1/√ρ
    return 2 * math.sqrt(2 * math.log(max(bins, 2) / beta) / amount)


def fullest_of_any(keys: NDArray[np.int64], rho: float, delta: float) -> int | None:
    """Return the key of the data with the largest noisy count.

    Return None if no noisy count is above the threshold that (ρ, δ) requires. The set of possible
    keys is not needed.
    """
    noisy = _unlisted(rho, delta).frequent(Counter(keys.tolist()))
    return max(noisy, key=lambda key: noisy[key]) if noisy else None


def fullest_of_any_needs(n: int, rho: float, delta: float, beta: float) -> tuple[float, float]:
    """Return two bounds for :func:`fullest_of_any` with n records.

    The first is on the count of the most frequent key minus the count of the chosen key. If a count
    is at least the second bound, a key is chosen. Each bound fails with probability at most
    ``beta``.
    """
    query = _unlisted(rho, delta)
    tail = query.standard_deviation * math.sqrt(2 * math.log(max(n, 2) / beta))
    return 2 * tail, query.threshold + tail


@lru_cache(maxsize=8)
def _unlisted(rho: float, delta: float) -> ThresholdQuery:
    """Return the query that counts keys, not listed before, and shows those above a threshold."""
    # a replaced record may change two of the counts, by one each
    return ThresholdQuery(Change.replaced(1), rho, delta)
