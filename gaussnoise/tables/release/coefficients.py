"""Coefficients that solve estimating equations of released numbers, with their intervals.

In comments and names, beta is the vector of the d coefficients.
"""

import math
from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from ...errors import ParameterError
from ...layout import fitted
from ...numerics.intervals import ConfidenceInterval, quantile
from ...text import number_of, significant
from ..schema.schema import Category
from .noisy import AbstractRelease
from .show import chi_squared_text, rounded, rows_text
from .tidy import LEVEL, framed, level_text

if TYPE_CHECKING:
    from narwhals.typing import EagerAllowed

Array = NDArray[np.float64]
Cell = Mapping[str, int]  # the category of each attribute that a column is about
Labels = Mapping[str, tuple[Category, ...]]  # the categories of each attribute

_MOST_COLUMNS = 40  # most columns of a design; the number of moments is about half its square
CLEAR = 4.0  # divisors must be at least this many standard deviations of noise above zero
_LEAST = 1e-12  # least eigenvalue of a covariance, relative to the largest, for scaling coordinates
_STEPS = 40  # steps of a search, each 1.5 times the last; a bound beyond them is infinite
_DIGITS = 1e-6  # accuracy of bounds of intervals, in standard deviations

_ENDS = {  # column heads of the estimate and of the bounds of intervals
    "estimate": "estimate",
    "low": "low",
    "high": "high",
    "population_low": "from",
    "population_high": "to",
}


class Column(NamedTuple):
    """A column of a design matrix: the indicator of some categories, multiplied by some numbers.

    Attributes:
        cell: the category of each attribute for which the indicator is 1.
        numbers: the names of the numbers by which the indicator is multiplied; may be empty.
    """

    cell: Cell
    numbers: tuple[str, ...] = ()

    @property
    def term(self) -> frozenset[str]:
        """The attributes that the column depends on."""
        return frozenset([*self.cell, *self.numbers])

    @property
    def name(self) -> str:
        """The name of the column's term, like ``"sex:hours"``."""
        return ":".join([*self.cell, *self.numbers])


class Equations(Protocol):
    """The d estimating equations of a model; their solution beta is the vector of coefficients.

    Without noise, the left sides of the equations are zero at the coefficients of the counted rows.
    The left sides are linear in released numbers, so the covariance of their noise is known
    exactly.
    """

    def residual(self, beta: Array) -> Array:
        """Return the left sides of the equations at the coefficients ``beta``, shape (d,)."""
        ...

    def slope(self, beta: Array) -> Array:
        """Return the derivatives of the left sides of the equations at ``beta``, shape (d, d).

        There is a row for each equation, and a column for each coefficient.
        """
        ...

    def spread(self, beta: Array) -> Array:
        """Return the covariance of the left sides of the equations at ``beta``, shape (d, d)."""
        ...

    def turned(self, beta: Array, w: Array) -> Array:
        """Return the gradient of ``w' spread(beta) w`` in ``beta``, with w fixed, shape (d,).

        ``spread(beta)`` is the covariance of the left sides of the equations, shape (d, d).
        """
        ...


class CoefficientTest(NamedTuple):
    """A test of the hypothesis that some coefficients are all zero in the population.

    Attributes:
        statistic: the smallest squared distance between the release and any coefficients that
            satisfy the hypothesis.
        degrees: the number of tested coefficients: the degrees of freedom of its χ² distribution.
        p_value: the probability of a statistic of this size or larger if all of them are zero.

    >>> print(CoefficientTest(3.84, 1, 0.05))
    chi-squared = 3.84, 1 degree of freedom, p = 0.05
    """

    statistic: float
    degrees: int
    p_value: float

    def __str__(self) -> str:
        return chi_squared_text(*self)


