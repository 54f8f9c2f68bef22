"""Weights for a longer stream, from the optimal ones of a shorter stream.

The coefficients of A⁻¹ must be the same at every tick, in both streams.
"""

import numpy as np

from domains.floats import Array

_NEAR = 0.65  # the ends reach over this power of the shorter length
_STEEP = 4.0  # the effect of an end fades with this power of the distance from it


def is_same_everywhere(bands: Array) -> bool:
    """Return whether the coefficients of A⁻¹ are those of any shorter stream too."""
    return all((band[m:] == band[m]).all() for m, band in enumerate(bands))


def stretched(weights: Array, n: int) -> Array:
    """Return logarithms of weights for n ticks, the largest of them zero.

    In the middle, weights depend on the share of the stream that is over; near both ends, on the
    number of ticks to the end. In between they are close to a power of this number, so that the
    parts differ by a factor only.

    Args:
        weights: optimal weights of fewer ticks, shape (m,), positive.
        n: number of ticks, more than m.
    """
    logarithms, m = np.log(weights), len(weights)
    middle = np.interp((np.arange(n) + 0.5) * m / n - 0.5, np.arange(m), logarithms)
    ticks = np.arange(1.0, m // 2 + 1)
    share = 1 / (1 + (m**_NEAR / ticks) ** _STEEP)  # share of the rule for the middle
    between = share * (1 - share) / ticks
    curve = middle.copy()
    for turn in (slice(None), slice(None, None, -1)):
        far, near = middle[turn][: m // 2], logarithms[turn][: m // 2]
        factor = between @ (far - near) / between.sum()
        curve[turn][: m // 2] = share * far + (1 - share) * (near + factor)
    return curve - curve.max()
