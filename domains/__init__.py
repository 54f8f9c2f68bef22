"""Bounded sets K in R^d, known through their oracles. Knows nothing of privacy."""

from ._domain import AbstractDomain, AbstractFiniteDomain, QuadraticMax
from ._finite import FiniteSet
from ._marginals import Marginals
from .errors import DimensionError, DomainError, DomainTooLargeError, InvalidDomainError

# gaussnoise checks this on import, to tell our package from a user's own ./domains folder
__gaussnoise_version__ = "0.1.0"

__all__ = [
    "AbstractDomain",
    "AbstractFiniteDomain",
    "DimensionError",
    "DomainError",
    "DomainTooLargeError",
    "FiniteSet",
    "InvalidDomainError",
    "Marginals",
    "QuadraticMax",
]
