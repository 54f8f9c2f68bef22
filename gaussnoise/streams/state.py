"""What a stream keeps between ticks.

Its exact counts are PRIVATE, as confidential as the rows themselves.

Later ticks measure sums over earlier rows exactly, so something that determines their counts must
be kept: the counts, or the noise, which with what is published is the same. Counts are kept and
noise never is: an older copy that is put back then leads to a second draw, which costs at most what
the first did, where kept noise under other rows would show their difference exactly.

A tick is committed by one file, ``private/exact-counts-0003.json``: what was counted and what was
measured of it, on disk before anything of it is published, and never written again. What is
published is made of committed measurements alone, so it is the same however often it is made. A
draw that was not committed was in the memory of a dead program, and in a folder that only the owner
of the exact counts can read; nobody else has seen it.
"""

import contextlib
import hashlib
import json
import os
import re
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import OutputError, StreamError
from ..files.disk import aside, file_digest, read_json, remove
from ..privacy.ledger_file import locked
from ..solvers.tables.residuals import Subset
from .measure import parts_of
from .plan import StreamPlan

Counts = NDArray[np.int64]

_FORMAT = "gaussnoise.stream-private/1"
_LEFT = re.compile(r"\.(exact-counts-\d+\.json|\d+)\.[0-9a-f]{16}\.partial")  # by :func:`aside`
_WARNING = "EXACT COUNTS, NOT PRIVATE: keep this file as confidential as the rows; never publish it"


@dataclass(frozen=True, eq=False)
class Commit:
    """One tick, as counted and measured.

    Attributes:
        rows: how many rows there were: public under replacement only.
        counts: exact, of every planned marginal.
        noisy: what was measured with noise, of every residual.
        sha256: of the file.
    """

    rows: int
    counts: Mapping[Subset, Counts]
    noisy: Mapping[Subset, Sequence[int]]
    sha256: str


