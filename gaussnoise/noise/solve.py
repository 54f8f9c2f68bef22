"""The public functions for an optimal covariance: ``optimal_noise``, and the paper's ``gamma``."""

import math
import warnings
from dataclasses import dataclass, field, replace
from functools import lru_cache
from numbers import Real
from typing import TYPE_CHECKING, final

import numpy as np

from domains.algebra.products import parts_over_time
from domains.domain import AbstractDomain
from domains.participation.participations import CountParticipations, VectorParticipations
from domains.participation.patterns import Apart
from domains.sets.finite import FiniteSet
from domains.tables.marginals import Marginals
from domains.tables.products import Products
from domains.tables.tables import AbstractTables

from ..errors import ConvergenceWarning, ParameterError
from ..numerics.norms import check_order
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.progress import Watch, Watcher, interrupts_pass, watching
from .agreement import ReplaceWithin
from .answer import answer, warned
from .apart import apart_optimum
from .bodies import body_noise, with_factor
from .certificates.kronecker import KroneckerCertificate, product_above, product_below
from .kronecker_covariance import KroneckerCovariance
from .optimal_noise import OptimalNoise, Status
from .participations import MOST_SEARCHED, apart_noise, participation_noise, with_chain
from .points import point_noise
from .policy import PolicyGraph
from .problem import Problem, Relation
from .proportion import AddInProportion
from .sensitivity import check_relation
from .streams import is_written_out, linear_workload, stream_noise
from .tables import tables_optimum

if TYPE_CHECKING:
    import networkx

_MOST_KEPT = 2**16  # largest number of coordinates of tables whose noise is kept
_COMPARED = str | ReplaceWithin | AddInProportion  # relations that are compared by their content

_METHODS = ("auto", "oracle", "sdp", "sdp-clarabel", "sdp-scs", "ellipsoid")


def optimal_noise(
    domain: AbstractDomain,
    p: float = 2,
    *,
    neighbors: "Relation | networkx.Graph" = "replace",
    tol: float = 1e-6,
    method: str = "auto",
    progress: bool | Watcher | None = None,
) -> OptimalNoise:
    """Return the covariance of least error that protects one record, by default a *replaced* one.

    By default, :func:`plan` and the command line protect a record that is *added or removed*. Pass
    ``neighbors="add-remove"`` here for the same protection.

    The covariance M has the least ``‖sd(M)‖_p``, the norm of the standard deviations, such that
    ``s' M⁺ s <= 1`` for all s in the sensitivity set. For the domain K, the sensitivity set is
    K − K when a record is replaced, and K ∪ −K when a record is added or removed. Under a policy
    graph, it is the differences along the graph's edges. Noise of covariance ``M/(2ρ)`` on the sum
    of records is ρ-zCDP, and no smaller multiple of M is. Ctrl-C during the solver's steps returns
    the best certified answer so far.

    Args:
        domain: any domain, or one of your own (see :class:`AbstractDomain`).
        p: error norm in [2, ∞]: 2 is root total variance, ``math.inf`` the largest standard
            deviation. For :class:`Products`, each query counts with the root mean square deviation
            of its table. This does not hold under a policy graph, with another method, or in
            :func:`gamma`.
        neighbors: "replace" (for means; the number of records n is public), "add-remove" (for sums;
            n is private), or an undirected networkx graph on the row indices of the points (n is
            public): values joined by an edge must be indistinguishable, values at distance k are
            protected at k²ρ. A disconnected graph is refused unless ``graph.graph["components"]``
            is ``"public"``. For :class:`Marginals` also ``ReplaceWithin`` or ``AddInProportion``:
            :func:`plan` builds these for ``public`` attributes and for numbers with a unit.
        tol: certified relative gap to reach, in (0, 1).
        method: "auto" chooses one, which ``.method`` then names: a closed form, listed points, a
            relaxation without its matrix, or column generation by the quadratic oracle. "oracle"
            takes column generation. Independent, slower methods for small sets: "sdp-clarabel",
            "sdp-scs", "sdp" (Clarabel if the set is small enough, otherwise SCS), and "ellipsoid",
            the central-cut method.
        progress: True draws a progress bar; a callable receives a :class:`Progress` at every step;
            False is silent. By default a bar is drawn after two seconds, on a terminal.

    Returns:
        An :class:`OptimalNoise` with ``sensitivity_squared == 1``.

    Raises:
        ParameterError: p < 2, tol outside (0, 1), unknown relation or method, disconnected policy.
        DomainTooLargeError: points, or differences for the reference methods, cannot be listed; or
            there are more than 4096 dimensions.
        CovarianceError: sizes of coordinates differ by more than about 1e15.
        NotAvailableError: a reference solver failed.

    Warns:
        ConvergenceWarning: the gap is wider than ``tol``; the noise is still feasible. This
            is common for :class:`Products` of several attributes; ``.status`` says how to reduce
            the gap.
        PolicyWarning: the policy graph has several components.

    Source: Nikolov & Tang (2023), Definition 2 without shift; Theorem 26 for the dual.

    >>> # histogram of 4 cells, one record replaced
    >>> noise = gn.optimal_noise(gn.FiniteSet(np.eye(4)))
    >>> print(f"{noise.gamma:.6f}", noise.gap < 1e-6)  # sqrt(2 (4 - 1))
    2.449490 True
    """
    check_problem("optimal_noise", domain, p, tol, method)
    if isinstance(neighbors, ReplaceWithin | AddInProportion):
        neighbors.check("optimal_noise", domain)
        if method != "auto":
            public = isinstance(neighbors, ReplaceWithin)
            where = "attributes are public" if public else "budgets grow with numbers"
            raise ParameterError(
                f'optimal_noise: expected method="auto" where {where}, got {method!r}'
            )
        relation: Relation = neighbors
    else:
        relation = check_relation("optimal_noise", neighbors, domain)
    if isinstance(relation, PolicyGraph):
        relation.warn("optimal_noise", stacklevel=2)
    return warned(
        _answered(
            "optimal_noise", Problem(domain, float(p), relation), float(tol), method, progress
        ),
        tol,
    )


