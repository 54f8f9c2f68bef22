import itertools
import json
import math
import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import gaussnoise as gn
from gaussnoise.tables import _store
from gaussnoise.tables._store import StoredTables, table_writer

LABELS = [[True, False], [3, 1, 2], ["x,y", 'q"', "", "a\nb"], list(range(300))]
SCHEMA = gn.Schema([gn.Attribute(name, labels) for name, labels in zip("abcd", LABELS, strict=True)])
SUBSETS = [S for k in (1, 2, 0, 3) for S in itertools.combinations(range(4), k)]


def estimates(subsets=SUBSETS):
    rng = np.random.default_rng(6)
    return {S: rng.normal(scale=1e5, size=[SCHEMA.sizes[i] for i in S]) for S in subsets}


def deviation(S):
    return 1.0 + len(S)


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(_store, "_ROWS_AT_ONCE", 50)


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize("most_files", [0, 1000])
@pytest.mark.parametrize("format", ["csv", "parquet"])
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
    for most, format in itertools.product((0, 1000), ("csv", "parquet")):
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
    """More than 1000 marginals."""
    schema = gn.Schema([gn.Attribute(f"v{i}", range(2)) for i in range(46)])
    table = pa.table({f"v{i}": np.random.default_rng(i).integers(2, size=50) for i in range(46)})
    plan = gn.plan(schema, 2, gn.zCDP(0.5))
    return plan.release(table, out=tmp_path / "out", **options), table


def test_a_release_of_many_marginals_is_one_dataset(tmp_path):
    release, table = wide_release(tmp_path, format="parquet")
    assert sorted(os.listdir(tmp_path / "out")) == [
        "marginals.parquet",
        "measurements.parquet",
        "release.json",
        "release.png",
        "summary.txt",
        "tables",
    ]
    record = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    assert record["marginals"] == {"file": "marginals.parquet", "count": 1035}
    index = parquet.read_table(tmp_path / "out" / "marginals.parquet").to_pylist()
    rows = parquet.read_table(tmp_path / "out" / "tables" / "2-way.parquet")
    for k in (0, 500, 1034):
        cells = rows.slice(index[k]["first_row"], index[k]["cells"])
        assert cells["marginal"].to_pylist() == [k + 1] * 4
        found = release[tuple(index[k]["attributes"])]
        assert cells["estimate"].to_pylist() == found.estimate.ravel().tolist()
        assert found.standard_deviation[0, 0] == pytest.approx(index[k]["standard_deviation"])
    measured = parquet.read_table(tmp_path / "out" / "measurements.parquet")
    assert len(measured) == len(release.query.multipliers) == 1 + 46 + 1035
    assert isinstance(release.tables, StoredTables)
    # the truth is within a few standard deviations: files and labels belong together
    truth = np.zeros((2, 2))
    np.add.at(truth, (table["v3"].to_numpy(), table["v40"].to_numpy()), 1)
    errors = (release["v3", "v40"].estimate - truth) / release["v3", "v40"].standard_deviation
    assert np.abs(errors).max() < 7


def test_saving_again_gives_the_same_tables(tmp_path):
    release, _ = wide_release(tmp_path, format="parquet")
    release.save(tmp_path / "again", format="parquet")
    first, second = (parquet.read_table(tmp_path / name / "tables" / "2-way.parquet") for name in ("out", "again"))
    assert first.sort_by("marginal")["estimate"].to_pylist() == second["estimate"].to_pylist()


def test_many_csv_files_are_refused_before_reading_data(tmp_path):
    with pytest.raises(gn.ParameterError, match=r"1000 marginals.*got 1035.*parquet"):
        wide_release(tmp_path)
    assert os.listdir(tmp_path) == []


def test_progress_counts_cells(tmp_path):
    seen = []
    wide_release(tmp_path, format="parquet", progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 1035
    assert [done for done, _ in seen] == list(range(4, 4 * 1035 + 1, 4))
    assert {total for _, total in seen} == {4 * 1035}


@pytest.mark.parametrize("progress", [5, "yes"])
def test_progress_is_a_callable(progress):
    plan = gn.plan(SCHEMA, 1, gn.zCDP(1))
    with pytest.raises(gn.ParameterError, match="progress"):
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


@pytest.mark.parametrize("format", ["csv", "parquet"])
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


def test_a_loaded_dataset(tmp_path):
    release, _ = wide_release(tmp_path, format="parquet")
    loaded = gn.TableRelease.load(tmp_path / "out", release.plan)
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
    with pytest.raises(gn.OutputError, match="another plan"):
        gn.TableRelease.load(folder, gn.plan(**asked))


def test_altered_files_are_noticed(small):
    plan, _, folder = small
    file = next((folder / "tables").iterdir())
    file.write_text(file.read_text(encoding="utf-8").replace("0", "1", 1), encoding="utf-8")
    with pytest.raises(gn.OutputError, match="sha256 differs"):
        gn.TableRelease.load(folder, plan)


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"format": 3}', "null"])
def test_incomplete_releases_are_refused(small, content):
    plan, _, folder = small
    (folder / "release.json").unlink()
    if content is not None:
        (folder / "release.json").write_text(content, encoding="utf-8")
    with pytest.raises(gn.OutputError, match=r"not a complete release|expected format"):
        gn.TableRelease.load(folder, plan)


def test_other_calibrations_are_not_mixed(small):
    plan, _, folder = small
    text = (folder / "release.json").read_text(encoding="utf-8")
    record = json.loads(text)
    record["noise"]["sigma"] *= 1.01
    (folder / "release.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(gn.OutputError, match="another version or machine"):
        gn.TableRelease.load(folder, plan)
