"""Balls of matrices in Schatten norms: ℓ_q norms of the singular values."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy

from ..checks import exponent, positive, whole
from ..domain import SLACK, AbstractDomain, QuadraticMax
from ..errors import InvalidDomainError
from ..floats import EPS, Array, Map
from ..oracles.rows import into_ball, shrunk

_CLIMBS = 24  # starting points of the search for a witness
_CLIMB_STEPS = 300
_SMALL = 100  # up to this number of entries, tighter bounds get more time
_STRETCHES = (1.0, 1.5, 2.3, 4.0)  # multiples of v that are tried while the bound is loose
# Smallest eigenvalue of a majorant, relative to the largest: above it, inverses are accurate.
_FLOOR = 1e-7


@final
@dataclass(frozen=True, eq=False)
class SchattenBall(AbstractDomain):
    r"""Matrices X of shape (m, n) whose singular values have an ℓ_q norm of at most ``radius``.

    Members are the matrices flattened in C order.

    q = 1 is the nuclear norm, q = 2 the Frobenius norm (a Euclidean ball), q = ∞ the spectral norm.

    ``max_quadratic`` is exact for q = 2, for vectors (m = 1 or n = 1), and about the origin if H is
    a multiple of the identity. Otherwise, with r = min(m, n), the upper bound is within a factor
    ``r^{|1 − 2/q|}`` of the maximum around the origin, and ``2 r^{|1 − 2/q|}`` around other
    centers. For q = ∞, the bound is a numerical solution of ``min tr Y_1 + tr Y_2`` subject to
    ``Y_1 ⊗ I + I ⊗ Y_2 ⪰ H``. This minimum is within 2√2 of the maximum (Naor, Regev & Vidick 2014,
    the real non-commutative Grothendieck inequality), and was within about 10 % for random H on
    matrices of up to 20 × 20.

    Args:
        shape: (m, n), both >= 1.
        q: exponent, 1 <= q <= ∞.
        radius: positive and finite.

    Raises:
        InvalidDomainError: a bad shape, exponent or radius.

    >>> K = SchattenBall((2, 2), np.inf)
    >>> float(K.support([3.0, 0.0, 0.0, -4.0]))
    7.0
    >>> float(K.max_quadratic(np.eye(4)).upper_bound)
    2.0
    """

    shape: tuple[int, int]
    q: float
    radius: float

    def __init__(self, shape: Sequence[int], q: float, *, radius: float = 1.0) -> None:
        if not isinstance(shape, Sequence | np.ndarray) or len(shape) != 2:
            raise InvalidDomainError(f"SchattenBall: expected shape (m, n), got {shape!r}")
        m, n = (whole("SchattenBall", "shape", size) for size in shape)
        object.__setattr__(self, "shape", (m, n))
        object.__setattr__(self, "q", exponent("SchattenBall", q))
        object.__setattr__(self, "radius", positive("SchattenBall", "radius", radius))

    @property
    def dim(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def is_symmetric(self) -> bool:
        return True

    def _scaled(self, factor: float) -> "SchattenBall":
        return SchattenBall(self.shape, self.q, radius=abs(factor) * self.radius)

    def _near(self, X: Array) -> Array:
        singular = np.linalg.svd((X / self.radius).reshape(-1, *self.shape), compute_uv=False)
        return shrunk(X, np.linalg.norm(singular, self.q, axis=1))

    def _map_into(self) -> Map | None:
        return into_ball(self.radius, 2.0) if self.q == 2 or min(self.shape) == 1 else None

    def _support_point(self, theta: Array) -> Array:
        return self.radius * _unit_support(theta.reshape(self.shape), self.q).ravel()

    def _contains(self, x: Array) -> bool:
        if np.abs(x).max() > 2 * self.radius:
            return False
        return _norm(_singular_values((x / self.radius).reshape(self.shape)), self.q) <= 1 + SLACK

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        size = np.abs(form).max()
        reach = max(self.radius, np.abs(center).max())
        if size == 0:
            return QuadraticMax(np.zeros(self.dim), 0.0, 0.0)
        # from here on, the form and the set have sizes near one
        H, c, radius = (form + form.T) / (2 * size), center / reach, self.radius / reach
        x, upper = self._bracket(H, c, radius)
        x = x * (self.radius / radius)
        moved = (x - center) / reach
        value = float(moved @ H @ moved)
        return QuadraticMax(x, value * size * reach**2, max(upper, value) * size * reach**2)

    def _bracket(self, H: Array, c: Array, radius: float) -> tuple[Array, float]:
        """Return a point of the ball, and an upper bound on ``(x − c)'H(x − c)`` over the ball."""
        rank = min(self.shape)
        excess = max(0.0, 0.5 - 1 / self.q)
        g, still = H @ c, float(c @ H @ c)
        if self.q == 2 or rank == 1:
            x, upper = sphere_maximum(H, g, radius)
            return x, upper + still
        if not c.any() and np.array_equal(H, H[0, 0] * np.eye(self.dim)):
            flat = _unit_support(
                np.eye(*self.shape) if self.q > 2 else np.eye(1, self.dim).reshape(self.shape),
                self.q,
            )
            return radius * flat.ravel(), H[0, 0] * radius**2 * rank ** (2 * excess)
        outer, upper = sphere_maximum(H, g, radius * rank**excess)
        x = self._climb(H, c, radius, [outer, -g])
        bound = _majorant if self.q > 2 else _rank_one_bound
        if not g.any():
            around, starts = bound(H, self.shape, self.q)
            return self._climb(H, c, radius, [x, *starts]), min(upper, around * radius**2) + still
        # a quadratic term bounds the linear one: −2 g'x <= (g'x)²/v + v, with equality at v = −g'x
        v = max(abs(float(g @ x)), 1e-3 * radius * float(np.linalg.norm(g)))
        for stretch in _STRETCHES if self.dim <= _SMALL else _STRETCHES[:1]:
            around, starts = bound(H + np.outer(g, g) / (v * stretch), self.shape, self.q)
            upper = min(upper, around * radius**2 + v * stretch)
            x = self._climb(H, c, radius, [x, *starts])
            if upper + still <= 1.01 * float((x - c) @ H @ (x - c)):
                break
        return x, upper + still

    def _climb(self, H: Array, c: Array, radius: float, starts: list[Array]) -> Array:
        """Return a point x of the ball where ``(x − c)'H(x − c)`` is large, by several ascents."""
        partial = np.eye(*self.shape)
        fixed = [np.roll(partial, i, axis=1) for i in range(min(self.shape[1], 4))]
        fixed += [
            partial * np.cos(2 * np.pi * np.sqrt(p) * np.arange(1, self.shape[1] + 1))
            for p in (2, 3, 5)
        ]
        fixed += list(np.eye(self.dim)[np.argsort(-np.diag(H), kind="stable")[:4]])
        fixed += list(np.linalg.eigh(H)[1][:, :-7:-1].T)
        both = [
            s * np.ravel(start)
            for start in [*starts, *fixed]
            for s in ((1, -1) if c.any() else (1,))
        ]

        def furthest(directions: Array) -> tuple[Array, Array]:
            """Return the ball's support point x along each row, and (x − c)'H(x − c) for it."""
            stack = directions.reshape(-1, *self.shape)
            x = radius * _unit_supports(stack, self.q).reshape(directions.shape)
            return x, np.einsum("ij,ij->i", (x - c) @ H, x - c)

        # repeat x ← argmax <H(x − c), ·> until a local maximum
        x, values = furthest(np.array(both[: 2 * _CLIMBS]))
        going = np.arange(len(x))
        for _ in range(_CLIMB_STEPS):
            trials, ahead = furthest((x[going] - c) @ H)
            gains = ahead - values[going]
            ahead_of = gains > 0
            x[going[ahead_of]], values[going[ahead_of]] = trials[ahead_of], ahead[ahead_of]
            going = going[gains > 1e-14 * np.abs(ahead)]
            if not len(going):
                break
        return x[values.argmax()]

    def __repr__(self) -> str:
        return f"SchattenBall({self.shape}, q={self.q:g}, radius={self.radius:g})"


