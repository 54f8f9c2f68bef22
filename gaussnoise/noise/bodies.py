"""The optimal covariance of a domain whose points cannot be listed, by its oracles."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from domains.domain import AbstractDomain
from domains.floats import Array

from ..errors import ParameterError
from ..numerics.feasibility import RANGE_TOLERANCE
from ..numerics.rounding import ROUNDING_MARGIN
from ..numerics.span import placed, span
from ..solvers.bodies.body import Body, about, check_dim, left_inverse, moved_back, unit_body
from ..solvers.bodies.closed_forms import closed_form
from ..solvers.bodies.factors import Factor, factored
from ..solvers.bodies.images import relaxation
from ..solvers.bodies.oracle import oracle_design
from ..solvers.design import MAX_STEPS, Design
from ..solvers.points.columns import Report
from ..solvers.points.thinning import thinned
from ..solvers.progress import Watch
from .answer import answer, how_it_ended, steps_seen, upper_end
from .certificates.points import PointCertificate
from .covariance import FactorCovariance
from .enclosure import widened
from .optimal_noise import OptimalNoise
from .problem import Problem
from .tensors import axes_noise, tensor_noise

# Total weight of the light points that are left out of the certificate, per unit of tolerance, or
# of the gap where this stays wider.
_SPARED = 1e-2
_SHARE = 0.7  # the solver's part of the tolerance; the rest is for rounding and the final checks


def body_noise(
    function: str, problem: Problem, tol: float, method: str, watch: Watch
) -> OptimalNoise:
    """Return the best noise for a set that is known by its oracles, without a list of points.

    An oracle finds the farthest point in a direction, or under a quadratic form. Errors name
    ``function``.
    """
    if problem.p == 2 and method == "auto":
        known = tensor_noise(problem, tol)
        if known is not None:
            return known
    domain, p, protected, shifted = problem.domain, problem.p, problem.protected, problem.shifted
    if protected is None:
        raise ParameterError(
            f'{function}: method="oracle" knows no policy graphs; hint: method="auto"'
        )
    check_dim(function, domain.dim)
    if p == np.inf and method == "auto":
        known = axes_noise(problem, tol)
        if known is not None:
            return known
    still, shift = moved_back(domain, protected)
    covered = still - still if protected == "replace" else still
    center = still._center() if shifted else np.zeros(domain.dim)
    symmetric = center is not None
    # without a known center, a point of the set becomes the origin, to keep rounding small
    origin = covered.support_point(np.zeros(domain.dim)) if center is None else center
    body, size = unit_body(covered, origin)
    design, points, rank = _design(body, p, tol, method, watch.scaled(size), centered=not symmetric)
    members = origin + size * points
    center = np.zeros(domain.dim)
    if shifted:
        # use the center as it will be stored, rounded
        center = shift + (origin if symmetric else origin + size * design.center)
        body = about(covered, center - shift, size, domain._drift(shift))
    factor, longest, outside = _enclosing(design.factor, body)
    scale = size * longest * (1 + ROUNDING_MARGIN) if longest > 0 else size
    covariance = FactorCovariance(factor, scale)
    kept = _heaviest(design.weights, _SPARED * max(tol, design.gap if design.inexact else 0.0))
    points, members, weights = points[kept], members[kept], design.weights[kept]
    rows, weights = thinned(points, weights, centered=not symmetric)
    members = members[rows]
    if shifted and symmetric:  # add the mirror image of the measure about the center
        members = np.vstack([members, origin - size * points[rows]])
        weights = np.tile(weights, 2) / 2
    moved = shift if shifted and shift.any() else None
    certificate = PointCertificate(
        members, weights, design.coordinate_weights, None, shifted, moved
    )
    sensitivity = 1.0
    if shifted:
        sensitivity = 4.0
        if not symmetric and longest > 0:
            both = Body((still - still) * (1 / size))
            enclosed = both.enclosure(factor, left_inverse(factor), slack=2)
            sensitivity = min(4.0, (enclosed.longest / longest) ** 2)
    upper = upper_end(covariance, p, size * float(outside.sum()))
    # the certificate's points were rounded, so they may lie outside the set: subtract the effect
    lower = max(certificate.lower_bound() - Body(covered).rounded(p), 0.0)
    return answer(
        problem,
        covariance=covariance,
        center=center,
        certificate=certificate,
        upper=upper,
        lower=lower,
        sensitivity_squared=sensitivity,
        method=f"{design.note}; of rank {rank} in R^{domain.dim}",
        unsolved=how_it_ended(design),
        steps=design.steps,
        trace=steps_seen(watch.trace, design.steps, lower, upper),
        tol=tol,
    )


def with_factor(noise: OptimalNoise, factor: Array, tol: float, method: str) -> OptimalNoise:
    """Return the answer ``noise`` for a symmetric set K with another covariance that covers K.

    The covariance is a multiple of ``factor @ factor.T``; the lower bound does not change.
    """
    body, size = unit_body(noise.domain, np.zeros(noise.domain.dim))
    factor, longest, outside = _enclosing(factor / size, body)
    covariance = FactorCovariance(factor, size * longest * (1 + ROUNDING_MARGIN))
    return answer(
        noise.problem,
        covariance=covariance,
        center=noise.center,
        certificate=noise.certificate,
        upper=upper_end(covariance, noise.p, size * float(outside.sum())),
        lower=noise.gamma_lower,
        sensitivity_squared=1.0,
        method=method,
        unsolved=noise.status,
        steps=noise.steps,
        trace=noise.trace,
        tol=tol,
    )


def _heaviest(weights: Array, spared: float) -> NDArray[np.bool_]:
    """Return which points to keep: all but the lightest, up to ``spared`` of the weight."""
    order = np.argsort(weights)
    light = np.cumsum(weights[order]) < spared * weights.sum()
    kept = np.ones(len(weights), dtype=bool)
    kept[order[light]] = False
    return kept


def _enclosing(factor: Array, body: Body) -> tuple[Array, float, Array]:
    """Return a factor, the scale at which it covers the body, and distances from its range."""
    inverse = left_inverse(factor)
    enclosed = body.enclosure(factor, inverse, slack=2)
    stuck = enclosed.outside > RANGE_TOLERANCE * body.sizes
    if stuck.any():
        factor = widened(factor, stuck, enclosed.outside)
        enclosed = body.enclosure(factor, left_inverse(factor), slack=2)
    return factor, enclosed.longest, enclosed.outside


def _design(
    body: Body, p: float, tol: float, method: str, report: Report | None, *, centered: bool
) -> tuple[Design, Array, int]:
    """Return the best design found for a body, the points of its weights, and its rank."""
    if method == "auto" and not centered:
        known = closed_form(body, p)
        if known is not None:
            return *known, known[0].factor.shape[1]
        spent = 0

        def solve(part: AbstractDomain) -> Factor:
            nonlocal spent
            factor = _factor(part, p, tol / 4, report, spent)
            spent += factor.design.steps
            return factor

        joint = factored(body.domain, p, solve)
        if joint is not None:
            return *joint, joint[0].factor.shape[1]
    points = body.start()
    live = (points != 0).any(axis=0)
    if not live.any():
        w, factor = np.zeros(body.dim), np.zeros((body.dim, 0))
        return Design.closed(np.ones(1), w, factor, "a single point", points[0]), points[:1], 0
    inner = body if live.all() else Body(np.eye(body.dim)[live] @ body.domain)
    basis = span(points[:, live] - (points[0, live] if centered else 0.0))
    rank = int(live.sum()) if basis is None else basis.shape[1]
    design, points = oracle_design(
        inner,
        points[:, live],
        p,
        basis,
        first=relaxation(inner, p, rank, tol / 4) if method == "auto" and not centered else None,
        centered=centered,
        tol=_SHARE * tol,
        max_steps=MAX_STEPS,
        report=report,
    )
    return design.on_all(live, p), placed(points.T, live).T, rank


def _factor(
    domain: AbstractDomain, p: float, tol: float, report: Report | None, spent: int
) -> Factor:
    """Return a design that covers one factor of a product; ``spent`` counts earlier steps."""

    def alive(steps: int, *_: float) -> None:
        if report is not None:
            report(spent + steps, 0.0, math.inf)

    body, size = unit_body(domain, np.zeros(domain.dim))
    design, points, _ = _design(body, p, tol, "auto", alive, centered=False)
    longest = 1.0
    if design.factor.shape[1]:
        longest = math.sqrt(body.farthest(left_inverse(design.factor), np.zeros(body.dim)).upper)
    return Factor(replace(design, factor=size * longest * design.factor), size * points)
