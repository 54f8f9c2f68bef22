"""Workloads over time: the linear answers at each tick, from the contributions so far."""

from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.sets.finite import FiniteSet
from domains.sets.stream import StreamWorkload

from ..errors import ParameterError

Array = NDArray[np.float64]


def prefix_sums(n: int) -> StreamWorkload:
    """Return the workload of running totals: at tick t, the sum of all contributions so far.

    >>> gn.streams.prefix_sums(3).toarray()
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """
    return recurrence(_ticks("prefix_sums", n), [1.0, -1.0])


def decayed_sums(n: int, decay: float) -> StreamWorkload:
    """Return the workload of sums in which older contributions decay.

    Each tick multiplies the last sum by ``decay`` and adds the new contribution.

    Args:
        n: the number of ticks.
        decay: in (0, 1].

    Raises:
        ParameterError: decay is outside this range.

    >>> gn.streams.decayed_sums(3, 0.5).apply([1, 1, 1])
    array([1.  , 1.5 , 1.75])
    """
    return recurrence(
        _ticks("decayed_sums", n), [1.0, -_between("decayed_sums", "decay", decay, low=0, high=1)]
    )


def momentum(
    n: int, momentum: float, *, weight_decay: float = 0.0, schedule: "ArrayLike | None" = None
) -> StreamWorkload:
    """Return the workload of gradient descent with momentum: the answer at step t is θ_t.

    For gradients g_t, ``m_t = momentum · m_{t−1} + g_t`` and ``θ_t = (1 − weight_decay) θ_{t−1} +
    schedule_t · m_t``, starting from zero. The model after t steps is −θ_t.

    Args:
        n: the number of steps.
        momentum: in [0, 1).
        weight_decay: the fraction of the model that each step removes, in [0, 1).
        schedule: learning rates, shape (n,), positive; ones by default.

    Raises:
        ParameterError: a number is outside its range.

    >>> gn.streams.momentum(3, 0.5).apply([1, 0, 0])
    array([1.  , 1.5 , 1.75])
    """
    n = _ticks("momentum", n)
    beta = _between("momentum", "momentum", momentum, low=0, high=1)
    kept = 1 - _between("momentum", "weight_decay", weight_decay, low=0, high=1)
    if beta == 1 or kept == 0:
        raise ParameterError("momentum: expected a momentum and a weight decay below 1")
    rates = np.ones(n) if schedule is None else np.array(schedule, dtype=np.float64)
    if rates.shape != (n,) or not (np.isfinite(rates) & (rates > 0)).all():
        raise ParameterError(
            f"momentum: expected {n} positive learning rates, got shape {rates.shape}"
        )
    before = 1 / np.concatenate([rates[:1], rates[:-1]])
    return recurrence(n, [1 / rates, -kept / rates - beta * before, kept * beta * before])


def running_means(n: int) -> StreamWorkload:
    """Return the workload of running means: at tick t, the mean of the t contributions so far.

    >>> gn.streams.running_means(3).apply([3, 1, 2])
    array([3., 2., 2.])
    """
    counts = np.arange(1.0, _ticks("running_means", n) + 1)
    return recurrence(n, [counts, 1 - counts])


def sliding_windows(n: int, width: int) -> FiniteSet:
    """Return the workload of sliding sums: at tick t, the sum of the last ``width`` contributions.

    The inverse of this workload is not banded, so the result lists its columns as points.

    Raises:
        ParameterError: the width is not between 1 and n.

    >>> gn.streams.sliding_windows(3, 2).points.T
    array([[1., 0., 0.],
           [1., 1., 0.],
           [0., 1., 1.]])
    """
    n = _ticks("sliding_windows", n)
    if not isinstance(width, int | np.integer) or not 1 <= width <= n:
        raise ParameterError(f"sliding_windows: expected a width between 1 and {n}, got {width!r}")
    return FiniteSet.from_workload(np.tri(n) - np.tri(n, k=-int(width)))


def recurrence(n: int, coefficients: "Sequence[ArrayLike]") -> StreamWorkload:
    """Return the workload whose answers y solve ``c_0 y_t + c_1 y_{t−1} + … + c_b y_{t−b} = x_t``.

    x_t is the contribution at tick t.

    Args:
        n: the number of ticks.
        coefficients: ``c_0, …, c_b``, each a number or an array of shape (n,), one number for each
            tick t. Terms before the first tick are ignored. The coefficients are the bands of the
            inverse of the workload matrix.

    Raises:
        ParameterError: there are no coefficients, or arrays of another length.
        InvalidDomainError: c_0 has a zero, or there is NaN or infinity.

    >>> gn.streams.recurrence(4, [1, -1, -1]).apply([1, 0, 0, 0])  # Fibonacci
    array([1., 1., 2., 3.])
    """
    n = _ticks("recurrence", n)
    rows = [np.asarray(c, dtype=np.float64) for c in coefficients]
    if not rows or any(row.shape not in ((), (n,)) for row in rows):
        raise ParameterError(
            f"recurrence: expected numbers or arrays of shape ({n},), got shapes "
            f"{[row.shape for row in rows]}"
        )
    bands = np.array([np.broadcast_to(row, n) for row in rows[:n]])
    for m, band in enumerate(bands):
        band[:m] = 0.0
    return StreamWorkload(bands)


def matrix(A: "ArrayLike") -> StreamWorkload | FiniteSet:
    """Return a workload from a lower-triangular matrix A, whose row t gives the answer at tick t.

    Returns:
        A :class:`StreamWorkload` if the inverse of A has few subdiagonals, and A is computed from
        them exactly; else the columns of A as a :class:`FiniteSet`.

    Raises:
        ParameterError: A is not a square, lower-triangular array of finite numbers.

    >>> gn.streams.matrix(np.tri(4))
    StreamWorkload(4 ticks, 1 subdiagonals in its inverse)
    """
    dense = np.array(A, dtype=np.float64)
    if dense.ndim != 2 or 0 in dense.shape or dense.shape[0] != dense.shape[1]:
        raise ParameterError(f"matrix: expected a square array, got shape {dense.shape}")
    if not np.isfinite(dense).all() or np.triu(dense, 1).any():
        raise ParameterError("matrix: expected finite numbers, and zeros above the diagonal")
    return _banded(dense) or FiniteSet.from_workload(dense)


def _banded(dense: Array) -> StreamWorkload | None:
    """Return A as the bands of its inverse; None if these are many, or inexact."""
    n = len(dense)
    if not dense.diagonal().all():
        return None
    inverse = np.linalg.inv(dense)
    below = [
        m for m in range(n) if np.abs(inverse.diagonal(-m)).max() > 1e-9 * np.abs(inverse).max()
    ]
    b = max(below)
    if b > max(1, n // 4):
        return None
    bands = np.array([np.concatenate([np.zeros(m), inverse.diagonal(-m)]) for m in range(b + 1)])
    candidates = (
        StreamWorkload(given) for given in (np.rint(bands * 2**40) / 2**40, bands) if given[0].all()
    )
    return next((banded for banded in candidates if np.array_equal(banded.toarray(), dense)), None)


def _ticks(function: str, n: object) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ParameterError(f"{function}: expected a whole number of ticks, at least 1; got {n!r}")
    return int(n)


def _between(function: str, name: str, value: object, *, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise ParameterError(f"{function}: expected {name} between {low} and {high}, got {value!r}")
    return float(value)
