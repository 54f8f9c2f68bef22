"""The set that must be covered, if its points cannot be listed: a domain given by its oracles."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from domains.algebra.images import pulls_back
from domains.algebra.members import magnitudes, widest
from domains.domain import SLACK, AbstractDomain
from domains.errors import DomainTooLargeError, InvalidDomainError
from domains.floats import EPS, Array, power_of_two
from domains.oracles.distance import ROUNDING
from domains.oracles.image import ConvexImage, is_diagonal

from ...errors import CovarianceError
from ...numerics.feasibility import RANGE_TOLERANCE, row_weights
from ...numerics.norms import norm
from ...numerics.precision import precision_for
from ...numerics.span import placed
from ..design import Protected

_MOST_ENTRIES = 2**24  # largest number of entries of a covariance factor
# Oracles round their bounds to about 1e-10. Iterative ones stop at different steps on different
# machines, with results that differ by up to 1e-6 where the bracket is wide.
_EXACT_MARGIN, _ITERATIVE_MARGIN = 2.0**-32, 2.0**-22
_REPEATABLE = 1e-4  # another machine's bound may differ by this fraction of the bracket's width
_CLOSED = 1e-9  # brackets with a smaller gap are treated as having this gap
_MOST_ROUNDING = 1e-3  # largest rounding, relative to the body's length, of a usable factor
# The same limit for bodies whose own computation cancels: the noise grows by up to this fraction.
_MOST_CANCELLED = 0.1
# Bodies farther from the origin than this multiple of their size are shifted there: nearer ones are
# rounded by less than the margins.
_FAR = 2.0**10
_ASCENTS = 50
_DIRECTIONS = 4  # number of directions tried per dimension, besides the axes


@dataclass(frozen=True, eq=False)
class Farthest:
    """A long point of a body in coordinates of an ellipsoid, and a bound on the longest one.

    ``value`` is the squared length of ``point``, and ``upper`` an upper bound on the squared length
    of every point of the body.
    """

    point: Array
    value: float
    upper: float


@dataclass(frozen=True, eq=False)
class Enclosure:
    """Two proven bounds on all points z of a body: on ‖L⁺z‖, and on the distance from range(L).

    L is the factor of a covariance, shape (d, r).

    Attributes:
        longest: upper bound on ``‖L⁺ z‖`` over the body, rounding included.
        outside: shape (d,), the largest distance of the body from range(L), along each axis.
    """

    longest: float
    outside: Array


@dataclass(frozen=True, eq=False)
class Body:
    """A set S to be covered by an ellipsoid, known by its support points and quadratic oracle.

    A support point maximises a linear function over S; the oracle bounds a quadratic form on S.

    Attributes:
        domain: the set S.
        blur: bound on the rounding of every coordinate when S was shifted and scaled.
    """

    domain: AbstractDomain
    blur: float = 0.0

    @property
    def dim(self) -> int:
        return self.domain.dim

    @cached_property
    def _image(self) -> ConvexImage | None:
        return self.domain._image()

    @cached_property
    def sizes(self) -> Array:
        """The largest absolute value of every coordinate, shape (d,)."""
        return np.abs(self._along_axes).max(axis=0) + self._gaps(np.eye(self.dim))

    def rounded(self, p: float) -> float:
        """Return a bound on how much the least error γ_p grows if support points are rounded.

        Rounded points of the body K lie in K + E, for a small ball E. For a subset of K + E, the
        least error is at most γ_p(K) + γ_p(E). For a ball of radius r, the least error is
        ``d^{1/p} r`` (Nikolov & Tang 2023, Lemma 60).
        """
        return self.dim ** (1 / p) * ROUNDING * float(np.abs(self._ends).max())

    def forgiven(self, p: float) -> float:
        """Return a bound on how much the least error γ_p grows if points outside are accepted.

        Membership tests accept points that are outside by up to ``SLACK`` times every width of the
        body, or up to ``SLACK`` times the largest width. A box of half widths e has γ_p =
        ‖e‖_{2p/(p + 2)} (Nikolov & Tang 2023, Lemma 62).
        """
        widths = SLACK * (self._ends[0] - self._ends[1])
        return norm(widths, 2 / (1 + 2 / p)) + self.dim ** (1 / p) * float(widths.max())

    @cached_property
    def _ends(self) -> Array:
        """The largest and the smallest value of each coordinate, shape (2, d)."""
        return np.array(
            [self._along_axes[: self.dim].diagonal(), self._along_axes[self.dim :].diagonal()]
        )

    @cached_property
    def _term_sizes(self) -> Array:
        """Bounds, shape (d,), on the terms that sum to a coordinate; the terms may cancel."""
        return np.maximum(self.sizes, magnitudes(self.domain))

    @cached_property
    def _along_axes(self) -> Array:
        return self.support_points(np.vstack([np.eye(self.dim), -np.eye(self.dim)]))

    def support_points(self, directions: Array) -> Array:
        """Return the body's farthest point in the direction of each row, shape (k, d)."""
        if not len(directions):
            return np.zeros((0, self.dim))
        if self._image is not None:
            return self._image.support_points(directions)
        return np.array([self.domain.support_point(theta) for theta in directions]).reshape(
            -1, self.dim
        )

    def _gaps(self, directions: Array) -> Array:
        """Return bounds on the error of support points in the directions ±θ, for every row θ."""
        if self._image is not None:
            return np.zeros(len(directions))
        gap = self.domain._support_gap
        return np.array([max(gap(theta), gap(-theta)) for theta in directions])

    def start(self) -> Array:
        """Return points (k, d) of the body that span it: the farthest ones along many directions.

        The directions are the axes and evenly spread ones; more are added if points do not span.
        """
        points = np.vstack(
            [
                self._along_axes,
                self.support_points(even_directions(_DIRECTIONS * self.dim, self.dim)),
            ]
        )
        while True:
            missing = self._farther_than_rounding(_complement(points))
            if not len(missing):
                return np.unique(points + 0.0, axis=0)
            points = np.vstack([points, missing])

    def _farther_than_rounding(self, directions: Array) -> Array:
        """Return the farthest points along ``directions``, if not zero there up to rounding."""
        tops = self.support_points(np.vstack([directions, -directions]))
        reach = np.abs(tops @ directions.T).max(axis=1, initial=0.0)
        return tops[reach > RANGE_TOLERANCE * self.sizes.max()]

    def farthest(self, whitening: Array, center: Array) -> Farthest:
        """Return the point x of the body with the longest ``whitening @ (x − center)``.

        The point may not be exact, so an upper bound on the squared length is returned with it.
        """
        moved = self.domain if not center.any() else self.domain - center
        farthest = (whitening @ moved).max_quadratic(np.eye(len(whitening)))
        # a support point is a member of S, and its image is at least as long as the maximiser
        point = self.domain.support_point(farthest.maximizer @ whitening)
        value = float(np.square(whitening @ (point - center)).sum())
        return Farthest(point, value, max(farthest.upper_bound, value))

    def climb(
        self, whitening: Array, center: Array, points: Array, directions: Array, beyond: float
    ) -> Array:
        """Return points x of the body where ‖W (x − center)‖ is locally largest.

        W is ``whitening``. Ascents start from ``points`` and from the farthest points in
        ``directions``. Ascents that are unlikely to reach the squared length ``beyond`` may end
        early.
        """
        if self._image is not None and len(self._image.offsets) == 1:
            starts = np.vstack([(points - center) @ whitening.T, directions])
            return self._image.local_maxima(whitening, center, starts, beyond)
        points = np.vstack([points, self.support_points(directions @ whitening)])
        form = whitening.T @ whitening
        tops = points.copy()
        values = np.einsum("ij,ij->i", (tops - center) @ form, tops - center)
        rising = np.arange(len(tops))
        for _ in range(_ASCENTS):
            nearby = self.support_points((tops[rising] - center) @ form)
            now = np.einsum("ij,ij->i", (nearby - center) @ form, nearby - center)
            better = now > values[rising] * (1 + 1e-10)
            rising = rising[better]
            if not len(rising):
                break
            tops[rising], values[rising] = nearby[better], now[better]
        return tops

    def enclosure(self, factor: Array, whitening: Array, *, slack: float = 1.0) -> Enclosure:
        """Return proven bounds on ‖L⁺z‖ over the body, and on its distance from range(L).

        L is ``factor``, and ``whitening`` is about its left inverse. Margins for rounding are
        multiplied by ``slack``. So an answer that was stored with ``slack`` 2 passes a verification
        with ``slack`` 1 on any machine.
        """
        r = factor.shape[1]
        if r == 0:
            return Enclosure(0.0, self.sizes)
        eps = EPS
        # W L = 1 + E, hence ‖L⁺z‖ <= ‖W z‖/(1 − ‖E‖) for z in range(L)
        precision = precision_for(r * factor.size)
        wide = whitening.astype(precision) @ factor.astype(precision)
        error = float(np.linalg.norm((wide - np.eye(r)).astype(np.float64)))
        rounded = 8 * self.dim * float(np.finfo(precision).eps)
        error += rounded * float(np.linalg.norm(np.abs(whitening) @ np.abs(factor)))
        farthest = self.farthest(whitening, np.zeros(self.dim))
        apart = farthest.upper / farthest.value - 1 if farthest.value > 0 else 0.0
        exact = apart < _CLOSED
        margin = _EXACT_MARGIN if exact else _ITERATIVE_MARGIN + _REPEATABLE * apart
        # a bracket that is closed here may be slightly wider or narrower on another machine
        proven = (farthest.value * (1 + _CLOSED) if exact else farthest.upper) * (
            1 + slack * margin
        )
        # For images, oracles maximise ‖W x‖ itself. For other bodies they maximise x'W'W x, whose
        # rounding is added to the square of the length.
        share = 8 * slack * (max(self.dim, widest(self.domain)) + 16) * eps
        plain, cancelled = (
            share * float(np.linalg.norm(np.abs(whitening) @ s))
            for s in (self.sizes, self._term_sizes)
        )
        moved = slack * self.blur * float(np.linalg.norm(np.abs(whitening).sum(axis=1)))
        squared = 0.0
        if self._image is None:
            squared = (cancelled if pulls_back(self.domain) else plain) ** 2 / share
        longest = math.sqrt(proven + squared)
        error *= slack
        # these comparisons are false for NaN, so NaN is refused
        clear = error < _MOST_ROUNDING and (longest + plain + moved) ** 2 <= proven * (
            1 + _MOST_ROUNDING
        )
        if not (clear and cancelled <= _MOST_CANCELLED * longest):
            raise CovarianceError(
                "the covariance is too nearly singular for its set to be checked in double "
                "precision; hint: rescale coordinates, or directions, whose sizes differ by more "
                "than 1e5, and move parts that lie far away nearer"
            )
        return Enclosure((longest + cancelled + moved) / (1 - error), self._outside(factor))

    def _outside(self, factor: Array) -> Array:
        """Return bounds on the body's distance from range(factor) along each axis, shape (d,)."""
        if factor.shape[1] == self.dim:  # a square L with an inverse has all of space as its range
            return np.zeros(self.dim)
        directions = _complement(factor.T)
        if not len(directions):
            return np.zeros(self.dim)
        tops = self.support_points(np.vstack([directions, -directions]))
        reach = np.abs(tops @ directions.T).max(axis=0) + self._gaps(directions)
        return reach @ np.abs(directions)


