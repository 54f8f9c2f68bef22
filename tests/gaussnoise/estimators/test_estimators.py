"""Common properties of all estimators: budgets, refusals, files, and intervals at their level."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import one_test_of
from scipy import sparse, stats

import gaussnoise as gn
from gaussnoise.errors import (
    BudgetError,
    CertificateError,
    DataError,
    LedgerError,
    OutputError,
    ParameterError,
    PrivacyWarning,
)
from gaussnoise.estimators import steps
from gaussnoise.privacy.budget import Budget

E = gn.estimators
CANARY = 73917391.5


def normal(n, seed=0):
    return np.random.default_rng(seed).normal(3.0, 1.0, size=n)


ESTIMATORS = {
    "clipped_mean": lambda x, privacy, **more: E.clipped_mean(x, privacy, bounds=(-10, 10), **more),
    "coarse_location": lambda x, privacy, **more: E.coarse_location(
        x, privacy, sigma=1, radius=1e5, **more
    ),
    "gaussian_mean": lambda x, privacy, **more: E.gaussian_mean(
        x, privacy, sigma=1, radius=1e5, **more
    ),
    "heavy_tailed_mean": lambda x, privacy, **more: E.heavy_tailed_mean(
        x, privacy, moment=1, radius=1e5, **more
    ),
    "truncated_mean": lambda x, privacy, **more: E.truncated_mean(
        x, privacy, moment=4, order=3, **more
    ),
    "histogram_density": lambda x, privacy, **more: E.histogram_density(
        (np.asarray(x) + 7) / 20, privacy, lipschitz=9, **more
    ),
}
GUARANTEES = [
    gn.PureDP(2),
    gn.zCDP(0.5),
    gn.ApproxDP(2, 1e-6),
    gn.GDP(1),
    gn.KL(0.5),
    gn.privacy.TV(0.4),
]
each_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def test_the_list_of_estimators_is_whole():
    """Others have files of their own; those without private estimates have none."""
    elsewhere = {
        "column_means",
        "population_means",
        "coinpress_mean",
        "coinpress_covariance",
        "person_level_mean",
        "pure_person_level_mean",
    }
    nothing = {"ColumnMean", "ColumnMeans", "MeanDifference", "Estimate", "Rate", "rates"}
    nothing |= {"MeanChange", "MeanChanges"}
    nothing.add("release_one_at_random")
    assert set(E.__all__) <= set(ESTIMATORS) | elsewhere | nothing
    assert set(ESTIMATORS) <= set(E.__all__)


@each_estimator
@pytest.mark.parametrize("privacy", GUARANTEES, ids=repr)
def test_every_guarantee_is_kept_by_steps_that_add_up(name, privacy):
    found = ESTIMATORS[name](normal(3000), privacy)
    spent = [float(part.split(" = ")[1]) for part in found.split.values()]
    whole = privacy.epsilon if isinstance(privacy, gn.PureDP) else found.privacy["rho"]
    assert sum(spent) == pytest.approx(whole, rel=1e-5)
    assert found.private
    assert found.privacy["unit"] == "one record"
    assert (
        found.noise == ("laplace" if isinstance(privacy, gn.PureDP) else "gaussian")
        or name == "coarse_location"
    )
    assert repr(found)
    assert found.explain()


@each_estimator
def test_a_weak_guarantee_is_warned_of_once_where_the_estimator_is_called(name):
    elsewhere = compile("estimator(data, privacy)", "<elsewhere>", "exec")  # calls this file
    given = {"data": normal(3000), "privacy": gn.ApproxDP(1, 0.5)}
    with pytest.warns(PrivacyWarning, match="delta = 0.5") as caught:
        exec(elsewhere, {"estimator": ESTIMATORS[name]} | given)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("privacy", GUARANTEES, ids=repr)
def test_shares_of_a_budget_never_exceed_it(privacy):
    budget = Budget.of("test", privacy, {"a": 0.1, "b": 1 / 3, "c": 0.7}, 10)
    assert sum(Fraction(budget.of_step(step)) for step in "abc") <= Fraction(budget.whole)
    assert budget.of_step("c") > 0.6 * budget.whole


@each_estimator
def test_a_ledger_is_charged_once_and_gives_the_same_again(name, tmp_path):
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(3))
    x = normal(3000)
    for privacy, cost in ((gn.zCDP(0.5), 0.5), (gn.PureDP(1), 0.5)):
        label = f"{name} {privacy}"
        first, again = (ESTIMATORS[name](x, privacy, ledger=ledger, id=label) for _ in range(2))
        assert np.array_equal(first.estimate, again.estimate)
        assert dict(first.privacy) == dict(again.privacy)
        assert ledger.entries()[-1].rho == pytest.approx(cost)
        assert ledger.entries()[-1].protects == "one row under replace"
        with pytest.raises(LedgerError):
            ESTIMATORS[name](x, type(privacy)(0.9), ledger=ledger, id=label)
    assert ledger.spent == pytest.approx(1)
    with pytest.raises(ParameterError, match="together"):
        ESTIMATORS[name](x, gn.zCDP(0.5), ledger=ledger)
    with pytest.raises(BudgetError):
        ESTIMATORS[name](x, gn.zCDP(2.5), ledger=ledger, id="too much")


def test_an_unbounded_search_is_charged_to_a_ledger_with_a_delta(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(3))
    privacy, x = gn.ApproxDP(1, 1e-6), normal(3000)
    with pytest.raises(BudgetError, match="public range"):
        E.gaussian_mean(x, privacy, sigma=1, ledger=ledger, id="a")
    assert not ledger.entries()
    ledger = gn.Ledger.create(tmp_path / "m", gn.zCDP(3), delta=1e-6)
    found = E.gaussian_mean(x, privacy, sigma=1, ledger=ledger, id="a")
    again = E.gaussian_mean(x, privacy, sigma=1, ledger=ledger, id="a")
    assert again.to_json() == found.to_json()
    (entry,) = ledger.entries()
    assert entry.draws is None
    assert f"delta = {entry.delta:.6g}" == found.split["threshold"]
    assert entry.rho == pytest.approx(found.privacy["rho"])


@each_estimator
def test_a_ledger_records_refusals_and_does_not_say_what_was_wrong(name, tmp_path):
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(3))
    x = normal(3000)
    x[5] = np.nan
    with pytest.raises(DataError) as caught:
        ESTIMATORS[name](x, gn.zCDP(0.5), ledger=ledger, id="a")
    assert "NaN" not in str(caught.value)
    assert [(entry.state, entry.rho) for entry in ledger.entries()] == [("refused", 0.0)]


_OTHERS = {
    "histogram_density": lambda x, **more: E.histogram_density(x, lipschitz=9, **more),
    "coinpress_mean": lambda x, **more: E.coinpress_mean(x, radius=9, **more),
    "coinpress_covariance": lambda x, **more: E.coinpress_covariance(x, largest=4, **more),
    "person_level_mean": lambda x, **more: E.person_level_mean(
        x, samples=1, moment=1, radius=9, **more
    ),
    "pure_person_level_mean": lambda x, **more: E.pure_person_level_mean(
        x, samples=1, moment=1, radius=9, **more
    ),
}


@pytest.mark.parametrize("records", [[[1.0], [None]], [["a"]], [[[1.0]], [2.0]], []], ids=repr)
@pytest.mark.parametrize("name", ESTIMATORS | _OTHERS)
def test_a_ledger_records_refusals_of_records_that_are_no_array(name, records, tmp_path):
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(3))
    call = _OTHERS.get(name) or ESTIMATORS[name]
    with pytest.raises(DataError, match="recorded") as caught:
        call(records, privacy=gn.zCDP(0.5), ledger=ledger, id="a")
    assert caught.value.__cause__ is caught.value.__context__ is None
    ((state, rho, id),) = [(entry.state, entry.rho, entry.id) for entry in ledger.entries()]
    assert (state, rho, id) == ("refused", 0.0, "a")
    assert ledger.refusals == 1


@each_estimator
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_or_clipped(name, bad):
    x = normal(3000)
    x[5], x[6] = bad, CANARY
    with pytest.raises(DataError, match="clip") as caught:
        ESTIMATORS[name](x, gn.zCDP(0.5))
    assert "7391" not in str(caught.value)
    found = ESTIMATORS[name](x, gn.zCDP(0.5), on_nonfinite="clip")
    assert np.isfinite(found.estimate).all()
    if name not in ("histogram_density", "coarse_location"):
        assert abs(float(found.estimate) - 3) < 1


@each_estimator
@pytest.mark.parametrize(
    "data",
    [
        ["a", "b"],
        [[CANARY], [CANARY, 2]],
        np.array([1j]),
        np.zeros((2, 2, 2)),
        [],
        None,
        sparse.eye_array(3),
        np.ma.masked_array([1.0, CANARY], mask=[True, False]),
    ],
    ids=["text", "ragged", "complex", "three dimensions", "nothing", "None", "sparse", "masked"],
)
def test_what_is_no_sample_is_refused_without_a_value(name, data):
    with pytest.raises(DataError) as caught:
        (getattr(E, name) if name == "histogram_density" else ESTIMATORS[name])(data, gn.zCDP(0.5))
    assert "7391" not in str(caught.value)


@one_test_of(
    "call",
    [
        lambda x: E.clipped_mean(x, gn.zCDP(1)),
        lambda x: E.clipped_mean(x, gn.zCDP(1), bounds=(1, 0)),
        lambda x: E.clipped_mean(x, gn.zCDP(1), bounds=(0, 1), radius=2),
        lambda x: E.clipped_mean(x, gn.zCDP(1), center=0),
        lambda x: E.clipped_mean(x, gn.zCDP(1), domain=gn.LpBall(2, 2)),
        lambda x: E.clipped_mean(x, gn.PureDP(1), domain=gn.LpBall(1, 2)),
        lambda x: E.clipped_mean(x, 0.1, bounds=(0, 1)),
        lambda x: E.clipped_mean(x, gn.zCDP(1), bounds=(0, 1), on_nonfinite="drop"),
        lambda x: E.gaussian_mean(x, gn.zCDP(1), sigma=0, radius=1),
        lambda x: E.gaussian_mean(x, gn.zCDP(1), sigma=1, radius=math.inf),
        lambda x: E.gaussian_mean(x, gn.zCDP(1), sigma=1),
        lambda x: E.gaussian_mean(x, gn.PureDP(1), sigma=1e-200, radius=1e200),
        lambda x: E.gaussian_mean(x, gn.PureDP(1), sigma=1, radius=1e308),
        lambda x: E.gaussian_mean(x, gn.zCDP(1), sigma=1, radius=1, beta=0.7),
        lambda x: E.heavy_tailed_mean(x, gn.zCDP(1), moment=1, order=1.5, radius=1),
        lambda x: E.heavy_tailed_mean(x, gn.zCDP(1), moment="1", radius=1),
        lambda x: E.truncated_mean(x, gn.LocalDP(1)),
        lambda x: E.histogram_density(x, gn.zCDP(1), lipschitz=-1),
    ],
)
def test_knowledge_that_makes_no_sense_is_refused(call):
    with pytest.raises(ParameterError):
        call(normal(3000))


@pytest.mark.parametrize("name", ["coarse_location", "gaussian_mean", "heavy_tailed_mean"])
@pytest.mark.parametrize("privacy", [gn.PureDP(0.5), gn.zCDP(0.02)], ids=repr)
def test_too_few_records_are_refused_with_a_number_that_will_do(name, privacy):
    with pytest.raises(ParameterError, match="at least") as caught:
        ESTIMATORS[name](normal(20), privacy)
    enough = int(str(caught.value).split("at least ")[1].split()[0])
    with pytest.raises(ParameterError, match=f"at least {enough} "):
        ESTIMATORS[name](normal(enough - 1), privacy)
    found = ESTIMATORS[name](normal(enough), privacy)
    assert abs(float(found.estimate) - 3) < 20


@each_estimator
def test_estimates_are_saved_and_read_again(name, tmp_path):
    found = ESTIMATORS[name](normal(3000), gn.PureDP(2))
    found.save(tmp_path / "e.json")
    again = E.Estimate.load(tmp_path / "e.json")
    assert np.array_equal(found.estimate, again.estimate)
    assert found.explain() == again.explain()
    with pytest.raises(OutputError):
        found.save(tmp_path / "e.json")
    with pytest.raises(OutputError):
        E.Estimate.load(tmp_path / "missing.json")
    for damage in (
        {"format": "x"},
        {"private": 1},
        {"estimate": "x"},
        {"beta": None},
        {"noise_deviation": [1, 2, 3]},
    ):
        text = json.dumps(json.loads(found.to_json()) | damage)
        (tmp_path / "bad.json").write_text(text, encoding="utf-8")
        with pytest.raises(CertificateError):
            E.Estimate.load(tmp_path / "bad.json")


# Intervals. The probability that a correct one fails here is below 1e-9.

TRIALS, LEVEL, ODDS = 100, 0.8, 1e-9
SHAPES = {  # distributions of mean 0 and deviation 1
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy": lambda rng, n: rng.standard_t(3, size=n) / math.sqrt(3),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1,
    "discrete": lambda rng, n: 2.0 * rng.integers(0, 2, size=n) - 1,
}


NARROW = ESTIMATORS | {  # with few bins, since many take time to draw
    "gaussian_mean": lambda x, privacy: E.gaussian_mean(x, privacy, sigma=1, radius=20),
    "heavy_tailed_mean": lambda x, privacy: E.heavy_tailed_mean(x, privacy, moment=1, radius=20),
}


def misses(name, shape, privacy, n=800):
    """Return how many of many intervals miss the mean, 3."""
    rng, missed = np.random.default_rng(5), 0
    for _ in range(TRIALS):
        low, high = NARROW[name](3 + SHAPES[shape](rng, n), privacy).confidence_interval(LEVEL)
        missed += not low <= 3 <= high
    return missed


def most_misses():
    return stats.binom.isf(ODDS, TRIALS, 1 - LEVEL)


@pytest.mark.parametrize(
    ("name", "shape", "privacy"),
    [
        ("gaussian_mean", "normal", gn.PureDP(2)),
        ("gaussian_mean", "normal", gn.zCDP(0.1)),
        ("gaussian_mean", "discrete", gn.zCDP(0.1)),
        ("heavy_tailed_mean", "heavy", gn.PureDP(2)),
        ("heavy_tailed_mean", "skewed", gn.zCDP(0.5)),
        ("truncated_mean", "heavy", gn.zCDP(0.5)),
        ("clipped_mean", "discrete", gn.PureDP(1)),
        ("clipped_mean", "skewed", gn.zCDP(0.1)),
    ],
)
def test_intervals_hold_their_level(name, shape, privacy):
    assert misses(name, shape, privacy) <= most_misses()


def test_the_check_of_intervals_notices_bins_that_are_off(monkeypatch):
    """A location that is always too far moves the clipping, and the estimate: nearly all miss."""
    whole = steps.fullest
    monkeypatch.setattr(
        "gaussnoise.estimators.location.fullest", lambda *a, **k: whole(*a, **k) + 4
    )
    assert misses("gaussian_mean", "normal", gn.zCDP(0.1)) > most_misses()


def test_intervals_of_laplace_noise_and_sampling_are_neither_too_wide_nor_too_narrow():
    rng = np.random.default_rng(0)
    for b, s in ((1.0, 1.0), (0.2, 1.0), (1.0, 0.1), (1.0, 0.0), (1.0, 30.0)):
        error = rng.laplace(scale=b, size=200_000) + s * rng.normal(size=200_000)
        half = (
            E.Estimate(
                np.array(0.0),
                np.array(math.sqrt(2) * b),
                np.array(s),
                np.array(0.0),
                0.0,
                "laplace",
                {},
                {},
                "",
            )
            .confidence_interval(0.9)
            .high
        )
        assert abs((abs(error) <= half).mean() - 0.9) < 6 * math.sqrt(0.09 / 200_000)


def test_a_level_that_the_chance_of_a_miss_leaves_no_room_for_is_refused():
    found = ESTIMATORS["gaussian_mean"](normal(3000), gn.zCDP(0.5), beta=0.1)
    with pytest.raises(ParameterError, match="beta"):
        found.confidence_interval(0.95)
    found.confidence_interval(0.85)


# One by one.


@pytest.mark.parametrize("k", [2.0, 3.0, 8.0])
def test_the_bias_of_clipping_is_what_two_points_attain_and_no_more(k):
    """Return the optimum of a linear program over distributions on a grid, with that moment."""
    from scipy.optimize import linprog

    from gaussnoise.estimators.moments import tail_bias

    size, t = 1.5, 4.0
    grid = np.union1d(np.linspace(0, 60, 3001), [t * k / (k - 1)])
    found = linprog(
        -np.maximum(grid - t, 0),
        A_ub=[grid**k],
        b_ub=[size**k],
        A_eq=[np.ones(len(grid))],
        b_eq=[1],
    )
    assert -found.fun == pytest.approx(tail_bias(t, k, size), rel=1e-7)


@pytest.mark.parametrize("k", [2.0, 3.0, 8.0])
def test_the_radius_balances_bias_and_noise(k):
    from gaussnoise.estimators.moments import best_radius, tail_bias

    radius = best_radius(k, 2.0, 0.01)
    cost = [
        tail_bias(t, k, 2.0) ** 2 + (0.01 * t) ** 2 for t in (radius * 0.99, radius, radius * 1.01)
    ]
    assert cost[1] < min(cost[0], cost[2])


def test_the_noise_that_a_source_gives_for_approximate_privacy_is_too_small():
    """Barber & Duchi (2014), section 4: variance 2T² log(1/δ)/(n²α²), at a distance of 2T/n."""
    epsilon, delta = 1.0, 1e-5
    whitened = math.sqrt(2) * epsilon / math.sqrt(math.log(1 / delta))  # 2T/n over the deviation
    real = stats.norm.cdf(whitened / 2 - epsilon / whitened) - math.exp(epsilon) * stats.norm.cdf(
        -whitened / 2 - epsilon / whitened
    )
    assert real > 100 * delta
    ours = E.truncated_mean(normal(1000), gn.ApproxDP(epsilon, delta), moment=4, order=math.inf)
    assert ours.noise_deviation > 1.5 * (2 * 4 / 1000) / whitened


@pytest.mark.parametrize("radius", [1e4, 1e8, 1e15])
@pytest.mark.parametrize("privacy", [gn.PureDP(1), gn.zCDP(0.2)], ids=repr)
def test_locations_are_found_in_ranges_of_any_size(radius, privacy):
    x = normal(3000) + radius / 3
    found = E.coarse_location(x, privacy, sigma=1, radius=radius)
    assert abs(float(found.estimate) - radius / 3 - 3) <= found.bias_bound
    # numbers of twice the range's size are rounded by 2⁻⁵² of it, in some thirty places
    assert 6 <= found.bias_bound <= 6 + 64 * 2.0**-52 * radius


def test_without_a_range_the_location_is_found_wherever_it_is():
    for shift in (0, -1e9, 1e16):
        sigma = max(1.0, abs(shift) * 1e-12)
        found = E.coarse_location(normal(3000) * sigma + shift, gn.ApproxDP(1, 1e-6), sigma=sigma)
        assert abs(float(found.estimate) - shift) <= found.bias_bound + 3 * sigma
    assert found.split["threshold"] == "delta = 1e-07"


def test_without_a_bin_above_the_threshold_nothing_is_said():
    spread_out = np.random.default_rng(0).uniform(0, 1e9, size=3000)
    found = E.coarse_location(spread_out, gn.ApproxDP(1, 1e-6), sigma=1)
    assert np.isnan(found.estimate)
    assert np.isinf(found.bias_bound)


def test_vectors_are_located_by_coordinate():
    x = np.random.default_rng(0).normal([5, -100, 1000], [1, 1, 1], size=(4000, 3))
    found = E.coarse_location(x, gn.zCDP(0.5), sigma=1, radius=2000)
    assert (abs(found.estimate - [5, -100, 1000]) <= found.bias_bound).all()


def test_boxes_cost_less_than_the_ball_around_them():
    x = np.random.default_rng(0).uniform(-1, 1, size=(1000, 3)) * [1, 10, 100]
    half = np.array([1, 10, 100])
    for privacy in (gn.PureDP(1), gn.zCDP(0.1)):
        box = E.clipped_mean(x, privacy, bounds=(-half, half)).noise_deviation
        ball = E.clipped_mean(
            x, privacy, center=0, radius=float(np.linalg.norm(half))
        ).noise_deviation
        assert np.linalg.norm(box) < 0.8 * np.linalg.norm(ball)
    gaussian = np.linalg.norm(E.clipped_mean(x, gn.zCDP(0.1), bounds=(-half, half)).noise_deviation)
    assert gaussian == pytest.approx(2 * half.sum() / (1000 * math.sqrt(0.2)), rel=1e-6)


def test_densities_are_estimated():
    rng = np.random.default_rng(0)
    x = rng.beta(2, 3, size=(30_000, 2))
    found = E.histogram_density(x, gn.PureDP(1), lipschitz=10)
    m = len(found.estimate)
    middles = (np.arange(m) + 0.5) / m
    true = np.multiply.outer(*[stats.beta.pdf(middles, 2, 3)] * 2)
    assert found.estimate.shape == (m, m)
    assert np.sqrt(np.square(found.estimate - true).mean()) < 0.3
    assert found.estimate.mean() == pytest.approx(1, abs=0.05)


def test_the_warning_example_publishes_a_record_and_says_so():
    with pytest.warns(PrivacyWarning, match="publishes one record"):
        found = E.release_one_at_random([[1.0, 2.0], [3.0, 4.0]])
    assert found.estimate.tolist() in ([1.0, 2.0], [3.0, 4.0])
    assert not found.private
    with pytest.raises(ParameterError, match="no bound"):
        found.confidence_interval()


def test_rates_are_what_the_tables_say():
    moments = E.rates("moments", n=1000, d=4, epsilon=0.1, order=2)
    assert moments["pure"].lower == pytest.approx(1 / 1000 + math.sqrt(16 / 100**2))
    assert moments["TV"].upper == pytest.approx(1 / 1000 + math.sqrt(4 / 100**2))
    assert E.rates("bounded", 1000, d=5, epsilon=0.1)["pure"].upper == pytest.approx(25 / 100**2)
    assert E.rates("bounded", 10, d=5, epsilon=0.1)["pure"].lower == 1
    assert E.rates("support", 100, epsilon=0.1)["TV"].lower == pytest.approx((1 / 320) ** 2)
    assert E.rates("person", 1000, samples=100, order=math.inf)["pure"].lower == pytest.approx(1e-5)
    for setting in ("bounded", "moments", "normal", "person", "density"):
        for rate in E.rates(setting, 500, d=3, epsilon=0.5, radius=7).values():
            assert 0 <= rate.lower <= rate.upper
            assert rate.source
    with pytest.raises(ParameterError, match="expected one of"):
        E.rates("sums", 10)
