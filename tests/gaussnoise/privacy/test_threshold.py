"""Thresholds for keys of which no list is known.

References: sums of the discrete Gaussian in many digits, brute force over small tables, draws.
"""

import itertools
import math

import mpmath
import pytest
from scipy import stats

from gaussnoise.errors import ParameterError
from gaussnoise.privacy import threshold as _threshold
from gaussnoise.privacy.threshold import Change, ThresholdQuery

ALARM = 1e-6  # significance level of a test of draws


def shown_chance(scale, threshold, count):
    """The probability that ``count`` plus a discrete Gaussian is at least ``threshold``."""
    with mpmath.workdps(40):

        def weight(k):
            return mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(scale) ** 2))

        end = threshold - count + 20 * math.ceil(scale)
        total = 1 + 2 * mpmath.fsum(weight(k) for k in range(1, 20 * math.ceil(scale)))
        return mpmath.fsum(weight(k) for k in range(threshold - count, end)) / total


@pytest.mark.parametrize(("scale", "threshold"), [(1.0, 4), (3.5, 12), (24.0, 100), (24.0, 30)])
@pytest.mark.parametrize(("keys", "most"), [(1, 1), (1, 3), (3, 2)])
def test_opendp_charges_the_exact_chance_for_one_step_lower(scale, threshold, keys, most):
    """OpenDP's tail is that of a continuous Gaussian: see ``ThresholdQuery._charge``."""
    exact = 1 - (1 - shown_chance(scale, threshold, most)) ** keys
    higher, lower = (
        _threshold._measurement(scale, at).map((keys, math.sqrt(keys) * most, most))[1]
        for at in (threshold + 1, threshold - 1)
    )
    assert higher < exact <= lower


CHANGES = [Change.added(1), Change.added(4), Change.replaced(1), Change.replaced(3)]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("rho", "delta"), [(0.03, 5e-7), (1.0, 1e-3), (1e-4, 0.2), (30.0, 1e-9)])
def test_no_more_than_the_budget_is_spent_and_nearly_all_of_it(change, rho, delta):
    query = ThresholdQuery(change, rho, delta)
    spent = query.spent
    assert rho * (1 - 1e-9) <= spent[0] <= rho
    assert delta * 0.999 <= spent[1] <= delta
    # of a continuous Gaussian, from which the lattice is far less away
    sigma = query.standard_deviation
    assert sigma >= math.sqrt(change.length_squared / (2 * rho))
    alone = stats.norm.sf((query.threshold - change.most) / sigma)
    assert -math.expm1(change.keys * math.log1p(-alone)) <= delta * (1 + 1e-5)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_changes_are_the_largest_of_all_tables(k):
    """The reference is over all counts that two persons of at most k rows and few keys can have."""
    people = [rows for rows in itertools.product(range(k + 1), repeat=2 * k) if sum(rows) <= k]
    replaced = (
        tuple(a - b for a, b in zip(*pair, strict=True))
        for pair in itertools.product(people, repeat=2)
    )
    for change, moved in ((Change.added(k), people), (Change.replaced(k), replaced)):
        worst = [
            (sum(x != 0 for x in row), sum(x * x for x in row), max(map(abs, row))) for row in moved
        ]
        found = tuple(max(column) for column in zip(*worst, strict=True))
        assert found == (change.keys, change.length_squared, change.most)


def share_shown(query, count, draws=4000):
    """The share of equal keys that are shown; their noises are independent."""
    return len(query.frequent(dict.fromkeys(range(draws), count))), draws


def test_a_key_of_one_row_is_shown_as_often_as_delta_says():
    query = ThresholdQuery(Change.added(1), 0.5, 0.2)
    shown, draws = share_shown(query, 1)
    assert stats.binomtest(shown, draws, 0.2).pvalue > ALARM
    shown, draws = share_shown(query, 2)  # one row more than is protected
    assert stats.binomtest(shown, draws, 0.2).pvalue < ALARM


def test_noise_is_gaussian_above_the_threshold():
    query = ThresholdQuery(Change.added(1), 0.5, 1e-3)
    noisy = query.frequent(dict.fromkeys(range(4000), 1000))
    assert sorted(noisy) == list(range(4000))
    noise = [value - 1000 for value in noisy.values()]
    assert stats.kstest(noise, stats.norm(scale=query.standard_deviation).cdf).pvalue > ALARM
    assert all(value >= query.threshold for value in noisy.values())
    assert stats.kstest(noise, stats.norm(scale=query.standard_deviation / 1.5).cdf).pvalue < ALARM


def test_many_keys_and_large_counts_fit(monkeypatch):
    monkeypatch.setattr(_threshold, "_AT_ONCE", 3)
    query = ThresholdQuery(Change.added(1), 0.5, 1e-6)
    noisy = query.frequent({key: 10**key for key in range(2, 15)} | {99: 1})
    assert set(range(2, 9)) <= set(noisy)
    assert 99 not in noisy
    # counts that 64 bits cannot hold are capped
    assert noisy[14] == pytest.approx(2.0**62 / 2**query._bits, rel=1e-6)
    assert query.frequent({}) == {}


@pytest.mark.parametrize(
    ("change", "rho", "delta", "part"),
    [
        (Change.added(1), 1.0, 1e-30, "allow no threshold"),
        (Change.added(10**6), 1e-30, 1e-6, "scale"),
        (Change.added(1), 1e9, 1e-6, "less rho"),
    ],
)
def test_budgets_without_a_threshold_are_refused(change, rho, delta, part):
    with pytest.raises(ParameterError, match=part):
        _ = ThresholdQuery(change, rho, delta).spent
