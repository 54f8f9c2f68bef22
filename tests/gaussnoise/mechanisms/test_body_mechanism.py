"""Releases of real-valued records: sensitivities are checked pair by pair in exact rationals, noise
by tests with power.
"""

import bisect
import dataclasses
import functools
import itertools
import math
import traceback
import warnings
from fractions import Fraction

import numpy as np
import pytest
from cases import one_test_of
from scipy import spatial, stats

import gaussnoise as gn
from domains import (
    AbstractDomain,
    Ellipsoid,
    FiniteSet,
    LpBall,
    Polytope,
    QuadraticMax,
    SchattenBall,
    TensorPower,
    TwoConvex,
    Zonotope,
    hull,
    kron,
    product,
)
from domains.algebra.differences import DifferenceBody
from domains.algebra.members import magnitudes, near_members, projection
from domains.algebra.products import Kronecker
from domains.floats import EPS
from domains.oracles.distance import bounding_box
from gaussnoise.errors import (
    ConvergenceWarning,
    CovarianceError,
    DataError,
    DomainTooLargeError,
    NotAvailableError,
    ParameterError,
)
from gaussnoise.mechanisms import body_lattice as _body_lattice
from gaussnoise.noise.covariance import FactorCovariance
from gaussnoise.privacy.sampler import IntegerQuery
from gaussnoise.solvers.bodies import body as _body
from gaussnoise.solvers.points.thinning import thinned

RNG = np.random.default_rng(0)
G, A, V = RNG.normal(size=(5, 3)), RNG.normal(size=(3, 2)), np.array([1.0, -2.0, 0.5])
TRIANGLE = Polytope([[0.0, 0.0], [3.0, 0.1], [0.2, 2.0]])
SQUARE = Polytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


class Drop(AbstractDomain):
    """A user's own set without a center: the hull of a disc and a point."""

    dim = 2

    def _support_point(self, theta):
        x = theta / (np.linalg.norm(theta) or 1.0)
        return np.array([3.0, 0.0]) if 3 * theta[0] > theta @ x else x

    def _max_quadratic(self, form, center):
        values, axes = np.linalg.eigh(form)
        reach = math.sqrt(max(values[-1], 0.0)) * (3 + np.linalg.norm(center))
        x = self._support_point(axes[:, -1])
        return QuadraticMax(x, (x - center) @ form @ (x - center), reach**2)


BODIES = {
    **{f"l{q:g}": LpBall(3, q, radius=2.0) for q in (1, 1.5, 2, 3, math.inf)},
    "ellipsoid": Ellipsoid(G.T @ G),
    "flat ellipsoid, moved": Ellipsoid(np.outer([1.0, 2.0, -1.0], [1.0, 2.0, -1.0]), V),
    "thin ellipsoid": Ellipsoid([[1.0, 1.0], [1.0, 1.0 + 1e-9]]),
    "zonotope": Zonotope(G),
    "flat zonotope, moved": Zonotope(G[:2], V),
    "box of squares": TwoConvex([[1.0, 4.0, 9.0]]),
    "triangle": TRIANGLE,
    "triangle far away": TRIANGLE + np.array([1e6, -3e5]),
    "triangle in space": Polytope(TRIANGLE.vertices @ A.T + V),
    "thin triangle": Polytope([[0.0, 0.0], [1.0, 1.0], [0.5, 0.5 + 1e-4]]),
    "polytope": Polytope(RNG.normal(size=(7, 3))),
    "polytope with a constant": Polytope([[0.1, 0.0], [0.1, 1.0], [0.1, 5.0]]),
    "square": SQUARE,
    **{f"Schatten {q:g}": SchattenBall((2, 3), q) for q in (1, 2, math.inf)},
    "squares of vectors": TensorPower(2, 2),
    "cubes of vectors": TensorPower(2, 3),
    "squares of vectors in space": TensorPower(3, 2),
    "moved squares of vectors": -2.5 * TensorPower(2, 2) + np.array([1.0, 0.0, 0.0, 7.0]),
    "image of a ball": A @ LpBall(2, 3),
    "image of a moved ball": A @ (LpBall(2, 3) + np.ones(2)),
    "image of squares": RNG.normal(size=(3, 4)) @ TensorPower(2, 2),
    "moved ball": LpBall(3, 3) + V,
    "product": product(Ellipsoid(G.T @ G), SQUARE),
    "product without a center": product(LpBall(2, 3), TRIANGLE, TensorPower(2, 2)),
    "product of sizes": product(LpBall(2, 2), 1e-9 * LpBall(2, 2)),
    "sum": LpBall(2, 1.5) + SQUARE,
    "Kronecker product": kron(LpBall(2, 2), SQUARE),
    "hull": hull(LpBall(2, 2), SQUARE + np.array([1.0, 0.0])),
    "huge": 1e120 * LpBall(2, 3),
    "tiny": 1e-120 * TRIANGLE,
    "user's own": Drop(),
}
KINDS = ("replace", "add-remove", "gamma")


class Noises:
    """The noises of all bodies and relations, each solved when first asked for."""

    @functools.cache  # noqa: B019 (one object, for the whole module)
    def __getitem__(self, key):
        name, kind = key
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if kind == "gamma":
                return gn.gamma(BODIES[name], tol=0.02)
            return gn.optimal_noise(BODIES[name], tol=0.02, neighbors=kind)


NOISES = Noises()
KEYS = [(name, kind) for name in BODIES for kind in KINDS]


@pytest.fixture
def noise(request):
    return NOISES[request.param]


