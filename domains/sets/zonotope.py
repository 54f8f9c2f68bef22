"""Zonotopes: Minkowski sums of segments, linear images of the cube."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ..checks import center_of, numbers, rounding
from ..domain import SLACK, AbstractDomain
from ..errors import InvalidDomainError
from ..floats import Array, Map
from ..oracles.coefficients import coefficients
from ..oracles.image import ConvexImage, LpBlock
from ..oracles.rows import into_box
from .centered import AbstractCentered


@final
@dataclass(frozen=True, eq=False)
class Zonotope(AbstractCentered):
    r"""The zonotope ``{center + Σ_j c_j g_j : |c_j| <= 1}`` of the rows g_j of ``generators``.

    ``max_quadratic`` is exact for up to 22 generators (21 if the query's center is not the
    zonotope's) and in the plane. By branch and bound, it is exact in most cases for up to 40
    generators in any dimension, for hundreds in up to 6 dimensions, and for 60 in R⁸, and has
    narrower bounds for up to about 1280 / dim generators. Inequalities between three signs narrow
    the bounds of up to 350 generators, most of all in 8 to 15 dimensions. With more generators, the
    bounds differ by at most a factor π/2 (Nesterov 1998), often much less.

    Args:
        generators: shape (m, d), d >= 1, finite; zero and repeated rows are allowed. If m = 0, the
            center is the only member.
        center: shape (d,), or one number for all coordinates.

    Raises:
        InvalidDomainError: wrong shape, NaN or infinity.

    >>> K = Zonotope([[1.0, 0.0], [1.0, 1.0]], center=[5.0, 0.0])
    >>> K.support([1.0, 0.0]), K.contains([7.0, 1.0]), K.contains([3.0, 1.0])
    (7.0, True, False)
    >>> Zonotope([[1.0, 0.0], [1.0, 1.0]]).max_quadratic(np.eye(2)).upper_bound
    5.0
    """

    generators: Array
    center: Array

    def __init__(self, generators: "ArrayLike", center: "ArrayLike" = 0.0) -> None:
        array = numbers("Zonotope", "generators", generators)
        if array.ndim != 2 or array.shape[1] == 0:
            raise InvalidDomainError(
                f"Zonotope: expected generators of shape (m, d) with d >= 1, got {array.shape}; "
                "hint: one generator per row"
            )
        object.__setattr__(self, "generators", array)
        object.__setattr__(self, "center", center_of("Zonotope", center, array.shape[1]))

    def _image(self) -> ConvexImage:
        m = len(self.generators)
        return ConvexImage(
            self.generators.T, (LpBlock(m, math.inf),) if m else (), self.center[None]
        )

    def _difference(self) -> "Zonotope":
        return Zonotope(2 * self.generators)

    def _mapped(self, A: Array) -> "Zonotope":
        return Zonotope(self.generators @ A.T, A @ self.center)

    def _scaled(self, factor: float) -> "Zonotope":
        return Zonotope(factor * self.generators, factor * self.center)

    def _moved(self, shift: Array) -> "Zonotope":
        return Zonotope(self.generators, self.center + shift)

    def _apart(self) -> tuple[AbstractDomain, Array]:
        return Zonotope(self.generators), self.center.copy()

    def _drift(self, shift: Array) -> float:
        return 0.0

    def _near(self, X: Array) -> Array:
        return self.center + _box_coordinates(self.generators, X - self.center) @ self.generators

    def _map_into(self) -> Map | None:
        is_box = (np.count_nonzero(self.generators, axis=1) <= 1).all()
        return into_box(self.center, np.abs(self.generators).sum(axis=0)) if is_box else None

    def _magnitudes(self) -> Array:
        return np.abs(self.center) + np.abs(self.generators).sum(axis=0)

    def _numbers(self) -> int:
        return max(self.dim, len(self.generators))

    def _contains(self, x: Array) -> bool:
        """Return whether x − center is a combination of generators with weights in [−1, 1]."""
        widths = np.abs(self.generators).sum(axis=0)
        moved, slack = x - self.center, rounding(x, self.center) + SLACK * widths
        if (np.abs(moved) > widths + slack).any():
            return False
        used = widths > 0
        if not used.any():
            return True
        # Use the principal axes of the generators, with coordinates in units of the widths. In
        # flat directions, x may differ from the center by no more than the slack.
        left, sigma, right = np.linalg.svd(
            self.generators[:, used].T / widths[used, None], full_matrices=False
        )
        target = left.T @ (moved[used] / widths[used])
        slack = float(np.linalg.norm(slack[used] / widths[used]))
        if np.linalg.norm(moved[used] / widths[used] - left @ target) > slack:
            return False
        flat = sigma <= slack
        if (np.abs(target[flat]) > slack).any():
            return False
        rows, target, slacks = right[~flat], target[~flat] / sigma[~flat], slack / sigma[~flat]
        # maximise s so that Σ c_j g_j = s (x − center) with all c_j in [−1, 1]
        solution = scipy.optimize.linprog(
            np.append(np.zeros(rows.shape[1]), -1.0),
            A_ub=np.block([[rows, -target[:, None]], [-rows, target[:, None]]]),
            b_ub=np.concatenate([slacks, slacks]),
            bounds=[(-1, 1)] * rows.shape[1] + [(0, 2)],
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        return solution.status == 0 and bool(solution.x[-1] >= 1 - SLACK)

    def __repr__(self) -> str:
        return f"Zonotope({len(self.generators)} generators in R^{self.dim})"


def _box_coordinates(generators: Array, X: Array) -> Array:
    """Return coefficients c in [−1, 1] for each row of X, such that c @ generators is near it."""
    m, size = len(generators), float(np.abs(generators).max(initial=0.0))
    # c = t − u with t + u = 1 and t, u >= 0
    system = np.block([[generators.T, -generators.T], [size * np.eye(m), size * np.eye(m)]])

    def into(c: Array) -> Array:
        return np.clip(c, -1.0, 1.0)

    def solve(x: Array) -> Array:
        solution = scipy.optimize.nnls(system, np.append(x, np.full(m, size)))[0]
        return into(solution[:m] - solution[m:])

    return coefficients(X, generators, into, solve)
