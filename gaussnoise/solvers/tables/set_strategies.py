"""Strategies of an attribute that depend on the attributes that are measured together with it.

Where an attribute is asked about in several ways, such as counties alone and regions by age, each
set T of attributes serves other queries of it. One strategy for all sets can need a quarter more
noise than a strategy for each set.

Let v be the shares by which a total is spread over the categories. It is the same for all sets, so
that tables are decoded as before. Let G be the weighted Gram matrix of the queries that T serves.
Since ``(I − v1')`` subtracts the part of the total, the contrasts of T are the best ones for
``(I − v1')' G (I − v1')``, with ``C v = 0``. They are integers with exactly this property: shares
are rounded to multiples of the largest one's 1/q. Then the columns of C are q times any integers,
but for that of the largest share, which the others determine.
"""

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from ..progress import Watch, interrupts_pass
from .marginals import TableNoise, table_noise
from .orbits import Type
from .products import (
    ProductNoise,
    best_contrasts,
    error_of,
    loose_noise,
    unseen_share,
    weighted_terms,
)
from .strategies import SolvedStrategy
from .workload import Workload

_MOST_ROUNDS = 10
_EARNED = 1e-3  # the gain of one round below which the search ends
# Weights of bases are rounded to powers of 2^(1/8), at least 2^-20: sets with like weights share a
# strategy. The noise is smallest at the exact weights, so that a change of 9 % costs little.
_STEPS, _LEAST = 8, 20
# Shares are rounded to 1/64 of the largest one: q is at most 32, and leaves six bits for contrasts.
_CLOSE, _MOST_UNITS, _LEAST_BITS = 1 / 64, 32, 6

# The share of the budget for what no query of a set depends on: so cells that were not asked for
# have at most some 64 times as much noise, which costs the others 0.01 %.
_UNSEEN = 2.0**-12

Shares = NDArray[np.int64]


def with_set_strategies(
    single: ProductNoise, p: float, *, tol: float, watch: Watch
) -> ProductNoise:
    """Return ``single`` with strategies for each set of attributes, if they lower the error.

    This is for rows that are added or removed. Their sensitivity is a sum over sets of products of
    column lengths, so that strategies of different sets do not depend on each other.
    """
    several = [k for k in single.grams if len(single.workload.bases[k]) > 1]
    if not several:
        return single
    with interrupts_pass():
        workload, noise = single.workload, loose_noise(single.workload, p, replaced=False)
        best, found = error_of(workload, p, noise, replaced=False), workload
        contrasts = {k: _Contrasts(workload, k, single.bits) for k in several}
        for _ in range(_MOST_ROUNDS):
            weights = _weights(workload, p, noise)
            strategies = list(workload.strategies)
            for k, own in contrasts.items():
                strategies[k] = own.strategy({T: w for (T, of), w in weights.items() if of == k})
            workload = workload.measured_by(strategies)
            noise = loose_noise(workload, p, replaced=False)
            error = error_of(workload, p, noise, replaced=False)
            if error >= best * (1 - _EARNED):
                break
            best, found = error, workload
    if found is single.workload:
        return single
    return replace(
        single,
        workload=found,
        noise=table_noise(found, p, replaced=False, tol=tol, watch=watch),
    )


def _weights(workload: Workload, p: float, noise: TableNoise) -> dict[tuple[Type, int], Array]:
    """Return, for each measured set T with class k, how much each base of k counts in T."""
    weights: dict[tuple[Type, int], Array] = defaultdict(lambda: np.zeros(0))
    for T, table, weight in weighted_terms(workload, p, noise, replaced=False):
        for k, b in table:
            if k in T and len(workload.bases[k]) > 1:
                if not len(weights[T, k]):
                    weights[T, k] = np.zeros(len(workload.bases[k]))
                weights[T, k][b] += weight / workload.gain(T, k, b)
    return weights


class _Contrasts:
    """The contrasts of a class that is asked about in several ways, for any weights of these."""

    def __init__(self, workload: Workload, k: int, bits: int) -> None:
        self.alone = (k,)
        self.grams = np.stack([base.gram() for base in workload.bases[k]])
        self.shares = rounded_shares(workload.strategies[k].profile, bits)
        self.bits = bits
        self.known: dict[tuple[int, ...], SolvedStrategy] = {}

    def strategy(self, weights: dict[Type, Array]) -> SolvedStrategy:
        """Return the strategy of the class alone, with those of all sets with other weights."""
        own = {T: self._of(w) for T, w in weights.items()}
        alone = own.pop(self.alone)
        others = {T: other for T, other in own.items() if other is not alone}
        return SolvedStrategy(alone.contrasts, by_set=others) if others else alone

    def _of(self, weights: Array) -> SolvedStrategy:
        """Return the strategy for these weights of the bases, rounded."""
        steps = np.log2(np.maximum(weights / weights.max(), 2.0 ** -(_LEAST + 1))) * _STEPS
        key = tuple(np.rint(steps).astype(int).tolist())
        if key not in self.known:
            rounded = [2.0 ** (s / _STEPS) if s >= -_LEAST * _STEPS else 0.0 for s in key]
            n, v = len(self.shares), self.shares / self.shares.sum()
            rest = np.eye(n) - v[:, None]  # times counts: counts without the part of the total
            gram = rest.T @ np.tensordot(rounded, self.grams, axes=1) @ rest
            X, _ = best_contrasts((gram + gram.T) / 2)  # symmetric to the last bit
            self.known[key] = strategy_with_shares(X, self.shares, self.bits)
        return self.known[key]


def rounded_shares(profile: Array, bits: int) -> Shares:
    """Return integers about proportional to the shares of a total, the largest of them positive."""
    unit = profile / profile.max()
    most = min(_MOST_UNITS, 2 ** max((bits - _LEAST_BITS) // 2, 0))
    for q in range(1, most + 1):
        if q == most or np.abs(np.rint(q * unit) / q - unit).max() <= _CLOSE:
            return np.rint(q * unit).astype(np.int64)
    raise AssertionError


def strategy_with_shares(X: Array, shares: Shares, bits: int, off: int = 0) -> SolvedStrategy:
    """Return integer contrasts C with about the Gram matrix X, and ``C @ shares = 0`` exactly.

    Of X, only the part without totals counts. ``off`` is that of :class:`SolvedStrategy`.
    """
    n, last = len(X), int(shares.argmax())
    q, others = int(shares[last]), np.delete(np.arange(n), last)
    rest = np.eye(n) - (shares / shares.sum())[:, None]
    X, whole = rest.T @ X @ rest, rest.T @ rest
    share = max(_UNSEEN, unseen_share(bits - math.ceil(math.log2(q))))
    while True:
        mixed = (1 - share) * X / np.diag(X).max() + share * whole / np.diag(whole).max()
        values, axes = np.linalg.eigh(mixed)
        B = np.sqrt(np.maximum(values[1:], 0.0))[:, None] * axes[:, 1:].T
        scale = 2.0**bits / np.linalg.norm(B, axis=0).max()
        C = np.zeros(B.shape, dtype=np.int64)
        C[:, others] = q * np.rint(B[:, others] * (scale / q)).astype(np.int64)
        C[:, last] = -(C[:, others] // q) @ shares[others]
        exact, rounded = (
            np.linalg.svd(np.vstack([np.ones(n), own]), compute_uv=False)[-1]
            for own in (B, C / scale)
        )
        if share >= 1 / 2 or rounded >= exact / 2:
            return SolvedStrategy(C, off)
        share *= 4
