"""Words of the page of releases."""

import gaussnoise as gn
from gaussnoise.app.parts import each, paged
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


def test_a_budget_protects_each_person_or_row():
    """A reader took "one person" for one person of all."""
    for more, said in (
        ({}, "each row"),
        ({"rows_per_person": 3}, "each person of at most 3 rows"),
        ({"person": "id"}, "each person (column 'id'), of whom at most 1 row is counted"),
        ({"person": "of one "}, "each person (column 'of one '), of whom at most 1 row is counted"),
    ):
        planned = gn.plan(gn.Schema(NUMBERS[:1]), ["sex"], gn.zCDP(1), **more)
        assert each(planned.privacy_unit) == said


def test_a_short_table_is_shown_at_once():
    assert paged(range(20)) is None
    assert paged(range(21)) == 20
