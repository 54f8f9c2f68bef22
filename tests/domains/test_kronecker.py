"""Kronecker products of bodies: what the search for support points may miss is never a proof."""

import itertools

import numpy as np
import pytest

import gaussnoise as gn
from domains import (
    DomainTooLargeError,
    Ellipsoid,
    FiniteSet,
    LpBall,
    Zonotope,
    hull,
    kron,
)
from domains.algebra.products import Kronecker
from domains.oracles.distance import bounding_box, is_near, reach_of


def random_body(rng, dim):
    center = rng.normal(size=dim) * rng.choice([0, 0, 1, 3])
    F = rng.normal(size=(dim, dim))
    G = rng.normal(size=(dim, dim + 1))
    kinds = [
        lambda: Ellipsoid(F @ F.T, center),
        lambda: Zonotope(np.vstack([F, G.T[:1]]), center),
        lambda: LpBall(dim, float(rng.choice([1.5, 2, 3]))) + center,
        lambda: G @ LpBall(dim + 1, float(rng.choice([1.5, 4]))) + center,
        lambda: hull(LpBall(dim, 2), FiniteSet(2 * rng.normal(size=(3, dim)))) + center,
    ]
    return kinds[rng.integers(len(kinds))]()


def symmetric_body(rng, dim):
    F, G = rng.normal(size=(dim, dim)), rng.normal(size=(dim, dim + 1))
    kinds = [
        lambda: Ellipsoid(F @ F.T),
        lambda: Zonotope(F),
        lambda: LpBall(dim, float(rng.choice([1.5, 2, 3]))),
        lambda: G @ LpBall(dim + 1, 4),
    ]
    return kinds[rng.integers(len(kinds))]()


def member_of(rng, K):
    points = np.array([K.support_point(rng.normal(size=K.dim)) for _ in range(3)])
    return points[0] if rng.random() < 0.4 else rng.dirichlet(np.ones(3)) @ points


def extreme_points(rng, K, count=200):
    return np.array([K.support_point(theta) for theta in rng.normal(size=(count, K.dim))])


def told(K, x):
    try:
        return K.contains(x)
    except DomainTooLargeError:
        return None


def above(K, theta):
    return float(theta @ K.support_point(theta)) + K._support_gap(theta)


def test_products_of_members_are_never_outside():
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(15):
        K, L = random_body(rng, 2), random_body(rng, rng.integers(2, 4))
        B, x = kron(K, L), np.kron(member_of(rng, K), member_of(rng, L))
        assert isinstance(B, Kronecker)
        c, v = rng.normal(), rng.normal(size=B.dim)
        made = [(B, x), (c * B + v, c * x + v)]
        inside += [told(domain, y) for domain, y in made]
    assert False not in inside
    assert inside.count(True) >= 0.9 * len(inside)


def test_products_a_little_beyond_the_boundary_are_never_inside():
    """Of symmetric bodies, x ⊗ y is largest along a ⊗ b if x and y are along a and b."""
    rng = np.random.default_rng(4)
    in_box = 0
    for _ in range(12):
        K, L = (symmetric_body(rng, dim) for dim in (2, int(rng.integers(2, 4))))
        B = kron(K, L)
        top = np.kron(*(k.support_point(rng.normal(size=k.dim)) for k in (K, L)))
        low, high = bounding_box(B)
        for beyond in (1.001, 1.1):
            in_box += bool(((low <= beyond * top) & (beyond * top <= high)).all())
            assert told(B, beyond * top) is not True
        assert told(B, top) is not False
    assert in_box >= 6  # or the box alone would exclude them


def test_support_is_bracketed_and_the_bracket_is_of_use():
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(8):
        K, L = random_body(rng, 2), random_body(rng, 3)
        B, A = kron(K, L), rng.normal(size=(4, 6))
        X, Y = extreme_points(rng, K), extreme_points(rng, L)
        products = np.einsum("ni,mj->nmij", X, Y).reshape(-1, 6)
        v = rng.normal(size=4)
        for domain, points in (
            (B, products),
            (A @ B + v, products @ A.T + v),
            (hull(B, -2.0 * B), np.vstack([products, -2 * products])),
        ):
            theta = rng.normal(size=domain.dim)
            values = points @ theta
            assert values.max() <= above(domain, theta) + 1e-9 * np.ptp(values)
            shares.append((above(domain, theta) - values.max()) / np.ptp(values))
            low, high = bounding_box(domain)
            size = np.ptp(points, axis=0).max()
            assert (points.max(axis=0) <= high + 1e-9 * size).all()
            assert (points.min(axis=0) >= low - 1e-9 * size).all()
    assert np.quantile(shares, 0.5) <= 0.05
    assert max(shares) <= 0.5


