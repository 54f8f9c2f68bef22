"""Boxes of a table's cells, for tables that are too large to hold in memory."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

Box = tuple[slice, ...]  # a range of codes for every attribute of a table


def boxes(sizes: Sequence[int], most: int) -> list[Box]:
    """Cut a table into boxes of at most ``most`` cells; return the boxes in C order.

    A box is a tuple of slices: a range of codes for every axis of the table.

    Args:
        sizes: sizes of the table's axes, at least one.
        most: largest number of cells of a box, at least 1.

    >>> [tuple((codes.start, codes.stop) for codes in box) for box in boxes((2, 3, 4), 8)]
    [((0, 1), (0, 2), (0, 4)), ((0, 1), (2, 3), (0, 4)), ((1, 2), (0, 2), (0, 4)), \
((1, 2), (2, 3), (0, 4))]
    """
    axis = next(k for k in range(len(sizes)) if math.prod(sizes[k + 1 :]) <= most)
    parts = evenly(sizes[axis], most // math.prod(sizes[axis + 1 :]))
    whole = [slice(0, n) for n in sizes[axis + 1 :]]
    return [
        (*(slice(code, code + 1) for code in before), part, *whole)
        for before in np.ndindex(*sizes[:axis])
        for part in parts
    ]


def evenly(count: int, most: int) -> list[slice]:
    """Return slices of ``range(count)``, none longer than ``most``; lengths differ by at most 1.

    >>> evenly(7, 3)
    [slice(0, 3, None), slice(3, 5, None), slice(5, 7, None)]
    """
    parts = max(-(-count // most), 1)
    ends = [-(-count * k // parts) for k in range(parts + 1)]
    return [slice(start, end) for start, end in itertools.pairwise(ends)]


def shape_of(box: Box) -> tuple[int, ...]:
    """Return the number of codes of every attribute in a box."""
    return tuple([codes.stop - codes.start for codes in box])


def overlap(box: Box, other: Box) -> Box | None:
    """Return the cells in both boxes, or None if there are none."""
    both = tuple(
        [slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(box, other, strict=True)]
    )
    return both if all(codes.start < codes.stop for codes in both) else None


def within(box: Box, outer: Box) -> Box:
    """Return the slices for ``box`` in the array of cells of ``outer``, which contains the box."""
    return tuple(
        [slice(a.start - b.start, a.stop - b.start) for a, b in zip(box, outer, strict=True)]
    )
