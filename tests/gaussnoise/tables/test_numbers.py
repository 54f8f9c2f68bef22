"""Tests of sums and means of clipped numbers, and of weighted counts.

References: exact rational numbers, brute force over records, noise solved for the matrix of
counts and sums, OpenDP's own map.
"""

import itertools
import json
import math

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import gaussnoise as gn
from gaussnoise.errors import DataError, ParameterError, SchemaError
from gaussnoise.noise.solve import solved
from gaussnoise.solvers.tables.residuals import part_of
from gaussnoise.tables.counting import numbers as _numbers
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.persons import PersonLimit
from gaussnoise.tables.reading import columns as _columns
from gaussnoise.tables.reading.steps import steps_of
from gaussnoise.tables.reading.values import Form, finder
from gaussnoise.tables.release.stream import measured_parts

RELATIONS = pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
SEX = gn.Attribute("sex", ["F", "M"])
AGE = gn.Attribute("age", edges=[0, 18, 65, 120])
PAY = gn.Attribute("pay", clip=[0, 100])
SQUARES = {"kind": "moments", "degrees": [0, 1, 2]}
HOURS = gn.Attribute("hours", clip=[-2, 8], other="none", base=SQUARES)
TABLES = [("sex", "pay"), ("hours",), ("age", "sex")]


def people(number, seed=0):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], number),
            "age": rng.integers(0, 100, number),
            "pay": rng.lognormal(3, 1, number),
            "hours": pa.array(rng.normal(4, 4, number), mask=rng.random(number) < 0.2),
            "w": rng.exponential(1.0, number),
        }
    )


def clipped(table, name, low, high):
    return np.clip(table[name].to_numpy(zero_copy_only=False), low, high)


def integers(plan, table, limit=None):
    """Return the exact integers that answer the query on a table's records, as one vector."""
    used = sorted({i for S in plan.tables.subsets for i in S})
    planned = {tuple(used.index(i) for i in S): S for S in plan.tables.subsets}
    attributes = [plan.schema.attributes[i] for i in used]
    counted = count_marginals(
        table, attributes, list(planned), "drop", limit, plan.weight, plan.unit
    )
    counts = {planned[S]: found for S, found in counted}
    seen, answers = set(), []
    for S in plan.tables.subsets:
        for T in measured_parts(S, plan.query):
            if T not in seen:
                seen.add(T)
                answers += plan.query.answer(T, part_of(counts[S], S, T)).tolist()
    return np.array(answers, dtype=object)


def records(number=14):
    """Return rows with every kind of number, at the ends of their intervals and outside."""
    rng = np.random.default_rng(4)
    odd = [0.0, 100.0, -5.0, 1e300, math.inf, -math.inf, 50.0, 1 / 3, 99.99999999]
    rows = []
    for k in range(number):
        pay = odd[k] if k < len(odd) else float(rng.normal(50, 60))
        hours = [None, math.nan, 8.0, -2.0, 3.0][k % 5]
        sex, age = "FM"[k % 2], int(rng.integers(0, 120))
        rows.append({"sex": sex, "age": age, "pay": pay, "hours": hours, "w": abs(pay) / 50})
    return rows


def largest_change(plan, rows):
    """Return the largest change over all neighbours that differ in these rows, in integers."""
    types = {"sex": pa.string(), "age": pa.int64()}
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in rows[0]])
    answers = [integers(plan, pa.Table.from_pylist([row], schema=schema)) for row in rows]
    if plan.neighbors == "add-remove":
        return max(int((a * a).sum()) for a in answers)
    return max(int(((a - b) * (a - b)).sum()) for a, b in itertools.combinations(answers, 2))


@RELATIONS
@pytest.mark.parametrize("workload", [[("sex", "pay")], TABLES], ids=["one", "several"])
def test_no_record_changes_more_than_is_planned_for(neighbors, workload):
    schema = gn.Schema([SEX, AGE, PAY, HOURS])
    plan = gn.plan(schema, workload, gn.zCDP(0.3), neighbors=neighbors)
    squared = plan.query.query.sensitivity_squared
    change = largest_change(plan, records())
    assert change <= squared
    # some record at an end of its interval changes that much, where bounds are attained
    assert change >= (1 if workload == [("sex", "pay")] else 0.6) * squared