@dataclass(frozen=True, eq=False)
class State:
    """The folder of a stream.

    Attributes:
        path: of the stream.
        key: a random name of the stream, the same in all its files.
    """

    path: Path
    key: str

    @property
    def private(self) -> Path:
        """Where exact counts are."""
        return self.path / "private"

    def tick_folder(self, tick: int) -> Path:
        """Where a tick is published."""
        return self.path / "ticks" / f"{tick:04d}"

    def published(self) -> int:
        """How many ticks are published.

        Raises:
            StreamError: one is missing between others.
        """
        try:
            there = sorted(
                int(p.name) for p in (self.path / "ticks").iterdir() if p.name.isdecimal()
            )
        except OSError as error:
            raise StreamError(
                f"stream: cannot read {self.path / 'ticks'} ({type(error).__name__})"
            ) from None
        if there != list(range(1, len(there) + 1)):
            raise StreamError(
                f"stream: a tick is missing in {self.path / 'ticks'}; hint: put its folder back"
            )
        return len(there)

    def commits(self, plan: StreamPlan) -> list[Commit]:
        """All committed ticks, checked against each other and against what is published.

        Raises:
            StreamError: files are missing, older than what is published, or were changed.
        """
        done = self.published()
        commits: list[Commit] = []
        while True:
            file = self._file(len(commits) + 1)
            if not os.path.lexists(file):
                break
            if len(commits) >= plan.over.n:
                raise StreamError(f"stream: {self.private} holds more ticks than were planned")
            commits.append(self._read(plan, file, len(commits) + 1, self._links(commits)))
        later = [name for name in os.listdir(self.private) if name.startswith("exact-counts-")]
        if len(commits) < done or len(later) != len(commits):
            raise StreamError(
                f"stream: {self.private} is older than what is published, or a file in it is "
                "missing; hint: put back "
                "what was there; a stream cannot go on from an older copy"
            )
        if len(commits) > done + 1:
            raise StreamError(
                f"stream: what was published of some ticks is missing in {self.path / 'ticks'}"
            )
        for tick, commit in enumerate(commits[:done], 1):
            self._check_published(tick, commit)
        return commits

    def commit(
        self,
        plan: StreamPlan,
        counts: Mapping[Subset, Counts],
        noisy: Mapping[Subset, Sequence[int]],
        before: list[Commit],
    ) -> Commit:
        """Keep what a tick counted and measured, on disk when this returns.

        Raises:
            OutputError: it cannot be written; nothing of it is kept.
        """
        subsets = plan.tables.tables.subsets
        rows = int(counts[subsets[0]].sum())
        content = {
            "format": _FORMAT,
            "warning": _WARNING,
            "stream": self.key,
            "tick": len(before) + 1,
            **self._links(before),
            "rows": rows,
            "counts": [counts[S].reshape(-1).tolist() for S in subsets],
            "measured": [list(noisy[T]) for T in parts_of(plan)],
        }
        file = self._file(len(before) + 1)
        try:
            with aside(file, "stream") as scratch:
                handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with open(handle, "w", encoding="utf-8") as stream:
                    json.dump(content, stream)
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(
                f"stream: cannot write to {self.private} ({type(error).__name__})"
            ) from None
        return Commit(rows, counts, noisy, file_digest(file))

    def _file(self, tick: int) -> Path:
        return self.private / f"exact-counts-{tick:04d}.json"

    def _links(self, before: list[Commit]) -> dict[str, str]:
        """What a commit says of all that was there before it."""
        try:
            if not before:
                return {"previous": file_digest(self.path / "stream.json"), "published": ""}
            record = file_digest(self.tick_folder(len(before)) / "release.json")
        except OSError as error:
            raise StreamError(
                f"stream: cannot read what {self.path} has published ({type(error).__name__})"
            ) from None
        return {"previous": before[-1].sha256, "published": record}

    def _read(self, plan: StreamPlan, file: Path, tick: int, links: Mapping[str, str]) -> Commit:
        subsets, parts = plan.tables.tables.subsets, list(parts_of(plan))
        try:
            content = read_json(file, 2**20 + 32 * plan.tables.tables.dim + 256 * plan.query.count)
            shapes = [tuple(plan.schema.sizes[i] for i in S) for S in subsets]
            counts = {
                S: np.array(cells, dtype=np.int64).reshape(shape)
                for S, cells, shape in zip(subsets, content["counts"], shapes, strict=True)
            }
            noisy = dict(zip(parts, content["measured"], strict=True))
            rows = content["rows"]
            if (
                (content["format"], content["stream"], content["tick"]) != (_FORMAT, self.key, tick)
                or {int(table.sum()) for table in counts.values()} != {rows}
                or not all(
                    len(noisy[T]) == plan.query.rows(T) and all(type(x) is int for x in noisy[T])
                    for T in parts
                )
            ):
                raise ValueError
            linked = {name: content[name] for name in links}
            digest = file_digest(file)
        except (OSError, ValueError, LookupError, TypeError, OverflowError) as error:
            raise StreamError(
                f"stream: {file} is damaged, or of another stream ({type(error).__name__})"
            ) from None
        if linked != links:
            raise StreamError(
                f"stream: {file} does not follow what is before it: a file of the stream was "
                "changed, or is an "
                "older or another copy; hint: put back what was there"
            )
        return Commit(rows, counts, noisy, digest)

    def _check_published(self, tick: int, commit: Commit) -> None:
        folder = self.tick_folder(tick)
        try:
            record = read_json(folder / "release.json")
            same = (record["stream"], record["tick"]) == (self.key, tick)
            same = same and record["measurements_sha256"] == measurements_sha256(commit.noisy)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise StreamError(
                f"stream: {folder} is not what was published ({type(error).__name__})"
            ) from None
        if not same:
            raise StreamError(
                f"stream: {folder} was published from other measurements than {self.private} "
                "holds; hint: put "
                "back what was there; a stream cannot go on from another copy"
            )

    def _tidy(self) -> None:
        """Take away what dead programs left half written; what a ledger will still publish has
        other names.
        """
        for folder in (self.private, self.path / "ticks"):
            with contextlib.suppress(OSError):  # it is tried again
                for path in [path for path in folder.iterdir() if _LEFT.fullmatch(path.name)]:
                    remove(path)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other program works on the stream.

        The lock is the operating system's and dies with us.
        """
        try:
            lock = sqlite3.connect(self.private / "lock", timeout=1.0, isolation_level=None)
            with closing(lock):
                while not locked(lock):
                    pass
                self._tidy()
                yield
        except sqlite3.Error as error:
            raise OutputError(
                f"stream: cannot lock {self.private} ({type(error).__name__})"
            ) from None


def measurements_sha256(noisy: Mapping[Subset, Sequence[int]]) -> str:
    """Of what was measured with noise: public, unlike any digest of exact counts."""
    return hashlib.sha256(
        json.dumps([list(values) for values in noisy.values()]).encode()
    ).hexdigest()


def made(path: Path) -> None:
    """The folders of a stream; those of one that was not begun may be there.

    Raises:
        OutputError: something else is there, or they cannot be written.
    """
    try:
        path.mkdir(exist_ok=True)
        others = {p.name for p in path.iterdir() if not p.name.endswith(".partial")} - {
            "ticks",
            "private",
            "stream.json",
        }
        if others:
            raise OutputError(f"start: {path} exists already; hint: name a new one")
        (path / "ticks").mkdir(exist_ok=True)
        (path / "private").mkdir(mode=0o700, exist_ok=True)
        status = os.lstat(path / "private")
        # another one's, or a link: exact counts are not written there; where all files are one
        # user's, so is the parent
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (_user(), path.stat().st_uid):
            raise PermissionError
        os.chmod(path / "private", 0o700)
    except OutputError:
        raise
    except FileExistsError:
        raise OutputError(f"start: {path} exists already; hint: name a new one") from None
    except OSError as error:
        raise OutputError(f"start: cannot write to {path} ({type(error).__name__})") from None


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


def unmade(path: Path) -> None:
    """Take the folders of a stream away that was not begun."""
    for folder in (path / "private", path / "ticks", path):
        with contextlib.suppress(OSError):  # not empty, or not there
            folder.rmdir()


def write_private(file: Path, content: Mapping[str, Any]) -> None:
    """A new file that only its owner can read."""
    with aside(file, "start") as scratch:
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8") as stream:
            json.dump(content, stream)
