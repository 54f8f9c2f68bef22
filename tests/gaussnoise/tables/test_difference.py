"""Tests of changes between two releases: unbiased, with the variances of both added up."""

import dataclasses
import math
import pickle
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from two_dates import AGE, PAY, SCHEMA, SEX, people

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.tables.release.alike import difference_of

WORKLOAD = [("sex", "age"), ("sex", "pay")]
JANUARY, JUNE = people(1, 900), people(2, 1200)


def simulated(table, rho=0.02, seed=0, schema=SCHEMA, workload=WORKLOAD, **options):
    plan = gn.plan(schema, workload, gn.zCDP(rho), **options)
    return plan.simulate(table, np.random.default_rng(seed))


ASKED = {
    "counts": lambda one: one["sex", "age"],
    "answers": lambda one: one.answers({"age": "prefix"}),
    "sums": lambda one: one.sums("pay", given="sex"),
    "means": lambda one: one.means("pay", given="sex"),
    "shares": lambda one: one.proportions(("sex", "age"), given="sex"),
    "cdf": lambda one: one.cdf("age"),
}


@pytest.mark.parametrize("kind", ASKED)
def test_changes_are_later_less_earlier_and_variances_add_up(kind):
    before, after = simulated(JANUARY, seed=1), simulated(JUNE, rho=0.05, seed=2)
    changes = gn.difference(before, after)
    found, (x, y) = ASKED[kind](changes), (ASKED[kind](one) for one in (before, after))
    np.testing.assert_allclose(found.estimate, y.estimate - x.estimate)
    variance = x.standard_deviation**2 + y.standard_deviation**2
    np.testing.assert_allclose(found.standard_deviation**2, variance)
    np.testing.assert_allclose(found.as_ratio().estimate, y.estimate / x.estimate)
    np.testing.assert_allclose(found.relative().estimate, y.estimate / x.estimate - 1)
    # a combination of changes is the change of combinations
    w = np.random.default_rng(0).normal(size=found.estimate.shape)
    parts = [one.contrast(w).standard_deviation for one in (x, y)]
    assert found.contrast(w).standard_deviation == pytest.approx(np.hypot(*parts))


def test_orders_and_tables_may_differ():
    before = simulated(JANUARY)
    schema = gn.Schema([PAY, AGE, SEX, gn.Attribute("new", [1, 2])])
    table = JUNE.append_column("new", pa.array([1, 2] * 600))
    workload = [("age", "sex", "new")]
    after = simulated(table, schema=schema, workload=workload, neighbors="replace")
    changes = gn.difference(before, after)
    assert list(changes) == [("sex", "age")]
    np.testing.assert_allclose(
        changes["age", "sex"].estimate, after["age", "sex"].estimate - before["age", "sex"].estimate
    )
    with pytest.raises(ParameterError, match="no planned marginal contains"):
        changes.means("pay")
    found = changes.contrast({("sex",): [1, -1]})
    assert found.estimate == pytest.approx(changes["sex"].contrast([1, -1]).estimate)
    assert found.standard_deviation == pytest.approx(
        changes["sex"].contrast([1, -1]).standard_deviation
    )
    both = changes.contrasts([{("sex",): [1, -1]}, {("sex", "age"): np.ones((2, 3))}])
    assert both.standard_deviation[0] == pytest.approx(found.standard_deviation)


def coverage(claimed=0.0, count=1000, later=JUNE):
    """Return how often intervals hold the truth: of changes, ratios, changes of means and gaps."""
    comparisons = [
        lambda changes: changes["sex", "age"],
        lambda changes: changes["sex", "age"].as_ratio(),
        lambda changes: changes.means("pay", given="sex"),
        lambda changes: changes.means("pay", given="sex").relative(),
        lambda changes: changes.proportions(("sex", "age"), given="sex"),
        lambda changes: changes["sex"].difference("sex", "F", "M"),
        lambda changes: changes["sex"].ratio("sex", "F", "M"),
    ]
    exact = gn.difference(simulated(JANUARY, 1e12), simulated(later, 1e12, seed=1))
    truth = [compare(exact).estimate for compare in comparisons]
    plan, rng, hits = gn.plan(SCHEMA, WORKLOAD, gn.zCDP(0.02)), np.random.default_rng(7), 0
    for _ in range(count):
        changes = gn.difference(plan.simulate(JANUARY, rng), plan.simulate(later, rng))
        found = [compare(changes) for compare in comparisons]
        if claimed:
            found[0] = dataclasses.replace(
                found[0],
                covariance=np.full((2, 3), claimed * found[0].standard_deviation.min() ** 2),
            )
        ends = [one.confidence_interval() for one in found]
        hits = hits + np.array(
            [np.mean((low <= x) & (x <= high)) for (low, high), x in zip(ends, truth, strict=True)]
        )
    return hits / count


