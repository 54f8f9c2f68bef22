"""optimal_noise() and gamma() for 2 <= p <= ∞: published numbers, an independent SDP, optimality
conditions, laws.
"""

import itertools
import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from cases import one_test_of, pairwise
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import optimize

import gaussnoise as gn
from gaussnoise import FiniteSet, Marginals

ROUNDING = 1e-11
NORMS = [2, 2.5, 3, 8, 100, math.inf]
PROBLEMS = ["gamma", "add-remove", "replace"]
norms = pytest.mark.parametrize("p", NORMS)
problems = pytest.mark.parametrize("problem", PROBLEMS)


def solve(points, problem, p, **options):
    domain = points if isinstance(points, gn.domains.AbstractDomain) else FiniteSet(points)
    if problem == "gamma":
        return gn.gamma(domain, p, **options)
    return gn.optimal_noise(domain, p, neighbors=problem, **options)


def check(noise, expected=None, digits=ROUNDING):
    """Check that the bracket is tight, contains ``expected`` and passes verification."""
    assert 0 <= noise.gamma_lower <= noise.gamma < math.inf
    assert 0 <= noise.gap <= 1e-6
    assert noise.status is gn.results.Status.SOLVED
    noise.verify()
    assert noise.gamma >= noise.covariance.error(noise.p)
    if expected is not None:
        assert noise.gamma_lower <= expected * (1 + digits)
        assert noise.gamma >= expected * (1 - digits)
    return noise


def at_most(a, b, factor=1.0):
    """Check that a certified bracket does not contradict ``a <= factor · b``."""
    assert a.gamma_lower <= factor * b.gamma * (1 + ROUNDING)


def agree(a, b, factor=1.0):
    at_most(a, b, factor)
    at_most(b, a, 1 / factor)


def prefix_sums(n):
    return np.tril(np.ones((n, n)))


def differences(points):
    return np.array([x - y for x, y in itertools.combinations(points, 2)])


def enclosed(points, problem):
    return differences(points) if problem == "replace" else points


# Published and closed forms


@pytest.mark.parametrize(
    ("n", "square"),
    [
        (16, 2.90525290259),
        (32, 3.63072336382),
        (64, 4.45786915121),
        (128, 5.38608653877),
        (256, 6.41465103051),
    ],
)
def test_largest_error_of_prefix_sums(n, square):
    check(
        gn.optimal_noise(FiniteSet.from_workload(prefix_sums(n)), math.inf, neighbors="add-remove"),
        math.sqrt(square),
    )


@pytest.mark.parametrize(("p", "square"), [(2, 64 * 4.987504570096), (math.inf, 5.20551871894)])
def test_prefix_sums_in_two_dimensions(p, square):
    grid = FiniteSet.from_workload(np.kron(prefix_sums(8), prefix_sums(8)))
    check(gn.optimal_noise(grid, p, neighbors="add-remove"), math.sqrt(square))


@norms
@pytest.mark.parametrize("d", [1, 2, 5])
def test_cross_polytope_and_cube(p, d):
    check(gn.gamma(FiniteSet(np.vstack([np.eye(d), -np.eye(d)])), p), d ** (1 / p))
    check(gn.gamma(FiniteSet(list(itertools.product([-1, 1], repeat=d))), p), d ** (1 / p + 1 / 2))


@norms
@problems
@pytest.mark.parametrize("m", [2, 3, 12])
def test_simplex(p, problem, m):
    value = {
        "gamma": (m - 1) / math.sqrt(m),
        "replace": math.sqrt(2 * (m - 1)),
        "add-remove": math.sqrt(m),
    }[problem]
    check(solve(np.eye(m), problem, p), m ** (1 / p - 1 / 2) * value)


@norms
@problems
def test_an_orbit_of_signed_permutations_needs_round_noise(p, problem):
    start = [3.0, 1.0, 0.25]
    orbit = [
        np.multiply(s, x)
        for x in itertools.permutations(start)
        for s in itertools.product([-1, 1], repeat=3)
    ]
    diameters = 2 if problem == "replace" else 1
    check(solve(orbit, problem, p), diameters * 3 ** (1 / p) * np.linalg.norm(start))


