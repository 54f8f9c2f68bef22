"""The dual objective of points, with one common weight for all queries of a table."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array

from ..points.fidelity import Evaluation, Fidelity, Hessian


@dataclass(frozen=True, eq=False)
class SharedFidelity:
    """F of weights λ on points, shares v on tables: ``w_j = (v_S / q_S)^{1/s*}`` for queries of S.

    Here 1/s* = 1 − 2/p. The largest ``Σ w_j Σ_jj`` over such w is the square of the p-norm in which
    every query counts with the root mean square of its table's standard deviations. F is jointly
    concave, like :class:`Fidelity`.

    Attributes:
        inner: the objective of the coordinates.
        tables: shape (d,), the index of each coordinate's table, 0..k − 1.
        queries: shape (k,), q: number of queries of each table, also of those that no record
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
        """Return the weights ``v^{1/s*}`` of tables from their shares v, shape (k,)."""
        return shares**self.power

    def per_coordinate(self, shares: Array) -> Array:
        """Return shares of the coordinates, shape (d,)."""
        return (shares / self.queries)[self.tables]

    def at(self, weights: Array, shares: Array) -> Evaluation:
        """Evaluate F as ``inner`` does; only ``variances``, shape (k,), and ``gap`` differ."""
        now = self.inner.at(weights, self.per_coordinate(shares))
        # with these variances, Σ_j w_j u_j over a table S is v_S^{1/s*} times the entry of S
        variances = np.bincount(self.tables, now.variances) * self.queries**-self.power
        return replace(
            now, variances=variances, gap=self.inner.gap(now.lengths, variances, now.value)
        )

    def curvature(self, now: Evaluation, x: Array) -> "SharedCurvature":
        """Return second derivatives at x = (λ, v)."""
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
    """Minus the Hessian in weights of points and shares of tables.

    Attributes:
        inner: minus the Hessian in weights of points and shares of coordinates.
        places: for each point and coordinate, the index of the variable on which it depends.
        size: the number of variables: points and tables.
    """

    inner: Hessian
    places: NDArray[np.intp]
    size: int

    def diagonal(self) -> Array:
        """Return a preconditioner: the diagonal without mixed terms of one table's coordinates."""
        return np.bincount(self.places, self.inner.diagonal(), self.size).astype(np.float64)

    def __matmul__(self, v: Array) -> Array:
        return np.bincount(self.places, self.inner @ v[self.places], self.size).astype(np.float64)
