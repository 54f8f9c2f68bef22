"""The best strategy of an attribute that is alone in its tables, if records are replaced.

The total is known then, and only the differences of columns of the measured matrix count. So the
problem is that of the differences of listed points. It is solved on all pairs at once.
"""

import numpy as np

from domains.floats import Array
from domains.tables.bases import AbstractBase

from ...numerics.span import span
from ..design import MAX_STEPS
from ..points.interior import Maximum, maximum
from ..points.pairs import PairFidelity

_TOLERANCE = 2e-3  # gap of the solution: half of it takes two more steps, each as long as the rest
# With more categories than this, where neighbours have like answers, the solution begins with that
# of every second category: 512 prefixes take 5 steps in place of 11. Neighbours are alike if their
# mean squared distance is below this fraction of the mean of all.
_FEW, _LIKE = 128, 1 / 4
# The share of the first weights that is spread over all pairs: none may be zero.
_FRESH_SHARE = 0.02
_SINGULAR = 1e-10
_EXACT = (
    2.0**40
)  # entries below it have a fraction, if numbers have one: none passes for an integer
_ALIKE = 1e-12  # categories whose answers differ by less, relative to the largest, are one point
# Columns are on a sphere. If answers differ in few directions, it is large, and contrasts then lose
# digits; this is its largest squared radius, as a multiple of the longest squared difference.
_LARGEST_SPHERE = 64.0


def differences(base: AbstractBase) -> Array:
    """Return the Gram matrix of the queries minus their values at the first category."""
    gram = base.gram()
    if (gram == np.rint(gram)).all() and np.abs(gram).max() < _EXACT:
        return _centered(gram)  # integers stay exact
    # digits that a large common value takes from W'W would pass for directions that W has not
    W = base.toarray()
    W = W - W[:, :1]
    return W.T @ W


def _centered(gram: Array) -> Array:
    """Return the Gram matrix of the columns minus the first column, from that of the columns."""
    return gram - gram[:1] - gram[:, :1] + gram[0, 0]


def best_differences(gram: Array) -> tuple[Array, Array]:
    """Return the Gram matrix X of the columns with the best differences, and weights of pairs.

    ``gram``, shape (n, n), is that of the queries. X has equal diagonal entries. The weights, shape
    (n, n), symmetric with a zero diagonal, prove that no other X is much better.
    """
    n, own = len(gram), _centered(gram)
    apart = _distances(own)
    # the first category with the same answers to all queries stands for all such categories
    first, place = np.unique((apart <= _ALIKE * apart.max()).argmax(axis=1), return_inverse=True)
    values, axes = np.linalg.eigh(own[np.ix_(first, first)])
    seen = values > _SINGULAR * values[-1]
    fidelity, found = _solved(axes[:, seen] * np.sqrt(values[seen] / values[-1]))
    weights = np.zeros((n, n))
    weights[tuple(first[fidelity.rows].T)] = found.weights
    b = found.at.coordinates
    apart = _distances((b - b.mean(axis=0)) @ (b - b.mean(axis=0)).T)
    # points with squared distances D are on a sphere of squared radius 1/(2 · 1'D⁻¹1)
    apart = apart / apart.max()
    sphere = float(np.linalg.lstsq(apart, np.ones(len(first)), rcond=None)[0].sum())
    radius = 1 / (2 * sphere) if 2 * sphere * _LARGEST_SPHERE > 1 else _LARGEST_SPHERE
    return radius - apart[np.ix_(place, place)] / 2, weights + weights.T


def _solved(points: Array) -> tuple[PairFidelity, Maximum]:
    """Return the best weights of all pairs of points, one of which is zero."""
    n, apart = len(points), _distances(points @ points.T)
    fidelity, start = PairFidelity(points, 2, False, span(points)), None
    if n > _FEW and np.diag(apart, 1).mean() < _LIKE * apart.mean():
        half = np.unique(np.append(np.arange(0, n, 2), n - 1))
        _, coarse = _solved(points[half] - points[0])
        weights = np.zeros((len(half), len(half)))
        weights[np.triu_indices(len(half), 1)] = coarse.weights
        between = np.array([np.interp(np.arange(n), half, one) for one in np.eye(len(half))])
        spread = (between.T @ (weights + weights.T) @ between)[tuple(fidelity.rows.T)]
        spread = (1 - _FRESH_SHARE) * spread / spread.sum() + _FRESH_SHARE / len(spread)
        start = spread, np.full(points.shape[1], 1 / points.shape[1])
    return fidelity, maximum(fidelity, tol=_TOLERANCE, max_steps=MAX_STEPS, start=start)


def _distances(gram: Array) -> Array:
    """Return the squared distances of the points that have this Gram matrix."""
    squares = np.diag(gram)
    return np.maximum(squares[:, None] + squares - gram - gram.T, 0.0)
