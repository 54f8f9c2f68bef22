"""The results of a ledger. Each is charged, drawn, written to a scratch folder, and published."""

import contextlib
import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import final

from ..errors import BudgetError, DataError, GaussNoiseError, LedgerError, OutputError
from ..files.disk import (
    RESULT,
    check_parent,
    file_digest,
    folder_fault,
    held,
    new_folder,
    opened,
    parsed,
    publish,
    remove,
    result_in,
    sync,
)
from .ledger_entries import (
    CAP,
    NO_NOTE,
    REFUSAL_COLUMNS,
    LedgerEntry,
    Note,
    budget_of,
    delta_of,
    entries_in,
    numbers_in,
    result_of,
    spent_and_left,
    spent_delta,
    spent_delta_units,
    spent_rho,
    spent_units,
    unfinished_in,
    units_of,
)
from .ledger_file import alone, locked, sqlite_errors, transaction
from .protected import Protected, same_protected

_HISTORY = ("entries", "refusals")
OLD_TABLES = "gaussnoise.tables/2"  # format of folders whose record listed only the tables
NOT_SAID = "under a ledger it is not said where, and the refusal is recorded"
_REFUSED = (
    f"release: the data break the declared schema or domain; {NOT_SAID}; hint: gaussnoise check, "
    "of a tick gaussnoise stream check, or plan.check(table) in Python, shows the owner of a table "
    'which rows; with on_outside="drop" (tables, sums) or "project" (bodies) no value decides, but '
    "that of a column of ticks or signs"
)


