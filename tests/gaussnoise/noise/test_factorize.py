"""factorize(): published values, exact structure against the general route, and proofs recomputed
from stored numbers.
"""

import dataclasses
import itertools
import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from cases import one_test_of
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.linalg import circulant, hadamard

import gaussnoise.noise.factorize as factorize_module
import gaussnoise.noise.structure as structure
from gaussnoise import factorize
from gaussnoise.errors import ConvergenceWarning, DomainTooLargeError, ParameterError
from gaussnoise.results import Witness

ROUNDING = 1e-11
ERRORS = ["mean", 3, "max"]


def exponent(error):
    return {"mean": 2, "max": math.inf}.get(error, error)


def check(f, A, expected=None, tol=1e-6):
    """Recompute all guarantees of a Factorization from the numbers it stores."""
    A = np.array(A, dtype=float)
    p, size, k = f.p, np.abs(A).max() or 1.0, f.left.shape[1]
    assert f.shape == A.shape
    assert f.left.shape == (len(A), k)
    assert f.right.shape == (k, A.shape[1])
    assert 0 <= f.lower <= f.value == float(f)
    assert 0 <= f.gap <= tol
    # A = left @ right
    residual = np.abs(A / size - (f.left / size) @ f.right).max()
    assert residual <= f.residual + 1e-14 * k
    assert f.residual <= 1e-11
    # right has unit sensitivity, left has the error claimed
    if f.right.size <= 400:
        assert all(sum(Fraction(x) ** 2 for x in column) <= 1 for column in f.right.T.tolist())
    assert (np.square(f.right.astype(np.longdouble)).sum(axis=0) <= 1).all()
    lengths = np.sqrt(np.square((f.left / size).astype(np.longdouble)).sum(axis=1)).astype(float)
    assert (
        size * np.linalg.norm(lengths, p) * np.linalg.norm(f.right, axis=0).max(initial=0.0)
        <= f.value
    )
    # the witness is a dual point, and proves the lower end
    w, cells = f.witness.query_weights, f.witness.cell_weights
    assert w.shape == (len(A),)
    assert cells.shape == (A.shape[1],)
    assert min(w.min(), cells.min()) >= 0
    assert cells.sum() == pytest.approx(1, rel=1e-12)
    if p == 2:
        assert (w == 1).all()
    else:
        assert np.linalg.norm(w, p / (p - 2) if p < math.inf else 1) <= 1 + 1e-12
    proved = (
        size
        * np.linalg.svd(np.sqrt(w)[:, None] * (A / size) * np.sqrt(cells), compute_uv=False).sum()
    )
    assert f.lower <= proved * (1 + ROUNDING)
    assert f.witness.lower_bound(A) >= f.lower * (1 - ROUNDING)
    if expected is not None:
        assert f.lower <= expected * (1 + ROUNDING)
        assert f.value >= expected * (1 - ROUNDING)
    return f


def agree(a, b):
    """Check that two certified brackets may hold the same number."""
    assert a.lower <= b.value * (1 + ROUNDING)
    assert b.lower <= a.value * (1 + ROUNDING)


def by_sdp(A, p):
    """Return ``min ‖diag M‖_{p/2}^{1/2}`` over [[M, A], [A', Y]] >= 0, diag Y <= 1, by cvxpy."""
    M, Y = (
        cp.Variable((len(A), len(A)), symmetric=True),
        cp.Variable((A.shape[1],) * 2, symmetric=True),
    )
    variances = cp.diag(M)
    cost = (
        cp.sum(variances)
        if p == 2
        else cp.max(variances)
        if p == math.inf
        else cp.pnorm(variances, p / 2)
    )
    problem = cp.Problem(cp.Minimize(cost), [cp.bmat([[M, A], [A.T, Y]]) >> 0, cp.diag(Y) <= 1])
    return math.sqrt(problem.solve(solver="CLARABEL"))


def prefix(n):
    return np.tril(np.ones((n, n)))


def ranges(n):
    return np.array(
        [[a <= cell < b for cell in range(n)] for a, b in itertools.combinations(range(n + 1), 2)],
        float,
    )


