"""Tables planned for queries: integers, privacy, covariance and answers.

References: brute force over records and pairs of records in Python integers; the dense linear map
from independent noises to all cells, from the integer contrasts alone; cumulative sums written out;
simulation.
"""

import itertools
import json
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from cases import one_test_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, norm
from typer.testing import CliRunner

import gaussnoise as gn
from gaussnoise.cli.app import app
from gaussnoise.errors import CovarianceError, ParameterError, SchemaError
from gaussnoise.noise.product_covariance import ProductCovariance
from gaussnoise.solvers.tables.residuals import part_of, subsets_of
from gaussnoise.solvers.tables.strategies import IdentityStrategy, SolvedStrategy
from gaussnoise.tables.planning import measure as _measure
from gaussnoise.tables.planning.measure import ResidualQuery
from gaussnoise.tables.release import combine as _combine
from gaussnoise.tables.release import store as _store
from gaussnoise.tables.release import stored as _stored
from gaussnoise.tables.release.quantiles import Support, interpolated
from gaussnoise.tables.release.stream import noisy_tables
from gaussnoise.tables.spark import layout as _layout

PROPERTY = settings(derandomize=True, deadline=None, database=None, max_examples=50)
SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("age", edges=[0, 10, 20, 40, 60, 120], other="?"),
        gn.Attribute("hour", range(4), base="ranges"),
        gn.Attribute("one", ["only"]),
    ]
)
WORKLOAD = [
    {"age": "prefix", "sex": "identity"},
    ("hour", "sex"),
    {"age": {"kind": "bins", "widths": [2, 3]}, "hour": [[1, 1, 0, -1], [0, 0.5, 1, 1]]},
    {"one": "prefix", "hour": "identity"},
]


def people(rows, seed):
    rng = np.random.default_rng(seed)
    ages = rng.choice([5.0, 15, 25, 50, 80, 200], rows, p=[0.3, 0.1, 0.2, 0.2, 0.1, 0.1])
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], rows),
            "age": ages,
            "hour": rng.integers(0, 4, rows),
            "one": ["only"] * rows,
        }
    )


def counted(table):
    """Return counts of the full table, computed without gaussnoise."""
    counts = np.zeros((2, 6, 4, 1), dtype=np.int64)
    ages = {5.0: 0, 15.0: 1, 25.0: 2, 50.0: 3, 80.0: 4, 200.0: 5}
    for row in table.to_pylist():
        counts["FM".index(row["sex"]), ages[row["age"]], row["hour"], 0] += 1
    return counts


def planned(neighbors="add-remove", **options):
    return gn.plan(SCHEMA, WORKLOAD, gn.zCDP(0.1), neighbors=neighbors, **options)


RELATIONS = ("add-remove", "replace")
once_planned = cache(planned)


def contrasts_of(strategy):
    """Return the integer matrix C that measures an attribute."""
    return strategy.contrast(np.eye(strategy.size, dtype=np.int64), 0)


@st.composite
def measured(draw, contrasts=True):
    """Draw strategies and variances of every T inside some tables."""
    strategies = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 4))
        if n == 1 or not (contrasts and draw(st.booleans())):
            strategies.append(IdentityStrategy(n))
            continue
        entries = st.lists(st.integers(-6, 6), min_size=n, max_size=n)
        C = np.array(draw(st.lists(entries, min_size=n - 1, max_size=n - 1)), dtype=np.int64)
        assume(abs(np.linalg.det(np.vstack([np.ones(n), C]))) > 0.5)
        strategies.append(SolvedStrategy(C))
    if len(strategies) > 1 and draw(st.booleans()):
        strategies[1] = strategies[0]  # measured alike, perhaps
    moving = tuple(i for i, s in enumerate(strategies) if s.size > 1)
    values = st.sampled_from([0.3, 1.0, 7.0])
    return tuple(strategies), {T: draw(values) for T in subsets_of(moving)}


# Exact integers.


@PROPERTY
@given(
    measured(),
    st.integers(0, 60),
    st.sampled_from(["add-remove", "replace"]),
    st.integers(0, 2**32),
)
def test_without_noise_every_table_is_its_counts(problem, exponent, neighbors, seed):
    strategies, variances = problem
    query = ResidualQuery.calibrated(strategies, variances, neighbors, 0.5)
    rng, whole = np.random.default_rng(seed), tuple(range(len(strategies)))
    counts = rng.integers(0, 2**exponent, [s.size for s in strategies], endpoint=True) // 64

    class Silence:
        def take(self, count):
            return np.zeros(count, dtype=np.int64)

    planned = [whole, whole[:1], ()]
    tables = dict(
        noisy_tables([(S, part_of(counts, whole, S)) for S in planned], planned, query, Silence())
    )
    for S in planned:
        exact = part_of(counts, whole, S)
        np.testing.assert_allclose(tables[S], exact, atol=1e-9 * max(1, counts.sum()))


@PROPERTY
@given(measured(), st.sampled_from([0, 20, 40, 52]), st.integers(0, 2**32))
def test_answers_are_exact_on_either_side_of_64_bits(problem, exponent, seed):
    strategies, variances = problem
    query = ResidualQuery.calibrated(strategies, variances, "add-remove", 1e-3)
    rng = np.random.default_rng(seed)
    for T in variances:
        counts = rng.integers(0, 2**exponent, [strategies[i].size for i in T], endpoint=True)
        expected = np.asarray(counts).astype(object)
        for axis, i in enumerate(T):
            C = contrasts_of(strategies[i]).astype(object)
            expected = np.moveaxis(np.tensordot(C, expected, axes=(1, axis)), 0, axis)
        expected = (
            (expected * int(query.multipliers[T])).reshape(-1)
            if T
            else [int(counts) * int(query.multipliers[T])]
        )
        assert list(query.answer(T, np.asarray(counts))) == list(expected)


def largest_change(query, neighbors):
    """Return the largest squared change over all records, or pairs of them, in Python integers."""
    columns = {
        T: {i: contrasts_of(query.strategies[i].in_set(T)).astype(object) for i in T}
        for T in query.multipliers
    }
    rows = []
    for record in itertools.product(*(range(s.size) for s in query.strategies)):
        parts = []
        for T in query.multipliers:
            answer = np.array([int(query.multipliers[T])], dtype=object)
            for i in T:
                answer = np.kron(answer, columns[T][i][:, record[i]])
            parts.append(answer)
        rows.append(np.concatenate(parts))
    if neighbors == "add-remove":
        return max(int((row**2).sum()) for row in rows)
    return max(int(((a - b) ** 2).sum()) for a in rows for b in rows)


