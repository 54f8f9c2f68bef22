"""The doors to an optimal covariance: calibrated to privacy (``optimal_noise``), or the paper's
(``gamma``).
"""

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from domains import (
    AbstractDomain,
    DomainTooLargeError,
    FiniteSet,
    Marginals,
    Products,
)
from domains.participation.participations import VectorParticipations

from ..errors import CovarianceError, ParameterError
from ..numerics.rounding import ROUNDING_MARGIN
from ..numerics.span import span
from ..solvers.bodies.closed_forms import uniform_measure
from ..solvers.design import MAX_STEPS, Design, Protected
from ..solvers.points.columns import Report, pairwise_design
from ..solvers.points.fidelity import Fidelity
from ..solvers.points.interior import optimal_design
from ..solvers.progress import Watch, Watcher, watching
from ..solvers.tables.marginals import table_noise
from ..solvers.tables.orbits import ByType
from ..solvers.tables.workload import Workload
from .answer import answer, answer_of, warned
from .bodies import body_noise
from .certificates.marginals import MarginalCertificate
from .certificates.points import PointCertificate
from .covariance import FactorCovariance
from .enclosure import enclosing, pair_sensitivity
from .marginal_covariance import MarginalCovariance
from .optimal_noise import OptimalNoise, Status
from .participations import participation_noise
from .policy import PolicyGraph
from .problem import Problem, Relation
from .product_noise import product_optimum
from .sensitivity import Covered, check_relation, covered, marginal_sensitivity, members
from .streams import is_written_out, linear_workload, stream_design, stream_noise

if TYPE_CHECKING:
    import networkx

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

_METHODS = ("auto", "oracle", "sdp", "sdp-clarabel", "sdp-scs", "ellipsoid")
_SHARE = 0.9  # of the tolerance is for the solver; the rest, for what checking adds
_MOST_CUTS = 400_000  # of the ellipsoid method: about a minute at the largest size it accepts
_MOST_CELLS = 2**27  # one number per cell: 1 GB
_MOST_NAMED = 2**60  # numpy's indices have 63 bits
# A point whose weight is below this fraction of the largest adds nothing to the certificate but
# size.
_NEGLIGIBLE_WEIGHT = 1e-14
_LARGEST, _SMALLEST = 5e300, 1e-300
_LARGEST_SIMPLEX = 2**26  # numbers in twice its differences


def optimal_noise(
    domain: AbstractDomain,
    p: float = 2,
    neighbors: "Relation | networkx.Graph" = "replace",
    tol: float = 1e-6,
    method: str = "auto",
    *,
    progress: bool | Watcher | None = None,
) -> OptimalNoise:
    """The covariance of least error that covers what one record can change; by default, one
    record *replaced*.

    :func:`plan` and the command line protect a record that is added or removed unless told
    otherwise: pass ``neighbors="add-remove"`` for the same here.

    Minimises ``‖sd(M)‖_p`` subject to ``s' M⁺ s <= 1`` on the sensitivity set: K − K when a record
    is replaced, K ∪ −K when one is added or removed, the differences along the edges of a policy
    graph. With noise ``M/(2ρ)`` on the sum of records, this is ρ-zCDP exactly. Ctrl-C while steps
    are taken returns the best certified answer so far.

    Args:
        domain: any domain, or one of your own (see :class:`AbstractDomain`).
        p: error norm in [2, ∞]: 2 is root total variance, ``math.inf`` the largest standard
            deviation. For :class:`Products`, every query counts with the root mean square of its
            table (with its own under a policy graph, by another method, and in :func:`gamma`).
        neighbors: "replace" (n is public, means), "add-remove" (n is private, sums), or an
            undirected networkx graph on the row indices of the points (n is public, means): values
            it joins are to be indistinguishable, values at distance k are protected at k²ρ. A
            disconnected graph is refused unless ``graph.graph["components"]`` is ``"public"``.
        tol: certified relative gap to reach, in (0, 1).
        method: "auto" chooses and says so in ``.method``: a closed form, listed points, a
            relaxation without its matrix, or column generation on the quadratic oracle, which
            "oracle" asks for. Independent, slower routes for small sets: "sdp-clarabel" and
            "sdp-scs" ("sdp" takes Clarabel where it fits), and "ellipsoid", the central-cut method.
        progress: True draws a progress bar; a callable receives a :class:`Progress` at every step.

    Returns:
        An :class:`OptimalNoise` with ``sensitivity_squared == 1``.

    Raises:
        ParameterError: p < 2, tol outside (0, 1), unknown relation or method, disconnected policy.
        DomainTooLargeError: points, or differences for the reference methods, that cannot be
            listed; more than 4096 dimensions.
        CovarianceError: coordinates whose sizes differ by more than about 1e15.
        NotAvailableError: a reference solver that failed.

    Warns:
        ConvergenceWarning: the gap is wider than ``tol``; the noise is feasible all the same. Of
            :class:`Products` of several attributes it often is; then ``.status`` says what to try.
        PolicyWarning: the policy graph has several components.

    Source: Nikolov & Tang (2023), Definition 2 without shift; Theorem 26 for the dual.

    >>> # histogram of 4 cells, one record replaced
    >>> noise = gn.optimal_noise(gn.FiniteSet(np.eye(4)))
    >>> print(f"{noise.gamma:.6f}", noise.gap < 1e-6)  # sqrt(2 (4 - 1))
    2.449490 True
    """
    check_problem("optimal_noise", domain, p, tol, method)
    relation = check_relation("optimal_noise", neighbors, domain)
    if isinstance(relation, PolicyGraph):
        relation.warn("optimal_noise", stacklevel=2)
    return warned(
        _solved("optimal_noise", Problem(domain, float(p), relation), float(tol), method, progress),
        tol,
    )


