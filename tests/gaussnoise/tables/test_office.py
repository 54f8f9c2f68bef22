"""Workbooks and files of statistics programs count as the same table in CSV."""

import datetime
import importlib
import lzma
import math
import sys
from pathlib import Path

import pandas as pd
import pytest

import gaussnoise as gn
from gaussnoise.errors import DataError
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.reading import office
from gaussnoise.tables.reading.declared import check_columns

pyreadstat = pytest.importorskip("pyreadstat")
openpyxl = pytest.importorskip("openpyxl")

DAYS = [datetime.date(2020, 1, 31), None, datetime.date(1900, 5, 1), datetime.date(2024, 12, 31)]
SEXES, SIZES, PAY, TOWNS = [1, 2, 9, None], [3, 2**31, None, 4], [1.5, None, -3, 1e10], ["Köln", ""]
TOWNS = [*TOWNS, "Bäk", " x"]
TABLE = pd.DataFrame(
    {
        "sex": pd.Series(SEXES * 25, dtype="float64"),
        "size": pd.Series(SIZES[::-1] * 25, dtype="float64"),
        "pay": pd.Series([*PAY[1:], PAY[0]] * 25, dtype="float64"),
        "town": pd.Series(TOWNS * 25),
        "day": pd.Series(DAYS * 25, dtype="object"),
    }
)
LABELS = {"sex": {1: "F", 2: "M", 9: "refused"}}
OTHERS = [
    gn.Attribute("size", [3, 4, 2**31], other="none"),
    gn.Attribute("pay", edges=[-10, 0, 1.5, 2e10], other="none"),
    gn.Attribute("town", ["Köln", "Bäk", " x"], other="none"),
    gn.Attribute("day", edges=["1900-01-01", "2020-01-31", "2024-12-31"], other="none"),
]
CODES, NAMED = gn.Attribute("sex", [1, 2, 9], other="o"), gn.Attribute("sex", ["F", "M"], other="o")


def counted(table, attributes):
    ((_, counts),) = count_marginals(table, attributes, [tuple(range(len(attributes)))])
    return counts.tolist()


def write(frame, path, missing=False):
    if path.suffix == ".sav":
        options = {"missing_ranges": {"sex": [9]}} if missing else {}
        pyreadstat.write_sav(frame, path, variable_value_labels=LABELS, **options)
    elif path.suffix == ".dta":
        pyreadstat.write_dta(frame, path, variable_value_labels=LABELS)
    elif path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        rows = frame.astype(object).where(frame.notna(), None)
        for row in [list(frame.columns), *rows.itertuples(index=False)]:
            book.active.append(list(row))
        book.save(path)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["t.sav", "t.dta", "t.xlsx"])
@pytest.mark.parametrize("rows", [7, 2**16])
def test_values_count_as_in_csv(tmp_path, name, rows, monkeypatch):
    monkeypatch.setattr(office, "_ROWS", rows)
    expected = counted(write(TABLE, tmp_path / "t.csv"), [CODES, *OTHERS])
    assert counted(write(TABLE, tmp_path / name), [CODES, *OTHERS]) == expected
    assert counted([tmp_path / name], OTHERS[:1]) == [25, 25, 25, 25]


@pytest.mark.parametrize("name", ["t.sav", "t.dta"])
def test_a_schema_may_give_codes_or_labels(tmp_path, name):
    path = write(TABLE, tmp_path / name)
    assert counted(path, [CODES]) == [25, 25, 25, 25]
    assert counted(path, [NAMED]) == [25, 25, 50]
    assert counted(path, [gn.Attribute("sex", edges=[0, 3, 8], other="o")]) == [50, 0, 50]
    # a code without a label is its digits
    more = pd.concat([TABLE, TABLE[:1].assign(sex=3.0)])
    assert counted(write(more, path), [gn.Attribute("sex", ["F", "3"], other="o")]) == [25, 1, 75]
    assert gn.Schema.draft(path).attributes[0].categories == ("3", "F", "M", "refused")


def test_values_that_the_file_declares_missing_are_missing(tmp_path):
    path = write(TABLE, tmp_path / "t.sav", missing=True)
    assert counted(path, [CODES]) == [25, 25, 0, 50]
    refused = gn.Attribute("sex", ["F", "M", "refused"], other="o")
    assert counted(path, [refused]) == [25, 25, 0, 50]


def test_persons_are_told_by_their_code(tmp_path):
    """Two codes with the same label are two persons."""
    frame = pd.DataFrame({"who": [1.0, 2.0] * 10, "sex": ["F"] * 20})
    pyreadstat.write_sav(frame, tmp_path / "t.sav", variable_value_labels={"who": {1: "x", 2: "x"}})
    schema = gn.Schema([gn.Attribute("sex", ["F"], other="o")])
    plan = gn.plan(schema, 1, gn.zCDP(1e8), person="who", rows_per_person=3)
    assert plan.release(tmp_path / "t.sav")["sex"].estimate.round().tolist() == [6, 0]


@pytest.mark.parametrize("name", ["t.sav", "t.dta", "t.xlsx"])
def test_every_row_counts_by_itself(tmp_path, name):
    values = [1.0, 2.5, -0.0, 1e300, float("nan"), 2.0**53, 9.0]
    frame = pd.DataFrame({"sex": values, "t": ["1", "", "1.0", "x", " y", "TRUE", "F"]})
    kinds = [gn.Attribute("sex", [1, 9, 0, 2**53], other="o"), gn.Attribute("t", [1, 2], other="o")]
    whole = counted(write(frame, tmp_path / name), kinds)
    alone = [counted(write(frame[k : k + 1], tmp_path / name), kinds) for k in range(len(frame))]
    assert whole == [
        [sum(one[i][j] for one in alone) for j in range(len(whole[0]))] for i in range(len(whole))
    ]
    assert sum(map(sum, whole)) == len(frame)


