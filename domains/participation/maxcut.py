"""The largest quadratic form of k unit vectors: max {⟨X, Z⟩ : Z ⪰ 0, diag Z = 1}, for many X.

Z is the Gram matrix of the vectors. The dual is min {Σ y : X ⪯ diag(y)} (Goemans & Williamson
1995). Let the search stop at any y > 0, and let λ be the largest eigenvalue of ``D X D`` with D =
diag(y)^{-1/2}. Then λ y is feasible, so that λ Σ y is a proven upper bound. Any feasible Z gives a
lower bound.
"""

from dataclasses import dataclass

import numpy as np

from ..floats import Array

_STEPS = 200
_SHARPER = 8.0  # once a step is well centered, the weight t of the objective grows by this factor
_CENTERED = 0.3  # Newton decrement below which a step is well centered
_ROUNDING = 2.0**-46  # rounding of an eigenvalue of a k × k matrix is at most k times this


@dataclass(frozen=True, eq=False)
class MaxCut:
    """Bounds on max {⟨X, Z⟩ : Z ⪰ 0, diag Z = 1} for each X, and their proofs Z and y.

    Z attains the lower bound. y proves the upper bound.

    Attributes:
        value: shape (m,), reached by Z.
        upper: shape (m,), proven, with all rounding.
        matrices: Z, shape (m, k, k).
        multipliers: y, shape (m, k), y >= 0 with X ⪯ diag(y) up to rounding.
    """

    value: Array
    upper: Array
    matrices: Array
    multipliers: Array


def largest_forms(X: Array, tol: float = 1e-10) -> MaxCut:
    """Return lower and upper bounds on max {⟨X, Z⟩ : Z ⪰ 0, diag Z = 1}, for every matrix X.

    X is a stack of symmetric matrices, shape (m, k, k). The relative gap of the bounds is near
    ``tol``. A barrier method minimises ``t Σ y − log det(diag(y) − X)`` over y, and Z = (diag(y) −
    X)⁻¹ / t.
    """
    m, k = X.shape[:2]
    size = np.abs(X).max(axis=(1, 2), initial=0.0)
    unit = X / np.where(size > 0, size, 1.0)[:, None, None]
    diagonal = np.arange(k)
    # by diagonal dominance, this start is strictly feasible
    y = np.abs(unit).sum(axis=2) + 1.0
    t = np.full(m, 1.0)
    # at the minimizer for t, Σ y exceeds its least value by at most k/t
    goal = k / tol
    Z = np.broadcast_to(np.eye(k), (m, k, k)).copy()
    active = np.arange(m)
    for _ in range(_STEPS):
        if not len(active):
            break
        S = -unit[active]
        S[:, diagonal, diagonal] += y[active]
        try:
            # the gradient is t − diag S⁻¹, and the Hessian is S⁻¹ ∘ S⁻¹
            inverse = np.linalg.inv(S)
            gradient = t[active, None] - inverse[:, diagonal, diagonal]
            step = -np.linalg.solve(np.square(inverse), gradient[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:  # rounding stops the search; the last y gives a bound
            break
        decrement = np.sqrt(np.maximum(-(gradient * step).sum(axis=1), 0.0))
        centered = decrement < _CENTERED
        # far from the center, a damped step stays feasible (Nesterov & Nemirovskii 1994)
        y[active] += step / np.where(centered, 1.0, 1.0 + decrement)[:, None]
        Z[active] = inverse
        done = centered & (t[active] >= goal)
        t[active[centered & ~done]] *= _SHARPER
        active = active[~done]
    # At the minimum, S⁻¹/t has a unit diagonal. Near it, S⁻¹ is scaled to have one.
    scales = np.sqrt(Z[:, diagonal, diagonal])
    Z = Z / scales[:, :, None] / scales[:, None, :]
    Z[:, diagonal, diagonal] = 1.0
    return _bracket(X, size, unit, Z, y)


def _bracket(X: Array, size: Array, unit: Array, Z: Array, y: Array) -> MaxCut:
    k = X.shape[1]
    # three candidates for y: from the search, from diagonal dominance, and from the diagonal
    rows = np.abs(unit).sum(axis=2)
    y = np.where(np.isfinite(y).all(axis=1, keepdims=True), y, rows)
    tried = np.stack([y, rows, np.abs(np.diagonal(unit, axis1=1, axis2=2))])
    floor = 2.0**-40 * tried.max(axis=2, keepdims=True) + 2.0**-1000
    tried = np.maximum(tried, floor)
    roots = np.sqrt(tried)
    scaled = unit[None] / roots[:, :, :, None] / roots[:, :, None, :]
    top = np.linalg.eigvalsh(scaled)[..., -1]
    slack = _ROUNDING * k * np.abs(scaled).sum(axis=(2, 3))
    uppers = np.maximum(top + slack, 0.0) * tried.sum(axis=2) * (1 + k * _ROUNDING)
    best = uppers.argmin(axis=0)
    at = np.arange(len(X))
    value = (X * Z).sum(axis=(1, 2))
    upper = np.maximum(size * uppers[best, at], value)
    multipliers = size[:, None] * np.maximum(top + slack, 0.0)[best, at, None] * tried[best, at]
    return MaxCut(value, upper, Z, multipliers)
