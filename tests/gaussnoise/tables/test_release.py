import itertools
import json
import math
import os
import sys
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import l2_distance
from opendp.mod import enable_features
from pyarrow import csv, parquet
from scipy.stats import binom, chi2

import gaussnoise as gn
from gaussnoise.errors import BudgetError, DataError, LedgerError, OutputError, ParameterError
from gaussnoise.noise.marginal_covariance import MarginalCovariance

FALSE_ALARM = 1e-9


def schema(*sizes):
    return gn.Schema([gn.Attribute(f"a{i}", range(n)) for i, n in enumerate(sizes)])


def names(positions):
    return tuple(f"a{i}" for i in positions)


def planned(sizes, subsets, rho=0.5, weights=None, neighbors="add-remove"):
    return gn.plan(
        schema(*sizes),
        [names(S) for S in subsets],
        gn.zCDP(rho),
        weights=weights,
        neighbors=neighbors,
    )


def table_of(records, width):
    """Return integer records as an arrow table with columns a0, a1, …"""
    columns = np.asarray(records, dtype=np.int64).reshape(-1, width).T
    return pa.table({f"a{i}": column for i, column in enumerate(columns)})


def true_counts(records, S, sizes):
    counts = np.zeros([sizes[i] for i in S], dtype=object)
    for record in records:
        counts[tuple(record[i] for i in S)] += 1
    return counts


def is_exact(table, counts):
    """Return whether a table without noise is the truth, up to the rounding of floats."""
    total = max(float(np.sum(counts)), 1.0)
    return (
        np.abs(table.estimate - np.asarray(counts, dtype=float)).max()
        <= 1e-13 * total * table.estimate.size
    )


def parts(S):
    return itertools.chain.from_iterable(itertools.combinations(S, k) for k in range(len(S) + 1))


@pytest.fixture
def noiseless(monkeypatch):
    monkeypatch.setattr(
        "gaussnoise.privacy.sampler.IntegerQuery.draw", lambda query, count: [0] * count
    )


WORKLOADS = [
    ((3,), [()]),
    ((3,), [(0,)]),
    ((1,), [(0,)]),
    ((2, 3), [(0, 1)]),
    ((2, 3), [(1, 0), (0,), ()]),
    ((2, 1, 3), [(0, 1), (1, 2), (1,)]),
    ((1, 1), [(0, 1)]),
    ((2, 3, 4), [(0, 1), (0, 2), (1, 2)]),
    ((3, 2, 2, 2), [(0, 1, 2), (1, 2, 3), (3,)]),
    ((2,) * 5, list(itertools.combinations(range(5), 3))),
]


@pytest.fixture(params=WORKLOADS, ids=str)
def workload(request):
    return request.param


@pytest.fixture(params=["add-remove", "replace"])
def neighbors(request):
    return request.param


@pytest.fixture
def records(workload):
    sizes, _ = workload
    return np.random.default_rng(2).integers(sizes, size=(57, len(sizes))).tolist()


# Without noise, every table is the truth, as integers.


@pytest.mark.usefixtures("noiseless")
@pytest.mark.parametrize("rho", [1e-6, 0.5, 1e6])
def test_without_noise_every_table_and_part_is_exact(workload, records, rho, neighbors):
    sizes, subsets = workload
    release = planned(sizes, subsets, rho, neighbors=neighbors).release(
        table_of(records, len(sizes))
    )
    for S in {S for planned_S in subsets for S in parts(sorted(planned_S))}:
        assert is_exact(release[names(S)], true_counts(records, S, sizes))


