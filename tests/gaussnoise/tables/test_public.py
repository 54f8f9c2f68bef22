"""Tests of tables that are published exactly: what stays protected, the noise, and the text."""

import functools
import itertools
import math
import warnings
from collections import Counter

import networkx
import numpy as np
import polars as pl
import pytest

import gaussnoise as gn
from gaussnoise.errors import CertificateError, CovarianceError, ParameterError, PolicyWarning
from gaussnoise.noise.agreement import ReplaceWithin
from gaussnoise.noise.marginal_covariance import MarginalCovariance
from gaussnoise.solvers.tables.strategies import IdentityStrategy
from gaussnoise.tables.planning import measure as _measure
from gaussnoise.tables.planning.measure import ResidualQuery
from gaussnoise.tables.release import publish as _publish

SIZES = (3, 2, 4)
PAIRS = gn.Marginals.all_kway(SIZES, 2)


def planned(public, sizes=SIZES, workload=2, rho=0.5, **options):
    schema = gn.Schema([gn.Attribute(f"a{i}", range(n)) for i, n in enumerate(sizes)])
    names = [f"a{i}" for i in public]
    return gn.plan(schema, workload, gn.zCDP(rho), neighbors="replace", public=names, **options)


def by_policy(domain, public, p):
    """Solve the problem by another solver: the policy graph that joins records which agree."""
    records = list(itertools.product(*map(range, domain.sizes)))
    graph = networkx.Graph(components="public")
    graph.add_nodes_from(range(len(records)))
    graph.add_edges_from(
        (a, b)
        for a, b in itertools.combinations(range(len(records)), 2)
        if all(records[a][i] == records[b][i] for i in public)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        return gn.optimal_noise(domain.to_finite_set(), p, neighbors=graph, tol=1e-5)


@pytest.mark.parametrize(("public", "gamma"), [((0,), 9.002357), ((1,), 9.350451)])
def test_known_optima_of_pairs_of_three_attributes(public, gamma):
    noise = gn.optimal_noise(PAIRS, neighbors=ReplaceWithin(public))
    assert noise.gamma == pytest.approx(gamma, abs=1e-6)
    assert gn.optimal_noise(PAIRS).gamma == pytest.approx(9.895734, abs=1e-6)


@pytest.mark.parametrize("p", [2, 3, math.inf])
@pytest.mark.parametrize(
    ("sizes", "subsets", "public"),
    [
        ((3, 2, 4), [(0, 1), (0, 2), (1, 2)], (0,)),
        ((2, 2, 3), [(0, 1), (1, 2)], (1,)),  # equal except for which attribute is public
        ((2, 2, 2), [(0, 1), (0, 2), (1, 2), (0, 1, 2)], (0, 2)),
        ((3, 2), [(0,), (0, 1)], (0,)),  # one table is exact as a whole
    ],
)
def test_optimum_is_that_of_the_policy_graph_of_records_that_agree(p, sizes, subsets, public):
    domain = gn.Marginals(sizes, subsets)
    noise, other = (
        gn.optimal_noise(domain, p, neighbors=ReplaceWithin(public)),
        by_policy(domain, public, p),
    )
    assert noise.gamma_lower <= other.gamma * (1 + 1e-9)
    assert other.gamma_lower <= noise.gamma * (1 + 1e-9)
    assert noise.gap < 1e-6
    found = noise.verify()
    assert found.sensitivity_squared <= 1
    assert found.gamma_lower == pytest.approx(noise.gamma, rel=2e-6)


def test_answers_come_back_from_files_with_their_relation(tmp_path):
    noise = gn.optimal_noise(PAIRS, 3, neighbors=ReplaceWithin((0,)))
    noise.save(tmp_path / "noise.npz")
    loaded = gn.OptimalNoise.load(tmp_path / "noise.npz")
    assert loaded.neighbors == ReplaceWithin((0,))
    assert loaded.gamma == noise.gamma


def test_noise_for_fewer_public_attributes_cannot_be_passed_off_for_whole_records():
    import dataclasses

    noise = gn.optimal_noise(PAIRS, neighbors=ReplaceWithin((0,)))
    for relation in ("replace", "add-remove", ReplaceWithin((1,)), ReplaceWithin((0, 1))):
        with pytest.raises(CertificateError):
            dataclasses.replace(noise, neighbors=relation).verify()
    assert isinstance(noise.covariance, MarginalCovariance)
    less = {T: v * 0.99 for T, v in noise.covariance.variances.items()}
    with pytest.raises(CertificateError, match="too little noise"):
        dataclasses.replace(noise, covariance=MarginalCovariance(PAIRS, less)).verify()


def marginal(rows, T, sizes):
    counts = np.zeros([sizes[i] for i in T], dtype=np.int64)
    for row, k in Counter(rows).items():
        counts[tuple(row[i] for i in T)] += k
    return counts


def squared_change(query, sizes, one, other):
    """Return the squared change of all measured integers between two data sets."""
    return sum(
        int((np.asarray(a - b, dtype=object) ** 2).sum())
        for T in query.multipliers
        for a, b in [
            (query.answer(T, marginal(one, T, sizes)), query.answer(T, marginal(other, T, sizes)))
        ]
    )


WORKLOADS = [
    ((3, 2, 4), 2, (0,)),
    ((2, 3, 2), 2, (1, 2)),
    ((2, 2, 3), [("a0", "a1"), ("a1", "a2")], (1,)),
    ((2, 2, 2), 3, (2,)),
]


@pytest.mark.parametrize(("sizes", "workload", "public"), WORKLOADS)
def test_no_exchange_of_rows_that_agree_moves_the_integers_more_than_is_charged(
    sizes, workload, public
):
    query = planned(public, sizes, workload).query
    records = list(itertools.product(*map(range, sizes)))
    changes = [
        squared_change(query, sizes, [row], [other])
        for row, other in itertools.combinations(records, 2)
        if all(row[i] == other[i] for i in public)
    ]
    assert query.query is not None
    assert max(changes) == query.query.sensitivity_squared


def test_all_data_sets_of_two_rows_with_one_exact_table_are_covered():
    sizes, public = (2, 2, 3), (0,)
    query = planned(public, sizes).query
    assert query.query is not None
    records = list(itertools.product(*map(range, sizes)))
    largest = 0
    for kept in records:
        for row, other in itertools.combinations(records, 2):
            exact = [marginal([kept, r], public, sizes) for r in (row, other)]
            same = (exact[0] == exact[1]).all()
            assert same == (row[0] == other[0])  # a difference shows in the exact table
            if same:
                change = squared_change(query, sizes, [kept, row], [kept, other])
                largest = max(largest, change)
    assert largest == query.query.sensitivity_squared


@pytest.mark.parametrize("limit", ["_EXACT_PATTERNS", "MOST_PATTERNS"])
def test_sensitivity_over_too_many_patterns_is_no_smaller(monkeypatch, limit):
    exact = planned((0,)).query.query
    monkeypatch.setattr(_measure, "_EXACT_PATTERNS", 0)
    monkeypatch.setattr(_measure, limit, 0)
    bounded = planned((0,)).query.query
    assert exact is not None
    assert bounded is not None
    assert bounded.sensitivity_squared >= exact.sensitivity_squared


def test_a_public_attribute_must_not_pass_for_a_private_one():
    orbits = planned((), (2, 2, 2)).query.multipliers.orbits
    assert orbits.classes == ((0, 1, 2),)
    with pytest.raises(CovarianceError, match="no public attribute to be like a private one"):
        _measure.squared_sensitivity(
            orbits, [IdentityStrategy(2)], {(0, 0): 1}, ReplaceWithin((1,))
        )
    with pytest.raises(CovarianceError, match="no noise on tables of public attributes"):
        ResidualQuery.calibrated(
            [IdentityStrategy(2)] * 2, {(0,): 1.0, (0, 1): 1.0}, ReplaceWithin((0,)), 1.0
        )


@pytest.fixture
def people():
    rng = np.random.default_rng(7)
    return pl.DataFrame({f"a{i}": rng.integers(n, size=500) for i, n in enumerate(SIZES)})


def test_tables_of_public_attributes_come_out_exactly(people):
    release = planned((0, 2)).release(people)
    truth = np.zeros((3, 4))
    np.add.at(truth, (people["a0"].to_numpy(), people["a2"].to_numpy()), 1)
    joint = release["a0", "a2"]
    assert (np.asarray(joint.estimate) == truth).all()
    assert not np.any(joint.standard_deviation)
    assert (np.asarray(release["a2"].estimate) == truth.sum(axis=0)).all()
    other = release["a0", "a1"]
    assert np.all(np.asarray(other.standard_deviation) > 0)
    np.testing.assert_allclose(np.asarray(other.estimate).sum(axis=1), truth.sum(axis=1))
    assert release.public_rows == 500
    weights = np.zeros((3, 4))
    weights[1, 2] = 1
    contrast = release.contrast({("a0", "a2"): weights})
    assert contrast.estimate == truth[1, 2]
    assert contrast.standard_deviation == 0
    shares = release.proportions(("a0", "a2"))
    np.testing.assert_allclose(np.asarray(shares.estimate), truth / 500)
    assert not np.any(shares.standard_deviation)
    low, high = shares.confidence_interval(0.95)
    np.testing.assert_allclose([low, high], [truth / 500] * 2)
    ones = release.proportions(("a0", "a1"), given=("a0", "a1"))
    assert (np.asarray(ones.estimate) == 1).all()
    cumulative = release.cdf("a2", given="a0")
    below = truth.cumsum(axis=1) / truth.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.asarray(cumulative.estimate), below)
    assert not np.any(cumulative.standard_deviation)
    exact = {m.attributes: m.standard_deviation for m in release.measurements()}
    assert exact["a0", "a2"] == 0 < exact["a0", "a1"]


