"""Words of the page of releases."""

import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.app.jobs import Job
from gaussnoise.app.release_page import charge_text, refuses, title_of, without_unit
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


def test_the_charge_says_what_is_left_afterwards(tmp_path):
    planned = gn.plan(gn.Schema(NUMBERS[:1]), ["sex"], gn.zCDP(0.3))
    ledger = gn.Ledger.create(tmp_path / "own.ledger", gn.zCDP(0.4))
    assert (
        charge_text(planned, ledger) == "This release uses ρ = 0.3 of 0.4; 0.1 is left afterwards."
    )
    rows = pa.table({"sex": ["F"]})
    planned.release(rows, out=tmp_path / "one", ledger=ledger, id="one")
    said = charge_text(planned, ledger)
    assert said == "This release uses ρ = 0.3, more than the 0.1 that is left."
    rest = gn.plan(gn.Schema(NUMBERS[:1]), ["sex"], gn.zCDP(0.1))
    assert charge_text(rest, ledger) == "This release uses ρ = 0.1 of 0.4; 0 is left afterwards."


@pytest.mark.parametrize(
    ("workload", "more", "title"),
    [
        (["sex"], {}, "Counts by sex"),
        ([("sex", "pay"), "rent"], {}, "Counts by sex; means of pay and rent"),
        ([("sex", "pay")], {"person": "resident no"}, "Residents by sex; mean of pay"),
        (["pay"], {}, "Mean of pay"),
    ],
)
def test_a_title_is_proposed_from_the_columns(workload, more, title):
    assert title_of(gn.plan(gn.Schema(NUMBERS), workload, gn.zCDP(1), **more)) == title


def test_no_title_of_many_columns_is_proposed():
    many = [gn.Attribute(f"a long name {k}", ["A", "B"]) for k in range(9)]
    names = [column.name for column in many]
    assert title_of(gn.plan(gn.Schema(many), names[:2], gn.zCDP(1))) != ""
    assert title_of(gn.plan(gn.Schema(many), names, gn.zCDP(1))) == ""


def test_a_check_says_whether_rows_that_do_not_fit_are_left_out_or_refuse_the_table():
    table = pa.table({"sex": ["F", "?"]})
    for more, is_refused in (({}, False), ({"neighbors": "replace"}, True)):
        planned = gn.plan(gn.Schema(NUMBERS[:1]), ["sex"], gn.zCDP(1), **more)
        said = in_shell(str(planned.check(table)), OF_RELEASES)
        assert refuses(Job("check", ("check",), 0.0, said=said)) is is_refused
