"""Answers for tensor powers from closed forms."""

import math

import numpy as np

from ..numerics.rounding import ROUNDING_MARGIN, rounded_up
from ..solvers.bodies.axes import axes_design, axes_entries, axes_factor
from ..solvers.bodies.harmonics import tensor_design
from .answer import answer, upper_end
from .certificates.axes import AxesCertificate, enclosure
from .certificates.tensors import ASTRAY, TensorCertificate, stripped
from .covariance import FactorCovariance
from .optimal_noise import OptimalNoise, Status
from .problem import Problem

_LOST = 1e-13  # largest rounding of the center, relative to the size of the set
_FAR = 1e-3  # with a larger error, the general method finds better noise for the stored center


def tensor_noise(problem: Problem, tol: float) -> OptimalNoise | None:
    """Return the optimal noise at p = 2 for a domain c · T + v, where T is a tensor power.

    Return None for other domains, and if the sum c · T + v loses digits of the center.
    """
    domain, kind = problem.domain, problem.protected
    power, scale, shift = stripped(domain)
    if power is None or kind is None or (kind == "add-remove" and shift.any()):
        return None
    designed = tensor_design(power, kind)
    center = scale * designed.center + shift if problem.shifted else np.zeros(domain.dim)
    lost = np.abs(center - shift - scale * designed.center).max() if problem.shifted else 0.0
    if lost > _LOST * abs(scale):  # K is too far from zero for a rounded center
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


def axes_noise(problem: Problem, tol: float) -> OptimalNoise | None:
    """Return the optimal noise at p = ∞ for a domain c · T + v, T a tensor power of even order.

    Return None for other domains, and if a record is added or removed: another closed form, the
    ball of symmetric tensors, is optimal then.
    """
    power, scale, shift = stripped(problem.domain)
    kind = problem.protected
    if power is None or power.order % 2 or (kind != "gamma" and kind != "replace"):
        return None
    design = axes_design(power, kind)
    if design is None:
        return None
    center = np.zeros(power.dim)
    if problem.shifted:
        center[axes_entries(power)] = scale * design.center
        moved = center + shift
        if np.abs((moved - shift) - center).max() > _FAR * abs(scale):
            return None
        center = moved
    factor = axes_factor(power, design.own, design.other, design.mixed)
    whole = enclosure(problem, FactorCovariance(factor, abs(scale)), center)
    covariance = FactorCovariance(factor, abs(scale) * math.sqrt(whole * (1 + ROUNDING_MARGIN)))
    sensitivity = 1.0
    if problem.shifted:
        replaced = Problem(problem.domain, problem.p, "replace")
        sensitivity = min(4.0, rounded_up(enclosure(replaced, covariance, np.zeros(power.dim))))
    certificate = AxesCertificate(power, kind, design.share, abs(scale))
    return answer(
        problem,
        covariance=covariance,
        center=center,
        certificate=certificate,
        upper=upper_end(covariance, problem.p, 0.0),
        lower=certificate.lower_bound(),
        sensitivity_squared=sensitivity,
        method="tensor powers of even order, closed form: powers of the axes alone need as much; "
        f"of rank {factor.shape[1]} in R^{power.dim}",
        unsolved=Status.ROUNDING,
        steps=0,
        trace=(),
        tol=tol,
    )
