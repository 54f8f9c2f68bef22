"""Second-order finish: a primal-dual interior-point method on the points that matter."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from .fidelity import Evaluation, Fidelity, gram

Array = NDArray[np.float64]

_MAX_STEPS = 60
_USUAL_STEPS = 7
_BACKTRACKS = 12
# Complementarity aimed at by each Newton step, as a fraction of the present one: 7 to 9 steps from 1e-3 to 1e-7.
_CENTERING = 0.15
_TO_THE_BOUNDARY = 0.99
_FEATURE_ENTRIES = 2**22  # numbers in one block of features


def cost(points: int, dim: int, rank: int, p: float) -> float:
    """Estimated floating-point operations of a finish with this many points."""
    unknowns = points + (dim if p > 2 else 0)
    return _USUAL_STEPS * (unknowns**2 * rank**2 / 2 + unknowns**3 / 3 + 10 * unknowns * rank**2 + 5e6)


def interior_point(
    fidelity: Fidelity, weights: Array, shares: Array, tol: float
) -> tuple[Array, Array, Evaluation, int]:
    """Maximise F(λ, ω) over both simplices from a point inside them, until the gap on these points is ``tol``.

    Newton's method on the optimality conditions ``∂F/∂x_i + slack_i = multiplier, x_i slack_i = μ``, μ → 0; unknowns
    are scaled by x, so that weights of every size are found to the same relative precision.

    Returns the weights, the shares, F there, and the steps taken.
    """
    count = len(weights)
    free = len(shares) if fidelity.p > 2 else 0
    x = np.concatenate([weights / weights.sum(), shares[:free] / shares.sum()])
    groups = np.zeros((len(x), 2 if free else 1))
    groups[:count, 0] = 1
    groups[count:, -1] = 1

    def evaluate(x: Array) -> tuple[Evaluation, Array]:
        now = fidelity.at(x[:count], x[count:] if free else shares)
        slope = now.lengths / 2
        if free:
            w = fidelity.coordinate_weights(x[count:])
            slope = np.concatenate([slope, fidelity.power * now.variances * w / x[count:] / 2])
        return now, slope

    now, slope = evaluate(x)
    best = now.gap, x, now
    multipliers = np.array([slope[group > 0].max() for group in groups.T])
    slack = np.maximum(groups @ multipliers - slope, max(now.gap, tol) * now.value / (2 * count * x))
    steps = 0
    for steps in range(1, _MAX_STEPS + 1):  # noqa: B007
        matrix = _curvature(fidelity, now, x, count)
        matrix[np.diag_indices_from(matrix)] += x * slack
        # past this the bracket is closed by centering, not by a smaller μ; far from the central path, center first
        enough = tol * now.value / (2 * len(x))
        centered = _residual(x, slope, slack, groups, multipliers) <= float(x @ slack)
        target = max(enough, (_CENTERING if centered else 1.0) * float(x @ slack) / len(x))
        right = np.column_stack([x * (slope - groups @ multipliers) + target, x[:, None] * groups])
        scale = 1 / np.sqrt(matrix.diagonal())
        try:
            solved = scale[:, None] * cho_solve(
                cho_factor((scale[:, None] * matrix) * scale, overwrite_a=True), scale[:, None] * right
            )
        except np.linalg.LinAlgError:
            break
        missing = 1 - groups.T @ x
        tilt = np.linalg.solve(groups.T @ (x[:, None] * solved[:, 1:]), groups.T @ (x * solved[:, 0]) - missing)
        relative = solved[:, 0] - solved[:, 1:] @ tilt
        change = (target - x * slack) / x - slack * relative
        length = min(
            1.0,
            _TO_THE_BOUNDARY / max(float(-relative.min()), 1e-30),
            _TO_THE_BOUNDARY / max(float((-change / slack).max()), 1e-30),
        )
        before = _residual(x, slope, slack, groups, multipliers)
        tried = x, slack, multipliers
        for _ in range(_BACKTRACKS):
            tried = x * (1 + length * relative), slack + length * change, multipliers + length * tilt
            now, slope = evaluate(tried[0])
            if _residual(tried[0], slope, tried[1], groups, tried[2]) <= (1 - 0.01 * length) * before + target * len(x):
                break
            length /= 2
        x, slack, multipliers = tried
        if now.gap < best[0]:
            best = now.gap, x, now
        if now.gap <= tol:
            break
    _, x, now = best
    return x[:count], (x[count:] if free else shares), now, steps


def _residual(x: Array, slope: Array, slack: Array, groups: Array, multipliers: Array) -> float:
    return float(np.abs(x * (slope + slack - groups @ multipliers)).sum())


def _curvature(fidelity: Fidelity, at: Evaluation, x: Array, count: int) -> Array:
    """Minus the Hessian of F in the relative changes of x, shape (n, n).

    F is the least ``½ (tr WM + tr C M⁻¹)`` over M, whose Hessian is diagonal in the axes of N; eliminating M leaves a
    Gram matrix of features c_i c_i' (points) and −U_j U_j' (coordinates), entry (a, b) weighing 2 s_a s_b/(s_a + s_b).
    """
    # relative change of λ_i or ω_j moves C by λ_i x_i x_i', or w_j by the fraction 1/s*
    rows = np.concatenate(
        [
            np.sqrt(x[:count, None] / at.roots) * at.coordinates,
            np.sqrt(fidelity.power) * at.axes[: len(x) - count],
        ]
    )
    signs = np.ones(len(x))
    signs[count:] = -1
    r = len(at.roots)
    result = np.zeros((len(x), len(x)))
    block = max(1, _FEATURE_ENTRIES // (len(x) * r))
    kernel = at.roots[:, None] * at.roots / (2 * (at.roots[:, None] + at.roots))
    for start in range(0, r, block):
        stop = min(start + block, r)
        part = kernel[start:stop, start:].copy()
        part[:, stop - start :] *= 2  # entries (a, b) and (b, a)
        features = rows[:, start:stop, None] * np.sqrt(part) * (signs[:, None] * rows[:, start:])[:, None, :]
        result += gram(features.reshape(len(x), -1))
    result += np.tril(result, -1).T
    if fidelity.centered:
        pulls = x[:count, None] * at.coordinates
        result[:count, :count] += pulls @ pulls.T
    if len(x) > count:
        bend = (1 - fidelity.power) * fidelity.power * at.variances * fidelity.coordinate_weights(x[count:]) / 2
        result[np.arange(count, len(x)), np.arange(count, len(x))] += bend
    return result
