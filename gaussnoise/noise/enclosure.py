"""The step from a solver's factor to an ellipsoid that covers its set, rounding included."""

import math

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from ..numerics.feasibility import Whitened, check_range, sticks_out, whiten
from .sensitivity import Covered, largest_pair

# If points lie farther than this outside the factor's range, relative to their sizes, some of the
# factor's rows have too few correct digits.
_ROUGH = 1e-13


def enclosing(factor: Array, target: Covered) -> tuple[Array, Whitened]:
    """Return a factor whose range has all points of ``target``, and the points in its coordinates.

    It is ``factor`` with lost digits of small rows restored. It is widened by a small box if points
    still leave its range.
    """
    sizes = np.maximum(target.points.max(axis=0), -target.points.min(axis=0))
    whitened = whiten(factor, target.points)
    if (whitened.outside > _ROUGH * sizes).any():
        # small rows that depend on large ones have lost digits: solve for each row again, from the
        # points' coordinates
        factor = np.asarray(
            np.linalg.lstsq(whitened.coordinates, target.points, rcond=None)[0].T, dtype=np.float64
        )
        whitened = whiten(factor, target.points)
    stuck = sticks_out(whitened, sizes)
    if stuck.any():
        factor = widened(factor, stuck, target.outside(whitened))
        whitened = whiten(factor, target.points)
    check_range(whitened, sizes)
    return factor, whitened


def pair_sensitivity(whitened: Whitened, longest: float) -> float:
    """Return the squared sensitivity under replacement, for noise that covers each single point.

    ``longest`` is the largest length of a point in the coordinates ``whitened``, and noise is
    scaled to it.
    """
    return min(largest_pair(whitened) / longest**2, 4.0) if longest > 0 else 0.0


def widened(factor: Array, stuck: NDArray[np.bool_], outside: Array) -> Array:
    """Return a factor whose ellipsoid also covers a small box around each point of the ellipsoid.

    The box has the half-widths ``outside`` on the coordinates where ``stuck`` is true, and zero on
    others.

    Let E(M) be the ellipsoid of the factor, and E(D) one around the box. Their sum lies in
    ``E((1+t) M + (1+1/t) D)`` for every t > 0.
    """
    t = 1e-8
    box = np.diag(np.where(stuck, outside, 0.0) * math.sqrt(stuck.sum() * (1 + 1 / t)))[:, stuck]
    wide = np.hstack([factor * math.sqrt(1 + t), box])
    if wide.shape[1] <= wide.shape[0]:
        return wide
    heights = np.abs(wide).max(axis=1)
    heights[heights == 0] = 1
    # return to a square factor with M = wide wide', scaled so that every row keeps its precision
    _, triangle = np.linalg.qr((wide / heights[:, None]).T)
    return triangle.T * heights[:, None]
