"""Mechanisms that are unbiased for the mean of every distribution, against linear programmes over
all of them, and exact sums.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import pairwise
from scipy import sparse
from scipy.optimize import linprog

import gaussnoise as gn
from gaussnoise.bounds import bound_of
from gaussnoise.errors import DataError

SEGMENT = gn.FiniteSet([[-1.0], [1.0]])
CROSS = gn.FiniteSet([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
RANDOM = gn.FiniteSet(np.random.default_rng(3).normal(size=(4, 2)))


def best_variance(n, epsilon, chance):
    """Return the least variance, over draws with this chance of one, on a grid of answers, for all
    ε-private mechanisms.

    The unknowns are the chances of every answer to every *list*, so nothing is assumed about
    orders; the mechanism is unbiased if the coefficients of both polynomials of degree n agree.
    """
    lists = np.array(list(itertools.product([0, 1], repeat=n)))
    answers = np.linspace(-7, 7, 281)
    ones, size = lists.sum(axis=1), len(answers)
    masses = chance**ones * (1 - chance) ** (n - ones)
    cost = np.outer(masses, (answers - (2 * chance - 1)) ** 2).ravel()
    equal, right = (
        [sparse.kron(sparse.eye_array(len(lists)), np.ones((1, size)))],
        [np.ones(len(lists))],
    )
    for k in range(n + 1):
        equal.append(sparse.csr_array(np.kron(ones == k, answers)[None, :]))
        right.append([math.comb(n, k) * (2 * k / n - 1)])
    below = []
    for i, j in itertools.permutations(range(len(lists)), 2):
        if np.abs(lists[i] - lists[j]).sum() == 1:
            row = np.zeros(len(lists))
            row[i], row[j] = 1, -math.exp(epsilon)
            below.append(sparse.kron(row, sparse.eye_array(size)))
    found = linprog(
        cost,
        sparse.vstack(below),
        np.zeros(len(below) * size),
        sparse.vstack(equal),
        np.concatenate(right),
        method="highs",
    )
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize(
    ("n", "epsilon", "least", "ours", "resampled"),
    [(2, 1.0, 1.713, 1.421, 0.573), (3, 3.0, 0.377, 0.358, 0.0011)],
)
def test_no_mechanism_of_a_linear_programme_beats_the_bound_which_is_near_it(
    n, epsilon, least, ours, resampled
):
    found = best_variance(n, epsilon, 0.5)
    bound = gn.lower_bound(SEGMENT, gn.PureDP(epsilon), n=n, data=[0, 1], unbiased="distributional")
    assert found == pytest.approx(least, abs=1.5e-3)
    assert bound.error**2 == pytest.approx(ours, abs=6e-4)
    assert bound.error**2 <= found
    # as it was, with the ε of resampled data and without the variance of the draws themselves
    larger = n * math.log1p(math.expm1(epsilon) / n)
    assert (2 / n) ** 2 / (4 * math.sinh(larger / 2) ** 2) == pytest.approx(resampled, rel=0.05)
    free = gn.lower_bound(SEGMENT, gn.PureDP(epsilon), n=n, unbiased="distributional")
    assert free.error**2 == pytest.approx(bound.error**2 - 1 / n, rel=1e-6)
    assert free.error <= best_variance(n, epsilon, 0.0) ** 0.5


def test_unbiased_for_distributions_is_unbiased_for_shuffled_data():
    """A mean that depends on order, in rationals: right at every P, wrong at lists, right once they
    are shuffled.
    """
    lists = list(itertools.product([0, 1], repeat=3))
    first = {x: Fraction(x[0]) for x in lists}  # the first record alone
    for k in range(11):
        t = Fraction(k, 10)
        chance = {x: t ** sum(x) * (1 - t) ** (3 - sum(x)) for x in lists}
        assert sum(chance[x] * first[x] for x in lists) == t
    assert any(first[x] != Fraction(sum(x), 3) for x in lists)
    for x in lists:
        orders = list(itertools.permutations(x))
        assert sum(first[y] for y in orders) / len(orders) == Fraction(sum(x), 3)


@pytest.mark.parametrize(
    ("privacy", "domain", "p"),
    pairwise(
        [gn.PureDP(0.7), gn.zCDP(0.1), gn.GDP(0.5)],
        [SEGMENT, CROSS, RANDOM, gn.Marginals.all_kway((2, 3), 1), gn.LpBall(2, 2)],
        [2, math.inf],
    ),
)
def test_bounds_for_data_hold_for_distributions_and_what_draws_vary_adds(privacy, domain, p):
    n = 5
    empirical = gn.lower_bound(domain, privacy, n=n, p=p)
    free = gn.lower_bound(domain, privacy, n=n, p=p, unbiased="distributional")
    assert free.guarantee == privacy
    assert "whatever the distribution" in free.where
    assert "degree n" in free.explain()
    assert free.error <= empirical.error
    if p == 2 or isinstance(
        domain, gn.Marginals | gn.LpBall
    ):  # otherwise weights must be the same for all data
        assert free.error == empirical.error
    assert free.error >= 0.999 * gn.optimal_noise(domain, p).gamma_lower / 2 / n * math.sqrt(
        unit(privacy)
    )
    # at a distribution, the variance of the draws is between that of one record and of all
    records = [[0.6, 0.8], [-1.0, 0.0]] if isinstance(domain, gn.LpBall) else [0, 1]
    at = gn.lower_bound(domain, privacy, n=n, p=p, data=records, unbiased="distributional")
    alone = gn.lower_bound(domain, privacy, n=n, p=p, data=records[:1], unbiased="distributional")
    rows = (
        np.array(records)
        if isinstance(domain, gn.LpBall)
        else domain.to_finite_set().points[records]
    )
    draws = rows.var(axis=0) / n
    assert alone.deviation == 0
    assert 0 < at.deviation**2 <= (draws.sum() if p == 2 else draws.max()) * (1 + 1e-9)
    assert at.error**2 == pytest.approx(
        (at.gamma_lower / n) ** 2 * unit(privacy) + at.deviation**2, rel=1e-9
    )
    assert at.private
    assert at.n == n
    assert alone.error <= gn.lower_bound(domain, privacy, data=records[:1] * n, p=p).error * (
        1 + 1e-4
    )
    # Gaussian noise on the draws' mean keeps it
    if isinstance(privacy, gn.zCDP):
        noise = gn.optimal_noise(domain, p)
        deviations = noise.covariance.diagonal() / (2 * privacy.rho * n**2) + draws
        assert at.error <= np.linalg.norm(np.sqrt(deviations), p)


def unit(privacy):
    """Return 1/χ²."""
    match privacy:
        case gn.PureDP(epsilon):
            return 1 / (4 * math.sinh(epsilon / 2) ** 2)
        case gn.zCDP(rho):
            return 1 / math.expm1(2 * rho)
        case _:
            return 1 / math.expm1(privacy.mu**2)


@pytest.mark.parametrize("p", [2, 4])
def test_what_draws_have_of_all_moves_is_less_than_their_mean_square_over_all_draws(p):
    """Compute E γ_W(S_X)² by enumerating all draws, with the bound's W."""
    points, n = RANDOM.points, 3
    for data in ([0, 1], [0, 0, 1], [2], [0, 1, 2]):
        bound = gn.lower_bound(RANDOM, gn.zCDP(0.1), n=n, p=p, data=data, unbiased="distributional")
        largest = 0.0
        for drawn in itertools.product(data, repeat=n):
            moves = np.array(
                [points[i] - y for i in set(drawn) for y in points if (points[i] != y).any()]
            )
            reference = gn.optimal_noise(
                gn.FiniteSet(moves), p, neighbors="add-remove", tol=1e-5
            ).gamma
            largest += reference**2 / len(data) ** n
        assert bound.gamma_lower**2 <= largest * (1 + 1e-4)  # at p > 2, γ is the largest over W


