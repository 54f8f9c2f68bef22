"""Plots of tables over time: a line for each cell, inside the band of its intervals."""

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..drawing import OURS, label_text, new_figure, number_ticks
from ..tables.release.cells import first_of, in_order
from ..tables.release.plots import counted_text, warning_text
from ..tables.release.table import AbstractEstimates, ProportionTable
from ..tables.release.tidy import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .series import SeriesTable

_TOGETHER = 5  # most lines in one panel
_MOST_PANELS = 12
_ABREAST = 4
_POINTS = 40  # most ticks that have a dot


def plot_series(series: "SeriesTable", level: float, simultaneous: bool) -> "Figure":
    """Return a figure of a series: for each cell, a line over the ticks and a band of intervals."""
    known = [last for _, last in series.windows]
    ticks = np.array(known)
    flat = [values.reshape(len(ticks), -1) for values in
            (series.estimate, *series.confidence_interval(level, simultaneous))]  # fmt: skip
    names = [
        " / ".join(map(str, cell)) or "total" for cell in itertools.product(*series.labels[1:])
    ]
    cells = range(len(names))
    if len(names) > _MOST_PANELS:
        means = np.nan_to_num(flat[0]).mean(axis=0)
        cells = sorted(first_of(in_order(means, descending=True), _MOST_PANELS, "plot").tolist())
    together = len(names) <= _TOGETHER
    abreast = 1 if together else min(_ABREAST, math.ceil(math.sqrt(len(cells))))
    stacked = 1 if together else math.ceil(len(cells) / abreast)
    size = (8, 4.6) if together else (2.2 + 2.3 * abreast, 1.4 + 1.7 * stacked)
    figure = new_figure(*size)
    grid = figure.subplots(stacked, abreast, squeeze=False, sharex=True, sharey=True).ravel()
    for k, cell in enumerate(cells):
        axes = grid[0] if together else grid[k]
        colour = f"C{k}" if together and len(names) > 1 else OURS
        numbers = [values[:, cell] for values in flat]
        _draw(axes, ticks, numbers, colour, label_text(names[cell]))
        number_ticks(axes, "auto" if together or not series.times else 2, known, series.times)
        if not together:
            axes.set_title(label_text(names[cell]), fontsize="small")
    for axes in grid[1 if together else len(cells) :]:
        axes.remove()
    what = " × ".join(map(label_text, series.headings[1:])) or "total"
    given = getattr(series.parts[0], "given", ())
    groups = f" given {' × '.join(map(label_text, given))}" if given else ""
    if together and len(names) > 1:
        grid[0].legend(title=what, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    which = f" ({len(cells)} of {len(names)} cells)" if len(cells) < len(names) else ""
    how = "all together" if simultaneous else "each alone"
    figure.supxlabel(series.word, fontsize="medium")
    text = f"{_what(series.parts[0])}\n{level_text(level)} intervals, {how}"
    figure.supylabel(text, fontsize="small", multialignment="center")
    figure.suptitle(
        f"{warning_text(series.private)}{what}{groups}, {series.counted}{which}", fontsize="medium"
    )
    return figure


def _draw(
    axes: "Axes", ticks: np.ndarray, numbers: Sequence[np.ndarray], colour: str, name: str
) -> None:
    """Draw a cell of a series: its line, the band of its intervals, and dots if ticks are few."""
    estimate, low, high = numbers
    axes.fill_between(ticks, low, high, color=colour, alpha=0.25, lw=0)
    marker = "o" if len(ticks) <= _POINTS else ""
    axes.plot(ticks, estimate, marker=marker, ms=3, lw=1.2, color=colour, label=name)
    axes.axhline(0, color="0.8", lw=0.8, zorder=0)
    axes.grid(color="0.93", zorder=0)
    axes.set_axisbelow(True)


def _what(table: AbstractEstimates) -> str:
    """Return a word for a table's numbers: "share", "estimate", or the counted units."""
    if isinstance(table, ProportionTable):
        return "share"
    return counted_text(table) if hasattr(table, "nonnegative") else "estimate"
