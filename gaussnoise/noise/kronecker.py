"""The optimal noise of workloads over time times other workloads, part by part."""

import math
from collections.abc import Callable

import numpy as np

from domains.domain import AbstractDomain
from domains.tables.products import Products

from ..errors import ParameterError
from ..numerics.rounding import ROUNDING_MARGIN
from .answer import answer
from .certificates.kronecker import KroneckerCertificate, product_above, product_below
from .kronecker_covariance import KroneckerCovariance
from .optimal_noise import OptimalNoise, Status
from .problem import Problem

Solve = Callable[[Problem, float], OptimalNoise]


def product_of_streams(
    function: str,
    problem: Problem,
    parts: tuple[AbstractDomain, ...],
    tol: float,
    solve: Solve,
) -> OptimalNoise:
    """Return the product of the parts' optimal noises; every part has a share of ``tol``.

    ``±(K ⊗ L) = (±K) ⊗ (±L)`` for all sets, so that add-remove is solved part by part. This does
    not hold for replacement: ``K ⊗ L − K ⊗ L`` is not a product.
    """
    if problem.p > 2 and any(isinstance(part, Products) for part in parts):
        raise ParameterError(
            f"{function}: expected p = 2 for a workload over time times Products that are too "
            f"large to list, got p = {problem.p:g}: alone, these count every query with the root "
            "mean square of its table, which is another norm; hint: p=2, or Marginals"
        )
    share = math.expm1(math.log1p(tol) / len(parts) * (1 - ROUNDING_MARGIN))
    answers = [solve(Problem(part, problem.p, "add-remove"), share) for part in parts]
    unsolved = [noise.status for noise in answers if noise.status is not Status.SOLVED]
    return answer(
        problem,
        covariance=KroneckerCovariance(tuple(noise.covariance for noise in answers)),
        center=np.broadcast_to(0.0, problem.domain.dim),
        certificate=KroneckerCertificate(tuple(noise.certificate for noise in answers)),
        upper=product_above([noise.gamma for noise in answers]) * (1 + ROUNDING_MARGIN),
        lower=product_below([noise.gamma_lower for noise in answers]),
        sensitivity_squared=1.0,
        method="Kronecker product, part by part: " + "; ".join(noise.method for noise in answers),
        unsolved=unsolved[0] if unsolved else Status.ROUNDING,
        steps=sum(noise.steps for noise in answers),
        trace=(),
        tol=tol,
    )
