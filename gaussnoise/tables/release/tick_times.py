"""The times of a stream's ticks: years, quarters, months, weeks or days that follow each other."""

import datetime
from typing import NamedTuple

from ..schema.dates import MONTHS
from .periods import Period, Times, period_of, span_of

EXPECTED = (
    "a year, quarter, month, week or day of the years 1000 to 2999, like 2026, 2026-Q1, 2026-01, "
    "2026-W05 or 2026-01-31"
)
_IN_A_YEAR = {"year": 1, "quarter": 4, "month": 12}


class TickTimes(NamedTuple):
    """The times of the ticks (releases) of a stream: their kind, and the text and span of each."""

    kind: str
    texts: tuple[str, ...]
    spans: tuple[tuple[float, float], ...]

    @property
    def cells(self) -> Times:
        """The times as :class:`Times` of an attribute with one cell for each tick."""
        return Times("tick", self.texts, self.spans)


def tick_times(first: str, n: int) -> TickTimes:
    """Return the times of ``n`` consecutive ticks (releases), beginning with ``first``.

    Raises:
        ValueError: the text is no period with a year, or the last period is beyond the calendar.
    """
    period = period_of(first)
    if period is None or period.year is None:
        raise ValueError(first)
    try:
        found = [_later(period, period.year, k) for k in range(n)]
        spans = tuple(span_of(own, year) for own, year in found)
    except OverflowError:
        raise ValueError(first) from None
    return TickTimes(period.kind, tuple(own.text for own, _ in found), spans)


def _later(first: Period, year: int, more: int) -> tuple[Period, int]:
    """Return the period that is ``more`` periods after ``first`` (of ``year``), and its year."""
    kind, number = first.kind, first.number
    if kind == "day":
        number += more
        day = datetime.date.fromordinal(number)
        year, text = day.year, f"{day.day} {MONTHS[day.month - 1]} {day.year}"
    elif kind == "week":
        start = datetime.date.fromordinal(first.days(year)[0] + 7 * more)
        year, number, _ = start.isocalendar()
        text = f"week {number} of {year}"
    else:
        years, place = divmod(max(number - 1, 0) + more, _IN_A_YEAR[kind])
        year, number = year + years, place + 1
        named = {"year": "", "quarter": f"Q{number} ", "month": f"{MONTHS[place]} "}[kind]
        text = f"{named}{year}"
    return Period(text, year, kind, number), year
