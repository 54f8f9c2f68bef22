"""optimal_noise() and gamma(): published numbers, closed forms, independent solvers, laws, and
exact feasibility.
"""

import dataclasses
import itertools
import math
import warnings
from fractions import Fraction

import cvxpy as cp
import networkx
import numpy as np
import pytest
from cases import one_test_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gaussnoise as gn
import gaussnoise.noise.points as points_module
import gaussnoise.numerics.pairs as pairs_module
from gaussnoise import FiniteSet, Marginals
from gaussnoise.errors import (
    CertificateError,
    ConvergenceWarning,
    CovarianceError,
    DomainTooLargeError,
    ParameterError,
)
from gaussnoise.noise.certificates.points import PointCertificate
from gaussnoise.noise.covariance import FactorCovariance
from gaussnoise.noise.marginal_covariance import MarginalCovariance
from gaussnoise.noise.sensitivity import covered

ROUNDING = 1e-11


def solve(domain, problem, **options):
    return (
        gn.gamma(domain, **options)
        if problem == "gamma"
        else gn.optimal_noise(domain, neighbors=problem, **options)
    )


PROBLEMS = ["gamma", "add-remove", "replace"]


def check(noise, expected=None):
    """Check that the bracket is tight, contains ``expected`` and passes verification."""
    assert 0 <= noise.gamma_lower <= noise.gamma
    assert 0 <= noise.gap <= 1e-6
    assert noise.status is gn.results.Status.SOLVED
    noise.verify()
    if expected is not None:
        assert noise.gamma_lower <= expected * (1 + ROUNDING)
        assert noise.gamma >= expected * (1 - ROUNDING)
    return noise


def exact_lengths(noise):
    """Return ``s' M⁺ s`` over the enclosed set in rational arithmetic, and how far points leave the
    range of M.
    """
    points = noise.domain.to_finite_set().points
    if noise.shifted:
        enclosed = [
            [Fraction(x) - Fraction(c) for x, c in zip(row, noise.center, strict=True)]
            for row in points
        ]
    elif noise.neighbors == "replace":
        pairs = itertools.combinations(points.tolist(), 2)
        enclosed = [
            [Fraction(x) - Fraction(y) for x, y in zip(*pair, strict=True)] for pair in pairs
        ]
    else:
        enclosed = [[Fraction(x) for x in row] for row in points.tolist()]
    L = [[Fraction(x) for x in row] for row in noise.covariance.factor().tolist()]
    r = len(L[0])
    gram = [[sum(row[i] * row[j] for row in L) for j in range(r)] for i in range(r)]
    right = [
        [sum(row[i] * x for row, x in zip(L, point, strict=True)) for point in enclosed]
        for i in range(r)
    ]
    solutions = _gauss(gram, right)
    lengths = [sum(row[k] ** 2 for row in solutions) for k in range(len(enclosed))]
    outside = max(
        (
            abs(x - sum(a * b[k] for a, b in zip(row, solutions, strict=True)))
            for k, point in enumerate(enclosed)
            for x, row in zip(point, L, strict=True)
        ),
        default=0,
    )
    return [max(lengths, default=0), outside]


def _gauss(A, B):
    """Return the exact solution of A X = B for nonsingular A."""
    rows = [[*a, *b] for a, b in zip(A, B, strict=True)]
    for i in range(len(rows)):
        pivot = next(k for k in range(i, len(rows)) if rows[k][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(len(rows)):
            if k != i and rows[k][i]:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[len(rows) :] for row in rows]


def check_exactly(noise):
    largest, outside = exact_lengths(noise)
    assert largest <= 1
    assert float(outside) <= 1e-11 * np.abs(noise.domain.to_finite_set().points).max()


def agree(a, b):
    """Check that two certified brackets may hold the same number."""
    assert a.gamma_lower <= b.gamma * (1 + ROUNDING)
    assert b.gamma_lower <= a.gamma * (1 + ROUNDING)


def thinner(covariance, share):
    if isinstance(covariance, MarginalCovariance):
        return MarginalCovariance(
            covariance.domain, {T: share * v for T, v in covariance.variances.items()}
        )
    return FactorCovariance(covariance.unit_factor, covariance.scale * math.sqrt(share))


# Published and closed forms


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (16, 2.854084800749),
        (32, 3.579990713283),
        (64, 4.409397203944),
        (128, 5.340726756042),
        (256, 6.372668142596),
    ],
)
def test_prefix_sums(n, expected):
    noise = gn.optimal_noise(
        FiniteSet.from_workload(np.tril(np.ones((n, n)))), neighbors="add-remove"
    )
    check(noise, math.sqrt(n * expected))


