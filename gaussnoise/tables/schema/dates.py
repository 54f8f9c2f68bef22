"""Dates and times, which are no numbers: refused before anything takes them for a number of
nanoseconds.
"""

import datetime
from collections.abc import Iterable

import numpy as np

from ...errors import SchemaError

AS_NUMBERS = "add a column of whole numbers to the table, like the year, and declare edges for it"
_TIMES = datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64


def check_no_dates(name: str, field: str, values: Iterable[object]) -> None:
    """Refuse dates, times and durations, numpy's and pandas' included."""
    if any(isinstance(value, _TIMES) for value in values):
        kind = "text, integers or booleans" if field == "categories" else "numbers"
        raise SchemaError(
            f"attribute {name!r}: expected {field} that are {kind}, got dates or times; hint: "
            f"{AS_NUMBERS}"
        )
