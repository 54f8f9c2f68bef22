"""The form for a new stream: its choices, and the plan that results from them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nicegui import ui

from ..errors import GaussNoiseError, ParameterError
from ..privacy.ledger import Ledger
from ..streams.files import rules_of
from ..tables import Schema
from ..tables.planning.stated import Asked
from ..tables.release.formats import FORMATS
from ..tables.schema.entries import entry_name
from ..tables.schema.planned import load_options
from .number_field import NumberField
from .parts import (
    TYPED,
    Command,
    about_lines,
    go,
    handled,
    head,
    ledger_fields,
    outcome,
    output,
    points,
    refusal,
    words,
)
from .project import LEDGER, SCHEMA, STREAMS, check_name, free_name
from .state import State
from .streaming import UNFINISHED, StreamWish

_NUMBERS = {
    "ticks": "the number of ticks",
    "apart": "how far these ticks are apart, at least",
}
_TEXTS = ("id", "first", "period", "corrections", "title", "purpose", "requested_by")
_WORKLOADS = {
    "totals": "all rows so far",
    "periods": "the rows of each tick",
    "both": "both",
}
_LATE = {"refuse": "refuse the file", "carry": "count them in the tick at hand"}
_USUAL = StreamWish._field_defaults
_TICKS = 12  # proposed for a stream about which the schema file states nothing
_UNPLANNED = "ParameterError: plan:"  # start of the error message for tables without a plan


def _value(field: Any) -> Any:
    """Return the value of a field of the form; None if it is for a number and has none."""
    if isinstance(field, NumberField):
        return field.valid
    return field.value


class Form:
    """The form for a new stream: its fields, and the plan that follows from their values."""

    def __init__(self, state: State, ledger: Ledger, asked: Asked, rho: float) -> None:
        self.state, person = state, asked.options.get("person")
        self.planning: asyncio.Task[None] | None = None
        self.planned: object = None  # the ticks, title and tables of the plan that is shown
        stated = load_options(state.project.schema, "stream") or {"ticks": _TICKS}
        own = _USUAL | stated
        known = {entry.id for entry in ledger.entries()} | set(state.project.streams())
        place = state.project.folder / STREAMS
        begun = [
            entry.id
            for entry in ledger.entries()
            if entry.state in UNFINISHED
            and Path(entry.target).parent.parent == place
            and entry.target.endswith("stream.json")
        ]
        counted, sums = asked.of_counts()
        with ui.card() as tables:
            head("Its tables", 2)
            ui.label(
                "A stream has tables of counts. The others on the page Questions sum a number, for "
                f"its mean, and cannot go on in a stream: {', '.join(sums)}. Release them by "
                "themselves, or give the number edges on the page Table: then it has counts, "
                "shares and medians."
            )
            kept = counted.workload if isinstance(counted.workload, list) else []
            left = [entry_name(asked.schema, one) for one in kept]
            counts = ui.checkbox(
                f"Take only the tables of counts: {', '.join(left) or 'there are none'}",
                value=own["counts"],
            )
            counts.set_enabled(bool(left))
        tables.set_visibility(bool(sums))
        with ui.card():
            head("Time and persons", 2)
            ticks = NumberField("Number of ticks, at most", own.get("ticks"), whole=True)
            first = ui.input(
                "Time of the first tick, like January 2026, 2026-W05 or 2026 (may be empty)",
                value=own["first"],
            )
            ui.label(
                "The other ticks follow it without a gap: the next month, week, day, quarter or "
                "year. All public pages then name ticks so. It cannot be changed later."
            )
            most = own.get("reports")
            reports = NumberField(
                "In how many ticks can one person have rows, at most?",
                None if most == own.get("ticks") else most,
                whole=True,
            ).props('stack-label placeholder="in every tick"')
            ui.label(
                "Left empty, in every tick: this is always true, and takes the most noise. Where "
                "each person comes once, as in a register of births, write 1. Less than every tick "
                "is your own assurance, and nothing checks it"
                + (", unless the stream leaves out the other rows." if person else ".")
            )
            apart = NumberField(
                "How far these ticks are apart, at least (1: they may follow each other)",
                own["apart"],
                whole=True,
            )
            enforced = ui.checkbox(
                "Leave out rows of a person in more ticks, or in nearer ones: a private registry "
                "of persons sees to it",
                value=own["enforced"],
            )
            enforced.set_visibility(person is not None or own["enforced"])
            period = ui.input(
                "Column with the number of each row's tick (may be empty)", value=own["period"]
            )
            late = ui.select(_LATE, value=own["late"], label="Rows of earlier ticks")
            late.bind_visibility_from(period, "value", bool)
            corrections = ui.input(
                "Column with 1, or -1 in rows that take back an earlier one (may be empty)",
                value=own["corrections"],
            )
            # a stream that bounds the rows of a person takes none back
            corrections.set_visibility(person is None or own["corrections"] != "")
            workload = ui.select(_WORKLOADS, value=own["workload"], label="The least error for")
            for field in (period, late, corrections, workload, ticks, first, reports, apart):
                field.classes("w-full")
        with ui.card():
            head("Its plan", 2)
            self.plan = ui.column().classes("w-full").props('role="status"')
            self.rules = ui.column()
        with ui.card():
            head("What it takes of the budget", 2)
            words(
                f"ρ = {rho:.6g} of the {ledger.remaining:.6g} that are left in the *ledger* "
                f"{LEDGER}: once, when the stream starts, for all its ticks. No rows are read yet."
            )
            if rho > ledger.remaining:
                some = 1000 * ledger.remaining > rho
                refusal(
                    "This is more than is left, and the ledger cannot be changed: "
                    + ("choose a smaller budget." if some else f"{LEDGER} pays for nothing more."),
                    "/budget" if some else "",
                )
            if (last := ledger.entries(1)) != ():
                ui.label(
                    f"All that was charged so far protects {last[0].protects}. Costs of another "
                    "unit do not add up, and such a stream would be refused here"
                    + (
                        ": leave the number of ticks of a person empty, or let a registry leave "
                        "out rows of more ticks."
                        if person is not None
                        else "; it takes a project folder of its own."
                    )
                )
            for unfinished in [] if state.jobs.is_busy else begun:
                ui.label(
                    f"{unfinished} was interrupted when it was started: start it under this name "
                    "with the same choices to go on."
                )
            named = own.get("id", "")
            new = named if named not in {"", *known} else free_name("stream", known)
            name = ui.input("Name of the stream", value=next(iter(begun), new))
            formats = list(dict.fromkeys([own["format"], *FORMATS]))
            format = ui.select(formats, value=own["format"], label="Format of the tables")
            format.classes("w-48")
            title = ui.input(
                "Title of its public pages (if empty, the one on the page Release)",
                value=own["title"],
            )
            ui.label(
                "Its public pages begin with these lines, as a release does; they may be empty."
            )
            self.keep_lines = about_lines(
                state.project, ("period", "source", "publisher", "contact")
            )
            self.period_of_all()
            purpose, by = ledger_fields(own).values()
            title.classes("w-full")
            ui.label(
                f"All choices are kept in {SCHEMA}, tables [about] and [stream], as you make them."
            )
            self.command = Command()
            self.button = ui.button("Start the stream", on_click=handled(self.start))
            job = state.jobs.last
            if job is not None and job.words[:2] == ("stream", "start") and job.status:
                outcome(job)
        self.fields: dict[str, Any] = {
            "id": name,
            "ticks": ticks,
            "first": first,
            "counts": counts,
            "reports": reports,
            "apart": apart,
            "enforced": enforced,
            "workload": workload,
            "period": period,
            "late": late,
            "corrections": corrections,
            "title": title,
            "format": format,
            "purpose": purpose,
            "requested_by": by,
        }
        for field in self.fields.values():
            field.on_value_change(handled(self.changed))
        for typed in ("reports", *_NUMBERS, *_TEXTS):
            self.fields[typed].props(TYPED)
        ui.context.client.on_delete(self.stop)
        self.look()

    def period_of_all(self) -> None:
        """Ask whether the period in the schema file is the period of all ticks; if not, remove it.

        The public pages of the stream show this period.
        """
        project = self.state.project
        period = Schema.load(project.schema).about.period
        if period is None:
            return

        def leave_out() -> None:
            project.state_about(period="")
            go("/streams")

        with ui.row().classes("items-center"):
            ui.label(
                f"Its public pages say that the period of the data is {period}, as on the page "
                "Release. Is this the time of all its ticks together?"
            )
            button = ui.button("No: leave the period out", on_click=handled(leave_out))
            button.props("flat dense")

    def changed(self) -> None:
        """Write the changed fields into the schema file, and show the new command and plan."""
        self.keep()
        self.look()

    def choices(self) -> dict[str, Any]:
        """Return {field: value}, with None for a number that is missing."""
        given = {name: _value(field) for name, field in self.fields.items()}
        given["reports"] = given["reports"] or given["ticks"]  # always true
        numbers = ("reports", *_NUMBERS)
        given |= {name: int(given[name]) for name in numbers if given[name] is not None}
        given |= {name: given[name] or "" for name in _TEXTS}
        return given if given["period"] else given | {"late": _USUAL["late"]}

    def keep(self) -> None:
        """Write the fields into the schema file, apart from default values."""
        kept = {x: None if own == _USUAL.get(x, "") else own for x, own in self.choices().items()}
        self.state.project.state_stream(**kept)

    def wish(self) -> StreamWish:
        """Return the values of the fields as a :class:`StreamWish`.

        Raises:
            ParameterError: a number is missing.
        """
        for field in self.fields.values():
            if isinstance(field, NumberField):
                _ = field.number  # raises ParameterError
        given = self.choices()
        for number, what in _NUMBERS.items():
            if given[number] is None:
                raise ParameterError(f"Say {what}.")
        return StreamWish(**given)

    def look(self) -> None:
        """Show the shell command for these fields, and start to compute the plan."""
        try:
            wish = self.wish()
            over = wish.over
        except GaussNoiseError as error:
            missing = str(error)
            self.stop()
            self.planned = None
            self.command.show([])
            return self.say(lambda: output(missing))
        self.command.show(wish.words())
        planned = over.as_dict(), wish.title, wish.counts
        if planned == self.planned:  # for example, only the stream's name changed
            return
        self.stop()
        self.planned = planned
        self.say(lambda: output("Planning …"))
        self.rules.clear()
        with self.rules:
            points(rules_of(over))
        self.planning = asyncio.create_task(self.show(wish))

    async def show(self, wish: StreamWish) -> None:
        """Show the plan as ``gaussnoise stream plan`` prints it, or the command's error message."""
        said, warned = await self.state.jobs.shown(*wish.plan_words())
        page = "/questions" if _UNPLANNED in warned else ""
        self.say(lambda: output(said) if said else refusal(warned.strip(), page))

    def say(self, draw: Callable[[], object]) -> None:
        """Empty the part of the form that shows the plan, and call ``draw`` to draw there."""
        self.plan.clear()
        with self.plan:
            draw()

    def stop(self) -> None:
        """Stop the computation of a plan whose choices have changed."""
        if self.planning is not None:
            self.planning.cancel()

    def start(self) -> None:
        """Start the stream, which is charged once, for all ticks."""
        wish, project = self.wish(), self.state.project
        check_name("stream", wish.id)
        if wish.id in project.streams():
            raise ParameterError(f"{wish.id} was started before: choose another name.")
        _ = wish.over  # raises an error before anything is written
        self.keep_lines()
        self.keep()  # another tab may have kept others
        self.button.disable()  # until the page is drawn again
        try:
            project.inside(STREAMS).mkdir(exist_ok=True)
            self.state.jobs.start(f"start of {wish.id}", *wish.words())
        except GaussNoiseError:
            self.button.enable()
            raise
        go(f"/streams?stream={wish.id}")
