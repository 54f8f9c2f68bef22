"""Released numbers on a page: tables, pictures of them, largest and smallest cells."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from domains.tables.clipped import Clipped

from ....numerics.intervals import ConfidenceInterval
from ...planning.facts import marginal_name
from ...schema.schema import Category
from ..noisy import AbstractRelease
from ..store import MOST_READ, StoredTables
from ..sums import means, summed_in, sums
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
_MOST_ANSWERS = 10**5  # most answers of one entry
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


@final
@dataclass(frozen=True)
class Numbers:
    """Numbers of one kind, and their place on the page.

    Attributes:
        table: the numbers.
        title: what they are, in words.
        anchor: the name of their picture.
        heading: whether the title stands above them; the section's own is enough for some.
        kind: "cells" of counts, of which none contains another; "mean"; or "answers".
        file: the file that has them all, or None.
    """

    table: AbstractEstimates
    title: str
    anchor: str
    heading: bool = False
    kind: Literal["cells", "mean", "answers"] = "answers"
    file: str | None = None

    @property
    def accuracy(self) -> str:
        """The noise in the numbers, in words."""
        deviation = self.table.standard_deviation
        known = deviation[np.isfinite(deviation)]
        if not known.size:
            return "No estimate: the noise hides whether there are any rows."
        least, most = float(known.min()), float(known.max())
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
        title = f"{self.title}: estimates with {level_text(LEVEL)} intervals"
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
            return interval_chart(rows, self.anchor, title, words, from_zero=self.kind != "mean")
        ordered = table.estimate.ndim == 1 and self.kind != "cells"
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
        """The caption above the numbers."""
        caption = f"{self.title}: estimates and {level_text(LEVEL)} intervals"
        if not self.hidden:
            return caption
        where = f" All are in {self.file}." if self.file else ""
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


@final
@dataclass(frozen=True)
class Entry:
    """An entry of the workload, and its place on the page.

    Attributes:
        release: the release that it is from.
        position: its position in the workload.
        name: its name in words.
        anchor: the anchor of its section.
    """

    release: AbstractRelease
    position: int
    name: str
    anchor: str

    @property
    def size(self) -> int:
        """The number of its answers."""
        return int(self.release.plan.queries[self.position])

    @property
    def is_cells(self) -> bool:
        """Whether its numbers are counts of groups, none of which contains another."""
        return all(base.is_identity for _, base in self.release.plan.domain.terms[self.position])

    @property
    def title(self) -> str:
        """The heading of its section."""
        names = self.release.plan.schema.names
        attributes = [names[i] for i, _ in self.release.plan.domain.terms[self.position]]
        is_named = (
            self.is_cells or summed_in(self.release.plan.domain.terms[self.position]) is not None
        )
        return marginal_name(tuple(map(shown, attributes))) if is_named else self.name

    @cached_property
    def parts(self) -> list[Numbers]:
        """Its numbers; of a clipped number the means, the sums and the counts."""
        plan, release = self.release.plan, self.release
        names, term = plan.schema.names, plan.domain.terms[self.position]
        summed = summed_in(term)
        if self.is_cells:
            table = release[tuple(names[i] for i, _ in term)]
            return [Numbers(table, _title(table), self.anchor, kind="cells", file=self.file)]
        asked = {names[i]: base for i, base in term}
        if summed is None:
            answers = release.answers(asked)
            return [Numbers(answers, _title(answers), self.anchor, file=self.file)]
        own, groups = names[summed], tuple(names[i] for i, _ in term if i != summed)
        base = plan.schema.attributes[summed].base
        degrees = [d for d in base.degrees if d != 1] if isinstance(base, Clipped) else []
        by = f" by {marginal_name(tuple(map(shown, groups)))}" if groups else ""
        rest = release.answers(asked | {own: {"kind": "moments", "degrees": degrees}})
        if rest.estimate.shape[axis := [i for i, _ in term].index(summed)] == 1:
            rest = rest.part(axis, 0)  # one statistic, which the title names
        what = "Counts" if degrees == [0] else "Counts and sums of squares"
        named, at = shown(own), self.anchor
        return [
            Numbers(means(release, own, groups), f"Mean of {named}{by}", at, True, "mean"),
            Numbers(sums(release, own, groups), f"Sum of {named}{by}", f"{at}-sum", True),
            Numbers(rest, f"{what} of rows with {named}{by}", f"{at}-count", True, file=self.file),
        ]

    @property
    def file(self) -> str | None:
        """The file of its cells, in a folder of a release."""
        tables, plan = self.release.tables, self.release.plan
        places = tables.places if isinstance(tables, StoredTables) else {}
        S = tuple(sorted({i for i, _ in plan.domain.terms[self.position]}))
        return places[S].file if S in places else None


def entries_of(release: AbstractRelease) -> list[Entry]:
    """Return all entries that are small enough to be computed, in order."""
    plan = release.plan
    cells = [math.prod(plan.schema.sizes[i] for i, _ in term) for term in plan.domain.terms]
    return [
        Entry(release, k, name, f"table-{k + 1}")
        for k, name in enumerate(plan.entries)
        if plan.queries[k] <= _MOST_ANSWERS and cells[k] <= MOST_READ
    ]


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
        rows.append(_extreme(entry.parts[0].table))
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
