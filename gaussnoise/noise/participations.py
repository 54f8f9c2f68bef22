"""The best noise for people who add a vector at each of several ticks."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import TINY, Array, power_of_two
from domains.participation.participations import AbstractParticipations, VectorParticipations
from domains.participation.patterns import AbstractPatterns, Apart
from domains.participation.sensitivity import blocks

from ..errors import ParameterError
from ..numerics.norms import dual_ball_norm
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.points.columns import Report
from ..solvers.progress import Progress, Watch
from ..solvers.streams.banded_strategy import banded_strategy
from ..solvers.streams.chains import best_chain
from ..solvers.streams.exchange import Exchanged, exchange_optimum
from ..solvers.streams.overlapping import Overlapping, affordable, overlapping_optimum
from ..solvers.streams.separated import Separated, covering_sets, separated_optimum
from ..solvers.streams.total_strategy import total_strategy
from ..solvers.streams.wide_strategy import wide_strategy
from .answer import answer, upper_end
from .certificates.certificate import Certificate
from .certificates.chains import ChainCertificate
from .certificates.participations import SOLVED_AGAIN, ParticipationCertificate, longest_move
from .covariance import FactorCovariance
from .optimal_noise import OptimalNoise, Status, gap_between
from .problem import Problem

Indices = NDArray[np.intp]

_SHARE = 0.8  # the solver's part of the tolerance; the rest is for rounding and the final checks
_ROUGH = 1e-3  # tolerance of the solution that column generation starts from
_NEGLIGIBLE_WEIGHT = 1e-14  # weights below this fraction of the largest are dropped
MOST_SEARCHED = 48  # most ticks for which column generation may improve a chain's lower bound
_MOST_STEPS, _MOST_SLOW_STEPS = 400, 120
_MOST_WIDE = 2**20  # largest k n² for strategies without a band: tens of seconds


def participation_noise(
    function: str,
    problem: Problem,
    domain: VectorParticipations,
    tol: float,
    method: str,
    watch: Watch,
) -> OptimalNoise:
    """Return the best noise for people who add a vector at each of several ticks.

    The covariance M of the answer is for one coordinate of the vectors; every coordinate has
    independent noise of this covariance. A tick is one time of publication, and a pattern is a set
    of ticks at which one person takes part.
    """
    # If patterns are disjoint, M is found by Newton's method on the dual. If they overlap, or
    # Newton's method stops early, M is found by a barrier method for few patterns and ticks, and
    # otherwise by column generation from the result of Newton's method. If there are too many sets
    # of ticks to list, M is that of the best known strategy, and a Markov chain proves a lower
    # bound. If their gap exceeds tol and ticks are few, column generation follows, and the better
    # upper and lower bounds are kept. With more ticks it takes minutes, and never improved a bound
    # in our experiments.
    if problem.protected != "add-remove" or method != "auto":
        raise ParameterError(
            f'{function}: expected neighbors="add-remove" and method="auto" for people who add '
            "vectors; hint: a person "
            "replaced by another is one removed and one added, twice the noise"
        )
    if isinstance(domain.who, Apart) and not (domain.who.lists_few or domain.who.are_disjoint):
        noise = apart_noise(problem, domain, domain.who, tol)
        if noise.gap <= tol or domain.dim > MOST_SEARCHED:
            return noise
        searched = _searched(problem, domain, tol, watch)
        upper = min(noise, searched, key=lambda one: one.gamma)
        lower = max(noise, searched, key=lambda one: one.gamma_lower)
        return _with_lower_end(upper, lower, tol)
    return _searched(problem, domain, tol, watch)


def _with_lower_end(noise: OptimalNoise, lower: OptimalNoise, tol: float) -> OptimalNoise:
    """Return ``noise`` with the lower bound of ``lower``, another answer to the same problem."""
    if noise is lower:
        return noise
    return replace(
        noise,
        gamma_lower=lower.gamma_lower,
        certificate=lower.certificate,
        method=f"{noise.method}; lower end: {lower.method}",
        status=Status.SOLVED
        if gap_between(lower.gamma_lower, noise.gamma) <= tol
        else noise.status,
    )


def with_chain(
    noise: OptimalNoise, banded: OptimalNoise, domain: AbstractParticipations, tol: float
) -> OptimalNoise:
    """Return ``noise`` for numbers in [0, 1], with the lower bound of ``banded``.

    ``noise`` and ``banded`` are answers to the same problem. A Markov chain proves the lower bound.
    """
    size = power_of_two(np.abs(domain.matrix).max())
    method = f"{noise.method}; lower end: {banded.method}"
    factor = noise.covariance.factor() / size
    return _covered(noise.problem, domain, factor, banded.certificate, method, tol)


def apart_noise(
    problem: Problem, domain: AbstractParticipations, who: Apart, tol: float
) -> OptimalNoise:
    """Return the noise of the best banded strategy, with a Markov chain as its certificate.

    A strategy is a lower triangular matrix C: the values C x of a stream x get independent noise. C
    is banded if it has few diagonals. If the gap exceeds ``tol``, a second strategy also measures a
    weighted total of all ticks. If the gap is still too large and ticks are few, a third strategy
    has no band. The best of these strategies is kept.
    """
    n, k, A = domain.dim, who.most, domain.matrix
    unit = A / power_of_two(np.abs(A).max())
    vectors = isinstance(domain, VectorParticipations)
    chain, w = best_chain(unit, k, who.b, problem.p, vectors=vectors)
    certificate = ChainCertificate(domain, chain, w / max(dual_ball_norm(w, problem.p), 1.0))

    def covered(C: Array, kind: str) -> OptimalNoise:
        factor = scipy.linalg.solve_triangular(C, unit.T, trans=1, lower=True).T
        method = f"{kind}, for {k} of {n} ticks"
        return _covered(problem, domain, factor, certificate, method, tol)

    C = banded_strategy(unit, k, who.b, problem.p)
    kind = f"banded strategy of {min(who.b, n)} diagonals"
    found = [covered(C, kind)]
    if found[0].gap > tol:
        totalled = total_strategy(C, unit, k, who.b, problem.p)
        found.append(covered(totalled, f"{kind} and a weighted total"))
        if found[-1].gap > tol and k * n**2 <= _MOST_WIDE:
            wide = wide_strategy(C, unit, k, who.b, problem.p, signed=vectors)
            found.append(covered(wide, "strategy without a band"))
    return min(found, key=lambda one: one.gamma)


def _covered(
    problem: Problem,
    domain: AbstractParticipations,
    factor: Array,
    certificate: Certificate,
    method: str,
    tol: float,
    optimum: Separated | Overlapping | Exchanged | None = None,
    trace: Sequence[Progress] = (),
) -> OptimalNoise:
    """Return the answer for a factor, scaled so that it covers all changes by one person."""
    # the factor is for the workload matrix divided by a power of two
    size = power_of_two(np.abs(domain.matrix).max())
    longest, outside = longest_move(domain, factor, size)
    margin = ROUNDING_MARGIN if domain.who.most == 1 else SOLVED_AGAIN
    covariance = FactorCovariance(factor, size * longest * (1 + margin))
    upper = upper_end(covariance, problem.p, size * float(outside.sum()))
    lower, steps = certificate.lower_bound(), optimum.steps if optimum else 0
    return answer(
        problem,
        covariance=covariance,
        center=np.zeros(domain.dim),
        certificate=certificate,
        upper=upper,
        lower=lower,
        sensitivity_squared=1.0,
        method=method,
        unsolved=Status.INTERRUPTED if optimum and optimum.interrupted else Status.PARTICIPATIONS,
        steps=steps,
        trace=[*trace, Progress(steps, lower, upper)],
        tol=tol,
    )


def _searched(
    problem: Problem, domain: VectorParticipations, tol: float, watch: Watch
) -> OptimalNoise:
    """Return the noise by listed sets of ticks, or by column generation if there are too many."""
    who, A, p = domain.who, domain.matrix, problem.p
    size = power_of_two(np.abs(A).max())
    sets, Z, optimum, note = _solved_sets(A / size, who, p, _SHARE * tol, watch.scaled(size))
    certificate = _certificate(domain, sets, optimum.weights, Z, optimum.coordinate_weights, p)
    method = f"{note} of at most {who.most} of {domain.dim} ticks"
    return _covered(problem, domain, optimum.factor, certificate, method, tol, optimum, watch.trace)


def _solved_sets(
    A: Array, who: AbstractPatterns, p: float, tol: float, report: Report
) -> tuple[Indices, Array, Separated | Overlapping | Exchanged, str]:
    """Return sets of ticks, their correlations, the solver's result, and the solver's name."""
    sets = who.maximal() if who.lists_few or who.are_disjoint else covering_sets(A, who, p)
    few = who.lists_few and affordable(len(A), len(sets), who.most)
    optimum: Separated | Overlapping | Exchanged
    if who.are_disjoint or not few:
        if not who.are_disjoint and who.lists_few:
            sets = covering_sets(A, who, p)
        enough = tol if who.are_disjoint else max(_ROUGH, tol)
        proven = report if who.are_disjoint else None  # a restricted dual proves no lower bound
        optimum = separated_optimum(
            A, who, sets, p, tol=enough, max_steps=_MOST_SLOW_STEPS, report=proven
        )
        Z = _correlations(optimum.second_moment, sets, optimum.weights)
        if (who.are_disjoint and optimum.gap <= tol) or optimum.interrupted:
            alike = "disjoint " if who.are_disjoint else ""
            return sets, Z, optimum, f"Newton's method over {len(sets)} {alike}patterns"
        if not few:
            start = sets, Z, optimum.weights, optimum.factor
            optimum = exchange_optimum(A, who, *start, p, tol=tol, report=report)
            note = f"column generation over what one person may do: {len(optimum.sets)} patterns"
            return optimum.sets, optimum.correlations, optimum, note
    optimum = overlapping_optimum(A, sets, p, tol=tol, max_steps=_MOST_STEPS, report=report)
    return sets, optimum.correlations, optimum, f"barrier method over {len(sets)} patterns"


def _correlations(second_moment: Array, sets: Indices, weights: Array) -> Array:
    """Return correlations for ``sets``, (P, k, k), with a weighted sum near ``second_moment``."""
    # the certificate is valid even if the sum differs from Λ, the second moment: each Z_π has unit
    # diagonal and is positive semidefinite, so that one person's vectors may be so correlated
    n = len(second_moment)
    shared = np.zeros((n + 1, n + 1))
    np.add.at(shared, (sets[:, :, None], sets[:, None, :]), weights[:, None, None])
    shared = shared[:n, :n]
    ratio = np.divide(second_moment, shared, out=np.zeros_like(shared), where=shared > 0)
    values, axes = np.linalg.eigh(_unit_diagonal(blocks(ratio, sets)))
    nearest = (axes * np.maximum(values, 0.0)[:, None, :]) @ axes.transpose(0, 2, 1)
    sizes = np.sqrt(np.maximum(np.diagonal(nearest, axis1=1, axis2=2), TINY))
    return _unit_diagonal(nearest / sizes[:, :, None] / sizes[:, None, :])


def _unit_diagonal(Z: Array) -> Array:
    k = Z.shape[1]
    Z[:, np.arange(k), np.arange(k)] = 1.0
    return Z


def _certificate(
    domain: VectorParticipations, sets: Indices, weights: Array, Z: Array, w: Array, p: float
) -> ParticipationCertificate:
    kept = weights > _NEGLIGIBLE_WEIGHT * weights.max()
    values, axes = np.linalg.eigh(Z[kept])
    vectors = axes * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=2, keepdims=True), math.ulp(0.0))
    w = w / max(dual_ball_norm(w, p), 1.0)
    return ParticipationCertificate(
        domain, sets[kept], weights[kept] / weights[kept].sum(), vectors, w
    )
