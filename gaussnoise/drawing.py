"""The common code of pictures: figures without a display, two colours, and escaped labels."""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from .text import significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS, THEIRS, WITNESS = "#1b6ca8", "#c0504d", "#e69f00"
_TOO_LONG = 5  # an interval this many times longer than the scale of the others is left off
_MOST_NAMED = 3  # most names in the sentence on numbers left off


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure that needs neither pyplot nor a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def label_text(label: object, length: int = 24) -> str:
    """Return a label as one short line, escaped so that matplotlib shows it as plain text."""
    line = " ".join(str(label).split())
    line = line if len(line) <= length else line[: length - 1] + "…"
    return (" " if line[:1] in ("", "_") else "") + line.replace("$", r"\$")


def number_ticks(
    axes: "Axes", most: int | Literal["auto"], ticks: Sequence[int] = (), times: Sequence[str] = ()
) -> None:
    """Label an axis with at most ``most`` whole numbers, or the ``times`` of these ``ticks``."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(most, integer=True))
    if times:
        names = dict(zip(ticks, map(_in_two_lines, times), strict=True))
        axes.xaxis.set_major_formatter(lambda x, _: names.get(round(x), ""))


def _in_two_lines(time: str) -> str:
    """Return "January 2026" as "Jan" above "2026", and "week 5 of 2026" as "W5" above "2026"."""
    short = re.sub(r"([A-Z][a-z]{2})[a-z]+|week (\d+) of", lambda m: m[1] or f"W{m[2]}", time)
    return "\n".join(short.rsplit(" ", 1))


def unreadable(
    estimate: NDArray, low: NDArray, high: NDArray, *, from_zero: bool = True
) -> NDArray[np.bool_]:
    """Return a mask of the numbers to leave out of a picture, so that the others can be read.

    A number is left out if it has no estimate or no finite interval. The scale spans the shortest
    intervals: at least two, and at least half of all. If ``from_zero``, the scale also contains 0.
    A number is also left out if its interval contains all these shortest intervals, and is far
    longer than the scale.
    """
    off = ~(np.isfinite(estimate) & np.isfinite(low) & np.isfinite(high))
    known = np.flatnonzero(~off)
    known = known[np.argsort((high - low)[known], kind="stable")]  # the shortest first
    least, most = np.minimum.accumulate(low[known]), np.maximum.accumulate(high[known])
    for k in range(max(2, -(-len(known) // 2)), len(known)):
        ends = least[k - 1], most[k - 1]
        scale = max(*ends, 0) - min(*ends, 0) if from_zero else ends[1] - ends[0]
        if 0 < _TOO_LONG * scale < (high - low)[known[k]]:
            longer = known[k:]
            off[longer] = (low[longer] <= ends[0]) & (high[longer] >= ends[1])
            break
    return off


def left_off(names: Sequence[object]) -> str:
    """Return a sentence with the names of numbers that a picture leaves out; "" without names."""
    if not names:
        return ""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    said = ", ".join(map(str, names[:_MOST_NAMED]))
    return f"Not drawn, because noise hides too much of them: {said}{more}."


def dotted_rows(
    axes: "Axes",
    names: Sequence[object],
    estimate: NDArray,
    low: NDArray,
    high: NDArray,
    aside: NDArray[np.bool_] | None = None,
) -> None:
    """Draw a row for each number, from top to bottom: its name, a dot and its interval.

    For NaN, only the name is drawn. Numbers in the mask ``aside`` have no effect on the scale. If
    such a number is far outside the scale, an arrow and the value of the number are drawn.
    """
    rows = np.arange(len(names))
    axes.hlines(rows, low, high, color=OURS, lw=1.5)
    axes.plot(estimate, rows, "o", ms=4, color=OURS)
    axes.set_yticks(rows, [label_text(name, 40) for name in names], fontsize="small")
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.axvline(0, color="0.8", lw=0.8, zorder=0)
    axes.grid(axis="x", color="0.93", zorder=0)
    axes.set_axisbelow(True)
    if aside is not None:
        _keep_scale(axes, estimate, low, high, aside)


def _keep_scale(
    axes: "Axes", estimate: NDArray, low: NDArray, high: NDArray, aside: NDArray[np.bool_]
) -> None:
    """Set the scale by the cells outside ``aside``; draw far cells in ``aside`` as arrows."""
    rest = ~aside & np.isfinite(low) & np.isfinite(high)
    if not rest.any():
        return
    least, most = min(low[rest].min(), 0.0), max(high[rest].max(), 0.0)
    length = most - least
    far = aside & ((estimate > most + length) | (estimate < least - length))
    if not length or not far.any():
        return
    axes.set_xlim(least - 0.05 * length, most + 0.05 * length)
    for k in np.flatnonzero(far):
        up = bool(estimate[k] > 0)
        axes.annotate(
            f"{'+' if up else ''}{significant(float(estimate[k]), 4)}".replace("-", "−"),
            xy=(float(up), k),
            xytext=(-22 if up else 22, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="right" if up else "left",
            va="center",
            fontsize="small",
            color=OURS,
            arrowprops={"arrowstyle": "->", "color": OURS},
        )


def dotted_height(rows: int) -> float:
    """Return the height in inches of a picture by :func:`dotted_rows` with this number of rows."""
    return 1.4 + 0.24 * rows


def svg_of(draw: "Callable[[Axes], None]", width: float, height: float, name: str) -> str:
    """Return the SVG elements of a picture, without the outer tag.

    Equal pictures give equal text. Letters stay text, which a page shows in its own font. The
    user's matplotlib styles have no effect.

    Args:
        draw: a function that draws on empty axes.
        width: the width in inches.
        height: the height in inches.
        name: a name that no other picture of the page has.
    """
    from matplotlib import style

    small = dict.fromkeys(["axes.labelsize", "xtick.labelsize", "ytick.labelsize"], "small")
    own = {"axes.axisbelow": True, "font.size": 11, "svg.fonttype": "none", "svg.hashsalt": name}
    buffer = io.StringIO()
    with style.context(["default", small, own]), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # matplotlib's font lacks some letters
        figure = new_figure(width, height)
        axes = figure.add_subplot(frameon=False)
        axes.tick_params(length=0)
        draw(axes)
        figure.patch.set_visible(False)
        unsaid = dict.fromkeys(["Creator", "Date", "Format", "Type"])
        figure.savefig(buffer, format="svg", metadata=unsaid)
    _, _, inside = buffer.getvalue().partition("<svg")
    inside = re.sub(r"^[^>]*>|<style.*?</style>|</svg>\s*$", "", inside, flags=re.DOTALL)
    return re.sub(r'<g id="[^"]*">', "<g>", inside)  # unused names, which other pictures have too
