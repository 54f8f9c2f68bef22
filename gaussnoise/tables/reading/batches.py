"""Columns of a table in this process; from files and lazy engines, a batch of rows at a time.

Batches of files and duckdb have arrow columns, which are read like all other arrow columns. So
little SQL is needed, and only one batch is in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import narwhals as nw

from .csv import text_number
from .frames import Column, sql
from .lines import Lines
from .opened import Opened
from .types import WORDS, is_wide
from .values import Form

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

_ROWS, _VALUES = 2**18, 2**21  # most rows, and most values, of a batch
_MOST_VALUES = 2**23  # the same for polars, where each batch costs milliseconds
_PLAIN = (nw.Boolean, nw.Date, nw.Datetime, nw.Binary, *WORDS)


def batches(
    source: Opened, numbers: Sequence[str], others: Sequence[str]
) -> Iterable[list[Column]]:
    """Return batches of rows, which have the columns ``numbers`` and then ``others``.

    Files, duckdb and lazy polars return one batch or more, other engines exactly one. From files
    and duckdb, ``numbers`` in untyped text become doubles. 128-bit integers, for which arrow has no
    type, become doubles in ``numbers`` and text in ``others``.
    """
    if source.lines is not None and not numbers and source.changed.keys().isdisjoint(others):
        return _of_arrow(source.lines, others)
    if source.engine == nw.Implementation.DUCKDB:
        return _of_duckdb(source, numbers, others)
    here = source.frame.select(*dict.fromkeys((*numbers, *others)))
    if isinstance(here, nw.LazyFrame) and source.engine == nw.Implementation.POLARS:
        return _of_polars(here.to_native(), [*numbers, *others])
    if isinstance(here, nw.LazyFrame):
        # arrow would infer the types of dask's columns from their values
        here = here.collect() if source.untyped else here.collect("pyarrow")
    return [[here[name] for name in (*numbers, *others)]]


def parts(source: Opened, column: str) -> Iterator[Column]:
    """Yield the values of one column, in chunks of rows if they are not in this process yet."""
    if source.engine != nw.Implementation.DASK:
        yield from (own for (own,) in batches(source, [], [column]))
        return
    for part in source.frame.to_native()[[column]].to_delayed():  # each part is a pandas dataframe
        yield nw.from_native(part.compute(), eager_only=True)[column]


def number_form(source: Opened, column: str) -> Form:
    """Return the form (text, typed or untyped) in which :func:`batches` returns a number column.

    This is the column's form in the table, except that duckdb turns text into typed doubles.
    """
    own = source.form(column)
    return Form.TYPED if own is Form.TEXT and source.engine == nw.Implementation.DUCKDB else own


def joined(parts: Sequence[Column]) -> Column:
    """Return one column from the chunks that :func:`parts` or :func:`batches` returned."""
    if len(parts) == 1:
        return parts[0]
    frame = nw.concat([part.to_frame() for part in parts])
    return frame[frame.columns[0]]


def _of_polars(rows: "pl.LazyFrame", names: Sequence[str]) -> Iterator[list[Column]]:
    """Yield these columns of a lazy polars frame, in one or more batches of rows."""
    some = False
    size = max(_MOST_VALUES // len(names), 1)
    # older versions of polars return all rows in one batch
    streams = hasattr(rows, "collect_batches")
    for batch in rows.collect_batches(chunk_size=size) if streams else [rows.collect()]:
        some = True
        yield _named(batch, names)
    if not some:
        yield _named(rows.collect_schema().to_frame(), names)


def _named(rows: "pl.DataFrame", names: Sequence[str]) -> list[Column]:
    frame = nw.from_native(rows, eager_only=True)
    return [frame.get_column(name) for name in names]


def _of_duckdb(
    source: Opened, numbers: Sequence[str], others: Sequence[str]
) -> Iterator[list[Column]]:
    """Yield columns of a duckdb relation, ``numbers`` first, in one or more batches of rows."""
    import pyarrow as pa

    # on the user's connection, only casts are computed
    written = [_sql_of(source, name, True) for name in numbers]
    written += [_sql_of(source, name, False) for name in others]
    rows = source.frame.to_native().project(
        ", ".join(f"{value} AS x{k}" for k, value in enumerate(written))
    )
    # older versions of duckdb have only the second name
    read = getattr(rows, "to_arrow_reader", None) or rows.fetch_arrow_reader
    reader = read(min(_ROWS, max(_VALUES // len(written), 1)))
    types = [source.types[name] for name in (*numbers, *others)]
    some = False
    for batch in reader:
        some = True
        yield _series(pa.Table.from_batches([batch]), types)
    if not some:
        yield _series(reader.schema.empty_table(), types)


def _of_arrow(text: Lines, names: Sequence[str]) -> Iterator[list[Column]]:
    most = max(_VALUES // len(names), 1)
    for block in text.batches(names):
        for start in range(0, len(block), most):
            yield _series(block[start : start + most], [])


def _series(table: "pa.Table", types: Sequence[nw.dtypes.DType]) -> list[Column]:
    for k, dtype in enumerate(types):
        if dtype == nw.Boolean:
            table = table.set_column(k, table.field(k).name, _as_truth(table.column(k)))
    # narwhals takes longer to wrap each column than to wrap the table
    return list(nw.from_native(table, eager_only=True).iter_columns())


def _as_truth(values: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return arrow's truth values, also where duckdb returned them as bytes."""
    import pyarrow as pa

    chunks = [getattr(own, "storage", own).cast(pa.bool_()) for own in values.chunks]
    return pa.chunked_array(chunks, pa.bool_())


def _sql_of(source: Opened, column: str, number: bool) -> str:
    """Return the SQL expression by which duckdb reads a column, as a number if ``number``."""
    name, dtype = sql(column), source.types[column]
    if number and column in source.text:
        return text_number(name)
    if is_wide(dtype):
        return f"CAST({name} AS {'DOUBLE' if number else 'VARCHAR'})"
    # types that arrow lacks become text
    return name if dtype.is_numeric() or dtype in _PLAIN else f"CAST({name} AS VARCHAR)"
