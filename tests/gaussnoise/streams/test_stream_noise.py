"""Optimal noise of workloads over time: the linear-time route against dense matrices and
asymptotics, and damage.
"""

import itertools
import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise import streams
from gaussnoise.errors import (
    CertificateError,
    ConvergenceWarning,
    DomainTooLargeError,
    ParameterError,
)
from gaussnoise.noise import streams as route
from gaussnoise.solvers.progress import interrupts_pass
from gaussnoise.solvers.streams import optimum
from gaussnoise.solvers.streams.optimum import stretched

WORKLOADS = {
    "totals": streams.prefix_sums(40),
    "decayed": streams.decayed_sums(30, 0.7),
    "means": streams.running_means(10),
    "varying": streams.recurrence(20, [np.linspace(1, 3, 20), np.linspace(-2, 1, 20)]),
    "momentum": streams.momentum(24, 0.9, weight_decay=0.01, schedule=np.linspace(1, 0.1, 24)),
    "third order": streams.recurrence(20, [1, -0.5, 0.25, -0.125]),
}


@pytest.fixture
def linear_for_all(monkeypatch):
    monkeypatch.setattr(route, "_LEAST_TICKS", 2)
    monkeypatch.setattr(route, "_LEAST_TICKS_OF_SEVERAL", 2)


@pytest.fixture
def never_written_out(linear_for_all, monkeypatch):
    monkeypatch.setattr(route, "_WRITTEN_OUT", 0)


@pytest.mark.parametrize(
    ("name", "p"),
    [
        *itertools.product(["totals", "decayed", "varying", "third order"], [2, 4, math.inf]),
        *itertools.product(["momentum"], [2, 4]),
    ],
)
def test_both_routes_bracket_the_same_number(name, p, linear_for_all):
    workload = WORKLOADS[name]
    noise = gn.optimal_noise(workload, p, neighbors="add-remove")
    dense = gn.optimal_noise(workload.to_finite_set(), p, neighbors="add-remove")
    assert "linear time" in noise.method
    assert "linear time" not in dense.method
    assert noise.gap <= 1e-6
    assert noise.gamma_lower <= dense.gamma
    assert dense.gamma_lower <= noise.gamma
    noise.verify()


def test_weights_that_vanish_come_back(linear_for_all):
    """For running means at p = ∞ only the first answer counts: γ is 1."""
    noise = gn.optimal_noise(WORKLOADS["means"], math.inf, neighbors="add-remove")
    assert noise.gamma_lower <= 1 <= noise.gamma
    assert noise.gap <= 1e-6


def test_weights_that_vanish_do_not_stop_progress(never_written_out):
    """At p = ∞ the last steps with momentum have no weight, and others almost none."""
    workload = streams.momentum(40, 0.9)
    noise = gn.optimal_noise(workload, math.inf, neighbors="add-remove", tol=5e-6)
    assert noise.gap <= 5e-6
    dense = gn.optimal_noise(workload.to_finite_set(), math.inf, neighbors="add-remove")
    assert noise.gamma_lower <= dense.gamma
    assert dense.gamma_lower <= noise.gamma
    weights = noise.certificate.weights * workload.ticks
    assert weights[-1] < 1e-4
    assert np.median(weights) > 0.1
    noise.verify()


def test_whenever_it_ends_the_bracket_holds(never_written_out, monkeypatch):
    monkeypatch.setattr(optimum, "MAX_STEPS", 40)
    workload = WORKLOADS["momentum"]
    with pytest.warns(ConvergenceWarning, match="step limit"):
        noise = gn.optimal_noise(workload, math.inf, neighbors="add-remove", tol=1e-7)
    dense = gn.optimal_noise(workload.to_finite_set(), math.inf, neighbors="add-remove")
    assert noise.steps < 200
    assert noise.gamma_lower <= dense.gamma
    assert dense.gamma_lower <= noise.gamma
    assert noise.gap < 0.1
    noise.verify()


