"""The default picture of a table: of counts, answers, shares, CDFs, or some cells."""

import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...drawing import dotted_height, dotted_rows, label_text, left_off, new_figure, unreadable
from ...errors import ParameterError
from ..schema.dates import place, shown_places
from .cells import CellList, in_order
from .comparison import ComparisonTable
from .plots import counted_text, plot_heatmap, plot_intervals, title_text, warning_text
from .table import AbstractEstimates, MarginalTable, ProportionTable, QueryTable
from .tidy import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

_MOST_DOTS = 40  # most cells drawn with their names
_TOP, _BOTTOM = 20, 10  # number of largest and smallest cells drawn of a larger table
_MOST_SERIES = 10  # most series with colours that are easy to distinguish
_MOST_POSITIONS = 25
_MOST_PANELS = 16
_MOST_SQUARES = 100  # most cells along a side of a heat map
_MOST_GROUPS = 20  # most CDFs in a picture


def plot_table(table: AbstractEstimates, level: float) -> "Figure":
    """Return the default picture of a table; its kind depends on the kind and size of the table."""
    if isinstance(table, ProportionTable):
        if table.steps is not None:
            return _cdfs(table, level)
        return _shares(table, level) if table.given else _dots(table, level)
    if isinstance(table, ComparisonTable):
        return _dots(table, level)
    if not isinstance(table, MarginalTable | QueryTable):
        raise ParameterError(f"plot: expected a released table, got {type(table).__name__}")
    shape = table.estimate.shape
    if len(shape) < 2:
        if isinstance(table, QueryTable) and table.estimate.size > _MOST_DOTS:
            return _band(table, level)
        return _dots(table, level)
    if shape[-1] <= _MOST_SERIES and table.estimate.size <= _MOST_POSITIONS * shape[-1]:
        return plot_intervals(table, level)
    drawn = len(shape) == 2 or (len(shape) == 3 and min(shape) <= _MOST_PANELS)
    if drawn and max(shape) <= _MOST_SQUARES:
        return plot_heatmap(table)
    return _dots(table, level)


def plot_cells(cells: CellList, level: float) -> "Figure":
    """Return a picture of some cells: a dot and its interval for each, from top to bottom."""
    if len(cells) > _MOST_DOTS:
        raise ParameterError(
            f"plot: expected at most {_MOST_DOTS} cells, got {len(cells)}; hint: top(), or the "
            "plot of the whole table"
        )
    return _rows(cells, level, f"{len(cells)} of {cells.table.estimate.size} cells")


def _dots(table: AbstractEstimates, level: float) -> "Figure":
    """Draw cells as dots with their names: all, or the largest and smallest of a large table."""
    size = table.estimate.size
    if size <= _MOST_DOTS:
        return _rows(CellList(table, np.arange(size)), level, "")
    order = in_order(table.estimate, descending=True)
    order = order[~np.isnan(np.ravel(table.estimate)[order])]
    if len(order) <= _TOP + _BOTTOM:
        return _rows(CellList(table, order), level, f"{len(order)} of {size} cells")
    ends = CellList(table, np.concatenate([order[:_TOP], order[-_BOTTOM:]]))
    hidden = len(order) - _TOP - _BOTTOM
    return _rows(ends, level, "the largest and the smallest", (_TOP, f"… {hidden} more"))


def _rows(
    cells: CellList, level: float, which: str, gap: tuple[int, str] | None = None
) -> "Figure":
    """Draw each cell as a dot with its interval; ``gap`` is (index, name) of a row without one."""
    table = cells.table
    names: list[str] = [" / ".join(map(str, own)) or "total" for own in cells.labels]
    numbers = [cells.estimate, *cells.confidence_interval(level)]
    aside = np.zeros(len(names), dtype=bool)
    if isinstance(table, ComparisonTable):
        aside = np.ravel(table.in_others)[cells.places]
    if gap is not None:
        names.insert(*gap)
        numbers = [np.insert(values, gap[0], np.nan) for values in numbers]
        aside = np.insert(aside, gap[0], False)
    off = unreadable(*numbers)
    numbers = [np.where(off, np.nan, values) for values in numbers]
    missing = [name for k, name in enumerate(names) if off[k] and (gap is None or k != gap[0])]
    figure = new_figure(7.5, dotted_height(len(names)))
    axes = figure.subplots()
    dotted_rows(axes, names, *numbers, aside=aside)
    _write_titles(axes, table, level, which)
    if missing:
        axes.set_xlabel(f"{axes.get_xlabel()}\n{label_text(left_off(missing), 100)}")
    return figure


def _write_titles(axes: "Axes", table: AbstractEstimates, level: float, which: str) -> None:
    """Write the axis title and the title, which name the numbers and explain their intervals."""
    share = isinstance(table, ProportionTable)
    what = "share" if share else counted_text(table)
    if isinstance(table, ComparisonTable):
        what = f"{table.kind} of {' and '.join(table.names)}"
    axes.set_xlabel(f"{what}, with {level_text(level)} intervals, each alone")
    _write_title(axes, table, which)


def _write_title(axes: "Axes", table: AbstractEstimates, which: str) -> None:
    if isinstance(table, ProportionTable):
        own = [name for name in table.attributes if name not in table.given] or table.attributes
        title = " × ".join(map(label_text, own)) or "total"
        title += f" given {' × '.join(map(label_text, table.given))}" if table.given else ""
    else:
        title = title_text(table) if isinstance(table, MarginalTable | QueryTable) else ""
        title = title or " × ".join(map(label_text, table.headings))
    more = f" ({which})" if which else ""
    axes.set_title(f"{warning_text(table.private)}{title}{more}", fontsize="medium")


