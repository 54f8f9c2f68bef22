"""Released numbers on a page: tables, pictures of them, largest and smallest cells."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...planning.text import marginal_name
from ..store import MOST_READ, StoredTables
from ..table import MarginalTable, QueryTable
from ..tidy import LEVEL, level_text
from .charts import Row, interval_chart, profile_chart
from .markup import Html, counted, data, digits_of, grid, joined, label, number, section, shown, tag
from .words import estimate_of

if TYPE_CHECKING:
    from ..release import TableRelease

_MOST_ROWS = 60  # of a table that is written in full
_ENDS = 10  # rows at each end of a longer table
_MOST_LINES = 30  # of a picture with names
_MOST_COLUMNS = 8  # of a table of two attributes
_MOST_COMPARED = 300  # tables whose largest and smallest cells are listed
_MOST_CELLS = 2 * 10**6  # of all these tables together
_MOST_ANSWERS = 10**5  # of one entry
_MOST_NAME = 60
_MOST_HEAD = 40


@dataclass(frozen=True)
class Entry:
    """An entry of the workload, and its place on the page.

    Attributes:
        release: the release that it is from.
        position: its position in the workload.
        name: its name in words.
        anchor: the anchor of its section.
    """

    release: "TableRelease"
    position: int
    name: str
    anchor: str

    @property
    def answers(self) -> int:
        """How many numbers it has."""
        return int(self.release.plan.queries[self.position])

    @property
    def is_cells(self) -> bool:
        """Whether its numbers are counts of groups, none of which contains another."""
        return all(base.is_identity for _, base in self.release.plan.domain.terms[self.position])

    @cached_property
    def table(self) -> MarginalTable | QueryTable:
        """Its numbers."""
        plan = self.release.plan
        term = plan.domain.terms[self.position]
        if self.is_cells:
            return self.release[tuple(plan.schema.names[i] for i, _ in term)]
        return self.release.answers({plan.schema.names[i]: base for i, base in term})

    @property
    def file(self) -> str | None:
        """The file of its cells; None without one."""
        tables, plan = self.release.tables, self.release.plan
        if not isinstance(tables, StoredTables):
            return None
        S = tuple(sorted({i for i, _ in plan.domain.terms[self.position]}))
        return tables.places[S].file if S in tables.places else None


def entries_of(release: "TableRelease") -> list[Entry]:
    """Return all entries that are small enough to be computed, in order."""
    plan = release.plan
    cells = [math.prod(plan.schema.sizes[i] for i, _ in term) for term in plan.domain.terms]
    return [
        Entry(release, k, name, f"table-{k + 1}")
        for k, name in enumerate(plan.entries)
        if plan.queries[k] <= _MOST_ANSWERS and cells[k] <= MOST_READ
    ]


def table_section(entry: Entry) -> Html:
    """Return the section of one table: its accuracy, a picture, numbers."""
    table = entry.table
    deviation = table.standard_deviation
    least, most = float(deviation.min()), float(deviation.max())
    if most == 0:
        words = "Exact: without noise."
    elif least == most:
        words = f"Standard deviation {most:.4g} in every number."
    else:
        words = f"Standard deviations from {least:.4g} to {most:.4g}."
    return section(
        marginal_name(tuple(map(shown, table.attributes))) if entry.is_cells else entry.name,
        entry.anchor,
        tag("p", f"{counted(table.estimate.size, 'number')}. {words}", class_="note"),
        _picture(table, entry.is_cells) if table.estimate.size > 1 else "",
        _numbers(entry),
        level=3,
    )


def _names(table: MarginalTable | QueryTable, cell: int) -> tuple[str, ...]:
    """Return the labels of a cell, by its position in C order."""
    where = np.unravel_index(cell, table.estimate.shape) if table.estimate.shape else ()
    return tuple(str(names[k]) for names, k in zip(table.labels, where, strict=True))


def _title(table: MarginalTable | QueryTable) -> str:
    return marginal_name(tuple(shown(name, _MOST_NAME) for name in table.attributes))


def _order(estimate: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the cells, largest first."""
    return np.argsort(-estimate.ravel(), kind="stable")


def _picture(table: MarginalTable | QueryTable, is_cells: bool) -> Html:
    """Draw intervals with names, or all cells side by side where there are many."""
    low, high = (np.ravel(end) for end in table.confidence_interval())
    estimate, size = table.estimate.ravel(), table.estimate.size
    title = f"{_title(table)}: estimates with {level_text(LEVEL)} intervals"
    groups = size // table.estimate.shape[-1] if table.estimate.ndim > 1 else 0
    if size + groups <= _MOST_LINES:
        rows, last = [], ()
        for k in range(size):
            *group, name = _names(table, k)
            if group and group != last:
                rows.append(Row(" · ".join(group)))
                last = group
            rows.append(Row(name, float(estimate[k]), float(low[k]), float(high[k])))
        words = "One line for each number, in the order of the table below, which has them all."
        return tag("figure", interval_chart(rows, title, words))
    ordered = table.estimate.ndim == 1 and not is_cells
    order = np.arange(size) if ordered else _order(table.estimate)
    below = "in the order of the attribute" if ordered else "largest first"
    words = f"All {size:,} numbers side by side, {below}, in a band of their intervals."
    chart = profile_chart(
        estimate[order], low[order], high[order], f"all {size:,}, {below}", title, words
    )
    return tag("figure", chart, tag("figcaption", words))


