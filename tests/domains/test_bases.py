"""Bases of one attribute, against the queries of ``cases.QUERIES`` in plain loops."""

import pickle
from dataclasses import dataclass

import cases
import numpy as np
import pytest
from cases import one_test_of
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import (
    AbstractBase,
    Arcs,
    Base,
    Bins,
    Clipped,
    DimensionError,
    DomainTooLargeError,
    Groups,
    Identity,
    InvalidDomainError,
    Leading,
    Moments,
    Prefix,
    Products,
    Ranges,
    Total,
    Windows,
)

COUNTS = (Identity, Total, Prefix, Ranges, Bins, Windows, Groups, Arcs)
QUERIES = cases.QUERIES | {
    Arcs: lambda base: [
        lambda x, i=i, more=more: (x - i) % base.size <= more
        for more in range(base.size)
        for i in range(base.size if more < base.size - 1 else 1)
    ]
}


@dataclass(frozen=True)
class Users(AbstractBase):
    """A user's own base, with only what a base must supply."""

    size: int

    @property
    def queries(self):
        return 2

    def toarray(self):
        return np.vstack([np.ones(self.size), np.arange(self.size)])


BASES = [
    *(base(n) for base in (Identity, Total, Prefix, Ranges, Arcs) for n in (1, 2, 7)),
    Bins(1, [1]), Bins(7, [3]), Bins(7, [7, 1, 2]), Bins(7, [(3,), 4, (1, 2, 6)]),
    Windows(1, 1), Windows(7, 1), Windows(7, 3), Windows(7, 5), Windows(7, 7),
    Groups(1, [[0]]), Groups(5, [(4, 0), [2], (0, 1, 2, 3, 4)]),
    Moments([2.5]), Moments([-1.0, 0.0, 0.5, 3.0], [0, 3, 1]),
    Leading(Prefix(1), 2), Leading(Ranges(3), 5), Leading(Moments([1.5, 2.0], [0, 2]), 3),
    Clipped(0, 80), Clipped(-1, 3, degrees=[1, 0], size=3, unit=3.0),
    Clipped(-1.5, 2, degrees=[0, 1, 2], size=4, squares=True),
    Clipped(1, 2, degrees=[2], squares=True),
    Base([[2.0]]), Base([[1, -1, 0], [0, 1, -1]]), Base(np.random.default_rng(0).normal(size=(5,
    3))),
]  # fmt: skip
every_base = one_test_of("base", BASES, ids=repr)


def matrix(base):
    queries = QUERIES[type(base)](base)
    return np.array([[query(x) for x in range(base.size)] for query in queries], dtype=float)


@every_base
def test_toarray_is_what_the_queries_say(base):
    np.testing.assert_array_equal(base.toarray(), matrix(base))
    assert base.toarray().dtype == np.float64
    assert base.queries == len(matrix(base))


@every_base
def test_gram_is_the_product(base):
    np.testing.assert_allclose(base.gram(), matrix(base).T @ matrix(base), rtol=1e-14, atol=1e-14)


@every_base
def test_only_the_identity_says_it_is(base):
    assert base.is_identity == (type(base) is Identity)


def shaped(data, size):
    ndim = data.draw(st.integers(1, 3))
    axis = data.draw(st.integers(-ndim, ndim - 1))
    shape = data.draw(st.lists(st.integers(0, 3), min_size=ndim, max_size=ndim))
    shape[axis] = size
    return tuple(shape), axis


@given(st.data())
@settings(derandomize=True, max_examples=150, deadline=None)
def test_answers_are_products_along_an_axis(data):
    base = data.draw(st.sampled_from([*BASES, Users(4)]))
    shape, axis = shaped(data, base.size)
    values = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=shape)
    W = base.toarray()
    expected = np.apply_along_axis(lambda x: W @ x, axis, values) if values.size else None
    answers = base.answer(values, axis)
    assert answers.shape == tuple(
        base.queries if k == axis % len(shape) else n for k, n in enumerate(shape)
    )
    if expected is not None:
        np.testing.assert_allclose(answers, expected, rtol=1e-12, atol=1e-12)


