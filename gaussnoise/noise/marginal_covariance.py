"""Covariance of tables of counts in which all cells of a table have equal variances."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from domains.domain import AbstractDomain
from domains.floats import Array
from domains.tables.marginals import Marginals
from domains.tables.tables import AbstractTables, Term

from ..errors import CovarianceError
from ..files.pickling import PickledByArguments
from ..solvers.tables.boxes import Box
from ..solvers.tables.orbits import ByType, Orbits, Type, padded, row_keys
from ..solvers.tables.residuals import (
    Subset,
    extended,
    part_of,
    project_zero_sum,
    rank,
    subsets_of,
    zero_sum_basis,
)
from ..solvers.tables.strategies import AbstractStrategy, IdentityStrategy
from .product_covariance import ProductCovariance
from .table_covariance import TableCovariance, variances_of


@final
@dataclass(frozen=True, eq=False)
class MarginalCovariance(TableCovariance, PickledByArguments):
    """The noise of marginal tables that agree on their common totals; M is never built as a matrix.

    Every attribute set T has its own independent noise ``η_T ~ N(0, variances[T] · Π_T)`` on the
    cells of its table, where Π_T projects on tensors whose sums along every axis are zero. The
    table of a set S gets the sum over all T ⊆ S of η_T. Each η_T is spread evenly over the
    attributes of S∖T: it is divided by the number of cells of S∖T. The coordinates of table S are
    its weight times that sum.
    """

    domain: AbstractTables
    variances: Mapping[Subset, float]

    def __post_init__(self) -> None:
        if not isinstance(self.variances, ByType):
            object.__setattr__(self, "variances", MappingProxyType(dict(self.variances)))

    @cached_property
    def strategies(self) -> tuple[IdentityStrategy, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return tuple(map(IdentityStrategy, self.domain.sizes))

    @cached_property
    def _products(self) -> ProductCovariance:
        """The same noise as a class that can answer all products of queries."""
        return ProductCovariance(self.domain, self.strategies, self.variances)

    def term_variance(self, term: Term) -> Array:
        return self._products.term_variance(term)

    def mean_variance(self, subset: Subset) -> float:
        return self.table_variance(subset)

    def table_variance(self, subset: Subset, box: Box | None = None) -> float:
        orbits = self.by_type.orbits
        kind = orbits.type_of(tuple(i for i in subset if i in orbits))
        return (
            math.fsum(self._sums.get(T, 0.0) for T in subsets_of(kind))
            / float(self.domain.cells(subset)) ** 2
        )

    @property
    def deviations(self) -> Array:
        alike, which = self._kinds
        return np.sqrt([self.table_variance(S) for S in alike])[which]

    @property
    def largest_deviations(self) -> Array:
        return self.deviations

    @cached_property
    def queries(self) -> Array:
        alike, which = self._kinds
        return np.array([float(self.domain.cells(S)) for S in alike])[which]

    @cached_property
    def by_type(self) -> ByType:
        """The variances, stored once for each type of attribute set.

        Sets have one type if an exchange of equivalent attributes maps one to the other.
        """
        if isinstance(self.variances, ByType):
            return self.variances
        return ByType(Orbits(tuple((i,) for i in range(len(self.domain.sizes)))), self.variances)

    @cached_property
    def _sums(self) -> dict[Type, float]:
        """The number ``variance · Π_{i∈T} (n_i − 1) n_i`` by type of T, with n_i categories."""
        # the variance of a cell of table S is their sum over T ⊆ S, over the square of S's cells
        sizes = [self.domain.sizes[members[0]] for members in self.by_type.orbits.classes]
        return {
            kind: variance * float(math.prod((sizes[k] - 1) * sizes[k] for k in kind))
            for kind, variance in self.by_type.values_by_type.items()
        }

    @cached_property
    def _kinds(self) -> tuple[list[Subset], NDArray[np.intp]]:
        """One table for each kind (equal variances and sizes), and the kind of every table."""
        subsets, attributes = self.domain.subsets, len(self.domain.sizes)
        classes = np.arange(attributes + 1)  # attributes in no class are alike to no other
        for members in self.by_type.orbits.classes:
            classes[list(members)] = members[0]
        kinds = np.sort(classes[padded(subsets, attributes)], axis=1)
        _, first, which = np.unique(row_keys(kinds), return_index=True, return_inverse=True)
        return [subsets[k] for k in first], which

    def standard_deviation(self) -> Array:
        return np.repeat(np.array(self.domain.weights) * self.deviations, self.queries.astype(int))

    def factor(self) -> Array:
        self._check_dense(self.dim * sum(rank(T, self.domain.sizes) for T in self.variances))
        columns = [np.zeros((self.dim, 0))]
        tables = list(zip(self.domain.subsets, self.domain.weights, strict=True))
        for T, variance in self.variances.items():
            basis = np.sqrt(variance) * zero_sum_basis([self.domain.sizes[i] for i in T])
            columns.append(
                np.concatenate([self._lift(T, basis, S, weight) for S, weight in tables])
            )
        return np.concatenate(columns, axis=1)

    @classmethod
    def decode(
        cls, domain: AbstractDomain, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        if not isinstance(domain, Marginals):
            raise CovarianceError("load: expected marginals with the covariance of some")
        return cls(domain, variances_of(header))

    def _multiply(self, x: Array) -> Array:
        sizes = self.domain.sizes
        pulled = {T: np.zeros((*[sizes[i] for i in T], x.shape[1])) for T in self.variances}
        for S, (_, weight, block) in zip(self.domain.subsets, self.domain.blocks(), strict=True):
            table = weight * x[block].reshape(*[sizes[i] for i in S], -1)
            for T in self._inside(S):
                pulled[T] += part_of(table, S, T) * (self.domain.cells(T) / self.domain.cells(S))
        pieces = {
            T: self.variances[T] * project_zero_sum(tensor, range(len(T))).reshape(-1, x.shape[1])
            for T, tensor in pulled.items()
        }
        result = np.zeros_like(x)
        for S, (_, weight, block) in zip(self.domain.subsets, self.domain.blocks(), strict=True):
            for T in self._inside(S):
                result[block] += self._lift(T, pieces[T], S, weight)
        return result

    def _lift(self, T: Subset, values: Array, S: Subset, weight: float) -> Array:
        """Return ``weight`` times values of table T, spread evenly over S; zero unless T ⊆ S."""
        if not set(T) <= set(S):
            return np.zeros((self.domain.cells(S), values.shape[1]))
        lifted = extended(values, T, S, self.domain.sizes) * (
            weight * self.domain.cells(T) / self.domain.cells(S)
        )
        return lifted.reshape(-1, values.shape[1])


def covariance_of_cells(
    tables: AbstractTables,
    strategies: tuple[AbstractStrategy, ...],
    variances: Mapping[Subset, float],
) -> TableCovariance:
    """Return the covariance of tables of counts, where each attribute is measured by its strategy.

    ``variances`` has the variance of the noise of each attribute set.
    """
    if all(isinstance(own, IdentityStrategy) for own in strategies):
        return MarginalCovariance(tables, variances)
    return ProductCovariance(tables, strategies, variances)