SAME = pytest.param(JANUARY, id="same rows", marks=pytest.mark.integration)


@pytest.mark.usefixtures("counted_once")
@pytest.mark.parametrize("later", [pytest.param(JUNE, id="other rows"), SAME])
def test_intervals_cover_as_often_as_their_level_says(later):
    *found, ratio = coverage(later=later)
    assert all(0.94 < one < 0.965 for one in found), found
    # a ratio of two changes covers at least as often, where the divisor is not zero
    assert later is JANUARY or ratio > 0.94


@pytest.mark.usefixtures("counted_once")
def test_a_wrong_covariance_does_not_cover():
    assert coverage(claimed=0.3, count=200)[0] < 0.93


def test_what_it_costs_and_protects_is_said():
    plan = gn.plan(SCHEMA, WORKLOAD, gn.zCDP(0.02))
    before, after = plan.release(JANUARY), plan.release(JUNE)
    changes = gn.difference(before, after)
    assert changes.private
    assert changes["sex"].private
    assert changes.rho_charged == pytest.approx(0.04)
    assert Fraction(changes.rho_charged) >= 2 * Fraction(before.rho_charged)
    ten = gn.plan(SCHEMA, WORKLOAD, gn.zCDP(0.02), rows_per_person=10).release(JUNE)
    assert gn.difference(before, ten).rho_charged is None
    assert "costs that do not add up" in repr(gn.difference(before, ten))
    assert repr(changes).startswith("Changes(3 attributes, rho charged 0.04")
    assert not gn.difference(before, simulated(JUNE)).private
    assert "NOT PRIVATE" in repr(gn.difference(before, simulated(JUNE)))
    again = pickle.loads(pickle.dumps(changes))
    np.testing.assert_array_equal(again["sex"].estimate, changes["sex"].estimate)
    assert "after less before" in str(changes["sex"])


def test_releases_that_count_other_numbers_of_rows_of_a_person_are_no_change():
    """Of the same rows, such a difference would be that of the two limits."""
    people = JANUARY.append_column("who", pa.array(range(len(JANUARY))))

    def release(**unit):
        return gn.plan(SCHEMA, WORKLOAD, gn.zCDP(0.02), **unit).release(people)

    one, three = release(person="who"), release(person="who", rows_per_person=3)
    assert gn.difference(three, release(person="who", rows_per_person=3)).rho_charged > 0.039
    assert gn.difference(one, release(person="age")).rho_charged is None
    for other in (three, release(rows_per_person=3), release()):
        with pytest.raises(
            ParameterError, match="one number of counted rows per person, got 1 and"
        ):
            gn.difference(one, other)
    assert gn.difference(release(rows_per_person=3), release()).rho_charged is None


BINS = gn.Attribute("age", edges=[0, 20, 65, 120])
FEWER = gn.Attribute("age", edges=[0, 18, 65])
HIGHER = gn.Attribute("pay", clip=[0, 6000])
CODED = gn.Attribute("pay", clip=[0, 5000], missing=[999])
TAKEN = gn.Attribute("sex", ["F", "M"], other="?")
MORE = gn.Attribute("sex", ["F", "M", "X"])


