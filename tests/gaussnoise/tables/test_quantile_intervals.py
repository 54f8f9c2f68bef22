"""Tests of intervals of quantiles: they cover at their level for any distribution of rows."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.tables.release.quantiles import QuantileTable, Support

EDGES = list(range(0, 41, 2))
REPEATS = 200
PROBABILITIES = [0.5, 0.95]
LEAST = stats.binom(REPEATS, 0.9).ppf(1e-3)
EVEN = np.arange(4000) % 40 + 0.5
HEAPS = np.repeat([3.5, 36.5], [2000, 2000])  # no rows between the two values
SKEWED = np.minimum(np.random.default_rng(5).exponential(4, 4000), 39.9)


def coverage(values, shrink=1.0, neighbors="add-remove"):
    """Return how often an interval holds the quantile of the rows, for each probability."""
    schema = gn.Schema([gn.Attribute("x", edges=EDGES)])
    plan = gn.plan(schema, [{"x": "prefix"}], gn.zCDP(5e-5), neighbors=neighbors)
    table, rng = pa.table({"x": values}), np.random.default_rng(17)
    truth = np.quantile(values, PROBABILITIES, method="inverted_cdf")
    inside = np.zeros(2)
    for _ in range(REPEATS):
        found = plan.simulate(table, rng).quantiles("x", PROBABILITIES)
        low, high = replace(found, deviations=shrink * found.deviations).confidence_interval(0.9)
        inside += (low <= truth) & (truth <= high)
    return inside


@pytest.mark.parametrize("values", [EVEN, HEAPS, SKEWED], ids=["even", "heaps", "skewed"])
def test_intervals_cover_the_quantile_of_the_counted_rows(values):
    assert (coverage(values) >= LEAST).all()


def test_intervals_cover_where_the_number_of_rows_is_public():
    assert (coverage(EVEN, neighbors="replace") >= LEAST).all()


def test_intervals_from_deviations_that_are_too_small_do_not_cover():
    assert (coverage(EVEN, shrink=0.25) < LEAST).any()


def test_differences_have_the_variance_that_the_covariance_matrix_gives():
    schema = gn.Schema(
        [gn.Attribute("x", edges=[0, 1, 2, 4, 8], other="?"), gn.Attribute("s", ["F", "M"])]
    )
    rows = pa.table({"x": [0.5, 1.5, 3, 6, None] * 40, "s": list("FFFMM") * 40})
    release = gn.plan(schema, [{"x": "prefix", "s": "identity"}], gn.zCDP(0.1)).release(rows)
    found = release.quantiles("x", [0.25, 0.5], given="s")
    for group in range(2):
        for end in range(3):
            for k, p in enumerate([0.25, 0.5]):
                weights = np.zeros((5, 2))
                weights[: end + 1, group] = 1
                weights[:4, group] -= p
                exact = release.contrast({("x", "s"): weights})
                place = group, end, k
                assert found.differences[place] == pytest.approx(exact.estimate)
                assert found.deviations[place] == pytest.approx(exact.standard_deviation)


def table_of(differences, deviations, estimate):
    bins = Support(np.array([-np.inf, 0.0, 10.0]), np.array([0.0, 10.0, np.inf]), True)
    names = ("x quantile",), (("0.5",),)
    arrays = [np.array(x, dtype=float) for x in (estimate, differences, deviations)]
    return QuantileTable(*names, arrays[0], "test", True, "pyarrow", bins, *arrays[1:])


def test_the_interval_runs_over_the_bins_that_no_test_rejects():
    clear = table_of([[-30.0], [30.0]], [[1.0], [1.0]], [5.0])
    assert (clear.low, clear.high) == (0.0, 10.0)
    below = table_of([[-30.0], [1.0]], [[1.0], [1.0]], [5.0])  # the last bin cannot be ruled out
    assert (below.low, below.high) == (0.0, np.inf)
    low, high = below.confidence_interval(0.5)
    assert (low, high) == (0.0, 10.0)
    nothing = table_of([[0.0], [0.0]], [[1.0], [1.0]], [5.0])
    assert (nothing.low, nothing.high) == (-np.inf, np.inf)
    outside = table_of([[30.0], [30.0]], [[1.0], [1.0]], [5.0])  # it holds the estimate anyway
    assert (outside.low, outside.high) == (-np.inf, 5.0)


def test_simultaneous_intervals_are_wider_and_levels_are_checked():
    table = table_of([[-2.1], [2.1]], [[1.0], [1.0]], [5.0])
    assert table.confidence_interval(0.95) == (0.0, 10.0)
    two = replace(
        table,
        labels=(("0.5", "0.6"),),
        estimate=np.array([5.0, 5.0]),
        differences=np.repeat(table.differences, 2, -1),
        deviations=np.repeat(table.deviations, 2, -1),
    )
    low, high = two.confidence_interval(0.95, simultaneous=True)
    assert (low.tolist(), high.tolist()) == ([-np.inf] * 2, [np.inf] * 2)
    with pytest.raises(ParameterError, match="0 < level < 1"):
        table.confidence_interval(95)


def test_with_one_bin_the_interval_is_that_bin():
    schema = gn.Schema([gn.Attribute("x", edges=[0, 10])])
    release = gn.plan(schema, [{"x": "identity"}], gn.zCDP(1)).release(pa.table({"x": [1.0] * 900}))
    found = release.quantiles("x", [0.5])
    assert (found.low.tolist(), found.high.tolist()) == ([0], [10])
    assert "at least" in str(found)


def test_groups_by_the_attribute_itself_are_refused():
    schema = gn.Schema([gn.Attribute("x", edges=[0, 10])])
    release = gn.plan(schema, 1, gn.zCDP(1)).release(pa.table({"x": [1.0]}))
    with pytest.raises(ParameterError, match="other attributes"):
        release.quantiles("x", [0.5], given="x")


def test_a_group_that_may_be_empty_has_no_quantile():
    """Noise alone would make one up, and with it a median for a ward without patients."""
    schema = gn.Schema([gn.Attribute("ward", ["a", "b"]), gn.Attribute("age", edges=[0, 40, 80])])
    people = pa.table({"ward": ["a"] * 4000, "age": [20, 60] * 2000})
    plan = gn.plan(schema, 2, gn.zCDP(0.1))
    found = [plan.release(people).quantiles("age", [0.5], given="ward") for _ in range(40)]
    known = np.array([own.estimate[:, 0] for own in found])
    assert ((20 < known[:, 0]) & (known[:, 0] < 60)).all()
    # the count of the empty ward is above zero in half of them, and clear of it in 2.5 %
    missing = np.flatnonzero(np.isnan(known[:, 1]))
    assert len(missing) > 30  # of 40
    one = found[missing[0]]
    assert one.low[1, 0] < one.high[1, 0]
    assert "none" in str(one)
