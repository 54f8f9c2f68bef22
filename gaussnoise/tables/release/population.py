"""Means of a population, from a release of numbers and the ranges to which they were clipped."""

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, NamedTuple, final

import numpy as np
import scipy
from numpy.typing import NDArray

from ...errors import ParameterError
from ...layout import WIDTH
from ...text import guarantee_text, near, one_of, significant
from ..planning.facts import facts_of, mean_of
from ..planning.ranges import FEW, FoundRange, ranges_text
from .noisy import AbstractRelease
from .sums import means, number_rows
from .tidy import LEVEL, level_text

Array = NDArray[np.float64]

# rows of weights of virtual cells: count, sum of t in [−1, 1], sum of squares, count plus sum
_ROWS = np.array([[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [0.0, 1.0, 2.0]])
_FEWEST = 0.5  # smaller counts are taken for zero, however small the noise is
_MOST_FEW = 6  # most groups without a mean in a message
_CLEAR = 10  # least count of a group with a mean, in deviations of its noise


_OF_INTERVALS = ("noise", "sampling", "clipping")
PARTS = ("low", "high", *_OF_INTERVALS)

PARTS_TEXT = (
    "low to high: noise and sampling, added like squares, and then the bound on the bias of "
    "clipping."
)
_HIDDEN = "noise, sampling and clipping of each interval do not fit here: --json, or as_dict()."
_OF_COUNTED = "Means of the counted"


class Grid(NamedTuple):
    """A table of texts for the terminal and for pages.

    Each row has words first, such as names of groups, and then numbers.

    Attributes:
        title: a title that says what the numbers are.
        words: names of the columns of words.
        numbers: names of the columns of numbers.
        rows: the words and numbers of every row.
    """

    title: str
    words: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: Sequence[Sequence[str]] = ()

    @property
    def lines(self) -> list[str]:
        """The column names and rows as lines of text."""
        every = [(*self.words, *self.numbers), *self.rows]
        widths = [max(map(len, column)) for column in zip(*every, strict=True)]
        return [
            "  ".join(
                cell.ljust(width) if k < len(self.words) else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in every
        ]

    @property
    def short(self) -> "Grid":
        """This table without the components of intervals, which are for specialists."""
        names = (*self.words, *self.numbers)
        kept = [k for k, name in enumerate(names) if name not in _OF_INTERVALS]
        numbers = tuple(name for name in self.numbers if name not in _OF_INTERVALS)
        rows = [[row[k] for k in kept] for row in self.rows]
        return self._replace(numbers=numbers, rows=rows)

    @property
    def narrow(self) -> "Grid":
        """This table, or the shorter one of :attr:`short` if the terminal is too narrow."""
        return self if max(map(len, self.lines)) <= WIDTH else self.short

    def of_column(self, column: str) -> "Grid":
        """Return the table with only the rows about one data column, without the column's name."""
        rows = [row[1:] for row in self.rows if row[0] == column]
        return self._replace(words=self.words[1:], rows=rows)


class Population(NamedTuple):
    """The answer to a question about a population: means, or differences between two groups.

    Attributes:
        parts: each mean or difference.
        grid: the same as text.
    """

    parts: "Sequence[ColumnMean | MeanDifference]"
    grid: Grid

    def __str__(self) -> str:
        return "\n".join([self.grid.title, *self.grid.narrow.lines, PARTS_TEXT])


@final
@dataclass(frozen=True)
class ColumnMean:
    """The mean of one column in one group, with the parts of its interval.

    Attributes:
        column: name of the column.
        group: category of each grouping column, by name.
        mean: the estimate; NaN if there is none.
        count: noisy number (or weight) of rows, or of persons, with a number in this column. If no
            range was found, the count is for all groups together.
        low: lower bound of the interval. It is cut to the public bounds of all numbers, and to zero
            if it is assumed that no number is negative.
        high: upper bound of the interval, cut in the same way.
        noise: half-width due to noise.
        sampling: half-width due to sampling; the squares of ``noise`` and ``sampling`` add up.
        bias: bound on the clipping bias, and on all rounding.
        clipped: the range to which numbers were clipped.
        assumed: the assumption under which the bias is bounded; empty if there is none.
        searched: the share of the whole budget that was spent to find the range.
        reason: why there is no mean, and what would help; empty if there is one.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": np.linspace(20, 60, 5000)})
    >>> [mean] = gn.estimators.column_means(table, ["age"], gn.zCDP(1.0)).means
    >>> print(mean.column, mean.low < mean.mean < mean.high)
    age True
    """

    column: str
    group: Mapping[str, object]
    mean: float
    count: float
    low: float
    high: float
    noise: float
    sampling: float
    bias: float
    clipped: tuple[float, float]
    assumed: str
    searched: float
    reason: str = ""


@final
@dataclass(frozen=True)
class MeanDifference:
    """The difference of a column's means in two groups, with the parts of its interval.

    Attributes:
        column: name of the column.
        attribute: the grouping column whose categories are compared.
        first: the category whose mean is the minuend.
        second: the category whose mean is subtracted.
        group: category of each other grouping column, by name.
        difference: the estimate; NaN if either mean is NaN.
        low: lower bound of the interval.
        high: upper bound of the interval.
        noise: half-width due to the noise of both means, whose joint covariance is known.
        sampling: half-width due to sampling in both groups, before Wilson's correction. This
            correction makes one side of the interval longer than the other.
        bias: bound on the clipping bias of both means, and on all rounding.
        reason: why there is no difference, and what would help; empty if there is one.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": np.linspace(20, 60, 5000), "sex": ["F", "M"] * 2500})
    >>> found = gn.estimators.column_means(table, ["age"], gn.zCDP(1.0), by={"sex": ["F", "M"]})
    >>> [gap] = found.difference("sex", "F", "M")
    >>> print(gap.column, gap.low < 0 < gap.high)
    age True
    """

    column: str
    attribute: str
    first: object
    second: object
    group: Mapping[str, object]
    difference: float
    low: float
    high: float
    noise: float
    sampling: float
    bias: float
    reason: str = ""


@final
@dataclass(frozen=True, eq=False)
class ColumnMeans:
    """Means of columns by group, safe to publish.

    Attributes:
        means: one for each column and group.
        mean_of: the units over which means are taken: rows, or persons with one number each.
        level: confidence level of the intervals; with weights, these are for the counted rows.
        release: the release with these columns, for tables, questions, a page and files.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": np.linspace(20, 60, 5000), "sex": ["F", "M"] * 2500})
    >>> found = gn.estimators.column_means(table, ["age"], gn.zCDP(1.0), by={"sex": ["F", "M"]})
    >>> [mean.group for mean in found.means]
    [{'sex': 'F'}, {'sex': 'M'}]
    >>> found.release.means("age", given="sex").labels
    (('F', 'M'),)
    """

    means: tuple[ColumnMean, ...]
    mean_of: str
    level: float
    release: AbstractRelease

    def difference(
        self, attribute: str, first: object, second: object
    ) -> tuple[MeanDifference, ...]:
        """Return the means of one category of a grouping column minus those of another.

        Each interval is for the population, and for one difference alone. The half-widths of noise
        and sampling are added as squares; the bounds on the bias of both means are added to the
        root of this sum. For sampling, the distances from both means to the bounds of their
        intervals are combined (Zou & Donner 2008). Groups are assumed to be sampled independently.
        If a person can have a record in both groups, these distances are added; their sum is valid
        for any dependence of the records.

        Args:
            attribute: the name of a grouping column.
            first: a category of it.
            second: the category whose means are subtracted.

        Returns:
            A :class:`MeanDifference` for each column and each combination of the other groups.

        Raises:
            ParameterError: an unknown grouping column, or not two of its categories.

        >>> import pyarrow as pa
        >>> table = pa.table({"age": np.linspace(20, 60, 5000), "sex": ["F", "M"] * 2500})
        >>> by = {"sex": ["F", "M"]}
        >>> found = gn.estimators.column_means(table, ["age"], gn.zCDP(1.0), by=by)
        >>> [gap] = found.difference("sex", "F", "M")
        >>> print(gap.noise < gap.high - gap.low)
        True
        """
        groups = list(self.means[0].group)
        if attribute not in groups:
            raise ParameterError(
                f"difference: expected a grouping column, {one_of(map(repr, groups))}, got "
                f"{attribute!r:.80}" + near(attribute, groups)
            )
        known = list(dict.fromkeys(mean.group[attribute] for mean in self.means))
        if first not in known or second not in known or first == second:
            raise ParameterError(
                f"difference: expected two categories of {attribute!r}, each "
                f"{one_of(map(repr, known))}, got "
                f"{first!r:.80} and {second!r:.80}"
            )
        plan: Any = self.release.plan
        return tuple(
            gap
            for own in plan.ranges
            if own.column in {mean.column for mean in self.means}
            for gap in _differences(self, own, (attribute, first, second))
        )

    @property
    def of_two(self) -> tuple[MeanDifference, ...]:
        """The first mean minus the second one, for each grouping column with two categories.

        >>> import pyarrow as pa
        >>> table = pa.table({"age": np.linspace(20, 60, 5000)})
        >>> gn.estimators.column_means(table, ["age"], gn.zCDP(1.0)).of_two
        ()
        """
        labels = {
            name: list(dict.fromkeys(mean.group[name] for mean in self.means))
            for name in self.means[0].group
        }
        pairs = [(name, *two) for name, two in labels.items() if len(two) == 2]
        return tuple(gap for pair in pairs for gap in self.difference(*pair))

    @property
    def units(self) -> str:
        """The things that ``count`` counts: persons, rows, or the owner's own unit."""
        return self.mean_of.partition(",")[0]

    @property
    def count_of(self) -> str:
        """The meaning of ``count`` in words: which rows or persons of a group it counts.

        >>> import pyarrow as pa
        >>> table = pa.table({"age": np.linspace(20, 60, 5000)})
        >>> found = gn.estimators.column_means(table, ["age"], gn.zCDP(1.0))
        >>> print(found.count_of.split(";")[0])
        private estimate of the number of rows with a number in the group
        """
        plan: Any = self.release.plan
        if plan.weight is not None:
            return "private estimate of the weight of the rows with a number in the group"
        said = f"private estimate of the number of {self.units} with a number in the group"
        columns = {own.column for own in plan.ranges}
        if all(a.other is None for a in plan.schema.attributes if a.name in columns):
            return said
        return f"{said}; a question for how many (ask) also counts those without one"

    @property
    def grids(self) -> list[Grid]:
        """The means as tables of text; with the differences of means if there are two groups."""
        weight, names = self.release.plan.weight, tuple(self.means[0].group)
        rows = [
            [
                m.column,
                *map(str, m.group.values()),
                *shown_parts(m, m.mean),
                f"{max(m.count, 0):,.0f}",
            ]
            for m in self.means
        ]
        counts = self.units if weight is None else "weight"
        own = Grid(self.title, ("column", *names), ("mean", *PARTS, counts), rows)
        gaps = self.of_two
        title = "Differences of these means"
        return [own, *[differences_grid(title, names, gaps)] * bool(gaps)]

    @property
    def title(self) -> str:
        """The units over which means are taken, and the level of intervals."""
        what = "Population means over" if self.release.plan.weight is None else _OF_COUNTED
        return f"{what} {self.mean_of}, with {level_text(self.level)} intervals"

    @property
    def notes(self) -> list[str]:
        """Sentences for readers about the intervals, and about groups without a mean."""
        plan: Any = self.release.plan
        return [
            PARTS_TEXT
            if plan.weight is None
            else "low to high: for the weighted mean of these rows, as they are clipped; exact "
            "for noise. They are not about a population.",
            *[f"{self.units}: {self.count_of}."] * (plan.weight is None),
            *self.rules,
        ]

    @property
    def rules(self) -> list[str]:
        """Sentences on the number of groups that a person is in, and on groups without a mean."""
        plan: Any = self.release.plan
        few: dict[str, list[ColumnMean]] = {}
        for mean in self.means:
            if mean.reason and math.isfinite(mean.clipped[0]):
                few.setdefault(mean.column, []).append(mean)
        return [
            *[
                f"A person in several groups counts in at most {plan.rows_per_person} of them, "
                "drawn at random (rows per person)."
            ]
            * (bool(plan.per_person) and bool(self.means[0].group)),
            *map(_few_text, few.values()),
        ]

    def __str__(self) -> str:
        plan: Any = self.release.plan
        own, *gaps = self.grids
        guarantee = guarantee_text(facts_of(plan).privacy, self.release.private)
        return "\n".join(
            [
                f"{own.title}, {guarantee}",
                *own.narrow.lines,
                *(line for grid in gaps for line in grid.narrow.lines),
                *self.notes,
                *[_HIDDEN] * (own.narrow.numbers != own.numbers),
                *ranges_text(plan.ranges, plan.rho),
            ]
        )

    def as_dict(self) -> dict[str, object]:
        """Return the means and differences as plain data: nested dictionaries and lists."""
        plan: Any = self.release.plan
        return {
            "mean_of": self.mean_of,
            "count_of": self.count_of,
            "level": self.level,
            "rho": plan.rho,
            "means": [asdict(mean) for mean in self.means],
            "differences": [asdict(gap) for gap in self.of_two],
        }


def shown_parts(found: Any, estimate: float) -> list[str]:
    """Return the texts of an estimate, of its interval, and of the components of the interval."""
    if found.reason:
        return ["none", *["—"] * len(PARTS)]
    half = (found.high - found.low) / 2
    places = max(2 - math.floor(math.log10(half)), 0) if 0 < half < math.inf else 0
    ends = (f"{x:,.{places}f}" for x in (estimate, found.low, found.high))
    return [*ends, *(f"±{significant(x, 3)}" for x in (found.noise, found.sampling, found.bias))]


def differences_grid(title: str, names: tuple[str, ...], gaps: Sequence[MeanDifference]) -> Grid:
    """Return a table of texts with differences between groups and their intervals."""
    rows = [
        [g.column, *(_compared(g, name) for name in names), *shown_parts(g, g.difference)]
        for g in gaps
    ]
    return Grid(title, ("column", *names), ("difference", *PARTS), rows)


def _compared(gap: MeanDifference, name: str) -> str:
    """Return the category of a grouping column as text, or both categories if it is compared."""
    both = f"{gap.first} less {gap.second}"
    return both if name == gap.attribute else str(gap.group[name])


def _few_text(means: Sequence[ColumnMean]) -> str:
    """Return a sentence about the groups in which a column has no mean, although it has a range."""
    first = means[0]
    if len(means) == 1:
        group = "".join(f", {name}={category}" for name, category in first.group.items())
        return f"{first.column}{group}: no mean, since {first.reason}."
    names = [" · ".join(map(str, mean.group.values())) for mean in means[:_MOST_FEW]]
    names += [f"{len(means) - _MOST_FEW} more"] * (len(means) > _MOST_FEW)
    return (
        f"{first.column}: no mean in {len(means)} groups, each too small beside the noise "
        f"({'; '.join(names)}); hint: a larger budget, or larger groups."
    )


def population_of(
    release: AbstractRelease,
    level: float = LEVEL,
    column: str | None = None,
    by: Sequence[str] | None = None,
) -> ColumnMeans:
    """Return the means of a population, like :func:`gaussnoise.estimators.population_means`.

    Args:
        release: the release.
        level: the level of intervals.
        column: the column whose means are wanted; None for all.
        by: the grouping columns; None for all.
    """
    plan: Any = release.plan
    if not plan.ranges:
        raise ParameterError(
            "population_means: expected a release of column_means, which has found the ranges of "
            "numbers; hint: release.means(column) for the rows that a plan counted"
        )
    ranges = [own for own in plan.ranges if column in (None, own.column)]
    found = [mean for own in ranges for mean in means_in(release, own, level, by)]
    over = _units_text(plan, [own.column for own in ranges])
    over += "" if plan.weight is None else f", weighted by {plan.weight.column!r}"
    return ColumnMeans(tuple(found), over, level, release)


def _units_text(plan: Any, columns: Sequence[str]) -> str:
    """Return the units over which means are taken, in words: rows, or persons."""
    known: dict[str, list[str]] = {}
    for column in [c for c in columns if c in plan.per_person] or columns[:1]:
        known.setdefault(mean_of(plan, column), []).append(column)
    if len(known) == 1:
        return next(iter(known))
    return "; ".join(f"{words} ({', '.join(own)})" for words, own in known.items())


def asked_population(
    release: AbstractRelease,
    column: str,
    first: Mapping[str, object],
    others: Sequence[Mapping[str, object]],
    level: float,
) -> Population | None:
    """Return the means of a column by group, or the difference between two groups.

    None is returned if the release has no answer.

    Args:
        release: a release of :func:`column_means`, without weights.
        column: a column for which a range was found, or was searched for.
        first: {grouping column: label, or None for each of its labels}.
        others: empty, or the group whose mean is subtracted.
        level: the level of intervals.
    """
    plan: Any = release.plan
    if plan.per_person and set(first) != set(groups_of(release)):
        return None  # a person may have a record in several groups
    found = population_of(release, level, column, tuple(first))
    gap = [name for other in others for name in other if first.get(name) != other[name]]
    parts: list[ColumnMean | MeanDifference] = list(found.means)
    if others:
        [other] = others
        pair = [(name, first.get(name), other[name]) for name in gap]
        known = [{mean.group[name] for mean in found.means} for name in gap if name in first]
        if set(other) != set(first) or len(pair) != 1 or not {*pair[0][1:]} <= known[0]:
            return None
        parts = list(found.difference(*pair[0]))
    parts = [
        part for part in parts if all(first[name] in (None, x) for name, x in part.group.items())
    ]
    if not parts:
        return None  # catch-alls are no groups
    names = tuple(first)
    if others:
        title = found.title[0].lower() + found.title[1:]
        gaps = [part for part in parts if isinstance(part, MeanDifference)]
        return Population(gaps, differences_grid(f"Differences of {title}", names, gaps))
    [grid, *_] = replace(found, means=tuple(parts)).grids
    return Population(parts, grid)


def level_expected(wrong: float, level: object) -> str:
    """Return in words the levels that are possible if ranges are wrong with this probability."""
    return (
        f"expected 0 < level < {1 - wrong:.6g}, since ranges were checked for a chance of "
        f"{wrong:.3g} to err, got {level!r:.80}"
    )


def left_over(own: FoundRange, level: float) -> float:
    """Return the error probability that remains for noise and sampling.

    It is one minus the level of the interval, minus the probability that the range is wrong.
    """
    left = 1 - level - own.wrong if isinstance(level, int | float) else math.nan
    if not 0 < left < 1:
        raise ParameterError(f"population_means: {level_expected(own.wrong, level)}")
    return left


def _differences(
    found: ColumnMeans, own: FoundRange, pair: tuple[str, Any, Any]
) -> Iterator[MeanDifference]:
    """Yield each difference between a column's means in groups that differ in one category."""
    plan, left, (attribute, first, second) = found.release.plan, left_over(own, found.level), pair
    own_means = [mean for mean in found.means if mean.column == own.column]
    firsts, seconds = (
        [mean for mean in own_means if mean.group[attribute] == label] for label in (first, second)
    )
    table: Any = None
    if own.low is not None:
        table = means(found.release, own.column, tuple(own_means[0].group)).difference(*pair)
    z, (least, most) = float(-scipy.special.ndtri(left / 2)), own.ends
    reach = most - least  # the largest possible difference of two means
    # a person may have records in both groups, whose dependence is unknown
    is_in_both = bool(plan.per_person) and plan.rows_per_person > 1
    add: Callable[[float, float], float] = operator.add if is_in_both else math.hypot
    for one, two in zip(firsts, seconds, strict=True):
        group = {name: label for name, label in one.group.items() if name != attribute}
        names = own.column, attribute, first, second, group
        if one.reason or two.reason:
            reason, inf = one.reason or two.reason, math.inf
            yield MeanDifference(*names, math.nan, -inf, inf, inf, inf, inf, reason)
            continue
        place = tuple(map(tuple.index, table.labels, group.values()))
        gap = one.mean - two.mean
        if plan.weight is not None:
            low, high = (float(end[place]) for end in table.confidence_interval(1 - left))
            yield MeanDifference(*names, gap, low, high, max(high - gap, gap - low), 0.0, 0.0)
            continue
        noise = z * float(table.standard_deviation[place])
        sampling, bias = add(one.sampling, two.sampling), one.bias + two.bias
        (first_down, first_up), (second_down, second_up) = reaches(one, z), reaches(two, z)
        down = math.hypot(noise, add(first_down, second_up)) + bias
        up = math.hypot(noise, add(first_up, second_down)) + bias
        low, high = max(gap - down, -reach), min(gap + up, reach)
        yield MeanDifference(*names, gap, low, high, noise, sampling, bias)


def reaches(mean: ColumnMean, z: float) -> tuple[float, float]:
    """Return the distances from a mean down and up to the bounds of its interval.

    This interval is for the error of sampling alone.
    """
    low, high = mean.clipped
    shift = z**2 * (low / 2 + high / 2 - mean.mean) / mean.count  # Wilson's correction
    return mean.sampling - shift, mean.sampling + shift


def groups_of(release: AbstractRelease) -> tuple[str, ...]:
    """Return the names of the grouping columns of a release of :func:`column_means`."""
    plan: Any = release.plan
    ranged = {own.column for own in plan.ranges}
    return tuple(name for name in plan.schema.names if name not in ranged)


def means_in(
    release: AbstractRelease, own: FoundRange, level: float, by: Sequence[str] | None = None
) -> Iterator[ColumnMean]:
    """Yield the mean of a column in every group; ``by`` are grouping columns, or None for all."""
    plan: Any = release.plan
    by = groups_of(release) if by is None else tuple(by)
    attributes = {a.name: a for a in plan.schema.attributes}
    groups = [attributes[name] for name in by]
    left = left_over(own, level)
    z = float(-scipy.special.ndtri(left / 2))
    share = own.rho / plan.rho
    if own.low is None:
        for _, group in _named(groups):
            yield _unknown(own.column, group, own.number, own.reason)
        return
    if plan.weight is not None:
        yield from _weighted(release, own, groups, 1 - left)
        return
    sums, variances = number_rows(release, own.column, by, _ROWS)
    rows = plan.rows_per_person if plan.person is not None and not plan.per_person else 1
    for place, group in _named(groups):
        here = (slice(None), *place)
        yield _mean(own, group, sums[here], variances[here], z, share, plan.unit, rows)


def _weighted(
    release: AbstractRelease, own: FoundRange, groups: Any, level: float
) -> Iterator[ColumnMean]:
    """Yield the weighted mean of a column in every group, with an interval for noise only."""
    table = means(release, own.column, tuple(a.name for a in groups))
    lows, highs = table.confidence_interval(level)
    ends = (own.low or 0.0, own.high or 0.0)
    for place, group in _named(groups):
        count, mean = float(table.counts[place]), float(table.estimate[place])
        if count <= _CLEAR * math.sqrt(table.count_variance[place]):
            reason = "what the rows weigh is too little beside the noise; hint: a larger budget"
            yield _unknown(own.column, group, count, reason, ends)
            continue
        low, high = float(lows[place]), float(highs[place])
        noise = max(high - mean, mean - low)
        yield ColumnMean(
            own.column, group, mean, count, low, high, noise, 0.0, 0.0, ends, own.assumed, 0.0
        )


def _named(groups: Any) -> Iterator[tuple[tuple[int, ...], Mapping[str, object]]]:
    """Yield (index of cells, {grouping column: category}) for every group without a catch-all."""
    labels = [list(enumerate(a.labels))[: a.size - (a.other is not None)] for a in groups]
    for chosen in product(*labels):
        names = {a.name: label for a, (_, label) in zip(groups, chosen, strict=True)}
        yield tuple(place for place, _ in chosen), names


def _mean(
    own: FoundRange,
    group: Mapping[str, object],
    sums: Array,
    variances: Array,
    z: float,
    searched: float,
    unit: int,
    rows: int,
) -> ColumnMean:
    """Return the mean of a column in one group: the ratio of a noisy sum and a noisy count."""
    count, total, squares, _ = sums.tolist()
    own_variance, total_variance, squares_variance, both = np.maximum(variances, 0.0).tolist()
    covariance = (both - own_variance - total_variance) / 2
    enough, low, high = _CLEAR * math.sqrt(own_variance), own.low or 0.0, own.high or 0.0
    # counts must be far above noise
    if count < max(enough, _FEWEST):
        said = f"about {count:.0f} numbers, fewer than {enough:.0f}," if count >= FEW else ""
        return _unknown(
            own.column,
            group,
            count,
            f"{said or f'fewer than {FEW} numbers'} are too few beside the noise; hint: a larger "
            "budget, or larger groups",
            (low, high),
        )
    center, radius = low / 2 + high / 2, high / 2 - low / 2
    ratio = min(max(total / count, -1.0), 1.0)
    mean = center + radius * ratio
    spread = (squares + 3 * math.sqrt(squares_variance)) / count - ratio * ratio
    deviation = min(radius * math.sqrt(max(spread, 0.0)), own.size)  # an upper estimate
    # variance of the ratio to first order
    squared = total_variance - 2 * ratio * covariance + ratio**2 * own_variance
    noise = z * radius * math.sqrt(max(squared, 0.0)) / count
    # the rows of one person may depend on each other: up to rows times the variance
    sampling = z * math.hypot(deviation * math.sqrt(rows / count), z * radius * rows / count)
    # numbers, and means of a person, are rounded to steps; all else has floating-point errors
    bias = own.bias + 2 * radius / unit + 16 * max(math.ulp(center), math.ulp(radius))
    middle, half = mean + z**2 * (center - mean) / count, math.hypot(noise, sampling) + bias
    least, most = own.ends
    return ColumnMean(
        own.column,
        group,
        mean,
        count,
        max(middle - half, least),
        min(middle + half, most),
        noise,
        sampling,
        bias,
        (low, high),
        own.assumed,
        searched,
    )


def _unknown(
    column: str,
    group: Mapping[str, object],
    count: float,
    reason: str,
    clipped: tuple[float, float] = (-math.inf, math.inf),
) -> ColumnMean:
    parts = dict.fromkeys(("noise", "sampling", "bias"), math.inf)
    return ColumnMean(
        column,
        group,
        math.nan,
        count,
        -math.inf,
        math.inf,
        **parts,
        clipped=clipped,
        assumed="",
        searched=0.0,
        reason=reason,
    )
