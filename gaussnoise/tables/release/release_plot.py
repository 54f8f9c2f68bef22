"""The picture of a release: one of its tables, beside all standard deviations."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ...drawing import OURS, THEIRS, label_text, new_figure
from .merged import MergedPlan
from .noisy import AbstractRelease
from .plots import draw_cells, draw_intervals, warning_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..planning.plan import Plan

_MOST_ROWS = 24
_MOST_INTERVALS = 2**10  # larger tables of two attributes are drawn as colours
# most cells of a table that is drawn if none is named: as colours, or with intervals
_MOST_COLOURED, _MOST_CELLS = 2**22, 2**14


def plot_release(release: AbstractRelease, marginal: tuple[str, ...] | None = None) -> "Figure":
    """Draw one released marginal with 95 % intervals, beside all standard deviations.

    A table of two attributes and more than 1000 cells is drawn as a heat map. For a combination of
    releases, only the table is drawn.

    Args:
        release: the release to draw.
        marginal: the table to show. If omitted, the first table of two attributes is shown, unless
            it is very large. If all tables are very large, none is shown.

    Returns:
        A matplotlib Figure; save it with ``.savefig(path)``.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400})
    >>> survey = gn.plan(gn.Schema([gn.Attribute("sex", ["F", "M"])]), 1, gn.zCDP(0.1))
    >>> figure = plot_release(survey.simulate(people, np.random.default_rng(0)))
    >>> len(figure.axes)
    2
    """
    chosen = _first_table(release) if marginal is None else marginal
    plan: Any = release.plan
    is_merged = isinstance(plan, MergedPlan)
    if chosen is None:
        figure = new_figure(7, 5.2)
        right = figure.subplots()
    else:
        table = release[chosen]
        figure = new_figure(7 if is_merged else 12, 5.2)
        if is_merged:
            left = right = figure.subplots()
        else:
            left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        shape = table.estimate.shape
        if marginal is None and len(shape) == 2 and shape[0] < shape[1]:
            table = release[chosen[::-1]]  # the attribute with fewer values becomes the series
        if len(shape) == 2 and table.estimate.size > _MOST_INTERVALS:
            draw_cells(left, table)
        else:
            draw_intervals(left, table)
    if not is_merged:
        _draw_comparison(right, plan)
    budget = (
        f"{release.rho_charged if is_merged else plan.rho:.4g}-zCDP, {plan.neighbors} neighbours"
    )
    figure.suptitle(f"{warning_text(release.private)}{budget}: unbiased marginal counts")
    return figure


def _first_table(release: AbstractRelease) -> tuple[str, ...] | None:
    """Return the attributes of the table to draw, preferably two; None if all are too large."""
    tables = release.plan.tables
    few = [
        marginal
        for marginal, S in zip(release, tables.subsets, strict=True)
        if tables.cells(S) <= (_MOST_COLOURED if len(S) == 2 else _MOST_CELLS)
    ]
    return next((m for m in few if len(m) == 2), few[0] if few else None)


def _draw_comparison(axes: "Axes", plan: "Plan") -> None:
    """Draw deviations of all marginals, beside those of independent noise with the same budget."""
    order = np.argsort(plan.deviations, kind="stable")
    shown = order[:: max(1, -(-len(order) // _MOST_ROWS))]
    ours, theirs = plan.deviations[shown], plan.independent_deviations[shown]
    cells = all(base.is_identity for term in plan.domain.terms for _, base in term)
    rows = np.arange(len(shown))
    axes.hlines(rows, ours, theirs, color="0.8", zorder=1)
    axes.plot(
        ours,
        rows,
        "o",
        color=OURS,
        ms=5,
        label="this release (optimal)" if cells else "this release",
    )
    axes.plot(theirs, rows, "s", color=THEIRS, ms=5, label="independent noise, best split")
    axes.set_yticks(rows, [label_text(plan.entries[k], 34) for k in shown], fontsize="x-small")
    axes.set_xlim(0, 1.05 * float(max(ours.max(), theirs.max())) or 1.0)
    axes.set_xlabel(
        "standard deviation of each cell"
        if cells
        else "standard deviation, root mean square of the answers"
    )
    axes.legend(fontsize="small")
    part = "" if len(shown) == len(order) else f" ({len(shown)} of {len(order)} marginals shown)"
    axes.set_title(f"{plan.improvement:.2f} times less variance{part}", fontsize="medium")
