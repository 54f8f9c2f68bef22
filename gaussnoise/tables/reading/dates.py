"""Columns of dates and timestamps as moments, by every engine's own expressions."""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from ..schema.dates import ISO, is_dated
from ..schema.schema import Attribute
from .frames import is_zoned
from .values import FIELDS, REST, ZEROS, moment, moment_of

_WORDS = (nw.String, nw.Categorical, nw.Enum)  # types of text
_NOTHING = "0001-01-01"  # in the place of text that is no date, so that none of it is ever read
_ANCHORED = rf"\A(?:{ISO})\z"

# the first and the last whole microsecond that 64 bits of nanoseconds hold
_NANOSECONDS = (
    datetime.datetime(1677, 9, 21, 0, 12, 43, 145225),
    datetime.datetime(2262, 4, 11, 23, 47, 16, 854775),
)


def text_numbers(column: nw.Expr) -> nw.Expr:
    """Of a column of text."""
    strict = column.str.contains(_ANCHORED)
    digits = nw.concat_str(nw.when(strict).then(column).otherwise(nw.lit(_NOTHING)), nw.lit(ZEROS))
    fields = [digits.str.slice(at, size).cast(nw.Int64) for at, size in (*FIELDS, REST)]
    between = nw.when(fields[7] > 0).then(nw.lit(1)).otherwise(nw.lit(0))
    return nw.when(strict).then(moment(fields[:3], fields[3:7], between))


def typed_numbers(column: nw.Expr, dtype: nw.dtypes.DType) -> nw.Expr:
    """Of a column of dates or of timestamps without time zone."""
    if isinstance(dtype, nw.Datetime) and dtype.time_unit == "ns":
        return _nanoseconds(column)
    own = column.dt
    year, month, day = (part.cast(nw.Int64) for part in (own.year(), own.month(), own.day()))
    year = nw.when(year >= 1, year <= 9999).then(year)  # of others products could leave 64 bits
    if not isinstance(dtype, nw.Datetime):
        return moment((year, month, day), (0, 0, 0, 0))
    clock = [part.cast(nw.Int64) for part in (own.hour(), own.minute(), own.second())]
    micro = own.microsecond().cast(nw.Int64)
    micro = nw.when(micro < 0).then(micro + 1_000_000).otherwise(micro)  # Spark's before 1970
    return moment((year, month, day), (*clock, micro))


def _nanoseconds(column: nw.Expr) -> nw.Expr:
    """Of a column of them: duckdb rounds to the nearest microsecond, others down."""
    early, late = (nw.lit(end) for end in _NANOSECONDS)
    before, after = column < early, column > late
    column = nw.when(~before, ~after).then(column)  # rounded, others would leave their range
    micro = column.dt.truncate("1us")
    aside = nw.when(column > micro).then(nw.lit(1)).otherwise(nw.lit(0))
    aside = nw.when(column < micro).then(nw.lit(-1)).otherwise(aside)
    nanoseconds = typed_numbers(micro, nw.Datetime("us")) + aside
    first, last = map(moment_of, _NANOSECONDS)
    least, most = (first or 0) - 1, (last or 0) + 1
    nanoseconds = nw.when(before).then(nw.lit(least)).otherwise(nanoseconds)
    return nw.when(after).then(nw.lit(most)).otherwise(nanoseconds)


def numbers_of(values: Any, dtype: nw.dtypes.DType) -> Any:
    """Of an arrow array, as another; None where its type says too little."""
    import pyarrow as pa

    column = nw.col("v")
    if dtype in _WORDS:
        numbers = text_numbers(column)
        values = values.cast(pa.large_string())
    elif dtype == nw.Date or (dtype == nw.Datetime and not is_zoned(dtype)):
        numbers = typed_numbers(column, dtype)
        values = _in_range(values, dtype)
    else:
        return None
    return nw.from_native(pa.table({"v": values})).select(v=numbers)["v"].to_native()


def _in_range(values: Any, dtype: nw.dtypes.DType) -> Any:
    """Nulls for moments so far away that arrow's arithmetic leaves 64 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    unit = dtype.time_unit if isinstance(dtype, nw.Datetime) else "day"
    if unit in ("us", "ns"):
        return values
    size = {"day": 1, "s": 86_400, "ms": 86_400_000}[unit]
    ticks = values.cast(pa.int32()) if unit == "day" else values
    ticks = ticks.cast(pa.int64())
    least, most = (
        size * (day.toordinal() - 719_163) for day in (datetime.date.min, datetime.date.max)
    )
    number = ticks.fill_null(0).to_numpy()
    near = pa.array((number >= least) & (number < most + size))
    return pc.call_function("if_else", [near, values, pa.scalar(None, values.type)])


def _in_microseconds(relation: Any, columns: Sequence[str]) -> Any:
    """An ibis expression with nulls for seconds so far away that microseconds leave duckdb's 64
    bits.

    Those of other databases are left as they are.
    """
    if relation.get_backend().name != "duckdb":
        return relation
    return relation.mutate(**{name: relation[name].try_cast("timestamp") for name in columns})


Types = Mapping[str, nw.dtypes.DType]


def with_numbers(
    frame: Any, attributes: Sequence[Attribute], types: Types
) -> tuple[Any, list[Attribute], Types]:
    """The frame with a column of numbers beside each column of dates.

    With it the attributes with the names of the columns that are to be read, and the types of
    all.
    """
    dated = [attribute for attribute in attributes if is_dated(attribute.edges)]
    if not dated:
        return frame, list(attributes), types
    coarse = [a.name for a in dated if types[a.name] in (nw.Datetime("s"), nw.Datetime("ms"))]
    if coarse and frame.implementation == nw.Implementation.IBIS:
        frame = nw.from_native(_in_microseconds(frame.to_native(), coarse))
    taken = {name.casefold() for name in types}
    free = (f"date_{k}" for k in range(len(types) + len(dated)))
    names = dict(zip((a.name for a in dated), (f for f in free if f not in taken), strict=False))
    columns = []
    for name in names:
        column, dtype = nw.col(name), types[name]
        words = dtype in _WORDS
        number = text_numbers(column.cast(nw.String)) if words else typed_numbers(column, dtype)
        columns.append(number.alias(names[name]))
    renamed = [
        Attribute(names[a.name], edges=a.edges, other=a.other) if a.name in names else a
        for a in attributes
    ]
    return (
        frame.select(*types, *columns),
        renamed,
        {**types, **dict.fromkeys(names.values(), nw.Int64())},
    )
