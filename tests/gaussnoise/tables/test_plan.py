import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from cases import one_test_of
from scipy.optimize import minimize
from scipy.stats import norm

import gaussnoise as gn
from domains import DomainError, DomainTooLargeError
from gaussnoise.errors import ParameterError


def schema(*sizes):
    return gn.Schema([gn.Attribute(f"a{i}", range(n)) for i, n in enumerate(sizes)])


def names(*positions):
    return tuple(f"a{i}" for i in positions)


def closed_form(sizes, subsets, weights):
    """γ and the standard deviation of every table at unit sensitivity, by closed formulas.

    They are for p = 2 and add-remove.
    """
    cells = {S: math.prod(sizes[i] for i in S) for S in subsets}
    beta, rank = {}, {}
    for T in {T for S in subsets for k in range(len(S) + 1) for T in itertools.combinations(S, k)}:
        beta[T] = sum(
            w**2 / cells[S] for S, w in zip(subsets, weights, strict=True) if set(T) <= set(S)
        )
        rank[T] = math.prod(sizes[i] - 1 for i in T)
    gamma = sum(rank[T] * math.sqrt(beta[T]) for T in beta)
    variance = {
        S: sum(
            gamma / math.sqrt(beta[T]) * rank[T] / cells[S] ** 2 for T in beta if set(T) <= set(S)
        )
        for S in subsets
    }
    return gamma, {S: math.sqrt(v) for S, v in variance.items()}


CASES = [
    ((3,), [()], None),
    ((3,), [(0,)], None),
    ((3,), [(), (0,)], [2.0, 0.5]),
    ((2, 2), [(0,), (1,)], None),
    ((3, 2, 4), [(0, 1), (0, 2), (1, 2)], None),
    ((3, 2, 4), [(0, 1, 2)], None),
    ((2, 1, 3), [(0, 1), (1,), (1, 2)], [1.0, 3.0, 0.1]),
    ((5, 2, 3), [(0, 1, 2), (2,), (0, 1)], [1.0, 10.0, 2.0]),
]


@pytest.fixture(params=CASES, ids=str)
def workload(request):
    return request.param


def planned(workload, rho=0.3):
    sizes, subsets, weights = workload
    return gn.plan(schema(*sizes), [names(*S) for S in subsets], gn.zCDP(rho), weights=weights)


@pytest.mark.parametrize(
    ("sizes", "subsets", "sd"),
    [
        ((4,), [()], 1),
        ((4,), [(0,)], 1),
        ((2, 3), [(0, 1)], 1),
        ((2, 2), [(0,), (1,)], (1 + math.sqrt(2)) / 2),
        (
            (2, 2, 2, 2),
            list(itertools.combinations(range(4), 2)),
            (math.sqrt(1.5) + 4 * math.sqrt(0.75) + 3) / math.sqrt(24),
        ),
    ],
)
def test_standard_deviations_known_by_hand(sizes, subsets, sd):
    plan = planned((sizes, subsets, None), rho=0.5)
    for S in subsets:
        assert plan.standard_deviation(*names(*S)) == pytest.approx(sd, rel=1e-9)


@pytest.mark.parametrize(
    ("sizes", "k", "gamma"),
    [
        ((2, 2, 2, 2), 2, math.sqrt(1.5) + 4 * math.sqrt(0.75) + 3),
        ((3, 2, 4), 2, 7.1309481146),
        ((3, 2, 4), 3, 4.8989794856),
    ],
)
def test_errors_known_by_hand(sizes, k, gamma):
    assert gn.plan(schema(*sizes), k, gn.zCDP(0.5)).error == pytest.approx(gamma, rel=1e-9)


def test_standard_deviations_follow_the_closed_form(workload):
    sizes, subsets, weights = workload
    _, sd = closed_form(sizes, subsets, weights or [1.0] * len(subsets))
    plan = planned(workload)
    for S in subsets:
        assert plan.standard_deviation(*names(*S)) == pytest.approx(
            sd[S] / math.sqrt(0.6), rel=1e-9
        )


