"""Changes of population means from one release to another, for samples drawn independently."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import scipy

from ...errors import ParameterError
from ..planning.facts import mean_of
from ..planning.ranges import FoundRange
from .noisy import AbstractRelease
from .population import (
    PARTS,
    ColumnMean,
    Grid,
    groups_of,
    level_expected,
    means_in,
    reaches,
    shown_parts,
)
from .tidy import LEVEL, level_text


@final
@dataclass(frozen=True)
class MeanChange:
    """The change of the population mean of one column in one group, with the parts of its interval.

    Attributes:
        column: name of the column.
        group: category of each grouping column, by name.
        before: the mean in the earlier release; NaN if there is none.
        after: the mean in the later release; NaN if there is none.
        change: the later mean minus the earlier one; NaN if either mean is NaN.
        low: lower bound of the interval.
        high: upper bound of the interval.
        noise: half-width due to the noise of both means; the two noises are independent.
        sampling: half-width due to sampling at both times, before Wilson's correction. This
            correction makes one side of the interval longer than the other.
        bias: bound on the clipping bias of both means, and on all rounding.
        reason: why there is no change, and what would help; empty if there is one.

    >>> import pyarrow as pa
    >>> tables = [pa.table({"age": np.linspace(20, 60, 5000) + k}) for k in (0, 10)]
    >>> both = [gn.estimators.column_means(t, ["age"], gn.zCDP(1.0)).release for t in tables]
    >>> [one] = gn.estimators.population_means(gn.difference(*both)).changes
    >>> print(one.column, one.low < one.change < one.high)
    age True
    """

    column: str
    group: Mapping[str, object]
    before: float
    after: float
    change: float
    low: float
    high: float
    noise: float
    sampling: float
    bias: float
    reason: str = ""


@final
@dataclass(frozen=True, eq=False)
class MeanChanges:
    """Changes of population means by group, safe to publish if both releases are.

    Attributes:
        changes: one for each column and group that both releases have.
        mean_of: the units over which means are taken: rows, or persons with one number each.
        level: confidence level of each interval alone.

    >>> import pyarrow as pa
    >>> privacy, by = gn.zCDP(1.0), {"sex": ["F", "M"]}
    >>> ages = np.linspace(20, 60, 5000)
    >>> tables = [pa.table({"age": ages + k, "sex": ["F", "M"] * 2500}) for k in (0, 10)]
    >>> both = [gn.estimators.column_means(t, ["age"], privacy, by=by).release for t in tables]
    >>> found = gn.estimators.population_means(gn.difference(*both))
    >>> [one.low < 10 < one.high for one in found.changes]
    [True, True]
    """

    changes: tuple[MeanChange, ...]
    mean_of: str
    level: float

    @property
    def grids(self) -> list[Grid]:
        """A list that holds one text table of all changes."""
        title = f"Population means over {self.mean_of}, and their changes with "
        rows = [
            [
                one.column,
                *map(str, one.group.values()),
                *(shown_parts(one, x)[0] for x in (one.before, one.after)),
                *shown_parts(one, one.change),
            ]
            for one in self.changes
        ]
        words, numbers = ("column", *self.changes[0].group), ("before", "after", "change", *PARTS)
        return [Grid(f"{title}{level_text(self.level)} intervals", words, numbers, rows)]

    @property
    def notes(self) -> list[str]:
        """Sentences about the intervals, and about groups without a change."""
        few = [
            f"{', '.join([one.column, *(f'{k}={x}' for k, x in one.group.items())])}: no change, "
            f"since {one.reason}."
            for one in self.changes
            if one.reason
        ]
        return [*SAMPLES, *few]

    def __str__(self) -> str:
        [grid] = self.grids
        return "\n".join([grid.title, *grid.narrow.lines, *self.notes])


SAMPLES = (
    "low to high: noise and sampling, added like squares, and then the bounds on the bias of "
    "clipping, under the assumptions of both releases.",
    "They are for two samples that were drawn independently of each other, not for one sample that "
    "was asked twice.",
)


def no_changes(
    before: AbstractRelease, after: AbstractRelease, unlike: Collection[str], level: float = LEVEL
) -> str | None:
    """Return why changes of population means cannot be computed, as text; None if they can.

    ``unlike`` are the attributes that are defined differently in the two releases.
    """
    plans: list[Any] = [before.plan, after.plan]
    if not all(plan.ranges and plan.weight is None for plan in plans):
        return (
            "expected two releases of column_means (gaussnoise mean) without weights, which say "
            "how numbers vary; hint: changes.means(column) for the rows that were counted"
        )
    ranges = [{own.column: own for own in plan.ranges} for plan in plans]
    shared = [column for column in ranges[0] if column in ranges[1]]
    if not shared:
        return "expected a column whose mean both releases have, got none"
    groups = [set(groups_of(release)) for release in (before, after)]
    if groups[0] != groups[1] or groups[0] & set(unlike):
        return "expected means by the same groups in both releases, got other ones"
    wrong = max(ranges[0][column].wrong + ranges[1][column].wrong for column in shared)
    if not (isinstance(level, int | float) and 0 < level < 1 - wrong):
        return level_expected(wrong, level)
    return None


def changes_of_means(
    before: AbstractRelease, after: AbstractRelease, unlike: Collection[str], level: float = LEVEL
) -> MeanChanges:
    """Return changes of population means between two releases that count rows in the same way.

    The ranges to which numbers are clipped may differ, since the means are estimates for unclipped
    numbers.

    Args:
        before: the earlier release of :func:`column_means`.
        after: the later one.
        unlike: the attributes that are defined differently in the two releases.
        level: confidence level of the intervals.

    Raises:
        ParameterError: the releases do not have means of the same columns and groups.
    """
    reason = no_changes(before, after, unlike, level)
    if reason is not None:
        raise ParameterError(f"population_means: {reason}")
    plans: list[Any] = [before.plan, after.plan]
    later = {own.column: own for own in plans[1].ranges}
    found = [
        change
        for own in plans[0].ranges
        if own.column in later
        for change in _changes((before, own), (after, later[own.column]), level)
    ]
    return MeanChanges(tuple(found), mean_of(plans[1], found[0].column), level)


def _changes(
    before: tuple[AbstractRelease, FoundRange],
    after: tuple[AbstractRelease, FoundRange],
    level: float,
) -> Iterator[MeanChange]:
    """Yield each group's change; its interval accounts for the probability of a wrong range."""
    (first, own), (second, other) = before, after
    z = float(-scipy.special.ndtri((1 - level - own.wrong - other.wrong) / 2))
    news = {
        frozenset(mean.group.items()): mean for mean in means_in(second, other, level + own.wrong)
    }
    (least, most), (lowest, highest) = own.ends, other.ends
    for old in means_in(first, own, level + other.wrong):
        new = news[frozenset(old.group.items())]
        yield _change(old, new, z, (lowest - most, highest - least))


def _change(old: ColumnMean, new: ColumnMean, z: float, limits: tuple[float, float]) -> MeanChange:
    """Return the change between two population means, with its interval inside ``limits``."""
    names = old.column, old.group, old.mean, new.mean
    if old.reason or new.reason:
        inf = math.inf
        return MeanChange(*names, math.nan, -inf, inf, inf, inf, inf, old.reason or new.reason)
    change, noise = new.mean - old.mean, math.hypot(new.noise, old.noise)
    (old_down, old_up), (new_down, new_up) = reaches(old, z), reaches(new, z)
    bias = old.bias + new.bias
    down = math.hypot(noise, new_down, old_up) + bias
    up = math.hypot(noise, new_up, old_down) + bias
    low, high = max(change - down, limits[0]), min(change + up, limits[1])
    sampling = math.hypot(new.sampling, old.sampling)
    return MeanChange(*names, change, low, high, noise, sampling, bias)
