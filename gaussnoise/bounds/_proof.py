"""What a bound rests on."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._noise import OptimalNoise

Array = NDArray[np.float64]


class Proof(NamedTuple):
    """A certificate's numbers.

    Attributes:
        gamma_lower: lower end of γ°.
        spectrum: the eigenvalues that add up to it, and their multiplicities.
        gap: by how much it may be short of γ°, relative; NaN where that is not known.
    """

    gamma_lower: float
    spectrum: tuple[Array, Array]
    gap: float = math.nan

    @staticmethod
    def of(noise: OptimalNoise) -> "Proof":
        """That of solved noise."""
        return Proof(noise.gamma_lower, noise.certificate.spectrum(), noise.gap)
