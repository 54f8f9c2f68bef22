"""Closed form for tensor powers x^⊗k at p = 2: one number m_j for each harmonic degree j.

Nikolov & Tang (2023), Theorem 64, only bracket the error, for vectors in a cube instead of a ball.
Let D_j be the dimension of the space of harmonic tensors of degree j ≡ k mod 2, and Π_j the
projection onto this space. The optimal covariance is ``M = Σ_j m_j Π_j``. Let P_j be the Gegenbauer
polynomials with P_j(1) = 1, and let π_j be the coefficients in ``t^k = Σ_j π_j P_j(t)``. Then
``<Π_j x^⊗k, Π_j y^⊗k> = π_j P_j(<x, y>)`` for unit vectors x and y. A triple (a, b, t) stands for
the differences ``a x^⊗k − b y^⊗k`` of all unit vectors with <x, y> = t, rotated uniformly. The dual
problem needs only measures on such triples. Its value is ``γ = max Σ_j √(D_j π_j κ_j)``, where
``κ_j = E[a² + b² − 2ab P_j(t)]``.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from domains.errors import DomainTooLargeError
from domains.floats import Array
from domains.sets.tensor import TensorPower, symmetric_coordinates

from ...numerics.rounding import ROUNDING_MARGIN
from ..design import Protected

_MOST_FACTOR_ENTRIES = 2**26  # 512 MB
_EXCHANGES = 60  # largest number of rounds that add an atom
_CLOSED = 1e-11  # gap at which no more columns are added
_BARRIER = 1e-9  # last weight of the barrier, relative to the optimum
_POLISH = 12  # Newton steps at the last weight
_UNUSED = 1e-8  # atoms of less weight are dropped: without the barrier, their weight would be zero
_HALVINGS = 60
_MOST_INTERVALS = 4096


@final
@dataclass(frozen=True, eq=False)
class TensorDesign:
    """An ellipsoid that covers the sensitivity set up to rounding, and a proof of its optimality.

    The set has tensor powers x^⊗k of unit vectors x of dimension d, or their differences. The
    covariance is ``M = Σ_j m_j Π_j``, where Π_j projects onto the harmonic tensors of degree j, a
    space of dimension D_j.

    Attributes:
        factor: shape (d^k, r), orthogonal columns: orthonormal harmonic tensors, degree by degree,
            times √m_j.
        center: shape (d^k,); zeros except for ``gamma`` of an even order.
        degrees: m_j, the covariance's factor for every degree j.
        atoms: shape (n, 3), the points of the dual measure. A row (a, b, t) stands for the
            differences ``a x^⊗k − b y^⊗k`` of unit vectors with ``<x, y> = t``: see
            :func:`traces_below`.
        weights: shape (n,), their probabilities.
        lower: the dual measure's bound on γ.
        upper: ``‖sd(M)‖₂ = √(Σ D_j m_j)``.
        note: one phrase that names the formula used.
    """

    factor: Array
    center: Array
    degrees: dict[int, float]
    atoms: Array
    weights: Array
    lower: float
    upper: float
    note: str


def tensor_design(domain: TensorPower, kind: Protected) -> TensorDesign:
    """Return the optimal covariance at p = 2 for tensor powers x^⊗k of unit vectors x.

    ``kind`` says what the ellipsoid covers: the set K of powers, up to a shift; or K ∪ −K; or K −
    K.

    Raises:
        DomainTooLargeError: the factor has more than 2^26 entries.

    >>> float(round(tensor_design(TensorPower(3, 3), "gamma").upper, 10))
    3.0149608396
    """
    d, k = domain.base, domain.order
    pi = zonal_weights(d, k)
    roots = {j: math.sqrt(multiplicity(d, j) * share) for j, share in pi.items()}
    shift = 0.0
    if kind == "replace" and k % 2 == 0:
        kappa, measure = _replace_even(domain, roots)
        note = (
            f"tensor powers, closed form over harmonic degrees; {len(measure)} kinds of differences"
        )
    elif kind == "replace":  # P_j(−1) = −1 for all j, so K − K = 2K
        kappa, measure = dict.fromkeys(pi, 4.0), [(1.0, (1.0, 1.0, -1.0))]
        note = "tensor powers of odd order, closed form over harmonic degrees"
    elif kind == "gamma" and k % 2 == 0:
        theta = _mass_at_origin(math.fsum(r for j, r in roots.items() if j), roots[0])
        kappa, measure = (
            dict.fromkeys(pi, 1 - theta),
            [(theta, (0.0, 0.0, 0.0)), (1 - theta, (1.0, 0.0, 0.0))],
        )
        kappa[0] = theta * (1 - theta)
        shift = 1 - theta
        note = (
            "tensor powers of even order around their best center, closed form over harmonic "
            "degrees"
        )
    else:
        kappa, measure = dict.fromkeys(pi, 1.0), [(1.0, (1.0, 0.0, 0.0))]
        note = "tensor powers, closed form over harmonic degrees"
    optimum = math.fsum(r * math.sqrt(kappa[j]) for j, r in roots.items())
    plain = {j: optimum * math.sqrt(pi[j] * kappa[j] / multiplicity(d, j)) for j in pi}
    scale = enclosure(domain, plain, kind, shift) * (1 + ROUNDING_MARGIN)
    degrees = {j: m * scale for j, m in plain.items()}
    atoms, weights = (
        np.array([atom for _, atom in measure]),
        np.array([weight for weight, _ in measure]),
    )
    bases = harmonic_bases(domain)
    # the harmonic part of degree 0 is the same for x^⊗k of all unit vectors: take the first axis
    mean = bases[0][:, 0] * bases[0][0, 0] if k % 2 == 0 else np.zeros(domain.dim)
    return TensorDesign(
        np.hstack([bases[j] * math.sqrt(m) for j, m in degrees.items()]),
        shift * mean,
        degrees,
        atoms,
        weights,
        math.nextafter(float(sum(traces_below(domain, kind, atoms, weights).values())), 0.0),
        math.sqrt(math.fsum(multiplicity(d, j) * m for j, m in degrees.items())),
        note,
    )


def traces_below(
    domain: TensorPower, kind: Protected, atoms: Array, weights: Array
) -> dict[int, Fraction]:
    """Return ``√(D_j π_j κ_j)`` of every harmonic degree j, in rationals, rounded down.

    The sum over j is a lower bound on the least error γ. D_j is :func:`multiplicity`, and π_j are
    the :func:`zonal_weights`. κ_j is the mean of ``a² + b² − 2ab P_j(t)`` over the atoms (a, b, t),
    with Gegenbauer's polynomials P_j. For ``gamma``, the squared mean of a is subtracted from κ_0.
    The result is empty if the atoms and weights are not a probability measure on the set.

    Args:
        domain: the tensor power, of base d and order k.
        kind: for ``gamma``, κ belongs to the covariance of the measure on K. Otherwise, κ belongs
            to the second moment of the measure on K ∪ −K or K − K.
        atoms: shape (n, 3), rows (a, b, t) in [0, 1]² × [−1, 1]: points ``±(a x^⊗k − b y^⊗k)`` of
            unit vectors with ``<x, y> = t``, rotated uniformly. For ``gamma`` and ``add-remove`` b
            is 0, and t is not used.
        weights: shape (n,), their probabilities.
    """
    d, k = domain.base, domain.order
    mass = [Fraction(w) for w in weights.tolist()]
    triples = [tuple(map(Fraction, row)) for row in atoms.tolist()]
    if (
        any(w < 0 for w in mass)
        or not sum(mass)
        or not all(_is_difference(kind, d, *row) for row in triples)
    ):
        return {}
    mass = [w / sum(mass) for w in mass]
    kappa = dict.fromkeys(zonal_weights(d, k), Fraction(0))
    for w, (a, b, t) in zip(mass, triples, strict=True):
        heights = _gegenbauer(d, k, t) if a * b else dict.fromkeys(kappa, Fraction(0))
        for j in kappa:
            kappa[j] += w * (a * a + b * b - 2 * a * b * heights[j])
    # the mean of the measure is a multiple of the only invariant tensor, of degree 0
    if kind == "gamma" and 0 in kappa:
        kappa[0] -= sum(w * a for w, (a, _, _) in zip(mass, triples, strict=True)) ** 2
    return {
        j: _root_below(multiplicity(d, j) * pi * kappa[j]) for j, pi in zonal_weights(d, k).items()
    }


def enclosure(
    domain: TensorPower, degrees: Mapping[int, float], kind: Protected, shift: float = 0.0
) -> float:
    """Return a proven upper bound on ``(s − c)' M⁺ (s − c)`` for s in the sensitivity set.

    ``M = Σ_j m_j Π_j``, with the projections Π_j onto harmonic tensors of degree j, and m_j the
    entries of ``degrees``. The center c is ``shift`` times the mean of x^⊗k over the sphere for
    ``gamma``, and 0 otherwise.
    """
    # the set has the points a x^⊗k − b y^⊗k of unit vectors with <x, y> = t. The form is convex in
    # the lengths (a, b), so that only a, b ∈ {0, 1} matter: Σ_j π_j/m_j and, for pairs, twice the
    # largest value on [−1, 1] of the polynomial Σ_j (π_j/m_j)(1 − P_j(t)), found by branch and
    # bound in Bernstein form; π_j are the zonal weights, and P_j Gegenbauer's polynomials
    d, k = domain.base, domain.order
    pi = zonal_weights(d, k)
    if set(degrees) != set(pi) or not all(m > 0 for m in degrees.values()):
        raise ValueError(
            f"enclosure: expected a positive m_j for every degree j in {sorted(pi)}, got "
            f"{dict(degrees)}"
        )
    shares = {j: float(pi[j]) / degrees[j] for j in pi}
    whole = math.fsum(shares.values())
    if kind == "replace":
        longest = 4 * whole if k % 2 else max(whole, _largest_difference(d, k, shares)[0])
    elif kind == "gamma" and k % 2 == 0:
        ends = (
            (1 - shift) ** 2 * shares[0] + math.fsum(s for j, s in shares.items() if j),
            shift**2 * shares[0],
        )
        longest = max(ends)
    else:
        longest = whole
    return longest * (1 + 2.0**-48)


def zonal_weights(d: int, k: int) -> dict[int, Fraction]:
    """Return the share π_j of every degree j in the squared length of x^⊗k for a unit vector x.

    Let P_j be Gegenbauer's polynomials for d dimensions, with P_j(1) = 1. The shares π_j are the
    coefficients in ``t^k = Σ_j π_j P_j(t)``.

    >>> zonal_weights(3, 2)
    {0: Fraction(1, 3), 2: Fraction(2, 3)}
    """
    pi = {0: Fraction(1)}
    for _ in range(k):
        raised: dict[int, Fraction] = {}
        for j, share in pi.items():
            up = _share_of_next(d, j)
            for i, part in ((j + 1, up), (j - 1, 1 - up)):
                if part:
                    raised[i] = raised.get(i, Fraction(0)) + share * part
        pi = raised
    return dict(sorted(pi.items()))


def multiplicity(d: int, j: int) -> int:
    """Return the dimension of the space of harmonic polynomials of degree j in d variables."""
    return math.comb(d + j - 1, j) - (math.comb(d + j - 3, j - 2) if j >= 2 else 0)


def harmonic_bases(domain: TensorPower) -> dict[int, Array]:
    """Return orthonormal bases of the harmonic tensors of every degree j, shapes (d^k, D_j).

    They are the eigenspaces of the operator |x|²Δ on homogeneous polynomials, with the eigenvalues
    (k−j)(k+j+d−2). The operator is symmetric in the coordinates of :func:`_trace_operator`. It
    keeps the parity of every exponent, so it splits into a small matrix for each pattern of
    parities.
    """
    d, k = domain.base, domain.order
    if domain.dim * math.comb(d + k - 1, k) > _MOST_FACTOR_ENTRIES:
        raise DomainTooLargeError(
            f"tensor_design: a factor of {domain.dim} × {math.comb(d + k - 1, k)} entries, more "
            "than 2^26; hint: a smaller order or base"
        )
    coordinates = symmetric_coordinates(d, k)
    exponents = coordinates.exponents()
    columns: dict[int, list[Array]] = {j: [] for j in zonal_weights(d, k)}
    _, pattern = np.unique(exponents % 2, axis=0, return_inverse=True)
    for chosen in range(int(pattern.max()) + 1):
        rows = np.flatnonzero(pattern.reshape(-1) == chosen)
        values, axes = np.linalg.eigh(_trace_operator(exponents[rows]))
        for j in columns:
            near = np.abs(values - (k - j) * (k + j + d - 2)) < 0.5
            block = np.zeros((len(exponents), int(near.sum())))
            block[rows] = axes[:, near]
            columns[j].append(block)
    E = coordinates.basis()
    return {j: np.asarray(E @ np.hstack(blocks)) for j, blocks in columns.items()}


def _trace_operator(exponents: NDArray[np.intp]) -> Array:
    """Return the matrix of |x|²Δ on homogeneous polynomials, in the basis ``√(k!/α!) x^α``."""
    # x_i² ∂_j² maps α to α − 2e_j + 2e_i, with the entry √(α_j(α_j−1)(α_i+2)(α_i+1))
    place = {tuple(row): n for n, row in enumerate(exponents.tolist())}
    matrix = np.zeros((len(place), len(place)))
    for alpha, n in place.items():
        for j, power in enumerate(alpha):
            if power < 2:
                continue
            for i, other in enumerate(alpha):
                if i == j:
                    matrix[n, n] += power * (power - 1)
                else:
                    beta = [*alpha]
                    beta[j] -= 2
                    beta[i] += 2
                    size = math.sqrt(power * (power - 1) * (other + 2) * (other + 1))
                    matrix[place[tuple(beta)], n] += size
    return matrix


def _share_of_next(d: int, j: int) -> Fraction:
    """Return u in Gegenbauer's recursion ``t P_j = u P_{j+1} + (1 − u) P_{j−1}``, P_j(1) = 1."""
    return Fraction(j + d - 2, 2 * j + d - 2) if j else Fraction(1)


