"""Dates and times are no numbers: a schema and a table that bring them say so, and what to do."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.tables.counting.codes import code_table
from gaussnoise.tables.schema.draft import draft

DAYS = ["1950-01-01", "1960-01-01"]
DATES = [datetime.date.fromisoformat(day) for day in DAYS]
WRITTEN = {
    "dates": DATES,
    "datetimes": [datetime.datetime.fromisoformat(day) for day in DAYS],
    "times of day": [datetime.time(8), datetime.time(16)],
    "durations": [datetime.timedelta(1), datetime.timedelta(2)],
    "pandas": pd.to_datetime(DAYS),
    "pandas with a time zone": pd.to_datetime(DAYS, utc=True),
} | {
    f"{kind}[{unit}]": np.array([1, 2], dtype=f"{kind}[{unit}]")
    for kind in ("datetime64", "timedelta64")
    for unit in ("D", "s", "us", "ns")
}


@pytest.mark.parametrize("field", ["edges", "clip", "categories"])
@pytest.mark.parametrize("values", WRITTEN.values(), ids=WRITTEN)
def test_an_attribute_never_takes_dates_or_times_for_numbers(field, values):
    with pytest.raises(gn.SchemaError, match=r"got dates or times; hint: add a column"):
        gn.Attribute("born", **{field: values})


@pytest.mark.parametrize("dtype", [np.int64, np.float32, object])
def test_numbers_of_numpy_are_still_edges_and_ends(dtype):
    numbers = np.array([1950, 1960], dtype=dtype)
    assert gn.Attribute("born", edges=numbers).edges == (1950.0, 1960.0)
    assert gn.Attribute("born", clip=numbers).clip == (1950.0, 1960.0)


@pytest.mark.parametrize("written", ["1950-01-01", "1950-01-01T00:00:00", "1950-01-01T00:00:00Z"])
def test_a_schema_file_with_dates_as_edges_says_what_to_do_and_where(written):
    text = f"[attributes.born]\nedges = [{written}, 1960-01-01]\n"
    with pytest.raises(gn.SchemaError, match=r"^s.toml:2: .*numbers; hint for dates: add a col"):
        gn.Schema.loads(text, "s.toml")


@pytest.mark.parametrize(
    "table",
    [pl.DataFrame({"born": DATES}), pa.table({"born": DATES}), pl.LazyFrame({"born": DATES})],
    ids=["polars", "pyarrow", "lazy polars"],
)
def test_a_column_of_dates_is_refused_where_the_schema_has_numbers(table):
    with pytest.raises(gn.DataError, match=r"'born'.*got Date; hint: add a column of whole"):
        code_table(table, [gn.Attribute("born", edges=[1950, 1960])])


@pytest.mark.parametrize("value", [DATES[0], datetime.datetime(1950, 1, 1)])
def test_a_draft_leaves_dates_out_and_says_what_to_do(value):
    found = draft(pl.DataFrame({"born": [value], "sex": ["F"]}))
    assert [a.name for a in found.attributes] == ["sex"]
    assert "add a column of whole numbers" in found.left_out["born"]
    assert "1950" not in found.left_out["born"]
