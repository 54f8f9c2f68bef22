"""Exact counts of the cells of tables (marginals), without any noise.

Records are grouped by the engine that holds them, so that only counts are transferred.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...solvers.tables.residuals import Subset, part_of
from ..reading.codes import Coded, Streamed
from ..reading.csv import FORM
from ..reading.files import is_csv, state_of
from ..reading.frames import Lazy, guarded, open_table
from ..schema.numbers import Weight, sets_of_numbers, unit_of
from ..schema.schema import Attribute, OnOutside
from .groups import group_subsets
from .impossible import Excluded
from .numbers import (
    WEIGHT,
    WITHOUT,
    Joint,
    joined,
    keys_and_sums,
    sum_names,
    weight_column,
    with_sums,
)
from .persons import PersonLimit
from .records import code_table, outside_error

if TYPE_CHECKING:
    import dask.dataframe
    import pandas as pd

Counts = NDArray[np.int64]

# Most cells of a group, and of all groups in one pass over the rows. Rows in this process are
# counted in small groups as quickly as in large ones, and one pass has room for far more of them.
# In another engine each group is a query, so that few large ones are better.
_GROUP_CELLS, _QUERY_CELLS = 2**12, 2**16
PASS_CELLS = 2**22
_ROWS_AT_ONCE = 2**18
_PARTITIONS = 64  # the number of partitions whose groups dask returns at once


def count_marginals(
    table: object,
    attributes: Sequence[Attribute],
    subsets: Sequence[Subset],
    on_outside: OnOutside = "refuse",
    limit: PersonLimit | None = None,
    weight: Weight | None = None,
    unit: int | None = None,
    impossible: Sequence[Excluded] = (),
) -> Iterator[tuple[Subset, Counts]]:
    """Count the cells of every table exactly, and yield the tables in any order.

    If a number is clipped, or rows have weights, all counts are in units of ``1/unit`` of a record,
    or of the largest weight. They are still exact integers.

    Tables over unions of subsets are counted, as many as fit into one pass over the records. They
    are then summed to the tables of the subsets. Records in this process (pandas, polars, pyarrow)
    are coded once. Files are read once per pass; Spark and dask keep the coded records themselves.
    For files and lazy engines, memory holds the counts of one pass only, for any number of rows.
    With persons, files, duckdb and polars also need memory for the coded records and their persons,
    some 20 bytes a row.

    Args:
        table: a dataframe that narwhals knows (eager or lazy), or the path of a CSV, TSV or Parquet
            file, a list of such paths, a pattern (``data/*.csv``) or a folder of Parquet. A row of
            a CSV file is a record as RFC 4180 parses it, so a quoted field may hold line ends; TSV
            has no quotes.
        attributes: columns to read.
        subsets: distinct sorted tuples of indices in ``attributes``; each index is in at least one
            of them.
        on_outside: for a row that has a null or another value without a cell, in an attribute
            without a catch-all: "refuse" the table, or "drop" the row from every marginal, also
            from the total. With "drop", rows affect the counts only: columns of pandas and dask may
            hold anything, and other engines are refused only for the types they declare. The
            exceptions are bytes that are no CSV, and the caller's own queries and functions where
            they fail on some row.
        limit: the limit on the rows of each person; with "drop", on the rows of a person that fit.
        weight: the weights of rows; a row without a weight is treated like a row with a value
            outside the schema.
        unit: the number of units in a record, a power of two; :func:`unit_of` if omitted.
        impossible: combinations that cannot occur in a row, with indices in ``attributes``: such a
            row is treated like a row with a value outside the schema.

    Yields:
        Each subset with its counts, of shape (sizes of its attributes...).

    Raises:
        DataError: a missing column, wrong type, null, NaN or value outside the schema; the message
            names the column and no value. Except for a table that changed between two passes, all
            errors are raised before the first marginal.
    """
    sizes = [a.size for a in attributes]
    before = state_of(table)
    if not attributes and weight is None:
        rows = number_of_rows(table, limit, on_outside)
        if state_of(table) != before:
            raise DataError(CHANGED)
        yield from ((S, np.array(rows, dtype=np.int64)) for S in subsets)
        return
    parts = unit_of(attributes, weight) if unit is None else unit
    read = [*attributes, *([] if weight is None else [weight_column(weight)])]
    coded = code_table(table, read, on_outside, limit, impossible)
    engine = _engine(coded)
    placing = Placing(attributes, weight, parts, Joint.of(attributes, subsets))
    hint = FORM if is_csv(table) else ""
    rows = None
    with contextlib.ExitStack() as stack:
        tally = guarded(_TASK, partial(_tally, coded, placing, stack), engine=engine)
        most = _QUERY_CELLS if isinstance(coded, nw.LazyFrame) else _GROUP_CELLS
        for groups in passes(grouped(subsets, attributes, most), sizes):
            tables = guarded(_TASK, partial(tally, list(groups)), hint, engine=engine)
            if tables.outside:
                raise outside_error(read[min(tables.outside)])
            totals = {int(counts.sum()) for counts in tables.counts.values()}
            rows = totals if rows is None else rows
            if len(rows | totals) > 1 or state_of(table) != before:
                raise DataError(CHANGED)
            for group, inside in groups.items():
                counts = tables.pop(group)
                for S in inside:
                    yield S, part_of(counts, group, S)


def _engine(coded: Coded | Lazy) -> nw.Implementation | None:
    """Return the library that will read the records; None if they are in arrays already."""
    if isinstance(coded, nw.LazyFrame):
        return coded.implementation
    return coded.engine if isinstance(coded, Streamed) else None


_TASK = "count the table's rows"
CHANGED = "table: it changed while it was read; hint: work on a copy that nothing else writes to"


def grouped(
    subsets: Sequence[Subset], attributes: Sequence[Attribute], most_cells: int
) -> dict[Subset, list[Subset]]:
    """Return {union: attribute sets}, for few unions that contain all attribute sets.

    A table over each union is counted, and then summed. A union has more than one clipped number
    only if some table has them together.
    """
    sizes = [a.size for a in attributes]
    summed = {i for i, a in enumerate(attributes) if a.is_summed}
    sets = sets_of_numbers(summed, subsets) or [()]
    parts: dict[Subset, list[Subset]] = {J: [] for J in sets}
    for S in subsets:
        parts[next(J for J in sets if summed.intersection(S) <= {*J})].append(S)
    groups: dict[Subset, list[Subset]] = {}
    for part in parts.values():
        groups |= group_subsets(part, sizes, most_cells)
    return groups


def passes(
    groups: dict[Subset, list[Subset]], sizes: Sequence[int]
) -> Iterator[dict[Subset, list[Subset]]]:
    """Yield parts of ``groups`` that fit into memory, one for each pass over the rows.

    The first part also has one table for each attribute that is in none of its groups, so that
    all attributes are checked in the first pass.
    """
    left = list(groups)
    lacking = set(range(len(sizes)))
    while left:
        cells = itertools.accumulate(math.prod(sizes[i] for i in group) for group in left)
        number = max(1, sum(1 for _ in itertools.takewhile(PASS_CELLS.__ge__, cells)))
        batch = {group: groups[group] for group in left[:number]}
        left = left[number:]
        lacking -= {i for group in batch for i in group}
        yield batch | {(i,): [] for i in sorted(lacking)}
        lacking = set()


Tally: TypeAlias = Callable[[Sequence[Subset]], "_Tables"]
_NO_SUMS: Mapping[str, NDArray[np.int64]] = {}


@dataclass(frozen=True)
class Placing:
    """The rule by which a coded record adds amounts to the cells of a table.

    Attributes:
        attributes: the attributes of the codes.
        weight: the weight of rows, if they have one.
        unit: the number of integer units that one record adds.
        joint: the sets of summed numbers that occur together in some table.
    """

    attributes: Sequence[Attribute]
    weight: Weight | None
    unit: int
    joint: Joint

    @cached_property
    def sizes(self) -> list[int]:
        """The number of cells of each attribute."""
        return [a.size for a in self.attributes]

    @cached_property
    def sums(self) -> list[str]:
        """The names of the columns of amounts (numbers, weights) that are summed over records."""
        return [*sum_names(self.attributes, self.weight), *self.joint.names()]

    def sums_of(self, S: Subset) -> list[str]:
        """Return the names of the columns of amounts (numbers, weights) for one table.

        The amounts are summed over records. S has the attributes of the table.
        """
        own = sum_names(self.attributes, self.weight)
        return [*own, *self.joint.names([i for i in S if i in self.joint.sizes])]

    def outside(
        self, S: Subset, codes: Sequence[NDArray], sums: Mapping[str, NDArray[np.int64]]
    ) -> set[int]:
        """Return the indices of attributes with a value outside the schema in some record.

        The index after the last attribute stands for the weight.
        """
        found = {
            i
            for i, code in zip(S, codes, strict=True)
            if self.attributes[i].other is None and not code.all()
        }
        return found | (
            {len(self.attributes)} if WITHOUT in sums and sums[WITHOUT].any() else set()
        )

    def cells(
        self,
        S: Subset,
        codes: Sequence[NDArray],
        counts: NDArray | int,
        sums: Mapping[str, NDArray[np.int64]],
    ) -> Iterator[tuple[Counts, Counts]]:
        """Yield pairs (indices in the flat table of the attributes S, amounts to add there).

        ``codes`` has one array for each attribute of S, and ``counts`` says how many records have
        these codes. A cell may occur several times. Code 0 means the last cell: that of the
        catch-all category (for all other values). For a clipped number, the code says whether there
        is a number, and ``sums`` has the amounts that records add to its cells.
        """
        cell, steps, numbers = self._located(S, codes, sums)
        mass = sums[WEIGHT] if WEIGHT in sums else np.broadcast_to(counts, len(cell)) * self.unit
        if not numbers:
            yield cell, mass
            return
        for place, part in self.joint.spread(numbers, mass, sums):
            yield cell + sum(k * step for k, step in zip(place, steps, strict=True)), part

    def high(
        self, S: Subset, codes: Sequence[NDArray], sums: Mapping[str, NDArray[np.int64]]
    ) -> Iterator[tuple[Counts, Counts]]:
        """Yield pairs as :meth:`cells` does, for the high binary digits of numbers with a unit.

        Amounts are multiples of LOW.
        """
        cell, steps, numbers = self._located(S, codes, sums)
        for i, step in zip(numbers, steps, strict=True):
            if f"h{i}" in sums:
                more = sums[f"h{i}"]
                yield from ((cell, -more), (cell + step, more))

    def _located(
        self, S: Subset, codes: Sequence[NDArray], sums: Mapping[str, NDArray[np.int64]]
    ) -> tuple[Counts, list[Counts], Subset]:
        """Return cells' indices, steps to each number's next virtual cell, and the numbers in S."""
        rows = len(codes[0]) if codes else len(next(iter(sums.values())))
        cell, steps = np.zeros(rows, dtype=np.int64), list[Counts]()
        for i, code in zip(S, codes, strict=True):
            size = self.sizes[i]
            cell = cell * size + _places(code, size)
            steps = [step * size for step in steps]
            # a step leads from the record's cell to the number's next virtual cell
            if i in self.joint.sizes:  # without a number, a record stays in the first virtual cell
                steps.append((code > 0).astype(np.int64))
        return cell, steps, tuple([i for i in S if i in self.joint.sizes])


def _places(codes: NDArray, size: int) -> NDArray[np.int32]:
    """Return the index of the cell for each code of one attribute; code 0 means the last cell."""
    places = codes.astype(np.int32) - np.int32(1)
    places[places < 0] = size - 1
    return places


class _Tables:
    """The tables of one pass over the rows, to which records or groups of records are added."""

    def __init__(self, placing: Placing, groups: Iterable[Subset]) -> None:
        self._placing, self.sums, self.sums_of = placing, placing.sums, placing.sums_of
        sizes = placing.sizes
        self.counts = {S: np.zeros([sizes[i] for i in S], dtype=np.int64) for S in groups}
        units = {i for i, a in enumerate(placing.attributes) if a.unit is not None}
        self._high = {S: np.zeros_like(own) for S, own in self.counts.items() if units & {*S}}
        self.outside: set[int] = set()  # indices of attributes with records that have no cell

    def add(
        self,
        S: Subset,
        codes: Sequence[NDArray],
        counts: NDArray | int = 1,
        sums: Mapping[str, NDArray[np.int64]] = _NO_SUMS,
    ) -> None:
        """Add each row of codes ``counts`` times, with its amounts ``sums``, to the table of S."""
        self.outside |= self._placing.outside(S, codes, sums)
        flat = self.counts[S].reshape(-1)
        for cells, masses in self._placing.cells(S, codes, counts, sums):
            np.add.at(flat, cells, masses)
        if S in self._high:
            flat = self._high[S].reshape(-1)
            for cells, masses in self._placing.high(S, codes, sums):
                np.add.at(flat, cells, masses)

    def pop(self, S: Subset) -> Counts | NDArray[Any]:
        """Remove and return the table of S, with Python's integers if 64 bits may be too few."""
        counts = self.counts.pop(S)
        return joined(counts, self._high.pop(S)) if S in self._high else counts

    def add_records(self, columns: Sequence[NDArray]) -> None:
        """Add records to all tables, from the codes of all attributes; only for plain counts."""
        sizes, unit = self._placing.sizes, self._placing.unit
        places = {i: _places(columns[i], sizes[i]) for i in {i for S in self.counts for i in S}}
        self.outside |= self._placing.outside(tuple(places), [columns[i] for i in places], {})
        for S, counts in self.counts.items():
            flat = counts.reshape(-1)
            # int32 needs half the memory of int64, and a third of its time
            cells = np.zeros(len(columns[0]), np.int32 if len(flat) < 2**31 else np.int64)
            for i in S:
                cells *= sizes[i]
                cells += places[i]
            if len(flat) > len(cells):
                np.add.at(flat, cells, unit)
            else:  # bincount is several times faster than add.at
                flat += unit * np.bincount(cells, minlength=len(flat))


def number_of_rows(
    table: object,
    limit: PersonLimit | None,
    on_outside: OnOutside,
    read: Sequence[Attribute] = (),
    impossible: Sequence[Excluded] = (),
) -> int:
    """Return the number of counted rows, with a limit on the rows of each person or without one.

    Without a limit, all rows of the table are counted.
    """
    if limit is None:
        rows = open_table(table).lazy()
    else:
        rows = code_table(table, read, on_outside, limit, impossible)
    if not isinstance(rows, nw.LazyFrame):
        return sum(len(columns[0]) for columns in rows)

    def counted() -> int:
        number = rows.select(nw.len().alias("n")).collect("pyarrow").to_native()["n"]
        return int(number[0].as_py())

    return guarded(_TASK, counted, engine=rows.implementation)


def _tally(coded: Coded | Lazy, placing: Placing, stack: contextlib.ExitStack) -> Tally:
    """Return a function that counts the tables of attribute sets; ``stack`` frees its memory."""
    tables, weight, unit = partial(_Tables, placing), placing.weight, placing.unit
    if not isinstance(coded, nw.LazyFrame):
        return partial(_tally_arrays, coded, placing, tables)
    if unit > 1:
        coded = with_sums(coded, placing.attributes, weight, unit, placing.joint)
    native = coded.to_native()
    if coded.implementation.is_spark_like() and hasattr(native, "persist"):
        native = native.persist()
        stack.callback(native.unpersist)
    elif coded.implementation == nw.Implementation.DASK:
        return partial(_tally_partitions, native.persist(), tables)
    # ibis is not cached: its cache is a table in the user's database, which some versions cannot
    # drop
    return partial(_tally_groups, nw.from_native(native), tables)


_NewTables = Callable[[Sequence[Subset]], _Tables]  # returns tables with all counts zero


def _tally_arrays(
    batches: Coded, placing: Placing, new: _NewTables, groups: Sequence[Subset]
) -> _Tables:
    tables = new(groups)
    attributes, weight, unit = placing.attributes, placing.weight, placing.unit
    most = max(_ROWS_AT_ONCE // placing.joint.most, 1)
    for columns in batches:
        for start in range(0, len(columns[0]), most):
            own = [codes[start : start + most] for codes in columns]
            if not tables.sums:
                tables.add_records(own)
                continue
            keys, sums = keys_and_sums(own.__getitem__, attributes, weight, unit)
            sums |= placing.joint.sums(sums, unit)
            for S in groups:
                tables.add(S, [keys[i] for i in S], sums=sums)
    return tables


def _tally_groups(coded: Lazy, new: _NewTables, groups: Sequence[Subset]) -> _Tables:
    tables = new(groups)
    for S in groups:
        names = tables.sums_of(S)
        counts = _group(coded, S, names).collect("pyarrow")
        sums = {name: counts[name].to_numpy() for name in names}
        tables.add(S, [counts[f"c{i}"].to_numpy() for i in S], counts["n"].to_numpy(), sums)
    return tables


def _tally_partitions(
    coded: "dask.dataframe.DataFrame", new: _NewTables, groups: Sequence[Subset]
) -> _Tables:
    """Return the tables of attribute sets, counted by pandas in each partition of the frame."""
    from dask.base import compute

    # dask's own groups take longer to plan than to count
    tables = new(groups)
    asked = [
        coded.map_partitions(_grouped, S, names, meta=_grouped(coded._meta, S, names))
        for S in groups
        for names in [tables.sums_of(S)]
    ]
    for start in range(0, coded.npartitions, _PARTITIONS):  # so that memory holds few groups
        pieces = (own.partitions[start : start + _PARTITIONS] for own in asked)
        for S, piece in zip(groups, compute(*pieces), strict=True):
            found = {name: column.to_numpy() for name, column in piece.items()}
            sums = {name: found[name] for name in tables.sums_of(S)}
            tables.add(S, [found[f"c{i}"] for i in S], found["n"], sums)
    return tables


def _grouped(rows: "pd.DataFrame", S: Subset, sums: Sequence[str]) -> "pd.DataFrame":
    """Return the groups of equal codes in a partition, with numbers of rows and summed amounts."""
    counted: Any = rows[[*(f"c{i}" for i in S), *sums]].assign(n=1)
    if not S:
        return counted.sum().to_frame().T
    return counted.groupby([f"c{i}" for i in S], sort=False, as_index=False).sum()


def _group(coded: Lazy, S: Subset, sums: Sequence[str]) -> Lazy:
    wanted = [nw.len().alias("n"), *(nw.col(name).sum() for name in sums)]
    # without attributes there is one group; if it has no rows, its sum may be null
    counts = coded.group_by(*(f"c{i}" for i in S)).agg(*wanted) if S else coded.select(*wanted)
    if not sums:
        return counts
    # some engines sum 64-bit integers in wider types
    return counts.with_columns(*(nw.col(name).fill_null(0).cast(nw.Int64) for name in sums))
