"""Anderson's acceleration of a fixed-point iteration, in logarithms of weights."""

import itertools

import numpy as np

from domains.floats import Array

MEMORY = 8  # number of past points that are combined
LONGEST = 3.0  # largest step, in the logarithm of a weight


def accelerated(trail: list[tuple[Array, Array]], size: Array) -> Array:
    """Return the next point from pairs of a past point and its step, by weighted least squares."""
    point, step = trail[-1]
    if len(trail) > 1:
        pairs = list(itertools.pairwise(trail))
        changes = np.array([(new - old) * size for (_, old), (_, new) in pairs])
        shares = np.linalg.lstsq(changes.T, step * size, rcond=1e-10)[0]
        step = step - shares @ np.array([b + d - a - c for (a, c), (b, d) in pairs])
    return point + np.clip(step, -LONGEST, LONGEST)


def probability(logarithms: Array) -> Array:
    """Return exp(logarithms), divided by its sum."""
    shares = np.exp(logarithms - logarithms.max())
    return shares / shares.sum()
