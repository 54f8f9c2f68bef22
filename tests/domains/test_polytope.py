"""Polytope: vertices from halfspaces, against rational brute force; cuts of graphs; centers and
differences.
"""

import itertools
import math
from fractions import Fraction

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from domains import DomainTooLargeError, InvalidDomainError, Polytope
from domains.oracles import vertices as enumeration


def solve(rows, bounds):
    """Return the unique solution of a square rational system, or None."""
    n = len(rows)
    table = [[*row, bound] for row, bound in zip(rows, bounds, strict=True)]
    for column in range(n):
        pivot = next((i for i in range(column, n) if table[i][column]), None)
        if pivot is None:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        table[column] = [x / table[column][column] for x in table[column]]
        for i in range(n):
            if i != column:
                table[i] = [
                    x - table[i][column] * y for x, y in zip(table[i], table[column], strict=True)
                ]
    return tuple(row[-1] for row in table)


def brute_force(A, b):
    """Return all vertices of {x : A x <= b}, from every d of the hyperplanes, in rationals."""
    rows = [[Fraction(float(x)) for x in row] for row in A]
    bounds = [Fraction(float(x)) for x in b]
    found = set()
    for some in itertools.combinations(range(len(rows)), len(rows[0])):
        x = solve([rows[i] for i in some], [bounds[i] for i in some])
        if x is not None and all(
            sum(a * y for a, y in zip(row, x, strict=True)) <= bound
            for row, bound in zip(rows, bounds, strict=True)
        ):
            found.add(x)
    return {tuple(float(y) + 0.0 for y in x) for x in found}


def listed(K):
    return {tuple(x) for x in K.vertices}


def box(d):
    return np.vstack([np.eye(d), -np.eye(d)])


@settings(derandomize=True, max_examples=100, deadline=None)
@given(st.data())
def test_vertices_agree_with_rational_brute_force(data):
    """Small integers make parallel, repeated, redundant and degenerate inequalities, and flat and
    empty sets.
    """
    d = data.draw(st.integers(1, 3))
    entries = st.integers(-2, 2)
    rows = data.draw(st.lists(st.tuples(*[entries] * (d + 1)), min_size=1, max_size=7))
    width = data.draw(st.integers(1, 3))
    A = np.vstack([box(d), np.array([row[1:] for row in rows])])
    b = np.concatenate([np.full(2 * d, width), [row[0] for row in rows]])
    expected = brute_force(A, b)
    if not expected:
        with pytest.raises(InvalidDomainError, match="nonempty"):
            Polytope.from_halfspaces(A, b)
    else:
        assert listed(Polytope.from_halfspaces(A, b)) == expected


@pytest.mark.parametrize(("d", "m"), [(2, 12), (3, 10), (4, 6), (5, 3)])
def test_vertices_of_general_polytopes_agree_with_brute_force(d, m):
    for k in range(2 if d < 4 else 1):
        rng = np.random.default_rng(k)
        A, b = (
            np.vstack([rng.normal(size=(m, d)), box(d)]),
            np.append(rng.uniform(0.5, 1, m), np.full(2 * d, 2.0)),
        )
        assert listed(Polytope.from_halfspaces(A, b)) == brute_force(A, b)


@pytest.mark.parametrize("d", [1, 2, 5, 8])
def test_cubes_and_cross_polytopes(d):
    corners = set(itertools.product([-1.0, 1.0], repeat=d))
    assert listed(Polytope.from_halfspaces(box(d), np.ones(2 * d))) == corners
    cross = Polytope.from_halfspaces(sorted(corners), np.ones(2**d))
    assert listed(cross) == {tuple(x + 0.0) for x in box(d)}
    assert cross.is_symmetric