@st.composite
def problems(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    every = [S for S in parts(range(len(sizes))) if len(S) <= 3]
    subsets = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    weights = draw(st.lists(st.floats(0.01, 100), min_size=len(subsets), max_size=len(subsets)))
    record = st.tuples(*(st.integers(0, n - 1) for n in sizes))
    return sizes, subsets, weights, draw(st.lists(record, max_size=12)), draw(st.floats(1e-8, 1e8))


@settings(derandomize=True, deadline=None, database=None, max_examples=75)
@given(problems())
def test_without_noise_random_workloads_are_exact(problem):
    sizes, subsets, weights, records, rho = problem
    plan = planned(sizes, subsets, rho, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "gaussnoise.privacy.sampler.IntegerQuery.draw", lambda query, count: [0] * count
        )
        release = plan.release(table_of(records, len(sizes)))
    for S in subsets:
        assert is_exact(release[names(S)], true_counts(records, S, sizes))


@pytest.mark.usefixtures("noiseless")
@pytest.mark.parametrize("rho", [1e-6, 0.5, 1e6, 1e20])
@pytest.mark.parametrize("count", [2**30, 10**12 + 7, 2**53 + 1])
def test_large_counts_are_exact(monkeypatch, rho, count):
    full = np.array([[count, 0, 0], [0, count + 3, 1]])
    counted = [((1,), full.sum(axis=0)), ((0, 1), full)]
    monkeypatch.setattr(
        "gaussnoise.tables.release.publish.count_marginals", lambda *_: iter(counted)
    )
    release = planned((2, 3), [(0, 1), (1,)], rho).release(table_of([], 2))
    assert is_exact(release["a0", "a1"], full)
    assert is_exact(release["a1"], full.sum(axis=0))
    assert is_exact(release[()], full.sum())


# What one record can change, and what that costs


def stacked(query, counts):
    """Return all integer answers, one after the other, in Python integers.

    ``counts(T)`` are the counts of marginal T.
    """
    answers = [query.answer(T, np.asarray(counts(T)).astype(np.int64)) for T in query.multipliers]
    return np.concatenate([np.zeros(0, dtype=object), *(a.astype(object) for a in answers)])


def largest_change(plan):
    """Return the largest squared change of the answers, over all neighbouring data sets."""
    sizes = plan.schema.sizes
    records = list(itertools.product(*map(range, sizes)))
    added = np.array(
        [stacked(plan.query, lambda T, r=r: true_counts([r], T, sizes)) for r in records],
        dtype=object,
    )
    if plan.neighbors == "replace":
        added = added[0] - added  # by symmetry, either of the two rows may be the added one
    return max(int((change**2).sum()) for change in added)


def test_integer_sensitivity_is_exact(workload, neighbors):
    plan = planned(*workload, neighbors=neighbors)
    claimed = plan.query.query.sensitivity_squared if plan.query.query else 0
    assert claimed == largest_change(plan)


@pytest.mark.parametrize("limit", ["_EXACT_PATTERNS", "MOST_PATTERNS"])
def test_integer_sensitivity_is_bounded_where_patterns_are_many(monkeypatch, workload, limit):
    monkeypatch.setattr("gaussnoise.tables.planning.measure._EXACT_PATTERNS", 0)
    monkeypatch.setattr(f"gaussnoise.tables.planning.measure.{limit}", 0)
    plan = planned(*workload, neighbors="replace")
    found = largest_change(plan)
    claimed = plan.query.query.sensitivity_squared if plan.query.query else 0
    assert found <= claimed <= found * (1.00000001 if limit == "_EXACT_PATTERNS" else 1.000001)


@settings(derandomize=True, deadline=None, database=None, max_examples=75)
@given(problems(), st.sampled_from(["add-remove", "replace"]))
def test_integer_sensitivity_is_exact_on_random_workloads(problem, neighbors):
    sizes, subsets, weights, _, rho = problem
    plan = planned(sizes, subsets, rho, weights, neighbors)
    claimed = plan.query.query.sensitivity_squared if plan.query.query else 0
    assert claimed == largest_change(plan)


def test_queries_are_linear_so_neighbours_differ_by_one_records_answer(workload, records):
    sizes, subsets = workload
    query = planned(sizes, subsets).query
    before, after = (
        stacked(query, lambda T, some=some: true_counts(some, T, sizes))
        for some in (records[:-1], records)
    )
    assert ((after - before) == stacked(query, lambda T: true_counts(records[-1:], T, sizes))).all()


def charge(sigma, sensitivity_squared):
    """Return ρ by OpenDP's own map."""
    enable_features("contrib")
    distance = math.sqrt(sensitivity_squared)
    while Fraction(distance) ** 2 < sensitivity_squared:
        distance = math.nextafter(distance, math.inf)
    return make_gaussian(
        vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=sigma
    ).map(distance)


@pytest.mark.parametrize("rho", [1e-6, 0.5, 1e6])
def test_the_charge_is_what_opendp_says_and_within_the_budget(workload, rho, neighbors):
    sizes, subsets = workload
    release = planned(sizes, subsets, rho, neighbors=neighbors).release(table_of([], len(sizes)))
    query = release.query.query
    if query is None:
        assert release.rho_charged == 0
        return
    assert release.rho_charged == pytest.approx(
        charge(query.scale, query.sensitivity_squared), rel=1e-12
    )
    assert release.rho_charged <= rho
    assert release.rho_charged == pytest.approx(rho, rel=1e-9)
    assert Fraction(largest_change(release.plan)) / (2 * Fraction(query.scale) ** 2) <= Fraction(
        rho
    )


def test_a_charge_beyond_the_budget_is_refused(monkeypatch):
    plan = planned((2, 3), [(0, 1)])
    monkeypatch.setattr("gaussnoise.privacy.sampler.IntegerQuery.rho", 0.6)
    with pytest.raises(gn.GaussNoiseError, match="more than the planned"):
        plan.release(table_of([], 2))


# The noise of real releases


@pytest.fixture(scope="module")
def whitened():
    """Errors of 300 real releases, divided by the root of their stated covariance.

    They should be independent and standard.
    """
    sizes, records = (2, 3), [[0, 0], [1, 2], [1, 2], [0, 1]]
    plan, table = planned(sizes, [(0, 1), (1,)], weights=[1.0, 2.0]), table_of(records, 2)
    truth = true_counts(records, (0, 1), sizes).astype(float)
    errors = np.array(
        [(plan.release(table)["a0", "a1"].estimate - truth).ravel() for _ in range(300)]
    )
    variances = plan.release(table).query.variances
    covariance = MarginalCovariance(gn.Marginals(sizes, [(0, 1)]), variances).toarray()
    return np.linalg.solve(np.linalg.cholesky(covariance), errors.T).T


def has_stated_variance(z):
    return chi2.ppf(FALSE_ALARM / 2, z.size) < (z**2).sum() < chi2.isf(FALSE_ALARM / 2, z.size)


def is_unbiased(z):
    return len(z) * (z.mean(axis=0) ** 2).sum() < chi2.isf(FALSE_ALARM, z.shape[1])


def test_released_noise_is_unbiased_with_the_stated_covariance(whitened):
    assert is_unbiased(whitened)
    assert has_stated_variance(whitened)


@pytest.mark.parametrize("scale", [0.8, 1.25])
def test_the_variance_test_has_power(whitened, scale):
    assert not has_stated_variance(scale * whitened)


@pytest.mark.parametrize("cell", range(6))
def test_the_bias_test_has_power(whitened, cell):
    assert not is_unbiased(whitened + 0.7 * np.eye(6)[cell])


def test_no_two_releases_are_alike():
    plan, table = planned((2, 3), [(0, 1)]), table_of([[0, 0]], 2)
    first, second = plan.release(table), plan.release(table)
    assert (first["a0", "a1"].estimate != second["a0", "a1"].estimate).all()


def test_contrasts_have_the_variance_of_the_dense_covariance(workload):
    sizes, subsets = workload
    plan = planned(sizes, subsets)
    release = plan.release(table_of([], len(sizes)))
    covariance = plan.noise.covariance.toarray() / (2 * plan.rho)
    rng = np.random.default_rng(5)
    for _ in range(5):
        weights = {
            names(sorted(S)): rng.normal(size=[sizes[i] for i in sorted(S)]) for S in subsets
        }
        flat = np.concatenate([w.ravel() for w in weights.values()])
        variance = release.contrast(weights).standard_deviation ** 2
        assert variance == pytest.approx(flat @ covariance @ flat, rel=1e-5)


def test_covariances_between_cells_of_different_tables():
    plan = planned((2, 3), [(0,), (1,)], weights=[2.0, 1.0])
    release = plan.release(table_of([], 2))
    dense = (
        plan.noise.covariance.toarray()
        / (2 * plan.rho)
        / np.outer([2, 2, 1, 1, 1], [2, 2, 1, 1, 1])
    )
    for i, j in itertools.product(range(2), range(3)):
        u, v = np.eye(2)[i], np.eye(3)[j]
        plus = release.contrast({"a0": u, "a1": v}).standard_deviation ** 2
        minus = release.contrast({"a0": u, "a1": -v}).standard_deviation ** 2
        assert (plus - minus) / 4 == pytest.approx(dense[i, 2 + j], rel=1e-5)
        assert dense[i, 2 + j] > 0


def test_stated_standard_deviations_are_those_planned(workload):
    sizes, subsets = workload
    plan = planned(sizes, subsets)
    release = plan.release(table_of([], len(sizes)))
    for S in {S for planned_S in subsets for S in parts(sorted(planned_S))}:
        sd = release[names(S)].standard_deviation
        assert sd.shape == tuple(sizes[i] for i in S)
        assert sd == pytest.approx(plan.standard_deviation(*names(S)), rel=1e-6)


@pytest.fixture
def survey():
    return planned((2, 3, 2), [(0, 1), (1, 2)]).release(
        table_of([[1, 2, 0], [1, 1, 1], [0, 0, 0]], 3)
    )


def test_contrast_estimates_are_sums_over_cells(survey):
    w = np.arange(6.0).reshape(3, 2)
    contrast = survey.contrast({("a1", "a0"): w, "a2": [1, -1]})
    expected = (w * survey["a0", "a1"].estimate.T).sum() + survey["a2"].estimate @ [1, -1]
    assert contrast.estimate == pytest.approx(expected, abs=1e-9)


def test_contrasts_of_one_table_in_both_orders_add_up(survey):
    w = np.arange(6.0).reshape(2, 3)
    twice = survey.contrast({("a0", "a1"): w, ("a1", "a0"): w.T})
    assert twice.standard_deviation == pytest.approx(
        2 * survey.contrast({("a0", "a1"): w}).standard_deviation
    )


def test_contrasts_that_cancel_have_no_error(survey):
    contrast = survey.contrast({("a0", "a1"): np.ones((2, 3)), ("a1", "a2"): -np.ones((3, 2))})
    assert abs(contrast.estimate) < 1e-9
    assert contrast.standard_deviation < 1e-9


@pytest.mark.parametrize(
    "weights", [{"a0": [1.0]}, {("a0", "a1"): np.ones((3, 2))}, {"a0": [1, math.nan]}]
)
def test_contrasts_check_their_weights(survey, weights):
    with pytest.raises(ParameterError, match="contrast: expected finite weights of shape"):
        survey.contrast(weights)


# Agreement of tables


def test_tables_agree_on_every_shared_margin(workload, records, neighbors):
    sizes, subsets = workload
    release = planned(sizes, subsets, rho=0.01, neighbors=neighbors).release(
        table_of(records, len(sizes))
    )
    for S in map(sorted, subsets):
        table = release[names(S)]
        for T in parts(S):
            away = tuple(axis for axis, i in enumerate(S) if i not in T)
            assert table.estimate.sum(axis=away) == pytest.approx(
                release[names(T)].estimate, rel=1e-9, abs=1e-9
            )


def test_axes_follow_the_names_asked_for(survey):
    table, transposed = survey["a0", "a1"], survey["a1", "a0"]
    assert (transposed.estimate == table.estimate.T).all()
    assert transposed.attributes == ("a1", "a0")
    assert transposed.labels == ((0, 1, 2), (0, 1))
    assert transposed.standard_deviation.shape == (3, 2)
    assert transposed.columns()["a1"] == [0, 0, 1, 1, 2, 2]


def test_a_name_alone_is_a_one_way_table(survey):
    assert (survey["a1"].estimate == survey[("a1",)].estimate).all()


@pytest.mark.usefixtures("noiseless")
def test_the_total():
    release = planned((2, 3), [(0, 1)]).release(table_of([[0, 0]] * 7, 2))
    total = release[()]
    assert total.estimate.shape == ()
    assert total.estimate == 7
    assert total.columns()["estimate"] == [7.0]


def test_iteration_yields_the_planned_marginals(survey):
    assert list(survey) == [("a0", "a1"), ("a1", "a2")]
    assert len(survey) == 2


@pytest.mark.parametrize("asked", ["zz", ("a0", "a0"), ("a0", "a2"), ("a0", "a1", "a2"), 5])
def test_tables_that_were_not_released_are_refused(survey, asked):
    with pytest.raises(ParameterError):
        survey[asked]


def test_results_are_read_only(survey):
    with pytest.raises(ValueError, match="read-only"):
        survey["a0"].estimate[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        survey["a0"].standard_deviation[0] = 0


# Intervals


def test_intervals_are_gaussian_and_centred(survey):
    table = survey["a0", "a1"]
    low, high = table.confidence_interval(0.95)
    assert (low + high) / 2 == pytest.approx(table.estimate)
    assert (high - low) / 2 == pytest.approx(1.959963984540054 * table.standard_deviation)


def test_simultaneous_intervals_are_sidaks(survey):
    table = survey["a0", "a1"]
    low, high = table.confidence_interval(0.95, simultaneous=True)
    single = table.confidence_interval(0.95 ** (1 / 6))
    assert high - low == pytest.approx(single.high - single.low)
    assert (low < table.confidence_interval().low).all()


@pytest.mark.usefixtures("counted_once")
def test_intervals_cover_as_often_as_they_say():
    plan, table = planned((2, 3), [(0, 1), (1,)]), table_of([[1, 2]] * 9, 2)
    rng, repetitions = np.random.default_rng(8), 400
    covered, together = 0, 0
    for _ in range(repetitions):
        cells = plan.simulate(table, rng)["a0", "a1"]
        for simultaneous in (False, True):
            low, high = cells.confidence_interval(0.8, simultaneous)
            inside = (low <= [[0, 0, 0], [0, 0, 9]]) & (high >= [[0, 0, 0], [0, 0, 9]])
            if simultaneous:
                together += inside.all()
            else:
                covered += inside[1, 2]
    assert binom.ppf(1e-6, repetitions, 0.8) < covered < binom.isf(1e-6, repetitions, 0.8)
    # conservative, but not by much
    assert binom.ppf(1e-6, repetitions, 0.8) < together < binom.isf(1e-6, repetitions, 0.9)


def test_contrasts_have_intervals(survey):
    contrast = survey.contrast({"a0": [1, -1]})
    low, high = contrast.confidence_interval(0.95)
    assert (high - low) / 2 == pytest.approx(1.959963984540054 * contrast.standard_deviation)


# Frames

FRAMES = [
    (lambda table: table.to_pandas(), pd.DataFrame),
    (pl.DataFrame, pl.DataFrame),
    (lambda table: pl.DataFrame(table).lazy(), pl.DataFrame),
    (lambda table: table, pa.Table),
    (duckdb.from_arrow, pa.Table),
]


@pytest.mark.parametrize(
    ("convert", "kind"), FRAMES, ids=["pandas", "polars", "polars lazy", "pyarrow", "duckdb"]
)
def test_frames_come_back_in_the_callers_library(convert, kind):
    release = planned((2, 3), [(0, 1)]).release(convert(table_of([[0, 1]], 2)))
    frame = release["a1", "a0"].to_frame(level=0.9)
    assert type(frame) is kind
    columns = {
        name: list(frame[name])
        for name in ("a1", "a0", "estimate", "standard_deviation", "low", "high")
    }
    columns = {
        name: [x.as_py() if hasattr(x, "as_py") else x for x in column]
        for name, column in columns.items()
    }
    assert columns == release["a1", "a0"].columns(level=0.9)


def test_columns_are_tidy_and_in_c_order(survey):
    columns = survey["a0", "a1"].columns()
    assert list(columns) == ["a0", "a1", "estimate", "standard_deviation", "low", "high"]
    assert columns["a0"] == [0, 0, 0, 1, 1, 1]
    assert columns["a1"] == [0, 1, 2, 0, 1, 2]
    assert columns["estimate"] == survey["a0", "a1"].estimate.ravel().tolist()
    assert columns["high"] == survey["a0", "a1"].confidence_interval().high.ravel().tolist()


# Marks of simulations


def test_simulations_say_that_they_are_not_private(tmp_path):
    plan, table = planned((2, 3), [(0, 1)]), table_of([[0, 1]], 2)
    simulated = plan.simulate(table, np.random.default_rng(0))
    simulated.save(tmp_path / "out")
    assert simulated.private is False
    assert "NOT PRIVATE" in repr(simulated)
    assert "NOT PRIVATE" in (tmp_path / "out" / "summary.txt").read_text(encoding="utf-8")
    assert (
        json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))["private"]
        is False
    )


