"""CoinPress: tails against exact laws, sensitivities by brute force, noise against the optimum, and
simulated intervals.
"""

import itertools
import math

import numpy as np
import pytest
from cases import one_test_of
from scipy import integrate, stats

import gaussnoise as gn
from gaussnoise.errors import DataError, ParameterError
from gaussnoise.estimators import coinpress, covariance, samples, second_moment
from gaussnoise.estimators.coinpress import Plan
from gaussnoise.estimators.covariance import CovariancePlan
from gaussnoise.estimators.second_moment import DIAGONAL, OFF, MomentLattice
from gaussnoise.estimators.steps import NoisyMean
from gaussnoise.estimators.tails import SquaredLength
from gaussnoise.privacy.budget import Budget

MEAN, COVARIANCE = gn.estimators.coinpress_mean, gn.estimators.coinpress_covariance
UNEVEN = np.array([[2.0, 0.6, 0.0], [0.6, 0.5, 0.1], [0.0, 0.1, 0.05]])


def normal(n, d, seed=0, at=0.0):
    return np.random.default_rng(seed).normal(size=(n, d)) + at


# Tails


@pytest.mark.parametrize("d", [1, 3, 50])
@pytest.mark.parametrize("log_odds", [1.0, 5.0, 20.0])
def test_tails_are_above_the_exact_quantile_and_below_laurent_and_massart(d, log_odds):
    found = SquaredLength(np.ones(d)).quantile(log_odds)
    assert stats.chi2.isf(math.exp(-log_odds), d) <= found
    assert found <= (d + 2 * math.sqrt(d * log_odds) + 2 * log_odds) * (1 + 1e-3)


@pytest.mark.parametrize("shift", [0.1, 3.0, 1e5])
def test_tails_hold_for_vectors_that_are_moved(shift):
    found = SquaredLength(np.ones(4), shift).quantile(6.0)
    exact = stats.ncx2.isf(math.exp(-6.0), 4, shift**2) if shift < 1e4 else (shift + 2.8) ** 2
    assert exact <= found <= 1.5 * exact


@pytest.mark.parametrize(("d", "q"), [(1, 4.0), (5, 12.0), (50, 90.0)])
def test_the_excess_is_above_the_exact_one_and_not_by_much(d, q):
    exact = integrate.quad(lambda x: stats.chi2.sf(x, d), q, np.inf)[0]
    assert exact <= SquaredLength(np.ones(d)).excess(q) <= 12 * exact
    length = integrate.quad(lambda x: stats.chi.sf(x, d), math.sqrt(q), np.inf)[0]
    assert length <= SquaredLength(np.ones(d)).excess_length(q)


def test_a_larger_covariance_has_larger_tails():
    small, large = SquaredLength(np.array([1.0, 0.5])), SquaredLength(np.array([1.0, 0.7]))
    assert small.quantile(5.0) < large.quantile(5.0)
    assert small.excess(4.0) < large.excess(4.0)


@pytest.mark.parametrize("q", [2.0, 6.0])
def test_clipping_takes_at_most_its_share_off_the_covariance_in_every_direction(q):
    step = CovariancePlan(3, 1000, [1.0], 10.0, 0.01)._tried(1.0, 10.0)
    kept = np.interp(q, [s.squared_radius for s in step], [s.kept for s in step])
    for variances in ([1.0, 1.0, 1.0], [1.0, 0.3, 0.01]):
        x = normal(400_000, 3) * np.sqrt(variances)
        short = x * np.minimum(1, np.sqrt(q / (x * x).sum(axis=1)))[:, None]
        share = (short * short).mean(axis=0) / np.array(variances)
        assert (share >= kept - 0.01).all()
        assert (share <= 1.01).all()
        if variances[-1] == 1:
            assert share == pytest.approx(kept, abs=0.01)  # with equality for the identity


# Integers


