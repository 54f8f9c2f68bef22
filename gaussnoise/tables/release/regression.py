"""Linear regression of a clipped number on categories and numbers, from released moments."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from domains.tables.clipped import Clipped

from ...errors import ParameterError
from ...numerics.intervals import quantile
from ...solvers.tables.residuals import subsets_of
from ...text import significant
from ..schema.numbers import interval_text, values_text
from ..schema.schema import Category
from .coefficients import (
    CLEAR,
    AbstractCoefficients,
    Cell,
    Column,
    Equations,
    Labels,
    Law,
    Prediction,
    cell_of,
    check_columns,
    enough,
    fields_of,
    hidden,
    indicators,
    labels_of,
    row_of,
    terms_of,
)
from .contrasts import contrasts
from .functions import powers
from .noisy import AbstractRelease
from .sums import clipped_number
from .tidy import LEVEL

Array = NDArray[np.float64]

_FEW = 3  # most categories that a message names


class Moments(NamedTuple):
    """Released moments of a regression and the exact covariance of their noise.

    Attributes:
        gram: X'X for the design matrix X of d columns, shape (d, d).
        products: X'y for the regressed number y, shape (d,).
        squares: y'y; NaN where squares are not released.
        covariance: covariance of all moments: the distinct entries of X'X, X'y, and y'y.
        places: the index of each entry of X'X among these moments, shape (d, d).
    """

    gram: Array
    products: Array
    squares: float
    covariance: Array
    places: NDArray[np.intp]

    def residual(self, beta: Array) -> Array:
        """Return ``X'y − X'X β``, the left sides of the equations, at the coefficients β.

        At the least-squares coefficients of the data, its expectation is 0.
        """
        return self.products - self.gram @ beta

    def weights(self, beta: Array) -> Array:
        """Return the matrix A with ``X'y − X'X β = A m`` for the vector m of all moments.

        The shape of A is (number of coefficients d, number of moments).
        """
        d = len(beta)
        linear = np.zeros((d, len(self.covariance)))
        for k in range(d):
            np.add.at(linear[k], self.places[k], -beta)
            linear[k, self.places.max() + 1 + k] = 1.0
        return linear


@dataclass(frozen=True)
class _LeastSquares:
    """The normal equations of least squares, from released moments."""

    moments: Moments
    variance: float  # the number's, about its expectation; 0 if only the counted rows matter

    def residual(self, beta: Array) -> Array:
        return self.moments.residual(beta)

    def slope(self, beta: Array) -> Array:
        return -self.moments.gram

    def spread(self, beta: Array) -> Array:
        linear = self.moments.weights(beta)
        return linear @ self.moments.covariance @ linear.T + self.variance * self.moments.gram

    def turned(self, beta: Array, w: Array) -> Array:
        moved = self.moments.covariance @ (self.moments.weights(beta).T @ w)
        return -2 * (w @ moved[self.moments.places])


def law_of(moments: Moments, variance: float) -> Law:
    """Return the equations of least squares with their solution, for tests and intervals.

    ``variance`` is the variance of the number about its expectation in a row.
    """
    center = np.linalg.solve(moments.gram, moments.products)
    return Law(_LeastSquares(moments, variance), np.asarray(center, dtype=np.float64))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Regression(AbstractCoefficients):
    """Least squares of a clipped number on others, with intervals for noise and sampling.

    Attributes:
        columns: names of the coefficients: ``"intercept"``, ``"sex=M"``, ``"sex=M, hours"``, …;
            other categories of an attribute are compared with its first one.
        estimate: coefficients, corrected to first order for the bias due to noise.
        standard_deviation: their standard deviations due to noise, to first order.
        rows: the estimated number of rows that have all numbers; with weights, their sum.
        weighted: whether rows count with weights.
        rows_per_person: the most rows of one person that are counted.
        private: False for simulations, whose numbers must not be published.
        name: the number that is regressed.
        clip: the interval that its values are clipped to.
        residual_deviation: the standard deviation of the number about its expectation; NaN if the
            schema declares no squares of it, or several rows of one person may be counted.

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
    residual_deviation: float
    moments: Moments = field(repr=False)
    labels: Labels = field(repr=False)
    clips: Mapping[str, tuple[float, float]] = field(repr=False)
    stated: Array = field(repr=False)  # the matrix from coefficients of numbers scaled to 0 … 1

    @property
    def _stated(self) -> Array:
        return self.stated

    _function, _fit = "regress", "least squares"

    @property
    def _title(self) -> str:
        return (
            f"Regression of {self.name}, {values_text(self.clip).removeprefix('values ')}, on "
            f"{self._on}"
        )

    @property
    def _about(self) -> str:
        return f"{self.name} on {self._on}"

    @property
    def _on(self) -> str:
        return ", ".join(self.terms) or "no attribute"

    @property
    def _sampling(self) -> str:
        if self.weighted:
            return ""
        if not self.has_population:
            return "for those of a population, declare squares of the number in the schema"
        return (
            "from and to: of the population, where independent rows have one standard deviation, "
            f"here {significant(self.residual_deviation, 4)}; noise: its share of the variance"
        )

    @property
    def has_population(self) -> bool:
        """Whether there are intervals for the population from which rows were drawn."""
        return super().has_population and not math.isnan(self.residual_deviation)

    def _sampled(self) -> Equations:
        if math.isnan(self.residual_deviation):
            raise ParameterError(
                f"regress: expected released squares of {self.name!r} for intervals about a "
                'population; hint: base={"kind": "moments", "degrees": [0, 1, 2]} of the attribute'
            )
        return _LeastSquares(self.moments, self.residual_deviation**2)

    def predict(self, /, **values: Category) -> "Prediction":
        """Return the expected number of a row: ``predict(sex="F", hours=38)``.

        Args:
            values: a category for each attribute of the regression, and a value for each number.

        Returns:
            A :class:`Prediction`, whose interval is for the least squares fit of the counted rows.

        Raises:
            ParameterError: other attributes or labels than those of the regression, or a number
                outside its clipping interval.
        """
        cell = cell_of(self.labels, values, self.clips)
        for name, (low, high) in self.clips.items():
            x = values[name]
            if isinstance(x, bool) or not isinstance(x, int | float) or not low <= x <= high:
                raise ParameterError(
                    f"predict: expected a number in {interval_text(low, high)} for {name!r}, got "
                    f"{x!r:.80}"
                )
        numbers: Any = {name: values[name] for name in self.clips}
        row = row_of(self.design, cell, numbers) @ self.stated
        low, high = self.own.interval(row, quantile(LEVEL))
        center = float(row @ np.linalg.solve(self.stated, self.estimate))
        return Prediction(center, math.sqrt(row @ self.own.covariance @ row), low, high)


