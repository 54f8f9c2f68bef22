"""Pictures of an answer: what it covers, how tightly, on whose word, and how it was found."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from domains import AbstractDomain, AbstractFiniteDomain, DomainError, Marginals
from domains.tables.tables import AbstractTables

from ..drawing import OURS, THEIRS, label_text
from ..errors import ParameterError
from ..numerics.pairs import far_pairs
from .agreement import ReplaceWithin
from .certificates.certificate import Certificate
from .certificates.points import PointCertificate
from .marginal_covariance import MarginalCovariance
from .policy import PolicyGraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .optimal_noise import OptimalNoise

Array = NDArray[np.float64]

# even, so that −θ is among them; chords of one degree are 4e-5 of the radius off a circle
_DIRECTIONS = 360
_MOST_MEMBERS = 500
_LARGEST_AREA = 180.0  # of a certificate's heaviest point, in square points
_MOST_DIMENSIONS = 2048  # of a quadratic form handed to an oracle: seconds
_FARTHEST_BALL = 5.0  # times the rest of the picture; a larger one would leave nothing else to see
_CHUNK_ENTRIES = 2**22
_MOST_MARKERS = 60
_HIGHEST = 2.5  # answers; the first steps of a solver would flatten the rest
_PLAIN_EXPONENT = 100  # of sizes that matplotlib's own arithmetic can square
_MOST_WEIGHT = 0.999
_VISIBLE = 1e-4  # of the heaviest point: smaller ones would only make vector files large
_SET, _WITNESS = "0.86", "#e69f00"


def plot_noise(noise: "OptimalNoise", axes: tuple[int, int] = (0, 1)) -> "Figure":
    """The set that the noise covers, in the optimal ellipsoid, with the points that prove it.

    Beside them the least ball around the same center that covers the set: the shape of plain
    spherical noise. In more than two dimensions, everything is projected on two coordinates:
    shadows of touching bodies need not touch. In one, intervals are drawn.

    Args:
        noise: what to draw.
        axes: the two coordinates to show, across and up; left out in one dimension.

    Returns:
        A matplotlib Figure; save it with ``.savefig(path)``.

    Raises:
        ParameterError: axes that are not two different coordinates.
        DomainError: a domain whose oracle gives no answer at its size.

    >>> figure = plot_noise(gn.optimal_noise(gn.FiniteSet([[0.0, 0.0], [3.0, 1.0], [1.0, 2.0]])))
    >>> print(figure.axes[0].get_legend_handles_labels()[1][0])
    convex hull of K − K
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scene = _scene(noise, _coordinates(noise, axes))
    plane = scene.outline.shape[1] == 2
    width, height = (6.6, 7.7) if plane else (7.6, 3.6)
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    # in inches: automatic layouts do not know that the axes will be square
    left, bottom, across, up = (0.9, 1.75, 5.2, 5.2) if plane else (0.3, 0.55, 7.0, 2.5)
    picture = figure.add_axes((left / width, bottom / height, across / width, up / height))
    draw = _draw_plane if plane else _draw_line
    draw(picture, scene)
    projected = (
        "" if noise.domain.dim <= 2 else f"\nprojected from R^{noise.domain.dim} on two coordinates"
    )
    picture.set_title(f"{_problem(noise)}\n{_bracket(noise)}{projected}", fontsize="medium")
    return figure