def defined(covariance):
    """Return the matrix that the numbers define, by singular values."""
    root = np.sqrt(covariance.coordinate_weights)
    U, sizes, _ = np.linalg.svd(
        root[:, None] * covariance.workload.toarray() * np.sqrt(covariance.weights)
    )
    return covariance.scale**2 * (U * sizes) @ U.T / np.multiply.outer(root, root)


@pytest.mark.parametrize(
    ("name", "p"), [("totals", 2), ("totals", math.inf), ("momentum", 2), ("third order", math.inf)]
)
def test_noise_that_is_never_written_out_covers_every_column(name, p, never_written_out):
    workload = WORKLOADS[name]
    noise = gn.optimal_noise(workload, p, neighbors="add-remove")
    assert "never written out" in noise.method
    A, M = workload.toarray(), defined(noise.covariance)
    leverages = np.einsum("ij,ij->j", A, np.linalg.solve(M, A))
    assert leverages.max() <= 1 + 1e-12
    assert leverages.max() >= 1 - 1e-8
    deviations = np.sqrt(M.diagonal())
    np.testing.assert_allclose(noise.covariance.standard_deviation(), deviations, rtol=1e-9)
    assert noise.gamma == pytest.approx(np.linalg.norm(deviations, p), rel=1e-8)
    root = (
        np.sqrt(noise.certificate.coordinate_weights)[:, None]
        * A
        * np.sqrt(noise.certificate.weights)
    )
    assert noise.gamma_lower <= np.linalg.svd(root, compute_uv=False).sum() * (1 + 1e-12)


def test_products_with_the_covariance_are_those_of_its_definition(never_written_out):
    workload = WORKLOADS["varying"]
    noise = gn.optimal_noise(workload, 3, neighbors="add-remove").covariance
    x = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(noise @ x, defined(noise) @ x, rtol=1e-8)


@pytest.mark.parametrize("name", ["totals", "momentum"])
def test_answers_are_stored_and_read_back(name, tmp_path, never_written_out):
    noise = gn.optimal_noise(WORKLOADS[name], 2, neighbors="add-remove")
    noise.save(tmp_path / "noise.npz")
    again = gn.OptimalNoise.load(tmp_path / "noise.npz")
    assert (again.gamma, again.gamma_lower, again.method) == (
        noise.gamma,
        noise.gamma_lower,
        noise.method,
    )
    np.testing.assert_array_equal(again.domain.bands, noise.domain.bands)


@pytest.mark.parametrize(
    "damage",
    [
        lambda noise: replace(
            noise, covariance=replace(noise.covariance, scale=noise.covariance.scale * (1 - 1e-9))
        ),
        lambda noise: replace(noise, gamma=noise.gamma * (1 - 1e-9)),
        lambda noise: replace(noise, gamma_lower=noise.gamma_lower * (1 + 1e-8)),
        lambda noise: replace(
            noise, covariance=replace(noise.covariance, weights=noise.covariance.weights[::-1])
        ),
        lambda noise: replace(
            noise, certificate=replace(noise.certificate, weights=noise.certificate.weights * 1.01)
        ),
        lambda noise: replace(
            noise, certificate=replace(noise.certificate, weights=-noise.certificate.weights)
        ),
        lambda noise: replace(
            noise,
            certificate=replace(
                noise.certificate, coordinate_weights=noise.certificate.coordinate_weights * 1.01
            ),
        ),
        lambda noise: replace(noise, domain=streams.prefix_sums(40)),
        lambda noise: replace(noise, neighbors="replace"),
    ],
    ids=[
        "scale",
        "upper",
        "lower",
        "other noise",
        "no measure",
        "negative",
        "no dual weights",
        "domain",
        "relation",
    ],
)
@pytest.mark.parametrize("name", ["totals", "third order"])
def test_damage_is_found(name, damage, never_written_out):
    noise = gn.optimal_noise(WORKLOADS[name], 2, neighbors="add-remove")
    noise.verify()
    with pytest.raises(CertificateError, match="verify"):
        damage(noise).verify()


