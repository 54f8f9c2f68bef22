"""Arithmetic on many rows that treats each row by itself, and maps of rows into bodies."""

import math

import numpy as np

from ..floats import Array, Map

_HUGE = 2.0**100  # rows are first clipped to this many half widths, so that squares do not overflow
_INSIDE = 1 - 2.0**-40  # share of the way to the boundary where rows stop, to stay inside


def shrunk(X: Array, norms: Array) -> Array:
    """Return the rows of X, scaled to norm one where the given norm is above one."""
    return X / np.maximum(norms, 1.0)[:, None]


def into_box(center: Array, widths: Array) -> Map:
    """Return a function that clips each coordinate of a row to center ± widths."""
    low, high = center - widths, center + widths
    return lambda X: np.clip(X, low, high)


def into_ball(radius: float, q: float) -> Map:
    """Return a function that scales rows into an ℓ_q ball; for q = ∞, it clips coordinates."""
    if q == math.inf:
        return lambda X: np.clip(X, -radius, radius)

    def move(X: Array) -> Array:
        X = np.clip(X, -_HUGE * radius, _HUGE * radius)
        return X * _shrinking(row_norms(X / radius, q))[:, None]

    return move


def into_ellipsoid(center: Array, factor: Array, widths: Array) -> Map:
    """Return a function that maps rows to members of the ellipsoid center + factor @ (unit ball).

    A row is projected onto the affine hull, then moved towards the center. Members do not change.
    """
    inverse = np.asarray(np.linalg.pinv(factor), dtype=np.float64)

    def move(X: Array) -> Array:
        moved = np.clip(X - center, -_HUGE * widths, _HUGE * widths)
        inner = row_products(moved, inverse)
        shrinking = _shrinking(row_norms(inner, 2.0))
        mapped = center + row_products(inner * shrinking[:, None], factor)
        apart = np.abs(mapped - X).max(axis=1) <= 2.0**-30 * widths.max()
        return np.where((apart & (shrinking == 1.0))[:, None], X, mapped)

    return move


def _shrinking(norms: Array) -> Array:
    return np.where(norms > 1.0, _INSIDE / np.maximum(norms, 1.0), 1.0)


def row_products(X: Array, matrix: Array) -> Array:
    """Return ``X @ matrix.T``; the result for a row does not depend on the other rows of X.

    The terms of each sum are added in a fixed order.
    """
    columns = np.ascontiguousarray(X.T)
    products = np.zeros((len(matrix), len(X)))
    for total, row in zip(products, matrix, strict=True):
        for column, entry in zip(columns, row.tolist(), strict=True):
            total += column * entry
    return products.T


def row_norms(X: Array, q: float) -> Array:
    """Return ``‖x‖_q`` of every row; the result for a row does not depend on the other rows of X.

    The terms of each sum are added in a fixed order.
    """
    sizes = np.abs(X)
    if q == 1:
        return _row_sums(sizes)
    if q == 2:
        return np.sqrt(_row_sums(sizes * sizes))
    top = sizes.max(axis=1)
    ratios = sizes / np.where(top > 0, top, 1.0)[:, None]
    return top * _power(_row_sums(_power(ratios, q)), 1 / q)


def _power(values: Array, exponent: float) -> Array:
    """Return values ** exponent; unlike numpy, equal numbers in an array give equal powers."""
    # numpy may round differently at the ends of an array
    return np.array([math.pow(value, exponent) for value in values.ravel().tolist()]).reshape(
        values.shape
    )


def _row_sums(X: Array) -> Array:
    total = np.zeros(len(X))
    for column in X.T:
        total = total + column
    return total
