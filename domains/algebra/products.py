"""Cartesian and Kronecker products."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, final

import numpy as np
import scipy

from ..domain import AbstractDomain, QuadraticMax
from ..floats import EPS, TINY, Array, Map
from ..oracles.distance import reach_of
from ..oracles.image import ConvexImage
from ..participation.participations import VectorParticipations
from ..sets.stream import StreamWorkload
from ..tables.stream_product import StreamProduct, stream_product
from .arguments import (
    LISTED_ENTRIES,
    check_entries,
    checked_domains,
    convex,
    few_offsets,
    points_of,
    points_of_all,
    same_kind,
)
from .brackets import ASCENTS, STARTS, bracket, middle_of, seminorm
from .differences import DifferenceBody
from .hulls import Hull, hull
from .images import LinearImage, Translate, linear_image, translate
from .parts import AbstractOfParts

# Largest number of sets whose union is a product: _MOST_PIECES if the maximum over each is
# computed, _MOST_PAIRED if that over each difference of two.
_MOST_PIECES, _MOST_PAIRED = 64, 12
_THIN = 1e-13  # least half width of a body relative to the largest; smaller ones are rounding
_SCALES, _SECTIONS = 10, 26  # 26 sections into 10 shrink an interval of 60 to 1e-15
_ROUNDED = 64 * EPS  # relative distance from a body at which a point may still be a member, rounded


def product(first: AbstractDomain, *others: AbstractDomain) -> AbstractDomain:
    """Return the Cartesian product {(x, y, …) : x in K, y in L, …} as vectors of all coordinates.

    >>> product(FiniteSet([[0.0], [1.0]]), LpBall(2, 2)).support([1.0, 3.0, 4.0])
    6.0
    """
    parts = checked_domains("product", first, *others)
    listed = points_of_all(parts, sum(K.dim for K in parts))
    if listed is not None:
        return same_kind(parts, np.array([np.concatenate(xs) for xs in itertools.product(*listed)]))
    return Product(tuple(convex(K) for K in parts))


def kron(first: AbstractDomain, *others: AbstractDomain) -> AbstractDomain:
    """Return the Kronecker product {x ⊗ y : x in K, y in L}, in R^(dim K · dim L).

    Coordinates are in C order.

    For symmetric K and L, ``γ_p(K ⊗ L) = γ_p(K) γ_p(L)`` (Nikolov & Tang 2023, Lemma 62). If one
    factor is a workload over time, each factor is solved separately.

    >>> kron(FiniteSet([[1.0, 2.0]]), FiniteSet([[1.0, 10.0]])).points
    array([[ 1., 10.,  2., 20.]])
    """
    parts = checked_domains("kron", first, *others)
    over_time = stream_product(parts)
    if over_time is not None:
        return over_time
    listed = points_of_all(parts, math.prod(K.dim for K in parts))
    if listed is not None:
        return same_kind(
            parts, np.array([reduce(np.kron, xs) for xs in itertools.product(*listed)])
        )
    return reduce(Kronecker, parts)


def parts_over_time(domain: AbstractDomain) -> tuple[AbstractDomain, ...] | None:
    """Return the factors of a Kronecker product if one factor is a workload over time.

    The noise of each factor may then be optimised separately. Otherwise, return None.
    """
    if isinstance(domain, StreamProduct):
        return domain.parts
    if not isinstance(domain, Kronecker):
        return None
    parts = tuple(_factors_of(domain))
    over_time = any(isinstance(part, StreamWorkload) for part in parts)
    alone = any(isinstance(part, VectorParticipations) for part in parts)  # one person, many ticks
    return parts if over_time and not alone else None


def _factors_of(domain: AbstractDomain) -> Iterable[AbstractDomain]:
    if isinstance(domain, Kronecker):
        return [*_factors_of(domain.left), *_factors_of(domain.right)]
    return domain.parts if isinstance(domain, StreamProduct) else [domain]


@final
@dataclass(frozen=True, eq=False)
class Product(AbstractOfParts):
    """The Cartesian product {(x_1, …, x_m) : x_k in K_k}."""

    @property
    def dim(self) -> int:
        return sum(K.dim for K in self.parts)

    def slices(self) -> list[slice]:
        """Return, for each factor, the range of its coordinates in a member of the product."""
        ends = np.cumsum([K.dim for K in self.parts]).tolist()
        return [slice(end - K.dim, end) for K, end in zip(self.parts, ends, strict=True)]

    def _center(self) -> Array | None:
        centers = self._centers()
        return None if centers is None else np.concatenate(centers)

    def _image(self) -> ConvexImage | None:
        images = [inner for inner in (K._image() for K in self.parts) if inner is not None]
        if len(images) < len(self.parts) or not few_offsets(images, self.dim):
            return None
        check_entries("product", self.dim * sum(inner.matrix.shape[1] for inner in images))
        offsets = [
            np.concatenate(rows) for rows in itertools.product(*(inner.offsets for inner in images))
        ]
        blocks = tuple(itertools.chain.from_iterable(inner.blocks for inner in images))
        return ConvexImage(_diagonal(inner.matrix for inner in images), blocks, np.array(offsets))

    def _difference(self) -> AbstractDomain:
        return product(*(K._difference() for K in self.parts))

    def _factors(self) -> list[tuple[slice, AbstractDomain]]:
        return list(zip(self.slices(), self.parts, strict=True))

    @cached_property
    def _pieces(self) -> AbstractDomain | None:
        """The product as a hull of sets, one for each choice of listed points, or None."""
        # each set is {x} × L: x has a point of every listed factor, L is the product of the others
        points = [points_of(K) for K in self.parts]
        listed = [X for X in points if X is not None]
        rest = [K for K, X in zip(self.parts, points, strict=True) if X is None]
        if not (listed and rest) or math.prod(map(len, listed)) > _MOST_PIECES:
            return None
        if self.dim * sum(K.dim for K in rest) > LISTED_ENTRIES:
            return None
        fixed = np.repeat([X is not None for X in points], [K.dim for K in self.parts])
        free = LinearImage(
            np.eye(self.dim)[:, ~fixed], rest[0] if len(rest) == 1 else Product(tuple(rest))
        )
        shifts = np.zeros((math.prod(map(len, listed)), self.dim))
        shifts[:, fixed] = [np.concatenate(xs) for xs in itertools.product(*listed)]
        return hull(*(translate(free, shift) for shift in shifts))

    def _mapped(self, A: Array) -> AbstractDomain:
        if self._image() is None and self._pieces is not None:
            return self._pieces._mapped(A)
        if not any(isinstance(K, Translate) for K in self.parts):
            return LinearImage(A, self)
        # translate afterwards, so that shifts that A cancels are not squared
        shift = np.concatenate(
            [K.shift if isinstance(K, Translate) else np.zeros(K.dim) for K in self.parts]
        )
        still = Product(tuple(K.body if isinstance(K, Translate) else K for K in self.parts))
        return translate(LinearImage(A, still), A @ shift)

    def _moved(self, shift: Array) -> AbstractDomain:
        return Product(tuple(translate(K, shift[s]) for s, K in self._factors()))

    def _apart(self) -> tuple[AbstractDomain, Array]:
        moves = self._moves()
        return (
            (self, np.zeros(self.dim))
            if moves is None
            else (Product(tuple(moves[0])), np.concatenate(moves[1]))
        )

    def _near(self, X: Array) -> Array | None:
        known = [
            near for near in (K._near(X[:, s]) for s, K in self._factors()) if near is not None
        ]
        return np.hstack(known) if len(known) == len(self.parts) else None

    def _map_into(self) -> Map | None:
        known = [move for move in (K._map_into() for K in self.parts) if move is not None]
        slices = self.slices()
        if len(known) < len(self.parts):
            return None
        return lambda X: np.hstack([move(X[:, s]) for move, s in zip(known, slices, strict=True)])

    def _drift(self, shift: Array) -> float:
        return max(K._drift(shift[s]) for K, s in zip(self.parts, self.slices(), strict=True))

    def _magnitudes(self) -> Array:
        return np.concatenate([K._magnitudes() for K in self.parts])

    def _support_point(self, theta: Array) -> Array:
        return np.concatenate(
            [K._support_point(theta[s]) for K, s in zip(self.parts, self.slices(), strict=True)]
        )

    def _support_gap(self, theta: Array) -> float:
        return sum(K._support_gap(theta[s]) for s, K in self._factors())

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        slices = self.slices()
        apart = _diagonal(form[s, s] for s in slices)
        exact = np.array_equal(apart, form)
        if not exact:
            image = self._image()
            if image is not None:
                return image.max_quadratic(form, center)
            if self._pieces is not None:
                return self._pieces._max_quadratic(form, center)
        own = [
            K._max_quadratic(form[s, s], center[s]) for K, s in zip(self.parts, slices, strict=True)
        ]
        x = np.concatenate([f.maximizer for f in own])
        upper = sum(f.upper_bound for f in own)
        if exact:
            return QuadraticMax(x, sum(f.value for f in own), upper)
        upper += self._mixed(form, center, [max(f.upper_bound, 0.0) for f in own])
        aim, lengths = center.copy(), 0.0
        for K, s in zip(self.parts, slices, strict=True):
            middle = middle_of(K)
            aim[s] -= middle
            lengths += math.sqrt(max(K._max_quadratic(form[s, s], middle).upper_bound, 0.0))
        upper = min(upper, (seminorm(aim, form) + lengths) ** 2)
        return bracket(self._support_point, form, center, upper, [x])

    def _mixed(self, form: Array, center: Array, squares: list[float]) -> float:
        """Return a bound on the terms of a quadratic form that mix coordinates of two factors."""
        # for u, v from two parts, and the block X of H between them, for all diagonal D and E:
        # u'Xv <= min(√(u'Hu v'Hv), ‖D X E‖ ‖D⁻¹u‖ ‖E⁻¹v‖); squares bound u'Hu and v'Hv
        spread = [_spread(K, center[s]) for K, s in zip(self.parts, self.slices(), strict=True)]
        total = 0.0
        for (k, s), (m, t) in itertools.combinations(enumerate(self.slices()), 2):
            (D, first), (E, second) = spread[k], spread[m]
            norm = float(np.linalg.norm(D[:, None] * form[s, t] * E))
            total += 2 * min(math.sqrt(squares[k] * squares[m]), norm * first * second)
        return total

    def _contains(self, x: Array) -> bool:
        return all(K._contains(x[s]) for K, s in zip(self.parts, self.slices(), strict=True))

    def __repr__(self) -> str:
        return f"product({', '.join(map(repr, self.parts))})"


def _spread(K: AbstractDomain, center: Array) -> tuple[Array, float]:
    """Return relative sizes d of the coordinates, and a bound on ``‖(x − center)/d‖`` over K."""
    sizes = reach_of(translate(K, -center))
    largest = float(sizes.max()) or 1.0
    sizes = np.maximum(sizes / largest, 1e-6)
    square = K._max_quadratic(np.diag(sizes**-2.0), center).upper_bound
    return sizes, math.sqrt(max(square, 0.0))


def _diagonal(blocks: Iterable[Array]) -> Array:
    """Return the block-diagonal matrix of these blocks."""
    return np.asarray(scipy.linalg.block_diag(*blocks), dtype=np.float64)


@final
@dataclass(frozen=True, eq=False)
class Kronecker(AbstractDomain):
    """The Kronecker product {x ⊗ y : x in K, y in L} of the domains ``left`` K and ``right`` L.

    If the points of one factor can be listed, the product is treated as a union of images of the
    other factor.

    Otherwise the search for a support point alternates between the factors, and may stop at a local
    maximum. The support function then also has a proven bound. The bound is exact for ellipsoids
    about the origin. For other bodies, the excess of the bound depends on how far the factors are
    from ellipsoids.
    """

    left: AbstractDomain
    right: AbstractDomain

    def __post_init__(self) -> None:
        checked_domains("kron", self.left, self.right)
        check_entries("kron", self.dim)

    @property
    def dim(self) -> int:
        return self.left.dim * self.right.dim

    @property
    def is_symmetric(self) -> bool:
        return self.left.is_symmetric or self.right.is_symmetric

    @cached_property
    def _pieces(self) -> AbstractDomain | None:
        """The product as a hull of images of a factor, one per point of the other; or None."""
        k, m = self.left.dim, self.right.dim
        left, right = points_of(self.left), points_of(self.right)
        if left is not None and _are_few(left, k * m**2):
            pieces = (linear_image(np.kron(x[:, None], np.eye(m)), self.right) for x in left)
        elif right is not None and _are_few(right, m * k**2):
            pieces = (linear_image(np.kron(np.eye(k), y[:, None]), self.left) for y in right)
        else:
            return None
        return hull(*pieces)

    def _difference(self) -> AbstractDomain:
        pieces = None if self.is_symmetric else self._pieces
        if isinstance(pieces, Hull) and len(pieces.parts) <= _MOST_PAIRED:
            return DifferenceBody(pieces)
        return super()._difference()

    def _mapped(self, A: Array) -> AbstractDomain:
        pieces = self._pieces
        return LinearImage(A, self) if pieces is None else pieces._mapped(A)

    def _magnitudes(self) -> Array:
        return _kron(self.left._magnitudes(), self.right._magnitudes())

    def _support_point(self, theta: Array) -> Array:
        table = theta.reshape(self.left.dim, self.right.dim)
        if (points := points_of(self.right)) is not None:
            tops = [_kron(self.left._support_point(table @ y), y) for y in points]
        elif (points := points_of(self.left)) is not None:
            tops = [_kron(x, self.right._support_point(x @ table)) for x in points]
        else:
            # for ellipsoids about the origin, the first of these starts leads to the maximum
            first, second = (frame.root for frame in self._frames)
            pairs = np.linalg.svd(first.T @ table @ second, full_matrices=False)[2]
            starts = (table @ second @ pairs.T).T[:STARTS]
            # if both factors are symmetric, x and −x lead to the same product
            signs = (1.0,) if self.left.is_symmetric and self.right.is_symmetric else (1.0, -1.0)
            tops = [self._alternate(table, sign * start) for start in starts for sign in signs]
        return max(tops, key=lambda x: float(theta @ x))

    def _alternate(self, table: Array, direction: Array) -> Array:
        best, value = np.zeros(self.dim), -math.inf
        for _ in range(ASCENTS):
            x = self.left._support_point(direction)
            y = self.right._support_point(x @ table)
            direction = table @ y
            now = float(x @ direction)
            if not now > value + 1e-14 * abs(now):
                break
            best, value = _kron(x, y), now
        return best

    def _support_gap(self, theta: Array) -> float:
        table = theta.reshape(self.left.dim, self.right.dim)
        if (points := points_of(self.right)) is not None:
            ends = [_ends(self.left, table @ y) for y in points]
        elif (points := points_of(self.left)) is not None:
            ends = [_ends(self.right, x @ table) for x in points]
        else:
            return max(self._above(table) - float(theta @ self._support_point(theta)), 0.0)
        return max(above for _, above in ends) - max(value for value, _ in ends)

    def _above(self, table: Array) -> float:
        """Return an upper bound on x' ``table`` y over members x of ``left`` and y of ``right``."""
        # With K − a in R B and L − b in S B, for the unit ball B: x'Ty <= x'Tb + ‖S'T'x‖, and
        # x'Ty = x'Tb + a'Ty − a'Tb + (x − a)'T(y − b). Exact for balls and for T of rank one.
        left, right = self._frames
        U, sizes, V = np.linalg.svd(table, full_matrices=False)
        ranges = [
            (-_ends(K, -axis)[1], _ends(K, axis)[1])
            for K, axis in ((self.left, U[:, 0]), (self.right, V[0]))
        ]
        rest = float(np.linalg.norm(table - sizes[0] * np.outer(U[:, 0], V[0])))
        by_rank = float(
            sizes[0] * max(x * y for x, y in itertools.product(*ranges))
            + rest * np.linalg.norm(reach_of(self.left)) * np.linalg.norm(reach_of(self.right))
        )
        if rest <= 1e-14 * sizes[0]:
            return by_rank
        ahead, behind = table @ right.middle, left.middle @ table
        along, across = _ends(self.left, ahead)[1], _ends(self.right, behind)[1]
        on_left, on_right = right.enclosing.T @ table.T, left.enclosing.T @ table
        apart = min(
            _longest(on_left, self.left, left.middle), _longest(on_right, self.right, right.middle)
        )
        return min(
            by_rank,
            along + _longest(on_left, self.left, np.zeros(self.left.dim)),
            across + _longest(on_right, self.right, np.zeros(self.right.dim)),
            along + across - float(left.middle @ ahead) + apart,
        )

    @cached_property
    def _frames(self) -> "tuple[_Frame, _Frame]":
        return _Frame(self.left), _Frame(self.right)

    @cached_property
    def _lengths(self) -> tuple[float, float]:
        """The logarithm of a bound on the norms of members, for the left and the right factor."""
        left, right = (float(np.linalg.norm(reach_of(K))) for K in (self.left, self.right))
        return math.log(left or 1.0), math.log(right or 1.0)

    def _product_near(self, x: Array) -> Array | None:
        """Return a point near x that is the Kronecker product of a member of each factor."""
        if any(K._near(np.zeros((1, K.dim))) is None for K in (self.left, self.right)):
            return None
        # the two members are near multiples of the leading singular vectors of x as a matrix
        U, sizes, V = np.linalg.svd(x.reshape(self.left.dim, self.right.dim), full_matrices=False)
        signs = (1.0,) if self.left.is_symmetric and self.right.is_symmetric else (1.0, -1.0)
        found = [self._split(sign * U[:, 0], sign * V[0], float(sizes[0])) for sign in signs]
        return min(found, key=lambda member: float(np.linalg.norm(member - x)))

    def _split(self, u: Array, v: Array, size: float) -> Array:
        """Return a point near ``size`` u ⊗ v that is a Kronecker product of two members."""
        # The members are near s u and (size/s) v. For convex factors, the sum of both relative
        # distances is quasiconvex in log s: its least value is next to the best scale tried.
        size = max(size, TINY)
        left, right = self._lengths
        low, high = min(math.log(size) - right, left), left
        best, closest = np.zeros(self.dim), math.inf
        for _ in range(_SECTIONS):
            scales = np.linspace(low, high, _SCALES)
            s = np.exp(scales)[:, None]
            t = size / s
            x: Any = self.left._near(s * u)
            y: Any = self.right._near(t * v)
            with np.errstate(over="ignore"):  # if a scale is tiny, distances are huge
                apart = np.linalg.norm(x / s - u, axis=1) + np.linalg.norm(y / t - v, axis=1)
            k = int(apart.argmin())
            if apart[k] < closest:
                best, closest = _kron(x[k], y[k]), float(apart[k])
            low, high = scales[max(k - 1, 0)], scales[min(k + 1, _SCALES - 1)]
            if closest <= _ROUNDED or not low < high:
                break
        return best

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        if not form.any():
            return QuadraticMax(self._support_point(np.zeros(self.dim)), 0.0, 0.0)
        if self._pieces is not None:
            return self._pieces._max_quadratic(form, center)
        found = self._max_pulled(np.eye(self.dim), form)
        if not center.any():
            return found
        upper = (math.sqrt(found.upper_bound) + seminorm(center, form)) ** 2
        return bracket(self._support_point, form, center, upper, [found.maximizer])

    def _max_pulled(self, A: Array, form: Array) -> QuadraticMax:
        """Return bounds on the largest (A x)' form (A x) over members x."""
        if self._pieces is not None:
            return super()._max_pulled(A, form)
        # both factors are first mapped so that they have nearly equal widths in all directions
        first, second = self._frames
        both = np.kron(first.root, second.root)
        pulled = (A @ both).T @ form @ (A @ both)
        even = Kronecker(
            linear_image(first.inverse, self.left), linear_image(second.inverse, self.right)
        )
        found = even._by_factors((pulled + pulled.T) / 2)
        return QuadraticMax(both @ found.maximizer, found.value, found.upper_bound)

    def _by_factors(self, form: Array) -> QuadraticMax:
        k, m = self.left.dim, self.right.dim
        blocks = form.reshape(k, m, k, m)
        # if H ⪯ c P ⊗ Q, the supremum is at most c times those of P and Q; equal if H = P ⊗ Q
        P, Q = (
            _well_conditioned(np.einsum("iaja->ij", blocks)),
            _well_conditioned(np.einsum("iaib->ab", blocks)),
        )
        first = self.left._max_quadratic(P, np.zeros(k))
        second = self.right._max_quadratic(Q, np.zeros(m))
        upper = _dominance(form, P, Q) * first.upper_bound * second.upper_bound
        start = _kron(first.maximizer, second.maximizer)
        return bracket(self._support_point, form, np.zeros(self.dim), upper, [start])

    def __repr__(self) -> str:
        return f"kron({self.left!r}, {self.right!r})"


