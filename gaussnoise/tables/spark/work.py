"""The private folder of a release that executors have not completed yet."""

import contextlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from ...errors import DataError, OutputError
from ...files.commits import Commits
from ...files.disk import exclusive_lock, read_json, remove, remove_at_once, sync
from ..counting.count import CHANGED
from ..counting.persons import PersonLimit
from .records import SparkRecords

_MOST_BYTES = 2**27
_CHARGED = "charged-"


@final
@dataclass(frozen=True)
class Work:
    """A folder beside the directory of the release, so that both are on one file system.

    Only its owner may enter it. Noise is stored in it as soon as it is drawn, before anything is
    computed from it, and then the files of the release, until all are there. It is removed at the
    end.
    """

    folder: Path

    @classmethod
    def beside(cls, out: Path, token: str) -> "Work":
        """Return the folder of one release that was begun."""
        return cls(out.with_name(f".{out.name}.{token}.work"))

    @staticmethod
    def clear(out: Path, charge: str | None = None) -> None:
        """Remove the folders beside ``out`` that killed drivers left: their locks are free.

        Work that a ledger may have charged stays, to be continued, unless its charge is ``charge``.
        """
        left = re.compile(re.escape(f".{out.name}.") + r"[0-9a-f]{16}\.work(\.[0-9a-f]{16})?")
        with contextlib.suppress(OSError):  # the next run tries again
            for path in [path for path in out.parent.iterdir() if left.fullmatch(path.name)]:
                if path.suffix == ".work":
                    Work(path)._clear(charge)
                else:  # its removal was interrupted
                    remove(path)

    def _clear(self, charge: str | None) -> None:
        """Remove the folder, unless its driver lives or a ledger may know it."""

        def unknown() -> bool:
            charged = {path.name for path in self.folder.glob(f"{_CHARGED}*")}
            # before the key is written, its driver holds the lock
            return os.path.lexists(self.key) and charged <= {f"{_CHARGED}{charge}"}

        if unknown():  # first, or a driver that takes the lock now would find it taken
            with (
                contextlib.suppress(OSError),  # another program removed it
                exclusive_lock(self._lock, unknown=False) as free,
            ):
                if free and unknown():
                    remove_at_once(self.folder)

    def make(self) -> None:
        """Make the folder, empty."""
        self.folder.mkdir(mode=0o700)
        for inner in (self.result, self._measured, self.aside):
            inner.mkdir()
        self._lock.touch()

    def make_key(self) -> None:
        """Draw and store the key that chooses rows of persons, once."""
        with open(self.key, "xb") as file:
            file.write(secrets.token_bytes(16))
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Yield in a block that one program at a time can enter, where the file system has locks.

        Raises:
            OutputError: another program is in the block.
        """
        with contextlib.ExitStack() as stack:
            free = True
            with contextlib.suppress(FileNotFoundError):  # the release is complete, or lost
                free = stack.enter_context(exclusive_lock(self._lock))
            if not free:
                raise OutputError(
                    "release: another program is completing this release; hint: wait until it has "
                    "ended, and run this again"
                )
            yield

    @property
    def result(self) -> Path:
        """The folder that becomes the release."""
        return self.folder / "result"

    @property
    def measured(self) -> Commits:
        """The decoded residuals with noise, and public tables: a file for each group, or piece."""
        return Commits(self._measured, self.aside)

    @property
    def exact(self) -> Commits:
        """The exact answers about rows of residuals that no task holds: NOT public."""
        return Commits(self._exact, self.aside)

    @property
    def noisy(self) -> Commits:
        """The columns of these residuals with noise."""
        return Commits(self._noisy, self.aside)

    @property
    def published(self) -> Commits:
        """The tables and answers."""
        return Commits(self.result, self.aside)

    def again(self, limit: PersonLimit | None) -> PersonLimit | None:
        """Return the limit on rows of each person, which chooses the same rows after a restart."""
        return None if limit is None else replace(limit, key=self.key.read_bytes())

    def keep_charge(self, charge: str) -> None:
        """Store the name of a charge that a ledger may hold for the noise drawn here."""
        (self.folder / f"{_CHARGED}{charge}").touch()
        sync(self.folder, deep=False)

    def keep_records(self, fingerprint: str) -> None:
        """Store the fingerprint of the rows to be measured."""
        with open(self._records, "x", encoding="utf-8") as file:
            file.write(fingerprint)
            file.flush()
            os.fsync(file.fileno())

    @property
    def begun(self) -> bool:
        """Whether the rows to be measured are stored."""
        return self._records.exists()

    def is_of(self, records: SparkRecords) -> bool:
        """Return whether the work was begun with these rows."""
        return self._records.read_text(encoding="utf-8") == records.fingerprint

    def check_rows(self, records: SparkRecords) -> None:
        """Refuse rows that the work was not begun with.

        Raises:
            DataError: the table has other rows now.
        """
        if not self.is_of(records):
            raise DataError(CHANGED)

    def digests(self, what: str) -> Mapping[str, str] | None:
        """Return the digests that :meth:`keep_digests` stored; None before."""
        try:
            return read_json(self.folder / f"{what}.json", _MOST_BYTES)
        except FileNotFoundError:
            return None

    def keep_digests(self, what: str, digests: Mapping[str, str]) -> None:
        """Store that all files of a kind are complete, with digests: none of them is made again."""
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
        """The folder of files that are not complete, or were not the first."""
        return self.folder / "aside"

    @property
    def _records(self) -> Path:
        return self.folder / "records.txt"

    @property
    def _lock(self) -> Path:
        return self.folder / "driver.lock"

    @property
    def key(self) -> Path:
        """The file of the key that chooses rows of persons."""
        return self.folder / "person.key"
