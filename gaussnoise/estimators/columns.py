"""Means of a table's numeric columns, by group, with no known bounds on the numbers."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Self, final

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
from .knowledge import moment_order, number, positive, shown
from .moments import best_radius, tail_bias
from .steps import lattice_query
from .stored import fields, group_of, guarantee_record, real, text, texts

if TYPE_CHECKING:
    from ..tables.schema.schema import Attribute, OnOutside
    from .numbers import Numbers

Array = NDArray[np.float64]
Neighbors = Literal["add-remove", "replace"]

_ROUNDS = 64  # rounds of the search for deciles: one for each bit of a number
_FINE = 16  # the search ends once brackets are this many times narrower than their distance
_SHARES = {"count": 0.05, "deciles": 0.25, "means": 0.7}
_GRID = 26  # bits of a clipped number, of which a sum of 2³⁶ fits into 64 bits
_MOST_GROUPS = 10_000
_CHANGE = {"add-remove": "more or less", "replace": "replaced by any other"}
_DECILE = {"add-remove": 9**2, "replace": 10**2}  # squared change of a balance by one row
_SUMS = {"add-remove": 3, "replace": 6}  # squared change of the sums of 1, u and u²


@final
@dataclass(frozen=True)
class ColumnMean:
    """The mean of one column in one group, with the parts of its interval.

    Attributes:
        column: name of the column.
        group: category of each grouping column, by name.
        mean: the estimate; NaN where the group is too small for one.
        count: noisy number of rows with a number in this column.
        low: lower end of the interval.
        high: upper end.
        noise: half-width due to noise.
        sampling: half-width due to sampling; squares of both add up.
        bias: bound on the bias of clipping, and on all rounding.
        clipped: the range to which numbers were clipped.

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


