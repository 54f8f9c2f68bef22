"""Diagonals of resolvents of G Gᵀ and Gᵀ G for a lower bidiagonal G, in linear time.

No numbers are subtracted, so that relative errors stay small.
"""

import math
from collections.abc import Iterator

import numpy as np

from domains.floats import UNIT, Array

from ...errors import CovarianceError

_NUMBERS_AT_ONCE = 2**22  # numbers in one array
_WIDEST = 400.0  # the numbers of a recursion differ by at most two to this power


def diagonals(diagonal: Array, below: Array, shifts: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield the diagonals of ``(G Gᵀ + s)⁻¹`` and ``(Gᵀ G + s)⁻¹`` for every shift s.

    G is lower bidiagonal. Each item begins with the index of its shift. Every number has a small
    relative error for any condition of G: see :func:`relative_error`.

    Args:
        diagonal: the diagonal of G, shape (n,).
        below: the first subdiagonal, ``G[t, t − 1]`` at t, shape (n,); zero at 0.
        shifts: s, shape (q,), nonnegative.

    Source: differential quotient-difference transforms (Fernando & Parlett 1994) with a positive
    shift, and their twisted factorisation (Dhillon & Parlett 2004).
    """
    # elimination from the first tick, and from the last one, has pivots x_t = s + y_t, y_t = a_t
    # x_{t−1}/(c_t + x_{t−1}), where a and c are squared entries of G. If both eliminations meet at
    # tick t, the inverse's entry is 1/(s + y_t + y'_t), with the y' of the elimination from the
    # last tick: nothing is subtracted
    alpha, beta = diagonal**2, below**2
    before, later = np.append(0.0, alpha[:-1]), np.append(beta[1:], 0.0)
    rescaled = _steps_between(alpha, beta, shifts)
    at_once = max(1, _NUMBERS_AT_ONCE // len(alpha))
    for first in range(0, len(shifts), at_once):
        s = shifts[first : first + at_once]
        rows = 1 / (
            s
            + _chain(beta, before, s, rescaled)
            + _chain(alpha[::-1], later[::-1], s, rescaled)[::-1]
        )
        columns = _columns(alpha, beta, s, rescaled)
        yield from ((first + j, rows[:, j], columns[:, j]) for j in range(len(s)))


def second_diagonal(diagonal: Array, below: Array, sizes: Array, shifts: Array) -> Array:
    """Return the diagonal of ``Σ_j c_j (Gᵀ G + s_j)⁻¹``, (n,), for ``sizes`` c and ``shifts`` s."""
    alpha, beta = diagonal**2, below**2
    return _columns(alpha, beta, shifts, _steps_between(alpha, beta, shifts)) @ sizes


def _columns(alpha: Array, beta: Array, s: Array, rescaled: int) -> Array:
    """Return the diagonals of ``(Gᵀ G + s)⁻¹``, shape (n, q), from squared entries of G."""
    after, later = np.append(alpha[1:], 0.0), np.append(beta[1:], 0.0)
    return 1 / (
        s + _chain(alpha, beta, s, rescaled) + _chain(later[::-1], after[::-1], s, rescaled)[::-1]
    )


def relative_error(n: int) -> float:
    """Return a bound on the relative error of every number that :func:`diagonals` yields."""
    # Entries of G may have three rounding errors each. Products and sums of positive numbers add
    # their relative errors, and the map x ↦ a x/(c + x) never enlarges one: at most 16 u per tick,
    # u the unit roundoff. Relative changes of 3u of the entries of G give D₁ G D₂, with diagonal
    # matrices D within 6nu of one (Demmel & Kahan 1990), which changes each number by at most four
    # times that.
    return 64 * (n + 16) * UNIT


def _steps_between(*numbers: Array) -> int:
    """Return how many 2 × 2 matrices of ``numbers`` and ones can be multiplied without overflow."""
    sizes = np.concatenate([np.ones(1), *numbers])  # each matrix has an entry equal to one
    sizes = np.log2(sizes[sizes > 0])
    width = float(sizes.max() - sizes.min())
    if not width <= _WIDEST:
        raise CovarianceError(
            "expected weights and bands whose sizes differ by less than 1e60; hint: even them out"
        )
    return max(1, int(2 * _WIDEST // (width + 2)))


def _chain(a: Array, c: Array, s: Array, rescaled: int) -> Array:
    """Return the pivots of the elimination with each shift in s, less this shift, shape (n, q)."""
    # y_0 = a_0, then y_t = a_t x_{t−1}/(c_t + x_{t−1}) with x_t = s + y_t: a Möbius map of x with a
    # nonnegative matrix, so that √n blocks of ticks are computed together.
    n, q = len(a), len(s)
    length = max(1, math.isqrt(n))
    blocks = -(-n // length)
    missing = (0, blocks * length - n)
    padded = np.pad(a, missing), np.pad(c, missing, constant_values=1.0)
    gains, divisors = (values.reshape(blocks, length).T[:, :, None] for values in padded)
    one, zero = np.ones((blocks, q)), np.zeros((blocks, q))
    upper, lower = (
        np.stack([one, zero]),
        np.stack([zero, one]),
    )  # the upper and the lower row of each block's matrix
    for step, (gain, divisor) in enumerate(zip(gains, divisors, strict=True)):
        # x_t = ((s + a) x + s c)/(x + c), x = x_{t−1}: consecutive ticks multiply their matrices
        upper, lower = (s + gain) * upper + (s * divisor) * lower, upper + divisor * lower
        if step % rescaled == rescaled - 1:
            size = np.ldexp(1.0, -np.frexp(upper.sum(axis=0) + lower.sum(axis=0))[1])
            upper, lower = upper * size, lower * size
    x = np.ones((blocks, q))
    for block in range(blocks - 1):
        x[block + 1] = (upper[0, block] * x[block] + upper[1, block]) / (
            lower[0, block] * x[block] + lower[1, block]
        )
    y = np.empty((length, blocks, q))
    for step, (gain, divisor) in enumerate(zip(gains, divisors, strict=True)):
        if step == 0:
            divisor = np.concatenate(
                [np.zeros((1, 1)), divisor[1:]]
            )  # at the first tick c = 0, so that y = a for any x
        y[step] = gain * (x / (divisor + x))
        x = s + y[step]
    return y.transpose(1, 0, 2).reshape(-1, q)[:n]
