"""Strategies of an attribute that depend on the attributes that are measured together with it.

Where an attribute is asked about in several ways, such as counties alone and regions by age, each
set T of attributes serves other queries of it. One strategy for all sets can need a third more
noise than a strategy for each set.

Let v be the shares by which a total is spread over the n categories. It is the same for all sets,
so that tables are decoded as before. Let G be the weighted Gram matrix of the queries that T
serves, and ``F'F = (I − v1')' G (I − v1')`` that of the queries without the part of the total. A
record of category x changes the measurements by the sum over T of the squared lengths of column x
of the contrasts C_T. This sum must be small for every x, so that a length may be large in one set
and small in another. The dual problem has one weight λ_x for each category, for all sets together:
maximise the sum of the nuclear norms of ``F Λ^½``. At the maximum, the Gram matrix of C_T is
``F' (F Λ F')^{−½} F``.

Contrasts are integers with ``C v = 0`` exactly: shares are rounded to multiples of 1/q of the
largest one. Then the columns of C are q times any integers, except the column of the largest
share, which the others determine.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array
from domains.tables.clipped import Clipped

from ...numerics.norms import dual_power
from .marginals import PATIENCE, TableNoise, loose_noise, mean_shares, scaled_error
from .orbits import Type
from .strategies import ROUNDED, SolvedStrategy
from .workload import MOST_RECORDS, Workload

_MOST_ROUNDS = 25
_EARNED = 1e-3  # the gain of one round below which the search ends
# Weights λ of categories: the steps at most, and the excess of the largest summed length over the
# mean at which they are good enough, for an error that is at most half as far from the least one.
_MOST_STEPS, _EVEN = 60, 1e-3
_SINGULAR = 1e-10
# Weights of bases are rounded to powers of 2^(1/8), at least 2^-20: sets with like weights share
# their contrasts. At the exact weights noise is least, so that a change of 9 % costs little.
_STEPS, _LEAST = 8, 20
# Shares are rounded by 3 % of them on average: q is at most 128, and leaves five bits of contrasts.
_CLOSE, _MOST_UNITS, _LEAST_BITS = 1 / 32, 128, 5
# The share of the budget for what no query of a set depends on: so cells that were not asked for
# have at most some 64 times as much noise, which costs the others 0.01 %.
_UNSEEN = 2.0**-12

Shares = NDArray[np.int64]


def with_set_strategies(
    single: Workload, p: float, laws: Sequence[Array], bits: int, but: Collection[int]
) -> Workload:
    """Return ``single`` with strategies for each set of attributes, if they lower the error.

    This is for rows that are added or removed, and for all classes but those in ``but``. If several
    attributes are asked about in several ways, those with few categories come first, until there
    are too many records to compare.

    Args:
        single: the tables, with one strategy for each class of attributes.
        p: error norm.
        laws: for each class, weights of the categories to start from.
        bits: the number of bits of the integer contrasts.
        but: classes that keep one strategy.
    """
    shares = {
        k: rounded
        for k in _several(single, but)
        if (rounded := rounded_shares(single.strategies[k].profile, bits)) is not None
    }
    if not shares:
        return single
    workload, found, noise = single, single, loose_noise(single, p, replaced=False)
    best, waited, tables = scaled_error(single, p, noise, replaced=False), 0, None
    # a category without weight would never get any
    law = {k: (laws[k] + 1 / len(laws[k])) / 2 for k in shares}
    # for p = 2, the best strategies of a single class depend on no earlier ones
    rounds = 1 if p == 2 and len(shares) == 1 else _MOST_ROUNDS
    for count in range(rounds):
        tables = mean_shares(tables, noise, count)
        strategies = list(workload.strategies)
        for k in shares:
            served = _served(workload, p, replace(noise, shares=tables), k, shares[k])
            grams, law[k] = best_contrasts(served, law[k])
            own = [strategy_with_shares(gram, shares[k], bits) for gram in grams]
            by_set = {T: own[at] for at, kind in enumerate(served) for T in kind.sets}
            alone = by_set.pop((k,))
            others = {T: other for T, other in by_set.items() if other is not alone}
            strategies[k] = SolvedStrategy(alone.contrasts, by_set=others)
        workload = workload.measured_by(strategies)
        noise = loose_noise(workload, p, replaced=False)
        error, waited = scaled_error(workload, p, noise, replaced=False), waited + 1
        if error < best * (1 - _EARNED):
            best, found, waited = error, workload, 0
        if waited >= (PATIENCE if p > 2 else 1):
            break
    return found


def _several(workload: Workload, but: Collection[int]) -> list[int]:
    """Return the classes that are asked about in several ways, while their records are few.

    Rows of a number with squares are on a curve, and are no categories.
    """
    chosen, records = list[int](), 1
    sizes = {
        k: own.size
        for k, (own, bases) in enumerate(zip(workload.strategies, workload.bases, strict=True))
        if k not in but
        and len(bases) > 1
        and isinstance(own, SolvedStrategy)
        and not any(isinstance(base, Clipped) and base.squares for base in bases)
    }
    for k in sorted(sizes, key=lambda k: (sizes[k], k)):
        if 2 < sizes[k] <= MOST_RECORDS // records:
            chosen.append(k)
            records *= sizes[k]
    return chosen


@dataclass(eq=False)
class _Served:
    """Sets of attributes that serve the same queries of an attribute, up to a factor.

    Attributes:
        F: F'F is the Gram matrix of these queries, without the total.
        weight: the weight of the nuclear norm of ``F Λ^½`` in the error.
        sets: the types of the sets.
    """

    F: Array
    weight: float = 0.0
    sets: list[Type] = field(default_factory=list)


def _served(
    workload: Workload, p: float, noise: TableNoise, k: int, shares: Shares
) -> list[_Served]:
    """Return the measured sets with class k, by the queries of k that they serve."""
    weights = noise.shares / noise.shares.sum()
    losses = (workload.dual_loss(p) * weights ** dual_power(p)).tocoo()
    coefficients: dict[int, Array] = defaultdict(lambda: np.zeros(len(workload.bases[k])))
    for row, column, value in zip(*losses.coords, losses.data, strict=True):
        T, asked = workload.residuals[row], dict(workload.tables[column])
        if k in T:
            gain = workload.gain(T, k, asked[k])
            coefficients[row][asked[k]] += value / gain if gain > 0 else 0.0
    lengths = noise.pattern_weights @ workload.lengths(noise.patterns, without=k)
    grams = np.stack([base.gram() for base in workload.bases[k]])
    rest = np.eye(len(shares)) - (shares / shares.sum())[:, None]  # subtracts spread totals
    found: dict[tuple[int, ...], _Served] = {}
    for row, of_bases in coefficients.items():
        most = float(of_bases.max())
        of_bases = of_bases / most if most > 0 else np.ones(len(of_bases))  # no query needs this
        steps = np.log2(np.maximum(of_bases, 2.0 ** -(_LEAST + 1))) * _STEPS
        key = tuple(np.rint(steps).astype(int).tolist())
        if key not in found:
            rounded = [2.0 ** (s / _STEPS) if s >= -_LEAST * _STEPS else 0.0 for s in key]
            gram = rest.T @ np.tensordot(rounded, grams, axes=1) @ rest
            values, axes = np.linalg.eigh((gram + gram.T) / 2)
            seen = values > _SINGULAR * values[-1]
            found[key] = _Served(np.sqrt(values[seen])[:, None] * axes[:, seen].T)
        # the mean length of the columns of other attributes
        found[key].weight += float(workload.residual_counts[row] * math.sqrt(lengths[row] * most))
        found[key].sets.append(workload.residuals[row])
    return list(found.values())


def best_contrasts(served: Sequence[_Served], law: Array) -> tuple[list[Array], Array]:
    """Return the Gram matrix of the best contrasts for each entry, and weights λ of categories.

    ``law`` are weights to start from.
    """
    best, found, chosen = math.inf, list[Array](), law
    for _ in range(_MOST_STEPS):
        contrasts, lengths = [], np.zeros(len(law))
        for kind in served:
            values, axes = np.linalg.eigh(kind.F * law @ kind.F.T)
            values = np.maximum(values, np.finfo(np.float64).eps * values[-1])
            contrasts.append((axes / values**0.25).T @ kind.F)
            lengths += kind.weight * np.square(contrasts[-1]).sum(axis=0)
        # the mean of the lengths is the dual objective: at its maximum, none is longer
        lengths /= law @ lengths
        if lengths.max() < best:
            best, found, chosen = float(lengths.max()), contrasts, law
        if best <= 1 + _EVEN:
            break
        law = law * lengths**2
        law = law / law.sum()
    return [B.T @ B for B in found], chosen


def rounded_shares(profile: Array, bits: int) -> Shares | None:
    """Return integers about proportional to the shares of a total, or None if there are none.

    There are none if shares cancel, or if small integers are too coarse for them.
    """
    unit = profile / profile.max()
    size = np.abs(unit).sum()
    if size > 2 * unit.sum():
        return None
    for q in range(1, min(_MOST_UNITS, 2 ** max(bits - _LEAST_BITS, 0)) + 1):
        rounded = np.rint(q * unit)
        if np.abs(rounded / q - unit).sum() <= size * _CLOSE:
            return rounded.astype(np.int64)
    return None


def strategy_with_shares(X: Array, shares: Shares, bits: int) -> SolvedStrategy:
    """Return integer contrasts C with about the Gram matrix X, and ``C @ shares = 0`` exactly.

    Of X, only the part without totals counts.
    """
    n, last = len(X), int(shares.argmax())
    q, others = int(shares[last]), np.delete(np.arange(n), last)
    rest = np.eye(n) - (shares / shares.sum())[:, None]
    X, whole = rest.T @ X @ rest, rest.T @ rest
    share = max(_UNSEEN, ROUNDED * q**2 / 4**bits)
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
            return SolvedStrategy(C)
        share *= 4
