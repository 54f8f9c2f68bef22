"""Tests of the formats of statistical offices, each read by a library of its own community."""

import csv
import itertools
import json
import tracemalloc
import zipfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import openpyxl
import pyarrow as pa
import pytest
from csvw import CSVW
from pyarrow import parquet
from pyjstat import pyjstat
from pysdmx.io.csv.sdmx20.reader import read as read_sdmx
from python_calamine import CalamineWorkbook

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.demo import load
from gaussnoise.errors import OutputError, ParameterError
from gaussnoise.tables.release import method
from gaussnoise.tables.release.formats import FORMATS, format_of
from gaussnoise.tables.release.formats.sdmx import is_time_period
from gaussnoise.tables.release.formats.xlsx import Xlsx
from gaussnoise.tables.release.marks import marks_of

OFFICE = ("xlsx", "sdmx-csv", "json-stat")
FORMULAS = ["=1+1", "+2", "-3", "@SUM(A1)", "<b>&\"'", " x\x01\n_x0041_"]
SDMX = {
    "estimate": "OBS_VALUE",
    "standard_deviation": "STANDARD_ERROR",
    "low": "LOWER_BOUND",
    "high": "UPPER_BOUND",
}
DDI = "{ddi:codebook:2_5}"


@pytest.fixture(scope="module", params=OFFICE)
def demo(request, tmp_path_factory):
    """Return a release of the demo in each format, which tests only read."""
    table, schema = load()
    folder = tmp_path_factory.mktemp("demo") / "out"
    plan = gn.plan(schema, 2, gn.zCDP(0.1), title="A survey", source="A magazine of 1974")
    return plan.release(table, out=folder, format=request.param), folder, request.param


@pytest.fixture(scope="module", params=OFFICE)
def stream(request, tmp_path_factory):
    """Return a stream of two ticks in each format."""
    schema = gn.Schema([gn.Attribute("a", FORMULAS), gn.Attribute("b: c", range(3))])
    plan = gn.plan(schema, 2, gn.zCDP(0.5), over=gn.streams.Ticks(3))
    stream = plan.start(tmp_path_factory.mktemp("stream") / "s", format=request.param)
    for tick in (1, 2):
        rows = {"a": FORMULAS * 40 * tick, "b: c": [0, 1, 2] * 80 * tick}
        stream.tick(pa.table(rows), number=tick)
    return stream, request.param


book_in = cache(openpyxl.load_workbook)


def sheet(path, k):
    """Return the rows of the k-th table of a workbook as a spreadsheet shows them."""
    names, *rows = book_in(path).worksheets[k].iter_rows()
    cells = [row for row in rows if not row[0].font.bold]  # totals are in bold
    return [
        {name.value: cell.value for name, cell in zip(names, row, strict=True)} for row in cells
    ]


def check_cells(path, k, table, format):
    """Check that the reader of a format finds the cells of a table, with intervals and marks."""
    numbers = table.to_frame().to_pydict()
    marks = marks_of(np.array(numbers["estimate"]), np.array(numbers["standard_deviation"]))
    labels = [list(map(str, numbers[name])) for name in table.attributes]
    if format == "xlsx":
        rows = sheet(path, k)
        assert [row["estimate"] for row in rows] == pytest.approx(numbers["estimate"], rel=0)
        assert [row["low"] for row in rows] == numbers["low"]
        assert [row["high"] for row in rows] == numbers["high"]
        assert [row["mark"] or "" for row in rows] == marks.tolist()
        found = CalamineWorkbook.from_path(path).get_sheet_by_index(k).to_python()
        cells = table.estimate.size
        assert [row[len(labels)] for row in found[1 : cells + 1]] == numbers["estimate"]
    elif format == "sdmx-csv":
        (data,) = read_sdmx(path.read_text(encoding="utf-8"))
        frame = data.data
        assert data.structure.startswith("Dataflow=GAUSSNOISE:")
        head, *written = csv.reader(path.read_text(encoding="utf-8").splitlines())
        codes = [name.partition(":")[0] for name in head]
        for name, column in SDMX.items():
            assert [float(row[codes.index(column)]) for row in written] == numbers[name]
            # the text is exact, but older versions of pandas round each of its digits
            np.testing.assert_allclose(frame[column].astype(float), numbers[name], rtol=1e-13)
        assert list(frame["RELIABILITY"]) == marks.tolist()
        assert list(frame["OBS_STATUS"]) == ["U" if "*" in mark else "A" for mark in marks]
        keys = frame[list(frame.columns)[: len(labels)]].drop_duplicates()
        assert len(keys) == table.estimate.size
    else:
        text = path.read_text(encoding="utf-8")
        data = pyjstat.Dataset.read(text)
        frame = data.write("dataframe")
        for name in ("estimate", "standard_deviation", "low", "high"):
            own = frame[frame["measure"] == name]
            assert own["value"].tolist() == numbers[name]
            for attribute, texts in zip(table.attributes, labels, strict=True):
                assert own[attribute].tolist() == texts
        status = {str(4 * k): mark for k, mark in enumerate(marks.tolist()) if mark}
        assert json.loads(text)["status"] == status


