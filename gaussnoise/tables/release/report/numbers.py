"""Released numbers on a page: tables, pictures of them, largest and smallest cells."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....numerics.intervals import ConfidenceInterval
from ...planning.facts import marginal_name
from ...schema.schema import Category
from ..noisy import AbstractRelease
from ..store import MOST_READ, StoredTables
from ..table import AbstractEstimates
from ..tidy import LEVEL, level_text
from .charts import Picture, Row, interval_chart, profile_chart
from .render import Cell, shown

_MOST_ROWS = 60  # most rows of a table that is written in full
_ENDS = 10  # rows at each end of a longer table
_MOST_LINES = 30  # most lines of a picture with names
_MOST_COLUMNS = 8  # most columns of a table of two attributes
_MOST_COMPARED = 300  # most tables whose largest and smallest cells are listed
_MOST_CELLS = 2 * 10**6  # most cells of all these tables together
MOST_ANSWERS = 10**5  # most answers of one entry
_MOST_NAME = 60
_MOST_HEAD = 40


class Crossed(NamedTuple):
    """A table of two attributes, the one of fewer categories across."""

    down: str
    across: str
    columns: list[str]
    rows: list[tuple[Category, list[Cell]]]


class Extreme(NamedTuple):
    """The largest and the smallest cell of a table, and the number of others that may be."""

    name: str
    largest: Cell
    as_large: int
    smallest: Cell
    as_small: int
    empty: int
    size: int


class Extremes(NamedTuple):
    """Extremes of tables, and the number of tables that are left out."""

    rows: list[Extreme]
    left: int


@dataclass(frozen=True)
class Entry:
    """Numbers of one kind, and their place on the page.

    Attributes:
        name: their name in words.
        anchor: the anchor of their section.
        size: how many they are.
        is_cells: whether they are counts of groups, none of which contains another.
        read: returns their table.
        file: the file that has all of them; None without one.
        what: their kind, in words.
    """

    name: str
    anchor: str
    size: int
    is_cells: bool
    read: Callable[[], AbstractEstimates]
    file: str | None = None
    what: str = "estimates"

    @cached_property
    def table(self) -> AbstractEstimates:
        """The table of its numbers."""
        return self.read()

    @property
    def title(self) -> str:
        """The heading of its section."""
        return (
            marginal_name(tuple(map(shown, self.table.attributes))) if self.is_cells else self.name
        )

    @property
    def accuracy(self) -> str:
        """The noise in its numbers, in words."""
        deviation = self.table.standard_deviation
        least, most = float(deviation.min()), float(deviation.max())
        if most == 0:
            return "Exact: without noise."
        if least == most:
            return f"Standard deviation {most:.4g} in every number."
        return f"Standard deviations from {least:.4g} to {most:.4g}."

    @cached_property
    def picture(self) -> Picture:
        """Intervals with names, or all cells side by side where there are many."""
        table = self.table
        low, high = (np.ravel(end) for end in table.confidence_interval())
        estimate, size = table.estimate.ravel(), table.estimate.size
        title = f"{_title(table)}: {self.what} with {level_text(LEVEL)} intervals"
        groups = size // table.estimate.shape[-1] if table.estimate.ndim > 1 else 0
        if size + groups <= _MOST_LINES:
            rows, last = [], ()
            for cell in cells_of(table, range(size)):
                *group, name = map(str, cell.names)
                if group and group != last:
                    rows.append(Row(" · ".join(group)))
                    last = group
                rows.append(Row(name, cell.estimate, cell.low, cell.high))
            words = "One line for each number, in the order of the table below, which has them all."
            return interval_chart(rows, self.anchor, title, words)
        ordered = table.estimate.ndim == 1 and not self.is_cells
        order = np.arange(size) if ordered else _order(table.estimate)
        below = "in the order of the attribute" if ordered else "largest first"
        return profile_chart(
            estimate[order],
            low[order],
            high[order],
            f"all {size:,}, {below}",
            self.anchor,
            title,
            f"All {size:,} numbers side by side, {below}, in a band of their intervals.",
        )

    @property
    def is_crossed(self) -> bool:
        """Whether it is written as a table of two attributes."""
        shape = self.table.estimate.shape
        return len(shape) == 2 and min(shape) <= _MOST_COLUMNS and math.prod(shape) <= _MOST_ROWS

    @property
    def hidden(self) -> int:
        """The number of cells in the middle of a long table that are not written."""
        size = self.table.estimate.size
        return 0 if size <= _MOST_ROWS else size - 2 * _ENDS

    @property
    def caption(self) -> str:
        """The caption above its numbers."""
        caption = f"{_title(self.table)}: {self.what} and {level_text(LEVEL)} intervals"
        if not self.hidden:
            return caption
        where = "" if self.file is None else f" All are in {self.file}."
        return (
            f"{caption}: the {_ENDS} largest and the {_ENDS} smallest of "
            f"{self.table.estimate.size:,}.{where}"
        )

    @property
    def cells(self) -> list[Cell]:
        """All its numbers, or those at both ends of a long table."""
        if not self.hidden:
            return cells_of(self.table, range(self.table.estimate.size))
        order = _order(self.table.estimate)
        return cells_of(self.table, [*order[:_ENDS], *order[-_ENDS:]])

    @property
    def crossed(self) -> Crossed:
        """The numbers as a table of two attributes, the last one across if both are as long."""
        table = self.table
        axis = int(np.argmin(table.estimate.shape[::-1])) ^ 1
        places = np.moveaxis(np.arange(table.estimate.size).reshape(table.estimate.shape), axis, 1)
        rows = [cells_of(table, row) for row in places]
        return Crossed(
            table.attributes[1 - axis],
            table.attributes[axis],
            [shown(name, _MOST_HEAD) for name in table.labels[axis]],
            list(zip(table.labels[1 - axis], rows, strict=True)),
        )


def entries_of(release: AbstractRelease) -> list[Entry]:
    """Return all entries that are small enough to be computed, in order."""
    plan, tables = release.plan, release.tables
    places = tables.places if isinstance(tables, StoredTables) else {}
    found = []
    for k, (name, term) in enumerate(zip(plan.entries, plan.domain.terms, strict=True)):
        S, size = tuple(sorted({i for i, _ in term})), int(plan.queries[k])
        if size > MOST_ANSWERS or math.prod(plan.schema.sizes[i] for i, _ in term) > MOST_READ:
            continue
        asked = {plan.schema.names[i]: base for i, base in term}
        is_cells = all(base.is_identity for base in asked.values())
        read = (
            partial(release.__getitem__, tuple(asked))
            if is_cells
            else partial(release.answers, asked)
        )
        file = places[S].file if S in places else None
        found.append(Entry(name, f"table-{k + 1}", size, is_cells, read, file))
    return found


def cells_of(
    table: AbstractEstimates, places: Iterable[int], interval: ConfidenceInterval | None = None
) -> list[Cell]:
    """Return the cells at these positions in C order, with an interval for each by itself."""
    ends = interval or table.confidence_interval()
    parts = [np.ravel(x) for x in (table.estimate, *ends, table.standard_deviation)]
    found = []
    for k in places:
        where = np.unravel_index(k, table.estimate.shape) if table.estimate.shape else ()
        names = (labels[i] for labels, i in zip(table.labels, where, strict=True))
        found.append(Cell(tuple(names), *(float(part[k]) for part in parts)))
    return found


def extremes_of(entries: Sequence[Entry]) -> Extremes:
    """Return the largest and smallest cell of every table of counts; intervals hold together."""
    rows, cells, left = [], 0, 0
    for entry in entries:
        if not entry.is_cells or entry.size < 2:
            continue
        cells += entry.size
        if len(rows) >= _MOST_COMPARED or cells > _MOST_CELLS:
            left += 1
            continue
        rows.append(_extreme(entry.table))
    return Extremes(rows, left)


def _extreme(table: AbstractEstimates) -> Extreme:
    interval = table.confidence_interval(simultaneous=True)
    low, high = map(np.ravel, interval)
    order = _order(table.estimate)
    ends = [int(order[0]), int(order[-1])]
    largest, smallest = cells_of(table, ends, interval)
    return Extreme(
        _title(table),
        largest,
        int((high >= largest.low).sum()) - 1,
        smallest,
        int((low <= smallest.high).sum()) - 1,
        int(((low <= 0) & (high >= 0)).sum()),
        table.estimate.size,
    )


def _title(table: AbstractEstimates) -> str:
    return marginal_name(tuple(shown(name, _MOST_NAME) for name in table.attributes))


def _order(estimate: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the cells, largest first."""
    return np.argsort(-estimate.ravel(), kind="stable")
