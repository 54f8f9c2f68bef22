"""Linear images of sign-invariant 2-convex bodies: the common form of most convex domains."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final

import numpy as np
import scipy

from ..domain import TOO_LARGE, QuadraticMax
from ..errors import InvalidDomainError
from ..floats import EPS, TINY, Array
from .squared_norm import EXACT, local_maxima, maximize

# largest |log| of a ratio of two weights: beyond it, the smaller weight has no effect
_MOST_RATIO = 120.0


class Block(Protocol):
    """A 2-convex body L that contains (±x_1, …, ±x_n) with x, for all signs.

    The squares (x_1², …, x_n²) of its members fill a convex set T. If T contains a point, it
    contains every point with smaller, nonnegative coordinates.

    Attributes:
        size: n.
        widths: largest |x_j| over L, shape (n,).
        is_box: whether L is all of |x_j| <= widths_j.
        is_ball: whether L is a Euclidean ball.
    """

    @property
    def size(self) -> int: ...

    @property
    def widths(self) -> Array: ...

    @property
    def is_box(self) -> bool: ...

    @property
    def is_ball(self) -> bool: ...

    def unit(self) -> "Block":
        """Return the same body in the coordinates x_j / widths_j, where all widths are one."""
        ...

    def support_point(self, theta: Array) -> Array:
        """Return a maximizer of <theta, x> over the body; theta is (n,) or many rows (batch, n)."""
        ...

    def max_squares(self, y: Array) -> Array:
        """Return a maximizer x >= 0 of ``Σ y_j x_j²`` over the body, for y >= 0 of shape (n,)."""
        ...


@final
@dataclass(frozen=True, eq=False)
class LpBlock:
    """The ball ``{x : ‖x‖_q <= radius}``, 2 <= q <= ∞."""

    size: int
    q: float
    radius: float = 1.0

    @property
    def widths(self) -> Array:
        return np.full(self.size, self.radius)

    @property
    def is_box(self) -> bool:
        return self.q == math.inf or self.size == 1

    @property
    def is_ball(self) -> bool:
        return self.q == 2

    def unit(self) -> "LpBlock":
        return LpBlock(self.size, self.q)

    def support_point(self, theta: Array) -> Array:
        signs = np.where(theta < 0, -self.radius, self.radius)
        if self.is_box:
            return signs
        sizes = np.abs(theta)
        top = sizes.max(axis=-1, keepdims=True)
        sizes /= np.where(top > 0, top, 1.0)
        x = sizes ** (1 / (self.q - 1))
        length = (x * sizes).sum(axis=-1, keepdims=True) ** (1 / self.q)  # x^q = x · sizes
        return signs * x / np.where(length > 0, length, 1.0)

    def max_squares(self, y: Array) -> Array:
        if self.is_box:
            return np.full(self.size, self.radius)
        x = np.zeros(self.size)
        top = y.max()
        if self.q == 2:
            x[np.argmax(y)] = self.radius
        elif top > 0:
            squares = (y / top) ** (2 / (self.q - 2))
            x = self.radius * np.sqrt(squares / (squares ** (self.q / 2)).sum() ** (2 / self.q))
        return x


@final
@dataclass(frozen=True, eq=False)
class SquaresBlock:
    """The points x whose squares x_j² are at most t_j for some t in the convex hull of ``squares``.

    Attributes:
        squares: shape (k, n), nonnegative, k >= 1.
    """

    squares: Array

    @property
    def size(self) -> int:
        return self.squares.shape[1]

    @property
    def widths(self) -> Array:
        return np.sqrt(self.squares.max(axis=0))

    @property
    def is_box(self) -> bool:
        return len(self.squares) == 1

    @property
    def is_ball(self) -> bool:
        return False

    def unit(self) -> "SquaresBlock":
        top = self.squares.max(axis=0)
        return SquaresBlock(self.squares / np.where(top > 0, top, 1.0))

    def support_point(self, theta: Array) -> Array:
        widths = self.widths
        signs = np.where(theta < 0, -widths, widths)
        if self.is_box:
            return signs
        batch = np.abs(np.atleast_2d(theta)) * widths
        rows = self.unit().squares
        at_once = max(1, 2**22 // rows.size // len(rows))
        parts = [
            _mixture(rows, batch[i : i + at_once]) @ rows for i in range(0, len(batch), at_once)
        ]
        return signs * np.sqrt(np.concatenate(parts)).reshape(theta.shape)

    def max_squares(self, y: Array) -> Array:
        return np.sqrt(self.squares[np.argmax(self.squares @ y)])


def _mixture(rows: Array, theta: Array) -> Array:
    """Return weights w of sum one that maximise ``Σ_i θ_i √(w·rows)_i``, for each row θ."""
    return _mixture_of_two(rows, theta) if len(rows) == 2 else _mixture_of_many(rows, theta)


def _mixture_of_two(rows: Array, theta: Array) -> Array:
    """Return the weights of :func:`_mixture` for two rows, shape (batch, 2)."""
    # bisection on log(w_2/w_1) keeps the digits of small weights
    slopes = theta * (rows[1] - rows[0])
    ratio, width = np.full(len(theta), -_MOST_RATIO), 2 * _MOST_RATIO
    for _ in range(60):
        width /= 2
        # by concavity, the derivative decreases in the ratio: bisect for its change of sign
        w = scipy.special.expit([-(ratio + width), ratio + width]).T
        # a coordinate that is always zero adds nothing to the slope; do not divide by zero there
        squares = np.maximum(w @ rows, TINY)
        ratio = np.where((slopes / np.sqrt(squares)).sum(axis=1) > 0, ratio + width, ratio)
    return scipy.special.expit([-ratio, ratio]).T


def _mixture_of_many(rows: Array, theta: Array) -> Array:
    """Return the weights of :func:`_mixture`, by a primal-dual interior-point method."""
    k = len(rows)
    top = theta.max(axis=1, keepdims=True)
    theta = theta / np.where(top > 0, top, 1.0)
    w = np.full((len(theta), k), 1 / k)
    empty = np.where(
        rows.max(axis=0) > 0, 0.0, 1.0
    )  # 1 for coordinates that are always zero, where θ is zero as well

    def derivatives(w: Array) -> tuple[Array, Array]:
        t = w @ rows + empty
        slope = theta / np.sqrt(t)
        curvature = (rows * (slope / t)[:, None, :]) @ rows.T
        return slope @ rows.T / 2, curvature / 4

    gradient, curvature = derivatives(w)
    bound = gradient.max(axis=1) + gradient.mean(axis=1)
    z = bound[:, None] - gradient + 1e-300
    best, best_gap = w, np.full(len(w), np.inf)
    for _ in range(80):
        value = (theta * np.sqrt(w @ rows)).sum(axis=1)
        gap = gradient.max(axis=1) - (w * gradient).sum(
            axis=1
        )  # by concavity, an upper bound on the distance to the maximum
        better = gap < best_gap
        best, best_gap = np.where(better[:, None], w, best), np.minimum(gap, best_gap)
        if (best_gap <= 1e-14 * value).all():
            break
        target = 0.1 * (w * z).mean(axis=1, keepdims=True)
        system = curvature + np.eye(k) * (z / w)[:, None, :]
        right = np.stack([gradient - bound[:, None] + target / w, np.ones_like(w)], axis=2)
        solved = np.linalg.solve(system, right)
        shift = solved[:, :, 0].sum(axis=1) / solved[:, :, 1].sum(axis=1)
        dw = solved[:, :, 0] - shift[:, None] * solved[:, :, 1]
        dz = (target - z * dw) / w - z
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.minimum(
                np.where(dw < 0, -w / dw, np.inf).min(axis=1),
                np.where(dz < 0, -z / dz, np.inf).min(axis=1),
            )
        step = np.minimum(1.0, 0.99 * step)[:, None]
        w = np.maximum(w + step * dw, 1e-300)
        w /= w.sum(axis=1, keepdims=True)
        z = np.maximum(z + step * dz, 1e-300)
        bound = bound + step[:, 0] * shift
        gradient, curvature = derivatives(w)
    return best


@final
@dataclass(frozen=True, eq=False)
class ConvexImage:
    """The union of the sets ``{offset + A x : x in L_1 × … × L_m}`` over finitely many offsets.

    Attributes:
        matrix: A, shape (d, n); if n = 0, the set has only the offsets.
        blocks: the L_k, on consecutive columns of A; their sizes sum to n.
        offsets: shape (k, d), k >= 1.
    """

    matrix: Array
    blocks: tuple[Block, ...]
    offsets: Array

    @cached_property
    def _widths(self) -> Array:
        return np.concatenate([np.zeros(0), *(block.widths for block in self.blocks)])

    def support_point(self, theta: Array) -> Array:
        """Return a maximizer of <theta, x> over the set, shape (d,)."""
        return self.support_points(theta[None])[0]

    def support_points(self, thetas: Array) -> Array:
        """Return a maximizer of <theta, x> for every row theta, shape (k, d)."""
        # scaled so that products neither overflow nor underflow
        thetas = np.ldexp(thetas, -np.frexp(np.abs(thetas).max(axis=1))[1][:, None])
        slopes, start = self._scaled(thetas) if self._is_diagonal else thetas @ self.matrix, 0
        x = np.zeros((len(thetas), self.matrix.shape[1]))
        for block in self.blocks:
            own = slice(start, start + block.size)
            x[:, own] = block.support_point(slopes[:, own])
            start += block.size
        moved = self._scaled(x) if self._is_diagonal else x @ self.matrix.T
        if len(self.offsets) == 1:
            return self.offsets[0] + moved
        return self.offsets[np.argmax(thetas @ self.offsets.T, axis=1)] + moved

    @cached_property
    def _is_diagonal(self) -> bool:
        return is_diagonal(self.matrix)

    def _scaled(self, rows: Array) -> Array:
        """Return ``rows @ A`` for a diagonal A, equal bit for bit to the matrix product."""
        return rows * self.matrix.diagonal()

    def local_maxima(
        self, whitening: Array, center: Array, directions: Array, beyond: float = 0.0
    ) -> Array:
        """Return points where ``‖W (x − center)‖`` is locally largest over a set with one offset.

        Args:
            whitening: W, shape (r, d).
            center: shape (d,).
            directions: shape (k, r); for each, one ascent starts from the support point along it.
            beyond: ascents that are unlikely to reach this squared length end early.

        Returns:
            Shape (k, d).
        """
        columns = self.matrix * self._widths
        blocks = tuple(block.unit() for block in self.blocks)
        x = local_maxima(
            whitening @ columns,
            whitening @ (self.offsets[0] - center),
            blocks,
            directions,
            beyond,
        )
        return self.offsets[0] + x @ columns.T

    def max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        """Return bounds on the largest (x − center)' form (x − center).

        The bounds are exact for points, for one Euclidean ball, for boxes in a plane, and for boxes
        of up to 22 columns (21 if ``center`` is not the center of the box). They are also exact if
        A' form A is diagonal and the set is symmetric about ``center``, and for most other boxes of
        up to about 40 columns or in up to 6 dimensions. Otherwise ``upper_bound <= (π/2) · sup``,
        up to convergence (Nesterov 1998; Grothendieck's inequality): see ``squared_norm.py``,
        ``signs.py`` and ``caps.py``.
        """
        columns = self.matrix * self._widths
        moved = self.offsets - center
        # Coordinate i is measured in units of 2^rows_i, and the form is scaled to unit diagonal:
        # no square overflows or underflows.
        reach = np.abs(columns).sum(axis=1) + np.abs(moved).max(axis=0)
        rows = np.frexp(reach)[1]
        scale, correlation, residual = unit_diagonal(form)
        fraction, power = np.frexp(scale)
        unit = int((power + rows)[(fraction > 0) & (reach > 0)].max(initial=-(2**20)))
        if unit == -(2**20):  # the form or the set is zero
            return QuadraticMax(self.offsets[0] + 0.0, 0.0, 0.0)
        scale = np.ldexp(fraction, np.maximum(power + rows - unit, -1100))
        columns, moved = np.ldexp(columns, -rows[:, None]), np.ldexp(moved, -rows)
        reach = scale * np.ldexp(reach, -rows)
        W = correlation * scale
        maximum = maximize(W @ columns, moved @ W.T, tuple(block.unit() for block in self.blocks))
        # an allowance for rounding in W'W and in W A
        terms = 4 + _longest(self.matrix) + _longest(correlation)  # most terms in an entry
        rounding = 4 * terms * EPS * np.linalg.norm(np.abs(correlation) @ reach)
        upper = (math.sqrt(maximum.upper_bound) + rounding) ** 2 + float(reach @ residual @ reach)
        value = maximum.value
        upper = value if upper <= value * (1 + EXACT) else upper
        point = self.offsets[maximum.offset] + self.matrix @ (self._widths * maximum.x)
        if math.frexp(upper)[1] + 2 * unit > 1024:
            raise InvalidDomainError(TOO_LARGE)
        return QuadraticMax(point, math.ldexp(value, 2 * unit), math.ldexp(upper, 2 * unit))


def is_diagonal(matrix: Array) -> bool:
    """Return whether a matrix is square, with zeros off its diagonal."""
    square = matrix.shape[0] == matrix.shape[1]
    return square and np.count_nonzero(matrix) == np.count_nonzero(matrix.diagonal())


def _longest(matrix: Array) -> int:
    """Return the largest number of nonzero entries that a row of the matrix has."""
    return int(np.count_nonzero(matrix, axis=1).max(initial=0))


def unit_diagonal(form: Array) -> tuple[Array, Array, Array]:
    """Return (scale, C, residual) such that form ≈ D C'C D, where D = diag(scale).

    Entries of D·residual·D bound the errors, except negative eigenvalues, which are left out.
    """
    form = form / 2 + form.T / 2
    diagonal, sizes = np.maximum(np.diag(form), 0.0), np.abs(form)
    # If the form is semidefinite, ``dust`` is at most the diagonal. If rounding makes the form
    # slightly indefinite, ``dust`` is larger, and replaces the diagonal.
    dust = sizes * np.divide(sizes, diagonal, out=np.ones_like(sizes), where=diagonal > 0)
    scale = np.sqrt(np.maximum(diagonal, dust.max(axis=1)))
    inverse = 1 / np.where(scale > 0, scale, 1.0)
    unit = form * inverse * inverse[:, None]  # in this order no product leaves the range of doubles
    if is_diagonal(unit):
        values = unit.diagonal()
        roots = np.sqrt(np.maximum(values, 0.0))
        return scale, np.diag(roots)[values > 0], np.diag(18 * EPS * np.abs(values))
    values, axes = np.linalg.eigh(unit)
    # a computed difference may be zero by chance: add a bound on its rounding
    sizes = (np.abs(axes) * np.abs(values)) @ np.abs(axes).T
    rounding = (8 + _longest(axes)) * EPS * (sizes + np.abs(unit))
    residual = np.abs(unit - (axes * values) @ axes.T) + rounding
    kept = values > 0
    return scale, np.sqrt(values[kept])[:, None] * axes[:, kept].T, residual