def test_all_ranges():
    W = [[a <= cell < b for cell in range(64)] for a, b in itertools.combinations(range(65), 2)]
    noise = gn.optimal_noise(FiniteSet.from_workload(W), neighbors="add-remove")
    check(noise, math.sqrt(len(W) * 5.3001834151175))


@one_test_of("m", [2, 3, 10, 40])
@one_test_of(
    ("problem", "value"),
    [
        ("gamma", lambda m: (m - 1) / math.sqrt(m)),
        ("replace", lambda m: math.sqrt(2 * (m - 1))),
        ("add-remove", math.sqrt),
    ],
)
def test_simplex(m, problem, value):
    check(solve(FiniteSet(np.eye(m)), problem), value(m))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_cross_polytope_and_cube(d):
    check(gn.gamma(FiniteSet(np.vstack([np.eye(d), -np.eye(d)]))), math.sqrt(d))
    check(gn.gamma(FiniteSet(list(itertools.product([-1, 1], repeat=d)))), d)


@pytest.mark.parametrize("m", [5, 12, 31])
def test_circulants_have_the_nuclear_norm_found_by_fft(m):
    first = np.random.default_rng(m).normal(size=m)
    C = np.array([np.roll(first, k) for k in range(m)]).T
    noise = gn.optimal_noise(FiniteSet.from_workload(C), neighbors="add-remove")
    check(noise, np.abs(np.fft.fft(first)).sum() / math.sqrt(m))


MARGINAL_VALUES = [
    ((3, 2, 4), 2, (6.5185756789, 7.1309481146, 9.8957340713)),
    ((2, 2, 2, 2), 2, (6.4641016151, 7.6888464865, 10.2426406772)),
    ((3, 2, 4), 3, (4.6948553403, 4.8989794856, 6.7823299831)),
]


@pytest.mark.parametrize(("sizes", "k", "values"), MARGINAL_VALUES)
@pytest.mark.parametrize("listed", [False, True])
def test_marginals(sizes, k, values, listed):
    domain = Marginals.all_kway(sizes, k)
    if listed:
        domain = domain.to_finite_set()
    for problem, value in zip(PROBLEMS, values, strict=True):
        noise = solve(domain, problem)
        check(noise)
        assert noise.gamma_lower <= value + 1e-10
        assert noise.gamma >= value - 1e-10


@pytest.mark.parametrize(("sizes", "k", "values"), MARGINAL_VALUES)
def test_closed_forms_of_marginals_are_sharp_and_take_no_steps(sizes, k, values):
    for problem, value in zip(PROBLEMS[:2], values[:2], strict=True):
        noise = solve(Marginals.all_kway(sizes, k), problem)
        assert float(noise) == pytest.approx(value, abs=1e-9)
        assert noise.gap < 1e-11
        assert noise.steps == 0


@pytest.mark.parametrize(("d", "k"), [(5, 1), (8, 2), (12, 3)])
def test_all_kway_marginals_of_bits(d, k):
    expected = sum(
        math.comb(d, t) * math.sqrt(2.0**-k * math.comb(d - t, k - t)) for t in range(1, k + 1)
    )
    check(gn.gamma(Marginals.all_kway((2,) * d, k)), expected)


def test_closed_form_reaches_tables_too_large_to_list():
    noise = check(gn.optimal_noise(Marginals.all_kway((7,) * 30, 2), neighbors="add-remove"))
    assert noise.gap < 1e-11


# Independent solver


def sdp(points, shifted):
    """Return ``γ² = min tr M  s.t. [[M, X], [X', Y]] ⪰ 0, diag Y ≤ 1``; the columns of X are the
    points less a free center.
    """
    N, d = points.shape
    joint = cp.Variable((d + N, d + N), PSD=True)
    center = cp.Variable((d, 1))
    columns = points.T - center @ np.ones((1, N)) if shifted else points.T
    constraints = [joint[:d, d:] == columns, cp.diag(joint[d:, d:]) <= 1]
    problem = cp.Problem(cp.Minimize(cp.trace(joint[:d, :d])), constraints)
    problem.solve(solver=cp.CLARABEL)
    return math.sqrt(problem.value)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(("N", "d"), [(3, 2), (6, 2), (5, 3), (4, 5)])
def test_against_an_independent_sdp(problem, N, d):
    points = np.random.default_rng(N + 10 * d).normal(size=(N, d))
    noise = check(solve(FiniteSet(points), problem))
    enclosed = points
    if problem != "gamma":
        enclosed = covered(FiniteSet(points), noise.problem, listed=True).points
    assert float(noise) == pytest.approx(sdp(enclosed, problem == "gamma"), rel=2e-6)


