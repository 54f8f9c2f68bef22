"""Many points, of which only those not yet covered are solved for: the answers are the same, and
all points are covered for any choice of the points left out.
"""

import itertools
import math

import networkx as nx
import numpy as np
import pytest

import gaussnoise as gn
import gaussnoise.noise.points as points_module
import gaussnoise.noise.sensitivity as sensitivity_module
import gaussnoise.numerics.pairs as pairs_module
import gaussnoise.solvers.points.candidates as candidates_module
from gaussnoise import FiniteSet
from gaussnoise.errors import ConvergenceWarning
from gaussnoise.numerics.pairs import all_far_pairs, far_pairs
from gaussnoise.numerics.span import span
from gaussnoise.solvers.points.candidates import Differences, Far, Points

RNG = np.random.default_rng(0)
MANY = {
    "normal": RNG.normal(size=(800, 4)),
    "heavy tails": RNG.standard_t(1, size=(800, 4)),
    "integers, some of them twice": RNG.integers(-5, 9, size=(800, 3)).astype(float),
    "a curve": np.vander(np.linspace(-1, 1, 600), 5),
    "a sphere": (lambda x: x / np.linalg.norm(x, axis=1)[:, None])(RNG.normal(size=(600, 3))),
    "flat, far away": RNG.normal(size=(800, 2)) @ RNG.normal(size=(2, 4)) + 100,
    "very different sizes": RNG.normal(size=(800, 4)) * 10.0 ** -np.arange(0, 12, 3),
}
DOORS = {
    "add-remove": lambda domain, p: gn.optimal_noise(domain, p, neighbors="add-remove"),
    "gamma": gn.gamma,
}


def longest(noise, points):
    """Return the largest (x − v)ᵀ M⁺ (x − v), by a pseudoinverse."""
    moved = points - noise.center
    inverse = np.linalg.pinv(noise.covariance.factor())
    return np.square(moved @ inverse.T).sum(axis=1).max()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", MANY)
@pytest.mark.parametrize("p", [2, 3, math.inf])
def test_points_left_out_change_nothing(monkeypatch, kind, p, door):
    domain = FiniteSet(MANY[kind])
    few = DOORS[door](domain, p)
    assert "points found by their lengths" in few.method
    monkeypatch.setattr(points_module, "_MANY", math.inf)
    whole = DOORS[door](domain, p)
    assert "points found by their lengths" not in whole.method
    for noise in (few, whole):
        assert noise.status is gn.results.Status.SOLVED
        assert 0 <= noise.gap <= 1e-6
        noise.verify()
    assert few.gamma_lower <= whole.gamma
    assert whole.gamma_lower <= few.gamma
    assert len(few.certificate.weights) <= len(whole.certificate.weights)


def test_differences_along_a_policy_are_left_out_too(monkeypatch):
    domain, graph = FiniteSet(RNG.normal(size=(500, 2))), nx.cycle_graph(500)
    few = gn.optimal_noise(domain, 2, neighbors=graph)
    assert "points found by their lengths" in few.method
    few.verify()
    monkeypatch.setattr(points_module, "_MANY", math.inf)
    whole = gn.optimal_noise(domain, 2, neighbors=graph)
    assert few.gamma == pytest.approx(whole.gamma, rel=2e-6)


@pytest.mark.parametrize("door", DOORS)
def test_an_oracle_that_misses_points_costs_accuracy_and_never_coverage(monkeypatch, door):
    points = MANY["heavy tails"]
    monkeypatch.setattr(candidates_module, "_FIRST", 1)
    monkeypatch.setattr(
        Points,
        "far",
        lambda self, factor, center, beyond, known: Far(np.zeros((0, 1), dtype=np.intp), beyond),
    )
    with pytest.warns(ConvergenceWarning):
        noise = DOORS[door](FiniteSet(points), 2)
    assert noise.gap > 1e-4
    assert longest(noise, points) <= 1 + 1e-9
    noise.verify()


def test_lengths_are_those_of_all_points_in_blocks_of_any_size(monkeypatch):
    points, factor = MANY["normal"], np.tril(RNG.normal(size=(4, 4))) + 4 * np.eye(4)
    center = np.arange(4.0)
    lengths = np.square(np.linalg.solve(factor, (points - center).T)).sum(axis=0)
    for chunk in (1, 7, 2**12):
        monkeypatch.setattr(candidates_module, "_CHUNK", chunk)
        far = Points(points, None, True).far(factor, center, 1.0, None)
        np.testing.assert_array_equal(far.rows[:, 0], np.flatnonzero(lengths > 1.0))
        assert far.largest == pytest.approx(lengths.max(), rel=1e-12)


def test_of_too_many_that_stick_out_the_longest_are_taken(monkeypatch):
    monkeypatch.setattr(candidates_module, "_MOST", 5)
    points = MANY["normal"]
    far = Points(points, None, False).far(np.eye(4), np.zeros(4), 0.0, None)
    assert set(far.rows[:, 0]) == set(np.argsort(np.linalg.norm(points, axis=1))[-5:])


FEW = {
    "prefix sums": np.tril(np.ones((40, 40))).T,
    "normal": RNG.normal(size=(40, 30)),
    "integers": RNG.integers(-2, 3, size=(60, 20)).astype(float),
}


