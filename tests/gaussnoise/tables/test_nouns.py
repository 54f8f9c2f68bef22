"""Nouns in questions: what the tables count, and nothing else."""

import numpy as np
import pyarrow as pa
import pytest
from cases import one_test_of

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.tables.release.nouns import nouns_of

WARD, COST = gn.Attribute("ward", ["A", "B"]), gn.Attribute("cost", clip=[0, 100])
ROWS = pa.table(
    {
        "patient_id": [1, 1, 2, 3] * 50,
        "household_id": [1, 1, 2, 3] * 50,
        "id": [1, 1, 2, 3] * 50,
        "ward": ["A", "A", "B", "B"] * 50,
        "cost": [5.0, 15.0, 20.0, 30.0] * 50,
        "weight": [2.0] * 200,
    }
)


def plan_of(title="Hospital stays in 2023", **options):
    schema = gn.Schema([WARD, COST], about=gn.About(title=title))
    return gn.plan(schema, [("ward", "cost")], gn.zCDP(1.0), **options)


@one_test_of(
    ("title", "noun"),
    [
        ("Hospital stays in 2023", "stays"),
        ("Employees in Nowhere, 2024", "employees"),
        ("Stays", "stays"),
        ("Covid tests: Nowhere", "tests"),
        ("Stays, 2023", "stays"),
        ("Births and deaths", None),  # rows are both
        ("Number of stays by ward", None),
        ("Average stays by ward", None),
        ("Wages, hours and tasks", None),
        ("Hospital statistics of 2023", None),
        ("A survey of nurses", None),
        ("Class", None),
    ],
)
def test_the_noun_that_a_title_begins_with(title, noun):
    found = [name for name, own in nouns_of(plan_of(title)).items() if own.may_be_amount]
    assert found == ([] if noun is None else [noun])


@one_test_of(
    ("title", "names", "is_count"),
    [
        ("Hospital stays in 2023", ["ward", "sex"], True),
        ("Wages in 2023", ["ward"], False),  # an amount
        ("Loans by ward", ["ward", "loan"], False),  # what each is, not how many
        ("Stays by ward", ["ward", "length of stay"], False),
    ],
)
def test_a_noun_alone_counts_rows_unless_it_may_be_an_amount(title, names, is_count):
    attributes = [gn.Attribute(name, ["north", "south"]) for name in names]
    schema = gn.Schema(attributes, about=gn.About(title=title))
    rows = pa.table({name: ["north", "south"] * 50 for name in names})
    release = gn.plan(schema, [tuple(names)], gn.zCDP(1.0)).release(rows)
    noun = next(iter(nouns_of(release.plan)))
    if is_count:
        assert release.ask(f"{noun} in ward=north by sex").meaning == "count of ward=north, sex"
        assert release.ask(noun).meaning == "count"
        return
    with pytest.raises(ParameterError, match='expected "number of" before it'):
        release.ask(f"{noun} by ward")


PERSON = {"person": "patient_id", "rows_per_person": 1}
SEVERAL = {"person": "patient_id", "rows_per_person": 2}
MEANS = {**SEVERAL, "per_person": {"cost": "mean"}}


@one_test_of(
    ("options", "nouns", "others"),
    [
        ({}, {"stays", "rows", "records"}, {"people", "persons"}),  # rows are stays, not people
        ({"title": None}, {"rows", "records", "people", "persons"}, set()),
        ({"title": None, "rows_per_person": 2}, {"rows", "records"}, {"people", "persons"}),
        (PERSON, {"stays", "rows", "records", "patients"}, {"people", "persons"}),
        (SEVERAL, {"stays", "rows", "records"}, {"patients", "people", "persons"}),
        (MEANS, {"records"}, {"stays", "rows", "patients", "people", "persons"}),
        ({**MEANS, "rows_per_person": 1}, {"records", "patients"}, {"stays", "rows", "people"}),
        ({**PERSON, "person": "id"}, {"stays", "rows", "people"}, set()),
        ({**PERSON, "person": "household_id"}, {"households"}, {"people", "persons"}),
        ({"weight": ("weight", 5.0)}, {"stays"}, {"rows", "records"}),
    ],
)
def test_nouns_stand_for_what_tables_count(options, nouns, others):
    weight = options.get("weight")
    options = {**options, **({} if weight is None else {"weight": gn.Weight(*weight)})}
    release = plan_of(**options).release(ROWS)
    for noun in nouns:
        assert release.ask(f"how many {noun}").estimate == release.ask("count").estimate
        assert release.ask(f"number of {noun} by ward").meaning == "count of ward"
        means = [release.ask(text).estimate for text in (f"average cost of {noun}", "cost")]
        assert np.array_equal(*means, equal_nan=True)  # no mean where the noise leaves no rows
    for noun in others:
        for question in ("how many {}", "average cost of {}", "share of {} with ward=A"):
            with pytest.raises(ParameterError, match=f"«{noun}»") as refused:
                release.ask(question.format(noun))
            assert "expected another noun" in str(refused.value)
    for noun in ("hospitals", "stay", "rowss"):
        with pytest.raises(ParameterError, match=f"«{noun}»"):
            release.ask(f"how many {noun}")