@pytest.mark.filterwarnings("ignore:Shouldn.t use this function")  # pyjstat's own call
def test_the_demo_is_read_by_the_reader_of_each_community(demo):
    release, folder, format = demo
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    for k, (marginal, entry) in enumerate(zip(release, record["marginals"], strict=True), 1):
        path = folder / entry["file"]
        assert path.name.endswith(FORMATS[format].ending)
        check_cells(path, k, release[marginal], format)


@pytest.mark.filterwarnings("ignore:Shouldn.t use this function")  # pyjstat's own call
def test_a_stream_is_read_by_the_reader_of_each_community(stream):
    stream, format = stream
    for what, release in (("cumulative", stream.total(2)), ("period", stream.period(2))):
        folder = stream.path / "ticks" / "0002"
        record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
        for k, entry in enumerate(record[what], 1):
            path = folder / what / entry["file"]
            check_cells(path, k, release[tuple(entry["attributes"])], format)
        assert {"method.txt", "ddi.xml"} <= record["files"].keys()
        text = (folder / "method.txt").read_text(encoding="utf-8")
        assert "Tick 2 of 3: tables of its own rows (period), and of the rows of ticks 1" in text


def test_loaded_estimates_are_those_released(demo):
    release, folder, _ = demo
    loaded = gn.TableRelease.load(folder)
    for marginal in release:
        assert (loaded[marginal].estimate == release[marginal].estimate).all()


def test_a_stream_opened_again_has_the_same_estimates(stream):
    stream, _ = stream
    again = gn.streams.Stream.open(stream.path)
    for marginal in again.plan.marginals:
        assert (again.total()[marginal].estimate == stream.total()[marginal].estimate).all()


@pytest.mark.parametrize("format", OFFICE)
def test_the_shell_writes_every_format(tmp_path, monkeypatch, format):
    table, schema = load()
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(schema.to_toml(), encoding="utf-8")
    parquet.write_table(table, "t.parquet")
    words = ["t.parquet", "-s", "s.toml", "-m", "1", "--rho", "1", "--format", format, "-o", "out"]
    assert run(["release", *words]) == 0
    assert len(gn.TableRelease.load("out")) == len(schema.attributes)


def test_texts_of_a_workbook_are_never_formulas(tmp_path):
    schema = gn.Schema([gn.Attribute("=HYPERLINK(1)", FORMULAS)])
    plan = gn.plan(schema, 1, gn.zCDP(0.5), title="=2+2", source="@x")
    plan.release(pa.table({"=HYPERLINK(1)": FORMULAS}), out=tmp_path / "out", format="xlsx")
    book = openpyxl.load_workbook(tmp_path / "out" / "tables" / "tables.xlsx")
    cells = [cell for ws in book.worksheets for row in ws.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells} == {"n", "s"}
    texts = [cell.value for cell in cells]
    assert {"=2+2", "=HYPERLINK(1)", *FORMULAS[:5]} <= {*texts}
    assert " x_x0001_\n_x005F_x0041_" in texts  # as Excel writes these characters


