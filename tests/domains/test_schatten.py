"""Schatten balls: duality of norms, closed forms, and brackets against brute force."""

import math

import numpy as np
import pytest
from cases import one_test_of
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import InvalidDomainError, SchattenBall
from domains.sets.schatten import sphere_maximum

EXPONENTS = [1, 1.2, 1.7, 2, 2.5, 4, 30, math.inf]


def norm(X, q):
    return np.linalg.norm(np.linalg.svd(X, compute_uv=False), q)


def psd(rng, dim, rank=None):
    A = rng.normal(size=(dim, rank or dim))
    return A @ A.T


def climbed(shape, q, H, center, rng, starts=200):
    """Return the best of many ascents by a textbook Hölder step, written independently."""
    best = 0.0
    for _ in range(starts):
        X = rng.normal(size=shape)
        for _ in range(60):
            U, s, V = np.linalg.svd(X, full_matrices=False)
            if q == 1:
                s = np.eye(1, len(s))[0]
            elif q == math.inf:
                s = np.ones_like(s)
            else:
                s = s ** (1 / (q - 1))
                s = s / np.linalg.norm(s, q)
            x = (U @ np.diag(s) @ V).ravel()
            X = (H @ (x - center)).reshape(shape)
        best = max(best, (x - center) @ H @ (x - center))
    return best


def orthogonal_group(count=40001):
    """Return a fine grid of the extreme points of the spectral-norm ball of 2 × 2 matrices."""
    c, s = np.cos(np.linspace(0, 2 * np.pi, count)), np.sin(np.linspace(0, 2 * np.pi, count))
    return np.vstack([np.stack([c, -s, s, c], axis=1), np.stack([c, s, s, -c], axis=1)])


@pytest.mark.parametrize(
    ("shape", "q", "radius", "message"),
    [
        ((2,), 2, 1, r"shape \(m, n\)"),
        ((2, 2, 2), 2, 1, r"shape \(m, n\)"),
        (5, 5, 1, r"shape \(m, n\), got 5"),
        ((0, 2), 2, 1, "shape an integer >= 1"),
        ((2, 1.5), 2, 1, "shape an integer >= 1"),
        ((2, 2), 0.5, 1, "1 <= q <= inf"),
        ((2, 2), math.nan, 1, "1 <= q <= inf"),
        ((2, 2), 2, 0, "radius > 0"),
        ((2, 2), 2, -1, "radius > 0"),
        ((2, 2), 2, math.inf, "radius > 0"),
        ((2, 2), 2, math.nan, "radius > 0"),
    ],
)
def test_construction_is_validated(shape, q, radius, message):
    with pytest.raises(InvalidDomainError, match=message):
        SchattenBall(shape, q, radius=radius)


@one_test_of("q", EXPONENTS)
@one_test_of("shape", [(1, 1), (1, 4), (3, 2), (3, 3)])
def test_support_is_the_dual_norm(shape, q):
    K, dual = (
        SchattenBall(shape, q, radius=2.5),
        math.inf if q == 1 else 1 if q == math.inf else q / (q - 1),
    )
    rng = np.random.default_rng(0)
    for theta in (
        rng.normal(size=shape),
        np.outer(np.ones(shape[0]), np.ones(shape[1])),
        1e-200 * rng.normal(size=shape),
    ):
        point = K.support_point(theta.ravel())
        assert norm(point.reshape(shape), q) <= 2.5 * (1 + 1e-12)
        assert K.support(theta.ravel()) == pytest.approx(2.5 * norm(theta, dual), rel=1e-12)


@pytest.mark.parametrize("q", EXPONENTS)
def test_membership_is_of_the_norm_ball(q):
    K, X = SchattenBall((2, 3), q, radius=0.1), np.random.default_rng(1).normal(size=(2, 3))
    X *= 0.1 / norm(X, q)
    assert K.contains(X.ravel())
    assert K.contains(0.99 * X.ravel())
    assert not K.contains(1.0001 * X.ravel())
    assert not K.contains(np.full(6, 1e300))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(data=st.data())
def test_sphere_maximum_is_proven_and_attained(data):
    n = data.draw(st.integers(1, 5))
    small = st.integers(-3, 3)
    A = np.array(data.draw(st.lists(small, min_size=n * n, max_size=n * n)), dtype=float).reshape(
        n, n
    )
    g = np.array(data.draw(st.lists(small, min_size=n, max_size=n)), dtype=float)
    g *= data.draw(st.sampled_from([0.0, 1e-13, 1e-5, 1.0, 1e3]))
    A, radius = A + A.T, data.draw(st.sampled_from([0.01, 1.0, 30.0]))
    y, upper = sphere_maximum(A, g, radius)
    value = y @ A @ y - 2 * g @ y
    size = np.abs(A).max() * radius**2 * n + np.linalg.norm(g) * radius
    assert np.linalg.norm(y) == pytest.approx(radius, rel=1e-12)
    assert -1e-12 * size <= upper - value <= 1e-11 * size + 1e-290
    z = np.random.default_rng(0).normal(size=(500, n))
    z *= radius / np.linalg.norm(z, axis=1, keepdims=True)
    assert (np.einsum("ij,jk,ik->i", z, A, z) - 2 * z @ g).max() <= upper + 1e-12 * size


