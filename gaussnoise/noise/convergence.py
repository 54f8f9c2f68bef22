"""The plot of a solver's lower and upper bounds after each step."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from ..drawing import OURS, WITNESS
from ..errors import ParameterError
from .captions import bracket_text, problem_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .optimal_noise import OptimalNoise


_MOST_MARKERS = 60
_HIGHEST = 2.5  # top of the plot, as a multiple of the answer; bounds of first steps may be higher


def plot_convergence(noise: "OptimalNoise") -> "Figure":
    """Draw the certified lower and upper bounds at every step of the solver, and their gap.

    Args:
        noise: the answer of an iterative method, with its trace.

    Returns:
        A matplotlib Figure; save it with ``.savefig(path)``.

    Raises:
        ParameterError: the answer has no trace: it is a closed form, or was read from a file.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    if not noise.trace:
        reason = (
            "a closed form, found in 0 steps"
            if noise.steps == 0
            else "one loaded from a file without it"
        )
        raise ParameterError(
            f"plot_convergence: expected an answer with the trace of its steps, got {reason}; "
            "hint: solve again by an iterative method"
        )
    steps = np.array([now.steps for now in noise.trace])
    # a bound that was proven at one step holds at all later ones
    lower = np.maximum.accumulate([now.lower for now in noise.trace])
    upper = np.minimum.accumulate([now.upper for now in noise.trace])
    figure = Figure(figsize=(10, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _draw_bracket(left, steps, lower / noise.gamma, upper / noise.gamma)
    _draw_gaps(right, noise, steps, lower, upper)
    last = max(float(steps.max()), 1.0)
    for side in (left, right):
        side.set_xlabel("steps")
        side.set_xlim(-0.03 * last, 1.03 * last)
        side.xaxis.set_major_locator(MaxNLocator(integer=True))
        side.grid(color="0.94")
        side.set_axisbelow(True)
        side.legend(loc="upper left", bbox_to_anchor=(0, -0.14), fontsize="small", frameon=False)
    figure.suptitle(f"{problem_text(noise)}: {bracket_text(noise)}", fontsize="medium")
    return figure


def _draw_bracket(axes: "Axes", steps: NDArray[np.int64], lower: Array, upper: Array) -> None:
    """Draw both bounds, divided by the answer's upper bound, over the steps of the solver."""
    known = np.isfinite(upper)
    axes.fill_between(
        steps[known], lower[known], upper[known], step="post", color=OURS, alpha=0.12, lw=0
    )
    style = _steps(len(steps))
    axes.plot(steps[known], upper[known], color=OURS, label="upper end: best noise so far", **style)
    axes.plot(steps, lower, color=WITNESS, label="lower end: best certificate so far", **style)
    axes.axhline(1, color="0.5", lw=0.8, ls=":")
    if upper[known].max(initial=1.0) > _HIGHEST:
        axes.set_ylim(min(lower.min(), 1.0) - 0.05, _HIGHEST)
    axes.set_ylabel("bounds on γ / final upper end")


def _draw_gaps(
    axes: "Axes", noise: "OptimalNoise", steps: NDArray[np.int64], lower: Array, upper: Array
) -> None:
    """Draw the gap, and each bound's distance from the other's final value, on a log axis."""
    with np.errstate(divide="ignore"):
        gaps = {
            "gap": (upper / lower - 1, "0.6", "-", 4),
            "upper end above the final lower end": (
                upper / np.float64(noise.gamma_lower) - 1,
                OURS,
                "--",
                1.5,
            ),
            "lower end below the final upper end": (noise.gamma / lower - 1, WITNESS, "--", 1.5),
        }
    shown = []
    for label, (gap, color, dashes, width) in gaps.items():
        known = np.isfinite(gap) & (gap > 0)
        style = _steps(len(steps)) | {"color": color, "ls": dashes, "lw": width}
        axes.plot(steps[known], gap[known], label=label, **style)
        shown.extend(gap[known])
    if 0 < noise.gap < math.inf:
        axes.axhline(noise.gap, color="0.5", lw=0.8, ls=":", label=f"final gap {noise.gap:.1e}")
        shown.append(noise.gap)
    axes.set_yscale("log")
    if shown:  # if all are equal, matplotlib's own limits would coincide after rounding
        axes.set_ylim(min(shown) / 2, max(shown) * 2)
    axes.set_ylabel("relative gap")


def _steps(count: int) -> dict[str, Any]:
    """Return the style of a line that is constant between steps, with dots for few steps."""
    return {"drawstyle": "steps-post", "marker": "o" if count <= _MOST_MARKERS else "", "ms": 3}
