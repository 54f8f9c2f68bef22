"""dual_norm(): closed forms, Grothendieck's inequality, trace duality with factorize(), and both
ends recomputed.
"""

import builtins
import dataclasses
import itertools
import math

import cvxpy as cp
import numpy as np
import pytest
from cases import one_test_of
from scipy.linalg import hadamard

import gaussnoise.noise.dual_norms as dual_module
from gaussnoise import dual_norm, factorize
from gaussnoise.errors import (
    ConvergenceWarning,
    DomainTooLargeError,
    NotAvailableError,
    ParameterError,
)

ROUNDING = 1e-11
ERRORS = ["mean", 3, "max"]
SOLVERS = ["clarabel", "scs"]
RNG = np.random.default_rng(0)


def exponent(error):
    return {"mean": 2, "max": math.inf}.get(error, error)


def check(found, A, expected=None, tol=1e-6):
    """Recompute all guarantees of a DualNorm from the numbers it stores."""
    A = np.array(A, dtype=float)
    p, size = found.p, np.abs(A).max() or 1.0
    assert 0 <= found.lower == found.value == float(found) <= found.upper
    assert 0 <= found.gap <= tol
    assert found.left.shape == (len(A), found.left.shape[1])
    assert found.right.shape == (A.shape[1], found.left.shape[1])
    # the vectors are feasible and attain the lower end
    assert np.linalg.norm(np.linalg.norm(found.left, axis=1), p) <= 1
    assert np.linalg.norm(found.right, axis=1).max() <= 1
    attained = size * np.sum(A / size * (found.left @ found.right.T))
    assert found.lower <= attained * (1 + 1e-14)
    # the weights are feasible and prove the upper end: [[D_u, −A], [−A', D_v]] is positive
    # semidefinite
    w, cells = found.query_weights, found.cell_weights
    assert min(w.min(), cells.min()) >= 0
    assert cells.sum() == pytest.approx(1, rel=1e-12)
    assert np.linalg.norm(w, np.inf if p == 2 else 1 if p == math.inf else p / (p - 2)) <= 1 + 1e-12
    rows, columns = A.any(axis=1), A.any(axis=0)
    if rows.any():
        core = A[np.ix_(rows, columns)] / size
        scale = found.upper / size
        block = np.block(
            [[np.diag(scale * w[rows]), -core], [-core.T, np.diag(scale * cells[columns])]]
        )
        roots = 1 / np.sqrt(np.diag(block))
        assert np.linalg.eigvalsh(roots[:, None] * block * roots)[0] >= -1e-13
    if expected is not None:
        assert found.lower <= expected * (1 + ROUNDING)
        assert found.upper >= expected * (1 - ROUNDING)
    return found


def by_primal_sdp(A, p):
    """Return ``max Σ A_ij X_ij`` over Gram matrices, the other side of the duality."""
    q, n = A.shape
    X = cp.Variable((q + n, q + n), PSD=True)
    squares = cp.diag(X)[:q]
    sides = (
        cp.sum(squares)
        if p == 2
        else cp.max(squares)
        if p == math.inf
        else cp.pnorm(squares, p / 2)
    )
    problem = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(A, X[:q, q:]))), [sides <= 1, cp.diag(X)[q:] <= 1]
    )
    return problem.solve(solver="CLARABEL")


def by_signs(A):
    """Return ``max Σ ±A_ij±`` by enumeration."""
    return max(np.abs(np.array(s) @ A).sum() for s in itertools.product([-1, 1], repeat=len(A)))


# Closed forms


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("n", [1, 4])
def test_identity(n, error, solver):
    check(dual_norm(np.eye(n), error, solver=solver), np.eye(n), n ** (1 - 1 / exponent(error)))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("n", [2, 4, 8])
def test_hadamard(n, error, solver):
    H = hadamard(n)
    check(dual_norm(H, error, solver=solver), H, n ** (1.5 - 1 / exponent(error)))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("error", ERRORS)
def test_rank_one(error, solver):
    u, v = RNG.normal(size=5), RNG.normal(size=4)
    p = exponent(error)
    conjugate = 1 if p == math.inf else p / (p - 1)
    expected = np.linalg.norm(u, conjugate) * np.abs(v).sum()
    check(dual_norm(np.outer(u, v), error, solver=solver), np.outer(u, v), expected)


@pytest.mark.parametrize("error", ERRORS)
def test_nonnegative_matrices_need_one_dimension(error):
    A = RNG.uniform(size=(4, 5))
    p = exponent(error)
    conjugate = 1 if p == math.inf else p / (p - 1)
    check(dual_norm(A, error), A, np.linalg.norm(A.sum(axis=1), conjugate))


def test_clauser_horne_shimony_holt():
    check(dual_norm([[1, 1], [1, -1]]), [[1, 1], [1, -1]], 2 * math.sqrt(2))
    assert by_signs(np.array([[1, 1], [1, -1]])) == 2


