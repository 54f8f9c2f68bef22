"""The algebra of domains: images, translates, sums, products and hulls, each a small class composing oracles.

The functions simplify where the result is again a plain domain; the classes are what is left. Non-convex parts stand
for their convex hulls: no noise can tell the difference (Nikolov & Tang 2023, Theorem 20).
"""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag

from ..domain import AbstractDomain, AbstractFiniteDomain, Array, QuadraticMax, read_only
from ..errors import DimensionError, DomainTooLargeError, InvalidDomainError
from ..oracles.image import ConvexImage
from ..sets.ellipsoid import Ellipsoid
from ..sets.finite import FiniteSet
from ..sets.lp_ball import LpBall
from ..sets.polytope import Polytope
from ..sets.schatten import SchattenBall
from ..sets.zonotope import Zonotope

_LISTED_ENTRIES = 2**22  # combinations of points are listed up to this many numbers: 32 MB
_MOST_ENTRIES = 2**27  # in a matrix built by the algebra: 1 GB
_PAIRS = 2**26
_ASCENTS = 100
_STARTS = 12
_RECENTERINGS = 12
_DUST = 1e-11  # of a quadratic form: what rounding leaves of products that are zero


def product(first: AbstractDomain, *others: AbstractDomain) -> AbstractDomain:
    """The Cartesian product {(x, y, …) : x in K, y in L, …}, coordinates one after another.

    >>> product(FiniteSet([[0.0], [1.0]]), LpBall(2, 2)).support([1.0, 3.0, 4.0])
    6.0
    """
    parts = _domains("product", first, *others)
    listed = _listed(parts, sum(K.dim for K in parts))
    if listed is not None:
        return _same_kind(parts, np.array([np.concatenate(xs) for xs in itertools.product(*listed)]))
    return Product(tuple(_convex(K) for K in parts))


def kron(first: AbstractDomain, *others: AbstractDomain) -> AbstractDomain:
    """The Kronecker product {x ⊗ y : x in K, y in L}, in R^(dim K · dim L), C order.

    For symmetric K and L, ``γ_p(K ⊗ L) = γ_p(K) γ_p(L)`` (Nikolov & Tang 2023, Lemma 62).

    >>> kron(FiniteSet([[1.0, 2.0]]), FiniteSet([[1.0, 10.0]])).points
    array([[ 1., 10.,  2., 20.]])
    """
    parts = _domains("kron", first, *others)
    listed = _listed(parts, math.prod(K.dim for K in parts))
    if listed is not None:
        return _same_kind(parts, np.array([reduce(np.kron, xs) for xs in itertools.product(*listed)]))
    return reduce(Kronecker, parts)


def hull(first: AbstractDomain, *others: AbstractDomain) -> AbstractDomain:
    """The convex hull of the union of domains of one space.

    >>> hull(LpBall(2, 2), FiniteSet([[3.0, 0.0]])).support([1.0, 0.0])
    3.0
    """
    parts = _domains("hull", first, *others)
    _check_same_space("hull", parts)
    points = [_points(K) for K in parts]
    if all(listed is not None for listed in points):
        return Polytope(np.vstack([listed for listed in points if listed is not None]))
    flat = itertools.chain.from_iterable(K.parts if isinstance(K, Hull) else (_convex(K),) for K in parts)
    return Hull(tuple(flat))


