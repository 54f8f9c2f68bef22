"""A budget on disk that several programs share: charge first, then draw; one id has one result."""

import contextlib
import glob
import hashlib
import json
import math
import os
import re
import secrets
import sqlite3
import stat
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, final

from ..errors import BudgetError, DataError, GaussNoiseError, LedgerError, LedgerWarning, OutputError, ParameterError
from ..files.disk import (
    RESULT,
    aside,
    check_parent,
    file_digest,
    folder_fault,
    held,
    new_folder,
    publish,
    remove,
    result_in,
    sync,
)
from ..files.mounts import mount_of
from ..numerics.rounding import rounded_down, rounded_up

if TYPE_CHECKING:
    from .definitions import zCDP

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
# Added to the first ledgers when they are written to; programs of that time pass over them.
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
"""
_HISTORY = ("entries", "refusals")
OLD_TABLES = "gaussnoise.tables/2"  # of folders whose record listed tables only
_REFUSED = (
    "release: the data break the declared schema or domain; under a ledger it is not said where, and the refusal is "
    'recorded; hint: with on_outside="drop" (tables, sums) or "project" (bodies) no value decides; or look for the '
    "mistake on made-up data"
)
_BUSY_SECONDS = 30.0  # of a transaction, which takes milliseconds
_LONGEST_ID = 200


@final
@dataclass(frozen=True, eq=False)
class LedgerEntry:
    """One charge, or one refusal of the data. Public; whether data were refused is all that it says of them.

    Attributes:
        attempt: its number in the ledger: entries are in this order, whatever clocks say.
        id: what the release is called.
        rho: charged, rounded up; 0 for a refusal.
        state: "reserved": being drawn, or its program died meanwhile; "written": drawn, to be put into place by the
            next run; "sealed": published; "lost": its program died before the result was written. All these are
            charged. "refused": the data broke the declared schema or domain, nothing was drawn.
        sha256: of the result: the file, or the ``release.json`` of a directory.
        protects: neighbouring relation and privacy unit.
        request: a digest of every part of what was asked for.
        target: where the result belongs.
        begun: time of the charge or refusal by this machine's clock, UTC.
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
        * A program that dies between charge and result (kill -9, SIGTERM, a power cut) loses the charge, never
          privacy. What it drew was never published, but may have been seen: it stays charged, and the next run under
          that id draws again and is charged again, if the budget allows. So does one after an interrupted one, or one
          that cannot write.
        * What a dead program left unpublished beside its target is taken away by the next program that opens this
          ledger, or releases under it. A result that was complete stays, and the next run under its id publishes it.
        * A refusal of the data (:class:`DataError`) is recorded: the error and the entry say that the data were
          refused, and nothing else about them. If nothing was written by then, it costs nothing; else it stays charged.
          Whether data are refused depends on them, and no budget bounds what refusals tell: count them.
        * A ledger has one name. Hard links, files that are mounted, and copies of a ledger that is still there are
          refused: their charges would not be seen, or be lost in a crash. Moving it is fine, with its journal if a
          crash left one; a move that left it behind is refused.

    All releases must protect the same: charges under different relations or privacy units do not add up.

    The file is an SQLite database with a rollback journal, ``<path>-journal``, which is there during a charge, or after
    a crash in one. Locks are the operating system's and end with the program that holds them, so none can be stale.
    They need a local disk: none is created on one that Linux says is shared by machines, and opening one there warns.
    An older copy put back in the same place forgets charges, and nothing here can notice.

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
            ParameterError: not zCDP, or not a path.
            OutputError: the file exists, or cannot be written.
            LedgerError: not on a local disk.
        """
        from .definitions import zCDP

        if not isinstance(budget, zCDP):
            raise ParameterError(f"Ledger.create: expected a budget like zCDP(1.0), got {type(budget).__name__}")
        target, rho = _absolute("Ledger.create", path), budget.rho
        if os.path.lexists(target):
            raise OutputError(f"Ledger.create: {target} exists already; hint: Ledger.open(path), its budget is fixed")
        if (mount := mount_of(target.parent)) and mount.shared:
            raise LedgerError(
                f"Ledger.create: expected a local disk, got {mount.kind} at {mount.point}, where locks may not reach "
                "other machines; hint: keep the ledger on one machine's own disk and release there"
            )
        try:
            with aside(target, "Ledger.create") as scratch:
                os.close(os.open(scratch, os.O_CREAT | os.O_EXCL, 0o600))
                with _sqlite_errors(target), closing(sqlite3.connect(scratch, isolation_level=None)) as database:
                    database.execute("PRAGMA synchronous = EXTRA")
                    database.executescript(_TABLES + _LATER_TABLES)
                    database.execute("INSERT INTO budget VALUES (?)", [rho.hex()])
                    _settle_home(database, Path(os.path.realpath(target)))  # so that no copy passes for the first
                    database.execute(f"PRAGMA application_id = {_APPLICATION}")
                    database.execute(f"PRAGMA user_version = {_FORMAT}")
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(f"Ledger.create: cannot write to {target.parent} ({type(error).__name__})") from None
        return cls(target, rho)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Ledger":
        """An existing ledger.

        Raises:
            LedgerError: missing, unreadable, damaged, of another format, or with a second name.
            ParameterError: not a path.

        Warns:
            LedgerWarning: it is on a disk that machines share.
        """
        target = _absolute("Ledger.open", path)
        with _transaction(target) as database:
            ledger, unfinished = cls(target, _budget(database)), _unfinished(database)
        if (mount := mount_of(target)) and mount.shared:
            warnings.warn(
                f"ledger: {target} is on {mount.kind}, where locks may not reach other machines: charges could be "
                "lost; hint: move it to a local disk, or let one machine alone release under it",
                LedgerWarning,
                stacklevel=2,
            )
        ledger._tidy(unfinished)
        return ledger

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
        """All charges and refusals, oldest first."""
        with _transaction(self.path) as database:
            return tuple(sorted([*_entries(database), *_refusals(database)], key=lambda entry: entry.attempt))

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
              noise, which :func:`~gaussnoise.privacy.lattice_bound.lattice_distance` bounds, add up by the chain rule.
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
        from .definitions import gaussian_epsilon, zCDP

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
                ``release.json`` lists the sha256 of all other files under "files".
            read: the result from its file or directory.
            draws: if all noise is discrete Gaussian, of at least ``MIN_STEPS`` lattice steps: of how many integers, at
                most. None for any other noise that keeps ``cost``-zCDP.

        Raises:
            ParameterError: a bad id, cost, number of draws or target.
            BudgetError: the budget does not allow the cost; nothing was drawn.
            DataError: ``write`` refused the data; it is not said why.
            LedgerError: another request under this id; a result that is missing or was changed; an unusable ledger.
            OutputError: the target exists already, or cannot be written.
        """
        _check_id(id)
        if not (math.isfinite(cost) and cost >= 0):
            raise ParameterError(f"ledger: expected a finite cost >= 0, got {cost!r}")
        if not (draws is None or (isinstance(draws, int) and 0 <= draws < 2**63)):
            raise ParameterError(f"ledger: expected a 64-bit number of draws >= 0, or None, got {draws!r}")
        parts = {name: _text_digest(json.dumps(value, sort_keys=True)) for name, value in request.items()}
        place = self._folder / f"{_file_name(id)}.json" if target is None else _absolute("ledger", target)
        with _transaction(self.path) as database:
            entry, unfinished = _result(database, id, parts), _unfinished(database)
        self._tidy(unfinished)
        if entry is None or entry.state != "sealed":
            with self._alone(id), _held(place.parent) as parent:
                entry = self._charge(id, cost, parts, protects, place, draws)
                scratch = parent / _scratch_name(entry)
                if entry.state == "reserved":
                    entry = self._draw(entry, scratch, write)
                if entry.state == "written":
                    entry = self._settle(entry, scratch, parent, place)
        if _digest(place) != entry.sha256:
            raise LedgerError(
                f"ledger: the result of {id!r} was published at {entry.target}, but {place} is missing, unreadable or "
                "was changed; hint: put it back, or take another id for a new release"
            )
        return read(place)

    @property
    def _folder(self) -> Path:
        return self.path.with_name(self.path.name + ".releases")

    def _lock_file(self, id: str) -> Path:
        """One for each id, whatever links lead to the ledger."""
        path = Path(os.path.realpath(self.path))
        return path.with_name(path.name + ".releases") / f"{_file_name(id)}.lock"

    @contextmanager
    def _alone(self, id: str) -> Iterator[None]:
        """Waits until nobody else works on this id. The lock is a transaction on an empty file: it dies with us.

        It saves others from drawing in vain; privacy does not rest on it, every draw has its own charge.
        """
        path = self._lock_file(id)
        for folder in (self._folder, path.parent):
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                raise LedgerError(f"ledger: cannot create {folder} ({type(error).__name__})") from None
        with _sqlite_errors(path):
            lock = sqlite3.connect(path, timeout=1.0, isolation_level=None)  # Ctrl-C is heard once a second
        with closing(lock):
            with _sqlite_errors(path):
                while not _locked(lock):
                    pass
            yield

    def _tidy(self, unfinished: list[LedgerEntry]) -> None:
        """Take away what dead programs had not finished to write: those whose lock can be had, at once."""
        for entry in unfinished:
            scratch, path = Path(entry.target).with_name(_scratch_name(entry)), self._lock_file(entry.id)
            if not os.path.lexists(scratch):
                continue
            with contextlib.suppress(sqlite3.Error, LedgerError):  # it is tried again
                uri = f"{path.as_uri()}?mode=rw"  # without its lock file, nobody can tell
                with closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as lock:
                    if _locked(lock):
                        with _transaction(self.path) as database:
                            still = [other.attempt for other in _unfinished(database)]
                        if entry.attempt in still:
                            remove(scratch)

    def _charge(
        self, id: str, cost: float, request: dict[str, str], protects: str, place: Path, draws: int | None
    ) -> LedgerEntry:
        """The entry that has the result of this id, or a new charge, on disk when this returns."""
        with _transaction(self.path, "IMMEDIATE") as database:
            current = _result(database, id, request)
            if current is not None and current.state != "reserved":
                return current
            check_parent(place, "ledger")
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
            # a number of its own for every attempt: those of refusals are no longer among the charges
            attempt = f"1 + max({', '.join(f'(SELECT coalesce(max(attempt), 0) FROM {t})' for t in _HISTORY)})"
            database.execute(
                "INSERT INTO entries (attempt, id, units, state, protects, request, target, begun, draws) "
                f"VALUES ({attempt}, ?, ?, 'reserved', ?, ?, ?, ?, ?)",
                [id, units, protects, json.dumps(request), str(place), begun, draws],
            )
            *lost, reserved = _entries(database, "id = ?", id)
            check_parent(place.with_name(_scratch_name(reserved)), "ledger")
        for entry in lost:
            remove(Path(entry.target).with_name(_scratch_name(entry)))
        return reserved

    def _draw(self, entry: LedgerEntry, scratch: Path, write: Callable[[Path], object]) -> LedgerEntry:
        """Write the result aside, on disk and with its digest in the ledger when this returns."""
        written = True
        try:
            with new_folder(scratch) as folder:
                try:
                    digest = self._written(folder / RESULT, write)
                finally:  # seen from inside: the folder's name may have been given to another
                    written = any(not path.is_dir() for path in folder.rglob("*"))
        except BaseException as error:
            remove(scratch)
            # refusals know the data only; a failure to write may depend on what was drawn, and stays charged, as does
            # all that is written: it may have been seen
            if isinstance(error, GaussNoiseError) and not (written or isinstance(error, OutputError)):
                self._take_back(entry, refused=isinstance(error, DataError))
            if isinstance(error, OSError) and not isinstance(error, GaussNoiseError):
                raise OutputError(f"ledger: cannot write beside {entry.target} ({type(error).__name__})") from None
            if not isinstance(error, DataError):
                raise
        else:
            return self._on_disk(entry, scratch, digest)
        raise DataError(_REFUSED)  # here, where nothing of the refusal's own words hangs on it

    def _take_back(self, entry: LedgerEntry, *, refused: bool) -> None:
        """Undo a charge for which nothing was drawn; a refusal of the data is kept instead."""
        columns = "attempt, id, protects, request, target, begun"
        mine = "WHERE attempt = ? AND state = 'reserved'"
        with contextlib.suppress(LedgerError), _transaction(self.path, "IMMEDIATE") as database:  # or it stays charged
            if refused:
                database.execute(
                    f"INSERT INTO refusals ({columns}) SELECT {columns} FROM entries {mine}", [entry.attempt]
                )
            database.execute(f"DELETE FROM entries {mine}", [entry.attempt])

    def _on_disk(self, entry: LedgerEntry, scratch: Path, digest: str) -> LedgerEntry:
        """Say that a result is complete: from now on it is published, not drawn again."""
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

    def _settle(self, entry: LedgerEntry, scratch: Path, parent: Path, place: Path) -> LedgerEntry:
        """Put a written result into place, whoever drew it, and seal its entry."""
        if os.path.realpath(entry.target) != os.path.realpath(place):
            raise LedgerError(f"ledger: {entry.id!r} was begun at {entry.target}; hint: run it again there")
        there, result = _digest(place) == entry.sha256, result_in(scratch)
        if not there and _digest(result) != entry.sha256:
            raise LedgerError(f"ledger: the result of {entry.id!r} was drawn, but is missing; hint: another id")
        publish(None if there else result, parent, place)
        remove(scratch)
        with _transaction(self.path, "IMMEDIATE") as database:
            database.execute("UPDATE entries SET state = 'sealed' WHERE attempt = ?", [entry.attempt])
        return replace(entry, state="sealed")