@final
@dataclass(frozen=True, eq=False)
class ColumnMeans(AbstractLoaded):
    """Means of columns by group. Everything in it is safe to publish.

    Attributes:
        means: one for each column and group.
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
    level: float
    split: Mapping[str, str]
    privacy: Mapping[str, object]

    _format = "gaussnoise.column_means/1"

    def __str__(self) -> str:
        names = list(self.means[0].group) if self.means else []
        rows = [["column", *names, "mean", "low", "high", "noise", "sampling", "clipping", "rows"]]
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
        unknown = any(math.isnan(mean.mean) for mean in self.means)
        return "\n".join(
            [
                f"Means of the population with {self.level:.0%} intervals, "
                f"{guarantee_text(self.privacy, True)}",
                *lines,
                "low to high: noise and sampling, added like squares, and then the bound on the "
                "bias of clipping.",
                *(
                    ["nan: a group too small to tell, or both deciles are one number: give bounds."]
                    if unknown
                    else []
                ),
                f"{self.privacy['assumed']}",
                f"each column's budget: {spent}",
            ]
        )

    def _record(self) -> dict[str, object]:
        return {
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
        text(privacy["assumed"])
        return cls(means, real(record["level"], 0.0, 1.0), texts(record["split"]), privacy)


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
        text(mean["column"]), group_of(mean["group"]), **numbers, **parts, clipped=(low, high)
    )


def column_means(
    table: Any,
    columns: Sequence[str],
    privacy: AbstractPrivacy,
    *,
    by: Mapping[str, Sequence[str | int | bool]] | None = None,
    person: str | None = None,
    neighbors: Neighbors = "add-remove",
    spread: float = 1.0,
    order: float = 2.0,
    level: float = 0.95,
    on_outside: "OnOutside" = "drop",
    ledger: Ledger | str | os.PathLike[str] | None = None,
    id: str | None = None,
) -> ColumnMeans:
    r"""Return means of numeric columns without known bounds, with intervals: locate, clip, release.

    For each column, there is a noisy count. Noisy counts also give the first and last decile, by
    halving the range of all numbers, bit by bit. A range ``c ± T`` lies around their middle c.
    Numbers are clipped to it and scaled to u in −1 … 1. For each group, the noisy sums of 1, u and
    u² are released, and the mean is ``c + T Σu / Σ1``.

    T balances noise against the bias of clipping, for distributions with ``(E|X − c|^k)^(1/k) <=
    spread · (last − first decile)``. With k = 2 the left side is 0.39 times that distance for a
    normal distribution, 0.5 times for an exponential one, and 0.65 times for a lognormal one of
    parameter 1. ``bias`` is the bound under this assumption, in each group; you must judge whether
    it holds. If tails are known to be light, a larger k needs much less noise.

    Formal guarantees:
        * The privacy guarantee, for one row more or less ("add-remove") or one replaced; with
          ``person``, for all rows of one person. Each person then counts as one row, with the mean
          of their own numbers. A row without a number in a column, or without a listed category, is
          treated as absent. Refusals, with ``on_outside="refuse"``, depend on the data and are not
          covered.
        * Every row or person is one integer vector of bounded length. In the search for a decile,
          it counts 9 below and −1 above. It changes the three sums by at most √3, or √6 if one is
          replaced. All noise is discrete Gaussian, through OpenDP.
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
        spread: the factor in the assumption above.
        order: k, the order of the moment, from 2 to 100.
        level: confidence level of the intervals, for each mean alone, in (0, 1).
        on_outside: the treatment of a row without a finite number in a column, a listed category,
            or a person: "drop" leaves it out there; "refuse" refuses the whole call, which is not
            private, as in :meth:`Plan.release`. The types of columns are judged as with "drop".
        ledger: a :class:`Ledger` or its path, charged before anything is drawn.
        id: the name of these means in the ledger.

    Returns:
        A :class:`ColumnMeans`. If both deciles are the same number, or a group is too small, means
        are NaN with infinite intervals: use :func:`clipped_mean` with bounds of your own.

    Raises:
        ParameterError: arguments are of another kind, or out of range.
        SchemaError: ``by`` lists no categories, or a category twice.
        DataError: a column is missing, or is neither numbers nor text; or a row does not fit, with
            ``on_outside="refuse"``.
        NotAvailableError: ``person`` is given together with ``by``.

    Source: for the search, in the spirit of Smith (2011) and Karwa & Vadhan (2018); for the
    clipping, Kamath, Singhal & Ullman (2020).

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
    spread, order = positive(name, "spread", spread), moment_order(name, order)
    if not 0 < (level := number(name, "level", level)) < 1:
        raise ParameterError(f"{name}: expected 0 < level < 1, got {level!r}; hint: 0.95")
    check_on_outside(name, on_outside, bodies=False)
    draws = len(columns) * (1 + 2 * _ROUNDS + 3 * cells)
    budget = Budget.of(name, privacy, _SHARES, draws, pure=False)
    unit = unit_text(1, person)
    record = budget.record() | {
        "neighbors": neighbors,
        "unit": unit,
        "libraries": dict(versions("gaussnoise", "opendp", "numpy", "scipy")),
        "disclaimers": disclaimers(f"{unit}, {_CHANGE[neighbors]}.", private=True),
        "assumed": "Assumed in every group: the distance of a number from the middle of the "
        f"first and the last decile, as the root of its moment of order {order:g}, is at most "
        f"{spread:g} times the distance between these deciles.",
    }
    part = rounded_down(Fraction(budget.whole) / len(columns))
    _check_noise(part, neighbors)
    check_categories(table, listed, "drop")
    split = {step: f"rho = {part * share:.6g}" for step, share in _SHARES.items()}

    def draw() -> ColumnMeans:
        numbers = read_numbers(table, columns, groups, person, on_outside)
        means: list[ColumnMean] = []
        for column in columns:
            means += _means(column, numbers, part, neighbors, (spread, order, level))
        return ColumnMeans(tuple(means), level, split, record)

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
    known: tuple[float, float, float],
) -> list[ColumnMean]:
    """Return the means of one column in every group; ``known`` is (spread, k, level)."""
    spread, k, level = known
    x, cells = numbers.of(column)
    count = max(_noisy(len(x), 1, _share(rho, "count")), 1.0)
    search = _Deciles(np.sort(x), _DECILE[neighbors], _share(rho, "deciles"))
    first, last = search.run()
    width = last - first
    left = rounded_down(Fraction(rho) - Fraction(_share(rho, "count")) - search.spent)
    size, center = spread * width, first / 2 + last / 2
    unknown = [_unknown(column, group, count) for group in numbers.groups]
    if not (width > 0 and 0 < size < math.inf and math.isfinite(center)):
        return unknown
    noise = math.sqrt(_SUMS[neighbors] / (2 * left)) / (count / len(numbers.groups))
    # rounding is proportional to the range, like noise
    radius = max(best_radius(k, size, max(noise, 2.0**-_GRID)), width / 2)
    if not math.isfinite(abs(center) + radius):
        return unknown
    with np.errstate(over="ignore"):
        u = np.clip((x - center) / radius, -1, 1)
    grid = np.rint(u * 2.0**_GRID).astype(np.int64)
    square = np.rint(u * u * 2.0**_GRID).astype(np.int64)
    sums = [
        [
            int(part[cells == cell].sum())
            for part in (np.full(len(x), 2**_GRID, dtype=np.int64), grid, square)
        ]
        for cell in range(len(numbers.groups))
    ]
    query, bits = lattice_query(_SUMS[neighbors], left, _GRID)
    drawn = iter(query.draw(3 * len(sums)))
    released = [
        [math.ldexp((value << (bits - _GRID)) + next(drawn), -bits) for value in row]
        for row in sums
    ]
    sd = math.ldexp(query.scale, -bits)
    z = float(-scipy.special.ndtri((1 - level) / 2))
    # A mean is shown if its count is at least ten deviations of the noise. Then the true count is
    # at most twice the noisy one, except with probability 10⁻²³. This bounds the number of terms u
    # in a sum, each rounded by half a step of the grid. All else is rounded like floats in the
    # range.
    rounding = math.ldexp(radius, -_GRID) + 16 * max(math.ulp(center), math.ulp(radius))
    clip = _Clip(center, radius, size, tail_bias(radius, k, size) + rounding, z)
    return [
        _mean(column, group, row, sd, clip)
        for group, row in zip(numbers.groups, released, strict=True)
    ]


