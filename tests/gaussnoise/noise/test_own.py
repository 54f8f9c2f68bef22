"""Covariances of one's own: checked, scaled to a set, and compared with the best."""

import math
import pickle

import networkx
import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.errors import CovarianceError, InvalidDomainError, ParameterError


def prefix_sums(n):
    return gn.FiniteSet.from_workload(np.tril(np.ones((n, n))))


def random_covariance(rng, d, rank):
    L = rng.normal(size=(d, rank))
    return L @ L.T


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("rank", [1, 3, 5])
def test_the_stored_factor_is_that_of_the_array(scale, rank):
    M = random_covariance(np.random.default_rng(rank), 5, rank)
    own = gn.Covariance(scale * M)
    assert np.allclose(own.toarray() / scale, M, rtol=1e-13, atol=1e-13)
    assert own.standard_deviation() == pytest.approx(np.sqrt(scale) * np.sqrt(M.diagonal()))
    assert own.factor().shape == (5, rank)
    assert isinstance(own, gn.results.AbstractCovariance)
    again = pickle.loads(pickle.dumps(own))
    assert np.array_equal(again.toarray(), own.toarray())


def test_rows_of_very_different_sizes_keep_their_digits():
    d = np.array([1.0, 1e-9, 1e7])
    M = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]]) * np.outer(d, d)
    assert np.allclose(gn.Covariance(M).toarray() / M, 1, rtol=1e-12)


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], CovarianceError, "positive semidefinite matrix, got .* -1"),
        ([[1.0, 0.5], [0.4, 1.0]], CovarianceError, "symmetric"),
        ([[1.0, 0.1], [0.1, 0.0]], CovarianceError, "zeros beside a variance of zero"),
        ([[-1.0]], CovarianceError, "variances of at least 0"),
        ([[1.0, 0.0]], CovarianceError, r"shape \(d, d\)"),
        ([1.0], CovarianceError, r"shape \(d, d\)"),
        ([[math.nan]], InvalidDomainError, "finite"),
        ("one", InvalidDomainError, "real numbers"),
    ],
)
def test_what_is_no_covariance_is_refused(array, error, message):
    with pytest.raises(error, match=message):
        gn.Covariance(array)


def test_a_slightly_negative_eigenvalue_is_noticed():
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    for least, fits in ((0.0, True), (-1e-10, False)):
        M = axes @ np.diag([1, 1, 1, 1, 1, least]) @ axes.T
        if fits:
            gn.Covariance((M + M.T) / 2)
        else:
            with pytest.raises(CovarianceError, match="semidefinite"):
                gn.Covariance((M + M.T) / 2)


def test_the_best_covariance_given_as_ones_own_is_the_best():
    best = gn.optimal_noise(prefix_sums(8), neighbors="add-remove")
    own = gn.Covariance(7 * best.covariance.toarray())  # its scale does not matter
    arguments = {"domain": prefix_sums(8), "neighbors": "add-remove"}
    mechanism = gn.GaussianMechanism(own, gn.zCDP(0.1), **arguments)
    assert mechanism.noise.gap < 3e-6
    assert mechanism.noise.status.name == "OWN"
    expected = gn.GaussianMechanism(best, gn.zCDP(0.1))
    assert mechanism.error == pytest.approx(expected.error, rel=1e-5)
    assert mechanism.rho_charged == pytest.approx(0.1, rel=1e-6)
    assert mechanism.release(counts=[3] * 8).estimate.shape == (8,)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace", "path"])
def test_noise_covers_the_set_exactly(neighbors):
    """The largest squared move, by all pairs of points."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(6, 3))
    M = random_covariance(rng, 3, 3)
    pairs = [(i, j) for i in range(6) for j in range(i)]
    moves = {
        "add-remove": points,
        "replace": np.array([points[i] - points[j] for i, j in pairs]),
        "path": np.diff(points, axis=0),
    }[neighbors]
    relation = networkx.path_graph(6) if neighbors == "path" else neighbors
    mechanism = gn.GaussianMechanism(
        gn.Covariance(M),
        gn.zCDP(0.5),
        domain=gn.FiniteSet(points),
        neighbors=relation,
        n=None if neighbors == "add-remove" else 1,
    )
    stored = mechanism.noise.covariance.toarray()
    reached = np.einsum("ij,jk,ik->i", moves, np.linalg.inv(stored), moves).max()
    assert reached == pytest.approx(1, rel=1e-9)
    assert reached <= 1
    assert np.allclose(stored / stored[0, 0], M / M[0, 0])
    assert mechanism.noise.gamma >= mechanism.noise.gamma_lower


def test_bodies_and_saved_answers(tmp_path):
    own = gn.Covariance(np.diag([1.0, 2.0, 3.0]))
    mechanism = gn.GaussianMechanism(own, gn.zCDP(0.1), domain=gn.LpBall(3, 2), n=10)
    assert mechanism.noise.gamma == pytest.approx(2 * math.sqrt(6), rel=1e-6)
    assert mechanism.noise.gamma_lower == pytest.approx(2 * math.sqrt(3), rel=1e-5)
    mechanism.noise.save(tmp_path / "own.npz")
    assert gn.OptimalNoise.load(tmp_path / "own.npz").gamma == mechanism.noise.gamma
    assert mechanism.release(np.zeros((10, 3))).estimate.shape == (3,)


def test_a_covariance_that_leaves_a_direction_bare_is_refused():
    own = gn.Covariance([[1.0, 1.0], [1.0, 1.0]])
    for domain, n in ((gn.FiniteSet(np.eye(2)), None), (gn.LpBall(2, 2), None)):
        with pytest.raises(CovarianceError, match=r"without noise|range"):
            gn.GaussianMechanism(own, gn.zCDP(1), domain=domain, neighbors="add-remove", n=n)
    # along the only direction in which one record moves the answer, there is noise
    diagonal = gn.FiniteSet([[1.0, 1.0], [2.0, 2.0]])
    found = gn.GaussianMechanism(own, gn.zCDP(1), domain=diagonal, n=5)
    assert found.noise.gap < 1e-5


def test_arguments_are_checked():
    own, noise = gn.Covariance(np.eye(2)), gn.optimal_noise(gn.FiniteSet(np.eye(2)))
    with pytest.raises(ParameterError, match=r"expected a domain in R\^2"):
        gn.GaussianMechanism(own, gn.zCDP(1), n=3)
    with pytest.raises(ParameterError, match=r"expected a domain in R\^2"):
        gn.GaussianMechanism(own, gn.zCDP(1), domain=gn.LpBall(3, 2), n=3)
    with pytest.raises(ParameterError, match="with a Covariance alone"):
        gn.GaussianMechanism(noise, gn.zCDP(1), domain=gn.FiniteSet(np.eye(2)), n=3)


def test_a_comparison_has_ones_own_covariance():
    K = prefix_sums(6)
    ways = gn.compare(
        K, gn.zCDP(0.1), neighbors="add-remove", covariance=gn.Covariance(np.eye(6))
    ).columns()
    errors = dict(zip(ways["way"], ways["error"], strict=True))
    assert errors["own covariance"] == pytest.approx(errors["spherical Gaussian"], rel=1e-9)
    assert "own covariance" not in gn.compare(K, gn.zCDP(0.1), n=3).columns()["way"]
