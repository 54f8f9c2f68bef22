"""Parts of all pages: the frame, terms with their meaning, error messages, the running task.

A refusal is an error message that says why a request is not carried out. A task is a job.
"""

import functools
import html
import inspect
import re
import shlex
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nicegui import app, ui

from ..errors import GaussNoiseError
from ..layout import fitted
from ..privacy.ledger_results import NOT_SAID
from ..tables import Schema
from .jobs import Job
from .project import Project
from .state import State
from .wording import in_page

PAGES = {
    "/": "1 Table",
    "/questions": "2 Questions",
    "/budget": "3 Budget",
    "/release": "4 Release",
    "/streams": "Streams",
    "/ledger": "Ledger",
    "/ask": "Ask",
}
_NAMES = {address: name.lstrip("1234 ") for address, name in PAGES.items()}
_NEXT = {"/": "/questions", "/questions": "/budget", "/budget": "/release"}
# the pages that show a task's result; for other tasks, the first page
_HOMES = {
    "release": ("/release",),
    "stream": ("/streams",),
    "verify": ("/ask",),
    "check": ("/", "/release"),
}
_CHARGED = ("release",), ("stream", "start")  # tasks that have a charge of their own in the ledger
_SOON = 5.0  # seconds in which a charged task may end: a warning of its loss would only flash up
WORDS = {
    "public knowledge": "Known to all without the data: from a questionnaire, a code book, a law. "
    "A list that was found in the data is public only if it is also known in such a way.",
    "budget": "How much a release may reveal about one person, as the number ρ (rho). Budgets of "
    "all releases of the same data add up. Four times the ρ, half the noise.",
    "ledger": "A file that keeps the budget of one data set. A release is charged before its noise "
    "is drawn, and never beyond the budget.",
    "tick": "One time at which new rows come in: a week, a month. Ticks are numbered from 1 on.",
    "target": "The most by which a table's numbers may be off, in rows, at 95 %. Without a budget, "
    "the plan takes the smallest one that meets all targets.",
    "unbiased": "On average over the noise, a released number is the exact one. Single numbers may "
    "be negative or not whole.",
}
_LINES = {
    "title": "Title, like Census of Grünau",
    "period": "Date or period of the data, like 2026",
    "source": "Source, like Register of residents",
    "publisher": "Publisher, like Town of Grünau",
    "contact": "Contact, like statistics@gruenau.example",
}
TYPED = 'debounce="300"'  # milliseconds after a key until a change is kept
AT_CHECK = -2  # the card of the page Table that checks rows
CHECK = "check"  # the place on the page Streams that checks the rows of a tick
_ROWS = 20  # most rows of a table that are shown at once
_ROW = re.compile(r"\S {2,}\S.* {2,}\S")  # three columns; two are a name and a sentence
# in a check of rows: its number of rows and its warnings, and what begins a list of values
_FIRST = re.compile(r"^(?:All [\d,]+ rows count|[\d,]+ (?:of|rows?)\b|WARNING: ).*", re.MULTILINE)
_LISTS = re.compile(r"^counted (?:as|in) .*:$", re.MULTILINE)
# parts open at once: a slow opening moves the buttons below away from a click
ui.expansion.default_props(":duration=0")
# in the page until the browser has drawn it; on a slow machine, it would be white meanwhile
_WAIT = '<p class="wait">One moment …</p>'
_STYLE = """
.wait{padding:2rem;font-family:sans-serif;color:#767676}
body:has(#app:not(:empty)) .wait{display:none}
abbr[title]{text-decoration:underline dotted;cursor:help}
.page{width:100%;max-width:64rem;margin:0 auto;padding:1rem;gap:1rem}
nav a{color:inherit;padding:.35rem .6rem;border-radius:.3rem;text-decoration:none}
nav a[aria-current]{background:rgba(255,255,255,.15);font-weight:600}
:focus-visible{outline:3px solid #e8a200;outline-offset:2px}
.refused{border-left:.4rem solid #c62828;padding:.5rem .8rem;white-space:pre-wrap;
  overflow-wrap:anywhere}
.noted{border-left:.4rem solid #2e7d32;padding:.5rem .8rem}
.said{flex-basis:100%}
.place{position:absolute}
.place,.said{scroll-margin-top:5rem}
.mine{border-left:.4rem solid #b26a00;padding:.4rem .8rem}
pre.out{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem;margin:0;max-height:60rem;
  overflow:auto}
div:has(>pre.out){width:100%}
pre.out span{display:block;min-height:1lh}
pre.out .row{white-space:pre;overflow-wrap:normal}
.q-field__bottom--animated{position:static;transform:none}
.q-field--with-bottom{padding-bottom:0}
.q-card{width:100%}
.wide{width:100%;overflow-x:auto}
.wide .q-table__container{min-width:48rem}
a.nicegui-link{color:#1b5a8c}
.body--dark a{color:#8ec5f0!important}
.body--dark .q-btn--outline,.body--dark .q-btn--flat{--q-primary:#8ec5f0}
.body--dark .q-field{--q-negative:#ff8a80}
.q-btn{text-transform:none}
figure{margin:0}
figure svg{display:block;width:100%;max-width:29rem;overflow:visible}
figure svg text{font-family:inherit!important}
.body--dark figure svg{filter:invert(1) hue-rotate(180deg)}
.body--dark nav a{color:inherit!important}
h1{font-size:1.4rem;font-weight:600;margin:0}
h2{font-size:1.1rem;font-weight:600;margin:0}
h1,h2{line-height:1.4}
"""


