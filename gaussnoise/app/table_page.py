"""The first page: the file, its columns, and who is protected."""

import contextlib
import functools
import os
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from nicegui import run, ui

from ..errors import GaussNoiseError, SchemaError
from ..tables import Attribute, Dialect, Schema
from ..tables.reading.files import is_csv
from ..tables.reading.office import is_office
from ..tables.reading.sniff import sniffed
from ..tables.schema.dates import is_dated
from ..tables.schema.planned import load_plan
from .columns import (
    HELP,
    KINDS,
    NUMBERS,
    age_names,
    attribute_of,
    birth_dates,
    codes_in,
    ends_in,
    join,
    kind_of,
    proposed_names,
    typed,
    typed_names,
)
from .jobs import Job
from .number_field import NumberField
from .parts import (
    AT_CHECK,
    answer,
    check_rows,
    choice_of_file,
    frame,
    go,
    handled,
    head,
    mine,
    more,
    note,
    outcome,
    refusal,
    scroll_here,
    words,
)
from .schema_file import SchemaFile
from .state import State
from .wording import DIALECT, WRITTEN, in_words, written

_PERSONS, _RESULT = -1, AT_CHECK  # numbers of two cards of the page; others: a column's index


def table_page(state: State, at: int | None = None) -> None:
    """Draw the page of the table and its columns, and scroll to the card ``at`` if it is given.

    The number ``at`` is the index of a column, or one of two negative numbers for other cards.
    """
    with frame(state, "/", "Table: what the data may contain"):
        project = state.project
        schema = None
        try:
            schema = Schema.load(project.schema) if project.schema.exists() else None
        except GaussNoiseError as error:
            refusal(f"{error}\nMend the file schema.toml in an editor, then reload this page.")
            return
        _file(state, schema)
        _elsewhere(state, schema)
        if schema is None:
            words(
                "Or begin without a file: add the columns one by one. A plan needs no data at all."
            )
        else:
            _columns(state, schema, at)
            _left_out(state)
        _add(state)
        if schema is not None:
            _protected(state, schema, at)
            _check(state, at)


def _file(state: State, schema: Schema | None) -> None:
    project = state.project
    names = project.tables()
    stated = load_plan(project.schema).get("table", []) if schema else []
    chosen = [os.path.relpath(path, project.folder) for path in stated]
    with ui.card():
        head("The file", 2)
        own = schema.file.stated if schema else {}
        if chosen:
            said = f" ({written(own)})" if own else ""
            ui.label(f"Chosen: {', '.join(chosen)}{said}")
            if schema and schema.file.skipped:
                ui.label(f"{schema.file.skipped}.")
        job = state.jobs.last
        job = job if job is not None and job.words[0] == "schema" else None
        own = {name: str(value) for name, value in own.items()}
        tried, typed_now = _tried(job)
        if not names:
            ui.label(
                f"There is no table in {project.folder} yet: put a CSV, Parquet or Excel file "
                "there."
            )
            ui.button("Look again", on_click=lambda: go("/"))
            return
        first = [name for name in (tried, *chosen[:1], *names[: not names[1:]]) if name in names]
        start = first[0] if first else None
        file = choice_of_file(project, start, "File with one row for each record")
        marks: dict[str, ui.input] = {}
        about = f"{WRITTEN} (leave it empty: it is found from the file)"
        with ui.expansion(about, value=bool(typed_now)):
            for name, label in DIALECT.items():
                value = typed_now.get(name, "") if tried else own.get(name, "")
                marks[name] = ui.input(label, value=value).classes("w-full")

        def draft() -> None:
            if not file.value:
                raise SchemaError("Choose a file first.")
            if schema is not None and not schema.is_draft:
                raise SchemaError(
                    "The schema is confirmed, and a new draft would replace it. To begin again, "
                    "move schema.toml out of the folder."
                )
            project.inside(file.value)
            scratch = project.folder / f".{secrets.token_hex(6)}.toml"
            said = [x for n, m in marks.items() if m.value for x in _option(n, m.value)]
            state.jobs.start(
                f"reading {file.value}",
                *("schema", "-o", scratch.name, *said, "--", file.value),
                then=lambda job: project.replace_schema(scratch, file.value),
            )
            go("/")

        with ui.row():
            again = "Read the file again: confirmed columns stay" if schema else "Read the file"
            ui.button(again, on_click=handled(draft))
            if schema is not None:

                async def take() -> None:
                    if not file.value:
                        raise SchemaError("Choose a file first.")
                    path = project.inside(file.value)
                    given = {name: mark.value or "" for name, mark in marks.items()}
                    changed = {x: said for x, said in given.items() if said != own.get(x, "")}
                    # dates stay as stated: rows do not always distinguish day and month
                    known = {x: said for x, said in own.items() if x == "date_format"} | changed
                    if is_csv(path) and not is_office(str(path)):
                        found = await run.io_bound(sniffed, path, _dialect(known))
                        if found is not None:  # None when the server stops
                            project.state_file(found.stated)
                    project.state(table=file.value)
                    go("/")

                ui.button("Only choose this file", on_click=handled(take)).props("outline")
        if job is not None:
            if job.status:
                outcome(job)
            elif (said := _READ.search(job.said)) is not None:
                ui.label(f"Read: {said[1]}.")
            _offer_columns(state, job)
        mine("What is read off the file is as confidential as the file.")


