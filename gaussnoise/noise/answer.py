"""The step from a solver's result to an answer with bounds on its error and a status."""

import warnings
from collections.abc import Sequence

from domains.floats import Array

from ..errors import CertificateError, ConvergenceWarning
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.design import MAX_STEPS, Design
from ..solvers.progress import Progress
from .certificates.certificate import Certificate
from .covariance import AbstractCovariance, FactorCovariance
from .optimal_noise import OptimalNoise, Status, gap_between
from .problem import Problem


def answer(
    problem: Problem,
    *,
    covariance: AbstractCovariance,
    center: Array,
    certificate: Certificate,
    upper: float,
    lower: float,
    sensitivity_squared: float,
    method: str,
    unsolved: Status,
    steps: int,
    trace: Sequence[Progress],
    tol: float,
) -> OptimalNoise:
    """Return the answer to a problem; its status is ``unsolved`` if the gap exceeds ``tol``."""
    if not lower <= upper:
        raise CertificateError(
            f"expected a lower end below the upper one, got {lower!r} > {upper!r}; "
            "hint: coordinates too close together for double precision, rescale or center them"
        )
    return OptimalNoise(
        domain=problem.domain,
        p=problem.p,
        neighbors=problem.neighbors,
        shifted=problem.shifted,
        gamma=upper,
        gamma_lower=lower,
        covariance=covariance,
        center=center,
        certificate=certificate,
        sensitivity_squared=sensitivity_squared,
        method=method,
        status=Status.SOLVED if gap_between(lower, upper) <= tol else unsolved,
        steps=steps,
        trace=tuple(trace),
    )


def upper_end(covariance: FactorCovariance, p: float, outside: float) -> float:
    """Return a bound on the least error for a set within the sum of an ellipsoid and a box.

    ``covariance`` defines the ellipsoid, and ``outside`` is the sum of the sides of the box.
    """
    # the error for a Minkowski sum of ellipsoid and box is at most the error plus the sum of sides
    return float((covariance.error(p) + outside) * (1 + ROUNDING_MARGIN))


def steps_seen(trace: Sequence[Progress], steps: int, lower: float, upper: float) -> list[Progress]:
    """Return the bounds after each step that proved a lower bound, and the final bounds last."""
    if not steps:
        return []
    return [*(now for now in trace if now.lower > 0), Progress(steps, lower, upper)]


def how_it_ended(design: Design, most: int = MAX_STEPS) -> Status:
    """Return the reason why a solve of at most ``most`` steps missed its tolerance."""
    if design.interrupted:
        return Status.INTERRUPTED
    if design.inexact:
        return Status.ORACLE
    return Status.MAX_STEPS if design.steps >= most else Status.ROUNDING


def warned(noise: OptimalNoise, tol: float) -> OptimalNoise:
    """Return ``noise``, and warn the caller of the public function if its gap exceeds ``tol``."""
    if not noise.gap <= tol:
        spent = f" after {noise.steps} steps" if noise.steps else ""
        warnings.warn(
            f"certified gap {noise.gap:.2g}{spent}, wider than tol={tol:g}; {noise.status.value}",
            ConvergenceWarning,
            stacklevel=3,
        )
    return noise