def test_estimates_are_unbiased_and_deviate_as_stated(people):
    plan, rng = planned((0,), rho=0.05), np.random.default_rng(3)
    truth = np.zeros((2, 4))
    np.add.at(truth, (people["a1"].to_numpy(), people["a2"].to_numpy()), 1)
    drawn = np.array(
        [np.asarray(plan.simulate(people, rng)["a1", "a2"].estimate) for _ in range(200)]
    )
    sd = plan.standard_deviation("a1", "a2")
    assert (np.abs(drawn.mean(axis=0) - truth) < 5 * sd / math.sqrt(200)).all()
    assert drawn.std(axis=0).mean() == pytest.approx(sd, rel=0.1)
    assert plan.standard_deviation("a0") == 0


def test_releases_with_public_attributes_load_again_without_their_plan(people, tmp_path):
    plan = planned((0,))
    release = plan.release(people, out=tmp_path / "out")
    loaded = gn.TableRelease.load(tmp_path / "out")
    assert loaded.plan.public == ("a0",)
    assert loaded.plan.request_sha256 == plan.request_sha256 != planned(()).request_sha256
    assert (np.asarray(loaded["a0"].estimate) == np.asarray(release["a0"].estimate)).all()
    loaded.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "no protection at all" in page


def test_plans_say_what_exact_tables_cost_and_save():
    plan = planned((0,))
    text = str(plan)
    assert "EXACT, without noise: a0. Whoever sees the release knows exactly how many" in text
    assert "which combination of a0 a person is in has no protection at all" in text
    assert "γ = 9.002357 instead of 9.89" in text
    assert plan.public_saving == pytest.approx((9.895734 / 9.002357) ** 2, rel=1e-3)
    everything = planned((0, 1, 2))
    assert everything.noise.gamma == 0
    assert "there is no noise" in str(everything)
    assert planned((0,), workload=[("a0", "a1")]).improvement == pytest.approx(1, abs=1e-6)


