"""Every engine counts every marginal as a Counter in Python does."""

import datetime
import decimal
import gzip
import itertools
import math
import os
import traceback
from collections import Counter
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussnoise as gn
from gaussnoise.errors import DataError
from gaussnoise.tables.counting import count as _count
from gaussnoise.tables.counting import groups as _groups
from gaussnoise.tables.counting.count import count_marginals, passes
from gaussnoise.tables.counting.groups import group_subsets
from gaussnoise.tables.counting.impossible import excluded
from gaussnoise.tables.counting.persons import PersonLimit
from gaussnoise.tables.reading.frames import open_table
from gaussnoise.tables.schema.numbers import Weight

# warnings of dask, ibis and pyspark about their dependencies and unclosed sockets
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}:{module}")
    for kind in ("DeprecationWarning", "FutureWarning", "UserWarning")
    for module in (r"pyspark(\..*)?", r"dask(\..*)?", r"ibis(\..*)?", r"py4j(\..*)?")
]
pytestmark.append(pytest.mark.filterwarnings("ignore::ResourceWarning"))
pytestmark.append(
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
)  # Spark's start, after jax has run
pytestmark.append(
    pytest.mark.filterwarnings("ignore:Dask support is moving out of Narwhals:FutureWarning")
)

CANARY = "CANARY-7391"


def as_csv(table, folder, _):
    pyarrow.csv.write_csv(table, folder / "t.csv")
    return folder / "t.csv"


def as_gzip(table, folder, _):
    with gzip.open(folder / "t.csv.gz", "wb") as file:
        pyarrow.csv.write_csv(table, file)
    return folder / "t.csv.gz"


def as_parquet(table, folder, _):
    pyarrow.parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def as_dask(table, *_):
    dask = pytest.importorskip("dask.dataframe", reason="dask is missing")
    return dask.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=2)


def as_ibis(table, *_):
    ibis = pytest.importorskip("ibis", reason="ibis is missing")
    backend = ibis.duckdb.connect()
    backend.con.register("arrow", table)
    backend.con.execute("CREATE TABLE t AS SELECT * FROM arrow")
    return backend.table("t")


def as_spark(table, _, session):
    return session.createDataFrame(table)


ENGINES = {
    "pandas": lambda table, *_: table.to_pandas(),
    "pandas on arrow": lambda table, *_: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, *_: pl.DataFrame(table),
    "polars lazy": lambda table, *_: pl.DataFrame(table).lazy(),
    "pyarrow": lambda table, *_: table,
    "duckdb": lambda table, *_: duckdb.from_arrow(table),
    "ibis": as_ibis,
    "dask": as_dask,
    "spark": as_spark,
    "csv": as_csv,
    "csv.gz": as_gzip,
    "parquet": as_parquet,
}


EACH = [
    pytest.param(engine, marks=pytest.mark.integration if engine == "spark" else ())
    for engine in ENGINES
]


@pytest.fixture(params=EACH)
def engine(request):
    return request.param


@pytest.fixture
def build(engine, tmp_path, request):
    session = request.getfixturevalue("spark") if engine == "spark" else None
    return lambda columns: ENGINES[engine](pa.table(columns), tmp_path, session)


ATTRIBUTES = [
    gn.Attribute("text", ["b", "a", 'say "hi", you'], other="rest"),
    gn.Attribute("flag", [True, False]),
    gn.Attribute("code", [3, -1], other="rest"),
    gn.Attribute("number", edges=[-math.inf, 0, 0.5, 10], other="rest"),
    gn.Attribute("whole", [0, 1]),
]
TYPES = [pa.string(), pa.bool_(), pa.int64(), pa.float64(), pa.int64()]
VALUES = {
    "text": {"b": 0, "a": 1, 'say "hi", you': 2, "unseen": 3, None: 3},
    "flag": {True: 0, False: 1},
    "code": {3: 0, -1: 1, 8: 2},
    "number": {-2.0: 0, 0.0: 1, 0.5: 2, 10.0: 2, 11.0: 3, math.inf: 3, None: 3},
    "whole": {0: 0, 1: 1},
}
SUBSETS = [(), (0,), (2,), *itertools.combinations(range(5), 2), (0, 1, 3)]


def records(number):
    rng = np.random.default_rng(1)
    return [[list(v)[rng.integers(len(v))] for v in VALUES.values()] for _ in range(number)]


def columns(rows):
    return {
        name: pa.array([row[k] for row in rows], type=TYPES[k]) for k, name in enumerate(VALUES)
    }


def brute_force(codes, sizes, subsets):
    tables = {}
    for S in subsets:
        found = Counter(tuple(code[i] for i in S) for code in codes)
        cells = itertools.product(*(range(sizes[i]) for i in S))
        tables[S] = np.array([found[cell] for cell in cells], dtype=np.int64).reshape(
            [sizes[i] for i in S]
        )
    return tables