@pytest.mark.parametrize("kind", FEW)
@pytest.mark.parametrize("p", [2, math.inf])
def test_all_pairs_of_few_points_are_looked_at_in_few_rounds(monkeypatch, kind, p):
    monkeypatch.setattr(points_module, "_AT_ONCE", 0)  # so that pairs are not one problem
    rounds = []
    far = Differences.far
    monkeypatch.setattr(Differences, "far", lambda *a: rounds.append(1) or far(*a))
    domain = FiniteSet(FEW[kind])
    few = gn.optimal_noise(domain, p)
    assert 0 < len(rounds) <= 12
    monkeypatch.setattr(sensitivity_module, "_LISTED_ENTRIES", 2**40)
    whole = gn.optimal_noise(domain, p)
    for noise in (few, whole):
        assert noise.status is gn.results.Status.SOLVED
        noise.verify()
    assert few.gamma_lower <= whole.gamma
    assert whole.gamma_lower <= few.gamma


def test_all_pairs_beyond_a_threshold():
    points = RNG.integers(-3, 4, size=(30, 3)).astype(float)
    for beyond in (0.0, 20.0, 1e3):
        found = all_far_pairs(points + 10, beyond)
        squares = {
            (i, j): np.square(points[i] - points[j]).sum()
            for i, j in itertools.combinations(range(30), 2)
        }
        assert found.largest == max(squares.values())
        listed = zip(map(tuple, found.rows), found.squares, strict=True)
        assert dict(listed) == {pair: s for pair, s in squares.items() if s > beyond}


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("first", [1, 10])
@pytest.mark.parametrize("kind", MANY)
def test_the_first_points_span_all_even_where_the_longest_do_not(
    monkeypatch, kind, first, centered
):
    monkeypatch.setattr(candidates_module, "_FIRST", first)
    points = MANY[kind] - MANY[kind][0] if centered else MANY[kind]
    basis = span(points)
    candidates = Points(points, basis, centered)
    rows, spanning = candidates.first()
    some = candidates.members(spanning)
    some = some[1:] - some[0] if centered else some
    rank = points.shape[1] if basis is None else basis.shape[1]
    sizes = np.abs(points).max(axis=0)
    assert np.linalg.matrix_rank(some / np.where(sizes > 0, sizes, 1)) == rank
    assert set(spanning[:, 0]) <= set(rows[:, 0])


@pytest.mark.parametrize("p", [2, math.inf])
def test_very_many_points_look_among_the_outer_ones_first(monkeypatch, p):
    domain = FiniteSet(RNG.normal(size=(600, 4)))
    whole = gn.optimal_noise(domain, p)
    monkeypatch.setattr(candidates_module, "_MANY", 100)
    monkeypatch.setattr(candidates_module, "_OUTER", 20)
    looks = []
    far = Differences.far

    def watched(*arguments):
        looks.append(far(*arguments))
        return looks[-1]

    monkeypatch.setattr(Differences, "far", watched)
    few = gn.optimal_noise(domain, p)
    assert looks[0].of_all
    assert looks[-1].of_all
    assert not all(look.of_all for look in looks)
    for noise in (few, whole):
        assert noise.status is gn.results.Status.SOLVED
        noise.verify()
    assert few.gamma_lower <= whole.gamma
    assert whole.gamma_lower <= few.gamma


def test_what_is_found_near_the_known_ones_does_not_end_a_solve(monkeypatch):
    """All members searched are covered, and the answer does not claim that all were searched."""
    domain = FiniteSet(RNG.normal(size=(600, 4)))
    far = Differences.far

    def blind(self, factor, center, beyond, known):
        if known is None:
            return far(self, factor, center, beyond, known)
        return Far(np.zeros((0, 2), dtype=np.intp), beyond, of_all=False)

    monkeypatch.setattr(Differences, "far", blind)
    with pytest.warns(ConvergenceWarning):
        noise = gn.optimal_noise(domain, 2)
    assert noise.gap > 1e-4
    noise.verify()


@pytest.mark.parametrize("rows", [1, 20, 10**6])
def test_of_very_many_points_the_rows_that_reach_farthest_are_found(monkeypatch, rows):
    points = RNG.normal(size=(300, 3))
    monkeypatch.setattr(pairs_module, "_TILE", 64)
    whole = far_pairs(points, 30.0)
    found = far_pairs(points, 30.0, rows)
    assert found.largest == pytest.approx(whole.largest, rel=1e-14)
    squares = np.square(points[found.rows[:, 0]] - points[found.rows[:, 1]]).sum(axis=1)
    np.testing.assert_allclose(found.squares, squares, rtol=1e-12)
    assert (squares > 30).all()
    assert 0 < len(found.rows) <= len(whole.rows)
    assert {tuple(pair) for pair in found.rows} <= {tuple(pair) for pair in whole.rows}
    assert found.squares.max() == pytest.approx(whole.largest, rel=1e-12)
    nothing = far_pairs(points, 1e3, rows)
    assert len(nothing.rows) == 0
    assert nothing.largest == pytest.approx(whole.largest, rel=1e-14)