def gamma(
    domain: AbstractDomain,
    p: float = 2,
    tol: float = 1e-6,
    method: str = "auto",
    *,
    progress: bool | Watcher | None = None,
) -> OptimalNoise:
    """The paper's ``γ_p(K) = min ‖sd(M)‖_p`` over ellipsoids ``v + E(M)`` that contain K.

    Its M encloses K − v, not K − K: ``sensitivity_squared`` is up to 4 under replacement, and the
    mechanism reads it.

    Args:
        domain: any domain.
        p: error norm in [2, ∞].
        tol: certified relative gap to reach, in (0, 1).
        method: as in :func:`optimal_noise`.
        progress: as in :func:`optimal_noise`.

    Returns:
        An :class:`OptimalNoise` with ``center`` v and ``neighbors == "replace"``; ``float(...)`` is
        the upper end.

    Raises:
        ParameterError: p < 2, tol outside (0, 1), unknown method.
        DomainTooLargeError: points that cannot be listed.
        CovarianceError: coordinates whose sizes differ by more than about 1e15.
        NotAvailableError: a reference solver that failed.

    Warns:
        ConvergenceWarning: the gap is wider than ``tol``.

    Source: Nikolov & Tang (2023), Definition 2 and Lemma 28.

    >>> print(f"{float(gn.gamma(gn.Marginals.all_kway((3, 2, 4), 2))):.9f}")
    6.518575679
    """
    check_problem("gamma", domain, p, tol, method)
    problem = Problem(domain, float(p), "replace", shifted=True)
    return warned(_solved("gamma", problem, float(tol), method, progress), tol)


def _solved(
    function: str, problem: Problem, tol: float, method: str, progress: bool | Watcher | None
) -> OptimalNoise:
    """The answer by the first route that knows one."""
    domain = problem.domain
    with watching(progress, tol) as watch:
        protected = problem.protected
        if method == "auto" and protected is not None:
            if isinstance(domain, Marginals):
                return _marginals(problem, domain, protected, tol, watch)
            if isinstance(domain, Products) and protected != "gamma":
                return product_optimum(problem, domain, protected, tol, watch)
            workload = linear_workload(problem)
            if workload is not None and not is_written_out(workload):
                return stream_noise(problem, workload, tol, watch)
        if isinstance(domain, VectorParticipations):
            return participation_noise(function, problem, domain, tol, method, watch)
        listed = _listed(function, domain, method)
        if listed is None:
            return body_noise(function, problem, tol, method, watch)
        return _points(problem, listed, tol, method, watch)


def check_problem(function: str, domain: AbstractDomain, p: float, tol: float, method: str) -> None:
    """What every door asks of its arguments."""
    if not isinstance(domain, AbstractDomain):
        raise ParameterError(
            f"{function}: expected a domain, got {type(domain).__name__}; hint: "
            "FiniteSet(points), or "
            "FiniteSet.from_workload(W) for a workload matrix"
        )
    if not isinstance(p, Real) or not p >= 2:
        raise ParameterError(
            f"{function}: expected p >= 2, got {p!r}; hint: math.inf for the largest error"
        )
    if not isinstance(tol, Real) or not 0 < tol < 1:
        raise ParameterError(f"{function}: expected 0 < tol < 1, got {tol!r}")
    if method not in _METHODS:
        raise ParameterError(
            f"{function}: expected method in {', '.join(_METHODS)}; got {method!r}"
        )


