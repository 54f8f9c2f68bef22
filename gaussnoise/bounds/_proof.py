"""What a bound rests on."""

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domains import AbstractDomain

from .._noise import OptimalNoise
from .._sensitivity import Relation
from .._solve import optimal_noise
from ..errors import ConvergenceWarning

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


def solved(domain: AbstractDomain, p: float, neighbors: Relation, tol: float) -> OptimalNoise:
    """Noise whose certificate is what counts: a gap left open is told by the bound, not by a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return optimal_noise(domain, p, neighbors, tol)
