"""Pictures of tables.

Figures are made without pyplot, so nothing global changes and no display is needed.
"""

import math
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...drawing import OURS, label_text, new_figure
from ...errors import ParameterError
from .biased import BiasedTable
from .table import AbstractEstimates, MarginalTable, QueryTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


Array = NDArray[np.float64]

_MOST_SERIES = 20  # most series with different colours
_MOST_PANELS = 16
_MOST_NUMBERS = 200  # most numbers written into cells
_MOST_POSITIONS = 25  # most labels along an axis of intervals
_LARGEST = 14.0  # most inches of a heat map, in either direction
_PANEL = 3.5  # inches of a table beside a comparison
_LABEL_ROOM = 0.17  # inches from one label to the next
_VISIBLY_NEGATIVE = 0.1  # share of the largest cell; zero is mid-scale if more
_INSIGNIFICANT = "0.87"


def plot_intervals(table: MarginalTable | QueryTable, level: float = 0.95) -> "Figure":
    """Draw the cells of one table with their intervals.

    Each interval contains its true count with probability ``level``.

    The values of the last attribute have colours, and the values of the others have positions:
    ``release["sex", "age"]`` and ``release["age", "sex"]`` are drawn differently.

    Args:
        table: the table to draw. If it has several attributes, the last has at most 20 values.
        level: the level of each interval alone.

    Returns:
        A matplotlib Figure; save it with ``.savefig(path)``.

    Raises:
        ParameterError: not a released table of counts, a level outside (0, 1), or too many values.

    >>> import pyarrow as pa
    >>> survey = gn.plan(gn.Schema([gn.Attribute("sex", ["f", "m"])]), 1, gn.zCDP(0.5))
    >>> simulation = survey.simulate(pa.table({"sex": ["f", "m", "f"]}), np.random.default_rng(0))
    >>> print(plot_intervals(simulation["sex"], 0.9).axes[0].get_ylabel())
    rows (unbiased estimate and 90 % interval)
    """
    if not isinstance(table, MarginalTable | QueryTable):
        raise ParameterError(
            "plot_intervals: expected a MarginalTable or a QueryTable, got "
            f"{type(table).__name__}; "
            "hint: one table of a release, or its answers"
        )
    shape = table.estimate.shape
    if len(shape) > 1 and shape[-1] > _MOST_SERIES:
        raise ParameterError(
            f"plot_intervals: expected at most {_MOST_SERIES} values of the last attribute, got "
            f"{shape[-1]}; "
            "hint: put another attribute last, or use plot_heatmap"
        )
    series = shape[-1] if len(shape) > 1 else 1
    positions = table.estimate.size // series
    width = min(max(positions * max(0.35, 0.08 * series), 4.5), _LARGEST)
    figure = new_figure(1.5 + width + _margin(table, -1 if series > 1 else None), 5.2)
    axes = figure.subplots()
    draw_intervals(axes, table, level)
    axes.set_title(warning_text(table.private) + title_text(table), fontsize="medium")
    return figure


