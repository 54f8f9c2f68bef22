"""Whole streams under the auditor: what all ticks together spend, and kill -9 between counting and
publishing.
"""

import audit_kit as kit
import audit_ledger as ledger
import audit_ticks as ticks
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.streams import measure

CLAIM = kit.gaussian_epsilon(kit.RHO, kit.DELTA)


@pytest.mark.parametrize(
    ("plan", "occupied"),
    [
        (ticks.planned(), [0]),
        (ticks.planned(2, 2), [0, 2]),
        (ticks.planned(ticks.TICKS, 1, "replace"), range(ticks.TICKS)),
    ],
    ids=["one report", "two reports", "a report in every tick, replaced"],
)
def test_streams_spend_no_more_than_they_claim(plan, occupied):
    assert 0.35 * CLAIM < ticks.found_epsilon(plan, occupied) < CLAIM


def test_runs_of_streams_spend_no_more_than_they_claim():
    found = ticks.found_epsilon_as_run(ticks.planned(), [0], 300)
    assert found < CLAIM  # too few to say more; the mutants show the power


@pytest.mark.parametrize("mutant", ticks.MUTANTS, ids=lambda m: m.name)
def test_every_fault_of_ticks_is_caught(monkeypatch, mutant):
    mutant.inject(monkeypatch)
    assert mutant.audit() > CLAIM


def person_epsilon(rows):
    """The same for a person with so many rows in the first tick, of whom three are counted."""
    schema = gn.Schema([gn.Attribute("a", range(2))])
    asked = {"rows_per_person": 3, "person": "who", "over": gn.streams.Ticks(ticks.TICKS, 1)}
    plan = gn.plan(schema, [("a",)], gn.zCDP(kit.RHO), **asked)

    def answers(first):
        others = {"who": ["a", "b", "c"], "a": [0, 0, 1]}
        more = {"who": [*others["who"], *["mallory"] * rows], "a": [*others["a"], *[0] * rows]}
        given = [more if first and t == 0 else others for t in range(ticks.TICKS)]
        tables = [
            measure.counted(plan.one_tick, plan.over, t, pa.table(tick), "drop")
            for t, tick in enumerate(given, 1)
        ]
        return ticks.measured(plan, tables, ticks.Nothing())

    return ticks.epsilon_of(plan, answers(True), answers(False))


def test_a_person_of_very_many_rows_in_a_tick_spends_what_is_claimed():
    assert 0.35 * CLAIM < person_epsilon(1000) < CLAIM


def test_ticks_that_forget_the_limit_of_rows_are_caught(monkeypatch):
    monkeypatch.setattr(measure, "limit_of", lambda plan, turn: None)
    assert person_epsilon(20) > CLAIM


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """What was found of each kind of stream, killed at a few lines."""
    kinds = "plain", "ledger", "forgetful", "skipping", "enforced", "unregistered"
    return ticks.killed(tmp_path_factory.mktemp("killed"), 4, *kinds)


@pytest.mark.parametrize("kind", ["plain", "ledger"])
def test_a_killed_tick_is_drawn_once_and_not_left_out(killed, kind):
    for found in killed[kind]:
        assert found["killed"]
        assert ticks.damage(found) == ledger.Damage(runs=4, published=2)
        assert found["spent"] == (pytest.approx(0.1, rel=1e-9) if kind == "ledger" else None)
    assert {one["committed"] for one in killed[kind]} == {False, True}


def test_a_killed_tick_is_in_the_registry_of_persons_if_it_is_published(killed):
    """The second tick has the persons of the first, who count once."""
    for found in killed["enforced"]:
        assert found["killed"]
        assert ticks.damage(found, [ticks.ROWS, 0]) == ledger.Damage(runs=4, published=2)
        assert found["registered"] == ["registry-0002"]
    assert {one["committed"] for one in killed["enforced"]} == {False, True}


def test_a_stream_that_registers_no_person_is_caught(killed):
    damage = [ticks.damage(found, [ticks.ROWS, 0]) for found in killed["unregistered"]]
    assert all(one.lost for one in damage)


def test_a_stream_that_forgets_what_it_drew_is_caught(killed):
    damage = sum(map(ticks.damage, killed["forgetful"]), ledger.Damage())
    assert damage.twice


def test_a_stream_that_skips_the_tick_in_which_it_was_killed_is_caught(killed):
    damage = sum(map(ticks.damage, killed["skipping"]), ledger.Damage())
    assert damage.lost
    assert not damage.twice