@pytest.mark.parametrize(("exact", "most"), [(2**14, 2**24), (0, 2**24), (0, 0)])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_no_record_changes_more_than_is_charged(exact, most, neighbors):
    @PROPERTY
    @given(measured(), st.sampled_from([1e-3, 0.5, 1e5]))
    def check(problem, rho):
        strategies, variances = problem
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_measure, "_EXACT_PATTERNS", exact)
            patch.setattr(_measure, "MOST_PATTERNS", most)
            query = ResidualQuery.calibrated(strategies, variances, neighbors, rho)
        if query.query is None:
            return
        assert largest_change(query, neighbors) <= query.query.sensitivity_squared
        assert Fraction(query.query.sensitivity_squared) <= 2 * Fraction(
            query.query.scale
        ) ** 2 * Fraction(rho)

    check()


def test_the_charge_is_what_the_worst_records_need():
    """The bound is attained for columns of equal length, and computed by hand for others."""
    acute = SolvedStrategy(np.array([[5, 4]]))  # inner products 25, 16, 20: columns of two lengths
    for neighbors, change in (("add-remove", 25 + 1), ("replace", 2 * (25 - 16))):
        query = ResidualQuery.calibrated((acute,), {(): 1.0, (0,): 25.0}, neighbors, 0.5)
        s = int(query.multipliers[(0,)])
        total = int(query.multipliers[()]) ** 2 if neighbors == "add-remove" else 0
        assert query.query.sensitivity_squared == total + s**2 * (
            change - (neighbors == "add-remove")
        )
    flat = SolvedStrategy(
        np.array([[1, 1, -1], [1, -1, 1]])
    )  # equal columns, inner products 0, 0 and −2
    mixed = ResidualQuery.calibrated(
        (flat, IdentityStrategy(3)), {(0, 1): 1.0, (0,): 2.0}, "replace", 0.5
    )
    assert mixed.query.sensitivity_squared == largest_change(mixed, "replace")


LONG = SolvedStrategy(np.array([[1000, 1003, 998, 1001], [2000, 1996, 2003, 2001], [7, -5, 3, -6]]))


def test_contrasts_lack_a_multiple_of_a_known_number_of_rows():
    """Noise, privacy and estimates are those of all contrasts, but fewer digits cancel."""
    both = LONG, IdentityStrategy(2)
    query = ResidualQuery.calibrated(both, {(0,): 1.0, (1,): 2.0}, "replace", 0.5)
    own, s = query.strategies[0], int(query.multipliers[0,])
    common = LONG.contrasts - contrasts_of(own)
    assert (common == common[:, :1]).all()
    assert own.growth == np.abs(contrasts_of(own)).max()  # or sums could exceed 64 bits
    assert np.abs(contrasts_of(own).mean(axis=1)).max() <= 1 / 2
    assert np.abs(4 * LONG.profile).max() > 100 > 3 > np.abs(4 * own.profile).max()
    scale = math.sqrt(LONG.square)
    np.testing.assert_allclose(own.root, LONG.root, rtol=1e-9)
    np.testing.assert_allclose(
        own.profile, LONG.profile + LONG.root @ common[:, 0] / scale, rtol=1e-9
    )
    apart = 2 * (LONG.square - LONG.least)
    assert query.query.sensitivity_squared == s**2 * apart + int(query.multipliers[1,]) ** 2 * 4
    assert largest_change(query, "replace") <= query.query.sensitivity_squared

    rng, counts = np.random.default_rng(0), np.array([10**12, 3, 10**11, 7])
    noise = rng.integers(-(2**20), 2**20, 3)
    noisy = query.noisy((0,), counts, noise)
    all_contrasts = s * (LONG.contrasts.astype(object) @ counts) + noise
    assert (all_contrasts - noisy == common[:, 0].astype(object) * s * int(counts.sum())).all()
    table = query.spread(np.array(float(counts.sum())), (), (0,)) + query.decode((0,), noisy)
    assert abs(math.fsum([*table, -float(counts.sum())])) <= 1e-15 * counts.sum()
    off = np.linalg.solve(np.vstack([np.ones(4), LONG.contrasts]), [0, *noise / s])
    np.testing.assert_allclose(table, counts + off, atol=1e-3)


@pytest.mark.parametrize(
    ("variances", "neighbors"),
    [
        ({(): 1.0, (0,): 1.0}, "add-remove"),
        ({(): 1.0, (0,): 1.0}, "replace-persons"),
        ({(0,): 1.0, (0, 1): 1.0}, "replace"),
    ],
)
def test_contrasts_lack_no_multiple_of_numbers_that_are_not_known(variances, neighbors):
    both = LONG, IdentityStrategy(2)
    assert ResidualQuery.calibrated(both, variances, neighbors, 0.5).strategies == both


def test_contrasts_without_this_multiple_have_the_lengths_of_all_contrasts():
    """Squared lengths are computed in integers that are wide enough for the long contrasts."""
    curve = SolvedStrategy(2**20 + np.array([[0, 3, -2], [1, -2, 2]]), off=7)
    own = curve.centred
    assert own.growth <= 3
    assert (own.square, own.least) == (curve.square, curve.least)
    assert own.least > 2**40  # more than 63 bits, with the 28 of the curve's points


def test_releases_with_and_without_this_multiple_are_not_combined():
    again = SolvedStrategy(LONG.contrasts)
    assert _combine._same(LONG, again)
    assert _combine._same(LONG.centred, again.centred)
    assert not _combine._same(LONG, LONG.centred)
    assert _layout._contrasts(LONG) != _layout._contrasts(LONG.centred)


