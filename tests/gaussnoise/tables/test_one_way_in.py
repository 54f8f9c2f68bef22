"""What a row counts as depends on that row alone, in every engine, type and role.

The reference is one function of one value, :mod:`gaussnoise.tables.reading.values`. The first
tests compare it with exact arithmetic, the others compare every engine with it. A new engine is
one line of ``ENGINES``, a new type one of ``TYPES``.
"""

import dataclasses
import datetime
import decimal
import fractions
import functools
import io
import json
import math
import re
import uuid
import warnings
from collections import Counter

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas._libs import parsers

import gaussnoise as gn
from gaussnoise.errors import DataError, NotAvailableError, SchemaWarning
from gaussnoise.tables.counting.check import check_rows
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.frequencies import count_values
from gaussnoise.tables.counting.persons import PersonLimit
from gaussnoise.tables.counting.recount import recount
from gaussnoise.tables.reading.values import (
    NULL_WORDS,
    Form,
    double_of_text,
    finder,
    integer_of_text,
    key_of,
    label_of,
    number_of,
    person_of,
    text_of,
)
from gaussnoise.tables.schema.dates import is_dated
from gaussnoise.tables.schema.numbers import unit_of

pytestmark = [
    pytest.mark.filterwarnings("ignore:Dask support is moving out of Narwhals:FutureWarning"),
    *(
        pytest.mark.filterwarnings(rf"ignore::{kind}:{module}(\..*)?")
        for kind in ("DeprecationWarning", "FutureWarning", "UserWarning")
        for module in ("dask", "ibis", "pyspark", "py4j")
    ),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of Spark's sockets
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning:pandas"),
]

# The values.

TEXTS = """1|01|1.0| 1|1 |+1|-1|--1|+-1|1.|.5|.|1e5|1E+5|1e-5|1e|e5|1e400|-1e400|1e-400|0e999999999
inf|-INF|Infinity|nan|NaN|-nan|0x10|1_0|1,5|1d|1L|true|True|TRUE|false|fAlse|yes|x|X|é|a,b|NULL|NA
-0|-0.0|0|00|9007199254740991|9007199254740992|9007199254740993|9007199254740993.0|3e15
16777217|12345678901234567890|1e30|0.1e1|10e-1|1.000000000000000001|4503599627370497.5|2020-01-31
2020-01-31 08:30|2020-01-31T08:30:00.123456789|2020-02-30|0000-01-01|9999-12-31|2020-1-1|20200131
2020-01-31T08:30:00Z|1000000000000000000000e-20|1/2|1%|١|−1|infinit|iNf|1e99999999999|"|'|,|;"""
TEXTS = [
    *TEXTS.replace("\n", "|").split("|"),
    *("", " ", "\t1", "1\n", "1\v", "\u00a01", "1\u2003", "\u20031", "\u200b1", "\x1c1", "\u20281"),
    *("e\u0301", "\u212b", "x\0", "1\0", "\u2003\t1", "1" + "0" * 400, "0." + "0" * 400 + "1"),
    *("12345678901234567\v", "\u00a012345678901234567", "1.0000000000000000000000"),
]
WHOLE = [0, 1, -1, 2, 3, 7, 100, 127, -128, 255, 16777216, 16777217, -16777217, 2**31, 2**32 + 1]
WHOLE += [2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64 - 1]
FLOATS = [0.0, -0.0, 0.5, 1.0, 2.5, 3.0, -1.0, 1e-300, 5e-324, 1e300, -1e300, 65504.0, 70000.0]
FLOATS += [
    math.inf,
    -math.inf,
    math.nan,
    0.1,
    16777216.0,
    16777218.0,
    2.0**53,
    2.0**63,
    9.999,
    10.0,
]
DECIMALS = [decimal.Decimal(x) for x in "0 1 -1 2.500 3.000 9.999 0.001 -0.100 1000000".split()]
DAYS = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2020, 1, 31)]
DAYS += [datetime.date(2020, 2, 29), datetime.date(9999, 12, 31), datetime.date(2020, 7, 1)]
MOMENTS = [datetime.datetime.combine(day, datetime.time(8, 30)) for day in DAYS[1:4]]
MOMENTS += [datetime.datetime(2020, 1, 31), datetime.datetime(2020, 6, 30, 23, 59, 59)]
FAR = [-(2**62), 2**62, 0, 1, -1, 4112469163215143860, -8162225738455188236]  # of any unit

# Roles: what a column is declared to hold.

ROLES = {
    "text": gn.Attribute("v", ["x", "1", "1.5", "false", "é", "2020-01-31", "inf"], other="o"),
    "words": gn.Attribute("v", ["x", "X", "é", "e\u0301", "nul", "a,b"], other="o"),
    "spelt": gn.Attribute(
        "v",
        ["x", "é", "false"],
        other="o",
        spellings={
            "x": ["X", "1.5", "2020-01-31"],
            "é": ["e\u0301", "a,b", "1"],
            "false": [" ", "ALSE", "9007199254740991"],
        },
    ),
    "truth": gn.Attribute("v", [True, False], other="o"),
    "days": gn.Attribute("v", edges=["1969-12-31", "2020-01-31", "2020-07-01"], other="o"),
    "clock": gn.Attribute("v", edges=["2020-01-31T08:30", "2020-07-01T00:00:00"], other="o"),
    "integers": gn.Attribute("v", [1, 0, -1, 3, 100, 16777217, 2**53 - 1, 100000], other="o"),
    "large": gn.Attribute("v", [2**53 + 1, 2**53, 2**62, 2**64 - 1, 1], other="o"),
    "bins": gn.Attribute("v", edges=[-1, 0, 1, 2.5, 2**53 + 2, math.inf], other="o"),
    "clipped": gn.Attribute("v", clip=[0, 10], other="o"),
    "bins without codes": gn.Attribute(
        "v", edges=[-1, 0, 2, math.inf], other="o", missing=[1, 255, 0.1, -128, 2**53 - 1]
    ),
    "clipped without codes": gn.Attribute(
        "v", clip=[0, 10], other="o", missing=[0, 2.5, -1, 16777217, "x"]
    ),
    "null words": gn.Attribute("v", ["x", "", "NA"], other="o"),
}

