"""Stored weights of pairs of one attribute's categories, and the bound that they prove."""

import math

import numpy as np
from numpy.typing import NDArray

from domains.floats import EPS, Array
from domains.tables.bases import AbstractBase

from ...solvers.tables.alone import differences

NO_PAIRS: NDArray[np.uint16] = np.zeros(0, dtype=np.uint16)
# Stored weights are whole numbers up to this one, for any such weights prove a bound: rounding
# costs less than the solution's own gap, and the file of a certificate is a quarter as long.
_LARGEST = 2**16 - 1
_THIN = 1e-13  # eigenvalues below this fraction of the largest one may be rounding


def packed(weights: Array) -> NDArray[np.uint16]:
    """Return integers in proportion to the weights of the pairs x < y, in order of rows."""
    pairs = weights[np.triu_indices(len(weights), 1)]
    return np.rint(pairs * (_LARGEST / pairs.max())).astype(np.uint16)


def fits(pairs: NDArray[np.uint16], size: int) -> bool:
    """Return whether these are weights of the pairs of ``size`` categories."""
    return bool(
        pairs.dtype.kind == "u" and pairs.shape == (size * (size - 1) // 2,) and pairs.any()
    )


def pair_trace(
    bases: tuple[AbstractBase, ...], weights: list[float], pairs: NDArray[np.uint16]
) -> float:
    """Return ``tr((Σ_b w_b W_b C W_b')^½)`` for the second moment C of pairs, rounded down.

    W_b are the queries of the bases, w_b their ``weights``, and ``C = Σ η_xy (e_x − e_y)(e_x −
    e_y)'`` for the pairs' probabilities η, so that the trace is that of the root of ``G^½ C G^½``.
    """
    n = bases[0].size
    gram = np.zeros((n, n))
    for base, weight in zip(bases, weights, strict=True):
        gram += weight * differences(base)  # C does not see what all categories have in common
    values, axes = np.linalg.eigh(gram)
    root = axes * np.sqrt(np.where(values > _THIN * values[-1], values, 0.0))
    edges = np.zeros((n, n))
    edges[np.triu_indices(n, 1)] = pairs / math.fsum(pairs)
    edges += edges.T
    moved = root.T @ (np.diag(edges.sum(axis=1)) - edges) @ root
    squares = np.linalg.eigvalsh((moved + moved.T) / 2)
    blur = 8 * n * EPS * max(float(squares[-1]), 0.0)
    return float(np.sqrt(np.maximum(squares - blur, 0.0)).sum())