def test_error_is_gamma_over_root_two_rho(workload):
    sizes, subsets, weights = workload
    gamma, _ = closed_form(sizes, subsets, weights or [1.0] * len(subsets))
    plan = planned(workload)
    assert plan.error**2 == pytest.approx(gamma**2 / 0.6, rel=1e-9)
    assert plan.error**2 == pytest.approx(plan.noise.gamma**2 / 0.6, rel=1e-9)


def test_weighted_variances_sum_to_the_squared_error(workload):
    sizes, subsets, weights = workload
    plan = planned(workload)
    total = sum(
        w**2 * math.prod(sizes[i] for i in S) * plan.standard_deviation(*names(*S)) ** 2
        for S, w in zip(subsets, weights or [1.0] * len(subsets), strict=True)
    )
    assert total == pytest.approx(plan.error**2, rel=1e-9)


def test_parts_of_a_marginal_vary_as_sums_of_its_cells():
    # one table alone gets independent noise of variance 1
    plan = planned(((2, 3), [(0, 1)], None), rho=0.5)
    assert plan.standard_deviation("a0") == pytest.approx(math.sqrt(3), rel=1e-9)
    assert plan.standard_deviation("a1") == pytest.approx(math.sqrt(2), rel=1e-9)
    assert plan.standard_deviation() == pytest.approx(math.sqrt(6), rel=1e-9)


def test_the_order_of_names_does_not_matter():
    plan = planned(((2, 3), [(1, 0)], None))
    assert plan.standard_deviation("a0", "a1") == plan.standard_deviation("a1", "a0")


def test_heavier_marginals_get_less_noise():
    light = planned(((3, 4), [(0,), (1,)], [1.0, 1.0]))
    heavy = planned(((3, 4), [(0,), (1,)], [5.0, 1.0]))
    assert heavy.standard_deviation("a0") < light.standard_deviation("a0")
    assert heavy.standard_deviation("a1") > light.standard_deviation("a1")


def test_common_weights_change_no_table(workload):
    sizes, subsets, weights = workload
    doubled = planned((sizes, subsets, [2 * w for w in weights or [1.0] * len(subsets)]))
    for S in subsets:
        assert doubled.standard_deviation(*names(*S)) == pytest.approx(
            planned(workload).standard_deviation(*names(*S)), rel=1e-9
        )


def best_split(plan):
    """Budget shares that minimise the weighted total variance of independent noise, numerically."""
    sizes, weights = plan.schema.sizes, plan.domain.weights
    cells = np.array([math.prod(sizes[i] for i in S) for S in plan.domain.subsets])
    cost = np.square(weights) * cells / (2 * plan.rho)

    def variance(logits):
        shares = np.exp(logits) / np.exp(logits).sum()
        return (cost / shares).sum() / cost.sum()

    best = minimize(variance, np.zeros(len(cells)), method="BFGS", options={"gtol": 1e-9})
    shares = np.exp(best.x) / np.exp(best.x).sum()
    return best.fun * cost.sum(), np.sqrt(1 / (2 * plan.rho * shares))


def test_improvement_is_over_the_best_independent_split(workload):
    plan = planned(workload)
    variance, sds = best_split(plan)
    assert plan.improvement == pytest.approx(variance / plan.error**2, rel=1e-6)
    assert plan.improvement > 1 - 1e-9
    for marginal, sd in zip(plan.marginals, sds, strict=True):
        assert plan.independent_standard_deviation(*marginal) == pytest.approx(sd, rel=1e-3)


