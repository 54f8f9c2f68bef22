"""Bounded sets K in R^d, known through their oracles. Knows nothing of privacy."""

from ._bases import AbstractBase, Base, Bins, Identity, Leading, Moments, Prefix, Ranges, Total, Windows
from ._combinators import hull, kron, product
from ._domain import AbstractDomain, AbstractFiniteDomain, AbstractPolytope, QuadraticMax
from ._ellipsoid import Ellipsoid
from ._finite import FiniteSet
from ._lp_ball import LpBall
from ._marginals import Marginals
from ._polytope import Polytope
from ._products import Products
from ._schatten import SchattenBall
from ._tensor import TensorPower
from ._two_convex import TwoConvex
from ._zonotope import Zonotope
from .errors import DimensionError, DomainError, DomainTooLargeError, InvalidDomainError

# gaussnoise checks this on import, to tell our package from a user's own ./domains folder
__gaussnoise_version__ = "0.1.0"

__all__ = [
    "AbstractBase",
    "AbstractDomain",
    "AbstractFiniteDomain",
    "AbstractPolytope",
    "Base",
    "Bins",
    "DimensionError",
    "DomainError",
    "DomainTooLargeError",
    "Ellipsoid",
    "FiniteSet",
    "Identity",
    "InvalidDomainError",
    "Leading",
    "LpBall",
    "Marginals",
    "Moments",
    "Polytope",
    "Prefix",
    "Products",
    "QuadraticMax",
    "Ranges",
    "SchattenBall",
    "TensorPower",
    "Total",
    "TwoConvex",
    "Windows",
    "Zonotope",
    "hull",
    "kron",
    "product",
]
