"""How far clipping moves the mean of an average: against linear programmes and against exact
distributions.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import gammaln

from gaussnoise.estimators import averages
from gaussnoise.estimators.averages import Averages, _partitions


def two_points(m, k, p, reach):
    """Return the exact ``E(|X̄| − reach)₊`` of m records that are high with chance p, of mean zero
    and k-th moment one.
    """
    low = -p / (1 - p)
    scale = (p + (1 - p) * abs(low) ** k) ** (-1 / k)
    j = np.arange(m + 1)
    log = (
        gammaln(m + 1)
        - gammaln(j + 1)
        - gammaln(m - j + 1)
        + j * math.log(p)
        + (m - j) * math.log1p(-p)
    )
    mean = scale * (j + low * (m - j)) / m
    return (np.maximum(np.abs(mean) - reach[:, None], 0) * np.exp(log)).sum(axis=1)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("reach", [1.0, 2.0, 5.0])
def test_one_record_is_clipped_by_no_more_than_a_linear_programme_finds(k, reach):
    x = np.concatenate([[0.0], np.geomspace(1e-3, 100, 1500)])
    most = linprog(
        -np.maximum(x - reach, 0), A_ub=[x**k, np.ones_like(x)], b_ub=[1, 1], method="highs"
    )
    bound = Averages(1, 1, k).clipping_bias(np.array([reach]), 0.0)[0]
    assert bound >= -most.fun * (1 - 1e-9)
    if reach > 1:
        assert bound == pytest.approx(-most.fun, rel=1e-3)


def worst_ratio():
    """Return the worst ratio of exact bias to bound, over laws, numbers, orders and reaches."""
    worst = 0.0
    for m, k in itertools.product((2, 5, 20, 200), (2, 2.5, 3, 4, 6)):
        reach = np.geomspace(0.3, 60, 12) / math.sqrt(m)
        bound = Averages(1, m, k).clipping_bias(reach, 0.0)
        exact = [two_points(m, k, p, reach) for p in np.geomspace(1e-7, 0.5, 24)]
        worst = max(worst, float((np.array(exact) / bound).max()))
    return worst


def test_no_law_on_two_points_is_clipped_by_more_than_the_bound_and_some_by_nearly_as_much():
    assert 0.99 < worst_ratio() <= 1 + 1e-9


def test_a_bound_with_half_of_the_heavy_records_is_caught(monkeypatch):
    whole = averages._excess
    monkeypatch.setattr(averages, "_excess", lambda q: whole(q) / 2)
    assert worst_ratio() > 1


def test_partitions_without_single_elements_are_counted():
    def count(elements, blocks):
        labels = itertools.product(range(blocks), repeat=elements)
        return sum(
            all(label.count(b) >= 2 for b in range(blocks)) for label in labels
        ) // math.factorial(blocks)

    assert all(_partitions(e, b) == count(e, b) for e in range(2, 8) for b in range(1, 4))


def test_the_fourth_moment_is_exact_for_coins():
    for m in (1, 2, 5):
        signs = np.array(list(itertools.product((-1, 1), repeat=m))).mean(axis=1)
        assert Averages(1, m, 4).moment(4) == pytest.approx((signs**4).mean())


def exact_shift(d, m, k, p, radius, off):
    """Return the norm of the exact bias of clipping around a center that is off, for records on the
    axes or at zero.
    """
    size = (d / p) ** (1 / k)  # the moment is one along an axis, less in all other directions
    atoms = np.vstack([np.zeros(d), size * np.eye(d), -size * np.eye(d)])
    weights = np.array([1 - p] + [p / (2 * d)] * (2 * d))
    chosen = np.array(list(itertools.product(range(2 * d + 1), repeat=m)))
    mean, weight = atoms[chosen].mean(axis=1), weights[chosen].prod(axis=1)
    center = off * np.eye(d)[0]
    length = np.linalg.norm(mean - center, axis=1, keepdims=True)
    moved = center + (mean - center) * np.minimum(1, radius / np.maximum(length, 1e-300))
    return float(np.linalg.norm((weight[:, None] * (moved - mean)).sum(axis=0)))


def worst_shift():
    worst = 0.0
    for (d, m), k in itertools.product([(2, 1), (2, 4), (3, 2), (4, 1)], (2, 3, 4)):
        for off, p in itertools.product((0.2, 1.0), np.geomspace(1e-6, 1, 9)):
            reach = np.geomspace(0.3, 30, 7)
            bound = Averages(d, m, k).clipping_bias(reach, off)
            exact = [exact_shift(d, m, k, p, t + off, off) for t in reach]
            worst = max(worst, float((np.array(exact) / bound).max()))
    return worst


def test_in_many_dimensions_no_such_law_is_moved_by_more_than_the_bound():
    assert worst_shift() <= 1


def test_in_many_dimensions_a_bound_that_forgets_the_centers_error_is_caught(monkeypatch):
    whole = Averages.clipping_bias
    monkeypatch.setattr(Averages, "clipping_bias", lambda self, t, off: 0.3 * whole(self, t, 0.0))
    assert worst_shift() > 1


def test_the_bound_falls_with_reach():
    for d, m, k in itertools.product((1, 3), (1, 16), (2, 3.5, 6)):
        assert (np.diff(Averages(d, m, k).clipping_bias(np.geomspace(1, 50, 30), 0.1)) < 0).all()


def test_many_records_have_normal_tails():
    deviations = 6.0
    bound = Averages(1, 10**6, 8).clipping_bias(np.array([deviations / 1000]), 0.0)[0] * 1000
    assert bound < 3 * math.exp(-(deviations**2) / 2)
