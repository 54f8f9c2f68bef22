"""Tests of questions in words: their meaning, their answers, and the errors in them."""

import html
import itertools
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from cases import one_test_of
from scipy import stats

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import ParameterError
from gaussnoise.tables.release.grammar import parsed
from gaussnoise.tables.release.question import (
    ByTick,
    Change,
    Count,
    Difference,
    Mean,
    Quantile,
    Ratio,
    Share,
    Summed,
    Top,
    Trend,
)
from gaussnoise.tables.release.ratios import difference_of_ratios, fieller
from gaussnoise.tables.release.report.answers import answers_of
from gaussnoise.tables.release.report.pages import release_page
from gaussnoise.tables.release.shorter import question_text, shorter
from gaussnoise.tables.release.suggestion import answer_or_hint


def asked(question, schema, tick=None):
    """The meaning of a question, or its refusal where tables answer all that is understood."""
    return answer_or_hint(
        question,
        schema,
        tick,
        [(name,) for name in schema.names],
        lambda text: parsed(text, schema, tick),
        lambda meaning, _: meaning,
    )


SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("age", edges=[0, 18, 40, 65, 120]),
        gn.Attribute("age group, wide", ["young", "not so young"]),
        gn.Attribute("employed", [True, False]),
        gn.Attribute("region", ["North West", "Łódź, city", 'say "hi"'], other="other"),
    ]
)
CELLS = [("sex", "age", "employed"), ("sex", "region"), ("age group, wide",)]


@pytest.fixture(scope="module")
def release():
    rng, n = np.random.default_rng(3), 6000
    age = rng.uniform(0, 120, n)
    people = {
        "sex": rng.choice(["F", "M"], n),
        "age": age,
        "age group, wide": np.where(age < 30, "young", "not so young"),
        "employed": rng.random(n) < 0.6,
        "region": rng.choice([*SCHEMA.attributes[4].categories, "elsewhere"], n),
    }
    return gn.plan(SCHEMA, CELLS, gn.zCDP(0.05)).release(pa.table(people))


@one_test_of(
    ("question", "meaning"),
    [
        ("count", Count({})),
        ("COUNT of sex = F ,age=[18,40)", Count({0: (0,), 1: (1,)})),
        ("count of (sex=F)", Count({0: (0,)})),
        ("count by sex", Count({0: None})),
        ("count of age=[18, 65)", Count({1: (1, 2)})),
        ("count of age=[40, 120] by sex=F|M", Count({1: (2, 3), 0: (0, 1)})),
        ("count of age<65", Count({1: (0, 1, 2)})),
        ("count of age>=65", Count({1: (3,)})),
        ("count of age in ([0, 18), [65, 120])", Count({1: (0, 3)})),
        ("count of age group, wide=not so young", Count({2: (1,)})),
        ('count of "age group, wide"="young"', Count({2: (0,)})),
        ("count of employed=true|False", Count({3: (0, 1)})),
        ('count of region=Łódź, city|"say ""hi"""|other', Count({4: (1, 2, 3)})),
        ("share of employed given sex=F, age", Share({3: None}, {0: (0,), 1: None})),
        ("share of employed=True by sex given age", Share({3: (0,)}, {0: None, 1: None})),
        ("median of age", Quantile(1, (0.5,), {})),
        ("quantile 0, .5,1 of age by sex", Quantile(1, (0.0, 0.5, 1.0), {0: None})),
        ("difference of sex=F and sex=M", Difference(Count({0: (0,)}), Count({0: (1,)}))),
        (
            "difference of count of (sex=F) and (sex=M) given age",
            Difference(Count({0: (0,), 1: None}), Count({0: (1,), 1: None})),
        ),
        (
            "difference of share of employed=True given sex=F, age and sex=M",
            Difference(Share({3: (0,)}, {0: (0,), 1: None}), Share({3: (0,)}, {0: (1,), 1: None})),
        ),
    ],
)
def test_questions_mean_what_they_say(question, meaning):
    assert parsed(question, SCHEMA) == meaning


@one_test_of(
    ("question", "meaning"),
    [
        ("total", Count({})),
        ("How many?", Count({})),
        ("how many rows, sex=F", Count({0: (0,)})),
        ("number of sex=F where age<18", Count({0: (0,), 1: (0,)})),
        ("what is the total of sex is F", Count({0: (0,)})),
        ("sex=F and age at least 40", Count({0: (0,), 1: (2, 3)})),
        ("age more than 40", Count({1: (2, 3)})),
        ("age>40", Count({1: (2, 3)})),
        ("count of age less than 40 per sex", Count({1: (0, 1), 0: None})),
        ("count of age between 18 and 65 by sex", Count({1: (1, 2), 0: None})),
        ("per cent of employed=true by sex", Share({3: (0,)}, {0: None}, True)),
        ("median age by sex and employed", Quantile(1, (0.5,), {0: None, 3: None})),
        ("top 3 of region, sex=F", Top(Count({4: None, 0: (0,)}), 3, True)),
        ("smallest region", Top(Count({4: None}), 1, False)),
        (
            "which region has the largest share of sex=F",
            Top(Share({0: (0,)}, {4: None}), 1, True),
        ),
        (
            "difference of (share of employed=true, sex=F) and (share of sex=F) by region",
            Difference(Share({3: (0,), 0: (0,)}, {4: None}), Share({0: (0,)}, {4: None})),
        ),
        (
            "difference of count of sex=F and count of sex=M by age",
            Difference(Count({0: (0,), 1: None}), Count({0: (1,), 1: None})),
        ),
        ("change of count of sex=F from tick 3 to tick 7", Change(Count({0: (0,)}), (3, 7))),
        ("share of sex=F by tick", ByTick(Share({0: (0,)}, {}))),
        ("how many people have age at least 65?", Count({1: (3,)})),
        ("how many are there?", Count({})),
        ("number of people with age<18", Count({1: (0,)})),
        ("how many sex=F", Count({0: (0,)})),
        ("how many in each region", Count({4: None})),
        ("what share of sex=F has age<18", Share({1: (0,)}, {0: (0,)})),
        ("what per cent of sex=F has age<18 by region", Share({1: (0,)}, {0: (0,), 4: None}, True)),
        ("fraction of sex=F if age<18", Share({0: (0,)}, {1: (0,)})),
        ("distribution of age by sex", Share({1: None}, {0: None})),
        (
            "difference in share of sex=F between age<18 and age>=65 by region",
            Difference(Share({0: (0,)}, {1: (0,), 4: None}), Share({0: (0,)}, {1: (3,), 4: None})),
        ),
        ("ratio of count between sex=F and sex=M", Ratio(Count({0: (0,)}), Count({0: (1,)}))),
        ("difference of count between tick 1 and tick 3", Change(Count({}), (1, 3))),
        ("count of sex=F in tick 3", ByTick(Count({0: (0,)}), (3, 3))),
        ("age over time", ByTick(Count({1: None}))),
        ("age over 40", Count({1: (2, 3)})),
    ],
)
def test_words_that_people_use_are_understood(question, meaning):
    assert parsed(question, SCHEMA) == meaning


