"""The file of a ledger: an SQLite database with one name, synced after each transaction."""

import glob
import json
import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import GaussNoiseError, LedgerError
from ..files.disk import RESULT, remove
from ..files.mounts import mount_of

_APPLICATION = 0x676E6C64  # "gnld", in the header of the file
_FORMAT = 1
_FORMAT_DELTA = 2  # ledgers with a δ, which older programs must not charge
_FORMAT_SCALES, _FORMAT_BOTH = 3, 4  # budgets that grow with numbers in a record; the same with a δ
_FORMATS = (_FORMAT, _FORMAT_DELTA, _FORMAT_SCALES, _FORMAT_BOTH)
_TABLES = """
CREATE TABLE budget (rho TEXT NOT NULL);
CREATE TABLE entries (
    attempt INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    units INTEGER NOT NULL CHECK (typeof(units) = 'integer' AND units >= 0),
    state TEXT NOT NULL CHECK (state IN ('reserved', 'written', 'sealed', 'lost')),
    sha256 TEXT CHECK ((sha256 IS NULL) = (state IN ('reserved', 'lost'))),
    protects TEXT NOT NULL,
    request TEXT NOT NULL,
    target TEXT NOT NULL,
    begun TEXT NOT NULL,
    draws INTEGER,
    protects_key TEXT
);
CREATE UNIQUE INDEX one_result ON entries (id) WHERE state <> 'lost';
"""
# Tables that the oldest ledgers get when they are written to; old programs ignore these tables.
_LATER_TABLES = """
CREATE TABLE IF NOT EXISTS refusals (
    attempt INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    protects TEXT NOT NULL,
    request TEXT NOT NULL,
    target TEXT NOT NULL,
    begun TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS home (identity TEXT NOT NULL, path BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS notes (
    attempt INTEGER PRIMARY KEY,
    purpose TEXT,
    requested_by TEXT,
    approval TEXT
);
"""
_DELTA_COLUMNS = """
ALTER TABLE budget ADD COLUMN delta TEXT;
ALTER TABLE entries ADD COLUMN delta_units INTEGER NOT NULL DEFAULT 0
    CHECK (typeof(delta_units) = 'integer' AND delta_units >= 0);
"""
_SCALES_COLUMN = "ALTER TABLE budget ADD COLUMN scales TEXT"  # a JSON object of numbers
_BUSY_SECONDS = 30.0  # time to wait for another transaction, which takes milliseconds


