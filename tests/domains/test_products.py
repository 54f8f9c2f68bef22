"""Products of bases, against plain loops (``cases.query_answers``), marginals, and Kronecker
products of matrices.
"""

import itertools
import json
import math

import numpy as np
import pytest
from cases import one_test_of, query_answers
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import (
    AbstractBase,
    Base,
    Bins,
    DimensionError,
    DomainTooLargeError,
    Identity,
    InvalidDomainError,
    Marginals,
    Moments,
    Prefix,
    Products,
    Ranges,
    Total,
    Windows,
)
from domains.description import describe, rebuild


def bases_of(n):
    return [
        Identity(n), Total(n), Prefix(n), Ranges(n), Bins(n, sorted({1, n})), Windows(n,
        (n + 1) // 2),
        Moments(np.arange(n) + 1.0, [0, 2]), Base(np.arange(2.0 * n).reshape(2, n) - n + 0.5),
    ]  # fmt: skip


@st.composite
def products(draw):
    """Draw arguments of a domain, with its subsets as mappings."""
    own = [
        draw(st.sampled_from(bases_of(draw(st.integers(1, 3)))))
        for _ in range(draw(st.integers(1, 3)))
    ]
    terms = {}
    for _ in range(draw(st.integers(1, 4))):
        S = draw(st.sets(st.integers(0, len(own) - 1)))
        chosen = {i: draw(st.sampled_from([own[i], *bases_of(own[i].size)])) for i in S}
        terms[frozenset((i, base) for i, base in chosen.items() if type(base) is not Total)] = (
            chosen
        )
    weights = draw(st.lists(st.floats(0.1, 10.0), min_size=len(terms), max_size=len(terms)))
    return own, list(terms.values()), weights


@given(products())
@settings(derandomize=True, max_examples=60, deadline=None)
def test_points_are_the_answers_of_records(arguments):
    own, subsets, weights = arguments
    K = Products(own, subsets, weights=weights)
    expected = query_answers(own, subsets, weights)
    assert (K.cardinality, K.dim) == expected.shape
    np.testing.assert_allclose(K.to_finite_set().points, expected, rtol=1e-14)
    records = list(itertools.product(*map(range, K.sizes)))
    np.testing.assert_array_equal(K.embed(records), K.to_finite_set().points)


@given(products())
@settings(derandomize=True, max_examples=60, deadline=None)
def test_descriptions_come_back(arguments):
    bases, subsets, weights = arguments
    K = Products(bases, subsets, weights=weights)
    tree, arrays = describe(K)
    again = rebuild(json.loads(json.dumps(tree, allow_nan=False)), arrays)
    assert (again.bases, again.terms, again.weights) == (K.bases, K.terms, K.weights)


@pytest.mark.parametrize("weights", [None, [2.0, 0.5, 3.0]])
def test_products_of_identities_are_marginals(weights):
    sizes, subsets = (3, 1, 4), [(0, 2), (1,), ()]
    K, L = (
        Products([Identity(n) for n in sizes], subsets, weights=weights),
        Marginals(sizes, subsets, weights=weights),
    )
    np.testing.assert_array_equal(K.to_finite_set().points, L.to_finite_set().points)
    assert (K.sizes, K.subsets, K.terms, K.weights) == (L.sizes, L.subsets, L.terms, L.weights)
    theta = np.random.default_rng(0).normal(size=K.dim)
    np.testing.assert_array_equal(K.support_point(theta), L.support_point(theta))


def test_points_are_columns_of_kronecker_products():
    bases = [Ranges(3), Windows(4, 2), Base([[1.0, -2.0]])]
    K = Products(bases, [(0, 1, 2), (2, 0)], weights=[1.0, 0.5])
    A, B, C = (base.toarray() for base in bases)
    W = np.vstack([np.kron(A, np.kron(B, C)), 0.5 * np.kron(A, np.kron(np.ones((1, 4)), C))])
    np.testing.assert_array_equal(K.to_finite_set().points, W.T)


def test_answers_to_counts_are_sums_of_points():
    bases = [Ranges(3), Bins(5, [2, (1,)])]
    K = Products(bases, [(0, 1)])
    codes = np.random.default_rng(1).integers(K.sizes, size=(50, 2))
    table = np.zeros(K.sizes, dtype=int)
    np.add.at(table, tuple(codes.T), 1)
    answers = bases[1].answer(bases[0].answer(table, axis=0), axis=1)
    assert answers.dtype == np.int64
    np.testing.assert_array_equal(K.embed(codes).sum(axis=0), answers.ravel())


def test_subsets_are_sorted_and_without_repeats_and_totals():
    own = [Prefix(2), Total(3), Identity(1)]
    K = Products(
        own,
        [(2, 0, 2), (1,), {np.int64(1): Ranges(3), 0: Total(2)}, np.array([0]), (i for i in [2])],
    )
    assert K.terms == (
        ((0, own[0]), (2, own[2])),
        (),
        ((1, Ranges(3)),),
        ((0, own[0]),),
        ((2, own[2]),),
    )
    assert all(type(i) is int for term in K.terms for i, _ in term)
    assert K.subsets == ((0, 2), (), (1,), (0,), (2,))
    assert [K.queries(term) for term in K.terms] == [2, 1, 6, 2, 1]
    assert K.dim == 12
    assert K.weights == (1.0,) * 5


@pytest.mark.parametrize("subsets", [[()], [(0,)]])
def test_the_total_alone_is_one_point(subsets):
    K = Products([Total(4)], subsets)
    assert (K.dim, K.cardinality, K.terms) == (1, 4, ((),))
    assert K.to_finite_set().points.tolist() == [[1.0]] * 4
    assert K.contains([1.0])
    assert not K.contains([0.0])


class Unhashable(AbstractBase):
    size = 2
    queries = 2
    __hash__ = None

    def toarray(self):
        return np.eye(2)


@one_test_of(
    ("bases", "subsets", "weights", "message"),
    [
        ([], [()], None, "a base for every attribute"),
        (3, [()], None, "a base for every attribute"),
        ([3], [(0,)], None, "a base for every attribute"),
        ([Prefix], [(0,)], None, "a base for every attribute"),
        (Prefix(3), [(0,)], None, "a base for every attribute"),
        ([Unhashable()], [(0,)], None, "hashable"),
        ([Prefix(2)], [], None, "at least one subset"),
        ([Prefix(2)], 0, None, "at least one subset"),
        ([Prefix(2)], [0], None, "subsets like .* got int"),
        ([Prefix(2)], [(1,)], None, "indices in 0..0"),
        ([Prefix(2)], [(-1,)], None, "indices in 0..0"),
        ([Prefix(2)], [(0.0,)], None, "indices in 0..0"),
        ([Prefix(2)], [(False,)], None, "indices in 0..0"),
        ([Prefix(2)], ["0"], None, "indices in 0..0"),
        ([Prefix(2)], [{1: Prefix(2)}], None, "indices in 0..0"),
        ([Prefix(2)], [{0: Prefix(3)}], None, "a base of 2 categories for attribute 0"),
        ([Prefix(2)], [{0: 2}], None, "a base of 2 categories for attribute 0"),
        ([Prefix(2)], [(0,), (0, 0)], None, "one twice"),
        ([Prefix(2)], [(0,), {0: Prefix(2)}], None, "one twice"),
        ([Prefix(2)], [(), {0: Total(2)}], None, "one twice"),
        ([Prefix(2), Prefix(2)], [(0, 1), (1, 0)], None, "one twice"),
        ([Prefix(2)], [(0,)], [], "1 positive finite weights"),
        ([Prefix(2)], [(0,)], [1.0, 2.0], "1 positive finite weights"),
        ([Prefix(2)], [(0,)], [0.0], "1 positive finite weights"),
        ([Prefix(2)], [(0,)], [-1.0], "1 positive finite weights"),
        ([Prefix(2)], [(0,)], [np.nan], "1 positive finite weights"),
        ([Prefix(2)], [(0,)], [np.inf], "1 positive finite weights"),
        ([Prefix(2)], [(0,)], ["x"], "1 positive finite weights"),
        ([Prefix(2)], [(0,)], 1.0, "1 positive finite weights"),
        ([Prefix(2)], [(0,), ()], [1.0, 1e101], "within a factor 1e100"),
    ],
)
def test_construction_is_validated(bases, subsets, weights, message):
    with pytest.raises(InvalidDomainError, match=message):
        Products(bases, subsets, weights=weights)


def test_no_records_embed_to_no_rows():
    assert Products([Prefix(3)], [(0,)]).embed(np.zeros((0, 1))).shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64])
