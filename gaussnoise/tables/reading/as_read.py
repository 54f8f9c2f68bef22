"""Text columns of CSV files as all engines read them: with decimal points, and dates in ISO 8601.

Marks of thousands are left out where they stand between groups of three digits, and nowhere else.

A dialect's own marks and formats are replaced in columns that are read as numbers or dates. What a
value becomes depends on it alone.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from ..schema.date_format import ISO_FORMAT, as_iso, as_iso_in_sql, in_format
from ..schema.dialect import Dialect

_MARKS = str.maketrans(",.", ".,")


class AsRead(NamedTuple):
    """A way in which the text of a column is replaced.

    Attributes:
        text: a function from text as it stands in files to text that is read.
        written: a function back, to text that may stand in files; without marks of thousands.
        sql: a function from the SQL of a column to that of the column that is read.
    """

    text: Callable[[str], str]
    written: Callable[[str], str]
    sql: Callable[[str], str]


def _exchanged(text: str) -> str:
    """Return text with comma and point exchanged.

    So text with the other mark is no number, and different texts stay different.
    """
    return text.translate(_MARKS)


def _as_point(text: str, dialect: Dialect) -> str:
    """Return the text of a number with a decimal point, and without marks of thousands."""
    if dialect.grouped is not None and re.fullmatch(dialect.grouped, text):
        text = text.replace(dialect.thousands or "", "")
    return text if dialect.decimal == "." else _exchanged(text)


def _as_point_in_sql(column: str, dialect: Dialect) -> str:
    """Return the SQL of :func:`_as_point` of a column."""
    if dialect.grouped is not None:
        pattern, mark = (
            text.replace("'", "''") for text in (dialect.grouped, dialect.thousands or "")
        )
        column = (
            f"CASE WHEN regexp_full_match({column}, '{pattern}') THEN "
            f"replace({column}, '{mark}', '') ELSE {column} END"
        )
    return column if dialect.decimal == "." else f"translate({column}, ',.', '.,')"


def columns_as_read(
    dialect: Dialect, numbers: Iterable[str], dates: Iterable[str]
) -> dict[str, AsRead]:
    """Return the columns whose text is replaced in a dialect, and how."""
    found: dict[str, AsRead] = {}
    if dialect.decimal != "." or dialect.thousands is not None:
        points = AsRead(
            partial(_as_point, dialect=dialect),
            str if dialect.decimal == "." else _exchanged,
            partial(_as_point_in_sql, dialect=dialect),
        )
        found |= dict.fromkeys(numbers, points)
    if (form := dialect.date_format) != ISO_FORMAT:
        iso = AsRead(
            partial(as_iso, format=form),
            partial(in_format, format=form),
            partial(as_iso_in_sql, format=form),
        )
        found |= dict.fromkeys(dates, iso)
    return found