def test_a_workbook_has_a_cover_with_the_guarantee_and_links_to_its_sheets(tmp_path):
    table, schema = load()
    plan = gn.plan(schema, 2, gn.zCDP(0.1), title="A survey", source="A magazine of 1974")
    plan.release(table, out=tmp_path / "out", format="xlsx")
    book = openpyxl.load_workbook(tmp_path / "out" / "tables" / "tables.xlsx")
    cover, *sheets = book.worksheets
    texts = [row[0].value for row in cover.iter_rows()]
    assert texts[0] == "A survey"
    assert any(text and "0.1-zCDP" in text for text in texts[:12])
    assert any(text and "** from 50 %" in text for text in texts)
    assert "A magazine of 1974" in texts
    links = [row[0].hyperlink.location for row in cover.iter_rows() if row[0].hyperlink]
    assert links == [f"'{ws.title}'!A1" for ws in sheets]
    assert len(sheets) == len(plan.marginals)
    assert all(len(ws.title) <= 31 and ws.freeze_panes == "A2" for ws in sheets)


def test_counts_in_a_workbook_have_totals_as_on_the_page(tmp_path):
    schema = gn.Schema(
        [gn.Attribute("sex", ["F", "M"]), gn.Attribute("year", [1, 2]), gn.Attribute("a", ["x"])]
    )
    workload = [("sex",), ("sex", "year"), ("sex", "year", "a"), ("a",)]
    plan = gn.plan(schema, workload, gn.zCDP(1), neighbors="replace")
    rows = {"sex": ["F", "M"] * 300, "year": [1, 2, 2] * 200, "a": ["x"] * 600}
    release = plan.release(pa.table(rows), out=tmp_path / "out", format="xlsx")
    _, one, two, *others = openpyxl.load_workbook(tmp_path / "out/tables/tables.xlsx").worksheets
    margins = {("sex", "year"): [(), ("year",), ("sex",)], ("sex",): [()]}
    for sheet, names in ((one, ("sex",)), (two, ("sex", "year"))):
        every = [*sheet.iter_rows(min_row=2, values_only=True)]
        cells = release[names].estimate.size
        assert sheet.auto_filter.ref == f"A1:{'FG'[len(names) - 1]}{cells + 1}"
        totals = {row[: len(names)]: row[len(names) : -1] for row in every[cells:]}
        assert len(totals) == len(every) - cells == (1 if len(names) == 1 else 5)
        for own in margins[names]:
            table = release[own]
            parts = table.estimate, table.standard_deviation, *table.confidence_interval()
            for k, of in enumerate(itertools.product(*table.labels)):
                by = dict(zip(own, of, strict=True))
                found = totals[tuple(by.get(name, "Total") for name in names)]
                assert found == pytest.approx([np.ravel(x)[k] for x in parts], rel=1e-12)
        assert totals[("Total",) * len(names)] == (600, 0, 600, 600)  # the number of rows is public
    assert not any(cell.value == "Total" for own in others for row in own for cell in row)
    loaded = gn.TableRelease.load(tmp_path / "out")
    for names in release:
        assert (loaded[names].estimate == release[names].estimate).all()


def test_a_workbook_holds_tables_that_are_answers_of_bases(tmp_path):
    schema = gn.Schema([gn.Attribute("age", edges=[0, 18, 65, 120])])
    plan = gn.plan(schema, [{"age": "prefix"}], gn.zCDP(0.5))
    release = plan.release(pa.table({"age": [3, 40, 80]}), out=tmp_path / "out", format="xlsx")
    path = tmp_path / "out" / "tables" / "tables.xlsx"
    answers = release.answers({"age": "prefix"})
    assert [row["age"] for row in sheet(path, 2)] == list(answers.labels[0])
    assert [row["estimate"] for row in sheet(path, 2)] == answers.estimate.tolist()