def test_birkhoff_polytope_is_flat_and_degenerate():
    """Doubly stochastic 3 × 3 matrices: the permutation matrices (Birkhoff 1946; von
    Neumann 1953).
    """
    sums = np.vstack([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))])
    K = Polytope.from_halfspaces(np.vstack([sums, -sums, -np.eye(9)]), [1] * 6 + [-1] * 6 + [0] * 9)
    assert listed(K) == {
        tuple(np.eye(3)[list(p)].ravel()) for p in itertools.permutations(range(3))
    }


def test_a_point_and_a_segment():
    assert listed(Polytope.from_halfspaces([[1, 1], [-1, -1], [-1, 0], [0, -1]], np.zeros(4))) == {
        (0.0, 0.0)
    }
    assert listed(Polytope.from_halfspaces([[2], [-4], [1]], [3, 2, 9])) == {(-0.5,), (1.5,)}


def test_thin_and_far_polytopes_keep_all_vertices():
    K = Polytope.from_halfspaces(box(2), [1, 1e-13, 1, 0])
    assert listed(K) == {(s, t) for s in (-1.0, 1.0) for t in (0.0, 1e-13)}
    assert len(Polytope.from_halfspaces(box(3), [1e6 + 1e-9] * 3 + [-1e6] * 3).vertices) == 8
    assert len(Polytope.from_halfspaces(box(2), np.full(4, 1e308)).vertices) == 4
    assert len(Polytope.from_halfspaces(box(2), np.full(4, 1e-310)).vertices) == 4


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e150])
def test_inequalities_may_be_scaled(scale):
    factors = scale * np.array([1.0, 3.0, 7.0])
    K = Polytope.from_halfspaces(
        np.array([[-1, 0], [0, -1], [1, 1]]) * factors[:, None], factors * [0, 0, 1]
    )
    np.testing.assert_allclose(K.vertices, [[0, 0], [0, 1], [1, 0]], atol=1e-15)


def test_supports_agree_with_linear_programs():
    rng = np.random.default_rng(3)
    A, b = rng.normal(size=(20, 6)), np.ones(20)
    K = Polytope.from_halfspaces(A, b)
    assert len(K.vertices) > 100
    for theta in rng.normal(size=(30, 6)):
        found = linprog(-theta, A_ub=A, b_ub=b, bounds=(None, None))
        assert K.support(theta) == pytest.approx(-found.fun, rel=1e-9)


def test_every_edge_leads_to_listed_vertices():
    """A simple polytope whose vertices each have d neighbours in the list has no others: its graph
    is connected.
    """
    rng = np.random.default_rng(4)
    A, b = rng.normal(size=(18, 7)), np.ones(18)
    V = Polytope.from_halfspaces(A, b).vertices
    active = [frozenset(np.flatnonzero(np.abs(A @ x - b) < 1e-9)) for x in V]
    assert all(len(rows) == 7 for rows in active)
    edges = {}
    for rows in active:
        for left in rows:
            edges[rows - {left}] = edges.get(rows - {left}, 0) + 1
    assert set(edges.values()) == {2}


def test_vertices_that_rounding_multiplies_are_merged():
    """Five planes through a point, up to rounding: several vertices within 1e-15 of each other."""
    angles = 2 * np.pi * np.arange(5) / 5
    A = np.column_stack([np.cos(angles), np.sin(angles), np.ones(5)])
    K = Polytope.from_halfspaces(np.vstack([A, [[0, 0, -1]]]), [1] * 5 + [0])
    assert len(K.vertices) == 6


def test_redundant_inequalities_do_not_spoil_the_order():
    d = 40
    A = np.vstack([-np.eye(d), np.eye(d), np.ones((1, d))])
    K = Polytope.from_halfspaces(A, [0] * d + [1] * (d + 1))
    assert listed(K) == {tuple(x) for x in np.vstack([np.zeros(d), np.eye(d)])}


