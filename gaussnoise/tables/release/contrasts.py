"""Linear combinations of cells of released tables, with their exact covariance."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import ParameterError
from ...noise.table_covariance import TableCovariance
from ...numerics.intervals import Contrasts
from ...solvers.tables.residuals import Subset, subsets_of
from ..planning.measure import ResidualQuery

ROUNDED = 2.0**-42  # relative to weights: below this, a sum that cancels is rounding
Array = NDArray[np.float64]
Names = str | tuple[str, ...]
Weights = Mapping[Names, ArrayLike]


def combined(
    combinations: Sequence[Weights],
    estimate_of: Callable[[Names], tuple[Subset, Subset, Array]],
    query: ResidualQuery,
    noise: TableCovariance,
    rows_in_all: float | None,
) -> Contrasts:
    """Return linear combinations of cells, with the covariance of their noise.

    Args:
        combinations: for each, a mapping from tables to arrays of weights.
        estimate_of: returns the positions of attributes as asked for, the same positions sorted,
            and the estimates of the sorted ones.
        query: the query that was answered with noise.
        noise: the covariance of the noise of all tables.
        rows_in_all: the number of rows if it is public, else None.
    """
    estimates, shares = np.zeros(
        (2, len(combinations))
    )  # shares: the estimate of one row spread evenly
    pulled: dict[Subset, Array] = {}  # by T, a row for each combination
    sizes: dict[Subset, Array] = {}  # norms of the same, of absolute weights
    for row, weights in enumerate(combinations):
        for names, given in weights.items():
            asked, S, estimate = estimate_of(names)
            order = [S.index(i) for i in asked]
            w = _weights(names, given)
            shape = tuple(estimate.shape[axis] for axis in order)
            if w.shape != shape or not np.isfinite(w).all():
                got = "infinite ones or NaN" if w.shape == shape else w.shape
                raise ParameterError(
                    f"contrast: expected finite weights of shape {shape} for {names}, got {got}"
                )
            w = w.transpose(np.argsort(order))
            estimates[row] += float((w * estimate).sum())
            shares[row] += math.fsum(w.ravel().tolist()) / w.size
            for T in subsets_of(S):
                if T in query.multipliers:
                    seen = query.gather(w, S, T)
                    pulled.setdefault(T, np.zeros((len(combinations), *seen.shape)))[row] += seen
                    size = float(np.linalg.norm(query.gather(np.abs(w), S, T)))
                    sizes.setdefault(T, np.zeros(len(combinations)))[row] += size
    covariance = np.zeros((len(combinations),) * 2)
    known = np.ones(len(combinations), dtype=bool)  # combinations that only count all rows
    for T, rows in pulled.items():
        for axis, i in enumerate(T, 1):
            rows = query.strategies[i].pull(rows, axis)
        moved = rows.reshape(len(rows), -1)
        length = math.prod(query.strategies[i].length for i in T)
        # where weights cancel, only rounding is left
        moved[np.linalg.norm(moved, axis=1) <= ROUNDED * length * sizes[T]] = 0.0
        known &= ~moved.any(axis=1)
        covariance += noise.variances[T] * (moved @ moved.T)
    if not query.public:
        estimates = np.where(known, shares * (rows_in_all or 0.0), estimates)
    return Contrasts(estimates, covariance)


def _weights(names: Names, given: object) -> Array:
    """Return the weights of a contrast as an array."""
    try:
        if not isinstance(given, Mapping):
            return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    hint = (
        'release.cell(sex="F") makes the weights of one cell'
        if isinstance(given, Mapping)
        else ".toarray() if sparse"
    )
    raise ParameterError(
        f"contrast: expected an array of weights for {names}, one number per cell in the order of "
        "the labels, got "
        f"{type(given).__name__}; hint: {hint}"
    )
