"""Budgets that grow with numbers of a row: counts and sums without clipping."""

import itertools
import json
import math
import pickle
import re
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise import verifier
from gaussnoise.errors import DataError, NotAvailableError, ParameterError, SchemaError
from gaussnoise.noise.proportion import AddInProportion
from gaussnoise.noise.solve import optimal_noise
from gaussnoise.solvers.tables.residuals import part_of
from gaussnoise.tables.counting.count import count_marginals

FIRMS = gn.PerRecord(gn.zCDP(0.1), scale={"payroll": 1e6})
REGION, SIZE = gn.Attribute("region", list("NSEW")), gn.Attribute("size", list("abcdef"))
PAYROLL = gn.Attribute("payroll", unit=0.01)
SCHEMA = gn.Schema([REGION, SIZE, PAYROLL])


def _firms(rng, n=600):
    pay = np.round(np.exp(rng.normal(10, 3, n)), 2)
    named = {a.name: rng.choice(a.categories, n) for a in (REGION, SIZE)}
    return pa.table({**named, "payroll": pay})


# The guarantee.


def test_the_budget_of_a_record_is_its_formula_rounded_up():
    own = gn.PerRecord(gn.zCDP(0.1), {"sales": 3.0, "payroll": 7.0})
    for numbers in ({}, {"sales": 3.0}, {"payroll": 1e9}, {"sales": 0.1, "payroll": 2.5}):
        squares = [(Fraction(v) / Fraction(own.scales[k])) ** 2 for k, v in numbers.items()]
        exact = Fraction(0.1) * (1 + sum(squares))
        assert exact <= Fraction(own.of(**numbers)) <= exact * (1 + Fraction(1, 2**50))
    with pytest.raises(ParameterError, match="numbers >= 0 of payroll, sales, got staff=1"):
        own.of(staff=1)


def test_it_is_read_back_and_compared_by_its_numbers():
    record = json.loads(json.dumps(FIRMS.stated()))
    assert gn.privacy.AbstractPrivacy.read(record) == FIRMS
    assert hash(gn.PerRecord(gn.zCDP(0.1), (("payroll", 1_000_000),))) == hash(FIRMS)
    assert pickle.loads(pickle.dumps(FIRMS)) == FIRMS
    assert eval(repr(FIRMS), vars(gn)) == FIRMS


@pytest.mark.parametrize(
    ("privacy", "scale"),
    [
        (gn.KL(0.1), {"payroll": 1.0}),
        (0.1, {"payroll": 1.0}),
        (gn.zCDP(0.1), {}),
        (gn.zCDP(0.1), {"payroll": 0}),
        (gn.zCDP(0.1), {"payroll": math.inf}),
        (gn.zCDP(0.1), {"payroll": True}),
        (gn.zCDP(0.1), {"": 1.0}),
        (gn.zCDP(0.1), ["payroll"]),
    ],
)
def test_other_arguments_are_refused(privacy, scale):
    with pytest.raises(ParameterError, match="PerRecord: expected"):
        gn.PerRecord(privacy, scale)


def test_nothing_is_said_of_tests_between_all_neighbours():
    """A firm may have any budget, so that no bound on tests holds for all of them."""
    assert FIRMS.implies(1e-6) == []
    assert FIRMS.power(0.1) is None
    assert FIRMS.variation() is None


def test_a_budget_within_another_compares_coefficients():
    """c is the least with P <= c P' / ρ for every record, where both have the same ρ."""
    own = gn.PerRecord(gn.zCDP(0.1), {"a": 2.0, "b": 3.0})
    for scales, factor in (({"a": 2.0, "b": 3.0, "c": 1.0}, 1), ({"a": 4.0, "b": 3.0}, 4)):
        assert own.factor_over(scales) == factor
    assert own.factor_over({"a": 1.0, "b": 1.0}) == 1
    assert own.factor_over({"a": 2.0}) is None
    assert gn.zCDP(0.1).factor_over({"a": 2.0}) == 1


# Privacy: brute force over neighbours.


