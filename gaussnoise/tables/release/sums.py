"""Sums and means of clipped numbers, by groups."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from domains.tables.bases import AbstractBase, Base, Identity
from domains.tables.clipped import Clipped

from ...errors import GaussNoiseError, ParameterError
from ...numerics.intervals import ConfidenceInterval, quantile, ratio_interval
from ...solvers.tables.residuals import Subset
from ..planning.facts import mean_of
from ..schema.numbers import sum_weights, values_text
from .forms import CellForms, Rows
from .noisy import AbstractRelease, Names, estimate_of
from .table import AbstractEstimates
from .tidy import LEVEL

Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False, repr=False)
class SumTable(AbstractEstimates):
    """Sums of a number within groups, unbiased for clipped values.

    Values are rounded to multiples of ``(high − low) / plan.unit``, where ``plan.unit`` is usually
    2²⁰. So each record adds at most half of such a multiple to the rounding error of a sum, and on
    average much less. For sums of products, the rounding error is only a little larger. If rows
    have weights, sums are weighted.

    Attributes:
        attributes: names of the attributes that define the groups, one per axis.
        labels: labels of groups, along every axis.
        estimate: unbiased sums, shape (groups…).
        standard_deviation: standard deviation of every sum, same shape, known exactly.
        private: False for simulations, whose numbers must not be published.
        name: the number that is summed, or the product: ``"pay times hours"``.
        clip: the interval to which values are clipped, or, for a product, the interval of its
            values. If its upper bound is infinite, nothing is clipped.
        weighted: the column that rows are weighted by, or None.
        over: the units over which sums are taken, in words: rows, or persons with one number each.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", clip=[0, 100])])
    >>> release = gn.plan(schema, [("sex",), ("sex", "age")], gn.zCDP(0.1)).release(people)
    >>> sums = release.sums("age", given="sex")
    >>> print(sums.labels, sums.estimate.shape)
    (('F', 'M'),) (2,)
    """

    name: str
    clip: tuple[float, float]
    weighted: str | None
    over: str

    @property
    def limits(self) -> tuple[float, float]:
        return 0.0 if self.clip[0] >= 0 else -math.inf, math.inf

    def __repr__(self) -> str:
        what = f"SumTable({'weighted ' if self.weighted else ''}sum of {self.name} over {self.over}"
        return f"{what}, {_values(self.clip, self.attributes)}, {self.estimate.size} sums)"


@final
@dataclass(frozen=True, eq=False, repr=False)
class MeanTable(AbstractEstimates):
    """Means of a number within groups: released sums divided by released counts.

    A ratio of unbiased numbers is *not* unbiased, unless the count is exact. The intervals of means
    are still exact (Fieller 1954), since the noise of sum and count is Gaussian with known
    covariance. The intervals are for the mean of the clipped values, which is inside the clipping
    interval. Estimates are inside too: a ratio that noise moves outside is set to the nearer bound.
    If rows have weights, means are weighted.

    Attributes:
        attributes: names of the attributes that define the groups, one per axis.
        labels: labels of groups, along every axis.
        estimate: means, shape (groups…); NaN where a group's count is not positive.
        standard_deviation: standard deviations to first order; NaN where the estimate is NaN.
        private: False for simulations, whose numbers must not be published.
        name: the number whose means these are.
        clip: the interval to which values are clipped; not clipped if it is unbounded.
        weighted: the column that rows are weighted by, or None.
        over: the units over which means are taken, in words: rows, or persons with one number each.
        counts: the count of every group, without records that have no number.
        above: the sum of the values in each group, after ``ends`` are mapped to -1 and 1. The mean
            is the middle of ``ends`` plus half the distance of ``ends`` times ``above / counts``.
        variance: variance of ``above``.
        count_variance: variance of ``counts``.
        covariance: covariance of ``above`` and ``counts``.
        ends: the values that are mapped to -1 and 1; the bounds of a finite ``clip``.

    >>> import pyarrow as pa
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", clip=[0, 100])])
    >>> release = gn.plan(schema, [("sex",), ("sex", "age")], gn.zCDP(0.1)).release(people)
    >>> means = release.means("age", given="sex")
    >>> print(means.labels, means.clip)
    (('F', 'M'),) (0.0, 100.0)
    """

    name: str
    clip: tuple[float, float]
    weighted: str | None
    over: str
    counts: Array
    above: Array
    variance: Array
    count_variance: Array
    covariance: Array
    ends: tuple[float, float]

    @property
    def limits(self) -> tuple[float, float]:
        return self.clip

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Whether noise moved each mean outside the clipping interval, so that it is cut."""
        above = np.abs(self.above) if self.is_bounded else -self.above
        return (self.counts > 0) & (above > self.counts)

    @property
    def is_bounded(self) -> bool:
        """Whether the interval to which the number is clipped has a finite upper bound."""
        return self.clip[1] < math.inf

    def unlimited(self, squared: float) -> ConfidenceInterval:
        parts = self.variance, self.covariance, self.count_variance
        ends = -math.inf, math.inf
        interval = ratio_interval(self.above, self.counts, *parts, squared, ends)
        low, high = (_scaled(end, self.ends) for end in interval)
        return ConfidenceInterval(np.fmin(low, self.estimate), np.fmax(high, self.estimate))

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return intervals for each mean alone, or for all means together (Šidák 1967).

        An interval contains every m for which the Gaussian interval of ``sum − m·count`` contains
        zero. If the count is clearly positive, the probability that the interval contains the mean
        is exactly its level. Otherwise, it is the whole clipping interval. All intervals are cut to
        the clipping interval.

        Returns:
            ``(low, high)``, arrays shaped like ``estimate``.
        """
        squared = quantile(level, self.estimate.size if simultaneous else 1) ** 2
        parts = self.variance, self.covariance, self.count_variance
        limits = -1.0, 1.0 if self.is_bounded else math.inf
        interval = ratio_interval(self.above, self.counts, *parts, squared, limits)
        return ConfidenceInterval(*(np.clip(_scaled(x, self.ends), *self.clip) for x in interval))

    def __repr__(self) -> str:
        weighted = "weighted " if self.weighted else ""
        what = f"MeanTable({weighted}mean of {self.name} over {self.over}"
        return f"{what}, {_values(self.clip, self.attributes)}, {self.estimate.size} means)"


@final
@dataclass(frozen=True, eq=False, repr=False)
class SummaryTable(AbstractEstimates):
    """Counts, sums and other answers about a clipped number, with its means, along one axis.

    Attributes:
        attributes: names, one per axis.
        labels: labels of groups, and of the statistics of the number: "count", "sum", "mean", ….
        estimate: all statistics; counts and sums are unbiased.
        standard_deviation: standard deviations of all statistics; of means to first order.
        private: False for simulations, whose numbers must not be published.
        parts: the table of answers, and the table of means.
        axis: the axis along which the statistics are.
    """

    parts: tuple[AbstractEstimates, AbstractEstimates]
    axis: int

    def confidence_interval(
        self, level: float = LEVEL, simultaneous: bool = False
    ) -> ConfidenceInterval:
        """Return intervals for all statistics; those of means are computed as by MeanTable."""
        if simultaneous:  # for all numbers together, the level that each one needs
            level = level ** (1 / self.estimate.size)
        first, second = (part.confidence_interval(level) for part in self.parts)
        ends = [
            np.concatenate([a, np.expand_dims(b, self.axis)], self.axis)
            for a, b in zip(first, second, strict=True)
        ]
        return ConfidenceInterval(*ends)

    def __repr__(self) -> str:
        return f"SummaryTable({' × '.join(self.attributes)}, {self.estimate.size} numbers)"


def _values(clip: tuple[float, float], groups: Sequence[str]) -> str:
    given = f" given {' × '.join(groups)}" if groups else ""
    return f"of {values_text(clip)}{given}"


def _scaled(ratio: Array, ends: tuple[float, float]) -> Array:
    """Return ratios mapped linearly from [-1, 1] to the interval ``ends``."""
    low, high = ends
    return (low / 2 + high / 2) + (high - low) / 2 * ratio


def sums(release: AbstractRelease, name: Names, given: Names = ()) -> SumTable:
    """Return sums of a clipped number, or of the product of several, within groups.

    Args:
        release: the release that is asked.
        name: an attribute with ``clip`` or ``unit``, or several with ``clip``: ``("pay", "hours")``
            for the sums of pay times hours, over the records that have both.
        given: attributes that define the groups; none for all records.

    Returns:
        A :class:`SumTable`, one axis for each group attribute: unbiased for clipped values, with
        exact standard deviations.

    Raises:
        ParameterError: unknown attributes, no clipped number, or a table that was not released.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 5000])])
    >>> people = pa.table({"sex": ["F", "M"] * 5000, "pay": [2000.0, 9000.0] * 5000})
    >>> release = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.5)).release(people)
    >>> release.sums("pay", given="sex").estimate.round(-6).tolist()
    [10000000.0, 25000000.0]
    """
    names = tuple(name) if isinstance(name, list | tuple) else (name,)
    numbers, group, S = _asked(release, "sums", names, given)
    rows = {i: sum_weights(_clipped(release, i))[None] for i in numbers}
    estimate, variance = (
        values.reshape(values.shape[len(rows) :]) for values in _rows(release, rows, group, S)
    )
    estimate.flags.writeable = variance.flags.writeable = False
    return SumTable(
        **_described(release, numbers, group),
        estimate=estimate,
        standard_deviation=np.sqrt(variance),
        forms=CellForms(release, _forms(release, {i: row[0] for i, row in rows.items()}, group)),
    )


def means(release: AbstractRelease, name: str, given: Names = ()) -> MeanTable:
    """Return means of a clipped number within groups: released sums over released counts.

    Records without a number, for which the schema may have a catch-all, are neither in the sums nor
    in the counts.

    Args:
        release: the release that is asked.
        name: an attribute with ``clip`` or ``unit``.
        given: attributes that define the groups; none for all records.

    Returns:
        A :class:`MeanTable`, one axis for each group attribute; its intervals are exact.

    Raises:
        ParameterError: unknown attributes, no clipped number, or a table that was not released.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("pay", clip=[0, 5000])])
    >>> people = pa.table({"pay": [2000.0, 9000.0] * 50000})
    >>> release = gn.plan(schema, ["pay"], gn.zCDP(0.5)).release(people)
    >>> means = release.means("pay")
    >>> low, high = means.confidence_interval(0.999999)
    >>> bool(low < 3500 < high), bool(high - low < 5)
    (True, True)
    """
    (i,), group, S = _asked(release, "means", (name,), given)
    base = _clipped(release, i)
    t = np.array([0.0, 0.5, 1.0] if base.squares else [0.0, 1.0])
    rows = np.zeros((4, base.size))
    # weights at the upper bound, and at the lower (a middle cell: half each); their sum, difference
    rows[:, : len(t)] = t, 1 - t, np.ones_like(t), 2 * t - 1
    (_, _, counts, above), (upper, lower, count_variance, variance) = _rows(
        release, {i: rows}, group, S
    )
    if release.public_rows is not None and not group and not base.other:
        counts = np.asarray(release.public_rows)
    covariance = np.where(count_variance > 0, upper - lower, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(counts > 0, above / counts, np.nan)
        squared = variance - 2 * ratio * covariance + ratio**2 * count_variance
        deviation = np.sqrt(np.maximum(squared, 0.0)) / counts
    return MeanTable(
        **_described(release, (i,), group),
        estimate=np.clip(
            _scaled(ratio, (base.low, base.high)), *release.plan.schema.attributes[i].interval
        ),
        ends=(base.low, base.high),
        standard_deviation=(base.high - base.low) / 2 * deviation,
        counts=counts,
        above=above,
        variance=variance,
        count_variance=count_variance,
        covariance=covariance,
        forms=CellForms(
            release,
            _forms(release, {i: rows[3]}, group),
            _forms(release, {i: rows[2]}, group),
            base.low / 2 + base.high / 2,
            (base.high - base.low) / 2,
        ),
    )


def summed_in(term: Sequence[tuple[int, AbstractBase]]) -> int | None:
    """Return the index of the clipped number whose mean follows from the answers to an entry.

    None is returned if there is no such number, or several.
    """
    numbers = summed_numbers(term)
    return numbers[0] if len(numbers) == 1 else None


def summed_numbers(term: Sequence[tuple[int, AbstractBase]]) -> list[int]:
    """Return the indices of the clipped numbers whose means follow from the answers to an entry.

    The entry must ask for their counts and sums in each group.
    """
    numbers = [i for i, base in term if isinstance(base, Clipped) and {0, 1} <= set(base.degrees)]
    grouped = all(base.is_identity for i, base in term if i not in numbers)
    return numbers if grouped else []


def with_means(
    release: AbstractRelease, term: Sequence[tuple[int, AbstractBase]]
) -> AbstractEstimates:
    """Return the answers to an entry of the workload, and the means that follow from them."""
    schema = release.plan.schema
    answers = release.answers({schema.names[i]: base for i, base in term})
    i = summed_in(term)
    if i is None:
        return answers
    axis = [k for k, _ in term].index(i)
    own = means(release, schema.names[i], tuple(schema.names[k] for k, _ in term if k != i))

    def along(a: Array, b: Array) -> Array:
        return np.concatenate([a, np.expand_dims(b, axis)], axis)

    labels = list(answers.labels)
    labels[axis] = (*labels[axis], "mean")
    return SummaryTable(
        attributes=answers.attributes,
        labels=tuple(labels),
        estimate=along(answers.estimate, own.estimate),
        standard_deviation=along(answers.standard_deviation, own.standard_deviation),
        private=release.private,
        backend=release.backend,
        parts=(answers, own),
        axis=axis,
    )


def check_no_number(release: AbstractRelease, function: str, names: Names) -> None:
    """Raise ParameterError if some of the names are clipped numbers, which have no categories."""
    schema = release.plan.schema
    for i in release.plan.subset((names,) if isinstance(names, str) else names):
        if schema.attributes[i].is_summed:
            raise ParameterError(
                f"{function}: expected categories or bins, got the clipped number "
                f"{schema.names[i]!r}; hint: sums({schema.names[i]!r}, given=...) and means"
            )


def clipped_number(release: AbstractRelease, function: str, name: object) -> tuple[int, Clipped]:
    """Return (attribute index, queries) of a clipped number.

    Names of other attributes raise ParameterError.
    """
    plan = release.plan
    if not isinstance(name, str):
        raise ParameterError(f"{function}: expected the name of a clipped number, got {name!r:.80}")
    (i,) = plan.subset((name,))
    if not plan.schema.attributes[i].is_summed:
        raise ParameterError(
            f"{function}: expected a clipped number, got {name!r}; hint: "
            f"Attribute({name!r}, clip=[low, high]) in the schema"
        )
    return i, _clipped(release, i)


def _asked(
    release: AbstractRelease, function: str, names: tuple[object, ...], given: Names
) -> tuple[Subset, Subset, Subset]:
    """Return attribute indices: those of numbers, those of groups, and all of these, sorted."""
    numbers = tuple([clipped_number(release, function, name)[0] for name in names])
    if not numbers or len(set(numbers)) < len(numbers):
        raise ParameterError(
            f"{function}: expected different clipped numbers, got {names!r:.80}; hint: squares are "
            'answers to base={"kind": "moments", "degrees": [0, 1, 2]} of the attribute'
        )
    check_no_number(release, f"{function}: given", given)
    group = release.plan.subset((given,) if isinstance(given, str) else given)
    return numbers, group, tuple(sorted((*numbers, *group)))


def _clipped(release: AbstractRelease, i: int) -> Clipped:
    base = release.plan.schema.attributes[i].base
    if not isinstance(base, Clipped):
        raise GaussNoiseError("sums: expected a clipped number to be asked for its sums")
    return base


def _described(release: AbstractRelease, numbers: Subset, group: Subset) -> dict:
    """Return the arguments for a table of sums of a number, or of the product of several."""
    schema, weight = release.plan.schema, release.plan.weight
    ends = schema.attributes[numbers[0]].interval
    for i in numbers[1:]:
        corners = [x * y for x in ends for y in schema.attributes[i].interval]
        ends = min(corners), max(corners)
    names = [schema.names[i] for i in numbers]
    return {
        "name": " times ".join(names),
        "clip": ends,
        "weighted": None if weight is None else weight.column,
        "over": " and ".join(dict.fromkeys(mean_of(release.plan, name) for name in names)),
        "attributes": tuple(schema.names[k] for k in group),
        "labels": tuple(schema.attributes[k].labels for k in group),
        "private": release.private,
        "backend": release.backend,
    }


def _forms(release: AbstractRelease, rows: Mapping[int, Array], group: Subset) -> dict[str, Rows]:
    """Return {attribute: queries} that add up the weighted cells of numbers in each group."""
    schema = release.plan.schema
    own = {schema.names[k]: Rows(Identity(schema.sizes[k]), axis) for axis, k in enumerate(group)}
    return own | {schema.names[i]: Rows(Base(row[None]), None) for i, row in rows.items()}


def number_rows(
    release: AbstractRelease, name: str, given: tuple[str, ...], rows: Array
) -> tuple[Array, Array]:
    """Return the estimates and variances of weighted sums of a clipped number's cells, by group.

    Both have the shape (number of weighted sums, groups…).

    Args:
        release: the release.
        name: a clipped number.
        given: attributes that define the groups.
        rows: the weight of each cell of the number in each sum, shape (number of weighted sums,
            cells without the catch-all).
    """
    (i,), group, S = _asked(release, "means", (name,), given)
    weights = np.zeros((len(rows), _clipped(release, i).size))
    weights[:, : rows.shape[1]] = rows
    return _rows(release, {i: weights}, group, S)


def _rows(
    release: AbstractRelease, rows: Mapping[int, Array], group: Subset, S: Subset
) -> tuple[Array, Array]:
    """Return estimates and variances of weighted sums of clipped numbers' cells, by group."""
    # rows: for each number, weights of its cells, (rows, cells); S: all attributes, sorted
    names, sizes = release.plan.schema.names, release.plan.schema.sizes
    _, _, cells = estimate_of(release, tuple(names[k] for k in S))
    bases = {i: Base(own) for i, own in rows.items()}
    for i, base in bases.items():
        cells = base.answer(cells, S.index(i))
    variance = release.covariance.term_variance(
        tuple((k, bases[k] if k in bases else Identity(sizes[k])) for k in S)
    )
    # an axis of weighted sums for each number, and then the axes of groups
    order = [S.index(k) for k in (*rows, *group)]
    estimate, variance = (
        np.ascontiguousarray(values.transpose(order)) for values in (cells, variance)
    )
    estimate.flags.writeable = variance.flags.writeable = False
    return estimate, variance