def test_a_ledger_tells_less_protection_from_more(people, tmp_path):
    path = tmp_path / "ledger.jsonl"
    gn.Ledger.create(path, gn.zCDP(2.0))
    planned((0,)).release(people, ledger=path, id="one", out=tmp_path / "one")
    assert b"one row under replace of the same a0" in path.read_bytes()


def test_what_is_not_known_under_public_attributes_is_refused():
    plan = planned((0,))
    for ask in (
        lambda: plan.bound,
        lambda: plan.replace_saving,
        lambda: gn.GaussianMechanism(plan.noise, gn.zCDP(1.0), n=100),
        lambda: gn.compare(PAIRS, gn.zCDP(1.0), neighbors=ReplaceWithin((0,)), n=10),
        lambda: gn.lower_bound(PAIRS, gn.zCDP(1.0), neighbors=ReplaceWithin((0,)), n=10),
        lambda: gn.optimal_noise(gn.LpBall(3, 2), neighbors=ReplaceWithin((0,))),
        lambda: gn.optimal_noise(PAIRS, neighbors=ReplaceWithin((0,)), method="sdp"),
        lambda: plan.noise.plot(),
        lambda: planned((0,), over=gn.streams.Ticks(4)),
        lambda: planned((0,), workload=[("a1", "a2")]),
        lambda: gn.plan(plan.schema, 2, gn.zCDP(1.0), public=("a0",)),
        lambda: gn.plan(plan.schema, 2, gn.zCDP(1.0), neighbors="replace", public=("b",)),
        lambda: gn.plan(plan.schema, 2, gn.zCDP(1.0), neighbors="replace", public=3),
        lambda: ReplaceWithin((1, 0)),
    ):
        with pytest.raises(ParameterError):
            ask()