def _loss(plan, *rows):
    """Return ``|Δ|² / 2σ²`` of the integers that these rows add to all answers, exactly."""
    query, used = plan.query, [plan.schema.attributes[i] for i in plan.asked.used]
    table = pa.table({a.name: [row[a.name] for row in rows] for a in used})
    planned = {tuple(plan.asked.used.index(i) for i in S): S for S in plan.tables.subsets}
    squared, seen = 0, set()
    for own, counts in count_marginals(table, used, list(planned), unit=plan.unit):
        S = planned[own]
        for r in range(len(S) + 1):
            for T in itertools.combinations(S, r):
                if T in query.multipliers and T not in seen:
                    seen.add(T)
                    answer = query.answer(T, part_of(counts, S, T))
                    squared += sum(int(x) ** 2 for x in answer.reshape(-1).tolist())
    assert seen == set(query.multipliers)
    return Fraction(squared) / (2 * Fraction(query.query.scale) ** 2)


def _random_plan(rng, rows=1):
    sizes = rng.integers(2, 4, size=rng.integers(1, 3))
    cells = [gn.Attribute(f"x{k}", [f"c{j}" for j in range(n)]) for k, n in enumerate(sizes)]
    units = [float(u) for u in rng.choice([0.01, 0.5, 1.0, 1000.0], size=rng.integers(1, 3))]
    numbers = [gn.Attribute(f"v{k}", unit=u) for k, u in enumerate(units)]
    times = [int(rng.integers(1, 10 ** rng.integers(1, 9))) for _ in numbers]
    scales = {a.name: round(a.unit * k, 2) for a, k in zip(numbers, times, strict=True)}
    groups = [[a.name for a in cells if rng.random() < 0.6] for _ in range(4)]
    entries = [(*own, a.name) for own, a in zip(groups, numbers, strict=False)] + [tuple(groups[2])]
    entries += [(*groups[3], numbers[0].name)]
    privacy = gn.PerRecord(gn.zCDP(float(10 ** rng.uniform(-3, 1))), scales)
    order = rng.permutation(len(cells) + len(numbers))
    schema = gn.Schema([(cells + numbers)[k] for k in order])
    weights = rng.uniform(0.3, 3, size=len(set(entries)))
    entries = list(dict.fromkeys(entries))
    return gn.plan(schema, entries, privacy, weights=weights.tolist(), rows_per_person=rows)


