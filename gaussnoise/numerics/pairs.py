"""The quadratic oracle of K − K: farthest pairs among listed points, without listing the pairs."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domains import DomainTooLargeError
from domains.floats import EPS

Array = NDArray[np.float64]

_CHUNK = 2**10
_CHUNK_ENTRIES = 2**24  # squared distances held at once: 128 MB
_MOST_OPERATIONS = 2**41  # about a minute
_SAMPLE = 512


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
    """Farthest pairs of ``points`` (N, r), one for every row that has a partner beyond a threshold.

    Rows whose distance from the middle, added to the largest such distance, stays below the
    farthest pair of a sample and below the threshold cannot matter, and are skipped.
    """
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    radii = np.linalg.norm(points - middle, axis=1)
    outer = np.argsort(radii)[::-1]
    points = points - middle  # where products round least
    sample = _partners(points[outer[:_SAMPLE]])
    rounding = 8 * (points.shape[1] + 8) * EPS * radii.max() ** 2
    reach = math.sqrt(max(min(sample.largest, beyond) - rounding, 0.0))
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
    partners = _partners(points[kept])
    listed = partners.squares > beyond
    rows = np.sort(kept[partners.rows[listed]], axis=1)
    rows, first = np.unique(rows, axis=0, return_index=True)
    return FarPairs(rows, partners.squares[listed][first], max(partners.largest, sample.largest))


def all_far_pairs(points: Array, beyond: float) -> FarPairs:
    """All pairs of few ``points`` (N, r) beyond a threshold: all distances are held at once."""
    points = points - (points.max(axis=0) + points.min(axis=0)) / 2
    lengths = np.einsum("ij,ij->i", points, points)
    squares = points @ (-2 * points.T)
    squares += lengths[:, None] + lengths
    first, second = np.nonzero(np.triu(squares > beyond, 1))
    rows = np.column_stack([first, second])
    return FarPairs(rows, squares[first, second], float(squares.max(initial=0.0)))


def _farthest(points: Array) -> float:
    """Largest squared distance of all pairs, up to the rounding of products in double precision.

    Single precision finds the rows that may have it: each row's largest there is off by less than
    ``margin``, a generous bound on the rounding of coordinates, products and sums. These rows are
    looked at again.
    """
    squares = np.einsum("ij,ij->i", points, points)
    margin = 16 * (points.shape[1] + 8) * 2.0**-24
    size = math.sqrt(squares.max())  # single precision has no large numbers
    if not size > 0:
        return 0.0
    single, squares_single = (
        (points / size).astype(np.float32),
        (squares / size**2).astype(np.float32),
    )
    found = np.zeros(len(points), dtype=np.float32)
    for start in range(0, len(points), _CHUNK):  # with what comes later: every pair once
        part = slice(start, start + _CHUNK)
        products = single[part] @ (-2 * single[start:].T)
        products += squares_single[start:]
        found[part] = products.max(axis=1) + squares_single[part]
    rows = np.flatnonzero(found >= found.max() - 2 * margin)
    largest = 0.0
    chunk = max(1, _CHUNK_ENTRIES // len(points))
    for start in range(0, len(rows), chunk):
        some = rows[start : start + chunk]
        products = squares - 2 * (points[some] @ points.T)
        largest = max(largest, float((products.max(axis=1) + squares[some]).max()))
    return largest


def _partners(points: Array) -> FarPairs:
    """The farthest partner of every row."""
    squares = np.einsum("ij,ij->i", points, points)
    farthest = np.zeros(len(points), dtype=np.intp)
    distances = np.zeros(len(points))
    chunk = max(1, _CHUNK_ENTRIES // len(points))
    for start in range(0, len(points), chunk):
        part = slice(start, start + chunk)
        products = points[part] @ points.T
        products *= -2
        products += squares
        best = products.argmax(axis=1)
        farthest[part] = best
        distances[part] = np.take_along_axis(products, best[:, None], axis=1)[:, 0] + squares[part]
    rows = np.column_stack([np.arange(len(points)), farthest])
    return FarPairs(rows, distances, float(distances.max(initial=0.0)))