# Laws (Nikolov & Tang 2023, Theorem 20, Lemmas 60, 62, 63)

few = settings(max_examples=20, derandomize=True, deadline=None, database=None)


@st.composite
def small_sets(draw, dim=None, most=5):
    """Draw integer points: ties, duplicates and flat sets are common."""
    d = dim or draw(st.integers(1, 3))
    N = draw(st.integers(1, most))
    return draw(hnp.arrays(np.int64, (N, d), elements=st.integers(-3, 3))).astype(float)


problems = st.sampled_from(PROBLEMS)


@few
@given(small_sets(), problems)
def test_feasible_in_rational_arithmetic(points, problem):
    noise = check(solve(FiniteSet(points), problem))
    check_exactly(noise)


@few
@given(small_sets(), problems, st.data())
def test_points_of_the_hull_change_nothing(points, problem, data):
    mix = np.array(
        data.draw(st.lists(st.integers(0, 4), min_size=len(points), max_size=len(points)))
    )
    assume(mix.any())
    agree(
        solve(FiniteSet(points), problem),
        solve(FiniteSet(np.vstack([points, mix @ points / mix.sum()])), problem),
    )


@few
@given(small_sets(dim=2), small_sets(dim=2), problems)
def test_monotone_under_inclusion(points, more, problem):
    larger = solve(FiniteSet(np.vstack([points, more])), problem)
    assert solve(FiniteSet(points), problem).gamma_lower <= larger.gamma * (1 + ROUNDING)


@few
@given(small_sets(), problems, st.sampled_from([-2.0, 0.3, 1e-30, 1e30, -7.7]))
def test_scales_with_the_set(points, problem, c):
    a, b = solve(FiniteSet(points), problem), solve(FiniteSet(c * points), problem)
    assert a.gamma_lower * abs(c) <= b.gamma * (1 + ROUNDING)
    assert b.gamma_lower <= a.gamma * abs(c) * (1 + ROUNDING)


@few
@given(
    small_sets(dim=2),
    st.sampled_from(["gamma", "replace"]),
    hnp.arrays(float, 2, elements=st.integers(-9, 9)),
)
def test_translation_changes_nothing(points, problem, shift):
    agree(solve(FiniteSet(points), problem), solve(FiniteSet(points + shift), problem))


@few
@given(small_sets(dim=2, most=4), small_sets(dim=2, most=4))
def test_subadditive_under_minkowski_sums(K, L):
    sums = gn.gamma(FiniteSet([x + y for x in K for y in L]))
    assert sums.gamma_lower <= (gn.gamma(FiniteSet(K)).gamma + gn.gamma(FiniteSet(L)).gamma) * (
        1 + ROUNDING
    )


@few
@given(small_sets(most=4), small_sets(most=4))
def test_product_adds(K, L):
    product = gn.gamma(FiniteSet([np.concatenate([x, y]) for x in K for y in L]))
    a, b = gn.gamma(FiniteSet(K)), gn.gamma(FiniteSet(L))
    assert product.gamma_lower <= (a.gamma + b.gamma) * (1 + ROUNDING)
    assert product.gamma >= (a.gamma_lower + b.gamma_lower) * (1 - ROUNDING)


@few
@given(small_sets(dim=2, most=4), small_sets(dim=2, most=4))
def test_kronecker_products_of_symmetric_sets_multiply(K, L):
    product = gn.optimal_noise(
        FiniteSet([np.kron(x, y) for x in K for y in L]), neighbors="add-remove"
    )
    a, b = (gn.optimal_noise(FiniteSet(points), neighbors="add-remove") for points in (K, L))
    assert product.gamma_lower <= a.gamma * b.gamma * (1 + ROUNDING)
    assert product.gamma >= a.gamma_lower * b.gamma_lower * (1 - ROUNDING)


@few
@given(small_sets(dim=3), problems, st.sampled_from([[0], [2], [0, 1], [1, 2]]))
def test_dropping_coordinates_shrinks(points, problem, kept):
    smaller = solve(FiniteSet(points[:, kept]), problem)
    assert smaller.gamma_lower <= solve(FiniteSet(points), problem).gamma * (1 + ROUNDING)


def rotation(dim, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]


@pytest.mark.paper("Lemma 63", by="certified brackets of random sets and their projections")
@few
@given(small_sets(dim=3), problems)
def test_orthogonal_projections_shrink(points, problem):
    axes = rotation(3)[:, :2]
    smaller = solve(FiniteSet(points @ axes @ axes.T), problem)
    assert smaller.gamma_lower <= solve(FiniteSet(points), problem).gamma * (1 + 1e-9)


