"""Noise of few states for people who take part more than once: one person's move, the error, and
that the noise is made as stated.
"""

from fractions import Fraction

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise import streams
from gaussnoise.bounds.certify import sensitivity_of
from gaussnoise.errors import InvalidDomainError, ParameterError
from gaussnoise.solvers.streams.recursions import Recursion

CASES = {
    "epochs": (streams.prefix_sums(16), streams.Epochs(16, 4), "mean"),
    "epochs, max": (streams.prefix_sums(16), streams.Epochs(16, 4), "max"),
    "apart": (streams.prefix_sums(12), streams.Apart(12, 3, 4), "mean"),
    "any, counts": (streams.prefix_sums(10), streams.AnyOf(10, 2, kind="counts"), "mean"),
    "window": (streams.decayed_sums(10, 0.9), streams.Window(10, 3), "mean"),
    "momentum": (streams.momentum(12, 0.9), streams.Epochs(12, 3), "mean"),
}


@pytest.fixture(scope="module", params=CASES)
def made(request):
    workload, who, loss = CASES[request.param]
    return workload, who, loss, streams.noise(workload, states=2, error=loss, participation=who)


def mixing(generator):
    """Return a matrix whose row t combines the fresh draws in tick t's noise."""
    start = generator.state_dict()
    rows = np.array([generator.correlate(unit) for unit in np.eye(generator.ticks)])
    generator.load_state_dict(start)
    return rows


def most_moved(strategy, who, rng, tries=300):
    """Return the largest move of one person, among many: the same vector in all ticks, its negative
    in every second, or random ones.
    """
    most = 0.0
    for row in who.maximal().tolist():
        ticks = [t for t in row if t < who.n]
        signs = (-1.0) ** np.arange(len(ticks))
        vectors = [np.ones((len(ticks), 1))]
        if who.kind == "vectors":
            random = rng.normal(size=(tries // len(who.maximal()) + 1, len(ticks), 3))
            vectors += [signs[:, None], *(random / np.linalg.norm(random, axis=2, keepdims=True))]
        most = max(most, *(float(np.linalg.norm(strategy[:, ticks] @ u)) for u in vectors))
    return most


def test_no_person_is_seen_with_more_than_sensitivity_one(made):
    _, who, _, generator = made
    strategy = np.linalg.inv(mixing(generator))
    np.testing.assert_allclose(strategy, generator.toarray(), atol=1e-9 * np.abs(strategy).max())
    most = most_moved(strategy, who, np.random.default_rng(0))
    assert 0.97 < most <= 1 + 1e-9


def test_noise_for_one_participation_is_too_little():
    """Check that the same test refuses a generator that is not made for it."""
    who = streams.Epochs(16, 4)
    once = np.linalg.inv(mixing(streams.noise(streams.prefix_sums(16))))
    assert most_moved(once, who, np.random.default_rng(0)) > 1.5


def test_the_answers_have_the_stated_deviations(made):
    workload, _, loss, generator = made
    deviations = np.linalg.norm(workload.toarray() @ mixing(generator), axis=1)
    np.testing.assert_allclose(generator.standard_deviation, deviations, rtol=1e-9)
    error = deviations.max() if loss == "max" else np.sqrt((deviations**2).mean())
    assert generator.error == pytest.approx(error, rel=1e-9)


def test_its_strategy_is_certified_as_stated(made):
    workload, who, loss, generator = made
    p = np.inf if loss == "max" else 2
    found = gn.certify(generator, workload.toarray(), participation=who, p=p)
    assert found.sensitivity == pytest.approx(1, rel=1e-6)
    assert found.factor == pytest.approx(generator.factor, rel=2e-4)
    assert 1 <= generator.factor < 1.06
    own = gn.certify(generator, workload.toarray(), p=p)  # the generator knows its own rule
    assert (own.sensitivity, own.error) == (found.sensitivity, found.error)
    assert repr(who) in repr(generator)
    once = gn.certify(
        streams.noise(workload, error=loss), workload.toarray(), participation=who, p=p
    )
    assert generator.factor < once.factor


@pytest.mark.parametrize(("states", "toeplitz", "most"), [(1, 1.115, 1.065), (2, 1.110, 1.045)])
def test_it_beats_the_best_toeplitz_matrix_of_as_many_states(states, toeplitz, most):
    """The second number is for the best buffered Toeplitz matrix of as many states, found by the
    same search with constant coefficients.
    """
    made = streams.noise(
        streams.prefix_sums(64), states=states, participation=streams.Epochs(64, 4)
    )
    assert made.buffers == states
    assert made.factor < most < toeplitz


def test_sets_that_are_too_many_to_list_are_protected_all_the_same(monkeypatch):
    workload, who = streams.prefix_sums(12), streams.Apart(12, 3, 4)
    listed = streams.noise(workload, states=2, participation=who)
    monkeypatch.setattr(streams.Apart, "lists_few", False)
    made = streams.noise(workload, states=2, participation=who)
    most = most_moved(np.linalg.inv(mixing(made)), who, np.random.default_rng(0))
    assert most <= 1 + 1e-9
    assert sensitivity_of(made.toarray(), who) == pytest.approx(1, rel=1e-6)
    # entries between ticks that are 8 or more apart are charged at their largest: few are
    assert made.error < 1.02 * listed.error


def test_what_rounding_adds_to_a_strategy_is_bounded():
    rng = np.random.default_rng(0)
    n, q = 9, 3
    for _ in range(5):
        d, fading = rng.uniform(0.5, 1, n), rng.uniform(0.2, 0.99, q)
        u, v = rng.normal(size=(2, n, q))
        made = Recursion(streams.prefix_sums(n), d, u, v, fading)
        C = made.strategy()
        for s in range(n):
            lost = sum(
                (
                    Fraction(C[t, s])
                    - sum(
                        Fraction(u[t, j]) * Fraction(v[s, j]) * Fraction(fading[j]) ** (t - s - 1)
                        for j in range(q)
                    )
                )
                ** 2
                for t in range(s + 1, n)
            )
            assert lost <= Fraction(made.rounding()) ** 2


def test_a_saved_state_goes_on_with_the_same_noise(made):
    workload, who, loss, generator = made
    draws = np.random.default_rng(0).normal(size=(8, 3))
    start = generator.state_dict()
    whole = [generator.correlate(draw) for draw in draws]
    generator.load_state_dict(start)
    for draw in draws[:4]:
        generator.correlate(draw)
    again = streams.noise(workload, states=2, error=loss, participation=who)
    again.load_state_dict(generator.state_dict())
    np.testing.assert_array_equal([again.correlate(draw) for draw in draws[4:]], whole[4:])
    generator.load_state_dict(start)
    with pytest.raises(ParameterError, match="another one"):
        streams.noise(workload, error=loss).load_state_dict(start)


@pytest.mark.parametrize(
    ("n", "options", "said"),
    [
        (9, {"states": 0}, "states >= 1"),
        (9, {"states": 1.5}, "states >= 1"),
        (9, {"participation": 4}, "expected a pattern of participation"),
        (513, {"participation": streams.Epochs(513, 2)}, "at most 512 ticks"),
    ],
)
def test_what_cannot_be_made_is_refused(n, options, said):
    given = {"participation": streams.Epochs(9, 3), **options}
    with pytest.raises(ParameterError, match=said):
        streams.noise(streams.prefix_sums(n), **given)
    with pytest.raises(InvalidDomainError, match="patterns over"):
        streams.noise(streams.prefix_sums(8), participation=streams.Epochs(9, 3))
