"""Folders that readers could take for others: both programs refuse each in which a number, a record
or a sheet is written in another way than a release writes it.
"""

import re
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from browser import as_texts, node_lines
from changed import Copy

import gaussnoise as gn
from gaussnoise import verifier
from gaussnoise.streams.files import places_in

pytestmark = pytest.mark.usefixtures("quick_pictures")

SCHEMA = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("region", ["N", "S", "W"])])
PREFIXES = [{"sex": "identity", "region": "prefix"}, {"region": "identity"}]
NUMBERS = [gn.Attribute("pay", unit=0.01), gn.Attribute("staff", unit=1)]
MONEY = gn.Schema([SCHEMA.attributes[0], *NUMBERS])
BUDGET = gn.PerRecord(gn.zCDP(0.3), {"pay": 1000, "staff": 20})  # no table is about staff
RHO = gn.zCDP(0.1)


def people():
    rng = np.random.default_rng(2)
    rows = {a.name: rng.choice(a.labels, 300) for a in SCHEMA.attributes}
    return pa.table(rows | {"pay": np.round(rng.uniform(0, 900, 300), 2)})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    at, table = tmp_path_factory.mktemp("folders"), people()
    for format in ("csv", "jsonl", "xlsx"):
        gn.plan(SCHEMA, PREFIXES, RHO).release(table, out=at / format, format=format)
    gn.plan(MONEY, [("sex", "pay"), ("sex",)], BUDGET).release(table, out=at / "money")
    stream = gn.plan(SCHEMA, 2, RHO, over=gn.streams.Ticks(3)).start(at / "stream")
    for tick in (1, 2):
        stream.tick(table, number=tick)
    return {path.name: path for path in at.iterdir()}


def refused(copy):
    """Check that both programs refuse a folder; return what they say."""
    said = [verifier.verified(copy.at)[0], node_lines([as_texts(copy.at)])[0][0]]
    assert [line.split()[0] for line in said] == ["FAILED:"] * 2, said
    return said


def in_a_table(pattern, text, format="csv"):
    """A change of the first table, with its digest."""

    def change(copy):
        name = copy.record["marginals"][0]["file"]
        before = (copy.at / name).read_bytes().decode()
        after = re.sub(pattern, text, before, count=1)
        assert after != before
        copy.write(name, after.encode())

    return format, change


def in_the_sheet(pattern, text):
    """A change of the first sheet with a table, with the digest of the workbook."""

    def change(copy):
        name, sheet = "tables/tables.xlsx", "xl/worksheets/sheet2.xml"
        with zipfile.ZipFile(copy.at / name) as book:
            parts = {own: book.read(own) for own in book.namelist()}
        after = re.sub(pattern, text, parts[sheet].decode(), count=1).encode()
        assert after != parts[sheet]
        with zipfile.ZipFile(copy.at / name, "w") as book:
            for own, content in (parts | {sheet: after}).items():
                book.writestr(own, content)
        copy.write(name, (copy.at / name).read_bytes())

    return "xlsx", change


def in_the_record(*path, to, kind="csv", name="release.json"):
    """Another value in a record; a function makes it from the value there."""

    def change(copy):
        record = copy.read(name)
        inside = record
        for key in path[:-1]:
            inside = inside[key]
        inside[path[-1]] = to(inside[path[-1]]) if callable(to) else to
        copy.write_record(record, name)

    return kind, change


def in_the_matrix_over_time(to):
    return in_the_record("time_matrix", 0, to=to, kind="stream", name="stream.json")


def in_other_bytes(encoding):
    def change(copy):
        text = (copy.at / "release.json").read_text(encoding="utf-8")
        (copy.at / "release.json").write_bytes(text.encode(encoding))

    return "csv", change


def with_a_sign(row):
    return "+" + row


def with_a_zero(row):
    return re.sub(r"(^| )(?=[1-9])", r"\g<1>0", row)


