"""Covariances that are Kronecker products, stored as their factors."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from domains.algebra.products import parts_over_time
from domains.domain import AbstractDomain
from domains.floats import Array

from ..errors import CovarianceError
from .covariance import AbstractCovariance, FactorCovariance, Stored
from .marginal_covariance import MarginalCovariance
from .product_covariance import ProductCovariance
from .stream_covariance import StreamCovariance

_KINDS: dict[str, type[AbstractCovariance]] = {
    cls.__name__: cls
    for cls in (FactorCovariance, MarginalCovariance, ProductCovariance, StreamCovariance)
}


@final
@dataclass(frozen=True, eq=False)
class KroneckerCovariance(AbstractCovariance):
    """A covariance ``M = M_1 ⊗ … ⊗ M_m``, a Kronecker product.

    Attributes:
        parts: the covariances M_1, …, M_m of the factors.
    """

    parts: tuple[AbstractCovariance, ...]

    @property
    def dim(self) -> int:
        return math.prod(part.dim for part in self.parts)

    def standard_deviation(self) -> Array:
        return kronecker(part.standard_deviation() for part in self.parts)

    def error(self, p: float) -> float:
        return math.prod(part.error(p) for part in self.parts)

    def factor(self) -> Array:
        factors = [part.factor() for part in self.parts]
        self._check_dense(math.prod(factor.size for factor in factors))
        return kronecker(factors)

    def written_out(self) -> FactorCovariance | None:
        """Return the same covariance with one dense factor; None if a part is stored otherwise."""
        known = [part for part in self.parts if isinstance(part, FactorCovariance)]
        if len(known) < len(self.parts):
            return None
        factors = [part.unit_factor for part in known]
        self._check_dense(math.prod(factor.size for factor in factors))
        return FactorCovariance(kronecker(factors), math.prod(part.scale for part in known))

    def toarray(self) -> Array:
        self._check_dense(self.dim**2)
        return kronecker(part.toarray() for part in self.parts)

    def _multiply(self, x: Array) -> Array:
        tensor = x.reshape([*(part.dim for part in self.parts), -1])
        for axis, part in enumerate(self.parts):
            along = np.moveaxis(tensor, axis, 0)
            tensor = np.moveaxis((part @ along.reshape(part.dim, -1)).reshape(along.shape), 0, axis)
        return tensor.reshape(x.shape)

    def encode(self) -> Stored:
        header, arrays = joined("covariances", [part.encode() for part in self.parts])
        return header | {"covariance_kinds": [type(part).__name__ for part in self.parts]}, arrays

    @classmethod
    def decode(
        cls, domain: AbstractDomain, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        domains = parts_over_time(domain)
        if domains is None:
            raise CovarianceError("load: expected a Kronecker product with the covariance of one")
        kinds = [_KINDS[name] for name in header["covariance_kinds"]]
        described = zip(kinds, domains, header["covariances"], strict=True)
        return cls(
            tuple(
                kind.decode(K, own, arrays_of_part(arrays, k))
                for k, (kind, K, own) in enumerate(described)
            )
        )


def kronecker(arrays: Iterable[Array]) -> Array:
    """Return the Kronecker product of all arrays."""
    return np.asarray(reduce(np.kron, arrays), dtype=np.float64)


def joined(name: str, stored: list[Stored]) -> Stored:
    """Return the headers and arrays of all parts as one header and one set of arrays.

    The header lists the parts' headers under ``name``. The array ``key`` of part k is named
    ``key@k``.
    """
    arrays = {
        f"{key}@{k}": array
        for k, (_, numbers) in enumerate(stored)
        for key, array in numbers.items()
    }
    return {name: [header for header, _ in stored]}, arrays


def arrays_of_part(arrays: dict[str, NDArray[Any]], k: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of part k of a Kronecker product, under the names without ``@k``."""
    end = f"@{k}"
    return {name.removesuffix(end): array for name, array in arrays.items() if name.endswith(end)}
