"""Difference bodies of sets without a center."""

import itertools
import math
from dataclasses import dataclass
from typing import final

import numpy as np

from ..domain import AbstractDomain, QuadraticMax
from ..floats import Array
from ..oracles.image import ConvexImage
from .arguments import LISTED_ENTRIES, checked_domains, points_of
from .brackets import bracket, middle_of, seminorm
from .hulls import Hull, hull
from .images import LinearImage, linear_image

_PAIRS = 2**26
_RECENTERINGS = 12


@final
@dataclass(frozen=True, eq=False)
class DifferenceBody(AbstractDomain):
    """The difference body {x − y : x, y in K} of a set K without a center of symmetry.

    The general upper bound is four times the quadratic maximum of K about the center of a small
    enclosing ellipsoid. By Jung's theorem (1901), this is less than twice the maximum over K − K.
    """

    body: AbstractDomain

    def __post_init__(self) -> None:
        checked_domains("K - K", self.body)

    @property
    def dim(self) -> int:
        return self.body.dim

    @property
    def is_symmetric(self) -> bool:
        return True

    def _image(self) -> ConvexImage | None:
        inner = self.body._image()
        if inner is None or len(inner.offsets) ** 2 * self.dim > LISTED_ENTRIES:
            return None
        offsets = (inner.offsets[:, None] - inner.offsets).reshape(-1, self.dim)
        return ConvexImage(2 * inner.matrix, inner.blocks, offsets)

    def _mapped(self, A: Array) -> AbstractDomain:
        if isinstance(self.body, Hull):  # each part of a hull has an oracle of its own
            return DifferenceBody(linear_image(A, self.body))
        return LinearImage(A, self)

    def _magnitudes(self) -> Array:
        return 2 * self.body._magnitudes()

    def _support_point(self, theta: Array) -> Array:
        return self.body._support_point(theta) - self.body._support_point(-theta)

    def _support_gap(self, theta: Array) -> float:
        return self.body._support_gap(theta) + self.body._support_gap(-theta)

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        if isinstance(self.body, Hull):
            parts = self.body.parts
            signs = (1, -1) if center.any() else (1,)
            mixed = [sign * (K - L) for K, L in itertools.combinations(parts, 2) for sign in signs]
            return hull(*(K - K for K in parts), *mixed)._max_quadratic(form, center)
        points = points_of(self.body)
        if points is not None and len(points) ** 2 <= _PAIRS:
            return _farthest_pair(points, form, center)
        image = self._image()
        if image is not None:
            return image.max_quadratic(form, center)
        middle, upper, far = middle_of(self.body), math.inf, []
        for k in range(_RECENTERINGS):  # move towards the farthest point (Badoiu & Clarkson 2003)
            inner = self.body._max_quadratic(form, middle)
            upper = min(upper, inner.upper_bound)
            far.append(inner.maximizer)
            middle = middle + (inner.maximizer - middle) / (k + 2)
        # triangle inequality: x − y − c = (x − middle) − (y − middle) − c
        upper = (2 * math.sqrt(upper) + seminorm(center, form)) ** 2
        return bracket(self._support_point, form, center, upper, [far[0] - x for x in far[1:]])

    def __repr__(self) -> str:
        return f"({self.body!r} − itself)"


def _farthest_pair(points: Array, form: Array, center: Array) -> QuadraticMax:
    """Return the largest ``(d − center)' form (d − center)`` over differences d of two points."""
    best = QuadraticMax(np.zeros(points.shape[1]), -math.inf, -math.inf)
    chunk = max(1, 2**22 // (len(points) * points.shape[1]))
    for start in range(0, len(points), chunk):
        moved = (points[start : start + chunk, None] - points).reshape(-1, points.shape[1]) - center
        values = np.einsum("ij,ij->i", moved @ form, moved)
        top = int(values.argmax())
        if values[top] > best.value:
            best = QuadraticMax(moved[top] + center, float(values[top]), float(values[top]))
    return best