def linear_image(matrix: ArrayLike, K: AbstractDomain) -> AbstractDomain:
    """``A @ K``."""
    A = _finite_array("A @ K", matrix)
    if A.ndim != 2 or A.shape[1] != K.dim or A.shape[0] == 0:
        raise DimensionError(f"A @ K: expected A of shape (k, {K.dim}) with k >= 1, got {A.shape}")
    points = _points(K)
    if points is not None:
        return _same_kind((K,), points @ A.T)
    if isinstance(K, Zonotope):
        return Zonotope(K.generators @ A.T, A @ K.center)
    if isinstance(K, LinearImage):
        return LinearImage(A @ K.matrix, K.body)
    if isinstance(K, Translate):
        return translate(linear_image(A, K.body), A @ K.shift)
    if isinstance(K, MinkowskiSum):
        return reduce(minkowski_sum, (linear_image(A, part) for part in K.parts))
    if isinstance(K, Scaled):
        return LinearImage(K.factor * A, K.body)
    if isinstance(K, Hull):  # each part by its own oracle
        return Hull(tuple(linear_image(A, part) for part in K.parts))
    if isinstance(K, DifferenceBody) and isinstance(K.body, Hull):
        return DifferenceBody(linear_image(A, K.body))
    if isinstance(K, Product) and any(isinstance(part, Translate) for part in K.parts):
        # shifts that A takes back are then no part of any square
        shift = np.concatenate([L.shift if isinstance(L, Translate) else np.zeros(L.dim) for L in K.parts])
        still = Product(tuple(L.body if isinstance(L, Translate) else L for L in K.parts))
        return translate(LinearImage(A, still), A @ shift)
    return LinearImage(A, K)


def scale(K: AbstractDomain, factor: float) -> AbstractDomain:
    """``factor * K``."""
    c = _finite_array("c * K", factor)
    if c.ndim:
        raise InvalidDomainError(f"c * K: expected a number c, got shape {c.shape}; hint: A @ K for a matrix A")
    number = float(c)
    points = _points(K)
    if number == 0:
        return Polytope(np.zeros((1, K.dim)))
    if points is not None:
        return _same_kind((K,), number * points)
    if isinstance(K, Zonotope):
        return Zonotope(number * K.generators, number * K.center)
    if isinstance(K, LpBall):
        return LpBall(K.dim, K.q, abs(number) * K.radius)
    if isinstance(K, SchattenBall):
        return SchattenBall(K.shape, K.q, abs(number) * K.radius)
    if isinstance(K, LinearImage):
        return LinearImage(number * K.matrix, K.body)
    if isinstance(K, Translate):
        return translate(scale(K.body, number), number * K.shift)
    if isinstance(K, MinkowskiSum):
        return MinkowskiSum(tuple(scale(part, number) for part in K.parts))
    if isinstance(K, Hull):
        return Hull(tuple(scale(part, number) for part in K.parts))
    if isinstance(K, Product):
        return Product(tuple(scale(part, number) for part in K.parts))
    if isinstance(K, Scaled):
        return scale(K.body, number * K.factor)
    if number < 0 and K.is_symmetric:
        number = -number
    return K if number == 1 else Scaled(K, number)


def translate(K: AbstractDomain, shift: ArrayLike) -> AbstractDomain:
    """``K + v``."""
    v = _finite_array("K + v", shift)
    if v.shape != (K.dim,):
        raise DimensionError(f"K + v: expected v of shape ({K.dim},), got {v.shape}")
    points = _points(K)
    if points is not None:
        return _same_kind((K,), points + v)
    if isinstance(K, Zonotope):
        return Zonotope(K.generators, K.center + v)
    if isinstance(K, Ellipsoid):
        return Ellipsoid(K.M, K.center + v)
    if isinstance(K, Translate):
        return translate(K.body, K.shift + v)
    if isinstance(K, Product):
        return Product(tuple(translate(part, v[s]) for part, s in zip(K.parts, K.slices(), strict=True)))
    return Translate(K, v) if v.any() else K


def minkowski_sum(first: AbstractDomain, second: AbstractDomain) -> AbstractDomain:
    """``K + L``; the summands' translates are collected into one."""
    parts = _domains("K + L", first, second)
    _check_same_space("K + L", parts)
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
    listed = _listed(rest, first.dim)
    if listed is not None:
        return _same_kind(rest, np.array([sum(xs) for xs in itertools.product(*listed)]) + shift)
    summed = rest[0] if len(rest) == 1 else MinkowskiSum(tuple(_convex(K) for K in rest))
    return translate(summed, shift) if shift.any() else summed


