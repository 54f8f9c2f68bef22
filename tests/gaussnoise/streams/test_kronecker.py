"""Workloads over time times other workloads: solved part by part, against lists of all columns."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import gaussnoise as gn
from domains.tables.stream_product import StreamProduct
from gaussnoise import streams
from gaussnoise.errors import (
    CertificateError,
    ConvergenceWarning,
    DomainTooLargeError,
    InvalidDomainError,
    ParameterError,
)

TOTALS = streams.prefix_sums(6)
QUERIES = np.array([[1.0, 1, 0, 2], [0, 1, 1, 0], [3, 0, 1, 1]])
PRODUCTS = {
    "queries": gn.kron(TOTALS, gn.FiniteSet.from_workload(QUERIES)),
    "queries first": gn.kron(gn.FiniteSet.from_workload(QUERIES), streams.decayed_sums(5, 0.5)),
    "marginals": gn.kron(TOTALS, gn.Marginals((2, 3), [(0,), (1,)], weights=[1.0, 2.0])),
    "products": gn.kron(TOTALS, gn.Products([gn.Prefix(3), gn.Identity(2)], [(0, 1), (0,)])),
    "two streams": gn.kron(
        streams.prefix_sums(4), streams.momentum(5, 0.5), TOTALS.to_finite_set()
    ),
}


@pytest.fixture(params=PRODUCTS)
def product(request):
    return PRODUCTS[request.param]


@pytest.mark.parametrize("p", [2, 3, math.inf])
def test_all_columns_listed_have_the_same_bracket(product, p):
    noise = gn.optimal_noise(product, p, neighbors="add-remove")
    listed = gn.optimal_noise(product.to_finite_set(), p, neighbors="add-remove")
    assert noise.gap <= 1e-6
    assert noise.gamma_lower <= listed.gamma
    assert listed.gamma_lower <= noise.gamma
    assert noise.method.startswith("Kronecker product")
    noise.verify()
    points, M = product.to_finite_set().points, noise.covariance.toarray()
    assert np.einsum("ij,ij->i", points @ np.linalg.pinv(M), points).max() <= 1 + 1e-9
    deviations = np.sqrt(M.diagonal())
    np.testing.assert_allclose(noise.covariance.standard_deviation(), deviations, rtol=1e-12)
    assert np.linalg.norm(deviations, p) == pytest.approx(noise.gamma, rel=1e-10)
    x = np.random.default_rng(1).normal(size=(product.dim, 2))
    np.testing.assert_allclose(noise.covariance @ x, M @ x, rtol=1e-9, atol=1e-9)


def test_long_streams_of_large_tables_are_never_formed(tmp_path):
    """2,000 ticks of 2-way tables of 147 cells: both ends are products."""
    tables = gn.Marginals.all_kway((7, 7, 7), 2)
    noise = gn.optimal_noise(gn.kron(streams.prefix_sums(2000), tables), 2, neighbors="add-remove")
    over_time = gn.optimal_noise(streams.prefix_sums(2000), 2, neighbors="add-remove")
    once = gn.optimal_noise(tables, 2, neighbors="add-remove")
    assert noise.gap <= 1e-6
    assert noise.gamma == pytest.approx(over_time.gamma * once.gamma, rel=1e-6)
    noise.save(tmp_path / "noise.npz")
    again = gn.OptimalNoise.load(tmp_path / "noise.npz")
    assert (again.gamma, again.gamma_lower) == (noise.gamma, noise.gamma_lower)
    assert again.covariance.standard_deviation().shape == (2000 * 147,)
    with pytest.raises(DomainTooLargeError, match="listed"):
        noise.domain.to_finite_set()
    with pytest.raises(ParameterError, match="too many ticks"):
        gn.GaussianMechanism(noise, gn.zCDP(0.1))


def less_noise(noise):
    first, *others = noise.covariance.parts
    return replace(noise.covariance, parts=(replace(first, scale=first.scale * 0.999), *others))


@pytest.mark.parametrize(
    "damage",
    [
        lambda noise: replace(noise, covariance=less_noise(noise)),
        lambda noise: replace(
            noise, covariance=replace(noise.covariance, parts=noise.covariance.parts[:1])
        ),
        lambda noise: replace(
            noise, certificate=replace(noise.certificate, parts=noise.certificate.parts[::-1])
        ),
        lambda noise: replace(noise, gamma=noise.gamma * (1 - 1e-9)),
        lambda noise: replace(noise, gamma_lower=noise.gamma_lower * (1 + 1e-9)),
        lambda noise: replace(noise, domain=noise.domain.to_finite_set()),
        lambda noise: replace(noise, domain=PRODUCTS["two streams"]),
        lambda noise: replace(noise, neighbors="replace"),
    ],
    ids=["noise", "part", "order", "upper", "lower", "listed", "domain", "relation"],
)
def test_damage_is_found(damage):
    noise = gn.optimal_noise(PRODUCTS["queries"], 2, neighbors="add-remove")
    noise.verify()
    with pytest.raises(CertificateError, match="verify"):
        damage(noise).verify()


def test_factorizations_take_streams_as_kronecker_factors():
    found = gn.factorize([TOTALS, QUERIES], "max")
    dense = gn.factorize(np.kron(np.tri(6), QUERIES), "max")
    assert found.lower <= dense.value
    assert dense.lower <= found.value
    np.testing.assert_allclose(found.left @ found.right, np.kron(np.tri(6), QUERIES), atol=1e-12)
    assert gn.factorize(PRODUCTS["queries"], "max").value == found.value


def test_small_products_are_released_like_lists_of_points():
    noise = gn.optimal_noise(PRODUCTS["queries"], 2, neighbors="add-remove")
    mechanism = gn.GaussianMechanism(noise, gn.zCDP(1e6))
    expected = noise.domain.to_finite_set().points[[0, 5, 23]].sum(axis=0)
    np.testing.assert_allclose(mechanism.release(indices=[0, 5, 23]).estimate, expected, atol=0.1)
    other = gn.optimal_noise(PRODUCTS["queries"], 2)  # a record replaced: by listing
    assert "Kronecker" not in other.method


def test_only_products_with_a_stream_are_kept_apart():
    assert isinstance(gn.kron(gn.FiniteSet(np.eye(2)), gn.FiniteSet(np.eye(3))), gn.FiniteSet)
    assert not isinstance(gn.kron(TOTALS, gn.LpBall(2, 2)), StreamProduct)
    with pytest.raises(InvalidDomainError, match="one of them over time"):
        StreamProduct((gn.FiniteSet(np.eye(2)), gn.FiniteSet(np.eye(3))))


BODIES = {
    "ball": gn.kron(streams.prefix_sums(4), gn.LpBall(2, 2)),
    "two bodies": gn.kron(gn.LpBall(2, math.inf), streams.decayed_sums(3, 0.5), gn.LpBall(2, 2)),
    "away from zero": gn.kron(streams.prefix_sums(3), gn.LpBall(2, 2) + np.array([2.0, 1.0])),
    "tensors": gn.kron(streams.prefix_sums(2), gn.TensorPower(2, 2)),
}


@pytest.mark.parametrize("p", [2, math.inf])
@pytest.mark.parametrize("body", BODIES)
def test_bodies_over_time_are_covered_part_by_part(body, p, tmp_path):
    noise = gn.optimal_noise(BODIES[body], p, neighbors="add-remove")
    assert noise.gap <= 1e-6
    assert noise.method.startswith("Kronecker product")
    noise.save(tmp_path / "noise.npz")
    assert gn.OptimalNoise.load(tmp_path / "noise.npz").gamma == noise.gamma
    members = np.random.default_rng(3).normal(size=(300, noise.domain.dim))
    points = np.array([noise.domain.support_point(theta) for theta in members])
    M = noise.covariance.toarray()
    covered = np.einsum("ij,ij->i", points @ np.linalg.pinv(M), points).max()
    assert 0.5 < covered <= 1 + 1e-9


@pytest.mark.parametrize("p", [2, math.inf])
def test_a_disc_over_time_costs_between_polygons_that_it_contains_and_is_in(p):
    noise = gn.optimal_noise(BODIES["ball"], p, neighbors="add-remove")
    angles = 2 * np.pi * np.arange(16) / 16
    corners = np.array([np.cos(angles), np.sin(angles)]).T
    columns = np.tri(4).T
    inner, outer = (
        gn.optimal_noise(gn.FiniteSet(np.kron(columns, size * corners)), p, neighbors="add-remove")
        for size in (1.0, 1 / np.cos(np.pi / 16))
    )
    assert inner.gamma_lower <= noise.gamma
    assert noise.gamma_lower <= outer.gamma


def test_less_noise_for_a_body_over_time_is_found():
    noise = gn.optimal_noise(BODIES["two bodies"], 2, neighbors="add-remove")
    noise.verify()
    for damaged in (
        replace(noise, covariance=less_noise(noise)),
        replace(noise, gamma_lower=noise.gamma_lower * (1 + 1e-8)),
        replace(noise, domain=BODIES["ball"]),
    ):
        with pytest.raises(CertificateError, match="verify"):
            damaged.verify()


def test_large_products_over_time_are_solved_at_p_2_and_refused_beyond():
    tables = gn.Products([gn.Prefix(64), gn.Identity(3), gn.Prefix(20)], [(0, 1), (0, 2), (1, 2)])
    product = gn.kron(TOTALS, tables)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of many attributes, as alone
        noise = gn.optimal_noise(product, 2, neighbors="add-remove")
        once = gn.optimal_noise(tables, 2, neighbors="add-remove")
    noise.verify()
    assert noise.gap == pytest.approx(once.gap, rel=0.01)
    with pytest.raises(CertificateError, match="too little noise"):
        replace(noise, covariance=less_noise(noise)).verify()
    with pytest.raises(ParameterError, match="root mean square of its table"):
        gn.optimal_noise(product, math.inf, neighbors="add-remove")
