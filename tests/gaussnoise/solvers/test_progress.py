"""Watching a solve and stopping it: reports are certified, and so is the answer after Ctrl-C."""

import contextlib
import io
import itertools
import math
import os
import re
import signal
import sys
import threading
import warnings

import networkx as nx
import numpy as np
import pytest
import rich.console
import rich.progress
from cases import spread

import gaussnoise as gn
import gaussnoise.numerics.pairs as pairs_module
import gaussnoise.solvers.points.candidates as candidates_module
import gaussnoise.solvers.progress as progress_module
from gaussnoise import FiniteSet
from gaussnoise.errors import ConvergenceWarning, DomainTooLargeError, ParameterError
from gaussnoise.solvers.points.fidelity import Fidelity

RNG = np.random.default_rng(0)
FEW = FiniteSet(RNG.normal(size=(30, 3)))
MANY = FiniteSet(RNG.normal(size=(300, 4)))
CROSS = np.vstack([np.eye(3), -np.eye(3)])
HEAVY = FiniteSet(np.random.default_rng(3).standard_t(2, size=(60, 10)))
LONG = FiniteSet(np.random.default_rng(4).normal(size=(400, 3)))
AT_ONCE = FiniteSet(np.random.default_rng(5).normal(size=(45, 30)))
FLAT = FiniteSet(RNG.normal(size=(20, 2)) @ RNG.normal(size=(2, 5)))

SOLVES = {
    "gamma": lambda **options: gn.gamma(FEW, 2, **options),
    "gamma, p=∞": lambda **options: gn.gamma(FEW, math.inf, **options),
    "add-remove, p=3": lambda **options: gn.optimal_noise(
        FEW, 3, neighbors="add-remove", **options
    ),
    "replace, listed": lambda **options: gn.optimal_noise(FEW, 2, **options),
    "replace, all pairs at once": lambda **options: gn.optimal_noise(AT_ONCE, 3, **options),
    "replace, generated": lambda **options: gn.optimal_noise(MANY, 2, **options),
    "replace, generated, p=∞": lambda **options: gn.optimal_noise(MANY, math.inf, **options),
    "add-remove, generated": lambda **options: gn.optimal_noise(
        LONG, 3, neighbors="add-remove", **options
    ),
    "policy": lambda **options: gn.optimal_noise(FEW, 3, neighbors=nx.cycle_graph(30), **options),
    "heavy tails": lambda **options: gn.gamma(HEAVY, math.inf, **options),
    "rank-deficient": lambda **options: gn.gamma(FLAT, 8, **options),
    "tiny": lambda **options: gn.gamma(FiniteSet(1e-150 * FEW.points), 3, **options),
}
every = pytest.mark.parametrize("solve", SOLVES.values(), ids=SOLVES.keys())
PAIRS = ["replace, generated", "replace, generated, p=∞"]
GENERATED = [*PAIRS, "add-remove, generated"]


def heard(solve, **options):
    """Return all reports of a solve, and its answer."""
    reports = []
    return reports, solve(progress=reports.append, **options)


# Reports


@every
def test_every_report_brackets_the_answer(solve):
    reports, noise = heard(solve)
    assert len(reports) > 1
    for now in reports:
        assert isinstance(now, gn.results.Progress)
        assert 0 < now.lower <= now.upper
        assert now.lower <= noise.gamma * (1 + 1e-9)
        assert now.upper >= noise.gamma_lower * (1 - 1e-9)
        assert now.gap == now.upper / now.lower - 1


@every
def test_steps_and_lower_ends_never_go_back(solve):
    reports, _ = heard(solve)
    for before, after in itertools.pairwise(reports):
        assert after.steps >= before.steps
        assert after.lower >= before.lower
        assert after.gap <= before.gap


@every
def test_the_first_report_is_the_first_step(solve):
    reports, noise = heard(solve)
    assert reports[0].steps == 1
    assert {now.steps for now in reports} == set(range(1, noise.steps + 1))


