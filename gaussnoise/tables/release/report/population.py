"""The means of a population on a page: a section for each column, with its finding."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ....numerics.intervals import quantile
from ...planning.ranges import FoundRange
from ..population import ColumnMean, ColumnMeans, Grid, means_in
from ..tidy import LEVEL, level_text
from .charts import Picture, interval_chart
from .numbers import MOST_LINES, lines_of, mean_title
from .render import Cell
from .sentences import SAME, gap_text, highest, labels_text, range_text


class Section(NamedTuple):
    """The means of one column: a heading, the name of its place, a finding, tables, a picture."""

    title: str
    anchor: str
    finding: str
    grids: list[Grid]
    picture: Picture | None


def sections_of(means: ColumnMeans) -> Iterator[Section]:
    """Yield a section for each column."""
    plan: Any = means.release.plan
    for k, own in enumerate(plan.ranges, 1):
        alone = [mean for mean in means.means if mean.column == own.column]
        title = mean_title(own.column, [*alone[0].group])
        grids = [_joined(grid.short.of_column(own.column)) for grid in means.grids]
        finding = "" if own.low is None else _finding(means, own, alone)
        anchor, grids = f"population-{k}", [grid for grid in grids if grid.rows]
        yield Section(title, anchor, finding, grids, _picture(alone, title, anchor))


def _joined(grid: Grid) -> Grid:
    """Return a table with both ends of an interval in one column."""
    at = len(grid.words) + grid.numbers.index("low")
    rows = [
        [*row[:at], "—" if row[at] == "—" else f"{row[at]} to {row[at + 1]}", *row[at + 2 :]]
        for row in grid.rows
    ]
    numbers = [name for name in grid.numbers if name != "high"]
    numbers[numbers.index("low")] = f"{level_text(LEVEL)} interval"
    return grid._replace(numbers=tuple(numbers), rows=rows)


def _picture(means: list[ColumnMean], title: str, anchor: str) -> Picture | None:
    """Return a line for every group with a mean; nothing for one line, or for too many."""
    cells = [
        Cell(tuple(map(str, mean.group.values())), mean.mean, mean.low, mean.high, 0.0)
        for mean in means
        if not mean.reason
    ]
    lines = lines_of(cells)
    if not 1 < len(lines) <= MOST_LINES:
        return None
    said = f"{title}: estimates with {level_text(LEVEL)} intervals"
    words = "One line for each group that has a mean, in the order of the table below."
    return interval_chart(lines, anchor, said, words, from_zero=False)


def _finding(means: ColumnMeans, own: FoundRange, alone: list[ColumnMean]) -> str:
    """Return what the means of a column support, in a sentence; nothing where there is none.

    Intervals of several groups hold together by Bonferroni's inequality, which leaves each of them
    its part of the chance to miss. The difference of two groups has an interval of its own.
    """
    groups, names = [*alone[0].group], [labels_text(mean.group.values()) for mean in alone]
    spread = [(mean.high - mean.low) / 2 / quantile(LEVEL) for mean in alone]
    if len(alone) == 1:
        [mean] = alone
        said = range_text(mean.mean, mean.low, mean.high, spread[0])
        return "" if mean.reason else f"The mean is {said}."
    if len(alone) == 2 and len(groups) == 1:
        gaps = means.difference(groups[0], *(mean.group[groups[0]] for mean in alone))
        [gap] = (gap for gap in gaps if gap.column == own.column)
        if gap.low <= 0 <= gap.high:
            return SAME.format(between=f"between {names[0]} and {names[1]}")
        deviation = (gap.high - gap.low) / 2 / quantile(LEVEL)
        return gap_text(names[0], names[1], gap.difference, (gap.low, gap.high), deviation)
    each = 1 - own.wrong - (1 - LEVEL - own.wrong) / len(alone)
    together = [(m.low, m.high) for m in means_in(means.release, own, each, groups)]
    low, high = np.array(together).T
    estimate = np.array([mean.mean for mean in alone])
    return highest(means.units, True, names, estimate, (low, high), np.array(spread))
