"""The private steps: exact integers, sensitivities by brute force, and OpenDP's charges."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import one_test_of
from scipy import stats

from gaussnoise.errors import DataError, ParameterError
from gaussnoise.estimators import steps
from gaussnoise.estimators.location import Search
from gaussnoise.estimators.samples import _CHUNK_ENTRIES, by_person, clipped
from gaussnoise.privacy.laplace import (
    LaplaceQuery,
    NoisyMaximum,
)
from gaussnoise.privacy.threshold import Change, ThresholdQuery

WILD = [0.0, 1e-300, 0.5, -1.0, 1.0, 3.0, 1e155, -1e308, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_row_that_is_alone_in_its_part_is_clipped_as_among_others(order):
    """Sums along columns of one array are pairwise, and those of another one after the other."""
    rng, d = np.random.default_rng(7), 64
    n = _CHUNK_ENTRIES // d + 1
    for _ in range(8):  # without this care, every second row differs
        rows = np.array(rng.normal(size=(n, d)), order=order)
        fewer = np.array(rows[1:], order=order)
        all_rows, last = (clipped(X, np.zeros(d), 1.0) for X in (rows, fewer))
        np.testing.assert_array_equal(all_rows[1:], last)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_clipping_puts_all_numbers_into_the_ball_and_leaves_members_alone(dim):
    rows = np.array(list(itertools.product(WILD, repeat=dim)))
    for center, radius in ((0.0, 1.0), (1e10, 1e-3), (-5.0, 1e200)):
        inside = clipped(rows.copy(), np.full(dim, center), radius)
        assert np.isfinite(inside).all()
        assert (np.linalg.norm(inside, axis=1) <= 1 + 1e-12).all()
    members = np.random.default_rng(0).normal(size=(50, dim))
    members /= np.maximum(np.linalg.norm(members, axis=1, keepdims=True), 1) * 1.001
    assert np.allclose(clipped(members.copy(), np.zeros(dim), 1.0), members, rtol=1e-15)
    far = np.full((1, dim), math.inf)
    assert np.allclose(np.linalg.norm(clipped(far, np.zeros(dim), 1.0)), 1)


def test_what_becomes_of_a_record_depends_on_no_other():
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((40, 3)) < 0.2, rng.choice(WILD, (40, 3)), rng.normal(size=(40, 3)))
    together = clipped(rows.copy(), np.zeros(3), 0.7)
    alone = np.concatenate([clipped(row[None].copy(), np.zeros(3), 0.7) for row in rows])
    assert np.array_equal(together, alone)


@pytest.fixture
def quiet(monkeypatch):
    """Draw no noise, and return a list of the queries that would have drawn it."""
    asked = []

    def draw(self, count):
        asked.append(self)
        return [0] * count

    monkeypatch.setattr(LaplaceQuery, "draw", draw)
    monkeypatch.setattr(steps.IntegerQuery, "draw", draw)
    return asked


@pytest.mark.parametrize("dim", [1, 3])
def test_a_replaced_record_moves_the_integers_by_no_more_than_the_sensitivity(dim, quiet):
    rng = np.random.default_rng(1)
    rows = clipped(rng.normal(size=(6, dim)), np.zeros(dim), 1.0)
    n, epsilon = len(rows), 0.7
    base = steps.laplace_mean(rows, math.sqrt(dim), epsilon).estimate
    most = 0.0
    corners = np.array(list(itertools.product([-1, 1], repeat=dim))) / math.sqrt(dim)
    for i in range(n):
        for other in [*corners, *rng.normal(size=(20, dim)) / math.sqrt(dim)]:
            changed = rows.copy()
            changed[i] = clipped(other[None], np.zeros(dim), 1.0)
            moved = steps.laplace_mean(changed, math.sqrt(dim), epsilon).estimate
            most = max(most, np.abs(moved - base).sum())
    deviation = steps.laplace_mean(rows, math.sqrt(dim), epsilon).deviation[0]
    assert most * n <= 2 * math.sqrt(dim) * (1 + 1e-8)
    # the noise is that of the sensitivity; noise for a single radius would be half of it
    assert deviation == pytest.approx(math.sqrt(2) * 2 * math.sqrt(dim) / (n * epsilon), rel=1e-7)
    assert {query.budget for query in quiet} == {epsilon}


def test_rows_longer_than_was_said_count_as_nothing(quiet):
    assert steps.laplace_mean(np.array([[0.5], [50.0]]), 1.0, 1.0).estimate == pytest.approx(0.25)


def test_counts_of_neighbours_differ_by_the_sensitivity_of_their_noise(quiet):
    before, after = np.array([3, 5, 0]), np.array([2, 5, 1])
    rho = 0.3
    query, bits = steps.lattice_query(2, rho)
    change = ((after - before) << bits).astype(object)
    assert sum(x * x for x in change) == query.sensitivity_squared
    assert query.scale >= 2.0**28
    assert math.ldexp(query.scale, -bits) == pytest.approx(
        steps.count_deviation(rho, pure=False), rel=1e-9
    )
    assert steps.noisy_counts(before, rho).tolist() == [3, 5, 0]
    assert steps.laplace_counts(before, 1.0).tolist() == [3, 5, 0]
    assert quiet[-1].sensitivity == 2


@one_test_of("epsilon", [1e-3, 0.1, 1.0, 7.3, 100.0])
@one_test_of("sensitivity", [1, 2, 10**6 + 1, 2**40 - 1])
def test_opendp_charges_no_more_than_allowed_and_hardly_less(epsilon, sensitivity):
    for query in (LaplaceQuery(sensitivity, epsilon), NoisyMaximum(sensitivity, epsilon)):
        assert epsilon * (1 - 1e-12) <= query.epsilon <= epsilon


def test_budgets_that_need_noise_beyond_64_bits_are_refused():
    with pytest.raises(ParameterError, match="nothing but noise"):
        LaplaceQuery(2**40, 1e-9).draw(1)


def test_laplace_noise_has_its_scale():
    """With a negative control: samples of 2/3 and 3/2 of the scale are distinguished."""
    query = LaplaceQuery(2**30, 1.0)
    drawn = np.array(query.draw(3000)) / query.scale
    assert stats.kstest(drawn, stats.laplace.cdf).pvalue > 1e-9
    for wrong in (2 / 3, 3 / 2):
        assert stats.kstest(drawn * wrong, stats.laplace.cdf).pvalue < 1e-9
    assert query.standard_deviation == pytest.approx(math.sqrt(2) * query.scale, rel=1e-12)
    coarse = LaplaceQuery(1, 1.0)
    q = math.exp(-1 / coarse.scale)
    k = np.arange(-200, 201)
    masses = (1 - q) / (1 + q) * q ** np.abs(k)
    assert coarse.standard_deviation == pytest.approx(math.sqrt((masses * k * k).sum()), rel=1e-9)


def test_the_noisy_maximum_is_often_the_largest_and_falls_short_seldom():
    choice = NoisyMaximum(1, 1.0)
    assert sum(choice.choose([0, 3, 0, 0]) == 1 for _ in range(400)) in range(180, 400)
    shortfall = choice.shortfall(1000, 1e-9)
    scores = [0] * 999 + [math.ceil(shortfall)]
    assert choice.choose(scores) == 999


@pytest.mark.parametrize(("rho", "delta"), [(0.01, 1e-6), (1.0, 1e-9), (0.3, 1e-12)])
def test_thresholds_are_the_least_that_hide_a_single_record(rho, delta):
    """The continuous Gaussian's own threshold, for two keys that only one data set has, one
    each.
    """
    query = steps._unlisted(rho, delta)
    sd = query.standard_deviation
    exact = 1 + sd * stats.norm.isf(delta)
    assert sd == pytest.approx(1 / math.sqrt(rho), rel=1e-9)
    assert exact - 0.1 * sd <= query.threshold <= exact + 0.2 * sd


def test_frequent_keys_are_shown_and_rare_ones_are_not():
    query = ThresholdQuery(Change.replaced(1), 0.5, 1e-9)
    shown = query.frequent({1: 10**6, 2: 1, -(2**61): 10**6})
    assert set(shown) == {1, -(2**61)}
    assert shown[1] == pytest.approx(10**6, abs=20)


@pytest.mark.parametrize("shape", ["variance", "gaussian"])
def test_the_fullest_bin_leads_by_the_share_that_is_claimed(shape):
    """The worst offset between bins and mean, for a normal and for the extremes of Chebyshev's
    inequality.
    """
    hunt = Search(np.zeros(1), 1.0, True, 1.0, 100.0, 0.0, 0.01, shape)
    lead = {"variance": 1 / 3, "gaussian": 0.3199}[shape]
    for offset in np.linspace(0, hunt.width, 41):
        edges = np.arange(-40, 41) * hunt.width + offset
        middles = (edges[1:] + edges[:-1]) / 2
        right = abs(middles) <= hunt.error
        laws = [stats.norm.cdf]
        if shape == "variance":
            for t in (1.0, 3.0, 3.1, 9.1):  # mass 1/t² split between −t and t
                laws.append(
                    lambda x, t=t: (
                        (1 - 1 / t**2) * (x > 0) + (x > -t) / (2 * t**2) + (x > t) / (2 * t**2)
                    )
                )
        for law in laws:
            masses = np.diff([law(edge) for edge in edges])
            assert masses[right].max() - masses[~right].max() >= lead - 1e-9


def test_a_person_is_one_mean_for_all_orders_and_names():
    rows, person = np.array([1.0, 5.0, 3.0, 10.0]), ["b", "a", "b", "c"]
    assert sorted(by_person("f", rows, person).tolist()) == [2.0, 5.0, 10.0]
    assert sorted(by_person("f", rows[::-1], person[::-1]).tolist()) == [2.0, 5.0, 10.0]
    assert by_person("f", [[1.0, 3.0], [5.0]], None).tolist() == [2.0, 5.0]
    assert by_person("f", [np.ones((2, 3)), np.zeros((1, 3))], None).shape == (2, 3)
    for bad in (([1.0, 2.0], [1]), ([1.0], [1.5]), ([1.0], None), ([[1.0], []], None), ([], None)):
        with pytest.raises(DataError, match="expected"):
            by_person("f", *bad)


@pytest.mark.parametrize("radius", [100.0, 1e12, math.inf])
def test_the_parts_of_a_search_add_up_to_no_more_than_its_budget(radius):
    for amount in (0.1, 1 / 3, 0.7):
        hunt = Search(np.zeros(7), amount, False, 1.0, radius, amount * 1e-6, 0.01, "variance")
        parts = 7 if math.isinf(radius) else 7 * len(hunt.levels)
        each = hunt._part(amount, parts)
        assert (
            Fraction(each) * parts
            <= Fraction(amount)
            < Fraction(each) * parts * (1 + Fraction(1, 2**50))
        )
        assert 7 * Fraction(hunt._unbounded[1]) <= Fraction(hunt.delta)
