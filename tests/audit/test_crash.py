"""kill -9 and races on the ledger: what is lost is budget, never privacy or a result; naive ledgers
do the damage.
"""

import os
import signal
import time
from collections import Counter

import audit_ledger as audit
import pytest

from gaussnoise.errors import LedgerError


def test_racing_processes(tmp_path):
    """Each id drawn once, whoever came first."""
    programs = audit.racing(audit.SOUND, tmp_path)
    assert programs.damage() == audit.Damage(runs=4, published=audit.CAP)
    assert len(programs.lines("draws")) == audit.CAP
    assert {entry.state for entry in programs.ledger.entries()} == {"sealed"}
    answers = Counter(answer == "BudgetError" for _, answer in programs.lines("answers"))
    assert answers == {False: 4 * audit.CAP, True: 4 * 10}


def test_kills_at_every_stage(tmp_path):
    """Wherever it is killed, the next run gives a result, and every draw has its own charge."""
    left = Counter()
    for programs, state in audit.killed_at_lines(audit.SOUND, tmp_path, 16):
        left[state] += 1
        assert programs.damage() == audit.Damage(runs=2, published=1)
        assert {entry.state for entry in programs.ledger.entries()} <= {"lost", "sealed"}
        assert [answer for _, answer in programs.lines("answers")].count("BudgetError") == 0
        assert not list(programs.folder.rglob("*.partial*"))
    assert set(left) == {"nothing", "reserved", "written", "sealed"}


def test_a_storm_of_kills(tmp_path):
    programs, killed = audit.storm(audit.SOUND, tmp_path, 24)
    assert killed >= 16
    damage = programs.damage()
    assert damage.none
    assert damage.published >= 20
    assert len(programs.ledger.entries()) == audit.CAP  # the rest was refused
    assert programs.ledger.remaining == 0


def test_naive_ledgers_are_caught(tmp_path):
    deducting, counting = audit.NAIVE
    kills = [
        programs.damage()
        for programs, _ in audit.killed_at_lines(deducting, tmp_path / "lines", 12)
    ]
    assert sum(kills, audit.Damage()).twice
    assert not audit.storm(deducting, tmp_path / "storm", 9)[0].damage().none
    assert audit.racing(counting, tmp_path / "race").damage().beyond


def test_a_result_that_was_changed_is_counted(tmp_path):
    programs = audit.Programs(audit.SOUND, tmp_path)
    audit.finished([programs.start(0, 3)])
    assert programs.damage() == audit.Damage(runs=1, published=3)
    entry = programs.ledger.entries()[1]
    with open(entry.target, "a") as file:
        file.write(" ")
    assert programs.damage() == audit.Damage(runs=1, published=3, lost=1)


def test_waiting_for_a_living_writer(tmp_path):
    """A second process gets the first one's result, and a killed writer's lock is gone with it."""
    programs = audit.Programs(audit.SOUND, tmp_path)
    stopped = programs.start(0, 1, kill_at=10**6)
    stopped.stdout.readline()
    while not programs.lines("draws") and stopped.poll() is None:
        time.sleep(0.001)
    states = None
    while states is None:
        os.kill(stopped.pid, signal.SIGSTOP)
        try:
            states = {entry.state for entry in programs.ledger.entries()}
        except LedgerError:  # it stands within a transaction
            os.kill(stopped.pid, signal.SIGCONT)
            time.sleep(0.001)
    drawn_early = states == {"reserved"}
    other = programs.start(0, 1)
    time.sleep(0.5)
    if drawn_early:
        assert other.poll() is None
    os.kill(stopped.pid, signal.SIGKILL)
    stopped.communicate(timeout=60)
    audit.finished([other])
    assert programs.damage() == audit.Damage(runs=2, published=1)


@pytest.mark.parametrize("what", audit.STAGES)
def test_a_killed_release_is_resumed(tmp_path, what):
    stages = audit.STAGES[what]
    found, damage = audit.killed_releases(what, tmp_path, stages)
    assert damage == audit.Damage(runs=3 * len(stages), published=len(stages))
    for one, left in zip(found, stages.values(), strict=True):
        assert one["killed"]
        assert one["left"] == left
        assert one["states"] == (["lost", "sealed"] if left == ["reserved"] else ["sealed"])
        assert one["spent"] == pytest.approx(0.1 * len(one["states"]), rel=1e-9)
        assert len(one["answers"]) == 2


def test_a_release_that_is_deducted_afterwards_is_caught(tmp_path):
    _, damage = audit.killed_releases("records", tmp_path, ["save", "_charge"], audit.NAIVE[0])
    assert damage.twice
