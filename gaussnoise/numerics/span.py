"""The linear span of points, up to rounding."""

import math

import numpy as np
from numpy.typing import NDArray

from domains.floats import EPS, Array


def span(points: Array) -> Array | None:
    """Return orthonormal columns, shape (d, r), that span the rows of ``points``, up to rounding.

    Return None if the rows span all of R^d. The largest entries of ``points`` are about one.
    """
    # in directions of smaller size, there are only rounding errors
    noise = 4 * EPS * math.sqrt(max(points.shape))
    if len(points) >= points.shape[1] > 0:
        if _is_definite(points.T @ points, 1e-8):
            return None
        singular = np.linalg.svd(np.linalg.qr(points, mode="r"), compute_uv=False)
        if singular[-1] > noise * singular[0]:
            return None
    _, singular, axes = np.linalg.svd(points, full_matrices=False)
    return axes[singular > noise * singular.max(initial=0.0)].T


def _is_definite(squares: Array, share: float) -> bool:
    """Return whether all eigenvalues exceed ``share`` of their sum, by Cholesky's factorization."""
    try:
        np.linalg.cholesky(squares - share * np.trace(squares) * np.eye(len(squares)))
    except np.linalg.LinAlgError:
        return False
    return True


def placed(values: Array, live: NDArray[np.bool_]) -> Array:
    """Return an array with the rows of ``values`` where ``live`` is true, and zeros elsewhere."""
    full = np.zeros((len(live), *values.shape[1:]))
    full[live] = values
    return full
