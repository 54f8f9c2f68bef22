"""From what a solver found to the answer it is: both ends, how the solve ended, and a warning if they are apart."""

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from domains import AbstractDomain

from ..errors import CertificateError, ConvergenceWarning
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.design import MAX_STEPS, Design
from ..solvers.progress import Progress
from .certificate import Certificate
from .covariance import FactorCovariance
from .optimal_noise import OptimalNoise, Status
from .sensitivity import Relation

Array = NDArray[np.float64]


def answer(
    domain: AbstractDomain,
    p: float,
    relation: Relation,
    *,
    shifted: bool,
    covariance: FactorCovariance,
    outside: float,
    center: Array,
    certificate: Certificate,
    sensitivity_squared: float,
    design: Design,
    method: str,
    trace: tuple[Progress, ...],
    tol: float,
    most: int = MAX_STEPS,
    slack: float = 0.0,
) -> OptimalNoise:
    """The answer; what sticks out of the covariance's range lies in a box, whose sides sum to ``outside``.

    ``slack`` is what the certificate may owe to the rounding of its points.
    """
    # a box costs at most the sum of its sides (Minkowski sum)
    upper = float((covariance.error(p) + outside) * (1 + ROUNDING_MARGIN))
    lower = max(certificate.lower_bound() - slack, 0.0)
    if not lower <= upper:
        raise CertificateError(f"the points are too close together for double precision: {lower!r} > {upper!r}")
    gap = upper / lower - 1 if lower > 0 else (0.0 if upper == 0 else math.inf)
    status = _status(design, gap, tol, most)
    if not gap <= tol:
        warnings.warn(
            f"certified gap {gap:.2g} after {design.steps} steps, wider than tol={tol:g}; {status.value}",
            ConvergenceWarning,
            stacklevel=4,  # the caller of optimal_noise or gamma
        )
    return OptimalNoise(
        domain=domain,
        p=p,
        neighbors=relation,
        shifted=shifted,
        gamma=upper,
        gamma_lower=lower,
        covariance=covariance,
        center=center,
        certificate=certificate,
        sensitivity_squared=sensitivity_squared,
        method=method,
        status=status,
        steps=design.steps,
        # the last word is that of the checks
        trace=(*(now for now in trace if now.lower > 0), Progress(design.steps, lower, upper)) if design.steps else (),
    )


def _status(design: Design, gap: float, tol: float, most: int) -> Status:
    if gap <= tol:
        return Status.SOLVED
    if design.interrupted:
        return Status.INTERRUPTED
    if design.inexact:
        return Status.ORACLE
    return Status.MAX_STEPS if design.steps >= most else Status.ROUNDING
