"""Tests of all moments of degree at most two of several numbers, as one entry of a workload.

References: the tables written out by hand, exact sums of the rows, brute force over rows, and noise
solved for many points of the curve or surface of moments.
"""

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from domains import BoxMoments, FiniteSet
from gaussnoise import verifier
from gaussnoise.app.asked import asked_of, same_table, workload_toml
from gaussnoise.cli.asked import Options, asked_for, workload_of
from gaussnoise.errors import ParameterError, SchemaError
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.release.grammar import parsed
from gaussnoise.tables.release.shorter import question_text
from gaussnoise.tables.release.stream import measured_parts
from gaussnoise.tables.schema.entries import entry_name, one_by_one
from gaussnoise.tables.schema.workload import load_workload

SQUARES = {"kind": "moments", "degrees": [0, 1, 2]}
SEX = gn.Attribute("sex", ["F", "M"])
AGE = gn.Attribute("age", edges=[0, 18, 65, 120])
PAY = gn.Attribute("pay", clip=[0, 100], base=SQUARES)
HOURS = gn.Attribute("hours", clip=[-20, 60], base=SQUARES)
YEARS = gn.Attribute("years", clip=[0, 40], base=SQUARES)
SCHEMA = gn.Schema([SEX, AGE, PAY, HOURS, YEARS])
BOTH = {"sex": None, "pay+hours": "moments"}
FILE = """
[plan]
rho = 0.3

[attributes.sex]
categories = ["F", "M"]

[attributes.pay]
clip = [0, 100]
base = {kind = "moments", degrees = [0, 1, 2]}

[attributes.hours]
clip = [-20, 60]
base = {kind = "moments", degrees = [0, 1, 2]}

[[workload]]
of = ["sex", "pay+hours:moments"]
"""


def degrees(*listed):
    return {"kind": "moments", "degrees": [*listed]}


BY_HAND = [
    ("sex",),
    {"sex": None, "pay": degrees(1, 2)},
    {"sex": None, "hours": degrees(1, 2)},
    {"sex": None, "pay": degrees(1), "hours": degrees(1)},
]


def workers(number, seed=0):
    rng = np.random.default_rng(seed)
    hours = rng.normal(35, 15, number)
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], number),
            "age": rng.integers(0, 100, number),
            "pay": hours + rng.normal(20, 20, number),
            "hours": hours,
            "years": rng.exponential(15, number),
        }
    )


def test_one_entry_asks_for_every_moment_once():
    plan, written = (gn.plan(SCHEMA, asked, gn.zCDP(0.3)) for asked in ([BOTH], BY_HAND))
    assert plan.domain.terms == written.domain.terms
    assert plan.request_sha256 == written.request_sha256
    three = gn.plan(SCHEMA, [{"age": "prefix", "pay+hours+years": "moments"}], gn.zCDP(0.3))
    # of each of three groups: the count, three sums, three sums of squares, and three of products
    assert sum(three.queries) == 3 * 10
    assert sorted(map(len, three.domain.subsets)) == [1, 2, 2, 2, 3, 3, 3]
    alone = gn.plan(SCHEMA, [{"sex": None, "pay": "moments"}], gn.zCDP(0.3))
    assert alone.domain.terms == gn.plan(SCHEMA, [("sex", "pay")], gn.zCDP(0.3)).domain.terms
    total = gn.plan(SCHEMA, [{"pay + hours": "moments"}], gn.zCDP(0.3))
    assert total.domain.subsets == ((), (2,), (3,), (2, 3))


def test_tables_that_are_asked_for_already_are_not_asked_for_again():
    more = [("sex",), BOTH, {"sex": None, "hours+years": "moments"}]
    places = [k for k, _ in one_by_one(SCHEMA, more)]
    assert places == [0, 1, 1, 1, 2, 2]
    gn.plan(SCHEMA, more, gn.zCDP(0.3))
    with pytest.raises(ParameterError, match="distinct"):  # what is written twice is an error
        gn.plan(SCHEMA, [("sex",), ("sex",), BOTH], gn.zCDP(0.3))


