"""Records that Spark's tasks count, by groups of attributes; no process holds all counts."""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, ParameterError
from ...solvers.tables.residuals import Subset
from ..counting.count import CHANGED, Placing
from ..counting.impossible import Excluded
from ..counting.numbers import WEIGHT, WITHOUT, Joint, joined, weight_column, with_sums
from ..counting.persons import PersonLimit
from ..counting.records import code_table, outside_error
from ..reading.frames import guarded, native_frame
from ..schema.numbers import MOST_UNITS, Weight
from ..schema.schema import Attribute, OnOutside

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

T = TypeVar("T")

Counts = NDArray[np.int64]
Parts = Iterator[tuple[int, Counts]]
Piece = tuple[int, Counts, Counts, Counts]  # a group, some cells, low and high digits of counts
Batches = Iterator["pa.RecordBatch"]
Finish = Callable[[Parts], Batches]
Groups = Mapping[int, Subset]

_ROWS_AT_ONCE = 2**18  # records that a task counts at once
_COUNTED = "part int, cell long, count long, high long"
COMMITTED = "part int, name string, digest string"  # columns of a task's report on a committed file


def check_spark(table: object) -> "DataFrame":
    """Return the table, after checking that it is a Spark dataframe with rows that never change.

    Raise ParameterError for other objects, Spark Connect, and dataframes with random values.
    """
    frame = native_frame(table)
    if not (isinstance(frame, nw.LazyFrame) and hasattr(table, "mapInArrow")):
        raise ParameterError(
            f"release: executors=True expects a Spark dataframe, got {type(table).__name__}; hint: "
            "spark.read.parquet(path)"
        )
    plan: Any = getattr(table, "_jdf", None)  # an object of Java
    if plan is None:
        raise ParameterError(
            "release: executors=True expects a dataframe of a Spark session in this program, got "
            "one of Spark Connect, which does not say whether its rows are random; hint: "
            "spark-submit"
        )
    if not in_spark("look at its plan", lambda: plan.queryExecution().analyzed().deterministic()):
        raise ParameterError(
            "release: executors=True expects a dataframe that has the same rows whenever Spark "
            "computes it again, got one with random values or row numbers of its own; hint: write "
            "it to Parquet, and read that"
        )
    return cast("DataFrame", table)


def in_spark(task: str, action: Callable[[], T]) -> T:
    """Return ``action()``; replace an error of Spark by one that reveals nothing about records."""
    return guarded(task, action, engine=nw.Implementation.PYSPARK)


def shuffled_tasks(table: "DataFrame") -> int:
    """Return the number of tasks that Spark's configuration has for shuffled rows."""
    return int(str(table.sparkSession.conf.get("spark.sql.shuffle.partitions")))


