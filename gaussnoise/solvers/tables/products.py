"""Optimal noise for products of queries, from one small certified problem for each attribute.

The strategy of an attribute is the matrix that is applied to the counts of its categories before
noise is added: the total 1', and contrasts B. Let G_i be the Gram matrix of the queries of
attribute i, and μ_i the weight of the total. Attribute i is solved alone, for the Gram matrix
``G_i + μ_i 11'``. Let X be the Gram matrix of its optimal strategy, and ``τ = 1'X⁻¹1``. Then
``X = 11'/τ + (1 − 1/τ) B'B``, where B has unit columns. B is used in every table with the
attribute (:mod:`.set_strategies` goes on from here). A table's loss depends on B through two
variances only: g, from unit noise on B, and s, from unit noise on the total. For each μ, the
optimum is a point of the Pareto curve of g and s, with ``−dg/ds = √(g/(s + μ))``. μ_i is chosen,
as a fixed point, so that this slope is the ratio of the loss's derivatives by s and by g, over all
tables.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.errors import DomainTooLargeError, InvalidDomainError
from domains.floats import Array
from domains.tables.bases import AbstractBase, check_apart
from domains.tables.clipped import Clipped

from ...numerics.feasibility import whiten
from ...numerics.norms import dual_power
from ...numerics.span import span
from ..bodies.closed_forms import uniform_measure
from ..design import MAX_STEPS
from ..points.fidelity import Fidelity
from ..points.interior import optimal_design
from ..progress import Watch, interrupts_pass
from .alone import best_differences
from .marginals import PATIENCE, TableNoise, loose_noise, mean_shares, scaled_error, table_noise
from .pair_bases import pair_gram
from .strategies import ROUNDED, SolvedStrategy, is_exchangeable
from .workload import Workload

_TOLERANCE = 1e-7  # gap of a one-attribute problem: far below the loss by the product form itself
_STILL = 1e-4  # largest relative change of any μ, or weight of a base, at the fixed point
_SAME = 1e-9  # weights of bases that differ less are equal
_MOST_ROUNDS = 25
_MOST_SOLVED = 1200  # number of categories that take half a minute
# Limits of Gram matrices, so that products and differences keep digits.
_SMALLEST, _LARGEST = 1e-90, 1e90
_MOST_PENALTY = 1e4  # largest μ, as a multiple of the Gram matrix's mean: totals then cost nothing
# Directions on which no query depends are measured too, so that every cell can be released. They
# get the share _UNSEEN of the budget, or more if contrasts of few bits would be rounded to zero.
_UNSEEN = 2.0**-16
_SINGULAR = 1e-10
# The product of contrasts over the attributes of a table, and of sizes for identity strategies,
# stays below 2**33, so that noise fits into 64 bits.
_MOST_BITS, _PRODUCT_BITS, _LEAST_BITS = 20, 33, 8
_PART_BITS = 20  # number of these bits reserved for multiples of a record with clipped numbers
# For the search for strategies with short differences: the largest number of cells of an attribute,
# the number of trials, the gap of each, and the gain of one class below which the search ends; then
# the first trials and the limits of all, as logarithms of the penalty on totals (in units of the
# Gram matrix's mean) and of the weight of columns relative to differences.
_MOST_PAIRED, _TRIALS, _CLOSE, _EARNED = 256, 30, 1e-2, 1e-3
_SIMPLEX, _PLACES = [[-1.0, 0.0], [2.0, 0.0], [-1.0, 2.0]], (-6.0, 8.0)
# For rounding columns to integers: trial lengths of a column, and the entries computed at once.
_TRIES, _ENTRIES = 129, 20_000


@dataclass(frozen=True, eq=False)
class ProductNoise:
    """Optimal noise if each table is measured by a Kronecker product of one matrix per attribute.

    Attributes:
        workload: the tables, with the strategies (measured matrices) found for the attributes.
        cell_weights: for each class of equivalent attributes, the dual weights of the attribute's
            categories, shape (n,).
        noise: the variances of the tables' measurements.
        rounds: the number of times the attributes were solved.
        grams: for each class with a solved strategy, the Gram matrix of its queries: a
            weighted sum over its bases in all tables.
        bits: the number of bits of the integer contrasts of these classes.
        pairs: for each class of attributes whose tables have no other attribute, if records are
            replaced, the dual weights of pairs of categories, see :func:`best_differences`.
        shares: the dual weights of the types of tables for which the strategies are best, if these
            are means over several rounds; None otherwise. The dual weights of ``noise`` are for
            these strategies alone.
    """

    workload: Workload
    cell_weights: tuple[Array, ...]
    noise: TableNoise
    rounds: int
    grams: Mapping[int, Array]
    bits: int
    pairs: Mapping[int, Array] = field(default_factory=dict)
    shares: Array | None = None


def product_noise(
    workload: Workload,
    p: float,
    *,
    replaced: bool,
    tol: float,
    watch: Watch,
    joined: Collection[int] = (),
) -> ProductNoise:
    """Return the best strategies of all classes of attributes, and the noise of the tables.

    A strategy is the matrix by which an attribute is measured. Strategies and their dual weights
    are found by a fixed point, then the noise is computed. Classes in ``joined`` are solved as if
    they were in tables with other classes.
    """
    asked = {
        k: bases
        for k, bases in enumerate(workload.bases)
        if not all(base.is_identity for base in bases)
    }
    for base in (base for bases in asked.values() for base in bases if base.size > _MOST_SOLVED):
        raise DomainTooLargeError(
            f"{type(base).__name__}: {base.size} categories, more than {_MOST_SOLVED}, would take "
            "minutes; hint: coarser bins, or counts (Identity) alone"
        )
    grams = {k: tuple(base.gram() for base in bases) for k, bases in asked.items()}
    _check_bases(asked, grams)
    # Tables of public attributes alone are exact; if all tables are such, nothing is measured.
    solved = [
        k
        for k, matrices in grams.items()
        if len(workload.residuals) and not all(map(is_exchangeable, matrices))
    ]
    # where only differences count, attributes without others in their tables have a problem each
    apart = [k for k in solved if replaced and k in workload.alone and k not in joined]
    bits = contrast_bits(workload, solved)
    cells = tuple(np.full(strategy.size, 1 / strategy.size) for strategy in workload.strategies)
    now = _Round(workload, p, replaced, cells, {}, {}, {})
    if solved:
        with interrupts_pass():  # an unfinished solution of one attribute makes all others worse
            now = _fixed_point(now, {k: np.stack(grams[k]) for k in solved}, apart, bits)
    summed = {
        k: np.tensordot(now.weights[k], np.stack(grams[k]), axes=1)
        for k in solved
        if k not in apart and k in now.weights
    }
    noise = table_noise(now.workload, p, replaced=replaced, tol=tol, watch=watch)
    return ProductNoise(
        now.workload, now.cells, noise, now.count, summed, bits, now.pairs, now.shares
    )


@dataclass(frozen=True, eq=False)
class _Round:
    """The strategies of all classes after some rounds of the fixed point.

    Attributes:
        workload: the tables, with the strategies.
        p: error norm.
        replaced: whether records are replaced.
        cells: for each class, the dual weights of the categories.
        penalties: for each class, the weight of the total beside its queries.
        weights: for each class, the weights of its bases, the largest of which is 1.
        pairs: for classes that are solved for differences alone, the weights of pairs.
        shares: the dual weights of the types of tables; those of the solution without others if
            None.
        count: the number of rounds.
        moved: the largest relative change of a penalty or weight in the last round.
    """

    workload: Workload
    p: float
    replaced: bool
    cells: tuple[Array, ...]
    penalties: Mapping[int, float]
    weights: Mapping[int, Array]
    pairs: Mapping[int, Array]
    shares: Array | None = None
    count: int = 0
    moved: float = math.inf

    @cached_property
    def noise(self) -> TableNoise:
        """The noise of the tables with these strategies."""
        return loose_noise(self.workload, self.p, replaced=self.replaced)


def _fixed_point(
    now: _Round, grams: Mapping[int, Array], apart: Collection[int], bits: int
) -> _Round:
    """Return the round with the best strategies of the classes of ``grams``."""
    # For p > 2, a base has the more weight the larger its error is, which depends on the strategy:
    # strategies for the last weights alone would not settle, those for the mean of all do.
    mixing = now.p > 2 and any(len(bases) > 1 for bases in grams.values())
    best, found, waited = math.inf, now, 0
    while now.moved > _STILL and now.count < _MOST_ROUNDS and waited < PATIENCE:
        noise = now.noise
        if mixing:
            now = replace(now, shares=mean_shares(now.shares, noise, now.count))
            noise = replace(noise, shares=now.shares)
        now = _next_round(now, noise, grams, apart, bits)
        waited += 1
        error = (
            scaled_error(now.workload, now.p, now.noise, replaced=now.replaced) if mixing else 0.0
        )
        if not mixing or error < best * (1 - _EARNED):
            best, found, waited = error, now, 0
    return replace(found, shares=now.shares, count=now.count)


def _next_round(
    now: _Round,
    noise: TableNoise,
    grams: Mapping[int, Array],
    apart: Collection[int],
    bits: int,
) -> _Round:
    """Return the round after ``now``, with the best strategies for the weights of this noise."""
    slopes = _derivatives(now.workload, now.p, noise, replaced=now.replaced)
    strategies, cells, moved = list(now.workload.strategies), list(now.cells), 0.0
    penalties, all_weights, pairs = {**now.penalties}, {**now.weights}, {**now.pairs}
    for k, bases in grams.items():
        weights, ratio = slopes[k]
        if not weights.any():  # all tables with the attribute are exact
            continue
        weights = weights / max(weights)
        gram = np.tensordot(weights, bases, axes=1)
        change = np.abs(weights - all_weights.get(k, 0.0)).max()
        if now.p > 2 and len(bases) > 1:
            moved = max(moved, change)
        if k in apart:
            if change > _SAME:
                X, pairs[k] = best_differences(gram)
                strategies[k] = _strategy(X, bits)
        else:
            traces = np.array([now.workload.traces[k, b] for b in range(len(weights))])
            # μ solves √(gain/(total + μ)) = ratio, and is kept between 0 and ``most``
            gain, total_gain = weights @ traces
            most = _MOST_PENALTY * float(gram.mean())
            penalty = (
                most
                if gain > (most + total_gain) * ratio**2
                else max(gain / ratio**2 - total_gain, 0.0)
            )
            size = total_gain + penalty
            moved = max(moved, abs(penalty - penalties.get(k, math.inf)) / size)
            penalties[k] = penalty
            strategies[k], cells[k] = one_attribute(gram + penalty, bits)
        all_weights[k] = weights
    return _Round(
        now.workload.measured_by(strategies),
        now.p,
        now.replaced,
        tuple(cells),
        penalties,
        all_weights,
        pairs,
        now.shares,
        now.count + 1,
        moved,
    )


def paired(single: ProductNoise, p: float, *, tol: float, watch: Watch) -> ProductNoise:
    """Return ``single`` with strategies of short column differences, if they lower the error.

    This is for replaced records: a replacement changes the measurements by the difference of two
    columns of the measured matrix (the strategy). So the columns may be long if their differences
    are short. Classes of attributes with most categories are tried first.
    """
    with interrupts_pass():
        workload, best = single.workload, _replaced_error(single.workload, p)
        for k, gram in sorted(single.grams.items(), key=lambda pair: -len(pair[1])):
            if len(gram) <= _MOST_PAIRED:
                error, other = _best_strategy(workload, p, k, gram, single.bits)
                if error >= best * (1 - _EARNED):
                    break  # classes of fewer categories are expected to gain less
                best, workload = error, other
    noise = table_noise(workload, p, replaced=True, tol=tol, watch=watch)
    return replace(single, workload=workload, noise=noise)


def _best_strategy(
    workload: Workload, p: float, k: int, gram: Array, bits: int
) -> tuple[float, Workload]:
    """Return the least error found over strategies of class k, and the workload with this one."""
    # two numbers vary: the penalty on totals, and the weight of column lengths against differences
    start: Array | None = None
    tried: list[tuple[float, Workload]] = []

    def error(place: Array) -> float:
        nonlocal start
        penalty, single = np.exp(np.clip(place, *_PLACES))
        X, start = pair_gram(gram + penalty * gram.mean(), single, _CLOSE, start)
        strategies = list(workload.strategies)
        strategies[k] = _strategy(X, bits)
        other = workload.measured_by(strategies)
        tried.append((_replaced_error(other, p), other))
        return tried[-1][0]

    scipy.optimize.minimize(
        error,
        _SIMPLEX[0],
        method="Nelder-Mead",
        options={"maxfev": _TRIALS, "initial_simplex": _SIMPLEX},
    )
    return min(tried, key=lambda pair: pair[0])


def _replaced_error(workload: Workload, p: float) -> float:
    return scaled_error(workload, p, loose_noise(workload, p, replaced=True), replaced=True)


def _derivatives(
    workload: Workload, p: float, tables: TableNoise, *, replaced: bool
) -> dict[int, tuple[Array, float]]:
    """Return by class: the error's derivative by each base's gain; a ratio, total gain to gain."""
    # g and s: variances of the answers from unit noise on the class's contrasts and on its total
    A = workload.dual_loss(p)
    shares = tables.shares / tables.shares.sum()
    scaled = (A * shares ** dual_power(p)).tocoo()
    losses = np.asarray(scaled.sum(axis=1)).ravel()
    moved = tables.pattern_weights @ workload.moved(tables.patterns) if replaced else 1.0
    # F = Σ count_T √(L_T κ_T), and each term of L_T is a product with a factor g or s for every
    # attribute: the derivative by a factor is proportional to the term over this factor
    factors = workload.residual_counts * np.sqrt(moved / losses)
    gains = {k: np.zeros(len(bases)) for k, bases in enumerate(workload.bases)}
    totals = {k: np.zeros(len(bases)) for k, bases in enumerate(workload.bases)}
    for row, column, value in zip(*scaled.coords, scaled.data, strict=True):
        T, weight = workload.residuals[row], factors[row] * value
        table = workload.tables[column]
        for k, b in set(table):
            inside, outside = T.count(k), table.count((k, b)) - T.count(k)
            gain, total_gain = workload.traces[k, b]
            gains[k][b] += weight * inside / gain if inside else 0.0
            totals[k][b] += weight * outside / total_gain if outside else 0.0
    slopes = {}
    for k in gains:
        own = np.array([workload.traces[k, b][1] for b in range(len(gains[k]))])
        slopes[k] = (
            gains[k],
            float(totals[k] @ own) / float(gains[k] @ own) if (gains[k] > 0).any() else 1.0,
        )
    return slopes


def one_attribute(gram: Array, bits: int) -> tuple[SolvedStrategy, Array]:
    """Return the optimal contrasts for one attribute, and dual weights of its n categories.

    Args:
        gram: the Gram matrix ``W'W`` of the rows W, which are the queries and a multiple of the
            total, shape (n, n).
        bits: the number of bits of the integers to which contrasts are rounded.
    """
    values, axes = np.linalg.eigh(gram)
    seen = values > _SINGULAR * values[-1]
    points = axes[:, seen] * np.sqrt(values[seen] / values[-1])
    design = uniform_measure(points, 2, centered=False) or optimal_design(
        Fidelity(points, 2, False, span(points)),
        tol=_TOLERANCE,
        max_steps=MAX_STEPS,
        report=lambda *_: None,
    )
    b = whiten(design.factor, points).coordinates
    weights = np.maximum(design.weights, 0.0)
    return _strategy(b @ b.T, bits), weights / weights.sum()


def _strategy(X: Array, bits: int) -> SolvedStrategy:
    """Return integer contrasts that together with the total have about the Gram matrix X."""
    n = len(X)
    X = X / np.diag(X).max()
    X[np.diag_indices(n)] = 1.0  # the longest column sets the sensitivity: others may be as long
    least, share = float(np.linalg.eigvalsh(X)[0]), max(_UNSEEN, ROUNDED / 4**bits)
    while True:
        mixed = X if least >= share else (1 - share) * X + share * np.eye(n)
        C = _integers(_contrasts(mixed), bits)
        smallest = np.linalg.svd(np.vstack([np.ones(n), C / 2.0**bits]), compute_uv=False)[-1]
        if share >= 1 / 2 or smallest**2 >= share / 4:
            # of two categories only the signs of the single contrast matter
            return SolvedStrategy(C if n > 2 else np.sign(C))
        share *= 4


def curve_strategy(X: Array, bits: int, off: int) -> SolvedStrategy:
    """Return integer contrasts with about the Gram matrix X, for a number whose squares are summed.

    X is known up to a factor and a multiple of 11'. ``off`` is that of :class:`SolvedStrategy`.
    """
    n, share = len(X), max(_UNSEEN, ROUNDED / 4**bits)
    while True:
        mixed = X / np.abs(X).max() + share * np.eye(n)
        # the total is measured apart: the rest is singular
        values, axes = np.linalg.eigh(mixed - 1 / float(np.linalg.inv(mixed).sum()))
        # a triangle with a positive diagonal is the same on all processors
        B = np.linalg.qr(np.sqrt(np.maximum(values[1:], 0.0))[:, None] * axes[:, 1:].T, mode="r")
        B = B * np.where(np.diag(B) < 0, -1.0, 1.0)[:, None]
        scales = 2.0**bits / np.linalg.norm(B, axis=0).max() * np.linspace(0.5, 1, _TRIES)
        rounded = [np.rint(scale * B).astype(np.int64) for scale in scales]
        both = np.stack([np.vstack([np.ones(n), C / 2.0**bits]) for C in rounded])
        smallest = np.linalg.svd(both, compute_uv=False)[:, -1]
        if share >= 1 / 2 or (smallest**2 >= share / 4).any():
            tried = [
                SolvedStrategy(C, off)
                for C, least in zip(rounded, smallest, strict=True)
                if least >= min(math.sqrt(share) / 2, smallest.max())
            ]
            return min(tried, key=lambda own: float(np.square(B @ own.root).sum()))
        share *= 4


def opposite(gram: Array, weights: Array) -> NDArray[np.bool_]:
    """Split the n categories into two halves whose answers differ most; return the second half.

    The result, shape (n,), is True for categories of this half. ``gram`` is the Gram matrix of the
    queries. The halves have about equal sums of ``weights``, and are split along the leading
    direction of the differences of answers.
    """
    root = np.sqrt(weights / weights.sum())
    centered = np.eye(len(root)) - np.outer(root, root)
    leading = np.linalg.eigh(centered @ (root[:, None] * gram * root) @ centered)[1][:, -1]
    order = np.argsort(leading / np.where(root > 0, root, 1.0), kind="stable")
    before = np.cumsum(root[order] ** 2)
    upper = np.zeros(len(root), dtype=bool)
    upper[order[1 + int(np.abs(before - 1 / 2).argmin()) :]] = True
    return upper


def _contrasts(X: Array) -> Array:
    """Return contrasts B with unit columns, (n − 1, n), and X = 11'/τ + (1 − 1/τ) B'B for a τ."""
    # τ = 1'X⁻¹1
    tau = float(np.linalg.inv(X).sum())
    values, axes = np.linalg.eigh((X - 1 / tau) / (1 - 1 / tau))
    return np.sqrt(np.maximum(values[1:], 0.0))[:, None] * axes[:, 1:].T


def _integers(B: Array, bits: int) -> NDArray[np.int64]:
    """Return integers near the columns of B, scaled so that none is longer than 2^bits."""
    most = 4**bits
    unit = B / np.linalg.norm(B, axis=0) * 2.0**bits
    best = np.trunc(unit)  # never longer than the unrounded column
    lengths = np.square(best).sum(axis=0)
    stretches = 1 + np.linspace(-2, 2, _TRIES) * 2.0**-bits
    at_once, columns = max(_ENTRIES // unit.size, 1), np.arange(unit.shape[1])
    # many slightly longer or shorter columns are rounded; the longest allowed result is kept
    for first in range(0, _TRIES, at_once):
        tried = np.rint(unit * stretches[first : first + at_once, None, None])
        squares = np.square(tried).sum(axis=1)
        squares[squares > most] = -1.0
        longest = squares.argmax(axis=0)
        better = np.flatnonzero(squares[longest, columns] > lengths)
        best[:, better] = tried[longest[better], :, better].T
        lengths[better] = squares[longest[better], better]
    return best.astype(np.int64)


def contrast_bits(workload: Workload, solved: Sequence[int]) -> int:
    """Return the bits of contrasts with products over a table that, with noise, fit 64 bits."""
    bits, solved = _MOST_BITS, [k for k in solved if workload.strategies[k].size > 2]
    clipped = any(isinstance(base, Clipped) for bases in workload.bases for base in bases)
    most = _PRODUCT_BITS - (_PART_BITS if clipped else 0)
    for S in workload.types:
        count = sum(k in solved for k in S)
        taken = sum(math.log2(workload.strategies[k].size) for k in S if k not in solved)
        if count:
            bits = min(bits, max(int((most - taken) / count), _LEAST_BITS))
    return bits


def _check_bases(
    asked: Mapping[int, Sequence[AbstractBase]], grams: Mapping[int, Sequence[Array]]
) -> None:
    """Refuse query matrices with too small or large entries, or with nearly equal columns."""
    for k, bases in asked.items():
        for base, gram in zip(bases, grams[k], strict=True):
            largest, name = float(np.abs(gram).max()), type(base).__name__
            if not _SMALLEST < largest < _LARGEST:
                raise InvalidDomainError(
                    f"{name}: expected queries with entries between 1e-45 and 1e45; hint: rescale"
                )
            check_apart(base, gram)