def _are_few(points: Array, entries: int) -> bool:
    """Return whether these points are few enough to store ``entries`` numbers for each of them."""
    return len(points) <= _MOST_PIECES and len(points) * entries <= LISTED_ENTRIES


def _kron(first: Array, second: Array) -> Array:
    return np.outer(first, second).ravel()  # np.kron is ten times slower for short vectors


@final
class _Frame:
    """An ellipsoid {``middle`` + ``root`` b : ‖b‖ <= 1} that resembles a body."""

    def __init__(self, body: AbstractDomain) -> None:
        axes = np.eye(body.dim)
        ends = np.array([[body._support_point(s * axis) for axis in axes] for s in (1.0, -1.0)])
        moves = (ends[0] - ends[1]) / 2
        sizes = np.where(moves.diagonal() > 0, moves.diagonal(), 1.0)
        # an ellipsoid x' M⁻¹ x <= 1 with half widths h_i and support points s_i has M e_i = h_i s_i
        turned = moves / sizes
        directions = np.linalg.eigh((turned + turned.T) / 2)[1]
        widths = np.array([_width(body, axis / sizes) for axis in directions.T])
        widths = np.maximum(widths, _THIN * (widths.max() or 1.0))
        self.body, self.middle = body, middle_of(body)
        self.root = sizes[:, None] * directions * widths
        self.inverse = directions.T / widths[:, None] / sizes

    @cached_property
    def enclosing(self) -> Array:
        """A multiple E of ``root`` such that {``middle`` + E b : ‖b‖ <= 1} contains the body."""
        return self.root * _longest(self.inverse, self.body, self.middle)


