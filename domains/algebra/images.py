"""Linear images, multiples and translates: small classes that use the oracles of a set."""

import itertools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ..domain import AbstractDomain, QuadraticMax
from ..errors import DimensionError, InvalidDomainError
from ..floats import Array, Map
from ..oracles.distance import reach_of
from ..oracles.image import ConvexImage
from ..sets.polytope import Polytope
from .arguments import checked_domains, finite_array, points_of, same_kind
from .brackets import bracket, seminorm, value_at
from .members import parts_of

_DUST = 1e-11  # terms between two parts, below this fraction of the form, may be rounding


def linear_image(matrix: "ArrayLike", K: AbstractDomain) -> AbstractDomain:
    """Return the image ``A @ K`` = {A x : x in K} of a domain under a matrix A."""
    A = finite_array("A @ K", matrix)
    if A.ndim != 2 or A.shape[1] != K.dim or A.shape[0] == 0:
        raise DimensionError(f"A @ K: expected A of shape (k, {K.dim}) with k >= 1, got {A.shape}")
    points = points_of(K)
    return K._mapped(A) if points is None else same_kind((K,), points @ A.T)


def scale(K: AbstractDomain, factor: float) -> AbstractDomain:
    """Return the multiple ``factor * K`` = {factor · x : x in K}."""
    c = finite_array("c * K", factor)
    if c.ndim:
        raise InvalidDomainError(
            f"c * K: expected a number c, got shape {c.shape}; hint: A @ K for a matrix A"
        )
    number = float(c)
    points = points_of(K)
    if number == 0:
        return Polytope(np.zeros((1, K.dim)))
    if points is not None:
        return same_kind((K,), number * points)
    return K._scaled(number)


def translate(K: AbstractDomain, shift: "ArrayLike") -> AbstractDomain:
    """Return the translate ``K + v`` = {x + v : x in K}, where v is the shift."""
    v = finite_array("K + v", shift)
    if v.shape != (K.dim,):
        raise DimensionError(f"K + v: expected v of shape ({K.dim},), got {v.shape}")
    points = points_of(K)
    return K._moved(v) if points is None else same_kind((K,), points + v)


