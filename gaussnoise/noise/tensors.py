"""The closed form for tensor powers as an answer."""

import math

import numpy as np

from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.bodies.harmonics import tensor_design
from ..solvers.design import Design
from .answer import answer_of
from .certificates.tensors import ASTRAY, TensorCertificate, stripped
from .covariance import FactorCovariance
from .optimal_noise import OptimalNoise
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
    if problem.shifted and np.abs(center - shift - scale * designed.center).max() > _LOST * abs(
        scale
    ):
        return (
            None  # so far away that its center is rounded: the general route covers what that moves
        )
    size = abs(scale) * math.sqrt(1 + ROUNDING_MARGIN) * (1 + 8 * ASTRAY)
    nothing = np.zeros(domain.dim)
    return answer_of(
        problem,
        Design(np.ones(1), np.ones(domain.dim), designed.factor, nothing, 0.0, 0, designed.note),
        covariance=FactorCovariance(designed.factor, size),
        outside=0.0,
        center=center,
        certificate=TensorCertificate(power, designed.atoms, designed.weights, kind, abs(scale)),
        sensitivity_squared=4.0 if problem.shifted else 1.0,
        method=f"{designed.note}; of rank {designed.factor.shape[1]} in R^{domain.dim}",
        trace=(),
        tol=tol,
    )
