"""The ledger under damage and misuse; ``tests/audit/test_crash.py`` has the races and kills.

References for the ε it implies: closed forms of one Gaussian, and a simulated composition.
"""

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from datetime import datetime
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import domains
import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import (
    BudgetError,
    CertificateError,
    DataError,
    LedgerError,
    LedgerWarning,
    NotAvailableError,
    OutputError,
    ParameterError,
)
from gaussnoise.files import disk as _disk
from gaussnoise.files import mounts as _mounts
from gaussnoise.files.mounts import Mount, mount_of
from gaussnoise.numerics.rounding import rounded_up
from gaussnoise.privacy import gaussian_epsilon
from gaussnoise.privacy import ledger_entries as _entries
from gaussnoise.privacy import ledger_file as _ledger_file
from gaussnoise.privacy import ledger_results as _results
from gaussnoise.privacy.ledger import Ledger
from gaussnoise.privacy.ledger_entries import units_of
from gaussnoise.privacy.protected import Protected
from gaussnoise.text import no_less

ROW = "add-remove, one row"


def drawing(number):
    """A writer, and the number of its calls; draws are made up, and differ by their order."""
    calls = []

    def write(path):
        calls.append(path)
        path.write_text(json.dumps(number + len(calls)), encoding="utf-8")

    return write, calls


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def once(
    ledger,
    id="a",
    *,
    cost=0.1,
    request=None,
    protects=ROW,
    target=None,
    write=None,
    read=read,
    draws=None,
    delta=0.0,
):
    request = {"what": 1} if request is None else request
    write = drawing(0)[0] if write is None else write
    options = {"protects": protects, "target": target, "write": write, "read": read, "draws": draws}
    options["delta"] = delta
    return ledger.once(id, cost=cost, request=request, **options)


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


@pytest.mark.parametrize(
    "id", ["", "a" * 201, "a/b", "a\\b", "a\nb", "a\0b", "\ud800", 7, None, b"a"]
)
def test_bad_ids(ledger, id):
    with pytest.raises(ParameterError, match="expected an id"):
        once(ledger, id)


@pytest.mark.parametrize(
    "cost", [-1e-300, float("nan"), float("inf"), "0.1", None, True, [0.1], 1j, 10**400]
)
def test_bad_costs(ledger, cost):
    with pytest.raises(ParameterError, match="cost"):
        once(ledger, cost=cost)
    assert ledger.entries() == ()


@pytest.mark.parametrize(
    "change",
    [
        {"delta": "0.1"},
        {"delta": None},
        {"protects": None},
        {"protects": b"rows"},
        {"protects": "\ud800"},
        {"request": None},
        {"request": ["what"]},
        {"request": {"what": object()}},
        {"request": {"what": {1, 2}}},
        {"draws": 10**4000},
    ],
)
def test_what_a_ledger_cannot_keep_is_refused(ledger, change):
    options = {"cost": 0.1, "request": {"what": 1}, "protects": ROW, "target": None} | change
    with pytest.raises(ParameterError, match="ledger: expected"):
        ledger.once("a", write=drawing(0)[0], read=read, **options)
    assert ledger.entries() == ()


# the cap


def test_what_no_longer_fits_is_refused_before_drawing(ledger):
    once(ledger, "a", cost=0.75)
    write, calls = drawing(0)
    with pytest.raises(BudgetError, match=r"at most rho = 0\.25, the rest of 1, got 0\.26"):
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
def test_equal_parts_add_up_despite_binary_fractions(tmp_path, rho, pieces, monkeypatch):
    monkeypatch.setattr(_disk.os, "fsync", lambda handle: None)
    ledger = Ledger.create(tmp_path / "l", gn.zCDP(rho))
    with _ledger_file.transaction(ledger.path, "IMMEDIATE") as database:  # all but one, at once
        units = -(-Fraction(rho / pieces) * 2**62 // Fraction(rho))
        row = (int(units), "sealed", "0" * 64, ROW, "{}", "x", "")
        insert = (
            "INSERT INTO entries (id, units, state, sha256, protects, request, target, "
            "begun) VALUES (?,?,?,?,?,?,?,?)"
        )
        database.executemany(insert, [(str(k), *row) for k in range(pieces - 1)])
    once(ledger, cost=rho / pieces)
    assert sum(Fraction(entry.rho) for entry in ledger.entries()) <= Fraction(rho) * (
        1 + Fraction(1, 10**12)
    )
    with pytest.raises(BudgetError):
        once(ledger, "more", cost=rho * 1e-11)


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.floats(1e-200, 1e200), st.floats(0, 1))
def test_charges_are_rounded_up_and_shown_rounded_up(rho, share):
    cost = share * rho
    charged = Fraction(units_of(cost, rho), 2**62) * Fraction(rho)
    assert cost <= charged < Fraction(cost) + Fraction(rho) / 2**62
    assert charged <= Fraction(rounded_up(charged)) <= charged * (1 + Fraction(1, 2**52))


def test_charges_under_another_relation_do_not_add_up(ledger):
    once(ledger)
    with pytest.raises(LedgerError, match="replace, one row"):
        once(ledger, "b", protects="replace, one row")
    assert len(ledger.entries()) == 1


PERSON = "one person (column 'id'), of whom at most {} counted"
ANY = Protected(PERSON.format("1 row is"), "add-remove", rows=None, person="id")
WORDS = PERSON.format("1 row is") + " in each of at most 3 ticks"
EVERY_TICK = Protected(WORDS, "add-remove", rows=None, person="id")
SOME_TICKS = Protected(WORDS, "add-remove", rows=None, person="id", reports=3)


def test_what_is_protected_is_compared_as_a_value(ledger):
    more = dataclasses.replace(ANY, unit=PERSON.format("4 rows are"))
    for id, same in (("a", ANY), ("b", more), ("c", EVERY_TICK), ("d", ANY)):
        once(ledger, id, protects=same)
    assert [entry.protects for entry in ledger.entries()][1] == more.words
    changes = (
        {"rows": 1},
        {"person": "house"},
        {"reports": 3},
        {"apart": 2},
        {"public": ("sex",)},
        {"neighbors": "replace"},
    )
    for change in changes:  # the words of the unit stay as they are
        with pytest.raises(LedgerError, match="do not add up"):
            once(ledger, "e", protects=dataclasses.replace(ANY, **change))
    assert len(ledger.entries()) == 4


