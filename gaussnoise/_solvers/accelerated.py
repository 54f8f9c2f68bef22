"""The optimal covariance of finitely many points at p = 2: accelerated multiplicative weights."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Past eight earlier steps the least-squares problem below is dominated by rounding (prefix sums, random points).
_MEMORY = 8
# No weight changes by more than e^5 in one step: far from the optimum, extrapolation overshoots.
_LARGEST_STEP = 5.0
# Squaring the points into a second-moment matrix loses half the digits: worse conditioned points use an SVD.
_EIGH_CONDITION = 1e6
_SMALLEST_LOG = -690.0


@dataclass(frozen=True, eq=False)
class Design:
    """Weights on the points, and the ellipsoid they induce in the points' own coordinates.

    Attributes:
        weights: shape (N,), the best measure found.
        axes: shape (r, r), orthonormal columns.
        lengths: shape (r,), so that ``axes * lengths²  @ axes.T`` is N = C^{1/2}, not yet scaled to feasibility.
        gap: upper/lower − 1 at the best step, before rounding margins.
        steps: evaluations spent.
    """

    weights: Array
    axes: Array
    lengths: Array
    gap: float
    steps: int


@dataclass(frozen=True, eq=False)
class _Evaluation:
    value: float
    largest: float
    ratios: Array
    axes: Array
    roots: Array


def optimal_design(points: Array, *, centered: bool, tol: float, max_steps: int) -> Design:
    """Maximise ``tr C(λ)^{1/2}`` over weights λ, C the covariance or second moment of full-rank ``points`` (N, r).

    Fixed point λ_i ← λ_i z_i/F, z_i = x_i' C^{-1/2} x_i (Yu 2010 for the monotonicity), with Anderson acceleration in
    log λ. Every step carries the bracket ``F ≤ γ ≤ √(F · max z)``.
    """
    spectrum = np.linalg.svd(points - points.mean(axis=0) if centered else points, compute_uv=False)
    by_svd = spectrum[0] > _EIGH_CONDITION * spectrum[-1]
    log_weights = np.full(len(points), -np.log(len(points)))
    best: tuple[float, Array, _Evaluation] = (
        np.inf,
        log_weights,
        _evaluate(points, np.exp(log_weights), centered, by_svd),
    )
    images: list[Array] = []
    moves: list[Array] = []
    plain: Array | None = None
    previous, steps = -np.inf, 0
    while steps < max_steps:
        steps += 1
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        log_weights = np.maximum(np.log(np.maximum(weights, np.finfo(float).tiny)), _SMALLEST_LOG)
        now = _evaluate(points, weights, centered, by_svd)
        if plain is not None and not now.value >= previous:
            # the extrapolation went downhill: take the plain step instead, which cannot
            log_weights, plain = plain, None
            images.clear()
            moves.clear()
            continue
        gap = np.sqrt(now.largest / now.value) - 1
        if gap < best[0]:
            best = (float(gap), weights, now)
        if gap <= tol:
            break
        previous = now.value
        move = np.log(np.maximum(now.ratios, np.finfo(float).tiny))
        images.append(log_weights + move)
        plain = images[-1]
        moves.append(move)
        del images[: -_MEMORY - 1], moves[: -_MEMORY - 1]
        log_weights = log_weights + np.clip(
            _extrapolate(images, moves, weights) - log_weights, -_LARGEST_STEP, _LARGEST_STEP
        )
    gap, weights, at = best
    return Design(weights, at.axes, np.sqrt(at.roots), gap, steps)


def _evaluate(points: Array, weights: Array, centered: bool, by_svd: bool) -> _Evaluation:
    moved = points - weights @ points if centered else points
    if by_svd:
        _, roots, axes = np.linalg.svd(np.sqrt(weights)[:, None] * moved, full_matrices=False)
        axes = axes.T
    else:
        squares, axes = np.linalg.eigh((moved.T * weights) @ moved)
        roots = np.sqrt(np.maximum(squares, 0.0))
    roots = np.maximum(roots, roots.max() * np.finfo(float).eps)
    value = roots.sum()
    z = np.square(moved @ (axes / np.sqrt(roots))).sum(axis=1)
    return _Evaluation(float(value), float(z.max()), z / value, axes, roots)


def _extrapolate(images: list[Array], moves: list[Array], weights: Array) -> Array:
    """Anderson's combination of past steps, residuals weighted by √λ so that dying points do not steer."""
    if len(images) == 1:
        return images[0]
    root = np.sqrt(weights)[:, None]
    move_changes = np.diff(np.array(moves), axis=0).T
    image_changes = np.diff(np.array(images), axis=0).T
    mix = np.linalg.lstsq(root * move_changes, root[:, 0] * moves[-1], rcond=1e-10)[0]
    return images[-1] - image_changes @ mix