@contextmanager
def frame(state: State, page: str, heading: str) -> Iterator[None]:
    """Draw links to all pages, the heading and the running task; the block draws the rest."""
    ui.colors(primary="#1b5a8c")
    ui.add_css(_STYLE)
    ui.add_body_html(_WAIT)
    with ui.header().classes("q-pa-sm"):
        with ui.element("nav").props('aria-label="Steps"').classes("row items-center"):
            for address, name in PAGES.items():
                link = ui.element("a").props(f'href="{address}"')
                link.props('aria-current="page"') if address == page else None
                with link:
                    ui.label(name)
    with ui.column().classes("page"):
        head(heading)
        task(state, page)
        yield
        if page in _NEXT:
            ui.link("Go on to the next page", _NEXT[page])


def more(title: str) -> ui.expansion:
    """Return a part of the page that a click opens, for texts that few users need."""
    return ui.expansion(title).props("dense").classes("w-full")


def head(text: str, level: int = 1) -> None:
    """Draw a heading; ``level`` 1 is the title of a page, and 2 that of a card."""
    ui.html(f"<h{level}>{html.escape(text)}</h{level}>", sanitize=False)


def words(text: str) -> None:
    """Draw a sentence; a term between stars shows its meaning when the mouse is on the term."""
    parts = html.escape(text).split("*")
    for k in range(1, len(parts), 2):
        meaning = html.escape(WORDS[parts[k]], quote=True)
        parts[k] = f'<abbr title="{meaning}" tabindex="0">{parts[k]}</abbr>'
    ui.html("<div>" + "".join(parts) + "</div>", sanitize=False)


def each(unit: str) -> str:
    """Return the protected unit with "each" in place of "one": "each row" for "one row"."""
    return unit.replace("one ", "each ", 1)


def refusal(text: str, page: str = "") -> None:
    """Draw an error message, and a link to the page on which the user can remove the cause."""
    with ui.element("div").classes("refused").props('role="alert"'):
        _refused(text, page)


def _refused(said: str, page: str = "") -> None:
    """Draw the error message ``said``, and a link to the page that it names, else to ``page``."""
    text = in_page(said)
    named = [address for address, name in _NAMES.items() if text.endswith(f"on the page {name}")]
    ui.label(text.removesuffix(f"; mend it on the page {_NAMES[named[0]]}") if named else text)
    for address in named or [page] * bool(page):
        ui.link(f"Mend it on the page {_NAMES[address]}", address)


def mine(text: str) -> None:
    """Draw a box with a warning, for example that something is confidential."""
    with ui.element("div").classes("mine"):
        ui.label(text)


def note(text: str, kind: str = "noted") -> None:
    """Draw a message, the result of a click; it replaces the last such message on the page."""
    _remove_message()
    with ui.element("div").classes(f"{kind} said") as said:
        said.props(f'role="{"alert" if kind == "refused" else "status"}"')
        _refused(text)
    said.run_method("scrollIntoView", {"block": "nearest"})
    app.storage.client["said"] = said


def _remove_message() -> None:
    said = app.storage.client.pop("said", None)
    if said is not None and not said.is_deleted:
        said.delete()


