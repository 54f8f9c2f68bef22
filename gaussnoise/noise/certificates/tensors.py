"""The dual certificate for tensor powers: a measure that is invariant under rotations."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from domains.algebra.images import Scaled, Translate
from domains.domain import AbstractDomain
from domains.floats import Array
from domains.sets.tensor import TensorPower

from ...errors import CertificateError
from ...numerics.rounding import ROUNDING_MARGIN
from ...solvers.bodies.harmonics import enclosure, harmonic_bases, multiplicity, traces_below
from ...solvers.design import Protected
from ..covariance import AbstractCovariance, FactorCovariance
from ..problem import Problem
from .certificate import Certificate, Stored, Verification

# Harmonic tensors are rounded: columns of the factor may have a part outside their degree, of at
# most this relative length.
ASTRAY = 1e-11


@final
@dataclass(frozen=True, eq=False)
class TensorCertificate(Certificate):
    """A probability measure on the sensitivity set of a tensor power, invariant under rotations.

    Attributes:
        domain: the tensor power, of base d and order k.
        atoms: shape (n, 3), rows (a, b, t), see
            :func:`~gaussnoise.solvers.bodies.harmonics.traces_below`.
        weights: shape (n,), their probabilities.
        kind: for ``gamma``, the measure is on K and the bound uses its covariance; for
            ``add-remove`` and ``replace``, it is on K ∪ −K or K − K, with its second moment.
        scale: the factor by which the set is larger than the tensor power.
    """

    domain: TensorPower
    atoms: Array
    weights: Array
    kind: Protected
    scale: float = 1.0

    def lower_bound(self) -> float:
        """Return the bound ``scale · Σ_j √(D_j π_j κ_j)`` over harmonic degrees j, rounded down.

        D_j is the dimension of the harmonic tensors of degree j. Each tensor has a part of degree
        j: its squared length is π_j for x^⊗k with ‖x‖ = 1, and has the mean π_j κ_j for a random
        point of the measure (for ``gamma``, π_j κ_j is the total variance).
        """
        total = sum(self._traces().values())
        return math.nextafter(float(total * Fraction(self.scale)), 0.0)

    def spectrum(self) -> tuple[Array, Array]:
        traces = self._traces()
        counts = np.array([float(multiplicity(self.domain.base, j)) for j in traces])
        values = np.array([float(trace) * self.scale for trace in traces.values()]) / counts
        return values * (1 - ROUNDING_MARGIN), counts

    def _traces(self) -> dict[int, Fraction]:
        return traces_below(self.domain, self.kind, self.atoms, self.weights)

    def check(
        self, problem: Problem, covariance: AbstractCovariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Check the form of the factor, and find the largest ``z' M⁺ z`` over z in the set.

        The maximum is found by branch and bound; M is the covariance. The columns of its factor
        must be harmonic tensors, degree by degree.
        """
        if not all(np.isfinite(array).all() for array in (self.atoms, self.weights)):
            raise CertificateError("verify: expected finite numbers, got NaN or infinity")
        longest, error = _checked(self, problem, covariance, center)
        return [
            Verification(
                error, self.lower_bound(), longest, 4 * longest if problem.shifted else longest
            )
        ]

    def encode(self) -> Stored:
        return {"tensor_scale": self.scale}, {
            "tensor_atoms": self.atoms,
            "tensor_weights": self.weights,
        }

    @classmethod
    def decode(
        cls, problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        power = stripped(problem.domain)[0]
        if power is None or problem.protected is None:
            raise CertificateError("load: expected a tensor power with the certificate of one")
        atoms, weights = arrays["tensor_atoms"], arrays["tensor_weights"]
        return cls(power, atoms, weights, problem.protected, header["tensor_scale"])


def _checked(
    witness: "TensorCertificate", problem: Problem, covariance: AbstractCovariance, center: Array
) -> tuple[float, float]:
    """Check that the factor has harmonic columns; return the largest ``z' M⁺ z``, and γ."""
    power, scale, shift = stripped(problem.domain)
    kind = problem.protected
    if (
        power is None
        or not isinstance(covariance, FactorCovariance)
        or (witness.domain.base, witness.domain.order) != (power.base, power.order)
        or kind is None
        or witness.kind != kind
        or witness.scale != abs(scale)
        or (kind == "add-remove" and shift.any())
        or problem.p != 2
    ):
        raise CertificateError(
            "verify: the closed form of tensor powers belongs to another problem"
        )
    factor = covariance.unit_factor
    bases = harmonic_bases(power)
    degrees, start = {}, 0
    for j, basis in bases.items():
        columns = factor[:, start : start + multiplicity(power.base, j)]
        start += columns.shape[1]
        # columns are √mean times orthonormal harmonic tensors, up to ``astray``: so M is at least
        # mean − astray on this degree
        gram = columns.T @ columns
        mean = float(gram.trace()) / max(len(gram), 1)
        astray = float(np.linalg.norm(gram - mean * np.eye(len(gram))))
        astray += (
            2
            * float(np.linalg.norm(columns - basis @ (basis.T @ columns)))
            * math.sqrt(max(mean, 0.0))
        )
        degrees[j] = mean - astray
        if columns.shape[1] != basis.shape[1] or not (0 < degrees[j] and astray <= ASTRAY * mean):
            raise CertificateError(
                "verify: the factor's columns are not harmonic tensors of one length a degree"
            )
    if start != factor.shape[1]:
        raise CertificateError(
            "verify: the factor has more columns than there are harmonic tensors"
        )
    share, lost = 0.0, 0.0
    if problem.shifted:
        mean = bases[0][:, 0] * bases[0][0, 0] if power.order % 2 == 0 else np.zeros(power.dim)
        share = float((center - shift) @ mean) / scale / float(mean @ mean or 1.0)
        beside = center - shift - scale * share * mean
        if not np.linalg.norm(beside) <= 1e-14 * (np.abs(shift).max() + abs(scale)) * math.sqrt(
            power.dim
        ):
            raise CertificateError(
                "verify: the center is not a multiple of the mean over the sphere"
            )
        lost = float(np.linalg.norm(beside)) / math.sqrt(min(degrees.values()))
    longest = math.sqrt(enclosure(power, degrees, kind, share)) * abs(scale) + lost
    return (longest / covariance.scale) ** 2, covariance.error(2)


def stripped(domain: AbstractDomain) -> tuple[TensorPower | None, float, Array]:
    """Return the tensor power T, the factor c and the shift v of a domain c · T + v."""
    shift, scale = np.zeros(domain.dim), 1.0
    if isinstance(domain, Translate):
        domain, shift = domain.body, domain.shift
    if isinstance(domain, Scaled):
        domain, scale = domain.body, domain.factor
    return (domain if isinstance(domain, TensorPower) else None), scale, shift
