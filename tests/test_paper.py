"""The checklist of Nikolov & Tang (2023), and statements that no other test checks.

References: brute force over factors, dual and local-privacy convex programs by cvxpy, exact
rationals, enumeration.
"""

import importlib.util
import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.optimize import minimize

import domains
import gaussnoise as gn
from gaussnoise import FiniteSet
from gaussnoise.bounds import HardCodedMechanism
from gaussnoise.bounds import bound as _bound
from gaussnoise.noise.certificates.points import PointCertificate

_spec = importlib.util.spec_from_file_location("paper", Path(__file__).with_name("paper.py"))
paper = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(paper)

norms = pytest.mark.parametrize("p", [2, 3, math.inf])
CLOUD = np.random.default_rng(7).normal(size=(6, 3))
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.3, 0.8]])


def conjugate(p):
    """The norm that weights of coordinates are bounded in."""
    return math.inf if p == 2 else 1 if p == math.inf else p / (p - 2)


# The checklist


def test_the_stored_table_is_that_of_the_sources():
    stored = Path(__file__).with_name("PAPER.md").read_text(encoding="utf-8")
    assert stored == paper.table(), "run python tests/paper.py > tests/PAPER.md"


def test_every_statement_has_a_test_or_a_reason_and_every_mark_a_statement():
    tests = paper.marks()
    numbers = [statement.number for statement in paper.STATEMENTS]
    assert len(set(numbers)) == len(numbers)
    assert {number for number, _, _ in tests} <= set(numbers)
    # the paper numbers all its statements in one row
    assert [int(number.split()[1]) for number in numbers if number != "Appendix B"] == list(
        range(1, 69)
    )
    # definitions need no test, nor does a theorem of analysis; all others are checked, if not
    # wholly
    left = {statement.number: statement.unchecked for statement in paper.unchecked(tests)}
    assert all(left.values())
    assert [number for number in left if not number.startswith("Definition")] == ["Theorem 66"]
    assert all(by and isinstance(by, str) for _, by, _ in tests)


def test_statements_that_the_packages_cite_are_listed():
    listed, cited = {statement.number for statement in paper.STATEMENTS}, set()
    for package in (domains, gn):
        for path in Path(package.__file__).parent.rglob("*.py"):
            text = " ".join(path.read_text(encoding="utf-8").split())
            for found in re.finditer(r"(?:Nikolov & Tang \(?2023\)?,|\(NT|of NT) ([^.;:(]*)", text):
                for kind, tail in re.findall(
                    r"(Definition|Theorem|Lemma|Corollary|Claim|Appendix)s?"
                    r"((?:(?:, and|,| and)? [\dB]+)+)",
                    found[1],
                ):
                    cited |= {f"{kind} {number}" for number in re.findall(r"[\dB]+", tail)}
    assert {
        "Definition 29",
        "Theorem 4",
        "Lemma 39",
        "Theorem 53",
        "Theorem 59",
        "Appendix B",
    } <= cited
    assert cited <= listed


# Geometry


@pytest.mark.paper("Definition 2", by="brute force over factors and centers")
@norms
def test_no_ellipsoid_found_by_brute_force_is_smaller(p):
    def size(x):
        A = np.array([[math.exp(x[0]), 0.0], [x[1], math.exp(x[2])]])
        longest = np.linalg.norm(np.linalg.solve(A, (TRIANGLE - x[3:]).T), axis=0).max()
        return longest * np.linalg.norm(np.linalg.norm(A, axis=1), p)

    found, rng = gn.gamma(FiniteSet(TRIANGLE), p), np.random.default_rng(0)
    sizes = []
    for _ in range(3):
        x = rng.normal(size=5)
        for _ in range(3):  # corners of the objective stop a single run
            x = minimize(
                size,
                x,
                method="Nelder-Mead",
                options={"maxiter": 2000, "xatol": 1e-9, "fatol": 1e-11},
            ).x
        sizes.append(size(x))
    assert found.gamma_lower <= min(sizes)
    assert min(sizes) == pytest.approx(found.gamma, rel=2e-4)


def dual(points, p, centered):
    """The largest fidelity of W and a covariance of the points: ``tr Z`` over [[W, Z], [Z', C]] ⪰
    0, by cvxpy.
    """
    N, d = points.shape
    mass, w, block = (
        cp.Variable(N, nonneg=True),
        cp.Variable(d),
        cp.Variable((2 * d, 2 * d), PSD=True),
    )
    second = points.T @ cp.diag(mass) @ points
    rules = [cp.sum(mass) == 1, cp.norm(w, conjugate(p)) <= 1, block[:d, :d] == cp.diag(w)]
    if centered:  # C ⪯ E xx' − m m', by a Schur complement
        mean = cp.reshape(mass @ points, (d, 1), order="C")
        rules.append(cp.bmat([[second - block[d:, d:], mean], [mean.T, np.ones((1, 1))]]) >> 0)
    else:
        rules.append(second == block[d:, d:])
    return cp.Problem(cp.Maximize(cp.trace(block[:d, d:])), rules).solve(solver="CLARABEL")