def plot_heatmap(table: MarginalTable | QueryTable | BiasedTable) -> "Figure":
    """Draw the cells of one table as colours, and as numbers where there is room.

    Cells that are not significantly different from 0 at 95 %, each tested alone, are grey. If
    negative estimates matter, the colour scale is diverging, with zero the palest; otherwise it is
    sequential. With three attributes, there is a panel for each value of the attribute with the
    fewest values.

    Args:
        table: a table of at most three attributes; cells of a biased table are not tested.

    Returns:
        A matplotlib Figure; save it with ``.savefig(path)``.

    Raises:
        ParameterError: not a table of counts, more than three attributes, or more than 16 panels.

    >>> import pyarrow as pa
    >>> survey = gn.plan(gn.Schema([gn.Attribute("sex", ["f", "m"])]), 1, gn.zCDP(0.5))
    >>> simulation = survey.simulate(pa.table({"sex": ["f", "m", "f"]}), np.random.default_rng(0))
    >>> print(plot_heatmap(simulation["sex"]).get_suptitle().splitlines()[0])
    SIMULATION, NOT PRIVATE — sex: sd 1 in every cell
    """
    from matplotlib.cm import ScalarMappable

    if not isinstance(table, MarginalTable | QueryTable | BiasedTable):
        raise ParameterError(
            "plot_heatmap: expected a MarginalTable, a QueryTable or a BiasedTable, got "
            f"{type(table).__name__}; "
            "hint: one table of a release"
        )
    ways, shape = table.estimate.ndim, table.estimate.shape
    if ways > 3:
        raise ParameterError(
            f"plot_heatmap: expected at most 3 attributes, got {ways}; hint: draw a part of them, "
            "release[two, names]"
        )
    order = (
        sorted(range(3), key=lambda axis: axis != np.argmin(shape))
        if ways == 3
        else list(range(ways))
    )
    panel, down, across = [None] * (ways < 3) + order + [None] * (2 - ways)
    size = [1 if axis is None else shape[axis] for axis in (panel, down, across)]
    if size[0] > _MOST_PANELS:
        raise ParameterError(
            f"plot_heatmap: expected at most {_MOST_PANELS} values of one of 3 attributes, got at "
            f"least {size[0]}; "
            "hint: draw two of them"
        )
    cells = table.estimate.transpose(order).reshape(size).astype(np.float64)
    shown = np.ma.masked_array(cells, _insignificant(table).transpose(order).reshape(size))
    panels, rows, columns = size
    abreast = math.ceil(math.sqrt(panels))
    stacked = math.ceil(panels / abreast)
    numbers = _numbers(table, cells, abreast, stacked)
    room = 0.15 + 0.075 * max(map(len, numbers.flat), default=0)
    width = min(max(columns * max(room, _LABEL_ROOM), 2), _LARGEST / abreast)
    height = min(max(rows * 1.5 * _LABEL_ROOM, 1.5), _LARGEST / stacked)

    figure = new_figure(
        max(abreast * width + _margin(table, down) + 1.5, 5.5),
        stacked * (height + 0.3) + _margin(table, across) + 0.8,
    )
    colours, scale = _colours(cells)
    grid = figure.subplots(stacked, abreast, squeeze=False).ravel()
    for k, axes in enumerate(grid[:panels]):
        _draw_image(axes, shown[k], colours, scale)
        _write(axes, numbers[k], shown[k], colours, scale)
        _name_cells(axes.yaxis, table, down, height, named=k % abreast == 0)
        _name_cells(axes.xaxis, table, across, width, named=k + abreast >= panels)
        if panel is not None:
            axes.set_title(
                label_text(f"{table.headings[panel]} = {table.labels[panel][k]}", 34),
                fontsize="small",
            )
    for axes in grid[panels:]:
        axes.remove()
    quality = "biased" if isinstance(table, BiasedTable) else "unbiased estimate"
    thin = max(20, 4 * figure.get_figheight())
    figure.colorbar(
        ScalarMappable(scale, colours),
        ax=list(grid[:panels]),
        aspect=thin,
        label=f"{label_text(table.noun)} ({quality})",
    )
    figure.suptitle(
        fill(warning_text(table.private) + title_text(table), int(11 * figure.get_figwidth()))
        + _grey_text(shown),
        fontsize="medium",
    )
    return figure


def _draw_image(
    axes: "Axes", shown: "np.ma.MaskedArray", colours: "Colormap", scale: "Normalize"
) -> "AxesImage":
    """Draw cells as colours without interpolation; masked cells are grey."""
    axes.set_facecolor(_INSIGNIFICANT)
    return axes.imshow(shown, cmap=colours, norm=scale, aspect="auto", interpolation="nearest")


