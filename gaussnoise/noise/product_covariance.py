"""Covariance of answers to products of one-attribute queries, computed attribute by attribute."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from domains.domain import AbstractDomain
from domains.floats import Array
from domains.tables.bases import AbstractBase, AbstractRuns, Identity
from domains.tables.products import Products
from domains.tables.tables import AbstractTables, Term

from ..errors import CovarianceError
from ..files.pickling import PickledByArguments
from ..solvers.tables.boxes import Box, shape_of
from ..solvers.tables.residuals import Subset, rank
from ..solvers.tables.strategies import AbstractStrategy, IdentityStrategy, SolvedStrategy
from .covariance import Stored
from .table_covariance import TableCovariance, variances_of


@final
@dataclass(frozen=True, eq=False)
class ProductCovariance(TableCovariance, PickledByArguments):
    """A covariance for any strategies: a sum of Kronecker products over attribute sets T.

    Attributes:
        domain: the tables; each coordinate is one query.
        strategies: for each attribute, the contrasts of its categories that are measured.
        variances: for each sorted tuple T of attributes, the variance of its noise.
    """

    domain: AbstractTables
    strategies: tuple[AbstractStrategy, ...]
    variances: Mapping[Subset, float]

    def table_variance(self, subset: Subset, box: Box | None = None) -> Array:
        return self._variance(self._cells_of(subset), box)

    def mean_variance(self, subset: Subset) -> float:
        return self.term_total(self._cells_of(subset)) / self.domain.cells(subset)

    def _cells_of(self, subset: Subset) -> Term:
        return tuple([(i, Identity(self.strategies[i].size)) for i in subset])

    def term_variance(self, term: Term) -> Array:
        return self._variance(term, None)

    def _variance(self, term: Term, box: Box | None) -> Array:
        """Return the variance of every query of a term, or only of the queries in ``box``."""
        box = box or tuple([slice(0, base.queries) for _, base in term])
        total = np.zeros(shape_of(box))
        for T in self._inside(_attributes(term)):
            parts = [
                self._part(T, i, base)[codes] for (i, base), codes in zip(term, box, strict=True)
            ]
            total += self.variances[T] * reduce(np.multiply.outer, parts, np.array(1.0))
        return total

    def term_total(self, term: Term) -> float:
        """Return the sum of the variances of all queries of a term, from Gram matrices."""
        return math.fsum(
            self.variances[T] * math.prod(self._trace(T, i, base) for i, base in term)
            for T in self._inside(_attributes(term))
        )

    @property
    def deviations(self) -> Array:
        return np.sqrt([self.term_total(term) for term in self.domain.terms]) / np.sqrt(
            self.queries
        )

    @property
    def largest_deviations(self) -> Array:
        return np.sqrt([self.term_variance(term).max() for term in self.domain.terms])

    def encode(self) -> Stored:
        header, arrays = super().encode()
        in_sets = [(i, T, o) for i, s in enumerate(self.strategies) for T, o in s.others.items()]
        distinct = list(dict.fromkeys([*self.strategies, *(own for *_, own in in_sets)]))
        header["strategies"] = [distinct.index(strategy) for strategy in self.strategies]
        header["in_sets"] = [[i, T, distinct.index(own)] for i, T, own in in_sets]
        header["identities"] = [s.size if isinstance(s, IdentityStrategy) else 0 for s in distinct]
        solved = {
            f"contrasts{k}": s.contrasts
            for k, s in enumerate(distinct)
            if isinstance(s, SolvedStrategy)
        }
        return header, arrays | solved

    @classmethod
    def decode(
        cls, domain: AbstractDomain, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        if not isinstance(domain, Products):
            raise CovarianceError("load: expected products with the covariance of some")
        distinct = [
            IdentityStrategy(size) if size else SolvedStrategy(arrays[f"contrasts{k}"])
            for k, size in enumerate(header["identities"])
        ]
        solved = {k: own for k, own in enumerate(distinct) if isinstance(own, SolvedStrategy)}
        by_set: dict[int, dict[Subset, SolvedStrategy]] = defaultdict(dict)
        for i, T, k in header.get("in_sets", ()):
            by_set[i][tuple(T)] = solved[k]
        strategies = [distinct[k] for k in header["strategies"]]
        for i, others in by_set.items():
            strategies[i] = SolvedStrategy(
                arrays[f"contrasts{header['strategies'][i]}"], by_set=others
            )
        return cls(domain, tuple(strategies), variances_of(header))

    def standard_deviation(self) -> Array:
        blocks = self.domain.blocks()
        return np.concatenate(
            [weight * np.sqrt(self.term_variance(term)).reshape(-1) for term, weight, _ in blocks]
        )

    def factor(self) -> Array:
        sizes = [strategy.size for strategy in self.strategies]
        self._check_dense(self.dim * sum(rank(T, sizes) for T in self.variances))
        columns = [np.zeros((self.dim, 0))]
        for T, variance in self.variances.items():
            width = math.prod(self.strategies[i].in_set(T).root.shape[1] for i in T)
            blocks = []
            for term, weight, block in self.domain.blocks():
                if set(T) <= {i for i, _ in term}:
                    lifted = reduce(
                        np.kron, (self._lift(T, i, base) for i, base in term), np.ones((1, 1))
                    )
                    blocks.append(weight * math.sqrt(variance) * lifted)
                else:
                    blocks.append(np.zeros((block.stop - block.start, width)))
            columns.append(np.concatenate(blocks))
        return np.concatenate(columns, axis=1)

    def _multiply(self, x: Array) -> Array:
        pulled: dict[Subset, Array] = {}
        for term, weight, block in self.domain.blocks():
            answers = weight * x[block].reshape(*[base.queries for _, base in term], -1)
            for T in self._inside(_attributes(term)):
                part = answers
                for axis, (i, base) in enumerate(term):
                    part = _along(self._lift(T, i, base).T, part, axis)
                part = part.reshape(
                    *[part.shape[axis] for axis, (i, _) in enumerate(term) if i in T], -1
                )
                pulled[T] = pulled[T] + part if T in pulled else part
        result = np.zeros_like(x)
        for term, weight, block in self.domain.blocks():
            for T in self._inside(_attributes(term)):
                part = self.variances[T] * pulled[T]
                part = part.reshape(*[self._lift(T, i, base).shape[1] for i, base in term], -1)
                for axis, (i, base) in enumerate(term):
                    part = _along(self._lift(T, i, base), part, axis)
                result[block] += weight * part.reshape(block.stop - block.start, -1)
        return result

    def _lift(self, T: Subset, i: int, base: AbstractBase) -> Array:
        """Return the matrix that maps noise of T on i's contrasts, or on its total, to answers."""
        strategy = self.strategies[i].in_set(T)
        if i not in T:
            return base.answer(strategy.profile[:, None])
        # a query that is constant over categories does not depend on contrasts: replace rounding
        # errors by exact zeros
        return np.where(np.isnan(constants(base))[:, None], base.answer(strategy.root), 0.0)

    @cached_property
    def _memory(self) -> dict[tuple[int, AbstractBase, bool, bool], Any]:
        return {}

    def _part(self, T: Subset, i: int, base: AbstractBase) -> Array:
        """Return the variances of ``base``'s queries from T's noise on contrasts, or on totals."""
        own = self.strategies[i].in_set(T)
        key = (id(own), base, i in T, True)
        if key not in self._memory:
            if i in T and base.is_identity and isinstance(own, IdentityStrategy):
                # no matrix is built, since there may be many categories
                self._memory[key] = np.full(base.size, 1 - 1 / base.size)
            else:
                self._memory[key] = np.square(self._lift(T, i, base)).sum(axis=1)
        return self._memory[key]

    def _trace(self, T: Subset, i: int, base: AbstractBase) -> float:
        """Return the sum over queries of the variances that :meth:`_part` returns."""
        own = self.strategies[i].in_set(T)
        key = (id(own), base, i in T, False)
        if key not in self._memory:
            unit = own.unit or 1.0
            self._memory[key] = own.gain(base) / unit if i in T else own.total_gain(base)
        return self._memory[key]


def _attributes(term: Term) -> Subset:
    return tuple(i for i, _ in term)


def constants(base: AbstractBase) -> Array:
    """Return the coefficient of each query if it is equal for all categories, otherwise NaN."""
    if base.is_identity:  # no matrix is built, since there may be many categories
        return np.full(base.size, 1.0 if base.size == 1 else np.nan)
    if isinstance(base, AbstractRuns):
        first, last = base.ends()
        return np.where(last - first + 1 >= base.size, 1.0, np.nan)
    W = base.toarray()
    return np.where((W == W[:, :1]).all(axis=1), W[:, 0], np.nan)


def _along(matrix: Array, tensor: Array, axis: int) -> Array:
    return np.moveaxis(np.tensordot(matrix, tensor, axes=(1, axis)), 0, axis)
