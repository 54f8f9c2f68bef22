"""Policy graphs: the pairs that are protected, by how much, and the error."""

import dataclasses
import itertools
import json
import math
import warnings
from fractions import Fraction

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussnoise as gn
from gaussnoise import FiniteSet
from gaussnoise.errors import CertificateError, CovarianceError, ParameterError, PolicyWarning
from gaussnoise.noise.covariance import FactorCovariance
from gaussnoise.noise.sensitivity import covered

ROUNDING = 1e-11
NORMS = [2, 3, math.inf]
norms = pytest.mark.parametrize("p", NORMS)
few = settings(max_examples=25, derandomize=True, deadline=None, database=None)
CLOUD = FiniteSet(np.random.default_rng(0).normal(size=(6, 3)))


def public(graph):
    """Return the same graph, with components declared public knowledge."""
    graph = graph.copy()
    graph.graph["components"] = "public"
    return graph


def solve(domain, graph, p=2, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolicyWarning)
        return gn.optimal_noise(domain, p, neighbors=graph, **options)


def check(noise, expected=None):
    assert 0 <= noise.gamma_lower <= noise.gamma
    assert 0 <= noise.gap <= 1e-6
    assert noise.status is gn.results.Status.SOLVED
    assert noise.sensitivity_squared == 1
    noise.verify()
    if expected is not None:
        assert noise.gamma_lower <= expected * (1 + ROUNDING)
        assert noise.gamma >= expected * (1 - ROUNDING)
    return noise


def agree(a, b):
    assert a.gamma_lower <= b.gamma * (1 + ROUNDING)
    assert b.gamma_lower <= a.gamma * (1 + ROUNDING)


def sdp(edges, p):
    """Return ``γ² = min ‖diag M‖_{p/2}  s.t. [[M, X], [X', Y]] ⪰ 0, diag Y ≤ 1``; the columns of X
    are the edges' differences.
    """
    N, d = edges.shape
    joint = cp.Variable((d + N, d + N), PSD=True)
    constraints = [joint[:d, d:] == edges.T, cp.diag(joint[d:, d:]) <= 1]
    problem = cp.Problem(cp.Minimize(cp.pnorm(cp.diag(joint[:d, :d]), p / 2)), constraints)
    problem.solve(solver=cp.CLARABEL)
    return math.sqrt(problem.value)


def edges_of(domain, graph):
    return np.array([domain.points[i] - domain.points[j] for i, j in graph.edges if i != j])


def whitened_square(noise, difference):
    return float(
        difference
        @ np.linalg.pinv(noise.covariance.toarray(), hermitian=True, rcond=1e-10)
        @ difference
    )


# Known policies


@norms
@pytest.mark.parametrize(
    "domain", [CLOUD, FiniteSet(np.eye(5)), FiniteSet([[0.0], [1.0], [1.0], [4.0]])]
)
def test_the_complete_graph_is_replacement(domain, p):
    agree(
        check(solve(domain, nx.complete_graph(domain.cardinality), p)),
        check(gn.optimal_noise(domain, p)),
    )


@norms
def test_a_star_is_the_set_less_its_center(p):
    moved = FiniteSet(CLOUD.points[1:] - CLOUD.points[0])
    agree(
        check(solve(CLOUD, nx.star_graph(5), p)),
        check(gn.optimal_noise(moved, p, neighbors="add-remove")),
    )


@norms
@pytest.mark.parametrize(
    "graph",
    [
        nx.path_graph(6),
        nx.cycle_graph(6),
        nx.complete_bipartite_graph(2, 4),
        nx.ladder_graph(3),
        nx.star_graph(5),
    ],
    ids=["path", "cycle", "bipartite", "ladder", "star"],
)
def test_against_an_independent_sdp(graph, p):
    noise = check(solve(CLOUD, graph, p))
    assert float(noise) == pytest.approx(sdp(edges_of(CLOUD, graph), p), rel=2e-6)


@norms
@pytest.mark.parametrize("m", [2, 5, 16])
def test_a_path_of_prefix_sums_is_a_histogram(m, p):
    # neighbours on the line differ in one prefix sum
    noise = check(solve(FiniteSet(np.tril(np.ones((m, m)))), nx.path_graph(m), p))
    agree(noise, gn.optimal_noise(FiniteSet(np.eye(m)[1:]), p, neighbors="add-remove"))


