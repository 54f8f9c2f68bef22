"""Persons who are exchanged, each with at most k rows that are counted.

The number of rows is private as well.

Formal guarantees:
    * A person's rows are a multiset of at most k records, before and after, of any two sizes. So
      the tables move by a member of ``k (C − C)``, C the convex hull of the records and zero: no
      more and no less, since k copies of one record are such rows, and so are none. A convex
      length is largest at corners: k copies of a record against k of another, or against none.
    * Hence the exact sensitivity, squared, is ``k² max(max ‖x‖², max ‖x − y‖²)``, of what is
      measured of records x and y: :func:`.measure.squared_sensitivity` under "replace-persons".
    * The noise of exchanged rows, which leaves their number alone, becomes noise for all of this
      by the least noise on the number of rows that the second maximum leaves room for. What is
      best for exchanged rows, and what any noise on their number needs, together bound what is
      best from below.
"""

import dataclasses
import math
from collections.abc import Mapping

from ...noise.marginal_covariance import MarginalCovariance
from ...noise.optimal_noise import OptimalNoise
from ...noise.product_covariance import ProductCovariance
from ...noise.table_covariance import TableCovariance, covariance_of_tables
from ...solvers.tables.orbits import ByType
from .measure import by_type_of

_MARGIN = 1e-12


def with_number(noise: OptimalNoise) -> TableCovariance:
    """Noise at unit sensitivity for exchanged persons of at most one row.

    It is made from the best for exchanged rows.

    A person who comes or goes moves residuals by s squared, and the number of rows by one: so it
    has variance ``1/(1 − s)``. Above one half, s is scaled to it, as exchanges of rows of the same
    total length would be there.
    """
    covariance = covariance_of_tables(noise.covariance)
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
    """What no Gaussian noise for exchanged persons can be better than, at unit sensitivity.

    It protects exchanged rows, and one row more or less. Of counts, symmetry makes residuals and
    the number of rows independent: at p = 2 their variances add up.
    """
    if not noise.gamma:
        return covariance.error(noise.p)  # the number of rows, and nothing else, is asked about
    if not covariance.domain.is_cells:
        return noise.gamma_lower
    number = _with_variances(covariance, {(): 1.0}).error(noise.p)
    both = math.hypot(noise.gamma_lower, number) if noise.p == 2 else noise.gamma_lower
    return max(both, number) * (1 - _MARGIN)


def _with_variances(
    covariance: TableCovariance, variances: Mapping[tuple[int, ...], float]
) -> TableCovariance:
    if not isinstance(covariance, MarginalCovariance | ProductCovariance):
        raise TypeError(type(covariance).__name__)
    return dataclasses.replace(covariance, variances=variances)
