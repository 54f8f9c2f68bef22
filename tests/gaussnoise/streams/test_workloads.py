"""Workloads over time: each against its definition, written out in plain loops; what is no workload is refused."""

from fractions import Fraction

import numpy as np
import pytest

import gaussnoise as gn
from domains import FiniteSet
from domains.sets.stream import Stream

streams = gn.streams


def momentum_matrix(n, beta, decay, rates):
    """Column i: the models that a gradient of one at tick i makes, step by step."""
    columns = []
    for i in range(n):
        velocity = model = 0.0
        column = []
        for t in range(n):
            velocity = beta * velocity + (t == i)
            model = (1 - decay) * model + rates[t] * velocity
            column.append(model)
        columns.append(column)
    return np.array(columns).T


RATES = np.linspace(1.0, 0.1, 9)

DEFINITIONS = {
    "prefix sums": (streams.prefix_sums(9), np.tri(9)),
    "decayed sums": (
        streams.decayed_sums(9, 0.5),
        np.tril(0.5 ** np.maximum(np.subtract.outer(np.arange(9.0), np.arange(9.0)), 0)),
    ),
    "running means": (streams.running_means(9), np.tri(9) / np.arange(1, 10)[:, None]),
    "momentum": (streams.momentum(9, 0.9), momentum_matrix(9, 0.9, 0.0, np.ones(9))),
    "momentum, decay and schedule": (streams.momentum(9, 0.9, 0.01, RATES), momentum_matrix(9, 0.9, 0.01, RATES)),
    "no momentum": (streams.momentum(9, 0, 0.25), momentum_matrix(9, 0.0, 0.25, np.ones(9))),
    "window of all": (streams.sliding_windows(9, 12), np.tri(9)),
    "window of one": (streams.sliding_windows(9, 1), np.eye(9)),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_workload_is_its_definition(name):
    workload, A = DEFINITIONS[name]
    assert isinstance(workload, Stream)
    np.testing.assert_allclose(workload.toarray(), A, rtol=1e-13)
    x = np.random.default_rng(0).normal(size=(9, 2))
    np.testing.assert_allclose(workload.apply(x), A @ x, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(workload.transpose_apply(x[:, 0]), A.T @ x[:, 0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(workload.solve(workload.apply(x)), x, rtol=1e-12, atol=1e-13)


def test_windows_that_slide_are_written_out():
    workload = streams.sliding_windows(5, 2)
    assert isinstance(workload, FiniteSet)
    A = [[1.0 if t - 2 < i <= t else 0.0 for i in range(5)] for t in range(5)]
    np.testing.assert_array_equal(workload.points.T, A)


def test_one_tick_is_a_workload():
    for make in (streams.prefix_sums, streams.running_means, lambda n: streams.momentum(n, 0.9)):
        np.testing.assert_array_equal(make(1).toarray(), [[1.0]])


@pytest.mark.parametrize(
    "A", [np.tri(7), np.diag([1.0, 2, 4]), np.tri(6) @ np.tri(6)], ids=["sums", "diagonal", "twice"]
)
def test_a_matrix_with_a_banded_inverse_is_found_out_exactly(A):
    workload = streams.matrix(A)
    assert isinstance(workload, Stream)
    np.testing.assert_array_equal(workload.toarray(), A)
    n = len(A)
    inverse = [
        [Fraction(float(workload.bands[i - j, j])) if 0 <= i - j < len(workload.bands) else 0 for j in range(n)]
        for i in range(n)
    ]
    exact = [[sum(inverse[i][k] * Fraction(float(A[k, j])) for k in range(n)) for j in range(n)] for i in range(n)]
    assert exact == [[int(i == j) for j in range(n)] for i in range(n)]


@pytest.mark.parametrize(
    "A",
    [
        np.tri(7) / np.arange(1, 8)[:, None],  # thirds are rounded: no inverse of doubles
        np.tri(7) + 1e-13 * np.eye(7),
        np.tri(7) - np.tri(7, k=-3),
        np.diag([1.0, 0.0, 2.0]),
    ],
)
def test_a_matrix_that_is_only_nearly_such_a_one_stays_dense(A):
    workload = streams.matrix(A)
    assert isinstance(workload, FiniteSet)
    np.testing.assert_array_equal(workload.points.T, A)


def test_the_columns_are_the_points():
    workload = streams.running_means(6)
    A = workload.toarray()
    assert all(workload.contains(column) for column in A.T)
    assert not workload.contains(np.zeros(6))
    assert not workload.contains(A[:, 0] + np.eye(6)[5])
    np.testing.assert_array_equal(workload.to_finite_set().points, A.T)


def test_a_workload_too_large_to_write_out_still_answers():
    workload = streams.prefix_sums(10**6)
    assert workload.apply(np.ones(10**6))[-1] == 10**6
    assert workload.support(-np.ones(10**6)) == -1.0
    with pytest.raises(gn.DomainTooLargeError, match=r"1000000 ticks needs 8e\+03 GB; hint: apply"):
        workload.to_finite_set()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: streams.prefix_sums(0), "n >= 1"),
        (lambda: streams.prefix_sums(2.5), "n >= 1"),
        (lambda: streams.decayed_sums(4, 0), r"decay in \(0, 1\]"),
        (lambda: streams.decayed_sums(4, 1.5), r"decay in \(0, 1\]"),
        (lambda: streams.decayed_sums(4, float("nan")), r"decay in \(0, 1\]"),
        (lambda: streams.momentum(4, 1.0), r"momentum in \[0, 1\)"),
        (lambda: streams.momentum(4, 0.9, -0.1), r"weight_decay in \[0, 1\)"),
        (lambda: streams.momentum(4, 0.9, schedule=[1, 1, 1]), r"schedule of shape \(4,\)"),
        (lambda: streams.momentum(4, 0.9, schedule=[1, 1, 0, 1]), "positive learning rates"),
        (lambda: streams.sliding_windows(4, 0), "width >= 1"),
        (lambda: streams.sliding_windows(10**5, 5), "n <= 8192"),
        (lambda: streams.recurrence(3, []), "between 1 and n"),
        (lambda: streams.recurrence(3, [1.0, [1.0, 2.0, 3.0]]), r"coefficients\[1\] of shape \(2,\)"),
        (lambda: streams.recurrence(3, [[1.0, 0.0, 1.0]]), "without zeros"),
        (lambda: streams.matrix([[1.0, 1.0], [0.0, 1.0]]), "lower triangular"),
        (lambda: streams.matrix([[1.0, 1.0]]), "square"),
        (lambda: streams.matrix([[np.inf]]), "finite"),
        (lambda: Stream([[1.0, 1.0], [-1.0, -1.0]]), "zeros as the last k"),
        (lambda: Stream([1.0, 1.0]), "shape"),
        (lambda: Stream([[1.0], [np.nan]]), "shape"),
        (lambda: Stream([[np.nan]]), "NaN"),
        (lambda: Stream([["a"]]), "real numbers"),
        (lambda: streams.prefix_sums(3).apply([1.0]), r"shape \(3,\)"),
        (lambda: streams.recurrence(2000, [1.0, -2.0]).apply(np.ones(2000)), "the recursion grows"),
    ],
)
def test_what_is_no_workload_is_refused(wrong, message):
    with pytest.raises((gn.ParameterError, gn.InvalidDomainError, gn.DimensionError), match=message):
        wrong()
