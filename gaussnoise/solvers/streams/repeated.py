"""A recursion with few states and nearly the least error, for people who take part repeatedly."""

from collections.abc import Callable

import numpy as np
import scipy

from domains.floats import Array
from domains.participation.patterns import AbstractPatterns, Apart
from domains.participation.sensitivity import blocks
from domains.sets.stream import StreamWorkload

from .descent import descended, mean_power
from .path_bound import PathBound
from .recursions import Recursion, fading_root

Bound = Callable[[Array, int, float], tuple[float, Array]]

# for each stage: the power of the means that replace maxima, and the smoothing of |x| at zero
_STAGES = ((8, 1e-3), (32, 3e-4), (128, 1e-4), (512, 3e-5), (2048, 3e-6))
_SHARPER = 30.0  # sharpness of maxima along paths, as a multiple of the power
_STEPS, _MEMORY = 300, 40


def repeated_recursion(
    workload: StreamWorkload, who: AbstractPatterns, p: float, states: int
) -> Recursion:
    """Return a :class:`Recursion` with nearly the least error, if people take part repeatedly.

    The recursion minimises ``‖sd‖_p²`` times a bound on the squared sensitivity of its strategy
    matrix C.

    Args:
        workload: the matrix A of the answers over time.
        who: the ticks in which one person may take part.
        p: norm of the error, in [2, ∞].
        states: q, the number of states.
    """
    # the bound is max_π Σ_{i,j∈π} |X_ij|, X = CᵀC, over the sets π of one person's ticks, or that
    # of PathBound if there are too many sets to list. Means of growing powers replace maxima.
    # Quasi-Newton steps change all 2qn + n + q coefficients
    n = workload.ticks
    A = workload.toarray()
    A = A / np.abs(A).max()
    x, bound = _start(n, states, n / who.most), _bound(who)
    for stage in _STAGES:
        given = A, bound, p, states, *stage
        x = descended(lambda y, given=given: _value(y, *given), x, steps=_STEPS, memory=_MEMORY)
    return Recursion(workload, *_coefficients(x, n, states))


def _bound(who: AbstractPatterns) -> Bound:
    """Return a function (X, power, smoothing) that bounds C's squared sensitivity; X = CᵀC."""
    # For listed sets the function returns log B and its derivatives, otherwise the bound B itself:
    # log(error²) + B is least where B is about one, so it serves as well.
    if isinstance(who, Apart) and not who.lists_few:
        path = PathBound(who.n, who.most, who.b, signed=who.kind == "vectors")
        return lambda X, power, _: path.bound(X, _SHARPER * power)
    sets, n = who.maximal(), who.n
    places = (sets[:, :, None] * (n + 1) + sets[:, None, :]).ravel()

    def largest(X: Array, power: int, blur: float) -> tuple[float, Array]:
        own = blocks(X, sets)
        sizes = np.sqrt(np.square(own) + blur**2)
        found, by_set = mean_power(sizes.sum(axis=(1, 2)), power, len(sets))
        shares = (by_set[:, None, None] * own / sizes).ravel()
        summed = np.bincount(places, shares, (n + 1) ** 2).astype(np.float64)
        return found, summed.reshape(n + 1, n + 1)[:n, :n]

    return largest


def _start(n: int, q: int, reach: float) -> Array:
    sizes, fading = fading_root(n, q, reach)
    both = np.tile(np.sqrt(sizes), n)
    size = np.sqrt(n / reach)  # brings the sensitivity near one
    return np.concatenate(
        [np.full(n, -np.log(size)), both / size, both, scipy.special.logit(fading)]
    )


def _coefficients(x: Array, n: int, q: int) -> tuple[Array, Array, Array, Array]:
    shown, kept = x[n : n + 2 * n * q].reshape(2, n, q)
    return np.exp(x[:n]), shown, kept, scipy.special.expit(x[n + 2 * n * q :])


def _value(
    x: Array, A: Array, bound: Bound, p: float, q: int, power: int, blur: float
) -> tuple[float, Array]:
    """Return log(squared error) plus the value of ``bound``, and the derivatives by x."""
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
    move, by_form = bound(C.T @ C, power, blur)
    slope += 2 * C @ by_form

    by_u, by_v, by_fading = np.zeros((n, q)), np.zeros((n, q)), np.zeros(q)
    for j in range(q):
        faded = slope * fades[j]
        by_u[:, j], by_v[:, j] = faded @ v[:, j], faded.T @ u[:, j]
        by_fading[j] = u[:, j] @ (faded * lags) @ v[:, j] * (1 - fading[j])
    gradient = np.concatenate([slope.diagonal() * d, by_u.ravel(), by_v.ravel(), by_fading])
    return error + move, gradient
