"""The dual objective ``F(w, λ) = tr((W^½ C W^½)^½)`` of finitely many points x_i.

C is the second moment, or the covariance, of the points x_i with weights λ_i, and W = diag(w) holds
weights of coordinates. The ellipsoid of w and λ is ``N = W^-½ (W^½ C W^½)^½ W^-½``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import EPS, Array

from ...numerics.norms import dual_power, error_of

Single = NDArray[np.float32]

# The eigenvalues of a Gram matrix lose all singular values below √(machine precision). On
# heavy-tailed points this stopped iterations at gaps of 1e-4, so if the eigenvalues' ratio is below
# this number, singular values are computed instead.
_SQUARED_RANGE = 1e-11
_STRIP = 128  # number of columns computed together: narrower strips slow products down


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The dual objective F and its derivatives at weights λ of points x_i and coordinate shares ω.

    N is the covariance of these weights, W = diag(w) has the coordinate weights ``w = ω^{1−2/p}``,
    m is the mean of the points (0 unless centered), and C the second moment about it.

    Attributes:
        value: F, a lower bound on the least error γ.
        gap: upper/lower − 1, the upper bound being the error of N scaled to cover every point.
        lengths: shape (N,), ``z_i = (x_i − m)' N⁺ (x_i − m)``; ``∂F/∂λ_i = z_i/2``.
        variances: shape (d,), ``u = diag N``; ``∂F/∂w_j = u_j/2``.
        roots: shape (r,), the singular values that F sums.
        axes: shape (d, r), orthonormal columns U with ``W^{1/2} N W^{1/2} = U diag(roots) U'``.
        coordinates: shape (N, r), b_i with ``x_i − m = L b_i``, ``L L' = N``.
        inner: shape (r, r), the axes in coordinates of ``frame``, orthonormal columns.
        triangle: shape (r, r), ``W^{1/2} basis = frame @ triangle``; None if no QR was needed.
    """

    value: float
    gap: float
    lengths: Array
    variances: Array
    roots: Array
    axes: Array
    coordinates: Array
    inner: Array
    triangle: Array | None


