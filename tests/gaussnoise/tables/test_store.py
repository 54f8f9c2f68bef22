import hashlib
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import weakref
from typing import get_args

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import gaussnoise as gn
from gaussnoise.errors import (
    CertificateError,
    LedgerError,
    OutputError,
    ParameterError,
    StreamError,
)
from gaussnoise.files.disk import aside, digests_in, file_digest
from gaussnoise.privacy import ledger_results as _results
from gaussnoise.tables.release import files as _files
from gaussnoise.tables.release import record as _record
from gaussnoise.tables.release import store as _store
from gaussnoise.tables.release.formats import FORMATS, FileFormat
from gaussnoise.tables.release.formats import csv as formats_csv
from gaussnoise.tables.release.store import Place, StoredTables, read_index, table_writer

LABELS = [[True, False], [3, 1, 2], ["x,y", 'q"', "", "a\nb"], list(range(300))]
SCHEMA = gn.Schema(
    [gn.Attribute(name, labels) for name, labels in zip("abcd", LABELS, strict=True)]
)
SUBSETS = [S for k in (1, 2, 0, 3) for S in itertools.combinations(range(4), k)]


def estimates(subsets=SUBSETS):
    rng = np.random.default_rng(6)
    return {S: rng.normal(scale=1e5, size=[SCHEMA.sizes[i] for i in S]) for S in subsets}


def deviation(S):
    return 1.0 + len(S)


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(_store, "_ROWS_AT_ONCE", 50)


def test_types_and_messages_name_every_format(tmp_path):
    assert get_args(FileFormat) == tuple(FORMATS)
    plan = gn.plan(SCHEMA, [("a",)], gn.zCDP(0.5))
    known = " or ".join(f'"{name}"' for name in FORMATS)
    with pytest.raises(ParameterError, match=f"expected format {known}, got 'xml'"):
        plan.release(pa.table({"a": [True]}), out=tmp_path / "out", format="xml")


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("most_files", [0, 1000])
@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_in_any_order_is_read_back(monkeypatch, tmp_path, format, most_files):
    monkeypatch.setattr(_store, "MOST_FILES", most_files)
    tables = estimates()
    with table_writer(tmp_path, SCHEMA, SUBSETS, deviation, format) as writer:
        for S in sorted(tables, key=lambda S: (sum(S), S)):
            writer.write(S, tables[S])
    assert list(writer.tables) == SUBSETS
    for S, table in writer.tables.items():
        assert table.shape == tables[S].shape
        assert (table == tables[S]).all()


@pytest.mark.usefixtures("small_groups")
def test_a_dataset_names_every_cell(monkeypatch, tmp_path):
    monkeypatch.setattr(_store, "MOST_FILES", 0)
    tables = estimates()
    with table_writer(tmp_path, SCHEMA, SUBSETS, deviation, "parquet") as writer:
        for S in SUBSETS:
            writer.write(S, tables[S])
    assert sorted(os.listdir(tmp_path / "tables")) == [f"{k}-way.parquet" for k in range(4)]
    for k in range(4):
        rows = parquet.read_table(tmp_path / "tables" / f"{k}-way.parquet").to_pylist()
        expected = [
            (number, S, cell)
            for number, S in enumerate(SUBSETS, 1)
            if len(S) == k
            for cell in np.ndindex(*tables[S].shape)
        ]
        assert len(rows) == len(expected)
        for row, (number, S, cell) in zip(rows, expected, strict=True):
            assert row["marginal"] == number
            assert [row[f"attribute_{j + 1}"] for j in range(k)] == ["abcd"[i] for i in S]
            assert [row[f"label_{j + 1}"] for j in range(k)] == [
                str(LABELS[i][c]) for i, c in zip(S, cell, strict=True)
            ]
            assert row["estimate"] == tables[S][cell]
            assert row["standard_deviation"] == 1 + k
            assert row["high"] - row["low"] == pytest.approx(2 * 1.959963984540054 * (1 + k))


def test_a_table_of_many_row_groups(tmp_path):
    tables = estimates([(2, 3), (1, 2, 3)])
    for most, format in itertools.product((0, 1000), FORMATS):
        folder = tmp_path / f"{most}{format}"
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_store, "MOST_FILES", most)
            patch.setattr(_store, "_ROWS_AT_ONCE", 700)
            with table_writer(folder, SCHEMA, list(tables), deviation, format) as writer:
                for S, table in tables.items():
                    writer.write(S, table)
        assert all((found == tables[S]).all() for S, found in writer.tables.items())


