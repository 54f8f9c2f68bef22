"""Times in questions: by the labels and bins of a release, exactly or not at all."""

import datetime

import pytest
from cases import one_test_of

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.tables.release.grammar import parsed
from gaussnoise.tables.release.periods import InexactError, kind_of, period_of, times_of
from gaussnoise.tables.release.question import Count, Difference, Share

Y = datetime.date
MONTHS = gn.Attribute("month", [f"2023-{k:02d}" for k in range(1, 13)])
BINS = gn.Attribute("born", edges=[Y(2022, 1, 1), Y(2023, 1, 1), Y(2023, 3, 1), Y(2024, 1, 1)])
OPEN = gn.Attribute("born", edges=[float("-inf"), Y(2022, 1, 1), Y(2023, 1, 1), float("inf")])
SEX = gn.Attribute("sex", ["F", "M"])


@one_test_of(
    ("text", "first", "end"),
    [
        ("2023", (2023, 1, 1), (2024, 1, 1)),
        ("March 2023", (2023, 3, 1), (2023, 4, 1)),
        ("dec of 2023", (2023, 12, 1), (2024, 1, 1)),
        ("2023-02", (2023, 2, 1), (2023, 3, 1)),
        ("2023-02-28", (2023, 2, 28), (2023, 3, 1)),
        ("28 February 2023", (2023, 2, 28), (2023, 3, 1)),
        ("Q4 2023", (2023, 10, 1), (2024, 1, 1)),
        ("2023-Q1", (2023, 1, 1), (2023, 4, 1)),
        ("the second quarter of 2023", (2023, 4, 1), (2023, 7, 1)),
        ("week 1 of 2023", (2023, 1, 2), (2023, 1, 9)),  # weeks of ISO 8601 start on Monday
        ("2020-W53", (2020, 12, 28), (2021, 1, 4)),
    ],
)
def test_texts_say_times(text, first, end):
    period = period_of(text)
    assert period.days(period.year) == (Y(*first).toordinal(), Y(*end).toordinal())


def _edges(*days):
    return gn.Attribute("admitted", edges=[Y(*day) for day in days])


@one_test_of(
    ("attribute", "kind"),
    [
        (MONTHS, "month"),
        (gn.Attribute("x", ["January", "May"]), "month"),
        (gn.Attribute("x", ["2023", "2024"]), "year"),
        (gn.Attribute("x", ["2023-Q1", "2023-Q3"]), "quarter"),
        (_edges((2023, 1, 1), (2023, 2, 1), (2023, 3, 1)), "month"),
        (_edges((2023, 10, 1), (2024, 1, 1)), "quarter"),
        (_edges((2020, 12, 28), (2021, 1, 4), (2021, 1, 11)), "week"),
        (_edges((2023, 1, 1), (2023, 1, 2), (2023, 1, 3)), "day"),
        (_edges((2023, 1, 2), (2023, 2, 2)), None),
        (BINS, None),
        (OPEN, None),
        (SEX, None),
    ],
)
def test_cells_that_are_all_months_are_called_so(attribute, kind):
    assert kind_of(attribute) == kind


def test_by_month_takes_the_bins_of_one_attribute():
    months = _edges(*((2023, k, 1) for k in range(1, 13)))
    schema = gn.Schema([months, SEX])
    for text in ("how many by month", "count for each month", "count per month"):
        assert parsed(text, schema) == Count({0: None})
    assert parsed("share of sex=F by month", schema) == Share({1: (0,)}, {0: None})
    named = gn.Attribute("month", ["a", "b"])
    with pytest.raises(ParameterError, match="«month»: expected an attribute"):
        parsed("count by month", gn.Schema([months, gn.Attribute("left", edges=months.edges)]))
    assert parsed("count by month", gn.Schema([months, named])) == Count({1: None})
    with pytest.raises(ParameterError, match="«week»"):
        parsed("count by week", schema)


@one_test_of(
    "text", ["2023-13", "2023-02-30", "Marchs", "2023-W53", "week 53", "0999", "2023-", "spring"]
)
def test_other_texts_are_no_times(text):
    assert period_of(text) is None


@one_test_of(
    ("attribute", "first", "last", "cells"),
    [
        (MONTHS, "March", "March", (2,)),
        (MONTHS, "march 2023", "march 2023", (2,)),
        (MONTHS, "January", "June", tuple(range(6))),
        (MONTHS, "January", "June 2023", tuple(range(6))),
        (MONTHS, "2023", "2023", tuple(range(12))),
        (MONTHS, "Q2", "Q2", (3, 4, 5)),
        (BINS, "2022", "2022", (0,)),
        (BINS, "January 2023", "February 2023", (1,)),
        (OPEN, "2022", "2022", (1,)),
        (gn.Attribute("m", ["March", "May"]), "March", "March", (0,)),
        (gn.Attribute("m", ["Q1 2022", "Q2 2022", "Q1 2023"]), "Q2", "Q2", (1,)),
        (gn.Attribute("year", [2021, 2022, 2023]), "2021", "2022", (0, 1)),
        (gn.Attribute("week", ["2023-W01", "2023-W02"]), "week 2", "week 2", (1,)),
        (gn.Attribute("m", ["2023-01", "2023-02"], other="later"), "February", "February", (1,)),
    ],
)
def test_times_are_labels_or_bins(attribute, first, last, cells):
    assert times_of(attribute).cells(period_of(first), period_of(last)) == cells