@contextmanager
def _held(parent: Path) -> Iterator[Path]:
    """The folder of a result, held; refused if it cannot be."""
    with contextlib.ExitStack() as stack:
        try:
            inside = stack.enter_context(held(parent))
        except OSError as error:
            raise OutputError(
                f"ledger: cannot write to {parent} ({type(error).__name__}); "
                "hint: name a place inside an existing directory"
            ) from None
        yield inside


def _absolute(who: str, path: object) -> Path:
    """A path that the ledger can keep as text."""
    try:
        absolute = os.path.abspath(os.fsdecode(path))  # pyright: ignore[reportArgumentType] (or TypeError)
        absolute.encode()
        if "\0" in absolute:
            raise ValueError
    except (TypeError, ValueError):
        raise ParameterError(f"{who}: expected a path in UTF-8, got {path!r:.250}") from None
    return Path(absolute)


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


def _scratch_name(entry: LedgerEntry) -> str:
    """Of the folder where an attempt writes: beside its place, so that the result can be moved there in one step."""
    return f".{_file_name(entry.id)}.{entry.attempt}.partial"


def _result(database: sqlite3.Connection, id: str, request: Mapping[str, str]) -> LedgerEntry | None:
    """The entry that has the result of this id, or will; refuses requests other than its own."""
    entry = None
    for entry in _entries(database, "id = ?", id):
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


