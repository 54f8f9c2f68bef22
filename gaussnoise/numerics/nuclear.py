"""Proven lower bounds on nuclear norms."""

import numpy as np
from numpy.typing import NDArray

from domains.floats import EPS


def nuclear_norm_below(G: NDArray[np.floating]) -> tuple[float, float]:
    """Return a lower bound on ``‖G‖_*``, and the share of it that was subtracted for rounding.

    Since ``<Q, G> <= ‖Q‖ ‖G‖_*``, the bound is the inner product with a matrix Q, the polar factor,
    divided by a bound on ‖Q‖. The share is for the worst case of rounding, in the precision of G.
    """
    precision = G.dtype.type
    left, singular, right = np.linalg.svd(G.astype(np.float64), full_matrices=False)
    kept = singular > len(singular) * EPS * singular[0]
    U, V = left[:, kept].astype(precision), right[kept].astype(precision)
    eps = float(np.finfo(precision).eps)
    inner = float((U * (G @ V.T)).sum())
    # ‖UV‖² <= ‖U'U‖ ‖VV'‖, where ‖U'U‖ <= 1 + ‖U'U − 1‖_F, and the same for V
    identity = np.eye(int(kept.sum()))
    excess = sum(
        float(np.linalg.norm((part - identity).astype(np.float64))) for part in (U.T @ U, V @ V.T)
    )
    blurred = 8 * (max(G.shape) + 8) * eps * float(kept.sum())
    return inner / (1 + excess / 2) * (1 - blurred), blurred
