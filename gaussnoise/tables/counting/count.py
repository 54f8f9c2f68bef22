"""Records in, exact marginals out: grouped where the records live, so that only counts
come back.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ...solvers.tables.residuals import Subset, part_of
from ..reading.csv import FORM
from ..reading.files import is_csv, state_of
from ..reading.frames import guarded, open_table
from ..schema.numbers import Weight, unit_of
from ..schema.schema import Attribute
from .codes import Codes, OnOutside, code_table, outside_error
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

Counts = NDArray[np.int64]

# Larger groups save passes over the records and cost memory; from 2^10 to 2^20 the passes took the
# same time.
_GROUP_CELLS = 2**16
PASS_CELLS = 2**22
_PASS_GROUPS = 64
_ROWS_AT_ONCE = 2**18
_GROUPING_BITS = 60  # duckdb's GROUPING takes 63 columns


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
    is that of a pass's counts, whatever the number of rows.

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
        frame = (
            open_table(table).lazy() if limit is None else _limited_rows(table, limit, on_outside)
        )
        rows = guarded(
            _TASK,
            lambda: (
                frame.select(nw.len().alias("n")).collect("pyarrow").to_native()["n"][0].as_py()
            ),
            engine=frame.implementation,
        )
        if state_of(table) != before:
            raise DataError(_CHANGED)
        yield from ((S, np.array(rows, dtype=np.int64)) for S in subsets)
        return
    parts = unit_of(attributes, weight) if unit is None else unit
    read = [*attributes, *([] if weight is None else [weight_column(weight)])]
    coded = code_table(table, read, on_outside, limit, impossible)
    engine = None if isinstance(coded, list) else coded.implementation
    hint = FORM if is_csv(table) else ""
    if limit is None and on_outside == "drop":  # with a limit, they are left out before it
        coded = guarded(_TASK, lambda: without(coded, impossible), engine=engine)
    elif limit is None:
        guarded(_TASK, lambda: check_possible(coded, impossible), hint, engine=engine)
    rows = None
    with contextlib.ExitStack() as stack:
        tally = guarded(
            _TASK, partial(_tally, coded, attributes, weight, parts, stack), engine=engine
        )
        for groups in passes(_grouped(subsets, attributes), sizes):
            tables = guarded(_TASK, partial(tally, list(groups)), hint, engine=engine)
            if tables.outside:
                raise outside_error(read[min(tables.outside)])
            totals = {int(counts.sum()) for counts in tables.counts.values()}
            rows = totals if rows is None else rows
            if len(rows | totals) > 1 or state_of(table) != before:
                raise DataError(_CHANGED)
            for group, inside in groups.items():
                counts = tables.counts.pop(group)
                for S in inside:
                    yield S, part_of(counts, group, S)


_TASK = "count the table's rows"
_CHANGED = "table: it changed while it was read; hint: work on a copy that nothing else writes to"


def _grouped(
    subsets: Sequence[Subset], attributes: Sequence[Attribute]
) -> dict[Subset, list[Subset]]:
    """Unions of subsets, none with two clipped numbers: products of those are not counted."""
    sizes = [a.size for a in attributes]
    clipped = [i for i, a in enumerate(attributes) if a.clip is not None]
    parts = [[S for S in subsets if i in S] for i in clipped] or [[]]
    parts[0] += [S for S in subsets if not set(S) & set(clipped)]
    found: dict[Subset, list[Subset]] = {}
    for part in parts:
        found |= group_subsets(part, sizes, _GROUP_CELLS)
    return found


def group_subsets(
    subsets: Iterable[Subset], sizes: Sequence[int], most_cells: int
) -> dict[Subset, list[Subset]]:
    """Few unions of subsets, each of at most ``most_cells`` cells or one subset itself; every
    subset is in one.

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
    """The groups in batches of bounded memory; the first also has every attribute alone that it
    would lack.
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


_NO_SUMS: Mapping[str, NDArray[np.int64]] = {}


class _Tables:
    """Tables of one pass, filled by coded records or by groups of equal ones."""

    def __init__(
        self,
        attributes: Sequence[Attribute],
        weight: Weight | None,
        unit: int,
        groups: Iterable[Subset],
    ) -> None:
        self.attributes, self.unit = attributes, unit
        self.sums = sum_names(attributes, weight)
        self.counts = {S: np.zeros([attributes[i].size for i in S], dtype=np.int64) for S in groups}
        self.outside: set[int] = set()  # attributes with records that have no cell

    def add(
        self,
        S: Subset,
        codes: Sequence[NDArray],
        counts: NDArray | int = 1,
        sums: Mapping[str, NDArray[np.int64]] = _NO_SUMS,
    ) -> None:
        """Code 0 is the catch-all's cell, the last one; without a catch-all it is outside.

        Of a clipped number, the code says whether there is one, and ``sums`` what it adds to which
        of its cells.
        """
        table = self.counts[S]
        rows = len(codes[0]) if codes else len(next(iter(sums.values())))
        cell, step, number = np.zeros(rows, dtype=np.int64), 1, None
        present = np.zeros(rows, dtype=bool)
        for i, code, size in zip(S, codes, table.shape, strict=True):
            if self.attributes[i].other is None and not code.all():
                self.outside.add(i)
            if self.attributes[i].clip is not None:
                number, present, step = i, code > 0, 1
            else:
                step *= size
            cell = cell * size + (code.astype(np.int64) - 1) % size
        if WITHOUT in sums and sums[WITHOUT].any():
            self.outside.add(len(self.attributes))
        mass = sums[WEIGHT] if WEIGHT in sums else np.broadcast_to(counts, rows) * self.unit
        flat = table.reshape(-1)
        if number is None:
            np.add.at(flat, cell, mass)
            return
        squares = sums[f"q{number}"] if has_squares(self.attributes[number]) else None
        for k, part in enumerate(spread_over(mass, sums[f"a{number}"], squares)):
            np.add.at(flat, np.where(present, cell + k * step, cell), part)


def _limited_rows(table: object, limit: PersonLimit, on_outside: OnOutside) -> nw.LazyFrame[Any]:
    """The rows that are counted where nothing is asked of them but their number."""
    coded = code_table(table, (), on_outside, limit)
    if not isinstance(coded, list):
        return coded
    return nw.from_dict({"c0": coded[0]}, backend="pyarrow").lazy()


def _tally(
    coded: list[Codes] | nw.LazyFrame[Any],
    attributes: Sequence[Attribute],
    weight: Weight | None,
    unit: int,
    stack: contextlib.ExitStack,
) -> Tally:
    """How this engine counts groups of attributes; ``stack`` gives back what it holds."""
    tables = partial(_Tables, attributes, weight, unit)
    if isinstance(coded, list):
        return partial(_tally_arrays, *array_sums(coded, attributes, weight, unit), tables)
    if unit > 1:
        coded = with_sums(coded, attributes, weight, unit)
    native = coded.to_native()
    if coded.implementation == nw.Implementation.DUCKDB:
        return partial(_tally_duckdb, native, tables)
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


def _tally_arrays(
    columns: Sequence[NDArray],
    sums: Mapping[str, NDArray[np.int64]],
    new: _NewTables,
    groups: Sequence[Subset],
) -> _Tables:
    tables = new(groups)
    rows = len(columns[0] if columns else sums[WEIGHT])
    for start in range(0, rows, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        own = {name: values[part] for name, values in sums.items()}
        for S in groups:
            tables.add(S, [columns[i][part] for i in S], sums=own)
    return tables


def _tally_duckdb(relation: Any, new: _NewTables, groups: Sequence[Subset]) -> _Tables:
    """One scan for all groups; GROUPING has a bit for each column, 1 where the row's group lacks
    it.
    """
    tables = new(groups)
    keys = sorted({i for S in groups for i in S})
    parts = [keys[k : k + _GROUPING_BITS] for k in range(0, len(keys), _GROUPING_BITS)]
    sets = ", ".join(f"({', '.join(f'c{i}' for i in S)})" for S in groups)
    bits = [f"GROUPING({', '.join(f'c{i}' for i in part)}) AS g{k}" for k, part in enumerate(parts)]
    sums = [f"CAST(coalesce(sum({name}), 0) AS BIGINT) AS {name}" for name in tables.sums]
    columns = ", ".join([*(f"c{i}" for i in keys), *bits, *sums, "count(*) AS n"])
    counted = relation.aggregate(columns, f"GROUPING SETS ({sets})")
    # older versions have the other name only
    reader = getattr(counted, "to_arrow_reader", None) or counted.fetch_arrow_reader
    for rows in reader(_ROWS_AT_ONCE):
        lacks = [rows[f"g{k}"].to_numpy(zero_copy_only=False) for k in range(len(parts))]
        for S in groups:
            bits = [
                sum(1 << k for k, i in enumerate(reversed(part)) if i not in S) for part in parts
            ]
            own = np.flatnonzero(
                np.all([lack == bit for lack, bit in zip(lacks, bits, strict=True)], axis=0)
            )
            if len(own):
                _add_found(tables, S, rows.take(own))
    return tables


def _add_found(tables: _Tables, S: Subset, found: Any) -> None:
    """Groups of equal records, of any kind of columns."""
    sums = {name: found[name].to_numpy() for name in tables.sums}
    tables.add(S, [found[f"c{i}"].to_numpy() for i in S], found["n"].to_numpy(), sums)


def _tally_polars(coded: nw.LazyFrame[Any], new: _NewTables, groups: Sequence[Subset]) -> _Tables:
    """All groups at once, which reads the records once."""
    import polars as pl

    tables = new(groups)
    frames = [_group(coded, S, tables.sums).to_native() for S in groups]
    for S, found in zip(groups, pl.collect_all(frames), strict=True):
        _add_found(tables, S, found)
    return tables


def _tally_lazy(coded: nw.LazyFrame[Any], new: _NewTables, groups: Sequence[Subset]) -> _Tables:
    tables = new(groups)
    for S in groups:
        _add_found(tables, S, _group(coded, S, tables.sums).collect("pyarrow"))
    return tables


def _group(coded: nw.LazyFrame[Any], S: Subset, sums: Sequence[str]) -> nw.LazyFrame[Any]:
    wanted = [nw.len().alias("n"), *(nw.col(name).sum() for name in sums)]
    # no attribute at all: one group, where a sum of no rows may be null
    found = coded.group_by(*(f"c{i}" for i in S)).agg(*wanted) if S else coded.select(*wanted)
    if not sums:
        return found
    # some engines add 64-bit integers up in wider types
    return found.with_columns(*(nw.col(name).fill_null(0).cast(nw.Int64) for name in sums))
