"""Norms without overflow, nuclear norms, and the dual ball of coordinate weights."""

import math
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from domains.floats import EPS, Array

from ..errors import ParameterError


def norm(values: Array, order: float) -> float:
    """Return ``‖values‖_order`` of nonnegative numbers, without overflow or underflow."""
    largest = float(values.max(initial=0.0))
    return largest * float(np.linalg.norm(values / largest, order)) if largest != 0 else 0.0


def group_norm(sizes: Array, counts: Array, p: float) -> float:
    """Return ``‖x‖_p`` of a vector x that has ``counts[k]`` entries ``sizes[k]`` for each k."""
    return norm(sizes * counts ** (1 / p), p)


def row_lengths(factor: Array) -> Array:
    """Return the row norms of a factor L: standard deviations of noise with covariance ``L L'``.

    Squares are summed in extended precision.
    """
    return np.sqrt(np.square(factor.astype(np.longdouble)).sum(axis=1)).astype(np.float64)


def error_of(variances: Array, p: float, stretch: float = 1.0) -> float:
    """Return the error ``‖sd‖_p`` of noise whose variances are ``variances`` times ``stretch``."""
    return math.sqrt(stretch * norm(variances, p / 2))


def error_of_factor(factor: Array, p: float, stretch: float = 1.0) -> float:
    """Return the error ``‖sd‖_p`` of noise of covariance ``stretch · L L'``, L = ``factor``."""
    return error_of(np.square(factor).sum(axis=1), p, stretch)


def dual_power(p: float) -> float:
    """Return the exponent ``1/s* = 1 − 2/p`` that turns shares into weights of dual norm one.

    For shares ω >= 0 of sum one, the weights ``w = ω^(1/s*)`` have ``‖w‖_{s*} = 1``, where s* is
    ``p/(p − 2)``.
    """
    return 1 - 2 / p


def check_order(function: str, p: float) -> None:
    """Raise ParameterError unless p is a number, 2 or more."""
    if not isinstance(p, Real) or not p >= 2:
        raise ParameterError(
            f"{function}: expected p >= 2, got {p!r}; hint: math.inf for the largest error"
        )


def dual_order(p: float) -> float:
    """Return ``s* = p/(p − 2)``, the order of the norm of a certificate's coordinate weights.

    It is ∞ for p = 2, and 1 for p = ∞.
    """
    return math.inf if p == 2 else 1 / dual_power(p)


def dual_ball_norm(weights: Array, p: float) -> float:
    """Return the norm ``‖w‖_{s*}`` of coordinate weights w, where s* = p/(p − 2).

    Weights prove a lower bound on the error if this norm is at most one.
    """
    return norm(weights, dual_order(p))


def even_weights(count: int, p: float) -> Array:
    """Return ``count`` equal weights w with ``‖w‖_{s*} = 1``, where ``s* = p/(p − 2)``.

    For p = 2 they are ones.
    """
    return np.full(count, float(count) ** -dual_power(p))


def nuclear_norm_below(G: NDArray[np.floating]) -> tuple[float, float]:
    """Return a lower bound on the nuclear norm ``‖G‖_*``, and the fraction subtracted for rounding.

    The nuclear norm is the sum of the singular values. Since ``<Q, G> <= ‖Q‖ ‖G‖_*``, the bound is
    the inner product with the computed polar factor Q, divided by a bound on ‖Q‖. The fraction
    covers the worst case of rounding in the precision of G.
    """
    precision = G.dtype.type
    left, singular, right = np.linalg.svd(G.astype(np.float64), full_matrices=False)
    kept = singular > len(singular) * EPS * singular[0]
    U, V = left[:, kept].astype(precision), right[kept].astype(precision)
    eps = float(np.finfo(precision).eps)
    inner = float((U * (G @ V.T)).sum())
    # ‖UV‖² <= ‖U'U‖ ‖VV'‖, with ‖U'U‖ <= 1 + ‖U'U − 1‖_F, and the same for VV'
    identity = np.eye(int(kept.sum()))
    excess = sum(
        float(np.linalg.norm((part - identity).astype(np.float64))) for part in (U.T @ U, V @ V.T)
    )
    blurred = 8 * (max(G.shape) + 8) * eps * float(kept.sum())
    return inner / (1 + excess / 2) * (1 - blurred), blurred