def test_orthogonal_columns_at_the_mean():
    A = np.linalg.qr(RNG.normal(size=(6, 4)))[0] * [1.0, 2.0, 3.0, 4.0]
    check(dual_norm(A, "mean"), A, math.sqrt(30))


# Duality


MATRICES = {
    "square": RNG.normal(size=(4, 4)),
    "wide": RNG.normal(size=(3, 6)),
    "tall": RNG.normal(size=(7, 3)),
    "rank 1 of 4": np.outer(RNG.normal(size=4), RNG.normal(size=5)) + 1,
    "zero row and columns": np.pad(RNG.normal(size=(3, 3)), ((0, 1), (1, 1))),
    "signs": RNG.choice([-1.0, 0.0, 1.0], size=(5, 5)),
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("A", MATRICES.values(), ids=MATRICES.keys())
def test_strong_duality(A, error):
    found = check(dual_norm(A, error), A)
    assert found.value == pytest.approx(by_primal_sdp(A, exponent(error)), rel=2e-6)
    other = check(dual_norm(A, error, solver="scs"), A)
    assert found.lower <= other.upper
    assert other.lower <= found.upper
    assert (found.solver, other.solver) == ("clarabel", "scs")


@pytest.mark.parametrize("error", ERRORS)
def test_trace_duality(error):
    A = RNG.normal(size=(4, 5))
    found = dual_norm(A, error)
    for _ in range(20):
        B = RNG.normal(size=A.shape)
        assert abs(np.sum(A * B)) <= factorize(B, error).value * found.upper
    # equality at the optimal B, of norm one since it is made of the vectors themselves
    B = found.left @ found.right.T
    f = factorize(B, error)
    assert f.lower <= 1
    assert np.sum(A * B) == pytest.approx(f.value * found.value, rel=2e-6)


@pytest.mark.parametrize("error", ERRORS)
def test_factorization_norms_are_duals_too(error):
    B = RNG.normal(size=(4, 5))
    f = factorize(B, error)
    w, cells = np.sqrt(f.witness.query_weights)[:, None], np.sqrt(f.witness.cell_weights)
    U, _, Vt = np.linalg.svd(w * B * cells, full_matrices=False)
    A = w * (U @ Vt) * cells  # the witness as a matrix: <A, B> = lower and γ*(A) <= 1
    found = check(dual_norm(A, error), A)
    assert np.sum(A * B) == pytest.approx(f.lower, rel=1e-9)
    assert found.lower <= 1 + 1e-9
    assert np.sum(A * B) / found.upper <= f.value


def test_grothendiecks_inequality():
    ratios = []
    for seed in range(12):
        A = np.random.default_rng(seed).normal(size=(6, 7))
        found = check(dual_norm(A), A)
        signs = by_signs(A)
        assert signs <= found.upper
        assert found.lower <= 1.7823 * signs
        ratios.append(found.value / signs)
    assert max(ratios) > 1.01  # vectors do achieve more than signs


# Laws


@pytest.mark.parametrize("error", ERRORS)
def test_invariances(error):
    A = RNG.normal(size=(4, 5))
    found = dual_norm(A, error)
    rows, columns = RNG.permutation(4), RNG.permutation(5)
    for other in (
        A[rows][:, columns],
        A * RNG.choice([-1.0, 1.0], size=(4, 1)) * RNG.choice([-1.0, 1.0], size=5),
        np.pad(A, ((1, 0), (0, 2))),
        np.hstack([A[:, :1] / 2, A[:, :1] / 2, A[:, 1:]]),  # a column may be split
    ):
        again = check(dual_norm(other, error), other)
        assert found.lower <= again.upper
        assert again.lower <= found.upper
    for scale in (1e150, 1e-150, -3.0):
        scaled = check(dual_norm(scale * A, error), scale * A)
        assert scaled.value == pytest.approx(abs(scale) * found.value, rel=1e-6)


def test_the_max_norm_is_transposable_and_subadditive():
    A, B = RNG.normal(size=(4, 5)), RNG.normal(size=(4, 5))
    assert dual_norm(A.T).value == pytest.approx(dual_norm(A).value, rel=1e-6)
    assert dual_norm(A + B).lower <= dual_norm(A).upper + dual_norm(B).upper
    assert dual_norm(A).upper >= np.linalg.norm(A, "nuc")  # ‖B‖ <= 1 has γ₂(B) <= 1
    assert dual_norm(A).lower <= np.abs(A).sum()


@pytest.mark.parametrize("error", [2, 2.01, 5, 60, math.inf])
@pytest.mark.parametrize("solver", SOLVERS)
def test_badly_scaled_matrices(error, solver):
    A = RNG.normal(size=(5, 4)) * 10.0 ** np.arange(-3, 2)[:, None] * 10.0 ** np.arange(-2, 2)
    check(dual_norm(A, error, tol=1e-4, solver=solver), A, tol=1e-4)


@one_test_of("error", ERRORS)
@one_test_of(
    "A", [np.zeros((2, 3)), [[0.0]], [[-2.0]], [[1.0, -2.0, 0.0]], [[1.0], [2.0]], np.ones((3, 4))]
)
def test_small_and_zero_matrices(A, error):
    A = np.array(A)
    p = exponent(error)
    conjugate = 1 if p == math.inf else p / (p - 1)
    found = check(dual_norm(A, error), A, np.linalg.norm(np.abs(A).sum(axis=1), conjugate))
    assert bool(found.value) == A.any()


def test_the_answer_cannot_be_changed():
    found = dual_norm(np.eye(2))
    for array in (found.left, found.right, found.query_weights, found.cell_weights):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.value = 3
    assert "clarabel" in repr(found)


# A solver's claims are checked


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("noise", [1e-3, 0.3])
def test_a_poor_solver_costs_accuracy_and_not_truth(monkeypatch, error, noise):
    A = RNG.normal(size=(4, 5))
    good = dual_norm(A, error)
    solve = dual_module._solve

    def poor(A, p, solver):
        gram, (queries, cells) = solve(A, p, solver)
        rng = np.random.default_rng(1)
        return gram + noise * rng.normal(size=gram.shape), tuple(
            d * np.exp(noise * rng.normal(size=d.shape)) for d in (queries, cells)
        )

    monkeypatch.setattr(dual_module, "_solve", poor)
    with pytest.warns(ConvergenceWarning, match="certified gap"):
        found = dual_norm(A, error)
    check(found, A, tol=math.inf)
    assert found.lower <= good.upper
    assert good.lower <= found.upper
    assert found.gap > good.gap


@pytest.mark.parametrize("error", ERRORS)
def test_a_solver_that_fails_costs_accuracy_and_not_truth(monkeypatch, error):
    def fail(*_, **__):
        raise cp.SolverError

    monkeypatch.setattr(cp.Problem, "solve", fail)
    A = RNG.normal(size=(4, 5))
    with pytest.warns(ConvergenceWarning, match="certified gap") as caught:
        found = dual_norm(A, error)
    assert caught[0].filename == __file__
    check(found, A, tol=math.inf)
    monkeypatch.undo()
    good = dual_norm(A, error)
    assert found.lower <= good.lower <= good.upper <= found.upper * (1 + 1e-6)


def test_a_missing_solver_is_named(monkeypatch):
    monkeypatch.setattr(cp, "installed_solvers", lambda: ["CLARABEL"])
    with pytest.raises(NotAvailableError, match="pip install scs"):
        dual_norm(np.eye(2), solver="scs")


def test_a_missing_cvxpy_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if name == "cvxpy":
            raise ImportError
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NotAvailableError, match="pip install"):
        dual_norm(np.eye(2))