def apart(K: AbstractDomain) -> tuple[AbstractDomain, Array]:
    """A domain near the origin, and the v by which K is moved from there: sizes far below v keep all their digits.

    The domain has the shape of K exactly. Where K was moved in several steps, their sum v is rounded.
    """
    nothing = np.zeros(K.dim)
    if isinstance(K, Translate):
        still, shift = apart(K.body)
        return still, shift + K.shift
    if isinstance(K, FiniteSet | Polytope):
        points = K.points if isinstance(K, FiniteSet) else K.vertices
        return _same_kind((K,), points - points[0]), points[0].copy()
    if isinstance(K, Zonotope):
        return Zonotope(K.generators), K.center.copy()
    if isinstance(K, Ellipsoid):
        return Ellipsoid(K.M), K.center.copy()
    if isinstance(K, LinearImage | Scaled):
        still, shift = apart(K.body)
        if not shift.any():
            return K, nothing
        if isinstance(K, LinearImage):
            return linear_image(K.matrix, still), K.matrix @ shift
        return scale(still, K.factor), K.factor * shift
    if isinstance(K, Product | MinkowskiSum):
        parts = [apart(part) for part in K.parts]
        if not any(shift.any() for _, shift in parts):
            return K, nothing
        if isinstance(K, Product):
            return Product(tuple(still for still, _ in parts)), np.concatenate([shift for _, shift in parts])
        return reduce(minkowski_sum, (still for still, _ in parts)), sum((shift for _, shift in parts), nothing)
    if isinstance(K, Hull):
        shift = apart(K.parts[0])[1]
        return (Hull(tuple(translate(part, -shift) for part in K.parts)), shift) if shift.any() else (K, nothing)
    return K, nothing


def _domains(operation: str, *parts: AbstractDomain) -> tuple[AbstractDomain, ...]:
    for K in parts:
        if not isinstance(K, AbstractDomain):
            raise InvalidDomainError(f"{operation}: expected domains, got {type(K).__name__}")
    return parts


def _check_same_space(operation: str, parts: tuple[AbstractDomain, ...]) -> None:
    dims = [K.dim for K in parts]
    if len(set(dims)) > 1:
        raise DimensionError(f"{operation}: expected domains of one space, got dimensions {', '.join(map(str, dims))}")


def _finite_array(operation: str, values: ArrayLike) -> Array:
    try:
        array = read_only(values)
    except (TypeError, ValueError):
        raise InvalidDomainError(
            f"{operation}: expected a regular array of real numbers; hint: .toarray() for sparse matrices"
        ) from None
    if not np.isfinite(array).all():
        raise InvalidDomainError(f"{operation}: expected finite numbers, got NaN or infinity")
    return array


def _points(K: AbstractDomain) -> Array | None:
    """The points that K is, or is the hull of, where they can be listed."""
    if isinstance(K, FiniteSet):
        return K.points
    if isinstance(K, Polytope):
        return K.vertices
    if isinstance(K, AbstractFiniteDomain) and K.cardinality * K.dim <= _LISTED_ENTRIES:
        return K.to_finite_set().points
    return None


def _listed(parts: "tuple[AbstractDomain, ...] | list[AbstractDomain]", dim: int) -> list[Array] | None:
    """The points of every part, where all their combinations in R^dim can be listed."""
    points = [listed for listed in map(_points, parts) if listed is not None]
    combinations = math.prod(map(len, points))
    return points if len(points) == len(parts) and combinations * dim <= _LISTED_ENTRIES else None


def _same_kind(parts: "tuple[AbstractDomain, ...] | list[AbstractDomain]", points: Array) -> AbstractDomain:
    """Points made of finite sets are a finite set; made of any polytope, a polytope."""
    finite = all(isinstance(K, AbstractFiniteDomain) for K in parts)
    return FiniteSet(points) if finite else Polytope(points)


def _convex(K: AbstractDomain) -> AbstractDomain:
    points = _points(K)
    return K if points is None else Polytope(points)


def _value(x: Array, form: Array, center: Array) -> float:
    return float((x - center) @ form @ (x - center))


