"""Noise for rows whose numbers are squared.

In the tables, such a number has three virtual cells. A row with the number t, scaled to [0, 1], has
the weights ``w(t) = ((1 − t)², 2t(1 − t), t²)`` on these cells. The points w(t) form a curve: no
row has all its weight on the middle cell. Noise is planned for rows whose numbers are on a grid
(:func:`.numbers.records_of`). Here that noise becomes noise in the virtual cells, with a
sensitivity computed for the curve (:class:`.SolvedStrategy`).
"""

import math
from functools import lru_cache

import numpy as np

from domains.errors import InvalidDomainError
from domains.floats import Array
from domains.tables.clipped import Clipped
from domains.tables.products import Products
from domains.tables.tables import AbstractTables

from ...noise.optimal_noise import OptimalNoise
from ...noise.problem import Relation
from ...noise.product_covariance import ProductCovariance
from ...noise.sensitivity import largest_move
from ...noise.solve import noise_of
from ...noise.table_covariance import TableCovariance, covariance_of_tables
from ...noise.tables import in_one_way
from ...numerics.rounding import ROUNDING_MARGIN
from ...solvers.progress import Watch
from ...solvers.tables.marginals import table_noise
from ...solvers.tables.orbits import ByType
from ...solvers.tables.products import contrast_bits, curve_strategy
from ...solvers.tables.strategies import AbstractStrategy, SolvedStrategy
from ...solvers.tables.workload import Workload
from ..schema.numbers import (
    STEPS,
    grid_cells,
    joined_numbers,
    records_of,
    sets_of_numbers,
)
from .measure import moved_with_units_off

# The units of two rows that may be off the products of curves, for each product of virtual cells of
# numbers that tables join.
# A row has four, by the floor of a square, for each number; and where a number divides the cells of
# the numbers before it (:mod:`..counting.numbers`), six for each of these cells, or two without
# squares. That is at most 7/2 for each product, in any order of up to 64 products.
_UNITS_OFF = 7
_TOLERANCE = 1e-7


def noise_for_rows(
    domain: AbstractTables, p: float, relation: Relation, tol: float
) -> OptimalNoise:
    """Return the best noise for these answers about rows, or on virtual cells if budgets grow."""
    curved = {
        i for term in domain.terms for i, base in term if isinstance(base, Clipped) and base.squares
    }
    if curved and isinstance(domain, Products) and isinstance(relation, str):
        try:
            noise = noise_of(records_of(domain), p, relation, tol)
            return in_one_way(noise, frozenset(curved), tol)
        except InvalidDomainError:
            pass  # some numbers have equal answers, and get no contrasts of their own
    return noise_of(domain, p, relation, tol)


@lru_cache(maxsize=4)  # plans that differ in their budget alone have the same noise
def covariance_in_cells(noise: OptimalNoise, domain: AbstractTables) -> TableCovariance:
    """Return the covariance of noise from :func:`noise_for_rows`, on the domain's virtual cells."""
    covariance = covariance_of_tables(noise.covariance)
    asked = {i: base for term in domain.terms for i, base in term if isinstance(base, Clipped)}
    if not any(base.squares for base in asked.values()):
        return covariance
    joined = joined_numbers(sets_of_numbers(asked, domain.subsets))
    off = _UNITS_OFF * max(math.prod(2 + asked[i].squares for i in J) for J in joined)
    workload = Workload.of(domain, total=noise.neighbors != "replace")
    curved = {
        k: base
        for k, (base, *_) in enumerate(workload.bases)
        if isinstance(base, Clipped) and base.squares
    }
    bits, strategies = contrast_bits(workload, [*curved]), list[AbstractStrategy]()
    whole = workload.measured_as(covariance.strategies)
    for k, own in enumerate(whole.strategies):
        if k in curved and isinstance(own, SolvedStrategy):
            if own.size == curved[k].size:
                own = SolvedStrategy(own.contrasts, off)
            else:
                own = curve_strategy(_gram(own, grid_cells(curved[k])), bits, off)
        strategies.append(own)
    whole = workload.measured_by(strategies)
    variances = covariance.variances
    if isinstance(noise.neighbors, str):
        variances = _variances(whole, noise, off)
    return ProductCovariance(domain, whole.by_attribute(domain.sizes), variances)


def _variances(workload: Workload, noise: OptimalNoise, off: int) -> ByType:
    """Return the variance of each type of residual in the best noise, at sensitivity one."""
    replaced, strategies = noise.neighbors == "replace", workload.strategies
    best = table_noise(workload, noise.p, replaced=replaced, tol=_TOLERANCE, watch=Watch(None))
    moved = largest_move(workload, 1 / best.noise, replaced=replaced) * (1 + 8 * ROUNDING_MARGIN)
    longer = [
        math.prod(own.farthest / own.square for own in (strategies[k].in_set(T) for k in T))
        for T in workload.residuals
    ]
    farthest = float((workload.residual_counts / (best.noise * moved)) @ longer)
    rounded = moved_with_units_off(1.0, farthest, off, STEPS) / STEPS**2
    values = best.noise * moved * rounded * workload.units
    types = zip(workload.residuals, values.tolist(), strict=True)
    return ByType(workload.moving, dict(types))


def _gram(own: SolvedStrategy, cells: Array) -> Array:
    """Return the Gram matrix of virtual cells' contrasts, fitted to the contrasts on the grid."""
    # the solver lengthens short columns, which changes no product of two different columns
    X, n = own.contrasts.T @ own.contrasts / own.square, len(cells)
    first, second = np.nonzero(~np.diag(cells[:3].any(axis=0)))
    products = (cells[:, None, first] * cells[None, :, second]).reshape(n * n, -1)
    found = np.linalg.lstsq(products.T, X[first, second], rcond=None)[0]
    return np.asarray(found, dtype=np.float64).reshape(n, n)