def _digest(result: Path) -> str | None:
    """sha256 of a file, or of the ``release.json`` of a directory; None unless all is there as that says."""
    try:
        if not result.is_dir():
            return file_digest(result)
        content = (result / "release.json").read_bytes()
        record = json.loads(content)
        if folder_fault(result, record["files"], every=record.get("format") != OLD_TABLES) is not None:
            return None
        return hashlib.sha256(content).hexdigest()
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


@contextmanager
def _transaction(path: Path, kind: str = "DEFERRED") -> Iterator[sqlite3.Connection]:
    """A checked ledger, in a transaction that is undone on errors and on disk once it ends without."""
    _check_one_name(path)
    with _sqlite_errors(path):
        uri = f"{path.as_uri()}?mode=rw"  # never create one
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
            # EXTRA: a journal that came back after a power cut would undo a charge
            database.execute("PRAGMA synchronous = EXTRA")
            if database.execute("PRAGMA application_id").fetchone() != (_APPLICATION,):
                raise LedgerError(f"ledger: {path} is a database of something else")
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version != _FORMAT:
                raise LedgerError(
                    f"ledger: expected format {_FORMAT} at {path}, got {version}; hint: upgrade gaussnoise"
                )
            _leave_write_ahead_log(database, patient=kind != "DEFERRED")
            database.execute(f"BEGIN {kind}")
            if database.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                raise LedgerError(f"ledger: {path} is damaged; {_DAMAGED}")
            if kind != "DEFERRED":
                _upgrade(database)
                _check_home(database, path)
            yield database
            database.execute("COMMIT")


