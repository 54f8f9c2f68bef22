"""Statements of Nikolov & Tang (2023), Section 2, on Gaussian noise and on γ_p.

References: enumerated outcomes, quadrature of densities and of expected norms, plain matrices.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf, gamma

import gaussnoise as gn
from gaussnoise import FiniteSet
from gaussnoise.noise.covariance import FactorCovariance

norms = pytest.mark.parametrize("p", [2, 3, math.inf])
CLOUD = np.random.default_rng(7).normal(size=(6, 3)) + 1.0
ORDERS = 1 + np.logspace(-4, 3, 300)


# Concentrated differential privacy


def divergences(P, Q):
    """Rényi divergences of two lists of probabilities, at ORDERS; the larger direction."""
    one_way = [
        np.logaddexp.reduce(ORDERS[:, None] * np.log(a) + (1 - ORDERS[:, None]) * np.log(b), axis=1)
        for a, b in ((P, Q), (Q, P))
    ]
    return np.maximum(*one_way) / (ORDERS - 1)


def least_rho(P, Q):
    """The ρ of the pair: divergences grow slower than the order, so a fine grid misses little."""
    return (divergences(P, Q) / ORDERS).max() * (1 + 1e-3)


@pytest.mark.paper("Lemma 11", by="adaptive pairs of rounds, all outcomes enumerated")
def test_two_rounds_spend_the_sum_and_processing_nothing():
    rng, sharpest = np.random.default_rng(0), 0.0
    for _ in range(100):
        first = rng.dirichlet(np.full(3, 0.7), size=2) + 1e-3
        first /= first.sum(axis=1, keepdims=True)
        second = (
            rng.dirichlet(np.full(3, 0.7), size=(3, 2)) + 1e-3
        )  # after each outcome of the first
        second /= second.sum(axis=2, keepdims=True)
        P, Q = ((first[side][:, None] * second[:, side]).ravel() for side in (0, 1))
        rho = least_rho(*first) + max(least_rho(*pair) for pair in second)
        assert least_rho(P, Q) <= rho * (1 + 1e-9)
        sharpest = max(sharpest, least_rho(P, Q) / rho)
        channel = rng.dirichlet(np.ones(4), size=9)
        assert (divergences(P @ channel, Q @ channel) <= divergences(P, Q) * (1 + 1e-9)).all()
    assert sharpest > 0.9


@pytest.mark.paper("Lemma 12", by="random pairs of finite distributions, their least δ enumerated")
def test_zcdp_implies_approximate_privacy_as_stated():
    rng, tightest = np.random.default_rng(1), 0.0
    for _ in range(40):
        P, Q = rng.dirichlet(np.full(4, 0.5), size=2) + 1e-6
        P, Q = P / P.sum(), Q / Q.sum()
        rho = least_rho(P, Q)
        for delta in (0.3, 1e-2, 1e-4):
            ours, stated = (
                gn.zCDP(rho).epsilon(delta),
                rho + 2 * math.sqrt(rho * math.log(1 / delta)),
            )
            assert ours <= stated
            least = max(
                np.maximum(P - math.exp(ours) * Q, 0).sum(),
                np.maximum(Q - math.exp(ours) * P, 0).sum(),
            )
            assert least <= delta
            tightest = max(tightest, least / delta)
    assert tightest > 0.3


@pytest.mark.paper("Lemma 13", by="divergences by quadrature of densities")
@pytest.mark.parametrize("rho", [0.02, 1.5])
def test_noise_of_sensitivity_spends_rho(rho):
    radius, n = 3.0, 4
    sensitivity = 2 * radius / n
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(gn.LpBall(2, 2, radius=radius)), gn.zCDP(rho), n=n
    )
    variance = sensitivity**2 / (2 * rho)
    assert mechanism.covariance.toarray() == pytest.approx(variance * np.eye(2), rel=1e-6)
    sd = math.sqrt(variance)
    for order in (1.5, 2.0, 8.0):

        def density(y, order=order):
            return math.exp(-(order * (y - sensitivity) ** 2 + (1 - order) * y**2) / (2 * variance))

        far = order * sensitivity  # the integrand's peak
        total = quad(density, far - 12 * sd, far + 12 * sd, epsabs=0, epsrel=1e-11)[0] / (
            sd * math.sqrt(2 * math.pi)
        )
        assert math.log(total) / (order - 1) == pytest.approx(order * rho, rel=1e-7)


@pytest.mark.paper("Lemma 14", by="random semidefinite matrices")
def test_the_size_of_a_covariance_is_a_norm_of_its_deviations():
    rng = np.random.default_rng(2)
    exponents = [2, 2.5, 4, 30, math.inf]
    for d in (1, 3, 5):
        A, B = rng.normal(size=(2, d, 2))
        for p in exponents:
            # the paper's function is the square of ours
            size = {
                name: FactorCovariance(F, 1.0).error(p) ** 2
                for name, F in {"A": A, "B": B, "3A": 3 * A}.items()
            }
            both = FactorCovariance(np.hstack([A, B]), 1.0)
            diagonal = np.diag(A @ A.T)
            plain = diagonal.max() if p == math.inf else (diagonal ** (p / 2)).sum() ** (2 / p)
            assert size["A"] == pytest.approx(plain)
            assert size["3A"] == pytest.approx(9 * size["A"])
            assert both.toarray() == pytest.approx(A @ A.T + B @ B.T)
            assert both.error(p) ** 2 <= (size["A"] + size["B"]) * (1 + 1e-12)
            assert FactorCovariance(np.zeros((d, d)), 1.0).error(p) == 0 < size["A"]
        for p, q in itertools.combinations(exponents, 2):
            small, large = (FactorCovariance(A, 1.0).error(x) for x in (q, p))
            assert small <= large * (1 + 1e-12)
            assert large <= d ** (1 / p - 1 / q) * small * (1 + 1e-12)


# The mechanism


def moment(p, d):
    """(E‖g‖_p²)^{1/2} of d independent standard normals: exact at p = 2 and ∞, and from above
    between.
    """
    largest = math.sqrt(
        quad(lambda t: -math.expm1(d * math.log(erf(math.sqrt(t / 2)))), 0, 200, limit=200)[0]
    )
    if p == math.inf:
        return largest
    return d ** (1 / p) * min(
        (2 ** (p / 2) * gamma((p + 1) / 2) / math.sqrt(math.pi)) ** (1 / p), largest
    )


def dimensions(p, d):
    """What the p-norm of noise may cost beyond the norm of its deviations, squared."""
    return min(p, math.log(2 * d))


@pytest.mark.paper("Theorem 15", "Corollary 16", by="expected norms on cubes, by quadrature")
@pytest.mark.parametrize("p", [2, 3, 8, math.inf])
@pytest.mark.parametrize("d", [1, 4, 200])
def test_expected_errors_on_cubes(p, d):
    n, rho = 7, 0.3
    noise = gn.optimal_noise(gn.LpBall(d, math.inf), p)
    mechanism = gn.GaussianMechanism(noise, gn.zCDP(rho), n=n)
    deviations = 2 * d ** (1 / 2 + 1 / p) / (n * math.sqrt(2 * rho))  # 2 γ_p / (n √(2ρ))
    assert mechanism.error == pytest.approx(deviations, rel=1e-6)
    sd = mechanism.standard_deviation
    assert sd == pytest.approx(np.full(d, sd[0]))
    expected = sd[0] * moment(p, d)
    assert deviations * (1 - 1e-6) <= expected <= math.sqrt(2 * dimensions(p, d)) * deviations
    if p == math.inf and d == 200:  # the logarithm is not for nothing
        assert expected > math.sqrt(1.2 * dimensions(p, d)) * deviations


@pytest.mark.paper(
    "Theorem 3", "Corollary 16", by="expected norms of correlated noise, simulated; its covariance"
)
@norms
def test_expected_errors_of_correlated_noise(p):
    d, n = 12, 5
    points = np.random.default_rng(3).normal(size=(30, d)) * np.geomspace(1, 10, d)
    enclosing, noise = gn.gamma(FiniteSet(points), p), gn.optimal_noise(FiniteSet(points), p)
    g = np.random.default_rng(4).normal(size=(4000, d))
    for privacy in (gn.zCDP(0.2), gn.ApproxDP(1.0, 1e-6), gn.ApproxDP(0.1, 1e-3)):
        mechanism = gn.GaussianMechanism(noise, privacy, n=n)
        ratio = mechanism.covariance.toarray() / noise.covariance.toarray()
        assert ratio == pytest.approx(np.full((d, d), ratio[0, 0]), rel=1e-6)
        root = np.linalg.cholesky(mechanism.covariance.toarray())
        squares = np.linalg.norm(g @ root.T, p, axis=1) ** 2
        slack = 5 * squares.std() / math.sqrt(len(squares))
        if isinstance(privacy, gn.zCDP):
            rho, stated = privacy.rho, 2 * enclosing.gamma / (n * math.sqrt(2 * privacy.rho))
        else:  # the ρ that Lemma 12 makes (ε, δ) of, which is of the order ε²/log(1/δ)
            log = math.log(1 / privacy.delta)
            rho = (math.sqrt(log + privacy.epsilon) - math.sqrt(log)) ** 2
            stated = 2 * enclosing.gamma / (n * math.sqrt(2 * rho))
            assert stated <= 2 * math.sqrt(2 * (log + privacy.epsilon)) * enclosing.gamma / (
                n * privacy.epsilon
            )
        assert mechanism.error <= stated
        assert mechanism.error**2 <= squares.mean() + slack  # Lemma 33
        assert squares.mean() <= 2 * dimensions(p, d) * stated**2 + slack


@pytest.mark.paper("Theorem 17", by="simulated means of messages about corners of a cube")
@norms
def test_expected_errors_of_messages_under_local_privacy(p):
    d, n, epsilon = 6, 40, 0.5
    mechanism = gn.LocalMechanism(gn.LpBall(d, math.inf), gn.LocalDP(epsilon), p=p)
    rng, data = np.random.default_rng(5), np.ones((n, d))
    squares = np.array(
        [np.linalg.norm(mechanism.simulate(data, rng).estimate - 1, p) ** 2 for _ in range(60)]
    )
    slack = 5 * squares.std() / math.sqrt(len(squares))
    deviations = 3.1 * d ** (1 / 2 + 1 / p) / (epsilon * math.sqrt(n))  # γ_p/(ε√n) and a constant
    assert mechanism.covariance(data[0]).error(p) ** 2 / n <= squares.mean() + slack
    assert squares.mean() <= 2 * dimensions(p, d) * deviations**2 + slack


# The geometry


@pytest.mark.paper("Lemma 21", by="unions of a set and its mirror image, about several centers")
@norms
def test_other_sets_are_made_symmetric_about_the_best_center(p):
    found = gn.gamma(FiniteSet(CLOUD), p)

    def mirrored(v):
        return gn.gamma(FiniteSet(np.vstack([CLOUD - v, v - CLOUD])), p)

    assert mirrored(found.center).gamma == pytest.approx(found.gamma, rel=1e-5)
    rng = np.random.default_rng(6)
    for v in (np.zeros(3), CLOUD.mean(axis=0), *(found.center + 0.1 * rng.normal(size=(4, 3)))):
        assert mirrored(v).gamma >= found.gamma_lower * (1 - 1e-9)
    assert mirrored(np.zeros(3)).gamma > 1.1 * found.gamma


@pytest.mark.paper("Theorem 23", by="factorizations of the matrix less a column, several of them")
@norms
def test_a_factorization_of_shifted_columns_is_gamma(p):
    found = gn.gamma(FiniteSet(CLOUD), p)
    best = gn.factorize(CLOUD.T - found.center[:, None], p)
    assert best.value == pytest.approx(found.gamma, rel=1e-5)
    for v in (np.zeros(3), CLOUD.mean(axis=0), CLOUD[0]):
        assert gn.factorize(CLOUD.T - v[:, None], p).value >= found.gamma_lower * (1 - 1e-9)


@pytest.mark.paper(
    "Lemma 27", by="γ_2 of the set in weighted coordinates, at random weights and the best"
)
@pytest.mark.parametrize("p", [2.5, 4, math.inf])
def test_gamma_is_the_largest_euclidean_one_of_weighted_coordinates(p):
    found, conjugate = gn.gamma(FiniteSet(CLOUD), p), 1 if p == math.inf else p / (p - 2)

    def weighted(w):
        return gn.gamma(FiniteSet(CLOUD * np.sqrt(w)), 2)

    rng, shares = np.random.default_rng(7), []
    for _ in range(10):
        w = rng.dirichlet(np.ones(3))
        shares.append(weighted(w / np.linalg.norm(w, conjugate)).gamma_lower / found.gamma)
    assert max(shares) <= 1 + 1e-9
    assert min(shares) < 0.9
    assert weighted(found.certificate.coordinate_weights).gamma == pytest.approx(
        found.gamma, rel=1e-5
    )


@pytest.mark.paper("Claim 68", by="mixtures of ellipsoids found for different norms and scales")
def test_covariances_of_enclosing_ellipsoids_form_a_convex_set():
    rng = np.random.default_rng(8)
    ends = []
    for scale in np.vstack([np.ones(3), np.exp(rng.normal(size=(5, 3)))]):
        found = gn.gamma(FiniteSet(CLOUD * scale), rng.choice([2, 3, math.inf]))
        ends.append((found.covariance.toarray() / np.outer(scale, scale), found.center / scale))

    def longest(M, v):
        return max(np.sum((CLOUD - v) * np.linalg.solve(M, (CLOUD - v).T).T, axis=1))

    elsewhere = 0
    for (M, v), (N, u) in itertools.combinations(ends, 2):
        for t in (0.2, 0.5, 0.9):
            assert longest(t * M + (1 - t) * N, t * v + (1 - t) * u) <= 1 + 1e-9
            # neither the center of one end nor mixed factors would do
            elsewhere += longest(t * M + (1 - t) * N, u) > 1 + 1e-3
    assert elsewhere > 10