def plot_convergence(noise: "OptimalNoise") -> "Figure":
    """Both certified ends at every step of the solver, beside the gap that they leave.

    Args:
        noise: an answer of an iterative method, with its trace.

    Returns:
        A matplotlib Figure; save it with ``.savefig(path)``.

    Raises:
        ParameterError: there is no trace: a closed form, or an answer from a file.
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
    # what was proved once stays proved
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
    figure.suptitle(f"{_problem(noise)}: {_bracket(noise)}", fontsize="medium")
    return figure


def _draw_bracket(axes: "Axes", steps: NDArray[np.int64], lower: Array, upper: Array) -> None:
    """Both ends, relative to the answer; steps that are far off leave the frame."""
    known = np.isfinite(upper)
    axes.fill_between(
        steps[known], lower[known], upper[known], step="post", color=OURS, alpha=0.12, lw=0
    )
    style = _steps(len(steps))
    axes.plot(steps[known], upper[known], color=OURS, label="upper end: best noise so far", **style)
    axes.plot(steps, lower, color=_WITNESS, label="lower end: best certificate so far", **style)
    axes.axhline(1, color="0.5", lw=0.8, ls=":")
    if upper[known].max(initial=1.0) > _HIGHEST:
        axes.set_ylim(min(lower.min(), 1.0) - 0.05, _HIGHEST)
    axes.set_ylabel("bounds on γ / final upper end")


def _draw_gaps(
    axes: "Axes", noise: "OptimalNoise", steps: NDArray[np.int64], lower: Array, upper: Array
) -> None:
    """The relative gap, and how much of it each end is to blame for, on a logarithmic axis."""
    with np.errstate(divide="ignore"):
        gaps = {
            "gap": (upper / lower - 1, "0.6", "-", 4),
            "upper end above the final lower end": (
                upper / np.float64(noise.gamma_lower) - 1,
                OURS,
                "--",
                1.5,
            ),
            "lower end below the final upper end": (noise.gamma / lower - 1, _WITNESS, "--", 1.5),
        }
    for label, (gap, color, dashes, width) in gaps.items():
        known = np.isfinite(gap) & (gap > 0)
        style = _steps(len(steps)) | {"color": color, "ls": dashes, "lw": width}
        axes.plot(steps[known], gap[known], label=label, **style)
    if 0 < noise.gap < math.inf:
        axes.axhline(noise.gap, color="0.5", lw=0.8, ls=":", label=f"final gap {noise.gap:.1e}")
    axes.set_yscale("log")
    axes.set_ylabel("relative gap")


def _steps(count: int) -> dict[str, Any]:
    """A line that keeps its value until the next step, with a mark at each while they are few."""
    return {"drawstyle": "steps-post", "marker": "o" if count <= _MOST_MARKERS else "", "ms": 3}


@dataclass(frozen=True, eq=False)
class _Scene:
    """What is to be drawn, in one or two coordinates (k).

    Attributes:
        outline: shape (m, k), support points of the covered set around the compass; two in one
            dimension.
        members: shape (n, k), the set's own points where they are few; empty otherwise.
        ellipse: shape (m, k), boundary points of center + E(M).
        ball: shape (m, k), boundary points of the least ball found; empty where there is none.
        witnesses: shape (q, k), where the certificate's measure is; empty if it names no points.
        masses: shape (q,), of the measure at these points; what is too small to see is left out.
        center: shape (k,).
        reach: how far from the center there is something to see.
        names: of the coordinates, k of them.
        labels: what to call the parts: set, members, noise, ball, certificate.
    """

    outline: Array
    members: Array
    ellipse: Array
    ball: Array
    witnesses: Array
    masses: Array
    center: Array
    reach: float
    names: tuple[str, ...]
    labels: Mapping[str, str]


def _scene(noise: "OptimalNoise", shown: list[int]) -> _Scene:
    """Everything that plot_noise draws, before anything is drawn."""
    angles = 2 * np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS
    circle = (
        np.column_stack([np.cos(angles), np.sin(angles)])
        if len(shown) == 2
        else np.array([[1.0], [-1.0]])
    )
    outline, members = _shadow(noise, shown, circle)
    center = noise.center[shown]
    ellipse = center + circle @ _root(noise, shown).T
    near = max(float(np.abs(part - center).max()) for part in (ellipse, outline))
    radii = _radii(noise)
    ball = np.empty((0, len(shown))) if radii is None else center + radii[1] * circle
    witnesses, masses = _measure(noise.certificate, shown)
    # drawn in powers of ten where sizes are beyond what matplotlib can square
    exponent = math.floor(math.log10(near)) if near > 0 else 0
    framed = radii is None or radii[1] <= _FARTHEST_BALL * near
    unit = 10.0**exponent if abs(exponent) > _PLAIN_EXPONENT else 1.0
    return _Scene(
        outline=outline / unit,
        members=members / unit,
        ellipse=ellipse / unit,
        ball=ball / unit,
        witnesses=witnesses / unit,
        masses=masses,
        center=center / unit,
        reach=(max(near, radii[1]) if radii and framed else near) / unit,
        names=tuple(
            _name(noise.domain, i) + (f", in units of {unit:.0e}" if unit != 1 else "")
            for i in shown
        ),
        labels={
            "set": _set_name(noise),
            "members": "its points"
            if len(shown) == noise.domain.dim
            else "projections of its points",
            "noise": f"optimal noise: {'v + E(M)' if noise.shifted else 'E(M)'}",
            "ball": _ball_name(noise, radii) + ("" if framed else ", beyond the frame"),
            "certificate": _certificate_name(noise.certificate),
        },
    )


def _coordinates(noise: "OptimalNoise", axes: tuple[int, int]) -> list[int]:
    """The coordinates to show; one in one dimension."""
    dim = noise.domain.dim
    try:
        pair = list(axes)
    except TypeError:
        pair = []
    integers = all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in pair)
    if dim == 1 and integers and pair == [0, 1]:
        return [0]
    if dim == 1:
        raise ParameterError(
            f"plot: expected no axes for a domain in R^1, got {axes!r}; hint: leave them out"
        )
    if len(pair) != 2 or not integers or not all(0 <= i < dim for i in pair) or pair[0] == pair[1]:
        raise ParameterError(
            f"plot: expected axes=(i, j), two different coordinates of 0..{dim - 1}, got "
            f"{axes!r}; hint: axes=(0, 1)"
        )
    return [int(i) for i in pair]


def _shadow(noise: "OptimalNoise", shown: list[int], circle: Array) -> tuple[Array, Array]:
    """Support points of the projected set in directions of ``circle``, and its members, if few."""
    domain, relation = noise.domain, noise.neighbors
    if isinstance(relation, ReplaceWithin):
        raise ParameterError("plot: no picture where some attributes of the records are public")
    if isinstance(relation, PolicyGraph) and not noise.shifted:
        ends = _points(domain)[:, shown][relation.edges]
        steps = ends[:, 0] - ends[:, 1] if len(ends) else np.zeros((1, len(shown)))
        listed = _distinct(np.concatenate([steps, -steps]))
        return _support_points(listed, circle), _few(listed)
    listed = _listed(domain, shown)
    if listed is None:
        ahead = np.array(
            [domain.support_point(_lift(theta, shown, domain.dim))[shown] for theta in circle]
        )
    else:
        ahead = _support_points(listed, circle)
    behind = np.roll(ahead, len(circle) // 2, axis=0)  # the support points of −θ
    members = np.empty((0, len(shown))) if listed is None else listed
    if noise.shifted:
        return ahead, _few(members)
    if relation == "add-remove":
        larger = np.einsum("ij,ij->i", circle, ahead) >= np.einsum("ij,ij->i", circle, -behind)
        return np.where(larger[:, None], ahead, -behind), _few(
            _distinct(np.concatenate([members, -members]))
        )
    if len(members) ** 2 > _MOST_MEMBERS**2 // 4:
        members = members[:0]
    differences = (members[:, None] - members).reshape(-1, len(shown))
    return ahead - behind, _few(_distinct(differences))


def _listed(domain: AbstractDomain, shown: list[int]) -> Array | None:
    """The projections of a finite domain's points, each once; None for others."""
    if isinstance(domain, Marginals):
        return _marginal_points(domain, shown)
    return (
        _distinct(_points(domain)[:, shown]) if isinstance(domain, AbstractFiniteDomain) else None
    )


