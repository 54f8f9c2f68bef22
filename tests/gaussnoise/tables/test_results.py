"""Tests of what a release answers: proportions, contrasts, independent measurements."""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom, norm

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.noise.marginal_covariance import MarginalCovariance

SIZES = (2, 3, 4)
SUBSETS = [(0, 1), (1, 2), (0,)]


def planned(rho=0.5, neighbors="add-remove", subsets=SUBSETS, sizes=SIZES, p=2):
    schema = gn.Schema([gn.Attribute(f"a{i}", range(n)) for i, n in enumerate(sizes)])
    return gn.plan(
        schema, [tuple(f"a{i}" for i in S) for S in subsets], gn.zCDP(rho), neighbors=neighbors, p=p
    )


@pytest.fixture(scope="module")
def table():
    codes = np.random.default_rng(1).integers(SIZES, size=(500, 3))
    return pa.table({f"a{i}": codes[:, i] for i in range(3)})


@pytest.fixture(params=["add-remove", "replace"])
def neighbors(request):
    return request.param


@pytest.fixture
def release(table, neighbors):
    return planned(neighbors=neighbors).release(table)


def counted(table, names):
    if not names:
        return np.array(float(len(table)))
    codes = [np.asarray(table[name]) for name in names]
    counts = np.zeros([SIZES[int(name[1])] for name in names])
    np.add.at(counts, tuple(codes), 1)
    return counts


# Covariances.


def test_covariance_is_of_all_cells_and_of_what_was_drawn(release):
    dense = release.covariance.toarray()
    cells = [
        (names, cell)
        for names in release
        for cell in np.ndindex(*(SIZES[int(n[1])] for n in names))
    ]
    assert dense.shape == (len(cells),) * 2

    def one(names, cell):
        weights = np.zeros([SIZES[int(n[1])] for n in names])
        weights[cell] = 1
        return {names: weights}

    found = release.contrasts([one(*cell) for cell in cells])
    assert found.covariance == pytest.approx(dense, abs=1e-9 * dense.max())
    assert found.estimate == pytest.approx(
        np.concatenate([release[names].estimate.ravel() for names in release])
    )
    assert np.sqrt(np.diag(dense)) == pytest.approx(
        np.concatenate([release[names].standard_deviation.ravel() for names in release])
    )


@pytest.mark.parametrize("p", [2, math.inf])
@pytest.mark.usefixtures("counted_once")
def test_standard_errors_of_contrasts_are_those_of_simulations(table, neighbors, p):
    plan, rng, repetitions = planned(neighbors=neighbors, p=p), np.random.default_rng(3), 200
    combinations = [
        {("a0", "a1"): [[1, -1, 0], [-1, 1, 0]]},
        {"a0": [1, 0], ("a1", "a2"): -np.eye(3, 4)},
        {(): 1, "a1": [-1, 0, 0]},
    ]
    found = [plan.simulate(table, rng).contrasts(combinations) for _ in range(repetitions)]
    stated, errors = found[0].covariance, np.array([each.estimate for each in found])
    errors -= [
        sum(
            (np.asarray(w) * counted(table, (n,) if isinstance(n, str) else n)).sum()
            for n, w in weights.items()
        )
        for weights in combinations
    ]
    whitened = np.linalg.solve(np.linalg.cholesky(stated), errors.T)
    # means of whitened errors have standard deviation 1/√repetitions, entries of their second
    # moment at most √2 times
    assert np.abs(whitened.mean(axis=1)).max() < 6 / math.sqrt(repetitions)
    second, tolerance = whitened @ whitened.T / repetitions, 6 * math.sqrt(2 / repetitions)
    assert np.abs(second - np.eye(3)).max() < tolerance
    assert np.abs(2 * second - np.eye(3)).max() > tolerance


def test_a_cell_is_named_by_its_labels(release):
    cell = release.cell(a1=2, a0=1)
    assert release.contrast(cell).estimate == pytest.approx(release["a0", "a1"].estimate[1, 2])
    both = release.contrasts([cell, release.cell(a1=2, a2=3)])
    dense = release.covariance.toarray()
    assert both.covariance[0, 1] == pytest.approx(dense[1 * 3 + 2, 6 + 2 * 4 + 3])


@pytest.mark.parametrize("labels", [{"a0": 5}, {"b": 1}, {"a0": "1"}])
def test_unknown_cells_are_refused(release, labels):
    with pytest.raises(ParameterError):
        release.cell(**labels)


def test_the_total_is_exact_under_replacement_only(table):
    assert planned(neighbors="replace").release(table)[()].estimate == 500
    assert planned(neighbors="replace").release(table)[()].standard_deviation == 0
    assert planned().release(table)[()].standard_deviation > 0
    assert planned().release(table)[()].estimate != 500


