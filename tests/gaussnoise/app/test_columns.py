"""Columns as one types them."""

import datetime
import json
import math

import pandas as pd
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.app.columns import (
    HELP,
    KINDS,
    age_names,
    ages_in,
    attribute_of,
    birth_dates,
    clip_help,
    day_first,
    join,
    kind_of,
    proposed_names,
    typed,
    typed_names,
)
from gaussnoise.app.described import described
from gaussnoise.app.reasons import codes_in, ends_in, rare_in, texts_in
from gaussnoise.errors import SchemaError
from gaussnoise.tables.drafts.draft import draft

ATTRIBUTES = [
    gn.Attribute("x", ["F", "M, of men", 'so-called "X"', '"quoted"', "two\nlines", " blank "]),
    gn.Attribute("x", ["F", "a = b", "M"], spellings={"F": ["f", "F ", "a, b"], "a = b": ["c=d"]}),
    gn.Attribute("x", [1, -2, 3], other="else", missing=[999, "refused", 0.5]),
    gn.Attribute("x", [True, False]),
    gn.Attribute("x", edges=[-math.inf, 0, 0.1, 1e300, math.inf], base="prefix"),
    gn.Attribute("x", edges=[datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]),
    gn.Attribute("x", edges=[0, 18, 65], names=["young", "old, or so"], title="Age"),
    gn.Attribute("x", edges=[0, 18, 65], measured_in="years", groups={"all": {"both": [0, 65]}}),
    gn.Attribute("x", clip=[0, 1234567.25], title="Pay", measured_in="euros"),
    gn.Attribute("x", unit=0.01, title="Payroll", measured_in="EUR"),
    gn.Attribute("x", ["a", "b"], groups={"all": {"both": ["a", "b"]}}, base="hierarchy"),
]


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda attribute: kind_of(attribute))
def test_a_column_is_read_back_as_it_is_shown(attribute):
    codes = ", ".join(map(str, attribute.missing))
    fields = typed(attribute), attribute.other or "", codes
    unit, names = attribute.measured_in or "", typed_names(attribute.names)
    said = unit, names, attribute.title or ""
    again = attribute_of("x", kind_of(attribute), *fields, attribute, *said)
    assert again == attribute
    # without the unit and the title, which a user can remove
    less = attribute_of("x", kind_of(attribute), *fields, attribute)
    assert (less.title, less.measured_in) == (None, None)


def test_every_kind_has_words():
    assert KINDS.keys() == HELP.keys() == {kind_of(attribute) for attribute in ATTRIBUTES}


@pytest.mark.parametrize(
    ("text", "categories", "spellings"),
    [
        ("F = f, Female, female\nM", ["F", "M"], {"F": ["f", "Female", "female"]}),
        ('F=f,"Fem, ale"\n"a, b" = c', ["F", "a, b"], {"F": ["f", "Fem, ale"], "a, b": ["c"]}),
        ("nurse, night\nF", ["nurse, night", "F"], {}),  # as it stands in the file
        ("F =\nM", ["F", "M"], {}),
    ],
)
def test_spellings_are_typed_behind_their_category(text, categories, spellings):
    like = gn.Attribute("x", ["nurse, night"])
    assert attribute_of("x", "texts", text, like=like) == gn.Attribute(
        "x", categories, spellings=spellings
    )


def test_categories_that_differ_in_case_or_blanks_can_be_joined():
    joined = join("x", 'M\n"F "\nfemale\nF = w\nf\nMale')
    assert joined == ('M\n"F " = F, f, w\nfemale\nMale', "F /F/f")
    assert join("x", joined[0]) is None
    assert join("x", "F\nM") is None


@pytest.mark.parametrize("kind", ["clip", "edges", "unit"])
def test_a_number_that_can_be_a_thousand_or_a_decimal_is_refused(kind):
    """A file with decimal commas may write six thousand as 6.000, which Python reads as six."""
    before = "" if kind == "unit" else "0, "
    for said, either in (
        ("6.000", "6000 or 6"),
        ("6.500", "6500 or 6.5"),
        ("-1.250", "-1250 or -"),
    ):
        with pytest.raises(SchemaError, match=f"can mean two numbers; hint: write {either}"):
            attribute_of("x", kind, before + said)
    for one in (0.125, 1.125, 6000.0, 1234.5):  # as the form itself writes numbers
        own = (
            gn.Attribute("x", unit=one) if kind == "unit" else gn.Attribute("x", **{kind: [0, one]})
        )
        assert attribute_of("x", kind, typed(own)) == own


