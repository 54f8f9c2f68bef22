"""Both bounds of an answer, recomputed from its domain and its stored numbers by another way than the solver's."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from domains import FiniteSet, Marginals

from ._certificate import ROUNDING_MARGIN, PointCertificate, UniformCertificate
from ._covariance import MarginalCovariance
from ._feasibility import check_range, strategy
from ._residuals import rank, residual_subsets, subsets_of
from ._sensitivity import largest_pair, marginal_sensitivity, sensitivity_points
from .errors import CertificateError

if TYPE_CHECKING:
    from ._noise import OptimalNoise

# marginals are checked record by record as well when the full table is at most this large
_EXPLICIT_CELLS = 512


@dataclass(frozen=True)
class Verification:
    """What :meth:`OptimalNoise.verify` could recompute.

    Attributes:
        gamma: upper end, from the row norms of the stored factor.
        gamma_lower: lower end, from the dual witness.
        enclosure: largest z' M⁺ z over the set M encloses (the sensitivity set, or K − center).
        sensitivity_squared: upper bound on s' M⁺ s over the sensitivity set.
    """

    gamma: float
    gamma_lower: float
    enclosure: float
    sensitivity_squared: float


def verify(noise: "OptimalNoise") -> Verification:
    """Recompute, compare with what ``noise`` claims, and raise CertificateError if it claims more."""
    if noise.p != 2:
        raise CertificateError(f"verify: expected p = 2, got {noise.p!r}")
    if noise.shifted and noise.neighbors != "replace":
        raise CertificateError("verify: an ellipsoid around K says nothing about sums: expected neighbors='replace'")
    if isinstance(noise.covariance, MarginalCovariance):
        found = [_by_subsets(noise, noise.covariance)]
        if noise.domain.cardinality <= _EXPLICIT_CELLS:
            found.append(_by_points(noise, noise.domain.to_finite_set()))
    else:
        found = [_by_points(noise, noise.domain.to_finite_set())]
    worst = Verification(
        gamma=max(f.gamma for f in found),
        gamma_lower=min(f.gamma_lower for f in found),
        enclosure=max(f.enclosure for f in found),
        sensitivity_squared=max(f.sensitivity_squared for f in found),
    )
    # written so that NaN fails
    if not worst.enclosure <= 1:
        raise CertificateError(
            f"verify: too little noise: expected z' M⁺ z <= 1 on the set, recomputed {worst.enclosure!r}"
        )
    if not worst.sensitivity_squared <= noise.sensitivity_squared * (1 + 8 * ROUNDING_MARGIN):
        raise CertificateError(
            f"verify: too little noise: stored sensitivity² {noise.sensitivity_squared!r}, "
            f"recomputed {worst.sensitivity_squared!r}"
        )
    if not worst.gamma <= noise.gamma:
        raise CertificateError(f"verify: stored gamma {noise.gamma!r}, recomputed {worst.gamma!r}")
    if not noise.gamma_lower <= noise.gamma:
        raise CertificateError(f"verify: stored gamma_lower {noise.gamma_lower!r} > gamma {noise.gamma!r}")
    if not worst.gamma_lower >= noise.gamma_lower * (1 - ROUNDING_MARGIN):
        raise CertificateError(f"verify: stored gamma_lower {noise.gamma_lower!r}, recomputed {worst.gamma_lower!r}")
    return worst


def _by_points(noise: "OptimalNoise", domain: FiniteSet) -> Verification:
    """The bracket against listed points: QR with extended-precision residuals, and singular values."""
    factor = noise.covariance.factor()
    enclosed = domain.points - noise.center if noise.shifted else sensitivity_points(domain, noise.neighbors)
    size = float(np.abs(enclosed).max()) or 1.0
    found = strategy(factor / size, enclosed / size, precision=np.longdouble)
    check_range(found, np.abs(domain.points).max(axis=0) / size)
    enclosure = float(found.lengths.max()) ** 2
    variances = np.square((factor / size).astype(np.longdouble)).sum(axis=1)
    gamma = size * (float(np.linalg.norm(np.sqrt(variances).astype(np.float64), noise.p)) + float(found.outside.sum()))
    if isinstance(noise.covariance, MarginalCovariance):
        moved = domain.points - domain.points.mean(axis=0) if noise.shifted else domain.points
        lower = float(np.linalg.svd(moved, compute_uv=False).sum()) / math.sqrt(len(moved))
    else:
        lower = _checked_witness(noise, domain).lower_bound()
    return Verification(gamma, lower, enclosure, largest_pair(found) if noise.shifted else enclosure)


def _checked_witness(noise: "OptimalNoise", domain: FiniteSet) -> PointCertificate:
    """The certificate, once it is known to be a measure on the set and to weigh coordinates within the dual ball."""
    witness = noise.certificate
    members = domain.points if noise.shifted else sensitivity_points(domain, noise.neighbors)
    rows = {row.tobytes() for row in members + 0.0}
    if (
        not isinstance(witness, PointCertificate)
        or witness.centered != noise.shifted
        or not all(row.tobytes() in rows for row in np.ascontiguousarray(witness.points) + 0.0)
        or witness.weights.shape != (len(witness.points),)
        or not ((witness.weights > 0) & np.isfinite(witness.weights)).all()
        or witness.coordinate_weights.shape != (domain.dim,)
        or not ((witness.coordinate_weights >= 0) & (witness.coordinate_weights <= 1)).all()
    ):
        raise CertificateError("verify: the certificate is not a measure on the sensitivity set")
    return witness


def _by_subsets(noise: "OptimalNoise", covariance: MarginalCovariance) -> Verification:
    """The bracket of a marginal covariance, in rational arithmetic over attribute subsets."""
    domain = noise.domain
    if not noise.shifted and noise.neighbors != "add-remove":
        raise CertificateError("verify: residual noises of unit sensitivity protect sums: expected 'add-remove'")
    if domain is not covariance.domain or not isinstance(domain, Marginals):
        raise CertificateError("verify: the covariance belongs to another domain")
    expected = {T for T in residual_subsets(domain.subsets, domain.sizes) if T or not noise.shifted}
    if covariance.variances.keys() != expected or not all(0 < v < math.inf for v in covariance.variances.values()):
        raise CertificateError("verify: expected a positive variance for every residual of the marginals")
    variances = {T: Fraction(variance) for T, variance in covariance.variances.items()}
    enclosure = sum((Fraction(rank(T, domain.sizes), domain.cells(T)) / v for T, v in variances.items()), Fraction(0))
    total = Fraction(0)
    for S, weight in zip(domain.subsets, domain.weights, strict=True):
        inside = (T for T in subsets_of(S) if T in variances)
        summed = sum((variances[T] * rank(T, domain.sizes) * domain.cells(T) for T in inside), Fraction(0))
        total += Fraction(weight) ** 2 * summed / domain.cells(S)
    sensitivity = (
        marginal_sensitivity(domain, covariance.variances, noise.neighbors) if noise.shifted else float(enclosure)
    )
    lower = UniformCertificate(domain, signed=not noise.shifted).lower_bound()
    return Verification(math.sqrt(total), lower, float(enclosure), sensitivity)
