"""Auditors that others wrote: Google's in jax-privacy, and Microsoft's privacy-estimates. Both
prove a lower bound on ε from scores of outputs on two neighbours, in code of their own. They must
pass the mechanisms as they are, and catch 0.7 times the noise.

Power. The score is the log likelihood ratio by the stated covariance, in standard deviations. At
the stated noise it is N(0, 1) on one side and N(√(2ρ), 1) on the other. With noise × 0.7 the
mechanism spends ρ/0.49, which is ε = 5.63 instead of 2.87 at this δ. The threshold is the best one
for this fault. Then so many draws prove more than 2.87, even where both numbers of hits are five
standard errors worse than expected.
"""

import functools
import math

import audit_kit as kit
import numpy as np
import pytest
from scipy import stats

FAULT = 0.7
DRAWS = 6000
CLAIM = kit.gaussian_epsilon(kit.RHO, kit.DELTA)


def bound_at(threshold, luck):
    """The bound that ours proves of the fault, where hits are so many standard errors worse."""
    means = (math.sqrt(2 * kit.RHO), 0.0)
    hits, alarms = (stats.norm.sf((threshold - mean) / FAULT) for mean in means)
    hits = math.floor(DRAWS * hits - luck * math.sqrt(DRAWS * hits * (1 - hits)))
    alarms = math.ceil(DRAWS * alarms + luck * math.sqrt(DRAWS * alarms * (1 - alarms)))
    return kit.bound_from_hits(hits, alarms, DRAWS, kit.DELTA)


THRESHOLD = max(np.linspace(0, 4, 401).tolist(), key=lambda threshold: bound_at(threshold, 5.0))


def by_google(high, low):
    auditing = pytest.importorskip("jax_privacy.auditing", reason="pip install jax-privacy")
    auditor = auditing.CanaryScoreAuditor(high, low)
    at = auditing.Explicit(THRESHOLD)
    return auditor.epsilon_clopper_pearson(kit.ALARM, kit.DELTA, threshold_strategy=at)


def by_microsoft(high, low):
    estimates = pytest.importorskip("privacy_estimates", reason="pip install privacy-estimates")
    hits, alarms = (int((side >= THRESHOLD).sum()) for side in (high, low))
    count = estimates.AttackResults(TP=hits, FN=DRAWS - hits, FP=alarms, TN=DRAWS - alarms)
    return estimates.compute_eps_lo(count, kit.DELTA, kit.ALARM, method="beta")


def scores(outputs, exact, covariance):
    """Scores of outputs on two neighbours, a row each; ``exact`` are the answers without noise."""
    difference = exact[0] - exact[1]
    weights = np.linalg.pinv(covariance, rcond=1e-10) @ difference
    return [(side - exact[1]) @ weights / math.sqrt(difference @ weights) for side in outputs]


def integers_of_tables(neighbors):
    plan = kit.two_tables(neighbors)
    sides = kit.worst_neighbours(plan)
    exact = [kit.exact_integers(plan, side) for side in sides]
    return scores(kit.noisy_integers(plan, sides, DRAWS), exact, np.eye(len(exact[0])))


def published_tables(neighbors):
    plan = kit.two_tables(neighbors)
    sides = kit.worst_neighbours(plan, ((0, 0), (1, 1)))
    tables = [kit.tables_of(side, plan) for side in sides]
    published = [kit.streamed(plan, side, DRAWS) for side in tables]
    return scores(published, [kit.flat(side, plan) for side in tables], plan.covariance.toarray())


def integers_of_points(neighbors):
    mechanism = kit.line_mechanism(neighbors)
    sides = kit.line_neighbours(mechanism)
    exact = [np.array(mechanism._lattice.sums(side.tolist()), dtype=np.float64) for side in sides]
    exact = [answer / mechanism._lattice.scale for answer in exact]
    return scores(kit.line_integers(mechanism, sides, DRAWS), exact, np.eye(1))


@functools.cache  # draws take longer than audits
def scored(door, neighbors, factor):
    """The scores of a door where noise is multiplied by a factor."""
    with pytest.MonkeyPatch.context() as patch:
        if factor != 1:
            kit.scaled_noise(factor)(patch)
        return door(neighbors)


everywhere = pytest.mark.parametrize(
    ("door", "neighbors"),
    [
        (integers_of_tables, "add-remove"),
        (integers_of_tables, "replace"),
        (published_tables, "replace"),
        (integers_of_points, "add-remove"),
        (integers_of_points, "replace"),
    ],
)


@pytest.fixture(params=[by_google, by_microsoft])
def auditor(request):
    """An auditor that is installed."""
    request.param(np.ones(DRAWS), np.zeros(DRAWS))
    return request.param


def test_so_many_draws_catch_the_fault():
    assert bound_at(THRESHOLD, 5.0) > CLAIM + 0.1


def test_an_auditor_proves_nothing_of_equal_sides(auditor):
    noise = np.random.default_rng(0).normal(size=(2, DRAWS))
    assert auditor(*noise) <= 0


@everywhere
def test_mechanisms_as_they_are_pass(auditor, door, neighbors):
    assert 0.4 * CLAIM < auditor(*scored(door, neighbors, 1)) < CLAIM


@everywhere
def test_too_little_noise_is_caught(auditor, door, neighbors):
    assert auditor(*scored(door, neighbors, FAULT)) > CLAIM
