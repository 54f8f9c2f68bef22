"""The meaning of one value of a table: as a category or bin, a number, a date or a person.

Every function that reads data uses these functions, or faster ones of the engine that holds the
table, with the same results. Tests compare each engine with these, value by value.

The functions are total: they return a result for every object, and never raise. A result depends on
one value alone. It does not depend on other rows, or on whether a null among them turned integers
into floats.

A column has one of three forms, by its engine and its declared type, never by its rows:

* ``TEXT``: CSV and TSV files, names of folders. All values are text. Integer categories are
  compared by value (03 and 3.0 are 3), true and false in any case, other text by its characters.
* ``TYPED``: polars, arrow, duckdb, Parquet, Spark, ibis. Text is text, numbers are numbers.
* ``UNTYPED``: pandas and dask, where the type of a column depends on its rows: one null turns
  integers into floats, and one word turns numbers into text. This also holds for extension types
  that readers or ``convert_dtypes`` chose. In these columns, 1, 1.0, "1", "01", True and "true" are
  the same value, and so are a timestamp and its ISO text. A number is a double. Numbers from 2**53
  on, where doubles cannot hold every integer, cannot be a category or a person. Words like "NA"
  cannot either, since readers take them for nulls or keep them as text, depending on other rows.
"""

import bisect
import datetime
import decimal
import enum
import functools
import math
import re
import sys
import uuid
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple, ParamSpec, TypeVar

import numpy as np

from ..schema.dates import ISO, Edge, is_daily, is_dated, place
from ..schema.numbers import MOST_UNITS, STEPS
from ..schema.schema import Attribute, Category

Key = tuple[str, Hashable]
INEXACT = 2**53  # doubles cannot hold every integer with at least this absolute value
MOST_DIGITS = 2500  # most digits of an integer in text; categories have fewer
# pandas.read_csv reads these as nulls, but as text if the column has an integer from 2**63 on
NULL_WORDS = frozenset(["", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"])
NULL_WORDS |= {"#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan"}
NULL_WORDS |= {"1.#IND", "1.#QNAN"}


class Form(enum.Enum):
    """The form of a column's values, which depends on its engine and its declared type.

    In TEXT, all values are text. In TYPED, each value has the type that the engine declares. In
    UNTYPED (pandas and dask), the column's type may depend on its rows, so 1, 1.0 and "1" are the
    same value.
    """

    TEXT = "text"
    TYPED = "typed"
    UNTYPED = "untyped"


Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


def _total(read: Callable[Arguments, Answer]) -> Callable[Arguments, Answer | None]:
    """Return a function like ``read`` that returns None wherever ``read`` raises an error."""

    @functools.wraps(read)
    def answer(*values: Arguments.args, **named: Arguments.kwargs) -> Answer | None:
        try:
            return read(*values, **named)
        except Exception:  # noqa: BLE001 (objects of any kind may raise any error)
            return None

    return answer


# Text as a number.

# Unicode's spaces are removed first, then the spaces of C inside them
_SPACES = "\u0020\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:[.]([0-9]*))?(?:[eE]([+-]?[0-9]+))?")
_WORD = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)


def _stripped(text: str) -> str:
    """Return text without the spaces around it."""
    # a regular expression would take quadratic time
    return text.strip(_SPACES).strip(" \t\n\v\f\r")


def double_of_text(text: str) -> float | None:
    """Return the double nearest to the decimal number in the text; None for other text."""
    text = _stripped(text)
    found = _NUMBER.fullmatch(text)
    if found is None:
        return float(text) if _WORD.fullmatch(text) else None
    return float(text) if found[2] or found[3] else None


def integer_of_text(text: str) -> int | None:
    """Return the integer that equals the decimal number in the text; None if there is none.

    The number may have an exponent: 1.2e1 is 12.
    """
    found = _NUMBER.fullmatch(_stripped(text))
    if found is None or not (found[2] or found[3]):
        return None
    sign, whole, part, power = (group or "" for group in found.groups())
    digits = (whole + part).lstrip("0")
    if not digits:
        return 0
    if len(power.lstrip("+-0")) > 9:
        return None
    zeros = (
        int(power[:1].strip("0123456789") + (power.lstrip("+-0") or "0"))
        - len(part)
        + len(digits)
        - len(digits := digits.rstrip("0"))
    )
    if not 0 <= zeros <= MOST_DIGITS or len(digits) + zeros > MOST_DIGITS:
        return None
    return int(sign + digits + "0" * zeros)


