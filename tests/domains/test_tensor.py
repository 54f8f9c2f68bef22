"""Tensor powers: exact cases, brackets against samples, membership."""

import contextlib
import functools
import itertools
import math

import numpy as np
import pytest
from cases import one_test_of
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import DimensionError, DomainTooLargeError, InvalidDomainError, TensorPower
from domains.oracles.distance import is_near
from domains.sets import tensor
from domains.sets.tensor import symmetric_coordinates


def power(x, k):
    return functools.reduce(np.kron, [x] * k)


def powers(rows, k):
    """Return the products of entries of every row, in the order of ``np.kron``."""
    found = rows
    for _ in range(k - 1):
        found = (found[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)
    return found


def sphere(d, count, rng):
    if d == 2:
        angles = np.linspace(0, 2 * np.pi, count)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    x = rng.normal(size=(count, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("dim", "order"),
    [(0, 2), (2, 0), (-1, 1), (2.5, 2), (2, 1.5), ("2", 2), (True, 2), (2, math.nan)],
)
def test_construction_is_validated(dim, order):
    with pytest.raises(InvalidDomainError, match="integer >= 1"):
        TensorPower(dim, order)


@pytest.mark.parametrize(("dim", "order"), [(2, 21), (1025, 2), (10, 10**6)])
def test_large_spaces_are_refused(dim, order):
    with pytest.raises(DomainTooLargeError, match=r"coordinates, more than 2\^20; hint"):
        TensorPower(dim, order)
    assert TensorPower(2, 20).dim == TensorPower(1024, 2).dim == 2**20


def test_symmetry_is_that_of_odd_orders():
    assert [TensorPower(2, k).is_symmetric for k in (1, 2, 3, 4)] == [True, False, True, False]


def test_embed_is_the_kronecker_power():
    x = sphere(3, 5, np.random.default_rng(0)) * 0.7
    np.testing.assert_allclose(TensorPower(3, 3).embed(x), [power(row, 3) for row in x], rtol=1e-15)
    with pytest.raises(DimensionError, match=r"shape \(n, 3\)"):
        TensorPower(3, 3).embed([1.0, 0.0, 0.0])
    for outside in ([1.0, 1.0, 0.0], [math.nan, 0, 0], [1e300, 0, 0]):
        with pytest.raises(InvalidDomainError, match="norm <= 1"):
            TensorPower(3, 3).embed([outside])


@pytest.mark.parametrize(("d", "k"), [(1, 3), (2, 4), (3, 3), (4, 2)])
def test_symmetric_coordinates_are_orthonormal(d, k):
    coordinates = symmetric_coordinates(d, k)
    E = coordinates.basis().toarray()
    assert E.shape == (d**k, math.comb(d + k - 1, k))
    np.testing.assert_allclose(E.T @ E, np.eye(E.shape[1]), atol=1e-14)
    x = sphere(d, 1, np.random.default_rng(1))[0]
    np.testing.assert_allclose(E @ coordinates.powers(x), power(x, k), atol=1e-14)
    np.testing.assert_allclose(coordinates.tensor(E.T @ power(x, k)), power(x, k), atol=1e-14)
    indices = itertools.combinations_with_replacement(range(d), k)
    assert coordinates.exponents().tolist() == [[i.count(j) for j in range(d)] for i in indices]


@pytest.mark.parametrize(
    ("d", "k"),
    [(1, 1), (1, 2), (1, 5), (2, 1), (2, 2), (2, 3), (2, 6), (3, 1), (3, 3), (3, 4), (5, 2)],
)
def test_support_dominates_a_fine_sample(d, k):
    rng, K = np.random.default_rng(2), TensorPower(d, k)
    sample = np.vstack([powers(sphere(d, 2000, rng), k), np.zeros(d**k)])
    for theta in (*rng.normal(size=(5, d**k)), -power(np.eye(d)[0], k), -power(np.full(d, 0.3), k)):
        assert K.contains(K.support_point(theta))
        best = (sample @ theta).max()
        assert K.support(theta) >= best - 1e-13
        if d <= 2:  # the support is exact, and the sample is fine
            assert K.support(theta) <= best + 1e-4 * np.abs(theta).sum()


def test_the_power_method_finds_a_hidden_rank_one_term():
    rng = np.random.default_rng(3)
    u = sphere(6, 1, rng)[0]
    assert TensorPower(6, 4).support(power(u, 4)) == pytest.approx(1, rel=1e-12)
    assert TensorPower(6, 3).support(-power(u, 3)) == pytest.approx(1, rel=1e-12)


@one_test_of("indices", [(0, 0, 0), (0, 0, 1), (2, 1, 0), (0, 0, 1, 1), (0, 1, 1, 1), (2, 2, 2, 2)])
def test_coordinates_are_largest_where_inequalities_of_means_say(indices):
    """A coordinate x_i x_j … is largest at x_i² = a_i/k (weighted means of both kinds)."""
    k, shape = len(indices), (3,) * len(indices)
    K, axis = TensorPower(3, k), np.zeros(shape)
    axis[indices] = 2.0
    shares = np.bincount(indices, minlength=3) / k
    best = 2 * float(np.prod(shares[list(indices)])) ** 0.5
    assert K.support(axis.ravel()) == pytest.approx(best, rel=1e-14)
    signed = any(indices.count(i) % 2 for i in indices)
    assert K.support(-axis.ravel()) == pytest.approx(best if signed else 0.0, rel=1e-14)
    sample = powers(sphere(3, 2000, np.random.default_rng(5)), k)
    assert (sample @ axis.ravel()).max() <= best * (1 + 1e-12)


def test_quadratic_forms_of_even_order_can_have_no_positive_value():
    K = TensorPower(3, 2)
    np.testing.assert_array_equal(K.support_point(-np.eye(3).ravel()), np.zeros(9))
    antisymmetric = np.array([[0, 1.0, 0], [-1, 0, 0], [0, 0, 0]]).ravel()
    assert K.support(antisymmetric) == 0


@settings(derandomize=True, deadline=None, max_examples=40)
@given(data=st.data())
def test_circle_brackets_are_exact(data):
    k = data.draw(st.integers(1, 5))
    entries = st.integers(-4, 4)
    rank = data.draw(st.integers(1, 2**k))
    A = np.array(
        data.draw(st.lists(entries, min_size=rank * 2**k, max_size=rank * 2**k)), dtype=float
    )
    A = A.reshape(2**k, rank)
    center = np.array(data.draw(st.lists(entries, min_size=2**k, max_size=2**k)), dtype=float) / 8
    found = TensorPower(2, k).max_quadratic(A @ A.T, center)
    sample = np.vstack([powers(sphere(2, 1001, None), k), np.zeros(2**k)]) - center
    best = np.square(sample @ A).sum(axis=1).max()
    size = np.square(A).sum() * (1 + center @ center)
    assert found.upper_bound >= best - 1e-13 * size
    assert found.upper_bound - found.value <= 1e-10 * size


@pytest.mark.parametrize(
    ("d", "k"), [(1, 1), (1, 2), (1, 3), (3, 1), (3, 2), (3, 3), (4, 2), (3, 4), (5, 2)]
)
@pytest.mark.parametrize("rank", [1, 2, None])
def test_quadratic_brackets_hold_against_samples(d, k, rank):
    rng, K = np.random.default_rng(4), TensorPower(d, k)
    sample = np.vstack([powers(sphere(d, 3000, rng), k), np.zeros(d**k)])
    A = rng.normal(size=(d**k, rank or d**k))
    for center in (np.zeros(d**k), rng.normal(size=d**k) / 3, -5 * sample[0]):
        found = K.max_quadratic(A @ A.T, center)
        best = np.square((sample - center) @ A).sum(axis=1).max()
        assert found.upper_bound >= best * (1 - 1e-12)
        assert found.value >= best * (1 - 1e-12)
        assert K.contains(found.maximizer)
        assert found.upper_bound <= found.value * 1.02


def test_the_identity_is_exact_and_the_antisymmetric_part_is_not_seen():
    for d, k in ((3, 2), (3, 3), (2, 5)):
        assert TensorPower(d, k).max_quadratic(np.eye(d**k)).upper_bound == pytest.approx(
            1, rel=1e-9
        )
    unseen = np.array([0, 1.0, 0, -1, 0, 0, 0, 0, 0])
    assert TensorPower(3, 2).max_quadratic(np.outer(unseen, unseen)).upper_bound <= 1e-12


def test_symmetrisation_beats_the_largest_eigenvalue():
    """(x_1 x_2)² <= 1/4, while the eigenvalue on symmetric matrices is 1/2."""
    H = np.zeros((9, 9))
    H[1, 1] = 1
    found = TensorPower(3, 2).max_quadratic(H)
    assert found.upper_bound == pytest.approx(0.25, rel=1e-4)
    assert found.value == pytest.approx(0.25, rel=1e-9)


def test_membership_is_of_rank_one_tensors():
    rng, x = np.random.default_rng(5), np.array([0.6, 0.0, 0.8])
    for k in (1, 2, 3, 4):
        K = TensorPower(3, k)
        assert all(K.contains(s * power(x, k)) for s in (0, 1e-12, 0.5, 1))
        assert K.contains(-power(x, k)) == (k % 2 == 1)
        assert not K.contains(1.001 * power(x, k))
        assert not K.contains(np.full(3**k, 1e200))
        if k > 1:
            assert not K.contains((power(x, k) + power(np.array([1.0, 0, 0]), k)) / 2)
            assert not K.contains(power(x, k) * 0.5 + 1e-6 * rng.normal(size=3**k))


@pytest.mark.parametrize(("d", "k"), [(2, 5), (3, 3), (4, 3), (3, 4), (4, 5), (3, 6)])
def test_what_the_search_may_miss_is_bounded(d, k):
    """No member of a fine sample is above the bound."""
    rng = np.random.default_rng(10 * d + k)
    K, sample = TensorPower(d, k), sphere(d, 20_000, rng)
    for theta in rng.normal(size=(3, K.dim)):
        highest = (powers(sample, k) @ theta).max()
        assert highest <= K.support(theta) + K._support_gap(theta) + 1e-9 * abs(highest)


def test_a_search_that_misses_proves_nothing(monkeypatch):
    """A convex combination of members is never outside, though a support point be a bad one."""
    rng = np.random.default_rng(1)
    K = TensorPower(3, 4)
    x = power(sphere(3, 1, rng)[0], 4) * 0.5 + power(sphere(3, 1, rng)[0], 4) * 0.5
    far = 1.5 * power(np.array([0.6, 0.0, 0.8]), 4)
    assert is_near(K, x)
    assert not is_near(K, far)
    monkeypatch.setattr(tensor, "_climb", lambda polynomial, starts: starts[0])
    with contextlib.suppress(DomainTooLargeError):
        assert is_near(K, x)
    monkeypatch.setattr(TensorPower, "_support_gap", lambda self, theta: 0.0)
    assert not is_near(K, x)  # negative control: without the bound, the search is believed
