"""The ledger under races, kills, damage and misuse."""

import contextlib
import hashlib
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussnoise as gn
from gaussnoise import _ledger
from gaussnoise._ledger import Ledger
from gaussnoise._rounding import rounded_up
from gaussnoise.cli._app import run
from gaussnoise.errors import BudgetError, LedgerError

ROW = "add-remove, one row"


def drawing(number):
    """A writer, and how often it was called: draws are made up, their order tells them apart."""
    calls = []

    def write(path):
        calls.append(path)
        path.write_text(json.dumps(number + len(calls)), encoding="utf-8")

    return write, calls


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def once(ledger, id="a", *, cost=0.1, request=None, protects=ROW, target=None, write=None, read=read):
    request = {"what": 1} if request is None else request
    write = drawing(0)[0] if write is None else write
    return ledger.once(id, cost=cost, request=request, protects=protects, target=target, write=write, read=read)


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "survey.ledger", gn.zCDP(1.0))


def partials(folder):
    return [path for path in Path(folder).rglob("*.partial*")]


# one id, one result


def test_the_same_id_reads_the_same_result(ledger):
    write, calls = drawing(7)
    assert [once(ledger, write=write) for _ in range(3)] == [8, 8, 8]
    assert len(calls) == 1
    (entry,) = Ledger.open(ledger.path).entries()
    assert (entry.id, entry.state, entry.protects) == ("a", "sealed", ROW)
    assert entry.sha256 == hashlib.sha256(Path(entry.target).read_bytes()).hexdigest()
    assert not partials(ledger.path.parent)


@pytest.mark.parametrize("changed", [{"what": 2}, {"what": 1, "more": 0}, {}])
def test_another_request_under_the_same_id_is_refused(ledger, changed):
    once(ledger)
    write, calls = drawing(0)
    with pytest.raises(LedgerError, match=r"another (what|more)"):
        once(ledger, request=changed, write=write)
    assert not calls
    assert len(ledger.entries()) == 1


def test_a_request_may_come_in_another_order(ledger):
    once(ledger, request={"x": {"b": 1, "a": [2.5, None]}, "y": 1})
    assert once(ledger, request={"y": 1, "x": {"a": [2.5, None], "b": 1}}) == 1
    assert len(ledger.entries()) == 1


def test_ids_that_differ_only_in_case_or_accents_have_their_own_files(ledger):
    ids = [
        "Report",
        "report",
        "REPORT",
        "re port",
        "re-port",
        "\u00e9",
        "e\u0301",
        ".",
        "..",
        "a" * 200,
        "a" * 199,
        "con",
        "日本",
    ]
    for k, id in enumerate(ids):
        assert once(ledger, id, cost=0.01, write=drawing(k)[0]) == k + 1
    assert [once(ledger, id) for id in ids] == [*range(1, len(ids) + 1)]
    names = {Path(entry.target).name.casefold() for entry in ledger.entries()}
    assert len(names) == len(ids)
    assert all(name.isascii() and len(name) < 100 for name in names)


@pytest.mark.parametrize("id", ["", "a" * 201, "a/b", "a\\b", "a\nb", "a\0b", "\ud800", 7, None, b"a"])
def test_bad_ids(ledger, id):
    with pytest.raises(gn.ParameterError, match="expected an id"):
        once(ledger, id)


@pytest.mark.parametrize("cost", [-1e-300, float("nan"), float("inf")])
def test_bad_costs(ledger, cost):
    with pytest.raises(gn.ParameterError, match="cost"):
        once(ledger, cost=cost)


# the cap


def test_what_no_longer_fits_is_refused_before_drawing(ledger):
    once(ledger, "a", cost=0.75)
    write, calls = drawing(0)
    with pytest.raises(BudgetError, match=r"at most rho = 0\.25, what is left of 1, got 0\.26"):
        once(ledger, "b", cost=0.26, write=write)
    assert not calls
    assert ledger.remaining == 0.25
    once(ledger, "b", cost=0.25)
    assert (ledger.remaining, ledger.spent) == (0.0, 1.0)
    once(ledger, "free", cost=0.0)
    with pytest.raises(BudgetError):
        once(ledger, "c", cost=1e-11)