def test_no_row_costs_more_than_its_budget_on_50_plans():
    """Every kind of row, with numbers far below and far above the scales; some row costs it all."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        plan = _random_plan(rng)
        rho, scales = plan.privacy.privacy.rho, plan.privacy.scales
        cells = {a.name: a.categories for a in plan.schema.attributes if a.categories}
        units = {a.name: Fraction(repr(a.unit)) for a in plan.schema.attributes if a.unit}
        steps = {name: int(Fraction(repr(scales[name])) / unit) for name, unit in units.items()}
        rows = [dict(zip(cells, row, strict=True)) for row in itertools.product(*cells.values())]
        shares = []
        for row, times in itertools.product(
            [rows[0], rows[-1]], [(0, 0), (1, 3), (None, 0), (0, None), (10**9, 7), (5, 10**9)]
        ):
            pairs = zip(units, times, strict=False)
            counts = {name: steps[name] if k is None else k for name, k in pairs}
            grown = sum((Fraction(k) / steps[name]) ** 2 for name, k in counts.items())
            loss = _loss(plan, row | {name: float(k * units[name]) for name, k in counts.items()})
            assert loss <= Fraction(rho) * (1 + grown)
            shares.append(loss / (Fraction(rho) * (1 + grown)))
        assert max(shares) > 0.999  # multipliers are rounded to 1 in 1,000, or better


def test_counts_beside_sums_may_be_measured_by_other_contrasts_in_other_sets():
    """All records at all sizes, and the proof."""
    halves = gn.Groups(4, [(0,), (1, 2, 3)])
    asked = [("size", "payroll"), ("region",), {"region": halves, "size": "identity"}]
    plan = gn.plan(gn.Schema([PAYROLL, SIZE, REGION]), asked, FIRMS)
    assert plan.strategies[2].others.keys() == {(1, 2)}
    assert plan.noise.verify().gamma == pytest.approx(plan.noise.gamma, rel=1e-6)
    shares = []
    for region, size, pay in itertools.product("NSEW", "abcdef", [0.0, 1e6, 1e9]):
        loss = _loss(plan, {"region": region, "size": size, "payroll": pay})
        shares.append(loss / Fraction(FIRMS.of(payroll=pay)))
    assert 0.9 < max(shares) <= 1


def test_less_noise_than_budgets_allow_would_be_seen():
    """The same noise at a scale of three quarters: large rows cost more than their budget then."""
    plan = gn.plan(SCHEMA, [("region", "payroll")], FIRMS)
    tighter = gn.PerRecord(gn.zCDP(0.1), scale={"payroll": 4e6 / 3})
    loss = _loss(plan, {"region": "N", "size": "a", "payroll": 1e9})
    assert loss <= Fraction(FIRMS.of(payroll=1e9))
    assert loss > Fraction(tighter.of(payroll=1e9))


def test_no_person_costs_more_than_the_budget_of_the_sum_of_their_numbers_on_50_plans():
    """Rows alike and not, and numbers of any size in any of them; some person costs it all."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        most = int(rng.integers(2, 5))
        plan = _random_plan(rng, most)
        rho, scales = plan.privacy.privacy.rho, plan.privacy.scales
        cells = {a.name: a.categories for a in plan.schema.attributes if a.categories}
        units = {a.name: Fraction(repr(a.unit)) for a in plan.schema.attributes if a.unit}
        steps = {name: int(Fraction(repr(scales[name])) / unit) for name, unit in units.items()}
        corners = [{name: own[k] for name, own in cells.items()} for k in (0, -1)]
        shares = []
        for alike, sizes in itertools.product(
            [True, False], [(0,), (1,), (None, None), (10**9, 0), (10**9, 1)]
        ):
            rows, sums = [], dict.fromkeys(units, 0)
            for k in range(most):
                row = corners[0 if alike else k % 2]
                own = {name: sizes[(k + j) % len(sizes)] for j, name in enumerate(units)}
                own = {name: steps[name] if n is None else n for name, n in own.items()}
                rows.append(row | {name: float(n * units[name]) for name, n in own.items()})
                sums = {name: sums[name] + n for name, n in own.items()}
            loss = _loss(plan, *rows)
            budget = Fraction(rho) * (1 + sum(Fraction(n, steps[j]) ** 2 for j, n in sums.items()))
            assert loss <= budget
            shares.append(loss / budget)
            fewer = _loss(plan, *rows[:-1]) if most > 1 else 0
            less = {j: sums[j] - round(rows[-1][j] / float(units[j])) for j in sums}
            grown = sum(Fraction(n, steps[j]) ** 2 for j, n in less.items())
            assert fewer <= Fraction(rho) * (1 + grown)
        assert max(shares) > 0.999


def test_noise_for_one_row_less_than_a_person_has_would_be_seen():
    """Three rows where two were planned: without numbers, they cost 9/4 of the budget."""
    plan = gn.plan(SCHEMA, [("region", "payroll")], FIRMS, rows_per_person=2)
    row = {"region": "N", "size": "a", "payroll": 0.0}
    assert _loss(plan, row, row) <= Fraction(0.1)
    assert _loss(plan, row, row, row) == pytest.approx(0.1 * 9 / 4, rel=1e-5)


def test_sums_of_persons_have_the_noise_of_rows_and_counts_k_times_as_much():
    """A budget grows with the sum of a person's numbers, in however many rows they are."""
    one, three = (
        gn.plan(SCHEMA, [("region", "payroll")], FIRMS, rows_per_person=k) for k in (1, 3)
    )
    ratio = [
        three.answer_deviations(("region", "payroll"))[0, k]
        / one.answer_deviations(("region", "payroll"))[0, k]
        for k in (0, 1)
    ]
    assert ratio == pytest.approx([3, 1], rel=1e-6)
    assert three.gap < 1e-6
    assert three.bound.error < three.error < 1.25 * three.bound.error


def test_no_other_noise_is_better_for_persons():
    """The points of persons over their budgets, solved as listed points by another method."""
    schema = gn.Schema([gn.Attribute("x", ["a", "b"]), gn.Attribute("v", unit=1)])
    privacy = gn.PerRecord(gn.zCDP(0.5), {"v": 10})
    plan = gn.plan(schema, [("x", "v")], privacy, rows_per_person=3)
    points = []
    for counts in itertools.product(range(4), repeat=2):
        for u, x in itertools.product([0, 0.1, 1, 3, 1e5], range(2)):
            if sum(counts) <= 3 and (counts[x] or not u):
                cells = np.array([counts, (0, 0)], dtype=float).T
                cells[x, 1] = u
                points.append(cells.reshape(-1) / math.hypot(1, u))
    best = gn.optimal_noise(gn.FiniteSet(np.unique(points, axis=0)), neighbors="add-remove")
    # errors of all answers, at unit sensitivity: that of persons, whose k rows cost k² of a row
    assert 3 * plan.noise.gamma == pytest.approx(best.gamma, rel=2e-6)


