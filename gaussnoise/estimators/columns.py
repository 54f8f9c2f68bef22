"""Means of a table's numeric columns, by group, with no known bounds on the numbers."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import NotAvailableError, ParameterError
from ..files.saved import AbstractLoaded
from ..numerics.rounding import rounded_down
from ..privacy.budget import Budget
from ..privacy.guarantee import AbstractPrivacy
from ..privacy.ledger import Ledger, ledger_and_id
from ..records import check_on_outside
from ..text import disclaimers, guarantee_text, versions
from .knowledge import LARGEST, moment_order, number, positive, shown
from .ranges import (
    QUESTIONS,
    SHARES,
    Counts,
    Ends,
    Neighbors,
    NoRangeError,
    Range,
    check_questions,
    find_range,
)
from .steps import lattice_query
from .stored import fields, group_of, guarantee_record, real, text, texts

if TYPE_CHECKING:
    from ..tables.schema.schema import Attribute, OnOutside
    from .numbers import Numbers

Array = NDArray[np.float64]

_SHARES = SHARES | {"means": 0.4}
_FAILURES = 0.05  # part of 1 − level that is left for errors of the range
_EVENTS = 7  # the noise of the count and of two checks of two ends, and the sample at both ends
_GRID = 26  # bits of a clipped number, of which a sum of 2³⁶ fits into 64 bits
_MOST_GROUPS = 10_000
_CHANGE = {"add-remove": "more or less", "replace": "replaced by any other"}
_SUMS = {"add-remove": 3, "replace": 6}  # squared change of the sums of 1, u and u²


@final
@dataclass(frozen=True)
class ColumnMean:
    """The mean of one column in one group, with the parts of its interval.

    Attributes:
        column: name of the column.
        group: category of each grouping column, by name.
        mean: the estimate; NaN where there is none.
        count: noisy number of rows with a number in this column; of all groups together, if no
            range was found.
        low: lower end of the interval.
        high: upper end.
        noise: half-width due to noise.
        sampling: half-width due to sampling; squares of both add up.
        bias: bound on the bias of clipping, and on all rounding.
        clipped: the range to which numbers were clipped.
        assumed: the assumption under which the bias is bounded; empty if there is none.
        searched: the share of the column's budget that was spent to find the range.
        reason: why there is no mean, and what would help; empty if there is one.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": np.linspace(20, 60, 5000)})
    >>> [mean] = gn.estimators.column_means(table, ["age"], gn.zCDP(1.0)).means
    >>> print(mean.column, mean.low < mean.mean < mean.high)
    age True
    """

    column: str
    group: Mapping[str, object]
    mean: float
    count: float
    low: float
    high: float
    noise: float
    sampling: float
    bias: float
    clipped: tuple[float, float]
    assumed: str
    searched: float
    reason: str = ""


@final
@dataclass(frozen=True, eq=False)
class ColumnMeans(AbstractLoaded):
    """Means of columns by group. Everything in it is safe to publish.

    Attributes:
        means: one for each column and group.
        mean_of: the units whose mean it is, in words: rows, or persons with one number each.
        level: confidence level of the intervals.
        split: the budget of every step for each column.
        privacy: a record of the privacy guarantee.

    >>> import pyarrow as pa
    >>> table = pa.table({"age": np.linspace(20, 60, 5000), "sex": ["F", "M"] * 2500})
    >>> found = gn.estimators.column_means(table, ["age"], gn.zCDP(1.0), by={"sex": ["F", "M"]})
    >>> [mean.group for mean in found.means]
    [{'sex': 'F'}, {'sex': 'M'}]
    """

    means: tuple[ColumnMean, ...]
    mean_of: str
    level: float
    split: Mapping[str, str]
    privacy: Mapping[str, object]

    _format = "gaussnoise.column_means/2"

    def __str__(self) -> str:
        names = list(self.means[0].group) if self.means else []
        rows = [["column", *names, "mean", "low", "high", "noise", "sampling", "clipping"]]
        rows[0].append(self.mean_of.partition(" ")[0])
        for mean in self.means:
            numbers = (mean.noise, mean.sampling, mean.bias)
            half = (mean.high - mean.low) / 2
            places = max(2 - math.floor(math.log10(half)), 0) if 0 < half < math.inf else 0
            rows.append(
                [
                    mean.column,
                    *(str(mean.group[name]) for name in names),
                    *(f"{x:.{places}f}" for x in (mean.mean, mean.low, mean.high)),
                    *(f"±{x:.3g}" for x in numbers),
                    f"{mean.count:.0f}",
                ]
            )
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        left = 1 + len(names)
        lines = [
            "  ".join(
                cell.ljust(width) if k < left else cell.rjust(width)
                for k, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        spent = "; ".join(f"{step} {part}" for step, part in self.split.items())
        notes = dict.fromkeys(note for mean in self.means for note in _notes(mean))
        return "\n".join(
            [
                f"Population means over {self.mean_of}, with {self.level:.0%} intervals, "
                f"{guarantee_text(self.privacy, True)}",
                *lines,
                "low to high: noise and sampling, added like squares, and then the bound on the "
                "bias of clipping.",
                *notes,
                f"each column's budget: {spent}, and all that other steps leave",
            ]
        )

    def _record(self) -> dict[str, object]:
        return {
            "mean_of": self.mean_of,
            "level": self.level,
            "split": dict(self.split),
            "privacy": dict(self.privacy),
            "means": [asdict(replace(mean, group=dict(mean.group))) for mean in self.means],
        }

    @classmethod
    def _restored(cls, record: dict[str, Any]) -> Self:
        fields(record, "format", *cls.__dataclass_fields__)
        means = tuple([_stored(mean) for mean in record["means"]])
        if len({tuple(mean.group) for mean in means}) != 1:
            raise ValueError("means by different columns")
        privacy = guarantee_record(record["privacy"])
        level = real(record["level"], 0.0, 1.0)
        return cls(means, text(record["mean_of"]), level, texts(record["split"]), privacy)


def _notes(mean: ColumnMean) -> list[str]:
    """Return the sentences about the range of a column, or about a group without a mean."""
    if mean.reason:
        group = "".join(f", {name}={category}" for name, category in mean.group.items())
        return [f"nan for {mean.column}{group}: {mean.reason}."]
    if not mean.searched:
        low, high = mean.clipped
        return [f"{mean.column}: numbers are clipped to the public bounds [{low:g}, {high:g}]."]
    saved = 1 - math.sqrt(1 - mean.searched)
    return [
        f"{mean.column}: assumed, {mean.assumed}.",
        f"{mean.column}: {mean.searched:.0%} of the budget found this range; public bounds as wide "
        f"would make noise {saved:.0%} smaller.",
    ]


def _stored(value: object) -> ColumnMean:
    """Return a mean as :meth:`ColumnMeans.to_json` writes it; ValueError for anything else."""
    mean = fields(value, *ColumnMean.__dataclass_fields__)
    low, high = (real(end) for end in mean["clipped"])
    numbers = {name: real(mean[name]) for name in ("mean", "count", "low", "high")}
    parts = {name: real(mean[name], 0.0, math.inf) for name in ("noise", "sampling", "bias")}
    ordered = numbers["low"] <= numbers["high"] and low <= high and math.isfinite(numbers["count"])
    if not ordered:
        raise ValueError("an interval without a number")
    return ColumnMean(
        text(mean["column"]),
        group_of(mean["group"]),
        **numbers,
        **parts,
        clipped=(low, high),
        assumed=text(mean["assumed"]),
        searched=real(mean["searched"], 0.0, 1.0),
        reason=text(mean["reason"]),
    )


def column_means(
    table: Any,
    columns: Sequence[str],
    privacy: AbstractPrivacy,
    *,
    by: Mapping[str, Sequence[str | int | bool]] | None = None,
    person: str | None = None,
    neighbors: Neighbors = "add-remove",
    between: Mapping[str, Ends] | None = None,
    spread: float = 1.0,
    order: float | None = None,
    level: float = 0.95,
    on_outside: "OnOutside" = "drop",
    ledger: Ledger | str | os.PathLike[str] | None = None,
    id: str | None = None,
) -> ColumnMeans:
    r"""Return means of numeric columns, with intervals: find a range, clip to it, release.

    For each column, noisy counts find numbers L and U with less than a tenth of all numbers beyond
    each, and a last count checks this. Numbers are clipped to a range ``c ± T`` around their middle
    c, and scaled to u in −1 … 1. For each group, the noisy sums of 1, u and u² are released, and
    the mean is ``c + T Σu / Σ1``.

    T balances noise against the bias of clipping, for distributions with ``(E|X − c|^k)^(1/k) <=
    spread · (U − L)``. With k = 2 the left side is about 0.39 times that distance for a normal
    distribution, 0.5 times for an exponential one, and 0.65 times for a lognormal one of parameter
    1. ``bias`` is the bound under this assumption, which is stated with its numbers for each
    column. It should hold in each group; you must judge whether it does. A larger k needs less
    noise. Without ``order``, k is 4, or 2 if a noisy count shows too many numbers far from c. If L
    is not negative, and no more numbers are negative than the noise hides, it is also assumed that
    none is.

    Public bounds, given as ``between``, need no search and no assumption.

    An interval adds noise and sampling like squares, and then the bias. A twentieth of the
    chance to miss is left for a check that errs. Sampling has Wilson's correction (1927) for
    small groups and rare large numbers, which moves an interval towards the middle of the range.

    Formal guarantees:
        * The privacy guarantee, for one row more or less ("add-remove") or one replaced; with
          ``person``, for all rows of one person. Each person then counts as one row, with the mean
          of their own numbers. A row without a number in a column, or without a listed category, is
          treated as absent. Refusals, with ``on_outside="refuse"``, depend on the data and are not
          covered.
        * Every row or person is one integer vector of bounded length. In the search, it is in one
          of two counts. It changes the three sums by at most √3, or √6 if one is replaced. All
          noise is discrete Gaussian, through OpenDP.
        * The cost of later steps may depend on earlier results, within one budget that was fixed
          beforehand.

    Args:
        table: a dataframe of any kind, or the path of a CSV or Parquet file; for CSV in another
            dialect, :meth:`Dialect.table`. Text that is not a number is treated as absent.
        columns: names of numeric columns, at least one; each gets an equal share of the budget.
        privacy: :class:`zCDP`, :class:`ApproxDP`, or another guarantee that Gaussian noise
            satisfies.
        by: the public categories of grouping columns; groups are all combinations.
        person: name of the column that identifies the person of each row; not together with ``by``.
        neighbors: the relation, for one person or row; under "replace", the number of rows is
            public.
        between: the public bounds ``(low, high)`` of some columns; None for an end that is not
            known, like ``{"income": (0, None)}``. Numbers beyond them are clipped to them.
        spread: the factor in the assumption above; 0.5 if it is less.
        order: k, the order of the moment, from 2 to 100; chosen as above if omitted.
        level: confidence level of the intervals, for each mean alone, in (0, 1).
        on_outside: the treatment of a row without a finite number in a column, a listed category,
            or a person: "drop" leaves it out there; "refuse" refuses the whole call, which is not
            private, as in :meth:`Plan.release`. The types of columns are judged as with "drop".
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of these means in the ledger.

    Returns:
        A :class:`ColumnMeans`. Where there are too few numbers, or 8 in 10 are equal, a mean is NaN
        with an infinite interval, and ``reason`` says what would help.

    Raises:
        ParameterError: arguments are of another kind, or out of range.
        SchemaError: ``by`` lists no categories, or a category twice.
        DataError: a column is missing, or is neither numbers nor text; or a row does not fit, with
            ``on_outside="refuse"``.
        NotAvailableError: ``person`` is given together with ``by``.

    Source: for the search, in the spirit of Smith (2011) and Karwa & Vadhan (2018); for the
    clipping, Kamath, Singhal & Ullman (2020). The check is ours.

    >>> import polars as pl
    >>> rng = np.random.default_rng(0)
    >>> frame = pl.DataFrame(
    ...     {"income": rng.lognormal(10, 0.5, 20_000), "sex": rng.choice(["f", "m"], 20_000)}
    ... )
    >>> found = gn.estimators.column_means(frame, ["income"], gn.zCDP(0.1), by={"sex": ["f", "m"]})
    >>> truth = float(np.exp(10 + 0.125))
    >>> all(abs(mean.mean / truth - 1) < 0.2 for mean in found.means)
    True
    """
    from ..tables.planning.facts import unit_text
    from ..tables.reading.codes import check_categories
    from .numbers import read_numbers

    name = "column_means"
    columns = _columns(columns)
    listed, cells = _groups(by)
    groups = {attribute.name: list(attribute.categories or ()) for attribute in listed}
    if not (isinstance(neighbors, str) and neighbors in ("add-remove", "replace")):
        raise ParameterError(
            f'{name}: expected neighbors="add-remove" or "replace", got {shown(neighbors)}'
        )
    if not (person is None or isinstance(person, str)):
        raise ParameterError(
            f"{name}: expected person= to be the name of a column, got {type(person).__name__}"
        )
    if person is not None and groups:
        raise NotAvailableError(
            f"{name}: person= with by= is not there yet: rows of one person may be in several "
            "groups; hint: one table with a row for each person"
        )
    spread = positive(name, "spread", spread)
    order = None if order is None else moment_order(name, order)
    ends = {column: (None, None) for column in columns} | _public(columns, between)
    if not 0 < (level := number(name, "level", level)) < 1:
        raise ParameterError(f"{name}: expected 0 < level < 1, got {level!r}; hint: 0.95")
    check_on_outside(name, on_outside, bodies=False)
    draws = len(columns) * (QUESTIONS + 3 * cells)
    budget = Budget.of(name, privacy, _SHARES, draws, pure=False)
    unit = unit_text(1, person)
    record = budget.record() | {
        "neighbors": neighbors,
        "unit": unit,
        "libraries": dict(versions("gaussnoise", "opendp", "numpy", "scipy")),
        "disclaimers": disclaimers(f"{unit}, {_CHANGE[neighbors]}.", private=True),
    }
    mean_of = "rows" if person is None else "persons (each counts as the mean of their own numbers)"
    part = rounded_down(Fraction(budget.whole) / len(columns))
    _check_noise(part, neighbors)
    check_categories(table, listed, "drop")
    split = {step: f"rho = {part * share:.6g}" for step, share in _SHARES.items()}

    def draw() -> ColumnMeans:
        numbers = read_numbers(table, columns, groups, person, on_outside)
        means: list[ColumnMean] = []
        for column in columns:
            known = ends[column], spread, order, level
            means += _means(column, numbers, part, neighbors, known)
        return ColumnMeans(tuple(means), mean_of, level, split, record)

    if (charged := ledger_and_id(name, ledger, id)) is None:
        return draw()
    request = {
        "estimator": name,
        "privacy": repr(privacy),
        "columns": columns,
        "by": groups,
        "person": person,
    }
    request |= {"neighbors": neighbors, "spread": spread, "k": order, "level": level}
    request |= {} if between is None else {"between": {c: ends[c] for c in between}}
    request |= {} if on_outside == "drop" else {"on_outside": on_outside}
    ledger, id = charged
    return ledger.once(
        id,
        cost=budget.whole,
        request=request,
        protects=f"{unit} under {neighbors}",
        target=None,
        draws=draws,
        write=lambda path: path.write_text(draw().to_json(), encoding="utf-8"),
        read=ColumnMeans.load,
    )


def _means(
    column: str,
    numbers: "Numbers",
    rho: float,
    neighbors: Neighbors,
    known: tuple[Ends, float, float | None, float],
) -> list[ColumnMean]:
    """Return the means of one column in every group; ``known`` is (ends, spread, k, level)."""
    ends, spread, order, level = known
    x, cells = numbers.of(column)
    groups = len(numbers.groups)
    counts = Counts(x, neighbors, rho, (1 - level) * _FAILURES / _EVENTS)
    z = float(-scipy.special.ndtri((1 - level) * (1 - _FAILURES) / 2))

    def noise(count: float, spent: float) -> float:
        """Return the deviation of a mean in −1 … 1, and of what Wilson's correction adds to it."""
        own = count / groups
        return max(
            math.hypot(math.sqrt(_SUMS[neighbors] / (2 * (rho - spent))), z) / own, 2.0**-_GRID
        )

    try:
        found = find_range(counts, ends, spread, order, noise)
    except NoRangeError as error:
        return [_unknown(column, group, counts.number, str(error)) for group in numbers.groups]
    left = rounded_down(Fraction(rho) - counts.spent)
    center, radius = found.low / 2 + found.high / 2, found.high / 2 - found.low / 2
    with np.errstate(over="ignore"):
        u = np.clip((x - center) / radius, -1, 1)
    grid = np.rint(u * 2.0**_GRID).astype(np.int64)
    square = np.rint(u * u * 2.0**_GRID).astype(np.int64)
    sums = [
        [
            int(part[cells == cell].sum())
            for part in (np.full(len(x), 2**_GRID, dtype=np.int64), grid, square)
        ]
        for cell in range(groups)
    ]
    query, bits = lattice_query(_SUMS[neighbors], left, _GRID)
    drawn = iter(query.draw(3 * len(sums)))
    released = [
        [math.ldexp((value << (bits - _GRID)) + next(drawn), -bits) for value in row]
        for row in sums
    ]
    sd = math.ldexp(query.scale, -bits)
    # A mean is shown if its count is at least ten deviations of the noise. Then the true count is
    # at most twice the noisy one, except with probability 10⁻²³. This bounds the number of terms u
    # in a sum, each rounded by half a step of the grid. All else is rounded like floats in the
    # range.
    rounding = math.ldexp(radius, -_GRID) + 16 * max(math.ulp(center), math.ulp(radius))
    found = replace(found, bias=found.bias + rounding)
    return [
        _mean(column, group, row, sd, found, z, 1 - left / rho)
        for group, row in zip(numbers.groups, released, strict=True)
    ]


