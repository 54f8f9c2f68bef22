"""An integer lattice for records of a convex body, which are rounded one by one."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from domains.algebra.members import contains, magnitudes, near_members, widest
from domains.domain import SLACK, AbstractDomain
from domains.floats import EPS, Array, power_of_two
from domains.oracles.distance import bounding_box, is_near
from domains.oracles.image import is_diagonal
from domains.oracles.rows import row_norms, row_products

from ..errors import CovarianceError, DataError
from ..files.pickling import PickledByArguments
from ..noise.covariance import FactorCovariance
from ..noise.optimal_noise import OptimalNoise
from ..numerics.feasibility import RANGE_TOLERANCE
from ..privacy.lattice import AbstractLattice
from ..privacy.sampler import IntegerQuery
from ..records import check_finite, map_into
from ..solvers.bodies.body import Body, left_inverse

_GRID_BITS = 50  # bits of a record's coordinate, relative to the body's half width
_LARGEST = 2**51  # the largest absolute value of a coordinate, in grid steps
_SUMMED = 2**11  # number of records added in 64-bit integers: 2⁵¹ · 2¹¹ = 2⁶²
# Members are computed, and so rounded. The whitened length of a record may exceed its part of the
# sensitivity by this factor.
_FORGIVEN = 2.0**-26
_CHUNK_ENTRIES = 2**21  # records in a chunk × numbers that describe a record: 16 MB
_BARE = 1e-9  # relative distance from the range of the noise at which a member may still be rounded


@dataclass(frozen=True, eq=False)
class _Geometry:
    """The part of a :class:`BodyLattice` that does not depend on the privacy budget."""

    domain: AbstractDomain
    body: AbstractDomain | None
    whitening: Array
    origin: Array
    exponents: NDArray[np.int64]
    live: NDArray[np.bool_]
    box: Array
    radius: float
    # bound on the difference of a record's coordinates w between neighbours; 0 without noise
    length: float
    unit_factor: Array
    size: float
    # bounds, shape (d,): on the change of coordinates for a w of length one, and on the change of
    # one record by rounding, except that of Q (see BodyLattice)
    deviations: Array
    bias: Array

    @classmethod
    def of(cls, noise: OptimalNoise, covariance: FactorCovariance) -> Self:
        """Return the geometry of an optimal noise; raise if a direction has no noise."""
        domain, factor = noise.domain, covariance.unit_factor
        sums = noise.neighbors == "add-remove"
        origin, centered = _origin(noise)
        lower, upper = bounding_box(domain)
        reach = np.maximum(np.maximum(upper - origin, origin - lower), 0.0)
        live = reach > 0
        exponents = np.frexp(np.where(live, reach, 1.0))[1].astype(np.int64) - _GRID_BITS
        steps = np.where(live, np.ldexp(1.0, exponents), 0.0)
        size = power_of_two(covariance.scale)
        W = left_inverse(factor) if factor.shape[1] else np.zeros((0, domain.dim))
        r, d = W.shape
        outside = _outside(domain, origin, reach, factor, W)
        # bound on the change of a coordinate by rounding; it also holds for support points
        numbers = magnitudes(domain) + np.abs(origin)
        blur = steps + 4 * (widest(domain) + 8) * EPS * numbers
        margin = 1e-6 * float(reach.max()) + blur
        box = np.array([lower - margin, upper + margin])
        if not r:
            still = np.zeros(d)
            return cls(
                domain, None, W, origin, exponents, live, box, 0.0, 0.0, factor, size, still, blur
            )

        def whitened(lengths: Array) -> float:
            """Return a bound on ‖W v / size‖ for all v with ``|v_j| <= lengths[j]``."""
            return float(np.linalg.norm(np.abs(W) @ (lengths / size))) * (1 + 8 * (d + r) * EPS)

        error = _left_error(W, factor)
        # M = scale² L L', so ‖w‖ <= (1 + error) · scale/size · √sensitivity for all differences of
        # members
        longest = math.sqrt(noise.sensitivity_squared) * (covariance.scale / size) * (1 + 8 * EPS)
        share = longest if sums else longest / 2
        rounding = 4 * (d + 8) * EPS * whitened(steps * _LARGEST)
        radius = _FORGIVEN * share + whitened(blur)
        if centered:
            body, radius = None, share + radius
            length = (1 if sums else 2) * (radius * (1 + 4 * (r + 8) * EPS) + rounding)
        else:
            body = W @ ((domain - origin) * (1 / size))
            low, high = bounding_box(body)
            beyond = 2 * SLACK * float((high - low).max()) + 128 * EPS * float(
                np.abs([low, high]).max()
            )
            outer = (max(radius, beyond) + whitened(blur)) * (1 + 4 * (r + 8) * EPS) + rounding
            length = (
                longest * (1 + error)
                + 2 * outer
                + whitened(4 * RANGE_TOLERANCE * np.maximum(reach, blur))
            )
        length *= 1 + 32 * EPS
        deviations = np.linalg.norm(factor, axis=1) * size
        projected = np.abs(factor) @ (np.abs(W) @ blur)
        decoding = 8 * (r + 4) * EPS * (np.abs(origin) + deviations * longest)
        bias = outside + projected + decoding + deviations * (error * longest)
        return cls(
            domain,
            body,
            W,
            origin,
            exponents,
            live,
            box,
            radius,
            length,
            factor,
            size,
            deviations,
            bias,
        )


# Mechanisms with several budgets share a noise, and often are made one after the other.
_known: WeakKeyDictionary[OptimalNoise, _Geometry] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class BodyLattice(_Geometry, AbstractLattice, PickledByArguments):
    r"""The lattice of integers on which a sum of records from a body is released.

    The covariance is M = scale² L Lᵀ, W is a left inverse of L, o is the origin; ``steps`` (one per
    coordinate) and ``size`` (near scale) are powers of two.

    * A record x becomes ``z(x) = rint((x − o) / steps)``, clipped to ±2⁵¹: one subtraction, one
      scaling and one rounding for each coordinate. There is no matrix product, so the result does
      not depend on other records.
    * ``Z = Σ z(x)`` is exact, and so is ``Q = rint(2^bits · W (steps ∘ Z) / size)``, computed from
      the stored W in Python integers.

    Sensitivity. Rounding Q changes each coordinate by at most 1/2, so neighbours differ by at most
    ``2^bits · sup ‖w‖ + √r``, where w is ``W (steps ∘ z)/size`` of the record added or removed, or
    the difference of the w of a record and its replacement. A release accepts a record only under
    one of two conditions:

    * If the body has a center, or sums are released, the w of the record must be in the ball of
      ``radius``. Then 2·radius (``radius`` for sums) bounds the difference, even if the domain's
      oracles are wrong.
    * Otherwise, w must be within ``radius`` of W (K − o)/size, or within the slack of membership.
      The stored ``sensitivity_squared`` of the noise bounds differences of members; twice the
      larger of the two distances is added. This requires that the domain's oracles are right, up to
      the rounding of numbers as large as :func:`magnitudes`.

    If records are dropped (sums only), a record that is not a member, or has a w longer than
    ``radius``, gets z = 0, so its w is in the same ball. Both conditions are checked record by
    record, by elementwise arithmetic alone. So whether a record counts depends on this record only,
    and neighbours differ by the contribution of one record.

    Attributes:
        domain: K.
        body: W (K − o)/size, in which the w of records are tested; None for the ball.
        whitening: W, shape (r, d).
        origin: o, shape (d,).
        exponents: binary exponents of ``steps``, which are powers of two, shape (d,).
        live: whether the body has a positive extent along each axis, shape (d,).
        box: least and largest coordinates, shape (2, d); records outside it are refused without
            further tests.
        radius: the largest length of w, as described above.
        bits: exponent of the power of two that is the number of lattice steps per unit of w.
        query: the integer query with its sensitivity and budget.
        unit_factor: L.
        size: a power of two near the noise's scale.
        bias: bound on the change of one record (or the mean) by rounding, shape (d,).
    """

    bits: int
    query: IntegerQuery

    @classmethod
    def build(
        cls,
        noise: OptimalNoise,
        covariance: FactorCovariance,
        rho: float,
        choose_bits: Callable[[float], int],
    ) -> Self:
        """Return the integer lattice for releases with the budget ρ.

        ``choose_bits`` takes the standard deviation of the noise in whitened coordinates, and
        returns ``bits``: a lattice step is 2^-bits of these.
        """
        known = _known.get(noise)
        if known is None or known.unit_factor is not covariance.unit_factor:
            known = _known[noise] = _Geometry.of(noise, covariance)
        bits, query, bias = 0, IntegerQuery(1, 1.0), known.bias
        if r := len(known.whitening):
            bits = choose_bits(known.length / math.sqrt(2 * rho))
            moved = Fraction(known.length) * 2**bits + Fraction(math.sqrt(r)) * (1 + Fraction(EPS))
            query = IntegerQuery(math.floor(moved**2), rho)
            bias = bias + known.deviations * (math.sqrt(r) * math.ldexp(1.0, -bits))
        shared: dict[str, Any] = vars(known) | {"bias": bias}
        return cls(**shared, bits=bits, query=query)

    def sums(self, records: NDArray, on_outside: str) -> list[int]:
        """Return Q, the exact integer sum of records (n, d), each rounded and whitened.

        ``on_outside`` is the rule for records outside the domain K.

        Raises:
            DataError: a record is not finite, or is outside K and the rule refuses it.
            NotAvailableError: no projection is known.
        """
        move = None if on_outside == "refuse" else map_into(self.domain)
        totals = [0] * self.domain.dim
        rows = max(1, _CHUNK_ENTRIES // widest(self.domain))
        with np.errstate(all="ignore"):
            for start in range(0, len(records), rows):
                X = np.array(records[start : start + rows], dtype=np.float64)
                if move is not None:
                    X = self._zero_outside(X, move(X)) if on_outside == "drop" else move(X)
                else:
                    check_finite("release", X)
                grid = self.grid(X)
                if on_outside == "drop":
                    grid *= self._has_short_w(grid)[:, None]
                elif not self._accepts(X, grid):
                    raise DataError(
                        "release: expected every record in the declared domain, got one outside; "
                        'hint: widen the domain, or on_outside="drop" or "project" (which are '
                        "biased) where a map into it is known"
                    )
                for first in range(0, len(grid), _SUMMED):
                    added = grid[first : first + _SUMMED].sum(axis=0).tolist()
                    totals = [total + more for total, more in zip(totals, added, strict=True)]
        return self.rounded(totals)

    def grid(self, X: Array) -> NDArray[np.int64]:
        """Return the rows of X as integers z, shape (n, d): X minus the origin, in grid steps.

        Every operation on floats is exact or correctly rounded.
        """
        moved = np.ldexp(X - self.origin, -self.exponents)
        return (np.clip(np.rint(moved), -_LARGEST, _LARGEST) * self.live).astype(np.int64)

    def rounded(self, totals: list[int]) -> list[int]:
        """Return ``totals`` times a fixed matrix, rounded: the noise-free answer, shape (r,).

        The matrix whitens the totals, in units of lattice steps. The product is exact; halves round
        up.
        """
        answers = []
        for columns, row, low in self._exact:
            total = sum(map(operator.mul, row, map(totals.__getitem__, columns)))
            answers.append(total << low if low >= 0 else (total + (1 << (-low - 1))) >> -low)
        return answers

    @cached_property
    def _exact(self) -> list[tuple[list[int], list[int], int]]:
        """The matrix of :meth:`rounded`: by row, the nonzero columns, integers, a power of two."""
        fractions, powers = np.frexp(self.whitening)
        integers = np.ldexp(fractions, 53).astype(np.int64) * self.live
        powers = powers + self.exponents - 53 + self.bits - (math.frexp(self.size)[1] - 1)
        exact = []
        for row, power in zip(integers, powers, strict=True):
            columns = np.flatnonzero(row)
            low = int(power[columns].min(initial=np.iinfo(np.int64).max))
            shifts = (power[columns] - low).tolist()
            shifted = [m << s for m, s in zip(row[columns].tolist(), shifts, strict=True)]
            exact.append((columns.tolist(), shifted, low))
        return exact

    def whitened(self, grid: NDArray[np.int64]) -> Array:
        """Return the whitened coordinates w of every record, shape (n, r), from its integers.

        They are ``W (steps ∘ z) / size`` for a row z of ``grid``, in the symbols of the class, as
        floats.
        """
        if is_diagonal(self.whitening):
            sizes: Array = np.ldexp(self.whitening.diagonal(), self._powers)
            return grid.astype(np.float64) * sizes
        return np.ldexp(grid * 1.0, self._powers) @ self.whitening.T

    @property
    def _powers(self) -> NDArray[np.int64]:
        """The exponents of the powers of two ``steps / size``, one for each coordinate."""
        return self.exponents - (math.frexp(self.size)[1] - 1)

    def _zero_outside(self, X: Array, moved: Array) -> Array:
        """Return X with zeros for records outside the domain; ``moved`` is X mapped into it."""
        # a record counts as inside if the map hardly changes it; no row affects another
        slack = SLACK / 4 * float((self.box[1] - self.box[0]).max())
        inside = (np.abs(X - moved) <= slack).all(
            axis=1, keepdims=True
        )  # NaN compares false: outside
        return np.where(inside, X, 0.0)

    def _has_short_w(self, grid: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return for every record whether its whitened coordinates have length <= ``radius``."""
        lengths = row_norms(row_products(np.ldexp(grid * 1.0, self._powers), self.whitening), 2.0)
        return lengths <= self.radius

    def _accepts(self, X: Array, grid: NDArray[np.int64]) -> bool:
        """Return whether every row of X is in the domain up to rounding."""
        if not ((X >= self.box[0]) & (X <= self.box[1])).all():
            return False
        # with a center, w must be in the ball of ``radius``, else near the whitened domain
        w = self.whitened(grid)
        close = near_members(self.domain, X)
        slack = SLACK / 4 * float((self.box[1] - self.box[0]).max()) + 8 * EPS * np.abs(X).max(
            axis=1, initial=0.0
        )
        known = (
            np.zeros(len(X), dtype=bool)
            if close is None
            else np.linalg.norm(X - close, axis=1) <= slack
        )
        if self.body is None:
            if not (np.linalg.norm(w, axis=1) <= self.radius).all():
                return False
        elif close is not None:
            apart = w - ((close - self.origin) / self.size) @ self.whitening.T
            known &= np.linalg.norm(apart, axis=1) <= self.radius
        if known.all():
            return True
        _, others = np.unique(X[~known], axis=0, return_index=True)
        return all(
            contains(self.domain, x) and (self.body is None or _is_near(self.body, image))
            for x, image in zip(X[~known][others], w[~known][others], strict=True)
        )