@pytest.mark.parametrize("m", [3, 6, 9])
def test_a_cycle_of_cells_by_symmetry(m):
    # the edges e_i − e_{i+1} are the columns of a circulant matrix
    first = np.zeros(m)
    first[[0, 1]] = 1, -1
    nuclear = np.abs(np.fft.fft(first)).sum()
    for p in NORMS:
        check(solve(FiniteSet(np.eye(m)), nx.cycle_graph(m), p), m ** (1 / p) * nuclear / m)


@st.composite
def policies(draw, nodes=6):
    """Draw a connected graph on 0..nodes−1 and one with some of its edges removed."""
    tree = [(draw(st.integers(0, i - 1)), i) for i in range(1, nodes)]
    pairs = list(itertools.combinations(range(nodes), 2))
    more = draw(st.lists(st.sampled_from(pairs), max_size=6))
    graph = nx.empty_graph(nodes)
    graph.add_edges_from([*tree, *more])
    fewer = public(graph)
    fewer.remove_edges_from(
        draw(st.lists(st.sampled_from(sorted(graph.edges)), max_size=4, unique=True))
    )
    return graph, fewer


@few
@given(policies(), st.sampled_from(NORMS))
def test_fewer_edges_need_less_noise(graphs, p):
    graph, fewer = graphs
    all_of_them = check(solve(CLOUD, graph, p))
    assert check(solve(CLOUD, fewer, p)).gamma_lower <= all_of_them.gamma * (1 + ROUNDING)
    assert all_of_them.gamma_lower <= gn.optimal_noise(CLOUD, p).gamma * (1 + ROUNDING)


@few
@given(policies(), st.sampled_from(NORMS))
def test_values_at_distance_k_are_protected_at_k_squared(graphs, p):
    graph, fewer = graphs
    for policy in (graph, fewer):
        noise = solve(CLOUD, policy, p)
        for i, reached in nx.all_pairs_shortest_path_length(policy):
            for j, k in reached.items():
                assert whitened_square(noise, CLOUD.points[i] - CLOUD.points[j]) <= k**2 * (
                    1 + 1e-9
                )


def test_some_edge_is_protected_no_better_than_it_must_be():
    noise = solve(CLOUD, nx.path_graph(6))
    longest = max(whitened_square(noise, edge) for edge in edges_of(CLOUD, nx.path_graph(6)))
    assert longest == pytest.approx(1, abs=1e-9)


# Inputs that are the same policy


@pytest.mark.parametrize(
    "graph",
    [
        nx.Graph([(1, 0), (2, 1), (1, 2), (3, 2), (4, 3), (5, 4)]),
        nx.Graph([(i, i + 1) for i in range(5)] + [(2, 2), (0, 0)]),
        nx.MultiGraph([(0, 1), (0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 5)]),
        nx.Graph([(np.int64(i), np.int32(i + 1)) for i in range(5)]),
        nx.Graph([(i, i + 1, {"weight": 10 * i}) for i in range(5)]),
    ],
    ids=["order", "self-loops", "multigraph", "numpy integers", "weights"],
)
def test_the_same_path(graph):
    noise = check(solve(CLOUD, graph))
    np.testing.assert_array_equal(noise.neighbors.edges, [[i, i + 1] for i in range(5)])
    assert noise.gamma == solve(CLOUD, nx.path_graph(6)).gamma


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
def test_directed_graphs_are_refused(kind):
    with pytest.raises(
        ParameterError, match=r"undirected policy graph; hint: graph\.to_undirected\(\)"
    ):
        gn.optimal_noise(CLOUD, neighbors=kind(nx.path_graph(6)))


def test_a_policy_is_reused_as_it_is():
    noise = solve(CLOUD, nx.path_graph(6))
    assert gn.optimal_noise(CLOUD, 2, neighbors=noise.neighbors).gamma == noise.gamma


def test_changing_the_graph_later_changes_nothing():
    graph = nx.path_graph(6)
    noise = solve(CLOUD, graph)
    graph.remove_edge(2, 3)
    assert len(noise.neighbors.edges) == 5
    with pytest.raises(ValueError, match="read-only"):
        noise.neighbors.edges[0] = 0


def test_a_policy_prints_its_size():
    noise = solve(CLOUD, nx.path_graph(6))
    assert "policy graph with 5 edges on 6 points" in repr(noise)


def test_duplicate_points_may_be_joined():
    domain = FiniteSet([[1.0, 2.0]] * 3)
    noise = check(solve(domain, nx.path_graph(3)), 0)
    assert noise.gamma == 0