@few
@given(small_sets(dim=3), problems)
def test_rotations_change_nothing(points, problem):
    a, b = solve(FiniteSet(points), problem), solve(FiniteSet(points @ rotation(3).T), problem)
    assert a.gamma == pytest.approx(b.gamma, rel=2e-6)


@few
@given(small_sets())
def test_replacement_lies_between_the_papers_bounds(points):
    shifted, replaced = gn.gamma(FiniteSet(points)), gn.optimal_noise(FiniteSet(points))
    r = np.linalg.matrix_rank(points - points[0])
    assert replaced.gamma_lower <= 2 * shifted.gamma * (1 + ROUNDING)  # the paper's factor
    jung = math.sqrt(2 * r / (r + 1))
    assert 2 * shifted.gamma_lower <= jung * replaced.gamma * (1 + ROUNDING)


@st.composite
def small_marginals(draw):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    listed = [
        S for k in range(len(sizes) + 1) for S in itertools.combinations(range(len(sizes)), k)
    ]
    subsets = draw(st.lists(st.sampled_from(listed), min_size=1, max_size=4, unique=True))
    weights = draw(
        st.lists(
            st.sampled_from([0.1, 0.7, 1.0, 2.0, 30.0]),
            min_size=len(subsets),
            max_size=len(subsets),
        )
    )
    return Marginals(sizes, subsets, weights=weights)


@few
@given(small_marginals(), st.sampled_from(["gamma", "add-remove"]))
def test_marginals_agree_with_their_listed_points(domain, problem):
    closed, listed = solve(domain, problem), solve(domain.to_finite_set(), problem)
    check(closed)
    check(listed)
    agree(closed, listed)
    assert closed.gap < 1e-11


# What one record can change


def brute_force_sensitivity(noise):
    """Return ``sup s' M⁺ s`` over neighbours' differences, by a pseudo-inverse, pair by pair."""
    points = noise.domain.to_finite_set().points
    inverse = np.linalg.pinv(noise.covariance.toarray(), hermitian=True, rcond=1e-10)
    return max((x - y) @ inverse @ (x - y) for x in points for y in points)


@pytest.mark.parametrize(
    "domain",
    [
        FiniteSet(np.eye(5)),
        FiniteSet(np.random.default_rng(0).normal(size=(12, 3))),
        FiniteSet(np.random.default_rng(1).integers(0, 2, size=(6, 8))),
        FiniteSet([[-1.0], [1.0]]),
        FiniteSet([[1.0, 2.0], [1.0, 2.0]]),
        Marginals.all_kway((3, 2, 4), 2),
        Marginals((2, 3, 1, 2), [(0, 1), (1, 3), (0,), ()], weights=[1.0, 0.7, 2.0, 5.0]),
        Marginals((2, 2), [()]),
    ],
)
def test_sensitivity_of_gamma_noise(domain):
    noise = gn.gamma(domain)
    expected = brute_force_sensitivity(noise)
    assert noise.sensitivity_squared <= 4 * (1 + ROUNDING)
    assert noise.sensitivity_squared == pytest.approx(expected, rel=1e-9)
    assert noise.sensitivity_squared >= expected * (1 - 1e-12)


def test_optimal_noise_has_unit_sensitivity():
    noise = gn.optimal_noise(FiniteSet(np.random.default_rng(2).normal(size=(9, 3))))
    assert noise.sensitivity_squared == 1
    assert brute_force_sensitivity(noise) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(
    "domain",
    [Marginals((2, 3), [(0, 1), (0,)], weights=[1.0, 0.5]), FiniteSet([[1.0, 2.0, 3.0]] * 2)],
)
def test_feasible_in_rational_arithmetic_on_chosen_domains(domain, problem):
    check_exactly(solve(domain, problem))


def test_exact_check_has_power():
    noise = gn.optimal_noise(FiniteSet([[1.0, 0.0], [0.5, 2.0], [-1.0, 1.0]]))
    thin = dataclasses.replace(
        noise,
        covariance=FactorCovariance(
            noise.covariance.unit_factor * (1 - 1e-9), noise.covariance.scale
        ),
    )
    with pytest.raises(AssertionError):
        check_exactly(thin)


# Verification refuses claims that are too strong

