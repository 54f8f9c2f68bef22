"""Bounded sets K in R^d, known through their oracles. This package knows nothing of privacy."""

from .algebra.hulls import hull
from .algebra.products import kron, product
from .domain import AbstractDomain, AbstractFiniteDomain, AbstractPolytope, QuadraticMax
from .errors import DimensionError, DomainError, DomainTooLargeError, InvalidDomainError
from .sets.box_moments import BoxMoments
from .sets.ellipsoid import Ellipsoid
from .sets.finite import FiniteSet
from .sets.lp_ball import LpBall
from .sets.polytope import Polytope
from .sets.schatten import SchattenBall
from .sets.stream import StreamWorkload
from .sets.tensor import TensorPower
from .sets.two_convex import TwoConvex
from .sets.zonotope import Zonotope
from .tables.arcs import Arcs
from .tables.bases import (
    AbstractBase,
    Base,
    Bins,
    Groups,
    Identity,
    Leading,
    Moments,
    Prefix,
    Ranges,
    Total,
    Windows,
)
from .tables.clipped import Clipped
from .tables.marginals import Marginals
from .tables.products import Products

# gaussnoise checks this on import, to distinguish our package from a user's ./domains folder
__gaussnoise_version__ = "0.1.0"

__all__ = [
    "AbstractBase",
    "AbstractDomain",
    "AbstractFiniteDomain",
    "AbstractPolytope",
    "Arcs",
    "Base",
    "Bins",
    "BoxMoments",
    "Clipped",
    "DimensionError",
    "DomainError",
    "DomainTooLargeError",
    "Ellipsoid",
    "FiniteSet",
    "Groups",
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
    "StreamWorkload",
    "TensorPower",
    "Total",
    "TwoConvex",
    "Windows",
    "Zonotope",
    "hull",
    "kron",
    "product",
]
