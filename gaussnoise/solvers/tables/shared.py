"""The dual objective for listed points, if all queries of a table have one common weight."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from ..points.fidelity import Evaluation, Fidelity, Hessian


@dataclass(frozen=True, eq=False)
class SharedFidelity:
    """The dual objective F if all queries of a table have one common weight.

    λ are weights on points, v are shares of the tables, and a query j of table S has the weight
    ``w_j = (v_S / q_S)^{1/s*}``, where q_S is the number of queries of S and 1/s* = 1 − 2/p. In the
    p-norm of the error, every query then counts with the root mean square of its table's standard
    deviations: the square of this norm is the largest ``Σ_j w_j V_jj`` over such w, for the
    covariance V. F is jointly concave, like :class:`Fidelity`.

    Attributes:
        inner: the objective with one weight for every coordinate (query).
        tables: shape (d,), the index of each coordinate's table, 0..k − 1.
        queries: shape (k,), q: number of queries of each table. It includes queries that no record
            changes, which are not coordinates.
    """

    inner: Fidelity
    tables: NDArray[np.intp]
    queries: Array

    @property
    def shape(self) -> tuple[int, int]:
        """The number of points, and of tables."""
        return len(self.inner.points), len(self.queries)

    @property
    def p(self) -> float:
        return self.inner.p

    @property
    def power(self) -> float:
        return self.inner.power

    def coordinate_weights(self, shares: Array) -> Array:
        """Return the weights ``v^{1−2/p}`` of tables from their shares v, shape (k,)."""
        return shares**self.power

    def per_coordinate(self, shares: Array) -> Array:
        """Return the share ``v_S / q_S`` of every coordinate, a query of table S, shape (d,)."""
        return (shares / self.queries)[self.tables]

    def at(self, weights: Array, shares: Array) -> Evaluation:
        """Return the dual objective and its derivatives at weights of points, shares of tables.

        All fields are those of ``inner``, except ``variances``, shape (k,), and ``gap``.
        """
        now = self.inner.at(weights, self.per_coordinate(shares))
        # with these variances, Σ_j w_j u_j over a table S is v_S^{1/s*} times the entry of S
        variances = np.bincount(self.tables, now.variances) * self.queries**-self.power
        return replace(
            now, variances=variances, gap=self.inner.gap(now.lengths, variances, now.value)
        )

    def curvature(self, now: Evaluation, x: Array) -> "SharedCurvature":
        """Return minus the Hessian of the dual objective at x = (λ, v), in relative changes.

        λ are weights of points, and v shares of tables.
        """
        count = len(self.inner.points)
        shares = self.per_coordinate(x[count:])
        w = self.inner.coordinate_weights(shares)
        own = replace(now, variances=np.square(now.axes) @ now.roots / w)
        inner = self.inner.curvature(own, np.concatenate([x[:count], shares]))
        return SharedCurvature(
            inner, np.concatenate([np.arange(count), count + self.tables]), len(x)
        )


@dataclass(frozen=True, eq=False)
class SharedCurvature:
    """Minus the Hessian of the dual objective by weights of points and shares of tables.

    This matrix is known by its products with vectors.

    Attributes:
        inner: minus the Hessian in weights of points and shares of coordinates.
        places: for each point and coordinate, the index of the variable on which it depends.
        size: the number of variables: points and tables.
    """

    inner: Hessian
    places: NDArray[np.intp]
    size: int

    def diagonal(self) -> Array:
        """Return an approximation of the diagonal, for preconditioning.

        Mixed terms of two coordinates of one table are left out.
        """
        return np.bincount(self.places, self.inner.diagonal(), self.size).astype(np.float64)

    def __matmul__(self, v: Array) -> Array:
        return np.bincount(self.places, self.inner @ v[self.places], self.size).astype(np.float64)