@pytest.mark.parametrize("pieces", [3, 7, 10, 49])
@pytest.mark.parametrize("rho", [1e-12, 0.1, 0.3, 1.0, 7.7, 1e100])
def test_equal_parts_add_up_whatever_binary_fractions_do(tmp_path, rho, pieces, monkeypatch):
    monkeypatch.setattr(_ledger.os, "fsync", lambda handle: None)
    ledger = Ledger.create(tmp_path / "l", gn.zCDP(rho))
    with _ledger._transaction(ledger.path, "IMMEDIATE") as database:  # all but one, at once
        units = -(-Fraction(rho / pieces) * 2**62 // Fraction(rho))
        row = (int(units), "sealed", "0" * 64, ROW, "{}", "x", "")
        insert = (
            "INSERT INTO entries (id, units, state, sha256, protects, request, target, begun) VALUES (?,?,?,?,?,?,?,?)"
        )
        database.executemany(insert, [(str(k), *row) for k in range(pieces - 1)])
    once(ledger, cost=rho / pieces)
    assert sum(Fraction(entry.rho) for entry in ledger.entries()) <= Fraction(rho) * (1 + Fraction(1, 10**12))
    with pytest.raises(BudgetError):
        once(ledger, "more", cost=rho * 1e-11)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.floats(1e-200, 1e200), st.floats(0, 1))
def test_charges_are_rounded_up_and_shown_rounded_up(rho, share):
    cost = share * rho
    charged = Fraction(_ledger._units(cost, rho), 2**62) * Fraction(rho)
    assert cost <= charged < Fraction(cost) + Fraction(rho) / 2**62
    assert charged <= Fraction(rounded_up(charged)) <= charged * (1 + Fraction(1, 2**52))


def test_charges_under_another_promise_do_not_add_up(ledger):
    once(ledger)
    with pytest.raises(LedgerError, match="replace, one row"):
        once(ledger, "b", protects="replace, one row")
    assert len(ledger.entries()) == 1


# directories


def directory(number):
    def write(folder):
        folder.mkdir()
        (folder / "tables").mkdir()
        (folder / "tables" / "t.csv").write_text(f"{number}\n", encoding="utf-8")
        files = {"tables/t.csv": _ledger.file_digest(folder / "tables" / "t.csv")}
        (folder / "release.json").write_text(json.dumps({"files": files}), encoding="utf-8")

    return write


def read_table(folder):
    return int((folder / "tables" / "t.csv").read_text(encoding="utf-8"))


def test_directories(ledger, tmp_path):
    def release(out, number):
        return once(ledger, write=directory(number), target=tmp_path / out, read=read_table)

    assert release("out", 1) == release("out", 2) == 1
    (entry,) = ledger.entries()
    assert entry.sha256 == hashlib.sha256((tmp_path / "out" / "release.json").read_bytes()).hexdigest()
    (tmp_path / "out").rename(tmp_path / "moved")
    assert release("moved", 2) == 1
    with pytest.raises(LedgerError, match="missing or was changed"):
        release("out", 2)
    (tmp_path / "moved" / "tables" / "t.csv").write_text("3\n", encoding="utf-8")
    with pytest.raises(LedgerError, match="missing or was changed"):
        release("moved", 2)


@pytest.mark.parametrize("kind", ["directory", "empty directory", "file", "dangling link"])
def test_a_taken_place_is_refused_before_charging(ledger, tmp_path, kind):
    out = tmp_path / "out"
    {
        "directory": lambda: (out / "x").mkdir(parents=True),
        "empty directory": out.mkdir,
        "file": out.touch,
        "dangling link": lambda: out.symlink_to("nowhere"),
    }[kind]()
    with pytest.raises(gn.OutputError, match="exists already"):
        once(ledger, write=directory(1), target=out)
    assert ledger.entries() == ()


def test_a_place_taken_meanwhile_keeps_the_result_aside(ledger, tmp_path):
    out = tmp_path / "out"

    def write(folder):
        directory(1)(folder)
        out.mkdir()

    with pytest.raises(gn.OutputError, match="move it away and run again"):
        once(ledger, write=write, target=out)
    assert [entry.state for entry in ledger.entries()] == ["written"]
    with pytest.raises(LedgerError, match="was begun at"):
        once(ledger, write=directory(2), target=tmp_path / "other")
    out.rmdir()
    assert once(ledger, write=directory(2), target=out, read=read_table) == 1
    assert [entry.state for entry in ledger.entries()] == ["sealed"]
    assert not partials(tmp_path)