def blur(center: Array, size: float) -> float:
    """Return the rounding error of shifting a set by ``center``, in units of ``size``."""
    return 4 * EPS * float(np.abs(center).max(initial=0.0)) / size


def moved_back(domain: AbstractDomain, protected: Protected) -> tuple[AbstractDomain, Array]:
    """Return the domain shifted near the origin, so that rounding is small, and the shift.

    Differences do not depend on a shift, so for K − K the domain is always shifted. If the domain K
    is covered up to a shift, K is shifted only if it is far from the origin. For K ∪ −K nothing is
    shifted, since its size depends on the shift.
    """
    if protected != "add-remove":
        still, shift = domain._apart()
        far = shift.any() and np.abs(shift).max() > _FAR * Body(still).sizes.max()
        if far or protected == "replace":
            return still, shift
    return domain, np.zeros(domain.dim)


def about(domain: AbstractDomain, center: Array, size: float, drift: float) -> Body:
    """Return the body (domain − center) / size; ``drift`` is the error of the center."""
    return Body(
        (domain - center if center.any() else domain) * (1 / size),
        blur(center, size) + drift / size,
    )


def check_dim(function: str, dim: int) -> None:
    """Raise DomainTooLargeError if a dense d × d factor of the covariance has too many entries."""
    if dim**2 > _MOST_ENTRIES:
        raise DomainTooLargeError(
            f"{function}: a covariance in R^{dim} needs {dim**2 * 8 / 1e9:.3g} GB, more than "
            f"{_MOST_ENTRIES * 8 / 1e9:.3g}; hint: project to fewer coordinates (A @ K), or solve "
            "the factors of a product one by one"
        )


