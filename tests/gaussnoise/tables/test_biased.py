import dataclasses
import itertools
import math
import tracemalloc
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import one_test_of
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.tables.release.biased import BiasedTable, integer, nonnegative, projected

STEPS = {"nonnegative": nonnegative, "projected": projected, "integer": integer}
every_step = pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())

# ties, halves, negative zeros and large numbers on purpose
CELLS = st.one_of(
    st.floats(-1e12, 1e12),
    st.floats(-5, 5),
    st.sampled_from([0.0, -0.0, 0.5, -0.5, 1.5, 2.0, -3.0, 1e12, -1e-20]),
)
TABLES = st.lists(CELLS, min_size=1, max_size=30).map(np.array)
checked = settings(derandomize=True, deadline=None)


def simulated(*sizes, table=None):
    attributes = [gn.Attribute(f"a{i}", [f"v{k}" for k in range(n)]) for i, n in enumerate(sizes)]
    table = pa.table({a.name: ["v0"] * 5 for a in attributes}) if table is None else table
    plan = gn.plan(gn.Schema(attributes), [tuple(a.name for a in attributes)], gn.zCDP(0.5))
    return plan.simulate(table, np.random.default_rng(5))


def exact_total(table):
    return sum(map(Fraction, table.ravel().tolist()))


# The three steps, on arrays.


@one_test_of("n", [1, 2, 5, 12])
@one_test_of("shift", [-0.5, 0.0, 2.0])
def test_projection_solves_its_quadratic_program(n, shift):
    given_table = np.random.default_rng(n).normal(shift, 2, n)
    given_table[0] += max(0.0, 1 - given_table.sum())  # a positive total
    y = cp.Variable(n)
    cp.Problem(
        cp.Minimize(cp.sum_squares(y - given_table)), [y >= 0, cp.sum(y) == given_table.sum()]
    ).solve(solver=cp.CLARABEL)
    assert projected(given_table) == pytest.approx(y.value, abs=1e-5)


@checked
@given(TABLES)
def test_projection_meets_the_optimality_conditions(table):
    y = projected(table)
    size = 1e-14 * table.size * max(1.0, np.abs(table).max())
    if exact_total(table) <= 0:
        # a total that is only rounding may come out on either side of 0
        assert not y.any() or exact_total(table) > -size
        return
    assert (y >= 0).all()
    assert y.sum() == pytest.approx(float(exact_total(table)), abs=size)
    # one multiplier: positive cells moved by the same θ, the others would have become negative
    shift = table - y
    theta = max(shift[y > 0], default=0.0)
    assert theta - min(shift[y > 0], default=0.0) <= size
    assert (table[y == 0] <= theta + size).all()


@checked
@given(TABLES)
def test_projection_keeps_valid_tables(table):
    assert np.array_equal(projected(np.abs(table)), np.abs(table))


@pytest.mark.parametrize("table", [[-1.0], [0.0], [-3.0, 3.0], [5.0, -6.0], [-0.0, -0.0]])
def test_a_total_that_is_not_positive_gives_zeros(table):
    assert projected(np.array(table)).tolist() == [0.0] * len(table)


def test_large_numbers_do_not_cancel():
    table = np.array([1e12, 1.0, -0.25, 0.125, -1.0])
    # by hand: 1.0 stays positive, the others' -1.125 is shared by two
    assert projected(table).tolist() == [1e12 - 0.5625, 0.4375, 0.0, 0.0, 0.0]


def test_a_hundred_thousand_cells():
    """Memory grows with the cells, not with their square; ``tests/benchmarks`` measures time."""
    table = np.random.default_rng(1).normal(0, 1e6, 10**5)
    tracemalloc.start()
    try:
        assert (projected(table) >= 0).all()
        assert integer(table).sum() == round(math.fsum(table))
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()


