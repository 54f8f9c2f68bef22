"""The files that a stream keeps between ticks.

Its exact counts are PRIVATE, as confidential as the rows themselves.

Later ticks measure weighted sums over the rows of earlier ticks. So a stream must keep the earlier
counts or the earlier noise: each follows from the other, since the publication minus the noise
gives the counts. This stream keeps the counts alone. If an older copy of the folder is put back, a
tick is drawn twice, which costs at most twice its budget. If noise were kept instead, the same
noise would be used again for other rows, and reveal the difference of the rows exactly.

A tick is committed by one file, such as ``private/exact-counts-0003.json``. The file holds the
counts and measurements, or the sha256 of the files in which executors keep them. It is on disk
before any part of the tick is published, and is never written again. The publication is computed
from committed measurements alone, so a repeated publication is the same. Noise may be drawn but not
committed. Such noise was only in the memory of a program that ended, or in a folder that only the
owner can read: no other person has seen it.
"""

import abc
import contextlib
import json
import os
import re
import sqlite3
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..errors import OutputError, StreamError, exists_already
from ..files.disk import aside, file_digest, read_json, remove
from ..privacy.ledger_file import alone

C = TypeVar("C", bound="AbstractCommit")

MOST_BYTES = 2**27  # most bytes of stream.json, which has the matrix, and of records of ticks
_FORMAT = "gaussnoise.stream-private/1"
_LEFT = re.compile(
    r"\.(exact-counts-\d+\.json|registry-\d+|\d+)\.[0-9a-f]{16}\.partial"
)  # see :func:`aside`
_WARNING = "EXACT COUNTS, NOT PRIVATE: keep this file as confidential as the rows; never publish it"


class AbstractCommit(abc.ABC):
    """The exact counts and noisy measurements of one tick, as they are on disk.

    Attributes:
        rows: the number of rows, public under replacement only.
        sha256: the sha256 of the file that commits the tick.
        registry: the sha256 of the registry of persons after the tick; None without a registry.
    """

    rows: int
    sha256: str
    registry: str | None

    @property
    @abc.abstractmethod
    def measurements_sha256(self) -> str:
        """The sha256 of the noisy measurements.

        It may be public; a sha256 of the exact counts may not.
        """


class AbstractMaker(abc.ABC, Generic[C]):
    """The interface of objects that count the rows of ticks, draw noise, and write tables."""

    @property
    @abc.abstractmethod
    def most_bytes(self) -> int:
        """An upper bound on the bytes of the file of a tick's counts and measurements."""

    @abc.abstractmethod
    def read(self, content: Any, sha256: str) -> C:
        """Return the counts and measurements of a tick from ``content``, the parsed file.

        ``sha256`` is that of the file.

        Raises:
            ValueError, LookupError, TypeError: the content is not a commit.
        """

    @abc.abstractmethod
    def drawn(self, tick: int, commits: list[C]) -> C:
        """Count the rows of a tick, draw noise, and return counts and measurements.

        Both are on disk before this method returns, and nothing is published before. ``commits``
        are those of all earlier ticks.
        """

    @abc.abstractmethod
    def write(self, folder: Path, commits: list[C]) -> None:
        """Write the folder that publishes the last tick in ``commits``, from its measurements."""

    @abc.abstractmethod
    def tidy(self, commits: list[C]) -> None:
        """Delete unfinished files, and files not needed once these ticks are published."""


