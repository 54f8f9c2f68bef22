"""Dates and timestamps are edges of bins: every engine counts them by Python's calendar.

What is released states dates.
"""

import datetime
import itertools
import json
import math
import re
from datetime import date

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import DataError, ParameterError, SchemaError
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.persons import PersonLimit
from gaussnoise.tables.counting.records import code_table
from gaussnoise.tables.drafts.draft import draft
from gaussnoise.tables.schema.dates import ISO

# warnings of dask and ibis about their own dependencies
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}:{module}")
    for kind in ("DeprecationWarning", "FutureWarning", "UserWarning")
    for module in (r"dask(\..*)?", r"ibis(\..*)?")
]
pytestmark.append(
    pytest.mark.filterwarnings("ignore:Dask support is moving out of Narwhals:FutureWarning")
)

Stamp = datetime.datetime
MICROSECOND = datetime.timedelta(microseconds=1)

DAYS = ["0001-01-01", "1969-12-31", "1970-01-01", "2020-02-29", "2020-03-01", "9999-12-30"]
TIMES = [
    "0001-01-01T00:00:00.000001",
    "1969-12-31T23:59:59.5",
    "2020-02-29",
    "2020-03-01T12:00",
    "2262-01-01",
    "9999-12-31T23:59:59.999998",
]
EDGES = {
    "days": DAYS,
    "times": TIMES,
    "days without ends": [-math.inf, *DAYS[1:-1], math.inf],
    "times without ends": [-math.inf, *TIMES[1:-1], math.inf],
    "days up to a month's end": ["2020-01-01", "2020-02-29", "2020-04-30"],
    "times up to an hour": ["1969-12-31T23:59:59.5", "2020-02-29", "2020-03-01T12:00"],
}


def moments():
    """Return moments on every edge, a microsecond before and after, at ends of days, and others."""
    named = {date.fromisoformat(day) for day in [*DAYS, "9999-12-31", "2020-05-01", "2020-04-30"]}
    stamps = {
        Stamp.combine(day, time) for day in named for time in (datetime.time.max, datetime.time())
    }
    stamps |= set(map(Stamp.fromisoformat, TIMES))
    near = {
        stamp + k * MICROSECOND
        for stamp in stamps
        for k in (-1, 0, 1)
        if (Stamp.min < stamp or k >= 0) and (stamp < Stamp.max or k <= 0)
    }
    return sorted(near)


def cell(edges, moment, nanoseconds=0):
    """Return the cell of a moment by Python's own calendar; the last cell is the catch-all."""
    outside = len(edges) - 1
    if moment is None:
        return outside
    known = [Stamp.fromisoformat(edge) for edge in edges if isinstance(edge, str)]
    daily = all(edge.time() == datetime.time() for edge in known)
    value = (Stamp.combine(moment, datetime.time()), 0) if daily else (moment, nanoseconds)
    first = (Stamp.min, -1) if edges[0] == -math.inf else (known[0], 0)
    last = (Stamp.max, 1000) if edges[-1] == math.inf else (known[-1], 0)
    if not first <= value <= last:
        return outside
    inner = [(Stamp.fromisoformat(edge), 0) for edge in edges[1:-1]]
    return sum(value >= edge for edge in inner)


# no dates or timestamps by ISO 8601, or ambiguous without place or time of writing
STRANGE = [
    *"epoch infinity -infinity now today 1e5 5 2020 2020-01 2020-1-1 20200101 2020-W01-1".split(),
    *"01/02/2020 2020-01-01T00:00:00Z 2020-01-01T00:00:00+00:00 2020-01-01t00:00".split(),
    *"2019-02-29 1900-02-29 2100-02-29 0000-01-01 2020-00-10 2020-13-01 2020-01-00".split(),
    *"2020-01-32 2020-06-31 2020-01-01T24:00:00 2020-01-01T23:60 2020-01-01T23:59:60".split(),
    *"2020-01-01T10 2020-01-01T10:00:00. 2020-01-01T00:00:00.1234567890 -2020-01-01".split(),
    *"+2020-01-01 02020-01-01 12020-01-01 ٢٠٢٠-01-01".split(),
    *("2020-01-01 00:00:00-05", " 2020-01-01", "2020-01-01 ", "2020-01-01\n"),
    *("2020-01-01T00:00:00.1\n", ""),
]

PRECISE = [(m, ns) for m in moments() if 1700 < m.year < 2262 for ns in (0, 1, 999)]
PRECISE += [
    (Stamp(2262, 4, 11, 23, 47, 16, 854775), 807),  # the last that 64 bits hold, and the first
    (Stamp(1677, 9, 21, 0, 12, 43, 145224), 193),
]


