"""The quadratic oracle of K − K for listed points, which finds far pairs without listing all."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domains.errors import DomainTooLargeError
from domains.floats import EPS, Array

_CHUNK = 2**10
_CHUNK_ENTRIES = 2**24  # number of squared distances in memory at once: 128 MB
_MOST_OPERATIONS = 2**41  # number of operations that take about a minute
_SAMPLE = 512
# With more than _MANY points, only _MOST_ROWS rows are computed in double precision.
_MANY, _MOST_ROWS = 2**14, 2**11


@dataclass(frozen=True, eq=False)
class FarPairs:
    """Pairs of rows that are far apart.

    Attributes:
        rows: shape (k, 2), the smaller index first.
        squares: shape (k,), their squared distances.
        largest: the largest squared distance of all pairs, up to rounding.
    """

    rows: NDArray[np.intp]
    squares: Array
    largest: float


def far_pairs(points: Array, beyond: float = np.inf) -> FarPairs:
    """Return for each row of ``points`` (N, r) the pair with its farthest partner, if far enough.

    With very many points, only rows that reach farthest are returned.

    By the triangle inequality, a row's distances are at most its distance from the middle plus the
    largest such distance. Rows where this sum is below the threshold and below the farthest pair of
    a sample are skipped.
    """
    # the middle is the origin, which keeps the rounding of products smallest
    points = points - (points.max(axis=0) + points.min(axis=0)) / 2
    radii = np.sqrt(np.einsum("ij,ij->i", points, points))
    if radii.max() == 0:
        return FarPairs(np.zeros((0, 2), dtype=np.intp), np.zeros(0), 0.0)
    outer = np.argsort(radii)[::-1]
    sample = _partners(points[outer[:_SAMPLE]])
    rounding = 8 * (points.shape[1] + 8) * EPS * radii.max() ** 2
    reach = math.sqrt(max(min(sample.largest, beyond) - rounding, 0.0))
    # the distance of two points is at most the sum of their radii
    kept = outer[radii[outer] + radii.max() >= reach * (1 - 1e-12)]
    if len(kept) ** 2 * points.shape[1] > _MOST_OPERATIONS:
        raise DomainTooLargeError(
            f'neighbors="replace": the farthest of {len(kept)} points in {points.shape[1]} '
            f"dimensions needs {len(kept) ** 2 * points.shape[1]:.2g} operations a step; hint: "
            "keep only the extreme points, or gaussnoise.gamma(domain), whose sensitivity is at "
            "most four times that of replacement"
        )
    if beyond == np.inf and len(kept) > _CHUNK:
        largest = max(_farthest(points[kept]), sample.largest)
        return FarPairs(np.zeros((0, 2), dtype=np.intp), np.zeros(0), largest)
    find = _partners if len(kept) <= _MANY else lambda these: _longest_partners(these, beyond)
    partners = find(points[kept])
    listed = partners.squares > beyond
    rows = np.sort(kept[partners.rows[listed]], axis=1)
    rows, first = np.unique(rows, axis=0, return_index=True)
    return FarPairs(rows, partners.squares[listed][first], max(partners.largest, sample.largest))


def all_far_pairs(points: Array, beyond: float) -> FarPairs:
    """Return all pairs of few ``points`` (N, r) beyond a threshold, from all distances at once."""
    points = points - (points.max(axis=0) + points.min(axis=0)) / 2
    lengths = np.einsum("ij,ij->i", points, points)
    squares = points @ (-2 * points.T)
    squares += lengths[:, None] + lengths
    first, second = np.nonzero(np.triu(squares > beyond, 1))
    rows = np.column_stack([first, second])
    return FarPairs(rows, squares[first, second], float(squares.max(initial=0.0)))


def _farthest(points: Array) -> float:
    """Return the largest squared distance of all pairs, up to rounding in double precision."""
    reaches, margin = _reaches(points)
    return _partners(points, np.flatnonzero(reaches >= reaches.max() - margin)).largest


def _longest_partners(points: Array, beyond: float) -> FarPairs:
    """Return pairs beyond a threshold, of the ``_MOST_ROWS`` rows that reach farthest."""
    reaches, margin = _reaches(points)
    rows = np.flatnonzero(reaches >= min(beyond, reaches.max()) - margin)
    if len(rows) > _MOST_ROWS:
        enough = np.partition(reaches[rows], -_MOST_ROWS)[-_MOST_ROWS]
        rows = rows[reaches[rows] >= min(enough, reaches.max() - margin)]
    return _partners(points, rows)


def _reaches(points: Array) -> tuple[Array, float]:
    """Return for every row the largest squared distance to rows of its block and later blocks, so
    that every pair is covered, and a margin.

    They are computed in single precision: each has an error of less than half the margin, a
    generous bound on the rounding of coordinates, products and sums.
    """
    squares = np.einsum("ij,ij->i", points, points)
    size = math.sqrt(squares.max()) or 1.0  # scaled, since single precision has no large numbers
    single, squares_single = (
        (points / size).astype(np.float32),
        (squares / size**2).astype(np.float32),
    )
    reaches = np.zeros(len(points), dtype=np.float32)
    for start in range(0, len(points), _CHUNK):
        part = slice(start, start + _CHUNK)
        products = single[part] @ (-2 * single[start:].T)
        products += squares_single[start:]
        reaches[part] = products.max(axis=1) + squares_single[part]
    margin = 32 * (points.shape[1] + 8) * 2.0**-24
    return reaches.astype(np.float64) * size**2, margin * size**2


def _partners(points: Array, rows: NDArray[np.intp] | None = None) -> FarPairs:
    """Return the farthest partner of every row, or of ``rows``."""
    rows = np.arange(len(points)) if rows is None else rows
    squares = np.einsum("ij,ij->i", points, points)
    farthest = np.zeros(len(rows), dtype=np.intp)
    distances = np.zeros(len(rows))
    chunk = max(1, _CHUNK_ENTRIES // len(points))
    for start in range(0, len(rows), chunk):
        part = slice(start, start + chunk)
        products = points[rows[part]] @ points.T
        products *= -2
        products += squares
        best = products.argmax(axis=1)
        farthest[part] = best
        distances[part] = (
            np.take_along_axis(products, best[:, None], axis=1)[:, 0] + squares[rows[part]]
        )
    pairs = np.column_stack([rows, farthest])
    return FarPairs(pairs, distances, float(distances.max(initial=0.0)))