def _gegenbauer(d: int, k: int, t: Fraction) -> dict[int, Fraction]:
    """Return Gegenbauer's polynomials P_j(t), j <= k with k − j even, for R^d; P_j(1) = 1."""
    heights = [Fraction(1), t]
    for j in range(1, k):
        up = _share_of_next(d, j)
        # in one dimension there are no harmonics beyond degree one
        heights.append((t * heights[j] - (1 - up) * heights[j - 1]) / up if up else Fraction(0))
    return {j: heights[j] for j in zonal_weights(d, k)}


def _is_difference(kind: Protected, d: int, a: Fraction, b: Fraction, t: Fraction) -> bool:
    """Return whether the protected set contains all differences that the atom stands for."""
    # the atom: a x^⊗k − b y^⊗k for all unit vectors x, y in R^d with <x, y> = t
    inside = 0 <= a <= 1 and 0 <= b <= 1 and -1 <= t <= 1
    return inside and (kind == "replace" or b == 0) and (d > 1 or not a * b or abs(t) == 1)


def _mass_at_origin(slope: float, radial: float) -> float:
    """Return the weight θ in [0, 1] that maximises ``√(1−θ)·slope + radial·√(θ(1−θ))``."""
    return (2 * radial / (slope + math.hypot(slope, math.sqrt(8) * radial))) ** 2