TICK = "ticks/0002/release.json"
SPELLINGS = {
    "1_0": in_a_table(r",(\d)(\d)", r",\1_\2"),
    "a space": in_a_table(r",(?=\d)", ", "),
    "Arabic digits": in_a_table(r",\d", ",\N{ARABIC-INDIC DIGIT ONE}"),
    "E for e": in_a_table(r"(,[\d.]+)(?=,)", r"\1E0"),
    "the end of a line": in_a_table("\n", "\r"),
    "a number as a text": in_a_table(r'("estimate": )([^,]*)', r'\1"\2"', "jsonl"),
    "a label as a list": in_a_table('"F"', '["F"]', "jsonl"),
    "the end of a line of JSON": in_a_table("\n", "\r", "jsonl"),
    "a mark of the order of bytes": in_other_bytes("utf-8-sig"),
    "UTF-16": in_other_bytes("utf-16"),
    "NaN": in_the_record("epsilon_delta", "epsilon", to=float("nan")),
    "an infinite gamma": in_the_record(
        "optimality", to={"gamma": float("1e999"), "gamma_lower": 0, "certified_gap": 0}
    ),
    "a gap to nothing": in_the_record(
        "optimality", to=lambda own: own | {"gamma_lower": 0.0, "certified_gap": 0.0}
    ),
    "1.0 rows": in_the_record("plan", "rows_per_person", to=1.0),
    "true rows": in_the_record("plan", "rows_per_person", to=True),
    "6.0 cells": in_the_record("marginals", 0, "cells", to=float),
    "no first row": in_the_record("marginals", 0, "first_row", to=False),
    "first row 0.0": in_the_record("marginals", 0, "first_row", to=0.0),
    "simultaneous 0": in_the_record("intervals", "simultaneous", to=0),
    "+1 in a matrix": in_the_record("noise", "contrasts", "region", 0, to=with_a_sign),
    "01 in a matrix": in_the_record("noise", "contrasts", "region", 0, to=with_a_zero),
    "+1 over time": in_the_matrix_over_time(with_a_sign),
    "01 over time": in_the_matrix_over_time(with_a_zero),
    "tick 2.0": in_the_record("tick", to=2.0, kind="stream", name=TICK),
    "a digest in capitals": in_the_record(
        "measurements_sha256", to="A" * 64, kind="stream", name=TICK
    ),
    "hidden columns": in_the_sheet("<cols>", '<cols><col min="9" max="9" hidden="1"/>'),
    "merged cells": in_the_sheet(
        "</sheetData>", '</sheetData><mergeCells><mergeCell ref="A2:F9"/></mergeCells>'
    ),
    "a formula alone": in_the_sheet("<v>([^<]*)</v>", r"<f>\1</f>"),
    "another tag": in_the_sheet("<v>([^<]*)</v>", r"<extLst>\1</extLst>"),
    "a text in parts": in_the_sheet("<is>.*?>F</t></is>", "<is><r><t>F</t></r></is>"),
    "a comment": in_the_sheet(r"<v>(\d)", r"<v>\1<!-- 5 -->"),
    "a character by its number": in_the_sheet(r"<v>\d", "<v>&#49;"),
    "two lists of rows": in_the_sheet("<sheetData>", "<sheetData></sheetData><sheetData>"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "jsonl", "xlsx", "money", "stream"])
def test_folders_pass_as_they_were_written(kind, folders):
    said = verifier.verified(folders[kind])[0], node_lines([as_texts(folders[kind])])[0][0]
    assert [line[:7] for line in said] == ["checked"] * 2, said


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_readers_could_read_differently_is_refused(spelling, folders, tmp_path):
    kind, change = SPELLINGS[spelling]
    copy = Copy(folders[kind], tmp_path / "copy")
    change(copy)
    refused(copy)


@pytest.mark.parametrize("scale", [0.0, -20.0])
def test_a_budget_that_grows_with_nothing_is_refused(scale, folders, tmp_path):
    """The plan and the privacy of the record agree on it."""
    copy = Copy(folders["money"], tmp_path / "copy")
    record = copy.record
    record["plan"]["privacy"]["scale"]["staff"] = record["privacy"]["scales"]["staff"] = scale
    copy.write_record(record)
    assert refused(copy) == ["FAILED: the budgets of rows"] * 2


def test_a_table_of_a_stream_begins_at_a_row_that_exists():
    """Where executors write several tables into one file, only the record knows the row."""
    plan = gn.plan(SCHEMA, [("sex",)], RHO, over=gn.streams.Ticks(2))
    entry = {"attributes": ["sex"], "file": "tables/1-way.parquet/part-0.parquet", "first_row": 0}
    (place,) = places_in({"period": [entry]}, "period", plan).values()
    assert place.first_row == 0
    for first_row in (-1, 0.0, True, None):
        with pytest.raises(ValueError):  # noqa: PT011 (its reader names the folder)
            places_in({"period": [entry | {"first_row": first_row}]}, "period", plan)