# Proportions.


@pytest.mark.parametrize("given", [(), "a0", ("a1",), ("a1", "a0")])
@pytest.mark.parametrize("names", [("a0", "a1"), ("a1", "a0")])
def test_proportions_are_ratios_with_the_error_of_ratios(release, names, given):
    found = release.proportions(names, given)
    table, group = release[names], release[given]
    for cell in np.ndindex(*table.estimate.shape):
        at = tuple(cell[names.index(n)] for n in group.attributes)
        x, g = np.zeros(table.estimate.shape), np.zeros(group.estimate.shape)
        x[cell], g[at] = 1, 1
        share = table.estimate[cell] / group.estimate[at]
        assert found.estimate[cell] == pytest.approx(share)
        # the linear part of the ratio, as a contrast
        linear = release.contrasts([{names: x}, {given: g}])
        slope = np.array([1, -share]) / group.estimate[at]
        assert found.standard_deviation[cell] == pytest.approx(
            math.sqrt(max(slope @ linear.covariance @ slope, 0)), rel=1e-6, abs=1e-7
        )
    assert found.attributes == names
    if given == () and release.plan.neighbors == "replace":
        assert found.standard_deviation == pytest.approx(table.standard_deviation / 500)
        low, high = found.confidence_interval()
        inside = table.confidence_interval()
        assert low == pytest.approx(np.minimum(np.clip(inside.low / 500, 0, 1), found.estimate))
        assert high == pytest.approx(np.maximum(np.clip(inside.high / 500, 0, 1), found.estimate))


@pytest.mark.usefixtures("counted_once")
def test_intervals_of_proportions_hold_the_truth_as_often_as_they_say(neighbors):
    """Noise is as large as some groups, where intervals to first order fail."""
    plan, rng = (
        planned(rho=0.002, neighbors=neighbors, subsets=[(0, 1)], sizes=(2, 3)),
        np.random.default_rng(4),
    )
    table = pa.table({"a0": [0] * 60 + [1] * 40, "a1": [0] * 30 + [1] * 30 + [1] * 20 + [2] * 20})
    repetitions, covered, first_order = 600, 0, 0
    for _ in range(repetitions):
        found = plan.simulate(table, rng).proportions(("a0", "a1"), "a0")
        low, high = found.confidence_interval(0.8)
        covered += low[0, 1] <= 0.5 <= high[0, 1]
        first_order += (
            abs(found.estimate[0, 1] - 0.5) <= norm.isf(0.1) * found.standard_deviation[0, 1]
        )
    assert binom.ppf(1e-6, repetitions, 0.8) < covered < binom.isf(1e-6, repetitions, 0.8)
    assert not binom.ppf(1e-3, repetitions, 0.8) < first_order < binom.isf(1e-3, repetitions, 0.8)


def test_empty_groups_have_no_proportion():
    plan = planned(subsets=[(0, 1)], sizes=(2, 3), rho=1e6)
    found = plan.release(pa.table({"a0": [0] * 9, "a1": [1] * 9})).proportions(("a0", "a1"), "a0")
    low, high = found.confidence_interval(
        1 - 1e-9
    )  # one in twenty 95 % intervals would miss the proportion, which is right
    assert found.estimate[0] == pytest.approx([0, 1, 0], abs=0.01)
    empty = found.groups[1] <= 0
    assert np.isnan(found.estimate[1]).tolist() == empty.tolist()
    assert (low[1] <= 0.01).all()
    assert (high[1] >= 0.99).all()


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.usefixtures("counted_once")
def test_intervals_of_shares_hold_their_possible_estimates(neighbors, simultaneous):
    """Some cells hold no row, or the whole group: noise moves their estimates outside 0 and 1."""
    plan, rng = (
        planned(rho=0.01, neighbors=neighbors, subsets=[(0, 1)], sizes=(2, 3)),
        np.random.default_rng(9),
    )
    table, beyond = pa.table({"a0": [0] * 60 + [1] * 40, "a1": [0] * 100}), 0
    for _ in range(50):
        found = plan.simulate(table, rng).proportions(("a0", "a1"), "a0")
        low, high = found.confidence_interval(0.8, simultaneous)
        known = ~np.isnan(found.estimate)
        nearest = np.clip(found.estimate, 0, 1)  # no end of an interval is an impossible share
        assert ((low >= 0) & (low <= nearest))[known].all()
        assert ((high <= 1) & (high >= nearest))[known].all()
        assert ((low == 0) & (high == 1))[~known].all()
        beyond += int((found.estimate < 0).sum()) + int((found.estimate > 1).sum())
    assert beyond > 50


