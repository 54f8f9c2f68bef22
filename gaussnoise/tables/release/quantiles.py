"""Quantiles computed from noisy cumulative counts.

Quantiles are biased, since counts are first made to increase. Their intervals invert exact tests.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from domains.tables.bases import AbstractBase, Base, Identity

from ...errors import ParameterError
from ...layout import on_screen
from ...numerics.intervals import ConfidenceInterval, quantile
from ..schema.bases import as_base
from ..schema.dates import Edge, is_dated, place, shown_places
from ..schema.schema import Attribute, Category
from .noisy import AbstractRelease, Names
from .show import ends_text, first, table_text
from .sums import check_no_number
from .tidy import LEVEL, arrow_columns, framed, level_text, with_level

if TYPE_CHECKING:
    import pyarrow as pa
    from narwhals.typing import EagerAllowed

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class QuantileTable:
    """Quantiles of a numeric attribute within groups: biased, with intervals of valid coverage.

    A quantile at p is in a bin only under two conditions: the rows below the bin are at most the
    share p of all rows, and the rows below the upper edge of the bin are at least that share. Each
    condition is tested at half the error probability. Let x be the edge in a condition. The test
    uses ``(rows below x) - p (all rows)``. This difference has Gaussian noise of known deviation,
    and under the condition, its mean has a known sign. The interval runs from the first bin that is
    not rejected to the last one. The interval covers the quantile of the counted rows at least as
    often as its level says, for any distribution of the rows. It does not show where in a bin rows
    are.

    Attributes:
        attributes: names of the groups' attributes, then ``"NAME quantile"``.
        labels: labels of the groups, then probabilities.
        estimate: quantiles in the attribute's unit, shape (groups…, probabilities): numbers, or
            dates, which are NaT where numbers would not be finite.
        method: how they are computed, in words.
        private: False for simulations, whose numbers must not be published.
        bins: the range of each cell of the attribute.
        differences: ``(rows below x) - p (all rows)`` at the inner edges x of bins, shape (groups…,
            edges, probabilities).
        deviations: their standard deviations, same shape.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])]
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> quartiles = release.quantiles("age", [0.25, 0.5, 0.75])
    >>> print(quartiles.labels[-1], (quartiles.low <= quartiles.high).all())
    ('0.25', '0.5', '0.75') True
    """

    attributes: tuple[str, ...]
    labels: tuple[tuple[Category, ...], ...]
    estimate: NDArray[Any]
    method: str
    private: bool
    backend: "EagerAllowed" = field(repr=False)
    bins: "Support"
    differences: Array
    deviations: Array

    @property
    def low(self) -> NDArray[Any]:
        """Lower bounds of 95 % intervals for each quantile alone, shaped like ``estimate``."""
        return self.confidence_interval().low

    @property
    def high(self) -> NDArray[Any]:
        """Upper bounds of 95 % intervals for each quantile alone, shaped like ``estimate``."""
        return self.confidence_interval().high

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return intervals for every quantile, each alone or all together (Bonferroni).

        An interval always contains the estimate. Its bounds are edges of bins, or the estimate
        itself. A bound is infinite (NaT for dates) if a bin with an infinite edge cannot be
        excluded.

        Returns:
            ``(low, high)``, arrays shaped like ``estimate``.

        Raises:
            ParameterError: the level is outside (0, 1).
        """
        quantile(level)  # refuses a level outside (0, 1)
        z = quantile(1 - (1 - level) / self.estimate.size) if simultaneous else quantile(level)
        reach = z * self.deviations
        held = np.moveaxis(self.differences <= reach, -2, -1)
        reached = np.moveaxis(self.differences >= -reach, -2, -1)
        whole = np.ones((*held.shape[:-1], 1), dtype=bool)  # all rows are within the outer edges
        possible = np.concatenate([whole, held], -1) & np.concatenate([reached, whole], -1)
        low = self.bins.low[possible.argmax(-1)]
        high = self.bins.high[::-1][possible[..., ::-1].argmax(-1)]
        places = self.bins.numbers(self.estimate)
        ends = np.fmin(low, places), np.fmax(high, places)
        return ConfidenceInterval(*map(self.bins.shown, ends))

    def columns(self, level: float = LEVEL) -> dict[str, list]:
        """Return tidy columns, one row per quantile: attributes, biased_estimate, low, high."""
        return self._arrow(level).to_pydict()

    def to_frame(self, level: float = LEVEL) -> Any:
        """Return :meth:`columns` as a dataframe of the library that the records came in.

        For files and remote engines, the frame is a pyarrow table. It holds the level of the
        intervals, as frames of tables do.
        """
        return framed(with_level(self._arrow(level), level, self.private), self.backend)

    def _arrow(self, level: float) -> "pa.Table":
        low, high = self.confidence_interval(level)
        numbers = {"biased_estimate": self.estimate, "low": low, "high": high}
        return arrow_columns(self.attributes, self.labels, slice(0, self.estimate.size), numbers)

    def __str__(self) -> str:
        closing = (
            f"biased; low and high: {level_text(LEVEL)} intervals, for every number by itself, "
            "which cover at least that often"
        )
        write = partial(first, digits=8)
        ends = ends_text(self.estimate, self.confidence_interval(), write)
        columns = [write(self.estimate), *ends]
        names = ["biased estimate", "low", "high"]
        said = table_text(
            repr(self), self.attributes, self.labels, names, columns, closing, private=self.private
        )
        return on_screen(said)

    def __repr__(self) -> str:
        name = " × ".join(self.attributes)
        return f"QuantileTable({name}, {self.estimate.size} quantiles, biased: {self.method})"


