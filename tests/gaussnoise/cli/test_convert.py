"""A published folder written again in another format: the same numbers, the same record."""

import json
import shutil

import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.tables.release.formats import FORMATS
from gaussnoise.tables.release.record import ASSUMED
from gaussnoise.verifier import verified

pytestmark = pytest.mark.usefixtures("quick_pictures")
SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("age", edges=[0, 18, 65, 120], base=gn.Prefix(3)),
        gn.Attribute("pay", clip=(0, 100)),
    ]
)
ROWS = pa.table(
    {"sex": ["F", "M", "F"] * 40, "age": [7, 33, 61] * 40, "pay": [0.0, 50.0, 99.5] * 40}
)
# entries with names of files: the rest of the record says the same of the same numbers
PLACES = ("files", "marginals", "workload")


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Two folders of counts, prefixes, sums and means, as CSV."""
    folder = tmp_path_factory.mktemp("convert")
    plan = gn.plan(SCHEMA, [("sex", "age"), ("sex", "pay")], gn.zCDP(0.5))
    for name in ("first", "second"):
        plan.release(ROWS, out=folder / name)
    return folder / "first", folder / "second"


@pytest.fixture
def release(releases):
    return releases[0]


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_goes_to_every_format_and_comes_back_as_it_was(release, tmp_path, format):
    there, back = tmp_path / "there", tmp_path / "back"
    assert run(["convert", str(release), "-o", str(there), "--format", format]) == 0
    assert not [line for line in verified(there) if line.startswith(("FAILED", "UNKNOWN"))]
    records = [json.loads((f / "release.json").read_text("utf-8")) for f in (release, there)]
    told = [{k: v for k, v in record.items() if k not in PLACES} for record in records]
    assert told[0] == told[1]
    assert any(name.endswith(FORMATS[format].ending) for name in contents(there))
    assert run(["convert", str(there), "-o", str(back), "--format", "csv"]) == 0
    assert contents(back) == contents(release)


def test_who_drew_the_noise_stays_in_the_record(release, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(release, old)
    record = json.loads((old / "release.json").read_text("utf-8"))
    record["libraries"]["opendp"] = "0.0.1"
    record["executors"] = {"how": ASSUMED}
    (old / "release.json").write_text(
        json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8"
    )
    assert run(["convert", str(old), "-o", str(tmp_path / "new"), "--format", "jsonl"]) == 0
    again = json.loads((tmp_path / "new" / "release.json").read_text("utf-8"))
    assert again["libraries"] == record["libraries"]
    assert again["executors"] == record["executors"]  # what their noise assumes is not lost
    gn.TableRelease.load(tmp_path / "new")


def test_a_combination_is_converted_with_its_releases_as_they_are(releases, tmp_path):
    both, new = tmp_path / "both", tmp_path / "new"
    assert run(["combine", *map(str, releases), "-o", str(both)]) == 0
    assert run(["convert", str(both), "-o", str(new), "--format", "xlsx"]) == 0
    assert (new / "tables" / "tables.xlsx").is_file()
    tables = [gn.TableRelease.load(folder)["sex", "age"].estimate for folder in (both, new)]
    assert tables[0].tolist() == tables[1].tolist()
    kept = [contents(folder / "releases") for folder in (both, new)]
    assert kept[0] == kept[1]


def test_folders_that_are_no_release_name_the_command_that_writes_them(
    releases, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    release, _ = both = tuple(map(str, releases))
    assert run(["difference", *both, "--of", "sex", "-o", "changes"]) == 0
    stream = gn.plan(SCHEMA, [("sex",)], gn.zCDP(0.5), over=gn.streams.Ticks(2)).start("a stream")
    stream.tick(ROWS, number=1)
    hints = {"changes": "gaussnoise difference BEFORE AFTER --format xlsx -o NEW"}
    hints["a stream"] = "gaussnoise stream series 'a stream' -o FILE.xlsx"
    for folder, hint in hints.items():
        assert run(["convert", folder, "-o", "new", "--format", "xlsx"]) == 1
        assert hint in capsys.readouterr().err
    assert run(["convert", release, "-o", "changes", "--format", "xlsx"]) == 1
    assert "changes exists already" in capsys.readouterr().err
    assert run(["convert", release, "-o", "new", "--format", "words"]) == 1
    assert 'expected format "csv"' in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_nothing_is_written_into_a_published_folder(releases, tmp_path, capsys):
    """Its record lists all its files, so that one more makes all its checks fail."""
    release, other = map(str, releases)
    link = tmp_path / "link"
    link.symlink_to(release)
    for command in (
        ["convert", release, "--format", "xlsx"],
        ["report", release],
        ["difference", other, release],
        ["combine", other, release],
    ):
        for place in (release, str(link)):
            assert run([*command, "-o", f"{place}/new"]) == 1
            assert "expected a place outside" in capsys.readouterr().err
    assert not [line for line in verified(releases[0]) if line.startswith("FAILED")]
