"""Fitted slopes of estimators' private error, in n, d, ε, R and k, beside the minimax rates of the
sources.
"""

import math

import numpy as np
import pytest
from scipy import stats

import gaussnoise as gn
from gaussnoise.estimators.moments import best_radius, noise_of_ball

pytestmark = pytest.mark.benchmark
E = gn.estimators
TRIALS = 200


def slope(sizes, errors):
    """Of log error against log size, with half the width of its 99 % interval."""
    fit = stats.linregress(np.log(sizes), np.log(errors))
    return fit.slope, stats.t.isf(0.005, len(sizes) - 2) * fit.stderr


def rms(draw):
    return math.sqrt(np.mean([draw() ** 2 for _ in range(TRIALS)]))


def private_error(privacy, n=4000, radius=100.0):
    """What privacy adds to the sample mean of normal data."""
    x = np.random.default_rng(0).normal(size=n)
    return rms(
        lambda: float(E.gaussian_mean(x, privacy, sigma=1, radius=radius).estimate) - x.mean()
    )


@pytest.mark.parametrize(
    ("name", "sizes", "error", "expected", "slack"),
    [
        # the clipping radius grows like √log n
        (
            "n, pure",
            [2000, 8000, 32_000, 128_000],
            lambda n: private_error(gn.PureDP(1), n),
            -1.0,
            0.1,
        ),
        (
            "n, zCDP",
            [2000, 8000, 32_000, 128_000],
            lambda n: private_error(gn.zCDP(0.1), n),
            -1.0,
            0.1,
        ),
        ("ε", [0.8, 1.6, 3.2, 6.4], lambda e: private_error(gn.PureDP(e)), -1.0, 0.1),
        ("ρ", [0.05, 0.2, 0.8, 3.2], lambda r: private_error(gn.zCDP(r)), -0.5, 0.05),
        ("R", [1e1, 1e3, 1e6, 1e9], lambda R: private_error(gn.PureDP(2), radius=R), 0.0, 0.05),
    ],
)
def test_normal_means(name, sizes, error, expected, slack):
    found, half = slope(sizes, [error(size) for size in sizes])
    print(f"slope in {name}: {found:.3f} ± {half:.3f}, rate {expected:g}")
    assert abs(found - expected) <= slack + half


@pytest.mark.parametrize(
    ("privacy", "expected"), [(gn.PureDP(1), 1.0), (gn.zCDP(0.5), 0.5)], ids=repr
)
def test_means_in_a_ball_by_dimension(privacy, expected):
    """ℓ2 error d/(nε) of pure privacy against √d/n of zCDP: equal at d = 1, and worlds apart at d =
    256.
    """

    def error(d):
        x = np.zeros((500, d))
        return math.sqrt(
            np.mean(
                [
                    np.square(E.clipped_mean(x, privacy, center=0, radius=1).estimate).sum()
                    for _ in range(20)
                ]
            )
        )

    sizes = [1, 4, 16, 64, 256]
    found, half = slope(sizes, [error(d) for d in sizes])
    print(f"slope in d, {privacy}: {found:.3f} ± {half:.3f}, rate {expected:g}")
    assert abs(found - expected) <= 0.1 + half
    kind = "pure" if expected == 1 else "approximate"
    rates = [math.sqrt(E.rates("bounded", 500, d=d, epsilon=1.0)[kind].upper) for d in sizes]
    assert slope(sizes, rates)[0] == pytest.approx(expected)


@pytest.mark.parametrize("k", [2.0, 4.0, 8.0])
def test_heavy_tails_by_the_moment_that_is_known(k):
    """The distribution that the clipping radius is worst for: two points, whose moment is one."""

    def error(n):
        privacy = gn.zCDP(0.1)
        t = best_radius(k, 1.0, noise_of_ball(1, 0.1, n, pure=False))
        far = t * k / (k - 1)
        odds = far**-k
        x = np.where(
            np.arange(n) < round(n * odds), far, 0.0
        )  # as many as expected: no sampling error
        return rms(
            lambda: float(E.truncated_mean(x, privacy, moment=1, order=k).estimate) - x.mean()
        )

    sizes = [2000, 8000, 32_000, 128_000, 512_000]
    found, half = slope(sizes, [error(n) for n in sizes])
    expected = -(k - 1) / k
    print(f"slope in n, k = {k:g}: {found:.3f} ± {half:.3f}, rate {expected:.3f}")
    assert abs(found - expected) <= 0.06 + half
    rates = [E.rates("moments", n, d=1, epsilon=0.01, order=k)["KL"] for n in sizes]
    assert slope(
        sizes, [math.sqrt(rate.lower - 1 / n) for rate, n in zip(rates, sizes, strict=True)]
    )[0] == pytest.approx(expected)


def test_densities():
    """Integrated squared error on one dimension, in n, where privacy dominates: −2/(b+1) = −1."""

    def error(n):
        x = np.random.default_rng(0).beta(2, 2, size=n)
        found = E.histogram_density(x, gn.PureDP(0.02), lipschitz=6).estimate
        at = (np.arange(4000) + 0.5) / 4000
        return np.square(found[(at * len(found)).astype(int)] - stats.beta.pdf(at, 2, 2)).mean()

    sizes = [2000, 8000, 32_000, 128_000, 512_000]
    found, half = slope(sizes, [np.mean([error(n) for _ in range(20)]) for n in sizes])
    print(f"slope of the integrated squared error in n: {found:.3f} ± {half:.3f}, rate -1")
    assert abs(found + 1) <= 0.15 + half
