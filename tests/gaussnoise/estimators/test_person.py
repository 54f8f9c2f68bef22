"""Means of people's records: privacy by brute force, the noise that is drawn, and the error
bound.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, chi2

import gaussnoise as gn
from gaussnoise.errors import BudgetError, DataError, LedgerError, ParameterError
from gaussnoise.estimators import person, steps
from gaussnoise.estimators.location import Search
from gaussnoise.estimators.samples import samples as rows_of
from gaussnoise.privacy.laplace import LaplaceQuery
from gaussnoise.privacy.sampler import IntegerQuery

KNOWN = {"samples": 4, "moment": 1.0, "order": 4, "radius": 20.0}
N = 240
PURE = gn.PureDP(8.0)


def mean(data, privacy=PURE, **known):
    return gn.estimators.person_level_mean(data, privacy, **(KNOWN | known))


@pytest.fixture
def people():
    return list(np.random.default_rng(1).normal(3, 0.5, size=(N, 4)))


@pytest.fixture
def quiet(monkeypatch):
    """Set all noise to zero and the location as found: an estimate is a function of the data."""
    monkeypatch.setattr(Search, "find", lambda self, rows: np.zeros(self.dim))
    monkeypatch.setattr(LaplaceQuery, "draw", lambda self, count: [0] * count)
    monkeypatch.setattr(IntegerQuery, "draw", lambda self, count: [0] * count)


def largest_change(people, others, privacy=PURE, **known):
    """Return the change of the first round's estimate over one person who has any of ``others``."""
    found = [
        mean([*people[:-1], other], privacy, on_nonfinite="clip", **known).estimate.ravel()
        for other in others
    ]
    return max(float(np.linalg.norm(a - b)) for a in found for b in found)


STRANGERS = [
    np.full(1, 1e300),
    np.full(7, -1e300),
    np.full(4, np.inf),
    np.array([np.inf, -np.inf, np.nan]),
    np.linspace(-5, 5, 40),
    np.full(400, 1e6),
    np.full(400, -1e6),
]


@pytest.fixture
def one_round(monkeypatch):
    monkeypatch.setattr(person, "_MOST_ROUNDS", 0)


def epsilon_seen(people):
    """Return the last step's sensitivity over its noise's scale: the ε that it really spends."""
    change = largest_change(people, STRANGERS)
    return change * math.sqrt(2) / float(mean(people).noise_deviation)


@pytest.mark.usefixtures("quiet", "one_round")
def test_no_records_of_a_person_move_the_mean_by_more_than_the_noise_is_for(people):
    assert epsilon_seen(people) == pytest.approx(0.75 * PURE.epsilon, rel=1e-4)
    assert epsilon_seen(people) <= 0.75 * PURE.epsilon


@pytest.mark.usefixtures("quiet", "one_round")
def test_clipping_records_instead_of_people_is_caught(people, monkeypatch):
    each = lambda name, data, person, on_nonfinite: np.concatenate(  # noqa: E731
        [rows_of(name, x, on_nonfinite) for x in data]
    )
    monkeypatch.setattr(person, "by_person", each)
    assert epsilon_seen(people) > 2 * PURE.epsilon


@pytest.mark.usefixtures("quiet", "one_round")
def test_half_of_the_noise_is_caught(people, monkeypatch):
    whole = steps.LaplaceQuery
    monkeypatch.setattr(
        steps, "LaplaceQuery", lambda sensitivity, budget: whole(sensitivity, 2 * budget)
    )
    assert epsilon_seen(people) > 1.4 * PURE.epsilon


@pytest.mark.usefixtures("quiet", "one_round")
def test_no_records_of_a_person_move_a_vector_by_more_than_the_noise_is_for():
    everybody = list(np.random.default_rng(1).normal(3, 0.5, size=(400, 4, 2)))
    others = [
        np.full((3, 2), 1e9),
        np.full((3, 2), -1e9),
        np.full((1, 2), np.nan),
        np.array([[np.inf, 0.0]]),
    ]
    privacy = gn.zCDP(2.0)
    change = largest_change(everybody, others, privacy)
    deviation = float(mean(everybody, privacy).noise_deviation[0])
    rho = change**2 / (2 * deviation**2)
    assert 0.74 * privacy.rho < rho <= 0.75 * privacy.rho * (1 + 1e-6)


