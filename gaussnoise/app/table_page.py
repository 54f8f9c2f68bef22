"""The first page: the file, its columns, and who is protected."""

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nicegui import run, ui

from ..errors import GaussNoiseError, SchemaError
from ..tables import Attribute, Dialect, Schema
from ..tables.reading.declared import column_names
from ..tables.reading.files import is_csv
from ..tables.reading.frames import open_table
from ..tables.reading.office import is_office
from ..tables.reading.sniff import marks_fit, sniffed
from ..tables.schema.planned import load_plan
from .column_form import ColumnForm, public
from .columns import day_first, kind_of
from .described import described
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
from .reasons import codes_in, rare_in
from .schema_file import SchemaFile
from .state import State
from .wording import DIALECT, WRITTEN, in_words

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
        if schema is not None:
            _columns(state, schema, at)
            _left_out(state)
        _add(state, schema)
        if schema is not None:
            _protected(state, schema, at)
            _check(state, at)


def _file(state: State, schema: Schema | None) -> None:
    project = state.project
    names = project.tables()
    stated = load_plan(project.schema).get("table", []) if schema else []
    chosen = [os.path.relpath(path, project.folder) for path in stated]
    job = state.jobs.last
    job = job if job is not None and job.words[0] == "schema" else None
    with ui.card():
        head("The file", 2)
        if schema is not None and chosen:
            ui.label(_read(schema, chosen, job))
        if not names:
            ui.label(
                f"There is no table in {project.folder} yet: put a CSV, Parquet or Excel file "
                "there."
            )
            ui.button("Look again", on_click=lambda: go("/"))
            return
        if schema is None:
            _choice(state, None, names, [], job)
        else:
            part = ui.expansion("Another file, or how the file is written").classes("w-full")
            part.value = not chosen or bool(job and job.status)
            with part:
                _choice(state, schema, names, chosen, job)
        if job is not None:
            if job.status:
                outcome(job)
            _offer_columns(state, job)
        if schema is None or schema.is_draft:
            mine("This page shows values of your file: it is for you alone.")


def _read(schema: Schema, chosen: Sequence[str], job: Job | None) -> str:
    """Return a sentence on the chosen files, with what ``job`` found if it read them."""
    found = _READ.search(job.said) if job and job.words[-1:] == (*chosen,) else None
    said = []
    if found is not None:
        attributes, columns, rows = (int(number) for number in found.groups())
        said = [f"{rows:,} rows", f"{attributes} of its {columns} columns may be in tables"]
    if skip := schema.file.skip:
        said.append(f"the first {'line is' if skip == 1 else f'{skip} lines are'} skipped")
    return f"{', '.join(chosen)}{': ' * bool(said)}{'; '.join(said)}."


def _choice(
    state: State,
    schema: Schema | None,
    names: Sequence[str],
    chosen: Sequence[str],
    job: Job | None,
) -> None:
    """Draw the choice of the file, the fields on how it is written, and their buttons."""
    project = state.project
    own = {name: str(value) for name, value in schema.file.stated.items()} if schema else {}
    tried, typed_now = _tried(job)
    first = [name for name in (tried, *chosen[:1], *names[: not names[1:]]) if name in names]
    file = choice_of_file(project, first[0] if first else None, "File with one row for each record")
    marks: dict[str, ui.input] = {}
    about = f"{WRITTEN} (leave it empty: it is found from the file)"
    with ui.expansion(about, value=bool(typed_now)) if schema is None else ui.column() as part:
        part.classes("w-full")
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

    def changed() -> dict[str, str]:
        given = {name: mark.value or "" for name, mark in marks.items()}
        return {name: said for name, said in given.items() if said != own.get(name, "")}

    async def take() -> None:
        path = project.inside(file.value or "")
        if schema is not None and is_csv(path) and not is_office(str(path)):
            found = await run.io_bound(found_or_stated, path, schema, own, changed())
            if found is not None:  # None when the server stops
                project.state_file(found.stated)
        project.state(table=file.value)
        go("/")

    with ui.row():
        again = "Read the file again: confirmed columns stay" if schema else "Read the file"
        ui.button(again, on_click=handled(draft))
        if schema is None:
            return
        other = ui.button(on_click=handled(take)).props("outline")

    def look() -> None:
        is_other = [file.value] != [*chosen]
        other.text = "Only choose this file" if is_other else "Keep how the file is written"
        other.set_visibility(bool(file.value) and (is_other or bool(changed())))

    for field in (file, *marks.values()):
        field.on_value_change(look)
    look()


