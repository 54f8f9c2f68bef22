"""Dates and timestamps as integers that order them: every engine compares the same ones.

A moment is twice its number of microseconds in a calendar of twelve months of 31 days each, plus
one if it lies between that microsecond and the next: so text and columns of nanoseconds are
compared exactly with edges of whole microseconds, in 64 bits. Moments are of the years 1 to 9999,
which is what dates in text can say; all else has no number, and lies outside.
"""

import bisect
import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from ...errors import DataError
from ..reading.frames import is_zoned, sql, type_name
from ..schema.dates import ISO, NO_ZONE, Edge, is_daily, is_dated
from ..schema.schema import Attribute

_WORDS = (nw.String, nw.Categorical, nw.Enum)  # types of text
_DAY = 2 * 86_400_000_000
_NOTHING = "0001-01-01"  # in the place of text that is no date, so that none of it is ever read
_ZEROS = "0" * 19  # a date alone, with them, is as long as a timestamp of nanoseconds
_FIELDS = (0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2), (20, 6)  # where each is, how long
_REST = 26, 3  # nanoseconds
_ANCHORED = rf"\A(?:{ISO})\z"


def _number(day: Sequence[Any], clock: Sequence[Any], between: Any = 0) -> Any:
    """Of integers, or of expressions: year, month, day; hour, minute, second, microsecond."""
    (year, month, number), (hour, minute, second, micro) = day, clock
    days = (year * 12 + month) * 31 + number
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return (seconds * 1_000_000 + micro) * 2 + between


def _of_date(value: datetime.date, between: int = 0) -> int:
    clock = (0, 0, 0, 0)
    if isinstance(value, datetime.datetime):
        clock = value.hour, value.minute, value.second, value.microsecond
    return _number((value.year, value.month, value.day), clock, between)


_FIRST = _of_date(datetime.date.min)
_LAST = _of_date(datetime.date.max) + _DAY - 1

# the first and the last whole microsecond that 64 bits of nanoseconds hold
_NANOSECONDS = (
    datetime.datetime(1677, 9, 21, 0, 12, 43, 145225),
    datetime.datetime(2262, 4, 11, 23, 47, 16, 854775),
)


def _number_of(value: object) -> int | None:
    """Of one Python object: a date, a timestamp without time zone, numpy's and pandas' included, or
    strict ISO text. Others have none.
    """
    if isinstance(value, str):
        return _of_text(str.__str__(value))
    if isinstance(value, np.datetime64):
        moment = value.astype("datetime64[us]")
        plain = moment.item()
        return _of_date(plain, bool(moment < value)) if _is_naive(plain) else None
    if isinstance(value, datetime.datetime):
        # pandas' missing time is one that is not equal to itself
        within = bool(getattr(value, "nanosecond", 0))
        return _of_date(value, within) if _is_naive(value) and value == value else None
    return _of_date(value) if isinstance(value, datetime.date) else None


def _is_naive(value: object) -> bool:
    return isinstance(value, datetime.datetime) and value.tzinfo is None


def _of_text(text: str) -> int | None:
    if re.fullmatch(ISO, text) is None:
        return None
    fields = [int((text + _ZEROS)[at : at + size]) for at, size in (*_FIELDS, _REST)]
    return _number(fields[:3], fields[3:7], int(fields[7] > 0))


def date_finder(edges: Sequence[Edge]) -> Callable[[Any], int]:
    """The code of one Python object, by its value."""
    begin, last = bounds_of(edges)

    def found(value: Any) -> int:
        try:
            number = _number_of(value)
        except Exception:  # noqa: BLE001 (an object that raises when it is looked at)
            number = None
        return 0 if number is None or number > last else bisect.bisect_right(begin, number)

    return found


def bounds_of(edges: Sequence[Edge]) -> tuple[list[int], int]:
    """Where bins begin, and the last number inside."""
    begin = [_of_date(edge) if isinstance(edge, datetime.date) else _FIRST for edge in edges[:-1]]
    last = edges[-1]
    if not isinstance(last, datetime.date) or last == datetime.date.max:
        return begin, _LAST
    if is_daily(edges):
        return begin, _of_date(last + datetime.timedelta(days=1)) - 1
    return begin, _of_date(last)


def text_numbers(column: nw.Expr) -> nw.Expr:
    """Of a column of text."""
    strict = column.str.contains(_ANCHORED)
    digits = nw.concat_str(nw.when(strict).then(column).otherwise(nw.lit(_NOTHING)), nw.lit(_ZEROS))
    fields = [digits.str.slice(at, size).cast(nw.Int64) for at, size in (*_FIELDS, _REST)]
    between = nw.when(fields[7] > 0).then(nw.lit(1)).otherwise(nw.lit(0))
    return nw.when(strict).then(_number(fields[:3], fields[3:7], between))