def _ascend(support_point: Callable[[Array], Array], form: Array, center: Array, x: Array) -> Array:
    """A local maximizer of the convex (x − c)' H (x − c), reached from x by support points."""
    value = _value(x, form, center)
    for _ in range(_ASCENTS):
        nearby = support_point(form @ (x - center))
        if not _value(nearby, form, center) > value * (1 + 1e-12):
            break
        x, value = nearby, _value(nearby, form, center)
    return x


def _bracket(
    support_point: Callable[[Array], Array], form: Array, center: Array, upper: float, starts: list[Array]
) -> QuadraticMax:
    """The best local maximizer from given starts and the form's principal axes, under a proven upper bound."""
    _, axes = np.linalg.eigh(form)
    starts = starts + [support_point(sign * axis) for axis in axes.T[::-1][:_STARTS] for sign in (1.0, -1.0)]
    tops = [_ascend(support_point, form, center, x) for x in starts]
    values = [_value(x, form, center) for x in tops]
    best = int(np.argmax(values))
    return QuadraticMax(tops[best], values[best], max(upper, values[best]))


def _kron(first: Array, second: Array) -> Array:
    return np.outer(first, second).ravel()  # np.kron takes ten times as long for short vectors


def _diagonal(blocks: Iterable[Array]) -> Array:
    """A block-diagonal matrix."""
    return np.asarray(block_diag(*blocks), dtype=np.float64)


def _seminorm(x: Array, form: Array) -> float:
    return math.sqrt(max(float(x @ form @ x), 0.0))


def _reach(K: AbstractDomain) -> Array:
    """Largest magnitude of every coordinate."""
    axes = np.eye(K.dim)
    return np.array([max(abs(K._support_point(s * axis)[i]) for s in (1.0, -1.0)) for i, axis in enumerate(axes)])


def _middle(K: AbstractDomain) -> Array:
    """A point near the middle of K: its center of symmetry, or that of its bounding box."""
    center = K._center()
    if center is not None:
        return center
    axes = np.eye(K.dim)
    ends = np.array([[K._support_point(axis)[i], K._support_point(-axis)[i]] for i, axis in enumerate(axes)])
    return ends.mean(axis=1)


@final
@dataclass(frozen=True, eq=False)
class LinearImage(AbstractDomain):
    """{A x : x in K}."""

    matrix: Array
    body: AbstractDomain

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", _finite_array("A @ K", self.matrix))
        if self.matrix.ndim != 2 or self.matrix.shape[1] != self.body.dim:
            raise DimensionError(f"A @ K: expected A of shape (k, {self.body.dim}), got {self.matrix.shape}")

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

    def _support_point(self, theta: Array) -> Array:
        return self.matrix @ self.body._support_point(theta @ self.matrix)

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        apart = self._part_by_part(form) if isinstance(self.body, Product) and not center.any() else None
        if apart is not None:
            return apart
        image = self._image()
        if image is not None:
            return image.max_quadratic(form, center)
        A = self.matrix
        pulled = A.T @ form @ A
        pulled = (pulled + pulled.T) / 2
        if not center.any():
            found = self.body._max_quadratic(pulled, np.zeros(self.body.dim))
            x = A @ found.maximizer
            return QuadraticMax(x, _value(x, form, center), max(found.upper_bound, _value(x, form, center)))
        # ‖W(Ax − c)‖² = ‖WA(x − y)‖² + ‖W(Ay − c)‖² + 2⟨x − y, e⟩ for any y, e small where y is the best
        y = np.asarray(np.linalg.lstsq(pulled, A.T @ (form @ center), rcond=1e-12)[0], dtype=np.float64)
        found = self.body._max_quadratic(pulled, y)
        left = A @ y - center
        e = A.T @ (form @ left)
        reach = math.sqrt(self.body._max_quadratic(np.eye(self.body.dim), y).upper_bound)
        upper = found.upper_bound + _seminorm(left, form) ** 2 + 2 * reach * float(np.linalg.norm(e))
        return _bracket(self._support_point, form, center, upper, [A @ found.maximizer])

    def _part_by_part(self, form: Array) -> QuadraticMax | None:
        """The sum over the parts of a product whose images are orthogonal in the form, up to rounding; else None."""
        if not isinstance(self.body, Product):
            return None
        pieces = [(self.matrix[:, s], part) for part, s in zip(self.body.parts, self.body.slices(), strict=True)]
        reaches = [_reach(part) for _, part in pieces]
        mixed = 0.0
        for k, m in itertools.combinations(range(len(pieces)), 2):
            mixed += 2 * float(reaches[k] @ np.abs(pieces[k][0].T @ form @ pieces[m][0]) @ reaches[m])
        found = [linear_image(A, part)._max_quadratic(form, np.zeros(self.dim)) for A, part in pieces]
        upper = sum(f.upper_bound for f in found)
        if mixed > _DUST * upper:
            return None
        x = sum((f.maximizer for f in found), np.zeros(self.dim))
        value = _value(x, form, np.zeros(self.dim))
        return QuadraticMax(x, value, max(upper + mixed, value))

    def __repr__(self) -> str:
        return f"A @ {self.body!r} in R^{self.dim}"


