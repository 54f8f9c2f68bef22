"""A budget on disk that several programs share: charge first, draw once, never again under the same id."""

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, final

from ._rounding import rounded_down, rounded_up
from .errors import BudgetError, GaussNoiseError, LedgerError, OutputError, ParameterError

if TYPE_CHECKING:
    from .privacy import zCDP

T = TypeVar("T")

# Costs are integers: shares of the budget, rounded up to 2⁻⁶², so that any budget will do and 64 bits are enough. The
# cap is a part in 10¹² above the budget: ten releases at 0.1 fit into 1, though ten times the float 0.1 is more than 1.
_BUDGET_UNITS = 2**62
_CAP = _BUDGET_UNITS + 2**22

_APPLICATION = 0x676E6C64  # "gnld", in the file's header
_FORMAT = 1
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
    draws INTEGER
);
CREATE UNIQUE INDEX one_result ON entries (id) WHERE state <> 'lost';
"""
_BUSY_SECONDS = 30.0  # of a transaction, which takes milliseconds
_LONGEST_ID = 200


@final
@dataclass(frozen=True, eq=False)
class LedgerEntry:
    """One charge. Public: nothing in it depends on data.

    Attributes:
        attempt: number of the charge in the ledger.
        id: what the release is called.
        rho: charged, rounded up.
        state: "reserved": being drawn, or its program died meanwhile; "written": drawn, to be put into place by the
            next run; "sealed": published; "lost": its program died before the result was written. All are charged.
        sha256: of the result: the file, or the ``release.json`` of a directory.
        protects: neighbouring relation and privacy unit.
        request: a digest of every part of what was asked for.
        target: where the result belongs.
        begun: time of the charge, UTC.
        draws: how many discrete Gaussians it adds, at most; None where no more than rho is known of the noise.
    """

    attempt: int
    id: str
    rho: float
    state: str
    sha256: str | None
    protects: str
    request: Mapping[str, str]
    target: str
    begun: str
    draws: int | None


@final
@dataclass(frozen=True, eq=False)
class Ledger:
    """A file that keeps all releases from one data set within one budget of ρ-zCDP.

    Formal guarantees:
        * Every draw is preceded by its own charge, on disk before any noise exists, and charges never add up to more
          than ``rho`` (1 + 10⁻¹²): whatever the number of programs, and whenever they are killed. Budgets that are
          chosen as results come in add up like fixed ones (Feldman & Zrnic 2021; Whitehouse et al. 2023).
        * One id has one result. Once it is written, the same request under the same id reads it again; nothing is
          drawn, nothing charged. Another request under that id is refused. The data are not compared: an id names one
          release of one table.
        * A program that dies between charge and result loses the charge, never privacy: what it drew may have been
          seen, so it stays charged, and the next run under that id is charged again, if the budget allows. So does one
          that is interrupted, or cannot write. Only a refusal of the data before anything is written leaves no
          charge; refusals depend on the data anyway.

    All releases must protect the same: charges under different relations or privacy units do not add up.

    The file is an SQLite database. Locks are the operating system's and end with the program that holds them, so none
    can be stale; they need a local file system. While programs run, or after they were killed, part of the ledger is in
    ``<path>-wal``: keep the two together. An older copy put back forgets charges.

    Attributes:
        path: of the ledger; ``<path>.releases`` is the folder for results that have no place of their own.
        rho: the budget, fixed when the ledger was created.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = gn.Ledger.create(f"{folder}/survey.ledger", gn.zCDP(1.0))
    ...     print(ledger.remaining, ledger.entries())
    1.0 ()
    """

    path: Path
    rho: float

    @classmethod
    def create(cls, path: str | os.PathLike[str], budget: "zCDP") -> "Ledger":
        """Start a new ledger.

        Args:
            path: a new file.
            budget: of everything that will ever be released under it. Other promises, such as (ε, δ), do not add up;
                they cost the ρ of their noise here, and ``budget.epsilon(delta)`` is what all releases together imply;
                :meth:`epsilon`, what those so far do.

        Raises:
            ParameterError: not zCDP.
            OutputError: the file exists, or cannot be written.
        """
        from .privacy import zCDP

        if not isinstance(budget, zCDP):
            raise ParameterError(f"Ledger.create: expected a budget like zCDP(1.0), got {type(budget).__name__}")
        target, rho = Path(os.path.abspath(path)), budget.rho
        if os.path.lexists(target):
            raise OutputError(f"Ledger.create: {target} exists already; hint: Ledger.open(path), its budget is fixed")
        try:
            handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
            os.close(handle)
        except OSError as error:
            raise OutputError(f"Ledger.create: cannot write to {target.parent} ({type(error).__name__})") from None
        scratch = Path(name)
        try:
            with _sqlite_errors(target), closing(sqlite3.connect(scratch, isolation_level=None)) as database:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
                database.executescript(_TABLES)
                database.execute("INSERT INTO budget VALUES (?)", [rho.hex()])
                database.execute(f"PRAGMA application_id = {_APPLICATION}")
                database.execute(f"PRAGMA user_version = {_FORMAT}")
            sync(scratch)
            publish(scratch, target)
        finally:
            remove(scratch)
        return cls(target, rho)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Ledger":
        """An existing ledger.

        Raises:
            LedgerError: missing, unreadable, damaged, or of another format.
        """
        target = Path(os.path.abspath(path))
        with _transaction(target) as database:
            return cls(target, _budget(database))

    @classmethod
    def of(cls, ledger: object) -> "Ledger":
        """A ledger, or the one at a path.

        Raises:
            ParameterError: neither.
        """
        if isinstance(ledger, Ledger):
            return ledger
        if not isinstance(ledger, str | os.PathLike):
            raise ParameterError(f"expected ledger to be a Ledger or its path, got {type(ledger).__name__}")
        return cls.open(ledger)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """All charges, oldest first."""
        with _transaction(self.path) as database:
            return tuple(_entries(database))

    @property
    def spent(self) -> float:
        """ρ charged so far, rounded up."""
        with _transaction(self.path) as database:
            return rounded_up(Fraction(_spent(database), _BUDGET_UNITS) * Fraction(_budget(database)))

    @property
    def remaining(self) -> float:
        """ρ that can still be charged, rounded down."""
        with _transaction(self.path) as database:
            left = Fraction(max(_BUDGET_UNITS - _spent(database), 0), _BUDGET_UNITS) * Fraction(_budget(database))
        return 0.0 + rounded_down(left)

    def epsilon(self, delta: float) -> float:
        """The ε for which everything charged so far, lost charges too, is jointly (ε, δ)-differentially private.

        Formal guarantees:
            * What was asked, and in how many releases, may depend on earlier results, as long as what was charged and
              drawn in all is no more than was settled beforehand. Where results decided whether to spend more, only the
              budget was settled: then ``gn.zCDP(ledger.rho).epsilon(delta)`` holds (Whitehouse et al. 2023).
            * Where all noise is Gaussian and the ledger knows how much was drawn, ρ is that of one Gaussian. Proof: say
              that release i shifts continuous, rounded noise by a whitened length μ_i <= √(2ρ_i) which the past
              determines. It can be made from an increment over a time μ_i² of a Brownian motion, with drift 0 or 1, and
              independent noise. So all are post-processing of a path over ``[0, 2ρ]``, whose likelihood ratio is that
              of its end (Smith & Thakurta 2022; Koskela, Tobaben & Honkela 2023). The divergences of the discrete
              noise, which :func:`~gaussnoise._lattice_bound.lattice_distance` bounds, add up by the chain rule.
            * Otherwise through zCDP, which adds up for any noise.

        Args:
            delta: in (0, 1).

        Returns:
            ε >= 0.

        Raises:
            ParameterError: delta out of range.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     gn.Ledger.create(f"{folder}/survey.ledger", gn.zCDP(1.0)).epsilon(1e-6)
        0.0
        """
        from .privacy import gaussian_epsilon, zCDP

        with _transaction(self.path) as database:
            spent = rounded_up(Fraction(_spent(database), _BUDGET_UNITS) * Fraction(_budget(database)))
            draws = [entry.draws for entry in _entries(database)]
        known = [count for count in draws if count is not None]
        if spent > 0 and len(known) < len(draws):
            return zCDP(spent).epsilon(delta)
        return gaussian_epsilon(spent, delta, sum(known))

    def once(
        self,
        id: str,
        *,
        cost: float,
        request: Mapping[str, object],
        protects: str,
        target: str | os.PathLike[str] | None,
        write: Callable[[Path], object],
        read: Callable[[Path], T],
        draws: int | None = None,
    ) -> T:
        """The one result of ``id``: drawn under a charge of its own, or read again. Waits for others drawing it.

        Args:
            id: 1 to 200 printable characters without slashes.
            cost: ρ that ``write`` spends, at most.
            request: all public parameters of the result, as JSON values; never anything from the data.
            protects: neighbouring relation and privacy unit.
            target: where the result belongs; None for a file in the ledger's own folder.
            write: draws noise and writes the result to a path where nothing is yet: a file, or a directory whose
                ``release.json`` lists the sha256 of all others under "files".
            read: the result from its file or directory.
            draws: if all noise is discrete Gaussian, of at least ``MIN_STEPS`` lattice steps: of how many integers, at
                most. None for any other noise that keeps ``cost``-zCDP.

        Raises:
            ParameterError: a bad id, cost or number of draws.
            BudgetError: the budget does not allow the cost; nothing was drawn.
            LedgerError: another request under this id; a result that is missing or was changed; an unusable ledger.
            OutputError: the target exists already, or cannot be written.
        """
        _check_id(id)
        if not (math.isfinite(cost) and cost >= 0):
            raise ParameterError(f"ledger: expected a finite cost >= 0, got {cost!r}")
        if not (draws is None or (isinstance(draws, int) and 0 <= draws < 2**63)):
            raise ParameterError(f"ledger: expected a 64-bit number of draws >= 0, or None, got {draws!r}")
        parts = {name: _text_digest(json.dumps(value, sort_keys=True)) for name, value in request.items()}
        place = self._folder / f"{_file_name(id)}.json" if target is None else Path(os.path.abspath(target))
        with _transaction(self.path) as database:
            entry = _result(database, id, parts)
        if entry is None or entry.state != "sealed":
            with self._alone(id):
                entry = self._charge(id, cost, parts, protects, place, draws)
                scratch = _scratch(place, id, entry.attempt)
                if entry.state == "reserved":
                    entry = self._draw(entry, scratch, write)
                if entry.state == "written":
                    entry = self._settle(entry, scratch, place)
        if _digest(place) != entry.sha256:
            raise LedgerError(
                f"ledger: the result of {id!r} was published at {entry.target}, but {place} is missing or was "
                "changed; hint: put it back, or take another id for a new release"
            )
        return read(place)

    @property
    def _folder(self) -> Path:
        return self.path.with_name(self.path.name + ".releases")

    @contextmanager
    def _alone(self, id: str) -> Iterator[None]:
        """Waits until nobody else works on this id. The lock is a transaction on an empty file: it dies with us.

        It saves others from drawing in vain; privacy does not rest on it, every draw has its own charge.
        """
        try:
            self._folder.mkdir(exist_ok=True)
        except OSError as error:
            raise LedgerError(f"ledger: cannot create {self._folder} ({type(error).__name__})") from None
        path = self._folder / f"{_file_name(id)}.lock"
        with _sqlite_errors(path):
            lock = sqlite3.connect(path, timeout=1.0, isolation_level=None)  # Ctrl-C is heard once a second
        with closing(lock):
            with _sqlite_errors(path):
                while not _locked(lock):
                    pass
            yield

    def _charge(
        self, id: str, cost: float, request: dict[str, str], protects: str, place: Path, draws: int | None
    ) -> LedgerEntry:
        """The entry that has the result of this id, or a new charge, on disk when this returns."""
        with _transaction(self.path, "IMMEDIATE") as database:
            current = _result(database, id, request)
            if current is not None and current.state != "reserved":
                return current
            _check_free(place)
            others = {row[0] for row in database.execute("SELECT DISTINCT protects FROM entries")} - {protects}
            if others:
                raise LedgerError(
                    f"ledger: expected a release that protects {others.pop()}, as those before it, got {protects}; "
                    "hint: their costs do not add up, keep one ledger for each"
                )
            rho, spent = _budget(database), _spent(database)
            units = _units(cost, rho)
            if spent + units > _CAP:
                left = float(Fraction(max(_BUDGET_UNITS - spent, 0), _BUDGET_UNITS) * Fraction(rho))
                raise BudgetError(
                    f"ledger: expected a cost of at most rho = {left:.6g}, what is left of {rho:.6g}, got {cost:.6g}"
                )
            if current is not None:  # we hold its lock: whoever reserved it is dead, and may have drawn
                database.execute("UPDATE entries SET state = 'lost' WHERE attempt = ?", [current.attempt])
            begun = datetime.now(UTC).isoformat(timespec="seconds")
            if not _knows_draws(database):
                database.execute("ALTER TABLE entries ADD COLUMN draws INTEGER")
            database.execute(
                "INSERT INTO entries (id, units, state, protects, request, target, begun, draws) "
                "VALUES (?, ?, 'reserved', ?, ?, ?, ?, ?)",
                [id, units, protects, json.dumps(request), str(place), begun, draws],
            )
            *lost, reserved = _entries(database, id)
            _check_free(_scratch(place, id, reserved.attempt))
        for entry in lost:
            remove(_scratch(place, id, entry.attempt))
        return reserved

    def _draw(self, entry: LedgerEntry, scratch: Path, write: Callable[[Path], object]) -> LedgerEntry:
        """Write the result aside, on disk and with its digest in the ledger when this returns."""
        try:
            digest = self._written(scratch, write)
        except GaussNoiseError as error:
            # refusals know the data only; a failure to write may depend on what was drawn, and stays charged
            written = any(path.is_file() for path in (scratch, *scratch.rglob("*")))
            remove(scratch)
            if not (written or isinstance(error, OutputError)):
                with contextlib.suppress(LedgerError), _transaction(self.path, "IMMEDIATE") as database:
                    database.execute("DELETE FROM entries WHERE attempt = ? AND state = 'reserved'", [entry.attempt])
            raise
        except BaseException:  # may have been seen, and stays charged
            remove(scratch)
            raise
        with _transaction(self.path, "IMMEDIATE") as database:
            mine = database.execute(
                "UPDATE entries SET state = 'written', sha256 = ? WHERE attempt = ? AND state = 'reserved'",
                [digest, entry.attempt],
            ).rowcount
        if not mine:
            remove(scratch)
            raise LedgerError(f"ledger: another program took {entry.id!r} over; hint: leave lock files alone")
        return replace(entry, state="written", sha256=digest)

    @staticmethod
    def _written(scratch: Path, write: Callable[[Path], object]) -> str:
        """Digest of a new result, once it is on disk."""
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

    def _settle(self, entry: LedgerEntry, scratch: Path, place: Path) -> LedgerEntry:
        """Put a written result into place, whoever drew it, and seal its entry."""
        if os.path.realpath(entry.target) != os.path.realpath(place):
            raise LedgerError(f"ledger: {entry.id!r} was begun at {entry.target}; hint: run it again there")
        there = _digest(place) == entry.sha256
        if not there and _digest(scratch) != entry.sha256:
            raise LedgerError(f"ledger: the result of {entry.id!r} was drawn, but is missing; hint: another id")
        publish(None if there else scratch, place)
        remove(scratch)
        with _transaction(self.path, "IMMEDIATE") as database:
            database.execute("UPDATE entries SET state = 'sealed' WHERE attempt = ?", [entry.attempt])
        return replace(entry, state="sealed")


def _locked(lock: sqlite3.Connection) -> bool:
    """Whether the lock could be had before its time ran out."""
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if _code(error) != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _check_id(id: object) -> None:
    if not (isinstance(id, str) and 0 < len(id) <= _LONGEST_ID and id.isprintable() and not set(id) & set("/\\")):
        raise ParameterError(
            f"ledger: expected an id of 1 to {_LONGEST_ID} printable characters without slashes, got {id!r:.250}"
        )


def _file_name(id: str) -> str:
    """Distinct also where file names ignore case."""
    return re.sub(r"[^a-z0-9]+", "-", id.lower())[:60] + "-" + _text_digest(id)[:20]


def _scratch(place: Path, id: str, attempt: int) -> Path:
    """Where an attempt writes: beside its place, so that it can be moved there in one step."""
    return place.with_name(f".{_file_name(id)}.{attempt}.partial")


def _result(database: sqlite3.Connection, id: str, request: Mapping[str, str]) -> LedgerEntry | None:
    """The entry that has the result of this id, or will; refuses requests other than its own."""
    entry = None
    for entry in _entries(database, id):
        if changed := _differences(entry.request, request):
            raise LedgerError(
                f"ledger: {id!r} was used for a release with another {', '.join(changed)}; hint: an id names one "
                "release; take another for a new one"
            )
    return None if entry is None or entry.state == "lost" else entry


def _differences(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Names of parts that are not the same."""
    return [name for name in {**first, **second} if first.get(name) != second.get(name)]


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """sha256 of a file, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(result: Path) -> str | None:
    """sha256 of a file, or of the ``release.json`` of a directory; None unless all is there as that says."""
    try:
        if not result.is_dir():
            return file_digest(result) if os.path.lexists(result) else None
        record = result / "release.json"
        digest = file_digest(record)
        files = json.loads(record.read_bytes())["files"]
        return digest if all(file_digest(result / name) == expected for name, expected in files.items()) else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _check_free(place: Path) -> None:
    if os.path.lexists(place):
        raise OutputError(f"ledger: {place} exists already; hint: name a new one")
    if not place.parent.is_dir() or not os.access(place.parent, os.W_OK):
        raise OutputError(f"ledger: cannot write to {place.parent}; hint: name a place inside an existing directory")


def publish(scratch: Path | None, place: Path, who: str = "ledger") -> None:
    """Give a complete file or directory its name, unless that is taken; or make a name it has already last."""
    try:
        if scratch is None:
            pass
        elif scratch.is_dir():
            if os.path.lexists(place):  # renaming would replace an empty directory
                raise FileExistsError
            scratch.rename(place)
        else:
            os.link(scratch, place)
        sync(place.parent, deep=False)
    except FileExistsError:
        raise OutputError(f"{who}: {place} exists already; hint: move it away and run again") from None
    except OSError as error:
        raise OutputError(f"{who}: cannot create {place} ({type(error).__name__}); hint: run again") from None


def sync(path: Path, deep: bool = True) -> None:
    """Have the disk keep a file, or a directory with all in it."""
    if path.is_dir():
        for inner in path.iterdir() if deep else ():
            sync(inner)
        if os.name == "nt":  # has no such call for directories
            return
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def aside(target: Path) -> Iterator[Path]:
    """Where to write what becomes ``target`` once it is complete, and vanishes if it never is.

    The name is its own: one that a killed program left may be a link to what it had published.
    """
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(8)}.partial")
    try:
        yield scratch
        sync(scratch)
        publish(scratch, target, "save")
    finally:
        remove(scratch)


def remove(scratch: Path) -> None:
    """Take a file or directory away, if it can be."""
    if scratch.is_dir():
        shutil.rmtree(scratch, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            scratch.unlink()


@contextmanager
def _transaction(path: Path, kind: str = "DEFERRED") -> Iterator[sqlite3.Connection]:
    """A checked ledger, in a transaction that is undone on errors and on disk once it ends without."""
    if not path.is_file():
        raise LedgerError(f"ledger: no ledger at {path}; hint: Ledger.create(path, budget)")
    with _sqlite_errors(path):
        uri = f"{path.as_uri()}?mode=rw"  # never create one
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
            database.execute("PRAGMA synchronous = FULL")
            if database.execute("PRAGMA application_id").fetchone() != (_APPLICATION,):
                raise LedgerError(f"ledger: {path} is a database of something else")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version != _FORMAT:
                raise LedgerError(
                    f"ledger: expected format {_FORMAT} at {path}, got {version}; hint: upgrade gaussnoise"
                )
            database.execute(f"BEGIN {kind}")
            if database.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise LedgerError(f"ledger: {path} is damaged; {_DAMAGED}")
            yield database
            database.execute("COMMIT")


_DAMAGED = "hint: charges may be missing, so count its budget as spent"
_MEANINGS = {
    sqlite3.SQLITE_BUSY: "is busy; hint: another program keeps a transaction open",
    sqlite3.SQLITE_LOCKED: "is busy; hint: another program keeps a transaction open",
    sqlite3.SQLITE_FULL: "cannot grow; hint: the disk is full",
    sqlite3.SQLITE_READONLY: "cannot be written; hint: see its permissions and those of its folder",
    sqlite3.SQLITE_PERM: "cannot be opened; hint: see its permissions and those of its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; hint: see its permissions and those of its folder",
    sqlite3.SQLITE_IOERR: "cannot be read or written; hint: the disk is full or failing",
    sqlite3.SQLITE_NOTADB: "is not a ledger, or is damaged; " + _DAMAGED,
    sqlite3.SQLITE_CORRUPT: "is damaged; " + _DAMAGED,
}


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Ours instead of SQLite's."""
    try:
        yield
    except sqlite3.Error as error:
        meaning = _MEANINGS.get(_code(error), "is not a ledger, or is damaged; " + _DAMAGED)
        raise LedgerError(f"ledger: {path} {meaning}") from None


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _entries(database: sqlite3.Connection, id: str | None = None) -> Iterator[LedgerEntry]:
    rho = Fraction(_budget(database))
    columns = "attempt, id, units, state, sha256, protects, request, target, begun"
    columns += ", draws" if _knows_draws(database) else ", NULL"
    where = "" if id is None else " WHERE id = :id"
    rows = database.execute(f"SELECT {columns} FROM entries{where} ORDER BY attempt", {"id": id})
    for attempt, name, units, state, sha256, protects, request, target, begun, draws in rows:
        charged = rounded_up(Fraction(units, _BUDGET_UNITS) * rho)
        yield LedgerEntry(attempt, name, charged, state, sha256, protects, _parsed(request), target, begun, draws)


def _knows_draws(database: sqlite3.Connection) -> bool:
    """Whether charges say how much they draw: the first ledgers had no such column."""
    return any(column[1] == "draws" for column in database.execute("PRAGMA table_info(entries)"))


def _parsed(request: str) -> dict[str, str]:
    try:
        return dict(json.loads(request))
    except (ValueError, TypeError):
        raise LedgerError(f"ledger: an entry is damaged; {_DAMAGED}") from None


def _spent(database: sqlite3.Connection) -> int:
    return sum(units for (units,) in database.execute("SELECT units FROM entries"))


def _budget(database: sqlite3.Connection) -> float:
    """ρ, as fixed on creation."""
    try:
        ((rho,),) = database.execute("SELECT rho FROM budget")
        budget = float.fromhex(rho)
    except (ValueError, TypeError):
        budget = math.nan
    if not (math.isfinite(budget) and budget > 0):
        raise LedgerError(f"ledger: its budget is damaged; {_DAMAGED}")
    return budget


def _units(cost: float, budget: float) -> int:
    """What a cost takes from the budget, rounded up."""
    return math.ceil(Fraction(cost) / Fraction(budget) * _BUDGET_UNITS)