@pytest.mark.parametrize(
    ("old", "same", "others"),
    [
        (PERSON.format("1 row is") + " under add-remove", [ANY, EVERY_TICK], [SOME_TICKS]),
        (PERSON.format("7 rows are") + " under add-remove", [ANY, EVERY_TICK], [SOME_TICKS]),
        # a stream of an older version goes on, but it is unknown whether it has more ticks
        (WORDS + " under add-remove", [EVERY_TICK], []),
        (WORDS + " under add-remove", [SOME_TICKS], [ANY]),
        ("one row under replace", [Protected("one row", "replace")], [ANY, EVERY_TICK]),
    ],
)
def test_entries_of_older_versions_are_compared_by_their_words(tmp_path, old, same, others):
    for k, other in enumerate([*same, *others]):
        ledger = Ledger.create(tmp_path / f"{k}", gn.zCDP(1.0))
        once(ledger, protects=old)
        edit(ledger.path, "ALTER TABLE entries DROP COLUMN protects_key")
        assert [entry.protects for entry in ledger.entries()] == [old]
        refused = pytest.raises(LedgerError, match="do not add up")
        with contextlib.nullcontext() if other in same else refused:
            once(ledger, "b", protects=other)
        assert len(ledger.entries()) == 1 + (other in same)


# what all charges so far imply


def test_epsilon_of_gaussians_is_that_of_one(ledger):
    """The reference is Balle & Wang (2018), Theorem 8, solved in this file."""
    assert ledger.epsilon(1e-6) == 0.0
    with pytest.raises(KeyboardInterrupt):
        once(ledger, "lost", cost=0.125, write=failing(KeyboardInterrupt()), draws=10)
    once(ledger, "a", cost=0.25, draws=1000)
    mu = math.sqrt(2 * 0.375)
    for delta in (1e-9, 1e-3, 0.2):

        def excess(epsilon, delta=delta):
            left, right = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
            return stats.norm.cdf(left) - math.exp(epsilon + stats.norm.logcdf(right)) - delta

        expected = optimize.brentq(excess, 0, 50, xtol=1e-14)
        assert expected <= ledger.epsilon(delta) <= expected * (1 + 1e-6)
        assert ledger.epsilon(delta) < gn.zCDP(0.375).epsilon(delta)
    assert [entry.draws for entry in ledger.entries()] == [10, 1000]


def test_epsilon_pays_for_every_draw(ledger):
    once(ledger, cost=0.25, draws=2**62)
    assert gaussian_epsilon(0.25, 1e-6, draws=2**62) > gaussian_epsilon(0.25, 1e-6) * (1 + 1e-6)
    assert ledger.epsilon(1e-6) == pytest.approx(
        gaussian_epsilon(0.25, 1e-6, draws=2**62), rel=1e-12
    )


def test_epsilon_of_other_noise_is_through_zcdp(ledger):
    once(ledger, "free", cost=0.0)
    assert ledger.epsilon(1e-6) == 0.0
    once(ledger, "a", cost=0.25, draws=1)
    once(ledger, "b", cost=0.25)
    assert ledger.epsilon(1e-6) == pytest.approx(gn.zCDP(0.5).epsilon(1e-6), rel=1e-12)


def losses(rng, steps, spends):
    """Privacy losses of 200 000 adaptive compositions of Gaussians, and the ρ spent.

    ``spends`` sees the losses so far.
    """
    loss, rho = np.zeros(200_000), np.zeros(200_000)
    for k in range(steps):
        cost = spends(k, loss, rho)
        loss += cost + np.sqrt(2 * cost) * rng.normal(
            size=len(loss)
        )  # log N(√(2ρ), 1)/N(0, 1), under the first
        rho += cost
    return loss, rho


def test_epsilon_holds_however_a_fixed_sum_is_split_by_results(ledger):
    """The δ of ε is estimated from adaptive compositions.

    The last case shows why the sum must not depend on results.
    """
    delta, rng = 0.05, np.random.default_rng(0)
    for k in range(5):
        once(ledger, str(k), cost=0.1, draws=1)
    epsilon = ledger.epsilon(delta)

    def split(k, loss, rho):
        return np.where(loss > 0, 0.1, 0.7) * (0.5 - rho) if k < 9 else 0.5 - rho

    loss, rho = losses(rng, 10, split)
    seen = np.maximum(-np.expm1(epsilon - loss), 0)
    assert np.allclose(rho, 0.5)
    assert abs(seen.mean() - delta) < 5 * seen.std() / math.sqrt(len(seen))

    claims = [gaussian_epsilon(0.05 * k, delta) for k in range(11)]

    def stop(k, loss, rho):
        done = (loss > claims[k]) & (rho > 0) | (rho < 0.05 * k - 1e-9)
        return np.where(done, 0.0, 0.05)

    loss, rho = losses(rng, 10, stop)
    seen = np.maximum(-np.expm1(np.array(claims)[np.rint(rho / 0.05).astype(int)] - loss), 0)
    assert seen.mean() > 1.5 * delta


@pytest.mark.parametrize("draws", [-1, 1.0, "1", 2**63])
def test_bad_draws(ledger, draws):
    with pytest.raises(ParameterError, match="number of draws"):
        once(ledger, draws=draws)
    assert ledger.entries() == ()


@pytest.mark.parametrize("delta", [0, 1, -1.0, float("nan")])
@pytest.mark.parametrize("draws", [None, 1])
def test_bad_deltas(ledger, delta, draws):
    once(ledger, draws=draws)
    with pytest.raises(ParameterError, match="delta"):
        ledger.epsilon(delta)


def test_ledgers_of_before_draws_were_kept(ledger):
    once(ledger, "old", cost=0.25)
    edit(ledger.path, "ALTER TABLE entries DROP COLUMN draws")
    assert [entry.draws for entry in ledger.entries()] == [None]
    assert ledger.epsilon(1e-6) == pytest.approx(gn.zCDP(0.25).epsilon(1e-6), rel=1e-12)
    assert once(ledger, "old") == 1
    once(ledger, "new", draws=7)
    assert [entry.draws for entry in ledger.entries()] == [None, 7]


@pytest.fixture
def small():
    """A small plan, and a table for it."""
    schema = gn.Schema([gn.Attribute("a", [1, 2]), gn.Attribute("b", [1, 2, 3])])
    return gn.plan(schema, 2, gn.zCDP(0.1)), pa.table({"a": [1, 2], "b": [1, 3]})


def test_releases_say_what_they_draw(ledger, small, tmp_path):
    plan, table = small
    plan.release(table, out=tmp_path / "out", ledger=ledger, id="tables")
    noise = gn.optimal_noise(
        gn.FiniteSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), neighbors="add-remove"
    )
    assert [entry.draws for entry in ledger.entries()] == [plan.integers]
    assert ledger.epsilon(1e-6) == pytest.approx(gaussian_epsilon(0.1, 1e-6), rel=1e-6)
    gn.GaussianMechanism(noise, gn.zCDP(0.2)).release(counts=[1, 2, 3], ledger=ledger, id="sums")
    bounds = gaussian_epsilon(0.3, 1e-6), gn.zCDP(0.3).epsilon(1e-6)
    assert any(ledger.epsilon(1e-6) == pytest.approx(bound, rel=1e-6) for bound in bounds)


