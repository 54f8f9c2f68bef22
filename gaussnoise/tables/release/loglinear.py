"""Log-linear models of counts, from the released tables that they fit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...solvers.tables.residuals import subsets_of
from ..schema.schema import Category
from .coefficients import Law, Prediction, check_columns, indicators, labels_of
from .contrasts import cell, contrasts
from .likelihood import AbstractLikelihoodModel, cell_names, check_counts, fitted_fields, matrix_of
from .noisy import AbstractRelease, Names
from .sums import check_no_number

Array = NDArray[np.float64]

_EXACT = 1e-9  # relative to the largest variance: below it, a number is exact
_LITTLE = 1e-3  # the variance of exact numbers, in the least one of others
_MOST_CELLS = 10**4  # in the table of all attributes of the model


@dataclass(frozen=True)
class _Likelihood:
    """The likelihood equations ``X'n − X' exp(X beta)`` of Poisson counts (Birch 1963)."""

    design: Array  # (cells, d)
    margins: Array  # X'n, noisy
    covariance: Array  # the covariance of the margins
    sampled: bool  # with the variance of the counts n, too

    def expected(self, beta: Array) -> Array:
        """Return the expected count of each cell."""
        return np.exp(self.design @ beta)

    def logarithm(self, beta: Array) -> float:
        return float(self.margins @ beta - self.expected(beta).sum())

    def residual(self, beta: Array) -> Array:
        return self.margins - self.design.T @ self.expected(beta)

    def slope(self, beta: Array) -> Array:
        return -(self.design.T * self.expected(beta)) @ self.design

    def spread(self, beta: Array) -> Array:
        return self.covariance - self.slope(beta) if self.sampled else self.covariance

    def turned(self, beta: Array, w: Array) -> Array:
        if not self.sampled:
            return np.zeros(len(beta))
        return self.design.T @ (self.expected(beta) * (self.design @ w) ** 2)

    def bias(self, law: Law) -> Array:
        X, beta = self.design, law.center
        variance = np.einsum("xi,ij,xj->x", X, law.covariance, X)
        bent = 0.5 * X.T @ (self.expected(beta) * variance)
        return np.linalg.solve(self.slope(beta), bent)


@final
@dataclass(frozen=True, eq=False, repr=False)
class LogLinearModel(AbstractLikelihoodModel):
    """A log-linear model of counts, with intervals for noise and sampling.

    Attributes:
        columns: names of the coefficients: ``"intercept"``, ``"sex=M"``, ``"sex=M, job=yes"``, …;
            the first category of each attribute is the one that others are compared with.
        estimate: coefficients, logarithms of ratios of expected counts, without the bias of first
            order that the noise makes. Those of two attributes are logarithms of odds ratios.
        standard_deviation: their standard deviations due to noise, to first order.
        rows: how many rows were counted, by the release; with weights, their sum.
        weighted: whether rows count with weights.
        rows_per_person: how many rows of one person may count.
        private: False for simulations, whose numbers must not be published.
        margins: attributes of the tables that the model fits.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("job", ["no", "yes"])])
    >>> people = pa.table(
    ...     {"sex": ["F", "M"] * 6000, "job": ["yes", "no", "no", "yes", "yes", "no"] * 2000}
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.5)).release(people)
    >>> found = release.loglinear([("sex", "job")])
    >>> low, high = found.confidence_interval(0.999999)  # of 3 women 2 have a job, of 3 men 1
    >>> found.columns[-1], bool(low[-1] < np.log(1 / 4) < high[-1])
    ('sex=M, job=yes', True)
    """

    margins: tuple[tuple[str, ...], ...]

    @property
    def _function(self) -> str:
        return "loglinear"

    @property
    def _title(self) -> str:
        return f"Log-linear model of {self._about}"

    @property
    def _about(self) -> str:
        return ", ".join(" by ".join(own) for own in self.margins)

    @property
    def _sampling(self) -> str:
        if not self.has_population:
            return ""
        return (
            "from and to: of the population, with counts that vary like Poisson numbers; noise: "
            "its share of the variance"
        )

    def _expected(self, eta: Array) -> tuple[Array, Array]:
        count = np.exp(eta)
        return count, count

    def predict(self, /, **values: Category) -> Prediction:
        """Return the expected count of a cell: ``predict(sex="F", job="yes", age="18-64")``.

        The cell may be one of a table that was not released: it is then what the model makes of
        the tables that were.

        Args:
            values: a category for each attribute of the model.

        Returns:
            A :class:`~gaussnoise.results.Prediction`, whose interval is about the fit to the
            counted rows.

        Raises:
            ParameterError: other attributes or labels than those of the model.
        """
        return self._predicted(values)


def loglinear(release: AbstractRelease, margins: Sequence[Names]) -> LogLinearModel:
    """Return the log-linear model of counts that fits some tables, from these tables alone.

    The model is hierarchical: it has all terms of the given tables. It fits their counts, so that
    only these need to have been released: the equations are linear in them, their noise has an
    exactly known covariance, and intervals hold all coefficients at which the equations are zero
    within it.

    Args:
        release: the release that is asked.
        margins: the attributes of each table that the model fits: ``[("sex", "job"), "age"]`` has
            age independent of the others.

    Returns:
        A :class:`~gaussnoise.results.LogLinearModel`.

    Raises:
        ParameterError: unknown attributes, clipped numbers, tables that were not released, more
            than 40 coefficients or 10,000 cells, or counts that the noise hides, with the budget
            that would do.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("job", ["no", "yes"])])
    >>> people = pa.table({"sex": ["F", "M"] * 6000, "job": ["no", "yes", "yes"] * 4000})
    >>> release = gn.plan(schema, 1, gn.zCDP(0.5)).release(people)
    >>> cell = release.loglinear(["sex", "job"]).predict(sex="F", job="yes")
    >>> abs(cell.estimate - 4000) < 8 * cell.standard_deviation
    True
    """
    is_list = isinstance(margins, list | tuple)
    is_list = is_list and all(own and isinstance(own, str | list | tuple) for own in margins)
    asked = [(own,) if isinstance(own, str) else tuple(own) for own in margins] if is_list else []
    if not asked or len({frozenset(map(str, own)) for own in asked}) < len(asked):
        raise ParameterError(
            f"loglinear: expected different tables to be fitted, got {margins!r:.80}; hint: "
            '[("sex", "job"), "age"]'
        )
    for own in asked:
        check_no_number(release, "loglinear", own)
    names = tuple(dict.fromkeys(a for own in asked for a in own))
    labels = labels_of(release, names)
    size = math.prod(map(len, labels.values()))
    if size > _MOST_CELLS:
        raise ParameterError(
            f"loglinear: expected a table of at most {_MOST_CELLS:,} cells, got {size:,}; hint: "
            "fewer attributes"
        )
    for own in asked:
        table, cells = release[own], cell_names({a: labels[a] for a in own})
        check_counts(release, "loglinear", cells, table.estimate, table.standard_deviation)
    every = {term for own in asked for term in subsets_of(tuple(sorted(map(names.index, own))))}
    terms = sorted(every, key=lambda term: (len(term), term))
    columns = [own for term in terms for own in indicators([names[i] for i in term], labels)]
    check_columns("loglinear", columns)
    found = contrasts(
        release.kept(),
        [cell(release, **{a: labels[a][k] for a, k in own.cell.items()}) for own in columns],
    )
    design = matrix_of(labels, columns)
    equations = _Likelihood(design, found.estimate, _raised(found.covariance), sampled=False)
    rows = float(found.estimate[0])
    start = np.zeros(len(columns))
    start[0] = math.log(rows / size)
    fields = fitted_fields(release, labels, columns, equations, start, "loglinear")
    return LogLinearModel(rows=rows, margins=tuple(asked), **fields)


def _raised(covariance: Array) -> Array:
    """Return a covariance in which exact numbers have a little variance.

    Under replacement, the number of rows is exact. Sets of coefficients are searched by distances,
    which need a positive variance; this one makes them larger by a thousandth at most.
    """
    values, axes = np.linalg.eigh(covariance)
    known = values <= _EXACT * values[-1]
    if known.all() or not known.any():
        return covariance
    values[known] = _LITTLE * values[~known].min()
    return (axes * values) @ axes.T
