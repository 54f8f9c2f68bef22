"""The base class of all certificates, and the result of a check."""

import abc
from dataclasses import dataclass
from typing import Any, Self

from numpy.typing import NDArray

from domains.floats import Array

from ...errors import CertificateError
from ..covariance import AbstractCovariance, Stored
from ..problem import Problem


@dataclass(frozen=True)
class Verification:
    """The bounds that :meth:`OptimalNoise.verify` recomputed for a stored covariance M.

    Attributes:
        gamma: upper bound on the least error, from the row norms of the stored factor.
        gamma_lower: lower bound on the least error, from the certificate.
        enclosure: largest z' M⁺ z over the points z of the set that M must cover (the sensitivity
            set, or K − center).
        sensitivity_squared: upper bound on s' M⁺ s over the points s of the sensitivity set.
        rounding: the fraction of ``gamma_lower`` that was subtracted for the worst case of
            rounding, and for points that may lie outside a body by 1e-9 of its size.

    >>> checked = gn.optimal_noise(gn.FiniteSet(np.eye(3)), neighbors="add-remove").verify()
    >>> print(f"{checked.gamma_lower:.4f} {checked.gamma:.4f} {checked.sensitivity_squared:.4f}")
    1.7321 1.7321 1.0000
    """

    gamma: float
    gamma_lower: float
    enclosure: float
    sensitivity_squared: float
    rounding: float = 0.0


class Certificate(abc.ABC):
    """A proof of a lower bound on γ by a probability measure and by weights of the coordinates.

    The measure is on the set that noise must cover.

    Source: Nikolov & Tang (2023), Theorem 26.

    >>> noise = gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove")
    >>> print(noise.certificate.lower_bound() <= noise.gamma)
    True
    """

    @abc.abstractmethod
    def lower_bound(self) -> float:
        """Return the lower bound ``tr((W^½ C W^½)^½)`` on the least error γ, rounded down.

        W is the diagonal matrix of the coordinate weights. C is the measure's covariance, or its
        second moment if the set is not covered up to a shift.
        """

    @abc.abstractmethod
    def spectrum(self) -> tuple[Array, Array]:
        """Return eigenvalues that sum to the lower bound, rounded down, and their multiplicities.

        They are the eigenvalues of ``(W^½ C W^½)^½``, or smaller numbers, whose sum is then still a
        lower bound. W is the diagonal matrix of the coordinate weights, and C the covariance or the
        second moment of the measure.
        """

    @property
    def is_of_alike_records(self) -> bool:
        """Whether all records are equivalent, so that the bound holds for every data set."""
        return False

    @property
    def caption(self) -> str:
        """The certificate in words, for plots, in which only lists of points can be drawn."""
        return f"{type(self).__name__}, which lists no points"

    def check(
        self, problem: Problem, covariance: AbstractCovariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Recompute both bounds by another method than the solver, from the stored numbers.

        Args:
            problem: the problem that the certificate and the covariance claim to solve.
            covariance: the covariance M of the noise, shape (d, d).
            center: the point v for which M covers K − v, shape (d,); zeros if nothing is shifted.
            claimed: the squared sensitivity that is claimed; a larger one takes less time to check.

        Raises:
            CertificateError: the certificate is not a measure on the set that must be covered, or
                belongs to another problem.
            CovarianceError: the noise is zero in some direction of the set.
        """
        raise CertificateError(
            f"verify: expected a certificate that can be checked, got {type(self).__name__}"
        )

    def encode(self) -> Stored:
        """Return the numbers of the certificate for a file: a header for JSON, and arrays."""
        raise CertificateError(
            f"save: expected a certificate that can be stored, got {type(self).__name__}"
        )

    @classmethod
    def decode(
        cls, problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        """Return the certificate that :meth:`encode` wrote; it must still be checked."""
        raise CertificateError(
            f"load: expected a certificate that can be stored, got {cls.__name__}"
        )