def handled(handler: Callable[..., Any]) -> Callable[..., Awaitable[None]]:
    """Return an event handler that calls ``handler`` and draws its errors on the page.

    A GaussNoiseError is drawn with its message, any other error with its class alone.
    """

    @functools.wraps(handler)
    async def run(*given: Any) -> None:
        _remove_message()
        try:
            result = handler(*given)
            if inspect.isawaitable(result):
                await result
        except GaussNoiseError as error:
            note(str(error), "refused")
        except Exception as error:  # noqa: BLE001 (its message may hold data)
            note(f"internal error: {type(error).__name__}", "refused")

    # the framework passes as many arguments as the handler's signature has
    run.__signature__ = inspect.signature(handler)  # pyright: ignore[reportAttributeAccessIssue]
    return run


def choice_of_file(project: Project, value: str | None, label: str) -> ui.select:
    """Draw the choice of a file of the project, whose list is new each time it is opened."""
    file = ui.select(project.tables(), value=value, label=label).classes("w-full")

    def look() -> None:
        names = project.tables()
        file.set_options(names, value=file.value if file.value in names else None)

    file.on("popup-show", look)
    return file


def go(page: str) -> None:
    """Open a page in the browser; if it is open already, load it again."""
    ui.navigate.to(page)


def task(state: State, page: str) -> None:
    """Draw the running task, with its time and a button that cancels it.

    When the task ends, the page that shows its result is loaded again. Other pages are not loaded
    again, because their fields would lose their texts. They show a link to the result.
    """
    job = state.jobs.last
    if job is None or not state.jobs.is_busy:
        return
    with ui.card().props('role="status"') as card:
        line = ui.label()
        ui.linear_progress(show_value=False).props('indeterminate aria-label="Task"')
        # a cancelled task may be charged already, since noise is drawn after the charge
        lost = "; budget that was used is lost" if is_charged(job) else ""
        cancel = ui.button(f"Cancel{lost}", on_click=handled(state.jobs.cancel)).props("outline")
        cancel.set_visibility(can_cancel(job, time.time()))

    def look() -> None:
        if not state.jobs.is_busy:
            timer.cancel()
            homes = _HOMES.get(job.words[0], ("/",))
            if page in homes:
                ui.navigate.reload()
            else:
                card.clear()
                with card:
                    ui.link(f"{job.name} has ended: its result", homes[0])
            return
        now = time.time()
        line.text = f"{job.name}: {now - job.begun:.0f} s"
        cancel.set_visibility(can_cancel(job, now))

    timer = ui.timer(0.5, look)


def is_charged(job: Job) -> bool:
    """Return whether a task has a charge of its own in the ledger."""
    return any(job.words[: len(one)] == one for one in _CHARGED)


def can_cancel(job: Job, now: float) -> bool:
    """Return whether the button that cancels a running task is shown at the time ``now``."""
    return not is_charged(job) or now - job.begun > _SOON


def answer(job: Job) -> None:
    """Draw the output of a finished check of rows, also if some rows do not fit."""
    ui.label(f"{job.name}:")
    if not job.said:
        return outcome(job)
    job.is_read = True
    first, others = without_lists(in_page(job.said))
    output(first)
    if others:
        with more("Values that count as the rest, or as the nearer end"):
            output(others)


def reminder(job: Job) -> None:
    """Draw the first line and the warnings of a finished check of rows; the rest is folded."""
    ui.label(f"{job.name}:")
    output("\n".join(first_lines(job)))
    with more("All that it says"):
        output(in_page(job.said))


def first_lines(job: Job) -> list[str]:
    """Return the first line of a finished check of rows, with its warnings."""
    said = in_page(job.said)
    return _FIRST.findall(said) or said.splitlines()


def without_lists(said: str) -> tuple[str, str]:
    """Return a check's output up to its lists of values that count elsewhere, and these lists."""
    lists = _LISTS.search(said)
    return (said, "") if lists is None else (said[: lists.start()], said[lists.start() :])


def outcome(job: Job) -> None:
    """Draw the output of a finished task: its error message, or its warnings and its result."""
    if job.status:
        if NOT_SAID in job.warned:
            return _refused_rows(job)
        return refusal(job.warned.strip() or "The task was stopped before its end.")
    if job.warned:
        mine(in_page(job.warned))
    output(job.said)


def _refused_rows(job: Job) -> None:
    """Draw the message that some rows do not fit, with a link to the check that shows them."""
    # the message itself does not say which rows, because the ledger keeps it
    tick = job.words[0] == "stream"
    with ui.element("div").classes("refused").props('role="alert"'):
        ui.label(
            "The file has rows that do not fit, so nothing was published, and nothing more was "
            "charged. Which rows, and why, is not said here, because the ledger keeps this refusal."
        )
        name = "Check the rows: for you alone"
        ui.link(name, f"#{CHECK}" if tick else f"/?at={AT_CHECK}")