def test_models_of_synthetic_records_refuse_exact_tables(people):
    with pytest.raises(ParameterError, match="without public attributes"):
        planned((0,)).release(people).to_mbi()


# Queries other than cells


BASED = [
    ((3, 4), [{"a0": "identity", "a1": "prefix"}], (0,)),
    ((3, 4), [{"a0": "prefix", "a1": "identity"}], (0,)),
    ((3, 4), [{"a0": "prefix", "a1": "prefix"}], (0,)),
    ((3, 4), [{"a1": "prefix"}, ("a0",)], (0,)),
    ((2, 3, 3), [{"a0": "identity", "a1": "prefix", "a2": "identity"}], (0, 2)),
    (
        (2, 3, 3),
        [
            {"a0": "identity", "a1": "prefix"},
            {"a1": "prefix", "a2": "identity"},
            {"a0": "identity", "a2": "ranges"},
        ],
        (0,),
    ),
]


@functools.cache
def based(k):
    sizes, workload, public = BASED[k]
    return planned(public, sizes, workload)


@pytest.mark.parametrize("k", range(len(BASED)))
def test_products_of_bases_bracket_the_optimum_of_the_policy_graph(k):
    (_, _, public), noise = BASED[k], based(k).noise
    other = by_policy(noise.problem.domain, public, 2)
    assert noise.gamma_lower <= other.gamma * (1 + 1e-9)
    assert other.gamma_lower <= noise.gamma * (1 + 1e-9)
    assert noise.gamma <= 1.025 * other.gamma  # products alone, as without public attributes
    found = noise.verify()
    assert found.sensitivity_squared <= 1
    assert found.gamma_lower == pytest.approx(noise.gamma_lower, rel=1e-9)


@pytest.mark.parametrize("k", range(len(BASED)))
def test_no_exchange_moves_what_is_measured_for_bases_more_than_is_charged(k):
    (sizes, _, public), query = BASED[k], based(k).query
    records = list(itertools.product(*map(range, sizes)))
    most = max(
        squared_change(query, sizes, [a], [b])
        for a, b in itertools.combinations(records, 2)
        if all(a[i] == b[i] for i in public)
    )
    assert 0.95 * query.query.sensitivity_squared < most <= query.query.sensitivity_squared
    # the negative control: two rows of one person, with a charge for only one
    pairs = [(a, b) for a, b in itertools.combinations(records, 2) if a[public[0]] == b[public[0]]]
    twice = max(squared_change(query, sizes, [a, a], [b, b]) for a, b in pairs)
    assert twice > query.query.sensitivity_squared


