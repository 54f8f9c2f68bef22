"""Every door of a release that measures an attribute by other contrasts in other sets.

References: linear maps and lengths in exact integers, written out here from the record alone.
"""

import itertools
import json
import math
import pickle
from dataclasses import replace
from functools import cache, reduce

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.errors import GaussNoiseError, NotAvailableError
from gaussnoise.solvers.tables.strategies import SolvedStrategy
from gaussnoise.streams import Stream, Ticks
from gaussnoise.tables.release.record import contrasts_of, measurements_of
from gaussnoise.tables.spark.layout import Layout

COUNTIES = [f"c{k}" for k in range(6)]
REGIONS = {"N": COUNTIES[:1], "S": COUNTIES[1:3], "W": COUNTIES[3:]}
COUNTY = gn.Attribute("county", COUNTIES, groups={"region": REGIONS})
AGE, SEX = gn.Attribute("age", edges=[0, 18, 40, 65], other="?"), gn.Attribute("sex", ["F", "M"])
SCHEMA = gn.Schema([SEX, COUNTY, AGE])
ASKED = [
    {"county": "identity"},
    {"age": "prefix", "sex": "identity"},
    {"county": "region", "age": [[1, 1, 0, 0], [0, 0, 1, 1]]},
    {"county": "region", "age": "identity", "sex": "identity"},
]


@cache
def planned(schema=SCHEMA, **options):
    return gn.plan(schema, ASKED, gn.zCDP(0.5), **options)


def people(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    table = {"county": rng.choice(COUNTIES, rows), "sex": rng.choice(["F", "M"], rows)}
    return pa.table(table | {"age": rng.uniform(0, 80, rows)})


def recorded(plan):
    """Contrasts {T: {attribute: C}} and multipliers {T: s_T}, from the record of a plan alone."""
    names, sizes = plan.schema.names, dict(zip(plan.schema.names, plan.schema.sizes, strict=True))
    noise = json.loads(json.dumps(contrasts_of(plan)))
    own = {name: as_matrix(rows) for name, rows in noise["contrasts"].items()}
    in_sets = {
        (tuple(T), entry["attribute"]): as_matrix(entry["contrasts"])
        for entry in noise["contrasts_in_sets"]
        for T in entry["sets"]
    }
    measured = measurements_of(names, plan.query)
    multipliers = {tuple(one["attributes"]): int(one["multiplier"]) for one in measured}
    of_counts = {name: n * np.eye(n, dtype=int) - 1 for name, n in sizes.items()}
    of_counts |= {name: np.array([[1, -1]]) for name, n in sizes.items() if n == 2}
    contrasts = {
        T: {i: in_sets.pop((T, i), own.get(i, of_counts[i])) for i in T} for T in multipliers
    }
    assert not in_sets  # no other sets are listed
    return contrasts, multipliers


def as_matrix(rows):
    return np.array([[int(x) for x in row.split()] for row in rows])


def noise_map(plan, asked):
    """The effect of a unit of each noise on all cells of the tables ``asked``, stacked."""
    contrasts, multipliers = recorded(plan)
    sizes, columns = dict(zip(plan.schema.names, plan.schema.sizes, strict=True)), []
    for T, s in multipliers.items():
        parts = []
        for S in asked:
            if not set(T) <= set(S):
                width = math.prod(len(C) for C in contrasts[T].values())
                parts.append(np.zeros((math.prod(sizes[i] for i in S), width)))
                continue
            lifted = [np.full((1, 1), plan.query.query.scale / s)]
            for i in S:
                C = next(own[i] for R, own in contrasts.items() if i in R and (i in T) <= (R == T))
                inverse = np.linalg.pinv(np.vstack([np.ones(sizes[i]), C]))
                lifted.append(inverse[:, 1:] if i in T else inverse[:, :1])
            parts.append(reduce(np.kron, lifted))
        columns.append(np.concatenate(parts))
    return np.concatenate(columns, axis=1)


def test_several_attributes_have_several_contrasts():
    assert sum(bool(own.others) for own in planned().strategies) == 2


def test_no_row_changes_the_recorded_integers_more_than_is_recorded():
    contrasts, multipliers = recorded(planned())
    lengths = [
        sum(
            s**2 * math.prod(int((C[:, row[i]] ** 2).sum()) for i, C in contrasts[T].items())
            for T, s in multipliers.items()
        )
        for row in (
            dict(zip(SCHEMA.names, codes, strict=True))
            for codes in itertools.product(*map(range, SCHEMA.sizes))
        )
    ]
    assert 0.9 < max(lengths) / planned().query.query.sensitivity_squared <= 1


def test_noise_is_drawn_with_the_planned_variances():
    expected, drawn = planned().noise.covariance.variances, planned().query.variances
    ratios = [drawn[T] / expected[T] for T in planned().query.multipliers]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-5)


