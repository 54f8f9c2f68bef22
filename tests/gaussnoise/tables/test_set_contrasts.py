"""Releases that measure an attribute by other contrasts in other sets of attributes.

References: exact integers of every record, linear maps written out here, and repeated releases.
"""

import itertools
import json
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import gaussnoise as gn
from gaussnoise.noise import solve
from gaussnoise.noise import tables as noise_of_tables
from gaussnoise.solvers.tables.residuals import subsets_of

COUNTIES = [f"c{k}" for k in range(8)]
REGIONS = {"north": COUNTIES[:1], "mid": COUNTIES[1:3], "south": COUNTIES[3:]}
AGE = gn.Attribute("age", ["young", "old", "unknown"])
SEX = gn.Attribute("sex", ["F", "M"])
COUNTY = gn.Attribute("county", COUNTIES, groups={"region": REGIONS})
YEARS = gn.Attribute("years", edges=[0, 1, 2, 3, 5, 10, 20])
TABLES = [("county",), ("county", "sex"), {"county": "region", "age": "identity"}]
TWO = [
    {"years": "prefix"},
    {"years": "identity", "county": "region"},
    {"county": "identity", "years": gn.Groups(6, [(0, 1, 2), (3, 4, 5)])},
]


@cache
def planned(order=0, asked="one", p=2.0):
    # classes of attributes and attributes are numbered apart: all orders of attributes are tried
    attributes = list(itertools.permutations([COUNTY, AGE, SEX]))[order]
    if asked == "one":
        return gn.plan(gn.Schema(attributes), TABLES, gn.zCDP(0.5), neighbors="add-remove", p=p)
    schema = gn.Schema([YEARS, SEX, COUNTY])
    return gn.plan(schema, [*TWO, ("sex",)], gn.zCDP(0.5), neighbors="add-remove", p=p)


PLANS = [(0,), (1,), (2,), (3,), (4,), (5,), (0, "two"), (0, "one", 8.0), (0, "two", 8.0)]


def people(rows, seed):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "county": rng.choice(COUNTIES, rows),
            "age": rng.choice(AGE.labels, rows),
            "sex": rng.choice(SEX.labels, rows),
            "years": rng.integers(0, 20, rows),
        }
    )


def contrasts(query, i, T):
    own = query.strategies[i].in_set(T)
    return own.contrast(np.eye(own.size, dtype=np.int64), 0).astype(object)


@pytest.mark.parametrize("plan", PLANS)
def test_the_sensitivity_is_that_of_the_worst_record(plan):
    query = planned(*plan).query
    assert any(own.others for own in query.strategies)
    largest = 0
    for record in itertools.product(*(range(own.size) for own in query.strategies)):
        change = 0
        for T, s in query.multipliers.items():
            length = int(s) ** 2
            for i in T:
                length *= int((contrasts(query, i, T)[:, record[i]] ** 2).sum())
            change += length
        largest = max(largest, change)
    assert query.query.sensitivity_squared == largest


@pytest.mark.parametrize("plan", PLANS)
def test_answers_without_noise_are_decoded_exactly(plan):
    query, tables = planned(*plan).query, planned(*plan).tables
    rng = np.random.default_rng(7)
    whole = rng.integers(0, 50, [own.size for own in query.strategies])
    for S in tables.subsets:
        counts = whole.sum(axis=tuple(i for i in range(whole.ndim) if i not in S))
        decoded = sum(
            query.spread(query.decode(T, query.answer(T, margin(counts, S, T))), T, S)
            for T in subsets_of(S)
        )
        np.testing.assert_allclose(decoded, counts, atol=1e-8)


def margin(counts, S, T):
    return np.asarray(counts.sum(axis=tuple(k for k, i in enumerate(S) if i not in T)))


@pytest.mark.parametrize("plan", [PLANS[0], PLANS[6]])
def test_errors_of_releases_have_the_stated_covariance(plan):
    plan = planned(*plan)
    rows, rng = people(300, 3), np.random.default_rng(11)
    errors, releases = [], 150
    first = plan.simulate(rows, rng)
    stated = first.covariance.toarray()
    for _ in range(releases):
        release = plan.simulate(rows, rng)
        errors.append(np.concatenate([release[T].estimate.ravel() for T in plan.marginals]))
    centred = np.array(errors) - np.mean(errors, axis=0)
    values, axes = np.linalg.eigh(stated)
    seen = values > 1e-9 * values[-1]
    whitened = centred @ axes[:, seen] / np.sqrt(values[seen])
    degrees = (releases - 1) * int(seen.sum())
    assert 1e-6 < stats.chi2.sf(float(np.square(whitened).sum()), degrees) < 1 - 1e-6


def test_records_list_the_contrasts_of_sets(tmp_path):
    plan = planned(2)
    plan.release(people(300, 0)).save(tmp_path / "out")
    noise = json.loads((tmp_path / "out" / "release.json").read_text())["noise"]
    sets = {frozenset(T) for own in noise["contrasts_in_sets"] for T in own["sets"]}
    assert sets == {frozenset(("county", "age")), frozenset(("county", "sex"))}
    assert {own["attribute"] for own in noise["contrasts_in_sets"]} == {"county"}
    assert noise["contrasts"].keys() == {"county"}
    for release in (
        gn.TableRelease.load(tmp_path / "out"),
        gn.TableRelease.load(tmp_path / "out", plan),
    ):
        np.testing.assert_array_equal(
            release["county", "age"].standard_deviation,
            plan.release(people(300, 1))["county", "age"].standard_deviation,
        )


def test_releases_with_the_same_contrasts_in_all_sets_are_combined():
    rows = people(300, 0)
    one, other = planned(0).release(rows), planned(0).release(rows)
    both = gn.combine([one, other])
    for T in planned(0).marginals:
        np.testing.assert_allclose(
            both[T].standard_deviation, one[T].standard_deviation / np.sqrt(2), rtol=1e-12
        )
    with pytest.raises(gn.errors.NotAvailableError, match="the same contrasts"):
        gn.combine([one, planned(0, "two").release(rows)])


@pytest.mark.parametrize(
    ("sizes", "workload"),
    [
        (
            (5, 3),
            [
                {"a": gn.Moments(range(5), [1])},
                {"a": "identity", "b": gn.Groups(3, [(0,), (1, 2)])},
                {"a": "identity"},
            ],
        ),
        ((8, 3), [{"a": "identity"}, {"a": gn.Groups(8, [(0, 1), range(2, 8)]), "b": "identity"}]),
    ],
)
def test_targets_never_need_more_budget_than_with_one_strategy_for_all_sets(
    monkeypatch, sizes, workload
):
    schema = gn.Schema(
        [gn.Attribute(name, list(map(str, range(n)))) for name, n in zip("ab", sizes, strict=True)]
    )
    plan = gn.plan(schema, workload, targets=10, neighbors="add-remove")
    monkeypatch.setattr(noise_of_tables, "with_set_strategies", lambda single, *_: single)
    solve._solved_once.cache_clear()
    try:
        single = gn.plan(schema, workload, targets=10, neighbors="add-remove")
    finally:
        solve._solved_once.cache_clear()
    assert not any(own.others for own in single.strategies)
    assert plan.rho <= single.rho * (1 + 1e-3)