def test_no_weighted_record_changes_more_than_is_planned_for():
    schema = gn.Schema([SEX, AGE, PAY])
    plan = gn.plan(schema, TABLES[::2], gn.zCDP(0.3), weight=gn.Weight("w", 1.5))
    squared = plan.query.query.sensitivity_squared
    assert largest_change(plan, records()) == squared


@pytest.mark.parametrize("engine", [pa.table, lambda columns: duckdb.from_arrow(pa.table(columns))])
def test_no_person_of_weighted_rows_changes_more_than_is_planned_for(engine):
    """All rows of a person are alike at the ends of every interval, which is the worst case."""
    schema = gn.Schema([SEX, AGE, PAY])
    plan = gn.plan(
        schema,
        TABLES[::2],
        gn.zCDP(0.3),
        weight=gn.Weight("w", 1.5),
        rows_per_person=3,
        person="who",
    )
    rng, limit = np.random.default_rng(2), PersonLimit("who", 3, b"0" * 16)
    others = {
        "who": list("aabbbb"),
        "sex": list("FMFMFM"),
        "age": rng.integers(0, 120, 6).tolist(),
        "pay": rng.normal(50, 60, 6).tolist(),
        "w": rng.exponential(1.0, 6).tolist(),
    }
    hers = {"who": ["c"] * 9, "sex": ["F"] * 9, "age": [3] * 9, "pay": [1e9] * 9, "w": [7.0] * 9}
    both = {name: others[name] + hers[name] for name in others}

    def change(limit):
        more = integers(plan, engine(both), limit) - integers(plan, engine(others), limit)
        return int((more * more).sum())

    bound = 9 * plan.query.query.sensitivity_squared
    assert change(limit) == bound
    assert change(None) > bound  # negative control


def test_a_number_that_is_not_clipped_would_change_more(monkeypatch):
    """This is the negative control."""

    def unclipped(numbers, attribute):
        low, high = attribute.clip
        t = np.clip(np.nan_to_num(numbers), -1e6, 1e6) / (high - low)
        return 1 + np.abs(np.rint(t * 2**20)).astype(np.int64)

    schema = gn.Schema([SEX, PAY])
    plan = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.3))

    monkeypatch.setattr(_columns, "steps_of", unclipped)
    monkeypatch.setattr(_columns, "width_of", lambda _: _columns.nw.Int64)
    monkeypatch.setitem(_columns.NUMPY, _columns.nw.Int64, np.int64)
    assert largest_change(plan, records()) > 100 * plan.query.query.sensitivity_squared


def test_steps_stay_in_range_for_any_rounding():
    rng = np.random.default_rng(5)
    ends = [(0.0, 5e-324), (1e99, 1e100), (-1e100, 1e100), (0.1, 0.1 + 2e-17 + 1e-16), (-3, 1e-9)]
    for low, high in ends:
        attribute = gn.Attribute("x", clip=[low, high])
        inside = low + rng.random(1000) * (high - low)
        numbers = np.concatenate([inside, [low, high, -math.inf, math.inf, math.nan]])
        steps = steps_of(numbers, attribute)
        assert steps.min() == 0
        assert (steps[:-1] > 0).all()
        assert steps.max() == 1 + _numbers.STEPS
        assert steps[-5:].tolist() == [1, 1 + _numbers.STEPS, 1, 1 + _numbers.STEPS, 0]
        assert list(map(finder(attribute, Form.TYPED), numbers)) == steps.tolist()


def test_virtual_cells_get_no_negative_part():
    rng = np.random.default_rng(6)
    steps = np.concatenate([rng.integers(0, 2**20 + 1, 5000), [0, 1, 2**20 - 1, 2**20]])
    codes = [steps + 1]
    squared = gn.Attribute("x", clip=[0, 1], base=SQUARES)
    _, sums = _numbers.keys_and_sums(codes.__getitem__, [squared], None)
    cells = _numbers.spread_over(2**20, sums["a0"], sums["q0"])
    assert all((cell >= 0).all() for cell in cells)
    assert (sum(cells) == 2**20).all()
    weights = rng.integers(0, 2**20 + 1, len(steps))
    codes.append(weights + 1)
    number, weight = gn.Attribute("x", clip=[0, 1]), gn.Weight("w", 1)
    _, sums = _numbers.keys_and_sums(codes.__getitem__, [number], weight)
    cells = _numbers.spread_over(sums["w"], sums["a0"], None)
    assert all((cell >= 0).all() for cell in cells)
    assert (sum(cells) == weights).all()


