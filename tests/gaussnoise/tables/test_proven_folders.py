"""A folder with its optimal noise: loading checks the proof instead of solving again.

References: the release in memory, number for number; the same folder without the file; folders
whose numbers, and all digests with them, were changed by a forger.
"""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.errors import GaussNoiseError, OutputError
from gaussnoise.files.archive import read_arrays, write_arrays
from gaussnoise.noise import file as _file
from gaussnoise.tables.planning import door

SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("age", edges=range(0, 90, 10), base="prefix"),
        gn.Attribute("hour", range(5), base="ranges"),
    ]
)
TABLE = pa.table({"sex": ["F", "M"] * 50, "age": list(range(50)) * 2, "hour": [0, 1, 2, 3, 4] * 20})
OPTIONS = {
    "add-remove": {},
    "largest": {"p": float("inf"), "weights": [1.0, 2.0, 3.0]},
    "replace": {"neighbors": "replace"},
    "public": {"neighbors": "replace", "public": "sex"},
    "persons": {"neighbors": "replace", "person": "id", "rows_per_person": 2},
}


def released(folder, **options):
    table = TABLE.append_column("id", [list(range(100))]) if "person" in options else TABLE
    rule = "drop" if "person" in options else "refuse"
    return gn.plan(SCHEMA, 2, gn.zCDP(0.5), **options).release(table, out=folder, on_outside=rule)


@pytest.fixture(scope="module")
def original(tmp_path_factory, quick_pictures):
    folder = tmp_path_factory.mktemp("proven") / "out"
    released(folder, neighbors="replace")
    return folder


@pytest.fixture
def folder(original, tmp_path):
    """A copy that tests change."""
    return Path(shutil.copytree(original, tmp_path / "out"))


@pytest.fixture
def unsolved(monkeypatch):
    """Nothing is solved in these tests."""

    def refuse(*arguments):
        raise AssertionError("solved again")

    monkeypatch.setattr(door, "noise_for_rows", refuse)


def changed(folder, change, files=()):
    """Change the record, with the digests of files that were changed before."""
    path = folder / "release.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    for name in files:
        record["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    path.write_text(json.dumps(record), encoding="utf-8")


@pytest.mark.parametrize("name", OPTIONS)
def test_a_loaded_release_has_the_numbers_of_the_one_in_memory(
    name, tmp_path, quick_pictures, monkeypatch
):
    release = released(tmp_path / "out", **OPTIONS[name])
    with monkeypatch.context() as patch:
        patch.setattr(door, "noise_for_rows", None)
        loaded = gn.TableRelease.load(tmp_path / "out")
    assert loaded.plan.bracket == release.plan.bracket
    assert loaded.query.query == release.query.query
    assert dict(loaded.query.multipliers) == dict(release.query.multipliers)
    assert str(loaded.plan) == str(release.plan)
    assert loaded.plan.request_sha256 == release.plan.request_sha256
    for names in [*release, ("age",), ()]:
        for field in ("estimate", "standard_deviation"):
            found, wanted = getattr(loaded[names], field), getattr(release[names], field)
            assert found == pytest.approx(wanted, rel=1e-14)
    assert loaded.plan.deviations == pytest.approx(release.plan.deviations, rel=1e-14)
    loaded.plan.noise.verify()


def test_plans_for_cells_and_for_targets_are_solved_again(tmp_path, quick_pictures):
    cells = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("hour", range(5))])
    gn.plan(cells, 2, gn.zCDP(0.5)).release(TABLE, out=tmp_path / "cells")
    assert not (tmp_path / "cells" / "noise.npz").exists()
    release = gn.plan(SCHEMA, 2, targets=30.0).release(TABLE, out=tmp_path / "targets")
    found = gn.TableRelease.load(tmp_path / "targets").plan
    assert found.deviations.tolist() == release.plan.deviations.tolist()


def test_folders_without_the_file_are_planned_again(folder):
    (folder / "noise.npz").unlink()
    changed(folder, lambda record: record["files"].pop("noise.npz"))
    gn.TableRelease.load(folder)


