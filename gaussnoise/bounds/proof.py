"""What a bound rests on."""

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domains import AbstractDomain, Products

from ..errors import ConvergenceWarning
from ..noise.certificates.axes import AxesCertificate
from ..noise.certificates.points import PointCertificate
from ..noise.optimal_noise import OptimalNoise
from ..noise.problem import Relation
from ..noise.solve import optimal_noise
from ..solvers.progress import interrupts_pass

Array = NDArray[np.float64]


class Proof(NamedTuple):
    """A certificate's numbers.

    Attributes:
        gamma_lower: lower end of γ°.
        spectrum: the eigenvalues that add up to it, and their multiplicities.
        gap: by how much it may be short of γ°, relative; NaN where that is not known.
        weights: of the coordinates, shape (d,); None where they are not listed.
    """

    gamma_lower: float
    spectrum: tuple[Array, Array]
    gap: float = math.nan
    weights: Array | None = None

    @staticmethod
    def of(noise: OptimalNoise) -> "Proof":
        """That of solved noise."""
        certificate = noise.certificate
        is_listed = isinstance(certificate, AxesCertificate | PointCertificate)
        weights = certificate.coordinate_weights if is_listed else None
        values, counts = certificate.spectrum()
        if isinstance(certificate, PointCertificate) and certificate.rows is None:
            # what the rounding of the points may add to any of them (Weyl)
            values = np.maximum(values - max(float(values @ counts) - noise.gamma_lower, 0.0), 0.0)
        return Proof(noise.gamma_lower, (values, counts), noise.gap, weights)


def noise_of(domain: AbstractDomain, p: float, neighbors: Relation, tol: float) -> OptimalNoise:
    """Optimal noise; of the gap of products, which is often open, the caller has to tell."""
    return (solved if isinstance(domain, Products) else optimal_noise)(domain, p, neighbors, tol)


def solved(domain: AbstractDomain, p: float, neighbors: Relation, tol: float) -> OptimalNoise:
    """Noise whose certificate is what counts: the bound itself, no warning, tells of a gap."""
    with warnings.catch_warnings(), interrupts_pass():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return optimal_noise(domain, p, neighbors, tol)