class Support(NamedTuple):
    """The lowest and highest value of each cell of a numeric attribute.

    Values in a cell are taken as evenly spread from ``low`` to ``high`` if ``interpolate``. For
    dates, ``edges`` are the edges of the attribute.
    """

    low: Array
    high: Array
    interpolate: bool
    edges: tuple[Edge, ...] = ()

    def shown(self, places: Array) -> NDArray[Any]:
        """Return numbers converted to the type of the attribute: numbers, days or timestamps."""
        return shown_places(places, self.edges)

    def numbers(self, shown: NDArray[Any]) -> Array:
        """Return numbers, days or timestamps as plain numbers, the inverse of :meth:`shown`."""
        if not is_dated(self.edges):
            return shown
        numbers = shown.astype("datetime64[us]").astype(np.int64).astype(np.float64)
        return np.where(np.isnat(shown), np.nan, numbers)


def support(attribute: Attribute) -> Support:
    """Return the lowest and highest value of each cell of a numeric attribute.

    The catch-all category (the category for all other values) is left out.
    """
    if attribute.edges is not None:
        ends = np.array([place(edge) for edge in attribute.edges], dtype=np.float64)
        return Support(ends[:-1], ends[1:], True, attribute.edges)
    categories = attribute.categories or ()
    numbers = [c for c in categories if isinstance(c, int) and not isinstance(c, bool)]
    if len(numbers) < len(categories) or any(a >= b for a, b in itertools.pairwise(numbers)):
        raise ParameterError(
            "quantiles: expected edges, or increasing integer categories, for "
            f"{attribute.name!r}; hint: cdf()"
        )
    values = np.array(numbers, dtype=np.float64)
    return Support(values, values, False)


def quantiles(
    release: AbstractRelease, name: str, probabilities: Sequence[float], *, given: Names = ()
) -> QuantileTable:
    """Return quantiles of a numeric attribute within groups, with intervals: BIASED.

    Quantiles are computed from the attribute's cumulative counts. These counts are first made to
    increase (isotonic regression), and then interpolated linearly inside bins. For integer
    categories, the quantile is the first category whose cumulative share reaches the probability.
    The catch-all is left out.

    Args:
        release: the release that is asked.
        name: an attribute with edges (numbers or dates), or with increasing integer categories.
        probabilities: each in [0, 1].
        given: attributes that define the groups; none for all records.

    Returns:
        A :class:`QuantileTable`, axes of ``given`` first. Its numbers are in the attribute's unit.
        A number is infinite in a bin with an infinite edge, and NaN if the 95 % interval of the
        group's count contains 0. Dates are NaT in both cases. ``low`` and ``high`` are the bounds
        of intervals that cover at least as often as their level says.

    Raises:
        ParameterError: unknown or unordered attributes, a table that was not released, bad
            probabilities.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("age", edges=[0, 20, 40, 60, 80])])
    >>> people = pa.table({"age": list(range(80)) * 1000})
    >>> release = gn.plan(schema, [{"age": "prefix"}], gn.zCDP(0.1)).release(people)
    >>> found = release.quantiles("age", [0.5, 0.9])
    >>> found.estimate.round(0).tolist()
    [40.0, 72.0]
    >>> found.low.tolist()[1], found.high.tolist()[1]  # the bin that holds it
    (60.0, 80.0)
    """
    group = release.plan.subset((given,) if isinstance(given, str) else given)
    (i,) = release.plan.subset((name,))
    check_no_number(release, "quantiles", (name,))
    if i in group:
        raise ParameterError(
            f"quantiles: expected groups by other attributes than {name!r}, got given={given!r}"
        )
    attributes = [release.plan.schema.attributes[k] for k in group]
    groups = {a.name: Identity(a.size) for a in attributes}
    marks = quantiles_of(release, release.plan.schema.attributes[i], probabilities, groups)
    return replace(marks, labels=(*(a.labels for a in attributes), marks.labels[-1]))


