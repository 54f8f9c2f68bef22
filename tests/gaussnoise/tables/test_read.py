import csv
import datetime
import decimal
import io
import itertools
import math
import os
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from cases import one_test_of
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussnoise as gn
from gaussnoise.errors import DataError
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.frequencies import count_values
from gaussnoise.tables.counting.persons import PersonLimit
from gaussnoise.tables.reading import batches as _batches
from gaussnoise.tables.reading.batches import batches
from gaussnoise.tables.reading.frames import _connect, guarded
from gaussnoise.tables.reading.opened import opened
from gaussnoise.tables.schema.schema import with_infinite

CANARY = "CANARY-7391"


def as_csv(table, folder):
    pyarrow.csv.write_csv(table, folder / "t.csv")
    return folder / "t.csv"


def as_parquet(table, folder):
    pyarrow.parquet.write_table(table, folder / "t.parquet")
    return str(folder / "t.parquet")


ENGINES = [
    "pandas",
    "pandas on arrow",
    "polars",
    "polars lazy",
    "pyarrow",
    "duckdb",
    "csv",
    "parquet",
]


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture
def build(engine, engines, tmp_path):
    return lambda columns: engines[engine](pa.table(columns), tmp_path)


def counted(table, *attributes):
    """Counts by coded record."""
    everything = tuple(range(len(attributes)))
    ((_, counts),) = count_marginals(table, attributes, [everything])
    return {tuple(cell): int(counts[tuple(cell)]) for cell in np.argwhere(counts).tolist()}


TEXT = gn.Attribute("text", ["b", "a", "A", " a", 'say "hi", you', "größe"])
FLAG = gn.Attribute("flag", [True, False])
CODE = gn.Attribute("code", [3, -1, 0])
NUMBER = gn.Attribute("number", edges=[-math.inf, 0, 0.5, 10])


