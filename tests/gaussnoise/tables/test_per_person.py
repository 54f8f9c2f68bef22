"""One record of each person in each group takes the place of the person's rows."""

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.per_person import reduced_arrays
from gaussnoise.tables.counting.persons import PersonLimit, limited_arrays
from gaussnoise.tables.reading.persons import People
from gaussnoise.tables.schema.numbers import PER_PERSON, STEPS

DASK = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
ENGINES = [
    *("pandas", "polars", "polars lazy", "pyarrow", "duckdb", "csv", "parquet"),
    pytest.param("dask", marks=DASK),
]
SEX = gn.Attribute("sex", ["F", "M"])
STAY = gn.Attribute("stay", clip=[0, 32])


def rows_of(number=300, seed=0, persons=60):
    """Rows of which some belong to no person, have no number or are outside the interval."""
    rng = np.random.default_rng(seed)
    who = [None if k == 0 else f"p{k}" for k in rng.integers(0, persons, size=number)]
    stay = [None if k == 0 else float(k) / 4 - 4 for k in rng.integers(0, 160, size=number)]
    return {
        "who": pa.array(who, pa.string()),
        "sex": pa.array(rng.choice(["F", "M"], size=number)),
        "stay": pa.array(stay, pa.float64()),
    }


def steps_of(number):
    return round(Fraction(min(max(number, 0), 32)) / 32 * STEPS)


def half_up(number):
    return int(number + Fraction(1, 2))


IN_STEPS = {
    "mean": lambda own: half_up(Fraction(sum(map(steps_of, own)), len(own))),
    "sum": lambda own: min(sum(map(steps_of, own)), STEPS),
    "max": lambda own: max(map(steps_of, own)),
    "count": lambda own: steps_of(len(own)),
}


def expected(columns, how):
    """The virtual cells of every sex, from the rows of every person and sex."""
    own = {}
    for who, sex, stay in zip(*(columns[name].to_pylist() for name in columns), strict=True):
        if who is not None and stay is not None:
            own.setdefault((who, sex), []).append(stay)
    cells = np.zeros((2, 2), dtype=np.int64)
    for (_, sex), numbers in own.items():
        a = IN_STEPS[how](numbers)
        cells["FM".index(sex)] += [STEPS - a, a]
    return cells


def counted(table, how, rows=2, attributes=(SEX, STAY)):
    reduced = {k: (how, a) for k, a in enumerate(attributes) if a.clip is not None}
    limit = PersonLimit("who", rows, reduced=reduced)
    subset = tuple(range(len(attributes)))
    ((_, counts),) = count_marginals(table, attributes, [subset], "drop", limit)
    return counts


@pytest.mark.parametrize("how", PER_PERSON)
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_makes_the_same_records(engines, engine, how, tmp_path):
    columns = rows_of()
    table = engines[engine](pa.table(columns), tmp_path)
    assert counted(table, how).tolist() == expected(columns, how).tolist()


@pytest.mark.integration
def test_so_does_spark(spark):
    columns = rows_of()
    types = "who string, sex string, stay double"
    table = spark.createDataFrame(
        [*zip(*(x.to_pylist() for x in columns.values()), strict=True)], types
    )
    for how in PER_PERSON:
        assert counted(table, how).tolist() == expected(columns, how).tolist()


def test_a_person_counts_in_at_most_k_groups():
    columns = rows_of()
    both = expected(columns, "mean").sum() // STEPS
    one = counted(pa.table(columns), "mean", rows=1).sum() // STEPS
    whos = {
        w
        for w, s in zip(columns["who"].to_pylist(), columns["stay"].to_pylist(), strict=True)
        if w is not None and s is not None
    }
    assert one == len(whos) < both


