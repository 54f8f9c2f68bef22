"""Resolvents in linear time against many digits, and the proven errors of what they rest on."""

import mpmath
import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.solvers.streams.bidiagonal import diagonals, relative_error
from gaussnoise.solvers.streams.inverse_root import error_on, inverse_root
from gaussnoise.solvers.streams.optimum import evaluate

N = 24


@pytest.fixture(params=["even", "graded", "wild", "diagonal"])
def bidiagonal(request):
    rng = np.random.default_rng(5)
    diagonal, below = rng.uniform(0.5, 2, (2, N))
    if request.param == "graded":
        diagonal *= np.geomspace(1, 1e-9, N)
    if request.param == "wild":
        diagonal *= 10.0 ** rng.uniform(-8, 8, N)
        below *= 10.0 ** rng.uniform(-8, 8, N)
    if request.param == "diagonal":
        below[:] = 0
    below[0] = 0
    return diagonal, below


@pytest.mark.parametrize("shift", [0.0, 1e-12, 1e-3, 10.0])
def test_diagonals_of_resolvents_have_all_their_digits(bidiagonal, shift):
    diagonal, below = bidiagonal
    with mpmath.workdps(300):
        G = mpmath.matrix((np.diag(diagonal) + np.diag(below[1:], -1)).tolist())
        shifted = mpmath.eye(N) * mpmath.mpf(shift)
        rows, columns = mpmath.inverse(G * G.T + shifted), mpmath.inverse(G.T * G + shifted)
        _, found_rows, found_columns = next(diagonals(diagonal, below, np.array([shift])))
        for exact, found in ((rows, found_rows), (columns, found_columns)):
            worst = max(abs(mpmath.mpf(float(found[i])) / exact[i, i] - 1) for i in range(N))
            assert worst <= relative_error(N)


def test_numbers_of_too_different_sizes_are_refused():
    with pytest.raises(gn.CovarianceError, match="sizes"):
        next(diagonals(np.array([1.0, 1e-70]), np.zeros(2), np.ones(1)))


@pytest.mark.parametrize("condition", [1.5, 1e4, 1e12, 1e20])
def test_the_error_of_the_inverse_root_holds_everywhere(condition):
    root = inverse_root(0.3, 0.3 * condition)
    assert root.error < 1e-8
    with mpmath.workdps(40):
        for x in np.geomspace(0.3, 0.3 * condition, 203):
            value = sum(
                mpmath.mpf(c) / (mpmath.mpf(x) + mpmath.mpf(s))
                for c, s in zip(root.sizes.tolist(), root.shifts.tolist(), strict=True)
            )
            assert abs(1 - mpmath.sqrt(mpmath.mpf(x)) * value) <= root.error


@pytest.mark.parametrize("node", [0, 5, -1])
def test_a_wrong_node_shows_in_the_error(node):
    root = inverse_root(1.0, 1e6)
    sizes = root.sizes.copy()
    sizes[node] *= 1 + 1e-6
    assert error_on(sizes, root.shifts, 1.0, 1e6) > 1e-7
    assert error_on(root.sizes, root.shifts, 1e-4, 1e6) > 1e-2  # outside of the interval


@pytest.mark.parametrize("widened", [1.0, 4.0])
def test_both_ends_bracket_what_singular_values_say(widened):
    rng = np.random.default_rng(2)
    n = 30
    bands = np.array([rng.uniform(0.5, 2, n), rng.uniform(-2, 2, n)])
    bands[1, 0] = 0
    weights, w = rng.dirichlet(np.full(n, 0.3)) + 1e-7, rng.uniform(1e-4, 1, n)
    found = evaluate(bands, weights, w, widened=widened)
    A = np.linalg.inv(np.diag(bands[0]) + np.diag(bands[1, 1:], -1))
    U, sizes, V = np.linalg.svd(np.sqrt(w)[:, None] * A * np.sqrt(weights))
    leverages, variances = (V**2).T @ sizes / weights, U**2 @ sizes / w
    for bound, exact in ((found.leverages, leverages), (found.variances, variances)):
        assert (bound >= exact * (1 - 1e-12)).all()
        assert (bound <= exact * (1 + 1e-8)).all()
    assert sizes.sum() * (1 - 1e-8) <= found.lower <= sizes.sum() * (1 + 1e-12)


@pytest.mark.parametrize("size", [2.0**-40, 2.0**-2, 1.0])
def test_long_products_neither_overflow_nor_vanish(size):
    """Of 20,000 equal ticks far from both ends, all diagonals are the same, and known in closed
    form.
    """
    n, shift = 20_000, size**2 / 100
    diagonal, below = np.full(n, size), np.full(n, size)
    below[0] = 0
    _, rows, _ = next(diagonals(diagonal, below, np.array([shift])))
    # 1/√((2a² + s)² − 4a⁴) for the symmetric tridiagonal Toeplitz matrix without ends
    expected = 1 / np.sqrt((2 * size**2 + shift) ** 2 - 4 * size**4)
    np.testing.assert_allclose(rows[5000:15_000], expected, rtol=1e-9)
    _, trace, _ = next(diagonals(diagonal, below, np.zeros(1)))
    np.testing.assert_allclose(trace[::5000] * size**2, np.arange(n, 0, -1)[::5000], rtol=1e-9)