@pytest.mark.parametrize("asked", [{}, {"p": math.inf}, {"targets": 5.0}, {"rows_per_person": 3}])
def test_another_budget_is_the_plan_that_is_solved_for_it(asked):
    planned = partial(gn.plan, schema(2, 3, 2), 2, neighbors="replace", **asked)
    moved, solved = planned(gn.zCDP(1)).with_budget(gn.zCDP(0.2)), planned(gn.zCDP(0.2))
    assert moved.deviations.tolist() == solved.deviations.tolist()
    assert moved.request_sha256 == solved.request_sha256  # a ledger takes one for the other
    assert moved.query.query == solved.query.query


def test_another_budget_is_refused_as_by_plan():
    one = gn.plan(schema(2, 3), 2, gn.zCDP(1))
    with pytest.raises(gn.errors.ParameterError):
        one.with_budget(gn.PureDP(1))
    grown = gn.Schema([gn.Attribute("pay", unit=0.01)])
    base = gn.PerRecord(gn.zCDP(0.1), {"pay": 1e4})
    for plan, privacy in ((one, base), (gn.plan(grown, ["pay"], base), gn.zCDP(1))):
        with pytest.raises(gn.errors.NotAvailableError, match="grow with numbers"):
            plan.with_budget(privacy)


def test_half_width_is_a_gaussian_quantile():
    plan = planned(((3,), [(0,)], None), rho=0.5)
    assert plan.half_width("a0") == pytest.approx(1.959963984540054)
    assert plan.half_width("a0", level=0.5) == pytest.approx(0.6744897501960817)


@pytest.mark.parametrize("k", range(4))
def test_k_means_all_k_way_marginals(k):
    assert gn.plan(schema(2, 3, 2), k, gn.zCDP(1)).marginals == tuple(
        itertools.combinations(names(0, 1, 2), k)
    )


def test_a_bare_name_is_a_one_way_marginal():
    assert gn.plan(schema(2, 3), ["a1", ("a0",)], gn.zCDP(1)).marginals == (("a1",), ("a0",))


def test_the_number_of_integers_to_draw():
    # the total, both margins and their interaction
    assert (
        gn.plan(schema(2, 3), 2, gn.zCDP(1)).integers == 1 + 1 + 3 + 3
    )  # two categories need one contrast


def test_approximate_privacy_is_that_of_the_gaussian_with_nothing_to_spare():
    plan = gn.plan(schema(2), 1, gn.ApproxDP(1, 1e-6))
    length = math.sqrt(2 * plan.rho)
    delta = norm.cdf(length / 2 - 1 / length) - math.e * norm.cdf(-length / 2 - 1 / length)
    assert 0.99999e-6 < delta <= 1e-6


def test_print_states_relation_budget_and_gap():
    text = str(
        gn.plan(
            gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("größe", [1])]),
            2,
            gn.zCDP(0.25),
        )
    )
    assert "add-remove" in text
    assert "0.25-zCDP" in text
    assert "certified gap" in text
    assert "sex × größe" in text


def test_print_states_both_budgets():
    assert "(1, 1e-06)-differential privacy" in str(gn.plan(schema(2), 1, gn.ApproxDP(1, 1e-6)))


@pytest.mark.parametrize("rho", [1e-12, 1e6])
def test_any_budget_can_be_printed(rho):
    assert f"{rho:g}-zCDP" in str(gn.plan(schema(2), 1, gn.zCDP(rho)))


TWO = schema(2, 3)