def test_all_deviations_are_those_of_the_linear_map():
    """Sums of cells, answers, and shares of groups of cells within groups of cells."""
    plan = planned()
    release = plan.simulate(people(), np.random.default_rng(1))
    S = ("sex", "county", "age")
    L = noise_map(plan, [S])
    cells = np.eye(len(L)).reshape(-1, *SCHEMA.sizes)

    def deviation(weights):
        return float(np.linalg.norm(weights.ravel() @ L))

    np.testing.assert_allclose(
        release[S].standard_deviation.ravel(), [deviation(w) for w in cells], rtol=1e-6
    )
    w = np.random.default_rng(2).normal(size=SCHEMA.sizes)
    assert release.contrast({S: w}).standard_deviation == pytest.approx(deviation(w), rel=1e-6)
    answers = release.answers({"county": "region", "age": "identity"})
    groups = {"county": "region", "age": "identity"}
    shares = release.proportions({**groups, "sex": "identity"}, groups)
    for r, a, x in itertools.product(range(3), range(4), range(2)):
        whole = np.zeros(SCHEMA.sizes)
        whole[:, [COUNTIES.index(c) for c in list(REGIONS.values())[r]], a] = 1
        part = whole * np.eye(2)[x][:, None, None]
        assert answers.standard_deviation[r, a] == pytest.approx(deviation(whole), rel=1e-6)
        share, variance = shares.share[r, a, x], shares.group_variance[r, a, 0]
        assert shares.variance[r, a, x] == pytest.approx(deviation(part) ** 2, rel=1e-6)
        assert variance == pytest.approx(deviation(whole) ** 2, rel=1e-6)
        expected = (part.ravel() @ L) @ (whole.ravel() @ L)
        assert share * variance == pytest.approx(expected, rel=1e-6)


def test_mbi_gets_noise_of_one_size_in_every_set():
    mbi = pytest.importorskip("mbi")
    plan = planned()
    release = plan.simulate(people(), np.random.default_rng(3))
    problem = release.to_mbi()
    assert {one.clique for one in problem.measurements} == recorded(plan)[1].keys()
    for one in problem.measurements:
        if not one.clique:
            continue
        shape = [SCHEMA.sizes[SCHEMA.names.index(i)] for i in one.clique]
        domain = problem.domain.project(one.clique)
        cells = np.eye(math.prod(shape)).reshape(-1, *shape)
        Q = np.stack([np.ravel(one.query(mbi.Factor(domain, w))) for w in cells], axis=1)
        known = Q @ release[one.clique].estimate.ravel()
        np.testing.assert_allclose(one.noisy_measurement, known, rtol=1e-4, atol=1e-2)
        L = Q @ noise_map(plan, [one.clique]) / one.stddev
        values = np.linalg.eigvalsh(L @ L.T)  # a projection: noise of one size, or none
        np.testing.assert_allclose(values * (values - 1), 0, atol=1e-3)


def left_out(noise):
    del noise["contrasts_in_sets"]


def one_set_less(noise):
    entry = max(noise["contrasts_in_sets"], key=lambda entry: len(entry["sets"]))
    del entry["sets"][0]


def listed_twice(noise):
    noise["contrasts_in_sets"].append(noise["contrasts_in_sets"][0])