def check(table, attributes, subsets, codes, **options):
    found = list(count_marginals(table, attributes, subsets, **options))
    expected = brute_force(codes, [a.size for a in attributes], subsets)
    assert sorted(S for S, _ in found) == sorted(subsets)
    for S, counts in found:
        assert counts.dtype == np.int64
        assert counts.shape == expected[S].shape
        assert np.array_equal(counts, expected[S])


@pytest.mark.integration
def test_spark_counts_dates_for_any_local_time_of_its_session(spark):
    """All other tests of dates, in all other engines, are in ``test_dates.py``."""
    from pyspark.sql import types

    edges = ["1969-12-31T23:59:59.5", "2020-03-08T02:30:00.000001", "2020-03-08T03:30:00.25"]
    cells = {
        None: 2,
        "1969-12-31 23:59:59.499999": 2,
        "1969-12-31 23:59:59.5": 0,
        "2020-03-08 02:30:00": 0,
        "2020-03-08 02:30:00.000001": 1,  # no time in New York
        "2020-03-08 03:30:00.25": 1,
        "2020-03-08 03:30:00.250001": 2,
        "9999-12-31 23:59:59.999999": 2,
    }
    stamps = [None if text is None else datetime.datetime.fromisoformat(text) for text in cells]
    texts = [*cells, "2020-03-08T02:30:00Z", "epoch", "2020-03-08\n"]
    days = [datetime.date(1969, 12, 31), datetime.date(2020, 3, 8), datetime.date(2020, 3, 9), None]
    columns = {  # of as many rows
        "stamp": (
            types.TimestampNTZType(),
            [*stamps, None, None, None],
            [*cells.values(), 2, 2, 2],
        ),
        "text": (types.StringType(), texts, [*cells.values(), 2, 2, 2]),
        "day": (types.DateType(), days * 2 + days[1:], [2, 0, 2, 2] * 2 + [0, 2, 2]),
    }
    schema = types.StructType([types.StructField(n, kind) for n, (kind, *_) in columns.items()])
    rows = list(zip(*(values for _, values, _ in columns.values()), strict=True))
    codes = list(zip(*(expected for *_, expected in columns.values()), strict=True))
    attributes = [gn.Attribute(name, edges=edges, other="rest") for name in columns]
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        check(spark.createDataFrame(rows, schema), attributes, [(0, 1, 2)], codes)
        local = types.StructType([types.StructField("stamp", types.TimestampType())])
        with pytest.raises(DataError, match=r"'stamp'.*got Datetime with a time zone"):
            list(count_marginals(spark.createDataFrame([], local), attributes[:1], [(0,)]))
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_every_engine_agrees_with_a_counter(build):
    rows = records(300)
    codes = [[v[x] for v, x in zip(VALUES.values(), row, strict=True)] for row in rows]
    check(build(columns(rows)), ATTRIBUTES, SUBSETS, codes)


@pytest.mark.integration
def test_spark_counts_at_most_k_rows_of_each_person(spark):
    """This is the test of every engine in test_persons.py."""
    rows = [("a", 0)] * 5 + [("b", 1)] * 2 + [(None, 1), ("", 0), ("a", 7)]
    frame = spark.createDataFrame(rows, "who string, x int")
    x, limit = gn.Attribute("x", [0, 1]), PersonLimit("who", 3)
    ((_, found),) = count_marginals(frame, [x], [(0,)], "drop", limit)
    assert found.tolist() == [3, 2]
    # floats that are integers have the same names as these
    numbers = [(k % 7, k % 30) for k in range(210)]
    x, limit = gn.Attribute("x", list(range(30))), PersonLimit("who", 3, bytes(16))
    integers, floats = (
        next(count_marginals(spark.createDataFrame(rows, kind), [x], [(0,)], "drop", limit))[1]
        for rows, kind in (
            (numbers, "who long, x int"),
            ([*((float(k), v) for k, v in numbers), (math.nan, 0)], "who double, x int"),
        )
    )
    assert integers.tolist() == floats.tolist()
    assert integers.sum() == 21


def test_empty_tables_count_zero(build):
    check(build(columns([])), ATTRIBUTES, SUBSETS, [])


def test_the_total_needs_no_attribute(build):
    check(build({"a": ["x", "y", "x"]}), [], [()], [()] * 3)


AMOUNTS = [0.0, 1.0, -7.5, 99.999, 100.0, 1e300, math.inf, -math.inf, 33.3, 1 / 3, None]
CLIPPED = [
    gn.Attribute("text", ["b", "a"], other="rest"),
    gn.Attribute("amount", clip=[1, 100], other="none"),
    gn.Attribute("small", clip=[-0.1, 0.7], base={"kind": "moments", "degrees": [0, 1, 2]}),
]
UNITS = 2**20


def amounts(number):
    rng = np.random.default_rng(3)
    text = [["b", "a", "unseen"][k] for k in rng.integers(3, size=number)]
    amount = [AMOUNTS[k] for k in rng.integers(len(AMOUNTS), size=number)]
    return list(zip(text, amount, rng.normal(size=number).tolist(), strict=True))