def group_matrix(orders, f, sign=1):
    """Return ``A[g, h] = f(g − sign·h)`` in plain loops."""
    elements = list(itertools.product(*map(range, orders)))
    position = {g: i for i, g in enumerate(elements)}
    return np.array(
        [
            [
                f[position[tuple((a - sign * b) % m for a, b, m in zip(g, h, orders, strict=True))]]
                for h in elements
            ]
            for g in elements
        ]
    )


def characters(orders):
    """Return the character table of the group, one character per row."""
    table = np.ones((1, 1))
    for m in orders:
        table = np.kron(table, np.exp(-2j * np.pi * np.outer(range(m), range(m)) / m))
    return table


def general(monkeypatch):
    """Switch every shortcut off."""
    monkeypatch.setattr(factorize_module, "pieces", lambda A: [structure.Piece(A)])
    monkeypatch.setattr(factorize_module, "_CLOSED", -1.0)


# Published values


@pytest.mark.parametrize(
    ("n", "mean", "largest"),
    [
        (16, 2.854084800749, 2.90525290259),
        (32, 3.579990713283, 3.63072336382),
        (64, 4.409397203944, 4.45786915121),
        (128, 5.340726756042, 5.38608653877),
    ],
)
def test_prefix_sums(n, mean, largest):
    check(factorize(prefix(n), "mean"), prefix(n), math.sqrt(n * mean))
    check(factorize(prefix(n), "max"), prefix(n), math.sqrt(largest))


@pytest.mark.parametrize("n", [2, 3, 10, 50])
def test_prefix_sums_are_between_the_bounds_of_mathias(n):
    """Mathias (1993), SIAM J. Matrix Anal. Appl. 14: the skew-circulant of signs is within (J ±
    ·)/2 of prefix sums.
    """
    skew = np.abs(1 / np.sin((2 * np.arange(1, n + 1) - 1) * np.pi / (2 * n))).sum() / n
    f = factorize(prefix(n), "max")
    assert f.value >= (0.5 + 0.5 / n) * skew * (1 - ROUNDING)
    assert f.lower <= 0.5 + 0.5 * skew
    signs = 2 * prefix(n) - 1
    check(factorize(signs, "max"), signs, skew, tol=1e-10)


def test_two_prefix_sums_in_closed_form():
    check(factorize(prefix(2), "mean"), prefix(2), (1 + math.sqrt(5)) / 2)
    check(factorize(prefix(2), "max"), prefix(2), 2 / math.sqrt(3))


def test_all_ranges():
    check(factorize(ranges(64), "mean"), ranges(64), math.sqrt(64 * 65 / 2 * 5.3001834151175))


@pytest.mark.parametrize("listed", [True, False])
def test_prefix_times_prefix(listed):
    dense = np.kron(prefix(8), prefix(8))
    given = [prefix(8), prefix(8)] if listed else dense
    mean, largest = factorize(given, "mean"), factorize(given, "max")
    assert "Kronecker product of 2" in mean.method
    # published to 12 digits each
    check(mean, dense, math.sqrt(64 * 4.987504570096))
    check(largest, dense, math.sqrt(5.20551871894))


def test_prefix_times_prefix_by_the_general_route(monkeypatch):
    general(monkeypatch)
    dense = np.kron(prefix(8), prefix(8))
    check(factorize(dense, "mean"), dense, math.sqrt(64 * 4.987504570096))
    check(factorize(dense, "max"), dense, math.sqrt(5.20551871894))


# Independent solver and closed forms

RNG = np.random.default_rng(0)
MATRICES = {
    "wide": RNG.normal(size=(3, 7)),
    "tall": RNG.normal(size=(8, 4)),
    "rank 2": RNG.normal(size=(6, 2)) @ RNG.normal(size=(2, 5)),
    "zero row and column": np.pad(RNG.normal(size=(4, 4)), ((0, 1), (1, 0))),
    "integers": RNG.integers(-2, 3, size=(5, 6)).astype(float),
}


