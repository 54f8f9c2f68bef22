"""A budget on disk that several programs share: charge first, then draw; one id has one result."""

import contextlib
import hashlib
import json
import math
import os
import re
import sqlite3
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, final

from ..errors import (
    BudgetError,
    DataError,
    GaussNoiseError,
    LedgerError,
    LedgerWarning,
    OutputError,
    ParameterError,
)
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
from ..numerics.rounding import rounded_down
from .ledger_entries import (
    BUDGET_UNITS,
    CAP,
    LedgerEntry,
    budget_of,
    delta_of,
    entries_in,
    left_rho,
    refusals_in,
    result_of,
    spent_delta,
    spent_delta_units,
    spent_rho,
    spent_units,
    unfinished_in,
    units_of,
)
from .ledger_file import locked, new_tables, sqlite_errors, transaction

if TYPE_CHECKING:
    from .definitions import zCDP

T = TypeVar("T")

_HISTORY = ("entries", "refusals")
OLD_TABLES = "gaussnoise.tables/2"  # of folders whose record listed tables only
_REFUSED = (
    "release: the data break the declared schema or domain; under a ledger it is not said where, "
    'and the refusal is recorded; hint: with on_outside="drop" (tables, sums) or "project" '
    "(bodies) no value decides; or look for the mistake on made-up data"
)
_LONGEST_ID = 200