@pytest.mark.parametrize("d", [1, 2, 3])
def test_no_two_integer_rows_differ_by_more_than_the_sensitivity(d, monkeypatch):
    monkeypatch.setattr(second_moment, "_BITS", 1)
    lattice = MomentLattice(d, 10, 1e-9)
    side = range(-math.isqrt(lattice.longest), math.isqrt(lattice.longest) + 1)
    rows = np.array(
        [z for z in itertools.product(side, repeat=d) if sum(c * c for c in z) <= lattice.longest]
    )
    if d == 3:
        rows = rows[(rows >= 0).all(axis=1) | ((rows * rows).sum(axis=1) > lattice.longest - 2)]
    products = rows[:, :, None] * rows[:, None, :]
    weights = np.where(np.eye(d, dtype=bool), DIAGONAL, OFF)
    upper = (products * weights)[:, *np.triu_indices(d)]
    squares = (upper * upper).sum(axis=1)
    changes = squares[:, None] + squares - 2 * upper @ upper.T
    far = 2 if d > 1 else 1
    assert changes.max() <= far * (DIAGONAL * lattice.longest) ** 2  # the law holds
    assert (
        changes.max() > 0.9 * far * (DIAGONAL * lattice.longest) ** 2
    )  # half of it would be too little
    monkeypatch.undo()
    honest = MomentLattice(d, 1000, 0.5)
    assert honest.query.sensitivity_squared == far * (DIAGONAL * honest.longest) ** 2
    assert honest.query.rho <= 0.5


def test_weights_are_no_more_than_an_isometry():
    assert OFF**2 <= 2 * DIAGONAL**2 < (OFF + 1) ** 2


@pytest.mark.parametrize("n", [5, 20_000])
def test_sums_of_products_are_exact(n):
    lattice = MomentLattice(3, n, 0.5)
    inside = samples.clipped(normal(n, 3) * 4, np.zeros(3), 1.0)
    integers = lattice.integers(inside)
    exact = [
        [sum(a * b for a, b in zip(x, y, strict=True)) for y in integers.T.tolist()]
        for x in integers.T.tolist()
    ]
    assert lattice.total(integers).tolist() == exact
    assert lattice.total(integers[::-1]).tolist() == exact
    assert abs(lattice.total(integers)).max() < 2**62


def test_rows_that_are_too_long_count_as_zero():
    lattice = MomentLattice(2, 2, 0.5)
    assert lattice.integers(np.array([[3.0, 0.0], [0.6, 0.8]])).any(axis=1).tolist() == [
        False,
        True,
    ]


def test_every_lattice_is_as_fine_as_guarantees_need_and_fits():
    for n, rho in itertools.product([2, 10**4, 10**9], [1e-6, 0.5, 100.0]):
        lattice = MomentLattice(20, n, rho)
        assert n * lattice.longest < 2**62
        assert 2.0**28 <= lattice.query.scale <= 2.0**54
    with pytest.raises(ParameterError, match="lattice"):
        _ = MomentLattice(20, 10**9, 1e16).query


