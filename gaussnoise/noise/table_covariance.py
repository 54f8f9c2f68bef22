"""Noise of tables that agree with each other, as it reaches what is asked about them."""

import abc
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domains.tables.tables import AbstractTables, Term

from ..errors import ParameterError
from ..numerics.norms import group_norm
from ..solvers.tables.boxes import Box
from ..solvers.tables.residuals import Subset, subsets_of
from ..solvers.tables.strategies import AbstractStrategy
from .covariance import Covariance, Stored

Array = NDArray[np.float64]


class TableCovariance(Covariance):
    """Covariance of the answers about tables, never built as one matrix.

    Independent ``η_T ~ N(0, variances[T] · ⊗_{i∈T} E_i)`` on the cells over T reach the cells over
    S as ``Σ_{T ⊆ S} η_T ⊗_{i∈S∖T} v_i``; see :class:`AbstractStrategy` for E and v.

    Attributes:
        domain: whose coordinates the answers are.
        strategies: how each attribute is measured.
        variances: by sorted attributes T.
    """

    domain: AbstractTables
    strategies: tuple[AbstractStrategy, ...]
    variances: Mapping[Subset, float]

    @abc.abstractmethod
    def table_variance(self, subset: Subset, box: Box | None = None) -> Array | float:
        """Variance of every cell of ``subset``'s (unweighted) table, shape (sizes…), or one.

        Of those in a box alone, if there is one.
        """

    @abc.abstractmethod
    def mean_variance(self, subset: Subset) -> float:
        """The mean of :meth:`table_variance`."""

    @abc.abstractmethod
    def term_variance(self, term: Term) -> Array:
        """Variance of every (unweighted) query of a product of bases, shape (queries…)."""

    @property
    @abc.abstractmethod
    def deviations(self) -> Array:
        """Root mean square of each term's (unweighted) standard deviations, in order."""

    @property
    @abc.abstractmethod
    def largest_deviations(self) -> Array:
        """Largest standard deviation of each term's (unweighted) queries, in the domain's order."""

    @cached_property
    def queries(self) -> Array:
        """Number of queries of each term, in the domain's order."""
        return np.array([float(self.domain.queries(term)) for term in self.domain.terms])

    @property
    def dim(self) -> int:
        return self.domain.dim

    def error(self, p: float) -> float:
        """The p-norm over all queries, each with its term's root mean square."""
        return group_norm(np.array(self.domain.weights) * self.deviations, self.queries, p)

    def encode(self) -> Stored:
        return {"variances": [[T, variance] for T, variance in self.variances.items()]}, {}

    def _inside(self, S: Subset) -> list[Subset]:
        """The T ⊆ S that have noise."""
        return [T for T in subsets_of(S) if T in self.variances]


def variances_of(header: dict[str, Any]) -> dict[Subset, float]:
    """By attributes, as :meth:`TableCovariance.encode` wrote them."""
    return {tuple(T): variance for T, variance in header["variances"]}


def covariance_of_tables(covariance: Covariance) -> TableCovariance:
    """The covariance, or a ParameterError if it is of something else."""
    if not isinstance(covariance, TableCovariance):
        raise ParameterError("Plan: expected noise of tables")
    return covariance
