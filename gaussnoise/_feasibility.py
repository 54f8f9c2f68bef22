"""Is every point inside the ellipsoid of the *stored* factor? Asked after every solve, and again by ``verify``."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from .errors import CovarianceError

Array = NDArray[np.float64]

# A coordinate outside range(L) below this fraction of the largest point is rounding, not signal. Releases do not
# lean on it: their sensitivity is computed on the integers that are drawn.
RANGE_TOLERANCE = 1e-11


@dataclass(frozen=True, eq=False)
class Strategy:
    """Coordinates b_i with ``L b_i = point_i``, and proven bounds on their lengths.

    Attributes:
        coordinates: shape (N, r).
        lengths: shape (N,), upper bounds on ``sqrt(point' (L L')^+ point)``, rounding included.
    """

    coordinates: Array
    lengths: Array


def strategy(factor: Array, points: Array, *, precision: type = np.float64) -> Strategy:
    """Coordinates of ``points`` (N, d) in the columns of ``factor`` (d, r), by QR and one step of refinement.

    Residuals are accumulated in ``precision``. Raises CovarianceError when a point leaves range(factor).
    """
    count, r = len(points), factor.shape[1]
    size = np.abs(points).max(initial=0.0)
    if r == 0:
        if size > 0:
            raise CovarianceError(
                "the covariance is zero, but the sensitivity set is not: some difference gets no noise"
            )
        return Strategy(np.zeros((count, 0)), np.zeros(count))
    # Rows of very different size spoil the QR; powers of two even them out without rounding. Rows below a 1e-8 of the
    # largest may be rounding themselves, and are not blown up to matter.
    heights = np.abs(factor).max(axis=1)
    rows = np.exp2(-np.frexp(np.maximum(heights, 1e-8 * heights.max()))[1])
    factor, points = factor * rows[:, None], points * rows
    Q, R = np.linalg.qr(factor)
    smallest = np.linalg.svd(R, compute_uv=False)[-1]
    if not smallest > 0:
        raise CovarianceError("the factor has linearly dependent columns; hint: store one column per dimension")
    coordinates = _solve(R, Q, points)
    wide_factor, wide_points = factor.T.astype(precision), points.astype(precision)
    coordinates = coordinates + _solve(R, Q, (wide_points - coordinates.astype(precision) @ wide_factor).astype(float))
    left = (wide_points - coordinates.astype(precision) @ wide_factor).astype(float)
    outside = float(np.abs(left / rows).max(initial=0.0))
    if outside > RANGE_TOLERANCE * size:
        raise CovarianceError(
            "the covariance leaves some direction of the sensitivity set without noise: "
            f"a point sticks out of its range by {outside / size:.2g} of the largest coordinate"
        )
    # what is left inside range(L) moves the coordinates by at most ‖left‖/σ_min, and was itself rounded
    unit = 8 * r * np.finfo(np.float64).eps
    plain = np.linalg.norm(coordinates, axis=1)
    rounded = 8 * r * float(np.finfo(precision).eps) * (np.linalg.norm(points, axis=1) + np.linalg.norm(factor) * plain)
    lengths = plain * (1 + unit) + (np.linalg.norm(left @ Q, axis=1) + rounded) * (1 + unit) / smallest
    return Strategy(coordinates, lengths)


def _solve(R: Array, Q: Array, points: Array) -> Array:
    return solve_triangular(R, Q.T @ points.T, check_finite=False).T