def check_rows(state: State, page: str) -> None:
    """Draw a button that starts the check of the rows for a release, and opens ``page`` again.

    The name of the button says whether the present file and schema were checked before.
    """

    def check() -> None:
        state.check()
        go(page)

    name = "Check the rows" if state.checked is None else "Check again"
    ui.button(name, on_click=handled(check)).props("outline")


def offered(field: ui.input, questions: Sequence[str]) -> None:
    """Draw a button for each example question, which puts the question into the text field."""
    with ui.row().classes("items-center"):
        ui.label("For example:")
        for one in questions:

            def fill(one: str = one) -> None:
                field.value = one

            ui.button(one, on_click=handled(fill)).props("flat dense no-caps")


def about_lines(
    project: Project, names: Sequence[str] = (*_LINES,), title: str = ""
) -> Callable[[], None]:
    """Draw a field for each line of ``[about]`` in the schema file.

    Public pages begin with these lines. Each field is saved while the user types. ``title`` is
    proposed if no title is stated. The returned function saves all fields, including the last typed
    letters and the proposed title.
    """
    stated = {"title": title} | {**Schema.load(project.schema).about.stated}
    fields = {
        name: ui.input(_LINES[name], value=stated.get(name, "")).classes("w-full").props(TYPED)
        for name in names
    }

    def keep(names: Iterable[str] = (*fields,)) -> None:
        project.state_about(**{name: fields[name].value or "" for name in names})

    for name, field in fields.items():
        field.on_value_change(handled(functools.partial(keep, [name])))
    return keep


def ledger_fields(own: Mapping[str, Any]) -> dict[str, ui.input]:
    """Draw the fields for what the ledger notes of a release, filled with the plan's ``own``."""
    fields = {
        "purpose": ui.input("Purpose, for the ledger (may be empty)", value=own["purpose"]),
        "requested_by": ui.input("Requested by (may be empty)", value=own["requested_by"]),
    }
    for field in fields.values():
        field.classes("w-full")
    return fields


def paged(rows: Sequence[object]) -> int | None:
    """Return how many rows of a table a page of it shows; None for a short table without pages."""
    return _ROWS if len(rows) > _ROWS else None


def scroll_here() -> None:
    """Let the browser scroll to this point of the page once the page is loaded."""
    place = ui.element("div").classes("place")
    ui.timer(0, functools.partial(place.run_method, "scrollIntoView"), once=True)


def output(text: str) -> ui.html:
    """Draw the output of a command, as a terminal would show it, and return the element."""
    return ui.html(lines(text), sanitize=False)


def lines(text: str) -> str:
    """Return HTML that shows text as a terminal does; lines of tables are not wrapped."""
    shown = (
        f"<span{' class=row' * bool(_ROW.search(line))}>{html.escape(line)}</span>"
        for line in text.strip().splitlines()
    )
    return f'<pre class="out" tabindex="0">{"".join(shown)}</pre>'


def published_files(folder: Path, address: str) -> None:
    """Draw the summary of a published folder, and links to its files.

    The server serves these files under the address ``address``.
    """
    try:
        summary = fitted((folder / "summary.txt").read_text(encoding="utf-8"))
        with more("Its summary, with budget and accuracy"):
            output(summary)
    except (OSError, UnicodeDecodeError) as error:
        refusal(f"summary.txt cannot be read ({type(error).__name__}).")
    with ui.expansion("Its files").classes("w-full"):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                own = path.relative_to(folder).as_posix()
                ui.link(own, f"{address}/{quote(own)}")


def points(texts: Sequence[str]) -> None:
    """Draw texts as a list with bullet points."""
    with ui.element("ul").classes("list-disc q-pl-md"):
        for text in texts:
            with ui.element("li"):
                ui.label(text)


class Command:
    """A box with the shell command that does what the page does; a button copies the command."""

    def __init__(self) -> None:
        self.text = ""
        with ui.column().classes("w-full gap-1") as self.all:
            ui.label("The same in the shell, in the folder of the project:")
            self.shown = ui.html("", sanitize=False)
            copy = ui.button("Copy the command", on_click=lambda: ui.clipboard.write(self.text))
            copy.props("flat dense")

    def show(self, own: Sequence[str]) -> None:
        """Show ``gaussnoise`` with the arguments ``own``; hide the box if there are none."""
        self.text = shlex.join(["gaussnoise", *own]) if own else ""
        self.shown.content = lines(self.text)
        self.all.set_visibility(bool(own))