ADVERSARIES = [[1e308, -1e308, 1e308], [np.nan, 1.0, 2.0], [np.inf, -np.inf, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("known", [None, UNEVEN])
def test_one_record_changes_one_clipped_row_of_every_step_of_the_mean(
    adversary, known, monkeypatch
):
    seen = []

    def quiet(rows, center, radius, amount, *, pure):
        seen.append(samples.clipped(rows, center, radius))
        return NoisyMean(np.zeros(3), np.ones(3), np.zeros(3))

    monkeypatch.setattr(coinpress, "ball_mean", quiet)
    data = normal(500, 3)
    other = data.copy()
    other[17] = adversary
    for x in (data, other):
        MEAN(x, gn.zCDP(1), radius=50, steps=3, covariance=known, on_nonfinite="clip")
    for mine, theirs in zip(seen[:3], seen[3:], strict=True):
        assert np.flatnonzero((mine != theirs).any(axis=1)).tolist() in ([], [17])
        assert (np.linalg.norm(theirs, axis=1) <= 1 + 1e-12).all()


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_one_record_changes_the_integer_moment_by_no_more_than_the_sensitivity(
    adversary, monkeypatch
):
    seen = []
    honest = MomentLattice.integers
    monkeypatch.setattr(
        MomentLattice, "integers", lambda *given: seen.append(honest(*given)) or seen[-1]
    )
    data = normal(2000, 3)
    other = data.copy()
    other[17] = adversary
    for x in (data, other):
        COVARIANCE(x, gn.zCDP(1), largest=2, steps=1, on_nonfinite="clip")
    assert np.flatnonzero((seen[0] != seen[1]).any(axis=1)).tolist() == [17]
    lattice = MomentLattice(3, 2000, 1.0)
    upper = np.triu_indices(3)
    weights = np.where(upper[0] == upper[1], DIAGONAL, OFF)
    change = [int(c) for c in (lattice.total(seen[0]) - lattice.total(seen[1]))[upper] * weights]
    assert sum(c * c for c in change) <= lattice.query.sensitivity_squared


@pytest.mark.parametrize("clips", [True, False])
def test_a_huge_record_moves_a_mean_by_no_more_than_its_share(clips, monkeypatch):
    if not clips:  # the planted bug
        monkeypatch.setattr(
            "gaussnoise.estimators.steps.clipped",
            lambda rows, center, radius: np.clip((rows - center) / radius, -9, 9),
        )
        monkeypatch.setattr(
            "gaussnoise.estimators.steps.GaussianMechanism.release",
            lambda self, rows, on_outside: type(
                "Found", (), {"estimate": rows.mean(axis=0), "standard_deviation": np.zeros(3)}
            ),
        )
    data = normal(400, 3)
    other = data.copy()
    other[0] = 1e9
    plan = Plan(np.ones(3), 400, [1e6], 5.0, 0.01)
    moved = [MEAN(x, gn.zCDP(1e6), radius=5, steps=1).estimate for x in (data, other)]
    assert (np.linalg.norm(moved[0] - moved[1]) <= 2 * plan.steps[0].radius / 400 + 1e-3) == clips


# Budgets


@pytest.mark.parametrize(
    "privacy", [gn.zCDP(0.5), gn.ApproxDP(1, 1e-6), gn.GDP(1), gn.KL(0.3), gn.privacy.TV(0.3)]
)
@pytest.mark.parametrize("steps", [1, 3])
def test_the_split_adds_up(privacy, steps):
    for draws in (6, 60):
        one = Budget.of("f", privacy, {"step 1": 1.0}, draws)
        budget = coinpress.steps_budget(one, steps)
        assert budget.draws == steps * draws
        spent = [budget.of_step(step) for step in budget.shares]
        assert sum(spent) <= budget.whole * (1 + 1e-15)
        assert sum(spent) >= budget.whole * (1 - 1e-12)
        assert spent[-1] == pytest.approx(budget.whole * (0.75 if steps > 1 else 1))
    assert (
        MEAN(normal(3000, 2), privacy, radius=5, steps=steps).privacy["rho"]
        <= privacy.to_zcdp().rho
    )
    assert len(COVARIANCE(normal(5000, 2), privacy, largest=10, steps=steps).split) == steps


def test_all_steps_are_one_charge(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "budget", gn.zCDP(1))
    data = normal(3000, 2)
    first = MEAN(data, gn.zCDP(0.5), radius=5, steps=3, ledger=ledger, id="mean")
    again = MEAN(data, gn.zCDP(0.5), radius=5, steps=3, ledger=ledger, id="mean")
    COVARIANCE(data, gn.zCDP(0.25), largest=10, steps=2, ledger=ledger, id="covariance")
    assert (first.estimate == again.estimate).all()
    assert [(entry.rho, entry.draws) for entry in ledger.entries()] == [(0.5, 6), (0.25, 6)]
    with pytest.raises(gn.GaussNoiseError):  # another request under this id
        MEAN(data, gn.zCDP(0.5), radius=5, steps=3, covariance=2.0, ledger=ledger, id="mean")


# Refusals


@pytest.mark.parametrize("steps", [1, 2, None])
def test_too_few_records_are_refused_and_enough_are_said(steps):
    with pytest.raises(ParameterError, match=r"expected at least (\d+) records") as caught:
        MEAN(normal(10, 8), gn.zCDP(0.1), radius=20, steps=steps)
    enough = int(str(caught.value).split("at least ")[1].split()[0])
    MEAN(normal(enough, 8), gn.zCDP(0.1), radius=20, steps=steps)
    with pytest.raises(ParameterError):
        MEAN(normal(enough - 1, 8), gn.zCDP(0.1), radius=20, steps=steps)


def test_too_few_records_for_a_covariance_are_refused_and_enough_are_said():
    with pytest.raises(ParameterError, match=r"expected at least (\d+) records") as caught:
        COVARIANCE(normal(50, 3), gn.zCDP(0.5), largest=10)
    enough = int(str(caught.value).split("at least ")[1].split()[0])
    COVARIANCE(normal(enough, 3), gn.zCDP(0.5), largest=10)


@one_test_of(
    "wrong",
    [
        {"steps": 0},
        {"steps": True},
        {"steps": 21},
        {"radius": 0},
        {"beta": 0.7},
        {"covariance": -1.0},
        {"covariance": np.eye(3)},
        {"covariance": np.diag([1.0, 0.0])},
        {"covariance": [[1.0, 0.5], [0.0, 1.0]]},
        {"covariance": np.full((2, 2), np.nan)},
        {"covariance": "wide"},
        {"center": [0.0, 0.0, 0.0]},
        {"radius": 1e300},
    ],
)
def test_wrong_knowledge_is_refused(wrong):
    with pytest.raises(ParameterError, match="coinpress_mean"):
        MEAN(normal(1000, 2), gn.zCDP(0.5), **({"radius": 5} | wrong))


def test_wrong_guarantees_and_data_are_refused():
    for call in (lambda x, p: MEAN(x, p, radius=5), lambda x, p: COVARIANCE(x, p, largest=5)):
        with pytest.raises(ParameterError, match="PureDP"):
            call(normal(1000, 2), gn.PureDP(1))
        with pytest.raises(DataError, match="finite"):
            call(np.full((1000, 2), np.nan), gn.zCDP(1))
    with pytest.raises(DataError):
        COVARIANCE(normal(1000, 1)[:, 0], gn.zCDP(1), largest=5)
    with pytest.raises(ParameterError, match="largest > smallest"):
        COVARIANCE(normal(1000, 2), gn.zCDP(1), largest=1)


# Noise and error


def test_the_noise_of_an_ellipsoid_is_the_optimum():
    n, rho = 5000, 0.3
    values, axes = np.linalg.eigh(UNEVEN)
    root = (axes * np.sqrt(values)) @ axes.T
    found = MEAN(normal(n, 3), gn.zCDP(rho), radius=20, steps=2, covariance=UNEVEN)
    plan = Plan(values, n, [rho / 4, 0.75 * rho], 20.0, 0.01)
    assert plan.steps[0].scale == pytest.approx(
        np.full(3, plan.steps[0].scale[0])
    )  # a ball while the radius is large
    assert plan.steps[1].scale == pytest.approx(values**0.25)
    body = gn.Ellipsoid(plan.steps[1].radius ** 2 * root)
    best = gn.GaussianMechanism(gn.optimal_noise(body), gn.zCDP(0.75 * rho), n=n)
    assert found.noise_deviation == pytest.approx(best.standard_deviation, rel=1e-5)
    round_one = Plan(values, n, [rho / 4, 0.75 * rho], 20.0, 0.01, shaped=False)
    assert plan.steps[1].noise.sum() < 0.8 * round_one.steps[1].noise.sum()


def test_the_sum_of_noise_and_bias_is_least_at_the_root():
    variances = 1 / np.arange(1, 9.0) ** 2

    def product(power):
        return (variances**power).sum() * (variances ** (1 - power)).sum()

    assert min(np.linspace(0, 1, 21), key=product) == pytest.approx(0.5)
    assert product(0.5) == pytest.approx(np.sqrt(variances).sum() ** 2)
    assert product(0.0) == pytest.approx(8 * variances.sum())


def test_a_turned_and_moved_sample_has_a_turned_and_moved_mean():
    turn = np.linalg.qr(normal(3, 3, seed=3))[0]
    data = normal(2000, 3) @ np.linalg.cholesky(UNEVEN).T
    given = {"radius": 5, "steps": 2}
    plain = MEAN(data, gn.zCDP(1e7), covariance=UNEVEN, **given)
    moved = MEAN(
        data @ turn.T + 1e6, gn.zCDP(1e7), center=1e6, covariance=turn @ UNEVEN @ turn.T, **given
    )
    assert moved.estimate == pytest.approx(turn @ plain.estimate + 1e6, abs=1e-3)
    assert plain.estimate == pytest.approx(data.mean(axis=0), abs=1e-2)


def test_a_turned_sample_has_a_turned_covariance():
    turn = np.linalg.qr(normal(3, 3, seed=3))[0]
    data = normal(5000, 3) * [3, 1, 1]
    plain, turned = (
        COVARIANCE(x, gn.zCDP(1e7), largest=10, steps=2).estimate for x in (data, data @ turn.T)
    )
    assert turned == pytest.approx(turn @ plain @ turn.T, abs=1e-2)
    assert plain == pytest.approx(data.T @ data / 5000, rel=0.05, abs=0.05)


def spread(values, deviations):
    """Return the mean square of standardised values, and six standard errors of it."""
    z = np.asarray(values) / np.asarray(deviations)
    return float((z * z).mean()), 6.2 * math.sqrt(2 / z.size)


def test_the_noise_has_the_deviation_that_is_said():
    data, trials = normal(300, 3), 120
    runs = [
        MEAN(data, gn.zCDP(0.5), radius=3, steps=1, covariance=UNEVEN + np.eye(3))
        for _ in range(trials)
    ]
    means = np.array([found.estimate for found in runs])
    means = (means - means.mean(axis=0)) * math.sqrt(trials / (trials - 1))
    lattice = MomentLattice(4, 50, 0.5)
    drawn = [lattice.release(np.zeros((50, 4))) for _ in range(trials)]
    diagonal = np.array([np.diag(found.estimate) for found in drawn])
    off = np.array([found.estimate[np.triu_indices(4, 1)] for found in drawn])
    for values, deviation in (
        (means, runs[0].noise_deviation),
        (diagonal, drawn[0].diagonal),
        (off, drawn[0].off),
    ):
        for factor in (1.0, 0.5):  # half the noise must be caught
            square, error = spread(values * factor, deviation)
            assert (abs(square - 1) < error) == (factor == 1)


def test_noise_of_a_moment_is_carried_as_it_is_by_simulation():
    root = np.linalg.cholesky(UNEVEN + np.eye(3))
    root = (root + root.T) / 2
    noise = np.triu(normal(20_000 * 3, 3, seed=2).reshape(-1, 3, 3))
    noise = noise * np.where(np.eye(3, dtype=bool), 1.3, 0.9)
    noise = noise + np.swapaxes(np.triu(noise, 1), 1, 2)
    drawn = (root @ noise @ root).std(axis=0)
    assert covariance._carried(root, 1.3, 0.9) == pytest.approx(drawn, rel=0.03)


def least(hits, trials, level):
    """Fewer hits would have a chance below 1e-9 at this level."""
    return hits >= stats.binom.ppf(1e-9, trials, level)


def test_intervals_of_means_hold_their_level():
    rng, hits, narrow, trials = np.random.default_rng(5), 0, 0, 100
    root = np.linalg.cholesky(UNEVEN)
    for _ in range(trials):
        data = rng.normal(size=(150, 3)) @ root.T + [30, -5, 1]
        found = MEAN(data, gn.zCDP(1.0), radius=40, steps=2, covariance=UNEVEN)
        low, high = found.confidence_interval(0.9)
        hits += bool(low[0] <= 30 <= high[0])
        narrow += bool(abs(found.estimate[0] - 30) <= (high[0] - low[0]) / 6)
    assert least(hits, trials, 0.9)
    assert not least(narrow, trials, 0.9)


def test_intervals_of_covariances_hold_their_level():
    rng, hits, narrow, trials = np.random.default_rng(6), 0, 0, 80
    for _ in range(trials):
        data = rng.normal(size=(1500, 2)) * [2, 1]
        found = COVARIANCE(data, gn.zCDP(0.5), largest=20, steps=3)
        low, high = found.confidence_interval(0.9)
        hits += bool(low[0, 0] <= 4 <= high[0, 0])
        narrow += bool(abs(found.estimate[0, 0] - 4) <= (high[0, 0] - low[0, 0]) / 12)
    assert least(hits, trials, 0.9)
    assert not least(narrow, trials, 0.9)


@pytest.mark.parametrize(("d", "n"), [(1, 400), (3, 1000), (10, 3000)])
def test_upper_bounds_on_covariances_fail_as_rarely_as_they_say(d, n):
    step = CovariancePlan(d, n, [0.5], 2.0, 0.05)._tried(0.5, 2.0)[60]
    lattice, rng, missed, trials = MomentLattice(d, n, 0.5), np.random.default_rng(7), 0, 100
    for _ in range(trials):
        found = covariance._released(rng.normal(size=(n, d)), np.eye(d), 1e-9, step, lattice)
        missed += bool(np.linalg.eigvalsh(found.bound)[0] < 1)
    assert missed <= stats.binom.isf(1e-9, trials, 0.05)


def test_records_of_one_number_are_one_number():
    found = MEAN(normal(2000, 1, at=7)[:, 0], gn.zCDP(0.5), radius=20)
    assert found.estimate.shape == ()
    assert abs(found.estimate - 7) < 0.5