@pytest.mark.paper("Theorem 23", by="semidefinite program, by cvxpy")
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("A", MATRICES.values(), ids=MATRICES.keys())
def test_agrees_with_the_semidefinite_programme(A, error):
    f = check(factorize(A, error), A)
    assert f.value == pytest.approx(by_sdp(A, exponent(error)), rel=2e-6)


@pytest.mark.parametrize("error", ERRORS)
def test_rank_one(error):
    u, v = RNG.normal(size=5), RNG.normal(size=7)
    f = check(factorize(np.outer(u, v), error), np.outer(u, v))
    assert f.left.shape == (5, 1)
    # the largest column is as hard as all columns: ‖u‖_p · max |v|
    assert (
        f.lower
        <= np.linalg.norm(u, f.p) * np.abs(v).max() * (1 + ROUNDING)
        <= f.value * (1 + 2 * ROUNDING)
    )


@pytest.mark.parametrize("error", ERRORS)
def test_diagonal(error):
    d = RNG.uniform(1, 9, size=6)
    # one weight per cell: the largest of Σ d_i √(w_i λ_i)
    check(factorize(np.diag(d), error), np.diag(d), np.linalg.norm(d, exponent(error)))
    check(factorize(3 * np.eye(6), error), 3 * np.eye(6), 3 * 6 ** (1 / exponent(error)))


@one_test_of("error", ERRORS)
@one_test_of("n", [2, 12, 20, 64])
def test_hadamard(n, error):
    H = hadamard(n) if n in (2, 64) else paley(n)
    assert (H.T @ H == n * np.eye(n)).all()
    f = check(factorize(H, error), H, n ** (0.5 + 1 / exponent(error)), tol=1e-10)
    assert "uniform" in f.method


def paley(n):
    """Return Paley's Hadamard matrix of order n = prime + 1."""
    q = n - 1
    residues = {x * x % q for x in range(1, q)}
    symbol = np.array([0, *(1 if x in residues else -1 for x in range(1, q))])
    core = symbol[np.subtract.outer(range(q), range(q))]
    return np.block([[np.zeros((1, 1)), np.ones((1, q))], [-np.ones((q, 1)), core]]) + np.eye(n)


# Structure


GROUPS = {
    (2,): "Z_2",
    (7,): "Z_7",
    (12,): "Z_12",
    (2, 2, 2): "Z_2^3",
    (2, 3): "Z_2 x Z_3",
    (3, 2): "Z_3 x Z_2",
    (4, 2): "Z_4 x Z_2",
    (2, 2, 3): "Z_2^2 x Z_3",
    (3, 5): "Z_3 x Z_5",
    (6, 2, 2): "Z_6 x Z_2^2",
}


@one_test_of("error", ERRORS)
@one_test_of(("orders", "name"), GROUPS.items(), ids=GROUPS.values())
@one_test_of("sign", [1, -1])
def test_group_circulants(orders, name, error, sign):
    n = math.prod(orders)
    f = RNG.normal(size=n)
    A = group_matrix(orders, f, sign)
    assert np.linalg.norm(A, "nuc") == pytest.approx(
        np.abs(characters(orders) @ f).sum(), rel=1e-12
    )
    p = exponent(error)
    found = check(
        factorize(A, error), A, n ** (1 / p - 1) * np.abs(characters(orders) @ f).sum(), tol=1e-11
    )
    assert f"group-circulant over {name}:" in found.method


@pytest.mark.parametrize("orders", [(6,), (2, 2, 2), (2, 3), (3, 2)], ids=str)
@pytest.mark.parametrize("error", ERRORS)
def test_group_circulants_by_the_general_route(monkeypatch, orders, error):
    A = group_matrix(orders, RNG.normal(size=math.prod(orders)))
    fast = factorize(A, error)
    general(monkeypatch)
    slow = check(factorize(A, error), A)
    assert "group" not in slow.method
    agree(fast, slow)
    agree_with_noise(fast)


