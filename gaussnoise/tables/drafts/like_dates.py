"""Remarks of a draft on columns of text that resembles dates, but is not read as dates."""

from ..reading.values import moment_of
from ..schema.date_format import likely_formats
from ..schema.dialect import date_hint
from .seen import Seen

_WANTED = (
    "a year of four digits, a month as a number, hours from 0 to 23, no time zone; hint: write "
    "them like 2023-03-31 or 2023-03-31 08:30"
)


def like_dates(column: Seen) -> str:
    """Return a remark on texts that resemble dates: their format, and how to read them as dates.

    Return "" if most texts of the column do not resemble dates.
    """
    if not column.is_like_dates:
        return ""
    texts = dict.fromkeys(column.like_dates, 1)
    formats = likely_formats(texts)
    if not formats and all(moment_of(text) is not None for text in texts):
        return "dates as text; hint: cast the column to dates, or give edges that are dates"
    if not formats:
        return f"texts like dates, but dates have {_WANTED}"
    return date_hint(formats)