def test_releases_do_not_say_that_they_are_simulations(tmp_path, survey):
    survey.save(tmp_path / "out")
    assert survey.private is True
    assert "NOT PRIVATE" not in repr(survey)
    assert "NOT PRIVATE" not in (tmp_path / "out" / "summary.txt").read_text(encoding="utf-8")
    assert (
        json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))["private"]
        is True
    )


def test_simulations_repeat_with_their_generator():
    plan, table = planned((2, 3), [(0, 1)]), table_of([[0, 1]], 2)
    first, second = (
        plan.simulate(table, np.random.default_rng(3))["a0", "a1"].estimate for _ in range(2)
    )
    assert (first == second).all()


def test_releases_take_no_seed():
    with pytest.raises(TypeError):
        planned((2,), [(0,)]).release(table_of([], 1), rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    "option",
    [{"ledger": "l.db"}, {"id": "x"}, {"ledger": "l.db", "id": "x"}, {"id": "x", "out": "o"}],
)
def test_ledgers_need_an_id_and_a_place(option):
    with pytest.raises(ParameterError, match="ledger=, id= and out= together"):
        planned((2,), [(0,)]).release(table_of([], 1), **option)


@pytest.fixture
def ledger(tmp_path):
    return gn.Ledger.create(tmp_path / "ledger", gn.zCDP(1.0))


