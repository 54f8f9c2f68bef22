"""Weights with which sums of given points equal other points, for many points at once."""

import numpy as np

from ..floats import Array, Map

_ALTERNATIONS, _BEYOND, _CLOSE = 20, 1.5, 1e-11


def coefficients(X: Array, rows: Array, onto: Map, solve: Map) -> Array:
    """Return weights Y with ``Y @ rows = X`` up to rounding, which satisfy given constraints.

    ``onto`` projects rows of weights onto those that satisfy the constraints. Alternating
    projections find the weights (von Neumann 1950, "Functional Operators II"; Bregman 1965 for
    convex sets). Rows for which these are too slow are solved by ``solve``.
    """
    inverse = np.linalg.pinv(rows)
    weights = onto(X @ inverse)
    far = np.arange(len(X))
    tolerance = _CLOSE * float(np.abs(rows).sum(axis=0).max(initial=0.0))
    for _ in range(_ALTERNATIONS):
        left = X[far] - weights[far] @ rows
        apart = np.abs(left).max(axis=1, initial=0.0) > tolerance
        far, left = far[apart], left[apart]
        if not len(far):
            return weights
        # step slightly beyond the projection: inner points are then reached in finitely many steps
        weights[far] = onto(weights[far] + _BEYOND * (left @ inverse))
    solved = one_by_one(solve, X[far], len(rows))
    weights[far] = np.where(np.isnan(solved), weights[far], solved)
    return weights


def one_by_one(solve: Map, X: Array, size: int) -> Array:
    """Return ``solve`` of every row of X, as rows of ``size`` numbers; NaN where it fails.

    Equal rows are solved once.
    """

    def attempt(x: Array) -> Array:
        try:
            return solve(x)
        except (RuntimeError, ValueError):  # too many steps, or numbers that are not finite
            return np.full(size, np.nan)

    distinct, places = np.unique(X, axis=0, return_inverse=True)
    return np.array([attempt(x) for x in distinct]).reshape(-1, size)[places.reshape(-1)]