def _mean(
    column: str,
    group: Mapping[str, object],
    sums: list[float],
    sd: float,
    found: Range,
    z: float,
    searched: float,
) -> ColumnMean:
    """Return a ratio of noisy sums, with first-order deviations, for counts far above noise."""
    count, total, squares = sums
    if count < 10 * sd:
        return _unknown(
            column,
            group,
            count,
            f"about {max(count, 0):.0f} numbers, fewer than {10 * sd:.0f}, are too few beside the "
            "noise; hint: a larger budget, or larger groups",
        )
    center, radius = found.low / 2 + found.high / 2, found.high / 2 - found.low / 2
    ratio = min(max(total / count, -1.0), 1.0)
    mean = center + radius * ratio
    variance = max((squares + 3 * sd) / count - ratio * ratio, 0.0)  # an upper estimate
    deviation = min(radius * math.sqrt(variance), found.size)
    noise = z * radius * sd * math.hypot(1, ratio) / count
    sampling = z * math.hypot(deviation / math.sqrt(count), z * radius / count)
    middle, half = mean + z**2 * (center - mean) / count, math.hypot(noise, sampling) + found.bias
    return ColumnMean(
        column,
        group,
        mean,
        count,
        middle - half,
        middle + half,
        noise,
        sampling,
        found.bias,
        (found.low, found.high),
        found.assumed,
        searched,
    )