def _replace_even(
    domain: TensorPower, roots: Mapping[int, float]
) -> tuple[dict[int, float], list[tuple[float, tuple[float, float, float]]]]:
    """Return mean squared differences by harmonic degree, and the measure's atoms; k is even."""
    # γ = max Σ_j roots_j √κ_j over the measures; κ_j: mean squared length of the differences
    # in degree j, over π_j. Each round adds the pairs that the covariance covers least.
    d, k = domain.base, domain.order
    js = list(roots)
    costs = np.array([roots[j] ** 2 for j in js])
    atoms = [(1.0, 0.0, 0.0)]
    rows = [np.ones(len(js))]
    if d > 1:
        _add_pairs(atoms, rows, d, k, 0.0)
    shares, weights = _barrier(np.array(rows), costs)
    for _ in range(_EXCHANGES if d > 1 else 0):
        # shares are π_j/m_j, and costs/shares are D_j m_j. M, scaled to cover the longest
        # difference, gives an upper bound, and the measure gives a lower one.
        longest, cosine = _largest_difference(d, k, dict(zip(js, shares, strict=True)))
        kappa = weights @ np.array(rows)
        lower = math.fsum(np.sqrt(costs * kappa))
        upper = math.sqrt(max(longest, shares.sum()) * math.fsum(costs / shares))
        if upper <= lower * (1 + _CLOSED):
            break
        if any(b and abs(cosine - t) < 1e-7 for _, b, t in atoms):
            break
        _add_pairs(atoms, rows, d, k, cosine)
        shares, weights = _barrier(np.array(rows), costs)
    weights = np.where(weights > _UNUSED, weights, 0.0)
    weights /= weights.sum()
    measure = [(float(w), atom) for w, atom in zip(weights, atoms, strict=True) if w]
    return dict(zip(js, map(float, weights @ np.array(rows)), strict=True)), measure


