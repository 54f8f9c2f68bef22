"""Marginals: construction, embedding of records, and refusal of what would not fit."""

import itertools

import numpy as np
import pytest
from cases import one_test_of

from domains import DimensionError, DomainTooLargeError, InvalidDomainError, Marginals


@one_test_of(
    ("sizes", "subsets", "weights", "message"),
    [
        ((), [()], None, "sizes"),
        ((2, 0), [(0,)], None, "sizes"),
        ((2, -1), [(0,)], None, "sizes"),
        ((2.5,), [(0,)], None, "sizes"),
        ((2,), [], None, "at least one subset"),
        ((2, 3, 4), 2, None, "expected subsets like .* got int; hint: Marginals.all_kway"),
        ((2, 3), [0, 1], None, "expected subsets like"),
        ((2,), [(1,)], None, "attribute indices"),
        ((2,), [(-1,)], None, "attribute indices"),
        ((2,), [(0.5,)], None, "attribute indices"),
        ((2, 2), [(0,), (1,)], [1.0], "one weight for each"),
        ((2, 2), [(0, 1), (1, 0)], [1.0, 2.0], "one weight for each"),
        ((2,), [(0,)], [0.0], "positive"),
        ((2,), [(0,)], [-1.0], "positive"),
        ((2,), [(0,)], [np.nan], "positive"),
        ((2,), [(0,)], [np.inf], "positive"),
    ],
)
def test_construction_is_validated(sizes, subsets, weights, message):
    with pytest.raises(InvalidDomainError, match=message):
        Marginals(sizes, subsets, weights=weights)


@pytest.mark.parametrize("k", [-1, 4])
def test_all_kway_needs_k_attributes(k):
    with pytest.raises(InvalidDomainError, match="0 <= k <= 3"):
        Marginals.all_kway((2, 2, 2), k)


def test_subsets_are_sorted_unique_and_in_the_callers_order():
    K = Marginals((2, 3, 4), [(2, 0), (1,), (0, 2), (1, 1), ()])
    assert K.subsets == ((0, 2), (1,), ())
    assert K.weights == (1.0, 1.0, 1.0)
    assert K.dim == 8 + 3 + 1


@pytest.mark.parametrize("k", range(4))
def test_all_kway_lists_every_subset_of_its_order(k):
    K = Marginals.all_kway((2, 3, 4), k)
    assert set(K.subsets) == set(itertools.combinations(range(3), k))
    assert K.dim == sum(np.prod([K.sizes[i] for i in S], dtype=int) for S in K.subsets)


def test_cumulative_adds_all_lower_orders():
    K = Marginals.all_kway((2, 3, 4), 2, cumulative=True)
    assert K.subsets == ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2))


def test_embed_agrees_with_the_listed_points():
    K = Marginals((3, 1, 2), [(0, 2), (1,), ()], weights=[2.0, 0.5, 3.0])
    records = list(itertools.product(range(3), range(1), range(2)))
    np.testing.assert_array_equal(K.embed(records), K.to_finite_set().points)
    assert all(K.contains(x) for x in K.embed(records))


def test_embedded_records_sum_to_weighted_contingency_tables():
    codes = np.random.default_rng(0).integers((3, 2, 4), size=(50, 3))
    K = Marginals((3, 2, 4), [(0, 2)], weights=[0.5])
    table, _ = np.histogramdd(codes[:, [0, 2]], bins=[np.arange(4), np.arange(5)])
    np.testing.assert_array_equal(K.embed(codes).sum(axis=0), 0.5 * table.ravel())


def test_no_records_embed_to_no_rows():
    assert Marginals((3, 2), [(0,)]).embed(np.zeros((0, 2), dtype=int)).shape == (0, 3)


@pytest.mark.parametrize("codes", [[0, 1], [[0]], [[0, 1, 2]], [[[0, 1]]]])
def test_embed_checks_the_shape(codes):
    with pytest.raises(DimensionError, match="codes of shape"):
        Marginals((3, 2), [(0,)]).embed(codes)


@pytest.mark.parametrize("code", [77777, -77777, 77777.5, np.nan])
def test_embed_refuses_bad_codes_without_showing_them(code):
    with pytest.raises(InvalidDomainError) as caught:
        Marginals((3, 2), [(0,)]).embed([[code, 0]])
    assert "77777" not in str(caught.value)


def test_a_point_with_inconsistent_tables_is_not_a_member():
    K = Marginals((2, 2), [(0,), (0, 1)])
    says_zero_then_one = [1, 0, 0, 0, 1, 0]
    assert not K.contains(says_zero_then_one)


HUGE = Marginals((10,) * 40, [(0, 1), (2,)])


@pytest.mark.parametrize(
    "call",
    [
        lambda K: K.to_finite_set(),
        lambda K: K.support_point(np.zeros(K.dim)),
        lambda K: K.support(np.zeros(K.dim)),
        lambda K: K.max_quadratic(np.eye(K.dim)),
        lambda K: Marginals(K.sizes, [range(7)]).embed(np.zeros((100, 40), dtype=int)),
    ],
)
def test_what_would_not_fit_is_refused(call):
    with pytest.raises(DomainTooLargeError, match="hint"):
        call(HUGE)


def test_huge_domains_can_still_be_described():
    assert HUGE.cardinality == 10**40
    assert HUGE.embed([[9] * 40]).sum() == 2
    assert HUGE.contains(HUGE.embed([[3] * 40])[0])


def test_repr_names_the_tables():
    assert repr(Marginals((3, 2), [(0, 1)])) == "Marginals(1 tables, 6 cells, sizes=(3, 2): (0, 1))"
