import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from gaussnoise.errors import ParameterError
from gaussnoise.numerics.intervals import Contrast, Contrasts, quantile

LEVELS = st.floats(0.001, 0.9999)
FALSE_ALARM = 1e-6


def correlated(k, correlation):
    """Return a covariance with unequal variances and one common correlation."""
    sd = np.arange(1.0, k + 1)
    return np.outer(sd, sd) * (correlation + (1 - correlation) * np.eye(k))


def covered(covariance, level, simultaneous, scale=1.0, repetitions=4000):
    """Return how often each interval, and all of them, contained the truth; ``scale`` ≠ 1 is a
    wrong standard deviation.
    """
    rng = np.random.default_rng(7)
    k = len(covariance)
    truth = np.linspace(-5, 5, k)
    # singular covariances have no Cholesky factor
    eigenvalues, vectors = np.linalg.eigh(covariance)
    noise = (
        rng.standard_normal((repetitions, k)) @ (vectors * np.sqrt(np.maximum(eigenvalues, 0))).T
    )
    low, high = np.stack(
        [
            Contrasts(truth + eta, scale**2 * covariance).confidence_interval(level, simultaneous)
            for eta in noise
        ]
    ).transpose(1, 0, 2)
    inside = (low <= truth) & (truth <= high)
    return inside.sum(axis=0), inside.all(axis=1).sum()


def plausible(hits, rate, repetitions=4000):
    return (
        binom.ppf(FALSE_ALARM, repetitions, rate)
        <= hits
        <= binom.isf(FALSE_ALARM, repetitions, rate)
    )


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_quantiles_are_gaussian(level):
    assert quantile(level) == pytest.approx(norm.ppf((1 + level) / 2), rel=1e-14)
    assert quantile(level, 7) == pytest.approx(norm.ppf((1 + level ** (1 / 7)) / 2), rel=1e-12)


def test_quantiles_of_many_intervals_keep_their_digits():
    # 1 − (1 − x)^(1/m) = (x + x²/2 + …)/m, which 1 − level^(1/m) would lose to rounding
    assert quantile(1 - 1e-6, 10**8) == pytest.approx(
        norm.isf((1e-6 + 5e-13) / 10**8 / 2), rel=1e-11
    )
    assert math.isfinite(quantile(0.999999, 10**12))


@settings(derandomize=True, deadline=None)
@given(LEVELS, st.integers(1, 10**6))
def test_simultaneous_quantiles_lie_between_single_ones_and_bonferronis(level, count):
    assert quantile(level) <= quantile(level, count) * (1 + 1e-12)
    assert quantile(level, count) <= norm.isf((1 - level) / (2 * count)) * (1 + 1e-9)


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, float("nan")])
@pytest.mark.parametrize("simultaneous", [False, True])
def test_levels_outside_the_unit_interval_are_refused(level, simultaneous):
    contrasts = Contrasts(np.zeros(2), np.eye(2))
    with pytest.raises(ParameterError, match=r"expected 0 < level < 1, got .*; hint: 0\.95"):
        contrasts.confidence_interval(level, simultaneous)


def test_standard_deviations_are_roots_of_the_diagonal():
    assert Contrasts(np.zeros(3), correlated(3, 0.4)).standard_deviation == pytest.approx([1, 2, 3])


def test_one_contrast_is_a_contrast():
    several, one = Contrasts(np.array([4.0]), np.array([[9.0]])), Contrast(4.0, 3.0)
    for simultaneous in (False, True):
        assert several.confidence_interval(0.8, simultaneous) == pytest.approx(
            one.confidence_interval(0.8)
        )


def test_each_is_the_contrast_of_its_own():
    contrasts = Contrasts(np.array([4.0, -1.0]), correlated(2, -0.3))
    low, high = contrasts.confidence_interval(0.8)
    for j in range(2):
        alone = Contrast(
            contrasts.estimate[j], contrasts.standard_deviation[j]
        ).confidence_interval(0.8)
        assert (low[j], high[j]) == pytest.approx(alone)


def test_none_at_all():
    low, high = Contrasts(np.zeros(0), np.zeros((0, 0))).confidence_interval(simultaneous=True)
    assert low.shape == high.shape == (0,)


def test_exact_values_have_intervals_of_no_width():
    low, high = Contrasts(np.array([3.0, 5.0]), np.diag([0.0, 1.0])).confidence_interval()
    assert low[0] == high[0] == 3
    assert low[1] < 5 < high[1]


@pytest.mark.parametrize("correlation", [0.0, 0.6, 1.0, -0.24])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_every_interval_covers_as_often_as_it_says(correlation, level):
    each, _ = covered(correlated(5, correlation), level, simultaneous=False)
    assert all(plausible(hits, level) for hits in each)


@pytest.mark.parametrize("correlation", [0.0, 0.6, 1.0, -0.24])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_simultaneous_intervals_cover_together(correlation, level):
    _, together = covered(correlated(5, correlation), level, simultaneous=True)
    assert together >= binom.ppf(FALSE_ALARM, 4000, level)
    if correlation == 0:  # Šidák's inequality is an equality
        assert plausible(together, level)
    if correlation == 1:  # one Gaussian, with an interval for five
        assert plausible(together, level ** (1 / 5))


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_single_intervals_do_not_cover_together(level):
    _, together = covered(correlated(5, 0.0), level, simultaneous=False)
    assert not plausible(together, level)


@pytest.mark.parametrize("scale", [0.8, 1.25])
def test_the_simulation_sees_a_wrong_standard_deviation(scale):
    each, _ = covered(correlated(5, 0.6), 0.9, False, scale)
    assert not any(plausible(hits, 0.9) for hits in each)
    _, together = covered(correlated(5, 0.0), 0.9, True, scale)
    assert not plausible(together, 0.9)
