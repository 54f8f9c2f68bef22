"""What a plan says about itself, in words and in numbers over all of its marginals."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm as gaussian

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.noise.marginal_covariance import MarginalCovariance
from gaussnoise.noise.optimal_noise import OptimalNoise
from gaussnoise.solvers.tables.orbits import ByType, Orbits
from gaussnoise.tables.planning.facts import (
    facts_of,
    guess_text,
    percent_text,
    relation_text,
    verdict,
)
from gaussnoise.tables.planning.text import plan_text, work_text


def schema(*sizes):
    return gn.Schema([gn.Attribute(f"a{i}", range(n)) for i, n in enumerate(sizes)])


def names(S):
    return tuple(f"a{i}" for i in S)


def planned(sizes, subsets, **options):
    return gn.plan(schema(*sizes), [names(S) for S in subsets], gn.zCDP(0.5), **options)


def pairs(count):
    return list(itertools.combinations(range(count), 2))


def parts(S):
    return [T for k in range(len(S) + 1) for T in itertools.combinations(S, k)]


# --- what is protected


@pytest.mark.parametrize(
    ("neighbors", "rows", "text"),
    [
        ("add-remove", 1, "add-remove (one row more or less; the number of rows is private)"),
        (
            "add-remove",
            3,
            "add-remove (one person with at most 3 rows more or less; the number of rows is "
            "private)",
        ),
        (
            "replace",
            1,
            "replace (one row exchanged for another; the number of rows is public and exact)",
        ),
        (
            "replace",
            3,
            "replace (at most 3 rows of one person exchanged for as many others; "
            "the number of rows is public and exact)",
        ),
    ],
)
def test_relation_is_said(neighbors, rows, text):
    plan = planned((2, 3), [(0, 1)], neighbors=neighbors, rows_per_person=rows)
    assert relation_text(plan) == text
    assert f"neighbours   {text}" in str(plan).splitlines()


# --- what exact replacement saves


@pytest.mark.parametrize(
    ("sizes", "subsets", "gamma", "add_remove", "replace"),
    [
        ((2, 2, 2, 2), pairs(4), 6.4641016151, 7.6888465065, 10.2426406772),
        ((3, 2, 4), pairs(3), 6.5185756789, 7.1309481146, 9.8957340713),
        ((3, 2, 4), [(0, 1, 2)], 4.6948553403, 4.8989794856, math.sqrt(46)),
    ],
)
def test_savings_known_from_the_theory(sizes, subsets, gamma, add_remove, replace):
    plan = planned(sizes, subsets, neighbors="replace")
    assert plan.error == pytest.approx(replace, rel=1e-6)
    assert plan.replace_saving == pytest.approx((2 * gamma / replace) ** 2, rel=3e-4)
    assert plan.add_remove_saving == pytest.approx((2 * add_remove / replace) ** 2, rel=3e-4)


WORKLOADS = [
    ((2, 2, 2), pairs(3), None),
    ((3, 2, 4), pairs(3), None),
    ((2, 3, 2), [(0, 1), (1, 2), (0,)], (1.0, 0.7, 2.0)),
    ((2, 1, 3), [(0, 1), (1, 2), ()], (1.0, 3.0, 0.1)),
]


@pytest.mark.parametrize("p", [2, 4, math.inf])
@pytest.mark.parametrize(("sizes", "subsets", "weights"), WORKLOADS)
def test_savings_agree_with_listed_records(sizes, subsets, weights, p):
    plan = planned(sizes, subsets, weights=weights, p=p, neighbors="replace")
    listed = plan.domain.to_finite_set()
    paper, both, exact = (
        gn.gamma(listed, p),
        gn.optimal_noise(listed, p, neighbors="add-remove"),
        gn.optimal_noise(listed, p, neighbors="replace"),
    )
    assert plan.replace_saving == pytest.approx((2 * paper.gamma / exact.gamma) ** 2, rel=3e-4)
    assert plan.add_remove_saving == pytest.approx((2 * both.gamma / exact.gamma) ** 2, rel=3e-4)
    # what is claimed is proven
    assert plan.replace_saving <= (2 * paper.gamma / plan.noise.gamma) ** 2 * (1 + 1e-12)
    assert plan.add_remove_saving <= (2 * both.gamma / plan.noise.gamma) ** 2 * (1 + 1e-12)
    door = gn.gamma(plan.domain, p)
    assert plan.replace_saving == pytest.approx(
        (2 * door.gamma_lower / plan.noise.gamma) ** 2, rel=3e-4
    )


def test_savings_with_targets_are_those_of_the_weighted_tables():
    targets = {("a0", "a1"): 10.0, "a2": gn.Target(3.0, simultaneous=True)}
    plan = gn.plan(
        schema(2, 3, 2), [("a0", "a1"), "a2"], gn.zCDP(1), targets=targets, neighbors="replace"
    )
    exact = gn.optimal_noise(plan.domain.to_finite_set(), math.inf, neighbors="replace")
    paper = gn.gamma(plan.domain.to_finite_set(), math.inf)
    assert plan.replace_saving == pytest.approx((2 * paper.gamma / exact.gamma) ** 2, rel=3e-4)


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.data())
def test_savings_are_between_one_and_four(data):
    sizes = data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=4))
    subsets = data.draw(
        st.lists(st.sampled_from(parts(range(len(sizes)))[1:]), min_size=1, max_size=5, unique=True)
    )
    plan = planned(
        sizes, subsets, neighbors="replace", p=data.draw(st.sampled_from([2, 3, math.inf]))
    )
    assert 1 - 3e-4 <= plan.replace_saving <= plan.add_remove_saving * (1 + 3e-4)
    assert plan.replace_saving <= 4


@pytest.mark.parametrize("saving", ["replace_saving", "add_remove_saving"])
def test_savings_need_replaced_rows(saving):
    with pytest.raises(ParameterError, match=f'{saving}: expected a plan with neighbors="replace"'):
        getattr(planned((2, 3), [(0, 1)]), saving)


def test_nothing_needs_noise_when_rows_are_replaced_under_a_total():
    plan = planned((2, 1), [(), (1,)], neighbors="replace")
    assert (plan.error, plan.improvement, plan.replace_saving, plan.add_remove_saving) == (
        0,
        1,
        1,
        math.inf,
    )
    assert plan.independent_standard_deviation() == 0
    assert "calibration" not in str(plan)


@pytest.mark.parametrize(("sizes", "subsets", "weights"), WORKLOADS)
@pytest.mark.parametrize("p", [2, 3, math.inf])
def test_improvement_when_rows_are_replaced_is_over_the_best_independent_split(
    sizes, subsets, weights, p
):
    plan = planned(sizes, subsets, weights=weights, p=p, neighbors="replace")
    alone = np.array(
        [
            gn.optimal_noise(gn.Marginals(sizes, [S]).to_finite_set(), 2, neighbors="replace").gamma
            ** 2
            for S in subsets
        ]
    )
    cells = np.array([math.prod(sizes[i] for i in S) for S in subsets])
    moving = alone > 0
    variances = (np.array(weights or [1.0] * len(subsets)) ** 2 * alone / cells)[moving]

    def largest(logits):
        deviations = np.sqrt(variances / (np.exp(logits) / np.exp(logits).sum()))
        return math.log(
            float(np.linalg.norm(np.repeat(deviations, cells[moving]), p if p < math.inf else 300))
        )

    best = math.exp(minimize(largest, np.zeros(len(variances)), tol=1e-12).fun)
    assert plan.improvement == pytest.approx(
        (best / plan.error) ** 2, rel=1e-4 if p < math.inf else 0.03
    )
    for S, variance in zip(subsets, alone / cells, strict=True):
        if variance == 0:
            assert plan.independent_standard_deviation(*names(S)) == 0


def test_improvement_at_the_largest_variance_when_rows_are_replaced():
    # one half of the budget for each of two equal tables of 4 cells: 2 (1 − 1/4) · 2
    plan = planned((2, 2, 2), [(0, 1), (1, 2)], p=math.inf, neighbors="replace")
    assert plan.independent_standard_deviation("a0", "a1") == pytest.approx(math.sqrt(3))
    assert plan.improvement == pytest.approx(3 / plan.error**2)


# --- numbers over all marginals at once


@st.composite
def covariances(draw):
    """Noise on any tables, with a number for every T, by type or not."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    every = parts(range(len(sizes)))
    subsets = draw(st.lists(st.sampled_from(every), min_size=1, max_size=8, unique=True))
    weights = [draw(st.floats(0.1, 10)) for _ in subsets]
    domain = gn.Marginals(sizes, subsets, weights=weights)
    moving = [T for T in every if all(sizes[i] > 1 for i in T)]
    if draw(st.booleans()):
        measured = draw(st.lists(st.sampled_from(moving), min_size=1, unique=True))
        return MarginalCovariance(domain, {T: draw(st.floats(0.1, 10)) for T in measured})
    # some attributes may have no noise of their own
    by_size = [
        tuple(i for i, n in enumerate(sizes) if n == k) for k in (2, 3) if draw(st.integers(0, 3))
    ]
    orbits = Orbits(tuple(members for members in by_size if members))
    kinds = sorted({orbits.type_of(T) for T in moving if all(i in orbits for i in T)})
    values = {kind: draw(st.floats(0.1, 10)) for kind in kinds}
    return MarginalCovariance(domain, ByType(orbits, values))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(covariances(), st.sampled_from([2, 3, math.inf]))
