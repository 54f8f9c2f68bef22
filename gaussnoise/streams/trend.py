"""Trends over time: slopes fitted by generalised least squares, and tests for change."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

import numpy as np
import scipy
from numpy.typing import NDArray

from ..tables.release.forms import Function, Place, side_by_side
from ..tables.release.noisy import read_only
from ..tables.release.show import deviations, ends_text, first, pvalue_text, rounded, table_text
from ..tables.release.table import AbstractEstimates
from ..tables.release.tidy import LEVEL, level_text

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[np.float64]

_CERTAIN = 1e-9  # relative change below which numbers without noise count as equal, up to rounding


@final
@dataclass(frozen=True, eq=False, repr=False)
class TrendTable(AbstractEstimates):
    """The slope per tick of every cell, and a test of the hypothesis that the cell is constant.

    Let K be the covariance of the noise between ticks, and y the estimates. The rows of X are ``(1,
    tick)``. The line is fitted by generalised least squares: its coefficients are
    ``(XᵀK⁻¹X)⁻¹XᵀK⁻¹y``. The slope is an unbiased estimate of the slope of the same fit to the true
    numbers, even if these are not on a line. The statistic is the least ``(y − m)ᵀK⁻¹(y − m)`` over
    all constants m. If the true number is the same in all n ticks, the statistic is χ² distributed
    with n − 1 degrees of freedom. Otherwise, it tends to be larger.

    Slopes and tests are about the rows that were counted, not about a population. They are exact
    for counts, sums and answers, up to the fine lattice of the Gaussian noise, and first-order
    approximations for means and shares.

    Attributes:
        attributes: names of the table's attributes.
        labels: the labels of cells along every axis.
        estimate: the slope per tick, shape (sizes…).
        standard_deviation: the standard deviation of every slope, same shape.
        private: False for simulations, whose numbers must not be published.
        statistic: the χ² statistic of the test, same shape; NaN if a tick has no estimate.
        degrees: the degrees of freedom of the χ² distribution.
        weights: the weight of each tick in a slope, shape (ticks, sizes…).
        series: the series that was fitted.

    Source: Aitken (1936), "On least squares and linear combinations of observations".

    >>> import numpy as np, pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(12))
    >>> days = [pa.table({"sex": ["F"] * (400 + 20 * t) + ["M"] * 400}) for t in range(12)]
    >>> trend = plan.simulate(days, np.random.default_rng(1)).series("sex").trend()
    >>> low, high = trend.confidence_interval(0.999999)
    >>> ((low < [20, 0]) & ([20, 0] < high)).tolist(), (trend.pvalue < 1e-9).tolist()
    ([True, True], [True, False])
    """

    statistic: Array
    degrees: int
    weights: Array = field(repr=False)
    series: AbstractEstimates = field(repr=False)

    @property
    def pvalue(self) -> Array:
        """Each cell's p-value for the hypothesis that it is constant, shape (sizes…)."""
        return scipy.special.chdtrc(self.degrees, self.statistic)

    @property
    def headings(self) -> tuple[str, ...]:
        return self.series.headings[1:]

    @property
    def is_linear(self) -> bool:
        return self.series.is_linear

    @property
    def closing(self) -> str:
        how = "" if self.is_linear else "; to first order"
        return (
            "slope per tick ± one standard deviation; low and high: "
            f"{level_text(LEVEL)} intervals\n"
            f"χ², p: test of no change, {self.degrees} degrees of freedom; each cell for itself"
            f"{how}\nA small p says that the counted rows changed; it says nothing of a population."
        )

    def part(self, axis: int, k: int) -> "TrendTable":
        series = self.series.part(axis + 1, k)
        return replace(
            self,
            attributes=series.attributes[1:],
            labels=series.labels[1:],
            estimate=np.take(self.estimate, k, axis),
            standard_deviation=np.take(self.standard_deviation, k, axis),
            statistic=np.take(self.statistic, k, axis),
            weights=np.take(self.weights, k, axis + 1),
            series=series,
        )

    def at(self, places: Sequence[Place]) -> Function:
        functions = []
        for place in places:
            weights = self.weights[(slice(None), *place)]
            ticks = self.series.at([(k, *place) for k in range(len(weights))])
            functions.append(ticks.then(lambda x, w=weights: (w @ x[:, None], w[None, :])))
        return side_by_side(*functions)

    def to_arrow(self, level: float = LEVEL) -> "pa.Table":
        """Return the table as a pyarrow table, with columns ``statistic`` and ``pvalue``."""
        import pyarrow as pa

        rows = super().to_arrow(level)
        for name, values in (("statistic", self.statistic), ("pvalue", self.pvalue)):
            rows = rows.append_column(name, pa.array(values.reshape(-1)))
        return rows

    def __repr__(self) -> str:
        return f"TrendTable(of {self.series!r})"

    def text(self, level: float = LEVEL, title: str | None = None) -> str:
        deviation, ends = self.standard_deviation, self.confidence_interval(level)
        slope = rounded(self.estimate, deviation)
        low, high = ends_text(self.estimate, ends, lambda x: rounded(x, deviation))
        pvalues = np.ravel(self.pvalue)[: len(first(self.estimate, 1))]
        columns = {
            "slope": slope,
            "± sd": deviations(deviation, 3),
            "low": low,
            "high": high,
            "χ²": first(self.statistic, 4),
            "p": [pvalue_text(p).removeprefix("= ") for p in pvalues],
        }
        return table_text(
            title or repr(self),
            self.attributes,
            self.labels,
            list(columns),
            list(columns.values()),
            self.closing_at(level),
            private=self.private,
            headings=self.headings,
        )


