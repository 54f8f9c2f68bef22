"""Newton's method for smooth changes of the weights of ticks, beside multiplicative steps.

Multiplicative steps for the largest error (p = ∞) hardly reduce smooth deviations from the optimum.
Newton's method is for these deviations.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import Array

from . import banded, bidiagonal
from .inverse_root import InverseRoot, inverse_root

JUMP = 0.5  # weights of neighbouring ticks whose logarithms differ by more are changed separately
_BETWEEN = 0.25  # distance of knots, in the logarithm of the distance from the nearest jump
_MOST, _MOST_NUMBERS = 128, 2**24  # largest number of changes, and of numbers in them
_DIFFERENCE = 1e-5  # change of logarithms of weights for a difference quotient
_DIGITS = 6  # correct digits of leverages whose differences are taken
_LONGEST = 3.0  # largest step of Newton's method, in the logarithm of a weight


@dataclass(frozen=True, eq=False)
class SmoothNewton:
    """Derivatives of log leverages by smooth changes of log weights.

    The weights of answers are those of contributions in reverse order.

    Attributes:
        changes: shape (n, k); each is one at its own tick, and zero at the ticks of the others.
        slopes: shape (n, k), the derivatives of the leverages by each change.
    """

    changes: Array
    slopes: Array

    @classmethod
    def at(cls, bands: Array, weights: Array, root: InverseRoot) -> Self | None:
        """Return the derivatives, or None if the weights have too many jumps.

        ``root`` approximates x^-½ at these weights.
        """
        changes = _smooth(np.log(weights))
        if changes is None:
            return None
        points = [weights * np.exp(_DIFFERENCE * change) for change in changes.T]
        base, *others = (np.log(z) for z in _leverages(bands, [weights, *points], root))
        return cls(changes, np.array([(z - base) / _DIFFERENCE for z in others]).T)

    def step(self, weights: Array, move: Array, barrier: float) -> Array:
        """Return the sum of Newton's step and the multiplicative step, in logarithms of weights.

        Args:
            weights: the present weights of contributions, shape (n,).
            move: the multiplicative step from there, shape (n,).
            barrier: τ, the sum that the barrier adds to weighted leverages.
        """
        # those of the barrier are known at the present weights
        held = barrier / (len(weights) * weights * np.exp(move) * (1 + barrier))
        slopes = self.slopes - held[:, None] * self.changes
        weighted = weights[:, None] * self.changes
        size = 1 / np.sqrt(np.einsum("ij,ij->j", weighted, self.changes))
        mass = size * weighted.sum(axis=0)
        # a common factor of all weights changes nothing: the step has none
        curved = size[:, None] * (weighted.T @ slopes) * size - np.outer(mass, mass)
        found = -size * np.linalg.lstsq(curved, size * (weighted.T @ move), rcond=None)[0]
        return np.clip(self.changes @ found, -_LONGEST, _LONGEST) + move + slopes @ found


def _knots(logarithms: Array) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the number of jumps before each tick, and whether the tick is a knot."""
    sizes = np.abs(np.diff(logarithms, prepend=logarithms[0]))
    jumps = np.cumsum(sizes > JUMP, dtype=np.intp)
    ticks = np.arange(len(jumps))
    first, last = np.searchsorted(jumps, jumps), np.searchsorted(jumps, jumps, "right") - 1
    # knots are at equal distances in the logarithm of the distance from the nearest jump
    near = np.log(np.minimum(ticks - first, last - ticks) + 1.0)
    passed = np.floor(np.cumsum(np.abs(np.diff(near, prepend=0.0))) / _BETWEEN)
    return jumps, (ticks == first) | (ticks == last) | (np.diff(passed, prepend=0.0) > 0)


def _smooth(logarithms: Array) -> Array | None:
    """Return smooth changes, (n, k), as cubic splines between jumps; None for too many jumps."""
    jumps, is_knot = _knots(logarithms)
    count = int(is_knot.sum())
    if count > _MOST or count * len(jumps) > _MOST_NUMBERS:
        return None
    changes = []
    for part in range(int(jumps[-1]) + 1):
        ticks = np.flatnonzero(jumps == part)
        knots = ticks[is_knot[ticks]]
        ones = np.eye(len(knots))
        # one at a knot, zero at all others
        if len(ticks) > 1:
            ones = scipy.interpolate.CubicSpline(knots, ones)(ticks)
        changes.append(ones)
    return scipy.linalg.block_diag(*changes)


def _leverages(bands: Array, several: list[Array], root: InverseRoot) -> Iterator[Array]:
    """Yield the leverages, (n,), for each array of weights; answers have the weights reversed."""
    # the first and last shift but one are a little outside of the interval
    root = inverse_root(float(root.shifts[1]), float(root.shifts[-2]), _DIGITS)
    if len(bands) > 2:
        pairs = [(weights, weights[::-1]) for weights in several]
        sums = banded.second_diagonals(bands, pairs, root.sizes, root.shifts)
        yield from ((z / weights[::-1])[::-1] for z, weights in zip(sums, several, strict=True))
        return
    for weights in several:
        lengths = np.sqrt(weights * weights[::-1])
        below = np.append(0.0, np.sqrt(weights[1:] * weights[::-1][:-1]))
        below[1:] = np.abs(bands[1, 1:]) / below[1:]
        z = bidiagonal.second_diagonal(np.abs(bands[0]) / lengths, below, root.sizes, root.shifts)
        yield (z / weights[::-1])[::-1]