def test_cells_of_sheets_decide_for_their_row_only(tmp_path):
    book = openpyxl.Workbook()
    for row in (["a", "b", None], [1, "x"], [None, None], [True, 2.0, "stray"], ["1", "#N/A"]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    assert counted(tmp_path / "t.xlsx", [gn.Attribute("a", [1], other="o")]) == [2, 1]
    assert counted(tmp_path / "t.xlsx", [gn.Attribute("a", [True], other="o")]) == [1, 2]
    book.create_sheet("two")
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(DataError, match="one sheet, got 2; hint"):
        counted(tmp_path / "t.xlsx", [CODES])


@pytest.mark.parametrize(("place", "refused"), [("XFD1048576", True), ("C1048576", False)])
def test_a_cell_that_is_far_away_does_not_take_all_memory(tmp_path, place, refused):
    """Its reader allocates all cells up to it: here 1.7e10 of them, or 3e6."""
    book = openpyxl.Workbook()
    for row in (["a"], [1], [2]):
        book.active.append(row)
    book.active[place] = "far"
    book.save(tmp_path / "t.xlsx")
    attribute = gn.Attribute("a", [1], other="o")
    if not refused:
        assert counted(tmp_path / "t.xlsx", [attribute]) == [1, 1]
        return
    with pytest.raises(DataError, match="far away; hint"):
        counted(tmp_path / "t.xlsx", [attribute])


SAS = Path(__file__).with_name("sample.sas7bdat.xz")  # of pyreadstat's tests


def test_dates_of_sas(tmp_path):
    (tmp_path / "t.sas7bdat").write_bytes(lzma.decompress(SAS.read_bytes()))
    dates = ["1500-01-01", "1583-01-01", "1880-05-06", "2018-05-07"]
    read = counted(tmp_path / "t.sas7bdat", [gn.Attribute("mydate", edges=dates, other="o")])
    assert read == [0, 1, 3, 1]
    times = ["1880-05-06T10:10:10", "1880-05-06T10:10:11", "2018-05-06T10:10:10"]
    read = counted(tmp_path / "t.sas7bdat", [gn.Attribute("dtime", edges=times, other="o")])
    assert read == [1, 2, 2]


@pytest.mark.parametrize(
    ("format", "end", "value", "text"),
    [
        ("DATE11", ".sav", 13799808000.0, "2020-01-31"),
        ("DATETIME20", ".sav", 13799838600.25, "2020-01-31 08:30:00.250000"),
        ("F8.2", ".sav", 13799808000.0, "13799808000"),
        ("TIME8", ".sav", 30600.0, "30600"),
        ("%td", ".dta", 21945, "2020-01-31"),
        ("%tdCCYY-NN-DD", ".dta", 21945.0, "2020-01-31"),
        ("%tc", ".dta", 1896078600000.0, "2020-01-31 08:30:00"),
        ("%tm", ".dta", 720, "720"),
        ("YYMMDD10", ".sas7bdat", 21945.0, "2020-01-31"),
        ("E8601DT", ".sas7bdat", 1896078600.0, "2020-01-31 08:30:00"),
        ("TIME8", ".sas7bdat", 30600.0, "30600"),
        ("%td", ".dta", 1e9, "1000000000"),  # outside of Python's calendar
        ("%td", ".dta", math.inf, "inf"),
        ("%td", ".dta", None, None),
    ],
)
def test_formats_decide_which_numbers_are_dates(format, end, value, text):
    assert office._text_of(format, {}, end)(value) == text


@pytest.mark.parametrize(
    ("name", "package"), [("t.sav", "pyreadstat"), ("t.xlsx", "python_calamine")]
)
def test_what_is_missing_is_named(tmp_path, name, package, monkeypatch):
    importlib.import_module(package)
    write(TABLE, tmp_path / name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataError, match=r'hint: pip install "gaussnoise\[office\]"'):
        counted(tmp_path / name, [CODES])


def test_rows_before_the_column_names_are_skipped(tmp_path):
    book = openpyxl.Workbook()
    for row in (["Register", "extract"], [], ["a", "b"], [1, "x"], [], [2, "x"]):
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    attributes = [gn.Attribute("a", [1, 2]), gn.Attribute("b", ["x", "y"])]
    table = gn.Dialect(skip=2).table(tmp_path / "t.xlsx")
    assert counted(table, attributes[:1]) == [1, 1]
    schema = gn.Schema(attributes, file=gn.Dialect(skip=2))
    check_columns(table, ["a", "b"])
    release = gn.plan(schema, 1, gn.zCDP(1e8)).release(tmp_path / "t.xlsx")
    assert release["b"].estimate.round().tolist() == [2, 0]
    with pytest.raises(DataError, match=r"first row; hint: .* skip = 2 in the schema"):
        counted(gn.Dialect(skip=1).table(tmp_path / "t.xlsx"), attributes[:1])
    with pytest.raises(DataError, match="found other columns"):
        gn.plan(gn.Schema(attributes), 1, gn.zCDP(1)).release(tmp_path / "t.xlsx")
