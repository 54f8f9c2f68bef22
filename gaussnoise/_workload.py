"""A workload of tables over attribute bases, one row per type of table and of residual measurement."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from domains import Marginals

from ._bases import Identity
from ._covariance import norm
from ._orbits import Orbits, Type, alike
from ._patterns import pattern_sums, products
from ._residuals import check_count

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Workload:
    """Tables to be answered from measurements ``⊗_{i∈T} B_i ⊗_{i∉T} 1'``, up to exchange of alike attributes.

    Attributes:
        bases: one per class of attributes.
        orbits: the classes; those of more than one category come first.
        tables: types of the tables.
        weights: error priority of each type's tables, divided by the largest.
        residuals: types of the measurements T.
    """

    bases: tuple[Identity, ...]
    orbits: Orbits
    tables: tuple[Type, ...]
    weights: Array
    residuals: tuple[Type, ...]

    @classmethod
    def of(cls, domain: Marginals, *, total: bool) -> Self:
        """The workload of a marginal domain; ``total`` says whether the empty T is to be measured."""
        priorities = dict(zip(domain.subsets, domain.weights, strict=True))
        used = {i for S in domain.subsets for i in S}
        classes = [members for members in alike(priorities, domain.sizes) if members[0] in used]
        classes.sort(key=lambda members: domain.sizes[members[0]] == 1)
        bases = tuple(Identity(domain.sizes[members[0]]) for members in classes)
        orbits = Orbits(tuple(classes))
        largest = max(domain.weights)
        tables = {orbits.type_of(S): weight / largest for S, weight in priorities.items()}
        moving = sum(base.size > 1 for base in bases)
        residuals = [T for T in orbits.below(list(tables)) if (T or total) and all(k < moving for k in T)]
        check_count(sum(orbits.size(T) for T in residuals))
        return cls(bases, orbits, tuple(tables), np.array(list(tables.values())), tuple(residuals))

    @cached_property
    def moving(self) -> Orbits:
        """The classes of more than one category."""
        return Orbits(tuple(c for c, base in zip(self.orbits.classes, self.bases, strict=True) if base.size > 1))

    @cached_property
    def table_counts(self) -> Array:
        """How many tables there are of each type."""
        return np.array([float(self.orbits.size(S)) for S in self.tables])

    @cached_property
    def residual_counts(self) -> Array:
        """How many measurements there are of each type."""
        return np.array([float(self.orbits.size(T)) for T in self.residuals])

    @cached_property
    def cells(self) -> Array:
        """Cells of one table of each type."""
        return np.array([float(math.prod(self.bases[k].size for k in S)) for S in self.tables])

    @cached_property
    def ranks(self) -> Array:
        """Dimension of what a measurement of each type sees."""
        return np.array([float(math.prod(self.bases[k].size - 1 for k in T)) for T in self.residuals])

    @cached_property
    def residual_cells(self) -> Array:
        """Cells of the table over each T."""
        return np.array([float(math.prod(self.bases[k].size for k in T)) for T in self.residuals])

    @cached_property
    def loss(self) -> csr_array:
        """Weighted variance, summed over its cells, of a table S (column) when all its T (row) have unit noise."""
        place = {T: row for row, T in enumerate(self.residuals)}
        entries: list[tuple[int, int, float]] = []
        for column, (S, weight) in enumerate(zip(self.tables, self.weights, strict=True)):
            for T, count in self.orbits.inside(S).items():
                if T in place:
                    entries.append((place[T], column, count * weight**2 * self._variance(T, S)))
        rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
        shape = (len(self.residuals), len(self.tables))
        return csr_array((np.array(values, dtype=np.float64), (rows, columns)), shape=shape)

    def _variance(self, T: Type, S: Type) -> float:
        """Variance of all cells of one S together from unit noise on one T."""
        rest = list(S)
        for k in T:
            rest.remove(k)
        return math.prod(self.bases[k].gain for k in T) * math.prod(self.bases[k].spread for k in rest)

    def dual_loss(self, p: float) -> csr_array:
        """A with ``L = A @ shares^{1−2/p}``: the loss of unit noise on one T, given shares of all tables of each type.

        Coordinates get ``w = (share of a cell)^{1/s*}``, s* = p/(p−2).
        """
        power = 1 - 2 / p
        scaled = self.loss * (self.table_counts * (self.table_counts * self.cells) ** -power)
        return csr_array(scaled * (1 / self.residual_counts)[:, None])

    def error(self, noise: Array, p: float) -> float:
        """``‖sd‖_p`` over all weighted cells, from the noise variance of every T's measurement."""
        variances = (self.loss.T @ noise) / self.cells  # of a cell of each type
        return norm(np.sqrt(variances) * (self.table_counts * self.cells) ** (1 / p), p)

    def patterns_moved(self, shares: Array) -> Array:
        """``Σ_T share_T 2 (1 − Π_{i∈T∩D} ρ_i)`` for every pattern D, ``shares`` of one T by type."""
        rho = [base.correlation for base in self.bases if base.size > 1]
        sums = pattern_sums(self.moving, dict(zip(self.residuals, shares, strict=True)), [1.0] * len(rho), rho)
        return 2 * (float(shares @ self.residual_counts) - sums)

    def moved(self, patterns: NDArray[np.intp]) -> Array:
        """``κ_T(D) = 2 (1 − Π_{i∈T∩D} ρ_i)``, averaged over the T of a type, shape (patterns, residuals).

        Args:
            patterns: shape (k, classes of more than one category), how many attributes of each class differ.
        """
        kept = np.ones((len(patterns), len(self.residuals)))
        for k, members in enumerate(self.moving.classes):
            counts = np.array([T.count(k) for T in self.residuals])
            most = int(counts.max(initial=0))
            matrix = products(len(members), most, 1.0, self.bases[k].correlation)
            matrix /= [math.comb(len(members), t) for t in range(most + 1)]
            kept *= matrix[patterns[:, k]][:, counts]
        return 2 * (1 - kept)

    def most_moved(self) -> Array:
        """Largest ``κ_T(D)`` of each T alone: its attribute of fewest categories differs."""
        least = [min((self.bases[k].correlation for k in T), default=1.0) for T in self.residuals]
        return 2 * (1 - np.array(least))