def sphere_maximum(form: Array, g: Array, radius: float) -> tuple[Array, float]:
    """Return a y with ``‖y‖ = radius`` where ``y'Ay − 2 g'y`` is largest, and an upper bound.

    The matrix A is ``form``.

    For every τ > 0 and λ = λ_max + τ, the maximum is at most ``λ·radius² + Σ g_i²/(λ − λ_i)``, with
    A's eigenvalues λ_i and coordinates g_i of g along its eigenvectors (Moré & Sorensen 1983). For
    A ⪰ 0, this also bounds the maximum over the ball.
    """
    values, axes = np.linalg.eigh(form)
    b, gaps = axes.T @ g, values[-1] - values
    floor = max(1e-15 * (np.abs(values).max() + np.abs(b).max() / radius), 1e-300)

    def length(tau: float) -> float:
        return float(np.linalg.norm(b / (gaps + tau)))

    if length(floor) <= radius:  # the hard case: the last axis adds the missing length
        tau = floor
        y = -b / (gaps + tau)
        y[-1] = math.copysign(math.sqrt(max(radius**2 - y[:-1] @ y[:-1], 0.0)), -b[-1])
    else:
        high = 2 * max(float(np.linalg.norm(b)) / radius, floor)
        tau = _root(lambda t: 1 / length(t) - 1 / radius, floor, high)
        y = -b / (gaps + tau)
    y *= radius / np.linalg.norm(y)
    return axes @ y, float((values[-1] + tau) * radius**2 + b @ (b / (gaps + tau)))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return a root of the function between ``low`` and ``high``."""
    root = scipy.optimize.root_scalar(function, bracket=(low, high), method="brentq", xtol=1e-300)
    return float(root.root)


def _singular_values(X: Array) -> Array:
    return np.asarray(np.linalg.svd(X, compute_uv=False), dtype=np.float64)


def _norm(values: Array, p: float) -> float:
    """Return the ℓ_p norm of nonnegative numbers, without overflow."""
    top = float(values.max(initial=0.0))
    if top == 0 or p == math.inf:
        return top
    return top * float(((values / top) ** p).sum()) ** (1 / p)


def _unit_support(theta: Array, q: float) -> Array:
    """Return the matrix X of Schatten-q norm at most one with the largest <theta, X>."""
    return _unit_supports(theta[None], q)[0]


def _unit_supports(thetas: Array, q: float) -> Array:
    """Return, for each theta, the X of the unit Schatten-q ball with the largest <theta, X>."""
    sizes = np.abs(thetas).max(axis=(1, 2), keepdims=True)
    left, values, right = np.linalg.svd(
        thetas / np.where(sizes > 0, sizes, 1.0), full_matrices=False
    )
    # X by Hölder's inequality
    if q == 1:
        best = np.eye(1, values.shape[1])
    elif q == math.inf:
        best = np.ones((1, values.shape[1]))
    else:
        best = (values / np.where(values[:, :1] > 0, values[:, :1], 1.0)) ** (1 / (q - 1))
        best[:, 0] = 1.0
        best = best / (best**q).sum(axis=1, keepdims=True) ** (1 / q)
    return np.where(sizes > 0, (left * best[:, None]) @ right, 0.0)


def _majorant(H: Array, shape: tuple[int, int], q: float) -> tuple[float, list[Array]]:
    """Return an upper bound on x'Hx over the unit ball for q > 2, and points to start from."""
    # If Y_1 ⊗ I + I ⊗ Y_2 ⪰ H with Y_1, Y_2 ⪰ 0, then x'Hx <= <Y_1, XX'> + <Y_2, X'X>
    # <= ‖Y_1‖_p + ‖Y_2‖_p with p = q/(q−2), by Hölder and ‖XX'‖_{q/2} = ‖X‖_q² <= 1.
    # If H exceeds the majorant, the largest eigenvalue of the excess, times
    # ‖X‖_F² <= min(m, n)^{1/p}, is added: so any pair gives a proven bound.
    m, n = shape
    p = q / (q - 2) if q < math.inf else 1.0
    blocks = H.reshape(m, n, m, n)

    def spectrum(Y: list[Array]) -> tuple[Array, Array]:
        """Return eigenvalues λ and vectors z: Hz = λDz and z'Dz = 1, D = Y_1 ⊗ I + I ⊗ Y_2."""
        (d1, U1), (d2, U2) = (np.linalg.eigh(y) for y in Y)
        # D has the eigenvectors U_1 ⊗ U_2, with sums of the eigenvalues of Y_1 and Y_2
        scale = 1 / np.sqrt((d1[:, None] + d2).ravel())
        turned = np.einsum("ia,jb,ijkl,kc,ld->abcd", U1, U2, blocks, U1, U2, optimize=True).reshape(
            H.shape
        )
        values, vectors = np.linalg.eigh(scale[:, None] * turned * scale)
        columns = (scale[:, None] * vectors).reshape(m, n, -1)
        back = np.einsum("ia,jb,abk->ijk", U1, U2, columns, optimize=True)
        return values, back

    def pair(flat: Array) -> tuple[list[Array], list[Array]]:
        roots = [flat[: m * m].reshape(m, m), flat[m * m :].reshape(n, n)]
        Y = [A @ A.T for A in roots]
        return roots, [y + _FLOOR * np.trace(y) / len(y) * np.eye(len(y)) for y in Y]

    def objective(flat: Array, sharpness: float) -> tuple[float, Array]:
        roots, Y = pair(flat)
        values, vectors = spectrum(Y)
        # the largest eigenvalue, smoothed: (Σ λ^s)^{1/s} >= λ_max, with equality as s grows
        weights = (np.maximum(values, 0) / values[-1]) ** sharpness
        total = float(weights.sum())
        root = vectors * np.sqrt(weights / total)
        sums = [np.einsum("ijk,ljk->il", root, root), np.einsum("ijk,ilk->jl", root, root)]
        norms = [_norm(np.maximum(np.linalg.eigvalsh(y), 0), p) for y in Y]
        slopes = []
        for A, y, norm, Z in zip(roots, Y, norms, sums, strict=True):
            inner = _norm_slope(y, norm, p) / sum(norms) - Z
            inner += _FLOOR * np.trace(inner) / len(y) * np.eye(len(y))
            slopes.append((2 * inner @ A).ravel())
        return math.log(values[-1]) + math.log(total) / sharpness + math.log(
            sum(norms)
        ), np.concatenate(slopes)

    flat = np.concatenate([np.eye(m).ravel(), np.eye(n).ravel()])
    steps = 60 if m * n <= _SMALL else 15
    best = _norm(np.ones(min(shape)), p) * float(np.linalg.eigvalsh(H)[-1])
    for sharpness in (10.0, 60.0, 400.0):
        solution = scipy.optimize.minimize(
            objective,
            flat,
            args=(sharpness,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps},
        )
        flat = solution.x / np.abs(solution.x).max()
        _, Y = pair(flat)
        # multiplied by the largest generalised eigenvalue, D is ⪰ H up to rounding
        scale = float(spectrum(Y)[0][-1])
        Y = [y * scale for y in Y]
        D = np.kron(Y[0], np.eye(n)) + np.kron(np.eye(m), Y[1])
        excess = float(np.linalg.eigvalsh(H - D)[-1]) + 4 * m * n * EPS * (
            np.linalg.norm(D) + np.linalg.norm(H)
        )
        norms = [_norm(np.abs(np.linalg.eigvalsh(y)), p) for y in Y]
        best = min(best, sum(norms) + max(excess, 0.0) * min(shape) ** (1 / p))
    vectors = spectrum(pair(flat)[1])[1]
    return best, [H @ vectors[:, :, -k].ravel() for k in range(1, min(6, m * n) + 1)]