# pandas reads some words as nulls, or not, which depends on other rows of their column
UNTYPED_ROLES = {role: attribute for role, attribute in ROLES.items() if role != "null words"}

# the same for tables that hold the column once for every role: one count reads it in all of them
APART = {role: dataclasses.replace(attribute, name=role) for role, attribute in ROLES.items()}

# Types that a column may be declared to have, and values of each.

TYPES = {
    **{str(t): (t, WHOLE) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(t): (t, WHOLE) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    **{str(t): (t, FLOATS) for t in (pa.float32(), pa.float64())},
    "decimal, no places": (pa.decimal128(20, 0), [decimal.Decimal(x) for x in WHOLE]),
    "decimal, three places": (pa.decimal128(20, 3), DECIMALS),
    "truth": (pa.bool_(), [True, False]),
    "text": (pa.string(), TEXTS),
    "large text": (pa.large_string(), TEXTS),
    "numbered text": (pa.dictionary(pa.int32(), pa.string()), ["x", "1", "é", "true"]),
    "numbered integers": (pa.dictionary(pa.int32(), pa.int64()), [1, 3, 2**53 + 1]),
    "days": (pa.date32(), DAYS),
    **{f"moments in {u}": (pa.timestamp(u), MOMENTS) for u in ("s", "ms", "us", "ns")},
    **{f"far {u}": (pa.timestamp(u), FAR) for u in ("ms", "us", "ns")},
    "zoned": (pa.timestamp("us", "Europe/Paris"), MOMENTS),
    "zoned ns": (pa.timestamp("ns", "Europe/Paris"), MOMENTS[:3]),
    "durations": (pa.duration("us"), [0, 1]),
    "clock": (pa.time64("us"), [0, 1]),
    "bytes": (pa.binary(), [b"x", b"1"]),
    "nothing": (pa.null(), []),
}
if hasattr(pa, "json_"):  # not in old versions
    TYPES["json"] = (pa.json_(), ['"x"', "1", "1.0", "true", "[1]", '"2020-01-31"', "1e2"])


def array_of(kind):
    """The values that fit the type, with a null before and after."""
    dtype, values = TYPES[kind]
    storage = dtype.storage_type if isinstance(dtype, pa.BaseExtensionType) else dtype
    held = []
    for value in values:
        try:
            pa.array([value], storage)
        except (pa.ArrowInvalid, OverflowError):
            continue
        held.append(value)
    found = pa.array([None, *held, None], storage)
    return pa.ExtensionArray.from_storage(dtype, found) if dtype is not storage else found


def objects_of(array):
    """Python objects of an arrow array, but numpy's objects for moments and far times."""
    if pa.types.is_timestamp(array.type) and array.type.tz is None:
        return list(array.to_numpy(zero_copy_only=False))
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_timestamp(array.type) or pa.types.is_duration(array.type):
        return [
            None if value is None else datetime.timedelta()
            for value in array.cast(pa.int64()).to_pylist()
        ]
    return array.to_pylist()


def in_dask(frame):
    dask = pytest.importorskip("dask", reason="dask is missing")
    frames = pytest.importorskip("dask.dataframe", reason="dask is missing")
    with dask.config.set({"dataframe.convert-string": False}):  # which makes text of objects
        return frames.from_pandas(frame, npartitions=2, sort=False)


def in_ibis(table):
    ibis = pytest.importorskip("ibis", reason="ibis is missing")
    return ibis.memtable(table)


def in_spark(table, folder, request):
    return request.getfixturevalue("spark").read.parquet(str(in_parquet(table, folder)))


def in_parquet(table, folder):
    pyarrow.parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


ENGINES = {
    "pyarrow": lambda table, _: table,
    "polars": lambda table, _: pl.from_arrow(table),
    "polars lazy": lambda table, _: pl.from_arrow(table).lazy(),
    "duckdb": lambda table, _: duckdb.connect().from_arrow(table),
    "parquet": in_parquet,
    "ibis": lambda table, _: in_ibis(table),
    "pandas": lambda table, _: table.to_pandas(),
    "pandas objects": lambda table, _: table.to_pandas().astype(all_as(table, object)),
    "pandas categories": lambda table, _: table.to_pandas().astype(all_as(table, "category")),
    "pandas on arrow": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "dask": lambda table, _: in_dask(table.to_pandas()),
}


def all_as(table, dtype):
    return dict.fromkeys([name for name in table.column_names if name != "row"], dtype)


def in_roles(column):
    """A table with the column once for every role."""
    return pa.table({"row": range(len(column)), **dict.fromkeys(APART, column)})


def every(table, attributes, rows, on_outside="drop", count=count_marginals):
    """What every row adds to the tables of the attributes, each of shape (rows, cells)."""
    number, unit = gn.Attribute("row", list(range(rows))), unit_of(attributes, None)
    asked = [(0, k) for k, _ in enumerate(attributes, start=1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        found = count(table, [number, *attributes], asked, on_outside, None, None, unit, ())
        found = found.counts if count is recount else dict(found)
    units = [unit if attribute.clip is None else 1 for attribute in attributes]
    counted = [np.divmod(found[S], parts) for S, parts in zip(asked, units, strict=True)]
    assert not any(rest.any() for _, rest in counted)
    return [whole for whole, _ in counted]


def counts(table, attribute, rows, on_outside="drop"):
    return every(table, [attribute], rows, on_outside)[0]


def counts_or_refusals(table, attributes, rows):
    """The counts of all, each with None; with the error's words in its place where there is one.

    All are counted at once if none is refused, else in halves. Roles of one kind, which the same
    types have, stand together in ``ROLES``.
    """
    try:
        return [(found, None) for found in every(table, attributes, rows)]
    except DataError as error:
        if len(attributes) == 1:
            return [(None, str(error))]
    half = len(attributes) // 2
    parts = attributes[:half], attributes[half:]
    return [found for part in parts for found in counts_or_refusals(table, part, rows)]


def expected(attribute, form, values):
    """The counts by the reference."""
    found = np.zeros((len(values), attribute.size), dtype=np.int64)
    for row, code in enumerate(map(finder(attribute, form), values)):
        if attribute.clip is not None and code:
            found[row, :2] = 2**20 - (code - 1), code - 1
        else:
            unit = 1 if attribute.clip is None else 2**20
            found[row, code - 1 if code else attribute.size - 1] = unit
    return found


# of others Spark has none, or has integers in their place
SPARK_HAS = ("int8", "int16", "int32", "int64", "float", "double", "decimal, no places", "truth")
SPARK_HAS += ("text", "days", "moments in us", "far us", "zoned")


@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        *((engine, kind) for engine in ENGINES for kind in TYPES),
        *(pytest.param("spark", kind, marks=pytest.mark.integration) for kind in SPARK_HAS),
    ],
)
def test_every_engine_reads_a_value_as_the_reference_does(engine, kind, tmp_path, request):
    """It does so in any role, or it refuses the column by its type, with any rows."""
    array = array_of(kind)
    table = in_roles(array)
    build = ENGINES.get(engine) or (lambda own, folder: in_spark(own, folder, request))
    try:
        native = build(table, tmp_path)
    except Exception as error:  # noqa: BLE001 (an engine without the type)
        pytest.skip(f"{engine} has no {kind}: {type(error).__name__}")
    old = tuple(map(int, pl.__version__.split(".")[:2])) < (1, 30)
    if engine.startswith("polars") and kind == "far ms" and old:
        pytest.skip("this polars itself panics at far milliseconds")
    if engine == "parquet" and kind == "durations":
        pytest.skip("Parquet has integers for them")
    (tmp_path / "empty").mkdir()
    empty = build(table[:0], tmp_path / "empty")
    untyped = engine.startswith("pandas") or engine == "dask"
    form = Form.UNTYPED if untyped else Form.TEXT if kind == "json" else Form.TYPED
    values = objects_of(array)
    if untyped and engine != "pandas on arrow":
        values = (native.compute() if engine == "dask" else native)["text"].tolist()
    read = []
    *others, null_words = APART.values()  # pandas refuses these alone
    counted = counts_or_refusals(native, others, len(values))
    counted += counts_or_refusals(native, [null_words], len(values))
    for (role, attribute), (found, said) in zip(APART.items(), counted, strict=True):
        if said is not None:
            [(_, of_type)] = counts_or_refusals(empty, [attribute], 1)
            assert said == of_type, role
            assert not untyped or role not in UNTYPED_ROLES, role
            assert "withheld" not in said, role  # a rule of ours, no error of the engine's
            continue
        wanted = expected(attribute, form, values)
        wrong = [(role, values[k]) for k in np.flatnonzero((found != wanted).any(axis=1))]
        assert not wrong
        read.append((attribute, found))
    if read and engine in ("pyarrow", "polars lazy", "parquet", "pandas", "spark"):
        attributes, found = zip(*read, strict=True)  # others are read as these
        again = every(native, attributes, len(values), count=recount)
        for attribute, one, other in zip(attributes, found, again, strict=True):
            assert np.array_equal(one, other), attribute.name
    assert read or kind in ("zoned", "zoned ns", "durations", "clock", "bytes", "json")


STRICT = {role: dataclasses.replace(a, other=None, base=None) for role, a in ROLES.items()}


def rows_or_refusal(table, attribute, on_outside):
    """How many rows a release counts, and None; or None and the words of its refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)
        try:
            counted = dict(count_marginals(table, [attribute], [(0,)], on_outside))[(0,)]
        except DataError as error:
            return None, str(error)
    return counted.sum() // (1 if attribute.clip is None else 2**20), None


CHECKED = ("int64", "double", "text", "days")


@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        *((engine, kind) for engine in ENGINES for kind in CHECKED),
        *(pytest.param("spark", kind, marks=pytest.mark.integration) for kind in CHECKED[1:]),
    ],
)
def test_a_check_leaves_out_what_a_release_leaves_out(engine, kind, tmp_path, request):
    """It passes where a release refuses nothing; otherwise it has the reasons of all rows.

    Every second role is checked, in turn: each meets every engine, and every kind of values.
    """
    array, left_out = array_of(kind), 0
    turn = ([*ENGINES, "spark"].index(engine) + CHECKED.index(kind)) % 2
    build = ENGINES.get(engine) or (lambda own, folder: in_spark(own, folder, request))
    for rows in (len(array), 2):
        (tmp_path / f"{rows}").mkdir()
        table = build(pa.table({"v": array[1 : rows + 1]}), tmp_path / f"{rows}")
        for role, attribute in [*STRICT.items()][turn::2]:
            counted, refusal = rows_or_refusal(table, attribute, "drop")
            if refusal is not None:
                with pytest.raises(DataError, match=re.escape(refusal)):
                    check_rows(table, [attribute])
                continue
            found = check_rows(table, [attribute])
            assert (found.rows - found.left_out, found.counted) == (counted, counted), role
            assert sum(case.rows for case in found.failure_cases) == found.left_out, role
            assert found.passed == (rows_or_refusal(table, attribute, "refuse")[1] is None), role
            left_out += found.left_out
    assert left_out


def read_like_the_reference(table, values):
    for role, attribute in ROLES.items():
        if is_dated(attribute.edges) != isinstance(values[0], datetime.date):
            continue
        if attribute.categories is not None and isinstance(attribute.categories[0], str | bool):
            continue
        wanted = expected(attribute, Form.TYPED, values)
        assert np.array_equal(counts(table, attribute, len(values)), wanted), role


def of_duckdb(values):
    rows = ", ".join(f"({k}, '{value}'::HUGEINT)" for k, value in enumerate(values))
    return duckdb.connect().sql(f"SELECT * FROM (VALUES {rows}) AS t(row, v)")


def of_polars(values):
    wide = pl.Series("v", list(map(str, values))).cast(pl.Int128)
    return pl.DataFrame({"row": range(len(values)), "v": wide})


@pytest.mark.parametrize("build", [of_duckdb, of_polars])
def test_integers_of_128_bits_are_read_as_the_reference_does(build):
    if build is of_polars and not hasattr(pl, "Int128"):
        pytest.skip("this polars has none")
    values = [*WHOLE, 2**100, -(2**127), 2**127 - 1]
    table = build(values)
    read_like_the_reference(table, values)
    for limit in (None, PersonLimit("row", 1)):  # categories are integers of 64 bits
        assert count_values(table, "v", 100, limit) == dict.fromkeys(WHOLE, 1)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        *((f"decimal{bits}(7, 3)", DECIMALS[:-1]) for bits in (32, 64, 256)),
        ("date64[ms]", DAYS),
    ],
)
def test_types_that_only_pandas_has_of_arrow_are_read_as_the_reference_does(kind, values):
    name, *size = re.findall(r"\w+", kind)
    if not hasattr(pa, name):
        pytest.skip("this arrow has none")
    dtype = pa.date64() if name == "date64" else getattr(pa, name)(*map(int, size))
    held = pd.arrays.ArrowExtensionArray(pa.array(values, dtype))
    read_like_the_reference(pd.DataFrame({"row": range(len(values)), "v": held}), values)


SETTINGS = {
    "lossless": ["arrow_lossless_conversion = true"],
    "views": ["arrow_output_version = '1.4'", "produce_arrow_string_view = true"],
    "narrow decimals": ["arrow_output_version = '1.5'"],
    "large buffers": ["arrow_large_buffer_size = true"],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_a_duckdb_connection_change_nothing(name):
    """They choose arrow's types."""
    kinds = ["text", "truth", "days", "moments in us", "int64", "double", "decimal, three places"]
    usual, other = duckdb.connect(), duckdb.connect()
    if name == "views" and not hasattr(pa, "string_view"):
        pytest.skip("this arrow has no views")
    for setting in SETTINGS[name]:
        try:
            other.execute(f"SET {setting}")
        except duckdb.Error:
            pytest.skip("this duckdb has no such setting")
    for kind in kinds:
        table = in_roles(array_of(kind))
        found = [
            counts_or_refusals(connection.from_arrow(table), list(APART.values()), len(table))
            for connection in (usual, other)
        ]
        for (one, said), (same, said_again) in zip(*found, strict=True):
            assert np.array_equal(one, same)
            assert said == said_again


@pytest.mark.parametrize("engine", sorted(ENGINES.keys() - {"dask"}))  # which cannot tell at once
def test_a_column_of_nulls_goes_to_the_catch_all_though_no_row_may_be_dropped(engine, tmp_path):
    table = ENGINES[engine](pa.table({"row": [0, 1], "v": pa.nulls(2)}), tmp_path)
    for attribute in UNTYPED_ROLES.values():
        found = counts(table, attribute, 2, "drop" if attribute is ROLES["large"] else "refuse")
        assert found[:, -1].all()
        assert not found[:, :-1].any()


def test_a_thousand_attributes_of_a_file_are_counted(tmp_path):
    """Conditions on all of them are not nested a thousand deep."""
    names = [f"c{k}" for k in range(1000)]
    rows = [",".join(names), ",".join(["0"] * 1000), ",".join(["1"] * 999 + ["x"])]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    attributes = [gn.Attribute(name, [0, 1]) for name in names]
    found = dict(count_marginals(tmp_path / "t.csv", attributes, [(0,), (999,)], "drop"))
    assert found[(0,)].tolist() == found[(999,)].tolist() == [1, 0]


def test_csv_reads_a_value_as_the_reference_does(tmp_path):
    texts = [text for text in TEXTS if "\0" not in text]
    lines = [
        "row,v",
        *(f'{k},"{text.replace(chr(34), chr(34) * 2)}"' for k, text in enumerate(texts)),
    ]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    for role, attribute in ROLES.items():
        found = counts(tmp_path / "t.csv", attribute, len(texts))
        wanted = expected(attribute, Form.TEXT, texts)
        assert not [(role, texts[k]) for k in np.flatnonzero((found != wanted).any(axis=1))]
        again = every(tmp_path / "t.csv", [attribute], len(texts), count=recount)[0]
        assert np.array_equal(again, found), role


# The reference itself, by exact arithmetic.


def body(text):
    """Text without the blanks that may stand around a number."""
    return text.strip("\u00a0\u2003").strip(" \t\n\v\f\r")


def exact(text):
    """The rational number in a text, by Python's own parser of fractions."""
    if not body(text).isascii() or any(sign in text for sign in ("_", "/", "9999999", "\x1c")):
        return None
    try:
        return fractions.Fraction(body(text))
    except ValueError:
        return None


def test_text_is_the_nearest_double_and_the_exact_integer():
    for text in TEXTS:
        known = exact(text)
        if known is None:
            continue
        assert double_of_text(text) == float(decimal.Decimal(body(text))), text
        assert integer_of_text(text) == (int(known) if known.denominator == 1 else None), text
    for text in ("1_0", "+-1", "0x10", "١", "1,5", "", ".", "e5", "1e", "--1", "\u200b1", "−1"):
        assert double_of_text(text) is None
        assert integer_of_text(text) is None
    assert integer_of_text("1" + "0" * 400) == 10**400
    assert integer_of_text("1e99999999999") is None
    assert integer_of_text("0e99999999999") == 0
    assert double_of_text("-1e400") == -math.inf
    assert integer_of_text("9007199254740993") == 2**53 + 1
    assert integer_of_text("9007199254740993.5") is None
    assert integer_of_text("0000000000000000009") == 9
    assert integer_of_text("-120e-1") == -12
    for text in ("inf", "nan", "1.5", "1e-2", "1e2147483648", "1 0"):
        assert integer_of_text(text) is None, text


def test_a_long_text_of_spaces_is_read_at_once():
    """A pattern that tries every split of the spaces would take hours."""
    for text in ("\t" * 10**6 + "1x", " " * 10**6 + "x", "1" * 10**6 + "x", "1e" + "0" * 10**6):
        assert integer_of_text(text) == (1 if text.startswith("1e") else None)
        assert double_of_text(text) == (1.0 if text.startswith("1e") else None)
        assert key_of(text) == (("number", 1) if text.startswith("1e") else ("text", text))


class Evil:
    """An object that raises when it is inspected."""

    __hash__ = None

    def __eq__(self, other):
        raise ValueError

    __lt__ = __float__ = __str__ = __bool__ = __eq__


OBJECTS = [
    *TEXTS,
    *WHOLE,
    *FLOATS,
    *DECIMALS,
    *DAYS,
    *MOMENTS,
    *(10**400, -(10**5000), 2**1024, decimal.Decimal("1e999999"), decimal.Decimal("-1e-999999")),
    *(decimal.Decimal(x) for x in ("NaN", "sNaN", "Infinity", "1e400", "9007199254740993")),
    *(True, False, np.bool_(True), None, pd.NA, pd.NaT, math.nan, np.nan, np.float32(0.1)),
    *(np.float16(3), np.int8(-1), np.uint64(2**64 - 1), np.longdouble("1e400"), np.str_("x")),
    *(1 + 0j, 1j, complex(math.nan, 0), np.complex64(3), np.bytes_(b"x"), b"x", b"\xff", "\ud800"),
    *(np.datetime64("2020-01-31"), np.datetime64("NaT"), np.datetime64(2**62, "Y")),
    *(np.datetime64(10**15, "s"), np.datetime64(1, "ns"), np.datetime64(5, "ps")),
    *(np.timedelta64(1, "s"), np.timedelta64("NaT"), np.timedelta64(3), np.timedelta64(1, "Y")),
    *(pd.Timestamp("2020-01-31 08:30:00.000000001"), pd.Timestamp(0, tz="Europe/Paris")),
    *(pd.Timestamp(10**12, unit="s"), pd.Timedelta(1), pd.Period("2020-01"), pd.Interval(0, 1)),
    *(pd.Timestamp("2020-01-31").date(), datetime.time(8, 30), datetime.timedelta(1)),
    *(datetime.datetime(2020, 1, 31, tzinfo=datetime.UTC), uuid.UUID(int=1)),
    *(fractions.Fraction(1, 2), [3], {3: 3}, {3}, (3,), np.array([3]), np.array([]), object()),
    *(object, float, Evil(), range(3), print, math, Ellipsis, NotImplemented, pd.Series([1])),
]


def test_every_object_has_an_answer_and_none_raises():
    for value in OBJECTS:
        for form in Form:
            for role, attribute in ROLES.items():
                size = 2**20 + 1 if attribute.clip is not None else attribute.size - 1
                assert 0 <= finder(attribute, form)(value) <= size, (type(value), role)
            person, label = person_of(value, form), label_of(value, form)
            assert person is None or hash(person) == hash(person_of(value, form))
            assert label is None or isinstance(label, str | int)


def test_the_same_value_is_read_alike_however_pandas_holds_it():
    """1, 1.0, "1", "01", true and "TRUE"; a day, a timestamp and its text."""
    same = [
        [
            1,
            1.0,
            "1",
            "01",
            " 1",
            "1.0",
            "1e0",
            np.int8(1),
            np.float32(1),
            decimal.Decimal(1),
            1 + 0j,
            *(True, np.bool_(True), "true", "True", "TRUE"),
        ],
        [0, False, "false", -0.0, "0e9"],
        [
            DAYS[2],
            MOMENTS[3],
            pd.Timestamp("2020-01-31"),
            np.datetime64("2020-01-31"),
            "2020-01-31",
        ],
        [math.inf, "inf", "1e400"],
        [
            None,
            math.nan,
            pd.NA,
            pd.NaT,
            "nan",
            2**53,
            float(2**53),
            "9007199254740993",
            10**400,
            [1],
            b"x",
        ],
    ]
    for values in same:
        assert len({key_of(value) for value in values}) == 1
    assert len({key_of(values[0]) for values in same}) == len(same)
    assert number_of("1", Form.TYPED) is None  # where a column has a type, text is no number
    assert {text_of(key) for value in same[2] if (key := key_of(value))} == {"2020-01-31"}


def test_two_persons_are_never_taken_for_one():
    """The exception is forms of one number, if rows decide whether they are kept apart."""
    apart = [
        "1",
        "01",
        "1.0",
        " 1",
        "1e0",
        "",
        "x",
        "X",
        2,
        2.5,
        decimal.Decimal("2.50000000000000000001"),
    ]
    apart += [b"1", b"x", True, uuid.UUID(int=1), DAYS[2], MOMENTS[0], "2020-1-31", math.inf]
    apart += [pd.Timestamp("2020-01-31 00:00:00.000000001"), datetime.timedelta(1), pd.Timedelta(1)]
    apart += ["9007199254740993", 2**53, 2**60, 1e300]
    persons = Counter(person_of(value, Form.TYPED) for value in apart)
    assert persons.pop(None) == 1  # ""
    assert set(persons.values()) == {1}
    alike = [1, 1.0, np.int64(1), "1", "01", " 1", "1e0", True, "TRUE"], [0, False, "false"]
    alike += [2.5, "2.5", decimal.Decimal("2.50")], ["2020-01-31", DAYS[2]], [math.inf, "1e400"]
    alike += (["x"], ["X"], [b"1"], [pd.Timedelta(1)], [uuid.UUID(int=1)], [MOMENTS[0]], [0.1])
    alike += ([pd.Timestamp("2020-01-31 00:00:00.000000001")], ["2020-1-31"])
    keys = [{person_of(value, Form.UNTYPED) for value in values} for values in alike]
    assert all(len(own) == 1 for own in keys)
    assert len(set().union(*keys)) == len(keys)
    none = ["", "9007199254740993", 2**53, 2**60, 1e300, "nan", None]
    assert {person_of(value, Form.UNTYPED) for value in none} == {None}


@pytest.mark.parametrize("way", ["as ever", "nullable", "arrow", "converted"])
@pytest.mark.parametrize(
    ("first", "second"), [("7", "007"), ("1", "1.0"), ("1", "+1"), ("1000", "1e3"), ("inf", "Inf")]
)
def test_rows_of_one_person_stay_together_for_any_other_names(way, first, second):
    """One word among numbers that are written in two ways turns all of them into text."""

    def kept(others):
        rows = [first, second] * 3 + others
        file = io.StringIO("who,w\n" + "".join(f"{name},0\n" for name in rows))
        return persons_counted(READ[way](file))

    assert kept([]) == 1
    assert kept(["x"]) == kept(["x", "y"]) - 1 == 2


# One row more, which may change the type of its column, in every function that reads pandas.

BASES = {
    "integers": lambda k: k,
    "large integers": lambda k: 2**60 + k,
    "floats": lambda k: k / 2,
    "text": lambda k: f"p{k}",
    "digits": lambda k: f"{k:03}",
    "truth": lambda k: bool(k % 2),
    "days": lambda k: pd.Timestamp("2020-01-31") + pd.Timedelta(k, "D"),
    "dates": lambda k: datetime.date(2020, 1, 31) + datetime.timedelta(k),
    "decimals": lambda k: decimal.Decimal(k) / 4,
    "durations": lambda k: pd.Timedelta(k, "D"),
    "intervals": lambda k: pd.Interval(k, k + 1),
    "complex": lambda k: complex(k),
}
LIMIT = PersonLimit("v", 2, bytes(16))
GROUPS = [gn.Attribute("g", [0, 1, 2])]


def doors(frame):
    """The counts of every function that reads a table, by name."""
    yield from in_untyped_roles(frame)
    yield "person", dict(count_marginals(frame, GROUPS, [(0,)], "drop", LIMIT))[(0,)]
    weight = gn.Weight("v", most=4)
    yield "weight", dict(count_marginals(frame, GROUPS, [(0,)], "drop", weight=weight))[(0,)]
    yield "values", count_values(frame, "v", 10**6)
    yield "values by person", count_values(frame, "g", 10**6, LIMIT)
    number = gn.Attribute("n", clip=[0, 8])
    means = PersonLimit("v", 1, bytes(16), {0: ("mean", number)})
    yield "means", dict(count_marginals(frame, [number], [(0,)], "drop", means))[(0,)]


def in_untyped_roles(frame):
    """The counts of the column in every role that it may have in pandas."""
    wide = frame.assign(row=0, **dict.fromkeys(UNTYPED_ROLES, frame["v"]))
    counted = every(wide, [APART[role] for role in UNTYPED_ROLES], 1)
    return zip(UNTYPED_ROLES, counted, strict=True)


def moved(before, after):
    """How much one more row removes and adds; the mean of its person may be replaced."""
    if isinstance(before, dict):
        keys = sorted({*before, *after}, key=repr)
        before, after = (np.array([one.get(key, 0) for key in keys]) for one in (before, after))
    difference = after - before
    return -difference[difference < 0].sum(), difference[difference > 0].sum()


ODD = [
    None,
    "x",
    "1",
    "01",
    "",
    "nan",
    "true",
    "\ud800",
    1,
    2.5,
    2**53 + 1,
    2**60,
    10**400,
    math.inf,
]
ODD += [
    True,
    1j,
    3 + 0j,
    b"x",
    decimal.Decimal("0.1"),
    decimal.Decimal("sNaN"),
    np.float16(3),
    pd.NA,
]
ODD += [
    pd.NaT,
    DAYS[2],
    pd.Timestamp(0, tz="Europe/Paris"),
    np.datetime64(10**15, "s"),
    Evil(),
    [1],
]
ODD += [pd.Timedelta(1), np.timedelta64(1, "Y"), pd.Interval(0, 1), pd.Period("2020-01"), object()]


OFTEN = ("integers", "large integers", "text", "days")  # the others take as long again
CHANGED = [("pandas", base) for base in BASES] + [("dask", base) for base in BASES]
CHANGED.remove(("dask", "intervals"))  # dask fails on them by itself


@pytest.mark.filterwarnings("ignore::gaussnoise.errors.SchemaWarning")
@pytest.mark.parametrize(
    ("engine", "base"),
    [
        pytest.param(*case, marks=() if case[1] in OFTEN else pytest.mark.integration)
        for case in CHANGED
    ],
)
def test_one_row_more_changes_what_this_row_counts_as_and_nothing_else(engine, base):
    rng = np.random.default_rng(0)
    values = [BASES[base](k) for k in rng.integers(1, 30, 60).tolist()]
    own = {"g": rng.integers(0, 3, 60).tolist(), "n": rng.integers(0, 9, 60).tolist()}
    people = {person_of(value, Form.UNTYPED) for value in values}

    def read(held):
        columns = {name: [*column, 1][: len(held)] for name, column in own.items()}
        frame = pd.DataFrame({"v": pd.Series(held), **columns})
        return dict(doors(frame if engine == "pandas" else in_dask(frame)))

    known, changed = read(values), 0
    for value in ODD if engine == "pandas" else ODD[:12:6]:
        try:
            pd.Series([*values, value])
        except (TypeError, ValueError, OverflowError):
            continue  # pandas has no column for it
        for door, counts in read([*values, value]).items():
            lost, won = moved(known[door], counts)
            # other rows of the same person may be counted, or their mean be another
            again = "person" in door or door == "means"
            unit = 2**20 if door.startswith(("clipped", "weight", "means")) else 1
            most = LIMIT.rows if again and person_of(value, Form.UNTYPED) in people else 0
            most *= unit
            assert lost <= most, (door, value)
            assert won <= max(most, unit), (door, value)
            changed += won > 0
    assert changed


CELLS = [
    "1",
    "2",
    "01",
    "1.0",
    "2.5",
    "x",
    "true",
    "False",
    "",
    "NA",
    "2020-01-31",
    "9007199254740993",
    "9223372036854775808",  # pandas makes text of the column, and of its nulls
    "None",
]
ROWS = st.lists(st.sampled_from(CELLS), min_size=1, max_size=6)
READ = {
    "as ever": pd.read_csv,
    "nullable": lambda file: pd.read_csv(file, dtype_backend="numpy_nullable"),
    "arrow": lambda file: pd.read_csv(file, dtype_backend="pyarrow"),
    "converted": lambda file: pd.read_csv(file).convert_dtypes(),
    "json": lambda file: pd.read_json(io.StringIO(in_json(file))),
}


def in_json(file):
    """The rows of a CSV file with numbers, truth values and nulls as JSON has them."""
    rows = []
    for line in file.read().splitlines()[1:]:
        cell = line.split(",")[0]
        try:
            rows.append({"v": json.loads(cell.lower() or "null")})
        except json.JSONDecodeError:
            rows.append({"v": cell})
    return json.dumps(rows)


@functools.cache  # cells alone are among many examples
def counted(way, *cells):
    text = "v,w\n" + "".join(f"{cell},0\n" for cell in cells)
    return dict(in_untyped_roles(READ[way](io.StringIO(text))))


@pytest.mark.filterwarnings("ignore::gaussnoise.errors.SchemaWarning")
@pytest.mark.parametrize("way", READ)
@settings(derandomize=True, deadline=None, database=None, max_examples=20)
@given(rows=ROWS, one=st.sampled_from(CELLS))
def test_a_file_that_pandas_reads_counts_row_by_row(way, rows, one):
    """It holds for any type that pandas infers from these rows, or from these and one more."""
    alone = [counted(way, cell) for cell in [*rows, one]]
    together = counted(way, *rows, one)
    for role in UNTYPED_ROLES:
        assert (together[role] == sum(counts[role] for counts in alone)).all(), role


def test_a_polars_that_counts_wrongly_is_refused(monkeypatch):
    monkeypatch.setattr(pl, "__version__", "1.1.0")
    with pytest.raises(NotAvailableError, match=r"expected polars 1\.2 or later"):
        counts(pl.DataFrame({"row": [0], "v": [1]}), ROLES["integers"], 1)


# Faults that reviewers found.


def persons_counted(table, rows=1):
    """How many rows are counted, at most this many of each person in the column who."""
    limit = PersonLimit("who", rows, bytes(16))
    return int(dict(count_marginals(table, (), [()], "drop", limit))[()])


def test_persons_of_far_times_broken_text_and_long_numbers_are_told_apart_in_pandas():
    def of(values):
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return pd.DataFrame({"who": pd.Series(column, dtype=object)})

    assert persons_counted(of([10**400, 10**500, np.longdouble("1e400")])) == 0
    assert persons_counted(of(["\ud800", "\ud801", "\ud800"])) == 2
    for moment in ("2020-01-01", "9999-12-31 23:59:59"):
        zoned = pd.Series(np.array([moment, moment, "NaT"], dtype="datetime64[s]"))
        zoned = zoned.dt.tz_localize("UTC").dt.tz_convert("Europe/Paris")
        for column in (
            zoned,
            zoned.astype("category"),
            zoned.astype(object) if "2020" in moment else zoned,
        ):
            frame = pd.DataFrame({"who": column, "v": column, "row": range(3)})
            assert persons_counted(frame) == 1
            assert counts(frame, ROLES["text"], 3)[:, -1].tolist() == [1, 1, 1]
            assert counts(frame, ROLES["days"], 3)[:, -1].tolist() == [1, 1, 1]


def test_text_without_bytes_is_no_category_in_any_type_of_text():
    for dtype in (object, pd.StringDtype("python")):
        frame = pd.DataFrame({"row": [0, 1], "v": pd.Series(["x", "\ud800"], dtype=dtype)})
        assert counts(frame, ROLES["words"], 2)[:, -1].tolist() == [0, 1]
        assert persons_counted(frame.rename(columns={"v": "who"})) == 2


def test_dictionaries_of_arrow_are_read_by_their_values():
    """Their parts together may have more values than an index counts, and nulls among them."""
    parts = [
        pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([f"p{k}"]))
        for k in range(200)
    ]
    table = pa.table(
        {"who": pa.chunked_array(parts), "v": pa.chunked_array(parts), "row": range(200)}
    )
    assert persons_counted(table) == 200
    assert counts(table, gn.Attribute("v", ["p199"], other="o"), 200)[199].tolist() == [1, 0]
    assert len(count_values(table, "v", 1000)) == 200
    holes = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([1, None]))
    table = pa.table({"row": range(3), "v": holes, "who": holes})
    for held in (table, table.to_pandas(types_mapper=pd.ArrowDtype)):
        assert counts(held, ROLES["bins"], 3)[:, -1].tolist() == [0, 1, 1]
        assert counts(held, ROLES["integers"], 3)[:, -1].tolist() == [0, 1, 1]
        assert persons_counted(held) == 1


