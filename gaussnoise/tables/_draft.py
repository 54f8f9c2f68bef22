"""A first schema, drafted from the data: every line of it must be checked against public knowledge."""

import math

import narwhals as nw

from ..errors import DataError
from ._read import guarded, open_table
from ._schema import Attribute

_MOST_CATEGORIES = 100
_MOST_INTEGERS = 20
_BINS = 8


def draft(table: object) -> list[Attribute]:
    """One attribute per column; see :meth:`Schema.draft`."""
    frame = _typed(table)
    types = guarded("read the table's columns", lambda: dict(frame.collect_schema()))
    return [_attribute(frame, name, dtype) for name, dtype in types.items()]


def _typed(table: object) -> nw.LazyFrame:
    """As :func:`open_table`, with the types duckdb infers for CSV."""
    import os

    if isinstance(table, str | os.PathLike) and os.fspath(table).lower().endswith(
        (".csv", ".tsv", ".csv.gz", ".tsv.gz")
    ):
        import duckdb

        open_table(table)  # refuses what is not there
        return nw.from_native(
            guarded("open the file", lambda: duckdb.connect().read_csv(os.fspath(table), header=True))
        )
    return open_table(table)


def _attribute(frame: nw.LazyFrame, name: str, dtype: nw.dtypes.DType) -> Attribute:
    column = nw.col(name)
    discrete = dtype.is_integer() or dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean)
    if not (discrete or dtype.is_numeric()):
        raise DataError(
            f"column {name!r}: expected text, integers, booleans or numbers, got {dtype}; hint: drop or cast it"
        )
    if dtype in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    nulls = guarded(
        "look for nulls", lambda: frame.select(column.is_null().any()).collect("pyarrow").to_native()[0][0].as_py()
    )
    other = "other" if nulls else None
    if discrete:
        distinct = frame.select(column).unique().filter(~column.is_null()).head(_MOST_CATEGORIES + 1)
        values = sorted(guarded("list categories", lambda: distinct.collect("pyarrow").to_native()[0].to_pylist()))
        if values and len(values) <= (_MOST_INTEGERS if dtype.is_integer() else _MOST_CATEGORIES):
            return Attribute(name, categories=values, other=other)
        if not dtype.is_integer():
            raise DataError(
                f"column {name!r}: expected 1 to {_MOST_CATEGORIES} distinct values; hint: drop identifiers"
            )
    value = column.cast(nw.Float64)
    finite = frame.select(value.alias("v")).filter(nw.col("v").is_finite())
    ends = guarded("find the range", lambda: finite.select(a=nw.col("v").min(), b=nw.col("v").max()).collect("pyarrow"))
    low, high = (column[0] for column in (ends["a"].to_list(), ends["b"].to_list()))
    return Attribute(name, edges=[-math.inf, *_round_edges(low or 0.0, high or 0.0), math.inf], other=other)


def _round_edges(low: float, high: float) -> list[float]:
    """At most eight or so multiples of 1, 2 or 5 times a power of ten, strictly inside or at the ends of the range."""
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / _BINS))
    step = next(m * power for m in (1, 2, 5, 10) if m * power * _BINS >= high - low)
    return [round(k * step, 12) for k in range(math.ceil(low / step), math.floor(high / step) + 1)] or [low]