def _add_pairs(
    atoms: list[tuple[float, float, float]], rows: list[Array], d: int, k: int, cosine: float
) -> None:
    """Append the atom of unit vectors with this cosine, and its squared differences by degree."""
    atoms.append((1.0, 1.0, cosine))
    rows.append(
        np.array(
            [float(2 * (1 - height)) for height in _gegenbauer(d, k, Fraction(cosine)).values()]
        )
    )


def _barrier(rows: Array, costs: Array) -> tuple[Array, Array]:
    """Return the x > 0 with ``rows @ x <= 1`` and least ``Σ costs/x``, and its multipliers."""
    x = np.full(len(costs), 0.5 / rows.sum(axis=1).max())
    weight = float((costs / x).sum())
    target = _BARRIER * weight
    polished = 0
    for _ in range(1000):
        # Newton's method for Σ costs/x − weight · Σ log slack, with smaller and smaller weight
        slack = 1 - rows @ x
        slope = -costs / x**2 + weight * rows.T @ (1 / slack)
        bend = np.diag(2 * costs / x**3) + weight * (rows.T / slack**2) @ rows
        move = np.linalg.solve(bend, -slope)
        decrement = float(-slope @ move)
        if weight > target and decrement < 1e-3 * weight:
            weight *= 0.2
            continue
        if decrement < 1e-18 * weight or (weight <= target and polished == _POLISH):
            break
        polished += weight <= target
        # shorten the step to stay inside, then halve it until the barrier function decreases
        with np.errstate(divide="ignore"):
            limits = np.concatenate(
                [-x[move < 0] / move[move < 0], (slack / (rows @ move))[rows @ move > 0]]
            )
        step = min(1.0, 0.95 * float(limits.min(initial=math.inf)))
        before = float((costs / x).sum()) - weight * float(np.log(slack).sum())
        while step > 1e-12:
            trial = x + step * move
            after = float((costs / trial).sum()) - weight * float(np.log(1 - rows @ trial).sum())
            if after <= before - 0.1 * step * decrement + 1e-15 * abs(before):
                break
            step /= 2
        x = x + step * move
    # at the minimum, the multipliers are weight/slack
    multipliers = 1 / (1 - rows @ x)
    return np.asarray(x), np.asarray(multipliers / multipliers.sum())


