"""Columns of a table in this process; from files and duckdb, a batch of rows at a time.

Batches have arrow columns, which are read as others are. So little SQL is needed, and memory is
that of a batch.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import narwhals as nw

from .csv import text_number
from .frames import Column, sql
from .opened import Opened
from .types import WORDS, is_wide
from .values import Form

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS, _VALUES = 2**18, 2**21  # most rows and most values of a batch
_PLAIN = (nw.Boolean, nw.Date, nw.Datetime, nw.Binary, *WORDS)


def batches(
    source: Opened, numbers: Sequence[str], others: Sequence[str]
) -> Iterable[list[Column]]:
    """Return columns in order: of files and duckdb some rows at a time, of others all rows at once.

    There is at least one batch. From files and duckdb, ``numbers`` in untyped text become doubles.
    So do 128-bit integers, for which arrow has no type; among the ``others`` they become text.
    """
    if source.engine == nw.Implementation.DUCKDB:
        return _of_duckdb(source, numbers, others)
    here = source.frame.select(*dict.fromkeys((*numbers, *others)))
    if isinstance(here, nw.LazyFrame):
        # arrow would infer the types of dask's columns from their values, and lacks some of polars
        own = source.untyped or source.engine == nw.Implementation.POLARS
        here = here.collect() if own else here.collect("pyarrow")
    return [[here[name] for name in (*numbers, *others)]]


def parts(source: Opened, column: str) -> Iterator[Column]:
    """Yield a column, in parts if it is not in this process."""
    if source.engine != nw.Implementation.DASK:
        yield from (own for (own,) in batches(source, [], [column]))
        return
    for part in source.frame.to_native()[[column]].to_delayed():  # dataframes of pandas
        yield nw.from_native(part.compute(), eager_only=True)[column]


def number_form(source: Opened, column: str) -> Form:
    """Return the form in which :func:`batches` returns a column of numbers."""
    own = source.form(column)
    return Form.TYPED if own is Form.TEXT and source.engine == nw.Implementation.DUCKDB else own


def joined(parts: Sequence[Column]) -> Column:
    """Return a column whose parts are in several batches."""
    if len(parts) == 1:
        return parts[0]
    import pyarrow as pa

    columns = [part.to_native() for part in parts]
    chunks = [chunk for column in columns for chunk in column.chunks]
    return nw.from_native(pa.chunked_array(chunks, columns[0].type), series_only=True)


def _of_duckdb(
    source: Opened, numbers: Sequence[str], others: Sequence[str]
) -> Iterator[list[Column]]:
    """Yield columns of a relation in batches. The caller's connection computes only casts."""
    import pyarrow as pa

    written = [_written(source, name, True) for name in numbers]
    written += [_written(source, name, False) for name in others]
    rows = source.frame.to_native().project(
        ", ".join(f"{value} AS x{k}" for k, value in enumerate(written))
    )
    # older versions have only the other name
    read = getattr(rows, "to_arrow_reader", None) or rows.fetch_arrow_reader
    reader = read(min(_ROWS, max(_VALUES // len(written), 1)))
    types = [source.types[name] for name in (*numbers, *others)]
    some = False
    for batch in reader:
        some = True
        yield _series(pa.Table.from_batches([batch]), types)
    if not some:
        yield _series(reader.schema.empty_table(), types)


def _series(table: "pa.Table", types: Sequence[nw.dtypes.DType]) -> list[Column]:
    columns = (
        _as_truth(own) if dtype == nw.Boolean else own
        for own, dtype in zip(table.columns, types, strict=True)
    )
    return [nw.from_native(own, series_only=True) for own in columns]


def _as_truth(values: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """Return truth values in arrow's own type; a duckdb connection may be set to bytes."""
    import pyarrow as pa

    chunks = [getattr(own, "storage", own).cast(pa.bool_()) for own in values.chunks]
    return pa.chunked_array(chunks, pa.bool_())


def _written(source: Opened, column: str, number: bool) -> str:
    """Return the SQL expression of a column's values; types that only duckdb has become text."""
    name, dtype = sql(column), source.types[column]
    if number and column in source.text:
        return text_number(name)
    if is_wide(dtype):
        return f"CAST({name} AS {'DOUBLE' if number else 'VARCHAR'})"
    return name if dtype.is_numeric() or dtype in _PLAIN else f"CAST({name} AS VARCHAR)"
