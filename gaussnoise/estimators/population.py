"""Means of a population, from a release of clipped numbers and the ranges that were found."""

import math
from collections.abc import Iterator, Mapping
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
from ..text import guarantee_text
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
        low: lower end of the interval.
        high: upper end.
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

    def __str__(self) -> str:
        plan: Any = self.release.plan
        names, weight = list(self.means[0].group) if self.means else [], plan.weight
        rows = [["column", *names, "mean", "low", "high", "noise", "sampling", "clipping"]]
        units = "persons" if self.mean_of.startswith("persons") else "rows"
        rows[0].append(units if weight is None else "weight")
        for mean in self.means:
            numbers = (mean.noise, mean.sampling, mean.bias)
            half = (mean.high - mean.low) / 2
            places = max(2 - math.floor(math.log10(half)), 0) if 0 < half < math.inf else 0
            rows.append(
                [
                    mean.column,
                    *(str(mean.group[name]) for name in names),
                    *(f"{x:.{places}f}" for x in (mean.mean, mean.low, mean.high)),
                    *(f"±{x:.3g}" for x in numbers),
                    f"{mean.count:.0f}",
                ]
            )
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        left = 1 + len(names)
        lines = [
            "  ".join(
                cell.ljust(width) if k < left else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        few = [m for m in self.means if m.reason and math.isfinite(m.clipped[0])]
        return "\n".join(
            [
                f"{'Population means over' if weight is None else 'Means of the counted'} "
                f"{self.mean_of}, with {self.level:.0%} intervals, "
                f"{guarantee_text(facts_of(plan).privacy, self.release.private)}",
                *lines,
                "low to high: noise and sampling, added like squares, and then the bound on the "
                "bias of clipping."
                if weight is None
                else "low to high: for the weighted mean of these rows, as they are clipped; exact "
                "for noise. They are not about a population.",
                *map(_few_text, few),
                *ranges_text(plan.ranges, plan.rho),
            ]
        )

    def as_dict(self) -> dict[str, object]:
        """Return the means as plain data."""
        plan: Any = self.release.plan
        return {
            "mean_of": self.mean_of,
            "level": self.level,
            "rho": plan.rho,
            "means": [asdict(mean) for mean in self.means],
        }


def _few_text(mean: ColumnMean) -> str:
    """Return a sentence about a group without a mean in a column that has a range."""
    group = "".join(f", {name}={category}" for name, category in mean.group.items())
    return f"nan for {mean.column}{group}: {mean.reason}."


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
    over = mean_of(plan, plan.ranges[0].column)
    over += "" if plan.weight is None else f", weighted by {plan.weight.column!r}"
    return ColumnMeans(tuple(found), over, level, release)


def _means(release: AbstractRelease, own: FoundRange, level: float) -> Iterator[ColumnMean]:
    """Yield the mean of a column in every group."""
    plan: Any = release.plan
    ranged = {other.column for other in plan.ranges}
    groups = [a for a in plan.schema.attributes if a.name not in ranged]
    by = tuple(a.name for a in groups)
    left = 1 - level - own.wrong
    if not 0 < left < 1:
        raise ParameterError(
            f"population_means: expected 0 < level < {1 - own.wrong:.6g}, since ranges were "
            f"checked for a chance of {own.wrong:.3g} to err, got {level!r}"
        )
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
    return ColumnMean(
        own.column,
        group,
        mean,
        count,
        middle - half,
        middle + half,
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
