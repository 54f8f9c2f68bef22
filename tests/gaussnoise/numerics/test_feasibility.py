"""The check that all privacy depends on: is a point in the ellipsoid of a stored factor?"""

import dataclasses
import warnings
from fractions import Fraction

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.errors import CertificateError, ConvergenceWarning, CovarianceError, ParameterError
from gaussnoise.noise.covariance import FactorCovariance
from gaussnoise.numerics import feasibility
from gaussnoise.numerics.feasibility import check_range, whiten
from gaussnoise.tables.planning.request import Request


def exact_length_squared(factor, point):
    """Return z' (L L')^-1 z for a square factor of order two, as a rational number."""
    (a, b), (c, d) = [[Fraction(x) for x in row] for row in factor.tolist()]
    x, y = map(Fraction, point.tolist())
    determinant = a * d - b * c
    return ((d * x - b * y) ** 2 + (a * y - c * x) ** 2) / determinant**2


def test_lengths_are_never_understated_however_singular_the_factor():
    rng = np.random.default_rng(7)
    refused = 0
    for _ in range(3000):
        factor = rng.normal(size=(2, 2))
        factor[:, 1] = factor[:, 0] * rng.normal() + rng.normal(size=2) * 10.0 ** rng.uniform(
            -17, 0
        )
        point = factor @ rng.normal(size=2)
        try:
            bound = whiten(factor, point[None]).lengths[0]
        except CovarianceError:
            refused += 1
            continue
        assert exact_length_squared(factor, point) <= Fraction(float(bound)) ** 2
    assert 100 < refused < 1500


def test_lengths_are_tight_for_a_good_factor():
    factor, point = np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([1.0, -2.0])
    exact = float(exact_length_squared(factor, point)) ** 0.5
    assert exact <= whiten(factor, point[None]).lengths[0] <= exact * (1 + 1e-12)


@pytest.mark.parametrize("chunk", [1, 3, 10, 64])
def test_pieces_of_any_size_find_the_same(monkeypatch, chunk):
    rng = np.random.default_rng(8)
    points, factor = rng.normal(size=(10, 3)), rng.normal(size=(3, 3))
    whole = whiten(factor, points)
    flat = whiten(factor[:, :2], points)
    monkeypatch.setattr(feasibility, "_CHUNK", chunk)
    for parts, expected in (
        (whiten(factor, points), whole),
        (whiten(factor[:, :2], points), flat),
    ):
        np.testing.assert_allclose(parts.coordinates, expected.coordinates, rtol=1e-12)
        np.testing.assert_allclose(parts.lengths, expected.lengths, rtol=1e-12)
        np.testing.assert_allclose(parts.outside, expected.outside, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("place", [0, 4, 9])
def test_one_point_that_sticks_out_is_seen_in_any_piece(monkeypatch, place):
    monkeypatch.setattr(feasibility, "_CHUNK", 3)
    points = np.zeros((10, 2))
    points[:, 0] = 1.0
    points[place, 1] = 1e-3
    with pytest.raises(CovarianceError, match="coordinate 1"):
        check_range(whiten(np.array([[1.5], [0.0]]), points), np.abs(points).max(axis=0))


@pytest.mark.parametrize("tiny", [1.0, 1e-6, 1e-12, 1e-15])
def test_a_missing_direction_is_seen_at_any_scale(tiny):
    points = np.array([[1.0, 0.0], [0.0, tiny]])
    with pytest.raises(CovarianceError, match="coordinate 1"):
        check_range(whiten(np.array([[1.5], [0.0]]), points), np.abs(points).max(axis=0))


@pytest.mark.parametrize("tiny", [1e-6, 1e-12, 1e-16])
def test_tiny_coordinates_get_noise_too(tiny):
    noise = gn.optimal_noise(gn.FiniteSet([[1.0, 0.0], [0.0, tiny]]), neighbors="add-remove")
    noise.verify()
    mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.5))
    assert (mechanism.standard_deviation >= [0.99, tiny * 0.99]).all()
    assert (mechanism.rounding_bias <= 1e-9 * mechanism.standard_deviation).all()