def found_or_stated(
    path: Path, schema: Schema, own: Mapping[str, str], changed: Mapping[str, str]
) -> Dialect:
    """Return the dialect with which a file is read: the stated marks if they give its columns.

    Args:
        path: the file.
        schema: the schema, whose columns the file should have.
        own: the marks that the schema states.
        changed: the marks that the user states now.
    """
    # an encoding that is wrong changes letters, and is seen in no name of a column
    kept = {name: said for name, said in own.items() if name != "encoding"}
    found = sniffed(path, _dialect({**kept, **changed}))
    if not marks_fit(str(path), found):  # the numbers would be read as others, or as texts
        kept = {name: said for name, said in kept.items() if name not in ("decimal", "thousands")}
        found = sniffed(path, _dialect({**kept, **changed}))
    if found.encoding != "utf-8" and "encoding" in own and "encoding" not in changed:
        found = replace(found, encoding=own["encoding"])
    with contextlib.suppress(GaussNoiseError):
        if {*schema.names} <= {*column_names(open_table(found.table(path)))}:
            return found
    # dates stay as stated: rows do not always distinguish day and month
    dates = {name: said for name, said in own.items() if name == "date_format"}
    return sniffed(path, _dialect({**dates, **changed}))


def _elsewhere(state: State, schema: Schema | None) -> None:
    """Draw a form to take columns from another schema file or published folder, if there is one."""
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
    """Return the file of a ``job`` that runs or has failed, and the fields that were typed."""
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


_READ = re.compile(r"^wrote [^:\n]*: (\d+) attributes? of (\d+) columns? and (\d+) rows?", re.M)


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
        if not schema.is_draft:
            ui.label("All columns are confirmed: nothing is published yet.")
        elif reasons:
            done = len(schema.names) - len(reasons)
            rare = " A rare value would tell readers that a person has it."
            with ui.element("div").classes("mine"):
                words(
                    f"{len(reasons)} of {len(schema.names)} columns wait for your answer. Would "
                    "all know what a line lists without your file, like the districts of a "
                    "town (*public knowledge*)? Then confirm it. Leave out columns that you do "
                    "not need." + rare * any(map(rare_in, reasons.values()))
                )
            ui.linear_progress(done / len(schema.names), show_value=False).props(
                'aria-label="Columns confirmed"'
            )
        else:  # a person removed all marks in an editor

            def confirm() -> None:
                state.project.change(SchemaFile.no_draft)
                go(_next(state))

            ui.button("Confirm all columns: nothing is published yet", on_click=handled(confirm))
        days = day_first if _DAY_FIRST.match(schema.file.date_format) else str
        places = [k for k, name in enumerate(schema.names) if name in reasons]
        later = [k for k in places if at is not None and k >= at] or places
        for k, attribute in enumerate(schema.attributes):
            is_next = at is not None and k == (later[0] if later else at)
            if is_next:
                scroll_here()
            _column(state, k, attribute, reasons.get(attribute.name, ""), days, is_next)


_DAY_FIRST = re.compile(r"d{1,2}\.M{1,2}\.yyyy")
_LEAVE = "Leave out"


