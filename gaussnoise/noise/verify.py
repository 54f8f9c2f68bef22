"""Both bounds of an answer, recomputed from its domain and its stored numbers by another way than the solver's."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from domains import AbstractDomain, AbstractFiniteDomain, AbstractPolytope, FiniteSet, Marginals
from domains.algebra.combinators import apart
from domains.oracles.distance import is_near

from ..errors import CertificateError, CovarianceError
from ..numerics.exact import is_small, longest_square
from ..numerics.feasibility import RANGE_TOLERANCE, check_range, row_weights, strategy
from ..numerics.norms import norm
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.bodies.body import Body, about, drift
from ..solvers.tables.residuals import rank, residual_subsets, subsets_of
from .certificate import MarginalCertificate, PointCertificate
from .covariance import Covariance, FactorCovariance, MarginalCovariance
from .marginal_check import explicit_fidelity, is_measure
from .policy import PolicyGraph
from .product_covariance import ProductCovariance
from .sensitivity import check_relation, covered, largest_pair, marginal_sensitivity, members
from .tensor_certificate import TensorCertificate
from .tensor_check import check_tensor

if TYPE_CHECKING:
    from .optimal_noise import OptimalNoise

Array = NDArray[np.float64]

# marginals are checked record by record as well when the full table is at most this large
_EXPLICIT_CELLS = 512
_EXPLICIT_RATIO = 1e9  # of their weights: beyond, columns look dependent to double precision
_LONG_OPERATIONS = 2**26  # products in extended precision, which no BLAS helps: half a second
# dual norms are normalised in double precision; ROUNDING_MARGIN covers what is beyond one
_UNIT = 1 + 2.0**-48


@dataclass(frozen=True)
class Verification:
    """What :meth:`OptimalNoise.verify` could recompute.

    Attributes:
        gamma: upper end, from the row norms of the stored factor.
        gamma_lower: lower end, from the dual witness.
        enclosure: largest z' M⁺ z over the set M encloses (the sensitivity set, or K − center).
        sensitivity_squared: upper bound on s' M⁺ s over the sensitivity set.
        rounding: the share of ``gamma_lower`` that was given up to the worst case of rounding, and to what membership
            in a body forgives: 1e-9 of its size.
    """

    gamma: float
    gamma_lower: float
    enclosure: float
    sensitivity_squared: float
    rounding: float = 0.0


def verify(noise: "OptimalNoise") -> Verification:
    """Recompute, compare with what ``noise`` claims, and raise CertificateError if it claims more."""
    if not _is_finite(noise):
        raise CertificateError("verify: expected finite numbers, got NaN or infinity")
    if not noise.p >= 2:
        raise CertificateError(f"verify: expected p >= 2, got {noise.p!r}")
    if noise.shifted and noise.neighbors != "replace":
        raise CertificateError("verify: an ellipsoid around K says nothing about sums: expected neighbors='replace'")
    if isinstance(noise.neighbors, PolicyGraph):
        check_relation("verify", noise.neighbors, noise.domain)
    elif noise.neighbors not in ("replace", "add-remove"):
        raise CertificateError("verify: expected neighbors='replace', 'add-remove' or a policy graph, got another")
    if noise.center.shape != (noise.domain.dim,):
        raise CertificateError(f"verify: expected a center of shape ({noise.domain.dim},), got {noise.center.shape}")
    if not noise.shifted and _in_memory(noise.center).any():
        raise CertificateError("verify: expected a center of zeros without shift")
    if isinstance(noise.covariance, ProductCovariance):
        from .product_noise import check_products

        found = [check_products(noise)]
    elif isinstance(noise.covariance, MarginalCovariance):
        found = [_by_subsets(noise, noise.covariance)]
        if _is_explicit(noise.covariance.domain):
            found.append(_by_points(noise, noise.covariance.domain.to_finite_set()))
    elif isinstance(noise.certificate, PointCertificate) and noise.certificate.rows is not None:
        found = [_by_points(noise, _listed(noise.domain))]
    elif isinstance(noise.certificate, TensorCertificate):
        enclosure, error = check_tensor(noise)
        sensitivity = 4 * enclosure if noise.shifted else enclosure
        found = [Verification(error, noise.certificate.lower_bound(), enclosure, sensitivity)]
    else:
        found = [_by_oracle(noise)]
    worst = Verification(
        gamma=max(f.gamma for f in found),
        gamma_lower=min(f.gamma_lower for f in found),
        enclosure=max(f.enclosure for f in found),
        sensitivity_squared=max(f.sensitivity_squared for f in found),
        rounding=max(f.rounding for f in found),
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
    for f in found:
        if not f.gamma_lower >= noise.gamma_lower * (1 - f.rounding - 8 * ROUNDING_MARGIN):
            raise CertificateError(f"verify: stored gamma_lower {noise.gamma_lower!r}, recomputed {f.gamma_lower!r}")
    return worst


def _in_memory(array: Array) -> Array:
    """The numbers that are really stored: one, where a single zero stands for all."""
    return array if any(array.strides) else array[:1]


def _is_explicit(domain: Marginals) -> bool:
    """Whether listing the records checks anything: few enough for extended precision, and of like weights."""
    return (
        domain.cardinality <= _EXPLICIT_CELLS
        and domain.cardinality**2 * domain.dim <= _LONG_OPERATIONS
        and max(domain.weights) <= _EXPLICIT_RATIO * min(domain.weights)
    )


def _is_finite(noise: "OptimalNoise") -> bool:
    """Whether all that is stored is a number."""
    arrays = [_in_memory(noise.center)]
    if isinstance(noise.covariance, FactorCovariance):
        arrays.append(noise.covariance.unit_factor)
    witness = noise.certificate
    if isinstance(witness, PointCertificate):
        arrays += [witness.points, witness.weights, witness.coordinate_weights]
        arrays += [] if witness.origin is None else [witness.origin]
    elif isinstance(witness, TensorCertificate):
        arrays += [witness.atoms, witness.weights]
    return all(np.isfinite(array).all() for array in arrays)


def _listed(domain: AbstractDomain) -> FiniteSet:
    """The points whose hull the domain is."""
    if isinstance(domain, AbstractFiniteDomain):
        return domain.to_finite_set()
    if isinstance(domain, AbstractPolytope):
        return FiniteSet(domain.vertices)
    raise CertificateError(f"verify: the certificate names listed points, which {type(domain).__name__} has not")


def _by_oracle(noise: "OptimalNoise") -> Verification:
    """The bracket against the domain's own oracles: lengths in coordinates by a singular value decomposition."""
    domain = noise.domain
    if noise.neighbors not in ("replace", "add-remove"):
        raise CertificateError("verify: expected 'replace' or 'add-remove' for a set known through oracles")
    factor, scale = _stored(noise.covariance)
    size = float(np.ldexp(0.5, np.frexp(scale)[1]))
    rest = scale / size
    witness = noise.certificate
    origin = witness.origin if isinstance(witness, PointCertificate) else None
    still, shift = domain, np.zeros(domain.dim)
    if noise.neighbors == "replace" and not (noise.shifted and origin is None):
        still, shift = apart(domain)
    if origin is not None and not np.array_equal(origin, shift):
        raise CertificateError("verify: the certificate was moved to the origin from elsewhere than its domain")
    covered = still - still if noise.neighbors == "replace" and not noise.shifted else still
    body = Body(covered * (1 / size))
    if noise.shifted:
        body = about(covered, noise.center - shift, size, drift(domain, shift))
    rows = row_weights(factor)
    inverse = np.linalg.pinv(factor * rows[:, None], rcond=0.0) * rows
    found = body.enclosure(factor, inverse)
    if (found.outside > RANGE_TOLERANCE * body.sizes).any():
        raise CovarianceError("the covariance leaves some direction of the sensitivity set without noise")
    enclosure = (found.longest / rest) ** 2
    deviations = rest * np.sqrt(np.square(factor.astype(np.longdouble)).sum(axis=1)).astype(np.float64)
    gamma = size * (norm(deviations, noise.p) + float(found.outside.sum()))
    sensitivity = enclosure
    if noise.shifted:
        sensitivity = 4 * enclosure
        if noise.sensitivity_squared < 4:
            both = Body((still - still) * (1 / size)).enclosure(factor, inverse)
            sensitivity = min(sensitivity, (both.longest / rest) ** 2)
    if (
        not isinstance(witness, PointCertificate)
        or not _is_measure(witness, noise)
        or witness.points.shape[1:] != (domain.dim,)
        or not all(_belongs(x, covered) or (not noise.shifted and _belongs(-x, covered)) for x in witness.points)
    ):
        raise CertificateError("verify: the certificate is not a measure on the sensitivity set")
    lower, rounding = _below(witness)
    lower -= Body(covered).rounded(noise.p)
    forgiven = min(Body(covered).forgiven(noise.p) / lower, 1.0) if lower > 0 else 1.0
    return Verification(gamma, max(lower * (1 - forgiven), 0.0), enclosure, sensitivity, rounding + forgiven)