@final
@dataclass(frozen=True, eq=False)
class Ledger:
    """A file that keeps all releases from one data set within one budget of ρ-zCDP.

    It may also allow a δ, for steps that show what is frequent enough, like
    :func:`~gaussnoise.discover_categories`: all releases together are then δ-approximate ρ-zCDP.

    Formal guarantees:
        * Every draw is preceded by its own charge, on disk before any noise exists, and charges
          never add up to more than ``rho`` (1 + 10⁻¹²): whatever the number of programs, and
          whenever they are killed. Budgets that are chosen as results come in add up like fixed
          ones (Feldman & Zrnic 2021; Whitehouse et al. 2023). The same holds of what thresholds
          spend of δ: it adds up (Bun & Steinke 2016, section 8), never to more than ``delta``
          (1 + 10⁻¹²), and is charged with ρ, in one step.
        * One id has one result. Once it is written, the same request under the same id reads it
          again; nothing is drawn, nothing charged. Another request under that id is refused. The
          data are not compared: an id names one release of one table.
        * A program that dies between charge and result (kill -9, SIGTERM, a power cut) loses the
          charge, never privacy. What it drew was never published, but may have been seen: it stays
          charged, and the next run under that id draws again and is charged again, if the budget
          allows. So does one after an interrupted one, or one that cannot write.
        * What a dead program left unpublished beside its target is taken away by the next program
          that opens this ledger, or releases under it. A result that was complete stays, and the
          next run under its id publishes it.
        * A refusal of the data (:class:`DataError`) is recorded: the error and the entry say that
          the data were refused, and nothing else about them. If nothing was written by then, it
          costs nothing; else it stays charged. Whether data are refused depends on them, and no
          budget bounds what refusals tell: count them.
        * A ledger has one name. Hard links, files that are mounted, and copies of a ledger that is
          still there are refused: their charges would not be seen, or be lost in a crash. Moving it
          is fine, with its journal if a crash left one; a move that left it behind is refused.

    All releases must protect the same: charges under different relations or privacy units do not
    add up.

    The file is an SQLite database with a rollback journal, ``<path>-journal``, which is there
    during a charge, or after a crash in one. Locks are the operating system's and end with the
    program that holds them, so none can be stale. They need a local disk: none is created on one
    that Linux says is shared by machines, and opening one there warns. An older copy put back in
    the same place forgets charges, and nothing here can notice.

    Attributes:
        path: of the ledger; ``<path>.releases`` is the folder for results that have no place of
            their own.
        rho: the budget, fixed when the ledger was created.
        delta: the most that thresholds may spend together, fixed as well; 0 refuses them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = gn.Ledger.create(f"{folder}/survey.ledger", gn.zCDP(1.0))
    ...     print(ledger.remaining, ledger.entries())
    1.0 ()
    """

    path: Path
    rho: float
    delta: float = 0.0

    @classmethod
    def create(cls, path: str | os.PathLike[str], budget: "zCDP", delta: float = 0.0) -> "Ledger":
        """Start a new ledger.

        Args:
            path: a new file.
            budget: of everything that will ever be released under it. Other promises, such as (ε,
                δ), do not add up; they cost the ρ of their noise here, and
                ``budget.epsilon(delta)`` is what all releases together imply; :meth:`epsilon`, what
                those so far do.
            delta: of all thresholds together, in [0, 1): a key that only one person has may be
                shown with this probability. Well below 1 / records.

        Raises:
            ParameterError: not zCDP, not a path, or delta out of range.
            OutputError: the file exists, or cannot be written.
            LedgerError: not on a local disk.
        """
        from .definitions import zCDP

        if not isinstance(budget, zCDP):
            raise ParameterError(
                f"Ledger.create: expected a budget like zCDP(1.0), got {type(budget).__name__}"
            )
        if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0 <= delta < 1:
            raise ParameterError(
                f"Ledger.create: expected 0 <= delta < 1, got {delta!r:.50}; hint: 0 without "
                "thresholds, else well below 1 / records"
            )
        target, rho, delta = _absolute("Ledger.create", path), budget.rho, float(delta)
        if os.path.lexists(target):
            raise OutputError(
                f"Ledger.create: {target} exists already; hint: Ledger.open(path), its budget is "
                "fixed"
            )
        if (mount := mount_of(target.parent)) and mount.shared:
            raise LedgerError(
                f"Ledger.create: expected a local disk, got {mount.kind} at {mount.point}, where "
                "locks may not reach "
                "other machines; hint: keep the ledger on one machine's own disk and release there"
            )
        try:
            with aside(target, "Ledger.create") as scratch:
                os.close(os.open(scratch, os.O_CREAT | os.O_EXCL, 0o600))
                new_tables(scratch, target, rho, delta)
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(
                f"Ledger.create: cannot write to {target.parent} ({type(error).__name__})"
            ) from None
        return cls(target, rho, delta)

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
        with transaction(target) as database:
            ledger = cls(target, budget_of(database), delta_of(database))
            unfinished = unfinished_in(database)
        if (mount := mount_of(target)) and mount.shared:
            warnings.warn(
                f"ledger: {target} is on {mount.kind}, where locks may not reach other machines: "
                "charges could be "
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
            raise ParameterError(
                f"expected ledger to be a Ledger or its path, got {type(ledger).__name__}"
            )
        return cls.open(ledger)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """All charges and refusals, oldest first."""
        with transaction(self.path) as database:
            return tuple(
                sorted(
                    [*entries_in(database), *refusals_in(database)], key=lambda entry: entry.attempt
                )
            )

    @property
    def spent(self) -> float:
        """ρ charged so far, rounded up."""
        with transaction(self.path) as database:
            return spent_rho(database)

    @property
    def remaining(self) -> float:
        """ρ that can still be charged, rounded down."""
        with transaction(self.path) as database:
            return 0.0 + rounded_down(left_rho(database))

    @property
    def spent_delta(self) -> float:
        """δ that thresholds were charged so far, rounded up."""
        with transaction(self.path) as database:
            return spent_delta(database)

    def epsilon(self, delta: float) -> float:
        """The ε for which everything charged so far, lost charges too, is jointly (ε,
        δ)-differentially private.

        Formal guarantees:
            * What was asked, and in how many releases, may depend on earlier results, as long as
              what was charged and drawn in all is no more than was settled beforehand. Where
              results decided whether to spend more, only the budget was settled: then
              ``gn.zCDP(ledger.rho).epsilon(delta - ledger.delta)`` holds (Whitehouse et al. 2023).
            * Where all noise is Gaussian and the ledger knows how much was drawn, ρ is that of one
              Gaussian. Proof: say that release i shifts continuous, rounded noise by a whitened
              length μ_i <= √(2ρ_i) which the past determines. It can be made from an increment over
              a time μ_i² of a Brownian motion, with drift 0 or 1, and independent noise. So all are
              post-processing of a path over ``[0, 2ρ]``, whose likelihood ratio is that of its end
              (Smith & Thakurta 2022; Koskela, Tobaben & Honkela 2023). The divergences of the
              discrete noise, which :func:`~gaussnoise.privacy.lattice_bound.lattice_distance`
              bounds, add up by the chain rule.
            * Otherwise through zCDP, which adds up for any noise. What thresholds spent of δ is
              taken off first: δ'-approximate ρ-zCDP is (ε, δ' + δ'')-differentially private if ρ
              implies (ε, δ''), as :class:`~gaussnoise.privacy.threshold.ThresholdQuery` proves.

        Args:
            delta: in (0, 1), and more than :attr:`spent_delta`.

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

        with transaction(self.path) as database:
            spent, thresholds = spent_rho(database), spent_delta(database)
            draws = [entry.draws for entry in entries_in(database)]
        if thresholds:
            left = rounded_down(Fraction(delta) - Fraction(thresholds)) if 0 < delta < 1 else 0.0
            if not left > 0:
                raise ParameterError(
                    f"epsilon: expected {thresholds:.6g} < delta < 1, more than thresholds have "
                    f"spent, got {delta!r}"
                )
            return zCDP(spent).epsilon(left) if spent else 0.0
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
        delta: float = 0.0,
    ) -> T:
        """The one result of ``id``: drawn under a charge of its own, or read again. Waits for
        others drawing it.

        Args:
            id: 1 to 200 printable characters without slashes.
            cost: ρ that ``write`` spends, at most.
            request: all public parameters of the result, as JSON values; never anything from the
                data.
            protects: neighbouring relation and privacy unit.
            target: where the result belongs; None for a file in the ledger's own folder.
            write: draws noise and writes the result to a path where nothing is yet: a file, or a
                directory whose ``release.json`` lists the sha256 of all other files under "files".
            read: the result from its file or directory.
            draws: if all noise is discrete Gaussian, of at least ``MIN_STEPS`` lattice steps: of
                how many integers, at most. None for any other noise that keeps ``cost``-zCDP.
            delta: what ``write`` spends beside it: δ-approximate ``cost``-zCDP.

        Raises:
            ParameterError: a bad id, cost, delta, number of draws or target.
            BudgetError: the budget does not allow the cost or delta; nothing was drawn.
            DataError: ``write`` refused the data; it is not said why.
            LedgerError: another request under this id; a result that is missing or was changed; an
                unusable ledger.
            OutputError: the target exists already, or cannot be written.
        """
        _check_id(id)
        if not (math.isfinite(cost) and cost >= 0):
            raise ParameterError(f"ledger: expected a finite cost >= 0, got {cost!r}")
        if not 0 <= delta < 1:
            raise ParameterError(f"ledger: expected 0 <= delta < 1, got {delta!r}")
        if not (draws is None or (isinstance(draws, int) and 0 <= draws < 2**63)):
            raise ParameterError(
                f"ledger: expected a 64-bit number of draws >= 0, or None, got {draws!r}"
            )
        parts = {
            name: _text_digest(json.dumps(value, sort_keys=True)) for name, value in request.items()
        }
        place = (
            self._folder / f"{_file_name(id)}.json"
            if target is None
            else _absolute("ledger", target)
        )
        with transaction(self.path) as database:
            entry, unfinished = result_of(database, id, parts), unfinished_in(database)
        self._tidy(unfinished)
        if entry is None or entry.state != "sealed":
            with self._alone(id), _held(place.parent) as parent:
                entry = self._charge(id, cost, delta, parts, protects, place, draws)
                scratch = parent / _scratch_name(entry)
                if entry.state == "reserved":
                    entry = self._draw(entry, scratch, write)
                if entry.state == "written":
                    entry = self._settle(entry, scratch, parent, place)
        if _digest(place) != entry.sha256:
            raise LedgerError(
                f"ledger: the result of {id!r} was published at {entry.target}, but {place} is "
                "missing, unreadable or "
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
        """Waits until nobody else works on this id. The lock is a transaction on an empty file: it
        dies with us.

        It saves others from drawing in vain; privacy does not rest on it, every draw has its own
        charge.
        """
        path = self._lock_file(id)
        for folder in (self._folder, path.parent):
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                raise LedgerError(
                    f"ledger: cannot create {folder} ({type(error).__name__})"
                ) from None
        with sqlite_errors(path):
            lock = sqlite3.connect(
                path, timeout=1.0, isolation_level=None
            )  # Ctrl-C is heard once a second
        with closing(lock):
            with sqlite_errors(path):
                while not locked(lock):
                    pass
            yield

    def _tidy(self, unfinished: list[LedgerEntry]) -> None:
        """Take away what dead programs had not finished: those whose lock can be had, at once."""
        for entry in unfinished:
            scratch, path = (
                Path(entry.target).with_name(_scratch_name(entry)),
                self._lock_file(entry.id),
            )
            if not os.path.lexists(scratch):
                continue
            with contextlib.suppress(sqlite3.Error, LedgerError):  # it is tried again
                uri = f"{path.as_uri()}?mode=rw"  # without its lock file, nobody can tell
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
        protects: str,
        place: Path,
        draws: int | None,
    ) -> LedgerEntry:
        """The entry that has the result of this id, or a new charge, on disk when this returns."""
        with transaction(self.path, "IMMEDIATE") as database:
            current = result_of(database, id, request)
            if current is not None and current.state != "reserved":
                return current
            check_parent(place, "ledger")
            others = {
                row[0] for row in database.execute("SELECT DISTINCT protects FROM entries")
            } - {protects}
            if others:
                raise LedgerError(
                    f"ledger: expected a release that protects {others.pop()}, as those before it, "
                    f"got {protects}; hint: their costs do not add up, keep one ledger for each"
                )
            rho = budget_of(database)
            units = units_of(cost, rho)
            if spent_units(database) + units > CAP:
                left = float(left_rho(database))
                raise BudgetError(
                    f"ledger: expected a cost of at most rho = {left:.6g}, what is left of "
                    f"{rho:.6g}, got {cost:.6g}"
                )
            delta_units = _delta_units(database, delta)
            if (
                current is not None
            ):  # we hold its lock: whoever reserved it is dead, and may have drawn
                database.execute(
                    "UPDATE entries SET state = 'lost' WHERE attempt = ?", [current.attempt]
                )
            begun = datetime.now(UTC).isoformat(timespec="seconds")
            # a number of its own for every attempt: those of refusals are no longer among the
            # charges
            last = (f"(SELECT coalesce(max(attempt), 0) FROM {table})" for table in _HISTORY)
            attempt = f"1 + max({', '.join(last)})"
            database.execute(
                "INSERT INTO entries (attempt, id, units, state, protects, request, target, begun, "
                f"draws) VALUES ({attempt}, ?, ?, 'reserved', ?, ?, ?, ?, ?)",
                [id, units, protects, json.dumps(request), str(place), begun, draws],
            )
            if delta_units:  # in the same transaction: both are charged, or nothing is
                database.execute(
                    "UPDATE entries SET delta_units = ? WHERE id = ? AND state = 'reserved'",
                    [delta_units, id],
                )
            *lost, reserved = entries_in(database, "id = ?", id)
            check_parent(place.with_name(_scratch_name(reserved)), "ledger")
        for entry in lost:
            remove(Path(entry.target).with_name(_scratch_name(entry)))
        return reserved

    def _draw(
        self, entry: LedgerEntry, scratch: Path, write: Callable[[Path], object]
    ) -> LedgerEntry:
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
            # refusals know the data only; a failure to write may depend on what was drawn, and
            # stays charged, as does all that is written: it may have been seen
            if isinstance(error, GaussNoiseError) and not (
                written or isinstance(error, OutputError)
            ):
                self._take_back(entry, refused=isinstance(error, DataError))
            if isinstance(error, OSError) and not isinstance(error, GaussNoiseError):
                raise OutputError(
                    f"ledger: cannot write beside {entry.target} ({type(error).__name__})"
                ) from None
            if not isinstance(error, DataError):
                raise
        else:
            return self._on_disk(entry, scratch, digest)
        raise DataError(_REFUSED)  # here, where nothing of the refusal's own words hangs on it

    def _take_back(self, entry: LedgerEntry, *, refused: bool) -> None:
        """Undo a charge for which nothing was drawn; a refusal of the data is kept instead."""
        columns = "attempt, id, protects, request, target, begun"
        mine = "WHERE attempt = ? AND state = 'reserved'"
        with (
            contextlib.suppress(LedgerError),
            transaction(self.path, "IMMEDIATE") as database,
        ):  # or it stays charged
            if refused:
                database.execute(
                    f"INSERT INTO refusals ({columns}) SELECT {columns} FROM entries {mine}",
                    [entry.attempt],
                )
            database.execute(f"DELETE FROM entries {mine}", [entry.attempt])

    def _on_disk(self, entry: LedgerEntry, scratch: Path, digest: str) -> LedgerEntry:
        """Say that a result is complete: from now on it is published, not drawn again."""
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
            raise LedgerError(
                f"ledger: {entry.id!r} was begun at {entry.target}; hint: run it again there"
            )
        there, result = _digest(place) == entry.sha256, result_in(scratch)
        if not there and _digest(result) != entry.sha256:
            raise LedgerError(
                f"ledger: the result of {entry.id!r} was drawn, but is missing; hint: another id"
            )
        publish(None if there else result, parent, place)
        remove(scratch)
        with transaction(self.path, "IMMEDIATE") as database:
            database.execute(
                "UPDATE entries SET state = 'sealed' WHERE attempt = ?", [entry.attempt]
            )
        return replace(entry, state="sealed")


def _delta_units(database: sqlite3.Connection, delta: float) -> int:
    """What a δ takes from the budget's, rounded up; refuses more than is left."""
    most = delta_of(database)
    if delta == 0:
        return 0
    if most == 0:
        raise BudgetError(
            f"ledger: expected a release without thresholds, got one that spends delta = "
            f"{delta:.6g} on them; hint: Ledger.create(path, budget, delta=...) allows it, and a "
            "search needs no threshold where a public range (radius=) or list is given"
        )
    units, spent = units_of(delta, most), spent_delta_units(database)
    if spent + units > CAP:
        left = float(Fraction(max(BUDGET_UNITS - spent, 0), BUDGET_UNITS) * Fraction(most))
        raise BudgetError(
            f"ledger: expected a delta of at most {left:.6g}, what is left of {most:.6g}, got "
            f"{delta:.6g}"
        )
    return units


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


def _check_id(id: object) -> None:
    if not (
        isinstance(id, str)
        and 0 < len(id) <= _LONGEST_ID
        and id.isprintable()
        and not set(id) & set("/\\")
    ):
        raise ParameterError(
            f"ledger: expected an id of 1 to {_LONGEST_ID} printable characters without slashes, "
            f"got {id!r:.250}"
        )


def _file_name(id: str) -> str:
    """Distinct also where file names ignore case."""
    return re.sub(r"[^a-z0-9]+", "-", id.lower())[:60] + "-" + _text_digest(id)[:20]


def _scratch_name(entry: LedgerEntry) -> str:
    """The folder where an attempt writes: beside its place, to be moved there in one step."""
    return f".{_file_name(entry.id)}.{entry.attempt}.partial"


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(result: Path) -> str | None:
    """sha256 of a file, or of a directory's ``release.json`` if all is there as that says."""
    try:
        if not result.is_dir():
            return file_digest(result)
        content = (result / "release.json").read_bytes()
        record = json.loads(content)
        if (
            folder_fault(result, record["files"], every=record.get("format") != OLD_TABLES)
            is not None
        ):
            return None
        return hashlib.sha256(content).hexdigest()
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