class Prediction(NamedTuple):
    """The number that a model expects for a row or a cell, with its 95 % interval.

    Attributes:
        estimate: the expected number, probability or count.
        standard_deviation: the standard deviation that is due to noise.
        low: the lower bound of the interval.
        high: the upper bound of the interval.

    >>> print(Prediction(31.5, 2.0, 27.6, 35.4))
    31.50 ± 2, 95 % interval from 27.60 to 35.40
    """

    estimate: float
    standard_deviation: float
    low: float
    high: float

    def __str__(self) -> str:
        sd = np.array([self.standard_deviation])
        estimate, low, high = rounded(np.array([self.estimate, self.low, self.high]), sd)
        return (
            f"{estimate} ± {significant(self.standard_deviation, 3)}, {level_text(LEVEL)} interval "
            f"from {low} to {high}"
        )


@dataclass(frozen=True)
class Law:
    """The distance between coefficients and released numbers.

    Let g be the left sides of the estimating equations at the coefficients, and V⁺ the
    pseudoinverse of the covariance of g. The squared distance is ``g' V⁺ g``.
    """

    equations: Equations
    center: Array  # the coefficients that make the equations zero

    @cached_property
    def covariance(self) -> Array:
        """The covariance of the estimated coefficients ``center``, to first order, shape (d, d)."""
        inverse = np.linalg.inv(self.equations.slope(self.center))
        return inverse @ self.equations.spread(self.center) @ inverse.T

    @cached_property
    def _root(self) -> Array:
        values, axes = np.linalg.eigh(self.covariance)
        return np.asarray(axes * np.sqrt(np.maximum(values, _LEAST * values.max())))

    def distance(self, beta: Array) -> tuple[float, Array]:
        """Return the squared distance of the coefficients from the release, and its gradient."""
        g = self.equations.residual(beta)
        w = scipy.linalg.pinvh(self.equations.spread(beta)) @ g
        gradient = 2 * self.equations.slope(beta).T @ w - self.equations.turned(beta, w)
        return float(g @ w), gradient

    def nearest(self, rows: Array, values: Array) -> float:
        """Return the smallest squared distance over all beta with ``rows @ beta = values``.

        The distance is that of the coefficients beta from the release, see :meth:`distance`.
        """
        root = self._root
        along = rows @ root
        start = np.linalg.lstsq(along, values - rows @ self.center)[0]
        free = scipy.linalg.null_space(along)

        def moved(s: Array) -> tuple[float, Array]:
            distance, gradient = self.distance(self.center + root @ (start + free @ s))
            return distance, free.T @ (root.T @ gradient)

        if not free.shape[1]:
            return self.distance(self.center + root @ start)[0]
        found = scipy.optimize.minimize(moved, np.zeros(free.shape[1]), jac=True, method="BFGS")
        return float(found.fun)

    def interval(self, row: Array, z: float) -> tuple[float, float]:
        """Return the interval of ``row @ beta`` over all coefficients beta that fit the release.

        Coefficients fit if their squared distance (:meth:`distance`) is at most z².
        """
        middle, sd = float(row @ self.center), math.sqrt(row @ self.covariance @ row)
        if not sd:
            return middle, middle

        def end(side: float) -> float:
            def beyond(steps: float) -> float:
                return self.nearest(row[None], np.array([middle + side * steps * sd])) - z * z

            far = z
            for _ in range(_STEPS):
                if beyond(far) > 0:
                    root: float = scipy.optimize.brentq(beyond, 0.0, far, xtol=_DIGITS)  # pyright: ignore[reportAssignmentType]
                    return middle + side * root * sd
                far *= 1.5
            return side * math.inf

        return end(-1.0), end(1.0)


