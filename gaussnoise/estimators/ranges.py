"""The search for a range to which numbers without known bounds are clipped, and its check.

The private search finds numbers L and U, below the first decile and above the last one. Each round
asks how many numbers are below one threshold and how many above another. It halves an interval that
contains L, and one that contains U. A last question checks that few enough numbers are below L and
above U.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from ..numerics.rounding import SAFE_SIDE, rounded_down
from ..tables.planning.ranges import FEW
from .moments import best_radius, tail_bias
from .steps import lattice_query

Array = NDArray[np.float64]
Neighbors = Literal["add-remove", "replace"]
Ends = tuple[float | None, float | None]

SHARES = {"count": 0.05, "search": 0.3, "check": 0.1, "tails": 0.05}
_DECILE = 0.1
_ROUNDS = 64
_EARLY, _EARLY_PART = (16, 0.8)  # the first rounds, mostly enough, and their part of the budget
_AHEAD = 8  # rounds whose thresholds are counted in one pass over the rows
_FINE = 16  # a search ends once brackets are this many times narrower than the gap between them
_CHECKS = 2  # the range as it was found and, if the check fails, one twice as wide
_TAIL_QUESTIONS = 2
QUESTIONS = 1 + 2 * _ROUNDS + 2 * _CHECKS + _TAIL_QUESTIONS  # largest number of counts
_CLEAR = 2.0  # margin, in deviations of a round's noise, between the sought count and the limit
_RARE = 0.001  # share of far numbers by which order 4 is judged
_WITHIN = 0.6  # fraction of the largest distance at which order 4 allows this share
# If L and U are outside the deciles, U − L is too large by some e, and the middle of both is wrong
# by at most e/2. So half of U − L still bounds the deviation about the middle.
_LEAST_SPREAD = 0.5
_BOUNDS = "public bounds, between="
_LARGEST_END = 1e50  # sums of squares of larger numbers are not supported
_SHORTEST = 1e-100  # least length of a range: its steps are normal floats
_CLOSEST = 2.0**-30  # least length of a range, relative to its larger end
_LARGEST = 1e308  # thresholds must be finite, as they are edges of an attribute
_MOST = 1e12  # hints do not ask for more numbers than this, nor for so large a budget


class NoRangeError(Exception):
    """The error that no range for clipping was found; its message has a reason and a hint."""


@dataclass(frozen=True)
class Range:
    """A range to clip numbers to, and the assumption under which the bias of clipping is bounded.

    Attributes:
        low: the lower end.
        high: the upper end.
        size: bound on the standard deviation of the numbers.
        bias: bound on the bias of clipping.
        assumed: the assumption, in words; empty if both ends are public.
        least: the lower bound of all numbers, public or assumed; None if it is unknown, or if both
            ends are public.
        most: the upper bound of all numbers, known or None like ``least``.
    """

    low: float
    high: float
    size: float
    bias: float
    assumed: str
    least: float | None = None
    most: float | None = None


# maps thresholds to the count of all numbers, the counts below each, and the counts above each
Exact = Callable[[Sequence[float]], tuple[int, Sequence[int], Sequence[int]]]


def exact_in(x: Array) -> Exact:
    """Return a function of thresholds that counts exactly the numbers in x below and above each."""
    own = np.sort(x)

    def counted(thresholds: Sequence[float]) -> tuple[int, Sequence[int], Sequence[int]]:
        below = np.searchsorted(own, thresholds, side="left")
        above = len(own) - np.searchsorted(own, thresholds, side="right")
        return len(own), below.tolist(), above.tolist()

    return counted


class Counts:
    """Noisy counts of the numbers beyond thresholds, within one budget.

    Attributes:
        spent: the ρ of all questions so far.
        quantile: the number of standard deviations that the noise of a count exceeds with
            probability ``wrong``.
        both: the largest squared change, between neighbours, of two counts without a common row.
    """

    def __init__(self, exact: Exact, neighbors: Neighbors, rho: float, wrong: float) -> None:
        self.rho, self.wrong, self.spent, self.number = rho, wrong, Fraction(0), math.nan
        self.quantile = float(-scipy.special.ndtri(wrong))
        self.both = 2 if neighbors == "replace" else 1
        self._count, self._known = exact, dict[float, tuple[int, int]]()

    def part(self, step: str, part: float = 1.0) -> float:
        """Return ``part`` times the ρ of a step: "count", "search", "check" or "tails"."""
        return rounded_down(Fraction(self.rho) * Fraction(SHARES[step]) * Fraction(part))

    def all(self) -> float:
        """Return the noisy count of all numbers, raised to 1 if it is less."""
        number = self._count([])[0]
        self.number = max(self._noisy([number], 1, self.part("count"))[0], 1.0)
        return self.number

    def prepare(self, thresholds: Sequence[float]) -> None:
        """Count the numbers below and above thresholds, in one pass, without noise or cost.

        Raises:
            NoRangeError: a threshold is beyond what can be counted.
        """
        if any(_LARGEST < abs(t) < math.inf for t in thresholds):
            raise NoRangeError(f"the numbers are too large; hint: {_BOUNDS}")
        new = sorted(set(thresholds) - set(self._known) - {-math.inf, math.inf})
        number, below, above = self._count(new)
        self._known |= zip(new, zip(below, above, strict=True), strict=True)
        self._known |= {-math.inf: (0, number), math.inf: (number, 0)}

    def outside(self, low: float, high: float, rho: float) -> tuple[float, float]:
        """Return the noisy counts of numbers below ``low``, and above ``high >= low``.

        No row is in both counts, so one row changes them by a vector of length at most 1. A
        replaced row may leave one count and enter the other, a change of √2.
        """
        below, above = self._noisy(list(self._exact(low, high)), self.both, rho)
        return below, above

    def beyond(self, low: float, high: float, rho: float) -> float:
        """Return the noisy count of the numbers that are below ``low`` or above ``high``."""
        return self._noisy([sum(self._exact(low, high))], 1, rho)[0]

    def deviation(self, rho: float) -> float:
        """Return the standard deviation of the noise of a count that costs ``rho``."""
        query, bits = lattice_query(1, rho)
        return math.ldexp(query.scale, -bits)

    def _exact(self, low: float, high: float) -> tuple[int, int]:
        if not {low, high} <= set(self._known):
            self.prepare([low, high])
        return self._known[low][0], self._known[high][1]

    def _noisy(self, counts: list[int], squared: int, rho: float) -> list[float]:
        query, bits = lattice_query(squared, rho)
        self.spent += Fraction(rho)
        noise = query.draw(len(counts))
        return [math.ldexp((n << bits) + e, -bits) for n, e in zip(counts, noise, strict=True)]


def check_questions(neighbors: Neighbors, rho: float) -> None:
    """Raise ParameterError unless noise exists for all questions of a search that costs ``rho``."""
    counts = Counts(exact_in(np.zeros(0)), neighbors, rho, 0.5)
    parts = [("count", 1.0), ("check", 1.0), ("tails", 1 / _TAIL_QUESTIONS)]
    parts += [("search", _round_part(number)) for number in (0, _ROUNDS - 1)]
    for step, part in parts:
        lattice_query(counts.both, counts.part(step, part))
    lattice_query(counts.both, rho)


def _round_part(number: int) -> float:
    """Return the share of the search's budget that round ``number`` (from 0) uses."""
    late = (1 - _EARLY_PART) / (_ROUNDS - _EARLY)
    return _EARLY_PART / _EARLY if number < _EARLY else late