RNG = np.random.default_rng(6)
SOLVED = {
    "points, add-remove": gn.optimal_noise(
        FiniteSet(np.random.default_rng(3).normal(size=(8, 3))), neighbors="add-remove"
    ),
    "points, replace": gn.optimal_noise(FiniteSet(RNG.normal(size=(5, 3)))),
    "points, gamma": gn.gamma(FiniteSet(RNG.normal(size=(8, 3)))),
    "marginals, add-remove": gn.optimal_noise(
        Marginals.all_kway((3, 2, 4), 2), neighbors="add-remove"
    ),
    "marginals, gamma": gn.gamma(Marginals.all_kway((3, 2, 4), 2)),
    "many cells, add-remove": gn.optimal_noise(
        Marginals.all_kway((4,) * 6, 2), neighbors="add-remove"
    ),
    "many cells, gamma": gn.gamma(Marginals.all_kway((4,) * 6, 2)),
}
solved = pytest.mark.parametrize("noise", SOLVED.values(), ids=SOLVED.keys())


@solved
def test_a_covariance_a_thousandth_too_small_is_caught(noise):
    with pytest.raises(CertificateError, match="too little noise"):
        dataclasses.replace(noise, covariance=thinner(noise.covariance, 0.999)).verify()


@solved
def test_an_ellipsoid_a_millionth_too_small_is_caught_for_all_claimed_sensitivities(noise):
    thin = dataclasses.replace(noise, covariance=thinner(noise.covariance, 1 - 1e-6))
    with pytest.raises(CertificateError, match="on the set"):
        dataclasses.replace(thin, sensitivity_squared=10.0).verify()


@solved
@pytest.mark.parametrize(
    ("field", "factor"),
    [
        ("gamma_lower", 1 + 1e-9),
        ("gamma", 1 - 1e-9),
        ("sensitivity_squared", 1 - 1e-9),
        ("sensitivity_squared", 0.5),
    ],
)
def test_a_claim_that_is_too_strong_is_caught(noise, field, factor):
    with pytest.raises(CertificateError):
        dataclasses.replace(noise, **{field: getattr(noise, field) * factor}).verify()


@solved
@pytest.mark.parametrize("field", ["gamma_lower", "gamma", "sensitivity_squared"])
def test_a_claim_that_is_not_a_number_is_caught(noise, field):
    with pytest.raises(CertificateError):
        dataclasses.replace(noise, **{field: math.nan}).verify()


@pytest.mark.parametrize("name", ["points, add-remove", "points, replace", "points, gamma"])
def test_a_larger_domain_is_caught(name):
    noise = SOLVED[name]
    larger = FiniteSet(np.vstack([noise.domain.points, 1.01 * noise.domain.points]))
    with pytest.raises(CertificateError, match="too little noise"):
        dataclasses.replace(noise, domain=larger).verify()


@pytest.mark.parametrize(
    "name", ["marginals, add-remove", "many cells, add-remove", "many cells, gamma"]
)
def test_another_marginal_domain_is_caught(name):
    noise = SOLVED[name]
    heavier = Marginals(
        noise.domain.sizes, noise.domain.subsets, weights=[2.0] * len(noise.domain.subsets)
    )
    with pytest.raises(CertificateError):
        dataclasses.replace(noise, domain=heavier).verify()


@pytest.mark.parametrize("name", ["points, add-remove", "points, replace", "points, gamma"])
def test_a_covariance_of_lower_rank_is_caught(name):
    noise = SOLVED[name]
    flat = FactorCovariance(2 * noise.covariance.unit_factor[:, :2], noise.covariance.scale)
    with pytest.raises(CovarianceError, match="without noise"):
        dataclasses.replace(noise, covariance=flat).verify()


@one_test_of("name", ["marginals, add-remove", "many cells, add-remove", "many cells, gamma"])
@one_test_of("variance", [None, 0.0, -1e-3, math.nan])
def test_a_bare_residual_is_caught(name, variance):
    noise = SOLVED[name]
    variances = {T: 1e3 * v for T, v in noise.covariance.variances.items()}
    bare = next(iter(variances))
    if variance is None:
        del variances[bare]
    else:
        variances[bare] = variance
    with pytest.raises((CertificateError, CovarianceError)):
        dataclasses.replace(
            noise, covariance=MarginalCovariance(noise.domain, variances), gamma=1e9
        ).verify()


def test_noise_for_replacement_does_not_pass_for_sums():
    noise = dataclasses.replace(SOLVED["many cells, gamma"], shifted=False, neighbors="add-remove")
    with pytest.raises((CertificateError, CovarianceError)):
        noise.verify()


def boast(noise, witness):
    """Return twice the noise needed, with a witness that claims half the gain is impossible."""
    claimed = min(2 * noise.gamma, witness.lower_bound())
    assert claimed > 1.1 * noise.gamma
    return dataclasses.replace(
        noise,
        covariance=thinner(noise.covariance, 4),
        gamma=2 * noise.gamma,
        gamma_lower=claimed,
        certificate=witness,
    )