@final
@dataclass(frozen=True)
class SparkRecords:
    """Records in Spark, coded as integers and counted by Spark's tasks.

    Attributes:
        table: a Spark dataframe, which has the same rows each time Spark computes it.
        attributes: the columns to read, at least one.
        on_outside, limit, weight, unit, impossible: as for
            :func:`gaussnoise.tables.counting.count.count_marginals`.
        joint: the sets of clipped numbers that occur together in some table.
    """

    table: "DataFrame"
    attributes: Sequence[Attribute]
    on_outside: OnOutside
    limit: PersonLimit | None
    weight: Weight | None
    unit: int
    impossible: Sequence[Excluded]
    joint: Joint

    @cached_property
    def _read(self) -> list[Attribute]:
        return [*self.attributes, *([] if self.weight is None else [weight_column(self.weight)])]

    @cached_property
    def coded(self) -> "DataFrame":
        """The dataframe with each record coded as integers, cached in Spark.

        Raises:
            DataError: the table breaks the schema; the message names column and rule, never a
                value.
        """
        coded: Any = code_table(
            self.table, self._read, self.on_outside, self.limit, self.impossible
        )
        if self.unit > 1:
            coded = with_sums(coded, self.attributes, self.weight, self.unit, self.joint)
        return in_spark(_TASK, lambda: coded.to_native().persist())

    @property
    def total(self) -> int:
        """The sum of the cells of every table: the number of rows, in units. It is NOT private.

        Raises:
            DataError: some row has no cell.
        """
        return self._total_and_hashes[0]

    @property
    def fingerprint(self) -> str:
        """A text that identifies the rows, in any order. It is NOT private.

        The text consists of the number of rows in units and the sum of the rows' hashes.

        Raises:
            DataError: some row has no cell.
        """
        return " ".join(map(str, self._total_and_hashes))

    @cached_property
    def _total_and_hashes(self) -> tuple[int, int]:
        """The number of rows times ``unit``, or their total weight; and the sum of their hashes."""
        from pyspark.sql import functions

        strict = [i for i, a in enumerate(self.attributes) if a.other is None]
        wanted = {f"c{i}": functions.min(f"c{i}") for i in strict}
        wanted["rows"] = functions.count(functions.lit(1))
        wanted["hashes"] = functions.sum(
            functions.xxhash64(*self.coded.columns).cast("decimal(38,0)")
        )
        if self.weight is not None:
            wanted |= {WEIGHT: functions.sum(WEIGHT), WITHOUT: functions.max(WITHOUT)}
        columns = [column.alias(name) for name, column in wanted.items()]
        [found] = in_spark(_TASK, lambda: self.coded.agg(*columns).collect())
        row = found.asDict()
        outside = [i for i in strict if row[f"c{i}"] == 0]
        if row.get(WITHOUT):
            outside.append(len(self.attributes))
        if outside:
            raise outside_error(self._read[outside[0]])
        total = row["rows"] * self.unit if self.weight is None else row[WEIGHT] or 0
        return total, int(row["hashes"] or 0)

    def largest(self, S: Subset) -> int:
        """Return a bound on the sum of the absolute counts in the table of S. NOT private.

        A row counts as m units. It adds m − v and v units to the two cells of a clipped number,
        where v is the number in units. So its absolute counts add up to at most m + 2 v.
        """
        grows = any(self.attributes[i].unit is not None for i in S)
        return self.total * (1 + 2 * int(MOST_UNITS) if grows else 1)

    def counted(self, groups: Groups, finish: Finish) -> "DataFrame":
        """Return a Spark dataframe of the results of ``finish``, which tasks call with the counts.

        Args:
            groups: {number of a group: its attributes}.
            finish: a function of pairs (number of a group, its counts, flat in C order). It yields
                Arrow record batches with the columns (part, name, digest).

        A task fails if the counts of a group do not include all records: the table has changed.
        """
        sizes = [a.size for a in self.attributes]
        cells = {part: math.prod(sizes[i] for i in S) for part, S in groups.items()}
        count = partial(_counted, self._placing, dict(groups))
        return self._finished(count, cells, self.total, finish)

    def counted_in_pieces(self, S: Subset, starts: Sequence[int], finish: Finish) -> "DataFrame":
        """Return the same as :meth:`counted`, for pieces of one table too large for one task.

        The caller must check that all pieces together count all records.

        Args:
            S: the attributes of the table.
            starts: the index of the first cell of each piece, in the flat table.
            finish: as for :meth:`counted`, with indices of pieces for numbers of groups.
        """
        end = math.prod(self.attributes[i].size for i in S)
        cells = dict(enumerate(np.diff([*starts, end]).tolist()))
        count = partial(_counted_in_pieces, self._placing, S, np.array(starts, dtype=np.int64))
        return self._finished(count, cells, None, finish)

    @property
    def _placing(self) -> Placing:
        return Placing(self.attributes, self.weight, self.unit, self.joint)

    def _finished(
        self,
        count: Callable[[Batches], Batches],
        cells: Mapping[int, int],
        total: int | None,
        finish: Finish,
    ) -> "DataFrame":
        """Return a dataframe with the rows that ``finish`` yields from the counts, in tasks."""
        from pyspark.sql import functions

        # cells: those of each group or piece; total: the sum of a group's counts, None: not checked
        session = self.coded.sparkSession
        # An extra row, after the last cell, marks the end of each part. So a part without records
        # is measured too, and a part whose rows do not all arrive, because Spark stops a task, is
        # not.
        parts, ends = (", ".join(map(str, values)) for values in (cells, cells.values()))
        nothing = (
            session.range(1)
            .selectExpr(f"explode(map_from_arrays(array({parts}), array({ends}))) as (part, cell)")
            .selectExpr("part", "cast(cell as long) as cell", "0L as count", "0L as high")
        )
        # all counts of a group or piece come to one task
        tasks = min(len(cells), shuffled_tasks(self.coded))
        return (
            self.coded.mapInArrow(count, _COUNTED)
            .unionAll(nothing)
            .groupBy("part", "cell")
            .agg(functions.sum("count").alias("count"), functions.sum("high").alias("high"))
            .repartition(tasks, "part")
            .sortWithinPartitions("part", "cell")
            .mapInArrow(partial(_finished, cells, total, finish), COMMITTED)
        )

    def close(self) -> None:
        """Remove the coded records from Spark's cache."""
        if "coded" in self.__dict__:
            with contextlib.suppress(Exception):
                self.coded.unpersist()