def test_variances_of_all_tables_are_the_diagonal_of_the_dense_matrix(covariance, p):
    domain = covariance.domain
    diagonal = np.diagonal(covariance.toarray())
    np.testing.assert_allclose(
        covariance.standard_deviation(), np.sqrt(diagonal), rtol=1e-9, atol=1e-12
    )
    assert covariance.error(p) == pytest.approx(
        float(np.linalg.norm(np.sqrt(diagonal), p)), rel=1e-9
    )
    assert covariance.queries.tolist() == [
        math.prod(domain.sizes[i] for i in S) for S in domain.subsets
    ]
    start = 0
    for S, weight, deviation in zip(
        domain.subsets, domain.weights, covariance.deviations, strict=True
    ):
        block = diagonal[start : start + domain.cells(S)] / weight**2
        np.testing.assert_allclose(block, deviation**2, rtol=1e-9, atol=1e-12)
        assert math.sqrt(covariance.table_variance(S)) == deviation
        start += domain.cells(S)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.data())
def test_a_part_of_a_table_is_released_and_nothing_else(data):
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    every = parts(range(len(sizes)))
    subsets = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    plan = planned(sizes, subsets)
    for S in every:
        if any(set(S) <= set(planned) for planned in subsets):
            assert plan.standard_deviation(*names(S)) > 0
        else:
            with pytest.raises(ParameterError, match="no planned marginal contains"):
                plan.standard_deviation(*names(S))


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_target_ratio_is_the_largest_of_all_marginals(neighbors):
    targets = {
        ("a0", "a1"): gn.Target(4.0, 0.99, simultaneous=True),
        ("a1", "a2"): 4.0,
        ("a0", "a2"): 5.0,
        "a3": gn.Target(7.0, simultaneous=True),
    }
    plan = gn.plan(
        schema(2, 3, 2, 1),
        list(targets),
        gn.zCDP(0.7),
        targets=targets,
        rows_per_person=2,
        neighbors=neighbors,
    )
    ratios = []
    for marginal, cells in ((("a0", "a1"), 6), (("a1", "a2"), 6), (("a0", "a2"), 4), (("a3",), 1)):
        target = targets.get(marginal, targets.get(marginal[0]))
        target = target if isinstance(target, gn.Target) else gn.Target(target)
        level = target.level ** (1 / cells) if target.simultaneous else target.level
        ratios.append(
            plan.standard_deviation(*marginal) * gaussian.ppf((1 + level) / 2) / target.within
        )
    assert plan.target_ratio == pytest.approx(max(ratios), rel=1e-9)
    assert len(set(np.round(ratios, 6))) > 1