def test_a_workbook_has_means_of_several_groups_and_of_persons(tmp_path):
    schema = gn.Schema(
        [
            gn.Attribute("sex", ["F", "M"]),
            gn.Attribute("year", [1, 2]),
            gn.Attribute("pay", clip=[0, 9], other="none"),
        ]
    )
    plan = gn.plan(schema, [("sex", "pay", "year"), "pay"], gn.zCDP(1), person="who",
                   per_person={"pay": "mean"})  # fmt: skip
    rows = {"who": range(400), "sex": ["F", "M"] * 200, "year": [1, 2] * 200, "pay": [3.0] * 400}
    plan.release(pa.table(rows), out=tmp_path / "out", format="xlsx")
    book = openpyxl.load_workbook(tmp_path / "out" / "tables" / "tables.xlsx")
    header, *groups, total = book.worksheets[1].iter_rows(values_only=True)
    assert header == ("sex", "year", "count", "mean", "low", "high", "mark")
    assert [row[:2] for row in groups] == [("F", "1"), ("F", "2"), ("M", "1"), ("M", "2")]
    assert total[:2] == ("Total", None)
    (header, alone) = book.worksheets[2].iter_rows(values_only=True)
    assert (header[0], alone[:2]) == ("count", total[2:4])
    cover = [row[0].value for row in book.worksheets[0].iter_rows()]
    by_group = "Mean of pay by sex × year over persons, each with the mean of their own numbers"
    assert by_group in cover


def test_one_workbook_has_counts_sums_and_means_and_shows_no_virtual_cells(tmp_path):
    about = gn.About(title="Pay", source="A survey", period="2026", contact="a@b.org")
    sex, pay = gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 100])
    plan = gn.plan(gn.Schema([sex, pay], about=about), [("sex",), ("sex", "pay")], gn.zCDP(1))
    rows = {"sex": ["F", "M"] * 500, "pay": [30.0, 60.0] * 500}
    release = plan.release(pa.table(rows), out=tmp_path / "out", format="xlsx")
    assert [path.name for path in (tmp_path / "out").rglob("*.xlsx")] == ["tables.xlsx"]
    book = openpyxl.load_workbook(tmp_path / "out" / "tables" / "tables.xlsx")
    cover, *sheets = book.worksheets
    shown = [ws for ws in sheets if ws.sheet_state == "visible"]
    titles = ["1 Mean of pay by sex", "2 sex", "3 pay by sex_ counts, sums, mea"]
    assert [ws.title for ws in shown] == titles
    assert not any(
        "weight at" in str(cell.value) for ws in shown for row in ws.iter_rows() for cell in row
    )
    numbers = {(row[0].value, row[1].value): row[2].value for row in shown[2].iter_rows(2)}
    assert {statistic for _, statistic in numbers} == {"count", "sum", "mean"}
    means = release.means("pay", given="sex").estimate.tolist()
    assert [numbers["F", "mean"], numbers["M", "mean"]] == means
    header, *groups, total = shown[0].iter_rows(values_only=True)
    assert header == ("sex", "count", "mean", "low", "high", "mark")
    for rows_of, own in ((groups, ("sex",)), ([total], ())):
        table = release.means("pay", own)
        parts = table.counts, table.estimate, *table.confidence_interval()
        found = np.array([row[1:5] for row in rows_of]).T
        np.testing.assert_array_equal(found, [np.ravel(part) for part in parts])
    assert [row[0] for row in (*groups, total)] == ["F", "M", "Total"]
    assert shown[0]["C2"].number_format == "#,##0.00"
    texts = [row[0].value for row in cover.iter_rows() if row[0].value]
    assert texts[:6] == ["Pay", "Source data", "A survey", "Reference period", "2026", "Contact"]
    links = [row[0].hyperlink.location for row in cover.iter_rows() if row[0].hyperlink]
    assert links == [f"'{ws.title}'!A1" for ws in shown]
    loaded = gn.TableRelease.load(tmp_path / "out")
    assert (loaded["sex", "pay"].estimate == release["sex", "pay"].estimate).all()
    gn.combine([release, plan.release(pa.table(rows))]).save(tmp_path / "both", "xlsx")
    both = openpyxl.load_workbook(tmp_path / "both" / "tables" / "tables.xlsx")
    assert [ws.sheet_state for ws in both.worksheets] == ["visible"] * 4 + ["hidden"]


