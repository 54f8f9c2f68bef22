"""The common base of the lattices of points and of bodies: integer queries and decoding."""

import math

import numpy as np
from numpy.typing import NDArray

from .sampler import IntegerQuery


class AbstractLattice:
    """Noisy integer answers of ``rank`` coordinates, in steps of a fine lattice.

    The strategy is the query that is answered with noise. One unit of its answers is 2^bits lattice
    steps.
    """

    bits: int
    query: IntegerQuery
    unit_factor: NDArray[np.float64]

    @property
    def rank(self) -> int:
        return self.unit_factor.shape[1]

    @property
    def scale(self) -> float:
        return self.query.scale if self.rank else 0.0

    @property
    def noise_scale(self) -> float:
        """The standard deviation of the drawn noise, in units of 2^bits lattice steps."""
        return math.ldexp(self.scale, -self.bits)

    def draw(self) -> list[int]:
        return self.query.draw(self.rank) if self.rank else []
