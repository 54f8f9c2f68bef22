"""Faults for the ledger, sound and naive: programs that are killed and race, and a count of the
damage they did.
"""

import contextlib
import hashlib
import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import astuple, dataclass
from pathlib import Path

import gaussnoise as gn

HERE, PACKAGE = Path(__file__).parent, Path(gn.__file__).parent
SOUND, NAIVE = "charged first", ("deducted afterwards", "in memory")
CAP = 40  # results that the budget of every ledger here allows


@dataclass(frozen=True)
class Damage:
    """What became of some programs' requests.

    Attributes:
        runs: programs started.
        published: results that exist in the end.
        twice: draws that no charge of their own paid for.
        lost: results that are missing, were changed, or are not what some program was told.
        beyond: charges, or draws if these are more, that the budget did not allow.
    """

    runs: int = 0
    published: int = 0
    twice: int = 0
    lost: int = 0
    beyond: int = 0

    def __add__(self, other):
        return Damage(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def none(self):
        return not (self.twice or self.lost or self.beyond)


class Programs:
    """Programs over one ledger in one folder."""

    def __init__(self, kind, folder):
        folder.mkdir(exist_ok=True)
        self.kind, self.folder, self.runs = kind, folder, 0
        self.ledger = gn.Ledger.create(folder / "l", gn.zCDP(1.0))
        with contextlib.closing(sqlite3.connect(folder / "l.naive")) as database:
            database.execute("CREATE TABLE entries (id TEXT)")

    def start(self, first, last, stride=1, kill_at=0):
        """A program that asks for results ``first`` to ``last``, and is killed at a line of its own
        counting.
        """
        self.runs += 1
        words = [
            HERE / "ledger_child.py",
            self.kind,
            PACKAGE,
            self.folder,
            first,
            last,
            stride,
            kill_at,
        ]
        return subprocess.Popen(
            [sys.executable, "-I", "-S", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def lines(self, name):
        path = self.folder / name
        return (
            [tuple(line.split()) for line in path.read_text().splitlines()] if path.exists() else []
        )

    def damage(self):
        """Once all programs have ended."""
        draws, answers = self.lines("draws"), self.lines("answers")
        drawn = Counter(id for id, _ in draws)
        if self.kind == SOUND:
            sealed = [entry for entry in self.ledger.entries() if entry.state == "sealed"]
            charges = Counter(entry.id for entry in self.ledger.entries())
            results = {entry.id: _drawn(Path(entry.target), entry.sha256) for entry in sealed}
        else:
            results = {path.stem: _drawn(path) for path in self.folder.glob("*.json")}
            charges = drawn
            if self.kind == "deducted afterwards":
                with contextlib.closing(sqlite3.connect(self.folder / "l.naive")) as database:
                    charges = Counter(id for (id,) in database.execute("SELECT id FROM entries"))
        told = {(id, answer) for id, answer in answers if answer != "BudgetError"}
        return Damage(
            runs=self.runs,
            published=len(results),
            twice=sum((drawn - charges).values()),
            lost=len(
                {
                    id
                    for id, _ in (told - set(results.items())) | (set(results.items()) - set(draws))
                }
            ),
            beyond=max(charges.total(), len(draws), CAP) - CAP,
        )


def _drawn(path, sha256=None):
    """What a result says was drawn, if it is whole."""
    with contextlib.suppress(OSError, ValueError, LookupError):
        content = path.read_bytes()
        if sha256 in (None, hashlib.sha256(content).hexdigest()):
            return json.loads(content)["draw"]
    return None


def finished(programs):
    """Wait for programs that must end well."""
    for program in programs:
        out, err = program.communicate(timeout=60)
        if program.returncode or not out.startswith("ready"):
            raise RuntimeError(err)


def racing(kind, folder):
    """Four programs at once, 50 ids, budget for 40."""
    programs = Programs(kind, folder)
    finished([programs.start(0, 50, stride) for stride in (1, 1, 3, 7)])
    return programs


def killed_at_lines(kind, folder, count=None):
    """Programs killed at every line of one request, or at ``count`` of them, each then run again to
    the end.

    Each has a ledger of its own, so that all run the same lines.

    Yields:
        The programs of one kill, and the state in which it left its entry.
    """
    whole = Programs(kind, folder).start(0, 1, kill_at=10**6)
    lines = int(whole.communicate(timeout=60)[0].split()[-1])
    count = count or lines
    points = sorted({1 + k * (lines - 1) // (count - 1) for k in range(count)})
    for begin in range(0, len(points), 12):
        batch = [
            (Programs(kind, folder / str(point)), point) for point in points[begin : begin + 12]
        ]
        for program in [programs.start(0, 1, kill_at=point) for programs, point in batch]:
            program.communicate(timeout=60)
            if program.returncode != -signal.SIGKILL:
                raise RuntimeError("a program was not killed")
        left = [[entry.state for entry in programs.ledger.entries()] for programs, _ in batch]
        finished([programs.start(0, 1) for programs, _ in batch])
        yield from (
            (programs, *(states or ["nothing"]))
            for (programs, _), states in zip(batch, left, strict=True)
        )


def storm(kind, folder, kills):
    """Three programs over 60 ids; one after the other is killed, and started again.

    Returns:
        The programs, and how many were killed before they ended.
    """
    programs, strides, killed = Programs(kind, folder), (1, 7, 11), 0
    running = [programs.start(0, 60, stride) for stride in strides]
    for k in range(kills):
        victim = k % 3
        program = running[victim]
        program.stdout.readline()  # ready
        time.sleep((37 * k % 41) / 1000)
        program.kill()
        program.communicate(timeout=60)
        killed += program.returncode == -signal.SIGKILL
        running[victim] = programs.start(0, 60, strides[victim])
    finished(running)
    return programs, killed


# Kill -9 in releases: functions at whose first line, and what must be left. What may have been
# drawn stays charged; what was written whole is published by the next run, not drawn again.
STAGES = {
    "tables": {
        "_charge": [],  # before the ledger is opened for it
        "_draw": ["reserved"],
        "write_document": ["reserved"],
        "sync": ["reserved"],
        "_settle": ["written"],
        "publish": ["written"],
        "remove": ["written"],
    },
    "records": {
        "_alone": [],
        "_released": ["reserved"],
        "to_json": ["reserved"],
        "sync": ["reserved"],
        "_settle": ["written"],
        "remove": ["written"],
    },
}


def answer_of(program, *arguments):
    """What a child program of this folder prints as JSON."""
    command = [sys.executable, "-W", "ignore", HERE / program, *arguments]
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # forked
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env=os.environ | single,
    )
    if done.returncode or done.stderr:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def killed_releases(what, folder, points, kind=SOUND):
    """Whole releases of "tables" or "records" killed at some points (see ``release_child.py``),
    each then run twice.

    Returns:
        What was found at each point, and the damage of all.
    """
    folder.mkdir(exist_ok=True)
    found = answer_of("release_child.py", folder, what, kind, *points)
    return found, sum(map(_damage_of_release, found), Damage())


def _damage_of_release(one):
    whole = (
        set(one["answers"])
        and all(map(math.isfinite, one["answers"]))
        and len(set(one["answers"])) == 1
    )
    return Damage(
        runs=3,
        published=one["states"].count("sealed"),
        twice=max(one["draws"] - len(one["states"]), 0),
        lost=int(not whole or one["failed"] > 0 or bool(one["scratch"])),
        beyond=int(one["spent"] > one["budget"] * (1 + 1e-12)),
    )