def _listed(function: str, domain: AbstractDomain, method: str) -> FiniteSet | None:
    """The points whose hull the domain is, unless they are to be reached through oracles."""
    if method == "oracle":
        return None
    listed = domain._listed()
    if listed is None and method != "auto":
        raise ParameterError(
            f"{function}: method={method!r} needs listed points, which {type(domain).__name__} "
            "has not; "
            'hint: method="auto", or FiniteSet(points) with points whose hull approximates it'
        )
    return listed


def _marginals(
    problem: Problem, domain: Marginals, protected: Protected, tol: float, watch: Watch
) -> OptimalNoise:
    p, shifted = problem.p, problem.shifted
    if shifted and domain.dim > _MOST_CELLS:
        raise DomainTooLargeError(
            f"gamma: a center of {domain.dim:.3g} cells, more than {_MOST_CELLS}; hint: "
            "optimal_noise stores none"
        )
    if domain.dim > _MOST_NAMED:
        raise DomainTooLargeError(f"marginals: {domain.dim:.3g} cells, more than can be numbered")
    workload = Workload.of(domain, total=protected == "add-remove")
    optimum = table_noise(
        workload, p, replaced=protected == "replace", tol=_SHARE * tol, watch=watch
    )
    enclosed = workload.largest_move(1 / optimum.noise, replaced=protected == "replace")
    noise = optimum.noise * enclosed * (1 + 8 * ROUNDING_MARGIN)
    variances = noise * workload.units
    by_type = ByType(
        workload.moving, dict(zip(workload.residuals, variances.tolist(), strict=True))
    )
    certificate = MarginalCertificate(
        domain, p, protected, optimum.shares, optimum.patterns, optimum.pattern_weights
    )
    center = np.broadcast_to(0.0, domain.dim)
    if shifted:
        cells = [domain.cells(S) for S in domain.subsets]
        center = np.repeat(np.asarray(domain.weights) / cells, cells)
    upper = max(domain.weights) * workload.error(noise, p) * (1 + ROUNDING_MARGIN)
    lower = certificate.bound_over(workload)
    unsolved = Status.INTERRUPTED if optimum.interrupted else Status.ROUNDING
    iterated = len(optimum.pattern_weights) > 1 or (p > 2 and len(optimum.shares) > 1)
    kinds = f"{len(workload.tables)} types of table, {len(workload.residuals)} of residual"
    return answer(
        problem,
        covariance=MarginalCovariance(domain, by_type),
        center=center,
        certificate=certificate,
        upper=upper,
        lower=lower,
        sensitivity_squared=marginal_sensitivity(domain, by_type, "replace") if shifted else 1.0,
        method=(
            "safe bound: every residual at its own worst pattern of differing attributes; "
            if optimum.safe
            else ""
        )
        + (f"interior-point method over {kinds}" if iterated else f"closed form over {kinds}"),
        unsolved=Status.PATTERNS if optimum.safe else unsolved,
        steps=optimum.steps if iterated else 0,
        trace=watch.trace if iterated else (),
        tol=tol,
    )


def _points(
    problem: Problem, listed: FiniteSet, tol: float, method: str, watch: Watch
) -> OptimalNoise:
    p, relation, shifted = problem.p, problem.neighbors, problem.shifted
    _check_size(float(np.abs(listed.points).max()))
    target = covered(listed, relation, shifted=shifted, listed=method != "auto")
    largest = float(np.abs(target.points).max())
    _check_size(largest)
    # a power of two, so that dividing by it does not round
    size = float(np.ldexp(0.5, np.frexp(largest)[1]))
    unit = target.points / size
    if ((unit == 0) & (target.points != 0)).any():
        raise ParameterError(
            "expected coordinates whose sizes differ by less than 1e300; hint: rescale them"
        )
    workload = linear_workload(problem) if method == "auto" else None
    if workload is not None and target.rows is not None:
        design, rows, rank = stream_design(workload, p, tol, watch), target.rows, listed.dim
    else:
        design, rows, rank = _design(
            unit, target.rows, p, tol, method, watch.scaled(size), shifted=shifted
        )
    center = listed.points[0] + size * design.center if shifted else np.zeros(listed.dim)
    # about the center that will be stored, rounding and all
    moved = Covered((listed.points - center) / size if shifted else unit, target.rows)
    try:
        factor, whitened = enclosing(design.factor, moved)
    except CovarianceError as error:
        raise CovarianceError(
            f"the points' coordinates differ too much in size for double precision ({error}); "
            "hint: rescale them"
        ) from None
    longest = moved.longest(whitened)
    covariance = FactorCovariance(
        factor, size * longest * (1 + ROUNDING_MARGIN) if longest > 0 else size
    )
    kept = design.weights > _NEGLIGIBLE_WEIGHT * design.weights.max()
    certificate = PointCertificate(
        points=members(listed.points, rows[kept]),
        weights=design.weights[kept],
        coordinate_weights=design.coordinate_weights,
        rows=rows[kept],
        centered=shifted,
    )
    reason = f"for a finite set: {len(unit)} points"
    if target.rows is None:
        pairs = listed.cardinality * (listed.cardinality - 1) // 2
        reason = (
            f"for more differences than are worth listing: {pairs} of {listed.cardinality} points"
        )
    if method != "auto":
        reason = f"as asked: {len(unit)} points"
    return answer_of(
        problem,
        design,
        covariance=covariance,
        outside=size * float(moved.outside(whitened).sum()),
        center=center,
        certificate=certificate,
        sensitivity_squared=pair_sensitivity(whitened, longest) if shifted else 1.0,
        method=f"{design.note}, {reason} of rank {rank} in R^{listed.dim}",
        trace=watch.trace,
        tol=tol,
        most=_MOST_CUTS if method == "ellipsoid" else MAX_STEPS,
    )