# Refusals


@pytest.mark.parametrize(
    "A", [[[1.0, math.nan]], [[]], [1.0, 2.0], [[1j]], [[1.0], [1.0, 2.0]], np.ones((2, 2, 2))]
)
def test_what_is_no_matrix_is_refused(A):
    with pytest.raises(ParameterError, match="dual_norm: expected"):
        dual_norm(A)


@pytest.mark.parametrize("options", [{"error": "median"}, {"error": 1.9}, {"error": math.nan},
{"tol": 0}, {"tol": 1.0},
                                     {"tol": math.nan}, {"solver": "mosek"},
                                     {"solver": None}])  # fmt: skip
def test_options_are_validated(options):
    with pytest.raises(ParameterError, match="dual_norm: expected"):
        dual_norm(np.eye(2), **options)


# Negative controls: ``check`` can fail


@pytest.mark.parametrize(
    "change",
    [
        lambda d: {"value": d.value * (1 + 1e-9)},
        lambda d: {"upper": d.upper * (1 - 1e-6)},
        lambda d: {"left": 1.000001 * d.left},
        lambda d: {"right": 1.000001 * d.right},
        lambda d: {"right": d.right[::-1].copy()},
        lambda d: {"cell_weights": d.cell_weights[::-1].copy()},
        lambda d: {"cell_weights": 1.000001 * d.cell_weights},
        lambda d: {"query_weights": 1.000001 * d.query_weights},
        lambda d: {"upper": 1.00001 * d.upper},
    ],
)
@pytest.mark.parametrize("error", ERRORS)
def test_the_checks_have_power(change, error):
    A = np.random.default_rng(3).normal(size=(4, 5))
    found = dual_norm(A, error)
    check(found, A)
    with pytest.raises(AssertionError):
        check(dataclasses.replace(found, **change(found)), A)


def test_the_solver_follows_the_size():
    rng = np.random.default_rng(3)
    assert dual_norm(rng.normal(size=(4, 5))).solver == "clarabel"
    large = dual_norm(rng.normal(size=(25, 20)))
    assert large.solver == "scs"
    assert large.gap <= 1e-6
    with pytest.raises(DomainTooLargeError, match="order 601"):
        dual_norm(np.ones((301, 300)))
