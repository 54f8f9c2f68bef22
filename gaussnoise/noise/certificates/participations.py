"""The dual certificate for vectors that people add at their ticks."""

import abc
import itertools
import math
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from domains.floats import EPS, Array, power_of_two
from domains.participation.participations import AbstractParticipations, VectorParticipations
from domains.participation.sensitivity import form_bound, vector_bound

from ...errors import CertificateError
from ...numerics.feasibility import check_range, whiten
from ...numerics.norms import dual_ball_norm, norm, nuclear_norm_below, row_lengths
from ...numerics.precision import precision_for
from ...numerics.rounding import ROUNDING_MARGIN
from ..covariance import AbstractCovariance, FactorCovariance
from ..problem import Problem
from .certificate import Certificate, Stored, Verification

Indices = NDArray[np.intp]
Rule = TypeVar("Rule", bound=AbstractParticipations)

# dual norms and rows are normalised in double precision
UNIT = 1 + 2.0**-44
# The patterns' semidefinite programmes are solved to about 1e-10, with results that differ slightly
# between machines.
SOLVED_AGAIN = 2.0**-28


class AbstractParticipationCertificate(Certificate, Generic[Rule]):
    """A measure on the changes that one person can make under a rule of participation.

    Attributes:
        domain: the workload, and the rule for the ticks at which a person may take part.
        coordinate_weights: w, shape (n,), with ``‖w‖_{s*} <= 1``, s* = p/(p − 2).
    """

    domain: Rule
    coordinate_weights: Array

    @abc.abstractmethod
    def below(self) -> tuple[float, float]:
        """Return the lower bound on γ, and the fraction of it that was subtracted for rounding."""

    @abc.abstractmethod
    def columns(self) -> tuple[float, NDArray[np.floating]]:
        """Return a number ``size`` and a matrix G for which ``size · ‖G‖_*`` is the lower bound.

        The nuclear norm ‖G‖_* is the sum of the singular values.
        """

    @abc.abstractmethod
    def is_measure(self) -> bool:
        """Return whether the numbers are a measure on changes that one person can make."""

    def lower_bound(self) -> float:
        return self.below()[0]

    def spectrum(self) -> tuple[Array, Array]:
        size, G = self.columns()
        singular = np.linalg.svd(G.astype(np.float64), compute_uv=False)
        rounding = 8 * EPS * max(G.shape) * singular[0]
        return size * np.maximum(singular - rounding, 0.0), np.ones(len(singular))

    def check(
        self, problem: Problem, covariance: AbstractCovariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Check the measure, and bound one person's changes by QR and semidefinite programmes."""
        if (
            problem.domain is not self.domain
            or problem.neighbors != "add-remove"
            or problem.shifted
        ):
            raise CertificateError(
                "verify: the certificate of participations belongs to another problem"
            )
        if not isinstance(covariance, FactorCovariance):
            raise CertificateError("verify: expected a covariance with a stored factor")
        if not (self._is_in_dual_ball(problem.p) and self.is_measure()):
            raise CertificateError(
                "verify: the certificate is no measure on what one person may do"
            )
        size = power_of_two(covariance.scale)
        rest = covariance.scale / size
        longest, outside = longest_move(self.domain, covariance.unit_factor, size)
        deviations = rest * row_lengths(covariance.unit_factor)
        gamma = size * (norm(deviations, problem.p) + float(outside.sum()))
        lower, rounding = self.below()
        enclosure = (longest / rest) ** 2
        return [Verification(gamma, lower, enclosure, enclosure, rounding)]

    def _is_in_dual_ball(self, p: float) -> bool:
        """Return whether the coordinate weights prove a bound on the error in norm p."""
        w = self.coordinate_weights
        return bool(
            are_finite(w)
            and w.shape == (self.domain.dim,)
            and (w >= 0).all()
            and dual_ball_norm(w, p) <= UNIT
        )


@final
@dataclass(frozen=True, eq=False)
class ParticipationCertificate(AbstractParticipationCertificate[VectorParticipations]):
    """Weights on patterns of ticks, and correlations of the vectors that a person adds at them.

    A pattern π is a set of ticks of one person. The correlations are the Gram matrix Z_π of these
    vectors, with a unit diagonal; the weight is p_π.

    Let A be the workload matrix, M any covariance that covers all changes by one person,
    ``X = A'M⁻¹A``, X_ππ its rows and columns at the ticks of π, and ``Λ = Σ p_π Z_π``. As M covers
    the changes of π, there is a vector y_π with ``X_ππ <= diag y_π`` and ``Σ y_π = 1``. Hence
    ``tr(ΛX) = Σ p_π ⟨Z_π, X_ππ⟩ <= Σ p_π tr(Z_π diag y_π) <= 1``. By the Cauchy–Schwarz inequality
    ``tr((W^½ A Λ A' W^½)^½)² <= tr(WM) tr(ΛX) <= ‖sd(M)‖_p²`` for all p and all coordinate weights
    w in the dual ball, with W = diag w: a lower bound for every strategy.

    Attributes:
        domain: the workload, and the rule for the ticks at which a person may take part.
        patterns: shape (P, k), ticks in order, padded with n.
        weights: p, shape (P,), positive, with sum one.
        vectors: V, shape (P, k, r), rows no longer than one: Z = V V'.
        coordinate_weights: w, shape (n,), with ``‖w‖_{s*} <= 1``, s* = p/(p − 2).
    """

    domain: VectorParticipations
    patterns: Indices
    weights: Array
    vectors: Array
    coordinate_weights: Array

    def below(self) -> tuple[float, float]:
        size, G = self.columns()
        if size == 0:
            return 0.0, 0.0
        value, blurred = nuclear_norm_below(G)
        return max(size * value * (1 - ROUNDING_MARGIN), 0.0), blurred

    def columns(self) -> tuple[float, NDArray[np.floating]]:
        """Return a number ``size`` and the matrix ``W^½ A R / size``, where Λ = R R'.

        A is the workload matrix, W the diagonal matrix of the coordinate weights, and
        ``Λ = Σ p_π Z_π``. R has shape (n, P r).
        """
        A = self.domain.matrix
        size = power_of_two(np.abs(A).max())
        n, count = len(A), self.vectors.shape[0] * self.vectors.shape[2]
        precision = precision_for(n * n * count)
        padded = np.concatenate([A / size, np.zeros((n, 1))], axis=1).astype(precision)
        rows = np.square(self.vectors.astype(precision)).sum(axis=2)
        longest = max(float(np.sqrt(rows.max())), 1.0) * (1 + 2.0**-50)
        mass = self.weights.astype(precision) / self.weights.astype(precision).sum()
        scaled = self.vectors * np.sqrt(mass)[:, None, None] / longest
        stacked = np.zeros((n + 1, count), dtype=precision)
        r = self.vectors.shape[2]
        for j, (ticks, block) in enumerate(zip(self.patterns, scaled, strict=True)):
            # padding adds to the last row, which is then multiplied by a zero column
            np.add.at(stacked[:, j * r : (j + 1) * r], ticks, block)
        return size, np.sqrt(self.coordinate_weights.astype(precision))[:, None] * (
            padded @ stacked
        )

    def is_measure(self) -> bool:
        n, who = self.domain.dim, self.domain.who
        if not are_finite(self.weights, self.vectors) or self.patterns.dtype.kind not in "iu":
            return False
        if self.patterns.ndim != 2 or not len(self.patterns) or self.vectors.ndim != 3:
            return False
        return bool(
            self.weights.shape == (len(self.patterns),)
            and self.vectors.shape[:2] == self.patterns.shape
            and self.vectors.shape[2] > 0
            and (self.weights > 0).all()
            and ((self.patterns >= 0) & (self.patterns <= n)).all()
            and np.square(self.vectors).sum(axis=2).max() <= UNIT
            and all(_allowed(row, n, who.allows) for row in self.patterns.tolist())
        )

    def encode(self) -> Stored:
        return {}, {
            "participations": self.patterns,
            "certificate_weights": self.weights,
            "participation_vectors": self.vectors,
            "coordinate_weights": self.coordinate_weights,
        }

    @classmethod
    def decode(
        cls, problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        if not isinstance(problem.domain, VectorParticipations):
            raise CertificateError("load: expected participations with the certificate of some")
        names = (
            "participations",
            "certificate_weights",
            "participation_vectors",
            "coordinate_weights",
        )
        return cls(problem.domain, *(arrays[name] for name in names))


def are_finite(*arrays: NDArray[Any]) -> bool:
    """Return whether all arrays hold finite numbers in double precision."""
    return all(a.dtype == np.float64 and np.isfinite(a).all() for a in arrays)


def _allowed(row: list[int], n: int, allows: Any) -> bool:
    ticks = tuple(i for i in row if i < n)
    return bool(ticks) and all(a < b for a, b in itertools.pairwise(ticks)) and allows(ticks)


def longest_move(domain: AbstractParticipations, factor: Array, size: float) -> tuple[float, Array]:
    """Return bounds on the length of one person's change, inside and outside the factor's range.

    The workload matrix is divided by ``size``. The first bound is on the length of the change in
    the coordinates of ``factor``. The second, shape (n,), is on its distance along each axis from
    the range of the factor.
    """
    points = domain.matrix.T / size
    whitened = whiten(factor, points, precision=precision_for(points.size * factor.shape[1]))
    check_range(whitened, np.abs(points).max(axis=0))
    b = whitened.coordinates
    most = domain.who.most
    # |Σ b_i ⊗ u_i| is a norm of (b_i): by the triangle inequality, the rounding errors of all b_i
    # add up
    rounded = float((whitened.lengths - np.linalg.norm(b, axis=1)).max()) * most
    products = 16 * most * len(b) * EPS
    X = b @ b.T
    if isinstance(domain, VectorParticipations):
        bound = vector_bound(domain.who, X)
    else:  # a convex function of numbers in [0, 1] is largest at zeros and ones
        bound = form_bound(domain.who, np.maximum(X, 0.0))
    longest = math.sqrt(bound) * (1 + products)
    return longest + rounded, most * whitened.outside