def wide_release(tmp_path, **options):
    """Return a release of more than 1000 marginals."""
    schema = gn.Schema([gn.Attribute(f"v{i}", range(2)) for i in range(46)])
    table = pa.table({f"v{i}": np.random.default_rng(i).integers(2, size=50) for i in range(46)})
    plan = gn.plan(schema, 2, gn.zCDP(0.5))
    return plan.release(table, out=tmp_path / "out", **options), table


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Return such a release, its table and its folder, which tests only read."""
    place = tmp_path_factory.mktemp("wide")
    return *wide_release(place, format="parquet"), place / "out"


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_release_of_many_marginals_is_one_dataset(wide):
    release, table, folder = wide
    assert sorted(os.listdir(folder)) == [
        "ddi.xml",
        "marginals.jsonl",
        "measurements.jsonl",
        "method.txt",
        "release.json",
        "release.png",
        "summary.txt",
        "tables",
    ]
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert record["marginals"] == {"file": "marginals.jsonl", "count": 1035}
    index = lines_of(folder / "marginals.jsonl")
    rows = parquet.read_table(folder / "tables" / "2-way.parquet")
    for k in (0, 500, 1034):
        cells = rows.slice(index[k]["first_row"], index[k]["cells"])
        assert cells["marginal"].to_pylist() == [k + 1] * 4
        found = release[tuple(index[k]["attributes"])]
        assert cells["estimate"].to_pylist() == found.estimate.ravel().tolist()
        assert found.standard_deviation[0, 0] == pytest.approx(index[k]["standard_deviation"])
    measured = lines_of(folder / "measurements.jsonl")
    assert len(measured) == len(release.query.multipliers) == 1 + 46 + 1035
    assert isinstance(release.tables, StoredTables)
    # the truth is within a few standard deviations: files and labels belong together
    truth = np.zeros((2, 2))
    np.add.at(truth, (table["v3"].to_numpy(), table["v40"].to_numpy()), 1)
    errors = (release["v3", "v40"].estimate - truth) / release["v3", "v40"].standard_deviation
    assert np.abs(errors).max() < 7


def test_saving_again_gives_the_same_tables(wide, tmp_path):
    release, _, folder = wide
    release.save(tmp_path / "again", format="parquet")
    first, second = (
        parquet.read_table(out / "tables" / "2-way.parquet") for out in (folder, tmp_path / "again")
    )
    assert first.sort_by("marginal")["estimate"].to_pylist() == second["estimate"].to_pylist()


def test_many_csv_files_are_refused_before_reading_data(tmp_path):
    with pytest.raises(ParameterError, match=r"1000 marginals.*got 1035.*parquet"):
        wide_release(tmp_path)
    assert os.listdir(tmp_path) == []


def test_progress_counts_cells(tmp_path):
    seen = []
    wide_release(
        tmp_path, format="parquet", progress=lambda done, total: seen.append((done, total))
    )
    assert len(seen) == 1035
    assert [done for done, _ in seen] == list(range(4, 4 * 1035 + 1, 4))
    assert {total for _, total in seen} == {4 * 1035}


@pytest.mark.parametrize("progress", [5, "yes"])
def test_progress_is_a_callable(progress):
    plan = gn.plan(SCHEMA, 1, gn.zCDP(1))
    with pytest.raises(ParameterError, match="progress"):
        plan.release(pa.table({"a": [True], "b": [1], "c": [""], "d": [0]}), progress=progress)


def test_a_bar_is_drawn_on_the_error_stream(capsys):
    plan = gn.plan(SCHEMA, 1, gn.zCDP(1))
    plan.release(pa.table({"a": [True], "b": [1], "c": [""], "d": [0]}), progress=True)
    assert capsys.readouterr().out == ""


def test_releases_in_files_keep_working_where_they_are_needed(tmp_path):
    plan = gn.plan(SCHEMA, [("a", "b"), ("c",)], gn.zCDP(0.5))
    release = plan.release(pa.table({"a": [True], "b": [1], "c": [""]}), out=tmp_path / "out")
    assert release["b"].estimate == pytest.approx(release["a", "b"].estimate.sum(axis=0))
    assert len(list(release.measurements())) == 5
    assert release.contrast({"c": [1, 1, 1, 1], (): -1}).estimate == pytest.approx(0, abs=1e-9)


# Reading back.


@pytest.fixture
def small(tmp_path):
    plan = gn.plan(SCHEMA, [("a", "b"), ("c",)], gn.zCDP(0.5))
    table = pa.table({"a": [True, False], "b": [1, 3], "c": ["", "x,y"]})
    return plan, plan.release(table, out=tmp_path / "out"), tmp_path / "out"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_a_release_is_loaded_with_all_it_can_answer(tmp_path, format, neighbors):
    def planned():
        return gn.plan(SCHEMA, [("b", "a"), ("c",)], gn.zCDP(0.5), neighbors=neighbors)

    table = pa.table({"a": [True, False], "b": [1, 3], "c": ["", "x,y"]})
    release = planned().release(table, out=tmp_path / "out", format=format)
    loaded = gn.TableRelease.load(tmp_path / "out", planned())
    assert loaded.private
    assert loaded.rho_charged == release.rho_charged
    for names in [("b", "a"), ("a", "b"), "c", "a", ()]:
        assert (loaded[names].estimate == release[names].estimate).all()
        assert (loaded[names].standard_deviation == release[names].standard_deviation).all()
    weights = {("a", "b"): np.arange(6.0).reshape(2, 3), "c": [1, 0, 0, -1]}
    assert loaded.contrast(weights) == release.contrast(weights)
    assert type(loaded["c"].to_frame()) is pa.Table


def test_a_loaded_dataset(wide):
    release, _, folder = wide
    loaded = gn.TableRelease.load(folder, release.plan)
    assert (loaded["v7", "v31"].estimate == release["v7", "v31"].estimate).all()


def test_a_loaded_simulation_is_not_private(tmp_path):
    plan = gn.plan(SCHEMA, 1, gn.zCDP(0.5))
    table = pa.table({"a": [True], "b": [1], "c": [""], "d": [0]})
    plan.simulate(table, np.random.default_rng(0)).save(tmp_path / "out")
    assert not gn.TableRelease.load(tmp_path / "out", plan).private


@pytest.mark.parametrize(
    "options",
    [
        {"privacy": gn.zCDP(0.4)},
        {"neighbors": "replace"},
        {"p": math.inf},
        {"weights": [1, 2]},
        {"rows_per_person": 2},
        {"workload": [("c",), ("a", "b")]},
        {"schema": gn.Schema([*SCHEMA.attributes[:3], gn.Attribute("d", range(299))])},
    ],
    ids=lambda options: next(iter(options)),
)
def test_another_plans_release_is_not_loaded(small, options):
    _, _, folder = small
    asked = {"schema": SCHEMA, "workload": [("a", "b"), ("c",)], "privacy": gn.zCDP(0.5)} | options
    with pytest.raises(OutputError, match="another plan"):
        gn.TableRelease.load(folder, gn.plan(**asked))


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="open files have no paths here")
def test_threads_of_pyarrow_hold_no_file_of_python(wide, monkeypatch):
    """A thread that lets go of such a file while Python ends aborts the process."""
    sources = []

    class Recorded(parquet.ParquetFile):
        def __init__(self, source, **options):
            sources.append(source)
            super().__init__(source, **options)

    monkeypatch.setattr(parquet, "ParquetFile", Recorded)
    release, _, folder = wide
    assert gn.TableRelease.load(folder, release.plan)["v7", "v31"].estimate.shape == (2, 2)
    assert {type(source) for source in sources} == {pa.OSFile}


def test_altered_files_are_noticed(small):
    plan, _, folder = small
    file = next((folder / "tables").iterdir())
    file.write_text(file.read_text(encoding="utf-8").replace("0", "1", 1), encoding="utf-8")
    with pytest.raises(OutputError, match="sha256 differs"):
        gn.TableRelease.load(folder, plan)


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"format": 3}', "null"])
def test_incomplete_releases_are_refused(small, content):
    plan, _, folder = small
    (folder / "release.json").unlink()
    if content is not None:
        (folder / "release.json").write_text(content, encoding="utf-8")
    with pytest.raises(OutputError, match=r"not a complete release|expected format"):
        gn.TableRelease.load(folder, plan)


def test_other_calibrations_are_not_mixed(small):
    plan, _, folder = small
    text = (folder / "release.json").read_text(encoding="utf-8")
    record = json.loads(text)
    record["noise"]["sigma"] *= 1.01
    (folder / "release.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(OutputError, match="another version or machine"):
        gn.TableRelease.load(folder, plan)


# The folder as a whole: every file has a digest, none is added, none is outside


def record_of(folder):
    return json.loads((folder / "release.json").read_text(encoding="utf-8"))


def rewritten(folder, **changes):
    (folder / "release.json").write_text(json.dumps(record_of(folder) | changes), encoding="utf-8")


def test_the_record_lists_every_file(small):
    _, _, folder = small
    files = record_of(folder)["files"]
    assert {"summary.txt", "release.png"} < set(files)
    assert {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    } == {
        *files,
        "release.json",
    }
    for name, sha256 in files.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha256


def link_to_a_twin(path):
    path.rename(path.parent.parent / "twin")
    path.symlink_to(path.parent.parent / "twin")


def link_to_a_twin_folder(path):
    (path / "tables").rename(path.parent / "twin")
    (path / "tables").symlink_to(path.parent / "twin")


TAMPERING = {
    "a changed summary": lambda folder: (folder / "summary.txt").write_text("nothing"),
    "a changed picture": lambda folder: (folder / "release.png").write_bytes(b""),
    "a missing picture": lambda folder: (folder / "release.png").unlink(),
    "an added file": lambda folder: (folder / "README").write_text("trust me"),
    "an added table": lambda folder: (folder / "tables" / "9-a.csv").write_text("estimate\n1\n"),
    "an added hidden file": lambda folder: (folder / "tables" / ".x").touch(),
    "an added folder": lambda folder: ((folder / "more").mkdir(), (folder / "more" / "x").touch()),
    "an added link": lambda folder: (folder / "x").symlink_to("/etc/passwd"),
    "an added pipe": lambda folder: os.mkfifo(folder / "x"),
    "a link to the same bytes": lambda folder: link_to_a_twin(folder / "summary.txt"),
    "a link to the same record": lambda folder: link_to_a_twin(folder / "release.json"),
    "a linked folder": link_to_a_twin_folder,
}


@pytest.mark.parametrize("kind", TAMPERING)
def test_nothing_in_the_folder_can_be_changed_or_added(small, kind):
    plan, _, folder = small
    gn.TableRelease.load(folder, plan)
    TAMPERING[kind](folder)
    with pytest.raises(OutputError, match="load: in"):
        gn.TableRelease.load(folder, plan)


@pytest.mark.parametrize("kind", TAMPERING)
def test_nothing_under_a_ledger_can_be_changed_or_added(tmp_path, kind):
    plan = gn.plan(SCHEMA, [("a", "b"), ("c",)], gn.zCDP(0.5))
    table, ledger = (
        pa.table({"a": [True], "b": [1], "c": [""]}),
        gn.Ledger.create(tmp_path / "l", gn.zCDP(1.0)),
    )

    def ask():
        return plan.release(table, out=tmp_path / "out", ledger=ledger, id="x")

    assert (ask()["c"].estimate == ask()["c"].estimate).all()
    TAMPERING[kind](tmp_path / "out")
    with pytest.raises(LedgerError, match="was changed"):
        ask()


def outside(folder, name):
    """Put the record of another table under a name outside, with its true sha256."""
    record = record_of(folder)
    elsewhere = folder.parent / "elsewhere.csv"
    old = record["marginals"][0]["file"]
    elsewhere.write_bytes((folder / old).read_bytes())
    record["marginals"][0]["file"] = name
    record["files"][name] = record["files"][old]
    return {"marginals": record["marginals"], "files": record["files"]}


@pytest.mark.parametrize(
    "name",
    ["../elsewhere.csv", "tables/../../elsewhere.csv", "{}/elsewhere.csv", "tables/link.csv"],
)
@pytest.mark.parametrize("format", ["gaussnoise.tables/3", "gaussnoise.tables/2"])
def test_files_outside_the_folder_are_not_read(small, name, format):
    plan, _, folder = small
    changes = outside(folder, name.format(folder.parent))
    if "link" in name:
        (folder / name).symlink_to(folder.parent / "elsewhere.csv")
    rewritten(folder, format=format, **changes)
    with pytest.raises(OutputError, match=r"load: in|not a complete release"):
        gn.TableRelease.load(folder, plan)


def test_a_listed_table_is_not_read_from_elsewhere(small):
    plan, _, folder = small
    changes = outside(folder, "../elsewhere.csv")
    rewritten(folder, marginals=changes["marginals"])
    with pytest.raises(OutputError, match=r"expected 'tables/1-a-by-b.csv', got '../elsewhere"):
        gn.TableRelease.load(folder, plan)


def exchanged(folder, *lists):
    """Exchange where the first two tables are, which have equally many cells and the same noise."""
    record = record_of(folder)
    for one, two in (record[name][:2] for name in lists):
        for key in ("file", "first_row"):
            one[key], two[key] = two[key], one[key]
    rewritten(folder, **{name: record[name] for name in lists})


PAIR = gn.Schema([gn.Attribute(name, ["x", "y"]) for name in ("a", "b", "c")])
ROWS = pa.table({"a": ["x", "y"], "b": ["x", "x"], "c": ["y", "y"]})


@pytest.mark.parametrize("format", FORMATS)
def test_tables_whose_entries_are_exchanged_are_refused(tmp_path, format):
    plan = gn.plan(PAIR, [("a",), ("b",)], gn.zCDP(0.5))
    releases = [plan.release(ROWS, out=tmp_path / f"{k}", format=format) for k in range(2)]
    gn.combine(releases).save(tmp_path / "both", format=format)
    series = gn.plan(PAIR, [("a",), ("b",)], gn.zCDP(0.5), over=gn.streams.Ticks(2))
    series.start(tmp_path / "stream", format=format).tick(ROWS, number=1)
    for name in ("0", "both"):
        gn.TableRelease.load(tmp_path / name)
        exchanged(tmp_path / name, "marginals")
        with pytest.raises(OutputError, match=r"does not follow from its plan: 'marginals\.0"):
            gn.TableRelease.load(tmp_path / name)
    exchanged(tmp_path / "stream" / "ticks" / "0001", "period", "cumulative")
    again = gn.streams.Stream.open(tmp_path / "stream")
    with pytest.raises(StreamError, match=r"does not follow from its plan: 'cumulative\.0"):
        again.tables.period(1)


def test_rows_of_executors_name_the_table_that_is_stated_for_them(monkeypatch, tmp_path):
    """However few tables there are; one that is exchanged has rows of another name."""
    subsets, tables = [(0,), (2,), (3,)], estimates()
    monkeypatch.setattr(_store, "MOST_FILES", 0)
    with table_writer(tmp_path, SCHEMA, subsets, deviation, "parquet") as writer:
        for S in subsets:
            writer.write(S, tables[S])
    monkeypatch.undo()
    part = tmp_path / "tables" / "1-way" / "part-000000.parquet"
    part.parent.mkdir()
    (tmp_path / "tables" / "1-way.parquet").rename(part)
    name, written = part.relative_to(tmp_path).as_posix(), writer.tables.places
    places = {S: Place(name, own.first_row, own.shape) for S, own in written.items()}
    assert StoredTables(tmp_path, places).fault(deviation) is None
    one, two, _ = places
    places[one], places[two] = places[two], places[one]
    assert "another table" in StoredTables(tmp_path, places).fault(deviation)


ENTRY = '{"attributes": ["a"], "file": "x", "first_row": 0}\n'


@pytest.mark.parametrize(
    "text",
    ["", "[]\n", ENTRY.replace("x", "x" * 200), "{" + ENTRY, ENTRY * 2],
)
def test_a_list_of_tables_that_is_not_as_expected_is_refused(text, tmp_path):
    """Too short, no object, too long a line, no JSON, or a line too many."""
    path = tmp_path / "marginals.jsonl"
    path.write_text(ENTRY, encoding="utf-8")
    assert [entry["file"] for entry in read_index(path, 1, 100)] == ["x"]
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OutputError):
        read_index(path, 1, 100)


def of_the_next_table(entry, after):
    return entry | {"first_row": after["first_row"]}


def of_half_the_noise(entry, _):
    return entry | {"standard_deviation": entry["standard_deviation"] / 2}


def of_another_multiplier(entry, _):
    return entry | {"multiplier": entry["multiplier"] + "0"}


def without_a_place(entry, _):
    return {key: value for key, value in entry.items() if key != "first_row"}


def with_more(entry, _):
    return entry | {"comment": "x"}


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("marginals", of_the_next_table, "has another table where the record says"),
        ("marginals", of_half_the_noise, r"'marginals.jsonl' does not follow from its plan"),
        ("marginals", without_a_place, "not a complete release"),
        ("marginals", with_more, r"'marginals.jsonl' does not follow from its plan"),
        ("measurements", of_another_multiplier, r"'measurements.jsonl' does not follow"),
        ("measurements", with_more, r"'measurements.jsonl' does not follow"),
    ],
)
def test_a_list_in_a_file_agrees_with_the_plan(name, change, words, wide, tmp_path):
    folder = shutil.copytree(wide[2], tmp_path / "out")
    path = folder / f"{name}.jsonl"
    entries = lines_of(path)
    entries[1] = change(entries[1], entries[2])
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries), encoding="utf-8")
    files = record_of(folder)["files"] | {path.name: file_digest(path)}
    rewritten(folder, files=files)
    with pytest.raises(OutputError, match=words):
        gn.TableRelease.load(folder)


def test_an_index_outside_the_folder_is_not_read(wide, tmp_path):
    release, _, whole = wide
    folder = shutil.copytree(whole, tmp_path / "out")
    (tmp_path / "marginals.jsonl").write_bytes((folder / "marginals.jsonl").read_bytes())
    rewritten(folder, marginals={"file": "../marginals.jsonl", "count": 1035})
    with pytest.raises(OutputError, match="not a complete release"):
        gn.TableRelease.load(folder, release.plan)


@pytest.mark.parametrize("under", ["no ledger", "a ledger"])
def test_releases_of_the_format_before_are_read(tmp_path, monkeypatch, under):
    """That format lists the files of tables only."""
    plan = gn.plan(SCHEMA, [("a", "b"), ("c",)], gn.zCDP(0.5))
    table, ledger = (
        pa.table({"a": [True], "b": [1], "c": [""]}),
        gn.Ledger.create(tmp_path / "l", gn.zCDP(1.0)),
    )
    monkeypatch.setattr(_record, "FORMAT", "gaussnoise.tables/2")
    tables_only = {".csv", ".parquet"}
    monkeypatch.setattr(
        _files,
        "digests_in",
        lambda folder, known: {
            name: d
            for name, d in digests_in(folder, known).items()
            if name[name.rfind(".") :] in tables_only
        },
    )
    options = {"ledger": ledger, "id": "x"} if under == "a ledger" else {}
    release = plan.release(table, out=tmp_path / "out", **options)
    assert set(record_of(tmp_path / "out")["files"]) < set(digests_in(tmp_path / "out"))
    monkeypatch.undo()
    (tmp_path / "out" / "notes").touch()
    loaded = gn.TableRelease.load(tmp_path / "out", plan)
    assert (loaded["c"].estimate == release["c"].estimate).all()
    if options:
        again = plan.release(table, out=tmp_path / "out", **options)
        assert (again["c"].estimate == release["c"].estimate).all()
    (tmp_path / "out" / "tables").rename(tmp_path / "tables")
    (tmp_path / "out" / "tables").symlink_to(tmp_path / "tables")
    with pytest.raises(OutputError, match="no file inside"):
        gn.TableRelease.load(tmp_path / "out", plan)


# Files that another program wrote


def records_of_others(record):
    """Yield records with values of other kinds, or with missing values."""
    names = [*record, ("noise", "sigma"), ("marginals", 0, "file"), ("marginals", 0, "first_row")]
    for path in names:
        for value in (None, 3, -1, "x", [], {}, [[]], {"file": 3}, 1e400, True):
            changed = json.loads(json.dumps(record))
            *outer, last = path if isinstance(path, tuple) else (path,)
            place = changed
            for step in outer:
                place = place[step]
            place[last] = value
            yield changed
    for name in record:
        yield {other: value for other, value in record.items() if other != name}


def test_records_of_others_end_in_a_typed_error(small):
    plan, release, folder = small
    loaded = 0
    for record in records_of_others(record_of(folder)):
        (folder / "release.json").write_text(json.dumps(record), encoding="utf-8")
        try:
            found = gn.TableRelease.load(folder, plan)
        except gn.GaussNoiseError as error:
            assert isinstance(error, OutputError)  # noqa: PT017
            continue
        loaded += 1  # the change affects what is printed only, and no result
        assert (found["c"].estimate == release["c"].estimate).all()
        assert isinstance(found.private, bool)
    assert loaded


DEEP = "[" * 100_000 + "]" * 100_000


def test_deep_and_endless_records_are_refused(small, tmp_path):
    plan, _, folder = small
    (folder / "release.json").write_text(DEEP, encoding="utf-8")
    with pytest.raises(OutputError, match="not a complete release"):
        gn.TableRelease.load(folder, plan)
    os.truncate(folder / "release.json", 2**40)  # takes no disk space
    with pytest.raises(OutputError, match="not a complete release"):
        gn.TableRelease.load(folder, plan)
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(2)))
    mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.5), n=3)
    saved = tmp_path / "saved.json"
    mechanism.release(counts=[1, 2]).save(saved)
    sound = json.loads(saved.read_text())
    bad = [
        sound | {"estimate": value}
        for value in (10**400, [10**400, 1], [[1, 2], 3], {"a": 1}, "x", None)
    ]
    bad += [sound | {"private": value} for value in ("false", None, 1)] + [sound | {"privacy": 3}]
    texts = [DEEP, '{"format": ' + DEEP + "}", *map(json.dumps, bad), "\udcff"]
    for text in texts:
        saved.write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(CertificateError, match=r"Release\.save|noise given"):
            gn.Release.load(saved, mechanism.covariance)
    os.truncate(saved, 2**40)
    with pytest.raises(CertificateError, match=r"Release\.save"):
        gn.Release.load(saved, mechanism.covariance)
    with pytest.raises(OutputError, match="cannot read"):
        gn.Release.load(tmp_path, mechanism.covariance)


def stored(path, shape=(3,), first_row=0):
    return StoredTables(path.parent, {(0,): Place(path.name, first_row, shape)})[0,]


@pytest.mark.parametrize(
    "content",
    [
        *(
            b"",
            b"PAR1",
            b"PAR1" * 100,
            b"estimate\n1\n2\nSECRET\n",
            b"estimate\n1\n2\n",
            b"estimate\n1\n2\n3\n4\n",
        ),
        *(b"a\n1\n", b"\xff\xfe\x00", b'estimate\n1\n"2\n3\n', b"estimate\n1,2\n2\n3\n"),
    ],
)
@pytest.mark.parametrize("suffix", FORMATS)
def test_damaged_tables_are_refused(tmp_path, content, suffix):
    path = tmp_path / f"t{FORMATS[suffix].ending}"
    path.write_bytes(content)
    with pytest.raises(OutputError, match="not the table that was released") as caught:
        stored(path)
    assert caught.value.__cause__ is None
    assert "SECRET" not in str(caught.value)
    path.unlink()
    with pytest.raises(OutputError, match="not the table that was released"):
        stored(path)


@pytest.mark.parametrize(
    "line",
    [
        *('{"estimate": "1"}', '{"estimate": true}', '{"estimate": null}', '{"estimate": NaN}'),
        *('{"estimate": 1e999}', '{"other": 1}', "[1]", "1", "[" * 10**5, '{"estimate": [1]}'),
        *("", '{"estimate": 1', '{"estimate": ' + "9" * 5000 + "}", '{"estimate": 1}x'),
        *('{"estimate": ' + "9" * 400 + "}", '{"estimate": 1, "a": "' + "x" * 2**24 + '"}'),
    ],
)
def test_foreign_lines_are_refused(tmp_path, line):
    good = b'{"estimate": 1.5}\n'
    (tmp_path / "t.jsonl").write_bytes(3 * good)
    assert stored(tmp_path / "t.jsonl").tolist() == [1.5] * 3
    (tmp_path / "t.jsonl").write_bytes(good + line.encode() + b"\n" + good)
    with pytest.raises(OutputError, match="not the table that was released"):
        stored(tmp_path / "t.jsonl")


def test_lines_are_rows_for_any_reader(tmp_path):
    plan = gn.plan(SCHEMA, [("a", "b")], gn.zCDP(0.5))
    table = pa.table({"a": [True, False], "b": [1, 3]})
    release = plan.release(table, out=tmp_path / "out", format="jsonl")
    (path,) = (tmp_path / "out" / "tables").iterdir()
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows == release["a", "b"].to_frame().to_pylist()


FOREIGN = {
    "integers": {"estimate": pa.array([1, 2, 3])},
    "texts": {"estimate": pa.array(["1", "2", "3"])},
    "lists": {"estimate": pa.array([[1.0], [2.0], [3.0]])},
    "nulls": {"estimate": pa.array([1.0, None, 3.0])},
    "too few": {"estimate": pa.array([1.0, 2.0])},
    "another column": {"other": pa.array([1.0, 2.0, 3.0])},
    "nested": {"estimate": pa.array([{"estimate": 1.0}] * 3)},
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_tables_are_refused(tmp_path, kind):
    parquet.write_table(pa.table(FOREIGN[kind]), tmp_path / "t.parquet")
    try:
        found = stored(tmp_path / "t.parquet")
    except OutputError:
        return
    assert kind == "nulls"  # nulls are read as NaN
    assert np.isnan(found[1])


def test_small_files_do_not_take_much_memory(tmp_path):
    asked = []

    def ask(path, call):
        assert path.stat().st_size < 2**21
        asked.append((str(path), call))

    def bomb(name, rows, compression, values):
        column = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(rows, np.int8)), pa.array(values)
        ).dictionary_decode()
        path = tmp_path / f"{len(asked)}.parquet"
        parquet.write_table(
            pa.table({name: column}), path, compression=compression, row_group_size=rows
        )
        return path

    table = "StoredTables(path.parent, {(0,): Place(path.name, 0, (3,))})[0,]"
    ask(bomb("estimate", 2**24, "snappy", [1.5]), table)
    ask(bomb("estimate", 2**22, "zstd", [1.5]), table)
    code = """
