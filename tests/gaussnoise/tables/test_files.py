"""Tables in several files, patterns and folders; categoricals and nulls of dataframes."""

import datetime
import gzip
import json
import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import gaussnoise as gn
from gaussnoise.cli import app
from gaussnoise.errors import DataError, OutputError
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.drafts.draft import draft
from gaussnoise.tables.reading.files import state_of

X = gn.Attribute("x", [0, 1, 2])


def counted(table, attribute=X, on_outside="refuse"):
    ((_, counts),) = count_marginals(table, [attribute], [(0,)], on_outside)
    return counts.tolist()


@pytest.fixture
def three(tmp_path):
    for k in range(3):
        (tmp_path / f"part-{k}.csv").write_text("x,y\n" + f"{k},a\n" * (k + 1), "utf-8")
    return tmp_path


def parquet(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


# Several files.


def test_patterns_and_lists_are_one_table(three):
    paths = [three / f"part-{k}.csv" for k in range(3)]
    for table in (str(three / "*.csv"), three / "part-[0-2].*", paths, tuple(map(str, paths))):
        assert counted(table) == [1, 2, 3]
    assert counted([str(three / "part-[01].csv"), paths[2]]) == [1, 2, 3]
    assert counted([paths[1]]) == [0, 2, 0]
    assert counted(str(three / "**" / "part-*")) == [1, 2, 3]  # no name of a kind in the pattern


def test_compressed_files_are_read_beside_others(three):
    with gzip.open(three / "part-3.csv.gz", "wt", encoding="utf-8") as file:
        file.write("x,y\n0,a\n0,a\n")
    assert counted(str(three / "part-*")) == [3, 2, 3]


def test_a_file_whose_name_is_a_pattern_is_that_file(three):
    (three / "part-[0].csv").write_text("x\n2\n", "utf-8")
    assert counted(three / "part-[0].csv") == [0, 0, 1]


def test_lists_of_parquet_are_one_table(tmp_path):
    paths = [parquet(tmp_path / f"{k}.parquet", x=[k, k]) for k in range(3)]
    assert counted(paths) == [2, 2, 2]
    assert counted(str(tmp_path / "*.parquet")) == [2, 2, 2]


def test_folders_of_parquet_are_one_table(tmp_path):
    parquet(tmp_path / "t" / "a.parquet", x=[0])
    parquet(tmp_path / "t" / "deeper" / "b.pq", x=[1])
    parquet(tmp_path / "t" / "_temporary" / "c.parquet", x=[2])
    parquet(tmp_path / "t" / ".d.parquet", x=[2])
    (tmp_path / "t" / "_SUCCESS").write_text("", "utf-8")
    assert counted(tmp_path / "t") == [1, 1, 0]


def test_names_of_folders_are_columns(tmp_path):
    for year, region, rows in ((2023, "no rth", 1), (2024, "no rth", 2), (2024, "süd", 4)):
        parquet(tmp_path / "t" / f"year={year}" / f"region={region}" / "p.parquet", x=[1] * rows)
    table = tmp_path / "t"
    assert counted(table, gn.Attribute("year", [2023, 2024, 2025])) == [1, 6, 0]
    assert counted(table, gn.Attribute("year", ["2023", "2024"])) == [1, 6]
    assert counted(table, gn.Attribute("year", edges=[2000, 2024, 2030])) == [1, 6]
    assert counted(table, gn.Attribute("region", ["no rth", "süd"])) == [3, 4]
    assert counted(table, X) == [0, 7, 0]
    assert counted(table, gn.Attribute("year", [2024]), "drop") == [6]


def test_folders_that_arrow_and_polars_write_are_read(tmp_path):
    table = pa.table({"x": [0, 1, 1, 2], "year": pa.array([2023, 2023, 2024, None])})
    pyarrow.parquet.write_to_dataset(table, tmp_path / "a", partition_cols=["year"])
    year = gn.Attribute("year", [2023, 2024], other="rest")
    assert counted(tmp_path / "a", year) == [2, 1, 1]
    assert counted(tmp_path / "a") == [1, 2, 1]


@pytest.mark.parametrize("above", ["t", "b=9"])
def test_patterns_and_lists_of_partitioned_files_have_their_keys(tmp_path, above):
    root = tmp_path / above
    for year, rows in ((2023, 1), (2024, 2)):
        parquet(root / f"year={year}" / "p.parquet", x=[1] * rows)
    pattern = str(root / "year=*" / "*.parquet")
    for table in (pattern, sorted(map(str, root.glob("*/*"))), str(root / "year=2024" / "*")):
        only = table == str(root / "year=2024" / "*")
        assert counted(table, gn.Attribute("year", ["2023", "2024"])) == [1 - only, 2]
        assert counted(table, gn.Attribute("year", [2024], other="rest")) == [2, 1 - only]
    # files of several depths have no keys in common
    parquet(root / "p.parquet", x=[0])
    assert counted([pattern, root / "p.parquet"]) == [1, 3, 0]
    with pytest.raises(DataError, match="is missing: 'year'"):
        counted([pattern, root / "p.parquet"], gn.Attribute("year", [2024]))


def test_keys_that_polars_keeps_in_the_files_are_as_the_files_say(tmp_path):
    frame = pl.DataFrame({"year": [2023, 2024, None, 2024], "k": ["a b", "c", "é", "x=y"]})
    pytest.importorskip("polars", minversion="1.30", reason="polars writes no partitions yet")
    frame.write_parquet(tmp_path / "t", partition_by=["year", "k"], mkdir=True)
    for table in (tmp_path / "t", str(tmp_path / "t" / "*" / "*" / "*.parquet")):
        assert counted(table, gn.Attribute("year", [2023, 2024], other="none")) == [1, 2, 1]
        assert counted(table, gn.Attribute("k", ["a b", "é", "x=y"], other="o")) == [1, 1, 1, 1]
        with pytest.raises(DataError, match="column 'year': expected str"):
            counted(table, gn.Attribute("year", ["2023", "2024"]))


def test_folders_do_not_overrule_the_columns_of_files(tmp_path):
    """Duckdb would let them, also for folders above the table."""
    parquet(tmp_path / "x=2" / "t" / "year=1" / "a.parquet", x=[0])
    assert counted(tmp_path / "x=2" / "t" / "year=1") == [1, 0, 0]
    with pytest.raises(DataError, match="got 'x' in both; hint: a path from within"):
        counted(tmp_path / "x=2" / "t")


@pytest.mark.parametrize("int96", [True, False])
def test_timestamps_that_say_no_time_zone_are_pointed_out(tmp_path, int96):
    day = datetime.datetime(2020, 1, 31, 23)
    table = pa.table({"day": pa.array([day] * 9, pa.timestamp("us")), "x": [0] * 9})
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(table, path, use_deprecated_int96_timestamps=int96)
    schema = gn.Schema([gn.Attribute("day", edges=["2020-01-01", "2020-01-31", "2020-02-01"]), X])
    plan = gn.plan(schema, 1, gn.zCDP(1e8))
    release = plan.release(path, out=tmp_path / "out")
    assert release["day"].estimate.round().tolist() == [0, 9]
    again = gn.TableRelease.load(tmp_path / "out")
    record = json.loads((tmp_path / "out" / "release.json").read_text("utf-8"))
    note = "day: the file's timestamps (INT96) say no time zone"
    assert release.without_zone == again.without_zone == (("day",) if int96 else ())
    assert record.get("without_time_zone") == (["day"] if int96 else None)
    assert (note in (tmp_path / "out" / "summary.txt").read_text("utf-8")) == int96
    assert plan.release(table).without_zone == ()
    assert ("INT96" in draft(path).reasons["day"]) == int96
    # nothing else of the record says so
    for strange in (["night"], "day", [["day"]], [1]):
        altered = json.dumps(record | {"without_time_zone": strange})
        (tmp_path / "out" / "release.json").write_text(altered, "utf-8")
        with pytest.raises(
            OutputError, match=r"not a complete release|does not follow from its plan"
        ):
            gn.TableRelease.load(tmp_path / "out")


# What is refused.


def test_several_files_are_checked_one_by_one(three):
    (three / "part-9.csv").write_text('x,y\n0,"a\n', "utf-8")
    with pytest.raises(DataError, match="expected CSV by RFC 4180"):
        counted(str(three / "*.csv"))


@pytest.mark.parametrize("header", ["y,x", "x,z", "x"])
def test_files_with_other_columns_are_refused(three, header):
    (three / "part-9.csv").write_text(
        f"{header}\n" + ",".join("0" * len(header.split(","))), "utf-8"
    )
    with pytest.raises(DataError, match="with the same first line of column names"):
        counted(str(three / "*.csv"))


def test_a_file_twice_would_count_its_rows_twice(three):
    os.symlink(three / "part-0.csv", three / "again.csv")
    for table in ([three / "part-0.csv"] * 2, str(three / "*.csv")):
        with pytest.raises(DataError, match="expected distinct files"):
            counted(table)


def test_files_of_several_kinds_are_refused(three):
    parquet(three / "p.parquet", x=[0])
    (three / "t.tsv").write_text("x\ty\n0\ta\n", "utf-8")
    with pytest.raises(DataError, match="got CSV and Parquet"):
        counted([three / "part-0.csv", three / "p.parquet"])
    with pytest.raises(DataError, match="expected files of one kind"):
        counted([three / "part-0.csv", three / "t.tsv"])


def test_parquet_of_several_types_is_refused(tmp_path):
    parquet(tmp_path / "a.parquet", x=[0])
    parquet(tmp_path / "b.parquet", x=[0.0])
    with pytest.raises(DataError, match="the same columns of the same types"):
        counted(str(tmp_path / "*.parquet"))


def test_partitions_must_be_the_same_everywhere(tmp_path):
    parquet(tmp_path / "t" / "year=2024" / "a.parquet", x=[0])
    parquet(tmp_path / "t" / "a.parquet", x=[0])
    with pytest.raises(DataError, match="the same partitions"):
        counted(tmp_path / "t")


def test_nothing_found_is_said(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        counted(str(tmp_path / "*.csv"))
    with pytest.raises(DataError, match=r"no Parquet files in .*hint: for CSV files a pattern"):
        counted(tmp_path)
    with pytest.raises(DataError, match="expected a dataframe"):
        counted([])


def test_a_list_that_was_meant_as_data_is_not_quoted():
    with pytest.raises(DataError, match="no such file: entry 1 of the list") as caught:
        counted(["CANARY-7391"])
    assert "CANARY" not in str(caught.value)


def test_any_of_the_files_may_change(three, monkeypatch):
    """After the rows are read, every file is checked again, and so is the list of files."""
    pattern = str(three / "*.csv")
    before = state_of(pattern)
    with open(three / "part-1.csv", "a", encoding="utf-8") as file:
        file.write("2,a\n")
    assert state_of(pattern) != before
    before = state_of(pattern)
    (three / "part-7.csv").write_text("x,y\n", "utf-8")
    assert state_of(pattern) != before


# The shell.


def test_the_shell_takes_several_files_and_patterns(three, capsys):
    (three / "s.toml").write_text("[attributes.x]\ncategories = [0, 1, 2]\n", "utf-8")
    options = ["-s", str(three / "s.toml"), "-m", "x", "--rho", "100"]
    parts = [str(three / f"part-{k}.csv") for k in range(3)]
    for k, tables in enumerate((parts, [str(three / "*.csv")])):
        assert app.run(["release", *tables, *options, "-o", str(three / f"out{k}")]) == 0
        estimate = gn.TableRelease.load(three / f"out{k}")["x"].estimate
        assert np.abs(estimate - [1, 2, 3]).max() < 2
    assert app.run(["schema", *parts]) == 0
    assert "categories = [0, 1, 2]" in capsys.readouterr().out


# Dataframes.


def test_integers_with_gaps_are_floats_and_need_a_catch_all(tmp_path):
    frame = pd.DataFrame({"x": [0.0, 1.0, 1.0, None, 7.0, 1.5]})
    rest = gn.Attribute("x", [0, 1], other="rest")
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (frame, pl.from_pandas(frame), pa.table(frame), tmp_path / "t.parquet"):
        assert counted(table, rest) == [1, 2, 3]
        with pytest.raises(DataError, match="expected int categories"):
            counted(table, gn.Attribute("x", [0, 1]))


@pytest.mark.parametrize("ordered", [False, True])
def test_categoricals_of_pandas_count_by_their_values(ordered):
    def column(values):
        return pd.DataFrame({"x": pd.Categorical(values, ordered=ordered)})

    assert counted(column([2, 0, 2, 1])) == [1, 1, 2]
    assert counted(column([2, 0, None]), gn.Attribute("x", [0, 2], other="rest")) == [1, 1, 1]
    assert counted(column([True, False]), gn.Attribute("x", [True, False])) == [1, 1]
    assert counted(column(["b", "a", "b"]), gn.Attribute("x", ["a", "b"])) == [1, 2]
    assert counted(column([0.5, 2.5, 0.5]), gn.Attribute("x", edges=[0, 1, 3])) == [2, 1]
    with pytest.raises(DataError, match="expected int categories"):
        counted(column(["b", "a"]))


def test_categoricals_and_enums_of_others_count_by_their_values():
    text = gn.Attribute("x", ["a", "b"])
    for kind in (pl.Categorical, pl.Enum(["b", "c", "a"])):
        frame = pl.DataFrame({"x": pl.Series(["b", "a", "b"], dtype=kind)})
        assert counted(frame, text) == counted(frame.lazy(), text) == [1, 2]
    assert counted(pa.table({"x": pa.array([2, 0, 2]).dictionary_encode()})) == [1, 0, 2]
