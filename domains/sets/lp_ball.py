"""Balls of the ℓ_q norms."""

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from ..checks import check_dense, exponent, positive, whole
from ..domain import SLACK, AbstractDomain, QuadraticMax
from ..floats import EPS, Array, Map
from ..oracles.image import ConvexImage, LpBlock
from ..oracles.rows import into_ball, shrunk
from ..oracles.squared_norm import EXACT

_LISTED = 2000  # largest dimension in which the vertices of a cross-polytope are listed
_ASCENTS = 200
_STARTS = 32


@final
@dataclass(frozen=True, eq=False)
class LpBall(AbstractDomain):
    r"""The ball ``{x : ‖x‖_q <= radius}`` of the ℓ_q norm in R^dim, 1 <= q <= ∞.

    ``max_quadratic`` is exact for q = 1 and q = 2, for the cube in up to 22 dimensions (21 if the
    query's center is not the cube's), and for q >= 2 with diagonal H about the origin. For other q
    >= 2, ``upper_bound`` is at most π/2 times ``value`` (Nesterov 1998). For 1 < q < 2 no constant
    factor is known: ``upper_bound`` is then the maximum over the enclosing Euclidean ball or, if
    smaller and about the origin, ``(max_i H_ii)^(2/q−1) λ_max(H)^(2−2/q)`` (Riesz–Thorin).

    Args:
        dim: dimension of the space, >= 1.
        q: exponent of the norm.
        radius: finite, > 0.

    Raises:
        InvalidDomainError: ``dim`` not an integer >= 1, q < 1 or NaN, radius not finite and
            positive.

    >>> (
    ...     LpBall(2, 2).support([3.0, 4.0]),
    ...     LpBall(2, 1).support([3.0, 4.0]),
    ...     LpBall(2, np.inf).support([3.0, 4.0]),
    ... )
    (5.0, 4.0, 7.0)
    """

    _dim: int
    q: float
    radius: float

    def __init__(self, dim: int, q: float, *, radius: float = 1.0) -> None:
        object.__setattr__(self, "_dim", whole("LpBall", "dim", dim))
        object.__setattr__(self, "q", exponent("LpBall", q))
        object.__setattr__(self, "radius", positive("LpBall", "radius", radius))

    @property
    def dim(self) -> int:
        return self._dim

    @property
    def is_symmetric(self) -> bool:
        return True

    def _image(self) -> ConvexImage | None:
        """Return the ball as a linear image if q >= 2, as its vertices if q = 1, or None."""
        if self.q >= 2:
            check_dense("LpBall", self.dim, self.dim, "fewer coordinates")
            block = LpBlock(self.dim, self.q, self.radius)
            return ConvexImage(np.eye(self.dim), (block,), np.zeros((1, self.dim)))
        if self.q == 1 and self.dim <= _LISTED:
            vertices = self.radius * np.eye(self.dim)
            return ConvexImage(np.zeros((self.dim, 0)), (), np.vstack([vertices, -vertices]))
        return None

    def _scaled(self, factor: float) -> "LpBall":
        return LpBall(self.dim, self.q, radius=abs(factor) * self.radius)

    def _near(self, X: Array) -> Array:
        return shrunk(X, np.linalg.norm(X / self.radius, self.q, axis=1))

    def _map_into(self) -> Map:
        return into_ball(self.radius, self.q)

    def _support_point(self, theta: Array) -> Array:
        if self.q > 1:
            return LpBlock(self.dim, self.q, self.radius).support_point(theta)
        x = np.zeros(self.dim)
        top = int(np.abs(theta).argmax())
        x[top] = math.copysign(self.radius, theta[top])
        return x

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        if self.q >= 2 and (image := self._image()):
            return image.max_quadratic(form, center)
        return self._max_at_vertex(form, center) if self.q == 1 else self._bracket(form, center)

    def _max_at_vertex(self, form: Array, center: Array) -> QuadraticMax:
        slope = form @ center
        squares = self.radius**2 * np.diag(form)
        values = (
            squares + 2 * self.radius * np.abs(slope) + center @ slope
        )  # no term is negative: nothing cancels
        top = int(values.argmax())
        x = np.zeros(self.dim)
        x[top] = -math.copysign(self.radius, slope[top])
        value, fuzz = float(values[top]), _rounding_bound(form, center, self.radius)
        return QuadraticMax(x, value, value if fuzz <= EXACT * value else value + fuzz)

    def _bracket(self, form: Array, center: Array) -> QuadraticMax:
        """Return bounds on the largest (x − center)' form (x − center) over a ball, 1 < q < 2."""
        eye, origin = np.eye(self.dim), np.zeros((1, self.dim))
        ball = ConvexImage(eye, (LpBlock(self.dim, 2.0, self.radius),), origin).max_quadratic(
            form, center
        )
        size = 2.0 ** np.frexp(np.abs(form).max())[1]
        reach = 2.0 ** np.frexp(max(self.radius, np.abs(center).max()))[1]
        H, c, block = form / size, center / reach, LpBlock(self.dim, self.q, self.radius / reach)
        _, axes = np.linalg.eigh(H)
        slope = H @ c
        listed = np.vstack(
            [axes.T[::-1][:_STARTS], eye[np.argsort(-np.diag(H), kind="stable")[:_STARTS]]]
        )
        starts = np.vstack([listed, -listed, [ball.maximizer / reach - c, -slope]])
        best = np.full(len(starts), -1.0)
        X = block.support_point(starts)
        for _ in range(_ASCENTS):
            moved = X - c
            steep = moved @ H
            fresh = np.einsum("ij,ij->i", moved, steep)
            if (fresh <= best * (1 + 1e-13)).all():
                break
            best = fresh
            X = block.support_point(steep)
        moved = X - c
        lengths = np.einsum("ij,ij->i", moved @ H, moved)
        top = int(lengths.argmax())
        scale = size * reach**2
        upper = min(ball.upper_bound, _interpolated(H, c, block) * scale)
        return QuadraticMax(
            X[top] * reach, float(lengths[top] * scale), max(upper, float(lengths[top] * scale))
        )

    def _contains(self, x: Array) -> bool:
        sizes = np.abs(x) / self.radius
        top = float(sizes.max())
        if self.q == math.inf or top == 0 or top > 2:
            return top <= 1 + SLACK
        return top * float(((sizes / top) ** self.q).sum()) ** (1 / self.q) <= 1 + SLACK

    def __repr__(self) -> str:
        extra = "" if self.radius == 1 else f", radius={self.radius:g}"
        return f"LpBall({self.dim}, q={self.q:g}{extra})"


