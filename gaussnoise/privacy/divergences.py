"""Bounds on tests between the outputs on two neighbours, from divergences or power functions."""

import math
from collections.abc import Callable

import numpy as np
import scipy

from ..numerics.rounding import SAFE_SIDE

# orders of Rényi divergences: each gives a valid bound, and the least bound is used
_ORDERS = np.concatenate([1 + np.geomspace(1e-3, 1, 24), np.geomspace(2.1, 1e4, 48)])
_LEAST = 1e-300  # least level that is distinguished from zero
# rounds of a search for the largest power − level, each on an eighth of the previous interval;
# number of levels per round
_LOOKS, _LEVELS = 14, 17
_LOST = 2.0**-50  # bound on the rounding of power − level


def power_of_rho(rho: float, level: float) -> float:
    """Return an upper bound on the power of a test between neighbours under ρ-zCDP.

    ``level`` is the test's probability to reject wrongly. The bound uses divergences of many
    orders, in both directions.
    """
    return min(power_of_kl(rho, level), *(_power_of_renyi(rho, a, level) for a in _ORDERS))


def chi_squared_of_epsilon(epsilon: float) -> float:
    """Return the largest χ² divergence between the outputs on neighbours under pure ε-privacy.

    This divergence is ``4 sinh²(ε/2)``.
    """
    return 4 * math.sinh(epsilon / 2) ** 2 if epsilon < 700 else math.inf


def growth_of_power(power: Callable[[float], float], chance: float) -> float:
    """Return a bound on how much an event can raise the log odds that a record is in the data.

    ``chance`` is the probability of the event with the record. ``power`` gives the largest power of
    a test at a level. A test that rejects if the event occurs has power ``chance``, and its level
    is the probability of the event without the record. So this probability is above every level at
    which the largest power is below ``chance``.
    """
    if power(_LEAST) >= chance:
        return math.inf
    low, high = math.log(_LEAST), math.log(chance)
    while high - low > 1e-12 * -low:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if power(math.exp(middle)) < chance else (low, middle)
    return math.log(chance) - low


def variation_of_power(power: Callable[[float], float]) -> float:
    """Return an upper bound on the largest ``power(level) − level``, for a concave power.

    The search stops at three equidistant levels, where the middle one has the largest difference.
    On each side of the middle, a concave function is below a straight line: that through the middle
    level and the level on the other side.
    """
    low, high = 0.0, 1.0
    leads: list[float] = []
    for _ in range(_LOOKS):
        levels = np.linspace(low, high, _LEVELS).tolist()
        leads = [power(level) - level for level in levels]
        k = min(max(leads.index(max(leads)), 1), _LEVELS - 2)
        low, high, leads = levels[k - 1], levels[k + 1], leads[k - 1 : k + 2]
    before, middle, after = leads
    return min(max(2 * middle - min(before, after), before, after) + _LOST, 1.0)


def power_of_approx(epsilon: float, delta: float, level: float) -> float:
    """Return the largest power of a test between neighbours under (ε, δ)-differential privacy.

    ``level`` is the test's probability to reject wrongly. ε or δ may be zero.
    """
    return min(math.exp(epsilon) * level + delta, 1 - math.exp(-epsilon) * (1 - delta - level), 1.0)


def growth_of_approx(epsilon: float, delta: float, chance: float) -> float:
    """Return a bound on how much an event can raise log odds, under (ε, δ)-privacy.

    The log odds are those that the record is in the data. ``chance`` is the probability of the
    event with the record.
    """
    # bounds on the neighbour's probability, from the event and from its complement
    without = max(
        (chance - delta) * math.exp(-epsilon), 1 - delta - math.exp(epsilon) * (1 - chance)
    )
    return math.log(chance / without) if without > 0 else math.inf


def variation_of_kl(divergence: float) -> float:
    """Return a bound on total variation, from a bound on the Kullback–Leibler divergence.

    (Pinsker; Bretagnolle & Huber 1979.)
    """
    return min(math.sqrt(divergence / 2), math.sqrt(-math.expm1(-divergence)))


def power_of_kl(divergence: float, level: float) -> float:
    """Return the largest power of a test, under a bound on Kullback–Leibler divergences.

    The power is the largest q for which kl(q ‖ level) and kl(level ‖ q) are at most ``divergence``.
    Here kl is the Kullback–Leibler divergence of Bernoulli variables.
    """
    return min(
        _largest(lambda q: _kl(q, level), divergence, level),
        _largest(lambda q: _kl(level, q), divergence, level),
    )


def growth_of_kl(divergence: float, chance: float) -> float:
    """Return a bound on how much an event can raise log odds, under a bound on divergences.

    ``chance`` is the probability of the event with the record. ``divergence`` is the bound on
    Kullback–Leibler divergences.
    """

    def excess(growth: float) -> float:
        other = chance * math.exp(-growth)
        there = chance * growth + (1 - chance) * (math.log1p(-chance) - math.log1p(-other))
        return min(max(there, _kl(other, chance)), 1e300) - divergence

    # an upper bound on the root: kl(chance ‖ q) is at least chance log(chance / q) − log 2
    root: float = scipy.optimize.brentq(excess, 0.0, (divergence + 1) / chance, xtol=1e-14)  # pyright: ignore[reportAssignmentType]
    return root + 1e-13


def _power_of_renyi(rho: float, order: float, level: float) -> float:
    return min(
        _largest(lambda q: _renyi(order, q, level), rho * order, level),
        _largest(lambda q: _renyi(order, level, q), rho * order, level),
    )


def _largest(divergence: Callable[[float], float], bound: float, level: float) -> float:
    """Return the largest q in [level, 1] with ``divergence(q) <= bound``."""
    if level in (0.0, 1.0):  # probability 0 or 1 is the same for neighbours
        return level
    if divergence(1.0) <= bound:
        return 1.0
    root: float = scipy.optimize.brentq(
        lambda q: min(divergence(q), 1e300) - bound, level, 1.0, xtol=1e-14
    )  # pyright: ignore[reportAssignmentType]
    return min(root * SAFE_SIDE + 1e-13, 1.0)


def _kl(p: float, q: float) -> float:
    return _term(p, q) + _term(1 - p, 1 - q)


def _term(p: float, q: float) -> float:
    if p == 0:
        return 0.0
    return math.inf if q == 0 else p * math.log(p / q)


def _renyi(order: float, p: float, q: float) -> float:
    """Return the Rényi divergence of two Bernoulli variables with probabilities p and q."""
    with np.errstate(divide="ignore"):
        first, second = (
            order * np.log(a) + (1 - order) * np.log(b) if a > 0 else -math.inf
            for a, b in ((p, q), (1 - p, 1 - q))
        )
    return float(np.logaddexp(first, second)) / (order - 1)