def parts(x, low, high, cells):
    """What a number adds to its virtual cells, in exact rational numbers."""
    if x is None:
        return [0] * (cells - 1) + [UNITS]
    t = (Fraction(min(max(x, low), high)) - Fraction(low)) / (Fraction(high) - Fraction(low))
    return [(1 - t) * UNITS, t * UNITS, 0]


def amount_columns(rows):
    types = [pa.string(), pa.float64(), pa.float64()]
    names = ["text", "amount", "small"]
    return {name: pa.array([row[k] for row in rows], type=types[k]) for k, name in enumerate(names)}


def test_every_engine_sums_the_same_integers(build, engine):
    rows = amounts(200)
    subsets = [(0, 1), (0, 2), (0,), ()]
    found = dict(count_marginals(build(amount_columns(rows)), CLIPPED, subsets))
    here = dict(count_marginals(pa.table(amount_columns(rows)), CLIPPED, subsets))
    for S in subsets:
        assert found[S].dtype == np.int64
        assert np.array_equal(found[S], here[S])
    # row counts are exact, and sums are exact to half a step a row
    assert found[()] == UNITS * len(rows)
    exact = np.zeros((3, 3), dtype=object)
    for text, amount, _ in rows:
        exact[{"b": 0, "a": 1}.get(text, 2)] += np.array(parts(amount, 1, 100, 3))
    assert np.abs(found[0, 1].astype(object) - exact).max() <= len(rows) / 2
    assert np.array_equal(found[0, 1].sum(axis=1), found[(0,)])
    assert np.array_equal(found[0, 1][:, 2].astype(object), exact[:, 2])
    t = np.clip((np.array([row[2] for row in rows]) + 0.1) / 0.8, 0, 1)
    bernstein = np.array([(1 - t) ** 2, 2 * t * (1 - t), t**2]).sum(axis=1)
    assert np.abs(found[0, 2].sum(axis=0) / UNITS - bernstein).max() < 3 * len(rows) / UNITS


@pytest.mark.parametrize("attributes", [[], CLIPPED[:2]])
def test_every_engine_weighs_rows_alike(build, attributes):
    rows = amounts(80)
    weight = Weight("small", 0.5)
    subsets = [(0, 1), (0,), ()] if attributes else [()]
    options = ([*attributes], subsets, "refuse", None, weight)
    found = dict(count_marginals(build(amount_columns(rows)), *options))
    here = dict(count_marginals(pa.table(amount_columns(rows)), *options))
    assert all(np.array_equal(found[S], here[S]) for S in subsets)
    w = np.rint(np.clip([row[2] / 0.5 for row in rows], 0, 1) * UNITS)
    assert found[()] == w.sum()
    if attributes:
        has = np.array([row[1] is not None for row in rows])
        t = np.array([float(parts(row[1], 1, 100, 3)[1]) for row in rows]) / UNITS
        expected = [(w * (1 - t))[has].sum(), (w * t)[has].sum(), w[~has].sum()]
        assert np.abs(found[0, 1].sum(axis=0) - expected).max() <= len(rows)


def test_every_engine_refuses_or_drops_what_is_no_number(build, engine):
    columns = amount_columns([("b", 5.0, 0.5), ("a", None, 0.25), ("a", math.nan, 0.5)])
    strict = [CLIPPED[0], gn.Attribute("amount", clip=[1, 100])]
    table = build(columns)
    with pytest.raises(DataError, match="'amount': expected only numbers"):
        list(count_marginals(table, strict, [(0, 1)]))
    with pytest.raises(DataError, match="'amount': expected only numbers"):
        list(count_marginals(table, strict[:1], [(0,)], "refuse", None, Weight("amount", 2)))
    ((_, counts),) = count_marginals(table, strict, [(0, 1)], "drop")
    assert counts.sum() == UNITS
    ((_, counts),) = count_marginals(table, strict[:1], [(0,)], "drop", None, Weight("amount", 2))
    assert counts.tolist() == [UNITS, 0, 0]
    ((_, counts),) = count_marginals(table, CLIPPED[:2], [(0, 1)])
    assert counts[:, 2].tolist() == [0, 2 * UNITS, 0]


def test_numbers_of_any_type_are_clipped_alike():
    attribute = gn.Attribute("x", clip=[0, 10], other="none")
    columns = [
        pd.Series([2, 30, -4, None], dtype="Int64"),
        pd.Series([2.0, 30.0, -4.0, None]),
        pd.Series([decimal.Decimal("2"), 10**400, -(10**400), "word"], dtype=object),
        pd.Series([2, math.inf, np.float32(-4), "yes"], dtype=object),
        pd.Series([Fraction(2), 30, -4, decimal.Decimal("NaN")], dtype=object)[1:],
    ]
    for column in columns:
        ((_, counts),) = count_marginals(pd.DataFrame({"x": column}), [attribute], [(0,)], "drop")
        kept = len(column) == 4
        share = int(Fraction(UNITS, 5) + Fraction(1, 2)) if kept else 0
        assert counts.tolist() == [
            UNITS + kept * (UNITS - share), UNITS + share, UNITS,
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "cells"),
    [
        # Spark would take a minute; the same code counts ibis and dask
        *((engine, 1) for engine in ENGINES if engine != "spark"),
        *((engine, 8) for engine in ("pandas", "polars lazy", "csv", "ibis")),
    ],
)
def test_several_passes_agree_with_a_counter(build, engine, cells, monkeypatch):
    for most in ("_GROUP_CELLS", "_QUERY_CELLS", "PASS_CELLS"):
        monkeypatch.setattr(_count, most, cells)
    rows = records(60)
    codes = [[v[x] for v, x in zip(VALUES.values(), row, strict=True)] for row in rows]
    check(build(columns(rows)), ATTRIBUTES, SUBSETS, codes)


