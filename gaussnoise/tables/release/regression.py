"""Linear regression of a clipped number on categories and numbers, from released moments."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.tables.clipped import Clipped

from ...errors import ParameterError
from ...layout import fitted
from ...numerics.intervals import ConfidenceInterval, quantile
from ...solvers.tables.residuals import subsets_of
from ...text import number_of, significant
from ..schema.numbers import interval_text, values_text
from ..schema.schema import Category
from .contrasts import contrasts
from .functions import powers
from .noisy import AbstractRelease
from .show import rows_text
from .sums import clipped_number
from .tidy import LEVEL, framed, level_text

if TYPE_CHECKING:
    from narwhals.typing import EagerAllowed

Array = NDArray[np.float64]
Cell = Mapping[str, int]  # the category of each attribute that a column is about

_MOST_COLUMNS = 40  # columns of a design: there are about half as many moments as its square
CLEAR = 4.0  # standard deviations of noise that numbers which others are divided by are above zero
_LEAST = 1e-12  # the least eigenvalue of a covariance that coordinates are scaled by
_STEPS = 40  # times that a search goes half as far again; an end beyond is infinite
_DIGITS = 1e-6  # standard deviations: ends of intervals are computed so far


class Column(NamedTuple):
    """A column of a design: the product of an indicator and of numbers.

    Attributes:
        cell: the categories in which it is not zero.
        numbers: the numbers, of which it is the product; 1 without them.
    """

    cell: Cell
    numbers: tuple[str, ...]


class Moments(NamedTuple):
    """Released moments of a regression and the exact covariance of their noise.

    Attributes:
        gram: X'X, shape (d, d).
        products: X'y, shape (d,).
        squares: y'y; NaN where squares are not released.
        covariance: of all moments, the different entries of X'X first.
        places: where each entry of X'X is among these moments, shape (d, d).
    """

    gram: Array
    products: Array
    squares: float
    covariance: Array
    places: NDArray[np.intp]

    def residual(self, beta: Array) -> Array:
        """Return ``X'y − X'X β``, which has mean zero at the least squares of the data."""
        return self.products - self.gram @ beta

    def weights(self, beta: Array) -> Array:
        """Return the weight of each moment in each entry of :meth:`residual`."""
        d = len(beta)
        linear = np.zeros((d, len(self.covariance)))
        for k in range(d):
            np.add.at(linear[k], self.places[k], -beta)
            linear[k, self.places.max() + 1 + k] = 1.0
        return linear


@final
@dataclass(frozen=True, eq=False, repr=False)
class Regression:
    """Least squares of a clipped number on others, with intervals for noise and sampling.

    Attributes:
        name: the number.
        clip: the interval that its values are clipped to.
        columns: names of the coefficients: ``"intercept"``, ``"sex=M"``, ``"sex=M, hours"``, …;
            the first category of each attribute is the one that others are compared with.
        estimate: coefficients, without the bias of first order that the noise makes.
        standard_deviation: their standard deviations due to noise, to first order.
        residual_deviation: the standard deviation of the number about its expectation; NaN where
            the schema declares no squares of it, or several rows of one person may count.
        rows: how many rows have all of the numbers, by the release; with weights, their sum.
        weighted: whether rows count with weights.
        rows_per_person: how many rows of one person may count.
        private: False for simulations, whose numbers must not be published.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 5000])])
    >>> people = pa.table({"sex": ["F", "M"] * 5000, "pay": [2000.0, 3000.0] * 5000})
    >>> release = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.5)).release(people)
    >>> gap = release.regress("pay", on=["sex"])
    >>> low, high = gap.confidence_interval(0.999999)
    >>> gap.columns, bool(low[1] < 1000 < high[1])
    (('intercept', 'sex=M'), True)
    """

    name: str
    clip: tuple[float, float]
    columns: tuple[str, ...]
    estimate: Array
    standard_deviation: Array
    residual_deviation: float
    rows: float
    weighted: bool
    rows_per_person: int
    private: bool
    backend: "EagerAllowed" = field(repr=False)
    moments: Moments = field(repr=False)
    design: tuple[Column, ...] = field(repr=False)
    labels: Mapping[str, tuple[Category, ...]] = field(repr=False)
    clips: Mapping[str, tuple[float, float]] = field(repr=False)
    stated: Array = field(repr=False)  # coefficients from those of numbers from 0 to 1

    @property
    def _on(self) -> list[str]:
        """The attributes of its columns."""
        return [*self.labels, *self.clips]

    @cached_property
    def _own(self) -> "_Law":
        """The law of the coefficients for the rows that were counted."""
        return _Law(self.moments, 0.0)

    @cached_property
    def _drawn(self) -> "_Law":
        """The law of the coefficients for the population that these rows were drawn from."""
        if self.weighted:
            raise ParameterError(
                "regress: expected rows without weights for intervals about a population; hint: "
                "confidence_interval() is about the weighted rows that were counted"
            )
        if self.rows_per_person > 1:
            raise ParameterError(
                "regress: expected one row of each person for intervals about a population, got up "
                f"to {self.rows_per_person}, which are not independent; hint: per_person=, or "
                "confidence_interval() about the rows that were counted"
            )
        if math.isnan(self.residual_deviation):
            raise ParameterError(
                f"regress: expected released squares of {self.name!r} for intervals about a "
                'population; hint: base={"kind": "moments", "degrees": [0, 1, 2]} of the attribute'
            )
        return _Law(self.moments, self.residual_deviation**2)

    @property
    def population_deviation(self) -> Array:
        """Standard deviations due to noise and sampling, for rows of equal variances.

        Raises:
            ParameterError: the schema declares no squares of the number.
        """
        return np.sqrt(np.diagonal(self.stated @ self._drawn.covariance @ self.stated.T))

    def confidence_interval(self, level: float = LEVEL) -> ConfidenceInterval:
        """Return intervals for the least squares of the very rows that were counted, each alone.

        An interval holds all values of a coefficient for which some values of the others are near
        to the released moments, by the exact covariance of their noise.

        Raises:
            ParameterError: level outside (0, 1).
        """
        return self._intervals(self._own, level)

    def population_interval(self, level: float = LEVEL) -> ConfidenceInterval:
        """Return intervals for the coefficients of the population that rows were drawn from.

        They assume independent rows, whose numbers have equal variances within all categories.

        Raises:
            ParameterError: level outside (0, 1), or no squares of the number.
        """
        return self._intervals(self._drawn, level)

    def _intervals(self, law: "_Law", level: float) -> ConfidenceInterval:
        z = quantile(level)
        ends = [law.interval(row, z) for row in self.stated]
        low, high = np.array(ends).T
        return ConfidenceInterval(low, high)

    def predict(self, **values: Category) -> "Prediction":
        """Return the expected number of a row: ``predict(sex="F", hours=38)``.

        Args:
            values: a category for each attribute of the regression, and a value for each number.

        Returns:
            A :class:`Prediction`, whose interval is about the least squares of the counted rows.

        Raises:
            ParameterError: other attributes or labels than those of the regression, or a number
                outside the interval that its values are clipped to.
        """
        asked = {name: list(own) for name, own in self.labels.items()}
        known = set(values) == {*asked, *self.clips}
        if not known or any(values[name] not in own for name, own in asked.items()):
            wanted = [f"one category for each of {', '.join(asked)}"] * bool(asked)
            wanted += [f"a value of each of {', '.join(self.clips)}"] * bool(self.clips)
            raise ParameterError(
                f"predict: expected {' and '.join(wanted) or 'no value'}, got {values!r:.80}"
            )
        for name, (low, high) in self.clips.items():
            x = values[name]
            if isinstance(x, bool) or not isinstance(x, int | float) or not low <= x <= high:
                raise ParameterError(
                    f"predict: expected a number in {interval_text(low, high)} for {name!r}, got "
                    f"{x!r:.80}"
                )
        row = np.array(
            [
                math.prod(float(values[name]) for name in own.numbers)
                * all(asked[name].index(values[name]) == k for name, k in own.cell.items())
                for own in self.design
            ]
        )
        row = row @ self.stated
        low, high = self._own.interval(row, quantile(LEVEL))
        center = float(row @ np.linalg.solve(self.stated, self.estimate))
        return Prediction(center, math.sqrt(row @ self._own.covariance @ row), low, high)

    def _tidy(self) -> dict[str, list]:
        """Return tidy columns, one row for each coefficient."""
        low, high = self.confidence_interval()
        found = {
            "coefficient": list(self.columns),
            "estimate": self.estimate,
            "standard_deviation": self.standard_deviation,
            "low": low,
            "high": high,
        }
        if not math.isnan(self.residual_deviation):
            low, high = self.population_interval()
            found |= {
                "population_deviation": self.population_deviation,
                "population_low": low,
                "population_high": high,
                "noise_share": (self.standard_deviation / self.population_deviation) ** 2,
            }
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in found.items()
        }

    def to_frame(self) -> Any:
        """Return the coefficients as a dataframe of the library that the records came in."""
        import pyarrow as pa

        return framed(pa.table(self._tidy()), self.backend)

    def __str__(self) -> str:
        found = self._tidy()
        shown = [
            [name, *(significant(found[column][k], 5) for column in found if column in _SHOWN)]
            for k, name in enumerate(self.columns)
        ]
        heads = [_SHOWN[column] for column in found if column in _SHOWN]
        spread = "; for those of a population, declare squares of the number in the schema"
        spread, rows = ("", "weighted rows") if self.weighted else (spread, "rows")
        if self.rows_per_person > 1:
            spread = "; none for a population, as rows of a person are not independent"
        if not math.isnan(self.residual_deviation):
            spread = (
                f"; from and to: of the population, where independent rows have one standard "
                f"deviation, here {significant(self.residual_deviation, 4)}; noise: its share of "
                "the variance"
            )
        return rows_text(
            fitted(
                f"Regression of {self.name}, {values_text(self.clip).removeprefix('values ')}, on "
                f"{', '.join(self._on) or 'no attribute'}: {significant(self.rows, 6)} {rows}"
            ),
            ["coefficient"],
            heads,
            shown,
            [
                fitted(
                    f"low and high: {level_text(LEVEL)} intervals, each alone, for least squares "
                    f"of the counted {rows}{spread}"
                )
            ],
            private=self.private,
        )

    def __repr__(self) -> str:
        count = number_of(len(self.columns), "coefficient")
        on = ", ".join(self._on) or "no attribute"
        return f"Regression({self.name} on {on}: {count})"


_SHOWN = {
    "estimate": "estimate",
    "standard_deviation": "± sd",
    "low": "low",
    "high": "high",
    "population_low": "from",
    "population_high": "to",
    "noise_share": "noise",
}


class Prediction(NamedTuple):
    """An expected number by a regression, with its 95 % interval.

    Attributes:
        estimate: a sum of coefficients.
        standard_deviation: due to noise.
        low: lower end of the interval.
        high: upper end.

    >>> print(Prediction(31.5, 2.0, 27.6, 35.4))
    Prediction(estimate=31.5, standard_deviation=2.0, low=27.6, high=35.4)
    """

    estimate: float
    standard_deviation: float
    low: float
    high: float


@dataclass(frozen=True)
class _Law:
    """The distance of coefficients from released moments, a quadratic form of their residual."""

    moments: Moments
    variance: float  # the number's, about its expectation; 0 for the counted rows alone

    @cached_property
    def center(self) -> Array:
        """The least squares of the released moments."""
        found = np.linalg.solve(self.moments.gram, self.moments.products)
        return np.asarray(found, dtype=np.float64)

    @cached_property
    def covariance(self) -> Array:
        """The covariance of the least squares, to first order."""
        inverse = np.linalg.inv(self.moments.gram)
        return inverse @ self._of_residual(self.center) @ inverse

    @cached_property
    def _root(self) -> Array:
        values, axes = np.linalg.eigh(self.covariance)
        return np.asarray(axes * np.sqrt(np.maximum(values, _LEAST * values.max())))

    def _of_residual(self, beta: Array) -> Array:
        linear = self.moments.weights(beta)
        return linear @ self.moments.covariance @ linear.T + self.variance * self.moments.gram

    def distance(self, beta: Array) -> tuple[float, Array]:
        """Return the squared distance of coefficients from the moments, and its gradient."""
        moments, g = self.moments, self.moments.residual(beta)
        w = scipy.linalg.pinvh(self._of_residual(beta)) @ g
        moved = moments.covariance @ (moments.weights(beta).T @ w)
        gradient = -2 * moments.gram @ w + 2 * (w @ moved[moments.places])
        return float(g @ w), gradient

    def nearest(self, row: Array, value: float) -> float:
        """Return the least squared distance of coefficients with ``row · beta = value``."""
        root = self._root
        along = root.T @ row
        start = along * ((value - row @ self.center) / (along @ along))
        free = scipy.linalg.null_space(along[None])

        def moved(s: Array) -> tuple[float, Array]:
            distance, gradient = self.distance(self.center + root @ (start + free @ s))
            return distance, free.T @ (root.T @ gradient)

        if not free.shape[1]:
            return self.distance(self.center + root @ start)[0]
        found = scipy.optimize.minimize(moved, np.zeros(free.shape[1]), jac=True, method="BFGS")
        return float(found.fun)

    def interval(self, row: Array, z: float) -> tuple[float, float]:
        """Return the ends of the values of ``row · beta`` whose least distance is at most z²."""
        middle, sd = float(row @ self.center), math.sqrt(row @ self.covariance @ row)
        if not sd:
            return middle, middle

        def end(side: float) -> float:
            def beyond(steps: float) -> float:
                return self.nearest(row, middle + side * steps * sd) - z * z

            far = z
            for _ in range(_STEPS):
                if beyond(far) > 0:
                    root: float = scipy.optimize.brentq(beyond, 0.0, far, xtol=_DIGITS)  # pyright: ignore[reportAssignmentType]
                    return middle + side * root * sd
                far *= 1.5
            return side * math.inf

        return end(-1.0), end(1.0)


def regress(release: AbstractRelease, name: str, on: Sequence[str]) -> Regression:
    """Return the least squares of a clipped number on others, from released tables alone.

    Columns are numbers as they are clipped, and indicators of categories, without the first of each
    attribute; an interaction has the products of these. The moments X'X and X'y are linear
    functions of the release, with an exactly known covariance; intervals are found from it, without
    an assumption that the noise is small (Anderson & Rubin 1949, for moments with errors).

    Args:
        release: the release that is asked.
        name: the number, an attribute with ``clip``.
        on: attributes of categories or bins, clipped numbers with squares, and interactions:
            ``["sex", "hours", "sex:hours"]``. Some table must have the attributes of any two
            columns, and those of each column with ``name``.

    Returns:
        A :class:`~gaussnoise.results.Regression`.

    Raises:
        ParameterError: unknown attributes, no clipped number, tables that were not released, more
            than 40 columns, or noise that leaves nothing, with the budget that would do.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 5000])])
    >>> people = pa.table({"sex": ["F", "M"] * 5000, "pay": [2000.0, 3000.0] * 5000})
    >>> release = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.5)).release(people)
    >>> expected = release.regress("pay", on=["sex"]).predict(sex="M")
    >>> abs(expected.estimate - 3000) < 8 * expected.standard_deviation
    True
    """
    i, base = clipped_number(release, "regress", name)
    schema, columns, clips, labels = release.plan.schema, list[Column](), {}, {}
    for term in _terms(release, name, on):
        numbers = tuple([a for a in term if _is_number(release, a)])
        groups = [a for a in term if a not in numbers]
        clips |= {a: schema.attributes[schema.names.index(a)].clip for a in numbers}
        labels |= {a: schema.attributes[schema.names.index(a)].labels for a in groups}
        for place in np.ndindex(*(len(labels[a]) - 1 for a in groups)):
            cell = dict(zip(groups, (1 + k for k in place), strict=True))
            columns.append(Column(cell, numbers))
    if len(columns) > _MOST_COLUMNS:
        raise ParameterError(
            f"regress: expected at most {_MOST_COLUMNS} columns, got {len(columns)}; hint: fewer "
            "interactions, or categories that are put together in the schema"
        )
    moments = _moments(release, name, labels, columns)
    _check_clear(release, moments)
    stated = _stated(columns, clips)
    law = _Law(moments, 0.0)
    rows = float(moments.gram[0, 0])
    noise = moments.weights(law.center) @ moments.covariance @ moments.weights(law.center).T
    inverse = np.linalg.inv(moments.gram)
    left = moments.squares - law.center @ moments.products + np.trace(inverse @ noise)
    variance = left / max(rows - len(columns), 1.0)
    is_known = base.squares and release.plan.rows_per_person == 1
    return Regression(
        name=name,
        clip=release.plan.schema.attributes[i].interval,
        columns=tuple(_column(labels, column) for column in columns),
        estimate=stated @ (law.center - _bias(moments, law.center)),
        standard_deviation=np.sqrt(np.diagonal(stated @ law.covariance @ stated.T)),
        residual_deviation=math.sqrt(max(variance, 0.0)) if is_known else math.nan,
        rows=rows,
        weighted=release.plan.weight is not None,
        rows_per_person=release.plan.rows_per_person,
        private=release.private,
        backend=release.backend,
        moments=moments,
        design=tuple(columns),
        labels=labels,
        clips=clips,
        stated=stated,
    )


def _terms(release: AbstractRelease, name: str, on: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the attributes of each term, the intercept first."""
    if not isinstance(on, list | tuple) or not all(isinstance(term, str) for term in on):
        raise ParameterError(
            f'regress: expected a list of attributes, got {on!r:.80}; hint: on=["sex", "sex:age"]'
        )
    schema = release.plan.schema
    # a name may hold a colon itself
    terms = [(term,) if term in schema.names else tuple(term.split(":")) for term in on]
    for term in terms:
        release.plan.subset(term)  # refuses unknown names
    known = {*map(frozenset, terms), frozenset()}
    if name in {a for term in terms for a in term} or len(known) <= len(terms):
        raise ParameterError(f"regress: expected different terms without {name!r}, got {on!r:.80}")
    for term in terms:
        for number in filter(partial(_is_number, release), term):
            base: Any = schema.attributes[schema.names.index(number)].base
            if not base.squares:
                raise ParameterError(
                    f"regress: expected squares of the number {number!r} in on=; hint: "
                    'base={"kind": "moments", "degrees": [0, 1, 2]} of the attribute'
                )
            if frozenset(term) - {number} not in known:
                rest = ":".join(a for a in term if a != number)
                raise ParameterError(
                    f"regress: expected the term {rest!r} beside {':'.join(term)!r}: without it, "
                    "coefficients depend on where numbers have their zero"
                )
    return [(), *terms]