CITY = gn.Schema(
    [
        gn.Attribute("ward", ["North", "South"], groups={"half": {"Upper": ["North"]}}),
        gn.Attribute("month", ["January", "March"]),
        gn.Attribute("sex", ["women", "men"]),
        gn.Attribute("age", edges=[0, 18, 65, 100]),
        gn.Attribute("covid", ["no", "yes"]),
        gn.Attribute("children", ["none", "one", "more"]),
    ]
)
PAY = gn.Schema(
    [gn.Attribute("sex", ["women", "men"]), gn.Attribute("pay", clip=[0, 9]), CITY.attributes[0]]
)


@one_test_of(
    ("question", "meaning"),
    [
        ("women", Count({2: (0,)})),
        ('"women" by ward', Count({2: (0,), 0: None})),
        ("how many women in the North", Count({2: (0,), 0: (0,)})),
        ("how many women in Upper", Count({2: (0,), 0: (0,)})),
        ("covid=yes in March", Count({4: (1,), 1: (1,)})),
        ("how many men under 18", Count({2: (1,), 3: (0,)})),
        ("how many people are over 65", Count({3: (2,)})),
        ("how many are between 18 and 100", Count({3: (1, 2)})),
        ("how many women have covid?", Count({2: (0,), 4: (1,)})),
        ("how many people had covid in March", Count({4: (1,), 1: (1,)})),
        ("how many people so far?", Count({})),
        ("by ward and month", Count({0: None, 1: None})),
        ("compare covid=yes by month", Count({4: (1,), 1: None})),
        ("share by ward", Share({0: None}, {})),
        ("share of women in each ward", Share({2: (0,)}, {0: None})),
        ("what share had a covid", Share({4: (1,)}, {})),
        ("percentage of people with covid", Share({4: (1,)}, {}, True)),
        ("percentage of people with covid=yes among men", Share({4: (1,)}, {2: (1,)}, True)),
        ("what percentage of women had covid?", Share({4: (1,)}, {2: (0,)}, True)),
        ("age distribution by sex", Share({3: None}, {2: None})),
        ("difference between women and men", Difference(Count({2: (0,)}), Count({2: (1,)}))),
        ("ratio of women to men", Ratio(Count({2: (0,)}), Count({2: (1,)}))),
        (
            "difference in covid=yes between women and men by ward",
            Difference(Count({4: (1,), 2: (0,), 0: None}), Count({4: (1,), 2: (1,), 0: None})),
        ),
        ("change in covid=yes between tick 1 and tick 5", Change(Count({4: (1,)}), (1, 5))),
        ("difference between tick 1 and tick 5", Change(Count({}), (1, 5))),
        ("trend of share of covid=yes by sex", Trend(Share({4: (1,)}, {2: None}))),
        ("trend of women", Trend(Count({2: (0,)}))),
        ("women in ticks 2 to 4", ByTick(Count({2: (0,)}), (2, 4))),
        ("women since tick 3", ByTick(Count({2: (0,)}), (3, None))),
        ("women in the last tick", ByTick(Count({2: (0,)}), (None, None))),
        ("share of women by tick and ward", ByTick(Share({2: (0,)}, {0: None}))),
        ("median age by tick", ByTick(Quantile(3, (0.5,), {}))),
    ],
)
def test_labels_alone_and_other_words_of_readers_are_understood(question, meaning):
    assert parsed(question, CITY, "tick") == meaning
    other = question.replace("ticks", "weeks").replace("tick", "week")
    assert parsed(other, CITY, "week") == meaning


@one_test_of(
    ("question", "meaning"),
    [
        ("average pay of women in North", Mean(1, {0: (0,), 2: (0,)})),
        ("pay of men", Mean(1, {0: (1,)})),
        ("pay in the North", Mean(1, {2: (0,)})),
        ("total pay of women", Count({1: Summed((0.0, 9.0), True), 0: (0,)})),
        (
            "difference in average pay between women and men",
            Difference(Mean(1, {0: (0,)}), Mean(1, {0: (1,)})),
        ),
        ("ratio of pay of women to men", Ratio(Mean(1, {0: (0,)}), Mean(1, {0: (1,)}))),
    ],
)
def test_means_of_labels_alone_are_understood(question, meaning):
    assert parsed(question, PAY) == meaning


def test_a_label_that_two_attributes_have_needs_its_name_and_words_stay_words():
    schema = gn.Schema(
        [
            gn.Attribute("first", ["yes", "count", "by the sea", "7"]),
            gn.Attribute("second", ["yes", "no", "first"]),
        ]
    )
    for question in ("yes", "how many yes", "7", "count by the sea"):
        with pytest.raises(ParameterError):
            parsed(question, schema)
    assert parsed("count", schema) == Count({})
    assert parsed("first", schema) == Count({0: None})  # a name before a label
    assert parsed("no", schema) == Count({1: (1,)})
    assert parsed("how many no by first", schema) == Count({1: (1,), 0: None})


@one_test_of(
    ("question", "schema", "nearest"),
    [
        ("men vs women", CITY, "difference of count between sex=men and sex=women"),
        ("what did covid do from January to March", CITY, "of covid=yes between month=January"),
        ("how much more do men get than women", PAY, "difference of mean of pay between sex=men"),
        (
            "difference between women and men",
            PAY,
            "'difference of count between women and men' or ask 'difference of mean of pay between",
        ),
        ("covid rate by ward", CITY, "'share of covid=yes by ward'"),
        ("do many people in the north get covid", CITY, "'count of covid=yes, ward=North'"),
        ("is covid rising", CITY, "'trend of count of covid=yes'"),
        ("women in week 2", CITY, "if each tick is a week, ask 'women in tick 2'"),
        ("trend of covid by week", CITY, "answers 'trend of count of covid=yes'"),
        ("which week had the most covid=yes", CITY, "'count of covid=yes by tick'"),
        ("change of women from day 3 to day 5", CITY, "of women from tick 3 to tick 5'"),
        (
            "share of women with covid",
            CITY,
            "ask 'share of covid=yes given sex=women' or ask 'share of sex=women given covid=yes'",
        ),
        ("highest pay", PAY, "ask 'highest pay by sex'"),
    ],
)
def test_refusals_name_the_nearest_question(question, schema, nearest):
    with pytest.raises(ParameterError) as refused:
        asked(question, schema, "tick")
    assert nearest in str(refused.value)
    assert "\n" not in str(refused.value)
    hint = str(refused.value).rpartition("ask '")[2].rstrip("'")
    if "hint: ask" in str(refused.value):  # a question that is understood
        parsed(hint, schema, "tick")


