"""Covariance of the noise of consistent tables, and of queries on them."""

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
    """The covariance of the answers from tables, which is never built as one matrix.

    Every attribute set T has its own independent noise ``η_T ~ N(0, variances[T] · ⊗_{i∈T} E_i)``.
    The cells of table S get ``Σ_{T ⊆ S} η_T ⊗_{i∈S∖T} v_i``; see :class:`AbstractStrategy` for the
    matrix E_i, which may depend on T, and the vector v_i of attribute i, which does not.

    Attributes:
        domain: the tables; each coordinate is one of their answers.
        strategies: for each attribute, the contrasts of its categories that are measured.
        variances: for each sorted tuple T of attributes, the variance of its noise.
    """

    domain: AbstractTables
    strategies: tuple[AbstractStrategy, ...]
    variances: Mapping[Subset, float]

    @abc.abstractmethod
    def table_variance(self, subset: Subset, box: Box | None = None) -> Array | float:
        """Return the variance of every cell of a table, or one number if all variances are equal.

        The table of the attributes ``subset`` is not multiplied by its weight. With a box, only the
        variances of the cells in this box are returned.
        """

    @abc.abstractmethod
    def mean_variance(self, subset: Subset) -> float:
        """Return the mean variance of the cells of a table, not multiplied by its weight."""

    @abc.abstractmethod
    def term_variance(self, term: Term) -> Array:
        """Return the variance of every query of a term, not multiplied by the term's weight.

        A term is a product of sets of one-attribute queries; the array has one axis per set.
        """

    @property
    @abc.abstractmethod
    def deviations(self) -> Array:
        """The root mean square of the standard deviations of each term's queries, shape (terms,).

        A term is a product of sets of one-attribute queries. Queries are not multiplied by weights.
        """

    @property
    @abc.abstractmethod
    def largest_deviations(self) -> Array:
        """The largest standard deviation of each term's queries, not weighted, shape (terms,).

        A term is a product of sets of one-attribute queries.
        """

    @cached_property
    def queries(self) -> Array:
        """The number of queries of each term, shape (terms,).

        A term is a product of sets of one-attribute queries.
        """
        return np.array([float(self.domain.queries(term)) for term in self.domain.terms])

    @property
    def dim(self) -> int:
        return self.domain.dim

    def error(self, p: float) -> float:
        """Return the error's p-norm: each query has the root mean square deviation of its term.

        A term is a product of sets of one-attribute queries.
        """
        return group_norm(np.array(self.domain.weights) * self.deviations, self.queries, p)

    def encode(self) -> Stored:
        return {"variances": [[T, variance] for T, variance in self.variances.items()]}, {}

    def _inside(self, S: Subset) -> list[Subset]:
        """Return the subsets T of S that have noise of their own."""
        return [T for T in subsets_of(S) if T in self.variances]


def variances_of(header: dict[str, Any]) -> dict[Subset, float]:
    """Return the variances by attribute set that :meth:`TableCovariance.encode` wrote."""
    return {tuple(T): variance for T, variance in header["variances"]}


def covariance_of_tables(covariance: AbstractCovariance) -> TableCovariance:
    """Return ``covariance``, or raise ParameterError if it is not the covariance of tables."""
    if not isinstance(covariance, TableCovariance):
        raise ParameterError("Plan: expected noise of tables")
    return covariance
