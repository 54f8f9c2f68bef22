"""Words of the page of releases."""

import pyarrow as pa

import gaussnoise as gn
from gaussnoise.app.jobs import Job
from gaussnoise.app.release_page import refuses, without_unit
from gaussnoise.cli.wording import OF_RELEASES, in_shell

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


def test_a_check_says_whether_rows_that_do_not_fit_are_left_out_or_refuse_the_table():
    table = pa.table({"sex": ["F", "?"]})
    for more, is_refused in (({}, False), ({"neighbors": "replace"}, True)):
        planned = gn.plan(gn.Schema(NUMBERS[:1]), ["sex"], gn.zCDP(1), **more)
        said = in_shell(str(planned.check(table)), OF_RELEASES)
        assert refuses(Job("check", ("check",), 0.0, said=said)) is is_refused
