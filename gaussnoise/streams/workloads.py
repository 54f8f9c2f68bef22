"""Workloads over time: what is published at every tick, as a lower triangular matrix of what arrived."""

from collections.abc import Sequence
from fractions import Fraction
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from domains import FiniteSet
from domains.sets.stream import Stream

from ..errors import ParameterError

Array = NDArray[np.float64]

_MOST_EXACT = 256  # ticks of a matrix whose inverse is computed again in rational arithmetic
_MOST_DENSE = 2**13  # ticks of a workload that is written out


def prefix_sums(n: int) -> Stream:
    """Running totals: tick t publishes ``x_0 + … + x_t``.

    Args:
        n: number of ticks.

    Returns:
        A workload over time, for :func:`optimal_noise` and :func:`factorize`; A is never formed.

    Raises:
        ParameterError: n is no positive integer.

    >>> gn.streams.prefix_sums(3).apply([1.0, 2.0, 3.0])
    array([1., 3., 6.])
    """
    return decayed_sums(n, 1.0)


def decayed_sums(n: int, decay: float) -> Stream:
    """Sums that forget: tick t publishes ``Σ_{i <= t} decay^(t−i) x_i``.

    Args:
        n: number of ticks.
        decay: what is left after one tick, in (0, 1].

    Raises:
        ParameterError: n is no positive integer, or decay outside (0, 1].

    >>> gn.streams.decayed_sums(3, 0.5).apply([1.0, 0.0, 0.0])
    array([1.  , 0.5 , 0.25])
    """
    _check_number("decayed_sums", "decay", decay, 0, 1, include=(False, True))
    _check_ticks("decayed_sums", n)
    return recurrence(n, [1.0, -float(decay)][:n])


def momentum(n: int, momentum: float, weight_decay: float = 0, schedule: ArrayLike | None = None) -> Stream:
    """Models of stochastic gradient descent with momentum: tick t publishes θ_t, linear in the gradients x so far.

    ``v_t = momentum · v_{t−1} + x_t`` and ``θ_t = (1 − weight_decay) θ_{t−1} + η_t v_t``; the sign of the step does not
    matter for noise. What is protected and published is exactly this workload with the bands rounded to doubles.

    Args:
        n: number of ticks.
        momentum: in [0, 1).
        weight_decay: in [0, 1).
        schedule: learning rates η, shape (n,), positive; ones if omitted.

    Raises:
        ParameterError: a number outside its range, or a schedule of another shape.

    Source: Denisov, McMahan, Rush, Smith & Thakurta (2022), Section 5, for the workload.

    >>> gn.streams.momentum(3, 0.5).apply([1.0, 0.0, 0.0])
    array([1.  , 1.5 , 1.75])
    """
    _check_ticks("momentum", n)
    _check_number("momentum", "momentum", momentum, 0, 1)
    _check_number("momentum", "weight_decay", weight_decay, 0, 1)
    rates = np.ones(n) if schedule is None else _vector("momentum", "schedule", schedule, n)
    if not (rates > 0).all():
        raise ParameterError("momentum: expected positive learning rates; hint: leave ticks without a step out")
    kept = 1 - float(weight_decay)
    bands = [1 / rates, -(kept / rates[1:] + momentum / rates[:-1]), kept * momentum / rates[1:-1]]
    return recurrence(n, bands[: min(n, 3)] if momentum else bands[: min(n, 2)])


def running_means(n: int) -> Stream:
    """Tick t publishes ``(x_0 + … + x_t)/(t + 1)``.

    Args:
        n: number of ticks.

    Raises:
        ParameterError: n is no positive integer.

    >>> gn.streams.running_means(3).apply([2.0, 4.0, 6.0])
    array([2., 3., 4.])
    """
    _check_ticks("running_means", n)
    counts = np.arange(1.0, n + 1)
    return recurrence(n, [counts, -counts[:-1]][:n])


def sliding_windows(n: int, width: int) -> Stream | FiniteSet:
    """Tick t publishes the sum of the last ``width`` contributions.

    The inverse is not banded, so that the points are written out: the dense solver's sizes.

    Args:
        n: number of ticks, at most 8192 unless the window holds everything or one tick.
        width: ticks that count, at least 1.

    Raises:
        ParameterError: n or width is no positive integer, or n is too large.

    >>> gn.streams.sliding_windows(4, 2).points[1]  # a contribution at tick 1 is seen at ticks 1 and 2
    array([0., 1., 1., 0.])
    """
    _check_ticks("sliding_windows", n)
    if not isinstance(width, Integral) or width < 1:
        raise ParameterError(f"sliding_windows: expected width >= 1, an integer, got {width!r}")
    if width >= n or width == 1:
        return prefix_sums(n) if width >= n else recurrence(n, [1.0])
    if n > _MOST_DENSE:
        raise ParameterError(
            f"sliding_windows: expected n <= {_MOST_DENSE}, for the matrix is written out, got {n}; "
            "hint: decayed_sums forgets too, and takes linear time"
        )
    return FiniteSet.from_workload(np.tri(n) - np.tri(n, k=-int(width)))


