"""Lines on a charge: its purpose, who asked for it, and which approval."""

import contextlib
import inspect
import json
import sqlite3

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import gaussnoise as gn
from gaussnoise.cli import app as _app
from gaussnoise.cli.app import run
from gaussnoise.errors import DataError, ParameterError

pytestmark = pytest.mark.usefixtures("quick_pictures")

NOTE = {"purpose": "annual report", "requested_by": "A. Meier", "approval": "board 2026-14"}
NONE = dict.fromkeys(NOTE)
SCHEMA = gn.Schema([gn.Attribute("sex", ["F", "M"])])
PEOPLE = pa.table({"sex": ["F", "M", "F"] * 400, "pay": [7.0, 33.0, 61.0] * 400})
PLAN = gn.plan(SCHEMA, 1, gn.zCDP(0.01))


@pytest.fixture
def ledger(tmp_path):
    return gn.Ledger.create(tmp_path / "l.ledger", gn.zCDP(1.0), delta=1e-6)


def note_of(entry):
    return {name: getattr(entry, name) for name in NOTE}


def release_of_points(ledger, place):
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(2)))
    gn.GaussianMechanism(noise, gn.zCDP(0.01), n=10).release(counts=[6, 4], ledger=ledger, id="a")


DOORS = {
    "points": release_of_points,
    "tables": lambda ledger, place: PLAN.release(PEOPLE, out=place, ledger=ledger, id="a"),
    "categories": lambda ledger, place: gn.discover_categories(
        PEOPLE, "sex", gn.ApproxDP(0.1, 1e-7), ledger=ledger, id="a"
    ),
    "means": lambda ledger, place: gn.estimators.column_means(
        PEOPLE, ["pay"], gn.zCDP(0.01), between={"pay": (0, 99)}, out=place, ledger=ledger, id="a"
    ),
    "estimators": lambda ledger, place: gn.estimators.gaussian_mean(
        np.ones(900), gn.zCDP(0.01), sigma=1.0, radius=10.0, ledger=ledger, id="a"
    ),
    "streams": lambda ledger, place: gn.plan(
        SCHEMA, 1, gn.zCDP(0.01), over=gn.streams.Ticks(2)
    ).start(place, ledger=ledger, id="a"),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_keeps_the_lines_with_its_charge(ledger, tmp_path, door):
    DOORS[door](ledger.noted(**NOTE), tmp_path / "out")
    *_, entry = gn.Ledger.open(ledger.path).entries()
    assert note_of(entry) == NOTE
    assert entry.id == "a"
    assert ledger.note == (None,) * 3  # a ledger is immutable


def test_a_result_that_is_read_again_keeps_the_lines_of_its_charge(ledger, tmp_path):
    first = PLAN.release(PEOPLE, out=tmp_path / "out", ledger=ledger.noted(**NOTE), id="a")
    other = ledger.noted(purpose="another")
    again = PLAN.release(PEOPLE, out=tmp_path / "out", ledger=other, id="a")
    assert np.array_equal(first["sex"].estimate, again["sex"].estimate)
    PLAN.release(PEOPLE, out=tmp_path / "more", ledger=ledger, id="b")
    one, two = ledger.entries()
    assert (note_of(one), note_of(two)) == (NOTE, NONE)


def test_ticks_keep_the_lines_of_their_stream_or_their_own(ledger, tmp_path):
    plan = gn.plan(SCHEMA, 1, gn.zCDP(0.1), over=gn.streams.Ticks(2))
    plan.start(tmp_path / "weekly", ledger=ledger.noted(**NOTE), id="weekly")
    gn.streams.Stream.open(tmp_path / "weekly").tick(PEOPLE, number=1)  # in another program
    own = ledger.noted(purpose="the last week")
    gn.streams.Stream.open(tmp_path / "weekly", own).tick(PEOPLE, number=2)
    begun, first, second = ledger.entries()
    assert (begun.id, first.id, second.id) == ("weekly", "weekly tick 1", "weekly tick 2")
    assert note_of(begun) == note_of(first) == NOTE
    assert note_of(second) == NONE | {"purpose": "the last week"}


def test_refusals_and_lost_charges_keep_theirs(ledger, tmp_path):
    outside = pa.table({"sex": ["F", "x"]})
    with pytest.raises(DataError):
        PLAN.release(
            outside,
            out=tmp_path / "out",
            on_outside="refuse",
            ledger=ledger.noted(**NOTE),
            id="a",
        )
    with contextlib.closing(sqlite3.connect(ledger.path)) as database, database:
        ((attempt,),) = database.execute("SELECT attempt FROM refusals")
    PLAN.release(PEOPLE, out=tmp_path / "b", ledger=ledger.noted(purpose="b"), id="b")
    with contextlib.closing(sqlite3.connect(ledger.path)) as database, database:
        database.execute("UPDATE entries SET state = 'lost', sha256 = NULL")
    PLAN.release(PEOPLE, out=tmp_path / "c", ledger=ledger.noted(purpose="c"), id="b")
    refused, lost, sealed = ledger.entries()
    assert (refused.attempt, refused.state, note_of(refused)) == (attempt, "refused", NOTE)
    assert (lost.state, lost.purpose) == ("lost", "b")
    assert (sealed.state, sealed.purpose) == ("sealed", "c")


def test_ledgers_without_notes_are_read_and_charged(ledger, tmp_path):
    PLAN.release(PEOPLE, out=tmp_path / "out", ledger=ledger, id="a")
    with contextlib.closing(sqlite3.connect(ledger.path)) as database, database:
        database.execute("DROP TABLE notes")
    old = gn.Ledger.open(ledger.path)
    assert [note_of(entry) for entry in old.entries()] == [NONE]
    assert run(["ledger", "show", str(ledger.path)]) == 0
    PLAN.release(PEOPLE, out=tmp_path / "more", ledger=old.noted(**NOTE), id="b")
    assert [note_of(entry) for entry in old.entries()] == [NONE, NOTE]


def test_a_damaged_note_is_a_damaged_ledger(ledger, tmp_path):
    PLAN.release(PEOPLE, out=tmp_path / "out", ledger=ledger.noted(**NOTE), id="a")
    with contextlib.closing(sqlite3.connect(ledger.path)) as database, database:
        database.execute("UPDATE notes SET purpose = X'00ff'")
    with pytest.raises(gn.errors.LedgerError, match="damaged"):
        ledger.entries()


@pytest.mark.parametrize("line", ["", "two\nlines", "a\x1b[31m", "x" * 501, 7, b"bytes"])
@pytest.mark.parametrize("name", NOTE)
def test_a_line_is_one_printable_line(ledger, name, line):
    with pytest.raises(ParameterError, match=f"noted: expected {name} to be a line"):
        ledger.noted(**{name: line})


def test_every_command_that_charges_takes_the_lines():
    commands = [*_app.app.registered_commands, *_app.stream_app.registered_commands]
    parameters = {own.name: {*inspect.signature(own.callback).parameters} for own in commands}
    charging = {name for name, own in parameters.items() if {"ledger", "id"} <= own}
    assert charging == {"release", "mean", "categories", "start"}
    assert all({*NOTE} <= parameters[name] for name in charging)


COMMANDS = {
    "release": ("release", "t.csv", "-s", "t.toml", "-m", "1", "--rho", "0.1", "-o", "out"),
    "mean": ("mean", "t.csv", "-c", "pay", "--between", "0,99", "--rho", "0.1", "-o", "out"),
    "categories": ("categories", "t.csv", "sex", "--epsilon", "1", "--delta", "1e-7"),
    "stream": tuple("stream start -o st -s t.toml -m 1 --rho 0.1 --ticks 2".split()),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    csv.write_csv(PEOPLE, "t.csv")
    (tmp_path / "t.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    words = COMMANDS[command]
    given = [f"--{name.replace('_', '-')}={line}" for name, line in NOTE.items()]
    assert run([*words, given[-1]]) == 1
    assert f"{command}: expected --ledger with --approval" in capsys.readouterr().err
    run(["ledger", "create", "l.ledger", "--rho", "1", "--delta", "1e-6"])
    assert run([*words, "--ledger", "l.ledger", "--id", "a", *given]) == 0
    capsys.readouterr()
    assert run(["ledger", "show", "l.ledger", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    assert {name: entry[name] for name in NOTE} == NOTE
    assert run(["ledger", "show", "l.ledger"]) == 0
    shown = capsys.readouterr().out
    assert "\n    purpose: annual report\n    requested by: A. Meier\n    approval: b" in shown
