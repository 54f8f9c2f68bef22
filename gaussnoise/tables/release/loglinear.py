"""Log-linear models of counts, computed from the released tables whose counts they fit."""

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

_EXACT = 1e-9  # variances below this part of the largest one count as zero
_LITTLE = 1e-3  # variance given to exact numbers, relative to the least of the others
_MOST_CELLS = 10**4  # most cells of the table of all attributes of the model


@dataclass(frozen=True)
class _Likelihood:
    """The likelihood equations of a log-linear model with a design matrix X (Birch 1963)."""

    design: Array  # X, (cells, d): the equations are X'n = X' exp(X beta)
    margins: Array  # X'n for the counts n, noisy
    covariance: Array  # the covariance of the margins
    sampled: bool  # whether the variance includes the Poisson variance of n

    def expected(self, beta: Array) -> Array:
        """Return the expected count of each cell at the coefficients ``beta``, shape (cells,)."""
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
            other categories of an attribute are compared with its first one.
        estimate: the coefficients, logarithms of ratios of expected counts; for two attributes, of
            odds ratios. The first-order bias that the noise causes is subtracted.
        standard_deviation: their standard deviations due to noise, to first order.
        rows: the released estimate of the number of rows, or of the sum of their weights.
        weighted: whether rows count with weights.
        rows_per_person: the largest number of rows of one person.
        private: False for simulations, whose numbers must not be published.
        margins: the attributes of each table whose counts the model fits.

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

    _function, _model = "loglinear", "Log-linear model"
    _population = (
        "from and to: of the population, with counts that vary like Poisson numbers; noise: its "
        "share of the variance"
    )

    @property
    def _about(self) -> str:
        return ", ".join(" by ".join(own) for own in self.margins)

    def _expected(self, eta: Array) -> tuple[Array, Array]:
        count = np.exp(eta)
        return count, count

    def predict(self, /, **values: Category) -> Prediction:
        """Return the expected count of a cell: ``predict(sex="F", job="yes", age="18-64")``.

        The table with this cell need not have been released: the model computes the count from the
        tables that it fits.

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
    """Return the log-linear model that fits the counts of some tables, from these tables alone.

    The model is hierarchical: it has all terms of the given tables. Only these tables need to have
    been released. The likelihood equations are linear in the counts of these tables, so the
    covariance of the noise is known exactly. An interval contains all coefficients for which a test
    by this covariance does not reject the equations.

    Args:
        release: the release that is asked.
        margins: the attributes of each table to fit. In the model of ``[("sex", "job"), "age"]``,
            age is independent of the others.

    Returns:
        A :class:`~gaussnoise.results.LogLinearModel`.

    Raises:
        ParameterError: unknown attributes, clipped numbers, tables that were not released, more
            than 40 coefficients or 10,000 cells, or counts that the noise hides; the message then
            states a sufficient budget.

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
    equations = _Likelihood(
        design, found.estimate, _with_positive_variances(found.covariance), sampled=False
    )
    rows = float(found.estimate[0])
    start = np.zeros(len(columns))
    start[0] = math.log(rows / size)
    fields = fitted_fields(release, labels, columns, equations, start, "loglinear")
    return LogLinearModel(rows=rows, margins=tuple(asked), **fields)


def _with_positive_variances(covariance: Array) -> Array:
    """Return the covariance of numbers, with a small variance for the numbers that are exact."""
    values, axes = np.linalg.eigh(covariance)
    known = values <= _EXACT * values[-1]
    if known.all() or not known.any():
        return covariance
    # distances need positive variances, also of an exact number of rows; those added are at most
    # a thousandth of the least variance of the other numbers
    values[known] = _LITTLE * values[~known].min()
    return (axes * values) @ axes.T