def typed_numbers(column: nw.Expr, dtype: nw.dtypes.DType) -> nw.Expr:
    """Of a column of dates or of timestamps without time zone."""
    if isinstance(dtype, nw.Datetime) and dtype.time_unit == "ns":
        return _nanoseconds(column)
    own = column.dt
    year, month, day = (part.cast(nw.Int64) for part in (own.year(), own.month(), own.day()))
    year = nw.when(year >= 1, year <= 9999).then(year)  # of others products could leave 64 bits
    if not isinstance(dtype, nw.Datetime):
        return _number((year, month, day), (0, 0, 0, 0))
    clock = [part.cast(nw.Int64) for part in (own.hour(), own.minute(), own.second())]
    micro = own.microsecond().cast(nw.Int64)
    micro = nw.when(micro < 0).then(micro + 1_000_000).otherwise(micro)  # Spark's before 1970
    return _number((year, month, day), (*clock, micro))


def _nanoseconds(column: nw.Expr) -> nw.Expr:
    """Of a column of them: duckdb rounds to the nearest microsecond, others down."""
    early, late = (nw.lit(moment) for moment in _NANOSECONDS)
    before, after = column < early, column > late
    column = nw.when(~before, ~after).then(column)  # rounded, others would leave their range
    micro = column.dt.truncate("1us")
    aside = nw.when(column > micro).then(nw.lit(1)).otherwise(nw.lit(0))
    aside = nw.when(column < micro).then(nw.lit(-1)).otherwise(aside)
    nanoseconds = typed_numbers(micro, nw.Datetime("us")) + aside
    least, most = _of_date(_NANOSECONDS[0]) - 1, _of_date(_NANOSECONDS[1]) + 1
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


def _in_microseconds(relation: Any, columns: Sequence[str], engine: nw.Implementation) -> Any:
    """A relation of duckdb's with nulls for seconds so far away that microseconds leave 64 bits.

    Also as an ibis expression; those of other databases are left as they are.
    """
    if engine == nw.Implementation.DUCKDB:
        cast = [f"TRY_CAST({sql(name)} AS TIMESTAMP) AS {sql(name)}" for name in columns]
        return relation.project(f"* REPLACE ({', '.join(cast)})")
    if relation.get_backend().name != "duckdb":
        return relation
    return relation.mutate(**{name: relation[name].try_cast("timestamp") for name in columns})


Types = Mapping[str, nw.dtypes.DType]


def with_numbers(
    frame: Any, attributes: Sequence[Attribute], types: Types, text: Sequence[str]
) -> tuple[Any, list[Attribute], Types]:
    """The frame with a column of numbers beside each column of dates.

    With it the attributes with the names of the columns that are to be read, and the types of
    all.
    """
    dated = [attribute for attribute in attributes if is_dated(attribute.edges)]
    if not dated:
        return frame, list(attributes), types
    engine = frame.implementation
    coarse = [a.name for a in dated if types[a.name] in (nw.Datetime("s"), nw.Datetime("ms"))]
    if coarse and engine in (nw.Implementation.DUCKDB, nw.Implementation.IBIS):
        frame = nw.from_native(_in_microseconds(frame.to_native(), coarse, engine))
    taken = {name.casefold() for name in types}
    free = (f"date_{k}" for k in range(len(types) + len(dated)))
    names = dict(zip((a.name for a in dated), (f for f in free if f not in taken), strict=False))
    columns = []
    for name in names:
        column, dtype = nw.col(name), types[name]
        words = dtype in _WORDS or name in text
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


def check_dates(attribute: Attribute, dtype: nw.dtypes.DType) -> None:
    """Refuse a type that holds neither dates nor text; of Python's objects the values decide.

    Raises:
        DataError: another type, or timestamps with a time zone.
    """
    zoned = is_zoned(dtype)
    fits = dtype in (nw.Date, nw.Datetime, nw.Object) or dtype in _WORDS
    if zoned or not fits:
        got = type_name(dtype) + (" with a time zone" if zoned else "")
        hint = f"; hint: convert it to {NO_ZONE}, before" if zoned else ""
        raise DataError(
            f"column {attribute.name!r}: expected dates, timestamps without time zone or ISO text, "
            f"as the schema gives dates as edges; got {got}{hint}"
        )