@norms
@pytest.mark.parametrize("m", [5, 12, 31])
def test_circulants_have_the_nuclear_norm_found_by_fft(p, m):
    first = np.random.default_rng(m).normal(size=m)
    C = np.array([np.roll(first, k) for k in range(m)]).T
    noise = gn.optimal_noise(FiniteSet.from_workload(C), p, neighbors="add-remove")
    check(noise, m ** (1 / p) * np.abs(np.fft.fft(first)).sum() / m)


@norms
@pytest.mark.parametrize(("d", "k"), [(4, 2), (6, 1), (5, 3)])
def test_all_kway_marginals_of_bits(p, d, k):
    mean = sum(
        math.comb(d, t) * math.sqrt(2.0**-k * math.comb(d - t, k - t)) for t in range(1, k + 1)
    )
    check(
        gn.gamma(Marginals.all_kway((2,) * d, k), p),
        (2**k * math.comb(d, k)) ** (1 / p - 1 / 2) * mean,
    )


ALL_TWO_WAY = Marginals.all_kway((3, 2, 4), 2)
WEIGHTED = Marginals((2, 3, 2), [(0, 1), (1, 2), (0,)], weights=[1.0, 0.7, 2.0])


@pytest.mark.parametrize(
    ("domain", "problem", "p", "published", "digits"),
    [
        (ALL_TWO_WAY, "gamma", 4, 2.896, 5e-4),
        (ALL_TWO_WAY, "replace", math.inf, 1.970378, 5e-7),
        (WEIGHTED, "replace", math.inf, 2.314939, 5e-7),
    ],
)
def test_published_marginals(domain, problem, p, published, digits):
    check(solve(domain, problem, p), published, digits / published)


def by_symmetry(domain, problem, p):
    """Return ``max_{v,π} Σ_T r_T √(β_T κ_T)``: the problem on attribute subsets, without points and
    matrices.
    """
    sizes, subsets, weights = domain.sizes, domain.subsets, domain.weights
    cells = np.array([math.prod(sizes[i] for i in S) for S in subsets])
    attributes = range(len(sizes))
    every = [T for k in range(len(sizes) + 1) for T in itertools.combinations(attributes, k)]
    kept = [
        T
        for T in every
        if any(set(T) <= set(S) for S in subsets) and (T or problem == "add-remove")
    ]
    ranks = np.array([math.prod(sizes[i] - 1 for i in T) for T in kept])
    inside = np.array([[set(T) <= set(S) for S in subsets] for T in kept])
    shrink = np.array(
        [[math.prod(-1 / (sizes[i] - 1) for i in set(T) & set(D)) for D in every] for T in kept]
    )
    power = 1 - 2 / p

    def loss(x):
        v, patterns = x[: len(subsets)], x[len(subsets) :]
        beta = inside @ (v**power * np.square(weights) * cells ** (-1 - power))
        kappa = 2 * (1 - shrink @ patterns) if problem == "replace" else 1
        return -float(ranks @ np.sqrt(np.maximum(beta * kappa, 1e-300)))

    groups = [slice(0, len(subsets)), slice(len(subsets), None)]
    start = np.concatenate(
        [np.full(len(subsets), 1 / len(subsets)), np.full(len(every), 1 / len(every))]
    )
    simplices = [{"type": "eq", "fun": lambda x, g=group: x[g].sum() - 1} for group in groups]
    options = {"maxiter": 1000, "ftol": 1e-14}
    best = optimize.minimize(
        loss,
        start,
        bounds=[(1e-12, 1)] * len(start),
        constraints=simplices,
        method="SLSQP",
        options=options,
    )
    return -best.fun


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")  # of SciPy before 1.16
@problems
@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize("domain", [ALL_TWO_WAY, WEIGHTED], ids=["two-way", "weighted"])
def test_marginals_agree_with_the_problem_on_attribute_subsets(domain, problem, p):
    assert float(check(solve(domain, problem, p))) == pytest.approx(
        by_symmetry(domain, problem, p), rel=1e-5
    )


# Independent solver


