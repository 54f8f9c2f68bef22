"""Words of the page of columns: reasons of a draft, and the meaning of persons."""

import re

import pandas as pd
import pytest

import gaussnoise as gn
from gaussnoise.app.parts import lines
from gaussnoise.app.schema_file import SchemaFile
from gaussnoise.app.table_page import consequence, found_or_stated
from gaussnoise.app.wording import DIALECT, in_page, in_words
from gaussnoise.tables.drafts.draft import draft
from gaussnoise.tables.reading.sniff import marks_fit
from gaussnoise.tables.schema.dialect import hint


def test_reasons_of_a_draft_name_fields_of_the_page():
    """A draft says how its lines are mended, and which options the shell has; a page has none."""
    table = {
        "person id": [f"p{k // 2}" for k in range(200)],
        "stay": [k % 50 if k % 20 else 999 for k in range(200)],
    }
    drafted = SchemaFile.of(draft(pd.DataFrame(table)).to_toml())
    reasons = drafted.reasons() | drafted.left_out()
    assert "missing = [999]" in reasons["stay"]
    assert "clip = [" in reasons["stay"]
    assert "--person" in reasons["person id"]
    for said in map(in_words, reasons.values()):
        assert not re.search(" = |--", said)
    assert "999 may be a code for no answer. If so, press “Count 999 as no answer”." in in_words(
        reasons["stay"]
    )
    assert "For sums and means, a number from 0 to 50 is proposed: 99%" in in_words(reasons["stay"])


def test_messages_are_sentences_about_the_page():
    said = in_page(f"error: DataError: column 'pay': state {hint(decimal=',')}")
    assert said == (
        "column 'pay': state ',' in the field Decimal mark under How the file is written, on the "
        "page Table"
    )
    assert in_page("release: expected n > 0; hint: error: no") == "Expected n > 0; hint: error: no"
    assert in_page("note: a\nerror: OutputError: tick: b") == "note: a\ntick: b"
    again = "error: StreamError: tick: a; hint: --tick 1 reads that tick again; --same-file counts"
    assert in_page(again) == "A"
    said = in_page(f"error: DataError: table: too few; hint: {hint(skip=12)}")
    assert said == (
        "table: too few; hint: 12 in the field Lines before the column names under How the file is "
        "written, on the page Table"
    )
    for name, label in DIALECT.items():
        assert re.split("[,:]", label)[0] in in_page(hint(**{name: '"'})), name


