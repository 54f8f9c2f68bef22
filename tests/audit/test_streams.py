"""Whole streams under the auditor: what all ticks together spend, and kill -9 between counting and
publishing.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import audit_kit as kit
import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.privacy.sampler import noise_stream
from gaussnoise.streams import measure
from gaussnoise.streams.time_strategy import TimeStrategy

CLAIM = kit.gaussian_epsilon(kit.RHO, kit.DELTA)
TICKS, DRAWS = 4, 5000


def planned(reports=1, apart=1, neighbors="add-remove"):
    """Two categories, so that a tick has few integers; whole streams are drawn in this file."""
    schema = gn.Schema([gn.Attribute("a", range(2))])
    over = gn.streams.Ticks(TICKS, reports, apart)
    return gn.plan(schema, [("a",)], gn.zCDP(kit.RHO), neighbors=neighbors, over=over)


def sides(plan, ticks):
    """Counts of each tick with and without one person, who has a row in these ticks; or has another
    one.
    """
    one, other = np.array([1, 0]), np.array([0, 1 if plan.neighbors == "replace" else 0])
    base = np.array([5, 3])
    with_person = [{(0,): base + (one if t in ticks else 0)} for t in range(TICKS)]
    without = [{(0,): base + (other if t in ticks else 0)} for t in range(TICKS)]
    return with_person, without


def measured(plan, tables, noise):
    """All that is measured in one run of the stream, one row, in standard deviations of
    the noise.
    """
    found = [measure.measured(plan, tables[: t + 1], noise) for t in range(TICKS)]
    return (
        np.array(
            [x for noisy in found for values in noisy.values() for x in values], dtype=np.float64
        )
        / plan.scale
    )


class Nothing:
    """Noise that is zero."""

    def take(self, count):
        return np.zeros(count, dtype=np.int64)


def found_epsilon(plan, ticks):
    """Lower bound on ε of all ticks together, for a person with rows in ``ticks``: exact integers,
    then noise.
    """
    left, right = (measured(plan, side, Nothing()) for side in sides(plan, ticks))
    noise = np.array(plan.query.query.draw(DRAWS * len(left))).reshape(DRAWS, -1) / plan.scale
    return kit.epsilon_bound(left + noise, right + noise, kit.likelihood_ratio(left - right))


def found_epsilon_as_run(plan, ticks, draws):
    """The same from whole runs, tick by tick, with the noise that each of them takes."""
    left, right = sides(plan, ticks)
    difference = measured(plan, left, Nothing()) - measured(plan, right, Nothing())
    with noise_stream(plan.query.query.draw, 2 * draws * TICKS * plan.query.count, 1) as noise:
        samples = [
            np.array([measured(plan, side, noise) for _ in range(draws)]) for side in (left, right)
        ]
    return kit.epsilon_bound(*samples, kit.likelihood_ratio(difference))


@pytest.mark.parametrize(
    ("plan", "ticks"),
    [(planned(), [0]), (planned(2, 2), [0, 2]), (planned(TICKS, 1, "replace"), range(TICKS))],
    ids=["one report", "two reports", "a report in every tick, replaced"],
)
def test_streams_spend_no_more_than_they_claim(plan, ticks):
    assert 0.35 * CLAIM < found_epsilon(plan, ticks) < CLAIM


def test_runs_of_streams_spend_no_more_than_they_claim():
    assert (
        found_epsilon_as_run(planned(), [0], 300) < CLAIM
    )  # too few to say more; the next tests show the power


def test_more_reports_than_planned_are_caught():
    assert found_epsilon(planned(), range(TICKS)) > CLAIM


def test_a_sensitivity_without_participation_is_caught(monkeypatch):
    one = property(lambda strategy: int((strategy.matrix.astype(object) ** 2).sum(axis=0).max()))
    monkeypatch.setattr(TimeStrategy, "sensitivity_squared", one)
    assert found_epsilon(planned(TICKS), range(TICKS)) > CLAIM


def test_noise_that_is_not_fresh_is_caught(monkeypatch):
    """The first tick's noise at every tick: differences of what is measured have none."""
    plan, right, kept = planned(), measure.measured, {}

    class Again:
        def __init__(self, noise, first):
            self.noise, self.first, self.at = noise, first, 0

        def take(self, count):
            if self.first:
                kept.setdefault("noise", []).append(self.noise.take(count))
            self.at += 1
            return kept["noise"][self.at - 1]

    def stale(plan, ticks, noise):
        if len(ticks) == 1:
            kept.clear()
        return right(plan, ticks, Again(noise, len(ticks) == 1))

    monkeypatch.setattr(measure, "measured", stale)
    assert found_epsilon_as_run(plan, [0], 1000) > CLAIM


def person_epsilon(rows):
    """The same for a person with so many rows in the first tick, of whom three are counted."""
    schema = gn.Schema([gn.Attribute("a", range(2))])
    asked = {"rows_per_person": 3, "person": "who", "over": gn.streams.Ticks(TICKS)}
    plan = gn.plan(schema, [("a",)], gn.zCDP(kit.RHO), **asked)

    def answers(first):
        others = {"who": ["a", "b", "c"], "a": [0, 0, 1]}
        more = {"who": [*others["who"], *["mallory"] * rows], "a": [*others["a"], *[0] * rows]}
        ticks = [more if first and t == 0 else others for t in range(TICKS)]
        tables = [
            measure.counted(plan.tables, plan.over, t, pa.table(tick), "drop")
            for t, tick in enumerate(ticks, 1)
        ]
        return measured(plan, tables, Nothing())

    left, right = answers(True), answers(False)
    noise = np.array(plan.query.query.draw(DRAWS * len(left))).reshape(DRAWS, -1) / plan.scale
    return kit.epsilon_bound(left + noise, right + noise, kit.likelihood_ratio(left - right))


def test_a_person_of_very_many_rows_in_a_tick_spends_what_is_claimed():
    assert 0.35 * CLAIM < person_epsilon(1000) < CLAIM


def test_ticks_that_forget_the_limit_of_rows_are_caught(monkeypatch):
    monkeypatch.setattr(measure, "limit_of", lambda plan: None)
    assert person_epsilon(20) > CLAIM


HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """What was found of each kind of stream, killed at a few lines."""
    folder = tmp_path_factory.mktemp("killed")
    command = [
        sys.executable,
        "-W",
        "ignore",
        HERE / "stream_child.py",
        folder,
        4,
        "plain",
        "ledger",
        "forgetful",
    ]
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # forked
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env=os.environ | single,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def is_sound(found):
    """Drawn once for what was committed, published once, the same whenever it is asked for, no tick
    left out.
    """
    first, again, second = found["answers"]
    return (
        found["killed"]
        and found["draws"] == ["1"] * (1 + (found["drawn"] and not found["committed"])) + ["2"]
        and not (found["published"] and not found["committed"])
        and first == again
        and (first[0], second[0], found["ticks"]) == (1, 2, 2)
        and found["failed"] == 0
        and not found["scratch"]
        and found["spent"] in (None, pytest.approx(0.1, rel=1e-9))
    )


@pytest.mark.parametrize("kind", ["plain", "ledger"])
def test_a_killed_tick_is_drawn_once_and_not_left_out(killed, kind):
    assert all(map(is_sound, killed[kind]))
    assert {one["committed"] for one in killed[kind]} == {False, True}


def test_a_stream_that_forgets_what_it_drew_is_caught(killed):
    assert not all(map(is_sound, killed["forgetful"]))