@dataclass(frozen=True)
class _Clip:
    """A range around a center; ``size`` is the root mean square distance of the numbers from it."""

    center: float
    radius: float
    size: float
    bias: float
    quantile: float


def _mean(
    column: str, group: Mapping[str, object], sums: list[float], sd: float, clip: _Clip
) -> ColumnMean:
    """Return a ratio of noisy sums, with first-order deviations, for counts far above noise."""
    count, total, squares = sums
    if count < 10 * sd:
        return _unknown(column, group, count)
    ratio = min(max(total / count, -1.0), 1.0)
    variance = max((squares + 3 * sd) / count - ratio * ratio, 0.0)  # an upper estimate
    deviation = min(clip.radius * math.sqrt(variance), clip.size)
    noise = clip.quantile * clip.radius * sd * math.hypot(1, ratio) / count
    sampling = clip.quantile * deviation / math.sqrt(count)
    half = math.hypot(noise, sampling) + clip.bias
    mean, ends = (
        clip.center + clip.radius * ratio,
        (clip.center - clip.radius, clip.center + clip.radius),
    )
    return ColumnMean(
        column, group, mean, count, mean - half, mean + half, noise, sampling, clip.bias, ends
    )


def _unknown(column: str, group: Mapping[str, object], count: float) -> ColumnMean:
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
    )


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


def _share(rho: float, step: str) -> float:
    return rounded_down(Fraction(rho) * Fraction(_SHARES[step]))


def _noisy(count: int, squared: int, rho: float) -> float:
    """Return a count with noise of ρ; the squared change by a row or person is <= ``squared``."""
    query, bits = lattice_query(squared, rho)
    return math.ldexp((count << bits) + query.draw(1)[0], -bits)


def _check_noise(rho: float, neighbors: Neighbors) -> None:
    """Raise ParameterError unless there is noise for all steps of even the longest search."""
    lattice_query(1, _share(rho, "count"))
    lattice_query(_DECILE[neighbors], _round_of(_share(rho, "deciles")))
    lattice_query(_SUMS[neighbors], _share(rho, "means"), _GRID)
    lattice_query(_SUMS[neighbors], rho, _GRID)


def _round_of(rho: float) -> float:
    """Return the ρ of each question about each decile."""
    return rounded_down(Fraction(rho) / (2 * _ROUNDS))


class _Deciles:
    """A search for the first and the last decile among all floating-point numbers, in order.

    Each question is whether there are more than nine times as many numbers above a given one as
    below (or the other way round), by the sign of a balance. One row more or less changes the
    balance by at most nine, and one row replaced by another by at most ten.

    Attributes:
        spent: the ρ of all questions asked so far.
    """

    def __init__(self, x: Array, squared: int, rho: float) -> None:
        self.spent = Fraction(0)
        self._x, self._squared, self._each = x, squared, _round_of(rho)

    def run(self) -> tuple[float, float]:
        """Return both deciles; each is the middle of its last bracket."""
        end = _place(math.inf)
        brackets = [[-end, end], [-end, end]]
        for _ in range(_ROUNDS):
            (a, b), (c, d) = ((_number(low), _number(high)) for low, high in brackets)
            if c > b and max(b - a, d - c) <= (c - b) / _FINE:
                break
            for k, bracket in enumerate(brackets):
                middle = sum(bracket) // 2
                bracket[0 if self._is_below(_number(middle), k) else 1] = middle
        (a, b), (c, d) = ((_number(low), _number(high)) for low, high in brackets)
        return a / 2 + b / 2, c / 2 + d / 2

    def _is_below(self, number: float, which: int) -> bool:
        """Return whether ``number`` is below the first (0) or the last (1) decile, up to noise."""
        below = int(np.searchsorted(self._x, number, side="left"))
        above = len(self._x) - below
        self.spent += Fraction(self._each)
        return (
            _noisy(
                9 * below - above if which == 0 else below - 9 * above, self._squared, self._each
            )
            < 0
        )


def _place(number: float) -> int:
    """Return the position of a float in the order of all floats."""
    bits = int(np.float64(number).view(np.int64))
    return bits if bits >= 0 else -(bits & (2**63 - 1))


def _number(place: int) -> float:
    """Return the float at a position."""
    number = float(np.int64(abs(place)).view(np.float64))
    return number if place >= 0 else -number
