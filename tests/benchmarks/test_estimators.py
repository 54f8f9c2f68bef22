"""Errors of estimators against published ones:
``pytest tests/benchmarks/test_estimators.py -m benchmark -s -n 0``.

References: the trimmed means over 100 runs that CoinPress's published code stores
(github.com/twistedcubic/coin-press), for standard normal data and ρ = 0.5. Its covariances come
from ``W = X A`` and ``A⁻¹ Z A⁻¹`` with a matrix A that is no longer symmetric after two steps:
``X Aᵀ`` and ``A⁻¹ Z A⁻ᵀ`` would be right. A repaired copy has errors of 0.251 (n = 3000, t = 3),
0.234 (n = 3000, t = 5) and 0.128 (n = 8000, t = 3), where one without has 0.326, 0.486, 0.135.
"""

import time

import numpy as np
import pytest
from scipy.stats import trim_mean

import gaussnoise as gn
from gaussnoise.estimators import coinpress

pytestmark = pytest.mark.benchmark

RHO = gn.zCDP(0.5)
TRIALS = 100


def errors(run, trials=TRIALS):
    """The trimmed mean of the errors, as in the reference, and its standard error."""
    found = np.array([run(np.random.default_rng(seed)) for seed in range(trials)])
    return trim_mean(found, 0.1), found.std() / np.sqrt(trials)


def mean_error(n, radius, steps, variances):
    def run(rng):
        x = rng.normal(size=(n, len(variances))) * np.sqrt(variances)
        known = None if (variances == 1).all() else np.diag(variances)
        found = gn.estimators.coinpress_mean(x, RHO, radius=radius, steps=steps, covariance=known)
        return np.linalg.norm(found.estimate)

    return run


@pytest.mark.parametrize(
    ("n", "radius", "steps", "reference"),
    [
        (1000, 10, 1, 1.0664),
        (1000, 10, 2, 0.2806),
        (1000, 10, 3, 0.2717),
        (1000, 10, 4, 0.2707),
        (1000, 10, None, 0.2707),
        (10_000, 10, 1, 0.1250),
        (10_000, 10, 2, 0.0732),
        (10_000, 10, None, 0.0732),
        (1000, 1e4, 2, 43.2),
        (1000, 1e4, 4, 0.471),
        (1000, 1e4, 10, 0.274),
        (1000, 1e4, None, 0.274),
    ],
)
def test_means_meet_the_published_errors(n, radius, steps, reference):
    """Expected: at most as large, but for Monte Carlo error; n = 1000, t = 4 and the largest radius
    3 % larger.
    """
    found, error = errors(
        mean_error(n, radius * np.sqrt(50), steps, np.ones(50)), TRIALS if n < 5000 else 40
    )
    print(
        f"\nmean, n = {n}, r = {radius:g} √d, t = {steps}: {found:.4f} ± {error:.4f}, published "
        f"{reference}"
    )
    assert found <= 1.05 * reference + 4 * error


@pytest.mark.parametrize(
    ("n", "steps", "reference"),
    [
        (3000, 1, 2.843),
        (3000, 3, 0.3060),
        (3000, None, 0.3060),
        (8000, 1, 1.340),
        (8000, 3, 0.1328),
        (8000, None, 0.1328),
    ],
)
def test_covariances_meet_the_published_errors(n, steps, reference):
    """Expected: smaller; half of it in one step, since noise above the diagonal has half the
    variance.
    """

    def run(rng):
        found = gn.estimators.coinpress_covariance(
            rng.normal(size=(n, 10)), RHO, largest=10 * np.sqrt(10), steps=steps
        )
        return np.linalg.norm(found.estimate - np.eye(10))

    found, error = errors(run)
    print(f"\ncovariance, n = {n}, t = {steps}: {found:.4f} ± {error:.4f}, published {reference}")
    assert found <= reference + 4 * error


@pytest.mark.parametrize("n", [1000, 3000, 10_000])
def test_ellipsoids_beat_balls_where_the_covariance_is_far_from_round(n, monkeypatch):
    """Expected: a third of the noise of a ball that knows Σ, and an eighth of one that knows Σ <=
    I.

    Eigenvalues 1/i², d = 50, r = 10: noise alone is compared, as sampling is the same for all. By
    traces alone half: ``tr Σ^½`` against ``√(d tr Σ)``; but the largest eigenvalue makes the tail,
    hence the radius, of the ball longer.
    """
    variances = 1 / np.arange(1, 51.0) ** 2
    trials = 40 if n < 5000 else 15

    def noise(known, shaped=True):
        def run(rng):
            x = rng.normal(size=(n, 50)) * np.sqrt(variances)
            with monkeypatch.context() as patch:
                plan = coinpress.Plan
                if not shaped:
                    patch.setattr(coinpress, "Plan", lambda *given: plan(*given, shaped=False))
                found = gn.estimators.coinpress_mean(x, RHO, radius=10, covariance=known)
            return np.linalg.norm(found.estimate - x.mean(axis=0))

        return errors(run, trials)

    ours, ball, unknown = (
        noise(np.diag(variances)),
        noise(np.diag(variances), shaped=False),
        noise(None),
    )
    print(
        f"\neigenvalues 1/i², d = 50, n = {n}: distance to the sample's mean, ± its standard error"
    )
    for name, (found, error) in {
        "ellipsoid": ours,
        "ball, Σ known": ball,
        "ball, Σ <= I": unknown,
    }.items():
        print(f"  {name:>14}: {found:.5f} ± {error:.5f}, {found / ours[0]:.2f} times")
    print(
        "  second by traces alone: "
        f"{np.sqrt(50 * variances.sum()) / np.sqrt(variances).sum():.2f} times"
    )
    assert 2.5 * ours[0] < ball[0]
    assert 2 * ball[0] < unknown[0]


def test_a_mean_in_a_thousand_dimensions_costs_few_gram_matrices():
    """Expected: about 8 Gram matrices of the records, without imports.

    Records are mapped, tested and summed twice, which takes half of it; the noise and the lattice
    are computed once for both steps.
    """
    x = np.random.default_rng(0).normal(size=(20_000, 1000))

    def processor(run):
        start = time.process_time()
        run()
        return time.process_time() - start

    gn.estimators.coinpress_mean(x[:3000, :5], RHO, radius=1000)  # imports
    unit = min(processor(lambda: x.T @ x) for _ in range(3))
    taken = processor(lambda: gn.estimators.coinpress_mean(x, RHO, radius=1000))
    print(f"\nmean of 20,000 x 1000: {taken:.3g} s, {taken / unit:.3g} Gram matrices")
    assert taken <= 12 * unit
