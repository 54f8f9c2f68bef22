"""Least sums over patterns of differing attributes, against all patterns and rational numbers."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussnoise.solvers.tables.worst_pattern as worst_pattern
from gaussnoise.solvers.tables.orbits import Orbits
from gaussnoise.solvers.tables.patterns import pattern_sums
from gaussnoise.solvers.tables.worst_pattern import least_sum, searched_move


def orbits_of(counts):
    starts = np.concatenate([[0], np.cumsum(counts)])
    return Orbits(tuple(tuple(range(a, b)) for a, b in itertools.pairwise(starts.tolist())))


@st.composite
def problems(draw):
    """Draw classes, shares of all types up to some degree, and a factor of each class."""
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    orbits = orbits_of(counts)
    degree = min(draw(st.integers(1, 4)), sum(counts))
    types = [
        T
        for t in range(degree + 1)
        for T in itertools.combinations_with_replacement(range(len(counts)), t)
        if all(n <= counts[k] for k, n in Counter(T).items())
    ]
    kept = draw(st.lists(st.sampled_from(types), min_size=1, unique=True))
    share = st.floats(0.0, 1.0).map(lambda x: 10 ** (4 * x - 4))
    shares = {T: draw(share) for T in kept}
    factor = st.one_of(
        st.integers(2, 12).map(lambda n: -1 / (n - 1)), st.floats(-1.0, 1.0), st.just(1.0)
    )
    return orbits, shares, [draw(factor) for _ in counts]


def all_sums(orbits, shares, unequal):
    """Return the sums of all patterns; attributes with factor one never differ."""
    sums = pattern_sums(orbits, shares, [1.0] * len(unequal), unequal)
    return sums[tuple(slice(1 if factor == 1 else None) for factor in unequal)]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(problems())
def test_the_bracket_holds_the_least_of_all_sums(problem):
    orbits, shares, _ = problem
    sums = all_sums(*problem)
    total = sum(share * orbits.size(T) for T, share in shares.items())
    found = least_sum(*problem)
    assert found.lower <= sums.min() + 1e-13 * total
    assert found.values[0] >= sums.min() - 1e-13 * total
    assert found.values[0] - found.lower <= 2e-7 * total
    for pattern, value in zip(found.patterns, found.values, strict=True):
        assert sums[tuple(pattern)] == pytest.approx(value, abs=1e-12 * total)
    coarse = least_sum(*problem, effort=0.0)
    assert coarse.lower <= sums.min()
    # as claims: true ones are proven, false ones are not
    largest = 2 * (total - sums.min())
    assert largest <= searched_move(*problem) <= largest * (1 + 3e-8) + 5e-7 * total
    assert searched_move(*problem, 1.001 * largest + 1e-6 * total) <= 1.001 * largest + 1e-6 * total
    assert searched_move(*problem, 0.999 * largest) >= largest * (1 - 1e-12)


def test_boxes_are_bounded_below_their_least_sum():
    """The root box alone, for sums of one to four factors; without the bend it is not a bound."""
    rng = np.random.default_rng(3)
    above = 0
    for trial in range(60):
        counts = rng.integers(1, 5, size=3)
        orbits, degree = orbits_of(counts), 2 + trial % 3
        types = [
            T
            for T in itertools.combinations_with_replacement(range(3), degree)
            if all(n <= counts[k] for k, n in Counter(T).items())
        ]
        if not types:
            continue
        problem = (
            orbits,
            {T: float(rng.random()) for T in types},
            [-1 / (n - 1) for n in rng.integers(2, 6, size=3)],
        )
        least = float(all_sums(*problem).min())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(worst_pattern, "_MOST_WORK", 1.0)
            assert least_sum(*problem).lower <= least
            patch.setattr(worst_pattern, "_diagonals", lambda m: np.zeros(m.shape[:2]))
            patch.setattr(
                worst_pattern._Search, "best", property(lambda self: math.inf), raising=True
            )
            above += least_sum(*problem, enough=math.inf).lower > least + 1e-9
    assert above > 0


def test_a_sum_that_only_rational_numbers_tell():
    """For two classes of one attribute each, the four sums are computed by hand."""
    orbits, unequal = orbits_of([1, 1]), [Fraction(-1, 2), Fraction(-1, 3)]
    shares = {(): Fraction(1), (0,): Fraction(2), (1,): Fraction(3), (0, 1): Fraction(5)}
    exact = min(
        shares[()] + shares[0,] * a + shares[1,] * b + shares[0, 1] * a * b
        for a in (1, unequal[0])
        for b in (1, unequal[1])
    )
    floats = {T: float(share) for T, share in shares.items()}
    found = least_sum(orbits, floats, [float(x) for x in unequal])
    assert Fraction(found.lower) <= exact <= Fraction(float(found.values[0])) + Fraction(1, 10**12)
    assert found.values[0] - found.lower <= 2e-7 * float(sum(shares.values()))


def test_sums_of_very_many_factors_are_bounded_coarsely():
    found = least_sum(orbits_of([9]), {(0,) * 8: 1.0, (0,): 2.0}, [-0.5])
    sums = pattern_sums(orbits_of([9]), {(0,) * 8: 1.0, (0,): 2.0}, [1.0], [-0.5])
    assert found.lower <= sums.min() <= found.values[0]


def test_nothing_to_sum_is_zero():
    assert least_sum(orbits_of([2]), {(0,): 0.0}, [-1.0]).lower == 0.0


def test_products_of_very_many_classes_are_told_apart():
    """The codes of such rows would not fit into 64 bits."""
    rows = np.array([[1, 2, 3, 4, 5, 1535], [1, 2, 3, 4, 5, 2047], [1, 2, 3, 4, 5, 1535]])
    distinct, places = worst_pattern._distinct(rows, 2047)
    assert np.array_equal(distinct[places], rows)
    assert len(distinct) == 2


def test_sums_too_large_for_one_box_are_bounded_coarsely(monkeypatch):
    boxes = []
    monkeypatch.setattr(worst_pattern._Search, "bound", lambda *_: boxes.append(1) or -math.inf)
    rng = np.random.default_rng(0)
    orbits, shares = orbits_of([1] * 100), {}
    for _ in range(100):
        S = sorted(rng.choice(100, 5, replace=False).tolist())
        for t in range(6):
            shares |= dict.fromkeys(itertools.combinations(S, t), 1.0)
    found = least_sum(orbits, shares, [-0.5] * 100, effort=1e-9)
    assert found.lower < found.values[0]
    assert found.lower == least_sum(orbits, shares, [-0.5] * 100, effort=0).lower
    assert boxes == []
    least_sum(orbits_of([1] * 5), {(0, 1, 2, 3, 4): 1.0}, [-0.5] * 5, effort=1e-9)
    assert boxes == [1]