_TASK = "count the table's rows"


def _counted(placing: Placing, groups: Groups, batches: Batches) -> Batches:
    """Yield the nonzero counts of one task's records, as rows (group, cell, count, high digits)."""
    # a cell may come several times, since the records are counted block by block
    for rows in _blocks(batches):
        for part, S in groups.items():
            cells, counts, high = _cells(placing, S, rows)
            yield _counts(np.full(len(cells), part), cells, counts, high)


def _counted_in_pieces(placing: Placing, S: Subset, starts: Counts, batches: Batches) -> Batches:
    """Yield one task's nonzero counts for S, as rows (piece, cell in it, count, high digits)."""
    for rows in _blocks(batches):
        cells, counts, high = _cells(placing, S, rows)
        # starts: the first cell of each piece
        parts = np.searchsorted(starts, cells, side="right") - 1
        yield _counts(parts, cells - starts[parts], counts, high)


def _cells(placing: Placing, S: Subset, rows: "pa.Table") -> tuple[Counts, Counts, Counts]:
    """Return the cells of S's table in which these rows are, and low and high digits of counts."""
    columns = {name: rows[name].to_numpy() for name in rows.column_names}
    sums = {name: columns[name] for name in placing.sums_of(S)}
    codes = [columns[f"c{i}"] for i in S]
    if placing.outside(S, codes, sums):
        raise DataError(CHANGED)
    low, above = list(placing.cells(S, codes, 1, sums)), list(placing.high(S, codes, sums))
    cells = np.unique(np.concatenate([cells for cells, _ in low]))
    counts, high = np.zeros((2, len(cells)), dtype=np.int64)
    for digits, pairs in ((counts, low), (high, above)):
        for own, masses in pairs:
            np.add.at(digits, np.searchsorted(cells, own), masses)
    return cells, counts, high


def _counts(
    parts: NDArray[np.integer], cells: Counts, counts: Counts, high: Counts
) -> "pa.RecordBatch":
    import pyarrow as pa

    columns = {"part": parts.astype(np.int32), "cell": cells, "count": counts, "high": high}
    return pa.RecordBatch.from_pydict(columns)


def _blocks(batches: Batches) -> Iterator["pa.Table"]:
    """Yield Arrow tables of at least ``_ROWS_AT_ONCE`` rows, each joined from small batches."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(rows) for rows in waiting) >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if sum(len(rows) for rows in waiting):
        yield pa.Table.from_batches(waiting)


def _finished(
    cells: Mapping[int, int], total: int | None, finish: Finish, batches: Batches
) -> Batches:
    """Return the rows that ``finish`` yields from the counts that Spark sends to this task."""
    return finish(_complete_groups(_by_part(batches), cells, total))


def _by_part(batches: Batches) -> Iterator[Piece]:
    """Yield (group, cells, low digits, high digits of counts) from rows sorted by group."""
    for batch in batches:
        if not len(batch):
            continue
        parts = batch["part"].to_numpy()
        columns = [batch[name].to_numpy() for name in ("cell", "count", "high")]
        starts = np.flatnonzero(np.diff(parts, prepend=-1))
        for start, end in zip(starts, [*starts[1:], len(parts)], strict=True):
            piece = slice(start, end)
            cells, counts, high = (column[piece] for column in columns)
            yield int(parts[start]), cells, counts, high


def _complete_groups(pieces: Iterable[Piece], sizes: Mapping[int, int], total: int | None) -> Parts:
    """Yield (group, all its counts, flat), once the extra row that ends the group has arrived."""
    current, counts, high = -1, *np.zeros((2, 0), dtype=np.int64)
    for part, cells, masses, more in pieces:
        if part != current:
            current, counts, high = part, *np.zeros((2, sizes[part] + 1), dtype=np.int64)
        np.add.at(counts, cells, masses)
        if more.any():  # zeros that are never written take no memory
            np.add.at(high, cells, more)
        if cells[-1] == sizes[part]:
            yield part, joined(_checked_total(counts[:-1], total), high[:-1])


def _checked_total(counts: Counts, total: int | None) -> Counts:
    """Return the low digits of counts; DataError unless ``total`` is their sum, or None."""
    if total is not None and int(counts.sum()) != total:
        raise DataError(CHANGED)
    return counts
