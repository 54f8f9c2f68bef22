"""Logistic regression of one category on categories of other attributes, from a released table."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy
from numpy.typing import NDArray

from ...errors import ParameterError
from ...text import near, one_of
from ..schema.schema import Category
from .coefficients import (
    Labels,
    Law,
    Prediction,
    check_columns,
    enough,
    hidden,
    indicators,
    labels_of,
    terms_of,
)
from .contrasts import Weights, contrasts
from .likelihood import AbstractLikelihoodModel, cell_names, check_counts, fitted_fields, matrix_of
from .noisy import AbstractRelease
from .sums import check_no_number

Array = NDArray[np.float64]
Term = tuple[str, ...]

_MOST_WEIGHTS = 10**7  # most weights: groups squared, times the labels of the explained attribute
_MOST_GROUPS = 500  # most groups of rows with the same categories; their covariance matrix is dense


@dataclass(frozen=True)
class _Scores:
    """The likelihood equations of logistic regression with a design matrix X (Cox 1958)."""

    design: Array  # X, (groups, d): the equations are X'(n₁ − p ∘ n) = 0, with chances p
    ones: Array  # n₁: rows of each group with the category, noisy
    rows: Array  # n: all rows of each group, noisy
    covariance: Array  # the joint covariance of ones and rows, in this order
    sampled: bool  # whether the variance includes the binomial variance of n₁

    def chance(self, beta: Array) -> Array:
        """Return the probability of the category in each group at ``beta``, shape (groups,)."""
        return np.asarray(scipy.special.expit(self.design @ beta))

    def logarithm(self, beta: Array) -> float:
        eta = self.design @ beta
        return float(self.ones @ eta - self.rows @ np.logaddexp(0.0, eta))

    def residual(self, beta: Array) -> Array:
        return self.design.T @ (self.ones - self.chance(beta) * self.rows)

    def slope(self, beta: Array) -> Array:
        p = self.chance(beta)
        return -(self.design.T * (self.rows * p * (1 - p))) @ self.design

    def weights(self, beta: Array) -> Array:
        """Return the weight of each noisy number in each equation, shape (d, 2 · groups)."""
        # the weights of ones, then those of rows
        return np.hstack([self.design.T, -self.design.T * self.chance(beta)])

    def spread(self, beta: Array) -> Array:
        linear = self.weights(beta)
        noise = linear @ self.covariance @ linear.T
        return noise + (self.design.T * self._binomial(beta)) @ self.design

    def _binomial(self, beta: Array) -> Array:
        """Return each group's binomial variance of rows with the category; 0 unless ``sampled``."""
        p = self.chance(beta)
        return np.maximum(self.rows, 0.0) * p * (1 - p) * self.sampled

    def turned(self, beta: Array, w: Array) -> Array:
        p, along = self.chance(beta), self.design @ w
        moved = (self.covariance @ (self.weights(beta).T @ w))[len(p) :]
        of_noise = -2 * p * (1 - p) * along * moved
        return self.design.T @ (of_noise + self._binomial(beta) * (1 - 2 * p) * along**2)

    def bias(self, law: Law) -> Array:
        beta, X = law.center, self.design
        p = self.chance(beta)
        v = p * (1 - p)
        inverse = np.linalg.inv(self.slope(beta))
        met = (inverse @ self.weights(beta) @ self.covariance)[:, len(p) :]
        bent = 0.5 * self.rows * v * (1 - 2 * p) * np.einsum("xi,ij,xj->x", X, law.covariance, X)
        return -inverse @ (X.T @ (v * np.einsum("xl,lx->x", X, met) - bent))


