"""Edges that anybody could have chosen: round numbers, and firsts of months, quarters or years."""

import datetime
import math

_BINS = 8
_MOST_DECADES = 6
_FINE_DECADES = 3  # with more, powers of ten alone
_MOST_DATES = 12  # steps of the calendar from the first month to the last
# in months, and what they are called
_CALENDAR = {1: "months", 3: "quarters", 12: "years"} | {
    12 * years: f"{years} years" for years in (2, 5, 10, 20, 50, 100, 200, 500, 1000)
}


def log_edges(low: float, high: float) -> list[float]:
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


def round_edges(low: float, high: float) -> list[float]:
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


def round_ends(low: float, high: float, inner: list[float], *, skewed: bool) -> list[float] | None:
    """Between which numbers sums and means may be clipped; None where there are no such ends."""
    first, last = 0.0 if low >= 0 else inner[0], inner[-1]
    if skewed:  # bins may be tenfold
        decade = math.floor(math.log10(high))
        ends = [float(f"{digit}e{decade}") for digit in (1, 2, 5)]
        last = max([end for end in ends if end <= high], default=last)
    return [first, last] if -1e100 <= first < last <= 1e100 else None


def calendar_edges(first: int, last: int) -> tuple[list[datetime.date], str, int]:
    """Starts of bins, what their steps are called, and how many there may be.

    Months are counted from the year 0.
    """
    step = next(step for step in _CALENDAR if (last - first) // step <= _MOST_DATES)
    starts = range(-(-first // step) * step, last + 1, step) or [first]
    edges = [datetime.date(month // 12, month % 12 + 1, 1) for month in starts]
    return edges, _CALENDAR[step], _MOST_DATES