# Optimal noise, and what it is compared with.


@RELATIONS
def test_the_plan_has_the_optimum_of_the_matrix_of_counts_and_sums(neighbors):
    schema = gn.Schema([SEX, AGE, gn.Attribute("pay", clip=[20, 80])])
    plan = gn.plan(schema, TABLES[::2], gn.zCDP(0.3), neighbors=neighbors)
    base = gn.Base([[1, 1], [20 / 80, 1]])
    domain = gn.Products([gn.Identity(2), gn.Identity(3), base], [(0, 2), (0, 1)])
    best = solved(domain, 2, neighbors, 1e-6)
    assert plan.noise.gamma == pytest.approx(best.gamma, rel=1e-6)
    assert plan.noise.gamma_lower == pytest.approx(best.gamma_lower, rel=1e-6)
    if neighbors == "add-remove":
        assert plan.noise.gap < 1e-6
        points = gn.optimal_noise(domain.to_finite_set(), 2, neighbors=neighbors, tol=1e-4)
        assert plan.noise.gamma == pytest.approx(points.gamma, rel=2e-4)


@pytest.mark.parametrize("number", [PAY, HOURS])
def test_noise_for_numbers_is_stored(tmp_path, number):
    noise = gn.plan(gn.Schema([SEX, number]), [("sex", number.name)], gn.zCDP(0.3)).noise
    noise.save(tmp_path / "noise.npz")
    again = gn.OptimalNoise.load(tmp_path / "noise.npz")
    assert again.covariance.domain.bases == noise.covariance.domain.bases
    assert again.gamma == noise.gamma


def test_bounds_with_squares_are_of_records_alone():
    """Virtual cells reach further than records, so their bounds must not be claimed for records.

    Reference: noise solved for many points of the curve of moments.
    """
    attribute = gn.Attribute("x", clip=[-1, 1], base=SQUARES)
    plan = gn.plan(gn.Schema([attribute]), ["x"], gn.zCDP(0.5))
    t = np.linspace(-1, 1, 41)
    curve = gn.optimal_noise(gn.FiniteSet(np.stack([t**0, t, t**2], 1)), 2, neighbors="add-remove")
    assert curve.gamma <= plan.bracket[1] * (1 + 1e-6) < 1.001 * curve.gamma
    assert plan.bound.gamma_lower <= curve.gamma_lower * (1 + 1e-6)


def test_sums_are_no_worse_than_opendp_gives_for_the_same_budget():
    """A sum of numbers clipped to [low, high] has sensitivity max(|low|, |high|): OpenDP's map."""
    from opendp.domains import atom_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import absolute_distance
    from opendp.mod import enable_features

    enable_features("contrib")

    def opendp_deviation(sensitivity, rho):
        space = atom_domain(T=float, nan=False), absolute_distance(T=float)
        scale = sensitivity / math.sqrt(2 * rho)
        assert make_gaussian(*space, scale=scale).map(sensitivity) == pytest.approx(rho, rel=1e-9)
        return scale

    schema = gn.Schema([PAY])
    alone = gn.plan(schema, [{"pay": {"kind": "moments", "degrees": [1]}}], gn.zCDP(0.3))
    asked = {"pay": {"kind": "moments", "degrees": [1]}}
    assert alone.answer_deviations(asked)[0] <= opendp_deviation(100, 0.3) * (1 + 1e-5)
    # with the count beside it: two of OpenDP's answers split the budget
    both = gn.plan(schema, ["pay"], gn.zCDP(0.3))
    count, total = both.answer_deviations("pay")
    split = opendp_deviation(1, 0.15), opendp_deviation(100, 0.15)
    assert count <= split[0] * (1 + 1e-6)
    assert total <= split[1] * (1 + 1e-6)
    assert count**2 + (total / 100) ** 2 < 0.8 * (split[0] ** 2 + (split[1] / 100) ** 2)


# Answers.