def test_exact_counts_of_every_engine(build):
    records = list(
        itertools.product(
            TEXT.categories, FLAG.categories, CODE.categories, [-1e300, 0.0, 0.25, 0.5, 10.0]
        )
    )
    rng = np.random.default_rng(1)
    rows = [records[k] for k in rng.integers(len(records), size=2000)]
    names = ("text", "flag", "code", "number")
    bins = {-1e300: 0, 0.0: 1, 0.25: 1, 0.5: 2, 10.0: 2}
    expected = Counter(
        (TEXT.categories.index(t), FLAG.categories.index(f), CODE.categories.index(c), bins[x])
        for t, f, c, x in rows
    )
    table = build(
        {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    )
    assert counted(table, TEXT, FLAG, CODE, NUMBER) == expected


def test_bins_are_closed_on_the_left_and_the_last_on_both_sides(build):
    below_one, below_two = math.nextafter(1, 0), math.nextafter(2, 0)
    table = build({"x": [0.0, -0.0, below_one, 1.0, below_two, 2.0, 3.0]})
    assert counted(table, gn.Attribute("x", edges=[0, 1, 2, 3])) == {(0,): 3, (1,): 2, (2,): 2}


def test_integers_fall_into_bins_too(build):
    table = build({"x": [0, 17, 18, 64, 65, 120]})
    assert counted(table, gn.Attribute("x", edges=[0, 18, 65, 120])) == {(0,): 2, (1,): 2, (2,): 2}


def test_only_the_attributes_asked_for_are_read(build):
    table = build({"a": ["x", "y"], "secret": [CANARY, None]})
    assert counted(table, gn.Attribute("a", ["x", "y"])) == {(0,): 1, (1,): 1}


def test_no_attributes_at_all_still_count_the_rows(build):
    assert counted(build({"a": ["x", "y", "x"]})) == {(): 3}


def test_other_catches_text(build):
    table = build({"a": ["x", None, CANARY, "x", "X"], "b": [1, 2, 3, 4, 5]})
    assert counted(table, gn.Attribute("a", ["y", "x"], other="rest")) == {(1,): 2, (2,): 3}


def test_other_catches_numbers(build):
    values = [0.0, 0.5, 1.0, None, math.nan, math.inf, -math.inf, 1.1, -0.1]
    table = build({"x": values, "b": range(len(values))})
    assert counted(table, gn.Attribute("x", edges=[0, 0.5, 1], other="rest")) == {
        (0,): 1,
        (1,): 2,
        (2,): 6,
    }


def test_other_catches_text_among_csv_numbers(tmp_path):
    (tmp_path / "t.csv").write_text(f"x,b\n0.5,1\n{CANARY},2\n1e0,3\n,4\n", encoding="utf-8")
    assert counted(tmp_path / "t.csv", gn.Attribute("x", edges=[0, 0.7, 1], other="o")) == {
        (0,): 1,
        (1,): 1,
        (2,): 2,
    }


def test_infinite_edges_do_not_include_infinity(build):
    table = build({"x": [-1e308, 1e308, math.inf, -math.inf, math.nan]})
    assert counted(table, gn.Attribute("x", edges=[-math.inf, 0, math.inf], other="o")) == {
        (0,): 1,
        (1,): 1,
        (2,): 3,
    }


def test_a_search_for_a_range_counts_infinity_in_the_outer_bins(build):
    table = build({"x": [-1e308, 1e308, math.inf, -math.inf, math.nan, 0.0]})
    bins = with_infinite(gn.Attribute("x", edges=[-math.inf, 0, math.inf], other="o"))
    assert counted(table, bins) == {(0,): 2, (1,): 3, (2,): 1}


def test_other_catches_integers(build):
    assert counted(build({"a": [1, 7, 2, 7]}), gn.Attribute("a", [2, 1], other="o")) == {
        (1,): 1,
        (0,): 1,
        (2,): 2,
    }


@pytest.mark.parametrize("values", [[1, None, 7], [True, None, False]])
def test_other_catches_nulls(build, engine, values):
    if engine == "pandas":
        pytest.skip("without arrow types, pandas turns such columns into floats or objects")
    attribute = gn.Attribute("a", values[:1], other="rest")
    assert counted(build({"a": values, "b": [1, 2, 3]}), attribute) == {(0,): 1, (1,): 2}


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.Categorical(["x", "y", "x", None])}),
        pd.DataFrame({"a": pd.array(["x", "y", "x", None], dtype="string")}),
        pl.DataFrame({"a": pl.Series(["x", "y", "x", None], dtype=pl.Categorical)}),
        pl.DataFrame({"a": pl.Series(["x", "y", "x", None], dtype=pl.Enum(["y", "x"]))}),
        pa.table({"a": pa.array(["x", "y", "x", None]).dictionary_encode()}),
    ],
    ids=["pandas", "pandas string", "polars categorical", "polars enum", "pyarrow"],
)
def test_categoricals_are_text(table):
    assert counted(table, gn.Attribute("a", ["x", "y"], other="rest")) == {
        (0,): 2,
        (1,): 1,
        (2,): 1,
    }


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_integers_of_any_width(dtype):
    table = pl.DataFrame({"a": np.array([1, 2, 2], dtype=dtype)})
    assert counted(table, gn.Attribute("a", [2, 1])) == {(0,): 2, (1,): 1}


@pytest.mark.parametrize("text", ["true,false", "True,False", "TRUE,FALSE"])
def test_csv_booleans_in_any_case(tmp_path, text):
    (tmp_path / "t.csv").write_text(
        "a,b\n" + "".join(f"{word},1\n" for word in text.split(",")), encoding="utf-8"
    )
    assert counted(tmp_path / "t.csv", gn.Attribute("a", [False, True])) == {(1,): 1, (0,): 1}


def test_csv_text_is_never_reinterpreted(tmp_path):
    (tmp_path / "t.csv").write_text("zip,b\n007,1\n7,2\n7.0,3\n", encoding="utf-8")
    assert counted(tmp_path / "t.csv", gn.Attribute("zip", ["007", "7", "7.0"])) == {
        (0,): 1,
        (1,): 1,
        (2,): 1,
    }


