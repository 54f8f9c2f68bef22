"""A measure on points, and its check against a list of points or by a body's oracles."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from domains.domain import AbstractDomain
from domains.errors import DomainTooLargeError
from domains.floats import EPS, Array, power_of_two
from domains.oracles.distance import is_near
from domains.sets.finite import FiniteSet

from ...errors import CertificateError, CovarianceError
from ...numerics.exact import is_small, longest_square
from ...numerics.feasibility import RANGE_TOLERANCE, check_range, row_weights, whiten
from ...numerics.norms import dual_ball_norm, norm, nuclear_norm_below, row_lengths
from ...numerics.precision import precision_for
from ...numerics.rounding import ROUNDING_MARGIN
from ...numerics.span import placed
from ...solvers.bodies.body import Body, about
from ..covariance import AbstractCovariance, FactorCovariance
from ..policy import PolicyGraph
from ..problem import Problem
from ..sensitivity import covered, largest_pair, members
from .certificate import Certificate, Stored, Verification

# dual norms are normalised in double precision; ROUNDING_MARGIN covers an excess over one
_UNIT = 1 + 2.0**-48


@final
@dataclass(frozen=True, eq=False)
class PointCertificate(Certificate):
    """A lower bound's proof: a probability measure on listed points, and coordinate weights.

    Attributes:
        points: shape (k, d), points of the sensitivity set (one of each pair ±x), or of K itself if
            ``centered``.
        weights: shape (k,), positive, summing to one.
        coordinate_weights: w, shape (d,), with ``‖w‖_{s*} <= 1``, s* = p/(p−2): ones at p = 2.
        rows: for each point its index in the domain's list, shape (k, 1), or the two indices whose
            difference it is, shape (k, 2); None for a domain that is known by oracles.
        centered: whether the bound uses the measure's covariance, as for γ_p(K), instead of its
            second moment.
        origin: shape (d,); ``points`` are in K − origin, so that a large distance of K from zero
            causes no rounding. None if they are in K.
    """

    points: Array
    weights: Array
    coordinate_weights: Array
    rows: NDArray[np.intp] | None
    centered: bool
    origin: Array | None = None

    def lower_bound(self) -> float:
        values, _ = self.spectrum()
        return float(values.sum() * (1 - ROUNDING_MARGIN))

    def spectrum(self) -> tuple[Array, Array]:
        return self._spectrum

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        # subtract one of the points: the points' common part cancels before anything is rounded
        points = self.points - self.points[0] if self.centered else self.points
        size = np.abs(points).max(initial=0.0)
        if size == 0:
            return np.zeros(1), np.ones(1)
        mass = self.weights / math.fsum(self.weights)
        scaled = points / size  # in place from here on: all differences of 512 points take 512 MB
        if self.centered:
            scaled -= mass @ scaled
        scaled *= np.sqrt(mass)[:, None]
        scaled *= np.sqrt(self.coordinate_weights)
        # a triangular factor has the same nuclear norm, and usually a tenth of the entries
        triangle = np.linalg.qr(scaled, mode="r") if len(scaled) > 1.5 * scaled.shape[1] else scaled
        singular = np.linalg.svd(triangle, compute_uv=False)
        rounding = 8 * EPS * singular[0]
        return size * np.maximum(singular - rounding, 0.0), np.ones(len(singular))

    def check(
        self, problem: Problem, covariance: AbstractCovariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Check that the points are in the set, by the domain's list of points or its oracles."""
        numbers = [
            self.points,
            self.weights,
            self.coordinate_weights,
            *([] if self.origin is None else [self.origin]),
        ]
        if not all(np.isfinite(array).all() for array in numbers):
            raise CertificateError("verify: expected finite numbers, got NaN or infinity")
        if self.rows is None:
            return [_by_oracle(self, problem, covariance, center, claimed)]
        domain = _listed(problem.domain)
        if not _is_measure(self, problem) or not _on_the_set(self, problem, domain):
            raise CertificateError(
                "verify: the certificate is not a measure on the sensitivity set"
            )
        return [check_points(problem, covariance, center, domain, _proven_bound(self))]

    def encode(self) -> Stored:
        arrays: dict[str, NDArray[Any]] = {
            "certificate_points": self.points,
            "certificate_weights": self.weights,
            "coordinate_weights": self.coordinate_weights,
        }
        if self.rows is not None:
            arrays["certificate_rows"] = self.rows
        if self.origin is not None:
            arrays["certificate_origin"] = self.origin
        return {}, arrays

    @classmethod
    def decode(
        cls, problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        return cls(
            arrays["certificate_points"],
            arrays["certificate_weights"],
            arrays["coordinate_weights"],
            arrays.get("certificate_rows"),
            problem.shifted,
            arrays.get("certificate_origin"),
        )


def _listed(domain: AbstractDomain) -> FiniteSet:
    """Return points whose convex hull is the domain; raise CertificateError if there is no list."""
    listed = domain._listed()
    if listed is None:
        raise CertificateError(
            f"verify: the certificate names listed points, which {type(domain).__name__} has not"
        )
    return listed


def _by_oracle(
    witness: "PointCertificate",
    problem: Problem,
    covariance: AbstractCovariance,
    center: Array,
    claimed: float,
) -> Verification:
    """Return both bounds for a domain without listed points, recomputed by its oracles."""
    domain = problem.domain
    if problem.neighbors not in ("replace", "add-remove"):
        raise CertificateError(
            "verify: expected 'replace' or 'add-remove' for a set known through oracles"
        )
    factor, scale = _stored(covariance)
    size = power_of_two(scale)
    rest = scale / size
    origin = witness.origin
    still, shift = domain, np.zeros(domain.dim)
    if problem.protected == "replace" or (problem.shifted and origin is not None):
        still, shift = domain._apart()
    if origin is not None and not np.array_equal(origin, shift):
        raise CertificateError(
            "verify: the certificate was moved to the origin from elsewhere than its domain"
        )
    covered = still - still if problem.protected == "replace" else still
    body = Body(covered * (1 / size))
    if problem.shifted:
        body = about(covered, center - shift, size, domain._drift(shift))
    live = (factor != 0).any(axis=1)  # drop constant coordinates, so that they add no rounding
    rows = row_weights(factor)[live]
    inverse = np.linalg.pinv(factor[live] * rows[:, None], rcond=0.0) * rows
    inverse = placed(inverse.T, live).T
    enclosed = body.enclosure(factor, inverse)
    if (enclosed.outside > RANGE_TOLERANCE * body.sizes).any():
        raise CovarianceError(
            "the covariance leaves some direction of the sensitivity set without noise"
        )
    enclosure = (enclosed.longest / rest) ** 2
    deviations = rest * row_lengths(factor)
    gamma = size * (norm(deviations, problem.p) + float(enclosed.outside.sum()))
    sensitivity = enclosure
    if problem.shifted:
        sensitivity = 4 * enclosure
        if claimed < 4:
            both = Body((still - still) * (1 / size)).enclosure(factor, inverse)
            sensitivity = min(sensitivity, (both.longest / rest) ** 2)
    if (
        not _is_measure(witness, problem)
        or witness.points.shape[1:] != (domain.dim,)
        or not all(
            _belongs(x, covered) or (not problem.shifted and _belongs(-x, covered))
            for x in witness.points
        )
    ):
        raise CertificateError("verify: the certificate is not a measure on the sensitivity set")
    lower, rounding = _proven_bound(witness)
    lower -= Body(covered).rounded(problem.p)
    forgiven = min(Body(covered).forgiven(problem.p) / lower, 1.0) if lower > 0 else 1.0
    return Verification(
        gamma, max(lower * (1 - forgiven), 0.0), enclosure, sensitivity, rounding + forgiven
    )


def _belongs(x: Array, domain: AbstractDomain) -> bool:
    """Return whether x is proven to be in the domain, up to the rounding error of x."""
    try:
        return domain.contains(x) or is_near(domain, x)
    except DomainTooLargeError:  # undecided; −x may be proven to be a point of the set
        return False


def check_points(
    problem: Problem,
    covariance: AbstractCovariance,
    center: Array,
    domain: FiniteSet,
    below: tuple[float, float],
) -> Verification:
    """Return both bounds, recomputed for listed points by QR, and in rationals if they are few.

    ``below`` is the certificate's lower bound, and the fraction of it that was subtracted for
    rounding.
    """
    factor, scale = _stored(covariance)
    target = covered(domain, problem)
    points = domain.points - center if problem.shifted else target.points
    # scale = rest · size, where size is a power of two, so that division by it causes no rounding
    size = power_of_two(scale)
    rest = scale / size
    whitened = whiten(factor, points / size, precision=precision_for(points.size * factor.shape[1]))
    check_range(whitened, np.abs(points).max(axis=0) / size)
    enclosure = (target.longest(whitened) / rest) ** 2
    if target.rows is not None and is_small(factor, points):
        origin = center if problem.shifted else np.zeros(domain.dim)
        listed = domain.points if problem.shifted else points
        exact = longest_square(factor, listed, origin, row_weights(factor))
        enclosure = float(exact / Fraction(scale) ** 2)
    deviations = rest * row_lengths(factor)
    gamma = size * (norm(deviations, problem.p) + float(target.outside(whitened).sum()))
    sensitivity = largest_pair(whitened) / rest**2 if problem.shifted else enclosure
    return Verification(gamma, below[0], enclosure, sensitivity, below[1])


def _stored(covariance: AbstractCovariance) -> tuple[Array, float]:
    """Return a matrix L and a number s for which the covariance is ``s² L L'`` without rounding."""
    if isinstance(covariance, FactorCovariance):
        return covariance.unit_factor, covariance.scale
    factor = covariance.factor()
    size = power_of_two(np.abs(factor).max(initial=0.0))
    return factor / size, size


def _is_measure(witness: PointCertificate, problem: Problem) -> bool:
    """Return whether weights are positive, and coordinate weights w have ``‖w‖_{s*} <= 1``."""
    w = witness.coordinate_weights
    return bool(
        witness.centered == problem.shifted
        and all(a.dtype == np.float64 for a in (witness.points, witness.weights, w))
        and witness.weights.shape == (len(witness.points),)
        and ((witness.weights > 0) & np.isfinite(witness.weights)).all()
        and w.shape == (problem.domain.dim,)
        and (w >= 0).all()
        and dual_ball_norm(w, problem.p) <= _UNIT
    )


def _on_the_set(witness: PointCertificate, problem: Problem, domain: FiniteSet) -> bool:
    """Return whether the certificate's points are those of ``rows`` and belong to the set."""
    rows, relation = witness.rows, problem.neighbors
    if (
        rows is None
        or rows.dtype.kind not in "iu"
        or rows.ndim != 2
        or not ((rows >= 0) & (rows < domain.cardinality)).all()
    ):
        return False
    single = problem.shifted or relation == "add-remove"
    if rows.shape[1] != (1 if single else 2) or not np.array_equal(
        members(domain.points, rows), witness.points
    ):
        return False
    if not isinstance(relation, PolicyGraph):
        return True
    edges = {tuple(edge) for edge in relation.edges.tolist()}
    return all(i == j or (min(i, j), max(i, j)) in edges for i, j in rows.tolist())


def _proven_bound(witness: PointCertificate) -> tuple[float, float]:
    """Return the proven lower bound on γ, and the fraction of it subtracted for rounding."""
    # The bound is on ‖W^½ X Λ^½‖_*: W is the diagonal matrix of the coordinate weights, X has the
    # points as columns, minus their mean if ``centered``, and Λ has their probabilities.
    # The nuclear norm is dual to the operator norm: <Q, A> <= ‖Q‖ ‖A‖_* for every Q. The bound is
    # the inner product with the polar factor Q, divided by a bound on ‖Q‖.
    points = witness.points - witness.points[0] if witness.centered else witness.points
    size = float(np.abs(points).max(initial=0.0))
    if size == 0:
        return 0.0, 0.0
    precision = precision_for(points.size * min(points.shape))
    mass = witness.weights.astype(precision) / witness.weights.astype(precision).sum()
    G = points.astype(precision)
    G /= size
    if witness.centered:
        G -= mass @ G
    G *= np.sqrt(mass)[:, None]
    G *= np.sqrt(witness.coordinate_weights.astype(precision))
    below, blurred = nuclear_norm_below(G)
    return size * below, blurred