def test_codes_of_any_integers_embed(dtype):
    K = Products([Windows(5, 2), Prefix(3)], [(0, 1)])
    np.testing.assert_array_equal(
        K.embed(np.array([[0, 2], [4, 1]], dtype=dtype)), K.embed([[0, 2], [4, 1]])
    )


@pytest.mark.parametrize("codes", [[0, 1], [[0]], [[0, 1, 2]], [[[0, 1]]]])
def test_embed_checks_the_shape(codes):
    with pytest.raises(DimensionError, match="codes of shape"):
        Products([Prefix(3), Prefix(2)], [(0,)]).embed(codes)


@pytest.mark.parametrize("code", [77777, -77777, 77777.5, np.nan])
def test_embed_refuses_bad_codes_without_showing_them(code):
    with pytest.raises(InvalidDomainError) as caught:
        Products([Prefix(3), Prefix(2)], [(0,)]).embed([[code, 0]])
    assert "77777" not in str(caught.value)


def test_a_point_with_inconsistent_answers_is_not_a_member():
    K = Products([Prefix(2), Identity(2)], [(0,), (0, 1)])
    x = K.embed([[0, 0]])[0]
    assert K.contains(x)
    assert not K.contains(np.concatenate([x[:2], K.embed([[1, 0]])[0, 2:]]))