import json, pathlib, sys
import pyarrow as pa, pyarrow.parquet
from gaussnoise.errors import OutputError
from gaussnoise.tables.release.store import *
for path, call in json.loads(sys.argv[1]):
    path = pathlib.Path(path)
    try:
        eval(call)
    except OutputError:
        print(pa.default_memory_pool().max_memory())
"""
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(asked)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    most = [int(line) for line in done.stdout.split()]  # memory so far, after each step
    assert len(most) == len(asked)
    assert max(most) < 2**27, most


@pytest.mark.parametrize("rows", [2, 70_000])
def test_labels_of_several_lines_are_read_from_files_of_any_length(tmp_path, rows):
    schema = gn.Schema([gn.Attribute("a", [f'{k}\n\n{k},"' for k in range(rows)])])
    estimate = np.arange(rows) + 0.25
    with table_writer(tmp_path, schema, [(0,)], deviation, "csv") as writer:
        writer.write((0,), estimate)
    assert (writer.tables[0,] == estimate).all()


# Another user who may write beside the release

shared = pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="folders are held on Linux only"
)


@shared
@pytest.mark.parametrize("under", ["no ledger", "a ledger"])
@pytest.mark.parametrize("swapped", ["parent", "scratch", "target"])
def test_links_put_in_while_writing_lead_nowhere(tmp_path, under, swapped):
    plan = gn.plan(SCHEMA, [("a", "b"), ("c",)], gn.zCDP(0.5))
    table = pa.table({"a": [True], "b": [1], "c": [""]})
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(1.0))
    place, victim = tmp_path / "place", tmp_path / "victim"
    place.mkdir()
    victim.mkdir()

    def attack(done, total):
        if (tmp_path / "done").exists():
            return
        (tmp_path / "done").touch()
        if swapped == "parent":
            place.rename(tmp_path / "was")
            place.symlink_to(victim)
        elif swapped == "scratch":
            (scratch,) = place.glob(".*.partial")
            scratch.rename(tmp_path / "was")
            scratch.symlink_to(victim)
        else:
            (place / "out").symlink_to(victim)

    options = {"ledger": ledger, "id": "x"} if under == "a ledger" else {}
    try:
        plan.release(table, out=place / "out", progress=attack, **options)
        answered = True
    except (OutputError, LedgerError):
        answered = False
    assert (tmp_path / "done").exists()
    assert not list(victim.iterdir())
    assert answered == (swapped == "scratch" and under == "no ledger")
    if answered:
        gn.TableRelease.load(place / "out", plan)


@shared
def test_a_link_at_the_name_of_a_scratch_folder_is_not_followed(tmp_path, monkeypatch):
    """The names under a ledger are known in advance."""
    ledger, victim = gn.Ledger.create(tmp_path / "l", gn.zCDP(1.0)), tmp_path / "victim"
    victim.mkdir()

    def late(place, who):
        if place.name.endswith(".partial"):
            place.symlink_to(victim)

    monkeypatch.setattr(_results, "check_parent", late)
    mechanism = gn.GaussianMechanism(gn.optimal_noise(gn.FiniteSet(np.eye(2))), gn.zCDP(0.1), n=2)
    with pytest.raises(OutputError):
        mechanism.release(counts=[1, 1], ledger=ledger, id="x")
    assert not list(victim.iterdir())


@shared
def test_files_left_by_dead_programs_are_removed_at_the_next_write(tmp_path):
    code = (
        "import sys, os; from pathlib import Path; from gaussnoise.files.disk import aside\n"
        "with aside(Path(sys.argv[1])) as path:\n    path.write_text('drawn')\n"
        "    if sys.argv[2] == 'wait': print('ready', flush=True); sys.stdin.read()\n    else: "
        "os.kill(os.getpid(), 15)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "out")]
    assert subprocess.run([*command, "die"], check=False).returncode == -15
    (left,) = tmp_path.iterdir()
    (tmp_path / ".out.0123456789abcde.partial").touch()  # not a name of ours
    with subprocess.Popen([*command, "wait"], stdin=-1, stdout=-1, text=True) as living:
        assert living.stdout.readline() == "ready\n"
        assert not left.exists()
        with aside(tmp_path / "out") as path:
            path.write_text("mine")
        assert len(list(tmp_path.glob(".out.*.partial"))) == 2
        living.communicate("", timeout=60)
    assert living.returncode != 0  # taken
    assert (tmp_path / "out").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".out.0123456789abcde.partial",
        "out",
    ]


# A folder says how it was planned

AGES = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("age", edges=[0, 18, 65, 120], other="?", base="prefix"),
        gn.Attribute("k", [1, 2, 5], other="rest"),
    ]
)
PLAIN = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("k", [1, 2, 5])])
REQUESTS = {
    "all pairs": (PLAIN, 2, gn.zCDP(0.5), {}),
    "names": (PLAIN, ["k", (), ("k", "sex")], gn.ApproxDP(1, 1e-6), {"weights": [1, 0.1 + 0.2, 3]}),
    "the total": (PLAIN, 0, gn.KL(0.1), {}),
    "replaced": (PLAIN, 1, gn.GDP(1), {"neighbors": "replace", "rows_per_person": 3}),
    "largest": (PLAIN, 1, gn.privacy.TV(0.1), {"p": math.inf}),
    "some norm": (PLAIN, 1, gn.zCDP(1 / 3), {"p": 2.5}),
    "targets": (
        PLAIN,
        ["sex", "k"],
        None,
        {"targets": [50, gn.Target(20, 0.99, simultaneous=True)]},
    ),
    "targets and a budget": (PLAIN, ["sex", "k"], gn.zCDP(0.7), {"targets": {"sex": 50, "k": 20}}),
    "bases": (
        AGES,
        [
            ("sex", "age"),
            {"age": "identity"},
            {"k": {"kind": "moments"}},
            {"k": [[1, 0, -1, 0.1], [0, 1, 0, 0]]},
        ],
        gn.zCDP(0.5),
        {"weights": [1, 1, 2, 3]},
    ),
    "cells of attributes with bases": (AGES, [{"age": "identity", "sex": None}], gn.zCDP(0.5), {}),
    "bases of all": (AGES, 2, gn.zCDP(0.5), {"neighbors": "replace"}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_folder_is_read_back_without_its_plan(tmp_path, name):
    schema, workload, privacy, options = REQUESTS[name]
    plan = gn.plan(schema, workload, privacy, **options)
    table = pa.table({"sex": ["F", "M"], "age": [3.0, 70.0], "k": [1, 5]})
    release = plan.release(table, out=tmp_path / "out")
    loaded = gn.TableRelease.load(tmp_path / "out")
    assert loaded.plan.schema == schema
    assert loaded.plan.privacy == plan.privacy
    assert loaded.plan.targets == plan.targets
    assert loaded.plan.entries == plan.entries
    assert loaded.plan.rows_per_person == plan.rows_per_person
    assert loaded.plan.request_sha256 == plan.request_sha256
    assert list(loaded) == list(release)
    for marginal in release:
        assert (loaded[marginal].estimate == release[marginal].estimate).all()
        assert (loaded[marginal].standard_deviation == release[marginal].standard_deviation).all()
    assert loaded.rho_charged == release.rho_charged


def test_a_simulation_is_read_back_without_its_plan(tmp_path):
    table = pa.table({"sex": ["F"], "k": [1]})
    gn.plan(PLAIN, 1, gn.zCDP(0.5)).simulate(table, np.random.default_rng(0)).save(tmp_path / "out")
    assert not gn.TableRelease.load(tmp_path / "out").private


def edited(folder, change):
    path = folder / "release.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    path.write_text(json.dumps(record), encoding="utf-8")


def test_folders_of_earlier_versions_need_the_plan(small):
    plan, release, folder = small
    edited(folder, lambda record: record.pop("plan"))
    with pytest.raises(
        OutputError, match=r"does not say how it was planned.*hint: load\(directory, plan\)"
    ):
        gn.TableRelease.load(folder)
    assert (gn.TableRelease.load(folder, plan)["c"].estimate == release["c"].estimate).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"p": "1"},
            "cannot be planned again by this version: .*; hint: gaussnoise 0.1.0 wrote it",
        ),
        ({"workload": [["zz"]]}, "cannot be planned again by this version: no attribute 'zz'"),
        ({"workload": 7}, "cannot be planned again"),
        (
            {"privacy": {"definition": "Mine"}},
            "called 'Mine', this program has 0; hint: imp",
        ),
        ({"privacy": {"definition": "zCDP", "rho": 0.4}}, "another plan"),
        ({"schema": "oops"}, "cannot be planned again by this version: schema:1: not valid TOML"),
        ({"schema": 3}, "not a complete release"),
        ({"targets": 3}, "not a complete release"),
    ],
)
def test_plans_that_cannot_be_made_again_say_so(small, change, message):
    _, _, folder = small
    edited(folder, lambda record: record["plan"].update(change))
    with pytest.raises(OutputError, match=message):
        gn.TableRelease.load(folder)


@pytest.mark.parametrize("content", [None, "", "{}", "[]", "null"])
def test_incomplete_releases_are_refused_without_a_plan(small, content):
    _, _, folder = small
    (folder / "release.json").unlink()
    if content is not None:
        (folder / "release.json").write_text(content, encoding="utf-8")
    with pytest.raises(OutputError, match="not a complete release"):
        gn.TableRelease.load(folder)


def test_files_say_which_intervals_they_hold(small):
    _, release, folder = small
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert record["intervals"] == {"columns": ["low", "high"], "level": 0.95, "simultaneous": False}
    assert "low and high are the ends of 95 % intervals" in (folder / "summary.txt").read_text(
        encoding="utf-8"
    )
    place = next(entry for entry in record["marginals"] if entry["attributes"] == ["c"])
    rows = csv.read_csv(folder / place["file"]).to_pydict()
    high = release["c"].confidence_interval(record["intervals"]["level"]).high
    assert rows["high"] == pytest.approx(high.tolist())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rho", -1.5),
        ("rho", math.nan),
        ("rho", math.inf),
        ("rho", 0.25),
        ("rho", None),
        ("on_outside", "all"),
        ("on_outside", 3),
    ],
)
def test_a_record_that_says_something_else_of_the_release_is_refused(small, key, value):
    plan, _, folder = small
    rewritten(folder, **{key: value})
    with pytest.raises(OutputError):
        gn.TableRelease.load(folder, plan)


def test_no_thread_of_arrow_holds_a_csv_file_after_it_is_read(tmp_path, monkeypatch):
    """Python ends with an abort if such a thread gives the file back only then."""
    path, files = tmp_path / "t.csv", []
    path.write_text("sex,estimate\n" + "F,1.5\n" * 10, encoding="utf-8")

    def opened(path):
        file = path.open("rb")
        files.append(weakref.ref(file))
        return file

    monkeypatch.setattr(formats_csv, "opened", opened)
    for _ in range(300):
        assert formats_csv.columns_of(path, ["estimate"], 0, 10).tolist() == [[1.5] * 10]
    assert not any(file() for file in files)  # a fifth of them, without waiting
