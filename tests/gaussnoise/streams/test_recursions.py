"""Strategies of few states against dense matrices, rational arithmetic and differences."""

from fractions import Fraction

import numpy as np
import pytest

from gaussnoise import streams
from gaussnoise.solvers.streams import few_states as search
from gaussnoise.solvers.streams.covariances import covariances
from gaussnoise.solvers.streams.recursions import Recursion

WORKLOADS = {
    "totals": streams.prefix_sums,
    "momentum": lambda n: streams.momentum(n, 0.9, weight_decay=0.01),
    "means": streams.running_means,
}
every_workload = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)


def random_recursion(workload, q, seed=0):
    rng = np.random.default_rng(seed)
    n = workload.ticks
    d, fading = rng.uniform(0.5, 1, n), rng.uniform(0.2, 0.99, q)
    return Recursion(workload, d, *rng.normal(size=(2, n, q)) / 2, fading)


@pytest.mark.parametrize("n", [1, 2, 7, 50])
def test_covariances_are_those_of_one_step_after_the_other(n):
    rng = np.random.default_rng(n)
    moves, draws = rng.normal(size=(n, 3, 3)) / 2, rng.normal(size=(n, 3))
    expected = [np.zeros((3, 3))]
    for move, draw in zip(moves, draws, strict=True):
        expected.append(move @ expected[-1] @ move.T + np.outer(draw, draw))
    np.testing.assert_allclose(covariances(moves, draws), expected, rtol=1e-10, atol=1e-12)


@every_workload
def test_variances_are_those_of_dense_matrices(workload):
    made = random_recursion(workload(30), 3)
    mixing = made.workload.toarray() @ np.linalg.inv(made.strategy())
    np.testing.assert_allclose(made.variances(), np.square(mixing).sum(axis=1), rtol=1e-9)


def exact_columns(made):
    """Return the squared norms of the columns of C from the stored numbers, in fractions."""
    d, u, v, fading = (
        np.vectorize(Fraction, otypes=[object])(part)
        for part in (made.diagonal, made.shown, made.kept, made.fading)
    )
    n = len(d)
    return [
        d[s] ** 2
        + sum(sum(u[t] * v[s] * fading ** (t - s - 1), Fraction(0)) ** 2 for t in range(s + 1, n))
        for s in range(n)
    ]


@pytest.mark.parametrize("q", [1, 2, 4])
def test_squared_columns_bound_those_of_the_stored_numbers(q):
    for seed in range(3):
        made = random_recursion(streams.prefix_sums(9), q, seed)
        found = [Fraction(float(x)) for x in made.squared_columns()]
        for upper, true in zip(found, exact_columns(made), strict=True):
            # the largest sum without signs is below a thousand times the sum
            assert true <= upper <= true * (1 + Fraction(1, 10**9))


def test_columns_whose_terms_cancel_are_bounded_too():
    """Two states whose effects cancel but for the last digits."""
    n, made = 12, random_recursion(streams.prefix_sums(12), 1)
    both = np.concatenate([made.kept, -made.kept * (1 + 2.0**-40)], axis=1)
    twice = np.tile(made.shown, 2)
    made = Recursion(made.workload, np.full(n, 2.0**-60), twice, both, np.tile(made.fading, 2))
    found = [Fraction(float(x)) for x in made.squared_columns()]
    assert all(map(Fraction.__le__, exact_columns(made), found))


@every_workload
@pytest.mark.parametrize("power", [1, 8, 512])
@pytest.mark.parametrize("knots", [search._knots, np.arange], ids=["knots", "ticks"])
def test_derivatives_are_limits_of_differences(workload, power, knots):
    made, q = workload(12), 2
    between = search._interpolation(knots(12), 12)
    x = np.random.default_rng(power).normal(size=between.shape[1] * 2 * q + q) / 3
    given = made.bands, between, q, power

    def value(x):
        return search._value(x, *given)[0]

    step = 1e-5
    expected = [(value(x + e) - value(x - e)) / (2 * step) for e in step * np.eye(len(x))]
    # third derivatives times the square of the step, and rounding over the step, are below this
    np.testing.assert_allclose(search._value(x, *given)[1], expected, atol=1e-6)


def test_values_between_knots_are_linear():
    knots = np.array([0, 1, 4, 9])
    np.testing.assert_allclose(
        search._interpolation(knots, 10) @ (3.0 * knots), 3.0 * np.arange(10)
    )