def test_moments_have_less_noise_than_tables_of_all_pairs():
    """Measures of higher degree, which the table of a pair has besides, take part of the budget."""
    plan = gn.plan(SCHEMA, [{"pay+years": "moments"}], gn.zCDP(0.3))
    pair = gn.plan(SCHEMA, [("pay", "years")], gn.zCDP(0.3))
    asked = [(), {"pay": degrees(1, 2)}, {"years": degrees(1, 2)}]
    asked.append({"pay": degrees(1), "years": degrees(1)})
    sd = [np.concatenate([p.answer_deviations(e).ravel() for e in asked]) for p in (plan, pair)]
    scale = [1, 100, 1e4, 40, 1600, 4000]
    assert np.linalg.norm(sd[0] / scale) < 0.99 * np.linalg.norm(sd[1] / scale)


def test_a_release_has_all_moments_and_what_follows_from_them(tmp_path):
    rows = workers(4000)
    plan = gn.plan(SCHEMA, [BOTH], gn.zCDP(1e4))
    plan.release(rows, out=tmp_path / "out")
    release = gn.TableRelease.load(tmp_path / "out")
    sex = rows["sex"].to_numpy()
    pay, hours = np.clip(rows["pay"], 0, 100), np.clip(rows["hours"], -20, 60)
    products = release.sums(("pay", "hours"), given="sex").estimate
    for k, group in enumerate("FM"):
        own = np.stack([pay, hours])[:, sex == group]
        count, total, square = release.answers({"sex": None, "pay": SQUARES}).estimate[k]
        assert count == pytest.approx(own.shape[1], abs=0.1)
        assert total == pytest.approx(own[0].sum(), abs=10)
        assert square == pytest.approx((own[0] ** 2).sum(), abs=1000)
        assert products[k] == pytest.approx((own[0] * own[1]).sum(), abs=600)
        found = release.covariance_of("pay", "hours", sex=group)
        assert found.estimate == pytest.approx(np.cov(own, ddof=0)[0, 1], abs=1)
    every = np.stack([pay, hours])
    assert release.correlation("pay", "hours").estimate == pytest.approx(
        np.corrcoef(every)[0, 1], abs=1e-3
    )
    slope = release.regress("pay", on=["hours"]).estimate[1]
    assert slope == pytest.approx(np.polyfit(hours, pay, 1)[0], abs=1e-3)
    found = verifier.verified(tmp_path / "out")
    assert verifier.verdict(found).startswith("VERIFIED"), found


