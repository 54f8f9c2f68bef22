"""Rational arithmetic for the check of small ellipsoids."""

from fractions import Fraction

from domains.floats import Array

_MOST_OPERATIONS = 4000  # number of operations that take about a tenth of a second


def is_small(factor: Array, points: Array) -> bool:
    """Return whether exact rational arithmetic on these arrays takes at most a tenth of a second.

    ``factor`` has shape (d, r), ``points`` shape (N, d).
    """
    d, r = factor.shape
    return (d + len(points) + r) * r**2 <= _MOST_OPERATIONS


def longest_square(factor: Array, points: Array, center: Array, weights: Array) -> Fraction:
    """Return the largest ``(x − v)' M⁺ (x − v)`` over the rows x of ``points``, exactly.

    Here M = L L', L is ``factor`` with independent columns, and v is ``center``. If rounding moves
    x − v out of the range of L, it is projected there, in coordinates multiplied by ``weights``.
    """
    scales = [Fraction(weight) for weight in weights.tolist()]
    L = [
        [s * Fraction(value) for value in row]
        for s, row in zip(scales, factor.tolist(), strict=True)
    ]
    r = factor.shape[1]
    if r == 0:
        return Fraction(0)
    moved = [
        [
            s * (Fraction(x) - Fraction(v))
            for s, x, v in zip(scales, point, center.tolist(), strict=True)
        ]
        for point in points.tolist()
    ]
    # with the normal equations L'L c = L'(x − v), (x − v)' M⁺ (x − v) = ‖c‖²
    gram = [[sum((row[i] * row[j] for row in L), Fraction(0)) for j in range(r)] for i in range(r)]
    pulled = [
        [sum((row[i] * x for row, x in zip(L, point, strict=True)), Fraction(0)) for point in moved]
        for i in range(r)
    ]
    coordinates = _solve(gram, pulled)
    return max(sum((row[k] ** 2 for row in coordinates), Fraction(0)) for k in range(len(moved)))


def _solve(matrix: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return X with ``matrix @ X = right`` in exact fractions, for a positive definite matrix."""
    rows = [[*a, *b] for a, b in zip(matrix, right, strict=True)]
    for i, pivot in enumerate(rows):
        rows[i] = pivot = [value / pivot[i] for value in pivot]
        for k, row in enumerate(rows):
            if k != i and row[i]:
                rows[k] = [a - row[i] * b for a, b in zip(row, pivot, strict=True)]
    return [row[len(rows) :] for row in rows]