def _belongs(x: Array, domain: AbstractDomain) -> bool:
    """Whether x is a member, or, having been rounded, in the hull of the members up to their slack."""
    return domain.contains(x) or is_near(domain, x)


def _by_points(noise: "OptimalNoise", domain: FiniteSet) -> Verification:
    """The bracket against listed points: QR with extended-precision residuals, rational arithmetic where small."""
    factor, scale = _stored(noise.covariance)
    target = covered(domain, noise.neighbors, shifted=noise.shifted)
    points = domain.points - noise.center if noise.shifted else target.points
    # scale = rest · size with a power of two, by which dividing does not round
    size = float(np.ldexp(0.5, np.frexp(scale)[1]))
    rest = scale / size
    found = strategy(factor, points / size, precision=_precision(points.size * factor.shape[1]))
    check_range(found, np.abs(points).max(axis=0) / size)
    enclosure = (target.longest(found) / rest) ** 2
    if target.rows is not None and is_small(factor, points):
        origin = noise.center if noise.shifted else np.zeros(domain.dim)
        listed = domain.points if noise.shifted else points
        exact = longest_square(factor, listed, origin, row_weights(factor))
        enclosure = float(exact / Fraction(scale) ** 2)
    deviations = rest * np.sqrt(np.square(factor.astype(np.longdouble)).sum(axis=1)).astype(np.float64)
    gamma = size * (norm(deviations, noise.p) + float(target.outside(found).sum()))
    if isinstance(noise.certificate, MarginalCertificate):
        lower, rounding = explicit_fidelity(noise.certificate)
    else:
        lower, rounding = _below(_checked_witness(noise, domain))
    sensitivity = largest_pair(found) / rest**2 if noise.shifted else enclosure
    return Verification(gamma, lower, enclosure, sensitivity, rounding)


