"""How the error of people's means falls, against the rates of Agarwal et al. (2024):
``pytest -m benchmark -s -n 0``.

Error less that of the same people's mean without privacy, so that sampling does not hide noise and
bias. Each slope is of the root mean square error against one number, on logarithmic scales; its
interval is by resampling of the trials.
"""

import numpy as np
import pytest

import gaussnoise as gn

pytestmark = pytest.mark.benchmark

TRIALS = 100


def symmetric_power(rng, shape, k):
    """A law with moments just above k: its tail falls like x^−(k + 0.5), and its k-th moment is
    one.
    """
    order = k + 0.5
    size = rng.random(shape) ** (-1 / order) * rng.choice((-1.0, 1.0), shape)
    return size * ((order - k) / order) ** (1 / k)


def private_error(n, m, epsilon, k, seed):
    rng, found = np.random.default_rng(seed), []
    for _ in range(TRIALS):
        averages = sum(symmetric_power(rng, n, k) for _ in range(m)) / m
        estimate = gn.estimators.person_level_mean(
            list(averages[:, None]), gn.PureDP(epsilon), samples=m, order=k, radius=20.0
        )
        found.append(estimate.estimate - averages.mean())
    return np.abs(found)


def slope(places, errors, seed=0):
    """Least-squares slope of the log of the root mean square error, and a 95% interval by
    resampling trials.
    """
    rng, x = np.random.default_rng(seed), np.log(places)

    def fit(samples):
        return np.polyfit(x, [np.log(np.mean(np.square(e))) / 2 for e in samples], 1)[0]

    again = [fit([rng.choice(e, len(e)) for e in errors]) for _ in range(400)]
    return fit(errors), *np.quantile(again, [0.025, 0.975])


def show(name, expected, found):
    print(
        f"{name}: slope {found[0]:+.2f} ({found[1]:+.2f}, {found[2]:+.2f}), the source's rate "
        f"{expected}"
    )


def scaled(k, **series):
    """Errors of a series in which one of n, m, epsilon varies."""
    fixed = {"n": 1000, "m": 16, "epsilon": 2.0} | {
        name: v for name, v in series.items() if np.isscalar(v)
    }
    (name, values), *_ = [(name, v) for name, v in series.items() if not np.isscalar(v)]
    return values, [private_error(**(fixed | {name: v}), k=k, seed=i) for i, v in enumerate(values)]


@pytest.mark.parametrize(
    ("title", "k", "series", "expected", "within"),
    [
        ("n, k = 2", 2, {"n": (500, 1000, 2000, 4000)}, "-1/2", (-0.75, -0.3)),
        ("n, k = 4, m = 1", 4, {"n": (500, 1000, 2000, 4000), "m": 1}, "-3/4 to -1", (-1.2, -0.6)),
        ("n, k = 8, m = 64", 8, {"n": (500, 1000, 2000, 4000), "m": 64}, "-1", (-1.2, -0.75)),
        ("epsilon, k = 2", 2, {"epsilon": (1.0, 2.0, 4.0, 8.0)}, "-1/2", (-0.75, -0.3)),
        (
            "epsilon, k = 8, m = 64",
            8,
            {"epsilon": (1.0, 2.0, 4.0, 8.0), "m": 64},
            "-1",
            (-1.2, -0.75),
        ),
        ("m, k = 2", 2, {"m": (1, 4, 16, 64)}, "-1/2", (-0.65, -0.35)),
        ("m, k = 8", 8, {"m": (1, 4, 16, 64)}, "-1/2", (-0.65, -0.3)),
    ],
)
def test_slopes_in_one_dimension(title, k, series, expected, within):
    found = slope(*scaled(k, **series))
    print()
    show(title, expected, found)
    assert within[0] < found[0] < within[1]
    assert found[2] - found[1] < 0.6


