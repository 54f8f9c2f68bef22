"""What pictures share: figures without a display, two colours, and labels shown as they are."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS, THEIRS = "#1b6ca8", "#c0504d"


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure that needs neither pyplot nor a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def label_text(label: object, length: int = 24) -> str:
    """A label as matplotlib should show it: one short line, no formulas, never hidden."""
    line = " ".join(str(label).split())
    line = line if len(line) <= length else line[: length - 1] + "…"
    return (" " if line[:1] in ("", "_") else "") + line.replace("$", r"\$")