@final
@dataclass(frozen=True, eq=False)
class Scaled(AbstractDomain):
    """{c x : x in K}, c not zero."""

    body: AbstractDomain
    factor: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.factor) and self.factor != 0):
            raise InvalidDomainError(f"c * K: expected a finite c other than zero, got {self.factor!r}")

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

    def _support_point(self, theta: Array) -> Array:
        return self.factor * self.body._support_point(math.copysign(1.0, self.factor) * theta)

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        found = self.body._max_quadratic(form, center / self.factor)
        square = self.factor**2
        return QuadraticMax(self.factor * found.maximizer, square * found.value, square * found.upper_bound)

    def _contains(self, x: Array) -> bool:
        return self.body._contains(x / self.factor)

    def __repr__(self) -> str:
        return f"{self.factor:g} * {self.body!r}"


@final
@dataclass(frozen=True, eq=False)
class Translate(AbstractDomain):
    """{x + v : x in K}."""

    body: AbstractDomain
    shift: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "shift", _finite_array("K + v", self.shift))
        if self.shift.shape != (self.body.dim,):
            raise DimensionError(f"K + v: expected v of shape ({self.body.dim},), got {self.shift.shape}")

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
        return None if inner is None else ConvexImage(inner.matrix, inner.blocks, inner.offsets + self.shift)

    def _difference(self) -> AbstractDomain:
        return self.body._difference()

    def _support_point(self, theta: Array) -> Array:
        return self.body._support_point(theta) + self.shift

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        found = self.body._max_quadratic(form, center - self.shift)
        return QuadraticMax(found.maximizer + self.shift, found.value, found.upper_bound)

    def _contains(self, x: Array) -> bool:
        return self.body._contains(x - self.shift)

    def __repr__(self) -> str:
        return f"({self.body!r} + v)"


