"""A stream on disk, which runs tick by tick, and continues after interruptions."""

import json
import os
import re
import secrets
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.errors import DomainTooLargeError

from ..errors import (
    GaussNoiseError,
    LedgerError,
    OutputError,
    ParameterError,
    StreamError,
    StreamWarning,
    another_format,
)
from ..files.disk import MALFORMED, aside, file_digest, read_json, save_text
from ..numerics.intervals import Contrast, Contrasts
from ..privacy.ledger import Ledger
from ..privacy.ledger_entries import Note
from ..privacy.protected import Protected
from ..privacy.sampler import noise_stream
from ..tables.planning.again import planned_from
from ..tables.release.contrasts import Weights
from ..tables.release.files import check_format
from ..tables.release.noisy import Names
from ..tables.release.release import TableRelease
from ..tables.release.store import FileFormat
from ..tables.release.stored import difference
from ..tables.release.table import AbstractEstimates
from ..tables.schema.schema import OnOutside
from . import registry
from .counted_files import counted_before, noted
from .files import multipliers_in, strategy_in, stream_record, summary_text
from .plan import MOST_HERE, StreamPlan, continual
from .published import stored
from .series import SeriesTable
from .state import (
    MOST_BYTES,
    AbstractMaker,
    C,
    State,
    create_folders,
    delete_empty_folders,
    write_private,
)
from .tables import StreamTables, combined, window
from .ticks import Ticks

if TYPE_CHECKING:
    from narwhals.typing import EagerAllowed

    from ..tables.counting.check_result import CheckResult

Array = NDArray[np.float64]

FORMAT = "gaussnoise.stream/2"
_LONGEST_ID = 180
_KEY = re.compile(r"[0-9a-f]{32}")  # the random name of a stream
_LEDGER = "ledger.json"  # a file of the private folder that holds the ledger's path