@RELATIONS
def test_with_much_budget_answers_are_those_of_clipped_values(neighbors):
    schema, table = gn.Schema([SEX, AGE, PAY, HOURS]), people(500)
    release = gn.plan(schema, TABLES, gn.zCDP(1e7), neighbors=neighbors).release(table)
    pay, women = clipped(table, "pay", 0, 100), np.array(table["sex"]) == "F"
    sums = [pay[women].sum(), pay[~women].sum()]
    np.testing.assert_allclose(release.sums("pay", given="sex").estimate, sums, atol=0.5)
    np.testing.assert_allclose(release.sums("pay").estimate, pay.sum(), atol=0.5)
    means = [pay[women].mean(), pay[~women].mean()]
    np.testing.assert_allclose(release.means("pay", given="sex").estimate, means, atol=0.01)
    hours = clipped(table, "hours", -2, 8)
    known = hours[~np.isnan(hours)]
    expected = [len(known), known.sum(), (known**2).sum(), len(hours) - len(known)]
    answers = release.answers("hours")
    assert answers.labels == (("count", "sum", "sum of squares", "count of none"),)
    np.testing.assert_allclose(answers.estimate, expected, atol=1)
    np.testing.assert_allclose(release.means("hours").estimate, known.mean(), atol=0.01)
    np.testing.assert_allclose(release["sex"].estimate, [women.sum(), (~women).sum()], atol=0.05)
    assert release["sex", "age"].estimate.sum() == pytest.approx(500, abs=0.1)
    # the planned deviation is the released one
    rows = release.answers({"sex": "identity", "pay": "sum"})
    planned = release.plan.answer_deviations({"sex": "identity", "pay": "sum"})
    np.testing.assert_allclose(rows.standard_deviation, planned, rtol=1e-5)
    deviations = release.sums("pay", given="sex").standard_deviation
    np.testing.assert_allclose(deviations, planned[:, 1], rtol=1e-5)
    assert np.array_equal(release.answers(("pay", "sex")).estimate, rows.estimate.T)


def simulations(plan, table, number, seed):
    rng = np.random.default_rng(seed)
    return [plan.simulate(table, rng) for _ in range(number)]


@RELATIONS
@pytest.mark.usefixtures("counted_once")
def test_sums_are_unbiased_and_intervals_cover_at_their_level(neighbors):
    schema, table, number = (
        gn.Schema([SEX, AGE, gn.Attribute("pay", clip=[0, 40])]),
        people(300),
        400,
    )
    plan = gn.plan(schema, TABLES[::2], gn.zCDP(0.2), neighbors=neighbors)
    pay, women = clipped(table, "pay", 0, 40), np.array(table["sex"]) == "F"
    truth = np.array([pay[women].sum(), pay[~women].sum()])
    means = np.array([pay[women].mean(), pay[~women].mean()])
    found = simulations(plan, table, number, 7)
    sums = [release.sums("pay", given="sex") for release in found]
    z = np.array([(s.estimate - truth) / s.standard_deviation for s in sums])
    assert np.abs(z.mean(axis=0)).max() < 5 / math.sqrt(number)
    assert np.abs((z**2).mean(axis=0) - 1).max() < 5 * math.sqrt(2 / number)
    covered = []
    for release in found:
        low, high = release.means("pay", given="sex").confidence_interval(0.8)
        covered.append((low <= means) & (means <= high))
    allowed = 5 * math.sqrt(0.8 * 0.2 / number)
    assert np.abs(np.mean(covered, axis=0) - 0.8).max() < allowed
    # negative control: intervals are about clipped values, not about the original ones
    raw = table["pay"].to_numpy()[women].mean()
    within = [
        r.means("pay", given="sex").confidence_interval(0.8).high[0] >= raw for r in found[:100]
    ]
    assert np.mean(within) < 0.5
    # an exact number of rows adds no noise to the mean
    mean = found[0].means("pay")
    assert (mean.count_variance == 0) == (neighbors == "replace")
    if neighbors == "replace":
        assert mean.counts == 300
        assert mean.standard_deviation * 300 == pytest.approx(
            float(found[0].sums("pay").standard_deviation)
        )


def test_means_of_groups_too_small_to_say_anything_are_anywhere_in_the_interval():
    schema = gn.Schema([SEX, gn.Attribute("pay", clip=[10, 20])])
    table = pa.table({"sex": ["F"] * 5000, "pay": [14.0] * 5000})
    release = gn.plan(schema, [("sex", "pay")], gn.zCDP(1e-2)).release(table)
    means = release.means("pay", given="sex")
    low, high = means.confidence_interval(0.999999)
    assert (low[1], high[1]) == (10, 20)
    assert 10 < low[0] < 14 < high[0] < 20


