"""Statements of Nikolov & Tang (2023), Sections 3 to 7: steps of the lower bounds.

Where our own proof takes another way than a step of the paper, the step itself is checked, and that
ours implies it. References: exact rationals, enumerated mechanisms, linear programs.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import gaussnoise as gn
from gaussnoise import FiniteSet
from gaussnoise.bounds.bound import resampled

TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.3, 0.8]])
CLOUD = np.random.default_rng(7).normal(size=(6, 3))


def fractions(rng, many, top=60):
    """Random probabilities as rationals, some of them zero."""
    values = [
        Fraction(int(x)) for x in rng.integers(0, top, size=many) * rng.integers(0, 2, size=many)
    ]
    values[0] += 1
    return [x / sum(values) for x in values]


def spread(values, chances):
    mean = sum(p * y for p, y in zip(chances, values, strict=True))
    return sum(p * (y - mean) ** 2 for p, y in zip(chances, values, strict=True))


def chi_squared(P, Q):
    """∫ (dP/dQ − 1)² dQ."""
    return sum((p - q) ** 2 / q for p, q in zip(P, Q, strict=True) if p != q)


# From one dimension to many


@pytest.mark.paper(
    "Lemma 35",
    "Lemma 36",
    by="random covariances scaled to the width, over a dense set of directions",
)
@pytest.mark.parametrize("p", [2, math.inf])
def test_covariances_wider_than_the_set_enclose_it(p):
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(20_000, 3))
    widths = np.ptp(directions @ CLOUD.T, axis=1)
    least, sharpest = gn.gamma(FiniteSet(CLOUD), p), math.inf
    replaced = gn.optimal_noise(
        FiniteSet(CLOUD), p
    ).covariance.toarray()  # encloses K − K, whose support is the width
    for M in (replaced, *(A @ A.T for A in rng.normal(size=(20, 3, 5)))):
        ratio = np.sqrt(np.einsum("ki,ij,kj->k", directions, M, directions)) / widths
        moved = CLOUD[:, None, :] - CLOUD  # about any point of K
        reach = np.sqrt(np.einsum("abi,ij,abj->ab", moved, np.linalg.inv(M), moved).max())
        assert ratio.min() * reach <= 1 + 1e-2  # the ratio of a finite number of directions
        assert np.linalg.norm(np.sqrt(np.diag(M)), p) >= least.gamma_lower / reach
        sharpest = min(sharpest, np.linalg.norm(np.sqrt(np.diag(M)), p) * reach / least.gamma)
    assert sharpest < 2  # half of K − K is nearly the set itself


@pytest.mark.paper("Lemma 37", "Lemma 38", by="support points of bodies, in many directions")
@pytest.mark.parametrize(
    "K",
    [
        FiniteSet(CLOUD),
        gn.LpBall(3, 3),
        gn.Zonotope([[1.0, 0.0, 0.0], [1.0, 2.0, 0.5]]) + np.arange(3.0),
    ],
)
def test_some_neighbour_moves_the_mean_by_half_of_the_width(K):
    rng, n, smallest = np.random.default_rng(1), 4, math.inf
    for theta in rng.normal(size=(50, 3)):
        ends = np.array([K.support_point(theta), K.support_point(-theta)])
        width = (ends[0] - ends[1]) @ theta
        assert width == pytest.approx(K.support(theta) + K.support(-theta))
        corners = np.array([K.support_point(t) for t in rng.normal(size=(n, 3))])
        for X in (corners, np.vstack([ends.mean(axis=0), corners[1:]])):
            moved = max(abs((y - X[0]) @ theta) / n for y in ends)
            assert moved >= width / (2 * n) * (1 - 1e-9)
            smallest = min(smallest, moved * n / width)
    assert smallest == pytest.approx(0.5)


@pytest.mark.paper("Lemma 38", by="what is claimed at every data set and whatever the data")
def test_every_data_set_has_half_of_the_bound_of_the_whole_width():
    width = gn.optimal_noise(FiniteSet(TRIANGLE)).gamma
    for privacy in (gn.PureDP(1.0), gn.zCDP(0.1)):
        chi = {gn.PureDP(1.0): 2 * math.sinh(0.5), gn.zCDP(0.1): math.sqrt(math.expm1(0.2))}[
            privacy
        ]
        for data in itertools.combinations_with_replacement(range(3), 2):
            at = gn.lower_bound(FiniteSet(TRIANGLE), privacy, data=list(data)).error
            assert width / (2 * 2 * chi) <= at * (1 + 1e-6) <= width / (2 * chi) * (1 + 1e-5)


# Pure differential privacy


@pytest.mark.paper(
    "Lemma 40", by="random pairs in exact rationals, with equality for the ratio of probabilities"
)
def test_means_differ_by_no_more_than_chi_times_the_deviation():
    rng = np.random.default_rng(2)
    for _ in range(300):
        many = int(rng.integers(1, 7))
        Q = [x + Fraction(1, 100) for x in fractions(rng, many)]
        Q, P = [x / sum(Q) for x in Q], fractions(rng, many)
        values = [Fraction(int(x), 7) for x in rng.integers(-40, 40, size=many)]
        ratio = [p / q for p, q in zip(P, Q, strict=True)]
        for y in (values, ratio):
            moved = sum((p - q) * x for p, q, x in zip(P, Q, y, strict=True))
            assert moved**2 <= chi_squared(P, Q) * spread(y, Q)
        assert moved**2 == chi_squared(P, Q) * spread(ratio, Q)


@pytest.mark.paper("Lemma 41", by="the least variance in one direction, by linear programming")
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_no_private_mechanism_varies_less_in_any_direction(epsilon):
    rng, chi, tightest = np.random.default_rng(3), 2 * math.sinh(epsilon / 2), math.inf
    for theta in [
        *rng.normal(size=(8, 2)),
        np.array([1.0, 0.25]),
    ]:  # the last has a corner just in the middle
        projected = TRIANGLE @ theta
        width, N = np.ptp(projected), 3
        outputs = projected.mean() + width / math.tanh(epsilon / 2) * np.linspace(-2, 2, 81)
        upper = [
            np.kron(np.eye(N)[i] - math.exp(epsilon) * np.eye(N)[j], np.eye(81))
            for i, j in itertools.permutations(range(N), 2)
        ]
        equal = np.vstack([np.kron(np.eye(N), np.ones(81)), np.kron(np.eye(N), outputs)])
        aims = np.concatenate([np.ones(N), projected])
        for record in range(N):
            cost = np.kron(np.eye(N)[record], (outputs - projected[record]) ** 2)
            found = linprog(cost, np.vstack(upper), np.zeros(6 * 81), equal, aims, method="highs")
            least = math.sqrt(found.fun)
            ours = gn.lower_bound(
                FiniteSet(projected[:, None]), gn.PureDP(epsilon), data=[record]
            ).error
            assert width / (2 * chi) * (1 - 1e-6) <= ours <= least * (1 + 1e-9)
            tightest = min(tightest, 2 * chi * least / width)
    assert tightest < 1.9


# Approximate differential privacy


def hockey_stick(P, Q, ratio):
    return sum(max(p - ratio * q, Fraction(0)) for p, q in zip(P, Q, strict=True))


def approximate_pairs():
    """(P, Q, e^ε, least δ) in exact rationals; e^ε between one and four, and δ small enough that
    something is left.
    """
    rng = np.random.default_rng(4)
    for _ in range(400):
        many = int(rng.integers(2, 9))
        base = [Fraction(int(x)) for x in rng.integers(1, 40, size=many)]
        tilt = [Fraction(int(x), 16) for x in rng.integers(8, 33, size=many)]
        P, Q = (list(x) for x in (base, [a * b for a, b in zip(base, tilt, strict=True)]))
        alone = int(rng.integers(many))
        (P if rng.integers(2) else Q)[alone] = Fraction(0)  # what only one of them does
        P, Q = ([x / sum(side) for x in side] for side in (P, Q))
        ratio = Fraction(int(rng.integers(9, 33)), 8)
        yield P, Q, ratio, max(hockey_stick(P, Q, ratio), hockey_stick(Q, P, ratio))


def near(P, Q, ratio):
    """Outcomes at which the probabilities are within the ratio squared of each other: within 2ε."""
    return [p <= ratio**2 * q and q <= ratio**2 * p for p, q in zip(P, Q, strict=True)]


def inside(chances, where):
    return sum((p for p, here in zip(chances, where, strict=True) if here), Fraction(0))


@pytest.mark.paper(
    "Lemma 45", by="random pairs in exact rationals, and one that attains the chance of one side"
)
def test_approximate_privacy_is_pure_outside_few_outcomes():
    seen = 0
    for P, Q, ratio, delta in approximate_pairs():
        most = 2 * delta / (1 - 1 / ratio)
        where = near(P, Q, ratio)
        assert 1 - min(inside(P, where), inside(Q, where)) <= most
        seen += not all(where)
    assert seen > 100
    # e^ε = 2, and one outcome at just above the ratio 4
    delta, little = Fraction(1, 100), Fraction(1, 10**6)
    chance = 2 * delta * (1 - little)
    P, Q = ([x, 1 - x] for x in (chance, chance / 4 * (1 - little / 2)))
    assert max(hockey_stick(P, Q, 2), hockey_stick(Q, P, 2)) <= delta
    assert inside(P, [not here for here in near(P, Q, Fraction(2))]) == chance


@pytest.mark.paper("Lemma 46", "Lemma 47", by="random pairs in exact rationals")
def test_one_answer_is_replaced_by_another_of_bounded_ratio():
    largest = Fraction(0)
    for P, Q, ratio, delta in approximate_pairs():
        lost, where = 2 * delta / (1 - 1 / ratio), near(P, Q, ratio)
        if lost >= 1:
            continue
        share = inside(Q, where) / inside(P, where)
        mended = [p * share if here else q for p, q, here in zip(P, Q, where, strict=True)]
        assert sum(mended) == 1
        assert 1 - lost <= share <= 1 / (1 - lost)
        ratios = [m / q for m, q in zip(mended, Q, strict=True) if m != q]
        assert all((1 - lost) / ratio**2 <= x <= ratio**2 / (1 - lost) for x in ratios)
        most = ratio**2 / (1 - lost)  # e to a new ε
        assert chi_squared(mended, Q) <= (most - 1) ** 2 / most
        largest = max(largest, chi_squared(mended, Q) * most / (most - 1) ** 2)
    assert largest > Fraction(1, 20)


BODIES = {
    "segment": gn.LpBall(1, 2),
    "cube": gn.LpBall(3, math.inf),
    "flat box": np.diag([1.0, 0.1, 0.01]) @ gn.LpBall(3, math.inf),
    "cloud": FiniteSet(CLOUD),
}


@pytest.mark.paper(
    "Lemma 48", "Lemma 49", by="our trade-off against theirs, with explicit constants"
)
@pytest.mark.parametrize("name", BODIES)
def test_little_error_at_the_data_is_paid_beside_it(name):
    K, n = BODIES[name], 3
    size = gn.gamma(K).gamma
    directions = np.random.default_rng(5).normal(size=(5000, K.dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    width = min(
        K.support(t) + K.support(-t) for t in (*np.eye(K.dim), *directions)
    )  # least, or a little more
    for epsilon, share in itertools.product([1.0, 0.1, 0.01], [1e-2, 1e-4, 1e-8]):
        delta = share * epsilon**2
        bound = gn.lower_bound(K, gn.ApproxDP(epsilon, delta), n=n)
        beside = bound.neighbor_error(size / (8 * n * epsilon))
        assert beside >= width / (8 * n * math.sqrt(delta))


@pytest.mark.paper("Lemma 50", by="the greedy projections of its proof, of random flat sets")
def test_some_projection_is_wide_and_nearly_as_large():
    rng, dropped = np.random.default_rng(6), 0
    turns = np.linspace(0, math.pi, 2000)
    circle = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    sphere = rng.normal(size=(20_000, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    grids = {3: sphere, 2: circle, 1: np.ones((1, 1))}
    for scales in itertools.product([1.0, 0.2, 0.01], repeat=2):
        points = rng.normal(size=(6, 3)) * [1.0, *scales]
        whole = gn.gamma(FiniteSet(points))
        basis = np.eye(3)  # columns span the range of the projection
        while basis.shape[1]:
            thetas = grids[basis.shape[1]] @ basis.T
            widths = np.ptp(thetas @ points.T, axis=1)
            if widths.min() >= whole.gamma / 3:
                break
            basis = basis @ np.linalg.svd(grids[basis.shape[1]][[np.argmin(widths)]])[2][1:].T
            dropped += 1
        projected = gn.gamma(FiniteSet(points @ basis @ basis.T))
        assert projected.gamma >= whole.gamma_lower / 2
        assert projected.gamma_lower <= whole.gamma * (1 + 1e-9)
    assert dropped >= 6


# Local differential privacy and distributions


@pytest.mark.paper("Lemma 54", by="a server that multiplies messages, all of them enumerated")
def test_averaged_messages_are_unbiased_private_and_vary_less():
    rng, epsilon, n = np.random.default_rng(7), 1.0, 2
    records = np.array([-1.0, 1.0])
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    channel = np.array([[keep, 1 - keep], [1 - keep, keep]])
    debiased = records / (2 * keep - 1)
    strictly = 0
    claimed = {
        (x, y): gn.lower_bound(FiniteSet(records[:, None]), gn.LocalDP(epsilon), data=[x, y]).error
        for x, y in itertools.product(range(2), repeat=2)
    }
    for _ in range(30):
        a, b = rng.normal(size=2)
        signs = np.array(
            [1.0, -1.0]
        )  # of a second bit, which says nothing: unbiased, but no sum over messages
        answers = {}
        for first, second, s, t in itertools.product(range(2), range(2), range(2), range(2)):
            plain = (debiased[first] + debiased[second]) / 2
            answers[first, second, s, t] = (
                plain
                + a * signs[s] * debiased[second]
                + b * signs[t] * debiased[first] * debiased[second]
            )
        for x, y in itertools.product(range(2), repeat=2):
            chance = {m: channel[x, m[0]] * channel[y, m[1]] / 4 for m in answers}
            mean = sum(chance[m] * answers[m] for m in answers)
            assert mean == pytest.approx((records[x] + records[y]) / 2)
            total = sum(chance[m] * (answers[m] - mean) ** 2 for m in answers)
            parts = 0.0
            for i, (own, other) in enumerate(((x, y), (y, x))):
                # what message i and its bit lead to on average, n times, less the rest of the mean
                averaged = {}
                for m in answers:
                    key, weight = (m[i], m[2 + i]), channel[other, m[1 - i]] / 2
                    averaged[key] = averaged.get(key, 0.0) + weight * n * answers[m]
                law = {key: channel[own, key[0]] / 2 for key in averaged}
                alone = {key: value - records[other] for key, value in averaged.items()}
                assert sum(law[key] * alone[key] for key in law) == pytest.approx(records[own])
                parts += sum(law[key] * (alone[key] - records[own]) ** 2 for key in law) / n**2
                flipped = {key: channel[1 - own, key[0]] / 2 for key in averaged}
                assert max(law[key] / flipped[key] for key in law) <= math.exp(epsilon) * (
                    1 + 1e-12
                )
            assert parts <= total * (1 + 1e-12)
            strictly += parts < 0.9 * total
            assert claimed[x, y] ** 2 <= parts * (1 + 1e-9)
    assert strictly > 50


@pytest.mark.paper("Lemma 57", by="coins of different bias, all draws enumerated")
@pytest.mark.parametrize("n", [2, 5, 20])
def test_private_answers_on_near_distributions_are_near(n):
    def draws(t):
        return np.array([math.comb(n, k) * t**k * (1 - t) ** (n - k) for k in range(n + 1)])

    def steep(epsilon):  # an outcome as much likelier with every one as may be
        return np.exp(epsilon * (np.arange(n + 1) - n)) / 2

    for epsilon, distance, t in itertools.product([0.1, 1.0, 2.8], [1 / n, 0.3 / n], [0.0, 0.4]):
        before, after = draws(t), draws(t + distance)
        stated = 6 * epsilon * n * distance
        answers = steep(epsilon)
        for chance in (answers, 1 - answers):
            loss = abs(math.log((after @ chance) / (before @ chance)))
            assert loss <= stated
            assert loss <= n * math.log1p(distance * math.expm1(epsilon)) * (1 + 1e-12)  # ours
        # δ: an outcome that all but equal data sets never have
        delta = 1e-3
        raised = np.minimum(answers + delta * np.arange(n + 1), 1.0)
        assert (
            after @ raised
            <= math.exp(stated) * (before @ raised) + 4 * math.exp(stated) * n * distance * delta
        )
    assert resampled(gn.PureDP(1.0), n).epsilon == pytest.approx(n * math.log1p(math.e / n - 1 / n))


@pytest.mark.paper("Lemma 57", by="a mechanism that loses more than their constant, at large ε")
def test_the_constant_six_is_for_small_epsilon_and_ours_for_all():
    n, epsilon = 60, 4.0
    chance = np.exp(epsilon * (np.arange(n + 1) - n)) / 2
    one = np.array([math.comb(n, k) * (1 / n) ** k * (1 - 1 / n) ** (n - k) for k in range(n + 1)])
    loss = math.log((one @ chance) / chance[0])
    assert loss > 6 * epsilon
    assert loss <= resampled(gn.PureDP(epsilon), n).epsilon