def test_the_error_falls_with_the_order_of_the_moment():
    errors = {
        k: np.sqrt(np.mean(np.square(private_error(2000, 4, 1.0, k, seed=k)))) for k in (2, 3, 4, 8)
    }
    print("\nk: " + ", ".join(f"{k}: {e:.4f}" for k, e in errors.items()))
    assert errors[8] < errors[4] < errors[2]


def test_slopes_of_the_proven_error_where_people_are_many():
    """Bias and noise without simulation, from 10^4 to 10^7 people: beyond logarithms, and in all
    regimes.
    """
    from gaussnoise.estimators.location import Search
    from gaussnoise.estimators.person import _clip, moments

    def proven(n, m, k, d=1, epsilon=0.5):
        known = moments("benchmark", d, m, 1.0, k)
        off = (
            Search(np.zeros(d), 1.0, True, known.deviation, 1.0, 0.0, 0.01, "variance").error
            * d**0.5
        )
        rounds = [_clip("mean", known, n, epsilon, off, 0.01, pure=d == 1)]
        for _ in range(3):
            rounds.append(_clip("mean", known, n, epsilon, rounds[-1].error, 0.01, pure=d == 1))
        return rounds[-1].bias + rounds[-1].noise

    def fit(places, errors):
        return np.polyfit(np.log(places), np.log(errors), 1)[0]

    people, many = np.geomspace(1e4, 1e7, 7).astype(int), np.geomspace(1, 1e4, 9).astype(int)
    print()
    for k in (2, 3, 4, 8):
        slopes = {m: fit(people, [proven(int(n), m, k) for n in people]) for m in (1, 100)}
        print(
            f"n, k = {k}: m = 1 {slopes[1]:+.3f} (source {1 / k - 1:+.3f}), m = 100 "
            f"{slopes[100]:+.3f}"
        )
        assert abs(slopes[1] - (1 / k - 1)) < 0.08
        print(
            f"m, k = {k}, n = 10^5: {fit(many, [proven(10**5, int(m), k) for m in many]):+.3f} "
            "(source -0.5 or less)"
        )
    for k in (2, 4):
        dims = np.array([1, 4, 16, 64])
        found = fit(dims[1:], [proven(10**6, 16, k, int(d)) for d in dims[1:]])
        print(f"d, k = {k}, n = 10^6, m = 16: {found:+.3f} (source between +0.5 and +1)")
        assert 0.4 < found < 1.05


def test_a_person_with_many_records_needs_less_noise_than_a_person_with_one():
    item = private_error(1000, 1, 2.0, 4, seed=1)
    person = private_error(1000, 64, 2.0, 4, seed=2)
    ratio = np.sqrt(np.mean(np.square(item)) / np.mean(np.square(person)))
    print(f"\nerror with one record each over that with 64: {ratio:.1f}")
    assert ratio > 3


def test_the_proven_error_of_a_choice_from_a_cover_falls_with_people_and_privacy():
    from gaussnoise.estimators.cover import _cover
    from gaussnoise.estimators.location import Search
    from gaussnoise.estimators.person import moments
    from gaussnoise.privacy.laplace import NoisyMaximum

    def proven(n, d, epsilon=1.0, m=16, k=4):
        known = moments("benchmark", d, m, 1.0, k)
        hunt = Search(np.zeros(d), epsilon / 4, True, known.deviation, 20.0, 0.0, 0.005, "variance")
        return _cover("benchmark", known, hunt, n, NoisyMaximum(1, epsilon), 0.005, None)

    print()
    for d in (1, 2, 3, 4):
        found = [proven(n, d) for n in (1000, 4000, 16000)]
        print(f"d = {d}: " + ", ".join(f"{c.error:.3f} of {c.cells**d} candidates" for c in found))
        assert found[2].error < found[1].error < found[0].error
        assert proven(4000, d, epsilon=4.0).error < found[1].error
    for d in (1, 2):  # where no grid is too large
        assert np.log(proven(16000, d).error / proven(1000, d).error) / np.log(16) < -0.45