def test_rows_of_persons_are_limited_and_their_sums_are_right(tmp_path):
    rng, n = np.random.default_rng(5), 400
    firms = np.arange(n) // 2  # each has two rows
    table = _firms(rng, n).append_column("firm", pa.array(firms))
    plan = gn.plan(SCHEMA, [("region", "payroll")], FIRMS, person="firm", rows_per_person=2)
    release = plan.release(table, out=tmp_path / "out")
    truth = table.to_pandas().groupby("region")["payroll"].sum()[list("NSEW")]
    sums = gn.TableRelease.load(tmp_path / "out").sums("payroll", given="region")
    assert np.abs((sums.estimate - truth) / sums.standard_deviation).max() < 6
    release.report(tmp_path / "page.html")
    said = _text(tmp_path / "page.html")
    assert "The budget of a person is ρ" in said
    assert "payroll is the sum over the person's counted rows" in said
    assert "Large persons are protected less" in said
    assert not [line for line in verifier.verified(tmp_path / "out") if "FAILED" in line]


def test_a_budget_of_the_larger_of_both_is_met_at_half():
    """P = ρ max(1, (v/T)²) is at least half of ρ (1 + (v/T)²), and equals it at v = T."""
    half = gn.PerRecord(gn.zCDP(0.05), scale={"payroll": 1e6})
    for v in (0, 1e5, 1e6, 1e7):
        assert half.of(payroll=v) <= 0.1 * max(1, (v / 1e6) ** 2) * (1 + 1e-15)
    assert half.of(payroll=1e6) == pytest.approx(0.1)


def test_stored_multipliers_are_checked_again():
    """Integers of a file are not trusted: sensitivity is computed from them, for both parts."""
    plan = gn.plan(SCHEMA, [("region", "payroll")], FIRMS)
    own = dict(plan.query.multipliers.values_by_type)
    relation = plan.noise.neighbors
    same = plan.query.with_multipliers(own, relation)
    assert same.query.sensitivity_squared == plan.query.query.sensitivity_squared
    for kind in own:
        more = plan.query.with_multipliers({**own, kind: 3 * own[kind]}, relation)
        assert more.query.sensitivity_squared > 2 * same.query.sensitivity_squared


# Optimality.


def test_no_other_noise_is_better():
    """The points of many rows over their budgets, solved as listed points by another method."""
    schema = gn.Schema([gn.Attribute("x", ["a", "b", "c"]), gn.Attribute("v", unit=1)])
    plan = gn.plan(schema, [("x", "v"), ("v",), ("x",)], gn.PerRecord(gn.zCDP(0.5), {"v": 10}))
    points = []
    for x, u in itertools.product(range(3), [0, 0.1, 1, 3, 1e5]):
        cells = np.zeros((3, 2))
        cells[x] = 1, u
        own = [*cells.reshape(-1), *cells.sum(axis=0), *cells[:, 0]]
        points.append(np.array(own) / math.hypot(1, u))
    best = gn.optimal_noise(gn.FiniteSet(np.array(points)), neighbors="add-remove")
    assert plan.noise.gamma == pytest.approx(best.gamma, rel=2e-6)
    assert plan.gap < 1e-6
    checked = plan.noise.verify()
    assert checked.sensitivity_squared <= 1
    assert checked.gamma_lower == pytest.approx(plan.noise.gamma, rel=1e-6)


def test_counts_and_sums_have_the_noise_of_their_own_tables():
    plan = gn.plan(SCHEMA, [("region", "size", "payroll")], FIRMS)
    assert plan.standard_deviation("region", "size") == pytest.approx(math.sqrt(5), rel=1e-6)
    sums = plan.answer_deviations(("region", "size", "payroll"))[..., 1]
    np.testing.assert_allclose(sums, 1e6 * math.sqrt(5), rtol=1e-6)
    # rms over 48 answers; a uniform budget needs a factor of 1,000 for a firm of 10^9
    assert plan.error / math.sqrt(48) == pytest.approx(math.sqrt(5), rel=1e-6)