def test_a_lone_accent_is_a_person_and_empty_bytes_are_none():
    """It holds although a collation of the database takes the accent for empty text."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (who VARCHAR COLLATE NOACCENT)")
    connection.execute("INSERT INTO t VALUES ('a'), ('á'), (chr(769)), (''), (NULL)")
    assert persons_counted(connection.table("t")) == 3
    for build in (
        lambda table: table,
        pl.from_arrow,
        duckdb.from_arrow,
        lambda table: table.to_pandas(),
    ):
        assert persons_counted(build(pa.table({"who": [b"x", b"", None]}))) == 1


def test_a_column_of_variants_is_refused_as_persons():
    """1 and '1' would be written alike, and be one person."""
    table = duckdb.sql("SELECT 1::VARIANT AS who UNION ALL SELECT '1'::VARIANT")
    with pytest.raises(DataError, match="column 'who': expected a type that can be read, got var"):
        persons_counted(table)


def test_unsigned_integers_of_128_bits():
    table = duckdb.sql(
        f"SELECT unnest(['1', '{2**128 - 1}']::UHUGEINT[]) AS v, unnest([0, 1]) AS row"
    )
    edges = gn.Attribute("v", edges=[0, 2, math.inf], other="o")
    assert counts(table, edges, 2).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_text_is_compared_as_bytes_through_ibis():
    ibis = pytest.importorskip("ibis", reason="ibis is missing")
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE t (row INTEGER, v VARCHAR COLLATE NOCASE)")
    connection.raw_sql("INSERT INTO t VALUES (0, 'x'), (1, 'X'), (2, 'é'), (3, NULL)")
    for more in ([], [f"c{k}" for k in range(200)]):
        attribute = gn.Attribute("v", ["x", "X", "é", *more], other="o")
        found = counts(connection.table("t"), attribute, 4)
        assert found.argmax(axis=1).tolist() == [0, 1, 2, 3 + len(more)]


@pytest.mark.integration
def test_spark_tells_persons_and_categories_apart_by_their_bytes(spark):
    def query(*values):
        return spark.sql(" UNION ALL ".join(f"SELECT {value}" for value in values))

    apart = [
        ("unhex('FF') who", "unhex('FE')"),
        ("cast(unhex('FF') as string) who", "cast(unhex('FE') as string)"),
    ]
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    # the hour that occurs twice when summer time ends
    apart += [("timestamp_seconds(1730611800) who", "timestamp_seconds(1730615400)")]
    for values in apart:
        assert persons_counted(query(*values)) == 2
    spark.conf.unset("spark.sql.session.timeZone")
    assert persons_counted(query("'' who", "'a'", "unhex('')")) == 1
    for text, cell in (("x", 0), ("X", 1), ("é", 3), ("y", 4)):
        table = query(f"0 row, cast('{text}' as string collate UTF8_LCASE) v")
        attribute = gn.Attribute("v", ["x", "X", "É", "é"], other="o")
        assert counts(table, attribute, 1)[0].argmax() == cell


def test_text_that_is_no_utf_8_is_no_category_at_any_door_and_harms_no_connection():
    ends = np.array([0, 1, 3, 4], dtype=np.int32).tobytes()
    held = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(ends), pa.py_buffer(b"a\xff\xfeb")]
    )
    table, connection = pa.table({"v": held}), duckdb.connect()
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    for build in (lambda: table, lambda: frame, lambda: connection.from_arrow(table)):
        assert count_values(build(), "v", 9) == {"a": 1, "b": 1}
    assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("large", [2**63, 2**64 - 1])
@pytest.mark.parametrize("column", ["v", "who"])
def test_words_that_pandas_reads_as_nulls_are_no_values_though_a_number_made_text_of_them(
    column, large
):
    """With an integer from 2**63 on, ``pandas.read_csv`` keeps such words of its column as text."""
    words = sorted(NULL_WORDS)
    assert frozenset(getattr(parsers, "STR_NA_VALUES", words)) == NULL_WORDS  # no public name
    text = f"{column},w\n" + "".join(f"{word},0\n" for word in words) + f"{large},0\n"
    frame = pd.read_csv(io.StringIO(text))
    assert frame[column].tolist() == [*words, str(large)]  # else this test shows nothing
    if column == "who":
        assert persons_counted(frame) == 0
    else:
        assert count_values(frame, column, 100) == {}


@pytest.mark.parametrize("on_outside", ["drop", "refuse"])
def test_categories_that_pandas_may_read_as_nulls_are_refused(on_outside, tmp_path):
    attribute = gn.Attribute("v", ["NA", "ZA"], other="o")
    with pytest.raises(DataError, match="got words that it may read as nulls, like NA; hint"):
        counts(pd.DataFrame({"row": [0], "v": ["NA"]}), attribute, 1, on_outside)
    (tmp_path / "t.csv").write_text("row,v\n0,NA\n")
    assert counts(tmp_path / "t.csv", attribute, 1, on_outside)[:, 0].tolist() == [1]