@pytest.mark.parametrize("begins", [(0, 18, 65), (18, 65)])
@pytest.mark.parametrize("day", ["2025-12-31", "2026-02-28", "2028-02-29", "2024-03-01"])
def test_ages_on_a_day_are_intervals_of_birth_dates(day, begins):
    typed_ages = ", ".join(map(str, reversed(begins)))
    *older, youngest = attribute_of("born", "edges", birth_dates(typed_ages, day)).edges[1:]
    at = datetime.date.fromisoformat(day)
    for before in range(-2, 100 * 366):
        born = at - datetime.timedelta(days=before)
        age = at.year - born.year - ((at.month, at.day) < (born.month, born.day))
        # the last interval has its upper edge: nobody who is younger counts
        found = sum(born < edge for edge in older) + (born <= youngest)
        assert found == sum(age >= begin for begin in begins)


@pytest.mark.parametrize(("ages", "day"), [("", "2025-12-31"), ("-1", "2025-12-31"), ("18", "x")])
def test_ages_and_days_that_are_none_are_refused(ages, day):
    with pytest.raises(SchemaError, match="expected whole numbers and a day"):
        birth_dates(ages, day)


def test_ages_name_their_intervals_of_birth_dates():
    names = age_names("18 65, 0")
    assert names.splitlines() == ["aged 65 and over", "aged 18 to 64", "under 18"]
    assert ages_in(names.splitlines()) == "0, 18, 65"
    for others in (names.splitlines()[::-1], ["aged 65 and over", "of age", "under 18"], [""], []):
        assert ages_in(others) == ""
    born = birth_dates("18 65, 0", "2025-12-31")
    attribute = attribute_of("born", "edges", born, names=names)
    assert attribute.interval_texts[1] == "[1961-01-01, 2008-01-01)"  # who turns 18 or 65 that day
    assert attribute.labels[1] == "aged 18 to 64"


@pytest.mark.parametrize(
    ("edges", "names"),
    [
        ("0, 18, inf", ["0 to 17", "18 and over"]),
        ("1.7.2020, 31.12.2020", ["2020-07-01 to 2020-12-31"]),
        ("0; 2,5", []),
        ("0, ", []),
        ("x", []),
        ("", []),
    ],
)
def test_names_are_proposed_where_edges_are_whole_numbers_or_days(edges, names):
    assert proposed_names(edges).splitlines() == names


def test_names_are_typed_one_a_line_and_are_of_intervals_alone():
    assert attribute_of("x", "edges", "0, 18, 65", names=" a, b \n\nc\n").names == ("a, b", "c")
    assert attribute_of("x", "edges", "0, 18, 65", names=" \n").names is None
    assert attribute_of("x", "texts", "F\nM", names="a\nb") == gn.Attribute("x", ["F", "M"])
    with pytest.raises(SchemaError, match="names: expected 2, one for each interval from"):
        attribute_of("x", "edges", "0, 18, 65", names="a")


def test_proposed_ends_are_those_of_the_draft():
    table = pa.table({"pay": [100.5 * k for k in range(200)], "sex": ["F", "M"] * 100})
    found = draft(table)
    ends = ends_in(found.reasons["pay"])
    assert attribute_of("pay", "clip", ends).clip == (0, 20_000)
    assert ends_in(found.reasons["sex"]) == ""


def test_a_column_of_another_kind_loses_its_questions():
    bins = attribute_of("x", "clip", "0, 9", like=ATTRIBUTES[3])
    assert bins == gn.Attribute("x", clip=[0, 9])


@pytest.mark.parametrize(
    ("kind", "before", "text", "after"),
    [
        ("clip", {"clip": [0, 500000]}, "0, 10000", {"clip": [0, 10000]}),
        (
            "clip",
            {"clip": [0, 9], "base": {"kind": "moments", "degrees": [0, 1, 2]}},
            "0; 5",
            {"clip": [0, 5], "base": {"kind": "moments", "degrees": [0, 1, 2]}},
        ),
        (
            "edges",
            {"edges": [0, 1, 2], "base": "prefix"},
            "0, 1, 2, 3",
            {"edges": [0, 1, 2, 3], "base": "prefix"},
        ),
        ("unit", {"unit": 1}, "0.01", {"unit": 0.01}),
    ],
)
def test_a_column_keeps_its_questions_when_its_ends_change(kind, before, text, after):
    """Also as a schema file states it: it names the base of a number, ``base = "sum"``."""
    like = gn.Schema.loads(gn.Schema([gn.Attribute("x", **before)]).to_toml()).attributes[0]
    assert attribute_of("x", kind, text, like=like) == gn.Attribute("x", **after)


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("0,18,65", [0, 18, 65]),
        ("0 18 65", [0, 18, 65]),
        ("0; 2,5; 10", [0, 2.5, 10]),
        ("-2,5;inf", [-2.5, math.inf]),
        ("0\n2,5\n10", [0, 2.5, 10]),
        ("0; 18; 65", [0, 18, 65]),
        ("[0, 18, 65]", [0, 18, 65]),
        ("1.7.2020, 31.12.2020", ["2020-07-01", "2020-12-31"]),
    ],
)
def test_commas_are_decimal_marks_where_nothing_else_is_meant(text, edges):
    assert attribute_of("x", "edges", text) == gn.Attribute("x", edges=edges)
    assert attribute_of("x", "unit", " 0,01 ") == gn.Attribute("x", unit=0.01)
    assert attribute_of("x", "clip", "0; 99,5") == gn.Attribute("x", clip=[0, 99.5])


