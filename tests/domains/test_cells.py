"""The farthest vertex of a zonotope: against every sign pattern, hulls, and zonogons."""

import itertools
import math

import numpy as np
import pytest
import scipy.spatial
from cases import one_test_of

import domains.oracles.cells as cells
from domains import Zonotope
from domains.oracles.cells import farthest_vertex

KINDS = {
    "in general position": lambda rng, r, n: rng.normal(size=(r, n)),
    "of small integers": lambda rng, r, n: rng.integers(-1, 2, size=(r, n)).astype(float),
    "all but one in a hyperplane": lambda rng, r, n: np.vstack(
        [rng.normal(size=(r - 1, n)), np.eye(1, n)]
    ),
    "flat": lambda rng, r, n: rng.normal(size=(r, 2)) @ rng.normal(size=(2, n)),
    "nearly flat": lambda rng, r, n: (
        (10.0 ** -np.arange(0, 3 * r, 3))[:, None] * rng.normal(size=(r, n))
    ),
    "nearly parallel": lambda rng, r, n: np.ones((r, 1)) + 1e-5 * rng.normal(size=(r, n)),
    "parallel up to rounding": lambda rng, r, n: np.ones((r, 1)) + 1e-15 * rng.normal(size=(r, n)),
    "of very different lengths": lambda rng, r, n: (
        rng.normal(size=(r, n)) * 10.0 ** rng.uniform(-9, 0, n)
    ),
}


def every_sign(G):
    """All points G x up to their sign, by brute force."""
    x = np.array(list(itertools.product([1.0, -1.0], repeat=G.shape[1] - 1)))
    return G[:, 0] + x @ G[:, 1:].T


def longest(G):
    return float(np.square(every_sign(G)).sum(axis=1).max())


def short(G):
    """By how much the answer falls short of brute force, relatively; 0 where it is None."""
    found = farthest_vertex(G)
    if found is None:
        return 0.0
    x, lost = found
    assert (np.abs(x) == 1).all()
    return 1 - (float(np.linalg.norm(G @ x)) + 2 * lost) ** 2 / longest(G)


@one_test_of("kind", list(KINDS))
def test_no_sign_pattern_is_longer(kind):
    rng = np.random.default_rng(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "_FEW", 0)  # so that rays are followed, not all signs tried
        for r in (2, 3, 4, 5):
            for n in (9, 12):
                assert short(KINDS[kind](rng, r, n)) <= 1e-12


@one_test_of("kind", list(KINDS))
def test_nothing_is_missed_where_rounding_decides_signs(kind, monkeypatch):
    monkeypatch.setattr(cells, "_FEW", 0)
    monkeypatch.setattr(cells, "EPS", 1e-5)  # determinants up to 0.004 count as doubtful
    rng = np.random.default_rng(1)
    for r in (2, 3):
        for _ in range(3):
            assert short(KINDS[kind](rng, r, 11)) <= 1e-12


def test_the_check_has_power(monkeypatch):
    """Directions moved by more than their margins lose vertices, and so do wrong normals."""
    monkeypatch.setattr(cells, "_FEW", 0)
    draws = [np.random.default_rng(s).normal(size=(3, 11)) for s in range(10)]
    assert max(map(short, draws)) <= 1e-12
    with monkeypatch.context() as patch:
        patch.setattr(cells, "_SHARE", 8.0)
        assert max(map(short, draws)) > 1e-3
    monkeypatch.setattr(cells, "_normals", lambda vectors: np.ones((len(vectors), 3)))
    assert max(map(short, draws)) > 1e-3


def test_normals_are_orthogonal_and_give_determinants():
    rng = np.random.default_rng(2)
    for r in (1, 2, 3, 4, 6):
        vectors, row = rng.normal(size=(5, r - 1, r)), rng.normal(size=r)
        normals = cells._normals(vectors)
        np.testing.assert_allclose(np.einsum("cir,cr->ci", vectors, normals), 0, atol=1e-12)
        expected = [abs(np.linalg.det(np.vstack([row, some]))) for some in vectors]
        np.testing.assert_allclose(np.abs(normals @ row), expected, rtol=1e-10, atol=1e-12)