def test_oracles_go_through_all_chunks(monkeypatch):
    K = Products([Ranges(4), Prefix(5), Moments([1.0, -2.0, 0.5])], [(0, 1), (1, 2)])
    points = K.to_finite_set()
    monkeypatch.setattr("domains.tables.products._CHUNK_ENTRIES", 7 * K.dim)
    rng = np.random.default_rng(2)
    for theta in rng.normal(size=(20, K.dim)):
        assert K.support(theta) == pytest.approx(points.support(theta), rel=1e-14)
        H, c = np.outer(theta, theta) + np.eye(K.dim), rng.normal(size=K.dim)
        assert K.max_quadratic(H, c).value == pytest.approx(
            points.max_quadratic(H, c).value, rel=1e-12
        )
    assert all(K.contains(x) for x in points.points)


HUGE = Products([Prefix(10)] * 400, [(0, 1), {2: Ranges(10)}])


@pytest.mark.parametrize(
    "call",
    [
        lambda K: K.to_finite_set(),
        lambda K: K.support_point(np.zeros(K.dim)),
        lambda K: K.max_quadratic(np.eye(K.dim)),
        lambda K: K.contains(np.zeros(K.dim)),
        lambda K: Products(K.bases, [range(7)]).embed(np.zeros((100, 400), dtype=int)),
        lambda K: Products(K.bases, [range(400)]).embed(np.zeros((1, 400), dtype=int)),
    ],
)
def test_what_would_not_fit_is_refused(call):
    with pytest.raises(DomainTooLargeError, match="hint"):
        call(HUGE)


def test_huge_domains_can_still_be_described():
    assert HUGE.cardinality == 10**400
    assert HUGE.embed([[9] * 400]).sum() == 1 + 10
    wide = Products([Ranges(10**9), Prefix(10**9)], [(0, 1), ()])
    assert wide.dim == math.comb(10**9 + 1, 2) * 10**9 + 1
    assert repr(wide).startswith("Products(2 tables, ")
    assert rebuild(*describe(wide)).terms == wide.terms


def test_more_attributes_than_axes():
    K = Products([Prefix(1)] * 70 + [Ranges(3)], [(70,), (0,)])
    assert K.support([0, 0, 0, 0, 0, 1, 2]) == 3


def test_embedding_wide_ranges_needs_no_matrix():
    K = Products([Ranges(1000)], [(0,)])
    assert K.embed([[999], [499]]).sum(axis=1).tolist() == [1000, 500 * 501]


def test_repr():
    assert (
        repr(Products([Prefix(3), Identity(2)], [(0, 1)]))
        == "Products(1 tables, 6 queries, sizes=(3, 2))"
    )


def node(name, **fields):
    return {"type": name, "fields": fields}