@dataclass(frozen=True, eq=False, repr=False)
class AbstractCoefficients:
    """Coefficients of a model, with intervals for noise alone and for noise and sampling."""

    columns: tuple[str, ...]
    estimate: Array
    standard_deviation: Array
    rows: float
    weighted: bool
    rows_per_person: int
    private: bool
    backend: "EagerAllowed" = field(repr=False)
    design: tuple[Column, ...] = field(repr=False)
    own: Law = field(repr=False)  # for the counted rows alone
    _function: ClassVar[str]  # the name of the function that returns the model
    _fit: ClassVar[str]  # the method of the fit in words

    @property
    def _stated(self) -> Array:
        """The matrix that turns the solution of the equations into the coefficients."""
        return np.eye(len(self.columns))

    @property
    def terms(self) -> tuple[str, ...]:
        """The terms of the model, without the intercept."""
        return tuple(dict.fromkeys(own.name for own in self.design if own.term))

    @property
    @abstractmethod
    def _title(self) -> str:
        """The model in words, as the title of the printed coefficients."""

    @property
    @abstractmethod
    def _about(self) -> str:
        """A short description of the model."""

    @property
    @abstractmethod
    def _sampling(self) -> str:
        """A sentence about the intervals for the population; "" if there is nothing to say."""

    @abstractmethod
    def _sampled(self) -> Equations:
        """Return the estimating equations, with the covariance of noise and sampling together."""

    @property
    def has_population(self) -> bool:
        """Whether there are intervals for the population from which the rows were drawn."""
        return not self.weighted and self.rows_per_person == 1

    @cached_property
    def _drawn(self) -> Law:
        """The distance between coefficients and release, relative to noise and sampling."""
        hint = ", or confidence_interval() about the rows that were counted"
        check_sample(self._function, self.weighted, self.rows_per_person, hint)
        return Law(self._sampled(), self.own.center)

    @property
    def population_deviation(self) -> Array:
        """The standard deviations that are due to noise and sampling, to first order.

        Raises:
            ParameterError: weights, several rows of a person, or numbers that were not released.
        """
        return np.sqrt(np.diagonal(self._stated @ self._drawn.covariance @ self._stated.T))

    def confidence_interval(self, level: float = LEVEL) -> ConfidenceInterval:
        """Return an interval for each coefficient of the counted rows, each valid alone.

        An interval contains a value if some vector of coefficients with this value agrees with the
        release. Coefficients agree with the release if a test does not reject the equations at
        these coefficients. The test uses the exact covariance of the noise.

        Raises:
            ParameterError: level outside (0, 1).
        """
        return self._intervals(self.own, level)

    def population_interval(self, level: float = LEVEL) -> ConfidenceInterval:
        """Return intervals for the coefficients of the population from which rows were drawn.

        The intervals assume that the rows are independent, and that the model describes them.

        Raises:
            ParameterError: level outside (0, 1), weights, several rows of a person, or numbers
                that were not released.
        """
        return self._intervals(self._drawn, level)

    def _intervals(self, law: Law, level: float) -> ConfidenceInterval:
        z = quantile(level)
        ends = [law.interval(row, z) for row in self._stated]
        low, high = np.array(ends).T
        return ConfidenceInterval(low, high)

    def test(self, *terms: str) -> CoefficientTest:
        """Return a test that the coefficients of some terms are all zero in the population.

        In a model of one attribute, this is the analysis of variance of its categories; in a model
        of several attributes, it tests one given the others.

        Args:
            terms: attributes or interactions: ``test("sex")``, ``test("sex:age", "age")``.

        Raises:
            ParameterError: terms that the model does not have, or no intervals for a population.

        Source: Rao (1948), score tests; here with the exact covariance of the noise added.
        """
        known = {own.term: own.name for own in self.design if own.term}
        names = {name for term in known for name in term}
        asked = {frozenset(parts_of(str(term), names)) for term in terms}
        if not terms or not asked <= set(known):
            raise ParameterError(
                f"test: expected terms of the model, {', '.join(map(repr, known.values()))}, got "
                f"{', '.join(map(repr, terms)) or 'none'}"
            )
        for term in asked:
            above = [name for one, name in known.items() if term < one and one not in asked]
            if above:
                raise ParameterError(
                    f"test: expected {' and '.join(map(repr, above))} beside {known[term]!r}: "
                    "alone, its coefficients are those of the first categories of the others"
                )
        own = [k for k, column in enumerate(self.design) if column.term in asked]
        law, rows = self._drawn, self._stated[own]
        statistic = law.nearest(rows, np.zeros(len(own)))
        p_value = float(scipy.stats.chi2.sf(statistic, len(own)))
        return CoefficientTest(statistic, len(own), p_value)

    def _tidy(self) -> dict[str, list]:
        """Return tidy columns, {name: values}, with one row for each coefficient."""
        low, high = self.confidence_interval()
        found = {
            "coefficient": list(self.columns),
            "estimate": self.estimate,
            "standard_deviation": self.standard_deviation,
            "low": low,
            "high": high,
        }
        if self.has_population:
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
        ends = [own for own in _ENDS if own in found]
        shown = []
        for k, name in enumerate(self.columns):
            sd = found["standard_deviation"][k]
            estimate, *others = rounded(np.array([found[own][k] for own in ends]), np.array([sd]))
            shares = [f"{found['noise_share'][k]:.1%}"] if self.has_population else []
            shown.append([name, estimate, significant(sd, 3), *others, *shares])
        heads = ["estimate", "± sd", *(_ENDS[own] for own in ends[1:])]
        heads += ["noise"] * self.has_population
        rows = "weighted rows" if self.weighted else "rows"
        sampling = self._sampling
        if self.rows_per_person > 1:
            sampling = "none for a population, as rows of a person are not independent"
        spread = f"; {sampling}" if sampling else ""
        return rows_text(
            fitted(f"{self._title}: {significant(self.rows, 6)} {rows}"),
            ["coefficient"],
            heads,
            shown,
            [
                fitted(
                    f"low and high: {level_text(LEVEL)} intervals, each alone, for {self._fit} "
                    f"of the counted {rows}{spread}"
                )
            ],
            private=self.private,
        )

    def __repr__(self) -> str:
        count = number_of(len(self.columns), "coefficient")
        return f"{type(self).__name__}({self._about}: {count})"


