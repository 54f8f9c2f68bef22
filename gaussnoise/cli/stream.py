"""The commands of streams of tables."""

import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self

import typer

from ..errors import ParameterError, StreamWarning
from ..numerics.intervals import quantile
from ..streams import Stream, StreamPlan, Ticks
from ..tables import plan
from ..tables.planning.stated import BUDGET, Asked
from ..tables.release.formats import FORMATS
from ..tables.release.tidy import LEVEL
from ..tables.schema.planned import load_options
from ..text import one_of
from .asked import (
    DatedFileOptions,
    OptionGroup,
    Options,
    asked_for,
    filled,
    joined,
    parts_of,
    table_of,
    with_options,
)
from .check import said
from .console import ERR, check_new, save_picture, say, show
from .documents import series_document, stream_document, stream_plan_document
from .ledger import noted
from .options import (
    Approval,
    Delta,
    Epsilon,
    Json,
    Marginals,
    OnOutside,
    Purpose,
    RequestedBy,
    Rho,
    SchemaFile,
    SomeTicks,
    StatedFormat,
    StatedNeighbors,
    StatedNorm,
    StreamFolder,
    Tables,
    Title,
)
from .patience import patience
from .published import say_aside, ticks_of

_OF_TICKS = ("reports", "apart", "workload", "period", "late", "corrections", "enforced", "first")
_FEW = 3  # most tables that are shown for a stream
_Ledger = Annotated[
    Path | None, typer.Option("--ledger", help="Where the stream's ledger is now, if moved.")
]


@dataclass(frozen=True)
class StreamOptions(OptionGroup):
    """The options of a plan for a stream, in the order of the help text."""

    schema: SchemaFile
    ticks: Annotated[
        int | None,
        typer.Option(
            "--ticks",
            help="How many tables of new rows will come in, at most. This and the other options of "
            "a stream can stand in the schema's \\[stream] table.",
        ),
    ] = None
    marginals: Marginals = None
    rho: Rho = None
    epsilon: Epsilon = None
    delta: Delta = None
    reports: Annotated[
        int | None,
        typer.Option(
            "--reports",
            help="In how many ticks one person has rows, at most; must be given with --person, "
            "else 1.",
        ),
    ] = None
    apart: Annotated[
        int | None,
        typer.Option("--apart", help="How far these ticks are apart, at least.", show_default="1"),
    ] = None
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            help="What is to have the least error: totals, periods or both.",
            show_default="totals",
        ),
    ] = None
    period: Annotated[
        str | None,
        typer.Option("--period", help="Column with the number of each row's tick, from 1 on."),
    ] = None
    late: Annotated[
        str | None,
        typer.Option(
            "--late",
            help="Rows of earlier ticks, as --period says: refuse, or carry to the tick at hand.",
            show_default="refuse",
        ),
    ] = None
    corrections: Annotated[
        str | None,
        typer.Option(
            "--corrections",
            help="Column with 1, or -1 in rows that take back one that was counted before.",
        ),
    ] = None
    first: Annotated[
        str | None,
        typer.Option(
            "--first",
            help='Time of the first tick, like 2026-01, "January 2026", 2026-W05 or 2026: the '
            "others follow it, and pages say these times.",
        ),
    ] = None
    counts: Annotated[
        bool | None,
        typer.Option(
            "--counts/--no-counts",
            help="Leave out the tables that sum clipped numbers, which no stream has.",
            show_default="no-counts",
        ),
    ] = None
    neighbors: StatedNeighbors = None
    p: StatedNorm = None
    rows_per_person: Annotated[
        int | None,
        typer.Option(
            "--rows-per-person", help="The most rows of one person in a tick.", show_default="1"
        ),
    ] = None
    person: Annotated[
        str | None,
        typer.Option(
            "--person",
            help="Column that says whose row it is: at most --rows-per-person of each are counted "
            "in a tick.",
        ),
    ] = None
    enforced: Annotated[
        bool | None,
        typer.Option(
            "--enforced/--no-enforced",
            help="Keep a private registry of persons, and leave out rows of a person beyond "
            "--reports and --apart; needs --person.",
            show_default="no-enforced",
        ),
    ] = None
    title: Title = None

    def settled(self) -> Self:
        """Return options, from ``[plan]`` and ``[stream]`` where they are not given."""
        has_own = any(given is not None for given in (self.rho, self.epsilon, self.delta))
        stated = load_options(self.schema, "stream").items()
        own = {name: value for name, value in stated if hasattr(self, name)}
        return filled(self, BUDGET if has_own else (), own)

    def plan(self) -> StreamPlan:
        """Return the plan of these options."""
        if self.ticks is None:
            raise ParameterError(
                "stream: expected --ticks, or ticks = 52 in [stream] of the schema: the "
                "largest number of tables of new rows; got none"
            )
        if self.person is not None and self.reports is None:
            raise ParameterError(
                "stream: expected --reports K with --person: the largest number of ticks in which "
                f"one person has rows; got none; hint: --reports {self.ticks} is always true"
            )
        wanted: dict[str, Any] = {name: getattr(self, name) for name in _OF_TICKS}
        wanted = {name: value for name, value in wanted.items() if value is not None}
        over = Ticks(self.ticks, **wanted)  # which checks these values
        asked = replace(asked_for(Options(self.schema, self.marginals)), stated=vars(self))
        if asked.targets is not None:
            raise ParameterError(
                f"stream: expected [[workload]] tables without within in {self.schema}, since a "
                "stream takes a budget and no targets; hint: -m names the tables"
            )
        asked = self._of_counts(asked)
        with patience(ERR, "planning"), _warnings_said():
            return plan(asked.schema, asked.workload, asked.privacy, over=over, **asked.options)

    def _of_counts(self, asked: Asked) -> Asked:
        """Return the request; refuse tables of sums or, if ``counts`` is true, leave them out."""
        counted, sums = asked.of_counts()
        if not sums or (self.counts and counted.workload):
            return counted
        more = f" and {len(sums) - _FEW} more" if len(sums) > _FEW else ""
        others = "--counts, or counts = true in [stream], takes the other tables alone; "
        raise ParameterError(
            "stream: a stream takes tables of counts, got sums of a number in "
            f"{', '.join(sums[:_FEW])}{more}; hint: {others if counted.workload else ''}for means "
            "over time, give the number edges in place of clip, and ask for shares or quantiles; "
            "or release every tick by itself, each with a part of one ledger's budget, and compare "
            "the releases by gaussnoise difference JANUARY JUNE"
        )