def test_another_rule_for_rows_outside_is_another_release(ledger, small, tmp_path):
    plan, table = small
    first = plan.release(table, out=tmp_path / "out", ledger=ledger, id="tables", on_outside="drop")
    with pytest.raises(LedgerError):
        plan.release(table, out=tmp_path / "out", ledger=ledger, id="tables")
    again = plan.release(table, out=tmp_path / "out", ledger=ledger, id="tables", on_outside="drop")
    np.testing.assert_array_equal(first["a", "b"].estimate, again["a", "b"].estimate)
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove"), gn.zCDP(0.2)
    )
    mechanism.release([[0.0, 2.0]], ledger=ledger, id="sums", on_outside="drop")
    with pytest.raises(LedgerError):
        mechanism.release([[0.0, 2.0]], ledger=ledger, id="sums", on_outside="project")
    assert [entry.id for entry in ledger.entries()] == ["tables", "sums"]


# directories


def directory(number):
    def write(folder):
        folder.mkdir()
        (folder / "tables").mkdir()
        (folder / "tables" / "t.csv").write_text(f"{number}\n", encoding="utf-8")
        files = {"tables/t.csv": _disk.file_digest(folder / "tables" / "t.csv")}
        (folder / "release.json").write_text(json.dumps({"files": files}), encoding="utf-8")

    return write


def read_table(folder):
    return int((folder / "tables" / "t.csv").read_text(encoding="utf-8"))


def test_directories(ledger, tmp_path):
    def release(out, number):
        return once(ledger, write=directory(number), target=tmp_path / out, read=read_table)

    assert release("out", 1) == release("out", 2) == 1
    (entry,) = ledger.entries()
    assert (
        entry.sha256 == hashlib.sha256((tmp_path / "out" / "release.json").read_bytes()).hexdigest()
    )
    (tmp_path / "out").rename(tmp_path / "moved")
    assert release("moved", 2) == 1
    with pytest.raises(LedgerError, match="missing, unreadable or was changed"):
        release("out", 2)
    (tmp_path / "moved" / "tables" / "t.csv").write_text("3\n", encoding="utf-8")
    with pytest.raises(LedgerError, match="missing, unreadable or was changed"):
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
    with pytest.raises(OutputError, match="exists already"):
        once(ledger, write=directory(1), target=out)
    assert ledger.entries() == ()


def test_a_place_taken_meanwhile_keeps_the_result_aside(ledger, tmp_path):
    out = tmp_path / "out"

    def write(folder):
        directory(1)(folder)
        out.mkdir()

    with pytest.raises(OutputError, match="move it away and run again"):
        once(ledger, write=write, target=out)
    assert [entry.state for entry in ledger.entries()] == ["written"]
    with pytest.raises(LedgerError, match="was begun at"):
        once(ledger, write=directory(2), target=tmp_path / "other")
    out.rmdir()
    assert once(ledger, write=directory(2), target=out, read=read_table) == 1
    assert [entry.state for entry in ledger.entries()] == ["sealed"]
    assert not partials(tmp_path)


# what goes wrong while drawing


def refusing(path):
    raise DataError("no")


def failing(error):
    def write(path):
        path.write_text("1", encoding="utf-8")
        raise error

    return write


SECRET = "column 'income' holds 104729"


@pytest.mark.parametrize(
    "prepare", [lambda path: None, lambda path: (path / "tables").mkdir(parents=True)]
)
def test_a_refusal_of_the_data_is_recorded_without_a_charge(ledger, prepare):
    def write(path):
        prepare(path)
        raise DataError(SECRET) from ValueError(SECRET)

    for _ in range(3):
        with pytest.raises(DataError, match="not said where") as caught:
            once(ledger, write=write)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__cause__ is caught.value.__context__ is None
    assert [(e.attempt, e.id, e.state, e.rho, e.draws) for e in ledger.entries()] == [
        (k, "a", "refused", 0.0, 0) for k in (1, 2, 3)
    ]
    assert SECRET.encode() not in ledger.path.read_bytes()
    assert (ledger.spent, ledger.epsilon(1e-6)) == (0.0, 0.0)
    assert not partials(ledger.path.parent)
    assert once(ledger, request={"another": 1}) == 1  # a refusal takes no id
    assert [(e.attempt, e.state) for e in ledger.entries()][-1] == (4, "sealed")


def test_a_refusal_after_something_was_written_says_no_more(ledger):
    with pytest.raises(DataError, match="not said where") as caught:
        once(ledger, write=failing(DataError(SECRET)))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert [entry.state for entry in ledger.entries()] == ["reserved"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="folders are held on Linux only")
def test_a_result_that_is_carried_off_stays_charged(ledger):
    def write(path):
        path.write_text("drawn", encoding="utf-8")
        (scratch,) = ledger._results.folder.glob("*.partial")
        scratch.rename(scratch.with_name("carried off"))
        scratch.mkdir()
        raise DataError(SECRET)

    with pytest.raises(DataError, match="not said where"):
        once(ledger, write=write)
    assert [entry.state for entry in ledger.entries()] == ["reserved"]


@pytest.mark.parametrize("kind", [ParameterError, NotAvailableError, gn.GaussNoiseError])
def test_refusals_of_other_classes_are_recorded_and_stay_as_they_are(ledger, kind):
    def write(path):
        raise kind("expected 3")

    with pytest.raises(kind, match="expected 3"):
        once(ledger, write=write)
    assert [(entry.state, entry.rho) for entry in ledger.entries()] == [("refused", 0.0)]


def test_tables_are_refused_without_their_column(ledger, small, tmp_path):
    plan, _ = small
    with pytest.raises(DataError) as caught:
        plan.release(
            pa.table({"a": [1, 7], "b": [1, 3]}), out=tmp_path / "out", ledger=ledger, id="x"
        )
    said = "".join(traceback.format_exception(caught.value))
    assert "'a'" not in said.split("DataError")[-1]
    assert "During handling" not in said
    assert [(entry.state, entry.rho) for entry in ledger.entries()] == [("refused", 0.0)]


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "full"),
        OutputError("full"),
        KeyboardInterrupt(),
        ZeroDivisionError(),
        DataError("too late"),
    ],
)
def test_all_other_failures_stay_charged(ledger, error):
    expected = OutputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        once(ledger, write=failing(error))
    assert [entry.state for entry in ledger.entries()] == ["reserved"]
    assert ledger.spent == pytest.approx(0.1, rel=1e-12)
    assert not partials(ledger.path.parent)
    assert once(ledger, write=drawing(5)[0]) == 6
    assert [entry.state for entry in ledger.entries()] == ["lost", "sealed"]
    assert ledger.spent == pytest.approx(0.2, rel=1e-12)


@pytest.mark.parametrize(
    "error", [PermissionError(13, "mine"), DataError("mine"), KeyError("mine")]
)
@pytest.mark.parametrize("under", ["no ledger", "a ledger"])
def test_what_a_progress_callback_raises_passes_as_it_is(ledger, small, tmp_path, error, under):
    plan, table = small
    options = {"ledger": ledger, "id": "x"} if under == "a ledger" else {}

    def fail(done, total):
        raise error

    with pytest.raises(type(error)) as caught:
        plan.release(table, out=tmp_path / "out", progress=fail, **options)
    assert caught.value is error
    assert "_CallbackError" not in "".join(traceback.format_exception(error))
    assert not (tmp_path / "out").exists()
    assert not partials(tmp_path)
    assert [entry.state for entry in ledger.entries()] == ["reserved"] * (
        "id" in options
    )  # noise was there
    plan.release(table, out=tmp_path / "out", progress=lambda done, total: None, **options)


