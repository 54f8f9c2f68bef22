"""The common interface of all certificates, and the result of checking one."""

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
    """The numbers that :meth:`OptimalNoise.verify` could recompute.

    Attributes:
        gamma: upper end, from the row norms of the stored factor.
        gamma_lower: lower end, from the dual witness.
        enclosure: largest z' M⁺ z over the set that M must enclose (the sensitivity set, or K −
            center).
        sensitivity_squared: upper bound on s' M⁺ s over the sensitivity set.
        rounding: the share of ``gamma_lower`` that was subtracted for the worst case of rounding,
            and for members that may lie outside a body by 1e-9 of its size.

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
    """A probability measure on the set, and coordinate weights, whose fidelity bounds γ from below.

    Source: Nikolov & Tang (2023), Theorem 26.

    >>> noise = gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove")
    >>> print(noise.certificate.lower_bound() <= noise.gamma)
    True
    """

    @abc.abstractmethod
    def lower_bound(self) -> float:
        """Return ``tr((W^{1/2} C W^{1/2})^{1/2})``, a lower bound on γ; C is the covariance."""

    @abc.abstractmethod
    def spectrum(self) -> tuple[Array, Array]:
        """Return eigenvalues of ``(W^{1/2} C W^{1/2})^{1/2}``, rounded down, and multiplicities."""

    @property
    def is_of_alike_records(self) -> bool:
        """Whether symmetry makes all records equivalent: one measure proves all data sets."""
        return False

    @property
    def caption(self) -> str:
        """The certificate in words, for pictures, which can draw only points."""
        return f"{type(self).__name__}, which lists no points"

    def check(
        self, problem: Problem, covariance: AbstractCovariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Recompute both ends in another way than the solver, from the domain and stored numbers.

        Args:
            problem: the problem that the certificate and the covariance claim to solve.
            covariance: M.
            center: v, shape (d,), zeros without shift.
            claimed: the squared sensitivity that is claimed; a looser claim takes less work to
                check.

        Raises:
            CertificateError: the certificate is not a measure on the set that must be covered, or
                belongs to another problem.
            CovarianceError: some direction gets no noise.
        """
        raise CertificateError(
            f"verify: expected a certificate that can be checked, got {type(self).__name__}"
        )

    def encode(self) -> Stored:
        """Return the certificate's numbers, for a file."""
        raise CertificateError(
            f"save: expected a certificate that can be stored, got {type(self).__name__}"
        )

    @classmethod
    def decode(
        cls, problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        """Return the certificate that :meth:`encode` wrote, which still must be checked."""
        raise CertificateError(
            f"load: expected a certificate that can be stored, got {cls.__name__}"
        )