@pytest.mark.parametrize(
    ("workload", "match"),
    [
        (["b"], "no attribute 'b': expected one of 'a0', 'a1'"),
        ([("a0", "b")], "no attribute 'b'"),
        ([("a0", 1)], "no attribute 1"),
        ([("a0", ["a1"])], r"no attribute \['a1'\]"),
        ([("a0", "a0")], r"distinct attributes, got \('a0', 'a0'\)"),
        ([("a0", "a1"), ("a1", "a0")], "distinct marginals"),
    ],
)
def test_workloads_name_attributes(workload, match):
    with pytest.raises(ParameterError, match=match):
        gn.plan(schema(2, 3), workload, gn.zCDP(1))


# --- the text


def rows_of(plan):
    """The table of a printed plan, by marginal."""
    body = str(plan).split("\n\n")[1].splitlines()
    return {line.split("  ")[0].strip(): [float(x) for x in line.split()[-4:]] for line in body[1:]}


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_every_marginal_has_a_line(neighbors):
    plan = planned((2, 3, 2), [(0, 1), (1, 2), (2,), ()], neighbors=neighbors, rows_per_person=2)
    printed = rows_of(plan)
    assert list(printed) == ["a0 × a1", "a1 × a2", "a2", "total"]
    for marginal, numbers in zip(plan.marginals, printed.values(), strict=True):
        assert numbers == pytest.approx(
            [
                math.prod({"a0": 2, "a1": 3, "a2": 2}[name] for name in marginal),
                plan.standard_deviation(*marginal),
                plan.half_width(*marginal),
                plan.independent_standard_deviation(*marginal),
            ],
            rel=1e-3,
        )


