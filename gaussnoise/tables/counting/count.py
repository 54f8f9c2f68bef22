"""Records in, exact marginals out.

Records are grouped where they live, so that only counts come back.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...solvers.tables.residuals import Subset, part_of
from ..reading.codes import Batches, Coded, Codes, Streamed, each
from ..reading.csv import FORM
from ..reading.files import is_csv, state_of
from ..reading.frames import guarded, open_table
from ..schema.numbers import Weight, unit_of
from ..schema.schema import Attribute, OnOutside
from .impossible import Excluded, check_possible, without
from .numbers import (
    WEIGHT,
    WITHOUT,
    array_sums,
    has_squares,
    spread_over,
    sum_names,
    weight_column,
    with_sums,
)
from .persons import PersonLimit
from .records import code_table, outside_error

Counts = NDArray[np.int64]

# Larger groups save passes over the records and cost memory; from 2^10 to 2^20 the passes took the
# same time.
_GROUP_CELLS = 2**16
PASS_CELLS = 2**22
_PASS_GROUPS = 64
_ROWS_AT_ONCE = 2**18


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
    """Exact counts of every marginal, in an order of its own.

    Where a number is clipped, or rows have weights, counts are in units of a part of a record, or
    of the largest weight, in every table: exact integers still.

    Unions of subsets are counted, as many as fit into one pass over the records, and summed down.
    Records already in this process (pandas, polars, pyarrow) are coded once. Files are read once a
    pass; Spark and dask hold the coded records where they are. For files and lazy engines, memory
    is that of a pass's counts, whatever the number of rows; with persons, of files, duckdb and
    polars, also that of the coded records and of who they are of, some 20 bytes a row.

    Args:
        table: a dataframe narwhals knows (eager or lazy), or the path of a CSV, TSV or Parquet
            file, a list of such paths, a pattern (``data/*.csv``) or a folder of Parquet. A row of
            a CSV file is a record as RFC 4180 parses it, so a quoted field may hold line ends; TSV
            knows no quotes.
        attributes: columns to read.
        subsets: distinct sorted positions in ``attributes``; every attribute lies in at least one.
        on_outside: what becomes of a row with a null or another value that has no cell, where the
            attribute has no catch-all: "refuse" the table, or "drop" the row from every marginal,
            also from the total. With "drop", rows decide nothing but the counts: columns of pandas
            and dask may hold anything, and other engines are refused for the types they declare
            only. What remains are bytes that are no CSV, and queries and functions of the caller's
            own that fail on some row.
        limit: on the rows of each person; of those that fit, where others are dropped.
        weight: what rows count; a row without a number there is one with a value outside.
        unit: how many parts a record has where it has any: a power of two, :func:`unit_of` if
            omitted.
        impossible: what cannot occur in a row, by positions in ``attributes``: such a row is one
            with a value outside.

    Yields:
        Each subset with its counts, of shape (sizes of its attributes...).

    Raises:
        DataError: a missing column, wrong type, null, NaN or value outside the schema; names the
            column, no value. All of these come before the first marginal. Later only: the table
            changed between two passes.
    """
    sizes = [a.size for a in attributes]
    before = state_of(table)
    if not attributes and weight is None:
        rows = _number_of_rows(table, limit, on_outside)
        if state_of(table) != before:
            raise DataError(CHANGED)
        yield from ((S, np.array(rows, dtype=np.int64)) for S in subsets)
        return
    parts = unit_of(attributes, weight) if unit is None else unit
    read = [*attributes, *([] if weight is None else [weight_column(weight)])]
    coded = coded_records(table, read, on_outside, limit, impossible)
    engine = _engine(coded)
    hint = FORM if is_csv(table) else ""
    rows = None
    with contextlib.ExitStack() as stack:
        tally = guarded(
            _TASK, partial(_tally, coded, attributes, weight, parts, stack), engine=engine
        )
        for groups in passes(grouped(subsets, attributes, _GROUP_CELLS), sizes):
            tables = guarded(_TASK, partial(tally, list(groups)), hint, engine=engine)
            if tables.outside:
                raise outside_error(read[min(tables.outside)])
            totals = {int(counts.sum()) for counts in tables.counts.values()}
            rows = totals if rows is None else rows
            if len(rows | totals) > 1 or state_of(table) != before:
                raise DataError(CHANGED)
            for group, inside in groups.items():
                counts = tables.counts.pop(group)
                for S in inside:
                    yield S, part_of(counts, group, S)


def coded_records(
    table: object,
    read: Sequence[Attribute],
    on_outside: OnOutside,
    limit: PersonLimit | None,
    impossible: Sequence[Excluded],
) -> Coded | nw.LazyFrame[Any]:
    """What :func:`code_table` makes of the records that are counted.

    Impossible ones are left out, or refused.
    """
    coded = code_table(table, read, on_outside, limit, impossible)
    if limit is not None:  # they are left out before it
        return coded
    engine = _engine(coded)
    if on_outside == "drop":
        return guarded(_TASK, lambda: without(coded, impossible), engine=engine)
    hint = FORM if is_csv(table) else ""
    guarded(_TASK, lambda: check_possible(coded, impossible), hint, engine=engine)
    return coded


def _engine(coded: Coded | nw.LazyFrame[Any]) -> nw.Implementation | None:
    """The library that works when the records are asked for."""
    if isinstance(coded, nw.LazyFrame):
        return coded.implementation
    return nw.Implementation.DUCKDB if isinstance(coded, Streamed) else None


_TASK = "count the table's rows"
CHANGED = "table: it changed while it was read; hint: work on a copy that nothing else writes to"


def grouped(
    subsets: Sequence[Subset], attributes: Sequence[Attribute], most_cells: int
) -> dict[Subset, list[Subset]]:
    """Unions of subsets, none with two clipped numbers: products of those are not counted."""
    sizes = [a.size for a in attributes]
    clipped = [i for i, a in enumerate(attributes) if a.clip is not None]
    parts = [[S for S in subsets if i in S] for i in clipped] or [[]]
    parts[0] += [S for S in subsets if not set(S) & set(clipped)]
    groups: dict[Subset, list[Subset]] = {}
    for part in parts:
        groups |= group_subsets(part, sizes, most_cells)
    return groups


def group_subsets(
    subsets: Iterable[Subset], sizes: Sequence[int], most_cells: int
) -> dict[Subset, list[Subset]]:
    """Few unions of subsets, such that every subset is in one.

    Each has at most ``most_cells`` cells, or is one subset itself.

    Greedy: from the largest subset left, by whichever subset multiplies the cells least.
    """
    logs = np.log(np.array(sizes, dtype=np.float64))
    left = sorted(subsets, key=lambda S: (-sum(logs[i] for i in S), S))
    holders = [
        np.array([k for k, S in enumerate(left) if i in S], dtype=np.intp)
        for i in range(len(sizes))
    ]
    growth = np.array([sum(logs[i] for i in S) for S in left])
    waiting = np.ones(len(left), dtype=bool)
    groups: dict[Subset, list[Subset]] = {}
    while waiting.any():
        group: set[int] = set()
        inside: list[int] = []
        grown = (
            growth.copy()
        )  # log of how many times more cells the group would have with each subset
        chosen = np.array([np.argmax(waiting)])
        while len(chosen):
            for i in {i for k in chosen for i in left[k]} - group:
                group.add(i)
                grown[holders[i]] -= logs[i]
            inside += chosen.tolist()
            waiting[chosen] = False
            room = max(math.log(most_cells) - sum(logs[i] for i in group), 0) + 1e-9
            fits = np.flatnonzero(waiting & (grown <= room))
            free = fits[grown[fits] <= 1e-9]
            chosen = (
                free if len(free) else fits[np.argmin(grown[fits])][None] if len(fits) else fits
            )
        groups[tuple(sorted(group))] = [left[k] for k in inside]
    return groups


def passes(
    groups: dict[Subset, list[Subset]], sizes: Sequence[int]
) -> Iterator[dict[Subset, list[Subset]]]:
    """The groups in batches of bounded memory.

    The first also has every attribute alone that it would lack.
    """
    left = list(groups)
    lacking = set(range(len(sizes)))
    while left:
        cells = itertools.accumulate(
            math.prod(sizes[i] for i in group) for group in left[:_PASS_GROUPS]
        )
        number = max(1, sum(total <= PASS_CELLS for total in cells))
        batch = {group: groups[group] for group in left[:number]}
        left = left[number:]
        lacking -= {i for group in batch for i in group}
        yield batch | {(i,): [] for i in sorted(lacking)}
        lacking = set()


Tally = Callable[[Sequence[Subset]], "_Tables"]


_Summed = tuple[list[Codes], dict[str, Counts]]  # what is grouped by, and what is summed
_NO_SUMS: Mapping[str, NDArray[np.int64]] = {}


@dataclass(frozen=True)
class Placing:
    """Where coded records, or groups of equal ones, are counted.

    Attributes:
        attributes: whose codes they are.
        weight: of rows.
        unit: how many parts a record has.
    """

    attributes: Sequence[Attribute]
    weight: Weight | None
    unit: int

    @cached_property
    def sums(self) -> list[str]:
        """Columns that are summed, beside the codes."""
        return sum_names(self.attributes, self.weight)

    def outside(
        self, S: Subset, codes: Sequence[NDArray], sums: Mapping[str, NDArray[np.int64]]
    ) -> set[int]:
        """Attributes with records that have no cell; the last and one more is the weight."""
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
        """Flat cells of the table of S, and what is added to each; cells may come more than once.

        Code 0 is the catch-all's cell, the last one. Of a clipped number, the code says whether
        there is one, and ``sums`` what it adds to which of its cells.
        """
        rows = len(codes[0]) if codes else len(next(iter(sums.values())))
        cell, step, number = np.zeros(rows, dtype=np.int64), 1, None
        present = np.zeros(rows, dtype=bool)
        for i, code in zip(S, codes, strict=True):
            size = self.attributes[i].size
            if self.attributes[i].clip is not None:
                number, present, step = i, code > 0, 1
            else:
                step *= size
            cell = cell * size + _places(code, size)
        mass = sums[WEIGHT] if WEIGHT in sums else np.broadcast_to(counts, rows) * self.unit
        if number is None:
            yield cell, mass
            return
        squares = sums[f"q{number}"] if has_squares(self.attributes[number]) else None
        for k, part in enumerate(spread_over(mass, sums[f"a{number}"], squares)):
            yield np.where(present, cell + k * step, cell), part


def _places(codes: NDArray, size: int) -> NDArray[np.int64]:
    """Cells of one attribute; code 0 is in the last one."""
    places = codes.astype(np.int64) - 1
    places[places < 0] = size - 1
    return places


class _Tables:
    """Tables of one pass, filled by coded records or by groups of equal ones."""

    def __init__(self, placing: Placing, groups: Iterable[Subset]) -> None:
        self._placing, self.sums = placing, placing.sums
        sizes = [a.size for a in placing.attributes]
        self.counts = {S: np.zeros([sizes[i] for i in S], dtype=np.int64) for S in groups}
        self.outside: set[int] = set()  # attributes with records that have no cell

    def add(
        self,
        S: Subset,
        codes: Sequence[NDArray],
        counts: NDArray | int = 1,
        sums: Mapping[str, NDArray[np.int64]] = _NO_SUMS,
    ) -> None:
        """Records with these codes, or groups of so many equal ones."""
        self.outside |= self._placing.outside(S, codes, sums)
        flat = self.counts[S].reshape(-1)
        for cells, masses in self._placing.cells(S, codes, counts, sums):
            np.add.at(flat, cells, masses)

    def add_records(self, columns: Sequence[NDArray]) -> None:
        """Records by the codes of all attributes, none of them clipped, without weights."""
        attributes, unit = self._placing.attributes, self._placing.unit
        places = {
            i: _places(columns[i], attributes[i].size) for i in {i for S in self.counts for i in S}
        }
        self.outside |= self._placing.outside(tuple(places), [columns[i] for i in places], {})
        for S, counts in self.counts.items():
            cells = np.zeros(len(columns[0]), dtype=np.int64)
            for i in S:
                cells = cells * attributes[i].size + places[i]
            flat = counts.reshape(-1)
            if len(flat) > len(cells):
                np.add.at(flat, cells, unit)
            else:  # several times quicker
                flat += unit * np.bincount(cells, minlength=len(flat))


def _number_of_rows(table: object, limit: PersonLimit | None, on_outside: OnOutside) -> int:
    """How many rows are counted where nothing else is asked of them."""
    rows = open_table(table).lazy() if limit is None else code_table(table, (), on_outside, limit)
    if not isinstance(rows, nw.LazyFrame):
        return sum(len(columns[0]) for columns in rows)

    def counted() -> int:
        number = rows.select(nw.len().alias("n")).collect("pyarrow").to_native()["n"]
        return int(number[0].as_py())

    return guarded(_TASK, counted, engine=rows.implementation)


def _tally(
    coded: Coded | nw.LazyFrame[Any],
    attributes: Sequence[Attribute],
    weight: Weight | None,
    unit: int,
    stack: contextlib.ExitStack,
) -> Tally:
    """How this engine counts groups of attributes; ``stack`` gives back what it holds."""
    tables = partial(_Tables, Placing(attributes, weight, unit))
    if not isinstance(coded, nw.LazyFrame):
        sums = partial(array_sums, attributes=attributes, weight=weight, unit=unit)
        return partial(_tally_arrays, each(sums, coded), tables)
    if unit > 1:
        coded = with_sums(coded, attributes, weight, unit)
    native = coded.to_native()
    if coded.implementation == nw.Implementation.POLARS:
        return partial(_tally_polars, coded, tables)
    if coded.implementation.is_spark_like() and hasattr(native, "persist"):
        native = native.persist()
        stack.callback(native.unpersist)
    elif coded.implementation == nw.Implementation.DASK:
        native = native.persist()
    # ibis is not held: its cache is a table in the user's database, which some versions then cannot
    # drop
    return partial(_tally_lazy, nw.from_native(native), tables)


_NewTables = Callable[[Sequence[Subset]], _Tables]  # empty ones


def _tally_arrays(batches: Batches[_Summed], new: _NewTables, groups: Sequence[Subset]) -> _Tables:
    tables = new(groups)
    for columns, sums in batches:
        rows = len(columns[0] if columns else sums[WEIGHT])
        for start in range(0, rows, _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            if not sums:
                tables.add_records([codes[part] for codes in columns])
                continue
            own = {name: values[part] for name, values in sums.items()}
            for S in groups:
                tables.add(S, [columns[i][part] for i in S], sums=own)
    return tables


def _add_found(tables: _Tables, S: Subset, counts: Any) -> None:
    """Groups of equal records, of any kind of columns."""
    sums = {name: counts[name].to_numpy() for name in tables.sums}
    tables.add(S, [counts[f"c{i}"].to_numpy() for i in S], counts["n"].to_numpy(), sums)


def _tally_polars(coded: nw.LazyFrame[Any], new: _NewTables, groups: Sequence[Subset]) -> _Tables:
    """All groups at once, which reads the records once."""
    import polars as pl

    tables = new(groups)
    frames = [_group(coded, S, tables.sums).to_native() for S in groups]
    for S, counts in zip(groups, pl.collect_all(frames), strict=True):
        _add_found(tables, S, counts)
    return tables


def _tally_lazy(coded: nw.LazyFrame[Any], new: _NewTables, groups: Sequence[Subset]) -> _Tables:
    tables = new(groups)
    for S in groups:
        _add_found(tables, S, _group(coded, S, tables.sums).collect("pyarrow"))
    return tables


def _group(coded: nw.LazyFrame[Any], S: Subset, sums: Sequence[str]) -> nw.LazyFrame[Any]:
    wanted = [nw.len().alias("n"), *(nw.col(name).sum() for name in sums)]
    # no attribute at all: one group, where a sum of no rows may be null
    counts = coded.group_by(*(f"c{i}" for i in S)).agg(*wanted) if S else coded.select(*wanted)
    if not sums:
        return counts
    # some engines add 64-bit integers up in wider types
    return counts.with_columns(*(nw.col(name).fill_null(0).cast(nw.Int64) for name in sums))