def test_a_check_says_in_sentences_how_many_rows_count():
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    planned = gn.plan(schema, ["sex"], gn.zCDP(1), person="resident no")

    def said(ids, sexes="F"):
        table = pd.DataFrame({"resident no": ids, "sex": [*sexes] * (len(ids) // len(sexes))})
        return in_page(str(planned.check(table))).splitlines()[1:]

    numbers = [*map(str, range(1500))]
    assert said(numbers) == ["All 1,500 rows count.", "all rows fit the schema"]
    more = ["2 rows are of persons who are counted already."]
    assert said([*numbers, "7", "8", None]) == [
        "1,500 of 1,503 rows count.",
        "1 row has no value in “resident no”.",
        *more,
    ]
    assert said([*numbers, *[None] * 1500])[1] == "1,500 rows have no value in “resident no”."
    one = said(["a", "a"])
    assert one[0] == "1 of 2 rows count."
    assert one[2] == "1 row is a second one of a person."
    # rows that do not fit for several reasons are listed
    assert said([None, "b"], "FX") == [
        "0 of 2 rows count.",
        "WARNING: 1 of 2 values of sex are no category of the schema: their rows are left out; "
        "does the schema name every value, as the table writes it, and every code for missing?",
        "2 left out of all tables:",
        "  sex          not a category  1  'X'",
        "  resident no  no person       1",
    ]
    child = gn.Attribute("child", ["yes", "no"])
    schema = gn.Schema([*schema.attributes, child], impossible=[{"sex": "M", "child": "yes"}])
    planned = gn.plan(schema, [("sex", "child")], gn.zCDP(1), person="resident no")
    table = pd.DataFrame({"resident no": [None, "b"], "sex": ["M", "F"], "child": "yes"})
    assert in_page(str(planned.check(table))).splitlines()[2] == "1 left out of all tables:"


@pytest.mark.parametrize("most", [1, 3])
def test_the_noise_grows_with_the_rows_of_a_person_as_the_page_says(most):
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    plans = [
        gn.plan(schema, ["sex"], gn.zCDP(1), person="id", rows_per_person=rows)
        for rows in (1, most)
    ]
    one, several = (plan.standard_deviation("sex") for plan in plans)
    assert several / one == pytest.approx(most)
    said = consequence("id", most)
    assert "protected as a whole" in said
    assert ("The noise is about 3 times that for one row" in said) == (most == 3)
    assert f"counts {'once' if most == 1 else '3 times at most'}: if" in said
    assert ("several rows have the same" if most == 1 else "more than 3 rows have the same") in said
    assert "protected less" in consequence("", most)
    assert "protected less" not in said


def test_only_tables_are_wider_than_the_page():
    shown = lines("charged    rho = 0.1, which is little\na  b\nsex     cells    ± <sd>\nF   1   2")
    rows = shown.split("<span")[1:]
    assert ["class=row" in row for row in rows] == [False, False, True, True]
    assert "± &lt;sd&gt;" in rows[2]


@pytest.mark.parametrize(
    ("text", "encoding", "own", "changed", "stated"),
    [
        # a title with as many fields as the rows is found to be none, but stated
        ("A;B\nsex;pay\nF;1\n", "utf-8", {"skip": "1"}, {}, {"delimiter": ";", "skip": 1}),
        ("sex;pay\nF;1\n", "utf-8", {"skip": "1"}, {}, {"delimiter": ";"}),
        ("sex,pay\nF,1\n", "utf-8", {"delimiter": ";"}, {}, {}),
        ("sex;pay\nF;1\n", "utf-8", {"quote": "'"}, {}, {"delimiter": ";", "quote": "'"}),
        ("sex,pay\nFrau Müller,1\n", "utf-8", {"encoding": "cp1250"}, {}, {}),
        ("sex,pay\nŁ,1\n", "cp1250", {"encoding": "cp1250"}, {}, {"encoding": "cp1250"}),
        ("sex,pay\nŁ,1\n", "cp1250", {}, {"encoding": "cp1250"}, {"encoding": "cp1250"}),
        (
            "sex,pay\nŁ,1\n",
            "cp1250",
            {"encoding": "cp1250"},
            {"encoding": ""},
            {"encoding": "cp1252"},
        ),
    ],
)
def test_marks_that_are_stated_stay_where_another_file_fits_them(
    tmp_path, text, encoding, own, changed, stated
):
    (tmp_path / "t.csv").write_text(text, encoding=encoding)
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 9])])
    assert found_or_stated(tmp_path / "t.csv", schema, own, changed).stated == stated


@pytest.mark.parametrize(
    ("numbers", "stay"),
    [
        (["1.037", "2.500"], True),  # as the stated marks read them
        (["1.037,5", "12"], True),
        (["7", "12"], True),
        (["1.037", "0.512"], False),  # a decimal point: thousands do not begin with 0
        (["1.037", "2.5"], False),
        (["1.037", "12.50"], False),
    ],
)
def test_marks_of_numbers_stay_unless_another_file_contradicts_them(tmp_path, numbers, stay):
    """Else its numbers would count a thousandfold."""
    lines = ["sex;pay", *(f"F;{number}" for number in numbers)]
    (tmp_path / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 9])])
    own = {"decimal": ",", "thousands": "."}
    found = found_or_stated(tmp_path / "t.csv", schema, {"delimiter": ";", **own}, {})
    assert found.stated == {"delimiter": ";", **(own if stay else {})}
    # one number is enough where it would count a thousandfold, else most of them decide
    (tmp_path / "t.csv").write_text("\n".join([*lines, *["F;1,5"] * 9]), encoding="utf-8")
    assert marks_fit(str(tmp_path / "t.csv"), gn.Dialect(";", **own)) == stay
    assert marks_fit(str(tmp_path / "t.csv"), gn.Dialect(";", decimal=","))
    # what a person states now is not doubted
    assert found_or_stated(tmp_path / "t.csv", schema, {}, own).stated.items() >= own.items()