def test_sdmx_says_the_period_and_the_unit_of_weighted_counts(tmp_path):
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"])], about=gn.About(period="2026-Q1"))
    plan = gn.plan(schema, 1, gn.zCDP(1), weight=gn.Weight("w", most=10))
    plan.release(
        pa.table({"sex": ["F", "M"], "w": [2.0, 3.0]}), out=tmp_path / "out", format="sdmx-csv"
    )
    (path,) = (tmp_path / "out" / "tables").glob("*+sdmx.csv")
    (data,) = read_sdmx(path.read_text(encoding="utf-8"))
    assert set(data.data["TIME_PERIOD"]) == {"2026-Q1"}
    assert set(data.data["UNIT_MEASURE"]) == {"WEIGHTED_ROWS"}


PERIODS = ["2026", "2026-02", "2026-02-28", "2026-Q4", "2026-M12", "2026-W53", "2026-D366"]
PERIODS += ["2026-A1", "2026-S2", "2026-T3", "2026-02-28T08:30:00", "2026-01-01/P1Y6M"]
NO_PERIODS = ["", "0000", "26", "2026-13", "2026-Q5", "2026-W54", "2026-D367", "2026-02-29"]
NO_PERIODS += ["2026-02-28T25:00:00", "2026-01-01/P", "2026/2027", "2026 ", "winter 2026", "٢٠٢٦"]


def test_periods_of_sdmx_are_told_from_words():
    assert all(map(is_time_period, PERIODS))
    assert not any(map(is_time_period, NO_PERIODS))


def pay(tmp_path, format, period):
    """Release counts, sums and means of pay by sex, and return their file and that of counts."""
    about = gn.About(title="Pay", source="A survey", period=period)
    attributes = [gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 100])]
    plan = gn.plan(gn.Schema(attributes, about=about), [("sex",), ("sex", "pay")], gn.zCDP(1))
    rows = {"sex": ["F", "M"] * 500, "pay": [30.0, 60.0] * 500}
    plan.release(pa.table(rows), out=tmp_path / "out", format=format)
    ending = FORMATS[format].ending
    return next((tmp_path / "out" / "answers").glob(f"*{ending}")).read_text("utf-8"), next(
        (tmp_path / "out" / "tables").glob(f"1-sex{ending}")
    ).read_text("utf-8")


def test_sdmx_has_the_unit_of_every_row_and_a_period_in_words_apart(tmp_path):
    answers, counts = pay(tmp_path, "sdmx-csv", "winter 2026")
    (data,) = read_sdmx(answers)
    units = dict(zip(data.data["PAY"], data.data["UNIT_MEASURE"], strict=True))
    assert units == {"count": "ROWS", "sum": "UNIT_OF_PAY", "mean": "UNIT_OF_PAY"}
    assert len(data.data) == 6
    assert "TIME_PERIOD" not in data.data
    assert set(data.data["REF_PERIOD"]) == {"winter 2026"}
    (data,) = read_sdmx(counts)
    assert set(data.data["UNIT_MEASURE"]) == {"ROWS"}


@pytest.mark.filterwarnings("ignore:Shouldn.t use this function")  # pyjstat's own call
def test_a_cube_has_its_title_source_and_units(tmp_path):
    answers, counts = (pyjstat.Dataset.read(text) for text in pay(tmp_path, "json-stat", "2026"))
    assert (counts["label"], counts["source"]) == ("Pay: sex", "A survey")
    rows, unit = {"label": "rows"}, {"label": "unit of pay"}
    assert counts["role"]["metric"] == ["measure"]
    assert [*counts["dimension"]["measure"]["category"]["unit"].values()] == [rows] * 4
    assert answers["label"] == "Pay: sex × pay"
    assert answers["role"]["metric"] == ["pay", "measure"]
    of = answers["dimension"]["pay"]["category"]["unit"]
    assert of == {"count": rows, "sum": unit, "mean": unit}
    assert "unit" not in answers["dimension"]["measure"]["category"]
    frame = answers.write("dataframe")
    assert set(frame["pay"]) == {"count", "sum", "mean"}


