"""The exact part of a release: what one row changes, what that costs, and long integers."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from cases import one_test_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import gaussnoise as gn
from gaussnoise.errors import CovarianceError, ParameterError
from gaussnoise.solvers.tables.orbits import Orbits
from gaussnoise.solvers.tables.residuals import part_of
from gaussnoise.solvers.tables.strategies import IdentityStrategy, SolvedStrategy
from gaussnoise.tables.planning import measure as _measure
from gaussnoise.tables.planning.measure import ResidualQuery
from gaussnoise.tables.release.stream import noisy_tables

SIZES = (2, 3, 4)
NAMES = ("a0", "a1", "a2")


def planned(sizes, subsets, rho=0.5, **options):
    schema = gn.Schema([gn.Attribute(f"a{i}", range(n)) for i, n in enumerate(sizes)])
    return gn.plan(schema, [tuple(f"a{i}" for i in S) for S in subsets], gn.zCDP(rho), **options)


def column(size, category):
    """What one row of a category adds to the contrasts of its attribute."""
    if size == 2:
        return np.array([1 if category == 0 else -1], dtype=object)
    return np.array([size - 1 if category == j else -1 for j in range(size)], dtype=object)


def row_answer(query, sizes, T, row):
    """The answer of one row on marginal T, from the definition."""
    answer = np.array([int(query.multipliers[T])], dtype=object)
    for i in T:
        answer = np.kron(answer, column(sizes[i], row[i]))
    return answer


def largest_change(query, sizes, neighbors):
    """The largest change over all pairs of rows, exactly; by symmetry, one is the first row."""
    largest = 0
    for row in itertools.product(*map(range, sizes)):
        change = 0
        for T in query.multipliers:
            moved = row_answer(query, sizes, T, row)
            if neighbors == "replace":
                moved = moved - row_answer(query, sizes, T, [0] * len(sizes))
            change += int((moved**2).sum())
        largest = max(largest, change)
    return largest


def cost(query):
    """The ρ of the drawn noise for one row, exactly."""
    return Fraction(query.query.sensitivity_squared) / (2 * Fraction(query.query.scale) ** 2)


@st.composite
def plans(draw):
    sizes = draw(st.lists(st.sampled_from([1, 2, 2, 2, 3, 4]), min_size=1, max_size=4))
    every = [S for k in range(4) for S in itertools.combinations(range(len(sizes)), k)]
    subsets = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    weights = [
        10.0**e
        for e in draw(st.lists(st.floats(-6, 6), min_size=len(subsets), max_size=len(subsets)))
    ]
    rho = 10.0 ** draw(st.floats(-12, 90))
    neighbors = draw(st.sampled_from(["add-remove", "replace"]))
    return sizes, planned(
        sizes, subsets, rho, weights=weights, neighbors=neighbors, p=draw(st.sampled_from([2, 5]))
    )


# What one row changes, and what that costs, in rational numbers.


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(plans())
def test_the_noise_costs_no_more_than_planned_for_any_weights_and_budget(problem):
    sizes, plan = problem
    query = plan.query
    if query.query is None:
        assert not len(query.multipliers)
        return
    assert query.query.sensitivity_squared == largest_change(query, sizes, plan.neighbors)
    assert cost(query) <= Fraction(plan.rho)
    assert cost(query) >= Fraction(plan.rho) * (1 - Fraction(1, 10**12))


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(plans())
def test_bounds_for_many_patterns_never_fall_below_the_largest_change(problem):
    sizes, plan = problem
    if plan.neighbors != "replace":
        plan = gn.plan(
            plan.schema,
            list(plan.marginals),
            plan.privacy,
            neighbors="replace",
            weights=plan.domain.weights,
        )
    if plan.query.query is None:
        return
    largest = largest_change(plan.query, sizes, "replace")
    for most, slack in ((2**24, 1 + 2e-9), (0, 1 + 2e-7)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_measure, "_EXACT_PATTERNS", 0)
            patch.setattr(_measure, "MOST_PATTERNS", most)
            query = ResidualQuery.calibrated(
                plan.strategies, plan.noise.covariance.variances, "replace", plan.row_rho
            )
        assert largest <= query.query.sensitivity_squared <= largest * slack
        assert Fraction(largest) / (2 * Fraction(query.query.scale) ** 2) <= Fraction(plan.rho)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [2, 3, 7])
def test_a_persons_rows_together_are_charged_and_covered(rows, neighbors):
    plan = planned((2, 3), [(0, 1)], 0.3, neighbors=neighbors, rows_per_person=rows)
    release = plan.release(pa.table({"a0": [0], "a1": [2]}))
    # all rows of a person can move alike, so that the change is as many times as long
    together = Fraction(rows**2 * largest_change(release.query, (2, 3), neighbors))
    spent = together / (2 * Fraction(release.query.query.scale) ** 2)
    # up to the last bit of a float
    assert (
        Fraction(0.3) * (1 - Fraction(1, 10**12))
        <= spent
        <= Fraction(0.3) * (1 + Fraction(1, 2**52))
    )
    assert release.rho_charged == pytest.approx(float(spent), rel=1e-12)
    assert release["a0"].standard_deviation[0] == pytest.approx(
        rows * planned((2, 3), [(0, 1)], 0.3, neighbors=neighbors).standard_deviation("a0"),
        rel=1e-6,
    )


# Integers of any length.


def answers(query, sizes, counts):
    """The answers by the definition, in Python integers, over the whole table."""
    rows = list(itertools.product(*map(range, sizes)))
    return {
        T: sum(int(counts[row]) * row_answer(query, sizes, T, row) for row in rows)
        for T in query.multipliers
    }


@one_test_of("exponent", [0, 20, 29, 30, 40, 58])
@one_test_of("rho", [1e-6, 0.5, 1e6, 1e30])
def test_answers_are_exact_on_either_side_of_64_bits(exponent, rho):
    sizes = (2, 3)
    query = planned(sizes, [(0, 1)], rho).query
    counts = np.array([[2**exponent, 0, 3], [0, 2**exponent - 1, 2**exponent + 1]])
    for T, expected in answers(query, sizes, counts).items():
        marginal = part_of(counts, (0, 1), T)
        assert [int(x) for x in query.answer(T, marginal)] == expected.tolist()
        noise = np.array(
            [(-1) ** k * (2**62 + k) for k in range(query.rows(T))]
        )  # sums leave 64 bits
        noisy = query.noisy(T, marginal, noise)
        assert [int(x) for x in noisy] == [
            int(x) + int(y) for x, y in zip(expected, noise, strict=True)
        ]


def exact_decoding(query, sizes, T, noisy):
    """The pseudo-inverse of the query, in fractions."""
    values = np.array([Fraction(int(x), int(query.multipliers[T])) for x in noisy], dtype=object)
    values = values.reshape([query.rows((i,)) for i in T])
    for axis, i in enumerate(T):
        n = sizes[i]
        values = np.moveaxis(values, axis, 0)
        if n == 2:
            values = np.array([values[0] / 2, -values[0] / 2], dtype=object)
        else:
            values = (values - values.sum(axis=0) / n) / n
        values = np.moveaxis(values, 0, axis)
    return values


@pytest.mark.parametrize("rho", [1e-10, 0.5, 1e12, 1e60])
def test_decoding_keeps_fractions_of_rows_in_large_counts(rho):
    query = planned(SIZES, [(0, 1, 2)], rho).query
    counts = np.arange(24).reshape(SIZES) ** 3 + 10**9
    rng = np.random.default_rng(3)
    for T in query.multipliers:
        noise = np.rint(rng.normal(scale=query.query.scale, size=query.rows(T))).astype(np.int64)
        noisy = query.noisy(T, part_of(counts, (0, 1, 2), T), noise)
        exact = exact_decoding(query, SIZES, T, noisy)
        found = query.decode(T, noisy)
        assert found.shape == tuple(SIZES[i] for i in T)
        largest = max(abs(int(x)) for x in noisy) / int(query.multipliers[T])
        assert np.abs(found - exact.astype(float)).max() <= 1e-15 * 8 * largest


# One table after the other.


class Numbered:
    """Noise without end, in which all integers differ."""

    def __init__(self):
        self.taken = 0

    def take(self, count):
        self.taken += count
        return np.arange(self.taken - count + 1, self.taken + 1) * 2**20


NESTED = [(0, 1, 2), (0, 1), (1,), (), (0, 2)]


@pytest.mark.parametrize("order", [NESTED, NESTED[::-1], [(1,), (0, 2), (), (0, 1, 2), (0, 1)]])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_every_residual_is_measured_once_for_any_order_of_tables(order, neighbors):
    query = planned(SIZES, NESTED, neighbors=neighbors).query
    counts = np.random.default_rng(0).integers(9, size=SIZES)
    noise = Numbered()
    tables = dict(
        noisy_tables(((S, part_of(counts, (0, 1, 2), S)) for S in order), NESTED, query, noise)
    )
    assert list(tables) == order
    assert noise.taken == query.count
    for S, T in itertools.permutations(NESTED, 2):
        if set(T) < set(S):
            assert part_of(tables[S], S, T) == pytest.approx(tables[T], rel=1e-12, abs=1e-9)
    assert (tables[()] == counts.sum()) == (neighbors == "replace")


def test_residuals_are_dropped_after_their_last_table():
    query = planned(SIZES, NESTED).query
    counts = np.ones(SIZES, dtype=np.int64)
    stream = noisy_tables(
        ((S, part_of(counts, (0, 1, 2), S)) for S in NESTED), NESTED, query, Numbered()
    )
    held = [sorted(stream.gi_frame.f_locals["residuals"]) for _ in stream]
    assert held == [
        [(), (0,), (0, 1), (0, 2), (1,), (2,)],
        [(), (0,), (0, 2), (1,), (2,)],
        [(), (0,), (0, 2), (2,)],
        [(), (0,), (0, 2), (2,)],
        [],
    ]


# Three axes in any order, since permutations of two axes are their own inverses and show less.


@pytest.fixture(scope="module")
def cube():
    codes = np.random.default_rng(4).integers(SIZES, size=(300, 3))
    counts = np.zeros(SIZES)
    np.add.at(counts, tuple(codes.T), 1)
    table = pa.table({name: codes[:, i] for i, name in enumerate(NAMES)})
    return counts, planned(SIZES, [(0, 1, 2)], 1e12).release(
        table
    )  # errors of a millionth of a row


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_three_axes_follow_the_names_asked_for(cube, order):
    counts, release = cube
    asked, turned = tuple(NAMES[i] for i in order), counts.transpose(order)
    table = release[asked]
    assert table.estimate == pytest.approx(turned, abs=1e-3)
    assert [len(labels) for labels in table.labels] == list(turned.shape)
    weights = np.random.default_rng(1).normal(size=turned.shape)
    contrast = release.contrast({asked: weights})
    assert contrast.estimate == pytest.approx((weights * turned).sum(), abs=1e-2)
    straight = release.contrast({NAMES: weights.transpose(np.argsort(order))})
    assert contrast.standard_deviation == pytest.approx(straight.standard_deviation)
    for given_ in ("a1", ("a2", "a0"), ()):
        groups = counts.sum(
            axis=tuple(i for i in range(3) if NAMES[i] not in given_), keepdims=True
        )
        shares = release.proportions(asked, given_)
        assert shares.estimate == pytest.approx((counts / groups).transpose(order), abs=1e-4)
        assert shares.groups == pytest.approx(
            np.broadcast_to(groups, SIZES).transpose(order), abs=1e-2
        )


# Intervals of proportions against the definition: every p at which x − p·g is within its own
# interval.


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("given_", [(), "a0", ("a0", "a1")])
@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.usefixtures("counted_once")
def test_intervals_of_proportions_are_what_the_noise_allows(neighbors, given_, simultaneous):
    table = pa.table({"a0": [0] * 60 + [1] * 9, "a1": [0, 1, 1] * 20 + [2] * 9})
    plan = planned((3, 3), [(0, 1)], 0.02, neighbors=neighbors)
    share = np.linspace(0, 1, 401)
    # Šidák: all cells of the table together
    level = 0.8 ** (1 / 9) if simultaneous else 0.8
    z = norm.isf((1 - level) / 2) ** 2
    empty = 0
    for seed in range(20):
        found = plan.simulate(table, np.random.default_rng(seed)).proportions(("a0", "a1"), given_)
        low, high = found.confidence_interval(0.8, simultaneous)
        assert (low <= high).all()
        covariance = found.share * found.group_variance
        for cell in np.ndindex(3, 3):
            x, g = found.counts[cell], found.groups[cell]
            group_variance = found.group_variance[cell]
            variance = (
                found.variance[cell] - 2 * share * covariance[cell] + share**2 * group_variance
            )
            allowed = (x - share * g) ** 2 <= z * variance + 1e-9
            inside = (low[cell] - 1e-9 <= share) & (share <= high[cell] + 1e-9)
            assert inside[allowed].all()
            if g > 0 and g**2 > z * group_variance and low[cell] < high[cell]:
                assert (allowed | ~((low[cell] + 1e-9 < share) & (share < high[cell] - 1e-9))).all()
            else:
                empty += g <= 0
                assert (low[cell], high[cell]) == (0, 1) or low[cell] == high[cell]
    assert empty > 0 or given_ == ()


@pytest.mark.parametrize("bits", [61, 62, 63, 64, 65])
def test_answers_on_the_total_are_exact_around_64_bits(bits):
    query = planned((2, 3), [(0, 1)]).query
    s = int(query.multipliers[()])
    rows = 2**bits // s + 1
    answer = query.answer((), np.array(rows))
    assert int(answer[0]) == rows * s
    # 64 bits would wrap, and unsigned ones beside signed ones are doubles: both would show how many
    # rows there are
    assert answer.dtype == (np.int64 if bits == 61 else object)
    for noise in (0, 12345, -12345, 2**62 - 1, -(2**62)):
        noisy = query.noisy((), np.array(rows), np.array([noise]))
        assert int(noisy[0]) == rows * s + noise


def test_noise_is_never_added_to_other_numbers_than_exact_integers(monkeypatch):
    query = planned((2, 3), [(0, 1)]).query
    with pytest.raises(gn.GaussNoiseError, match="expected exact integers, got int64 and float64"):
        query.noisy((), np.array(7), np.array([1.0]))
    monkeypatch.setattr(ResidualQuery, "answer", lambda *_: np.array([2**63 + 1], dtype=np.uint64))
    with pytest.raises(gn.GaussNoiseError, match="expected exact integers, got uint64"):
        query.noisy((), np.array(7), np.array([1]))


def test_totals_of_thousands_of_rows_survive_many_lattice_steps():
    ages, incomes = ({"edges": range(n + 1), "base": "prefix"} for n in (64, 24))
    schema = gn.Schema([gn.Attribute("age", **ages), gn.Attribute("income", **incomes)])
    plan = gn.plan(schema, 2, gn.zCDP(0.1))
    s = int(plan.query.multipliers[()])
    for rows in {2**bits // s + off for bits in (62, 63, 64) for off in (-1, 0, 1)}:
        table = pa.table({"age": np.zeros(rows), "income": np.zeros(rows)})
        total = plan.release(table)[()]
        assert abs(float(total.estimate) - rows) < 10 * float(total.standard_deviation)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("rho", [1e-6, 1.0, 1e6, 1e30])
def test_noise_spans_so_many_lattice_steps_that_it_is_as_good_as_continuous(rho, neighbors):
    assert planned(SIZES, [(0, 1), (2,)], rho, neighbors=neighbors).query.query.scale > 2**28


def test_multipliers_too_coarse_for_the_wanted_variances_are_refused():
    with pytest.raises(ParameterError, match="too small"):
        planned((2, 3), [(0, 1)], 1e-29).release(pa.table({"a0": [0], "a1": [0]}))


@pytest.mark.parametrize("most", [1, 50])
def test_a_plan_that_no_release_could_draw_is_refused_with_the_budget_that_would_do(most):
    schema = gn.Schema([gn.Attribute(f"a{i}", edges=range(6), base="prefix") for i in range(3)])
    weight = gn.Weight("w", most)
    with pytest.raises(ParameterError, match="too small") as refused:
        gn.plan(schema, 3, gn.zCDP(1e-3), weight=weight)
    times = float(str(refused.value).split(" times as much")[0].split()[-1])
    plan = gn.plan(schema, 3, gn.zCDP(1e-3 * times), weight=weight)
    assert min(plan.query.multipliers.values_by_type.values()) >= 64
    assert plan.rho_charged <= 1e-3 * times
    with pytest.raises(ParameterError, match="too small"):
        gn.plan(schema, 3, gn.zCDP(0.9e-3 * times), weight=weight)


def test_a_total_without_noise_is_refused_where_rows_come_and_go():
    with pytest.raises(CovarianceError, match="total"):
        ResidualQuery.calibrated((IdentityStrategy(2),), {(0,): 1.0}, "add-remove", 0.5)
    assert ResidualQuery.calibrated((IdentityStrategy(2),), {(0,): 1.0}, "replace", 0.5).count == 1


def test_the_covariance_is_of_counts_for_any_weights():
    plan = planned(SIZES, [(0, 1), (2,)], weights=[3.0, 0.2])
    release = plan.release(pa.table({name: [0] for name in NAMES}))
    deviations = np.concatenate([release[names].standard_deviation.ravel() for names in release])
    assert np.sqrt(np.diag(release.covariance.toarray())) == pytest.approx(deviations)
    assert release.covariance.standard_deviation() == pytest.approx(deviations)


def test_squared_lengths_beyond_floating_point_are_bounded_exactly():
    """Patterns of twenty-five attributes are searched, not listed."""
    strategy = SolvedStrategy(np.array([[2**30, -(2**30)]]))
    orbits = Orbits(tuple((i,) for i in range(25)))
    squares = {(0, 1, 2, 3, 4, 5): 4**399, **{(i,): 4 for i in range(25)}}
    found = _measure.squared_sensitivity(orbits, [strategy] * 25, squares, "replace")
    six = 4**399 * (2**60) ** 6  # two values whose answers differ in sign, if one attribute differs
    assert 4 * six <= found <= 4 * six * (1 + Fraction(1, 10**6))