@one_test_of("seed", range(20))
def test_rounding_is_the_nearest_of_all_integer_tables_of_that_sum(seed):
    rng = np.random.default_rng(seed)
    table = np.round(rng.normal(0, 2, 4), rng.integers(1, 4))  # one digit: many ties
    reach = [range(math.floor(x) - 2, math.ceil(x) + 3) for x in table]
    total = round(math.fsum(table))
    candidates = [z for z in itertools.product(*reach) if sum(z) == total]
    least = min(
        sum((Fraction(x) - k) ** 2 for x, k in zip(table.tolist(), z, strict=True))
        for z in candidates
    )
    found = integer(table).tolist()
    assert sum(found) == total
    reached = sum((Fraction(x) - k) ** 2 for x, k in zip(table.tolist(), found, strict=True))
    # remainders of floats are themselves rounded
    assert float(reached - least) <= 1e-14


@checked
@given(TABLES)
def test_rounding_moves_no_cell_by_one_and_keeps_the_rounded_total(table):
    z = integer(table)
    assert z.dtype == np.int64
    assert (np.abs(z - table) <= 1).all()
    assert int(z.sum()) == round(math.fsum(table))
    assert np.array_equal(integer(z), z)


@pytest.mark.parametrize("total", [0.5, 1.5, 2.5, -0.5, -1.5])
@pytest.mark.parametrize("cells", [1, 3])
def test_half_totals_round_as_python_does(total, cells):
    table = np.array([total, 7.0, -2.0][:cells])
    assert int(integer(table).sum()) == round(float(table.sum()))


@pytest.mark.parametrize("cell", [1e12, 2.0**51, -(2.0**51)])
def test_totals_that_floats_cannot_hold_move_no_cell_by_one(cell):
    table = cell + np.resize([0.25, -0.25, 0.5], 20_001)
    z = integer(table)
    assert (np.abs(z - table) < 1).all()
    # one float above 2**65 is 2**13 from the next
    assert abs(sum(z.tolist()) - exact_total(table)) <= max(0.5, math.ulp(20_001 * cell))


def test_whole_numbers_stay_when_their_total_is_no_float():
    # the total 2**53 + 1 is rounded below the sum of the floors
    assert integer(np.array([2.0**53, 1.0, 0.0, 0.0])).tolist() == [2**53, 1, 0, 0]


def test_ties_go_to_the_first_cells():
    assert integer(np.array([[0.5, 0.5], [0.5, 0.5]])).tolist() == [[1, 1], [0, 0]]
    # enough of them for sorting algorithms that shuffle equals
    table = np.random.default_rng(10).choice([0.25, 0.5, 0.75], 5000)
    first = sorted(range(5000), key=lambda cell: -table[cell])[: round(table.sum())]
    assert np.flatnonzero(integer(table)).tolist() == sorted(first)


def test_rounding_non_negative_tables_keeps_them_so():
    table = projected(np.random.default_rng(2).normal(0.2, 1, 400))
    assert integer(table).min() == 0


@pytest.mark.parametrize("cell", [2.0**63, -(2.0**63), 1e300])
def test_cells_beyond_int64_are_refused_without_being_shown(cell):
    with pytest.raises(
        ParameterError, match=r"expected cells below 2\*\*63, got larger ones; hint"
    ) as caught:
        integer(np.array([1.0, cell]))
    assert str(cell) not in str(caught.value)


@checked
@given(TABLES)
def test_clipping_only_raises_negative_cells(table):
    y = nonnegative(table)
    assert np.array_equal(y, [max(x, 0.0) for x in table])
    assert not np.signbit(y).any()


@every_step
@checked
@given(TABLES, st.sampled_from([(-1,), (1, -1), (-1, 1, 1)]))
def test_shapes_are_kept_and_nothing_becomes_nan(step, table, shape):
    shaped = table.reshape(shape)
    before = shaped.copy()
    result = step(shaped)
    assert result.shape == shaped.shape
    assert np.isfinite(result).all()
    assert np.array_equal(result.ravel(), step(table))
    assert np.array_equal(shaped, before)