def described(**changes):
    fields = {
        "bases": [node("Prefix", size=2), node("Base", matrix={"array": "W"})],
        "subsets": [[0, 1]],
    }
    return node("Products", **fields | {"weights": [1.0]} | changes)


ARRAYS = {"W": np.array([[1.0, -1.0]]), "v": np.array([1.0, 2.0]), "nan": np.array([[np.nan, 1.0]])}


def test_the_forgeries_below_start_from_something_valid():
    K = rebuild(described(), ARRAYS)
    assert K.terms == (((0, Prefix(2)), (1, Base([[1, -1]]))),)
    K = rebuild(
        described(subsets=[[[0, node("Moments", values={"array": "v"}, degrees=[2])], 1]]), ARRAYS
    )
    assert K.terms == (((0, Moments([1.0, 2.0], [2])), (1, Base([[1, -1]]))),)


@one_test_of(
    "tree",
    [
        node("Prefix", size=2), node("Base", matrix={"array": "W"}), described(bases=[]),
        described(bases=3),
        described(bases=node("Prefix", size=2)), described(bases=[3, 3]),
        described(bases={"array": "v"}),
        described(bases=[node("LpBall", dim=2, q=2.0, radius=1.0)] * 2),
        described(bases=[described()] * 2),
        described(bases=[[node("Prefix", size=2)]]), described(bases=[node("AbstractBase",
        size=2)] * 2),
        described(subsets=[]), described(subsets=3), described(subsets=[0]),
        described(subsets=[[2]]),
        described(subsets=[[-1]]), described(subsets=[[0.5]]), described(subsets=[[[0]]]),
        described(subsets=[[[0, 1]]]),
        described(subsets=[[[0, node("Prefix", size=3)]]]), described(subsets=[[[2, node("Prefix",
        size=2)]]]),
        described(subsets=[[[node("Prefix", size=2), 0]]]), described(subsets=[[node("Prefix",
        size=2)]]),
        described(subsets={"array": "v"}), described(subsets=[[0], [0]], weights=[1.0, 1.0]),
        described(weights=[]), described(weights=[-1.0]), described(weights=[node("Prefix",
        size=2)]),
        described(bases=[node("Prefix", size=0), node("Prefix", size=2)]),
        described(bases=[node("Prefix", size=2.0), node("Prefix", size=2)]),
        described(bases=[node("Prefix", size=2, more=1), node("Prefix", size=2)]),
        described(bases=[node("Prefix", size=node("Prefix", size=2)), node("Prefix", size=2)]),
        described(bases=[node("Windows", size=2), node("Prefix", size=2)]),
        described(bases=[node("Bins", size=2, widths=[3]), node("Prefix", size=2)]),
        described(bases=[node("Bins", size=2, widths={"array": "v"}), node("Prefix", size=2)]),
        described(bases=[node("Moments", values={"array": "W"}, degrees=[1]), node("Prefix",
        size=2)]),
        described(bases=[node("Moments", values={"array": "v"}, degrees=[10**6]), node("Prefix",
        size=2)]),
        described(bases=[node("Base", matrix={"array": "nan"}), node("Prefix", size=2)]),
        described(bases=[node("Base", matrix={"array": "v"}), node("Prefix", size=2)]),
        described(bases=[node("Base", matrix={"array": "missing"}), node("Prefix", size=2)]),
        node("FiniteSet", points=node("Prefix", size=2)), node("Product", parts=[node("Prefix",
        size=2)]),
        node("Scaled", body=node("Prefix", size=2), factor=1.0), node("DifferenceBody",
        body=node("Prefix", size=2)),
        node("LpBall", dim=node("Prefix", size=2), q=2.0, radius=1.0),
        node("Marginals", sizes=[2], subsets=[[node("Prefix", size=2)]], weights=[1.0]),
    ],
    ids=lambda tree: str(tree)[:80],
)  # fmt: skip
def test_forged_descriptions_are_refused(tree):
    with pytest.raises(InvalidDomainError):
        rebuild(tree, ARRAYS)


def test_bases_of_other_peoples_are_not_described():
    class Prefix(AbstractBase):  # a class of the same name as ours
        size = 2
        queries = 2

        def toarray(self):
            return np.eye(2)

    with pytest.raises(InvalidDomainError, match="a class that files have a name for, got Prefix"):
        describe(Products([Prefix()], [(0,)]))
