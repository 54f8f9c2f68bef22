"""Membership of a point in the hull of a set with a support oracle, by Wolfe's algorithm."""

import collections

import numpy as np
import scipy

from ..domain import SLACK, AbstractDomain
from ..errors import DomainTooLargeError
from ..floats import EPS, TINY, Array

ROUNDING = 64 * EPS  # relative rounding of coordinates far from the origin
_ROUNDS = 12


def bounding_box(domain: AbstractDomain) -> tuple[Array, Array]:
    """Return proven lower and upper bounds on the coordinates of members, each of shape (dim,)."""
    return _bounds(domain, domain._axis_points)


def reach_of(domain: AbstractDomain) -> Array:
    """Return a proven bound on |x_j| over the domain's members x, for all j: shape (dim,)."""
    return np.abs(bounding_box(domain)).max(axis=0)


def _bounds(domain: AbstractDomain, points: Array) -> tuple[Array, Array]:
    axes = np.eye(domain.dim)
    below, above = ([domain._support_gap(sign * axis) for axis in axes] for sign in (-1.0, 1.0))
    return points[0].diagonal() - below, points[1].diagonal() + above


def is_near(domain: AbstractDomain, x: Array) -> bool:
    """Return whether ``x`` is in the closed convex hull, up to ``SLACK`` times the largest width.

    Wolfe (1976), "Finding the nearest point in a polytope". The answer is True only if a member or
    a convex combination of members within the slack was found; it is False only if a direction was
    found along which x is proven to lie beyond every member.

    Raises:
        DomainTooLargeError: neither of these was found within the limit of steps.
    """
    points = domain._axis_points
    lower, upper = points[0].diagonal(), points[1].diagonal()
    size = float((upper - lower).max())
    rounding = ROUNDING * float(max(np.abs(lower).max(), np.abs(upper).max()))
    slack = SLACK * size + rounding
    if (np.maximum(lower - x, x - upper) > slack).any():
        lower, upper = _bounds(domain, points)
        if (np.maximum(lower - x, x - upper) > slack).any():
            return False
    close = domain._product_near(x)
    if close is not None and np.linalg.norm(close - x) <= slack:
        return True
    if size <= slack:  # the domain is one point, up to rounding
        return True
    search = _Search(domain, x, size, rounding / size)
    answer = search.start(points.mean(axis=(0, 1)))
    for turn in range(2 * _ROUNDS):
        if answer is not None:
            return answer
        answer = search.quasi_newton(flat=turn % 4 == 3) if turn % 2 else search.wolfe()
    raise DomainTooLargeError(
        f"contains: cannot tell members of {type(domain).__name__} from others to {SLACK:g} in "
        f"dimension {domain.dim}; hint: its support_point may be inexact"
    )