def _is_number(release: AbstractRelease, name: str) -> bool:
    schema = release.plan.schema
    return schema.attributes[schema.names.index(name)].is_summed


def _moments(
    release: AbstractRelease,
    name: str,
    labels: Mapping[str, tuple[Category, ...]],
    columns: Sequence["Column"],
) -> Moments:
    """Return X'X, X'y and y'y with the covariance of their noise.

    In X, numbers are from 0 to 1: their places in their intervals.
    """
    schema = release.plan.schema
    names = dict.fromkeys(number for column in columns for number in column.numbers)
    of_number = {own: powers(clipped_number(release, "regress", own)[1]) for own in names}
    _, base = clipped_number(release, "regress", name)
    degrees = (0, 1, 2) if base.squares else (0, 1)
    own_moments = Clipped(
        base.low, base.high, degrees=degrees, size=base.size, squares=base.squares
    )
    of_number[name] = own_moments.toarray()[: len(degrees)]
    # records without one of the numbers are in no moment
    lacking = {own for own in of_number if schema.attributes[schema.names.index(own)].other}
    asked: list[Mapping] = []
    known: dict[object, int] = {}  # where each product of columns is among them

    def weights(cell: Cell, numbers: Counter[str]) -> Mapping:
        array, own = np.ones(()), [n for n in of_number if numbers[n] or n in lacking]
        for number in reversed(own):
            array = np.multiply.outer(of_number[number][numbers[number]], array)
        for a in reversed(list(cell)):
            array = np.multiply.outer(np.eye(1, len(labels[a]), cell[a])[0], array)
        return {(*cell, *own): array}

    d = len(columns)
    places = np.zeros((d, d), dtype=np.intp)
    for i, one in enumerate(columns):
        for j, other in enumerate(columns[: i + 1]):
            both, numbers = _both(one.cell, other.cell), Counter([*one.numbers, *other.numbers])
            key = None if both is None else (frozenset(both.items()), frozenset(numbers.items()))
            if key not in known:
                known[key] = len(asked)
                asked.append({} if both is None else weights(both, numbers))
            places[i, j] = places[j, i] = known[key]
    asked += [weights(own.cell, Counter([*own.numbers, name])) for own in columns]
    if base.squares:
        asked.append(weights({}, Counter({name: 2})))
    found = contrasts(release.kept(), asked)
    gram = found.estimate[places]
    products = found.estimate[places.max() + 1 : places.max() + 1 + d]
    last = float(found.estimate[-1]) if base.squares else math.nan
    return Moments(gram, products, last, found.covariance, places)


