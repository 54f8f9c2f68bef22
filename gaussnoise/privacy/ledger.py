"""A ledger: a budget on disk that programs share, and that is charged before every draw."""

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, final

from ..errors import BudgetError, LedgerError, LedgerWarning, OutputError, ParameterError
from ..files.disk import aside
from ..files.mounts import mount_of
from ..numerics.rounding import rounded_down, rounded_up
from .ledger_entries import (
    NO_NOTE,
    LedgerEntry,
    Note,
    budget_of,
    delta_of,
    draws_in,
    last_in,
    left_rho,
    numbers_in,
    scales_of,
    spent_delta,
    spent_rho,
    unfinished_in,
)
from .ledger_file import new_tables, transaction
from .ledger_results import Results
from .protected import Protected

if TYPE_CHECKING:
    from .definitions import zCDP
    from .guarantee import AbstractPrivacy
    from .per_record import PerRecord

T = TypeVar("T")

_LONGEST_ID = 200
_LONGEST_LINE = 500  # characters of a line in a note


@final
@dataclass(frozen=True, eq=False)
class Ledger:
    """A file that keeps all releases from one data set within one budget of ρ-zCDP.

    The ledger may also allow a δ, for steps that show frequent keys, like
    :func:`~gaussnoise.discover_categories`. All releases together are then δ-approximate ρ-zCDP.

    Formal guarantees:
        * Every draw is preceded by its own charge, which is on disk before any noise is drawn.
          Charges never add up to more than ``rho`` (1 + 10⁻¹²), for any number of programs, and if
          programs are killed at any time. Budgets that depend on earlier results add up like fixed
          ones (Feldman & Zrnic 2021; Whitehouse et al. 2023). The δ of thresholds adds up too (Bun
          & Steinke 2016, section 8), never to more than ``delta`` (1 + 10⁻¹²), and is charged
          together with ρ, in one step.
        * One id has one result. Once it is written, the same request under the same id reads it
          again, without a draw or a charge. Another request under that id is refused. Data are not
          compared, so use an id for one table only.
        * If a program dies between charge and result (kill -9, SIGTERM, a power cut), the charge
          remains: noisy results were not published, but a person may have seen them. The next run
          under that id draws again and is charged again, if the budget allows it. The same holds if
          a run was interrupted, or could not write.
        * Unpublished files that a dead program left next to its target are removed by the next
          program that opens this ledger, or releases under it. A complete result is kept, and the
          next run under its id publishes it.
        * A release that fails after it has access to the data is recorded, for every error. If this
          package raised the error before anything was written, the record is a refusal, which costs
          nothing; otherwise the release stays charged. If the data were refused
          (:class:`DataError`), the error and the entry say so, and nothing else about the data.
          Whether data are refused depends on the data, and no budget bounds what refusals reveal:
          count them.
        * A ledger has one name. Hard links, mounted files, and copies of a ledger that still exists
          are refused: charges to one of them would not be seen in the other, or would be lost in a
          crash. A ledger may be moved. If a crash left a journal, it must be moved with the ledger.

    With a budget that grows with numbers in a record (:class:`PerRecord`), all releases together
    cost a record of budget ``P(r) = ρ (1 + Σ (v_j/T_j)²)`` at most P(r), and ``rho`` is the budget
    of a record whose numbers are zero. A release under PerRecord with other scales T' is charged
    the least c for which its budget is at most ``c (1 + Σ (v_j/T_j)²)`` for every record; such
    charges c add up. A release that costs all records the same is charged its ρ. A ledger of zCDP
    limits the cost for every record, and so refuses releases whose cost grows. The numbers v_j are
    those that a release counts, multiples of the unit in its schema: units should be small compared
    with T_j, and the same in all releases.

    All releases must protect the same unit: charges under different relations or privacy units do
    not add up.

    The file is an SQLite database with a rollback journal, ``<path>-journal``, which exists during
    a charge, or after a crash in one. Locks are the operating system's and end with the program
    that holds them, so no lock outlives its program. They need a local disk: a ledger is not
    created on a disk that, according to Linux, several machines share; if one is opened there, a
    warning is given. If an older copy is put back in the same place, later charges are forgotten,
    and this class cannot notice it.

    Attributes:
        path: the path of the ledger; ``<path>.releases`` is the folder of results for which no
            other path was given.
        rho: the budget, fixed when the ledger was created.
        delta: the largest δ that thresholds may cost together, fixed at the same time; if it is 0,
            thresholds are refused.
        scales: the scales of the numbers with which the budget of a record grows; empty if all
            records have the same budget.
        note: texts that are stored with every charge; :meth:`noted` sets them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = gn.Ledger.create(f"{folder}/survey.ledger", gn.zCDP(1.0))
    ...     print(ledger.remaining, ledger.entries())
    1.0 ()
    """

    path: Path
    rho: float
    delta: float = 0.0
    note: Note = field(default=NO_NOTE, repr=False)
    scales: Mapping[str, float] = field(default_factory=dict, repr=False)

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], budget: "zCDP | PerRecord", *, delta: float = 0.0
    ) -> "Ledger":
        """Create a new ledger and return it.

        Args:
            path: a new file.
            budget: the budget of all releases under this ledger: zCDP, or :class:`PerRecord` with
                the scales of its numbers. Other guarantees, such as (ε, δ), do not add up; releases
                under them cost the ρ of their noise. All releases together imply an ε of
                ``budget.epsilon(delta)``; :meth:`epsilon` returns the ε of the releases so far.
            delta: the δ of all thresholds together, in [0, 1): with at most this probability, a key
                that only one person has is shown. It should be well below 1 / records.

        Raises:
            ParameterError: another budget, path is no path, or delta is out of range.
            OutputError: the file exists, or cannot be written.
            LedgerError: the path is not on a local disk.
        """
        from .definitions import zCDP
        from .guarantee import AbstractPrivacy

        scales = budget.scales if isinstance(budget, AbstractPrivacy) else {}
        if not (isinstance(budget, zCDP) or scales):
            raise ParameterError(
                f"Ledger.create: expected a budget like zCDP(1.0), got {type(budget).__name__}"
            )
        if not (_is_number(delta) and 0 <= delta < 1):
            raise ParameterError(
                f"Ledger.create: expected 0 <= delta < 1, got {delta!r:.50}; hint: 0 without "
                "thresholds, else well below 1 / records"
            )
        target, rho, delta = _absolute("Ledger.create", path), budget.to_zcdp().rho, float(delta)
        if os.path.lexists(target):
            raise OutputError(
                f"Ledger.create: {target} exists already; hint: its budget is fixed, and "
                "releases are charged to it as it is (--ledger, or Ledger.open)"
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
                new_tables(scratch, target, rho, delta, scales)
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(
                f"Ledger.create: cannot write to {target.parent} ({type(error).__name__})"
            ) from None
        return cls(target, rho, delta, scales=scales)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Ledger":
        """Open an existing ledger and return it.

        Raises:
            LedgerError: the ledger is missing, unreadable, damaged, of another format, or has a
                second name.
            ParameterError: path is no path.

        Warns:
            LedgerWarning: it is on a disk that several machines share.
        """
        target = _absolute("Ledger.open", path)
        with transaction(target) as database:
            own = budget_of(database), delta_of(database)
            ledger = cls(target, *own, scales=scales_of(database))
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
        """Return the ledger, or open the one at a path.

        Raises:
            ParameterError: neither a ledger nor a path.
        """
        if isinstance(ledger, Ledger):
            return ledger
        if not isinstance(ledger, str | os.PathLike):
            raise ParameterError(
                f"expected ledger to be a Ledger or its path, got {type(ledger).__name__}"
            )
        return cls.open(ledger)

    def noted(
        self,
        *,
        purpose: str | None = None,
        requested_by: str | None = None,
        approval: str | None = None,
    ) -> "Ledger":
        """Return this ledger with texts that it stores with every charge.

        Pass the returned ledger as ``ledger=``. :meth:`entries` and ``gaussnoise ledger show`` show
        the texts. They have no effect on releases, and are public: they must not be taken from the
        data. A release that is read again keeps the texts of its charge.

        Args:
            purpose: the purpose of the release.
            requested_by: the person who asked for it.
            approval: the approval of the release, like the number of a decision.

        Raises:
            ParameterError: a line that is not one of 1 to 500 printable characters.

        >>> import tempfile
        >>> mechanism = gn.GaussianMechanism(
        ...     gn.optimal_noise(gn.FiniteSet(np.eye(2))), gn.zCDP(0.25), n=10
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = gn.Ledger.create(f"{folder}/survey.ledger", gn.zCDP(1.0))
        ...     noted = ledger.noted(purpose="annual report", approval="board 2026-14")
        ...     release = mechanism.release(counts=[6, 4], ledger=noted, id="first")
        ...     [entry] = ledger.entries()
        >>> print(entry.purpose, entry.requested_by, entry.approval)
        annual report None board 2026-14
        """
        note = Note(purpose, requested_by, approval)
        for name, line in note._asdict().items():
            if line is not None and not (
                isinstance(line, str) and 0 < len(line) <= _LONGEST_LINE and line.isprintable()
            ):
                raise ParameterError(
                    f"noted: expected {name} to be a line of 1 to {_LONGEST_LINE} printable "
                    f"characters, got {line!r:.250}"
                )
        return replace(self, note=note)

    def entries(self, last: int | None = None) -> tuple[LedgerEntry, ...]:
        """Return charges and refusals, oldest first: all of them, or the newest ``last``.

        Raises:
            ParameterError: not a number of entries.
        """
        if not (last is None or (type(last) is int and 0 <= last < 2**63)):
            raise ParameterError(f"entries: expected an integer last >= 0, got {last!r:.50}")
        with transaction(self.path) as database:
            return tuple(last_in(database, last))

    @property
    def charges(self) -> int:
        """The number of charges so far; draws that were lost in a crash are included."""
        with transaction(self.path) as database:
            return numbers_in(database)[0]

    @property
    def refusals(self) -> int:
        """The number of refused releases; no budget bounds what refusals reveal about the data."""
        with transaction(self.path) as database:
            return numbers_in(database)[1]

    @property
    def spent(self) -> float:
        """The ρ that all charges so far cost together, rounded up."""
        with transaction(self.path) as database:
            return spent_rho(database)

    @property
    def remaining(self) -> float:
        """The ρ that new charges can still cost, rounded down."""
        with transaction(self.path) as database:
            return 0.0 + rounded_down(left_rho(database))

    @property
    def spent_delta(self) -> float:
        """The δ that all charges so far cost for thresholds on counts, rounded up."""
        with transaction(self.path) as database:
            return spent_delta(database)

    def epsilon(self, delta: float) -> float:
        """Return an ε for which all charges so far together are (ε, δ)-private.

        Lost charges are included. If the budget grows with numbers in a record, this ε is for a
        record whose numbers are 0.

        Formal guarantees:
            * The questions, and the number of releases, may depend on earlier results, if bounds on
              all charges and draws together were fixed beforehand. If earlier results decided
              whether to release more, only the budget was fixed beforehand; then
              ``gn.zCDP(ledger.rho).epsilon(delta - ledger.delta)`` holds (Whitehouse et al. 2023).
            * If all noise is Gaussian and the ledger knows the number of draws, ε is that of one
              Gaussian with the total ρ. Proof: first take continuous noise, rounded. Between
              neighbours, the mean of release i differs by μ_i <= √(2ρ_i) standard deviations, where
              μ_i depends on earlier releases only. This release can be computed from the increment
              of a Brownian motion over a time μ_i², with drift 0 or 1, and independent noise. So
              all releases are post-processing of a path over ``[0, 2ρ]``, whose likelihood ratio
              depends on its end point only (Smith & Thakurta 2022; Koskela, Tobaben & Honkela
              2023). The divergences of the discrete noise from the rounded one, which
              :func:`~gaussnoise.privacy.lattice_bound.lattice_distance` bounds, add up by the chain
              rule.
            * Otherwise ε is computed through zCDP, which adds up for any noise. The δ of thresholds
              is subtracted first: δ'-approximate ρ-zCDP is
              (ε, δ' + δ'')-differentially private if ρ implies (ε, δ''), as
              :class:`~gaussnoise.privacy.threshold.ThresholdQuery` proves.

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
        return gaussian_epsilon(spent, delta, draws=draws or 0)

    def once(
        self,
        id: str,
        *,
        cost: float,
        request: Mapping[str, object],
        protects: str | Protected,
        target: str | os.PathLike[str] | None,
        write: Callable[[Path], object],
        read: Callable[[Path], T],
        draws: int | None = None,
        delta: float = 0.0,
        ready: Callable[[], object] | None = None,
        privacy: "AbstractPrivacy | None" = None,
    ) -> T:
        """Return the one result of ``id``, which is drawn under its own charge or read again.

        The call waits while another program works on the same id.

        Args:
            id: 1 to 200 printable characters without slashes.
            cost: the largest ρ that ``write`` costs.
            request: all public parameters of the result, as JSON values; never anything from the
                data.
            protects: neighbouring relation and privacy unit, in words. Costs add up only if all
                entries of a ledger protect the same. (Releases of this package pass a
                :class:`~gaussnoise.privacy.protected.Protected`.)
            target: the place of the result; None for a file in the ledger's own folder.
            write: a function that draws noise and writes the result to a path that does not exist
                yet: a file, or a directory whose ``release.json`` lists the sha256 of all other
                files under "files".
            read: a function that returns the result from its file or directory.
            draws: an upper bound on the number of drawn integers, if all noise is discrete Gaussian
                of at least ``MIN_STEPS`` lattice steps. None for any other noise that is
                ``cost``-zCDP.
            delta: the δ of thresholds in ``write``, which is then δ-approximate ``cost``-zCDP.
            ready: a function that raises an error if ``write`` cannot begin for a reason that does
                not depend on the data, like a missing file. If there is no result yet and the
                budget allows one, it is called before anything is written to the ledger.
            privacy: the guarantee, if ``cost`` is for a record whose numbers are zero and other
                records may cost more.

        Raises:
            ParameterError: a bad id, cost, request, text, delta, number of draws or target.
            BudgetError: the budget does not allow the cost or delta; or it is the same for all
                records, and the cost grows with numbers of a record. Nothing was drawn.
            DataError: ``write`` refused the data; the reason is not given.
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
            (protects.words if isinstance(protects, Protected) else protects).encode()
        except (AttributeError, TypeError, ValueError, RecursionError):
            raise ParameterError(
                "ledger: expected request to hold JSON values by their names, and protects to be "
                "text in UTF-8"
            ) from None
        cost = self._charged(cost, privacy)
        place = None if target is None else _absolute("ledger", target)
        return read(
            self._results.once(id, cost, delta, request, protects, place, write, draws, ready)
        )

    def _charged(self, cost: float, privacy: "AbstractPrivacy | None") -> float:
        """Return the ρ to charge for a release, rounded up; raise BudgetError if none is enough."""
        if privacy is None:
            return cost
        with transaction(self.path) as database:
            scales = scales_of(database)  # the file may have been replaced since it was opened
        # where a cost grows with numbers in a record, the budget must grow with the same numbers
        factor = privacy.factor_over(scales)
        if factor is None:
            grown = ", ".join(privacy.scales)
            what = f"grows with {', '.join(scales)} alone" if scales else "is the same"
            raise BudgetError(
                f"ledger: expected a release whose cost of a record {what}, got one that grows "
                f"with {grown}: large records would cost more than the budget; hint: "
                "Ledger.create(path, PerRecord(...)), or gaussnoise ledger create --per-record"
            )
        return rounded_up(Fraction(cost) * Fraction(factor))

    @property
    def _results(self) -> Results:
        return Results(self.path, self.note)


def _absolute(who: str, path: object) -> Path:
    """Return an absolute path that the ledger can store as text, or raise ParameterError."""
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
    """Return the ledger to charge, and the id of the release in it; None if neither is given.

    Raises:
        ParameterError: only one of the two is given, or ``ledger`` is neither a ledger nor a path.
    """
    if ledger is None and id is None:
        return None
    if ledger is None or id is None:
        raise ParameterError(
            f"{function}: expected ledger= and id= together: a ledger knows releases by their id"
        )
    return Ledger.of(ledger), id