def test_a_release_has_no_ticks_and_its_refusals_offer_none():
    with pytest.raises(ParameterError) as refused:
        asked("women week 2 of covid", CITY)
    assert "tick" not in str(refused.value)
    with pytest.raises(ParameterError, match="«mums»") as refused:
        asked("mums", CITY)
    assert "; hint: ask" not in str(refused.value)  # nothing in it is known


def test_names_of_attributes_stand_before_newer_words():
    words = ["total", "number", "largest", "tick", "per cent"]
    schema = gn.Schema([gn.Attribute(word, [0, 1, 2]) for word in words])
    for i, word in enumerate(words):
        assert parsed(f"difference of {word}=0 and {word}=1", schema) == Difference(
            Count({i: (0,)}), Count({i: (1,)})
        )
    assert parsed("count by tick", schema) == Count({3: None})
    assert parsed("number more than 1", schema) == Count({1: (2,)})  # numbers are exact
    assert parsed("number between 0 and 1", schema) == Count({1: (0, 1)})
    words = ["people", "are", "fraction", "distribution", "over", "what", "gap", "has"]
    schema = gn.Schema([gn.Attribute(word, [0, 1]) for word in words])
    for i, word in enumerate(words):
        assert parsed(f"{word}=1", schema) == Count({i: (1,)})
        assert parsed(f"number of {word}=1", schema) == Count({i: (1,)})
        assert parsed(f"share of {word}=1 by {word}=0|1", schema) == Share({i: (1,)}, {i: (0, 1)})
    assert parsed("how many people=1", schema) == Count({0: (1,)})


def test_questions_of_strangers_are_read_quickly():
    many = "|".join(["F", "M"] * 20_000)
    assert parsed(f"count of sex={many}", SCHEMA) == Count({0: (0, 1)})
    for question in (
        "(" * 100_000,
        "difference of " + "(" * 100_000 + "count",
        "count " * 50_000,
        f"top {'9' * 100_000} of sex",
        f"count of age<{'9' * 100_000}",
        f"age between 1e{'9' * 400} and 18",
        '"' * 100_001,
        "change of count from tick 99999999999 to tick 1",
    ):
        with pytest.raises(ParameterError):
            parsed(question, SCHEMA)


def test_a_clipped_number_alone_is_its_mean_and_is_never_counted():
    schema = gn.Schema(
        [
            gn.Attribute("sex", ["F", "M"]),
            gn.Attribute("age", edges=[0, 20, 40, 120]),
            gn.Attribute("pay", clip=[0, 100]),
        ]
    )
    for question, meaning in (
        ("pay by sex", Mean(2, {0: None})),
        ("mean of pay by age", Mean(2, {1: None})),
        ("mean of pay, age between 20 and 120 by sex", Mean(2, {1: (1, 2), 0: None})),
        ("which age has the highest pay", Top(Mean(2, {1: None}), 1, True)),
        ("largest pay by sex", Top(Mean(2, {0: None}), 1, True)),
        (
            "difference in mean of pay between sex=M and sex=F",
            Difference(Mean(2, {0: (1,)}), Mean(2, {0: (0,)})),
        ),
    ):
        assert parsed(question, schema) == meaning
    for question in ("count of pay", "how many pay, sex=F", "count by pay"):
        with pytest.raises(ParameterError, match=r"folder answers 'mean of pay[' ]"):
            asked(question, schema)


@one_test_of(
    ("question", "place", "words"),
    [
        ("averge of age", "«averge»", "this folder answers 'count by age'"),
        ("top of region", "«of»", "a whole number"),
        ("top 0 of region", "«0»", "at least 1"),
        ("largest sex=F", "«sex=F»", "groups to compare; hint: ask 'largest sex=F by age'"),
        ("age between 18 and 50", "«50»", "an edge of 'age', one of 40, 65, 120"),
        ("age between 40 and 18", "«18»", "an edge of 'age', one of 65, 120"),
        ("sex more than 1", "«1»", "which has none; hint: this folder answers 'count"),
        ("mean of age", "«age»", "answers 'median of age'"),
        ("how meny", "«how»", "how many"),
        ("count of sex=F of", "«of»", '"given"'),
        ("difference of sex=F and sex=M and age", "«and»", "the end of the question"),
        ("top 2 of sex by tick", "«top", "no groups by tick"),
        ("change of count from tick 3 to tick 3", "«change", "two ticks"),
        ("difference of (share of sex=F) and (per cent of sex=F)", "«difference", "two counts"),
        ("coumt of sex", "«coumt»", "ask 'count of sex'"),
        ("", "«»", "starts with one of"),
        ("count of sexx=F", "«sexx»", "answers 'count of sex=F'"),
        ("count of age=[18, 64)", "«[18, 64)»", "between two of its edges"),
        ("count of age=[18, 65]", "«[18, 65]»", "label of 'age'"),
        ("count of age<64", "«64»", "inner edge"),
        ("count of sex<1", "«1»", "inner edge"),
        ("count of sex=F age", "«age»", "a comma"),
        ("count of sex=F, sex=M", "«sex=M»", "once"),
        ('count of "sex', '«"sex»', "quote"),
        ("count of age in [0, 18)", "«", '"("'),
        ("share of employed given employed", "«given employed»", "other attributes"),
        (
            "difference of share of employed=true given sex=F and employed=false",
            "«employed=",
            "other",
        ),
        ("difference of count of sex=F and share of sex=F", "«difference", "two counts or two"),
        ("ratio of sex=F", "«»", '"to"'),
        ("quantile 1.5 of age", "«1.5»", "between 0 and 1"),
        ("median of age given age", "«given age»", "other attributes"),
    ],
)
def test_refusals_mark_the_place_and_say_what_would_be_understood(question, place, words):
    with pytest.raises(ParameterError) as refused:
        asked(question, SCHEMA)
    assert place in str(refused.value)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_group_in_place_of_a_label_is_called_one():
    groups = {"region": {"North": ["a", "b"]}}
    schema = gn.Schema([gn.Attribute("county", ["a", "b", "c"], groups=groups)])
    for question in ("count of county=North", 'count of county="North"'):
        with pytest.raises(ParameterError, match="a group, write region=North"):
            parsed(question, schema)
    assert parsed("count of region=North", schema) == Count({0: (0, 1)})
    with pytest.raises(ParameterError) as refused:
        parsed("count of county=South", schema)
    assert "a group" not in str(refused.value)


@pytest.mark.parametrize("asked", ["median of income", "cdf of income"])
def test_clipped_numbers_have_means_and_no_bins(asked):
    schema = gn.Schema([gn.Attribute("income", clip=[0, 100])])
    made = gn.plan(schema, 1, gn.zCDP(1)).release(pa.table({"income": [3.0, 70.0] * 200}))
    with pytest.raises(ParameterError, match="hint: this folder answers 'mean of income'"):
        made.ask(asked)
    assert made.ask("mean of income").estimate.shape == ()