@pytest.mark.parametrize(
    ("A", "b"),
    [
        ([[1.0], [-1.0]], [0.0, -1.0]),
        ([[1.0], [-1.0]], [0.3, -(0.1 + 0.2)]),
        ([[0.0, 0.0], [1, 0], [-1, 0], [0, 1], [0, -1]], [-1.0, 1, 1, 1, 1]),
        ([[-1, 0], [0, -1], [1, 1]], [0, 0, -1]),
        ([[1, 0], [-1, 0], [0, 1]], [0, -1, 0]),
    ],
)
def test_empty_sets_are_refused(A, b):
    with pytest.raises(InvalidDomainError, match="expected a nonempty set"):
        Polytope.from_halfspaces(A, b)


@pytest.mark.parametrize(
    ("A", "b", "direction"),
    [
        ([[-1, 0], [0, -1], [1, -1]], [0, 0, 3], r"\((0|1), 1\)"),
        ([[1, 0], [-1, 0]], [1, 1], r"\(0, 1\)"),
        ([[-2.0]], [0.0], r"\(1\)"),
        ([[0.0]], [1.0], r"\(1\)"),
        (np.zeros((0, 2)), np.zeros(0), r"\("),
        (np.eye(20), np.ones(20), r"…"),
        ([[1, 0], [-1, 0], [0, 1], [-1, 1e-300]], [1, 1, 1, 1], r"\(0, -1\)"),
    ],
)
def test_unbounded_sets_are_refused_and_the_direction_named(A, b, direction):
    with pytest.raises(
        InvalidDomainError, match=rf"no inequality stops x in direction .*{direction}"
    ):
        Polytope.from_halfspaces(A, b)


@pytest.mark.parametrize(
    ("A", "b"),
    [([1.0, 2.0], [1.0]), ([[1.0]], [1.0, 2.0]), (np.zeros((2, 0)), [1, 1]), ([[1.0]], 1.0)],
)
def test_halfspaces_have_shapes(A, b):
    with pytest.raises(InvalidDomainError, match=r"expected A of shape \(m, d\)"):
        Polytope.from_halfspaces(A, b)


@pytest.mark.parametrize(("A", "b"), [([[np.nan]], [1]), ([[1], [-1]], [np.inf, 1])])
def test_halfspaces_are_finite(A, b):
    with pytest.raises(InvalidDomainError, match="NaN or infinity"):
        Polytope.from_halfspaces(A, b)


def test_vertices_beyond_doubles_are_refused():
    with pytest.raises(InvalidDomainError, match="largest double"):
        Polytope.from_halfspaces([[1e-300], [-1.0]], [1e300, 0.0])


def test_large_boxes_are_refused_at_once_with_a_hint():
    with pytest.raises(DomainTooLargeError, match=r"2\^30 = 1\.07e\+09 vertices.*Zonotope"):
        Polytope.from_halfspaces(box(30), np.ones(60))
    with pytest.raises(InvalidDomainError, match="nonempty"):
        Polytope.from_halfspaces(box(30), -np.ones(60))


def test_what_is_too_large_is_refused_with_an_estimate(monkeypatch):
    monkeypatch.setattr(enumeration, "_RAYS", 100)
    A = np.random.default_rng(0).normal(size=(20, 7))
    with pytest.raises(
        DomainTooLargeError, match=r"20 halfspaces in R\^7 can have up to 1\.12e\+03 vertices"
    ):
        Polytope.from_halfspaces(A, np.ones(20))


def test_upper_bound_theorem():
    """The bound is attained by polygons, simple 3-polytopes (2m − 4) and duals of cyclic polytopes
    (Gale's evenness condition).
    """

    def cyclic_facets(m, d):
        gaps = lambda facet, i, j: sum(i < k < j for k in facet)  # noqa: E731
        facets = itertools.combinations(range(m), d)
        rest = [
            [i for i in range(m) if i not in facet] for facet in itertools.combinations(range(m), d)
        ]
        return sum(
            all(gaps(facet, i, j) % 2 == 0 for i, j in itertools.combinations(out, 2))
            for facet, out in zip(facets, rest, strict=True)
        )

    for d, m in [(2, 7), (3, 8), (4, 8), (5, 9), (6, 9)]:
        assert enumeration.most_vertices(m, d) == cyclic_facets(m, d)
    assert all(enumeration.most_vertices(2 * d, d) >= 2**d for d in range(1, 20))


