"""Pictures inside a page, narrow enough for a phone."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....drawing import (
    OURS,
    THEIRS,
    dotted_rows,
    label_text,
    left_off,
    number_ticks,
    svg_of,
    unreadable,
)
from .render import number, shown

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

_WIDTH = 4.2  # inches, so that letters on a phone are as large as on a wider page
_ROW = 0.22  # inches of a line
_SCALE = 0.3  # inches of an axis with numbers, above or below the lines
_PANEL, _ABREAST = 1.3, 3  # inches of a panel over time, and most panels side by side
_PROFILE = 2.2  # inches of a picture of many cells
_MOST_NAME = 24  # characters of a line's name: enough for a bin of dates
_MOST_BELOW = 6  # most names below a picture of many cells
_MOST_ACROSS, _MOST_WRITTEN = 20, 12  # most columns of colours with names, and most with numbers
_DARK = 0.6  # share of the darkest colour, above which numbers are white
_MOST_STEPS = 600  # points of a picture of many cells


class Picture(NamedTuple):
    """A picture as SVG, with its size, and a name and description for screen readers."""

    svg: "Markup"
    width: float
    height: float
    title: str
    description: str
    caption: str = ""


class Row(NamedTuple):
    """One line of a picture of intervals: a heading, or an estimate with its interval."""

    name: str
    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    aside: bool = False  # whether it is ignored in choosing the scale

    @property
    def is_heading(self) -> bool:
        """Whether this line is a heading, without a number."""
        return math.isnan(self.low)


def interval_chart(
    rows: Sequence[Row], name: str, title: str, description: str, *, from_zero: bool = True
) -> Picture:
    """Draw a picture with a line for each interval and a dot for each estimate.

    Headings have their own lines.
    """
    from matplotlib.transforms import blended_transform_factory

    names, *columns = zip(*rows, strict=True)
    headings = {k: shown(row.name, 2 * _MOST_NAME) for k, row in enumerate(rows) if row.is_heading}
    estimate, low, high, aside = map(np.array, columns)
    off = unreadable(estimate, low, high, from_zero=from_zero)
    estimate, low, high = (np.where(off, np.nan, values) for values in (estimate, low, high))
    missing = [name for k, name in enumerate(_full_names(rows)) if off[k] and k not in headings]

    def draw(axes: "Axes") -> None:
        own = [" " if k in headings else shown(name, _MOST_NAME) for k, name in enumerate(names)]
        dotted_rows(axes, own, estimate, low, high, aside)
        at_left = blended_transform_factory(axes.figure.transFigure, axes.transData)
        for k, name in headings.items():  # headings may be longer, as nothing is drawn beside them
            said = label_text(name, 2 * _MOST_NAME)
            axes.text(
                0.01,
                k,
                said,
                transform=at_left,
                va="center",
                size="small",
                weight="bold",
                in_layout=False,
            )
        if not from_zero and not off.all():
            least, most = np.nanmin(low), np.nanmax(high)
            beside = 0.04 * float(most - least) or 1.0
            axes.set_xlim(least - beside, most + beside)
        _scale_above(axes)

    picture = _picture(draw, _SCALE + _ROW * len(rows), name, title, description)
    return picture._replace(caption=left_off(missing))


def _full_names(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the name of each row, with the name of its heading before it."""
    heading = ""
    for row in rows:
        heading = f"{row.name} · " if row.is_heading else heading
        yield heading + row.name


def comparison_chart(
    names: Sequence[str], ours: Array, theirs: Array, name: str, title: str, description: str
) -> Picture:
    """Draw a line for each name, with two marks: our value, and a value to compare it with."""

    def draw(axes: "Axes") -> None:
        lines = np.arange(len(names))
        dotted_rows(axes, [shown(name, _MOST_NAME) for name in names], ours, ours, ours)
        axes.hlines(lines, ours, theirs, color="0.8", lw=1, zorder=1)
        axes.plot(theirs, lines, "s", ms=4, color=THEIRS)
        _scale_above(axes)

    return _picture(draw, _SCALE + _ROW * len(names), name, title, description)