def test_other_definitions_go_on_resampling_and_ask_for_as_many_draws_as_records():
    for privacy in (gn.ApproxDP(0.5, 1e-3), gn.privacy.TV(0.1)):
        bound = gn.lower_bound(SEGMENT, privacy, data=[0, 1], unbiased="distributional")
        assert "resampled" in bound.explain()
        assert bound.deviation == 0
        with pytest.raises(DataError, match="exactly n"):
            gn.lower_bound(SEGMENT, privacy, n=3, data=[0, 1], unbiased="distributional")
    huge, tiny = (gn.FiniteSet(size * SEGMENT.points) for size in (1e200, 1e-200))
    for size, domain in ((1e200, huge), (1e-200, tiny)):
        scaled, at = (
            gn.lower_bound(K, gn.zCDP(0.5), data=[0, 1], unbiased="distributional").error
            for K in (domain, SEGMENT)
        )
        assert scaled == pytest.approx(size * at, rel=1e-6)
    at = gn.lower_bound(SEGMENT, gn.PureDP(0.5), data=[0, 1], unbiased="distributional")
    assert "(tr(W cov P)/n)^(1/2) = 0.7" in at.explain()
    assert "NOT PRIVATE" in at.explain()


@pytest.mark.parametrize("n", [1, 10, 1000])
def test_pure_privacy_keeps_what_resampling_proved(n):
    """Many different records are seldom all drawn: then resampled data give the better bound."""
    angles = 2 * math.pi * np.arange(n) / n
    data = np.column_stack([np.cos(angles), np.sin(angles)])
    for epsilon in (0.01, 1.0, 300.0):
        bound = gn.lower_bound(
            gn.LpBall(2, 2), gn.PureDP(epsilon), data=data, unbiased="distributional", tol=1e-3
        )
        whole = gn.lower_bound(gn.LpBall(2, 2), gn.PureDP(1.0), data=data, tol=1e-3).gamma_lower
        larger = n * math.log1p(math.expm1(epsilon) / n)
        if larger < 700:
            assert bound.error >= whole / (2 * n * math.sinh(larger / 2)) * (1 - 1e-9)
        assert bound.error >= bound.deviation * (1 - 1e-9)
        assert bound.error > 0


@pytest.mark.parametrize("p", [3, math.inf])
def test_weights_are_those_of_all_data_at_once(p):
    """At p > 2 each record's own weights prove nothing about a mixture, but the weights of tables
    are the same for all.
    """
    noise = gn.optimal_noise(RANDOM, p)
    assert "one record" in bound_of(noise, gn.zCDP(0.1), 3).reachable
    assert "half the sum" in bound_of(noise, gn.zCDP(0.1), 3, unbiased="distributional").reachable
    tables = gn.optimal_noise(gn.Marginals.all_kway((2, 3), 2), p)
    assert "one record" in bound_of(tables, gn.zCDP(0.1), 3, unbiased="distributional").reachable
