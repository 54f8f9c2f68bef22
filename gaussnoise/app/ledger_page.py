"""The page of the ledger: its charges, their purposes, and the rest of the budget."""

from nicegui import ui

from ..errors import GaussNoiseError, ParameterError
from ..privacy.definitions import zCDP
from ..privacy.ledger import Ledger
from ..privacy.ledger_entries import LedgerEntry, Note, spent_and_left
from ..text import SHOWN_DELTA, no_less
from .number_field import NumberField
from .parts import frame, go, handled, head, paged, refusal, words
from .project import LEDGER
from .state import State

_COLUMNS = {
    "begun": "Begun",
    "id": "Name",
    "state": "State",
    "rho": "ρ",
    "note": "Purpose, requested by, approval",
    "protects": "Protects",
}

_MOST_NAMED = 3  # names of releases in a refusal
_ELSE = {  # factors from the budget of this one to that of all
    1: "this release or stream alone: nothing else is published",
    2: "as much again: half now, half next year",
    4: "several: more tables, corrections, a monthly stream",
}


def ledger_page(state: State) -> None:
    """Draw the page of the project's ledger."""
    with frame(state, "/ledger", "Ledger: the budget of all releases"):
        try:
            ledger = state.project.budget()
        except GaussNoiseError as error:
            return refusal(str(error))
        if ledger is None:
            return refusal("There is no ledger yet.", "/release")
        used, rest = spent_and_left(ledger.spent, ledger.charges, ledger.rho)
        with ui.card():
            words(f"The *ledger* is {LEDGER}; in the shell, gaussnoise ledger show {LEDGER}.")
            ui.label(
                f"ρ = {ledger.rho:.10g} in all, {used} charged, {rest} left. Charges: "
                f"{ledger.charges}, refusals of the data: {ledger.refusals}."
            )
            ui.label(f"ε of all charges at δ = {SHOWN_DELTA:g}: {_epsilon(ledger)}")
        with ui.card():
            head("Entries", 2)
            ui.label("A tick of a stream costs nothing: its stream was charged for all its ticks.")
            columns = [
                {"name": name, "label": label, "field": name, "align": "left"}
                for name, label in _COLUMNS.items()
            ]
            rows = [_row(entry, ledger) for entry in reversed(ledger.entries())]
            # on a narrow screen, the table scrolls in a box of its own, which keys can reach
            box = ui.element("div").classes("wide").props('role="region" tabindex="0"')
            with box.props('aria-label="Entries"'):
                table = ui.table(columns=columns, rows=rows, row_key="key", pagination=paged(rows))
            table.classes("w-full").props("wrap-cells")


def _row(entry: LedgerEntry, ledger: Ledger) -> dict[str, object]:
    """Return an entry as {column: value}, with the numbers of ``gaussnoise ledger show``."""
    note = Note(entry.purpose, entry.requested_by, entry.approval).lines
    return {
        "key": entry.attempt,
        "begun": entry.begun,
        "id": entry.id,
        "state": entry.state,
        "rho": spent_and_left(entry.rho, 1, ledger.rho)[0],
        "note": "; ".join(f"{name.replace('_', ' ')}: {line}" for name, line in note.items()),
        "protects": entry.protects,
    }


def _epsilon(ledger: Ledger) -> str:
    delta = max(SHOWN_DELTA, 2 * ledger.delta)
    return no_less(ledger.epsilon(delta), 4)


def begin_ledger(state: State, rho: float, page: str) -> None:
    """Draw a form with which the user creates the project's ledger; it then opens ``page``.

    ``rho`` is the budget of the release or stream that waits for the ledger.
    """
    project = state.project
    known = [*project.published(), *project.streams()][-_MOST_NAMED:]
    # a charge leaves this folder beside its ledger, also if nothing was published
    if known or project.ledger.with_name(f"{LEDGER}.releases").exists():
        was = f"{', '.join(known)} of this folder was published" if known else "It was charged"
        return refusal(
            f"{was}, and {LEDGER}, which knows what that cost, is missing. Put it back: budgets of "
            "all releases of the same data add up, and a new ledger would not count what was "
            "charged already. For other data, take another folder."
        )
    with ui.card():
        head("The total budget of these data", 2)
        words(
            "How much may all releases of these data, and of the same persons, use in total, now "
            "and later? This total (*ledger*) cannot be changed afterwards."
        )
        what = ui.radio(_ELSE).props('aria-label="What else will be published of these data?"')
        most = NumberField("ρ of all releases together").classes("w-full")
        rest = ui.label().props('role="status"')

        def choose() -> None:
            most.show(float(no_less((what.value or 1) * rho, 6)))  # rounded up

        def look() -> None:
            left = (most.valid or 0.0) - rho
            kept = f"{left:.6g}" if left > rho / 1000 else "nothing"
            said = f"This one takes {rho:.6g}; {kept} is left for all others."
            rest.text = "" if most.error else said  # the field has the error
            button.text = "Set the total" + (f" at ρ = {most.valid:.10g}" if most.valid else "")

        def create() -> None:
            if most.number is None:
                raise ParameterError("Say what else will be published of these data.")
            Ledger.create(state.project.ledger, zCDP(most.number))
            go(page)

        button = ui.button("Set the total", on_click=handled(create))
        what.on_value_change(choose)
        most.on_value_change(look)