def test_worst_pairs_of_each_measurement_differ_everywhere_when_no_angle_is_obtuse(monkeypatch):
    acute = SolvedStrategy(np.array([[3, 3, 4], [4, 3, 1]]))
    assert acute.least > 0
    monkeypatch.setattr(_measure, "_EXACT_PATTERNS", 0)
    monkeypatch.setattr(_measure, "MOST_PATTERNS", 0)
    query = ResidualQuery.calibrated((acute, acute), {(0, 1): 1.0}, "replace", 0.5)
    one_attribute = (
        2 * int(query.multipliers[0, 1]) ** 2 * (acute.square**2 - acute.square * acute.least)
    )
    assert largest_change(query, "replace") <= query.query.sensitivity_squared
    assert query.query.sensitivity_squared > one_attribute


def test_attributes_said_to_be_alike_must_be_measured_alike():
    from gaussnoise.solvers.tables.orbits import ByType, Orbits

    values = ByType(Orbits(((0, 1),)), {(): 1.0, (0,): 1.0})
    other = SolvedStrategy(np.array([[1000, -1000]]))
    with pytest.raises(CovarianceError, match="alike"):
        ResidualQuery.calibrated((IdentityStrategy(2), other), values, "add-remove", 1.0)
    with pytest.raises(CovarianceError, match="64 bits"):
        SolvedStrategy(np.array([[2**33, -(2**33)]]))


# Covariance, from the contrasts alone.


def noise_map(query, subsets):
    """Return the effect of a unit of each independent noise on all cells of the tables, stacked."""
    blocks = []
    for T in query.multipliers:
        inverses = [
            np.linalg.pinv(np.vstack([np.ones(s.size), contrasts_of(s.in_set(T))]))
            if s.size > 1
            else np.ones((1, 1))
            for s in query.strategies
        ]
        column = []
        for S in subsets:
            lifted = np.full((1, 1), query.query.scale / int(query.multipliers[T]))
            for i in S:
                lifted = np.kron(lifted, inverses[i][:, 1:] if i in T else inverses[i][:, :1])
            width = math.prod(query.strategies[i].rows for i in T)
            cells = math.prod(query.strategies[i].size for i in S)
            column.append(lifted if set(T) <= set(S) else np.zeros((cells, width)))
        blocks.append(np.concatenate(column))
    return np.concatenate(blocks, axis=1)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_covariances_are_those_of_the_noise_as_it_is_drawn(neighbors):
    plan = once_planned(neighbors)
    release = plan.simulate(people(400, 0), np.random.default_rng(0))
    L = noise_map(release.query, plan.tables.subsets)
    covariance = L @ L.T
    assert any(isinstance(s, SolvedStrategy) for s in plan.strategies)
    assert isinstance(release.covariance, ProductCovariance)
    np.testing.assert_allclose(
        release.covariance.toarray(), covariance, atol=1e-9 * covariance.max()
    )
    # cells that no query needs have much noise: sums round as their largest terms do
    most = covariance.max() * np.abs(covariance[0]).max()
    np.testing.assert_allclose(
        release.covariance @ covariance[0], covariance @ covariance[0], rtol=1e-8, atol=1e-10 * most
    )
    stacked = np.concatenate([release[m].standard_deviation.reshape(-1) for m in _sorted(plan)])
    np.testing.assert_allclose(stacked, np.sqrt(np.diag(covariance)), rtol=1e-9)
    for m in _sorted(plan):
        cells = release[m].standard_deviation
        assert plan.standard_deviation(*m) == pytest.approx(
            math.sqrt((cells**2).mean()), rel=lattice(release)
        )
    # contrasts across tables
    rng, starts = (
        np.random.default_rng(1),
        np.cumsum([0, *map(plan.tables.cells, plan.tables.subsets)]),
    )
    rows, weights = np.zeros((3, len(L))), []
    for k in range(3):
        chosen = {}
        for m, start, stop in zip(_sorted(plan), starts, starts[1:], strict=False):
            w = rng.normal(size=release[m].estimate.shape)
            chosen[m], rows[k, start:stop] = w, w.reshape(-1)
        weights.append(chosen)
    found = release.contrasts(weights)
    np.testing.assert_allclose(found.covariance, rows @ covariance @ rows.T, rtol=1e-9)
    assert release.contrast(weights[0]).standard_deviation == pytest.approx(
        found.standard_deviation[0]
    )


def lattice(release):
    """Return the relative distance of the integer multipliers from the planned ones."""
    return 1 / min(release.query.multipliers.values_by_type.values())


def _sorted(plan):
    """Return the names of all planned tables, attributes in the schema's order."""
    return [tuple(plan.schema.names[i] for i in S) for S in plan.tables.subsets]


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_tables_agree_and_measurements_rebuild_them(neighbors):
    plan, table = once_planned(neighbors), people(300, 1)
    release = plan.release(table)
    for names in [("sex",), ("age",), ("hour",), ()]:
        margins = []
        for m in plan.marginals:
            if set(names) <= set(m):
                margins.append(
                    release[m].estimate.sum(
                        axis=tuple(k for k, n in enumerate(m) if n not in names)
                    )
                )
        for margin in margins:
            np.testing.assert_allclose(margin, release[names].estimate, atol=1e-8)
    parts = {m.attributes: m for m in release.measurements()}
    S = plan.tables.subsets[0]
    rebuilt = np.zeros(release["sex", "age"].estimate.shape)
    for T in subsets_of(S):
        part = parts[tuple(SCHEMA.names[i] for i in T)]
        rebuilt += release.query.spread(part.estimate, T, S)
        for axis in range(len(T)):
            np.testing.assert_allclose(part.estimate.sum(axis=axis), 0, atol=1e-8)
    np.testing.assert_allclose(rebuilt, release["sex", "age"].estimate, atol=1e-8)
    if neighbors == "replace":
        assert release[()].estimate == 300


