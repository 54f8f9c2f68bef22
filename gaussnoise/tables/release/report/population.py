"""The means of a population on a page: a section for each column, with its finding."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....numerics.intervals import quantile
from ...planning.ranges import FoundRange
from ...schema.schema import Schema
from ..marks import LOW_RELIABILITY, marks_of
from ..population import ColumnMean, ColumnMeans, Grid, means_in
from ..tidy import LEVEL, level_text
from .charts import Picture, heat_chart, interval_chart
from .numbers import MOST_COLUMNS, MOST_LINES, MOST_ROWS, lines_of, mean_title
from .order import reading_labels
from .render import Cell, digits_of, number, shown
from .sentences import SAME, gap_text, highest, labels_text, range_text

_MOST_BESIDE = 5  # most columns beside a picture on paper


class Crossed(NamedTuple):
    """The layout of means by two attributes: one attribute in rows, the other in columns."""

    name: str
    down: list[str]
    across: list[str]
    places: NDArray[np.int64]


class Section(NamedTuple):
    """The section of a page for the means of one data column."""

    title: str
    anchor: str
    finding: str
    grids: list[Grid]
    picture: Picture | None

    @property
    def is_short(self) -> bool:
        """Whether its picture and its first table fit side by side on a page of paper."""
        grid = self.grids[0]
        columns = len(grid.words) + len(grid.numbers)
        return self.picture is not None and columns <= _MOST_BESIDE and len(grid.rows) <= MOST_LINES


def sections_of(means: ColumnMeans) -> Iterator[Section]:
    """Yield the section of the page for each data column that has means."""
    plan: Any = means.release.plan
    for k, own in enumerate(plan.ranges, 1):
        alone = [mean for mean in means.means if mean.column == own.column]
        number = plan.schema.attributes[plan.schema.names.index(own.column)]
        by = [shown(plan.schema.heading(name)) for name in alone[0].group]
        title = mean_title(number, by)
        anchor = f"population-{k}"
        grid, *others = (_joined(grid.short.of_column(own.column)) for grid in means.grids)
        order = _reading_places(alone, plan.schema)
        grid, read = grid._replace(rows=[grid.rows[j] for j in order]), [alone[j] for j in order]
        picture, crossed = _lines(read, title, anchor), _crossed(read)
        if picture is None and crossed is not None:
            grid, picture = _as_grid(grid, read, crossed), _colours(read, crossed, title, anchor)
        finding = "" if own.low is None else _finding(means, own, alone)
        grids = [grid, *(other for other in others if other.rows)]
        yield Section(title, anchor, finding, grids, picture)


def _reading_places(means: list[ColumnMean], schema: Schema) -> list[int]:
    """Return the indices of means, sorted by their groups in the order for readers."""
    known = {own.name: own for own in schema.attributes}
    labels = {name: reading_labels(known[name]) for name in means[0].group}
    ranks = {name: {str(label): k for k, label in enumerate(own)} for name, own in labels.items()}
    groups = [[ranks[name][str(x)] for name, x in mean.group.items()] for mean in means]
    return sorted(range(len(means)), key=groups.__getitem__)


def _crossed(means: list[ColumnMean]) -> Crossed | None:
    """Return the layout of means in rows and columns; None unless two attributes fit on a page."""
    names = [*means[0].group]
    labels = {name: list(dict.fromkeys(mean.group[name] for mean in means)) for name in names}
    if len(names) != 2:
        return None
    across, down = sorted(names, key=lambda name: len(labels[name]))
    if len(labels[across]) > MOST_COLUMNS or len(labels[down]) > MOST_ROWS:
        return None
    at = {(mean.group[down], mean.group[across]): k for k, mean in enumerate(means)}
    places = np.array([[at[row, column] for column in labels[across]] for row in labels[down]])
    texts = [[str(label) for label in labels[name]] for name in (down, across)]
    return Crossed(down, texts[0], texts[1], places)


def _as_grid(grid: Grid, means: list[ColumnMean], crossed: Crossed) -> Grid:
    """Return means by two attributes, with intervals, in rows and columns, without counts."""
    mean, interval = (len(grid.words) + k for k in (0, 1))
    texts = [
        "none" if own.reason else f"{row[mean]}\n{row[interval]}"
        for row, own in zip(grid.rows, means, strict=True)
    ]
    rows = [
        [name, *(texts[k] for k in places)]
        for name, places in zip(crossed.down, crossed.places.tolist(), strict=True)
    ]
    return Grid(grid.title, (crossed.name,), tuple(crossed.across), rows)


def _colours(means: list[ColumnMean], crossed: Crossed, title: str, anchor: str) -> Picture | None:
    """Return a picture of the means by two attributes as colours; None if no mean is known."""
    estimate = np.array([mean.mean for mean in means])
    spread = np.array([mean.high - mean.low for mean in means]) / 2 / quantile(LEVEL)
    hidden = np.isin(marks_of(estimate, spread), LOW_RELIABILITY) | ~np.isfinite(estimate)
    if hidden.all() or not estimate[~hidden].max() > 0:
        return None
    cells, digits = np.where(hidden, np.nan, estimate), digits_of(float(np.median(spread[~hidden])))
    scale, names = (
        (float(np.nanmin(cells)), float(np.nanmax(cells))),
        (crossed.down, crossed.across),
    )
    least, most = (number(end, digits) for end in scale)
    words = f"Colours from {least} to {most}; grey where a mean is none, or unreliable."
    picture = heat_chart(cells[crossed.places], names, scale, anchor, title, words, digits)
    return picture._replace(caption=words)


def _joined(grid: Grid) -> Grid:
    """Return a table with both bounds of each interval in one column."""
    at = len(grid.words) + grid.numbers.index("low")
    rows = [
        [*row[:at], "—" if row[at] == "—" else f"{row[at]} to {row[at + 1]}", *row[at + 2 :]]
        for row in grid.rows
    ]
    numbers = [name for name in grid.numbers if name != "high"]
    numbers[numbers.index("low")] = f"{level_text(LEVEL)} interval"
    return grid._replace(numbers=tuple(numbers), rows=rows)


def _lines(means: list[ColumnMean], title: str, anchor: str) -> Picture | None:
    """Return a picture with a line for every mean; None if there is one line, or too many."""
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
    """Return a sentence on the main finding in ``alone``, the means of a column; or ""."""
    # intervals of groups hold together by Bonferroni's inequality, each with an equal share of the
    # error probability; the difference of two groups has a separate interval
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
    sd, axes = np.array(spread), len(groups)
    return highest(means.units, True, names, estimate, (low, high), sd, axes)
