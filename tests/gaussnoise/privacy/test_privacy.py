"""Privacy guarantees are compared with arithmetic of many digits, the lattice with exact sums.

Accounting is compared with dp-accounting.
"""

import dataclasses
import json
import math
import re
import signal
import sys

import mpmath as mp
import numpy as np
import pytest
from dp_accounting import dp_event as events
from dp_accounting.gaussian_mechanism import get_sigma_gaussian
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussnoise as gn
from gaussnoise.errors import NotAvailableError, ParameterError
from gaussnoise.privacy import dp_event, gaussian_epsilon
from gaussnoise.privacy.analytic_gaussian import largest_rho, log_delta
from gaussnoise.privacy.lattice_bound import MIN_STEPS, lattice_distance
from gaussnoise.text import no_less

GUARANTEES = [gn.zCDP(0.3), gn.ApproxDP(1, 1e-6), gn.GDP(0.7), gn.KL(0.2), gn.privacy.TV(0.1)]
every = pytest.mark.parametrize("privacy", GUARANTEES, ids=lambda privacy: type(privacy).__name__)
FINE = 2.0**47
SINGLE = [
    gn.zCDP,
    gn.GDP,
    gn.KL,
    gn.privacy.TV,
    gn.PureDP,
    gn.LocalDP,
    dp_event,
    lambda x: gn.ApproxDP(1, x),
]