@pytest.mark.parametrize("name", ["points, add-remove", "points, replace", "points, gamma"])
@pytest.mark.parametrize("field", ["points", "coordinate_weights"])
def test_a_witness_outside_the_set_is_caught(name, field):
    noise = SOLVED[name]
    witness = dataclasses.replace(
        noise.certificate, **{field: 2 * getattr(noise.certificate, field)}
    )
    with pytest.raises(CertificateError):
        boast(noise, witness).verify()


def test_a_witness_without_its_center_is_caught():
    noise = gn.gamma(FiniteSet(np.random.default_rng(5).normal(size=(8, 3)) + 10))
    with pytest.raises(CertificateError):
        boast(noise, dataclasses.replace(noise.certificate, centered=False)).verify()


@pytest.mark.parametrize("name", ["points, add-remove", "points, replace", "points, gamma"])
@pytest.mark.parametrize("weight", [-0.1, math.nan])
def test_a_witness_that_is_no_measure_is_caught(name, weight):
    noise = SOLVED[name]
    weights = np.concatenate([[weight], noise.certificate.weights[1:]])
    with pytest.raises(CertificateError):
        dataclasses.replace(
            noise, certificate=dataclasses.replace(noise.certificate, weights=weights)
        ).verify()


@pytest.mark.parametrize("name", ["marginals, gamma", "many cells, gamma"])
def test_a_witness_of_another_domain_is_caught(name):
    noise = SOLVED[name]
    other = Marginals(
        noise.domain.sizes, noise.domain.subsets, weights=[2.0] * len(noise.domain.subsets)
    )
    with pytest.raises(CertificateError):
        boast(noise, dataclasses.replace(noise.certificate, domain=other)).verify()


@pytest.mark.parametrize("name", ["marginals, gamma", "many cells, gamma"])
def test_a_witness_for_sums_proves_nothing_about_means(name):
    noise = SOLVED[name]
    witness = dataclasses.replace(noise.certificate, protected="add-remove")
    wide = dataclasses.replace(
        noise, covariance=thinner(noise.covariance, 4), gamma=2 * noise.gamma
    )
    with pytest.raises(CertificateError):
        dataclasses.replace(wide, certificate=witness, gamma_lower=witness.lower_bound()).verify()


def test_verification_reports_what_it_recomputed():
    noise = SOLVED["points, gamma"]
    found = noise.verify()
    assert noise.gamma_lower * (1 - 1e-11) <= found.gamma_lower <= found.gamma <= noise.gamma
    assert 1 - 1e-9 <= found.enclosure <= 1
    assert 0 < found.sensitivity_squared <= noise.sensitivity_squared * (1 + 1e-11)


def test_the_witness_lies_in_the_set():
    noise = SOLVED["points, gamma"]
    assert isinstance(noise.certificate, PointCertificate)
    assert all(noise.domain.contains(x) for x in noise.certificate.points)
    assert math.fsum(noise.certificate.weights) == pytest.approx(1)


# Degenerate and badly scaled sets

BADLY_SCALED = RNG.normal(size=(20, 6)) * 10.0 ** np.arange(-9, 9, 3)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(
    "points",
    [
        np.repeat(RNG.normal(size=(4, 3)), 5, axis=0),
        RNG.normal(size=(10, 2)) @ RNG.normal(size=(2, 5)),
        RNG.normal(size=(10, 3)) * 1e150,
        RNG.normal(size=(10, 3)) * 1e-150,
        RNG.normal(size=(4, 300)),
        np.column_stack([RNG.normal(size=(6, 2)), np.full(6, 0.1), np.zeros(6)]),
        np.array([[0.1, 0.2], [0.3, 0.7]]),
        np.array([[1e-160, 1.0], [1.0, 0.0]]),
        BADLY_SCALED,
        np.vander(np.linspace(0, 1, 12), 6),
        RNG.standard_t(2, size=(30, 5)),
    ],
    ids=[
        "duplicates", "flat", "huge", "tiny", "more dimensions than points",
        "constant coordinates", "segment",
        "underflow", "badly scaled", "polynomials", "heavy tails",
    ],
)  # fmt: skip
def test_awkward_sets_are_solved(points, problem):
    check(solve(FiniteSet(points), problem))


@pytest.mark.parametrize("problem", ["gamma", "add-remove"])
@pytest.mark.parametrize("shape", [(300, 30), (30, 300)])
def test_heavy_tails(problem, shape):
    check(solve(FiniteSet(np.random.default_rng(7).standard_t(2, size=shape)), problem))