def test_means_and_their_intervals_are_within_the_interval_of_clipping():
    clip = (0.1, 0.7)
    schema = gn.Schema([SEX, gn.Attribute("pay", clip=clip)])
    table = pa.table({"sex": ["F"] * 3 + ["M"] * 40, "pay": [0.1] * 3 + [0.9] * 40})
    outside = 0
    for release in simulations(gn.plan(schema, [("sex", "pay")], gn.zCDP(0.1)), table, 50, 3):
        means = release.means("pay", given="sex")
        ratio = release.sums("pay", given="sex").estimate / means.counts
        known = means.counts > 0
        np.testing.assert_allclose(
            means.estimate[known], np.clip(ratio[known], *clip), rtol=1e-12, atol=1e-12
        )
        outside += (np.clip(ratio[known], *clip) != ratio[known]).sum()
        assert np.isnan(means.estimate[~known]).all()
        low, high = means.confidence_interval()
        assert ((clip[0] <= low) & (low <= high) & (high <= clip[1])).all()
        assert ((low <= means.estimate) & (means.estimate <= high))[known].all()
    assert outside > 20


def test_weighted_counts_and_means(tmp_path):
    schema, table = gn.Schema([SEX, AGE, PAY]), people(400)
    weight = gn.Weight("w", 2)
    plan = gn.plan(schema, TABLES[::2], gn.zCDP(1e7), weight=weight)
    release = plan.release(table, out=tmp_path / "r")
    w, pay = clipped(table, "w", 0, 2), clipped(table, "pay", 0, 100)
    women = np.array(table["sex"]) == "F"
    np.testing.assert_allclose(release["sex"].estimate[0], w[women].sum(), atol=0.1)
    np.testing.assert_allclose(release.sums("pay").estimate, (w * pay).sum(), atol=1)
    np.testing.assert_allclose(release.means("pay").estimate, np.average(pay, weights=w), atol=0.01)
    plain = gn.plan(schema, TABLES[::2], gn.zCDP(1e7))
    assert plan.standard_deviation("sex") == pytest.approx(2 * plain.standard_deviation("sex"))
    assert plan.error == pytest.approx(2 * plain.error)
    assert plan.bound.error == pytest.approx(2 * plain.bound.error)
    ours, theirs = (p.release(table)["sex"].standard_deviation for p in (plan, plain))
    np.testing.assert_allclose(ours, 2 * theirs, rtol=1e-5)
    assert "weighted" in str(plan)
    assert "weighted" in (tmp_path / "r" / "summary.txt").read_text()
    again = gn.TableRelease.load(tmp_path / "r")
    assert again.plan.weight == weight
    assert np.array_equal(again["sex", "age"].estimate, release["sex", "age"].estimate)
    assert plan.request_sha256 != plain.request_sha256
    other = gn.plan(schema, TABLES[::2], gn.zCDP(1e7), weight=gn.Weight("w", 3))
    assert other.request_sha256 != plan.request_sha256
    total = gn.plan(schema, [()], gn.zCDP(1e7), weight=weight).release(table)
    np.testing.assert_allclose(total[()].estimate, w.sum(), atol=0.1)
    target = gn.plan(schema, ["sex"], targets=20.0, weight=weight)
    assert target.half_width("sex") == pytest.approx(20)