@final
@dataclass(frozen=True, eq=False)
class MinkowskiSum(AbstractDomain):
    """{x_1 + … + x_m : x_k in K_k}."""

    parts: tuple[AbstractDomain, ...]

    def __post_init__(self) -> None:
        _check_same_space("K + L", self.parts)

    @property
    def dim(self) -> int:
        return self.parts[0].dim

    @property
    def is_symmetric(self) -> bool:
        return all(K.is_symmetric for K in self.parts)

    def _center(self) -> Array | None:
        centers = [c for c in (K._center() for K in self.parts) if c is not None]
        return sum(centers, np.zeros(self.dim)) if len(centers) == len(self.parts) else None

    def _image(self) -> ConvexImage | None:
        images = [inner for inner in (K._image() for K in self.parts) if inner is not None]
        if len(images) < len(self.parts) or not _few_offsets(images, self.dim):
            return None
        return _image_of_sum(images)

    def _difference(self) -> AbstractDomain:
        return reduce(minkowski_sum, (K._difference() for K in self.parts))

    def _support_point(self, theta: Array) -> Array:
        return sum((K._support_point(theta) for K in self.parts), np.zeros(self.dim))

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        image = self._image()
        if image is not None:
            return image.max_quadratic(form, center)
        # summands that are images are bounded together, the others one by one
        images = [(K, inner) for K in self.parts if (inner := K._image()) is not None]
        rest = [K for K in self.parts if K._image() is None]
        middles = [_middle(K) for K in rest]
        aim = center - sum(middles, np.zeros(self.dim))
        found = [K._max_quadratic(form, middle) for K, middle in zip(rest, middles, strict=True)]
        if images and _few_offsets([inner for _, inner in images], self.dim):
            found.append(_image_of_sum([inner for _, inner in images]).max_quadratic(form, aim))
            aim = np.zeros(self.dim)
        else:
            for K, _ in images:
                middle = _middle(K)
                found.append(K._max_quadratic(form, middle))
                aim = aim - middle
        upper = (_seminorm(aim, form) + sum(math.sqrt(f.upper_bound) for f in found)) ** 2
        start = sum((f.maximizer for f in found), np.zeros(self.dim))
        return _bracket(self._support_point, form, center, upper, [start])

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


def _few_offsets(images: list[ConvexImage], dim: int) -> bool:
    return math.prod(len(inner.offsets) for inner in images) * dim <= _LISTED_ENTRIES


def _image_of_sum(images: list[ConvexImage]) -> ConvexImage:
    offsets = reduce(lambda a, b: (a[:, None] + b).reshape(-1, a.shape[1]), (inner.offsets for inner in images))
    blocks = tuple(itertools.chain.from_iterable(inner.blocks for inner in images))
    return ConvexImage(np.hstack([inner.matrix for inner in images]), blocks, offsets)


@final
@dataclass(frozen=True, eq=False)
class Product(AbstractDomain):
    """{(x_1, …, x_m) : x_k in K_k}."""

    parts: tuple[AbstractDomain, ...]

    @property
    def dim(self) -> int:
        return sum(K.dim for K in self.parts)

    @property
    def is_symmetric(self) -> bool:
        return all(K.is_symmetric for K in self.parts)

    def slices(self) -> list[slice]:
        """Which coordinates belong to each part."""
        ends = np.cumsum([K.dim for K in self.parts]).tolist()
        return [slice(end - K.dim, end) for K, end in zip(self.parts, ends, strict=True)]

    def _center(self) -> Array | None:
        centers = [c for c in (K._center() for K in self.parts) if c is not None]
        return np.concatenate(centers) if len(centers) == len(self.parts) else None

    def _image(self) -> ConvexImage | None:
        images = [inner for inner in (K._image() for K in self.parts) if inner is not None]
        if len(images) < len(self.parts) or not _few_offsets(images, self.dim):
            return None
        _check_entries("product", self.dim * sum(inner.matrix.shape[1] for inner in images))
        offsets = [np.concatenate(rows) for rows in itertools.product(*(inner.offsets for inner in images))]
        blocks = tuple(itertools.chain.from_iterable(inner.blocks for inner in images))
        return ConvexImage(_diagonal(inner.matrix for inner in images), blocks, np.array(offsets))

    def _difference(self) -> AbstractDomain:
        return product(*(K._difference() for K in self.parts))

    def _support_point(self, theta: Array) -> Array:
        return np.concatenate([K._support_point(theta[s]) for K, s in zip(self.parts, self.slices(), strict=True)])

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        slices = self.slices()
        apart = _diagonal(form[s, s] for s in slices)
        if np.array_equal(apart, form):
            found = [K._max_quadratic(form[s, s], center[s]) for K, s in zip(self.parts, slices, strict=True)]
            x = np.concatenate([f.maximizer for f in found])
            return QuadraticMax(x, sum(f.value for f in found), sum(f.upper_bound for f in found))
        image = self._image()
        if image is not None:
            return image.max_quadratic(form, center)
        found = [K._max_quadratic(form[s, s], _middle(K)) for K, s in zip(self.parts, slices, strict=True)]
        aim = center - np.concatenate([_middle(K) for K in self.parts])
        upper = (_seminorm(aim, form) + sum(math.sqrt(f.upper_bound) for f in found)) ** 2
        return _bracket(self._support_point, form, center, upper, [np.concatenate([f.maximizer for f in found])])

    def _contains(self, x: Array) -> bool:
        return all(K._contains(x[s]) for K, s in zip(self.parts, self.slices(), strict=True))

    def __repr__(self) -> str:
        return f"product({', '.join(map(repr, self.parts))})"