def above(x):
    """Φ(−x)."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def exact_delta(epsilon, distance):
    """Balle & Wang (2018), Theorem 8, as stated; many digits make up for the cancellation."""
    with mp.workdps(60 if epsilon > 1e-7 else 400):
        epsilon, distance = mp.mpf(epsilon), mp.mpf(distance)
        ratio, half = epsilon / distance, distance / 2
        return above(ratio - half) - mp.exp(epsilon) * above(ratio + half)


def distance(rho, factor=1):
    with mp.workdps(50):
        return mp.sqrt(2 * mp.mpf(rho) * mp.mpf(factor))


def log_uniform(low, high):
    return st.floats(math.log(low), math.log(high)).map(lambda x: min(max(math.exp(x), low), high))


epsilons = log_uniform(1e-6, 50)
deltas = log_uniform(1e-300, 0.5) | log_uniform(1e-15, 0.5)
hundreds = settings(derandomize=True, deadline=None, database=None, max_examples=100)


# Guarantees


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: gn.zCDP(x), "rho > 0"),
        (lambda x: gn.ApproxDP(x, 1e-6), "epsilon > 0"),
        (lambda x: gn.GDP(x), "mu > 0"),
        (lambda x: gn.KL(x), "alpha > 0"),
        (lambda x: gn.privacy.TV(x), "alpha > 0"),
    ],
)
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_arguments_are_validated(make, message, value):
    with pytest.raises(ParameterError, match=message):
        make(value)


@pytest.mark.parametrize("make", SINGLE)
@pytest.mark.parametrize("value", ["much", "0.5", b"0.5", None, 1j, [0.1, 0.2]])
def test_numbers_are_expected(make, value):
    with pytest.raises(ParameterError, match="expected a number"):
        make(value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gn.privacy.TV(1), "alpha < 1"),
        (lambda: gn.privacy.TV(1e-200), "alpha < 1"),
        (lambda: gn.GDP(1e-160), "1e-150 <= mu"),
        (lambda: gn.GDP(1e160), "1e-150 <= mu"),
        (lambda: gaussian_epsilon(0.1, 0), "0 < delta < 1"),
        (lambda: gaussian_epsilon(-0.1, 1e-6), "rho > 0"),
        (lambda: dp_event(-1e-9), "rho >= 0"),
        (lambda: dp_event(math.inf), "rho >= 0"),
        (lambda: lattice_distance(-1, 4.0), "draws >= 0"),
        (lambda: lattice_distance(1.5, 4.0), "draws >= 0"),
        (lambda: lattice_distance(1, 0.99), "1 <= steps"),
        (lambda: lattice_distance(1, math.nan), "1 <= steps"),
        (lambda: lattice_distance(1, 2.0**63), "1 <= steps"),
    ],
)
def test_ranges_are_checked(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


@every
def test_definitions_are_frozen_values(privacy):
    fields = dataclasses.asdict(privacy)
    assert type(privacy)(**fields) == privacy
    assert all(type(value) is float for value in fields.values())
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(privacy, next(iter(fields)), 1.0)


@every
@pytest.mark.parametrize("draws", [1, 200_000_000])
def test_the_record_says_what_is_spent(privacy, draws):
    record = privacy.as_dict(draws, FINE)
    assert json.loads(json.dumps(record)) == record
    assert dataclasses.asdict(privacy).items() <= record.items()
    assert record["rho"] == privacy.to_zcdp(draws, FINE).rho
    if "lattice_distance" in record:
        assert "lattice_distance" in record["method"]
        assert (record["draws"], record["least_steps_per_standard_deviation"]) == (draws, FINE)
        assert record["lattice_distance"] == lattice_distance(draws, FINE)


@pytest.mark.parametrize(
    ("privacy", "steps", "words"),
    [
        (gn.ApproxDP(1, 1e-6), MIN_STEPS, "Balle & Wang"),
        (gn.ApproxDP(1, 1e-6), 4.0, "through zCDP"),
        (gn.GDP(1), MIN_STEPS, "within a total variation"),
        (gn.KL(1), 4.0, "exact on the lattice"),
        (gn.privacy.TV(0.1), MIN_STEPS, "2 * lattice_distance"),
        (gn.privacy.TV(0.001), 4.0, "Pinsker"),
    ],
)
def test_the_record_names_the_method_that_was_used(privacy, steps, words):
    assert words in privacy.as_dict(1, steps)["method"]


@every
@pytest.mark.parametrize("draws", [1, 10**6])
@pytest.mark.parametrize("steps", [4.0, 2.0**20, FINE])
def test_more_draws_on_a_coarser_lattice_never_spend_more(privacy, draws, steps):
    rho = privacy.to_zcdp(draws, steps).rho
    assert privacy.to_zcdp(10 * draws, steps).rho <= rho
    assert privacy.to_zcdp(draws, steps / 2).rho <= rho
    if isinstance(privacy, gn.zCDP | gn.KL | gn.GDP):
        assert privacy.to_zcdp(10 * draws, steps / 2).rho == rho


# The analytic Gaussian


@hundreds
@given(epsilons, deltas)
def test_the_calibration_is_private_and_tight(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    assert exact_delta(epsilon, distance(rho)) <= delta
    assert exact_delta(epsilon, distance(rho, 1 + 5e-9)) > delta


@pytest.mark.parametrize("epsilon", [1e-300, 1e-20, 1e-9, 300, 699])
@pytest.mark.parametrize("delta", [1e-140, 1e-9, 0.5, 0.97])
def test_the_calibration_is_private_and_tight_at_extremes(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    assert exact_delta(epsilon, distance(rho)) <= delta
    assert exact_delta(epsilon, distance(rho, 1 + 5e-9)) > delta


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 0), (1, -0.1), (1, math.nan), (701, 0.5)])
def test_nothing_is_spent_where_no_noise_is_known(epsilon, delta):
    assert largest_rho(epsilon, delta) == 0


@hundreds
@given(epsilons, deltas)
def test_delta_is_evaluated_from_above(epsilon, delta):
    rho = largest_rho(epsilon, delta)
    for factor in (0.9, 1, 1.1):
        exact = float(mp.log(exact_delta(epsilon, math.sqrt(2 * rho) * factor)))
        found = log_delta(epsilon, math.sqrt(2 * rho) * factor)
        assert exact - 1e-10 <= found
        assert found <= exact + 1e-8 or exact < -745  # e^−745 is no float


@hundreds
@given(epsilons, log_uniform(1e-300, 0.5))
def test_dp_accounting_agrees(epsilon, delta):
    with np.errstate(all="ignore"):
        sigma = get_sigma_gaussian(epsilon, delta)
    ours = 1 / math.sqrt(2 * largest_rho(epsilon, delta))
    assert ours == pytest.approx(sigma, rel=1e-6, abs=1e-11)


def test_dp_accounting_lands_a_hair_low_and_we_do_not():
    found = []
    for epsilon, delta in [(1, 1e-6), (0.5, 1e-9), (3, 1e-5), (0.1, 1e-7), (2, 1e-12), (8, 1e-6)]:
        found.append(exact_delta(epsilon, 1 / mp.mpf(get_sigma_gaussian(epsilon, delta))) > delta)
        assert exact_delta(epsilon, distance(largest_rho(epsilon, delta))) <= delta
    assert any(found)


@settings(hundreds, max_examples=35)
@given(
    epsilons,
    deltas,
    st.sampled_from([FINE, MIN_STEPS, 200.0]),
    st.sampled_from([1, 1000, 200_000_000]),
)
def test_approximate_dp_is_kept_as_drawn(epsilon, delta, steps, draws):
    privacy = gn.ApproxDP(epsilon, delta)
    record = privacy.as_dict(draws, steps)
    if "Balle & Wang" in record["method"]:
        eta = mp.sqrt(draws) / 25 / mp.mpf(steps) ** 2
        used = exact_delta(epsilon, distance(record["rho"])) + (1 + mp.exp(epsilon)) * eta
        assert used <= delta
    else:
        assert (1 + math.exp(epsilon)) * lattice_distance(draws, steps) > 0.009 * delta
        assert epsilon_by_renyi(record["rho"], delta) <= epsilon * (1 + 1e-6)


def epsilon_by_renyi(rho, delta):
    """Canonne, Kamath & Steinke (2020), Proposition 12, minimised over a grid of Rényi orders."""
    a = 1 + np.logspace(
        -6, 9, 100_001
    )  # coarser grids are 1e-6 off where log(a) is near -log(delta)
    return np.min(rho * a + (np.log1p(-1 / a) * (a - 1) - np.log(delta) - np.log(a)) / (a - 1))


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-9), (5, 1e-5)])
def test_the_analytic_calibration_saves_noise(epsilon, delta):
    privacy = gn.ApproxDP(epsilon, delta)
    fine, coarse = privacy.to_zcdp().rho, privacy.to_zcdp(1, 1.0).rho
    assert 1.03 < math.sqrt(fine / coarse) < 1.12
    assert gn.zCDP(coarse).epsilon(delta) <= epsilon < gn.zCDP(coarse * (1 + 1e-6)).epsilon(delta)


@pytest.fixture
def alarm():
    """Stop a test that does not stop by itself."""

    def ring(signum, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(5)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("draws", [1, 200_000_000])
@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (1e-9, 1e-6),
        (1e-20, 1e-6),
        (1e-300, 0.1),
        (1e-3, 1e-300),
        (700, 0.5),
        (1e-300, 1e-300),
        (1, 5e-324),
        (1e3, 0.1),
    ],
)
def test_extreme_budgets_are_refused_or_private(epsilon, delta, draws, alarm):
    try:
        rho = gn.ApproxDP(epsilon, delta).to_zcdp(draws).rho
    except ParameterError as error:
        assert "too small" in str(error)  # noqa: PT017 (either is right)
        return
    assert exact_delta(epsilon, distance(rho)) <= delta


# The lattice


def one_coordinate(s):
    """Probabilities of the discrete Gaussian and of the rounded normal at scale s, to 30 digits."""
    s, ks = mp.mpf(s), range(math.ceil(12 * s) + 2)
    weights = [mp.exp(-(mp.mpf(k) ** 2) / (2 * s * s)) for k in ks]
    total = weights[0] + 2 * mp.fsum(weights[1:])
    tails = [above((k - mp.mpf(1) / 2) / s) for k in (*ks, ks[-1] + 1)]
    both = [(w / total, tails[k] - tails[k + 1]) for k, w in zip(ks, weights, strict=True)]
    return [*both[:0:-1], *both]


@pytest.mark.parametrize("s", [1, 1.25, 1.5, 2, 3.7, 8, 20])
def test_one_draw_is_as_close_as_proven(s):
    with mp.workdps(30):
        both = one_coordinate(s)
        divergence = mp.fsum(p * mp.log(p / q) for p, q in both)
        variation = mp.fsum(abs(p - q) for p, q in both) / 2
    assert 0.85 / (576 * s**4) < divergence < 1 / (319 * s**4)
    assert 0.4 * lattice_distance(1, s) < variation < lattice_distance(1, s)


def test_two_draws_are_as_close_as_proven():
    both = np.array(one_coordinate(1.0), dtype=float)
    drawn, rounded = (
        np.multiply.outer(both[:, 0], both[:, 0]),
        np.multiply.outer(both[:, 1], both[:, 1]),
    )
    assert (
        0.3 * lattice_distance(2, 1.0)
        < np.abs(drawn - rounded).sum() / 2
        < lattice_distance(2, 1.0)
    )


@pytest.mark.parametrize("draws", [100, 1600])
def test_the_distance_grows_like_the_root_of_the_draws(draws):
    both = np.array(one_coordinate(3.0), dtype=float)
    seen = np.random.default_rng(0).multinomial(draws, both[:, 0] / both[:, 0].sum(), size=20_000)
    below = np.maximum(0, -np.expm1(seen @ np.log(both[:, 1] / both[:, 0])))
    sampled, error = below.mean(), below.std() / math.sqrt(20_000)
    assert 0.4 * lattice_distance(draws, 3.0) < sampled - 6 * error
    assert sampled + 6 * error < lattice_distance(draws, 3.0)


def shifted(privacy, shift, steps):
    """Discrete Gaussians around 0 and around ``shift``, calibrated.

    Return ``(p, p')`` at every integer, and their scale.
    """
    s = shift / math.sqrt(2 * privacy.to_zcdp(1, steps).rho)
    assert s >= steps
    ks = np.arange(-math.ceil(12 * s), math.ceil(12 * s) + shift + 1)
    p, moved = np.exp(-(ks**2) / (2 * s * s)), np.exp(-((ks - shift) ** 2) / (2 * s * s))
    return p / math.fsum(p), moved / math.fsum(moved)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01), (1, 0.05), (2, 0.02), (0.1, 0.2)])
def test_approximate_dp_holds_for_integers(epsilon, delta):
    for steps in (20.0, 60.0):
        for shift in range(math.ceil(steps * 3), math.ceil(steps * 3) + 3):
            p, moved = shifted(gn.ApproxDP(epsilon, delta), shift, steps)
            assert 0.9 * delta < np.maximum(0, p - math.exp(epsilon) * moved).sum() <= delta
            p, moved = shifted(
                gn.zCDP(1.2 * gn.ApproxDP(epsilon, delta).to_zcdp(1, steps).rho), shift, steps
            )
            assert np.maximum(0, p - math.exp(epsilon) * moved).sum() > delta


@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.9])
def test_total_variation_holds_for_integers(alpha):
    p, moved = shifted(gn.privacy.TV(alpha), 200, 40.0)
    assert 0.95 * alpha < np.abs(p - moved).sum() / 2 <= alpha


@pytest.mark.parametrize("alpha", [0.01, 0.5, 3])
def test_divergence_holds_exactly_for_integers(alpha):
    p, moved = shifted(gn.KL(alpha), 9, 1.0)
    inside = p > 1e-290
    ratio = np.log(p[inside] / np.maximum(moved[inside], 5e-324))
    assert p[inside] @ ratio == pytest.approx(alpha, rel=1e-9)


@pytest.mark.parametrize("mu", [0.2, 1, 2.5])
def test_gaussian_dp_holds_for_integers_up_to_the_stated_distance(mu):
    p, moved = shifted(gn.GDP(mu), 40, 5.0)
    eta = lattice_distance(1, 5.0)
    alarms, misses = (
        np.cumsum(p[::-1])[::-1],
        np.cumsum(moved) - moved,
    )  # for the best tests, which reject ("shifted") from t on
    for alarm_rate, miss_rate in zip(alarms, misses, strict=True):
        if alarm_rate + eta < 1:
            stated = (
                float(mp.ncdf(-mp.erfinv(2 * mp.mpf(alarm_rate + eta) - 1) * mp.sqrt(2) - mu)) - eta
            )
            assert miss_rate >= stated - 1e-12
    middle = len(alarms) // 2
    assert misses[middle] < mp.ncdf(
        -mp.erfinv(2 * mp.mpf(alarms[middle]) - 1) * mp.sqrt(2) - mu / 2
    )


@hundreds
@given(
    log_uniform(1e-12, 0.999), st.sampled_from([FINE, 2.0**20, 100.0]), st.sampled_from([1, 10**6])
)
def test_total_variation_is_private_and_tight(alpha, steps, draws):
    record = gn.privacy.TV(alpha).as_dict(draws, steps)
    with mp.workdps(50):
        left = mp.mpf(alpha) - 2 * mp.mpf(lattice_distance(draws, steps))
        if "Pinsker" in record["method"]:
            assert record["rho"] <= 2 * mp.mpf(alpha) ** 2
            assert left < 0.8 * alpha  # √(2/π) = 0.798
        else:
            assert mp.erf(distance(record["rho"]) / mp.sqrt(8)) <= left
            assert (
                mp.erf(distance(record["rho"], 1 + 3e-9) / mp.sqrt(8))
                > left - mp.mpf(2) ** -52 * alpha
            )


@hundreds
@given(log_uniform(1e-150, 1e150))
def test_gaussian_dp_is_rounded_down(mu):
    rho = gn.GDP(mu).to_zcdp().rho
    with mp.workdps(50):
        assert mp.mpf(mu) ** 2 / 2 * (1 - mp.mpf(2) ** -52) <= rho <= mp.mpf(mu) ** 2 / 2


# Reporting


@hundreds
@given(log_uniform(1e-6, 20), log_uniform(1e-12, 0.5))
def test_the_reported_epsilon_is_private_and_tight(rho, delta):
    epsilon = gaussian_epsilon(rho, delta, draws=1, steps=FINE)
    assert epsilon <= gn.zCDP(rho).epsilon(delta)
    assert exact_delta(epsilon, distance(rho)) <= delta
    if (
        epsilon > 0
        and (1 + math.exp(gn.zCDP(rho).epsilon(delta))) * lattice_distance(1, FINE) < 1e-6 * delta
    ):
        assert exact_delta(epsilon * (1 - 1e-5), distance(rho)) > delta


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-9), (5, 1e-5)])
def test_what_is_calibrated_is_reported(epsilon, delta):
    rho = gn.ApproxDP(epsilon, delta).to_zcdp(1, FINE).rho
    assert epsilon * (1 - 1e-7) < gaussian_epsilon(rho, delta, draws=1, steps=FINE) <= epsilon
    assert gn.zCDP(rho).epsilon(delta) > 1.04 * epsilon


def test_no_loss_is_reported_for_no_cost():
    assert gaussian_epsilon(0, 1e-6) == 0
    assert gaussian_epsilon(1e-300, 1e-6) == 0
    assert gaussian_epsilon(1e6, 1e-6) == gn.zCDP(1e6).epsilon(1e-6)  # e^ε η is beyond δ


# Accounting

ORDERS = 1 + np.logspace(-2, 4, 3000)


def accounted(*rhos):
    accountant = RdpAccountant(ORDERS)
    for rho in rhos:
        accountant.compose(dp_event(rho))
    return accountant


@pytest.mark.paper("Lemma 11", by="an accountant of Rényi divergences")
@pytest.mark.parametrize("rhos", [(0.1, 0.25), (0.01, 0.02, 0.07), (0, 0.3), (1e-4,) * 20])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_releases_add_up(rhos, delta):
    total = math.fsum(rhos)
    epsilon = accounted(*rhos).get_epsilon(delta)
    assert epsilon == pytest.approx(accounted(total).get_epsilon(delta), rel=1e-9)
    assert epsilon == pytest.approx(gn.zCDP(total).epsilon(delta), rel=1e-4)
    assert epsilon != pytest.approx(gn.zCDP(1.01 * total).epsilon(delta), rel=1e-3)


def test_releases_compose_with_other_mechanisms():
    composed = events.ComposedDpEvent(
        [dp_event(0.1), events.SelfComposedDpEvent(dp_event(0.05), 2)]
    )
    other = events.GaussianDpEvent(1 / math.sqrt(2 * 0.3))
    epsilon = RdpAccountant(ORDERS).compose(composed).compose(other).get_epsilon(1e-6)
    assert epsilon == pytest.approx(accounted(0.5).get_epsilon(1e-6), rel=1e-9)


def test_a_missing_accountant_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.dp_event", None)
    with pytest.raises(NotAvailableError, match=r"gaussnoise\[accounting\]"):
        dp_event(0.1)


def test_a_printed_epsilon_is_never_rounded_down():
    assert no_less(3.66244, 4) == "3.663"
    values = np.exp(np.random.default_rng(2).uniform(-30, 30, 500)).tolist()
    for value in (*values, 0.0, 0.1, 1e-6, 5e-324, 0.30000000000000004):
        for figures in (2, 4, 6):
            text = no_less(value, figures)
            assert value <= float(text) <= value * (1 + 10.0 ** (1 - figures)) + 1e-323
    rho = 0.28014123456789
    words = gn.zCDP(rho).budget(rho, 5, MIN_STEPS)
    epsilon = float(re.search(r"\(([\d.]+), 1e-06\)", words)[1])
    assert epsilon >= gaussian_epsilon(rho, 1e-6, draws=5)
    assert gn.ApproxDP(1.00000049, 1e-6).words == "(1.00001, 1e-06)-differential privacy"
    assert gn.zCDP(0.10000001).words == "0.100001-zCDP"


def test_a_name_of_another_room_is_refused_with_its_place():
    with pytest.raises(AttributeError, match=r"hint: gn\.estimators\.column_means"):
        gn.column_means  # noqa: B018
    assert not hasattr(gn, "no_such_name")