def parts_of(term: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the attribute names in a term like ``"sex:age"``; a name itself may contain colons."""
    if term in names:
        return (term,)
    for name in names:
        rest = parts_of(term[len(name) + 1 :], names) if term.startswith(f"{name}:") else ()
        if rest and set(rest) <= set(names):
            return (name, *rest)
    return tuple(term.split(":"))


def column_name(labels: Labels, column: Column) -> str:
    """Return the name of a coefficient, like ``"sex=M, hours"``."""
    own = [f"{a}={labels[a][k]}" for a, k in column.cell.items()]
    return ", ".join([*own, *column.numbers]) or "intercept"


def check_sample(function: str, weighted: bool, rows_per_person: int, hint: str = "") -> None:
    """Refuse rows that are not independent draws from a population.

    Raises:
        ParameterError: weights, or several rows of a person.
    """
    why = own = ""
    if weighted:
        why, own = "rows with weights", "a release without weight="
    if rows_per_person > 1:
        why = f"several rows of a person, up to {rows_per_person}, which are not independent"
        own = "a release with rows_per_person=1, of one row or record of each person"
    if why:
        raise ParameterError(
            f"{function}: expected independent rows that count one each, for statements about a "
            f"population, got {why}; hint: {own}{hint}"
        )


def hidden(values: Array, sd: Array) -> int | None:
    """Return the index of the number that is hidden most by noise; None if none is hidden.

    A number is hidden if it is at most :data:`CLEAR` standard deviations of its noise.
    """
    least = int(np.argmin(values - CLEAR * sd))
    return least if values[least] <= CLEAR * sd[least] else None


def enough(release: AbstractRelease, value: float, sd: float) -> str:
    """Return a hint for an error: the budget with which noise would not hide ``value``."""
    hint = "a release with a larger budget"
    if value > 0:
        hint += f", about ρ = {(CLEAR * sd / value) ** 2 * release.rho_charged:.2g}"
    return hint


def terms_of(
    release: AbstractRelease, function: str, name: str, on: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return the attribute names of each term of a model of ``name``, after checking the terms.

    ``on`` lists the terms as text, like ``"sex:age"``. The result begins with the intercept, ().
    """
    if not isinstance(on, list | tuple) or not all(isinstance(term, str) for term in on):
        raise ParameterError(
            f"{function}: expected a list of attributes, got {on!r:.80}; hint: "
            'on=["sex", "age", "sex:age"]'
        )
    names = release.plan.schema.names
    terms = [parts_of(term, names) for term in on]
    for term in terms:
        release.plan.subset(term)  # refuses unknown names
    known = {*map(frozenset, terms), frozenset()}
    if name in {a for term in terms for a in term} or len(known) <= len(terms):
        raise ParameterError(
            f"{function}: expected different terms without {name!r}, got {on!r:.80}"
        )
    for term in terms:
        parts = [tuple(a for a in term if a != left) for left in term]
        lacking = [repr(":".join(part)) for part in parts if frozenset(part) not in known]
        if lacking:
            raise ParameterError(
                f"{function}: expected {' and '.join(lacking)} beside {':'.join(term)!r}: without "
                "them, coefficients depend on which category is the first one, or on where "
                "numbers have their zero"
            )
    return [(), *terms]


def indicators(
    attributes: Sequence[str], labels: Labels, numbers: tuple[str, ...] = ()
) -> list[Column]:
    """Return the columns of a design matrix for one term: one for each combination of categories.

    Combinations with the first category of an attribute have no column, so that coefficients
    compare with the first category. ``numbers`` are the names of the numbers that multiply the
    indicators.
    """
    return [
        Column(dict(zip(attributes, (1 + k for k in place), strict=True)), numbers)
        for place in np.ndindex(*(len(labels[a]) - 1 for a in attributes))
    ]


def row_of(design: Sequence[Column], cell: Cell, numbers: Mapping[str, float] = {}) -> Array:
    """Return the row of the design matrix for given categories and numbers, shape (columns,)."""
    return np.array(
        [
            math.prod(numbers[name] for name in own.numbers)
            * all(cell[name] == k for name, k in own.cell.items())
            for own in design
        ],
        dtype=np.float64,
    )


def cell_of(labels: Labels, values: Mapping[str, Any], numbers: Collection[str] = ()) -> Cell:
    """Return {attribute: index of its category} for given labels.

    ParameterError is raised if an attribute is missing or unknown, or a label is unknown.
    """
    known = set(values) == {*labels, *numbers}
    if not known or any(
        not isinstance(values[a], Hashable) or values[a] not in own for a, own in labels.items()
    ):
        wanted = [f"one category for each of {', '.join(labels)}"] * bool(labels)
        wanted += [f"a value of each of {', '.join(numbers)}"] * bool(numbers)
        raise ParameterError(
            f"predict: expected {' and '.join(wanted) or 'no value'}, got {dict(values)!r:.80}"
        )
    return {a: own.index(values[a]) for a, own in labels.items()}


def labels_of(release: AbstractRelease, names: Iterable[str]) -> Labels:
    """Return {attribute name: its labels} for some attributes of a release."""
    schema = release.plan.schema
    return {a: schema.attributes[schema.names.index(a)].labels for a in names}


def fields_of(
    release: AbstractRelease,
    labels: Labels,
    design: Sequence[Column],
    law: Law,
    stated: Array | None = None,
) -> dict[str, Any]:
    """Return the fields that all models have, {name: value}, without ``estimate`` and ``rows``.

    ``stated`` is the matrix that turns the solution of the equations into the stated coefficients.
    """
    covariance = law.covariance if stated is None else stated @ law.covariance @ stated.T
    return {
        "columns": tuple(column_name(labels, own) for own in design),
        "standard_deviation": np.sqrt(np.diagonal(covariance)),
        "weighted": release.plan.weight is not None,
        "rows_per_person": release.plan.rows_per_person,
        "private": release.private,
        "backend": release.backend,
        "design": tuple(design),
        "own": law,
    }


def check_columns(function: str, columns: Sequence[Column]) -> None:
    """Raise ParameterError if a design has too many columns to compute intervals within seconds."""
    if len(columns) > _MOST_COLUMNS:
        raise ParameterError(
            f"{function}: expected at most {_MOST_COLUMNS} columns, got {len(columns)}; hint: "
            "fewer interactions, or categories that are put together in the schema"
        )
