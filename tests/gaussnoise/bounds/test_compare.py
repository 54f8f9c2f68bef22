"""Baselines against optimisation by other means, listing, and hand calculation."""

import math

import networkx as nx
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

import gaussnoise as gn
from gaussnoise.bounds.comparison import _sensitivities
from gaussnoise.errors import ParameterError

RNG = np.random.default_rng(11)


def ways(comparison):
    return {way.name: way.error for way in comparison.ways}


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_sensitivities_of_tables_are_those_of_their_listed_points(neighbors):
    tables = gn.Marginals((3, 2, 1, 2), [(), (0,), (0, 1), (1, 3), (2,)], weights=[1, 2, 0.5, 3, 4])
    found, listed = (
        _sensitivities(tables, neighbors),
        _sensitivities(tables.to_finite_set(), neighbors),
    )
    for ours, theirs in zip(found, listed, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_sensitivities_of_bodies_cover_their_vertices(neighbors):
    zonotope = gn.Zonotope(RNG.normal(size=(5, 3)), center=[1.0, 0, 0])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 5)).reshape(5, -1).T
    vertices = gn.FiniteSet(signs @ zonotope.generators + [1.0, 0, 0])
    widths, euclidean, manhattan = _sensitivities(zonotope, neighbors)
    exact = _sensitivities(vertices, neighbors)
    assert widths == pytest.approx(exact[0], rel=1e-9)
    assert euclidean == pytest.approx(exact[1], rel=1e-6)
    assert exact[2] <= manhattan * (1 + 1e-12)


@pytest.mark.parametrize("p", [2, 3, 8])
def test_budgets_are_split_at_their_best(p):
    widths = np.array([1.0, 3.0, 0.2])
    box = gn.FiniteSet(np.array(np.meshgrid(*[[-w / 2, w / 2] for w in widths])).reshape(3, -1).T)
    found = ways(gn.compare(box, gn.zCDP(0.5), n=1, p=p))

    def gaussian(x):  # ρ_i = share / 2
        return np.linalg.norm(widths / np.sqrt(np.exp(x) / np.exp(x).sum()), p)

    def laplace(x):
        return math.sqrt(2) * np.linalg.norm(widths / (np.exp(x) / np.exp(x).sum()), p)

    assert found["independent Gaussians"] == pytest.approx(
        minimize(gaussian, np.zeros(3), tol=1e-12).fun, rel=1e-6
    )
    alike = math.sqrt(2) * widths.sum() * 3 ** (1 / p)
    assert found["Laplace"] == pytest.approx(
        min(alike, minimize(laplace, np.zeros(3), tol=1e-12).fun), rel=1e-6
    )
    assert found["spherical Gaussian"] == pytest.approx(np.linalg.norm(widths) * 3 ** (1 / p))


@pytest.mark.parametrize(
    "privacy", [gn.GDP(0.5), gn.GDP(2.0), gn.privacy.TV(0.1), gn.privacy.TV(0.6)]
)
def test_laplace_noise_keeps_the_budget(privacy):
    """Check its own errors of both kinds against those that the definition allows."""
    (way,) = [
        w
        for w in gn.compare(gn.FiniteSet([[0.0], [1.0]]), privacy, n=1).ways
        if w.name == "Laplace"
    ]
    scale = way.error / math.sqrt(2)
    cuts = np.linspace(-5 * scale, 1 + 5 * scale, 400)
    false_alarm = stats.laplace.sf(cuts, scale=scale)
    miss = stats.laplace.cdf(cuts, loc=1, scale=scale)
    if isinstance(privacy, gn.GDP):
        allowed = stats.norm.cdf(stats.norm.isf(false_alarm) - privacy.mu)
    else:
        allowed = 1 - privacy.alpha - false_alarm
    assert (miss >= allowed - 1e-12).all()