def _is_near(body: AbstractDomain, x: Array) -> bool:
    """Return whether x is in the body up to rounding; False if the body's code fails."""
    try:
        return is_near(body, x)
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
        return False


def _origin(noise: OptimalNoise) -> tuple[Array, bool]:
    """Return the origin of records, and whether a ball around it gives the exact sensitivity."""
    # zero for sums, else a center of the domain, or any member if there is no center
    domain = noise.domain
    if noise.neighbors == "add-remove":
        return np.zeros(domain.dim), True
    if noise.shifted and noise.sensitivity_squared >= 4:
        return np.array(noise.center), True
    center = domain._center()
    return (domain.support_point(np.zeros(domain.dim)), False) if center is None else (center, True)


def _left_error(W: Array, factor: Array) -> float:
    """Return a bound on the spectral norm of ``W factor − identity``, rounding included."""
    r, d = W.shape
    # Scaling by powers of two, which is exact, gives all rows of L the same size. W and L are then
    # split into leading bits and rests, W = W₁ + W₂ and L = L₁ + L₂, without rounding. Entries of a
    # row of W₁ are multiples of a power of two, at most 2^bits times this power, and so are entries
    # of a column of L₁. Any sum of d products of two such entries is a multiple of a power of two,
    # at most d 2^(2·bits) <= 2⁵³ times this power, so W₁ L₁ is exact in any order. W₁ L₁ − 1 is
    # rounded once. Only W L − W₁ L₁ = W₁ L₂ + W₂ L, about 2^-bits as large, has the error of a
    # product of 2d terms, at most d EPS (|W₁| |L₂| + |W₂| |L|); it is doubled for the rounding of
    # this bound. 1e-150 is larger than all that underflows: entries are far below 1e100.
    powers = np.frexp(np.abs(factor).max(axis=1, initial=0.0))[1]
    W, L = np.ldexp(W, powers), np.ldexp(factor, -powers[:, None])
    bits = (53 - d.bit_length()) // 2
    leading, top = _leading(W, bits), _leading(L.T, bits).T
    left, right = np.hstack([leading, W - leading]), np.vstack([L - top, L])
    apart = leading @ top - np.eye(r)
    rounding = np.linalg.norm(apart) + 2 * d * np.linalg.norm(np.abs(left) @ np.abs(right))
    error = np.linalg.norm(apart + left @ right) + EPS * rounding + 1e-150
    return float(error) * (1 + 1e-9)


