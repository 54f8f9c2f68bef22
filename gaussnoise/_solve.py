"""The doors to an optimal covariance: calibrated to privacy (``optimal_noise``), or the paper's (``gamma``)."""

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from domains import AbstractDomain, AbstractFiniteDomain, DomainTooLargeError, Marginals

from ._certificate import ROUNDING_MARGIN, PointCertificate, UniformCertificate
from ._covariance import FactorCovariance, MarginalCovariance
from ._feasibility import Strategy, check_range, sticks_out, strategy
from ._noise import OptimalNoise, Status
from ._sensitivity import Relation, check_relation, largest_pair, marginal_sensitivity, sensitivity_points
from ._solvers.accelerated import optimal_design
from ._solvers.marginals import residual_variances
from .errors import CertificateError, ConvergenceWarning, NotAvailableError, ParameterError

Array = NDArray[np.float64]

# Far beyond the 20 (prefix sums) to 500 (random points) steps seen to reach 1e-6.
_MAX_STEPS = 5000
_MOST_CELLS = 2**27  # one number per cell: 1 GB
# A point whose weight is below this fraction of the largest adds nothing to the certificate but size.
_NEGLIGIBLE_WEIGHT = 1e-14


def optimal_noise(
    domain: AbstractDomain, p: float = 2, neighbors: Relation = "replace", tol: float = 1e-6, method: str = "auto"
) -> OptimalNoise:
    """The covariance of least error that covers everything one record can change.

    Minimises ``‖sd(M)‖_p`` subject to ``s' M⁺ s <= 1`` on the sensitivity set: K − K when a record is replaced,
    K ∪ −K when one is added or removed. With noise ``M/(2ρ)`` on the sum of records, this is ρ-zCDP exactly.

    Args:
        domain: a finite set or marginals.
        p: error norm; 2 is root total variance.
        neighbors: "replace" (n is public, means) or "add-remove" (n is private, sums).
        tol: certified relative gap to reach, in (0, 1).
        method: "auto".

    Returns:
        An :class:`OptimalNoise` with ``sensitivity_squared == 1``.

    Raises:
        ParameterError: p < 2, tol outside (0, 1), unknown relation.
        DomainTooLargeError: differences that cannot be listed.
        NotAvailableError: p > 2, policy graphs, other methods or domains (yet).

    Warns:
        ConvergenceWarning: the gap is wider than ``tol``; the noise is feasible all the same.

    Source: Nikolov & Tang (2023), Definition 2 without shift; Theorem 26 for the dual.

    >>> noise = gn.optimal_noise(gn.FiniteSet(np.eye(4)))  # histogram of 4 cells, one record replaced
    >>> print(f"{noise.gamma:.6f}", noise.gap < 1e-6)  # sqrt(2 (4 - 1))
    2.449490 True
    """
    finite = _check("optimal_noise", domain, p, tol, method)
    relation = check_relation("optimal_noise", neighbors)
    if isinstance(domain, Marginals) and relation == "add-remove":
        return _marginals(domain, p, relation, shifted=False)
    return _points(finite, p, relation, tol, shifted=False)


def gamma(domain: AbstractDomain, p: float = 2, tol: float = 1e-6, method: str = "auto") -> OptimalNoise:
    """The paper's ``γ_p(K) = min ‖sd(M)‖_p`` over ellipsoids ``v + E(M)`` that contain K.

    Its M encloses K − v, not K − K: ``sensitivity_squared`` is up to 4 under replacement, and the mechanism reads it.

    Args:
        domain: a finite set or marginals.
        p: error norm; 2 is root total variance.
        tol: certified relative gap to reach, in (0, 1).
        method: "auto".

    Returns:
        An :class:`OptimalNoise` with ``center`` v and ``neighbors == "replace"``; ``float(...)`` is the upper end.

    Raises:
        ParameterError: p < 2, tol outside (0, 1).
        NotAvailableError: p > 2, other methods or domains (yet).

    Warns:
        ConvergenceWarning: the gap is wider than ``tol``.

    Source: Nikolov & Tang (2023), Definition 2 and Lemma 28.

    >>> print(f"{float(gn.gamma(gn.Marginals.all_kway((3, 2, 4), 2))):.9f}")
    6.518575679
    """
    finite = _check("gamma", domain, p, tol, method)
    if isinstance(domain, Marginals):
        return _marginals(domain, p, "replace", shifted=True)
    return _points(finite, p, "replace", tol, shifted=True)


def _check(function: str, domain: AbstractDomain, p: float, tol: float, method: str) -> AbstractFiniteDomain:
    if not isinstance(domain, AbstractDomain):
        raise ParameterError(
            f"{function}: expected a domain, got {type(domain).__name__}; hint: FiniteSet(points), or "
            "FiniteSet.from_workload(W) for a workload matrix"
        )
    if not isinstance(p, int | float) or not p >= 2:
        raise ParameterError(f"{function}: expected p >= 2, got {p!r}")
    if not isinstance(tol, float) or not 0 < tol < 1:
        raise ParameterError(f"{function}: expected 0 < tol < 1, got {tol!r}")
    if p != 2:
        raise NotAvailableError(f"{function}: p = {p:g} is not available yet; use p = 2")
    if method != "auto":
        raise NotAvailableError(f'{function}: method={method!r} is not available yet; use method="auto"')
    if not isinstance(domain, AbstractFiniteDomain):
        raise NotAvailableError(
            f"{function}: {type(domain).__name__} has no listed points, and oracle-only domains are not available yet; "
            "use FiniteSet(points) with points whose hull contains it"
        )
    return domain


