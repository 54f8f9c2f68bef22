"""Exact integers: in 64 bits where everything fits, and roots of them as floats."""

import math
from fractions import Fraction

import numpy as np

MOST_SUM = 2**62  # of what is added up in 64 bits: half of what fits


def exact_type(bound: int) -> type:
    """64 bits where every number on the way is at most ``bound``, Python's integers otherwise.

    >>> exact_type(1000).__name__, exact_type(2**62).__name__
    ('int64', 'object')
    """
    return np.int64 if bound < MOST_SUM else object


def root_above(square: int) -> float:
    """A float that is not below the root of an integer, and at most one step above the nearest."""
    root = math.sqrt(square)
    while Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root