def test_a_far_away_set_is_as_good_as_a_near_one():
    points = np.random.default_rng(8).integers(-4, 5, size=(8, 3)).astype(float)
    agree(check(gn.gamma(FiniteSet(points))), check(gn.gamma(FiniteSet(points + 2.0**30))))


@pytest.mark.parametrize("problem", ["gamma", "replace"])
@pytest.mark.parametrize("points", [[[3.0, 4.0]], [[3.0, 4.0]] * 3])
def test_one_point_needs_no_noise(problem, points):
    noise = check(solve(FiniteSet(points), problem), 0)
    assert noise.gamma == noise.gamma_lower == noise.gap == 0
    assert not noise.covariance.toarray().any()


def test_one_point_counted_privately():
    check(gn.optimal_noise(FiniteSet([[3.0, 4.0]]), neighbors="add-remove"), 5)
    assert float(check(gn.optimal_noise(FiniteSet([[0.0, 0.0]]), neighbors="add-remove"))) == 0


def test_constant_coordinates_get_no_noise():
    points = np.column_stack([np.eye(3), np.full(3, 0.1)])
    for problem in ("gamma", "replace"):
        assert solve(FiniteSet(points), problem).covariance.diagonal()[3] == 0


@pytest.mark.parametrize("weight", [1e-150, 1e150])
def test_marginals_of_extreme_weight(weight):
    sizes, subsets = (3, 2, 4), [(0, 1), (0, 2), (1, 2)]
    noise = check(gn.gamma(Marginals(sizes, subsets, weights=[weight] * 3)))
    assert float(noise) == pytest.approx(6.5185756789 * weight, rel=1e-9)


# Refusals

POINTS = FiniteSet(np.eye(3))


@one_test_of("function", [gn.gamma, gn.optimal_noise])
@one_test_of(
    ("options", "error", "message"),
    [
        ({"p": 1.99}, ParameterError, "p >= 2"),
        ({"p": math.nan}, ParameterError, "p >= 2"),
        ({"p": "max"}, ParameterError, "p >= 2"),
        ({"method": "newton"}, ParameterError, "sdp, sdp-clarabel, sdp-scs, ellipsoid"),
        ({"tol": 0}, ParameterError, "0 < tol < 1"),
        ({"tol": 1}, ParameterError, "0 < tol < 1"),
        ({"tol": math.nan}, ParameterError, "0 < tol < 1"),
        ({"tol": -1e-6}, ParameterError, "0 < tol < 1"),
    ],
)
def test_options_are_validated(function, options, error, message):
    with pytest.raises(error, match=message):
        function(POINTS, **options)


@pytest.mark.parametrize("neighbors", ["Replace", "", None, 2])
def test_unknown_relations_are_refused(neighbors):
    with pytest.raises(ParameterError, match="add-remove"):
        gn.optimal_noise(POINTS, neighbors=neighbors)


@pytest.mark.parametrize("function", [gn.gamma, gn.optimal_noise])
def test_arrays_are_not_domains(function):
    with pytest.raises(ParameterError, match="FiniteSet"):
        function(np.eye(3))


class Oracle(gn.domains.AbstractDomain):
    dim = 1
    is_symmetric = True
    _support_point = _max_quadratic = _contains = None


def test_differences_of_too_many_points_are_refused(monkeypatch):
    monkeypatch.setattr(pairs_module, "_MOST_OPERATIONS", 2**20)
    with pytest.raises(DomainTooLargeError, match="hint: keep only the extreme points"):
        gn.optimal_noise(FiniteSet(np.random.default_rng(0).normal(size=(2000, 20))))
    with pytest.raises(DomainTooLargeError, match='method="auto" does not list them'):
        gn.optimal_noise(FiniteSet(np.zeros((20_000, 2))), method="sdp")