def test_a_ledger_draws_once(tmp_path, ledger):
    plan, table = planned((2, 3), [(0, 1)]), pd.DataFrame({"a0": [0, 1], "a1": [2, 2]})
    first = plan.release(table, out=tmp_path / "out", ledger=ledger, id="first")
    again = planned((2, 3), [(0, 1)]).release(
        table, out=tmp_path / "out", ledger=str(ledger.path), id="first"
    )
    assert (first["a0", "a1"].estimate == again["a0", "a1"].estimate).all()
    assert isinstance(again["a0"].to_frame(), pd.DataFrame)
    assert [(entry.id, entry.state) for entry in ledger.entries()] == [("first", "sealed")]
    assert ledger.spent == pytest.approx(first.rho_charged, rel=1e-12)
    second = plan.release(table, out=tmp_path / "other", ledger=ledger, id="second")
    assert (first["a0", "a1"].estimate != second["a0", "a1"].estimate).any()
    with pytest.raises(BudgetError):
        plan.release(table, out=tmp_path / "third", ledger=ledger, id="third")
    assert sorted(
        path.name for path in tmp_path.iterdir() if path.name in ("out", "other", "third")
    ) == [
        "other",
        "out",
    ]


def test_a_ledger_refuses_another_request_under_the_same_id(tmp_path, ledger):
    table = table_of([[0, 1]], 2)
    planned((2, 3), [(0, 1)], rho=0.1).release(table, out=tmp_path / "out", ledger=ledger, id="x")
    with pytest.raises(LedgerError, match="another marginals"):
        planned((2, 3), [(0,)], rho=0.1).release(table, out=tmp_path / "out", ledger=ledger, id="x")
    with pytest.raises(LedgerError, match="protects"):
        planned((2, 3), [(0, 1)], 0.1, neighbors="replace").release(
            table, out=tmp_path / "b", ledger=ledger, id="y"
        )