@final
@dataclass(frozen=True, eq=False)
class Results:
    """The results that are drawn under a ledger; :class:`Ledger` states their guarantees.

    Attributes:
        path: the path of the ledger.
        note: the texts that are stored with new charges.
    """

    path: Path
    note: Note = NO_NOTE

    def once(
        self,
        id: str,
        cost: float,
        delta: float,
        request: Mapping[str, object],
        protects: str | Protected,
        place: Path | None,
        write: Callable[[Path], object],
        draws: int | None,
        ready: Callable[[], object] | None,
    ) -> Path:
        """Return the path of the one result of ``id``, drawn under its own charge if it is new.

        The arguments are those of :meth:`Ledger.once`, already checked.
        """
        parts = {
            name: _text_digest(json.dumps(value, sort_keys=True)) for name, value in request.items()
        }
        place = place or self.folder / f"{_file_name(id)}.json"
        with transaction(self.path) as database:
            entry, unfinished = result_of(database, id, parts), unfinished_in(database)
        self.tidy(unfinished)
        if entry is None or entry.state != "sealed":
            with self._alone(id), _held(place.parent) as parent:
                entry = self._charge(id, cost, delta, parts, protects, place, draws, ready)
                scratch = parent / _scratch_name(entry)
                if entry.state == "reserved":
                    entry = self._draw(entry, scratch, write)
                if entry.state == "written":
                    entry = self._settle(entry, scratch, parent, place)
        if _digest(place) != entry.sha256:
            raise LedgerError(
                f"ledger: the result of {id!r} was published at {entry.target}, but {place} is "
                "missing, unreadable or was changed; hint: name the place where it is, or put it "
                "back. From there, gaussnoise convert PLACE -o PATH --format ..., or in Python "
                "TableRelease.load(PLACE).save(PATH, format=...), writes the same tables elsewhere "
                "or in another format, at no cost. Another id would be charged again"
            )
        return place

    @property
    def folder(self) -> Path:
        """The folder of lock files, and of results for which no other path was given."""
        return self.path.with_name(self.path.name + ".releases")

    def _lock_file(self, id: str) -> Path:
        """Return the file that programs lock for a result, the same for all links to the ledger."""
        path = Path(os.path.realpath(self.path))
        return path.with_name(path.name + ".releases") / f"{_file_name(id)}.lock"

    @contextmanager
    def _alone(self, id: str) -> Iterator[None]:
        """Wait until no other program works on the id, then hold its lock within the block."""
        # the lock avoids needless draws; privacy does not depend on it: every draw has its charge
        path = self._lock_file(id)
        for folder in (self.folder, path.parent):
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                raise LedgerError(
                    f"ledger: cannot create {folder} ({type(error).__name__})"
                ) from None
        with contextlib.ExitStack() as stack:
            with sqlite_errors(path):
                stack.enter_context(alone(path))
            yield

    def tidy(self, unfinished: list[LedgerEntry]) -> None:
        """Remove the scratch files of unfinished results whose program is dead.

        A program is dead if the lock of its result is free.
        """
        for entry in unfinished:
            scratch, path = (
                Path(entry.target).with_name(_scratch_name(entry)),
                self._lock_file(entry.id),
            )
            if not os.path.lexists(scratch):
                continue
            with contextlib.suppress(sqlite3.Error, LedgerError):  # else the next program tries
                # if there is no lock file, it is unknown whether the program is alive
                uri = f"{path.as_uri()}?mode=rw"
                with closing(
                    sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
                ) as lock:
                    if locked(lock):
                        with transaction(self.path) as database:
                            still = [other.attempt for other in unfinished_in(database)]
                        if entry.attempt in still:
                            remove(scratch)

    def _charge(
        self,
        id: str,
        cost: float,
        delta: float,
        request: dict[str, str],
        protects: str | Protected,
        place: Path,
        draws: int | None,
        ready: Callable[[], object] | None,
    ) -> LedgerEntry:
        """Return the charge for this id; a new charge is on disk before this method returns."""
        with transaction(self.path, "IMMEDIATE") as database:
            current = result_of(database, id, request)
            if current is not None and current.state != "reserved":
                return current
            check_parent(place, "ledger")
            rows = database.execute("SELECT DISTINCT protects, protects_key FROM entries")
            others = [words for words, key in rows if not same_protected(words, key, protects)]
            words, key = (
                (protects, None) if isinstance(protects, str) else (protects.words, protects.key)
            )
            if others:
                raise LedgerError(
                    f"ledger: expected a release that protects {others[0]}, as those before it, "
                    f"got {words}; hint: their costs do not add up, keep one ledger for each"
                )
            rho = budget_of(database)
            units = units_of(cost, rho)
            if spent_units(database) + units > CAP:
                _, left = spent_and_left(spent_rho(database), numbers_in(database)[0], rho)
                raise BudgetError(
                    f"ledger: expected a cost of at most rho = {left}, the rest of {rho:.10g}, "
                    f"got {cost:.15g}"
                )
            delta_units = _delta_units(database, delta)
            if ready is not None:
                ready()
            if current is not None:  # the program that reserved it is dead, and may have drawn
                database.execute(
                    "UPDATE entries SET state = 'lost' WHERE attempt = ?", [current.attempt]
                )
            begun = datetime.now(UTC).isoformat(timespec="seconds")
            # Every attempt has its own number. A refusal is moved to its own table, and keeps its
            # number.
            last = (f"(SELECT coalesce(max(attempt), 0) FROM {table})" for table in _HISTORY)
            attempt = f"1 + max({', '.join(last)})"
            database.execute(
                "INSERT INTO entries (attempt, id, units, state, protects, protects_key, request, "
                f"target, begun, draws) VALUES ({attempt}, ?, ?, 'reserved', ?, ?, ?, ?, ?, ?)",
                [id, units, words, key, json.dumps(request), str(place), begun, draws],
            )
            if delta_units:  # in the same transaction: both are charged, or neither
                database.execute(
                    "UPDATE entries SET delta_units = ? WHERE id = ? AND state = 'reserved'",
                    [delta_units, id],
                )
            if self.note.lines:
                database.execute(
                    "INSERT INTO notes SELECT attempt, ?, ?, ? FROM entries "
                    "WHERE id = ? AND state = 'reserved'",
                    [*self.note, id],
                )
            *lost, reserved = entries_in(database, "id = ?", id)
            check_parent(place.with_name(_scratch_name(reserved)), "ledger")
        for entry in lost:
            remove(Path(entry.target).with_name(_scratch_name(entry)))
        return reserved

    def _draw(
        self, entry: LedgerEntry, scratch: Path, write: Callable[[Path], object]
    ) -> LedgerEntry:
        """Write the result to a scratch folder, record its sha256, and return the new charge."""
        written = True
        try:
            with new_folder(scratch) as folder:
                try:
                    digest = self._written(folder / RESULT, write)
                # list the open folder itself: its name may belong to another folder by now
                finally:
                    written = any(not path.is_dir() for path in folder.rglob("*"))
        except BaseException as error:
            remove(scratch)
            # A refusal, of any class of error, depends on the data only. A failure to write may
            # depend on the draws, so it stays charged. So do results that were written: they may
            # have been seen.
            if isinstance(error, GaussNoiseError) and not (
                written or isinstance(error, OutputError)
            ):
                self._refuse(entry)
            if isinstance(error, OSError) and not isinstance(error, GaussNoiseError):
                raise OutputError(
                    f"ledger: cannot write beside {entry.target} ({type(error).__name__})"
                ) from None
            if not isinstance(error, DataError):
                raise
        else:
            return self._on_disk(entry, scratch, digest)
        # raised outside the handler: the original error must not be attached as its context
        raise DataError(_REFUSED)

    def _refuse(self, entry: LedgerEntry) -> None:
        """Change a charge for which nothing was drawn into a refusal, and give back its budget."""
        columns = REFUSAL_COLUMNS
        mine = "WHERE attempt = ? AND state = 'reserved'"
        with (
            contextlib.suppress(LedgerError),
            transaction(self.path, "IMMEDIATE") as database,
        ):  # if the ledger cannot be written, the charge remains
            database.execute(
                f"INSERT INTO refusals ({columns}) SELECT {columns} FROM entries {mine}",
                [entry.attempt],
            )
            database.execute(f"DELETE FROM entries {mine}", [entry.attempt])

    def _on_disk(self, entry: LedgerEntry, scratch: Path, digest: str) -> LedgerEntry:
        """Record that a result is complete and must not be drawn again; return the new charge."""
        with transaction(self.path, "IMMEDIATE") as database:
            mine = database.execute(
                "UPDATE entries SET state = 'written', sha256 = ? WHERE attempt = ? AND state = "
                "'reserved'",
                [digest, entry.attempt],
            ).rowcount
        if not mine:
            remove(scratch)
            raise LedgerError(
                f"ledger: another program took {entry.id!r} over; hint: leave lock files alone"
            )
        return replace(entry, state="written", sha256=digest)

    @staticmethod
    def _written(scratch: Path, write: Callable[[Path], object]) -> str:
        """Write a new result to the scratch folder, sync it to disk, and return its sha256."""
        try:
            write(scratch)
            sync(scratch)
            if (digest := _digest(scratch)) is not None:
                return digest
            reason = "incomplete"
        except GaussNoiseError:
            raise
        except OSError as error:
            reason = type(error).__name__
        raise OutputError(f"ledger: could not write the result ({reason}); nothing was kept")

    def _settle(self, entry: LedgerEntry, scratch: Path, parent: Path, place: Path) -> LedgerEntry:
        """Move a complete result to its final path, and mark its charge as finished."""
        if os.path.realpath(entry.target) != os.path.realpath(place):
            raise LedgerError(
                f"ledger: {entry.id!r} was begun at {entry.target}; hint: run it again there"
            )
        there, result = _digest(place) == entry.sha256, result_in(scratch)
        if not there and _digest(result) != entry.sha256:
            raise LedgerError(
                f"ledger: the result of {entry.id!r} was drawn, but is missing; hint: another id, "
                "which is charged again"
            )
        publish(None if there else result, parent, place)
        remove(scratch)
        with transaction(self.path, "IMMEDIATE") as database:
            database.execute(
                "UPDATE entries SET state = 'sealed' WHERE attempt = ?", [entry.attempt]
            )
        return replace(entry, state="sealed")


