"""Text columns of CSV files as all engines read them: with decimal points, and dates in ISO 8601.

In columns that are read as numbers or dates, the decimal mark, thousands separators and date format
of a dialect are replaced. Separators are removed only between groups of three digits. The result
for a value depends on this value alone.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from ..schema.date_format import ISO_FORMAT, as_iso, as_iso_in_sql, in_format
from ..schema.dialect import Dialect

_MARKS = str.maketrans(",.", ".,")


class AsRead(NamedTuple):
    """A rule that replaces the text of a column before it is read.

    Attributes:
        text: a function from the text in files to the text that is read.
        written: the inverse function. The text that it returns could stand in files, but has no
            thousands separators.
        sql: the same rule in SQL: a function from the expression of a column to the expression of
            the text that is read.
    """

    text: Callable[[str], str]
    written: Callable[[str], str]
    sql: Callable[[str], str]


def _marks_swapped(text: str) -> str:
    """Return text with its commas and decimal points swapped."""
    # so a text with a point is no number afterwards, and different texts stay different
    return text.translate(_MARKS)


def _as_point(text: str, dialect: Dialect) -> str:
    """Return the text of a number with a decimal point, and without thousands separators."""
    if dialect.grouped is not None and re.fullmatch(dialect.grouped, text):
        text = text.replace(dialect.thousands or "", "")
    # text that is no number in this dialect stays text of no number
    return text if dialect.decimal == "." else _marks_swapped(text)


def _as_point_in_sql(column: str, dialect: Dialect) -> str:
    """Return the SQL expression that replaces the text of a column as :func:`_as_point` does."""
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
    """Return {column: rule that replaces its text}, for the columns that need such a rule.

    ``numbers`` and ``dates`` are the columns that are read as numbers or as dates. They need no
    rule if the dialect has decimal points and no thousands separators, or dates in ISO 8601.
    """
    found: dict[str, AsRead] = {}
    if dialect.decimal != "." or dialect.thousands is not None:
        points = AsRead(
            partial(_as_point, dialect=dialect),
            str if dialect.decimal == "." else _marks_swapped,
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