def test_persons_are_counted_within_a_group_in_which_each_has_one_record():
    release = plan_of(**MEANS).release(ROWS)
    for question in ("how many patients in A", "number of patients, ward=B", "patients by ward"):
        count = question.replace("patients", "records")
        assert np.array_equal(release.ask(question).estimate, release.ask(count).estimate)
    both = release.ask("difference of count of patients between ward=A and ward=B")
    assert both.estimate == release.ask("difference of count between ward=A and ward=B").estimate
    for question in ("how many patients", "how many patients in ward=A|B", "cost of patients"):
        with pytest.raises(ParameterError, match="a record is one person in one group of ward"):
            release.ask(question)
    with pytest.raises(
        ParameterError, match="hint: this folder answers 'how many patients by ward'"
    ):
        release.ask("how many patients")
    # two attributes: a person may have two records in one ward
    schema = gn.Schema([WARD, gn.Attribute("household_id", [1, 2, 3]), COST])
    plan = gn.plan(schema, [("ward", "cost"), ("household_id", "cost")], gn.zCDP(1.0), **MEANS)
    release = plan.release(ROWS)
    with pytest.raises(ParameterError, match="one group of ward × household_id, and one person"):
        release.ask("how many patients by ward")


def test_answers_say_in_how_many_groups_a_person_counts_where_there_are_more():
    line = "counted: one record of each person in each group of their rows (1 at most)"
    release = plan_of(**(MEANS | {"rows_per_person": 1})).release(ROWS)
    assert line in str(release.ask("count")).splitlines()


def test_persons_of_several_ticks_are_not_rows():
    schema = gn.Schema([WARD])
    for reports, is_known in ((1, True), (2, False)):
        over = gn.streams.Ticks(4, reports=reports)
        plan = gn.plan(schema, 1, gn.zCDP(1.0), over=over, person="patient_id")
        assert (nouns_of(plan, over.most_reports)["patients"].fault == "") == is_known


def test_a_noun_of_a_title_alone_may_be_an_amount():
    schema = gn.Schema([WARD], about=gn.About(title="Wages in Nowhere"))
    release = gn.plan(schema, 1, gn.zCDP(1.0)).release(ROWS)
    for question in ("wages by ward", "which ward has the highest wages", "wages"):
        with pytest.raises(ParameterError, match=r"«wages».*ask '.*number of wages") as refused:
            release.ask(question)
        release.ask(str(refused.value).rpartition("ask '")[2].rstrip("'"))
    with pytest.raises(ParameterError):
        release.ask("total wages")
    assert release.ask("rows by ward").meaning == "count of ward"


def test_answers_say_what_is_counted_on_one_line_of_their_own():
    for options, line in (
        (SEVERAL, "counted: at most 2 rows of each person (too few rows, if some have more)"),
        (MEANS, "counted: one record of each person in each group of their rows"),
    ):
        release = plan_of(**options).release(ROWS)
        for question in ("count", "average cost by ward", "share of ward=A"):
            printed = str(release.ask(question)).splitlines()
            assert line in printed
            assert max(map(len, printed)) <= 80
    assert "counted" not in str(plan_of().release(ROWS).ask("count"))


def test_a_label_that_is_also_a_noun_or_a_time_has_two_readings():
    kind = gn.Attribute("kind", ["stays", "visits", "March"])
    months = gn.Attribute("month", ["2023-02", "2023-03"])
    schema = gn.Schema([kind, months], about=gn.About(title="Stays in hospitals"))
    table = pa.table({"kind": ["stays", "visits", "March"] * 40, "month": ["2023-03"] * 120})
    release = gn.plan(schema, 2, gn.zCDP(1.0)).release(table)
    for question, words in (
        ("how many stays", "ask 'how many kind=stays' or ask 'how many rows'"),
        ("how many in March", "ask 'how many in kind=March'"),
    ):
        with pytest.raises(ParameterError, match="in full, since it is a label and") as refused:
            release.ask(question)
        assert words in str(refused.value)
    for question, meaning in (
        ("how many visits", "count of kind=visits"),
        ("how many in February", "count of month=2023-02"),
        ("share of month given stays", "share of month given kind=stays"),
    ):
        assert release.ask(question).meaning == meaning
