"""Column generation over the possible contributions of one person, the atoms.

An atom Z_a is a pattern of ticks with a correlation matrix of the vectors added at these ticks.

Let λ be the weights of the atoms found so far, w the coordinate weights, W = diag(w), and Λ = Σ λ_a
Z_a. Each round maximises ``F = tr((W^½ A Λ A' W^½)^½)`` over λ and w. Let N be the covariance of
the maximum, and X = A'N⁻¹A. One semidefinite programme with X for each pattern finds the atoms that
N does not cover. These atoms join the next round. Since atoms are matrices, added vectors of any
dimension are covered. F is always a lower bound; N, scaled to cover all patterns, gives an upper
bound.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from domains.floats import EPS, Array
from domains.participation.maxcut import largest_forms
from domains.participation.patterns import AbstractPatterns
from domains.participation.sensitivity import blocks, form_bound, set_sums

from ...numerics.norms import dual_power, error_of, error_of_factor
from ..points.columns import Report
from ..points.interior import maximum
from ..progress import keeps_answer

Indices = NDArray[np.intp]

_ROUNDS = 40
_INNER_STEPS = 60
_FIRST_TOL = 3e-3
_NEW_PER_TICK = 4  # number of atoms added per tick and round
_SHARE_OF_NEW = 0.1  # new atoms get this share of the measure's mass
_NEGLIGIBLE = 1e-7  # atoms with less than this fraction of the largest weight are dropped
_MOST_SOLVED = 2**14  # number of semidefinite programmes per round


@dataclass(frozen=True, eq=False)
class Exchanged:
    """The optimal covariance for a stream, not scaled to unit sensitivity, and its dual proof.

    The proof is a measure on atoms. An atom is a possible contribution of one person: a set of k
    ticks, and the correlations of the vectors added at these ticks.

    Attributes:
        factor: L of the covariance L L', shape (n, n).
        sets: the ticks of every atom, shape (P, k), padded with n.
        correlations: Z, the correlation matrix of every atom, shape (P, k, k).
        weights: λ, the dual weights of the atoms, shape (P,).
        coordinate_weights: w, the dual weights of the answers, shape (n,), with ``‖w‖_{s*} <= 1``,
            where 1/s* = 1 − 2/p.
        steps: evaluations of the dual objective.
        interrupted: whether Ctrl-C ended the rounds.
    """

    factor: Array
    sets: Indices
    correlations: Array
    weights: Array
    coordinate_weights: Array
    steps: int
    interrupted: bool


@dataclass(frozen=True, eq=False)
class _Evaluation:
    value: float
    gap: float
    lengths: Array
    variances: Array
    roots: Array
    axes: Array
    rows: Array  # Y, Y Y' = X


@dataclass(frozen=True, eq=False)
class _Atoms:
    """The dual objective F as a function of weights of atoms and shares of coordinates."""

    # an atom: a set of one person's ticks, and the correlations Z of the vectors added there
    A: Array
    sets: Indices
    Z: Array
    p: float

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.sets), len(self.A)

    @property
    def power(self) -> float:
        return dual_power(self.p)

    @cached_property
    def _places(self) -> Indices:
        """The indices of all entries of atoms' matrices in a flattened (n + 1, n + 1) matrix."""
        n = len(self.A)
        return (self.sets[:, :, None] * (n + 1) + self.sets[:, None, :]).ravel()

    def coordinate_weights(self, shares: Array) -> Array:
        return shares**self.power if self.p > 2 else np.ones(len(shares))

    def moment(self, weights: Array) -> Array:
        """Return the weighted sum of all atoms' correlation matrices, shape (n, n)."""
        n = len(self.A)
        entries = (weights[:, None, None] * self.Z).ravel()
        summed: Array = np.bincount(self._places, entries, (n + 1) ** 2).astype(np.float64)
        return summed.reshape(n + 1, n + 1)[:n, :n]

    def products(self, X: Array) -> Array:
        """Return the inner product of every atom's correlation matrix with X, shape (P,)."""
        return (blocks(X, self.sets) * self.Z).sum(axis=(1, 2))

    def at(self, weights: Array, shares: Array) -> _Evaluation:
        w = self.coordinate_weights(shares)
        scaled = np.sqrt(w)[:, None] * self.A
        squares, axes = np.linalg.eigh(scaled @ self.moment(weights) @ scaled.T)
        roots = np.sqrt(np.maximum(squares, EPS * squares[-1]))
        # N = W^-½ U diag(roots) U' W^-½, with U the axes. Hence X = A'N⁻¹A = rows rows'.
        rows = scaled.T @ (axes / np.sqrt(roots))
        variances = np.square(axes * np.sqrt(roots)).sum(axis=1) / w
        lengths = self.products(rows @ rows.T)
        value = float(roots.sum())
        gap = max(error_of(variances, self.p, float(lengths.max())) / value - 1, 0.0)
        return _Evaluation(value, gap, lengths, variances, roots, axes, rows)

    def curvature(self, now: _Evaluation, x: Array) -> "_Curvature":
        return _Curvature(self, now, x)


