"""Dates and timestamps as edges of bins.

Arguments other than edges refuse dates, so that no function takes one for a number of nanoseconds.

Edges that are all midnights are days, kept as :class:`datetime.date`. A timestamp then counts as
its day, so the last bin holds all of the last day. Other edges are timestamps of whole
microseconds, kept as :class:`datetime.datetime`, and the last bin ends at the last edge. Neither
kind has a time zone.
"""

import datetime
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...errors import SchemaError

Edge: TypeAlias = float | datetime.date  # a datetime is a date
EdgeLike: TypeAlias = Edge | np.number | np.datetime64 | str
Plain: TypeAlias = str | int | float | datetime.date
Toml: TypeAlias = "Plain | list[Toml] | dict[str, Toml]"

AS_EDGES = "dates are edges of bins, like edges = [2020-01-01, 2020-07-01, 2021-01-01]"
AS_NUMBERS = "for sums and means, add a column of numbers, like days since a fixed date"
EXPECTED_EDGES = "edges of at least two increasing numbers, or dates like 2020-01-31"
NO_ZONE = "local times without a time zone, or dates"
ZONELESS = (
    "the file's timestamps (INT96) say no time zone and are counted as written, which for Spark is "
    "UTC"
)
MONTHS = tuple(
    "January February March April May June July August September October November December".split()
)
_TIMES = datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)

_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})"  # all but 0000
_MONTH_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_FOURTH = "(?:0[48]|[2468][048]|[13579][26])"
_LEAP_DAY = f"(?:[0-9]{{2}}{_FOURTH}|{_FOURTH}00)-02-29"
_TIME = r"[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
# Dates and timestamps in text: strict ISO 8601, without blanks or an offset. All engines accept the
# same text, since they use this regular expression.
ISO = f"(?:{_YEAR}-{_MONTH_DAY}|{_LEAP_DAY})(?:{_TIME})?"


def check_no_dates(name: str, field: str, values: Iterable[object]) -> None:
    """Raise SchemaError if values hold dates, times or durations, of Python, numpy or pandas.

    ``name`` and ``field`` are the attribute and its argument, for the message.
    """
    if any(isinstance(value, _TIMES) for value in values):
        kind = "text, integers or booleans" if field == "categories" else "numbers"
        hint = AS_EDGES if field == "categories" else f"{AS_EDGES}; {AS_NUMBERS}"
        raise SchemaError(
            f"attribute {name!r}: expected {field} that are {kind}, got dates or times; hint: "
            f"{hint}"
        )


def are_dates(values: Iterable[object]) -> bool:
    """Return whether edges may be dates: whether some value is a date, a time or text."""
    return any(isinstance(value, _TIMES | str) for value in values)


def as_dates(values: Sequence[object]) -> tuple[Edge, ...]:
    """Return edges as dates, timestamps or infinite numbers; SchemaError for other values.

    If all of them are midnights, they are returned as dates.
    """
    dates = [_edge(value) for value in values]
    moments = [edge for edge in dates if isinstance(edge, datetime.datetime)]
    if all(moment.time() == datetime.time() for moment in moments):
        return tuple([e.date() if isinstance(e, datetime.datetime) else e for e in dates])
    return tuple(dates)


def plain(value: Any) -> Any:
    """Return a value (of numpy, or Python's own) as a Python object: text, number or date."""
    if isinstance(value, datetime.date | np.datetime64):
        return as_dates([value])[0]
    return value.item() if hasattr(value, "item") else value


def _edge(value: object) -> datetime.datetime | float:
    """Return one edge as a timestamp without a time zone, or as an infinite number."""
    if isinstance(value, float | np.floating) and math.isinf(value):
        return float(value)
    if isinstance(value, str):
        return _parsed(value)
    if isinstance(value, np.datetime64):
        return _of_numpy(value)
    if isinstance(value, datetime.datetime):
        if value != value:
            raise SchemaError("expected edges that are dates, got a missing one")
        if value.tzinfo is not None:
            raise SchemaError(f"expected {NO_ZONE} as edges, got a time zone")
        if getattr(value, "nanosecond", 0):  # only timestamps of pandas have nanoseconds
            raise SchemaError("expected timestamps of whole microseconds as edges")
        return datetime.datetime.combine(value.date(), value.time())
    if isinstance(value, datetime.date):
        return datetime.datetime.combine(value, datetime.time())
    if isinstance(value, datetime.time | datetime.timedelta | np.timedelta64):
        raise SchemaError("expected dates or timestamps as edges, got times of day or durations")
    raise SchemaError("expected edges that are all numbers or all dates, got both")