# vertices


@pytest.mark.parametrize(
    "vertices", [[], [[]], [1.0, 2.0], 3.0, np.zeros((2, 2, 2)), np.zeros((0, 3)), np.zeros((3, 0))]
)
def test_vertices_must_be_a_nonempty_table(vertices):
    with pytest.raises(InvalidDomainError, match=r"shape \(N, d\)"):
        Polytope(vertices)


@pytest.mark.parametrize("bad", [np.nan, np.inf, "x"])
def test_vertices_must_be_finite_numbers(bad):
    with pytest.raises(InvalidDomainError, match="Polytope: expected"):
        Polytope([[0.0, bad]])


def test_repr_shows_the_size_and_no_numbers():
    assert repr(Polytope([[123.0, 4.0]])) == "Polytope(1 vertices in R^2)"


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_membership_agrees_with_linear_programs(k, d):
    rng = np.random.default_rng(k)
    V = rng.integers(-2, 3, size=(rng.integers(1, 9), d)).astype(float)
    x = rng.integers(-2, 3, size=d) / 2
    equations = np.vstack([V.T, np.ones(len(V))])
    found = linprog(np.zeros(len(V)), A_eq=equations, b_eq=np.append(x, 1.0))
    assert Polytope(V).contains(x) == (found.status == 0)


def test_membership_has_slack_for_rounding_only():
    K = Polytope(np.eye(3))
    assert K.contains(np.full(3, 1 / 3))
    assert K.contains(np.full(3, (1 - 1e-10) / 3))
    assert not K.contains(np.full(3, (1 - 1e-7) / 3))


def test_center_is_known_where_it_is_exact():
    hexagon = np.array([[2.0, 0], [1, 2], [-1, 2], [-2, 0], [-1, -2], [1, -2]])
    np.testing.assert_array_equal(Polytope(hexagon)._center(), [0, 0])
    np.testing.assert_array_equal(Polytope(hexagon + np.array([3, 0.5]))._center(), [3, 0.5])
    np.testing.assert_array_equal(Polytope([[7.0, -1.0]])._center(), [7, -1])
    np.testing.assert_array_equal(Polytope([[1.0], [2.0], [2.0]])._center(), [1.5])
    assert Polytope(hexagon[:5])._center() is None
    assert Polytope([[1.0], [1.5], [2.5]])._center() is None
    assert Polytope([[0.1], [0.2]])._center() is not None or 0.1 + 0.2 != Fraction(0.1) + Fraction(
        0.2
    )
    # symmetric about 0.15 only up to the last bit
    assert Polytope([[0.0], [0.1], [0.2], [0.1 + 0.2]])._center() is None
    assert Polytope([[-1e308], [1.7e308]])._center() is not None
    assert Polytope([[1.7e308], [1.6e308]])._center() is None


@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_difference_of_a_centrally_symmetric_polytope_is_twice_itself(shift):
    V = np.array([[1.0, 0], [0, 2], [-1, 0], [0, -2]])
    K = Polytope(V + shift)
    assert isinstance(K - K, Polytope)
    assert listed(K - K) == listed(Polytope(2 * V + 0.0))


def test_difference_of_few_vertices_lists_pairs_and_is_symmetric():
    V = np.random.default_rng(1).normal(size=(9, 3))
    K = Polytope(V)
    D = K - K
    assert isinstance(D, Polytope)
    assert D.is_symmetric
    for theta in np.random.default_rng(2).normal(size=(20, 3)):
        assert D.support(theta) == pytest.approx(np.ptp(V @ theta))


