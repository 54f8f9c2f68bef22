"""Closed forms for tensor powers: exact coefficients, projections, designs and their
certificates.
"""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.special
from cases import one_test_of

import gaussnoise as gn
from domains import DomainTooLargeError, FiniteSet, TensorPower
from gaussnoise.noise.certificates.tensors import TensorCertificate
from gaussnoise.solvers.bodies.harmonics import (
    enclosure,
    harmonic_bases,
    multiplicity,
    tensor_design,
    zonal_weights,
)

SMALL = [
    (1, 1),
    (1, 2),
    (1, 3),
    (1, 4),
    (2, 1),
    (2, 2),
    (2, 3),
    (2, 4),
    (2, 6),
    (3, 2),
    (3, 3),
    (3, 4),
    (4, 2),
    (5, 2),
]
KINDS = ["gamma", "add-remove", "replace"]
SPHERE = {
    (3, 2): 1.8257418584,
    (3, 3): 3.0149608396,
    (5, 2): 3.3466401061,
    (4, 3): 4.2426406871,
    (4, 4): 5.0450849719,
}
BALL = {(3, 2): 1.9080294743, (5, 2): 3.3758861461}


def power(x, k):
    return functools.reduce(np.kron, [x] * k)


def powers(rows, k):
    """Return, for every row, products of entries in the order of ``np.kron``."""
    found = rows
    for _ in range(k - 1):
        found = (found[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    return found


def sphere(d, count, rng):
    x = rng.normal(size=(count, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def zonal(d, j, t):
    """Return P_j(t) from scipy's Gegenbauer or Chebyshev polynomials."""
    if d == 2:
        return scipy.special.eval_chebyt(j, t)
    return scipy.special.eval_gegenbauer(j, d / 2 - 1, t) / scipy.special.eval_gegenbauer(
        j, d / 2 - 1, 1.0
    )


def lengths(design, points):
    coordinates, *_ = np.linalg.lstsq(design.factor, (points - design.center).T, rcond=None)
    np.testing.assert_allclose(design.factor @ coordinates, (points - design.center).T, atol=1e-12)
    return np.square(coordinates).sum(axis=0)


def sensitivity_points(domain, kind, rng, count=300):
    """Return members of the sensitivity set, including the far ones."""
    d, k = domain.base, domain.order
    x = powers(sphere(d, count, rng), k)
    if kind == "gamma":
        return np.vstack([x, 0 * x[:1], x * rng.uniform(size=(count, 1))])
    if kind == "add-remove":
        return np.vstack([x, -x])
    # pairs at every angle, and unequal lengths
    angles = np.linspace(0, np.pi, count)
    pairs = sphere(d, count, rng)
    if d > 1:
        other = sphere(d, count, rng)
        other -= (other * pairs).sum(axis=1, keepdims=True) * pairs
        other /= np.linalg.norm(other, axis=1, keepdims=True)
        turned = np.cos(angles)[:, None] * pairs + np.sin(angles)[:, None] * other
    else:
        turned = -pairs
    y = powers(turned, k)
    z = powers(pairs, k)
    return np.vstack([z - y, x, z - y * rng.uniform(size=(count, 1))])


@pytest.mark.parametrize(("d", "k"), [(2, 3), (2, 6), (3, 5), (4, 4), (7, 3)])
def test_zonal_weights_expand_the_power_exactly(d, k):
    pi = zonal_weights(d, k)
    assert all(isinstance(share, Fraction) and share > 0 for share in pi.values())
    assert sum(pi.values()) == 1
    assert set(pi) == set(range(k % 2, k + 1, 2))
    for t in np.linspace(-1, 1, 7):
        assert sum(float(share) * zonal(d, j, t) for j, share in pi.items()) == pytest.approx(
            t**k, abs=1e-14
        )


@one_test_of(("d", "k"), SMALL)
def test_multiplicities_add_up_to_the_symmetric_tensors(d, k):
    assert sum(multiplicity(d, j) for j in zonal_weights(d, k)) == math.comb(d + k - 1, k)
    assert multiplicity(3, 7) == 15


@one_test_of(("d", "k"), SMALL)
def test_bases_are_orthonormal_projections_of_the_right_length(d, k):
    bases, pi, rng = (
        harmonic_bases(TensorPower(d, k)),
        zonal_weights(d, k),
        np.random.default_rng(0),
    )
    joined = np.hstack(list(bases.values()))
    np.testing.assert_allclose(joined.T @ joined, np.eye(joined.shape[1]), atol=1e-13)
    u, v = sphere(d, 2, rng)
    t = float(u @ v)
    for j, B in bases.items():
        assert B.shape == (d**k, multiplicity(d, j))
        x, y = B.T @ power(u, k), B.T @ power(v, k)
        assert x @ x == pytest.approx(float(pi[j]), abs=1e-14)
        if d > 1:
            assert x @ y == pytest.approx(float(pi[j]) * zonal(d, j, t), abs=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "k"), SMALL)
def test_designs_cover_the_set_and_close_their_certificate(d, k, kind):
    domain = TensorPower(d, k)
    design = tensor_design(domain, kind)
    rank = math.comb(d + k - 1, k)
    assert design.factor.shape == (d**k, rank)
    assert np.linalg.matrix_rank(design.factor) == rank
    assert np.linalg.norm(design.factor) == pytest.approx(design.upper, rel=1e-12)
    assert (
        design.lower == TensorCertificate(domain, design.atoms, design.weights, kind).lower_bound()
    )
    assert design.lower <= design.upper <= design.lower * (1 + 1e-7)
    longest = lengths(design, sensitivity_points(domain, kind, np.random.default_rng(1))).max()
    assert 0.99 <= longest <= 1 + 1e-12


def test_designs_without_slack_are_closed_to_rounding():
    for d, k in SMALL:
        for kind in ("gamma", "add-remove"):
            design = tensor_design(TensorPower(d, k), kind)
            assert design.upper <= design.lower * (1 + 1e-12)


@pytest.mark.parametrize(("d", "k"), SPHERE)
def test_published_values_on_the_sphere(d, k):
    """Return γ_2 of the sphere's powers: the ball's for odd orders, that of the traceless part for
    even ones.
    """
    roots = {j: math.sqrt(multiplicity(d, j) * share) for j, share in zonal_weights(d, k).items()}
    assert sum(r for j, r in roots.items() if j) == pytest.approx(SPHERE[d, k], abs=1e-10)
    if k % 2:
        assert tensor_design(TensorPower(d, k), "gamma").upper == pytest.approx(
            SPHERE[d, k], abs=1e-10
        )


@pytest.mark.parametrize(("d", "k"), BALL)
def test_published_values_on_the_ball(d, k):
    assert tensor_design(TensorPower(d, k), "gamma").upper == pytest.approx(BALL[d, k], abs=1e-9)


def test_first_powers_are_the_euclidean_ball():
    for d in (1, 2, 5):
        values = [tensor_design(TensorPower(d, 1), kind).upper for kind in KINDS]
        np.testing.assert_allclose(values, math.sqrt(d) * np.array([1, 1, 2]), rtol=1e-11)


def test_replacing_an_odd_power_costs_twice_the_power():
    for d, k in ((2, 3), (3, 3), (1, 5)):
        assert tensor_design(TensorPower(d, k), "replace").upper == pytest.approx(
            2 * tensor_design(TensorPower(d, k), "gamma").upper, rel=1e-11
        )


def test_squares_in_closed_form():
    """Order two needs only the pairs at right angles and the single vectors: one unknown weight."""
    for d in (2, 3, 4, 7):
        omega = np.linspace(0, 1, 200001)
        roots = {
            j: math.sqrt(multiplicity(d, j) * share) for j, share in zonal_weights(d, 2).items()
        }
        best = roots[0] * np.sqrt(omega) + roots[2] * np.sqrt(
            omega + 2 * (1 - omega) * (1 + 1 / (d - 1))
        )
        assert tensor_design(TensorPower(d, 2), "replace").upper == pytest.approx(
            best.max(), rel=1e-8
        )


def grid(d, count):
    """Return nearly dense points of the sphere, up to sign."""
    if d == 2:
        angles = np.pi * np.arange(count) / count
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    n = np.arange(count) + 0.5
    height, turn = n / count, np.pi * (1 + math.sqrt(5)) * n
    flat = np.sqrt(1 - height**2)
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), height], axis=1)