@dataclass(frozen=True)
class StartOptions(StreamOptions):
    """The options of a plan for a stream, and the options of its start."""

    format: StatedFormat = None
    id: Annotated[str | None, typer.Option("--id", help="Name in the ledger.")] = None
    purpose: Purpose = None
    requested_by: RequestedBy = None


@with_options
def plan_stream(options: StreamOptions, as_json: Json = False) -> None:
    """Say how accurate the tables of a stream would be, tick by tick. Needs no data.

    A stream has tables of counts. For means over time, there are two ways. Replace the number's
    clip by edges, and ask for its shares or quantiles. Or release every tick alone with gaussnoise
    mean, --rho, --ledger and --id, and compare ticks with gaussnoise difference.
    """
    planned = options.plan()
    if as_json:
        return show(stream_plan_document(planned))
    say(str(planned))


@with_options
def start_stream(
    options: StartOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="New folder for the stream.")],
    on_outside: OnOutside = "drop",
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Charge this budget, once for all ticks.")
    ] = None,
    approval: Approval = None,
    as_json: Json = False,
) -> None:
    """Begin a stream, and spend its whole budget, once for all ticks. Needs no data.

    It has tables of counts; for means over time, see gaussnoise stream plan --help.
    """
    if (ledger is None) != (options.id is None):
        raise ParameterError(
            "stream: expected --ledger and --id together: a ledger knows streams by their id, "
            "which id in [stream] of the schema can state"
        )
    planned = options.plan()
    wanted: dict[str, Any] = {"format": options.format or "csv", "on_outside": on_outside}
    book = noted("stream", ledger, options.purpose, options.requested_by, approval)
    stream = planned.start(out, ledger=book, id=options.id, **wanted)
    if as_json:
        return show(stream_document(stream, out))
    say(str(planned))
    say(f"wrote {out}/stream.json: public; tables of every tick will be in {out}/ticks")
    say(
        f"{out}/private will hold exact counts, which later ticks need"
        f"{', and the registry of persons' * planned.over.enforced}: keep it as confidential as "
        "the rows"
    )
    say(_next_text(stream, out))


@with_options
def run_tick(
    folder: StreamFolder,
    table: Tables,
    number: Annotated[
        int,
        typer.Option(
            "--tick",
            help="Its number, which `stream show` says: run again with it after a crash, and no "
            "row is counted twice.",
        ),
    ],
    written: DatedFileOptions = DatedFileOptions(),
    same_file: Annotated[
        bool,
        typer.Option(
            "--same-file", help="Count a file again that an earlier tick counted, twice in all."
        ),
    ] = False,
    ledger: _Ledger = None,
    as_json: Json = False,
) -> None:
    """Count the new rows of one tick; publish their tables, and those of all rows so far."""
    stream = Stream.open(folder, ledger)
    read = written.dialect(stream.plan.schema.file)
    if number <= len(stream):
        say(
            f"note: tick {number} was published before, and is read again: none of the rows given "
            "now is counted",
            ERR,
        )
    with patience(ERR, "counting"), _warnings_said():
        stream.tick(read.table(table_of(table)), number=number, same_file=same_file)
    target = stream.state.tick_folder(number)
    say_aside(stream.period(number))
    if as_json:
        return show({**stream_document(stream, folder), "tick": number, "published": target})
    say((target / "summary.txt").read_text(encoding="utf-8"))
    say(f"wrote {target}/cumulative, {target}/period and {target}/release.json")
    say(_next_text(stream, folder))


