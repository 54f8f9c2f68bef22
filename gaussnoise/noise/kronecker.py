"""The optimal noise of workloads over time times other workloads, part by part."""

import math
from collections.abc import Callable

import numpy as np

from domains.tables.stream_product import StreamProduct

from ..numerics.rounding import ROUNDING_MARGIN
from .answer import answer
from .certificates.kronecker import KroneckerCertificate, product_above, product_below
from .kronecker_covariance import KroneckerCovariance
from .optimal_noise import OptimalNoise, Status
from .problem import Problem

Solve = Callable[[Problem, float], OptimalNoise]


def product_of_streams(
    problem: Problem, domain: StreamProduct, tol: float, solve: Solve
) -> OptimalNoise:
    """The product of the parts' optimal noises, each solved to its share of the tolerance."""
    share = math.expm1(math.log1p(tol) / len(domain.parts) * (1 - ROUNDING_MARGIN))
    found = [solve(Problem(part, problem.p, "add-remove"), share) for part in domain.parts]
    unsolved = [noise.status for noise in found if noise.status is not Status.SOLVED]
    return answer(
        problem,
        covariance=KroneckerCovariance(tuple(noise.covariance for noise in found)),
        center=np.broadcast_to(0.0, domain.dim),
        certificate=KroneckerCertificate(tuple(noise.certificate for noise in found)),
        upper=product_above([noise.gamma for noise in found]) * (1 + ROUNDING_MARGIN),
        lower=product_below([noise.gamma_lower for noise in found]),
        sensitivity_squared=1.0,
        method="Kronecker product, part by part: " + "; ".join(noise.method for noise in found),
        unsolved=unsolved[0] if unsolved else Status.ROUNDING,
        steps=sum(noise.steps for noise in found),
        trace=(),
        tol=tol,
    )
