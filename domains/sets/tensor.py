"""Tensor powers of the vectors of a Euclidean ball: the domain whose means are moment tensors."""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from ..checks import whole
from ..domain import SLACK, AbstractDomain, QuadraticMax
from ..errors import DomainTooLargeError, InvalidDomainError
from ..floats import EPS, Array
from ..records import own_array, real_array
from .schatten import sphere_maximum

_MOST_ENTRIES = 2**20  # largest number of coordinates of a tensor: 8 MB
# largest dimension of the symmetric tensors in which quadratic bounds are symmetrised
_MOST_SYMMETRIZED = 1500
_MOST_RELAXED = 80  # largest dimension of them for which a sum-of-squares bound is computed
_CIRCLE_CELLS = 4096  # largest number of arcs that branch and bound on the circle treats together

# a function that maps a unit vector to the value and the gradient of a polynomial there
Polynomial = Callable[[Array], tuple[float, Array]]


@final
@dataclass(frozen=True, eq=False)
class TensorPower(AbstractDomain):
    """The tensor powers ``{x ⊗ … ⊗ x : ‖x‖₂ <= 1}``, flattened in C order.

    Their mean is the moment tensor of order ``order`` of the vectors x. (Nikolov & Tang (2023),
    Theorem 64, take x from the cube [−1, 1]^dim instead.) If order and ``dim`` are above two,
    the oracles are NP-hard (Hillar & Lim 2013): ``support_point`` climbs from many fixed starting
    points and may stop at a local maximum, so ``support`` is then a lower bound.

    Args:
        dim: dimension of x, >= 1; stored as ``base``. The property ``dim`` is instead the dimension
            of the space of tensors.
        order: number of factors, >= 1.

    Raises:
        InvalidDomainError: ``dim`` or ``order`` is not an integer >= 1.
        DomainTooLargeError: more than 2^20 coordinates.

    >>> K = TensorPower(3, 2)
    >>> K.dim, K.is_symmetric
    (9, False)
    >>> round(K.support(np.diag([1.0, -5.0, 3.0]).ravel()), 9)
    3.0
    """

    base: int
    order: int

    def __init__(self, dim: int, order: int) -> None:
        base, order = whole("TensorPower", "dim", dim), whole("TensorPower", "order", order)
        if order * math.log2(base) > math.log2(_MOST_ENTRIES) + 1e-9:
            raise DomainTooLargeError(
                f"TensorPower: {base}^{order} coordinates, more than 2^20; "
                "hint: a smaller order, or project the vectors to fewer dimensions first"
            )
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "order", order)

    @property
    def dim(self) -> int:
        return self.base**self.order

    def _stored(self) -> dict[str, Any]:
        return {"dim": self.base, "order": self.order}

    @property
    def is_symmetric(self) -> bool:
        return self.order % 2 == 1

    def embed(self, vectors: "ArrayLike") -> Array:
        """Return the tensor power of every row of ``vectors``, flattened, as rows.

        Args:
            vectors: shape (n, base), finite, each of norm <= 1 up to rounding.

        Returns:
            Rows of K, shape (n, base**order).

        Raises:
            DimensionError: wrong shape.
            InvalidDomainError: not real numbers, a vector outside the unit ball, NaN or infinity;
                the message shows no value.

        >>> TensorPower(2, 2).embed([[0.6, 0.8]]).round(2)
        array([[0.36, 0.48, 0.48, 0.64]])
        """
        x = real_array(
            "embed", f"vectors of shape (n, {self.base})", (None, self.base), vectors
        ).astype(np.float64)
        if (
            not (np.abs(x) <= 2).all()
            or not (np.linalg.norm(x, axis=1) <= 1 + SLACK / self.order).all()
        ):
            raise InvalidDomainError(
                "embed: expected finite vectors of norm <= 1; hint: divide by their largest norm"
            )
        return _powers(x, self.order)

    def _support_point(self, theta: Array) -> Array:
        size = np.abs(theta).max()
        if size == 0:
            return np.zeros(self.dim)
        tensor = _symmetrized(theta / size, self.base, self.order)
        u = self._best_vector(tensor)
        value, _ = _contract(tensor, u, self.order)
        return _powers(u[None], self.order)[0] if value > 0 else np.zeros(self.dim)

    def _support_gap(self, theta: Array) -> float:
        d, k, size = self.base, self.order, float(np.abs(theta).max())
        if k <= 2 or d <= 2 or size == 0:
            return 0.0
        tensor = _symmetrized(theta / size, d, k)
        if _best_of_monomial(tensor, d, k) is not None:
            return 0.0
        found, _ = _contract(tensor, self._best_vector(tensor), k)
        return size * max(_form_bound(tensor, d, k) - max(found, 0.0), 0.0)

    def _best_vector(self, tensor: Array) -> Array:
        """Return the unit vector u with the largest <tensor, u ⊗ … ⊗ u> that was found."""
        d, k = self.base, self.order
        if k == 1:
            return tensor / np.linalg.norm(tensor)
        if k == 2:
            return np.linalg.eigh(tensor.reshape(d, d))[1][:, -1]

        def polynomial(u: Array) -> tuple[float, Array]:
            return _contract(tensor, u, k)

        if d <= 2:
            return _best_on_circle(polynomial, d, k)[0]
        alone = _best_of_monomial(tensor, d, k)
        if alone is not None:
            return alone
        return _climb(polynomial, [*_starts(d), *_leading(tensor, d)])

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        d, k = self.base, self.order
        size = np.abs(form).max()
        reach = max(1.0, np.abs(center).max())
        if size == 0:
            return QuadraticMax(np.zeros(self.dim), 0.0, 0.0)
        # The objective is divided by size·reach², so that nothing overflows. In coordinates X of
        # u ⊗ … ⊗ u in the basis E, it is X'GX − 2 g'X + still.
        H, c = form / size, center / reach
        still = float(c @ H @ c)
        coordinates = symmetric_coordinates(d, k)
        E = coordinates.basis()
        G = np.asarray(E.T @ (E.T @ H).T) / reach**2
        G, g = (G + G.T) / 2, np.asarray(E.T @ (H @ c)) / reach

        def polynomial(u: Array) -> tuple[float, Array]:
            X = coordinates.powers(u)
            y = G @ X - g
            return float(X @ (y - g)), 2 * _contract(coordinates.tensor(y), u, k)[1]

        # for x = r u, the objective is convex in r^k: maxima are on the sphere or at the origin
        if k == 1:
            u, upper = sphere_maximum(G, g, 1.0)
        elif d <= 2:
            u, upper = _best_on_circle(polynomial, d, 2 * k)
        else:
            starts = list(_starts(d))
            for column in [*np.linalg.eigh(G)[1][:, -4:].T, -g]:
                starts += _leading(coordinates.tensor(column), d)
            u, upper = _climb(polynomial, starts), _sphere_bound(G, g, coordinates)
        upper += 16 * len(G) * EPS * float(np.linalg.norm(G) + 2 * np.linalg.norm(g))
        point = _powers(u[None], k)[0] if polynomial(u)[0] > 0 else np.zeros(self.dim)
        moved = point / reach - c
        value = float(moved @ H @ moved)
        return QuadraticMax(
            point, value * size * reach**2, max(upper + still, still, value) * size * reach**2
        )

    def _near(self, X: Array) -> Array:
        """Return a member t u ⊗ … ⊗ u near each row of X; u is a leading direction of the row."""
        unfolded = X.reshape(len(X), self.base, -1)
        # u: first left singular vector of the row as a matrix (base, base^(order − 1))
        u = np.linalg.eigh(unfolded @ unfolded.transpose(0, 2, 1))[1][:, :, -1]
        powers = u
        for _ in range(self.order - 1):
            powers = (powers[:, :, None] * u[:, None, :]).reshape(len(X), -1)
        amounts = np.clip((powers * X).sum(axis=1), -1.0 if self.is_symmetric else 0.0, 1.0)
        return amounts[:, None] * powers

    def _before(self, A: Array, X: Array) -> Array:
        """Return symmetric tensors y with A y = x, for rows x that are images under A."""
        basis = symmetric_coordinates(self.base, self.order).basis()
        return (basis @ np.linalg.pinv(A @ basis) @ X.T).T

    def _contains(self, x: Array) -> bool:
        d, k = self.base, self.order
        if np.abs(x).max() > 1 + SLACK:
            return False
        unfolded = x.reshape(d, -1)
        u = np.linalg.eigh(unfolded @ unfolded.T)[1][:, -1]
        nearest = _powers(u[None], k)[0]
        amount = np.clip(nearest @ x, -1.0 if self.is_symmetric else 0.0, 1.0)
        return bool(np.linalg.norm(x - amount * nearest) <= SLACK)

    def __repr__(self) -> str:
        return f"TensorPower({self.base}, {self.order})"