def test_a_bound_holds_for_every_unbiased_mechanism():
    """Points over √(e^{2P} − 1) of more rows than the bound uses give a larger bound."""
    rho = 0.1
    schema = gn.Schema([gn.Attribute("x", ["a", "b"]), gn.Attribute("v", unit=1)])
    plan = gn.plan(schema, [("x", "v")], gn.PerRecord(gn.zCDP(rho), {"v": 1000}))
    points = []
    for x, u in itertools.product(range(2), np.arange(0, 6, 0.25)):
        own = np.zeros((2, 2))
        own[x] = 1, u
        points.append(own.reshape(-1) / math.sqrt(math.expm1(2 * rho * (1 + u * u))))
    best = gn.optimal_noise(gn.FiniteSet(np.array(points)), neighbors="add-remove")
    assert 0.9 * best.gamma < plan.bound.error <= best.gamma_lower
    assert plan.bound.error < plan.error < 1.25 * plan.bound.error
    with pytest.raises(ParameterError, match='neighbors="add-remove" for budgets of single rec'):
        gn.lower_bound(gn.FiniteSet(np.eye(2)), FIRMS, n=10)
    own = gn.lower_bound(gn.FiniteSet(np.eye(2)), FIRMS, neighbors="add-remove")
    like = gn.lower_bound(gn.FiniteSet(np.eye(2)), gn.zCDP(0.1), neighbors="add-remove")
    assert own.error == like.error


# Data.


def test_every_engine_counts_the_same_whole_numbers():
    pay = [0.0, 0.004, 0.005, 0.29, 1.1, 1e6, 123456789.01, 2.0**52 / 100 - 1]
    rows = {"payroll": pay * 2, "region": ["N", "S"] * len(pay)}
    units = [0, 0, 1, 29, 110, 10**8, 12345678901, round((2.0**52 / 100 - 1) * 100)]
    expected = {k: sum((units * 2)[k::2]) for k in (0, 1)}
    with duckdb.connect() as database:
        frame = pd.DataFrame(rows)
        lazy = [pl.LazyFrame(rows), database.from_df(frame)]
        tables = [pa.table(rows), frame, pl.DataFrame(rows), *lazy]
        for table in tables:
            [(_, counts)] = count_marginals(table, [REGION, PAYROLL], [(0, 1)])
            assert counts[:2, 1].tolist() == [expected[0], expected[1]]
            unit = counts.sum() // len(rows["region"])
            assert counts[:2].sum(axis=1).tolist() == [len(pay) * unit] * 2


def test_sums_of_any_size_are_exact(tmp_path):
    """More than 64 bits hold: as a frame, in batches, from a file, and grouped by an engine."""
    largest = 2**52 - 1
    n = 5000
    rows = {"region": ["N"] * n, "v": [largest] * n}
    v = gn.Attribute("v", unit=1)
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for table in (frame, pl.LazyFrame(rows), str(tmp_path / "rows.csv")):
        [(_, counts)] = count_marginals(table, [REGION, v], [(0, 1)])
        assert counts[0, 1] == largest * n > 2**63
    schema = gn.Schema([REGION, v])
    plan = gn.plan(schema, [("region", "v")], gn.PerRecord(gn.zCDP(1), {"v": 1000}))
    found = plan.release(frame).sums("v", given="region").estimate
    assert found[0] == pytest.approx(largest * n, rel=1e-12)
    assert np.abs(found[1:]).max() < 1e5


@pytest.mark.parametrize("value", [-0.01, 2.0**52 / 100, math.inf, math.nan, None])
def test_values_without_a_place_are_outside(value):
    table = pa.table({"region": ["N", "S"], "size": ["a", "b"], "payroll": [1.0, value]})
    plan = gn.plan(SCHEMA, ["region", "payroll"], FIRMS)
    with pytest.raises(DataError, match=r"payroll.*numbers from 0 up to 2.52 units of 0.01, got"):
        plan.release(table)
    assert plan.check(table).left_out == 1
    kept = plan.release(table, on_outside="drop")
    assert kept["region"].estimate.sum() == pytest.approx(1, abs=40)  # ± 8 deviations of 4.5


