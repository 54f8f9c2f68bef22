"""Sums of clipped numbers and weighted counts spend what they claim, whatever a record holds; with
one thing wrong they are caught.
"""

import audit_kit as kit
import audit_numbers as numbers
import pytest

CLAIM = kit.gaussian_epsilon(kit.RHO, kit.DELTA)


@pytest.mark.parametrize("odd", numbers.ODD)
def test_odd_records_spend_no_more(odd):
    assert 0 < numbers.audit(numbers.planned(), numbers.ODD[odd], 6000) < CLAIM
    weighted = numbers.planned(weight=numbers.WEIGHT)
    assert 0 < numbers.audit(weighted, numbers.ODD[odd], 6000) < CLAIM


@pytest.mark.parametrize("odd", ["at the end", "below"])
def test_odd_records_with_squares_and_exchanged_spend_no_more(odd):
    record = numbers.ODD[odd]
    assert 0 < numbers.audit(numbers.planned(numbers.SQUARES), record, 6000) < CLAIM
    assert 0 < numbers.audit(numbers.planned(neighbors="replace"), record, 6000) < CLAIM


@pytest.mark.parametrize("mutant", numbers.MUTANTS, ids=lambda m: m.name)
def test_every_mutant_of_numbers_is_caught(monkeypatch, mutant):
    mutant.inject(monkeypatch)
    assert mutant.audit() > CLAIM