def test_only_text_is_a_question(release):
    with pytest.raises(ParameterError, match="got int"):
        release.ask(3)
    with pytest.raises(ParameterError, match="0 < level < 1"):
        release.ask("count", 95)


def test_counts_and_shares_are_those_of_the_tables(release):
    table = release["sex", "age"]
    found = release.ask("count of sex, age")
    assert found.labels == table.labels
    np.testing.assert_allclose(found.estimate, table.estimate)
    np.testing.assert_allclose(found.standard_deviation, table.standard_deviation)
    np.testing.assert_allclose(found.low, table.confidence_interval().low)

    names = ("sex", "age", "employed")
    shares = release.proportions(names, given=("sex", "age"))
    asked = release.ask("share of employed given sex, age", 0.8)
    assert asked.attributes == names
    np.testing.assert_allclose(asked.estimate, shares.estimate)
    np.testing.assert_allclose(asked.standard_deviation, shares.standard_deviation)
    low, high = shares.confidence_interval(0.8)
    np.testing.assert_allclose([asked.low, asked.high], [low, high])

    cdf, of_cdf = release.ask("cdf of age given sex"), release.cdf("age", given="sex")
    assert cdf.labels == of_cdf.labels
    np.testing.assert_allclose(cdf.estimate, of_cdf.estimate)
    np.testing.assert_allclose(cdf.low, of_cdf.confidence_interval().low)


def test_sets_of_labels_are_sums(release):
    both = release.ask("count of age=[0, 40), sex=F")
    exact = release.contrast({("sex", "age"): np.array([[1, 1, 0, 0], [0, 0, 0, 0]])})
    assert float(both.estimate) == pytest.approx(exact.estimate)
    assert float(both.standard_deviation) == pytest.approx(exact.standard_deviation)
    every = release.ask("share of sex=F|M")
    assert (float(every.estimate), float(every.standard_deviation)) == (1, 0)


def test_differences_know_what_counts_share(release):
    found = release.ask("difference of (sex=F) and (sex=M)")
    exact = release.contrast({("sex",): [1, -1]})
    assert float(found.estimate) == pytest.approx(exact.estimate)
    assert float(found.standard_deviation) == pytest.approx(exact.standard_deviation)
    short = release.ask("difference of share of employed=true given sex=F and sex=M")
    long = release.ask(
        "difference of share of employed=true given sex=F and share of employed=true given sex=M"
    )
    assert short.meaning == long.meaning
    assert float(short.estimate) == float(long.estimate)
    shares = release.ask("share of employed=true given sex").estimate
    assert float(short.estimate) == pytest.approx(shares[0] - shares[1])


def test_quantiles_of_groups_are_those_of_the_release(release):
    found, known = (
        release.ask("quantile 0.1, 0.5 of age given sex", 0.9),
        release.quantiles("age", [0.1, 0.5], given="sex"),
    )
    np.testing.assert_array_equal(found.estimate, known.estimate)
    np.testing.assert_array_equal(found.low, known.confidence_interval(0.9).low)
    one = release.ask("median of age given sex=M")
    assert one.attributes == ("age quantile",)
    np.testing.assert_allclose(one.estimate, known.estimate[1, 1:])
    assert one.standard_deviation is None
    assert "standard_deviation" not in one.columns()
    release.ask("median of age given sex=F|M, employed")
    with pytest.raises(ParameterError, match="integer categories"):
        release.ask("median of region")


COUNTIES = gn.Schema(
    [
        gn.Attribute(
            "county",
            [1, 2, 3, 4],
            groups={"state": {"N": [1, 2], "S": [3, 4]}, "coast": {"sea": [1, 3]}},
        ),
        gn.Attribute("sex", ["F", "M"]),
    ]
)


@pytest.fixture(scope="module")
def counties():
    people = pa.table({"county": [1, 2, 3, 4, 4] * 100, "sex": ["F", "M"] * 250})
    return gn.plan(COUNTIES, 2, gn.zCDP(1)).release(people)


def test_shares_of_parts_in_their_groups_are_the_proportions(counties):
    for question, names, given in (
        ("share of county given state", "county", "state"),
        ("share of county given sex, state", ("sex", "county"), ("sex", "state")),
    ):
        found, known = counties.ask(question), counties.proportions(names, given=given)
        low, high = known.confidence_interval()
        np.testing.assert_allclose(found.estimate, known.estimate)
        np.testing.assert_allclose(found.low, low)
        np.testing.assert_allclose(found.high, high)
    all_counties = counties.ask("share of county given state")
    assert all_counties.meaning == "share of county given state"
    assert (all_counties.attributes, all_counties.labels) == (("county",), ((1, 2, 3, 4),))
    north = counties.ask("share of county given state=N")
    assert north.labels == ((1, 2),)
    np.testing.assert_allclose(north.estimate, all_counties.estimate[:2])
    one = counties.ask("share of county=4, sex=F given state")
    both = counties.ask("ratio of (county=4, sex=F) to (state=S)")
    assert float(one.estimate) == pytest.approx(float(both.estimate))
    gap = counties.ask(
        "difference of share of county=1 given state and share of county=3 given state"
    )
    assert float(gap.estimate) == pytest.approx(all_counties.estimate[[0, 2]] @ [1, -1])


@pytest.mark.parametrize(
    "question",
    [
        "share of county given coast",  # counties 2 and 4 are in no group
        "share of state given county",
        "share of county given county",
        "share of county=1|3 given state",
        "share of county given county=1|2, county=3",
        "cdf of county given state",
    ],
)
def test_parts_that_no_group_holds_are_refused(counties, question):
    with pytest.raises(ParameterError, match="«"):
        counties.ask(question)