@pytest.mark.usefixtures("quiet")
def test_every_round_clips_to_its_own_ball_around_the_round_before(people, monkeypatch):
    seen = []
    whole = person.ball_mean

    def watched(rows, center, radius, amount, *, pure):
        found = whole(rows, center, radius, amount, pure=pure)
        seen.append((center, radius, amount, found.estimate))
        return found

    monkeypatch.setattr(person, "ball_mean", watched)
    estimate = mean(people)
    assert len(seen) >= 2
    assert all((after[0] == before[3]).all() for before, after in itertools.pairwise(seen))
    assert seen[-1][1] < seen[0][1]
    location = float(estimate.split["location"].split("= ")[1])
    assert location + sum(amount for _, _, amount, _ in seen) <= PURE.epsilon * (1 + 1e-6)
    assert location + sum(amount for _, _, amount, _ in seen) == pytest.approx(
        PURE.epsilon, rel=1e-5
    )


@pytest.mark.usefixtures("quiet")
def test_order_and_names_of_people_change_nothing(people):
    rows, labels = np.concatenate(people), np.repeat(np.arange(N), 4)
    expected = mean(people).estimate
    shuffled = np.random.default_rng(2).permutation(N)
    order = np.concatenate([np.arange(4 * i, 4 * i + 4) for i in shuffled])
    names = np.array([f"person {i * 7 % 241}" for i in range(N)])[labels]
    assert mean(rows, person=labels).estimate == expected
    assert mean(rows[order], person=labels[order]).estimate == expected
    assert mean(rows[order], person=names[order]).estimate == expected


def test_one_charge_for_all_steps_protects_whole_people(people, tmp_path):
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(50.0))
    first = mean(people, ledger=ledger, id="mean")
    assert mean(people, ledger=ledger, id="mean").estimate == first.estimate
    (entry,) = ledger.entries()
    assert entry.rho == pytest.approx(PURE.epsilon**2 / 2)
    assert "all rows of one person" in entry.protects
    with pytest.raises(LedgerError):
        mean(people, samples=3, ledger=ledger, id="mean")


def test_an_unbounded_search_is_not_charged_to_a_ledger_of_rho(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(50.0))
    everybody = list(np.zeros((3000, 1)))
    with pytest.raises(BudgetError, match="radius="):
        mean(everybody, gn.ApproxDP(4, 1e-6), radius=None, ledger=ledger, id="mean")
    assert not ledger.entries()


def enough_people(privacy, **known):
    with pytest.raises(ParameterError, match="expected at least") as caught:
        mean(list(np.zeros((2, 4))), privacy, **known)
    return int(str(caught.value).split("at least ")[1].split()[0])


@pytest.mark.parametrize("privacy", [gn.PureDP(4), gn.zCDP(2), gn.ApproxDP(4, 1e-6)])
def test_too_few_people_are_refused_and_the_named_number_is_the_least(privacy):
    enough = enough_people(privacy)
    assert math.isfinite(mean(list(np.zeros((enough, 4))), privacy).bias_bound)
    with pytest.raises(ParameterError, match=f"at least {enough} people"):
        mean(list(np.zeros((enough - 1, 4))), privacy)


def test_without_a_range_only_a_threshold_finds_the_location():
    with pytest.raises(ParameterError, match="radius="):
        mean(list(np.zeros((N, 4))), radius=None)
    far = list(np.random.default_rng(0).normal(1e9, 0.5, size=(2000, 4)))
    found = mean(far, gn.ApproxDP(4, 1e-6), radius=None)
    assert abs(found.estimate - 1e9) < 0.5


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"samples": 0}, "samples"),
        ({"samples": 2.5}, "samples"),
        ({"moment": 0.0}, "moment > 0"),
        ({"order": 1.5}, "order >= 2"),
        ({"radius": -1.0}, "radius > 0"),
        ({"beta": 0.7}, "beta"),
        ({"on_nonfinite": "drop"}, "on_nonfinite"),
    ],
)
def test_what_is_out_of_range_is_named(people, known, message):
    with pytest.raises(ParameterError, match=message):
        mean(people, **known)


