"""A first schema, drafted from the data.

Every line of it must be checked against public knowledge.
"""

import contextlib
import datetime
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import narwhals as nw

from ...errors import DataError
from ..schema.dates import ISO, NO_ZONE, ZONELESS
from ..schema.dialect import USUAL, Dialect
from ..schema.schema import RESERVED_NAMES, Attribute, Schema, file_toml
from .csv import FORM, text_number
from .files import dialect_of, is_csv, written_in
from .frames import guarded, is_zoned, open_table, sql, type_name, without_zone
from .sniff import decimal_columns, sniffed

_MOST_CATEGORIES = 100
_MOST_INTEGERS = 20
_BINS = 8
_SKEWED = 20.0  # times the median, or more, is the largest of skewed numbers
_MOST_DECADES = 6
_FINE_DECADES = 3  # with more, powers of ten alone
_MOST_DATES = 12  # steps of the calendar from the first month to the last
# in months, and what they are called
_CALENDAR = {1: "months", 3: "quarters", 12: "years"} | {
    12 * years: f"{years} years" for years in (2, 5, 10, 20, 50, 100, 200, 500, 1000)
}
_NULLS = "; a catch-all for nulls"


class Draft(NamedTuple):
    """What was decided of every column.

    Attributes:
        attributes: of the columns that can be one.
        left_out: why the others cannot, by name.
        reasons: why every attribute is what it is, by name.
        file: the dialect in which the table was read.
    """

    attributes: list[Attribute]
    left_out: dict[str, str]
    reasons: dict[str, str]
    file: Dialect = USUAL

    def to_toml(self) -> str:
        """The schema file, with a comment for every column."""
        file = [file_toml(self.file)] if self.file.stated else []
        blocks = [
            f"# {_one_line(self.reasons[attribute.name])}\n{Schema([attribute]).to_toml()}"
            for attribute in self.attributes
        ]
        return "\n".join(
            [*file, *blocks, *(f"# left out: {_one_line(r)}\n" for r in self.left_out.values())]
        )


def _one_line(reason: str) -> str:
    """Names of columns may hold line ends and control characters, which comments must not."""
    return "".join(c if c.isprintable() else "?" for c in reason)


def draft(table: object) -> Draft:
    """One attribute per column that can be one, and why the others cannot.

    See :meth:`Schema.draft`.
    """
    table = written_in(table, sniffed(table))
    frame = _typed(table)
    types = guarded(
        "read the table's columns",
        lambda: dict(frame.collect_schema()),
        engine=frame.implementation,
    )
    drafted, zoneless = Draft([], {}, {}, dialect_of(table)), without_zone(table)
    for name, dtype in types.items():
        if name in RESERVED_NAMES:
            drafted.left_out[name] = (
                f"column {name!r}: released tables use this name themselves; hint: rename it"
            )
            continue
        try:
            attribute, reason = _attribute(frame, name, dtype)
            drafted.reasons[name] = f"{reason}; {ZONELESS}" if name in zoneless else reason
            drafted.attributes.append(attribute)
        except DataError as error:
            drafted.left_out[name] = str(error)
    return drafted


def _typed(table: object) -> nw.LazyFrame[Any]:
    """The table; text of a CSV column becomes numbers, booleans or dates where every value says so
    unambiguously.
    """
    if is_csv(table):
        text = open_table(table, decimal_columns(table)).to_native()
        return nw.from_native(
            guarded(
                "read the file", lambda: _typed_csv(text), FORM, engine=nw.Implementation.DUCKDB
            )
        )
    return open_table(table).lazy()


def _typed_csv(text: Any) -> Any:
    # what other programs write for a missing value; a release sends them to the catch-all too
    text = text.project(
        ", ".join(f"nullif(nullif({sql(c)}, ''), 'NA') AS {sql(c)}" for c in text.columns)
    )
    tests = [
        f"coalesce(bool_and({test.format(c=sql(c))}) FILTER ({sql(c)} IS NOT NULL), false)"
        for c in text.columns
        for test in _CSV_TYPES.values()
    ]
    answers = iter(text.aggregate(", ".join(tests)).fetchall()[0])
    columns = []
    for c in text.columns:
        kinds = [kind for kind, fits in zip(_CSV_TYPES, answers, strict=False) if fits]
        value = (
            f"regexp_replace(trim({sql(c)}), '[.]0+$', '')"
            if kinds[:1] == ["BIGINT"]
            else f"trim({sql(c)})"
        )
        value = f"left({sql(c)}, 10)" if kinds[:1] == ["DATE"] else value
        columns.append(f"CAST({value} AS {kinds[0]}) AS {sql(c)}" if kinds else sql(c))
    return text.project(", ".join(columns))