# what goes wrong while drawing


def failing(error):
    def write(path):
        path.write_text("1", encoding="utf-8")
        raise error

    return write


def test_a_refusal_of_the_data_leaves_no_charge(ledger):
    with pytest.raises(gn.DataError, match="bad"):
        once(ledger, write=failing(gn.DataError("bad")))
    assert ledger.entries() == ()
    assert not partials(ledger.path.parent)
    assert once(ledger) == 1


@pytest.mark.parametrize(
    "error", [OSError(28, "full"), gn.OutputError("full"), KeyboardInterrupt(), ZeroDivisionError()]
)
def test_all_other_failures_stay_charged(ledger, error):
    expected = gn.OutputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        once(ledger, write=failing(error))
    assert [entry.state for entry in ledger.entries()] == ["reserved"]
    assert ledger.spent == pytest.approx(0.1, rel=1e-12)
    assert not partials(ledger.path.parent)
    assert once(ledger, write=drawing(5)[0]) == 6
    assert [entry.state for entry in ledger.entries()] == ["lost", "sealed"]
    assert ledger.spent == pytest.approx(0.2, rel=1e-12)


def test_a_second_attempt_needs_budget(ledger):
    with pytest.raises(KeyboardInterrupt):
        once(ledger, cost=0.6, write=failing(KeyboardInterrupt()))
    with pytest.raises(BudgetError):
        once(ledger, cost=0.6)
    assert [entry.state for entry in ledger.entries()] == ["reserved"]


def test_a_writer_that_writes_nothing(ledger):
    with pytest.raises(gn.OutputError, match="could not write the result"):
        once(ledger, write=lambda path: None)


