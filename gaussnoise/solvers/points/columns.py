"""Column generation: solve for some members, search for members not covered, add them, repeat."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from ...numerics.norms import error_of_factor
from ..design import Design
from ..progress import keeps_answer
from .candidates import Candidates
from .fidelity import Fidelity
from .interior import optimal_design

Rows = NDArray[np.intp]
Report = Callable[[int, float, float], None]

_ROUNDS = 100
_FIRST_TOL = 1e-2
# New members get this share of the measure's mass: enough to count, and the others keep most of it.
_SHARE_OF_NEW = 0.1
_NEGLIGIBLE_WEIGHT = 1e-6


def generated_design(
    candidates: Candidates,
    p: float,
    basis: Array | None,
    *,
    centered: bool,
    tol: float,
    max_steps: int,
    report: Report | None,
) -> tuple[Design, Rows]:
    """Return the optimal design for all candidates, and the rows of those with dual weights.

    Candidates are listed points or their differences, which span ``basis``. Every round gives two
    bounds. Weights on some candidates are a measure on all candidates, and this measure proves a
    lower bound. The longest candidate determines how much the ellipsoid must be enlarged, and this
    gives an upper bound. The longer this candidate is, the less precisely the next round is solved.
    """
    rows, spanning = candidates.first()
    start: tuple[Array, Array] | None = None
    best: tuple[Design, Rows] | None = None
    ends, least = Ends(report), np.inf
    inner_tol, interrupted = _FIRST_TOL, False
    try:
        for _ in range(_ROUNDS):
            fidelity = Fidelity(candidates.members(rows), p, centered, basis)
            left = max_steps - ends.steps
            design = optimal_design(
                fidelity, tol=inner_tol, max_steps=left, start=start, report=ends.within
            )
            interrupted = design.interrupted
            shares = fidelity.shares(design.coordinate_weights)
            value = fidelity.at(design.weights, shares).value
            known = None if best is None else rows
            far = candidates.far(design.factor, design.center, value * (1 + tol / 2), known)
            # the factor times the root of ``far.largest`` covers all candidates
            error = error_of_factor(design.factor, p)
            gap = max(float(np.sqrt(far.largest) * error / value - 1), 0.0)
            halved, least = gap < least / 2, min(gap, least)
            if best is None or (far.of_all and gap < best[0].gap):
                best = replace(design, gap=gap), rows
            ends.close(design.steps, value, best[0].gap)
            if best[0].gap <= tol or interrupted or ends.steps >= max_steps:
                break
            missing = float(np.sqrt(far.largest / value)) - 1
            inner_tol = max(tol / 4, min(inner_tol / 2, missing / 4))
            # drop members only in rounds with progress: otherwise the same members would be dropped
            # and added again and again
            kept = (design.weights > _NEGLIGIBLE_WEIGHT * design.weights.max()) | (not halved)
            rows, weights = _merged(rows[kept], design.weights[kept], far.rows, spanning)
            start = weights, shares
    except KeyboardInterrupt:
        if best is None or not keeps_answer():
            raise
        interrupted = True
    if best is None:
        raise RuntimeError("no round was finished")
    note = f"{best[0].note}, on {candidates.note}"
    return replace(best[0], steps=ends.steps, note=note, interrupted=interrupted), best[1]


class Ends:
    """The lower bound and the gap for all candidates, while a solver works on some of them.

    The solver calls ``within`` after each step; ``within`` reports the bounds for all candidates.
    """

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


def _merged(rows: Rows, weights: Array, new: Rows, spanning: Rows) -> tuple[Rows, Array]:
    """Return the kept, new and spanning rows, and the first weights for the next solve."""
    new = np.vstack([new, spanning])
    both = np.vstack([rows, new])
    mass = np.concatenate(
        [(1 - _SHARE_OF_NEW) * weights, np.full(len(new), _SHARE_OF_NEW / len(new))]
    )
    merged, place = np.unique(both, axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights=mass, minlength=len(merged))
    return merged, total / total.sum()