# every body under two of the three relations; the pair changes from body to body
KEYS_OF_TWO = [key for i, key in enumerate(KEYS) if i % 3 != i // 3 % 3]
every = pytest.mark.parametrize(
    "noise", KEYS_OF_TWO, ids=map(": ".join, KEYS_OF_TWO), indirect=True
)
# what does not depend on the relation is tested under one; it changes from body to body
TURNS = [(name, KINDS[i % 3]) for i, name in enumerate(BODIES)]
each = pytest.mark.parametrize("noise", TURNS, ids=map(": ".join, TURNS), indirect=True)
chosen = pytest.mark.parametrize(
    "noise",
    [("triangle", "replace"), ("flat ellipsoid, moved", "add-remove"), ("l3", "gamma")],
    indirect=True,
)


def mechanism_for(noise, privacy=None, n=8):
    return gn.GaussianMechanism(
        noise, privacy or gn.zCDP(0.5), n=n if noise.neighbors == "replace" else None
    )


def members(domain, count=8, key=1):
    """Return extreme points and averages of them; tensor powers have no averages."""
    rng = np.random.default_rng(key)
    corners = np.array(
        [domain.support_point(theta) for theta in rng.normal(size=(count, domain.dim))]
    )
    if "TensorPower" in repr(domain):
        return corners
    return np.vstack(
        [corners[: count // 2], rng.dirichlet(np.ones(count), size=count - count // 2) @ corners]
    )


# Sensitivity: pairs of records, in exact rationals


def accepted(lattice, x):
    X = np.array(x, dtype=float)[None]
    with np.errstate(all="ignore"):
        return lattice._accepts(X, lattice.grid(X))


PUSHES = (1e-5, 1e-7, 4e-8, 1.4e-8, 7e-9, 2e-9, 9e-10, 4e-10, 1e-11)


def adversarial(lattice):
    """Return records that the lattice accepts: extreme, inside, pushed into the slack, and badly
    rounded.
    """
    domain, rng = lattice.domain, np.random.default_rng(2)
    W = lattice.whitening
    # at random, and along the noise's own axes
    thetas = np.vstack([rng.normal(size=(1, len(W))) @ W, W[:2]])
    ends = [
        domain.support_point(sign * theta / np.abs(theta).max())
        for theta in thetas
        for sign in (1, -1)
    ]
    middle = np.mean(ends, axis=0)
    size = np.abs(np.array(ends) - middle).max()
    steps = np.ldexp(1.0, lattice.exponents) * lattice.live
    records = list(ends)
    for i, x in enumerate(ends):
        for outward in (x - middle, size * rng.normal(size=domain.dim))[: 1 + (i < 2)]:
            pushed = [x + push * outward for push in PUSHES]
            place = bisect.bisect_left(
                pushed, True, key=lambda y: accepted(lattice, y)
            )  # the first of them accepted
            records += pushed[place : place + 1]
        records += [x + 0.49 * steps * rng.choice([-1, 1], size=domain.dim)]
        records += [np.nextafter(x, np.copysign(np.inf, x - middle))]
    return [x for x in records if accepted(lattice, x)]


FINEST = 3000  # numbers are multiples of this negative power of two


@functools.cache
def in_rationals(lattice):
    """Return 2^FINEST · 2^bits W diag(steps)/size, row by row, in exact integers."""
    scale = Fraction(2) ** (FINEST + lattice.bits) / Fraction(lattice.size)
    steps = [Fraction(2) ** int(e) for e in lattice.exponents]
    rows = [
        [Fraction(float(w)) * s * scale for w, s in zip(row, steps, strict=True)]
        for row in lattice.whitening
    ]
    assert all(entry.denominator == 1 for row in rows for entry in row)
    return [[entry.numerator for entry in row] for row in rows]


def exact_integers(lattice, total):
    """Return ``rint(2^bits W (steps ∘ total)/size)``, halves upwards, by its definition."""
    values = (
        sum(w * int(t) for w, t in zip(row, total, strict=True)) for row in in_rationals(lattice)
    )
    return [(value + (1 << (FINEST - 1))) >> FINEST for value in values]


def changes(lattice, records, relation):
    """Return squared changes of the integer answer over neighbours among ``records``, beside other
    records.
    """
    rng = np.random.default_rng(3)
    grids = [[int(z) for z in lattice.grid(np.array([x]))[0]] for x in records]
    bases = [
        [0] * len(grids[0]),
        [int(b) for b in rng.integers(-(2**58), 2**58, size=len(grids[0]))],
    ]
    for base in bases:
        base = [b * bool(live) for b, live in zip(base, lattice.live, strict=True)]
        plus = [
            exact_integers(lattice, [b + z for b, z in zip(base, grid, strict=True)])
            for grid in grids
        ]
        if relation == "add-remove":
            bare = exact_integers(lattice, base)
            yield from (sum((a - b) ** 2 for a, b in zip(row, bare, strict=True)) for row in plus)
        else:
            for row, other in itertools.combinations(plus, 2):
                yield sum((a - b) ** 2 for a, b in zip(row, other, strict=True))


@every
def test_no_pair_of_accepted_records_exceeds_the_claim(noise):
    lattice = mechanism_for(noise)._lattice
    records = adversarial(lattice)
    assert len(records) >= 8
    largest = max(changes(lattice, records, noise.neighbors))
    claim = lattice.query.sensitivity_squared
    assert largest <= claim
    # where the bracket is narrow the records come close, so that too small a claim would be noticed
    if noise.gap < 2e-3 and not noise.shifted:
        assert largest >= 0.5 * claim


@pytest.mark.parametrize(
    "name", ["l2", "triangle", "Schatten 2", "squares of vectors", "ellipsoid"]
)
@pytest.mark.parametrize("kind", ["replace", "add-remove"])
def test_a_claim_without_slack_would_be_caught(name, kind):
    noise = NOISES[name, kind]
    lattice = mechanism_for(noise)._lattice
    naive = (
        Fraction(noise.covariance.scale / lattice.size) ** 2
        * Fraction(noise.sensitivity_squared)
        * 4**lattice.bits
    )
    largest = max(changes(lattice, adversarial(lattice), kind))
    assert naive < largest <= lattice.query.sensitivity_squared


def test_a_claim_without_rounding_would_be_caught():
    # two records half a lattice step apart may be a whole step apart once rounded
    lattice = mechanism_for(NOISES["l2", "add-remove"])._lattice
    coarse = dataclasses.replace(lattice, bits=3)
    records = members(lattice.domain, 40)
    jumps = []
    for x, y in itertools.combinations(records, 2):
        before, after = (lattice.grid(z[None])[0].tolist() for z in (x, y))
        moved = (
            (np.array(after) - np.array(before)) * np.ldexp(1.0, lattice.exponents) / lattice.size
        )
        real = np.linalg.norm(lattice.whitening @ moved) * 2**coarse.bits
        jump = math.dist(exact_integers(coarse, before), exact_integers(coarse, after))
        assert jump <= real + math.sqrt(lattice.rank) * (1 + 1e-12)
        jumps.append(jump - real)
    assert max(jumps) > 0.2


@each
def test_integers_are_those_of_the_definition(noise):
    lattice = mechanism_for(noise)._lattice
    rng = np.random.default_rng(4)
    for largest in (2, 2**20, 2**62):
        total = [
            int(t) * bool(live)
            for t, live in zip(
                rng.integers(-largest, largest, size=len(lattice.live)), lattice.live, strict=True
            )
        ]
        assert lattice.rounded(total) == exact_integers(lattice, total)


def test_the_largest_of_all_pairs_is_found_for_a_triangle():
    lattice = mechanism_for(NOISES["triangle", "replace"])._lattice
    largest = max(changes(lattice, list(TRIANGLE.vertices), "replace"))
    claim = lattice.query.sensitivity_squared
    assert claim * (1 - 1e-6) <= largest <= claim


# A record's integers are its own


@each
def test_integers_of_a_record_do_not_depend_on_the_others(noise):
    lattice = mechanism_for(noise)._lattice
    X = members(noise.domain, 9)
    whole = lattice.grid(X)
    for form in (X, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        np.testing.assert_array_equal(lattice.grid(form), whole)
    for i, x in enumerate(X):
        np.testing.assert_array_equal(lattice.grid(x[None])[0], whole[i])


@pytest.mark.parametrize("rows", [1, 7, 2048, 5000])
def test_sums_are_exact_in_chunks_of_all_sizes(rows, monkeypatch):
    noise = NOISES["moved ball", "add-remove"]
    lattice = mechanism_for(noise)._lattice
    X = np.tile(members(noise.domain, 40), (130 if rows > 7 else 5, 1))
    monkeypatch.setattr(_body_lattice, "_CHUNK_ENTRIES", rows * 3)
    by_hand = [sum(column) for column in zip(*lattice.grid(X).tolist(), strict=True)]
    assert lattice.sums(X, "refuse") == exact_integers(lattice, by_hand)
    assert lattice.sums(X[::-1], "refuse") == exact_integers(lattice, by_hand)


def test_sums_do_not_overflow():
    # every record at the far end of its grid
    noise = NOISES["linf", "add-remove"]
    lattice = mechanism_for(noise)._lattice
    X = np.full((100_000, 3), 2.0)
    total = 100_000 * int(lattice.grid(X[:1])[0, 0])
    assert total > 2**63
    assert lattice.sums(X, "refuse") == exact_integers(lattice, [total] * 3)


# Guarantees


@each
def test_decoding_without_noise_is_the_truth(noise):
    mechanism = mechanism_for(noise)
    X = members(noise.domain)
    exact, offset = mechanism._exact(X, None, "refuse")
    decoded = mechanism._decoded(exact, offset)
    truth = np.array(
        [float(sum(map(Fraction, column)) / (mechanism.n or 1)) for column in X.T.tolist()]
    )
    records = 1 if mechanism.n else len(X)
    assert (np.abs(decoded - truth) <= records * mechanism.rounding_bias).all()
    assert (mechanism.rounding_bias <= 1e-7 * np.abs(X).max()).all()


THIN = ("thin triangle", "thin ellipsoid", "triangle far away")


@every
def test_stated_covariance(noise, request):
    privacy = gn.zCDP(0.5)
    mechanism = mechanism_for(noise, privacy)
    rho = privacy.to_zcdp().rho
    expected = noise.covariance.standard_deviation() * math.sqrt(
        noise.sensitivity_squared / (2 * rho)
    )
    expected /= mechanism.n or 1
    slack = 1e-4 if any(name in request.node.callspec.id for name in THIN) else 1e-7
    assert (mechanism.standard_deviation <= expected * (1 + slack)).all()
    assert (mechanism.standard_deviation >= expected * (1 - 1e-12)).all()
    lattice = mechanism._lattice
    assert 2**46 <= lattice.scale <= 2**50
    record = mechanism.simulate(members(noise.domain), np.random.default_rng(0)).privacy
    distance = IntegerQuery(record["integer_sensitivity_squared"], 1.0).distance
    assert mechanism.rho_charged == record["rho_charged"] <= rho
    assert distance**2 / (2 * lattice.scale**2) <= rho * (1 + 1e-9)
    assert record["records_outside"] == "refused"


ALARM, DRAWS = 1e-9, 400


def whitened(mechanism, errors):
    """Return independent standard normals if the errors have the stated covariance, shape (draws,
    rank).
    """
    return errors @ np.linalg.pinv(mechanism.covariance.factor(), rcond=1e-9).T


def scale_is_right(z):
    low, high = stats.chi2.ppf([ALARM / 2, 1 - ALARM / 2], z.size)
    return bool(low <= np.square(z).sum() <= high)


def mean_is_right(z):
    return bool(len(z) * np.square(z.mean(axis=0)).sum() <= stats.chi2.isf(ALARM, z.shape[1]))


def draws_are_uncorrelated(z):
    pairs = list(itertools.combinations(range(z.shape[1]), 2))
    limit = 1.1 * stats.norm.isf(ALARM / (1 + len(pairs)))
    return all(abs(np.mean(z[:, i] * z[:, j])) * math.sqrt(len(z)) < limit for i, j in pairs)


@pytest.mark.paper("Definition 1", by="simulated releases")
@chosen
def test_releases_are_unbiased_with_the_stated_covariance(noise):
    mechanism = mechanism_for(noise)
    X = members(noise.domain)
    truth = X.sum(axis=0) / (mechanism.n or 1)
    errors = np.array([mechanism.release(X).estimate for _ in range(DRAWS)]) - truth
    z = whitened(mechanism, errors)
    assert z.shape == (DRAWS, mechanism._lattice.rank)
    assert scale_is_right(z)
    assert mean_is_right(z)
    assert draws_are_uncorrelated(z)
    np.testing.assert_allclose(
        errors, z @ mechanism.covariance.factor().T, atol=1e-9 * np.abs(errors).max()
    )
    assert stats.kstest(z.ravel(), "norm").pvalue > ALARM


@chosen
@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_wrong_noise_is_noticed(noise, factor):
    mechanism = mechanism_for(noise)
    X, rng = members(noise.domain), np.random.default_rng(3)
    truth = X.sum(axis=0) / (mechanism.n or 1)
    z = whitened(
        mechanism, np.array([mechanism.simulate(X, rng).estimate for _ in range(DRAWS)]) - truth
    )
    assert scale_is_right(z)
    assert mean_is_right(z)
    assert draws_are_uncorrelated(z)
    assert not scale_is_right(factor * z)
    assert not mean_is_right(z + 0.3)
    assert not draws_are_uncorrelated(
        z @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]])[: z.shape[1], : z.shape[1]]
    )


def test_simulations_repeat_and_say_what_they_are():
    mechanism = mechanism_for(NOISES["triangle", "replace"])
    X = members(TRIANGLE)
    first, second = (mechanism.simulate(X, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.estimate, second.estimate)
    assert first.private is False
    assert mechanism.release(X).private is True
    assert (mechanism.release(X).estimate != mechanism.release(X).estimate).all()


def test_what_no_record_can_change_is_published_exactly():
    noise = NOISES["polytope with a constant", "replace"]
    release = mechanism_for(noise).release(members(noise.domain))
    assert release.estimate[0] == 0.1
    assert release.standard_deviation[0] == 0
    flat = NOISES["flat zonotope, moved", "replace"]
    normal = np.cross(G[0], G[1])
    found = mechanism_for(flat).release(members(flat.domain)).contrast(normal)
    assert found.estimate == pytest.approx(normal @ V, abs=1e-12)
    assert found.standard_deviation <= 1e-12


def test_slack_outside_the_range_is_not_released():
    noise = NOISES["flat zonotope, moved", "replace"]
    mechanism = mechanism_for(noise)
    normal = np.cross(G[0], G[1]) / np.linalg.norm(np.cross(G[0], G[1]))
    X = np.tile(V, (8, 1))
    moved = X + 3e-10 * normal
    assert noise.domain.contains(moved[0])
    estimates = [mechanism._decoded(*mechanism._exact(data, None, "refuse")) for data in (X, moved)]
    assert np.abs(estimates[0] - estimates[1]).max() <= 1e-8
    assert np.abs((np.array(estimates) - V) @ normal).max() <= 1e-15


def test_one_point_costs_nothing_under_replacement_and_is_noised_under_add_remove():
    point = Polytope([[3.0, 4.0]])
    mechanism = mechanism_for(gn.optimal_noise(point), n=2)
    release = mechanism.release([[3.0, 4.0]] * 2)
    np.testing.assert_array_equal(release.estimate, [3, 4])
    assert mechanism.rho_charged == 0
    with pytest.raises(DataError):
        mechanism.release([[3.0, 4.1]] * 2)
    sums = mechanism_for(gn.optimal_noise(point, neighbors="add-remove"))
    np.testing.assert_allclose(sums.standard_deviation, [3, 4], rtol=1e-7)
    assert sums.rho_charged == pytest.approx(0.5)


@pytest.mark.parametrize(
    "name", ["l2", "flat zonotope, moved", "triangle", "squares of vectors", "user's own"]
)
def test_a_covariance_with_a_bare_direction_is_refused(name):
    noise = NOISES[name, "replace"]
    factor = noise.covariance.unit_factor
    for kept in (0, factor.shape[1] - 1):
        flat = dataclasses.replace(
            noise, covariance=FactorCovariance(10 * factor[:, :kept], noise.covariance.scale)
        )
        with pytest.raises(CovarianceError, match="without noise"):
            mechanism_for(flat)


def test_gamma_noise_of_means_is_not_noise_for_sums():
    with pytest.raises(CovarianceError):
        mechanism_for(
            dataclasses.replace(NOISES["flat zonotope, moved", "gamma"], neighbors="add-remove")
        )


def test_too_little_noise_for_a_body_with_a_center_refuses_records_instead():
    noise = NOISES["l2", "replace"]
    small = FactorCovariance(noise.covariance.unit_factor, noise.covariance.scale / 2)
    mechanism = mechanism_for(dataclasses.replace(noise, covariance=small), n=1)
    with pytest.raises(DataError, match="outside"):
        mechanism.release([[1.9, 0.0, 0.0]])
    largest = max(
        changes(mechanism._lattice, [np.array([s, 0.0, 0.0]) for s in (0.99, -0.99)], "replace")
    )
    assert largest <= mechanism._lattice.query.sensitivity_squared
    mechanism.release([[0.99, 0.0, 0.0]])


def test_extreme_budgets_are_refused():
    for rho in (1e-40, 1e300):
        with pytest.raises(ParameterError, match="rho"):
            mechanism_for(NOISES["l2", "replace"], gn.zCDP(rho))


# Membership


@one_test_of(
    "name", [name for name in BODIES if name != "image of squares"]
)  # whose hull cannot tell
def test_quick_members_are_members(name):
    domain, rng = BODIES[name], np.random.default_rng(6)
    X = members(domain)
    size = np.abs(X - X.mean(axis=0)).max()
    found = near_members(domain, np.vstack([X, X + 0.3 * size * rng.normal(size=X.shape)]))
    if found is None:
        assert name in ("sum", "Kronecker product", "hull", "user's own", "box of squares")
        return
    assert all(domain.contains(x) for x in found[np.isfinite(found).all(axis=1)])
    close = np.linalg.norm(found[: len(X)] - X, axis=1) <= 1e-9 * size
    assert close[len(X) // 2 :].mean() >= 0.5


def on_the_boundary(domain, count=60):
    """Return extreme points, and points of faces: far in a random direction from inside."""
    rng = np.random.default_rng(15)
    corners = np.array(
        [domain.support_point(theta) for theta in rng.normal(size=(count, domain.dim))]
    )
    if isinstance(domain, Zonotope):
        c = rng.uniform(-1, 1, size=(count, len(domain.generators)))
        for row in c:
            free = rng.choice(len(row), domain.dim - 1, replace=False)
            normal = np.linalg.svd(domain.generators[free])[2][-1]
            row[:] = np.where(
                np.isin(np.arange(len(row)), free), row, np.sign(domain.generators @ normal)
            )
        return np.vstack([corners, domain.center + c @ domain.generators])
    if isinstance(domain, Polytope):
        facets = spatial.ConvexHull(domain.vertices).simplices
        weights = rng.dirichlet(np.ones(domain.dim), size=count)
        return np.vstack(
            [corners, np.einsum("ij,ijk->ik", weights, domain.vertices[rng.choice(facets, count)])]
        )
    return corners


QUICK = {
    "polytope": Polytope(RNG.normal(size=(30, 4)) + 5),
    "zonotope": Zonotope(RNG.normal(size=(22, 5)), RNG.normal(size=5)),
    "mixture of squares": TwoConvex(RNG.random((4, 5)) * np.array([1.0, 1e-6, 1.0, 10.0, 0.0])),
    "hull of squares and balls": hull(
        TwoConvex([[1.0, 4.0], [3.0, 2.0]]), LpBall(2, 3) + np.array([1.0, 0.0])
    ),
    "image of squares": BODIES["image of squares"],
    "image of cubes": RNG.normal(size=(5, 8)) @ TensorPower(2, 3),
    "moved, tiny box of squares": 1e-4 * TwoConvex([[1.0, 4.0, 9.0]]) + np.array([1e5, 2e5, -1e6]),
}


@pytest.mark.parametrize("name", QUICK)
def test_records_on_the_boundary_are_told_all_at_once(name, monkeypatch):
    domain, neighbors = QUICK[name], ("replace", "add-remove")[list(QUICK).index(name) % 2]
    X = on_the_boundary(domain)
    lattice = mechanism_for(
        gn.optimal_noise(domain, neighbors=neighbors, tol=0.3), n=len(X)
    )._lattice
    monkeypatch.setattr(_body_lattice, "contains", lambda *_: False)
    by_hand = [sum(column) for column in zip(*lattice.grid(X).tolist(), strict=True)]
    assert lattice.sums(X, "refuse") == exact_integers(lattice, by_hand)
    middle = X.mean(axis=0)
    assert not any(accepted(lattice, middle + (x - middle) * (1 + 1e-4)) for x in X)


def test_equal_records_are_asked_about_once(monkeypatch):
    asked = []
    monkeypatch.setattr(
        _body_lattice,
        "contains",
        lambda domain, x: bool(asked.append(tuple(x))) or domain.contains(x),
    )
    X = members(BODIES["user's own"], 6)
    mechanism_for(NOISES["user's own", "replace"], n=300)._lattice.sums(
        np.tile(X, (50, 1)), "refuse"
    )
    assert sorted(asked) == sorted({tuple(x) for x in X})


def test_weights_that_do_not_sum_to_one_make_no_member():
    far = near_members(TRIANGLE, np.array([[-50.0, -50.0], [50.0, -50.0], [-1e9, 3.0]]))
    assert all(TRIANGLE.contains(x) for x in far[np.isfinite(far).all(axis=1)])


@every
def test_members_are_accepted_and_others_refused(noise):
    mechanism = mechanism_for(noise, n=1)
    X = members(noise.domain)
    middle, size = X.mean(axis=0), np.abs(X - X.mean(axis=0)).max()
    for x in X:
        assert accepted(mechanism._lattice, x)
    rng = np.random.default_rng(7)
    for x in X[3:6]:
        for away in (
            0.01 * (x - middle),
            size * rng.normal(size=len(x)),
            1e-6 * size * rng.normal(size=len(x)),
        ):
            assert accepted(mechanism._lattice, x + away) <= noise.domain.contains(x + away)
    with pytest.raises(DataError, match="outside"):
        mechanism.release([middle + 5 * size * np.ones(len(middle))])


def test_what_the_domain_cannot_tell_is_refused():
    class Vague(Drop):
        def _contains(self, x):
            raise DomainTooLargeError(f"cannot tell {x}")

    noise = NOISES["user's own", "add-remove"]
    vague = gn.GaussianMechanism(dataclasses.replace(noise, domain=Vague()), gn.zCDP(0.5))
    with pytest.raises(DataError) as caught:
        vague.release([[CANARY / 1e4, 0.0]])
    assert "987" not in "".join(traceback.format_exception(caught.value))


# Data

CANARY = 987.654321
BAD_DATA = {
    "outside": [[CANARY, 0.0, 0.0]] * 8,
    "a little outside": [[2.0 + CANARY * 1e-9, 0.0, 0.0]] * 8,
    "not a number": [[math.nan, CANARY, 0.0]] * 8,
    "infinite": [[math.inf, CANARY, 0.0]] * 8,
    "huge": [[1.7e308, CANARY, -1.7e308]] * 8,
    "text": [[str(CANARY)] * 3] * 8,
    "objects": np.array([[{CANARY}] * 3] * 8),
    "fractions": np.array([[Fraction(CANARY)] * 3] * 8),
    "truth values": [[True, False, True]] * 8,
    "complex": np.array([[CANARY * 1j] * 3] * 8),
    "ragged": [[CANARY], [CANARY] * 3],
    "too wide": [[CANARY] * 4] * 8,
    "one dimension": [CANARY] * 8,
    "three dimensions": [[[CANARY] * 3]] * 8,
    "scalar": CANARY,
}


@one_test_of("data", BAD_DATA.values(), ids=BAD_DATA)
@one_test_of("kind", KINDS)
@one_test_of("name", ["l2", "polytope", "moved ball"])
def test_bad_data_are_refused_without_being_shown(name, kind, data):
    with pytest.raises(DataError) as caught:
        mechanism_for(NOISES[name, kind]).release(data)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "987" not in "".join(traceback.format_exception(caught.value)).replace("CANARY", "")


def test_refusals_do_not_tell_how_many_or_where():
    X = members(BODIES["l2"])
    messages = set()
    for rows in ([0], [7], [0, 5, 7], range(8)):
        bad = X.copy()
        bad[list(rows)] += CANARY
        with pytest.raises(DataError) as caught:
            mechanism_for(NOISES["l2", "replace"]).release(bad)
        messages.add(str(caught.value))
    assert len(messages) == 1


@pytest.mark.parametrize("records", [0, 7, 9])
def test_another_number_of_records_is_refused(records):
    with pytest.raises(DataError, match="exactly n = 8"):
        mechanism_for(NOISES["l2", "replace"]).release(np.zeros((records, 3)))


@pytest.mark.parametrize("data", [[], np.zeros((0, 3))])
def test_empty_data_have_noisy_zero_sums(data):
    mechanism = mechanism_for(NOISES["l2", "add-remove"])
    estimate = mechanism.release(data).estimate
    assert (estimate != 0).all()
    assert (np.abs(estimate) < 8 * mechanism.standard_deviation).all()


def test_all_forms_of_data_give_the_same_integers():
    mechanism = mechanism_for(NOISES["linf", "add-remove"])
    X = np.random.default_rng(8).integers(-2, 3, size=(30, 3))
    expected = mechanism._exact(X.astype(float), None, "refuse")[0]
    for form in (
        X,
        X.tolist(),
        X.astype(np.float32),
        X.astype(np.int8),
        np.asfortranarray(X),
        X.astype(np.longdouble),
    ):
        assert mechanism._exact(form, None, "refuse")[0] == expected


def test_arguments_are_validated():
    mechanism = mechanism_for(NOISES["l2", "add-remove"])
    for data, counts in ((None, None), (None, [1]), ([[0.0] * 3], [1])):
        with pytest.raises(ParameterError, match="counts= belongs to listed points"):
            mechanism.release(data, counts=counts)
    with pytest.raises(ParameterError, match="on_outside"):
        mechanism.release([[0.0] * 3], on_outside="clip")
    listed = gn.GaussianMechanism(
        gn.optimal_noise(FiniteSet(np.eye(2)), neighbors="add-remove"), gn.zCDP(1)
    )
    with pytest.raises(NotAvailableError, match="convex bodies"):
        listed.release(indices=[0], on_outside="project")
    with pytest.raises(ParameterError, match="n is private"):
        gn.GaussianMechanism(NOISES["l2", "add-remove"], gn.zCDP(1), n=10)
    with pytest.raises(ParameterError, match="policy graphs"):
        gn.GaussianMechanism(
            dataclasses.replace(NOISES["l2", "replace"], neighbors="else"), gn.zCDP(1), n=10
        )


# Projection

PROJECTED = {
    **{f"l{q:g}": LpBall(3, q, radius=2.0) for q in (1, 1.5, 2, 3, math.inf)},
    "ellipsoid": BODIES["ellipsoid"],
    "flat ellipsoid, moved": BODIES["flat ellipsoid, moved"],
    "box": Zonotope(np.diag([1.0, 2.0, 0.0]), V),
    "box of squares": BODIES["box of squares"],
    "Frobenius ball": SchattenBall((2, 3), 2),
    "moved ball": BODIES["moved ball"],
    "product": product(-3 * Ellipsoid(G.T @ G, V), LpBall(2, 2) + np.ones(2)),
}
projectable = pytest.mark.parametrize("domain", PROJECTED.values(), ids=PROJECTED)


@projectable
def test_projections_are_members_and_leave_members_alone(domain):
    rng = np.random.default_rng(9)
    move = projection(domain)
    X = np.vstack(
        [
            members(domain),
            3 * rng.normal(size=(40, domain.dim)),
            1e300 * rng.normal(size=(5, domain.dim)),
        ]
    )
    moved = move(X)
    assert all(domain.contains(x) for x in moved)
    np.testing.assert_allclose(moved[:8], X[:8], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(move(moved), moved, rtol=1e-11, atol=1e-11)


@projectable
def test_projections_go_row_by_row(domain):
    X = 3 * np.random.default_rng(10).normal(size=(67, domain.dim))
    move = projection(domain)
    whole = move(X)
    for i in range(len(X)):
        assert (
            move(X[i : i + 1].copy()).tobytes() == np.ascontiguousarray(whole[i : i + 1]).tobytes()
        )
    assert move(np.asfortranarray(X)[13:50]).tobytes("C") == whole[13:50].tobytes("C")


def test_projections_onto_balls_and_boxes_are_nearest():
    X = 3 * np.random.default_rng(11).normal(size=(50, 3))
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(projection(LpBall(3, 2))(X), X / np.maximum(norms, 1), rtol=1e-9)
    np.testing.assert_array_equal(projection(LpBall(3, math.inf))(X), np.clip(X, -1, 1))


@projectable
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_projected_releases(domain, neighbors):
    mechanism = mechanism_for(gn.optimal_noise(domain, neighbors=neighbors, tol=5e-2))
    X = 3 * np.random.default_rng(12).normal(size=(8, domain.dim))
    with pytest.raises(DataError, match="outside"):
        mechanism.release(X)
    exact, offset = mechanism._exact(X, None, "project")
    truth = projection(domain)(X).sum(axis=0) / (mechanism.n or 1)
    np.testing.assert_allclose(mechanism._decoded(exact, offset), truth, rtol=1e-9, atol=1e-9)
    release = mechanism.release(X, on_outside="project")
    assert release.privacy["records_outside"] == "projected, each by itself"
    for bad in (math.nan, math.inf, -math.inf):  # a record with a NaN goes to the center
        lost = X.copy()
        lost[3, -1] = bad
        found = X.copy()
        found[3] = domain._center()
        assert (
            mechanism._exact(lost, None, "project")[0]
            == mechanism._exact(found, None, "project")[0]
        )


@pytest.mark.parametrize(
    "name", ["triangle", "zonotope", "Schatten inf", "squares of vectors", "hull", "user's own"]
)
def test_projections_that_are_not_known_are_refused_before_data_are_read(name):
    mechanism = mechanism_for(NOISES[name, "add-remove"])
    for on_outside in ("project", "drop"):
        with pytest.raises(NotAvailableError, match="know no map"):
            mechanism.release(np.full((3, BODIES[name].dim), math.nan), on_outside=on_outside)


# Records that do not fit are dropped from sums


def awkward(domain):
    """Return records of every kind: members, on the very edge, outside, not finite."""
    rng = np.random.default_rng(15)
    inside = members(domain)
    center = domain._center()
    edges = [
        center + (x - center) * (1 + t)
        for x in inside
        for t in (1e-12, 2.4e-10, 2.5e-10, 1e-9, 1e-6)
    ]
    outside = [
        *(3 * rng.normal(size=(10, domain.dim))),
        np.full(domain.dim, 1e308),
        np.full(domain.dim, -1e-320),
    ]
    for bad in (math.nan, math.inf, -math.inf, 1e300):
        for place in range(domain.dim):
            x = np.array(inside[0])
            x[place] = bad
            outside.append(x)
    return np.vstack([inside, *edges, *outside])


@projectable
def test_any_record_changes_a_sum_with_records_left_out_by_the_sensitivity_at_most(domain):
    mechanism = mechanism_for(gn.optimal_noise(domain, neighbors="add-remove", tol=5e-2))
    lattice, X = mechanism._lattice, awkward(domain)
    order = np.random.default_rng(16).permutation(len(X))
    for Y in (X[:0], X[order], X[order][::-1][:37]):
        before = lattice.sums(Y, "drop")
        for x in X:
            for after in (np.vstack([Y, x]), np.vstack([x, Y])):
                moved = [b - a for a, b in zip(before, lattice.sums(after, "drop"), strict=True)]
                assert sum(change**2 for change in moved) <= lattice.query.sensitivity_squared


@projectable
def test_what_is_left_out_of_a_sum_is_what_would_be_refused(domain):
    mechanism = mechanism_for(gn.optimal_noise(domain, neighbors="add-remove", tol=5e-2))
    inside = members(domain)
    outside = awkward(domain)[6 * len(inside) :]
    with np.errstate(all="ignore"):
        outside = [x for x in outside if not (np.isfinite(x).all() and domain.contains(x))]
    assert len(outside) > 5
    assert mechanism._exact(inside, None, "drop")[0] == mechanism._exact(inside, None, "refuse")[0]
    for x in outside:
        with pytest.raises(DataError):
            mechanism._exact([x], None, "refuse")
        mixed = np.vstack([inside[:3], x, inside[3:]])
        assert (
            mechanism._exact(mixed, None, "drop")[0] == mechanism._exact(inside, None, "refuse")[0]
        )
    release = mechanism.release(np.vstack(outside), on_outside="drop")
    assert release.privacy["records_outside"] == "dropped, each by itself"


def test_means_of_a_public_number_leave_nothing_out():
    mechanism = mechanism_for(NOISES["l2", "replace"])
    for data in (np.zeros((8, 3)), np.full((8, 3), math.nan), None):
        with pytest.raises(ParameterError, match=r'hint: on_outside="project"'):
            mechanism.release(data, on_outside="drop")


@projectable
@pytest.mark.parametrize("on_outside", ["project", "drop"])
def test_no_values_refuse_a_release(domain, on_outside):
    mechanism = mechanism_for(gn.optimal_noise(domain, neighbors="add-remove", tol=5e-2))
    values = [0.0, 1e-320, 1.0, -1e160, 1e308, math.inf, -math.inf, math.nan]
    X = np.random.default_rng(17).choice(values, size=(300, domain.dim))
    for form in (
        X,
        X.astype(np.longdouble) * 2,
        np.full((2, domain.dim), 2**64 - 1, dtype=np.uint64),
    ):
        mechanism.release(form, on_outside=on_outside)
    with pytest.raises(DataError):
        mechanism.release(X[:, :1].repeat(domain.dim + 1, axis=1), on_outside=on_outside)


# Rounding inside the body's own computation, of numbers that cancel


FAR = LpBall(2, 2) + Polytope(
    [[1e10, 1e10]]
)  # kept as a sum, so that its members carry the rounding
CANCELLING = hull(
    np.hstack([np.eye(2), -np.eye(2)]) @ product(FAR, FAR),
    LpBall(2, 2, radius=0.1) + np.array([0.3, 0.2]),
)


def test_rounding_inside_a_hull_is_charged(monkeypatch):
    # in real numbers the set is the disc of radius two; this noise is just enough for it
    solved = gn.optimal_noise(CANCELLING, tol=0.1)
    x = np.array([[1.0340728759765625, 1.7119293212890625]])

    def excess():
        # a noise of its own, since lattices of one noise share their geometry
        noise = dataclasses.replace(solved, covariance=FactorCovariance(np.eye(2), 4.0))
        lattice = gn.GaussianMechanism(noise, gn.zCDP(0.5), n=1)._lattice
        first, second = (lattice.sums(sign * x, "refuse") for sign in (1, -1))
        return (
            sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
            - lattice.query.sensitivity_squared
        )

    assert excess() <= 0
    # less noise than the parts' own numbers need is too little
    monkeypatch.setattr(
        _body_lattice, "magnitudes", lambda domain: np.abs(bounding_box(domain)).max(axis=0)
    )
    assert excess() > 0


def exactly(A):
    return np.vectorize(lambda x: Fraction(float(x)), otypes=[object])(np.asarray(A, dtype=float))


SIGNS = exactly(list(itertools.product((-1, 1), repeat=2)))


def polygons_of_numbers_that_cancel(far, key=22):
    """Return two hulls in the plane, and their corners in rationals."""
    rng = np.random.default_rng(key)
    A, corners, generators = (
        rng.normal(size=(2, 4)),
        rng.normal(size=(3, 2)),
        0.1 * rng.normal(size=(2, 2)),
    )
    square = LpBall(2, math.inf, radius=1e-3)
    shift = far * np.linalg.svd(A)[2][2]  # A takes this direction nearly to zero
    P, Z = Polytope(corners + shift[:2]), Zonotope(generators, shift[2:])
    pairs = itertools.product(
        exactly(P.vertices), exactly(Z.center) + SIGNS @ exactly(Z.generators)
    )
    yield hull(A @ product(P, Z), square), [exactly(A) @ np.concatenate(pair) for pair in pairs]
    P, Q = Polytope(corners + 0.3 * far), LpBall(2, math.inf, radius=0.1) - np.full(2, 0.3 * far)
    yield (
        hull(P + Q, square),
        [
            p + Fraction(0.1) * s + exactly(Q.shift)
            for p, s in itertools.product(exactly(P.vertices), SIGNS)
        ],
    )


def longest_exactly(noise, points):
    """Return the largest s' M⁻¹ s over rational points of the plane, by Cramer's rule."""
    (a, b), (c, d) = exactly(noise.covariance.unit_factor).tolist()
    inverse = np.array([[d, -b], [-c, a]], dtype=object) / (a * d - b * c)
    return (
        max(sum(t * t for t in inverse @ s) for s in points) / Fraction(noise.covariance.scale) ** 2
    )


def covers(far, neighbors, keys=4):
    """Return the largest s' M⁻¹ s over all polygons."""
    found = []
    for key in range(20, 20 + keys):
        for K, corners in polygons_of_numbers_that_cancel(far, key):
            changes = (
                corners if neighbors == "add-remove" else [x - y for x in corners for y in corners]
            )
            found.append(
                longest_exactly(gn.optimal_noise(K, tol=1e-3, neighbors=neighbors), changes)
            )
    return max(found)


@pytest.mark.filterwarnings("ignore::gaussnoise.errors.ConvergenceWarning")
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_noise_covers_sets_of_numbers_that_cancel(neighbors, monkeypatch):
    assert 0.99 <= covers(1e10, neighbors) <= 1
    assert covers(1e11, neighbors) <= 1
    with pytest.raises(CovarianceError, match="far away nearer"):
        covers(1e12, neighbors)
    # The sizes of the members alone do not tell what rounding did beyond the tolerance, far away.
    # Every processor sums in its own order, and rounds up or down: one polygon in three is not
    # covered. All thirty-two are covered with a chance of 1e-5.
    monkeypatch.setattr(_body, "magnitudes", lambda domain: np.zeros(domain.dim))
    if neighbors == "add-remove":
        assert covers(1e12, neighbors, keys=16) > 1 + 1e-6


@pytest.mark.filterwarnings("ignore::gaussnoise.errors.ConvergenceWarning")
@pytest.mark.parametrize("far", [1e6, 1e10])
def test_answers_about_numbers_that_cancel_verify(far):
    A = np.random.default_rng(1).normal(size=(2, 4))
    shift = far * np.linalg.svd(A)[2][2]
    discs = product(LpBall(2, 2), LpBall(2, 2)) + shift
    for K in (A @ discs, hull(A @ discs, LpBall(2, 2, radius=0.1))):
        for neighbors in ("replace", "add-remove"):
            gn.optimal_noise(K, tol=0.05, neighbors=neighbors).verify()


def test_magnitudes_of_composites_are_those_of_their_parts():
    ball = LpBall(2, 2) + np.array([5.0, 7.0])
    single = magnitudes(ball)
    assert (magnitudes(hull(ball, LpBall(2, 2))) >= single).all()
    assert (magnitudes(Kronecker(ball, ball)) >= np.kron(single, single)).all()
    assert (magnitudes(DifferenceBody(ball)) >= 2 * single).all()


FACTORS = {
    "random": lambda Q, sizes: Q,
    "long columns": lambda Q, sizes: Q * sizes[: Q.shape[1]],
    "long rows": lambda Q, sizes: sizes[:, None] * Q,
    "nearly singular": lambda Q, sizes: Q * sizes[: Q.shape[1]] @ Q[: Q.shape[1]],
    "entries of all sizes": lambda Q, sizes: np.sign(Q) * sizes[(np.abs(Q) * 97).astype(int) % 16],
    "an empty coordinate": lambda Q, sizes: Q * (np.arange(16) > 0)[:, None],
    "rows far apart": lambda Q, sizes: (sizes**20)[:, None] * Q,
    # entries halfway between two numbers of leading bits, in rows of any exponent
    "ties": lambda Q, sizes: (np.rint(Q * 2**23) + 0.5) * 2.0 ** np.arange(-40, -24)[:, None],
}


@pytest.mark.parametrize("shape", FACTORS)
@pytest.mark.parametrize("far", [0.0, 1e-12, 0.3])
def test_the_error_of_a_left_inverse_is_bounded_as_fractions_say(shape, far):
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.normal(size=(16, 9)))[0]
    L = FACTORS[shape](Q, rng.permutation(np.geomspace(1e-4, 1e4, 16)))
    W = _body.left_inverse(L) * (1 + far)
    gap = exactly(W) @ exactly(L) - exactly(np.eye(9))
    exact = np.square(gap).sum()
    bound = Fraction(_body_lattice._left_error(W, L))
    assert exact <= bound**2 <= exact * Fraction(1.001)
    if far == 0 and exact < 1e-20:  # the plain product does not know its own rounding
        plain = Fraction(float(np.linalg.norm(W @ L - np.eye(9))))
        assert abs(plain**2 / exact - 1) > 0.001


@pytest.mark.parametrize("d", [1, 2, 7, 1000])
def test_products_of_leading_bits_are_exact(d):
    bits = (53 - d.bit_length()) // 2
    rows = _body_lattice._leading(np.random.default_rng(d).uniform(0.9, 1, size=(40, d)), bits)
    product = rows @ rows.T
    assert exactly(product[0, :9]).tolist() == (exactly(rows[:9]) @ exactly(rows[0])).tolist()
    full = np.random.default_rng(d).uniform(0.9, 1, size=(40, d))
    if d > 1:
        assert ((exactly(full) @ exactly(full[0])) != exactly(full @ full[0])).any()


@pytest.mark.parametrize("name", ["l2", "triangle far away", "flat zonotope, moved"])
def test_lattices_of_one_noise_share_what_does_not_depend_on_the_budget(name):
    noise, budgets = NOISES[name, "replace"], (0.01, 3.0)
    shared = [mechanism_for(noise, gn.zCDP(rho))._lattice for rho in budgets]
    assert shared[0].whitening is shared[1].whitening
    for rho, lattice in zip(budgets, shared, strict=True):
        own = mechanism_for(dataclasses.replace(noise), gn.zCDP(rho))._lattice
        assert own.whitening is not lattice.whitening
        assert (own.bits, own.query) == (lattice.bits, lattice.query)
        for name in ("whitening", "origin", "exponents", "live", "box", "radius", "bias", "size"):
            np.testing.assert_array_equal(getattr(own, name), getattr(lattice, name))
    assert shared[0].query.budget == 0.01


def test_a_noise_with_another_covariance_has_a_lattice_of_its_own():
    noise = NOISES["l2", "replace"]
    wide = FactorCovariance(3 * np.eye(3), noise.covariance.scale)
    first, second = (
        _body_lattice.BodyLattice.build(noise, covariance, 0.5, lambda _: 20)
        for covariance in (noise.covariance, wide)
    )
    assert first.unit_factor is noise.covariance.unit_factor
    np.testing.assert_allclose(second.whitening, first.whitening / 3)


def test_independent_noise_of_several_sizes_whitens_one_coordinate_at_a_time():
    box = TwoConvex([[1.0, 1e-12, 9.0]])  # no two axes are alike
    own = gn.Covariance(np.diag([7.0, 3e-6, 1 / 3]) ** 2)
    lattice = gn.GaussianMechanism(own, gn.zCDP(0.5), n=8, domain=box)._lattice
    assert np.count_nonzero(lattice.whitening) == 3
    W = exactly(lattice.whitening) / Fraction(lattice.size)
    grid = lattice.grid(members(box, 6))
    steps = exactly(np.ldexp(1.0, lattice.exponents))
    exact = exactly(grid) * steps @ W.T
    np.testing.assert_allclose(lattice.whitened(grid), exact.astype(float), rtol=2 * EPS)
    assert lattice.rounded(grid[0].tolist()) == exact_integers(lattice, grid[0])


@pytest.mark.parametrize("entries", [(3.0, 7.0, 1 / 3), (1.0, 1e-8, 49.0)])
def test_the_part_of_a_body_off_a_range_that_is_everything_is_its_rounding(entries):
    L = np.diag(entries) @ np.array([[1.0, 0.2, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]])
    W, reach = _body.left_inverse(L), np.array(entries)
    ball = TwoConvex([reach**2])
    left = _body_lattice._outside(ball, np.zeros(3), reach, L, W)
    rounded = np.abs(exactly(np.eye(3)) - exactly(L) @ exactly(W)) @ exactly(reach)
    # one rounding of each of three products, of the sums, and of the difference
    blur = 4 * EPS * np.abs(L) @ (np.abs(W) @ reach)
    assert (rounded <= exactly(left + blur)).all()
    assert (left <= 64 * EPS * reach).all()


@pytest.mark.parametrize("rank", [44, 45])
def test_points_of_few_moments_are_thinned_and_others_kept(rank):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1300, rank)) @ rng.normal(size=(rank, 100))
    rows, weights = thinned(points, np.ones(1300), centered=False)
    assert len(rows) == (1300 if rank == 45 else 991)  # 44 · 45/2 + 1
    np.testing.assert_allclose(
        points[rows].T @ (weights[:, None] * points[rows]), points.T @ points / 1300, atol=1e-6
    )