def _column(
    state: State, k: int, attribute: Attribute, reason: str, days: Callable[[str], str], at: bool
) -> None:
    """Draw a column in a line, with its usual answers, and the fields that change it.

    The fields are open if the page is ``at`` this column and its line does not show all values.
    """
    name = attribute.name
    values, is_all = described(attribute, days)
    is_all = is_all and not codes_in(reason)[0]  # is it a number, or no answer?
    if rare := rare_in(reason):
        values += f"; in few rows: {rare}"
    caption = values if reason else f"{values} · public"

    def go_on(k: int) -> None:
        go(_next(state, k) if reason else f"/?at={k}")

    def save(own: Attribute, mark: str = "") -> None:
        state.project.change(lambda file: file.changed(own, mark))
        go(f"/?at={k}") if mark else go_on(k + 1)

    def leave_out() -> None:
        state.project.change(lambda file: file.without(attribute, "by hand"))
        go_on(k)

    def called(button: ui.button, heading: str) -> None:
        button.props["aria-label"] = f"{heading}: {name}"
        button.text = heading

    def answer(heading: str, click: Callable[[], object], look: str = "outline") -> ui.button:
        button = ui.button(on_click=handled(click)).props(look)
        called(button, heading)
        return button

    with ui.row().classes("w-full items-center"):
        is_open = at and bool(reason) and not is_all
        icon = "help" if reason else "check"
        part = ui.expansion(name, value=is_open, caption=caption, icon=icon)
        part.style("flex:1 1 20rem;min-width:0;overflow-wrap:anywhere")
        mark = ", read off the data" if reason else ""
        part.props["toggle-aria-label"] = f"{name}: {caption}{mark}"  # else it is the name alone
        if reason:
            with (
                ui.row()
                .classes("items-center")
                .bind_visibility_from(part, "value", lambda is_open: not is_open)
            ):
                # neither is the usual answer: a person decides
                if is_all:
                    answer(public(kind_of(attribute)), lambda: save(attribute))
                answer("Change", part.open)
                answer(_LEAVE, leave_out, "flat")
    with part:
        form = ColumnForm(attribute, reason, days)
        if reason:
            with more("Why is this proposed?"):
                ui.label(in_words(reason))
        with ui.row():
            if reason:
                own = answer("", lambda: save(form.confirmed(name)))
                later = answer("Save, and confirm later", lambda: save(form.read(name), reason))
                for button in (own, later):
                    button.bind_visibility_from(form.fields, "visible")

                def look() -> None:
                    called(own, f"Save: {public(form.kind.value).lower()}")

                form.kind.on_value_change(look)
                look()
            else:
                answer("Keep", lambda: save(form.read(name)))
            answer(_LEAVE, leave_out, "flat")


def _next(state: State, k: int = 0) -> str:
    """Return the address of the next step: a column (the ``k``-th or later), persons, or the check.

    If all columns are confirmed and the question about persons is answered, the check begins.
    """
    if Schema.load(state.project.schema).is_draft:
        return f"/?at={k}"
    if not {"person", "rows_per_person"} & load_plan(state.project.schema).keys():
        return f"/?at={_PERSONS}"
    _begin_check(state)
    return f"/?at={_RESULT}"


def _begin_check(state: State) -> None:
    """Begin the check of the rows if there is a file, and if no other task runs."""
    if "table" in load_plan(state.project.schema) and not state.jobs.is_busy:
        state.check()


def _left_out(state: State) -> None:
    file = state.project.read()
    left, named = file.left_out(), load_plan(state.project.schema).get("person")
    if not left:
        return
    with ui.card():
        head("Columns that are left out", 2)
        for name, reason in left.items():
            with ui.row().classes("items-center w-full"):
                said = "left out by you" if reason == "by hand" else in_words(reason)
                why = said if name != named else "names the person"
                ui.label(f"{name}: {why}").style("overflow-wrap:anywhere")

                def take(name: str = name, reason: str = reason) -> None:
                    own = file.instead(name)
                    if own is not None:
                        mark = f"It was left out: {reason}"
                        state.project.change(lambda now: now.with_attribute(own, mark))
                    go("/")

                def person(name: str = name) -> None:
                    state.project.state(person=name)
                    go(f"/?at={_PERSONS}")

                if "--person" in reason and name not in (named, _likely_person(left)):
                    ui.button(f"{name} names the person", on_click=handled(person)).props("flat")
                if file.instead(name) is not None:
                    ui.button(f"Make {name} a column", on_click=handled(take)).props("flat")
                elif name != named:
                    _added(state, f"Make {name} a column", name)


def _add(state: State, schema: Schema | None) -> None:
    without = "Or begin without a file: a plan needs no data at all. " if schema is None else ""
    with ui.card():
        _added(state, f"{without}Add a column")