def _parsed(text: str) -> datetime.datetime:
    if re.fullmatch(ISO, text) is None or len(text.partition(".")[2]) > 6:
        raise SchemaError(f"expected {EXPECTED_EDGES} or 2020-01-31T08:30:00, got {text!r:.60}")
    return datetime.datetime.fromisoformat(text)


def _of_numpy(value: np.datetime64) -> datetime.datetime:
    exact = value.astype("datetime64[us]")
    moment = exact.item()
    if not isinstance(moment, datetime.datetime) or exact != value:
        raise SchemaError(
            "expected dates from year 1 to 9999, or timestamps of whole microseconds, as edges"
        )
    return moment


def is_dated(edges: Sequence[Edge] | None) -> bool:
    """Return whether the edges of bins are dates or timestamps, rather than numbers."""
    return any(isinstance(edge, datetime.date) for edge in edges or ())


def is_daily(edges: Sequence[Edge]) -> bool:
    """Return whether the edges of bins are dates without a time of day."""
    return is_dated(edges) and not any(isinstance(edge, datetime.datetime) for edge in edges)


def open_bins(edges: Sequence[Edge] | None) -> dict[int, str]:
    """Return {index of a bin: its name} for the bins of dates with an infinite edge.

    Unexpected dates fall into these bins. If there are only one or two bins, the result is empty,
    since they hold all dates.
    """
    last = len(edges or ()) - 2
    if edges is None or last < 2 or not is_dated(edges):
        return {}
    ends = {0: ("first", edges[0]), last: ("last", edges[-1])}
    return {cell: f"the {which} bin" for cell, (which, edge) in ends.items() if is_open(edge)}


def is_open(edge: Edge) -> bool:
    """Return whether the edge of a bin is infinite."""
    return isinstance(edge, float) and math.isinf(edge)


def place(edge: Edge) -> float:
    """Return the edge of a bin as a number; a date as microseconds since 1970."""
    if not isinstance(edge, datetime.date):
        return edge
    whole = isinstance(edge, datetime.datetime)
    moment = edge if whole else datetime.datetime.combine(edge, datetime.time())
    return (moment - _EPOCH) // _MICROSECOND


def edge_text(edge: Edge) -> str:
    """Return the edge of a bin as text, for labels of queries."""
    return edge.isoformat() if isinstance(edge, datetime.date) else f"{edge:.15g}"


def edge_position(written: object, edges: Sequence[Edge]) -> int | None:
    """Return the index of the edge that is equal to a number, a date, or a text of these.

    Return None if no edge is equal to it.
    """
    try:
        if is_dated(edges):
            sought = _edge(float(written) if written in ("inf", "-inf") else written)
        else:
            sought = float(written)  # pyright: ignore[reportArgumentType]
    except (ValueError, TypeError, OverflowError):
        return None
    places = [place(edge) for edge in edges]
    return places.index(place(sought)) if place(sought) in places else None


def shown_places(places: np.ndarray, edges: Sequence[Edge]) -> np.ndarray:
    """Return positions between edges as values of the edges' type: numbers, dates or timestamps.

    Dates become days, or timestamps of whole seconds (microseconds if the edges have some);
    infinite numbers become NaT.
    """
    if not is_dated(edges):
        return places
    fine = any(isinstance(e, datetime.datetime) and e.microsecond for e in edges)
    unit = "datetime64[D]" if is_daily(edges) else f"datetime64[{'us' if fine else 's'}]"
    known = np.isfinite(places)
    whole = np.where(known, np.floor(np.where(known, places, 0.0)), 0.0).astype(np.int64)
    moments = np.where(known, whole.astype("datetime64[us]"), np.datetime64("NaT", "us"))
    return moments.astype(unit)
