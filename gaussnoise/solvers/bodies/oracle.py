"""Column generation over a body: solve on known points, find points outside, repeat."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from ...numerics.norms import error_of_factor
from ..design import Design
from ..points.columns import Ends, Report
from ..points.fidelity import Fidelity, affine_basis
from ..points.interior import optimal_design
from ..progress import keeps_answer
from .body import Body, even_directions, left_inverse

_ROUNDS = 200
_FIRST_TOL = 1e-2
# New points get this share of the measure's mass: enough to count, and the others keep most of it.
_SHARE_OF_NEW = 0.1
_NEGLIGIBLE_WEIGHT = 1e-6
_MOST_ASCENTS = 1000  # number of points per round that climb to local maxima
# With an inexact oracle, the gap stays open even if points are added: the search ends when the best
# new point could close less than this fraction of the gap.
_WORTHWHILE = 0.03
# It also ends if in _IDLE rounds in a row the lower bound rose by less than this part of the gap.
_LITTLE, _IDLE = 0.005, 3
_COLUMNS = "column generation on the quadratic oracle"
# Number of new directions per round: _FRESH for each dimension, or as many as a covariance has
# contact points, twice over, and then at most _MOST_FRESH.
_FRESH, _MOST_FRESH = 8, 2000
# While an oracle leaves more open than new points can bring, points are dropped whose squared
# length falls short by more than this fraction of it, and points whose move in an ascent is shorter
# than _NEAR, squared and in units of its length, are replaced by the end of their ascent.
_SHORT, _NEAR = 0.25, 0.01


def oracle_design(
    body: Body,
    points: Array,
    p: float,
    basis: Array | None,
    *,
    first: Array | None,
    centered: bool,
    tol: float,
    max_steps: int,
    report: Report | None,
) -> tuple[Design, Array]:
    """Return the optimal covariance of a body, and the points (k, d) that have dual weights.

    Every round gives two bounds. Weights on points are a measure on the body, and this measure
    proves a lower bound. The oracle proves how much the ellipsoid must be enlarged, and this gives
    an upper bound. In each round, all points with weight move to local maxima of the new form
    (Remez's exchange). On curved bodies, few rounds are needed.

    Args:
        body: the body to cover.
        points: some of its points, which span it.
        p: error norm.
        basis: orthonormal columns of the span; None when it is the whole space.
        first: a factor that gives a first upper bound, or None.
        centered: whether the ellipsoid may be shifted.
        tol: gap to reach.
        max_steps: evaluations allowed.
        report: called with (steps, lower, upper).
    """
    ends = Ends(report)
    # points that span the body are always kept, even if a few others have all the weight
    spanning = points[affine_basis(points if basis is None else points @ basis)]
    best = None
    if first is not None:
        best = _design_of_relaxation(body, first, p)
        points = np.vstack([points, _fresh_points(body, left_inverse(first), best.center, 0.0, 0)])
    proof: tuple[Design, Array] | None = None
    start: tuple[Array, Array] | None = None
    inner_tol, interrupted, saturated, proven, idle = _FIRST_TOL, False, False, 0.0, 0
    try:
        for k in range(_ROUNDS):
            fidelity = Fidelity(points, p, centered, basis)
            left = max_steps - ends.steps
            design = optimal_design(
                fidelity, tol=inner_tol, max_steps=left, start=start, report=ends.within
            )
            interrupted = design.interrupted
            shares = fidelity.shares(design.coordinate_weights)
            value = fidelity.at(design.weights, shares).value
            whitening = left_inverse(design.factor)
            far = body.farthest(whitening, design.center)
            error = error_of_factor(design.factor, p)
            before = proven
            if proof is None or value > proven:
                proof, proven = (design, points), value
            ends.lower = max(ends.lower, value)
            upper = max(math.sqrt(far.upper) * error, ends.lower)
            if best is None or upper < best.gap:
                best = replace(design, gap=upper, note=_COLUMNS)  # ``gap`` holds the upper bound
            halved = ends.gap > 2 * (best.gap / ends.lower - 1)
            ends.close(design.steps, value, best.gap / ends.lower - 1)
            missing = max(math.sqrt(far.value / value) - 1, 0.0)
            if ends.gap <= tol or interrupted or ends.steps >= max_steps:
                break
            # an earlier round may have closed more than this one's form leaves open
            slack = min(math.sqrt(far.upper / far.value) - 1, ends.gap)
            precise = inner_tol <= max(tol, _WORTHWHILE * slack)
            loose = slack > missing  # the oracle leaves more open than new points can bring
            idle = idle + 1 if loose and value < before * (1 + _LITTLE * ends.gap) else 0
            saturated = precise and (missing < max(tol / 4, _WORTHWHILE * slack) or idle >= _IDLE)
            if saturated:
                break
            inner_tol = max(
                tol / 4, min(inner_tol, missing / 4) if missing > 2 * inner_tol else inner_tol / 4
            )
            kept = (design.weights > _NEGLIGIBLE_WEIGHT * design.weights.max()) | (not halved)
            if loose and value > before:
                lengths = np.square((points - design.center) @ whitening.T).sum(axis=1)
                kept &= lengths > value * (1 - _SHORT * slack)
            points, weights = points[kept], design.weights[kept]
            beyond = value * (1 + tol / 4)
            heaviest, tops = _climbed(body, whitening, design.center, points, weights)
            lengths = np.square((tops - design.center) @ whitening.T).sum(axis=1)
            moves = np.square((tops - points[heaviest]) @ whitening.T).sum(axis=1)
            near = (moves <= _NEAR * lengths) & loose
            points[heaviest[near]] = tops[near]
            fresh = _fresh_points(body, whitening, design.center, beyond, k + 1)
            new = _distinct(np.vstack([far.point, tops[~near & (lengths > beyond)], fresh]))
            points, start = _merged(points, weights, np.vstack([new, spanning]), shares)
    except KeyboardInterrupt:
        if best is None or proof is None or not keeps_answer():
            raise
        interrupted = True
    if best is None or proof is None:
        raise RuntimeError("no round was finished")
    merged = replace(
        proof[0],
        factor=best.factor,
        center=best.center,
        gap=ends.gap,
        steps=ends.steps,
        note=best.note,
        interrupted=interrupted,
        inexact=saturated,
    )
    return merged, proof[1]


def _design_of_relaxation(body: Body, factor: Array, p: float) -> Design:
    """Return a design from the relaxation's factor, with the upper bound on γ as its ``gap``."""
    far = body.farthest(left_inverse(factor), np.zeros(body.dim))
    upper = error_of_factor(factor, p, far.upper)
    note = (
        "semidefinite relaxation of an image of a 2-convex body, without its matrix; below "
        f"it, {_COLUMNS}"
    )
    nothing = np.zeros(body.dim)
    return Design(np.ones(1), nothing, factor, nothing, upper, 0, note)


def _climbed(
    body: Body, whitening: Array, center: Array, points: Array, weights: Array
) -> tuple[NDArray[np.intp], Array]:
    """Return the indices of the heaviest points, and local maxima that ascents from them reach."""
    heaviest = np.argsort(weights)[::-1][:_MOST_ASCENTS]
    heaviest = heaviest[weights[heaviest] > _NEGLIGIBLE_WEIGHT * weights.max()]
    none = np.zeros((0, len(whitening)))
    return heaviest, body.climb(whitening, center, points[heaviest], none, 0.0)


def _fresh_points(body: Body, whitening: Array, center: Array, beyond: float, k: int) -> Array:
    """Return local maxima of squared length above ``beyond``, from even directions, batch k."""
    r = len(whitening)
    directions = even_directions(max(_FRESH * r, min(r * (r + 1), _MOST_FRESH)), r, k)
    tops = body.climb(whitening, center, np.zeros((0, body.dim)), directions, beyond)
    return _distinct(tops[np.square((tops - center) @ whitening.T).sum(axis=1) > beyond])


def _distinct(points: Array) -> Array:
    """Return the points without those that differ from others by rounding alone."""
    return points[np.unique(points.round(12), axis=0, return_index=True)[1]]


def _merged(
    kept: Array, weights: Array, new: Array, shares: Array
) -> tuple[Array, tuple[Array, Array]]:
    """Return the distinct kept and new points, and their first weights with ``shares``."""
    mass = np.concatenate(
        [(1 - _SHARE_OF_NEW) * weights, np.full(len(new), _SHARE_OF_NEW / len(new))]
    )
    merged, place = np.unique(np.vstack([kept, new]) + 0.0, axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights=mass, minlength=len(merged))
    return merged, (total / total.sum(), shares)