@one_test_of(
    ("attribute", "first", "last", "words"),
    [
        (MONTHS, "week 2", "week 2", "2023-01 is partly in it"),
        (MONTHS, "2022", "2022", "a time of 'month'"),
        (MONTHS, "November", "February", "a time of 'month'"),
        (MONTHS, "November 2023", "February 2024", "a time of 'month'"),
        (BINS, "April 2023", "April 2023", "[2023-03-01, 2024-01-01] is partly in it"),
        (BINS, "2023", "2023", "[2023-03-01, 2024-01-01] is partly"),  # it has one day of 2024
        (OPEN, "2021", "2021", "(-inf, 2022-01-01) is partly in it"),
        (gn.Attribute("m", ["2022-03", "2023-03"]), "March", "March", "may be of 2022 or 2023"),
        (gn.Attribute("m", ["2023-01", "2023-03"]), "January", "March", "a time of 'm'"),  # a gap
        (gn.Attribute("m", ["March", "May"]), "March 2023", "March 2023", "which has no years"),
        (gn.Attribute("m", ["March", "May"]), "March", "May", "a time of 'm'"),
    ],
)
def test_times_that_labels_or_bins_do_not_have_are_refused(attribute, first, last, words):
    with pytest.raises(InexactError) as refused:
        times_of(attribute).cells(period_of(first), period_of(last))
    assert words in str(refused.value)


@one_test_of(
    ("attribute", "word", "text", "cells"),
    [
        (MONTHS, "before", "March 2023", (0, 1)),
        (MONTHS, "since", "November 2023", (10, 11)),
        (MONTHS, "after", "November 2023", (11,)),
        (OPEN, "before", "2022", (0,)),
        (OPEN, "since", "2022", (1, 2)),
        (BINS, "after", "2022", (1, 2)),
        (MONTHS, "before", "March", None),  # of which year?
        (MONTHS, "before", "2023", None),
        (BINS, "after", "2023", None),  # the last bin has the first day after it
        (gn.Attribute("m", ["2023-01", "2023-02"], other="later"), "since", "2023", None),
    ],
)
def test_times_before_and_after_another(attribute, word, text, cells):
    times, period = times_of(attribute), period_of(text)
    if cells is not None:
        assert times.beyond(period, word) == cells
        return
    with pytest.raises(InexactError):
        times.beyond(period, word)


def test_labels_that_are_no_times_have_none():
    for attribute in (
        gn.Attribute("code", [2021, 2022]),
        gn.Attribute("age", edges=[2000, 2010, 2020]),
        gn.Attribute("word", ["March", "hare"]),
        gn.Attribute("month", ["2023-01", "January"]),
        gn.Attribute("pay", clip=[2000, 2023]),
    ):
        assert times_of(attribute) is None


@one_test_of(
    ("question", "meaning"),
    [
        ("sex=F in March 2023", Count({1: (0,), 0: (2,)})),
        ("how many from January to March by sex", Count({0: (0, 1, 2), 1: None})),
        ("share of F during 2023-Q1", Share({1: (0,)}, {0: (0, 1, 2)})),
        ("number of F since November 2023", Count({1: (0,), 0: (10, 11)})),
        ("how many on 1 March 2023", None),
        (
            "difference of F between March and April",
            Difference(*(Count({1: (0,), 0: (k,)}) for k in (2, 3))),
        ),
        ("change of F from March to May", Difference(*(Count({1: (0,), 0: (k,)}) for k in (4, 2)))),
        ("change of F", None),
        ("month in March", Count({0: (2,)})),
        ("share of sex by month in March", None),
    ],
)
def test_questions_about_times(question, meaning):
    schema = gn.Schema([MONTHS, SEX])
    if meaning is not None:
        assert parsed(question, schema) == meaning
        return
    with pytest.raises(ParameterError, match="«"):
        parsed(question, schema)


def test_a_time_of_two_attributes_needs_the_name_of_one():
    schema = gn.Schema([MONTHS, BINS, SEX])
    with pytest.raises(ParameterError, match="the attribute before this time, one of month, born"):
        parsed("sex=F in March 2023", schema)
    assert parsed("sex=F, month in March 2023", schema) == Count({2: (0,), 0: (2,)})
    assert parsed("born in 2022 by sex", schema) == Count({1: (0,), 2: None})