class Hessian(Protocol):
    """Minus the Hessian of the dual objective F, known by its products with vectors.

    F is a function of x = (λ, ω), weights of points and shares of coordinates; changes of x are
    relative.
    """

    def diagonal(self) -> Array: ...
    def __matmul__(self, v: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class Fidelity:
    """The dual objective F of weights λ of points and shares ω of coordinates, each of sum one.

    The weights of coordinates are ``w = ω^{1/s*}``, 1/s* = 1 − 2/p. F is jointly concave in (λ, ω),
    since it is jointly concave in (λ, w) (Nikolov & Tang 2023, Theorem 26) and increasing in w, and
    w is concave in ω.

    Attributes:
        points: shape (N, d).
        p: error norm.
        centered: whether C is the covariance (γ_p(K)) or the second moment (γ°_p).
        basis: shape (d, r), orthonormal columns spanning the points (about their mean); None when r
            = d.
    """

    points: Array
    p: float
    centered: bool
    basis: Array | None

    @property
    def shape(self) -> tuple[int, int]:
        """The number of points, and of coordinates."""
        count, dim = self.points.shape
        return count, dim

    @property
    def power(self) -> float:
        """The power a = 1 − 2/p that maps shares ω of coordinates to weights ``w = ω^a``."""
        return dual_power(self.p)

    @property
    def rank(self) -> int:
        return self.points.shape[1] if self.basis is None else self.basis.shape[1]

    @cached_property
    def _inside(self) -> Array:
        return self.points if self.basis is None else self.points @ self.basis

    def coordinate_weights(self, shares: Array) -> Array:
        """Return the weights w of coordinates from their shares ω, both of shape (d,)."""
        return shares**self.power

    def shares(self, coordinate_weights: Array) -> Array:
        """Return the shares ω from the weights w, (d,); uniform at p = 2, where w is all ones."""
        if self.p == 2:
            return np.full(len(coordinate_weights), 1 / len(coordinate_weights))
        shares = coordinate_weights ** (1 / self.power)
        return shares / shares.sum()

    def at(self, weights: Array, shares: Array) -> Evaluation:
        """Return the dual objective and its derivatives at ``weights`` of points and ``shares``.

        This takes two products and an eigendecomposition of size r, or an SVD.
        """
        moved = self._inside - weights @ self._inside if self.centered else self._inside
        w = self.coordinate_weights(shares)
        triangle = None
        if self.p == 2:
            frame, scaled = self.basis, moved
        elif self.basis is None:
            frame, scaled = None, moved * np.sqrt(w)
        else:
            # by QR: in an orthonormal basis of the scaled span, singular values do not change
            frame, triangle = np.linalg.qr(np.sqrt(w)[:, None] * self.basis)
            scaled = moved @ triangle.T
        roots, inner = self._roots(weights, scaled)
        value = float(roots.sum())
        # N = W^-½ U diag(roots) U' W^-½: x' N⁺ x of a point x is the squared length of these
        # coordinates
        coordinates = scaled @ (inner / np.sqrt(roots))
        lengths = self._lengths(coordinates)
        axes = inner if frame is None else frame @ inner
        variances = np.square(axes) @ roots / w
        gap = self.gap(lengths, variances, value)
        return Evaluation(value, gap, lengths, variances, roots, axes, coordinates, inner, triangle)

    def _roots(self, weights: Array, scaled: Array) -> tuple[Array, Array]:
        """Return square roots of the eigenvalues of the weighted second moment, and its axes."""
        squares, axes = np.linalg.eigh(self._squares(weights, scaled))
        if squares[0] > _SQUARED_RANGE * squares[-1]:
            return np.sqrt(squares), axes
        _, roots, axes = np.linalg.svd(np.linalg.qr(self._weighted(weights, scaled), mode="r"))
        return np.maximum(roots, roots[0] * EPS), axes.T

    def _squares(self, weights: Array, scaled: Array) -> Array:
        """Return the weighted second moment of the rows of ``scaled``."""
        # numpy's product: threads of scipy's BLAS would compete with those of numpy's
        weighted = self._weighted(weights, scaled)
        return weighted.T @ weighted

    def _weighted(self, weights: Array, scaled: Array) -> Array:
        """Return a matrix Y, one row per point, with Y'Y the second moment of ``scaled``."""
        return np.sqrt(weights)[:, None] * scaled

    def _lengths(self, coordinates: Array) -> Array:
        return np.einsum("ij,ij->i", coordinates, coordinates)

    def gap(self, lengths: Array, variances: Array, value: float) -> float:
        """Return upper/lower − 1 for the covariance with these squared lengths and variances.

        The upper bound is the error of the covariance, scaled to cover all points; ``value`` is the
        lower bound.
        """
        return max(error_of(variances, self.p, float(lengths.max())) / value - 1, 0.0)

    def curvature(self, now: Evaluation, x: Array) -> Hessian:
        """Return minus the Hessian of the dual objective at x = (λ, ω), or at λ alone if p = 2."""
        return Curvature.at(self, now, x, len(self.points))

    def factor(self, at: Evaluation, shares: Array) -> Array:
        """Return a factor, shape (d, r), of the covariance that belongs to weights and shares.

        Its columns lie in the span of the points to full precision.
        """
        if self.basis is None:
            return at.inner * np.sqrt(at.roots) / np.sqrt(self.coordinate_weights(shares))[:, None]
        inner = at.inner
        if at.triangle is not None:
            inner = scipy.linalg.solve_triangular(at.triangle, inner)
        return self.basis @ (inner * np.sqrt(at.roots))


@dataclass(frozen=True, eq=False)
class Curvature:
    """Minus the Hessian of the dual objective F at x = (λ, ω), an (n, n) matrix never formed.

    λ are weights of points x_i, ω shares of coordinates, and changes of x are relative. Products
    with vectors take most of the time, and Newton steps need only three digits. So these products
    are in single precision. The matrix is a Gram matrix of features, with weights on its entries,
    plus a diagonal.

    Attributes:
        rows: shape (n, r): features c_i of points (λ_i changes C by λ_i x_i x_i'), then U_j of
            coordinates (a relative change of ω_j changes w_j by 1/s* times as much).
        signs: shape (n,), +1 for points, −1 for coordinates.
        kernel: shape (r, r), the weights of the entries.
        pulls: shape (n, r), the change of the mean by each point; None if not centered.
        bend: shape (n,), the part of the diagonal from the curvature of ``w = ω^{1/s*}``.
    """

    # F is the minimum over M of ½ (tr WM + tr C M⁻¹), where W has the weights of coordinates, and C
    # is the second moment of the points. At the minimum, M = N, and the Hessian is diagonal in the
    # axes of N. Eliminating M leaves a Gram matrix of features c_i c_i' (points) and −U_j U_j'
    # (coordinates), with the weight s_a s_b/(2(s_a + s_b)) on entry (a, b), where s are the roots
    # of the Evaluation.

    rows: Single
    signs: Array
    kernel: Single
    pulls: Array | None
    bend: Array

    @classmethod
    def at(cls, fidelity: Fidelity, now: Evaluation, x: Array, count: int) -> "Curvature":
        rows = np.empty((len(x), len(now.roots)), dtype=np.float32)
        np.multiply(
            now.coordinates, np.sqrt(x[:count, None]), out=rows[:count], casting="same_kind"
        )
        rows[:count] /= np.sqrt(now.roots).astype(np.float32)
        rows[count:] = math.sqrt(fidelity.power) * now.axes[: len(x) - count]
        signs = np.where(np.arange(len(x)) < count, 1.0, -1.0)
        kernel = now.roots[:, None] * now.roots / (2 * (now.roots[:, None] + now.roots))
        pulls = None
        if fidelity.centered:
            pulls = np.zeros(rows.shape)
            pulls[:count] = x[:count, None] * now.coordinates
        bend = np.zeros(len(x))
        if len(x) > count:
            w = fidelity.coordinate_weights(x[count:])
            bend[count:] = (1 - fidelity.power) * fidelity.power * now.variances * w / 2
        return cls(rows, signs, kernel.astype(np.float32), pulls, bend)

    def diagonal(self) -> Array:
        squares = np.square(self.rows)
        pulls = 0.0 if self.pulls is None else np.square(self.pulls).sum(axis=1)
        return (
            _quadratic_forms(squares, lambda part: self.kernel[part.start :, part])
            + pulls
            + self.bend
        )

    def __matmul__(self, v: Array) -> Array:
        scale = np.abs(v).max() or 1.0
        weighted = self.rows.T * (self.signs * v / scale).astype(np.float32)

        def inner(part: slice) -> NDArray[Any]:
            strip = weighted[part.start :] @ self.rows[:, part]
            strip *= self.kernel[part.start :, part]
            return strip

        result = scale * self.signs * _quadratic_forms(self.rows, inner) + self.bend * v
        return result if self.pulls is None else result + self.pulls @ (self.pulls.T @ v)


def _quadratic_forms(rows: Single, inner: Callable[[slice], NDArray[Any]]) -> Single:
    """Return ``x' S x`` for every row x; ``inner`` returns columns of S from the diagonal on."""
    values = np.zeros(len(rows), dtype=np.float32)
    for start in range(0, rows.shape[1], _STRIP):
        part = slice(start, start + _STRIP)
        strip = np.array(inner(part))
        strip[_STRIP:] *= 2  # entries below the diagonal block count twice, as S is symmetric
        values += np.einsum("ij,ij->i", rows[:, start:] @ strip, rows[:, part])
    return values


def affine_basis(points: Array) -> NDArray[np.intp]:
    """Return indices of r + 1 rows of ``points``, (N, r), with the affine hull of all rows."""
    # affinely independent points are linearly independent with one more coordinate of 1
    lifted = np.column_stack([points / np.abs(points).max(), np.ones(len(points))])
    _, order = scipy.linalg.qr(lifted.T, mode="r", pivoting=True)
    return np.asarray(order, dtype=np.intp)[: lifted.shape[1]]
