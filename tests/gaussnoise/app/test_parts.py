"""Words and tables that several pages share."""

from pathlib import Path

import gaussnoise as gn
from gaussnoise.app import parts
from gaussnoise.app.parts import WORDS, each, paged


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


def test_each_term_with_a_meaning_is_on_a_page():
    pages = [path.read_text("utf-8") for path in Path(parts.__file__).parent.glob("*.py")]
    assert [word for word in WORDS if not any(f"*{word}*" in page for page in pages)] == []