def agree_with_noise(f):
    assert f.noise.p == f.p
    assert f.noise.neighbors == "add-remove"
    assert f.noise.gamma_lower <= f.value * (1 + ROUNDING)
    assert f.lower <= f.noise.gamma * (1 + ROUNDING)


def test_a_rank_deficient_circulant():
    A = circulant([2.0, 1.0, 0.0, 0.0, 0.0, 1.0]) - 2 / 3  # without its zero frequency
    for error in ERRORS:
        check(
            factorize(A, error),
            A,
            6 ** (1 / exponent(error) - 1) * np.linalg.norm(A, "nuc"),
            tol=1e-11,
        )


@pytest.mark.parametrize("orders", [(1024,), (2,) * 10, (16, 64)], ids=str)
def test_large_group_circulants_need_no_factorization(monkeypatch, orders):
    def forbidden(*_, **__):
        raise AssertionError

    for name in ("svd", "eigh", "qr"):
        monkeypatch.setattr(np.linalg, name, forbidden)
    f = RNG.normal(size=1024)
    A = f[structure.table(orders, 1)]
    found = factorize(A, "max")
    assert found.gap < 1e-10
    assert found.value == pytest.approx(
        np.abs(np.fft.fftn(f.reshape(orders))).sum() / 1024, rel=1e-10
    )


def test_structure_must_hold_to_the_last_bit():
    A = circulant(RNG.normal(size=9))
    A[4, 7] = np.nextafter(A[4, 7], 9)
    f = check(factorize(A), A)
    assert "group" not in f.method


@pytest.mark.parametrize(
    "A",
    [
        np.zeros((6, 6)),
        prefix(6),
        np.eye(6)[::-1] + np.eye(6),
        np.ones((6, 6)),
        np.vstack([np.ones((1, 6)), np.eye(6)[1:]]),
        circulant(np.arange(6)) + np.pad([[1]], ((3, 2), (3, 2))),
    ],
)
def test_lookalikes_of_group_circulants(A):
    known = structure._group(A)
    if known:
        n = len(A)
        expected = [[A[g, 0] for g in row] for row in structure.table(known.orders, known.sign)]
        assert (A == np.reshape(expected, (n, n))).all()
    for error in ERRORS:
        check(factorize(A, error), A)


def test_a_nonabelian_group_closes_at_uniform_weights():
    elements = list(itertools.permutations(range(3)))
    values = dict(zip(elements, RNG.normal(size=6), strict=True))

    def difference(g, h):
        return tuple(g[h.index(i)] for i in range(3))

    A = np.array([[values[difference(g, h)] for h in elements] for g in elements])
    for error in ERRORS:
        f = check(
            factorize(A, error),
            A,
            6 ** (1 / exponent(error) - 1) * np.linalg.norm(A, "nuc"),
            tol=1e-10,
        )
        assert "uniform weights" in f.method


def test_uniform_weights_are_not_claimed_when_they_are_not_optimal():
    f = check(factorize(prefix(5)), prefix(5))
    assert "uniform" not in f.method


# Kronecker products


@pytest.mark.parametrize("error", ["mean", "max"])
@pytest.mark.parametrize("shapes", [[(3, 4), (2, 3)], [(2, 5), (4, 2)], [(2, 2), (3, 2), (2, 3)]])
def test_kronecker_products_against_the_dense_matrix(monkeypatch, shapes, error):
    matrices = [RNG.normal(size=shape) for shape in shapes]
    dense = matrices[0]
    for M in matrices[1:]:
        dense = np.kron(dense, M)
    product = check(factorize(matrices, error), dense)
    assert product.value == pytest.approx(
        math.prod(factorize(M, error).value for M in matrices), rel=1e-5
    )
    agree_with_noise(product)
    general(monkeypatch)
    agree(product, check(factorize(dense, error), dense))


def test_products_too_large_to_form():
    f = factorize([prefix(16)] * 8, "mean")
    assert f.shape == (16**8, 16**8)
    assert f.gap <= 1e-6
    expected = (16 * 2.854084800749) ** 4
    assert f.lower <= expected <= f.value
    for name in ("left", "right", "noise", "witness"):
        with pytest.raises(DomainTooLargeError, match="hint"):
            getattr(f, name)


