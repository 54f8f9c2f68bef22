"""The fourth page: the charge, the release, and its results."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nicegui import ui

from ..errors import GaussNoiseError, ParameterError, SchemaError
from ..files.disk import save_text
from ..privacy.ledger import Ledger
from ..privacy.ledger_entries import spent_and_left
from ..tables import Plan
from ..tables.planning.facts import facts_of, guess_text
from ..tables.planning.noun import noun_of
from ..tables.release.formats import FORMATS
from ..tables.release.report.numbers import titles_of
from ..tables.schema.planned import load_options, load_plan
from ..text import and_text, capital, number_of
from .jobs import Job
from .keep import Wish, cells, commands, notebook, script
from .ledger_page import begin_ledger
from .parts import (
    TYPED,
    about_lines,
    answer,
    check_rows,
    first_lines,
    frame,
    go,
    handled,
    head,
    ledger_fields,
    mine,
    more,
    outcome,
    output,
    points,
    published_files,
    refusal,
    reminder,
)
from .project import RELEASES, SCRIPTS, check_name, free_name
from .state import State
from .wording import in_page

_LONG = 10.0  # seconds that a user should know of before a release
_KEPT = {"sh": "As commands", "py": "As a Python script", "ipynb": "As a notebook"}
_FIRST, _OTHERS = ("title", "publisher"), ("period", "source", "contact")  # lines for readers
_NAMED = 12  # most tables that are named above the button
_LONGEST = 100  # most characters of a title that is proposed
_BEGUN = {
    "written": "was drawn, and then interrupted: release it under this name with the same "
    "questions and budget to publish it; it is not charged again.",
    "reserved": "is being drawn by another program, or was interrupted before it was written. Then "
    "the charge is lost: under this name it is drawn, and charged, again.",
}


async def release_page(state: State) -> None:
    """Draw the page on which the user makes a release, with all earlier releases."""
    with frame(state, "/release", "Release: publish the tables"):
        _published(state)
        project = state.project
        try:
            project.check_confirmed("nothing can be released")
            if "table" not in load_plan(project.schema):
                return refusal("No file of rows is chosen.", "/")
            planned, ledger = await state.plan(), project.budget()
        except SchemaError as error:
            return refusal(str(error), "/")
        except GaussNoiseError as error:
            return refusal(str(error), "/budget")
        if ledger is None:
            begin_ledger(state, planned.rho, "/release")
        else:
            _release(state, planned, ledger)


def _release(state: State, planned: Plan, ledger: Ledger) -> None:
    """Draw notes, the check and the form; folded if a release was published just before."""
    project, job = state.project, state.jobs.last
    last = job if job is not None and job.words[0] == "release" else None
    if last is not None and state.jobs.is_busy:
        return  # the frame shows it, and this page is drawn again when it ends
    published = project.published()
    place = project.folder / RELEASES  # streams and their ticks are in another folder
    begun = {
        entry.id: entry.state
        for entry in ledger.entries()
        if entry.state in _BEGUN and Path(entry.target).is_relative_to(place)
    }
    checks = job is not None and job.words[0] == "check"
    fails = last is not None and bool(last.status)
    with _part(bool(published), is_open=bool(begun) or checks or fails):
        _notes(planned, ledger, begun)
        accepted = _check(state)
        if accepted is not None:
            known = {entry.id for entry in ledger.entries()} | set(published)
            _form(state, planned, ledger, known, next(iter(begun), ""), accepted)
    if last is not None and (last.status or last.warned):
        if last.status:
            outcome(last)
        else:
            mine(in_page(last.warned))
        ui.label("The page Ledger shows the charges.")


def _part(is_folded: bool, *, is_open: bool) -> ui.element:
    """Return the part of the page for a release; it can be folded where one is published."""
    if not is_folded:
        return ui.column().classes("w-full")
    part = more("One more release of these data")
    part.value = is_open
    return part


def _notes(planned: Plan, ledger: Ledger, begun: Mapping[str, str]) -> None:
    """Draw what to know before the check; ``begun`` has the states of interrupted releases."""
    names = without_unit(planned)
    notes = [f"{own} {_BEGUN[at]}" for own, at in begun.items()]
    if _is_refused(planned, ledger):
        notes.append(
            f"{charge_text(planned, ledger)} So it would be refused: the ledger cannot be changed. "
            + (
                "Choose a smaller budget on the page Budget."
                if 1000 * ledger.remaining > planned.rho_charged
                else "Nothing more can be released of these data; other data take another "
                "folder. What is published can be asked, at no cost, on the page Ask."
            )
        )
    if planned.seconds > _LONG:
        notes.append(f"It takes about {planned.seconds:.0f} s, besides counting the rows.")
    if names:
        notes.append(
            f"For readers, means and sums of {' and '.join(names)} have no unit such as EUR, "
            "since none is stated."
        )
    if notes:
        with ui.card():
            for text in notes:
                ui.label(text)
            if names:
                place = planned.schema.names.index(names[0])
                ui.link("State it on the page Table", f"/?at={place}")


def _is_refused(planned: Plan, ledger: Ledger) -> bool:
    return ledger.remaining < 0.999 * planned.rho_charged


def charge_text(planned: Plan, ledger: Ledger) -> str:
    """Return a sentence on the charge of a release and on the rest of its ledger."""
    rho = planned.rho_charged
    is_refused = _is_refused(planned, ledger)
    more = (0.0, 0) if is_refused else (rho, 1)
    _, left = spent_and_left(ledger.spent + more[0], ledger.charges + more[1], ledger.rho)
    if is_refused:
        return f"This release uses ρ = {rho:.6g}, more than the {left} that is left."
    return f"This release uses ρ = {rho:.6g} of {ledger.rho:.6g}; {left} is left afterwards."


def title_of(planned: Plan) -> str:
    """Return a title for the public page from a plan's columns; "" if they are too many."""
    used = {name for marginal in planned.marginals for name in marginal}
    own = [a for a in planned.schema.attributes if a.name in used]
    groups = [a.title or a.name for a in own if not a.is_summed]
    numbers = [a.title or a.name for a in own if a.is_summed]
    noun = noun_of(planned)
    parts = [f"{'counts' if noun == 'rows' else noun} by {and_text(groups)}"] * bool(groups)
    parts += [f"mean{'s' * (len(numbers) > 1)} of {and_text(numbers)}"] * bool(numbers)
    title = capital("; ".join(parts))
    return title if len(title) <= _LONGEST else ""