def test_policies_on_huge_marginals_are_refused():
    with pytest.raises(DomainTooLargeError, match="hint"):
        gn.optimal_noise(Marginals((10,) * 40, [(0, 1)]), neighbors=networkx.path_graph(3))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_an_unfinished_solve_warns_and_stays_private(monkeypatch, problem):
    monkeypatch.setattr(points_module, "MAX_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="after 2 steps"):
        noise = solve(FiniteSet(np.random.default_rng(9).normal(size=(6, 3))), problem)
    assert noise.status is gn.results.Status.MAX_STEPS
    assert noise.gap > 1e-6
    noise.verify()
    check_exactly(noise)


def test_a_warning_points_at_the_caller(monkeypatch):
    monkeypatch.setattr(points_module, "MAX_STEPS", 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gn.gamma(FiniteSet(np.random.default_rng(9).normal(size=(6, 3))))
    assert caught[0].filename == __file__


def test_a_loose_tolerance_saves_steps():
    domain = FiniteSet(np.random.default_rng(10).normal(size=(60, 4)))
    loose, tight = gn.gamma(domain, tol=1e-2), gn.gamma(domain, tol=1e-9)
    assert loose.gap <= 1e-2
    assert tight.gap <= 1e-9
    assert loose.steps < tight.steps


# Sets whose symmetry makes the uniform measure optimal: no iterations, at all sizes.

ROTATED = np.linalg.qr(np.random.default_rng(4).normal(size=(6, 6)))[0]
SYMMETRIC = {
    "one-hot": (np.eye(6), True),
    "turned simplex": (np.eye(6) @ ROTATED, True),
    "far simplex": (np.eye(6) + 1000.0, True),
    "scaled simplex": (1e-9 * np.eye(6), True),
    "circulant": (np.array([np.roll([5.0, 1, 2, 0, 7, 1], k) for k in range(6)]), False),
    "cross": (np.vstack([np.eye(3), -np.eye(3)]), False),
}


@pytest.mark.parametrize("name", SYMMETRIC)
@pytest.mark.parametrize("neighbors", ["gamma", "add-remove", "replace"])
def test_symmetric_sets_need_no_iterations(name, neighbors):
    """The semidefinite programme, which does not use symmetry, agrees."""
    points, simplex = SYMMETRIC[name]
    domain = gn.FiniteSet(points)
    for p in (2, 4) if neighbors == "replace" else (2, math.inf):
        if neighbors == "gamma":
            ours, other = gn.gamma(domain, p), gn.gamma(domain, p, tol=1e-5, method="sdp")
        else:
            ours = gn.optimal_noise(domain, p, neighbors=neighbors)
            other = gn.optimal_noise(domain, p, neighbors=neighbors, tol=1e-5, method="sdp")
        assert ours.gamma == pytest.approx(other.gamma, rel=2e-5)
        assert ours.gap < 1e-6
        ours.verify()
        transitive = p == 2 or name != "turned simplex"
        if transitive and (simplex and name != "far simplex" if neighbors != "gamma" else True):
            assert ours.steps == 0
            assert ours.method.startswith("closed form: the uniform measure")


def test_a_histogram_under_replacement_is_known_at_once():
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(120)))
    assert noise.steps == 0
    assert noise.gamma == pytest.approx(math.sqrt(2 * 119), rel=1e-9)


def test_nearly_symmetric_sets_are_solved():
    """With one longer point the uniform measure would claim too high a lower end, or not cover that
    point.
    """
    points = np.eye(5)
    points[0] *= 1 + 1e-6
    for neighbors in ("add-remove", "replace"):
        noise = gn.optimal_noise(gn.FiniteSet(points), neighbors=neighbors)
        assert not noise.method.startswith("closed form")
        noise.verify()


@pytest.mark.parametrize("p", [2, 3, math.inf])
@pytest.mark.parametrize("shape", [(4, 3), (5, 7)], ids=str)
def test_points_that_are_a_kronecker_product_are_solved_by_its_parts(p, shape):
    signs = np.random.default_rng(5).choice([-2.0, 0.0, 2.0], shape)
    signs[0, :] = 2
    A = np.kron(np.tril(np.ones((4, 4))), signs)
    noise = gn.optimal_noise(gn.FiniteSet.from_workload(A), p, neighbors="add-remove")
    noise.verify()
    assert noise.method.startswith("Kronecker product")
    assert noise.gap <= 1e-6
    # nearly the same points are no product, and are solved as they are
    bent = A.copy()
    bent[0, 0] *= 1 + 1e-12
    listed = gn.optimal_noise(gn.FiniteSet.from_workload(bent), p, neighbors="add-remove")
    assert not listed.method.startswith("Kronecker product")
    assert noise.gamma_lower <= listed.gamma * (1 + 1e-10)
    assert listed.gamma_lower <= noise.gamma * (1 + 1e-10)


@pytest.mark.parametrize("neighbors", ["replace", "gamma"])
def test_differences_of_kronecker_products_are_no_products(neighbors):
    points = gn.FiniteSet.from_workload(np.kron(np.tril(np.ones((3, 3))), np.tril(np.ones((2, 2)))))
    noise = gn.gamma(points) if neighbors == "gamma" else gn.optimal_noise(points)
    assert not noise.method.startswith("Kronecker product")
    noise.verify()