@pytest.mark.parametrize("k", range(len(BASED)))
def test_exact_tables_and_all_others_come_back_where_there_is_no_noise(k):
    (sizes, _, public), plan, rng = BASED[k], based(k), np.random.default_rng(5)
    codes = rng.integers(0, sizes, (200, len(sizes)))
    frame = pl.DataFrame({f"a{i}": codes[:, i] for i in range(len(sizes))})
    for S, table in _publish._noisy(plan, frame, "refuse", lambda n: [0] * n, 1, None):
        truth = marginal([tuple(row) for row in codes.tolist()], S, sizes)
        np.testing.assert_allclose(table, truth, atol=1e-9)
    released = plan.release(frame)
    exact = marginal([tuple(row) for row in codes.tolist()], public[:1], sizes)
    name = f"a{public[0]}"
    assert (np.asarray(released[name].estimate) == exact).all()
    assert not np.any(released[name].standard_deviation)
    assert np.any(released["a1"].standard_deviation)


def test_noise_for_bases_comes_back_from_files_and_not_for_other_relations(tmp_path):
    import dataclasses

    noise = based(0).noise
    noise.save(tmp_path / "noise.npz")
    loaded = gn.OptimalNoise.load(tmp_path / "noise.npz")
    assert (loaded.neighbors, loaded.gamma) == (ReplaceWithin((0,)), noise.gamma)
    for relation in ("replace", "add-remove", ReplaceWithin((1,))):
        with pytest.raises(CertificateError):
            dataclasses.replace(noise, neighbors=relation).verify()


def test_releases_of_bases_with_public_attributes_load_again(tmp_path):
    plan = based(0)
    frame = pl.DataFrame({"a0": [0, 1, 2] * 50, "a1": [0, 1, 2] * 50})
    plan.release(frame, out=tmp_path / "out")
    loaded = gn.TableRelease.load(tmp_path / "out")
    assert loaded.plan.public == ("a0",)
    assert loaded.answers({"a0": "prefix"}).estimate.tolist() == [50, 100, 150]
    assert plan.improvement > 0.97
    assert plan.public_saving > 1.5
    assert "EXACT, without noise: a0" in str(plan)


def test_clipped_numbers_and_streams_say_why_they_are_refused():
    schema = gn.Schema([gn.Attribute("a", [0, 1]), gn.Attribute("x", clip=[0, 1])])
    asked = {"neighbors": "replace", "public": "a"}
    with pytest.raises(ParameterError, match="clipped numbers: a row counts in the ends of"):
        gn.plan(schema, [("a", "x")], gn.zCDP(1.0), **asked)
    with pytest.raises(ParameterError, match="public attributes are for one release"):
        gn.plan(schema, [("a",)], gn.zCDP(1.0), over=gn.streams.Ticks(3), **asked)


BASES = [{"b": "prefix"}, {"b": "ranges"}, {"a": "identity"}, {"a": "identity", "b": "prefix"}]


@pytest.mark.parametrize("public", ["b", ["a", "b"]])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_tables_of_public_attributes_alone_are_exact_under_any_base(number, public):
    """Nothing is measured for them, also where no table is left that needs noise."""
    schema = gn.Schema([gn.Attribute("a", ["x", "y"]), gn.Attribute("b", edges=[0, 1, 2, 3])])
    for workload in itertools.combinations(BASES, number):
        used = {name for entry in workload for name in entry}
        if not used >= set(public):
            continue
        plan = gn.plan(schema, list(workload), gn.zCDP(0.5), neighbors="replace", public=public)
        rows = pl.DataFrame({"a": ["x", "y", "x", "x"], "b": [0, 1, 1, 2]})
        release = plan.release(rows)
        if {"b": "prefix"} in workload:
            assert release["b"].estimate.tolist() == [1, 2, 1]
        if public == "b" and "a" in used:
            assert plan.query.query is not None
