"""The closed form for tensor powers as an answer."""

import math

import numpy as np

from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.bodies.harmonics import tensor_design
from .answer import answer, upper_end
from .certificates.tensors import ASTRAY, TensorCertificate, stripped
from .covariance import FactorCovariance
from .optimal_noise import OptimalNoise, Status
from .problem import Problem

_LOST = 1e-13  # of the size, of a center that is stored rounded


def tensor_noise(problem: Problem, tol: float) -> OptimalNoise | None:
    """The optimal noise at p = 2 for c · T + v, T a tensor power; None for other domains."""
    domain, kind = problem.domain, problem.protected
    power, scale, shift = stripped(domain)
    if power is None or kind is None or (kind == "add-remove" and shift.any()):
        return None
    designed = tensor_design(power, kind)
    center = scale * designed.center + shift if problem.shifted else np.zeros(domain.dim)
    lost = np.abs(center - shift - scale * designed.center).max() if problem.shifted else 0.0
    if lost > _LOST * abs(scale):  # so far away that the general route covers what rounding moves
        return None
    size = abs(scale) * math.sqrt(1 + ROUNDING_MARGIN) * (1 + 8 * ASTRAY)
    covariance = FactorCovariance(designed.factor, size)
    certificate = TensorCertificate(power, designed.atoms, designed.weights, kind, abs(scale))
    return answer(
        problem,
        covariance=covariance,
        center=center,
        certificate=certificate,
        upper=upper_end(covariance, problem.p, 0.0),
        lower=certificate.lower_bound(),
        sensitivity_squared=4.0 if problem.shifted else 1.0,
        method=f"{designed.note}; of rank {designed.factor.shape[1]} in R^{domain.dim}",
        unsolved=Status.ROUNDING,
        steps=0,
        trace=(),
        tol=tol,
    )