def _largest_difference(d: int, k: int, shares: Mapping[int, float]) -> tuple[float, float]:
    """Return an upper bound on ``2 Σ_j shares_j (1 − P_j(t))``, Gegenbauer's P_j, and a good t."""
    if d == 1:
        return 0.0, 1.0
    # In Bernstein form over u = t², the largest coefficient is a bound, and the first and the last
    # are values. Intervals that may exceed the best known value are halved (de Casteljau).
    pieces = np.array([_bernstein(d, k, {j: Fraction(s) for j, s in shares.items()})])
    left, width = np.zeros(1), 1.0
    best, cosine, excluded = 0.0, 1.0, 0.0
    tolerance = 1e-14 * float(np.abs(pieces).max())
    for _ in range(_HALVINGS):
        for end, edge in ((0, left), (-1, left + width)):
            i = int(np.argmax(pieces[:, end]))
            if pieces[i, end] > best:
                best, cosine = float(pieces[i, end]), math.sqrt(min(float(edge[i]), 1.0))
        tops = pieces.max(axis=1)
        keep = tops > best + tolerance
        excluded = max(excluded, float(tops[~keep].max(initial=0.0)))
        pieces, left, tops = pieces[keep], left[keep], tops[keep]
        if not len(pieces) or len(pieces) > _MOST_INTERVALS:
            break
        halves = [_halved(pieces), _halved(pieces[:, ::-1])[:, ::-1]]
        width /= 2
        pieces, left = np.vstack(halves), np.concatenate([left, left + width])
    longest = max(best, excluded, float(pieces.max(initial=0.0)))
    return longest * (1 + 2.0**-46) + 2 * tolerance, cosine


