"""Strategies of one attribute with short differences of columns, for replaced records.

A strategy is the matrix that is applied to the counts of an attribute's categories before noise is
added. Cells are these categories.
"""

import numpy as np

from domains.floats import Array

_OVERLAP = 0.999  # κ < 1: at κ = 1 the part common to all cells costs nothing, and X has no optimum
_STEPS = 300
_THIN = 1e-12


def pair_gram(
    gram: Array, single: float, tol: float, start: Array | None = None
) -> tuple[Array, Array]:
    """Return the Gram matrix X of a strategy's columns with the least cost, and dual weights.

    A strategy is the matrix that is applied to the counts of an attribute's n cells (categories)
    before noise is added. The cost is ``tr(G X⁻¹) + w max_x X_xx + max_{x≠y} (X_xx + X_yy − 2κ
    X_xy)``, with a κ just below 1. Its three terms are the variance of the queries, the largest
    squared length of a column, and the largest squared difference of two columns, which is the
    largest change by a replaced record.

    Args:
        gram: G of the queries and the total, shape (n, n).
        single: w, the weight of squared column lengths relative to squared differences.
        tol: relative gap to stop at.
        start: dual weights of an earlier call, shape (n, n): of pairs off the diagonal, of cells
            on it.
    """
    # The problem is convex. The dual has weights λ of cells and η of pairs, Λ = diag(wλ + 2η1) −
    # 2κη, and its value is tr(G^{1/2} Λ G^{1/2})^{1/2}. A step multiplies each weight by the square
    # of the ratio of its cell's or pair's term to the mean term.
    n = len(gram)
    values, axes = np.linalg.eigh(gram)
    root = (axes * np.sqrt(np.maximum(values, _THIN * values[-1]))) @ axes.T
    weights = np.where(np.eye(n, dtype=bool), 1 / n, 1 / (n * (n - 1))) if start is None else start
    X = np.eye(n)
    for _ in range(_STEPS):
        cells, pairs = np.diag(weights), weights - np.diag(np.diag(weights))
        penalty = np.diag(single * cells + 2 * pairs.sum(axis=1)) - 2 * _OVERLAP * pairs
        squares, turned = np.linalg.eigh(root @ penalty @ root)
        lengths = np.sqrt(np.maximum(squares, _THIN * squares[-1]))
        # X = G^½ (G^½ Λ G^½)^-½ G^½ minimises tr(G X⁻¹) + tr(ΛX), with value 2 tr(G^½ Λ G^½)^½
        X = (root @ turned / lengths) @ (root @ turned).T
        longest = np.diag(X)
        apart = longest[:, None] + longest - 2 * _OVERLAP * X
        np.fill_diagonal(apart, 0.0)
        if single * longest.max() + apart.max() <= lengths.sum() * (1 + tol):
            break
        pairs = pairs * (apart / (pairs * apart).sum()) ** 2
        cells = cells * (longest / (cells @ longest)) ** 2
        weights = (pairs + pairs.T) / (2 * pairs.sum()) + np.diag(cells / cells.sum())
    return X, weights
