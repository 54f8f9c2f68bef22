"""Records in, distinct coded rows out: read once, in whatever engine holds the table."""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ._schema import Attribute

Result = TypeVar("Result")


def count_rows(table: object, attributes: Sequence[Attribute]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct coded rows of the table and how often each occurs.

    Args:
        table: a dataframe narwhals knows (eager or lazy), or the path of a CSV, TSV or Parquet file.
        attributes: columns to read.

    Returns:
        codes (k, attributes), each in range of its attribute, and counts (k,).

    Raises:
        DataError: a missing column, wrong type, null, NaN or value outside the schema; names the column, no value.
    """
    frame = open_table(table, [a.name for a in attributes if a.edges is not None])
    text = isinstance(table, str | os.PathLike) and not _is_parquet(table)
    types = guarded("read the table's columns", lambda: dict(frame.collect_schema()))
    missing = [a.name for a in attributes if a.name not in types]
    if missing:
        raise DataError(f"table: expected columns {', '.join(map(repr, missing))}, which are missing")
    expressions = [_code(a, types[a.name], text).alias(f"c{k}") for k, a in enumerate(attributes)]
    keys = [f"c{k}" for k in range(len(attributes))]
    query = frame.select(*expressions).group_by(*keys).agg(nw.len().alias("n"))
    found = guarded("count the table's rows", lambda: query.collect("pyarrow").to_native())
    # 0 marks what matched no cell: nulls, NaN, unknown categories, numbers outside the edges
    codes = np.stack([found[key].to_numpy().astype(np.int64) for key in keys], axis=1) - 1
    for k, attribute in enumerate(attributes):
        outside = codes[:, k] < 0
        if attribute.other is not None:
            codes[outside, k] = attribute.size - 1
        elif outside.any():
            rule = "its declared categories" if attribute.edges is None else "finite numbers inside its declared edges"
            raise DataError(
                f"column {attribute.name!r}: expected only {rule}, got a null or another value; "
                'hint: correct the schema, or give the attribute a catch-all: other = "…"'
            )
    return codes, found["n"].to_numpy().astype(np.int64)


def open_table(table: object, numeric: Sequence[str] = ()) -> nw.LazyFrame[Any]:
    """The table as a lazy frame. CSV comes as text, except the ``numeric`` columns: NULL where they do not parse."""
    if isinstance(table, str | os.PathLike):
        return nw.from_native(guarded("open the file", lambda: _open_file(os.fspath(table), numeric)))
    try:
        frame = nw.from_native(table)  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError:
        frame = None
    if frame is None:
        raise DataError(
            f"table: expected a dataframe (polars, pandas, pyarrow, duckdb, …) or the path of a CSV or Parquet file, "
            f"got {type(table).__name__}"
        )
    return frame.lazy()


def frame_backend(table: object) -> Any:
    """The dataframe library results come back in: the caller's own if it is eager, else pyarrow."""
    if isinstance(table, str | os.PathLike):
        return "pyarrow"
    implementation = nw.from_native(table).implementation  # pyright: ignore[reportArgumentType, reportCallIssue]
    eager = implementation in (nw.Implementation.PANDAS, nw.Implementation.POLARS, nw.Implementation.MODIN)
    return implementation if eager else "pyarrow"


def guarded(task: str, action: Callable[[], Result]) -> Result:
    """``action()``; an engine's own error is replaced, since it may quote records."""
    try:
        return action()
    except DataError:
        raise
    except Exception as error:  # noqa: BLE001 (every engine has its own errors)
        kind = type(error).__name__
    # raised outside the handler, so that not even __context__ leads to the original
    raise DataError(f"table: could not {task} ({kind}); the engine's message is withheld because it may quote records")


def _is_parquet(path: str | os.PathLike[str]) -> bool:
    return os.fspath(path).lower().endswith((".parquet", ".pq"))


def _open_file(path: str, numeric: Sequence[str]) -> Any:
    import duckdb

    if not os.path.exists(path):
        raise DataError(f"table: no such file: {path}")
    connection = duckdb.connect()
    if _is_parquet(path):
        return connection.read_parquet(path)
    if not path.lower().endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz")):
        raise DataError(f"table: expected a .csv, .tsv or .parquet file, got {path}")
    relation = connection.read_csv(path, all_varchar=True, header=True)
    columns = [f"TRY_CAST({_sql(c)} AS DOUBLE) AS {_sql(c)}" if c in numeric else _sql(c) for c in relation.columns]
    return relation.project(", ".join(columns))


def _sql(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _code(attribute: Attribute, dtype: nw.dtypes.DType, text: bool) -> nw.Expr:
    """1 + the cell of each record, 0 where there is none."""
    column = nw.col(attribute.name)
    if attribute.edges is not None:
        if not dtype.is_numeric():
            raise DataError(f"column {attribute.name!r}: expected numbers, as the schema gives edges; got {dtype}")
        value = column.cast(nw.Float64)
        inside = value.is_finite() & (value >= attribute.edges[0]) & (value <= attribute.edges[-1])
        code = sum(((value >= edge).cast(nw.Int32) for edge in attribute.edges[1:-1]), nw.lit(1))
        return nw.when(inside).then(code).otherwise(nw.lit(0)).fill_null(0).cast(nw.Int32)
    categories: tuple[Any, ...] = attribute.categories or ()
    kind = type(categories[0])
    if text:
        # CSV knows text only: 3 is "3", true is "true" in any case
        column = column.str.to_lowercase() if kind is bool else column
        categories = tuple(str(c).lower() if kind is bool else str(c) for c in categories)
    elif kind is str and dtype in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    elif not ({str: dtype == nw.String, bool: dtype == nw.Boolean, int: dtype.is_integer()}[kind]):
        raise DataError(
            f"column {attribute.name!r}: expected {kind.__name__} categories, as in the schema; got {dtype}; "
            "hint: cast it, or declare edges for numbers"
        )
    matches = ((column == category).fill_null(False).cast(nw.Int32) * (k + 1) for k, category in enumerate(categories))
    return sum(matches, nw.lit(0)).cast(nw.Int32)
