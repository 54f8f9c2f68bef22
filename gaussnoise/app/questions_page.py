"""The second page: which tables and questions are answered, and how accurately."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from nicegui import ui

from ..errors import GaussNoiseError, ParameterError
from ..tables import Attribute, Schema
from ..tables.release.report.numbers import title_of
from ..tables.release.suggestion import examples
from ..tables.schema.entries import Entry, entry_name, entry_term
from ..tables.schema.workload import Wanted, load_workload
from .asked import names_in, same_table, tables_of, workload_toml
from .number_field import NumberField
from .parts import frame, go, handled, head, more, offered, refusal, words
from .project import NO_COLUMNS
from .state import State

_BASES = {
    None: "counts",
    "prefix": "counts up to each category, for medians",
    "ranges": "counts of all neighbouring categories together",
    "hierarchy": "counts of all its groups",
}
_MOST_TABLES = 1000  # largest number of tables that one click may ask for


def questions_page(state: State) -> None:
    """Draw the page on which the user chooses tables, questions and their accuracy."""
    with frame(state, "/questions", "Questions: which tables are published"):
        try:
            schema, wanted = Schema.load(state.project.schema), load_workload(state.project.schema)
        except GaussNoiseError as error:
            is_there = state.project.schema.exists()
            return refusal(str(error) if is_there else NO_COLUMNS, "/")
        _listed(state, schema, wanted)
        _one(state, schema, wanted)
        _all(state, schema, wanted)
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
        names = [_title(schema, one.entry) for one in wanted]
        for k, name in enumerate(names):
            with ui.row().classes("items-center w-full no-wrap"):
                ui.label(name).classes("col")

                def leave(k: int = k) -> None:
                    _keep(state, [*wanted[:k], *wanted[k + 1 :]])

                ui.button(icon="close", on_click=handled(leave)).props(
                    f'flat round dense aria-label="Leave out table {k + 1}"'
                )
        if len(wanted) > 1:
            leave_all = handled(lambda: _keep(state, []))
            ui.button("Leave out all", on_click=leave_all).props("flat dense")
        _targets(state, names, wanted)


def _targets(state: State, names: Sequence[str], wanted: list[Wanted]) -> None:
    """Draw a field for the accuracy target of each table, whose titles are ``names``."""
    with more("Accuracy targets (rarely needed)") as part:
        part.value = any(one.within is not None for one in wanted)
        words("The *target* of a table: 95 of 100 of its numbers are off by no more.")
        for k, (name, one) in enumerate(zip(names, wanted, strict=True)):
            with ui.row().classes("items-center w-full no-wrap"):
                ui.label(name).classes("col")
                goal = NumberField("within ± rows", one.within).classes("w-32")
                goal.props(f'aria-label="Target for {k + 1}"')

                def aim(k: int = k, goal: NumberField = goal) -> None:
                    aimed = replace(wanted[k], within=goal.number or None)
                    _keep(state, [*wanted[:k], aimed, *wanted[k + 1 :]])

                goal.on("change", handled(aim))


def _title(schema: Schema, entry: Entry) -> str:
    """Return the title of a requested table, as the public page has it."""
    name = entry_name(schema, entry)
    try:
        return title_of(schema, [*entry_term(schema, entry).items()], name)
    except ParameterError:  # the moments of several numbers are several tables
        return name


def _all(state: State, schema: Schema, wanted: list[Wanted]) -> None:
    with more("All tables at once"):
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
    with ui.card():
        head("Tick the columns of one table", 2)
        with more("Which tables do I need?"):
            ui.label(
                "A larger table has smaller ones in it: sex by district also counts by sex. Add "
                "those too if they matter most. A number has its mean, sum and count."
            )
        with ui.column().classes("gap-0"):
            boxes = {a.name: ui.checkbox(named(a)) for a in schema.attributes}
        with more("Medians, runs, groups"):
            bases = {a.name: _base(a) for a in schema.attributes if not a.is_summed}

        def show() -> None:
            names = tuple(name for name, box in boxes.items() if box.value)
            new.text = f"One table: {_title(schema, names)}" if names else ""

        def add() -> None:
            ticked = {
                name: bases[name].value if name in bases else None
                for name, box in boxes.items()
                if box.value
            }
            if not ticked:
                raise ParameterError("Tick at least one column.")
            asked = any(base is not None for base in ticked.values())
            _more(state, wanted, [Wanted(ticked if asked else tuple(ticked))])

        new = ui.label().props('role="status"')
        for box in boxes.values():
            box.on_value_change(handled(show))
        ui.button("Add this table", on_click=handled(add))


def named(attribute: Attribute) -> str:
    """Return the title of a column with its name, or its name alone."""
    name, title = attribute.name, attribute.title
    said = name if title is None or name.startswith(title) else f"{title} ({name})"
    return said + ": mean" * attribute.is_summed


def _base(attribute: Attribute) -> ui.select:
    """Draw the choice of the answers to a column: counts, or others."""
    known = dict(_BASES)
    if not attribute.groups:
        del known["hierarchy"]
    with ui.row().classes("items-center w-full"):
        ui.label(named(attribute)).classes("col")
        what = ui.select(known, value=None).props("dense")
    # names come from the file: written into markup, they could set other properties
    what.props["aria-label"] = f"Asked of {attribute.name}"
    return what


def _question(state: State, schema: Schema, wanted: list[Wanted]) -> None:
    with more("Or ask in words"):
        text = ui.input("Question").classes("w-full")
        offered(text, examples(schema, tables_of(schema)))

        def add() -> None:
            _more(state, wanted, [Wanted(names_in(text.value or "", schema))])

        text.on("keydown.enter", handled(add))
        ui.button("Add its table", on_click=handled(add))