def unit_body(domain: AbstractDomain, origin: Array) -> tuple[Body, float]:
    """Return the body (domain − origin) / size, and ``size``.

    ``size`` is a power of two near the largest absolute coordinate.
    """
    moved = Body(domain - origin if origin.any() else domain)
    largest = float(moved.sizes.max())
    if not math.isfinite(largest):
        raise InvalidDomainError(
            f"expected finite support points from {type(domain).__name__}, got NaN or infinity"
        )
    size = power_of_two(largest) if largest > 0 else 1.0
    return Body(moved.domain * (1 / size), blur(origin, size)), size


def left_inverse(factor: Array) -> Array:
    """Return the left inverse, shape (r, d), of a factor of shape (d, r).

    It is zero on the orthogonal complement of the factor's range.
    """
    if is_diagonal(factor) and factor.diagonal().all():
        return np.diag(1 / factor.diagonal())
    live = (factor != 0).any(axis=1)  # so that constant coordinates add no rounding
    weights = row_weights(factor)[live]
    Q, R = np.linalg.qr(factor[live] * weights[:, None])
    if not R.diagonal().all() or len(Q) < factor.shape[1]:
        raise CovarianceError("the factor's columns are linearly dependent")
    return placed((scipy.linalg.solve_triangular(R, Q.T) * weights).T, live).T


def _complement(points: Array) -> Array:
    """Return orthonormal rows that span the orthogonal complement of the rows of ``points``."""
    live = (points != 0).any(axis=0)
    _, singular, axes = np.linalg.svd(points[:, live], full_matrices=True)
    noise = 4 * EPS * math.sqrt(max(points.shape))
    rank = int((singular > noise * singular.max(initial=0.0)).sum())
    # coordinates that are zero in all points are exact unit vectors, free of others' rounding
    return np.vstack([np.eye(len(live))[~live], placed(axes[rank:].T, live).T])


def even_directions(count: int, dim: int, batch: int = 0) -> Array:
    """Return ``count`` directions evenly spread on the sphere, shape (count, dim).

    They are not normalised. Each ``batch`` has other directions.
    """
    steps = np.sqrt(np.arange(2, dim + 2) + np.sqrt(2) - 1)
    uniform = np.outer(np.arange(1, count + 1) + batch * count, steps) % 1
    return scipy.special.ndtri(np.clip(uniform, 1e-9, 1 - 1e-9))
