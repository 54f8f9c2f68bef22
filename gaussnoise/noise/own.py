"""A covariance that the caller supplies, as noise for a set."""

import warnings
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from domains.checks import numbers
from domains.domain import AbstractDomain
from domains.floats import EPS, Array, power_of_two

from ..errors import ConvergenceWarning, CovarianceError, ParameterError
from ..numerics.feasibility import RANGE_TOLERANCE, check_range, whiten
from ..numerics.rounding import ROUNDING_MARGIN
from ..solvers.bodies.body import left_inverse, moved_back, unit_body
from .answer import upper_end
from .covariance import FactorCovariance
from .optimal_noise import OptimalNoise, Status
from .problem import Problem, Relation
from .sensitivity import Covered, check_relation, covered
from .solve import optimal_noise

_NEGATIVE = 64  # eigenvalues of a d x d correlation matrix above −64 d roundings count as zero


@final
class Covariance(FactorCovariance):
    """A covariance that you supply, as a symmetric positive semidefinite matrix.

    :class:`GaussianMechanism` and :func:`compare` accept it. Multiples of M give the same noise,
    since the budget determines the scale. The matrix is stored as a factor, and guarantees hold for
    this factor.

    Args:
        array: M, shape (d, d), symmetric up to rounding.

    Raises:
        InvalidDomainError: M is no array of finite real numbers.
        CovarianceError: M is not square, not symmetric, or has a negative eigenvalue beyond
            rounding: M/√(M_ii M_jj) below −64 d times the precision of doubles.

    >>> own = gn.Covariance([[2.0, 1.0], [1.0, 2.0]])
    >>> own.toarray().round(12).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    >>> mechanism = gn.GaussianMechanism(
    ...     own, gn.zCDP(0.1), domain=gn.FiniteSet(np.eye(2)), neighbors="add-remove"
    ... )
    >>> print(f"{mechanism.noise.gap:.3f}")
    0.155
    """

    def __init__(self, array: "ArrayLike") -> None:
        M = numbers("Covariance", "entries", array)
        if M.ndim != 2 or M.shape[0] != M.shape[1] or not len(M):
            raise CovarianceError(f"Covariance: expected shape (d, d), got {M.shape}")
        size = power_of_two(np.abs(M).max())
        unit = M / size
        variances = unit.diagonal()
        rounding = _NEGATIVE * len(M) * EPS
        if (variances < 0).any():
            raise CovarianceError(
                f"Covariance: expected variances of at least 0, got {M.diagonal().min():.3g}"
            )
        live = variances > 0
        deviations = np.sqrt(np.where(live, variances, 1.0))
        correlation = unit / np.outer(deviations, deviations)
        if (
            np.abs(correlation - correlation.T).max() > rounding
            or correlation[~live].any()
            or correlation[:, ~live].any()
        ):
            raise CovarianceError(
                "Covariance: expected a symmetric matrix, with zeros beside a variance of zero; "
                "hint: (M + M.T) / 2"
            )
        values, axes = np.linalg.eigh((correlation + correlation.T) / 2)
        if values[0] < -rounding:
            raise CovarianceError(
                "Covariance: expected a positive semidefinite matrix, got the correlation matrix's "
                f"eigenvalue {values[0]:.3g}; hint: it is no covariance of any noise"
            )
        kept = values > rounding
        factor = deviations[:, None] * axes[:, kept] * np.sqrt(values[kept])
        root = 2.0 ** (int(np.frexp(size)[1]) // 2)
        super().__init__(np.where(live[:, None], factor, 0.0) * np.sqrt(size) / root, root)

    def __reduce__(self) -> tuple[Any, ...]:
        return FactorCovariance, (self.unit_factor, self.scale)


def own_noise(
    function: str,
    covariance: Covariance,
    domain: AbstractDomain | None,
    p: float,
    neighbors: Any,
    tol: float,
) -> OptimalNoise:
    """Return the answer with the least multiple of ``covariance`` that covers the set.

    The lower bound of the answer holds for all noise that covers the set.
    """
    if not isinstance(domain, AbstractDomain) or domain.dim != covariance.dim:
        raise ParameterError(
            f"{function}: expected a domain in R^{covariance.dim}, as the covariance is of "
            f"{covariance.dim} coordinates; got {domain!r:.80}"
        )
    target = domain._listed() or domain
    relation = check_relation(function, neighbors, target)
    method = "oracle" if target._listed() is None else "auto"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the answer states the gap
        best = optimal_noise(target, p, neighbors=relation, tol=tol, method=method)
    factor = covariance.unit_factor
    longest, size, outside = _longest(factor, target, relation)
    scaled = FactorCovariance(
        factor, size * longest * (1 + ROUNDING_MARGIN) if longest > 0 else size
    )
    noise = replace(
        best,
        gamma=upper_end(scaled, p, size * float(outside.sum())),
        covariance=scaled,
        method="a covariance of one's own",
        status=Status.OWN,
        steps=0,
        trace=(),
    )
    noise.verify()  # a method other than the one that found its scale
    return noise


def _longest(
    factor: Array, domain: AbstractDomain, relation: Relation
) -> tuple[float, float, Array]:
    """Return a bound on whitened changes, their unit, and how far changes leave the range."""
    # the rest: how far the covered changes go beyond the factor's range, in the same unit
    if (listed := domain._listed()) is not None:
        target = covered(listed, Problem(listed, 2.0, relation))
        size = power_of_two(np.abs(target.points).max())
        unit = Covered(target.points / size, target.rows)
        whitened = whiten(factor, unit.points)
        check_range(whitened, np.abs(unit.points).max(axis=0))
        return unit.longest(whitened), size, unit.outside(whitened)
    replaced = relation == "replace"
    still, _ = moved_back(domain, "replace" if replaced else "add-remove")
    body, size = unit_body(still - still if replaced else still, np.zeros(domain.dim))
    enclosed = body.enclosure(factor, left_inverse(factor), slack=2)
    if (enclosed.outside > RANGE_TOLERANCE * body.sizes).any():
        raise CovarianceError(
            "the covariance leaves some direction of the sensitivity set without noise"
        )
    return enclosed.longest, size, enclosed.outside