def _leading(rows: Array, bits: int) -> Array:
    """Return entries rounded to multiples of 2^(e − bits), with 2^e above the row's largest."""
    powers = np.frexp(np.abs(rows).max(axis=1, keepdims=True, initial=0.0))[1] - bits
    return np.ldexp(np.rint(np.ldexp(rows, -powers)), powers)


def _outside(domain: AbstractDomain, origin: Array, reach: Array, factor: Array, W: Array) -> Array:
    """Return the domain's largest distance from origin + range(``factor``), by axis, or raise."""
    # the part outside is linear in the record, so support points attain its maximum along an axis
    # the part outside is never released: privacy does not depend on this check, which limits bias
    beyond = np.eye(domain.dim) - factor @ W
    most = np.abs(beyond) @ reach
    if (most <= 64 * EPS * reach).all():  # this bound on all of the box is as small as rounding
        return most
    heights = np.abs(beyond).max(axis=1, keepdims=True)
    directions = beyond / np.where(heights > 0, heights, 1.0)
    points = Body(domain).support_points(np.vstack([directions, -directions])) - origin
    left = np.abs(points - (points @ W.T) @ factor.T).max(axis=0)
    size = float(reach.max(initial=0.0))
    sizes = np.maximum(reach, EPS * 64 * np.abs(origin).max()) + RANGE_TOLERANCE * size
    if (left > _BARE * sizes).any():
        worst = int(np.argmax(left / np.where(sizes > 0, sizes, 1.0)))
        raise CovarianceError(
            f"the covariance leaves some direction of the domain without noise: coordinate {worst} "
            f"sticks out of its range by {left[worst]:.2g}, at a size of {reach[worst]:.2g}"
        )
    return left
