"""Watching and stopping a solve for repeated participation: reports are brackets, and the answer
after Ctrl-C is certified.
"""

import itertools
import math
import warnings

import numpy as np
import pytest
from cases import spread

import gaussnoise as gn
from gaussnoise.errors import ConvergenceWarning
from gaussnoise.noise import participations
from gaussnoise.solvers.progress import interrupts_pass
from gaussnoise.solvers.streams import exchange, overlapping, separated

Apart, Epochs = gn.streams.Apart, gn.streams.Epochs


def solved(who, p=2.0, **options):
    K = gn.streams.participations(np.tril(np.ones((who.n, who.n))), who)
    return gn.optimal_noise(K, p, neighbors="add-remove", **options)


@pytest.fixture(params=["Newton", "barrier", "column generation"])
def solve(request, monkeypatch):
    """Return one solve of each kind."""
    if request.param == "column generation":
        monkeypatch.setattr(participations, "affordable", lambda *sizes: False)
    who = Epochs(12, 3) if request.param == "Newton" else Apart(7, 3, 2)

    def run(**options):
        noise = solved(who, math.inf, **options)
        assert noise.status is gn.results.Status.INTERRUPTED or request.param in noise.method
        return noise

    return run


def pressed(solve, report):
    """Return the answer when Ctrl-C arrives at a report (counted from one), and the warnings."""
    seen = []

    def press(now):
        seen.append(now)
        if len(seen) == report:
            raise KeyboardInterrupt

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return solve(progress=press), caught, seen


def test_reports_are_brackets_that_narrow(solve):
    reports = []
    noise = solve(progress=reports.append)
    assert len(reports) > 1
    for now in reports:
        assert 0 < now.lower <= now.upper
        assert now.lower <= noise.gamma * (1 + 1e-9)
        assert now.upper >= noise.gamma_lower * (1 - 1e-9)
    for before, after in itertools.pairwise(reports):
        assert after.steps >= before.steps
        assert after.lower >= before.lower
    assert reports[-1].gap <= 1e-6


def test_ctrl_c_returns_the_best_certified_answer_so_far(solve):
    reports = []
    whole = solve(progress=reports.append)
    stopped = 0
    for report in spread(len(reports)):
        noise, caught, seen = pressed(solve, report)
        noise.verify()
        assert noise.gamma_lower <= whole.gamma * (1 + 1e-9)
        assert noise.gamma >= whole.gamma_lower * (1 - 1e-9)
        assert noise.gap <= min(now.gap for now in seen) * (1 + 1e-3) + 1e-6
        if noise.gap <= 1e-6:
            assert noise.status is gn.results.Status.SOLVED
            continue
        stopped += 1
        assert noise.status is gn.results.Status.INTERRUPTED
        (warning,) = caught
        assert warning.category is ConvergenceWarning
        assert "Interrupted" in str(warning.message)
    assert stopped


def raising(function, call):
    """Return ``function``, interrupted at one of its calls (counted from one)."""
    calls = []

    def wrapped(*arguments, **options):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    return wrapped


PLACES = [
    (separated._Search, "newton", Epochs(12, 3), True),
    (overlapping._Path, "newton", Apart(7, 3, 2), True),
    (exchange._Atoms, "at", Apart(7, 3, 2), False),
]


@pytest.mark.parametrize(("owner", "name", "who", "affordable"), PLACES, ids=["N", "b", "c"])
def test_ctrl_c_at_any_evaluation_returns_a_certified_answer_or_is_passed_on(
    owner, name, who, affordable, monkeypatch
):
    if not affordable:
        monkeypatch.setattr(participations, "affordable", lambda *sizes: False)
    whole, function, stopped = solved(who), getattr(owner, name), 0
    for call in (1, 2, 3, 5, 8, 13, 21):
        monkeypatch.setattr(owner, name, raising(function, call))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                noise = solved(who)
            except KeyboardInterrupt:
                assert call < 8
                continue
        noise.verify()
        assert noise.gamma >= whole.gamma_lower * (1 - 1e-9)
        stopped += noise.status is gn.results.Status.INTERRUPTED
    assert stopped


def test_a_solve_that_is_a_step_of_another_task_is_not_kept(solve):
    def press(now):
        raise KeyboardInterrupt

    with interrupts_pass(), pytest.raises(KeyboardInterrupt):
        solve(progress=press)
