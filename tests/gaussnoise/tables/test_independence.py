"""Tests of independence reject as often as they say, and are Pearson's without noise."""

import numpy as np
import pyarrow as pa
import pytest
import scipy

import gaussnoise as gn
from gaussnoise.errors import ParameterError

SCHEMA = gn.Schema(
    [
        gn.Attribute("a", [0, 1, 2]),
        gn.Attribute("b", [0, 1, 2, 3]),
        gn.Attribute("c", ["x", "y"]),
        gn.Attribute("pay", clip=[0, 1]),
        gn.Attribute("one", ["only"]),
    ]
)
ALL = [("a", "b", "c")]


def drawn(rng, n, *, alike=0.0, moved=False):
    """Rows of which a and b are independent, but for a share where they are equal, within c or
    not.
    """
    a, b, c = rng.choice(3, n, p=[0.5, 0.3, 0.2]), rng.choice(4, n), rng.choice(2, n)
    if moved:
        a, b = (a + c) % 3, np.where(c, 3 - b // 2, b)
    b = np.where(rng.random(n) < alike, a, b)
    return pa.table({"a": a, "b": b, "c": np.array(["x", "y"])[c]})


def rejected(rho, count=400, given=(), **drawing):
    rng, plan = np.random.default_rng(5), gn.plan(SCHEMA, ALL, gn.zCDP(rho))
    found = [
        plan.simulate(drawn(rng, 1000, **drawing), rng).independence("a", "b", given=given)
        for _ in range(count)
    ]
    return np.mean([test.p_value < 0.05 for test in found]), found[-1]


@pytest.mark.parametrize(("rho", "noisy"), [(0.3, False), (0.01, True)])
def test_it_rejects_as_often_as_it_says(rho, noisy):
    share, last = rejected(rho)
    assert 0.01 < share < 0.09  # four standard deviations of 400 draws
    assert (last.noise_share > 0.5) == noisy
    assert last.degrees == 6


def test_groups_are_tested_together_and_needed_where_both_depend_on_them():
    within, last = rejected(0.1, 200, given="c", moved=True)
    assert within < 0.12
    assert last.degrees == 12
    assert rejected(0.1, 50, moved=True)[0] == 1


def test_dependence_is_seen():
    assert rejected(0.3, 50, alike=0.2)[0] > 0.9


def test_noise_that_is_taken_for_sampling_rejects_too_often():
    rng, plan = np.random.default_rng(5), gn.plan(SCHEMA, ALL, gn.zCDP(0.01))
    found = [
        scipy.stats.chi2_contingency(
            np.maximum(plan.simulate(drawn(rng, 1000), rng)["a", "b"].estimate, 1.0)
        ).pvalue
        for _ in range(50)
    ]
    assert np.mean(np.less(found, 0.05)) > 0.5


def test_it_is_pearsons_without_noise():
    rng = np.random.default_rng(2)
    release = gn.plan(SCHEMA, ALL, gn.zCDP(1e9)).simulate(drawn(rng, 3000, alike=0.05), rng)
    test = release.independence("a", "b")
    known = scipy.stats.chi2_contingency(release["a", "b"].estimate, correction=False)
    assert test.statistic == pytest.approx(known.statistic, rel=1e-4)
    assert test.p_value == pytest.approx(known.pvalue, rel=1e-2)
    assert test.degrees == known.dof
    other = release.independence("b", "a")
    assert other.statistic == pytest.approx(test.statistic, rel=1e-9)
    assert not test.is_rough
    few = gn.plan(SCHEMA, ALL, gn.zCDP(1e9)).simulate(drawn(rng, 20), rng)
    assert few.independence("a", "b").is_rough


def test_it_prints_a_question_and_an_answer():
    rng = np.random.default_rng(2)
    release = gn.plan(SCHEMA, ALL, gn.zCDP(0.1)).simulate(drawn(rng, 500), rng)
    lines = str(release.independence("a", "b", given=["c"])).splitlines()
    assert lines[0] == "Are a and b independent, given c?"
    assert lines[1].startswith("chi-squared = ")
    assert lines[-1] == "NOT PRIVATE: a simulation"


REFUSED = [
    ({}, ("a", "a"), "different attributes"),
    ({}, ("a", "pay"), "pay"),
    ({}, ("a", "d"), "d"),
    ({}, ("a", "one"), "two categories"),
    ({"rows_per_person": 2}, ("a", "b"), "several rows of a person.*rows_per_person=1"),
    ({"weight": gn.Weight("w", 2)}, ("a", "b"), "rows with weights"),
]


@pytest.mark.parametrize(("asked", "names", "words"), REFUSED)
def test_what_is_no_test_of_independent_rows_is_refused(asked, names, words):
    rng = np.random.default_rng(2)
    table = drawn(rng, 500)
    more = {"w": np.ones(500), "pay": np.ones(500), "one": ["only"] * 500}
    for name, column in more.items():
        table = table.append_column(name, pa.array(column))
    workload = [("a", "b"), ("a", "one"), ("a", "pay")]
    release = gn.plan(SCHEMA, workload, gn.zCDP(0.1), **asked).simulate(table, rng)
    with pytest.raises(ParameterError, match=words):
        release.independence(*names)


def test_rows_that_the_noise_hides_are_refused():
    rng = np.random.default_rng(2)
    release = gn.plan(SCHEMA, ALL, gn.zCDP(1e-6)).simulate(drawn(rng, 20), rng)
    with pytest.raises(ParameterError, match="a larger budget"):
        release.independence("a", "b")


def test_it_is_asked_in_words(tmp_path):
    plan = gn.plan(SCHEMA, ALL, gn.zCDP(0.3))
    release = plan.release(drawn(np.random.default_rng(0), 1000))
    test, within = release.independence("a", "b"), release.independence("b", "a", given="c")
    for text, own in (
        ("are a and b independent", test),
        ("Are a and b related?", test),
        ("is a independent of b", test),
        ("does a depend on b?", test),
        ("independence of a and b", test),
        ("is b dependent on a given c", within),
        ("does b depend on a by c", within),
    ):
        answer = release.ask(text)
        assert str(answer) == str(own)
        [row] = answer.to_dict()["rows"]
        assert (row["estimate"], row["pvalue"]) == (own.statistic, own.p_value)
        assert str(release.ask(answer.meaning)) == str(own)
    release.report(tmp_path / "page.html", ask=["are a and b independent"])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"Are a and b independent? chi-squared = {test.statistic:.4g}" in page
    for wrong in ("is a independent of a", "is a independent of b given c=x"):
        with pytest.raises(ParameterError, match="expected different attributes, with no labels"):
            release.ask(wrong)


def test_it_is_asked_of_ticks(tmp_path):
    stream = gn.plan(SCHEMA, [("a", "b")], gn.zCDP(0.3), over=gn.streams.Ticks(2)).start(
        tmp_path / "s"
    )
    for tick in (1, 2):
        stream.tick(drawn(np.random.default_rng(tick), 1000), number=tick)
    every = stream.tables.ask("are a and b independent by tick")
    assert every.columns()["pvalue"] == [
        stream.period(t).independence("a", "b").p_value for t in (1, 2)
    ]
    assert str(every).startswith("tick 1: Are a and b independent?")