@given(st.data())
@settings(derandomize=True, max_examples=150, deadline=None)
def test_counts_are_exact_integers(data):
    base = data.draw(
        st.sampled_from([base for base in BASES if type(getattr(base, "base", base)) in COUNTS])
    )
    dtype = data.draw(st.sampled_from([np.int64, np.int32, np.uint8, np.uint64, bool, object]))
    shape, axis = shaped(data, base.size)
    most = {
        np.int64: 2**59,
        np.int32: 2**31 - 1,
        np.uint8: 255,
        np.uint64: 2**60,
        bool: 1,
        object: 2**90,
    }[dtype]
    size = int(np.prod(shape))
    drawn = [data.draw(st.integers(0, most)) for _ in range(size)]
    values = np.array(drawn, dtype=dtype).reshape(shape)
    numbers = np.array([int(x) for x in values.ravel()] + [None], dtype=object)[:-1].reshape(shape)
    answers = base.answer(values, axis)
    assert (
        answers.dtype == object
        if dtype is object
        else answers.dtype.kind in ("b" if base.is_identity else "") + "iu"
    )
    W = [[int(x) for x in row] for row in matrix(base)]
    lines = np.moveaxis(numbers, axis, -1).reshape(-1, base.size)
    found = np.moveaxis(answers, axis, -1).reshape(-1, base.queries)
    assert [[int(x) for x in line] for line in found] == [
        [sum(w * x for w, x in zip(row, line, strict=True)) for row in W] for line in lines
    ]


def test_exactness_is_not_what_doubles_give():
    counts = np.array([2**53, 1, 0])
    assert Prefix(3).answer(counts).tolist() == [2**53, 2**53 + 1, 2**53 + 1]
    assert (Prefix(3).toarray() @ counts).tolist() != [2**53, 2**53 + 1, 2**53 + 1]


