"""Bounds on tests for one record under a privacy guarantee, and the guarantees it implies."""

import scipy

from ..errors import NotAvailableError, ParameterError
from ..numerics.rounding import SAFE_SIDE
from .definitions import TV
from .divergences import growth_of_power, variation_of_power
from .guarantee import AbstractPrivacy, check_privacy

_DELTA = 1e-6  # δ of the (ε, δ) from which other bounds are derived


def most_power(privacy: AbstractPrivacy, level: float) -> float:
    r"""Return the largest power of a test that decides which of two records is in the data.

    The tester sees the output and knows all other records. If the test rejects wrongly with
    probability ``level``, it rejects rightly with at most this power. For ``PureDP``, ``ApproxDP``,
    ``TV`` and ``GDP``, the returned power is the definition itself, and some mechanism attains it.
    For ``KL`` and ``zCDP``, it follows from bounds on the divergences of the test's outcome.

    Args:
        privacy: any privacy guarantee about neighbouring data sets.
        level: false positive rate, in [0, 1].

    Returns:
        Power in [level, 1].

    Raises:
        ParameterError: not a privacy guarantee, or level out of range.
        NotAvailableError: a guarantee of your own gives no power and implies no other guarantee.

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
    own = check_privacy("most_power", privacy).power(level)
    if own is not None:
        return own
    return min(most_power(weaker, level) for weaker in _implied("most_power", privacy))


def most_posterior(privacy: AbstractPrivacy, chance: float, *, prior: float = 0.5) -> float:
    r"""Return a posterior probability that is exceeded with probability at most ``chance``.

    Suppose that a person knows all other records, believes with probability ``prior`` that the
    record is in the data, and sees the output or any part of it. If the record is in the data, the
    posterior probability exceeds the returned bound with probability at most ``chance``. If the
    record is not in the data, this happens with a smaller probability.

    Let an event have probability ``chance`` with the record, and q without it. :func:`most_power`
    gives a lower bound on q, so the odds grow by a factor of at most ``chance / q``. More probable
    events raise the odds less, since power is concave. For ``PureDP``, ``ApproxDP``, ``TV`` and
    ``GDP``, some output attains the bound; for ``GDP``, ``q = Φ(Φ⁻¹(chance) − μ)``. For ``zCDP``,
    the odds grow by a factor of at most ``exp(ρ + 2 √(ρ log(1/chance)))``.

    Args:
        privacy: any privacy guarantee about neighbouring data sets.
        chance: in (0, 1).
        prior: the probability before the output is seen, in (0, 1).

    Returns:
        A probability in [prior, 1].

    Raises:
        ParameterError: not a privacy guarantee, or numbers out of range.
        NotAvailableError: as :func:`most_power`.

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
    growth = _growth(check_privacy("most_posterior", privacy), chance)
    return float(scipy.special.expit(scipy.special.logit(prior) + growth * SAFE_SIDE))


def total_variation(privacy: AbstractPrivacy) -> float:
    """Return the largest difference between an event's probabilities on two neighbouring data sets.

    The largest difference is one minus the least sum of the two error rates of a test. The result
    is exact for ``PureDP`` (tanh(ε/2)), ``ApproxDP`` ((e^ε − 1 + 2δ)/(e^ε + 1)), ``TV`` and ``GDP``
    (2Φ(μ/2) − 1). For ``KL`` and ``zCDP`` it is the smaller of Pinsker's √(α/2) and Bretagnolle &
    Huber's √(1 − e^−α).

    Raises:
        ParameterError: not a privacy guarantee.
        NotAvailableError: as :func:`most_power`.

    Source: Barber & Duchi (2014), (2) to (6). Their (3) states a sum of errors of 2/(1+e^ε) −
    δ/(1+e^ε), which is too large if δ > 0: at ε = 0 the two distributions may differ by δ, so the
    sum is 1 − δ, not 1 − δ/2. The correct sum is (2 − 2δ)/(1 + e^ε).

    >>> from gaussnoise.privacy import total_variation
    >>> round(total_variation(gn.PureDP(1)), 4), round(total_variation(gn.GDP(1)), 4)
    (0.4621, 0.3829)
    """
    return _variation("total_variation", privacy)


def implied(privacy: AbstractPrivacy, delta: float = 1e-6) -> list[AbstractPrivacy]:
    """Return the guarantees of other kinds that every mechanism with this guarantee also has.

    The returned guarantees are the strongest ones known.

    ``PureDP(ε)`` implies zCDP(ε²/2), KL(ε tanh(ε/2)), TV(tanh(ε/2)) and (ε, δ) for every δ. zCDP(ρ)
    implies KL(ρ), (ε(δ), δ) and total variation privacy. GDP(μ) implies zCDP(μ²/2), (ε, δ) and
    total variation privacy; the last two are better than those that follow from zCDP(μ²/2). (ε, δ)
    and KL imply total variation privacy; TV(α) is (0, α). Total variation privacy implies none of
    the others, as :func:`release_one_at_random <gaussnoise.estimators.release_one_at_random>`
    shows.

    Args:
        privacy: any privacy guarantee about neighbouring data sets.
        delta: the δ of the (ε, δ) that is listed.

    Raises:
        ParameterError: not a privacy guarantee, or delta out of range.
        NotAvailableError: as :func:`most_power`.

    Source: Bun & Steinke (2016), Propositions 1.3 and 1.4; Dong, Roth & Su (2022), Corollary 2.13;
    Barber & Duchi (2014), section 2.

    >>> from gaussnoise.privacy import implied
    >>> implied(gn.PureDP(1))[0]
    zCDP(rho=0.5)
    """
    if not 0 < delta < 1:
        raise ParameterError(f"implied: expected 0 < delta < 1, got {delta!r}")
    variation = _variation("implied", privacy) * SAFE_SIDE
    found = privacy.implies(delta)
    if variation < 1:
        found = [*found, TV(variation)]
    return [weaker for weaker in found if type(weaker) is not type(privacy)]


def _variation(function: str, privacy: object) -> float:
    privacy = check_privacy(function, privacy)
    own = privacy.variation()
    if own is not None:
        return own
    if privacy.power(0.5) is not None:
        return variation_of_power(lambda level: most_power(privacy, level))
    return min(map(total_variation, _implied(function, privacy)))


def _growth(privacy: AbstractPrivacy, chance: float) -> float:
    """Return a bound on how much an event of probability ``chance`` can raise the log odds."""
    own = privacy.growth(chance)
    if own is not None:
        return own
    if privacy.power(chance) is not None:
        return growth_of_power(lambda level: most_power(privacy, level), chance)
    return min(_growth(weaker, chance) for weaker in _implied("most_posterior", privacy))


def _implied(function: str, privacy: AbstractPrivacy) -> list[AbstractPrivacy]:
    """Return the guarantees that ``privacy`` implies; raise NotAvailableError if none is known."""
    found = privacy.implies(_DELTA)
    if not found:
        raise NotAvailableError(
            f"{function}: no bound is known for mechanisms with {privacy!r:.100}; hint: "
            "override implies or power in its class"
        )
    return found