def _elsewhere(state: State, schema: Schema | None) -> None:
    """Draw the choice of another folder whose columns are taken, if there is any below."""
    names = state.project.other_schemas()
    if not names:
        return
    with ui.card(), ui.expansion("The same columns as before", value=schema is None) as part:
        part.classes("w-full")
        words(
            "Take the columns of another schema file, or of a published folder, in place of those "
            "with the same names. What is confirmed there as *public knowledge* is confirmed here. "
            "Who is protected is not taken: say it below."
        )
        chosen = ui.select(names, label="Schema file or published folder").classes("w-full")

        def take() -> None:
            if not chosen.value:
                raise SchemaError("Choose a schema file or a published folder first.")
            state.project.take_columns(chosen.value)
            go("/")

        ui.button("Take these columns", on_click=handled(take)).props("outline")


def _tried(job: Job | None) -> tuple[str, dict[str, str]]:
    """Return the file that ``job`` reads or could not read, and the fields that were typed."""
    if job is None or job.status == 0:
        return "", {}
    options = job.words[3 : job.words.index("--")]
    names = (word.removeprefix("--").replace("-", "_") for word in options[::2])
    return job.words[-1], dict(zip(names, options[1::2], strict=True))


def _dialect(typed: Mapping[str, str]) -> Dialect:
    """Return the dialect that the fields state; empty ones state nothing."""
    known: dict[str, Any] = {x: {"tab": "\t"}.get(mark, mark) for x, mark in typed.items() if mark}
    if "skip" in known and known["skip"].strip().isdecimal():
        known["skip"] = int(known["skip"])
    return Dialect(**known)


_READ = re.compile(r"^wrote [^:\n]*: (.*)$", re.MULTILINE)


def _offer_columns(state: State, job: Job) -> None:
    """Draw a button that takes over the columns that ``job`` read from the file.

    The job was started by a server that was stopped before the job ended.
    """
    scratch = state.project.inside(job.words[2])
    if job.status == 0 and scratch.is_file():
        ui.label("The file was read while the server was stopped.")

        def take() -> None:
            state.project.replace_schema(scratch, job.words[-1])
            go("/")

        ui.button("Take its columns: confirmed columns stay", on_click=handled(take))


def _option(name: str, value: str) -> tuple[str, str]:
    return f"--{name.replace('_', '-')}", value


def _columns(state: State, schema: Schema, at: int | None) -> None:
    reasons = state.project.read().reasons() if schema.is_draft else {}
    with ui.card():
        head("Columns of the tables", 2)
        if schema.is_draft:
            done = len(schema.names) - len(reasons)
            if reasons:
                with ui.element("div").classes("mine"):
                    words(
                        f"{len(reasons)} of {len(schema.names)} columns are read off the data. "
                        "Open each: keep only *public knowledge*, add what does not occur in the "
                        "file, or leave the column out."
                    )
            ui.linear_progress(done / len(schema.names), show_value=False).props(
                'aria-label="Columns confirmed"'
            )
            if not reasons:

                def confirm() -> None:
                    state.project.change(SchemaFile.no_draft)
                    go(f"/?at={_RESULT}")

                ui.button(
                    "Confirm all columns: nothing is published yet", on_click=handled(confirm)
                )
        else:
            ui.label("All of them are confirmed as public knowledge: releases are possible.")
        places = [k for k, name in enumerate(schema.names) if name in reasons]
        later = [k for k in places if at is not None and k >= at] or places
        for k, attribute in enumerate(schema.attributes):
            is_next = at is not None and k == (later[0] if later else at)
            if is_next:
                scroll_here()
            _column(state, k, attribute, reasons.get(attribute.name), is_next and bool(later))


