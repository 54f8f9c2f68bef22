"""Proven lower bounds on nuclear norms."""

import numpy as np
from numpy.typing import NDArray

from domains.floats import EPS

Array = NDArray[np.float64]


def nuclear_norm_below(G: NDArray[np.floating]) -> tuple[float, float]:
    """Return a lower bound on ``‖G‖_*``, and the share of it that was subtracted for rounding.

    The bound is the inner product with a matrix Q, divided by a bound on the norm of Q. The share
    is for the worst case of rounding, in the precision of G.
    """
    precision = G.dtype.type
    left, singular, right = np.linalg.svd(G.astype(np.float64), full_matrices=False)
    kept = singular > len(singular) * EPS * singular[0]
    U, V = left[:, kept].astype(precision), right[kept].astype(precision)
    eps = float(np.finfo(precision).eps)
    inner = float((U * (G @ V.T)).sum())
    # ‖UV‖² <= ‖U'U‖ ‖VV'‖, each within a Frobenius norm of one
    identity = np.eye(int(kept.sum()))
    excess = sum(
        float(np.linalg.norm((part - identity).astype(np.float64))) for part in (U.T @ U, V @ V.T)
    )
    blurred = 8 * (max(G.shape) + 8) * eps * float(kept.sum())
    return inner / (1 + excess / 2) * (1 - blurred), blurred
