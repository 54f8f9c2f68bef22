"""A picture of the error of tables, and of the risk of one row, against the budget."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...drawing import OURS, THEIRS, label_text, new_figure
from ...text import no_less, number_of
from .noun import noun_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .budgets import Budgets, Kind

_POINTS = 41
_LABELLED = 5  # most curves with a name in the legend


def plot_budgets(choices: "Budgets", kinds: Sequence["Kind"]) -> "Figure":
    """Return a figure of the half-widths of these kinds of tables, and of the risk of one row.

    Both are drawn against the budget ρ, from the first to the last of ``choices.rhos``.
    """
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    figure = new_figure(12, 4.8)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    rhos = np.geomspace(choices.rhos[0], choices.rhos[-1], _POINTS)
    order = sorted(kinds, key=lambda kind: -kind.deviation)
    named = {
        order[k] for k in np.linspace(0, len(order) - 1, min(len(order), _LABELLED)).astype(int)
    }
    for k, kind in enumerate(order):
        label = label_text(kind.name, 34) if kind in named else None
        colour = f"C{sum(o in named for o in order[:k])}" if label else "0.8"
        widths = [choices.half_width(kind, rho) for rho in rhos]
        left.plot(rhos, widths, color=colour, label=label, zorder=2 if label else 1)
    left.set_yscale("log")
    left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    left.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    left.set_ylabel(f"± {label_text(noun_of(choices.plan))} at 95 %, of every answer")
    left.legend(fontsize="small", loc="upper right")
    left.set_title(f"error of {number_of(len(choices.plan.entries), 'table')}", fontsize="medium")
    sure = [100 * choices.posterior(rho) for rho in rhos]
    power = [100 * choices.power(rho) for rho in rhos]
    unit = "person" if choices.plan.rows_per_person > 1 else "row"
    right.plot(
        rhos,
        sure,
        color=THEIRS,
        label=f"surest that one {unit} is there, from 50 %\n"
        f"(except with probability {choices.delta:g})",
    )
    right.plot(rhos, power, color=OURS, label="found by a test with 5 % false alarms")
    right.axhline(50, color=THEIRS, lw=0.8, ls=":")
    right.axhline(5, color=OURS, lw=0.8, ls=":")
    right.set_ylim(0, 102)
    right.set_ylabel("per cent")
    right.legend(fontsize="small", loc="center left", bbox_to_anchor=(0, 0.33))
    right.set_title(
        f"what can be learnt of one {unit}; dotted: without the release", fontsize="medium"
    )
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlim(rhos[0], rhos[-1])
        axes.set_xticks(choices.rhos, [f"{rho:g}" for rho in choices.rhos])
        axes.minorticks_off()
        axes.set_xlabel(f"rho (above: epsilon at delta = {choices.delta:g})")
        axes.grid(color="0.93")
        axes.spines["right"].set_visible(False)
        above = axes.secondary_xaxis("top")
        above.set_xticks(choices.rhos, [no_less(choices.epsilon(rho), 2) for rho in choices.rhos])
        above.minorticks_off()
    return figure