def test_tables_show_their_numbers(release):
    table = release["a1", "a0"]
    lines = str(table).splitlines()
    assert lines[0] == ("" if table.private else "NOT PRIVATE, a simulation: ") + repr(table)
    assert lines[1].split() == ["a1", "a0", "estimate", "±", "sd", "low", "high"]
    low, high = table.confidence_interval(0.95)
    for line, (k, j) in zip(lines[2:-1], np.ndindex(table.estimate.shape), strict=True):
        own = (table.labels[0][k], table.labels[1][j])
        numbers = [table.estimate[k, j], table.standard_deviation[k, j], low[k, j], high[k, j]]
        words = line.replace("±", " ").split()
        assert words[:2] == [str(label) for label in own]
        assert [float(word) for word in words[2:]] == pytest.approx(numbers, rel=1e-3)
    assert "95 % intervals" in lines[-1]
    assert "95 %" in str(release.proportions(("a1", "a0"), "a1"))
    assert f"{release['a0'].projected().estimate[0]:.8g}" in str(release["a0"].projected())
    assert "biased" in str(release["a0"].projected())
    assert len(str(release[()]).splitlines()) == 4
    assert len(repr(table).splitlines()) == 1


def test_long_tables_are_shown_in_part():
    schema = gn.Schema([gn.Attribute("a", range(30), base="ranges")])
    release = gn.plan(schema, 1, gn.zCDP(1)).simulate(
        pa.table({"a": [3]}), np.random.default_rng(0)
    )
    for table, rest in (
        (release["a"], 10),
        (release.answers("a"), 445),
        (release["a"].nonnegative(), 10),
    ):
        lines = str(table).splitlines()
        assert len(lines) == 24
        assert lines[-2] == f"… and {rest} more"
        assert lines[0].startswith("NOT PRIVATE")


def test_simultaneous_intervals_are_wider(release):
    found = release.proportions(("a0", "a1"))
    one, all_cells = found.confidence_interval(), found.confidence_interval(simultaneous=True)
    assert (all_cells.low <= one.low).all()
    assert (all_cells.high > one.high).all()


def test_proportions_are_tidy(release):
    frame = release.proportions(("a1", "a0"), "a1").to_frame().to_pydict()
    assert list(frame) == ["a1", "a0", "estimate", "standard_deviation", "low", "high"]
    assert frame["a1"] == [0, 0, 1, 1, 2, 2]
    assert "given a1" in repr(release.proportions(("a1", "a0"), "a1"))


@pytest.mark.parametrize(("names", "given"), [("a0", "a1"), (("a0", "a2"), ()), ("a0", "b")])
def test_proportions_of_other_groups_are_refused(release, names, given):
    with pytest.raises(ParameterError):
        release.proportions(names, given)


# Measurements.


def test_measurements_are_independent_and_make_every_table(release):
    measured = list(release.measurements())
    inside = {T for S in SUBSETS for k in range(len(S) + 1) for T in itertools.combinations(S, k)}
    assert sorted(m.attributes for m in measured) == sorted(
        tuple(f"a{i}" for i in T) for T in inside
    )
    for names in release:
        total = np.zeros(release[names].estimate.shape)
        for m in measured:
            if set(m.attributes) <= set(names):
                shape = [SIZES[int(n[1])] if n in m.attributes else 1 for n in names]
                total += m.estimate.reshape(shape) * m.estimate.size / total.size
        assert total == pytest.approx(release[names].estimate)
    variances = {tuple(int(n[1]) for n in m.attributes): m.standard_deviation**2 for m in measured}
    variances = {T: variance for T, variance in variances.items() if variance}
    covariance = MarginalCovariance(gn.Marginals(SIZES, SUBSETS), variances)
    assert covariance.toarray() == pytest.approx(release.covariance.toarray())
    assert [m.standard_deviation for m in measured if not m.attributes] == [
        pytest.approx(release[()].standard_deviation)
    ]
    for m in measured:
        for axis in range(m.estimate.ndim):
            assert m.estimate.sum(axis=axis) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("combinations", [{"a0": [1, 0]}, [[1, 0]], "a0", [3]])
def test_contrasts_are_lists_of_weights(release, combinations):
    with pytest.raises(ParameterError, match="contrasts: expected a list of weights"):
        release.contrasts(combinations)


@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_weights_are_finite(release, weight):
    with pytest.raises(ParameterError, match="got infinite ones or NaN"):
        release.contrast({"a0": [1, weight]})