def quantiles_of(
    release: AbstractRelease,
    attribute: Attribute,
    probabilities: Sequence[float],
    groups: Mapping[str, AbstractBase],
) -> QuantileTable:
    """Return quantiles of an attribute within groups, with intervals.

    ``groups`` has a base for each other attribute: one row per group, with ones for its cells.
    """
    bins, wanted = support(attribute), probabilities_of(probabilities)
    counts = release.answers({**groups, attribute.name: as_base("prefix", attribute)})
    below = as_base("prefix", attribute).toarray()
    shape = (*counts.estimate.shape[:-1], len(below) - 1, len(wanted))
    differences, deviations = np.zeros((2, *shape))
    for k, p in enumerate(wanted if len(below) > 1 else ()):
        test = release.answers({**groups, attribute.name: Base(below[:-1] - p * below[-1:])})
        differences[..., k], deviations[..., k] = test.estimate, test.standard_deviation
    total, sd = counts.estimate[..., -1:], counts.standard_deviation[..., -1:]
    known = np.where(total > quantile(LEVEL) * sd, counts.estimate, 0.0)
    estimate = bins.shown(interpolated(known, bins, wanted))
    estimate.flags.writeable = False
    inside = (
        "linear interpolation inside bins"
        if bins.interpolate
        else "the first category that reaches"
    )
    return QuantileTable(
        (*groups, f"{attribute.name} quantile"),
        (*counts.labels[:-1], tuple(map(str, wanted))),
        estimate,
        f"isotonic regression of the cumulative counts, then {inside}",
        counts.private,
        counts.backend,
        bins,
        differences,
        deviations,
    )


def steps_of(attribute: Attribute) -> tuple[Edge, ...]:
    """Return the values of an attribute at which its cumulative counts grow.

    These values are the upper edges of bins, the numbers, or the indices of ordered categories.
    """
    if attribute.edges is not None:
        return attribute.edges[1:]
    try:
        return tuple(support(attribute).high.tolist())
    except ParameterError:
        return tuple(map(float, range(len(attribute.categories or ()))))


def probabilities_of(values: Sequence[float]) -> list[float]:
    """Return the probabilities as a list of floats in [0, 1], or raise ParameterError."""
    try:
        listed = [math.nan] if isinstance(values, set | frozenset) else [float(p) for p in values]
    except (TypeError, ValueError, OverflowError):
        listed = [math.nan]
    if not listed or not all(0 <= p <= 1 for p in listed):
        raise ParameterError(
            f"quantiles: expected a list of probabilities in [0, 1], got {values!r:.60}"
        )
    return listed


def interpolated(cumulative: Array, ends: Support, probabilities: Sequence[float]) -> Array:
    """Return quantiles along the last axis of cumulative counts.

    Shape (…, cells) becomes (…, probabilities).

    >>> bins = Support(np.array([0.0, 10.0]), np.array([10.0, 20.0]), True)
    >>> interpolated(np.array([30.0, 40.0]), bins, [0.375, 0.875])
    array([ 5., 15.])
    """
    from scipy.optimize import isotonic_regression

    quantiles = np.full((*cumulative.shape[:-1], len(probabilities)), np.nan)
    for group in np.ndindex(cumulative.shape[:-1]):
        reached = np.maximum(isotonic_regression(cumulative[group]).x, 0.0)
        before = np.concatenate([[0.0], reached[:-1]])
        if not reached[-1] > 0:
            continue
        for k, p in enumerate(probabilities):
            goal = p * reached[-1]
            # only bins with rows; at p = 0 the first of them
            cell = int(np.argmax((reached >= goal) & (reached > before)))
            low, high = ends.low[cell], ends.high[cell]
            if not ends.interpolate or math.isinf(high) or math.isinf(low):
                quantiles[*group, k] = high if math.isinf(high) else low
            else:
                quantiles[*group, k] = low + (high - low) * (goal - before[cell]) / (
                    reached[cell] - before[cell]
                )
    return quantiles
