"""Norms of numbers of any size, nuclear norms, and the dual ball of coordinate weights."""

import math
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from domains.floats import EPS, Array

from ..errors import ParameterError


def norm(values: Array, order: float) -> float:
    """Return ``‖values‖_order`` of nonnegative numbers, without over- or underflow."""
    largest = float(values.max(initial=0.0))
    return largest * float(np.linalg.norm(values / largest, order)) if largest != 0 else 0.0


def group_norm(sizes: Array, counts: Array, p: float) -> float:
    """Return ``‖sd‖_p`` of groups of numbers; all in a group have its root mean square."""
    return norm(sizes * counts ** (1 / p), p)


def row_lengths(factor: Array) -> Array:
    """Return the standard deviations of ``L Lᵀ``, summed in extended precision."""
    return np.sqrt(np.square(factor.astype(np.longdouble)).sum(axis=1)).astype(np.float64)


def error_of(variances: Array, p: float, stretch: float = 1.0) -> float:
    """Return ``‖sd‖_p`` of variances that are multiplied by ``stretch``."""
    return math.sqrt(stretch * norm(variances, p / 2))


def error_of_factor(factor: Array, p: float, stretch: float = 1.0) -> float:
    """Return :func:`error_of` the covariance ``L Lᵀ`` of a factor L, shape (d, r)."""
    return error_of(np.square(factor).sum(axis=1), p, stretch)


def dual_power(p: float) -> float:
    """Return ``1/s* = 1 − 2/p``: shares that sum to one, to this power, have ``‖w‖_{s*} = 1``."""
    return 1 - 2 / p


def check_order(function: str, p: float) -> None:
    """Raise ParameterError unless p is a number, 2 or more."""
    if not isinstance(p, Real) or not p >= 2:
        raise ParameterError(
            f"{function}: expected p >= 2, got {p!r}; hint: math.inf for the largest error"
        )


def dual_order(p: float) -> float:
    """Return ``s* = p/(p − 2)``, from ∞ at p = 2 to 1 at p = ∞."""
    return math.inf if p == 2 else 1 / dual_power(p)


def dual_ball_norm(weights: Array, p: float) -> float:
    """Return ``‖w‖_{s*}``, which is at most one for the weights of a certificate."""
    return norm(weights, dual_order(p))


def even_weights(count: int, p: float) -> Array:
    """Return equal weights of ``count`` coordinates with ``‖w‖_{s*} = 1``; ones at p = 2."""
    return np.full(count, float(count) ** -dual_power(p))


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