def test_a_thousand_marginals_are_shown():
    plan = gn.plan(schema(*[2] * 46), 2, gn.zCDP(1))
    text = str(plan)
    assert "… and 35 more" in text.splitlines()
    assert sum(" × " in line for line in text.splitlines()) == 1000
    assert text.startswith("Plan: 1035 tables, 4140 cells\n")


def test_a_sentence_says_what_errors_are_and_in_which_unit():
    cells = str(planned((2, 3), [(0, 1)])).splitlines()
    (said,) = [line for line in cells if line.startswith("95 % ±:")]
    assert "a number is off by less than this, in rows." in said
    attributes = [gn.Attribute("a", ["x", "y"]), gn.Attribute("b", clip=[0, 9], measured_in="days")]
    asked = gn.Schema(attributes), [("a", "b")], gn.zCDP(0.5)
    plan = gn.plan(*asked, person="who")
    assert "less than this (root mean square" in str(plan)
    assert "numbers of an entry differ), in persons." in str(plan)
    half = gaussian.ppf(0.975) * plan.deviations[0]
    (line,) = [line for line in str(plan).splitlines() if line.startswith("a × b (")]
    assert line.split()[-2] == f"{half:.4g}"
    (line,) = [line for line in str(plan).splitlines() if line.startswith("sum of b given a")]
    assert " days, of values clipped to [0, 9]" in line


def test_a_plan_says_the_risk_of_its_budget_in_words():
    """The numbers are those of the page, and grow with the budget."""
    row, person = planned((2, 3), [(0, 1)]), planned((2, 3), [(0, 1)], rows_per_person=2)
    known = "all other rows", "everything about all other persons"
    for plan, unit, words in zip((row, person), ("row", "person"), known, strict=True):
        sure = percent_text(facts_of(plan).surest(plan.rho))
        (line,) = [line for line in str(plan).splitlines() if line.startswith("in words")]
        assert f"a reader who knows {words}, and thinks it 50 % likely" in line
        assert f"is at most {sure} sure of it" in line
        guess = guess_text(plan, facts := facts_of(plan))
        assert guess.startswith(f"A guess from these numbers whether one {unit} is in the data")
        right = percent_text(facts.guessed(plan.rho))
        assert f" is right in at most {right} of cases (by tossing a coin, in 50 %)" in guess
    exchanged = str(planned((2, 3), [(0, 1)], neighbors="replace", public=["a0"]))
    assert "that one row was exchanged for another of the same a0, is at most" in exchanged
    none = gn.plan(schema(2, 3), [()], gn.zCDP(1), neighbors="replace")
    assert "in words" not in str(none)
    assert guess_text(none, facts_of(none)) is None
    one = planned((2, 3), [(0, 1)], neighbors="replace")
    assert "whether one row was exchanged for another is right" in guess_text(one, facts_of(one))