@pytest.mark.parametrize("seed", range(4))
def test_support_is_exact_for_ellipsoids_and_for_rank_one(seed):
    rng = np.random.default_rng(seed)
    F, G, theta = rng.normal(size=(2, 2)), rng.normal(size=(3, 3)), rng.normal(size=6)
    B = kron(Ellipsoid(F @ F.T), Ellipsoid(G @ G.T))
    largest = np.linalg.norm(F.T @ theta.reshape(2, 3) @ G, 2)
    assert B.support(theta) == pytest.approx(largest, rel=1e-12)
    assert above(B, theta) == pytest.approx(largest, rel=1e-12)
    K, L = random_body(rng, 2), random_body(rng, 3)
    u, v = rng.normal(size=2), rng.normal(size=3)
    ends = itertools.product([K.support(u), -K.support(-u)], [L.support(v), -L.support(-v)])
    largest = max(x * y for x, y in ends)
    size = np.abs(u).max() * np.abs(v).max()
    B = kron(K, L)
    assert B.support(np.kron(u, v)) == pytest.approx(largest, rel=1e-9, abs=1e-9 * size)
    assert above(B, np.kron(u, v)) == pytest.approx(largest, rel=1e-9, abs=1e-9 * size)


def test_a_direction_without_proof_excludes_nobody(monkeypatch):
    """The search is made to stop early: without the bound, true members would be outside."""
    square = Zonotope(np.eye(2))
    B = kron(square, square + np.array([0.5, 0.2]))
    known = Kronecker._support_point
    monkeypatch.setattr(Kronecker, "_support_point", lambda self, t: 0.3 * known(self, t))
    monkeypatch.setattr(Kronecker, "_product_near", lambda self, x: None)
    x = np.kron([1.0, 1.0], [1.5, 1.2])
    assert told(B, x) is not False
    assert told(B, 10 * x) is False
    monkeypatch.setattr(Kronecker, "_support_gap", lambda self, t: 0.0)
    assert told(B, x) is False


def test_points_outside_are_told_where_this_is_proven():
    rng = np.random.default_rng(3)
    told_outside = 0
    for _ in range(10):
        K, L = random_body(rng, 2), random_body(rng, 2)
        B = kron(K, L)
        points = np.einsum(
            "ni,mj->nmij", extreme_points(rng, K, 40), extreme_points(rng, L, 40)
        ).reshape(-1, 4)
        theta = rng.normal(size=4)
        top = points[np.argmax(points @ theta)]
        far = top + 0.7 * np.ptp(points @ theta) * theta / (theta @ theta)
        answer = told(B, far)
        assert answer is not True
        told_outside += answer is False
    assert told_outside >= 9
    disc = kron(LpBall(2, 2), LpBall(2, 2))
    edge = np.kron([1.0, 0.0], [0.0, 1.0])
    assert disc.contains(edge)
    assert disc.contains(edge * (1 + 1e-10))
    assert not disc.contains(edge * (1 + 1e-8))
    assert not is_near(disc, np.eye(2).ravel())  # the trace norm is two


@pytest.mark.parametrize(
    ("t", "angle"),
    [(0.5, 0), (1e-2, 0), (1e-3, 0), (1e-4, 0), (1e-5, 0), (1e-6, 0), (0.5, 0.7), (0.1, 0.7)],
)
def test_products_of_thin_ellipses_have_their_optimum(t, angle):
    c, s = np.cos(angle), np.sin(angle)
    F = np.array([[c, -s], [s, c]]) @ np.diag([1.0, t])
    noise = gn.optimal_noise(
        kron(Ellipsoid(F @ F.T), Ellipsoid(F @ F.T)), 2, neighbors="add-remove"
    )
    assert noise.gamma_lower <= (1 + t**2) * (1 + 1e-11)
    assert 1 + t**2 <= noise.gamma <= (1 + t**2) * (1 + 1e-6)


def test_the_bound_holds_for_factors_that_are_products_themselves(monkeypatch):
    """The search is made to stop early: the reach of a factor counts what the search may miss."""
    rng = np.random.default_rng(5)
    known = Kronecker._support_point
    monkeypatch.setattr(Kronecker, "_support_point", lambda self, t: 0.01 * known(self, t))
    for _ in range(4):
        K, L, M = random_body(rng, 2), random_body(rng, 2), random_body(rng, 2)
        A = rng.normal(size=(2, 4))
        inner = np.einsum("ni,mj->nmij", extreme_points(rng, K, 40), extreme_points(rng, L, 40))
        pairs = inner.reshape(-1, 4) @ A.T, extreme_points(rng, M, 40)
        points = np.einsum("ni,mj->nmij", *pairs).reshape(-1, 4)
        nearly = np.outer(rng.normal(size=2), rng.normal(size=2)) + 0.1 * rng.normal(size=(2, 2))
        for theta in (nearly.ravel(), rng.normal(size=4)):
            values = points @ theta
            assert values.max() <= above(kron(A @ kron(K, L), M), theta) + 1e-9 * np.ptp(values)
        assert (np.abs(pairs[0]).max(axis=0) <= reach_of(A @ kron(K, L)) * (1 + 1e-9)).all()
