"""Fewer points with the same second moment (Carathéodory's theorem), to shorten certificates."""

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import Array

Rows = NDArray[np.intp]

_MOST_MOMENTS = 1000  # time grows with their cube
_MOST_RANK = 44  # number of coordinates with fewer second moments than that
_RANK_TOLERANCE = 1e-13
_ACCURACY = 1e-10


def thinned(points: Array, weights: Array, *, centered: bool) -> tuple[Rows, Array]:
    """Return indices and weights of few points with the same second moment as all weighted points.

    ``points`` have shape (N, d). If ``centered``, the mean is the same, too. The result has at most
    as many points as there are moments. If this saves little, takes long, or is inaccurate, all
    points are returned.
    """
    everything = np.arange(len(points)), weights / weights.sum()
    # singular values of some columns are at most those of all
    some = np.linalg.svd(points[:, : 2 * _MOST_RANK], compute_uv=False)
    if (some > _RANK_TOLERANCE * np.linalg.norm(points)).sum() > _MOST_RANK:
        return everything
    _, singular, axes = np.linalg.svd(points, full_matrices=False)
    inside = points @ axes[singular > _RANK_TOLERANCE * singular.max(initial=0.0)].T
    r = inside.shape[1]
    count = r * (r + 1) // 2 + 1 + r * centered
    if r == 0 or len(points) <= 1.2 * count or count > _MOST_MOMENTS:
        return everything
    inside = inside / np.sqrt(everything[1] @ np.square(inside))
    i, j = np.triu_indices(r)
    moments = np.hstack(
        [np.ones((len(points), 1)), inside[:, i] * inside[:, j], *([inside] if centered else [])]
    )
    # rounding is relative to the largest row: light points far out would cost the others' digits
    sizes = np.abs(moments).max(axis=1)
    moments, mass = moments / sizes[:, None], everything[1] * sizes
    rows, kept = np.zeros(0, dtype=np.intp), np.zeros(0)
    for start in range(0, len(points), count):
        more = everything[0][start : start + count]
        rows, kept = np.concatenate([rows, more]), np.concatenate([kept, mass[more]])
        if len(rows) > count:
            left = _reduced(moments[rows], kept)
            rows, kept = rows[left > 0], left[left > 0]
    if not np.abs(kept @ moments[rows] - mass @ moments).max() <= _ACCURACY:  # or NaN
        return everything
    kept /= sizes[rows]
    return rows, kept / kept.sum()


def _reduced(moments: Array, weights: Array) -> Array:
    """Return weights, at most one positive per column, with the same ``weights @ moments``."""
    orthogonal, triangle = np.linalg.qr(moments, mode="complete")
    # directions that do not change the moments, in the order of memory that BLAS updates in place
    free = np.asfortranarray(orthogonal[:, triangle.shape[1] :])
    weights = weights.copy()
    while free.size:
        step = free[:, -1]
        step = step if step.max() >= -step.min() else -step
        rising = step > 0
        ratios = np.full(len(step), np.inf)
        ratios[rising] = weights[rising] / step[rising]
        place = int(ratios.argmin())
        weights -= ratios[place] * step
        weights[place] = 0.0
        if free.shape[1] == 1:
            break
        # A reflection makes all directions but the last leave this point's weight at zero. The last
        # one is dropped; the others stay orthonormal.
        mirror = free[place].copy()
        mirror[-1] += np.copysign(np.linalg.norm(mirror), mirror[-1])
        mirror /= np.linalg.norm(mirror)
        turned = free @ mirror
        free = scipy.linalg.blas.dger(-2.0, turned, mirror[:-1], a=free[:, :-1], overwrite_a=True)
        free[place] = 0.0
    return np.maximum(weights, 0.0)
