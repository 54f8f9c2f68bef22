"""Commands for programs: one JSON document each, help by its short name, a progress bar."""

import io
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from rich.console import Console

import gaussnoise as gn
from gaussnoise.cli import console as _console
from gaussnoise.cli import patience
from gaussnoise.cli.app import run
from gaussnoise.cli.documents import written
from gaussnoise.solvers import progress

pytestmark = pytest.mark.usefixtures("quick_pictures")

SCHEMA = '[attributes.sex]\ncategories = ["F", "M"]\n\n[attributes.age]\nedges = [0, 18, 65, 120]\n'
PLANNED = ["-s", "schema.toml", "-m", "2", "--rho", "0.5"]


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """What a command line answers in JSON, in a folder with a schema, a table and a matrix."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    csv.write_csv(pa.table({"sex": ["F", "M", "F"] * 50, "age": [7.5, 65.0, 120.0] * 50}), "t.csv")
    np.savetxt("w.csv", np.tril(np.ones((4, 4))), delimiter=",")

    def call(*arguments):
        status = run([*map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert (status, err) == (0, "")
        return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))

    return call


def planned():
    return gn.plan(gn.Schema.load("schema.toml"), 2, gn.zCDP(0.5))


def test_plan(call):
    found, plan = call("plan", *PLANNED), planned()
    assert found["format"] == "gaussnoise.plan/1"
    assert [entry["name"] for entry in found["entries"]] == list(plan.entries)
    (entry,) = found["entries"]
    assert entry["attributes"] == ["sex", "age"]
    assert entry["standard_deviation"] == pytest.approx(plan.standard_deviation("sex", "age"))
    assert entry["half_width"] == pytest.approx(plan.half_width("sex", "age"))
    assert found["rho"] == 0.5
    assert found["optimality"]["lower_bound"]["error"] == pytest.approx(plan.bound.error)
    assert found["request_sha256"] == plan.request_sha256


def test_a_plan_with_public_tables_has_no_bound(call):
    found = call("plan", *PLANNED, "--neighbors", "replace", "--public", "sex")
    assert found["optimality"]["lower_bound"] is None


def test_plan_of_targets(call):
    found = call("plan", "-s", "schema.toml", "-m", "1", "--within", "30")
    assert found["target_ratio"] == pytest.approx(1, abs=1e-6)


def test_bound(call):
    found, plan = call("bound", *PLANNED), planned()
    assert found["error"] == pytest.approx(plan.bound.error)
    assert found["explanation"] == plan.bound.explain().splitlines()


def test_release(call, tmp_path):
    found = call("release", "t.csv", *PLANNED, "--out", "out")
    record = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    assert found == {"format": "gaussnoise.released/1", "folder": "out", "record": record}


def test_mean(call):
    found = call("mean", "t.csv", "-c", "age", "--rho", "1", "--out", "m")
    assert [mean["column"] for mean in found["means"]] == ["age"]
    assert found["folder"] == "m"


def test_optimize(call):
    found = call("optimize", "w.csv", "--out", "noise.npz")
    noise = gn.OptimalNoise.load("noise.npz")
    assert found["gamma"] == pytest.approx(noise.gamma)
    assert found["standard_deviations"] == pytest.approx(noise.covariance.standard_deviation())


def test_certify(call, tmp_path):
    found = call("certify", "w.csv", "w.csv")
    same = gn.certify(np.tril(np.ones((4, 4))), np.tril(np.ones((4, 4))))
    assert found["factor"] == pytest.approx(same.factor)
    assert found["rho"] == pytest.approx(2)  # the first cell is in four outputs
    assert found["answers"]["standard_deviation"] == pytest.approx([1] * 4)
    measured = [{"attributes": names, "standard_deviation": 2} for names in (["a", "b"], ["a"])]
    document = {"sizes": {"a": 3, "b": 2}, "measurements": [*measured, measured[1]]}
    (tmp_path / "m.json").write_text(json.dumps(document), encoding="utf-8")
    found = call("certify", "m.json")
    same = gn.certify({("a", "b"): 2.0, ("a",): [2.0, 2.0]}, sizes={"a": 3, "b": 2})
    assert found["error"] == pytest.approx(same.error)
    assert found["rho"] == pytest.approx(3 / 8, rel=1e-15)
    assert found["answers"]["attributes"] == ["a × b", "a"]
    opendp = {"__function__": "make_count_by_categories", "__kwargs__": {}}
    opendp["__kwargs__"] = {"categories": ["F", "M"], "null_category": True}
    noise = {"__function__": "make_gaussian", "__kwargs__": {"scale": 2.0}}
    chain = {"measurement1": noise, "transformation0": opendp}
    document = {"__function__": "make_chain_mt", "__kwargs__": chain}
    (tmp_path / "o.json").write_text(json.dumps(document), encoding="utf-8")
    found = call("certify", "o.json")
    assert (found["rho"], found["answers"]["cells"]) == (pytest.approx(1 / 8, rel=1e-15), [3])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["w.csv"], "certify: expected a strategy and a workload, got one matrix"),
        (["m.json", "w.csv"], "certify: expected no second file with m.json"),
        (["m.json"], "certify: expected measured tables in m.json"),
        (["none.json"], "certify: cannot read none.json"),
        (["none.csv", "w.csv"], "certify: cannot read none.csv: there is no such file"),
        (["w.csv", "w.csv", "--p", "1"], "certify: expected --p 2 or more"),
    ],
)
@pytest.mark.usefixtures("call")
def test_certify_says_what_it_expects(words, message, capsys, tmp_path):
    (tmp_path / "m.json").write_text("{}", encoding="utf-8")
    assert run(["certify", *words]) == 1
    assert message in capsys.readouterr().err


def test_ledger(call, capsys):
    assert call("ledger", "create", "budget", "--rho", "1")["remaining"] == 1
    assert run(["release", "t.csv", *PLANNED, "--out", "o", "--ledger", "budget", "--id", "a"]) == 0
    capsys.readouterr()
    found = call("ledger", "show", "budget")
    assert (found["rho"], found["entries"][0]["id"]) == (1, "a")
    assert found["spent"] == pytest.approx(0.5)
    assert found["spent"] + found["remaining"] == pytest.approx(1)
    assert found["entries"][0]["state"] == "sealed"


def test_schema(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    csv.write_csv(
        pa.table({"id": [f"p{k}" for k in range(300)], "sex": ["F", "M", "F"] * 100}), "t.csv"
    )
    assert run(["schema", "t.csv", "--json", "--out", "s.toml"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["attributes"], list(found["left_out"])) == (["sex"], ["id"])
    assert found["toml"] == (tmp_path / "s.toml").read_text(encoding="utf-8")
    assert "this draft was read off the data" in err


def test_files_made_of_a_release(call, tmp_path):
    pytest.importorskip("mbi", reason="mbi is missing: no synthetic records")
    call("release", "t.csv", *PLANNED, "--out", "out")
    found = call("report", "out", "--out", "page.html")
    assert (found["file"], (tmp_path / "page.html").exists()) == ("page.html", True)
    found = call("synthetic", "out", "--out", "r.csv", "-n", 20)
    assert found["records"] == csv.read_csv(tmp_path / "r.csv").num_rows == 20
    release = gn.TableRelease.load("out")
    rows = release.likeness(csv.read_csv(tmp_path / "r.csv"))
    assert found["likeness"] == [row._asdict() for row in rows]


def test_stream(call):
    begun = call("stream", "start", "-o", "s", *PLANNED, "--ticks", "3")
    assert begun == call("stream", "show", "s")
    assert begun["last"] is None
    told = call("stream", "tick", "s", "t.csv", "--tick", 1)
    found = call("stream", "show", "s")
    assert told == {**found, "tick": 1, "published": found["last"]}
    assert (found["done"], found["next"], found["ticks"]["n"]) == (1, 2, 3)
    assert found["last"].endswith("1")
    plan = gn.streams.Stream.open("s").plan
    assert found["half_widths_of_totals"] == [plan.half_width("sex", "age", ticks=(1, 1))]


def test_a_stream_states_the_guarantee_that_was_asked_for(call, tmp_path):
    budget = ["--epsilon", "2", "--delta", "1e-6"]
    begun = call("stream", "start", "-o", "s", *PLANNED[:4], *budget, "--ticks", "3")
    stored = json.loads((tmp_path / "s" / "stream.json").read_text(encoding="utf-8"))
    assert begun["privacy"] == stored["privacy"]
    assert begun["privacy"]["epsilon"] == 2


def test_categories(call, tmp_path):
    (tmp_path / "names.csv").write_text("name\n" + "Łódź\n" * 900 + "rare\n", encoding="utf-8")
    budget = ["--epsilon", "2", "--delta", "1e-5"]
    found = call("categories", "names.csv", "name", *budget, "--out", "names.toml")
    assert found["format"] == "gaussnoise.categories/1"
    assert found["categories"] == ["Łódź"]
    schema = gn.Schema.load("names.toml")
    assert list(schema.attributes[0].categories or ()) == found["categories"]


def test_help_shows_brackets(capsys):
    assert run(["plan", "-h"]) == 0
    assert "[[workload]]" in re.sub(r"[\s│]+", "", capsys.readouterr().out)


def test_streams_are_asked_and_reported_without_their_private_folder(call, capsys, tmp_path):
    assert run(["stream", "start", "-o", "s", *PLANNED, "--ticks", "3"]) == 0
    for command in (["report", "s"], ["ask", "s", "count"]):
        capsys.readouterr()
        assert run(command) == 1
        assert "expected a stream with ticks, got none so far" in capsys.readouterr().err
    for number in range(1, 4):
        shutil.copy("t.csv", f"{number}.csv")
        call("stream", "tick", "s", f"{number}.csv", "--tick", number)
    assert run(["stream", "tick", "s", "t.csv", "--tick", "2", "--json"]) == 0
    out, said = capsys.readouterr()
    assert "tick 2 was published before, and is read again: none of the rows given now" in said
    again = json.loads(out)
    assert (again["done"], again["next"], again["tick"]) == (3, None, 2)
    assert again["published"].endswith("2")
    tables = gn.streams.Stream.open("s").tables
    shutil.rmtree("s/private")
    expected = {
        None: tables.total(),
        "2": tables.period(2),
        "2-3": tables.window(2, 3),
        " 1 - 2 ": tables.total(2),
    }
    for ticks, table in expected.items():
        options = [] if ticks is None else ["--ticks", ticks]
        rows = call("ask", "s", "count of sex", *options)["rows"]
        assert np.allclose([row["estimate"] for row in rows], table["sex"].estimate)
        assert np.allclose(
            [row["standard_deviation"] for row in rows], table["sex"].standard_deviation
        )
    call("report", "s", "--out", "page.html", "--ticks", "2-3")
    assert "for ticks 2 to 3 of a stream" in (tmp_path / "page.html").read_text(encoding="utf-8")
    capsys.readouterr()
    for ticks, error in {
        "0": "12 or 5-8",
        "3-2": "12 or 5-8",
        "x": "12 or 5-8",
        "4": "last <= 3",
    }.items():
        assert run(["ask", "s", "count", "--ticks", ticks]) == 1
        assert error in " ".join(capsys.readouterr().err.split())


def test_folders_that_are_no_releases_are_called_what_they_are(call, capsys):
    assert run(["stream", "start", "-o", "s", *PLANNED, "--ticks", "3"]) == 0
    hints = {"s": "it is a stream", "missing": "there is no such folder", ".": "expected the"}
    for folder, hint in hints.items():
        capsys.readouterr()
        assert run(["synthetic", folder, "--out", "r.csv"]) == 1
        assert f"hint: {hint}" in " ".join(capsys.readouterr().err.split())
    assert run(["ask", "missing", "count"]) == 1
    assert "hint: there is no such folder" in " ".join(capsys.readouterr().err.split())
    assert run(["report", ".", "--ticks", "2"]) == 1
    assert "--ticks: expected the folder of a stream" in capsys.readouterr().err


def test_errors_are_no_documents(call, capsys):
    assert run(["plan", "-s", "missing.toml", "-m", "1", "--rho", "1", "--json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")


def test_numbers_that_json_does_not_know_are_null():
    odd = {"a": float("inf"), "b": np.array([1.0, np.nan]), "c": (1, True, None, "é")}
    assert json.loads(written(odd)) == {"a": None, "b": [1, None], "c": [1, True, None, "é"]}


@pytest.mark.parametrize("command", [[], ["plan"], ["report"], ["ledger", "show"], ["stream"]])
def test_help_has_a_short_name(command, capsys):
    helps = []
    for name in ("-h", "--help"):
        assert run([*command, name]) == 0
        helps.append(capsys.readouterr().out)
    assert helps[0] == helps[1]
    assert "Usage: gaussnoise" in helps[0]


def test_the_package_is_the_command():
    command = [sys.executable, "-m", "gaussnoise", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{gn.__version__}\n", "")


@pytest.mark.parametrize(("terminal", "after", "seen"),
                         [(True, 0.0, True), (True, 60.0, False), (False, 0.0, False)])  # fmt: skip
def test_long_work_is_seen_on_terminals_alone(monkeypatch, terminal, after, seen):
    monkeypatch.setattr(progress, "_AFTER", after)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=80)
    with patience.patience(console, "planning") as say:
        say("still planning")
        if seen:
            for _ in range(100):
                if "planning" in screen.getvalue():
                    break
                progress.threading.Event().wait(0.05)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert ("still planning" in plain) == seen


def test_what_is_shown_meanwhile_goes_to_standard_error():
    assert _console.ERR.stderr
