"""Maxima over the box [−1, 1]^d: of a quadratic polynomial, or a sum of squares of several."""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from ..floats import EPS, Array
from .branch import Nodes, worst_open

_FLAT = 2.0**-46  # curvatures that are smaller than this share of the largest coefficient are zero
_CLOSED = 2.0**-31  # parts with bounds at most this much above the best value are not divided
_MOST_NUMBERS = 2**24  # coefficients of all parts that may be divided
_ORDER = 4  # the degree of the square of a quadratic polynomial
_LEVELS = 64  # a part is halved fewer times than this along each coordinate


def largest_quadratic(form: Array) -> Array:
    """Return a v in the box at which ``(1, v)' form (1, v)`` is largest, shape (d,).

    At some maximum, every coordinate is −1, 1 or free, and the form is negative definite along the
    free ones. Each coordinate is eliminated in each of these three ways, a free one by a Schur
    complement, and all 3^d results are compared.
    """
    d, flat = len(form) - 1, -_FLAT * float(np.abs(form).max())
    forms, steps = form[None], list[tuple[Array, Array]]()
    for k in range(d, 0, -1):
        rest, row, own = forms[:, :k, :k], forms[:, k, :k], forms[:, k, k]
        pivot = np.where(own < flat, own, -np.inf)  # without curvature: 0, which is in the box
        steps.append((row, pivot))
        ends = []
        for end in (-1.0, 1.0):
            fixed = rest.copy()
            fixed[:, 0] += end * row
            fixed[:, :, 0] += end * row
            fixed[:, 0, 0] += own
            ends.append(fixed)
        free = rest - row[:, :, None] * row[:, None] / pivot[:, None, None]
        forms = np.concatenate([*ends, free])
    points = np.ones((3**d, d + 1))
    for k, (row, pivot) in zip(range(1, d + 1), reversed(steps), strict=True):
        copies = 3**d // len(row)
        row, pivot = np.tile(row, (copies, 1)), np.tile(pivot, copies)
        way = np.arange(3**d) // len(steps[d - k][0]) % 3
        inner = -np.einsum("ij,ij->i", row, points[:, :k]) / pivot
        points[:, k] = np.choose(way, [-1.0, 1.0, np.clip(inner, -1.0, 1.0)])
    return points[np.einsum("ij,jk,ik->i", points, form, points).argmax(), 1:]


def largest_squares(factor: Array, exponents: NDArray[np.intp]) -> tuple[Array, float]:
    """Return a v in the box where ``‖factor ψ(v)‖²`` is nearly largest, and an upper bound on it.

    ψ_k(v) = Π_i v_i^{exponents[k, i]} has degree at most two, so its square has degree at most four
    in each coordinate. In the Bernstein basis of a part of the box, the largest coefficient is an
    upper bound, and the coefficients at corners are values. Parts are halved until the bound is
    close.

    Args:
        factor: shape (r, N).
        exponents: shape (N, d).
    """
    d = exponents.shape[1]
    gram = factor.T @ factor
    powers = np.zeros((_ORDER + 1,) * d)
    np.add.at(powers, tuple((exponents[:, None] + exponents).reshape(-1, d).T), gram.ravel())
    for axis in range(d):
        powers = _along(_TO_BERNSTEIN, powers, axis)
    corners = np.array(list(itertools.product((0, 1), repeat=d)))
    at_corners = (slice(None), *(_ORDER * corners.T))
    best, top = np.zeros(d), 0.0

    def with_bounds(coefficients: Array, low: Array, width: Array) -> Nodes:
        nonlocal best, top
        for axis in range(d):  # a part along which the square is monotone shrinks to its better end
            steps = np.diff(coefficients, axis=axis + 1).reshape(len(low), -1)
            for end, toward in ((_ORDER, steps.min(axis=1) >= 0), (0, steps.max(axis=1) <= 0)):
                moved = toward & (width[:, axis] > 0)
                kept = coefficients[moved].take([end], axis=axis + 1)
                coefficients[moved] = np.broadcast_to(kept, coefficients[moved].shape)
                low[moved, axis] += width[moved, axis] * (end > 0)
                width[moved, axis] = 0.0
        values = coefficients[at_corners]
        part, corner = np.unravel_index(values.argmax(), values.shape)
        if values[part, corner] > top:
            best, top = low[part] + corners[corner] * width[part], float(values[part, corner])
        return coefficients, low, width, coefficients.reshape(len(low), -1).max(axis=1)

    def halves(nodes: Nodes) -> Nodes:
        coefficients, low, width, _ = nodes
        bends = [
            np.abs(np.diff(coefficients, axis=axis + 1)).reshape(len(low), -1).max(axis=1)
            for axis in range(d)
        ]
        chosen, parts = np.argmax(bends, axis=0), list[tuple[Array, ...]]()
        for axis in range(d):
            own = chosen == axis
            half = np.where(np.arange(d) == axis, width[own] / 2, width[own])
            for matrix, shift in zip(_HALVES, (0.0, half * (np.arange(d) == axis)), strict=True):
                parts.append(
                    (_along(matrix, coefficients[own], axis + 1), low[own] + shift, half.copy())
                )
        return with_bounds(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    root = with_bounds(powers[None].copy(), -np.ones((1, d)), np.full((1, d), 2.0))
    upper = worst_open(root, halves, lambda: top * (1 + _CLOSED), _MOST_NUMBERS // powers.size)
    # no coefficient is larger than the sum of the sizes of all terms; every step rounds these
    size = float(np.square(np.abs(factor).sum(axis=1)).sum())
    return best, upper + (sum(factor.shape) + (8 + 3 * _LEVELS) * d) * EPS * size


def _along(matrix: Array, values: Array, axis: int) -> Array:
    return np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)


def _to_bernstein() -> Array:
    """Return the matrix that turns coefficients of powers into Bernstein coefficients."""
    n = _ORDER
    matrix = np.zeros((n + 1, n + 1))
    for i, k in itertools.product(range(n + 1), repeat=2):
        # the mean of v_1 ⋯ v_k over the ways to take k of n values, of which i are 1, others −1
        matrix[i, k] = sum(
            math.comb(i, j) * math.comb(n - i, k - j) * (-1) ** (k - j) for j in range(k + 1)
        ) / math.comb(n, k)
    return matrix


def _halves() -> tuple[Array, Array]:
    """Return two matrices that turn Bernstein coefficients into those on the left or right half."""
    # de Casteljau's algorithm
    n = _ORDER + 1
    lower = np.array([[math.comb(i, j) / 2**i for j in range(n)] for i in range(n)])
    return lower, lower[::-1, ::-1].copy()


_TO_BERNSTEIN, _HALVES = _to_bernstein(), _halves()