# A value as a number.


@_total
def number_of(value: object, form: Form) -> int | float | None:
    """Return a value as a number, to find its bin or to clip it; None if it is no number, or NaN.

    Integers stay exact in typed columns; other numbers become the nearest doubles.
    """
    if form is Form.UNTYPED and (truth := _truth(value)) is not None:
        return float(truth)
    if isinstance(value, str):
        number = None if form is Form.TYPED else double_of_text(str.__str__(value))
    else:
        number = _number(value)
    if isinstance(number, decimal.Decimal) or (number is not None and form is not Form.TYPED):
        number = _double(number)
    return number if number == number else None


def _truth(value: object) -> bool | None:
    """Return a truth value, or that of the text "true" or "false"; None for other values."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(str.__str__(value).lower())
    return bool(value) if isinstance(value, bool | np.bool_) else None


def _double(number: int | float | decimal.Decimal) -> float:
    """Return the double nearest to a number; infinity if the number is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _number(value: object) -> int | float | decimal.Decimal | None:
    """Return a Python or numpy number as a Python number; None for truth values and durations."""
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        return None
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    # one complex number makes its column complex
    if isinstance(value, complex | np.complexfloating):
        return float(value.real) if value.imag == 0 else None
    return value if isinstance(value, int | float | decimal.Decimal) else None


# A value as a moment: an integer, twice the number of microseconds in a calendar with twelve months
# of 31 days, plus one if the time lies between this microsecond and the next. So text and columns
# of nanoseconds are compared exactly, in 64 bits, with edges, which are whole microseconds. Moments
# are in the years 1 to 9999, since only these occur in dates as text.

ZEROS = "0" * 19  # appended to a date, makes it as long as a timestamp of nanoseconds
# start and length of each field in text
FIELDS = (0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2), (20, 6)
REST = 26, 3  # the last three digits: nanoseconds


def moment(day: Sequence[Any], clock: Sequence[Any], between: Any = 0) -> Any:
    """Return an integer that orders dates and times: the moment of a day and a time of day.

    ``day`` has year, month and day, ``clock`` has hour, minute, second and microsecond: integers,
    arrays or expressions. ``between`` is 1 if the time is after this microsecond and before the
    next, else 0.
    """
    (year, month, number), (hour, minute, second, micro) = day, clock
    days = (year * 12 + month) * 31 + number
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return (seconds * 1_000_000 + micro) * 2 + between


@_total
def moment_of(value: object) -> int | None:
    """Return the moment of a value (an integer that orders dates and times), or None.

    Values are dates, timestamps without a time zone, and text in ISO 8601.
    """
    fields = _calendar(value)
    return None if fields is None else moment(fields[:3], fields[3:7], int(fields[7] > 0))


def _calendar(value: object) -> tuple[int, ...] | None:
    """Return (year, month, …, nanosecond) of a date, local timestamp or ISO text; else None."""
    if isinstance(value, str):
        if re.fullmatch(ISO, text := str.__str__(value)) is None:
            return None
        return tuple(int((text + ZEROS)[at : at + size]) for at, size in (*FIELDS, REST))
    within = 0
    if isinstance(value, np.datetime64):
        whole = value.astype("datetime64[us]")
        if np.datetime_data(value.dtype)[0] in ("ns", "ps", "fs", "as"):
            within = math.ceil((value - whole) / np.timedelta64(1, "ns")) if value == value else 0
        elif whole.astype(value.dtype) != value:  # microseconds overflow 64 bits
            return None
        value = whole.item()
    if isinstance(value, datetime.datetime):
        # pandas' missing time is not equal to itself
        if value.tzinfo is not None or value != value:
            return None
        within = within or int(getattr(value, "nanosecond", 0))
        clock = value.hour, value.minute, value.second, value.microsecond
        return value.year, value.month, value.day, *clock, within
    if isinstance(value, datetime.date):
        return value.year, value.month, value.day, 0, 0, 0, 0, 0
    return None


FIRST = moment((1, 1, 1), (0, 0, 0, 0))
LAST = moment((9999, 12, 31), (23, 59, 59, 999_999), 1)