@pytest.mark.parametrize(
    ("d", "k", "count", "loss"),
    [(2, 2, 24, 1e-9), (2, 3, 24, 1e-9), (2, 4, 24, 1e-9), (3, 2, 60, 5e-3), (3, 3, 60, 2e-2)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_finite_samples_agree(d, k, count, loss, kind):
    """The general solver on listed points stays below, and is close; on the circle regular polygons
    are exact.
    """
    domain = TensorPower(d, k)
    x = domain.embed(grid(d, count))
    if k % 2:
        x = np.vstack([x, -x])
    points = np.vstack([x, np.zeros(d**k)])
    if kind == "replace":
        points = np.array([x - y for x, y in itertools.permutations(points, 2)])
    elif kind == "add-remove":
        points = np.vstack([points, -points])
    sampled = gn.gamma(FiniteSet(points), tol=1e-7)
    design = tensor_design(domain, kind)
    assert sampled.gamma_lower <= design.upper * (1 + 1e-9)
    assert sampled.gamma >= design.lower * (1 - loss - 1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "k"), [(2, 4), (3, 3), (3, 4), (4, 2), (1, 2)])
def test_enclosure_bounds_any_covariance(d, k, kind):
    rng, domain = np.random.default_rng(2), TensorPower(d, k)
    for shift in (0.0, 0.3) if kind == "gamma" and k % 2 == 0 else (0.0,):
        degrees = {j: float(rng.uniform(0.1, 2)) for j in zonal_weights(d, k)}
        bases = harmonic_bases(domain)
        mean = bases[0] @ bases[0].T @ power(np.eye(d)[0], k) if k % 2 == 0 else np.zeros(d**k)
        moved = sensitivity_points(domain, kind, rng, 2000) - shift * mean
        lengths = sum(np.square(moved @ B).sum(axis=1) / degrees[j] for j, B in bases.items())
        bound = enclosure(domain, degrees, kind, shift)
        assert lengths.max() <= bound * (1 + 1e-12)
        assert lengths.max() >= bound * (1 - 1e-4)


def test_enclosure_checks_its_degrees():
    for wrong in ({}, {0: 1.0}, {0: 1.0, 2: 0.0}, {0: 1.0, 2: math.nan}, {0: 1.0, 1: 1.0, 2: 1.0}):
        with pytest.raises(ValueError, match=r"positive m_j for every degree j in \[0, 2\]"):
            enclosure(TensorPower(3, 2), wrong, "gamma")


@pytest.mark.parametrize("kind", KINDS)
def test_certificates_are_bounds_for_all_measures(kind):
    rng, domain = np.random.default_rng(3), TensorPower(3, 4)
    best = tensor_design(domain, kind)
    for _ in range(20):
        atoms = rng.uniform(size=(4, 3))
        if kind != "replace":
            atoms[:, 1] = 0
        assert (
            TensorCertificate(domain, atoms, rng.dirichlet(np.ones(4)), kind).lower_bound()
            <= best.upper
        )
    doubled = TensorCertificate(domain, best.atoms, 2 * best.weights, kind)
    assert doubled.lower_bound() == pytest.approx(
        best.lower, rel=1e-12
    )  # a measure is normalised first


@pytest.mark.parametrize(
    ("atom", "weight", "kind"),
    [
        ((1.1, 0, 0), 1, "gamma"),
        ((1, 1, 0), 1, "gamma"),
        ((1, 0.5, 0), 1, "add-remove"),
        ((1, 1, -1.5), 1, "replace"),
        ((-1, 1, 0), 1, "replace"),
        ((1, 0, 0), -1, "gamma"),
        ((1, 0, 0), 0, "gamma"),
    ],
)
def test_certificates_of_strangers_prove_nothing_outside_the_set(atom, weight, kind):
    assert (
        TensorCertificate(
            TensorPower(3, 2), np.array([atom]), np.array([weight]), kind
        ).lower_bound()
        == 0
    )


def test_the_certificate_is_the_second_moment_of_its_measure():
    """The traces are the nuclear norm of an explicit sample of the rotated pairs."""
    domain = TensorPower(2, 4)
    atoms, weights = (
        np.array([[1.0, 0, 0], [1, 0.5, 0.3], [0.8, 1, -0.7]]),
        np.array([0.2, 0.5, 0.3]),
    )
    angles = 2 * np.pi * np.arange(64) / 64
    moment = np.zeros((16, 16))
    for (a, b, t), w in zip(atoms, weights, strict=True):
        for turn in angles:
            for side in (1, -1):
                u = np.array([np.cos(turn), np.sin(turn)])
                v = np.array(
                    [np.cos(turn + side * np.arccos(t)), np.sin(turn + side * np.arccos(t))]
                )
                s = a * power(u, 4) - b * power(v, 4)
                moment += w * np.outer(s, s) / 128
    expected = np.sqrt(np.maximum(np.linalg.eigvalsh(moment), 0)).sum()
    assert TensorCertificate(domain, atoms, weights, "replace").lower_bound() == pytest.approx(
        expected, rel=1e-6
    )


def test_large_factors_are_refused():
    with pytest.raises(DomainTooLargeError, match=r"more than 2\^26; hint"):
        tensor_design(TensorPower(100, 3), "gamma")