@one_test_of("q", EXPONENTS)
@one_test_of("shape", [(1, 3), (2, 2), (3, 5)])
def test_multiples_of_the_identity_are_exact(shape, q):
    found = SchattenBall(shape, q, radius=3.0).max_quadratic(2.0 * np.eye(math.prod(shape)))
    expected = 2 * 9 * min(shape) ** max(0, 1 - 2 / q)
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert found.upper_bound == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("shape", "q"), [((3, 2), 2), ((1, 5), 1), ((5, 1), math.inf), ((1, 4), 3)]
)
def test_euclidean_balls_are_exact(shape, q):
    rng = np.random.default_rng(2)
    for rank in (1, 2, None):
        H = psd(rng, math.prod(shape), rank)
        for center in (np.zeros(len(H)), rng.normal(size=len(H))):
            found = SchattenBall(shape, q, radius=1.5).max_quadratic(H, center)
            assert found.upper_bound == pytest.approx(found.value, rel=1e-11)
            if not center.any():
                assert found.value == pytest.approx(1.5**2 * np.linalg.eigvalsh(H)[-1], rel=1e-11)


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_spectral_ball_of_2_by_2_against_the_orthogonal_group(rank):
    rng, group = np.random.default_rng(3), orthogonal_group()
    for trial in range(8):
        H, center = psd(rng, 4, rank), rng.normal(size=4) * (trial % 2)
        moved = group - center
        best = np.einsum("ij,jk,ik->i", moved, H, moved).max()
        found = SchattenBall((2, 2), math.inf).max_quadratic(H, center)
        assert (
            best * (1 - 1e-12) <= found.upper_bound <= best * (1.15 if center.any() else 1 + 1e-4)
        )
        assert best * (1 - 1e-12) <= found.value <= best * (1 + 1e-6)


@pytest.mark.parametrize("q", [1, 1.5, 3, math.inf])
@pytest.mark.parametrize("shape", [(2, 2), (2, 3)])
def test_brackets_hold_against_many_ascents(shape, q):
    rng = np.random.default_rng(4)
    for trial in range(4):
        dim = math.prod(shape)
        H, center = psd(rng, dim, (1, 2, dim, dim)[trial]), rng.normal(size=dim) * (trial % 2)
        best = climbed(shape, q, H, center, rng, 8)
        found = SchattenBall(shape, q).max_quadratic(H, center)
        assert found.upper_bound >= best * (1 - 1e-12)
        assert found.value >= best * (1 - 1e-9)
        assert found.upper_bound <= found.value * min(shape) ** abs(1 - 2 / q) * (
            2 if center.any() else 1 + 1e-12
        )


@pytest.mark.parametrize("q", [1, 1.3, 2.3, 6, math.inf])
def test_hard_forms_stay_within_the_stated_factor(q):
    """The forms are projections onto symmetric or antisymmetric matrices, and others for which the
    Frobenius bound is loose.
    """
    n = 3
    flip = np.eye(n * n).reshape(n, n, n, n).transpose(1, 0, 2, 3).reshape(n * n, n * n)
    trace = np.outer(np.eye(n).ravel(), np.eye(n).ravel())
    corner = np.kron(np.diag([1.0, 0, 0]), np.eye(n))
    rng = np.random.default_rng(5)
    for H in (
        np.eye(9) + flip,
        np.eye(9) - flip,
        trace,
        corner,
        np.eye(9) - trace / n,
        corner + flip @ corner @ flip,
    ):
        best = climbed((n, n), q, H, np.zeros(9), rng, 8)
        found = SchattenBall((n, n), q).max_quadratic(H)
        assert found.upper_bound >= best * (1 - 1e-10)
        assert found.upper_bound <= best * min(n ** abs(1 - 2 / q), 2 * math.sqrt(2)) * (1 + 1e-9)


def test_the_majorant_beats_the_frobenius_ball():
    H = np.kron(np.diag([1.0, 0, 0]), np.eye(3))  # the squared length of the first row, at most one
    found = SchattenBall((3, 3), math.inf).max_quadratic(H)
    assert found.upper_bound == pytest.approx(1, rel=1e-5)


def test_nuclear_norm_uses_the_partial_transpose():
    H = np.outer(
        np.eye(3).ravel(), np.eye(3).ravel()
    )  # (tr X)^2 <= 1, where the Frobenius ball says 3
    found = SchattenBall((3, 3), 1).max_quadratic(H)
    assert found.upper_bound == pytest.approx(1, rel=1e-9)


def test_sizes_scale_without_overflow():
    rng = np.random.default_rng(6)
    H, center = psd(rng, 4), rng.normal(size=4)
    unit = SchattenBall((2, 2), math.inf).max_quadratic(H, center)
    for size in (1e-100, 1e70):
        found = SchattenBall((2, 2), math.inf, radius=size).max_quadratic(1e-120 * H, size * center)
        assert found.upper_bound == pytest.approx(unit.upper_bound * 1e-120 * size**2, rel=1e-6)
