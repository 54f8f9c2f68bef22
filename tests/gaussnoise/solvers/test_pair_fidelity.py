"""The objective of all differences without their list: every number equals that from the list."""

import math
from fractions import Fraction

import numpy as np
import pytest

from gaussnoise.solvers.points.fidelity import Fidelity
from gaussnoise.solvers.points.pairs import PairFidelity, laplacian, laplacian_factor

COUNT, DIM = 9, 6


def points(rank=DIM, far=0.0):
    rng = np.random.default_rng(rank)
    return rng.normal(size=(COUNT, rank)) @ rng.normal(size=(rank, DIM)) + far


def both(X, p):
    """Return the objective without a list and with one, and weights and shares to evaluate."""
    moved = X - X.mean(axis=0)
    _, singular, axes = np.linalg.svd(moved, full_matrices=False)
    rank = int((singular > 1e-9 * singular[0]).sum())
    basis = None if rank == X.shape[1] else axes[:rank].T
    pairs = PairFidelity(X, p, False, basis)
    i, j = pairs.rows.T
    listed = Fidelity(X[i] - X[j], p, False, basis)
    rng = np.random.default_rng(1)
    return pairs, listed, rng.dirichlet(np.ones(len(i))), rng.dirichlet(np.ones(X.shape[1]))


CASES = pytest.mark.parametrize(
    "X", [points(), points(3), points(far=1e3)], ids=["full rank", "rank 3", "far away"]
)
NORMS = pytest.mark.parametrize("p", [2, 3, np.inf])


@CASES
@NORMS
def test_evaluations_are_those_of_the_list(X, p):
    pairs, listed, weights, shares = both(X, p)
    found, expected = pairs.at(weights, shares), listed.at(weights, shares)
    assert pairs.shape == listed.shape
    assert found.value == pytest.approx(expected.value, rel=1e-10)
    assert found.gap == pytest.approx(expected.gap, rel=1e-9)
    np.testing.assert_allclose(found.lengths, expected.lengths, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(found.variances, expected.variances, rtol=1e-8)
    N = pairs.factor(found, shares) @ pairs.factor(found, shares).T
    M = listed.factor(expected, shares) @ listed.factor(expected, shares).T
    np.testing.assert_allclose(N, M, rtol=0, atol=1e-9 * np.abs(M).max())


@CASES
@NORMS
def test_second_derivatives_are_those_of_the_list(X, p):
    pairs, listed, weights, shares = both(X, p)
    x = weights if p == 2 else np.concatenate([weights, shares])
    here = pairs.curvature(pairs.at(weights, shares), x)
    there = listed.curvature(listed.at(weights, shares), x)
    identity = np.eye(len(x))
    H, expected = (np.column_stack([C @ e for e in identity]) for C in (here, there))
    np.testing.assert_allclose(H, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_allclose(here.diagonal(), there.diagonal(), rtol=0.02)  # it preconditions


ROWS = np.column_stack(np.triu_indices(COUNT, 1))
APART = (ROWS[:, 0] < 4) != (ROWS[:, 1] < 4)  # pairs between the first four points and the others
WEIGHTS = {
    "alike": np.random.default_rng(2).uniform(size=len(ROWS)),
    "of many sizes": 10.0 ** np.random.default_rng(2).uniform(-30, 0, len(ROWS)),
    "of two groups that hardly meet": np.where(APART, 1e-20, 1.0),
    "of two groups that never meet": np.where(APART, 0.0, 1.0),
}


def eliminated(weights):
    """Return R of the Laplacian, in rational arithmetic."""
    L = [[Fraction(0)] * COUNT for _ in range(COUNT)]
    for (i, j), weight in zip(ROWS.tolist(), weights, strict=True):
        L[i][j] = L[j][i] = -Fraction(weight)
    for i in range(COUNT):
        L[i][i] = -sum(L[i])
    R = np.zeros((COUNT - 1, COUNT))
    for i in range(COUNT - 1):
        if L[i][i]:
            R[i, i:] = [float(entry) / math.sqrt(L[i][i]) for entry in L[i][i:]]
            for j in range(i + 1, COUNT):
                share = L[j][i] / L[i][i]
                L[j] = [a - share * b for a, b in zip(L[j], L[i], strict=True)]
    return R


@pytest.mark.parametrize("kind", WEIGHTS)
def test_the_factor_of_a_laplacian_keeps_the_digits_of_small_weights(kind):
    R = laplacian_factor(WEIGHTS[kind], ROWS, COUNT)
    np.testing.assert_allclose(R, eliminated(WEIGHTS[kind]), rtol=1e-13)


def test_differences_as_pivots_lose_small_weights():
    """This is a negative control."""
    kind = "of two groups that hardly meet"
    pivots = np.linalg.det(laplacian(WEIGHTS[kind], ROWS, COUNT)[:4, :4])
    assert abs(pivots / np.square(eliminated(WEIGHTS[kind]).diagonal()[:4]).prod() - 1) > 1e-3


def test_moments_of_a_wide_spectrum_are_found_without_squaring():
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(DIM, DIM)))[0]
    X = points() * np.geomspace(1, 1e-8, DIM) @ turn
    pairs = PairFidelity(X, 2, False, None)
    listed = Fidelity(X[ROWS[:, 0]] - X[ROWS[:, 1]], 2, False, None)
    weights, shares = WEIGHTS["alike"] / WEIGHTS["alike"].sum(), np.full(DIM, 1 / DIM)
    found, expected = (np.sort(of.at(weights, shares).roots) for of in (pairs, listed))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    squared = np.sqrt(np.abs(np.linalg.eigvalsh(pairs._squares(weights, X))))
    assert np.abs(np.sort(squared) / expected - 1).max() > 1e-3  # a negative control


def test_points_that_are_nearly_the_same_are_not_less_than_nothing_apart():
    """Rounding makes some of these squared lengths negative, and powers of them would be NaN."""
    for apart in np.random.default_rng(0).uniform(0, 1e-10, 50):
        pairs = PairFidelity(np.array([[0.0], [apart], [1.0]]), 2, False, None)
        assert pairs.at(np.array([0.2, 0.3, 0.5]), np.ones(1)).lengths.min() >= 0