@with_options
def check_tick(
    folder: StreamFolder,
    table: Tables,
    number: Annotated[
        int | None, typer.Option("--tick", help="Its number.", show_default="the next tick's")
    ] = None,
    written: DatedFileOptions = DatedFileOptions(),
    ledger: _Ledger = None,
    as_json: Json = False,
) -> None:
    """Say which rows a tick would leave out, and why. NOT private: for the rows' owner alone.

    It reads the rows by the schema of the stream, counts nothing, and writes no file. It refuses a
    table with rows of other ticks if the tick would refuse it.

    The exit code is 0 if all rows fit; 1 if some do not, or if the table cannot be read.
    """
    stream = Stream.open(folder, ledger)
    read = written.dialect(stream.plan.schema.file)
    tick = min(len(stream) + 1, stream.plan.over.n) if number is None else number
    said(stream.plan.check(read.table(table_of(table)), tick), as_json)


def show_stream(folder: StreamFolder, ledger: _Ledger = None, as_json: Json = False) -> None:
    """Show the plan, the number of published ticks, and the tables of the last one."""
    stream = Stream.open(folder, ledger)
    if as_json:
        return show(stream_document(stream, folder))
    say(str(stream.plan))
    done = len(stream)
    say(f"\n{done} of {stream.plan.over.n} ticks done")
    say(_next_text(stream, folder))
    if done:
        total = stream.total()
        for names in list(total)[:_FEW]:
            say(f"\nall {total.noun} so far: {total[names]}")


def forget_persons(folder: StreamFolder, ledger: _Ledger = None) -> None:
    """Delete the registry of persons of a stream that has ended. No tick can follow."""
    stream = Stream.open(folder, ledger)
    stream.forget()
    say(f"deleted the registry of persons in {folder}/private: the stream can only be read now")


def show_series(
    folder: StreamFolder,
    marginal: Annotated[
        str | None,
        typer.Option(
            "--marginal",
            "-m",
            help="Names of attributes, like sex,age; '' for the total. May be left out where the "
            "stream has one table.",
        ),
    ] = None,
    level: Annotated[
        float, typer.Option("--level", help="Of the intervals shown; those of -o are of 95 %.")
    ] = LEVEL,
    cumulative: Annotated[
        bool, typer.Option("--cumulative", help="All rows so far, in place of each tick's own.")
    ] = False,
    ticks: SomeTicks = None,
    trend: Annotated[
        bool, typer.Option("--trend", help="The slope over time, and a test of no change.")
    ] = False,
    step: Annotated[
        int | None,
        typer.Option(
            "--step", help="The number of rows per tick from this tick on, less that before."
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="New picture, FILE.png.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="New file: one tidy table of all ticks, of each tick's own rows and of all so "
            f"far: {' or '.join(f'FILE{format.ending}' for format in FORMATS.values())}.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show one table of a stream over time, with intervals. Needs no data.

    Intervals and tests are about the rows that were counted. They use the noise of all ticks and
    its covariance. They say nothing about a population from which the rows are a sample.
    """
    for file in (plot, out):
        check_new("series", file, folder)
    tables = Stream.open(folder).tables
    quantile(level)  # refuses a level outside (0, 1)
    names, *others = tables.plan.marginals if marginal is None else [tuple(parts_of(marginal))]
    if others:
        known = one_of(f"-m {shlex.quote(joined(own))}" for own in [names, *others])
        raise ParameterError(f"series: expected a table of the stream, {known}")
    series = tables.series(names)
    if ticks is not None:
        series = series.between(*ticks_of(ticks))
    rising = series.trend() if trend else None
    stepped = None if step is None else series.step(step)
    if out is not None:
        series.save(out)
    shown = series.cumsum() if cumulative else series
    if plot is not None:
        save_picture("series", shown.plot(level), plot)
    if as_json:
        return show(series_document(shown, rising, stepped, level, {"file": out, "plot": plot}))
    name = " × ".join(names) or f"number of {series.noun}"
    say(shown.text(level, name))
    if rising is not None:
        say("\n" + rising.text(level, f"Trend of {name} over {series.which}"))
    if stepped is not None:
        say("\n" + stepped.text(level, f"{name} per tick: {' less '.join(stepped.names)}"))
    for file in filter(None, (out, plot)):
        say(f"wrote {file}")


@contextmanager
def _warnings_said() -> Iterator[None]:
    """Print each StreamWarning of the block to standard error, as soon as it occurs."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", StreamWarning)
        warnings.showwarning = lambda message, *_: say(f"warning: {message}", ERR)
        yield


def _next_text(stream: Stream, folder: Path) -> str:
    """Return a text with the shell command that adds the stream's next tick."""
    done = len(stream)
    if done == stream.plan.over.n:
        return "all ticks are done: more of them take a new stream, on a budget of its own"
    time = stream.plan.over.time(done + 1)
    return (
        f"next{time and f', {time}'}: gaussnoise stream tick {shlex.quote(str(folder))} TABLE "
        f"--tick {done + 1}"
    )
