"""Resolvents in linear time against many digits, and the proven errors of their parts."""

import mpmath
import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.errors import CovarianceError
from gaussnoise.solvers.streams import banded
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
    with pytest.raises(CovarianceError, match="sizes"):
        next(diagonals(np.array([1.0, 1e-70]), np.zeros(2), np.ones(1)))


def matrix_of(bands):
    return sum(np.diag(band[m:], -m) for m, band in enumerate(bands))


def random_bands(kind, b, n):
    rng = np.random.default_rng(b)
    bands, weights = rng.uniform(-2, 2, (b + 1, n)), rng.uniform(0.5, 2, (2, n))
    if kind == "momentum":
        bands[:] = 0.0
        bands[:3] = np.array([1, -1.95, 0.95])[:, None]
    if kind == "graded":
        bands *= np.geomspace(1, 1e-6, n)
    if kind == "wild":
        bands *= 10.0 ** rng.uniform(-5, 5, bands.shape)
        weights *= 10.0 ** rng.uniform(-5, 5, weights.shape)
    for m in range(b + 1):
        bands[m, :m] = 0
    return bands, *weights


def exact_diagonals(bands, R, C, shift):
    """Return the diagonals of both resolvents, in many digits."""
    n = len(R)
    B = mpmath.matrix(matrix_of(bands).tolist())
    R, C = (mpmath.diag([mpmath.mpf(float(x)) for x in values]) for values in (R, C))
    inverses = (
        R * mpmath.inverse(B * mpmath.inverse(C) * B.T + shift * R),
        C * mpmath.inverse(B.T * mpmath.inverse(R) * B + shift * C),
    )
    return [[inverse[i, i] for i in range(n)] for inverse in inverses]


@pytest.mark.parametrize("shift", [1e-12, 1e-3, 10.0])
@pytest.mark.parametrize("b", [2, 3, 6])
@pytest.mark.parametrize("kind", ["even", "momentum", "graded", "wild"])
def test_with_several_subdiagonals_the_computed_bound_on_errors_holds(kind, b, shift):
    given = random_bands(kind, b, 12)
    _, *found, error = next(banded.diagonals(*given, np.array([shift])))
    with mpmath.workdps(120):
        for values, exact in zip(found, exact_diagonals(*given, shift), strict=True):
            pairs = zip(values, exact, strict=True)
            assert max(abs(mpmath.mpf(float(x)) / y - 1) for x, y in pairs) <= error
    if kind == "even" and shift >= 1e-3 and b < 6:
        assert error < 1e-8


@pytest.mark.parametrize("b", [2, 8])
def test_a_band_that_is_slightly_wrong_shows_beyond_the_bound(b):
    bands, R, C = random_bands("even", b, 16)
    wrong = bands.copy()
    wrong[1, 9] *= 1 + 1e-5
    _, *found, error = next(banded.diagonals(wrong, R, C, np.ones(1)))
    with mpmath.workdps(40):
        for values, exact in zip(found, exact_diagonals(bands, R, C, 1), strict=True):
            assert (
                max(abs(x / float(y) - 1) for x, y in zip(values, exact, strict=True)) > 2 * error
            )


def test_resolvents_with_several_subdiagonals_are_the_same_in_parts(monkeypatch):
    given, shifts = random_bands("even", 3, 50), np.array([1e-3, 1.0, 5.0])
    whole = list(banded.diagonals(*given, shifts))
    monkeypatch.setattr(banded, "_TICKS_AT_ONCE", 7)
    monkeypatch.setattr(banded, "_NUMBERS_AT_ONCE", 1)
    for (j, *numbers), (k, *parts) in zip(whole, banded.diagonals(*given, shifts), strict=True):
        assert j == k
        for number, part in zip(numbers, parts, strict=True):
            np.testing.assert_allclose(part, number, rtol=1e-12 if np.ndim(number) else 0.5)


def test_far_from_both_ends_momentum_has_the_diagonal_of_its_symbol():
    """Return the integral of ``1/(|1 − 1.9 z + 0.9 z²|² + s)`` over the unit circle."""
    n, shift = 3_000, 1e-4
    bands = gn.streams.momentum(n, 0.9).bands
    _, rows, columns, error = next(banded.diagonals(bands, *np.ones((2, n)), np.array([shift])))
    z = np.exp(2j * np.pi * np.arange(2**14) / 2**14)
    expected = np.mean(1 / (np.abs(1 - 1.9 * z + 0.9 * z**2) ** 2 + shift))
    assert error < 1e-8
    for values in (rows, columns):
        np.testing.assert_allclose(values[1000:2000], expected, rtol=1e-8)


def test_numbers_of_too_different_sizes_are_refused_with_several_subdiagonals():
    bands, R, C = random_bands("even", 2, 10)
    with pytest.raises(CovarianceError, match="sizes"):
        next(banded.diagonals(bands, R * np.geomspace(1, 1e-130, 10), C, np.ones(1)))


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
@pytest.mark.parametrize("b", [1, 2, 5])
def test_both_ends_bracket_what_singular_values_say(b, widened):
    rng = np.random.default_rng(2)
    n = 30
    bands = rng.uniform(-2, 2, (b + 1, n)) / b
    bands[0] = rng.uniform(0.5, 2, n)
    for m in range(b + 1):
        bands[m, :m] = 0
    weights, w = rng.dirichlet(np.full(n, 0.3)) + 1e-7, rng.uniform(1e-4, 1, n)
    found = evaluate(bands, weights, w, widened=widened)
    A = np.linalg.inv(matrix_of(bands))
    U, sizes, V = np.linalg.svd(np.sqrt(w)[:, None] * A * np.sqrt(weights))
    leverages, variances = (V**2).T @ sizes / weights, U**2 @ sizes / w
    for bound, exact in ((found.leverages, leverages), (found.variances, variances)):
        assert (bound >= exact * (1 - 1e-12)).all()
        assert (bound <= exact * (1 + 1e-8)).all()
    assert sizes.sum() * (1 - 1e-8) <= found.lower <= sizes.sum() * (1 + 1e-12)
    # the rational function is close to the root on all of the spectrum
    terms = found.root.sizes / (sizes[:, None] ** -2 + found.root.shifts)
    assert (np.abs(1 - terms.sum(axis=1) / sizes) <= found.root.error + 1e-12).all()


@pytest.mark.parametrize("size", [2.0**-40, 2.0**-2, 1.0])
def test_long_products_neither_overflow_nor_vanish(size):
    """For 20,000 equal ticks, far from both ends, all diagonals are equal, and known in closed
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