@dataclass(frozen=True, eq=False)
class _Curvature:
    """Minus the Hessian of the dual objective, known by its products with vectors."""

    atoms: _Atoms
    now: _Evaluation
    x: Array

    @cached_property
    def _kernel(self) -> Array:
        # minus the second differential of tr S^½ is diagonal in the eigenvectors of S
        return 1 / (2 * (self.now.roots[:, None] + self.now.roots))

    @cached_property
    def _half(self) -> Array:
        return np.sqrt(self.now.roots[:, None] * self.now.roots)

    @cached_property
    def _bend(self) -> Array:
        a = self.atoms.power
        return (
            (1 - a)
            * a
            * self.now.variances
            * self.atoms.coordinate_weights(self.x[len(self.atoms.sets) :])
            / 2
        )

    def diagonal(self) -> Array:
        count = len(self.atoms.sets)
        squares = np.square(self.now.rows)
        spread = squares @ self._kernel @ squares.T
        own = (blocks(spread, self.atoms.sets) * np.square(self.atoms.Z)).sum(axis=(1, 2))
        by_atom = np.square(self.x[:count]) * own
        if len(self.x) == count:
            return by_atom
        axes = np.square(self.now.axes)
        by_share = self.atoms.power**2 * ((axes @ (self._kernel * self._half**2)) * axes).sum(
            axis=1
        )
        return np.concatenate([by_atom, by_share + self._bend])

    def __matmul__(self, v: Array) -> Array:
        count, now = len(self.atoms.sets), self.now
        feature = now.rows.T @ self.atoms.moment(self.x[:count] * v[:count]) @ now.rows
        if len(v) > count:
            feature -= self._half * (
                now.axes.T @ ((self.atoms.power * v[count:])[:, None] * now.axes)
            )
        feature *= self._kernel
        by_atom = self.x[:count] * self.atoms.products(now.rows @ feature @ now.rows.T)
        if len(v) == count:
            return by_atom
        by_share = -self.atoms.power * ((now.axes @ (self._half * feature)) * now.axes).sum(axis=1)
        return np.concatenate([by_atom, by_share + self._bend * v[count:]])