@final
@dataclass(frozen=True, eq=False)
class Stream:
    """A stream in a folder. At every tick, it counts new rows and publishes tables.

    ``path/stream.json`` and ``path/ticks`` are public. ``path/private`` is NOT public: it holds the
    exact counts of every tick, which later ticks need, and only its owner may read it. Keep it as
    confidential as the rows. Never continue two copies of a stream: a tick that is drawn twice,
    with different noise, costs its budget twice.

    Formal guarantees:
        * The noise of every published tick is drawn once. The publication is computed from
          measurements that are already on disk, so it is the same after any number of
          interruptions. No person has seen noise that was not yet on disk when the program stopped.
        * No tick is left out, and no tick runs under the number of another. After an interruption,
          the same call can be repeated until it succeeds; it never counts rows twice.
        * Whether a tick is drawn, read again or refused depends on its number and the number of
          published ticks, which are public, and on whether a file was counted before (a file is
          recognised by its path, size and time). It never depends on exact counts.
        * If the plan enforces participation, counting a tick's rows and updating the registry of
          persons happen together or not at all.
        * An older copy of ``private`` is refused, and so is one of ``ticks``. An older copy of both
          together looks like the stream as it was then, and is refused only if the stream is
          charged to a ledger, which lists its ticks.

    Attributes:
        plan: the plan of the stream.
        path: the path of the folder.
        format: the format of table files.
        on_outside: the rule for rows with values outside the schema.
        state: the files kept between ticks.
        ledger: the ledger that was charged; None if there is none, or its path is not known.
        id: the stream's name in the ledger; None without a ledger.
        layout_sha256: the sha256 of the assignment of work to executors; None on one machine.

    >>> import pyarrow as pa, tempfile
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(52))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stream = plan.start(f"{folder}/weekly")
    ...     for week in (1, 2):
    ...         total = stream.tick(pa.table({"sex": ["F", "M", "F"] * 400}), number=week)
    ...     more = stream.window(2, 2)["sex"]
    >>> print(total.times, more.estimate.shape)
    ticks 1 to 2 (2,)
    """

    plan: StreamPlan
    path: Path
    format: FileFormat
    on_outside: OnOutside
    state: State = field(repr=False)
    ledger: Ledger | None = field(repr=False, default=None)
    id: str | None = None
    layout_sha256: str | None = None

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], ledger: Ledger | str | os.PathLike[str] | None = None
    ) -> "Stream":
        """Return the stream in a folder, to continue or to read it.

        A stream without its private folder can only be read.

        Args:
            path: the stream's folder.
            ledger: the new path of the stream's ledger, if the ledger was moved.

        Raises:
            OutputError: there is no stream, or it was calibrated by another version or machine.
            LedgerError: the stream's ledger is missing, or ``ledger`` is given although the stream
                is charged to none.
        """
        return _opened(_folder("open", path), None if ledger is None else Ledger.of(ledger))

    def tick(
        self, table: object, *, number: int | None = None, same_file: bool = False
    ) -> TableRelease:
        """Count the new rows of one tick; publish the tables of the tick, and of all ticks so far.

        Args:
            table: the new rows: a dataframe (anything narwhals reads) or the path of a CSV or
                Parquet file; a tick without rows is a table without rows. Executors take a Spark
                dataframe.
            number: the number of the tick; only the first tick can be run without it. An
                interrupted call can be repeated: if the tick was drawn, its tables are only read.
                Rows are not compared with earlier ones: the same rows under a new number are
                counted again.
            same_file: whether to count a file again that an earlier tick counted.

        Returns:
            The tables of all rows so far.

        Raises:
            DataError: the table breaks the schema, or has rows of other ticks. Under a ledger the
                message does not say how.
            ParameterError: ``number`` is not the number of a tick.
            StreamError: this is not the next tick; a tick after the first has no number; a file of
                the table, given by its path, was counted by an earlier tick and has not changed
                since; the folder was changed, or is an older copy; or others than its owner can
                open its private folder.
            LedgerError: the stream's ledger is missing, or does not agree with ``stream.json``.
            OutputError: the folder cannot be written; the same tick can be run again.

        Warns:
            StreamWarning: with ``same_file``, rows of a file that was counted before count twice.
        """
        from ..tables.reading.declared import check_columns
        from ..tables.reading.files import written_in
        from ..tables.reading.frames import frame_backend
        from ..tables.release.publish import columns_of

        n = self.plan.over.n
        if number is not None:
            self.plan.over.check_number("tick", number)
        backend = frame_backend(table)
        _ = self.plan.rho_charged
        with self.state.alone():
            ledger = self._charged_to()
            maker = self._maker(table)
            commits = self.state.commits(n, maker)
            done = self.state.published()
            if (
                len(commits) > done
            ):  # a tick was drawn, and its program died: publish it, and draw nothing again
                self._publish(done + 1, commits, maker, ledger)
                done += 1
            maker.tidy(commits[:done])
            registry.tidied(self.state.private, self.plan.over, done)
            if number is None:
                if done:
                    new = f", number={done + 1} counts new rows" if done < n else ""
                    raise StreamError(
                        f"tick: expected number= after the first tick, got none; hint: "
                        f"number={done} reads the last tick again{new}"
                    )
                number = 1
            if number == done + 1:
                own = self.plan.one_tick
                wanted = [*columns_of(own), *(column.name for column in self.plan.over.columns)]
                check_columns(written_in(table, own.schema.file), wanted)
                if again := counted_before(self.state.private, number, table):
                    path, before = next(iter(again.items()))
                    more = f" (and {len(again) - 1} more)" if len(again) > 1 else ""
                    what = f"{path!r}{more} was counted at tick {before} and has not changed since"
                    if not same_file:
                        raise StreamError(
                            f"tick: expected new rows for tick {number}, got a file again: {what}; "
                            f"hint: number={before} reads that tick again; "
                            "same_file=True counts its rows twice"
                        )
                    warnings.warn(f"tick: {what}: its rows count twice", StreamWarning, 2)
                noted(self.state.private, number, table)
                self._publish(number, commits, maker, ledger)
                registry.tidied(self.state.private, self.plan.over, number)
            elif number > done:
                raise StreamError(
                    f"tick: expected tick {done + 1} next, got {number}; hint: a table without "
                    "rows for it"
                )
        return self._total(number, backend)

    def forget(self) -> None:
        """Delete the registry of persons. After this, the stream can only be read.

        After the last tick, the registry is deleted automatically. Exact counts stay in the private
        folder.

        Raises:
            StreamError: the stream keeps no registry.
            OutputError: the registry cannot be deleted.

        >>> import pyarrow as pa, tempfile
        >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
        >>> over = gn.streams.Ticks(52, reports=1, enforced=True)
        >>> plan = gn.plan(schema, 1, gn.zCDP(0.1), person="id", over=over)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     stream = plan.start(f"{folder}/weekly")
        ...     total = stream.tick(pa.table({"sex": ["F", "M"], "id": [1, 2]}), number=1)
        ...     stream.forget()
        ...     registry = list(stream.state.private.glob("registry*"))
        >>> registry
        []
        """
        if not self.plan.over.enforced:
            raise StreamError(
                "forget: this stream keeps no registry of persons; hint: "
                "Ticks(..., enforced=True) would"
            )
        with self.state.alone():
            registry.forgotten(self.state.private)

    def _maker(self, table: object) -> AbstractMaker[Any]:
        """Return the object that counts, draws and writes ticks, here or by Spark's executors."""
        if self.layout_sha256 is None:
            from .one_machine import OneMachine

            return OneMachine(self.plan, self.state, self.format, self.on_outside, table)
        from ..tables.spark.records import check_spark
        from .spark.ticks import Executors

        rows = check_spark(table)
        return Executors(self.plan, self.state, self.on_outside, self.layout_sha256, rows)

    def _publish(
        self, tick: int, commits: list[C], maker: AbstractMaker[C], ledger: Ledger | None
    ) -> None:
        """Publish the folder of a tick; draw its measurements first if they are not on disk."""
        target = self.state.tick_folder(tick)

        def write(folder: Path) -> None:
            known = commits if len(commits) >= tick else [*commits, maker.drawn(tick, commits)]
            maker.write(folder, known[:tick])

        if ledger is None:
            with aside(target, "tick") as scratch:
                write(scratch)
        else:
            ledger.once(
                f"{self.id} tick {tick}",
                cost=0.0,
                request={"stream": self.state.key, "tick": tick},
                protects=_protected(self.plan),
                target=target,
                write=write,
                read=lambda folder: None,
                draws=0,
            )

    def _charged_to(self) -> Ledger | None:
        """Return the stream's ledger, or None; raise LedgerError if the ledger was not charged."""
        # the entries of ticks get the note of that charge, unless the ledger object has its own
        if self.id is None:
            return None
        if self.ledger is None:
            raise LedgerError(
                f"tick: this stream is charged to a ledger as {self.id!r}, and "
                f"{self.state.private / _LEDGER}, which says where that is, is missing; hint: "
                "Stream.open(path, ledger=...), or --ledger in the shell"
            )
        mine = [
            entry
            for entry in self.ledger.entries()
            if entry.id == self.id and entry.state == "sealed"
        ]
        if not mine or mine[-1].sha256 != file_digest(self.path / "stream.json"):
            raise LedgerError(
                f"tick: {self.path / 'stream.json'} is not what was charged under {self.id!r} in "
                "the ledger"
            )
        note = mine[-1].purpose, mine[-1].requested_by, mine[-1].approval
        return self.ledger if self.ledger.note.lines else self.ledger.noted(**Note(*note).lines)

    def __len__(self) -> int:
        """Return the number of published ticks of the stream."""
        return self.state.published()

    @property
    def tables(self) -> StreamTables:
        """All published tables. Their files are checked before they are read.

        Raises:
            StreamError: files are missing or were changed.
        """
        return self._tables("pyarrow")

    def _tables(self, backend: "EagerAllowed") -> StreamTables:
        ticks = range(1, len(self) + 1)
        periods = [stored(self.state, self.plan, self.on_outside, "period", tick) for tick in ticks]
        return StreamTables(self.plan, True, periods, backend, self.on_outside)

    def _total(self, tick: int, backend: "EagerAllowed") -> TableRelease:
        return self._from_folder(tick, "cumulative", 1, backend)

    def _from_folder(
        self, tick: int, which: str, first: int, backend: "EagerAllowed" = "pyarrow"
    ) -> TableRelease:
        """Return the tables of ticks ``first`` to ``tick`` from the folder of ``tick``."""
        weights = window(self.plan, first, tick, len(self))
        tables = stored(self.state, self.plan, self.on_outside, which, tick)
        found = tables if self.plan.needs_executors else dict(tables)
        what = self.plan.over.said(first, tick)
        return combined(self.plan, weights, found, what, backend, self.on_outside)

    def period(self, tick: int) -> TableRelease:
        """Return the counts of the rows of one tick; its files are checked."""
        return self._from_folder(tick, "period", tick)

    def total(self, tick: int | None = None) -> TableRelease:
        """Return the counts of all rows up to a tick, by default the last one."""
        return self._total(len(self) if tick is None else tick, "pyarrow")

    def window(self, first: int, last: int) -> TableRelease:
        """Return the tables that count the rows of ticks ``first`` to ``last``."""
        return self.tables.window(first, last)

    def combined(self, weights: "ArrayLike") -> TableRelease:
        """Return ``Σ_t weights[t] · (counts of tick t)``: see :meth:`StreamTables.combined`."""
        return self.tables.combined(weights)

    def contrast(self, weights: "Mapping[int, Weights]") -> Contrast:
        """Return a linear combination of cells of several ticks, with its exact standard deviation.

        See :meth:`StreamTables.contrast`.
        """
        return self.tables.contrast(weights)

    def contrasts(self, combinations: "Sequence[Mapping[int, Weights]]") -> Contrasts:
        """Return linear combinations of cells of several ticks, with their exact covariance.

        See :meth:`StreamTables.contrasts`.
        """
        return self.tables.contrasts(combinations)

    def series(self, asked: "Names | Callable[[TableRelease], AbstractEstimates]") -> SeriesTable:
        """Return one table, or a function of tables, over time: the first axis is the tick.

        See :meth:`StreamTables.series`.
        """
        return self.tables.series(asked)

    def __repr__(self) -> str:
        return f"Stream({str(self.path)!r}, {self.plan.over!r})"