def _width(K: AbstractDomain, theta: Array) -> float:
    """Return half of max <theta, x> − min <theta, x> over the members x of K."""
    return float(theta @ (K._support_point(theta) - K._support_point(-theta))) / 2


def _ends(K: AbstractDomain, theta: Array) -> tuple[float, float]:
    """Return lower and upper bounds on max <theta, x> over x in K."""
    value = float(theta @ K._support_point(theta))
    return value, value + K._support_gap(theta)


def _longest(A: Array, K: AbstractDomain, center: Array) -> float:
    """Return a proven upper bound on ``‖A (x − center)‖`` over all x in K."""
    size = float(np.abs(A).max())
    if size == 0:
        return 0.0
    image = linear_image(A / size, translate(K, -center))
    return size * math.sqrt(image.max_quadratic(np.eye(len(A))).upper_bound)


def _well_conditioned(form: Array) -> Array:
    """Return the form, plus a multiple of the identity if it is nearly singular."""
    largest = float(np.linalg.eigvalsh(form)[-1])
    smallest = float(np.linalg.eigvalsh(form)[0])
    return form if smallest > 1e-4 * largest else form + 1e-4 * largest * np.eye(len(form))


def _dominance(form: Array, P: Array, Q: Array) -> float:
    """Return a number c such that c P ⊗ Q − form is positive semidefinite."""
    roots = [axes / np.sqrt(values) for values, axes in (np.linalg.eigh(P), np.linalg.eigh(Q))]
    whitened = np.kron(*roots).T @ form @ np.kron(*roots)
    return float(np.linalg.eigvalsh(whitened)[-1]) * (1 + 1e-7)