def test_coordinates_beyond_double_precision_are_refused():
    with pytest.raises(CovarianceError, match="rescale"):
        gn.optimal_noise(gn.FiniteSet([[1.0, 0.0], [0.0, 1e-30]]), neighbors="add-remove")


def test_the_rounding_of_a_constant_coordinate_gets_next_to_no_noise():
    points = np.column_stack([np.arange(5.0), np.full(5, 0.1)])
    points[::2, 1] = np.nextafter(0.1, 1)
    for noise in (gn.gamma(gn.FiniteSet(points)), gn.optimal_noise(gn.FiniteSet(points))):
        assert 0 < noise.covariance.standard_deviation()[1] < 1e-12
        noise.verify()


@pytest.mark.parametrize("rho", [0.5, 1e6, 1e16])
def test_the_rounding_bias_is_a_bound_in_exact_arithmetic(rho):
    points = np.tril(np.ones((12, 12))).T + 1000.0
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(gn.FiniteSet(points), neighbors="add-remove"), gn.zCDP(rho)
    )
    lattice = mechanism._lattice
    step = Fraction(lattice.size) / Fraction(2) ** lattice.bits
    for integers, point in zip(lattice.strategy, points, strict=True):
        for row, x, bound in zip(lattice.unit_factor, point, mechanism.rounding_bias, strict=True):
            decoded = step * sum(Fraction(a) * b for a, b in zip(row, integers, strict=True))
            assert abs(decoded - Fraction(x)) <= Fraction(bound)


def test_points_closer_than_double_precision_are_never_overclaimed():
    rng = np.random.default_rng(3)
    for _ in range(60):
        point = rng.normal(size=2)
        pair = np.array([point, point + rng.integers(-9, 9, size=2) * 2.0**-52])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                noise = gn.gamma(gn.FiniteSet(pair))
            except (CovarianceError, CertificateError):
                continue
        exact = (
            float(np.abs(pair[1] - pair[0]).astype(np.longdouble) @ np.abs(pair[1] - pair[0]))
            ** 0.5
            / 2
        )
        assert noise.gamma_lower <= exact * (1 + 1e-12) <= noise.gamma * (1 + 2e-12)


@pytest.mark.parametrize(
    "changes",
    [
        {"p": np.inf},
        {"gamma_lower": 1e9},
        {"neighbors": "replace"},
        {"covariance": FactorCovariance(0.999 * np.eye(3), 1.0)},
        {"covariance": FactorCovariance(np.eye(3)[:, :2], 1.0)},
    ],
)
def test_false_claims_are_refused(changes):
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)), neighbors="add-remove")
    noise.verify()
    with pytest.raises((CertificateError, CovarianceError)):
        dataclasses.replace(noise, **changes).verify()


def test_marginal_noise_cannot_be_relabelled():
    noise = gn.optimal_noise(gn.Marginals.all_kway((5,) * 5, 2), neighbors="add-remove")
    with pytest.raises(CertificateError, match="every residual"):
        dataclasses.replace(noise, neighbors="replace").verify()
    domain = gn.Marginals((2,), [(0,)])
    asked = Request(gn.Schema([gn.Attribute("a", ["x", "y"])]), domain, gn.zCDP(1))
    with pytest.raises(ParameterError, match="expected optimal noise"):
        gn.Plan(asked, gn.gamma(domain))
    noise = gn.optimal_noise(domain, neighbors="add-remove")
    assert gn.Plan(asked, noise).rho == 1
    for changes in ({"neighbors": "replace"}, {"p": 3}, {"domain": gn.Marginals((2,), [()])}):
        with pytest.raises(ParameterError, match="expected optimal noise"):
            gn.Plan(dataclasses.replace(asked, **changes), noise)
    with pytest.raises(ParameterError, match="expected a budget"):
        gn.Plan(dataclasses.replace(asked, privacy=None), noise)
