"""From what was found to the answer it is: both ends of the bracket, and how the solve ended."""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import CertificateError, ConvergenceWarning
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.design import MAX_STEPS, Design
from ..solvers.progress import Progress
from .certificates.certificate import Certificate
from .covariance import Covariance, FactorCovariance
from .optimal_noise import OptimalNoise, Status, gap_between
from .problem import Problem

Array = NDArray[np.float64]


def answer(
    problem: Problem,
    *,
    covariance: Covariance,
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
    """The one builder of answers. ``unsolved`` is how the solve ended if the gap is wider than
    ``tol``.
    """
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


def answer_of(
    problem: Problem,
    design: Design,
    *,
    covariance: FactorCovariance,
    outside: float,
    center: Array,
    certificate: Certificate,
    sensitivity_squared: float,
    method: str,
    trace: Sequence[Progress],
    tol: float,
    most: int = MAX_STEPS,
    slack: float = 0.0,
) -> OptimalNoise:
    """The answer by a design; what sticks out of the covariance's range lies in a box, whose sides
    sum to ``outside``.

    ``slack`` is what the certificate may owe to the rounding of its points.
    """
    # a box costs at most the sum of its sides (Minkowski sum)
    upper = float((covariance.error(problem.p) + outside) * (1 + ROUNDING_MARGIN))
    lower = max(certificate.lower_bound() - slack, 0.0)
    # the last word is that of the checks
    seen = (
        [*(now for now in trace if now.lower > 0), Progress(design.steps, lower, upper)]
        if design.steps
        else []
    )
    return answer(
        problem,
        covariance=covariance,
        center=center,
        certificate=certificate,
        upper=upper,
        lower=lower,
        sensitivity_squared=sensitivity_squared,
        method=method,
        unsolved=_unsolved(design, most),
        steps=design.steps,
        trace=seen,
        tol=tol,
    )


def _unsolved(design: Design, most: int) -> Status:
    if design.interrupted:
        return Status.INTERRUPTED
    if design.inexact:
        return Status.ORACLE
    return Status.MAX_STEPS if design.steps >= most else Status.ROUNDING


def warned(noise: OptimalNoise, tol: float) -> OptimalNoise:
    """The same; the caller of the door that calls this hears of a gap wider than ``tol``."""
    if not noise.gap <= tol:
        spent = f" after {noise.steps} steps" if noise.steps else ""
        warnings.warn(
            f"certified gap {noise.gap:.2g}{spent}, wider than tol={tol:g}; {noise.status.value}",
            ConvergenceWarning,
            stacklevel=3,
        )
    return noise