def test_costs_for_one_person_add_up_whatever_number_of_rows_is_counted(tmp_path, ledger):
    table = pa.table({"sex": ["f", "m", "m"], "id": ["a", "a", "b"], "house": ["x", "x", "y"]})
    schema = gn.Schema([gn.Attribute("sex", ["f", "m"])])

    def publish(id, **unit):
        plan = gn.plan(schema, 1, gn.zCDP(0.1), **unit)
        plan.release(table, out=tmp_path / id, ledger=ledger, id=id)

    publish("one", person="id")
    publish("two", person="id", rows_per_person=4)
    assert ledger.spent == pytest.approx(0.2)
    for other in ({"person": "house"}, {"rows_per_person": 4}, {}):
        with pytest.raises(LedgerError, match="protects"):
            publish("three", **other)


def test_refused_data_and_failures_under_a_ledger(monkeypatch, tmp_path, ledger):
    plan = planned((2, 3), [(0, 1)], rho=0.1)
    with pytest.raises(DataError):
        plan.release(table_of([[0, 7]], 2), out=tmp_path / "out", ledger=ledger, id="x")
    assert [entry.state for entry in ledger.entries()] == ["refused"]
    monkeypatch.setattr("gaussnoise.tables.release.publish.write_document", fail)
    with pytest.raises(RuntimeError):
        plan.release(table_of([[0, 1]], 2), out=tmp_path / "out", ledger=ledger, id="x")
    monkeypatch.undo()
    assert not (tmp_path / "out").exists()
    release = plan.release(table_of([[0, 1]], 2), out=tmp_path / "out", ledger=ledger, id="x")
    assert ledger.spent == pytest.approx(
        2 * release.rho_charged, rel=1e-12
    )  # the noise may have been seen
    assert [entry.state for entry in ledger.entries()] == ["refused", "lost", "sealed"]


