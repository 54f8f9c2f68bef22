"""The dual objective of all differences of listed points, without listing them.

Weights on pairs of points are the weights of a graph, and ``Σ λ_ij (x_i − x_j)(x_i − x_j)'`` is
``X' L X``, where L is the graph's Laplacian and X has rows x_i. So an evaluation, or a product with
the Hessian, costs a few products of matrices of the size of X, however many pairs have weight.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from .fidelity import Evaluation, Fidelity

Single = NDArray[np.float32]
Rows = NDArray[np.intp]

# The diagonal, a preconditioner, uses eigenvalues of the kernel above this fraction of the largest.
_SMALLEST_OF_KERNEL = 1e-3


@dataclass(frozen=True, eq=False)
class PairFidelity(Fidelity):
    """The dual objective F of weights λ of all differences of ``points`` (N, d).

    A difference is given by a pair i < j of points, in the order of :attr:`rows`. In evaluations,
    ``coordinates`` belong to points, shape (N, r), and ``lengths`` to differences, shape
    (N(N−1)/2,).
    """

    @property
    def shape(self) -> tuple[int, int]:
        """The number of pairs, and of coordinates."""
        count, dim = self.points.shape
        return count * (count - 1) // 2, dim

    @cached_property
    def rows(self) -> Rows:
        """The pairs i < j of point indices, shape (N(N−1)/2, 2)."""
        return np.column_stack(np.triu_indices(len(self.points), 1))

    @cached_property
    def _inside(self) -> Array:
        """The points' coordinates in their span, shifted to keep most digits of differences."""
        inside = self.points if self.basis is None else self.points @ self.basis
        return inside - (inside.max(axis=0) + inside.min(axis=0)) / 2

    def _squares(self, weights: Array, scaled: Array) -> Array:
        return scaled.T @ (laplacian(weights, self.rows, len(scaled)) @ scaled)

    def _weighted(self, weights: Array, scaled: Array) -> Array:
        return laplacian_factor(weights, self.rows, len(scaled)) @ scaled

    def _lengths(self, coordinates: Array) -> Array:
        # of points that are nearly the same, rounding may make the squared distance negative
        return np.maximum(differences(coordinates @ coordinates.T, self.rows), 0.0)

    def curvature(self, now: Evaluation, x: Array) -> "PairCurvature":
        """Return minus the Hessian of the dual objective at x = (λ, ω), or λ alone if p = 2."""
        count = self.shape[0]
        kernel = now.roots[:, None] * now.roots / (2 * (now.roots[:, None] + now.roots))
        bend = np.zeros(len(x))
        if len(x) > count:
            w = self.coordinate_weights(x[count:])
            bend[count:] = (1 - self.power) * self.power * now.variances * w / 2
        return PairCurvature(
            (now.coordinates / np.sqrt(now.roots)).astype(np.float32),
            (math.sqrt(self.power) * now.axes[: len(x) - count]).astype(np.float32),
            kernel.astype(np.float32),
            x[:count],
            self.rows,
            bend,
        )


@dataclass(frozen=True, eq=False)
class PairCurvature:
    """Minus the Hessian of the dual objective F at x = (λ, ω), known by products with vectors.

    λ are weights of pairs of points, ω shares of coordinates, and changes of x are relative.
    Features and kernel are those of :class:`~gaussnoise.solvers.points.fidelity.Curvature`.

    Attributes:
        points: shape (N, r); a pair's feature is the difference of two rows times ``√λ_ij``.
        axes: shape (k, r), the features of coordinates; k = 0 at p = 2.
        kernel: shape (r, r), the weights of the entries of features.
        weights: shape (m,), λ.
        rows: shape (m, 2), the pairs.
        bend: shape (m + k,), an addition to the diagonal.
    """

    points: Single
    axes: Single
    kernel: Single
    weights: Array
    rows: Rows
    bend: Array

    def diagonal(self) -> Array:
        """Return an approximation of the diagonal, for preconditioning.

        Only the main eigenvectors of the kernel are used.
        """
        values, vectors = np.linalg.eigh(self.kernel)
        kept = values > _SMALLEST_OF_KERNEL * values[-1]
        squares = np.zeros(len(self.weights))
        for value, u in zip(values[kept], vectors.T[kept], strict=True):
            squares += value * np.square(differences((self.points * u) @ self.points.T, self.rows))
        of_axes = np.square(self.axes)
        by_axes = np.einsum("ij,ij->i", of_axes @ self.kernel, of_axes)
        return np.concatenate([np.square(self.weights) * squares, by_axes]) + self.bend

    def __matmul__(self, v: Array) -> Array:
        scale = np.abs(v).max() or 1.0
        of_pairs, of_axes = np.split((v / scale), [len(self.weights)])
        # Σ λ_ij v_ij (x_i − x_j)(x_i − x_j)' = X' L X: two products give the sum over all pairs
        moved = laplacian((self.weights * of_pairs).astype(np.float32), self.rows, len(self.points))
        inner = self.points.T @ (moved @ self.points)
        inner -= (self.axes.T * of_axes.astype(np.float32)) @ self.axes
        inner *= self.kernel
        by_pairs = differences((self.points @ inner) @ self.points.T, self.rows)
        by_axes = np.einsum("ij,ij->i", self.axes @ inner, self.axes)
        return scale * np.concatenate([self.weights * by_pairs, -by_axes]) + self.bend * v


def differences(gram: NDArray[Any], rows: Rows) -> Array:
    """Return ``(x_i − x_j)' K (x_i − x_j)`` for each pair (i, j) of ``rows``.

    ``gram`` has all products ``x_i' K x_j``, shape (N, N).
    """
    squares, (first, second) = gram.diagonal(), rows.T
    return np.asarray(squares[first] + squares[second] - 2 * gram[first, second], dtype=np.float64)


def laplacian(weights: NDArray[Any], rows: Rows, count: int) -> NDArray[Any]:
    """Return the Laplacian L of a weighted graph, shape (count, count).

    ``y' L y = Σ λ_ij (y_i − y_j)²``, where λ are the ``weights`` of the edges (i, j) of ``rows``.
    """
    L = _symmetric(-weights, rows, count)
    np.fill_diagonal(L, -L.sum(axis=1))
    return L


def laplacian_factor(weights: Array, rows: Rows, count: int) -> Array:
    """Return R, shape (count − 1, count), with ``R'R = L`` for a graph's Laplacian L.

    The graph has the edges ``rows`` with positive weights. R is computed by elimination: every
    pivot is a sum of positive weights, nothing is subtracted, so small weights are as precise as
    large ones (Grassmann, Taksar & Heyman 1985). An eigendecomposition of L would lose them.
    """
    W, R = _symmetric(weights, rows, count), np.zeros((count - 1, count))
    for k in range(count - 1):
        row = W[k, k + 1 :].copy()
        pivot = row.sum()
        if pivot > 0:
            R[k, k], R[k, k + 1 :] = math.sqrt(pivot), -row / math.sqrt(pivot)
            W[k + 1 :, k + 1 :] += row[:, None] * (row / pivot)
    return R


def _symmetric(weights: NDArray[Any], rows: Rows, count: int) -> NDArray[Any]:
    """Return the weights of a graph's edges as a symmetric matrix with zero diagonal."""
    W = np.zeros((count, count), dtype=weights.dtype)
    W[rows[:, 0], rows[:, 1]] = weights
    return W + W.T