def _check_one_name(path: Path) -> None:
    """Refuse what is no file, or has another name as well: each name would have a journal of its own."""
    try:
        status = os.stat(path)
        if status.st_nlink > 1:  # perhaps the name under which it was created, by a program that died then
            for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
                for file in (left, left / RESULT):
                    if os.path.lexists(file) and os.path.samestat(os.lstat(file), status):
                        remove(file)
            status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        status = None
    except (OSError, ValueError) as error:
        raise LedgerError(
            f"ledger: {path} cannot be opened ({type(error).__name__}); hint: see its permissions and those of its "
            "folder"
        ) from None
    if status is None or not stat.S_ISREG(status.st_mode):
        raise LedgerError(f"ledger: no ledger at {path}; hint: Ledger.create(path, budget)")
    if status.st_nlink > 1:
        raise LedgerError(
            f"ledger: expected one name for {path}, got a hard link: after a crash, charges under one name are unknown "
            "under the other; hint: find its names with `find / -samefile`, and keep one"
        )
    if (mount := mount_of(path)) and mount.point == os.path.realpath(path):
        raise LedgerError(
            f"ledger: expected one name for {path}, got a file that is mounted there: after a crash, charges under one "
            "name are unknown under the other; hint: mount its folder"
        )


def _leave_write_ahead_log(database: sqlite3.Connection, *, patient: bool) -> None:
    """The first ledgers had one, and it belongs to a name, not to the file: two names had two of them.

    This needs a moment without others. A transaction that only reads goes on without it.
    """
    end = time.monotonic() + _BUSY_SECONDS
    while database.execute("PRAGMA journal_mode").fetchone() != ("delete",):
        try:
            database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError as error:
            if not patient:
                return
            if _code(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _upgrade(database: sqlite3.Connection) -> None:
    """What the first ledgers did not have."""
    for statement in _LATER_TABLES.split(";"):
        database.execute(statement)
    if not _knows_draws(database):
        database.execute("ALTER TABLE entries ADD COLUMN draws INTEGER")


def _settle_home(database: sqlite3.Connection, here: Path) -> None:
    """Give a ledger its identity, and say where it is."""
    database.execute("INSERT INTO home VALUES (?, ?)", [secrets.token_hex(16), os.fsencode(here)])


def _check_home(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a copy of a ledger that is still there, and one whose journal was left where it came from.

    A ledger knows where it was charged last; a journal that is still there would undo what follows, or is missing here.
    """
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
        # by two names of one folder, as where containers mount it, the journal is the same
        if same and not os.path.samestat(os.stat(home.parent), os.stat(here.parent)):
            raise LedgerError(f"ledger: {path} is {home} as well; hint: use that name")
        if there is not None and not same and _identity(home) == identity:
            raise LedgerError(
                f"ledger: {path} is a copy of {home}, which is still there: charges to one are unknown to the other; "
                "hint: release under that one; a copy can be read"
            )
        journal = home.with_name(home.name + "-journal")
        if there is None and os.path.lexists(journal):
            raise LedgerError(
                f"ledger: {path} was moved from {home} without its journal; "
                f"hint: move {journal} to {here}-journal, or a crash cannot be undone"
            )
    except OSError:  # where it was cannot be seen from here
        pass
    database.execute("UPDATE home SET path = ?", [os.fsencode(here)])


def _identity(path: Path) -> str | None:
    """Of the ledger at a path, if one is there."""
    try:
        uri = f"{path.as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
            return database.execute("SELECT identity FROM home").fetchone()[0]
    except (sqlite3.Error, TypeError):
        return None


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
    except GaussNoiseError:
        raise
    except (TypeError, ValueError, RecursionError):  # its tables hold something else, also what SQLite says of them
        raise LedgerError(f"ledger: {path} is damaged; {_DAMAGED}") from None


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _entries(database: sqlite3.Connection, where: str = "true", *values: object) -> Iterator[LedgerEntry]:
    """Charges, oldest first: all of them, or those that SQL picks."""
    rho = Fraction(_budget(database))
    columns = "attempt, id, units, state, sha256, protects, request, target, begun"
    columns += ", draws" if _knows_draws(database) else ", NULL"
    rows = database.execute(f"SELECT {columns} FROM entries WHERE {where} ORDER BY attempt", values)
    for attempt, name, units, state, sha256, protects, request, target, begun, draws in rows:
        charged = rounded_up(Fraction(units, _BUDGET_UNITS) * rho)
        if not (draws is None or (type(draws) is int and draws >= 0)):
            raise LedgerError(f"ledger: an entry is damaged; {_DAMAGED}")
        yield LedgerEntry(attempt, name, charged, state, sha256, protects, _parsed(request), target, begun, draws)


def _knows_draws(database: sqlite3.Connection) -> bool:
    """Whether charges say how much they draw: the first ledgers had no such column."""
    return any(column[1] == "draws" for column in database.execute("PRAGMA table_info(entries)"))


def _refusals(database: sqlite3.Connection) -> Iterator[LedgerEntry]:
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'refusals'").fetchone():
        return  # one of the first ledgers
    rows = database.execute("SELECT attempt, id, protects, request, target, begun FROM refusals")
    for attempt, name, protects, request, target, begun in rows:
        yield LedgerEntry(attempt, name, 0.0, "refused", None, protects, _parsed(request), target, begun, 0)


def _unfinished(database: sqlite3.Connection) -> list[LedgerEntry]:
    """Charges without a complete result: being drawn, or their program died."""
    return list(_entries(database, "state IN ('reserved', 'lost')"))


def _parsed(request: str) -> dict[str, str]:
    try:
        return dict(json.loads(request))
    except (ValueError, TypeError, RecursionError):
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