@every
def test_the_last_report_is_the_answer(solve):
    reports, noise = heard(solve)
    last = reports[-1]
    assert last.steps == noise.steps
    assert last.gap <= 1e-6
    assert last.upper == pytest.approx(noise.gamma, rel=1e-6)
    assert last.lower == pytest.approx(noise.gamma_lower, rel=1e-6)


@every
def test_watching_changes_nothing(solve):
    _, watched = heard(solve)
    alone = solve()
    assert (watched.gamma, watched.gamma_lower, watched.steps) == (
        alone.gamma,
        alone.gamma_lower,
        alone.steps,
    )
    np.testing.assert_array_equal(watched.covariance.factor(), alone.covariance.factor())


def test_reports_are_of_the_asked_tolerance():
    reports, noise = heard(SOLVES["gamma"], tol=1e-2)
    assert len(reports) == noise.steps
    assert reports[-1].gap <= 1e-2
    assert reports[-2].gap > 0.9e-2  # a tenth is left for what checking adds


def test_a_closed_form_and_a_single_point_report_nothing():
    for domain in (gn.Marginals.all_kway((2, 3), 1), FiniteSet([[1.0, 2.0]]), FiniteSet(np.eye(3))):
        reports, noise = heard(lambda domain=domain, **options: gn.gamma(domain, **options))
        assert reports == []
        assert noise.steps == 0


# nearly symmetric, up to 1e-8: the first step is as good as the last, and no closed form applies
@pytest.mark.parametrize(
    "points", [S * np.linspace(1, 1 + 1e-8, len(S))[:, None] for S in (np.eye(4), CROSS)]
)
@pytest.mark.parametrize("p", [2, 3, math.inf])
def test_a_solve_that_starts_at_its_optimum_reports_a_bracket(points, p, terminal):
    for solve in (gn.gamma, gn.optimal_noise):
        reports, noise = heard(
            lambda solve=solve, **options: solve(FiniteSet(points), p, **options)
        )
        assert reports
        assert all(now.lower <= now.upper for now in reports)
        assert solve(FiniteSet(points), p, progress=True).gamma == noise.gamma


def test_an_unknown_lower_end_leaves_an_infinite_gap():
    assert gn.results.Progress(1, 0.0, 3.0).gap == math.inf


def test_a_failing_callback_is_the_callers_error():
    def fail(now):
        raise LookupError("mine")

    for solve in SOLVES.values():
        with pytest.raises(LookupError, match="mine"):
            solve(progress=fail)


@pytest.mark.parametrize("progress", [1, "yes", np.True_])
def test_other_things_are_refused_before_any_work(progress):
    with pytest.raises(ParameterError, match="progress"):
        gn.gamma(FEW, progress=progress)


@pytest.mark.parametrize("progress", [False, None])
def test_silence_is_silent(progress, capsys):
    gn.gamma(FEW, progress=progress)
    assert capsys.readouterr() == ("", "")


class Screen(io.StringIO):
    """A standard error that is, or is not, a terminal."""

    def __init__(self, watched):
        super().__init__()
        self.watched = watched

    def isatty(self):
        return self.watched


@pytest.mark.parametrize(
    ("watched", "after", "told", "seen"),
    [
        (True, 0.0, False, True),
        (True, 60.0, False, False),
        (False, 0.0, False, False),
        (True, 0.0, True, False),
    ],
)
def test_long_work_draws_a_bar_by_default_on_terminals_alone(
    monkeypatch, watched, after, told, seen
):
    screen = Screen(watched)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress_module, "_AFTER", after)
    with progress_module.told() if told else contextlib.nullcontext():
        with progress_module.counting(None, 10, "cells") as say:
            say(7, 10)
            for _ in range(100 if seen else 1):
                if "cells" in screen.getvalue():
                    break
                threading.Event().wait(0.05)
            inner = screen.getvalue().count("step")
            gn.gamma(FEW)  # no second bar inside the first
    assert ("7 of 10 cells" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())) == seen
    assert screen.getvalue().count("step") == inner == 0


