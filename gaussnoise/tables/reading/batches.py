"""Rows of duckdb, a batch at a time as arrow: of files, and of its own tables.

They are read as columns of arrow are. Little SQL is needed, and memory is that of a batch.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw

from .csv import text_number
from .frames import sql
from .opened import Opened
from .types import WORDS, is_wide

_ROWS = 2**18
_PLAIN = (nw.Boolean, nw.Date, nw.Datetime, nw.Binary, *WORDS)


def batches(
    source: Opened, numbers: Sequence[str], others: Sequence[str]
) -> Iterator[list[nw.Series[Any]]]:
    """Yield columns of a duckdb relation, in order, of some rows at a time; once at least.

    ``numbers`` that are text come as doubles, and so do integers that arrow has no type for, which
    are text among the ``others``. What duckdb alone has types for is text.
    """
    import pyarrow as pa

    written = [_written(source, name, True) for name in numbers]
    written += [_written(source, name, False) for name in others]
    rows = source.frame.to_native().project(
        ", ".join(f"{value} AS x{k}" for k, value in enumerate(written))
    )
    # older versions have the other name only
    reader = (getattr(rows, "to_arrow_reader", None) or rows.fetch_arrow_reader)(_ROWS)
    some = False
    for batch in reader:
        some = True
        yield _series(pa.Table.from_batches([batch]))
    if not some:
        yield _series(reader.schema.empty_table())


def _series(table: Any) -> list[nw.Series[Any]]:
    frame = nw.from_native(table, eager_only=True)
    return [frame[name] for name in frame.columns]


def _written(source: Opened, column: str, number: bool) -> str:
    """SQL of a column's values."""
    name, dtype = sql(column), source.types[column]
    if number and (column in source.text or dtype == nw.String):
        return text_number(name)
    if is_wide(dtype):
        return f"CAST({name} AS {'DOUBLE' if number else 'VARCHAR'})"
    return name if dtype.is_numeric() or dtype in _PLAIN else f"CAST({name} AS VARCHAR)"
