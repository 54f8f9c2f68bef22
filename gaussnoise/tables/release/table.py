"""One released table: counts, answers to queries about them, or proportions."""

import abc
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ...numerics.intervals import (
    ConfidenceInterval,
    confidence_interval,
    quantile,
    ratio_interval,
)
from ..schema.dates import Edge
from ..schema.schema import Category
from .biased import AbstractTable
from .cells import CLOSING, CellList, cells_html, first_of, in_order
from .show import first, table_text
from .tidy import (
    LEVEL,
    NUMBERS,
    arrow_columns,
    as_pandas,
    framed,
    with_level,
)

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure
    from narwhals.typing import EagerAllowed

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AbstractEstimates(abc.ABC):
    """Estimates of all cells of a table over some attributes.

    Attributes:
        attributes: names, one per axis.
        labels: cell names along every axis.
        estimate: estimates of all cells, shape (sizes…).
        standard_deviation: standard deviation of every cell, same shape.
        private: False for simulations, whose numbers must not be published.
    """

    attributes: tuple[str, ...]
    labels: tuple[tuple[Category, ...], ...]
    estimate: Array
    standard_deviation: Array
    private: bool
    backend: "EagerAllowed" = field(repr=False)

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return intervals for every number, each taken alone or all taken together.

        All together they are a simultaneous band, valid for all correlations (Šidák 1967).

        Returns:
            ``(low, high)``, arrays shaped like ``estimate``.
        """
        return confidence_interval(self.estimate, self.standard_deviation, level, simultaneous)

    def columns(self, level: float = LEVEL) -> dict[str, list]:
        """Return tidy columns, one row per cell in C order.

        The columns are the attributes, estimate, standard_deviation, low and high.
        """
        return self.to_arrow(level).to_pydict()

    def to_frame(self, level: float = LEVEL) -> Any:
        """Return :meth:`columns` as a dataframe of the library that the records came in.

        Files and remote engines give pyarrow. The frame holds the level of its intervals: in
        ``attrs`` of pandas, in the metadata of pyarrow, in a last column ``level`` of polars.
        """
        return framed(self.to_arrow(level), self.backend)

    def to_pandas(self, level: float = LEVEL) -> "pd.DataFrame":
        """Return :meth:`columns` in pandas; ``frame.attrs`` holds the level of the intervals.

        Raises:
            NotAvailableError: pandas is not installed.
        """
        return as_pandas(self.to_arrow(level))

    def to_arrow(self, level: float = LEVEL) -> "pa.Table":
        """Return :meth:`columns` in pyarrow; its metadata hold the level of the intervals."""
        numbers = (self.estimate, self.standard_deviation, *self.confidence_interval(level))
        rows = arrow_columns(
            self.attributes,
            self.labels,
            slice(0, self.estimate.size),
            dict(zip(NUMBERS, numbers, strict=True)),
        )
        return with_level(rows, level, self.private)

    def sorted(self, descending: bool = True) -> "CellList":
        """Return all cells by estimate, the largest first or last.

        Cells without an estimate come at the end.

        >>> import pyarrow as pa
        >>> survey = gn.plan(gn.Schema([gn.Attribute("sex", ["f", "m"])]), 1, gn.zCDP(0.5))
        >>> table = survey.release(pa.table({"sex": ["f", "m", "m"] * 90}))["sex"]
        >>> table.sorted().labels
        (('m',), ('f',))
        """
        return CellList(self, in_order(self.estimate, descending=descending))

    def top(self, count: int = 10) -> "CellList":
        """Return the cells with the largest estimates.

        The noise of the largest estimates tends to be positive, so take their
        ``confidence_interval(simultaneous=True)``.

        Raises:
            ParameterError: the count is not a positive integer.
        """
        return CellList(self, first_of(in_order(self.estimate, descending=True), count, "top"))

    def bottom(self, count: int = 10) -> "CellList":
        """Return the cells with the smallest estimates, like :meth:`top`."""
        return CellList(self, first_of(in_order(self.estimate, descending=False), count, "bottom"))

    def plot(self, level: float = LEVEL) -> "Figure":
        """Return a picture with intervals, of a kind that suits the table.

        It has dots, shares by group, steps of a CDF with its band, a heat map, or the largest and
        smallest cells of a table that has many.

        Returns:
            A matplotlib Figure; save it with ``.savefig(path)``.

        Raises:
            ParameterError: the level is outside (0, 1).
        """
        from .default_plot import plot_table  # imported here: the picture also needs tables

        return plot_table(self, level)

    def _repr_html_(self) -> str:
        return cells_html(self, repr(self))

    def __str__(self) -> str:
        estimate, (low, high) = first(self.estimate, 8), self.confidence_interval()
        sd = first(self.standard_deviation, 4)
        numbers = [estimate, [f"± {x}" for x in sd], first(low, 8), first(high, 8)]
        names = ["estimate", "± sd", "low", "high"]
        return table_text(
            repr(self), self.attributes, self.labels, names, numbers, CLOSING, private=self.private
        )


@final
@dataclass(frozen=True, eq=False, repr=False)
class MarginalTable(AbstractEstimates, AbstractTable):
    """One released table of counts: unbiased, so they may be negative or fractional.

    Attributes:
        attributes: names, one per axis.
        labels: cell names along every axis.
        estimate: unbiased counts, shape (sizes…).
        standard_deviation: standard deviation of every cell, same shape, known exactly.
        private: False for simulations, whose numbers must not be published.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> table = release["sex", "age"]
    >>> print(table.attributes, table.estimate.shape, table.labels[0])
    ('sex', 'age') (2, 3) ('F', 'M')
    """

    def __repr__(self) -> str:
        return (
            f"MarginalTable({' × '.join(self.attributes) or 'total'}, {self.estimate.size} cells)"
        )


@final
@dataclass(frozen=True, eq=False, repr=False)
class QueryTable(AbstractEstimates):
    """Unbiased answers to queries about one released table, such as cumulative counts or ranges.

    Attributes:
        attributes: names, one per axis.
        labels: query names along every axis.
        estimate: unbiased answers, shape (queries…).
        standard_deviation: standard deviation of every answer, same shape, known exactly.
        private: False for simulations, whose numbers must not be published.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> release = gn.plan(schema, [{"age": "prefix"}], gn.zCDP(0.1)).release(people)
    >>> release.answers({"age": "prefix"}).labels
    (('below 18', 'below 40', 'up to 65'),)
    """

    def __repr__(self) -> str:
        return f"QueryTable({' × '.join(self.attributes) or 'total'}, {self.estimate.size} answers)"


@final
@dataclass(frozen=True, eq=False, repr=False)
class ProportionTable(AbstractEstimates):
    """Shares of groups: every count over the count of its group, both of them released.

    A ratio of unbiased counts is *not* unbiased, unless the denominator is exact. Its intervals are
    still exact (Fieller 1954), since the noise of counts is Gaussian with known covariance.

    Attributes:
        attributes: names, one per axis.
        labels: cell names along every axis.
        estimate: shares, shape (sizes…); NaN where a group's count is not positive.
        standard_deviation: to first order, of every cell; NaN where the estimate is NaN.
        private: False for simulations, whose numbers must not be published.
        given: names of the attributes that define the groups.
        counts: the count of every cell.
        groups: the count of every cell's group.
        variance: the variance of each count; this array and the two below broadcast to the table.
        group_variance: variance of the count of every cell's group.
        share: the covariance of these two counts, divided by ``group_variance``: the part of the
            group's noise that a cell has.
        steps: for cumulative shares, the value of the last attribute that reaches each of them:
            numbers or dates, or positions if it has neither. None for other shares.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> shares = release.proportions(("sex", "age"), given="sex")
    >>> interval = shares.confidence_interval(0.95)
    >>> print(shares.labels[0], (interval.low <= shares.estimate).all())
    ('F', 'M') True
    """

    given: tuple[str, ...]
    counts: Array
    groups: Array
    variance: Array
    group_variance: Array
    share: Array
    steps: tuple[Edge, ...] | None = None

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return intervals for every cell, each alone or all cells together (Šidák 1967).

        An interval holds every p for which ``count − p·group`` lies within its own Gaussian
        interval about zero. That difference is Gaussian with mean zero at the true share, so the
        intervals cover as often as their level says (Fieller 1954): exactly where the group's count
        is clear of zero, and more often where it is not; they are [0, 1] there. Intervals are cut
        to [0, 1], but always hold the estimate, which noise may carry outside.

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