@one_test_of(
    ("workload", "options", "part"),
    [
        ([("zz",)], {}, "zz"),
        (["a0", "zz"], {}, "zz"),
        ([("a0", "a0")], {}, "distinct"),
        ([("a0", "a1"), ("a1", "a0")], {}, "twice"),
        ([(), ()], {}, "twice"),
        ("a0", {}, "list of marginals"),
        (-1, {}, "0 <= k <= 2"),
        (3, {}, "0 <= k <= 2"),
        (None, {}, "plan"),
        (2.0, {}, "plan"),
        ([5], {}, "plan"),
        ([], {}, "at least one"),
        (1, {"weights": [1.0]}, "2 weights"),
        (1, {"weights": [1.0, 0.0]}, "weights"),
        (1, {"weights": [1.0, -1.0]}, "weights"),
        (1, {"weights": [1.0, math.nan]}, "weights"),
        (1, {"weights": [1.0, math.inf]}, "weights"),
        (1, {"weights": 1.0}, "weights"),
        (1, {"p": 1.5}, "p >= 2"),
        (1, {"p": math.nan}, "p >= 2"),
        (1, {"p": "2"}, "p >= 2"),
        (1, {"neighbors": "add"}, "neighbors"),
    ],
)
def test_refusals(workload, options, part):
    with pytest.raises((ParameterError, DomainError), match=part):
        gn.plan(TWO, workload, gn.zCDP(1), **options)


@pytest.mark.parametrize(
    ("given_schema", "privacy"),
    [({"a": ["x"]}, gn.zCDP(1)), ("survey.toml", gn.zCDP(1)), (TWO, 0.1), (TWO, None)],
)
def test_wrong_types_are_named(given_schema, privacy):
    with pytest.raises(ParameterError, match=r"^plan: expected .*, got (dict|str|float|NoneType)"):
        gn.plan(given_schema, 1, privacy)


@pytest.mark.parametrize("rho", [0, -1, math.nan, math.inf])
def test_budgets_are_positive_and_finite(rho):
    with pytest.raises(ParameterError, match="rho > 0"):
        gn.zCDP(rho)


@pytest.mark.parametrize(
    ("sizes", "workload"),
    [
        ((10,) * 12, 12),
        ((10**4,) * 3, [("a0", "a1", "a2")]),
        ((2,) * 40, [names(*range(40))]),
        ((2,) * 100, 10),
    ],
    ids=["10^12 cells", "10^12 in three attributes", "2^40 subsets", "10^13 marginals"],
)
def test_impossible_workloads_are_refused(sizes, workload):
    given_schema = schema(*sizes)
    with pytest.raises(DomainTooLargeError, match=r"cells|marginals|subsets"):
        gn.plan(given_schema, workload, gn.zCDP(1))


@pytest.mark.parametrize("asked", [("zz",), ("a0", "a0"), ("a0", "a1")])
def test_what_was_not_planned_has_no_standard_deviation(asked):
    plan = gn.plan(TWO, 1, gn.zCDP(1))
    with pytest.raises(ParameterError):
        plan.standard_deviation(*asked)


def test_independent_noise_is_known_for_planned_marginals_only():
    with pytest.raises(ParameterError, match="planned marginal"):
        gn.plan(TWO, 2, gn.zCDP(1)).independent_standard_deviation("a0")


@pytest.mark.parametrize("level", [0, 1, -0.5, math.nan])
def test_levels_are_between_zero_and_one(level):
    with pytest.raises(ParameterError, match="0 < level < 1"):
        gn.plan(TWO, 1, gn.zCDP(1)).half_width("a0", level=level)


def largest(plan):
    pairs = zip(plan.marginals, plan.domain.weights, strict=True)
    return max(weight * plan.standard_deviation(*marginal) for marginal, weight in pairs)


def test_the_largest_error_is_least_at_p_infinity(workload):
    sizes, subsets, weights = workload
    asked = schema(*sizes), [names(*S) for S in subsets], gn.zCDP(0.3)
    best, other = (gn.plan(*asked, weights=weights, p=p) for p in (math.inf, 2))
    assert best.error == pytest.approx(largest(best), rel=1e-9)
    assert best.error == pytest.approx(best.noise.gamma / math.sqrt(0.6), rel=1e-9)
    assert largest(best) <= largest(other) * (1 + 1e-6)


