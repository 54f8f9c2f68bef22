"""The page of the ledger: its charges, their purposes, and the rest of the budget."""

from nicegui import ui

from ..errors import GaussNoiseError
from ..privacy.ledger import Ledger
from ..privacy.ledger_entries import spent_and_left
from ..text import SHOWN_DELTA, no_less
from .parts import frame, head, refusal, words
from .project import LEDGER
from .state import State

_COLUMNS = {
    "begun": "Begun",
    "id": "Name",
    "state": "State",
    "rho": "ρ",
    "protects": "Protects",
    "purpose": "Purpose",
    "requested_by": "Requested by",
}


def ledger_page(state: State) -> None:
    """Draw the page."""
    with frame(state, "/ledger", "Ledger: the budget of all releases"):
        try:
            ledger = state.project.budget()
        except GaussNoiseError as error:
            return refusal(str(error))
        if ledger is None:
            return refusal("There is no ledger yet.", "/release")
        with ui.card():
            words(f"The *ledger* is {LEDGER}; in the shell, gaussnoise ledger show {LEDGER}.")
            spent, left = spent_and_left(ledger.spent, ledger.charges, ledger.rho)
            ui.label(f"ρ = {ledger.rho:.6g} in all, {spent} charged, {left} left.")
            ui.label(f"ε of all charges at δ = {SHOWN_DELTA:g}: {_epsilon(ledger)}")
        with ui.card():
            head("Entries", 2)
            columns = [
                {"name": name, "label": label, "field": name, "align": "left"}
                for name, label in _COLUMNS.items()
            ]
            rows = [
                {name: getattr(entry, name) or "" for name in _COLUMNS} | {"key": entry.attempt}
                for entry in reversed(ledger.entries())
            ]
            ui.table(columns=columns, rows=rows, row_key="key", pagination=20).classes(
                "w-full"
            ).props("wrap-cells")


def _epsilon(ledger: Ledger) -> str:
    delta = max(SHOWN_DELTA, 2 * ledger.delta)
    return no_less(ledger.epsilon(delta), 4)