def _check_entries(operation: str, entries: int) -> None:
    if entries > _MOST_ENTRIES:
        raise DomainTooLargeError(
            f"{operation}: a matrix of {entries * 8 / 1e9:.3g} GB would be needed, more than "
            f"{_MOST_ENTRIES * 8 / 1e9:.3g}; hint: treat the factors of a product one by one"
        )


@final
@dataclass(frozen=True, eq=False)
class Kronecker(AbstractDomain):
    """{x ⊗ y : x in K, y in L}. Supports are found by alternating between the factors: lower values in general."""

    left: AbstractDomain
    right: AbstractDomain

    def __post_init__(self) -> None:
        _check_entries("kron", self.dim)

    @property
    def dim(self) -> int:
        return self.left.dim * self.right.dim

    @property
    def is_symmetric(self) -> bool:
        return self.left.is_symmetric or self.right.is_symmetric

    def _support_point(self, theta: Array) -> Array:
        table = theta.reshape(self.left.dim, self.right.dim)
        points = _points(self.right)
        if points is not None:  # one factor listed: exact
            tops = [_kron(self.left._support_point(table @ y), y) for y in points]
        else:
            listed = _points(self.left)
            starts = listed if listed is not None else np.linalg.svd(table)[0].T[:_STARTS]
            # between symmetric factors, the opposite of a start leads to the same product
            signs = (1.0,) if self.left.is_symmetric and self.right.is_symmetric else (1.0, -1.0)
            tops = [self._alternate(table, sign * start) for start in starts for sign in signs]
            if listed is not None:
                tops += [_kron(x, self.right._support_point(x @ table)) for x in listed]
        return max(tops, key=lambda x: float(theta @ x))

    def _alternate(self, table: Array, x: Array) -> Array:
        best, value = np.zeros(self.dim), -math.inf
        for _ in range(_ASCENTS):
            y = self.right._support_point(x @ table)
            x = self.left._support_point(table @ y)
            now = float(x @ table @ y)
            if not now > value + 1e-14 * abs(now):
                break
            best, value = _kron(x, y), now
        return best

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        k, m = self.left.dim, self.right.dim
        if not form.any():
            return QuadraticMax(self._support_point(np.zeros(self.dim)), 0.0, 0.0)
        blocks = form.reshape(k, m, k, m)
        # any H <= c P ⊗ Q bounds the sup by a product of two; a product form is its own bound
        P, Q = _rounded_up(np.einsum("iaja->ij", blocks)), _rounded_up(np.einsum("iaib->ab", blocks))
        first = self.left._max_quadratic(P, np.zeros(k))
        second = self.right._max_quadratic(Q, np.zeros(m))
        upper = _dominance(form, P, Q) * first.upper_bound * second.upper_bound
        upper = (math.sqrt(upper) + _seminorm(center, form)) ** 2
        return _bracket(self._support_point, form, center, upper, [_kron(first.maximizer, second.maximizer)])

    def __repr__(self) -> str:
        return f"kron({self.left!r}, {self.right!r})"


def _rounded_up(form: Array) -> Array:
    """The form, plus enough of the identity that its condition is below 1e4."""
    largest = float(np.linalg.eigvalsh(form)[-1])
    smallest = float(np.linalg.eigvalsh(form)[0])
    return form if smallest > 1e-4 * largest else form + 1e-4 * largest * np.eye(len(form))