def _marginals(domain: Marginals, p: float, relation: Relation, *, shifted: bool) -> OptimalNoise:
    if domain.dim > _MOST_CELLS:
        raise DomainTooLargeError(
            f"marginals: {domain.dim:.3g} cells in all, more than {_MOST_CELLS}; hint: ask for fewer marginals"
        )
    variances = residual_variances(domain, signed=not shifted)
    covariance = MarginalCovariance(domain, variances)
    certificate = UniformCertificate(domain, signed=not shifted)
    center = np.zeros(domain.dim)
    if shifted:
        cells = [domain.cells(S) for S in domain.subsets]
        center = np.repeat(np.asarray(domain.weights) / cells, cells)
    return OptimalNoise(
        domain=domain,
        p=p,
        neighbors=relation,
        shifted=shifted,
        gamma=covariance.error(p) * (1 + ROUNDING_MARGIN),
        gamma_lower=certificate.lower_bound(),
        covariance=covariance,
        center=center,
        certificate=certificate,
        sensitivity_squared=marginal_sensitivity(domain, variances, relation) if shifted else 1.0,
        method="closed form: the symmetry of marginals diagonalises the problem over attribute subsets",
        status=Status.SOLVED,
        steps=0,
    )


def _points(domain: AbstractFiniteDomain, p: float, relation: Relation, tol: float, *, shifted: bool) -> OptimalNoise:
    listed = domain.to_finite_set()
    enclosed = listed.points if shifted else sensitivity_points(listed, relation)
    # a member of K as the origin: coordinates on which all points agree become exact zeros
    origin = enclosed[0] if shifted else np.zeros(listed.dim)
    size = float(np.abs(enclosed - origin).max())
    unit = (enclosed - origin) / (size or 1.0)
    basis = _span(unit)
    if basis.shape[1]:
        design = optimal_design(unit @ basis, centered=shifted, tol=tol / 2, max_steps=_MAX_STEPS)
        weights, steps = design.weights, design.steps
        factor = basis @ (design.axes * design.lengths)
    else:
        weights, steps, factor = np.full(len(unit), 1 / len(unit)), 0, np.zeros((listed.dim, 0))
    center = origin + size * (weights @ unit) if shifted else np.zeros(listed.dim)
    moved = (enclosed - center) / (size or 1.0)
    factor, final = _enclosing(factor, moved, np.abs(listed.points).max(axis=0) / (size or 1.0))
    covariance = FactorCovariance(factor, size or 1.0)
    kept = weights > _NEGLIGIBLE_WEIGHT * weights.max()
    certificate = PointCertificate(enclosed[kept], weights[kept], np.ones(listed.dim), centered=shifted)
    # what sticks out of the range is inside a box, which costs at most the sum of its sides (Minkowski sum)
    upper = float((covariance.error(p) + size * final.outside.sum()) * (1 + ROUNDING_MARGIN))
    lower = certificate.lower_bound()
    if lower > upper:
        raise CertificateError(f"the points are too close together for double precision: {lower!r} > {upper!r}")
    gap = upper / lower - 1 if lower > 0 else (0.0 if upper == 0 else math.inf)
    status = Status.SOLVED if gap <= tol else Status.MAX_STEPS if steps == _MAX_STEPS else Status.ROUNDING
    if gap > tol:
        warnings.warn(
            f"certified gap {gap:.2g} after {steps} steps, wider than tol={tol:g}; {status.value}",
            ConvergenceWarning,
            stacklevel=3,
        )
    return OptimalNoise(
        domain=domain,
        p=p,
        neighbors=relation,
        shifted=shifted,
        gamma=upper,
        gamma_lower=lower,
        covariance=covariance,
        center=center,
        certificate=certificate,
        sensitivity_squared=largest_pair(final) if shifted else 1.0,
        method=f"accelerated multiplicative weights on {len(enclosed)} points of rank {basis.shape[1]}",
        status=status,
        steps=steps,
    )


def _enclosing(factor: Array, points: Array, sizes: Array) -> tuple[Array, Strategy]:
    """The factor scaled until every point is inside its ellipsoid, checked on the numbers that will be stored."""
    found = strategy(factor, points)
    stuck = sticks_out(found, sizes)
    if stuck.any():
        factor = _widened(factor, stuck, found.outside)
        found = strategy(factor, points)
    factor = factor * (found.lengths.max() * (1 + ROUNDING_MARGIN))
    found = strategy(factor, points)
    check_range(found, sizes)
    return factor, found


def _widened(factor: Array, stuck: NDArray[np.bool_], outside: Array) -> Array:
    """A factor that also covers what sticks out along the coordinates ``stuck``, tiny beside the others.

    E(M) + E(D) lies in E((1+t) M + (1+1/t) D); D is an ellipsoid around the box of what sticks out.
    """
    t = 1e-8
    box = np.diag(np.where(stuck, outside, 0.0) * math.sqrt(stuck.sum() * (1 + 1 / t)))[:, stuck]
    wide = np.hstack([factor * math.sqrt(1 + t), box])
    if wide.shape[1] <= wide.shape[0]:
        return wide
    heights = np.abs(wide).max(axis=1)  # M = wide wide' again, as a square factor, every row to its own precision
    _, triangle = np.linalg.qr((wide / heights[:, None]).T)
    return triangle.T * heights[:, None]


def _span(points: Array) -> Array:
    """Orthonormal columns spanning the rows of ``points``, whose entries are at most one."""
    _, singular, axes = np.linalg.svd(points, full_matrices=False)
    if not singular.any():
        return np.zeros((points.shape[1], 0))
    # below this, a direction is the rounding of the points themselves
    threshold = 4 * np.finfo(np.float64).eps * singular[0] * math.sqrt(max(points.shape))
    return axes[singular > threshold].T