def test_files_show_counts_sums_and_means(tmp_path):
    schema, table = gn.Schema([SEX, AGE, PAY, HOURS]), people(300)
    plan = gn.plan(schema, TABLES, gn.zCDP(0.5))
    release = plan.release(table, out=tmp_path / "r")

    record = json.loads((tmp_path / "r" / "release.json").read_text())
    rows = pyarrow.csv.read_csv(tmp_path / "r" / record["workload"][0]["file"]).to_pylist()
    assert [(row["sex"], row["pay"]) for row in rows] == [
        (sex, what) for sex in "FM" for what in ("count", "sum", "mean")
    ]
    sums, means = release.sums("pay", given="sex"), release.means("pay", given="sex")
    low, high = means.confidence_interval()
    for k in range(2):
        assert rows[3 * k + 1]["estimate"] == sums.estimate[k]
        assert rows[3 * k + 2]["estimate"] == means.estimate[k]
        assert (rows[3 * k + 2]["low"], rows[3 * k + 2]["high"]) == (low[k], high[k])
    rows = pyarrow.csv.read_csv(tmp_path / "r" / record["workload"][1]["file"]).to_pylist()
    asked = ["count", "sum", "sum of squares", "count of none", "mean"]
    assert [row["hours"] for row in rows] == asked
    assert record["noise"]["unit"]["units_of_a_row"] == 2**20
    assert (tmp_path / "r" / "release.png").exists()
    summary = (tmp_path / "r" / "summary.txt").read_text()
    assert "values clipped to [0, 100]" in summary
    again = gn.TableRelease.load(tmp_path / "r")
    assert np.array_equal(again.sums("pay").estimate, release.sums("pay").estimate)
    assert "mean of pay over rows, of values clipped to [0, 100] given sex" in str(means)


def test_plans_say_how_well_sums_are_known():
    plan = gn.plan(gn.Schema([SEX, AGE, PAY]), TABLES[::2], gn.zCDP(0.3))
    deviation = plan.answer_deviations(("sex", "pay"))[0, 1]
    assert f"sum of pay given sex: sd {deviation:.4g}, 95 % ±" in str(plan)


# Schemas, and refusals


def test_schemas_of_numbers_are_read_back():
    schema = gn.Schema([SEX, PAY, HOURS, gn.Attribute("x", clip=(0.5, 2), base=SQUARES)])
    text = schema.to_toml()
    assert "clip = [0, 100]" in text
    assert gn.Schema.loads(text) == schema
    short = gn.Schema.loads("[attributes.pay]\nclip = [0, 100]\n")
    assert short.attributes[0] == PAY
    assert short.sizes == (2,)
    assert PAY.labels == ("weight at 0", "weight at 100")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"clip": [1]}, r"clip = \[low, high\]"),
        ({"clip": "ab"}, r"clip = \[low, high\]"),
        ({"clip": [0, "1"]}, r"clip = \[low, high\]"),
        ({"clip": [1, 1]}, "low < high"),
        ({"clip": [0, math.inf]}, "low < high"),
        ({"clip": [math.nan, 1]}, "low < high"),
        ({"clip": [0, 1], "edges": [0, 1]}, "either categories or edges"),
        ({"clip": [0, 1], "base": "prefix"}, 'expected "sum"'),
        ({"clip": [0, 1], "base": {"kind": "moments", "degrees": [3]}}, 'expected "sum"'),
        *(
            ({"clip": [0, 1], "base": {**SQUARES, "about": about}}, "tell categories apart, by")
            for about in (1e6, -1e300)
        ),
        ({"clip": [0, 1], "base": gn.Clipped(0, 2)}, "the ends and the unit"),
        ({"clip": [0, 1], "base": [[1, 1]]}, 'expected "sum"'),
    ],
)
def test_numbers_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(SchemaError, match=message):
        gn.Attribute("x", **arguments)


def test_schema_files_say_where_a_clip_is_wrong():
    with pytest.raises(SchemaError, match=r"^s:2: attributes.x.clip: expected \[low, high\]"):
        gn.Schema.loads('[attributes.x]\nclip = ["a", 2]\n', "s")


def test_what_is_not_counted_is_refused_before_any_data():
    schema = gn.Schema([SEX, PAY, HOURS])
    privacy, weight = gn.zCDP(0.1), gn.Weight("w", 2)
    with pytest.raises(ParameterError, match="squares are declared with the attribute"):
        gn.plan(schema, [{"pay": SQUARES}], privacy)
    with pytest.raises(ParameterError, match=r"a stream takes tables of counts.*in place of clip"):
        gn.plan(schema, ["pay"], privacy, over=gn.streams.Ticks(4))
    with pytest.raises(ParameterError, match="a stream takes tables of counts"):
        gn.plan(gn.Schema([SEX]), ["sex"], privacy, over=gn.streams.Ticks(4), weight=weight)
    with pytest.raises(ParameterError, match='expected neighbors="add-remove"'):
        gn.plan(schema, ["sex"], privacy, neighbors="replace", weight=weight)
    with pytest.raises(ParameterError, match="that is no attribute"):
        gn.plan(schema, ["sex"], privacy, weight=gn.Weight("pay", 2))
    with pytest.raises(ParameterError, match="no squares with weight="):
        gn.plan(schema, ["sex"], privacy, weight=weight)
    with pytest.raises(ParameterError, match="expected weight=Weight"):
        gn.plan(schema, ["sex"], privacy, weight="w")
    for arguments in (("w", 0), ("w", math.nan), ("", 1), ("w", True), (3, 1)):
        with pytest.raises(ParameterError, match="Weight: expected"):
            gn.Weight(*arguments)
    # a stream of counts alone is unchanged by other attributes of the schema
    gn.plan(schema, ["sex"], privacy, over=gn.streams.Ticks(4))