def gamma(
    domain: AbstractDomain,
    p: float = 2,
    *,
    tol: float = 1e-6,
    method: str = "auto",
    progress: bool | Watcher | None = None,
) -> OptimalNoise:
    """Return the paper's ``γ_p(K) = min ‖sd(M)‖_p`` over ellipsoids ``v + E(M)`` that contain K.

    K is the domain, E(M) the ellipsoid of all x with ``x' M⁺ x <= 1``, and sd(M) the vector of
    standard deviations. The covariance M of the answer covers K − v, not K − K:
    ``sensitivity_squared`` is up to 4 under replacement, and the mechanism scales its noise
    accordingly.

    Args:
        domain: any domain.
        p: error norm in [2, ∞].
        tol: certified relative gap to reach, in (0, 1).
        method: as in :func:`optimal_noise`.
        progress: as in :func:`optimal_noise`.

    Returns:
        An :class:`OptimalNoise` with ``center`` v and ``neighbors == "replace"``; ``float(...)`` is
        the upper bound on γ_p(K).

    Raises:
        ParameterError: p < 2, tol outside (0, 1), unknown method.
        DomainTooLargeError: the points cannot be listed.
        CovarianceError: sizes of coordinates differ by more than about 1e15.
        NotAvailableError: a reference solver failed.

    Warns:
        ConvergenceWarning: the gap is wider than ``tol``.

    Source: Nikolov & Tang (2023), Definition 2 and Lemma 28.

    >>> print(f"{float(gn.gamma(gn.Marginals.all_kway((3, 2, 4), 2))):.9f}")
    6.518575679
    """
    check_problem("gamma", domain, p, tol, method)
    problem = Problem(domain, float(p), "replace", shifted=True)
    return warned(_answered("gamma", problem, float(tol), method, progress), tol)


def noise_of(domain: AbstractDomain, p: float, neighbors: Relation, tol: float) -> OptimalNoise:
    """Return optimal noise; the callers of this function warn if the gap of products is wide.

    The answers to the last 16 problems of small tables are stored. Loading a folder, trying a
    release again and comparing budgets need the same answer again.
    """
    if not isinstance(domain, Marginals | Products):
        return optimal_noise(domain, p, neighbors=neighbors, tol=tol)
    check_problem("optimal_noise", domain, p, tol, "auto")
    small = domain.dim <= _MOST_KEPT and isinstance(neighbors, _COMPARED)
    content = domain.content if small else None
    noise = (
        solved(domain, p, neighbors, tol)
        if content is None
        else _solved_once(_Tables(content, domain), p, neighbors, tol)
    )
    return noise if isinstance(domain, Products) else warned(noise, tol)


@final
@dataclass(frozen=True)
class _Tables:
    """A key for stored answers: tables are equal if the best noise for both is the same."""

    content: tuple[object, ...]
    domain: AbstractTables = field(compare=False)


@lru_cache(maxsize=16)
def _solved_once(tables: _Tables, p: float, neighbors: Relation, tol: float) -> OptimalNoise:
    return solved(tables.domain, p, neighbors, tol)


def solved(domain: AbstractDomain, p: float, neighbors: Relation, tol: float) -> OptimalNoise:
    """Return optimal noise without a warning about its gap, which callers show themselves."""
    with warnings.catch_warnings(), interrupts_pass():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return optimal_noise(domain, p, neighbors=neighbors, tol=tol)