def test_more_columns_than_one_grouping_number_has_bits(tmp_path):
    data = np.random.default_rng(2).integers(2, size=(40, 70))  # a number has 63
    table = pa.table({f"a{k}": data[:, k] for k in range(70)})
    attributes = [gn.Attribute(f"a{k}", [0, 1]) for k in range(70)]
    subsets = [(k, k + 1) for k in range(69)]
    check(as_parquet(table, tmp_path, None), attributes, subsets, data.tolist())


@settings(derandomize=True, deadline=None, database=None, max_examples=40)
@given(st.data())
def test_random_subsets(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    drawn = data.draw(
        st.sets(st.sets(st.integers(0, len(sizes) - 1)).map(lambda S: tuple(sorted(S))), max_size=8)
    )
    subsets = list(drawn | {(k,) for k in range(len(sizes))})
    codes = data.draw(
        st.lists(st.tuples(*(st.integers(0, n - 1) for n in sizes)), min_size=1, max_size=10)
    )
    table = pd.DataFrame({f"a{k}": [code[k] for code in codes] for k in range(len(sizes))})
    check(table, [gn.Attribute(f"a{k}", range(n)) for k, n in enumerate(sizes)], subsets, codes)


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(st.data(), st.sampled_from([1, 10, 100]))
def test_groups_hold_every_subset_once_and_stay_small(data, most):
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=7))
    drawn = data.draw(
        st.sets(
            st.sets(st.integers(0, len(sizes) - 1)).map(lambda S: tuple(sorted(S))), max_size=12
        )
    )
    groups = group_subsets(drawn, sizes, most)
    assert sorted(S for inside in groups.values() for S in inside) == sorted(drawn)
    for group, inside in groups.items():
        assert all(set(S) <= set(group) for S in inside)
        assert group == tuple(sorted(set().union(*inside)))
        largest = max(math.prod(sizes[i] for i in S) for S in inside)
        assert math.prod(sizes[i] for i in group) <= max(most, largest)
    batches = list(passes(groups, sizes))
    assert not batches or {i for group in batches[0] for i in group} == set(range(len(sizes)))
    assert [S for batch in batches for inside in batch.values() for S in inside] == list(
        itertools.chain.from_iterable(groups.values())
    )


def test_groups_are_few():
    pairs = list(itertools.combinations(range(10), 2))
    assert len(group_subsets(pairs, [2, 3, 4, 5, 6, 7, 8, 9, 10, 12], 2**16)) <= 7
    assert len(group_subsets(pairs, [2] * 10, 2**16)) == 1
    # tables without common attributes, too
    assert group_subsets([()], [], 1) == {(): [()]}
    apart = [(0, 1), (2, 3), (4, 5), (6,)]
    assert group_subsets(apart, [3] * 7, 3**7).keys() == {tuple(range(7))}
    assert len(group_subsets(apart, [3] * 7, 3**7 - 1)) == 2
    # of seven attributes with 35 triples, 64 groups have at most twice what no groups could avoid
    triples = list(itertools.combinations(range(20), 3))
    assert len(group_subsets(triples, [3] * 20, 3**7)) <= 2 * math.ceil(len(triples) / 35)


def test_looks_at_tables_are_in_proportion_to_their_number(monkeypatch):
    """One group after the other does not look at all tables that are left."""
    looks = 0

    class Counted(dict):
        def __contains__(self, key):
            nonlocal looks
            looks += 1
            return super().__contains__(key)

        def items(self):
            nonlocal looks
            looks += len(self)
            return super().items()

    class Left(_groups._Ungrouped):
        def __init__(self, subsets):
            super().__init__(subsets)
            self._left = Counted(self._left)
            self._others = {size: Counted(own) for size, own in self._others.items()}

    monkeypatch.setattr(_groups, "_Ungrouped", Left)
    each = []
    for attributes in (20, 40):
        looks = 0
        triples = list(itertools.combinations(range(attributes), 3))
        group_subsets(triples, [3] * attributes, 3**7)
        each.append(looks / len(triples))
    assert 1 < each[1] < 1.1 * each[0]  # of 9880 tables and 1140, half of which are left on average


