"""Times in questions: years, quarters, months, weeks and days, as labels or bins."""

import datetime
import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from ...text import one_of
from ..schema.dates import MONTHS, is_daily, is_dated, place
from ..schema.schema import Attribute, Category
from .question import Cells

_ANY_YEAR = 2001  # has 52 weeks, as most years do
_EPOCH, _DAY = datetime.date(1970, 1, 1).toordinal(), 24 * 60 * 60 * 10**6  # _DAY in microseconds
_MONTHS = tuple(name.lower() for name in MONTHS)
_SHORT = tuple(name[:3] for name in _MONTHS)
_KINDS = ("day", "week", "month", "quarter", "year")
_QUARTERS = ("first", "second", "third", "fourth")
_YEAR = r"[12]\d{3}"
_ANY_MONTH = rf"(?:{'|'.join(f'{name[:3]}(?:{name[3:]})?' for name in _MONTHS)})"
_OF = r"(?:\s+of)?\s+"
# patterns of times in questions and labels, the longest first; group names end with a number
_WRITTEN = (
    rf"(?P<year1>{_YEAR})-(?P<month1>\d\d)-(?P<day1>\d\d)",
    rf"(?P<day2>[1-3]?\d)\s+(?P<month2>{_ANY_MONTH})\s+(?P<year2>{_YEAR})",
    rf"(?P<year3>{_YEAR})[-\s]?Q(?P<quarter3>[1-4])",
    rf"(?P<year4>{_YEAR})[-\s]?W(?P<week4>\d\d?)",
    rf"(?P<year5>{_YEAR})-(?P<month5>\d\d)",
    rf"(?P<month6>{_ANY_MONTH})(?:{_OF}(?P<year6>{_YEAR}))?",
    rf"Q(?P<quarter7>[1-4])(?:{_OF}(?P<year7>{_YEAR}))?",
    rf"(?:the\s+)?(?P<quarter8>{'|'.join(_QUARTERS)})\s+quarter(?:{_OF}(?P<year8>{_YEAR}))?",
    rf"week\s+(?P<week9>\d\d?)(?:{_OF}(?P<year9>{_YEAR}))?",
    rf"(?P<year0>{_YEAR})",
)
PERIOD = rf"(?:{'|'.join(re.sub(r'[?]P<[a-z]+[0-9]>', '?:', one) for one in _WRITTEN)})(?![\w-])"
_PARTS = tuple(re.compile(one, re.IGNORECASE) for one in _WRITTEN)


class InexactError(ValueError):
    """The error for a time that no labels or bins of an attribute represent exactly."""


class Period(NamedTuple):
    """A year, quarter, month, week or day in a question; ``year`` is None if it is not stated."""

    text: str
    year: int | None
    kind: str = "year"
    number: int = 0  # number within the year; for a day, its ordinal

    def days(self, year: int) -> tuple[int, int]:
        """Return the ordinals of the first day of the period, and of the day after its last day.

        An ordinal counts days, as in :meth:`datetime.date.toordinal`. The period is taken in
        ``year``. A day is one date, so ``year`` has no effect on it.
        """
        if self.kind == "day":
            return self.number, self.number + 1
        if self.kind == "week":
            start = datetime.date.fromisocalendar(year, self.number, 1).toordinal()
            return start, start + 7
        months = {"year": 12, "quarter": 3, "month": 1}[self.kind]
        first = months * max(self.number - 1, 0)
        if first >= 12:
            raise ValueError(self.text)
        ends = [divmod(first + more, 12) for more in (0, months)]
        start, end = (datetime.date(year + years, 1 + month, 1) for years, month in ends)
        return start.toordinal(), end.toordinal()


def period_of(text: str) -> Period | None:
    """Return the period that a text names, like "March 2024"; None if it names none that exists."""
    match = next(filter(None, (part.fullmatch(text.strip()) for part in _PARTS)), None)
    if match is None:
        return None
    said = {name[:-1]: value.lower() for name, value in match.groupdict().items() if value}
    year = int(said["year"]) if "year" in said else None
    try:
        if "day" in said and year is not None:
            day = datetime.date(year, _month(said["month"]), int(said["day"]))
            return Period(text, year, "day", day.toordinal())
        for kind, number in (("month", _month), ("quarter", _quarter), ("week", int)):
            if kind in said:
                found = Period(text, year, kind, number(said[kind]))
                found.days(year or _ANY_YEAR)  # refuses a month or week that the year lacks
                return found
    except ValueError:
        return None
    return Period(text, year)


def _month(said: str) -> int:
    return int(said) if said.isdigit() else 1 + _SHORT.index(said[:3])


def _quarter(said: str) -> int:
    return int(said) if said.isdigit() else 1 + _QUARTERS.index(said)


def span_of(period: Period, year: int) -> tuple[float, float]:
    """Return the start and the end of a period of ``year``, in microseconds since 1970."""
    start, end = period.days(year)
    return _place(start), _place(end)