def test_equal_points_are_one_value_of_the_policy():
    # rows of data cannot distinguish them, so what is published must not either
    domain = FiniteSet([[1.0, 0.0], [-0.0, 5.0], [1.0, -0.0], [0.0, 5.0], [3.0, 3.0]])
    noise = check(solve(domain, public(nx.Graph([(0, 1), (2, 4)]))))
    assert len(set(noise.neighbors.components.tolist())) == 1
    mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.5), n=4)
    for counts in ([4, 0, 0, 0, 0], [0, 0, 4, 0, 0], [0, 1, 0, 1, 2]):
        np.testing.assert_array_equal(mechanism._offset(counts), domain.points[0])
    # one component: neither refused nor warned about
    assert gn.optimal_noise(domain, neighbors=nx.Graph([(0, 1), (2, 4)])).gamma == noise.gamma


def test_marginals_take_a_policy_on_their_records():
    domain = gn.Marginals((2, 3), [(0,), (1,)])
    records = domain.to_finite_set()
    graph = nx.cycle_graph(records.cardinality)
    agree(check(solve(domain, graph)), check(solve(records, graph)))


@pytest.mark.parametrize("p", [2, math.inf])
def test_a_long_path_is_solved(p):
    points = np.cumsum(np.random.default_rng(1).normal(size=(2000, 3)), axis=0)
    check(solve(FiniteSet(points), nx.path_graph(2000), p))


# Refusals


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.path_graph(7), r"row indices 0\.\.5, got node .*; hint: networkx.relabel_nodes"),
        (nx.Graph([(-1, 0)]), r"row indices 0\.\.5"),
        (nx.Graph([("a", "b")]), r"row indices 0\.\.5"),
        (nx.Graph([(0.0, 1.0)]), r"row indices 0\.\.5"),
        (nx.Graph([((0, 0), (0, 1))]), r"row indices 0\.\.5"),
        (nx.path_graph(5), "2 components on 6 points .* no protection at all; hint: connect it"),
        (nx.empty_graph(6), "6 components"),
        (nx.Graph(), "6 components"),
        (nx.Graph([(0, 1), (2, 3), (4, 5)]), "3 components"),
    ],
    ids=[
        "too many",
        "negative",
        "names",
        "floats",
        "pairs",
        "one left out",
        "no edges",
        "nothing",
        "three parts",
    ],
)
def test_graphs_that_are_not_a_policy_are_refused(graph, message):
    with pytest.raises(ParameterError, match=message):
        gn.optimal_noise(CLOUD, neighbors=graph)


@pytest.mark.parametrize(
    "neighbors", ["policy graph", "path", [(0, 1)], np.eye(6), {0: [1]}, nx.Graph, True]
)
def test_other_things_are_refused(neighbors):
    with pytest.raises(ParameterError, match="or a networkx graph"):
        gn.optimal_noise(CLOUD, neighbors=neighbors)


def test_a_policy_for_another_domain_is_refused():
    policy = solve(CLOUD, nx.path_graph(6)).neighbors
    with pytest.raises(ParameterError, match=r"0\.\.6 of the points"):
        gn.optimal_noise(FiniteSet(np.eye(7)), neighbors=policy)


@pytest.mark.parametrize("declared", ["Public", "private", True, None])
def test_components_are_public_only_by_the_word(declared):
    graph = nx.empty_graph(6)
    graph.graph["components"] = declared
    with pytest.raises(ParameterError, match=r'graph\.graph\["components"\] = "public"'):
        gn.optimal_noise(CLOUD, neighbors=graph)


def test_public_components_are_warned_about_at_the_callers_line():
    with pytest.warns(
        PolicyWarning, match=r"2 components on 6 points .* no protection at all"
    ) as caught:
        gn.optimal_noise(CLOUD, neighbors=public(nx.path_graph(5)))
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("edges", "components"),
    [
        ([[0, 1], [1, 2]], [0, 0, 1]),
        ([[0, 1], [1, 2]], [0, 1, 2]),
        ([[0, 1]], [0, 0, 0]),
        ([[0, 7]], [0, 0, 0]),
        ([[-1, 0], [1, 2]], [0, 0, 0]),
    ],
    ids=["split", "all split", "joined", "beyond", "negative"],
)
def test_components_that_do_not_belong_to_the_edges_are_refused(edges, components):
    # split in two, the exact number of records in a part would be released as public knowledge
    with pytest.raises(gn.GaussNoiseError):
        gn.optimal_noise(
            FiniteSet(np.eye(3)),
            neighbors=gn.results.PolicyGraph(np.array(edges), np.array(components)),
        )


