"""Closed form for tensor powers x^⊗k of even order k at p = ∞.

The powers of axes, ``e_i ⊗ … ⊗ e_i``, determine the optimum. The projection of the set K on their d
coordinates lies in the simplex of 0 and the unit vectors. The vertices of this simplex are in K, so
the simplex's γ_∞ is a lower bound on γ_∞(K). The simplex's best ellipsoid has the same noise along
each of the d coordinates. All other coordinates have at least two different indices, and are called
mixed. Mixed coordinates may have as much noise as the d coordinates. The covariance M is diagonal
on the mixed coordinates. :func:`longest` proves that M covers the powers of all vectors.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from domains.floats import Array
from domains.sets.tensor import TensorPower, symmetric_coordinates

from ...errors import CovarianceError


@final
@dataclass(frozen=True)
class AxesDesign:
    """An optimal covariance of tensor powers x^⊗k, and the dual measure that proves it.

    Both treat all d axes alike. The covariance is stored as a factor.

    Attributes:
        own: diagonal entry of the factor in the d coordinates (i, …, i), the powers of axes.
        other: off-diagonal entry of the factor in these coordinates.
        mixed: standard deviation of every other coordinate, which has at least two different
            indices.
        center: the ellipsoid's center in each of the d coordinates; 0 for ``replace``.
        share: for ``gamma``, the measure's weight on the point 0. For ``replace``, the measure's
            total weight on powers of axes; their differences have the rest. Points of one kind have
            equal weights.
    """

    own: float
    other: float
    mixed: float
    center: float
    share: float


def axes_design(domain: TensorPower, kind: Literal["gamma", "replace"]) -> AxesDesign | None:
    """Return the optimal covariance of x^⊗k, k even, at p = ∞; None if its proof fails.

    >>> design = axes_design(TensorPower(3, 2), "replace")
    >>> round(design.own**2 + 2 * design.other**2, 12)  # variance of a power of an axis: 2d/(d + 1)
    1.5
    """
    d, k = domain.base, domain.order
    tau = mixed_share(d, k)
    if tau is None:
        return None
    if kind == "replace":
        ones, rest, center, share = 2 / (d + 1), 2.0, 0.0, 2 / (d * (d + 1))
    else:
        # θ = sin²φ maximises (d − 1)·√(1−θ) + √(θ(1−θ)), which is d·γ
        share = (2 / (d - 1 + math.hypot(d - 1, math.sqrt(8)))) ** 2
        gamma = axes_trace(d, kind, share)
        rest = gamma * math.sqrt(1 - share)
        ones, center = rest * math.sqrt(share), (1 - share) / d
    # on powers of axes, L is (own − other) I + other 11', with the singular values √rest, and √ones
    # for (1, …, 1)
    other = (math.sqrt(ones) - math.sqrt(rest)) / d
    mixed = math.sqrt(tau * Fraction(rest))
    return AxesDesign(math.sqrt(rest) + other, other, mixed, center, share)


def axes_trace(d: int, kind: Literal["gamma", "replace"], share: float) -> float:
    """Return the lower bound on γ_∞ that the dual measure proves.

    For ``gamma``, the measure has the weight ``share`` on 0, and equal weights on the powers of the
    d axes. For ``replace``, the powers of axes have the total weight ``share``, and their
    differences have the rest. The bound is ``tr((C/d)^½)``. For ``gamma``, C is the covariance of
    the measure; for ``replace``, C is its second moment.
    """
    many, one = axes_spectrum(d, kind, share)
    return (d - 1) * many + one


def axes_spectrum(d: int, kind: Literal["gamma", "replace"], share: float) -> tuple[float, float]:
    """Return the square roots of the eigenvalues of C/d, for the C of :func:`axes_trace`.

    The first number belongs to d − 1 equal eigenvalues, the second number to the eigenvector
    (1, …, 1). For ``gamma``, ``C = ((1−θ)/d)(I − (1−θ) 11'/d)``, where θ is ``share``. For
    ``replace``, ``C = share I/d + (1 − share) D``. Here ``D = 2/(d − 1) (I − 11'/d)`` is the mean
    of ``(e_i − e_j)(e_i − e_j)'`` over all pairs.
    """
    if kind == "gamma":
        squares = 1 - share, share * (1 - share)
    else:
        squares = share + 2 * d / max(d - 1, 1) * (1 - share), share
    return math.sqrt(squares[0]) / d, math.sqrt(squares[1]) / d


def axes_factor(domain: TensorPower, own: float, other: float, mixed: float) -> Array:
    """Return a factor L of the covariance, shape (d^k, N): one column per distinct coordinate.

    Columns of the d axes come first, then those of mixed coordinates, which have at least two
    different indices. Every entry is ``own``, ``other``, ``mixed`` or 0, so that nothing is
    rounded.
    """
    d, k = domain.base, domain.order
    coordinates = symmetric_coordinates(d, k)
    is_axis = (coordinates.exponents() == k).any(axis=1)
    column = np.where(is_axis, np.cumsum(is_axis) - 1, d - 1 + np.cumsum(~is_axis))
    factor = np.zeros((domain.dim, len(column)))
    factor[np.arange(domain.dim), column[coordinates.kind]] = mixed
    rows = axes_entries(domain)
    factor[rows, :d] = other
    factor[rows, np.arange(d)] = own
    return factor


def axes_entries(domain: TensorPower) -> NDArray[np.intp]:
    """Return the flat indices of the entries (i, …, i) of a tensor, shape (d,)."""
    d = domain.base
    return np.arange(d) * sum(d**j for j in range(domain.order))


def longest(
    domain: TensorPower,
    kind: Literal["gamma", "replace"],
    own: Fraction,
    other: Fraction,
    mixed: Fraction,
    center: Fraction,
) -> Fraction:
    """Return a proven bound on the squared length of all powers x^⊗k, or of their differences.

    The squared length of z is ``(z − c)' M⁺ (z − c)``. Here M = LL', and L is the factor that
    :func:`axes_factor` returns. For powers, c is ``center`` in the coordinates (i, …, i), and 0 in
    all others. For differences, c is 0.

    Raises:
        CovarianceError: an eigenvalue of M is zero, or there is no proof for this power.
    """
    # The form is convex, so only powers of unit vectors, and 0, matter. For a unit x let p_i =
    # x_i^k, s = Σ p_i and q = Σ p_i², and let R(x) be the sum of the squares of all mixed
    # coordinates, one of each kind: equal ones share a column of L. Let a and b be the eigenvalues
    # of M for the all-ones vector and for its orthogonal complement, A = (1/a − 1/b)/d and μ =
    # mixed². The form is
    # * q/b + A s² − 2sc/a + dc²/a + R/μ around c(1, …, 1). mixed_share shows R <= τ(s − q):
    #   with e = max(1/b, τ/μ), as q <= s, that is at most dc²/a + A s² + (e − 2c/a) s, and largest
    #   at s = 0 or at s = 1.
    # * |z|²/b + A(Σz)² + R(x, y)/μ for differences, z = p(x) − p(y), which is at most max(2e, 2A)
    #   times ½|z|² + ½(Σz)² + R(x, y)/2τ. That sum is at most one: For k = 2, R(x, y) = ½(|X − Y|²
    #   − |z|²) <= 1 − ½|z|², τ = ½, and Σz = 0, unless y = 0, where R = (1 − q)/2, |z|² = q and Σz
    #   = 1. For k >= 4, R(x, y) <= 2R(x) + 2R(y), hence it is at most B(x) + B(y) − s(x)s(y) with B
    #   = ½q + ½s² + R/τ <= s, which is 1 − (1 − s(x))(1 − s(y)) (and, for y = 0, at most B(x)).
    d, tau = domain.base, mixed_share(domain.base, domain.order)
    a = (own + (d - 1) * other) ** 2
    # in one dimension there are no other directions, and no mixed coordinates
    b = (own - other) ** 2 if d > 1 else 2 * a
    if tau is None or not (a and b and mixed):
        raise CovarianceError(
            f"no proof that the covariance leaves no direction of {domain!r} without noise"
        )
    e = max(1 / b, tau / mixed**2) if d > 1 else 1 / b
    A = max((1 / a - 1 / b) / d, Fraction(0))
    if kind == "replace":
        return 2 * max(e, A)
    return d * center**2 / a + max(Fraction(0), e + A - 2 * center / a)


def mixed_share(d: int, k: int) -> Fraction | None:
    """Return a τ with ``R <= τ(s − q)`` for all unit vectors x, or None if the proof fails.

    For x in R^d, let ``s = Σ x_i^k`` and ``q = Σ x_i^{2k}``. Let R be the sum of the squares of all
    distinct monomials of degree k in x, without the powers x_i^k. For k = 2, s = 1 and
    ``R = ½(1 − q)``, so τ = ½. For k >= 4, τ is d/(d + 1), and the stronger
    ``R <= τ(s(1 − s) + ½(s² − q))`` is proven in rational arithmetic. At k = 4 this proof fails
    from d = 16 on.
    """
    # In w_i = x_i², on the simplex, both sides are symmetric polynomials of degree k = 2h: R is the
    # sum of all monomials except w_i^k, ½(s² − q) = Σ_{i<j} w_i^h w_j^h, and s(1 − s) = Σ_i w_i^h
    # ((Σ w)^h − Σ_j w_j^h). Muirhead's inequality: if exponents α majorise β, the mean of w^α over
    # all permutations is at least that of w^β. So it is enough to cover each monomial whose
    # coefficient on the right side is too small by surplus coefficients of monomials that majorise
    # it.
    if k == 2:
        return Fraction(1, 2)
    h, tau = k // 2, Fraction(d, d + 1)
    room: list[tuple[tuple[int, ...], Fraction]] = []
    owed: list[tuple[tuple[int, ...], Fraction]] = []
    for powers in _partitions(k, d, k - 1):
        # the surplus of this monomial on the right side, divided by τ
        excess = -1 / tau
        if powers == (h, h):
            excess += 1
        elif powers[0] >= h:
            left = (powers[0] - h, *powers[1:])
            excess += Fraction(math.factorial(h), math.prod(map(math.factorial, left)))
        (room if excess > 0 else owed).append((powers, abs(excess) * _permutations(powers, d)))
    for powers, debt in owed:
        for n in range(len(room) - 1, -1, -1):  # the most even powers first: they majorise fewest
            above, free = room[n]
            paid = min(debt, free) if majorises(above, powers) else Fraction(0)
            room[n] = above, free - paid
            debt -= paid
        if debt:
            return None
    return tau


def _partitions(total: int, parts: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield partitions of ``total`` into at most ``parts`` numbers ``<= most``, largest first."""
    if total == 0:
        yield ()
    elif parts:
        for first in range(min(total, most), 0, -1):
            for rest in _partitions(total - first, parts - 1, first):
                yield (first, *rest)


def _permutations(powers: tuple[int, ...], d: int) -> int:
    """Return the number of distinct monomials in d variables whose exponents are ``powers``."""
    counts = [powers.count(power) for power in set(powers)]
    return math.perm(d, len(powers)) // math.prod(map(math.factorial, counts))


def majorises(above: tuple[int, ...], below: tuple[int, ...]) -> bool:
    """Return whether the partition ``above`` majorises the partition ``below`` of the same number.

    It does so if, for every m, the m largest entries of ``above`` have at least the sum of the m
    largest entries of ``below``.

    >>> majorises((3, 1), (2, 1, 1)), majorises((2, 2), (3, 1))
    (True, False)
    """
    sums = itertools.zip_longest(
        itertools.accumulate(above), itertools.accumulate(below), fillvalue=sum(above)
    )
    return all(high >= low for high, low in sums)
