"""The entries of a ledger: its budget, charges and refusals, and sums over charges."""

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_DOWN, Context, Decimal
from fractions import Fraction
from typing import NamedTuple, final

from ..errors import LedgerError
from ..numerics.rounding import rounded_up
from .ledger_file import DAMAGED, knows_delta, knows_draws, knows_scales

# Costs are integers: shares of the budget, rounded up to multiples of 2⁻⁶², so that 64 bits are
# enough for any budget. The cap exceeds the budget by a part in 10¹², so that ten releases at 0.1
# fit into 1, although ten times the float 0.1 is more than 1.
BUDGET_UNITS = 2**62
CAP = BUDGET_UNITS + 2**22

REFUSAL_COLUMNS = "attempt, id, protects, request, target, begun"


class Note(NamedTuple):
    """Texts that the owner stores with a charge, on its purpose and approval.

    They have no effect on the charge.
    """

    purpose: str | None = None
    requested_by: str | None = None
    approval: str | None = None

    @property
    def lines(self) -> dict[str, str]:
        """{name: text} for the texts that were given."""
        return {name: line for name, line in self._asdict().items() if line is not None}


NO_NOTE = Note()


@final
@dataclass(frozen=True, eq=False)
class LedgerEntry:
    """A public record of a charge or of a refusal, without any value of the data.

    Attributes:
        attempt: the number of the entry, which gives the order of entries even if clocks are wrong.
        id: the name of the release.
        rho: the ρ charged, rounded up; 0 for a refusal.
        state: "reserved": the result is being drawn, or the program died while it was drawn;
            "written": the result is stored, and the next run publishes it; "sealed": it is
            published; "lost": the program died before the result was written. All these are
            charged. "refused": nothing was drawn, since the data broke the declared schema or
            domain, or the release failed for another reason after it had access to the data.
        sha256: the sha256 of the file of the result, or of the ``release.json`` of a directory.
        protects: neighbouring relation and privacy unit.
        request: {part of the request: its digest}.
        target: the path of the result.
        begun: time of the charge or refusal, UTC, by the clock of the machine.
        draws: upper bound on the number of discrete Gaussians drawn; None if only rho is known
            about the noise.
        delta: the δ charged for thresholds, rounded up.
        purpose: the purpose of the release, a public line from :meth:`Ledger.noted`.
        requested_by: the person who asked for the release, a public line too.
        approval: the approval of the release, a public line too.

    >>> import tempfile
    >>> mechanism = gn.GaussianMechanism(
    ...     gn.optimal_noise(gn.FiniteSet(np.eye(2))), gn.zCDP(0.25), n=10
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = gn.Ledger.create(f"{folder}/survey.ledger", gn.zCDP(1.0))
    ...     release = mechanism.release(counts=[6, 4], ledger=ledger, id="first")
    ...     [entry] = ledger.entries()
    >>> print(entry.id, entry.rho, entry.state)
    first 0.25 sealed
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
    delta: float = 0.0
    purpose: str | None = None
    requested_by: str | None = None
    approval: str | None = None


def entries_in(
    database: sqlite3.Connection, where: str = "true", *values: object
) -> Iterator[LedgerEntry]:
    """Yield the charges in the ledger that the SQL condition ``where`` selects, oldest first."""
    rho, most = Fraction(budget_of(database)), Fraction(delta_of(database))
    columns = "attempt, id, units, state, sha256, protects, request, target, begun"
    columns += ", draws" if knows_draws(database) else ", NULL"
    columns += ", delta_units" if knows_delta(database) else ", 0"
    columns += _note_columns(database, "entries")
    rows = database.execute(f"SELECT {columns} FROM entries WHERE {where} ORDER BY attempt", values)
    for attempt, name, units, state, sha256, protects, request, target, begun, *rest in rows:
        draws, part, *lines = rest
        _check_text(name, state, protects, target, begun, sha256 or "")
        charged = rounded_up(Fraction(units, BUDGET_UNITS) * rho)
        if not (draws is None or (type(draws) is int and draws >= 0)):
            raise _damaged("an entry")
        yield LedgerEntry(
            attempt,
            name,
            charged,
            state,
            sha256,
            protects,
            _parsed(request),
            target,
            begun,
            draws,
            rounded_up(Fraction(part, BUDGET_UNITS) * most),
            *_note(lines),
        )


def refusals_in(
    database: sqlite3.Connection, where: str = "true", *values: object
) -> Iterator[LedgerEntry]:
    """Yield the refusals in the ledger that the SQL condition ``where`` selects, oldest first."""
    if not _knows_refusals(database):
        return
    columns = REFUSAL_COLUMNS + _note_columns(database, "refusals")
    rows = database.execute(
        f"SELECT {columns} FROM refusals WHERE {where} ORDER BY attempt", values
    )
    for attempt, name, protects, request, target, begun, *lines in rows:
        _check_text(name, protects, target, begun)
        entry = attempt, name, 0.0, "refused", None, protects, _parsed(request), target, begun, 0
        yield LedgerEntry(*entry, 0.0, *_note(lines))


def last_in(database: sqlite3.Connection, count: int | None) -> list[LedgerEntry]:
    """Return the newest ``count`` charges and refusals, oldest first; all if ``count`` is None."""
    tables = ("entries", "refusals") if _knows_refusals(database) else ("entries",)
    attempts = " UNION ALL ".join(f"SELECT attempt FROM {table}" for table in tables)
    where, values = "true", []
    if count is not None:
        before = f"SELECT attempt FROM ({attempts}) ORDER BY attempt DESC LIMIT 1 OFFSET ?"
        where, values = f"attempt > coalesce(({before}), 0)", [count]
    found = [*entries_in(database, where, *values), *refusals_in(database, where, *values)]
    return sorted(found, key=lambda entry: entry.attempt)


def numbers_in(database: sqlite3.Connection) -> tuple[int, int]:
    """Return the number of charges, and the number of refusals."""
    ((charges,),) = database.execute("SELECT count(*) FROM entries")
    if not _knows_refusals(database):
        return charges, 0
    ((refusals,),) = database.execute("SELECT count(*) FROM refusals")
    return charges, refusals


def draws_in(database: sqlite3.Connection) -> int | None:
    """Return the number of discrete Gaussian draws in all charges.

    Return None if some charges do not record the number, as they may have other noise.
    """
    if not knows_draws(database):
        return None if numbers_in(database)[0] else 0
    draws = [count for (count,) in database.execute("SELECT draws FROM entries")]
    if not all(count is None or (type(count) is int and count >= 0) for count in draws):
        raise _damaged("an entry")
    return None if None in draws else sum(draws)


def unfinished_in(database: sqlite3.Connection) -> list[LedgerEntry]:
    """Return the charges that have no complete result.

    The results of these charges are still being drawn, or their programs died.
    """
    return list(entries_in(database, "state IN ('reserved', 'lost')"))


def _note_columns(database: sqlite3.Connection, table: str) -> str:
    """Return the SQL expression for the note columns of a table: NULL in ledgers without them."""
    if not _has_table(database, "notes"):
        return ", NULL" * len(Note._fields)
    return "".join(
        f", (SELECT {name} FROM notes WHERE notes.attempt = {table}.attempt)"
        for name in Note._fields
    )


def _note(lines: Sequence[object]) -> Note:
    """Return a note made from the values of its columns in the database."""
    _check_text(*(line or "" for line in lines))
    return Note(*lines)  # pyright: ignore[reportArgumentType] (checked)


def _knows_refusals(database: sqlite3.Connection) -> bool:
    """Return whether the ledger has a table of refusals; the oldest ledgers have none."""
    return _has_table(database, "refusals")


def _has_table(database: sqlite3.Connection, name: str) -> bool:
    """Return whether the ledger has a table of this name."""
    query = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return database.execute(query, [name]).fetchone() is not None


def _damaged(what: str) -> LedgerError:
    """Return the error for invalid values in a damaged ledger; ``what`` names the values."""
    return LedgerError(f"ledger: {what} is damaged; {DAMAGED}")


def _check_text(*values: object) -> None:
    """Raise LedgerError unless all values of an entry are text."""
    if not all(type(value) is str for value in values):
        raise _damaged("an entry")


def _parsed(request: str) -> dict[str, str]:
    try:
        return dict(json.loads(request))
    except (ValueError, TypeError, RecursionError):
        raise _damaged("an entry") from None


def spent_units(database: sqlite3.Connection) -> int:
    """Return the number of units that are charged; the whole budget is ``BUDGET_UNITS`` units."""
    return sum(units for (units,) in database.execute("SELECT units FROM entries"))


def spent_rho(database: sqlite3.Connection) -> float:
    """Return the ρ charged so far, rounded up."""
    return rounded_up(Fraction(spent_units(database), BUDGET_UNITS) * Fraction(budget_of(database)))


def left_rho(database: sqlite3.Connection) -> Fraction:
    """Return the ρ that can still be charged, exactly."""
    return Fraction(max(BUDGET_UNITS - spent_units(database), 0), BUDGET_UNITS) * Fraction(
        budget_of(database)
    )


def spent_delta_units(database: sqlite3.Connection) -> int:
    """Return how many units of the budget for δ are charged.

    The whole budget is ``BUDGET_UNITS`` units.
    """
    if not knows_delta(database):
        return 0
    return sum(units for (units,) in database.execute("SELECT delta_units FROM entries"))


def spent_delta(database: sqlite3.Connection) -> float:
    """Return the δ charged so far, rounded up."""
    units = spent_delta_units(database)
    return rounded_up(Fraction(units, BUDGET_UNITS) * Fraction(delta_of(database)))


def delta_of(database: sqlite3.Connection) -> float:
    """Return the budget for δ: the most that thresholds on counts may cost together.

    This budget is fixed when the ledger is created, and is 0 if thresholds are not allowed.
    """
    if not knows_delta(database):
        return 0.0
    try:
        ((delta,),) = database.execute("SELECT delta FROM budget")
        most = float.fromhex(delta)
    except (ValueError, TypeError, OverflowError):
        most = math.nan
    if not 0 < most < 1:
        raise _damaged("its budget")
    return most


def scales_of(database: sqlite3.Connection) -> dict[str, float]:
    """Return the scales T of the numbers in a record with which its budget grows.

    It is empty if the ledger has one budget for all records.
    """
    if not knows_scales(database):
        return {}
    try:
        ((stored,),) = database.execute("SELECT scales FROM budget")
        scales = {name: float(scale) for name, scale in dict(json.loads(stored)).items()}
    except (ValueError, TypeError, RecursionError):
        scales = {}
    if not scales or not all(0 < scale < math.inf for scale in scales.values()):
        raise _damaged("its budget")
    return scales


def budget_of(database: sqlite3.Connection) -> float:
    """Return the budget ρ of the ledger, which is fixed when the ledger is created."""
    try:
        ((rho,),) = database.execute("SELECT rho FROM budget")
        budget = float.fromhex(rho)
    except (ValueError, TypeError, OverflowError):
        budget = math.nan
    if not (math.isfinite(budget) and budget > 0):
        raise _damaged("its budget")
    return budget


def spent_and_left(spent: float, charges: int, budget: float) -> tuple[str, str]:
    """Return texts of the spent part of a budget, rounded up to six digits, and of the rest.

    The user states each cost as a decimal number; it is stored as a double, and rounded up to a
    unit of the ledger. Before the sum is rounded up, the largest possible effect of these
    roundings, at most a factor of 1 + 10⁻¹², is subtracted. So ten costs of 0.1 spend exactly 1.

    >>> spent_and_left(math.nextafter(1, 2), 10, 1.0), spent_and_left(1 / 3, 1, 1.0)
    (('1', '0'), ('0.333334', '0.666666'))
    """
    units, exact = Fraction(charges, BUDGET_UNITS) * Fraction(budget), Fraction(spent)
    least = exact - exact / 2**51 - min(units, exact / 2**40)
    up, down = Context(6, ROUND_CEILING), Context(10, ROUND_DOWN)
    whole = Decimal(repr(budget))
    # charges add up to at most the budget plus a part in 10^12
    shown = min(up.divide(Decimal(least.numerator), Decimal(least.denominator)), whole)
    return f"{float(shown):.10g}", f"{float(down.subtract(whole, shown)):.10g}"


def units_of(cost: float, budget: float) -> int:
    """Return a cost in units of the budget, rounded up.

    The whole budget is ``BUDGET_UNITS`` units.
    """
    return math.ceil(Fraction(cost) / Fraction(budget) * BUDGET_UNITS)


def result_of(
    database: sqlite3.Connection, id: str, request: Mapping[str, str]
) -> LedgerEntry | None:
    """Return the charge for the result called ``id``; None if there is none.

    Raise LedgerError if the request of an earlier use of the id differs from this request.
    """
    entry = None
    for entry in entries_in(database, "id = ?", id):
        if changed := _differences(entry.request, request):
            raise LedgerError(
                f"ledger: {id!r} was used for a release with another {', '.join(changed)}; hint: "
                "an id names one release; take another for a new one"
            )
    return None if entry is None or entry.state == "lost" else entry


def _differences(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return the names of the fields in which two requests for a release differ."""
    return [name for name in {**first, **second} if first.get(name) != second.get(name)]
