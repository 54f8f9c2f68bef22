"""What a promise means to who tests whether a record was there, and which promises follow."""

import math
from collections.abc import Callable

import numpy as np
import scipy

from ..errors import ParameterError
from ..numerics.rounding import SAFE_SIDE
from .definitions import GDP, KL, TV, AbstractPrivacy, ApproxDP, PureDP, zCDP

Promise = AbstractPrivacy | PureDP

# Of Rényi divergences.
_ORDERS = np.concatenate([1 + np.geomspace(1e-3, 1, 24), np.geomspace(2.1, 1e4, 48)])


def most_power(privacy: Promise, level: float) -> float:
    r"""The largest power of any test, of this level, of whether one record is this or another.

    Whoever sees the output and knows all other records rejects wrongly with probability ``level``,
    and rightly with at most this. For ``PureDP``, ``ApproxDP``, ``TV`` and ``GDP`` this is the
    definition itself, and some mechanism allows it; for ``KL`` and ``zCDP`` it follows from the
    divergences of the test's own outcome.

    Args:
        privacy: any promise about neighbours.
        level: chance of a false alarm, in [0, 1].

    Returns:
        Power in [level, 1].

    Raises:
        ParameterError: not a promise, or level out of range.

    Source: Wasserman & Zhou (2010), Theorem 2.4; Barber & Duchi (2014), Proposition 1; Dong, Roth &
    Su (2022).

    >>> from gaussnoise.privacy import most_power
    >>> [round(most_power(gn.PureDP(1), level), 3) for level in (0.01, 0.05, 0.5)]
    [0.027, 0.136, 0.816]
    >>> round(most_power(gn.GDP(1), 0.05), 3)
    0.26
    """
    if not (isinstance(level, int | float) and 0 <= level <= 1):
        raise ParameterError(f"most_power: expected a level in [0, 1], got {level!r}")
    if isinstance(privacy, PureDP | ApproxDP | TV):
        epsilon = 0.0 if isinstance(privacy, TV) else privacy.epsilon
        delta = {TV: "alpha", ApproxDP: "delta"}.get(type(privacy))
        extra = getattr(privacy, delta) if delta else 0.0
        return min(
            math.exp(epsilon) * level + extra, 1 - math.exp(-epsilon) * (1 - extra - level), 1.0
        )
    if isinstance(privacy, GDP):
        return float(scipy.special.ndtr(scipy.special.ndtri(level) + privacy.mu))
    if isinstance(privacy, KL):
        return _power_of_kl(privacy.alpha, level)
    if isinstance(privacy, zCDP):
        # of any order, and of either order of the two outcomes: the least holds
        return min(
            _power_of_kl(privacy.rho, level),
            *(_power_of_renyi(privacy.rho, a, level) for a in _ORDERS),
        )
    raise ParameterError(
        f"most_power: expected a promise like PureDP(1) or zCDP(0.1), got {type(privacy).__name__}"
    )


