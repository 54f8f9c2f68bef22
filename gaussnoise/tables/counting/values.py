"""How often every value of a column occurs, counted where the records live."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..reading.csv import FORM
from ..reading.files import is_csv
from ..reading.frames import guarded, open_table, sql, type_name
from .persons import (
    People,
    PersonLimit,
    check_person_type,
    encoded,
    limited_arrays,
    people_of,
)

Value = str | int
_TASK = "count the column's values"
_INTEGERS = range(-(2**63), 2**64)


def count_values(
    table: object, column: str, most: int, limit: PersonLimit | None = None
) -> dict[Value, int]:
    """Rows of every text or integer of a column; nulls and all else are passed over.

    Text is the same if its bytes are: no engine's collation brings values together, since then one
    row could decide under which name all of them are counted.

    Args:
        table: as for :func:`gaussnoise.tables.counting.count.count_marginals`, but for the engines
            that are neither here nor duckdb, polars or dask.
        column: of text or of integers, in a table whose engine declares types. In pandas and dask,
            where the type of a column may depend on its rows, it may be any; floats that are
            integers count as these.
        most: distinct values.
        limit: on the rows of each person. Rows without a value, or without a person, are passed
            over before; both columns are read into memory.

    Raises:
        DataError: no such column, another type or engine, or more distinct values.
    """
    frame = open_table(table)
    engine = frame.implementation
    text = is_csv(table)
    untyped = engine.is_pandas_like() or engine == nw.Implementation.DASK

    dtype = _declared(frame, column, text, untyped)
    words = text or dtype in (nw.String, nw.Categorical, nw.Enum)
    if not (untyped or words or dtype.is_integer()):
        raise DataError(
            f"column {column!r}: expected text or integers, got {type_name(dtype)}; hint: cast it, "
            "or declare edges"
        )
    if not (
        isinstance(frame, nw.DataFrame)
        or engine in (nw.Implementation.DUCKDB, nw.Implementation.POLARS, nw.Implementation.DASK)
    ):
        raise DataError(
            "table: expected a CSV, TSV or Parquet file, or a table of polars, pandas, pyarrow, "
            f"duckdb or dask, to count unknown values in, got {engine.name.lower()}; hint: write "
            "the column to a Parquet file"
        )
    if limit is not None:
        check_person_type(limit.column, _declared(frame, limit.column, text, untyped))

    def counted() -> dict[Value, int]:
        if limit is None:
            return _counted(frame, column, dtype, words, most)
        return _of_persons(frame, column, words or dtype.is_integer(), limit)

    counts = guarded(_TASK, counted, FORM if text else "", engine=engine)
    if len(counts) > most:
        raise DataError(
            f"column {column!r}: expected at most {most} distinct values; hint: leave out "
            "identifiers and free text"
        )
    return counts


def _declared(frame: Any, column: str, text: bool, untyped: bool) -> nw.dtypes.DType:
    """The type of a column, or a DataError if it is missing."""

    def declared() -> nw.dtypes.DType | None:
        names = frame.columns if untyped else frame.collect_schema().names()
        return frame.select(column).collect_schema()[column] if column in names else None

    dtype = guarded(_TASK, declared, engine=frame.implementation)
    if dtype is None:
        hint = "; hint: CSV needs commas, and column names in its first line" if text else ""
        raise DataError(f"table: expected a column {column!r}, which is missing{hint}")
    return dtype


def _counted(
    frame: Any, column: str, dtype: nw.dtypes.DType, words: bool, most: int
) -> dict[Value, int]:
    """Counts of all values, or of some if these are more than may be."""
    if frame.implementation == nw.Implementation.DUCKDB:
        return _duckdb(frame.to_native(), column, words, most)
    if frame.implementation == nw.Implementation.POLARS:
        return _polars(frame.lazy().to_native(), column, words, most)
    if isinstance(frame, nw.DataFrame):
        return _here(frame[column], dtype, words)
    counts: Counter[Value] = Counter()
    for part in frame.to_native()[[column]].to_delayed():  # dask's partitions, of pandas
        series = nw.from_native(part.compute(), eager_only=True)[column]
        counts.update(_by_value(series.to_list()))
        if len(counts) > most:
            break
    return dict(counts)


def _duckdb(relation: Any, column: str, words: bool, most: int) -> dict[Value, int]:
    """Text as bytes, which compare as such whatever the collation."""
    name = sql(column)
    value = f"encode(CAST({name} AS VARCHAR))" if words else name
    rows = (
        relation.project(f"{value} AS v")
        .filter("v IS NOT NULL")
        .aggregate("v, count(*) AS n", "v")
        .limit(most + 1)
        .fetchall()
    )
    return {v.decode() if words else int(v): int(n) for v, n in rows}


def _polars(frame: Any, column: str, words: bool, most: int) -> dict[Value, int]:
    import polars as pl

    value = pl.col(column).cast(pl.String) if words else pl.col(column)
    counted = (
        frame.select(value.alias("v"))
        .drop_nulls()
        .group_by("v")
        .agg(pl.len().alias("n"))
        .head(most + 1)
        .collect()
    )
    return dict(zip(counted["v"].to_list(), counted["n"].to_list(), strict=True))


def _of_persons(frame: Any, column: str, typed: bool, limit: PersonLimit) -> dict[Value, int]:
    """Counts of the rows that are within the limit.

    Which rows of a person these are may depend on that person's rows alone: values are compared by
    hashes of their own, since positions in a list of all values would depend on the others'.
    """
    both = frame.select(column, limit.column)
    here = both.collect() if isinstance(both, nw.LazyFrame) else both
    values, codes = _coded(here[column], typed)
    people = people_of(here[limit.column])
    fits = (codes >= 0) & (people.index >= 0)
    if not fits.any():
        return {}
    digests = [
        hashlib.blake2b(repr(value).encode(), digest_size=16, key=limit.key).digest()
        for value in values
    ]
    words = np.frombuffer(b"".join(digests), dtype="<i8").reshape(-1, 2)
    rows = words[codes[fits]]
    kept = limited_arrays([rows[:, 0], rows[:, 1]], People(people.index[fits], people.names), limit)
    pairs, counts = np.unique(np.stack(kept, axis=1), axis=0, return_counts=True)
    named = dict(zip(digests, values, strict=True))
    return {named[row.tobytes()]: int(n) for row, n in zip(pairs, counts, strict=True)}


def _coded(series: nw.Series[Any], typed: bool) -> tuple[list[Value], NDArray[np.int64]]:
    """Every text or integer once, and each row's position among them; −1 for all else."""
    if typed:
        try:
            return _coded_by_arrow(series)
        except Exception:  # noqa: BLE001 (objects of any kind raise anything; the values decide)
            pass
    places: dict[Value, int] = {}
    codes = [
        -1 if (value := _value(one)) is None else places.setdefault(value, len(places))
        for one in series.to_list()
    ]
    return list(places), np.array(codes, dtype=np.int64)


