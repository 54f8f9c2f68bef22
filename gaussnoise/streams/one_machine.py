"""Ticks that the calling program itself counts, draws and writes, without Spark's executors."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ..privacy.sampler import noise_stream, sampling_threads
from ..solvers.tables.residuals import Subset
from ..tables.release.files import write_texts
from ..tables.release.store import FileFormat, StoredTables, table_writer
from ..tables.schema.schema import OnOutside
from .files import deviation_in, tick_record, tick_statement, tick_texts, write_record
from .measure import counted, estimated, measured, parts_of
from .plan import StreamPlan, drawn_query
from .published import stored
from .registry import turn_of, written
from .state import AbstractCommit, AbstractMaker, State

Counts = NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False)
class Commit(AbstractCommit):
    """The exact counts and noisy measurements of one tick, as they are on disk.

    Attributes:
        counts: exact counts of every planned marginal.
        noisy: the noisy measurements of every residual.
    """

    rows: int
    sha256: str
    registry: str | None
    counts: Mapping[Subset, Counts]
    noisy: Mapping[Subset, Sequence[int]]

    @property
    def measurements_sha256(self) -> str:
        """The sha256 of all noisy measurements of the tick, as a JSON list."""
        values = [list(values) for values in self.noisy.values()]
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()


@final
@dataclass(frozen=True, eq=False)
class OneMachine(AbstractMaker[Commit]):
    """The object that counts rows, adds noise and writes tables on this machine alone.

    Attributes:
        plan: the plan of the stream.
        state: the files kept between ticks.
        format: the format of table files.
        on_outside: the rule for rows with values outside the schema.
        table: the new rows.
    """

    plan: StreamPlan
    state: State
    format: FileFormat
    on_outside: OnOutside
    table: object

    @property
    def most_bytes(self) -> int:
        """An upper bound on the bytes of the file of a tick's counts and measurements."""
        return 2**20 + 32 * self.plan.tables.dim + 256 * self.plan.query.count

    def read(self, content: Any, sha256: str) -> Commit:
        """Return the counts and measurements of a tick from ``content``, the parsed file.

        Raise ValueError unless every table has all cells, and all tables count the same number of
        rows.
        """
        plan = self.plan
        subsets, parts = plan.tables.subsets, list(parts_of(plan))
        shapes = [tuple(plan.schema.sizes[i] for i in S) for S in subsets]
        counts = {
            S: np.array(cells, dtype=np.int64).reshape(shape)
            for S, cells, shape in zip(subsets, content["counts"], shapes, strict=True)
        }
        noisy = dict(zip(parts, content["measured"], strict=True))
        rows = content["rows"]
        if {int(table.sum()) for table in counts.values()} != {rows} or not all(
            len(noisy[T]) == plan.query.rows(T) and all(type(x) is int for x in noisy[T])
            for T in parts
        ):
            raise ValueError
        return Commit(rows, sha256, content.get("registry"), counts, noisy)

    def drawn(self, tick: int, commits: list[Commit]) -> Commit:
        """Count the rows of a tick, draw noise, and return counts and measurements.

        Both are on disk before this method returns. ``commits`` are those of all earlier ticks.
        """
        plan, private = self.plan, self.state.private
        turn = turn_of(private, plan.over, [commit.registry for commit in commits])
        counts = counted(plan.one_tick, plan.over, tick, self.table, self.on_outside, turn)
        with noise_stream(
            drawn_query(plan.query).draw, plan.query.count, sampling_threads()
        ) as noise:
            noisy = measured(plan, [*(commit.counts for commit in commits), counts], noise)
        subsets = plan.tables.subsets
        rows = int(counts[subsets[0]].sum())
        content = {
            "rows": rows,
            "counts": [counts[S].reshape(-1).tolist() for S in subsets],
            "measured": [list(noisy[T]) for T in parts_of(plan)],
            **(registry := written(private, turn)),
        }
        sha256 = self.state.commit(content, commits)
        return Commit(rows, sha256, registry.get("registry"), counts, noisy)

    def write(self, folder: Path, commits: list[Commit]) -> None:
        """Write the tables, texts and record of the last committed tick into ``folder``."""
        plan, tick = self.plan, len(commits)
        folder.mkdir(exist_ok=True)
        own = estimated(plan, [commit.noisy for commit in commits], commits[-1].rows)
        before = None
        if tick > 1:
            before = stored(self.state, plan, self.on_outside, "cumulative", tick - 1)
        total = own if before is None else {S: np.asarray(before[S] + own[S]) for S in own}
        written: dict[str, StoredTables] = {}
        notes = tick_statement(plan, tick)
        for what, tables, first in (("cumulative", total, 1), ("period", own, tick)):
            (folder / what).mkdir()
            with table_writer(
                folder / what,
                plan.schema,
                plan.tables.subsets,
                deviation_in(plan.covariance(plan.window(first, tick))),
                self.format,
                notes,
            ) as writer:
                for S in plan.tables.subsets:
                    writer.write(S, tables[S])
            written[what] = writer.tables
        write_texts(folder, tick_texts(plan, tick))
        measurements = commits[-1].measurements_sha256
        key, rule = self.state.key, self.on_outside
        write_record(tick_record(plan, key, tick, measurements, written, folder, rule), folder)

    def tidy(self, commits: list[Commit]) -> None:
        """Do nothing: a tick is committed as one file, so no partial work exists."""
