"""Ticks made by Spark's executors in steps that can be repeated after any interruption."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np

from domains.errors import DomainTooLargeError

from ...errors import ParameterError, StreamError
from ...files.commits import Commits
from ...files.disk import read_json, remove, remove_at_once
from ...tables.release.files import write_texts
from ...tables.release.record import ASSUMED
from ...tables.release.store import StoredTables
from ...tables.schema.schema import OnOutside
from ...tables.spark.layout import Layout
from ...tables.spark.matrix import MOST_HELD
from ...tables.spark.records import SparkRecords, in_spark
from ...tables.spark.releases import check_total
from ...tables.spark.run import TASK, Run
from ...tables.spark.work import Work
from ..files import tick_record, tick_texts, write_record
from ..measure import check_period
from ..plan import StreamPlan
from ..registry import Turn, turn_of, written
from ..state import MOST_BYTES, AbstractCommit, AbstractMaker, State
from . import tasks
from .tasks import CUMULATIVE, PERIOD, Drawing, Kept

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COUNTED, _MEASURED = "exact-counts", "measured"


@final
@dataclass(frozen=True, eq=False)
class GroupsCommit(AbstractCommit):
    """The record of one tick whose counts and measurements are in the files of a folder.

    Attributes:
        folder: the folder's name.
        digests: the sha256 of the files.
    """

    rows: int
    sha256: str
    registry: str | None
    folder: str
    digests: Mapping[str, str]

    @property
    def measurements_sha256(self) -> str:
        """The sha256 of the list of all files of noisy measurements; it has each file's sha256."""
        public = {
            name: own for name, own in self.digests.items() if name.startswith(f"{_MEASURED}/")
        }
        return hashlib.sha256(json.dumps(sorted(public.items())).encode()).hexdigest()


