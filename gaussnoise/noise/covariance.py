"""Covariance matrices that are stored as factors or parameters."""

import abc
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains.domain import AbstractDomain
from domains.errors import DomainTooLargeError
from domains.floats import MOST_NUMBERS, Array

from ..errors import CovarianceError, ParameterError
from ..files.pickling import PickledByArguments
from ..numerics.norms import norm

Stored = tuple[dict[str, Any], dict[str, NDArray[Any]]]  # a header for JSON, and arrays


class AbstractCovariance(abc.ABC):
    """A positive semidefinite matrix M of shape (dim, dim), whose entries are computed on request.

    >>> noise = gn.optimal_noise(gn.FiniteSet(np.eye(2)), neighbors="add-remove")
    >>> noise.covariance.toarray().round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    __array_ufunc__ = None

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """The number of coordinates d of the answer; the covariance has shape (d, d)."""

    @abc.abstractmethod
    def standard_deviation(self) -> Array:
        """Return the standard deviation of the noise of each coordinate, shape (dim,)."""

    @abc.abstractmethod
    def factor(self) -> Array:
        """Return a matrix L, shape (dim, r), with ``M = L @ L.T`` for the covariance M."""

    @abc.abstractmethod
    def _multiply(self, x: Array) -> Array:
        """Return ``M @ x`` for the covariance M and an array x of shape (dim, k)."""

    @property
    def shape(self) -> tuple[int, int]:
        """The shape ``(dim, dim)``."""
        return (self.dim, self.dim)

    def diagonal(self) -> Array:
        """Return the variance of the noise of each coordinate, shape (dim,)."""
        return self.standard_deviation() ** 2

    def toarray(self) -> Array:
        """Return the covariance as a dense matrix, shape (dim, dim).

        Raises:
            DomainTooLargeError: the matrix would need more than a gigabyte.
        """
        self._check_dense(self.dim**2)
        L = self.factor()
        return L @ L.T

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> NDArray:
        if copy is False:
            raise ValueError("a Covariance is stored factored: its array is always a new one")
        return self.toarray().astype(dtype or np.float64)

    def __matmul__(self, other: "ArrayLike") -> Array:
        x = np.asarray(other, dtype=np.float64)
        if x.ndim not in (1, 2) or x.shape[0] != self.dim:
            raise ParameterError(
                f"Covariance @ x: expected x of shape ({self.dim},) or ({self.dim}, k), got "
                f"{x.shape}"
            )
        return self._multiply(x.reshape(self.dim, -1)).reshape(x.shape)

    def error(self, p: float) -> float:
        """Return the error ``‖sd(M)‖_p`` for the vector sd(M) of standard deviations.

        At p = 2 it is the root of the total variance, at p = ∞ the largest standard deviation.
        """
        return norm(self.standard_deviation(), p)

    def encode(self) -> Stored:
        """Return the numbers of the covariance for a file: a header for JSON, and arrays."""
        raise CovarianceError(
            f"save: expected a covariance that can be stored, got {type(self).__name__}"
        )

    @classmethod
    def decode(
        cls, domain: AbstractDomain, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        """Return the covariance that :meth:`encode` wrote; it must still be verified."""
        raise CovarianceError(f"load: expected a covariance that can be stored, got {cls.__name__}")

    def _check_dense(self, entries: int) -> None:
        if entries > MOST_NUMBERS:
            raise DomainTooLargeError(
                f"Covariance: the dense array needs {entries * 8 / 1e9:.3g} GB; "
                "hint: use diagonal(), standard_deviation() or products"
            )


@dataclass(frozen=True, eq=False)
class FactorCovariance(AbstractCovariance, PickledByArguments):
    """A covariance ``M = scale² · L @ L.T``, where L is ``unit_factor`` with moderate entries.

    The separate scale avoids under- and overflow for standard deviations of 1e±150.

    >>> FactorCovariance(np.array([[3.0], [4.0]]), 2.0).standard_deviation()
    array([6., 8.])
    """

    unit_factor: Array
    scale: float

    def __post_init__(self) -> None:
        if not 0 < self.scale < np.inf:
            raise ParameterError(
                f"FactorCovariance: expected a positive, finite scale, got {self.scale!r}"
            )
        copied = np.array(self.unit_factor, dtype=np.float64)
        if not np.isfinite(copied).all():
            raise CovarianceError(
                "FactorCovariance: expected a finite factor, got NaN or infinite entries"
            )
        copied.flags.writeable = False
        object.__setattr__(self, "unit_factor", copied)

    @property
    def dim(self) -> int:
        return self.unit_factor.shape[0]

    def standard_deviation(self) -> Array:
        heights = np.abs(self.unit_factor).max(axis=1, initial=0.0)
        heights[heights == 0] = 1.0
        return self.scale * (heights * np.linalg.norm(self.unit_factor / heights[:, None], axis=1))

    def factor(self) -> Array:
        return self.scale * self.unit_factor

    def _multiply(self, x: Array) -> Array:
        return self.scale * (self.unit_factor @ (self.unit_factor.T @ (self.scale * x)))

    def encode(self) -> Stored:
        return {"scale": self.scale}, {"factor": self.unit_factor}

    @classmethod
    def decode(
        cls, domain: AbstractDomain, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> "FactorCovariance":
        return FactorCovariance(arrays["factor"], header["scale"])