# Answers.


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_answers_are_sums_of_released_cells_with_the_variance_of_contrasts(neighbors):
    plan = once_planned(neighbors)
    release = plan.simulate(people(500, 2), np.random.default_rng(3))
    W = np.tril(np.ones((6, 6)))
    table = release.answers({"age": "prefix", "sex": "identity"})
    np.testing.assert_allclose(
        table.estimate, np.cumsum(release["age", "sex"].estimate[:5], axis=0), atol=1e-9
    )
    assert table.attributes == ("age", "sex")
    assert table.labels[0][0] == "below 10"
    assert table.labels[1] == ("F", "M")
    for k, s in itertools.product(range(5), range(2)):
        exact = release.contrast({("age", "sex"): np.outer(W[k], np.eye(2)[s])})
        assert exact.standard_deviation == pytest.approx(table.standard_deviation[k, s], rel=1e-6)
    stated = plan.answer_deviations({"age": "prefix", "sex": "identity"})
    np.testing.assert_allclose(stated, table.standard_deviation, rtol=lattice(release))
    np.testing.assert_allclose(
        plan.answer_deviations({"sex": "identity", "age": "prefix"}), stated.T
    )
    ranges = release.answers("hour")  # its own base
    cells = release["hour"].estimate
    assert ranges.estimate.shape == (10,)
    assert ranges.estimate[1] == pytest.approx(cells[:2].sum())
    assert ranges.estimate[-2] == pytest.approx(cells[2:].sum())
    low, high = ranges.confidence_interval(0.9, simultaneous=True)
    z = norm.ppf((1 + 0.9 ** (1 / 10)) / 2)
    np.testing.assert_allclose(high - low, 2 * z * ranges.standard_deviation, atol=1e-9)
    frame = ranges.columns()
    assert list(frame) == ["hour", "estimate", "standard_deviation", "low", "high"]
    assert frame["hour"][1] == "0 to 1"
    assert release.answers(("hour", "age")).estimate.shape == (10, 6)
    assert release.answers({"age": W}).estimate.shape == (6,)  # a matrix asks about all cells


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_totals_and_attributes_of_one_category(neighbors):
    plan, n = once_planned(neighbors), 70
    release = plan.release(people(n, 3))
    total = release.answers(())
    assert total.estimate.shape == total.standard_deviation.shape == ()
    only = release.answers({"one": [[2.0], [3.0]]})
    np.testing.assert_allclose(only.estimate, [2 * total.estimate, 3 * total.estimate])
    np.testing.assert_allclose(only.standard_deviation, np.array([2, 3]) * total.standard_deviation)
    assert (total.standard_deviation == 0) == (neighbors == "replace")
    summed = gn.plan(
        SCHEMA, [{"age": gn.Total(6), "sex": "identity"}, {"age": "prefix"}], gn.zCDP(1)
    )
    assert summed.marginals == (("sex",), ("age",))
    alone = gn.plan(SCHEMA, [{"one": "prefix"}], gn.zCDP(1), neighbors=neighbors).release(
        people(n, 3)
    )
    assert (alone["one"].standard_deviation == 0) == (neighbors == "replace")


def test_any_base_can_be_read_off_tables_planned_for_cells():
    release = gn.plan(SCHEMA, [("sex", "age")], gn.zCDP(0.1)).simulate(
        people(90, 3), np.random.default_rng(0)
    )
    found = release.answers({"age": "prefix", "sex": {"kind": "windows", "width": 1}})
    for k in range(5):
        weights = np.zeros((6, 2))
        weights[: k + 1, 1] = 1
        exact = release.contrast({("age", "sex"): weights})
        assert found.estimate[k, 1] == pytest.approx(exact.estimate)
        assert found.standard_deviation[k, 1] == pytest.approx(exact.standard_deviation, rel=1e-9)


def test_rms_deviations_of_entries_are_those_of_their_answers():
    plan = once_planned("add-remove")
    for entry, deviation, count in zip(WORKLOAD, plan.deviations, plan.queries, strict=True):
        exact = plan.answer_deviations(entry)
        assert exact.size == count
        assert math.sqrt((exact**2).mean()) == pytest.approx(deviation, rel=1e-9)
    weighted = np.sqrt((plan.deviations**2 * plan.queries).sum())
    assert plan.error == pytest.approx(weighted, rel=1e-9)
    assert plan.error < np.sqrt((plan.independent_deviations**2 * plan.queries).sum())
    assert plan.improvement > 1


def test_the_optimum_for_cells_is_worse_for_cumulative_counts():
    """Negative control: bases do change the noise, in the right direction, at the same budget."""
    cells = gn.plan(SCHEMA, [("age", "sex")], gn.zCDP(0.1))
    both = gn.plan(SCHEMA, [{"age": "prefix", "sex": "identity"}], gn.zCDP(0.1))
    entry = {"age": "prefix", "sex": "identity"}
    assert (both.answer_deviations(entry) ** 2).sum() < 0.95 * (
        cells.answer_deviations(entry) ** 2
    ).sum()
    assert both.standard_deviation("age", "sex") > cells.standard_deviation("age", "sex")


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.usefixtures("counted_once")
def test_cumulative_counts_are_unbiased_with_the_stated_variance(neighbors):
    plan, table = once_planned(neighbors), people(1000, 4)
    truth = np.cumsum(counted(table).sum(axis=(0, 2, 3))[:5])
    rng, draws = np.random.default_rng(5), 500
    z = []
    for _ in range(draws):
        found = plan.simulate(table, rng).answers({"age": "prefix"})
        z.append((found.estimate - truth)[:5] / found.standard_deviation[:5])
    z = np.array(z)
    assert np.abs(z.mean(axis=0)).max() < 4.5 / math.sqrt(draws)
    low, high = chi2.ppf([1e-5, 1 - 1e-5], draws)
    squares = (z**2).sum(axis=0)
    assert ((low < squares) & (squares < high)).all()
    # 30 % too much noise would be seen: with 500 draws, this fails once in 10,000 times
    assert (1.3**2 * squares > high).all()
    assert (0.7**2 * squares < low).all()


@pytest.mark.parametrize("given_", [(), "sex"])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_cumulative_shares_and_their_fieller_variances(neighbors, given_):
    release = once_planned(neighbors).simulate(people(3000, 6), np.random.default_rng(7))
    found = release.cdf("age", given_)
    assert len(found.labels[-1]) == 5  # without the catch-all, which counts in groups
    cells = release["sex", "age"].estimate if given_ else release["age"].estimate[None]
    expected = (np.cumsum(cells, axis=1) / cells.sum(axis=1, keepdims=True))[:, :5]
    np.testing.assert_allclose(np.atleast_2d(found.estimate), expected, rtol=1e-9)
    group = ("sex",) if given_ else ()
    p = 0.37
    for place in np.ndindex(found.estimate.shape):
        x = np.zeros(6)
        x[: place[-1] + 1] = 1
        own = np.eye(2)[place[0]] if given_ else np.array(1.0)
        exact = release.contrast({(*group, "age"): np.multiply.outer(own, x), group: -p * own})
        share, variance = found.share[place], found.group_variance[place]
        ours = found.variance[place] - 2 * p * share * variance + p**2 * variance
        assert ours == pytest.approx(exact.standard_deviation**2, rel=1e-6)
    low, high = found.confidence_interval(0.99, simultaneous=True)
    assert (low < found.estimate).all()
    assert (found.estimate < high).all()
    with pytest.raises(gn.errors.ParameterError, match="other attributes"):
        release.cdf("age", "age")