# a type, and when a text is one of its values and written as a release will write it: 007 and 0x1
# stay text
_CSV_TYPES = {
    "BIGINT": "TRY_CAST(regexp_replace({c}, '[.]0+$', '') AS BIGINT) IS NOT NULL"
    " AND regexp_full_match({c}, '(0|-?[1-9][0-9]*)([.]0+)?')",
    "DOUBLE": text_number("{c}") + " IS NOT NULL AND NOT regexp_full_match({c}, '( "
    ".*|0[0-9xX].*)')",
    "BOOLEAN": "lower({c}) IN ('true', 'false')",
    "DATE": "regexp_full_match({c}, '" + ISO.replace("{", "{{").replace("}", "}}") + "')",
}


def _attribute(
    frame: nw.LazyFrame[Any], name: str, dtype: nw.dtypes.DType
) -> tuple[Attribute, str]:
    """An attribute, and why it is that."""
    if dtype == nw.Object:  # pandas has no type of dates
        frame, dtype = _inferred(frame, name, dtype)
    column, engine = nw.col(name), frame.implementation
    if dtype == nw.Date or (dtype == nw.Datetime and not is_zoned(dtype)):
        return _dates(frame, name)
    discrete = dtype.is_integer() or dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean)
    if not (discrete or dtype.is_numeric()):
        raise DataError(
            f"column {name!r}: expected text, integers, booleans, numbers or dates, got "
            f"{type_name(dtype)}; "
            f"hint: {_ZONED if is_zoned(dtype) else 'drop or cast it'}"
        )
    if dtype in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    usable = ~column.is_null() if discrete else column.is_finite()
    missing = _collect(
        engine, "look for nulls", lambda: frame.select(v=(~usable).fill_null(True).any())
    )[0]
    if dtype.is_float() and missing and _whole(frame, usable, column):
        discrete, dtype = True, nw.Int64()  # as pandas has integers with gaps
        column = column.cast(dtype)
    if discrete:
        rest = _MOST_CATEGORIES + 1
        values = sorted(
            _collect(
                engine,
                "list categories",
                lambda: frame.filter(usable).select(v=column).unique().head(rest),
            )
        )
        if values and len(values) <= (_MOST_INTEGERS if dtype.is_integer() else _MOST_CATEGORIES):
            free = ("other" + "_" * k for k in range(len(values) + 1))
            kind = "truth values" if dtype == nw.Boolean else "values"
            kind = f"integers, at most {_MOST_INTEGERS}" if dtype.is_integer() else kind
            return Attribute(
                name, values, other=next(o for o in free if o not in values) if missing else None
            ), f"{len(values)} distinct {kind}: categories{_NULLS if missing else ''}"
        if not dtype.is_integer():
            raise DataError(
                f"column {name!r}: expected 1 to {_MOST_CATEGORIES} distinct values, got "
                f"{'more' if values else 'none'}; hint: leave out identifiers and free text"
            )
    ends = [
        _collect(engine, "find the range", lambda end=end: frame.filter(usable).select(v=end))[0]
        for end in (column.min(), column.max())
    ]
    low, high = (float(end or 0) for end in ends)
    skewed = low >= 0 and _mostly_below(frame, usable, column, high / _SKEWED)
    inner = _log_edges(low, high) if skewed else _round_edges(low, high)
    shape = (
        f"most below a {_SKEWED:g}th of the largest: bins that grow, 1-2-5 or tenfold"
        if skewed
        else "bins of one width, with round edges"
    )
    kind = f"more than {_MOST_INTEGERS} integers" if dtype.is_integer() else "numbers"
    return (
        Attribute(name, edges=[-math.inf, *inner, math.inf], other="other" if missing else None),
        f"{kind}, {shape}{_NULLS if missing else ''}{_clip(low, high, inner, skewed)}",
    )


def _clip(low: float, high: float, inner: list[float], skewed: bool) -> str:
    """Round ends for who asks for sums and means in place of counts."""
    first, last = 0.0 if low >= 0 else inner[0], inner[-1]
    if skewed:  # bins may be tenfold
        decade = math.floor(math.log10(high))
        ends = [float(f"{digit}e{decade}") for digit in (1, 2, 5)]
        last = max([end for end in ends if end <= high], default=last)
    if not -1e100 <= first < last <= 1e100:
        return ""
    return f"; for sums and means, clip = [{first:.15g}, {last:.15g}] in place of edges"