@pytest.mark.parametrize("files", [None, {"gone.csv": "0" * 64}])
def test_a_directory_must_pin_its_files(ledger, tmp_path, files):
    def write(folder):
        folder.mkdir()
        (folder / "release.json").write_text(json.dumps({} if files is None else {"files": files}), encoding="utf-8")

    with pytest.raises(gn.OutputError, match="incomplete"):
        once(ledger, write=write, target=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_writer_without_its_lock_cannot_publish(ledger):
    """Lock files deleted under a living writer: both draws are charged, one is published."""

    def slow(path):
        path.write_text("1", encoding="utf-8")
        for lock in ledger._folder.glob("*.lock"):
            lock.unlink()
        assert once(ledger, write=drawing(10)[0]) == 11

    with pytest.raises((LedgerError, gn.OutputError)):
        once(ledger, write=slow)
    assert once(ledger) == 11
    assert [entry.state for entry in ledger.entries()] == ["lost", "sealed"]


# the file


@pytest.mark.parametrize("budget", [1.0, "1", None, gn.ApproxDP(1.0, 1e-6)])
def test_a_budget_is_zcdp(tmp_path, budget):
    with pytest.raises(gn.ParameterError, match="expected a budget"):
        Ledger.create(tmp_path / "l", budget)


def test_a_ledger_is_never_overwritten(ledger):
    before = ledger.path.read_bytes()
    with pytest.raises(gn.OutputError, match="exists already"):
        Ledger.create(ledger.path, gn.zCDP(5.0))
    assert ledger.path.read_bytes() == before
    assert not partials(ledger.path.parent)
    with pytest.raises(gn.OutputError, match="cannot write"):
        Ledger.create(ledger.path.parent / "nowhere" / "l", gn.zCDP(5.0))


def test_ledgers_by_path(ledger):
    assert Ledger.of(ledger) is ledger
    assert Ledger.of(str(ledger.path)).rho == Ledger.of(ledger.path).rho == 1.0
    with pytest.raises(gn.ParameterError, match="Ledger or its path"):
        Ledger.of(3)
    odd = ledger.path.with_name("a b?mode=memory#%41")
    Ledger.create(odd, gn.zCDP(2.0))
    assert Ledger.open(odd).rho == 2.0


def edit(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


BAD_FILES = {
    "missing": (lambda path: path.unlink(), "no ledger at"),
    "a directory": (lambda path: (path.unlink(), path.mkdir()), "no ledger at"),
    "empty": (lambda path: path.write_bytes(b""), "something else"),
    "text": (lambda path: path.write_bytes(b"budget = 1\n" * 100), "not a ledger, or is damaged"),
    "another database": (lambda path: edit(path, "PRAGMA application_id = 7"), "something else"),
    "a newer format": (lambda path: edit(path, "PRAGMA user_version = 2"), "expected format 1 at .*, got 2"),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:5000]), "damaged"),
    "overwritten": (lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 12288), "damaged"),
    "no tables": (lambda path: edit(path, "DROP TABLE budget"), "damaged"),
    "no budget": (lambda path: edit(path, "DELETE FROM budget"), "damaged"),
    "two budgets": (lambda path: edit(path, "INSERT INTO budget SELECT * FROM budget"), "damaged"),
    "an infinite budget": (lambda path: edit(path, "UPDATE budget SET rho = 'inf'"), "damaged"),
    "a negative budget": (lambda path: edit(path, "UPDATE budget SET rho = '-0x1p0'"), "damaged"),
    "a budget in words": (lambda path: edit(path, "UPDATE budget SET rho = 'much'"), "damaged"),
    "a request cut off": (lambda path: edit(path, "UPDATE entries SET request = '{'"), "damaged"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_unusable_files(ledger, kind):
    once(ledger)
    damage, message = BAD_FILES[kind]
    damage(ledger.path)
    write, calls = drawing(0)
    for use in (lambda: Ledger.open(ledger.path).entries(), lambda: once(ledger, write=write)):
        with pytest.raises(LedgerError, match=message):
            use()
    assert not calls


def opened_with(monkeypatch, *statements):
    connect = sqlite3.connect

    def limited(*arguments, **options):
        database = connect(*arguments, **options)
        for statement in statements:
            database.execute(statement)
        return database

    monkeypatch.setattr(_ledger.sqlite3, "connect", limited)


def test_a_read_only_ledger(ledger, monkeypatch):
    once(ledger)
    opened_with(monkeypatch, "PRAGMA query_only = 1")
    write, calls = drawing(0)
    with pytest.raises(LedgerError, match="cannot be written"):
        once(ledger, "b", write=write)
    assert not calls
    assert [entry.id for entry in ledger.entries()] == ["a"]
    monkeypatch.undo()
    opened_with(monkeypatch, "PRAGMA query_only = 1")
    assert once(ledger) == 1  # reading a sealed result changes nothing


def test_a_ledger_that_cannot_grow(ledger, monkeypatch):
    once(ledger, cost=0.001)
    opened_with(monkeypatch, "PRAGMA max_page_count = 1")  # as many as there are
    write, calls = drawing(0)

    def fill():
        for k in range(100):
            once(ledger, "long" * 40 + str(k), cost=0.001, write=write)

    with pytest.raises(LedgerError, match="the disk is full"):
        fill()
    monkeypatch.undo()
    entries = ledger.entries()
    assert len(calls) <= len(entries) - 1 < 100
    assert [once(ledger, entry.id, cost=0.001) for entry in entries if entry.state == "sealed"]


def test_a_ledger_that_somebody_keeps_busy(ledger, monkeypatch):
    monkeypatch.setattr(_ledger, "_BUSY_SECONDS", 0.1)
    with contextlib.closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert ledger.entries() == ()
        with pytest.raises(LedgerError, match="is busy"):
            once(ledger)
        other.execute("ROLLBACK")
    assert once(ledger) == 1


def test_a_file_in_the_way_of_the_results(ledger):
    ledger._folder.write_text("")
    with pytest.raises(LedgerError, match="cannot create"):
        once(ledger)


def test_threads(ledger):
    results, write = [], drawing(0)[0]

    def slow(path):
        time.sleep(0.05)
        write(path)

    threads = [threading.Thread(target=lambda: results.append(once(ledger, write=slow))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * 4
    assert len(ledger.entries()) == 1


# processes: children load the ledger alone, through a bare package, to start in a moment

CHILD = """
import json, os, signal, sqlite3, sys, time, types

kind, package, folder, first, last, stride, kill_at = sys.argv[1:]
bare = sys.modules["gaussnoise"] = types.ModuleType("gaussnoise")
bare.__path__ = [package]
from gaussnoise import _ledger
from gaussnoise.errors import GaussNoiseError

path = folder + "/l"
COST = 1 / 40


def log(name, *words):
    handle = os.open(folder + "/" + name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, (" ".join(words) + "\\n").encode())
    os.close(handle)


def writer(id):
    def write(scratch):
        token = os.urandom(8).hex()
        log("draws", id, token)
        with open(scratch, "w") as file:
            file.write('{"draw": ')
            file.flush()
            file.write('"' + token + '"}')
    return write


def read(place):
    return json.loads(place.read_text())["draw"]


def charged_first(id):
    return _ledger.Ledger.open(path).once(
        id, cost=COST, request={"id": id}, protects="rows", target=None, write=writer(id), read=read
    )


def deducted_afterwards(id):
    place = _ledger.Path(folder) / (id + ".json")
    database = sqlite3.connect(path + ".naive", timeout=30, isolation_level=None)
    if not place.exists():
        ((spent,),) = database.execute("SELECT count(*) FROM entries")
        if (spent + 1) * COST > 1:
            raise GaussNoiseError("budget")
        writer(id)(place.with_suffix(".partial"))
        place.with_suffix(".partial").rename(place)
        time.sleep(0.005)
        database.execute("INSERT INTO entries VALUES (?)", [id])
    return read(place)


def trace(frame, event, argument):
    global kill_at
    if frame.f_code.co_filename not in (_ledger.__file__, "<string>"):
        return None
    if event == "line":
        kill_at -= 1
        if kill_at == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace


run = {"real": charged_first, "naive": deducted_afterwards}[kind]
first, last, stride, kill_at = int(first), int(last), int(stride), int(kill_at)
print("ready", flush=True)
count = last - first
for k in range(count):
    id = "r%03d" % (first + k * stride % count)
    if kill_at:
        before = kill_at
        sys.settrace(trace)
    try:
        answer = run(id)
    except GaussNoiseError as error:
        answer = type(error).__name__
    sys.settrace(None)
    log("answers", id, answer)
if kill_at:
    print(before - kill_at)
"""
PACKAGE = str(Path(_ledger.__file__).parent)
CAP = 40


class Children:
    """Processes over one ledger in one folder, and what can be said afterwards."""

    def __init__(self, kind, folder):
        self.kind, self.folder = kind, folder
        self.ledger = Ledger.create(folder / "l", gn.zCDP(1.0))
        edit(folder / "l.naive", "CREATE TABLE entries (id TEXT)")

    def start(self, first, last, stride=1, kill_at=0):
        arguments = map(str, [self.kind, PACKAGE, self.folder, first, last, stride, kill_at])
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", CHILD, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def lines(self, name):
        path = self.folder / name
        return [tuple(line.split()) for line in path.read_text().splitlines()] if path.exists() else []

    def complaints(self):
        """Everything that must never happen and did."""
        draws, answers = self.lines("draws"), self.lines("answers")
        if self.kind == "real":
            entries = self.ledger.entries()
            charges = Counter(entry.id for entry in entries)
            results = {entry.id: read(Path(entry.target))["draw"] for entry in entries if entry.state == "sealed"}
            intact = {
                entry.id
                for entry in entries
                if entry.state == "sealed"
                and hashlib.sha256(Path(entry.target).read_bytes()).hexdigest() == entry.sha256
            }
        else:
            with contextlib.closing(sqlite3.connect(self.folder / "l.naive")) as database:
                charges = Counter(id for (id,) in database.execute("SELECT id FROM entries"))
            results = {path.stem: read(path)["draw"] for path in self.folder.glob("*.json")}
            intact = set(results)
        drawn = Counter(id for id, _ in draws)
        given = {id: {answer for name, answer in answers if name == id} - {"BudgetError"} for id, _ in answers}
        found = {
            "more draws than the cap allows": len(draws) > CAP,
            "more charges than the cap": charges.total() > CAP,
            "a draw that was not charged": any(drawn[id] > charges[id] for id in drawn),
            "an answer that is not the published one": any(a - {results.get(id)} for id, a in given.items()),
            "a result that was never drawn": not set(results.items()) <= set(draws),
            "a result that was changed": intact != set(results),
        }
        return {complaint for complaint, true in found.items() if true}


def finished(children):
    """Wait for children that must end well."""
    for child in children:
        out, err = child.communicate(timeout=60)
        assert child.returncode == 0, err
        assert out.startswith("ready")


def test_racing_processes(tmp_path):
    """Four processes, 50 ids, budget for 40: each drawn once, whoever came first."""
    children = Children("real", tmp_path)
    finished([children.start(0, 50, stride) for stride in (1, 1, 3, 7)])
    assert not children.complaints()
    assert len(children.lines("draws")) == CAP
    assert {entry.state for entry in children.ledger.entries()} == {"sealed"}
    answers = Counter(answer == "BudgetError" for _, answer in children.lines("answers"))
    assert answers == {False: 4 * CAP, True: 4 * 10}


def kill_points(kind, folder, count):
    """Children killed at lines spread over a whole run of ``once``, each then run again to the end."""
    children = Children(kind, folder)
    whole = children.start(0, 1, kill_at=10**6)
    finished_lines, _ = whole.communicate(timeout=60)
    lines = int(finished_lines.split()[-1])
    left = Counter()
    points = sorted({1 + k * (lines - 1) // (count - 1) for k in range(count)})
    for begin in range(0, len(points), 12):  # one ledger for every twelve, or the cap interferes
        children = Children(kind, folder / str(begin)) if (folder / str(begin)).mkdir() is None else None
        batch = points[begin : begin + 12]
        running = [children.start(k, k + 1, kill_at=point) for k, point in enumerate(batch)][::-1]
        for child in running:
            child.communicate(timeout=60)
            assert child.returncode == -signal.SIGKILL
        if kind == "real":
            states = {entry.id: entry.state for entry in children.ledger.entries()}
            left.update(states.get(f"r{k:03d}", "nothing") for k in range(len(batch)))
        finished([children.start(0, len(batch))])
        yield children, left, lines


def test_kills_at_every_stage(tmp_path):
    """Wherever it is killed, the next run gives a result, and every draw has its own charge."""
    for children, left, lines in kill_points("real", tmp_path, 36):  # noqa: B007
        assert not children.complaints()
        entries = children.ledger.entries()
        assert {entry.state for entry in entries} <= {"lost", "sealed"}
        answers = dict(children.lines("answers"))
        assert "BudgetError" not in answers.values()
        assert len(answers) == sum(entry.state == "sealed" for entry in entries)
        assert not partials(children.folder)
    assert lines > 100
    assert set(left) == {"nothing", "reserved", "written", "sealed"}


def test_kills_at_every_stage_catch_a_ledger_that_deducts_afterwards(tmp_path):
    complaints = set()
    for children, *_ in kill_points("naive", tmp_path, 12):
        complaints |= children.complaints()
    assert "a draw that was not charged" in complaints


def storm(children, kills):
    """Three processes over 60 ids; one after the other is killed, and started again, ``kills`` times."""
    strides = (1, 7, 11)
    running = [children.start(0, 60, stride) for stride in strides]
    killed = 0
    for k in range(kills):
        victim = k % 3
        child = running[victim]
        child.stdout.readline()  # ready
        time.sleep((37 * k % 41) / 1000)
        child.kill()
        child.communicate(timeout=60)
        killed += child.returncode == -signal.SIGKILL
        running[victim] = children.start(0, 60, strides[victim])
    finished(running)
    return killed


def test_a_storm_of_kills(tmp_path):
    children = Children("real", tmp_path)
    assert storm(children, 24) >= 16
    assert not children.complaints()
    entries = children.ledger.entries()
    assert len(entries) == CAP  # the rest was refused
    assert Counter(entry.state for entry in entries)["sealed"] >= 20
    assert children.ledger.remaining == 0


def test_the_storm_catches_a_ledger_that_deducts_afterwards(tmp_path):
    children = Children("naive", tmp_path)
    storm(children, 9)
    assert children.complaints()


def test_waiting_for_a_living_writer(tmp_path):
    """A second process gets the first one's result, and a killed writer's lock is gone with it."""
    children = Children("real", tmp_path)
    stopped = children.start(0, 1, kill_at=10**6)
    stopped.stdout.readline()
    while not children.lines("draws") and stopped.poll() is None:
        time.sleep(0.001)
    os.kill(stopped.pid, signal.SIGSTOP)
    drawn_early = {entry.state for entry in children.ledger.entries()} == {"reserved"}
    other = children.start(0, 1)
    time.sleep(0.5)
    if drawn_early:
        assert other.poll() is None
    os.kill(stopped.pid, signal.SIGKILL)
    stopped.communicate(timeout=60)
    finished([other])
    assert not children.complaints()


# the command line

SCHEMA = """
[attributes.sex]
categories = ["F", "M"]

[attributes.age]
edges = [0, 18, 65, 120]
"""


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Exit status, standard output and standard error of one command line."""
    monkeypatch.chdir(tmp_path)
    Path("schema.toml").write_text(SCHEMA, encoding="utf-8")
    Path("t.csv").write_text("sex,age\nF,7.25\nM,65\nF,120\n", encoding="utf-8")

    def call(line):
        status = run(shlex.split(line))
        return status, *capsys.readouterr()

    return call


def test_commands(call, tmp_path):
    release = "release t.csv -s schema.toml -m 2 --rho 0.7 --out {} --ledger l --id '{}'"
    assert call("ledger create l --rho 1")[0] == 0
    first = call(release.format("out", "of [red]May"))
    again = call(release.format("out", "of [red]May"))
    assert first == again
    assert first[0] == 0
    status, _, error = call(release.format("other", "June"))
    assert (status, error.split(":")[1].strip()) == (1, "BudgetError")
    assert not (tmp_path / "other").exists()
    status, shown, _ = call("ledger show l")
    assert status == 0
    assert "budget rho 1, spent 0.7, left 0.3; charges: 1" in shown
    assert "of [red]May" in shown
    assert hashlib.sha256((tmp_path / "out" / "release.json").read_bytes()).hexdigest()[:12] in shown
    assert "7.25" not in (tmp_path / "l").read_bytes().decode("latin-1") + shown


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("ledger show nothing", "LedgerError"),
        ("ledger show t.csv", "LedgerError"),
        ("ledger create t.csv --rho 1", "OutputError"),
        ("ledger create l --rho 0", "ParameterError"),
        ("release t.csv -s schema.toml -m 2 --rho 1 --out o --ledger l", "ParameterError"),
        ("release t.csv -s schema.toml -m 2 --rho 1 --out o --id x", "ParameterError"),
        ("release t.csv -s schema.toml -m 2 --rho 1 --out o --ledger t.csv --id x", "LedgerError"),
    ],
)
def test_commands_that_fail(call, line, kind):
    status, _, error = call(line)
    assert (status, error.split(":")[1].strip()) == (1, kind)
    assert len(error.splitlines()) == 1
    assert not Path("o").exists()


# results that mechanisms save


def test_releases_come_back_from_their_file(tmp_path):
    noise = gn.optimal_noise(gn.FiniteSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.5), n=30)
    release = mechanism.release(counts=[10, 10, 10])
    release.save(tmp_path / "r.json")
    again = gn.Release.load(tmp_path / "r.json", mechanism.covariance)
    assert np.array_equal(again.estimate, release.estimate)
    assert again.privacy == json.loads(json.dumps(release.privacy))
    assert again.private
    assert again.contrast([1, 2]) == release.contrast([1, 2])
    other = gn.GaussianMechanism(noise, gn.zCDP(0.6), n=30)
    with pytest.raises(gn.CertificateError, match="of the noise given"):
        gn.Release.load(tmp_path / "r.json", other.covariance)
    with pytest.raises(gn.OutputError, match="cannot read"):
        gn.Release.load(tmp_path / "gone.json", mechanism.covariance)
    for text in ("", "[]", '{"format": "gaussnoise.release/1"}', '{"format": "x"}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(gn.CertificateError, match=r"Release\.save"):
            gn.Release.load(tmp_path / "bad.json", mechanism.covariance)
