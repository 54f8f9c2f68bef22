"""Edges that could be chosen without the data: round numbers, first days of months or years."""

import datetime
import math

from ..schema.dates import Edge

_BINS = 8
_MOST_DECADES = 6
_FINE_DECADES = 3  # for a range of more decades, the edges are powers of ten alone
_JANUARY, _END = 12, 10_000 * 12  # first month of Python's calendar, and the one after its last
_MOST_DATES = 12  # most steps between the first month and the last
# {months in a step: name of the steps}
_CALENDAR = {1: "months", 3: "quarters", 12: "years"} | {
    12 * years: f"{years} years" for years in (2, 5, 10, 20, 50, 100, 200, 500, 1000)
}


def log_edges(low: float, high: float) -> list[float]:
    """Return edges from ``low`` to ``high`` at growing steps: 1, 2 and 5 times powers of ten.

    For a long range, the edges are powers of ten alone. They depend on the orders of magnitude of
    ``low`` and ``high`` only.
    """
    last = math.floor(math.log10(high))
    first = math.floor(math.log10(low)) if low > 0 else last - _MOST_DECADES
    first = max(first, last - _MOST_DECADES, -300)
    digits = (1, 2, 5) if last - first < _FINE_DECADES else (1,)
    # from decimal text, so that edges are the doubles nearest to round numbers
    edges = [float(f"{digit}e{power}") for power in range(first, last + 1) for digit in digits]
    return [edge for edge in edges if edge < math.inf]


def round_edges(low: float, high: float) -> list[float]:
    """Return edges of bins: at most about eight round numbers in [low, high], at equal steps.

    A step is 1, 2 or 5 times a power of ten.
    """
    width = high / _BINS - low / _BINS  # high - low may overflow
    if not width > 0:
        return [low]
    power = math.floor(math.log10(width))
    digit = next(d for d in (1, 2, 5, 10) if d * 10.0**power >= width)
    step = digit * 10.0**power
    # from decimal text, so that 3 × 0.1 is 0.3
    multiples = (
        float(f"{k * digit}e{power}")
        for k in range(math.ceil(low / step), math.floor(high / step) + 1)
    )
    return sorted(set(multiples)) or [low]


def round_ends(low: float, inner: list[float], most: float | None) -> list[float] | None:
    """Return round bounds [low, high] for the clipping of numbers to be summed, or None.

    The upper bound is ``most`` rounded up to one digit, so that it does not depend on the few
    largest numbers. Without ``most``, it is the last inner edge.
    """
    first, last = 0.0 if low >= 0 else inner[0], inner[-1]
    if most is not None:
        power = math.floor(math.log10(most))
        ends = (float(f"{digit}e{power}") for digit in range(1, 11))
        last = next((end for end in ends if end >= most), last)
    return [first, last] if -1e100 <= first < last <= 1e100 else None


def calendar_edges(first: int, last: int) -> tuple[list[Edge], str, int]:
    """Return edges of bins of dates, the name of their step (like "months"), and the most steps.

    ``first`` and ``last`` are months, counted from year 0. The first edge is -inf if it is before
    Python's calendar.
    """
    step = next(step for step in _CALENDAR if (last - first) // step <= _MOST_DATES)
    starts = range(first // step * step, last + 1, step)
    edges = [_first_day(month) for month in starts if month >= _JANUARY]
    before = [-math.inf] if starts[0] < _JANUARY else []
    end = last // step * step + step
    # the last bin includes the last day of its step, so that it is as long as the others
    last_day = _first_day(end) - datetime.timedelta(1) if end < _END else datetime.date.max
    return [*before, *edges, last_day], _CALENDAR[step], _MOST_DATES


def _first_day(month: int) -> datetime.date:
    return datetime.date(month // 12, month % 12 + 1, 1)
