"""The dual certificate for Kronecker products: a product of measures."""

import math
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from domains.algebra.products import parts_over_time
from domains.floats import Array

from ...errors import CertificateError
from ...numerics.rounding import ROUNDING_MARGIN
from ..covariance import AbstractCovariance, Stored
from ..kronecker_covariance import KroneckerCovariance, arrays_of_part, joined, kronecker
from ..problem import Problem
from .certificate import Certificate, Verification
from .marginals import MarginalCertificate
from .points import PointCertificate
from .products import ProductCertificate
from .streams import StreamCertificate
from .tensors import TensorCertificate

_KINDS: dict[str, type[Certificate]] = {
    cls.__name__: cls
    for cls in (
        MarginalCertificate,
        PointCertificate,
        ProductCertificate,
        StreamCertificate,
        TensorCertificate,
    )
}


@final
@dataclass(frozen=True, eq=False)
class KroneckerCertificate(Certificate):
    """A product of measures and of coordinate weights: one certificate for each Kronecker factor.

    ``tr ((W_1 ⊗ W_2)^½ (C_1 ⊗ C_2) (W_1 ⊗ W_2)^½)^½`` is the product of the parts' traces, and the
    norm of a product of weights is the product of their norms: so lower bounds multiply. The
    product of covariances covers ``±(K_1 ⊗ K_2) = (±K_1) ⊗ (±K_2)``, and its error is the product
    of the errors: so upper bounds multiply.

    Attributes:
        parts: one certificate for each Kronecker factor.

    Source: Nikolov & Tang (2023), Lemma 62; Lee, Shraibman & Špalek (2008) for p = ∞.
    """

    parts: tuple[Certificate, ...]

    def lower_bound(self) -> float:
        return product_below([part.lower_bound() for part in self.parts])

    def spectrum(self) -> tuple[Array, Array]:
        values, counts = zip(*(part.spectrum() for part in self.parts), strict=True)
        return kronecker(values) * (1 - ROUNDING_MARGIN), kronecker(counts)

    @property
    def caption(self) -> str:
        return "a product of measures, which lists no points"

    def check(
        self, problem: Problem, covariance: AbstractCovariance, center: Array, claimed: float
    ) -> list[Verification]:
        """Check every part by its own certificate, as a separate problem."""
        domains = parts_over_time(problem.domain)
        if (
            domains is None
            or problem.protected != "add-remove"
            or not isinstance(covariance, KroneckerCovariance)
            or not len(domains) == len(self.parts) == len(covariance.parts)
        ):
            raise CertificateError(
                "verify: the certificate of a Kronecker product belongs to another problem"
            )
        doubts = [
            _worst(part.check(Problem(K, problem.p, "add-remove"), M, np.zeros(K.dim), 1.0))
            for part, K, M in zip(self.parts, domains, covariance.parts, strict=True)
        ]
        if not all(one.enclosure <= 1 for one in doubts):  # check each part by itself
            raise CertificateError("verify: too little noise for a part of a Kronecker product")
        return [
            Verification(
                gamma=product_above([one.gamma for one in doubts]),
                gamma_lower=product_below([one.gamma_lower for one in doubts]),
                enclosure=math.prod(one.enclosure for one in doubts),
                sensitivity_squared=math.prod(one.sensitivity_squared for one in doubts),
                rounding=math.fsum(one.rounding + 8 * ROUNDING_MARGIN for one in doubts),
            )
        ]

    def encode(self) -> Stored:
        header, arrays = joined("certificates", [part.encode() for part in self.parts])
        return header | {"kinds": [type(part).__name__ for part in self.parts]}, arrays

    @classmethod
    def decode(
        cls, problem: Problem, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
    ) -> Self:
        domains = parts_over_time(problem.domain)
        if domains is None:
            raise CertificateError("load: expected a Kronecker product with the certificate of one")
        kinds = [_KINDS[name] for name in header["kinds"]]
        described = zip(kinds, domains, header["certificates"], strict=True)
        return cls(
            tuple(
                kind.decode(Problem(K, problem.p, "add-remove"), own, arrays_of_part(arrays, k))
                for k, (kind, K, own) in enumerate(described)
            )
        )


def _worst(checks: list[Verification]) -> Verification:
    return Verification(
        gamma=max(one.gamma for one in checks),
        gamma_lower=min(one.gamma_lower for one in checks),
        enclosure=max(one.enclosure for one in checks),
        sensitivity_squared=max(one.sensitivity_squared for one in checks),
        rounding=max(one.rounding for one in checks),
    )


def product_above(bounds: list[float]) -> float:
    """Return a product of nonnegative numbers, rounded up."""
    return math.prod(bounds) * (1 + len(bounds) * 2.0**-52)


def product_below(bounds: list[float]) -> float:
    """Return a product of nonnegative numbers, rounded down."""
    return math.prod(bounds) * (1 - len(bounds) * 2.0**-52)
