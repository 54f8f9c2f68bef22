"""The page of streams: published ticks, the requirements of the next one, and a new stream."""

import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import quote

from nicegui import run, ui

from ..errors import GaussNoiseError, ParameterError, SchemaError
from ..streams import Stream
from ..streams.files import rules_of
from ..streams.state import State as Folder
from ..tables.planning.facts import marginal_name
from ..tables.schema.workload import load_workload
from ..text import capital
from .asked import asked_of
from .jobs import Job
from .ledger_page import begin_ledger
from .parts import (
    CHECK,
    Command,
    answer,
    choice_of_file,
    each,
    frame,
    go,
    handled,
    head,
    mine,
    outcome,
    output,
    points,
    published_files,
    refusal,
    scroll_here,
    words,
)
from .project import STREAMS, Project
from .state import State
from .stream_start import Form
from .streaming import UNFINISHED, check_words, columns_wanted, opened, tick_words
from .wording import in_page

_MOST_LINKED = 12  # largest number of links to tables over time on the page of a stream
_MOST_TICKS = 10  # largest number of ticks that are listed at once: the last ones


async def streams_page(state: State, stream: str = "", at: str = "") -> None:
    """Draw the page of streams (series of releases), and scroll to the element ``at``.

    It shows the stream with the name ``stream``, or else the newest stream.
    """
    with frame(state, "/streams", "Streams: tables that go on, on one budget"):
        words(
            "New rows come in at every *tick*; their tables, and those of all rows so far, go out. "
            "One *budget* pays for all ticks."
        )
        names = state.project.streams()
        if names:
            await _one(state, stream if stream in names else names[-1], names[::-1], at)
            _folded("Start another stream", lambda: _start(state))
        else:
            with ui.expansion("Start a stream", value=True).classes("w-full"):
                _start(state)


async def _one(state: State, name: str, names: list[str], at: str) -> None:
    """Draw a stream: its published ticks (releases), and the form for the next tick."""
    if len(names) > 1:
        chosen = ui.select(names, value=name, label="Stream").classes("w-full")
        chosen.on_value_change(lambda: go(f"/streams?stream={quote(chosen.value)}"))
    try:
        stream = await run.io_bound(opened, state.project, name)
        if stream is None:  # the server is stopping
            return
        begun = _begun(stream)
        done = len(stream)
    except GaussNoiseError as error:
        return refusal(str(error))
    _published(stream, name, done, begun)
    _next(state, stream, name, done, begun, at)


def _begun(stream: Stream) -> Mapping[str, tuple[str, str]]:
    """Return {id: (time of its begin, state)} of the entries in the stream's ledger."""
    if stream.ledger is None:
        return {}
    return {entry.id: (entry.begun, entry.state) for entry in stream.ledger.entries()}


def _day(begun: Mapping[str, tuple[str, str]], name: str) -> str:
    """Return " on DAY", the day on which the ledger's entry ``name`` was begun, or ""."""
    return f" on {begun[name][0].partition('T')[0]}" if name in begun else ""


def _published(stream: Stream, name: str, done: int, begun: Mapping[str, tuple[str, str]]) -> None:
    said = stream.plan.over.said
    n, folder, own = stream.plan.over.n, f"{STREAMS}/{name}", f"/stream/{quote(name)}"
    with ui.card():
        head(f"{name}: {done} of {n} ticks done", 2)
        ui.label(
            f"Started{_day(begun, stream.id or '')}. {folder}/stream.json, the record of its plan, "
            f"and all files of {folder}/ticks may be published, and are in the zip. "
            f"{folder}/private holds exact counts, which later ticks need: keep it as confidential "
            "as the rows."
        )
        if done:
            with ui.row():
                ui.link("The page", f"{own}/page", new_tab=True)
                ui.link("All that is public, and its page, as a zip", f"{own}/zip")
                ui.link("Ask it", f"/ask?folder={quote(folder)}")
            with ui.row():
                ui.label("Over time:")
                for k, names in enumerate(stream.plan.marginals[:_MOST_LINKED], 1):
                    place = f"{own}/page#over-time-{k}"
                    ui.link(marginal_name(names), place, new_tab=True)
        ticks = [
            (f"{capital(said(k))}: published{_day(begun, f'{stream.id} tick {k}')}", k)
            for k in range(done, 0, -1)
        ]

        def draw(some: list[tuple[str, int]]) -> None:
            for title, tick in some:
                _folded(title, partial(_tick, stream.state, name, tick))

        draw(ticks[:_MOST_TICKS])
        if ticks[_MOST_TICKS:]:
            _folded("Earlier ticks", lambda: draw(ticks[_MOST_TICKS:]))
        _folded("The plan", lambda: output(str(stream.plan)))
        words_of = ("stream", "show", folder), ("report", folder, "-o", f"{name}.html")
        commands = "\n".join(shlex.join(["gaussnoise", *one]) for one in words_of)
        _folded("The same in the shell", lambda: output(commands))


def _folded(title: str, draw: Callable[[], object]) -> None:
    """Draw a title that opens; only then ``draw`` is called, so long pages are drawn quickly."""
    part = ui.expansion(title).classes("w-full")

    def fill() -> None:
        if part.value and not part.default_slot.children:
            with part:
                draw()

    part.on_value_change(fill)