@pytest.mark.filterwarnings("ignore:Shouldn.t use this function")  # pyjstat's own call
def test_a_series_of_shares_has_no_unit(tmp_path):
    plan = gn.plan(
        gn.Schema([gn.Attribute("sex", ["F", "M"])]), 1, gn.zCDP(1), over=gn.streams.Ticks(2)
    )
    stream = plan.start(tmp_path / "s")
    stream.tick(pa.table({"sex": ["F", "M"] * 200}), number=1)
    for name, asked in (("counts", "sex"), ("shares", lambda own: own.proportions("sex"))):
        series = stream.series(asked)
        series.save(tmp_path / f"{name}.json")
        cube = pyjstat.Dataset.read((tmp_path / f"{name}.json").read_text("utf-8"))
        assert ("unit" in cube["dimension"]["measure"]["category"]) == (name == "counts")
        series.save(tmp_path / f"{name}+sdmx.csv")
        (data,) = read_sdmx((tmp_path / f"{name}+sdmx.csv").read_text("utf-8"))
        assert ("UNIT_MEASURE" in data.data) == (name == "counts")


def refused(schema, workload, tmp_path, monkeypatch, format="xlsx"):
    """Return why a release in this format is refused, before any data are read."""
    monkeypatch.setattr("gaussnoise.tables.release.publish.count_marginals", None)
    plan = gn.plan(schema, workload, gn.zCDP(0.5))
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(1))
    with pytest.raises(ParameterError) as caught:
        plan.release(pa.table({}), out=tmp_path / "out", format=format, ledger=ledger, id="first")
    assert ledger.spent == 0
    return str(caught.value)


def test_a_table_longer_than_a_sheet_is_refused_before_the_charge(tmp_path, monkeypatch):
    schema = gn.Schema([gn.Attribute("a", range(1024)), gn.Attribute("b", range(1024))])
    why = refused(schema, [("a", "b")], tmp_path, monkeypatch)
    assert "at most 1048575 cells for XLSX, got one of 1048576; hint: " in why


def test_a_cube_larger_than_its_readers_hold_is_refused_before_the_charge(tmp_path, monkeypatch):
    schema = gn.Schema([gn.Attribute("a", range(2048)), gn.Attribute("b", range(2049))])
    why = refused(schema, [("a", "b")], tmp_path, monkeypatch, "json-stat")
    assert "at most 4194304 cells for JSON-STAT, got one of 4196352; hint: " in why


def test_a_label_longer_than_a_cell_is_refused_before_the_charge(tmp_path, monkeypatch):
    why = refused(gn.Schema([gn.Attribute("a", ["x", "y" * 32768])]), 1, tmp_path, monkeypatch)
    assert "at most 32767 characters for XLSX, got one of 32768; hint: " in why


def test_marks_follow_the_relative_error():
    estimate = np.array([100.0, 100, 100, 100, 100, 0, 0, -100, np.inf])
    deviation = np.array([9.9, 10, 25, 50, 500, 1, 0, 30, 1])
    assert marks_of(estimate, deviation).tolist() == ["", "^", "*", "**", "**", "**", "", "*", ""]


@pytest.mark.parametrize("format", ["csv", "sdmx-csv"])
def test_every_csv_file_has_metadata_that_its_community_reads(tmp_path, format):
    table, schema = load()
    workload = [("age", "affair"), {"age": "prefix"}, ()]
    gn.plan(schema, workload, gn.zCDP(0.5)).release(table, out=tmp_path / "out", format=format)
    record = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    files = [Path(name) for name in record["files"] if name.endswith(".csv")]
    assert len(files) == 4
    for file in files:
        beside = f"{file}-metadata.json"
        assert beside in record["files"]
        found = CSVW(str(tmp_path / "out" / beside))
        assert found.is_valid
        rows = [row for table in found.tables for row in table]
        read = FORMATS[format].estimates(tmp_path / "out" / file, 0, len(rows))
        name = next(name for name, value in rows[0].items() if type(value) is float)
        assert [row[name] for row in rows] == read.tolist()


