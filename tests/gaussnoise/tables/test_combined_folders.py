"""Tests of combined releases on disk, of the command that writes them, and of their page."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import OutputError
from gaussnoise.files.disk import file_digest
from gaussnoise.tables.release.formats import FORMATS

SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("age", edges=[0, 18, 65, 120]),
        gn.Attribute("pay", clip=[0, 5000]),
    ]
)
_RNG = np.random.default_rng(1)
PEOPLE = pa.table(
    {
        "sex": _RNG.choice(["F", "M"], 600),
        "age": _RNG.uniform(0, 120, 600),
        "pay": _RNG.uniform(0, 4000, 600),
    }
)


def released(workload, rho=0.1, **options):
    return gn.plan(SCHEMA, workload, gn.zCDP(rho), **options).release(PEOPLE)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders of two releases of the same rows, in different formats."""
    home = tmp_path_factory.mktemp("releases")
    released([("sex", "age")], title="January").save(home / "first")
    released([("sex", "pay"), ("age",)], 0.2).save(home / "second", format="parquet")
    return [str(home / "first"), str(home / "second")]


@pytest.fixture(scope="module")
def both(folders, tmp_path_factory):
    out = tmp_path_factory.mktemp("combined") / "both"
    assert run(["combine", *folders, "-o", str(out)]) == 0
    return out


def same(one, other):
    """Compare all tables of two releases, with their deviations."""
    assert list(one) == list(other)
    for names in one:
        np.testing.assert_allclose(one[names].estimate, other[names].estimate, rtol=1e-12)
        np.testing.assert_allclose(
            one[names].standard_deviation, other[names].standard_deviation, rtol=1e-12
        )
    assert (one.rho_charged, one.private) == (other.rho_charged, other.private)