def test_numbers_that_are_not_known_are_words_at_every_door():
    """A group without rows has no mean, and a ratio to its count no interval."""
    schema = gn.Schema([gn.Attribute("town", ["a", "none"]), gn.Attribute("pay", clip=[0, 5000])])
    rows = pa.table({"town": ["a"] * 900, "pay": [2000.0] * 900})
    plan = gn.plan(schema, [("town", "pay")], gn.zCDP(0.1))
    for seed in itertools.count():  # about every second of them has a negative count of no rows
        release = plan.simulate(rows, np.random.default_rng(seed))
        means = release.means("pay", given="town")
        if np.isnan(means.estimate[1]):
            break
    expected = {
        "mean of pay by town": ("0  5,000", "0 to 5,000 where the group may be empty"),
        "difference of (mean of pay, town=a) and (mean of pay, town=none)": (
            "-5,000  5,000",
            "-5,000 to 5,000 where a group may be empty",
        ),
        "ratio of (count, town=a) and (count, town=none)": ("—     —", "denominator may be zero"),
    }
    answers = [release.ask(question) for question in expected]
    printed = [*map(str, answers), str(means), str(means.sorted()), str(means.top(2))]
    printed += [str(means.ratio("town", "a", "none")), str(means.difference("town", "a", "none"))]
    page = release_page(release, answers=answers_of(release, list(expected)))
    page = html.unescape(re.sub("<[^>]*>", "", page))
    for text in (*printed, page):
        assert "none" in text
        assert not re.search(r"\b(nan|inf|NaN)\b", text)
    for text, (ends, why) in zip(printed, expected.values(), strict=False):
        assert re.search(rf"none +(—|none) +{re.escape(ends)}".replace("  ", " +"), text), text
        assert why in text
        assert why.replace("-5", "−5") in page.replace("-5", "−5")
    assert all("a denominator may be zero" in text for text in printed[3:])
    assert "less mean of pay given town=none: none (−5,000 to 5,000)" in page
    assert "none (no interval)" in page
    rows = answers[2].to_dict()["rows"]
    assert rows[0] | {"low": 0} == {
        "estimate": None,
        "standard_deviation": None,
        "low": 0,
        "high": None,
    }


def test_parts_of_several_groups_are_not_compared_one_by_one(counties):
    north, south = (f"share of county given state={state}" for state in "NS")
    with pytest.raises(ParameterError, match="the same labels of 'county' throughout"):
        counties.ask(f"difference of {north} and {south}")
    same = counties.ask(f"difference of {north} and {north}")
    assert np.allclose(same.estimate, 0)


def test_a_ratio_whose_denominator_may_be_zero_has_no_finite_interval():
    empty = gn.plan(SCHEMA, ["sex"], gn.zCDP(1e-3)).release(pa.table({"sex": ["F"] * 9}))
    found = empty.ask("ratio of (sex=F) to (sex=M)", 0.9999)
    assert np.isinf(found.high)
    assert "no finite interval: the denominator may be zero" in found.note
    assert found.to_dict()["rows"][0]["high"] is None
    share = empty.ask("share of sex=M", 0.9999)
    assert min(0, share.estimate) <= share.low <= share.high or np.isnan(share.estimate)


def test_what_was_not_released_is_refused(release):
    with pytest.raises(ParameterError, match="no planned marginal contains age × region"):
        release.ask("count of age, region")
    for what in ("sum", "mean"):
        with pytest.raises(ParameterError, match="expected a number that the schema clips"):
            release.ask(f"{what} of income given sex")


def test_sums_and_means_are_those_of_the_release():
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("income", clip=[0, 100])])
    people = pa.table({"sex": ["F", "M"] * 500, "income": [10.0, 300.0] * 500})
    release = gn.plan(schema, [("sex", "income")], gn.zCDP(1)).release(people)
    for question, table in (
        ("sum of income given sex", release.sums("income", "sex")),
        ("mean of income by sex", release.means("income", "sex")),
        ("mean of income", release.means("income")),
    ):
        answer = release.ask(question, level=0.9)
        low, high = table.confidence_interval(0.9)
        assert np.array_equal(answer.estimate, table.estimate)
        assert np.array_equal(answer.low, low)
        assert np.array_equal(answer.high, high)
    women = release.means("income", "sex").part(0, 0)
    for question in ("mean of income given sex=F", "average income, sex=F"):
        answer = release.ask(question)
        low, high = women.confidence_interval()
        assert answer.estimate == pytest.approx(women.estimate, rel=1e-9)
        assert (answer.low, answer.high) == pytest.approx((low, high), rel=1e-9)


@pytest.fixture(scope="module")
def incomes():
    numbers = [gn.Attribute("income", clip=[0, 100]), gn.Attribute("change", clip=[-50, 50])]
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), *numbers])
    people = {"sex": ["F", "M"] * 500, "income": [10.0, 300.0] * 500, "change": [5.0, -20.0] * 500}
    tables = [("sex", "income"), ("sex", "change")]
    return gn.plan(schema, tables, gn.zCDP(1)).release(pa.table(people))


def test_ratios_and_differences_of_sums(incomes):
    sums, counts = incomes.sums("income", "sex"), incomes["sex"]
    z = stats.norm.ppf(0.975)
    found = incomes.ask("ratio of (sum of income, sex=F) to (sum of income, sex=M)")
    assert found.estimate == pytest.approx(sums.estimate[0] / sums.estimate[1])
    # a sum over its count is the mean, with the same interval
    means = incomes.means("income", "sex")
    for k, sex in enumerate("FM"):
        found = incomes.ask(f"ratio of (sum of income, sex={sex}) to (sex={sex})")
        ends = [ends[k] for ends in means.confidence_interval()]
        # means and their ends are within the interval of clipping
        assert np.clip(found.estimate, 0, 100) == pytest.approx(means.estimate[k], rel=1e-9)
        assert np.clip([found.low, found.high], 0, 100) == pytest.approx(ends, rel=1e-9)
    found = incomes.ask("ratio of sum of income to (count) given sex")
    assert found.attributes == ("sex",)
    assert found.estimate == pytest.approx(sums.estimate / counts.estimate)
    # two sums of the same rows; their ends are weights of virtual cells
    found = incomes.ask("difference of (sum of income, sex=M) and (sum of change, sex=M)")
    ends = {("sex", "income"): [[0, 0], [0, 100]], ("sex", "change"): [[0, 0], [50, -50]]}
    whole = incomes.contrast(ends)
    assert found.estimate == pytest.approx(whole.estimate)
    assert found.high - found.low == pytest.approx(2 * z * whole.standard_deviation)
    assert "clipped" in found.note
    negative = incomes.ask("ratio of (sum of change, sex=M) to (sex=M)")
    assert -22 < negative.low < negative.estimate < negative.high < -18
    for question in (
        "ratio of (sum of sex) to (count)",
        "ratio of (sum of income, sex=F to (count)",
        "count of (sum of income)",
    ):
        with pytest.raises(ParameterError):
            incomes.ask(question)


def test_differences_and_ratios_of_means_are_those_of_the_tables(incomes):
    means = incomes.means("income", "sex")
    for word, table in (
        ("difference", means.difference("sex", "F", "M")),
        ("ratio", means.ratio("sex", "F", "M")),
    ):
        low, high = table.confidence_interval()
        for question in (
            "(mean of income, sex=F) and (mean of income, sex=M)",
            "average income given sex=F and sex=M",
        ):
            found = incomes.ask(f"{word} of {question}")
            assert found.estimate == pytest.approx(table.estimate, rel=1e-9)
            assert found.standard_deviation == pytest.approx(table.standard_deviation, rel=1e-6)
            assert (found.low, found.high) == pytest.approx((low, high), rel=1e-6)
    total = incomes.ask("total income by sex")
    np.testing.assert_array_equal(total.estimate, incomes.sums("income", "sex").estimate)
    with pytest.raises(ParameterError, match=r"without bins; hint: this folder answers 'm"):
        incomes.ask("count of income between 0 and 50")
    with pytest.raises(ParameterError, match="clipped number"):
        incomes.ask("mean of income given change, sex=F")