# Verification and files

DISCONNECTED = nx.Graph([(0, 1), (1, 2), (3, 4)])  # 5 is alone
NOISES = {
    "path": solve(CLOUD, nx.path_graph(6)),
    "cycle, p=3": solve(CLOUD, nx.cycle_graph(6), 3),
    "star, p=∞": solve(CLOUD, nx.star_graph(5), math.inf),
    "disconnected": solve(CLOUD, public(DISCONNECTED)),
    "no edges": solve(CLOUD, public(nx.empty_graph(6))),
    "one node": solve(FiniteSet([[1.0, 2.0]]), nx.empty_graph(1)),
    "two nodes": solve(FiniteSet([[1.0, 2.0], [0.0, 5.0]]), nx.path_graph(2), math.inf),
    "far parts": solve(
        FiniteSet(np.vstack([CLOUD.points[:3], CLOUD.points[3:] + 1e6])),
        public(nx.Graph([(0, 1), (1, 2), (3, 4)])),
    ),
}
GRAPHS = {
    "path": nx.path_graph(6),
    "cycle, p=3": nx.cycle_graph(6),
    "star, p=∞": nx.star_graph(5),
    "disconnected": DISCONNECTED,
    "no edges": nx.empty_graph(6),
    "one node": nx.empty_graph(1),
    "two nodes": nx.path_graph(2),
    "far parts": nx.Graph([(0, 1), (1, 2), (3, 4)]),
}
every = pytest.mark.parametrize("name", NOISES)
noisy = pytest.mark.parametrize("name", [name for name, noise in NOISES.items() if noise.gamma > 0])


@every
def test_every_policy_is_solved(name):
    check(NOISES[name])


def test_no_edges_need_no_noise():
    assert NOISES["no edges"].gamma == NOISES["one node"].gamma == 0


@every
def test_files_bring_back_the_policy(name, tmp_path):
    noise = NOISES[name]
    noise.save(tmp_path / "noise.npz")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = gn.OptimalNoise.load(tmp_path / "noise.npz")
    parts = nx.number_connected_components(GRAPHS[name])
    assert [warning.category for warning in caught] == [PolicyWarning] * (parts > 1)
    assert all(warning.filename == __file__ for warning in caught)
    np.testing.assert_array_equal(loaded.neighbors.edges, noise.neighbors.edges)
    np.testing.assert_array_equal(loaded.neighbors.components, noise.neighbors.components)
    np.testing.assert_array_equal(loaded.certificate.rows, noise.certificate.rows)
    np.testing.assert_array_equal(loaded.covariance.factor(), noise.covariance.factor())
    assert (loaded.gamma, loaded.gamma_lower, loaded.status) == (
        noise.gamma,
        noise.gamma_lower,
        noise.status,
    )


@pytest.mark.parametrize(
    "change",
    [
        {"policy_edges": lambda e: e[1:]},
        {"policy_edges": lambda e: np.array([[0, 5], *e])},
        {"policy_edges": lambda e: e + 1},
        {"policy_edges": lambda e: e - 1},
        {"policy_edges": lambda e: e.ravel()},
        {"policy_edges": lambda e: None},
        {"certificate_rows": lambda r: r[:, ::-1]},
        {"certificate_rows": lambda r: r[:, :1]},
    ],
    ids=["removed", "added", "shifted", "negative", "flat", "missing", "turned", "single"],
)
def test_tampered_policies_are_refused(tmp_path, change):
    path = tmp_path / "noise.npz"
    # every edge of a path carries weight
    solve(FiniteSet(np.tril(np.ones((6, 6)))), nx.path_graph(6)).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    for name, edit in change.items():
        arrays[name] = edit(arrays[name])
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises((CertificateError, CovarianceError)):
        gn.OptimalNoise.load(path)


def test_a_file_cannot_turn_a_policy_into_replacement(tmp_path):
    path = tmp_path / "noise.npz"
    NOISES["path"].save(path)
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays["header"])) | {"neighbors": "replace"}
    np.savez(path, **(arrays | {"header": np.array(json.dumps(header))}))
    with pytest.raises(CertificateError, match="too little noise"):
        gn.OptimalNoise.load(path)


@noisy
def test_a_thinner_covariance_is_caught(name):
    noise = NOISES[name]
    thin = FactorCovariance(noise.covariance.unit_factor, noise.covariance.scale * (1 - 1e-9))
    with pytest.raises(CertificateError, match="too little noise"):
        dataclasses.replace(noise, covariance=thin).verify()