@dataclass(frozen=True, eq=False)
class SymmetricCoordinates:
    """Orthonormal coordinates of the symmetric tensors: one coordinate per multiset of indices.

    Attributes:
        base: d.
        order: k.
        kind: shape (d^k,), for each tensor entry, the index of its multiset in ``indices``.
        counts: shape (N,), the number of tensor entries per multiset, a multinomial coefficient.
        indices: shape (N, k), the multisets, sorted.
    """

    base: int
    order: int
    kind: NDArray[np.intp]
    counts: Array
    indices: NDArray[np.intp]

    def basis(self) -> "scipy.sparse.csr_array":
        """Return a sparse orthonormal basis E of the symmetric tensors, shape (d^k, N).

        Each column belongs to one of the N multisets of k indices.
        """
        entries = np.arange(len(self.kind))
        return scipy.sparse.csr_array((1 / np.sqrt(self.counts[self.kind]), (entries, self.kind)))

    def tensor(self, coordinates: Array) -> Array:
        """Return the symmetric tensor with these coordinates, flattened."""
        return (coordinates / np.sqrt(self.counts))[self.kind]

    def powers(self, u: Array) -> Array:
        """Return the coordinates of the tensor power u ⊗ … ⊗ u (k factors), shape (N,)."""
        return np.sqrt(self.counts) * u[self.indices].prod(axis=1)

    def exponents(self) -> NDArray[np.intp]:
        """Return how often each index occurs in each of the N multisets, shape (N, d)."""
        table = np.zeros((len(self.counts), self.base), dtype=np.intp)
        for column in self.indices.T:
            table[np.arange(len(table)), column] += 1
        return table