_ANSWERS = {"All of this is public knowledge": True, "Keep, and confirm later": False}


def _column(state: State, k: int, attribute: Attribute, reason: str | None, is_open: bool) -> None:
    name = attribute.name
    mark = "read off the data" if reason else "public"
    about = "a number"
    if not attribute.is_summed:
        many = "intervals" if attribute.edges is not None else "categories"
        about = f"{attribute.size} {many}"
    caption, icon = f"{about} · {mark}", "help" if reason else "check"
    part = ui.expansion(name, value=is_open, caption=caption, icon=icon).classes("w-full")
    part.props["toggle-aria-label"] = f"{name}: {caption}"  # else readers hear the name alone
    with part:
        if reason:
            with more("Why is this proposed?"):
                ui.label(in_words(reason))
            mine("A rare value here would tell readers that a person has it.")
        form = _form(attribute, ends_in(reason or ""), codes_in(reason or ""))

        def read() -> Attribute:
            return form(name, attribute)

        def save(confirmed: bool) -> None:
            own = read()
            said = "" if confirmed else reason or ""
            state.project.change(lambda file: file.with_attribute(own, said))
            go(f"/?at={k + confirmed}")

        def leave_out() -> None:
            state.project.change(lambda file: file.without(attribute, "by hand"))
            go(f"/?at={k}")

        with ui.row():
            if reason:
                # neither is the usual answer: a person decides
                for heading, confirmed in _ANSWERS.items():
                    ui.button(heading, on_click=handled(functools.partial(save, confirmed))).props(
                        "outline"
                    )
            else:
                ui.button("Keep", on_click=handled(lambda: save(True)))
            ui.button("Leave this column out", on_click=handled(leave_out)).props("flat")


