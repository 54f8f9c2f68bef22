"""Tests of dates in other formats: every way to read them agrees with Python's own parser."""

import datetime
import itertools
import math
import re

import duckdb
import pandas as pd
import polars as pl
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import ParameterError, SchemaError
from gaussnoise.tables.counting.check import check_rows
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.recount import recount
from gaussnoise.tables.drafts.draft import draft
from gaussnoise.tables.reading.sniff import date_columns, sniffed
from gaussnoise.tables.reading.values import moment_of
from gaussnoise.tables.schema.date_format import as_iso, as_iso_in_sql, in_format, likely_formats

FORMATS = {  # with the same of Python, which takes one digit or two
    "dd.MM.yyyy": "%d.%m.%Y",
    "d.M.yyyy": "%d.%m.%Y",
    "MM/dd/yyyy": "%m/%d/%Y",
    "M/d/yyyy": "%m/%d/%Y",
    "dd-MM-yyyy": "%d-%m-%Y",
    "yyyy/MM/dd": "%Y/%m/%d",
    "yyyy-M-d": "%Y-%m-%d",
    "yyyyMMdd": "%Y%m%d",
    "ddMMyyyy": "%d%m%Y",
}
DAYS = [datetime.date(2023, 1, 1) + datetime.timedelta(k) for k in range(0, 800, 3)]
DATE = gn.Attribute("d", edges=["2023-01-31", "2023-07-01", "2024-03-04", "2025-01-01"], other="?")
WHOLE = re.compile(r"[0-9]+\D?[0-9]+\D?[0-9]+")


def texts_of(format):
    """Return texts that are dates in a format, and many that are almost."""
    parts = [
        {"y": ["2023", "2024", "0004", "23", "02023"], "m": "3 03 12 13 31 0 00".split()}.get(
            code, ["4", "04", "29", "30", "31", "32", "0", "00"]
        )
        for code in re.findall("%(.)", FORMATS[format].lower())
    ]
    marks = {format.strip("dMy")[:1], ".", "-"}
    days = [mark.join(part) for mark in marks for part in itertools.product(*parts)]
    odd = [
        "",
        " ",
        "NA",
        "\u0661.\u0662.2023",
        "3.4.2023\n",
        "2023-02-29",
        "2024-02-29",
        "4. 3. 2023",
    ]
    times = [
        " 08:30",
        "T08:30:15.123456789",
        " 8:30",
        " 24:00",
        " ",
        " 08:30 PM",
        "T8:30Z",
        " 08:3",
    ]
    return [*days, *odd, *(day + time for day in (*days[:40], *odd) for time in times)]


@pytest.mark.parametrize("format", FORMATS)
def test_a_value_is_read_alike_by_python_and_the_engine_and_by_no_looser_rule(format):
    texts = texts_of(format)
    relation = duckdb.connect().from_arrow(pl.DataFrame({"d": texts}).to_arrow())
    read = [row[0] for row in relation.project(as_iso_in_sql('"d"', format)).fetchall()]
    assert read == [as_iso(text, format) for text in texts]
    digits = {"dd": "[0-9]{2}", "d": "[0-9]{1,2}", "MM": "[0-9]{2}", "M": "[0-9]{1,2}"}
    shape = re.sub("dd?|MM?|yyyy", lambda x: digits.get(x[0], "[0-9]{4}"), re.escape(format))
    for text, own in zip(texts, read, strict=True):
        day = text.partition(" ")[0].partition("T")[0]
        if moment_of(own) is None or own == text:
            continue
        assert re.fullmatch(shape, day)
        assert own[:10] == datetime.datetime.strptime(day, FORMATS[format]).date().isoformat()
        assert own.endswith(text[len(day) :].lstrip(" T"))
    # nothing that Python reads in this shape is missed
    for text in filter(re.compile(shape).fullmatch, texts):
        try:
            day = datetime.datetime.strptime(text, FORMATS[format])
        except ValueError:
            assert moment_of(as_iso(text, format)) is None
        else:
            assert as_iso(text, format) == day.date().isoformat()


def counted(table):
    ((_, counts),) = count_marginals(table, [DATE], [(0,)])
    return counts.tolist()