def moments_between(edges: Sequence[Edge]) -> tuple[list[int], int]:
    """Return the first moment of each bin, and the last moment of all bins.

    ``edges`` are the dates between bins. Moments are integers that order dates and times.
    """
    begin = [FIRST if (start := moment_of(edge)) is None else start for edge in edges[:-1]]
    last = edges[-1]
    if not isinstance(last, datetime.date) or last == datetime.date.max:
        return begin, LAST
    if is_daily(edges):
        last += datetime.timedelta(days=1)
        return begin, moment((last.year, last.month, last.day), (0, 0, 0, 0)) - 1
    return begin, moment_of(last) or LAST


# The key of a value in a column whose type depends on its rows.


@_total
def key_of(value: object) -> Key | None:
    """Return a key of a value in an ``UNTYPED`` column: equal values, like 1 and "01", share a key.

    Return None for nulls, unknown objects, and numbers that doubles cannot hold exactly.
    """
    if (truth := _truth(value)) is not None:
        return "number", int(truth)
    if isinstance(value, str):
        text = str.__str__(value)
        if text in NULL_WORDS:
            return None
        if (number := double_of_text(text)) is not None:
            return _key(number)
        if (fields := _calendar(text)) is not None:
            return "moment", fields
        return _interval_key(text) or ("text", text)
    if (number := _number(value)) is not None:
        double = _double(number)
        # without a key if no double equals it, since it would share the key of another number
        wide = isinstance(value, np.floating) and value.itemsize > 8
        return None if (wide or math.isinf(double)) and double != value else _key(double)
    if (fields := _calendar(value)) is not None:
        return "moment", fields
    # pandas' intervals and periods are compared by their text
    return key_of(str(value)) if type(value).__name__ in ("Interval", "Period") else None


def _interval_key(text: str) -> Key | None:
    """Return the key of the text of a pandas interval, like (0, 1]; None for other text."""
    if (found := _INTERVAL.fullmatch(text)) is None:
        return None
    # keys of floats, as nulls in a column make bounds floats
    ends = [
        _key(number) for end in found.groups()[1:3] if (number := double_of_text(end)) is not None
    ]
    return (
        ("interval", (found[1], *ends, found[4])) if len(ends) == 2 and None not in ends else None
    )


_INTERVAL = re.compile(r"([(\[])([^,]+), ([^,]+)([)\]])")


def _key(number: float) -> Key | None:
    if math.isinf(number):
        return "number", number
    if not abs(number) < INEXACT:  # also NaN
        return None
    return "number", int(number) if number == int(number) else number


def text_of(key: Key) -> str:
    """Return a key of :func:`key_of` as text, such as 3 or 2024-01-31."""
    kind, value = key
    if kind == "interval" and isinstance(value, tuple):
        opening, left, right, closing = value
        return f"{opening}{text_of(left)}, {text_of(right)}{closing}"
    if kind != "moment" or not isinstance(value, tuple):
        return str(value)
    year, month, day, *clock, micro, within = value
    text = f"{year:04}-{month:02}-{day:02}"
    if any((*clock, micro, within)):
        text += " {:02}:{:02}:{:02}".format(*clock)
    if micro or within:
        text += f".{micro:06}" + (f"{within:03}" if within else "")
    return text


# The cell of a value.

Find = Callable[[object], int]


def finder(attribute: Attribute, form: Form) -> Find:
    """Return a function from a value to its code: 1 + the index of its category or bin, or 0.

    The code of a clipped number is 1 + its steps (:mod:`gaussnoise.tables.reading.steps`).
    """
    find = _total(_finder(attribute, form))
    if (codes := bins_of_codes(attribute)) is None:
        return lambda value: find(value) or 0
    code = _total(_finder(codes, form))
    return lambda value: 0 if (code(value) or 0) % 2 else find(value) or 0


def codes_of(attribute: Attribute) -> dict[Category, int]:
    """Return {value: code} for the categories and for their other spellings.

    The code is 1 + the index of the category.
    """
    cells: dict[Category, int] = {c: k for k, c in enumerate(attribute.categories or (), 1)}
    return cells | {text: cells[name] for name, own in attribute.spellings for text in own}


def bins_of_codes(attribute: Attribute) -> Attribute | None:
    """Return bins that separate numbers that mean "no answer" from others; None if there are none.

    Bins are counted from 1. Each number that means "no answer" has a bin of its own. All these bins
    have odd positions, so every engine finds them by the position alone. Categories and dates need
    no bins, since a value that means "no answer" has no cell there.
    """
    codes = sorted(float(code) for code in attribute.missing if not isinstance(code, str))
    if not codes or attribute.categories is not None or is_dated(attribute.edges):
        return None
    ends = [end for code in codes for end in (code, math.nextafter(code, math.inf))]
    return Attribute(attribute.name, edges=[*ends, math.inf])