def _form(
    attribute: Attribute | None, ends: str = "", proposed: tuple[str, str] = ("", "")
) -> Callable[[str, Attribute | None], Attribute]:
    """Draw the fields that describe a column, which are checked while the user types.

    Args:
        attribute: the attribute at the beginning; None for a new column.
        ends: the lowest and highest value that are proposed for sums and means, as text, or "".
        proposed: codes that are proposed for no answer, as text, and a catch-all for them; or "".

    Returns:
        A function that returns the described attribute, from the column's name and the attribute
        before the change.
    """
    start = "texts" if attribute is None else kind_of(attribute)
    kind = ui.select(KINDS, value=start, label="The column holds").classes("w-full")
    start_text = "" if attribute is None else typed(attribute)
    has_dates = attribute is not None and is_dated(attribute.edges)
    with ui.row().classes("items-center") as of_ages:
        ages = ui.input("Ages from", value="0, 18, 30, 45, 65, 80")
        day = ui.input("on the day", placeholder="31.12.2025")

        def by_age() -> None:
            text.value = birth_dates(ages.value or "", day.value or "")
            names.value = age_names(ages.value or "")
            title.value = f"age on {(day.value or '').strip()}"

        ui.button("Intervals of birth dates", on_click=handled(by_age)).props("outline")
    of_ages.bind_visibility_from(kind, "value", lambda now: now == "edges" and has_dates)
    title = ui.input("Title for readers, if another", value=(attribute and attribute.title) or "")
    title.set_visibility(bool(title.value) or has_dates)
    text = ui.textarea("Values", value=start_text)
    text.classes("w-full").props(f"rows={_rows(start_text)}")
    start_names = typed_names(attribute and attribute.names)
    names = ui.textarea("Names of the intervals, for readers", value=start_names)
    names.props('autogrow hint="one a line, in their order: under 18, then 18 to 39"')
    first_names = proposed_names(start_text)
    proposal = ui.button(on_click=handled(lambda: names.set_value(first_names)))
    proposal.props("outline no-caps")
    other = ui.input("Group for the rest (catch-all)")
    other.value = (attribute and attribute.other) or ""
    codes = ", ".join(map(str, attribute.missing)) if attribute else ""
    missing = ui.input("Codes for no answer", value=codes)
    missing.props('hint="with commas: 999, refused"')
    measured = ui.input("Unit of the number", value=(attribute and attribute.measured_in) or "")
    measured.props('hint="for readers of its means and sums, like EUR or days"')
    is_stated = bool(measured.value)
    measured.bind_visibility_from(
        kind, "value", lambda now: now in NUMBERS and (is_stated or now in ("clip", "unit"))
    )
    for field in (other, missing, measured, names, title):
        field.classes("w-full")

    def read(name: str, like: Attribute | None) -> Attribute:
        unit = (measured.value or "") if measured.visible else ""
        fields = (names, title)
        values, rest, codes, *said = (x.value or "" for x in (text, other, missing, *fields))
        return attribute_of(name, kind.value, values, rest, codes, like, unit, *said)

    def problem(about_names: bool, _: object) -> str | None:
        try:
            read(attribute.name if attribute else "column", attribute)
        except GaussNoiseError as error:
            said = str(error).partition(": ")[2] or str(error)
            is_here = said.startswith("names: ") == about_names
            return said.removeprefix("names: ") if is_here else None
        return None

    def look() -> None:
        text.props["hint"] = HELP[kind.value or start]
        text.update()
        text.validate()
        names.validate()

    with ui.row().classes("items-center") as near:
        pairs = ui.label()

        def rewrite() -> None:
            if found := join("column", text.value or "", attribute):
                text.value = found[0]

        ui.button("Join them", on_click=handled(rewrite)).props("outline")

    def show_near() -> None:
        found = None
        if kind.value == "texts":
            with contextlib.suppress(GaussNoiseError):  # shown beside the text
                found = join("column", text.value or "", attribute)
        near.set_visibility(found is not None)
        if found is not None:
            pairs.text = f"These differ in case or blanks only: {found[1]}."

    def show_names() -> None:
        nonlocal first_names
        found, before = proposed_names(text.value or ""), first_names
        first_names = found or before  # text that is half typed has no proposal
        if found and names.value and names.value == before:  # not typed by the user
            names.value = found
        first = "; ".join(found.split("\n")[:2])
        proposal.text = f"Names for whole numbers or days: {first} …"
        is_shown = kind.value == "edges"
        names.set_visibility(is_shown)
        proposal.set_visibility(is_shown and bool(found) and names.value != found)

    more_codes, rest = proposed
    if more_codes and not {*more_codes.split(", ")} <= {*codes.split(", ")}:

        def no_answer() -> None:
            missing.value = ", ".join(filter(None, [missing.value, more_codes]))
            other.value = other.value or rest
            of_codes.set_visibility(False)

        of_codes = ui.button(f"{more_codes} means: no answer", on_click=handled(no_answer))
        of_codes.props("outline")
    if ends:

        def sum_up() -> None:
            kind.value, text.value = "clip", ends
            of_ends.set_visibility(False)

        said = f"For sums and means: a number from {ends.replace(', ', ' to ')}"
        of_ends = ui.button(said, on_click=handled(sum_up)).props("outline")
    text.props["hint"] = HELP[start]
    text.validation = functools.partial(problem, False)
    names.validation = functools.partial(problem, True)
    for field in (kind, other, missing, measured):
        field.on_value_change(look)
    text.on_value_change(names.validate)
    for field in (kind, text):
        field.on_value_change(show_near)
    for field in (kind, text, names):
        field.on_value_change(show_names)
    show_near()
    show_names()
    return read


def _rows(text: str) -> int:
    """Return the height of a text field in lines: as many as the text has, between 2 and 12."""
    return min(max(text.count("\n") + 1, 2), 12)


def _left_out(state: State) -> None:
    file = state.project.read()
    left, named = file.left_out(), load_plan(state.project.schema).get("person")
    if not left:
        return
    with ui.card():
        head("Columns that are left out", 2)
        for name, reason in left.items():
            with ui.row().classes("items-center w-full"):
                why = in_words(reason) if name != named else "names the person"
                ui.label(f"{name}: {why}").style("overflow-wrap:anywhere")

                def take(name: str = name, reason: str = reason) -> None:
                    own = file.instead(name)
                    if own is not None:
                        state.project.change(lambda now: now.with_attribute(own, f"was {reason}"))
                    go("/")

                def person(name: str = name) -> None:
                    state.project.state(person=name)
                    go(f"/?at={_PERSONS}")

                if "--person" in reason and name != named:
                    ui.button(f"{name} names the person", on_click=handled(person)).props("flat")
                if file.instead(name) is not None:
                    ui.button(f"Make {name} a column", on_click=handled(take)).props("flat")
                elif name != named:
                    _added(state, f"Make {name} a column", name)