class _Search:
    """A search for a convex combination of members near x, or a direction that separates x."""

    # coordinates are shifted and scaled so that x is at 0 and all widths are at most 1
    def __init__(self, domain: AbstractDomain, x: Array, size: float, noise: float) -> None:
        self.domain, self.x, self.size, self.noise, self.slack = (
            domain,
            x,
            size,
            noise,
            SLACK + noise,
        )
        self.atoms = np.zeros((0, len(x)))
        self.weights = np.zeros(0)
        self.normals: dict[bool, tuple[Array, Array]] = {}
        self.gap = 0.0  # least excess bound so far; a new one costs time, and is at least a quarter

    def member(self, theta: Array) -> Array:
        return (self.domain._support_point(theta / np.linalg.norm(theta)) - self.x) / self.size

    def separates(self, theta: Array, farthest: Array) -> bool:
        """Return whether theta proves x, moved to 0, outside: <theta, z> < 0 for all members z."""
        length = np.linalg.norm(theta)
        value = float(farthest @ theta / length)
        if not value + self.gap / 4 < -self.slack / 2:
            return False
        gap = self.domain._support_gap(theta / length) / self.size
        self.gap = min(self.gap or gap, gap)
        return value + gap < -self.slack / 2

    def start(self, member: Array) -> bool | None:
        self.origin = (member - self.x) / self.size
        self.atoms, self.weights = self.origin[None, :], np.ones(1)
        return self.is_inside()

    def is_inside(self) -> bool | None:
        return True if np.linalg.norm(self.weights @ self.atoms) <= self.slack else None

    def wolfe(self) -> bool | None:
        """Return whether x is inside, by Wolfe's algorithm; None if its steps prove neither."""
        for _ in range(50 + 5 * len(self.x)):
            theta = -(self.weights @ self.atoms)
            atom = self.member(theta)
            if self.separates(theta, atom):
                return False
            before = np.linalg.norm(theta)
            self.atoms, self.weights = nearest_combination(
                np.vstack([self.atoms, atom]), np.append(self.weights, 0.0)
            )
            after = np.linalg.norm(self.weights @ self.atoms)
            if after <= self.slack:
                return True
            if after > before * (1 - 1e-9):  # rounding
                break
        return None

    def quasi_newton(self, flat: bool) -> bool | None:
        """Return whether x is inside, by minimising the support function; None if unproven."""
        # BFGS with the weak Wolfe conditions also handles kinks (Lewis & Overton 2013); theta has
        # <theta, x − origin> = 1. Axes in which the body is thin are scaled up; if flat, left out.
        if flat not in self.normals:
            axes = self.whitened(self.whitened(np.eye(len(self.x)), flat), flat)
            self.normals[flat] = axes, -self.origin @ axes
        axes, z = self.normals[flat]
        unit = -self.origin @ axes
        if not unit.any():
            return None
        unit /= np.linalg.norm(unit)
        recent = collections.deque[Array](maxlen=3 * len(unit) + 10)

        def gauge(z: Array) -> tuple[float, Array, bool]:
            theta = axes @ z
            atom = self.member(theta)
            recent.append(atom)
            away = (atom - self.origin) @ axes
            return float(away @ z), away - (away @ unit) * unit, self.separates(theta, atom)

        z = z / (z @ unit)
        value, slope, beyond = gauge(z)
        inverse = np.eye(len(z))
        for _ in range(200 + 20 * len(unit)):
            if beyond or np.linalg.norm(slope) <= self.slack / 100:
                break
            step = -inverse @ slope
            descent = float(step @ slope)
            low, high, length = 0.0, np.inf, 1.0
            for _ in range(60):
                new_value, new_slope, beyond = gauge(z + length * step)
                if beyond:
                    break
                if not new_value <= value + 1e-4 * length * descent:
                    high = length
                elif step @ new_slope < 0.9 * descent:
                    low = length
                else:
                    break
                length = (low + high) / 2 if high < np.inf else 2 * low
            else:
                break  # rounding
            change, turn = length * step, new_slope - slope
            z, value, slope = z + change, new_value, new_slope
            curvature = float(change @ turn)
            if curvature > 0:
                bent = inverse @ turn
                inverse -= (np.outer(change, bent) + np.outer(bent, change)) / curvature
                inverse += (1 + turn @ bent / curvature) * np.outer(change, change) / curvature
        self.normals[flat] = axes, z
        return False if beyond else self.combine(list(recent))

    def combine(self, points: list[Array]) -> bool | None:
        """Add points to the convex combination; return True if it proves x inside, else None."""
        atoms = np.vstack([self.atoms, *points])
        try:
            weights, _ = scipy.optimize.nnls(
                np.vstack([atoms.T, np.ones(len(atoms))]), np.append(np.zeros(len(self.x)), 1.0)
            )
        except RuntimeError:  # too many steps: continue without these atoms
            return None
        if weights.any():
            weights /= weights.sum()
            if np.linalg.norm(weights @ atoms) < np.linalg.norm(self.weights @ self.atoms):
                self.atoms, self.weights = atoms[weights > 0], weights[weights > 0]
        return self.is_inside()

    def whitened(self, axes: Array, flat: bool) -> Array:
        """Return new axes, as columns, in which the body resembles a ball."""
        # For an ellipsoid x' M⁻¹ x <= 1, half widths h_i and support points s_i along t_i satisfy
        # h_i s_i = M t_i. Small widths may be rounding: they are raised or, if ``flat``, left out.
        widths = np.array([self.member(axis) - self.member(-axis) for axis in axes.T]) / 2 @ axes
        heights = np.maximum(widths.diagonal(), self.slack * widths.diagonal().max())
        _, values, rows = np.linalg.svd(widths / heights)
        lowest = max(1e-14 if flat else 1e-10, self.noise) * values[0]
        kept = values > lowest * flat
        return axes / heights @ (rows[kept].T / np.sqrt(np.maximum(values[kept], lowest)))


def nearest_combination(atoms: Array, weights: Array) -> tuple[Array, Array]:
    """Return the convex combination of the atoms that is nearest to 0.

    The result is the atoms with positive weights, and these weights.
    """
    while True:
        # the least squares solution of [atoms' ; 1'] m = (0, 1), rescaled to sum 1, gives the
        # nearest point of the affine hull
        system = np.vstack([atoms.T, np.ones(len(atoms))])
        target = np.append(np.zeros(atoms.shape[1]), 1.0)
        affine = scipy.linalg.lstsq(system, target, lapack_driver="gelsy", check_finite=False)[0]  # pyright: ignore[reportOptionalSubscript]
        affine /= affine.sum()
        if (affine > 0).all():
            return atoms, affine
        leaving = affine <= 0
        steps = weights[leaving] / np.maximum(weights[leaving] - affine[leaving], TINY)
        step = min(1.0, float(steps.min()))
        weights = weights + step * (affine - weights)
        kept = np.ones(len(weights), dtype=bool)
        kept[np.flatnonzero(leaving)[steps <= step]] = False
        kept &= weights > 0
        atoms, weights = atoms[kept], weights[kept] / weights[kept].sum()
