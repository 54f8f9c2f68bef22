"""Minkowski sums."""

import itertools
import math
from dataclasses import dataclass
from functools import reduce
from typing import final

import numpy as np

from ..domain import AbstractDomain, QuadraticMax
from ..floats import Array
from ..oracles.image import ConvexImage
from ..sets.zonotope import Zonotope
from .arguments import checked_domains, convex, few_offsets, points_of_all, same_kind
from .brackets import bracket, middle_of, seminorm
from .images import Translate, linear_image, translate
from .parts import AbstractOfOneSpace, check_same_space


def minkowski_sum(first: AbstractDomain, second: AbstractDomain) -> AbstractDomain:
    """Return the Minkowski sum ``K + L`` = {x + y : x in K, y in L} of two domains.

    If K and L are translates, the sum is translated only once, by the sum of both shifts.
    """
    parts = checked_domains("K + L", first, second)
    check_same_space("K + L", parts)
    shift = np.zeros(first.dim)
    flat: list[AbstractDomain] = []
    for K in parts:
        if isinstance(K, Translate):
            shift, K = shift + K.shift, K.body
        flat += K.parts if isinstance(K, MinkowskiSum) else [K]
    zonotopes = [K for K in flat if isinstance(K, Zonotope)]
    rest = [K for K in flat if not isinstance(K, Zonotope)]
    if zonotopes:
        generators = np.vstack([K.generators for K in zonotopes])
        rest.append(Zonotope(generators, sum((K.center for K in zonotopes), np.zeros(first.dim))))
    listed = points_of_all(rest, first.dim)
    if listed is not None:
        return same_kind(rest, np.array([sum(xs) for xs in itertools.product(*listed)]) + shift)
    summed = rest[0] if len(rest) == 1 else MinkowskiSum(tuple(convex(K) for K in rest))
    return translate(summed, shift) if shift.any() else summed


@final
@dataclass(frozen=True, eq=False)
class MinkowskiSum(AbstractOfOneSpace):
    """The Minkowski sum {x_1 + … + x_m : x_k in K_k} of the parts K_k."""

    operation = "K + L"

    def _center(self) -> Array | None:
        centers = self._centers()
        return None if centers is None else sum(centers, np.zeros(self.dim))

    def _image(self) -> ConvexImage | None:
        images = [inner for inner in (K._image() for K in self.parts) if inner is not None]
        if len(images) < len(self.parts) or not few_offsets(images, self.dim):
            return None
        return _image_of_sum(images)

    def _difference(self) -> AbstractDomain:
        return reduce(minkowski_sum, (K._difference() for K in self.parts))

    def _mapped(self, A: Array) -> AbstractDomain:
        return reduce(minkowski_sum, (linear_image(A, K) for K in self.parts))

    def _apart(self) -> tuple[AbstractDomain, Array]:
        moves, nothing = self._moves(), np.zeros(self.dim)
        return (
            (self, nothing)
            if moves is None
            else (reduce(minkowski_sum, moves[0]), sum(moves[1], nothing))
        )

    def _magnitudes(self) -> Array:
        return sum((K._magnitudes() for K in self.parts), np.zeros(self.dim))

    def _support_point(self, theta: Array) -> Array:
        return sum((K._support_point(theta) for K in self.parts), np.zeros(self.dim))

    def _support_gap(self, theta: Array) -> float:
        return sum(K._support_gap(theta) for K in self.parts)

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        image = self._image()
        if image is not None:
            return image.max_quadratic(form, center)
        # summands that are images are bounded together, as one image; others one by one
        images = [(K, inner) for K in self.parts if (inner := K._image()) is not None]
        rest = [K for K in self.parts if K._image() is None]
        middles = [middle_of(K) for K in rest]
        aim = center - sum(middles, np.zeros(self.dim))
        brackets = [K._max_quadratic(form, middle) for K, middle in zip(rest, middles, strict=True)]
        if images and few_offsets([inner for _, inner in images], self.dim):
            brackets.append(_image_of_sum([inner for _, inner in images]).max_quadratic(form, aim))
            aim = np.zeros(self.dim)
        else:
            for K, _ in images:
                middle = middle_of(K)
                brackets.append(K._max_quadratic(form, middle))
                aim = aim - middle
        upper = (seminorm(aim, form) + sum(math.sqrt(f.upper_bound) for f in brackets)) ** 2
        start = sum((f.maximizer for f in brackets), np.zeros(self.dim))
        return bracket(self._support_point, form, center, upper, [start])

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


def _image_of_sum(images: list[ConvexImage]) -> ConvexImage:
    offsets = reduce(
        lambda a, b: (a[:, None] + b).reshape(-1, a.shape[1]), (inner.offsets for inner in images)
    )
    blocks = tuple(itertools.chain.from_iterable(inner.blocks for inner in images))
    return ConvexImage(np.hstack([inner.matrix for inner in images]), blocks, offsets)