def test_the_largest_have_intervals_of_all_that_were_compared(release):
    table = release["region",]
    low, high = table.confidence_interval(simultaneous=True)
    found = release.ask("top 2 of region")
    order = np.argsort(-table.estimate)[:2]
    assert found.labels == (tuple(table.labels[0][k] for k in order),)
    np.testing.assert_allclose(found.estimate, table.estimate[order])
    np.testing.assert_allclose((found.low, found.high), (low[order], high[order]))
    assert found.to_dict()["simultaneous"]
    assert "all 4 at once" in str(found)
    smallest = release.ask("smallest region by sex")
    assert smallest.estimate == release["sex", "region"].estimate.min()
    assert smallest.attributes == ("region × sex",)
    best = release.ask("largest share of employed=true by sex")
    assert best.estimate == release.ask("share of employed=true by sex").estimate.max()


def test_ranks_that_noise_mixes_are_named():
    schema = gn.Schema([gn.Attribute("kind", ["a", "b", "c", "d"])])
    rows = pa.table({"kind": ["a"] * 500 + ["b"] * 100 + ["c"] * 100 + ["d"] * 20})
    made = gn.plan(schema, 1, gn.zCDP(1e8)).release(rows)
    assert "noise cannot tell ranks 2 to 3 apart" not in made.ask("top 1 of kind").note
    assert made.ask("top 1 of kind").note.startswith("these ranks are clear of the noise")
    made = gn.plan(schema, 1, gn.zCDP(0.1)).release(rows)
    assert "the noise cannot tell ranks 2 to 3 apart" in made.ask("top 2 of kind").note
    people = rows.append_column("who", pa.array(range(len(rows))))
    of_persons = gn.plan(schema, 1, gn.zCDP(0.1), person="who").release(people)
    assert "the noise cannot tell ranks 2 to 3 apart" in str(of_persons.ask("top 2 of kind"))


def test_groups_that_may_be_empty_are_named_as_the_reason_of_mixed_ranks():
    """Of an empty group, a mean may be anything: then no rank of the others is known."""
    schema = gn.Schema(
        [gn.Attribute("town", ["A", "B", "C", "D"]), gn.Attribute("pay", clip=[0, 100])]
    )
    rows = pa.table({"town": ["A", "B", "C"] * 900, "pay": [90.0, 50.0, 10.0] * 900})
    made = gn.plan(schema, [("town", "pay")], gn.zCDP(1)).simulate(rows, np.random.default_rng(0))
    for asked in ("top 2 of mean of pay by town", "top 2 of (mean of pay given town)"):
        note = made.ask(asked).note
        assert "noise cannot tell ranks 1 to 3 apart, since groups may be empty: D" in note
    every = rows.append_column("x", rows["town"]).slice(0, 0)
    made = gn.plan(schema, [("town", "pay")], gn.zCDP(1)).simulate(every, np.random.default_rng(0))
    assert "may be empty: A, B, C, …" in made.ask("top 2 of mean of pay by town").note
    full = pa.table({"town": list("ABCD") * 900, "pay": [90.0, 50.0, 10.0, 70.0] * 900})
    made = gn.plan(schema, [("town", "pay")], gn.zCDP(1)).simulate(full, np.random.default_rng(0))
    assert "may be empty" not in made.ask("top 2 of mean of pay by town").note


def test_impossible_shares_are_said_to_be_and_end_no_interval():
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", range(200))])
    plan, rows = gn.plan(schema, 2, gn.zCDP(0.01)), pa.table({"sex": ["F"] * 900, "age": [0] * 900})
    found = plan.simulate(rows, np.random.default_rng(0)).ask("per cent of age given sex=F")
    assert (found.low >= 0).all()
    assert (found.high <= 100).all()
    below = found.estimate < 0
    assert below.any()
    assert [remark == "estimate below 0" for remark in found.remarks] == below.tolist()
    first = below[:20].tolist().index(True)
    assert str(found).splitlines()[2 + first].endswith("estimate below 0")
    assert [row.get("remark", "") for row in found.to_dict()["rows"]] == found.remarks
    assert all(len(line) <= 80 for line in str(found).splitlines())


