"""Closed forms against column generation, the semidefinite program on vertices, and formulas."""

import itertools
import math
import warnings

import numpy as np
import pytest
from cases import one_test_of, pairwise
from scipy.optimize import minimize_scalar
from scipy.special import eval_chebyt, eval_gegenbauer

import gaussnoise as gn
from domains import TwoConvex
from gaussnoise import Ellipsoid, FiniteSet, LpBall, Polytope, SchattenBall, TensorPower, Zonotope
from gaussnoise.errors import ConvergenceWarning

PS = [2, 3, math.inf]
QS = [1, 1.5, 2, 3, math.inf]
# twice ROUNDING_MARGIN and the margin of exact oracles, with room
CLOSE = 2e-9


def solve(problem, domain, p=2.0, **options):
    """Return γ_p(K), or γ°_p of a relation's sensitivity set; the test itself judges wide gaps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if problem == "gamma":
            return gn.gamma(domain, p, **options)
        return gn.optimal_noise(domain, p, neighbors=problem, **options)


def check_value(noise, value, rel=CLOSE):
    """Check that both ends of a closed form are on their sides of the value."""
    assert noise.gamma == pytest.approx(value, rel=rel)
    assert noise.gamma_lower == pytest.approx(value, rel=rel)
    assert noise.gamma_lower <= value * (1 + 1e-13)
    assert noise.gamma >= value * (1 - 1e-13)
    assert noise.status is gn.results.Status.SOLVED
    noise.verify()


def check_bracket(noise, value, gap):
    """Check an answer of another route, whose bracket must hold the value."""
    assert noise.gamma_lower <= value * (1 + 1e-12)
    assert noise.gamma >= value * (1 - 1e-12)
    assert noise.gap <= gap


def check_overlap(first, second, gap=1e-4):
    assert first.gamma_lower <= second.gamma * (1 + 1e-12)
    assert second.gamma_lower <= first.gamma * (1 + 1e-12)
    assert max(first.gap, second.gap) <= gap


def longest(noise, members):
    """Return the largest length of covered members (k, d), in coordinates of the stored factor,
    after a check of the range.
    """
    unit = np.asarray(members) / noise.covariance.scale
    found = np.linalg.lstsq(noise.covariance.unit_factor, unit.T, rcond=None)[0].T
    outside = np.abs(unit - found @ noise.covariance.unit_factor.T).max()
    assert outside <= 1e-11 * np.abs(unit).max()
    return np.linalg.norm(found, axis=1).max()


def check_cover(noise, members):
    """Check the cover of members (k, d) of K: what the problem covers is made of them."""
    if noise.shifted:
        covered = members - noise.center
    elif noise.neighbors == "replace":
        covered = (members[:, None] - members).reshape(-1, members.shape[1])
    else:
        covered = members
    assert longest(noise, covered) <= 1 + 1e-12


def directions(count, dim, seed=0):
    axes = np.eye(dim)
    return np.vstack([axes, -axes, np.random.default_rng(seed).normal(size=(count, dim))])


def lp_support(theta, q):
    """Return a longest point of the unit ℓ_q ball along theta."""
    if q == 1:
        return np.sign(theta) * (np.arange(len(theta)) == np.abs(theta).argmax())
    if q == math.inf:
        return np.where(theta < 0, -1.0, 1.0)
    x = np.sign(theta) * np.abs(theta) ** (1 / (q - 1))
    return x / np.linalg.norm(x, q)


def schatten_support(theta, shape, q):
    U, s, V = np.linalg.svd(theta.reshape(shape), full_matrices=False)
    return ((U * np.abs(lp_support(s, q))) @ V).ravel()


def signs(n):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=n)))


def standard_deviation(A, p):
    """Return ``‖sd(AA')‖_p``."""
    return np.linalg.norm(np.linalg.norm(A, axis=1), p)


# ℓ_q balls


def lp_value(d, q, p):
    return d ** (1 / p) * d ** max(0, 1 / 2 - 1 / q)


@pytest.mark.parametrize(("d", "q", "p"), pairwise([1, 2, 3, 6], QS, [2, 2.5, 6, math.inf]))
def test_lq_balls(d, q, p):
    ball, v = LpBall(d, q, radius=0.3), np.arange(1.0, d + 1)
    value = 0.3 * lp_value(d, q, p)
    check_value(solve("gamma", ball, p), value)
    check_value(solve("gamma", ball + v, p), value)
    check_value(solve("add-remove", ball, p), value)
    check_value(solve("replace", ball + v, p), 2 * value)


@one_test_of("q", QS)
@one_test_of("problem", ["gamma", "replace", "add-remove"])
def test_lq_balls_are_covered(q, problem):
    members = np.array([lp_support(theta, q) for theta in directions(40, 3)])
    check_cover(solve(problem, LpBall(3, q)), members)


@pytest.mark.paper("Theorem 32", by="closed forms of ℓ_q balls")
@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize("q", QS)
def test_lq_balls_by_column_generation(q, p):
    noise = solve("gamma", LpBall(2, q), p, method="oracle", tol=1e-4)
    assert "column generation" in noise.method
    check_bracket(noise, lp_value(2, q, p), 2e-4)
    noise.verify()


@pytest.mark.paper("Theorem 32", by="semidefinite programs on vertices")
@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize("problem", ["gamma", "replace", "add-remove"])
@pytest.mark.parametrize("q", [1, math.inf])
def test_polyhedral_balls_by_semidefinite_programming(q, problem, p):
    vertices = signs(3) if q == math.inf else np.vstack([np.eye(3), -np.eye(3)])
    program = solve(problem, FiniteSet(vertices), p, method="sdp-clarabel")
    check_overlap(solve(problem, LpBall(3, q), p), program)
    check_overlap(solve(problem, Polytope(vertices), p, method="oracle"), program)


# Schatten balls


def schatten_value(shape, q, p):
    return math.prod(shape) ** (1 / p) * min(shape) ** max(0, 1 / 2 - 1 / q)


@pytest.mark.parametrize(
    ("shape", "q", "p"), pairwise([(2, 3), (3, 2), (3, 3), (1, 4), (2, 1)], QS, PS)
)
def test_schatten_balls(shape, q, p):
    ball = SchattenBall(shape, q, radius=5.0)
    value = 5 * schatten_value(shape, q, p)
    check_value(solve("gamma", ball - np.ones(ball.dim), p), value)
    check_value(solve("add-remove", ball, p), value)
    noise = solve("replace", ball, p)
    check_value(noise, 2 * value)
    check_cover(
        noise,
        5 * np.array([schatten_support(theta, shape, q) for theta in directions(20, ball.dim)]),
    )


@pytest.mark.paper("Theorem 32", by="closed forms of Schatten balls, the spectral norm among them")
@pytest.mark.parametrize("q", [1, 3, math.inf])
def test_schatten_balls_by_column_generation(q):
    noise = solve("gamma", SchattenBall((2, 2), q), method="oracle", tol=1e-2)
    check_bracket(noise, schatten_value((2, 2), q, 2), 2e-2)
    noise.verify()


# Simplices


@pytest.mark.parametrize("method", ["auto", "oracle", "sdp-clarabel"])
@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize("m", [2, 3, 5])
def test_simplices_and_their_root_polytopes(m, p, method):
    simplex, spread = Polytope(np.eye(m)), m ** (1 / p - 1 / 2)
    check_bracket(solve("gamma", simplex, p, method=method), spread * (m - 1) / math.sqrt(m), 1e-6)
    check_bracket(
        solve("replace", simplex, p, method=method), spread * math.sqrt(2 * (m - 1)), 1e-6
    )
    check_bracket(solve("add-remove", simplex, p, method=method), spread * math.sqrt(m), 1e-6)


def test_the_difference_body_of_a_simplex_is_at_jungs_bound():
    m = 5
    ratio = float(solve("replace", Polytope(np.eye(m)), method="oracle")) / float(
        solve("gamma", Polytope(np.eye(m)))
    )
    # 2/√(2r/(r+1)) with r = m − 1 dimensions: γ° <= 2γ, and no smaller than this
    assert ratio == pytest.approx(2 / math.sqrt(2 * (m - 1) / m), rel=1e-5)


# Ellipsoids


@pytest.mark.paper("Lemma 19", by="‖sd(AA')‖_p of random A")
@pytest.mark.parametrize("p", [2, 2.1, 3, 10, math.inf])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (4, 2), (1, 3)])
def test_ellipsoids_are_their_own_enclosures(shape, p):
    A = np.random.default_rng(1).normal(size=shape) * np.array([1, 10, 100, 1])[: shape[0], None]
    value, v = standard_deviation(A, p), np.arange(1.0, shape[0] + 1)
    for body in (A @ LpBall(shape[1], 2), Ellipsoid(A @ A.T)):
        check_value(solve("gamma", body + v, p), value, 1e-8)
        check_value(solve("add-remove", body, p), value, 1e-8)
        noise = solve("replace", body - v, p)
        check_value(noise, 2 * value, 1e-8)
        # use members of the set itself: rounding may move a flat body out of its span by the
        # check's slack
        members = np.array([A @ lp_support(A.T @ theta, 2) for theta in directions(40, shape[0])])
        check_cover(noise, members)