@pytest.mark.parametrize("p", [2, 3, math.inf])
def test_independent_noise_is_at_its_best_for_p(p):
    plan = gn.plan(schema(3, 4), [("a0",), ("a1",), ()], gn.zCDP(0.5), p=p, weights=[1.0, 2.0, 0.5])
    sd = [plan.independent_standard_deviation(*m) for m in plan.marginals]
    assert sum(1 / s**2 for s in sd) == pytest.approx(1, rel=1e-9)

    def error(logits):
        shares = np.exp(logits) / np.exp(logits).sum()
        cells = np.repeat(np.array(plan.domain.weights) / np.sqrt(shares), [3, 4, 1])
        return np.linalg.norm(cells, p)

    best = minimize(
        error,
        np.zeros(3),
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000},
    )
    assert plan.improvement == pytest.approx((best.fun / plan.error) ** 2, rel=1e-4)


def test_people_of_k_rows_cost_k_times_the_noise():
    one, five = (gn.plan(schema(2, 3), 2, gn.zCDP(0.3), rows_per_person=k) for k in (1, 5))
    assert five.standard_deviation("a0") == pytest.approx(
        5 * one.standard_deviation("a0"), rel=1e-12
    )
    assert five.row_rho * 25 <= five.rho == 0.3
    assert "person with at most 5 rows" in str(five)


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "2", None])
def test_rows_per_person_are_counted(k):
    with pytest.raises(ParameterError, match="1 <= rows_per_person"):
        gn.plan(TWO, 1, gn.zCDP(1), rows_per_person=k)


TARGETS = {("a0", "a1"): gn.Target(20), "a1": gn.Target(30, 0.99, simultaneous=True), (): 40}


def test_the_least_budget_meets_every_target_and_no_smaller_one_does():
    asked = schema(3, 4), [("a1", "a0"), "a1", ()]
    plan = gn.plan(*asked, targets=TARGETS)
    assert 1 - 1e-5 <= plan.target_ratio <= 1
    assert plan.half_width("a0", "a1") <= 20
    assert plan.half_width() <= 40
    cheaper = gn.plan(*asked, gn.zCDP(plan.rho * 0.98), targets=TARGETS)
    assert cheaper.target_ratio == pytest.approx(plan.target_ratio / math.sqrt(0.98), rel=1e-5)
    assert "half-widths MISS their targets" in str(cheaper)
    people = gn.plan(*asked, targets=TARGETS, rows_per_person=3)
    assert people.rho == pytest.approx(9 * plan.rho, rel=1e-9)
    assert people.target_ratio <= 1


def test_no_weights_do_better_on_the_targets():
    asked = schema(3, 4), [("a1", "a0"), "a1", ()]
    plan = gn.plan(*asked, targets=TARGETS)
    rng = np.random.default_rng(3)
    goals = [t.standard_deviation(n) for t, n in zip(plan.targets, (12, 4, 1), strict=True)]
    for _ in range(20):
        other = gn.plan(*asked, gn.zCDP(plan.rho), weights=np.exp(rng.normal(size=3)).tolist())
        ratios = [
            other.standard_deviation(*m) / goal
            for m, goal in zip(other.marginals, goals, strict=True)
        ]
        assert max(ratios) >= plan.target_ratio * (1 - 1e-5)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("workload", "aimed"),
    [
        ([("a1", "a0"), "a1", ("a0", "a2"), ()], {("a0", "a1"): 20, "a1": 5}),
        ([("a1", "a0"), {"a2": "prefix"}, "a1"], {"a2": 20}),
        ([("a0", "a1", "a2"), "a0"], {"a0": 3}),
    ],
    ids=str,
)
def test_tables_without_targets_cost_no_more_than_one_percent(neighbors, workload, aimed):
    given = schema(3, 4, 5)
    plan = gn.plan(given, workload, targets=aimed, neighbors=neighbors)
    assert 1 - 1e-5 <= plan.target_ratio <= 1
    named = [entry for entry, goal in zip(workload, plan.targets, strict=True) if goal is not None]
    alone = gn.plan(given, named, targets=aimed, neighbors=neighbors)
    assert alone.rho * (1 - 1e-6) <= plan.rho <= alone.rho * 1.011
    rest = [entry for entry in workload if entry not in named]
    share = gn.plan(
        given, rest, gn.zCDP(plan.rho * 0.01), p=math.inf, neighbors=neighbors
    ).deviations.max()
    largest = max(
        deviation
        for deviation, goal in zip(plan.deviations, plan.targets, strict=True)
        if goal is None
    )
    assert largest <= share * 1.01
    listed = gn.plan(given, workload, targets=list(plan.targets), neighbors=neighbors)
    assert listed.request_sha256 == plan.request_sha256
    assert f"targets for {len(aimed)} of {len(workload)}" in str(plan)


