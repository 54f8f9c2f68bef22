"""What guarantees imply for tests, compared with mechanisms whose trade-off is known exactly."""

import math

import numpy as np
import pytest
from cases import pairwise
from scipy import stats

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.privacy import implied, most_posterior, most_power, total_variation

LEVELS = (1e-6, 0.01, 0.3, 0.9)


def of_randomised_response(epsilon, level):
    """The most powerful test of one bit that is told truthfully with odds e^ε.

    It is randomised at the boundary.
    """
    truth = 1 / (1 + math.exp(-epsilon))
    lie = 1 - truth
    return level / lie * truth if level <= lie else truth + (level - lie) / truth * lie


@pytest.mark.parametrize(("epsilon", "level"), pairwise([0.01, 1, 5], LEVELS))
def test_pure_privacy_allows_as_much_as_randomised_response_does(epsilon, level):
    assert most_power(gn.PureDP(epsilon), level) == pytest.approx(
        of_randomised_response(epsilon, level), rel=1e-12
    )


@pytest.mark.parametrize(
    "privacy",
    [gn.PureDP(1), gn.ApproxDP(0.5, 1e-3), gn.privacy.TV(0.2), gn.GDP(1), gn.KL(0.3), gn.zCDP(0.3)],
    ids=repr,
)
def test_power_is_concave_and_leads_the_level_by_no_more_than_the_total_variation(privacy):
    levels = np.linspace(0, 1, 101)
    powers = np.array([most_power(privacy, level) for level in levels])
    assert (powers >= levels).all()
    assert (np.diff(powers, 2) <= 1e-9).all()
    lead = (powers - levels).max()
    if isinstance(privacy, gn.KL | gn.zCDP):  # two ways to bound the same number
        assert (
            lead
            <= math.sqrt((privacy.alpha if isinstance(privacy, gn.KL) else privacy.rho) / 2) + 1e-9
        )
    else:
        assert lead == pytest.approx(total_variation(privacy), abs=2e-3)
        assert lead <= total_variation(privacy) + 1e-12


@pytest.mark.parametrize(("rho", "level"), pairwise([1e-3, 0.1, 2], LEVELS))
def test_zcdp_and_kl_leave_room_for_the_gaussian_that_keeps_them(rho, level):
    gaussian = stats.norm.cdf(stats.norm.ppf(level) + math.sqrt(2 * rho))
    assert most_power(gn.zCDP(rho), level) >= gaussian
    assert most_power(gn.KL(rho), level) >= most_power(gn.zCDP(rho), level)
    if level == 0.01 and rho == 0.1:
        assert most_power(gn.zCDP(rho), level) < 1.5 * gaussian


def test_the_sum_of_both_errors_is_as_small_as_two_atoms_allow():
    """(ε, δ) is attained by an event of probability δ on one side only.

    Barber & Duchi's (3) would state a larger sum.
    """
    epsilon, delta = 0.0, 0.1
    assert 1 - total_variation(gn.ApproxDP(1e-12, delta)) == pytest.approx(1 - delta, abs=1e-9)
    stated = (2 - delta) / (1 + math.exp(epsilon))
    assert stated > 1 - delta


@pytest.mark.parametrize(
    "privacy", [gn.PureDP(1), gn.ApproxDP(0.5, 1e-3), gn.GDP(1), gn.KL(0.3), gn.zCDP(0.3)], ids=repr
)
def test_what_is_implied_allows_no_less_power(privacy):
    found = implied(privacy, 1e-5)
    assert found
    for weaker in found:
        for level in LEVELS:
            assert most_power(weaker, level) >= most_power(privacy, level) * (1 - 1e-9)


def test_the_divergence_of_randomised_response_is_what_pure_privacy_implies():
    epsilon = 1.3
    truth = 1 / (1 + math.exp(-epsilon))
    divergence = truth * epsilon - (1 - truth) * epsilon
    assert gn.KL(divergence).alpha == pytest.approx(implied(gn.PureDP(epsilon))[1].alpha, rel=1e-12)


ANY = [
    gn.PureDP(1),
    gn.ApproxDP(0.5, 1e-3),
    gn.privacy.TV(0.2),
    gn.GDP(1),
    gn.KL(0.3),
    gn.zCDP(0.3),
]


@pytest.mark.parametrize(("privacy", "chance"), pairwise(ANY, [1e-6, 0.05, 0.7]), ids=repr)
def test_an_event_that_makes_surer_has_too_little_power(privacy, chance):
    """An event of probabilities chance and q, if it exists, turns odds of 1 into ``chance / q``."""
    sure = most_posterior(privacy, chance)
    assert 0.5 <= sure <= 1
    if sure < 1:
        q = chance * (1 - sure) / sure
        assert most_power(privacy, q * 0.99) < chance * (1 + 1e-9)
        if not isinstance(privacy, gn.zCDP):  # the others have no slack: a little less is possible
            assert most_power(privacy, q * 1.01) > chance
    assert most_posterior(privacy, chance, prior=0.2) <= sure
    assert most_posterior(privacy, min(chance * 1.5, 0.99)) <= sure * (1 + 1e-9)


def test_posteriors_of_a_gaussian_and_of_randomised_response_are_exact():
    mu, chance = 0.7, 0.01
    ratio = chance / stats.norm.sf(stats.norm.isf(chance) + mu)
    assert most_posterior(gn.GDP(mu), chance, prior=0.3) == pytest.approx(
        0.3 * ratio / (0.3 * ratio + 0.7), rel=1e-8
    )
    assert most_posterior(gn.PureDP(2), 0.01) == pytest.approx(1 / (1 + math.exp(-2)), rel=1e-8)


def test_nothing_is_implied_by_total_variation():
    assert implied(gn.privacy.TV(0.1)) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: most_power(3, 0.1),
        lambda: most_power(gn.GDP(1), 2),
        lambda: implied("x"),
        lambda: most_posterior(3, 0.1),
        lambda: most_posterior(gn.GDP(1), 0.0),
        lambda: most_posterior(gn.GDP(1), 0.1, prior=1),
    ],
)
def test_other_things_than_a_guarantee_and_a_level_are_refused(call):
    with pytest.raises(ParameterError, match="expected"):
        call()