def _add(state: State) -> None:
    with ui.card():
        _added(state, "Add a column")


def _added(state: State, heading: str, known: str = "") -> None:
    with ui.expansion(heading).classes("w-full"):
        name = ui.input("Name, as in the first line of the file", value=known).classes("w-full")
        form = _form(None)

        def add() -> None:
            own = form(name.value or "", None)
            state.project.change(lambda file: file.with_attribute(own))
            go("/")

        ui.button("Add", on_click=handled(add))


def _protected(state: State, schema: Schema, at: int | None) -> None:
    stated = load_plan(state.project.schema)
    named, left = stated.get("person", ""), state.project.read().left_out()
    columns = dict.fromkeys([*schema.names, *left, *filter(None, [named])])
    likely = next((name for name, reason in left.items() if "--person" in reason), "")
    with ui.card():
        if at == _PERSONS:
            scroll_here()
        head("Who is protected", 2)
        person = ui.select(
            {"": "no column: every row is a person"} | {name: name for name in columns},
            value=named or likely,
            label="Column that names the person",
        ).classes("w-full")
        most_rows = stated.get("rows_per_person", 1)
        kept = named, most_rows
        rows = NumberField("Rows of one person, at most", most_rows, whole=True)
        rows.classes("w-full")
        rows.props('hint="Check the rows, below, says how many others would be left out"')
        hides = stated.get("neighbors", "add-remove")
        with more("What is hidden of a person").set_value(hides != "add-remove"):
            relation = ui.radio(_HIDDEN, value=hides)
        meaning = ui.label().props('role="status"')

        def look() -> None:
            own, most = person.value or "", int(rows.number or 1)
            meaning.text = "Not kept yet. " * ((own, most) != kept) + consequence(own, most)
            button.text = f"Keep: {_person_text(own, most)}"

        def keep() -> None:
            nonlocal kept
            most = int(rows.number or 0)
            if not most:
                raise SchemaError(
                    "Rows of one person, at most: expected a whole number, 1 or more."
                )
            if person.value in schema.names:  # a column of person ids cannot be in tables
                own = schema.attributes[schema.names.index(person.value)]
                state.project.change(lambda file: file.without(own, "it names the person"))
            state.project.state(
                neighbors=None if relation.value == "add-remove" else relation.value,
                person=person.value or None,
                rows_per_person=most if most != 1 or person.value else None,
            )
            if person.value in schema.names:
                go("/")
            else:
                kept = person.value or "", most
                look()
                note(f"Kept: {_person_text(*kept)}.")

        button = ui.button(on_click=handled(keep))
        for field in (person, rows):
            field.on_value_change(handled(look))
        look()


_HIDDEN = {
    "add-remove": "whether the person is in the data at all: the usual choice",
    "replace": "only what the person answered; how many there are is published exactly",
}


def _person_text(person: str, most: int) -> str:
    """Return a clause that says which rows belong to a person, and how many of them count."""
    if person:
        rows = "1 row of a person counts" if most == 1 else f"{most} rows of a person count"
        return f"{person} names the person; {rows}"
    return "every row is a person" if most == 1 else f"a person has at most {most} rows"


def consequence(person: str, most: int) -> str:
    """Return sentences on who is protected, for a column that names the person and a limit of rows.

    Args:
        person: the column that names the person; empty if every row counts as a person.
        most: the largest number of rows of a person.
    """
    noise = f" The noise is about {most} times that for one row." if most > 1 else ""
    if person:
        other = "one is" if most == 1 else f"{most} are"
        return (
            f"Protected is a person: all rows of one value of {person!r}. Of more than {most}, "
            f"{other} drawn at random, and the others are in no table.{noise}"
        )
    if most == 1:
        return (
            "Protected is one row. A person who has several rows in the file is protected less: "
            "then choose the column that names the person."
        )
    return (
        f"Protected is a person with at most {most} rows in the file, and one with more is "
        f"protected less: nothing counts the rows.{noise}"
    )


def _check(state: State, at: int | None) -> None:
    with ui.card():
        if at == _RESULT and not state.jobs.is_busy:
            scroll_here()
        head("Would all rows count?", 2)
        mine("The answer is for you alone: it has exact counts and values.")
        check_rows(state, f"/?at={_RESULT}")
        job = state.jobs.last
        if job is not None and job.words[0] == "check" and job.status is not None:
            answer(job)