@pytest.mark.parametrize("watched", [True, False])
def test_a_search_of_several_steps_draws_one_bar_on_terminals_alone(monkeypatch, watched):
    noise_module = sys.modules["gaussnoise.streams.noise"]  # its function has the same name
    screen, drawn = Screen(watched), threading.Event()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress_module, "_AFTER", 0.0)
    found = noise_module.few_states

    def late(*arguments):
        while watched and "searching noise" not in screen.getvalue():
            drawn.wait(0.05)
        return found(*arguments)

    monkeypatch.setattr(noise_module, "few_states", late)
    gn.streams.noise(gn.streams.prefix_sums(8), states=2)
    assert ("searching noise" in screen.getvalue()) == watched
    assert "solving" not in screen.getvalue()  # no bar of a step beside it


# The bar


@pytest.fixture
def terminal(monkeypatch):
    """Return what rich draws on a terminal."""
    drawn = io.StringIO()
    console = rich.console.Console(file=drawn, force_terminal=True, width=100, _environ={})
    monkeypatch.setattr(rich.progress, "get_console", lambda: console)
    return drawn


@every
def test_the_bar_draws_the_last_step_and_its_gap(solve, terminal):
    noise = solve(progress=True)
    text = terminal.getvalue()
    assert f"step {noise.steps}" in text
    assert "of 1e-06" in text
    assert text.rstrip().endswith("\x1b[?25h"), "the cursor comes back"


def test_the_bar_leaves_answers_alone(terminal):
    assert gn.gamma(FEW, progress=True).gamma == gn.gamma(FEW).gamma


def test_the_bar_survives_a_solve_without_steps(terminal):
    assert gn.gamma(FiniteSet([[1.0, 2.0]]), progress=True).gamma == 0


def test_the_bar_goes_away_when_a_solve_fails(terminal, monkeypatch):
    monkeypatch.setattr(pairs_module, "_MOST_OPERATIONS", 10)
    with pytest.raises(DomainTooLargeError):
        gn.optimal_noise(MANY, progress=True)
    assert "\x1b[?25h" in terminal.getvalue()


def test_the_bar_may_be_interrupted(terminal, monkeypatch):
    evaluate, seen = Fidelity.at, []

    def press(self, *arguments):
        seen.append(1)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return evaluate(self, *arguments)

    monkeypatch.setattr(Fidelity, "at", press)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        noise = gn.gamma(FEW, progress=True)
    assert noise.status is gn.results.Status.INTERRUPTED
    assert "\x1b[?25h" in terminal.getvalue()


# Ctrl-C


def pressed(solve, report):
    """Return the answer when Ctrl-C arrives during a report (counted from one), and its
    warnings.
    """
    seen = []

    def press(now):
        seen.append(now)
        if len(seen) == report:
            raise KeyboardInterrupt

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return solve(progress=press), caught, seen


@every
def test_ctrl_c_returns_the_best_certified_answer_so_far(solve):
    reports, solved = heard(solve)
    for report in spread(len(reports)):
        noise, caught, seen = pressed(solve, report)
        assert len(seen) <= report + 1  # an interrupted round is still certified, and told
        assert noise.steps == reports[report - 1].steps
        noise.verify()
        assert noise.gamma_lower <= solved.gamma * (1 + 1e-9)
        assert noise.gamma >= solved.gamma_lower * (1 - 1e-9)
        if noise.gap <= 1e-6:
            assert noise.status is gn.results.Status.SOLVED
            assert not caught
        else:
            assert noise.status is gn.results.Status.INTERRUPTED
            (warning,) = caught
            assert warning.category is ConvergenceWarning
            assert "Interrupted" in str(warning.message)
            assert warning.filename == __file__


