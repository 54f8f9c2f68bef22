"""Covariance matrices, stored as what they are made of, so that feasibility can be checked on stored numbers."""

import abc
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains import DomainTooLargeError, Marginals

from ..errors import CovarianceError, ParameterError
from ..files.pickling import PickledByArguments
from ..numerics.norms import norm
from ..solvers.tables.orbits import ByType, Orbits, Type
from ..solvers.tables.residuals import Subset, part_of, project_zero_sum, rank, spread, subsets_of, zero_sum_basis

Array = NDArray[np.float64]

_DENSE_ENTRIES = 2**27  # 1 GB


class Covariance(abc.ABC):
    """A positive semidefinite matrix M of shape (dim, dim); dense only when asked."""

    __array_ufunc__ = None

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """Number of coordinates d."""

    @abc.abstractmethod
    def standard_deviation(self) -> Array:
        """Square roots of the diagonal, shape (dim,)."""

    @abc.abstractmethod
    def factor(self) -> Array:
        """A matrix L, shape (dim, r), with ``M = L @ L.T``."""

    @abc.abstractmethod
    def _multiply(self, x: Array) -> Array:
        """M @ x for x of shape (dim, k)."""

    @property
    def shape(self) -> tuple[int, int]:
        """``(dim, dim)``."""
        return (self.dim, self.dim)

    def diagonal(self) -> Array:
        """Variances, shape (dim,)."""
        return self.standard_deviation() ** 2

    def toarray(self) -> Array:
        """The dense matrix.

        Raises:
            DomainTooLargeError: it would need more than a gigabyte.
        """
        self._check_dense(self.dim**2)
        L = self.factor()
        return L @ L.T

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> NDArray:
        if copy is False:
            raise ValueError("a Covariance is stored factored: its array is always a new one")
        return self.toarray().astype(dtype or np.float64)

    def __matmul__(self, other: ArrayLike) -> Array:
        x = np.asarray(other, dtype=np.float64)
        if x.ndim not in (1, 2) or x.shape[0] != self.dim:
            raise ParameterError(f"Covariance @ x: expected x of shape ({self.dim},) or ({self.dim}, k), got {x.shape}")
        return self._multiply(x.reshape(self.dim, -1)).reshape(x.shape)

    def error(self, p: float) -> float:
        """``‖sd(M)‖_p``: root total variance at p = 2, largest standard deviation at p = ∞."""
        return norm(self.standard_deviation(), p)

    def _check_dense(self, entries: int) -> None:
        if entries > _DENSE_ENTRIES:
            raise DomainTooLargeError(
                f"Covariance: the dense array needs {entries * 8 / 1e9:.3g} GB; "
                "hint: use diagonal(), standard_deviation() or products"
            )


@final
@dataclass(frozen=True, eq=False)
class FactorCovariance(Covariance, PickledByArguments):
    """``M = scale² · L @ L.T`` with the entries of L near one, so that scales of 1e±150 neither under- nor overflow.

    >>> FactorCovariance(np.array([[3.0], [4.0]]), 2.0).standard_deviation()
    array([6., 8.])
    """

    unit_factor: Array
    scale: float

    def __post_init__(self) -> None:
        if not 0 < self.scale < np.inf:
            raise ParameterError(f"FactorCovariance: expected a positive, finite scale, got {self.scale!r}")
        copied = np.array(self.unit_factor, dtype=np.float64)
        if not np.isfinite(copied).all():
            raise CovarianceError("FactorCovariance: expected a finite factor, got NaN or infinite entries")
        copied.flags.writeable = False
        object.__setattr__(self, "unit_factor", copied)

    @property
    def dim(self) -> int:
        return self.unit_factor.shape[0]

    def standard_deviation(self) -> Array:
        heights = np.abs(self.unit_factor).max(axis=1, initial=0.0)
        heights[heights == 0] = 1.0
        return self.scale * (heights * np.linalg.norm(self.unit_factor / heights[:, None], axis=1))

    def factor(self) -> Array:
        return self.scale * self.unit_factor

    def _multiply(self, x: Array) -> Array:
        return self.scale * (self.unit_factor @ (self.unit_factor.T @ (self.scale * x)))