@functools.lru_cache(maxsize=8)
def symmetric_coordinates(base: int, order: int) -> SymmetricCoordinates:
    """Return coordinates for symmetric tensors of this order over R^base.

    Each coordinate belongs to a multiset of indices; multisets are in lexicographic order.
    """
    places = [base**i for i in range(order - 1, -1, -1)]
    digits = np.stack([np.arange(base**order) // place % base for place in places], axis=1)
    digits.sort(axis=1)
    first, kind, counts = np.unique(
        digits @ np.array(places), return_inverse=True, return_counts=True
    )
    indices = np.stack([first // place % base for place in places], axis=1)
    kind = kind.reshape(-1)
    for array in (kind, indices):
        array.flags.writeable = False
    return SymmetricCoordinates(base, order, kind, own_array(counts), indices)


def _powers(x: Array, k: int) -> Array:
    """Return the tensor power x ⊗ … ⊗ x of k factors for every row x, flattened."""
    result = x
    for _ in range(k - 1):
        result = (result[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    return result


def _symmetrized(theta: Array, d: int, k: int) -> Array:
    """Return the symmetric part of a tensor: its mean over all orders of its k indices."""
    if k == 1:
        return theta
    if k == 2:
        return (theta + theta.reshape(d, d).T.ravel()) / 2
    coordinates = symmetric_coordinates(d, k)
    return (np.bincount(coordinates.kind, theta) / coordinates.counts)[coordinates.kind]


def _contract(tensor: Array, u: Array, k: int) -> tuple[float, Array]:
    """Return ``<T, u ⊗ … ⊗ u>`` and its gradient in u, for a symmetric tensor T of order k."""
    for _ in range(k - 1):
        tensor = tensor.reshape(-1, len(u)) @ u
    return float(tensor @ u), k * tensor


def _starts(d: int) -> list[Array]:
    """Return fixed unit vectors spread over the sphere, as starting points of a search."""
    axes = np.eye(d)
    pairs = [
        (axes[i] + s * axes[j]) / math.sqrt(2)
        for i, j in itertools.combinations(range(min(d, 6)), 2)
        for s in (1, -1)
    ]
    slopes = np.sqrt(
        np.array(
            [p for p in range(2, 12 * d + 12) if all(p % q for q in range(2, math.isqrt(p) + 1))][
                :d
            ]
        )
    )
    waves = np.cos(2 * np.pi * np.outer(np.arange(1, 4 * min(d, 8) + 1), slopes % 1))
    chosen = np.vstack([axes[:16], np.reshape(pairs, (-1, d)), np.full((1, d), 1.0), waves])
    chosen /= np.linalg.norm(chosen, axis=1, keepdims=True)
    return [*chosen, *-chosen]


def _leading(tensor: Array, d: int) -> list[Array]:
    """Return the tensor's three leading left singular vectors and their negatives."""
    unfolded = tensor.reshape(d, -1)
    # the best rank-one tensor is often near the leading directions of the unfolding
    axes = np.linalg.eigh(unfolded @ unfolded.T)[1][:, -3:]
    return [*axes.T, *-axes.T]


def _climb(
    polynomial: Polynomial, starts: list[Array], tries: int = 12, steps: int = 1000
) -> Array:
    """Return the unit vector at the best local maximum of the polynomial that ascents find."""
    # symmetric higher-order power method u ← (∇f(u) + αu)/‖·‖, whose shift α is raised until f does
    # not decrease (Kolda & Mayo 2011)
    order = np.argsort([-polynomial(u)[0] for u in starts], kind="stable")[:tries]
    best, top = starts[order[0]], -math.inf
    for start in order:
        u = starts[start]
        value, slope = polynomial(u)
        shift, stalled = 0.0, 0
        for _ in range(steps):
            moved = slope + shift * u
            norm = float(np.linalg.norm(moved))
            trial = moved / norm if norm > 0 else u
            ahead, ahead_slope = polynomial(trial)
            if ahead < value or norm == 0:
                shift = max(2 * shift, float(np.linalg.norm(slope)) / 4)
                stalled += 1
                if shift > 1e9 * np.linalg.norm(slope) or norm == 0 or stalled > 60:
                    break
                continue
            settled = ahead - value <= 1e-16 * abs(ahead) and np.linalg.norm(trial - u) < 1e-9
            u, value, slope, shift, stalled = trial, ahead, ahead_slope, shift / 2, 0
            if settled:
                break
        if value > top:
            best, top = u, value
    return best


def _best_of_monomial(tensor: Array, d: int, k: int) -> Array | None:
    """Return the best unit u if <tensor, u ⊗ … ⊗ u> is one monomial in u, otherwise None."""
    coordinates = symmetric_coordinates(d, k)
    places = np.flatnonzero(tensor)
    kinds = coordinates.kind[places]
    if not len(kinds) or (kinds != kinds[0]).any():
        return None
    exponents = np.bincount(coordinates.indices[kinds[0]], minlength=d)
    # Lagrange for Π u_i^{a_i}: a_i/u_i = multiplier · u_i, so that u_i² = a_i/k
    u = np.sqrt(exponents / k)
    odd = np.flatnonzero(exponents % 2)
    if tensor[places[0]] < 0 and len(odd):
        u[odd[0]] *= -1
    return u


def _best_on_circle(polynomial: Polynomial, d: int, degree: int) -> tuple[Array, float]:
    """Return a unit vector of R^1 or R^2 that maximizes the polynomial, and a proven bound."""
    if d == 1:
        ends = [np.array([1.0]), np.array([-1.0])]
        values = [polynomial(u)[0] for u in ends]
        best = int(np.argmax(values))
        return ends[best], values[best]
    # more samples than twice the degree determine the trigonometric polynomial
    count = 4 * degree + 4
    angles = 2 * np.pi * np.arange(count) / count
    samples = np.array([polynomial(np.array([math.cos(a), math.sin(a)]))[0] for a in angles])
    waves = (np.fft.rfft(samples) / count)[: degree + 1]
    waves[1:] *= 2
    n = np.arange(degree + 1)
    # on the circle it is a trigonometric polynomial, whose coefficients bound its second derivative
    bend = float(n**2 @ np.abs(waves))

    def taylor(at: NDArray[np.floating]) -> tuple[Array, Array]:
        phases = np.exp(1j * np.outer(at, n))
        return (phases @ waves).real, (phases @ (1j * n * waves)).real

    width = 2 * np.pi / 64
    middles: Array = width * (np.arange(64, dtype=np.float64) + 0.5)
    angle, best, excluded, tolerance = 0.0, -math.inf, -math.inf, 1e-13 * float(np.abs(waves).sum())
    bounds = np.zeros(0)
    for _ in range(50):
        values, slopes = taylor(middles)
        i = int(np.argmax(values))
        if values[i] > best:
            angle, best = float(middles[i]), float(values[i])
        # Taylor's bound from the middle of an arc to its ends, which are width/2 away
        bounds = values + np.abs(slopes) * width / 2 + bend * width**2 / 8
        keep = bounds > best + tolerance
        excluded = max(excluded, float(bounds[~keep].max(initial=-math.inf)))
        middles, bounds = middles[keep], bounds[keep]
        if not len(middles) or len(middles) > _CIRCLE_CELLS:
            break
        width /= 2
        middles = np.concatenate([middles - width / 2, middles + width / 2])
    for _ in range(3):  # Newton steps for the last digits of the angle
        slope = float(taylor(np.array([angle]))[1][0])
        curve = float((np.exp(1j * n * angle) @ (-(n**2) * waves)).real)
        moved = angle - slope / curve if curve < 0 else angle
        if taylor(np.array([moved]))[0][0] >= best:
            angle, best = moved, float(taylor(np.array([moved]))[0][0])
    u = np.array([math.cos(angle), math.sin(angle)])
    upper = max(excluded, float(bounds.max(initial=-math.inf)), best, polynomial(u)[0])
    return u, upper + 16 * count * EPS * float(np.abs(samples).max())


def _form_bound(tensor: Array, d: int, k: int) -> float:
    """Return an upper bound on <tensor, u ⊗ … ⊗ u> (k factors) over unit vectors u in R^d."""
    # For even k, the form is quadratic in the powers u ⊗ … ⊗ u of order k/2. For odd k, the square
    # of the form is quadratic in the powers of order k.
    is_even = k % 2 == 0
    coordinates = symmetric_coordinates(d, k // 2 if is_even else k)
    E = coordinates.basis()
    if is_even:
        G = np.asarray(E.T @ (E.T @ tensor.reshape(E.shape[0], -1)).T)
    else:
        G = np.outer(E.T @ tensor, E.T @ tensor)
    G = (G + G.T) / 2
    norm = float(np.linalg.norm(tensor))
    bound = _sphere_bound(G, np.zeros(len(G)), coordinates)
    bound += 16 * len(tensor) * EPS * (norm if is_even else norm**2)
    return bound if is_even else math.sqrt(max(bound, 0.0))


def _sphere_bound(G: Array, g: Array, coordinates: SymmetricCoordinates) -> float:
    """Return an upper bound on ``X'GX − 2 g'X`` over X = u ⊗ … ⊗ u for unit vectors u."""
    # These X are unit vectors: a trust-region problem gives a bound. G may be replaced by G + Z
    # if X'ZX = 0 for all of them: Z = A − S(A), where S averages over all orders of the 2k indices.
    # Every Z gives a proven bound, the best one the sum-of-squares bound.
    best = sphere_maximum(G, g, 1.0)[1]
    if coordinates.order % 2 == 0 and g.any():
        # Since <L, X> = ‖u‖^k = 1, the linear term g'X equals the quadratic (g'X)(L'X). A bound
        # with a linear term also holds for −X, which is no tensor power if k is even.
        L = _norm_power(coordinates)
        G, g = G - np.outer(g, L) - np.outer(L, g), np.zeros(len(g))
    if len(G) > _MOST_SYMMETRIZED:
        return min(best, sphere_maximum(G, g, 1.0)[1])
    kind, weights = _pairs(coordinates)
    totals = np.bincount(kind, weights**2)

    def vanishing(A: Array) -> Array:
        return A - ((np.bincount(kind, weights * A.ravel()) / totals)[kind] * weights).reshape(
            A.shape
        )

    def bound(Z: Array) -> float:
        return sphere_maximum(G + Z, g, 1.0)[1]

    Z = -vanishing(G)
    best = min(best, *(bound(t * Z) for t in (0.0, 0.5, 1.0)))
    if len(G) > _MOST_RELAXED or not G.any():
        return best
    N, scale = len(G), float(np.linalg.norm(G)) + float(np.linalg.norm(g))

    def smoothed(flat: Array, width: float) -> tuple[float, Array]:
        # (X, 1) has squared length 2; s moves weight between X and 1
        s, A = flat[-1], flat[:-1].reshape(N, N)
        both = np.empty((N + 1, N + 1))
        both[:N, :N] = (G + vanishing(A + A.T)) / scale + s * np.eye(N)
        both[N], both[:N, N], both[N, N] = np.append(-g, 0.0) / scale, -g / scale, -s
        values, axes = np.linalg.eigh(both)
        # the largest eigenvalue, smoothed: width · log Σ exp(λ/width)
        shares = np.exp((values - values[-1]) / width)
        total = float(shares.sum())
        mean = (axes * (shares / total)) @ axes.T
        slope = 2 * vanishing(mean[:N, :N]) / scale
        return values[-1] + width * math.log(total), np.append(
            slope, np.trace(mean[:N, :N]) - mean[N, N]
        )

    flat = np.append(Z.ravel() / 4, 0.0)
    for width in (3e-2, 3e-3, 3e-4):
        solution = scipy.optimize.minimize(
            smoothed, flat, args=(width,), jac=True, method="L-BFGS-B", options={"maxiter": 40}
        )
        flat = solution.x
        A = flat[:-1].reshape(N, N)
        best = min(best, bound(vanishing(A + A.T)))
    return best


def _norm_power(coordinates: SymmetricCoordinates) -> Array:
    """Return coordinates L with ``<L, u ⊗ … ⊗ u> = ‖u‖^k`` for all vectors u; k is even."""
    halves = coordinates.exponents() // 2
    even = (coordinates.exponents() % 2 == 0).all(axis=1)
    ways = [
        math.factorial(coordinates.order // 2) / math.prod(map(math.factorial, row))
        for row in halves.tolist()
    ]
    return np.where(even, ways, 0.0) / np.sqrt(coordinates.counts)


def _pairs(coordinates: SymmetricCoordinates) -> tuple[NDArray[np.intp], Array]:
    """Return, for each pair of multisets, an index of their union and √ of the counts' product."""
    exponents = coordinates.exponents()
    kind = np.zeros(len(exponents) ** 2, dtype=np.intp)
    for column in exponents.T:  # renumbered after each index, so that no number overflows
        joined = (column[:, None] + column).ravel()
        kind = np.unique(kind * (2 * coordinates.order + 1) + joined, return_inverse=True)[
            1
        ].reshape(-1)
    # c, c': counts of orders of both multisets
    roots = np.sqrt(coordinates.counts)
    return kind, np.outer(roots, roots).ravel()