def _precision(operations: int) -> type:
    return np.longdouble if operations <= _LONG_OPERATIONS else np.float64


def _stored(covariance: Covariance) -> tuple[Array, float]:
    """A factor and a scale, exactly as they are stored."""
    if isinstance(covariance, FactorCovariance):
        return covariance.unit_factor, covariance.scale
    factor = covariance.factor()
    size = float(np.ldexp(0.5, np.frexp(np.abs(factor).max(initial=0.0))[1]))
    return factor / size, size


def _checked_witness(noise: "OptimalNoise", domain: FiniteSet) -> PointCertificate:
    """The certificate, once it is known to be a measure on the set and to weigh coordinates within the dual ball."""
    witness = noise.certificate
    if (
        not isinstance(witness, PointCertificate)
        or not _is_measure(witness, noise)
        or not _on_the_set(witness, noise, domain)
    ):
        raise CertificateError("verify: the certificate is not a measure on the sensitivity set")
    return witness


def _is_measure(witness: PointCertificate, noise: "OptimalNoise") -> bool:
    """Whether the weights are a measure, and coordinates weighed within the dual ball."""
    w = witness.coordinate_weights
    return bool(
        witness.centered == noise.shifted
        and all(a.dtype == np.float64 for a in (witness.points, witness.weights, w))
        and witness.weights.shape == (len(witness.points),)
        and ((witness.weights > 0) & np.isfinite(witness.weights)).all()
        and w.shape == (noise.domain.dim,)
        and (w >= 0).all()
        and np.linalg.norm(w, np.inf if noise.p == 2 else 1 / (1 - 2 / noise.p)) <= _UNIT
    )


def _on_the_set(witness: PointCertificate, noise: "OptimalNoise", domain: FiniteSet) -> bool:
    """Whether the witness's points are what its rows say, and its rows what the relation allows."""
    rows, relation = witness.rows, noise.neighbors
    if (
        rows is None
        or rows.dtype.kind not in "iu"
        or rows.ndim != 2
        or not ((rows >= 0) & (rows < domain.cardinality)).all()
    ):
        return False
    single = noise.shifted or relation == "add-remove"
    if rows.shape[1] != (1 if single else 2) or not np.array_equal(members(domain.points, rows), witness.points):
        return False
    if not isinstance(relation, PolicyGraph):
        return True
    edges = {tuple(edge) for edge in relation.edges.tolist()}
    return all(i == j or (min(i, j), max(i, j)) in edges for i, j in rows.tolist())


