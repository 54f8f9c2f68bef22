"""The page of streams: their published ticks, the needs of the next one, and how one is started."""

import asyncio
import itertools
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import run, ui

from ..errors import GaussNoiseError, ParameterError
from ..privacy.ledger import Ledger
from ..streams import Stream
from ..streams.files import rules_of
from ..streams.state import State as Folder
from ..tables import Schema
from ..tables.planning.facts import marginal_name
from ..tables.release.formats import FORMATS
from ..tables.schema.planned import load_plan
from ..tables.schema.workload import load_workload
from .asked import asked_of
from .ledger_page import begin_ledger
from .parts import frame, go, handled, head, lines, mine, outcome, output, refusal, words
from .project import LEDGER, STREAMS, check_name
from .state import State
from .streaming import StreamWish, columns_wanted, opened, tick_words

_WORKLOADS = {
    "totals": "all rows so far",
    "periods": "the rows of each tick",
    "both": "both",
}
_LATE = {"refuse": "refuse the file", "carry": "count them in the tick at hand"}
_MOST_LINKED = 12  # tables over time on the page of a stream
_UNPLANNED = "ParameterError: plan:"  # a refusal of the tables that are asked for
_MOST_TICKS = 10  # ticks that are listed at once, the last ones
_UNFINISHED = ("reserved", "written")  # states of a charge whose result is not published


async def streams_page(state: State, stream: str = "") -> None:
    """Draw the page, with one of the streams."""
    with frame(state, "/streams", "Streams: tables that go on, on one budget"):
        words(
            "New rows come in at every *tick*; their tables, and those of all rows so far, go out. "
            "One *budget* pays for all ticks."
        )
        names = state.project.streams()
        if names:
            await _one(state, stream if stream in names else names[-1], names[::-1])
        title = "Start another stream" if names else "Start a stream"
        with ui.expansion(title, value=not names).classes("w-full"):
            _start(state)


async def _one(state: State, name: str, names: list[str]) -> None:
    """Draw a stream: its ticks, and the next of them."""
    if len(names) > 1:
        chosen = ui.select(names, value=name, label="Stream").classes("w-full")
        chosen.on_value_change(lambda: go(f"/streams?stream={chosen.value}"))
    try:
        stream = await run.io_bound(opened, state.project, name)
        if stream is None:  # the server stops
            return
        begun = _begun(stream)
        done = len(stream)
    except GaussNoiseError as error:
        return refusal(str(error))
    _published(stream, name, done, begun)
    _next(state, stream, name, done, begun)


def _begun(stream: Stream) -> Mapping[str, tuple[str, str]]:
    """Return when each entry of the stream in its ledger was begun, and its state, by its id."""
    if stream.ledger is None:
        return {}
    return {entry.id: (entry.begun, entry.state) for entry in stream.ledger.entries()}


def _day(begun: Mapping[str, tuple[str, str]], name: str) -> str:
    """Return the day of an entry, for the end of a sentence."""
    return f" on {begun[name][0].partition('T')[0]}" if name in begun else ""


def _published(stream: Stream, name: str, done: int, begun: Mapping[str, tuple[str, str]]) -> None:
    n, folder = stream.plan.over.n, f"{STREAMS}/{name}"
    with ui.card():
        head(f"{name}: {done} of {n} ticks done", 2)
        ui.label(
            f"Started{_day(begun, stream.id or '')}. All files of {folder}/ticks may be published. "
            f"{folder}/private holds exact counts, which later ticks need: keep it as confidential "
            "as the rows."
        )
        if done:
            with ui.row():
                ui.link("The page", f"/stream/{name}/page", new_tab=True)
                ui.link("All that is public, as a zip", f"/stream/{name}/zip")
                ui.link("Ask it", f"/ask?folder={folder}")
            with ui.row():
                ui.label("Over time:")
                for k, names in enumerate(stream.plan.marginals[:_MOST_LINKED], 1):
                    place = f"/stream/{name}/page#over-time-{k}"
                    ui.link(marginal_name(names), place, new_tab=True)
        ticks = [
            (f"Tick {k}: published{_day(begun, f'{stream.id} tick {k}')}", k)
            for k in range(done, 0, -1)
        ]

        def draw(some: list[tuple[str, int]]) -> None:
            for title, tick in some:
                _folded(title, partial(_tick, stream.state, name, tick))

        draw(ticks[:_MOST_TICKS])
        if ticks[_MOST_TICKS:]:
            _folded("Earlier ticks", lambda: draw(ticks[_MOST_TICKS:]))
        _folded("The plan", lambda: output(str(stream.plan)))
        commands = f"gaussnoise stream show {folder}\ngaussnoise report {folder} -o {name}.html"
        _folded("The same in the shell", lambda: output(commands))