def test_the_tolerance_is_that_of_the_product():
    matrices = [RNG.normal(size=(4, 5)) for _ in range(6)]
    for tol in (1e-2, 1e-7):
        assert factorize(matrices, "mean", tol=tol).gap <= tol


def test_scales_of_products_may_cancel():
    A = RNG.normal(size=(2, 3))
    f = factorize([A * 1e200, A * 1e200, A * 1e-300], "mean")
    assert np.isfinite(f.left).all()
    check(f, np.kron(np.kron(A, A), A) * 1e100)
    for scale in (1e200, 1e-200):
        with pytest.raises(ParameterError, match="rescale"):
            factorize([A * scale, A * scale], "mean")


@pytest.mark.parametrize("error", ERRORS)
def test_a_product_with_a_zero_matrix(error):
    f = check(factorize([np.zeros((2, 3)), RNG.normal(size=(2, 2))], error), np.zeros((4, 6)), 0)
    assert f.value == f.gap == 0


SIGNED = [
    (prefix(3), prefix(4)),
    (np.array([[1.0, -1.0, 0.0]]), prefix(3)),
    (prefix(3), np.array([[0.0, -1.0], [1.0, 1.0]])),
    (np.array([[0.0, 0.0], [0.0, -1.0]]), ranges(3)),
]


@pytest.mark.parametrize(("B", "C"), SIGNED)
@pytest.mark.parametrize("scale", [1.0, -0.1])
def test_signed_kronecker_products_are_found(B, C, scale):
    A = scale * np.kron(B, C)
    f = check(factorize(A, "mean"), A)
    assert f.method.startswith("Kronecker")
    split = structure.halves(A)
    assert np.array_equal(np.kron(*split), A)
    A[-1, -1] *= -1  # if another answer is found, it is exact as well
    check(factorize(A, "mean"), A)


shapes = st.tuples(st.integers(1, 3), st.integers(1, 3))


@given(st.lists(hnp.arrays(np.int8, shapes, elements=st.integers(-1, 1)), min_size=1, max_size=3))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_splitting_is_exact(matrices):
    A = np.ones((1, 1))
    for M in matrices:
        A = np.kron(A, M)
    pieces = structure.pieces(A)
    product = np.ones((1, 1))
    for piece in pieces:
        product = np.kron(product, piece.matrix)
    assert np.array_equal(product, A)


# Laws


small = hnp.arrays(
    float, st.tuples(st.integers(1, 4), st.integers(1, 4)), elements=st.integers(-3, 3).map(float)
)


@given(small, st.sampled_from(ERRORS))
@settings(max_examples=60, derandomize=True, deadline=None)
def test_any_small_matrix(A, error):
    f = check(factorize(A, error), A)
    p = exponent(error)
    # trivial factorizations I·A and A·I
    trivial = min(
        len(A) ** (1 / p) * np.linalg.norm(A, axis=0).max(),
        np.linalg.norm(np.linalg.norm(A, axis=1), p),
    )
    assert f.lower <= trivial * (1 + ROUNDING)
    assert f.value >= np.linalg.norm(np.abs(A).max(axis=1), p) / len(A) ** (1 / p) * (1 - ROUNDING)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("A", MATRICES.values(), ids=MATRICES.keys())
def test_invariances(A, error):
    f = factorize(A, error)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(len(A)), rng.permutation(A.shape[1])
    signs = [rng.choice([-1.0, 1.0], size=n) for n in A.shape]
    for other in (
        A[rows][:, columns],
        signs[0][:, None] * A * signs[1],
        np.hstack([A, A[:, :2], -A[:, :1], np.zeros((len(A), 1))]),
        np.vstack([A, np.zeros((1, A.shape[1]))]),
        np.hstack([A, A[:, :1] / 2 + A[:, 1:2] / 2]),  # inside the hull of the columns
    ):
        agree(f, check(factorize(other, error), other))
    for scale in (1e150, 1e-150, -3.0):
        scaled = check(factorize(scale * A, error), scale * A)
        assert scaled.lower <= abs(scale) * f.value * (1 + ROUNDING)
        assert scaled.value >= abs(scale) * f.lower * (1 - ROUNDING)