def recurrence(n: int, coefficients: Sequence[ArrayLike]) -> Stream:
    """Answers y of ``c_0 y_t + c_1 y_{t−1} + … = x_t``: A⁻¹ has the c as its diagonals.

    Args:
        n: number of ticks.
        coefficients: one entry for each diagonal of A⁻¹, the main one first: a constant, or an array of n − k numbers
            for the k-th subdiagonal, as ``np.diagonal(inverse, -k)`` returns it.

    Raises:
        ParameterError: n is no positive integer, or an array of another shape.
        InvalidDomainError: NaN, infinity, or a zero on the main diagonal.

    >>> gn.streams.recurrence(4, [1.0, -1.0, 0.5]).apply([1.0, 0.0, 0.0, 0.0])
    array([1. , 1. , 0.5, 0. ])
    """
    _check_ticks("recurrence", n)
    if not 1 <= len(coefficients) <= n:
        raise ParameterError(f"recurrence: expected between 1 and n coefficients, got {len(coefficients)}")
    bands = np.zeros((len(coefficients), n))
    for k, given in enumerate(coefficients):
        name = f"coefficients[{k}]"
        bands[k, : n - k] = given if np.ndim(given) == 0 else _vector("recurrence", name, given, n - k)
    return Stream(bands)


def matrix(A: ArrayLike) -> Stream | FiniteSet:
    """Any lower triangular workload: in linear time where its inverse is banded, exactly; else by its columns.

    Args:
        A: shape (n, n), finite; row t is published at tick t. Up to 256 ticks, an inverse of fewer than 9 diagonals is
            looked for, and proved in rational arithmetic; say ``recurrence`` where you know it.

    Raises:
        ParameterError: not square, not lower triangular, NaN or infinite.

    >>> gn.streams.matrix(np.tri(4))
    Stream(4 ticks, 1 subdiagonals in the inverse)
    >>> gn.streams.matrix([[1, 0, 0], [0.1, 1, 0], [0, 0.1, 1]])
    FiniteSet(3 points in R^3)
    """
    array = np.array(A, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise ParameterError(f"matrix: expected a square matrix, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ParameterError("matrix: expected finite entries, got NaN or infinity")
    if np.triu(array, 1).any():
        raise ParameterError("matrix: expected a lower triangular matrix: no answer depends on what comes later")
    return _banded(array) or FiniteSet.from_workload(array)


def _banded(A: Array) -> Stream | None:
    """The workload by its inverse, where that has few diagonals and A times it is the identity, exactly."""
    n = len(A)
    if n > _MOST_EXACT or not np.diagonal(A).all():
        return None
    inverse = solve_triangular(A, np.eye(n), lower=True)
    small = 1e-9 * np.abs(inverse).max()
    far = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))[np.abs(inverse) > small].max()
    if far > min(8, n // 2):
        return None
    bands = [np.diagonal(inverse, -k) for k in range(far + 1)]
    stream = recurrence(n, bands)
    exact = [[Fraction(value) for value in row] for row in stream.bands.tolist()]
    for i, column in enumerate(A.T.tolist()):
        a = [Fraction(value) for value in column]
        for t in range(i, n):
            if sum(exact[k][t - k] * a[t - k] for k in range(min(far, t - i) + 1)) != (t == i):
                return None
    return stream


def _check_ticks(function: str, n: object) -> None:
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ParameterError(f"{function}: expected n >= 1 ticks, an integer, got {n!r}")


def _check_number(
    function: str, name: str, value: object, low: float, high: float, include: tuple[bool, bool] = (True, False)
) -> None:
    """Raise ParameterError unless the value lies in the interval, with or without its ends."""
    left, right = "[" if include[0] else "(", "]" if include[1] else ")"
    inside = isinstance(value, int | float) and (
        low < value < high or (include[0] and value == low) or (include[1] and value == high)
    )
    if not inside:
        raise ParameterError(f"{function}: expected {name} in {left}{low}, {high}{right}, got {value!r}")


def _vector(function: str, name: str, values: ArrayLike, n: int) -> Array:
    array = np.array(values, dtype=np.float64)
    if array.shape != (n,) or not np.isfinite(array).all():
        raise ParameterError(f"{function}: expected {name} of shape ({n},), finite, got shape {array.shape}")
    return array