def sdp(points, p, shifted):
    """Return ``γ² = min ‖diag M‖_{p/2}  s.t. [[M, X], [X', Y]] ⪰ 0, diag Y ≤ 1``; the columns of X
    are the points less a center.
    """
    N, d = points.shape
    joint = cp.Variable((d + N, d + N), PSD=True)
    center = cp.Variable((d, 1))
    columns = points.T - center @ np.ones((1, N)) if shifted else points.T
    constraints = [joint[:d, d:] == columns, cp.diag(joint[d:, d:]) <= 1]
    problem = cp.Problem(cp.Minimize(cp.pnorm(cp.diag(joint[:d, :d]), p / 2)), constraints)
    problem.solve(solver=cp.CLARABEL)
    return math.sqrt(problem.value)


@pytest.mark.paper("Lemma 28", by="semidefinite program, by cvxpy")
@pytest.mark.filterwarnings("ignore:pnorm with p=50.0 is being approximated \\(error. 0.00e.00\\)")
@pytest.mark.parametrize(
    ("p", "problem", "shape"), pairwise(NORMS, PROBLEMS, [(6, 2), (4, 3), (3, 5)])
)
def test_against_an_independent_sdp(p, problem, shape):
    N, d = shape
    points = np.random.default_rng(N + 10 * d).normal(size=(N, d))
    noise = check(solve(points, problem, p))
    assert float(noise) == pytest.approx(
        sdp(enclosed(points, problem), p, problem == "gamma"), rel=2e-6
    )


@pytest.mark.parametrize(
    ("p", "problem", "method"),
    pairwise([2, 3, math.inf], PROBLEMS, ["sdp", "sdp-clarabel", "sdp-scs", "ellipsoid"]),
)
def test_every_method_agrees(p, problem, method):
    points = np.random.default_rng(1).normal(size=(4, 2))
    # the central cut needs thousands of steps for six digits
    noise = solve(points, problem, p, method=method, tol=1e-3 if method == "ellipsoid" else 1e-5)
    noise.verify()
    assert noise.status is gn.results.Status.SOLVED
    agree(noise, check(solve(points, problem, p)))


# Optimality conditions, each from the stored answer alone

GENERIC = np.random.default_rng(0).normal(size=(9, 3))
TIGHT = {
    (problem, p, name): solve(points, problem, p, tol=1e-9)
    for problem in PROBLEMS
    for p in NORMS
    for name, points in {
        "generic": GENERIC,
        "ties": np.array([[0, 0, 1.0], [1, 1, 0], [1, 1, 0], [2, 0, 1], [-1, 3, 2]]),
        "slack coordinate": GENERIC[:6] * [1, 1, 0.05],
    }.items()
}
tight = one_test_of("noise", TIGHT.values(), ids=[" ".join(map(str, key)) for key in TIGHT])


def lengths(noise, points):
    L = noise.covariance.factor()
    return np.square(np.linalg.lstsq(L, points.T, rcond=None)[0]).sum(axis=0)


