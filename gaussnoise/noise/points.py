"""The optimal covariance of listed points, or of their differences."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from domains.errors import DomainTooLargeError
from domains.floats import Array, power_of_two
from domains.sets.finite import FiniteSet

from ..errors import CovarianceError, ParameterError
from ..numerics.rounding import ROUNDING_MARGIN
from ..numerics.span import span
from ..solvers.bodies.closed_forms import uniform_measure
from ..solvers.design import MAX_STEPS, Design
from ..solvers.points.candidates import Candidates, Differences, Points
from ..solvers.points.columns import Report, generated_design
from ..solvers.points.fidelity import Fidelity
from ..solvers.points.interior import optimal_design
from ..solvers.points.pairs import PairFidelity
from ..solvers.progress import Watch
from .answer import answer, how_it_ended, steps_seen, upper_end
from .certificates.points import PointCertificate
from .covariance import FactorCovariance
from .enclosure import enclosing, pair_sensitivity
from .optimal_noise import OptimalNoise
from .problem import Problem
from .sensitivity import Covered, covered, members
from .streams import linear_workload, stream_design
from .structure import halves

Rows = NDArray[np.intp]

_SHARE = 0.9  # the solver's part of the tolerance; the rest is for rounding and the final checks
_MOST_CUTS = 400_000  # steps of the ellipsoid method: about a minute at the largest size it accepts
# Points below this fraction of the largest weight would only make the certificate longer.
_NEGLIGIBLE_WEIGHT = 1e-14
# With more points per dimension than this, the solver starts with few points, and adds those that
# the ellipsoid does not cover. That takes a tenth of the time if few points have weight, and up to
# ten times as much if all do.
_MANY = 100
# With fewer points per dimension than this, as in prefix sums, most pairs have weight: to solve for
# all pairs at once takes a tenth of the time of column generation. With more points, few pairs have
# weight.
_AT_ONCE = 2
_LIGHT = 0.01  # weight left out of the certificate, per unit of tolerance
_MOST_AT_ONCE = 2**26  # numbers in a list of differences: 512 MB, those of 512 prefix sums
_LARGEST, _SMALLEST = 5e300, 1e-300
_LARGEST_SIMPLEX = 2**26  # limit for n² d, twice the entries of all differences of a simplex


def point_noise(
    problem: Problem, listed: FiniteSet, tol: float, method: str, watch: Watch
) -> OptimalNoise:
    """Return the best noise for listed points whose convex hull is the problem's domain."""
    p, shifted = problem.p, problem.shifted
    _check_size(_largest(listed.points))
    target = covered(listed, problem, listed=method != "auto")
    largest = _largest(target.points)
    _check_size(largest)
    # a power of two, so that division by it causes no rounding
    size = power_of_two(largest)
    unit = target.points / size
    if np.count_nonzero(unit) < np.count_nonzero(target.points):
        raise ParameterError(
            "expected coordinates whose sizes differ by less than 1e300; hint: rescale them"
        )
    workload = linear_workload(problem) if method == "auto" else None
    own = None if workload is None else stream_design(workload, p, tol, watch)
    if own is not None and target.rows is not None:
        design, rows, rank = own, target.rows, listed.dim
    else:
        report = watch.scaled(size)
        design, rows, rank = _design(problem, unit, target.rows, tol, method, report)
    center = listed.points[0] + size * design.center if shifted else np.zeros(listed.dim)
    # use the center as it will be stored, rounded
    moved = Covered((listed.points - center) / size if shifted else unit, target.rows)
    try:
        factor, whitened = enclosing(design.factor, moved)
    except CovarianceError as error:
        raise CovarianceError(
            f"the points' coordinates differ too much in size for double precision ({error}); "
            "hint: rescale them"
        ) from None
    longest = moved.longest(whitened)
    scale = size * longest * (1 + ROUNDING_MARGIN) if longest > 0 else size
    covariance = FactorCovariance(factor, scale)
    kept = design.weights > _NEGLIGIBLE_WEIGHT * design.weights.max()
    certificate = PointCertificate(
        points=members(listed.points, rows[kept]),
        weights=design.weights[kept],
        coordinate_weights=design.coordinate_weights,
        rows=rows[kept],
        centered=shifted,
    )
    upper = upper_end(covariance, p, size * float(moved.outside(whitened).sum()))
    lower = certificate.lower_bound()
    reason = _reason(listed, target, method)
    return answer(
        problem,
        covariance=covariance,
        center=center,
        certificate=certificate,
        upper=upper,
        lower=lower,
        sensitivity_squared=pair_sensitivity(whitened, longest) if shifted else 1.0,
        method=f"{design.note}, {reason} of rank {rank} in R^{listed.dim}",
        unsolved=how_it_ended(design, _MOST_CUTS if method == "ellipsoid" else MAX_STEPS),
        steps=design.steps,
        trace=steps_seen(watch.trace, design.steps, lower, upper),
        tol=tol,
    )


def _reason(listed: FiniteSet, target: Covered, method: str) -> str:
    """Return the reason for the choice of the method, in words."""
    count = listed.cardinality
    if method != "auto":
        return f"as asked: {len(target.points)} points"
    if target.rows is None:
        pairs = count * (count - 1) // 2
        return f"for more differences than are worth listing: {pairs} of {count} points"
    return f"for a finite set: {len(target.points)} points"


def _largest(points: Array) -> float:
    return float(max(points.max(), -points.min()))


def _check_size(largest: float) -> None:
    if largest > _LARGEST or 0 < largest < _SMALLEST:
        raise ParameterError(
            f"expected points, and differences, of sizes between {_SMALLEST:g} and {_LARGEST:g}, "
            f"got {largest:g}; hint: rescale them"
        )


