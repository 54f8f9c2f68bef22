"""The strategy of few states with about the least error for people who take part repeatedly."""

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import Array
from domains.participation.sensitivity import blocks
from domains.sets.stream import StreamWorkload

from .recursions import Recursion, fading_root

Indices = NDArray[np.intp]

# stages: the power that replaces maxima, and the smoothing of |x| at zero; then the steps of each
_STAGES = ((8, 1e-3), (32, 3e-4), (128, 1e-4), (512, 3e-5), (2048, 3e-6))
_STEPS, _MEMORY = 300, 40
TOO_FAR = 1e3  # replaces a logarithm that overflowed


def repeated_recursion(workload: StreamWorkload, sets: Indices, p: float, states: int) -> Recursion:
    """Minimise ``‖sd‖_p² · max_π Σ_{i,j∈π} |X_ij|``, X = CᵀC, over strategies C of few states.

    The second factor bounds the squared move of a person who adds vectors no longer than one.
    Maxima are replaced by power means of growing powers. Quasi-Newton steps change all 2qn + n + q
    coefficients, starting from the square root of the running-total matrix, with fading.

    Args:
        workload: A.
        sets: ticks of one person, shape (P, k), padded with n.
        p: norm of the error, in [2, ∞].
        states: q.
    """
    n = workload.ticks
    x, A = _start(n, states, n / sets.shape[1]), workload.toarray()
    A = A / np.abs(A).max()
    options = {"maxiter": _STEPS, "maxfun": 2 * _STEPS, "maxcor": _MEMORY}
    best, least = x, np.inf
    with np.errstate(all="ignore"):  # the line search takes back steps that are too long
        for power, blur in _STAGES:
            given = A, sets, p, states, power, blur
            x = scipy.optimize.minimize(
                _value, x, args=given, jac=True, method="L-BFGS-B", options=options
            ).x
            # results of all stages are compared by the objective of the last, sharpest stage
            value = _value(x, A, sets, p, states, *_STAGES[-1])[0]
            if value < least:
                best, least = x, value
    return Recursion(workload, *_coefficients(best, n, states))


def _start(n: int, q: int, reach: float) -> Array:
    sizes, fading = fading_root(n, q, reach)
    both = np.tile(np.sqrt(sizes), n)
    return np.concatenate([np.zeros(n), both, both, scipy.special.logit(fading)])


def _coefficients(x: Array, n: int, q: int) -> tuple[Array, Array, Array, Array]:
    shown, kept = x[n : n + 2 * n * q].reshape(2, n, q)
    return np.exp(x[:n]), shown, kept, scipy.special.expit(x[n + 2 * n * q :])


def _value(
    x: Array, A: Array, sets: Indices, p: float, q: int, power: int, blur: float
) -> tuple[float, Array]:
    """Return the logarithm of the objective, and its derivatives."""
    n = len(A)
    d, u, v, fading = _coefficients(x, n, q)
    lags = np.maximum(np.subtract.outer(np.arange(n), np.arange(n)) - 1, 0)
    powers = fading[:, None] ** np.arange(n)
    fades = np.tril(powers[:, lags], -1)
    C = np.diag(d)
    for j in range(q):
        C += fades[j] * u[:, j, None] * v[:, j]
    inverse = scipy.linalg.solve_triangular(C, np.eye(n), lower=True)
    mixing = A @ inverse
    error, by_variance = mean_power(
        np.square(mixing).sum(axis=1), power if np.isinf(p) else p / 2, 1.0 if np.isinf(p) else n
    )
    slope = -2 * (mixing.T @ (by_variance[:, None] * mixing)) @ inverse.T

    own = blocks(C.T @ C, sets)
    sizes = np.sqrt(np.square(own) + blur**2)
    charge, by_set = mean_power(sizes.sum(axis=(1, 2)), power, len(sets))
    places = (sets[:, :, None] * (n + 1) + sets[:, None, :]).ravel()
    shares = (by_set[:, None, None] * own / sizes).ravel()
    spread = np.bincount(places, shares, (n + 1) ** 2).reshape(n + 1, n + 1)[:n, :n]
    slope += 2 * C @ spread

    by_u, by_v, by_fading = np.zeros((n, q)), np.zeros((n, q)), np.zeros(q)
    for j in range(q):
        faded = slope * fades[j]
        by_u[:, j], by_v[:, j] = faded @ v[:, j], faded.T @ u[:, j]
        by_fading[j] = u[:, j] @ (faded * lags) @ v[:, j] * (1 - fading[j])
    gradient = np.concatenate([slope.diagonal() * d, by_u.ravel(), by_v.ravel(), by_fading])
    if not (np.isfinite(error + charge) and np.isfinite(gradient).all()):
        return TOO_FAR, np.zeros(len(x))
    return error + charge, gradient


def mean_power(values: Array, power: float, count: float) -> tuple[float, Array]:
    """Return ``log (Σ values^power / count)^{1/power}``, and its derivatives."""
    largest = values.max()
    raised = (values / largest) ** power
    total = raised.sum()
    return float(np.log(largest) + np.log(total / count) / power), raised / values / total