def exact_length(noise, point):
    """Return ``x' M⁻¹ x`` in rational arithmetic, M = L L' of the stored square L; the point is
    given as exact fractions.
    """
    L = [[Fraction(value) for value in row] for row in noise.covariance.factor().tolist()]
    rows = [[*row, value] for row, value in zip(L, point, strict=True)]
    for i in range(len(rows)):
        pivot = next(k for k in range(i, len(rows)) if rows[k][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(len(rows)):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return sum(row[-1] ** 2 for row in rows)


@tight
def test_primal_feasible_in_rational_arithmetic(noise):
    points = [[Fraction(x) for x in row] for row in noise.domain.points.tolist()]
    if noise.shifted:
        center = [Fraction(c) for c in noise.center.tolist()]
        moved = [[x - c for x, c in zip(point, center, strict=True)] for point in points]
    elif noise.neighbors == "replace":
        moved = [
            [x - y for x, y in zip(*pair, strict=True)]
            for pair in itertools.combinations(points, 2)
        ]
    else:
        moved = points
    longest = max(exact_length(noise, point) for point in moved)
    assert 1 - Fraction(1, 10**9) <= longest <= 1


@tight
def test_dual_feasible(noise):
    witness = noise.certificate
    w, order = witness.coordinate_weights, math.inf if noise.p == 2 else 1 / (1 - 2 / noise.p)
    assert (w >= 0).all()
    assert np.linalg.norm(w, order) <= 1 + 1e-14
    assert (witness.weights > 0).all()
    assert math.fsum(witness.weights) == pytest.approx(1, abs=1e-12)
    allowed = (
        noise.domain.points if noise.shifted else enclosed(noise.domain.points, noise.neighbors)
    )
    assert all((np.abs(allowed) == np.abs(x)).all(axis=1).any() for x in witness.points)


@tight
def test_the_witness_proves_what_is_stored(noise):
    witness = noise.certificate
    mass = witness.weights / witness.weights.sum()
    moved = witness.points - mass @ witness.points if noise.shifted else witness.points
    G = np.sqrt(mass)[:, None] * moved * np.sqrt(witness.coordinate_weights)
    assert noise.gamma_lower == pytest.approx(np.linalg.svd(G, compute_uv=False).sum(), rel=1e-11)


@tight
def test_complementary_slackness(noise):
    witness = noise.certificate
    z = lengths(noise, witness.points - noise.center)
    # F² <= tr(WM) tr(CM⁻¹), so neither factor can lose more than the square of the bracket
    loss = 1 - (noise.gamma_lower / noise.gamma) ** 2 + 1e-10
    assert (witness.weights * (1 - z) <= loss).all()
    variances = noise.covariance.diagonal()
    assert (
        witness.coordinate_weights @ variances >= (1 - loss) * noise.covariance.error(noise.p) ** 2
    )


@tight
def test_stationary(noise):
    witness, M, W = (
        noise.certificate,
        noise.covariance.toarray(),
        np.diag(noise.certificate.coordinate_weights),
    )
    moved = witness.points - noise.center
    C = moved.T @ (witness.weights[:, None] * moved)
    root = noise.gamma**2
    assert (
        np.abs(M @ W @ M - root * C).max()
        <= 30 * math.sqrt(noise.gap + 1e-12) * np.abs(root * C).max()
    )
    if noise.shifted:
        assert np.abs(witness.weights @ moved).max() <= 1e-5 * np.abs(moved).max()


# Laws (Nikolov & Tang 2023, Theorem 20, Lemmas 60, 62, 63)

few = settings(max_examples=25, derandomize=True, deadline=None, database=None)
random_norms = st.one_of(st.floats(2, 50), st.sampled_from(NORMS))
random_problems = st.sampled_from(PROBLEMS)


@st.composite
def small_sets(draw, dim=None, most=5):
    """Draw integer points: ties, duplicates and flat sets are common."""
    d = dim or draw(st.integers(1, 3))
    return draw(
        hnp.arrays(np.int64, (draw(st.integers(1, most)), d), elements=st.integers(-3, 3))
    ).astype(float)


@few
@given(small_sets(), random_problems, random_norms)
def test_every_small_set_is_solved(points, problem, p):
    check(solve(points, problem, p))


@pytest.mark.paper(
    "Theorem 20", by="certified brackets with and without points of the hull, random sets"
)
@few
@given(small_sets(), random_problems, random_norms, st.data())
def test_points_of_the_hull_change_nothing(points, problem, p, data):
    mix = np.array(
        data.draw(st.lists(st.integers(0, 4), min_size=len(points), max_size=len(points)))
    )
    assume(mix.any())
    agree(
        solve(points, problem, p), solve(np.vstack([points, mix @ points / mix.sum()]), problem, p)
    )


@pytest.mark.paper("Theorem 20", by="certified brackets of random sets and supersets")
@few
@given(small_sets(dim=2), small_sets(dim=2), random_problems, random_norms)
def test_monotone_under_inclusion(points, more, problem, p):
    at_most(solve(points, problem, p), solve(np.vstack([points, more]), problem, p))


@pytest.mark.paper("Theorem 20", by="certified brackets of random sets and multiples")
@few
@given(
    small_sets(), random_problems, random_norms, st.sampled_from([-2.0, 0.3, 1e-150, 1e150, -7.7])
)
def test_scales_with_the_set(points, problem, p, c):
    agree(solve(c * points, problem, p), solve(points, problem, p), abs(c))


@pytest.mark.paper("Definition 2", by="certified brackets of random sets and translates")
@few
@given(
    small_sets(dim=2),
    st.sampled_from(["gamma", "replace"]),
    random_norms,
    hnp.arrays(float, 2, elements=st.integers(-9, 9)),
)
def test_translation_changes_nothing(points, problem, p, shift):
    agree(solve(points, problem, p), solve(points + shift, problem, p))


@pytest.mark.paper("Theorem 20", by="certified brackets of random sets and their sums")
@few
@given(small_sets(dim=2, most=4), small_sets(dim=2, most=4), random_norms)
def test_subadditive_under_minkowski_sums(K, L, p):
    sums = gn.gamma(FiniteSet([x + y for x in K for y in L]), p)
    assert sums.gamma_lower <= (
        gn.gamma(FiniteSet(K), p).gamma + gn.gamma(FiniteSet(L), p).gamma
    ) * (1 + ROUNDING)


@pytest.mark.paper("Lemma 60", by="certified brackets of random sets and their listed products")
@few
@given(small_sets(most=4), small_sets(most=4), random_norms)
def test_product_adds_powers(K, L, p):
    product = gn.gamma(FiniteSet([np.concatenate([x, y]) for x in K for y in L]), p)
    a, b = gn.gamma(FiniteSet(K), p), gn.gamma(FiniteSet(L), p)
    alpha = 1 / (1 / 2 + 1 / p)
    assert product.gamma_lower <= np.linalg.norm([a.gamma, b.gamma], alpha) * (1 + ROUNDING)
    assert product.gamma >= np.linalg.norm([a.gamma_lower, b.gamma_lower], alpha) * (1 - ROUNDING)


@pytest.mark.paper("Lemma 62", by="certified brackets of random sets and their listed products")
@few
@given(small_sets(dim=2, most=4), small_sets(dim=2, most=4), random_norms)
def test_kronecker_products_of_symmetric_sets_multiply(K, L, p):
    product = solve([np.kron(x, y) for x in K for y in L], "add-remove", p)
    a, b = (solve(points, "add-remove", p) for points in (K, L))
    assert product.gamma_lower <= a.gamma * b.gamma * (1 + ROUNDING)
    assert product.gamma >= a.gamma_lower * b.gamma_lower * (1 - ROUNDING)


@pytest.mark.paper("Lemma 63", by="certified brackets of random sets and their projections")
@few
@given(
    small_sets(dim=3), random_problems, random_norms, st.sampled_from([[0], [2], [0, 1], [1, 2]])
)
def test_dropping_coordinates_shrinks(points, problem, p, kept):
    at_most(solve(points[:, kept], problem, p), solve(points, problem, p))


@few
@given(small_sets(), random_norms)
def test_replacement_lies_between_the_papers_bounds(points, p):
    shifted, replaced = solve(points, "gamma", p), solve(points, "replace", p)
    r = np.linalg.matrix_rank(points - points[0])
    at_most(replaced, shifted, 2)
    assert 2 * shifted.gamma_lower <= math.sqrt(2 * r / (r + 1)) * replaced.gamma * (1 + ROUNDING)


@few
@given(small_sets(), random_problems, random_norms, random_norms)
def test_the_norms_order_the_answers(points, problem, p, q):
    p, q = min(p, q), max(p, q)
    small, large, d = solve(points, problem, p), solve(points, problem, q), points.shape[1]
    at_most(large, small)
    at_most(small, large, d ** (1 / p - 1 / q))


@problems
@pytest.mark.parametrize(("p", "limit"), [(2 + 1e-9, 2), (2 + 1e-15, 2), (1e9, math.inf)])
def test_continuous_at_both_ends(problem, p, limit):
    near, there = check(solve(GENERIC, problem, p)), check(solve(GENERIC, problem, limit))
    assert float(near) == pytest.approx(float(there), rel=1e-6)


# Degenerate and badly scaled sets

RNG = np.random.default_rng(6)
AWKWARD = {
    "duplicates": np.repeat(RNG.normal(size=(4, 3)), 5, axis=0),
    "flat": RNG.normal(size=(10, 2)) @ RNG.normal(size=(2, 5)),
    "one point": RNG.normal(size=(1, 4)),
    "segment": np.array([[0.1, 0.2], [0.3, 0.7]]),
    "one point far out": np.vstack([RNG.normal(size=(20, 4)), np.full(4, 1e8)]),
    "huge": RNG.normal(size=(10, 3)) * 1e150,
    "tiny": RNG.normal(size=(10, 3)) * 1e-150,
    "underflow": np.array([[1e-160, 1.0], [1.0, 0.0]]),
    "constant coordinates": np.column_stack(
        [RNG.normal(size=(6, 2)), np.full(6, 0.1), np.zeros(6)]
    ),
    "one coordinate a million times larger": RNG.normal(size=(20, 5)) * [1e6, 1, 1, 1, 1],
    "one coordinate a trillion times larger": RNG.normal(size=(20, 5)) * [1e12, 1, 1, 1, 1],
    "scales from nano to mega": RNG.normal(size=(20, 6)) * 10.0 ** np.arange(-9, 9, 3),
    "a thin direction off the axes": RNG.normal(size=(15, 3))
    * [1, 1, 1e-9]
    @ np.linalg.qr(RNG.normal(size=(3, 3)))[0],
    "Student, few points": RNG.standard_t(2, size=(30, 300)),
    "Student, many points": RNG.standard_t(2, size=(300, 30)),
    "Cauchy, few points": RNG.standard_cauchy(size=(10, 40)),
    "Cauchy, many points": RNG.standard_cauchy(size=(100, 8)),
    "log-normal": np.exp(5 * RNG.normal(size=(40, 8))),
    "polynomials": np.vander(np.linspace(0, 1, 12), 6),
    "high polynomials": np.vander(np.linspace(-1, 1, 40), 16),
    "many coordinates": RNG.normal(size=(5, 1000)),
    "many points": RNG.normal(size=(1500, 3)),
    "signs": RNG.choice([-1.0, 0.0, 1.0], size=(40, 6)),
    "sparse": RNG.normal(size=(40, 20)) * (RNG.random((40, 20)) < 0.1),
}


@pytest.mark.parametrize(
    ("name", "p", "problem"), pairwise(list(AWKWARD), [2, 2.5, 100, math.inf], PROBLEMS)
)
def test_awkward_sets_are_solved(name, p, problem):
    check(solve(AWKWARD[name], problem, p))


@pytest.mark.parametrize("problem", ["gamma", "add-remove"])
@pytest.mark.parametrize("shape", [(60, 500), (500, 60)])
def test_larger_heavy_tails_at_the_largest_error(problem, shape):
    check(solve(np.random.default_rng(7).standard_t(2, size=shape), problem, math.inf))


@pytest.mark.parametrize("scale", [1e6, 1e12])
def test_the_largest_error_of_a_dominating_coordinate_is_its_own(scale):
    points = np.random.default_rng(8).normal(size=(12, 4)) * [scale, 1, 1, 1]
    noise = check(solve(points, "add-remove", math.inf))
    assert float(noise) == pytest.approx(np.abs(points[:, 0]).max(), rel=1e-6)


@norms
def test_coordinates_that_agree_get_no_noise(p):
    points = np.column_stack([np.eye(3), np.full(3, 0.1)])
    for problem in ("gamma", "replace"):
        assert solve(points, problem, p).covariance.diagonal()[3] == 0


@pytest.mark.parametrize("p", [1e17, 1e300])
@problems
def test_enormous_norms_are_the_largest_error(p, problem):
    agree(check(solve(GENERIC, problem, p)), solve(GENERIC, problem, math.inf), 3 ** (1 / p))


@pytest.mark.parametrize("kind", [int, np.int64, np.float64])
def test_the_norm_may_be_an_integer(kind):
    agree(solve(GENERIC, "gamma", kind(3)), solve(GENERIC, "gamma", 3.0))


@one_test_of("seed", range(40))
def test_flat_sets_away_from_the_origin_survive_verification(seed):
    rng = np.random.default_rng(seed)
    spread = 10.0 ** -rng.integers(3, 8)
    check(
        gn.gamma(
            FiniteSet(1 + spread * rng.normal(size=(rng.integers(2, 4), 3))),
            [2, 3, math.inf][seed % 3],
        )
    )