@final
@dataclass(frozen=True, eq=False, repr=False)
class LogisticRegression(AbstractLikelihoodModel):
    """A logistic regression of one category, with intervals for noise and sampling.

    Attributes:
        columns: names of the coefficients: ``"intercept"``, ``"sex=M"``, ``"sex=M, age=65-"``, …;
            other categories of an attribute are compared with its first one.
        estimate: the coefficients, logarithms of odds ratios; the first-order bias that the noise
            causes is subtracted.
        standard_deviation: their standard deviations due to noise, to first order.
        rows: the released estimate of the number of rows, or of the sum of their weights.
        weighted: whether rows count with weights.
        rows_per_person: the largest number of rows of one person.
        private: False for simulations, whose numbers must not be published.
        name: the attribute that is explained.
        label: the category of ``name`` whose probability is modelled.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("job", ["no", "yes"])])
    >>> people = pa.table(
    ...     {"sex": ["F", "M"] * 6000, "job": ["yes", "no", "no", "yes", "yes", "no"] * 2000}
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.5)).release(people)
    >>> found = release.logistic("job", "yes", on=["sex"])
    >>> low, high = found.confidence_interval(0.999999)  # of 3 women 2 have one, of 3 men 1
    >>> found.columns, bool(low[1] < np.log(1 / 4) < high[1])
    (('intercept', 'sex=M'), True)
    """

    name: str
    label: Category

    @property
    def odds_ratio(self) -> Array:
        """The odds ratio of each column: the exponential of its coefficient."""
        return np.exp(self.estimate)

    _function, _model = "logistic", "Logistic regression"
    _population = "from and to: of the population, with sampling; noise: its share of the variance"

    @property
    def _about(self) -> str:
        return f"{self.name}={self.label} on {', '.join(self.terms) or 'no attribute'}"

    def _expected(self, eta: Array) -> tuple[Array, Array]:
        p = np.asarray(scipy.special.expit(eta))
        return p, p * (1 - p)

    def predict(self, /, **values: Category) -> Prediction:
        """Return the probability of the category in a group: ``predict(sex="F", age="18-64")``.

        Args:
            values: a category for each attribute of the model.

        Returns:
            A :class:`~gaussnoise.results.Prediction`, whose interval is about the fit to the
            counted rows.

        Raises:
            ParameterError: other attributes or labels than those of the model.
        """
        return self._predicted(values)


def logistic(
    release: AbstractRelease, name: str, label: Category, on: Sequence[str]
) -> LogisticRegression:
    """Return the logistic regression of a category on other attributes, from a released table.

    At any coefficients, the likelihood equations are linear in the counts of the table, so the
    covariance of their noise is known exactly. An interval contains all coefficients for which a
    test by this covariance does not reject the equations. The interval is valid for noise of any
    size.

    Args:
        release: the release that is asked.
        name: the attribute that is explained.
        label: the category whose probability is modelled, against all others.
        on: attributes of categories or bins, and interactions: ``["sex", "age", "sex:age"]``. A
            table of ``name`` and all of these attributes, or a larger table that contains it, must
            have been released.

    Returns:
        A :class:`~gaussnoise.results.LogisticRegression`.

    Raises:
        ParameterError: unknown attributes or labels, clipped numbers, a table that was not
            released, more than 40 coefficients or 500 groups, or numbers that the noise hides; the
            message then states a sufficient budget.

    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("job", ["no", "yes"])])
    >>> people = pa.table(
    ...     {"sex": ["F", "M"] * 6000, "job": ["yes", "no", "no", "yes", "yes", "no"] * 2000}
    ... )
    >>> release = gn.plan(schema, 2, gn.zCDP(0.5)).release(people)
    >>> chance = release.logistic("job", "yes", on=["sex"]).predict(sex="M")
    >>> abs(chance.estimate - 1 / 3) < 8 * chance.standard_deviation
    True
    """
    schema = release.plan.schema
    check_no_number(release, "logistic", (name,))
    attribute = schema.attributes[schema.names.index(name)]
    if not isinstance(label, Hashable) or label not in attribute.labels:
        raise ParameterError(
            f"logistic: expected a label of {name!r}, {one_of(map(repr, attribute.labels))}, got "
            f"{label!r:.80}" + near(label, attribute.labels)
        )
    terms = terms_of(release, "logistic", name, on)
    names = tuple(dict.fromkeys(a for term in terms for a in term))
    check_no_number(release, "logistic", names)
    labels = labels_of(release, names)
    columns = [column for term in terms for column in indicators(term, labels)]
    check_columns("logistic", columns)
    sizes = [len(own) for own in labels.values()]
    groups = math.prod(sizes)
    if groups > _MOST_GROUPS or groups**2 * attribute.size > _MOST_WEIGHTS:
        raise ParameterError(
            f"logistic: expected at most {_MOST_GROUPS} groups of rows, fewer where {name!r} has "
            f"many labels, got {groups}; hint: fewer attributes, or categories that are put "
            "together in the schema"
        )
    found = contrasts(
        release.kept(), _counts(names, sizes, name, attribute.labels.index(label), attribute.size)
    )
    ones, rows = np.split(found.estimate, 2)
    design = matrix_of(labels, columns)
    equations = _Scores(design, ones, rows, found.covariance, sampled=False)
    _check_counts(release, equations, f"{name}={label}", terms, labels)
    start = np.zeros(len(columns))
    _check_clear(release, equations, start)
    fields = fitted_fields(release, labels, columns, equations, start, "logistic")
    _check_clear(release, equations, fields["own"].center)
    own = attribute.labels[attribute.labels.index(label)]
    return LogisticRegression(rows=float(rows.sum()), name=name, label=own, **fields)