def test_a_second_attempt_needs_budget(ledger):
    with pytest.raises(KeyboardInterrupt):
        once(ledger, cost=0.6, write=failing(KeyboardInterrupt()))
    with pytest.raises(BudgetError):
        once(ledger, cost=0.6)
    assert [entry.state for entry in ledger.entries()] == ["reserved"]


def test_a_writer_that_writes_nothing(ledger):
    with pytest.raises(OutputError, match="could not write the result"):
        once(ledger, write=lambda path: None)


@pytest.mark.parametrize("files", [None, {"gone.csv": "0" * 64}])
def test_a_directory_must_pin_its_files(ledger, tmp_path, files):
    def write(folder):
        folder.mkdir()
        (folder / "release.json").write_text(
            json.dumps({} if files is None else {"files": files}), encoding="utf-8"
        )

    with pytest.raises(OutputError, match="incomplete"):
        once(ledger, write=write, target=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_writer_without_its_lock_cannot_publish(ledger):
    """If lock files are deleted under a living writer, both draws are charged, one is published."""

    def slow(path):
        path.write_text("1", encoding="utf-8")
        for lock in ledger._results.folder.glob("*.lock"):
            lock.unlink()
        assert once(ledger, write=drawing(10)[0]) == 11

    with pytest.raises((LedgerError, OutputError)):
        once(ledger, write=slow)
    assert once(ledger) == 11
    assert [entry.state for entry in ledger.entries()] == ["lost", "sealed"]


# the file


@pytest.mark.parametrize("budget", [1.0, "1", None, gn.ApproxDP(1.0, 1e-6)])
def test_a_budget_is_zcdp(tmp_path, budget):
    with pytest.raises(ParameterError, match="expected a budget"):
        Ledger.create(tmp_path / "l", budget)


def test_a_ledger_is_never_overwritten(ledger):
    before = ledger.path.read_bytes()
    with pytest.raises(OutputError, match="exists already"):
        Ledger.create(ledger.path, gn.zCDP(5.0))
    assert ledger.path.read_bytes() == before
    assert not partials(ledger.path.parent)
    with pytest.raises(OutputError, match="cannot write"):
        Ledger.create(ledger.path.parent / "nowhere" / "l", gn.zCDP(5.0))


def test_ledgers_by_path(ledger):
    assert Ledger.of(ledger) is ledger
    assert Ledger.of(str(ledger.path)).rho == Ledger.of(ledger.path).rho == 1.0
    with pytest.raises(ParameterError, match="Ledger or its path"):
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
    "a newer format": (
        lambda path: edit(path, "PRAGMA user_version = 5"),
        "expected a format from 1 to 4 at .*, got 5",
    ),
    "a delta that is missing": (lambda path: edit(path, "PRAGMA user_version = 2"), "damaged"),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:5000]), "damaged"),
    "overwritten": (
        lambda path: path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 12288),
        "damaged",
    ),
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

    monkeypatch.setattr(_ledger_file.sqlite3, "connect", limited)


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


def test_a_ledger_that_another_program_keeps_busy(ledger, monkeypatch):
    monkeypatch.setattr(_ledger_file, "_BUSY_SECONDS", 0.1)
    with contextlib.closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert ledger.entries() == ()
        with pytest.raises(LedgerError, match="is busy"):
            once(ledger)
        other.execute("ROLLBACK")
    assert once(ledger) == 1


# one name


def first_format(path):
    """A ledger of the first format, which had a write-ahead log."""
    Ledger.create(path, gn.zCDP(1.0))
    later = [f"ALTER TABLE entries DROP COLUMN {name}" for name in ("draws", "protects_key")]
    edit(path, "DROP TABLE refusals", "DROP TABLE home", *later)
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    return path


PACKAGE = Path(gn.__file__).parent
# Load the ledger alone, through empty packages: a tenth of a second instead of one.
PACKAGES = [
    ("domains", str(Path(domains.__file__).parent)),
    ("gaussnoise", str(PACKAGE)),
    ("gaussnoise.privacy", str(PACKAGE / "privacy")),
]
BARE = f"""
import sys, types
for name, path in {PACKAGES!r}:
    bare = sys.modules[name] = types.ModuleType(name)
    bare.__path__ = [path]
from gaussnoise.privacy.ledger import Ledger
from gaussnoise.errors import BudgetError, LedgerError
"""
ATTACK = """
import sqlite3
path, ids = sys.argv[1], sys.argv[2:]
keep = sqlite3.connect(path)  # the program that closes it last would copy the log into the file
keep.execute("SELECT * FROM entries").fetchall()
drawn = 0
for id in ids:
    try:
        Ledger.open(path).once(
            id, cost=0.1, request={}, protects="rows", target=None,
            write=lambda p: p.write_text("1"), read=str, draws=1
        )
        drawn += 1
    except (BudgetError, LedgerError):
        pass
print(drawn, flush=True)
sys.stdin.read()
"""


def attack(path, prefix):
    """A program that releases 0.1 ten times over one name of a ledger, and how often it could.

    It keeps the ledger open.
    """
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        BARE + ATTACK,
        str(path),
        *(f"{prefix}{k}" for k in range(10)),
    ]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return program, int(program.stdout.readline())


@pytest.mark.parametrize("format", ["first", "new"])
def test_a_hard_link_does_not_double_the_budget(tmp_path, format):
    path, other = tmp_path / "l", tmp_path / "other"
    first_format(path) if format == "first" else Ledger.create(path, gn.zCDP(1.0))
    os.link(path, other)
    attacks = [attack(path, "a"), attack(other, "b")]
    for program, _ in attacks:
        program.communicate(timeout=60)
    assert [drawn for _, drawn in attacks] == [0, 0]
    for name in (path, other):
        with pytest.raises(LedgerError, match=r"one name.*hard link"):
            Ledger.open(name)
    other.unlink()
    assert [once(Ledger.open(path), str(k)) for k in range(10)] == [1] * 10
    with pytest.raises(BudgetError):
        once(Ledger.open(path), "more")


MOUNT = """
set -e
mount --bind "$1" "$2"
"$3" -c 'import gaussnoise as gn, sys
try: gn.Ledger.open(sys.argv[1])
except gn.errors.LedgerError as error: print(error)' "$2"
mount --bind "$4" "$5"
"$3" -c 'import gaussnoise as gn, sys
for k, folder in enumerate(sys.argv[1:]):
    gn.Ledger.open(folder + "/l").once(str(k), cost=0.1, request={}, protects="rows",
        target=None, read=str,
        write=lambda p: p.write_text("1"))
print(len(gn.Ledger.open(folder + "/l").entries()))' "$4" "$5" "$4"
"""