def heat_chart(
    shown_cells: Array,
    names: tuple[Sequence[str], Sequence[str]],
    scale: tuple[float, float],
    name: str,
    title: str,
    description: str,
    digits: int = 0,
) -> Picture:
    """Draw a table of two attributes as colours, with numbers if all fit in their cells.

    ``scale``: the numbers of the lightest and of the darkest colour. NaN cells are grey.
    Numbers have ``digits`` digits after the decimal mark.
    """
    rows, columns = shown_cells.shape
    down, across = ([shown(one, _MOST_NAME) for one in own] for own in names)
    written = columns <= _MOST_WRITTEN
    least, most = scale

    def draw(axes: "Axes") -> None:
        grey = np.zeros(shown_cells.shape)
        axes.pcolormesh(grey, cmap="Greys", vmin=-0.2, vmax=1, edgecolors="white", lw=0.5)
        masked = np.ma.masked_invalid(shown_cells)
        axes.pcolormesh(masked, cmap="Blues", vmin=least, vmax=most, edgecolors="white", lw=0.5)
        for (row, column), value in np.ndenumerate(shown_cells):
            if written and math.isfinite(value):
                text = number(value, digits)
                ink = "white" if value - least > _DARK * (most - least) else "black"
                place = (column + 0.5, row + 0.5)
                axes.text(*place, text, ha="center", va="center", size="x-small", color=ink)
        axes.set_ylim(rows, 0)
        axes.xaxis.tick_top()
        step = -(-columns // _MOST_ACROSS)
        turned = {"rotation": 45, "ha": "left"} if max(map(len, across)) * columns > 40 else {}
        axes.set_xticks(np.arange(0, columns, step) + 0.5, across[::step], **turned)
        axes.set_yticks(np.arange(rows) + 0.5, down)
        figure: Any = axes.figure
        figure.draw_without_rendering()  # which lays the picture out, so that widths are known
        room = axes.get_window_extent().width / columns
        if any(text.get_window_extent().width > room for text in axes.texts):
            for text in [*axes.texts]:
                text.remove()

    most_letters = max(map(len, across))
    above = 0.08 * most_letters if most_letters * columns > 40 else 0.0
    return _picture(draw, _SCALE + above + _ROW * rows, name, title, description)


def profile_chart(
    estimate: Array,
    low: Array,
    high: Array,
    names: Sequence[str],
    name: str,
    title: str,
    description: str,
) -> Picture:
    """Draw the estimates of many cells as a line of steps, with their intervals as a band.

    Only as many names of cells are written as fit.
    """
    groups = np.array_split(np.arange(estimate.size), min(estimate.size, _MOST_STEPS))
    off = unreadable(estimate, low, high)
    estimate, low, high = (np.where(off, np.nan, values) for values in (estimate, low, high))
    middle = [estimate[g].mean() for g in groups]
    least = [np.fmin.reduce(low[g]) for g in groups]
    most = [np.fmax.reduce(high[g]) for g in groups]

    def draw(axes: "Axes") -> None:
        axes.axhline(0, color="0.6", lw=0.8, zorder=0)
        axes.stairs(most, baseline=least, fill=True, color="#bcd7ea", lw=0)
        axes.stairs(middle, baseline=None, color=OURS, lw=1.2)
        axes.set_xlim(0, len(groups))
        named = groups[:: -(-len(groups) // _MOST_BELOW)]
        axes.set_xticks(
            np.arange(0, len(groups), -(-len(groups) // _MOST_BELOW)) + 0.5,
            [shown(names[g[0]], _MOST_NAME) for g in named],
            rotation=20,
            ha="right",
        )
        axes.grid(axis="y", color="0.93")
        axes.locator_params(axis="y", nbins=4, steps=[1, 2, 5, 10])
        axes.yaxis.set_major_formatter(_tick)

    said = left_off([names[k] for k in np.flatnonzero(off).tolist()])
    caption = f"{description} {said}".rstrip()
    return _picture(draw, _PROFILE, name, title, description)._replace(caption=caption)


def series_chart(
    ticks: Sequence[int],
    panels: Sequence[tuple[str, Array, Array, Array]],
    name: str,
    title: str,
    description: str,
    times: Sequence[str] = (),
) -> Picture:
    """Draw a panel for each cell of a stream: estimates over time, in a band of intervals.

    All panels have the same scale.

    A panel has the name of a cell, its estimates, and the bounds of its intervals. ``times`` are
    written below the ticks, in place of their numbers.
    """
    abreast = min(_ABREAST, math.ceil(math.sqrt(len(panels))))
    stacked = -(-len(panels) // abreast)
    numbers = [np.concatenate(own) for own in list(zip(*panels, strict=True))[1:]]
    off = unreadable(*numbers).reshape(len(panels), -1)
    at = [f"in {time}" for time in times] or [f"at tick {tick}" for tick in ticks]
    missing = [f"{panels[k][0]} {at[tick]}" for k, tick in np.argwhere(off)]

    def draw(axes: "Axes") -> None:
        figure: Any = axes.figure
        axes.remove()
        grid = figure.subplots(stacked, abreast, squeeze=False, sharex=True, sharey=True).ravel()
        for own, (cell, *drawn), without in zip(grid, panels, off, strict=False):
            estimate, low, high = (np.where(without, np.nan, values) for values in drawn)
            own.set_frame_on(False)
            own.tick_params(length=0)
            own.axhline(0, color="0.6", lw=0.8, zorder=0)
            own.fill_between(ticks, low, high, color="#bcd7ea", lw=0)
            own.plot(ticks, estimate, color=OURS, lw=1.2, marker="o", ms=2)
            own.set_title(label_text(cell, _MOST_NAME * 2 // abreast), fontsize="small")
            own.grid(color="0.93")
            number_ticks(own, 2 if times and abreast > 1 else 4, ticks, times)
            own.locator_params(axis="y", nbins=4, steps=[1, 2, 5, 10])
            own.yaxis.set_major_formatter(_tick)
        for own in grid[len(panels) :]:
            own.remove()

    below = _SCALE * (2 if times else 1)
    picture = _picture(draw, below + _PANEL * stacked, name, title, description)
    return picture._replace(caption=left_off(missing))


def _scale_above(axes: "Axes") -> None:
    """Write the axis of numbers, with round numbers, above the lines of a picture."""
    axes.xaxis.tick_top()
    axes.locator_params(axis="x", nbins=4, steps=[1, 2, 5, 10])
    axes.xaxis.set_major_formatter(_tick)


def _tick(value: float, _: float) -> str:
    """Return a number beside a tick mark of an axis as text, as short as possible."""
    digits = next((k for k in range(9) if abs(round(value, k) - value) < 1e-9), 9)
    return number(value, digits) if 1e-9 < abs(value) < 1e15 else f"{value:.6g}"


def _picture(
    draw: Callable[["Axes"], None], height: float, name: str, title: str, description: str
) -> Picture:
    from markupsafe import Markup

    svg = Markup(svg_of(draw, _WIDTH, height, name))
    return Picture(svg, 72 * _WIDTH, round(72 * height, 2), title, description)