def _added(state: State, heading: str, known: str = "") -> None:
    with ui.expansion(heading).classes("w-full"):
        name = ui.input("Name, as in the first line of the file", value=known).classes("w-full")
        form = ColumnForm()

        def add() -> None:
            own = form.read(name.value or "")
            state.project.change(lambda file: file.with_attribute(own))
            go("/")

        ui.button("Add", on_click=handled(add))


def _likely_person(left_out: Mapping[str, str]) -> str:
    """Return the first left-out column whose reason says that it names persons; "" without one."""
    return next((name for name, reason in left_out.items() if "--person" in reason), "")


def _protected(state: State, schema: Schema, at: int | None) -> None:
    stated = load_plan(state.project.schema)
    named, left = stated.get("person", ""), state.project.read().left_out()
    columns = dict.fromkeys([*schema.names, *left, *filter(None, [named])])
    with ui.card():
        if at == _PERSONS:
            scroll_here()
        head("Who is protected", 2)
        person = ui.select(
            {"": "no column: every row is a person"} | {name: name for name in columns},
            value=named or _likely_person(left),
            label="Column that names the person",
        ).classes("w-full")
        most_rows = stated.get("rows_per_person", 1)
        hides = stated.get("neighbors", "add-remove")
        kept = named, most_rows, hides
        rows = NumberField("Rows of one person, at most", most_rows, whole=True)
        rows.classes("w-full")
        with more("What is hidden of a person").set_value(hides != "add-remove"):
            relation = ui.radio(_HIDDEN, value=hides)
        meaning = ui.label().props('role="status"')

        def look() -> None:
            own, most = person.value or "", int(rows.number or 1)
            is_stated = bool({"person", "rows_per_person"} & stated.keys())
            is_kept = (own, most, relation.value) == kept
            said = "Kept. " * is_stated if is_kept else "Not kept yet. "
            meaning.text = said + consequence(own, most)
            button.text = f"Keep: {_person_text(own, most)}"
            button.set_visibility(not (is_stated and is_kept))

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
            if not Schema.load(state.project.schema).is_draft:
                _begin_check(state)
                go(f"/?at={_RESULT}")
            elif person.value in schema.names:
                go("/")
            else:
                kept = person.value or "", most, relation.value
                stated.update(load_plan(state.project.schema))
                look()
                note(f"Kept: {_person_text(*kept[:2])}.")

        button = ui.button(on_click=handled(keep))
        for field in (person, rows, relation):
            field.on_value_change(handled(look))
        look()


_HIDDEN = {
    "add-remove": "whether the person is in the data at all: the usual choice",
    "replace": "only what the person answered; how many there are is published exactly",
}


def _person_text(person: str, most: int) -> str:
    """Return a clause that says which rows belong to a person, and how many of them count."""
    if person:
        rows = f"; {most} rows of a person count" if most > 1 else ""
        return f"{person} names the person{rows}"
    return "every row is a person" if most == 1 else f"a person has at most {most} rows"


def consequence(person: str, most: int) -> str:
    """Return sentences on who is protected, for a column that names the person and a limit of rows.

    Args:
        person: the column that names the person; empty if every row counts as a person.
        most: the largest number of rows of a person.
    """
    noise = f" The noise is about {most} times that for one row." if most > 1 else ""
    if person:
        often, more_rows, drawn = (
            ("once", "several rows", "one of them is")
            if most == 1
            else (f"{most} times at most", f"more than {most} rows", f"{most} of them are")
        )
        return (
            f"Each person is protected as a whole and counts {often}: if {more_rows} have the same "
            f"{person!r}, {drawn} drawn at random.{noise}"
        )
    if most == 1:
        return (
            "Each row is protected as one person. A person who has several rows is protected less: "
            "then choose the column that names the person."
        )
    return (
        f"A person with at most {most} rows is protected as a whole, and one with more is "
        f"protected less: nothing counts the rows.{noise}"
    )


def _check(state: State, at: int | None) -> None:
    with ui.card():
        if at == _RESULT:
            scroll_here()
        head("Would all rows count?", 2)
        job = state.jobs.last
        if job is not None and job.words[0] == "check" and state.jobs.is_busy:
            ui.label("The rows are checked now.")
            return
        check_rows(state, f"/?at={_RESULT}")
        if job is not None and job.words[0] == "check" and job.status is not None:
            answer(job)
