"""The proof of a bound: numbers of a certificate."""

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
    """The numbers of a certificate that a bound needs.

    Attributes:
        gamma_lower: lower end of γ°.
        spectrum: the eigenvalues that sum to it, and their multiplicities.
        gap: relative bound on how far it is below γ°; NaN where that is not known.
        weights: weights of the coordinates, shape (d,); None where they are not listed.
    """

    gamma_lower: float
    spectrum: tuple[Array, Array]
    gap: float = math.nan
    weights: Array | None = None

    @staticmethod
    def of(noise: OptimalNoise) -> "Proof":
        """Return the numbers of solved noise's certificate."""
        certificate = noise.certificate
        is_listed = isinstance(certificate, AxesCertificate | PointCertificate)
        weights = certificate.coordinate_weights if is_listed else None
        values, counts = certificate.spectrum()
        if isinstance(certificate, PointCertificate) and certificate.rows is None:
            # subtract what the rounding of the points may add to any eigenvalue (Weyl)
            values = np.maximum(values - max(float(values @ counts) - noise.gamma_lower, 0.0), 0.0)
        return Proof(noise.gamma_lower, (values, counts), noise.gap, weights)


def noise_of(domain: AbstractDomain, p: float, neighbors: Relation, tol: float) -> OptimalNoise:
    """Return optimal noise; the caller must mention the gap of products, which is often wide."""
    solve = solved if isinstance(domain, Products) else optimal_noise
    return solve(domain, p, neighbors=neighbors, tol=tol)


def solved(domain: AbstractDomain, p: float, neighbors: Relation, tol: float) -> OptimalNoise:
    """Return noise for its certificate: the bound itself shows a gap, so there is no warning."""
    with warnings.catch_warnings(), interrupts_pass():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return optimal_noise(domain, p, neighbors=neighbors, tol=tol)
