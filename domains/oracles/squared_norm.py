r"""Bounds on ``sup ‖G x + g‖²`` over products of sign-invariant 2-convex bodies of widths one.

Let L = {x : (x_j²) ∈ T} be the body, h_L its support function and h_T that of T. The upper bound is
dual: any y with diag(y) ⪰ Q = G'G gives ``sup_L x'Qx <= h_T(y)``, and the least such bound is

    min {h_T(y) : diag(y) ⪰ Q} = max {tr(V'QV) : row norms of V in L} = max {h_L((‖U'g_j‖)_j)² :
    ‖U‖_F = 1},

at most π/2 times the supremum (Nesterov 1998; Grothendieck's inequality for positive semidefinite
matrices). The last form has r × k unknowns, where G has r rows. It is concave in UU', so k = r
leaves no spurious maxima. For boxes, k(k+1)/2 > n leaves none for almost every Q (Boumal,
Voroninski & Bandeira 2016). For other bodies, none has been found. Let the search stop at any U,
and let x be the support point there. Then ``y_j ∝ ‖U'g_j‖/x_j``, scaled by the largest eigenvalue
of ``Σ g_j g_j'/y_j``, is feasible: the bound is proven even if the search did not converge. An
affine term g becomes one more interval with column g. The body is symmetric, so the coordinate of
this interval may be taken as 1.

For boxes, branch and bound then closes or narrows the gap: over signs, with the same y
(``signs.py``), and in few dimensions over directions (``caps.py``). Where a gap is left,
inequalities between three signs narrow it (``triples.py``).
"""

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import NDArray

from ..floats import Array
from .caps import MOST_DIMENSIONS, longest_by_caps
from .signs import longest_by_signs
from .triples import STEPS, triple_rows

Indices = NDArray[np.intp]

if TYPE_CHECKING:
    from .image import Block

# vertices of boxes with up to this many columns are enumerated: 2^21, as x and −x count once
EXACT_COLUMNS = 22
# largest relative gap of a bound that is exact up to rounding; callers allow for this much
EXACT = 1e-10
MOST_WORK = 2**31  # multiplications in a search for the longest member of a box: some seconds
_QUICK = 5  # multiplications of matrices take less time than those of searches
_TRIAL = 64  # if caps can be searched later, the search over signs gets one part in this many
ROUNDING = 1e-13  # margin for rounding, as a relative length of columns
# Steps of the search for the relaxation's weights; few with inequalities between three signs: later
# steps gain 1e-4, and enlarge rounding to differences that answers verified elsewhere do not allow.
_MOST_STEPS, _FEW_STEPS = 2000, 50
_DIRECTIONS = 64  # number of directions in which a relaxed solution is rounded to a point
# Number of rounded points that are then improved. For boxes all are: steps are cheap there,
# and local maxima many.
_PROMISING = 12
_ASCENTS = 100
_LEVEL = 1e-12  # an ascent ends when a step adds less than this share of the squared length
# Each step of an ascent goes on by this share of the last one: half as many steps, longer maxima.
_MOMENTUM = 0.85
# From this step on, ascents end that would need this many more steps like the last one to matter.
_TRIALS, _HOPE = 6, 40
_ROUNDS = 20  # largest number of rounds of ascents followed by sign flips


@dataclass(frozen=True)
class Found:
    """The best point x found for the largest ‖G x + g‖²: the value there and a proven upper bound.

    The vector g is the row ``offset`` of the list of offsets.
    """

    offset: int
    x: Array
    value: float
    upper_bound: float


class _Body:
    """A product of sign-invariant blocks with widths one, with its boxes joined into one."""

    def __init__(self, blocks: "tuple[Block, ...]", intervals: int = 0) -> None:
        self.blocks = blocks
        self.intervals = intervals  # one-dimensional boxes besides the blocks
        self.parts: list[tuple[slice, Block]] = []
        start = 0
        self.box = np.ones(sum(block.size for block in blocks) + intervals, dtype=bool)
        for block in blocks:
            own = slice(start, start + block.size)
            start += block.size
            if not block.is_box:
                self.parts.append((own, block))
                self.box[own] = False

    @property
    def is_ball(self) -> bool:
        return len(self.parts) == 1 and self.parts[0][1].is_ball and not self.box.any()

    def with_interval(self) -> "_Body":
        return _Body(self.blocks, self.intervals + 1)

    def support_point(self, theta: Array) -> Array:
        x = np.where(theta < 0, -1.0, 1.0)
        for own, block in self.parts:
            x[..., own] = block.support_point(theta[..., own])
        return x

    def max_squares(self, y: Array) -> Array:
        x = np.ones(len(y))
        for own, block in self.parts:
            x[own] = block.max_squares(y[own])
        return x

    def weight(self, y: Array) -> float:
        """Return the largest Σ y_j x_j² over the body's members x."""
        return float(y @ self.max_squares(y) ** 2)