@pytest.mark.parametrize(("attributes", "size", "way"), [(2000, 3, 1), (100, 10, 2)])
def test_wide_files_are_read_once(attributes, size, way):
    """Groups of 2^16 cells took 4 and 26 passes over the rows of these tables."""
    subsets = list(itertools.combinations(range(attributes), way))
    groups = group_subsets(subsets, [size] * attributes, _count._GROUP_CELLS)
    assert len(list(passes(groups, [size] * attributes))) == 1


def said(error):
    seen, waiting, parts = set(), [error], []
    while waiting:
        error = waiting.pop()
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            parts += [str(error), repr(error.args), *traceback.format_exception(error)]
            waiting += [error.__cause__, error.__context__]
    return "\n".join(parts)


def refusal(table, attributes, subsets):
    with pytest.raises(DataError) as caught:
        next(count_marginals(table, attributes, subsets))
    assert caught.value.__context__ is None
    assert CANARY not in said(caught.value)
    assert "7391" not in said(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("values", "attribute"),
    [
        (["x", CANARY], gn.Attribute("a", ["x"])),
        (["x", None], gn.Attribute("a", ["x"])),
        ([1, 7391], gn.Attribute("a", [1])),
        ([0.5, 7391.5], gn.Attribute("a", edges=[0, 1])),
    ],
    ids=["text", "null", "integer", "number"],
)
def test_refusals_come_first_and_name_the_column_only(build, engine, values, attribute):
    if engine == "spark" and values == [1, 7391]:
        pytest.skip("the next test of Spark refuses an integer")
    table = build({"a": values, "b": [1, 1]})
    assert "column 'a'" in refusal(table, [gn.Attribute("b", [1]), attribute], [(0, 1), (0,)])


def test_every_column_is_checked_before_anything_is_yielded(tmp_path, monkeypatch):
    monkeypatch.setattr(_count, "_GROUP_CELLS", 1)
    monkeypatch.setattr(_count, "PASS_CELLS", 1)
    table = as_parquet(pa.table({"a": [1, 1], "b": [1, 7391]}), tmp_path, None)
    assert "column 'b'" in refusal(
        table, [gn.Attribute("a", [1, 2]), gn.Attribute("b", [1])], [(0,), (1,)]
    )


def test_missing_columns_are_named(build):
    assert "'missing'" in refusal(build({"b": [CANARY]}), [gn.Attribute("missing", [1])], [(0,)])


@pytest.mark.parametrize("write", [as_csv, as_gzip, as_parquet])
def test_a_file_must_not_change_between_passes(tmp_path, write, monkeypatch):
    monkeypatch.setattr(_count, "_GROUP_CELLS", 1)
    monkeypatch.setattr(_count, "PASS_CELLS", 1)
    path = write(pa.table({"a": [1, 2], "b": [1, 2]}), tmp_path, None)
    attributes = [gn.Attribute("a", [1, 2]), gn.Attribute("b", [1, 2])]
    marginals = count_marginals(path, attributes, [(0,), (1,)])
    next(marginals)
    write(pa.table({"a": [1, 2, 2], "b": [1, 2, 2]}), tmp_path, None)
    with pytest.raises(DataError, match="it changed while it was read") as caught:
        list(marginals)
    assert caught.value.__context__ is None


@pytest.mark.integration
def test_spark_gives_back_what_it_held(spark):
    table = as_spark(pa.table({"a": [1, 2]}), None, spark)
    assert len(list(count_marginals(table, [gn.Attribute("a", [1, 2])], [(0,)]))) == 1
    assert "column 'a'" in refusal(table, [gn.Attribute("a", [1])], [(0,)])
    assert spark.sparkContext._jsc.sc().getPersistentRDDs().isEmpty()


def test_nothing_is_written_beside_the_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = as_parquet(pa.table({"a": [1, 2]}), tmp_path, None)
    list(count_marginals(path, [gn.Attribute("a", [1, 2])], [(0,)]))
    assert os.listdir() == ["t.parquet"]
    relation = open_table(path).to_native()
    assert relation.query("t", "SELECT current_setting('temp_directory')").fetchall() == [("",)]


def test_rows_without_a_cell_can_be_left_out_of_every_table(build):
    rows = records(200)
    for k, value in [(2, 8), (3, None), (4, 7), (4, -1), (4, 7)]:
        rows.append([*rows[k]])
        rows[-1][k] = value
    fitting = [row for row in rows if row[4] in VALUES["whole"]]
    codes = [[v[x] for v, x in zip(VALUES.values(), row, strict=True)] for row in fitting]
    check(build(columns(rows)), ATTRIBUTES, SUBSETS, codes, on_outside="drop")


# All values that pandas may hold, row by row.