def _points(domain: AbstractDomain) -> Array:
    """The listed points of a finite domain."""
    if not isinstance(domain, AbstractFiniteDomain):
        raise ParameterError(
            f"plot: expected a finite domain under a policy graph, got {type(domain).__name__}"
        )
    return domain.to_finite_set().points


def _marginal_points(domain: Marginals, shown: list[int]) -> Array:
    """The projections of all records on one or two cells: counting tells which occur."""
    cells = [_cell(domain, i) for i in shown]
    weights = [domain.weights[domain.subsets.index(S)] for S, _ in cells]
    codes = [dict(zip(S, cell, strict=True)) for S, cell in cells]
    every = domain.cells(set().union(*codes))
    counts = [
        every // domain.cells(S) for S, _ in cells
    ]  # records, of the attributes at hand, in each cell
    if len(cells) == 1:
        present = {(1,): counts[0], (0,): every - counts[0]}
    else:
        agree = all(codes[0][i] == codes[1][i] for i in codes[0].keys() & codes[1].keys())
        present = {(1, 1): int(agree), (1, 0): counts[0] - agree, (0, 1): counts[1] - agree}
        present[0, 0] = every - sum(present.values())
    return np.array([pattern for pattern, count in present.items() if count > 0]) * np.array(
        weights
    )