def maximize(G: Array, offsets: Array, blocks: "tuple[Block, ...]") -> Found:
    """Return bounds on the largest ``‖G x + g‖²`` over x in the body and the rows g of ``offsets``.

    Args:
        G: shape (r, n).
        offsets: shape (k, r).
        blocks: the factors of the body, of widths one (or zero); their sizes sum to n.
    """
    body = _Body(blocks)
    r, n = G.shape
    if r > n + len(offsets):
        triangle = np.asarray(np.linalg.qr(np.hstack([G, offsets.T]), mode="r"))
        G, offsets = triangle[:, :n], triangle[:, n:].T
    unit = max(np.abs(G).max(initial=0), np.abs(offsets).max(initial=0))
    if unit == 0:
        return Found(0, np.zeros(n), 0.0, 0.0)
    shift = int(np.frexp(unit)[1])
    G, offsets = np.ldexp(G, -shift), np.ldexp(offsets, -shift)
    lengths = np.linalg.norm(G, axis=0)
    dust = lengths <= 1e-30 * max(lengths.max(initial=0), np.abs(offsets).max())
    lost = lengths[dust].sum()
    best = _over_offsets(np.where(dust, 0.0, G), offsets, body)
    upper = (math.sqrt(best.upper_bound) + lost) ** 2
    return Found(
        best.offset, best.x, math.ldexp(best.value, 2 * shift), math.ldexp(upper, 2 * shift)
    )


def _over_offsets(G: Array, offsets: Array, body: _Body) -> Found:
    """Return the largest ‖G x + g‖² over the body's x and the rows g of ``offsets``."""
    live = np.flatnonzero(G.any(axis=0))
    lengths = np.einsum("ij,ij->i", offsets, offsets)
    if len(live) == 0:
        best = int(np.argmax(lengths))
        return Found(
            best, body.max_squares(np.ones(G.shape[1])), float(lengths[best]), float(lengths[best])
        )
    if len(offsets) > 1:  # the body is symmetric: g and −g have the same maximum
        leading = np.take_along_axis(offsets, (offsets != 0).argmax(axis=1)[:, None], axis=1)
        _, kept = np.unique(np.where(leading < 0, -offsets, offsets), axis=0, return_index=True)
        if len(kept) < len(offsets):
            found = _over_offsets(G, offsets[kept], body)
            return Found(int(kept[found.offset]), found.x, found.value, found.upper_bound)
    shifted = offsets.any()
    if body.box[live].all() and len(offsets) * 2 ** (min(len(live), 30) - (not shifted)) <= 2 ** (
        EXACT_COLUMNS - 1
    ):
        return _enumerate(G, offsets, live)
    if len(offsets) == 1:
        return _at_offset(G, offsets[0], body, 0, 1)
    y, _ = _dual(G, body)
    bounds = _ellipsoid_bounds(G, offsets, body, y)
    x = body.support_point(offsets @ G)
    values = np.square(offsets + x @ G.T).sum(axis=1)
    start = int(np.argmax(values))
    best = Found(start, x[start], float(values[start]), float(values[start]))
    for b in np.argsort(-bounds):
        # no later offset has an upper bound above the best value
        if bounds[b] <= best.upper_bound:
            break
        found = _at_offset(G, offsets[b], body, int(b), len(offsets))
        upper = max(best.upper_bound, found.upper_bound)
        best = found if found.value > best.value else best
        best = Found(best.offset, best.x, best.value, upper)
    return best