def _counts(
    names: Sequence[str], sizes: Sequence[int], name: str, k: int, size: int
) -> list[Weights]:
    """Return weights of cells: to count each group's rows with category ``k``, then all rows."""
    one, every = np.eye(1, size, k)[0], np.ones(size)
    groups = np.eye(math.prod(sizes)).reshape(-1, *sizes)
    return [
        {(*names, name): np.multiply.outer(group, of)} for of in (one, every) for group in groups
    ]


def _check_counts(
    release: AbstractRelease, equations: _Scores, of: str, terms: Sequence[Term], labels: Labels
) -> None:
    """Raise ParameterError if noise hides the rows with, or without, a label in a term's cell."""
    sizes = [len(own) for own in labels.values()]
    groups = np.eye(math.prod(sizes)).reshape(*sizes, -1)
    counts = np.concatenate([equations.ones, equations.rows])
    for term in terms:
        left_out = tuple(axis for axis, a in enumerate(labels) if a not in term)
        forms = groups.sum(axis=left_out).reshape(-1, groups.shape[-1])
        cells = cell_names({a: own for a, own in labels.items() if a in term})
        for own, words in (
            (np.hstack([forms, 0 * forms]), of),
            (np.hstack([-forms, forms]), f"others than {of}"),
        ):
            variance = np.einsum("kx,xy,ky->k", own, equations.covariance, own)
            names = [f"{words}, {cell}" if cell else words for cell in cells]
            sd = np.sqrt(np.maximum(variance, 0.0))
            check_counts(release, "logistic", names, own @ counts, sd)


def _check_clear(release: AbstractRelease, equations: _Scores, beta: Array) -> None:
    """Raise ParameterError if noise hides the information on some combination of coefficients."""
    p = equations.chance(beta)
    # each eigenvalue of the information, minus the equations' slope, must be clear of zero
    values, axes = np.linalg.eigh(-equations.slope(beta))
    forms = (p * (1 - p))[:, None] * (equations.design @ axes) ** 2
    covariance = equations.covariance[len(p) :, len(p) :]
    sd = np.sqrt(np.maximum(np.einsum("xk,xy,yk->k", forms, covariance, forms), 0.0))
    least = hidden(values, sd)
    if least is not None:
        raise ParameterError(
            "logistic: expected coefficients that can be told apart within the noise, got a "
            f"combination of them whose information is {values[least]:.3g} ± {sd[least]:.2g}; "
            f"hint: fewer terms, or {enough(release, values[least], sd[least])}"
        )