def _dominance(form: Array, P: Array, Q: Array) -> float:
    """A factor c with form <= c P ⊗ Q."""
    roots = [axes / np.sqrt(values) for values, axes in (np.linalg.eigh(P), np.linalg.eigh(Q))]
    whitened = np.kron(*roots).T @ form @ np.kron(*roots)
    return float(np.linalg.eigvalsh(whitened)[-1]) * (1 + 1e-7)


@final
@dataclass(frozen=True, eq=False)
class Hull(AbstractDomain):
    """The convex hull of a union."""

    parts: tuple[AbstractDomain, ...]

    def __post_init__(self) -> None:
        _check_same_space("hull", self.parts)

    @property
    def dim(self) -> int:
        return self.parts[0].dim

    @property
    def is_symmetric(self) -> bool:
        return all(K.is_symmetric for K in self.parts)

    def _support_point(self, theta: Array) -> Array:
        return max((K._support_point(theta) for K in self.parts), key=lambda x: float(theta @ x))

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        found = [K._max_quadratic(form, center) for K in self.parts]
        best = max(found, key=lambda f: f.value)
        return QuadraticMax(best.maximizer, best.value, max(f.upper_bound for f in found))

    def __repr__(self) -> str:
        return f"hull({', '.join(map(repr, self.parts))})"


@final
@dataclass(frozen=True, eq=False)
class DifferenceBody(AbstractDomain):
    """{x − y : x, y in K}, for a K that is not symmetric about any point.

    Where nothing better is known, its quadratic maximum is at most four times that of K about the center of a small
    enclosing ellipsoid: by Jung's theorem (1901) less than twice the truth.
    """

    body: AbstractDomain

    @property
    def dim(self) -> int:
        return self.body.dim

    @property
    def is_symmetric(self) -> bool:
        return True

    def _image(self) -> ConvexImage | None:
        inner = self.body._image()
        if inner is None or len(inner.offsets) ** 2 * self.dim > _LISTED_ENTRIES:
            return None
        offsets = (inner.offsets[:, None] - inner.offsets).reshape(-1, self.dim)
        return ConvexImage(2 * inner.matrix, inner.blocks, offsets)

    def _support_point(self, theta: Array) -> Array:
        return self.body._support_point(theta) - self.body._support_point(-theta)

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        if isinstance(self.body, Hull):
            parts = self.body.parts
            mixed = [sign * (K - L) for K, L in itertools.combinations(parts, 2) for sign in (1, -1)]
            return hull(*(K - K for K in parts), *mixed)._max_quadratic(form, center)
        points = _points(self.body)
        if points is not None and len(points) ** 2 <= _PAIRS:
            return _farthest_pair(points, form, center)
        image = self._image()
        if image is not None:
            return image.max_quadratic(form, center)
        middle, upper, far = _middle(self.body), math.inf, []
        for k in range(_RECENTERINGS):  # towards the farthest point: Badoiu & Clarkson (2003)
            found = self.body._max_quadratic(form, middle)
            upper = min(upper, found.upper_bound)
            far.append(found.maximizer)
            middle = middle + (found.maximizer - middle) / (k + 2)
        upper = (2 * math.sqrt(upper) + _seminorm(center, form)) ** 2
        return _bracket(self._support_point, form, center, upper, [far[0] - x for x in far[1:]])

    def __repr__(self) -> str:
        return f"({self.body!r} − itself)"


def _farthest_pair(points: Array, form: Array, center: Array) -> QuadraticMax:
    """Exact, by all pairs of listed points, a block of rows at a time."""
    best = QuadraticMax(np.zeros(points.shape[1]), -math.inf, -math.inf)
    chunk = max(1, 2**22 // (len(points) * points.shape[1]))
    for start in range(0, len(points), chunk):
        moved = (points[start : start + chunk, None] - points).reshape(-1, points.shape[1]) - center
        values = np.einsum("ij,ij->i", moved @ form, moved)
        top = int(values.argmax())
        if values[top] > best.value:
            best = QuadraticMax(moved[top] + center, float(values[top]), float(values[top]))
    return best