@pytest.mark.paper("Theorem 26", "Lemma 67", by="the dual as a semidefinite program, by cvxpy")
@norms
def test_the_largest_fidelity_is_the_smallest_ellipsoid(p):
    off_center = CLOUD + 0.5
    around, signed = (
        gn.gamma(FiniteSet(off_center), p),
        gn.optimal_noise(FiniteSet(off_center), p, neighbors="add-remove"),
    )
    assert dual(off_center, p, True) == pytest.approx(around.gamma, rel=1e-5)
    assert dual(off_center, p, False) == pytest.approx(signed.gamma, rel=1e-5)
    assert around.gamma < 0.95 * signed.gamma  # so that neither passes for the other


@pytest.mark.paper("Theorem 26", by="closed form of γ_p, at random measures and weights")
@norms
def test_every_measure_and_all_weights_bound_from_below(p):
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))  # γ_p = 3^{1/p + 1/2}
    rng, best = np.random.default_rng(1), 0.0
    for concentration in np.geomspace(0.1, 1000, 40):
        mass, w = rng.dirichlet(np.full(8, concentration)), rng.dirichlet(np.full(3, concentration))
        w = w / np.linalg.norm(w, conjugate(p)) if p > 2 else np.ones(3)
        value = PointCertificate(corners, mass, w, None, centered=True).lower_bound()
        root = np.diag(np.sqrt(w))
        assert value == pytest.approx(
            np.trace(sqrtm(root @ np.cov(corners.T, aweights=mass, ddof=0) @ root)), rel=1e-6
        )
        best = max(best, value)
        assert value <= 3 ** (1 / p + 1 / 2)
    assert best >= 0.98 * 3 ** (1 / p + 1 / 2)


def primal(points, p, centered):
    """``min ‖diag M‖_{p/2}^{1/2}`` over [[M, X], [X', Y]] ⪰ 0, diag Y ≤ 1, by cvxpy."""
    N, d = points.shape
    joint, center = cp.Variable((d + N, d + N), PSD=True), cp.Variable((d, 1))
    columns = points.T - center @ np.ones((1, N)) if centered else points.T
    cost = cp.norm(cp.diag(joint[:d, :d]), p / 2)
    rules = [joint[:d, d:] == columns, cp.diag(joint[d:, d:]) <= 1]
    return math.sqrt(cp.Problem(cp.Minimize(cost), rules).solve(solver="CLARABEL"))


@pytest.mark.paper("Lemma 21", by="semidefinite programs with and without a center, by cvxpy")
@norms
def test_symmetric_sets_are_centered_at_the_origin(p):
    symmetric = np.vstack([CLOUD, -CLOUD])
    found = gn.gamma(FiniteSet(symmetric), p)
    assert primal(symmetric, p, centered=True) == pytest.approx(found.gamma, rel=1e-5)
    assert primal(symmetric, p, centered=False) == pytest.approx(found.gamma, rel=1e-5)
    # the reference does move a center where that helps
    assert primal(CLOUD + 1, p, centered=True) < 0.9 * primal(CLOUD + 1, p, centered=False)


@pytest.mark.paper("Theorem 15", by="enumeration of data sets and their neighbours")
@pytest.mark.parametrize("rho", [0.01, 2.0])
@norms
def test_noise_of_gamma_keeps_its_budget_at_the_papers_error(p, rho):
    n, symmetric = 3, np.vstack([TRIANGLE - 0.2, 0.2 - TRIANGLE])
    for points in (TRIANGLE, symmetric):
        noise = gn.gamma(FiniteSet(points), p)
        mechanism = gn.GaussianMechanism(noise, gn.zCDP(rho), n=n)
        precision = np.linalg.inv(mechanism.covariance.toarray())
        spent = 0.0  # order α of the Rényi divergence of neighbours is α Δ'Σ⁻¹Δ/2
        for data in itertools.combinations_with_replacement(range(len(points)), n):
            for i, y in itertools.product(range(n), range(len(points))):
                moved = (points[[*data[:i], y, *data[i + 1 :]]] - points[list(data)]).mean(axis=0)
                spent = max(spent, float(moved @ precision @ moved) / 2)
        paid = 2 * primal(points, p, centered=True) / (n * math.sqrt(2 * rho))
        assert spent <= rho * (1 + 1e-9)
        assert mechanism.error <= paid * (1 + 1e-5)
        if (
            points is symmetric
        ):  # otherwise less noise does: differences are shorter than diameters of the ellipsoid
            assert spent >= rho * (1 - 1e-5)
            assert mechanism.error == pytest.approx(paid, rel=1e-5)


