"""Firms under the auditor: one claim for each class of them, and faults to be caught."""

import audit_kit as kit
import audit_numbers as numbers

import gaussnoise as gn
from gaussnoise.tables.planning import measure as _measure
from gaussnoise.tables.planning import plan as _plan
from gaussnoise.tables.planning import request as _request
from gaussnoise.tables.reading import steps as _steps

SCALE, RHO = 1000.0, 0.5
FIRM = {"sex": "F", "pay": 0.25, "w": 1.0}
# payrolls, and the ρ that such a firm may cost
CLASSES = {0.0: RHO, SCALE: 2 * RHO, 2 * SCALE: 5 * RHO}


def planned(branches=1):
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", unit=0.25)])
    privacy = gn.PerRecord(gn.zCDP(RHO), {"pay": SCALE})
    return gn.plan(schema, [("sex", "pay"), "sex"], privacy, rows_per_person=branches)


def claim(payroll):
    """The ε of a firm of this payroll."""
    return kit.gaussian_epsilon(CLASSES[payroll], kit.DELTA)


def audit(payroll, draws=8000, branches=1):
    """Lower bound on ε of a firm more or less, from the integers of a release.

    The payroll is the same in each of its branches, which are a row each.
    """
    rows = [FIRM | {"pay": payroll / branches}] * branches
    return numbers.audit(planned(branches), rows, draws)


def _double_reading(patch):
    right = _steps.multiples_of
    patch.setattr(_steps, "multiples_of", lambda x, unit: right(2 * x, unit))


def _half_scale(patch):
    right = _request.units_in
    patch.setattr(_request, "units_in", lambda *named: right(*named) // 2)


def _less_sensitivity(patch):
    right = _measure.squared_sensitivity
    patch.setattr(_measure, "squared_sensitivity", lambda *of: right(*of) / 8)


def _branches_apart(patch):
    patch.setattr(_plan.Plan, "row_rho", property(lambda self: self.rho))


MUTANTS = [
    kit.Mutant("a budget for each branch", _branches_apart, lambda: audit(0.0, branches=3)),
    kit.Mutant("numbers read twice as large", _double_reading, lambda: audit(2 * SCALE)),
    kit.Mutant("budgets of half the scale", _half_scale, lambda: audit(2 * SCALE)),
    kit.Mutant("an eighth of the squared change", _less_sensitivity, lambda: audit(0.0)),
]
# the class of firms whose claim each of them breaks
SMALL = "a budget for each branch", "an eighth of the squared change"
BROKEN = {mutant.name: 0.0 if mutant.name in SMALL else 2 * SCALE for mutant in MUTANTS}