def started(
    plan: StreamPlan,
    path: str | os.PathLike[str],
    *,
    ledger: Ledger | str | os.PathLike[str] | None,
    id: str | None,
    format: FileFormat,
    on_outside: OnOutside,
    executors: bool,
) -> Stream:
    """Create the folder of a stream, charge the ledger, and return the stream.

    The arguments are those of :meth:`StreamPlan.start`.
    """
    from ..tables.release.publish import check_outside

    plan.schema.check_confirmed("start")
    folder = _folder("start", path)
    more: dict[str, object] = {}
    if executors:
        from .spark.ticks import check_stream, layout_of

        check_stream(plan, format)
        more = {"layout_sha256": layout_of(plan).sha256}
    else:
        check_size("start", plan)
    check_format(format, plan.schema, plan.tables.subsets)
    check_outside("start", plan.one_tick, on_outside)
    if (ledger is None) != (id is None):
        raise ParameterError(
            "start: expected ledger= and id= together: a ledger knows streams by their id"
        )
    if id is not None and not (isinstance(id, str) and len(id) <= _LONGEST_ID):
        raise ParameterError(
            f"start: expected an id of 1 to {_LONGEST_ID} characters, got {id!r:.250}"
        )
    book = None if ledger is None else Ledger.of(ledger)
    if book is None and os.path.lexists(folder / "stream.json"):
        raise OutputError(
            f"start: {folder} exists already; hint: gn.streams.Stream.open({str(folder)!r}) goes "
            "on with it"
        )
    key = secrets.token_hex(16)
    record = stream_record(plan, key, format, on_outside) | {"format": FORMAT, "ledger": id} | more
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    summary_text(plan, 1)
    _planned(json.loads(text), folder)  # a stream that could not be opened is not charged
    create_folders(folder)
    try:
        if plan.over.enforced and not os.path.lexists(folder / "stream.json"):
            registry.begun(folder / "private")
        if book is None or id is None:
            save_text(folder / "stream.json", text)
            return _opened(folder, None)
        where = folder / "private" / _LEDGER
        if not os.path.lexists(folder / "stream.json"):
            where.unlink(missing_ok=True)  # left by a killed start that charged nothing
            write_private("start", where, {"ledger": os.path.abspath(book.path)})
        return book.once(
            id,
            cost=plan.rho_charged,
            request=plan.request
            | {"on_outside": on_outside, "format": format}
            | ({"executors": True} if executors else {}),
            protects=_protected(plan),
            target=folder / "stream.json",
            write=lambda scratch: scratch.write_text(text, encoding="utf-8"),
            read=lambda file: _opened(file.parent, book),
            draws=plan.integers,
            privacy=plan.privacy,
        )
    except BaseException:
        if not os.path.lexists(folder / "stream.json"):
            (folder / "private" / _LEDGER).unlink(missing_ok=True)
            registry.forgotten(folder / "private")
            delete_empty_folders(folder)
        raise


