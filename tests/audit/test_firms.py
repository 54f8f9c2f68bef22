"""Every class of firms spends what is claimed for it; with one thing wrong they are caught."""

import audit_firms as firms
import pytest


@pytest.mark.parametrize("branches", [1, 3])
@pytest.mark.parametrize("payroll", firms.CLASSES)
def test_no_class_of_firms_spends_more_than_its_claim(payroll, branches):
    """With three branches, the claim is that of the firm's whole payroll."""
    proven = firms.audit(payroll, branches=branches)
    assert 0 < proven < firms.claim(payroll)


def test_large_firms_spend_more_than_small_ones_may():
    """The policy is seen by the auditor too: a large firm has less protection."""
    assert firms.audit(2 * firms.SCALE) > firms.claim(0.0)


@pytest.mark.parametrize("mutant", firms.MUTANTS, ids=lambda m: m.name)
def test_every_mutant_of_budgets_is_caught(monkeypatch, mutant):
    mutant.inject(monkeypatch)
    assert mutant.audit() > firms.claim(firms.BROKEN[mutant.name])
