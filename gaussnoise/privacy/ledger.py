"""A budget on disk that several programs share: charge first, then draw; one id has one result."""

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, final

from ..errors import LedgerError, LedgerWarning, OutputError, ParameterError
from ..files.disk import aside
from ..files.mounts import mount_of
from ..numerics.rounding import rounded_down
from .ledger_entries import (
    LedgerEntry,
    budget_of,
    delta_of,
    draws_in,
    last_in,
    left_rho,
    numbers_in,
    spent_delta,
    spent_rho,
    unfinished_in,
)
from .ledger_file import new_tables, transaction
from .ledger_results import Results

if TYPE_CHECKING:
    from .definitions import zCDP

T = TypeVar("T")

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
        * A release that fails once its data can be looked at is recorded, whatever the class of
          the error: as a refusal, which costs nothing, where this package raised it before anything
          was written; else it stays charged. Of a refusal of the data (:class:`DataError`), the
          error and the entry say that the data were refused, and nothing else about them. Whether
          data are refused depends on them, and no budget bounds what refusals tell: count them.
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
        if not (_is_number(delta) and 0 <= delta < 1):
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
        ledger._results.tidy(unfinished)
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

    def entries(self, last: int | None = None) -> tuple[LedgerEntry, ...]:
        """All charges and refusals, oldest first; or the last so many of them.

        Raises:
            ParameterError: not a number of entries.
        """
        if not (last is None or (type(last) is int and 0 <= last < 2**63)):
            raise ParameterError(f"entries: expected an integer last >= 0, got {last!r:.50}")
        with transaction(self.path) as database:
            return tuple(last_in(database, last))

    @property
    def charges(self) -> int:
        """How many charges there are, those of lost draws included."""
        with transaction(self.path) as database:
            return numbers_in(database)[0]

    @property
    def refusals(self) -> int:
        """How many refusals there are: what these tell of the data is in no budget."""
        with transaction(self.path) as database:
            return numbers_in(database)[1]

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
        """The ε for which all that was charged so far, lost or not, is jointly (ε, δ)-private.

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

        if not _is_number(delta):
            raise ParameterError(f"epsilon: expected 0 < delta < 1, got {delta!r:.50}")
        with transaction(self.path) as database:
            spent, thresholds = spent_rho(database), spent_delta(database)
            draws = draws_in(database)
        if thresholds:
            left = rounded_down(Fraction(delta) - Fraction(thresholds)) if 0 < delta < 1 else 0.0
            if not left > 0:
                raise ParameterError(
                    f"epsilon: expected {thresholds:.6g} < delta < 1, more than thresholds have "
                    f"spent, got {delta!r}"
                )
            return zCDP(spent).epsilon(left) if spent else 0.0
        if spent > 0 and draws is None:
            return zCDP(spent).epsilon(delta)
        return gaussian_epsilon(spent, delta, draws or 0)

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
        """The one result of ``id``: drawn under its own charge, or read again; waits for others.

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
            ParameterError: a bad id, cost, request, text, delta, number of draws or target.
            BudgetError: the budget does not allow the cost or delta; nothing was drawn.
            DataError: ``write`` refused the data; it is not said why.
            LedgerError: another request under this id; a result that is missing or was changed; an
                unusable ledger.
            OutputError: the target exists already, or cannot be written.
        """
        _check_id(id)
        if not (_is_number(cost) and 0 <= cost <= sys.float_info.max):
            raise ParameterError(f"ledger: expected a finite cost >= 0, got {cost!r:.50}")
        if not (_is_number(delta) and 0 <= delta < 1):
            raise ParameterError(f"ledger: expected 0 <= delta < 1, got {delta!r:.50}")
        if not (draws is None or (isinstance(draws, int) and 0 <= draws < 2**63)):
            raise ParameterError(
                f"ledger: expected a 64-bit number of draws >= 0, or None, got {draws!r:.50}"
            )
        try:
            json.dumps({**request}, sort_keys=True)
            protects.encode()
        except (AttributeError, TypeError, ValueError, RecursionError):
            raise ParameterError(
                "ledger: expected request to hold JSON values by their names, and protects to be "
                "text in UTF-8"
            ) from None
        place = None if target is None else _absolute("ledger", target)
        return read(self._results.once(id, cost, delta, request, protects, place, write, draws))

    @property
    def _results(self) -> Results:
        return Results(self.path)


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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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


def ledger_and_id(function: str, ledger: object, id: str | None) -> tuple[Ledger, str] | None:
    """What a release is charged to, and its id there; None where neither is given.

    Raises:
        ParameterError: one without the other, or neither a ledger nor a path.
    """
    if ledger is None and id is None:
        return None
    if ledger is None or id is None:
        raise ParameterError(
            f"{function}: expected ledger= and id= together: a ledger knows releases by their id"
        )
    return Ledger.of(ledger), id
