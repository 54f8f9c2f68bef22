"""Lower bounds on ε of a threshold, from draws: below the claim, and above it for every mutant."""

import math

import audit_kit as kit
import pytest

import gaussnoise as gn
from gaussnoise.privacy.threshold import Change, ThresholdQuery

DRAWS = 4000
EPSILON, DELTA = 1.0, 0.1


def sound(query, count):
    return query.frequent(dict.fromkeys(range(DRAWS), count) if count else {})


def no_noise(query, count):
    """A threshold on exact counts."""
    return {k: float(count) for k in range(DRAWS) if count >= query.threshold}


def no_threshold(query, count):
    """Noise on whatever occurs."""
    shown = dict.fromkeys(range(DRAWS), 10**6) if count else {}
    return {k: x - 10**6 + count for k, x in query.frequent(shown).items()}


def too_low(query, count):
    """A threshold as if no row counted."""
    return {k: x for k, x in no_threshold(query, count).items() if x >= 1}


def attacked(mechanism):
    """The best of a few events, on a key of one row, and on one whose count is at the threshold."""
    budget = gn.ApproxDP(EPSILON, DELTA / 2).to_zcdp().rho
    query = ThresholdQuery(Change.added(1), budget, DELTA / 2)
    edge = math.ceil(query.threshold)
    best = -math.inf
    for count in (1, edge):
        many, fewer = mechanism(query, count), mechanism(query, count - 1)
        for least in (-math.inf, edge, edge + query.standard_deviation):
            a, b = (sum(x >= least for x in shown.values()) for shown in (many, fewer))
            for hits in ((a, b), (DRAWS - b, DRAWS - a)):
                best = max(best, kit.bound_from_hits(*hits, DRAWS, DELTA))
    return best


def test_a_threshold_keeps_its_guarantee():
    assert attacked(sound) <= EPSILON


@pytest.mark.parametrize("mutant", [no_noise, no_threshold, too_low])
def test_mutants_are_caught(mutant):
    assert attacked(mutant) > EPSILON
