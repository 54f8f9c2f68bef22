"""Words of the page of releases."""

import gaussnoise as gn
from gaussnoise.app.release_page import without_unit

NUMBERS = [
    gn.Attribute("sex", ["F", "M"]),
    gn.Attribute("pay", clip=[0, 9]),
    gn.Attribute("rent", clip=[0, 9], measured_in="EUR"),
    gn.Attribute("debt", clip=[0, 9]),
]


def test_planned_numbers_without_a_unit_are_named():
    schema = gn.Schema(NUMBERS)
    assert without_unit(gn.plan(schema, ["pay", "rent", "sex"], gn.zCDP(1))) == ["pay"]
    assert without_unit(gn.plan(schema, ["rent", "sex"], gn.zCDP(1))) == []
    counted = {"person": "id", "per_person": {"pay": "count", "debt": "mean"}}
    assert without_unit(gn.plan(schema, ["pay", "debt"], gn.zCDP(1), **counted)) == ["debt"]