@every_step
@pytest.mark.parametrize(("total", "expected"), [(3.0, 3), (0.0, 0), (7.0, 7)])
def test_one_number_without_axes(step, total, expected):
    result = step(np.array(total))
    assert isinstance(result, np.ndarray)
    assert result.shape == ()
    assert result == expected


@every_step
def test_steps_are_idempotent(step):
    once = step(np.random.default_rng(3).normal(1, 3, (6, 7)))
    assert step(once) == pytest.approx(once, abs=1e-13)


def test_clipping_is_biased_upwards_and_projection_less():
    noise = np.random.default_rng(4).normal(0, 1, (2000, 50))
    noise[:, 0] += 30
    clipped = np.mean([nonnegative(x).sum() for x in noise]) - 30
    kept = np.mean([projected(x).sum() for x in noise]) - 30
    # E max(η, 0) = 1/√(2π) in each of 49 empty cells; the sd of these means is below 0.2
    assert clipped == pytest.approx(49 / math.sqrt(2 * math.pi), abs=1)
    assert abs(kept) < 1


# The three steps, on tables.


@pytest.mark.parametrize("name", STEPS)
def test_released_tables_have_every_step(name):
    table = simulated(3, 4)["a1", "a0"]
    biased = getattr(table, name)()
    assert isinstance(biased, BiasedTable)
    assert np.array_equal(biased.estimate, STEPS[name](table.estimate))
    assert (biased.attributes, biased.labels) == (table.attributes, table.labels)


def test_chains_name_every_step_in_order():
    table = simulated(3, 4)["a0", "a1"]
    chained = table.projected().integer()
    assert np.array_equal(chained.estimate, integer(projected(table.estimate)))
    first, second = chained.method.split(", then ")
    assert (first, second) == (table.projected().method, table.integer().method)
    assert table.nonnegative().method not in chained.method
    assert chained.estimate.dtype == np.int64
    assert chained.estimate.min() >= 0


def test_the_total_can_be_processed():
    total = simulated(3)[()]
    assert total.integer().estimate == round(float(total.estimate))
    assert total.integer().columns() == {"biased_estimate": [round(float(total.estimate))]}
    assert repr(total.integer()).startswith("BiasedTable(total, 1 cells, biased: nearest integers")


def test_columns_go_cell_by_cell():
    biased = simulated(2, 3)["a1", "a0"].integer()
    columns = biased.columns()
    assert list(columns) == ["a1", "a0", "biased_estimate"]
    cells = zip(columns["a1"], columns["a0"], columns["biased_estimate"], strict=True)
    for (i, first), (j, second) in itertools.product(
        enumerate(biased.labels[0]), enumerate(biased.labels[1])
    ):
        assert next(cells) == (first, second, biased.estimate[i, j])


@pytest.mark.parametrize(
    ("make", "kind"),
    [(pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame), (pa.table, pa.Table)],
)
def test_frames_come_back_in_the_users_library(make, kind):
    biased = simulated(2, table=make({"a0": ["v0", "v1"]}))["a0"].projected()
    frame = biased.to_frame()
    assert isinstance(frame, kind)
    assert list(getattr(frame, "column_names", None) or frame.columns) == ["a0", "biased_estimate"]
    assert list(map(float, frame["biased_estimate"].to_numpy())) == biased.estimate.tolist()


def test_biased_tables_cannot_be_mistaken_for_releases():
    biased = simulated(2)["a0"].nonnegative()
    assert repr(biased) == "BiasedTable(a0, 2 cells, biased: negative cells set to 0)"
    assert not hasattr(biased, "standard_deviation")
    assert not hasattr(biased, "confidence_interval")
    assert "estimate" not in biased.columns()


def test_biased_tables_are_frozen():
    biased = simulated(2)["a0"].projected()
    with pytest.raises(dataclasses.FrozenInstanceError):
        biased.method = "none"
    with pytest.raises(ValueError, match="read-only"):
        biased.estimate[0] = 0