def test_a_mounted_file_is_refused_and_a_mounted_folder_is_not(tmp_path):
    for name in ("place", "mounted"):
        (tmp_path / name).mkdir()
    path, other = tmp_path / "place" / "l", tmp_path / "other"
    Ledger.create(path, gn.zCDP(1.0))
    other.touch()
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this test mounts, and may not here")
    words = [path, other, sys.executable, tmp_path / "place", tmp_path / "mounted"]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", MOUNT, "sh", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refused, count = done.stdout.splitlines()
    assert "a file that is mounted there" in refused
    assert count == "3"


def test_mounts_are_read_as_linux_writes_them():
    table = (
        "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "23 22 0:40 / /mnt/a\\040b rw shared:3 - nfs4 server:/x rw\n"
        "24 23 0:41 / /mnt/a\\040b/c rw - fuse.sshfs host: rw\nnonsense\n25 22 8:1 / /m rw - xfs "
        "/dev/sda rw\n"
        "26 22 8:2 / /m rw - fuseblk /dev/sdb rw\n"
    )
    kinds = {
        "/x": "ext4",
        "/mnt/a b/l": "nfs4",
        "/mnt/a b/c/l": "fuse.sshfs",
        "/mnt/a": "ext4",
        "/m/l": "fuseblk",
    }
    found = {path: mount_of(Path(path), table) for path in kinds}
    assert {path: mount.kind for path, mount in found.items()} == kinds
    assert [mount.shared for mount in found.values()] == [False, True, True, False, False]
    assert mount_of(Path("/x"), "") is None
    local = (
        "ext4",
        "xfs",
        "btrfs",
        "overlay",
        "tmpfs",
        "zfs",
        "ext3",
        "f2fs",
        "apfs",
        "vfat",
        "fuseblk",
    )
    assert not any(Mount("/", kind).shared for kind in local)
    assert all(
        Mount("/", kind).shared
        for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "lustre", "fuse.glusterfs")
    )


def test_ledgers_are_not_created_on_shared_disks_and_warn_there(ledger, tmp_path, monkeypatch):
    (tmp_path / "table").write_text("22 1 0:50 / / rw - nfs4 server:/ rw\n")
    monkeypatch.setattr(_mounts, "_TABLE", tmp_path / "table")
    with pytest.raises(LedgerError, match="local disk, got nfs4 at /,"):
        Ledger.create(tmp_path / "new", gn.zCDP(1.0))
    assert not (tmp_path / "new").exists()
    with pytest.warns(LedgerWarning, match="is on nfs4"):
        opened = Ledger.open(ledger.path)
    assert once(opened) == 1


def test_the_name_it_was_created_under_is_forgotten(ledger):
    """The names are as after a kill between linking the final name and removing the first one."""
    left = ledger.path.with_name(f".{ledger.path.name}.0123456789abcdef.partial")
    left.mkdir()
    os.link(ledger.path, left / "result")
    os.link(
        ledger.path, ledger.path.with_name(f".{ledger.path.name}.abcdefgh.partial")
    )  # of the first ledgers
    assert once(ledger) == 1
    assert os.stat(ledger.path).st_nlink == 1


def test_the_first_ledgers_leave_their_write_ahead_log(tmp_path):
    path = first_format(tmp_path / "l")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("SELECT * FROM entries").fetchall()
        reader.execute(
            "INSERT INTO entries VALUES (7, 'old', 0, 'lost', NULL, 'rows', '{}', 'x', '')"
        )
        assert [entry.id for entry in Ledger.open(path).entries()] == [
            "old"
        ]  # while another has it open
    assert once(Ledger.open(path), protects="rows") == 1
    assert [(entry.attempt, entry.id) for entry in Ledger.open(path).entries()] == [
        (7, "old"),
        (8, "a"),
    ]
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert not path.with_name("l-wal").exists()


def test_a_write_ahead_log_that_another_program_keeps_is_not_charged_to(tmp_path, monkeypatch):
    monkeypatch.setattr(_ledger_file, "_BUSY_SECONDS", 0.1)
    path = first_format(tmp_path / "l")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("SELECT * FROM entries").fetchall()
        with pytest.raises(LedgerError, match="is busy"):
            once(Ledger.open(path))
    assert once(Ledger.open(path)) == 1


def test_a_ledger_may_be_moved_and_put_back(ledger, tmp_path):
    once(ledger, target=tmp_path / "r")
    elsewhere = tmp_path / "folder"
    elsewhere.mkdir()
    ledger.path.rename(elsewhere / "moved")
    moved = Ledger.open(elsewhere / "moved")
    assert once(moved, "b") == 1
    assert once(moved, target=tmp_path / "r") == 1
    Ledger.create(ledger.path, gn.zCDP(1.0))  # another one, where it was
    assert once(moved, "c") == 1
    backup = (elsewhere / "moved").read_bytes()
    once(moved, "d")
    (elsewhere / "moved").write_bytes(backup)
    assert [entry.id for entry in moved.entries()] == ["a", "b", "c"]
    assert once(moved, "e") == 1


def test_a_copy_can_be_read_but_not_charged(ledger):
    once(ledger)
    copy = ledger.path.with_name("copy")
    copy.write_bytes(ledger.path.read_bytes())
    assert [entry.id for entry in Ledger.open(copy).entries()] == ["a"]
    with pytest.raises(LedgerError, match="is a copy of"):
        once(Ledger.open(copy), "b")
    ledger.path.unlink()
    assert once(Ledger.open(copy), "b") == 1


def test_a_crash_in_a_charge_is_undone_and_a_move_without_its_journal_is_refused(ledger):
    once(ledger)
    journal, moved = (
        ledger.path.with_name(ledger.path.name + "-journal"),
        ledger.path.with_name("moved"),
    )
    code = (
        "import sqlite3, os, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "d.execute('PRAGMA cache_size = 1'); d.execute('BEGIN IMMEDIATE'); d.execute('DELETE "
        "FROM entries');"
        "d.executemany('INSERT INTO home VALUES (?, ?)', [('x' * 3000, b'')] * 200); "
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(ledger.path)], check=False)
    assert journal.exists()
    crashed, left = ledger.path.read_bytes(), journal.read_bytes()
    ledger.path.rename(moved)
    with pytest.raises(LedgerError, match=r"without its journal|damaged"):
        once(Ledger.open(moved), "b")
    moved.write_bytes(crashed)
    journal.rename(moved.with_name("moved-journal"))
    assert left == moved.with_name("moved-journal").read_bytes()
    assert [entry.id for entry in Ledger.open(moved).entries()] == ["a"]
    assert once(Ledger.open(moved), "b") == 1