def _folded(title: str, draw: Callable[[], object]) -> None:
    """Draw a title under which the rest is drawn once it is opened: there may be many ticks."""
    part = ui.expansion(title).classes("w-full")

    def fill() -> None:
        if part.value and not part.default_slot.children:
            with part:
                draw()

    part.on_value_change(fill)


def _tick(state: Folder, name: str, tick: int) -> None:
    """Draw what a tick has published."""
    folder = state.tick_folder(tick)
    try:
        output((folder / "summary.txt").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        refusal(f"summary.txt cannot be read ({type(error).__name__}).")
    with ui.expansion("Its files").classes("w-full"):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                own = path.relative_to(folder).as_posix()
                ui.link(own, f"/stream/{name}/ticks/{folder.name}/{own}")


def _next(
    state: State, stream: Stream, name: str, done: int, begun: Mapping[str, tuple[str, str]]
) -> None:
    """Draw what the next tick expects, and the button that adds it."""
    plan, number = stream.plan, done + 1
    over, facts = plan.over, plan.facts
    with ui.card():
        if done == over.n:
            head("All ticks are done", 2)
            ui.label("More of them take a new stream, on a budget of its own.")
        else:
            head(f"Next: tick {number} of {over.n}", 2)
            which = "that have come in so far"
            if done:
                since = _day(begun, f"{stream.id} tick {done}")
                which = f"that came in after those of tick {done}, which was published{since}"
            if over.period is not None:
                which = f"whose column {over.period!r} has the number {number}"
            for what, said in {
                "Rows": f"those {which}.",
                "Columns": ", ".join(columns_wanted(stream)) + "; others are not read.",
                "Persons": f"The budget protects {plan.privacy_unit}. Counted: {facts.counted}.",
                "Budget": f"nothing more: ρ = {plan.rho_charged:.6g} was charged once, for all "
                f"{over.n} ticks.",
            }.items():
                ui.label(f"{what}: {said}")
            _folded("Rules of its ticks", lambda: _rules(rules_of(over)))
            begins = begun.get(f"{stream.id} tick {number}", ("", ""))[1]
            if begins in _UNFINISHED and not state.jobs.is_busy:
                mine(
                    f"Tick {number} was interrupted. Add it again with the same file: no row is "
                    "counted twice."
                )
            _add(state, name, number)
        job = state.jobs.last
        if job is not None and job.words[:2] == ("stream", "tick") and job.status is not None:
            if job.status:
                outcome(job)
            elif job.warned:
                mine(job.warned.strip())


def _add(state: State, name: str, number: int) -> None:
    """Draw the choice of the file of a tick, the command, and its button."""
    project, files, job = state.project, state.project.tables(), state.jobs.last
    stated = load_plan(project.schema).get("table") if number == 1 else None
    first = next((name for name in files if [project.folder / name] == stated), None)
    if job is not None and job.status and job.words[:3] == ("stream", "tick", f"{STREAMS}/{name}"):
        first = next((file for file in files if file == job.words[3]), first)  # to try it again
    file = ui.select(files, value=first, label=f"File with the rows of tick {number}")
    file.classes("w-full")
    command = _Command()

    def show() -> None:
        command.show(tick_words(project, name, str(file.value or "FILE"), number))

    show()
    file.on_value_change(show)
    button = ui.button(f"Add tick {number}")
    if job is not None and job.status is None and job.words[0] == "stream":
        button.disable()  # its end draws the page anew

    def add() -> None:
        if not file.value:
            raise ParameterError(f"Choose the file with the rows of tick {number}.")
        project.inside(file.value)
        button.disable()  # until the page is drawn anew
        try:
            own = tick_words(project, name, file.value, number)
            state.jobs.start(f"tick {number} of {name}", *own)
        except GaussNoiseError:
            button.enable()
            raise
        go(f"/streams?stream={name}")

    button.on_click(handled(add))


def _rules(rules: list[str]) -> None:
    with ui.element("ul").classes("list-disc q-pl-md"):
        for rule in rules:
            with ui.element("li"):
                ui.label(rule)


class _Command:
    """The same as a command of the shell, to copy."""

    def __init__(self) -> None:
        self.text = ""
        with ui.column().classes("w-full gap-1") as self.all:
            ui.label("The same in the shell, in the folder of the project:")
            self.shown = ui.html("", sanitize=False)
            copy = ui.button("Copy the command", on_click=lambda: ui.clipboard.write(self.text))
            copy.props("flat dense")

    def show(self, own: list[str]) -> None:
        """Show a command, from its words."""
        self.text = shlex.join(["gaussnoise", *own]) if own else ""
        self.shown.content = lines(self.text)
        self.all.set_visibility(bool(own))


def _start(state: State) -> None:
    """Draw the choices for a new stream, its plan, and the button that starts it."""
    project = state.project
    try:
        if not project.schema.exists():
            return refusal("There are no columns yet.", "/")
        try:
            Schema.load(project.schema).check_confirmed("start")
        except GaussNoiseError:
            return refusal(
                "The columns were read off the data, and are not confirmed as public knowledge: "
                "no stream can be started.",
                "/",
            )
        if any(one.within is not None for one in load_workload(project.schema)):
            return refusal("A stream takes a budget, and no targets for its tables.", "/questions")
        asked, ledger = asked_of(project.schema), project.budget()
    except GaussNoiseError as error:
        return refusal(str(error), "/budget")
    if asked.privacy is None:
        return refusal("A stream takes a budget.", "/budget")
    if ledger is None:
        return begin_ledger(state, asked.privacy.to_zcdp().rho, "/streams")
    _Form(state, ledger, asked.options.get("person"), asked.privacy.to_zcdp().rho)


class _Form:
    """The choices for a new stream, and its plan, which follows them."""

    def __init__(self, state: State, ledger: Ledger, person: str | None, rho: float) -> None:
        self.state, self.person = state, person
        self.planning: asyncio.Task[None] | None = None
        self.planned: list[str] | None = None  # words of the plan that is shown
        known = {entry.id for entry in ledger.entries()} | set(state.project.streams())
        place = state.project.folder / STREAMS
        begun = [
            entry.id
            for entry in ledger.entries()
            if entry.state in _UNFINISHED
            and Path(entry.target).parent.parent == place
            and entry.target.endswith("stream.json")
        ]
        free = next(own for k in itertools.count(1) if (own := f"stream-{k}") not in known)
        with ui.card():
            head("Time and persons", 2)
            ticks = ui.number("Number of ticks, at most", value=12, min=1, precision=0)
            reports = ui.number("Ticks in which one person has rows, at most", min=1, precision=0)
            ui.label(
                "The noise grows with this number. As many as there are ticks is always true; "
                "fewer are your own assurance, and nothing checks it"
                + (", unless the stream leaves out the other rows." if person else ".")
            )
            apart = ui.number(
                "How far these ticks are apart, at least (1: they may follow each other)",
                value=1,
                min=1,
                precision=0,
            )
            enforced = ui.checkbox(
                "Leave out rows of a person in more ticks, or in nearer ones: a private registry "
                "of persons sees to it"
            )
            enforced.set_visibility(person is not None)
            period = ui.input("Column with the number of each row's tick (may be empty)")
            late = ui.select(_LATE, value="refuse", label="Rows of earlier ticks")
            late.bind_visibility_from(period, "value", bool)
            workload = ui.select(_WORKLOADS, value="totals", label="The least error for")
            for field in (period, late, workload, ticks, reports, apart):
                field.classes("w-full")
        with ui.card():
            head("Its plan", 2)
            self.plan = ui.column().classes("w-full").props('role="status"')
            self.rules = ui.column()
        with ui.card():
            head("What will be charged", 2)
            words(
                f"ρ = {rho:.6g} of the {ledger.remaining:.6g} that are left in the *ledger* "
                f"{LEDGER}: once, when the stream starts, for all its ticks. No rows are read yet."
            )
            if rho > ledger.remaining:
                refusal("This is more than is left.", "/budget")
            if (last := ledger.entries(1)) != ():
                ui.label(
                    f"All that was charged so far protects {last[0].protects}. Costs of another "
                    "unit do not add up: such a stream takes a project folder of its own."
                )
            for own in [] if state.jobs.is_busy else begun:
                ui.label(
                    f"{own} was interrupted when it was started: start it under this name with "
                    "the same choices to go on."
                )
            name = ui.input("Name of the stream", value=next(iter(begun), free))
            format = ui.select(list(FORMATS), value="csv", label="Format of the tables").classes(
                "w-48"
            )
            purpose = ui.input("Purpose, one public line (may be empty)").classes("w-full")
            by = ui.input("Requested by (may be empty)").classes("w-full")
            self.command = _Command()
            self.button = ui.button("Start the stream", on_click=handled(self.start))
            job = state.jobs.last
            if job is not None and job.words[:2] == ("stream", "start") and job.status:
                outcome(job)
        self.fields: dict[str, Any] = {
            "id": name,
            "ticks": ticks,
            "reports": reports,
            "apart": apart,
            "enforced": enforced,
            "workload": workload,
            "period": period,
            "late": late,
            "format": format,
            "purpose": purpose,
            "requested_by": by,
        }
        for field in self.fields.values():
            field.on_value_change(self.changed)
        ui.context.client.on_delete(self.stop)
        self.changed()

    def wish(self) -> StreamWish:
        """Return the choices.

        Raises:
            ParameterError: a number is missing.
        """
        given: dict[str, Any] = {name: field.value for name, field in self.fields.items()}
        for number, what in {
            "ticks": "the number of ticks",
            "reports": "in how many ticks one person has rows, at most",
            "apart": "how far these ticks are apart, at least",
        }.items():
            if given[number] is None:
                raise ParameterError(f"Say {what}.")
            given[number] = int(given[number])
        if not given["period"]:
            given["late"] = "refuse"
        for text in ("id", "period", "purpose", "requested_by"):
            given[text] = given[text] or ""
        return StreamWish(**given)

    def changed(self) -> None:
        """Show the command and the plan of the choices."""
        try:
            wish = self.wish()
            rules = rules_of(wish.over)
        except GaussNoiseError as error:
            missing = str(error)
            self.stop()
            self.planned = None
            self.command.show([])
            return self.say(lambda: output(missing))
        self.command.show(wish.words())
        if wish.plan_words() == self.planned:  # another name has the same plan
            return
        self.stop()
        self.planned = wish.plan_words()
        self.say(lambda: output("Planning …"))
        self.rules.clear()
        with self.rules:
            _rules(rules)
        self.planning = asyncio.create_task(self.show(wish))

    async def show(self, wish: StreamWish) -> None:
        """Show the plan that the shell shows."""
        said, warned = await self.state.jobs.shown(*wish.plan_words())
        page = "/questions" if _UNPLANNED in warned else ""
        self.say(lambda: output(said) if said else refusal(warned.strip(), page))

    def say(self, draw: Callable[[], object]) -> None:
        """Draw something in place of the plan."""
        self.plan.clear()
        with self.plan:
            draw()

    def stop(self) -> None:
        """End the planning of choices that have changed."""
        if self.planning is not None:
            self.planning.cancel()

    def start(self) -> None:
        """Start the stream: charged once."""
        wish, project = self.wish(), self.state.project
        check_name("stream", wish.id)
        if wish.id in project.streams():
            raise ParameterError(f"{wish.id} was started before: choose another name.")
        _ = wish.over  # refused before anything is written
        self.button.disable()  # until the page is drawn anew
        try:
            project.inside(STREAMS).mkdir(exist_ok=True)
            self.state.jobs.start(f"start of {wish.id}", *wish.words())
        except GaussNoiseError:
            self.button.enable()
            raise
        go(f"/streams?stream={wish.id}")
