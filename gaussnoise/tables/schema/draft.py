"""A first schema, drafted from the data: every line of it must be checked against
public knowledge.
"""

import math
from collections.abc import Callable
from typing import Any

import narwhals as nw

from ...errors import DataError
from ..reading.files import is_csv
from ..reading.frames import guarded, open_table, sql, type_name
from .schema import Attribute

_MOST_CATEGORIES = 100
_MOST_INTEGERS = 20
_BINS = 8


def draft(table: object) -> tuple[list[Attribute], dict[str, str]]:
    """One attribute per column that can be one, and why the others cannot; see
    :meth:`Schema.draft`.
    """
    frame = _typed(table)
    types = guarded(
        "read the table's columns",
        lambda: dict(frame.collect_schema()),
        engine=frame.implementation,
    )
    attributes, left_out = [], {}
    for name, dtype in types.items():
        try:
            attributes.append(_attribute(frame, name, dtype))
        except DataError as error:
            left_out[name] = str(error)
    return attributes, left_out


def _typed(table: object) -> nw.LazyFrame[Any]:
    """The table; text of a CSV column becomes numbers or booleans where every value says so
    unambiguously.
    """
    if is_csv(table):
        text = open_table(table).to_native()
        return nw.from_native(
            guarded("read the file", lambda: _typed_csv(text), engine=nw.Implementation.DUCKDB)
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
    found = iter(text.aggregate(", ".join(tests)).fetchall()[0])
    columns = []
    for c in text.columns:
        kinds = [kind for kind, fits in zip(_CSV_TYPES, found, strict=False) if fits]
        value = (
            f"regexp_replace(trim({sql(c)}), '[.]0+$', '')"
            if kinds[:1] == ["BIGINT"]
            else f"trim({sql(c)})"
        )
        columns.append(f"CAST({value} AS {kinds[0]}) AS {sql(c)}" if kinds else sql(c))
    return text.project(", ".join(columns))


# a type, and when a text is one of its values and written as a release will write it: 007 and 0x1
# stay text
_CSV_TYPES = {
    "BIGINT": "TRY_CAST(regexp_replace({c}, '[.]0+$', '') AS BIGINT) IS NOT NULL"
    " AND regexp_full_match({c}, '(0|-?[1-9][0-9]*)([.]0+)?')",
    "DOUBLE": "TRY_CAST(trim({c}) AS DOUBLE) IS NOT NULL AND NOT regexp_full_match({c}, '( "
    ".*|0[0-9xX].*)')",
    "BOOLEAN": "lower({c}) IN ('true', 'false')",
}


def _attribute(frame: nw.LazyFrame[Any], name: str, dtype: nw.dtypes.DType) -> Attribute:
    column, engine = nw.col(name), frame.implementation
    discrete = dtype.is_integer() or dtype in (nw.String, nw.Categorical, nw.Enum, nw.Boolean)
    if not (discrete or dtype.is_numeric()):
        raise DataError(
            f"column {name!r}: expected text, integers, booleans or numbers, got "
            f"{type_name(dtype)}; "
            "hint: drop or cast it"
        )
    if dtype in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    usable = ~column.is_null() if discrete else column.is_finite()
    missing = _collect(
        engine, "look for nulls", lambda: frame.select(v=(~usable).fill_null(True).any())
    )[0]
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
            return Attribute(
                name, values, other=next(o for o in free if o not in values) if missing else None
            )
        if not dtype.is_integer():
            raise DataError(
                f"column {name!r}: expected 1 to {_MOST_CATEGORIES} distinct values, got "
                f"{'more' if values else 'none'}; hint: leave out identifiers and free text"
            )
    ends = [
        _collect(engine, "find the range", lambda end=end: frame.filter(usable).select(v=end))[0]
        for end in (column.min(), column.max())
    ]
    edges = [-math.inf, *_round_edges(*(float(end or 0) for end in ends)), math.inf]
    return Attribute(name, edges=edges, other="other" if missing else None)


def _collect(
    engine: nw.Implementation, task: str, query: Callable[[], nw.LazyFrame[Any]]
) -> list[Any]:
    """The only column of a query, which eager engines may compute, and fail at, before it is
    collected.
    """
    return guarded(task, lambda: query().collect("pyarrow")["v"].to_list(), engine=engine)


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
