"""Noise under replacement of persons, each with at most k counted rows.

The number of rows is private as well.

Formal guarantees:
    * A person's rows are a multiset of at most k records, before and after the exchange, and the
      two sizes may differ. So the change of the tables is in ``k (C − C)``, where C is the convex
      hull of the records and zero. The set is exact, since a person may have k copies of one
      record, or no rows. A norm is largest at extreme points: k copies of one record replaced by k
      copies of another, or by none.
    * Hence the exact squared sensitivity is ``k² max(max ‖x‖², max ‖x − y‖²)``, over the
      measured answers x and y on two records: :func:`.measure.squared_sensitivity` under
      "replace-persons".
    * The noise for replaced rows leaves the number of rows without noise. So the number of rows
      gets the least noise that keeps the first maximum at most the second.
    * The set contains ``k C`` and the differences ``k (x − y)``: noise that protects exchanged
      persons also protects rows that are added or removed, and rows that are replaced. So its
      error is at least the least error under either relation. For counts at p = 2 more is known:
      the optimum for replaced rows and the least noise on the number of rows add up.
"""

import dataclasses
import math
from collections.abc import Mapping
from functools import lru_cache

from ...noise.marginal_covariance import MarginalCovariance
from ...noise.optimal_noise import OptimalNoise
from ...noise.product_covariance import ProductCovariance
from ...noise.solve import noise_of
from ...noise.table_covariance import TableCovariance
from ...solvers.tables.orbits import ByType
from .measure import by_type_of

_MARGIN = 1e-12
_ENDS_APART = 1e-4  # widest gap of the optimum for added or removed rows, unless steps run out


def with_number(covariance: TableCovariance) -> TableCovariance:
    """Return noise at unit sensitivity under replacement of persons, who have at most one row.

    The noise is made from the optimal noise under replacement of rows. Adding or removing a person
    changes the residuals by a squared length s, and the number of rows by one. Noise of variance
    ``1/(1 − s)`` on the number of rows makes the squared sensitivity one. If s is above one half,
    the noise on the residuals is first increased until s is one half. Then two rows whose residuals
    are orthogonal have squared distance one.
    """
    known = by_type_of(covariance.strategies, covariance.variances)
    of_class = [covariance.strategies[members[0]] for members in known.orbits.classes]
    moved = math.fsum(
        known.orbits.size(kind)
        * math.prod(of_class[k].square / of_class[k].stretch for k in kind)
        / variance
        for kind, variance in known.values_by_type.items()
        if kind
    )
    scale = max(1.0, 2 * moved)
    variances = {kind: scale * v for kind, v in known.values_by_type.items() if kind}
    variances[()] = 1 / (1 - moved / scale)
    return _with_variances(covariance, ByType(known.orbits, variances))


def least_error(noise: OptimalNoise, covariance: TableCovariance) -> float:
    """Return a lower bound on the error of any Gaussian noise under replacement of persons.

    The bound is for unit sensitivity. Such noise protects both a replaced row and an added or
    removed row. For counts, symmetry makes the residuals and the number of rows independent, so
    that at p = 2 their variances add up.
    """
    if not noise.gamma:
        return covariance.error(noise.p)  # the queries are about the number of rows only
    if not covariance.domain.is_cells:
        return max(noise.gamma_lower, _least_if_added(noise) * (1 - _MARGIN))
    number = _with_variances(covariance, {(): 1.0}).error(noise.p)
    both = math.hypot(noise.gamma_lower, number) if noise.p == 2 else noise.gamma_lower
    return max(both, number) * (1 - _MARGIN)


@lru_cache(maxsize=1)  # plans that differ in their budget alone have the same noise
def _least_if_added(noise: OptimalNoise) -> float:
    """Return a lower bound on the error for the same answers if rows are added or removed."""
    return noise_of(noise.domain, noise.p, "add-remove", _ENDS_APART).gamma_lower


def _with_variances(
    covariance: TableCovariance, variances: Mapping[tuple[int, ...], float]
) -> TableCovariance:
    if not isinstance(covariance, MarginalCovariance | ProductCovariance):
        raise TypeError(type(covariance).__name__)
    return dataclasses.replace(covariance, variances=variances)
