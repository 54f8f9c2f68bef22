"""Hints that keep a question's meaning, what is answered instead, and readings that are said."""

import re

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.errors import ParameterError

MONTHS = [f"2023-{k:02d}" for k in range(1, 13)]
WARDS = ["Surgery", "Medicine", "Maternity"]


@pytest.fixture(scope="module")
def stays():
    rng, n = np.random.default_rng(1), 4000
    attributes = [
        gn.Attribute("ward", WARDS),
        gn.Attribute("days", clip=[0, 30]),
        gn.Attribute("cost", clip=[0, 40000]),
        gn.Attribute("month", MONTHS),
        gn.Attribute("age", edges=[0, 18, 65, 120]),
    ]
    schema = gn.Schema(attributes, about=gn.About(title="Stays in hospitals"))
    rows = {"ward": rng.choice(WARDS, n), "month": rng.choice(MONTHS, n)}
    rows |= {"days": rng.uniform(0, 30, n), "cost": rng.gamma(2, 1500, n)}
    rows["age"] = rng.integers(0, 100, n)
    workload = [("ward", "cost"), ("ward", "days"), ("month", "ward"), ("age",)]
    return gn.plan(schema, workload, gn.zCDP(1.0)).release(pa.table(rows))


def hint(tables, question):
    """The hint of a refusal; nothing where it has none."""
    with pytest.raises(ParameterError) as refused:
        tables.ask(question)
    return str(refused.value).partition("; hint: ")[2]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("average cost in March 2023", "'mean of cost', 'mean of cost by ward', 'count by age'"),
        ("percentage of women in Surgery", "'share of ward=Surgery', 'mean of cost by ward',"),
        ("average days of women in Surgery", "'mean of days by ward=Surgery', 'mean of days by"),
        ("how many women", "'how many stays', 'count by age', 'mean of cost by ward'"),
        ("average cost by age", "'mean of cost', 'count by age', 'mean of cost by ward'"),
        ("median cost", "'mean of cost', 'mean of cost by ward', 'count by age'"),  # no median
    ],
)
def test_what_leaves_out_a_word_is_no_question_to_ask_but_one_that_is_answered(
    stays, question, said
):
    assert hint(stays, question).startswith(f"this folder answers {said}")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("how many in Surgery or Medicine", "ask 'count of ward=Surgery|Medicine'"),
        ("count of ward=Surgry", "ask 'count of ward=Surgery'"),
        ("count of wards", "ask 'count of ward'"),
    ],
)
def test_what_keeps_every_word_is_a_question_to_ask(stays, question, said):
    assert hint(stays, question) == said


@pytest.mark.parametrize(
    "question",
    [
        "how many stays not in Surgery",
        "how many stays without Surgery",
        "how many stays except Surgery",
        "count of ward!=Surgery",
        "average cost outside Surgery",
        "per cent of women",  # nothing of it is known
        "how many stays longer than 7 days",  # a mean is no count of some
        "ratio of women to men",  # which no word of the grammar resembles enough
        "how many in March or April",
        "oldest patients",
        "count of wrd",  # too short to tell from another word
    ],
)
def test_no_hint_reverses_a_question_or_guesses_at_it(stays, question):
    """Whole tables are named instead, first those with the names in the question."""
    whole = r"'(mean of (cost|days) by ward|count by (age|month, ward))'"
    assert re.fullmatch(f"this folder answers {whole}, {whole}", hint(stays, question))


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("share of cost by ward", "'sum of cost given ward'"),
        ("per cent of cost", "'sum of cost'"),
        ("cost distribution", "'sum of cost'"),
        ("share of ward, cost", "'sum of cost given ward'"),
        ("share of ward by cost", "'sum of cost given ward'"),
    ],
)
def test_a_number_that_is_clipped_has_sums_and_no_shares(stays, question, said):
    assert hint(stays, question).startswith(f"this folder answers {said}")


def test_a_label_that_means_not_is_one_only_beside_its_attribute():
    schema = gn.Schema([gn.Attribute("affair", ["no", "yes"]), gn.Attribute("children", [0, 1])])
    rows = {"affair": ["no", "yes"] * 50, "children": [0, 1] * 50}
    release = gn.plan(schema, 2, gn.zCDP(1)).release(pa.table(rows))
    assert hint(release, "how many have no affair") == "ask 'count of affair=no'"
    assert hint(release, "how many have no children") == (
        "this folder answers 'count by affair, children'"
    )
    assert hint(release, "hello").startswith("this folder answers")  # no name at all


def test_bins_that_include_the_edge_say_so(stays):
    for question in ("how many over 65", "older than 65", "age>65", "share of age above 65"):
        assert stays.ask(question).note.startswith("65 and more; ")
        assert "65 and more" in str(stays.ask(question))
    for question in ("age at least 65", "age<65", "age=[65, 120]"):
        assert "and more" not in stays.ask(question).note


def test_times_between_two_are_those_from_one_to_the_other(stays):
    first = stays.ask("how many from January to March")
    between = stays.ask("how many between January and March")
    assert between.meaning == first.meaning == "count of month=2023-01|2023-02|2023-03"
    found = stays.ask("difference of count between January and March")
    assert found.meaning == "count of month=2023-01 less count of month=2023-03"