def checked(plan: StreamPlan, table: object, number: int | None) -> "CheckResult":
    """Return how many rows of ``table`` a tick would leave out.

    ``number`` is the number of the tick, or None. See :meth:`StreamPlan.check`.
    """
    from ..tables.release import publish
    from .measure import check_ticks

    if number is not None:
        plan.over.check_number("check", number)
        check_ticks(plan.one_tick, plan.over, number, table)
    return publish.checked(plan.one_tick, table, plan.over.columns)


def simulated(
    plan: StreamPlan,
    tables: Sequence[object],
    draw: "Callable[[int], ArrayLike]",
    *,
    on_outside: OnOutside,
) -> StreamTables:
    """Return the tables of the first ticks with simulated noise: NOT private.

    ``tables`` has the rows of every tick; ``draw(count)`` returns that many noise values.
    """
    from ..tables.reading.frames import frame_backend
    from ..tables.release.publish import check_outside
    from .measure import counted, estimated, measured

    check_size("simulate", plan)
    check_outside("simulate", plan.one_tick, on_outside)
    if not isinstance(tables, list | tuple) or len(tables) > plan.over.n:
        raise ParameterError(
            f"simulate: expected a list of at most {plan.over.n} tables, got "
            f"{type(tables).__name__}"
        )
    exact, noisy, periods = [], [], []
    persons = registry.Registry.new()
    for tick, table in enumerate(tables, 1):
        turn = registry.Turn(persons, plan.over, tick) if plan.over.enforced else None
        exact.append(counted(plan.one_tick, plan.over, tick, table, on_outside, turn))
        persons = persons if turn is None else turn.after()
        with noise_stream(draw, plan.query.count, 1) as noise:
            noisy.append(measured(plan, exact, noise))
        periods.append(estimated(plan, noisy, int(next(iter(exact[-1].values())).sum())))
    backend = frame_backend(tables[0]) if tables else "pyarrow"
    return StreamTables(plan, False, periods, backend, on_outside)