@pytest.mark.parametrize("count", [150, 600])
@pytest.mark.parametrize("edges", [False, True])
def test_many_categories(build, count, edges):
    if edges:
        attribute, values = (
            gn.Attribute("a", edges=range(count + 1)),
            [k + 0.5 for k in range(count)],
        )
    else:
        attribute, values = gn.Attribute("a", map(str, range(count))), list(map(str, range(count)))
    assert counted(build({"a": values}), attribute) == {(k,): 1 for k in range(count)}


def test_huge_integer_categories(build, engine):
    if engine in (
        "pandas",
        "pandas on arrow",
    ):  # where rows decide on types, no number of this size is told from others
        with pytest.raises(DataError, match=r"numbers from 2\*\*53 on"):
            counted(build({"a": [1, 2]}), gn.Attribute("a", [10**30, 1], other="o"))
        return
    assert counted(build({"a": [1, 2]}), gn.Attribute("a", [10**30, 1], other="o")) == {
        (1,): 1,
        (2,): 1,
    }
    assert counted(build({"a": [1, 2]}), gn.Attribute("a", [10**30], other="o")) == {(1,): 2}


def test_unsigned_categories_beyond_63_bits():
    table = pl.DataFrame({"a": pl.Series([2**63 + 5, 1, 1], dtype=pl.UInt64)})
    assert counted(table, gn.Attribute("a", [1, 2**63 + 5])) == {(0,): 2, (1,): 1}


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.float64(), pa.bool_()])
def test_empty_tables_count_zero(build, kind):
    attribute = {
        pa.string(): gn.Attribute("a", ["x"]),
        pa.int64(): gn.Attribute("a", [1]),
        pa.float64(): gn.Attribute("a", edges=[0, 1]),
        pa.bool_(): gn.Attribute("a", [True]),
    }[kind]
    assert counted(build({"a": pa.array([], type=kind)}), attribute) == {}


def said(error):
    """All texts that an error could show, also of errors that led to it."""
    seen, waiting, parts = set(), [error], []
    while waiting:
        error = waiting.pop()
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            parts += [str(error), repr(error), repr(error.args), *traceback.format_exception(error)]
            waiting += [error.__cause__, error.__context__]
    return "\n".join(parts)


def refusal(table, *attributes):
    with pytest.raises(DataError) as caught:
        counted(table, *attributes)
    assert CANARY not in said(caught.value)
    assert "7391" not in said(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


WORDS = gn.Attribute("a", ["x", "y"])
WHOLE = gn.Attribute("a", [1, 2])
BINS = gn.Attribute("a", edges=[0, 1, 2])


@pytest.mark.parametrize(
    ("values", "attribute"),
    [
        pytest.param(["x", CANARY], WORDS, id="unknown category"),
        pytest.param(["x", None], WORDS, id="null category"),
        pytest.param(["x", "X"], WORDS, id="wrong case"),
        pytest.param([1, 7391], WHOLE, id="unknown integer"),
        pytest.param([1.0, 7391.5], WHOLE, id="floats for integers"),
        pytest.param([1.0, 7391.5], WORDS, id="floats for text"),
        pytest.param([1, 7391], WORDS, id="integers for text"),
        pytest.param(["x", CANARY], WHOLE, id="text for integers"),
        pytest.param([1, 7391], gn.Attribute("a", [True, False]), id="integers for booleans"),
        pytest.param([1.0, math.nan], BINS, id="NaN"),
        pytest.param([1.0, math.inf], BINS, id="inf"),
        pytest.param([1.0, None], BINS, id="null number"),
        pytest.param([1.0, 7391.5], BINS, id="above the edges"),
        pytest.param([1.0, -7391.5], BINS, id="below the edges"),
        pytest.param(["1.0", CANARY], BINS, id="text for numbers"),
        pytest.param([datetime.date(7391, 1, 1)], BINS, id="dates for numbers"),
        pytest.param([datetime.date(7391, 1, 1)], WORDS, id="dates for text"),
    ],
)
def test_refusals_name_the_column_and_no_value(build, values, attribute):
    assert "column 'a'" in refusal(build({"a": values, "b": [CANARY] * len(values)}), attribute)


def test_missing_columns_are_named(build):
    message = refusal(
        build({"b": [CANARY]}), WORDS, gn.Attribute("c", [1]), gn.Attribute("b", [CANARY])
    )
    assert "2 of 3 expected ones are missing: 'a', 'c'" in message


@one_test_of("values", [["x", 7391], ["x", CANARY.encode()], [["x", CANARY]], [{CANARY: 1}]])
@one_test_of("attribute", [WORDS, WHOLE, BINS], ids=["text", "integers", "edges"])
def test_pandas_objects_are_refused(values, attribute):
    assert "column 'a'" in refusal(pd.DataFrame({"a": values}), attribute)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([[CANARY, "x"]], columns=["a", "a"]),
        pa.table([["x"], [CANARY]], names=["a", "a"]),
    ],
    ids=["pandas", "pyarrow"],
)
def test_repeated_column_names_are_refused(table):
    assert "rename one, also where neither is asked for" in refusal(table, WORDS)