def without_unit(planned: Plan) -> list[str]:
    """Return the names of the summed numbers of a plan for which no unit of measurement is stated.

    A number that counts the rows of a person needs no unit.
    """
    used = {name for marginal in planned.marginals for name in marginal}
    return [
        a.name
        for a in planned.schema.attributes
        if a.name in used
        and a.is_summed
        and a.measured_in is None
        and planned.per_person.get(a.name) != "count"
    ]


def _form(
    state: State,
    planned: Plan,
    ledger: Ledger,
    known: set[str],
    begun: str,
    accepted: Callable[[], bool],
) -> None:
    """Draw the form for a release; ``begun`` names an interrupted release, or is ""."""
    project = state.project
    usual = Wish(free_name("release", known))._asdict()
    own = usual | load_options(project.schema, "release")
    proposed = begun or (own["id"] if own["id"] not in known else usual["id"])
    with ui.card():
        head("The release", 2)
        again = ui.checkbox(
            "Publish more of the same data: what it tells of a person adds to what is published "
            "already, and it is charged as well",
            value=not project.published(),
        )
        again.set_visibility(not again.value)
        ui.label("The public page begins with these lines; they may be empty.")
        keep_first = about_lines(project, _FIRST, title_of(planned))
        formats = list(dict.fromkeys([own["format"], *FORMATS]))
        with more("") as choice:
            keep_others = about_lines(project, _OTHERS)
            fields: dict[str, Any] = {
                "id": ui.input("Name of the release", value=proposed),
                "format": ui.select(formats, value=own["format"], label="Format of the tables"),
            }
            fields |= ledger_fields(own)
        fields["format"].classes("w-48")
        titles = titles_of(planned)
        ui.label(f"{number_of(len(titles), 'table')} will be released:")
        points([*titles[:_NAMED], *[f"and {len(titles) - _NAMED} more"] * (len(titles) > _NAMED)])
        ui.label(charge_text(planned, ledger))
        if (guess := guess_text(planned, facts_of(planned))) is not None:
            with more("How each person is protected"):
                ui.label(guess)
        ui.label(
            "Files are made in your folder alone; you publish them yourself. No release can be "
            "taken back."
        )
        button = ui.button("Release")

        def choices() -> dict[str, str]:
            return {what: str(field.value or "").strip() for what, field in fields.items()}

        def show() -> None:
            name, format = fields["id"].value, fields["format"].value
            choice.text = f"More: name {name}, format {format}, lines for readers"

        def keep() -> None:
            show()
            given = choices().items()
            project.state_release(**{x: None if own == usual[x] else own for x, own in given})

        show()
        for field in fields.values():
            field.props(TYPED).on_value_change(handled(keep))

        def start() -> None:
            if state.checked is None:
                return go("/release")  # the file, or the schema, was changed
            if not accepted():
                raise ParameterError("Read the warnings above, and say that you accept them.")
            if not again.value:
                raise ParameterError("Say above that you want to publish more of the same data.")
            keep_first()
            keep_others()
            keep()
            button.disable()
            wish = Wish(**choices())
            try:
                check_name("release", wish.id)
                parts = cells(project.folder, wish, ledger.rho)
                kept = {"sh": commands(wish, ledger.rho), "py": script(parts)}
                kept["ipynb"] = notebook(parts)
                for folder in (SCRIPTS, RELEASES):
                    project.inside(folder).mkdir(exist_ok=True)
                state.jobs.start(f"release of {wish.id}", *wish.words())
                for ending, text in kept.items():
                    path = project.inside(f"{SCRIPTS}/{wish.id}.{ending}")
                    path.unlink(missing_ok=True)
                    save_text(path, text)
            finally:
                button.enable()
            go("/release")

        button.on_click(handled(start))