def test_streams_answer_by_tick_and_from_tick_to_tick():
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("job", ["a", "b"])])
    plan = gn.plan(schema, 2, gn.zCDP(0.1), over=gn.streams.Ticks(6))
    ticks = [
        pa.table({"sex": ["F", "M", "F"] * n, "job": ["a", "b", "b"] * n}) for n in (90, 50, 70)
    ]
    tables = plan.simulate(ticks, np.random.default_rng(0))
    for one, two in ((1, 3), (3, 2)):
        found = tables.ask(f"change of count of sex=F from tick {one} to tick {two}")
        exact = tables.contrast({two: {("sex",): [1, 0]}, one: {("sex",): [-1, 0]}})
        assert found.estimate == pytest.approx(exact.estimate)
        assert found.standard_deviation == pytest.approx(exact.standard_deviation)
        assert found.meaning == f"count of sex=F, tick {two} less tick {one}"
    # a share's change, to first order, from the gradient of both ticks' counts
    found = tables.ask("change of share of job=a given sex=F from tick 1 to tick 2")
    weights = {}
    for tick, sign in ((2, 1), (1, -1)):
        counts = tables.period(tick)["sex", "job"].estimate[0]
        share = counts[0] / counts.sum()
        slopes = sign * np.array([1 - share, -share]) / counts.sum()
        weights[tick] = {("sex", "job"): [slopes, [0, 0]]}
    exact = tables.contrast(weights).standard_deviation
    assert found.standard_deviation == pytest.approx(exact, rel=1e-6)
    assert found.low < found.estimate < found.high
    by = tables.ask("share of job=a by sex by tick")
    assert (by.attributes, by.labels) == (("tick", "sex"), ((1, 2, 3), ("F", "M")))
    third = tables.ask("share of job=a by sex in tick 3")
    assert (third.labels[0], third.meaning[-10:]) == ((3,), " in tick 3")
    np.testing.assert_array_equal(third.estimate[0], by.estimate[2])
    with pytest.raises(ParameterError, match="one of the 3 ticks so far"):
        tables.ask("count in tick 4")
    for k in range(3):
        own = tables.period(k + 1).ask("share of job=a by sex")
        np.testing.assert_array_equal((by.estimate[k], by.low[k]), (own.estimate, own.low))
    assert tables.ask("count").estimate == tables.total()[()].estimate
    with pytest.raises(ParameterError, match="two of the 3 ticks so far"):
        tables.ask("change of count from tick 3 to tick 4")
    for question in ("count by tick", "change of count from tick 1 to tick 2"):
        with pytest.raises(ParameterError, match="the folder of a stream"):
            tables.total().ask(question)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_trends_of_streams_are_those_of_their_series(neighbors):
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("job", ["a", "b"])])
    over = gn.streams.Ticks(6, period="week")
    plan = gn.plan(schema, 2, gn.zCDP(0.1), over=over, neighbors=neighbors)
    ticks = [
        pa.table({"sex": ["F", "M", "F"] * n, "job": ["a", "b", "b"] * n, "week": [k] * 3 * n})
        for k, n in enumerate((90, 50, 70, 120), 1)
    ]
    tables = plan.simulate(ticks, np.random.default_rng(0))
    series = tables.series(("sex", "job")).trend()
    found = tables.ask("trend of count of sex, job")
    shares = tables.series(lambda one: one.proportions(("sex", "job"), given="sex")).trend()
    for answer, trend in (
        (found, series),
        (tables.ask("trend of share of job by sex"), shares),
    ):
        for name in ("estimate", "standard_deviation"):
            np.testing.assert_allclose(getattr(answer, name), getattr(trend, name), rtol=1e-6)
        np.testing.assert_allclose((answer.low, answer.high), trend.confidence_interval())
        # a test of each group, as numbers and beside them
        np.testing.assert_allclose(answer.pvalue, trend.pvalue, rtol=1e-6)
        assert answer.columns()["pvalue"] == answer.pvalue.flatten().tolist()
        for cell, p in zip(answer.to_dict()["rows"], trend.pvalue.flat, strict=True):
            words = f"no change: p {'< 0.0001' if p < 0.0001 else f'= {p:.2g}'}"
            assert cell["remark"] == words
            assert words in str(answer)
    one = tables.ask("trend of sex=F, job=a")
    assert one.estimate == pytest.approx(float(series.estimate[0, 0]))
    p = series.pvalue[0, 0]
    assert f"no change: p {'< 0.0001' if p < 0.0001 else f'= {p:.2g}'}" in one.note
    # the number of rows: 270, 150, 210, 360; public, hence without noise, under replacement
    all_rows = tables.ask("trend of count")
    assert (all_rows.standard_deviation == 0) == (neighbors == "replace")
    if neighbors == "replace":
        assert all_rows.estimate == pytest.approx(33)  # by least squares, as all ticks count alike
    with pytest.raises(ParameterError, match="at least 3 ticks so far, got 2"):
        plan.simulate(ticks[:2], np.random.default_rng(0)).ask("trend of count")
    with pytest.raises(ParameterError, match="the folder of a stream"):
        tables.total().ask("trend of count")


def test_rows_of_several_ticks_are_counted_together():
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(6))
    ticks = [pa.table({"sex": ["F", "M", "F"] * n}) for n in (90, 50, 70)]
    tables = plan.simulate(ticks, np.random.default_rng(0))
    for words, (first, last) in {
        "in ticks 1 to 2": (1, 2),
        "since tick 2": (2, 3),
        "in ticks 1 to 3": (1, 3),
    }.items():
        found, exact = tables.ask(f"sex {words}"), tables.window(first, last)["sex"]
        np.testing.assert_array_equal(found.estimate, exact.estimate)
        np.testing.assert_allclose(found.standard_deviation, exact.standard_deviation)
        assert found.meaning == f"count of sex in ticks {first} to {last}"
    last = tables.ask("sex in the last tick")
    np.testing.assert_array_equal(last.estimate[0], tables.period(3)["sex"].estimate)
    for words in ("in ticks 2 to 4", "since tick 4"):
        with pytest.raises(ParameterError, match="one of the 3 ticks so far"):
            tables.ask(f"sex {words}")


def test_answers_that_are_too_long_are_refused():
    names = ["a", "b"]
    schema = gn.Schema([gn.Attribute(name, range(120)) for name in names])
    release = gn.plan(schema, 2, gn.zCDP(1)).release(pa.table({name: [1] for name in names}))
    with pytest.raises(ParameterError, match="at most 10000 numbers, got 14400"):
        release.ask("count of a, b")


def test_answers_are_frames_and_plain_data(release):
    found = release.ask("share of employed=true given sex")
    assert found.to_frame().column_names == ["sex", "estimate", "standard_deviation", "low", "high"]
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["level"] == 0.95
    assert [row["sex"] for row in plain["rows"]] == ["F", "M"]
    assert "95 % intervals" in str(found)
    assert repr(found) == "Answer(share of employed=True given sex: 2 numbers)"
    with pytest.raises(ValueError, match="read-only"):
        found.estimate[0] = 1


# Coverage of intervals

TRUTH = np.array([30.0, 100.0, 45.0, 90.0])
REPEATS = 20_000


@pytest.mark.parametrize("scale", [2.0, 8.0, 25.0])
def test_intervals_of_ratios_and_their_differences_cover(scale):
    rng = np.random.default_rng(8)
    own = rng.normal(size=(REPEATS, 4)) * scale
    own[:, 1] += own[:, 0]  # a group contains what is counted in it
    own[:, 3] += own[:, 2]
    block = scale**2 * np.array([[1.0, 1.0], [1.0, 2.0]])
    covariance = np.broadcast_to(block, (REPEATS, 2, 2))
    x = TRUTH + own
    one, two = (fieller(x[:, k], x[:, k + 1], covariance, stats.norm.ppf(0.95)) for k in (0, 2))
    inside = (one.low <= 0.3) & (one.high >= 0.3)
    assert inside.mean() > 0.9 - 0.008
    if scale < 10:  # exact for groups clear of zero
        assert inside.mean() < 0.9 + 0.008
    both = difference_of_ratios(one, two, np.zeros(REPEATS))
    covered = ((both.low <= -0.2) & (both.high >= -0.2)) | np.isnan(both.estimate)
    assert covered.mean() > 0.9 - 0.01
    narrow = fieller(x[:, 0], x[:, 1], covariance, 1.0)
    assert ((narrow.low <= 0.3) & (narrow.high >= 0.3)).mean() < 0.9 - 0.008 or scale > 10


# The shell


@pytest.fixture
def call(capsys):
    def call(*words):
        return run(list(map(str, words))), *capsys.readouterr()

    return call