@pytest.mark.parametrize(
    "table", [None, 5, [CANARY], {"a": ["x", CANARY]}, np.array([7391.0]), pd.Series([CANARY])]
)
def test_what_is_not_a_table_is_refused(table):
    assert type(table).__name__ in refusal(table, WORDS)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_missing_files_are_refused(tmp_path, suffix):
    assert "no such file" in refusal(tmp_path / f"missing{suffix}", WORDS)


@pytest.mark.parametrize("name", ["t.txt", "t.ods", "t"])
def test_other_file_types_are_refused(tmp_path, name):
    (tmp_path / name).write_text(f"a\n{CANARY}\n", encoding="utf-8")
    assert "expected a .csv, .tsv or .parquet file" in refusal(tmp_path / name, WORDS)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_directories_are_refused(tmp_path, name):
    (tmp_path / name).mkdir()
    refusal(tmp_path / name, WORDS)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"a,b\nx,CANARY-7391,2\nx,1\ny,2\n",
        b"a,b\nx,1\nx,CANARY-7391,2\ny,2\n",
        b"a,b\nx\nx,CANARY-7391\ny,2\n",
        b"a,b\nx,1\nx\ny,CANARY-7391\n",
        b"a\na,b\nx,1\ny,CANARY-7391\n",
        b"notes of CANARY-7391\n\na,b\nx,1\ny,2\n",
        b'a,b\nx,1\n"CANARY-7391,2\ny,3\n',
        b"a,b\nx,1\n" * 3000 + b"x,CANARY-7391,7391\n",
        b"a,b\nx,CANARY-7391\n\xff\xfe,1\n",
    ],
)
def test_malformed_csv_is_refused_even_with_a_catch_all(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    refusal(tmp_path / "t.csv", gn.Attribute("a", ["x", "y"], other="rest"))


@pytest.mark.parametrize("content", [b"", b"CANARY-7391", b"PAR1CANARY-7391PAR1"])
def test_broken_parquet_is_refused(tmp_path, content):
    (tmp_path / "t.parquet").write_bytes(content)
    refusal(tmp_path / "t.parquet", WORDS)


def test_a_tilde_in_a_file_name_is_no_home_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, write in (("~t.csv", as_csv), ("~t.parquet", as_parquet)):
        path = write(pa.table({"a": ["x"]}), tmp_path)
        os.rename(path, name)
        assert counted(name, WORDS) == {(0,): 1}


def test_numbers_in_text_have_no_underscores(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1_0\n10\n 10 \n1e1\n_\n", encoding="utf-8")
    for attribute in (
        gn.Attribute("a", edges=[0, 9, 11], other="rest"),
        gn.Attribute("a", [10], other="rest"),
    ):
        cells = {tuple(c): n for c, n in counted(tmp_path / "t.csv", attribute).items()}
        assert cells == ({(1,): 3, (2,): 2} if attribute.edges else {(0,): 3, (1,): 2})
    drafted = gn.Schema.draft(tmp_path / "t.csv").attributes[0]
    assert drafted.categories is not None
    assert "1_0" in drafted.categories


def held_in_parquet(path):
    """A Parquet file, read in all of duckdb's ways, and in others."""
    ibis = pytest.importorskip("ibis")
    return {
        "file": lambda: path,
        "relation": lambda: duckdb.connect().read_parquet(str(path)),
        "ibis": lambda: ibis.duckdb.connect().read_parquet(str(path)),
        "polars": lambda: pl.scan_parquet(path),
        "pyarrow": lambda: pyarrow.parquet.read_table(path),
    }


@pytest.mark.parametrize(
    "values",
    [
        [0.5, math.nan],
        [1.0, math.nan, math.nan],
        [0.5, 1.0, math.nan],
        [0.5, 3.0, *[math.nan] * 5],
        [math.inf, 0.5, math.nan],
        [math.nan, None, -math.inf, 2.0],
    ],
    ids=str,
)
@pytest.mark.parametrize("width", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.filterwarnings("ignore:fetch_arrow_table")  # the name that ibis gives it
def test_what_becomes_of_nan_does_not_depend_on_other_rows(tmp_path, values, width):
    """Parquet stores the least and the largest number of a column, without NaN."""
    inf, g = math.inf, gn.Attribute("g", ["a"])
    asked = [
        (gn.Attribute("x", edges=[0, 1, 4], other="rest"), {}),
        (gn.Attribute("x", edges=[-inf, 1, inf], other="rest"), {}),
        (with_infinite(gn.Attribute("x", edges=[-inf, 1, inf], other="rest")), {}),
        (gn.Attribute("x", clip=[0, 1], other="rest"), {}),
        (gn.Attribute("x", clip=[-4, 4]), {}),
        (gn.Attribute("x", [1, 2], other="rest"), {}),
        (g, {"weight": gn.Weight("x", most=4)}),
        (g, {"limit": PersonLimit("x", 1)}),
    ]

    def summed(path, rows, attribute, options, form):
        table = pa.table({"x": pa.array(rows, type=width), "g": ["a"] * len(rows)})
        pyarrow.parquet.write_table(table, path)
        read = held_in_parquet(path)[form]()
        ((_, counts),) = count_marginals(read, [attribute], [(0,)], "drop", **options)
        return counts

    path = tmp_path / "t.parquet"
    for attribute, options in asked:
        alone = [summed(path, [value], attribute, options, "pyarrow") for value in values]
        for form in held_in_parquet(path):
            if "limit" in options and form == "ibis":  # it has no windows
                continue
            whole = summed(path, values, attribute, options, form)
            assert whole.tolist() == sum(alone).tolist(), (attribute, form)


@pytest.mark.parametrize("other", [None, "0.5000000000000000001", "123.5"])
def test_decimals_are_rounded_alike_with_any_other_rows(tmp_path, other):
    rows = [] if other is None else [decimal.Decimal(other)]
    for digits in ("0.1", "0.3", "0.7", "4.35", "1.1"):
        number = decimal.Decimal(digits)
        column = [number] * 3 + rows
        table = pa.table({"x": column})
        pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
        nearest = float(digits)
        edges = gn.Attribute("x", edges=[0, nearest, math.nextafter(nearest, 9), 9], other="rest")
        clip = gn.Attribute("x", clip=[0, 2 * nearest], other="rest")
        objects = pd.DataFrame({"x": pd.Series(column, dtype=object)})
        tables = [objects, table.to_pandas(types_mapper=pd.ArrowDtype), table, pl.DataFrame(table)]
        tables += [duckdb.from_arrow(table), tmp_path / "t.parquet"]
        for attribute in (edges, clip):
            found = [count_marginals(held, [attribute], [(0,)], "drop") for held in tables]
            counts = [next(marginals)[1].tolist() for marginals in found]
            assert all(each == counts[0] for each in counts)
            assert attribute is clip or counts[0][1] == 3


@pytest.mark.parametrize("digits", ["0.1", "0.7", "4.35"])
def test_decimals_fall_where_the_nearest_double_falls(digits):
    number = decimal.Decimal(digits)
    attribute = gn.Attribute("a", edges=[0, float(digits), 5])
    objects = pd.DataFrame({"a": pd.Series([number, 0.0], dtype=object)})
    for table in (objects, pa.table({"a": [number]}), pl.DataFrame({"a": [number]})):
        ((_, counts),) = count_marginals(table, [attribute], [(0,)], "drop")
        assert counts[1] == 1


@pytest.mark.parametrize("name", ["t[1].csv", "t*.csv", "t?.csv", "{t,t1}.csv"])
def test_file_names_are_not_patterns(tmp_path, name):
    (tmp_path / "t1.csv").write_text("a\ny\ny\n", encoding="utf-8")
    (tmp_path / name).write_text("a\nx\n", encoding="utf-8")
    assert counted(tmp_path / name, WORDS) == {(0,): 1}


@pytest.mark.parametrize("write", [as_csv, as_parquet])
def test_folder_names_are_not_columns(tmp_path, write):
    (tmp_path / "a=x").mkdir()
    path = write(pa.table({"a": ["y", "y"], "b": [1, 2]}), tmp_path / "a=x")
    assert counted(path, WORDS) == {(1,): 2}


def test_tab_separated_files(tmp_path):
    (tmp_path / "t.tsv").write_text("a\tb\nx,y\t1\ny\t2\n", encoding="utf-8")
    assert counted(tmp_path / "t.tsv", gn.Attribute("a", ["x,y", "y"])) == {(0,): 1, (1,): 1}


def test_quotes_may_first_appear_late_in_a_file(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n" + "x,1\n" * 30_000 + '"p,""q""",2\n', encoding="utf-8")
    assert counted(tmp_path / "t.csv", gn.Attribute("a", ["x", 'p,"q"'])) == {(0,): 30_000, (1,): 1}


WORD = st.text(alphabet="ab#,;|\t\"' \\\n-1", max_size=4)


@settings(derandomize=True, deadline=None, database=None, max_examples=20)
@given(
    st.lists(st.tuples(WORD, WORD), min_size=1, max_size=6),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_csv_written_by_python_is_counted_exactly(rows, quoting):
    text = io.StringIO(newline="")
    csv.writer(text, quoting=quoting).writerows([("first", "second"), *rows])
    categories = sorted({word for row in rows for word in row} - {""}) or ["x"]
    attributes = [gn.Attribute(name, categories, other="rest") for name in ("first", "second")]
    expected = Counter(
        tuple(categories.index(word) if word else len(categories) for word in row) for row in rows
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(text.getvalue().encode())
        assert counted(path, *attributes) == expected


@pytest.mark.parametrize("extra", ['a"b', "'", "#", ";", "\\", "a\nb", "", " ", "|", '"', "x\ty"])
def test_one_more_csv_row_changes_one_count(tmp_path, extra):
    """A reader that guesses the dialect may read every other row differently because of one row."""

    def write(rows):
        with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["a", "b"], *rows])
        return counted(tmp_path / "t.csv", gn.Attribute("a", ["x", extra], other="o"))

    rows = [["x", "1"]] * 40
    assert write(rows) == {(0,): 40}
    assert write([*rows, [extra, "1"]]) in ({(0,): 40, (1,): 1}, {(0,): 40, (2,): 1})


@pytest.mark.parametrize("make", [pa.table, lambda c: duckdb.from_arrow(pa.table(c))])
def test_integers_beyond_double_precision_are_binned_exactly(make):
    edges = gn.Attribute("n", edges=[-math.inf, 2**53, 2**62, math.inf])
    table = make({"n": [2**53 + 1, 2**53 - 1, 2**62 - 1, 2**62, -(2**63), 2**63 - 1]})
    assert counted(table, edges) == {(0,): 2, (1,): 2, (2,): 2}


class Evil:
    """An object whose comparison raises an error that may hold secrets."""

    __hash__ = object.__hash__

    def __eq__(self, other):
        raise ValueError(CANARY)


def test_objects_that_raise_are_not_quoted():
    refusal(pd.DataFrame({"a": ["x"] * 150 + [Evil()]}), gn.Attribute("a", ["x"]))


def test_csv_integers_count_by_value(tmp_path):
    """pandas writes an integer column with a null as 1.0, 2.0 and an empty field."""
    pd.DataFrame({"a": [0, 1, 1, 2, None], "b": "x"}).to_csv(tmp_path / "t.csv", index=False)
    codes = gn.Attribute("a", [0, 1, 2], other="o")
    assert counted(tmp_path / "t.csv", codes) == {(0,): 1, (1,): 2, (2,): 1, (3,): 1}
    (tmp_path / "u.csv").write_text("a,b\n01,x\n 2,x\n1.5,x\nnan,x\n", encoding="utf-8")
    assert counted(tmp_path / "u.csv", codes) == {(1,): 1, (2,): 1, (3,): 2}


def test_a_panic_is_withheld_like_an_error():
    class Panic(BaseException):
        pass

    def action():
        raise Panic("CANARY-7391")

    with pytest.raises(DataError, match="Panic") as caught:
        guarded("count", action)
    assert "CANARY" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_interruptions_pass(kind):
    def action():
        raise kind

    with pytest.raises(kind):
        guarded("count", action)


def wrapped(cause):
    error = ValueError(CANARY)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("Query interrupted"),
        duckdb.InterruptException("INTERRUPT Error: Interrupted!"),
        pa.ArrowCancelled("Operation cancelled"),
        wrapped(KeyboardInterrupt()),
    ],
    ids=["duckdb's wait", "duckdb", "arrow", "a wrapper of it"],
)
def test_what_engines_raise_for_ctrl_c_is_an_interruption(error):
    def action():
        raise error

    with pytest.raises(KeyboardInterrupt) as caught:
        guarded("count", action)
    assert caught.value.__context__ is None
    assert CANARY not in said(caught.value)


# What the signals of a program do: in a program of its own, which ends as the shell's does.

STOPPED = """
import contextlib, os, signal, sys, threading, time
import duckdb
import gaussnoise as gn
from gaussnoise.tables.counting import count
from gaussnoise.tables.reading import codes, lines

def stop(*_):
    raise SystemExit(143)

def endless(source, *_):
    threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGTERM]).start()
    relation = joined = source.frame.to_native()
    for k in range(6):  # 100^7 rows
        more = relation.project(f"a AS d{k}").set_alias(f"t{k}")
        joined = joined.set_alias("t").join(more, f"a <= d{k}")
    yield joined.aggregate("sum(hash(a || d1))").fetchall()

def dropping(*arguments):
    with contextlib.suppress(BaseException):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0)  # the main thread, in which Python handles signals
    return whole(*arguments)

signal.signal(signal.SIGTERM, stop)
def slowly(batches, *_):
    threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGTERM]).start()
    while True:
        for _ in batches:
            time.sleep(0.1)

