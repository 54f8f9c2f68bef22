"""Noise for moments of degree two: closed forms, listed points, and records that it must cover."""

import math

import numpy as np
import pytest
from cases import one_test_of

import gaussnoise as gn
from domains import BoxMoments, Clipped, FiniteSet

SQUARE = BoxMoments([-1.0, -1.0], [1.0, 1.0])


def lattice(low, high, steps):
    """Moments of a lattice of points of a box, as listed points."""
    axes = [np.linspace(a, b, steps) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(low))
    return FiniteSet(BoxMoments(low, high).embed(np.clip(grid, low, high)))


def test_one_number_about_the_middle_in_closed_form():
    """Weights 9/20, 1/10 and 9/20 on −1, 0 and 1: √.9 + tr √[[1, .9], [.9, .9]] = 8/√10."""
    noise = gn.optimal_noise(BoxMoments([-1.0], [1.0]), neighbors="add-remove")
    assert noise.gamma_lower * (1 - 1e-12) <= 8 / math.sqrt(10) <= noise.gamma * (1 + 1e-12)
    assert noise.gap <= 1e-6


def test_what_a_square_of_its_number_saves():
    """The book's figures for one number: virtual cells need 3 and 11 % more."""
    for low, more in ((0.0, 1.027), (-1.0, 1.106)):
        cells = FiniteSet.from_workload(
            Clipped(low, 1.0, degrees=[0, 1, 2], squares=True).toarray()
        )
        ours = gn.optimal_noise(BoxMoments([low], [1.0]), neighbors="add-remove")
        tables = gn.optimal_noise(cells, neighbors="add-remove")
        assert tables.gamma / ours.gamma == pytest.approx(more, abs=5e-4)


@one_test_of(
    ("problem", "p", "low", "high", "steps"),
    [
        ("add-remove", 2, [0.0], [1.0], 101),
        ("add-remove", math.inf, [-1.0], [3.0], 101),
        ("replace", 2, [0.0], [1.0], 41),
        ("gamma", 4, [-1.0], [1.0], 101),
        ("add-remove", 2, [0.0, -1.0], [1.0, 1.0], 21),
    ],
)
def test_listed_members_need_as_much(problem, p, low, high, steps):
    """Never more, and as much up to the square of the lattice's step, here of relative size h²."""

    def best(domain):
        if problem == "gamma":
            return gn.gamma(domain, p)
        return gn.optimal_noise(domain, p, neighbors=problem)

    ours, listed = best(BoxMoments(low, high)), best(lattice(low, high, steps))
    assert listed.gamma_lower <= ours.gamma
    assert ours.gamma_lower <= listed.gamma * (1 + (2 / (steps - 1)) ** 2)
    assert ours.gap <= 1e-6


def test_a_semidefinite_program_says_the_same():
    listed = lattice([0.0], [1.0], 11)
    reference = gn.optimal_noise(listed, neighbors="add-remove", method="sdp-clarabel", tol=1e-5)
    ours = gn.optimal_noise(BoxMoments([0.0], [1.0]), neighbors="add-remove")
    assert reference.gamma_lower <= ours.gamma <= reference.gamma * 1.01


@one_test_of("neighbors", ["add-remove", "replace"])
def test_stored_noise_covers_every_record_and_no_smaller_one_does(neighbors, tmp_path):
    K = BoxMoments([-1.0], [2.0]) if neighbors == "replace" else SQUARE
    noise = gn.optimal_noise(K, neighbors=neighbors)
    noise.save(tmp_path / "noise.npz")
    loaded = gn.OptimalNoise.load(tmp_path / "noise.npz")
    loaded.verify()
    M = loaded.covariance.toarray() * loaded.sensitivity_squared
    points = lattice(K.low, K.high, 21).points
    if neighbors == "replace":
        points, M = (points[:, None] - points).reshape(-1, K.dim)[:, 1:], M[1:, 1:]
    lengths = np.einsum("ij,ij->i", points @ np.linalg.inv(M), points)
    assert 1 - 1e-3 < lengths.max() <= 1 + 1e-9


def test_released_sums_are_of_the_records():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (500, 2))
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(SQUARE, neighbors="add-remove"), gn.zCDP(1e12)
    )
    release = mechanism.release(SQUARE.embed(X))
    exact = [500, *X.sum(axis=0), *(X.T @ X)[[0, 0, 1], [0, 1, 1]]]
    np.testing.assert_allclose(release.estimate, exact, rtol=0, atol=1e-4)
    with pytest.raises(gn.errors.DataError, match="outside"):
        mechanism.release([[1.0, 0.5, 0.5, 0.9, 0.25, 0.25]])
