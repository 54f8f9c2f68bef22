"""The optimal covariance of finitely many points by the ellipsoid method, in numpy alone."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from domains.errors import DomainTooLargeError
from domains.floats import Array

from ..design import Design
from ..progress import keeps_answer
from .duals import best_design, coordinates, dual_weights, norm, norm_gradient

# For a gap of 1e-6, n unknowns take about 13 n² steps of n² operations each: half a minute for
# n = 150.
_MOST_UNKNOWNS = 150


def ellipsoid(
    points: Array,
    *,
    p: float,
    centered: bool,
    tol: float,
    max_steps: int,
    report: Callable[[int, float, float], None] | None = None,
) -> Design:
    """Return the covariance M that covers all points x with the least ``‖diag M‖_s``.

    Here s = p/2, and v is the center. A point x is covered if ``(x − v)' M⁻¹ (x − v) <= 1``. On the
    span of the points, M = B Q B'. The method keeps an ellipsoid of pairs (Q, v) that holds the
    optimum, and makes this ellipsoid smaller, cut by cut. Every Q is feasible after scaling. The
    best Q so far is the answer, and later cuts remove every Q that is not better. From time to
    time, dual weights of the best Q are computed, to decide whether to stop.

    Args:
        points: shape (N, d), entries at most one.
        p: error norm.
        centered: whether v is free (γ_p) or zero (γ°_p).
        tol: gap to reach.
        max_steps: cuts allowed; a gap of 1e-6 takes about ``13 n²``, n = r(r+1)/2 unknowns (+ r if
            centered).
        report: called with (steps, lower, upper) from time to time.

    Raises:
        DomainTooLargeError: there are more than 150 unknowns.

    Source: Nikolov & Tang (2023), Appendix B.
    """
    origin, B, Y = coordinates(points, centered=centered)
    r = Y.shape[1]
    n = r * (r + 1) // 2 + r * centered
    if n > _MOST_UNKNOWNS:
        raise DomainTooLargeError(
            f'method="ellipsoid": {n} unknowns for points of rank {r} would take about {13 * n**2} '
            f'steps; expected at most {_MOST_UNKNOWNS} unknowns; hint: method="auto"'
        )
    E = symmetric_basis(r)
    Q, v, level, shape = enclosing_ball(B, Y, p, centered)
    best = Q, v
    middle = np.concatenate([np.tensordot(E, Q), v[: r * centered]])

    def design(steps: int) -> Design:
        factor, center = B @ np.linalg.cholesky(best[0]), origin + B @ best[1]
        duals = [dual_weights(points, factor @ factor.T, center, p, centered)]
        return best_design(
            points,
            factor,
            center,
            duals,
            p=p,
            centered=centered,
            steps=steps,
            note="central-cut ellipsoid method",
        )

    current, step = design(0), 0
    try:
        for step in range(1, max_steps + 1):
            if centered:
                v = middle[len(E) :]
            Q = np.tensordot(middle[: len(E)], E, 1)
            G, h, depth, worth = cut(B, Y, Q, v, p, level, centered)
            if worth < level:
                level, best = worth, (Q, v)
            ray = np.concatenate([np.tensordot(E, G), h[: r * centered]]) @ shape
            length = float(np.linalg.norm(ray))
            # tau = 1 means that the ellipsoid holds no further candidates, up to rounding
            tau = depth / length if length else 1.0
            if step % (n * (n + 1)) == 0 or step == max_steps or not tau < 1:
                current = design(step)
                if report:
                    report(step, math.sqrt(level) / (1 + current.gap), math.sqrt(level))
                if current.gap <= tol or not tau < 1:
                    break
            middle, shape = _shrunk(middle, shape, ray / length, tau)
    except KeyboardInterrupt:
        if not keeps_answer():
            raise
        current = dataclasses.replace(design(step), interrupted=True)
    return current


def symmetric_basis(r: int) -> Array:
    """Return an orthonormal basis of the symmetric matrices, shape (r(r+1)/2, r, r)."""
    rows, columns = np.triu_indices(r)
    E = np.zeros((len(rows), r, r))
    E[range(len(rows)), rows, columns] = E[range(len(rows)), columns, rows] = np.where(
        rows == columns, 1, math.sqrt(0.5)
    )
    return E


def enclosing_ball(
    B: Array, Y: Array, p: float, centered: bool
) -> tuple[Array, Array, float, Array]:
    """Return feasible (Q, v), its objective, and an ellipsoid around (Q, v) that holds the optimum.

    Q is the covariance in the coordinates Y of the points (basis B), and v the center.
    """
    # the optimal covariance has no larger objective, so tr M is at most ``trace`` for both
    # covariances M = B Q B', and they are at most √2 trace apart; v lies in the hull of the points.
    # A further factor √2 makes one ellipsoid hold the product of the two balls, of Q and of v
    r = Y.shape[1]
    # every point has y'Q⁻¹y <= Σ_j y_j²/(r max y_j²) <= 1
    Q = r * np.diag(np.square(Y).max(axis=0))
    level = norm(np.square(B) @ Q.diagonal(), p / 2)
    trace, sizes = len(B) ** (1 - 2 / p) * level, np.linalg.norm(B, axis=0)
    radii = 2 * trace / np.linalg.norm(symmetric_basis(r) * np.outer(sizes, sizes), axis=(1, 2))
    reach = math.sqrt(2 * r) * np.abs(Y).max(axis=0)
    return Q, np.zeros(r), level, np.diag(np.concatenate([radii, reach[: r * centered]]))


def cut(
    B: Array, Y: Array, Q: Array, v: Array, p: float, level: float, centered: bool
) -> tuple[Array, Array, float, float]:
    """Return a half-space that holds every feasible (Q', v') no worse than (Q, v), and a value.

    Q is the covariance in the coordinates Y of the points (basis B), and v the center. The
    half-space is ``<G, Q' − Q> + h'(v' − v) <= −depth``, returned as G, h and depth >= 0. The value
    is the objective of Q scaled to cover the points: infinity if Q is not positive definite.
    """
    squares, axes = np.linalg.eigh(Q)
    shortest = Y @ axes[:, 0]
    # a covering ellipsoid is at least as wide as the points along every axis, here Q's shortest
    width = np.ptp(shortest) / 2 if centered else np.abs(shortest).max()
    if squares[0] < width**2:  # Q is not positive definite, or too narrow for the points
        return -np.outer(axes[:, 0], axes[:, 0]), np.zeros(len(Q)), width**2 - squares[0], math.inf
    root = axes / np.sqrt(squares)
    lengths = np.square((Y - v) @ root).sum(axis=1)
    reach = float(lengths.max())
    variances = ((B @ Q) * B).sum(axis=1)
    value = norm(variances, p / 2)
    if reach > 1:
        # The longest point is outside. y'Q⁻¹y is convex in (Q, y), so the cut by its tangent
        # removes only Q' that do not cover this point.
        g = root @ (root.T @ (Y[lengths.argmax()] - v))
        return -np.outer(g, g), -2 * g, reach - 1, value * reach
    # Q is feasible: as the objective is convex, the cut by its tangent removes only worse Q'
    w = norm_gradient(variances, p)
    return (B.T * w) @ B, np.zeros(len(Q)), value - min(level, value * reach), value * reach


def _shrunk(middle: Array, shape: Array, ray: Array, tau: float) -> tuple[Array, Array]:
    """Return the least ellipsoid around all ``middle + shape b`` with ‖b‖ <= 1, ray'b <= −tau."""
    n = len(middle)
    along, across = (
        n * (1 - tau) / (n + 1),
        n * math.sqrt((1 - tau**2) / (n**2 - 1)) if n > 1 else 0.0,
    )
    step = shape @ ray
    return middle - (1 + n * tau) / (n + 1) * step, across * shape + np.outer(
        (along - across) * step, ray
    )