def test_a_release_is_unbiased_and_stored(tmp_path):
    rng = np.random.default_rng(2)
    table = _firms(rng)
    plan = gn.plan(SCHEMA, [("region", "size", "payroll"), ("region",)], FIRMS)
    release = plan.release(table, out=tmp_path / "out")
    again = gn.TableRelease.load(tmp_path / "out")
    assert str(again.plan) == str(plan)
    assert again.plan.privacy == FIRMS
    truth = table.to_pandas().groupby("region")["payroll"].agg(["sum", "mean"]).loc[list("NSEW")]
    for own in (release, again, pickle.loads(pickle.dumps(plan)).release(table)):
        sums, means = own.sums("payroll", given="region"), own.means("payroll", given="region")
        assert np.abs((sums.estimate - truth["sum"]) / sums.standard_deviation).max() < 6
        low, high = means.confidence_interval(1 - 1e-9)
        assert ((low < truth["mean"]) & (truth["mean"] < high)).all()
        assert not means.cut.any()
    np.testing.assert_allclose(again["region"].estimate, release["region"].estimate, rtol=1e-12)
    found = np.array(
        [plan.simulate(table, rng).sums("payroll", given="region").estimate for _ in range(60)]
    )
    z = (found - truth["sum"].to_numpy()) / sums.standard_deviation
    assert np.abs(z.mean(axis=0)).max() < 5 / math.sqrt(60)
    assert 0.7 < z.std() < 1.3  # 240 numbers: ± 0.045


def test_means_of_hardly_any_rows_have_no_upper_end():
    plan = gn.plan(SCHEMA, [("region", "payroll")], FIRMS)
    none = plan.simulate(_firms(np.random.default_rng(0), 1), np.random.default_rng(3))
    means = none.means("payroll", given="region")
    low, high = means.confidence_interval()
    assert (low >= 0).all()
    assert np.isinf(high).any()
    assert (means.estimate[means.counts > 0] >= 0).all()


# What is refused, before data.


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(privacy=gn.zCDP(0.1)), "budget that grows with 'payroll', which has no upper end"),
        (dict(privacy=gn.PerRecord(gn.zCDP(1), {"pay": 1.0})), "a unit in the schema, got 'pay'"),
        (dict(privacy=gn.PerRecord(gn.zCDP(1), {"size": 1.0})), "unit in the schema, got 'size'"),
        (dict(privacy=gn.PerRecord(gn.zCDP(1), {"payroll": 1.001})), "a multiple of its unit 0.01"),
        (dict(privacy=gn.PerRecord(gn.zCDP(1), {"payroll": 1e12})), r"at most 2\^40 of it"),
        (dict(neighbors="replace"), 'neighbors="add-remove" where budgets grow'),
        (dict(weight=gn.Weight("w", 2)), "weight= cannot be combined.*a column of the products"),
        (dict(targets=10.0), "targets= cannot be combined.*plan with a budget"),
        (dict(p=math.inf), "expected p = 2 and no targets where budgets grow with numbers"),
        (dict(over=gn.streams.Ticks(3)), "a stream takes tables of counts, no clipped numbers"),
    ],
    ids=str,
)
def test_what_has_no_proof_is_refused(options, match):
    with pytest.raises(ParameterError, match=match):
        gn.plan(SCHEMA, [("region", "payroll")], **({"privacy": FIRMS} | options))


def test_schemas_refuse_what_a_number_without_an_end_has_not():
    for more, match in (
        (dict(unit=0), "a unit between 1e-9 and 1e9"),
        (dict(unit=0.01, clip=[0, 1]), "either categories or edges, or clip or unit"),
        (dict(unit=0.01, other="none"), "no catch-all of a number with a unit"),
        (dict(unit=0.01, base={"kind": "moments", "degrees": [0, 1, 2]}), "no squares of a number"),
        (dict(unit=0.01, groups={"g": {"a": [[0, 1]]}}), "no groups of a summed number"),
    ):
        with pytest.raises(SchemaError, match=match):
            gn.Attribute("payroll", **more)
    text = "[attributes.payroll]\nunit = 0.01\n"
    assert gn.Schema.loads(text).attributes[0] == PAYROLL
    assert gn.Schema.loads(SCHEMA.to_toml()) == SCHEMA
    with pytest.raises(SchemaError, match=r"expected a number, like 0\.01"):
        gn.Schema.loads('[attributes.payroll]\nunit = "cents"\n')


