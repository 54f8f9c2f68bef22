"""Newton's method for smooth changes of weights at p = ∞: derivatives, steps and limits."""

import dataclasses
import math

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise import streams
from gaussnoise.noise import streams as route
from gaussnoise.solvers.streams import optimum, smooth_newton
from gaussnoise.solvers.streams.optimum import evaluate, is_mirrored, stream_optimum
from gaussnoise.solvers.streams.smooth_newton import SmoothNewton

MOMENTUM = streams.momentum(600, 0.9)


def silent(steps, lower, upper):
    pass


@pytest.fixture(scope="module")
def with_momentum():
    return stream_optimum(MOMENTUM.bands, math.inf, tol=9e-7, report=silent)


@pytest.mark.parametrize("workload", [streams.decayed_sums(40, 0.9), streams.momentum(40, 0.9)])
def test_slopes_are_the_derivatives_of_leverages(workload):
    weights = np.linspace(1.0, 2.0, 40) / 60

    def leverages(logarithms):
        chosen = np.exp(logarithms)
        return np.log(evaluate(workload.bands, chosen, chosen[::-1].copy()).leverages)

    root = evaluate(workload.bands, weights, weights[::-1].copy()).root
    newton = SmoothNewton.at(workload.bands, weights, root)
    for change, slope in zip(newton.changes.T, newton.slopes.T, strict=True):
        known = leverages(np.log(weights) + 1e-4 * change)
        known -= leverages(np.log(weights) - 1e-4 * change)
        np.testing.assert_allclose(slope, known / 2e-4, atol=1e-4)


def test_smooth_changes_represent_smooth_functions_between_jumps_and_single_ticks():
    logarithms = np.sin(np.arange(400) / 100)
    logarithms[3:5] -= 9  # a jump before and after these two
    changes = smooth_newton._smooth(logarithms)
    assert changes.shape == (400, np.linalg.matrix_rank(changes))
    parts = np.split(np.arange(400), [3, 5])
    for column in changes.T:
        assert sum(column[part].any() for part in parts) == 1
    found = np.linalg.lstsq(changes, logarithms, rcond=None)[0]
    np.testing.assert_allclose(changes @ found, logarithms, atol=2e-3)


def test_too_many_jumps_are_left_to_multiplicative_steps():
    assert smooth_newton._smooth(np.arange(200.0)) is None
    assert SmoothNewton.at(MOMENTUM.bands[:, :200], np.exp(-np.arange(200.0)), None) is None


def test_one_step_removes_a_smooth_deviation(with_momentum):
    """A multiplicative step leaves most of it."""
    best = with_momentum.weights
    moved = best * np.exp(0.03 * np.cos(np.arange(600) / 100))
    moved /= moved.sum()
    now = evaluate(MOMENTUM.bands, moved, moved[::-1].copy())
    move = np.log(now.leverages / (moved @ now.leverages))
    newton = SmoothNewton.at(MOMENTUM.bands, moved, now.root)
    live = best > 1e-2 / 600
    before = np.abs(np.log(moved / best))[live].max()
    for step, is_near in ((newton.step(moved, move, 3e-7), True), (move, False)):
        after = moved * np.exp(step)
        left = np.abs(np.log(after / after.sum() / best))[live].max()
        assert (left < before / 10) == is_near, left


def test_mirrored_weights_are_optimal_for_matrices_too(with_momentum):
    """Both ends are those of the same weights, from the singular values of matrices."""
    assert with_momentum.gap <= 9e-7
    assert with_momentum.steps < 40
    np.testing.assert_array_equal(with_momentum.coordinate_weights, with_momentum.weights[::-1])
    noise = gn.optimal_noise(MOMENTUM, math.inf, neighbors="add-remove")
    assert "linear time" in noise.method
    noise.verify()
    assert noise.gamma_lower == pytest.approx(with_momentum.evaluation.lower, rel=1e-8)
    assert noise.gamma == pytest.approx(with_momentum.upper, rel=1e-7)


@pytest.mark.parametrize("rate", [0.9, 0.99])
def test_the_largest_error_of_decayed_sums_takes_few_evaluations(rate):
    workload = streams.decayed_sums(3000, rate)
    found = stream_optimum(workload.bands, math.inf, tol=9e-7, report=silent)
    assert found.gap <= 9e-7
    assert found.steps < 30


def test_weights_are_mirrored_only_at_the_largest_error_and_with_equal_coefficients():
    assert is_mirrored(MOMENTUM.bands, math.inf)
    assert not is_mirrored(MOMENTUM.bands, 4)
    assert not is_mirrored(streams.running_means(30).bands, math.inf)


def test_matrices_solve_what_takes_too_many_steps(monkeypatch):
    workload = streams.recurrence(20, [1, -0.5, 0.25, -0.125])
    monkeypatch.setattr(route, "_LEAST_TICKS_OF_SEVERAL", 2)
    assert "linear time" in gn.optimal_noise(workload, 4, neighbors="add-remove").method
    monkeypatch.setattr(route, "_MOST_STEPS_OF_SEVERAL", 1)
    noise = gn.optimal_noise(workload, 4, neighbors="add-remove")
    assert "linear time" not in noise.method
    assert noise.gap <= 1e-6


def test_ctrl_c_before_there_are_bounds_is_passed_on(monkeypatch):
    solve = optimum.optimal_design

    def interrupted(*arguments, **options):
        return dataclasses.replace(solve(*arguments, **options), interrupted=True)

    monkeypatch.setattr(optimum, "optimal_design", interrupted)
    with pytest.raises(KeyboardInterrupt):
        stream_optimum(MOMENTUM.bands, math.inf, tol=1e-3, report=silent)
