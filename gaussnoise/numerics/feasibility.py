"""The check that points are in the ellipsoid of a stored factor."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import EPS, Array

from ..errors import CovarianceError
from .precision import precision_for

# Points may leave range(L) along an axis by this fraction of the coordinate's size, which counts as
# rounding; gamma is enlarged by the same fraction. Releases do not depend on it: their sensitivity
# is computed on the integers of the lattice.
RANGE_TOLERANCE = 1e-11
_LARGE = 200  # with more columns, a faster bound on the least singular value is tried first
_CHUNK = 2**13  # points processed together: few enough for the cache
_LONG_OPERATIONS = 2**20  # products in extended precision (without BLAS) in ten milliseconds


@dataclass(frozen=True, eq=False)
class Whitened:
    """Coordinates b_i with ``L b_i = point_i`` for a factor L, and proven bounds on their lengths.

    Attributes:
        coordinates: the b_i as rows, shape (N, r).
        lengths: shape (N,), upper bounds on ``sqrt(point' (L L')^+ point)``, rounding included. If
            rounding moves a point out of range(L), the bound holds for its projection, in
            coordinates weighted by :func:`row_weights`.
        outside: shape (d,), the largest distance of a point from range(L) along each axis.
    """

    coordinates: Array
    lengths: Array
    outside: Array


def whiten(factor: Array, points: Array, *, precision: type | None = None) -> Whitened:
    """Return coordinates b with ``L b = x`` for each row x of ``points``, and bounds on ‖b‖.

    L is ``factor``, shape (d, r); ``points`` has shape (N, d). The coordinates are computed by QR
    and refined once. Residuals are accumulated in ``precision``; the default is extended precision
    if that takes almost no time.

    Raises:
        CovarianceError: the factor is too nearly singular for a bound.
    """
    count, r = len(points), factor.shape[1]
    if precision is None:
        precision = precision_for(points.size * r, _LONG_OPERATIONS)
    if r == 0:
        return Whitened(np.zeros((count, 0)), np.zeros(count), np.abs(points).max(axis=0))
    rows = row_weights(factor)
    factor = factor * rows[:, None]
    Q, R = np.linalg.qr(factor)
    # the singular values of R are those of the factor, up to this error
    backward = 8 * max(factor.shape) * EPS * float(np.linalg.norm(R))
    inverse = (
        scipy.linalg.solve_triangular(R, np.eye(r), check_finite=False).T
        if R.diagonal().all()
        else np.full((r, r), np.inf)
    )
    smallest = _smallest_singular(R, inverse, backward) - backward
    if not smallest > backward:
        raise CovarianceError(
            "the factor's columns are linearly dependent, or too nearly so to be checked; "
            "hint: rescale coordinates whose sizes differ by more than 1e15"
        )
    wide_factor = factor.T.astype(precision)
    coordinates, lengths, outside = np.empty((count, r)), np.empty(count), np.zeros(len(factor))
    for start in range(0, count, _CHUNK):
        part = slice(start, start + _CHUNK)
        here = points[part] * rows
        wide = here.astype(precision, copy=False)

        def residual(inside: Array, wide: NDArray[Any] = wide) -> Array:
            product = inside.astype(precision, copy=False) @ wide_factor
            np.subtract(wide, product, out=product)
            return product.astype(np.float64, copy=False)

        inside = (here @ Q) @ inverse
        # one step of iterative refinement
        inside += (residual(inside) @ Q) @ inverse
        left = residual(inside)
        # the residual inside range(L) changes the coordinates by at most ‖left‖/σ_min, plus its
        # rounding
        unit = 8 * r * EPS
        plain = np.linalg.norm(inside, axis=1)
        sizes = np.linalg.norm(here, axis=1)
        rounded = 8 * r * float(np.finfo(precision).eps) * (sizes + np.linalg.norm(factor) * plain)
        rounded = rounded + 2 * EPS * sizes  # points may be differences, which are rounded
        inner = left if r == len(factor) else left @ Q  # a square Q preserves lengths
        moved = (np.linalg.norm(inner, axis=1) + rounded) * (1 + unit) / smallest
        coordinates[part], lengths[part] = inside, plain * (1 + unit) + moved
        outside = np.maximum(outside, np.abs(left / rows).max(axis=0))
    return Whitened(coordinates, lengths, outside)


def row_weights(factor: Array) -> Array:
    """Return powers of two that make the rows of a factor about equally large, shape (d,).

    These weights make QR accurate. Rows below 1e-8 of the largest may be rounding errors alone, and
    are not scaled up further.
    """
    heights = np.abs(factor).max(axis=1, initial=0.0)
    return np.exp2(-np.frexp(np.maximum(heights, 1e-8 * heights.max()))[1])


def _smallest_singular(R: Array, inverse: Array, backward: float) -> float:
    """Return the smallest singular value of the triangular R, or a lower bound if R is large."""
    # the computed inverse has a relative error of backward/smallest
    smallest = 0.5 / float(np.linalg.norm(inverse))
    if len(R) > _LARGE and smallest > 1e3 * backward:
        return smallest
    return float(np.linalg.svd(R, compute_uv=False)[-1])


def sticks_out(whitened: Whitened, sizes: Array) -> NDArray[np.bool_]:
    """Return for each coordinate axis whether points leave the factor's range along it.

    ``sizes``, shape (d,), are bounds on the absolute coordinates of the points.
    """
    return ~(whitened.outside <= RANGE_TOLERANCE * sizes)  # NaN counts as outside


def check_range(whitened: Whitened, sizes: Array) -> None:
    """Raise CovarianceError if points leave the range of the factor, where the noise is zero.

    ``sizes``, shape (d,), are bounds on the absolute coordinates of the points.
    """
    excess = sticks_out(whitened, sizes)
    if excess.any():
        worst = int(np.argmax(np.where(excess, whitened.outside, 0.0)))
        raise CovarianceError(
            "the covariance leaves some direction of the sensitivity set without noise: "
            f"coordinate {worst} sticks out "
            f"of its range by {whitened.outside[worst]:.2g}, at a size of {sizes[worst]:.2g}"
        )