@pytest.mark.parametrize(
    ("kind", "text", "part"),
    [
        ("texts", "", "at least one category"),
        ("texts", "F\nF", "distinct"),
        ("texts", '"F', "in quotes"),
        ("texts", "F\nM ", 'write "M " with quotes'),
        ("texts", "F, f, Female", "spellings of one category, F = f, Female; if they are several"),
        ("texts", "F = f\nf", "got 'f'; hint: take it out of the categories"),
        ("texts", "a = b = c", "one category a line"),
        ("texts", "= f", "a category before ="),
        ("texts", 'F = "f', "in quotes"),
        ("integers", "1.5", "one whole number a line"),
        ("integers", "7+", "for 7 and more, choose “intervals of numbers or dates”: 1, 2"),
        ("truths", "yes", "true or false"),
        ("edges", "0, x", "edges"),
        ("edges", "5, 0", "increasing"),
        ("edges", "0,5 1,5 2,5", "semicolons between"),
        ("edges", "0, 2,5, 10", "semicolons between"),
        ("edges", "0; 2,5 10", "edges"),
        ("edges", "0; 1.000,5", "edges"),
        ("clip", "0, 99,5", "semicolons between"),
        ("clip", "0", "the lowest and the highest value, like 0, 100000"),
        ("clip", "9, 3", "the lowest and the highest value"),
        ("clip", "a, b", "expected numbers"),
        ("unit", "1, 2", "one number"),
    ],
)
def test_mistakes_are_refused_with_words(kind, text, part):
    with pytest.raises(SchemaError, match=part):
        attribute_of("x", kind, text)


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda attribute: kind_of(attribute))
def test_a_line_that_has_all_of_a_column_has_every_value(attribute):
    """Only such a line may have the button that confirms it."""
    said, is_all = described(attribute, day_first)
    values = [
        *(attribute.categories or attribute.names or ()),
        *(own for _, spelt in attribute.spellings for own in spelt),
        *attribute.missing,
        *([attribute.other] if attribute.other else []),
    ]
    if attribute.clip is not None:
        values += [f"{end:,.15g}" for end in attribute.clip]
    if is_all:
        for value in values:
            text = str(value).lower() if value in (True, False) else str(value)
            assert text in said or repr(text)[1:-1] in said.replace('\\"', '"')
    # groups, and names that are not those of the ends, have to be seen
    assert is_all == (not attribute.groups and attribute.names is None)


def test_a_long_list_is_not_all_in_a_line():
    few = gn.Attribute("x", [f"c{k}" for k in range(14)])
    assert described(few)[1]
    many = gn.Attribute("x", [f"c{k}" for k in range(15)])
    assert described(many) == ("15 categories: c0, c1, c2, c3, c4, …", False)
    spelt = gn.Attribute("x", [f"c{k}" for k in range(14)], spellings={"c0": ["C0"]})
    assert not described(spelt)[1]
    assert not described(gn.Attribute("x", ["a" * 250]))[1]


def test_groups_of_ages_are_in_a_line_from_young_to_old():
    edges = birth_dates("0, 18, 65", "2025-12-31")
    aged = attribute_of("born", "edges", edges, "else", names=age_names("0, 18, 65"))
    said = "under 18, aged 18 to 64, aged 65 and over; the rest: else"
    assert described(aged) == (said, False)
    own = attribute_of("born", "edges", edges, names="old\nof age\nunder 18")
    assert described(own) == ("old, of age, under 18", False)


def test_codes_for_no_answer_are_in_the_group_for_the_rest_where_there_is_one():
    own = gn.Attribute("x", ["F", "M"], missing=["n/a", "?"], other="else")
    assert described(own) == ("F, M; ?, n/a and the rest: else", True)
    assert described(gn.Attribute("x", ["F"], missing=["?"])) == ("F; no answer: ?", True)


