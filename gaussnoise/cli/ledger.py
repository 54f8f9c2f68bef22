"""The commands of a ledger."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ParameterError
from ..privacy.definitions import zCDP
from ..privacy.ledger import Ledger
from ..privacy.ledger_entries import LedgerEntry, Note, spent_and_left
from ..tables.planning.stated import privacy_of
from ..text import no_less
from .console import say, show
from .documents import ledger_document
from .options import Json, LedgerFile, PerRecordOption, scales_of


def create_ledger(
    path: LedgerFile,
    rho: Annotated[
        float, typer.Option("--rho", help="Budget of all releases together: rho of zCDP.")
    ],
    delta: Annotated[
        float,
        typer.Option("--delta", help="The most that thresholds may spend: gaussnoise categories."),
    ] = 0.0,
    per_record: PerRecordOption = None,
    as_json: Json = False,
) -> None:
    """Start a ledger with a fixed budget."""
    budget: Any = privacy_of(rho, per_record=scales_of(per_record or []))
    ledger = Ledger.create(path, budget, delta=delta)
    if as_json:
        return show(ledger_document(ledger, max(1e-6, 2 * delta), None))
    more = f" and delta {delta:.10g}" if delta else ""
    say(f"wrote {ledger.path}: rho {rho:.10g}{more} for all releases together{_grown(ledger)}")


def show_ledger(
    path: LedgerFile,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            help="Say also what (epsilon, delta) has been spent: 1e-6, or twice what thresholds "
            "may spend, if omitted.",
        ),
    ] = None,
    last: Annotated[int, typer.Option("--last", min=0, help="How many entries to list.")] = 20,
    every: Annotated[bool, typer.Option("--all", help="List all entries.")] = False,
    as_json: Json = False,
) -> None:
    """Show the spent budget of a ledger, and list its last charges and refusals.

    A refusal depends on the data; everything else here is public.
    """
    ledger = Ledger.open(path)
    delta = max(1e-6, 2 * ledger.delta) if delta is None else delta
    left = delta - ledger.delta  # all thresholds together never spend more than the ledger's delta
    if not left > 0:
        raise ParameterError(
            f"ledger: expected --delta above {ledger.delta:g}, which thresholds may spend, got "
            f"{delta:g}; hint: --delta {2 * ledger.delta:g}"
        )
    if as_json:
        return show(ledger_document(ledger, delta, None if every else last))
    spent, budget = ledger.epsilon(delta), zCDP(ledger.rho).epsilon(left)
    charges, refusals = ledger.charges, ledger.refusals
    used, rest = spent_and_left(ledger.spent, charges, ledger.rho)
    say(
        f"budget rho {ledger.rho:.10g}, spent {used}, left {rest}; charges: {charges}, refusals of "
        f"the data: {refusals}"
    )
    if ledger.scales:
        say(f"rho is of a record whose numbers are 0{_grown(ledger)}")
    if ledger.delta:
        used, rest = spent_and_left(ledger.spent_delta, charges, ledger.delta)
        say(f"delta of thresholds {ledger.delta:.10g}, spent {used}, left {rest}")
    any_noise = zCDP(ledger.spent).epsilon(left) if ledger.spent else 0.0
    drawn = " by its Gaussian noise" if spent < any_noise and not ledger.delta else ""
    say(
        f"epsilon at delta {delta:g}: {no_less(spent, 4)} for what is spent{drawn}, "
        f"{no_less(budget, 4)} for the budget{' by any noise' if drawn else ''}"
    )
    entries = ledger.entries(None if every else last)
    if len(entries) < charges + refusals:
        say(f"the last {len(entries)} of {charges + refusals} entries; --all lists all:")
    if entries:
        say("\n".join(_lines(entry, ledger) for entry in entries))


def _grown(ledger: Ledger) -> str:
    """Return text on the numbers with which a record's budget grows; "" without such numbers."""
    squares = "".join(f" + ({name} / {t:.15g})^2" for name, t in ledger.scales.items())
    return f", times 1{squares} for a record: large ones are protected less" if squares else ""


def _lines(entry: LedgerEntry, ledger: Ledger) -> str:
    """Return the text, in lines, of one entry of the ledger."""
    rho, delta = spent_and_left(entry.rho, 1, ledger.rho)[0], ""
    if ledger.delta:
        delta = f"delta {spent_and_left(entry.delta, 1, ledger.delta)[0]:<10}  "
    digest = "" if entry.sha256 is None else f"  sha256 {entry.sha256[:12]}"
    note = Note(entry.purpose, entry.requested_by, entry.approval).lines
    said = "".join(f"\n    {name.replace('_', ' ')}: {line}" for name, line in note.items())
    return (
        f"  {entry.begun}  {entry.state:<8}  rho {rho:<10}  {delta}{entry.id}\n"
        f"    protects: {entry.protects}\n    {entry.target}{digest}{said}"
    )


def noted(command: str, path: Path | None, *note: str | None) -> Ledger | Path | None:
    """Return the ledger with a note, like a purpose, for its charges; without a note, the path.

    Raises:
        ParameterError: there is a note, but no ledger.
    """
    lines = Note(*note).lines
    if lines and path is None:
        (name, *_) = lines
        raise ParameterError(
            f"{command}: expected --ledger with --{name.replace('_', '-')}, which is kept there"
        )
    return Ledger.open(path).noted(**lines) if lines and path is not None else path