def test_proportions_of_cells_whose_noise_differs():
    release = once_planned("add-remove").simulate(people(3000, 8), np.random.default_rng(9))
    found = release.proportions(("age", "sex"), given="sex")
    for place in np.ndindex(6, 2):
        x, group = np.zeros((6, 2)), np.zeros(2)
        x[place], group[place[1]] = 1, 1
        exact = release.contrast({("age", "sex"): x, "sex": -0.2 * group})
        share, variance = found.share[place], found.group_variance[place]
        ours = found.variance[place] - 0.4 * share * variance + 0.04 * variance
        assert ours == pytest.approx(exact.standard_deviation**2, rel=1e-6)


# Quantiles.


def test_quantiles_interpolate_increasing_counts():
    bins = Support(np.array([-np.inf, 0.0, 10.0, 30.0]), np.array([0.0, 10.0, 30.0, np.inf]), True)
    cumulative = np.array(
        [[10.0, 30, 70, 100], [0.0, 50, 40, 90], [0.0, 0, 0, -1], [0.0, 10, 10, 10]]
    )
    found = interpolated(cumulative, bins, [0.0, 0.05, 0.2, 0.5, 0.99])
    np.testing.assert_allclose(found[0], [-np.inf, -np.inf, 5, 20, np.inf])
    np.testing.assert_allclose(found[1], [0, 1, 4, 10, np.inf])  # 50, 40 become 45, 45
    assert np.isnan(found[2]).all()
    np.testing.assert_allclose(found[3], [0, 0.5, 2, 5, 9.9])


def test_quantiles_of_a_release():
    schema = gn.Schema(
        [gn.Attribute("x", edges=[0, 1, 2, 4, 8]), gn.Attribute("k", [1, 2, 5], other="rest")]
    )
    rows = pa.table({"x": np.repeat([0.5, 1.5, 3.0, 6.0], 250_000), "k": [1, 2, 5, 9] * 250_000})
    release = gn.plan(
        schema, [{"x": "prefix"}, {"k": "prefix", "x": "identity"}], gn.zCDP(1)
    ).release(rows)
    found = release.quantiles("x", [0.25, 0.5, 0.875])
    np.testing.assert_allclose(found.estimate, [1, 2, 6], atol=1e-2)
    assert found.attributes == ("x quantile",)
    assert "isotonic" in repr(found)
    assert list(found.columns()) == ["x quantile", "biased_estimate", "low", "high"]
    assert release.quantiles("k", [0.2, 0.5, 0.9], given="x").estimate.tolist() == [[1, 2, 5]] * 4
    for name, probabilities, words in [
        ("x", [1.5], "in .0, 1."),
        ("x", 0.5, "list of"),
        ("y", [0.5], "no attribute"),
    ]:
        with pytest.raises(gn.errors.ParameterError, match=words):
            release.quantiles(name, probabilities)
    text = gn.plan(gn.Schema([gn.Attribute("a", ["u", "v"])]), 1, gn.zCDP(1)).release(
        pa.table({"a": ["u"]})
    )
    with pytest.raises(gn.errors.ParameterError, match="integer categories"):
        text.quantiles("a", [0.5])


# Plans.


def test_identity_bases_are_plans_for_cells():
    plain = gn.plan(SCHEMA, [("sex", "age")], gn.zCDP(0.1))
    named = gn.plan(SCHEMA, [{"sex": "identity", "age": None}], gn.zCDP(0.1))
    assert isinstance(named.domain, gn.Marginals)
    assert str(plain) == str(named)
    assert plain.request_sha256 == named.request_sha256
    other = gn.plan(SCHEMA, [{"sex": "identity", "age": "prefix"}], gn.zCDP(0.1))
    assert isinstance(other.domain, gn.Products)
    ranges = gn.plan(SCHEMA, [{"sex": "identity", "age": "ranges"}], gn.zCDP(0.1))
    assert len({plain.request_sha256, other.request_sha256, ranges.request_sha256}) == 3
    assert isinstance(
        gn.plan(SCHEMA, 1, gn.zCDP(0.1)).domain, gn.Products
    )  # the schema asks for ranges of hours


def test_the_same_table_under_several_bases():
    plan = gn.plan(
        SCHEMA, [{"age": "prefix"}, {"age": "identity"}, ("sex",)], gn.zCDP(0.1), weights=[1, 2, 3]
    )
    assert plan.marginals == (("age",), ("sex",))
    assert plan.entries == ("age (prefix, without '?')", "age", "sex")
    assert plan.domain.weights == (1, 2, 3)
    text = str(plan)
    assert "3 entries, 13 answers, from 2 tables of 8 cells" in text
    assert f"{plan.deviations[0]:.4g}" in text


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_targets_hold_for_the_worst_query(neighbors):
    entries = [{"age": "prefix", "sex": "identity"}, {"hour": "ranges"}, {"age": "identity"}]
    goals = [40, gn.Target(60, 0.9, simultaneous=True), 90]
    plan = gn.plan(SCHEMA, entries, targets=goals, neighbors=neighbors, rows_per_person=2)
    ratios = []
    for entry, goal in zip(entries, plan.targets, strict=True):
        deviations = plan.answer_deviations(entry)
        ratios.append(deviations.max() / goal.standard_deviation(deviations.size))
    assert max(ratios) == pytest.approx(1, abs=1e-6)
    assert max(ratios) <= 1
    assert plan.target_ratio == pytest.approx(max(ratios))
    short = gn.plan(
        SCHEMA,
        entries,
        gn.zCDP(plan.rho / 4),
        targets=goals,
        neighbors=neighbors,
        rows_per_person=2,
    )
    assert short.target_ratio == pytest.approx(2 * plan.target_ratio, rel=1e-6)
    with pytest.raises(gn.errors.ParameterError, match="3 targets"):
        gn.plan(SCHEMA, entries, targets=goals[:2])
    with pytest.raises(gn.errors.ParameterError, match="in the order"):
        gn.plan(SCHEMA, [{"age": "prefix"}, {"age": "ranges"}], targets={"age": 3})


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ([{"age": "prefixes"}], "base: expected"),
        ([{"weight": "prefix"}], "no attribute"),
        ([{"age": gn.Prefix(3)}], "6 cells, the catch-all included"),
        (
            [{"age": gn.Prefix(6)}],
            r"Prefix of the 5 cells before the catch-all '\?'.*got 6; hint: Prefix\(5\)",
        ),
        ([{"age": "prefix"}, {"age": gn.Prefix(5)}], "one twice"),
        ([{"sex": {"kind": "moments"}}], "expected values"),
        ([3], "list of marginals"),
    ],
)
def test_workloads_without_meaning_are_refused(workload, words):
    with pytest.raises(gn.errors.ParameterError, match=words):
        gn.plan(SCHEMA, workload, gn.zCDP(1))