def _finder(attribute: Attribute, form: Form) -> Find:
    edges = attribute.edges
    if attribute.unit is not None:
        unit = attribute.unit
        return lambda value: multiple_of(number_of(value, form), unit)
    if attribute.clip is not None:
        return lambda value: step_of(number_of(value, form), attribute.clip or (0.0, 1.0))
    if edges is not None and is_dated(edges):
        return _in_bins(moment_of, *moments_between(edges))
    if edges is not None:
        *begin, last = map(place, edges)
        kept = (lambda number: number) if attribute.has_infinite else _finite
        return _in_bins(lambda value: kept(number_of(value, form)), begin, last)
    key = {Form.TEXT: _text_key, Form.TYPED: _typed_key, Form.UNTYPED: _untyped_key}[form]
    kind = type((attribute.categories or ("",))[0])
    cells: dict[object, int] = {}
    for known, k in codes_of(attribute).items():
        if (own := key_of(known) if form is Form.UNTYPED else known) is not None:
            cells[own] = k
    return lambda value: cells.get(key(value, kind), 0)


def _in_bins(number: Callable[[object], float | None], begin: Sequence[float], last: float) -> Find:
    def find(value: object) -> int:
        found = number(value)
        return 0 if found is None or found > last else bisect.bisect_right(begin, found)

    return find


def _finite(number: int | float | None) -> int | float | None:
    return number if number is not None and -math.inf < number < math.inf else None


def _text_key(value: object, kind: type) -> object:
    if not isinstance(value, str):
        return None
    text = str.__str__(value)
    if kind is int:
        return integer_of_text(text)
    return _truth(text) if kind is bool else text


def _typed_key(value: object, kind: type) -> object:
    if kind is str:
        return str.__str__(value) if isinstance(value, str) else None
    if kind is bool:
        return bool(value) if isinstance(value, bool | np.bool_) else None
    return _number(value)


def _untyped_key(value: object, kind: type) -> object:
    return key_of(value)


Reason = Literal[
    "missing",
    "code for missing",
    "not a category",
    "not a number",
    "not a date",
    "outside the edges",
    "unreadable",
]


def reason_of(value: object, attribute: Attribute, form: Form) -> Reason:
    """Return the reason why a value is in no category and no bin of the attribute, in words."""
    return _total(_reason)(value, attribute, form) or "unreadable"


def _reason(value: object, attribute: Attribute, form: Form) -> Reason:
    if form is Form.UNTYPED and str(value) in NULL_WORDS:  # str, since nothing equals pandas.NA
        return "missing"
    blank = isinstance(value, str) and not str.__str__(value).strip()
    if value is None or blank or not (value == value):  # NaN or NaT
        return "missing"
    if attribute.missing and _is_code(value, attribute, form):
        return "code for missing"
    if attribute.categories is not None:
        return "not a category"
    if is_dated(attribute.edges):
        return "not a date" if moment_of(value) is None else "outside the edges"
    return "not a number" if number_of(value, form) is None else "outside the edges"


def _is_code(value: object, attribute: Attribute, form: Form) -> bool:
    """Return whether a value, which is in no category or bin, is a code for no answer."""
    number = None if is_dated(attribute.edges) else number_of(value, form)
    return number in attribute.missing or str(value) in map(str, attribute.missing)


def step_of(number: float | None, clip: tuple[float, float]) -> int:
    """Return 1 + the steps from the lower bound of ``clip`` to a number; 0 for None.

    The number is clipped first. The interval ``clip`` has :data:`STEPS` equal steps.
    """
    if number is None:
        return 0
    low, high = clip
    t = (float(min(max(number, low), high)) - low) / (high - low)
    return 1 + min(max(math.floor(t * float(STEPS) + 0.5), 0), STEPS)


def multiple_of(number: float | None, unit: float) -> int:
    """Return 1 + the number in units, rounded; 0 if it is None, negative or too large."""
    if number is None or not 0 <= number <= sys.float_info.max:
        return 0
    ratio = float(number) / unit
    return 1 + math.floor(ratio + 0.5) if ratio < MOST_UNITS else 0