def most_posterior(privacy: Promise, chance: float, prior: float = 0.5) -> float:
    r"""How sure anybody can become that a record was there, except with probability ``chance``.

    Somebody who thinks so with probability ``prior``, and knows all other records, sees the output
    or any part of it. If the record is there, their posterior probability exceeds this with
    probability at most ``chance``; if it is not, with less.

    An event that has probability ``chance`` with the record has at least some probability q
    without it, as no test is better than :func:`most_power`: odds grow ``chance / q`` times at
    most. Larger events tell less, since power is concave. For ``PureDP``, ``ApproxDP``, ``TV`` and
    ``GDP`` some output reaches the bound, with ``q = Φ(Φ⁻¹(chance) − μ)`` for ``GDP``; for ``zCDP``
    the odds grow at most ``exp(ρ + 2 √(ρ log(1/chance)))`` times.

    Args:
        privacy: any promise about neighbours.
        chance: in (0, 1).
        prior: probability before, in (0, 1).

    Returns:
        A probability in [prior, 1].

    Raises:
        ParameterError: not a promise, or numbers out of range.

    Source: Dong, Roth & Su (2022), section 2; Bun & Steinke (2016), Lemma 3.5.

    >>> from gaussnoise.privacy import most_posterior
    >>> round(most_posterior(gn.PureDP(1), 0.01), 3)  # e / (1 + e)
    0.731
    >>> round(most_posterior(gn.GDP(1), 0.05), 3), round(most_posterior(gn.GDP(1), 1e-6), 3)
    (0.924, 0.996)
    """
    for name, number in (("chance", chance), ("prior", prior)):
        if not (isinstance(number, int | float) and 0 < number < 1):
            raise ParameterError(
                f"most_posterior: expected a {name} strictly between 0 and 1, got {number!r}"
            )
    if isinstance(privacy, PureDP | ApproxDP | TV):
        epsilon = 0.0 if isinstance(privacy, TV) else privacy.epsilon
        extra = {TV: "alpha", ApproxDP: "delta"}.get(type(privacy))
        delta = getattr(privacy, extra) if extra else 0.0
        without = max(
            (chance - delta) * math.exp(-epsilon), 1 - delta - math.exp(epsilon) * (1 - chance)
        )
        growth = math.log(chance / without) if without > 0 else math.inf
    elif isinstance(privacy, GDP):
        z = scipy.special.ndtri(chance) - privacy.mu
        growth = math.log(chance) - float(scipy.special.log_ndtr(z))
    elif isinstance(privacy, zCDP):
        growth = privacy.rho + 2 * math.sqrt(-privacy.rho * math.log(chance))
    elif isinstance(privacy, KL):
        growth = _growth_of_kl(privacy.alpha, chance)
    else:
        raise ParameterError(
            "most_posterior: expected a promise like PureDP(1) or zCDP(0.1), got "
            f"{type(privacy).__name__}"
        )
    return float(scipy.special.expit(scipy.special.logit(prior) + growth * SAFE_SIDE))


def total_variation(privacy: Promise) -> float:
    """The largest difference of an event's probabilities: one minus the least sum of error rates.

    Exact for ``PureDP`` (tanh(ε/2)), ``ApproxDP`` ((e^ε − 1 + 2δ)/(e^ε + 1)), ``TV`` and ``GDP``
    (2Φ(μ/2) − 1). For ``KL`` and ``zCDP`` the less of Pinsker's √(α/2) and Bretagnolle & Huber's
    √(1 − e^−α).

    Raises:
        ParameterError: not a promise.

    Source: Barber & Duchi (2014), (2) to (6). Their (3) promises a sum of errors of 2/(1+e^ε) −
    δ/(1+e^ε), too much where δ > 0: at ε = 0 the two distributions may differ by δ, so that the sum
    is 1 − δ, not 1 − δ/2. It is (2 − 2δ)/(1 + e^ε).

    >>> from gaussnoise.privacy import total_variation
    >>> round(total_variation(gn.PureDP(1)), 4), round(total_variation(gn.GDP(1)), 4)
    (0.4621, 0.3829)
    """
    if isinstance(privacy, PureDP):
        return math.tanh(privacy.epsilon / 2)
    if isinstance(privacy, ApproxDP):
        return min(
            math.tanh(privacy.epsilon / 2) + 2 * privacy.delta / (math.exp(privacy.epsilon) + 1),
            1.0,
        )
    if isinstance(privacy, TV):
        return privacy.alpha
    if isinstance(privacy, GDP):
        return float(scipy.special.ndtr(privacy.mu / 2) - scipy.special.ndtr(-privacy.mu / 2))
    if isinstance(privacy, KL | zCDP):
        divergence = privacy.alpha if isinstance(privacy, KL) else privacy.rho
        return min(math.sqrt(divergence / 2), math.sqrt(-math.expm1(-divergence)))
    raise ParameterError(
        "total_variation: expected a promise like PureDP(1) or zCDP(0.1), got "
        f"{type(privacy).__name__}"
    )