def find_range(
    counts: Counts,
    ends: Ends,
    spread: float,
    order: float | None,
    noise: Callable[[float, float], float],
) -> Range:
    """Return the range to which numbers are clipped.

    The width of the range makes the largest possible bias of clipping about as large as the noise.

    Args:
        counts: the numbers, with the budget for all questions.
        ends: the public lower and upper bound, None for an unknown one.
        spread: the bound on the root of the moment, as a multiple of U − L.
        order: the order of the moment; if None, it is 4, or 2 if many numbers are far away.
        noise: a function of the count of numbers and of the spent ρ that returns the standard
            deviation of a mean's noise, for the range −1 to 1.

    Raises:
        NoRangeError: there are too few numbers, nearly all are equal, or the check failed.
    """
    least, most = ends
    if least is not None and most is not None:
        return Range(least, most, most / 2 - least / 2, 0.0, "")
    number = counts.all()
    limit, sought = _room(counts, number)
    low, high = _search(counts, sought)
    for _ in range(_CHECKS):
        if max(counts.outside(low, high, counts.part("check"))) <= limit:
            break
        low, high = low - (high - low) / 2, high + (high - low) / 2
    else:
        raise NoRangeError(
            "noise misled the search, and too many numbers are outside the range that it found; "
            f"hint: a larger budget, or {_BOUNDS}"
        )
    center, size = low / 2 + high / 2, max(spread, _LEAST_SPREAD) * (high - low)
    if not (0 < size < math.inf and math.isfinite(center)):
        raise NoRangeError(f"the numbers are too large, or too close together; hint: {_BOUNDS}")
    k = _order(counts, number, center, size) if order is None else order
    unit = noise(number, float(counts.spent))

    def clipped_at(part: float) -> tuple[float, float]:
        reach = max(best_radius(k, size, part * unit), high / 2 - low / 2)
        step = 10.0 ** math.floor(math.log10(reach) - 2) if 1e-300 < reach < math.inf else 0.0
        first, last = center - reach, center + reach
        if step:  # round outwards, to numbers that are easier to read
            first, last = (
                min(float(f"{math.floor(first / step) * step:.12g}"), first),
                max(float(f"{math.ceil(last / step) * step:.12g}"), last),
            )
        return (
            max(first, -math.inf if least is None else least),
            min(last, math.inf if most is None else most),
        )

    if least is None and low >= 0 and clipped_at(1.0)[0] < 0 and _none_negative(counts):
        least = 0.0
    first, last = clipped_at(1.0)
    if first == least or last == most:  # one end is public: about half the range and noise
        first, last = clipped_at(0.5)
    if (least is not None and least > high) or (most is not None and most < low):
        raise NoRangeError("most numbers are outside the public bounds; hint: other bounds")
    largest = max(abs(first), abs(last))
    if not (largest <= _LARGEST_END and last - first > max(_CLOSEST * largest, _SHORTEST)):
        raise NoRangeError(f"the numbers are too large or too close together; hint: {_BOUNDS}")
    reaches = [center - first] * (first != least) + [last - center] * (last != most)
    bias = max((tail_bias(reach, k, size) for reach in reaches), default=0.0)
    words = [
        f"in every group, the distance of a number from {center:.6g}, as the root of its moment of "
        f"order {k:g}, is at most {size:.6g}"
    ]
    words += [] if least is None else [f"no number is below {least:.6g}"]
    words += [] if most is None else [f"no number is above {most:.6g}"]
    return Range(first, last, size, bias, ", and ".join(words), least, most)


