"""A generator's noise, from its answers to unit vectors, against its own statements."""

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise import streams
from gaussnoise.errors import ParameterError

WORKLOADS = {
    "totals": (streams.prefix_sums(48), 4),
    "momentum": (streams.momentum(40, 0.9, weight_decay=0.001), 3),
    "means": (streams.running_means(40), 1),
    "third order": (streams.recurrence(30, [0.5, -0.25, 0.125]), 2),
}


@pytest.fixture(
    scope="module", params=[(name, loss) for name in WORKLOADS for loss in ("mean", "max")], ids=str
)
def made(request):
    name, loss = request.param
    workload, states = WORKLOADS[name]
    return workload, loss, streams.noise(workload, states=states, error=loss)


def mixing(generator):
    """Return a matrix whose row t combines the fresh draws in tick t's noise."""
    start = generator.state_dict()
    rows = np.array([generator.correlate(unit) for unit in np.eye(generator.ticks)])
    generator.load_state_dict(start)
    return rows


def test_a_person_is_seen_with_sensitivity_one(made):
    _, _, generator = made
    made = mixing(generator)
    assert not np.triu(made, 1).any()
    longest = np.linalg.norm(np.linalg.inv(made), axis=0).max()
    assert longest <= 1 + 1e-9
    assert longest >= 1 - 1e-6


def test_the_answers_have_the_stated_deviations(made):
    workload, loss, generator = made
    left = workload.toarray() @ mixing(generator)
    deviations = np.linalg.norm(left, axis=1)
    np.testing.assert_allclose(generator.standard_deviation, deviations, rtol=1e-9)
    error = deviations.max() if loss == "max" else np.sqrt((deviations**2).mean())
    assert generator.error == pytest.approx(error, rel=1e-9)


def test_few_states_are_nearly_the_best_of_all_noise(made):
    workload, loss, generator = made
    p = np.inf if loss == "max" else 2
    best = gn.optimal_noise(
        gn.FiniteSet.from_workload(workload.toarray()), p, neighbors="add-remove"
    )
    lower = best.gamma_lower / (1 if loss == "max" else np.sqrt(workload.ticks))
    assert generator.lower == pytest.approx(lower, rel=2e-6)
    assert 1 <= generator.factor < 1.01


def test_its_strategy_can_be_certified(made):
    workload, loss, generator = made
    found = gn.certify(generator, workload, p=np.inf if loss == "max" else 2)
    assert found.factor == pytest.approx(generator.factor, rel=1e-5)
    assert found.sensitivity == pytest.approx(1, rel=1e-6)


def test_more_states_are_better():
    factors = [
        streams.noise(streams.prefix_sums(64), states=states).factor for states in (1, 2, 3, 4)
    ]
    assert factors == sorted(factors, reverse=True)
    assert factors[1] < 1.001
    assert factors[3] < 1.0001


@pytest.mark.parametrize(("states", "toeplitz"), [(2, 1.039), (4, 1.0367)])
def test_few_states_leave_a_tenth_of_what_toeplitz_matrices_leave(states, toeplitz):
    """Buffered Toeplitz matrices of as many states, optimised by jax_privacy for 256 totals."""
    found = streams.noise(streams.prefix_sums(256), states=states)
    assert found.buffers == states
    assert found.factor - 1 < (toeplitz - 1) / 10


def test_a_saved_state_goes_on_with_the_same_noise(made):
    workload, loss, generator = made
    draws = np.random.default_rng(0).normal(size=(10, 3))
    start = generator.state_dict()
    whole = [generator.correlate(draw) for draw in draws]
    generator.load_state_dict(start)
    for draw in draws[:4]:
        generator.correlate(draw)
    again = streams.noise(workload, states=dict(WORKLOADS.values())[workload], error=loss)
    again.load_state_dict(generator.state_dict())
    np.testing.assert_array_equal([again.correlate(draw) for draw in draws[4:]], whole[4:])
    generator.load_state_dict(start)


def test_a_state_of_another_design_is_refused():
    state = streams.noise(streams.prefix_sums(8)).state_dict()
    with pytest.raises(ParameterError, match="another one"):
        streams.noise(streams.prefix_sums(9)).load_state_dict(state)


def test_draws_of_the_operating_system_are_normal_and_never_the_same():
    generator = streams.noise(streams.prefix_sums(2))
    first, again = generator.next(4000), streams.noise(streams.prefix_sums(2)).next(4000)
    assert not np.array_equal(first, again)
    unit = first / np.sqrt(mixing(streams.noise(streams.prefix_sums(2)))[0] @ np.ones(2) ** 2) ** 2
    # six standard deviations of a mean, and of a mean square, of 4000 normal numbers
    assert abs(unit.mean()) < 6 / np.sqrt(4000)
    assert abs((unit**2).mean() - 1) < 6 * np.sqrt(2 / 4000)


def test_the_stream_ends_and_keeps_its_shape():
    generator = streams.noise(streams.prefix_sums(2))
    generator.next((2, 3))
    with pytest.raises(ParameterError, match="shape"):
        generator.next(5)
    assert generator.next((2, 3)).shape == (2, 3)
    with pytest.raises(ParameterError, match="all 2 ticks"):
        generator.next((2, 3))


def test_other_arrays_stay_what_they_are():
    jnp = pytest.importorskip("jax.numpy")
    made = streams.noise(streams.prefix_sums(3)).correlate(jnp.ones(2))
    assert isinstance(made, type(jnp.ones(2)))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((np.tri(4),), "workload over time"),
        ((streams.prefix_sums(1),), "two ticks"),
        ((streams.prefix_sums(9), 4.5), "states >= 1"),
        ((streams.prefix_sums(9), 0), "states >= 1"),
        ((streams.prefix_sums(9), 4, "median"), "'mean' or 'max'"),
    ],
)
def test_what_cannot_be_made_is_refused(arguments, said):
    with pytest.raises(ParameterError, match=said):
        streams.noise(arguments[0], **dict(zip(("states", "error"), arguments[1:], strict=False)))