def _tick(state: Folder, name: str, tick: int) -> None:
    """Draw the published results of the tick (release) number ``tick`` of the stream ``name``."""
    folder = state.tick_folder(tick)
    published_files(folder, f"/stream/{quote(name)}/ticks/{folder.name}")


def _next(
    state: State,
    stream: Stream,
    name: str,
    done: int,
    begun: Mapping[str, tuple[str, str]],
    at: str,
) -> None:
    """Draw what the next tick (release) of a stream needs, and the button that adds the tick."""
    plan, number = stream.plan, done + 1
    over, facts = plan.over, plan.facts
    with ui.card():
        if done == over.n:
            head("All ticks are done", 2)
            ui.label("More of them take a new stream, on a budget of its own.")
        else:
            time = over.time(number)
            head(f"Next: tick {number} of {over.n}{time and f' ({time})'}", 2)
            which = "that have come in so far"
            if done:
                since = _day(begun, f"{stream.id} tick {done}")
                which = f"that came in after those of {over.said(done)}, which was published{since}"
            if over.period is not None:
                which = f"whose column {over.period!r} has the number {number}"
            for what, said in {
                "Rows": f"those {which}.",
                "Columns": ", ".join(columns_wanted(stream)) + "; others are not read.",
                "Persons": f"The budget protects {each(plan.privacy_unit)}. "
                f"Counted: {facts.counted}.",
                "Budget": f"nothing more: ρ = {plan.rho_charged:.6g} was charged once, for all "
                f"{over.n} ticks.",
            }.items():
                ui.label(f"{what}: {said}")
            _folded("Rules of its ticks", lambda: points(rules_of(over)))
            begins = begun.get(f"{stream.id} tick {number}", ("", ""))[1]
            if begins in UNFINISHED and not state.jobs.is_busy:
                mine(
                    f"Tick {number} was interrupted. Add it again with the same file: no row is "
                    "counted twice."
                )
            ui.link_target(CHECK)
            if at == CHECK and not state.jobs.is_busy:
                scroll_here()
            _add(state, name, number, over.said(number))
        job = _last(state, name)
        if job is None or job.status is None:
            return
        if job.words[1] == "check":
            answer(job)
        elif job.status:
            outcome(job)
        elif job.warned:
            mine(in_page(job.warned))


def _last(state: State, name: str) -> Job | None:
    """Return the server's last job if it adds or checks a tick of this stream, else None."""
    job = state.jobs.last
    ways = [("stream", way, f"{STREAMS}/{name}") for way in ("tick", "check")]
    return job if job is not None and job.words[:3] in ways else None


def _add(state: State, name: str, number: int, said: str) -> None:
    """Draw the choice of the file for a tick, the shell command, and buttons to add and check."""
    project, files, job = state.project, state.project.tables(), _last(state, name)
    first = None  # a wrong file cannot be taken back, so none is proposed
    if job is not None and (job.status or job.words[1] == "check"):  # to add it, or to retry
        first = next((file for file in files if Path(file) == Path(job.words[3])), None)
    file = choice_of_file(project, first, f"File with the rows of {said}")
    command = Command()

    def show() -> None:
        command.show(tick_words(project, name, str(file.value or "FILE"), number))

    show()
    file.on_value_change(show)
    with ui.row():
        button = ui.button(f"Add tick {number}")
        checking = ui.button("Check the rows").props("outline")
    mine("A check counts nothing. It shows exact counts of your rows, and values of them.")
    if state.jobs.is_busy:
        button.disable()  # until the task ends, when the page is drawn again

    def run_on(what: str, words_of: Callable[[Project, str, str, int], list[str]], at: str) -> None:
        if not file.value:
            raise ParameterError(f"Choose the file with the rows of {said}.")
        project.inside(file.value)
        button.disable()  # until the page is drawn again
        try:
            state.jobs.start(what, *words_of(project, name, file.value, number))
        except GaussNoiseError:
            button.enable()
            raise
        go(f"/streams?stream={quote(name)}{at}")

    def add() -> None:
        run_on(f"tick {number} of {name}", tick_words, "")

    def check() -> None:
        run_on(f"check of tick {number} of {name}", check_words, f"&at={CHECK}")

    button.on_click(handled(add))
    checking.on_click(handled(check))


def _start(state: State) -> None:
    """Draw the form for a new stream with its plan and start button, or why none can be started."""
    project = state.project
    try:
        project.check_confirmed("no stream can be started")
        if any(one.within is not None for one in load_workload(project.schema)):
            return refusal("A stream takes a budget, and no targets for its tables.", "/questions")
        asked, ledger = asked_of(project.schema), project.budget()
    except SchemaError as error:
        return refusal(str(error), "/")
    except GaussNoiseError as error:
        return refusal(str(error), "/budget")
    if asked.privacy is None:
        return refusal("A stream takes a budget.", "/budget")
    if ledger is None:
        return begin_ledger(state, asked.privacy.to_zcdp().rho, "/streams")
    Form(state, ledger, asked, asked.privacy.to_zcdp().rho)