def _stated(columns: Sequence["Column"], clips: Mapping[str, tuple[float, float]]) -> Array:
    """Return the matrix from coefficients of numbers from 0 to 1 to those of the numbers.

    A number's place is (x − low) / (high − low): its column adds to that of x and to the same one
    without it, which :func:`_terms` has checked to be there.
    """
    known = {(*own.cell.items(), frozenset(own.numbers)): k for k, own in enumerate(columns)}
    matrix = np.zeros((len(columns), len(columns)))
    for k, own in enumerate(columns):
        for kept in subsets_of(tuple(range(len(own.numbers)))):
            to = frozenset(own.numbers[j] for j in kept)
            rest = [clips[number] for number in own.numbers if number not in to]
            share = math.prod(-low for low, _ in rest)
            widths = math.prod(clips[n][1] - clips[n][0] for n in own.numbers)
            matrix[known[(*own.cell.items(), to)], k] = share / widths
    return matrix


def _both(one: Cell, other: Cell) -> Cell | None:
    """Return the categories that a row has in which both columns are 1; None if there is none."""
    if any(other.get(a, k) != k for a, k in one.items()):
        return None
    return {**one, **other}


def _column(labels: Mapping[str, tuple[Category, ...]], column: "Column") -> str:
    own = [f"{a}={labels[a][k]}" for a, k in column.cell.items()]
    return ", ".join([*own, *column.numbers]) or "intercept"


