"""Exact integers, of 64 bits if possible, and their square roots as floats."""

import math
from fractions import Fraction

import numpy as np

MOST_SUM = 2**62  # limit of sums in 64 bits: half of the range


def exact_type(bound: int) -> type:
    """Return numpy's 64-bit integer type if it holds numbers up to ``bound``, otherwise ``object``.

    Arrays of type ``object`` hold Python's integers, which have no limit.

    >>> exact_type(1000).__name__, exact_type(2**62).__name__
    ('int64', 'object')
    """
    return np.int64 if bound < MOST_SUM else object


def root_above(square: int) -> float:
    """Return a float not below the square root of an integer, and close to it."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root