def test_the_codebook_and_the_method_statement_say_what_the_record_says(demo):
    release, folder, _ = demo
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert {"ddi.xml", "method.txt"} <= record["files"].keys()
    root = ElementTree.parse(folder / "ddi.xml").getroot()
    assert (root.tag, root.get("version")) == (f"{DDI}codeBook", "2.5")
    title = f"{DDI}stdyDscr/{DDI}citation/{DDI}titlStmt/{DDI}titl"
    assert root.findtext(title) == "A survey"
    variables = root.findall(f"{DDI}dataDscr/{DDI}var")
    assert [variable.get("name") for variable in variables] == [*release.plan.schema.names]
    for variable, attribute in zip(variables, release.plan.schema.attributes, strict=True):
        values = [value.text for value in variable.iter(f"{DDI}catValu")]
        assert values == [str(label) for label in attribute.labels]
    text = (folder / "method.txt").read_text(encoding="utf-8")
    for said in ("A magazine of 1974", *record["disclaimers"], record["neighbors_meaning"]):
        assert said in text
    headings = [line for line in text.splitlines() if line[:1].isdigit()]
    assert headings == list(method._HEADINGS)
    filled = method.statement_of(release).sections
    filled = method.statement_of(release).sections
    assert text.count("(the publisher's to fill in)") == len(headings) - len(filled)


def test_a_simulation_says_so_in_every_file(tmp_path):
    table, schema = load()
    made = gn.plan(schema, 1, gn.zCDP(0.5)).simulate(table, np.random.default_rng(1))
    made.save(tmp_path / "out", "xlsx")
    cover = openpyxl.load_workbook(tmp_path / "out" / "tables" / "tables.xlsx").worksheets[0]
    assert cover["A4"].value == "NOT PRIVATE: a simulation, not to be published."
    assert "NOT PRIVATE" in (tmp_path / "out" / "method.txt").read_text(encoding="utf-8")
    assert "NOT PRIVATE" in (tmp_path / "out" / "ddi.xml").read_text(encoding="utf-8")


def test_a_name_ends_in_one_format_alone():
    assert format_of("1-a.sdmx.csv") is FORMATS["csv"]
    assert format_of("1-a+sdmx.csv") is FORMATS["sdmx-csv"]
    with pytest.raises(LookupError):
        format_of("release.txt")


HEAD = b'<worksheet><sheetData><row r="1"><c r="A1"><is><t>estimate</t></is></c></row>'
ROW = b'<row r="2"><c r="A2"><v>%b</v></c></row>'


def workbook(path, text, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as book:
        book.writestr("xl/worksheets/sheet2.xml", text)
    return path


def test_a_workbook_of_someone_else_is_read_if_it_has_the_cells(tmp_path):
    path = workbook(tmp_path / "t.xlsx", HEAD + ROW % b"1.5" + b"</sheetData></worksheet>")
    assert Xlsx().estimates(path, 2**20 + 1, 1).tolist() == [1.5]


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"<worksheet>", HEAD, HEAD + b"</sheetData></worksheet>"),
        *(
            HEAD + ROW % value + b"</sheetData></worksheet>"
            for value in (b"x", b"inf", b"nan", b"", b"1" * 10**6)
        ),
        HEAD + 2 * (ROW % b"1") + b"</sheetData></worksheet>",
        b"<!DOCTYPE x [<!ENTITY a '1'>]>" + HEAD + ROW % b"&a;" + b"</sheetData></worksheet>",
        HEAD + b"<c r='" + b"A" * 2**22 + b"'/></sheetData></worksheet>",
        HEAD.replace(b' r="A1"', b"") + ROW % b"1" + b"</sheetData></worksheet>",
    ],
)
def test_a_workbook_without_the_cells_is_refused(tmp_path, text):
    path = workbook(tmp_path / "t.xlsx", text)
    with pytest.raises((ValueError, LookupError)):
        Xlsx().estimates(path, 2**20 + 1, 1)