def _room(counts: Counts, number: float) -> tuple[float, float]:
    """Return the largest count beyond L or U that passes the check, and the count to search for."""
    limit, clear = _limits(number, counts.rho, counts)
    if limit / 2 >= clear:
        return limit, max(limit - clear, limit / 2)
    more, richer = number, counts.rho
    while more < _MOST and not _is_enough(more, counts.rho, counts):
        more *= 1.05
    while richer < _MOST and not _is_enough(number, richer, counts):
        richer *= 1.05
    ways = [f"about {_two_digits(more)} numbers"] if more < _MOST else []
    ways += [f"about {_two_digits(richer / counts.rho)} times the budget"] if richer < _MOST else []
    said = f"about {_two_digits(number)}" if number >= FEW else f"fewer than {FEW}"
    if number < FEW:  # texts that are no numbers count as missing
        ways = ["numbers with the stated marks of decimals and thousands", *ways]
    raise NoRangeError(
        f"{said} numbers are too few to find a range; hint: " + ", or ".join([*ways, _BOUNDS])
    )


def _two_digits(number: float) -> str:
    """Return text of a number with two significant digits, without an exponent."""
    return f"{float(f'{number:.2g}'):.15g}"


def _is_enough(number: float, rho: float, counts: Counts) -> bool:
    limit, clear = _limits(number, rho, counts)
    return limit / 2 >= clear