def _norm_slope(y: Array, norm: float, p: float) -> Array:
    """Return the gradient of the Schatten norm ``‖y‖_p`` at a positive definite y."""
    values, axes = np.linalg.eigh(y)
    return np.asarray((axes * (np.maximum(values, 0) / norm) ** (p - 1)) @ axes.T, dtype=np.float64)


def _rank_one_bound(H: Array, shape: tuple[int, int], q: float) -> tuple[float, list[Array]]:
    """Return an upper bound on x'Hx over the unit ball for q < 2, and points to climb from."""
    # H and its partial transpose H^Γ agree on rank-one matrices: for q = 1 every mixture gives
    # a bound. For λ_1 = min(λ_max(H), λ_max(H^Γ)) and λ_2 = λ_max(H), interpolation between
    # S_1 and S_2 (Riesz–Thorin, complex matrices) gives the bound λ_1^{2/q−1} λ_2^{2−2/q}.
    m, n = shape
    turned = H.reshape(m, n, m, n).transpose(0, 3, 2, 1).reshape(H.shape)

    def mixed(t: float) -> float:
        return float(np.linalg.eigvalsh(t * H + (1 - t) * turned)[-1])

    ends = mixed(1.0), mixed(0.0)
    solution = scipy.optimize.minimize_scalar(
        mixed, bounds=(-1.0, 2.0), method="bounded", options={"xatol": 1e-6}
    )
    share = float(solution.x)  # pyright: ignore[reportAttributeAccessIssue]
    real = min(*ends, mixed(share))
    # ‖X‖_1 <= r^{1 − 1/q} ‖X‖_q for r singular values (Hölder)
    through_nuclear = real * min(shape) ** (2 - 2 / q)
    between = max(min(ends), 0.0) ** (2 / q - 1) * ends[0] ** (2 - 2 / q)
    starts = np.linalg.eigh(share * H + (1 - share) * turned)[1][:, :-4:-1].T
    return min(through_nuclear, between) + 4 * m * n * EPS * float(np.linalg.norm(H)), [
        H @ s for s in starts
    ]
