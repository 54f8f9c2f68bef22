"""Noise of tables that are consistent with each other, and of the queries about them."""

import abc
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from domains.floats import Array
from domains.tables.tables import AbstractTables, Term

from ..errors import ParameterError
from ..numerics.norms import group_norm
from ..solvers.tables.boxes import Box
from ..solvers.tables.residuals import Subset, subsets_of
from ..solvers.tables.strategies import AbstractStrategy
from .covariance import AbstractCovariance, Stored


class TableCovariance(AbstractCovariance):
    """Covariance of answers from tables, never built as one matrix.

    Independent ``η_T ~ N(0, variances[T] · ⊗_{i∈T} E_i)`` on the cells over T contribute ``Σ_{T ⊆
    S} η_T ⊗_{i∈S∖T} v_i`` to the cells over S; see :class:`AbstractStrategy` for E and v.

    Attributes:
        domain: the tables whose coordinates the answers are.
        strategies: how each attribute is measured.
        variances: the noise variance of each sorted tuple of attributes T.
    """

    domain: AbstractTables
    strategies: tuple[AbstractStrategy, ...]
    variances: Mapping[Subset, float]

    @abc.abstractmethod
    def table_variance(self, subset: Subset, box: Box | None = None) -> Array | float:
        """Return the variance of every cell of a ``subset``'s (unweighted) table, or one common
        number.

        With a box, return those of its cells alone.
        """

    @abc.abstractmethod
    def mean_variance(self, subset: Subset) -> float:
        """Return the mean of :meth:`table_variance`."""

    @abc.abstractmethod
    def term_variance(self, term: Term) -> Array:
        """Return the variance of every (unweighted) query of a product of bases: (queries…)."""

    @property
    @abc.abstractmethod
    def deviations(self) -> Array:
        """The root mean square of each term's (unweighted) standard deviations, in order."""

    @property
    @abc.abstractmethod
    def largest_deviations(self) -> Array:
        """The largest standard deviation of each term's (unweighted) queries, in that order."""

    @cached_property
    def queries(self) -> Array:
        """The number of queries of each term, in the domain's order."""
        return np.array([float(self.domain.queries(term)) for term in self.domain.terms])

    @property
    def dim(self) -> int:
        return self.domain.dim

    def error(self, p: float) -> float:
        """Return the p-norm over all queries, each with its term's root mean square."""
        return group_norm(np.array(self.domain.weights) * self.deviations, self.queries, p)

    def encode(self) -> Stored:
        return {"variances": [[T, variance] for T, variance in self.variances.items()]}, {}

    def _inside(self, S: Subset) -> list[Subset]:
        """Return the subsets T of S that have noise."""
        return [T for T in subsets_of(S) if T in self.variances]


def variances_of(header: dict[str, Any]) -> dict[Subset, float]:
    """Return the variances by attributes that :meth:`TableCovariance.encode` wrote."""
    return {tuple(T): variance for T, variance in header["variances"]}


def covariance_of_tables(covariance: AbstractCovariance) -> TableCovariance:
    """Return the covariance, or raise ParameterError if it is not one of tables."""
    if not isinstance(covariance, TableCovariance):
        raise ParameterError("Plan: expected noise of tables")
    return covariance
