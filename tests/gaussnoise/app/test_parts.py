"""Words and tables that several pages share."""

from pathlib import Path

import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.app import parts
from gaussnoise.app.jobs import Job
from gaussnoise.app.parts import WORDS, can_cancel, each, paged, without_lists
from gaussnoise.app.wording import in_page


def test_a_budget_protects_each_person_or_row():
    """A reader took "one person" for one person of all."""
    for more, said in (
        ({}, "each row"),
        ({"rows_per_person": 3}, "each person of at most 3 rows"),
        ({"person": "id"}, "each person (column 'id'), of whom at most 1 row is counted"),
        ({"person": "of one "}, "each person (column 'of one '), of whom at most 1 row is counted"),
    ):
        planned = gn.plan(gn.Schema([gn.Attribute("sex", ["F", "M"])]), ["sex"], gn.zCDP(1), **more)
        assert each(planned.privacy_unit) == said


def test_a_short_table_is_shown_at_once():
    assert paged(range(20)) is None
    assert paged(range(21)) == 20


@pytest.mark.parametrize(
    ("words", "at_once"),
    [(("check",), True), (("stream", "add"), True), (("release",), False)],
)
def test_a_charged_task_has_no_warning_of_its_loss_that_flashes_up(words, at_once):
    job = Job("own", words, begun=100.0)
    assert can_cancel(job, 101.0) is at_once
    assert can_cancel(job, 105.5)


def test_values_that_count_elsewhere_are_apart_from_what_is_lost_and_from_warnings():
    names = [gn.Attribute("sex", ["F", "M"], other="none"), gn.Attribute("pay", clip=[0, 50])]
    planned = gn.plan(gn.Schema(names), [("sex", "pay")], gn.zCDP(1))
    table = pa.table({"sex": ["?", "x", "F", "M"], "pay": [60.0, 20.0, None, 1.0]})
    said = in_page(str(planned.check(table)))
    first, lists = without_lists(said)
    assert first + lists == said
    assert "3 of 4 rows count." in first
    assert (
        "WARNING: 2 of 4 values of sex are no category of the schema: their rows count as" in first
    )
    assert "1 left out of all tables:\n  pay  missing" in first
    assert lists.startswith("counted as the nearer end of their interval")
    assert "counted as the rest, which is in no mean or sum of a number" in lists
    assert "catch-all" not in said
    number = gn.Schema([gn.Attribute("pay", clip=[0, 50], other="unknown")])
    caught = in_page(str(gn.plan(number, ["pay"], gn.zCDP(1)).check(table)))
    assert "counted as the rest, which is in no mean or sum of a number:\n  pay  missing" in caught
    assert "category" not in caught
    fits = in_page(str(planned.check(table.slice(3))))
    assert without_lists(fits) == (fits, "")
    caught = in_page(str(planned.check(table.slice(1, 1))))
    assert "all rows fit the schema\n" in without_lists(caught)[0]


def test_each_term_with_a_meaning_is_on_a_page():
    pages = [path.read_text("utf-8") for path in Path(parts.__file__).parent.glob("*.py")]
    assert [word for word in WORDS if not any(f"*{word}*" in page for page in pages)] == []