def _opened(folder: Path, ledger: Ledger | None) -> Stream:
    """Return the stream in a folder; ``ledger`` is needed only if the ledger's path has changed."""
    try:
        record = read_json(folder / "stream.json", MOST_BYTES)
    except (OSError, ValueError) as error:
        raise OutputError(f"open: {folder} is not a stream ({type(error).__name__})") from None
    plan, key, format, on_outside = _planned(record, folder)
    id, layout = record["ledger"], record.get("layout_sha256")
    where = folder / "private" / _LEDGER
    if ledger is not None and id is None:
        raise LedgerError(f"open: expected no ledger=, since {folder} is charged to none")
    if ledger is None and id is not None and os.path.lexists(where):
        try:
            ledger = Ledger.open(read_json(where)["ledger"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise StreamError(f"open: {where} is damaged ({type(error).__name__})") from None
    return Stream(plan, folder, format, on_outside, State(folder, key), ledger, id, layout)


def _planned(record: Any, folder: Path) -> tuple[StreamPlan, str, FileFormat, OnOutside]:
    """Return plan, key, format and ``on_outside`` of ``stream.json``, or raise OutputError."""
    try:
        if record["format"] != FORMAT:
            raise another_format("open", FORMAT, folder)
        over, key = Ticks(**record["ticks"]), record["stream"]
        format, on_outside = record["table_format"], record["on_outside"]
        if (
            format not in get_args(FileFormat)
            or not isinstance(record["ledger"], str | None)
            or on_outside not in get_args(OnOutside)
            or not _KEY.fullmatch(key)
        ):
            raise ValueError
    except OutputError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise OutputError(f"open: {folder} is not a stream ({type(error).__name__})") from None
    tables = planned_from(record, folder)
    try:
        strategy = strategy_in(record, over, tables.noise.p)
        # strategy and multipliers are those of the record: other versions may compute others
        plan = continual(tables, over, strategy, multipliers_in(record, tables))
        written, ours = record["noise"], stream_record(plan, key, format, on_outside)["noise"]
        same = all(
            written.get(name) == ours[name] for name in ours if name != "query"
        )  # which only describes the plan in words
        same = same and record["request_sha256"] == plan.request_sha256
        expected = stream_record(plan, key, format, on_outside)
        expected |= {name: record[name] for name in ("format", "ledger")}
        if "layout_sha256" in record:
            expected["layout_sha256"] = record["layout_sha256"]
        fault = difference(folder, expected, record, {}, "stream.json")
    except (GaussNoiseError, *MALFORMED) as error:
        raise OutputError(
            f"open: {folder} is not a complete stream ({type(error).__name__})"
        ) from None
    if not same:
        raise OutputError(
            f"open: {folder} was calibrated by another version or machine; hint: its tables can "
            "be read as they are; "
            "go on with the version that began it"
        )
    if fault is not None:
        raise OutputError(f"open: in {folder}, {fault}; hint: the folder as it was written")
    return plan, key, format, on_outside


def check_size(function: str, plan: StreamPlan) -> None:
    """Raise an error for a plan that is too large for one machine.

    Raises:
        DomainTooLargeError: the plan needs executors.
    """
    if plan.needs_executors:
        raise DomainTooLargeError(
            f"{function}: {plan.integers:.3g} noisy integers in {plan.over.n} ticks of "
            f"{plan.tables.dim:.3g} cells, more than {MOST_HERE:.0e} of them; hint: fewer "
            "or smaller marginals, fewer ticks, or Spark dataframes and start(…, executors=True)"
        )


def _protected(plan: StreamPlan) -> Protected:
    """Return the unit that the stream's budget protects, as a ledger records it."""
    # limits on the ticks of a person are part of the unit only where they restrict a person
    reports, rows, person = plan.over.most_reports, plan.rows_per_person, plan.person
    always = reports == plan.over.n or plan.over.enforced
    if always if person is not None else (reports == rows == 1):
        reports = None
    return Protected(
        plan.privacy_unit,
        str(plan.neighbors),
        rows=rows if person is None else None,
        person=person,
        reports=reports,
        apart=plan.over.apart if (reports or 1) > 1 else 1,
    )


def _folder(who: str, path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ParameterError(f"{who}: expected a path, got {type(path).__name__}")
    return Path(os.path.abspath(os.fspath(path)))
