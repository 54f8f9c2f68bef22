"""The contents of an answer's plot: sets and points in one or two coordinates."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from domains.domain import AbstractDomain, AbstractFiniteDomain
from domains.errors import DomainError
from domains.floats import Array
from domains.tables.marginals import Marginals
from domains.tables.tables import AbstractTables

from ..errors import ParameterError
from ..numerics.pairs import far_pairs
from .agreement import ReplaceWithin
from .captions import ball_name, cell_of, certificate_name, coordinate_name, set_name
from .certificates.certificate import Certificate
from .certificates.points import PointCertificate
from .marginal_covariance import MarginalCovariance
from .policy import PolicyGraph
from .proportion import AddInProportion

if TYPE_CHECKING:
    from .optimal_noise import OptimalNoise


# even, so that −θ is also a direction; steps of one degree give errors below 4e-5 of a radius
_DIRECTIONS = 360
_MOST_MEMBERS = 500
_MOST_DIMENSIONS = 2048  # up to this dimension, oracles maximise a quadratic form within seconds
_FARTHEST_BALL = 5.0  # radius in sizes of the rest of the plot; larger balls are not drawn in full
_CHUNK_ENTRIES = 2**22
_PLAIN_EXPONENT = 100  # sizes up to this power of ten are squared by matplotlib without overflow
_VISIBLE = 1e-4  # points below this fraction of the largest weight are not drawn


@dataclass(frozen=True, eq=False)
class Scene:
    """The contents of a plot, in k = 1 or 2 coordinates.

    Attributes:
        outline: shape (m, k), points of the covered set that are farthest in m directions.
        members: shape (n, k), the listed points of the set if they are few; otherwise empty.
        ellipse: shape (m, k), boundary points of the optimal ellipsoid, center + E(M).
        ball: shape (m, k), boundary points of the least ball, or empty if it is not known.
        witnesses: shape (q, k), the points of the certificate's measure, or empty if it lists none.
        masses: shape (q,), the weights of these points; points of tiny weight are left out.
        center: the center of the ellipsoid and of the ball, shape (k,).
        reach: the largest distance from the center of all that is drawn.
        names: the names of the k coordinates.
        labels: the legend's words for the set, members, noise, ball and certificate.
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


def scene_of(noise: "OptimalNoise", shown: list[int]) -> Scene:
    """Return all that :func:`plot_noise` draws, in the coordinates ``shown``."""
    angles = 2 * np.pi * np.arange(_DIRECTIONS) / _DIRECTIONS
    circle = (
        np.column_stack([np.cos(angles), np.sin(angles)])
        if len(shown) == 2
        else np.array([[1.0], [-1.0]])
    )
    outline, members = _projected_set(noise, shown, circle)
    center = noise.center[shown]
    ellipse = center + circle @ _root(noise, shown).T
    near = max(float(np.abs(part - center).max()) for part in (ellipse, outline))
    radii = _radii(noise)
    ball = np.empty((0, len(shown))) if radii is None else center + radii[1] * circle
    witnesses, masses = _measure(noise.certificate, shown)
    # draw in units of a power of ten if matplotlib cannot square sizes without over- or underflow
    exponent = math.floor(math.log10(near)) if near > 0 else 0
    framed = radii is None or radii[1] <= _FARTHEST_BALL * near
    unit = 10.0**exponent if abs(exponent) > _PLAIN_EXPONENT else 1.0
    return Scene(
        outline=outline / unit,
        members=members / unit,
        ellipse=ellipse / unit,
        ball=ball / unit,
        witnesses=witnesses / unit,
        masses=masses,
        center=center / unit,
        reach=(max(near, radii[1]) if radii and framed else near) / unit,
        names=tuple(
            coordinate_name(noise.domain, i) + (f", in units of {unit:.0e}" if unit != 1 else "")
            for i in shown
        ),
        labels={
            "set": set_name(noise),
            "members": "its points"
            if len(shown) == noise.domain.dim
            else "projections of its points",
            "noise": f"optimal noise: {'v + E(M)' if noise.shifted else 'E(M)'}",
            "ball": ball_name(noise, radii) + ("" if framed else ", beyond the frame"),
            "certificate": certificate_name(noise.certificate),
        },
    )


def coordinates(noise: "OptimalNoise", axes: tuple[int, int]) -> list[int]:
    """Return the two coordinates to show, or the only coordinate of a domain of one dimension."""
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