# Files are complete, or do not exist


def fail(*args, **kwargs):
    raise RuntimeError("injected")


def full_disk(*args, **kwargs):
    raise OSError(28, "No space left on device")


def fail_late(path, **kwargs):
    Path(path).write_bytes(b"partial")
    raise RuntimeError("injected")


@pytest.mark.parametrize("broken", [fail, full_disk])
@pytest.mark.parametrize(
    "stage",
    [
        "gaussnoise.privacy.sampler.IntegerQuery.draw",
        "pyarrow.csv.CSVWriter",
        "gaussnoise.tables.release.files.release_record",
        "gaussnoise.tables.release.files.release_text",
        "os.fsync",
        "pathlib.Path.rename",
    ],
)
def test_a_failure_at_any_stage_leaves_nothing(monkeypatch, tmp_path, stage, broken):
    plan = planned((2, 3), [(0, 1)])
    monkeypatch.setattr(stage, broken)
    with pytest.raises((RuntimeError, OSError)):
        plan.release(table_of([[0, 1]], 2), out=tmp_path / "out")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "stage",
    ["gaussnoise.tables.release.release_plot.plot_release", "matplotlib.figure.Figure.savefig"],
)
def test_a_picture_that_cannot_be_drawn_does_not_undo_a_release(monkeypatch, tmp_path, stage):
    monkeypatch.setattr(stage, fail)
    planned((2, 3), [(0, 1)]).release(table_of([[0, 1]], 2), out=tmp_path / "out")
    files = ["ddi.xml", "method.txt", "release.json", "summary.txt", "tables"]
    assert sorted(os.listdir(tmp_path / "out")) == files


