"""Column generation over differences: solve on some pairs, ask which others stick out, repeat."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from ...numerics.norms import error_of_factor
from ...numerics.pairs import far_pairs
from ..design import Design
from ..progress import keeps_answer
from .fidelity import Fidelity, affine_basis
from .interior import optimal_design

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Report = Callable[[int, float, float], None]

_ROUNDS = 100
_FIRST_TOL = 1e-2
_NEW_PAIRS = 1000  # a round, at most
# New pairs share this much of the measure with those before: enough to be seen, little enough to
# keep the rest.
_SHARE_OF_NEW = 0.1
_NEGLIGIBLE_WEIGHT = 1e-6


def pairwise_design(
    points: Array,
    p: float,
    basis: Array | None,
    *,
    tol: float,
    max_steps: int,
    report: Report | None,
) -> tuple[Design, Rows]:
    """The optimum for all differences of ``points`` (N, d), and the pairs (k, 2) with weights.

    Every round brackets the answer: weights on some pairs are a measure on all, and the farthest
    pair of all scales the ellipsoid. A round is solved no more sharply than the longest pair it
    lacks asks for.
    """
    rows, spanning = _first_pairs(points, basis)
    start: tuple[Array, Array] | None = None
    best: tuple[Design, Rows] | None = None
    ends = Ends(report)
    inner_tol, interrupted = _FIRST_TOL, False
    try:
        for _ in range(_ROUNDS):
            fidelity = Fidelity(points[rows[:, 0]] - points[rows[:, 1]], p, False, basis)
            left = max_steps - ends.steps
            design = optimal_design(
                fidelity, tol=inner_tol, max_steps=left, start=start, report=ends.within
            )
            interrupted = design.interrupted
            shares = fidelity.shares(design.coordinate_weights)
            value = fidelity.at(design.weights, shares).value
            pairs = far_pairs(_coordinates(points, design.factor), value * (1 + tol / 2))
            error = error_of_factor(design.factor, p)
            gap = max(float(np.sqrt(pairs.largest) * error / value - 1), 0.0)
            halved = best is None or gap < best[0].gap / 2
            if best is None or gap < best[0].gap:
                best = replace(design, gap=gap), rows
            ends.close(design.steps, value, best[0].gap)
            if best[0].gap <= tol or interrupted or ends.steps >= max_steps:
                break
            missing = float(np.sqrt(pairs.largest / value)) - 1
            inner_tol = max(tol / 4, min(inner_tol / 2, missing / 4))
            # pairs are dropped only while that leads somewhere: otherwise the same ones would come
            # and go
            kept = (design.weights > _NEGLIGIBLE_WEIGHT * design.weights.max()) | (not halved)
            rows, weights = _merged(
                rows[kept], design.weights[kept], pairs.rows, pairs.squares, spanning
            )
            start = weights, shares
    except KeyboardInterrupt:
        if best is None or not keeps_answer():
            raise
        interrupted = True
    if best is None:
        raise RuntimeError("no round was finished")
    note = f"{best[0].note}, on pairs found by the farthest-pair oracle"
    return replace(best[0], steps=ends.steps, note=note, interrupted=interrupted), best[1]


class Ends:
    """Both ends over all pairs: a round's lower ends hold for all, its upper ends do not."""

    def __init__(self, report: Report | None) -> None:
        self.steps, self.lower, self.gap = 0, 0.0, np.inf
        self.within: Report | None = None if report is None else self._within
        self._report = report

    def _within(self, steps: int, lower: float, _: float) -> None:
        self.lower = max(self.lower, lower)
        if self._report:
            self._report(self.steps + steps, self.lower, self.lower * (1 + self.gap))

    def close(self, steps: int, lower: float, gap: float) -> None:
        self.steps, self.lower, self.gap = self.steps + steps, max(self.lower, lower), gap
        if self._report:
            self._report(self.steps, self.lower, self.lower * (1 + gap))


def _first_pairs(points: Array, basis: Array | None) -> tuple[Rows, Rows]:
    """Pairs to begin with: far apart once the covariance is even, and a few that span all."""
    moved = points - points.mean(axis=0)
    moved = moved if basis is None else moved @ basis
    left, singular, _ = np.linalg.svd(moved, full_matrices=False)
    even = left * np.sqrt(singular)
    far = far_pairs(even, 0.0)
    longest = far.rows[np.argsort(far.squares)[::-1][: max(200, 4 * moved.shape[1])]]
    corners = affine_basis(left)
    spanning: Rows = np.sort(
        np.column_stack([np.full(len(corners) - 1, corners[0]), corners[1:]]), axis=1
    )
    return np.unique(np.vstack([longest, spanning]), axis=0), spanning


def _coordinates(points: Array, factor: Array) -> Array:
    Q, R = np.linalg.qr(factor)
    return solve_triangular(R, Q.T @ points.T).T


def _merged(
    rows: Rows, weights: Array, new: Rows, squares: Array, spanning: Rows
) -> tuple[Rows, Array]:
    """The pairs kept, the longest new ones and those that span, with weights to start from."""
    new = new[np.argsort(squares)[::-1][:_NEW_PAIRS]]
    new = np.vstack([new, spanning])
    both = np.vstack([rows, new])
    mass = np.concatenate(
        [(1 - _SHARE_OF_NEW) * weights, np.full(len(new), _SHARE_OF_NEW / len(new))]
    )
    merged, place = np.unique(both, axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights=mass, minlength=len(merged))
    return merged, total / total.sum()