def test_laws_of_the_max_norm():
    A, B = RNG.normal(size=(5, 6)), RNG.normal(size=(5, 6))
    f, g = factorize(A), factorize(B)
    agree(f, check(factorize(A.T), A.T))
    agree(f, check(factorize(np.vstack([A, A[:2]])), np.vstack([A, A[:2]])))
    assert factorize(A + B).lower <= f.value + g.value
    assert factorize(A * B).lower <= f.value * g.value  # Schur's multiplier norm
    assert np.linalg.norm(A * B, 2) <= f.value * np.linalg.norm(B, 2)
    assert f.value >= np.abs(A).max()
    assert factorize(A[:3, :4]).lower <= f.value


def test_mean_and_max_are_ordered():
    A = RNG.normal(size=(6, 5))
    values = [factorize(A, p) for p in (2, 2.5, 4, 20, math.inf)]
    for one, other in itertools.pairwise(values):
        assert one.value >= other.lower
        assert (
            one.lower * 6 ** (1 / other.p - 1 / one.p) <= other.value
        )  # normalised by q^{1/p}, it grows
    assert factorize(A, math.inf).value == pytest.approx(factorize(A, "max").value, rel=1e-12)
    assert factorize(A, 2).value == factorize(A, "mean").value


@pytest.mark.parametrize("error", ERRORS)
def test_the_noise_is_that_of_the_columns(error):
    A = RNG.normal(size=(4, 6))
    f = factorize(A, error)
    agree_with_noise(f)
    assert f.noise is f.noise
    assert np.array_equal(f.noise.domain.points, A.T)
    M = f.noise.covariance.toarray()
    assert (f.left @ f.left.T) == pytest.approx(M, rel=1e-9)


# Degenerate and awkward matrices


@one_test_of("error", ERRORS)
@one_test_of(
    "A",
    [
        [[2.5]],
        [[-1e150]],
        [[0.0]],
        np.zeros((2, 3)),
        [[1.0, 2.0, -3.0]],
        [[1.0], [2.0], [-3.0]],
        np.ones((3, 5)),
        np.repeat(RNG.normal(size=(3, 3)), 3, axis=1),
        np.vander(np.linspace(0, 1, 10), 5),
        RNG.normal(size=(4, 30)),
        RNG.standard_t(2, size=(12, 5)),
        [[1e-9, 1.0], [1.0, 0.0]],
    ],
    ids=[
        "scalar", "huge scalar", "zero", "zeros", "one query", "one cell", "ones", "duplicates",
        "polynomials",
        "many cells", "heavy tails", "small entry",
    ],
)  # fmt: skip
def test_awkward_matrices(A, error):
    check(factorize(A, error), A)


def test_one_query_needs_noise_for_its_largest_cell():
    check(factorize([[1.0, 2.0, -3.0]]), [[1.0, 2.0, -3.0]], 3)
    check(factorize([[3.0], [4.0]], "mean"), [[3.0], [4.0]], 5)
    check(factorize([[3.0], [4.0]], "max"), [[3.0], [4.0]], 4)


def test_what_is_accepted_as_a_matrix():
    expected = factorize(np.array([[1.0, 0.0], [1.0, 1.0]])).value
    for A in (
        [[1, 0], [1, 1]],
        ((1, 0), (1, 1)),
        [np.array([1, 0]), [1, 1]],
        np.array([[True, False], [True, True]]),
        np.asfortranarray([[1.0, 0.0], [1.0, 1.0]]),
        np.array([[Fraction(1), 0], [1, 1]], dtype=object),
    ):
        assert factorize(A).value == expected
    assert factorize([[[1, 0], [1, 1]]]).value == expected  # a list of one matrix


