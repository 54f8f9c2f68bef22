"""Every engine counts every marginal like a Counter in Python."""

import gzip
import itertools
import math
import os
import shutil
import traceback
from collections import Counter

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
from gaussnoise.tables import _count
from gaussnoise.tables._count import count_marginals, group_subsets, passes

# what dask, ibis and pyspark say about their own dependencies and unclosed sockets
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}:{module}")
    for kind in ("DeprecationWarning", "FutureWarning", "UserWarning")
    for module in (r"pyspark(\..*)?", r"dask(\..*)?", r"ibis(\..*)?", r"py4j(\..*)?")
]
pytestmark.append(pytest.mark.filterwarnings("ignore::ResourceWarning"))
pytestmark.append(pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"))  # Spark's start, once jax has run
pytestmark.append(pytest.mark.filterwarnings("ignore:Dask support is moving out of Narwhals:FutureWarning"))

CANARY = "CANARY-7391"


@pytest.fixture(scope="module")
def spark():
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Java is missing: Spark is not tested")
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is missing: Spark is not tested")
    builder = sql.SparkSession.builder.master("local[1]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


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
    from pyspark.sql import types

    kinds = {
        pa.string(): types.StringType(),
        pa.int64(): types.LongType(),
        pa.float64(): types.DoubleType(),
        pa.bool_(): types.BooleanType(),
    }
    schema = types.StructType([types.StructField(field.name, kinds[field.type]) for field in table.schema])
    return session.createDataFrame([tuple(row.values()) for row in table.to_pylist()], schema)


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


@pytest.fixture(params=ENGINES)
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
    return {name: pa.array([row[k] for row in rows], type=TYPES[k]) for k, name in enumerate(VALUES)}


def brute_force(codes, sizes, subsets):
    tables = {}
    for S in subsets:
        found = Counter(tuple(code[i] for i in S) for code in codes)
        cells = itertools.product(*(range(sizes[i]) for i in S))
        tables[S] = np.array([found[cell] for cell in cells], dtype=np.int64).reshape([sizes[i] for i in S])
    return tables


def check(table, attributes, subsets, codes):
    found = list(count_marginals(table, attributes, subsets))
    expected = brute_force(codes, [a.size for a in attributes], subsets)
    assert sorted(S for S, _ in found) == sorted(subsets)
    for S, counts in found:
        assert counts.dtype == np.int64
        assert counts.shape == expected[S].shape
        assert np.array_equal(counts, expected[S])


def test_every_engine_agrees_with_a_counter(build):
    rows = records(300)
    codes = [[v[x] for v, x in zip(VALUES.values(), row, strict=True)] for row in rows]
    check(build(columns(rows)), ATTRIBUTES, SUBSETS, codes)


def test_empty_tables_count_zero(build):
    check(build(columns([])), ATTRIBUTES, SUBSETS, [])


def test_the_total_needs_no_attribute(build):
    check(build({"a": ["x", "y", "x"]}), [], [()], [()] * 3)


@pytest.mark.parametrize("cells", [1, 8])
def test_several_passes_agree_with_a_counter(build, engine, cells, monkeypatch):
    if engine == "spark":
        pytest.skip("a minute of Spark jobs; the same code counts ibis and dask")
    monkeypatch.setattr(_count, "_GROUP_CELLS", cells)
    monkeypatch.setattr(_count, "PASS_CELLS", cells)
    rows = records(60)
    codes = [[v[x] for v, x in zip(VALUES.values(), row, strict=True)] for row in rows]
    check(build(columns(rows)), ATTRIBUTES, SUBSETS, codes)


def test_more_columns_than_one_grouping_number_has_bits(tmp_path):
    data = np.random.default_rng(2).integers(2, size=(40, 130))
    table = pa.table({f"a{k}": data[:, k] for k in range(130)})
    attributes = [gn.Attribute(f"a{k}", [0, 1]) for k in range(130)]
    subsets = [(k, k + 1) for k in range(129)]
    check(as_parquet(table, tmp_path, None), attributes, subsets, data.tolist())


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(st.data())
def test_random_subsets(data):
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    drawn = data.draw(st.sets(st.sets(st.integers(0, len(sizes) - 1)).map(lambda S: tuple(sorted(S))), max_size=8))
    subsets = list(drawn | {(k,) for k in range(len(sizes))})
    codes = data.draw(st.lists(st.tuples(*(st.integers(0, n - 1) for n in sizes)), min_size=1, max_size=10))
    table = pd.DataFrame({f"a{k}": [code[k] for code in codes] for k in range(len(sizes))})
    check(table, [gn.Attribute(f"a{k}", range(n)) for k, n in enumerate(sizes)], subsets, codes)


@settings(derandomize=True, deadline=None, database=None, max_examples=60)
@given(st.data(), st.sampled_from([1, 10, 100]))
def test_groups_hold_every_subset_once_and_stay_small(data, most):
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=7))
    drawn = data.draw(st.sets(st.sets(st.integers(0, len(sizes) - 1)).map(lambda S: tuple(sorted(S))), max_size=12))
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
    with pytest.raises(gn.DataError) as caught:
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
def test_refusals_come_first_and_name_the_column_only(build, values, attribute):
    table = build({"a": values, "b": [1, 1]})
    assert "column 'a'" in refusal(table, [gn.Attribute("b", [1]), attribute], [(0, 1), (0,)])


def test_every_column_is_checked_before_anything_is_yielded(tmp_path, monkeypatch):
    monkeypatch.setattr(_count, "_GROUP_CELLS", 1)
    monkeypatch.setattr(_count, "PASS_CELLS", 1)
    table = as_parquet(pa.table({"a": [1, 1], "b": [1, 7391]}), tmp_path, None)
    assert "column 'b'" in refusal(table, [gn.Attribute("a", [1, 2]), gn.Attribute("b", [1])], [(0,), (1,)])


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
    with pytest.raises(gn.DataError, match="it changed while it was read") as caught:
        list(marginals)
    assert caught.value.__context__ is None


def test_spark_gives_back_what_it_held(spark):
    table = as_spark(pa.table({"a": [1, 2]}), None, spark)
    assert len(list(count_marginals(table, [gn.Attribute("a", [1, 2])], [(0,)]))) == 1
    refusal(table, [gn.Attribute("a", [1])], [(0,)])
    assert spark.sparkContext._jsc.sc().getPersistentRDDs().isEmpty()


def test_nothing_is_written_beside_the_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = as_parquet(pa.table({"a": [1, 2]}), tmp_path, None)
    list(count_marginals(path, [gn.Attribute("a", [1, 2])], [(0,)]))
    assert os.listdir() == ["t.parquet"]
    relation = _count.code_table(path, []).to_native()
    assert relation.query("t", "SELECT current_setting('temp_directory')").fetchall() == [("",)]
