"""Moments of the vectors of a box: brackets against roots, local maxima and exact arithmetic."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy

from domains import BoxMoments, DimensionError, DomainTooLargeError, InvalidDomainError
from domains.oracles import box
from domains.sets.box_moments import MomentDifferences


def moments(x):
    """Every monomial of degree two or less, one by one."""
    d = len(x)
    pairs = itertools.combinations_with_replacement(range(d), 2)
    return np.array([1.0, *x, *(x[i] * x[j] for i, j in pairs)])


def some_box(d, rng):
    low = rng.normal(size=d)
    return low, low + rng.uniform(0.3, 3.0, size=d)


def some_form(dim, rng):
    """A form whose axes have lengths of several magnitudes."""
    B = rng.normal(size=(dim, dim)) * np.exp(rng.normal(size=dim))
    return B.T @ B


def best_found(f, low, high, rng, tries):
    """The largest local maximum that a quasi-Newton method climbs to."""
    best = -np.inf
    for start in rng.uniform(low, high, (tries, len(low))):
        found = scipy.optimize.minimize(
            lambda x: -f(x), start, method="L-BFGS-B", bounds=list(zip(low, high, strict=True))
        )
        best = max(best, -found.fun)
    return best


@pytest.mark.parametrize(
    ("low", "high", "error", "match"),
    [
        (0.0, 1.0, InvalidDomainError, r"one shape \(d,\), d >= 1, got \(\) and \(\)"),
        ([], [], InvalidDomainError, "d >= 1"),
        ([0.0], [1.0, 2.0], InvalidDomainError, r"got \(1,\) and \(2,\)"),
        ([0.0, 1.0], [1.0, 1.0], InvalidDomainError, "low < high for every number"),
        ([-1e101], [0.0], InvalidDomainError, "between -1e100 and 1e100"),
        ([0.0], [1e-101], InvalidDomainError, "at least 1e-100 apart"),
        ([0.0], [np.inf], InvalidDomainError, "finite high"),
        (np.zeros(6), np.ones(6), DomainTooLargeError, "at most 5 numbers, got 6; hint: a plan"),
    ],
)
def test_boxes_are_validated(low, high, error, match):
    with pytest.raises(error, match=match):
        BoxMoments(low, high)


def test_differences_are_of_these_moments_alone():
    with pytest.raises(InvalidDomainError, match="at most 3 numbers"):
        MomentDifferences(BoxMoments(np.zeros(4), np.ones(4)))


def test_rows_are_all_products():
    rng = np.random.default_rng(1)
    for d in (1, 2, 4):
        low, high = some_box(d, rng)
        X = rng.uniform(low, high, (7, d))
        np.testing.assert_array_equal(BoxMoments(low, high).embed(X), [moments(x) for x in X])


def test_values_outside_are_refused_without_being_shown():
    K = BoxMoments([0.0, 0.0], [1.0, 2.0])
    for bad in ([[0.5, 2.125]], [[0.5, np.nan]]):
        with pytest.raises(InvalidDomainError, match="low <= values <= high; hint") as e:
            K.embed(bad)
        assert "2.125" not in str(e.value)
    with pytest.raises(DimensionError, match=r"shape \(n, 2\)"):
        K.embed([0.5, 0.5])


def test_a_square_that_is_not_of_its_number_is_no_member():
    K = BoxMoments([0.0], [1.0])
    assert K.contains([1.0, 0.5, 0.25])
    assert not K.contains([1.0, 0.5, 0.25 + 1e-8])
    assert not K.contains([1.0 + 1e-8, 0.5, 0.25])


@pytest.mark.parametrize("d", [3, 5])
def test_support_is_no_smaller_than_any_local_maximum(d):
    rng = np.random.default_rng(d)
    low, high = some_box(d, rng)
    K = BoxMoments(low, high)
    for _ in range(4):
        theta = rng.normal(size=K.dim)
        found = best_found(lambda x: theta @ moments(x), low, high, rng, 20)  # noqa: B023
        assert K.support(theta) == pytest.approx(found, rel=1e-9)


def test_one_number_by_the_roots_of_the_derivative():
    rng = np.random.default_rng(2)
    for _ in range(30):
        low, high = some_box(1, rng)
        H, c = some_form(3, rng), rng.normal(size=3)
        coefficients = -2 * (H @ c)  # of 1, x, x²; those of the square are added
        polynomial = np.poly1d(coefficients[::-1])
        for i, j in itertools.product(range(3), repeat=2):
            polynomial += np.poly1d([H[i, j], *np.zeros(i + j)])
        roots = polynomial.deriv().roots.real
        best = max(polynomial(x) for x in [*low, *high, *roots[(roots > low) & (roots < high)]])
        best += c @ H @ c
        found = BoxMoments(low, high).max_quadratic(H, c)
        assert best * (1 - 1e-11) <= found.upper_bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_brackets_are_closed_and_above_every_local_maximum(d, paired):
    rng = np.random.default_rng(10 * d + paired)
    low, high = some_box(d, rng)
    K = BoxMoments(low, high)
    S = K - K if paired else K
    ends = (np.tile(low, 2), np.tile(high, 2)) if paired else (low, high)
    for k in range(3):
        H, c = some_form(K.dim, rng), rng.normal(size=K.dim) * (k > 0)

        def length(x):
            s = moments(x[:d]) - moments(x[d:]) if paired else moments(x)
            return (s - c) @ H @ (s - c)  # noqa: B023

        found = S.max_quadratic(H, c)
        assert found.upper_bound <= found.value * (1 + 1e-9)
        best = best_found(length, *ends, rng, 20)
        assert best * (1 - 1e-11) <= found.upper_bound


def test_the_bound_holds_in_exact_arithmetic():
    """At the member that nearly attains it, in fractions."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        low, high = some_box(2, rng)
        A = rng.normal(size=(4, 6))
        found = (A @ BoxMoments(low, high)).max_quadratic(np.eye(4))
        x = [Fraction(v) for v in BoxMoments(low, high)._max_pulled(A, np.eye(4)).maximizer[1:3]]
        rows = [[Fraction(v) for v in row] for row in A.tolist()]
        exact = [1, *x, x[0] * x[0], x[0] * x[1], x[1] * x[1]]
        value = sum(sum(a * b for a, b in zip(row, exact, strict=True)) ** 2 for row in rows)
        assert value <= Fraction(found.upper_bound)


