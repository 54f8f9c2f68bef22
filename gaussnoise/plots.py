"""Pictures of releases. Figures are made without pyplot, so nothing global changes and no display is needed."""

from typing import TYPE_CHECKING

import numpy as np

from .tables._text import marginal_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .tables import MarginalTable, Plan, TableRelease

_MOST_ROWS = 24
_OURS, _THEIRS = "#1b6ca8", "#c0504d"


def plot_release(release: "TableRelease", marginal: tuple[str, ...] | None = None) -> "Figure":
    """One released marginal with its 95 % intervals, beside the standard deviations of all of them.

    Args:
        release: what to draw.
        marginal: which table to show; the first of two attributes if omitted.

    Returns:
        A matplotlib Figure; save it with ``.savefig(path)``.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    chosen = next((m for m in release if len(m) == 2), next(iter(release))) if marginal is None else marginal
    table = release[chosen]
    if marginal is None and len(chosen) == 2 and table.estimate.shape[0] < table.estimate.shape[1]:
        table = release[chosen[::-1]]  # the attribute of fewer values makes the series
    _draw_table(left, table)
    _draw_comparison(right, release.plan)
    status = "" if release.private else "SIMULATION, NOT PRIVATE — "
    figure.suptitle(
        f"{status}{release.plan.rho:.4g}-zCDP, {release.plan.neighbors} neighbours: unbiased marginal counts"
    )
    return figure


def _draw_table(axes: "Axes", table: "MarginalTable") -> None:
    """Counts with intervals: one line per value of the last attribute, positions along the first."""
    names = [_text(name) for name in table.attributes]
    rows = table.estimate.reshape(-1, table.estimate.shape[-1]) if names else table.estimate.reshape(1, 1)
    half = (table.confidence_interval()[1] - table.estimate).reshape(rows.shape)
    if len(names) < 2:
        axes.errorbar(range(rows.shape[1]), rows[0], half[0], fmt="o", capsize=3, color=_OURS)
        positions = [_text(label) for label in table.labels[0]] if names else ["total"]
        title = names[0] if names else "total"
    else:
        reach = min(0.3, 0.08 * (rows.shape[1] - 1))
        shift = np.linspace(-reach, reach, rows.shape[1])
        for k, label in enumerate(table.labels[-1]):
            axes.errorbar(
                np.arange(len(rows)) + shift[k], rows[:, k], half[:, k], fmt="o", ms=4, capsize=2, label=_text(label)
            )
        axes.legend(title=names[-1], fontsize="small")
        positions = [" / ".join(map(_text, _labels_at(table, row))) for row in range(len(rows))]
        title = " × ".join(names)
    axes.set_xticks(range(len(positions)), positions, rotation=30, ha="right")
    axes.axhline(0, color="0.8", lw=0.8, zorder=0)
    axes.set_ylabel("rows (estimate and 95 % interval)")
    axes.set_title(f"{title}: sd {table.standard_deviation.flat[0]:.3g} in every cell", fontsize="medium")


def _labels_at(table: "MarginalTable", row: int) -> list:
    """Names of all but the last attribute's cell, for a row of the flattened table."""
    cell = np.unravel_index(row, table.estimate.shape[:-1])
    return [labels[k] for labels, k in zip(table.labels, cell, strict=False)]


def _draw_comparison(axes: "Axes", plan: "Plan") -> None:
    """Standard deviation of every marginal, beside independent noise at the same budget."""
    marginals = sorted(plan.marginals, key=lambda m: plan.standard_deviation(*m))
    step = max(1, -(-len(marginals) // _MOST_ROWS))
    shown = marginals[::step]
    ours = [plan.standard_deviation(*m) for m in shown]
    theirs = [plan.independent_standard_deviation(*m) for m in shown]
    rows = np.arange(len(shown))
    axes.hlines(rows, ours, theirs, color="0.8", zorder=1)
    axes.plot(ours, rows, "o", color=_OURS, ms=5, label="this release (optimal)")
    axes.plot(theirs, rows, "s", color=_THEIRS, ms=5, label="independent noise, best split")
    axes.set_yticks(rows, [_text(marginal_name(m), 34) for m in shown], fontsize="x-small")
    axes.set_xlim(left=0)
    axes.set_xlabel("standard deviation of each cell")
    axes.legend(fontsize="small")
    part = "" if step == 1 else f" ({len(shown)} of {len(marginals)} marginals shown)"
    axes.set_title(f"{plan.improvement:.2f} times less variance{part}", fontsize="medium")


def _text(label: object, length: int = 24) -> str:
    """A label as matplotlib should show it: one short line, no formulas, and not hidden by a leading underscore."""
    line = " ".join(str(label).split())
    line = line if len(line) <= length else line[: length - 1] + "…"
    return (" " if line[:1] in ("", "_") else "") + line.replace("$", r"\$")
