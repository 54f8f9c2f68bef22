"""Sign-invariant bodies given by squared coordinates: boxes, ellipsoids, group norms."""

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from ..checks import check_dense, numbers
from ..domain import SLACK, AbstractDomain, QuadraticMax
from ..errors import InvalidDomainError
from ..floats import Array, Map
from ..oracles.coefficients import one_by_one
from ..oracles.image import ConvexImage, SquaresBlock
from ..oracles.rows import into_box


@final
@dataclass(frozen=True, eq=False)
class TwoConvex(AbstractDomain):
    r"""The points with squares (x_1², …, x_d²) below a point of the convex hull of ``squares``.

    "Below" means at most as large in every coordinate.

    Every sign-invariant 2-convex body with a polyhedral set of squares has this form. One row
    gives a box of half widths √row. A diagonal matrix gives an ellipsoid with its diagonal as
    squared half axes. The rows (1, 1, 0, 0), (0, 0, 1, 1) give the unit ball of
    ``√(max(x_1², x_2²) + max(x_3², x_4²))``.

    ``max_quadratic`` is exact for diagonal H about the origin; otherwise its bounds differ by at
    most a factor π/2 (Nesterov 1998), often much less.

    Args:
        squares: shape (k, d), k, d >= 1, nonnegative and finite; the points that span the hull.

    Raises:
        InvalidDomainError: wrong shape, negative, NaN or infinite.

    >>> K = TwoConvex([[4.0, 0.0], [0.0, 9.0]])
    >>> K.contains([0.0, 3.0]), K.contains([2.0, 3.0])
    (True, False)
    >>> K.max_quadratic(np.eye(2)).upper_bound
    9.0
    """

    squares: Array

    def __init__(self, squares: "ArrayLike") -> None:
        array = numbers("TwoConvex", "squares", squares)
        if array.ndim != 2 or 0 in array.shape:
            raise InvalidDomainError(
                f"TwoConvex: expected squares of shape (k, d) with k, d >= 1, got {array.shape}"
            )
        if (array < 0).any():
            raise InvalidDomainError(
                f"TwoConvex: expected nonnegative squares, got {array.min():.3g}"
            )
        object.__setattr__(self, "squares", array)

    @property
    def dim(self) -> int:
        return self.squares.shape[1]

    @property
    def is_symmetric(self) -> bool:
        return True

    def _image(self) -> ConvexImage:
        check_dense("TwoConvex", self.dim, self.dim, "fewer coordinates")
        return ConvexImage(np.eye(self.dim), (SquaresBlock(self.squares),), np.zeros((1, self.dim)))

    def _near(self, X: Array) -> Array:
        return _below_squares(self.squares, X)

    def _map_into(self) -> Map | None:
        return (
            into_box(np.zeros(self.dim), np.sqrt(self.squares[0]))
            if len(self.squares) == 1
            else None
        )

    def _magnitudes(self) -> Array:
        return np.sqrt(self.squares.max(axis=0))

    def _numbers(self) -> int:
        return max(self.dim, len(self.squares))

    def _support_point(self, theta: Array) -> Array:
        return SquaresBlock(self.squares).support_point(theta)

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        return self._image().max_quadratic(form, center)

    def _contains(self, x: Array) -> bool:
        """Return whether a convex combination of ``squares`` is at least x², up to ``SLACK``."""
        widths = np.sqrt(self.squares.max(axis=0))
        if x[widths == 0].any():
            return False
        inverse = 1 / np.where(widths > 0, widths, 1.0)
        sizes = np.maximum(np.abs(x) * inverse - SLACK, 0.0)
        if (sizes > 1).any():
            return False
        used = sizes > 0
        k = len(self.squares)
        if k == 1 or not used.any():
            return True
        # x_i² is raised to at least this: smaller ones change the answer by less than the slack
        wanted = np.maximum(sizes[used], 3e-6 / np.sqrt(k)) ** 2
        gains = (self.squares * inverse**2)[:, used] / wanted
        # maximise s so that Σ_k w_k r_k >= s x², for rows r_k of squares and weights w of sum one
        solution = scipy.optimize.linprog(
            np.append(np.zeros(k), -1.0),
            A_ub=np.column_stack([-gains.T, np.ones(gains.shape[1])]),
            b_ub=np.zeros(gains.shape[1]),
            A_eq=np.append(np.ones(k), 0.0)[None],
            b_eq=[1.0],
            bounds=(0, None),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        weights = np.maximum(solution.x[:k], 0.0)
        if (weights / weights.sum() @ gains).min() >= 1 - 1e-10:
            return True
        # near the boundary, the tolerance of the linear programme may be coarser than ``SLACK``
        return -solution.fun > 1 - 1e-6 and super()._contains(x)

    def __repr__(self) -> str:
        return f"TwoConvex(hull of {len(self.squares)} rows of squares in R^{self.dim})"


def _below_squares(squares: Array, X: Array) -> Array:
    """Return each row of X clipped to a box that is inside the body and chosen for this row."""
    k, d = squares.shape
    widths = np.sqrt(squares.max(axis=0))
    used = widths > 0
    rows = squares[:, used] / widths[used] ** 2
    # find a mixture of rows that is at least x² in every coordinate, with weights of sum one
    system = np.block([[rows.T, -np.eye(used.sum())], [np.ones((1, k)), np.zeros((1, used.sum()))]])

    def reach(x: Array) -> Array:
        weights = scipy.optimize.nnls(system, np.append((x[used] / widths[used]) ** 2, 1.0))[0][:k]
        return np.sqrt(weights / weights.sum() @ squares)

    if k == 1:
        return np.clip(X, -widths, widths)
    reaches = one_by_one(reach, np.clip(X, -widths, widths), d)
    return np.clip(X, -reaches, reaches)
