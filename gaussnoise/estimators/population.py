"""Means of a population, from a release of clipped numbers and the ranges that were found."""

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, final

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import ParameterError
from ..tables.planning.facts import facts_of, mean_of
from ..tables.planning.ranges import FoundRange, ranges_text
from ..tables.release.noisy import AbstractRelease
from ..tables.release.sums import means, number_rows
from ..text import guarantee_text, near, one_of, significant
from .knowledge import number
from .ranges import FEW

Array = NDArray[np.float64]

# of the virtual cells: the count, the sum in −1 … 1, the sum of squares, and count and sum together
_ROWS = np.array([[1.0, 1.0, 1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 1.0], [0.0, 1.0, 2.0]])
_FEWEST = 0.5  # a count below it is none, however small the noise
_CLEAR = 10  # deviations of noise below a group's count, for its mean to be shown


@final
@dataclass(frozen=True)
class ColumnMean:
    """The mean of one column in one group, with the parts of its interval.

    Attributes:
        column: name of the column.
        group: category of each grouping column, by name.
        mean: the estimate; NaN where there is none.
        count: noisy number of rows, or of persons, with a number in this column, or what they
            weigh; of all groups together, if no range was found.
        low: lower end of the interval, cut to the public knowledge about all numbers: public ends,
            and zero where it is assumed that no number is negative.
        high: upper end, likewise.
        noise: half-width due to noise.
        sampling: half-width due to sampling; squares of both add up.
        bias: bound on the bias of clipping, and on all rounding.
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
    """The mean of one column in one group less that in another, with the parts of its interval.

    Attributes:
        column: name of the column.
        attribute: the grouping column whose categories are compared.
        first: the category whose mean is the minuend.
        second: the category whose mean is subtracted.
        group: category of each other grouping column, by name.
        difference: the estimate; NaN where either mean is.
        low: lower end of the interval.
        high: upper end.
        noise: half-width due to the noise of both means, whose joint covariance is known.
        sampling: half-width due to sampling in both groups; an end is nearer where numbers are
            rare.
        bias: bound on the bias of clipping of both means, and on all rounding.
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
    """Means of columns by group. Everything in it is safe to publish.

    Attributes:
        means: one for each column and group.
        mean_of: the units whose mean it is, in words: rows, or persons with one number each.
        level: confidence level of the intervals; with weights, for the counted rows themselves.
        release: the release of a plan with these columns: its tables, questions, page and files.

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
        """Return the means of one category of a grouping column less those of another.

        Like the intervals of means, those of differences are for the population, each alone: noise
        and sampling are added like squares, and then the bounds on the bias of both means. For
        sampling, the distances to the ends of both means' intervals are put together (Zou & Donner
        2008). Groups are taken to be sampled independently; where a person can be in both with a
        record each, these distances are added as they are, however records depend on each other.

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
            for gap in _differences(self, own, (attribute, first, second))
        )

    @property
    def of_two(self) -> tuple[MeanDifference, ...]:
        """The differences of each grouping column with two categories, the first less the second.

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
    def count_of(self) -> str:
        """The meaning of ``count``, in words: an estimate too, and not of all that are in a group.

        >>> import pyarrow as pa
        >>> table = pa.table({"age": np.linspace(20, 60, 5000)})
        >>> found = gn.estimators.column_means(table, ["age"], gn.zCDP(1.0))
        >>> print(found.count_of.split(";")[0])
        private estimate of the number of rows with a number in the group
        """
        plan: Any = self.release.plan
        if plan.weight is not None:
            return "private estimate of the weight of the rows with a number in the group"
        units = "persons" if self.mean_of.startswith("persons") else "rows"
        said = f"private estimate of the number of {units} with a number in the group"
        columns = {own.column for own in plan.ranges}
        if all(a.other is None for a in plan.schema.attributes if a.name in columns):
            return said
        return f"{said}; a question for how many (ask) also counts those without one"

    def __str__(self) -> str:
        plan: Any = self.release.plan
        names, weight = list(self.means[0].group), plan.weight
        units = "persons" if self.mean_of.startswith("persons") else "rows"
        head = ["column", *names, "mean", *_PARTS, units if weight is None else "weight"]
        rows = [
            [m.column, *map(str, m.group.values()), *_shown(m, m.mean), f"{max(m.count, 0):,.0f}"]
            for m in self.means
        ]
        gaps = self.of_two
        compared = [
            [g.column, *(_compared(g, name) for name in names), *_shown(g, g.difference)]
            for g in gaps
        ]
        few = [m for m in self.means if m.reason and math.isfinite(m.clipped[0])]
        return "\n".join(
            [
                f"{'Population means over' if weight is None else 'Means of the counted'} "
                f"{self.mean_of}, with {self.level:.0%} intervals, "
                f"{guarantee_text(facts_of(plan).privacy, self.release.private)}",
                *_in_columns([head, *rows], len(names) + 1),
                *(
                    _in_columns(
                        [["column", *names, "difference", *_PARTS], *compared], len(names) + 1
                    )
                )
                * bool(gaps),
                "low to high: noise and sampling, added like squares, and then the bound on the "
                "bias of clipping."
                if weight is None
                else "low to high: for the weighted mean of these rows, as they are clipped; exact "
                "for noise. They are not about a population.",
                *[f"{head[-1]}: {self.count_of}."] * (weight is None),
                *[
                    f"A person in several groups counts in at most {plan.rows_per_person} of them, "
                    "drawn at random (rows per person)."
                ]
                * (bool(plan.per_person) and bool(names)),
                *map(_few_text, few),
                *ranges_text(plan.ranges, plan.rho),
            ]
        )

    def as_dict(self) -> dict[str, object]:
        """Return the means as plain data."""
        plan: Any = self.release.plan
        return {
            "mean_of": self.mean_of,
            "count_of": self.count_of,
            "level": self.level,
            "rho": plan.rho,
            "means": [asdict(mean) for mean in self.means],
            "differences": [asdict(gap) for gap in self.of_two],
        }


_PARTS = ("low", "high", "noise", "sampling", "clipping")


def _shown(found: ColumnMean | MeanDifference, estimate: float) -> list[str]:
    """Return an estimate, its interval and the parts of it as text."""
    if found.reason:
        return ["none", *[""] * len(_PARTS)]
    half = (found.high - found.low) / 2
    places = max(2 - math.floor(math.log10(half)), 0) if 0 < half < math.inf else 0
    ends = (f"{x:,.{places}f}" for x in (estimate, found.low, found.high))
    return [*ends, *(f"±{significant(x, 3)}" for x in (found.noise, found.sampling, found.bias))]


def _compared(gap: MeanDifference, name: str) -> str:
    """Return the category of a grouping column, or those that are compared."""
    both = f"{gap.first} less {gap.second}"
    return both if name == gap.attribute else str(gap.group[name])


def _in_columns(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Return rows as lines, of which the first ``left`` columns are words."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if k < left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _few_text(mean: ColumnMean) -> str:
    """Return a sentence about a group without a mean in a column that has a range."""
    group = "".join(f", {name}={category}" for name, category in mean.group.items())
    return f"{mean.column}{group}: no mean, since {mean.reason}."


def population_means(release: AbstractRelease, level: float = 0.95) -> ColumnMeans:
    """Return the means of a population, from a release of :func:`column_means`.

    Args:
        release: the release, also one that was loaded.
        level: confidence level of the intervals, for each mean alone.

    Raises:
        ParameterError: the release has no found ranges; or the level is so high that ranges may err
            more often.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": np.linspace(20, 60, 5000)})
    >>> found = gn.estimators.column_means(table, ["age"], gn.zCDP(1.0))
    >>> again = gn.estimators.population_means(found.release)
    >>> again.means[0].mean == found.means[0].mean
    True
    """
    plan: Any = release.plan
    if not plan.ranges:
        raise ParameterError(
            "population_means: expected a release of column_means, which has found the ranges of "
            "numbers; hint: release.means(column) for the rows that a plan counted"
        )
    level = number("population_means", "level", level)
    found = [mean for own in plan.ranges for mean in _means(release, own, level)]
    over = _over(plan)
    over += "" if plan.weight is None else f", weighted by {plan.weight.column!r}"
    return ColumnMeans(tuple(found), over, level, release)


def _over(plan: Any) -> str:
    """Return in words whose means they are, for each column where persons count differently."""
    columns = [own.column for own in plan.ranges]
    known: dict[str, list[str]] = {}
    for column in [c for c in columns if c in plan.per_person] or columns[:1]:
        known.setdefault(mean_of(plan, column), []).append(column)
    if len(known) == 1:
        return next(iter(known))
    return "; ".join(f"{words} ({', '.join(own)})" for words, own in known.items())


def _left(own: FoundRange, level: float) -> float:
    """Return the chance to miss that checks of a range leave to noise and sampling."""
    left = 1 - level - own.wrong
    if not 0 < left < 1:
        raise ParameterError(
            f"population_means: expected 0 < level < {1 - own.wrong:.6g}, since ranges were "
            f"checked for a chance of {own.wrong:.3g} to err, got {level!r}"
        )
    return left


def _differences(
    found: ColumnMeans, own: FoundRange, pair: tuple[str, Any, Any]
) -> Iterator[MeanDifference]:
    """Yield the means of a column in groups of one category less those of another."""
    plan, left, (attribute, first, second) = found.release.plan, _left(own, found.level), pair
    own_means = [mean for mean in found.means if mean.column == own.column]
    firsts, seconds = (
        [mean for mean in own_means if mean.group[attribute] == label] for label in (first, second)
    )
    table: Any = None
    if own.low is not None:
        table = means(found.release, own.column, tuple(own_means[0].group)).difference(*pair)
    z, (least, most) = float(-scipy.special.ndtri(left / 2)), own.ends
    reach = most - least  # no two means are further apart
    # one person may have a record in both groups, and these depend on each other in any way
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
        (first_down, first_up), (second_down, second_up) = _reaches(one, z), _reaches(two, z)
        down = math.hypot(noise, add(first_down, second_up)) + bias
        up = math.hypot(noise, add(first_up, second_down)) + bias
        low, high = max(gap - down, -reach), min(gap + up, reach)
        yield MeanDifference(*names, gap, low, high, noise, sampling, bias)


def _reaches(mean: ColumnMean, z: float) -> tuple[float, float]:
    """Return the distances of a mean to both ends of its interval for sampling alone."""
    low, high = mean.clipped
    shift = z**2 * (low / 2 + high / 2 - mean.mean) / mean.count  # Wilson's correction
    return mean.sampling - shift, mean.sampling + shift


def _means(release: AbstractRelease, own: FoundRange, level: float) -> Iterator[ColumnMean]:
    """Yield the mean of a column in every group."""
    plan: Any = release.plan
    ranged = {other.column for other in plan.ranges}
    groups = [a for a in plan.schema.attributes if a.name not in ranged]
    by = tuple(a.name for a in groups)
    left = _left(own, level)
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
    """Yield the weighted means of the counted rows, with intervals for noise alone."""
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
    """Yield the place and the name of every group, without those of catch-alls."""
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
    """Return a ratio of noisy sums, with first-order deviations, for counts far above noise.

    The rows of one person may depend on each other, so that sampling has up to ``rows`` times the
    variance.
    """
    count, total, squares, _ = sums.tolist()
    own_variance, total_variance, squares_variance, both = np.maximum(variances, 0.0).tolist()
    covariance = (both - own_variance - total_variance) / 2
    enough, low, high = _CLEAR * math.sqrt(own_variance), own.low or 0.0, own.high or 0.0
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
    squared = total_variance - 2 * ratio * covariance + ratio**2 * own_variance
    noise = z * radius * math.sqrt(max(squared, 0.0)) / count
    sampling = z * math.hypot(deviation * math.sqrt(rows / count), z * radius * rows / count)
    # numbers and a person's mean are each rounded to a step, and all else like floats in the range
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
