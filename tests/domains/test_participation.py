"""Participation: patterns against all sets of ticks, bounds against vectors, signs and subsets."""

import itertools

import cvxpy
import numpy as np
import pytest

from domains import InvalidDomainError
from domains.participation.maxcut import largest_forms
from domains.participation.participations import CountParticipations, VectorParticipations
from domains.participation.patterns import AnyOf, Apart, Epochs, Window
from domains.participation.sensitivity import form_bound, vector_bound

PATTERNS = [
    Apart(7, 3, 2),
    Apart(7, 2, 3),
    Apart(6, 4, 3),
    Apart(4, 4, 1),
    AnyOf(5, 3),
    Epochs(7, 3),
    Epochs(8, 2, b=2),
    Epochs(6, 6),
    Window(6, 3),
    Window(3, 3),
]


def occupied(who):
    """Return every set of ticks that one person may occupy, by the definition of the pattern."""
    allowed = {
        Apart: lambda t: len(t) <= who.k and all(b - a >= who.b for a, b in itertools.pairwise(t)),
        Epochs: lambda t: (
            all((i - t[0]) % who.b == 0 for i in t) and (t[-1] - t[0]) // who.b < who.k
        ),
        Window: lambda t: t[-1] - t[0] < who.k,
    }[type(who)]
    every = (t for m in range(1, who.n + 1) for t in itertools.combinations(range(who.n), m))
    return [t for t in every if allowed(t)]


def gram(n, rng, rank=None):
    B = rng.normal(size=(n, rank or n))
    return B @ B.T


@pytest.mark.parametrize("who", PATTERNS, ids=repr)
def test_patterns_are_the_sets_that_their_definition_allows(who):
    every = occupied(who)
    largest = {t for t in every if not any(set(t) < set(other) for other in every)}
    listed = [tuple(i for i in row if i < who.n) for row in who.maximal().tolist()]
    assert len(listed) == len(set(listed)) <= who.count
    assert set(listed) == largest
    assert who.most == max(map(len, every))
    assert who.are_disjoint == (sum(map(len, largest)) == who.n)
    pairs = [
        (i, j)
        for i in range(who.n)
        for j in range(who.n)
        if i != j and tuple(sorted((i, j))) in every
    ]
    np.testing.assert_array_equal(np.argwhere(who.meet()), np.array(pairs).reshape(-1, 2))
    tried = (t for m in range(1, who.n + 1) for t in itertools.combinations(range(who.n), m))
    assert all(who.allows(t) == (t in every) for t in tried)


@pytest.mark.parametrize("who", PATTERNS, ids=repr)
def test_largest_totals_agree_with_all_sets(who):
    values = np.random.default_rng(0).random((6, who.n))
    for most in (None, 1, 2):
        sets = [t for t in occupied(who) if most is None or len(t) <= most]
        expected = [max(row[list(t)].sum() for t in sets) for row in values]
        np.testing.assert_allclose(who.totals(values, most), expected, rtol=1e-14)
    for row, total in zip(values, who.totals(values), strict=True):
        chosen = who.best(row)
        assert who.allows(tuple(chosen.tolist()))
        assert row[chosen].sum() == pytest.approx(total, rel=1e-14)


@pytest.mark.parametrize("who", PATTERNS[:7], ids=repr)
def test_bounds_by_dynamic_programming_are_never_below_all_sets(who, monkeypatch):
    rng = np.random.default_rng(1)
    for few in (True, False):
        monkeypatch.setattr(type(who), "lists_few", few)
        for _ in range(4):
            X = np.abs(gram(who.n, rng))
            largest = max(X[np.ix_(t, t)].sum() for t in occupied(who))
            assert form_bound(who, X) >= largest * (1 - 1e-12)
            separated = np.where(
                who.meet(), 0.0, X
            )  # exact if X is zero between different ticks of one person
            exact = max(separated[np.ix_(t, t)].sum() for t in occupied(who))
            assert form_bound(who, separated) == pytest.approx(exact, rel=1e-9)
            if few:
                assert form_bound(who, X) == pytest.approx(largest, rel=1e-9)


