"""Forgeries that agree with their digests: both programs refuse each, or say what it may hide."""

import hashlib
import json
import re
import warnings
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from browser import as_texts, node_lines
from changed import Copy

import gaussnoise as gn
from gaussnoise import verifier

pytestmark = pytest.mark.usefixtures("quick_pictures")

SCHEMA = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("region", ["N", "S", "W"])])
ASKED = [{"sex": "identity", "region": "prefix"}, {"region": "identity"}]
RHO = gn.zCDP(0.1)
WIDE = gn.Schema([gn.Attribute(f"a{k}", ["0", "1"]) for k in range(46)])  # 1035 pairs


def people(rng, n=300):
    named = {a.name: rng.choice(a.labels, n) for a in (*SCHEMA.attributes, *WIDE.attributes)}
    return pa.table(named | {"id": rng.integers(0, 90, n)})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A release, a workbook, a long list, a combination, changes with releases, and a stream."""
    at, table = tmp_path_factory.mktemp("folders"), people(np.random.default_rng(2))
    one = gn.plan(SCHEMA, 2, RHO).release(table, out=at / "release")
    gn.plan(SCHEMA, 2, gn.zCDP(0.001)).release(table, out=at / "weak")
    gn.plan(SCHEMA, ASKED, RHO).release(table, out=at / "workbook", format="xlsx")
    gn.plan(WIDE, 2, RHO).release(table, out=at / "wide", format="parquet")
    other = gn.plan(SCHEMA, 2, RHO).release(table, out=at / "other")
    gn.combine([one, other]).save(at / "combined")
    gn.difference(one, other).save(at / "changes")
    options = {"neighbors": "replace", "rows_per_person": 2, "over": gn.streams.Ticks(3, reports=2)}
    stream = gn.plan(SCHEMA, 2, RHO, **options).start(at / "stream")
    stream.tick(table, number=1)
    return {path.name: path for path in at.iterdir()}


def both(copy):
    """The lines of both programs."""
    return verifier.verified(copy.at), node_lines([as_texts(copy.at)])[0]


def refused(copy, words=""):
    """Check that both programs refuse a folder, the first one with these words."""
    ours, theirs = both(copy)
    assert [lines[0].split()[0] for lines in (ours, theirs)] == ["FAILED:"] * 2, (ours, theirs)
    assert words in ours[0], ours


def changed_record(copy, name="release.json", **fields):
    """Write fields of a record; None removes a field."""
    record = copy.read(name) | fields
    kept = {key: value for key, value in record.items() if key not in fields or value is not None}
    copy.write_record(kept, name)


@pytest.mark.parametrize("name", ["release", "workbook", "wide", "combined", "changes", "stream"])
def test_they_pass_as_they_were_written(name, folders, tmp_path):
    ours, theirs = both(Copy(folders[name], tmp_path / "copy"))
    assert (ours[0][:7], theirs[0][:7]) == ("checked", "checked")
    if name == "wide":  # the lists are read, and their numbers are checked
        assert any(line.startswith("checked    gamma_lower") for line in ours)
        assert any(line.startswith("checked    gamma_lower") for line in theirs)


@pytest.mark.parametrize("key", ["domain", "person", "neighbors", "measurements", "private"])
def test_a_record_that_leaves_something_out_is_refused(key, folders, tmp_path):
    copy = Copy(folders["release"], tmp_path / "copy")
    changed_record(copy, **{key: None})
    refused(copy)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rows_per_person": 3},
        {"person": "id"},
        {"person": "id", "neighbors": "replace"},
        {"neighbors": "replace"},
        {"neighbors": "replace", "rows_per_person": 2},
        {"neighbors": "replace", "public": "sex"},
        {"neighbors": "replace", "public": ("region", "sex"), "rows_per_person": 2},
    ],
)
def test_which_data_are_neighbours_is_checked_to_the_last_word(options, tmp_path):
    plan = gn.plan(SCHEMA, [("sex",), ("sex", "region")], RHO, **options)
    plan.release(people(np.random.default_rng(3)), out=tmp_path / "own")
    copy = Copy(tmp_path / "own", tmp_path / "copy")
    assert [lines[0][:7] for lines in both(copy)] == ["checked", "checked"]
    said = copy.record["neighbors_meaning"]
    for word, other in (("private", "public"), ("and exact", "and private"), ("one ", "any ")):
        if word in said:
            changed_record(copy, neighbors_meaning=said.replace(word, other))
            refused(copy, "neighbors_meaning is not")


def test_a_combination_without_its_rho_is_refused(folders, tmp_path):
    copy = Copy(folders["combined"], tmp_path / "copy")
    copy.write_record(copy.record | {"rho": None})
    refused(copy)


def test_a_number_as_a_text_is_refused(folders, tmp_path):
    copy = Copy(folders["release"], tmp_path / "copy")
    record = copy.record
    record["noise"]["sigma"] = repr(record["noise"]["sigma"])
    copy.write_record(record)
    refused(copy, "a number was expected")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("changes", "release.json"),
        ("stream", "ticks/0001/changes.json"),
        ("stream", "ticks/0001/signature.json/rows.csv"),
        ("stream", "signature.json/rows.csv"),
        ("release", "signature.json/rows.csv"),
    ],
)
def test_a_file_that_no_record_lists_is_refused(kind, name, folders, tmp_path):
    """Also under the name of a record, or of a signature."""
    copy = Copy(folders[kind], tmp_path / "copy")
    (copy.at / name).parent.mkdir(exist_ok=True)
    (copy.at / name).write_text("{}", encoding="utf-8")
    refused(copy)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("wide", "marginals.jsonl"),
        ("wide", "measurements.jsonl"),
        ("release", "summary.txt"),
        ("combined", "releases/1-release/release.json"),
        ("stream", "ticks/0001/release.json"),
        ("stream", "ticks/0001/method.txt"),
    ],
)
def test_a_folder_without_one_of_its_files_is_refused(kind, name, folders, tmp_path):
    """That a check cannot be made is then no excuse: UNKNOWN is for folders of another kind."""
    copy = Copy(folders[kind], tmp_path / "copy")
    (copy.at / name).unlink()
    refused(copy)
    nothing = Copy(folders[kind], tmp_path / "nothing")
    for path in (p for p in nothing.at.iterdir() if p.is_file()):
        path.unlink()
    assert [lines[0].split()[0] for lines in both(nothing)] == ["UNKNOWN:"] * 2


def test_tables_in_another_order_than_the_workload_are_refused(folders, tmp_path):
    """Or listed twice."""
    copy = Copy(folders["workbook"], tmp_path / "copy")
    listed = copy.record["marginals"]
    for entries in (listed[::-1], [*listed, listed[0]]):
        changed_record(copy, marginals=entries)
        refused(copy, "the workload asks for other tables")


@pytest.mark.parametrize("name", ["verifier/rows.csv", "verifier/more/rows.csv"])
def test_a_file_beside_a_copy_of_the_verifier_is_named(name, folders, tmp_path):
    copy = Copy(folders["release"], tmp_path / "copy")
    (copy.at / name).parent.mkdir(parents=True)
    copy.write(name, b"sex,region\nF,N\n")
    ours, theirs = both(copy)
    assert any("or has other files" in line for line in ours)
    assert f"unchecked  {name}" in theirs


def test_tables_of_less_budget_under_the_record_of_more_are_refused(folders, tmp_path):
    copy = Copy(folders["release"], tmp_path / "copy")
    for entry in copy.record["marginals"]:
        copy.write(entry["file"], (folders["weak"] / entry["file"]).read_bytes())
    refused(copy, "standard deviation")


def test_a_stream_of_exchanged_persons_is_refused(folders, tmp_path):
    """Its record and the digest of its request agree: a person may leave and another one come."""
    copy, whole = Copy(folders["stream"], tmp_path / "copy"), hashlib.sha256()
    ticks = copy.read("stream.json")["ticks"]
    unit = "one person (column 'id'), of whom at most 2 rows are counted in each of at most 2 ticks"
    part = "one person with any number of rows exchanged for as many others in each of at most 2"
    for name in ("stream.json", "ticks/0001/release.json"):
        record = copy.read(name)
        record |= {"person": "id", "privacy_unit": unit, "participation": f"{part} ticks"}
        if plan := record.get("plan"):
            plan["person"] = "id"
            request = {"person": "id", "schema": plan["schema"], "marginals": [[0, 1]]}
            request |= {"weights": ["1"], "p": plan["p"], "neighbors": "replace", "rho": "0.1"}
            request |= {"rows_per_person": 2, "ticks": ticks}
            whole.update(json.dumps(request).encode())
            record["request_sha256"] = whole.hexdigest()
        copy.write_record(record, name)
    refused(copy, "exchanged persons")


# ---- Lists in files
def without_a_table(lines):
    return lines[:-1]


def with_another_deviation(lines):
    return [lines[0].replace('"standard_deviation": ', '"standard_deviation": 1'), *lines[1:]]


def with_an_infinite_deviation(lines):
    return [re.sub(r'("standard_deviation": )[^,}]+', r"\1Infinity", lines[0]), *lines[1:]]


def with_an_empty_line(lines):
    return [lines[0], "\n", *lines[1:]]


def with_another_end_of_a_line(lines):
    return [lines[0].replace("\n", "\r"), *lines[1:]]


def with_a_list_in_place_of_a_table(lines):
    return ["[]\n", *lines[1:]]


def with_another_multiplier(lines):
    return [*lines[:-1], lines[-1].replace('"multiplier": "', '"multiplier": "1')]


@pytest.mark.parametrize(
    ("name", "lie", "words"),
    [
        ("marginals", without_a_table, "the number of marginals"),
        ("marginals", with_another_deviation, "the deviation stated"),
        ("marginals", with_an_infinite_deviation, "a number was expected"),
        ("marginals", with_an_empty_line, ""),
        ("marginals", with_another_end_of_a_line, ""),
        ("marginals", with_a_list_in_place_of_a_table, ""),
        ("measurements", without_a_table, "the number of measurements"),
        ("measurements", with_another_multiplier, "the squared sensitivity"),
    ],
)
def test_a_list_in_a_file_that_does_not_agree_is_refused(name, lie, words, folders, tmp_path):
    copy = Copy(folders["wide"], tmp_path / "copy")
    lines = (copy.at / f"{name}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    assert lie(lines) != lines
    copy.write(f"{name}.jsonl", "".join(lie(lines)).encode())
    refused(copy, words)


def test_a_shorter_list_whose_number_agrees_is_refused(folders, tmp_path):
    copy = Copy(folders["wide"], tmp_path / "copy")
    lines = (copy.at / "measurements.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    copy.write("measurements.jsonl", "".join(lines[:-1]).encode())
    record = copy.record
    record["measurements"]["count"] -= 1
    copy.write_record(record)
    refused(copy, "measured sets")


# ---- Workbooks: what a reader sees is what is checked
SHEET, LINKS = "xl/worksheets/sheet2.xml", "xl/_rels/workbook.xml.rels"


def with_parts(copy, change):
    """Write the parts of the workbook anew, {name: content} after a change, with its digest."""
    name = "tables/tables.xlsx"
    with zipfile.ZipFile(copy.at / name) as book:
        parts = [(own, book.read(own)) for own in book.namelist()]
    with warnings.catch_warnings(), zipfile.ZipFile(copy.at / name, "w") as book:
        warnings.simplefilter("ignore")  # of a part twice
        for own, content in change(dict(parts)):
            book.writestr(own, content)
    copy.write(name, (copy.at / name).read_bytes())


def in_the_sheet(pattern, text):
    """A change of the first sheet with a table."""

    def change(parts):
        found = re.sub(pattern.encode(), text.encode(), parts[SHEET], count=1)
        assert found != parts[SHEET]
        return (parts | {SHEET: found}).items()

    return change


def a_part_twice(parts):
    return [(SHEET, parts[SHEET].replace(b"<v>", b"<v>9")), *parts.items()]


def another_sheet_behind_its_name(parts):
    links = parts[LINKS].replace(b"worksheets/sheet2.xml", b"worksheets/sheet9.xml")
    false = parts[SHEET].replace(b"<v>", b"<v>9")
    return (parts | {LINKS: links, "xl/worksheets/sheet9.xml": false}).items()


def sheets_exchanged(parts):
    links = parts[LINKS].replace(b"sheet2.xml", b"sheet0.xml").replace(b"sheet3.xml", b"sheet2.xml")
    return (parts | {LINKS: links.replace(b"sheet0.xml", b"sheet3.xml")}).items()


def another_kind_of_part(parts):
    return (parts | {"xl/sharedStrings.xml": b"<sst/>"}).items()


BOOKS = {
    "as written": lambda parts: parts.items(),
    "a part twice": a_part_twice,
    "another sheet behind its name": another_sheet_behind_its_name,
    "sheets exchanged": sheets_exchanged,
    "another kind of part": another_kind_of_part,
    "a hidden row": in_the_sheet('<row r="3">', '<row r="3" hidden="1">'),
    "a row twice": in_the_sheet('(<row r="3">.*?</row>)', r"\1\1"),
    "a row as a total": in_the_sheet('<row r="2">', '<row r="2" s="7" customFormat="1">'),
    "cells exchanged": in_the_sheet(r'<c r="C3"(.*?)<c r="D3"', r'<c r="D3"\1<c r="C3"'),
    "a formula": in_the_sheet("<v>", "<f>1+1</f><v>"),
    "a text in place of a number": in_the_sheet('<c r="C2" s="2">', '<c r="C2" s="2" t="s">'),
    "another digit": in_the_sheet(r"<v>(\d)", r"<v>1\1"),
    "another label": in_the_sheet(">F</t>", ">M</t>"),
    "another mark": in_the_sheet(r'<c r="G2" s="0"/>', '<c r="G2" s="0"><v>1</v></c>'),
}


@pytest.mark.parametrize("kind", BOOKS)
def test_a_workbook_shows_what_is_checked(kind, folders, tmp_path):
    copy = Copy(folders["workbook"], tmp_path / "copy")
    with_parts(copy, BOOKS[kind])
    if kind == "as written":  # its parts are not compressed here
        assert [lines[0][:7] for lines in both(copy)] == ["checked"] * 2
    else:
        refused(copy)


def test_a_release_in_a_workbook_and_one_in_csv_have_the_same_checks(folders, tmp_path):
    """All lines agree but those about files, by both programs."""
    gn.TableRelease.load(folders["workbook"]).save(tmp_path / "csv", format="csv")
    for program in (0, 1):
        found = [
            [line for line in lines[program] if line.startswith("checked") and "files" not in line]
            for lines in (
                both(Copy(x, tmp_path / "a")) for x in (folders["workbook"], tmp_path / "csv")
            )
        ]
        assert len(found[0]) > 5
        assert found[0] == found[1]


def test_a_sensitivity_that_was_summed_in_floating_point_may_be_above_the_exact_one(tmp_path):
    """Two rows may differ in 2^15 sets of attributes, and the program adds a bound on rounding."""
    few, weights = gn.Schema(WIDE.attributes[:15]), [1 + k / 10 for k in range(15)]
    plan = gn.plan(few, 1, RHO, neighbors="replace", weights=weights)
    plan.release(people(np.random.default_rng(3)), out=tmp_path / "folder")
    copy = Copy(tmp_path / "folder", tmp_path / "copy")
    record, said = copy.record, both(copy)
    assert [lines[0].split()[0] for lines in said] == ["checked"] * 2, said
    exact = sum((2 * int(own["multiplier"])) ** 2 for own in record["measurements"])
    assert exact < record["noise"]["integer_sensitivity_squared"] < exact * (1 + 1e-8)
    record["noise"]["integer_sensitivity_squared"] = exact - 1
    copy.write_record(record)
    refused(copy, f"the squared sensitivity is {exact}")