def _check_size(largest: float) -> None:
    if largest > _LARGEST or 0 < largest < _SMALLEST:
        raise ParameterError(
            f"expected points, and differences, of sizes between {_SMALLEST:g} and {_LARGEST:g}, "
            f"got {largest:g}; "
            "hint: rescale them"
        )


def _design(
    unit: Array,
    rows: Rows | None,
    p: float,
    tol: float,
    method: str,
    report: Report,
    *,
    shifted: bool,
) -> tuple[Design, Rows, int]:
    """The best design by ``method``, the domain's rows its weights are on, and the rank of what it
    covers.
    """
    live = (unit != 0).any(axis=0)
    points = unit[:, live]
    basis = span(points)
    rank = points.shape[1] if basis is None else basis.shape[1]
    if rank == 0:
        rows = np.zeros((1, 2), dtype=np.intp) if rows is None else rows
        dim = unit.shape[1]
        weights = np.full(len(rows), 1 / len(rows))
        nothing = Design(
            weights, np.zeros(dim), np.zeros((dim, 0)), np.zeros(dim), 0.0, 0, "nothing to protect"
        )
        return nothing, rows, 0
    symmetric = _symmetric(points, rows, p, rank, shifted=shifted) if method == "auto" else None
    if symmetric is not None:
        design, rows = symmetric
    elif rows is None:
        design, rows = pairwise_design(
            points, p, basis, tol=_SHARE * tol, max_steps=MAX_STEPS, report=report
        )
    elif method == "auto":
        fidelity = Fidelity(points, p, shifted, basis)
        design = optimal_design(fidelity, tol=_SHARE * tol, max_steps=MAX_STEPS, report=report)
    else:
        design = _reference(points, p, tol, method, report, shifted=shifted)
    return design.on_all(live, p), rows, rank


def _symmetric(
    points: Array, rows: Rows | None, p: float, rank: int, *, shifted: bool
) -> tuple[Design, Rows] | None:
    """The uniform measure on what is covered, where it is optimal, and the rows; on all pairs, of a
    regular simplex.
    """
    if rows is None:
        if len(points) != rank + 1 or len(points) ** 2 * points.shape[1] > _LARGEST_SIMPLEX:
            return None
        rows = np.column_stack(np.triu_indices(len(points), 1))
        points = members(points, rows)
    design = uniform_measure(points, p, shifted=shifted)
    return None if design is None or design.factor.shape[1] < rank else (design, rows)


def _reference(
    points: Array,
    p: float,
    tol: float,
    method: str,
    report: Report,
    *,
    shifted: bool,
) -> Design:
    """One of the slow, independent routes."""
    if method == "ellipsoid":
        from ..solvers.reference.ellipsoid import ellipsoid

        return ellipsoid(
            points, p=p, centered=shifted, tol=_SHARE * tol, max_steps=_MOST_CUTS, report=report
        )
    from ..solvers.reference.sdp import sdp

    if method == "sdp-scs":
        return sdp(points, p=p, centered=shifted, tol=_SHARE * tol, solver="scs")
    try:
        return sdp(points, p=p, centered=shifted, tol=_SHARE * tol, solver="clarabel")
    except DomainTooLargeError:
        if method == "sdp-clarabel":
            raise
    return sdp(points, p=p, centered=shifted, tol=_SHARE * tol, solver="scs")
