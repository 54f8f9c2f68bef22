"""Ellipsoids, given by a covariance-like matrix."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ..checks import center_of, numbers, rounding
from ..domain import SLACK, AbstractDomain
from ..errors import InvalidDomainError
from ..floats import EPS, Array, Map
from ..oracles.image import ConvexImage, LpBlock
from ..oracles.rows import into_ellipsoid, shrunk
from ..records import own_array
from .centered import AbstractCentered


@final
@dataclass(frozen=True, eq=False)
class Ellipsoid(AbstractCentered):
    r"""The ellipsoid ``{x : (x − center)' M⁺ (x − center) <= 1, x − center in range M}``.

    M is a positive semidefinite matrix, like a covariance.

    M may be singular. With M = F F', the ellipsoid is center + F·(unit ball). ``max_quadratic`` is
    exact (a trust-region problem: Moré & Sorensen 1983). The rank of M is the number of eigenvalues
    above ``4 · d · 2.2e-16`` times the largest, after M is scaled to unit diagonal: coordinates may
    differ in size by any factor.

    Args:
        M: symmetric positive semidefinite, shape (d, d), finite.
        center: shape (d,), or one number for all coordinates.

    Attributes:
        factor: F, shape (d, rank).

    Raises:
        InvalidDomainError: wrong shape, NaN or infinity, M not symmetric positive semidefinite.

    >>> K = Ellipsoid([[4.0, 0.0], [0.0, 0.0]], center=[0.0, 1.0])
    >>> K.support([1.0, 0.0]), K.contains([2.0, 1.0]), K.contains([2.0, 1.1])
    (2.0, True, False)
    """

    M: Array
    center: Array
    factor: Array

    def __init__(self, M: "ArrayLike", center: "ArrayLike" = 0.0) -> None:
        array = numbers("Ellipsoid", "M", M)
        if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
            raise InvalidDomainError(
                f"Ellipsoid: expected M of shape (d, d) with d >= 1, got {array.shape}"
            )
        diagonal = np.diag(array)
        if (diagonal < 0).any():
            raise InvalidDomainError(
                "Ellipsoid: expected positive semidefinite M, got a diagonal entry "
                f"{diagonal.min():.3g}; "
                "hint: M is like a covariance; a precision matrix must be inverted first"
            )
        scale = np.sqrt(diagonal)
        inverse = 1 / np.where(scale > 0, scale, 1.0)
        unit = array * inverse * inverse[:, None]
        if (np.abs(array - array.T) * inverse * inverse[:, None] > 1e-10).any():
            raise InvalidDomainError("Ellipsoid: expected symmetric M; hint: pass (M + M.T) / 2")
        values, axes = np.linalg.eigh((unit + unit.T) / 2)
        threshold = 4 * len(array) * EPS * max(values[-1], 0.0)
        if values[0] < -1e-10 * len(array) or array[diagonal == 0].any():
            raise InvalidDomainError(
                f"Ellipsoid: expected positive semidefinite M, got eigenvalue {values[0]:.3g} at "
                "unit diagonal; hint: M = F @ F.T for an image F of the unit ball"
            )
        kept = values > threshold
        object.__setattr__(self, "M", array)
        object.__setattr__(self, "center", center_of("Ellipsoid", center, len(array)))
        object.__setattr__(
            self, "factor", own_array(scale[:, None] * (axes[:, kept] * np.sqrt(values[kept])))
        )

    def _image(self) -> ConvexImage:
        rank = self.factor.shape[1]
        return ConvexImage(self.factor, (LpBlock(rank, 2.0),) if rank else (), self.center[None])

    def _difference(self) -> "Ellipsoid":
        return Ellipsoid(4 * self.M)

    def _moved(self, shift: Array) -> "Ellipsoid":
        return Ellipsoid(self.M, self.center + shift)

    def _apart(self) -> tuple[AbstractDomain, Array]:
        return Ellipsoid(self.M), self.center.copy()

    def _drift(self, shift: Array) -> float:
        return 0.0

    def _near(self, X: Array) -> Array:
        inner = (X - self.center) @ np.linalg.pinv(self.factor).T
        return self.center + shrunk(inner, np.linalg.norm(inner, axis=1)) @ self.factor.T

    def _map_into(self) -> Map:
        return into_ellipsoid(self.center, self.factor, np.sqrt(np.diag(self.M)))

    def _contains(self, x: Array) -> bool:
        """Return whether x is inside, up to ``SLACK`` relative to the ellipsoid's widths."""
        widths = np.sqrt(np.diag(self.M))
        moved, forgiven = x - self.center, rounding(x, self.center)
        flat = widths == 0
        if (np.abs(moved[flat]) > forgiven[flat]).any():
            return False
        inverse = 1 / np.where(flat, 1.0, widths)
        left, sigma, _ = np.linalg.svd(self.factor * inverse[:, None])
        forgiven = SLACK + float(np.linalg.norm(forgiven * ~flat * inverse))
        along = np.maximum(np.abs(left.T @ (moved * ~flat * inverse)) - forgiven, 0.0)
        rank = len(sigma)
        return not along[rank:].any() and bool(np.linalg.norm(along[:rank] / sigma) <= 1)

    def __repr__(self) -> str:
        return f"Ellipsoid(rank {self.factor.shape[1]} in R^{self.dim})"
