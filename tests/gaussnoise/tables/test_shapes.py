"""Tests of the shapes of synthetic numbers, with margins that are proven.

N fractions of multiples of √2 are at most ``D = (3 + 3.9 log N) / N`` from evenly spread, in every
interval (Kuipers & Niederreiter 1974, theorem 2.3.4), and the mean of an increasing function of
them, with values in [0, 1], as far from its integral at most (Koksma).
"""

import math

import numpy as np
import pytest
from scipy import integrate

from gaussnoise.tables.release.shapes import beta, even_shares, exponential, falling_rates

N = 20_000
SHARES = even_shares(N, 0)
MARGIN = (3 + 3.9 * math.log(N)) / N
MEANS = (0.0, 1e-12, 1e-3, 0.2, 0.499_999, 0.5, 0.500_001, 0.8, 0.999, 1 - 1e-12, 1.0)


@pytest.mark.parametrize("mean", MEANS)
def test_the_exponential_has_its_mean_and_stays_inside(mean):
    numbers = exponential(np.full(N, mean), SHARES)
    assert numbers.min() >= 0
    assert numbers.max() <= 1
    assert abs(numbers.mean() - mean) <= MARGIN
    # near an end, the mean is as exact as its distance to the end
    assert min(numbers.mean(), 1 - numbers.mean()) <= 2 * min(mean, 1 - mean) + 1e-15


@pytest.mark.parametrize("mean", [0.01, 0.2, 0.4, 0.5])
def test_the_exponential_has_the_density_of_its_rate(mean):
    (rate,) = falling_rates(np.array([mean]))
    mass, _ = integrate.quad(lambda t: math.exp(-rate * t), 0, 1)
    first, _ = integrate.quad(lambda t: t * math.exp(-rate * t), 0, 1)
    assert first / mass == pytest.approx(mean, rel=1e-9)
    for flipped in (False, True):
        numbers = exponential(np.full(N, 1 - mean if flipped else mean), SHARES)
        numbers = np.sort(1 - numbers if flipped else numbers)
        below = np.linspace(0, 1, 101)
        share = -np.expm1(-rate * below) / -np.expm1(-rate) if rate else below
        assert np.abs(np.searchsorted(numbers, below) / N - share).max() <= MARGIN


@pytest.mark.parametrize(
    ("mean", "square"), [(0.4, 0.2), (0.1, 0.011), (0.5, 1 / 3), (0.9, 0.89), (0.3, 0.3 - 1e-9)]
)
def test_the_beta_shape_has_its_mean_and_its_squares(mean, square):
    numbers = beta(np.full(N, mean), np.full(N, square), SHARES)
    assert numbers.min() >= 0
    assert numbers.max() <= 1
    assert abs(numbers.mean() - mean) <= MARGIN
    assert abs((numbers**2).mean() - square) <= MARGIN


@pytest.mark.parametrize("mean", [0.0, 1e-300, 0.3, 1.0])
def test_without_a_variance_every_number_is_the_mean_and_with_the_largest_it_is_an_end(mean):
    few, mean_of = SHARES[:50], np.full(50, mean)
    assert set(beta(mean_of, mean_of**2, few)) == {mean}
    assert set(beta(mean_of, mean_of**2 / 2, few)) == {mean}
    ends = beta(mean_of, mean_of, few)
    assert (np.minimum(ends, 1 - ends) <= 1e-12).all()
    assert set(beta(mean_of, np.minimum(mean_of, mean_of**2 * (1 + 1e-15)), few)) == {mean}


@pytest.mark.parametrize("column", range(21))
def test_shares_are_spread_evenly_and_inside_also_of_two_columns_together(column):
    shares = even_shares(N, column)
    assert 0 < shares.min() < shares.max() < 1
    assert np.histogram(shares[7000:8000], 10, (0, 1))[0] == pytest.approx(100, abs=20)
    if 0 < column < 20:
        together = np.histogram2d(shares, SHARES, 5, ((0, 1), (0, 1)))[0]
        assert together == pytest.approx(N / 25, rel=0.2)
