"""Noise for workloads over time, as weights for many ticks and as matrices for few ticks."""

import math
from dataclasses import replace

import numpy as np

from domains.floats import Array
from domains.sets.stream import StreamWorkload

from ..numerics.norms import dual_ball_norm
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.design import Design
from ..solvers.progress import Watch
from ..solvers.streams.optimum import StreamOptimum, is_mirrored, stream_optimum
from .answer import answer
from .certificates.streams import StreamCertificate, below, twice_checked
from .optimal_noise import OptimalNoise, Status
from .problem import Problem
from .stream_covariance import StreamCovariance

_SHARE = 0.9  # the solver's part of the tolerance
_MOST_SUBDIAGONALS = 8  # most subdiagonals of A⁻¹ for the linear-time method
_LEAST_TICKS = 257  # for one subdiagonal; with fewer ticks, Newton's method on matrices is as fast
_LEAST_TICKS_OF_SEVERAL = 1025
_MOST_STEPS_OF_SEVERAL = 60  # for fewer ticks than that: then matrices solve for them
_WRITTEN_OUT = 1024  # most ticks for which the covariance is stored as a matrix


def linear_workload(problem: Problem) -> StreamWorkload | None:
    """Return the problem's workload over time, or None if the linear-time method does not apply."""
    domain = problem.domain
    if not isinstance(domain, StreamWorkload) or problem.protected != "add-remove":
        return None
    subdiagonals = len(domain.bands) - 1
    is_quick = subdiagonals == 1 or (subdiagonals == 2 and is_mirrored(domain.bands, problem.p))
    least = _LEAST_TICKS if is_quick else _LEAST_TICKS_OF_SEVERAL
    is_known = 1 <= subdiagonals <= _MOST_SUBDIAGONALS and domain.ticks >= least
    return domain if is_known else None


def is_written_out(workload: StreamWorkload) -> bool:
    """Return whether the covariance is stored as a matrix and checked as for listed points."""
    return workload.ticks <= _WRITTEN_OUT


def stream_design(workload: StreamWorkload, p: float, tol: float, watch: Watch) -> Design | None:
    """Return the optimal covariance of a workload over time as a matrix, with dual weights.

    Return None if A⁻¹ has several subdiagonals and a solver with matrices is likely as fast.
    """
    has_one = len(workload.bands) == 2
    optimum = stream_optimum(
        workload.bands,
        p,
        tol=_SHARE * tol,
        report=watch.scaled(1.0),
        most=None if has_one else _MOST_STEPS_OF_SEVERAL,
    )
    if not (has_one or optimum.gap <= tol or optimum.interrupted):
        return None
    w = _into_dual_ball(optimum.coordinate_weights, p)
    root = np.sqrt(w)
    U, sizes, _ = np.linalg.svd(
        root[:, None] * workload.toarray() * np.sqrt(optimum.weights), full_matrices=False
    )
    return Design(
        weights=optimum.weights,
        coordinate_weights=w,
        factor=U * np.sqrt(sizes) / root[:, None],
        center=np.zeros(workload.dim),
        gap=optimum.gap,
        steps=optimum.steps,
        note=_note(optimum),
        interrupted=optimum.interrupted,
    )


def stream_noise(
    problem: Problem, workload: StreamWorkload, tol: float, watch: Watch
) -> OptimalNoise:
    """Return the optimal noise of a workload over time, with a covariance stored as weights."""
    p = problem.p
    optimum = stream_optimum(workload.bands, p, tol=_SHARE * tol, report=watch.scaled(1.0))
    weights, w = (
        optimum.weights / optimum.weights.sum() * (1 - ROUNDING_MARGIN),
        _into_dual_ball(optimum.coordinate_weights, p),
    )
    certificate = StreamCertificate(workload, weights, w)
    unit = StreamCovariance(workload, weights, w, 1.0)
    own, again = unit.evaluation, twice_checked(certificate, unit, p)
    scale = math.sqrt(max(again.enclosure, float(own.leverages.max()))) * (1 + ROUNDING_MARGIN)
    upper = max(unit.error(p), again.gamma) * scale * (1 + ROUNDING_MARGIN)
    stopped = Status.MAX_STEPS if optimum.gap > _SHARE * tol else Status.ROUNDING
    return answer(
        problem,
        covariance=replace(unit, scale=scale),
        center=np.broadcast_to(0.0, workload.dim),
        certificate=certificate,
        upper=upper,
        lower=min(below(own), again.gamma_lower),
        sensitivity_squared=1.0,
        method=f"{_note(optimum)}, for {workload.ticks} ticks that are never written out",
        unsolved=Status.INTERRUPTED if optimum.interrupted else stopped,
        steps=optimum.steps,
        trace=watch.trace,
        tol=tol,
    )


def _into_dual_ball(w: Array, p: float) -> Array:
    """Return w, scaled to a norm of order p/(p − 2) that is at most one despite rounding."""
    return w if p == 2 else w / dual_ball_norm(w, p) * (1 - ROUNDING_MARGIN)


def _note(optimum: StreamOptimum) -> str:
    nodes = len(optimum.evaluation.root.sizes)
    return (
        f"multiplicative algorithm in linear time by the banded inverse ({nodes} resolvents a step)"
    )
