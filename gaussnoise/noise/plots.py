"""The plot of a set in the ellipsoid of its noise, with the points that prove the bound."""

from typing import TYPE_CHECKING

import numpy as np

from domains.floats import Array

from ..drawing import OURS, THEIRS, WITNESS
from .captions import bracket_text, problem_text
from .shadow import Scene, coordinates, scene_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .optimal_noise import OptimalNoise


_LARGEST_AREA = 180.0  # area of the disc for the certificate's heaviest point, in square points
_SET = "0.86"


def plot_noise(noise: "OptimalNoise", axes: tuple[int, int] = (0, 1)) -> "Figure":
    """Draw the set that the noise covers, the optimal ellipsoid, and the certificate's points.

    The picture also has the least ball around the same center that covers the set: the shape of
    spherical noise. In more than two dimensions, all is projected on two coordinates: sets that
    touch may then seem apart. In one dimension, intervals are drawn.

    Args:
        noise: the answer to draw.
        axes: the coordinates of the horizontal and the vertical axis; ignored in one dimension.

    Returns:
        A matplotlib Figure; save it with ``.savefig(path)``.

    Raises:
        ParameterError: axes are not two different coordinates.
        DomainError: the domain is too large for its oracle.

    >>> figure = plot_noise(gn.optimal_noise(gn.FiniteSet([[0.0, 0.0], [3.0, 1.0], [1.0, 2.0]])))
    >>> print(figure.axes[0].get_legend_handles_labels()[1][0])
    convex hull of K − K
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scene = scene_of(noise, coordinates(noise, axes))
    plane = scene.outline.shape[1] == 2
    width, height = (6.6, 7.7) if plane else (7.6, 3.6)
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    # sizes in inches: automatic layouts leave no room for axes with equal scales
    left, bottom, across, up = (0.9, 1.75, 5.2, 5.2) if plane else (0.3, 0.55, 7.0, 2.5)
    picture = figure.add_axes((left / width, bottom / height, across / width, up / height))
    draw = _draw_plane if plane else _draw_line
    draw(picture, scene)
    projected = (
        "" if noise.domain.dim <= 2 else f"\nprojected from R^{noise.domain.dim} on two coordinates"
    )
    picture.set_title(f"{problem_text(noise)}\n{bracket_text(noise)}{projected}", fontsize="medium")
    return figure


def _draw_plane(axes: "Axes", scene: Scene) -> None:
    """Draw the contents of the plot in two coordinates, at equal scales."""
    axes.fill(
        *scene.outline.T, facecolor=_SET, edgecolor="0.6", lw=1, label=scene.labels["set"], zorder=1
    )
    if len(scene.members):
        axes.plot(
            *scene.members.T, "o", ms=2.5, color="0.35", label=scene.labels["members"], zorder=4
        )
    ellipse, ball = _closed(scene.ellipse), _closed(scene.ball)
    axes.plot(
        *ellipse.T, color=OURS, lw=2, solid_capstyle="round", label=scene.labels["noise"], zorder=3
    )
    axes.plot(
        *ball.T,
        color=THEIRS,
        lw=1.5,
        ls=(0, (5, 3)) if len(ball) else "",
        label=scene.labels["ball"],
        zorder=2,
    )
    _draw_witnesses(axes, scene, scene.witnesses)
    axes.plot(*scene.center, "+", color=OURS, ms=8)
    half = 1.08 * scene.reach or 1.0
    axes.set_xlim(scene.center[0] - half, scene.center[0] + half)
    axes.set_ylim(scene.center[1] - half, scene.center[1] + half)
    axes.set_aspect("equal")
    axes.set_xlabel(scene.names[0])
    axes.set_ylabel(scene.names[1])
    axes.set_axisbelow(True)
    axes.grid(color="0.94")
    axes.legend(
        loc="upper left", bbox_to_anchor=(0, -0.1), fontsize="small", frameon=False, borderaxespad=0
    )


def _draw_line(axes: "Axes", scene: Scene) -> None:
    """Draw the contents of the plot in one coordinate, as intervals one below the other."""
    spans = {
        "set": (scene.outline, "0.6", 7),
        "noise": (scene.ellipse, OURS, 3),
        "ball": (scene.ball, THEIRS, 3),
    }
    rows = {"set": 3, "noise": 2, "ball": 1, "certificate": 0}
    for end in scene.ellipse[:, 0]:
        axes.axvline(end, color=OURS, lw=0.8, ls=":", zorder=0)
    for name, (ends, color, width) in spans.items():
        heights = np.full(len(ends), rows[name])
        axes.plot(
            ends[:, 0], heights, "|-", color=color, lw=width, ms=14, mew=2, solid_capstyle="butt"
        )
    axes.plot(
        scene.members[:, 0], np.full(len(scene.members), rows["set"]), "o", ms=3, color="0.15"
    )
    heights = np.full(len(scene.witnesses), rows["certificate"])
    _draw_witnesses(axes, scene, np.column_stack([scene.witnesses, heights]))
    for name, row in rows.items():  # a name beside each line replaces the legend
        axes.text(
            0.01,
            row + 0.3,
            scene.labels[name],
            transform=axes.get_yaxis_transform(),
            fontsize="small",
        )
    half = 1.08 * scene.reach or 1.0
    axes.set_xlim(scene.center[0] - half, scene.center[0] + half)
    axes.set_ylim(-0.5, 3.8)
    axes.set_yticks([])
    for side in ("left", "right", "top"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel(scene.names[0])


def _draw_witnesses(axes: "Axes", scene: Scene, positions: Array) -> None:
    """Draw the certificate's points as discs whose areas are proportional to their weights."""
    label = scene.labels["certificate"]
    if not len(positions):
        axes.plot([], [], " ", label=label)
        return
    areas = _LARGEST_AREA * scene.masses / scene.masses.max()
    axes.scatter(
        *positions.T, s=areas, color=WITNESS, edgecolor="0.15", lw=0.5, label=label, zorder=3.5
    )


def _closed(boundary: Array) -> Array:
    """Return the boundary with its first point added at the end."""
    return np.concatenate([boundary, boundary[:1]])
