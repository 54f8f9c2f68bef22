"""The result that every solver and closed form returns: an optimal covariance and its proof."""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from ..numerics.norms import dual_ball_norm
from ..numerics.span import placed

Protected = Literal["gamma", "add-remove", "replace"]  # K up to a shift, K ∪ −K, K − K

# Far more than the 8 to 30 steps observed for a gap of 1e-6.
MAX_STEPS = 1000


@dataclass(frozen=True, eq=False)
class Design:
    """A solver's optimal ellipsoid and dual weights, not yet scaled to cover the points.

    Attributes:
        weights: shape (N,), the dual weights λ of the points, a probability measure.
        coordinate_weights: shape (d,), the dual weights w >= 0 of the coordinates, with ``‖w‖_{s*}
            <= 1``, where 1/s* = 1 − 2/p; ones at p = 2.
        factor: shape (d, r), of full column rank: L of the covariance L L' that defines the
            ellipsoid.
        center: shape (d,), the ellipsoid's center; zeros if it may not be shifted.
        gap: upper/lower − 1 as the solver computed it.
        steps: iterations spent.
        note: one phrase that names the method, and the reason for it.
        interrupted: whether Ctrl-C ended the solve.
        inexact: whether the remaining gap comes from an oracle whose upper bound is not exact.
    """

    weights: Array
    coordinate_weights: Array
    factor: Array
    center: Array
    gap: float
    steps: int
    note: str
    interrupted: bool = False
    inexact: bool = False

    @classmethod
    def closed(
        cls, weights: Array, w: Array, factor: Array, note: str, center: Array | None = None
    ) -> Self:
        """Return a design from a closed form, without gap or steps; by default, its center is 0."""
        center = np.zeros(len(factor)) if center is None else center
        return cls(weights, w, factor, center, 0.0, 0, note)

    def on_all(self, live: NDArray[np.bool_], p: float) -> Self:
        """Return this design of the coordinates ``live`` as a design of all coordinates.

        The factor and center are zero on the other coordinates.
        """
        w = np.ones(len(live))
        if p > 2:  # only weights inside the dual ball prove a lower bound
            w = placed(self.coordinate_weights / dual_ball_norm(self.coordinate_weights, p), live)
        return replace(
            self,
            coordinate_weights=w,
            center=placed(self.center, live),
            factor=placed(self.factor, live),
        )
