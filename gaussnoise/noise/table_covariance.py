"""Noise of tables that are consistent with each other, and of queries on them."""

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
    """The covariance of answers from tables, never built as one matrix.

    For each attribute set T, independent noise ``η_T ~ N(0, variances[T] · ⊗_{i∈T} E_i)``. The
    cells of table S get ``Σ_{T ⊆ S} η_T ⊗_{i∈S∖T} v_i``; see :class:`AbstractStrategy` for the
    matrix E_i and the vector v_i of attribute i.

    Attributes:
        domain: the tables; each coordinate is one of their answers.
        strategies: how each attribute is measured.
        variances: for each sorted tuple T of attributes, the variance of its noise.
    """

    domain: AbstractTables
    strategies: tuple[AbstractStrategy, ...]
    variances: Mapping[Subset, float]

    @abc.abstractmethod
    def table_variance(self, subset: Subset, box: Box | None = None) -> Array | float:
        """Return the variance of every cell of an unweighted table, or the one that all cells have.

        With a box, return those of its cells alone.
        """

    @abc.abstractmethod
    def mean_variance(self, subset: Subset) -> float:
        """Return the mean of :meth:`table_variance`."""

    @abc.abstractmethod
    def term_variance(self, term: Term) -> Array:
        """Return the variance of every unweighted query of a term, one axis per base."""

    @property
    @abc.abstractmethod
    def deviations(self) -> Array:
        """The root mean square of the standard deviations of each term's unweighted queries."""

    @property
    @abc.abstractmethod
    def largest_deviations(self) -> Array:
        """The largest standard deviation of each term's unweighted queries."""

    @cached_property
    def queries(self) -> Array:
        """The number of queries of each term."""
        return np.array([float(self.domain.queries(term)) for term in self.domain.terms])

    @property
    def dim(self) -> int:
        return self.domain.dim

    def error(self, p: float) -> float:
        """Return the p-norm over all queries, each with its term's root mean square deviation."""
        return group_norm(np.array(self.domain.weights) * self.deviations, self.queries, p)

    def encode(self) -> Stored:
        return {"variances": [[T, variance] for T, variance in self.variances.items()]}, {}

    def _inside(self, S: Subset) -> list[Subset]:
        """Return the subsets T of S that have noise."""
        return [T for T in subsets_of(S) if T in self.variances]


def variances_of(header: dict[str, Any]) -> dict[Subset, float]:
    """Return the variances by attribute set that :meth:`TableCovariance.encode` wrote."""
    return {tuple(T): variance for T, variance in header["variances"]}


def covariance_of_tables(covariance: AbstractCovariance) -> TableCovariance:
    """Return the covariance, or raise ParameterError if it is not one of tables."""
    if not isinstance(covariance, TableCovariance):
        raise ParameterError("Plan: expected noise of tables")
    return covariance