def _answered(
    function: str, problem: Problem, tol: float, method: str, progress: bool | Watcher | None
) -> OptimalNoise:
    """Return the answer to the problem, by the first method that can solve it."""
    domain = problem.domain
    with watching(progress, tol) as watch:
        if isinstance(problem.neighbors, AddInProportion):
            return apart_optimum(function, problem, domain, problem.neighbors, tol, watch)
        if method == "auto" and problem.protected is not None:
            if isinstance(domain, Marginals) or (
                isinstance(domain, Products) and not problem.shifted
            ):
                return tables_optimum(problem, problem.protected, tol, watch)
            parts = parts_over_time(domain)
            if parts is not None and problem.protected == "add-remove":
                return _part_by_part(function, problem, parts, tol, progress)
            workload = linear_workload(problem)
            if workload is not None and not is_written_out(workload):
                return stream_noise(problem, workload, tol, watch)
        if isinstance(domain, VectorParticipations):
            return participation_noise(function, problem, domain, tol, method, watch)
        listed = _listed(function, domain, method)
        if (
            isinstance(domain, CountParticipations)
            and listed is None
            and method == "auto"
            and problem.protected == "add-remove"
        ):
            return _count_noise(function, problem, domain, tol, watch)
        if listed is None:
            return body_noise(function, problem, tol, method, watch)
        return point_noise(problem, listed, tol, method, watch)


def _part_by_part(
    function: str,
    problem: Problem,
    parts: tuple[AbstractDomain, ...],
    tol: float,
    progress: bool | Watcher | None,
) -> OptimalNoise:
    """Return the Kronecker product of the parts' optimal noises, for a product of domains."""
    # ±(K ⊗ L) = (±K) ⊗ (±L), so that add-remove is solved part by part; K ⊗ L − K ⊗ L is no product
    if problem.p > 2 and any(isinstance(part, Products) for part in parts):
        raise ParameterError(
            f"{function}: expected p = 2 for a workload over time times Products that are too "
            f"large to list, got p = {problem.p:g}: alone, these count every query with the root "
            "mean square of its table, which is another norm; hint: p=2, or Marginals"
        )
    share = math.expm1(math.log1p(tol) / len(parts) * (1 - ROUNDING_MARGIN))
    answers = [
        _answered(function, Problem(part, problem.p, "add-remove"), share, "auto", progress)
        for part in parts
    ]
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


def _count_noise(
    function: str, problem: Problem, domain: CountParticipations, tol: float, watch: Watch
) -> OptimalNoise:
    """Return noise for numbers in [0, 1] at sets of ticks that are not listed."""
    who = domain.who
    if isinstance(who, Apart) and not who.are_disjoint:
        noise = apart_noise(problem, domain, who, tol)
        if noise.gap <= tol or domain.dim > MOST_SEARCHED:
            return noise
        own = body_noise(function, problem, tol, "auto", watch)
        if own.gamma <= noise.gamma:
            if own.gamma_lower >= noise.gamma_lower:
                return own
            return with_chain(own, noise, domain, tol)
        if own.gamma_lower <= noise.gamma_lower:
            return noise
        method = f"{noise.method}; lower end: {own.method}"
        return with_factor(own, noise.covariance.factor(), tol, method)
    # the better of noise for this set and of rescaled noise for vectors
    vectors = VectorParticipations(domain.matrix, who)
    over = replace(problem, domain=vectors)
    design = participation_noise(function, over, vectors, tol, "auto", watch)
    own = body_noise(function, problem, tol, "auto", watch)
    method = f"numbers as vectors no longer than one: {design.method}"
    return min(
        with_factor(own, design.covariance.factor(), tol, method), own, key=lambda one: one.gamma
    )


def check_problem(function: str, domain: AbstractDomain, p: float, tol: float, method: str) -> None:
    """Raise ParameterError unless the arguments that all public functions here take are valid."""
    if not isinstance(domain, AbstractDomain):
        raise ParameterError(
            f"{function}: expected a domain, got {type(domain).__name__}; hint: "
            "FiniteSet(points), or FiniteSet.from_workload(W) for a workload matrix"
        )
    check_order(function, p)
    if not isinstance(tol, Real) or not 0 < tol < 1:
        raise ParameterError(f"{function}: expected 0 < tol < 1, got {tol!r}")
    if method not in _METHODS:
        raise ParameterError(
            f"{function}: expected method in {', '.join(_METHODS)}; got {method!r}"
        )


def _listed(function: str, domain: AbstractDomain, method: str) -> FiniteSet | None:
    """Return points whose convex hull is the domain, or None if oracles are used instead."""
    if method == "oracle":
        return None
    listed = domain._listed()
    if listed is None and method != "auto":
        raise ParameterError(
            f"{function}: method={method!r} needs listed points, which {type(domain).__name__} has "
            'not; hint: method="auto", or FiniteSet(points) with points whose hull approximates it'
        )
    return listed