@pytest.mark.parametrize(("p", "known"), [(2, 8.73469647896), (math.inf, 8.77027395494)])
def test_a_thousand_totals_have_the_values_of_two_other_programs(p, known):
    value = (
        gn.optimal_noise(streams.prefix_sums(1025 - 1), p, neighbors="add-remove").gamma_lower ** 2
    )
    assert value / (1024 if p == 2 else 1) == pytest.approx(known, rel=2e-9)


def test_momentum_with_weight_decay_has_the_value_of_another_program(linear_for_all):
    noise = gn.optimal_noise(
        streams.momentum(256, 0.9, weight_decay=0.001), 2, neighbors="add-remove", tol=1e-4
    )
    assert "linear time" in noise.method
    assert noise.gamma_lower / 16 <= 15.20247 * (1 + 1e-6)
    assert noise.gamma / 16 >= 15.20247 * (1 - 1e-6)
    assert noise.gap <= 1e-4


@pytest.mark.parametrize("p", [2, 4])
def test_a_long_momentum_takes_the_linear_time_route(p):
    noise = gn.optimal_noise(streams.momentum(1025, 0.9), p, neighbors="add-remove", tol=0.1)
    assert "never written out" in noise.method
    noise.verify()
    short = gn.optimal_noise(streams.momentum(300, 0.9), 2, neighbors="add-remove", tol=0.1)
    assert "linear time" not in short.method  # Newton's method is faster there


def test_weights_of_a_shorter_stream_are_close_to_those_of_a_longer_one(monkeypatch):
    """Known weights save steps; coefficients that vary begin with even weights."""
    totals = streams.prefix_sums(2000)
    with_start = gn.optimal_noise(totals, 2, neighbors="add-remove")
    monkeypatch.setattr(optimum, "_SHORTEST", math.inf)
    without = gn.optimal_noise(totals, 2, neighbors="add-remove")
    assert with_start.steps <= without.steps / 2
    assert with_start.gamma_lower <= without.gamma
    assert without.gamma_lower <= with_start.gamma
    assert not optimum._first_point(streams.running_means(2000).bands, 2, 1e-6).any()


def test_stretched_weights_keep_both_ends_and_the_middle():
    """Power of the distance to the nearer end, for which every stretching is exact."""
    distances = [np.minimum(np.arange(n), np.arange(n)[::-1]) + 0.5 for n in (400, 1600)]
    found = stretched(distances[0] ** -0.3, 1600)
    expected = -0.3 * np.log(distances[1])
    np.testing.assert_allclose(found, expected - expected.max(), atol=0.03)
    assert np.abs(np.diff(found - expected)[10:-10]).max() < 3e-3


@pytest.mark.parametrize(("ticks", "evaluation"), [(300, 2), (1200, 1), (1200, 3)])
def test_ctrl_c_returns_a_certified_answer_once_there_is_one(ticks, evaluation, monkeypatch):
    """The weights of a shorter stream, the first ones, bracket another value."""
    calls, evaluate = [], optimum.evaluate

    def interrupted(bands, *arguments):
        calls.append(bands.shape[1])
        if calls.count(ticks) == evaluation:
            raise KeyboardInterrupt
        return evaluate(bands, *arguments)

    monkeypatch.setattr(optimum, "evaluate", interrupted)
    totals = streams.prefix_sums(1200)
    if evaluation == 3:
        with pytest.warns(ConvergenceWarning, match="Interrupted"):
            gn.optimal_noise(totals, 2, neighbors="add-remove").verify()
        calls.clear()
    with pytest.raises(KeyboardInterrupt), interrupts_pass() if evaluation == 3 else nullcontext():
        gn.optimal_noise(totals, 2, neighbors="add-remove")