def _check(state: State) -> Callable[[], bool] | None:
    """Draw the check of rows; return a function that says whether its warnings are accepted."""
    job, last = state.checked, state.jobs.last
    if job is not None and job.is_read and not refuses(job) and not warns(job):
        with ui.element("div").classes("mine"), more(f"For you alone: {first_lines(job)[0]}"):
            output(in_page(job.said))
            check_rows(state, "/release")
        return lambda: True
    with ui.card():
        head("Before the charge: would all rows count?", 2)
        mine("The answer is for you alone, and costs nothing.")
        if job is not None:
            (reminder if job.is_read and not refuses(job) else answer)(job)
        elif last is not None and last.words[0] == "check" and last.status and not last.said:
            outcome(last)
        if not state.jobs.is_busy:
            check_rows(state, "/release")
        if job is None:
            return None
        if not warns(job):
            return lambda: True
        box = ui.checkbox("I have read the warnings: the rows are to count so")
        return lambda: bool(box.value)


def warns(job: Job) -> bool:
    """Return whether the output of a finished check contains a warning."""
    return any(line.startswith("WARNING: ") for line in job.said.splitlines())


def refuses(job: Job) -> bool:
    """Return whether the output of a finished check says that a release refuses the table."""
    return "refuses the table" in in_page(job.said)  # the pages leave out rows that do not fit


def _published(state: State) -> None:
    names = state.project.published()
    if not names:
        return
    with ui.card():
        head("Released: the files are in your folder, and nothing was sent anywhere", 2)
        for name in reversed(names):
            folder = state.project.folder / RELEASES / name
            with ui.expansion(name, value=name == names[-1]).classes("w-full"):
                ui.label(f"All files of {RELEASES}/{name}, and its page, may be published.")
                with ui.row():
                    _link("The page", f"/page/{name}")
                    _link("Everything, for the web, as a zip", f"/zip/{name}")
                with more("Ask it, its files, other formats, and how to repeat it"):
                    with ui.row():
                        _link("Ask it", f"/ask?folder={RELEASES}/{name}")
                        for ending, what in _KEPT.items():
                            if (state.project.folder / SCRIPTS / f"{name}.{ending}").is_file():
                                _link(what, f"/keep/{name}.{ending}")
                    with ui.row():
                        ui.label("The same in any format, as a zip:")
                        for format in FORMATS:
                            _link(format, f"/zip/{name}/{format}")
                    published_files(folder, f"/files/{name}")


def _link(text: str, address: str) -> None:
    ui.link(text, address, new_tab=address.startswith("/page"))
