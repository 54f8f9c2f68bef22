"""One released table: counts, answers to queries about them, or proportions."""

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from numpy.typing import NDArray

from ...errors import NotAvailableError, ParameterError
from ...layout import on_screen
from ...numerics.intervals import (
    ConfidenceInterval,
    Contrast,
    Contrasts,
    confidence_interval,
    quantile,
    ratio_interval,
)
from ..schema.dates import Edge
from ..schema.schema import Category
from .biased import AbstractTable
from .cells import CLOSING, CellList, cells_html, first_of, in_order
from .forms import CellForms, Function, Place, places_of
from .ratios import CANCELLED
from .show import deviations, ends_text, missing_text, rounded, table_text
from .tidy import LEVEL, NUMBERS, arrow_columns, as_pandas, framed, level_text, with_level

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure
    from narwhals.typing import EagerAllowed
    from numpy.typing import ArrayLike

    from .comparison import ComparisonTable

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
        forms: linear forms of released cells that determine these cells; None if unknown.
    """

    attributes: tuple[str, ...]
    labels: tuple[tuple[Category, ...], ...]
    estimate: Array
    standard_deviation: Array
    private: bool
    backend: "EagerAllowed" = field(repr=False)
    forms: CellForms | None = field(default=None, repr=False, kw_only=True)

    @property
    def headings(self) -> tuple[str, ...]:
        """The names of attributes that readers see."""
        release = None if self.forms is None else self.forms.release
        if release is None:
            return self.attributes
        return tuple(map(release.plan.schema.heading, self.attributes))

    @property
    def noun(self) -> str:
        """The plural noun for the counted things."""
        return "rows" if self.forms is None else self.forms.noun

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest value that the true numbers (without noise) can have."""
        return -math.inf, math.inf

    @property
    def is_linear(self) -> bool:
        """Whether each number is a linear combination of released cells."""
        return self.forms is None or self.forms.bottom is None

    def unlimited(self, squared: float) -> ConfidenceInterval:
        """Return intervals of ``√squared`` standard deviations, not cut to :attr:`limits`.

        Bounds are infinite if nothing is known about a number.
        """
        half = math.sqrt(squared) * self.standard_deviation
        return ConfidenceInterval(self.estimate - half, self.estimate + half)

    def at(self, places: Sequence[Place]) -> Function:
        """Return the cells at ``places`` as a function of linear combinations of released cells.

        Raises:
            NotAvailableError: it is unknown how the table's cells were computed.
        """
        if self.forms is None:
            raise NotAvailableError(
                f"contrast: expected a table of one statistic, got {self!r}; hint: release[…], "
                "answers, proportions, sums or means"
            )
        return self.forms.at(places)

    def part(self, axis: int, k: int) -> Self:
        """Return the part of the table for the k-th label along an axis, without this axis."""
        shape, own = self.estimate.shape, {}
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, np.ndarray):
                own[one.name] = np.take(np.broadcast_to(value, shape), k, axis)
            elif isinstance(value, AbstractEstimates | CellForms):
                own[one.name] = value.part(axis, k)
        for name in ("attributes", "labels"):
            left = list(getattr(self, name))
            del left[axis]
            own[name] = tuple(left)
        return replace(self, **own)

    def contrast(self, weights: "ArrayLike") -> Contrast:
        """Return a linear combination of cells, with its standard deviation.

        The standard deviation includes all correlations between cells. It is exact for counts,
        sums and answers; for means, shares and ratios it is to first order.

        Args:
            weights: one number for each cell, shaped like ``estimate``.

        Raises:
            ParameterError: another shape, or weights that are not finite.
            NotAvailableError: a table of several statistics, such as counts beside means.

        >>> import pyarrow as pa
        >>> schema = gn.Schema(
        ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 5000])]
        ... )
        >>> people = pa.table({"sex": ["F", "M"] * 5000, "pay": [2000.0, 3000.0] * 5000})
        >>> release = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.5)).release(people)
        >>> gap = release.means("pay", given="sex").contrast([-1, 1])
        >>> low, high = gap.confidence_interval(0.999999)
        >>> bool(low < 1000 < high), bool(high - low < 20)
        (True, True)
        """
        both = self.contrasts([weights])
        return Contrast(float(both.estimate[0]), float(both.standard_deviation[0]))

    def contrasts(self, combinations: "Sequence[ArrayLike]") -> Contrasts:
        """Return several linear combinations of cells with their covariance matrix.

        Args:
            combinations: k arrays like the argument of :meth:`contrast`.

        Returns:
            Their estimates, shape (k,), and their covariance, shape (k, k).

        Raises:
            ParameterError: as :meth:`contrast`; or more cells than can be computed together.
            NotAvailableError: as :meth:`contrast`.
        """
        try:
            given = [np.asarray(weights, dtype=np.float64) for weights in combinations]
        except (TypeError, ValueError, OverflowError):
            given = [np.array(math.nan)]
        shape = self.estimate.shape
        if any(w.shape != shape or not np.isfinite(w).all() for w in given):
            raise ParameterError(
                f"contrast: expected finite weights of shape {shape}, one for each cell, got "
                f"{combinations!r:.80}"
            )
        weights = np.reshape(given, (len(given), -1))
        used = np.flatnonzero(weights.any(axis=0))
        found = self.at(places_of(used, shape)).joint()
        weights = weights[:, used]
        covariance = weights @ found.covariance @ weights.T
        size = np.square(weights) @ np.diagonal(found.covariance)
        certain = np.diagonal(covariance) <= CANCELLED * size  # the rest is a rounding error
        covariance[certain] = covariance[:, certain] = 0
        return Contrasts(weights @ found.estimate, covariance)

    def difference(self, attribute: str, first: Category, second: Category) -> "ComparisonTable":
        """Return the cells of one label minus those of another, with intervals.

        Intervals of differences of counts, sums and answers are exact. For means and shares, the
        exact intervals of both are combined, to first order (Zou & Donner 2008).

        Args:
            attribute: an attribute of the table.
            first: one of its labels.
            second: the label whose cells are subtracted.

        Returns:
            A :class:`ComparisonTable` over the other attributes.

        Raises:
            ParameterError: an unknown attribute or label, or too large a table.
            NotAvailableError: as :meth:`contrast`.

        >>> import pyarrow as pa
        >>> schema = gn.Schema(
        ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 5000])]
        ... )
        >>> people = pa.table({"sex": ["F", "M"] * 5000, "pay": [2000.0, 3000.0] * 5000})
        >>> release = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.5)).release(people)
        >>> gap = release.means("pay", given="sex").difference("sex", "M", "F")
        >>> low, high = gap.confidence_interval(0.999999)
        >>> bool(low < 1000 < high)
        True
        """
        from .comparison import labels_compared  # imported here: comparisons are tables too

        return labels_compared(self, "difference", attribute, first, second)

    def ratio(self, attribute: str, first: Category, second: Category) -> "ComparisonTable":
        """Return the cells of one label divided by those of another, with intervals.

        Intervals of ratios of counts, sums and answers are exact (Fieller 1954); those of means and
        shares are to first order. Ratios of unbiased numbers are not unbiased.

        Args:
            attribute: an attribute of the table.
            first: one of its labels.
            second: the label whose cells are the divisors.

        Returns:
            A :class:`ComparisonTable` over the other attributes. If the divisor may be zero,
            intervals have no finite bound.

        Raises:
            ParameterError: an unknown attribute or label, or too large a table.
            NotAvailableError: as :meth:`contrast`.
        """
        from .comparison import labels_compared  # imported here: comparisons are tables too

        return labels_compared(self, "ratio", attribute, first, second)

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return intervals for each number alone, or for all numbers together.

        Intervals for all together are a simultaneous band, valid for all correlations (Šidák 1967).

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

        For files and remote engines, the frame is a pyarrow table. A frame holds the level of the
        intervals: pandas in ``attrs``, pyarrow in its metadata, polars in a last column ``level``.
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
        """Return all cells, sorted by estimate, the largest first or last.

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

        The picture shows dots, shares by group, the steps of a CDF with a band, a heat map, or the
        largest and smallest cells of a large table.

        Returns:
            A matplotlib Figure; save it with ``.savefig(path)``.

        Raises:
            ParameterError: the level is outside (0, 1).
        """
        from .default_plot import plot_table  # imported here: the picture also needs tables

        return plot_table(self, level)

    @property
    def closing(self) -> str:
        """The line that ``print`` and pages show below the numbers."""
        return CLOSING

    def _repr_html_(self) -> str:
        return cells_html(self, repr(self))

    def __str__(self) -> str:
        return on_screen(self.text())

    def text(self, level: float = LEVEL, title: str | None = None) -> str:
        """Return the first cells as text, with intervals of this level; ``print`` shows it.

        Args:
            level: the level of the intervals.
            title: the first line; if left out, a description of the table.
        """
        sd, interval = self.standard_deviation, self.confidence_interval(level)
        estimate = rounded(self.estimate, sd)
        ends = ends_text(self.estimate, interval, lambda x: rounded(x, sd))
        numbers = [estimate, deviations(sd), *ends]
        names = ["estimate", "± sd", "low", "high"]
        return table_text(
            title or repr(self),
            self.attributes,
            self.labels,
            names,
            numbers,
            "\n".join([self.closing_at(level), *missing_text(self.estimate, interval)]),
            private=self.private,
            headings=self.headings,
        )

    def closing_at(self, level: float) -> str:
        """Return the line below the printed numbers, for intervals of this level."""
        return self.closing.replace(level_text(LEVEL), level_text(level))


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

    @property
    def limits(self) -> tuple[float, float]:
        return 0.0, math.inf

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
    """Shares: the released count of each cell divided by the released count of its group.

    A ratio of unbiased counts is *not* unbiased, unless the denominator is exact. The intervals of
    shares are still exact (Fieller 1954), since the noise of counts is Gaussian with known
    covariance.

    Attributes:
        attributes: names, one per axis.
        labels: cell names along every axis.
        estimate: shares, shape (sizes…); NaN where a group's count is not positive.
        standard_deviation: standard deviations to first order; NaN where the estimate is NaN.
        private: False for simulations, whose numbers must not be published.
        given: names of the attributes that define the groups.
        counts: the count of every cell.
        groups: the count of every cell's group.
        variance: the variance of each count; this array and the two below broadcast to the table.
        group_variance: variance of the count of every cell's group.
        share: covariance of the cell's and the group's count, divided by ``group_variance``.
        steps: for cumulative shares, the values of the last attribute at which they are reached:
            numbers or dates, or else indices. None for other shares.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> shares = release.proportions(("sex", "age"), given="sex")
    >>> interval = shares.confidence_interval(0.95)
    >>> print(shares.labels[0], (interval.low <= np.clip(shares.estimate, 0, 1)).all())
    ('F', 'M') True
    """

    given: tuple[str, ...]
    counts: Array
    groups: Array
    variance: Array
    group_variance: Array
    share: Array
    steps: tuple[Edge, ...] | None = None

    @property
    def limits(self) -> tuple[float, float]:
        return 0.0, 1.0

    def unlimited(self, squared: float) -> ConfidenceInterval:
        covariance = self.group_variance * self.share
        parts = self.variance, covariance, self.group_variance
        ends = -math.inf, math.inf
        low, high = ratio_interval(self.counts, self.groups, *parts, squared, ends)
        return ConfidenceInterval(np.fmin(low, self.estimate), np.fmax(high, self.estimate))

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return intervals for each cell alone, or for all cells together (Šidák 1967).

        An interval contains every p for which the Gaussian interval of ``count − p·group`` contains
        zero. At the true share, this difference is Gaussian with mean zero. So if the group's count
        is clearly positive, the probability that the interval contains the share is exactly its
        level (Fieller 1954). Otherwise, the interval is [0, 1]. Intervals are cut to [0, 1], and
        contain the estimate unless noise moved it outside.

        Returns:
            ``(low, high)``, arrays shaped like ``estimate``.
        """
        squared = quantile(level, self.counts.size if simultaneous else 1) ** 2
        covariance = self.group_variance * self.share
        parts = self.variance, covariance, self.group_variance
        low, high = ratio_interval(self.counts, self.groups, *parts, squared, (0.0, 1.0))
        nearest = np.clip(self.estimate, 0.0, 1.0)
        return ConfidenceInterval(np.fmin(low, nearest), np.fmax(high, nearest))

    def __repr__(self) -> str:
        given = f" given {' × '.join(self.given)}" if self.given else ""
        return (
            f"ProportionTable({' × '.join(self.attributes) or 'total'}{given}, "
            f"{self.estimate.size} cells)"
        )
