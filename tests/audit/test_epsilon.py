"""Lower bounds on ε from real draws: below the claim always, near it where it is tight, above it
for every mutant.
"""

import functools

import audit_kit as kit
import numpy as np
import pytest
from scipy import stats

import gaussnoise as gn

CLAIM = kit.gaussian_epsilon(kit.RHO, kit.DELTA)


# The auditor's own tools.


@pytest.mark.parametrize(("rho", "epsilon"), [(0.5, 1.0), (2.0, 3.0), (0.125, 0.5)])
def test_the_claim_is_the_exact_gaussian_curve(rho, epsilon):
    """Against the integral of the positive part of p − e^ε q."""
    mu = np.sqrt(2 * rho)
    y = np.linspace(-30, 30, 200_001)
    delta = np.maximum(stats.norm.pdf(y - mu) - np.exp(epsilon) * stats.norm.pdf(y), 0).sum() * (
        y[1] - y[0]
    )
    assert kit.gaussian_epsilon(rho, delta) == pytest.approx(epsilon, abs=1e-6)
    assert kit.gaussian_epsilon(rho, delta) <= gn.zCDP(rho).epsilon(delta)


@pytest.mark.parametrize(("p", "q", "draws"), [(0.5, 0.1, 400), (0.3, 0.02, 2000), (0.9, 0.5, 50)])
def test_bounds_hold_as_often_as_they_say(p, q, draws):
    rng, alarm, delta = np.random.default_rng(0), 0.05, 0.05
    truth = np.log((p - delta) / q)
    hits = zip(rng.binomial(draws, p, 4000), rng.binomial(draws, q, 4000), strict=True)
    wrong = sum(kit.bound_from_hits(a, b, draws, delta, alarm) > truth for a, b in hits)
    assert wrong <= stats.binom.isf(1e-9, 4000, alarm)


@pytest.mark.parametrize("mu", [1.0, 2.0])
def test_the_auditor_finds_what_a_gaussian_spends(mu):
    rng = np.random.default_rng(1)
    left, right = rng.normal(mu, 1, (100_000, 1)), rng.normal(0, 1, (100_000, 1))
    found = kit.epsilon_bound(left, right, kit.likelihood_ratio([mu]))
    truth = kit.gaussian_epsilon(mu**2 / 2, kit.DELTA)
    assert 0.75 * truth < found < truth


def test_the_auditor_accuses_nobody_of_telling_equal_data_apart():
    rng = np.random.default_rng(2)
    left, right = rng.normal(size=(2, 20_000, 3))
    assert kit.epsilon_bound(left, right, kit.likelihood_ratio([1.0, 0.0, 0.0])) <= 0


# Mechanisms as they are.


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("points", [(0.0, 1.0), (0.25, 0.5, -3.0)])
def test_sums_and_means_spend_what_they_claim(neighbors, points):
    found = kit.audit_line(kit.line_mechanism(neighbors, points=points), 32_000)
    assert 0.7 * CLAIM < found < CLAIM


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "options", [{"p": np.inf}, {"rows_per_person": 3, "weights": [1.0, 5.0]}], ids=str
)
def test_tables_spend_what_they_claim(neighbors, options):
    found = kit.audit_tables(kit.two_tables(neighbors, **options), 4000)
    assert 0.35 * CLAIM < found < CLAIM


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_released_tables_spend_no_more(neighbors):
    found = kit.audit_streams(kit.two_tables(neighbors), 1000)
    assert 0 < found < CLAIM


def whole_releases_bound(neighbors):
    """Every step of ``release`` included, from records to tables; at a budget where few draws have
    power.
    """
    plan = kit.two_tables(neighbors, rho=0.5)
    sides = kit.worst_neighbours(plan, [(0, 0), (1, 1)])
    tables = [kit.table_of(side, 2) for side in sides]
    outputs = [
        np.array([kit.flat(plan.release(table).tables, plan) for _ in range(120)])
        for table in tables
    ]
    high, low = (kit.flat(kit.tables_of(side, plan), plan) for side in sides)
    return kit.epsilon_bound(*outputs, kit.likelihood_ratio(high - low))