def test_difference_of_many_vertices_is_left_to_oracles():
    V = np.random.default_rng(1).normal(size=(100, 3))
    K = Polytope(V)
    D = K - K
    assert not isinstance(D, Polytope)
    assert D.support([1.0, 2.0, 3.0]) == pytest.approx(np.ptp(V @ [1, 2, 3]))


def test_image_has_the_vertices_as_translates():
    V = np.random.default_rng(1).normal(size=(9, 3))
    image = Polytope(V)._image()
    assert image.matrix.shape == (3, 0)
    np.testing.assert_array_equal(image.offsets, V)
    H = np.diag([1.0, 2.0, 3.0])
    exact = Polytope(V).max_quadratic(H, V[0])
    assert image.max_quadratic(H, V[0]).upper_bound == pytest.approx(exact.value)
    assert Polytope(np.zeros((10**4, 1)))._image() is None


# cuts


def every_cut(graph):
    nodes = list(graph)
    for sides in itertools.product([0, 1], repeat=len(nodes)):
        side = dict(zip(nodes, sides, strict=True))
        yield tuple(float(side[u] != side[v]) for u, v in graph.edges())


@pytest.mark.parametrize(
    "graph",
    [
        networkx.complete_graph(5),
        networkx.cycle_graph(6),
        networkx.path_graph(4),
        networkx.Graph([("b", "a"), (3, "x"), (3, 4), ("x", 4)]),
        networkx.disjoint_union(networkx.complete_graph(3), networkx.empty_graph(2)),
        networkx.MultiGraph([(0, 1), (1, 2)]),
    ],
    ids=lambda graph: f"{len(graph)} nodes",
)
def test_cuts_agree_with_brute_force(graph):
    K = Polytope.cuts(graph)
    assert listed(K) == set(every_cut(graph))
    assert (
        len(K.vertices)
        == 2 ** (len(graph) - networkx.number_connected_components(graph))
        == len(listed(K))
    )


def test_cuts_of_planar_graphs_obey_and_fill_the_cycle_inequalities():
    """The cut polytope of K4 is the metric polytope: 16 triangle inequalities (Deza & Laurent 1997,
    §27).
    """
    rows, bounds = [], []
    edges = list(networkx.complete_graph(4).edges())
    for triangle in itertools.combinations(range(4), 3):
        sides = [edges.index(e) for e in itertools.combinations(triangle, 2)]
        for signs, bound in [((1, 1, 1), 2), ((1, -1, -1), 0), ((-1, 1, -1), 0), ((-1, -1, 1), 0)]:
            row = np.zeros(6)
            row[sides] = signs
            rows.append(row)
            bounds.append(bound)
    assert listed(Polytope.from_halfspaces(rows, bounds)) == listed(
        Polytope.cuts(networkx.complete_graph(4))
    )


def test_largest_cut_is_found():
    graph = networkx.petersen_graph()
    assert Polytope.cuts(graph).support(np.ones(15)) == 12


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (networkx.DiGraph([(0, 1)]), "undirected"),
        ([(0, 1)], "undirected networkx graph, got list"),
        (networkx.Graph([(0, 1), (1, 1)]), "self-loops"),
        (networkx.MultiGraph([(0, 1), (1, 0)]), "parallel"),
        (networkx.empty_graph(3), "at least one edge"),
    ],
)
def test_other_graphs_are_refused(graph, message):
    with pytest.raises(InvalidDomainError, match=message):
        Polytope.cuts(graph)


def test_large_graphs_are_refused_with_an_estimate():
    with pytest.raises(DomainTooLargeError, match=r"2\^59 cuts × 1770 edges need 8\.16e\+12 GB"):
        Polytope.cuts(networkx.complete_graph(60))
    assert math.isclose(2**59 * 1770 * 8 / 1e9, 8.16e12, rel_tol=1e-2)