def _design(
    problem: Problem, unit: Array, rows: Rows | None, tol: float, method: str, report: Report
) -> tuple[Design, Rows, int]:
    """Return the best design by ``method``, the rows of the domain that it uses, and the rank."""
    live = (unit != 0).any(axis=0)
    points = unit if live.all() else unit[:, live]
    basis = span(points)
    rank = points.shape[1] if basis is None else basis.shape[1]
    if rank == 0:
        rows = np.zeros((1, 2), dtype=np.intp) if rows is None else rows
        w, factor = np.zeros(unit.shape[1]), np.zeros((unit.shape[1], 0))
        even = np.full(len(rows), 1 / len(rows))
        return Design.closed(even, w, factor, "nothing to protect"), rows, 0
    symmetric = _symmetric(problem, points, rows, rank) if method == "auto" else None
    is_product = method == "auto" and problem.protected == "add-remove" and symmetric is None
    parts = halves(points.T) if is_product else None
    if symmetric is not None:
        design, rows = symmetric
    elif parts is not None and rows is not None:
        design = _product(problem, parts, tol)
    elif rows is None and _are_few(points, rank):
        design, rows = _of_all_pairs(problem, points, basis, tol, report)
    elif rows is None:
        candidates = Differences(points, basis)
        design, rows = _generated(problem, candidates, basis, tol, report)
    elif method == "auto" and len(points) > _MANY * rank:
        candidates = Points(points, basis, problem.shifted)
        design, chosen = _generated(problem, candidates, basis, tol, report)
        rows = rows[chosen[:, 0]]
    elif method == "auto":
        fidelity = Fidelity(points, problem.p, problem.shifted, basis)
        design = optimal_design(fidelity, tol=_SHARE * tol, max_steps=MAX_STEPS, report=report)
    else:
        design = _reference(problem, points, _SHARE * tol, method, report)
    return design.on_all(live, problem.p), rows, rank


def _are_few(points: Array, rank: int) -> bool:
    """Return whether points are so few that all their pairs are solved at once."""
    count = len(points)
    numbers = count * (count - 1) // 2 * points.shape[1]
    return count <= _AT_ONCE * rank and numbers <= _MOST_AT_ONCE


def _of_all_pairs(
    problem: Problem, points: Array, basis: Array | None, tol: float, report: Report
) -> tuple[Design, Rows]:
    """Return the design for all differences, solved at once, and the pairs that have weight."""
    fidelity = PairFidelity(points, problem.p, False, basis)
    design = optimal_design(fidelity, tol=_SHARE * tol, max_steps=MAX_STEPS, report=report)
    order = np.argsort(design.weights)
    heavy = np.sort(order[np.cumsum(design.weights[order]) > _LIGHT * tol])
    note = f"{design.note}, on all pairs at once"
    return replace(design, weights=design.weights[heavy], note=note), fidelity.rows[heavy]


def _generated(
    problem: Problem, candidates: Candidates, basis: Array | None, tol: float, report: Report
) -> tuple[Design, Rows]:
    """Return the design by column generation, and the rows that have weight."""
    return generated_design(
        candidates,
        problem.p,
        basis,
        centered=problem.shifted,
        tol=_SHARE * tol,
        max_steps=MAX_STEPS,
        report=report,
    )


def _product(problem: Problem, parts: tuple[Array, Array], tol: float) -> Design:
    """Return the Kronecker product of both parts' designs, which covers the parts' product."""
    share = math.expm1(math.log1p(tol) / 2)
    one, other = (
        _design(problem, part.T, np.arange(part.shape[1])[:, None], share, "auto", _silent)[0]
        for part in parts
    )
    shapes = " ⊗ ".join(f"{len(part)} x {part.shape[1]}" for part in parts)

    def product(a: Array, b: Array) -> Array:
        return np.kron(a, b).astype(np.float64)

    return Design(
        product(one.weights, other.weights),
        product(one.coordinate_weights, other.coordinate_weights),
        product(one.factor, other.factor),
        product(one.center, other.center),
        float(np.expm1(np.log1p(one.gap) + np.log1p(other.gap))),
        one.steps + other.steps,
        f"Kronecker product {shapes}",
        one.interrupted or other.interrupted,
    )


def _silent(steps: int, lower: float, upper: float) -> None:
    """Report nothing: the bounds for one part say little about the product."""


def _symmetric(
    problem: Problem, points: Array, rows: Rows | None, rank: int
) -> tuple[Design, Rows] | None:
    """Return the design of the uniform measure and its rows; None if it is not optimal."""
    # of differences, only those of the vertices of a simplex are tried
    if rows is None:
        if len(points) != rank + 1 or len(points) ** 2 * points.shape[1] > _LARGEST_SIMPLEX:
            return None
        rows = np.column_stack(np.triu_indices(len(points), 1))
        points = members(points, rows)
    design = uniform_measure(points, problem.p, centered=problem.shifted)
    return None if design is None or design.factor.shape[1] < rank else (design, rows)


def _reference(problem: Problem, points: Array, tol: float, method: str, report: Report) -> Design:
    """Return the design by a slow reference method, independent of the usual solver."""
    from ..solvers.reference.ellipsoid import ellipsoid
    from ..solvers.reference.sdp import sdp

    p, centered = problem.p, problem.shifted
    if method == "ellipsoid":
        return ellipsoid(
            points, p=p, centered=centered, tol=tol, max_steps=_MOST_CUTS, report=report
        )
    if method != "sdp-scs":
        try:
            return sdp(points, p=p, centered=centered, tol=tol, solver="clarabel")
        except DomainTooLargeError:
            if method == "sdp-clarabel":
                raise
    return sdp(points, p=p, centered=centered, tol=tol, solver="scs")
