"""FiniteSet: accepted arguments and stored points."""

import numpy as np
import pytest
from scipy import sparse

from domains import (
    Base,
    DomainError,
    DomainTooLargeError,
    FiniteSet,
    InvalidDomainError,
    LpBall,
    Polytope,
    Zonotope,
)


@pytest.mark.parametrize(
    "points", [[], [[]], [1.0, 2.0], 3.0, np.zeros((2, 2, 2)), np.zeros((0, 3)), np.zeros((3, 0))]
)
def test_points_must_be_a_nonempty_table(points):
    with pytest.raises(InvalidDomainError, match=r"shape \(N, d\)"):
        FiniteSet(points)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_must_be_finite(bad):
    with pytest.raises(InvalidDomainError, match="NaN or infinity"):
        FiniteSet([[0.0, 1.0], [bad, 0.0]])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_matrix, sparse.dia_array])
def test_sparse_workloads_are_those_of_their_arrays(kind):
    W = np.array([[1.0, 0, 2], [0, 0, -1]])
    np.testing.assert_array_equal(FiniteSet.from_workload(kind(W)).points, W.T)
    assert Base(kind(W)) == Base(W)


def test_large_sparse_workloads_are_refused_before_they_are_written_out():
    W = sparse.coo_array(([1.0], ([0], [0])), shape=(10**6, 10**6))
    for make in (FiniteSet.from_workload, Base):
        with pytest.raises(DomainTooLargeError, match="1000000 × 1000000"):
            make(W)


def test_errors_have_one_root_and_refine_a_builtin():
    assert issubclass(InvalidDomainError, DomainError)
    assert issubclass(InvalidDomainError, ValueError)


def test_points_are_copied():
    source = np.zeros((2, 2))
    K = FiniteSet(source)
    source[:] = 5
    assert not K.points.any()
    with pytest.raises(ValueError, match="read-only"):
        K.points[0, 0] = 1


def test_integers_become_float64():
    assert FiniteSet(np.array([[1, 2]], dtype=np.int8)).points.dtype == np.float64


def test_duplicates_are_kept_in_order():
    K = FiniteSet([[1.0], [0.0], [1.0]])
    assert K.cardinality == 3
    np.testing.assert_array_equal(K.points[:, 0], [1, 0, 1])


def test_from_workload_takes_columns():
    W = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(FiniteSet.from_workload(W).points, W.T)


def test_from_workload_refuses_a_vector():
    with pytest.raises(InvalidDomainError):
        FiniteSet.from_workload([1.0, 2.0])


def test_domains_compare_by_identity():
    K = FiniteSet([[1.0]])
    assert K == K
    assert K != FiniteSet([[1.0]])


def test_repr_shows_the_size_and_no_numbers():
    assert repr(FiniteSet([[123.0, 4.0]])) == "FiniteSet(1 points in R^2)"


@pytest.mark.parametrize(
    ("points", "what"),
    [
        ([[1, 2], [3]], "ragged or mixed values"),
        ([["secret", 1]], "something else"),
        ([[1j, 2]], "complex numbers"),
        ([[10**400, 2]], "integers beyond the largest double"),
        (np.ma.masked_array([[1.0, 2.0]], [[True, False]]), "a masked array, .*filled"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused_without_being_quoted(points, what):
    expected = f"regular array of real numbers, got {what}"
    with pytest.raises(InvalidDomainError, match=expected) as caught:
        FiniteSet(points)
    assert "secret" not in str(caught.value)
    assert "000" not in str(caught.value)
    assert caught.value.__context__ is None
    for door in (Zonotope, Polytope, lambda A: A @ LpBall(2, 2), LpBall(2, 2).max_quadratic):
        with pytest.raises(InvalidDomainError, match=f"real numbers, got {what}"):
            door(points)