def in_files(folder, texts, name="t.csv"):
    (folder / name).write_text("d\n" + "".join(f'"{text}"\n' for text in texts), encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("format", FORMATS)
def test_every_engine_counts_the_same(tmp_path, format):
    words = [day.strftime(FORMATS[format]) for day in DAYS]
    words += ["30.02.2023", "02/30/2023", "2023-02-30", "20230230", "x", "", "1.1.23"]
    file = gn.Dialect(date_format=format).table(in_files(tmp_path, words))
    frames = [
        pd.DataFrame(
            {"d": pd.to_datetime(pd.Series(words), format=FORMATS[format], errors="coerce")}
        ),
        pl.DataFrame({"d": words}).select(pl.col("d").str.to_date(FORMATS[format], strict=False)),
        duckdb.connect()
        .from_arrow(pl.DataFrame({"d": words}).to_arrow())
        .project(f"try_strptime(d, '{FORMATS[format]}')::DATE AS d"),
    ]
    edges = [datetime.date.fromisoformat(str(edge)) for edge in DATE.edges]
    exact = [sum(a <= day < b for day in DAYS) for a, b in itertools.pairwise(edges)]
    exact.append(len(words) - sum(exact))
    assert [counted(table) for table in (file, *frames)] == [exact] * 4
    again = recount(file, [DATE], [(0,)], "drop", None, None, 1, ())
    assert again.counts[0,].tolist() == exact
    reasons = {case.reason: case.rows for case in check_rows(file, [DATE]).caught}
    beyond = sum(not edges[0] <= day <= edges[-1] for day in DAYS)
    assert reasons == {"outside the edges": beyond, "not a date": 6, "missing": 1}


def test_iso_is_read_in_any_format_and_other_columns_are_left_alone(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("d,e,t\n31.01.2023,01.02.2023,01.02.2023\n2023-01-31,01.02.2023,2023-02-01\n")
    text = gn.Attribute("t", ["01.02.2023"], other="?")
    table = gn.Dialect(date_format="dd.MM.yyyy").table(path)
    counts = dict(count_marginals(table, [DATE, text], [(0,), (1,)]))
    assert counts[0,].tolist() == [2, 0, 0, 0]
    assert counts[1,].tolist() == [1, 1]


def test_check_shows_dates_as_files_have_them_and_names_their_format(tmp_path):
    path = in_files(tmp_path, ["31.01.2030", "31.02.2023", "x"])
    german = gn.Dialect(date_format="dd.MM.yyyy")
    shown = {case.reason: case.examples for case in check_rows(german.table(path), [DATE]).caught}
    assert shown["outside the edges"] == ("'31.01.2030'",)
    assert set(shown["not a date"]) == {"'31.02.2023'", "'x'"}
    for text, hinted in {
        "31.01.2023": 'written dd.MM.yyyy; hint: in CSV, state date_format = "dd.MM.yyyy"',
        "1/31/2023": "--date-format 'M/d/yyyy'",
        "03/04/2023": "written dd/MM/yyyy or MM/dd/yyyy, which are alike here",
    }.items():
        found = check_rows(in_files(tmp_path, [text] * 3), [DATE])
        assert "3 of 3 values of d are not read as dates" in found.warnings[0]
        assert hinted in found.warnings[1]
        assert [*found.as_dict()["warnings"]] == [*found.warnings]
    assert not check_rows(german.table(in_files(tmp_path, ["31.01.2023"])), [DATE]).warnings
    # days that no calendar has say nothing about the format
    found = check_rows(german.table(in_files(tmp_path, ["29.02.2023", "31.04.2023 08:30"])), [DATE])
    assert len(found.warnings) == 1


@pytest.mark.parametrize(("code", "refused"), [("31.12.9999", True), ("00.00.0000", False)])
def test_a_code_for_missing_that_would_be_read_as_a_date_is_refused(tmp_path, code, refused):
    dated = gn.Attribute("d", edges=["2023-01-01", math.inf], missing=[code], other="?")
    german, found = gn.Dialect(date_format="dd.MM.yyyy"), None
    gn.Schema([dated])  # in other files the code is no date
    if refused:
        with pytest.raises(SchemaError, match=r"'d': missing: expected no dates.*dd\.MM\.yyyy"):
            gn.Schema([dated], file=german)
    else:
        found = gn.Schema([dated], file=german).attributes
        path = german.table(in_files(tmp_path, [code, "31.01.2023"]))
        assert [case.reason for case in check_rows(path, found).caught] == ["code for missing"]


@pytest.mark.parametrize(
    "wrong",
    ["", "dd.MM.yy", "dd.mm.yyyy", "dMyyyy", "dd.MM/yyyy", "yyyy-dd-MM", "MM.yyyy.dd", "%d.%m.%Y",
     "dd.dd.yyyy", "dd.MM.yyyy HH:mm", "yyyyMM", 3, None],
)  # fmt: skip
def test_formats_that_leave_something_open_are_refused(wrong):
    with pytest.raises(ParameterError, match="dialect: expected date_format"):
        gn.Dialect(date_format=wrong)


def test_schemas_and_the_shell_state_the_format(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    in_files(tmp_path, [day.strftime("%d.%m.%Y") for day in DAYS])
    schema = gn.Schema([DATE], file=gn.Dialect(date_format="dd.MM.yyyy"))
    assert gn.Schema.loads(schema.to_toml()) == schema
    with pytest.raises(SchemaError, match=r"schema:2: file: dialect: expected date_format"):
        gn.Schema.loads(
            schema.to_toml().replace("dd.MM.yyyy", "dd.MM.yy").replace("[file]", "\n[file]")
        )
    (tmp_path / "s.toml").write_text(gn.Schema([DATE]).to_toml(), encoding="utf-8")
    assert run("check t.csv -s s.toml --date-format dd.MM.yyyy".split()) == 0
    assert "not read as dates" not in capsys.readouterr().out
    release = "release t.csv -s s.toml -m 1 --rho 1e8 --date-format dd.MM.yyyy -o out"
    assert run(release.split()) == 0
    loaded = gn.TableRelease.load("out")
    assert loaded.plan.schema.file == schema.file
    exact = counted(schema.file.table("t.csv"))  # noise is far below a row
    assert loaded["d"].estimate.round().tolist() == exact
    capsys.readouterr()
    assert run("schema t.csv".split()) == 0
    drafted = gn.Schema.loads(capsys.readouterr().out)
    assert drafted.file == schema.file
    rows = "".join(f"{k % 12 + 1:02}/{k // 12 + 1:02}/2023,{k % 2}\n" for k in range(144))
    (tmp_path / "either.csv").write_text(f"d,x\n{rows}", encoding="utf-8")
    assert run("schema either.csv --out either.toml".split()) == 0
    assert "left out, for reasons that stand there: d\n" in capsys.readouterr().out


def test_the_file_decides_about_a_drafts_format_and_only_where_it_can(tmp_path):
    days = [f"{k % 12 + 1:02}/{k % 11 + 1:02}/2023" for k in range(600)]
    path = in_files(tmp_path, days)
    assert sniffed(path) == gn.Dialect()
    (reason,) = draft(path).left_out.values()
    assert "written dd/MM/yyyy or MM/dd/yyyy, which are alike here" in reason
    # one day beyond 12, far from the first rows
    path = in_files(tmp_path, [*days, "12/31/2023"])
    drafted = draft(path)
    assert drafted.file == gn.Dialect(date_format="MM/dd/yyyy")
    assert drafted.attributes[0].edges[0] == datetime.date(2023, 1, 1)
    assert "read as MM/dd/yyyy, as most of them are" in drafted.reasons["d"]
    # what the owner states is kept
    assert sniffed(path, gn.Dialect(date_format="dd/MM/yyyy")).date_format == "dd/MM/yyyy"


@pytest.mark.parametrize(
    ("texts", "formats"),
    [
        (["3.4.2023"], ["d.M.yyyy"]),  # after dots comes the month
        (["03-04-2023"], ["dd-MM-yyyy", "MM-dd-yyyy"]),
        (["03-14-2023"], ["MM-dd-yyyy"]),
        (["03-14-2023 9:05"], ["M-d-yyyy"]),
        (["2023/03/04"], ["yyyy/MM/dd"]),
        (["2023-03-04"], []),
        (["29.02.2023"], []),
        (["2023-3-4", "2023-03-04"], ["yyyy-M-d"]),
        (["10.03.23", "3/4/2023 2:30 PM", "10-Mar-2023", "x"], []),
    ],
)
def test_likely_formats(texts, formats):
    assert likely_formats(dict.fromkeys(texts, 1)) == formats


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ("{0:%d.%m.%y}", "a year of four digits"),
        ("{0:%d-%b-%Y}", "a month as a number"),
        ("{0:%m/%d/%Y} 02:30 PM", "hours from 0 to 23"),
        ("{0:%Y-%m-%d}T08:30:00Z", "no time zone"),
    ],
)
def test_drafts_say_what_other_dates_lack(tmp_path, texts, told):
    (reason,) = draft(in_files(tmp_path, map(texts.format, DAYS))).left_out.values()
    assert reason.startswith("column 'd': expected dates, got texts like dates, but dates have")
    assert told in reason


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame])
def test_drafts_of_frames_say_how_their_texts_become_dates(make):
    (reason,) = draft(make({"d": [f"{day:%d.%m.%Y}" for day in DAYS]})).left_out.values()
    assert 'written dd.MM.yyyy; hint: in CSV, state date_format = "dd.MM.yyyy"' in reason
    assert reason.endswith("; elsewhere, convert the column to dates")
    few = draft(make({"d": ["01.02.2023", "13.02.2023"] * 9})).reasons["d"]
    assert "2 different values. Most are like dates: dates written dd.MM.yyyy" in few


def test_a_column_that_is_mostly_empty_and_one_in_iso_are_found_too(tmp_path):
    path = tmp_path / "t.csv"
    rows = [("" if k % 20 or k < 300 else f"{day:%d.%m.%Y}", day) for k, day in enumerate(DAYS * 3)]
    path.write_text("d,iso\n" + "".join(f"{a},{b}\n" for a, b in rows))
    drafted = draft(path)
    assert drafted.file == gn.Dialect(date_format="dd.MM.yyyy")
    assert all(attribute.edges for attribute in drafted.attributes)
    assert date_columns(drafted.file.table(path)) == ["d"]
    assert "read as" not in drafted.reasons["iso"]


def test_text_that_is_read_as_iso_is_shown_in_the_format():
    for format, code in FORMATS.items():
        for day in DAYS[:50]:
            text = in_format(f"{day} 08:30", format)
            assert as_iso(text, format) == f"{day} 08:30"
            assert text == day.strftime(code) + " 08:30" or "-M-" in format
