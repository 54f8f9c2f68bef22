"""Records and the body they belong to: many at once where that is quick, and maps of every record into the body."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from ..domain import AbstractDomain
from ..oracles.distance import bounding_box
from ..sets.ellipsoid import Ellipsoid
from ..sets.lp_ball import LpBall
from ..sets.polytope import Polytope
from ..sets.schatten import SchattenBall
from ..sets.tensor import TensorPower, symmetric_coordinates
from ..sets.two_convex import TwoConvex
from ..sets.zonotope import Zonotope
from .combinators import (
    DifferenceBody,
    Hull,
    Kronecker,
    LinearImage,
    MinkowskiSum,
    Product,
    Scaled,
    Translate,
)

Array = NDArray[np.float64]
Map = Callable[[Array], Array]

_HUGE = 2.0**100  # half widths: clipped there first, lest squares overflow
_ALTERNATIONS, _BEYOND, _CLOSE = 20, 1.5, 1e-11
_INSIDE = 1 - 2.0**-40  # what is mapped to the boundary, so that rounding leaves it inside


def near_members(domain: AbstractDomain, X: Array) -> Array | None:
    """Members near the rows of X, up to rounding; None where no quick way is known. Not always the nearest."""
    if isinstance(domain, Product):
        parts = [near_members(K, X[:, s]) for K, s in zip(domain.parts, domain.slices(), strict=True)]
        known = [part for part in parts if part is not None]
        return np.hstack(known) if len(known) == len(parts) else None
    if isinstance(domain, Translate):
        found = near_members(domain.body, X - domain.shift)
        return None if found is None else found + domain.shift
    if isinstance(domain, Scaled):
        found = near_members(domain.body, X / domain.factor)
        return None if found is None else found * domain.factor
    if isinstance(domain, LinearImage):
        if isinstance(domain.body, TensorPower):  # the symmetric tensor, where A tells them apart
            basis = symmetric_coordinates(domain.body.base, domain.body.order).basis()
            inner = (basis @ np.linalg.pinv(domain.matrix @ basis) @ X.T).T
        else:
            inner = X @ np.linalg.pinv(domain.matrix).T
        found = near_members(domain.body, inner)
        return None if found is None else found @ domain.matrix.T
    if isinstance(domain, Hull):  # of one part; the boundary between parts is left out
        found = [near for near in (near_members(part, X) for part in domain.parts) if near is not None]
        apart = [np.linalg.norm(X - near, axis=1) for near in found]
        return np.array(found)[np.argmin(apart, axis=0), np.arange(len(X))] if found else None
    if isinstance(domain, LpBall):
        return _shrunk(X, np.linalg.norm(X / domain.radius, domain.q, axis=1))
    if isinstance(domain, SchattenBall):
        singular = np.linalg.svd((X / domain.radius).reshape(-1, *domain.shape), compute_uv=False)
        return _shrunk(X, np.linalg.norm(singular, domain.q, axis=1))
    if isinstance(domain, Ellipsoid):
        inner = (X - domain.center) @ np.linalg.pinv(domain.factor).T
        return domain.center + _shrunk(inner, np.linalg.norm(inner, axis=1)) @ domain.factor.T
    if isinstance(domain, Zonotope):
        return domain.center + _box_coordinates(domain.generators, X - domain.center) @ domain.generators
    if isinstance(domain, Polytope):
        return _barycentric(domain.vertices, X)
    if isinstance(domain, TwoConvex):
        return _below_squares(domain.squares, X)
    if isinstance(domain, TensorPower):
        return _near_powers(domain, X)
    return None


def _shrunk(X: Array, norms: Array) -> Array:
    return X / np.maximum(norms, 1.0)[:, None]


def _barycentric(vertices: Array, X: Array) -> Array:
    """By weights of the vertices."""
    middle = vertices.mean(axis=0)
    moved = vertices - middle
    size = float(np.abs(moved).max()) or 1.0
    rows, targets = (np.column_stack([Y, np.full(len(Y), size)]) for Y in (moved, X - middle))
    weights = _coefficients(targets, rows, lambda c: np.maximum(c, 0.0), lambda y: nnls(rows.T, y)[0])
    return (weights / weights.sum(axis=1, keepdims=True)) @ vertices


def _box_coordinates(generators: Array, X: Array) -> Array:
    """Coefficients in [−1, 1] of the generators."""
    m, size = len(generators), float(np.abs(generators).max(initial=0.0))
    # c = t − u with t + u = 1 and t, u >= 0, each half a unit
    system = np.block([[generators.T, -generators.T], [size * np.eye(m), size * np.eye(m)]])

    def into(c: Array) -> Array:
        return np.clip(c, -1.0, 1.0)

    def solve(x: Array) -> Array:
        found = nnls(system, np.append(x, np.full(m, size)))[0]
        return into(found[:m] - found[m:])

    return _coefficients(X, generators, into, solve)


def _coefficients(X: Array, rows: Array, onto: Map, solve: Map) -> Array:
    """Coefficients allowed by ``onto`` that make X of ``rows``, by alternating projections; at corners, by ``solve``.

    Von Neumann (1950), "Functional Operators II"; Bregman (1965) for convex sets. ``solve`` takes one row at a time.
    """
    inverse = np.linalg.pinv(rows)
    found = onto(X @ inverse)
    far = np.arange(len(X))
    tolerance = _CLOSE * float(np.abs(rows).sum(axis=0).max(initial=0.0))
    for _ in range(_ALTERNATIONS):
        left = X[far] - found[far] @ rows
        apart = np.abs(left).max(axis=1, initial=0.0) > tolerance
        far, left = far[apart], left[apart]
        if not len(far):
            return found
        # a little further than the nearest: inner points are then reached in finitely many steps
        found[far] = onto(found[far] + _BEYOND * (left @ inverse))
    solved = _one_by_one(solve, X[far], len(rows))
    found[far] = np.where(np.isnan(solved), found[far], solved)
    return found


def _one_by_one(solve: Map, X: Array, size: int) -> Array:
    """``solve`` of every row, equal ones once; NaN where it finds nothing."""

    def attempt(x: Array) -> Array:
        try:
            return solve(x)
        except (RuntimeError, ValueError):  # out of steps, or not finite
            return np.full(size, np.nan)

    distinct, places = np.unique(X, axis=0, return_inverse=True)
    return np.array([attempt(x) for x in distinct]).reshape(-1, size)[places.reshape(-1)]


def _below_squares(squares: Array, X: Array) -> Array:
    """Each row as far out as a mixture of the squares allows."""
    k, d = squares.shape
    widths = np.sqrt(squares.max(axis=0))
    used = widths > 0
    rows = squares[:, used] / widths[used] ** 2
    # mixtures no less than the squares wanted; the weights sum to one
    system = np.block([[rows.T, -np.eye(used.sum())], [np.ones((1, k)), np.zeros((1, used.sum()))]])

    def reach(x: Array) -> Array:
        weights = nnls(system, np.append((x[used] / widths[used]) ** 2, 1.0))[0][:k]
        return np.sqrt(weights / weights.sum() @ squares)

    if k == 1:
        return np.clip(X, -widths, widths)
    found = _one_by_one(reach, np.clip(X, -widths, widths), d)
    return np.clip(X, -found, found)


def _near_powers(domain: TensorPower, X: Array) -> Array:
    """As ``contains`` does: along the leading direction of the first unfolding."""
    unfolded = X.reshape(len(X), domain.base, -1)
    u = np.linalg.eigh(unfolded @ unfolded.transpose(0, 2, 1))[1][:, :, -1]
    powers = u
    for _ in range(domain.order - 1):
        powers = (powers[:, :, None] * u[:, None, :]).reshape(len(X), -1)
    amounts = np.clip((powers * X).sum(axis=1), -1.0 if domain.is_symmetric else 0.0, 1.0)
    return amounts[:, None] * powers


def contains(domain: AbstractDomain, x: Array) -> bool:
    """Whether the domain says so; what it cannot tell is refused as well, and its own complaint is kept back."""
    try:
        return bool(domain.contains(x))
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
        return False


def magnitudes(domain: AbstractDomain) -> Array:
    """Bounds on the numbers that members' coordinates are computed from, shape (d,): rounding is relative to them.

    A class of the user's own is taken to compute its members to a few units in the last place of its bounding box.
    """
    if isinstance(domain, Product):
        return np.concatenate([magnitudes(part) for part in domain.parts])
    if isinstance(domain, Translate):
        return magnitudes(domain.body) + np.abs(domain.shift)
    if isinstance(domain, Scaled):
        return abs(domain.factor) * magnitudes(domain.body)
    if isinstance(domain, LinearImage):
        return np.abs(domain.matrix) @ magnitudes(domain.body)
    if isinstance(domain, MinkowskiSum):
        return sum((magnitudes(part) for part in domain.parts), np.zeros(domain.dim))
    if isinstance(domain, Hull):
        return np.max([magnitudes(part) for part in domain.parts], axis=0)
    if isinstance(domain, DifferenceBody):
        return 2 * magnitudes(domain.body)
    if isinstance(domain, Kronecker):
        return np.kron(magnitudes(domain.left), magnitudes(domain.right)).astype(np.float64)
    if isinstance(domain, Zonotope):
        return np.abs(domain.center) + np.abs(domain.generators).sum(axis=0)
    if isinstance(domain, TwoConvex):
        return np.sqrt(domain.squares.max(axis=0))
    lower, upper = bounding_box(domain)
    return np.maximum(np.abs(lower), np.abs(upper))


def pulls_back(domain: AbstractDomain) -> bool:
    """Whether a quadratic form is evaluated before A in ``A @ K``, where numbers may be larger than in the image."""
    own = isinstance(domain, LinearImage) and domain._image() is None
    return own or any(pulls_back(part) for part in _inner(domain))


def _inner(domain: AbstractDomain) -> list[AbstractDomain]:
    """What it is made of."""
    names = ("body", "left", "right")
    return [getattr(domain, name) for name in names if hasattr(domain, name)] + list(getattr(domain, "parts", ()))


def widest(domain: AbstractDomain) -> int:
    """Most numbers that one record is written with on the way: coordinates, generators, vertices or squares."""
    inner = _inner(domain)
    own = len(domain.vertices) if isinstance(domain, Polytope) else 0
    own = max(own, len(domain.generators)) if isinstance(domain, Zonotope) else own
    own = max(own, len(domain.squares)) if isinstance(domain, TwoConvex) else own
    return max(domain.dim, own, *(widest(part) for part in inner)) if inner else max(domain.dim, own)


def projection(domain: AbstractDomain) -> Map | None:
    """A map of all rows into the domain that leaves members alone; rows with NaN or infinity go to its center.

    Every row goes its own way, whatever the others are: elementwise arithmetic in a fixed order, where each operation
    is correctly rounded (or the C library's ``pow``, number by number), and no matrix products. None where no such map
    is known.
    """
    move = _map_into(domain)
    if move is None:
        return None
    center = np.asarray(domain._center())  # all that have such a map have one

    def into(X: Array) -> Array:
        finite = np.isfinite(X).all(axis=1, keepdims=True)
        return np.where(finite, move(np.where(finite, X, center)), center)

    return into


def _map_into(domain: AbstractDomain) -> Map | None:
    if isinstance(domain, Product):
        maps = [_map_into(K) for K in domain.parts]
        known = [move for move in maps if move is not None]
        slices = list(domain.slices())
        if len(known) < len(maps):
            return None
        return lambda X: np.hstack([move(X[:, s]) for move, s in zip(known, slices, strict=True)])
    if isinstance(domain, Translate | Scaled):
        inner = _map_into(domain.body)
        if inner is None:
            return None
        if isinstance(domain, Translate):
            shift = domain.shift
            return lambda X: inner(X - shift) + shift
        factor = domain.factor
        return lambda X: inner(X / factor) * factor
    if isinstance(domain, LpBall):
        return _into_ball(domain.radius, domain.q)
    if isinstance(domain, SchattenBall) and (domain.q == 2 or min(domain.shape) == 1):
        return _into_ball(domain.radius, 2.0)
    if isinstance(domain, TwoConvex) and len(domain.squares) == 1:
        return _into_box(np.zeros(domain.dim), np.sqrt(domain.squares[0]))
    if isinstance(domain, Zonotope) and (np.count_nonzero(domain.generators, axis=1) <= 1).all():
        return _into_box(domain.center, np.abs(domain.generators).sum(axis=0))
    if isinstance(domain, Ellipsoid):
        return _into_ellipsoid(domain)
    return None


def _into_box(center: Array, widths: Array) -> Map:
    low, high = center - widths, center + widths
    return lambda X: np.clip(X, low, high)


def _into_ball(radius: float, q: float) -> Map:
    """Along the ray to the center; coordinate by coordinate into a cube."""
    if q == math.inf:
        return lambda X: np.clip(X, -radius, radius)

    def move(X: Array) -> Array:
        X = np.clip(X, -_HUGE * radius, _HUGE * radius)
        return X * _shrinking(row_norms(X / radius, q))[:, None]

    return move


def _into_ellipsoid(domain: Ellipsoid) -> Map:
    """Onto its affine hull, then along the ray to the center; members stay."""
    widths = np.sqrt(np.diag(domain.M))
    factor, inverse = domain.factor, np.asarray(np.linalg.pinv(domain.factor), dtype=np.float64)

    def move(X: Array) -> Array:
        moved = np.clip(X - domain.center, -_HUGE * widths, _HUGE * widths)
        inner = row_products(moved, inverse)
        shrinking = _shrinking(row_norms(inner, 2.0))
        mapped = domain.center + row_products(inner * shrinking[:, None], factor)
        apart = np.abs(mapped - X).max(axis=1) <= 2.0**-30 * widths.max()
        return np.where((apart & (shrinking == 1.0))[:, None], X, mapped)

    return move


def _shrinking(norms: Array) -> Array:
    return np.where(norms > 1.0, _INSIDE / np.maximum(norms, 1.0), 1.0)


def row_products(X: Array, matrix: Array) -> Array:
    """``X @ matrix.T``, each entry summed in the same order whatever the number of rows."""
    columns = np.ascontiguousarray(X.T)
    products = np.zeros((len(matrix), len(X)))
    for total, row in zip(products, matrix, strict=True):
        for column, entry in zip(columns, row.tolist(), strict=True):
            total += column * entry
    return products.T


def row_norms(X: Array, q: float) -> Array:
    """``‖x‖_q`` of every row, summed in the same order whatever the number of rows."""
    sizes = np.abs(X)
    if q == 1:
        return _row_sums(sizes)
    if q == 2:
        return np.sqrt(_row_sums(sizes * sizes))
    top = sizes.max(axis=1)
    ratios = sizes / np.where(top > 0, top, 1.0)[:, None]
    return top * _power(_row_sums(_power(ratios, q)), 1 / q)


def _power(values: Array, exponent: float) -> Array:
    """Number by number: vectorised powers may round differently at the ends of an array."""
    return np.array([math.pow(value, exponent) for value in values.ravel().tolist()]).reshape(values.shape)


def _row_sums(X: Array) -> Array:
    total = np.zeros(len(X))
    for column in X.T:
        total = total + column
    return total