@final
@dataclass(frozen=True, eq=False)
class MarginalCovariance(Covariance, PickledByArguments):
    """Noise of marginal tables that agree with each other, never built as one matrix.

    Independent zero-sum tensors ``η_T ~ N(0, variances[T] · Π_T)`` reach table S as ``Σ_{T ⊆ S} η_T ⊗ 1/N_{S∖T}``,
    and coordinate block S of the domain as its weight times that.
    """

    domain: Marginals
    variances: Mapping[Subset, float]

    def __post_init__(self) -> None:
        if not isinstance(self.variances, ByType):
            object.__setattr__(self, "variances", MappingProxyType(dict(self.variances)))

    @property
    def dim(self) -> int:
        return self.domain.dim

    def table_variance(self, subset: Subset) -> float:
        """Variance of every cell of the (unweighted) table of ``subset``."""
        orbits = self.by_type.orbits
        kind = orbits.type_of(tuple(i for i in subset if i in orbits))
        return math.fsum(self._sums.get(T, 0.0) for T in subsets_of(kind)) / float(self.domain.cells(subset)) ** 2

    @cached_property
    def table_variances(self) -> Array:
        """:meth:`table_variance` of every table of the domain, in its order."""
        alike, which = self._kinds
        return np.array([self.table_variance(S) for S in alike])[which]

    @cached_property
    def table_cells(self) -> Array:
        """Number of cells of every table of the domain."""
        alike, which = self._kinds
        return np.array([float(self.domain.cells(S)) for S in alike])[which]

    @cached_property
    def by_type(self) -> ByType:
        """The variances up to exchange of alike attributes; no two are alike where none were said to be."""
        if isinstance(self.variances, ByType):
            return self.variances
        return ByType(Orbits(tuple((i,) for i in range(len(self.domain.sizes)))), self.variances)

    @cached_property
    def _sums(self) -> dict[Type, float]:
        """By type of T: what its noise adds to the variance of a table over S, times N_S²."""
        sizes = [self.domain.sizes[members[0]] for members in self.by_type.orbits.classes]
        return {
            kind: variance * float(math.prod((sizes[k] - 1) * sizes[k] for k in kind))
            for kind, variance in self.by_type.values_by_type.items()
        }

    @cached_property
    def _kinds(self) -> tuple[list[Subset], NDArray[np.intp]]:
        """One table of every kind, and which of them each table is like: one of the same variance and size."""
        subsets = self.domain.subsets
        classes = -2 - np.arange(len(self.domain.sizes))  # outside the classes, no two are alike
        for k, members in enumerate(self.by_type.orbits.classes):
            classes[list(members)] = k
        flat = np.fromiter(itertools.chain.from_iterable(subsets), dtype=np.intp)
        lengths = np.array([len(S) for S in subsets])
        kinds = np.full((len(subsets), max(1, lengths.max())), -1)
        kinds[np.arange(kinds.shape[1]) < lengths[:, None]] = classes[flat]
        kinds.sort(axis=1)
        _, first, which = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
        return [subsets[k] for k in first], which.reshape(-1)

    def error(self, p: float) -> float:
        """``‖sd(M)‖_p``, table by table."""
        return norm(np.array(self.domain.weights) * np.sqrt(self.table_variances) * self.table_cells ** (1 / p), p)

    def standard_deviation(self) -> Array:
        return np.repeat(np.array(self.domain.weights) * np.sqrt(self.table_variances), self.table_cells.astype(int))

    def factor(self) -> Array:
        self._check_dense(self.dim * sum(rank(T, self.domain.sizes) for T in self.variances))
        columns = [np.zeros((self.dim, 0))]
        for T, variance in self.variances.items():
            basis = np.sqrt(variance) * zero_sum_basis([self.domain.sizes[i] for i in T])
            columns.append(np.concatenate([self._lift(T, basis, S, w) for S, w, _ in self._blocks()]))
        return np.concatenate(columns, axis=1)

    def _multiply(self, x: Array) -> Array:
        sizes = self.domain.sizes
        pulled = {T: np.zeros((*[sizes[i] for i in T], x.shape[1])) for T in self.variances}
        for S, weight, block in self._blocks():
            table = weight * x[block].reshape(*[sizes[i] for i in S], -1)
            for T in self._inside(S):
                pulled[T] += part_of(table, S, T) * (self.domain.cells(T) / self.domain.cells(S))
        pieces = {
            T: self.variances[T] * project_zero_sum(tensor, range(len(T))).reshape(-1, x.shape[1])
            for T, tensor in pulled.items()
        }
        result = np.zeros_like(x)
        for S, weight, block in self._blocks():
            for T in self._inside(S):
                result[block] += self._lift(T, pieces[T], S, weight)
        return result

    def _blocks(self) -> Iterator[tuple[Subset, float, slice]]:
        start = 0
        for S, weight in zip(self.domain.subsets, self.domain.weights, strict=True):
            stop = start + self.domain.cells(S)
            yield S, weight, slice(start, stop)
            start = stop

    def _inside(self, S: Subset) -> list[Subset]:
        return [T for T in subsets_of(S) if T in self.variances]

    def _lift(self, T: Subset, values: Array, S: Subset, weight: float) -> Array:
        """Columns ``values`` (cells of T, k) as they reach coordinate block S, shape (cells of S, k)."""
        if not set(T) <= set(S):
            return np.zeros((self.domain.cells(S), values.shape[1]))
        lifted = spread(values, T, S, self.domain.sizes) * (weight * self.domain.cells(T) / self.domain.cells(S))
        return lifted.reshape(-1, values.shape[1])
