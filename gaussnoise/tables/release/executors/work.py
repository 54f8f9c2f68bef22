"""The private folder of a release that executors have not completed yet."""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ....errors import OutputError
from ....files.commits import Commits
from ....files.disk import exclusive_lock, read_json, remove, remove_at_once, sync
from ...counting.persons import PersonLimit

_MOST_BYTES = 2**27
_CHARGED = "charged-"


@final
@dataclass(frozen=True)
class Work:
    """A folder beside where the release goes, so that both are on one file system.

    Only its owner may enter it. What is drawn is in it before anything is made of that, and what
    becomes the release, once all of it is there. It is taken away at the end.
    """

    folder: Path

    @classmethod
    def beside(cls, out: Path, token: str) -> "Work":
        """Of one release that was begun."""
        return cls(out.with_name(f".{out.name}.{token}.work"))

    @staticmethod
    def clear(out: Path, charge: str | None = None) -> None:
        """Take away what drivers left beside ``out`` that were killed: their locks are free.

        What a ledger may have charged stays, to be gone on with, unless that was ``charge``.
        """
        left = re.compile(re.escape(f".{out.name}.") + r"[0-9a-f]{16}\.work(\.[0-9a-f]{16})?")
        with contextlib.suppress(OSError):  # it is tried again
            for path in [path for path in out.parent.iterdir() if left.fullmatch(path.name)]:
                if path.suffix == ".work":
                    Work(path)._clear(charge)
                else:  # it was being taken away
                    remove(path)

    def _clear(self, charge: str | None) -> None:
        """Take the folder away, unless its driver lives or a ledger may know it."""

        def unknown() -> bool:
            charged = {path.name for path in self.folder.glob(f"{_CHARGED}*")}
            # before the key is written, its driver has the lock
            return os.path.lexists(self.key) and charged <= {f"{_CHARGED}{charge}"}

        if unknown():  # else a driver that takes the lock now would find it taken
            with (
                contextlib.suppress(OSError),  # another program cleared it
                exclusive_lock(self._lock, unknown=False) as free,
            ):
                if free and unknown():
                    remove_at_once(self.folder)

    def make(self) -> None:
        """Empty."""
        self.folder.mkdir(mode=0o700)
        for inner in (self.result, self._measured, self.aside):
            inner.mkdir()
        self._lock.touch()

    def make_key(self) -> None:
        """By which rows of persons are chosen, drawn once."""
        with open(self.key, "xb") as file:
            file.write(secrets.token_bytes(16))
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A block that one program at a time is in, as far as the file system has locks.

        Raises:
            OutputError: another program is in it.
        """
        with contextlib.ExitStack() as stack:
            free = True
            with contextlib.suppress(FileNotFoundError):  # nothing is left to be done, or all lost
                free = stack.enter_context(exclusive_lock(self._lock))
            if not free:
                raise OutputError(
                    "release: another program is completing this release; hint: wait until it has "
                    "ended, and run this again"
                )
            yield

    @property
    def result(self) -> Path:
        """What becomes the release."""
        return self.folder / "result"

    @property
    def measured(self) -> Commits:
        """Decoded residuals with noise, and public tables: a file for each group, or piece."""
        return Commits(self._measured, self.aside)

    @property
    def exact(self) -> Commits:
        """Exact answers about rows of residuals that no task holds: NOT public."""
        return Commits(self._exact, self.aside)

    @property
    def noisy(self) -> Commits:
        """Columns of these with noise."""
        return Commits(self._noisy, self.aside)

    @property
    def published(self) -> Commits:
        """Tables and answers."""
        return Commits(self.result, self.aside)

    def limit(self, column: str | None, rows: int) -> PersonLimit | None:
        """On the rows of each person: the same rows when the work goes on."""
        return None if column is None else PersonLimit(column, rows, self.key.read_bytes())

    def keep_charge(self, charge: str) -> None:
        """Which charge of a ledger may be for what is drawn here."""
        (self.folder / f"{_CHARGED}{charge}").touch()
        sync(self.folder, deep=False)

    def keep_records(self, fingerprint: str) -> None:
        """Which rows are to be measured."""
        with open(self._records, "x", encoding="utf-8") as file:
            file.write(fingerprint)
            file.flush()
            os.fsync(file.fileno())

    @property
    def begun(self) -> bool:
        """Whether it is said which rows are measured."""
        return self._records.exists()

    def is_of(self, fingerprint: str) -> bool:
        """Whether the work was begun with these rows."""
        return self._records.read_text(encoding="utf-8") == fingerprint

    def digests(self, what: str) -> Mapping[str, str] | None:
        """What :meth:`keep_digests` kept; None before."""
        try:
            return read_json(self.folder / f"{what}.json", _MOST_BYTES)
        except FileNotFoundError:
            return None

    def keep_digests(self, what: str, digests: Mapping[str, str]) -> None:
        """That all files of a kind are there, and what they are: none of them is made again."""
        for folder in (self._noisy, self._measured):
            if folder.is_dir():
                sync(folder, deep=False)
        text = json.dumps(digests)
        Commits(self.folder, self.aside).commit(
            f"{what}.json", lambda path: path.write_text(text, encoding="utf-8")
        )

    @property
    def _measured(self) -> Path:
        return self.folder / "measured"

    @property
    def _exact(self) -> Path:
        return self.folder / "exact-rows"

    @property
    def _noisy(self) -> Path:
        return self.folder / "noisy"

    @property
    def aside(self) -> Path:
        """Where files are written that are not complete, or were not the first."""
        return self.folder / "aside"

    @property
    def _records(self) -> Path:
        return self.folder / "records.txt"

    @property
    def _lock(self) -> Path:
        return self.folder / "driver.lock"

    @property
    def key(self) -> Path:
        """By which rows of persons are chosen."""
        return self.folder / "person.key"