def test_many_totals_obey_the_published_asymptotics():
    """ln n/π + 0.701 <= γ_F/√n <= ln n/π + 0.748, and γ₂ <= ln n/π + 0.846 (Henzinger, Kalinin &
    Upadhyay 2025).
    """
    n = 5_000
    mean = gn.optimal_noise(streams.prefix_sums(n), 2, neighbors="add-remove", tol=1e-4)
    largest = gn.optimal_noise(streams.prefix_sums(n), math.inf, neighbors="add-remove", tol=1e-4)
    scale = math.log(n) / math.pi
    assert scale + 0.701 <= mean.gamma / math.sqrt(n)
    assert mean.gamma_lower / math.sqrt(n) <= scale + 0.748
    assert largest.gamma_lower <= scale + 0.846


def test_too_many_ticks_for_a_matrix_are_refused_with_a_hint():
    noise = gn.optimal_noise(streams.prefix_sums(1025), 2, neighbors="add-remove", tol=1e-3)
    with pytest.raises(DomainTooLargeError, match=r"gn\.streams\.noise"):
        noise.covariance.factor()
    with pytest.raises(ParameterError, match=r"gn\.streams\.noise"):
        gn.GaussianMechanism(noise, gn.zCDP(0.1)).release(indices=[0])
    with pytest.raises(DomainTooLargeError, match="4096"):
        gn.optimal_noise(streams.prefix_sums(5000))


def test_factorizations_and_gamma_take_workloads_over_time():
    workload = WORKLOADS["totals"]
    found, dense = gn.factorize(workload, "mean"), gn.factorize(workload.toarray(), "mean")
    assert found.lower <= dense.value
    assert dense.lower <= found.value
    assert gn.gamma(workload).gamma == pytest.approx(
        gn.gamma(workload.to_finite_set()).gamma, rel=1e-6
    )


@pytest.mark.parametrize("error", ["mean", "max"])
def test_factorizations_of_long_streams_have_the_bracket_of_the_dense_one(
    error, never_written_out, monkeypatch
):
    workload = WORKLOADS["totals"]
    dense = gn.factorize(workload.toarray(), error)
    monkeypatch.setattr("gaussnoise.noise.factorize.is_written_out", lambda workload: False)
    found = gn.factorize(workload, error)
    assert "never written out" in found.method
    assert found.lower <= dense.value
    assert dense.lower <= found.value
    assert found.gap <= 1e-6
    assert found.shape == (40, 40)
    assert found.witness.lower_bound(np.tri(40)) == pytest.approx(found.lower, rel=1e-9)
    M = found.noise.covariance.toarray()  # of which L is the root
    root = np.linalg.cholesky(M)
    lengths = np.linalg.norm(np.linalg.solve(root, np.tri(40)), axis=0)
    assert lengths.max() <= 1 + 1e-12
    assert np.linalg.norm(np.linalg.norm(root, axis=1), found.p) <= found.value
    product = gn.factorize([workload, [[1, 0], [1, 1]]], error)
    both = gn.factorize(np.kron(np.tri(40), np.tri(2)), error)
    assert product.lower <= both.value
    assert both.lower <= product.value
    assert product.noise.gamma == pytest.approx(product.value, rel=1e-6)


def test_factors_of_long_streams_are_refused_by_their_size():
    found = gn.factorize(streams.prefix_sums(1025), "mean", tol=1e-3)
    for part in ("left", "right"):
        with pytest.raises(DomainTooLargeError, match="1025 x 1025"):
            getattr(found, part)


def test_factorizations_of_too_many_subdiagonals_are_written_out(monkeypatch):
    monkeypatch.setattr("gaussnoise.noise.factorize.is_written_out", lambda workload: False)
    found = gn.factorize(streams.recurrence(20, [1.0] + [0.0] * 8 + [-0.5]), "mean")
    assert "linear time" not in found.method
    assert found.left.shape[0] == 20


def test_factorizations_that_claim_too_much_are_found():
    noise = gn.factorize(streams.prefix_sums(1100), "mean", tol=1e-3).noise
    noise.verify()
    less = replace(noise.covariance, scale=noise.covariance.scale * (1 - 1e-6))
    with pytest.raises(CertificateError, match="too little noise"):
        replace(noise, covariance=less).verify()