def implied(privacy: Promise, delta: float = 1e-6) -> list[Promise]:
    """The promises of other kinds that a mechanism with this promise keeps.

    They are as strong as is known.

    ``PureDP(ε)`` implies zCDP(ε²/2), KL(ε tanh(ε/2)), TV(tanh(ε/2)) and (ε, δ) for every δ; zCDP(ρ)
    implies KL(ρ), (ε(δ), δ) and total variation; GDP(μ) implies zCDP(μ²/2), and more exactly (ε, δ)
    and total variation; (ε, δ) and KL imply total variation; TV(α) is (0, α). Nothing leads back
    from total variation, as
    :func:`release_one_at_random <gaussnoise.estimators.release_one_at_random>` shows.

    Args:
        privacy: any promise about neighbours.
        delta: of the (ε, δ) that is listed.

    Raises:
        ParameterError: not a promise, or delta out of range.

    Source: Bun & Steinke (2016), Propositions 1.3 and 1.4; Dong, Roth & Su (2022), Corollary 2.13;
    Barber & Duchi (2014), section 2.

    >>> from gaussnoise.privacy import implied
    >>> implied(gn.PureDP(1))[0]
    zCDP(rho=0.5)
    """
    if not 0 < delta < 1:
        raise ParameterError(f"implied: expected 0 < delta < 1, got {delta!r}")
    variation = total_variation(privacy) * SAFE_SIDE
    promises: list[Promise] = []
    if isinstance(privacy, PureDP):
        epsilon = privacy.epsilon
        promises += [
            zCDP(epsilon * epsilon / 2),
            KL(epsilon * math.tanh(epsilon / 2)),
            ApproxDP(epsilon, delta),
        ]
    elif isinstance(privacy, GDP):
        rho = privacy.mu**2 / 2
        promises += [zCDP(rho), KL(rho), ApproxDP(_gdp_epsilon(privacy.mu, delta), delta)]
    elif isinstance(privacy, zCDP):
        promises += [KL(privacy.rho), ApproxDP(privacy.epsilon(delta), delta)]
    if variation < 1 and not isinstance(privacy, TV):
        promises.append(TV(variation))
    return promises


def _gdp_epsilon(mu: float, delta: float) -> float:
    """The ε of ``Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) = δ`` (Balle & Wang 2018, Theorem 8)."""
    from .analytic_gaussian import least_epsilon

    return least_epsilon(mu * mu / 2, delta, zCDP(mu * mu / 2).epsilon(delta))


def _power_of_kl(divergence: float, level: float) -> float:
    """The largest q with ``kl(q ‖ level) <= divergence`` and ``kl(level ‖ q) <= divergence``."""
    return min(
        _largest(lambda q: _kl(q, level), divergence, level),
        _largest(lambda q: _kl(level, q), divergence, level),
    )


def _growth_of_kl(divergence: float, chance: float) -> float:
    """The most that the logarithm of odds grows on an event of so much probability."""

    def excess(growth: float) -> float:
        other = chance * math.exp(-growth)
        there = chance * growth + (1 - chance) * (math.log1p(-chance) - math.log1p(-other))
        return min(max(there, _kl(other, chance)), 1e300) - divergence

    # kl(chance ‖ q) is at least chance log(chance / q) − log 2
    root: float = scipy.optimize.brentq(excess, 0.0, (divergence + 1) / chance, xtol=1e-14)  # pyright: ignore[reportAssignmentType]
    return root + 1e-13


def _power_of_renyi(rho: float, order: float, level: float) -> float:
    return min(
        _largest(lambda q: _renyi(order, q, level), rho * order, level),
        _largest(lambda q: _renyi(order, level, q), rho * order, level),
    )


def _largest(divergence: Callable[[float], float], bound: float, level: float) -> float:
    """The largest q in [level, 1] at which an increasing function is within the bound."""
    if level in (0.0, 1.0):  # an event without probability has none on a neighbour either
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
    """Of two Bernoulli variables."""
    with np.errstate(divide="ignore"):
        first, second = (
            order * np.log(a) + (1 - order) * np.log(b) if a > 0 else -math.inf
            for a, b in ((p, q), (1 - p, 1 - q))
        )
    return float(np.logaddexp(first, second)) / (order - 1)