def test_questions_about_categories_are_refused_for_numbers():
    schema = gn.Schema([SEX, PAY])
    release = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.1)).release(people(50))
    questions = [
        lambda: release.cdf("pay"),
        lambda: release.quantiles("pay", [0.5]),
        lambda: release.proportions(("sex", "pay"), given="sex"),
        lambda: release.sums("pay", given="pay"),
    ]
    for question in questions:
        with pytest.raises(ParameterError, match="got the clipped number 'pay'"):
            question()
    with pytest.raises(ParameterError, match="expected a clipped number, got 'sex'"):
        release.sums("sex")
    with pytest.raises(ParameterError, match="no attribute"):
        release.means("pya")
    with pytest.raises(ParameterError, match="expected the name"):
        release.means(("pay",))


def test_refusals_show_no_values():
    schema = gn.Schema([PAY])
    plan = gn.plan(schema, ["pay"], gn.zCDP(0.1))
    for column in ([7391.0, None], ["7391", "x"]):
        with pytest.raises(DataError, match="column 'pay': expected") as caught:
            plan.release(pa.table({"pay": column}))
        assert "7391" not in str(caught.value)


RICH = gn.Attribute("age", edges=range(0, 101, 4), base="prefix")


@pytest.mark.parametrize("rho", [1e-8, 1e-3, 1e6])
@pytest.mark.parametrize("asked", [("sex", "pay"), ("age", "pay"), ("sex", "hours")])
def test_rows_have_fewer_parts_beside_larger_noise(rho, asked):
    """Scales stay within OpenDP's integers for any small budget."""
    plan = gn.plan(gn.Schema([SEX, PAY, HOURS, RICH]), [asked], gn.zCDP(rho))
    assert plan.query.query.scale <= 2.0**54
    assert plan.rho_charged <= rho
    assert 2**10 <= plan.unit <= 2**20
    # where squares are summed, parts stay small: a row may be some of them off its curve
    assert plan.unit < 2**20 or rho > 1e-8 or asked != ("age", "pay")
    assert plan.unit == 2**20 or rho < 1e6
    planned = plan.answer_deviations(asked)
    simulated = plan.simulate(people(5), np.random.default_rng(0))
    drawn = simulated.answers(asked).standard_deviation
    np.testing.assert_allclose(drawn, planned, rtol=1e-3)
    if asked == ("sex", "pay"):
        change, squared = largest_change(plan, records()), plan.query.query.sensitivity_squared
        assert change == squared


def test_the_shell_knows_numbers_and_weights(tmp_path, capsys):
    from gaussnoise.cli.app import run

    schema = tmp_path / "s.toml"
    schema.write_text(gn.Schema([SEX, PAY]).to_toml(), encoding="utf-8")
    pyarrow.csv.write_csv(people(200), tmp_path / "t.csv")
    asked = ["--schema", str(schema), "-m", "pay,sex", "-m", "sex", "--rho", "1e7"]
    out = str(tmp_path / "r")
    assert run(["plan", *asked, "--weight", "w:2"]) == 0
    assert "weighted by 'w', clipped to [0, 2]" in capsys.readouterr().out
    assert run(["release", str(tmp_path / "t.csv"), *asked, "--weight", "w:2", "-o", out]) == 0
    release = gn.TableRelease.load(tmp_path / "r")
    w, pay = clipped(people(200), "w", 0, 2), clipped(people(200), "pay", 0, 100)
    assert float(release.sums("pay").estimate) == pytest.approx((w * pay).sum(), abs=1)
    assert run(["plan", *asked, "--weight", "w"]) == 1
    assert "expected COLUMN:MOST" in capsys.readouterr().err