def test_the_shell_answers_from_the_folder_alone(release, tmp_path, call, quick_pictures):
    release.save(tmp_path / "out")
    question = "share of employed=true given sex"
    status, out, err = call("ask", tmp_path / "out", question)
    assert (status, err) == (0, "")
    assert out.strip() == str(release.ask(question))
    status, out, err = call("ask", tmp_path / "out", question, "--level", "0.5", "--json")
    assert json.loads(out) == release.ask(question, 0.5).to_dict()
    status, out, err = call("ask", tmp_path / "out", "count of sexx")
    assert (status, out) == (1, "")
    assert "«sexx»" in err
    assert len(err.strip().splitlines()) == 1
    status, out, err = call("ask", "--help")
    assert status == 0
    assert "cdf of age given sex" in out


def test_sums_and_means_over_persons_are_called_so():
    schema = gn.Schema([gn.Attribute("ward", ["a", "b"]), gn.Attribute("days", clip=[0, 60])])
    rows = pa.table({"id": [1, 1, 2], "ward": ["a", "a", "b"], "days": [3.0, 5.0, 9.0]})
    workload = [("ward", "days")]
    plans = {
        "": gn.plan(schema, workload, gn.zCDP(1)),
        " over persons, each with the mean of their own numbers": gn.plan(
            schema, workload, gn.zCDP(1), person="id", per_person={"days": "mean"}
        ),
    }
    for over, plan in plans.items():
        release = plan.simulate(rows, np.random.default_rng(0))
        assert f"sum of days{over} given ward" in str(release.ask("total days by ward"))
        assert f"mean of days{over} given ward" in str(release.ask("mean of days by ward"))


def test_answers_say_which_rows_they_are_of():
    schema = gn.Schema([gn.Attribute("age", edges=[0, 10, 20], other="not said")])
    rows = pa.table({"id": ["a", "a", "b"], "age": [5.0, 15.0, None]})
    rng = np.random.default_rng(0)
    released = gn.plan(schema, 1, gn.zCDP(1.0)).simulate(rows, rng)
    assert "of all rows, those in 'not said' too, which are in no bin" in str(
        released.ask("cdf of age")
    )
    assert "of the rows in bins, without those in 'not said'" in str(released.ask("median of age"))
    assert "counted" not in released.ask("count").note
    limited = gn.plan(schema, 1, gn.zCDP(1.0), person="id", rows_per_person=1).simulate(rows, rng)
    for question in ("count of age", "cdf of age", "median of age", "share of age=[0, 10)"):
        assert "counted: at most one row of each person" in limited.ask(question).note


def test_a_mean_that_noise_carried_outside_its_interval_says_so():
    sex, pay = gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 10000])
    plan = gn.plan(gn.Schema([sex, pay]), [("sex", "pay")], gn.zCDP(0.01))
    rows = pa.table({"sex": ["F"] * 9 + ["M"] * 9000, "pay": [10.0] * 9 + [5000.0] * 9000})
    release = next(
        found
        for seed in range(50)
        if (found := plan.simulate(rows, np.random.default_rng(seed))).means("pay", "sex").cut[0]
    )
    assert not release.means("pay", "sex").cut[1]
    for question, said in (("mean of pay by sex", 1), ("mean of pay given sex=F", 1)):
        answer = release.ask(question)
        assert [bool(remark) for remark in answer.remarks].count(True) == said
        assert "cut: noise made it impossible" in str(answer)
        assert "of values clipped to [0, 10000]" in answer.note
    assert not any(release.ask("mean of pay given sex=M").remarks)


@one_test_of(
    "question",
    [
        "count",
        "count of sex=F, age=[18, 65) by region",
        'count of region="say ""hi"""|"Łódź, city" by "age group, wide"',
        "share of employed=true given sex, age<65",
        "per cent of employed",
        "ratio of (sex=F) to (sex=M) given age",
        "difference of share of employed=true given sex=F and sex=M",
        "top 3 of share of employed=true by region",
        "smallest region",
        "cdf of age given sex",
        "quantile 0.5, 0.9 of age by sex",
        "entropy of region, sex=F by age",
        "odds ratio of sex and employed",
        "change of share of sex=F from tick 3 to tick 1",
        "trend of count of sex=F",
        "sex by tick",
        "sex=F in tick 2",
        "median of age in ticks 2 to 4",
        "count since tick 2",
        "count in the last tick",
    ],
)
def test_questions_are_written_as_they_can_be_asked_again(question):
    meaning = parsed(question, SCHEMA, "tick")
    assert parsed(question_text(SCHEMA, meaning), SCHEMA, "tick") == meaning


@one_test_of(
    "question",
    [
        "total pay of women",
        "mean of pay by ward",
        "variance of pay, sex=men",
        "regression of pay on sex, sex:ward",
        "logistic regression of sex=men on ward",
    ],
)
def test_questions_about_numbers_are_written_as_they_can_be_asked_again(question):
    meaning = parsed(question, PAY)
    assert parsed(question_text(PAY, meaning), PAY) == meaning


def test_fewer_conditions_are_asked_in_their_order():
    meaning = parsed("share of employed=true given sex=F, age, region", SCHEMA)
    texts = [question_text(SCHEMA, one) for one in shorter(meaning)]
    assert texts[:3] == [
        "share of employed=True given sex=F, age",
        "share of employed=True given sex=F, region",
        "share of employed=True given age, region",
    ]
    assert texts[-1] == "share of employed=True"
    assert len(texts) == 7
    gap = parsed("difference of (sex=F, employed=true) and (sex=M, employed=true)", SCHEMA)
    # without the sex, nothing is compared
    texts = [question_text(SCHEMA, one) for one in shorter(gap)]
    assert texts == ["difference of (count of sex=F) and (count of sex=M)"]


def test_capitals_matter_only_where_names_or_labels_differ_in_them_alone():
    schema = gn.Schema(
        [
            gn.Attribute("Ward", ["Surgery", "New York", "Total"]),
            gn.Attribute("kind", ["xa", "Xa", "b"]),
            gn.Attribute("site", ["main", "ward"]),
        ]
    )
    people = {"Ward": ["Surgery"] * 3, "kind": ["xa", "Xa", "b"], "site": ["main"] * 3}
    release = gn.plan(schema, 3, gn.zCDP(1)).release(pa.table(people))
    for question, meaning in {
        "count of Ward=surgery": "count of Ward=Surgery",
        "how many in SURGERY": "count of Ward=Surgery",
        'how many in "new york"': 'count of Ward="New York"',
        "count of SITE=Main, KIND=B": "count of site=main, kind=b",
        "share of new york given Site": 'share of Ward="New York" given site',
        # what is understood as it is written keeps its meaning
        "total": "count",
        "count of kind=Xa": "count of kind=Xa",
        "count of ward": "count of site=ward",
    }.items():
        assert release.ask(question).meaning == meaning
    for question, marked in {
        "count of kind=XA": "kind=«XA»",  # xa or Xa
        "count of WARD": "of «WARD»",  # the attribute Ward, or the label of site
        "count of kind=c": "kind=«c»",
    }.items():
        with pytest.raises(ParameterError, match=marked):
            release.ask(question)
