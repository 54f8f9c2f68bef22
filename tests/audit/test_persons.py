"""Persons with very many rows are protected as persons with few are; wrong limits are caught."""

import audit_kit as kit
import audit_persons as persons
import pytest

CLAIM = kit.gaussian_epsilon(kit.RHO, kit.DELTA)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_person_of_very_many_rows_spends_what_is_claimed(rows):
    sides = persons.neighbours(1000, categories=(1,))  # chance in others' rows would only hide her
    found = persons.audit(persons.planned(rows), *sides, draws=10_000)
    assert 0.6 * CLAIM < found < CLAIM


@pytest.mark.parametrize("other_rows", [0, 20])
def test_an_exchanged_person_spends_what_is_claimed(other_rows):
    sides = persons.exchanged(1000, other_rows)
    found = persons.audit(persons.planned(3, "replace"), *sides, draws=10_000)
    assert 0.6 * CLAIM < found < CLAIM


@pytest.mark.parametrize("mutant", persons.MUTANTS, ids=lambda m: m.name)
def test_every_wrong_limit_is_caught(monkeypatch, mutant):
    mutant.inject(monkeypatch)
    assert mutant.audit() > CLAIM