@pytest.mark.parametrize("paired", [False, True])
def test_bounds_hold_for_forms_whose_coordinates_have_very_different_units(paired):
    """x is at most 1e-11, and the form has entries up to 1e44."""
    w = 1e-11
    K = BoxMoments([-w], [w])
    S = K - K if paired else K
    ends = [(Fraction(1), x, x * x) for x in map(Fraction, (-w, -w / 2, 0.0, w / 2, w))]
    members = [[a - b for a, b in zip(x, y, strict=True)] for x in ends for y in ends]
    rng = np.random.default_rng(4)
    for _ in range(20):
        B = rng.normal(size=(2, 3)) / [1, w, w**2]
        form = B.T @ B
        exact = [[Fraction(v) for v in row] for row in form.tolist()]
        best = max(
            sum(x[i] * exact[i][j] * x[j] for i, j in itertools.product(range(3), repeat=2))
            for x in (members if paired else ends)
        )
        # the largest value may lie between these members: none was 12 % larger
        assert best <= Fraction(S.max_quadratic(form).upper_bound) <= best * Fraction(5, 4)


def test_support_points_of_the_largest_boxes():
    """Sizes of products of two terms are 1e400, which no double has."""
    rng = np.random.default_rng(5)
    K, unit = BoxMoments([-1e100] * 3, [9e99] * 3), BoxMoments([-1.0] * 3, [0.9] * 3)
    sizes = np.array([1e100 ** row.sum() for row in K._exponents])
    for _ in range(5):
        theta = rng.normal(size=10) * [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
        assert theta @ (K.support_point(theta) / sizes) == pytest.approx(unit.support(theta), 1e-9)


def test_a_bound_that_is_not_closed_is_still_one(monkeypatch):
    inside = np.array([[1.0, 0, 0, -1, 0, 0], [1.0, 0, 0, 0, 0, -1]])  # 1 − x², 1 − y²
    K = inside @ BoxMoments([-1.0, -1.0], [1.0, 1.0])
    assert K.max_quadratic(np.eye(2)).upper_bound == pytest.approx(2, rel=1e-9)
    monkeypatch.setattr(box, "_MOST_NUMBERS", 0)
    assert 2.1 < K.max_quadratic(np.eye(2)).upper_bound < 10