@pytest.mark.parametrize(
    ("p", "kind"),
    [(2, "total variance"), (math.inf, "largest (weighted) variance"), (3, "variance (at p = 3)")],
)
def test_the_verdict_compares_with_independent_noise(p, kind):
    plan = planned((2, 2, 2, 2), pairs(4), p=p)
    said = verdict(plan)[0]
    assert said.startswith("independent noise for each table (best split of the budget")
    assert said.endswith(f" has {plan.improvement:.2f} times the {kind}")


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (None, "the largest half-width of each entry meets its target, the closest exactly"),
        (1, "the largest half-width of each entry meets its target, the closest exactly"),
        (4, "the largest half-width of each entry meets its target: the closest is 0.5 of it"),
        (1 / 4, "half-widths MISS their targets: the largest is 2 times its target"),
    ],
)
def test_the_verdict_says_whether_targets_are_met(times, said):
    """Half-widths are proportional to one over the root of the budget."""
    least = gn.plan(schema(2, 3), 1, targets=20)
    plan = (
        least
        if times is None
        else gn.plan(schema(2, 3), 1, gn.zCDP(times * least.rho / (1 + 1e-9)), targets=20)
    )
    assert verdict(plan)[0] == said


def test_norms_below_two_are_refused_by_the_plan():
    with pytest.raises(ParameterError, match=r"plan: expected p >= 2, got 1\.5"):
        planned((2, 3), [(0, 1)], p=1.5)


def test_simulations_take_a_generator():
    with pytest.raises(ParameterError, match="expected a numpy Generator, like"):
        planned((2, 3), [(0, 1)]).simulate({"a0": [0], "a1": [1]}, 0)


def test_the_verdict_names_what_replacement_saves():
    lines = verdict(planned((2, 2, 2, 2), pairs(4), neighbors="replace"))
    assert (
        "1.59 times less variance than the paper's calibration for replaced rows (twice the "
        "noise of γ_p)" in lines
    )
    assert lines[-2].startswith("proven: no Gaussian noise that protects these tables")
    assert lines[-1].startswith(
        "proven: at most 1.608 times the least error of any unbiased mechanism"
    )
    assert not any("replaced" in line for line in verdict(planned((2, 2, 2, 2), pairs(4))))


@pytest.mark.parametrize(
    ("seconds", "size", "text"),
    [
        (0.01, 1e5, "under a second and 1 MB"),
        (14.2, 9e7, "about 14 s and 90 MB"),
        (119.0, 2.34e9, "about 119 s and 2.3 GB"),
        (600.0, 1e9, "about 10 minutes and 1.0 GB"),
        (9000.0, 1e11, "about 2.5 hours and 100.0 GB"),
    ],
)
def test_work_is_in_units_that_people_read(seconds, size, text):
    plan = SimpleNamespace(seconds=seconds, peak_bytes=size, integers=1240, needs_executors=False)
    assert work_text(plan) == f"release      1240 noisy integers: {text} of memory"


def test_a_plan_says_what_its_release_takes():
    plan = planned((2, 3, 4), [(0, 1), (1, 2)])
    assert work_text(plan) in plan_text(plan).splitlines()
    # two categories need one integer: (), 0, 1, 2, 01, 12
    assert f" {1 + 1 + 3 + 4 + 3 + 12} noisy integers" in work_text(plan)


def test_numbers_of_a_plan_do_not_depend_on_symmetry():
    # the same tables, once by type and once with a number of its own for every T
    plan = gn.plan(schema(3, 3, 3, 2), 2, gn.zCDP(1), p=math.inf)
    covariance = MarginalCovariance(plan.domain, dict(plan.noise.covariance.variances))
    noise = OptimalNoise(**{**vars(plan.noise), "covariance": covariance})
    other = replace(plan, noise=noise)
    assert other.error == pytest.approx(plan.error, rel=1e-12)
    assert other.improvement == pytest.approx(plan.improvement, rel=1e-12)
    assert other.integers == plan.integers
    assert rows_of(other) == rows_of(plan)


def test_a_schema_prints_its_toml_and_a_plan_shows_its_size_in_a_notebook():
    schema = gn.Schema([gn.Attribute("age", edges=[0, 18, 65]), gn.Attribute("sex", ["F", "M"])])
    assert gn.Schema.loads(str(schema)) == schema
    plan = gn.plan(schema, 2, gn.zCDP(0.1))
    assert repr(plan) == "Plan(1 table, 4 cells, zCDP(rho=0.1))"
    stream = gn.plan(schema, 2, gn.zCDP(0.1), over=gn.streams.Ticks(12))
    assert repr(stream) == f"StreamPlan(12 ticks, {plan!r})"