def test_a_sheet_that_is_small_only_when_packed_takes_no_memory(tmp_path):
    rest = b" " * 2**26 + b"</sheetData></worksheet>"
    path = workbook(tmp_path / "t.xlsx", HEAD + ROW % b"1.5" + rest)
    assert path.stat().st_size < 2**18
    tracemalloc.start()
    found = Xlsx().estimates(path, 2**20 + 1, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.tolist() == [1.5]
    assert peak < 2**22


def test_a_stored_table_in_another_sheet_is_not_taken(tmp_path):
    path = workbook(tmp_path / "t.xlsx", HEAD + ROW % b"1.5" + b"</sheetData></worksheet>")
    for first_row in (0, 1, 2**20, 2**20 + 2, 2**21 + 1):
        with pytest.raises((ValueError, LookupError)):
            Xlsx().estimates(path, first_row, 1)


@pytest.mark.parametrize(
    "line", [b"x, 1, 1, 1", b"1", b"nan, 1, 1, 1", b"1, 1, 1", b"1" * 5000, b"", b"[1, 1, 1, 1"]
)
def test_lines_of_a_cube_that_are_no_cells_are_refused(tmp_path, line):
    good = b'{"version": "2.0", "class": "dataset", "value": [\n1.5, 1, 1, 1\n],\n"x": 1}\n'
    (tmp_path / "t.json").write_bytes(good)
    read = FORMATS["json-stat"].estimates
    assert read(tmp_path / "t.json", 0, 1).tolist() == [1.5]
    (tmp_path / "t.json").write_bytes(good.replace(b"1.5, 1, 1, 1", line))
    with pytest.raises(ValueError):  # noqa: PT011 (which the store words)
        read(tmp_path / "t.json", 0, 1)


def test_a_changed_workbook_is_refused(tmp_path):
    table, schema = load()
    plan = gn.plan(schema, 1, gn.zCDP(0.5))
    plan.release(table, out=tmp_path / "out", format="xlsx")
    for name in ("tables/tables.xlsx", "ddi.xml", "method.txt"):
        path = tmp_path / "out" / name
        content = path.read_bytes()
        path.write_bytes(content + b" ")
        with pytest.raises(OutputError, match=name):
            gn.TableRelease.load(tmp_path / "out", plan)
        path.write_bytes(content)
    gn.TableRelease.load(tmp_path / "out", plan)


def test_hostile_names_are_read_back_from_every_format(tmp_path):
    """A name of a cube's own, one that is escaped, and one of characters beyond the first 2¹⁶."""
    attributes = [
        gn.Attribute("measure_", ["a"]),
        gn.Attribute("measure", ["b"]),
        gn.Attribute("\x01" * 5000, ["c"]),
        gn.Attribute("\U0001f600" * 40, ["d", "e"]),
    ]
    names = [attribute.name for attribute in attributes]
    plan = gn.plan(gn.Schema(attributes), [tuple(names)], gn.zCDP(0.5))
    release = plan.release(pa.table({a.name: [a.labels[0]] * 3 for a in attributes}))
    for format in FORMATS:
        release.save(tmp_path / format, format=format)
        again = gn.TableRelease.load(tmp_path / format)
        np.testing.assert_array_equal(again[names].estimate, release[names].estimate)
    [path] = (tmp_path / "json-stat" / "tables").iterdir()
    cube = json.loads(path.read_text(encoding="utf-8"))
    assert len(set(cube["id"])) == len(cube["dimension"]) == len(attributes) + 1
    book = openpyxl.load_workbook(next((tmp_path / "xlsx" / "tables").iterdir()))
    assert all(len(name.encode("utf-16-le")) <= 62 for name in book.sheetnames)


def test_labels_are_measured_as_a_sheet_does(tmp_path, monkeypatch):
    schema = gn.Schema([gn.Attribute("a", ["\U0001f600" * 20_000, "b"])])
    assert "at most 32767 characters" in refused(schema, ["a"], tmp_path, monkeypatch)