@pytest.mark.paper("Theorem 17", by="growth with r, ε and n against the closed form √r of γ_2")
@pytest.mark.parametrize("randomizer", ["privunit", "privunitg", "point-release"])
def test_local_error_is_of_the_order_of_gamma(randomizer):
    for r, epsilon in itertools.product([1, 3, 30], [1.0, 0.3, 0.01]):
        mechanism = gn.LocalMechanism(gn.LpBall(r, 2), gn.LocalDP(epsilon), randomizer=randomizer)
        for n in (1, 400):
            assert 2 <= mechanism.error(n) * epsilon * math.sqrt(n / r) <= 3.1


@pytest.mark.parametrize(("k", "dims"), [(1, (2, 6)), (2, (2, 6)), (3, (2, 5)), (4, (2, 4))])
def test_tensor_powers_grow_like_symmetric_tensors(k, dims):
    def share(d):
        found = gn.gamma(gn.TensorPower(d, k))
        whole = math.sqrt(
            math.comb(d + k - 1, k)
        )  # γ_2 of the unit ball of symmetric tensors ~ √(d^k/k!)
        signs = np.array(list(itertools.product([-1.0, 1.0], repeat=d))) / math.sqrt(d)
        powers = np.ones((len(signs), 1))
        for _ in range(k):
            powers = (powers[:, :, None] * signs[:, None, :]).reshape(len(signs), -1)
        least = np.linalg.norm((powers - powers.mean(axis=0)) / math.sqrt(len(powers)), "nuc")
        assert least <= found.gamma * (1 + 1e-9)
        assert found.gamma_lower <= whole * (1 + 1e-9)
        return found.gamma / whole

    shares = [share(d) for d in range(dims[0], dims[1] + 1)]
    assert min(shares) > 0.5


@pytest.mark.parametrize("k", [1, 2, 3])
def test_marginals_grow_like_their_largest_terms(k):
    d, p = 3, [2, 3, math.inf][k - 1]
    listed = np.array(
        [
            [
                float(tuple(x[i] for i in subset) == cell)
                for subset in itertools.combinations(range(d), k)
                for cell in itertools.product([0, 1], repeat=k)
            ]
            for x in itertools.product([0, 1], repeat=d)
        ]
    )
    for exponent in (2, p):
        found = gn.gamma(gn.Marginals.all_kway((2,) * d, k), exponent)
        assert primal(listed, exponent, centered=True) == pytest.approx(found.gamma, rel=1e-5)
    ratios = [  # γ_2 ~ C(d, k) 2^{−k/2}
        gn.gamma(gn.Marginals.all_kway((2,) * d, k)).gamma / (math.comb(d, k) * 2 ** (-k / 2))
        for d in (k + 1, 8, 12)
    ]
    assert all(
        1 - 1e-9 <= later <= earlier * (1 + 1e-9) for earlier, later in itertools.pairwise(ratios)
    )
    assert ratios[-1] <= 2**k


# Lower bounds


@pytest.mark.paper("Lemma 33", by="simulated errors of a correlated Gaussian; two exact outcomes")
def test_errors_have_at_least_the_norm_of_their_deviations():
    points = np.random.default_rng(2).normal(size=(9, 8))
    mechanism = gn.GaussianMechanism(gn.optimal_noise(FiniteSet(points)), gn.zCDP(0.5), n=9)
    rng = np.random.default_rng(3)
    errors = [mechanism.simulate(points, rng).estimate - points.mean(axis=0) for _ in range(500)]
    for p, equal in ((2, True), (4, False), (math.inf, False)):
        squares = np.linalg.norm(errors, p, axis=1) ** 2
        square = np.linalg.norm(mechanism.standard_deviation, p) ** 2
        noise = 5 * squares.std() / math.sqrt(len(squares))
        assert squares.mean() >= square - noise
        assert (squares.mean() <= square + noise) == equal
    told = HardCodedMechanism(
        [[0.0, 0.0]], delta=0.25
    )  # the error has one direction: an equality for every p
    for p in (2, 4, math.inf):
        answers = 0.75 * np.linalg.norm([-1, -2], p) ** 2 + 0.25 * np.linalg.norm([3, 6], p) ** 2
        assert told.error([[1.0, 2.0]], p) ** 2 == pytest.approx(answers)