def _at_offset(G: Array, g: Array, body: _Body, offset: int, offsets: int) -> Found:
    """Return the best x found for ‖G x + g‖² over the body, and a proven upper bound."""
    n = G.shape[1]
    if body.is_ball:
        simple = None if g.any() else _diagonal(G, body)
        return _found(G, g, *(simple or _trust_region(G, g)), offset)
    live = np.flatnonzero(G.any(axis=0))
    if body.box[live].all() and len(live) + g.any() <= EXACT_COLUMNS:
        best = _enumerate(G, g[None], live)
        return Found(offset, best.x, best.value, best.upper_bound)
    if body.box[live].all() and len(G) <= 2:
        x = _planar(np.column_stack([G, g]))
        return _found(G, g, np.where(G.any(axis=0), x[:n] * x[n], 0.0), 0.0, offset)
    if not g.any() and (diagonal := _diagonal(G, body)):
        return _found(G, g, *diagonal, offset)
    columns, whole = (np.column_stack([G, g]), body.with_interval()) if g.any() else (G, body)
    x, upper, y = _bracket(columns, whole)
    if body.box[live].all():
        x, upper = _searched(columns, x, upper, y, MOST_WORK // offsets)
    return _found(G, g, x[:n] * x[n] if g.any() else x, upper, offset)


def _found(G: Array, g: Array, x: Array, upper: float, offset: int) -> Found:
    value = float(np.square(G @ x + g).sum())
    return Found(offset, x, value, max(value, upper))


def _enumerate(G: Array, offsets: Array, live: Indices) -> Found:
    """Return the largest ‖G x + g‖² over all sign vectors x and all rows g of ``offsets``."""
    fixed = live[len(live) :] if offsets.any() else live[-1:]  # x and −x count once
    free = live[: len(live) - len(fixed)]
    base = offsets + G[:, fixed].sum(axis=1)
    # each half of the columns has a list of all its signed sums
    split = max(0, (len(free) - (len(base) - 1).bit_length()) // 2)
    first, second = (
        _sign_sums(base, G[:, free[:split]]),
        _sign_sums(np.zeros((1, len(G))), G[:, free[split:]]),
    )
    # write ‖p + q‖² as one inner product
    left = np.column_stack([2 * first, np.square(first).sum(axis=1), np.ones(len(first))])
    right = np.column_stack([second, np.ones(len(second)), np.square(second).sum(axis=1)]).T.copy()
    best, at = -1.0, (0, 0)
    rows = max(1, 2**17 // len(second))
    for start in range(0, len(left), rows):
        values = left[start : start + rows] @ right
        place = int(values.argmax())
        if values.flat[place] > best:
            best, at = values.flat[place], (start + place // len(second), place % len(second))
    x = np.where(G.any(axis=0), 1.0, 0.0)  # zero columns may belong to no box
    x[free[:split]] = 1 - 2 * ((at[0] // len(base)) >> np.arange(split) & 1)
    x[free[split:]] = 1 - 2 * (at[1] >> np.arange(len(free) - split) & 1)
    offset = at[0] % len(base)
    return _found(G, offsets[offset], x, 0.0, offset)


def _sign_sums(base: Array, columns: Array) -> Array:
    """Return all vectors base ± g_1 ± … ± g_n over the columns g_j, as rows."""
    # the bits of (row // len(base)) say which signs are minus
    for column in columns.T:
        base = np.concatenate([base + column, base - column])
    return base


def _searched(G: Array, x: Array, upper: float, y: Array, work: int) -> tuple[Array, float]:
    """Return a better x and a lower upper bound on ‖Gx‖² over a box, found by limited ``work``."""
    # x, upper and y, with diag(y) ⪰ G'G, are those of the relaxation
    live = np.flatnonzero(G.any(axis=0))
    columns, signs, bound = G[:, live], x[live], upper
    first = work // _TRIAL if len(G) <= MOST_DIMENSIONS else work
    if found := longest_by_signs(columns, signs, y[live], first):
        signs, bound = found[0], min(bound, found[1])
    if bound > float(np.square(columns @ signs).sum()) * (1 + EXACT) and (
        found := longest_by_caps(columns, signs, work)
    ):
        signs, bound = found[0], min(bound, found[1])
    n = columns.shape[1]
    if (
        bound > float(np.square(columns @ signs).sum()) * (1 + EXACT)
        and n**3 * STEPS <= _QUICK * work
    ):
        bound = min(bound, _by_triples(columns))
    x = x.copy()
    x[live] = signs
    return x, bound


def _by_triples(G: Array) -> float:
    """Return a bound on ‖Gx‖² over the cube, by the relaxation with triples of signs."""
    body = _Body((), G.shape[1])
    # a scale that needs no iteration: another machine finds the same
    rows, X = triple_rows(G, _majorant(G, body, np.linalg.norm(G, axis=0))[0])
    if not len(rows):
        return math.inf
    H = np.vstack([G, rows])
    triangle = np.asarray(np.linalg.qr(H, mode="r"))
    values, axes = np.linalg.eigh(X)
    start = triangle @ (axes * np.sqrt(np.maximum(values, 0.0)))[:, ::-1]
    y, _ = _dual(triangle, body, start, _FEW_STEPS)
    least, _ = _majorant(H, body, y)
    # each row has three entries of one size a, and a²(x_i ± x_j ± x_k)² >= a² for signs x
    total = float(np.square(np.abs(rows).max(axis=1)).sum())
    return least * (1 + ROUNDING) - total * (1 - ROUNDING)


def _planar(G: Array) -> Array:
    """Return the sign vector x with the largest ‖G x‖, for a matrix G of at most two rows."""
    first, second = np.vstack([G, np.zeros((2 - len(G), G.shape[1]))])
    signs = np.where((second < 0) | ((second == 0) & (first < 0)), -1.0, 1.0)
    # with generators turned into one half plane and sorted by angle, partial sums walk along the
    # vertices
    order = np.argsort(np.arctan2(signs * second, signs * first), kind="stable")
    edges = (G * signs)[:, order]
    vertices = 2 * np.cumsum(edges, axis=1) - edges.sum(axis=1, keepdims=True)
    x = -signs
    turned = order[: int(np.square(vertices).sum(axis=0).argmax()) + 1]
    x[turned] *= -1
    return x


def _diagonal(G: Array, body: _Body) -> tuple[Array, float] | None:
    """Return an x with the largest ‖G x‖, and ‖G x‖², if G has orthogonal columns; else None."""
    if np.count_nonzero(G.any(axis=0)) > len(G):
        return None
    Q = G.T @ G
    y = np.diag(Q).copy()
    x = body.max_squares(y)
    upper = y @ x**2
    # |x_i| <= 1: entries off the diagonal add at most the sum of their sizes
    off = np.abs(Q).sum() - y.sum()
    return (x, float(upper + off)) if off <= 1e-12 * upper else None


def _trust_region(G: Array, g: Array) -> tuple[Array, float]:
    """Return an x in the unit ball with the largest ‖G x + g‖², and a proven upper bound."""
    # Solve the secular equation Σ (σ_iβ_i/(τ+σ_1²−σ_i²))² = 1 for τ (σ: singular values, β: g along
    # the left singular vectors). For every μ = σ_1² + τ, τ > 0, weak duality gives the upper bound
    # ‖g‖² + μ + Σ σ_i²β_i²/(μ−σ_i²) (More & Sorensen 1983). If τ = 0, the hard case, a multiple of
    # the first singular vector is added to x, so that its length is one.
    left, sigma, right = np.linalg.svd(G, full_matrices=False)
    slope = sigma * (left.T @ g)
    # maximise Σ σ_i² x_i² + 2 Σ slope_i x_i over the ball, in the coordinates of G's singular
    # vectors
    slope[np.abs(slope) <= 1e-300] = 0.0
    gaps = (sigma[0] - sigma) * (sigma[0] + sigma)
    used = slope != 0

    def solution(tau: float) -> Array:
        return np.divide(slope, gaps + tau, out=np.zeros_like(slope), where=used)

    high = float(np.linalg.norm(slope))
    low = float(np.max(np.abs(slope) - gaps, initial=0.0))  # |x_i| <= 1 for all coordinates
    if low == 0.0 and (
        not used.any() or (gaps[used].min() > 0 and np.linalg.norm(solution(0.0)) <= 1)
    ):
        tau = 0.0
    else:
        tau = low or min(high, 1e-20 * sigma[0] ** 2)
        for _ in range(200):  # Newton's method on 1/‖x‖, which is concave and increasing in τ
            x = solution(tau)
            length = float(np.linalg.norm(x))
            low, high = (tau, high) if length > 1 else (low, tau)
            if abs(length - 1) <= 1e-15 or high - low <= 1e-16 * high:
                break
            step = (
                (length - 1)
                * length**2
                / float(np.sum(np.divide(x**2, gaps + tau, out=x * 0, where=used)))
            )
            tau = tau + step if low < tau + step < high else (low + high) / 2
    x = solution(tau)
    length = float(np.linalg.norm(x))
    upper = float(g @ g + sigma[0] ** 2 + tau + slope @ x)
    if length < 1 and tau <= 1e-9 * sigma[0] ** 2:
        x[0] += math.copysign(math.sqrt(x[0] ** 2 + (1 - length) * (1 + length)), x[0]) - x[0]
    elif length > 0:
        x /= length
    return x @ right, upper


def _ellipsoid_bounds(G: Array, offsets: Array, body: _Body, y: Array) -> Array:
    """Return for each offset g an upper bound on ‖G x + g‖² over an ellipsoid around the body."""
    # the ellipsoid is {x : Σ y_j x_j² <= the largest such sum over the body}
    radius = math.sqrt(body.weight(y))
    columns = np.divide(G, np.sqrt(y), out=np.zeros_like(G), where=y > 0) * radius
    left, sigma, _ = np.linalg.svd(columns, full_matrices=False)
    slopes = np.square((offsets @ left) * sigma)
    lengths = np.einsum("ij,ij->i", offsets, offsets)
    gaps = (sigma[0] - sigma) * (sigma[0] + sigma)
    bounds = np.full(len(offsets), np.inf)
    for j in range(60):
        tau = np.maximum(np.sqrt(slopes.sum(axis=1)) * 2.0 ** (-j / 2), 1e-14 * sigma[0] ** 2)
        bounds = np.minimum(
            bounds, sigma[0] ** 2 + tau + (slopes / (gaps + tau[:, None])).sum(axis=1)
        )
    return (lengths + bounds) * (1 + ROUNDING * len(G))


def _bracket(G: Array, body: _Body) -> tuple[Array, float, Array]:
    """Return a point of the body, a proven bound on sup ‖Gx‖², and the weights that prove it."""
    y, U = _dual(G, body)
    lengths = np.linalg.norm(G, axis=0)
    # two more candidates for y need no search: y ∝ ‖g_j‖ (Cauchy–Schwarz), and y ∝ ‖g_j‖²
    simple = [y, lengths, lengths**2 if not body.box.all() else lengths]
    upper, y = min((_majorant(G, body, y) for y in simple), key=operator.itemgetter(0))
    return _witness(G, body, U), upper, y


def _majorant(G: Array, body: _Body, y: Array) -> tuple[float, Array]:
    """Return an upper bound on sup ‖Gx‖² over the body, and a multiple of y that proves it."""
    # λ is the least number with diag(λy) ⪰ G'G; the bound is the largest Σ λ y_j x_j² over the body
    scaled = np.divide(G, np.sqrt(y), out=np.zeros_like(G), where=G.any(axis=0))
    square = scaled @ scaled.T if len(G) <= G.shape[1] else scaled.T @ scaled
    factor = float(np.linalg.eigvalsh(square)[-1]) * (1 + ROUNDING * len(square))
    return factor * body.weight(y), factor * y


def _dual(
    G: Array, body: _Body, start: Array | None = None, most: int = _MOST_STEPS
) -> tuple[Array, Array]:
    """Return nearly optimal dual weights y for sup ‖Gx‖², and the solution U of the dual form."""
    r, n = G.shape
    k = min(r, math.isqrt(2 * n) + 1)
    live = G.any(axis=0)

    def parts(U: Array) -> tuple[Array, Array, Array]:
        """Return V = G'U, the norms θ of its rows (at least tiny), and the support point at θ."""
        V = G.T @ U
        theta = np.sqrt(np.einsum("ij,ij->i", V, V))
        theta = np.where(live, np.maximum(theta, 1e-12 * theta.max()), 0.0)
        return V, theta, body.support_point(theta)

    def objective(flat: Array) -> tuple[float, Array]:
        """Return ‖U‖²/2 − h(θ) and its gradient; θ: row norms of G'U, h: support function."""
        U = flat.reshape(r, k)
        V, theta, x = parts(U)
        ratio = np.divide(x, theta, out=np.zeros(n), where=live)
        return float(flat @ flat / 2 - x @ theta), (U - G @ (ratio[:, None] * V)).ravel()

    even = np.eye(r) if k == r else _even_directions(r, k)
    first = even if start is None else start[:, :k].copy()
    first *= float(np.prod(parts(first)[1:], axis=0).sum()) / np.square(first).sum()
    solved = scipy.optimize.minimize(
        objective, first.ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": most, "maxfun": 2 * most, "maxcor": 20, "ftol": 0.0,
                 "gtol": 1e-10 * np.abs(first).max()},
    )  # fmt: skip
    U = solved.x.reshape(r, k)
    _, theta, x = parts(U)
    # y still needs to be scaled so that diag(y) ⪰ G'G
    y = np.divide(theta, np.maximum(x, 1e-12), out=np.zeros(n), where=live)
    return y, U


def _even_directions(count: int, k: int) -> Array:
    """Return ``count`` evenly spread unit vectors in R^k, made from a Kronecker sequence."""
    base = 2.0
    for _ in range(50):  # solves base^(k+1) = base + 1: Roberts' generalised golden ratio
        base = (1 + base) ** (1 / (k + 1))
    fractions = (0.5 + np.arange(1, count + 1)[:, None] * base ** -np.arange(1.0, k + 1)) % 1.0
    points = scipy.special.ndtri(np.clip(fractions, 1e-9, 1 - 1e-9))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _witness(G: Array, body: _Body, U: Array) -> Array:
    """Return a point x of the body with a large ‖G x‖, by ascents from mixtures of U's columns."""
    axes, _, _ = np.linalg.svd(U, full_matrices=False)
    starts = np.vstack([axes.T, _even_directions(_DIRECTIONS, U.shape[1]) @ U.T])
    Z = body.support_point(starts @ G) @ G.T
    if body.parts:
        Z = Z[np.argsort(-np.square(Z).sum(axis=1), kind="stable")[:_PROMISING]]
    X = _climb(G, body, body.support_point(Z @ G))
    return X[np.argmax(np.square(X @ G.T).sum(axis=1))]


def local_maxima(
    G: Array, g: Array, blocks: "tuple[Block, ...]", directions: Array, beyond: float = 0.0
) -> Array:
    """Return points x of the product of ``blocks`` where ``‖G x + g‖`` is locally largest.

    Args:
        G: shape (r, n).
        g: shape (r,).
        blocks: as for :func:`maximize`.
        directions: shape (k, r); for each, one ascent starts from the support point along it.
        beyond: ascents that are unlikely to reach this squared length end early.
    """
    body, n = _Body(blocks), G.shape[1]
    if g.any():
        body, G = body.with_interval(), np.column_stack([G, g])
    X = _climb(G, body, body.support_point(directions @ G), beyond)
    return X[:, :n] * X[:, n:] if g.any() else X


def _climb(G: Array, body: _Body, X: Array, beyond: float = 0.0) -> Array:
    """Return for each row x of X a point of the body with a larger ‖G x‖ nearby."""
    # ascents and changes of single signs alternate; only rows with changed signs ascend again
    squares = np.square(G).sum(axis=0)
    X, rising = X.copy(), np.arange(len(X))
    for _ in range(_ROUNDS):
        top = _ascended(G, body, X[rising], beyond)
        X[rising], flipped = _flip(G, squares, top)
        rising = rising[flipped]
        if len(rising) == 0:
            break
    return X


def _ascended(G: Array, body: _Body, X: Array, beyond: float) -> Array:
    """Return the rows x of X after repeated steps to the support point along G'Gx."""
    top, rising = X.copy(), np.arange(len(X))
    Z = X @ G.T
    values, push = np.square(Z).sum(axis=1), np.zeros_like(Z)
    for step in range(_ASCENTS):
        X = body.support_point((Z + push) @ G)
        moved = X @ G.T
        rise = np.square(moved).sum(axis=1) - values
        better = rise > _LEVEL * values
        top[rising[better]] = X[better]
        # a step that went too far is tried again without its push
        open_ = better | push.any(axis=1)
        values = np.where(better, values + rise, values)
        if step >= _TRIALS:
            open_ &= (values + _HOPE * rise > beyond) | ~better
        push = np.where(better[:, None], _MOMENTUM * (moved - Z), 0.0)[open_]
        Z, values = np.where(better[:, None], moved, Z)[open_], values[open_]
        rising = rising[open_]
        if len(rising) == 0:
            break
    return top


def _flip(G: Array, squares: Array, X: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return X with single signs changed to increase ‖G x‖ of rows x, and which rows changed."""
    X, Z, every = X.copy(), X @ G.T, np.arange(len(X))
    flipped = np.zeros(len(X), dtype=bool)
    for _ in range(2 * G.shape[1]):
        gains = squares * X**2 - X * (Z @ G)
        best = gains.argmax(axis=1)
        rows = np.flatnonzero(gains[every, best] > 1e-12 * np.square(Z).sum(axis=1))
        if len(rows) == 0:
            break
        flipped[rows] = True
        X[rows, best[rows]] *= -1
        Z[rows] += 2 * X[rows, best[rows]][:, None] * G[:, best[rows]].T
    return X, flipped