def columns():
    """Return columns of every type, and the moments with nanoseconds that they hold."""
    plain = [(moment, 0) for moment in moments()]
    text = [(m.isoformat(), m, 0) for m in moments()]
    text += [(m.isoformat(" ", "microseconds") + f"{ns:03}", m, ns) for m, ns in PRECISE]
    text += [
        (m.isoformat(" ", "minutes"), m.replace(second=0, microsecond=0), 0) for m in moments()
    ]
    text += [(strange, None, 0) for strange in STRANGE]
    epoch = Stamp(1970, 1, 1)
    found = {
        "date": (
            pa.array([m.date() for m, _ in plain]),
            [(Stamp.combine(m, datetime.time()), 0) for m, _ in plain],
        ),
        "text": (pa.array([written for written, _, _ in text]), [(m, ns) for _, m, ns in text]),
        "ns": (
            pa.array(
                [(m - epoch) // MICROSECOND * 1000 + ns for m, ns in PRECISE], pa.timestamp("ns")
            ),
            PRECISE,
        ),
    }
    for unit, size in {"s": 10**6, "ms": 10**3, "us": 1}.items():
        whole = [m.replace(microsecond=m.microsecond // size * size) for m, _ in plain]
        found[unit] = pa.array(whole, pa.timestamp(unit)), [(m, 0) for m in whole]
    return found


COLUMNS = columns()


def every_table():
    """Return columns of every type for sets of edges, with nulls, and the moments of each."""
    rows = max(len(values) for values, _ in COLUMNS.values()) + 1
    found, expected = {}, {}
    for (kind, (values, known)), edges in itertools.product(COLUMNS.items(), EDGES):
        if kind not in ("us", "text") and edges not in ("days", "times up to an hour"):
            continue
        missing = rows - len(values)
        found[f"{kind}, {edges}"] = pa.concat_arrays([values, pa.nulls(missing, values.type)])
        expected[f"{kind}, {edges}"] = [*known, *[(None, 0)] * missing]
    return pa.table(found), expected


def as_ibis(table, _):
    ibis = pytest.importorskip("ibis", reason="ibis is missing")
    backend = ibis.duckdb.connect()
    backend.con.register("arrow", table)
    backend.con.execute("CREATE TABLE t AS SELECT * FROM arrow")
    return backend.table("t")


OWN = {
    "pandas objects": lambda table, _: table.to_pandas(timestamp_as_object=True).astype(object),
    "ibis": as_ibis,
}
ENGINES = ["pandas", "pandas on arrow", "polars", "polars lazy", "pyarrow", "duckdb", "dask", "csv"]
ENGINES += ["parquet", *OWN]


def counted(table, attributes, **options):
    subsets = [(k,) for k in range(len(attributes))]
    found = dict(count_marginals(table, attributes, subsets, **options))
    return [found[S] for S in subsets]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_counts_dates_like_pythons_calendar(engine, engines, tmp_path):
    table, expected = every_table()
    if engine == "pandas objects":  # Python's timestamps have no nanoseconds; pandas' are below
        table = table.select([name for name in table.column_names if name[:2] != "ns"])
    asked = {name: EDGES[name.partition(", ")[2]] for name in table.column_names}
    attributes = [gn.Attribute(name, edges=edges, other="rest") for name, edges in asked.items()]
    found = counted((engines | OWN)[engine](table, tmp_path), attributes)
    for (name, edges), counts in zip(asked.items(), found, strict=True):
        cells = [cell(edges, *moment) for moment in expected[name]]
        assert counts.tolist() == np.bincount(cells, minlength=len(edges)).tolist(), name


def test_the_moments_above_tell_rounding_and_other_ends_of_days_apart():
    """A count that rounds down, or whose days end at midnight, differs: the negative control."""
    edges = EDGES["times up to an hour"]
    assert [cell(edges, m, ns) for m, ns in PRECISE] != [cell(edges, m) for m, _ in PRECISE]
    late = [m for m in moments() if m.date() == date(9999, 12, 30) and m.time() > datetime.time()]
    assert {cell(DAYS, m) for m in late} == {len(DAYS) - 2}
    assert {cell([*DAYS, "9999-12-30T12:00"], m) for m in late} == {5, 6}


def test_what_counts_as_a_date_in_text_is_what_the_calendar_has():
    for year in (0, 1, 4, 100, 400, 1900, 2000, 2019, 2020, 2100, 9999):
        for month, day in itertools.product(range(14), range(33)):
            text = f"{year:04}-{month:02}-{day:02}"
            try:
                known = date(year, month, day).isoformat() == text
            except ValueError:
                known = False
            assert (re.fullmatch(ISO, text) is not None) == known, text


def test_text_of_any_kind_is_never_an_error_and_never_moves_another_row():
    attribute = gn.Attribute("when", edges=DAYS, other="rest")
    for strange in [*STRANGE, None]:
        table = pa.table({"when": pa.array(["2020-02-29", strange, "1970-01-01"])})
        assert counted(table, [attribute])[0].tolist() == [0, 0, 1, 1, 0, 1]


def codes_of(table, attribute):
    """Return the code of each row of a table in this process."""
    ((codes,),) = code_table(table, [attribute])
    return codes.tolist()


@settings(derandomize=True, deadline=None, database=None, max_examples=15)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=12),
            st.from_regex(rf"\A{ISO}\Z"),
            st.datetimes().map(str),
            st.dates().map(str),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_every_text_has_one_cell_in_any_engine_and_with_any_other_rows(texts):
    attribute = gn.Attribute("when", edges=TIMES, other="rest")
    mixed = pd.DataFrame({"when": pd.Series([*texts, 1], dtype=object)})
    tables = [pa.table({"when": pa.array(texts)}), mixed]
    tables += [pa.table({"when": [text]}) for text in texts]
    together, objects, *alone = (codes_of(table, attribute) for table in tables)
    assert together == [code for (code,) in alone] == objects[:-1]
    expected = np.bincount((np.array(together) - 1) % 6, minlength=6).tolist()
    for make in (pl.DataFrame, duckdb.from_arrow):
        assert counted(make(pa.table({"when": texts})), [attribute])[0].tolist() == expected


@pytest.mark.parametrize("edges", [["0001-01-01", "0001-01-02"], ["1600-01-01", "2000-01-01"]])
def test_nanoseconds_at_the_ends_of_64_bits_are_where_they_are(edges):
    ticks = [-(2**63), -(2**63) + 1, 0, 2**63 - 1]  # in 1677 twice, 1970 and 2262
    table = pa.table({"when": pa.array(ticks, pa.int64()).cast(pa.timestamp("ns"))})
    codes = codes_of(table, gn.Attribute("when", edges=edges, other="rest"))
    assert codes == ([1, 1, 1, 0] if edges[0] == "1600-01-01" else [0, 0, 0, 0])


def test_text_of_arrow_is_read_alike_in_all_its_types():
    attribute = gn.Attribute("when", edges=["2020-01-01", "2021-01-01"], other="rest")
    kinds = [
        pa.string(),
        pa.large_string(),
        *([pa.string_view()] if hasattr(pa, "string_view") else []),
    ]
    for kind in kinds:
        table = pa.table({"when": pa.array(["2020-05-05", "x", None], kind)})
        assert codes_of(table, attribute) == [1, 0, 0]


def test_objects_of_any_kind_count_by_value():
    values = {
        date(2020, 2, 29): 2,
        Stamp(2020, 3, 1, 12): 3,
        pd.Timestamp("2020-03-01T11:59:59.999999999"): 2,
        pd.Timestamp("1969-12-31T23:59:59.500000001"): 1,
        np.datetime64("2020-02-29"): 2,
        np.datetime64("2261-12-31T23:59:59.999999999"): 3,
        np.datetime64("20000-01-01"): 5,
        np.datetime64("NaT"): 5,
        "2262-01-01": 4,
        "9999-12-31T23:59:59.999998001": 5,
        Stamp(2020, 2, 29, tzinfo=datetime.UTC): 5,
        pd.Timestamp("2020-02-29", tz="UTC"): 5,
        datetime.time(8): 5,
        pd.NaT: 5,
        None: 5,
        True: 5,
        1577836800: 5,
    }
    attribute = gn.Attribute("when", edges=TIMES, other="rest")
    table = pd.DataFrame({"when": pd.Series(list(values), dtype=object)})
    codes = codes_of(table, attribute)
    assert [(code - 1) % 6 for code in codes] == list(values.values())


def test_rows_without_a_date_refuse_the_release_or_are_left_out_of_it():
    attribute = gn.Attribute("when", edges=["2020-01-01", "2020-12-31"])
    table = pl.DataFrame({"when": ["2020-06-01", "2031-05-17", None]})
    with pytest.raises(DataError, match=r"'when': expected only dates inside") as caught:
        counted(table, [attribute])
    assert "2031" not in str(caught.value)
    assert counted(table, [attribute], on_outside="drop")[0].tolist() == [1]
    unknown = pl.DataFrame({"when": pl.Series([None, None])})
    assert counted(unknown, [attribute], on_outside="drop")[0].tolist() == [0]


ZONED = pa.array([0, 1], pa.timestamp("us", tz="Europe/Berlin"))


@pytest.mark.parametrize("engine", [e for e in ENGINES if e not in ("csv", "pandas objects")])
def test_timestamps_with_a_time_zone_are_refused_by_their_type(engine, engines, tmp_path):
    attribute = gn.Attribute("when", edges=DAYS, other="rest")
    for values in (ZONED, ZONED.slice(0, 0)):
        table = (engines | OWN)[engine](pa.table({"when": values}), tmp_path)
        with pytest.raises(DataError, match=r"got Datetime with a time zone; hint: convert"):
            counted(table, [attribute])


@pytest.mark.parametrize("engine", ["pandas", "dask"])
def test_where_rows_may_decide_on_types_timestamps_with_a_zone_are_outside(
    engine, engines, tmp_path
):
    attribute = gn.Attribute("when", edges=[-math.inf, "2020-01-01", math.inf], other="rest")
    table = engines[engine](pa.table({"when": ZONED}), tmp_path)
    assert counted(table, [attribute], on_outside="drop")[0].tolist() == [0, 0, 2]


def test_moments_beyond_the_years_1_to_9999_are_outside_and_no_error():
    attribute = gn.Attribute("when", edges=[-math.inf, "2020-01-01", math.inf], other="rest")
    largest = 2**31 - 1
    days = pa.array([0, -719_162, -719_163, 2_932_896, 2_932_897, largest, -largest], pa.int32())
    seconds = pa.array([0, 10**15, -(10**15), 2**62, 253_402_300_799, 253_402_300_800], pa.int64())
    for values, expected in (
        (days.cast(pa.date32()), [2, 1, 4]),
        (seconds.cast(pa.timestamp("s")), [1, 1, 4]),
        (seconds.cast(pa.timestamp("ms")), [3, 0, 3]),
    ):
        table = pa.table({"when": values})
        for make in (lambda t: t, duckdb.from_arrow):
            assert counted(make(table), [attribute])[0].tolist() == expected
    words = ["infinity", "-infinity", "44-03-15 (BC)", "20000-01-01", "0001-01-01"]
    for kind in ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"):
        rows = " UNION ALL ".join(f"SELECT {kind} '{word}' AS \"when\"" for word in words)
        assert counted(duckdb.sql(rows), [attribute])[0].tolist() == [1, 0, 4]


@pytest.mark.parametrize("values", [[1, 2], [0.5], [True], [datetime.time(8)], [b"x"]])
def test_columns_of_other_types_are_refused(values):
    attribute = gn.Attribute("when", edges=DAYS, other="rest")
    with pytest.raises(DataError, match=r"expected dates, timestamps without time zone or ISO"):
        counted(pa.table({"when": values}), [attribute])


@pytest.mark.parametrize("engine", ["polars", "csv", "duckdb", "dask", "pandas"])
def test_many_bins_persons_and_other_columns_go_with_dates(engine, engines, tmp_path):
    days = np.arange("2000-01-01", "2000-12-31", dtype="datetime64[D]")
    attributes = [
        gn.Attribute('the "day"', edges=days, other="rest"),
        gn.Attribute("Date_0", ["F", "M"]),
    ]
    seen = pa.array([*days[:300].tolist(), None])
    table = pa.table({'the "day"': seen, "Date_0": ["F"] * 301, "who": list(range(301))})
    made = engines[engine](table, tmp_path)
    found = dict(count_marginals(made, attributes, [(0, 1)]))[0, 1]
    assert found[:300, 0].tolist() == [1] * 300
    assert found.sum() == found[:300, 0].sum() + found[-1, 0] == 301
    # the column itself says which person a row belongs to, not its bin
    limit = PersonLimit('the "day"', 1)
    kept = counted(made, attributes, limit=limit, on_outside="drop")[0]
    assert kept[:300].tolist() == [1] * 300


WRITTEN = {
    "text": ["2020-01-01", "2020-07-01"],
    "dates": [date(2020, 1, 1), date(2020, 7, 1)],
    "midnights": [Stamp(2020, 1, 1), Stamp(2020, 7, 1)],
    "pandas": pd.to_datetime(["2020-01-01", "2020-07-01"]),
    "polars": pl.Series(["2020-01-01", "2020-07-01"]).str.to_date(),
    "mixed": ["2020-01-01T00:00", pd.Timestamp("2020-07-01")],
} | {
    unit: np.array(["2020-01-01", "2020-07-01"], dtype=f"datetime64[{unit}]")
    for unit in ("M", "D", "s", "us", "ns")
}


@pytest.mark.parametrize("edges", WRITTEN.values(), ids=WRITTEN)
def test_edges_are_the_same_dates_however_they_are_given(edges):
    attribute = gn.Attribute("when", edges=edges)
    assert attribute == gn.Attribute("when", edges=WRITTEN["text"])
    assert attribute.edges == (date(2020, 1, 1), date(2020, 7, 1))
    assert type(attribute.edges[0]) is date
    assert attribute.labels == ("[2020-01-01, 2020-07-01]",)


def test_one_time_of_day_makes_all_edges_timestamps():
    attribute = gn.Attribute("when", edges=["2020-01-01", "2020-01-01 08:30"])
    assert attribute.edges == (Stamp(2020, 1, 1), Stamp(2020, 1, 1, 8, 30))
    assert attribute.labels == ("[2020-01-01T00:00:00, 2020-01-01T08:30:00]",)


@pytest.mark.parametrize(
    ("edges", "part"),
    [
        ([1950, date(2020, 1, 1)], "all numbers or all dates"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"], utc=True), "got a time zone"),
        ([Stamp(2020, 1, 1, tzinfo=datetime.UTC), Stamp(2021, 1, 1)], "got a time zone"),
        (["2020-01-01T00:00:00Z", "2021-01-01"], "dates like 2020-01-31"),
        (["2020-02-30", "2021-01-01"], "dates like 2020-01-31"),
        (["2020-01-01T00:00:00.0000001", "2021-01-01"], "dates like 2020-01-31"),
        (["2021-01-01", "2020-01-01"], "increasing"),
        (["2020-01-01", "2020-01-01T00:00"], "increasing"),
        (["2020-01-01"], "at least two"),
        ([pd.NaT, date(2020, 1, 1)], "missing"),
        (np.array(["NaT", "2020-01-01"], dtype="datetime64[D]"), "from year 1"),
        (np.array(["20000-01-01", "30000-01-01"], dtype="datetime64[D]"), "from year 1"),
        ([np.datetime64(1, "ns"), np.datetime64(2, "ns")], "whole microseconds"),
        ([pd.Timestamp(1), pd.Timestamp("2020-01-01")], "whole microseconds"),
        ([datetime.time(8), datetime.time(16)], "times of day or durations"),
        ([datetime.timedelta(1), datetime.timedelta(2)], "times of day or durations"),
        (np.array([1, 2], dtype="timedelta64[ns]"), "times of day or durations"),
    ],
)
def test_edges_that_are_no_dates_are_refused(edges, part):
    with pytest.raises(SchemaError, match=f"attribute 'born': .*{part}"):
        gn.Attribute("born", edges=edges)


@pytest.mark.parametrize("field", ["clip", "categories"])
@pytest.mark.parametrize("values", WRITTEN.values(), ids=WRITTEN)
def test_dates_are_neither_categories_nor_summed(field, values):
    if field == "categories" and any(isinstance(value, str) for value in values):
        pytest.skip("text may be a category")
    wanted = (
        r"\[low, high\]"
        if all(isinstance(v, str) for v in values)
        else "got dates or times; hint: dates are"
    )
    with pytest.raises(SchemaError, match=wanted):
        gn.Attribute("born", **{field: values})


@pytest.mark.parametrize("dtype", [np.int64, np.float32, object])
def test_numbers_of_numpy_are_still_edges_and_ends(dtype):
    numbers = np.array([1950, 1960], dtype=dtype)
    assert gn.Attribute("born", edges=numbers).edges == (1950.0, 1960.0)
    assert gn.Attribute("born", clip=numbers).clip == (1950.0, 1960.0)


@pytest.mark.parametrize(
    "table",
    [pl.DataFrame({"born": WRITTEN["dates"]}), pa.table({"born": WRITTEN["dates"]})],
    ids=["polars", "pyarrow"],
)
@pytest.mark.parametrize(
    ("asked", "hint"),
    [({"edges": [1950, 1960]}, "dates are edges"), ({"clip": [0, 1]}, "for sums and means")],
)
def test_a_column_of_dates_is_refused_where_the_schema_has_numbers(table, asked, hint):
    with pytest.raises(DataError, match=rf"'born'.*got Date; hint: {hint}"):
        code_table(table, [gn.Attribute("born", **asked)])


def test_moments_of_dates_are_refused_unless_their_numbers_are_given():
    with pytest.raises(SchemaError, match=r"no moments of dates; hint: .*a column of numbers"):
        gn.Attribute("born", edges=DAYS, base={"kind": "moments", "degrees": [0, 1]})
    asked = {"kind": "moments", "degrees": [1], "values": [0, 1, 2, 3, 4]}
    assert gn.Attribute("born", edges=DAYS, base=asked).base.queries == 1


QUARTERS = ["2020-01-01", "2020-04-01", "2020-07-01", "2020-10-01", "2020-12-31"]


def test_a_schema_file_holds_dates_and_timestamps_and_groups_of_them():
    text = """\
[attributes.admitted]
edges = [-inf, 2020-01-01, 2020-07-01T12:00:00.5, 2021-01-01]
other = "unknown"
base = "prefix"

[attributes.left]
edges = ["2020-01-01", "2020-04-01", 2020-07-01, 2020-10-01, 2020-12-31]

[attributes.left.groups.half]
first = [2020-01-01, "2020-07-01"]
second = [2020-07-01, 2020-12-31T00:00:00]
"""
    schema = gn.Schema.loads(text)
    admitted, left = schema.attributes
    assert admitted.edges[1:3] == (Stamp(2020, 1, 1), Stamp(2020, 7, 1, 12, 0, 0, 500_000))
    assert left == gn.Attribute("left", edges=QUARTERS, groups=left.groups)
    assert gn.Schema.loads(schema.to_toml()) == schema
    assert gn.plan(schema, [{"left": "half"}], gn.zCDP(1)).entries == ("left (half)",)
    python = gn.Attribute(
        "left",
        edges=QUARTERS,
        groups={"half": {"first": pd.to_datetime(["2020-01-01", "2020-07-01"])}},
    )
    assert gn.Schema.loads(gn.Schema([python]).to_toml()).attributes == (python,)
    with pytest.raises(SchemaError, match=r"two of the attribute's edges"):
        gn.Attribute("left", edges=QUARTERS, groups={"half": {"first": ["2020-01-01", 0]}})


@pytest.mark.parametrize(
    "edges",
    [
        "[2020-01-01T00:00:00Z, 2021-01-01]",
        "[2020-01-01, true]",
        "['2020-02-30', 2021-01-01]",
        "[08:00:00, 09:00:00]",
    ],
)
def test_a_schema_file_says_in_which_line_edges_are_no_dates(edges):
    text = f"[attributes.born]\nother = 'x'\nedges = {edges}\n"
    with pytest.raises(SchemaError, match=r"^s.toml:3: attributes.born.edges: .*2020-01-31"):
        gn.Schema.loads(text, "s.toml")


@pytest.fixture(scope="module")
def admissions(tmp_path_factory):
    """Return a year of admissions with hardly any noise, read from its folder, and the table."""
    days = np.datetime64("2020-01-01") + np.arange(366).repeat(np.arange(366) % 5 + 1)
    sex = np.where(np.arange(len(days)) % 3 == 0, "F", "M")
    table = pl.DataFrame({"admitted": days, "sex": sex})
    schema = gn.Schema([gn.Attribute("admitted", edges=QUARTERS), gn.Attribute("sex", ["F", "M"])])
    workload = [("admitted", "sex"), {"admitted": "prefix"}, {"admitted": "ranges"}]
    folder = tmp_path_factory.mktemp("dates") / "out"
    planned = gn.plan(schema, workload, gn.zCDP(1e6))
    planned.release(table, out=folder)
    return gn.TableRelease.load(folder), table, planned, folder


def test_answers_are_named_by_dates(admissions):
    release = admissions[0]
    assert release["admitted"].labels[0] == (
        "[2020-01-01, 2020-04-01)",
        "[2020-04-01, 2020-07-01)",
        "[2020-07-01, 2020-10-01)",
        "[2020-10-01, 2020-12-31]",
    )
    below = release.answers({"admitted": "prefix"})
    assert below.labels[0][::3] == ("below 2020-04-01", "up to 2020-12-31")
    runs = release.answers({"admitted": "ranges"}).labels[0]
    assert {"[2020-01-01, 2020-10-01)", "[2020-04-01, 2020-12-31]"} <= set(runs)
    assert release.cdf("admitted").labels[0] == below.labels[0]


def test_a_release_is_read_again_without_its_schema(admissions):
    release, _, planned, folder = admissions
    assert release.plan.schema == planned.schema
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert record["domain"][0]["edges"] == QUARTERS


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("count of admitted<2020-04-01", "2020-01-01", "2020-03-31"),
        ("count of admitted < 2020-04-01T00:00", "2020-01-01", "2020-03-31"),
        ("count of admitted>=2020-07-01", "2020-07-01", "2020-12-31"),
        ("count of admitted=[2020-04-01,2020-10-01)", "2020-04-01", "2020-09-30"),
        ("count of admitted=[2020-01-01, 2020-12-31]", "2020-01-01", "2020-12-31"),
    ],
)
def test_questions_take_dates(admissions, question, first, last):
    release, table, *_ = admissions
    days = table["admitted"].to_numpy().astype("datetime64[D]")
    expected = ((days >= np.datetime64(first)) & (days <= np.datetime64(last))).sum()
    assert release.ask(question).estimate == pytest.approx(expected, abs=0.5)


@pytest.mark.parametrize(
    ("question", "part"),
    [
        (
            "count of admitted<2020-04-02",
            "«2020-04-02»: expected an inner edge of 'admitted', one of 2020-04-01",
        ),
        ("count of admitted<2020-01-01", "inner edge"),
        ("count of admitted<0", "inner edge"),
        (
            "count of admitted=[2020-04-01, 2020-07-01]",
            "bins between two of its edges, one of 2020-01-01",
        ),
        ("mean of admitted", "answers 'median of admitted'"),
    ],
)
def test_questions_about_other_dates_are_marked(admissions, question, part):
    with pytest.raises(ParameterError) as caught:
        admissions[0].ask(question)
    assert part in str(caught.value)


def test_quantiles_are_dates_and_their_intervals_hold_those_of_the_rows(admissions):
    release, table, *_ = admissions
    days = np.sort(table["admitted"].to_numpy().astype("datetime64[D]"))
    wanted = [0.1, 0.5, 0.9]
    exact = days[[math.ceil(p * len(days)) - 1 for p in wanted]]
    found = release.quantiles("admitted", wanted)
    assert {found.estimate.dtype, found.low.dtype} == {np.dtype("datetime64[D]")}
    assert (found.low <= exact).all()
    assert (exact <= found.high).all()
    assert (abs(found.estimate - exact) <= np.timedelta64(3, "D")).all()
    assert set(found.low.astype(str)) <= set(QUARTERS)
    assert found.to_frame()["biased_estimate"].type == pa.date32()
    assert str(found).splitlines()[2].split()[1] == str(found.estimate[0])


def test_answers_about_dates_are_plain_data(admissions):
    answer = admissions[0].ask("median of admitted given sex")
    rows = json.loads(json.dumps(answer.to_dict(), allow_nan=False))["rows"]
    assert rows[0]["low"] == "2020-07-01"
    assert rows[0]["high"] == "2020-10-01"
    assert date.fromisoformat(rows[0]["estimate"]).year == 2020


def test_where_bins_have_no_end_quantiles_have_none():
    edges = [-math.inf, "2020-04-01T08:00", "2020-07-01T08:00", math.inf]
    schema = gn.Schema([gn.Attribute("when", edges=edges)])
    stamps = [Stamp(2020, 1, 1), Stamp(2020, 5, 1), Stamp(2030, 1, 1)] * 100
    release = gn.plan(schema, 1, gn.zCDP(100)).release(pa.table({"when": stamps}))
    found = release.quantiles("when", [0.1, 0.5, 0.9])
    assert np.isnat(found.estimate).tolist() == [True, False, True]
    assert np.isnat(found.low).tolist() == [True, False, False]
    assert np.isnat(found.high).tolist() == [False, False, True]
    assert found.high[0] == np.datetime64("2020-04-01T08:00")
    assert "none" in str(found)
    assert "none" in str(release.ask("quantile 0.1 of when"))
    assert release.ask("quantile 0.1 of when").to_dict()["rows"][0]["estimate"] is None
    assert found.to_frame()["low"].null_count == 1


def test_pictures_of_cumulative_shares_have_an_axis_of_dates(admissions):
    from matplotlib.dates import AutoDateFormatter, num2date

    axes = admissions[0].cdf("admitted", given="sex").plot().axes[0]
    assert isinstance(axes.xaxis.get_major_formatter(), AutoDateFormatter)
    left, right = (num2date(end).date() for end in axes.get_xlim())
    assert date(2020, 1, 1) < left < date(2020, 4, 1) < date(2020, 12, 31) < right


def test_releases_are_combined_where_the_dates_are_the_same(admissions):
    release, table, *_ = admissions
    again = gn.plan(release.plan.schema, release.plan.domain.subsets and 1, gn.zCDP(1e6)).release(
        table
    )
    both = gn.combine([again, again.plan.release(table)])
    assert both["admitted"].estimate == pytest.approx(release["admitted"].estimate, abs=0.5)


def firsts(*years, months=(1,)):
    """Return the first days of months."""
    return [f"{year}-{month:02}-01" for year in years for month in months]


YEAR = [*firsts(2020, months=range(1, 13)), "2020-12-31"]
NINE, DECADES = firsts(*range(1951, 1961)), firsts(*range(1900, 2000, 10))
MILLENNIA = firsts(*range(1000, 10_000, 1000))
MADE = {
    "few days": ("2020-03-05", "2020-03-20", "months", [*firsts(2020, months=[3]), "2020-03-31"]),
    "a year": ("2020-01-03", "2020-12-31", "months", YEAR),
    "two years": (
        *("2019-02-01", "2020-12-31", "quarters"),
        [*firsts(2019, 2020, months=[1, 4, 7, 10]), "2020-12-31"],
    ),
    "nine years": (
        "1951-05-05",
        "1960-06-01",
        "years",
        [*NINE, "1960-12-31"],
    ),
    "a century": (
        "1901-01-01",
        "1999-12-31",
        "10 years",
        [*DECADES, "1999-12-31"],
    ),
    "all years": ("0001-01-01", "9999-12-31", "1000 years", ["-inf", *MILLENNIA, "9999-12-31"]),
}


@pytest.mark.parametrize("name", MADE)
def test_drafts_have_bins_of_the_calendar_and_say_which(name, engines, tmp_path):
    *ends, step, expected = MADE[name]
    days = [*map(date.fromisoformat, ends), None]
    stamps = [None if day is None else Stamp.combine(day, datetime.time(23)) for day in days]
    table = pa.table({"day": days, "stamp": stamps})
    drafts = [draft(engines[e](table, tmp_path)) for e in ("polars", "pyarrow", "csv", "pandas")]
    for found in drafts:
        for attribute in found.attributes:
            assert [str(edge) for edge in attribute.edges] == expected
            assert attribute.other == "other or not stated"
            assert f"intervals of {step}," in found.reasons[attribute.name]
    assert [len(found.attributes) for found in drafts] == [2, 2, 2, 2]
    assert len({found.to_toml() for found in drafts}) == 1
    assert gn.Schema.loads(drafts[0].to_toml()) == drafts[0].schema


def test_every_month_of_a_draft_can_be_asked_for(tmp_path):
    days = [date(2023, month, day) for month in range(3, 13) for day in (1, 28)] * 20
    table = pa.table({"admitted": [*days, date(2023, 12, 31)]})
    schema = gn.Schema(draft(table).attributes)
    release = gn.plan(schema, 1, gn.zCDP(1e6)).release(table)
    for month in range(3, 13):
        count = release.ask(f"how many in 2023-{month:02}")
        assert count.estimate == pytest.approx(41 if month == 12 else 40, abs=0.5)
    times = [Stamp(2023, 12, 31, 23, 59), Stamp(2023, 1, 1)]
    schema = gn.Schema(draft(pa.table({"admitted": times})).attributes)
    plan = gn.plan(schema, 1, gn.zCDP(1e6))
    last = plan.release(pa.table({"admitted": times})).ask("how many in December 2023")
    assert last.estimate == pytest.approx(1, abs=0.5)


def test_a_draft_leaves_out_what_it_cannot_bin_and_shows_none_of_it():
    table = pa.table({"zone": ZONED, "sex": ["F", "M"], "none": pa.nulls(2, pa.date32())})
    found = draft(table)
    assert [a.name for a in found.attributes] == ["sex"]
    assert "local times without a time zone" in found.left_out["zone"]
    assert "expected values, got none" in found.left_out["none"]
    assert "1970" not in found.to_toml()


def test_one_text_that_is_no_date_leaves_a_drafted_column_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n2020-01-01,2020-01-01 08:00:00.5,2020-01-01\n2020-02-30,,NA\n")
    a, b, c = draft(path).attributes
    assert a.categories == ("2020-01-01", "2020-02-30")
    assert b.edges == c.edges == (date(2020, 1, 1), date(2020, 1, 31))
    assert gn.plan(gn.Schema([a, b, c]), 1, gn.zCDP(1)).release(path)["b"].estimate.size == 2


@pytest.mark.usefixtures("quick_pictures")
def test_the_shell_goes_from_a_file_with_dates_to_answers_and_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    days = [date(2019, 1, 1) + datetime.timedelta(days=k) for k in range(730)]
    lines = [f"{day},{'FM'[day.day % 2]}" for day in days] + [",F", "NA,M"]
    (tmp_path / "t.csv").write_text("\n".join(["admitted,sex", *lines]) + "\n", encoding="utf-8")

    def call(line):
        status = run(line.split(";"))
        out, err = capsys.readouterr()
        assert status == 0, err
        return out

    call("schema;t.csv;-o;draft.toml")
    drafted = (tmp_path / "draft.toml").read_text(encoding="utf-8")
    assert "# The file has dates, in intervals of quarters," in drafted
    assert "admitted × sex" in call("plan;-s;draft.toml;-m;2;--rho;1000")
    confirmed = drafted.replace("draft = true", "")
    (tmp_path / "schema.toml").write_text(confirmed, encoding="utf-8")
    call("release;t.csv;-s;schema.toml;-m;2;--rho;1000;-o;out")
    answer = json.loads(call("ask;out;count of admitted<2019-07-01 given sex;--json"))
    expected = [sum(d < date(2019, 7, 1) and d.day % 2 == k for d in days) for k in (0, 1)]
    assert [row["estimate"] for row in answer["rows"]] == pytest.approx(expected, abs=2)
    # inside a bin: half of the days come before 2020, to the day, and noise would choose the bin
    assert "2019-10-01" in call("ask;out;quantile 0.45 of admitted")
    call("report;out;-o;page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "[2019-04-01, 2019-07-01)" in page