def test_dates_are_shown_as_the_file_has_them_and_read_back():
    born = gn.Attribute(
        "x", edges=[-math.inf, datetime.date(1961, 9, 2), datetime.date(2026, 9, 1)]
    )
    text = day_first(typed(born))
    assert text == "-inf, 02.09.1961, 01.09.2026"
    assert attribute_of("x", "edges", text) == born
    assert "02.09.1961, 01.09.2026" in described(born, day_first)[0]


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        (["1920-01-01", "1930-01-01", "1939-12-31"], "intervals of 10 years from 01.01.1920 to 31"),
        (["2020-01-01", "2020-12-31"], "intervals of 1 year from 01.01.2020 to 31.12.2020"),
        (["1920-01-01", "1930-01-01", "1940-01-01"], "2 intervals with the ends 01.01.1920, 01"),
        (["1920-01-01", "1930-01-01", "1934-12-31"], "2 intervals with the ends 01.01.1920, 01"),
        (["1920-02-01", "1930-02-01", "1940-01-31"], "2 intervals with the ends 01.02.1920, 01"),
        (["-inf", "1930-01-01", "9999-12-31"], "2 intervals with the ends 01.01.1930, 31"),
    ],
)
def test_intervals_of_whole_years_are_said_in_few_words(edges, said):
    born = attribute_of("x", "edges", ", ".join(edges))
    found, is_all = described(born, day_first)
    assert found.startswith(said)
    assert is_all


def test_proposals_of_a_draft_are_found_in_its_comments():
    table = {
        "pay": [*(str(k % 90) for k in range(3000)), "k.A.", "-1", '"x", y. Z'],
        "size": ["1"] * 3001 + ["2", "17"],
    }
    reasons = draft(pd.DataFrame(table)).reasons
    assert ends_in(reasons["pay"]) == "0, 90"
    assert codes_in(reasons["pay"]) == ("-1", "")
    assert texts_in(reasons["pay"]) == r'"\"x\", y. Z", "k.A."'
    assert rare_in(reasons["size"]) == "2, 17"
    assert (ends_in(""), codes_in(""), texts_in(""), rare_in("")) == ("", ("", ""), "", "")


def test_texts_of_the_data_are_no_proposals():
    """A draft quotes them, and what stands in quotes proposes nothing."""
    said = "In fewer than 1 of 2 rows: nothing. Such values may be errors"
    texts = ["clip = [0, 5] in place of edges", 'missing = [7], and other = "hack"', said]
    table = {
        "pay": [*(str(k % 90) for k in range(4000)), *texts],
        "size": [*["a", "b"] * 2000, *texts],
    }
    reasons = draft(pd.DataFrame(table)).reasons
    assert ends_in(reasons["pay"]) == "0, 90"
    assert codes_in(reasons["pay"]) == ("", "")
    assert rare_in(reasons["pay"]) == ""
    listed = ", ".join(json.dumps(text) for text in sorted(texts))
    assert texts_in(reasons["pay"]) == listed
    assert rare_in(reasons["size"]) == listed
    assert (ends_in(reasons["size"]), codes_in(reasons["size"])) == ("", ("", ""))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("F\u200b", r'"F\u200b"'),
        ("a\u202eb", r'"a\u202eb"'),
        ("a\u00adb", r'"a\u00adb"'),
        ("a\u00a0b", r'"a\u00a0b"'),
        ("a  b   c", r'"a \u0020b \u0020\u0020c"'),
        ("\u3164", r'"\u3164"'),
        ("\x7f", r'"\u007f"'),
        ("\U000e0041x", r'"\udb40\udc41x"'),
        ("two\nlines", r'"two\nlines"'),
        ("Rome; Italy", '"Rome; Italy"'),
        ("x · public", '"x · public"'),
        ("… and more", '"… and more"'),
        ("F (also f)", '"F (also f)"'),
        ("? and the rest: F", '"? and the rest: F"'),
        ("Mühle 7 \\ O’Hara's", "Mühle 7 \\ O’Hara's"),
    ],
)
def test_a_line_shows_every_character_of_a_category(text, said):
    """Two categories that look alike are seen as two, and the form reads back what it shows."""
    own, rest = gn.Attribute("x", [text, "M"]), gn.Attribute("x", ["M"], other=text)
    code = gn.Attribute("x", ["M"], missing=[text])
    assert described(own) == (f"{said}, M", True)
    assert described(rest) == (f"M; the rest: {said}", True)
    assert described(code) == (f"M; no answer: {said}", True)
    assert attribute_of("x", "texts", typed(own)) == own


def test_dates_in_texts_stay_as_the_file_has_them():
    stand = gn.Attribute("x", ["Stand 2025-06-30", "Stand 2025-12-31"])
    assert attribute_of("x", "texts", typed(stand, day_first)) == stand
    day = gn.Attribute("x", edges=[datetime.date(2025, 6, 30), datetime.date(2025, 12, 31)])
    assert typed(day, day_first) == "30.06.2025, 31.12.2025"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0, 6000", "7,500 as 6,000"),
        ("-8, -4", "-3 as -4"),
        ("0; 0,5", "0.625 as 0.5"),
        ("0", "0;"),
    ],
)
def test_the_hint_of_a_mean_says_what_numbers_beyond_its_ends_count_as(text, said):
    assert said in clip_help(text)