def test_one_table_by_hand():
    """One-hot cells, m = 8, n = 100; counts about their mean have row norms √(1 − 1/m)."""
    comparison = gn.compare(gn.FiniteSet(np.eye(8)), gn.zCDP(0.1), n=100)
    per = 1 / (math.sqrt(0.2) * 100)
    expected = {
        "optimal Gaussian": math.sqrt(14) * per,
        "Nikolov–Tang Gaussian": 14 / math.sqrt(8) * per,
        "Gaussian on counts": math.sqrt(2) * math.sqrt(7) * per,
        "spherical Gaussian": 4 * per,
        "independent Gaussians": 8 * per,
        "Laplace": math.sqrt(2) * 2 * math.sqrt(7) * per,
    }
    assert ways(comparison) == pytest.approx(expected, rel=1e-4)
    assert [way.error for way in comparison.ways] == sorted(way.error for way in comparison.ways)
    columns = comparison.columns()
    assert columns["times_least"][0] == 1
    moves = gn.FiniteSet(np.eye(8)[0] - np.eye(8)[1:])  # of data that are all one cell
    reach = gn.optimal_noise(moves, neighbors="add-remove").gamma / math.sqrt(14)
    assert columns["times_bound"][0] == pytest.approx(
        math.sqrt(math.expm1(0.2) / 0.2) / reach, rel=1e-3
    )
    assert "no unbiased mechanism" in str(comparison)


@pytest.mark.parametrize(
    ("privacy", "epsilon"),
    [
        (gn.PureDP(1.5), 1.5),
        (gn.ApproxDP(0.7, 1e-6), 0.7),
        (gn.zCDP(0.5), 1.0),
        (gn.KL(0.5), 1.0),
        (gn.GDP(0.5), math.log(0.5987063256829237 / 0.4012936743170763)),  # Φ(±1/4)
        (gn.privacy.TV(0.1), math.log(1.1 / 0.9)),
    ],
)
def test_laplace_spends_an_epsilon_that_implies_the_budget(privacy, epsilon):
    found = gn.compare(gn.FiniteSet([[0.0], [1.0]]), privacy, n=1)
    assert ways(found)["Laplace"] == pytest.approx(math.sqrt(2) / epsilon)
    assert ("optimal Gaussian" in ways(found)) != isinstance(privacy, gn.PureDP)


def test_counts_of_cells_are_a_baseline_for_workloads():
    """Laplace noise of scale 1/ε on each of 32 cells sums along prefixes; it beats the Gaussian at
    small δ.
    """
    prefix = gn.FiniteSet.from_workload(np.tril(np.ones((32, 32))))
    privacy = gn.ApproxDP(1.0, 1e-6)
    found = ways(gn.compare(prefix, privacy, neighbors="add-remove"))
    cells = math.sqrt(32 * 33 / 2)
    assert found["Laplace"] == pytest.approx(math.sqrt(2) * cells)
    assert found["Gaussian on counts"] == pytest.approx(
        cells / math.sqrt(2 * privacy.to_zcdp().rho)
    )
    assert found["Laplace"] < found["optimal Gaussian"] < found["Gaussian on counts"]
    means = ways(gn.compare(prefix, privacy, n=10))  # the last prefix counts all records: no noise
    spread = math.sqrt(sum((k + 1) * (31 - k) / 32 for k in range(32)))
    assert means["Gaussian on counts"] == pytest.approx(
        spread / math.sqrt(privacy.to_zcdp().rho) / 10
    )


def test_policies_protect_their_edges_only():
    prefix = gn.FiniteSet.from_workload(np.tril(np.ones((5, 5))))
    found = gn.compare(prefix, gn.zCDP(0.5), n=1, neighbors=nx.path_graph(5))
    assert found.bound is None
    assert ways(found)["spherical Gaussian"] == pytest.approx(
        math.sqrt(5)
    )  # an edge moves one coordinate by one
    assert "Nikolov–Tang Gaussian" not in ways(found)
    assert np.isnan(found.columns()["times_bound"]).all()


def test_pictures_show_every_way_and_the_bound():
    comparison = gn.compare(gn.LpBall(3, 2), gn.GDP(1.0), neighbors="add-remove", p=math.inf)
    axes = comparison.plot().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        way.name for way in comparison.ways
    ]
    assert axes.lines[0].get_xdata()[0] == comparison.bound.error


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((gn.zCDP(1),), "expected n for means"),
        ((gn.zCDP(1), 5, 2, "add-remove"), "none for sums"),
        ((0.5, 5), "expected a budget"),
        ((gn.LocalDP(1), 5), "expected a budget"),
        ((gn.zCDP(1), 5, 1), "p >= 2"),
    ],
)
def test_refusals(arguments, match):
    names = ("privacy", "n", "p", "neighbors")
    with pytest.raises(ParameterError, match=match):
        gn.compare(gn.LpBall(2, 2), **dict(zip(names, arguments, strict=False)))
