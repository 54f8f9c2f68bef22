"""Released numbers on a page: tables, pictures of them, largest and smallest cells."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from domains.tables.clipped import Clipped

from ....numerics.intervals import ConfidenceInterval
from ...planning.facts import marginal_name
from ...schema.schema import Category
from ..marks import marks_of
from ..noisy import AbstractRelease
from ..shares import proportions
from ..store import MOST_READ, StoredTables
from ..sums import means, summed_in, sums
from ..table import AbstractEstimates, ProportionTable
from ..tidy import LEVEL, level_text
from .charts import Picture, Row, heat_chart, interval_chart, profile_chart
from .render import Cell, number, shown

_MOST_ROWS = 60  # most rows of a table that is written in full
_ENDS = 10  # rows at each end of a longer table
_MOST_LINES = 30  # most lines of a picture with names
_MOST_COLOURED = 1500  # most cells that are drawn as colours
_MOST_PANELS = 12  # most pictures of one table
_MOST_COLUMNS = 8  # most columns of a table of two attributes
_MOST_COMPARED = 300  # most tables whose largest and smallest cells are listed
_MOST_CELLS = 2 * 10**6  # most cells of all these tables together
_MOST_ANSWERS = 10**5  # most answers of one entry
_MOST_NAME = 60
_MOST_HEAD = 40


class Crossed(NamedTuple):
    """A table of two attributes, the one of fewer categories across, and the row of totals."""

    down: str
    across: str
    columns: list[str]
    rows: list[tuple[Category, list[Cell]]]
    totals: list[Cell] | None


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
        kind: "cells" of counts, of which none contains another; "mean"; "share"; or "answers".
        file: the file that has them all, or None.
        margin: a function from attributes to the table of counts over them, for totals.
        shares: the shares of all rows, of cells of one attribute.
    """

    table: AbstractEstimates
    title: str
    anchor: str
    heading: bool = False
    kind: Literal["cells", "mean", "share", "answers"] = "answers"
    file: str | None = None
    margin: Callable[[tuple[str, ...]], AbstractEstimates] | None = None
    shares: AbstractEstimates | None = None

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
    def pictures(self) -> list[Picture]:
        """Intervals with names, colours of two or three attributes, or those at both ends."""
        table = self.table
        shape, size = table.estimate.shape, table.estimate.size
        groups = size // shape[-1] if len(shape) > 1 else 0
        if size + groups <= _MOST_LINES:
            words = "One line for each number, in the order of the table below, which has them all."
            return [self._intervals(cells_of(table, range(size)), words)]
        if len(shape) in (2, 3) and size <= _MOST_COLOURED and min(shape) <= _MOST_PANELS:
            return self._colours()
        low, high = (np.ravel(end) for end in table.confidence_interval())
        if len(shape) == 1 and self.kind == "answers":
            words = f"All {size:,} numbers side by side, in their order, in a band of intervals."
            names = list(map(str, table.labels[0]))
            estimate = np.ravel(table.estimate)
            return [profile_chart(estimate, low, high, names, self.anchor, self._said, words)]
        order = _order(table.estimate).tolist()
        ends = cells_of(table, [*order[:_ENDS], *order[-_ENDS:]])
        words = f"The {_ENDS} largest and the {_ENDS} smallest of {size:,} numbers."
        return [self._intervals(ends, words, hidden=size - 2 * _ENDS)._replace(caption=words)]

    @property
    def _said(self) -> str:
        return f"{self.title}: estimates with {level_text(LEVEL)} intervals"

    def _intervals(self, cells: Sequence[Cell], words: str, hidden: int = 0) -> Picture:
        """Draw a line for each cell; those that lie between both ends are only counted."""
        rows, last = [], ()
        for k, cell in enumerate(cells):
            *group, name = map(str, cell.names)
            if hidden:
                group, name = [], " · ".join([*group, name])
                if k == _ENDS:
                    rows.append(Row(f"… {hidden:,} more …"))
            if group and group != last:
                rows.append(Row(" · ".join(group)))
                last = group
            rows.append(Row(name, cell.estimate, cell.low, cell.high))
        from_zero = self.kind != "mean"
        return interval_chart(rows, self.anchor, self._said, words, from_zero=from_zero)

    def _colours(self) -> list[Picture]:
        """Draw two attributes as colours, once for each value of the third with the fewest."""
        table = self.table
        shape = table.estimate.shape
        panel = int(np.argmin(shape)) if len(shape) == 3 else None
        low, high = table.confidence_interval()
        hidden = (low <= 0) & (high >= 0) | np.isnan(table.estimate)
        cells = np.where(hidden, np.nan, table.estimate)
        names = [list(map(str, own)) for own in table.labels]
        most = float(np.nanmax(cells, initial=0.0)) or 1.0
        titles = [""]
        if panel is None:
            cells = cells[None]
        else:
            cells, own = np.moveaxis(cells, panel, 0), names.pop(panel)
            titles = [f"{shown(table.attributes[panel])}: {shown(one)}" for one in own]
        if cells.shape[1] < cells.shape[2]:  # fewer across
            cells, names = cells.swapaxes(1, 2), names[::-1]
        words = f"Colours from 0 to {number(most, 0)}; grey where the true number may be 0."
        return [
            heat_chart(
                own,
                (names[0], names[1]),
                most,
                f"{self.anchor}-{k}",
                f"{self._said}{'; ' * bool(title)}{title}",
                words,
            )._replace(caption=f"{title}. {words}" if title else words)
            for k, (own, title) in enumerate(zip(cells, titles, strict=True))
        ]

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
        estimate = self.table.estimate
        if self.kind == "share" and ((estimate < 0) | (estimate > 1)).any():
            caption += "; noise has carried some estimates outside 0 to 100 %"
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
        return cells_of(self.table, self._places)

    @property
    def parts_of_all(self) -> list[Cell]:
        """The shares of the same cells in per cent, or no cells."""
        return [] if self.shares is None else cells_of(self.shares, self._places)

    @property
    def total(self) -> Cell | None:
        """The number of all rows, below cells of one attribute."""
        if self.margin is None or self.table.estimate.ndim != 1:
            return None
        return cells_of(self.margin(()), [0])[0]

    @property
    def _places(self) -> Sequence[int]:
        if not self.hidden:
            return range(self.table.estimate.size)
        order = _order(self.table.estimate).tolist()
        return [*order[:_ENDS], *order[-_ENDS:]]

    @property
    def crossed(self) -> Crossed:
        """The table of two attributes, with totals where they are known."""
        table = self.table
        axis = 0 if table.estimate.shape[0] < table.estimate.shape[1] else 1  # across
        down, across = table.attributes[1 - axis], table.attributes[axis]
        cells = np.array(range(table.estimate.size)).reshape(table.estimate.shape)
        order = cells.T if axis == 0 else cells
        all_cells = cells_of(table, range(table.estimate.size))
        rows = [
            (name, [all_cells[k] for k in own.tolist()])
            for name, own in zip(table.labels[1 - axis], order, strict=True)
        ]
        columns = [shown(name, _MOST_HEAD) for name in table.labels[axis]]
        last = None
        if self.margin is not None:
            ends = [self.margin((down,)), self.margin((across,)), self.margin(())]
            beside, below, corner = (cells_of(t, range(t.estimate.size)) for t in ends)
            rows = [(name, [*own, more]) for (name, own), more in zip(rows, beside, strict=True)]
            last = [*below, *corner]
        return Crossed(down, across, columns, rows, last)


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
        """The tables of its numbers: of a clipped number means, sums and counts."""
        plan, release = self.release.plan, self.release
        names, term = plan.schema.names, plan.domain.terms[self.position]
        summed = summed_in(term)
        if self.is_cells:
            return self._counts(release[tuple(names[i] for i, _ in term)])
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

    def _counts(self, table: AbstractEstimates) -> list[Numbers]:
        """Return counts with totals, and their shares of all rows and of every group."""
        release, own = self.release, table.attributes
        counts = Numbers(table, _title(table), self.anchor, kind="cells", file=self.file)
        if len(own) == 1 and table.estimate.size > 1:
            shares = proportions(release, own[0])
            return [replace(counts, margin=release.__getitem__, shares=shares)]
        if not counts.is_crossed or table.estimate.size == 1:
            return [counts]
        given = own[int(table.estimate.shape[0] < table.estimate.shape[1])]
        shares = {
            f"Per cent of each {shown(given, _MOST_NAME)}": proportions(release, own, given=given),
            "Per cent of all rows": proportions(release, own),
        }
        return [
            replace(counts, margin=release.__getitem__),
            *(Numbers(t, title, self.anchor, kind="share") for title, t in shares.items()),
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
    """Return the cells at these positions in C order, with an interval for each by itself.

    Shares become per cent.
    """
    ends = interval or table.confidence_interval()
    unit = 100.0 if isinstance(table, ProportionTable) else 1.0
    parts = [unit * np.ravel(x) for x in (table.estimate, *ends, table.standard_deviation)]
    marks = np.ravel(marks_of(table.estimate, table.standard_deviation))
    found = []
    for k in places:
        where = np.unravel_index(k, table.estimate.shape) if table.estimate.shape else ()
        names = (labels[i] for labels, i in zip(table.labels, where, strict=True))
        estimate, low, high, deviation = (float(part[k]) for part in parts)
        found.append(Cell(tuple(names), estimate, low, high, deviation, str(marks[k])))
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
