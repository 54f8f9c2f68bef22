"""The private folder of a release that executors have begun and not completed."""

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
    """A private folder of unfinished work, on the same file system as the release.

    Only its owner may enter it. It holds the noisy measurements, which are stored before anything
    is computed from them. It also holds the files of the release until all are complete. It is
    removed at the end.
    """

    folder: Path

    @classmethod
    def beside(cls, out: Path, token: str) -> "Work":
        """Return the private work folder of the run named ``token``, in the folder of ``out``."""
        return cls(out.with_name(f".{out.name}.{token}.work"))

    @staticmethod
    def clear(out: Path, charge: str | None = None) -> None:
        """Remove work folders that drivers of earlier runs for ``out`` left when they were killed.

        A folder whose lock is held stays. Work that a ledger may have charged stays too, so that it
        can be continued. But if ``charge`` identifies that charge, the work is removed.
        """
        left = re.compile(re.escape(f".{out.name}.") + r"[0-9a-f]{16}\.work(\.[0-9a-f]{16})?")
        with contextlib.suppress(OSError):  # the next run tries again
            for path in [path for path in out.parent.iterdir() if left.fullmatch(path.name)]:
                if path.suffix == ".work":
                    Work(path)._clear(charge)
                else:  # its removal was interrupted
                    remove(path)

    def _clear(self, charge: str | None) -> None:
        """Remove this folder, unless its driver is running or a ledger may have charged it."""

        def unknown() -> bool:
            charged = {path.name for path in self.folder.glob(f"{_CHARGED}*")}
            # a driver holds the lock before it writes the key, so a free lock then means it died
            return os.path.lexists(self.key) and charged <= {f"{_CHARGED}{charge}"}

        if unknown():  # checked before locking: a starting driver must not find its lock taken
            with (
                contextlib.suppress(OSError),  # another program removed it
                exclusive_lock(self._lock, unknown=False) as free,
            ):
                if free and unknown():
                    remove_at_once(self.folder)

    def make(self) -> None:
        """Create the private folder, with its inner folders and the file of its lock."""
        self.folder.mkdir(mode=0o700)
        for inner in (self.result, self._measured, self.aside):
            inner.mkdir()
        self._lock.touch()

    def make_key(self) -> None:
        """Draw and store the random key that decides which rows of each person are counted."""
        with open(self.key, "xb") as file:
            file.write(secrets.token_bytes(16))
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock of this work folder in the ``with`` block, if the file system has locks.

        Raises:
            OutputError: another program holds the lock.
        """
        with contextlib.ExitStack() as stack:
            free = True
            with contextlib.suppress(FileNotFoundError):  # the work is complete, or lost
                free = stack.enter_context(exclusive_lock(self._lock))
            if not free:
                raise OutputError(
                    "release: another program is completing this release; hint: wait until it has "
                    "ended, and run this again"
                )
            yield

    @property
    def result(self) -> Path:
        """The inner folder that becomes the directory of the release when it is complete."""
        return self.folder / "result"

    @property
    def measured(self) -> Commits:
        """The committed measurements: residuals with noise, and public tables.

        There is one file for each group of attributes, or for each piece of a large residual.
        """
        return Commits(self._measured, self.aside)

    @property
    def exact(self) -> Commits:
        """The committed exact answers of pieces of rows of large residuals: NOT public."""
        return Commits(self._exact, self.aside)

    @property
    def noisy(self) -> Commits:
        """The committed columns with noise, for residuals too large for one task."""
        return Commits(self._noisy, self.aside)

    @property
    def published(self) -> Commits:
        """The committed tables and answers of the release."""
        return Commits(self.result, self.aside)

    def again(self, limit: PersonLimit | None) -> PersonLimit | None:
        """Return the limit on rows per person with the stored key, which selects the same rows."""
        return None if limit is None else replace(limit, key=self.key.read_bytes())

    def keep_charge(self, charge: str) -> None:
        """Store ``charge``, a hash that identifies the ledger's charge for this work's noise."""
        (self.folder / f"{_CHARGED}{charge}").touch()
        sync(self.folder, deep=False)

    def keep_records(self, fingerprint: str) -> None:
        """Store the fingerprint of the table's rows. From then on, :attr:`begun` is True."""
        with open(self._records, "x", encoding="utf-8") as file:
            file.write(fingerprint)
            file.flush()
            os.fsync(file.fileno())

    @property
    def begun(self) -> bool:
        """Whether this work was begun: whether the fingerprint of the table's rows is stored."""
        return self._records.exists()

    def is_of(self, records: SparkRecords) -> bool:
        """Return whether the work was begun with these rows, by comparing fingerprints."""
        return self._records.read_text(encoding="utf-8") == records.fingerprint

    def check_rows(self, records: SparkRecords) -> None:
        """Refuse rows other than those of the begun work.

        Raises:
            DataError: the table has other rows now.
        """
        if not self.is_of(records):
            raise DataError(CHANGED)

    def digests(self, what: str) -> Mapping[str, str] | None:
        """Return {file: sha256} that :meth:`keep_digests` stored as ``what``, or None."""
        try:
            return read_json(self.folder / f"{what}.json", _MOST_BYTES)
        except FileNotFoundError:
            return None

    def keep_digests(self, what: str, digests: Mapping[str, str]) -> None:
        """Store {file: sha256} of a complete set of files under the name ``what``.

        The files of this set are never made again: a missing one is an error.
        """
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
        """The folder for incomplete files, and for files that another task had committed first."""
        return self.folder / "aside"

    @property
    def _records(self) -> Path:
        return self.folder / "records.txt"

    @property
    def _lock(self) -> Path:
        return self.folder / "driver.lock"

    @property
    def key(self) -> Path:
        """The file of the random key that decides which rows of each person are counted."""
        return self.folder / "person.key"