def test_whole_releases_spend_no_more():
    assert whole_releases_bound("replace") < kit.gaussian_epsilon(0.5, kit.DELTA)


def test_whole_releases_of_too_little_noise_are_caught(monkeypatch):
    kit.scaled_noise(0.1)(monkeypatch)
    assert whole_releases_bound("add-remove") > kit.gaussian_epsilon(0.5, kit.DELTA)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_released_sums_and_means_spend_no_more(neighbors):
    mechanism = kit.line_mechanism(neighbors, n=5)
    high, low = kit.line_neighbours(mechanism)
    left, right = (kit.released(mechanism, counts, 1000) for counts in (high, low))
    found = kit.epsilon_bound(left, right, kit.likelihood_ratio([1.0]))
    assert 0 < found < CLAIM


def test_large_counts_spend_no_more():
    assert 0 < kit.audit_big_counts(800) < CLAIM


# Mechanisms with one thing wrong.


@pytest.mark.parametrize("mutant", kit.MUTANTS, ids=lambda m: m.name)
def test_every_mutant_is_caught(monkeypatch, mutant):
    mutant.inject(monkeypatch)
    assert mutant.audit() > CLAIM


BODIES = {
    "disc": (gn.LpBall(2, 2), [0.6, 0.8], [-0.6, -0.8]),
    "box far from the origin": (
        gn.LpBall(2, np.inf) + np.array([3.0, 7.0]),
        [4.0, 8.0],
        [2.0, 6.0],
    ),
    "triangle": (gn.Polytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [1.0, 0.0], [0.0, 1.0]),
    "moments": (gn.domains.BoxMoments([-1.0], [1.0]), [1.0, 1.0, 1.0], [1.0, -1.0, 1.0]),
}


@functools.cache
def body_mechanism(name, neighbors):
    domain, _, _ = BODIES[name]
    noise = gn.optimal_noise(domain, neighbors=neighbors)
    return gn.GaussianMechanism(noise, gn.zCDP(kit.RHO), n=None if neighbors == "add-remove" else 2)


@functools.cache
def body_noise(name, neighbors):
    """Draws know no data: one mechanism's serve every pair of data sets."""
    return kit.lattice_noise(body_mechanism(name, neighbors), 32_000)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("name", BODIES)
def test_records_of_bodies_spend_what_they_claim(name, neighbors):
    _, far, opposite = BODIES[name]
    others = [far] if neighbors == "replace" else []
    low = [[*others, opposite], [far]][neighbors == "add-remove"]
    high = [*low[:-1], far] if neighbors == "replace" else [far, far]
    found = kit.audit_records(
        body_mechanism(name, neighbors), high, low, body_noise(name, neighbors)
    )
    assert 0.7 * CLAIM < found < CLAIM


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_projected_records_spend_no_more(neighbors):
    low = [[0.0, 0.0], [-30.0, 1.0]] if neighbors == "replace" else [[0.0, 0.0]]
    high = [[0.0, 0.0], [1e30, 1.0]]
    found = kit.audit_records(
        body_mechanism("disc", neighbors), high, low, body_noise("disc", neighbors), "project"
    )
    assert 0.7 * CLAIM < found < CLAIM


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_too_little_noise_on_records_is_caught(monkeypatch, neighbors):
    mechanism = body_mechanism("disc", neighbors)
    kit.scaled_noise(0.7)(monkeypatch)
    low = [[0.6, 0.8], [-0.6, -0.8]] if neighbors == "replace" else [[0.6, 0.8]]
    noise = kit.lattice_noise(mechanism, 20_000)
    assert kit.audit_records(mechanism, [[0.6, 0.8], [0.6, 0.8]], low, noise) > CLAIM
