"""What every certificate is, and what a check of one returns."""

import abc
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...errors import CertificateError
from ..covariance import Covariance, Stored
from ..problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Verification:
    """What :meth:`OptimalNoise.verify` could recompute.

    Attributes:
        gamma: upper end, from the row norms of the stored factor.
        gamma_lower: lower end, from the dual witness.
        enclosure: largest z' M⁺ z over the set M encloses (the sensitivity set, or K − center).
        sensitivity_squared: upper bound on s' M⁺ s over the sensitivity set.
        rounding: the share of ``gamma_lower`` that was given up to the worst case of rounding, and
            to what membership in a body forgives: 1e-9 of its size.
    """

    gamma: float
    gamma_lower: float
    enclosure: float
    sensitivity_squared: float
    rounding: float = 0.0


class Certificate(abc.ABC):
    """A probability measure on the set, and coordinate weights, whose fidelity bounds γ from below.

    Source: Nikolov & Tang (2023), Theorem 26.
    """

    @abc.abstractmethod
    def lower_bound(self) -> float:
        """``tr((W^{1/2} C W^{1/2})^{1/2})``, C the measure's covariance: a lower bound on γ."""

    @abc.abstractmethod
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues of ``(W^{1/2} C W^{1/2})^{1/2}``, from below, and multiplicities."""

    @property
    def is_of_alike_records(self) -> bool:
        """Whether symmetry makes records alike: then one measure serves wherever data are."""
        return False

    @property
    def caption(self) -> str:
        """What it is, for pictures, which draw points alone."""
        return f"{type(self).__name__}, which lists no points"

    def check(
        self, problem: Problem, covariance: Covariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Both ends by another way than the solver's: from the domain and stored numbers alone.

        Args:
            problem: what the certificate and the covariance are said to solve.
            covariance: M.
            center: v, shape (d,), zeros without shift.
            claimed: the sensitivity² that is claimed; a looser one takes less work.

        Raises:
            CertificateError: it is no measure on what is to be covered, or belongs to another
                problem.
            CovarianceError: some direction gets no noise.
        """
        raise CertificateError(
            f"verify: expected a certificate that can be checked, got {type(self).__name__}"
        )

    def encode(self) -> Stored:
        """Its numbers, for a file."""
        raise CertificateError(
            f"save: expected a certificate that can be stored, got {type(self).__name__}"
        )

    @classmethod
    def decode(
        cls, problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        """What :meth:`encode` wrote, for this problem; from anyone, and not checked yet."""
        raise CertificateError(
            f"load: expected a certificate that can be stored, got {cls.__name__}"
        )