def _halved(pieces: Array) -> Array:
    """Return the Bernstein coefficients of each row on the left half of its interval."""
    current, first = pieces, [pieces[:, 0]]
    while current.shape[1] > 1:
        current = (current[:, :-1] + current[:, 1:]) / 2
        first.append(current[:, 0])
    return np.stack(first, axis=1)


def _bernstein(d: int, k: int, shares: Mapping[int, Fraction]) -> list[float]:
    """Return Bernstein coefficients in u of ``2 Σ_j shares_j (1 − P_j(√u))``, Gegenbauer's P_j."""
    degree = k // 2
    # power-basis coefficients in t of every P_j, by the three-term recurrence
    polynomials = [[Fraction(1)], [Fraction(0), Fraction(1)]]
    for j in range(1, k):
        up = _share_of_next(d, j)
        lower = [*polynomials[j - 1], Fraction(0), Fraction(0)]
        shifted = [Fraction(0), *polynomials[j]]
        polynomials.append([(a - (1 - up) * b) / up for a, b in zip(shifted, lower, strict=True)])
    powers = [Fraction(0)] * (degree + 1)
    for j, share in shares.items():
        powers[0] += 2 * share
        for i, c in enumerate(polynomials[j][::2]):
            powers[i] -= 2 * share * c
    return [_bernstein_coefficient(powers, i, degree) for i in range(degree + 1)]


def _bernstein_coefficient(powers: Iterable[Fraction], i: int, degree: int) -> float:
    """Return the Bernstein coefficient ``Σ_{l<=i} C(i, l)/C(degree, l) powers_l``."""
    return float(
        sum(
            Fraction(math.comb(i, n), math.comb(degree, n)) * a
            for n, a in enumerate(powers)
            if n <= i
        )
    )


def _root_below(value: Fraction) -> Fraction:
    """Return a rational number just below √value, with a relative error under 2⁻¹⁰⁰."""
    shift = max(0, 210 - value.numerator.bit_length() + value.denominator.bit_length())
    shift += shift % 2
    return Fraction(math.isqrt((value.numerator << shift) // value.denominator), 1 << (shift // 2))
