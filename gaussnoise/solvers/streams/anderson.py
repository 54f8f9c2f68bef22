"""Anderson's acceleration of a fixed-point iteration, in logarithms of weights."""

import itertools

import numpy as np

from domains.floats import Array

MEMORY = 8  # number of past points that are combined
LONGEST = 3.0  # largest step, in the logarithm of a weight


def accelerated(trail: list[tuple[Array, Array]], size: Array) -> Array:
    """Return the next point of a fixed-point iteration, by Anderson's acceleration.

    ``trail`` are past points, each with the step that the plain iteration takes from there. The
    last point and its step are combined with the changes between past points. The combination
    minimises the combined step, with entries weighted by ``size``.
    """
    point, step = trail[-1]
    if len(trail) > 1:
        pairs = list(itertools.pairwise(trail))
        changes = np.array([(new - old) * size for (_, old), (_, new) in pairs])
        shares = np.linalg.lstsq(changes.T, step * size, rcond=1e-10)[0]
        step = step - shares @ np.array([b + d - a - c for (a, c), (b, d) in pairs])
    return point + np.clip(step, -LONGEST, LONGEST)


def probability(logarithms: Array) -> Array:
    """Return probabilities with these logarithms, up to a common factor: they sum to one."""
    shares = np.exp(logarithms - logarithms.max())
    return shares / shares.sum()