def test_order_does_not_depend_on_the_clock(ledger, monkeypatch):
    times = iter([datetime(2030, 1, 1), datetime(1970, 1, 1), datetime(2000, 1, 1)])

    class Clock:
        @staticmethod
        def now(zone):
            return next(times)

    monkeypatch.setattr(_results, "datetime", Clock)
    with pytest.raises(KeyboardInterrupt):
        once(ledger, write=failing(KeyboardInterrupt()))
    once(ledger)
    once(ledger, "b")
    found = [(entry.id, entry.state, entry.begun[:4]) for entry in ledger.entries()]
    assert found == [("a", "lost", "2030"), ("a", "sealed", "1970"), ("b", "sealed", "2000")]


# what the operating system refuses


TRY_ALL = """
import os, sys
import numpy as np
import gaussnoise as gn
from gaussnoise.errors import GaussNoiseError
mechanism = gn.GaussianMechanism(gn.optimal_noise(gn.FiniteSet(np.eye(2))), gn.zCDP(0.1), n=2)
schema = gn.Schema([gn.Attribute("a", [1, 2])])
plan = gn.plan(schema, 1, gn.zCDP(0.1))
import pyarrow as pa
table = pa.table({"a": [1]})
ledger, folder, mine, warm = sys.argv[1:]
# loads what is loaded late: others may not read this installation
plan.release(table, out=warm + "/out")
mechanism.release(counts=[1, 1], ledger=gn.Ledger.create(warm + "/l", gn.zCDP(1.0)), id="x")
if os.getuid() == 0:
    os.setuid(65534)
own = gn.Ledger.create(mine + "/own", gn.zCDP(1.0))
for call in [
    lambda: gn.Ledger.open(ledger),
    lambda: gn.Ledger.create(ledger + "2", gn.zCDP(1.0)),
    lambda: mechanism.release(counts=[1, 1], ledger=ledger, id="x"),
    lambda: plan.release(table, out=folder + "/out"),
    lambda: plan.release(table, out=folder + "/out/deeper"),
    lambda: plan.release(table, out=folder + "/out", ledger=own, id="x"),
    lambda: plan.release(table, out=folder + "/out/deeper", ledger=own, id="y"),
    lambda: mechanism.release(counts=[1, 1]).save(folder + "/x"),
    lambda: gn.Release.load(folder + "/x", mechanism.covariance),
    lambda: gn.TableRelease.load(folder + "/x", plan),
]:
    try:
        call()
    except GaussNoiseError as error:
        print(type(error).__name__)
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="POSIX permissions")
def test_what_may_not_be_read_or_written_is_a_typed_error():
    with tempfile.TemporaryDirectory() as place:  # pytest's own is closed to others
        os.chmod(place, 0o755)
        closed, mine, warm = (Path(place, name) for name in ("closed", "mine", "warm"))
        for folder in (closed, mine, warm):
            folder.mkdir()
        mine.chmod(0o777)
        Ledger.create(closed / "l", gn.zCDP(1.0))
        closed.chmod(0o000)
        words = [sys.executable, "-c", TRY_ALL, closed / "l", closed, mine, warm]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
        closed.chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        "LedgerError",
        "OutputError",
        "LedgerError",
        *["OutputError"] * 7,
    ]


@pytest.mark.parametrize("path", [3, None, "a\0b", "\udcff", b"\xff"])
def test_what_is_no_path(ledger, path):
    for call in (
        Ledger.open,
        lambda path: Ledger.create(path, gn.zCDP(1.0)),
        lambda path: once(ledger, target=path),
    ):
        if path is not None or call in (Ledger.open,):
            with pytest.raises(ParameterError, match="expected a path"):
                call(path)
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger.open("x" * 5000)
    assert ledger.entries() == ()


# thresholds


@pytest.fixture
def with_delta(tmp_path):
    return Ledger.create(tmp_path / "delta.ledger", gn.zCDP(1.0), delta=1e-6)


def test_deltas_add_up_exactly(with_delta):
    """Ten times a tenth fit exactly: nothing more is allowed, and nothing else is refused."""
    for k in range(10):
        once(with_delta, f"a{k}", cost=0.01, delta=1e-7)
    assert with_delta.spent_delta == pytest.approx(1e-6, rel=1e-11)
    write, calls = drawing(0)
    with pytest.raises(BudgetError, match="delta"):
        once(with_delta, "more", cost=0.01, delta=1e-15, write=write)
    assert not calls
    once(with_delta, "more", cost=0.01)
    assert [entry.delta for entry in with_delta.entries()][-2:] == [pytest.approx(1e-7), 0.0]
    assert Fraction(with_delta.entries()[0].delta) >= Fraction(1e-7)
    assert Ledger.open(with_delta.path).delta == 1e-6


@settings(max_examples=10, deadline=None)
@given(st.lists(st.floats(1e-12, 2e-6), max_size=6))
def test_deltas_never_exceed_the_budget(deltas):
    with tempfile.TemporaryDirectory() as folder:
        ledger, charged = Ledger.create(f"{folder}/l", gn.zCDP(1.0), delta=1e-6), Fraction(0)
        for k, delta in enumerate(deltas):
            fits = charged + Fraction(delta) <= Fraction(1e-6)
            try:
                once(ledger, str(k), cost=0.0, delta=delta)
            except BudgetError:
                assert not fits
            else:
                charged += Fraction(delta)
                assert charged <= Fraction(1e-6) * (1 + Fraction(1, 10**12))
        assert Fraction(ledger.spent_delta) >= charged


def test_a_ledger_without_delta_refuses_thresholds_and_is_of_the_first_format(ledger, with_delta):
    write, calls = drawing(0)
    with pytest.raises(BudgetError, match=r"delta=\.\.\."):
        once(ledger, delta=1e-9, write=write)
    assert not calls
    assert not ledger.entries()
    assert (ledger.delta, ledger.spent_delta) == (0.0, 0.0)
    for one, version in ((ledger, 1), (with_delta, 2)):
        with contextlib.closing(sqlite3.connect(one.path)) as database:
            assert database.execute("PRAGMA user_version").fetchone() == (version,)
            columns = [row[1] for row in database.execute("PRAGMA table_info(entries)")]
        assert ("delta_units" in columns) == (version == 2)


def test_epsilon_takes_off_what_thresholds_spent(with_delta):
    once(with_delta, "noise", cost=0.25, draws=3)
    assert with_delta.epsilon(1e-6) == gaussian_epsilon(0.25, 1e-6, draws=3)
    once(with_delta, "threshold", cost=0.25, delta=5e-7)
    assert with_delta.epsilon(1e-6) == pytest.approx(gn.zCDP(0.5).epsilon(5e-7), rel=1e-9)
    assert with_delta.epsilon(1e-6) >= gn.zCDP(0.5).epsilon(5e-7)
    for delta in (5e-7, 1e-9, 0.0, 1.0, "1e-6", None):
        with pytest.raises(ParameterError, match="< delta < 1"):
            with_delta.epsilon(delta)


def test_a_threshold_alone_costs_no_epsilon(with_delta):
    once(with_delta, cost=0.0, delta=5e-7)
    assert with_delta.epsilon(1e-6) == 0.0


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, "1e-6", True])
def test_deltas_out_of_range_are_refused(tmp_path, delta):
    with pytest.raises(ParameterError, match="delta"):
        Ledger.create(tmp_path / "l", gn.zCDP(1.0), delta=delta)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["NULL", "'much'", "'0x0p0'", "'-0x1p-3'", "'0x1p0'"])
def test_a_damaged_delta_is_refused(with_delta, damage):
    edit(with_delta.path, f"UPDATE budget SET delta = {damage}")
    write, calls = drawing(0)
    with pytest.raises(LedgerError, match="damaged"):
        once(with_delta, write=write)
    assert not calls


def test_delta_is_charged_with_rho_or_neither_is(with_delta):
    """A fault between the two statements of a charge undoes the first."""
    edit(
        with_delta.path,
        "CREATE TRIGGER fault BEFORE UPDATE OF delta_units ON entries BEGIN SELECT "
        "RAISE(ABORT, 'x'); END",
    )
    write, calls = drawing(0)
    with pytest.raises(LedgerError):
        once(with_delta, delta=1e-7, write=write)
    assert not calls
    assert not with_delta.entries()
    assert with_delta.spent == with_delta.spent_delta == 0.0


def test_killed_programs_lose_their_delta_and_refusals_give_it_back(with_delta):
    killed(with_delta, "dead", signal.SIGKILL, delta=4e-7)
    assert with_delta.spent_delta == pytest.approx(4e-7)
    assert once(with_delta, "dead", delta=4e-7) == 1  # drawn again, charged again
    deltas = [(entry.state, entry.delta) for entry in with_delta.entries()]
    assert deltas == [("lost", pytest.approx(4e-7)), ("sealed", pytest.approx(4e-7))]

    def refuse(path):
        raise DataError("no")

    before = with_delta.spent_delta
    with pytest.raises(DataError):
        once(with_delta, "refused", delta=1e-7, write=refuse)
    assert with_delta.spent_delta == before
    assert with_delta.entries()[-1].state == "refused"


# leftovers


def killed(ledger, id, signal_number, delta=0.0):
    """A program that dies in the middle of writing its result, and what it left."""
    code = (
        "import os\n"
        "def write(path):\n    path.write_text('drawn')\n    os.kill(os.getpid(), "
        "int(sys.argv[3]))\n"
        "Ledger.open(sys.argv[1]).once(sys.argv[2], cost=0.1, request={'what': 1}, "
        f"protects={ROW!r}, target=None, write=write, read=str, delta={delta!r})"
    )
    command = [
        sys.executable,
        "-I",
        "-S",
        "-c",
        BARE + code,
        str(ledger.path),
        id,
        str(int(signal_number)),
    ]
    subprocess.run(command, check=False)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("start", ["open", "release"])
def test_what_dead_programs_left_goes_at_the_next_start(ledger, number, start):
    killed(ledger, "dead", number)
    (left,) = [path for path in partials(ledger._results.folder) if path.is_dir()]
    assert (left / "result").read_text() == "drawn"
    assert left.stat().st_mode & 0o077 == 0
    Ledger.open(ledger.path) if start == "open" else once(ledger, "another")
    assert not partials(ledger._results.folder)
    states = [(entry.id, entry.state) for entry in ledger.entries()]
    assert states[0] == ("dead", "reserved")
    assert once(ledger, "dead") == 1  # drawn again, charged again
    assert [entry.state for entry in ledger.entries() if entry.id == "dead"] == ["lost", "sealed"]


def test_what_living_programs_write_stays(ledger):
    def write(path):
        path.write_text("1", encoding="utf-8")
        Ledger.open(ledger.path)
        assert once(ledger, "another") == 1
        assert path.exists()

    assert once(ledger, write=write) == 1


def test_a_complete_result_waits_for_its_id(ledger, monkeypatch):
    monkeypatch.setattr(_results, "publish", fail_to_publish)
    with pytest.raises(KeyboardInterrupt):
        once(ledger, write=drawing(4)[0])
    monkeypatch.undo()
    Ledger.open(ledger.path)
    once(ledger, "another")
    assert [entry.state for entry in ledger.entries()] == ["written", "sealed"]
    assert once(ledger, write=drawing(7)[0]) == 5


def fail_to_publish(*arguments):
    raise KeyboardInterrupt


def test_a_written_result_of_the_first_ledgers_is_published(ledger, monkeypatch):
    """In the first ledgers, the scratch path was the result itself."""
    monkeypatch.setattr(_results, "publish", fail_to_publish)
    with pytest.raises(KeyboardInterrupt):
        once(ledger, write=drawing(4)[0])
    monkeypatch.undo()
    (scratch,) = ledger._results.folder.glob("*.partial")
    content = (scratch / "result").read_bytes()
    _disk.remove(scratch)
    scratch.write_bytes(content)
    assert once(ledger, write=drawing(7)[0]) == 5
    assert not partials(ledger._results.folder)


def test_a_file_in_the_way_of_the_results(ledger):
    ledger._results.folder.write_text("")
    with pytest.raises(LedgerError, match="cannot create"):
        once(ledger)


def test_threads(ledger):
    results, write = [], drawing(0)[0]

    def slow(path):
        time.sleep(0.05)
        write(path)

    threads = [
        threading.Thread(target=lambda: results.append(once(ledger, write=slow))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1] * 4
    assert len(ledger.entries()) == 1


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
    status, shown, _ = call("ledger show l --delta 1e-3")
    assert status == 0
    spent, budget = gaussian_epsilon(0.7, 1e-3), gn.zCDP(1.0).epsilon(1e-3)
    assert (
        f"epsilon at delta 0.001: {no_less(spent, 4)} for what is spent by its Gaussian noise, "
        f"{no_less(budget, 4)} for the budget by any noise" in shown
    )
    assert "epsilon at delta 1e-06: " in call("ledger show l")[1]
    assert "\n    protects: one row under add-remove\n" in shown
    assert "budget rho 1, spent 0.7, left 0.3; charges: 1" in shown
    assert "of [red]May" in shown
    assert (
        hashlib.sha256((tmp_path / "out" / "release.json").read_bytes()).hexdigest()[:12] in shown
    )
    assert "7.25" not in (tmp_path / "l").read_bytes().decode("latin-1") + shown


DECIMALS = st.integers(1, 9999).map(lambda k: Decimal(k).scaleb(-4))


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(DECIMALS, min_size=1, max_size=30), st.sampled_from([1, 3, 7, 100_000]))
def test_what_is_spent_reads_as_the_sum_of_decimal_costs(costs, times):
    """Reference: decimal arithmetic. With costs that small, only an upper bound is asked for."""
    total = sum(costs)
    for budget, small in ((total, 1), (times * total, 1), (times * total, Decimal("1e-12"))):
        units = sum(units_of(float(small * cost), float(budget)) for cost in costs)
        spent = rounded_up(Fraction(units, _entries.BUDGET_UNITS) * Fraction(float(budget)))
        used, left = _entries.spent_and_left(spent, len(costs), float(budget))
        shown = min(Context(6, ROUND_CEILING).plus(small * total), budget)
        assert float(used) >= float(shown) * (1 - 1e-12)
        if small == 1:
            assert (float(used), float(left)) == (float(shown), float(budget - shown))
            assert (left == "0") == (budget == shown)


def test_ten_tenths_are_all_and_the_unit_is_legible_in_80_columns(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ledger = Ledger.create("l", gn.zCDP(1.0), delta=1e-6)
    unit = "one person (column 'id'), of whom at most 3 rows are counted, under add-remove"
    for k in range(10):
        once(ledger, f"the release of month {k}", cost=0.1, delta=1e-7, protects=unit)
    shown = call("ledger show l")[1]
    assert "budget rho 1, spent 1, left 0; charges: 10" in shown
    assert "delta of thresholds 1e-06, spent 1e-06, left 0" in shown
    assert shown.count("sealed    rho 0.1         delta 1e-07") == 10
    assert f"\n    protects: {unit[:60]}" in shown
    with pytest.raises(BudgetError, match=r"at most rho = 0, the rest of 1, got 0\.1"):
        once(ledger, "more", cost=0.1, protects=unit)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("ledger show nothing", "LedgerError"),
        ("ledger show t.csv", "LedgerError"),
        ("ledger show m --delta 1", "ParameterError"),
        ("ledger create t.csv --rho 1", "OutputError"),
        ("ledger create l --rho 0", "ParameterError"),
        ("release t.csv -s schema.toml -m 2 --rho 1 --out o --ledger l", "ParameterError"),
        ("release t.csv -s schema.toml -m 2 --rho 1 --out o --id x", "ParameterError"),
        ("release t.csv -s schema.toml -m 2 --rho 1 --out o --ledger t.csv --id x", "LedgerError"),
    ],
)
def test_commands_that_fail(call, line, kind):
    Ledger.create("m", gn.zCDP(1.0))
    status, _, error = call(line)
    assert (status, error.split(":")[1].strip()) == (1, kind)
    assert len(error.splitlines()) == 1
    assert not Path("o").exists()


def test_the_last_entries_are_listed_and_all_are_counted(call):
    ledger = Ledger.create("l", gn.zCDP(1.0))
    for k in range(25):
        with contextlib.suppress(DataError):
            once(ledger, f"run {k}", cost=0.01, write=refusing if k % 5 == 4 else None)
    assert (ledger.charges, ledger.refusals) == (20, 5)
    names = [f"run {k}" for k in range(25)]
    for last, expected in ((None, names), (0, []), (1, names[-1:]), (7, names[-7:]), (99, names)):
        assert [entry.id for entry in ledger.entries(last)] == expected
    for line, expected in (("", names[-20:]), (" --last 3", names[-3:]), (" --all", names)):
        shown = call("ledger show l" + line)[1]
        assert "charges: 20, refusals of the data: 5" in shown
        assert [name for name in names if f"  {name}\n" in shown] == expected
        assert (f"the last {len(expected)} of 25 entries" in shown) == (len(expected) < 25)
        found = json.loads(call(f"ledger show l --json{line}")[1])
        assert [entry["id"] for entry in found["entries"]] == expected
        assert (found["charges"], found["refusals"]) == (20, 5)


@pytest.mark.parametrize("last", [-1, 1.0, True, "1", 2**63])
def test_a_number_of_entries_is_an_integer(ledger, last):
    with pytest.raises(ParameterError, match="expected an integer last >= 0"):
        ledger.entries(last)


def test_many_entries_are_counted_without_being_read(ledger, monkeypatch):
    """Showing a ledger of 100,000 entries parses only the last ones."""
    for k in range(5):
        once(ledger, f"run {k}", draws=2)
    parsed = []
    real = _entries._parsed
    monkeypatch.setattr(_entries, "_parsed", lambda text: parsed.append(1) or real(text))
    assert [entry.id for entry in ledger.entries(2)] == ["run 3", "run 4"]
    assert (ledger.charges, ledger.refusals) == (5, 0)
    assert ledger.epsilon(1e-6) > 0
    assert len(parsed) == 2


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
    with pytest.raises(CertificateError, match="of the noise given"):
        gn.Release.load(tmp_path / "r.json", other.covariance)
    with pytest.raises(OutputError, match="cannot read"):
        gn.Release.load(tmp_path / "gone.json", mechanism.covariance)
    with pytest.raises(ParameterError, match=r"got GaussianMechanism; hint: mechanism\.cov"):
        gn.Release.load(tmp_path / "r.json", mechanism)
    for text in ("", "[]", '{"format": "gaussnoise.release/1"}', '{"format": "x"}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(CertificateError, match=r"Release\.save"):
            gn.Release.load(tmp_path / "bad.json", mechanism.covariance)


def test_a_copy_of_a_ledger_that_was_never_charged_is_refused(tmp_path):
    """It is refused whether the copy or the first ledger is charged first."""
    for first, second in (("a", "b"), ("b", "a")):
        folder = tmp_path / first
        folder.mkdir()
        Ledger.create(folder / "a", gn.zCDP(1.0))
        shutil.copy(folder / "a", folder / "b")
        drawn = 0
        for name in (first, second):
            for k in range(10):
                with contextlib.suppress(LedgerError, BudgetError):
                    drawn += once(Ledger.open(folder / name), f"{name}{k}") == 1
        assert drawn == 10


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entries SET request = '" + "[" * 100_000 + "'",
        "UPDATE entries SET draws = 'x'",
        "UPDATE home SET path = 3.5",
        "UPDATE budget SET rho = x'ff'",
        "UPDATE budget SET rho = '0x1p99999'",
        "UPDATE entries SET begun = x'ff'",
        "UPDATE entries SET sha256 = 7",
        "UPDATE refusals SET protects = x'ff'",
    ],
    ids=["deep", "draws", "home", "budget", "large", "begun", "sha256", "refusals"],
)
def test_tables_that_hold_something_else_end_in_a_typed_error(ledger, damage):
    once(ledger, "a")
    with pytest.raises(DataError):
        once(ledger, "refused", write=refusing)
    with contextlib.closing(sqlite3.connect(ledger.path)) as database:
        database.execute(damage)
        database.commit()
    assert run(["ledger", "show", str(ledger.path), "--json"]) in (0, 1)  # 70 is an internal error
    for ask in (
        ledger.entries,
        lambda: ledger.epsilon(1e-6),
        lambda: once(ledger, "a"),
        lambda: once(ledger, "b"),
    ):
        with contextlib.suppress(gn.GaussNoiseError):
            ask()


def test_what_sqlite_cannot_say_in_words_is_damage(ledger):
    once(ledger, "a")
    content = ledger.path.read_bytes()
    place = content.index(b"CREATE TABLE entries")
    ledger.path.write_bytes(content[:place] + b"\xd3" + content[place + 1 :])
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(ledger.path)