def test_noise_for_fewer_edges_is_caught():
    noise = NOISES["path"]
    policy = solve(CLOUD, nx.complete_graph(6)).neighbors
    with pytest.raises(CertificateError, match="too little noise"):
        dataclasses.replace(noise, neighbors=policy).verify()


def test_a_witness_that_is_no_edge_is_caught():
    replaced, path = gn.optimal_noise(CLOUD), NOISES["path"]
    boast = dataclasses.replace(replaced, neighbors=path.neighbors)
    assert boast.gamma_lower > path.gamma
    with pytest.raises(CertificateError, match="not a measure on the sensitivity set"):
        boast.verify()


# The mechanism


def mechanism_for(noise, n=12):
    return gn.GaussianMechanism(noise, gn.zCDP(0.5), n=n)


def counts_for(noise, n=12):
    size = noise.domain.cardinality
    return np.random.default_rng(1).multinomial(n, np.full(size, 1 / size)).tolist()


@noisy
def test_integer_sensitivity_is_that_of_the_edges(name):
    mechanism = mechanism_for(NOISES[name])
    rows = mechanism._lattice.strategy
    edges = [
        sum((x - y) ** 2 for x, y in zip(rows[i], rows[j], strict=True))
        for i, j in GRAPHS[name].edges
    ]
    assert mechanism._lattice.query.sensitivity_squared == max(edges)
    assert 0.5 * (1 - 1e-9) <= mechanism.rho_charged <= 0.5


@pytest.mark.parametrize("name", ["no edges", "one node"])
def test_nothing_to_protect_costs_nothing_and_is_exact(name):
    mechanism = mechanism_for(NOISES[name])
    counts = counts_for(NOISES[name])
    release = mechanism.release(counts=counts)
    assert mechanism.rho_charged == release.privacy["rho_charged"] == 0
    np.testing.assert_allclose(
        release.estimate, np.array(counts) @ NOISES[name].domain.points / 12, atol=1e-12
    )
    assert not release.standard_deviation.any()


@noisy
def test_stated_covariance(name):
    noise = NOISES[name]
    expected = noise.covariance.standard_deviation() / 12
    np.testing.assert_allclose(mechanism_for(noise).standard_deviation, expected, rtol=1e-8)