def test_what_has_no_closed_form_says_so():
    plan = once_planned("replace")
    for ask in (lambda: plan.replace_saving, lambda: plan.add_remove_saving):
        with pytest.raises(gn.errors.ParameterError, match="cells alone"):
            ask()
    with pytest.raises(gn.errors.ParameterError, match="cells alone"):
        plan.independent_standard_deviation("sex", "age")
    with pytest.raises(gn.errors.ParameterError, match="no planned marginal"):
        plan.answer_deviations(("one", "age"))
    assert "paper's calibration" not in str(plan)


# Schemas.

TOML = """\
[attributes.age]
edges = [0, 18, 65, 120]
base = {kind = "moments", degrees = [0, 1]}

[attributes.hour]
categories = [0, 1, 2, 3]
base = {kind = "windows", width = 2}

[attributes.grade]
categories = ["a", "b", "c"]
base = [[1, 1, 0], [0, 0.5, 1]]

[attributes.week]
categories = [1, 2, 3]
base = {kind = "bins", widths = [1, 2]}

[attributes.sex]
categories = ["F", "M"]
base = "identity"
"""


def test_bases_in_schemas():
    schema = gn.Schema.loads(TOML)
    expected = [
        gn.Moments([9, 41.5, 92.5], [0, 1]),
        gn.Windows(4, 2),
        gn.Base([[1, 1, 0], [0, 0.5, 1]]),
        gn.Bins(3, [1, 2]),
        None,
    ]
    assert [a.base for a in schema.attributes] == expected
    assert gn.Schema.loads(schema.to_toml()) == schema
    assert gn.Attribute("hour", range(4), base={"kind": "moments"}).base == gn.Moments(
        [0, 1, 2, 3], [1]
    )
    assert gn.Attribute("x", ["a", "b"], base=gn.Prefix(2)).base == gn.Prefix(2)
    assert gn.Attribute("x", ["a", "b"], base={"kind": "ranges"}).base == gn.Ranges(2)
    assert gn.Attribute("x", ["a", "b"], base=np.array([[1, -1]])).base.queries == 1


@one_test_of(
    ("base", "words"),
    [
        ('"cdf"', "expected"),
        ("3", "expected"),
        ("true", "expected"),
        ('{kind = "bins"}', "expected"),
        ('{kind = "bins", widths = [0]}', "width"),
        ('{kind = "bins", widths = [1], width = 2}', "expected"),
        ('{kind = "windows", width = 9}', "width"),
        ('{kind = "moments"}', "expected values"),
        ('{kind = "moments", values = [1, 2]}', "2"),
        ("[[1, 1]]", "3 cells"),
        ("[[1, 1], [1]]", "matrix"),
        ('{widths = ["x"]}', "expected"),
    ],
)
def test_bases_that_are_refused_point_at_their_line(base, words):
    text = f'[attributes.a]\ncategories = ["x", "y", "z"]\n\nbase = {base}\n'
    with pytest.raises(gn.errors.SchemaError, match=words) as caught:
        gn.Schema.loads(text, "s.toml")
    assert str(caught.value).startswith("s.toml:4: ")


# Files and commands.


@pytest.mark.parametrize("format", ["csv", "parquet", "dataset"])
def test_files_hold_every_cells_deviation(tmp_path, monkeypatch, format):
    if format == "dataset":
        monkeypatch.setattr(_store, "MOST_FILES", 1)
        # so few tables are in one dataset in this test alone: their places are not the planned ones
        monkeypatch.setattr(_stored, "is_part", lambda file: True)
        monkeypatch.setattr(_store, "_ROWS_AT_ONCE", 7)
    plan = once_planned("add-remove")
    release = plan.release(
        people(200, 9), out=tmp_path / "out", format="csv" if format == "csv" else "parquet"
    )
    found = gn.TableRelease.load(tmp_path / "out", plan)
    for m in plan.marginals:
        np.testing.assert_array_equal(found[m].estimate, release[m].estimate)
        np.testing.assert_array_equal(found[m].standard_deviation, release[m].standard_deviation)
    record = json.loads((tmp_path / "out" / "release.json").read_text())
    assert [entry["answers"] for entry in record["workload"]] == plan.queries.tolist()
    assert record["workload"][0]["bases"] == {"sex": "identity", "age": "prefix"}
    assert record["domain"][2]["base"] == "ranges"
    C = np.array([row.split() for row in record["noise"]["contrasts"]["age"]], dtype=int)
    np.testing.assert_array_equal(C, plan.strategies[1].contrasts)
    import pyarrow.csv
    import pyarrow.parquet

    first = plan.marginals[0]
    expected = release[first].standard_deviation.reshape(-1)
    place = found.tables.places[plan.tables.subsets[0]]
    read = pyarrow.csv.read_csv if format == "csv" else pyarrow.parquet.read_table
    column = read(tmp_path / "out" / place.file)["standard_deviation"].to_numpy()
    np.testing.assert_allclose(column[place.first_row :][: len(expected)], expected, rtol=1e-12)
    assert len(set(expected)) > 2
    other = gn.plan(SCHEMA, [{"age": "ranges", "sex": "identity"}, *WORKLOAD[1:]], gn.zCDP(0.1))
    with pytest.raises(gn.errors.OutputError, match="another plan"):
        gn.TableRelease.load(tmp_path / "out", other)


