"""Convex hulls of unions."""

import itertools
import operator
from dataclasses import dataclass
from typing import final

import numpy as np

from ..domain import AbstractDomain, QuadraticMax
from ..floats import Array
from ..sets.polytope import Polytope
from .arguments import checked_domains, convex, points_of
from .images import linear_image, translate
from .parts import AbstractOfOneSpace, check_same_space


def hull(first: AbstractDomain, *others: AbstractDomain) -> AbstractDomain:
    """Return the convex hull of the union of domains of one space.

    >>> hull(LpBall(2, 2), FiniteSet([[3.0, 0.0]])).support([1.0, 0.0])
    3.0
    """
    parts = checked_domains("hull", first, *others)
    check_same_space("hull", parts)
    points = [points_of(K) for K in parts]
    if all(listed is not None for listed in points):
        return Polytope(np.vstack([listed for listed in points if listed is not None]))
    flat = itertools.chain.from_iterable(
        K.parts if isinstance(K, Hull) else (convex(K),) for K in parts
    )
    return Hull(tuple(flat))


@final
@dataclass(frozen=True, eq=False)
class Hull(AbstractOfOneSpace):
    """The convex hull of the union of the parts."""

    operation = "hull"

    def _mapped(self, A: Array) -> AbstractDomain:
        return Hull(tuple(linear_image(A, K) for K in self.parts))  # each part keeps its own oracle

    def _apart(self) -> tuple[AbstractDomain, Array]:
        shift = self.parts[0]._apart()[1]
        if not shift.any():
            return self, np.zeros(self.dim)
        return Hull(tuple(translate(K, -shift) for K in self.parts)), shift

    def _near(self, X: Array) -> Array | None:
        """Return a member near each row of X: the nearest one among those that the parts return."""
        near = [members for members in (K._near(X) for K in self.parts) if members is not None]
        apart = [np.linalg.norm(X - members, axis=1) for members in near]
        return np.array(near)[np.argmin(apart, axis=0), np.arange(len(X))] if near else None

    def _magnitudes(self) -> Array:
        return np.max([K._magnitudes() for K in self.parts], axis=0)

    def _support_point(self, theta: Array) -> Array:
        return max((K._support_point(theta) for K in self.parts), key=lambda x: float(theta @ x))

    def _support_gap(self, theta: Array) -> float:
        values = [float(theta @ K._support_point(theta)) for K in self.parts]
        gaps = [K._support_gap(theta) for K in self.parts]
        return max(map(operator.add, values, gaps)) - max(values)

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        brackets = [K._max_quadratic(form, center) for K in self.parts]
        best = max(brackets, key=lambda f: f.value)
        return QuadraticMax(best.maximizer, best.value, max(f.upper_bound for f in brackets))

    def __repr__(self) -> str:
        return f"hull({', '.join(map(repr, self.parts))})"
