"""Pairs of listed points that are far apart, found without a list of all pairs.

This is the quadratic oracle of K − K for listed points.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domains.errors import DomainTooLargeError
from domains.floats import Array

Rows = NDArray[np.intp]

_TILE = 2**9  # rows of a block: the distances between two blocks fit into the cache
_MOST_OPERATIONS = 2**41  # number of operations that take about a minute
_SAMPLE = 32  # rows farthest from the middle; with their farthest pair, many pairs need no check


@dataclass(frozen=True, eq=False)
class FarPairs:
    """Pairs of points that are far apart.

    Attributes:
        rows: shape (k, 2), the row indices of the two points of each pair, the smaller one first.
        squares: shape (k,), the squared distance of each pair.
        largest: the largest squared distance of all pairs, up to rounding.
    """

    rows: Rows
    squares: Array
    largest: float


def far_pairs(points: Array, beyond: float = np.inf, most: int | None = None) -> FarPairs:
    """Return pairs of row indices of ``points`` (N, r): each row, and the row farthest from it.

    Only pairs with a squared distance above ``beyond`` are returned. If ``most`` is given, pairs
    other than about the ``most`` farthest ones may be missing. Distances are first computed in
    single precision. Double precision is used only for rows whose largest distance may exceed
    ``beyond``, or be the largest of all.
    """
    # with the middle as origin, the rounding of products is smallest
    points = points - (points.max(axis=0) + points.min(axis=0)) / 2
    squares = np.einsum("ij,ij->i", points, points)
    if squares.max() == 0:
        return FarPairs(np.zeros((0, 2), dtype=np.intp), np.zeros(0), 0.0)
    known = _partners(points, squares, np.argsort(squares)[-_SAMPLE:], np.arange(len(points)))[1]
    reaches, margin, tiles = _reaches(points, squares, float(known.max()), beyond)
    least = min(beyond, reaches.max())  # the largest distance of all is always found
    if most is not None and 2 * most < len(points):  # two rows may have the same pair
        least = max(least, np.partition(reaches, -2 * most)[-2 * most])
    wanted = reaches >= least - margin
    farthest, distances = np.zeros(len(points), dtype=np.intp), np.zeros(len(points))
    for first, second, top in tiles:
        if top < least - margin:
            continue
        for rows, others in ((first, second), (second, first)):
            rows = rows[wanted[rows]]
            partners, reach = _partners(points, squares, rows, others)
            better = reach > distances[rows]
            farthest[rows[better]], distances[rows[better]] = partners[better], reach[better]
    listed = np.flatnonzero(distances > beyond)
    rows = np.sort(np.column_stack([listed, farthest[listed]]), axis=1)
    rows, first = np.unique(rows, axis=0, return_index=True)
    return FarPairs(rows, distances[listed[first]], float(distances.max()))


def all_far_pairs(points: Array, beyond: float) -> FarPairs:
    """Return all pairs of rows of ``points`` (N, r) with a squared distance above ``beyond``.

    All N² distances are computed, so N must be small.
    """
    points = points - (points.max(axis=0) + points.min(axis=0)) / 2
    lengths = np.einsum("ij,ij->i", points, points)
    squares = points @ (-2 * points.T)
    squares += lengths[:, None] + lengths
    first, second = np.nonzero(np.triu(squares > beyond, 1))
    rows = np.column_stack([first, second])
    return FarPairs(rows, squares[first, second], float(squares.max(initial=0.0)))


def _reaches(
    points: Array, squares: Array, known: float, beyond: float
) -> tuple[Array, float, list[tuple[Rows, Rows, float]]]:
    """Return largest squared distances, by row and by pair of blocks, and a margin of error."""
    # Single precision: errors are less than half the margin. A distance may be missing if below
    # ``beyond`` and, by more than the margin, below the largest; ``known`` is that of some pair.
    radii = np.sqrt(squares)
    size = float(radii.max())  # scaled: single precision has no large numbers
    margin = 32 * (points.shape[1] + 8) * 2.0**-24 * size**2
    # blocks of rows in a box, or at a similar distance from the middle: those with less work
    shells = np.array_split(np.argsort(radii), -(-len(points) // _TILE))
    found = [
        (these, *_apart(points, radii, these, min(known, beyond) - margin))
        for these in (_boxes(points, np.arange(len(points))), shells)
    ]
    found = [own for own in found if len(own[1]) <= _most_pairs(own[0], points.shape[1])]
    if not found:
        raise DomainTooLargeError(
            'neighbors="replace": expected points whose farthest pair is found in '
            f"{_MOST_OPERATIONS:.0e} operations, got {len(points)} points in {points.shape[1]} "
            "dimensions that need more; hint: keep only the extreme points, or "
            "gaussnoise.gamma(domain), whose sensitivity is at most four times that of replacement"
        )
    blocks, pairs, bounds = min(found, key=lambda own: len(own[1]))
    single, ones = (points / size).astype(np.float32), np.ones((len(points), 1), dtype=np.float32)
    lengths = (squares / size**2).astype(np.float32)[:, None]
    left = [np.hstack([-2 * single[block], lengths[block], ones[block]]) for block in blocks]
    right = [np.hstack([single[block], ones[block], lengths[block]]).T for block in blocks]
    reaches, largest, tiles = np.zeros(len(points), dtype=np.float32), known, []
    for (i, j), bound in zip(pairs.tolist(), bounds.tolist(), strict=True):
        if bound < min(largest, beyond) - margin:
            break
        products, first, second = left[i] @ right[j], blocks[i], blocks[j]
        top = float(products.max()) * size**2
        if top >= min(largest, beyond) - margin:
            reaches[first] = np.maximum(reaches[first], products.max(axis=1))
            reaches[second] = np.maximum(reaches[second], products.max(axis=0))
            largest = max(largest, top - margin)
            tiles.append((first, second, top))
    return reaches.astype(np.float64) * size**2, margin, tiles


def _boxes(points: Array, rows: Rows) -> list[Rows]:
    """Return ``rows`` in blocks of at most ``_TILE`` rows whose points are near each other."""
    if len(rows) <= _TILE:
        return [rows]
    column = points[rows, np.argmax(np.ptp(points[rows], axis=0))]
    order = np.argpartition(column, len(rows) // 2)
    parts = np.split(rows[order], [len(rows) // 2])
    return [block for part in parts for block in _boxes(points, part)]


def _apart(points: Array, radii: Array, blocks: list[Rows], least: float) -> tuple[Rows, Array]:
    """Return pairs of blocks, the farthest first, and bounds >= ``least`` on their distances²."""
    lower = np.array([points[block].min(axis=0) for block in blocks])
    upper = np.array([points[block].max(axis=0) for block in blocks])
    outer = np.array([radii[block].max() for block in blocks])
    most, found, bounds = _most_pairs(blocks, points.shape[1]), [], []
    for i in range(len(blocks)):
        apart = np.maximum(upper[i] - lower[i:], upper[i:] - lower[i])
        each = np.minimum(np.square(apart).sum(axis=1), np.square(outer[i] + outer[i:]))
        far = np.flatnonzero(each >= least)
        found.append(np.column_stack([np.full(len(far), i), far + i]))
        bounds.append(each[far])
        most -= len(far)
        # incomplete once there are more pairs than _most_pairs
        if most < 0:
            break
    order = np.argsort(-np.concatenate(bounds))
    return np.concatenate(found)[order], np.concatenate(bounds)[order]


def _most_pairs(blocks: list[Rows], dimension: int) -> int:
    """Return how many pairs of blocks ``_MOST_OPERATIONS`` operations can compare."""
    return _MOST_OPERATIONS // (2 * max(map(len, blocks)) ** 2 * dimension)


def _partners(points: Array, squares: Array, rows: Rows, others: Rows) -> tuple[Rows, Array]:
    """Return the farthest of ``others`` for each of ``rows``, and the squared distance to it."""
    products = points[rows] @ (-2 * points[others].T)
    products += squares[others]
    best = products.argmax(axis=1)
    return others[best], products[np.arange(len(best)), best] + squares[rows]