def test_the_largest_form_of_unit_vectors_agrees_with_a_semidefinite_programme():
    rng = np.random.default_rng(2)
    X = np.stack(
        [gram(4, rng, rank) for rank in (1, 2, 3, 4)] + [np.zeros((4, 4)), np.diag([1.0, 0, 2, 0])]
    )
    found = largest_forms(X)
    brackets = zip(X, found.value, found.upper, found.matrices, found.multipliers, strict=True)
    for form, value, upper, Z, y in brackets:
        Y = cvxpy.Variable((4, 4), PSD=True)
        problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(form @ Y)), [cvxpy.diag(Y) == 1])
        problem.solve(solver="CLARABEL")
        assert value == pytest.approx(problem.value, rel=1e-7, abs=1e-7)
        assert value <= upper <= value * (1 + 1e-7) + 1e-30
        np.testing.assert_array_equal(np.diag(Z), 1.0)
        assert np.linalg.eigvalsh(Z)[0] > -1e-12
        assert np.linalg.eigvalsh(np.diag(y) - form)[0] >= -1e-12
        assert y.sum() <= upper * (1 + 1e-9)


def test_the_bound_for_vectors_is_attained_by_vectors_and_by_no_shorter_ones():
    rng = np.random.default_rng(3)
    who = Apart(6, 3, 2)
    X = gram(6, rng)
    upper = vector_bound(who, X)
    best = 0.0
    for t in occupied(who):
        form = X[np.ix_(t, t)]
        for dim in (1, len(t)):  # vectors of lower dimension cannot do more
            U = rng.normal(size=(40, len(t), dim))
            for _ in range(200):  # each vector in turn along the gradient from the others
                U = form @ U
                U /= np.linalg.norm(U, axis=2, keepdims=True)
            values = np.einsum("aid,ij,ajd->a", U, form, U)
            assert values.max() <= upper * (1 + 1e-12)
            best = max(best, values.max())
    assert best == pytest.approx(upper, rel=1e-6)


def test_a_nonnegative_form_is_largest_at_full_patterns():
    rng = np.random.default_rng(4)
    A = np.tril(rng.random((6, 6))) + np.eye(6)
    who = Apart(6, 3, 2, kind="counts")
    X = A.T @ A
    full = max(X[np.ix_(t, t)].sum() for t in occupied(who))
    for kind in (CountParticipations, VectorParticipations):
        assert kind(A, who).max_quadratic(np.eye(6)).upper_bound == pytest.approx(full, rel=1e-9)
    # negative entries break this: the smaller subset gives more
    B = np.eye(2) + np.array([[0.0, 0.0], [-0.9, 0.0]])
    counts = CountParticipations(B, Epochs(2, 2, kind="counts"))
    form = np.eye(2)
    assert counts.max_quadratic(form).upper_bound == pytest.approx(1.81)
    assert (B.T @ form @ B).sum() == pytest.approx(1.01)


@pytest.mark.parametrize(
    "who", [AnyOf(16, 6, kind="counts"), Apart(60, 5, 4, kind="counts")], ids=repr
)
def test_counts_of_too_many_subsets_to_list_are_bracketed(who):
    rng = np.random.default_rng(5)
    A = np.tril(rng.normal(size=(who.n, who.n))) + np.eye(who.n)
    K = CountParticipations(A, who)
    assert K._listed() is None
    H = gram(who.n, rng)
    for center in (None, rng.normal(size=who.n)):
        found = K.max_quadratic(H, center)
        x = found.maximizer - (0 if center is None else center)
        assert x @ H @ x == pytest.approx(found.value, rel=1e-9)
        members = [K.support_point(theta) for theta in rng.normal(size=(20, who.n))]
        moved = np.array(members) - (0 if center is None else center)
        assert np.einsum("ij,jk,ik->i", moved, H, moved).max() <= found.upper_bound


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Epochs(3, 4), "k <= n"),
        (lambda: Apart(3, 2, 0), "b an integer"),
        (lambda: AnyOf(3, 0), "^AnyOf: expected k an integer >= 1"),
        (lambda: AnyOf(3, 2, kind="gradients"), "^AnyOf: expected kind="),
        (lambda: Window(3, 2, kind="gradients"), 'kind="counts" or kind="vectors"'),
        (lambda: VectorParticipations(np.ones((3, 3)), Epochs(3, 2)), "lower-triangular"),
        (
            lambda: VectorParticipations(np.tril(np.ones((3, 3)), -1), Epochs(3, 2)),
            "no zero on the diagonal",
        ),
        (lambda: VectorParticipations(np.eye(3), Epochs(4, 2)), "patterns over 3 ticks, got 4"),
        (lambda: CountParticipations(np.eye(3), None), "got NoneType"),
        (lambda: CountParticipations(np.full((2, 2), np.nan), Epochs(2, 1)), "finite"),
    ],
)
def test_arguments_are_checked(make, message):
    with pytest.raises(InvalidDomainError, match=message):
        make()