@final
@dataclass(frozen=True, eq=False)
class Executors(AbstractMaker[GroupsCommit]):
    """The object that lets Spark's executors count rows, draw noise, and write tables.

    Attributes:
        plan: the plan of the stream.
        state: the files kept between ticks.
        on_outside: the rule for rows with values outside the schema.
        layout_sha256: the sha256 of the layout that the stream was begun with.
        table: a Spark dataframe of the new rows.
    """

    plan: StreamPlan
    state: State
    on_outside: OnOutside
    layout_sha256: str
    table: "DataFrame"

    def __post_init__(self) -> None:
        if layout_of(self.plan).sha256 != self.layout_sha256:
            raise StreamError(
                "stream: it was begun by another version of the program, or of its libraries, "
                "which measures otherwise; hint: go on with that one"
            )

    @cached_property
    def drawing(self) -> Drawing:
        """The plan of the stream, and the layout of tables and residuals for Spark's tasks."""
        return Drawing(self.plan, layout_of(self.plan))

    @property
    def most_bytes(self) -> int:
        """An upper bound on the bytes of the file that lists the files of a tick."""
        return 2**20 + 2**9 * len(self.drawing.layout.groups)

    @cached_property
    def _names(self) -> list[str]:
        """The names of all files of exact counts and noisy measurements of one tick."""
        parts = range(len(self.drawing.layout.groups))
        folders = Path(_COUNTED), Path(_MEASURED)
        return [tasks.kept_name(folder, part) for folder in folders for part in parts]

    def read(self, content: Any, sha256: str) -> GroupsCommit:
        """Return the record of a tick from ``content``, the parsed file.

        Raise ValueError unless it lists all files; their sha256 is checked only when they are read.
        """
        digests, folder = content["files"], content["folder"]
        if (
            sorted(digests) != self._names
            or not all(isinstance(own, str) for own in digests.values())
            or type(content["rows"]) is not int
            or Path(folder).name != folder
            or not (self.state.private / folder).is_dir()
        ):
            raise ValueError
        return GroupsCommit(content["rows"], sha256, content.get("registry"), folder, digests)

    def drawn(self, tick: int, commits: list[GroupsCommit]) -> GroupsCommit:
        """Count the rows of a tick, draw noise, and return the record of their files.

        The record is on disk before this method returns.

        Files that a killed driver committed for the same rows are used. Files for other rows are
        deleted; no other user has seen them.
        """
        token = secrets.token_hex(8)
        self.run.check_file_system(self.state.private / f"{tick:04d}-{token}.probe", token)
        private = self.state.private
        turn = turn_of(private, self.plan.over, [commit.registry for commit in commits])
        work, records = self._begun(tick, turn)
        try:
            digests = self._measured(work, records, commits)
            rows = records.total
        finally:
            records.close()
        content = {"rows": rows, "folder": work.folder.name, "files": digests}
        registry = written(private, turn)
        sha256 = self.state.commit(content | registry, commits)
        remove(work.key)
        return GroupsCommit(rows, sha256, registry.get("registry"), work.folder.name, digests)

    def _begun(self, tick: int, turn: Turn | None) -> tuple[Work, SparkRecords]:
        """Return the work folder of a tick, which may be begun already, and the coded rows."""
        for folder in sorted(self.state.private.glob(f"{tick:04d}-*")):
            work = Work(folder)
            if work.begun and not folder.suffix:  # with a suffix, its removal was interrupted
                records = self._records(work, turn)
                if work.is_of(records):
                    return work, records
                records.close()
            remove_at_once(folder)
        work = Work(self.state.private / f"{tick:04d}-{secrets.token_hex(8)}")
        records = None
        try:
            work.make()
            work.make_key()
            (work.folder / _COUNTED).mkdir()
            records = self._records(work, turn)
            self._check_rows(tick, records)
            work.keep_records(records.fingerprint)
        except BaseException:
            if records is not None:
                records.close()
            remove_at_once(work.folder)
            raise
        return work, records

    @cached_property
    def run(self) -> Run:
        """The Spark dataframe of the rows, and the methods that run tasks on it."""
        return Run(self.plan.one_tick, self.drawing.layout, self.table, self.on_outside)

    def _records(self, work: Work | None, turn: Turn | None) -> SparkRecords:
        """Return rows with ticks and signs; ``turn`` limits which persons are counted."""
        return self.run.records(work, *self.plan.over.columns, admission=turn)

    def _check_rows(self, tick: int, records: SparkRecords) -> None:
        """Raise DataError if any row, even one that is not counted, is of a wrong tick."""
        over = self.plan.over
        if over.period is None:
            return
        every = records if records.limit is None else self._records(None, None)
        try:
            _ = every.total
            column = f"c{len(self.run.plan.asked.used)}"
            found = in_spark(TASK, lambda: every.coded.groupBy(column).count().collect())
        finally:
            if every is not records:
                every.close()
        rows = np.zeros(over.n, dtype=np.int64)
        for row in found:
            rows[row[column] - 1] += row["count"]
        check_period(over, tick, rows)

    def _measured(
        self, work: Work, records: SparkRecords, commits: list[GroupsCommit]
    ) -> dict[str, str]:
        """Write missing files of a tick's counts and measurements; return {file: sha256} of all."""
        counted = Commits(work.folder / _COUNTED, work.aside)
        places = {_COUNTED: counted, _MEASURED: work.measured}
        split = {name: name.split("/") for name in self._names}
        found = {name: places[folder].digest(file) for name, (folder, file) in split.items()}
        before = [self._kept(commit) for commit in commits]
        measure = partial(
            tasks.measure, self.drawing, before, records.total, counted, work.measured
        )
        name = partial(tasks.kept_name, work.measured.folder)
        return self.run.counted(work, records, found, name, measure)

    def _kept(self, commit: GroupsCommit) -> Kept:
        folder = self.state.private / commit.folder
        return Kept(commit.rows, folder / _COUNTED, folder / _MEASURED, commit.digests)

    def write(self, folder: Path, commits: list[GroupsCommit]) -> None:
        """Write the tables, texts and record of the last committed tick into ``folder``.

        Files of tables that an interrupted program finished are used.
        """
        plan, tick, layout = self.plan, len(commits), self.drawing.layout
        work = Work(self.state.private / commits[-1].folder)
        work.result.mkdir(exist_ok=True)
        work.aside.mkdir(exist_ok=True)
        before, digests = self._before(tick - 1)
        kept = [self._kept(commit) for commit in commits]
        covariances = {
            what: plan.covariance(plan.window(first, tick))
            for what, first in ((PERIOD, tick), (CUMULATIVE, 1))
        }
        parts = partial(
            tasks.write_tables, self.drawing, kept, covariances, before, digests, work.published
        )
        files = dict(self.run.in_tasks(range(len(layout.groups)), parts))
        write_texts(work.result, tick_texts(plan, tick))
        written = {
            what: StoredTables(work.result / what, layout.table_places)
            for what in (CUMULATIVE, PERIOD)
        }
        key, measurements = self.state.key, commits[-1].measurements_sha256
        rule, result = self.on_outside, work.result
        record = tick_record(plan, key, tick, measurements, written, result, rule, files)
        write_record(record | {"executors": {"how": ASSUMED}}, result)
        result.rename(folder)
        self.tidy(commits)

    def _before(self, tick: int) -> tuple[StoredTables | None, Mapping[str, str]]:
        """Return a tick's cumulative tables, and {file name: sha256} of the files in its folder."""
        if not tick:
            return None, {}
        folder = self.state.tick_folder(tick)
        try:
            files = read_json(folder / "release.json", MOST_BYTES)["files"]
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise StreamError(
                f"stream: {folder} is not a complete tick ({type(error).__name__})"
            ) from None
        return StoredTables(folder / CUMULATIVE, self.drawing.layout.table_places), files

    def tidy(self, commits: list[GroupsCommit]) -> None:
        """Delete files that later ticks do not need: keys of tasks, and unfinished work."""
        published = {commit.folder for commit in commits}
        for folder in self.state.private.glob("[0-9]*-*"):
            if folder.name in published:
                for path in folder.iterdir():
                    if path.name not in (_COUNTED, _MEASURED):
                        remove(path)
            elif int(folder.name.partition("-")[0]) <= len(commits):
                remove(folder)


def layout_of(plan: StreamPlan) -> Layout:
    """Return the layout of a stream: Spark's tasks, and the whole tables that each measures."""
    return Layout.of(plan.one_tick, plan.query, MOST_HELD)


def check_stream(plan: StreamPlan, format: str) -> None:
    """Raise an error for a stream that executors cannot run.

    Raises:
        ParameterError: tables are in CSV files, rows have signs, or only the total is released.
        DomainTooLargeError: a table is too large for one task.
    """
    if format != "parquet":
        raise ParameterError(
            f'start: executors=True expects format="parquet", got format={format!r}'
        )
    if plan.over.corrections is not None:
        raise ParameterError(
            "start: executors=True takes no corrections=; hint: without executors=True, Spark "
            "still counts where the rows are"
        )
    tables = plan.tables
    largest = max(map(tables.cells, tables.subsets))
    if largest > MOST_HELD:
        raise DomainTooLargeError(
            f"start: a table of {largest:.3g} cells, more than the 2^26 that one task of an "
            "executor holds: those of streams are not cut into pieces, as those of releases are; "
            "hint: fewer attributes in one table, or coarser ones"
        )
    check_total("start", plan.one_tick)