def test_targets_that_need_no_noise_set_no_budget_for_others():
    with pytest.raises(ParameterError, match="need no noise"):
        gn.plan(TWO, ["a0", ()], targets={(): 5}, neighbors="replace")
    plan = gn.plan(TWO, ["a0", ()], targets={"a0": 5}, neighbors="replace")
    assert plan.half_width("a0") == pytest.approx(5, rel=1e-5)
    assert plan.half_width() == 0


def test_simultaneous_targets_are_harder():
    assert gn.Target(30, 0.9, simultaneous=True).standard_deviation(10) < gn.Target(
        30, 0.9
    ).standard_deviation(10)


@pytest.mark.parametrize(
    ("targets", "options", "part"),
    [
        ({}, {}, "a target for one marginal at least"),
        ([None, None], {}, "a target for one marginal at least"),
        ({"a0": 5, "a1": 5, "a2": 5}, {}, "targets for marginals of the workload"),
        ({"a0": 5, ("a0",): 6}, {}, "got two"),
        ({(): 5}, {}, "targets for marginals of the workload"),
        ({"a0": 5, "a1": -5}, {}, "positive, finite"),
        ({"a0": 5, "a1": math.nan}, {}, "positive, finite"),
        ({"a0": 5, "a1": True}, {}, "positive, finite"),
        ("a0", {}, "targets like"),
        (5, {"p": 4}, "replace p and weights"),
        (5, {"weights": [1.0, 1.0]}, "replace p and weights"),
    ],
)
def test_targets_are_checked(targets, options, part):
    with pytest.raises(ParameterError, match=part):
        gn.plan(TWO, ["a0", "a1"], targets=targets, **options)


@pytest.mark.parametrize("level", [0, 1, math.nan])
def test_levels_of_targets_are_between_zero_and_one(level):
    with pytest.raises(ParameterError, match="0 < level < 1"):
        gn.Target(5, level)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("rho", "k"), [(12370.409295567082, 49), (0.1, 3), (1 / 3, 7), (2.0**-40, 10**6), (5.0, 10**9)]
)
def test_rows_per_person_never_exceed_the_budget_by_a_single_bit(neighbors, rho, k):
    plan = gn.plan(schema(2, 3), 2, gn.zCDP(rho), neighbors=neighbors, rows_per_person=k)
    query = plan.query.query
    exact = Fraction(query.sensitivity_squared) * k**2 / (2 * Fraction(query.scale) ** 2)
    assert exact <= plan.rho_charged <= plan.rho
    assert exact >= Fraction(rho) * (1 - Fraction(1, 10**9))


def test_absurd_numbers_of_rows_are_refused():
    with pytest.raises(ParameterError, match="rows_per_person"):
        gn.plan(schema(2), 1, gn.zCDP(1), rows_per_person=10**160)


def test_what_needs_no_noise_has_no_least_budget():
    with pytest.raises(ParameterError, match="need no noise"):
        gn.plan(schema(2), [()], targets=5, neighbors="replace")
    assert gn.plan(schema(2), [()], gn.zCDP(1), targets=5, neighbors="replace").target_ratio == 0
