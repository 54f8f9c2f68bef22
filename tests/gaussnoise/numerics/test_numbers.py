"""Norms and their duals, exact integers, and lattices fine enough for a budget."""

import math
from fractions import Fraction

import numpy as np
import pytest

from gaussnoise.numerics.integers import MOST_SUM, exact_type, root_above
from gaussnoise.numerics.norms import (
    dual_ball_norm,
    dual_order,
    dual_power,
    error_of,
    error_of_factor,
    even_weights,
    group_norm,
    norm,
    row_lengths,
)
from gaussnoise.privacy.lattice_bound import MIN_STEPS, lattice_bits
from gaussnoise.privacy.sampler import IntegerQuery

ORDERS = [2, 2.5, 3, 4, 17.0, math.inf]


@pytest.mark.parametrize("p", ORDERS)
def test_weights_in_the_dual_ball_weigh_variances_no_higher_than_their_norm(p):
    rng = np.random.default_rng(3)
    for u, w in rng.exponential(size=(20, 2, 5)) ** 3:
        weighted = u @ (w / dual_ball_norm(w, p))
        assert weighted <= norm(u, p / 2) * (1 + 1e-14)  # Hölder
        share = np.ones(5) if p == 2 else np.zeros(5)
        if p == math.inf:
            share[u.argmax()] = 1.0
        elif p > 2:
            share = u ** (p / 2) / (u ** (p / 2)).sum()
        best = share ** dual_power(p) if 2 < p < math.inf else share
        assert dual_ball_norm(best, p) == pytest.approx(1, rel=1e-14)
        assert u @ best == pytest.approx(norm(u, p / 2), rel=1e-13)  # the bound is attained
        assert u @ (1.001 * best) > norm(u, p / 2)  # longer weights exceed it


@pytest.mark.parametrize("p", ORDERS)
def test_even_weights_have_dual_length_one(p):
    assert dual_ball_norm(even_weights(7, p), p) == pytest.approx(1, rel=1e-14)
    assert 2 / p + 1 / dual_order(p) == pytest.approx(1)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("size", [1.0, 1e-150, 1e150])
def test_the_error_is_the_norm_of_standard_deviations_at_any_size(p, size):
    L = np.random.default_rng(1).normal(size=(4, 3))
    sd = np.sqrt(np.diagonal(L @ L.T))
    expected = size * np.linalg.norm(sd, p)
    assert error_of_factor(size * L, p) == pytest.approx(expected, rel=1e-14)
    assert error_of(np.square(size * sd), p, 9.0) == pytest.approx(3 * expected, rel=1e-14)
    assert error_of(np.zeros(3), p) == 0
    assert row_lengths(size * L) == pytest.approx(size * sd, rel=1e-15)
    counts = np.array([2, 1, 3, 5])
    assert group_norm(size * sd, counts, p) == pytest.approx(
        size * np.linalg.norm(np.repeat(sd, counts), p), rel=1e-14
    )


@pytest.mark.parametrize("square", [1, 2, 3, 10**20 + 1, 2**107 - 1, 7**80])
def test_roots_of_integers_are_rounded_up(square):
    root = root_above(square)
    assert Fraction(root) ** 2 >= square
    below = math.nextafter(math.nextafter(root, 0), 0)
    assert Fraction(below) ** 2 < square


def test_sums_that_may_leave_64_bits_are_of_unbounded_integers():
    at_most = [2**61, 2**61 - 1]
    assert int(np.array(at_most, dtype=exact_type(sum(at_most))).sum()) == sum(at_most) < MOST_SUM
    too_many = [2**62] * 3
    assert exact_type(sum(too_many)) is object
    assert int(np.array(too_many, dtype=object).sum()) == sum(too_many)
    assert int(np.array(too_many, dtype=np.int64).sum()) != sum(too_many)


@pytest.mark.parametrize("rho", [1e-12, 1e-3, 0.5, 1.0, 3.0, 1e6])
def test_counts_get_a_lattice_as_fine_as_guarantees_need(rho):
    bits = lattice_bits(rho)
    assert IntegerQuery(4**bits, rho).scale >= MIN_STEPS
    assert bits == 0 or 2.0 ** (bits - 1) < 2 * MIN_STEPS * math.sqrt(rho)  # no finer than needed
    assert lattice_bits(rho, 5) == max(bits - 5, 0) if bits else lattice_bits(rho, 5) == 0
