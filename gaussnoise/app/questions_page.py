"""The second page: which tables and questions are answered, and how accurately."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nicegui import ui

from ..errors import GaussNoiseError, ParameterError
from ..tables import Schema
from ..tables.release.report.numbers import title_of
from ..tables.release.suggestion import examples
from ..tables.schema.entries import Entry, entry_name, entry_term
from ..tables.schema.workload import Wanted, load_workload
from .asked import names_in, same_table, tables_of, workload_toml
from .number_field import NumberField
from .parts import frame, go, handled, head, more, offered, refusal, words
from .state import State

_BASES = {
    None: "counts",
    "prefix": "cumulative counts, in order",
    "ranges": "all runs of neighbouring cells",
    "hierarchy": "all levels of its groups",
}
_MOST_TABLES = 1000  # largest number of tables that one click may ask for


def questions_page(state: State) -> None:
    """Draw the page on which the user chooses tables, questions and their accuracy."""
    with frame(state, "/questions", "Questions: which tables are published"):
        try:
            schema, wanted = Schema.load(state.project.schema), load_workload(state.project.schema)
        except GaussNoiseError as error:
            is_there = state.project.schema.exists()
            return refusal(str(error) if is_there else "There are no columns yet.", "/")
        _listed(state, schema, wanted)
        _all(state, schema, wanted)
        _one(state, schema, wanted)
        _question(state, schema, wanted)


def _keep(state: State, wanted: Sequence[Wanted]) -> None:
    state.project.change(lambda file: file.stating("workload", workload_toml(wanted)))
    go("/questions")


def _more(state: State, wanted: Sequence[Wanted], more: Sequence[Wanted]) -> None:
    new = [one for one in more if not any(same_table(one, old) for old in wanted)]
    if not new:
        raise ParameterError("These tables are in the list already.")
    _keep(state, [*wanted, *new])


def _listed(state: State, schema: Schema, wanted: list[Wanted]) -> None:
    with ui.card():
        head("Tables to be published", 2)
        if not wanted:
            ui.label("None yet: add some below.")
            return
        words("A *target* is needed only where a table must be accurate to some number of rows.")
        for k, one in enumerate(wanted):
            name = _title(schema, one.entry)
            with ui.row().classes("items-center w-full"):
                ui.label(name).classes("col")
                goal = NumberField("within ± rows", one.within).classes("w-32")
                goal.props(f'aria-label="Target for {k + 1}"')

                def aim(k: int = k, goal: NumberField = goal) -> None:
                    aimed = replace(wanted[k], within=goal.number or None)
                    _keep(state, [*wanted[:k], aimed, *wanted[k + 1 :]])

                goal.on("change", handled(aim))

                def leave(k: int = k) -> None:
                    _keep(state, [*wanted[:k], *wanted[k + 1 :]])

                ui.button(icon="close", on_click=handled(leave)).props(
                    f'flat round aria-label="Leave out table {k + 1}"'
                )

        ui.button("Leave out all", on_click=handled(lambda: _keep(state, []))).props("flat")


def _title(schema: Schema, entry: Entry) -> str:
    """Return the title of a requested table, as the public page has it."""
    name = entry_name(schema, entry)
    try:
        return title_of(schema, [*entry_term(schema, entry).items()], name)
    except ParameterError:  # the moments of several numbers are several tables
        return name


def _all(state: State, schema: Schema, wanted: list[Wanted]) -> None:
    with ui.card():
        head("All tables of a kind", 2)
        # a table with several numbers needs their products: the user must ask for it separately
        plain = [a.name for a in schema.attributes if not a.is_summed]
        numbers = [a.name for a in schema.attributes if a.is_summed]
        with ui.row():
            for k, count in ((1, "one column"), (2, "two columns"), (3, "three columns")):

                def add(k: int = k) -> None:
                    if math.comb(len(plain), k) > _MOST_TABLES:
                        raise ParameterError(f"expected at most {_MOST_TABLES} tables.")
                    sets = itertools.combinations(plain, k)
                    summed = itertools.product(itertools.combinations(plain, k - 1), numbers)
                    both = [*sets, *((*names, number) for names, number in summed)]
                    _more(state, wanted, [Wanted(names) for names in both])

                if k <= len(schema.names):
                    ui.button(f"All of {count}", on_click=handled(add)).props("outline")


def _one(state: State, schema: Schema, wanted: list[Wanted]) -> None:
    bases: dict[str, Any] = {}
    with ui.card():
        head("One table", 2)
        with more("Which tables do I need?"):
            ui.label(
                "Smaller tables follow from larger ones: sex by district also counts by sex; add "
                "them too if they matter most. For medians, take cumulative counts."
            )
        for attribute in schema.attributes:
            with ui.row().classes("items-center w-full"):
                box = ui.checkbox(attribute.heading).classes("col")
                if attribute.is_summed:
                    ui.label("count, sum and mean")
                    bases[attribute.name] = box, None
                    continue
                known = dict(_BASES)
                if not attribute.groups:
                    del known["hierarchy"]
                what = ui.select(known, value=None).props("dense")
                # names come from the file: written into markup, they could set other properties
                what.props["aria-label"] = f"Asked of {attribute.name}"
                bases[attribute.name] = box, what

        def add() -> None:
            ticked = {
                name: None if what is None else what.value
                for name, (box, what) in bases.items()
                if box.value
            }
            if not ticked:
                raise ParameterError("Tick at least one column.")
            asked = any(base is not None for base in ticked.values())
            _more(state, wanted, [Wanted(ticked if asked else tuple(ticked))])

        ui.button("Add this table", on_click=handled(add))


def _question(state: State, schema: Schema, wanted: list[Wanted]) -> None:
    with ui.card():
        head("A question in words", 2)
        text = ui.input("Question").classes("w-full")
        offered(text, examples(schema, tables_of(schema)))

        def add() -> None:
            _more(state, wanted, [Wanted(names_in(text.value or "", schema))])

        text.on("keydown.enter", handled(add))
        ui.button("Add its table", on_click=handled(add))