def _coded_by_arrow(series: nw.Series[Any]) -> tuple[list[Value], NDArray[np.int64]]:
    import pyarrow as pa

    column: Any = series.to_arrow()
    if not pa.types.is_integer(column.type):
        column = column.cast(pa.large_string())
    codes, known = encoded(column)
    return known.to_pylist(), codes


def _here(series: nw.Series[Any], dtype: nw.dtypes.DType, words: bool) -> dict[Value, int]:
    """By arrow's hash tables, or by Python for what has no type."""
    import pyarrow as pa

    if words or dtype.is_integer():
        try:
            values = series.to_arrow()
            if words:
                values = values.cast(pa.large_string())
            counted = values.drop_null().value_counts()
            pairs = zip(*(counted.field(k).to_pylist() for k in (0, 1)), strict=True)
            return {v: int(n) for v, n in pairs}
        except Exception:  # noqa: BLE001 (objects of any kind raise anything; the values decide)
            pass
    return _by_value(series.to_list())


def _by_value(values: Iterable[Any]) -> dict[Value, int]:
    """Each value by itself, before any are compared: to Python, True, 1 and 1.0 are the same."""
    counts = Counter(map(_value, values))
    return {value: count for value, count in counts.items() if value is not None}


def _value(value: Any) -> Value | None:
    """The text or integer that a Python object is, or None."""
    try:
        if isinstance(value, str):
            text = str.__str__(value)
            text.encode()  # what is no text in UTF-8 is no category
            return text
        if isinstance(value, bool | np.bool_ | np.timedelta64):
            return None
        if isinstance(value, int | np.integer):
            number = int(value)
        elif isinstance(value, float | np.floating) and float(value).is_integer():
            number = int(value)
        else:
            return None
        return number if number in _INTEGERS else None
    except Exception:  # noqa: BLE001 (a text that has no bytes, or an object that raises)
        return None