@pytest.mark.parametrize("name", [name for name in SOLVES if name not in GENERATED])
def test_ctrl_c_returns_the_bracket_last_reported(name):
    reports, _ = heard(SOLVES[name])
    for report in range(1, len(reports) + 1):
        noise, _, seen = pressed(SOLVES[name], report)
        assert noise.gap <= seen[-1].gap * (1 + 1e-6) + 1e-9
        assert noise.gamma <= seen[-1].upper * (1 + 1e-9)


@pytest.mark.parametrize("name", GENERATED)
def test_ctrl_c_never_loses_a_finished_round(name):
    reports, _ = heard(SOLVES[name])
    for report in range(1, len(reports) + 1):
        noise, _, seen = pressed(SOLVES[name], report)
        finished = [now.gap for now in seen if math.isfinite(now.gap)]
        assert noise.gap <= min(finished, default=math.inf) * (1 + 1e-6) + 1e-9


@every
def test_a_callback_may_keep_interrupting(solve):
    def late(now):
        if now.steps >= 4:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        noise = solve(progress=late)
    assert noise.status is gn.results.Status.INTERRUPTED
    assert noise.steps == 4
    noise.verify()


def raising(function, call):
    """Return ``function``, interrupted at one of its calls (counted from one)."""
    calls = []

    def wrapped(*arguments, **options):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    return wrapped


@every
def test_ctrl_c_before_the_first_certified_step_is_passed_on(solve, monkeypatch):
    monkeypatch.setattr(Fidelity, "at", raising(Fidelity.at, 1))
    with pytest.raises(KeyboardInterrupt):
        solve()


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(("call", "passed_on"), [(1, True), (2, True), (3, False), (4, False)])
def test_ctrl_c_while_looking_for_far_pairs(monkeypatch, name, call, passed_on):
    # call 1 looks for pairs to begin with, call 2 certifies the first round
    monkeypatch.setattr(candidates_module, "far_pairs", raising(candidates_module.far_pairs, call))
    if passed_on:
        with pytest.raises(KeyboardInterrupt):
            SOLVES[name]()
    else:
        with pytest.warns(ConvergenceWarning, match="Interrupted"):
            noise = SOLVES[name]()
        assert noise.status is gn.results.Status.INTERRUPTED
        noise.verify()


@pytest.mark.parametrize("name", ["gamma, p=∞", "replace, listed", "replace, generated"])
def test_ctrl_c_at_any_evaluation(monkeypatch, name):
    solved, whole, stopped = SOLVES[name](), Fidelity.at, 0
    for call in itertools.count(1):
        monkeypatch.setattr(Fidelity, "at", raising(whole, call))
        reports = []
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            try:
                noise = SOLVES[name](progress=reports.append)
            except KeyboardInterrupt:
                assert all(math.isinf(now.upper) for now in reports)
                continue
        noise.verify()
        assert noise.gamma >= solved.gamma_lower
        if noise.status is gn.results.Status.SOLVED:
            break
        assert noise.status is gn.results.Status.INTERRUPTED
        stopped += 1
    assert stopped >= solved.steps - 2


@pytest.fixture
def _heard():
    """Ctrl-C is heard, even where the tests were started with it ignored, as shells do with
    ``&``.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_heard")
def test_a_real_signal_is_the_same():
    def press(now):
        if now.steps == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        noise = gn.gamma(FEW, progress=press)
    assert noise.status is gn.results.Status.INTERRUPTED
    noise.verify()


def test_an_interrupted_answer_survives_a_file_and_calibrates_a_mechanism(tmp_path):
    noise, _, _ = pressed(SOLVES["replace, listed"], 2)
    noise.save(tmp_path / "noise.npz")
    loaded = gn.OptimalNoise.load(tmp_path / "noise.npz")
    assert loaded.status is gn.results.Status.INTERRUPTED
    mechanism = gn.GaussianMechanism(loaded, gn.zCDP(0.5), n=10)
    assert mechanism.rho_charged == pytest.approx(0.5, rel=1e-9)