@pytest.mark.parametrize(
    ("schema", "alike", "name", "how"),
    [
        ([SEX, BINS, PAY], [("sex", "pay")], "age", "has other edges in each"),
        ([SEX, AGE, HIGHER], [("sex", "age")], "pay", r"clipped to \[0, 5000\] in one .*6000\]"),
        ([SEX, AGE, CODED], [("sex", "age")], "pay", "has other codes for no answer"),
        ([TAKEN, AGE, PAY], [], "sex", "has the catch-all none in one release and '\\?' in the"),
        ([MORE, AGE, PAY], [], "sex", "has categories in one release alone: 'X'"),
    ],
)
def test_tables_without_an_attribute_that_differs_are_compared(schema, alike, name, how):
    before, after = simulated(JANUARY), simulated(JUNE, schema=gn.Schema(schema))
    changes = gn.difference(before, after)
    assert list(changes) == alike
    assert list(changes.unlike) == [name]
    for names in [(), *alike, *(names for names in (("age",), ("sex",)) if name not in names)]:
        np.testing.assert_allclose(
            changes[names].estimate, after[names].estimate - before[names].estimate
        )
    zeros = np.zeros(before[name].estimate.shape)
    for ask in (
        lambda: changes[name],
        lambda: changes["sex", "age"] if name != "pay" else changes["sex", "pay"],
        lambda: changes.answers({name: None}),
        lambda: changes.proportions((name,)) if name != "pay" else changes.means(name),
        lambda: changes.cdf("age", given=name) if name == "sex" else changes[name],
        lambda: changes.sums("pay", given=name) if name != "pay" else changes.sums(name, "sex"),
        lambda: changes.contrast({(name,): zeros}),
        lambda: changes.contrasts([{(): np.ones(())}, {(name,): zeros}]),
    ):
        with pytest.raises(ParameterError, match=f"got '{name}', which .*{how}"):
            ask()


def dropping(schema, table, workload=WORKLOAD, on_outside="drop"):
    return gn.plan(gn.Schema(schema), workload, gn.zCDP(0.02)).release(table, on_outside=on_outside)


def test_releases_that_leave_out_other_rows_are_compared_only_on_an_assumption():
    """A total counts the rows that fit, so that its change would be that of the schema."""
    before = dropping([SEX, AGE, PAY], JANUARY)
    assert not gn.difference(before, dropping([SEX, BINS, HIGHER], JUNE)).left_out_by
    for other, by in (
        (dropping([MORE, AGE, PAY], JUNE), ["sex"]),
        (dropping([SEX, FEWER, PAY], JUNE), ["age"]),
        (dropping([SEX, AGE, CODED], JUNE), ["pay"]),
        (dropping([TAKEN, AGE, PAY], JUNE), ["sex"]),
        (dropping([SEX, AGE, PAY], JUNE, [("sex", "pay")]), ["age"]),
        (dropping([MORE, AGE, PAY], JUNE, on_outside="refuse"), ["sex"]),
    ):
        for both in ((before, other), (other, before)):
            with pytest.raises(ParameterError, match=rf"leaves out .* in '{by[0]}'; hint: all"):
                gn.difference(*both)
            changes = gn.difference(*both, all_rows_fit=True)
            assert list(changes.left_out_by) == by
            assert changes[()].estimate == pytest.approx(
                both[1][()].estimate - both[0][()].estimate
            )
    caught = [gn.Attribute("sex", labels, other="?") for labels in (["F", "M"], ["F", "M", "X"])]
    both = [dropping([sex, AGE, PAY], JUNE) for sex in caught]
    assert not gn.difference(*both).left_out_by
    # that all rows of one release fit is certain, where it would have refused others
    assert not gn.difference(
        before, dropping([SEX, AGE, PAY], JUNE, on_outside="refuse")
    ).left_out_by
    wider = dropping([MORE, AGE, PAY], JUNE)
    assert not gn.difference(
        dropping([SEX, AGE, PAY], JANUARY, on_outside="refuse"), wider
    ).left_out_by


def test_rules_for_impossible_rows_leave_out_the_same_rows():
    rule = {"sex": "F", "age": "[0, 18)"}
    ruled = gn.Schema([SEX, AGE, PAY], [rule])
    before = gn.plan(ruled, WORKLOAD, gn.zCDP(0.02)).release(JANUARY, on_outside="drop")
    same = gn.plan(ruled, WORKLOAD, gn.zCDP(0.02)).release(JUNE, on_outside="drop")
    assert not gn.difference(before, same).left_out_by
    with pytest.raises(ParameterError, match="leaves out rows"):
        gn.difference(before, dropping([SEX, AGE, PAY], JUNE))