def _below(witness: PointCertificate) -> tuple[float, float]:
    """Lower bound on ``‖W^{1/2} X Λ^{1/2}‖_*``: its inner product with a matrix Q, over a bound on the norm of Q.

    Second, the share of it that was given up to the worst case of rounding.
    """
    points = witness.points - witness.points[0] if witness.centered else witness.points
    size = float(np.abs(points).max(initial=0.0))
    if size == 0:
        return 0.0, 0.0
    precision = _precision(points.size * min(points.shape))
    mass = witness.weights.astype(precision) / witness.weights.astype(precision).sum()
    unit = points.astype(precision) / size
    moved = unit - mass @ unit if witness.centered else unit
    G = np.sqrt(mass)[:, None] * moved * np.sqrt(witness.coordinate_weights.astype(precision))
    left, singular, right = np.linalg.svd(G.astype(np.float64), full_matrices=False)
    kept = singular > len(singular) * np.finfo(np.float64).eps * singular[0]
    U, V = left[:, kept].astype(precision), right[kept].astype(precision)
    eps = float(np.finfo(precision).eps)
    inner = float((U * (G @ V.T)).sum())
    # ‖UV‖² <= ‖U'U‖ ‖VV'‖, each within a Frobenius norm of one
    identity = np.eye(int(kept.sum()))
    excess = sum(float(np.linalg.norm((part - identity).astype(np.float64))) for part in (U.T @ U, V @ V.T))
    blurred = 8 * (max(G.shape) + 8) * eps * float(kept.sum())
    return size * inner / (1 + excess / 2) * (1 - blurred), blurred


def _is_mean(center: Array, domain: Marginals) -> bool:
    """Whether every table's cells share its weight equally, to the last bit: a division gives it anywhere."""
    start = 0
    for S, weight in zip(domain.subsets, domain.weights, strict=True):
        cells = domain.cells(S)
        if not (center[start : start + cells] == weight / cells).all():
            return False
        start += cells
    return True


def _by_subsets(noise: "OptimalNoise", covariance: MarginalCovariance) -> Verification:
    """The bracket of a marginal covariance: variances in rational arithmetic over attribute subsets, one by one."""
    domain, witness = noise.domain, noise.certificate
    if noise.neighbors not in ("replace", "add-remove"):
        raise CertificateError("verify: expected 'replace' or 'add-remove' for marginals")
    if domain is not covariance.domain or not isinstance(domain, Marginals):
        raise CertificateError("verify: the covariance belongs to another domain")
    signed = noise.neighbors == "add-remove"
    expected = {T for T in residual_subsets(domain.subsets, domain.sizes) if T or signed}
    if set(covariance.variances) != expected or not all(0 < v < math.inf for v in covariance.variances.values()):
        raise CertificateError("verify: expected a positive variance for every residual of the marginals")
    if noise.shifted and not _is_mean(noise.center, domain):
        raise CertificateError("verify: expected the mean of all records as the center of marginals")
    variances = {T: Fraction(variance) for T, variance in covariance.variances.items()}
    enclosure = float(sum((Fraction(rank(T, domain.sizes), domain.cells(T)) / v for T, v in variances.items()), 0))
    sensitivity = enclosure
    if noise.neighbors == "replace":
        sensitivity = marginal_sensitivity(domain, covariance.variances, "replace")
        enclosure = enclosure if noise.shifted else sensitivity
    deviations = []
    for S, weight in zip(domain.subsets, domain.weights, strict=True):
        inside = (T for T in subsets_of(S) if T in variances)
        summed = sum((variances[T] * rank(T, domain.sizes) * domain.cells(T) for T in inside), Fraction(0))
        deviations.append(weight * math.sqrt(summed) / domain.cells(S) * float(domain.cells(S)) ** (1 / noise.p))
    protected = "gamma" if noise.shifted else noise.neighbors
    if (
        not isinstance(witness, MarginalCertificate)
        or witness.domain is not domain
        or witness.p != noise.p
        or witness.protected != protected
        or not is_measure(witness)
    ):
        raise CertificateError("verify: the certificate is not a measure on the records of these marginals")
    return Verification(norm(np.array(deviations), noise.p), witness.lower_bound(), enclosure, sensitivity)