def _insignificant(table: MarginalTable | QueryTable | BiasedTable) -> NDArray[np.bool_]:
    """Return for each cell whether its own 95 % interval contains 0."""
    if isinstance(table, BiasedTable):
        return np.zeros(table.estimate.shape, dtype=bool)
    low, high = table.confidence_interval(0.95)
    return (low <= 0) & (high >= 0)


def _grey_text(shown: "np.ma.MaskedArray") -> str:
    """Return a sentence about grey cells, or "" if there are none."""
    return (
        "\ngrey: not significantly different from 0 at 95 %, each cell alone"
        if np.any(shown.mask)
        else ""
    )


def _numbers(
    table: MarginalTable | QueryTable | BiasedTable, cells: Array, abreast: int, stacked: int
) -> NDArray[np.str_]:
    """Return cells as text, with the digits that noise does not hide; "" if text does not fit."""
    _, rows, columns = cells.shape
    if cells.size > _MOST_NUMBERS:
        return np.full(cells.shape, "")
    if isinstance(table, BiasedTable):
        digits = int(table.estimate.dtype.kind == "f")
    else:
        sd = float(table.standard_deviation.min())
        digits = max(0, -math.floor(math.log10(2 * sd))) if sd > 0 else 0
    plain = [f"{cell:z.{digits}f}" for cell in cells.flat]
    texts = [
        text if len(text) <= 9 else f"{cell:.4g}"
        for text, cell in zip(plain, cells.flat, strict=True)
    ]
    across, down = (
        abreast * columns * (0.15 + 0.075 * max(map(len, texts))),
        stacked * rows * _LABEL_ROOM,
    )
    return np.array(texts if max(across, down) <= _LARGEST else [""] * cells.size).reshape(
        cells.shape
    )


def _write(
    axes: "Axes",
    numbers: NDArray[np.str_],
    shown: "np.ma.MaskedArray",
    colours: "Colormap",
    scale: "Normalize",
):
    """Write numbers into cells, in white on dark colours and else in black."""
    luminance = colours(scale(shown.filled(0)))[..., :3] @ (0.299, 0.587, 0.114)
    dark = ~np.ma.getmaskarray(shown) & (luminance < 0.5)
    for (row, column), text in np.ndenumerate(numbers):
        if text:
            ink = "white" if dark[row, column] else "black"
            axes.text(column, row, text, ha="center", va="center", fontsize="x-small", color=ink)


def _colours(cells: Array) -> "tuple[Colormap, Normalize]":
    """Return the colours and the scale of a heat map; its centre is 0 if negative cells matter."""
    from matplotlib import colormaps
    from matplotlib.colors import Normalize

    low, high = min(float(cells.min()), 0.0), max(float(cells.max()), 0.0)
    if -low > _VISIBLY_NEGATIVE * high:
        reach = max(-low, high)
        return colormaps["RdBu"], Normalize(-reach, reach)
    return colormaps["YlGnBu"], Normalize(low, high or 1.0)