def test_the_vertices_are_those_of_the_convex_hull():
    """In general position 13 generators in R³ have 13·12 + 2 vertices."""
    G = np.random.default_rng(3).normal(size=(3, 13))
    points = every_sign(G)
    points = np.vstack([points, -points])
    vertices = points[scipy.spatial.ConvexHull(points).vertices]
    assert len(vertices) == 13 * 12 + 2
    for H in (np.diag([1.0, 1e-3, 1e-3]), np.diag([1.0, 1.0, 1e-6]), np.eye(3)):
        found = Zonotope(G.T).max_quadratic(H)
        best = np.einsum("ij,jk,ik->i", vertices, H, vertices).max()
        assert found.value == found.upper_bound == pytest.approx(best, rel=1e-12)


def test_grids_of_integers_in_many_copies():
    """Three copies of the 13 lines through a cube's neighbours: 39 generators, 9 in each plane."""
    lines = [x for x in itertools.product([-1.0, 0.0, 1.0], repeat=3) if x > (0, 0, 0)]
    grid = np.array(lines).T
    copies = np.hstack([grid, -2 * grid, grid / 3])
    for W in (np.eye(3), np.diag([1.0, 2.0, 0.1]), np.random.default_rng(4).normal(size=(3, 3))):
        x, lost = farthest_vertex(W @ copies)
        assert lost == 0
        assert np.square(W @ copies @ x).sum() == pytest.approx(
            longest(W @ grid) * (1 + 2 + 1 / 3) ** 2, rel=1e-12
        )


def test_many_generators_in_one_plane():
    """Sixty in a plane and two beside it: a zonogon's vertices with all signs of the two."""
    rng = np.random.default_rng(5)
    flat, beside = rng.normal(size=(2, 60)), rng.normal(size=(3, 2))
    angles = np.arctan2(flat[1], flat[0])
    middles = np.sort(np.mod(np.concatenate([angles, angles + np.pi]) + np.pi / 2, 2 * np.pi))
    middles = (middles + np.append(middles[1:], middles[0] + 2 * np.pi)) / 2
    signs = np.sign(np.column_stack([np.cos(middles), np.sin(middles)]) @ flat)
    corners = np.column_stack([signs @ flat.T, np.zeros(len(signs))])
    best = max(
        np.square(corners + beside @ pair).sum(axis=1).max()
        for pair in itertools.product([-1.0, 1.0], repeat=2)
    )
    found = Zonotope(np.vstack([np.pad(flat.T, ((0, 0), (0, 1))), beside.T])).max_quadratic(
        np.eye(3)
    )
    assert found.value == found.upper_bound == pytest.approx(best, rel=1e-12)


def test_columns_too_short_to_matter_are_added_to_the_bound():
    G = np.random.default_rng(6).normal(size=(3, 30))
    G[:, 25:] *= 1e-16
    x, lost = farthest_vertex(G)
    assert lost == pytest.approx(np.linalg.norm(G[:, 25:], axis=0).sum())
    assert np.square(G @ x).sum() == pytest.approx(np.square(G[:, :25] @ x[:25]).sum())


def test_other_centers_and_several_offsets():
    rng = np.random.default_rng(7)
    G, center = rng.normal(size=(24, 3)), rng.normal(size=3)
    found = Zonotope(G).max_quadratic(np.eye(3), center)
    doubled = longest(np.column_stack([center, G[:12].T]))
    assert found.value == found.upper_bound > doubled
    both = np.column_stack([G.T, center])
    x, _ = farthest_vertex(both)
    assert found.value == pytest.approx(np.square(both @ x).sum(), rel=1e-12)


def test_too_many_vertices_are_left_to_the_relaxation():
    G = np.random.default_rng(8).normal(size=(40, 8))
    assert farthest_vertex(G.T) is None
    assert farthest_vertex(G.T[:3], work=1000) is None
    assert farthest_vertex(np.zeros((3, 2))) is None
    found = Zonotope(G).max_quadratic(np.eye(8))
    assert found.value < found.upper_bound <= math.pi / 2 * found.value