def _inferred(
    frame: nw.LazyFrame[Any], name: str, dtype: nw.dtypes.DType
) -> tuple[nw.LazyFrame[Any], nw.dtypes.DType]:
    """Python's objects as a column of dates, if they all are; else what they were."""
    with contextlib.suppress(DataError):
        column = guarded(
            "read the column",
            lambda: frame.select(name).collect("pyarrow").lazy(),
            engine=frame.implementation,
        )
        found = column.collect_schema()[name]
        if found == nw.Date or found == nw.Datetime:
            return column, found
    return frame, dtype


def _dates(frame: nw.LazyFrame[Any], name: str) -> tuple[Attribute, str]:
    """Bins of dates, and why these; of the data only the first and the last month are looked at."""
    engine = frame.implementation
    year, month = (
        part.cast(nw.Float64) for part in (nw.col(name).dt.year(), nw.col(name).dt.month())
    )
    months = nw.when(year >= 1, year <= 9999).then(year * 12 + month - 1)
    missing, low, high = (
        _collect(engine, task, lambda values=values: frame.select(v=values))[0]
        for task, values in (
            ("look for nulls", months.is_null().any()),
            ("find the range", months.min()),
            ("find the range", months.max()),
        )
    )
    if low is None or not low <= high:
        raise DataError(f"column {name!r}: expected dates, got none; hint: drop it")
    low, high = int(low), int(high)
    step = next(step for step in _CALENDAR if (high - low) // step <= _MOST_DATES)
    starts = range(-(-low // step) * step, high + 1, step) or [low]
    inner = [datetime.date(month // 12, month % 12 + 1, 1) for month in starts]
    return (
        Attribute(name, edges=[-math.inf, *inner, math.inf], other="other" if missing else None),
        f"dates: bins of {_CALENDAR[step]}, the shortest steps of the calendar that make "
        f"{_MOST_DATES} bins or so at most{_NULLS if missing else ''}",
    )


_ZONED = f"convert it to {NO_ZONE}, before"


def _whole(frame: nw.LazyFrame[Any], usable: nw.Expr, column: nw.Expr) -> bool:
    """Whether there are numbers, all of them integers that a float holds exactly."""
    exact = (column == column.round()) & (column.abs() < 2**53)
    row = _collect(
        frame.implementation,
        "look for integers",
        lambda: frame.filter(usable).select(v=exact.cast(nw.Float64).min()),
    )[0]
    return row == 1


def _mostly_below(
    frame: nw.LazyFrame[Any], usable: nw.Expr, column: nw.Expr, threshold: float
) -> bool:
    """Whether the median is; asked so that every engine can answer."""
    if not threshold > 0:
        return False
    below = _collect(
        frame.implementation,
        "look for skewness",
        lambda: frame.filter(usable).select(v=(column < threshold).cast(nw.Float64).mean()),
    )[0]
    return below > 0.5


def _collect(
    engine: nw.Implementation, task: str, query: Callable[[], nw.LazyFrame[Any]]
) -> list[Any]:
    """The only column of a query, which eager engines may compute, and fail at, before it is
    collected.
    """
    return guarded(task, lambda: query().collect("pyarrow")["v"].to_list(), engine=engine)


def _log_edges(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, or powers alone, between the orders of magnitude of the ends
    and of nothing else.
    """
    last = math.floor(math.log10(high))
    first = math.floor(math.log10(low)) if low > 0 else last - _MOST_DECADES
    first = max(first, last - _MOST_DECADES, -300)
    digits = (1, 2, 5) if last - first < _FINE_DECADES else (1,)
    # through decimal text, so that edges are the round numbers that they look like
    edges = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in digits]
    return [edge for edge in edges if edge < math.inf]


def _round_edges(low: float, high: float) -> list[float]:
    """At most eight or so multiples of 1, 2 or 5 times a power of ten, inside the range or at its
    ends.
    """
    width = high / _BINS - low / _BINS  # high - low may overflow
    if not width > 0:
        return [low]
    power = math.floor(math.log10(width))
    digit = next(d for d in (1, 2, 5, 10) if d * 10.0**power >= width)
    step = digit * 10.0**power
    # through decimal text, so that 3 × 0.1 is 0.3
    multiples = (
        float(f"{k * digit}e{power}")
        for k in range(math.ceil(low / step), math.floor(high / step) + 1)
    )
    return sorted(set(multiples)) or [low]