def _numbers(entry: Entry) -> Html:
    """Return the table itself, or its ends."""
    table, size = entry.table, entry.table.estimate.size
    crossed = table.estimate.ndim == 2 and min(table.estimate.shape) <= _MOST_COLUMNS
    if crossed and size <= _MOST_ROWS:
        return _crossed(table)
    if size <= _MOST_ROWS:
        return _listed(table, np.arange(size), _caption(table))
    order = _order(table.estimate)
    where = "" if entry.file is None else f" All are in {entry.file}."
    return _listed(
        table,
        np.concatenate([order[:_ENDS], order[-_ENDS:]]),
        f"{_caption(table)}: the {_ENDS} largest and the {_ENDS} smallest of {size:,}.{where}",
        gap=(_ENDS, size - 2 * _ENDS),
    )


def _caption(table: MarginalTable | QueryTable) -> str:
    return f"{_title(table)}: estimates and {level_text(LEVEL)} intervals"


def _listed(
    table: MarginalTable | QueryTable,
    cells: NDArray[np.intp],
    caption: str,
    gap: tuple[int, int] | None = None,
) -> Html:
    """Return one row for each cell; a gap after some row says how many cells it leaves out."""
    low, high = (np.ravel(end).tolist() for end in table.confidence_interval())
    estimate, deviation = table.estimate.ravel().tolist(), table.standard_deviation.ravel().tolist()
    names = [label(name) for name in table.attributes]
    rows: list[Sequence[object] | Html] = []
    for k in cells.tolist():
        digits = digits_of(deviation[k])
        ends = joined([data(low[k], digits), data(high[k], digits)], " to ")
        own = [label(name) for name in _names(table, k)] or ["all rows"]
        interval = ends if deviation[k] > 0 else "exact"
        rows.append([*own, data(estimate[k], digits), interval])
    columns = [*(names or ["Group"]), "Estimate", f"{level_text(LEVEL)} interval"]
    if gap is not None:
        after, hidden = gap
        words = tag("td", f"… {hidden:,} more …", colspan=len(columns))
        rows.insert(after, tag("tr", words, class_="gap"))
    return grid(caption, columns, rows, labels=max(len(names), 1))


def _crossed(table: MarginalTable | QueryTable) -> Html:
    """Return a table of two attributes, the one of fewer categories across."""
    axis = int(np.argmin(table.estimate.shape[::-1])) ^ 1  # across; the last one if equal
    numbers = (table.estimate, *table.confidence_interval(), table.standard_deviation)
    parts = [np.moveaxis(part, axis, 1) for part in numbers]
    down, across = table.labels[1 - axis], table.labels[axis]
    corner = joined([label(table.attributes[1 - axis]), label(table.attributes[axis])], " \\ ")
    columns = [corner, *(tag("bdi", shown(name, _MOST_HEAD)) for name in across)]
    rows = []
    for i, name in enumerate(down):
        cells = ([float(part[i, j]) for part in parts] for j in range(len(across)))
        rows.append([label(name), *(estimate_of(*cell) for cell in cells)])
    return grid(_caption(table), columns, rows)


def extremes_table(entries: Sequence[Entry]) -> Html | None:
    """Return the largest and smallest cell of every table of counts; intervals hold together."""
    rows, cells, left = [], 0, 0
    for entry in entries:
        if not entry.is_cells or entry.answers < 2:
            continue
        cells += entry.answers
        if len(rows) >= _MOST_COMPARED or cells > _MOST_CELLS:
            left += 1
            continue
        rows.append(_extreme(entry.table))
    if not rows:
        return None
    columns = ("Table", "Most rows", "Fewest rows", "May be empty")
    more = f" {left:,} more tables are not listed." if left else ""
    caption = (
        f"Largest and smallest groups. “May be empty” counts groups whose range holds zero.{more}"
    )
    return grid(caption, columns, rows, numeric=False)


def _extreme(table: MarginalTable | QueryTable) -> tuple[object, ...]:
    """Return a row of :func:`extremes_table`."""
    low, high = (np.ravel(end) for end in table.confidence_interval(simultaneous=True))
    estimate, deviation = table.estimate.ravel(), table.standard_deviation.ravel()
    order = _order(table.estimate)
    largest, smallest = int(order[0]), int(order[-1])
    rivals = int((high >= low[largest]).sum()) - 1, int((low <= high[smallest]).sum()) - 1

    def said(cell: int, others: int) -> Html:
        words = joined(map(label, _names(table, cell)), " · ")
        ends = float(estimate[cell]), float(low[cell]), float(high[cell]), float(deviation[cell])
        rivals = f"or one of {others:,} others" if others > 1 else "or 1 other"
        also = tag("small", rivals) if others else ""
        return joined([words, tag("br"), estimate_of(*ends), also], " ")

    empty = int(((low <= 0) & (high >= 0)).sum())
    share = f"{number(empty, 0)} of {estimate.size:,}"
    return label(_title(table)), said(largest, rivals[0]), said(smallest, rivals[1]), share