@final
@dataclass(frozen=True, eq=False)
class LinearImage(AbstractDomain):
    """The image {A x : x in K} of the body K under the matrix A."""

    matrix: Array
    body: AbstractDomain

    def __post_init__(self) -> None:
        checked_domains("A @ K", self.body)
        object.__setattr__(self, "matrix", finite_array("A @ K", self.matrix))
        if self.matrix.ndim != 2 or self.matrix.shape[1] != self.body.dim:
            raise DimensionError(
                f"A @ K: expected A of shape (k, {self.body.dim}), got {self.matrix.shape}"
            )

    @property
    def dim(self) -> int:
        return self.matrix.shape[0]

    @property
    def is_symmetric(self) -> bool:
        return self.body.is_symmetric

    def _center(self) -> Array | None:
        center = self.body._center()
        return None if center is None else self.matrix @ center

    def _image(self) -> ConvexImage | None:
        inner = self.body._image()
        if inner is None:
            return None
        return ConvexImage(self.matrix @ inner.matrix, inner.blocks, inner.offsets @ self.matrix.T)

    def _difference(self) -> AbstractDomain:
        return linear_image(self.matrix, self.body._difference())

    def _mapped(self, A: Array) -> AbstractDomain:
        return LinearImage(A @ self.matrix, self.body)

    def _scaled(self, factor: float) -> AbstractDomain:
        return LinearImage(factor * self.matrix, self.body)

    def _apart(self) -> tuple[AbstractDomain, Array]:
        still, shift = self.body._apart()
        if not shift.any():
            return self, np.zeros(self.dim)
        return linear_image(self.matrix, still), self.matrix @ shift

    def _near(self, X: Array) -> Array | None:
        near = self.body._near(self.body._before(self.matrix, X))
        return None if near is None else near @ self.matrix.T

    def _magnitudes(self) -> Array:
        return np.abs(self.matrix) @ self.body._magnitudes()

    def _support_point(self, theta: Array) -> Array:
        return self.matrix @ self.body._support_point(theta @ self.matrix)

    def _support_gap(self, theta: Array) -> float:
        return self.body._support_gap(theta @ self.matrix)

    def _product_near(self, x: Array) -> Array | None:
        near = self.body._product_near(self.body._before(self.matrix, x[None])[0])
        return None if near is None else self.matrix @ near

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        apart = None if center.any() else self._part_by_part(form)
        if apart is not None:
            return apart
        image = self._image()
        if image is not None:
            return image.max_quadratic(form, center)
        A = self.matrix
        if not center.any():
            inner = self.body._max_pulled(A, form)
            x = A @ inner.maximizer
            return QuadraticMax(
                x, value_at(x, form, center), max(inner.upper_bound, value_at(x, form, center))
            )
        pulled = A.T @ form @ A
        pulled = (pulled + pulled.T) / 2
        # For form = W'W and any y: ‖W(Ax − c)‖² = ‖WA(x − y)‖² + ‖W(Ay − c)‖² + 2⟨x − y, e⟩. The
        # least-squares solution y makes e small.
        y = np.asarray(
            np.linalg.lstsq(pulled, A.T @ (form @ center), rcond=1e-12)[0], dtype=np.float64
        )
        inner = self.body._max_quadratic(pulled, y)
        left = A @ y - center
        e = A.T @ (form @ left)
        reach = math.sqrt(self.body._max_quadratic(np.eye(self.body.dim), y).upper_bound)
        upper = inner.upper_bound + seminorm(left, form) ** 2 + 2 * reach * float(np.linalg.norm(e))
        return bracket(self._support_point, form, center, upper, [A @ inner.maximizer])

    def _part_by_part(self, form: Array) -> QuadraticMax | None:
        """Return bounds on the largest ``(A x)' form (A x)`` by factors of the body, or None."""
        # None if the body is no Cartesian product, or if the form mixes coordinates of two factors
        pieces = [(self.matrix[:, s], part) for s, part in self.body._factors()]
        if not pieces:
            return None
        reaches = [reach_of(part) for _, part in pieces]
        mixed = 0.0
        for k, m in itertools.combinations(range(len(pieces)), 2):
            mixed += 2 * float(
                reaches[k] @ np.abs(pieces[k][0].T @ form @ pieces[m][0]) @ reaches[m]
            )
        brackets = [
            linear_image(A, part)._max_quadratic(form, np.zeros(self.dim)) for A, part in pieces
        ]
        upper = sum(f.upper_bound for f in brackets)
        if mixed > _DUST * upper:
            return None
        x = sum((f.maximizer for f in brackets), np.zeros(self.dim))
        value = value_at(x, form, np.zeros(self.dim))
        return QuadraticMax(x, value, max(upper + mixed, value))

    def __repr__(self) -> str:
        return f"A @ {self.body!r} in R^{self.dim}"


@final
@dataclass(frozen=True, eq=False)
class Scaled(AbstractDomain):
    """The multiple {c x : x in K} of the body K, for a factor c other than zero."""

    body: AbstractDomain
    factor: float

    def __post_init__(self) -> None:
        checked_domains("c * K", self.body)
        number = isinstance(self.factor, int | float) and math.isfinite(self.factor)
        if not (number and self.factor != 0):
            raise InvalidDomainError(
                f"c * K: expected a finite c other than zero, got {self.factor!r}"
            )

    @property
    def dim(self) -> int:
        return self.body.dim

    @property
    def is_symmetric(self) -> bool:
        return self.body.is_symmetric

    def _center(self) -> Array | None:
        center = self.body._center()
        return None if center is None else self.factor * center

    def _image(self) -> ConvexImage | None:
        inner = self.body._image()
        if inner is None:
            return None
        return ConvexImage(self.factor * inner.matrix, inner.blocks, self.factor * inner.offsets)

    def _difference(self) -> AbstractDomain:
        return scale(self.body._difference(), abs(self.factor))

    def _mapped(self, A: Array) -> AbstractDomain:
        return LinearImage(self.factor * A, self.body)

    def _scaled(self, factor: float) -> AbstractDomain:
        return scale(self.body, factor * self.factor)

    def _apart(self) -> tuple[AbstractDomain, Array]:
        still, shift = self.body._apart()
        return (
            (scale(still, self.factor), self.factor * shift)
            if shift.any()
            else (self, np.zeros(self.dim))
        )

    def _near(self, X: Array) -> Array | None:
        near = self.body._near(X / self.factor)
        return None if near is None else near * self.factor

    def _map_into(self) -> Map | None:
        inner, factor = self.body._map_into(), self.factor
        return None if inner is None else lambda X: inner(X / factor) * factor

    def _magnitudes(self) -> Array:
        return abs(self.factor) * self.body._magnitudes()

    def _support_point(self, theta: Array) -> Array:
        return self.factor * self.body._support_point(math.copysign(1.0, self.factor) * theta)

    def _support_gap(self, theta: Array) -> float:
        return abs(self.factor) * self.body._support_gap(math.copysign(1.0, self.factor) * theta)

    def _product_near(self, x: Array) -> Array | None:
        near = self.body._product_near(x / self.factor)
        return None if near is None else self.factor * near

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        inner = self.body._max_quadratic(form, center / self.factor)
        square = self.factor**2
        return QuadraticMax(
            self.factor * inner.maximizer, square * inner.value, square * inner.upper_bound
        )

    def _contains(self, x: Array) -> bool:
        return self.body._contains(x / self.factor)

    def __repr__(self) -> str:
        return f"{self.factor:g} * {self.body!r}"