def test_noise_that_covers_the_set_and_not_its_differences_is_not_the_plans(folder):
    known = gn.TableRelease.load(folder).plan
    gn.gamma(known.domain, known.noise.p).save(folder / "noise.npz")
    changed(folder, lambda record: None, ["noise.npz"])
    assert gn.TableRelease.load(folder).plan.deviations.tolist() == known.deviations.tolist()


def test_noise_that_the_record_does_not_list_is_not_read(folder, monkeypatch):
    """Folders of the format before may hold other files."""
    noise = (folder / "noise.npz").read_bytes()
    (folder / "noise.npz").unlink()
    changed(folder, lambda record: record["files"].pop("noise.npz"))
    changed(folder, lambda record: record.update(format="gaussnoise.tables/2"))
    (folder / "noise.npz").write_bytes(noise)
    monkeypatch.delattr(gn.OptimalNoise, "load")
    gn.TableRelease.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda record: record["noise"].update(sigma=record["noise"]["sigma"] / 2),
            "calibrated by another version",
        ),
        (lambda record: record["noise"].update(rho_of_one_row=0.25), "'noise.rho_of_one_row': exp"),
        (
            lambda record: record["noise"].update(integer_sensitivity_squared=1),
            "'noise.integer_sensitivity_squared': expected ",
        ),
        (
            lambda record: record["measurements"][0].update(multiplier="1"),
            "'measurements.0.multiplier': expected ",
        ),
        (lambda record: record["measurements"].pop(), "'measurements': expected 6 entries, got 5"),
        (lambda record: record.update(rho=0.1), "calibrated by another version"),
    ],
)
def test_every_claim_of_the_record_is_compared_with_what_is_proven(
    folder, change, message, unsolved
):
    changed(folder, change)
    with pytest.raises(OutputError, match=message):
        gn.TableRelease.load(folder)


def stored_noise(folder):
    return read_arrays(folder / "noise.npz", _file._FORMAT, _file.INTEGERS)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_other_noise_is_not_taken_for_the_released_one(folder, factor):
    """Less noise is not proven, and more is, but not as optimal: the plan is solved again, and
    the record, if it was forged to fit, is refused.
    """
    header, arrays = stored_noise(folder)
    header["variances"] = [[T, factor * v] for T, v in header["variances"]]
    write_arrays(folder / "noise.npz", header, arrays)
    with pytest.raises(OutputError, match="sha256 differs"):
        gn.TableRelease.load(folder)
    changed(folder, lambda record: None, ["noise.npz"])
    found = gn.TableRelease.load(folder).plan.noise.covariance.variances
    assert found[0, 1] not in [v for _, v in header["variances"]]
    changed(folder, lambda record: record["noise"].update(sigma=record["noise"]["sigma"] * factor))
    with pytest.raises(GaussNoiseError):
        gn.TableRelease.load(folder)


def test_noise_that_is_proven_for_another_workload_is_not_taken(folder, tmp_path):
    other = gn.plan(SCHEMA, [("sex", "age"), ("hour",)], gn.zCDP(0.5), neighbors="replace")
    other.noise.save(folder / "noise.npz")
    changed(folder, lambda record: None, ["noise.npz"])
    found = gn.TableRelease.load(folder).plan
    assert found.domain.subsets == ((0, 1), (0, 2), (1, 2))


def test_proven_noise_that_is_not_the_released_one_is_refused(folder, unsolved):
    """A valid proof of noise that another p makes optimal, or that was scaled by hand."""
    header, arrays = stored_noise(folder)
    larger = [[T, v * (1.01 if len(T) == 2 else 1.0)] for T, v in header["variances"]]
    header |= {"variances": larger, "gamma": header["gamma"] * 1.01}
    write_arrays(folder / "noise.npz", header, arrays)
    changed(folder, lambda record: None, ["noise.npz"])
    with pytest.raises(OutputError, match="calibrated by another version"):
        gn.TableRelease.load(folder)


def test_damaged_files_are_planned_again(folder):
    (folder / "noise.npz").write_bytes(b"PK" + np.arange(100, dtype=np.uint8).tobytes())
    changed(folder, lambda record: None, ["noise.npz"])
    gn.TableRelease.load(folder)
