"""Columns as one types them."""

import datetime
import math

import pytest

import gaussnoise as gn
from gaussnoise.app.columns import HELP, KINDS, attribute_of, kind_of, typed
from gaussnoise.errors import SchemaError

ATTRIBUTES = [
    gn.Attribute("x", ["F", "M, of men", 'so-called "X"', '"quoted"', "two\nlines", " blank "]),
    gn.Attribute("x", [1, -2, 3], other="else", missing=[999, "refused", 0.5]),
    gn.Attribute("x", [True, False]),
    gn.Attribute("x", edges=[-math.inf, 0, 0.1, 1e300, math.inf], base="prefix"),
    gn.Attribute("x", edges=[datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)]),
    gn.Attribute("x", clip=[0, 1234567.25]),
    gn.Attribute("x", unit=0.01),
    gn.Attribute("x", ["a", "b"], groups={"all": {"both": ["a", "b"]}}, base="hierarchy"),
]


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda attribute: kind_of(attribute))
def test_a_column_is_read_back_as_it_is_shown(attribute):
    codes = ", ".join(map(str, attribute.missing))
    again = attribute_of(
        "x", kind_of(attribute), typed(attribute), attribute.other or "", codes, attribute
    )
    assert again == attribute


def test_every_kind_has_words():
    assert KINDS.keys() == HELP.keys() == {kind_of(attribute) for attribute in ATTRIBUTES}


def test_a_column_of_another_kind_loses_its_questions():
    bins = attribute_of("x", "clip", "0, 9", like=ATTRIBUTES[3])
    assert bins == gn.Attribute("x", clip=[0, 9])


@pytest.mark.parametrize("base", ["sum", {"kind": "moments", "degrees": [0, 1, 2]}])
def test_the_ends_of_a_number_and_of_bins_change_though_tables_ask_for_them(base):
    """A question about a number, or about all bins, has no ends and no number of bins."""
    pay = gn.Attribute("x", clip=[0, 500_000], base=base)
    typed_again = attribute_of("x", "clip", "[0, 10000]", like=pay)  # brackets as in a message
    assert typed_again == gn.Attribute("x", clip=[0, 10_000], base=base)
    more = attribute_of("x", "edges", "0, 1, 2, 3, inf", like=ATTRIBUTES[3])
    assert more == gn.Attribute("x", edges=[0, 1, 2, 3, math.inf], base="prefix")


def test_several_categories_on_one_line_are_not_one_category():
    like = gn.Attribute("x", ["F", "f", "M, of men"])
    with pytest.raises(SchemaError, match="one category on each line"):
        attribute_of("x", "texts", "F, f, female\nM", like=like)
    for text in ("F\nM, of men", "F\nx, y", 'F\n"F, f"'):  # known; of no known part; quoted
        assert attribute_of("x", "texts", text, like=like).categories[0] == "F"
    with pytest.raises(SchemaError, match="for 7 and more, choose “intervals of numbers"):
        attribute_of("x", "integers", "6\n7+")


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("0,18,65", [0, 18, 65]),
        ("0 18 65", [0, 18, 65]),
        ("0; 2,5; 10", [0, 2.5, 10]),
        ("-2,5;inf", [-2.5, math.inf]),
        ("0\n2,5\n10", [0, 2.5, 10]),
        ("0; 18; 65", [0, 18, 65]),
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
        ("integers", "1.5", "one whole number a line"),
        ("truths", "yes", "true or false"),
        ("edges", "0, x", "edges"),
        ("edges", "5, 0", "increasing"),
        ("edges", "0,5 1,5 2,5", "semicolons between"),
        ("edges", "0, 2,5, 10", "semicolons between"),
        ("edges", "0; 2,5 10", "edges"),
        ("edges", "0; 1.000,5", "edges"),
        ("clip", "0, 99,5", "semicolons between"),
        ("clip", "0", "clip"),
        ("clip", "a, b", "expected numbers"),
        ("unit", "1, 2", "one number"),
    ],
)
def test_mistakes_are_refused_with_words(kind, text, part):
    with pytest.raises(SchemaError, match=part):
        attribute_of("x", kind, text)