def test_the_answer_cannot_be_changed():
    A = prefix(3)
    for matrices in (A, [A, np.eye(2)], np.eye(3), np.zeros((2, 2))):
        f = factorize(matrices, "mean")
        for array in (
            f.left,
            f.right,
            f.witness.query_weights,
            f.witness.cell_weights,
            *f.matrices,
        ):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 1
        with pytest.raises(dataclasses.FrozenInstanceError):
            f.p = 3
    A[0, 0] = 7
    assert factorize(prefix(3), "mean").value == pytest.approx(math.sqrt(3 * 1.69), rel=0.1)


def test_repr_says_what_is_known():
    text = repr(factorize(np.eye(4), "mean"))
    assert "4 x 4" in text
    assert "gamma_(2)" in text
    assert "group-circulant over Z_4" in text


# Refusals


@one_test_of(
    ("A", "message"),
    [
        ([[1.0, math.nan]], "finite"),
        ([[1.0, math.inf]], "finite"),
        ([[]], "queries, cells"),
        (np.zeros((0, 3)), "queries, cells"),
        ([], "queries, cells"),
        ([1.0, 2.0], "queries, cells"),
        (3.0, "queries, cells"),
        (np.ones((2, 2, 2)), "queries, cells"),
        ([[1.0, 2.0], [3.0]], "different lengths"),
        ([[1j, 0]], "real"),
        ([["1", "2"]], "real"),
        (np.array([[None, 1]]), "finite"),
        (np.array([[1j, 1]], dtype=object), "real"),
        ([[1e301]], "rescale"),
        ([[1e-301]], "rescale"),
        ([np.eye(2), np.zeros((0, 2))], "queries, cells"),
        ([np.eye(2), [[math.nan]]], "finite"),
    ],
)
def test_what_is_no_matrix_is_refused(A, message):
    with pytest.raises(ParameterError, match=message):
        factorize(A)


@pytest.mark.parametrize("error", ["median", "MAX", "", 1.99, 1, -math.inf, math.nan, None, 2j])
def test_unknown_errors_are_refused(error):
    with pytest.raises(ParameterError, match="max"):
        factorize(np.eye(2), error)


@pytest.mark.parametrize("tol", [0, 1, 0.0, 1.0, -1e-6, math.nan, "small"])
def test_tolerances_are_validated(tol):
    with pytest.raises(ParameterError, match="0 < tol < 1"):
        factorize(np.eye(2), tol=tol)


def test_an_unreachable_tolerance_warns_the_caller():
    with pytest.warns(ConvergenceWarning, match="wider than tol") as caught:
        f = factorize(prefix(6), "mean", tol=1e-14)
    assert caught[0].filename == __file__
    check(f, prefix(6))


def test_a_witness_of_another_shape_is_refused():
    with pytest.raises(ParameterError, match=r"\(2, 2\)"):
        factorize(prefix(2), "mean").witness.lower_bound(prefix(3))


# Negative controls: ``check`` can fail


def tampered(f, **changes):
    return dataclasses.replace(f, parts=(dataclasses.replace(f.parts[0], **changes),))


@one_test_of(
    "change",
    [
        lambda part: {"left": 0.99999 * part.left},
        lambda part: {"right": 1.000001 * part.right, "left": part.left / 1.000001},
        lambda part: {"value": part.value * (1 - 1e-9)},
        lambda part: {"lower": part.lower * (1 + 1e-9)},
        lambda part: {
            "witness": Witness(part.witness.query_weights, np.roll(part.witness.cell_weights, 1))
        },
        lambda part: {
            "witness": Witness(part.witness.query_weights, 2 * part.witness.cell_weights)
        },
        lambda part: {
            "witness": Witness(1.001 * part.witness.query_weights, part.witness.cell_weights)
        },
        lambda part: {"value": 1.1 * part.value},
    ],
)
@one_test_of("error", ["mean", "max"])
def test_the_checks_have_power(change, error):
    f = factorize(prefix(4), error, tol=1e-10)
    check(f, prefix(4))
    with pytest.raises(AssertionError):
        check(tampered(f, **change(f.parts[0])), prefix(4))
