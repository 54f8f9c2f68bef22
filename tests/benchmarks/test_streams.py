"""Workloads over time: time in proportion to ticks, and noise of few states against its published
peer.
"""

import math
import time
import warnings

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.errors import ConvergenceWarning
from gaussnoise.solvers.streams.optimum import evaluate

pytestmark = pytest.mark.benchmark


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def test_one_evaluation_is_linear_in_ticks():
    """From a thousand to a million ticks: a thousand times the ticks, less than three thousand
    times the time.
    """
    taken = {}
    for n in (1_000, 10_000, 100_000, 1_000_000):
        given = gn.streams.prefix_sums(n).bands, np.full(n, 1 / n), np.ones(n)
        taken[n] = min(seconds(lambda given=given: evaluate(*given)) for _ in range(2))
        print(f"{n:9,} ticks: {taken[n]:.3g} s an evaluation")
    assert taken[1_000_000] < 30 * taken[100_000]
    assert taken[1_000_000] < 3000 * taken[1_000]


def test_one_evaluation_of_momentum_is_linear_in_ticks():
    """From a thousand to a hundred thousand ticks: a hundred times the ticks, less than three
    hundred times the time, and a bracket that rounding widens by less than a millionth.
    """
    taken = {}
    for n in (1_000, 10_000, 100_000):
        given = gn.streams.momentum(n, 0.9).bands, np.full(n, 1 / n), np.ones(n)
        taken[n] = seconds(lambda given=given: evaluate(*given))
        print(f"{n:9,} ticks: {taken[n]:.3g} s an evaluation")
    assert taken[100_000] < 300 * taken[1_000]
    found = evaluate(*given)
    trace = float(given[1] @ found.leverages)  # of the same matrix as the lower end, from above
    print(f"width of the trace's bracket: {trace / found.lower - 1:.2g}")
    assert trace <= found.lower * (1 + 1e-6)


def test_the_optimum_costs_less_than_one_eigenvalue_problem_of_its_size():
    n = 3000
    matrix = np.minimum.outer(np.arange(1.0, n + 1), np.arange(1.0, n + 1))
    dense = seconds(lambda: np.linalg.eigh(matrix))
    ours = seconds(lambda: gn.optimal_noise(gn.streams.prefix_sums(n), 2, neighbors="add-remove"))
    print(f"{n} ticks: {ours:.2f} s, {ours / dense:.2f} of one eigh of the same size")
    assert ours < 2 * dense


@pytest.mark.parametrize(("n", "known"), [(100_000, 1390.390231), (1_000_000, 5125.171778)])
def test_very_many_totals(n, known):
    found = gn.optimal_noise(gn.streams.prefix_sums(n), 2, neighbors="add-remove")
    print(found)
    assert found.gamma_lower == pytest.approx(known, rel=1e-8)
    assert found.gap <= 1e-6


def test_very_many_steps_with_momentum():
    found = gn.optimal_noise(gn.streams.momentum(100_000, 0.9), 2, neighbors="add-remove")
    print(found)
    assert found.gamma_lower == pytest.approx(10967.879705, rel=1e-8)
    assert found.gap <= 1e-6


def test_the_largest_error_of_many_steps_with_momentum():
    """At p = ∞ weights vanish at either end, which once ended progress at 2e-5."""
    found = gn.optimal_noise(gn.streams.momentum(5000, 0.9), math.inf, neighbors="add-remove")
    print(found)
    assert found.gap <= 1e-6
    assert found.steps < 60


@pytest.mark.parametrize(
    ("workload", "most"),
    [
        (gn.streams.momentum(1000, 0.9), 30),
        (gn.streams.momentum(10_000, 0.9), 110),
        (gn.streams.decayed_sums(10_000, 0.99), 10),
    ],
    ids=["momentum 1000", "momentum 10000", "decayed 10000"],
)
def test_the_largest_error_takes_few_eigenvalue_problems_of_order_1024(workload, most):
    """About 17, 70 and 6 of them; without Newton's method 76, 420 and 52."""
    A = np.random.default_rng(0).normal(size=(1024, 1024))
    dense = min(seconds(lambda: np.linalg.eigh(A + A.T)) for _ in range(3))
    start = time.perf_counter()
    found = gn.optimal_noise(workload, math.inf, neighbors="add-remove")
    ours = time.perf_counter() - start
    print(f"{workload.ticks} ticks: {ours:.2f} s, {ours / dense:.1f} eigendecompositions; {found}")
    assert found.gap <= 1e-6
    assert ours < most * dense


def test_evaluations_are_right_for_a_million_totals():
    """With even weights, the singular values of the totals are known in closed form."""
    n = 1_000_000
    found = evaluate(gn.streams.prefix_sums(n).bands, np.full(n, 1 / n), np.ones(n))
    k = np.arange(1, n + 1)
    exact = math.fsum((0.5 / np.sin((2 * k - 1) * np.pi / (4 * n + 2))).tolist()) / math.sqrt(n)
    assert exact * (1 - 1e-7) <= found.lower <= exact


@pytest.mark.parametrize("loss", ["mean", "max"])
def test_few_states_are_closer_to_the_optimum_than_buffered_toeplitz_matrices(loss):
    peer = pytest.importorskip("jax_privacy.matrix_factorization.buffered_toeplitz")
    n = 256
    matrix = peer.optimize(n=n, error=loss, min_buffers=4, max_buffers=4)
    workload = gn.streams.prefix_sums(n)
    theirs = gn.certify(
        np.asarray(matrix.toeplitz_coefs(n)), workload, p=2 if loss == "mean" else math.inf
    )
    ours = gn.streams.noise(workload, states=4, error=loss)
    print(
        f"{loss}: 4 buffers {theirs.factor - 1:.2%} above the optimum, 4 states "
        f"{ours.factor - 1:.2%}"
    )
    assert ours.factor - 1 < (theirs.factor - 1) / 1000


def test_few_states_leave_less_than_half_of_what_toeplitz_matrices_leave_people_apart():
    """The peer is the best buffered Toeplitz matrix of 4 states, 9.1 % above the optimum."""
    who = gn.streams.Apart(128, 4, 16)
    made = gn.streams.noise(gn.streams.prefix_sums(128), states=4, participation=who)
    print(made)
    assert made.factor - 1 < 0.091 / 2


@pytest.mark.parametrize(
    ("who", "peer"),
    [
        (gn.streams.Apart(64, 4, 8), 41.93),
        (gn.streams.Apart(128, 4, 16), 63.78),
        (gn.streams.Apart(60, 6, 10), None),
        (gn.streams.Apart(128, 16, 4), None),
    ],
    ids=repr,
)
def test_people_apart_need_less_noise_than_with_a_banded_matrix(who, peer):
    """The peer is the banded optimiser of jax_privacy 2.2, recorded where it once was ahead."""
    K = gn.streams.participations(np.tril(np.ones((who.n, who.n))), who)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.process_time()
        noise = gn.optimal_noise(K, 2, neighbors="add-remove")
    spent = time.process_time() - start
    print(f"{who!r}: [{noise.gamma_lower:.3f}, {noise.gamma:.3f}], {noise.gap:.2%}, {spent:.1f} s")
    assert peer is None or noise.gamma < peer
    assert noise.gap < 0.01
