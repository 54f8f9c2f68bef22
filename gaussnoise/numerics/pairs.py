"""The quadratic oracle of K − K for listed points, which finds far pairs without listing all."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domains.errors import DomainTooLargeError
from domains.floats import Array

Rows = NDArray[np.intp]

_TILE = 2**9  # rows of a block: the distances between two blocks stay in the cache
_MOST_OPERATIONS = 2**41  # number of operations that take about a minute
_SAMPLE = 32  # rows farthest out, whose farthest pair shows what need not be computed


@dataclass(frozen=True, eq=False)
class FarPairs:
    """Pairs of rows that are far apart.

    Attributes:
        rows: shape (k, 2), the smaller index first.
        squares: shape (k,), their squared distances.
        largest: the largest squared distance of all pairs, up to rounding.
    """

    rows: Rows
    squares: Array
    largest: float


def far_pairs(points: Array, beyond: float = np.inf, most: int | None = None) -> FarPairs:
    """Return for each row of ``points`` (N, r) the pair with its farthest partner, if far enough.

    If ``most`` is given, pairs beyond that number of farthest ones may be left out.

    Distances are first computed in single precision. Only rows whose largest may be beyond the
    threshold, or may be the largest of all, are computed in double precision.
    """
    # the middle is the origin, which keeps the rounding of products smallest
    points = points - (points.max(axis=0) + points.min(axis=0)) / 2
    squares = np.einsum("ij,ij->i", points, points)
    if squares.max() == 0:
        return FarPairs(np.zeros((0, 2), dtype=np.intp), np.zeros(0), 0.0)
    known = _partners(points, squares, np.argsort(squares)[-_SAMPLE:], np.arange(len(points)))[1]
    reaches, margin, tiles = _reaches(points, squares, float(known.max()), beyond)
    least = min(beyond, reaches.max())  # the farthest pair of all is always among those returned
    if most is not None and 2 * most < len(points):  # a pair may be that of both of its rows
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
    """Return all pairs of few ``points`` (N, r) beyond a threshold, from all distances at once."""
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
    """Return every row's largest squared distance in single precision, a margin, and the pairs of
    blocks of rows that were computed, with the largest of each.

    Each has an error of less than half the margin, a generous bound on the rounding of coordinates,
    products and sums. Distances below the threshold, and below the largest by more than the margin,
    may be missing: of pairs of blocks that are too near each other, none is computed. ``known`` is
    the squared distance of some pair.
    """
    radii = np.sqrt(squares)
    size = float(radii.max())  # scaled, since single precision has no large numbers
    margin = 32 * (points.shape[1] + 8) * 2.0**-24 * size**2
    # blocks of rows in one box, or at one distance from the middle: those that leave less to do
    shells = np.array_split(np.argsort(radii), -(-len(points) // _TILE))
    blocks, pairs, bounds = min(
        (
            (these, *_apart(points, radii, these, min(known, beyond) - margin))
            for these in (_boxes(points, np.arange(len(points))), shells)
        ),
        key=lambda found: len(found[1]),
    )
    operations = 2.0 * len(pairs) * max(map(len, blocks)) ** 2 * points.shape[1]
    if operations > _MOST_OPERATIONS:
        raise DomainTooLargeError(
            f'neighbors="replace": the farthest of {len(points)} points in {points.shape[1]} '
            f"dimensions needs {operations:.2g} operations a step; hint: "
            "keep only the extreme points, or gaussnoise.gamma(domain), whose sensitivity is at "
            "most four times that of replacement"
        )
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
    """Split rows at the median of their widest coordinate, until at most a tile is left."""
    if len(rows) <= _TILE:
        return [rows]
    column = points[rows, np.argmax(np.ptp(points[rows], axis=0))]
    order = np.argpartition(column, len(rows) // 2)
    parts = np.split(rows[order], [len(rows) // 2])
    return [block for part in parts for block in _boxes(points, part)]


def _apart(points: Array, radii: Array, blocks: list[Rows], least: float) -> tuple[Rows, Array]:
    """Return pairs of blocks that may be far apart, and bounds on squares, farthest first."""
    lower = np.array([points[block].min(axis=0) for block in blocks])
    upper = np.array([points[block].max(axis=0) for block in blocks])
    outer = np.array([radii[block].max() for block in blocks])
    found, bounds = [], []
    for i in range(len(blocks)):
        apart = np.maximum(upper[i] - lower[i:], upper[i:] - lower[i])
        each = np.minimum(np.square(apart).sum(axis=1), np.square(outer[i] + outer[i:]))
        far = np.flatnonzero(each >= least)
        found.append(np.column_stack([np.full(len(far), i), far + i]))
        bounds.append(each[far])
    order = np.argsort(-np.concatenate(bounds))
    return np.concatenate(found)[order], np.concatenate(bounds)[order]


def _partners(points: Array, squares: Array, rows: Rows, others: Rows) -> tuple[Rows, Array]:
    """Return each row's farthest partner among others, and its squared distance."""
    products = points[rows] @ (-2 * points[others].T)
    products += squares[others]
    best = products.argmax(axis=1)
    return others[best], products[np.arange(len(best)), best] + squares[rows]