def new_tables(
    scratch: Path, target: Path, rho: float, delta: float, scales: Mapping[str, float]
) -> None:
    """Write an empty ledger into an existing file that will later be moved to ``target``."""
    with sqlite_errors(target), closing(sqlite3.connect(scratch, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = EXTRA")
        database.executescript(_TABLES + _LATER_TABLES)
        database.execute("INSERT INTO budget VALUES (?)", [rho.hex()])
        if delta:
            database.executescript(_DELTA_COLUMNS)
            database.execute("UPDATE budget SET delta = ?", [delta.hex()])
        if scales:
            database.execute(_SCALES_COLUMN)
            database.execute("UPDATE budget SET scales = ?", [json.dumps({**scales})])
        # record the final path, so that copies are recognised
        _settle_home(database, Path(os.path.realpath(target)))
        database.execute(f"PRAGMA application_id = {_APPLICATION}")
        number = _FORMATS[2 * bool(scales) + bool(delta)]
        database.execute(f"PRAGMA user_version = {number}")


@contextmanager
def transaction(path: Path, kind: str = "DEFERRED") -> Iterator[sqlite3.Connection]:
    """Check the ledger's database, and yield it within a transaction.

    If the block raises an error, the transaction is undone; otherwise it is committed to disk.
    """
    _check_one_name(path)
    with sqlite_errors(path):
        uri = f"{path.as_uri()}?mode=rw"  # "rw" never creates a ledger
        with closing(
            sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        ) as database:
            # EXTRA also syncs the folder: otherwise, after a power cut, a deleted journal could
            # reappear and undo a charge
            database.execute("PRAGMA synchronous = EXTRA")
            if database.execute("PRAGMA application_id").fetchone() != (_APPLICATION,):
                raise LedgerError(f"ledger: {path} is a database of something else")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version not in _FORMATS:
                raise LedgerError(
                    f"ledger: expected a format from {_FORMAT} to {_FORMAT_BOTH} at {path}, got "
                    f"{version}; hint: upgrade gaussnoise"
                )
            _leave_write_ahead_log(database, patient=kind != "DEFERRED")
            database.execute(f"BEGIN {kind}")
            if database.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise LedgerError(f"ledger: {path} is damaged; {DAMAGED}")
            if kind != "DEFERRED":
                _upgrade(database)
                _check_home(database, path)
            yield database
            database.execute("COMMIT")


def _check_one_name(path: Path) -> None:
    """Raise LedgerError for a file with several names, each of which would have its own journal."""
    try:
        status = os.stat(path)
        if (
            status.st_nlink > 1
        ):  # a program that died while creating the ledger may have left another name
            for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
                for file in (left, left / RESULT):
                    if os.path.lexists(file) and os.path.samestat(os.lstat(file), status):
                        remove(file)
            status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        status = None
    except (OSError, ValueError) as error:
        raise LedgerError(
            f"ledger: {path} cannot be opened ({type(error).__name__}); hint: see its permissions "
            "and those of its folder"
        ) from None
    if status is None or not stat.S_ISREG(status.st_mode):
        raise LedgerError(
            f"ledger: no ledger at {path}; hint: gaussnoise ledger create PATH --rho RHO, or "
            "Ledger.create(path, budget)"
        )
    one_name = f"ledger: expected one name for {path}, got"
    lost = "after a crash, charges under one name are unknown under the other"
    if status.st_nlink > 1:
        raise LedgerError(
            f"{one_name} a hard link: {lost}; hint: find its names with `find / -samefile`, and "
            "keep one"
        )
    if _waits(journal := _journal(Path(os.path.realpath(path)))):
        raise LedgerError(f"ledger: {journal} is no regular file; hint: take it away")
    if (mount := mount_of(path)) and mount.point == os.path.realpath(path):
        raise LedgerError(
            f"{one_name} a file that is mounted there: {lost}; hint: mount its folder"
        )


def _leave_write_ahead_log(database: sqlite3.Connection, *, patient: bool) -> None:
    """Turn off the write-ahead log, which ledgers of the first versions used."""
    # Such a log belongs to a name, not to the file: two names have two logs. It turns off only if
    # no other program uses the ledger; a transaction that only reads may go on with the log.
    end = time.monotonic() + _BUSY_SECONDS
    while database.execute("PRAGMA journal_mode").fetchone() != ("delete",):
        try:
            database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if not patient:
                return
            if (
                _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                or time.monotonic() > end
            ):
                raise
            time.sleep(0.01)


def _upgrade(database: sqlite3.Connection) -> None:
    """Add the tables and columns that ledgers of the first versions lack."""
    for statement in _LATER_TABLES.split(";"):
        database.execute(statement)
    for name, kind in (("draws", "INTEGER"), ("protects_key", "TEXT")):
        if not _knows(database, name):
            database.execute(f"ALTER TABLE entries ADD COLUMN {name} {kind}")


def _settle_home(database: sqlite3.Connection, here: Path) -> None:
    """Give a new ledger a random identity, and record its path, so that copies are recognised."""
    database.execute("INSERT INTO home VALUES (?, ?)", [secrets.token_hex(16), os.fsencode(here)])


def _check_home(database: sqlite3.Connection, path: Path) -> None:
    """Raise LedgerError for a copy of a ledger, or one that was moved without its journal."""
    here = Path(os.path.realpath(path))
    row = database.execute("SELECT identity, path FROM home").fetchone()
    if row is None:
        _settle_home(database, here)
        return
    identity, home = row[0], Path(os.fsdecode(row[1]))
    if home == here:
        return
    try:
        there = os.stat(home) if os.path.lexists(home) else None
        same = there is not None and os.path.samestat(there, os.stat(here))
        # two names of one folder, as if containers mount it twice, share the journal
        if same and not os.path.samestat(os.stat(home.parent), os.stat(here.parent)):
            raise LedgerError(f"ledger: {path} is {home} as well; hint: use that name")
        if there is not None and not same and _identity(home) == identity:
            raise LedgerError(
                f"ledger: {path} is a copy of {home}, which is still there: charges to one are "
                "unknown to the other; hint: release under that one; a copy can be read"
            )
        # a journal left at the former path holds a transaction that must be undone here
        journal = _journal(home)
        if there is None and os.path.lexists(journal):
            raise LedgerError(
                f"ledger: {path} was moved from {home} without its journal; "
                f"hint: move {journal} to {here}-journal, or a crash cannot be undone"
            )
    except OSError:  # the former path is not accessible
        pass
    database.execute("UPDATE home SET path = ?", [os.fsencode(here)])


def _journal(path: Path) -> Path:
    """Return the path of SQLite's journal file, which can undo an interrupted transaction."""
    return path.with_name(path.name + "-journal")


def _waits(path: Path) -> bool:
    """Return whether a path is no regular file, so that opening it may never end."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _identity(path: Path) -> str | None:
    """Return the random identity of the ledger at a path, or None if no ledger is there."""
    if _waits(path) or _waits(_journal(path)):
        return None
    try:
        uri = f"{path.as_uri()}?mode=ro"
        with closing(
            sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        ) as database:
            return database.execute("SELECT identity FROM home").fetchone()[0]
    except (sqlite3.Error, TypeError):
        return None


DAMAGED = "hint: charges may be missing, so count its budget as spent"
_BUSY = "is busy; hint: another program keeps a transaction open"
_CLOSED = "cannot be opened; hint: see its permissions and those of its folder"
_STRANGE = "is not a ledger, or is damaged; " + DAMAGED
_MEANINGS = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_FULL: "cannot grow; hint: the disk is full",
    sqlite3.SQLITE_READONLY: "cannot be written; hint: see its permissions and those of its folder",
    sqlite3.SQLITE_PERM: _CLOSED,
    sqlite3.SQLITE_CANTOPEN: _CLOSED,
    sqlite3.SQLITE_IOERR: "cannot be read or written; hint: the disk is full or failing",
    sqlite3.SQLITE_NOTADB: _STRANGE,
    sqlite3.SQLITE_CORRUPT: "is damaged; " + DAMAGED,
}


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Raise a LedgerError with a hint for every SQLite error within the block."""
    try:
        yield
    except sqlite3.Error as error:
        meaning = _MEANINGS.get(_code(error), _STRANGE)
        raise LedgerError(f"ledger: {path} {meaning}") from None
    except GaussNoiseError:
        raise
    except (
        TypeError,
        ValueError,
        ArithmeticError,
        RecursionError,
    ):  # values in the file, or in SQLite's message about them, have unexpected types
        raise LedgerError(f"ledger: {path} is damaged; {DAMAGED}") from None


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code of an error."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def knows_draws(database: sqlite3.Connection) -> bool:
    """Return whether the ledger records how many noises each charge draws.

    Ledgers of the first versions do not.
    """
    return _knows(database, "draws")


def _knows(database: sqlite3.Connection, name: str) -> bool:
    """Return whether the table of charges in the ledger has a column of this name."""
    return any(column[1] == name for column in database.execute("PRAGMA table_info(entries)"))


def knows_delta(database: sqlite3.Connection) -> bool:
    """Return whether the ledger has a budget for δ."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return version in (_FORMAT_DELTA, _FORMAT_BOTH)


def knows_scales(database: sqlite3.Connection) -> bool:
    """Return whether the ledger's budget grows with numbers in a record."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return version in (_FORMAT_SCALES, _FORMAT_BOTH)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other program holds the lock of a file, and hold the lock within the block.

    The lock is a transaction on an empty file, which ends when this program dies.
    """
    # the short timeout lets Ctrl-C be noticed once a second
    with closing(sqlite3.connect(path, timeout=1.0, isolation_level=None)) as lock:
        while not locked(lock):
            pass
        yield


def locked(lock: sqlite3.Connection) -> bool:
    """Try to take the lock within the connection's timeout; return whether it was taken."""
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if _code(error) != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