def confused(attribute: Attribute) -> tuple[str | None, bool]:
    """Return why categories are confused in ``UNTYPED`` columns (pandas and dask), or None.

    The second value says whether no row can have any of the confused categories.
    """
    codes = codes_of(attribute)
    known = {(key, code) for value, code in codes.items() if (key := key_of(value)) is not None}
    if len({key for key, _ in known}) < len(known):
        return "categories that are one value, like 1 and 01", False
    if {key for key, _ in known}.intersection(map(key_of, attribute.missing)):
        return "a category and a code for missing that are one value, like 1 and 01", False
    if NULL_WORDS.intersection(codes):
        return "words that it may read as nulls, like NA", False
    unknown = any(key_of(value) is None for value in codes)
    return ("numbers from 2**53 on, or NaN, which floats cannot tell" if unknown else None), True


# A value as a category, if no list of categories is known.

Label = str | int
_INTEGERS = range(-(2**63), 2**64)


@_total
def label_of(value: object, form: Form) -> Label | None:
    """Return a value as text or as an integer, to be a category in a draft.

    Return None for other values, and for text that is no valid UTF-8.
    """
    if form is Form.UNTYPED:
        if (key := key_of(value)) is None:
            return None
        value = key[1] if isinstance(key[1], int) and key[0] == "number" else text_of(key)
    if isinstance(value, str):
        text = str.__str__(value)
        text.encode()
        return text
    number = _number(value)
    return number if isinstance(number, int) and number in _INTEGERS else None


# A value as the identity of a person.


class Instant(NamedTuple):
    """A timestamp with a time zone. pandas has no object for those far from 1970."""

    nanoseconds: int  # since 1970, in UTC


@_total
def person_of(value: object, form: Form) -> Key | None:
    """Return a key that identifies a person: rows with equal keys belong to one person.

    The key is None for nulls, NaN, empty text and unknown objects. In ``UNTYPED`` columns, persons
    are compared as categories are: 1, "1" and "01" are one person. The reason: one word among
    numbers turns all of them into text, and one person's name must not split another person's rows.
    Numbers from 2**53 on, which floats may have rounded, and texts of such numbers name no person.
    """
    text = str.__str__(value) if isinstance(value, str) else None
    if text == "":
        return None
    if form is Form.UNTYPED and (key := key_of(value)) is not None:
        return key
    if text is not None:
        return None if form is Form.UNTYPED else ("text", text)
    if isinstance(value, bool | np.bool_):
        return "truth", bool(value)
    if isinstance(value, Instant):
        return "instant", value.nanoseconds
    if (number := _number(value)) is not None:
        return None if form is Form.UNTYPED else _exact(number)
    if isinstance(value, np.timedelta64 | datetime.timedelta):
        return "duration", _nanoseconds(value)
    if (fields := _calendar(value)) is not None:
        return "moment", fields
    if isinstance(value, datetime.datetime):
        return ("instant", _since_1970(value)) if value == value else None
    if isinstance(value, bytes):
        return ("bytes", value) if value else None
    return (
        (type(value).__name__, str(value)) if isinstance(value, datetime.time | uuid.UUID) else None
    )


def _since_1970(value: datetime.datetime) -> int:
    """Return a timestamp with a time zone as nanoseconds since 1970 in UTC."""
    if (exact := getattr(value, "asm8", None)) is not None:  # pandas' timestamp
        return _nanoseconds(exact - np.datetime64(0, "s"))
    return _nanoseconds(value - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC))


def _nanoseconds(value: np.timedelta64 | datetime.timedelta) -> int:
    """Return a duration of Python, numpy or pandas in nanoseconds; ValueError for NaT."""
    if not isinstance(value, np.timedelta64):
        micro = datetime.timedelta(value.days, value.seconds, value.microseconds)
        within = int(getattr(value, "nanoseconds", 0))
        return micro // datetime.timedelta(microseconds=1) * 1000 + within
    unit, step = np.datetime_data(value.dtype)
    if np.isnat(value):
        raise ValueError
    return int(value.astype(np.int64)) * step * _UNITS[unit]


_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9} | {
    unit: seconds * 10**9
    for unit, seconds in (("m", 60), ("h", 3600), ("D", 86_400), ("W", 604_800))
}


def _exact(number: int | float | decimal.Decimal) -> Key | None:
    """Return a key for the exact value of a number: 3, 3.0 and Decimal("3") share a key."""
    if number != number:
        return None
    if number in (math.inf, -math.inf):
        return "number", float(number)
    if isinstance(number, decimal.Decimal) and abs(number.adjusted()) > MOST_DIGITS:
        return None  # no engine has a type that holds it
    return "number", int(number) if number == int(number) else Fraction(number)
