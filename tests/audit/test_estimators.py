"""Lower bounds on ε for the steps of estimators, and for a whole one: never above the claim, above
it for mutants.
"""

import math

import audit_kit as kit
import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.estimators import ranges, steps
from gaussnoise.privacy.laplace import LaplaceQuery, NoisyMaximum

PURE, RHO = 2.0, 1.5
GAUSSIAN = kit.gaussian_epsilon(RHO, kit.DELTA)
WHOLE = 0.5  # ρ of whole estimates, where few draws see most
LOW, HIGH = np.array([[-1.0], [0.0], [0.0]]), np.array([[1.0], [0.0], [0.0]])
BEFORE, AFTER = np.array([1, 0, 2]), np.array([0, 1, 2])


def first(left, right):
    return lambda outputs: outputs[:, 0]


def outputs(draw, times):
    return np.array([np.ravel(draw()) for _ in range(times)], dtype=np.float64)


def counts_score(left, right):
    return lambda seen: seen[:, 0] - seen[:, 1]


def index_score(left, right):
    return lambda seen: (seen[:, 0] == 0).astype(float)


AUDITS = {
    "Laplace mean": (
        lambda rows: steps.laplace_mean(rows, 1.0, PURE).estimate,
        HIGH,
        LOW,
        first,
        PURE,
        0.0,
        700,
    ),
    "Laplace counts": (
        lambda counts: steps.laplace_counts(counts, PURE),
        BEFORE,
        AFTER,
        counts_score,
        PURE,
        0.0,
        700,
    ),
    "fullest bin": (
        lambda counts: steps.fullest(counts, PURE, pure=True),
        np.array([3, 2, 0]),
        np.array([2, 3, 0]),
        index_score,
        PURE,
        0.0,
        700,
    ),
    "Gaussian mean": (
        lambda rows: steps.ball_mean(rows, np.zeros(1), 1.0, RHO, pure=False).estimate,
        HIGH,
        LOW,
        first,
        GAUSSIAN,
        kit.DELTA,
        800,
    ),
    "Gaussian counts": (
        lambda counts: steps.noisy_counts(counts, RHO),
        BEFORE,
        AFTER,
        counts_score,
        GAUSSIAN,
        kit.DELTA,
        800,
    ),
    "numbers outside a range": (
        lambda numbers: ranges.Counts(
            ranges.exact_in(np.array(numbers)), "replace", RHO, 0.01
        ).outside(0.0, 1.0, RHO),
        np.array([-1.0, 0.5]),
        np.array([2.0, 0.5]),
        counts_score,
        GAUSSIAN,
        kit.DELTA,
        800,
    ),
}


def audit(name, share=1.0):
    draw, left, right, score, claim, delta, times = AUDITS[name]
    times = round(share * times)
    sides = [outputs(lambda side=side: draw(side), times) for side in (left, right)]
    return kit.epsilon_bound(*sides, score, delta=delta), claim


@pytest.mark.parametrize("name", AUDITS)
def test_steps_spend_what_they_claim(name):
    found, claim = audit(name)
    assert 0 < found < claim


def weaker(monkeypatch):
    """Noise of a fifth of its scale, in every step."""
    for owner in (LaplaceQuery, steps.IntegerQuery):
        whole = owner.draw
        monkeypatch.setattr(
            owner,
            "draw",
            lambda self, count, whole=whole: [round(noise / 5) for noise in whole(self, count)],
        )
    whole_scale = NoisyMaximum.scale.func
    monkeypatch.setattr(NoisyMaximum, "scale", property(lambda self: whole_scale(self) / 5))


@pytest.mark.parametrize("name", AUDITS)
def test_steps_of_too_little_noise_are_caught(name, monkeypatch):
    weaker(monkeypatch)
    found, claim = audit(name, 0.7)
    assert found > claim


REST = np.zeros(299)
ESTIMATORS = {
    "heavy-tailed mean": lambda far, privacy: gn.estimators.heavy_tailed_mean(
        np.append(REST, far), privacy, moment=1, radius=6
    ),
    "person-level mean": lambda far, privacy: gn.estimators.person_level_mean(
        np.append(REST, [far] * 10), privacy, person=[*range(299), *[299] * 10], samples=1, radius=6
    ),
    "CoinPress": lambda far, privacy: gn.estimators.coinpress_mean(
        np.append(REST, far)[:, None] * [1.0, 0.0], privacy, radius=3, steps=2
    ),
    "box": lambda far, privacy: gn.estimators.clipped_mean(
        np.append(REST, far), privacy, bounds=(-1, 1)
    ),
}


def whole(name, times=200):
    """One record, or person, that lies as far out as clipping lets it, or further; all steps
    included.
    """
    sides = [
        outputs(lambda far=far: ESTIMATORS[name](far, gn.zCDP(WHOLE)).estimate, times)
        for far in (1e6, -1e6)
    ]
    return kit.epsilon_bound(*sides, first)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_whole_estimates_spend_no_more(name):
    assert whole(name) < kit.gaussian_epsilon(WHOLE, kit.DELTA)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_whole_estimates_of_too_little_noise_are_caught(name, monkeypatch):
    weaker(monkeypatch)
    assert whole(name) > kit.gaussian_epsilon(WHOLE, kit.DELTA)


def test_estimates_that_do_not_clip_are_caught(monkeypatch):
    monkeypatch.setattr("gaussnoise.estimators.moments.ball_mean", _leaking)
    assert whole("heavy-tailed mean") > kit.gaussian_epsilon(WHOLE, kit.DELTA)


def test_people_who_count_record_by_record_are_caught(monkeypatch):
    """Noise for one record, where one person has ten."""
    monkeypatch.setattr(
        "gaussnoise.estimators.person.by_person", lambda name, data, person, on_nonfinite: data
    )
    assert whole("person-level mean") > kit.gaussian_epsilon(WHOLE, kit.DELTA)


def _leaking(rows, center, radius, amount, *, pure):
    """A mean whose noise is for clipped records, of records that are not."""
    n = len(rows)
    noise = math.ldexp(steps.IntegerQuery(4**31, amount).draw(1)[0], -30)
    return steps.NoisyMean(
        rows.mean(axis=0) + radius * noise / n, np.array([radius / n]), np.zeros(1)
    )
