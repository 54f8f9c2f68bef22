"""Bounds, in exact integers, on the change of all measurements by one person's reports.

A report is the rows of one person in one tick.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domains.participation.patterns import Apart

from ..numerics.integers import exact_type

Array = NDArray[np.float64]
Integers = NDArray[Any]  # int64 where every sum provably fits, Python integers otherwise

_MOST_PAIRS = 2**22  # most pairs of ticks in all sets that are enumerated


def largest_change(gram: Integers, reports: int, apart: int) -> int:
    """Return an upper bound on ``Σ_{i,j∈π} |X_ij|`` for any set π of ticks of one person.

    Let X be ``gram``. A set has at most ``reports`` ticks, any two of them at least ``apart``
    apart. Suppose that X = CᵀC for the time strategy C, and let Δ bound the change of one tick's
    answers. Then the squared change of all measurements by one person is at most Δ² times this sum.

    The result is the exact maximum of the sum if X_ij = 0 for different ticks of one person, if a
    person has at most two ticks, or if there are few sets.

    Args:
        gram: X, integers, shape (n, n).
        reports: the largest number of ticks of one person, at least 1.
        apart: the least difference between two ticks of one person, at least 1.
    """
    # rows in the ticks of π change the answers at tick i by some u_i with ‖u_i‖ <= Δ, and all
    # measurements by Σ_i C_·i ⊗ u_i, of squared length Σ_{i,j∈π} X_ij ⟨u_i, u_j⟩
    n = len(gram)
    sizes = np.abs(gram)
    sizes = sizes.astype(exact_type(int(sizes.max()) * n * n))
    who = Apart(n, min(reports, (n - 1) // apart + 1), apart)
    k, own = who.most, np.diagonal(sizes)
    between = sizes * who.meet()
    if k == 1 or not between.any():
        return _largest_sums(own[None, :], k, apart)[0]
    if k == 2:
        pairs = (own[:, None] + own + 2 * between)[who.meet()]
        return max(int(own.max()), int(pairs.max()))
    if who.count * k**2 <= _MOST_PAIRS:
        return _largest_of_all(sizes, _sets(who))
    # tick i's share is the largest sum of |X_ij| over other ticks j of a set; shares of a set are
    # added (Choquette-Choo et al. 2023, section 4). As X is symmetric, the share may instead count
    # the earlier ticks twice, or the later ones
    shares = between, 2 * np.tril(between), 2 * np.triu(between)
    rows = (own + np.array(_largest_sums(part, k - 1, apart), dtype=sizes.dtype) for part in shares)
    return min(_largest_sums(row[None, :], k, apart)[0] for row in rows)


def _largest_sums(weights: Integers, k: int, apart: int) -> list[int]:
    """Return each row's largest sum of at most k entries, at least ``apart`` columns apart."""
    rows, n = weights.shape
    before = np.zeros((n + 1, rows), dtype=weights.dtype)  # row j: the first j columns
    for _ in range(k):
        best = np.zeros_like(before)
        for j in range(1, n + 1):
            best[j] = np.maximum(best[j - 1], before[max(j - apart, 0)] + weights[:, j - 1])
        before = best
    return [int(x) for x in before[n]]


@lru_cache(maxsize=1)  # a search for strategies asks for the same sets repeatedly
def _sets(who: Apart) -> NDArray[np.intp]:
    return who.maximal()


def _largest_of_all(sizes: Integers, sets: NDArray[np.intp]) -> int:
    """Return the largest sum of ``sizes[i, j]`` over i and j in one row of ``sets``."""
    padded = np.zeros((len(sizes) + 1,) * 2, dtype=sizes.dtype)
    padded[:-1, :-1] = sizes
    totals = sum(padded[i, j] for i in sets.T for j in sets.T)
    return int(np.max(totals))


def worst_reports(
    gram: Array, reports: int, apart: int, signed: bool
) -> dict[tuple[float, ...], float]:
    """Return {vector: squared change of all measurements} for vectors of reports.

    A report is a person's rows in one tick. A vector has 1 (or also −1, if ``signed``) at the ticks
    in which a person reports, and 0 elsewhere.

    The vectors are found by a greedy search: each starts from one tick, and repeatedly adds the
    report that increases the change most. So they change measurements much, but perhaps others
    change them more.
    """
    n, worst = len(gram), {}
    positions, own = np.arange(n), np.diagonal(gram)
    for start in range(n):
        taken, pull, free = np.zeros(n), np.zeros(n), np.ones(n, dtype=bool)
        following, value = start, 0.0
        for _ in range(reports):
            sign = -1.0 if signed and pull[following] < 0 else 1.0
            taken[following] = sign
            value += float(own[following] + 2 * sign * pull[following])
            pull += sign * gram[following]
            free &= np.abs(positions - following) >= apart
            gains = np.where(free, own + 2 * (np.abs(pull) if signed else pull), 0.0)
            following = int(np.argmax(gains))
            if gains[following] <= 0:
                break
        worst[tuple(taken.tolist())] = value
    return worst
