"""The semidefinite relaxation for images A L of sign-invariant 2-convex bodies L, matrix-free."""

import numpy as np

from domains.floats import Array

from ...numerics.norms import dual_ball_norm, dual_power, error_of
from .body import Body

_MOST_STEPS = 5000


def relaxation(body: Body, p: float, rank: int, tol: float) -> Array | None:
    """Return a factor (d, rank) of an ellipsoid that covers the body with nearly the least error.

    The ellipsoid comes from a semidefinite relaxation. Its error is at most √(π/2) times the least
    error γ. The body must be an image A L of a sign-invariant 2-convex body L. For other bodies,
    and for unions of several translates, the result is None.
    """
    image = body.domain._image()
    if image is None or len(image.offsets) > 1 or image.matrix.shape[1] == 0:
        return None
    # for K ∪ −K, an offset is one more column, with [−1, 1] as its block
    extra = int(image.offsets.any())
    A = np.hstack([image.matrix, image.offsets.T]) if extra else image.matrix
    ends = np.cumsum([block.size for block in image.blocks])[:-1]
    squares = np.square(A)
    live = squares.any(axis=1)
    # for the support functions h_L of L, and h_T of its squared points, and every PSD Q,
    # sup_L x'Qx <= min {h_T(y) : diag(y) ⪰ Q} <= (π/2) sup_L x'Qx (Nesterov 1998); so y with
    # h_T(y) <= 1 is sought that minimises ‖(Σ_j a_ij²/y_j)_i‖_{p/2}, and M = A diag(1/y) A'.
    # The dual maximises h_L((‖W^{1/2} a_j‖)_j) over ‖w‖_{s*} <= 1, with a_j the columns of A
    power = dual_power(p)  # 1/s*
    w = live / max(dual_ball_norm(live.astype(float), p), 1.0)
    least, factor = np.inf, A
    for _ in range(_MOST_STEPS):
        c = np.sqrt(w @ squares)
        parts = np.split(c[: A.shape[1] - extra], ends)
        x = [block.support_point(part) for block, part in zip(image.blocks, parts, strict=True)]
        x = np.concatenate([*x, np.ones(extra)])
        lower = float(c @ x)
        # at the maximiser x of Σ c_j x_j over L, the best y is c_j/(lower x_j), with h_T(y) = 1
        inverse = np.divide(lower * x, c, out=np.zeros_like(c), where=c > 0)
        variances = squares @ inverse
        upper = error_of(variances, p)
        if upper < least:
            least, factor = upper, A * np.sqrt(inverse)
        if p == 2 or least <= lower * (1 + tol):
            break
        # the optimal w satisfies w = (w u)^{1/s*} up to scale, u the variances: a fixed-point step
        w = (w * variances) ** power
        w = w / dual_ball_norm(w, p)
    left, singular, _ = np.linalg.svd(factor, full_matrices=False)
    return (left * singular)[:, :rank]
