"""Structure found exactly in a matrix: circulants over abelian groups, Kronecker products."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array


@dataclass(frozen=True, eq=False)
class Piece:
    """A matrix that is not factored further, and the group, if any, over which it is circulant.

    The group is the product of cyclic groups of the ``orders``. For its elements g, h and a
    function f, ``matrix[g, h] = f(g − sign·h)``. Without a group, ``orders`` is empty.
    """

    matrix: Array
    orders: tuple[int, ...] = ()
    sign: int = 1


def pieces(A: Array) -> list[Piece]:
    """Return the Kronecker factors of A that are not factored further.

    Each is circulant over a group, or has no Kronecker factors that :func:`halves` finds.
    """
    known = _group(A)
    if known:
        return [known]
    split = halves(A)
    return [piece for half in split for piece in pieces(half)] if split else [Piece(A)]


def runs(orders: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return each order with the number of times that it is repeated in a row, as pairs."""
    return [(m, len(list(run))) for m, run in itertools.groupby(orders)]


def table(orders: tuple[int, ...], sign: int) -> NDArray[np.intp]:
    """Return the index of ``g − sign·h`` for all group elements g (rows) and h (columns).

    The elements of the product of cyclic groups are numbered in C order.
    """
    table = np.zeros((1, 1), dtype=np.intp)
    for m in orders:
        digit = (np.arange(m)[:, None] - sign * np.arange(m)) % m
        table = (table[:, None, :, None] * m + digit[:, None, :]).reshape(len(table) * m, -1)
    return table


def _group(A: Array) -> Piece | None:
    """Return A as a :class:`Piece` that is exactly circulant over a group, or None."""
    n, f = len(A), A[:, 0]
    if A.shape != (n, n) or n == 1 or not set(A[0]) <= set(f):
        return None
    if (f == f[0]).all():
        return (
            Piece(A, (n,)) if (A == f[0]).all() else None
        )  # without this, all permutations of the orders would be tried
    for sign in (1, -1):
        for orders in _orders(A, sign, ()):
            if np.array_equal(A, f[table(orders, sign)]):
                return Piece(A, orders, sign)
    return None


def _orders(A: Array, sign: int, split: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the orders of cyclic groups, ending in ``split``, over which A may be circulant."""
    n, stride = len(A), math.prod(split)
    if stride == n:
        f = A[:, 0].reshape(split)
        if np.array_equal(A[:, -1], np.roll(f, [-sign] * len(split), range(len(split))).ravel()):
            yield split
        return
    # for each group with unit e, column e of A must be f shifted by one in that coordinate
    for m in _divisors(n // stride)[:0:-1]:
        shifted = np.roll(A[:, 0].reshape(-1, m, stride), sign, axis=1).ravel()
        if np.array_equal(A[:, stride], shifted):
            yield from _orders(A, sign, (m, *split))


def halves(A: Array) -> tuple[Array, Array] | None:
    """Return B and C with ``A = B ⊗ C`` exactly and the smallest B; None if there are none.

    Only matrices A whose entries are 0 and ±c for one c are factored.
    """
    size = np.abs(A).max()
    if not size or not ((size == np.abs(A)) | (A == 0)).all():
        return None
    signs = np.sign(A).astype(np.int8)
    count = np.count_nonzero(signs)
    i, j = np.unravel_index(np.flatnonzero(signs)[0], A.shape)
    for a in _divisors(len(A)):
        for b in _divisors(A.shape[1]):
            if (a, b) in ((1, 1), A.shape):
                continue
            blocks = signs.reshape(a, len(A) // a, b, A.shape[1] // b)
            (block, row), (strip, column) = (
                divmod(int(i), blocks.shape[1]),
                divmod(int(j), blocks.shape[3]),
            )
            B = blocks[:, row, :, column]
            C = blocks[block, :, strip, :] * signs[i, j]
            if np.count_nonzero(B) * np.count_nonzero(C) == count and (
                np.array_equal(blocks, B[:, None, :, None] * C[:, None, :])
            ):
                return B * size, C.astype(np.float64)
    return None


def _divisors(n: int) -> list[int]:
    return [m for m in range(1, n + 1) if n % m == 0]
