"""One released table: counts, answers to queries about them, or proportions."""

import abc
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ...numerics.intervals import (
    ConfidenceInterval,
    confidence_interval,
    quantile,
    ratio_interval,
)
from ..schema.schema import Category
from .biased import AbstractTable
from .show import first, table_text
from .tidy import LEVEL, NUMBERS, arrow_columns, level_text

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AbstractEstimates(abc.ABC):
    """Estimates of all cells of a table over some attributes.

    Attributes:
        attributes: names, one per axis.
        labels: cell names along every axis.
        estimate: shape (sizes…).
        standard_deviation: of every cell, same shape.
        private: False for simulations, whose numbers must not be published.
    """

    attributes: tuple[str, ...]
    labels: tuple[tuple[Category, ...], ...]
    estimate: Array
    standard_deviation: Array
    private: bool
    backend: Any = field(repr=False)

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Intervals for every number, each alone or all together: a band, whatever the correlations
        (Šidák 1967).

        Returns:
            ``(low, high)``, arrays shaped like ``estimate``.
        """
        return confidence_interval(self.estimate, self.standard_deviation, level, simultaneous)

    def columns(self, level: float = LEVEL) -> dict[str, list]:
        """Tidy columns, one row per cell in C order: the attributes, estimate, standard_deviation,
        low, high.
        """
        return self.to_arrow(level).to_pydict()

    def to_frame(self, level: float = LEVEL) -> Any:
        """:meth:`columns` as a dataframe of the library the records came in (pyarrow for files and
        remote engines).
        """
        import narwhals as nw

        return nw.from_arrow(self.to_arrow(level), backend=self.backend).to_native()

    def to_arrow(self, level: float = LEVEL) -> Any:
        """:meth:`columns` as a pyarrow table."""
        numbers = (self.estimate, self.standard_deviation, *self.confidence_interval(level))
        return arrow_columns(
            self.attributes,
            self.labels,
            slice(0, self.estimate.size),
            dict(zip(NUMBERS, numbers, strict=True)),
        )

    def __str__(self) -> str:
        estimate, (low, high) = first(self.estimate, 8), self.confidence_interval()
        sd = first(self.standard_deviation, 4)
        numbers = [estimate, [f"± {x}" for x in sd], first(low, 8), first(high, 8)]
        closing = (
            f"± one standard deviation; low and high: {level_text(LEVEL)} intervals, for "
            "every number by itself"
        )
        names = ["estimate", "± sd", "low", "high"]
        return table_text(
            repr(self), self.attributes, self.labels, names, numbers, closing, private=self.private
        )


@final
@dataclass(frozen=True, eq=False, repr=False)
class MarginalTable(AbstractEstimates, AbstractTable):
    """One released table of counts: unbiased, so they may be negative or fractional.

    Attributes:
        attributes: names, one per axis.
        labels: cell names along every axis.
        estimate: unbiased counts, shape (sizes…).
        standard_deviation: of every cell, same shape, known exactly.
        private: False for simulations, whose numbers must not be published.
    """

    def __repr__(self) -> str:
        return (
            f"MarginalTable({' × '.join(self.attributes) or 'total'}, {self.estimate.size} cells)"
        )


@final
@dataclass(frozen=True, eq=False, repr=False)
class QueryTable(AbstractEstimates):
    """Answers to queries about one released table, such as cumulative counts or all ranges:
    unbiased.

    Attributes:
        attributes: names, one per axis.
        labels: query names along every axis.
        estimate: unbiased answers, shape (queries…).
        standard_deviation: of every answer, same shape, known exactly.
        private: False for simulations, whose numbers must not be published.
    """

    def __repr__(self) -> str:
        return f"QueryTable({' × '.join(self.attributes) or 'total'}, {self.estimate.size} answers)"


@final
@dataclass(frozen=True, eq=False, repr=False)
class ProportionTable(AbstractEstimates):
    """Shares of groups: every count over the count of its group, both of them released.

    A ratio of unbiased counts is *not* unbiased, unless the denominator is exact; its intervals are
    exact all the same (Fieller 1954), since the noise of counts is Gaussian with known covariance.

    Attributes:
        attributes: names, one per axis.
        labels: cell names along every axis.
        estimate: shape (sizes…); NaN where a group's count is not positive.
        standard_deviation: of every cell, to first order; NaN likewise.
        private: False for simulations, whose numbers must not be published.
        given: names of the attributes that define the groups.
        counts: of every cell.
        groups: count of every cell's group.
        variance: of every cell's count; this and what follows broadcast to the table.
        group_variance: of its group's count.
        share: covariance of both, over ``group_variance``: what a cell gets of its group's noise.
    """

    given: tuple[str, ...]
    counts: Array
    groups: Array
    variance: Array
    group_variance: Array
    share: Array

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Intervals for every cell, each alone or all cells of this table together (Šidák 1967).

        They hold every p at which ``count − p·group`` lies within its own Gaussian interval about
        zero, hence cover as often as they say: exactly for a clear group, more often where the
        group is too small to say anything, where they are [0, 1]. They are cut to [0, 1], but
        always hold the estimate, which noise may carry beyond.

        Returns:
            ``(low, high)``, arrays shaped like ``estimate``.
        """
        squared = quantile(level, self.counts.size if simultaneous else 1) ** 2
        covariance = self.group_variance * self.share
        parts = self.variance, covariance, self.group_variance
        low, high = ratio_interval(self.counts, self.groups, *parts, squared, (0.0, 1.0))
        return ConfidenceInterval(np.fmin(low, self.estimate), np.fmax(high, self.estimate))

    def __repr__(self) -> str:
        given = f" given {' × '.join(self.given)}" if self.given else ""
        return (
            f"ProportionTable({' × '.join(self.attributes) or 'total'}{given}, "
            f"{self.estimate.size} cells)"
        )