def test_a_ledger_draws_once(tmp_path):
    gn.Ledger.create(tmp_path / "ledger", gn.zCDP(0.15))
    plan = once_planned("replace")
    arguments = {"out": tmp_path / "out", "ledger": tmp_path / "ledger", "id": "survey"}
    first = plan.release(people(100, 1), **arguments)
    again = plan.release(people(100, 1), **arguments)
    np.testing.assert_array_equal(first["age"].estimate, again["age"].estimate)


def test_bases_on_the_command_line(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    arguments = [
        "plan",
        "-s",
        str(tmp_path / "schema.toml"),
        "-m",
        "age:prefix,sex",
        "-m",
        "hour",
        "--rho",
        "0.1",
    ]
    said = CliRunner().invoke(app, arguments).output
    assert "sex × age (prefix, without '?')" in said
    assert "hour (ranges)" in said


def test_mbi_gets_noise_of_one_size():
    pytest.importorskip("mbi")
    release = once_planned("add-remove").simulate(people(500, 3), np.random.default_rng(0))
    problem = release.to_mbi()
    measured = {m.clique: m for m in problem.measurements}
    L = noise_map(release.query, [(0, 1)])
    import mbi

    table = release["sex", "age"].estimate
    domain = problem.domain.project(("sex", "age"))
    found = measured["sex", "age"]
    np.testing.assert_allclose(
        found.query(mbi.Factor(domain, table)), found.noisy_measurement, atol=1e-3
    )
    matrix = np.stack(
        [np.asarray(found.query(mbi.Factor(domain, row.reshape(2, 6)))) for row in np.eye(12)],
        axis=1,
    )
    covariance = matrix @ L @ L.T @ matrix.T
    projection = np.kron(
        [[0.5, -0.5], [-0.5, 0.5]], np.eye(5)
    )  # sex by counts, age by five contrasts
    np.testing.assert_allclose(
        covariance, found.stddev**2 * projection, atol=1e-3 * found.stddev**2
    )
    assert found.query.op_norm_sq() >= np.linalg.norm(matrix, 2) ** 2 * (1 - 1e-5)


def test_mbi_gets_contrasts_that_lack_a_multiple_of_the_number_of_rows():
    mbi = pytest.importorskip("mbi")
    plan = gn.plan(SCHEMA, [{"hour": [[3, 1, 0, 9]]}], gn.zCDP(0.1), neighbors="replace")
    release = plan.simulate(people(500, 3), np.random.default_rng(0))
    assert plan.query.strategies[2] is plan.strategies[2].centred
    problem = release.to_mbi()
    found = {m.clique: m for m in problem.measurements}["hour",]
    table = mbi.Factor(problem.domain.project(("hour",)), release["hour"].estimate)
    np.testing.assert_allclose(found.query(table), found.noisy_measurement, atol=1e-3)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_bounds_hold_for_answers_too(neighbors):
    plan = gn.plan(SCHEMA, [{"age": "prefix", "sex": None}], gn.zCDP(0.1), neighbors=neighbors)
    factor = plan.bound.factor(plan.error)
    # γ°(K ∪ −K) for every data set; where records are replaced, at least half of γ°(K − K)
    least = math.sqrt(math.expm1(0.2) / 0.2)
    most = least * (1 + plan.noise.gap) * (1 if neighbors == "add-remove" else 2)
    assert least * (1 - 1e-9) <= factor <= most * (1 + 1e-9)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_hold_the_answers_that_were_asked_for(tmp_path, form):
    import pandas as pd

    plan = gn.plan(
        SCHEMA, [{"age": "prefix", "sex": None}, "hour", {"age": "identity"}], gn.zCDP(0.5)
    )
    plan.release(people(500, 2), out=tmp_path / "out", format=form)
    record = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    files = [entry["file"] for entry in record["workload"]]
    assert files == [
        f"answers/1-answers-sex-by-age.{form}",
        f"answers/2-answers-hour.{form}",
        None,
    ]
    names = [path.name for path in (tmp_path / "out").rglob("*.*")]
    assert len(set(names)) == len(names)  # so that all fit in one place
    assert set(files[:2]) <= set(record["files"])
    read = pd.read_csv if form == "csv" else pd.read_parquet
    loaded = gn.TableRelease.load(tmp_path / "out", plan)
    for name, entry in zip(files[:2], ({"age": "prefix", "sex": None}, "hour"), strict=True):
        wanted = loaded.answers(entry)
        frame = read(tmp_path / "out" / name)
        np.testing.assert_allclose(
            np.sort(frame["estimate"]), np.sort(wanted.estimate.ravel()), rtol=1e-12
        )
        np.testing.assert_allclose(
            np.sort(frame["standard_deviation"]),
            np.sort(wanted.standard_deviation.ravel()),
            rtol=1e-12,
        )


ORDERED = {
    "prefix": gn.Prefix(4),
    "ranges": gn.Ranges(4),
    "bins": gn.Bins(4, [2, (1, 3)]),
    "windows": gn.Windows(4, 2),
    "moments": gn.Moments([1, 2, 5, 9], [0, 1, 2]),
}


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("name", ORDERED)
def test_a_catch_all_is_in_no_query_that_takes_cells_in_order(name, written):
    """The matrix is that without a catch-all plus a column of zeros, also after TOML."""
    inner = ORDERED[name]
    words = {
        "bins": {"kind": "bins", "widths": [2, [1, 3]]},
        "windows": {"kind": "windows", "width": 2},
        "moments": {"kind": "moments", "degrees": [0, 1, 2]},
    }.get(name, name)
    own = gn.Attribute("hour", [1, 2, 5, 9], other="rest", base=words if written else inner)
    assert own.base == gn.Leading(inner, 5)
    np.testing.assert_array_equal(
        own.base.toarray(), np.hstack([inner.toarray(), np.zeros((inner.queries, 1))])
    )
    schema = gn.Schema([own])
    assert gn.Schema.loads(schema.to_toml()) == schema
    release = gn.plan(schema, [("hour",)], gn.zCDP(1)).simulate(
        pa.table({"hour": [1, 2, 5, 9, 7, 7]}), np.random.default_rng(0)
    )
    cells, found = release["hour"], release.answers("hour")
    assert cells.estimate.shape == (5,)  # its own count is released
    np.testing.assert_allclose(found.estimate, inner.toarray() @ cells.estimate[:4], atol=1e-9)
    plan = release.plan
    for row, deviation in zip(own.base.toarray(), found.standard_deviation, strict=True):
        assert release.contrast({"hour": row}).standard_deviation == pytest.approx(
            deviation, rel=1e-9
        )
    assert plan.entries[0].endswith("without 'rest')")
    assert plan.noise.verify()
    assert plan.noise.gap < 0.05
    assert "rest" not in "".join(
        query for query in found.labels[0] if "without 'rest'" not in query
    )


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_a_catch_all_costs_what_a_cell_in_no_query_costs(neighbors):
    """The noise is that of a matrix with a column of zeros, whose optimum has another route."""
    schema = gn.Schema([gn.Attribute("age", edges=[0, 40, 80, 120], other="not stated")])
    named = gn.plan(schema, [{"age": "ranges"}], gn.zCDP(0.1), neighbors=neighbors)
    W = np.hstack([gn.Ranges(3).toarray(), np.zeros((6, 1))])
    matrix = gn.plan(schema, [{"age": W}], gn.zCDP(0.1), neighbors=neighbors)
    assert named.queries.tolist() == [6]
    assert named.error == pytest.approx(matrix.error, rel=1e-6)
    best = gn.optimal_noise(gn.FiniteSet.from_workload(W), 2, neighbors=neighbors)
    assert best.gamma_lower * (1 - 1e-9) <= named.noise.gamma <= best.gamma * 1.01
    assert named.noise.gamma_lower <= best.gamma * (1 + 1e-9)
    assert named.request_sha256 != matrix.request_sha256
    labels = (
        named.simulate(pa.table({"age": [1]}), np.random.default_rng(0))
        .answers({"age": "ranges"})
        .labels[0]
    )
    assert labels == ("[0, 40)", "[0, 80)", "[0, 120]", "[40, 80)", "[40, 120]", "[80, 120]")


def test_all_but_the_catch_all_is_not_called_all():
    schema = gn.Schema([gn.Attribute("age", edges=[0, 40, math.inf], other="?")])
    release = gn.plan(schema, 1, gn.zCDP(0.1)).simulate(
        pa.table({"age": [1, 99, -1]}), np.random.default_rng(0)
    )
    assert release.answers({"age": "prefix"}).labels == (("below 40", "all, without '?'"),)
    assert release.cdf("age").labels == (("below 40", "all, without '?'"),)


@pytest.mark.parametrize("base", [gn.Ranges(5), gn.Bins(5, [2]), gn.Windows(5, 2), gn.Prefix(5)])
def test_ordered_bases_over_a_catch_all_are_refused(base):
    with pytest.raises(
        SchemaError,
        match="before the catch-all 'rest', which has no place in their order, got 5",
    ):
        gn.Attribute("hour", range(4), other="rest", base=base)
    whole = gn.Schema(
        [gn.Attribute("hour", range(4), other="rest", base=base.toarray())]
    )  # as a matrix they are meant
    assert gn.Schema.loads(whole.to_toml()) == whole


# What moments are sums of.


SUMS = {
    "bins": (gn.Attribute("x", edges=[0, 10, 40]), {}, "bin middles"),
    "given": (gn.Attribute("x", edges=[0, 10, math.inf]), {"values": [5, 20]}, "given values"),
    "integers": (gn.Attribute("x", [5, 25]), {}, "values"),
    "text": (gn.Attribute("x", ["a", "b"]), {"values": [1.5, 2]}, "given values"),
}


@pytest.mark.parametrize("kind", SUMS)
def test_moments_say_what_they_are_sums_of(kind, tmp_path):
    attribute, options, source = SUMS[kind]
    base = {"kind": "moments", "degrees": [0, 1, 2, 3], **options}
    plan = gn.plan(gn.Schema([attribute]), [{"x": base}], gn.zCDP(1))
    rows = [attribute.categories[0] if attribute.categories else 1] * 5
    release = plan.release(pa.table({"x": rows}), out=tmp_path / "out")
    labels = (
        "count",
        f"sum of {source}",
        f"sum of squared {source}",
        f"sum of {source} to the power 3",
    )
    assert release.answers({"x": base}).labels == (labels,)
    assert release.answers({"x": base}).columns()["x"] == list(labels)
    assert plan.entries == (f"x (moments 0, 1, 2, 3 of {source})",)
    assert plan.entries[0] in str(plan)
    summary = (tmp_path / "out" / "summary.txt").read_text(encoding="utf-8")
    warned = "Sums of bin middles are not sums of the values in the bins"
    assert (warned in summary) == (warned in str(plan)) == (kind == "bins")
    record = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    assert record["workload"][0]["name"] == plan.entries[0]
    written = (tmp_path / "out" / record["workload"][0]["file"]).read_text(encoding="utf-8")
    assert all(label in written for label in labels)


def test_runs_of_bins_are_named_by_their_ends():
    schema = gn.Schema([gn.Attribute("age", edges=[0, 5, 10, math.inf])])
    release = gn.plan(schema, [{"age": "ranges"}], gn.zCDP(1)).simulate(
        pa.table({"age": [1, 7]}), np.random.default_rng(0)
    )
    names = ("[0, 5)", "[0, 10)", "[0, inf)", "[5, 10)", "[5, inf)", "[10, inf)")
    assert release.answers({"age": "ranges"}).labels == (names,)


def test_errors_about_bases_show_what_was_given():
    with pytest.raises(SchemaError, match="got 'prefxi'"):
        gn.Attribute("age", range(4), base="prefxi")
    with pytest.raises(
        ParameterError, match=r"plan: Base: expected queries that tell categories apart"
    ):
        gn.plan(gn.Schema([gn.Attribute("a", range(3))]), [{"a": [[1, 1, 1]]}], gn.zCDP(1))
    with pytest.raises(SchemaError, match="all real"):
        gn.Attribute("a", range(3), base=[[10**400, 1, 2]])