def _interpolated(form: Array, center: Array, block: LpBlock) -> float:
    """Return an upper bound on the largest (x − center)' form (x − center) over an ℓ_q ball."""
    # With form = W'W: the norm of W is that of its longest column from ℓ_1 to ℓ_2, and its largest
    # singular value from ℓ_2 to ℓ_2.
    longest = np.diag(form).max()
    steepest = max(np.linalg.eigvalsh(form)[-1], 0.0) * (1 + 1e-14 * len(form))
    # interpolated between bounds for ℓ_1 and ℓ_2 (Riesz–Thorin)
    about_origin = longest ** (2 / block.q - 1) * steepest ** (2 - 2 / block.q) * block.radius**2
    slope, still = form @ center, max(float(center @ form @ center), 0.0)
    # the linear term is at most the support function in its direction
    crossed = 2 * float(slope @ block.support_point(slope))
    return float(about_origin + crossed + still + _rounding_bound(form, center, block.radius))


def _rounding_bound(form: Array, center: Array, radius: float) -> float:
    """Return a bound on the rounding error of ``2<x, Hc> + c'Hc`` for all |x_j| <= radius."""
    sizes = np.abs(form) @ np.abs(center)
    return (8 + 2 * len(center)) * float(EPS * (2 * radius * sizes.sum() + np.abs(center) @ sizes))