def test_noise_of_such_tables_serves_no_other_mechanism():
    plan = gn.plan(SCHEMA, [("region", "payroll")], FIRMS)
    with pytest.raises(ParameterError, match="budgets that grow with numbers; hint: plan"):
        gn.GaussianMechanism(plan.noise, gn.zCDP(0.1))
    with pytest.raises(ParameterError, match="tables of counts and sums of every number"):
        optimal_noise(plan.domain, neighbors=AddInProportion(((0, Fraction(1)),)))


def test_without_such_numbers_it_is_zcdp():
    plan, like = (gn.plan(SCHEMA, ["region"], own) for own in (FIRMS, gn.zCDP(0.1)))
    assert plan.noise.neighbors == "add-remove"
    assert plan.standard_deviation("region") == like.standard_deviation("region")


# Further doors.


def _text(page):
    return " ".join(re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8")).split())


def test_pages_say_that_large_rows_are_protected_less(tmp_path):
    plan = gn.plan(SCHEMA, [("region", "payroll")], FIRMS)
    plan.report(tmp_path / "plan.html")
    plan.release(_firms(np.random.default_rng(0))).report(tmp_path / "page.html")
    for name in ("plan.html", "page.html"):
        said = _text(tmp_path / name)
        assert "that one row whose payroll is 0" in said
        assert "a row far above this number has hardly any protection" in said
        assert "(ε, δ)-differential privacy, for a record whose numbers are 0" in said
        # rho of (1 + k²) 0.1 at k = 1, 10 and 100
        for row in (
            "payroll 1,000,000 0.2 ",
            "payroll 10,000,000 10.1 ",
            "payroll 100,000,000 1001",
        ):
            assert row in said


def test_releases_of_one_policy_are_combined(tmp_path):
    table = _firms(np.random.default_rng(3))
    one = gn.plan(SCHEMA, [("region", "payroll")], FIRMS).release(table)
    two = gn.plan(SCHEMA, [("region", "payroll"), "size"], FIRMS).release(table)
    both = gn.combine([one, two])
    own, alone = (of.sums("payroll", given="region") for of in (both, one))
    assert (own.standard_deviation < alone.standard_deviation).all()
    truth = table.to_pandas().groupby("region")["payroll"].sum()[list("NSEW")]
    assert np.abs((own.estimate - truth) / own.standard_deviation).max() < 6
    both.save(tmp_path / "both")
    both.report(tmp_path / "both.html")
    said = _text(tmp_path / "both.html")
    assert "that one row whose payroll is 0" in said
    assert "at δ = 1e-06, for a record whose numbers are 0)" in said
    for name in ("summary.txt", "method.txt"):
        said = (tmp_path / "both" / name).read_text(encoding="utf-8")
        assert re.search(
            "rho = 0.2.*, for a record whose numbers are 0|sum of all budgets, for a record", said
        )
    changes = gn.difference(one, two).sums("payroll", given="region")
    assert np.abs(changes.estimate / changes.standard_deviation).max() < 6
    looser = gn.PerRecord(gn.zCDP(0.1), scale={"payroll": 1e5})
    other = gn.plan(SCHEMA, [("region", "payroll")], looser).release(table)
    for together in (lambda: gn.combine([one, other]), lambda: gn.difference(one, other)):
        with pytest.raises(ParameterError, match="expected one set of scales of budgets, got"):
            together()


def test_streams_say_whose_budget_is_stated(tmp_path):
    plan = gn.plan(SCHEMA, ["region"], FIRMS, over=gn.streams.Ticks(2))
    stream = plan.start(tmp_path / "s")
    stream.tick(_firms(np.random.default_rng(0)), number=1)
    words = "for a record whose numbers are 0"
    record = json.loads((tmp_path / "s" / "stream.json").read_text(encoding="utf-8"))
    assert record["epsilon_delta_of_all_ticks"]["holds"] == words
    summary = (tmp_path / "s" / "ticks" / "0001" / "summary.txt").read_text(encoding="utf-8")
    assert "Tick 1 of 2: 1 table, of its own rows" in summary
    assert f"charged      rho = 0.1, once, for all 2 ticks together, {words}\n" in summary
    assert f"spends rho = 0.1 at most in all 2 ticks together, {words}" in " ".join(
        str(plan).split()
    )
    assert verifier.verified(tmp_path / "s")
    stream.total().report(tmp_path / "page.html")
    assert f"(ε, δ)-differential privacy, {words}" in _text(tmp_path / "page.html")
    alike = gn.plan(SCHEMA, ["region"], gn.zCDP(0.1), over=gn.streams.Ticks(2))
    assert "whose numbers" not in str(alike)


def test_questions_about_such_numbers_are_answered():
    table = _firms(np.random.default_rng(4))
    release = gn.plan(SCHEMA, [("region", "payroll")], FIRMS).release(table)
    means = release.ask("mean of payroll given region")
    np.testing.assert_allclose(means.estimate, release.means("payroll", given="region").estimate)
    assert "of values of any size, without clipping" in str(means)
    half = release.ask("sum of payroll given region=N")
    assert half.estimate == pytest.approx(release.sums("payroll", given="region").estimate[0])
    fit = release.regress("payroll", on=["region"])
    assert "of any size, without clipping, on region" in str(fit)


def test_what_cannot_be_said_of_such_numbers_is_refused():
    release = gn.plan(SCHEMA, [("region", "payroll")], FIRMS).release(
        _firms(np.random.default_rng())
    )
    with pytest.raises(ParameterError, match="to_mbi: expected numbers inside an interval"):
        release.to_mbi()
    with pytest.raises(NotAvailableError, match="no budgets that grow"):
        release.plan.dp_event()
    with pytest.raises(ParameterError, match="a clipped number with squares, got 'payroll'"):
        release.variance("payroll")
    with pytest.raises(ParameterError, match="expected a budget that grows with 'payroll'"):
        gn.budgets(SCHEMA, [("region", "payroll")])


# Faults that a reviewer found.


def test_no_accountant_takes_the_budget_of_small_rows_for_that_of_all():
    rng = np.random.default_rng(3)
    table = _firms(rng)
    own = [gn.plan(SCHEMA, [("region", "payroll")], FIRMS).release(table) for _ in range(2)]
    for release in (*own, gn.combine(own)):
        with pytest.raises(NotAvailableError, match="grow with numbers"):
            release.dp_event()


def test_bounds_of_small_rows_are_not_those_of_all():
    plan = gn.plan(SCHEMA, [("region", "payroll")], FIRMS)
    with pytest.raises(ParameterError, match="hint: plan"):
        gn.lower_bound(plan.domain, FIRMS, neighbors="add-remove")
    assert gn.compare(plan.domain, FIRMS, neighbors="add-remove").bound is None
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)), neighbors="replace")
    assert gn.GaussianMechanism(noise, FIRMS, n=10).bound is None
    cells = gn.Marginals([4, 6], [(0,)])  # of rows without the number: the bound of zCDP
    found = gn.lower_bound(cells, FIRMS, neighbors="add-remove")
    assert found.error == gn.lower_bound(cells, gn.zCDP(0.1), neighbors="add-remove").error