def _name_cells(
    axis: "Axis",
    table: MarginalTable | QueryTable | BiasedTable,
    position: int | None,
    inches: float,
    named: bool,
) -> None:
    """Write as many labels of an attribute as fit along one side of a heat map."""
    if position is None or not named:
        axis.set_ticks([])
        return
    labels = table.labels[position]
    step = math.ceil(len(labels) * _LABEL_ROOM / inches)
    turned = (
        {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        if axis is axis.axes.xaxis
        else {}
    )
    axis.set_ticks(
        range(0, len(labels), step),
        [label_text(label) for label in labels[::step]],
        fontsize="x-small",
        **turned,
    )
    part = "" if step == 1 else f" (one label in {step})"
    axis.set_label_text(label_text(table.headings[position]) + part)


def _margin(table: MarginalTable | QueryTable | BiasedTable, position: int | None) -> float:
    """Return the inches that an attribute's labels need beside the cells."""
    return (
        0.3
        if position is None
        else 0.6 + 0.07 * max(len(label_text(label)) for label in table.labels[position])
    )


def warning_text(private: bool) -> str:
    """Return the warning that simulations are not private; "" if the release is private."""
    return "" if private else "SIMULATION, NOT PRIVATE — "


def title_text(table: MarginalTable | QueryTable | BiasedTable) -> str:
    """Return the title of a picture: the attributes, and the standard deviations of the cells."""
    names = " × ".join(map(label_text, table.headings)) or "total"
    if isinstance(table, BiasedTable):
        return f"{names}, biased: {table.method}"
    low, high = table.standard_deviation.min(), table.standard_deviation.max()
    return (
        f"{names}: sd {high:.3g} in every cell"
        if low == high
        else f"{names}: sd {low:.3g} to {high:.3g}"
    )


def counted_text(table: AbstractEstimates) -> str:
    """Return in words the meaning of the numbers in a table of counts."""
    return f"{label_text(table.noun)} (unbiased estimate)"


def draw_cells(axes: "Axes", table: MarginalTable | QueryTable) -> None:
    """Draw counts of two attributes as colours, grey where they are not significant."""
    shown = np.ma.masked_array(table.estimate.astype(np.float64), _insignificant(table))
    colours, scale = _colours(table.estimate)
    image = _draw_image(axes, shown, colours, scale)
    for axis, position in ((axes.yaxis, 0), (axes.xaxis, 1)):
        _name_cells(axis, table, position, _PANEL, named=True)
    axes.figure.colorbar(image, ax=axes, label=counted_text(table))
    axes.set_title(title_text(table) + _grey_text(shown), fontsize="medium")


def draw_intervals(axes: "Axes", table: MarginalTable | QueryTable, level: float = 0.95) -> None:
    """Draw counts with intervals.

    Each line is a value of the last attribute, at the values of the other attributes.
    """
    from matplotlib import colormaps

    names = [label_text(name) for name in table.headings]
    rows = (
        table.estimate.reshape(-1, table.estimate.shape[-1])
        if names
        else table.estimate.reshape(1, 1)
    )
    half = (table.confidence_interval(level)[1] - table.estimate).reshape(rows.shape)
    if len(names) < 2:
        axes.errorbar(range(rows.shape[1]), rows[0], half[0], fmt="o", capsize=3, color=OURS)
        positions = [label_text(label) for label in table.labels[0]] if names else ["total"]
    else:
        count = rows.shape[1]
        reach = min(0.3, 0.08 * (count - 1))
        shift = np.linspace(-reach, reach, count)
        for k, label in enumerate(table.labels[-1]):
            colour = f"C{k}" if count <= 10 else colormaps["turbo"](k / (count - 1))
            axes.errorbar(
                np.arange(len(rows)) + shift[k],
                rows[:, k],
                half[:, k],
                fmt="o",
                ms=4,
                capsize=2,
                color=colour,
                label=label_text(label),
            )
        # beside the axes, where it hides no cell
        axes.legend(
            title=names[-1],
            fontsize="small",
            ncols=math.ceil(count / _MOST_SERIES),
            loc="upper left",
            bbox_to_anchor=(1, 1),
        )
        positions = [
            " / ".join(map(label_text, _labels_at(table, row))) for row in range(len(rows))
        ]
    step = math.ceil(len(positions) / _MOST_POSITIONS)
    axes.set_xticks(range(0, len(positions), step), positions[::step], rotation=30, ha="right")
    if step > 1:
        axes.set_xlabel(f"{' / '.join(names[:-1] or names)} (one label in {step})")
    axes.axhline(0, color="0.8", lw=0.8, zorder=0)
    axes.set_ylabel(f"{counted_text(table)[:-1]} and {100 * level:g} % interval)")
    axes.set_title(title_text(table), fontsize="medium")


def _labels_at(table: MarginalTable | QueryTable, row: int) -> list:
    """Return the labels of all attributes but the last, for a row of the flattened table."""
    cell = np.unravel_index(row, table.estimate.shape[:-1])
    return [labels[k] for labels, k in zip(table.labels, cell, strict=False)]