def test_what_was_assumed_of_rows_that_do_not_fit_is_in_the_folder(tmp_path, capsys):
    """Each release leaves out rows by an attribute of its own; nobody says that there are none."""
    places = []
    for name in ("sex", "age"):
        places.append(str(tmp_path / name))
        plan = gn.plan(SCHEMA, [name], gn.zCDP(0.1))
        plan.release(PEOPLE, out=places[-1], on_outside="drop")
    out = tmp_path / "both"
    assert run(["combine", *places, "-o", str(out)]) == 1
    assert "hint: --all-rows-fit if every row" in capsys.readouterr().err
    assert run(["combine", *places, "-o", str(out), "--all-rows-fit"]) == 0
    said = "Assumed: every row had a value of the schema in 'age', 'sex'."
    for name in ("summary.txt", "method.txt"):
        assert said in " ".join((out / name).read_text(encoding="utf-8").split())
    loaded = gn.TableRelease.load(out)
    assert loaded.plan.fits == ("age", "sex")
    loaded.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Assumed: every row had a value of the schema in" in page
    assert run(["verify", str(out)]) == 0
    record = json.loads((out / "release.json").read_text(encoding="utf-8"))
    assert record["all_rows_fit"] == ["age", "sex"]
    del record["all_rows_fit"]  # the assumption cannot be taken out of the folder
    (out / "release.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(OutputError):
        gn.TableRelease.load(out)


def test_the_folder_is_read_as_the_combination_that_was_written(folders, both):
    loaded = gn.TableRelease.load(both)
    same(loaded, gn.combine([gn.TableRelease.load(folder) for folder in folders]))
    assert loaded.means("pay", "sex").estimate.shape == (2,)
    assert loaded.plan.agreement is not None


def test_the_releases_are_in_the_folder_as_they_were(folders, both):
    for folder, name in zip(folders, ("1-first", "2-second"), strict=True):
        copied = both / "releases" / name
        assert file_digest(copied / "release.json") == file_digest(folder + "/release.json")
        same(gn.TableRelease.load(copied), gn.TableRelease.load(folder))


def test_the_record_says_what_was_combined(both, folders):
    record = json.loads((both / "release.json").read_text(encoding="utf-8"))
    assert record["format"] == "gaussnoise.combined/1"
    assert [one["folder"] for one in record["combined_from"]] == [
        "releases/1-first",
        "releases/2-second",
    ]
    assert [one["title"] for one in record["combined_from"]] == ["January", None]
    assert record["rho"] == pytest.approx(0.3)
    assert 0 <= record["agreement"]["p_value"] <= 1
    assert set(record["files"]) == {
        str(path.relative_to(both)) for path in both.rglob("*") if path.is_file()
    } - {"release.json"}
    assert {"release.png", "method.txt", "ddi.xml", "summary.txt"} <= record["files"].keys()
    method = (both / "method.txt").read_text(encoding="utf-8")
    assert "ρ = 0.3, the sum of all budgets" in method
    assert "Combined from releases/1-first, releases/2-second." in method
    assert [one["file"] for one in record["answers"]] == ["answers/2-answers-sex-by-pay.csv"]


def test_every_other_door_reads_it(both, folders, tmp_path, capsys):
    assert run(["ask", str(both), "mean of pay given sex", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    means = gn.TableRelease.load(both).means("pay", "sex")
    np.testing.assert_allclose([row["estimate"] for row in rows], means.estimate)
    assert run(["report", str(both), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for words in ("combined from", "1-first", "2-second", "January", "Their budgets add up"):
        assert words in page
    assert file_digest(folders[0] + "/release.json") in page
    released([("sex", "age")], 0.05).save(tmp_path / "third")
    third = str(tmp_path / "third")
    assert run(["combine", str(both), third, "-o", str(tmp_path / "all")]) == 0
    parts = [gn.TableRelease.load(folder) for folder in (*folders, third)]
    same(gn.TableRelease.load(tmp_path / "all"), gn.combine(parts))
    assert run(["difference", str(both), third, "--of", "sex", "--json"]) == 0


def test_json_is_the_record(folders, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["combine", *folders, "-o", str(out), "--same-rows", "assumed", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["format"] == "gaussnoise.released/1"
    assert found["record"] == json.loads((out / "release.json").read_text(encoding="utf-8"))
    assert found["record"]["agreement"] is None
    assert gn.TableRelease.load(out).plan.agreement is None
    words = "assumed, not tested: releases of the same rows"
    for question in (
        "how many",
        "share of sex=F",
        "mean of pay by sex",
        "top 2 of age",
        "median of age",
    ):
        assert run(["ask", str(out), question]) == 0
        said = capsys.readouterr().out
        assert words in said
        assert max(map(len, said.splitlines())) <= 80
        assert run(["ask", str(out), question, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["note"].count(words) == 1
        assert words not in gn.combine(list(map(gn.TableRelease.load, folders))).ask(question).note
    released([("sex",)]).save(tmp_path / "later")
    assert run(["difference", str(out), str(tmp_path / "later")]) == 0
    assert "Assumed, not tested: releases that were combined are of the same rows." in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize("format", FORMATS)
def test_a_combination_of_releases_in_memory_is_written_in_every_format(format, tmp_path):
    both = gn.combine([released([("sex", "age")]), released([("age",), ("sex", "pay")])])
    both.save(tmp_path / "both", format=format)
    same(gn.TableRelease.load(tmp_path / "both"), both)


def test_a_simulation_stays_one(tmp_path):
    plan, rng = gn.plan(SCHEMA, 1, gn.zCDP(0.1)), np.random.default_rng(0)
    both = gn.combine([plan.simulate(PEOPLE, rng) for _ in range(2)])
    both.save(tmp_path / "both")
    assert "NOT PRIVATE" in (tmp_path / "both" / "summary.txt").read_text(encoding="utf-8")
    assert not gn.TableRelease.load(tmp_path / "both").private
    both.report(tmp_path / "page.html")
    assert "NOT PRIVATE" in (tmp_path / "page.html").read_text(encoding="utf-8")


def altered(both, folder, change):
    """Return a copy of the folder whose record was changed by a function."""
    shutil.copytree(both, folder)
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    change(record)
    (folder / "release.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


def outside(record):
    record["combined_from"][0]["folder"] = "../first"


def twice(record):
    record["combined_from"][1] = record["combined_from"][0]


def cheaper(record):
    record["rho"] = 0.1


def another_id(record):
    record["combined_from"][0]["id"] = "0" * 16


def no_table(record):
    record["marginals"].pop()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *((change, "not a complete combination of releases") for change in (outside, twice)),
        (cheaper, r"'rho': expected 0\.29*7?, got 0\.1; hint"),
        (another_id, r"'combined_from\.0\.id': expected '[0-9a-f]{16}', got '0{16}'; hint"),
        (no_table, "'marginals': expected 3 entries, got 2 entries"),
    ],
)
def test_an_altered_record_is_refused(both, tmp_path, change, message):
    folder = altered(both, tmp_path / "other", change)
    with pytest.raises(OutputError, match=message):
        gn.TableRelease.load(folder)


@pytest.mark.parametrize(
    "file", ["tables/1-sex-by-age.csv", "releases/2-second/release.json", "summary.txt"]
)
def test_an_altered_file_is_refused(both, tmp_path, file):
    shutil.copytree(both, tmp_path / "other")
    with (tmp_path / "other" / file).open("ab") as written:
        written.write(b" ")
    with pytest.raises(OutputError, match="sha256 differs"):
        gn.TableRelease.load(tmp_path / "other")


def test_what_cannot_be_combined_is_refused_in_words(folders, tmp_path, capsys):
    first, second = folders
    (tmp_path / "taken").mkdir()
    other = gn.plan(SCHEMA, [("sex", "age")], gn.zCDP(1)).release(PEOPLE.slice(300))
    other.save(tmp_path / "other")
    new = str(tmp_path / "new")
    for command, words in (
        ([first, "-o", new], "expected two releases or more, got 1"),
        ([first, first, "-o", new], "got one twice"),
        ([first, str(tmp_path / "other"), "-o", new], "gaussnoise difference compares"),
        ([first, second, "-o", str(tmp_path / "taken")], "exists already"),
        ([first, second, "-o", new, "--format", "odt"], "expected format"),
        ([first, second, "-o", new, "--same-rows", "yes"], "expected same_rows"),
    ):
        assert run(["combine", *command]) == 1
        out, err = capsys.readouterr()
        assert words in " ".join(err.split())
        assert out == ""
    assert not (tmp_path / "new").exists()
