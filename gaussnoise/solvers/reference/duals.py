"""Functions of all reference solvers: coordinates of the span, dual weights, certified gap."""

import math
from collections.abc import Iterable

import numpy as np
import scipy

from domains.floats import Array

from ..design import Design

# Weight on a point inside the ellipsoid lowers the bound in proportion to the point's slack; an
# error in an equation lowers it only by its square. With slacks weighted by this number, the
# ellipsoid method needs a third fewer steps than with 1; ten times more or less changes little.
_SLACK_WEIGHT = 30.0


def coordinates(points: Array, *, centered: bool) -> tuple[Array, Array, Array]:
    """Return origin (d,), basis B (d, r), coordinates Y (N, r) with ``points = origin + Y B'``.

    Let σ be the root-mean-square size of the points in a direction. This direction adds about σ to
    the error γ, and its columns of B and of Y have size √σ. So the optimal ``Q = B⁻¹ M B⁻ᵀ``, where
    M is the covariance, has size one, and a solver's absolute accuracy has the same effect in every
    direction.
    """
    origin = points[0] if centered else np.zeros(points.shape[1])
    moved = points - origin
    if centered:
        mean = moved.mean(axis=0)
        origin, moved = origin + mean, moved - mean
    left, sizes, axes = np.linalg.svd(moved, full_matrices=False)
    r = int((sizes > 4 * np.finfo(np.float64).eps * sizes[0] * math.sqrt(max(points.shape))).sum())
    roots = np.sqrt(sizes[:r] / math.sqrt(len(points)))
    return origin, axes[:r].T * roots, left[:, :r] * (sizes[:r] / roots)


def norm(values: Array, order: float) -> float:
    """Return ``‖values‖_order`` of nonnegative numbers, without overflow at large orders."""
    largest = float(values.max())
    return largest * float(np.linalg.norm(values / largest, order)) if largest > 0 else 0.0


def dual_norm(w: Array, p: float) -> float:
    """Return the dual norm ``‖w‖_{s*}`` of coordinate weights w, where ``1/s* = 1 − 2/p``."""
    return norm(w, math.inf if p == 2 else 1.0 if p == math.inf else p / (p - 2))


def norm_gradient(variances: Array, p: float) -> Array:
    """Return a gradient of ``‖u‖_s`` at the variances u, s = p/2: the optimal coordinate weights.

    It has dual norm one. At p = ∞ there may be several gradients: one is returned.
    """
    if p == math.inf:
        return np.eye(len(variances))[variances.argmax()]
    return (variances / norm(variances, p / 2)) ** (p / 2 - 1)


def dual_weights(
    points: Array, M: Array, center: Array, p: float, centered: bool
) -> tuple[Array, Array]:
    """Return weights λ (N,) of points x_i and w (d,) of coordinates that prove M near optimal.

    Let W = diag(w), and let v be ``center``. The weights make the covariance M stationary:
    ``Σ λ_i (x_i − v)(x_i − v)' ∝ M W M``. If centered, also ``Σ λ_i (x_i − v) = 0``. λ_i > 0 only
    where x_i touches the ellipsoid. The equations are solved by nonnegative least squares, in the
    coordinates of M's factor. At p = ∞, w is unknown too, and nonzero only on the largest
    variances.
    """
    squares, axes = np.linalg.eigh(M / norm(M.diagonal(), p / 2))
    kept = squares > 4 * len(M) * np.finfo(np.float64).eps * squares[-1]
    L = axes[:, kept] * np.sqrt(squares[kept])
    y = (points - center) @ (axes[:, kept] / np.sqrt(squares[kept]))
    reach, u = np.square(y).sum(axis=1), np.square(L).sum(axis=1)
    y /= math.sqrt(reach.max())
    # below p = ∞ the optimal w is the gradient of the norm; at p = ∞ it is any mixture on the
    # largest variances
    choices = np.eye(len(M)) if p == math.inf else norm_gradient(u, p)[:, None]
    slack = 1 - u / u.max() if p == math.inf else np.zeros(1)
    N, k = len(y), len(slack)
    A = np.vstack(
        [
            np.hstack([_squares(y), -(_squares(L) @ choices)]),
            np.hstack([y.T * centered, np.zeros((y.shape[1], k))]),
            _SLACK_WEIGHT * np.hstack([1 - reach / reach.max(), np.zeros(k)]),
            _SLACK_WEIGHT * np.hstack([np.zeros(N), slack]),
            np.hstack([np.ones(N), np.zeros(k)]),  # the weights sum to one
        ]
    )
    try:
        solution, _ = scipy.optimize.nnls(
            A, np.append(np.zeros(len(A) - 1), 1.0), maxiter=100 * A.shape[1]
        )
    except RuntimeError:  # iteration limit: equal weights prove a bound too, though a weak one
        solution = np.ones(N + k)
    weights, w = solution[:N], choices @ solution[N:]
    return weights / weights.sum(), w / dual_norm(w, p)


def _squares(rows: Array) -> Array:
    """Return the matrix whose columns are ``vec(b b')`` for the rows b."""
    return np.einsum("ij,ik->jki", rows, rows).reshape(-1, len(rows))


def best_design(
    points: Array,
    factor: Array,
    center: Array,
    duals: Iterable[tuple[Array, Array]],
    *,
    p: float,
    centered: bool,
    steps: int,
    note: str,
) -> Design:
    """Return the design of ``factor`` with the dual weights and the center of least gap.

    ``duals`` are pairs of weights of points and of coordinates. For ``centered`` designs, the
    center is ``center`` or the mean of the points with these weights.
    """
    lower, weights, w = max(
        ((_fidelity(points, *dual, centered), *dual) for dual in duals), key=lambda found: found[0]
    )
    centers = [center, weights @ points] if centered else [center]
    reach, center = min(
        ((_longest_point(factor, points - v), v) for v in centers), key=lambda found: found[0]
    )
    upper = math.sqrt(reach * norm(np.square(factor).sum(axis=1), p / 2))
    return Design(weights, w, factor, center, upper / lower - 1, steps, note)


def _fidelity(points: Array, weights: Array, w: Array, centered: bool) -> float:
    """Return the lower bound that weights of points, and weights w of coordinates, prove."""
    moved = points - weights @ points if centered else points
    return float(
        np.linalg.svd(np.sqrt(weights)[:, None] * moved * np.sqrt(w), compute_uv=False).sum()
    )


def _longest_point(factor: Array, moved: Array) -> float:
    """Return the largest ``x' M⁺ x`` over the rows x of ``moved``, for M = factor factor'."""
    return float(np.square(np.linalg.lstsq(factor, moved.T, rcond=None)[0]).sum(axis=0).max())
