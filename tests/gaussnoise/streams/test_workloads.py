"""Workloads over time against their definitions, step by step."""

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise import streams
from gaussnoise.errors import DomainTooLargeError, InvalidDomainError, ParameterError


def steps_of_momentum(gradients, momentum, weight_decay, rates):
    model = velocity = 0.0
    for gradient, rate in zip(gradients, rates, strict=True):
        velocity = momentum * velocity + gradient
        model = (1 - weight_decay) * model + rate * velocity
        yield model


def test_momentum_is_what_the_optimiser_does():
    rng = np.random.default_rng(0)
    gradients, rates = rng.normal(size=20), rng.uniform(0.1, 1, 20)
    workload = streams.momentum(20, 0.9, weight_decay=0.01, schedule=rates)
    np.testing.assert_allclose(
        workload.apply(gradients), [*steps_of_momentum(gradients, 0.9, 0.01, rates)], rtol=1e-9
    )


@pytest.mark.parametrize(
    ("workload", "dense"),
    [
        (streams.prefix_sums(6), np.tri(6)),
        (
            streams.decayed_sums(6, 0.5),
            np.tri(6) * 0.5 ** np.abs(np.subtract.outer(range(6), range(6))),
        ),
        (streams.running_means(6), np.tri(6) / np.arange(1, 7)[:, None]),
        (streams.prefix_sums(1), np.ones((1, 1))),
        (streams.momentum(4, 0.0), np.tri(4)),
    ],
    ids=["totals", "decayed", "means", "one tick", "no momentum"],
)
def test_rows_say_what_is_answered(workload, dense):
    np.testing.assert_allclose(workload.toarray(), dense, rtol=1e-14)
    x = np.random.default_rng(1).normal(size=(workload.ticks, 2))
    np.testing.assert_allclose(workload.apply(x), dense @ x, rtol=1e-12)
    np.testing.assert_allclose(workload.transpose_apply(x[:, 0]), dense.T @ x[:, 0], rtol=1e-12)
    np.testing.assert_allclose(workload.solve(dense @ x), x, rtol=1e-12)


def test_windows_forget_what_is_older():
    np.testing.assert_array_equal(
        streams.sliding_windows(9, 3).points.T @ np.ones(9), [1, 2] + 7 * [3]
    )


@pytest.mark.parametrize("dense", [np.tri(9), np.tri(9) @ np.tri(9), np.diag(np.arange(1.0, 10))])
def test_a_matrix_with_a_banded_inverse_is_recognised(dense):
    found = streams.matrix(dense)
    assert isinstance(found, gn.domains.StreamWorkload)
    np.testing.assert_array_equal(found.toarray(), dense)


def test_a_matrix_without_a_banded_inverse_is_listed():
    dense = np.tri(9) + np.eye(9) * np.pi
    found = streams.matrix(dense)
    assert isinstance(found, gn.FiniteSet)
    np.testing.assert_array_equal(found.points.T, dense)


def test_large_workloads_are_not_formed():
    with pytest.raises(DomainTooLargeError, match="4096"):
        streams.prefix_sums(5000).toarray()
    assert streams.prefix_sums(1_000_000).apply(np.ones(1_000_000))[-1] == 1_000_000


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: streams.prefix_sums(0),
        lambda: streams.prefix_sums(2.5),
        lambda: streams.decayed_sums(3, 1.5),
        lambda: streams.momentum(3, 1.0),
        lambda: streams.momentum(3, 0.9, weight_decay=1.0),
        lambda: streams.momentum(3, 0.9, schedule=[1, 2]),
        lambda: streams.momentum(3, 0.9, schedule=[1, 0, 1]),
        lambda: streams.sliding_windows(3, 4),
        lambda: streams.recurrence(3, []),
        lambda: streams.recurrence(3, [1, [1, 2]]),
        lambda: streams.recurrence(3, [0, 1]),
        lambda: streams.recurrence(2000, [1, -3]),
        lambda: streams.matrix(np.ones((3, 3))),
        lambda: streams.matrix(np.ones((3, 2))),
        lambda: gn.domains.StreamWorkload([[1, 1], [5, 0]]),
        lambda: gn.domains.StreamWorkload("no"),
    ],
)
def test_what_is_no_workload_is_refused(wrong):
    with pytest.raises((ParameterError, InvalidDomainError), match="expected"):
        wrong()