@pytest.mark.parametrize("rho", [1e-6, 0.1, 3.0, 200.0])
def test_a_bound_is_below_what_is_reached_at_every_budget(rho):
    plan = gn.plan(SCHEMA, [("region", "payroll")], gn.PerRecord(gn.zCDP(rho), {"payroll": 1e6}))
    assert 0 < plan.bound.error <= plan.error


def test_numbers_with_equal_scales_stay_apart():
    sales = gn.Attribute("sales", unit=0.01)
    own = gn.PerRecord(gn.zCDP(0.1), {"payroll": 1e6, "sales": 1e6})
    schema = gn.Schema([REGION, PAYROLL, sales])
    plan = gn.plan(schema, [("region", "payroll"), ("region", "sales")], own)
    table = _firms(np.random.default_rng(4))
    table = table.append_column("sales", table["payroll"])
    release = plan.release(table)
    for name in ("payroll", "sales"):
        exact = sum(map(Fraction, map(str, table[name].to_pylist())))
        found = release.sums(name)
        assert abs(found.estimate - float(exact)) < 8 * found.standard_deviation


def test_a_request_holds_its_scales():
    plans = [
        gn.plan(SCHEMA, [("region", "payroll")], gn.PerRecord(gn.zCDP(0.1), {"payroll": scale}))
        for scale in (1e6, 2e6)
    ]
    assert len({plan.request_sha256 for plan in plans}) == 2


def test_a_budget_of_less_than_nothing_is_refused():
    with pytest.raises(ParameterError, match="numbers >= 0"):
        FIRMS.of(payroll=-5.0)