def regress(release: AbstractRelease, name: str, on: Sequence[str]) -> Regression:
    """Return the least-squares fit of a clipped number to others, from released tables alone.

    Let y be this number. The design matrix X has columns for clipped numbers, and indicators of all
    categories except the first of each attribute; interactions are products of these. The moments
    X'X and X'y are linear functions of the release, with exactly known covariance. Intervals follow
    from this covariance, even if the noise is not small (Anderson & Rubin 1949, for moments with
    errors).

    Args:
        release: the release that is asked.
        name: the number, an attribute with ``clip``.
        on: attributes of categories or bins, clipped numbers with squares, and interactions:
            ``["sex", "hours", "sex:hours"]``. For any two columns, one released table must have all
            attributes of both; likewise for each column and ``name``.

    Returns:
        A :class:`~gaussnoise.results.Regression`.

    Raises:
        ParameterError: unknown attributes, no clipped number, tables that were not released, more
            than 40 columns, or too much noise; the message says which budget would suffice.

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
        labels |= labels_of(release, groups)
        columns += indicators(groups, labels, numbers)
    check_columns("regress", columns)
    moments = _moments(release, name, labels, columns)
    _check_clear(release, moments, labels, columns)
    stated = _stated(columns, clips)
    law = law_of(moments, 0.0)
    rows = float(moments.gram[0, 0])
    noise = moments.weights(law.center) @ moments.covariance @ moments.weights(law.center).T
    inverse = np.linalg.inv(moments.gram)
    left = moments.squares - law.center @ moments.products + np.trace(inverse @ noise)
    variance = left / max(rows - len(columns), 1.0)
    is_known = base.squares and release.plan.rows_per_person == 1
    return Regression(
        name=name,
        clip=release.plan.schema.attributes[i].interval,
        estimate=stated @ (law.center - _bias(moments, law.center)),
        residual_deviation=math.sqrt(max(variance, 0.0)) if is_known else math.nan,
        rows=rows,
        moments=moments,
        labels=labels,
        clips=clips,
        stated=stated,
        **fields_of(release, labels, columns, law, stated),
    )


def _terms(release: AbstractRelease, name: str, on: Sequence[str]) -> list[tuple[str, ...]]:
    """Return, for each term of the regression, its attributes; the intercept () comes first."""
    schema, terms = release.plan.schema, terms_of(release, "regress", name, on)
    for number in filter(partial(_is_number, release), {a for term in terms for a in term}):
        base: Any = schema.attributes[schema.names.index(number)].base
        if not base.squares:
            raise ParameterError(
                f"regress: expected squares of the number {number!r} in on=; hint: "
                'base={"kind": "moments", "degrees": [0, 1, 2]} of the attribute'
            )
    return terms


def _is_number(release: AbstractRelease, name: str) -> bool:
    schema = release.plan.schema
    return schema.attributes[schema.names.index(name)].is_summed


def _moments(
    release: AbstractRelease, name: str, labels: Labels, columns: Sequence[Column]
) -> Moments:
    """Return the moments and the covariance of their noise; numbers are scaled to 0 … 1."""
    schema = release.plan.schema
    names = dict.fromkeys(number for column in columns for number in column.numbers)
    of_number = {own: powers(clipped_number(release, "regress", own)[1]) for own in names}
    _, base = clipped_number(release, "regress", name)
    degrees = (0, 1, 2) if base.squares else (0, 1)
    own_moments = Clipped(
        base.low, base.high, degrees=degrees, size=base.size, squares=base.squares
    )
    of_number[name] = own_moments.toarray()[: len(degrees)]
    # records that lack one of the numbers are in no moment
    lacking = {own for own in of_number if schema.attributes[schema.names.index(own)].other}
    asked: list[Mapping] = []
    known: dict[object, int] = {}  # the index of each product of columns among them

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
            both, numbers = _common(one.cell, other.cell), Counter([*one.numbers, *other.numbers])
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


def _stated(columns: Sequence[Column], clips: Mapping[str, tuple[float, float]]) -> Array:
    """Return the matrix that turns coefficients of scaled numbers into those of the numbers."""
    known = {(*own.cell.items(), frozenset(own.numbers)): k for k, own in enumerate(columns)}
    matrix = np.zeros((len(columns), len(columns)))
    for k, own in enumerate(columns):
        # the coefficient of (x − low) / (high − low) adds to those of columns with and without x,
        # which _terms requires
        for kept in subsets_of(tuple(range(len(own.numbers)))):
            to = frozenset(own.numbers[j] for j in kept)
            rest = [clips[number] for number in own.numbers if number not in to]
            share = math.prod(-low for low, _ in rest)
            widths = math.prod(clips[n][1] - clips[n][0] for n in own.numbers)
            matrix[known[(*own.cell.items(), to)], k] = share / widths
    return matrix


def _common(one: Cell, other: Cell) -> Cell | None:
    """Return the intersection of two cells; None if no row can be in both."""
    if any(other.get(a, k) != k for a, k in one.items()):
        return None
    return {**one, **other}


def _check_clear(
    release: AbstractRelease, moments: Moments, labels: Labels, columns: Sequence[Column]
) -> None:
    """Raise ParameterError if some linear combination of columns may consist of noise only."""
    values, axes = np.linalg.eigh(moments.gram)
    forms = np.zeros((len(values), len(moments.covariance)))
    for form, v in zip(forms, axes.T, strict=True):
        np.add.at(form, moments.places, np.multiply.outer(v, v))
    sd = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", forms, moments.covariance, forms), 0.0))
    least = hidden(values, sd)
    if least is None:
        return
    hint = f"fewer terms, or {enough(release, values[least], sd[least])}"
    why = ""
    if empty := _hardly_any_rows(moments, labels, columns):
        why = f", where {', '.join(empty[:_FEW])} may have no rows{', …' * (len(empty) > _FEW)}"
        hint = f"categories that are joined with others in the schema, {hint}"
    raise ParameterError(
        "regress: expected columns that can be told apart within the noise, got a combination of "
        f"them whose squares add up to {values[least]:.3g} ± {sd[least]:.2g}{why}; hint: {hint}"
    )


def _hardly_any_rows(moments: Moments, labels: Labels, columns: Sequence[Column]) -> list[str]:
    """Return the categories, like "sex=F", whose numbers of rows are hidden by noise."""
    places = {tuple(own.cell.items()): k for k, own in enumerate(columns) if not own.numbers}
    counts = {cell: {k: 1.0} for cell, k in places.items() if cell}
    for name, own in labels.items():
        others = [k for cell, k in places.items() if len(cell) == 1 and cell[0][0] == name]
        if len(others) == len(own) - 1:  # the first category is what the others leave
            counts[(name, 0),] = {places[()]: 1.0, **dict.fromkeys(others, -1.0)}
    found = []
    for cell, weights in counts.items():
        form = np.zeros(len(moments.covariance))
        for k, weight in weights.items():
            form[moments.places[k, k]] += weight
        value = sum(weight * moments.gram[k, k] for k, weight in weights.items())
        sd = math.sqrt(max(form @ moments.covariance @ form, 0.0))
        if value <= CLEAR * sd:
            said = ", ".join(f"{name}={labels[name][k]}" for name, k in cell)
            found.append(f"{said} ({value:.3g} ± {sd:.2g})")
    return found


def _bias(moments: Moments, beta: Array) -> Array:
    """Return the leading bias of the coefficients, which is quadratic in the noise."""
    inverse = np.linalg.inv(moments.gram)
    both = (moments.covariance @ moments.weights(beta).T)[moments.places]  # axes (j, k, l)
    return -inverse @ np.einsum("jkl,kl->j", both, inverse)
