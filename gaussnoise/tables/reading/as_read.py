"""Text columns of CSV files as all engines read them: with decimal points, and dates in ISO 8601.

A dialect's own marks and formats are replaced in columns that are read as numbers or dates. What a
value becomes depends on it alone.
"""

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
        written: a function back, to text that may stand in files.
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


def columns_as_read(
    dialect: Dialect, numbers: Iterable[str], dates: Iterable[str]
) -> dict[str, AsRead]:
    """Return the columns whose text is replaced in a dialect, and how."""
    found: dict[str, AsRead] = {}
    if dialect.decimal != ".":
        points = AsRead(_exchanged, _exchanged, "translate({}, ',.', '.,')".format)
        found |= dict.fromkeys(numbers, points)
    if (form := dialect.date_format) != ISO_FORMAT:
        iso = AsRead(
            partial(as_iso, format=form),
            partial(in_format, format=form),
            partial(as_iso_in_sql, format=form),
        )
        found |= dict.fromkeys(dates, iso)
    return found