@pytest.mark.parametrize("how", PER_PERSON)
def test_for_every_small_table_one_person_adds_k_records_and_moves_none(how):
    """This is exactly what the sensitivity is based on, for a fixed key and any order of rows."""
    key, rng = bytes(16), np.random.default_rng(0)
    possible = list(itertools.product((1, 2), (1, STEPS // 3, STEPS + 1)))
    histories = [h for n in range(4) for h in itertools.combinations_with_replacement(possible, n)]

    def records(rows):
        order = rng.permutation(len(rows))
        who, group, code = np.array(rows, dtype=np.int64).reshape(-1, 3)[order].T
        people = People(who, lambda wanted: [bytes([k]) for k in wanted])
        limit = PersonLimit("who", 1, key, {1: (how, STAY)})
        kept = limited_arrays([group, code], people, limit)
        return sorted(map(tuple, np.stack(kept, axis=1).tolist()))

    for added in histories:
        other = [(0, *row) for row in histories[rng.integers(len(histories))]]
        before, after = records(other), records(other + [(1, *row) for row in added])
        for record in before:
            after.remove(record)
        assert len(after) == min(len(added), 1)


def test_a_record_does_not_depend_on_the_order_of_rows_or_on_others():
    rng = np.random.default_rng(0)
    group, code = rng.integers(1, 3, size=50), rng.integers(0, STEPS + 2, size=50)
    who = rng.integers(0, 8, size=50)
    reduced = {1: ("mean", STAY)}

    def of(person, order):
        columns, people = reduced_arrays(
            [group[order], code[order]], People(who[order], lambda wanted: []), reduced
        )
        own = people.index == person
        return sorted(zip(*(column[own].tolist() for column in columns), strict=True))

    for person in range(8):
        alone = np.flatnonzero(who == person)
        assert of(person, alone) == of(person, rng.permutation(50))


def plan_of(**options):
    schema = gn.Schema([SEX, STAY])
    return gn.plan(schema, [("sex", "stay")], gn.zCDP(1e6), **options)


def test_of_several_tables_a_person_has_a_record_in_each_group_of_all_of_them():
    """A mean by sex alone then counts a person once for every ward."""
    schema = gn.Schema([SEX, gn.Attribute("ward", ["A", "B"]), STAY])
    tables, options = [("sex", "stay"), ("ward", "stay")], {"person": "who", "per_person": "mean"}
    table = pa.table({"sex": ["F"] * 4, "ward": [*"AABB"], "stay": [1, 3, 8, 8], "who": [1] * 4})
    for rows, words in ((1, ""), (2, " in each group of sex × ward")):
        plan = gn.plan(schema, tables, gn.zCDP(1e6), rows_per_person=rows, **options)
        means = plan.release(table, on_outside="drop").means("stay", "sex")
        assert means.over == f"persons, each with the mean of their own numbers{words}"
        assert abs(means.counts[0] - rows) < 0.1


def test_tables_say_whose_mean_they_have():
    table = pa.table(rows_of())
    options = {"person": "who", "rows_per_person": 2}
    of_rows = plan_of(**options).release(table, on_outside="drop").means("stay", "sex")
    of_persons = plan_of(**options, per_person="mean").release(table, on_outside="drop")
    assert of_rows.over == "rows, at most 2 of each person"
    means = of_persons.means("stay", "sex")
    assert means.over == "persons, each with the mean of their own numbers"
    cells = expected(rows_of(), "mean")
    truth = 32 * cells[:, 1] / cells.sum(axis=1)
    assert (abs(means.estimate - truth) < 8 * means.standard_deviation + 1e-9).all()
    assert not (abs(of_rows.estimate - truth) < 8 * of_rows.standard_deviation).all()
    assert "one record of each person" in str(of_persons.plan)


def test_the_record_of_a_release_says_it_and_is_planned_again(tmp_path):
    plan = plan_of(person="who", per_person={"stay": "max"})
    release = plan.release(pa.table(rows_of()), out=tmp_path / "out", on_outside="drop")
    again = gn.TableRelease.load(tmp_path / "out")
    assert again.plan.per_person == {"stay": "max"}
    assert again.plan.request == plan.request
    assert np.array_equal(again["sex", "stay"].estimate, release["sex", "stay"].estimate)
    assert plan_of(person="who").request != plan.request
    assert "per_person" not in plan_of(person="who").asked.record()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"per_person": "mean"}, "expected person="),
        ({"per_person": "median", "person": "who"}, "'mean', 'sum', 'max', 'count'"),
        ({"per_person": {"sex": "mean"}, "person": "who"}, "each clipped number"),
        ({"per_person": {}, "person": "who"}, None),
        ({"per_person": "mean", "person": "who", "weight": gn.Weight("w", 2)}, "no weight="),
    ],
)
def test_what_makes_no_record_is_refused(options, said):
    if said is None:
        assert not plan_of(**options).per_person
        return
    with pytest.raises(ParameterError, match=said):
        plan_of(**options)


def test_sums_take_an_interval_from_zero_and_tables_of_categories_have_no_number():
    schema = gn.Schema([SEX, gn.Attribute("pay", clip=[10, 20])])
    with pytest.raises(ParameterError, match="begins at 0"):
        gn.plan(schema, [("pay",)], gn.zCDP(1), person="who", per_person="sum")
    with pytest.raises(ParameterError, match="no clipped number"):
        gn.plan(schema, [("sex",)], gn.zCDP(1), person="who", per_person="mean")


def test_releases_of_other_records_are_not_combined():
    table = pa.table(rows_of())
    one = plan_of(person="who", per_person="mean").release(table, on_outside="drop")
    two = plan_of(person="who", per_person="max").release(table, on_outside="drop")
    again = plan_of(person="who", per_person="mean").release(table, on_outside="drop")
    with pytest.raises(ParameterError, match="record of persons"):
        gn.combine([one, two])
    combined = gn.combine([one, again], same_rows="assumed").means("stay", "sex")
    assert combined.over == "persons, each with the mean of their own numbers"


@pytest.mark.integration
@pytest.mark.parametrize("engine", ["spark", "dask", "duckdb"])
@DASK
def test_ranges_are_found_and_means_released_where_tables_are_held(
    engine, engines, spark, tmp_path
):
    """At a large budget, so that the release tells whether each person has one record."""
    columns = rows_of(4000, persons=800)
    if engine == "spark":
        rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
        table = spark.createDataFrame([*rows], "who string, sex string, stay double")
    else:
        table = engines[engine](pa.table(columns), tmp_path)
    options = {"by": {"sex": ["F", "M"]}, "person": "who", "rows_per_person": 2}
    found = gn.estimators.column_means(table, "stay", gn.zCDP(1e4), **options)
    numbers = {}
    for who, sex, stay in zip(*(column.to_pylist() for column in columns.values()), strict=True):
        if who is not None and stay is not None:
            numbers.setdefault((who, sex), []).append(stay)
    for mean in found.means:
        own = [np.mean(x) for (_, sex), x in numbers.items() if sex == mean.group["sex"]]
        assert round(mean.count) == len(own)
        assert abs(mean.mean - np.mean(own)) <= mean.bias + 4 * mean.noise