def test_records_are_of_people_and_finite_unless_clipped(people):
    with pytest.raises(DataError, match="person="):
        mean(np.concatenate(people))
    with pytest.raises(DataError, match="finite"):
        mean([*people, np.array([np.nan])])
    with pytest.raises(ParameterError, match="pure_person_level_mean"):
        mean(list(np.zeros((N, 4, 2))))
    strange = mean(
        [*people, np.array([np.nan]), np.full(3, np.inf), np.full(2, 1e308)], on_nonfinite="clip"
    )
    assert abs(strange.estimate - 3) < 0.5


def test_a_person_with_fewer_records_than_declared_is_not_refused(people):
    assert abs(mean([*people, np.array([3.0])]).estimate - 3) < 0.5


def test_the_last_noise_has_the_deviation_it_says():
    """With identical people only noise is left. The sizes of Laplace variables sum to a Gamma
    variable.
    """
    same, trials = list(np.full((N, 4), 3.0)), 100
    found = [mean(same) for _ in range(trials)]
    sizes = [abs(float((f.estimate - 3.0) / f.noise_deviation)) for f in found]
    low, high = chi2.ppf([1e-6, 1 - 1e-6], 2 * trials) / (2 * trials)
    assert low > 0.55  # half of the noise is out of range
    assert low < math.sqrt(2) * np.mean(sizes) < high


def test_noise_and_bias_fall_with_the_number_of_records_of_a_person():
    privacy, known = gn.PureDP(4.0), {"order": 6, "radius": 20.0}
    found = {m: mean(list(np.zeros((500, m))), privacy, samples=m, **known) for m in (1, 16, 256)}
    size = {m: float(f.noise_deviation + f.bias_bound) for m, f in found.items()}
    assert size[256] < size[16] / 3 < size[1] / 6


def normal(rng, shape):
    return rng.normal(size=shape)


def heavy(rng, shape):
    """Draw from Student's distribution with three degrees of freedom."""
    return rng.standard_t(3, size=shape) / math.sqrt(3)


def skewed(rng, shape):
    """Draw from Pareto's distribution with a shape of 2.5."""
    return (rng.pareto(2.5, size=shape) - 1 / 1.5) / math.sqrt(2.5 / (1.5**2 * 0.5))


def rare(rng, shape):
    """Draw records of which a tenth carries all the variance."""
    return (rng.random(shape) < 0.01) * 10.0 - 0.1


LAWS = [normal, heavy, skewed, rare]
LEVEL, TRIALS = 0.9, 50


def covered(law, privacy, m, d=None, **known):
    """Return how many of TRIALS intervals contain the mean of the first coordinate."""
    rng, hits = np.random.default_rng(4), 0
    for _ in range(TRIALS):
        data = list(7.0 + law(rng, (N, m) if d is None else (N, m, d)))
        low, high = mean(data, privacy, samples=m, **({"order": 2} | known)).confidence_interval(
            LEVEL
        )
        hits += bool(np.ravel(low)[0] <= 7.0 <= np.ravel(high)[0])
    return hits


LEAST = int(binom.ppf(1e-5, TRIALS, LEVEL))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_intervals_hold_their_level(law):
    assert covered(law, PURE, 5) >= LEAST


def test_intervals_hold_their_level_in_three_dimensions():
    assert covered(heavy, gn.zCDP(20.0), 5, d=3) >= LEAST


def test_a_moment_that_is_far_too_small_is_caught():
    assert covered(normal, PURE, 5, moment=0.2, radius=2.0, center=7.0) < LEAST


def test_vectors_are_estimated_within_their_noise():
    n, d, m = 400, 4, 9
    data = list(np.random.default_rng(5).normal(np.arange(d), 0.9, size=(n, m, d)))
    truth = np.mean(data, axis=(0, 1))
    found = mean(data, gn.zCDP(4.0), samples=m)
    size = np.linalg.norm((found.estimate - truth) / (found.noise_deviation[0]))
    assert found.estimate.shape == (d,)
    assert (
        size
        < math.sqrt(chi2.isf(1e-7, d))
        + math.sqrt(d) * found.bias_bound[0] / found.noise_deviation[0]
    )