@pytest.mark.parametrize("p", PS)
def test_ellipsoids_by_column_generation(p):
    A = np.random.default_rng(2).normal(size=(3, 3))
    noise = solve("gamma", A @ LpBall(3, 2) + np.ones(3), p, method="oracle", tol=1e-4)
    check_bracket(noise, standard_deviation(A, p), 2e-4)


def test_the_largest_deviation_of_an_ellipsoid_with_ties():
    A = np.array([[3.0, 4.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    check_value(solve("gamma", A @ LpBall(3, 2), math.inf), 5.0)


# Tensor powers


def harmonics(d, k):
    """Return ``√(D_j π_j)`` for every degree j, from values of Gegenbauer polynomials: ``t^k = Σ
    π_j P_j(t)``.
    """
    degrees = np.arange(k % 2, k + 1, 2)
    t = np.cos((np.arange(len(degrees)) + 0.5) * math.pi / (2 * len(degrees)))
    if d == 2:
        table = np.array([eval_chebyt(j, t) for j in degrees])
    else:
        table = np.array(
            [eval_gegenbauer(j, d / 2 - 1, t) / eval_gegenbauer(j, d / 2 - 1, 1.0) for j in degrees]
        )
    pi = np.linalg.solve(table.T, t**k)
    counts = [
        math.comb(d + j - 1, j) - (math.comb(d + j - 3, j - 2) if j > 1 else 0) for j in degrees
    ]
    return dict(zip(degrees.tolist(), np.sqrt(np.array(counts) * pi), strict=True))


def tensor_value(d, k, problem):
    roots = harmonics(d, k)
    if k % 2 or problem == "add-remove":
        return sum(roots.values()) * (2 if problem == "replace" else 1)
    rest = sum(root for j, root in roots.items() if j)
    height = lambda theta: math.sqrt(1 - theta) * rest + roots[0] * math.sqrt(theta * (1 - theta))  # noqa: E731
    found = minimize_scalar(
        lambda theta: -height(theta), bounds=(0, 1), method="bounded", options={"xatol": 1e-12}
    )
    return -found.fun


SPHERES = {
    (3, 2): 1.8257418584,
    (3, 3): 3.0149608396,
    (5, 2): 3.3466401061,
    (4, 3): 4.2426406871,
    (4, 4): 5.0450849719,
}
BALLS = {(3, 2): 1.9080294743, (5, 2): 3.3758861461, (3, 3): 3.0149608396, (4, 3): 4.2426406871}


@pytest.mark.parametrize(("d", "k"), SPHERES)
def test_the_reference_knows_the_published_sphere_values(d, k):
    assert sum(root for j, root in harmonics(d, k).items() if j) == pytest.approx(
        SPHERES[d, k], abs=1e-10
    )


@pytest.mark.parametrize(("d", "k"), BALLS)
def test_published_values_of_tensor_powers(d, k):
    noise = solve("gamma", TensorPower(d, k))
    assert noise.gamma == pytest.approx(BALLS[d, k], rel=1e-9)
    assert noise.gap <= 1e-9


@one_test_of("problem", ["gamma", "add-remove"])
@one_test_of(("d", "k"), [(2, 1), (2, 2), (2, 3), (2, 4), (2, 5), (3, 1), (3, 4), (4, 4)])
def test_tensor_powers(d, k, problem):
    check_value(solve(problem, TensorPower(d, k)), tensor_value(d, k, problem), 1e-9)


@pytest.mark.parametrize(
    ("k", "problem", "value"),
    [(2, "gamma", 0.5), (2, "replace", 1), (4, "add-remove", 1), (3, "gamma", 1)],
)
def test_powers_of_one_number(k, problem, value):
    check_value(solve(problem, TensorPower(1, k)), value)


@pytest.mark.parametrize(("d", "k"), [(2, 3), (3, 3), (2, 1)])
def test_odd_tensor_powers_are_symmetric(d, k):
    check_value(solve("replace", TensorPower(d, k)), tensor_value(d, k, "replace"), 1e-9)


def powers(x, k):
    result = x
    for _ in range(k - 1):
        result = (result[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    return result


@pytest.mark.parametrize("problem", ["gamma", "replace", "add-remove"])
@pytest.mark.parametrize(("d", "k"), [(2, 2), (2, 3), (2, 4), (3, 2)])
def test_moved_tensor_powers_cover_their_members(d, k, problem):
    v = np.zeros(d**k) if problem == "add-remove" else np.linspace(-1, 1, d**k)
    noise = solve(problem, -3.0 * TensorPower(d, k) + v)
    x = directions(150, d)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    check_cover(noise, v - 3 * np.vstack([powers(x, k), np.zeros(d**k), 0.5 * powers(x, k)]))
    assert noise.gamma == pytest.approx(3 * float(solve(problem, TensorPower(d, k))), rel=1e-9)
    noise.verify()


@pytest.mark.parametrize("problem", ["gamma", "replace", "add-remove"])
@pytest.mark.parametrize("k", [2, 3])
def test_tensor_powers_of_the_plane_by_listed_points(k, problem):
    angles = np.arange(48) * math.pi / 24
    points = np.vstack(
        [powers(np.column_stack([np.cos(angles), np.sin(angles)]), k), np.zeros(2**k)]
    )
    inner, exact = solve(problem, FiniteSet(points), tol=1e-4), solve(problem, TensorPower(2, k))
    assert inner.gamma_lower <= exact.gamma
    assert exact.gamma_lower <= inner.gamma * 1.01
    if k == 2:
        check_overlap(solve(problem, TensorPower(2, k), method="oracle", tol=1e-2), exact, 0.2)


def test_tensor_powers_at_other_norms():
    noise = solve("gamma", TensorPower(2, 2), 3, tol=1e-3)
    assert "column generation" in noise.method
    # coordinates of unequal symmetry: between the bounds from γ_2 by power means
    least = tensor_value(2, 2, "gamma") * 4 ** (1 / 3 - 1 / 2)
    assert least * (1 - 1e-9) <= noise.gamma <= tensor_value(2, 2, "gamma") * (1 + 2e-3)
    noise.verify()


@pytest.mark.parametrize(
    ("d", "k", "problem"),
    [
        (2, 3, "gamma"),
        (2, 3, "replace"),
        (3, 3, "add-remove"),
        (3, 2, "add-remove"),
        (1, 3, "gamma"),
    ],
)
def test_the_largest_sd_of_tensor_powers(d, k, problem):
    """x_1^k alone ranges over [−1, 1], or over [−2, 2] when a record is replaced."""
    rng, twice = np.random.default_rng(2), 2 if problem == "replace" else 1
    noise = solve(problem, 3 * TensorPower(d, k), math.inf)
    assert "closed form" in noise.method
    assert noise.gamma_lower <= 3 * twice * (1 + 1e-12)
    assert noise.gamma == pytest.approx(3 * twice, rel=1e-8)
    u = rng.normal(size=(200, d))
    members = 3 * twice * powers(u / np.linalg.norm(u, axis=1, keepdims=True), k)
    factor = noise.covariance.factor()
    whitened = np.linalg.lstsq(factor, members.T, rcond=None)[0]
    np.testing.assert_allclose(factor @ whitened, members.T, atol=1e-12)
    assert 0.999 < np.square(whitened).sum(axis=0).max() <= 1
    # a covariance smaller by a thousandth does not cover them
    assert (np.square(whitened / 0.999).sum(axis=0) > 1).any()
    noise.verify()


def test_the_largest_sd_of_tensor_powers_by_column_generation():
    general = solve("gamma", TensorPower(2, 3), math.inf, tol=1e-2, method="oracle")
    assert "column generation" in general.method
    check_overlap(general, solve("gamma", TensorPower(2, 3), math.inf), 1e-2)


EVEN = [(1, 2), (1, 4), (2, 2), (3, 2), (40, 2), (2, 4), (5, 4), (8, 4), (4, 6), (2, 12)]


@pytest.mark.parametrize(("d", "k"), EVEN)
def test_the_largest_sd_of_even_tensor_powers(d, k):
    """Powers of axes alone need ``√(2d/(d + 1))``, or as much as the simplex of them and 0."""
    noise = solve("replace", TensorPower(d, k), math.inf)
    check_value(noise, math.sqrt(2 * d / (d + 1)))
    assert "closed form" in noise.method
    noise = solve("gamma", TensorPower(d, k), math.inf)
    found = minimize_scalar(
        lambda t: -((d - 1) * math.sqrt(1 - t) + math.sqrt(t * (1 - t))) / d,
        bounds=(0, 1),
        method="bounded",
        options={"xatol": 1e-10},
    )
    check_value(noise, -found.fun)
    simplex = solve("gamma", FiniteSet(np.vstack([np.zeros(d), np.eye(d)])), math.inf, tol=1e-8)
    assert noise.gamma == pytest.approx(simplex.gamma, rel=2e-8)


@pytest.mark.parametrize("problem", ["gamma", "replace"])
@pytest.mark.parametrize(("d", "k"), [(1, 2), (2, 4), (3, 2)])
def test_moved_even_tensor_powers_cover_their_members(d, k, problem):
    v = np.linspace(-1, 1, d**k)
    noise = solve(problem, -3.0 * TensorPower(d, k) + v, math.inf)
    x = directions(150, d)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    check_cover(noise, v - 3 * np.vstack([powers(x, k), np.zeros(d**k), 0.5 * powers(x, k)]))
    still = solve(problem, TensorPower(d, k), math.inf)
    assert noise.gamma == pytest.approx(3 * still.gamma, rel=1e-11)
    check_value(noise, 3 * still.gamma, 1e-9)


@pytest.mark.parametrize(
    ("d", "k", "problem", "gap"),
    [(2, 2, "gamma", 1e-2), (2, 2, "replace", 0.3), (3, 2, "gamma", 1e-2), (3, 2, "replace", 0.3)],
)
def test_the_largest_sd_of_even_tensor_powers_by_column_generation(d, k, problem, gap):
    """Its lower end, from points it found itself, is within some percent under replacement too."""
    general = solve(problem, TensorPower(d, k), math.inf, tol=gap, method="oracle")
    assert "column generation" in general.method
    exact = solve(problem, TensorPower(d, k), math.inf)
    check_overlap(general, exact, gap)
    assert exact.gamma * 0.97 <= general.gamma_lower <= exact.gamma


# Products


def bodies():
    rng = np.random.default_rng(3)
    return {
        "ℓ_1": LpBall(2, 1, radius=2.0),
        "ℓ_3": LpBall(3, 3),
        "ellipsoid": rng.normal(size=(2, 3)) @ LpBall(3, 2),
        "zonotope": Zonotope(rng.normal(size=(4, 2))),
        "segment": LpBall(1, 2, radius=0.1),
    }


PAIRS = list(itertools.combinations(bodies(), 2))


@pytest.mark.parametrize(
    ("first", "second", "p"), [(*PAIRS[k], PS[k % len(PS)]) for k in range(len(PAIRS))]
)
def test_products_of_symmetric_bodies(first, second, p):
    K, L = bodies()[first], bodies()[second]
    alpha = 1 / (1 / 2 + 1 / p)
    ends = [
        [end(solve("gamma", part, p, tol=1e-8)) for part in (K, L)] for end in (lower_end, float)
    ]
    low, high = (sum(x**alpha for x in values) ** (1 / alpha) for values in ends)
    noise = solve("gamma", gn.product(K, L) + np.ones(K.dim + L.dim), p)
    assert noise.gamma_lower <= high * (1 + 1e-9)
    assert low * (1 - 1e-9) <= noise.gamma <= high * (1 + 2e-6)
    noise.verify()
    double = solve("replace", gn.product(K, L), p)
    assert double.gamma == pytest.approx(2 * noise.gamma, rel=3e-6)


def lower_end(noise):
    return noise.gamma_lower


@pytest.mark.parametrize("p", PS)
def test_products_of_three_by_column_generation(p):
    body = gn.product(
        LpBall(1, 2), Zonotope([[1.0, 0.0], [1.0, 1.0], [0.0, 3.0]]), LpBall(1, 2, radius=0.2)
    )
    check_overlap(solve("gamma", body, p), solve("gamma", body, p, method="oracle"), 1e-5)


@pytest.mark.parametrize("p", PS)
def test_products_of_lopsided_sets(p):
    """The law holds without symmetry as well, by listed points and by oracles."""
    K, L = FiniteSet([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), FiniteSet([[0.0], [3.0]])
    alpha = 1 / (1 / 2 + 1 / p)
    value = (float(solve("gamma", K, p)) ** alpha + float(solve("gamma", L, p)) ** alpha) ** (
        1 / alpha
    )
    for method in ("auto", "oracle", "sdp-clarabel"):
        noise = solve("gamma", gn.product(K, L), p, method=method)
        assert noise.gamma == pytest.approx(value, rel=3e-6)


@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize(("first", "second"), [pair for pair in PAIRS if "ℓ_3" not in pair])
def test_kronecker_products_of_symmetric_bodies(first, second, p):
    K, L = bodies()[first], bodies()[second]
    low, high = (
        math.prod(end(solve("gamma", part, p, tol=1e-8)) for part in (K, L))
        for end in (lower_end, float)
    )
    noise = solve("add-remove", gn.kron(K, L), p)
    assert "Kronecker" in noise.method
    assert noise.gamma_lower <= high * (1 + 1e-9)
    assert low * (1 - 1e-9) <= noise.gamma <= high * (1 + 2e-6)
    members = [
        np.array([part.support_point(t) for t in directions(15, part.dim)]) for part in (K, L)
    ]
    check_cover(noise, np.array([np.kron(x, y) for x in members[0] for y in members[1]]))


@pytest.mark.parametrize("p", PS)
@pytest.mark.parametrize("problem", ["gamma", "replace", "add-remove"])
def test_kronecker_products_by_listed_points(problem, p):
    """The cross-polytope times a parallelogram, as bodies and as vertices."""
    corners = signs(2) @ np.array([[1.0, 0.5], [0.0, 2.0]])
    cross = np.vstack([np.eye(2), -np.eye(2)])
    body = gn.kron(LpBall(2, 1), Zonotope([[1.0, 0.5], [0.0, 2.0]]))
    listed = gn.kron(FiniteSet(cross), FiniteSet(corners))
    check_overlap(solve(problem, body, p), solve(problem, listed, p), 1e-5)


def test_a_kronecker_product_with_one_symmetric_factor_obeys_no_law():
    """γ(K ⊗ L) for K off center: its bracket must hold the listed value all the same."""
    K, segment = Polytope([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), LpBall(1, 2)
    listed = FiniteSet(np.vstack([K.vertices, -K.vertices]))
    check_overlap(solve("gamma", gn.kron(K, segment)), solve("gamma", listed), 1e-5)


# Zonotopes and other images of 2-convex bodies


def relaxed(A, q):
    """Return ``‖(‖a_j‖)_j‖_{q/(q−1)}`` of the columns."""
    return np.linalg.norm(np.linalg.norm(A, axis=0), 1.0 if q == math.inf else q / (q - 1))


@pytest.mark.parametrize(
    ("shape", "p", "problem"),
    # without (3, 5) under "replace": the semidefinite program lists all differences of vertices
    [
        *pairwise([(1, 3), (2, 4), (3, 3)], PS, ["gamma", "replace", "add-remove"]),
        *pairwise([(3, 5)], PS, ["gamma", "add-remove"]),
    ],
)
def test_zonotopes_by_their_vertices(problem, p, shape):
    G = np.random.default_rng(4).normal(size=shape).T
    v = np.array([0.5, -1.0, 2.0])[: shape[0]]
    vertices = signs(len(G)) @ G + v
    program = solve(problem, FiniteSet(vertices), p, method="sdp-clarabel")
    noise = solve(problem, Zonotope(G, v), p)
    check_overlap(noise, program, 1e-5)
    check_cover(noise, vertices)
    noise.verify()


def corners(G):
    """Return the vertices of a zonotope in R³; its generators, as rows, are in general position."""
    i, j = np.triu_indices(len(G), 1)
    both = np.sign(np.cross(G[i], G[j]) @ G.T)
    rows, points = np.arange(len(i)), []
    for pair in ((1, 1), (1, -1)):
        both[rows, i], both[rows, j] = pair
        points += [both @ G, -both @ G]
    return np.unique(np.vstack(points).round(12), axis=0)


@pytest.mark.parametrize("p", [2, math.inf])
@pytest.mark.parametrize("problem", ["gamma", "replace", "add-remove"])
def test_zonotopes_of_many_generators_by_their_vertices(problem, p):
    """Thirty generators have too many signs to try them all, and 872 vertices."""
    G, v = np.random.default_rng(5).normal(size=(30, 3)), np.array([0.5, -1.0, 2.0])
    vertices = corners(G)
    assert len(vertices) == 30 * 29 + 2
    # differences are the zonotope of twice the generators, about zero
    listed = 2 * vertices if problem == "replace" else vertices + v
    noise = solve(problem, Zonotope(G, v), p)
    known = solve("gamma" if problem == "gamma" else "add-remove", FiniteSet(listed), p)
    assert noise.gap <= 1e-6
    check_overlap(noise, known, 1e-6)
    check_cover(noise, vertices + v)
    noise.verify()


@pytest.mark.parametrize(
    ("shape", "q"),
    [
        *itertools.product([(2, 5), (4, 10)], [2, 3, math.inf]),
        *itertools.product([(3, 8), (3, 40)], [4, math.inf]),
    ],
)
def test_images_of_balls_are_within_grothendiecks_constant(shape, q):
    A = np.random.default_rng(5).normal(size=shape)
    noise = solve("gamma", A @ LpBall(shape[1], q), tol=1e-3)
    R = relaxed(A, q)
    # an iterative oracle's bound is widened by a share of its bracket, so that other machines
    # confirm it
    assert noise.gamma <= R * (1 + 5e-3 * noise.gap + 1e-6)
    assert noise.gamma_lower <= R
    # γ >= R √(2/π); the lower end found may be a little below
    assert noise.gamma >= R * math.sqrt(2 / math.pi) * (1 - 1e-12)
    assert noise.gamma_lower >= 0.99 * R * math.sqrt(2 / math.pi)
    if q == 2:
        assert noise.gap <= 1e-8
    members = np.array([A @ lp_support(A.T @ theta, q) for theta in directions(60, shape[0])])
    check_cover(noise, members)
    # members alone have no smaller lower end than their own
    inner = solve("gamma", FiniteSet(np.vstack([members, -members])), tol=1e-3)
    assert inner.gamma_lower <= noise.gamma
    noise.verify()


@pytest.mark.parametrize("q", [2.5, 3, math.inf])
def test_the_relaxation_of_an_image_is_exact_for_scaled_coordinates(q):
    widths = np.array([1.0, 0.2, 7.0])
    noise = solve("gamma", np.diag(widths) @ LpBall(3, q), tol=1e-4)
    check_bracket(noise, relaxed(np.diag(widths), q), 2e-4)


@pytest.mark.parametrize("p", [2, 4, math.inf])
def test_boxes(p):
    """Σ_j a_jj²/y_j with one coordinate each: ``M_jj = h_j²/y_j``, Σ y_j = 1, in closed form."""
    h = np.array([1.0, 0.2, 7.0])
    s = p / 2
    # min ‖(h_j²/y_j)‖_s over the simplex: y_j ∝ h_j^{2s/(s+1)}, by the Lagrange condition
    y = h**2 if p == math.inf else h ** (2 * s / (s + 1))
    y = y / y.sum()
    value = math.sqrt(np.linalg.norm(h**2 / y, s))
    for box in (Zonotope(np.diag(h)), TwoConvex([h**2]), np.diag(h) @ LpBall(3, math.inf)):
        noise = solve("gamma", box + np.ones(3), p)
        check_bracket(noise, value, 1e-6)
        check_cover(noise, signs(3) * h + 1)


def test_squares_below_a_segment():
    """p = 2, A = 1: γ = max Σ √t_j over t in T."""
    first, second = np.array([1.0, 4.0, 0.0]), np.array([0.0, 1.0, 9.0])
    mixture = lambda w: -np.sqrt((1 - w) * first + w * second).sum()  # noqa: E731
    found = minimize_scalar(mixture, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    noise = solve("gamma", TwoConvex([first, second]), tol=1e-2)
    check_bracket(noise, -found.fun, 1e-2)
    w = np.linspace(0, 1, 30)[:, None]
    members = (np.sqrt((1 - w) * first + w * second)[:, None] * signs(3)).reshape(-1, 3)
    check_cover(noise, members)


# The checks themselves


def test_the_cover_check_sees_a_covariance_that_is_too_small():
    noise = solve("gamma", LpBall(3, math.inf))
    for factor, point in ((1 + 2e-9, np.ones(3)), (1e3, np.eye(3)[0])):
        with pytest.raises(AssertionError):
            check_cover(noise, factor * np.vstack([point, -point]))
    with pytest.raises(AssertionError):
        check_cover(solve("gamma", Zonotope([[1.0, 1.0]])), np.array([[1e-9, -1e-9]]))


def test_the_bracket_check_sees_values_outside():
    noise = solve("gamma", LpBall(3, 2))
    for wrong in (math.sqrt(3) * (1 + 1e-8), math.sqrt(3) * (1 - 1e-8)):
        with pytest.raises(AssertionError):
            check_bracket(noise, wrong, 1e-3)
        with pytest.raises(AssertionError):
            check_value(noise, wrong)