def test_covariances_and_correlations_are_asked_for_in_words():
    release = gn.plan(SCHEMA, [BOTH], gn.zCDP(100)).release(workers(2000))
    found = release.ask("covariance of pay and hours by sex")
    for k, sex in enumerate("FM"):
        expected = release.covariance_of("pay", "hours", sex=sex)
        assert found.estimate[k] == expected.estimate
        assert found.standard_deviation[k] == expected.standard_deviation
        assert (found.low[k], found.high[k]) == expected.confidence_interval()
    every = release.ask("what is the correlation between pay and hours?")
    assert every.estimate == [release.correlation("pay", "hours").estimate]
    one = release.ask("correlation of hours and pay for sex=F")
    assert one.estimate == [release.correlation("hours", "pay", sex="F").estimate]
    assert str(one).startswith("correlation of hours and pay given sex=F")
    for question in ("covariance of pay and hours by sex", "correlation of pay and years, sex=F"):
        meaning = parsed(question, SCHEMA)
        assert parsed(question_text(SCHEMA, meaning), SCHEMA) == meaning
    for question, why in [
        ("covariance of pay and pay", "two different numbers"),
        ("covariance of pay and hours by hours", "groups of other attributes"),
        ("kurtosis of pay", "starts with one of .*, covariance, correlation, "),
        ("correlation of sex and pay", "a number that the schema clips"),
        ("correlation of pay and years", "no planned marginal contains"),
        ("covariance of pay and hours by age", "no planned marginal contains"),
    ]:
        with pytest.raises(ParameterError, match=why):
            release.ask(question)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_no_row_changes_more_than_is_planned_for(neighbors):
    """Rows on a grid of the box, at its ends and beyond, in the integers that are measured."""
    rng = np.random.default_rng(7)
    names = ["pay", "hours", "years"]
    for number in (2, 3):
        for _ in range(2):
            chosen = sorted(rng.choice(3, number, replace=False))
            asked = {"sex": None, "+".join(names[k] for k in chosen): "moments"}
            plan = gn.plan(SCHEMA, [asked], gn.zCDP(10 ** rng.uniform(-8, 1)), neighbors=neighbors)
            ends = [(-30, -20, 0, 20 + 1 / 3, 40, 60, 100)] * number
            answers = [
                integers(plan, {"sex": "FM"[k % 2], "age": 1} | dict.fromkeys(names, 0.0) | row)
                for k, row in enumerate(
                    dict(zip([names[j] for j in chosen], map(float, values), strict=True))
                    for values in itertools.product(*ends)
                )
                if number == 2 or not k % 7
            ]
            pairs = itertools.combinations(answers, 2)
            moved = answers if neighbors == "add-remove" else [a - b for a, b in pairs]
            largest = max(int((a * a).sum()) for a in moved)
            assert largest <= plan.query.query.sensitivity_squared
            assert largest >= 0.5 * plan.query.query.sensitivity_squared  # few rows were tried


def integers(plan, row):
    """Return the exact integers that one row adds to the answers, as one vector."""
    table = pa.Table.from_pylist([row])
    subsets = plan.tables.subsets
    counted = count_marginals(table, plan.schema.attributes, subsets, "drop", unit=plan.unit)
    counts, seen, answers = dict(counted), set(), []
    for S in subsets:
        for T in measured_parts(S, plan.query):
            if T not in seen:
                seen.add(T)
                others = tuple(axis for axis, i in enumerate(S) if i not in T)
                answers += plan.query.answer(T, counts[S].sum(axis=others)).tolist()
    return np.array(answers, dtype=object)


def surface(lows, steps):
    """Return the moments of numbers on a grid that has other points than the product's."""
    grid = itertools.product(*[np.linspace(low, 1, steps) for low in lows])
    return FiniteSet(BoxMoments(lows, [1.0] * len(lows)).embed(np.array([*grid])))


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("lows", [[-1.0], [0.0], [-1.0, -1.0], [0.0, -1.0]])
def test_bounds_are_of_rows_and_not_of_virtual_cells(lows, neighbors):
    schema = gn.Schema(
        [gn.Attribute(f"x{k}", clip=[x, 1], base=SQUARES) for k, x in enumerate(lows)]
    )
    asked = {"+".join(schema.names): "moments"}
    plan = gn.plan(schema, [asked], gn.zCDP(0.5), neighbors=neighbors)
    best = gn.optimal_noise(surface(lows, 12), neighbors=neighbors, tol=1e-3)
    lower, upper = plan.bracket
    assert lower <= best.gamma * (1 + 1e-3)
    assert best.gamma_lower <= upper * (1 + 1e-6)
    if neighbors == "add-remove":
        assert lower >= 0.99 * best.gamma_lower  # products of measures prove nearly all of it
        assert plan.bound.gamma_lower == lower
        if lows == [-1.0]:  # a bound of virtual cells is none of rows
            cells = gn.optimal_noise(plan.domain, neighbors=neighbors, tol=1e-4)
            assert cells.gamma_lower > 1.1 * best.gamma
    else:
        assert plan.bound.gamma_lower <= lower / 2
    assert plan.gap == upper / lower - 1


