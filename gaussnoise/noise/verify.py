"""The check of both bounds of an answer, from its domain and stored numbers."""

from typing import TYPE_CHECKING

import numpy as np

from domains.floats import Array

from ..errors import CertificateError
from ..numerics.rounding import ROUNDING_MARGIN
from .agreement import ReplaceWithin
from .certificates.certificate import Verification
from .covariance import FactorCovariance
from .policy import PolicyGraph
from .proportion import AddInProportion
from .sensitivity import check_relation

if TYPE_CHECKING:
    from .optimal_noise import OptimalNoise


def verify(noise: "OptimalNoise") -> Verification:
    """Return recomputed bounds; raise CertificateError if ``noise`` claims better bounds."""
    numbers = [_in_memory(noise.center)]
    if isinstance(noise.covariance, FactorCovariance):
        numbers.append(noise.covariance.unit_factor)
    if not all(np.isfinite(array).all() for array in numbers):
        raise CertificateError("verify: expected finite numbers, got NaN or infinity")
    if not noise.p >= 2:
        raise CertificateError(f"verify: expected p >= 2, got {noise.p!r}")
    if noise.shifted and noise.neighbors != "replace":
        raise CertificateError(
            "verify: an ellipsoid around K says nothing about sums: expected neighbors='replace'"
        )
    if isinstance(noise.neighbors, PolicyGraph):
        check_relation("verify", noise.neighbors, noise.domain)
    elif isinstance(noise.neighbors, ReplaceWithin | AddInProportion):
        noise.neighbors.check("verify", noise.domain)
    elif noise.neighbors not in ("replace", "add-remove"):
        raise CertificateError(
            "verify: expected neighbors='replace', 'add-remove' or a policy graph, got another"
        )
    if noise.center.shape != (noise.domain.dim,):
        raise CertificateError(
            f"verify: expected a center of shape ({noise.domain.dim},), got {noise.center.shape}"
        )
    if not noise.shifted and _in_memory(noise.center).any():
        raise CertificateError("verify: expected a center of zeros without shift")
    checks = noise.certificate.check(
        noise.problem, noise.covariance, noise.center, noise.sensitivity_squared
    )
    worst = Verification(
        gamma=max(f.gamma for f in checks),
        gamma_lower=min(f.gamma_lower for f in checks),
        enclosure=max(f.enclosure for f in checks),
        sensitivity_squared=max(f.sensitivity_squared for f in checks),
        rounding=max(f.rounding for f in checks),
    )
    # this comparison is false for NaN, so NaN is refused
    if not worst.enclosure <= 1:
        raise CertificateError(
            "verify: too little noise: expected z' M⁺ z <= 1 on the set, recomputed "
            f"{worst.enclosure!r}"
        )
    if not worst.sensitivity_squared <= noise.sensitivity_squared * (1 + 8 * ROUNDING_MARGIN):
        raise CertificateError(
            f"verify: too little noise: stored sensitivity² {noise.sensitivity_squared!r}, "
            f"recomputed {worst.sensitivity_squared!r}"
        )
    if not worst.gamma <= noise.gamma:
        raise CertificateError(f"verify: stored gamma {noise.gamma!r}, recomputed {worst.gamma!r}")
    if not noise.gamma_lower <= noise.gamma:
        raise CertificateError(
            f"verify: stored gamma_lower {noise.gamma_lower!r} > gamma {noise.gamma!r}"
        )
    for f in checks:
        if not f.gamma_lower >= noise.gamma_lower * (1 - f.rounding - 8 * ROUNDING_MARGIN):
            raise CertificateError(
                f"verify: stored gamma_lower {noise.gamma_lower!r}, recomputed {f.gamma_lower!r}"
            )
    return worst


def _in_memory(array: Array) -> Array:
    """Return the array, or only its first entry if one zero in memory stands for all entries."""
    return array if any(array.strides) else array[:1]
