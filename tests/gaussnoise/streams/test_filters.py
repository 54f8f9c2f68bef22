"""Noise of few states against dense matrices and rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from gaussnoise.solvers.streams.filters import filter_of, resolvent_traces

PREFIX, MOMENTUM, THIRD = [1, -1], [1, -1.9, 0.9], [1, -0.5, 0.25, -0.125]


def workload(coefficients, n):
    """Return the bands of A⁻¹ in the solver's form, and A⁻¹ as a dense matrix."""
    bands = np.array([np.full(n, x, dtype=float) for x in coefficients])
    for m, band in enumerate(bands):
        band[:m] = 0
    inverse = sum(np.diag(band[m:], -m) for m, band in enumerate(bands))
    return bands, inverse


def chosen(coefficients, n, nodes=3):
    rng = np.random.default_rng(len(coefficients))
    bands, inverse = workload(coefficients, n)
    weights, coordinates = rng.uniform(0.5, 1.5, (2, n))
    shifts = np.geomspace(0.01, 100, nodes)
    return bands, inverse, weights / n, coordinates, np.sqrt(shifts), shifts * n


def covariance(inverse, weights, coordinates, sizes, shifts):
    return sum(
        c * np.linalg.inv(inverse.T / weights @ inverse + s * np.diag(coordinates))
        for c, s in zip(sizes, shifts, strict=True)
    )


every_workload = pytest.mark.parametrize("coefficients", [PREFIX, MOMENTUM, THIRD])


@every_workload
def test_variances_are_those_of_the_sum_of_resolvents(coefficients):
    bands, inverse, *given = chosen(coefficients, 40)
    expected = covariance(inverse, *given).diagonal()
    np.testing.assert_allclose(filter_of(bands, *given).variances(), expected, rtol=1e-11)


@every_workload
def test_columns_are_those_of_the_whitened_workload(coefficients):
    bands, inverse, *given = chosen(coefficients, 40)
    L = np.linalg.cholesky(covariance(inverse, *given))
    C = np.linalg.solve(L, np.linalg.inv(inverse))
    np.testing.assert_allclose(
        filter_of(bands, *given).squared_columns(), (C**2).sum(axis=0), rtol=1e-9
    )


def exact_columns(design):
    """Return squared columns of C from exactly the stored numbers, by rational arithmetic,
    contribution by contribution.
    """
    n, q, b = design.steps.shape
    bands, steps, gains, scales = (
        np.vectorize(Fraction, otypes=[object])(part)
        for part in (design.bands, design.steps, design.gains, design.scales)
    )
    columns = []
    for i in range(n):
        states, answers, total = np.full((q, b), Fraction(0)), [Fraction(0)] * b, Fraction(0)
        for t in range(n):
            if t:
                newest = (steps[t] * states).sum(axis=1)
                states = np.column_stack([newest, states[:, :-1]])
            answer = (
                Fraction(int(t == i)) - sum(bands[m, t] * answers[m - 1] for m in range(1, b + 1))
            ) / bands[0, t]
            draw = (answer - states[:, 0].sum()) / scales[t]
            states = states + gains[t] * draw
            answers = [answer, *answers[:-1]]
            total += draw**2
        columns.append(total)
    return columns


@every_workload
def test_squared_columns_bound_those_of_the_stored_numbers(coefficients):
    bands, _, *given = chosen(coefficients, 9, nodes=2)
    design = filter_of(bands, *given)
    exact = exact_columns(design)
    found = [Fraction(float(x)) for x in design.squared_columns()]
    assert all(upper >= true for upper, true in zip(found, exact, strict=True))
    assert all(
        upper <= true * (1 + Fraction(1, 10**9)) for upper, true in zip(found, exact, strict=True)
    )


@every_workload
def test_traces_of_resolvents(coefficients):
    bands, inverse, weights, coordinates, _, shifts = chosen(coefficients, 30)
    root = np.diag(coordinates**-0.5)
    T = root @ inverse.T @ np.diag(1 / weights) @ inverse @ root
    expected = [np.trace(np.linalg.inv(T + s * np.eye(30))) for s in shifts]
    np.testing.assert_allclose(
        resolvent_traces(bands, weights, coordinates, shifts), expected, rtol=1e-12
    )


def test_a_scaled_filter_has_scaled_noise_and_shorter_columns():
    bands, _, *given = chosen(MOMENTUM, 20)
    design = filter_of(bands, *given)
    np.testing.assert_allclose(design.scaled(3.0).variances(), 9 * design.variances())
    np.testing.assert_allclose(
        design.scaled(3.0).squared_columns(), design.squared_columns() / 9, rtol=1e-9
    )