@pytest.mark.paper("Lemma 39", by="random pairs of rationals with ratios between ½ and 2")
def test_private_pairs_have_no_greater_chi_squared():
    rng, largest = np.random.default_rng(3), Fraction(0)
    for _ in range(2000):
        many = int(rng.integers(1, 9))
        p = [Fraction(int(x)) for x in rng.integers(1, 60, size=many)]
        ratios = [
            Fraction(int(x), 64)
            for x in rng.choice([32, 128, *rng.integers(32, 129, size=3)], size=many)
        ]
        q = [a * b for a, b in zip(p, ratios, strict=True)]
        p, q = ([x / sum(side) for x in side] for side in (p, q))
        if all(Fraction(1, 2) <= b / a <= 2 for a, b in zip(p, q, strict=True)):
            largest = max(largest, sum((a - b) ** 2 / a for a, b in zip(p, q, strict=True)))
    response = [Fraction(1, 3), Fraction(2, 3)]
    attained = sum((a - b) ** 2 / a for a, b in zip(response, response[::-1], strict=True))
    assert Fraction(1, 5) < largest <= attained == Fraction(1, 2)
    # on one record of [−1, 1] the bound is 1/χ, on one of the ends twice that
    bound = gn.lower_bound(gn.LpBall(1, 2), gn.PureDP(math.log(2)), n=1)
    assert bound.error == pytest.approx(1 / math.sqrt(attained), rel=1e-6)
    ends = gn.lower_bound(FiniteSet([[-1.0], [1.0]]), gn.PureDP(math.log(2)), n=1)
    assert ends.error == pytest.approx(2 / math.sqrt(attained), rel=1e-6)


def best_local(points, record, epsilon, p):
    """Least ``‖sd‖_p``, at a record, of an unbiased estimate from one ε-locally private message, by
    cvxpy.

    A column of a private channel is a mixture of patterns in {1, e^ε}^K, the extreme rays (Kairouz,
    Oh & Viswanath 2016): so 2^K messages do, in amounts θ, and with g = θ·estimate the variances
    are jointly convex.
    """
    patterns = np.array(list(itertools.product([1.0, math.exp(epsilon)], repeat=len(points))))
    shape = len(patterns), points.shape[1]
    amount, g, squares = cp.Variable(shape[0], nonneg=True), cp.Variable(shape), cp.Variable(shape)
    rules = [patterns.T @ amount == 1, patterns.T @ g == points]
    for j in range(shape[1]):  # squares · amount >= g²
        rules.append(
            cp.SOC(squares[:, j] + amount, cp.vstack([2 * g[:, j], squares[:, j] - amount]), axis=0)
        )
    variances = patterns[:, record] @ squares - points[record] ** 2
    return math.sqrt(
        cp.Problem(cp.Minimize({2: cp.sum, math.inf: cp.max}[p](variances)), rules).solve(
            solver="CLARABEL"
        )
    )


@pytest.mark.paper("Theorem 55", by="the best of all private channels, a convex program by cvxpy")
@pytest.mark.parametrize("epsilon", [0.4, 1.0, 3.0])
def test_no_private_channel_beats_the_local_bound(epsilon):
    for points in (TRIANGLE, np.array([[0.0], [0.5], [2.0]]), np.array([[-1.0], [1.0]])):
        K, privacy = FiniteSet(points), gn.LocalDP(epsilon)
        for p, n in ((2, 5), (math.inf, 1)):
            uniform = gn.lower_bound(K, privacy, n=n, p=p)
            for record in range(len(points)):
                best = best_local(points, record, epsilon, p) / math.sqrt(n)  # of n equal records
                at = gn.lower_bound(K, privacy, p=p, data=[record] * n)
                ours = gn.LocalMechanism(K, privacy, p=p).covariance(points[record]).error(
                    p
                ) / math.sqrt(n)
                assert uniform.error * (1 - 1e-5) <= at.error <= best * (1 + 1e-6)
                assert best <= ours * (1 + 1e-6)
                if len(points) == 2:
                    assert at.error == pytest.approx(best, rel=1e-5)
        mixed = math.hypot(*(best_local(points, i, epsilon, 2) for i in range(len(points)))) / len(
            points
        )
        assert gn.lower_bound(K, privacy, data=list(range(len(points)))).error <= mixed * (1 + 1e-6)


# Distributions