def test_a_release_needs_no_library_that_draws(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "gaussnoise.tables.release.release_plot", None)
    planned((2, 3), [(0, 1)]).release(table_of([[0, 1]], 2), out=tmp_path / "out")
    assert not (tmp_path / "out" / "release.png").exists()


def test_the_directory_is_not_there_before_it_is_complete(monkeypatch, tmp_path):
    seen = []
    rename = Path.rename

    def watch(path, target):
        seen.extend([sorted(p.name for p in path.iterdir()), Path(target).exists()])
        return rename(path, target)

    monkeypatch.setattr("pathlib.Path.rename", watch)
    planned((2, 3), [(0, 1)]).release(table_of([], 2), out=tmp_path / "out")
    files = ["ddi.xml", "method.txt", "release.json", "release.png", "summary.txt", "tables"]
    assert seen == [files, False]
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_what_exists_is_refused_before_reading_data(monkeypatch, tmp_path, kind):
    (tmp_path / "out").mkdir() if kind == "directory" else (tmp_path / "out").write_text(
        "mine", encoding="utf-8"
    )
    monkeypatch.setattr("gaussnoise.tables.release.publish.count_marginals", fail)
    with pytest.raises(OutputError, match="exists"):
        planned((2, 3), [(0, 1)]).release(table_of([], 2), out=tmp_path / "out")
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize(("out", "format"), [("missing/out", "csv"), ("out", "xls")])
def test_other_bad_targets_are_refused_before_reading_data(monkeypatch, tmp_path, out, format):
    monkeypatch.setattr("gaussnoise.tables.release.publish.count_marginals", fail)
    with pytest.raises((OutputError, ParameterError)):
        planned((2, 3), [(0, 1)]).release(table_of([], 2), out=tmp_path / out, format=format)
    assert os.listdir(tmp_path) == []


def test_a_budget_too_small_to_draw_is_refused_before_reading_data(monkeypatch):
    monkeypatch.setattr("gaussnoise.tables.release.publish.count_marginals", fail)
    with pytest.raises(ParameterError, match="rho"):
        planned((2, 3), [(0, 1)], rho=1e-30).release(table_of([], 2))


def test_a_budget_too_large_to_represent_is_a_parameter_error():
    with pytest.raises(ParameterError, match="rho"):
        planned((2, 3), [(0, 1)], rho=1e300).release(table_of([], 2))


def test_bad_data_leave_nothing(tmp_path):
    with pytest.raises(DataError):
        planned((2,), [(0,)]).release(pa.table({"a0": [0, 5]}), out=tmp_path / "out")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("format", "read"),
    [("csv", csv.read_csv), ("parquet", parquet.read_table)],
    ids=["csv", "parquet"],
)
def test_tables_read_back_equal(tmp_path, format, read):
    wide = gn.Schema(
        [
            gn.Attribute('a "b", c', ["x,y", 'q"', ""]),
            gn.Attribute("größe", edges=[0, 1, 2], other="Rest"),
        ]
    )
    plan = gn.plan(wide, [("größe", 'a "b", c'), ("größe",), ()], gn.zCDP(0.5))
    release = plan.release(
        pa.table({'a "b", c': ["x,y", ""], "größe": [0.5, None]}),
        out=tmp_path / "out",
        format=format,
    )
    record = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    for marginal, entry in zip(release, record["marginals"], strict=True):
        assert tuple(entry["attributes"]) == marginal
        assert read(tmp_path / "out" / entry["file"]).to_pydict() == release[marginal].columns()
    assert len(list((tmp_path / "out" / "tables").glob(f"*.{format}"))) == 3