whole, how = count._tally_arrays, sys.argv[1]
if how == "long":
    codes.batches = endless
elif how == "lines":
    lines.BLOCK, count._tally_arrays = 2**6, slowly
else:
    count._tally_arrays = dropping
table = duckdb.sql("SELECT 'x' AS a") if how == "relation" else "t.csv"
dict(count.count_marginals(table, [gn.Attribute("a", ["x"])], [(0,)]))
"""


def test_the_tests_count_files_by_one_engine():
    """To start and end one takes 15 milliseconds, longer than to count a small file."""
    one, other = _connect(), _connect()
    one.execute("CREATE TABLE of_all AS SELECT 1")
    assert other.execute("FROM of_all").fetchall() == [(1,)]
    other.execute("DROP TABLE of_all")


@pytest.mark.parametrize("how", ["file", "relation", "long", "lines"])
def test_no_signal_is_lost_while_duckdb_works(how, tmp_path):
    """Duckdb handles signals by itself, and sometimes drops what Python's handler raises in it.

    A long query ends at once.
    """
    as_csv(pa.table({"a": ["x"] * 100}), tmp_path).rename(tmp_path / "t.csv")
    ran = subprocess.run(
        [sys.executable, "-c", STOPPED, how],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 143, ran.stderr  # some versions of duckdb end with words of their own


def test_batches_of_wide_tables_have_fewer_rows():
    """Memory is that of a batch: some two million values, or one vector of duckdb a column."""
    names = [f"c{k}" for k in range(2000)]
    columns = ", ".join(f"k AS {name}" for name in names)
    table = duckdb.sql(f"SELECT {columns} FROM range(5000) AS r(k)")
    source = opened(table, dict.fromkeys(names, nw.Int64()))
    sizes = [len(batch[0]) for batch in batches(source, [], names)]
    assert sum(sizes) == 5000
    assert max(sizes) <= 2048


def test_lazy_polars_in_many_batches_counts_what_polars_in_memory_does(monkeypatch):
    """It does so for any type of column, also for rows of persons and for values of a column."""
    if not hasattr(pl.LazyFrame, "collect_batches"):
        pytest.skip("an older polars returns all rows at once")
    rng = np.random.default_rng(40)
    rows = 1000
    numbers = rng.normal(3, 4, rows)
    numbers[:5] = math.nan, math.inf, -math.inf, -0.0, 2.0
    words = rng.choice([None, "x", "1", "yy", "é"], rows).tolist()
    whole = rng.integers(0, 9, rows)
    frame = pl.DataFrame(
        {
            "number": numbers,
            "narrow": pl.Series(numbers, dtype=pl.Float32),
            "word": words,
            "category": pl.Series(words, dtype=pl.Categorical),
            "whole": pl.Series(whole, dtype=pl.Int16),
            "wide": pl.Series([int(k) + 2**70 for k in whole], dtype=pl.Int128),
            "day": pl.Series(18_000 + whole, dtype=pl.Int32).cast(pl.Date),
            "who": [f"p{k}" if k else None for k in rng.integers(0, 300, rows)],
        }
    ).with_columns(pl.when(pl.col("whole") > 0).then("whole").alias("whole"))
    attributes = [
        gn.Attribute("number", edges=[-1, 0, 1, 2.5, math.inf], other="o"),
        gn.Attribute("narrow", clip=[0, 10], other="o"),
        gn.Attribute("word", ["x", "1", "é"], other="o"),
        gn.Attribute("category", ["yy", "1"], other="o"),
        gn.Attribute("whole", [3, 1], other="o"),
        gn.Attribute("wide", [2**70, 2**70 + 1], other="o"),
        gn.Attribute("day", edges=["2019-04-14", "2019-04-16", "2019-04-19"], other="o"),
    ]
    subsets = [(k, m) for k in range(7) for m in range(k + 1, 7)]
    monkeypatch.setattr(_batches, "_MOST_VALUES", 200)
    assert len(list(batches(opened(frame.lazy(), {"word": nw.String()}), [], ["word"]))) > 1
    for limit in (None, PersonLimit("who", 2)):
        eager, lazy = (
            dict(count_marginals(table, attributes, subsets, "drop", limit))
            for table in (frame, frame.lazy())
        )
        assert all(np.array_equal(eager[S], lazy[S]) for S in subsets)
    for name in ("word", "category", "wide"):
        for limit in (None, PersonLimit("who", 2)):
            eager, lazy = (count_values(table, name, 10, limit) for table in (frame, frame.lazy()))
            assert eager == lazy


def test_an_error_in_a_later_batch_of_polars_is_an_error(monkeypatch):
    monkeypatch.setattr(_batches, "_MOST_VALUES", 200)
    words = pl.DataFrame({"x": [*map(str, range(5000)), CANARY]}).lazy()
    table = words.select(pl.col("x").cast(pl.Int64))
    with pytest.raises(DataError, match="withheld") as caught:
        list(count_marginals(table, [gn.Attribute("x", [1], other="o")], [(0,)]))
    assert CANARY not in str(caught.value)