class Evil:
    """An object whose comparison raises an error that may hold secrets."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        raise ValueError(CANARY)


DROPPED = [
    gn.Attribute("text", ["x", "y", "3", "true"], other="rest"),
    gn.Attribute("code", [3, -1, 2**53 + 1, 2**64, 0]),
    gn.Attribute("flag", [True, False], other="rest"),
    gn.Attribute("number", edges=[-1, 0, 2.5, 2**53 + 2, math.inf]),
]
THINGS = [
    "x",
    "y",
    "",
    "3",
    "true",
    3,
    -1,
    2**53 + 1,
    2**53,
    2**64,
    0,
    True,
    False,
    -0.0,
    2.5,
    3.0,
    1e16,
    1e300,
    math.inf,
]
THINGS += [
    math.nan,
    None,
    pd.NA,
    pd.NaT,
    decimal.Decimal(3),
    decimal.Decimal("2.50"),
    decimal.Decimal("sNaN"),
]
THINGS += [
    decimal.Decimal("1e5000"),
    np.float32(0.1),
    np.int8(-1),
    np.bool_(True),
    np.str_("x"),
    np.timedelta64(3),
]
THINGS += [
    np.datetime64(3, "s"),
    datetime.date(2020, 1, 2),
    datetime.timedelta(3),
    b"x",
    [3],
    {3: 3},
    (3,),
    3 + 0j,
]
THINGS += [
    "\ud800",
    "x\0",
    Evil(),
    object,
    float,
    np.array([3]),
    np.float64("nan"),
    10**400,
    -(10**400),
]


def number(value):
    """The real number of a value once pandas has made a double of it, if it is finite."""
    if isinstance(value, complex) and value.imag == 0:
        value = value.real
    if isinstance(value, np.timedelta64):
        return None
    if isinstance(value, bool | np.bool_ | str) and str(value).lower() in ("true", "false"):
        return Fraction(str(value).lower() == "true")  # of which one null may make a number
    try:
        real = (
            float(value)
            if isinstance(value, str | int | float | decimal.Decimal | np.number)
            else None
        )
    except (ValueError, OverflowError):
        return None
    return Fraction(real) if real is not None and math.isfinite(real) else None


def meant(value):
    """Return what a value is, for any type that the other rows of its column give it."""
    real = number(value)
    if real is not None:
        return (real, "number") if abs(real) < 2**53 else None
    return (value, "text") if isinstance(value, str) and value else None


def cell(attribute, value):
    """The cell by the meaning of a value; None if there is no cell."""
    found = None
    if attribute.edges is not None:
        real = number(value)
        if real is not None and attribute.edges[0] <= real <= attribute.edges[-1]:
            found = sum(real >= edge for edge in attribute.edges[1:-1])
    elif (known := meant(value)) is not None:
        categories = [meant(category) for category in attribute.categories]
        found = categories.index(known) if known in categories else None
    return attribute.size - 1 if found is None and attribute.other is not None else found


def dropped(rows):
    """The cells of the rows that have one in every column."""
    cells = [[cell(a, value) for a, value in zip(DROPPED, row, strict=True)] for row in rows]
    return [row for row in cells if None not in row]


def pandas_frame(rows, kind):
    columns = []
    for k in range(len(DROPPED)):
        values = np.empty(len(rows), dtype=object)
        values[:] = [row[k] for row in rows]
        columns.append(pd.Series(values, dtype=object))
    frame = pd.concat(columns, axis=1, keys=[a.name for a in DROPPED])
    return frame.infer_objects() if kind == "inferred" else frame


def things(attribute):
    held = [*THINGS, *(attribute.categories or ()), *(attribute.categories or ())]
    return st.integers(0, len(held) - 1).map(held.__getitem__)  # not sampled: some cannot be hashed


ROW = st.tuples(*map(things, DROPPED))


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(rows=st.lists(ROW, max_size=6), one=ROW)
def test_no_row_of_pandas_is_refused_and_one_more_changes_one_count(rows, one):
    subsets = [(), (0,), (1, 3), (0, 1, 2, 3)]
    for held in (rows, [*rows, one]):
        check(pandas_frame(held, "objects"), DROPPED, subsets, dropped(held), on_outside="drop")


@settings(derandomize=True, deadline=None, database=None, max_examples=40)
@given(rows=st.lists(ROW, max_size=4))
def test_no_row_of_pandas_is_refused_for_any_type_that_pandas_infers(rows):
    try:
        frame = pandas_frame(rows, "inferred")
    except (OverflowError, UnicodeEncodeError):
        return  # pandas has no column for it
    held = list(zip(*(frame[name].tolist() for name in frame), strict=True))
    check(frame, DROPPED, [(), (0, 1, 2, 3)], dropped(held), on_outside="drop")


@pytest.mark.parametrize("value", THINGS, ids=lambda value: type(value).__name__)
def test_one_thing_in_a_good_column(value):
    good = ["x", 3, True, 0.5]
    rows = [good] * 3 + [[*good[:k], value, *good[k + 1 :]] for k in range(4)]
    check(
        pandas_frame(rows, "objects"), DROPPED, [(), (0, 1, 2, 3)], dropped(rows), on_outside="drop"
    )


@pytest.mark.parametrize(
    ("engine", "number"),
    [
        *((engine, 300) for engine in ENGINES if engine != "spark"),
        ("csv", 2000),
        ("ibis", 2000),
        pytest.param("spark", 300, marks=pytest.mark.integration),
    ],
)
def test_many_cells_are_found_by_every_engine(build, number):
    codes = np.random.default_rng(3).integers(number, size=400).tolist()
    attributes = [
        gn.Attribute("text", [f"ü{k}" for k in range(number)]),
        gn.Attribute("code", [3 * k - 600 for k in range(number)], other="rest"),
        gn.Attribute("number", edges=[k**2 for k in range(number + 1)]),
        gn.Attribute("whole", edges=[k**2 for k in range(number + 1)], other="rest"),
    ]
    table = build(
        {
            "text": [f"ü{k}" for k in codes],
            "code": [3 * k - 600 for k in codes[:-2]] + [1, 2],
            "number": [float(k**2) for k in codes],
            "whole": [(k + 1) ** 2 - 1 for k in codes[:-2]] + [-1, number**2 + 1],
        }
    )
    rows = [[k] * 4 for k in codes]
    rows[-2], rows[-1] = (
        [codes[-2], number, codes[-2], number],
        [codes[-1], number, codes[-1], number],
    )
    check(table, attributes, [(k,) for k in range(4)], rows)


def test_types_are_named_without_what_they_hold():
    """Names of enumerations and structures would write out their values."""
    enum = duckdb.sql(f"SELECT '{CANARY}'::ENUM('{CANARY}', 'y') AS a")
    struct = pa.table({"a": [{CANARY: 1}]})
    for table in (
        enum,
        struct,
        pl.DataFrame(struct),
        pl.DataFrame({"a": [CANARY]}, schema={"a": pl.Enum([CANARY])}),
    ):
        for attribute in (gn.Attribute("a", [1]), gn.Attribute("a", edges=[0, 1])):
            for on_outside in ("refuse", "drop"):
                with pytest.raises(DataError, match=r"got (Enum|Struct)\b") as caught:
                    list(count_marginals(table, [attribute], [(0,)], on_outside))
                assert CANARY not in said(caught.value)
    ordered = pd.DataFrame({"a": pd.Categorical([CANARY], [CANARY, "y"], ordered=True)})
    assert "got Enum" in refusal(ordered, [gn.Attribute("a", [1])], [(0,)])
    with pytest.raises(DataError, match="got Struct") as caught:
        gn.Schema.draft(struct)
    assert CANARY not in said(caught.value)


def test_a_row_with_a_null_leaves_one_count_fewer(build, engine):
    """It holds for any type that the engine gives a column of integers with a null."""
    attributes = [gn.Attribute("a", [1, 2]), gn.Attribute("b", ["x"])]
    table = {"a": pa.array([1, 2, 2], type=pa.int64()), "b": ["x"] * 3}
    gap = {"a": pa.array([1, 2, 2, None], type=pa.int64()), "b": ["x"] * 4}
    for columns in (table, gap):
        check(
            build(columns),
            attributes,
            [(), (0,), (0, 1)],
            [(0, 0), (1, 0), (1, 0)],
            on_outside="drop",
        )


def test_text_is_compared_by_its_bytes():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (a VARCHAR COLLATE NOCASE)")
    connection.execute("INSERT INTO t VALUES ('x'), ('X'), ('X')")
    check(connection.table("t"), [gn.Attribute("a", ["x", "X"])], [(0,)], [(0,), (1,), (1,)])


@pytest.mark.integration
def test_spark_logs_no_values(spark, capfd):
    from pyspark.sql import functions

    spark.sparkContext.setLogLevel("INFO")
    table = spark.createDataFrame([("1",), (CANARY,)], "a string").select(
        functions.col("a").cast("long")
    )
    message = refusal(table, [gn.Attribute("a", [1])], [(0,)])
    spark.sparkContext.setLogLevel("OFF")
    captured = capfd.readouterr()
    assert CANARY not in message + captured.out + captured.err


@pytest.mark.integration
def test_spark_logs_afterwards_as_it_did_before(spark):
    """A shell hides what is below a level that setLogLevel forgets."""
    internal = spark.sparkContext._jvm.org.apache.spark.internal
    logging = getattr(getattr(internal, "Logging$"), "MODULE$")
    before = logging.sparkShellThresholdLevel()
    warn = spark.sparkContext._jvm.org.apache.logging.log4j.Level.WARN
    spark.sparkContext.setLogLevel("INFO")
    getattr(logging, "sparkShellThresholdLevel_$eq")(warn)
    table = spark.createDataFrame([("x",)], "a string")
    list(count_marginals(table, [gn.Attribute("a", ["x"])], [(0,)]))
    root = spark.sparkContext._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    assert (str(root.getLevel()), str(logging.sparkShellThresholdLevel())) == ("INFO", "WARN")
    spark.sparkContext.setLogLevel("OFF")
    getattr(logging, "sparkShellThresholdLevel_$eq")(before)


NULLS = {
    "polars": lambda: pl.DataFrame({"x": [None, None]}),
    "lazy polars": lambda: pl.DataFrame({"x": [None, None]}).lazy(),
    "pyarrow": lambda: pa.table({"x": pa.nulls(2)}),
    "duckdb": lambda: duckdb.sql("SELECT NULL AS x FROM range(2)"),
}


@pytest.mark.parametrize("engine", NULLS)
@pytest.mark.parametrize(
    "attribute",
    [
        gn.Attribute("x", ["u"]),
        gn.Attribute("x", range(300)),
        gn.Attribute("x", edges=[0, 1]),
        gn.Attribute("x", [True]),
    ],
)
def test_a_column_of_nulls_alone_is_not_refused_where_rows_are_dropped(engine, attribute):
    ((_, counts),) = count_marginals(NULLS[engine](), [attribute], [(0,)], "drop")
    assert not counts.any()
    other = gn.Attribute("x", attribute.categories, edges=attribute.edges, other="rest")
    ((_, counts),) = count_marginals(NULLS[engine](), [other], [(0,)], "drop")
    assert counts.tolist() == [0] * attribute.size + [2]


@pytest.mark.parametrize("index", [None, [7, 7, 7, 7], [3, 1, 2, 0], list("abba")])
def test_rows_of_dask_are_left_out_partition_by_partition(index):
    dask = pytest.importorskip("dask.dataframe", reason="dask is missing")
    frame = pd.DataFrame({"a": ["x", "x", "z", "x"], "b": ["x", "y", "x", "x"]}, index=index)
    table = dask.from_pandas(frame, npartitions=2, sort=False)
    attributes = [gn.Attribute("a", ["x"]), gn.Attribute("b", ["x"])]
    check(table, attributes, [(), (0,), (0, 1)], [(0, 0), (0, 0)], on_outside="drop")


def test_groups_of_dask_are_added_up_over_any_number_of_partitions(monkeypatch):
    dask = pytest.importorskip("dask.dataframe", reason="dask is missing")
    rows = {"a": [*"xyxxy"], "b": [0.0, 1.0, 4.0, 4.0, 2.0]}
    parts = [pd.DataFrame(rows)[k:n] for k, n in ((0, 2), (2, 2), (2, 3), (3, 5))]  # one is empty
    table = dask.from_map(lambda k: parts[k], range(4))
    attributes = [gn.Attribute("a", ["x", "y"]), gn.Attribute("b", clip=[0, 4])]
    for most in (1, 3, 4):
        monkeypatch.setattr(_count, "_PARTITIONS", most)
        found = dict(count_marginals(table, attributes, [(), (0,), (0, 1)], unit=4))
        assert (found[()], found[0,].tolist()) == (20, [12, 8])
        assert found[0, 1].tolist() == [[4, 8], [5, 3]]  # quarters of numbers from 0 to 4


def test_every_engine_finds_impossible_combinations(build):
    """They are found by their codes: of labels, bins and catch-alls."""
    rules = [
        {"flag": True, "code": ["3", "rest"]},
        {"text": ["rest", "a"], "number": ["rest"], "whole": 1},
    ]
    found = excluded(gn.Schema(ATTRIBUTES, rules), range(5))
    rows = records(200)
    codes = [[VALUES[n][v] for n, v in zip(VALUES, row, strict=True)] for row in rows]

    def possible(code):
        text, flag, sign, number, whole = code
        return not (flag == 0 and sign in (0, 2)) and not (
            text in (1, 3) and number == 3 and whole == 1
        )

    kept = [code for code in codes if possible(code)]
    assert 0 < len(kept) < len(codes)
    table = build(columns(rows))
    with pytest.raises(DataError, match="which the schema calls impossible"):
        next(count_marginals(table, ATTRIBUTES, SUBSETS, impossible=found))
    counted = dict(count_marginals(table, ATTRIBUTES, SUBSETS, "drop", impossible=found))
    expected = brute_force(kept, [a.size for a in ATTRIBUTES], SUBSETS)
    for S in SUBSETS:
        assert (counted[S] == expected[S]).all()
    good = [row for row, code in zip(rows, codes, strict=True) if possible(code)]
    again = dict(count_marginals(build(columns(good)), ATTRIBUTES, SUBSETS, impossible=found))
    assert (again[0, 1] == expected[0, 1]).all()


@pytest.mark.parametrize("bins", [31, 32, 33, 200])
def test_numbers_beside_edges_are_counted_alike_with_few_edges_and_with_many(bins):
    """Few edges are compared one by one, many are searched."""
    edges = [k / 4 for k in range(bins + 1)]
    beside = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)])
    values = [*beside.tolist(), math.nan, math.inf, -math.inf, None, -0.0]
    attribute = gn.Attribute("x", edges=edges, other="none")
    expected = Counter(
        min(int(v * 4), bins - 1) if v is not None and 0 <= v <= edges[-1] else bins for v in values
    )
    for table in (
        pa.table({"x": values}),
        pl.DataFrame({"x": values}),
        pd.DataFrame({"x": values}),
    ):
        ((_, counts),) = count_marginals(table, [attribute], [(0,)])
        assert counts.tolist() == [expected[k] for k in range(bins + 1)]