@dataclass(frozen=True, eq=False)
class State:
    """The folder of a stream, and the files in it that commit ticks.

    Attributes:
        path: the folder of the stream.
        key: a random name of the stream, the same in all its files.
    """

    path: Path
    key: str

    @property
    def private(self) -> Path:
        """The folder that holds the exact counts, which are not public."""
        return self.path / "private"

    def tick_folder(self, tick: int) -> Path:
        """Return the path of the folder in which tick number ``tick`` is published."""
        return self.path / "ticks" / f"{tick:04d}"

    def published(self) -> int:
        """Return the number of published ticks.

        Raises:
            StreamError: the folder cannot be read, or a tick is missing.
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

    def commits(self, most: int, maker: AbstractMaker[C]) -> list[C]:
        """Return the counts and measurements of all ticks on disk.

        Raise an error unless they agree with the published records.

        Args:
            most: the largest number of ticks, by the plan.
            maker: the object that reads the files of these ticks.

        Raises:
            StreamError: files are missing, older than the publications, or were changed.
        """
        done = self.published()
        commits: list[C] = []
        while True:
            file = self._file(len(commits) + 1)
            if not os.path.lexists(file):
                break
            if len(commits) >= most:
                raise StreamError(f"stream: {self.private} holds more ticks than were planned")
            commits.append(self._read(maker, file, len(commits) + 1, self._links(commits)))
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

    def commit(self, content: Mapping[str, object], before: Sequence[AbstractCommit]) -> str:
        """Save a tick's counts and measurements to disk, and return the sha256 of the file.

        Raises:
            OutputError: the file cannot be written; no part of it is kept.
        """
        tick = len(before) + 1
        whole = {
            "format": _FORMAT,
            "warning": _WARNING,
            "stream": self.key,
            "tick": tick,
            **self._links(before),
            **content,
        }
        file = self._file(tick)
        write_private("stream", file, whole)
        return file_digest(file)

    def _file(self, tick: int) -> Path:
        return self.private / f"exact-counts-{tick:04d}.json"

    def _links(self, before: Sequence[AbstractCommit]) -> dict[str, str]:
        """Return the sha256 of the previous private file and of the last published record."""
        # each tick's private file stores them, so that no earlier file can be changed unnoticed
        try:
            if not before:
                return {"previous": file_digest(self.path / "stream.json"), "published": ""}
            record = file_digest(self.tick_folder(len(before)) / "release.json")
        except OSError as error:
            raise StreamError(
                f"stream: cannot read what {self.path} has published ({type(error).__name__})"
            ) from None
        return {"previous": before[-1].sha256, "published": record}

    def _read(self, maker: AbstractMaker[C], file: Path, tick: int, links: Mapping[str, str]) -> C:
        try:
            content = read_json(file, maker.most_bytes)
            if (content["format"], content["stream"], content["tick"]) != (_FORMAT, self.key, tick):
                raise ValueError
            linked = {name: content[name] for name in links}
            commit = maker.read(content, file_digest(file))
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
        return commit

    def _check_published(self, tick: int, commit: AbstractCommit) -> None:
        folder = self.tick_folder(tick)
        try:
            record = read_json(folder / "release.json", MOST_BYTES)
            same = (record["stream"], record["tick"]) == (self.key, tick)
            same = same and record["measurements_sha256"] == commit.measurements_sha256
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
        """Delete unfinished files of interrupted programs."""
        # names of files that a ledger may still publish have another form, so these stay
        for folder in (self.private, self.path / "ticks"):
            with contextlib.suppress(OSError):  # the next call tries again
                for path in [path for path in folder.iterdir() if _LEFT.fullmatch(path.name)]:
                    remove(path)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other program works on the stream; lock the stream within the block.

        Raises:
            StreamError: the private folder is missing, or others than its owner can open it.
            OutputError: the disk is full or fails, here or in the ``with`` block.
        """
        check_private("tick", self.path)
        try:
            with alone(self.private / "lock"):
                self._tidy()
                yield
        except sqlite3.Error as error:
            raise OutputError(
                f"stream: cannot lock {self.private} ({type(error).__name__})"
            ) from None
        except OutputError:
            raise
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            raise OutputError(
                f"stream: cannot write to {self.path} ({reason}); "
                "hint: run the same tick again once it can be written"
            ) from None


def create_folders(path: Path) -> None:
    """Create the folders of a stream, or use those of an interrupted start.

    Raises:
        OutputError: other files are there, or the folders cannot be written.
    """
    try:
        path.mkdir(exist_ok=True)
        others = {p.name for p in path.iterdir() if not p.name.endswith(".partial")} - {
            "ticks",
            "private",
            "stream.json",
        }
        if others:
            raise exists_already("start", path)
        (path / "ticks").mkdir(exist_ok=True)
        (path / "private").mkdir(mode=0o700, exist_ok=True)
        _check_owner("start", path)
        os.chmod(path / "private", 0o700)
        check_private("start", path)
    except OutputError:
        raise
    except FileExistsError:
        raise exists_already("start", path) from None
    except OSError as error:
        raise OutputError(f"start: cannot write to {path} ({type(error).__name__})") from None


def check_private(who: str, path: Path) -> None:
    """Raise an error if other users can enter the private folder.

    Raises:
        StreamError: other users can enter it, or it is missing.
    """
    mode = stat.S_IMODE(_check_owner(who, path))
    if os.name != "nt" and mode & 0o077:
        raise StreamError(
            f"{who}: expected {path / 'private'} to be open to its owner alone, got mode "
            f"{mode:o}; hint: chmod 700, once you know who has read what is in it; a disk without "
            "permissions holds no stream"
        )


def _check_owner(who: str, path: Path) -> int:
    """Return ``st_mode`` of the private folder; refuse a link or another user's folder."""
    private = path / "private"
    try:
        status, parent = os.lstat(private), path.stat()
    except OSError as error:
        raise StreamError(
            f"{who}: {private} is missing ({type(error).__name__}): without it the stream can only "
            "be read"
        ) from None
    user = os.geteuid() if hasattr(os, "geteuid") else 0
    # some disks give all files to one user, who then also owns the parent folder
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (user, parent.st_uid):
        raise StreamError(
            f"{who}: expected {private} to be a folder of the user who starts the stream, got a "
            "link, or another user's; hint: find out who put it there"
        )
    return status.st_mode


def delete_empty_folders(path: Path) -> None:
    """Delete the folders of a stream whose start failed, if they are empty."""
    for folder in (path / "private", path / "ticks", path):
        with contextlib.suppress(OSError):  # not empty, or missing
            folder.rmdir()


def write_private(who: str, file: Path, content: Mapping[str, object]) -> None:
    """Write a new file that only its owner can read, in one step.

    Raises:
        OutputError: the file cannot be written.
    """
    try:
        with aside(file, who) as scratch:
            handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(handle, "w", encoding="utf-8") as stream:
                json.dump(content, stream)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"{who}: cannot write to {file.parent} ({type(error).__name__})"
        ) from None
