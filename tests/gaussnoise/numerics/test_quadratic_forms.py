"""Functions of the mean of a Gaussian: unbiased where promised, and with intervals that cover."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from gaussnoise.numerics.polynomials import Quadratic, algebraic, quadratic, unbiased
from gaussnoise.numerics.quadratic_forms import QuadraticRatio, quadratic_near
from gaussnoise.tables.release.ratios import fieller

POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(12)  # exact up to degree 23
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def expected(f, mean, root):
    """The exact expectation of a polynomial of a Gaussian."""
    places = itertools.product(range(len(POINTS)), repeat=root.shape[1])
    return sum(
        WEIGHTS[list(at)].prod() * f(mean + root @ POINTS[list(at)])  # numbers of one point each
        for at in places
    )


def ratio_of(f, y, covariance):
    found = algebraic(f, y)
    assert found is not None
    top, bottom = (quadratic(terms, len(y)) for terms in (found.top, found.bottom))
    assert top is not None
    assert bottom is not None
    return QuadraticRatio(top, bottom, y, covariance)


def value(terms, x):
    return sum(c * math.prod(x[j] for j in m) for m, c in terms.items())


ALGEBRAIC = {
    "shares": lambda t: (t**2).sum() / t.sum() ** 2,
    "mixed": lambda t: 3 - t[0] * t[1] / (2 + t[2]) + t[2] ** 3,
    "a mean less a square": lambda t: t[2] / t[0] - (t[1] / t[0]) ** 2,
    "a product of arrays": lambda t: t @ np.array([1.0, 2.0, 3.0]) / (1 / t[0]),
    "a number times an array": lambda t: (t[0] * np.array([1.0, 2.0])).sum(),
    "quotients by large numbers": lambda t: (t / 1e200).sum() + (t / 2e200)[0] + (t / 3e200)[1],
    "different denominators": lambda t: t[0] / t[1] - 1 / t[2] + (t[0] / t[1]) ** 2,
    "a number": lambda t: 7,
    "numbers of numpy": lambda t: np.float64(2) * t[0] + t[1] * np.int64(3),
    "one in an array": lambda t: t[:1] + t[1:2],
}


@pytest.mark.parametrize("f", ALGEBRAIC.values(), ids=ALGEBRAIC)
def test_arithmetic_is_found(f):
    found = algebraic(f, np.zeros(3))
    x = np.array([1.5, -2.0, 0.75])
    assert value(found.top, x) / value(found.bottom, x) == pytest.approx(np.ravel(f(x))[0])


@pytest.mark.parametrize(
    "f",
    [
        lambda t: np.log(t[0]),
        lambda t: t[0] if t[0] > 0 else t[1],
        lambda t: t[0] ** 0.5,
        lambda t: t[0] ** 20,
        lambda t: "a text",
        lambda t: t,
        lambda t: t[0] * math.inf,
        lambda t: t[9],
        lambda t: t[1] / (t[0] - t[0]),
    ],
)
def test_what_is_no_arithmetic_is_not_taken_for_it(f):
    assert algebraic(f, np.zeros(3)) is None


def test_variances_keep_degree_two():
    found = algebraic(ALGEBRAIC["a mean less a square"], np.zeros(3))
    assert max(map(len, found.top)) == max(map(len, found.bottom)) == 2


def test_shares_have_one_denominator():
    found = algebraic(lambda t: ((t / t.sum()) ** 2).sum(), np.zeros(30))
    assert len(found.top) == 30
    assert len(found.bottom) == 30 * 31 / 2  # the square of the sum, once


@pytest.mark.parametrize("powers", [(1, 0), (2, 0), (1, 1), (3, 0), (2, 1), (4, 1), (3, 3)])
def test_estimates_of_polynomials_are_unbiased(powers):
    root = np.array([[1.0, 0.0], [-0.6, 0.8]])
    mean, covariance = np.array([0.3, -1.2]), root @ root.T
    terms = {(0,) * powers[0] + (1,) * powers[1]: 2.0, (): 1.0}
    found = expected(lambda y: unbiased(terms, y, covariance), mean, root)
    assert found == pytest.approx(value(terms, mean), abs=1e-11)


def test_estimates_and_variances_of_quadratic_forms_are_unbiased():
    root = np.array([[2.0, 0.0], [1.0, 1.0]])
    mean, covariance = np.array([5.0, -4.0]), root @ root.T

    def f(t):
        return t[0] ** 2 - 3 * t[0] * t[1] + t[1] + 7

    assert expected(lambda y: ratio_of(f, y, covariance).estimate, mean, root) == pytest.approx(
        f(mean)
    )
    # far from zero, where the variance is never at its least
    second = expected(lambda y: ratio_of(f, y, covariance).estimate ** 2, mean, root)
    stated = expected(lambda y: ratio_of(f, y, covariance).standard_deviation ** 2, mean, root)
    assert stated == pytest.approx(second - f(mean) ** 2)


def square(t):
    return (t**2).sum()


def test_the_law_of_a_sum_of_squares_is_near_to_that_of_chi_squared():
    for k, length in itertools.product((1, 3, 30), (0.5, 3.0, 20.0)):
        mean = np.full(k, length / math.sqrt(k))
        law = scipy.stats.ncx2(k, length**2)
        for part in (0.025, 0.975):
            seen = law.ppf(part)
            y = mean * math.sqrt(seen / square(mean))  # other directions have the same law
            stated = ratio_of(square, y, np.eye(k)).at_most(length**2)
            # 95 % intervals that miss at most 6 % have half of that on either side
            assert stated == pytest.approx(part, abs=0.005)


def test_linear_forms_are_exact():
    y, covariance = np.array([10.0, 4.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    both = ratio_of(lambda t: t[0] - t[1] + 1, y, covariance)
    assert both.estimate == pytest.approx(7)
    assert both.standard_deviation == pytest.approx(math.sqrt(2))
    low, high = both.interval(0.95)
    half = scipy.stats.norm.ppf(0.975) * math.sqrt(2)
    assert (low, high) == pytest.approx((7 - half, 7 + half), abs=1e-5)


@pytest.mark.parametrize("y", [(10.0, 4.0), (1.0, 9.0), (-3.0, 4.0), (5.0, -6.0)])
def test_ratios_of_linear_forms_are_those_of_fieller(y):
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    found = ratio_of(lambda t: t[0] / t[1], np.array(y), covariance)
    low, high = found.interval(0.95)
    sign = math.copysign(1, y[1])
    x, g = (np.array([sign * one]) for one in y)
    known = fieller(x, g, covariance[None], scipy.stats.norm.ppf(0.975))
    assert found.estimate == pytest.approx(known.estimate[0])
    assert found.standard_deviation == pytest.approx(known.standard_deviation[0])
    assert (low, high) == pytest.approx((known.low[0], known.high[0]), abs=1e-5)


def test_nothing_is_known_where_the_denominator_may_be_zero():
    for bottom in (0.5, 1.0, 1.9, -1.9):  # standard deviations from zero
        found = ratio_of(lambda t: t[0] / t[1], np.array([20.0, bottom]), np.eye(2))
        assert found.interval(0.95) == (-math.inf, math.inf)
    found = ratio_of(lambda t: t[0] / t[1], np.array([20.0, 2.0]), np.eye(2))
    assert all(map(math.isfinite, found.interval(0.95)))


@pytest.mark.parametrize("unit", [1e-6, 1e9])
def test_units_scale_intervals(unit):
    """Counts, sums and sums of squares have noise of very different sizes, all of which counts."""
    y, B = np.array([100.0, 60.0, 50.0]), np.array([[2.0, 0, 0], [1, 1, 0], [1, 0.5, 0.5]])
    units = np.array([1, unit, unit**2])
    known = ratio_of(spread, y, B @ B.T).interval(0.95)
    found = ratio_of(spread, units * y, np.outer(units, units) * (B @ B.T)).interval(0.95)
    assert found == pytest.approx([unit**2 * end for end in known], rel=1e-3)


def test_numbers_without_noise_stay_what_they_are():
    covariance = np.diag([4.0, 0.0])
    y = np.array([3.0, 10.0])
    found = ratio_of(lambda t: t[0] / t[1], y, covariance)
    assert found.standard_deviation == pytest.approx(0.2)
    assert ratio_of(lambda t: t[1] ** 2, y, covariance).interval(0.95) == (100, 100)


def test_squares_are_never_negative():
    low, high = ratio_of(square, np.array([0.01]), np.eye(1)).interval(0.95)
    assert low == pytest.approx(0, abs=1e-4)
    assert low <= 0 < high


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_ends_are_where_the_tests_begin_to_refuse(level):
    found = ratio_of(ALGEBRAIC["shares"], np.array([60.0, 30.0, 80.0]), 16 * np.eye(3))
    low, high = found.interval(level)
    # within 1 % of the chance to miss: far less than what 94 in 100 in place of 95 allow
    assert found.at_most(high) == pytest.approx((1 - level) / 2, rel=0.01)
    assert 1 - found.at_most(low) == pytest.approx((1 - level) / 2, rel=0.01)


def noise_of(k, kind, rng):
    if kind == "independent":
        return 25 * np.eye(k)
    B = rng.standard_normal((k, k + 2))
    return 25 * B @ B.T / k


def cross(t):
    return t[0] * t[3] / (t[1] * t[2])


def spread(t):
    return ALGEBRAIC["a mean less a square"](t)


DESIGNS = [
    *[(square, np.full(k, m)) for k in (1, 4, 20) for m in (2.5, 10.0, 100.0)],
    *[(ALGEBRAIC["shares"], m * np.arange(1.0, 9)) for m in (10, 30, 100)],
    *[(cross, np.array([100.0, 60, 40, 80]) * m) for m in (1, 10)],
    *[(spread, np.array([400.0, 200, 160]) * m) for m in (1, 10)],
    *[(lambda t: t[0] * t[1] - t[2], np.array([1.0, 1, 0]) * m) for m in (5, 20)],
    *[(lambda t: (t @ t) - 2 * t[0] * t[1:].sum(), np.linspace(-1, 1, 12) * m) for m in (5, 50)],
]


@pytest.mark.parametrize("kind", ["independent", "correlated"])
@pytest.mark.parametrize(("f", "mean"), DESIGNS)
def test_intervals_cover_as_often_as_they_say(f, mean, kind):
    """A test refuses the truth in at most 6 of 100 cases; a false alarm has a chance of 1e-6."""
    rng, draws = np.random.default_rng(len(mean)), 300
    covariance = noise_of(len(mean), kind, rng)
    root, truth = np.linalg.cholesky(covariance), float(f(mean))
    tails = np.array(
        [
            ratio_of(f, mean + root @ rng.standard_normal(len(mean)), covariance).at_most(truth)
            for _ in range(draws)
        ]
    )
    missed = int(draws - np.sum((tails > 0.025) & (tails < 0.975)))
    assert missed <= scipy.stats.binom(draws, 0.06).ppf(1 - 1e-6)


def test_too_small_a_covariance_is_seen_by_the_same_test():
    rng, draws, mean = np.random.default_rng(0), 500, np.full(4, 10.0)
    tails = np.array(
        [
            ratio_of(square, mean + rng.standard_normal(4), np.eye(4) / 4).at_most(400.0)
            for _ in range(draws)
        ]
    )
    missed = int(draws - np.sum((tails > 0.025) & (tails < 0.975)))
    assert missed > scipy.stats.binom(draws, 0.06).ppf(1 - 1e-6)


def near_to(f, root):
    return quadratic_near(lambda places: np.array([f(x) for x in places.T]), root)


def test_the_nearby_quadratic_function_of_a_quadratic_one_is_itself():
    A = np.array([[1.0, 2.0, 0.0], [2.0, -1.0, 0.5], [0.0, 0.5, 3.0]])
    own = Quadratic(A, np.array([1.0, 0.0, -2.0]), 4.0)
    near, far = near_to(own.value, np.eye(3))
    assert near.square == pytest.approx(A)
    assert near.linear == pytest.approx(own.linear)
    assert (near.constant, far) == pytest.approx((4.0, 0.0), abs=1e-12)
    assert near_to(lambda x: math.exp(x[0]), np.eye(1))[1] > 1
    assert near_to(own.value, 2 * np.eye(3))[0].square == pytest.approx(4 * A)


def test_functions_are_compared_where_the_noise_may_be():
    assert near_to(lambda x: float(x[0] > 1.5), np.eye(1))[1] == 1  # 7 in 100 are beyond
    assert near_to(lambda x: float(x[0] > 3), np.eye(1))[1] == 0
    assert near_to(lambda x: x[0] if x[0] > -1.5 else math.nan, np.eye(1))[1] == math.inf