def test_levels_of_other_groups_are_not_compared():
    def county(north):
        groups = {"region": {"North": north}}
        return gn.Schema([gn.Attribute("county", ["a", "b", "c"], groups=groups)])

    table = pa.table({"county": ["a", "b", "c"] * 50})
    one, two = (
        simulated(table, schema=county(north), workload=["county"], seed=k)
        for k, north in enumerate((["a"], ["a", "b"]))
    )
    changes = gn.difference(one, two)
    assert changes["county"].estimate.shape == (3,)
    for ask in (
        lambda: changes.answers({"county": "region"}),
        lambda: changes.proportions("region"),
    ):
        with pytest.raises(ParameterError, match="'region', which has other groups of 'county'"):
            ask()


def months_of(year, other="?"):
    return gn.Attribute("m", [f"{year}-{month:02}" for month in range(1, 13)], other=other)


def starts_of(*dates):
    return gn.Attribute("m", edges=[-math.inf, *dates, math.inf], other="?")


def labels_of(*labels):
    return gn.Attribute("m", labels, other="?")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (months_of(2023), months_of(2024), "periods of another year"),
        (months_of(2019), months_of(2024), "periods of another year"),
        (labels_of("Q1 2023", "Q2 2023"), labels_of("Q1 2024", "Q2 2024"), "periods of another"),
        (
            starts_of("2022-01-01", "2022-07-01", "2023-01-01"),
            starts_of("2023-01-01", "2023-07-01", "2024-01-01"),
            "periods of another year",
        ),
        (
            starts_of("2022-01-01", "2022-07-01", "2023-01-01"),
            starts_of("2023-01-01", "2023-07-01", "2025-01-01"),
            "has other edges",
        ),
        (starts_of("2022-01-01", "2023-01-01"), starts_of("2023-01-01", "2024-01-01"), "other ed"),
        (gn.Attribute("m", edges=[0, 2000]), gn.Attribute("m", edges=[0, 2001]), "other edges"),
        (months_of(2023), labels_of("2024-01"), "has categories in one release alone"),
        (labels_of("a", "b"), labels_of("a", "c"), "has categories in one release alone"),
        (labels_of(2022, 2023), labels_of(2023, 2024), "has categories in one release alone"),
    ],
)
def test_months_of_two_years_are_refused_with_a_way_to_compare_them(before, after, words):
    for both in ((before, after), (after, before)):
        how = difference_of(*both)
        assert words in how
        assert ("a column of the month alone" in how) is words.startswith("periods")


def test_queries_are_those_of_the_earlier_schema_in_both_releases():
    """Its own queries would give cells of one release less cumulative counts of the other."""
    table = pa.table({"age": JANUARY["age"]})
    schemas = (gn.Schema([AGE]), gn.Schema([gn.Attribute("age", edges=AGE.edges, base="prefix")]))
    one, two = (simulated(table, 1e9, schema=own, workload=["age"]) for own in schemas)
    for both in ((one, two), (two, one)):
        assert np.abs(gn.difference(*both).answers("age").estimate).max() < 1


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda one: one, "one twice"),
        (lambda one: gn.combine([one, simulated(JANUARY, seed=5)]), "one twice"),
        (
            lambda one: simulated(
                JUNE.append_column("w", JUNE["age"]), weight=gn.Weight("w", most=5)
            ),
            "one weight of rows",
        ),
        (
            lambda one: simulated(
                JUNE.append_column("who", pa.array(range(1200))),
                person="who",
                per_person={"pay": "mean"},
                workload=[("sex", "pay")],
            ),
            "one record of persons",
        ),
        (lambda one: 3, "two releases, got int"),
        (
            lambda one: simulated(
                pa.table({"x": [1]}), schema=gn.Schema([gn.Attribute("x", [1, 2])]), workload=1
            ),
            "an attribute that both releases have",
        ),
    ],
)
def test_releases_that_do_not_fit_are_refused(other, words):
    one = simulated(JANUARY)
    with pytest.raises(ParameterError, match=words):
        gn.difference(one, other(one))


def test_tables_of_a_stream_are_refused():
    plan = gn.plan(gn.Schema([SEX, AGE]), 1, gn.zCDP(0.1), over=gn.streams.Ticks(4))
    so_far = plan.simulate([JANUARY] * 2, np.random.default_rng(0))
    with pytest.raises(ParameterError, match=r"of a stream.*combined\(weights\)"):
        gn.difference(so_far.period(1), so_far.period(2))
