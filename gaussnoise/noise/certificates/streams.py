"""The dual certificate for a workload over time that has too many ticks for matrices."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from domains.errors import DomainTooLargeError
from domains.floats import Array
from domains.sets.stream import StreamWorkload

from ...errors import CertificateError
from ...numerics.norms import dual_ball_norm, norm
from ...numerics.rounding import ROUNDING_MARGIN
from ...solvers.streams.optimum import Evaluation, evaluate
from ..covariance import AbstractCovariance, Stored
from ..problem import Problem
from ..stream_covariance import StreamCovariance
from .certificate import Certificate, Verification

_WIDENED = 4.0  # factor by which the interval is extended on either side
_UNIT = 1 + 2.0**-40  # covers the rounding of sums of a million numbers in double precision


@final
@dataclass(frozen=True, eq=False)
class StreamCertificate(Certificate):
    """A probability measure on the columns of a workload over time, and weights of its answers.

    Attributes:
        workload: the workload over time, a matrix A of shape (n, n).
        weights: the probabilities λ of the columns of A, shape (n,), positive, summing to one.
        coordinate_weights: the weights w of the answers, shape (n,), positive, with
            ``‖w‖_{s*} <= 1``, s* = p/(p − 2).
    """

    workload: StreamWorkload
    weights: Array
    coordinate_weights: Array

    def lower_bound(self) -> float:
        return below(evaluate(self.workload.bands, self.weights, self.coordinate_weights))

    def spectrum(self) -> tuple[Array, Array]:
        raise DomainTooLargeError(
            f"spectrum: {len(self.weights)} ticks, more than are written out; hint: the lower end "
            "itself is known"
        )

    def check(
        self, problem: Problem, covariance: AbstractCovariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Check the stored weights; recompute both bounds with another rational approximation."""
        domain = problem.domain
        if not isinstance(domain, StreamWorkload) or problem.protected != "add-remove":
            raise CertificateError(
                "verify: the certificate of a workload over time belongs to another problem"
            )
        if not isinstance(covariance, StreamCovariance) or not (
            domain is self.workload is covariance.workload
        ):
            raise CertificateError("verify: expected the covariance of this workload over time")
        numbers = (
            self.weights,
            self.coordinate_weights,
            covariance.weights,
            covariance.coordinate_weights,
        )
        if not all(
            a.shape == (domain.ticks,) and np.isfinite(a).all() and (a > 0).all() for a in numbers
        ):
            raise CertificateError("verify: expected positive, finite weights, one for each tick")
        if not (
            self.weights.sum() <= _UNIT
            and dual_ball_norm(self.coordinate_weights, problem.p) <= _UNIT
        ):
            raise CertificateError(
                "verify: the certificate is not a measure on the sensitivity set"
            )
        return [twice_checked(self, covariance, problem.p)]

    def encode(self) -> Stored:
        return {}, {
            "certificate_weights": self.weights,
            "coordinate_weights": self.coordinate_weights,
        }

    @classmethod
    def decode(
        cls, problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        if not isinstance(problem.domain, StreamWorkload):
            raise CertificateError(
                "load: expected a workload over time with the certificate of one"
            )
        return cls(problem.domain, arrays["certificate_weights"], arrays["coordinate_weights"])


def twice_checked(
    certificate: StreamCertificate, covariance: StreamCovariance, p: float
) -> Verification:
    """Return both bounds, recomputed with another rational approximation of the square root.

    The approximation holds on an interval 16 times as wide as that of the solver.
    """
    bands, made_of = covariance.workload.bands, (covariance.weights, covariance.coordinate_weights)
    proven_by = certificate.weights, certificate.coordinate_weights
    noise = worth = evaluate(bands, *made_of, widened=_WIDENED)
    if not all(np.array_equal(a, b) for a, b in zip(made_of, proven_by, strict=True)):
        worth = evaluate(bands, *proven_by, widened=_WIDENED)
    enclosure = float(noise.leverages.max()) / covariance.scale**2
    error = covariance.scale * norm(np.sqrt(noise.variances), p)
    return Verification(error, below(worth), enclosure, enclosure)


def below(worth: Evaluation) -> float:
    """Return the lower bound of an evaluation, minus the margin that verification needs."""
    return worth.lower * (1 - ROUNDING_MARGIN)