def _delta_units(database: sqlite3.Connection, delta: float) -> int:
    """Return this δ in units of its budget, rounded up; raise BudgetError if fewer are left."""
    most = delta_of(database)
    if delta == 0:
        return 0
    if most == 0:
        raise BudgetError(
            f"ledger: expected a release without thresholds, got one that spends delta = "
            f"{delta:.6g} on them; hint: gaussnoise ledger create PATH --rho RHO --delta DELTA, or "
            "Ledger.create(path, budget, delta=...), allows it, and a search needs no threshold "
            "where a public range (radius=) or list is given"
        )
    units, spent = units_of(delta, most), spent_delta_units(database)
    if spent + units > CAP:
        charges, _ = numbers_in(database)
        _, left = spent_and_left(spent_delta(database), charges, most)
        raise BudgetError(
            f"ledger: expected a delta of at most {left}, the rest of {most:.10g}, got {delta:.15g}"
        )
    return units


@contextmanager
def _held(parent: Path) -> Iterator[Path]:
    """Yield the folder for a result, held open; raise OutputError if it cannot be opened."""
    with contextlib.ExitStack() as stack:
        try:
            inside = stack.enter_context(held(parent))
        except OSError as error:
            raise OutputError(
                f"ledger: cannot write to {parent} ({type(error).__name__}); "
                "hint: name a place inside an existing directory"
            ) from None
        yield inside


def _file_name(id: str) -> str:
    """Return a file name for an id, different for different ids even on disks that ignore case."""
    return re.sub(r"[^a-z0-9]+", "-", id.lower())[:60] + "-" + _text_digest(id)[:20]


def _scratch_name(entry: LedgerEntry) -> str:
    """Return the name of the folder, next to the final place, for a charge's result."""
    # next to it, so that one move publishes the result
    return f".{_file_name(entry.id)}.{entry.attempt}.partial"


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(result: Path) -> str | None:
    """Return the sha256 of a result (of a folder: of its record); None if it is incomplete."""
    try:
        if not result.is_dir():
            return file_digest(result)
        with opened(result / "release.json") as file:
            content = file.read()
        record = parsed(content)
        if (
            folder_fault(result, record["files"], every=record.get("format") != OLD_TABLES)
            is not None
        ):
            return None
        return hashlib.sha256(content).hexdigest()
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
