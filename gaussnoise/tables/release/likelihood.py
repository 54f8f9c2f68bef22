"""Models of counts, fitted by likelihood equations that are linear in the counts."""

import itertools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ...errors import ParameterError
from ...numerics.intervals import quantile
from ..schema.schema import Category
from .coefficients import (
    AbstractCoefficients,
    Column,
    Equations,
    Labels,
    Law,
    Prediction,
    cell_of,
    enough,
    fields_of,
    hidden,
    row_of,
)
from .noisy import AbstractRelease
from .tidy import LEVEL

Array = NDArray[np.float64]

_LAST_STEPS = 3  # steps of Newton's method after the search for the largest likelihood
_LAST_STEP = 1e-6  # largest change of a coefficient in the last of these steps


class Likelihood(Equations, Protocol):
    """The likelihood equations of a model: the gradient of the log-likelihood is zero."""

    def logarithm(self, beta: Array) -> float:
        """Return the log-likelihood at the coefficients ``beta``, up to a constant."""
        ...

    def bias(self, law: Law) -> Array:
        """Return the bias of the d coefficients that noise causes, to first order, shape (d,)."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class AbstractLikelihoodModel(AbstractCoefficients):
    """A model of the counts of categories, whose coefficients maximise the likelihood."""

    labels: Labels = field(repr=False)
    equations: Any = field(repr=False)  # a Likelihood with a field ``sampled``

    _fit = "largest likelihood"
    _model: ClassVar[str]  # the kind of model
    _population: ClassVar[str]  # a sentence about the intervals for the population

    @property
    def _title(self) -> str:
        return f"{self._model} of {self._about}"

    @property
    def _sampling(self) -> str:
        return self._population if self.has_population else ""

    def _sampled(self) -> Equations:
        return replace(self.equations, sampled=True)

    @abstractmethod
    def _expected(self, eta: Array) -> tuple[Array, Array]:
        """Return the expected numbers at linear predictors ``eta``, and their derivatives."""

    def _predicted(self, values: Mapping[str, Category]) -> Prediction:
        """Return the expected number for the cell with these labels, with a 95 % interval."""
        row = row_of(self.design, cell_of(self.labels, values))
        ends = np.array([row @ self.estimate, *self.own.interval(row, quantile(LEVEL))])
        (expected, low, high), (slope, *_) = (own.tolist() for own in self._expected(ends))
        return Prediction(expected, slope * math.sqrt(row @ self.own.covariance @ row), low, high)


def fitted_fields(
    release: AbstractRelease,
    labels: Labels,
    design: Sequence[Column],
    equations: Likelihood,
    start: Array,
    function: str,
) -> dict[str, Any]:
    """Return the fields of a model fitted by likelihood, {name: value}, without ``rows``."""
    law = Law(equations, solved(equations, start, function))
    return {
        **fields_of(release, labels, design, law),
        "estimate": law.center - equations.bias(law),
        "labels": labels,
        "equations": equations,
    }


def solved(equations: Likelihood, start: Array, function: str) -> Array:
    """Return the coefficients that maximise the likelihood; ParameterError if there are none."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found = scipy.optimize.minimize(
            lambda beta: -equations.logarithm(beta),
            start,
            jac=lambda beta: -equations.residual(beta),
            hess=lambda beta: -equations.slope(beta),
            method="trust-exact",
        )
        ends, step = np.asarray(found.x, dtype=np.float64), np.inf
        for _ in range(_LAST_STEPS):
            step = np.linalg.lstsq(equations.slope(ends), equations.residual(ends))[0]
            ends = ends - step
    if not np.isfinite(ends).all() or np.abs(step).max() > _LAST_STEP:
        raise ParameterError(
            f"{function}: expected coefficients at which the released numbers agree with the "
            "model, found none; hint: fewer terms, or categories that are put together in the "
            "schema"
        )
    return ends


def matrix_of(labels: Labels, design: Sequence[Column]) -> Array:
    """Return the design matrix, with a row for each combination of labels, in C order."""
    places = np.ndindex(*map(len, labels.values()))
    return np.array([row_of(design, dict(zip(labels, place, strict=True))) for place in places])


def cell_names(labels: Labels) -> list[str]:
    """Return the name of each combination of labels, like ``"sex=M, job=yes"``, in C order."""
    parts = ([f"{a}={label}" for label in own] for a, own in labels.items())
    return [", ".join(cell) for cell in itertools.product(*parts)]


def check_counts(
    release: AbstractRelease, function: str, names: Sequence[str], counts: ArrayLike, sd: ArrayLike
) -> None:
    """Raise ParameterError if a count is too near zero, compared with its noise, for a logarithm.

    ``names`` are names of the counts, and ``sd`` standard deviations of their noise.
    """
    counts, sd = np.broadcast_arrays(np.ravel(counts), np.ravel(sd))
    least = hidden(counts, sd)
    if least is not None:
        more = f", or {enough(release, counts[least], sd[least])}" if sd[least] else ""
        raise ParameterError(
            f"{function}: expected rows of {names[least]} that the noise does not hide, got "
            f"{counts[least]:.3g} ± {sd[least]:.2g}; hint: fewer terms, categories that are put "
            f"together in the schema{more}"
        )