class Times(NamedTuple):
    """The period of time that each cell of an attribute stands for.

    Attributes:
        name: the name of the attribute.
        labels: the labels of its cells.
        spans: the start and the end of each cell, in microseconds since 1970; None for a
            catch-all, and for names of months without a year.
        plain: the month, quarter or week of each cell, if the attribute has no years; else empty.
    """

    name: str
    labels: tuple[Category, ...]
    spans: tuple[tuple[float, float] | None, ...]
    plain: tuple[Period | None, ...] = ()

    def cells(self, first: Period, last: Period) -> Cells:
        """Return the indices of the cells from the start of ``first`` to the end of ``last``.

        Raises:
            InexactError: no labels or bins represent this time, or it occurs in several years.
        """
        if self.plain:
            return self._without_years(first, last)
        stated = [period.year for period in (first, last) if period.year is not None]
        known = [span for span in self.spans if span is not None]
        found = {}
        for year in [max(stated)] if stated else range(*_years(known)):
            ends = first.days(first.year or year)[0], last.days(last.year or year)[1]
            start, end = map(_place, ends)
            if stated or any(a < end and start < b for a, b in known):
                found[year] = start, end
        if len(found) != 1:
            which = f", which may be of {' or '.join(map(str, found))}" if found else ""
            raise InexactError(f"expected a time of {self._all()}{which}")
        return self._between(*found.popitem()[1])

    def beyond(self, period: Period, word: str) -> Cells:
        """Return the indices of the cells "before" a period, "since" its start, or "after" its end.

        Raises:
            InexactError: no labels or bins represent this time exactly.
        """
        if self.plain or period.year is None:
            raise InexactError(f"expected a time with its year, of {self._all()}")
        if None in self.spans:
            other = self.labels[self.spans.index(None)]
            raise InexactError(
                f"expected two ends, from … to …: {other!r} of {self.name!r} may hold times "
                "beyond the others"
            )
        start, end = span_of(period, period.year)
        if word == "before":
            return self._between(-math.inf, start)
        return self._between(end if word == "after" else start, math.inf)

    def _between(self, start: float, end: float) -> Cells:
        """Return the cells that exactly fill ``start`` to ``end``, in microseconds since 1970."""
        chosen, covered = list[int](), 0.0
        for k, span in enumerate(self.spans):
            if span is None or span[1] <= start or span[0] >= end:
                continue
            if span[0] < start or span[1] > end:
                raise InexactError(
                    f"expected a time that {self.name!r} has exactly: {self.labels[k]} is partly "
                    "in it"
                )
            chosen.append(k)
            covered += span[1] - span[0]
        if not chosen or (math.isfinite(end - start) and covered < end - start):
            raise InexactError(f"expected a time of {self._all()}")
        return tuple(chosen)

    def _without_years(self, first: Period, last: Period) -> Cells:
        kinds = {period.kind for period in self.plain if period is not None}
        stated = {first.year, last.year, None}
        if len(stated) > 1 or kinds != {first.kind, last.kind} or first.number > last.number:
            raise InexactError(f"expected a time of {self._all()}, which has no years")
        wanted = set(range(first.number, last.number + 1))
        found = {p.number: k for k, p in enumerate(self.plain) if p and p.number in wanted}
        if found.keys() != wanted:
            raise InexactError(f"expected a time of {self._all()}")
        return tuple(sorted(found.values()))

    def _all(self) -> str:
        return f"{self.name!r}, {one_of(self.labels)}"


def times_of(attribute: Attribute) -> Times | None:
    """Return the period of each cell of an attribute; None if its cells are no periods of time."""
    name, labels = attribute.name, attribute.labels
    if attribute.edges is not None and is_dated(attribute.edges):
        starts, ends = attribute.edges[:-1], attribute.edges[1:]
        spans = [(place(a), place(b)) for a, b in zip(starts, ends, strict=True)]
        last = _DAY if is_daily(attribute.edges) else 1  # the last bin includes its upper edge
        spans[-1] = spans[-1][0], spans[-1][1] + last
        more = [None] * (len(labels) - len(spans))
        return Times(name, labels, (*spans, *more))
    own = attribute.categories or ()
    is_year = "year" in name.lower() and all(type(one) is int for one in own)
    if not own or not (is_year or all(isinstance(one, str) for one in own)):
        return None
    periods: list[Period] = []
    for one in own:
        period = period_of(str(one))
        if period is None:
            return None
        periods.append(period)
    more = [None] * (len(labels) - len(periods))
    years = [period.year for period in periods]
    if all(year is None for year in years):
        return Times(name, labels, (None,) * len(labels), (*periods, *more))
    known = [
        span_of(period, year)
        for period, year in zip(periods, years, strict=True)
        if year is not None
    ]
    return None if len(known) < len(periods) else Times(name, labels, (*known, *more))


def kind_of(attribute: Attribute) -> str | None:
    """Return the kind of period of an attribute's cells, like "month"; None if kinds differ."""
    times = times_of(attribute)
    if times is None:
        return None
    if times.plain:
        kinds = {period.kind for period in times.plain if period is not None}
        return kinds.pop() if len(kinds) == 1 else None
    spans = [span for span in times.spans if span is not None]
    for kind in _KINDS if all(map(math.isfinite, itertools.chain(*spans))) else ():
        ends = [(b, _end(kind, a)) for a, b in spans]
        last, end = ends.pop()
        if all(b == known for b, known in ends) and last in (end, end + _DAY):  # with its last day
            return kind
    return None


def _end(kind: str, start: float) -> float:
    """Return the end of the period that begins at ``start``, or NaN, in microseconds since 1970."""
    day, rest = divmod(start, _DAY)
    if rest:
        return math.nan
    first = datetime.date.fromordinal(_EPOCH + int(day))
    number = {
        "day": first.toordinal(),
        "week": first.isocalendar().week,
        "month": first.month,
        "quarter": (first.month + 2) // 3,
        "year": 0,
    }[kind]
    year = first.isocalendar().year if kind == "week" else first.year
    begin, end = Period("", year, kind, number).days(year)
    return _place(end) if begin == first.toordinal() else math.nan


def _place(day: int) -> float:
    """Return the start of the day with this ordinal, in microseconds since 1970."""
    return float((day - _EPOCH) * _DAY)


def _years(spans: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """Return (first year, last year + 1) of spans of time in microseconds since 1970."""
    ends = [end for span in spans for end in span if math.isfinite(end)]
    first, last = (
        datetime.date.fromordinal(_EPOCH + int(end // _DAY)).year for end in (min(ends), max(ends))
    )
    return first, last + 1
