"""Whole streams under the auditor: what all ticks together spend, and kill -9 between counting and
publishing.
"""

import audit_kit as kit
import audit_ledger as ledger
import audit_ticks as ticks
import pytest

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


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """What was found of each kind of stream, killed at a few lines."""
    return ticks.killed(tmp_path_factory.mktemp("killed"), 4, "plain", "ledger", "forgetful")


@pytest.mark.parametrize("kind", ["plain", "ledger"])
def test_a_killed_tick_is_drawn_once_and_not_left_out(killed, kind):
    for found in killed[kind]:
        assert found["killed"]
        assert ticks.damage(found) == ledger.Damage(runs=4, published=2)
        assert found["spent"] == (pytest.approx(0.1, rel=1e-9) if kind == "ledger" else None)
    assert {one["committed"] for one in killed[kind]} == {False, True}


def test_a_stream_that_forgets_what_it_drew_is_caught(killed):
    damage = sum(map(ticks.damage, killed["forgetful"]), ledger.Damage())
    assert damage.twice