def exchange_optimum(
    A: Array,
    who: AbstractPatterns,
    sets: Indices,
    Z: Array,
    weights: Array,
    factor: Array,
    p: float,
    *,
    tol: float,
    report: Report | None = None,
) -> Exchanged:
    """Return the optimal covariance for a stream, by adding atoms that are not covered yet.

    An atom is a possible contribution of one person: a set of ticks with the correlation matrix Z
    of the vectors added at these ticks. ``sets``, ``Z`` and ``weights`` are the first atoms, which
    must span; the covariance of ``factor`` gives the first upper bound. ``A`` is the workload,
    shape (n, n), and ``who`` has the possible sets of ticks.
    """
    n = len(A)
    shares = np.full(n, 1 / n)
    sensitivity, *_ = _uncovered_atoms(
        who, np.asarray(np.linalg.solve(factor, A), dtype=np.float64), 0.0
    )
    upper = error_of_factor(factor, p, sensitivity)
    best, proof, lower = factor, (sets, Z, weights, shares), 0.0
    steps, inner, interrupted = 0, _FIRST_TOL, False
    try:
        for _ in range(_ROUNDS):
            atoms = _Atoms(A, sets, Z, p)
            top = maximum(atoms, tol=inner, max_steps=_INNER_STEPS, start=(weights, shares))
            steps, weights, shares, now = steps + top.steps, top.weights, top.shares, top.at
            interrupted = top.interrupted
            if now.value > lower:
                lower, proof = now.value, (sets, Z, weights, shares)
            w = atoms.coordinate_weights(shares)
            reached = now.axes * np.sqrt(now.roots) / np.sqrt(w)[:, None]
            # At the maximum, Σ λ_a ⟨Z_a, X⟩ = tr(ΛX) = F, and all atoms with weight have a squared
            # change ⟨Z_a, X⟩ of F. So atoms with a larger change are missing.
            sensitivity, new_sets, new_Z = _uncovered_atoms(
                who, now.rows.T, now.value * (1 + tol / 4)
            )
            bound = error_of(now.variances, p, sensitivity)
            if bound < upper:
                best, upper = reached, bound
            if report is not None:
                report(steps, lower, max(upper, lower))
            if upper <= lower * (1 + tol) or not len(new_sets) or interrupted:
                break
            # the more a missing atom exceeds F, the less precisely the next round is solved
            inner = max(tol / 4, min(inner, (math.sqrt(sensitivity / now.value) - 1) / 4))
            kept = weights > _NEGLIGIBLE * weights.max()
            sets, Z = np.vstack([sets[kept], new_sets]), np.concatenate([Z[kept], new_Z])
            weights = np.concatenate(
                [
                    (1 - _SHARE_OF_NEW) * weights[kept],
                    np.full(len(new_sets), _SHARE_OF_NEW / len(new_sets)),
                ]
            )
            weights = weights / weights.sum()
    except KeyboardInterrupt:
        if not keeps_answer():
            raise
        interrupted = True
    sets, Z, weights, shares = proof
    w = shares ** dual_power(p) if p > 2 else np.ones(n)
    return Exchanged(best, sets, Z, weights, w, steps, interrupted)


def _uncovered_atoms(
    who: AbstractPatterns, coordinates: Array, beyond: float
) -> tuple[float, Indices, Array]:
    """Return a bound on one person's squared change, and the atoms with the largest change."""
    # an atom: a set of one person's ticks, and the correlations of vectors added there; column t
    # of coordinates is the change by one contribution at tick t
    X = coordinates.T @ coordinates
    magnitudes = np.abs(X)
    if who.lists_few:
        sets = who.maximal()
        sums = set_sums(magnitudes, sets)
        # |Z_ij| <= 1, so ``sums`` are upper bounds, and some set has a change of ``certain``: sets
        # with smaller sums do not have the largest change
        certain = float(np.append(X.diagonal(), 0.0)[sets].sum(axis=1).max())
        promising = np.flatnonzero(sums >= max(beyond, certain) * (1 - 1e-12))
        rest = promising[np.argsort(-sums[promising])]
        sets, unsolved = sets[rest[:_MOST_SOLVED]], sums[rest[_MOST_SOLVED:]]
        if not len(sets):
            return float(sums.max()), sets, np.zeros((0, who.most, who.most))
        forms = largest_forms(blocks(X, sets))
        sensitivity = max(float(forms.upper.max()), float(unsolved.max(initial=0.0)))
        if beyond > certain:
            sensitivity = max(sensitivity, beyond)
    else:
        n = who.ticks
        gains = np.where(who.meet(), 2 * magnitudes + X.diagonal(), 0.0)
        chosen = {tuple(who.best(gains[i] + _gain_of_one_tick(n, i)).tolist()) for i in range(n)}
        sets = np.array(
            [row + (n,) * (who.most - len(row)) for row in sorted(chosen)], dtype=np.intp
        )
        forms = largest_forms(blocks(X, sets))
        sensitivity = form_bound(who, magnitudes)
    order = np.argsort(-forms.value)
    order = order[forms.value[order] > beyond][: _NEW_PER_TICK * who.ticks]
    return sensitivity, sets[order], forms.matrices[order]


def _gain_of_one_tick(n: int, i: int) -> Array:
    """Return values of n ticks such that every set with the largest sum has tick i."""
    return np.where(np.arange(n) == i, 1e9, 0.0)
