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
    """Return an upper bound on ``Σ_{i,j∈π} |X_ij|`` over all sets π of at most ``reports`` ticks
    (time steps), for the matrix X = ``gram``.

    Any two ticks of a set are at least ``apart`` ticks apart.

    With time strategy C, a person with rows in the ticks of π changes the answers at tick i by some
    u_i with ‖u_i‖ <= Δ, which may differ from tick to tick. The measurements over time change by
    ``Σ_i C_·i ⊗ u_i``, of squared length

        Σ_{i,j∈π} X_ij ⟨u_i, u_j⟩ <= Δ² Σ_{i,j∈π} |X_ij|,    X = CᵀC,

    by the Cauchy–Schwarz inequality, with equality for equal u_i of length Δ if X >= 0.

    The result is the exact maximum if X_ij = 0 for different ticks of one person, if a person has
    at most two ticks, or if there are few sets. Otherwise let r_i be the largest sum of |X_ij| over
    the ticks j of a set that contains i. Then Σ_{i∈π} r_i is maximised; both steps use dynamic
    programming over ticks and numbers of ticks (the bound of Choquette-Choo et al. 2023, Section
    4). Since X is symmetric, r_i may instead count only the earlier, or only the later, ticks j
    twice; the least of the three bounds is returned.

    Args:
        gram: X, integers, shape (n, n).
        reports: the largest number of ticks of one person, at least 1.
        apart: the least difference between two ticks of one person, at least 1.
    """
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
    shares = between, 2 * np.tril(between), 2 * np.triu(between)
    rows = (own + np.array(_largest_sums(part, k - 1, apart), dtype=sizes.dtype) for part in shares)
    return min(_largest_sums(row[None, :], k, apart)[0] for row in rows)


def _largest_sums(weights: Integers, k: int, apart: int) -> list[int]:
    """Return for every row the largest sum of at most k of its entries, which are not negative.

    The chosen entries are at least ``apart`` columns apart.
    """
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
    """Return the largest sum, over all sets, of ``sizes[i, j]`` over all pairs i, j of members of
    one set.

    Each row of ``sets`` has the ticks of one set, filled up with n, which adds nothing.
    """
    padded = np.zeros((len(sizes) + 1,) * 2, dtype=sizes.dtype)
    padded[:-1, :-1] = sizes
    totals = sum(padded[i, j] for i in sets.T for j in sets.T)
    return int(np.max(totals))


def worst_reports(
    gram: Array, reports: int, apart: int, signed: bool
) -> dict[tuple[float, ...], float]:
    """Return {vector: squared change of all measurements} for vectors of reports.

    A report is a person's rows in one tick. A vector has 1, or −1 if ``signed``, at the ticks in
    which a person reports, and 0 elsewhere.

    They change measurements much, but not provably most: each starts from one tick, and adds the
    report that increases the change most, again and again. A search for strategies uses them.
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
