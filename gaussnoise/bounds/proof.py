"""The numbers of a certificate that prove a bound."""

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domains.domain import AbstractDomain
from domains.tables.products import Products

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
        gap: relative bound on how far ``gamma_lower`` is below γ°; NaN if unknown.
        weights: weights of the coordinates, shape (d,); None where they are not listed.
    """

    gamma_lower: float
    spectrum: tuple[Array, Array]
    gap: float = math.nan
    weights: Array | None = None

    @staticmethod
    def of(noise: OptimalNoise) -> "Proof":
        """Return the numbers from the certificate of solved noise."""
        certificate = noise.certificate
        is_listed = isinstance(certificate, AxesCertificate | PointCertificate)
        weights = certificate.coordinate_weights if is_listed else None
        values, counts = certificate.spectrum()
        if isinstance(certificate, PointCertificate) and certificate.rows is None:
            # rounding of the points may raise any eigenvalue by as much (Weyl's inequality):
            # subtract it
            values = np.maximum(values - max(float(values @ counts) - noise.gamma_lower, 0.0), 0.0)
        return Proof(noise.gamma_lower, (values, counts), noise.gap, weights)


def noise_of(domain: AbstractDomain, p: float, neighbors: Relation, tol: float) -> OptimalNoise:
    """Return optimal noise without a warning for products; their callers show the wide gap."""
    solve = solved if isinstance(domain, Products) else optimal_noise
    return solve(domain, p, neighbors=neighbors, tol=tol)


def solved(domain: AbstractDomain, p: float, neighbors: Relation, tol: float) -> OptimalNoise:
    """Return optimal noise without a warning about its gap, which the bound itself shows."""
    with warnings.catch_warnings(), interrupts_pass():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return optimal_noise(domain, p, neighbors=neighbors, tol=tol)