def strict_json(path):
    def refuse(constant):
        raise ValueError(constant)

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def test_the_record_holds_what_an_auditor_needs(tmp_path):
    plan = gn.plan(
        gn.Schema(
            [gn.Attribute("a", [True, False]), gn.Attribute("b", edges=[-math.inf, 0, math.inf])]
        ),
        2,
        gn.ApproxDP(1, 1e-6),
    )
    release = plan.release(pa.table({"a": [True], "b": [0.5]}), out=tmp_path / "out")
    record = strict_json(tmp_path / "out" / "release.json")
    recomputed = charge(record["noise"]["sigma"], record["noise"]["integer_sensitivity_squared"])
    assert record["rho"] == pytest.approx(recomputed, rel=1e-12)
    assert record["rho"] == release.rho_charged <= plan.rho
    assert len(record["measurements"]) == 4
    assert record["neighbors"] == "add-remove"
    assert record["epsilon_delta"]["epsilon"] <= 1
    assert record["optimality"]["certified_gap"] == plan.noise.gap < 1e-6
    assert record["domain"][1]["edges"] == ["-inf", "0.0", "inf"]
    assert record["marginals"][0]["standard_deviation"] == pytest.approx(
        plan.standard_deviation("a", "b")
    )


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_the_number_of_rows_is_in_no_file(tmp_path, format):
    n = 1_234_577
    # noise is so large that no estimate equals n by chance
    plan = planned((1, 2), [(0, 1), ()], rho=1e-14)
    release = plan.release(table_of(np.zeros((n, 2)), 2), out=tmp_path / "out", format=format)
    written = (".csv", ".json", ".txt", ".xml")
    files = [path for path in (tmp_path / "out").rglob("*") if path.suffix in written]
    assert len(files) == (8 if format == "csv" else 4)
    for path in files:
        numbers = path.read_text(encoding="utf-8").replace(",", " ").replace('"', " ").split()
        assert not [word for word in numbers if word.split(".")[0] == str(n)]
    for path in (tmp_path / "out").rglob("*.parquet"):
        content = parquet.read_table(path)
        assert n not in [
            int(x) for name in ("estimate", "low", "high") for x in content[name].to_pylist()
        ]
        assert str(n).encode() not in repr(content.schema.metadata).encode()
    assert str(n) not in repr(release).replace(".", " ").split()


def test_the_picture_is_a_png(monkeypatch, tmp_path, survey, quick_pictures):
    monkeypatch.setattr("gaussnoise.tables.release.release_plot.plot_release", quick_pictures)
    survey.save(tmp_path / "out")
    picture = (tmp_path / "out" / "release.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


@pytest.mark.parametrize(
    "name", ["../up", "/etc/passwd", "a\nb", "con", "n" * 300, "年" * 120, "$x$ _"]
)
def test_any_name_makes_a_file_inside_the_directory(tmp_path, name):
    plan = gn.plan(gn.Schema([gn.Attribute(name, ["x", "y"])]), 1, gn.zCDP(1))
    plan.simulate(pa.table({name: ["x"]}), np.random.default_rng(0)).save(tmp_path / "out")
    record = strict_json(tmp_path / "out" / "release.json")
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out" / record["marginals"][0]["file"]).parent == tmp_path / "out" / "tables"
    assert record["marginals"][0]["attributes"] == [name]


def test_save_refuses_what_exists(tmp_path, survey):
    survey.save(str(tmp_path / "out"))
    with pytest.raises(OutputError, match="exists"):
        survey.save(tmp_path / "out")


def test_a_simulation_gives_no_guarantee(tmp_path):
    planned((2,), [(0,)]).simulate(table_of([[0]], 1), np.random.default_rng(0)).save(
        tmp_path / "out"
    )
    record = strict_json(tmp_path / "out" / "release.json")
    assert record["rho"] is None
    assert record["epsilon_delta"] is None
    for text in (
        (tmp_path / "out" / "summary.txt").read_text(encoding="utf-8"),
        str(record["disclaimers"]),
    ):
        assert "protects nobody" in text
        assert "OpenDP" not in text