def another_entry(noise):
    first, *rest = noise["contrasts_in_sets"][0]["contrasts"][0].split()
    noise["contrasts_in_sets"][0]["contrasts"][0] = " ".join([str(int(first) + 1), *rest])


@pytest.mark.parametrize("change", [left_out, one_set_less, listed_twice, another_entry])
def test_changed_records_are_refused(tmp_path, change):
    plan = planned()
    plan.release(people()).save(tmp_path / "out")
    path = tmp_path / "out" / "release.json"
    record = json.loads(path.read_text())
    change(record["noise"])
    path.write_text(json.dumps(record))
    for plans in ((), (plan,)):
        with pytest.raises(GaussNoiseError):
            gn.TableRelease.load(tmp_path / "out", *plans)


def test_pickled_plans_measure_the_same():
    again = pickle.loads(pickle.dumps(planned()))
    assert contrasts_of(again) == contrasts_of(planned())
    assert again.query.query.sensitivity_squared == planned().query.query.sensitivity_squared


def test_layouts_that_differ_in_one_set_are_told_apart():
    layout = Layout.of(planned())
    strategies = list(layout.query.strategies)
    at = next(i for i, own in enumerate(strategies) if own.others)
    T, own = next(iter(strategies[at].others.items()))
    others = {**strategies[at].others, T: SolvedStrategy(2 * own.contrasts)}
    strategies[at] = SolvedStrategy(strategies[at].contrasts, by_set=others)
    other = replace(layout, query=replace(layout.query, strategies=tuple(strategies)))
    assert other.sha256 != layout.sha256
    assert Layout.of(planned()).sha256 == layout.sha256


def test_sets_of_attributes_are_the_same_in_a_schema_of_another_order():
    """Combined with a release of other attributes, first or last: attributes are renumbered."""
    rows, rng = people(), np.random.default_rng(4)
    two = [planned().simulate(rows, rng) for _ in range(2)]
    kind = gn.plan(gn.Schema([gn.Attribute("kind", ["a", "b"])]), ["kind"], gn.zCDP(0.5))
    other = kind.simulate(pa.table({"kind": ["a", "b"] * 200}), rng)
    first, last = gn.combine([other, *two]), gn.combine([*two, other])
    assert first.plan.schema.names == ("kind", *last.plan.schema.names[:-1])
    assert first.plan.agreement.p_value > 1e-4
    for names in two[0]:
        np.testing.assert_allclose(first[names].estimate, last[names].estimate, rtol=1e-9)
        deviations = (one[names].standard_deviation for one in (first, last, two[0]))
        found, expected, most = map(np.asarray, deviations)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert (found < most / math.sqrt(2) * (1 + 1e-9)).all()


def test_releases_of_which_one_has_other_contrasts_in_a_set_are_not_combined():
    release = planned().simulate(people(), np.random.default_rng(4))
    strategies = list(release.query.strategies)
    at = next(i for i, own in enumerate(strategies) if own.others)
    changed = {T: SolvedStrategy(2 * own.contrasts) for T, own in strategies[at].others.items()}
    for others in ({}, changed):
        strategies[at] = SolvedStrategy(strategies[at].contrasts, by_set=others)
        other = planned().simulate(people(), np.random.default_rng(5))
        other = replace(other, query=replace(other.query, strategies=tuple(strategies)))
        with pytest.raises(NotAvailableError, match="the same contrasts"):
            gn.combine([release, other])


def test_streams_record_the_contrasts_of_sets(tmp_path):
    plan = gn.plan(
        SCHEMA, [ASKED[0], {"county": "region", "sex": None}], gn.zCDP(0.5), over=Ticks(2)
    )
    plan.start(tmp_path / "out").tick(people())
    path = tmp_path / "out" / "stream.json"
    record = json.loads(path.read_text())
    expected = json.loads(json.dumps(contrasts_of(plan.one_tick)))
    assert expected.items() <= record["noise"].items()
    assert "contrasts_in_sets" in expected
    left_out(record["noise"])
    path.write_text(json.dumps(record))
    with pytest.raises(GaussNoiseError):
        Stream.open(tmp_path / "out")