@final
@dataclass(frozen=True, eq=False)
class Translate(AbstractDomain):
    """The translate {x + v : x in K} of the body K by the shift v."""

    body: AbstractDomain
    shift: Array

    def __post_init__(self) -> None:
        checked_domains("K + v", self.body)
        object.__setattr__(self, "shift", finite_array("K + v", self.shift))
        if self.shift.shape != (self.body.dim,):
            raise DimensionError(
                f"K + v: expected v of shape ({self.body.dim},), got {self.shift.shape}"
            )

    @property
    def dim(self) -> int:
        return self.body.dim

    @property
    def is_symmetric(self) -> bool:
        center = self._center()
        return center is not None and not center.any()

    def _center(self) -> Array | None:
        center = self.body._center()
        return None if center is None else center + self.shift

    def _image(self) -> ConvexImage | None:
        inner = self.body._image()
        return (
            None
            if inner is None
            else ConvexImage(inner.matrix, inner.blocks, inner.offsets + self.shift)
        )

    def _difference(self) -> AbstractDomain:
        return self.body._difference()

    def _mapped(self, A: Array) -> AbstractDomain:
        return translate(linear_image(A, self.body), A @ self.shift)

    def _scaled(self, factor: float) -> AbstractDomain:
        return translate(scale(self.body, factor), factor * self.shift)

    def _moved(self, shift: Array) -> AbstractDomain:
        return translate(self.body, self.shift + shift)

    def _drift(self, shift: Array) -> float:
        return super()._drift(self.body._apart()[1])

    def _apart(self) -> tuple[AbstractDomain, Array]:
        still, shift = self.body._apart()
        return still, shift + self.shift

    def _near(self, X: Array) -> Array | None:
        near = self.body._near(X - self.shift)
        return None if near is None else near + self.shift

    def _map_into(self) -> Map | None:
        inner, shift = self.body._map_into(), self.shift
        return None if inner is None else lambda X: inner(X - shift) + shift

    def _magnitudes(self) -> Array:
        return self.body._magnitudes() + np.abs(self.shift)

    def _support_point(self, theta: Array) -> Array:
        return self.body._support_point(theta) + self.shift

    def _support_gap(self, theta: Array) -> float:
        return self.body._support_gap(theta)

    def _product_near(self, x: Array) -> Array | None:
        near = self.body._product_near(x - self.shift)
        return None if near is None else near + self.shift

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        inner = self.body._max_quadratic(form, center - self.shift)
        return QuadraticMax(inner.maximizer + self.shift, inner.value, inner.upper_bound)

    def _contains(self, x: Array) -> bool:
        return self.body._contains(x - self.shift)

    def __repr__(self) -> str:
        return f"({self.body!r} + v)"


def pulls_back(domain: AbstractDomain) -> bool:
    """Return whether the domain is, or contains, an image A K whose maxima are found over K.

    Coordinates in K may be larger than those in A K. Rounding errors may then be larger, too.
    """
    own = isinstance(domain, LinearImage) and domain._image() is None
    return own or any(pulls_back(part) for part in parts_of(domain))