def _cell(domain: Marginals, coordinate: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The subset whose table holds a coordinate, and the codes of its cell."""
    starts = np.cumsum([0, *map(domain.cells, domain.subsets)])
    k = int(np.searchsorted(starts, coordinate, side="right")) - 1
    S = domain.subsets[k]
    cell = np.unravel_index(coordinate - starts[k], [domain.sizes[i] for i in S]) if S else ()
    return S, tuple(map(int, cell))


def _lift(theta: Array, shown: list[int], dim: int) -> Array:
    """A direction of the picture, in the space of the domain."""
    lifted = np.zeros(dim)
    lifted[shown] = theta
    return lifted


def _support_points(points: Array, circle: Array) -> Array:
    """For every direction the farthest of listed points."""
    return np.array([points[np.argmax(points @ theta)] for theta in circle])


def _distinct(points: Array) -> Array:
    return np.unique(points + 0.0, axis=0)  # adding 0.0 turns -0.0 into 0.0


def _few(points: Array) -> Array:
    """The points, or none when they are too many to draw."""
    return points if len(points) <= _MOST_MEMBERS else points[:0]


def _root(noise: "OptimalNoise", shown: list[int]) -> Array:
    """A root F of the projected covariance: F F' = M on the coordinates shown, without squares."""
    deviations = noise.covariance.standard_deviation()[shown]
    if len(shown) == 1:
        return deviations[:, None]
    first, second = deviations
    if first == 0 or second == 0:
        return np.diag(deviations)
    scaled = noise.covariance @ _lift(np.array([1 / first, 0.0]), shown, noise.domain.dim)
    correlation = min(max(float(scaled[shown[1]] / second), -1.0), 1.0)
    return np.array([[first, 0.0], [second * correlation, second * math.sqrt(1 - correlation**2)]])


def _radii(noise: "OptimalNoise") -> tuple[float, float] | None:
    """A bracket on the largest Euclidean norm of what is covered; None where it costs too much."""
    domain, relation = noise.domain, noise.neighbors
    if isinstance(relation, PolicyGraph) and not noise.shifted:
        points = _points(domain)
        step = max(1, _CHUNK_ENTRIES // domain.dim)
        parts = (relation.edges[k : k + step] for k in range(0, len(relation.edges), step))
        radius = max(
            (_longest(points[part[:, 0]] - points[part[:, 1]]) for part in parts), default=0.0
        )
        return radius, radius
    if isinstance(noise.covariance, MarginalCovariance):
        radius = _marginal_radius(noise.covariance.domain, noise)
        return radius, radius
    single = noise.shifted or relation == "add-remove"
    try:
        if isinstance(domain, AbstractFiniteDomain):
            points = _points(domain)
            radius = _longest(points - noise.center) if single else _diameter(points)
            return radius, radius
        if domain.dim > _MOST_DIMENSIONS:
            return None
        body = domain if single else domain - domain
        bracket = body.max_quadratic(np.eye(domain.dim), noise.center)
    except DomainError:
        return None
    if not bracket.upper_bound < math.inf:
        return None
    return math.sqrt(max(bracket.value, 0.0)), math.sqrt(max(bracket.upper_bound, 0.0))


def _longest(rows: Array) -> float:
    """The largest norm, of rows of any size."""
    size = float(np.abs(rows).max(initial=0.0))
    return size * float(np.linalg.norm(rows / size, axis=1).max()) if size > 0 else 0.0


def _diameter(points: Array) -> float:
    """The largest distance between two of the points, of any size."""
    moved = points - points[0]
    size = float(np.abs(moved).max())
    return size * math.sqrt(far_pairs(moved / size).largest) if size > 0 else 0.0


def _marginal_radius(domain: AbstractTables, noise: "OptimalNoise") -> float:
    """The largest norm for closed forms: a record has one cell in each table."""
    counts = [domain.cells(S) for S in domain.subsets]
    squares = [weight**2 for weight in domain.weights]
    if noise.shifted:
        firsts = noise.center[np.cumsum([0, *counts[:-1]])]
        terms = zip(domain.weights, firsts, counts, strict=True)
        return math.sqrt(math.fsum((w - c) ** 2 + (n - 1) * c**2 for w, c, n in terms))
    if noise.neighbors == "add-remove":
        return math.sqrt(math.fsum(squares))
    return math.sqrt(2 * math.fsum(s for s, n in zip(squares, counts, strict=True) if n > 1))


def _measure(certificate: Certificate, shown: list[int]) -> tuple[Array, Array]:
    """The certificate's measure, projected: one point for each shadow, and even signs."""
    if not isinstance(certificate, PointCertificate):
        return np.empty((0, len(shown))), np.empty(0)
    points, weights = certificate.points[:, shown], certificate.weights / certificate.weights.sum()
    if certificate.origin is not None:
        points = points + certificate.origin[shown]
    if not certificate.centered:
        points, weights = np.concatenate([points, -points]), np.concatenate([weights, weights]) / 2
    size = float(np.abs(points).max()) or 1.0
    # differences of equal shadows agree up to rounding
    _, first, same = np.unique(
        np.round(points / size, 9) + 0.0, axis=0, return_index=True, return_inverse=True
    )
    masses = np.bincount(same.reshape(-1), weights).astype(np.float64)
    visible = masses > _VISIBLE * masses.max()
    return points[first][visible], masses[visible]


def _draw_plane(axes: "Axes", scene: _Scene) -> None:
    """Two coordinates, at equal scales."""
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


def _draw_line(axes: "Axes", scene: _Scene) -> None:
    """One coordinate: an interval for each thing, one below the other."""
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
    for name, row in rows.items():  # beside the lines, which a legend would only repeat
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


def _draw_witnesses(axes: "Axes", scene: _Scene, positions: Array) -> None:
    """The certificate's measure, as discs."""
    label = scene.labels["certificate"]
    if not len(positions):
        axes.plot([], [], " ", label=label)
        return
    areas = _LARGEST_AREA * scene.masses / scene.masses.max()
    axes.scatter(
        *positions.T, s=areas, color=_WITNESS, edgecolor="0.15", lw=0.5, label=label, zorder=3.5
    )


def _closed(boundary: Array) -> Array:
    """A boundary that ends where it began."""
    return np.concatenate([boundary, boundary[:1]])


def _problem(noise: "OptimalNoise") -> str:
    """What was asked: the relation and the norm."""
    relation = {"replace": "one record replaced", "add-remove": "one record added or removed"}
    asked = relation[noise.neighbors] if isinstance(noise.neighbors, str) else str(noise.neighbors)
    return f"{'least ellipsoid around K' if noise.shifted else asked}, p = {_order(noise.p)}"


def _order(p: float) -> str:
    return "∞" if p == math.inf else f"{p:g}"


def _bracket(noise: "OptimalNoise") -> str:
    """Both ends, rounded outwards to as many digits as their gap deserves."""
    if noise.gamma == 0:
        return "γ = 0"
    digits = (
        4 if noise.gap >= 1 else min(max(2 - math.floor(math.log10(max(noise.gap, 1e-300))), 4), 10)
    )
    low = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal_from_float(noise.gamma_lower)
    high = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(noise.gamma)
    return f"{low:g} ≤ γ ≤ {high:g}, gap {noise.gap:.1e}"


def _set_name(noise: "OptimalNoise") -> str:
    """The set that is covered."""
    if noise.shifted:
        name = "K"
    elif isinstance(noise.neighbors, PolicyGraph):
        name = "±(x − y) along the policy's edges"
    else:
        name = "K − K" if noise.neighbors == "replace" else "K ∪ −K"
    convex = not isinstance(noise.domain, AbstractFiniteDomain) and name != "K ∪ −K"
    return name if convex else f"convex hull of {name}"


def _ball_name(noise: "OptimalNoise", radii: tuple[float, float] | None) -> str:
    """The ball, and what it costs against the optimum."""
    if radii is None:
        return "plain spherical noise: no bound at this size"
    name = f"plain spherical noise: ball of radius {radii[1]:.3g}"
    if noise.gamma == 0:
        return name
    sides = 1.0 if noise.p == math.inf else noise.domain.dim ** (1 / noise.p)
    low, high = (radius / noise.gamma * sides for radius in radii)
    return (
        f"{name}, {_times(high) if high <= 1.005 * low else f'{_times(low)} to {_times(high)}'} "
        "times the error"
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.3g}"


def _certificate_name(certificate: Certificate) -> str:
    """The certificate, and why it has no points if it has none."""
    if isinstance(certificate, PointCertificate):
        shares = np.cumsum(np.sort(certificate.weights)[::-1]) / certificate.weights.sum()
        count = 1 + int(np.count_nonzero(shares < _MOST_WEIGHT))
        sign, plural = "" if certificate.centered else "±", "" if count == 1 else "s"
        return (
            f"certificate: area ∝ weight, {100 * _MOST_WEIGHT:g} % of it on {sign}{count} "
            f"point{plural}"
        )
    return f"certificate: {certificate.caption}"


def _name(domain: AbstractDomain, coordinate: int) -> str:
    """A coordinate, for the axis."""
    if not isinstance(domain, Marginals):
        return f"coordinate {coordinate}"
    S, cell = _cell(domain, coordinate)
    return label_text(
        f"coordinate {coordinate}: " + (f"cell {cell} of table {S}" if S else "the total"), 56
    )