def trend_of(series: AbstractEstimates, between: Array | None) -> TrendTable:
    """Return the slopes of a series of single ticks, and the tests whether its cells are constant.

    Args:
        series: a table whose first axis is the tick.
        between: the covariance of a cell between ticks, the same for all cells up to a factor; None
            for shares and means, whose covariance is computed for each cell.
    """
    ticks, *shape = series.estimate.shape
    y = series.estimate.reshape(ticks, -1)
    sd = series.standard_deviation.reshape(ticks, -1)
    times = np.array(series.labels[0], dtype=np.float64)
    if between is not None:
        covariance, variance = between / between[0, 0], np.square(sd[0])
        own, statistic = fitted(covariance, times, y)
        slopes, deviation = own @ y, sd[0] * np.sqrt(own @ covariance @ own)
        weights = np.repeat(own[:, None], y.shape[1], axis=1)
        changed = np.ptp(y, axis=0) > _CERTAIN * np.abs(y).max(axis=0, initial=0)
        certain = np.where(changed, np.inf, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.where(variance > 0, statistic / variance, certain)
    else:
        cells = np.ndindex(*shape)
        found = [_of_ratios(series, times, y[:, k], cell) for k, cell in enumerate(cells)]
        slopes, deviation, statistic = np.array([own for *own, _ in found]).reshape(-1, 3).T
        weights = np.stack([own for *_, own in found], axis=1)
    slopes, deviation, statistic = (v.reshape(shape) for v in (slopes, deviation, statistic))
    return TrendTable(
        attributes=series.attributes[1:],
        labels=series.labels[1:],
        estimate=read_only(slopes),
        standard_deviation=read_only(deviation),
        private=series.private,
        backend=series.backend,
        statistic=read_only(statistic),
        degrees=ticks - 1,
        weights=read_only(weights.reshape(ticks, *shape)),
        series=series,
    )


def fitted(covariance: Array, times: Array, y: Array) -> tuple[Array, Array]:
    """Return the weight of each tick in a slope, and the χ² statistic of every column of y.

    Raises:
        LinAlgError: the covariance is singular.
    """
    root = scipy.linalg.cholesky(covariance, lower=True)

    def white(values: Array) -> Array:
        return scipy.linalg.solve_triangular(root, values, lower=True)

    one, time, seen = white(np.ones(len(y))), white(times - times.mean()), white(y)
    time -= one * (one @ time) / (one @ one)
    weights = scipy.linalg.solve_triangular(root, time, lower=True, trans="T") / (time @ time)
    left = seen - np.outer(one, one @ seen) / (one @ one)
    return weights, np.square(left).sum(axis=0)


def _of_ratios(
    series: AbstractEstimates, times: Array, y: Array, cell: Place
) -> tuple[float, float, float, Array]:
    """Return the slope, standard deviation, χ² statistic and tick weights of a cell of ratios."""
    unknown = np.full(len(y), np.nan)
    if np.isnan(y).any():
        return np.nan, np.nan, np.nan, unknown
    covariance = series.at([(k, *cell) for k in range(len(y))]).joint().covariance
    try:
        weights, statistic = fitted(covariance, times, y[:, None])
    except np.linalg.LinAlgError:
        return np.nan, np.nan, np.nan, unknown
    deviation = math.sqrt(weights @ covariance @ weights)
    return float(weights @ y), deviation, float(statistic[0]), weights