def test_columns_are_those_of_the_matrix():
    for base in [*BASES, Users(4)]:
        codes = np.array([base.size - 1, 0, base.size // 2, 0])
        np.testing.assert_array_equal(base._columns(codes), base.toarray()[:, codes].T)


@every_base
def test_every_query_has_a_label(base):
    assert len(base.labels([f"c{k}" for k in range(base.size)])) == base.queries


@one_test_of(
    ("base", "labels"),
    [
        (Identity(2), ("3", "4")),
        (Total(2), ("all",)),
        (Prefix(2), ("up to 3", "up to 4")),
        (Ranges(3), ("3", "3 to 4", "3 to 5", "4", "4 to 5", "5")),
        (Bins(4, [3, (1, 2)]), ("3 to 5", "6", "3", "4", "5 to 6")),
        (Windows(3, 2), ("3 to 4", "4 to 5", "5 to 3")),
        (Windows(3, 1), ("3", "4", "5")),
        (Arcs(2), ("3", "4", "3 to 4")),
        (Groups(3, [(2, 0), [1], [0, 1, 2]]), ("3 + 5", "4", "3 + 4 + 5")),
        (Moments([1.0, 2.0], [2, 0]), ("sum of power 2", "count")),
        (Leading(Ranges(2), 3), ("3", "3 to 4", "4")),
        (Base([[1, 2], [3, 4]]), ("query 1", "query 2")),
        (Users(3), ("query 1", "query 2")),
    ],
)
def test_labels(base, labels):
    assert base.labels(range(3, 3 + base.size)) == labels


def test_ends_of_ranges():
    first, last = Ranges(3).ends()
    assert first.tolist() == [0, 0, 0, 1, 1, 2]
    assert last.tolist() == [0, 1, 2, 1, 2, 2]
    assert [end.tolist() for end in Windows(3, 2).ends()] == [[0, 1, 2], [1, 2, 0]]


@pytest.mark.parametrize(
    "base", [Identity(5), Prefix(5), Bins(5, [2]), Moments([1.0, 2.0, 3.0, 4.0, 5.0]), Users(5)]
)
def test_shapes_are_checked(base):
    for values, axis in (
        (np.ones(4), 0),
        (np.ones((5, 4)), 1),
        (np.ones(5), 1),
        (np.ones(5), -2),
        (3.0, 0),
    ):
        with pytest.raises(DimensionError, match="answer: expected 5 entries along axis"):
            base.answer(values, axis)
    with pytest.raises(DimensionError, match="labels: expected 5 names of categories, got 4"):
        base.labels("abcd")


def test_equality_and_hash_go_by_class_and_arguments():
    for k, base in enumerate(BASES):
        again = pickle.loads(pickle.dumps(base))
        assert again == base
        assert hash(again) == hash(base)
        assert [other == base for other in BASES] == [j == k for j in range(len(BASES))]
    assert Base([[0.0, 1.0]]) == Base([[-0.0, 1.0]])
    assert hash(Base([[0.0, 1.0]])) == hash(Base([[-0.0, 1.0]]))
    assert Base([[1.0, 2.0]]) != Base([[1.0], [2.0]])


def test_numbers_of_numpy_are_numbers():
    assert Prefix(np.int64(3)) == Prefix(3)
    assert Bins(np.int32(9), np.array([2, 3])) == Bins(9, [2, 3])
    assert Windows(np.int64(9), np.int64(2)) == Windows(9, 2)
    assert Moments(np.array([1, 2]), np.array([1])) == Moments([1.0, 2.0])
    assert all(type(x) is int for x in (Prefix(np.int64(3)).size, Windows(9, np.int64(2)).width))


def test_matrices_are_private():
    W = np.array([[1.0, 2.0]])
    base = Base(W)
    W[:] = 9
    assert base.toarray().tolist() == [[1, 2]]
    with pytest.raises(ValueError, match="read-only"):
        base.toarray()[:] = 9
    for other in (Identity(2), Prefix(2), Moments([1.0, 2.0])):
        before = other.toarray().copy()
        other.toarray()[:] = 9
        other.gram()[:] = 9
        np.testing.assert_array_equal(other.toarray(), before)


def test_answers_of_large_bases_need_no_matrix():
    n = 1_000_000
    counts = np.arange(n)
    assert Prefix(n).answer(counts)[-1] == n * (n - 1) // 2
    assert Bins(n, [10, (18, 65)]).answer(counts)[-1] == n * (n - 1) // 2 - 64 * 65 // 2
    assert Windows(n, 7).answer(counts)[-1] == n - 1 + 15
    grams = Ranges(1000).gram()
    assert (grams[0, 0], grams[3, 5], grams[999, 0]) == (1000, 4 * 995, 1)
    assert Windows(1000, 10).gram()[0, 995] == 5
    assert Bins(1000, range(1, 51)).gram()[0, 1] == 49


HUGE = [
    Identity(10**12), Total(10**12), Prefix(10**12), Ranges(10**12), Bins(10**12, [7, 10**11, (5,
    10**11)]),
    Windows(10**12, 10**11), Arcs(10**12),
]  # fmt: skip


@pytest.mark.parametrize("base", [*HUGE, Ranges(1000)], ids=repr)
def test_huge_bases_are_described_and_their_matrices_refused(base):
    assert base.queries >= 1
    with pytest.raises(DomainTooLargeError, match="GB"):
        base.toarray()
    if base.size > 1000:
        with pytest.raises(DomainTooLargeError, match="GB"):
            base.gram()


def test_huge_runs_are_refused():
    with pytest.raises(DomainTooLargeError, match="500000000000500000000000 queries, more than"):
        Ranges(10**12).ends()
    with pytest.raises(DomainTooLargeError, match="queries, more than"):
        Ranges(20_000).answer(np.ones(20_000))
    with pytest.raises(DomainTooLargeError, match="GB"):
        Users(20_000).gram()


@one_test_of(
    "cls", [Identity, Total, Prefix, Ranges, Arcs, lambda n: Bins(n, [1]), lambda n: Windows(n, 1)]
)
@one_test_of("size", [0, -1, 2.0, 2.5, True, None, "3", [3], np.nan])
def test_sizes_are_validated(cls, size):
    with pytest.raises(InvalidDomainError, match="categor"):
        cls(size)


@one_test_of(
    ("make", "message"),
    [
        (lambda: Bins(5, []), "distinct levels"),
        (lambda: Bins(5, 2), "distinct levels"),
        (lambda: Bins(5, [2, 2]), "distinct levels"),
        (lambda: Bins(5, [(2,), [2]]), "distinct levels"),
        (lambda: Bins(5, [0]), "1 <= width <= 5"),
        (lambda: Bins(5, [6]), "1 <= width <= 5"),
        (lambda: Bins(5, [2.0]), "integers"),
        (lambda: Bins(5, [True]), "integers"),
        (lambda: Bins(5, ["2"]), "integers"),
        (lambda: Bins(5, [()]), "increasing cuts in 1..4"),
        (lambda: Bins(5, [(0, 2)]), "increasing cuts"),
        (lambda: Bins(5, [(2, 5)]), "increasing cuts"),
        (lambda: Bins(5, [(3, 2)]), "increasing cuts"),
        (lambda: Bins(5, [(2, 2)]), "increasing cuts"),
        (lambda: Bins(5, [(2.5,)]), "integers"),
        (lambda: Windows(5, 0), "1 <= width <= 5"),
        (lambda: Windows(5, 6), "1 <= width <= 5"),
        (lambda: Windows(5, 2.0), "integers"),
        (lambda: Moments(["x"]), "real"),
        (lambda: Moments([1.0, np.nan]), "finite"),
        (lambda: Moments([1.0, 2.0], []), "distinct degrees"),
        (lambda: Moments([1.0, 2.0], [1, 1]), "distinct degrees"),
        (lambda: Moments([1.0, 2.0], [-1]), "distinct degrees"),
        (lambda: Moments([1.0, 2.0], [0.5]), "integers"),
        (lambda: Moments([0.0, 0.0]), "1e-100 and 1e100"),
        (lambda: Moments([1e60], [2]), "1e-100 and 1e100"),
        (lambda: Moments([1e60], [20]), "at most 1e100"),
        (lambda: Bins(9, {5, 2}), "Bins: expected a list, which has an order, got a set"),
        (lambda: Bins(9, [{5, 2}]), "Bins: expected a list"),
        (lambda: Moments({1.0, 2.0}), "Moments: expected a list"),
        (lambda: Moments([1.0, 2.0], {1, 2}), "Moments: expected a list"),
        (lambda: Leading(Prefix(3), 3), "more categories than the 3 of its base, got 3; hint: "
        "the base itself"),
        (lambda: Leading(Prefix(3), 2.5), "integers"),
        (lambda: Leading([[1.0]], 2), "Leading: expected a base, like Prefix.5., got list"),
        (lambda: Base([[1.0, np.inf]]), "finite"),
        (lambda: Groups(3, []), "groups of categories"),
        (lambda: Groups(3, [[]]), "groups of categories"),
        (lambda: Groups(3, [[0, 3]]), "0..2"),
        (lambda: Groups(3, [[-1]]), "0..2"),
        (lambda: Groups(3, [[1, 1]]), "distinct categories"),
        (lambda: Groups(3, [[0.5]]), "integers"),
        (lambda: Groups(3, {(0, 1)}), "got a set"),
        (lambda: Base([["x"]]), "real"),
        (lambda: Base([[1.0], [1.0, 2.0]]), "real"),
        (lambda: Base([[1j]]), "real"),
        (lambda: Base([[0.0, 0.0]]), "1e-100 and 1e100"),
        (lambda: Base([[1e101]]), "1e-100 and 1e100"),
    ],
)  # fmt: skip
def test_construction_is_validated(make, message):
    with pytest.raises(InvalidDomainError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Base([1.0]),
        lambda: Base([[]]),
        lambda: Moments([]),
        lambda: Moments(3.0),
        lambda: Moments([[1]]),
    ],
)
def test_shapes_of_arguments_are_validated(make):
    with pytest.raises(DimensionError, match="got shape"):
        make()


def test_a_base_of_ones_own_needs_three_things():
    K = Products([Users(3), Prefix(2)], [(0, 1)])
    np.testing.assert_array_equal(K.embed([[2, 0]]), [[1, 1, 2, 2]])
    np.testing.assert_array_equal(Users(3).gram(), [[1, 1, 1], [1, 2, 3], [1, 3, 5]])
    assert Users(3) == Users(3)