def resampled(rows, n):
    """What a mechanism on counts of ones, probabilities as rows (n + 1, outputs), does on n
    resampled records.
    """
    draws = [
        [
            math.comb(n, j) * Fraction(ones, n) ** j * Fraction(n - ones, n) ** (n - j)
            for j in range(n + 1)
        ]
        for ones in range(n + 1)
    ]
    return [
        [sum(w * row[o] for w, row in zip(weights, rows, strict=True)) for o in range(len(rows[0]))]
        for weights in draws
    ]


@pytest.mark.paper("Lemma 57", by="resampling enumerated in exact rationals")
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_resampling_costs_what_is_said_and_no_less(n):
    ratio = Fraction(2)
    guarantee = _bound.resampled(gn.PureDP(math.log(2)), n)
    rarely = [
        [ratio**k / 2**n / 4, 1 - ratio**k / 2**n / 4] for k in range(n + 1)
    ]  # as much more likely as may be
    coins = [(Fraction(1, 3), Fraction(2, 3)), (Fraction(2, 3), Fraction(1, 3))]
    response = [  # how many ones after every record is flipped
        [
            sum(
                math.comb(k, i)
                * math.comb(n - k, j - i)
                * Fraction(2, 3) ** (i + n - k - j + i)
                * Fraction(1, 3) ** (k + j - 2 * i)
                for i in range(max(0, j - n + k), min(k, j) + 1)
            )
            for j in range(n + 1)
        ]
        for k in range(n + 1)
    ]
    assert coins[0][0] * 2 == coins[1][0]
    largest = []
    for rows in (rarely, response):
        assert all(sum(row) == 1 for row in rows)
        pairs = list(itertools.pairwise(rows))
        assert max(max(x / y, y / x) for a, b in pairs for x, y in zip(a, b, strict=True)) <= ratio
        after = resampled(rows, n)
        largest.append(
            max(
                max(x / y, y / x)
                for a, b in itertools.pairwise(after)
                for x, y in zip(a, b, strict=True)
            )
        )
    assert largest[0] == (1 + (ratio - 1) / n) ** n  # attained
    assert max(largest) <= math.exp(guarantee.epsilon)
    assert math.exp(guarantee.epsilon) == pytest.approx(float(largest[0]), rel=1e-9)
    means = [
        sum(Fraction(3 * j - n, n) * x for j, x in enumerate(row)) for row in resampled(response, n)
    ]
    assert means == [Fraction(k, n) for k in range(n + 1)]  # unbiased for the records


@pytest.mark.paper(
    "Theorem 58",
    "Theorem 59",
    by="the best of all mechanisms on lists of 0 and 1, a linear program by cvxpy",
)
@pytest.mark.parametrize(
    "privacy", [gn.PureDP(math.log(2)), gn.ApproxDP(math.log(2), 0.1), gn.privacy.TV(0.3)]
)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_no_mechanism_unbiased_for_distributions_beats_the_bound(n, privacy):
    epsilon, delta = (
        getattr(privacy, "epsilon", 0.0),
        getattr(privacy, "delta", getattr(privacy, "alpha", 0.0)),
    )
    sets, outputs = np.array(list(itertools.product([0, 1], repeat=n))), np.arange(-24, 31) / 6
    P = cp.Variable((len(sets), len(outputs)), nonneg=True)
    rules = [cp.sum(P, axis=1) == 1]
    for k in range(
        n + 1
    ):  # E over draws of chance t is t for every t: lists may be biased, not all of k ones together
        rules.append(cp.sum(P[sets.sum(axis=1) == k] @ outputs) == math.comb(n, k) * k / n)
    for i, j in itertools.permutations(range(len(sets)), 2):
        if np.abs(sets[i] - sets[j]).sum() == 1:
            rules.append(cp.sum(cp.pos(P[i] - math.exp(epsilon) * P[j])) <= delta)

    def variance(ones):
        t = ones / n
        return (t**sets * (1 - t) ** (1 - sets)).prod(axis=1) @ (P @ (outputs - t) ** 2)

    segment = FiniteSet([[0.0], [1.0]])
    uniform = gn.lower_bound(segment, privacy, n=n, unbiased="distributional")
    for ones in range(n + 1):
        bound = gn.lower_bound(
            segment, privacy, data=[1] * ones + [0] * (n - ones), unbiased="distributional"
        )
        beside = [variance(k) for k in range(max(ones - 1, 0), min(ones + 1, n) + 1)]
        goal = cp.max(cp.hstack(beside)) if bound.at_neighbor else variance(ones)
        least = math.sqrt(cp.Problem(cp.Minimize(goal), rules).solve(solver="CLARABEL"))
        assert uniform.error * (1 - 1e-9) <= bound.error <= least * (1 + 1e-6)
        assert n > 1 or least <= bound.error * (1 + 1e-5)