def _unknown(column: str, group: Mapping[str, object], count: float, reason: str) -> ColumnMean:
    infinite = math.inf
    return ColumnMean(
        column,
        group,
        math.nan,
        count,
        -infinite,
        infinite,
        infinite,
        infinite,
        infinite,
        (-infinite, infinite),
        "",
        0.0,
        reason,
    )


def _public(columns: list[str], between: object) -> dict[str, Ends]:
    """Return the public ends of some columns as floats.

    Raises:
        ParameterError: another kind of argument, or ends in the wrong order.
    """
    found: dict[str, Ends] = {}
    if not (between is None or isinstance(between, Mapping)) or set(between or {}) - set(columns):
        raise ParameterError(
            "column_means: expected between= to give the ends of columns that are asked for; hint: "
            'between={"age": (0, 120)}'
        )
    for column, given in (between or {}).items():
        if not (isinstance(given, list | tuple) and len(given) == 2):
            raise ParameterError(
                f"column_means: expected two ends for {column!r}, or None for an unknown one, got "
                f"{shown(given)}"
            )
        low, high = (
            None if end is None else number("column_means", "as an end in between=", end)
            for end in given
        )
        if not (low is None or high is None or 0 < high / 2 - low / 2 <= LARGEST):
            raise ParameterError(
                f"column_means: expected low < high, no further apart than {LARGEST:g}, for "
                f"{column!r}, got {shown(given)}"
            )
        found[column] = (low, high)
    return found