def _projected_set(noise: "OptimalNoise", shown: list[int], circle: Array) -> tuple[Array, Array]:
    """Return the covered set's farthest points by direction, and all its points if they are few."""
    domain, relation = noise.domain, noise.neighbors
    if isinstance(relation, ReplaceWithin):
        raise ParameterError("plot: no picture where some attributes of the records are public")
    if isinstance(relation, AddInProportion):
        raise ParameterError("plot: no picture where budgets grow with numbers of the records")
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
    behind = np.roll(ahead, len(circle) // 2, axis=0)  # the farthest points in directions −θ
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
    """Return the distinct projections of a finite domain's points, or None for other domains."""
    if isinstance(domain, Marginals):
        return marginal_points(domain, shown)
    return (
        _distinct(_points(domain)[:, shown]) if isinstance(domain, AbstractFiniteDomain) else None
    )


def _points(domain: AbstractDomain) -> Array:
    """Return the listed points of a finite domain."""
    if not isinstance(domain, AbstractFiniteDomain):
        raise ParameterError(
            f"plot: expected a finite domain under a policy graph, got {type(domain).__name__}"
        )
    return domain.to_finite_set().points


def marginal_points(domain: Marginals, shown: list[int]) -> Array:
    """Return the distinct projections of all records on one or two cells of marginals."""
    cells = [cell_of(domain, i) for i in shown]
    weights = [domain.weights[domain.subsets.index(S)] for S, _ in cells]
    codes = [dict(zip(S, cell, strict=True)) for S, cell in cells]
    every = domain.cells(set().union(*codes))
    counts = [
        every // domain.cells(S) for S, _ in cells
    ]  # number of combinations of the shown attributes' codes that fall into each cell
    if len(cells) == 1:
        present = {(1,): counts[0], (0,): every - counts[0]}
    else:
        agree = all(codes[0][i] == codes[1][i] for i in codes[0].keys() & codes[1].keys())
        present = {(1, 1): int(agree), (1, 0): counts[0] - agree, (0, 1): counts[1] - agree}
        present[0, 0] = every - sum(present.values())
    return np.array([pattern for pattern, count in present.items() if count > 0]) * np.array(
        weights
    )


def _lift(theta: Array, shown: list[int], dim: int) -> Array:
    """Return a direction of the plot as a direction in R^dim, with zeros for hidden coordinates."""
    lifted = np.zeros(dim)
    lifted[shown] = theta
    return lifted


def _support_points(points: Array, circle: Array) -> Array:
    """Return, for every direction in ``circle``, the point that is farthest in this direction."""
    return np.array([points[np.argmax(points @ theta)] for theta in circle])


def _distinct(points: Array) -> Array:
    return np.unique(points + 0.0, axis=0)  # adding 0.0 turns -0.0 into 0.0


def _few(points: Array) -> Array:
    """Return the points, or an empty array if they are too many to draw."""
    return points if len(points) <= _MOST_MEMBERS else points[:0]


def _root(noise: "OptimalNoise", shown: list[int]) -> Array:
    """Return a matrix F with F F' = the covariance of the coordinates shown."""
    # no standard deviation is squared, so that nothing over- or underflows
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
    """Return bounds on the largest norm in the covered set, or None if they take too long."""
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
    """Return the largest norm of a row, without over- or underflow."""
    size = float(np.abs(rows).max(initial=0.0))
    return size * float(np.linalg.norm(rows / size, axis=1).max()) if size > 0 else 0.0


def _diameter(points: Array) -> float:
    """Return the largest distance between two of the points, without over- or underflow."""
    moved = points - points[0]
    size = float(np.abs(moved).max())
    return size * math.sqrt(far_pairs(moved / size).largest) if size > 0 else 0.0


def _marginal_radius(domain: AbstractTables, noise: "OptimalNoise") -> float:
    """Return the largest norm of a covered point for marginals, in closed form."""
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
    """Return the points of the certificate's measure, projected and merged, and their weights."""
    if not isinstance(certificate, PointCertificate):
        return np.empty((0, len(shown))), np.empty(0)
    points, weights = certificate.points[:, shown], certificate.weights / certificate.weights.sum()
    if certificate.origin is not None:
        points = points + certificate.origin[shown]
    if not certificate.centered:
        points, weights = np.concatenate([points, -points]), np.concatenate([weights, weights]) / 2
    size = float(np.abs(points).max()) or 1.0
    # differences with equal projections are equal only up to rounding
    _, first, same = np.unique(
        np.round(points / size, 9) + 0.0, axis=0, return_index=True, return_inverse=True
    )
    masses = np.bincount(same.reshape(-1), weights).astype(np.float64)
    visible = masses > _VISIBLE * masses.max()
    return points[first][visible], masses[visible]