def enough(release: AbstractRelease, value: float, sd: float) -> str:
    """Return as a hint the budget with which a number would be clear of its noise."""
    hint = "a release with a larger budget"
    if value > 0:
        hint += f", about ρ = {(CLEAR * sd / value) ** 2 * release.rho_charged:.2g}"
    return hint


def _check_clear(release: AbstractRelease, moments: Moments) -> None:
    """Refuse moments in which some combination of columns may be noise alone."""
    values, axes = np.linalg.eigh(moments.gram)
    forms = np.zeros((len(values), len(moments.covariance)))
    for form, v in zip(forms, axes.T, strict=True):
        np.add.at(form, moments.places, np.multiply.outer(v, v))
    sd = np.sqrt(np.einsum("ki,ij,kj->k", forms, moments.covariance, forms))
    least = int(np.argmin(values - CLEAR * sd))
    if values[least] > CLEAR * sd[least]:
        return
    hint = f"fewer terms, or {enough(release, values[least], sd[least])}"
    raise ParameterError(
        "regress: expected columns that can be told apart within the noise, got a combination of "
        f"them whose squares add up to {values[least]:.3g} ± {sd[least]:.2g}; hint: {hint}"
    )


def _bias(moments: Moments, beta: Array) -> Array:
    """Return the bias of least squares to first order: noise of X'X meets that of the residual."""
    inverse = np.linalg.inv(moments.gram)
    both = (moments.covariance @ moments.weights(beta).T)[moments.places]  # (j, k, l)
    return -inverse @ np.einsum("jkl,kl->j", both, inverse)