def _limits(number: float, rho: float, counts: Counts) -> tuple[float, float]:
    """Return the largest count beyond L or U that passes the check, and a margin for noise."""
    # L and U are the numbers that the search finds near the first and the last decile.
    # If L is above the first decile of the population, all numbers below this decile are below L,
    # however L was chosen. Their number is binomial, with probability 0.1 or more. So if fewer
    # numbers than its lowest likely value are below L, then L is not above the decile; the same
    # holds for U. The limit is lower by margins for the noise of both counts.

    def noise(step: str, part: float, squared: int) -> float:
        return math.sqrt(squared / (2 * rho * SHARES[step] * part)) * SAFE_SIDE

    least = number - counts.quantile * noise("count", 1.0, 1)
    beyond = _most_unlikely(math.floor(max(least, 0.0)), counts.wrong)
    limit = beyond - counts.quantile * noise("check", 1.0, counts.both)
    return limit, _CLEAR * noise("search", _round_part(0), counts.both)


def _most_unlikely(number: int, chance: float) -> float:
    """Return the largest k with P(at most k of ``number`` are in a decile) <= ``chance``, or −1."""
    k = math.floor(scipy.special.bdtrik(chance, number, _DECILE)) if number else -1
    while k >= 0 and scipy.special.bdtr(k, number, _DECILE) > chance:  # the inverse is rounded
        k -= 1
    return k


def _search(counts: Counts, sought: float) -> tuple[float, float]:
    """Return L and U with about ``sought`` numbers below L, and about ``sought`` above U."""
    lower, upper, apart = [-1.0, 1.0], [-1.0, 1.0], False
    for number in range(_ROUNDS):
        if number % _AHEAD == 0:
            halves = {
                p
                for bracket in (lower, upper)
                for p in _cut_positions(bracket[0], bracket[1], _AHEAD)
            }
            counts.prepare([_at(place) for place in halves])
        a, b, c, d = map(_at, (*lower, *upper))
        if apart and max(b - a, d - c) <= (c - b) / _FINE:
            break
        first, second = sum(lower) / 2, sum(upper) / 2
        rho = counts.part("search", _round_part(number))
        below, above = counts.outside(_at(first), _at(second), rho)
        if not apart and max(below, above) <= sought:
            break
        apart = apart or min(below, above) > sought
        lower[below > sought] = first
        upper[above <= sought] = second
    if not apart:
        raise NoRangeError(
            f"at least about 8 in 10 numbers are one number, or nearly one; hint: {_BOUNDS}"
        )
    return _at(lower[0]), _at(upper[1])


def _cut_positions(low: float, high: float, depth: int) -> Iterator[float]:
    """Yield the middles of an interval, of its halves, and so on, to ``depth`` levels."""
    if depth:
        middle = sum([low, high]) / 2
        yield from (
            middle,
            *_cut_positions(low, middle, depth - 1),
            *_cut_positions(middle, high, depth - 1),
        )


def _at(place: float) -> float:
    """Return the number at a position of the search; positions −1 to 1 are for −∞ to ∞."""
    # zero is at 0, one at ½, infinity at 1, and 2^e at ½ + e/(16 + 2|e|)
    share = 2 * abs(place) - 1  # e / (8 + |e|)
    if abs(share) == 1:
        return math.copysign(math.inf if share > 0 else 0.0, place)
    power = 8 * share / (1 - abs(share))
    return math.copysign(2.0**power if power < 1024 else math.inf, place)


def _order(counts: Counts, number: float, center: float, size: float) -> float:
    """Return the order of the moment to bound: 4, or 2 if many numbers are far from the center."""
    # Markov: of numbers with a fourth moment of at most size⁴, at most a share p is beyond
    # size · p^(-1/4). Larger orders save little noise; rare large numbers violate them unseen.
    rho = counts.part("tails", 1 / _TAIL_QUESTIONS)
    error = counts.quantile * counts.deviation(rho)
    share = max(_RARE, 2 * error / number)
    reach = _WITHIN * size * share**-0.25
    far = counts.beyond(center - reach, center + reach, rho)
    return 4.0 if far < share * number + error else 2.0


def _none_negative(counts: Counts) -> bool:
    """Return whether the noisy count of negative numbers may be noise alone."""
    rho = counts.part("tails", 1 / _TAIL_QUESTIONS)
    return counts.beyond(0.0, math.inf, rho) <= counts.quantile * counts.deviation(rho)