def _band(table: QueryTable, level: float) -> "Figure":
    """Draw answers in their order, as a step function with a band of intervals."""
    figure = new_figure(8, 4.4)
    axes = figure.subplots()
    low, high = table.confidence_interval(level)
    places = np.arange(table.estimate.size)
    axes.fill_between(places, low, high, step="mid", alpha=0.3, lw=0)
    axes.step(places, table.estimate, where="mid", lw=1.2)
    step = math.ceil(len(places) / 12)
    labels = [label_text(name, 18) for name in table.labels[0][::step]]
    axes.set_xticks(places[::step], labels, rotation=30, ha="right", fontsize="small")
    axes.set_ylabel(f"answer and {level_text(level)} interval, each alone")
    axes.set_xlabel(f"{label_text(table.headings[0])} (one label in {step})")
    _write_title(axes, table, "")
    return figure


def _by_group(table: ProportionTable) -> tuple[list[str], list[str], Callable[[Array], Array]]:
    """Return names of groups, names of parts, and a function that arranges cells by group."""
    axes = [table.attributes.index(name) for name in table.given]
    rest = [k for k in range(len(table.attributes)) if k not in axes]

    def names(which: list[int]) -> list[str]:
        cells = itertools.product(*(table.labels[k] for k in which))
        return [" / ".join(map(str, cell)) or "all" for cell in cells]

    groups = names(axes)

    def rows(values: Array) -> Array:
        return values.transpose([*axes, *rest]).reshape(len(groups), -1)

    return groups, names(rest), rows


def _shares(table: ProportionTable, level: float) -> "Figure":
    """Draw shares with one colour for each group; if there are too many, draw cells as dots."""
    groups, parts, rows = _by_group(table)
    if len(groups) > _MOST_SERIES or not 0 < len(parts) <= _MOST_POSITIONS:
        return _dots(table, level)
    estimate = rows(table.estimate)
    low, high = map(rows, table.confidence_interval(level))
    figure = new_figure(min(3.5 + 0.12 * len(groups) * len(parts) + 0.3 * len(parts), 14), 4.6)
    axes = figure.subplots()
    shift = np.linspace(-0.3, 0.3, len(groups)) if len(groups) > 1 else np.zeros(1)
    for k, name in enumerate(groups):
        x = np.arange(len(parts)) + shift[k]
        axes.vlines(x, low[k], high[k], color=f"C{k}", lw=2)
        axes.plot(x, estimate[k], "o", ms=4, color=f"C{k}", label=label_text(name))
    turned = {"rotation": 30, "ha": "right"} if len(parts) > 4 else {}
    axes.set_xticks(range(len(parts)), [label_text(name) for name in parts], **turned)
    axes.set_ylim(min(0.0, float(np.nanmin(estimate, initial=0))), None)
    axes.set_ylabel(f"share and {level_text(level)} interval, each alone")
    axes.legend(title=" / ".join(map(label_text, table.given)), fontsize="small",
                loc="upper left", bbox_to_anchor=(1, 1))  # fmt: skip
    _write_title(axes, table, "")
    return figure


def _cdfs(table: ProportionTable, level: float) -> "Figure":
    """Draw the cumulative shares of each group as steps, with bands for all steps together."""
    groups, _, rows = _by_group(table)
    if len(groups) > _MOST_GROUPS:
        raise ParameterError(
            f"plot: expected at most {_MOST_GROUPS} groups of a CDF, got {len(groups)}; hint: "
            "fewer attributes in given="
        )
    estimate = rows(table.estimate)
    low, high = map(rows, table.confidence_interval(level, simultaneous=True))
    steps = table.steps or ()
    ends = shown_places(np.array([place(step) for step in steps], dtype=np.float64), steps)
    known = np.isfinite(ends)
    figure = new_figure(8, 4.6)
    axes = figure.subplots()
    for k, name in enumerate(groups):
        x, y, a, b = (_last_repeated(v[known]) for v in (ends, estimate[k], low[k], high[k]))
        x[-1] += (x[-1] - x[0]) / max(len(x) - 2, 1) if len(x) > 2 else 1.0
        axes.fill_between(x, a, b, step="post", color=f"C{k % 10}", alpha=0.25, lw=0)
        axes.step(x, y, where="post", color=f"C{k % 10}", lw=1.4, label=label_text(name))
    axes.set_ylim(0, 1.04)
    axes.set_xlabel(f"up to this {label_text(table.headings[-1])}")
    axes.set_ylabel(f"share; {level_text(level)} bands, all together")
    if table.given:
        axes.legend(title=" / ".join(map(label_text, table.given)), fontsize="small")
    _write_steps(axes, table, ends)
    _write_title(axes, table, "")
    return figure


def _write_steps(axes: "Axes", table: ProportionTable, ends: Array) -> None:
    """Write the labels of the steps on the axis, if the steps are categories, not numbers."""
    labels = table.labels[-1]
    if all(isinstance(name, str) for name in labels) and ends.tolist() == list(range(len(labels))):
        step = math.ceil(len(labels) / 12)
        names = [label_text(name, 18) for name in labels[::step]]
        axes.set_xticks(ends[::step], names, rotation=30, ha="right", fontsize="small")


def _last_repeated(values: Array) -> Array:
    """Return the values with the last one repeated, so that the last step of a plot has a width."""
    return np.append(values, values[-1])
