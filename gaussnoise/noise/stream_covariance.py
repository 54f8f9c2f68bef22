"""Covariance of the answers to a workload over time, stored as weights."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, final

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.domain import AbstractDomain
from domains.errors import DomainTooLargeError
from domains.floats import Array
from domains.sets.stream import StreamWorkload

from ..errors import CovarianceError
from ..solvers.streams.optimum import Evaluation, evaluate
from .covariance import AbstractCovariance, Stored


@final
@dataclass(frozen=True, eq=False)
class StreamCovariance(AbstractCovariance):
    """The covariance ``M = scale² W^-½ (W^½ A Λ Aᵀ W^½)^½ W^-½``, defined by its weights alone.

    A is the workload matrix, Λ the diagonal matrix of λ, and W that of w.

    Attributes:
        workload: the workload over time, with the matrix A, shape (n, n).
        weights: the weights λ of the columns of A, shape (n,), positive.
        coordinate_weights: the weights w of the answers, shape (n,), positive.
        scale: the factor by which standard deviations exceed those that the weights define.
    """

    workload: StreamWorkload
    weights: Array
    coordinate_weights: Array
    scale: float

    @property
    def dim(self) -> int:
        return self.workload.ticks

    @cached_property
    def evaluation(self) -> Evaluation:
        """The proven bounds on leverages and variances, for ``scale`` 1.

        Leverages are the squared lengths of the columns of A in the coordinates of the covariance.
        """
        return evaluate(self.workload.bands, self.weights, self.coordinate_weights)

    def standard_deviation(self) -> Array:
        """Return upper bounds on the standard deviations of the answers, shape (n,).

        Let A be the workload matrix. If A⁻¹ has one subdiagonal, bounds exceed the exact values by
        at most a relative 1e-9 for a million ticks; if A⁻¹ has several subdiagonals, by at most a
        proven bound on the rounding.
        """
        return self.scale * np.sqrt(self.evaluation.variances)

    def factor(self) -> Array:
        raise DomainTooLargeError(
            f"Covariance: a dense factor for {self.dim} ticks; hint: gn.streams.noise makes noise "
            "tick by tick"
        )

    def toarray(self) -> Array:
        self._check_dense(self.dim**2)
        return self._multiply(np.eye(self.dim))

    def _multiply(self, x: Array) -> Array:
        """Return M @ x as a sum of terms, each the solution of a banded linear system."""
        root = self.evaluation.root
        precision = _precision_bands(self.workload.bands, self.weights)
        for m in range(1, len(precision)):  # LAPACK stores bands by columns
            precision[m] = np.roll(precision[m], -m)
        total = np.zeros_like(x)
        for c, s in zip(root.sizes, root.shifts, strict=True):
            shifted = precision.copy()
            shifted[0] += s * self.coordinate_weights
            total += c * scipy.linalg.solveh_banded(shifted, x, lower=True, check_finite=False)
        return self.scale**2 * total

    def encode(self) -> Stored:
        return {"scale": self.scale}, {
            "stream_weights": self.weights,
            "stream_coordinate_weights": self.coordinate_weights,
        }

    @classmethod
    def decode(
        cls, domain: AbstractDomain, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        if not isinstance(domain, StreamWorkload):
            raise CovarianceError("load: expected a stream with the covariance of one")
        weights = arrays["stream_weights"], arrays["stream_coordinate_weights"]
        return cls(domain, *weights, header["scale"])


def _precision_bands(bands: Array, weights: Array) -> Array:
    """Return the bands of ``Bᵀ diag(weights)⁻¹ B``, (b + 1, n), for the B with these bands."""
    b, n = len(bands) - 1, bands.shape[1]
    # entry (t, t − m) is in row m, column t; it is zero where t < m
    precision = np.zeros((b + 1, n))
    for m in range(b + 1):
        for k in range(b + 1 - m):
            precision[m, : n - k] += (bands[k] * bands[k + m] / weights)[k:]
    return precision