def _columns(given: object) -> list[str]:
    """Return the names of columns, each once.

    Raises:
        ParameterError: ``given`` is not a list of names.
    """
    names = [given] if isinstance(given, str) else given
    if not (
        isinstance(names, list | tuple)
        and names
        and all(isinstance(name, str) for name in names)
        and len(set(names)) == len(names)
    ):
        raise ParameterError(
            "column_means: expected names of columns, at least one, each once; hint: "
            'columns=["income", "age"]'
        )
    return list(names)


def _groups(by: object) -> tuple[list["Attribute"], int]:
    """Return the grouping columns with their categories, and the number of groups.

    Raises:
        ParameterError: ``by`` is not a mapping from names to lists, or gives too many groups.
        SchemaError: the lists are not lists of categories.
    """
    from ..tables.schema.schema import Attribute

    if not (by is None or isinstance(by, Mapping)) or not all(
        isinstance(name, str) and isinstance(values, list | tuple | np.ndarray)
        for name, values in (by or {}).items()
    ):
        raise ParameterError(
            "column_means: expected by= to give the categories of each grouping column; hint: "
            'by={"sex": ["f", "m"]}'
        )
    listed = [Attribute(name, list(values)) for name, values in (by or {}).items()]
    cells = math.prod(attribute.size for attribute in listed)
    if cells > _MOST_GROUPS:
        raise ParameterError(
            f"column_means: expected at most {_MOST_GROUPS} groups, got {shown(cells)}"
        )
    return listed, cells


def _check_noise(rho: float, neighbors: Neighbors) -> None:
    """Raise ParameterError unless there is noise for all steps of even the longest search."""
    check_questions(neighbors, rho)
    lattice_query(_SUMS[neighbors], rounded_down(Fraction(rho) * Fraction(_SHARES["means"])), _GRID)
    lattice_query(_SUMS[neighbors], rho, _GRID)