def test_bounds_for_replaced_rows_hold_where_all_rows_are_in_the_middle():
    """A row in the middle of the interval can be moved by half of it only.

    Reference: the Hammersley-Chapman-Robbins bound of one such move.
    """
    plan = gn.plan(
        gn.Schema([gn.Attribute("x", clip=[0, 1])]), ["x"], gn.zCDP(0.5), neighbors="replace"
    )
    assert plan.noise.gamma_lower / 2 == plan.bound.gamma_lower <= 0.5
    assert plan.bound.error <= 0.5 / math.sqrt(math.expm1(1.0)) < 1.01 * plan.bound.error
    cells = gn.plan(gn.Schema([SEX]), ["sex"], gn.zCDP(0.5), neighbors="replace")
    assert cells.bound.gamma_lower == pytest.approx(math.sqrt(2))  # every row is in one cell


def test_schema_files_and_the_shell_ask_for_moments(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(FILE)
    schema = gn.Schema.load(path)
    expected = gn.plan(schema, BY_HAND, gn.zCDP(0.3)).request_sha256
    assert asked_for(Options(schema=path).settled()).plan().request_sha256 == expected
    assert asked_of(path).plan().request_sha256 == expected
    asked = workload_of(["sex,pay+hours:moments"], schema.names)
    assert gn.plan(schema, asked, gn.zCDP(0.3)).request_sha256 == expected
    (wanted,) = load_workload(path)
    assert entry_name(schema, wanted.entry) == "sex × pay+hours (moments)"
    path.write_text(
        FILE.replace("[[workload]]", "").rpartition("of =")[0] + workload_toml([wanted])[0]
    )
    assert same_table(load_workload(path)[0], wanted)
    path.write_text(FILE.replace("rho = 0.3", "") + "within = 50\n")
    plan = asked_for(Options(schema=path).settled()).plan()
    assert plan.targets == (gn.Target(50),) * 4
    assert plan.target_ratio == pytest.approx(1)


def test_other_moments_are_refused(tmp_path):
    schema = gn.Schema(
        [
            SEX,
            PAY,
            HOURS,
            gn.Attribute("x", clip=[0, 1]),
            gn.Attribute("y", clip=[0, 1], other="none", base=SQUARES),
        ]
    )
    for asked, why in [
        ({"pay+age": "moments"}, "no attribute 'age'"),
        ({"pay+pay": "moments"}, "distinct"),
        ({"pay": None, "pay+hours": "moments"}, "distinct"),
        ({"pay+sex": "moments"}, "moments of clipped numbers, got 'sex'"),
        ({"pay+hours": "sum"}, "several numbers, got 'sum'"),
        ({"pay+x": "moments"}, "squares are declared with the attribute"),
        ({"pay+y": "moments"}, "numbers that every row has, got 'y'"),
        (("sex", "pay+hours"), r"in the shell pay\+hours:moments"),
    ]:
        with pytest.raises(ParameterError, match=why):
            gn.plan(schema, [asked], gn.zCDP(0.3))
    plan = gn.plan(SCHEMA, [BOTH], gn.zCDP(0.3))
    with pytest.raises(ParameterError, match="expected one table, got the moments"):
        plan.answer_deviations(BOTH)
    with pytest.raises(ParameterError, match="no clipped numbers"):
        gn.plan(SCHEMA, [BOTH], gn.zCDP(0.3), over=gn.streams.Ticks(4))
    path = tmp_path / "s.toml"
    path.write_text(FILE.replace('"sex", "pay+hours:moments"', '"sex"') + 'moments = ["pay"]\n')
    with pytest.raises(SchemaError, match=r"income\+age:moments"):
        gn.Schema.load(path)
    # a name with a plus is a name first
    named = gn.Schema([gn.Attribute("a+b", ["x", "y"]), SEX])
    assert gn.plan(named, [{"a+b": None}], gn.zCDP(1)).domain.subsets == ((0,),)
