"""Optimal noise for tables, with one variance for each type of residual measurement.

T stands for a set of attributes and for its residual measurement: the part of the tables that
depends on all attributes of T and sums to zero along each. Sets that differ only by permuting
equivalent attributes are of one type. A pattern says how many attributes of each class of
equivalent attributes differ between a record and its replacement.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import Array

from ...numerics.norms import dual_power, error_of
from ..design import MAX_STEPS
from ..points.interior import maximum
from ..progress import Watch
from .patterns import is_enumerable, pattern_shape
from .workload import Workload

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Patterns = NDArray[np.intp]

_NEW_PATTERNS = 50
# If patterns are too many to check all: the number a search starts from, and the number added.
_STARTS, _MOST_NEW = 20, 500
_FRESH_SHARE = 0.1
_LOOSE = 1e-3  # gap of the weights of tables while strategies still change
# Where weights of tables are means over all rounds: how much a new round counts in relation to the
# earlier ones, and the rounds without a smaller error after which the last one is enough.
_FRESH, PATIENCE = 2, 6
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False)
class TableNoise:
    """The optimal noise for a workload of tables, before it is scaled to sensitivity one.

    Attributes:
        noise: shape (types,), the variance of the residual measurement of each type of attribute
            set, if the columns of the contrasts have length one.
        shares: shape (types of tables,), the dual weight of each type of table, summed over the
            tables of the type.
        patterns: shape (k, classes), each row a pattern: the number of attributes of each class in
            which a record and its replacement differ. If records are not replaced, a row has the
            categories of a record in the classes of :attr:`.Workload.free`, and zeros.
        pattern_weights: shape (k,), the patterns' probabilities.
        steps: iterations spent.
        unproven: whether patterns were too many to check all, and the search for the worst
            one ended before it proved the tolerance.
        interrupted: whether Ctrl-C ended the solve.
    """

    noise: Array
    shares: Array
    patterns: Patterns
    pattern_weights: Array
    steps: int
    unproven: bool = False
    interrupted: bool = False


def table_noise(
    workload: Workload, p: float, *, replaced: bool, tol: float, watch: Watch
) -> TableNoise:
    """Return the optimal noise, by maximising the dual ``Σ_T √(L_T κ_T)`` over table weights.

    T runs over the attribute sets with a residual measurement. L_T is the weighted variance of the
    answers if the measurement of T has unit noise, and κ_T is the mean squared change of this
    measurement. If ``replaced``, neighbouring data differ in one replaced record. The maximum is
    then also over weights of patterns: sets of attributes in which the record and its replacement
    differ.

    The solver begins with a few patterns, and adds those that change the measurements most. If
    patterns are few, the change is computed for all of them. Otherwise, a search finds the patterns
    to add.
    """
    patterns: Patterns = np.zeros((1, len(workload.moving.classes)), dtype=np.intp)
    moved = workload.moved if replaced else workload.lengths
    if not workload.residuals:
        tables = len(workload.tables)
        return TableNoise(np.zeros(0), np.full(tables, 1 / tables), patterns, np.ones(1), 0)
    A = workload.dual_loss(p)
    if not replaced and not workload.free:
        objective = ResidualFidelity(A, moved(patterns), workload.residual_counts, p)
        return _solved_without_patterns(objective, patterns, tol, watch)
    patterns = _first_patterns(workload) if replaced else _worst_records(workload)[0]
    objective = ResidualFidelity(A, moved(patterns), workload.residual_counts, p)
    start, steps = None, 0
    while True:
        optimum = maximum(
            objective, tol=tol / 2, max_steps=MAX_STEPS, start=start, report=watch.scaled(1.0)
        )
        steps += optimum.steps
        solution = _noise_at(
            objective, patterns, optimum.weights, optimum.shares, steps, optimum.interrupted
        )
        longest = float(optimum.at.lengths.max())
        # The upper bound is proportional to the root of the largest squared change: if that is at
        # most ``most``, the gap is at most tol.
        most = longest * ((1 + tol) / (1 + optimum.at.gap)) ** 2
        worst, changes, bound = (
            _worst_patterns(workload, 1 / solution.noise, patterns, most)
            if replaced
            else _worst_records(workload, 1 / solution.noise)
        )
        if optimum.interrupted or bound <= most:
            return solution
        # At the maximum, patterns with weight change measurements by F: only patterns with larger
        # changes are missing.
        fresh = worst[changes > optimum.at.value]
        kept = optimum.weights > _NEGLIGIBLE * optimum.weights.max()
        known = {tuple(row) for row in patterns[kept].tolist()}
        fresh = np.array([row for row in fresh.tolist() if tuple(row) not in known], dtype=np.intp)
        if not len(fresh) or steps > MAX_STEPS:
            unproven = replaced and not is_enumerable(workload.moving)
            return replace(solution, unproven=unproven)
        patterns = np.vstack([patterns[kept], fresh])
        old = optimum.weights[kept] / optimum.weights[kept].sum()
        mass = np.concatenate(
            [(1 - _FRESH_SHARE) * old, np.full(len(fresh), _FRESH_SHARE / len(fresh))]
        )
        start = mass, optimum.shares
        objective = ResidualFidelity(A, moved(patterns), workload.residual_counts, p)


def loose_noise(workload: Workload, p: float, *, replaced: bool) -> TableNoise:
    """Return the noise of the tables, accurate enough to compare strategies."""
    return table_noise(workload, p, replaced=replaced, tol=_LOOSE, watch=Watch(None))


def scaled_error(workload: Workload, p: float, design: TableNoise, *, replaced: bool) -> float:
    """Return the p-norm error of noise that is scaled to the largest change by one record."""
    shares = 1 / design.noise
    if replaced and not is_enumerable(workload.moving):
        _, found, _ = workload.search(shares, design.patterns, 0.0, effort=0.0)
        moved = float(found[0])
    else:
        moved = workload.largest_move(shares, replaced=replaced)
    return workload.error(design.noise * moved, p)


def mean_shares(before: Array | None, noise: TableNoise, count: int) -> Array:
    """Return the mean over ``count`` earlier rounds and this one of the weights of tables.

    The larger the error of a table is, the more weight it has, if p > 2. So strategies for the last
    weights alone would not settle. Later rounds count more.
    """
    own = noise.shares / noise.shares.sum()
    return own if before is None else before + _FRESH * (own - before) / (count + _FRESH)


def _worst_records(
    workload: Workload, shares: Array | None = None
) -> tuple[Patterns, Array, float]:
    """Return the records that change the measurements most, their changes, and the largest one."""
    moved = workload.records_moved(np.ones(len(workload.residuals)) if shares is None else shares)
    order = np.argsort(-moved, axis=None, kind="stable")[:_NEW_PATTERNS]
    worst = np.column_stack(np.unravel_index(order, moved.shape))
    return worst, moved.ravel()[order], float(moved.max())


def _worst_patterns(
    workload: Workload, shares: Array, known: Patterns, most: float
) -> tuple[Patterns, Array, float]:
    """Return the patterns that change the measurements most, their changes, and an upper bound."""
    if is_enumerable(workload.moving):
        moved = workload.patterns_moved(shares)
        order = np.argpartition(-moved, min(_NEW_PATTERNS, moved.size) - 1, axis=None)
        order = order[:_NEW_PATTERNS]
        worst = np.column_stack(np.unravel_index(order, moved.shape))
        return worst, moved.ravel()[order], float(moved.max())
    # too many patterns to check: some above ``most`` are found by a search from the known ones
    moved = workload.moved(known) @ (shares * workload.residual_counts)
    starts = known[np.argsort(-moved)[:_STARTS]]
    worst, moved, bound = workload.search(shares, starts, most)
    more = np.flatnonzero(moved > most)[:_MOST_NEW]
    return worst[more], moved[more], bound


def _first_patterns(workload: Workload) -> Patterns:
    """Return the patterns with one attribute, all attributes or all but one."""
    most = np.array(pattern_shape(workload.moving), dtype=np.intp) - 1
    most[[k for k in workload.public if k < len(most)]] = 0
    single = np.eye(len(most), dtype=np.intp)[most > 0]
    first = np.unique(np.vstack([single, most, most - single]), axis=0)
    return first[first.any(axis=1)]


def _solved_without_patterns(
    objective: "ResidualFidelity", patterns: Patterns, tol: float, watch: Watch
) -> TableNoise:
    closed = len(objective.K) == 1 and (objective.p == 2 or objective.shape[1] == 1)
    report = None if closed else watch.scaled(1.0)
    optimum = maximum(objective, tol=tol / 2, max_steps=MAX_STEPS, report=report)
    return _noise_at(
        objective, patterns, optimum.weights, optimum.shares, optimum.steps, optimum.interrupted
    )


def _noise_at(
    objective: "ResidualFidelity",
    patterns: Patterns,
    weights: Array,
    shares: Array,
    steps: int,
    interrupted: bool,
) -> TableNoise:
    losses, moved = objective.parts(weights, shares)
    return TableNoise(
        np.sqrt(moved / losses), shares, patterns, weights, steps, interrupted=interrupted
    )


@dataclass(frozen=True, eq=False)
class ResidualEvaluation:
    """The dual objective F of :class:`ResidualFidelity` at one point (λ, ω), and its derivatives.

    Attributes:
        value: F, a lower bound on the optimal error.
        gap: upper/lower − 1.
        lengths: shape (patterns,), twice the derivatives of F by the pattern weights λ.
        variances: shape (types of tables,), twice the derivatives of F by ``ω^{1−2/p}``.
        terms: shape (types of T,), the terms of the sum F.
        losses: shape (types of T,), L.
        moved: shape (types of T,), κ.
    """

    value: float
    gap: float
    lengths: Array
    variances: Array
    terms: Array
    losses: Array
    moved: Array


@dataclass(frozen=True, eq=False)
class ResidualFidelity:
    """The dual objective of noise for tables, ``F(λ, ω) = Σ_T count_T √(L_T κ_T)``.

    λ are weights of patterns (sets of attributes in which a record and its replacement differ), ω
    are shares of the types of tables, ``L = A ω^{1−2/p}`` and ``κ = λ K``. T runs over the types of
    attribute sets with a residual measurement. F is jointly concave.

    Attributes:
        A: shape (types of T, types of tables): the matrix that maps weights of tables to losses L,
            see :meth:`Workload.dual_loss`.
        K: shape (patterns, types of T): the squared change of one measurement T by each pattern,
            see :meth:`Workload.moved`.
        counts: shape (types of T,), the number of T of each type.
        p: error norm.
    """

    A: "csr_array"
    K: Array
    counts: Array
    p: float

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.K), len(np.asarray(self.A.sum(axis=0)))

    @property
    def power(self) -> float:
        return dual_power(self.p)

    def coordinate_weights(self, shares: Array) -> Array:
        return shares**self.power

    def parts(self, weights: Array, shares: Array) -> tuple[Array, Array]:
        """Return the losses ``L = A ω^{1−2/p}`` and the squared changes ``κ = λ K`` of all types.

        ``weights`` are the weights λ of patterns, ``shares`` the shares ω of types of tables.
        """
        return self.A @ self.coordinate_weights(shares), weights @ self.K

    def at(self, weights: Array, shares: Array) -> ResidualEvaluation:
        """Return the dual objective and its derivatives at weights λ of patterns and shares ω.

        ω are shares of the types of tables.
        """
        losses, moved = self.parts(weights, shares)
        terms = self.counts * np.sqrt(losses * moved)
        value = float(terms.sum())
        # ∂F/∂κ_T = ½ term_T/κ_T and ∂F/∂L_T = ½ term_T/L_T, as every term is count √(Lκ)
        lengths = self.K @ (terms / moved)
        variances = self.A.T @ (terms / losses)
        gap = max(error_of(variances, self.p, float(lengths.max())) / value - 1, 0.0)
        return ResidualEvaluation(value, gap, lengths, variances, terms, losses, moved)

    def curvature(self, now: ResidualEvaluation, x: Array) -> "ResidualCurvature":
        """Return minus the Hessian of the dual objective F at x = (λ, ω), or at λ alone.

        λ are weights of patterns, ω shares of types of tables, and changes of x are relative. As a
        quadratic form it is ``Σ_T ¼ term_T (dκ_T/κ_T − dL_T/L_T)²``, where ``term_T = count_T √(L_T
        κ_T)`` is the term of T in F, plus the curvature of ``ω^{1−2/p}``.
        """
        count = len(self.K)
        roots = np.sqrt(now.terms) / 2
        points = x[:count, None] * self.K * (roots / now.moved)
        if len(x) == count:
            return ResidualCurvature(points, None, np.zeros(count))
        w = self.coordinate_weights(x[count:])
        tables = scipy.sparse.csr_array((self.A * (self.power * w)) * (roots / now.losses)[:, None])
        bend = np.concatenate(
            [np.zeros(count), (1 - self.power) * self.power * now.variances * w / 2]
        )
        return ResidualCurvature(points, tables, bend)


@dataclass(frozen=True, eq=False)
class ResidualCurvature:
    """The matrix ``G G' + diag(bend)``, known by its products with vectors.

    G has the rows of ``points`` and those of the transpose of −``tables``; if ``tables`` is None,
    the rows of ``points`` alone.
    """

    points: Array
    tables: "csr_array | None"
    bend: Array

    def diagonal(self) -> Array:
        squares = np.square(self.points).sum(axis=1)
        if self.tables is not None:
            squares = np.concatenate(
                [squares, np.asarray((self.tables * self.tables).sum(axis=0)).ravel()]
            )
        return squares + self.bend

    def __matmul__(self, v: Array) -> Array:
        count = len(self.points)
        if self.tables is None:
            return self.points @ (self.points.T @ v) + self.bend * v
        inner = self.points.T @ v[:count] - self.tables @ v[count:]
        return np.concatenate([self.points @ inner, -(self.tables.T @ inner)]) + self.bend * v
