"""Names of intervals for readers: "18 to 39" in place of [18, 40)."""

import datetime
import itertools
import math
import re
from collections.abc import Iterator, Sequence

from .about import LINE, is_line
from .dates import Edge, is_daily, is_open

EXPECTED_NAMES = 'expected a list of texts, like ["under 18", "18 to 64", "65 and over"]'
_YEAR = 365.25  # days
_LIKE_INTERVAL = re.compile(r"[\[(].*,.*[\])]")


def name_problems(names: Sequence[object], intervals: Sequence[str]) -> Iterator[str]:
    """Yield an error message if the names do not fit the intervals of an attribute."""
    if not intervals:
        yield "names: expected edges, whose intervals have names; hint: leave the names out"
        return
    if len(names) != len(intervals):
        yield (
            f"names: expected {len(intervals)}, one for each interval from {intervals[0]} to "
            f"{intervals[-1]}, got {len(names)}; hint: without names, readers see the intervals"
        )
        return
    for name, own in zip(names, intervals, strict=True):
        if not is_line(name) or name != str(name).strip():
            yield f"names: expected {LINE}, without blanks at its ends, got {name!r:.80}"
        # a name that another interval could have would answer questions about that interval
        elif _LIKE_INTERVAL.fullmatch(str(name)) and name != own:
            yield f"names: expected a name of {own} that is no other interval, got {name!r:.80}"
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        yield f"names: expected each name once, got {twice!r:.80} twice"


def whole_names(edges: Sequence[Edge]) -> tuple[str, ...] | None:
    """Return names like "18 to 39" for intervals of whole numbers or of days; None for others.

    >>> inf = float("inf")
    >>> whole_names([-inf, 18.0, 19.0, 65.0, inf])
    ('under 18', '18', '19 to 64', '65 and over')
    >>> whole_names([datetime.date(2020, 1, 1), datetime.date(2020, 7, 1), inf])
    ('2020-01-01 to 2020-06-30', '2020-07-01 or later')
    """
    ends = [edge for edge in edges if not is_open(edge)]
    if not ends or not (is_daily(edges) or all(isinstance(e, float) and e % 1 == 0 for e in ends)):
        return None
    below, above = ("before", "or later") if is_daily(edges) else ("under", "and over")
    found = list[str]()
    for low, high in itertools.pairwise(edges):
        is_last = high is edges[-1]  # the last interval has its upper edge
        last = "" if is_open(high) else _text(high if is_last else _before(high))
        if is_open(high):
            found.append(f"{_text(low)} {above}")
        elif is_open(low):
            found.append(f"up to {last}" if is_last else f"{below} {_text(high)}")
        else:
            found.append(last if last == _text(low) else f"{_text(low)} to {last}")
    return tuple(found)


def are_ages(names: Sequence[str], edges: Sequence[Edge]) -> bool:
    """Return whether names of intervals of birth dates are ages: they fall as the dates rise.

    Ages fall by no more years than lie between the dates. Numbers of weeks fall by more, and are no
    ages.

    >>> born = [datetime.date(1961, 1, 1), datetime.date(2008, 1, 1), datetime.date(2025, 12, 31)]
    >>> are_ages(["18 to 64", "under 18"], born), are_ages(["until 2007", "2008 or later"], born)
    (True, False)
    """
    dates = [edge for edge in edges if isinstance(edge, datetime.date)]
    found = [int(digits) for name in reversed(names) for digits in re.findall("[0-9]+", name)]
    if not found or len(dates) < 2 or found != sorted(found):
        return False
    least = 0 if found[0] == found[-1] else found[0]
    return found[-1] - least <= math.ceil((dates[-1] - dates[0]).days / _YEAR)


def _before(edge: Edge) -> Edge:
    """Return the whole number or the day before an edge."""
    return edge - datetime.timedelta(1) if isinstance(edge, datetime.date) else edge - 1


def _text(edge: Edge) -> str:
    return edge.isoformat() if isinstance(edge, datetime.date) else f"{edge:z.0f}"