@every
def test_decoding_without_noise_is_the_truth(name):
    noise = NOISES[name]
    mechanism, points = mechanism_for(noise), noise.domain.points
    size = noise.domain.cardinality
    for counts in (
        counts_for(noise),
        [12] + [0] * (size - 1),
        [0] * (size - 1) + [12],
        [12 // size] * size,
    ):
        n = sum(counts)
        mechanism = mechanism_for(noise, n)
        sums, offset = mechanism._lattice.sums(counts), mechanism._offset(counts)
        decoded = mechanism._decoded(sums, offset)
        exact = [
            sum(c * Fraction(x) for c, x in zip(counts, column, strict=True)) / n
            for column in points.T.tolist()
        ]
        slack = mechanism.rounding_bias + 4 * np.finfo(float).eps * np.abs(points).max(axis=0)
        assert (np.abs(decoded - np.array(exact, dtype=float)) <= slack).all()
        assert (mechanism.rounding_bias <= 1e-9 * np.abs(points).max()).all()


def test_decoding_many_components_is_the_truth():
    rng = np.random.default_rng(2)
    points, counts = (
        rng.normal(size=(3000, 2)) * [1, 1e6],
        rng.integers(0, 1000, size=3000).tolist(),
    )
    graph = public(nx.empty_graph(3000))
    graph.add_edges_from([(0, 1), (7, 9)])
    mechanism = mechanism_for(solve(FiniteSet(points), graph), sum(counts))
    decoded = mechanism._decoded(mechanism._lattice.sums(counts), mechanism._offset(counts))
    exact = [
        sum(c * Fraction(x) for c, x in zip(counts, column, strict=True))
        for column in points.T.tolist()
    ]
    assert (
        np.abs(decoded - np.array([x / sum(counts) for x in exact], dtype=float))
        <= mechanism.rounding_bias
    ).all()


@noisy
def test_what_is_not_noised_is_the_same_for_all_data_in_the_same_components(name):
    noise = NOISES[name]
    mechanism, counts = mechanism_for(noise), counts_for(noise)
    for component in nx.connected_components(GRAPHS[name]):
        for i, j in itertools.permutations(sorted(component), 2):
            if counts[i]:
                moved = counts.copy()
                moved[i] -= 1
                moved[j] += 1
                np.testing.assert_array_equal(mechanism._offset(moved), mechanism._offset(counts))


@pytest.mark.parametrize("components", [[0, 0, 1], [0, 1, 2]])
def test_forged_components_publish_nothing_more(components):
    noise = solve(FiniteSet(np.eye(3)), nx.path_graph(3))
    forged = gn.results.PolicyGraph(noise.neighbors.edges, np.array(components))
    mechanism = mechanism_for(dataclasses.replace(noise, neighbors=forged), 10)
    np.testing.assert_array_equal(mechanism._offset([5, 3, 2]), mechanism._offset([5, 4, 1]))
    assert mechanism._lattice.strategy == mechanism_for(noise, 10)._lattice.strategy


@noisy
def test_replacement_at_distance_k_costs_at_most_k_squared(name):
    noise = NOISES[name]
    mechanism, counts = mechanism_for(noise), counts_for(noise)
    before = mechanism._lattice.sums(counts)
    stated, scale = mechanism._lattice.query.sensitivity_squared, Fraction(mechanism._lattice.scale)
    for i, reached in nx.all_pairs_shortest_path_length(GRAPHS[name]):
        for j, k in reached.items():
            if counts[i]:
                moved = counts.copy()
                moved[i] -= 1
                moved[j] += 1
                after = mechanism._lattice.sums(moved)
                change = sum((a - b) ** 2 for a, b in zip(after, before, strict=True))
                assert change <= k**2 * stated
                # the exact divergence of the discrete Gaussian
                assert Fraction(change) / (2 * scale**2) <= Fraction(k**2) / 2


def test_releases_scatter_about_the_truth_in_every_component():
    noise = NOISES["far parts"]
    mechanism, counts = mechanism_for(noise), [2, 1, 0, 3, 4, 2]
    rng = np.random.default_rng(3)
    drawn = np.array([mechanism.simulate(None, rng, counts=counts).estimate for _ in range(600)])
    errors = drawn - np.array(counts) @ noise.domain.points / 12
    z = errors @ np.linalg.pinv(mechanism.covariance.factor(), rcond=1e-9).T
    # five standard errors of a mean and of a mean square
    assert (np.abs(z.mean(axis=0)) < 5 / math.sqrt(600)).all()
    assert (np.abs(np.square(z).mean(axis=0) - 1) < 5 * math.sqrt(2 / 600)).all()


def test_a_release_names_its_policy():
    release = mechanism_for(NOISES["path"]).release(counts=counts_for(NOISES["path"]))
    assert release.privacy["neighbors"] == "policy graph with 5 edges on 6 points"
    assert release.privacy["published_exactly"] == "number of records"
    parts = mechanism_for(NOISES["disconnected"]).release(counts=counts_for(NOISES["disconnected"]))
    assert (
        parts.privacy["published_exactly"]
        == "number of records in each component of the policy graph"
    )


@pytest.mark.parametrize("moved", [1, 3, 2**52])
def test_beyond_53_bits_no_more_than_the_components_sizes_come_out_exactly(moved):
    """The second coordinate is the same in a whole component, so no noise is drawn for it."""
    graph = nx.Graph([(0, 1), (2, 3)])
    graph.graph["components"] = "public"
    with pytest.warns(PolicyWarning):
        noise = gn.optimal_noise(
            FiniteSet([[0.0, 1.0], [1.0, 1.0], [0.0, 2.0], [1.0, 2.0]]), neighbors=graph
        )
    large = 2**53 + 2
    mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.5), n=large + 10)
    exact = [mechanism.release(counts=[large - k, k, 10, 0]).estimate[1] for k in (0, moved)]
    assert exact[0] == exact[1]
    assert exact[0] == pytest.approx((large + 20) / (large + 10), rel=1e-15)


def test_a_policy_protects_means_of_a_public_number_of_records():
    with pytest.raises(ParameterError, match="n public records"):
        gn.GaussianMechanism(NOISES["path"], gn.zCDP(0.5))


def test_listed_differences_are_one_for_each_edge():
    target = covered(CLOUD, NOISES["path"].problem)
    assert sorted(map(tuple, target.rows.tolist())) == [(i, i + 1) for i in range(5)]
    np.testing.assert_array_equal(
        target.points, CLOUD.points[target.rows[:, 0]] - CLOUD.points[target.rows[:, 1]]
    )
