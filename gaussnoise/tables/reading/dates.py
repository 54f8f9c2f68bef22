"""Dates and timestamps as integers ("moments", :func:`.values.moment`), for each engine."""

import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..schema.dates import ISO, Edge, is_daily, is_dated, place
from ..schema.schema import Attribute
from .frames import Arrow, Lazy
from .values import FIELDS, REST, ZEROS, moment, moment_of

if TYPE_CHECKING:
    import ibis

_WORDS = (nw.String, nw.Categorical, nw.Enum)  # types of text
_NOTHING = "0001-01-01"  # replaces text that is no date, which engines may fail to parse
_ANCHORED = rf"\A(?:{ISO})\z"
_LONGEST = sum(REST)

# the first and the last whole microsecond that 64-bit nanoseconds can hold
_NANOSECONDS = (
    datetime.datetime(1677, 9, 21, 0, 12, 43, 145225),
    datetime.datetime(2262, 4, 11, 23, 47, 16, 854775),
)


def text_numbers(column: nw.Expr) -> nw.Expr:
    """Return an expression for the moments of text (integers that order dates and times).

    A moment is null for text that is no date or time in ISO 8601.
    """
    strict = column.str.contains(_ANCHORED)
    digits = nw.concat_str(nw.when(strict).then(column).otherwise(nw.lit(_NOTHING)), nw.lit(ZEROS))
    fields = [digits.str.slice(at, size).cast(nw.Int64) for at, size in (*FIELDS, REST)]
    between = nw.when(fields[7] > 0).then(nw.lit(1)).otherwise(nw.lit(0))
    return nw.when(strict).then(moment(fields[:3], fields[3:7], between))


def typed_numbers(column: nw.Expr, dtype: nw.dtypes.DType) -> nw.Expr:
    """Return an expression for the moments (integers that order dates and times) of a column.

    The column has dates, or timestamps without a time zone.
    """
    if isinstance(dtype, nw.Datetime) and dtype.time_unit == "ns":
        return _nanoseconds(column)
    own = column.dt
    year, month, day = (part.cast(nw.Int64) for part in (own.year(), own.month(), own.day()))
    # for years outside 1 to 9999, products could overflow 64 bits
    year = nw.when(year >= 1, year <= 9999).then(year)
    if not isinstance(dtype, nw.Datetime):
        return moment((year, month, day), (0, 0, 0, 0))
    clock = [part.cast(nw.Int64) for part in (own.hour(), own.minute(), own.second())]
    micro = own.microsecond().cast(nw.Int64)
    # before 1970, Spark's microseconds are negative
    micro = nw.when(micro < 0).then(micro + 1_000_000).otherwise(micro)
    return moment((year, month, day), (*clock, micro))


def _nanoseconds(column: nw.Expr) -> nw.Expr:
    """Return an expression for the moments of timestamps in nanoseconds."""
    early, late = (nw.lit(end) for end in _NANOSECONDS)
    before, after = column < early, column > late
    # rounding would move other values out of the range of nanoseconds
    column = nw.when(~before, ~after).then(column)
    micro = column.dt.truncate("1us")
    # a time between two microseconds gives a moment between theirs, though duckdb rounds to
    # the nearest microsecond and other engines round down
    aside = nw.when(column > micro).then(nw.lit(1)).otherwise(nw.lit(0))
    aside = nw.when(column < micro).then(nw.lit(-1)).otherwise(aside)
    nanoseconds = typed_numbers(micro, nw.Datetime("us")) + aside
    first, last = map(moment_of, _NANOSECONDS)
    least, most = (first or 0) - 1, (last or 0) + 1
    nanoseconds = nw.when(before).then(nw.lit(least)).otherwise(nanoseconds)
    return nw.when(after).then(nw.lit(most)).otherwise(nanoseconds)


def text_moments(values: Arrow) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the moments (integers that order dates and times) of text, and which texts are dates.

    Both arrays have the shape (rows,). The moment is 0 where the text is no date.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    words = values.cast(pa.large_string())
    options = pc.MatchSubstringOptions(_ANCHORED)
    strict = pc.call_function("match_substring_regex", [words], options).fill_null(False)
    dates = pc.call_function("ascii_rpad", [words.filter(strict)], pc.PadOptions(_LONGEST, "0"))
    chunks = dates.chunks if isinstance(dates, pa.ChunkedArray) else [dates]
    rows = b"".join(bytes(own.buffers()[2] or b"")[: len(own) * _LONGEST] for own in chunks)
    digits = np.frombuffer(rows, dtype=np.uint8).reshape(-1, _LONGEST) - np.int64(ord("0"))
    fields = [
        digits[:, at : at + size] @ 10 ** np.arange(size)[::-1] for at, size in (*FIELDS, REST)
    ]
    present = strict.to_numpy(zero_copy_only=False)
    moments = np.zeros(len(present), dtype=np.int64)
    moments[present] = moment(fields[:3], fields[3:7], fields[7] > 0)
    return moments, present


# in microseconds since 1970: the first instant of year 1, and the first after year 9999
_DAY = 86_400 * 10**6
_FIRST, _AFTER = place(datetime.date(1, 1, 1)), place(datetime.date(9999, 12, 31)) + _DAY
_TICKS = {"day": 1000 * _DAY, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # in nanoseconds


def ticks_between(edges: Sequence[Edge], unit: str) -> tuple[list[int], int]:
    """Return the first instant of each bin, and the last instant of all bins, as integers.

    The integers are numbers of ``unit`` (day, s, ms, us or ns) since 1970. ``edges`` separate the
    bins.
    """
    *starts, end = (max(_FIRST, min(place(edge), _AFTER)) for edge in edges)
    if is_daily(edges) and end < _AFTER:
        end += _DAY
    inside = -_ticks(-end, unit)  # the last tick at or before the end
    if is_daily(edges) or end == _AFTER:
        inside = _ticks(end, unit) - 1
    least, most = -(2**63), 2**63 - 1
    begin = [max(tick, least) for start in starts if (tick := _ticks(start, unit)) <= most]
    return ([], most) if inside < least else (begin, min(inside, most))


def _ticks(micro: float, unit: str) -> int:
    """Return a time, given in microseconds since 1970, as a number of ``unit``, rounded up."""
    return -(int(micro) * -1000 // _TICKS[unit])


def _in_microseconds(relation: "ibis.Table", columns: Sequence[str]) -> "ibis.Table":
    """Return a duckdb table of ibis, with null for timestamps that microseconds cannot hold."""
    if relation.get_backend().name != "duckdb":
        return relation
    return relation.mutate(**{name: relation[name].try_cast("timestamp") for name in columns})


Types: TypeAlias = Mapping[str, nw.dtypes.DType]


def with_numbers(
    frame: Lazy, attributes: Sequence[Attribute], types: Types
) -> tuple[Lazy, list[Attribute], Types]:
    """Return the frame with an added column of integers ("moments") for each column of dates.

    Also return the attributes, with the names of the columns to read instead of dates, and the
    types of all columns.
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
