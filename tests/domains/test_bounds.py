"""Upper ends of quadratic oracles by themselves: oracles return the larger of bound and value.

A good witness would hide a bound that is too low. So each bound is compared here with members
found by other means, and is shown to fall below them if one of its terms is left out.
"""

import numpy as np
import pytest

from domains import FiniteSet, LpBall, Polytope, QuadraticMax, SchattenBall, hull, kron, product
from domains.algebra import products, sums
from domains.algebra.products import _dominance
from domains.oracles.image import LpBlock
from domains.oracles.squared_norm import _trust_region
from domains.sets.lp_ball import _interpolated


def random_form(rng, dim):
    F = rng.normal(size=(dim, dim)) * 10.0 ** rng.integers(-1, 2, size=dim)
    return F @ F.T


def largest(points, form, center):
    moved = points - center
    return float(np.einsum("ij,jk,ik->i", moved, form, moved).max())


def sphere(rng, dim, q=2.0):
    points = rng.normal(size=(20_000, dim))
    return points / np.linalg.norm(points, q, axis=1, keepdims=True)


@pytest.mark.parametrize("distance", [0.0, 0.3, 3.0, 100.0])
def test_the_bound_of_the_ball_is_above_all_its_members_and_near(distance):
    rng = np.random.default_rng(1)
    points = sphere(rng, 3)
    for _ in range(5):
        G, g = rng.normal(size=(4, 3)), distance * rng.normal(size=4)
        best = float(np.square(points @ G.T + g).sum(axis=1).max())
        _, upper = _trust_region(G, g)
        assert best * (1 - 1e-12) <= upper <= best * 1.01


@pytest.mark.parametrize("q", [1.1, 1.5, 1.9])
@pytest.mark.parametrize("distance", [0.0, 1.0, 100.0])
def test_the_bound_between_two_balls_is_above_all_members(q, distance):
    rng = np.random.default_rng(2)
    points = np.vstack([sphere(rng, 3, q), np.eye(3), -np.eye(3)])
    for _ in range(5):
        H, c = random_form(rng, 3), distance * rng.normal(size=3)
        best = largest(np.vstack([points, [LpBall(3, q).support_point(-H @ c)]]), H, c)
        assert best * (1 - 1e-12) <= _interpolated(H, c, LpBlock(3, q)) <= 4 * best


def test_what_bounds_a_form_by_a_product_is_above_it_in_every_direction_and_near():
    rng = np.random.default_rng(3)
    for _ in range(20):
        P, Q, H = random_form(rng, 2), random_form(rng, 3), random_form(rng, 6)
        excess = np.linalg.eigvalsh(_dominance(H, P, Q) * np.kron(P, Q) - H)
        assert excess[0] >= -1e-9 * excess[-1]
        assert np.linalg.eigvalsh(0.99 * _dominance(H, P, Q) * np.kron(P, Q) - H)[0] < 0


def without_a_witness(monkeypatch):
    """Search for no member, so that none hides a bound that is too low."""
    monkeypatch.setattr(
        products,
        "bracket",
        lambda support, H, c, upper, starts: QuadraticMax(starts[0], 0.0, upper),
    )


@pytest.mark.parametrize("distance", [0.0, 1.0, 100.0])
def test_the_bound_of_a_kronecker_product_is_above_all_members(monkeypatch, distance):
    without_a_witness(monkeypatch)
    rng = np.random.default_rng(4)
    points = np.einsum("ni,nj->nij", sphere(rng, 2), sphere(rng, 2)).reshape(-1, 4)
    K = kron(LpBall(2, 2), LpBall(2, 2))
    for _ in range(5):
        H, c = random_form(rng, 4), distance * rng.normal(size=4)
        found, best = K.max_quadratic(H, c), largest(points, H, c)
        assert found.value == 0
        assert best <= found.upper_bound <= 20 * best
    P, Q = random_form(rng, 2), random_form(rng, 2)
    of_product = K.max_quadratic(np.kron(P, Q)).upper_bound
    assert of_product == pytest.approx(np.linalg.norm(P, 2) * np.linalg.norm(Q, 2), rel=1e-3)
    assert of_product >= np.linalg.norm(P, 2) * np.linalg.norm(Q, 2)


def test_the_bound_of_a_sum_is_above_all_its_members(monkeypatch):
    """The farthest point of two unitarily invariant balls is a multiple of a unitary matrix."""
    bounds = []
    known = sums.bracket
    monkeypatch.setattr(sums, "bracket", lambda *given: bounds.append(given[3]) or known(*given))
    (SchattenBall((2, 2), 3) + SchattenBall((2, 2), np.inf)).max_quadratic(np.eye(4))
    farthest = 2 * (1 + 2 ** (-1 / 3)) ** 2
    assert farthest * (1 - 1e-12) <= bounds[0] <= 2 * farthest


def pear():
    """Return a body without center that is no image of a ball, and most of its extreme points."""
    angles = np.linspace(0, 2 * np.pi, 2000)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    corner = np.array([[3.0, 1.0]])
    return hull(LpBall(2, 2), Polytope(corner)), np.vstack([circle, corner])


@pytest.mark.parametrize("coupling", [1.0, 1e-3, 1e-6])
def test_the_bound_of_a_cartesian_product_is_above_all_members_and_near(monkeypatch, coupling):
    """The bound of a product adds little if the form hardly couples its parts."""
    without_a_witness(monkeypatch)
    rng = np.random.default_rng(5)
    K, points = pear()
    pairs = np.hstack(
        [
            np.repeat(points[::4], len(points[::4]), axis=0),
            np.tile(points[::4], (len(points[::4]), 1)),
        ]
    )
    for _ in range(5):
        H, c = random_form(rng, 4), rng.normal(size=4)
        H[:2, 2:] *= coupling
        H[2:, :2] *= coupling
        found, best = product(K, K).max_quadratic(H, c), largest(pairs, H, c)
        assert found.value == 0
        assert best * (1 - 1e-9) <= found.upper_bound <= (1.001 + 3 * coupling) * best


LISTED = {
    "one point": [[2.0, -1.0]],
    "three points": [[2.0, -1.0], [0.5, 1.0], [-1.0, 0.0]],
}


@pytest.mark.parametrize("name", LISTED)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("operation", [kron, product])
def test_products_with_few_points_are_bracketed_exactly(operation, last, name):
    """The oracle is exact about other centers, in images, and in differences too."""
    rng = np.random.default_rng(6)
    body, points = pear()
    listed = np.array(LISTED[name])
    join = np.kron if operation is kron else lambda x, y: np.concatenate([x, y])
    pairs = [(x, y) for x in listed for y in points]
    members = np.array([join(y, x) if last else join(x, y) for x, y in pairs])
    K = operation(body, FiniteSet(listed)) if last else operation(FiniteSet(listed), body)
    A = rng.normal(size=(3, 4))
    for domain, own in ((K, members), (A @ K, members @ A.T)):
        H, c = random_form(rng, domain.dim), rng.normal(size=domain.dim)
        for center in (np.zeros(domain.dim), c):
            found, best = domain.max_quadratic(H, center), largest(own, H, center)
            assert best * (1 - 1e-9) <= found.upper_bound <= best * 1.0001
            assert found.upper_bound <= found.value * (1 + 1e-8)
    few = np.array([join(y, x) if last else join(x, y) for x in listed for y in points[::20]])
    apart = (few[:, None] - few).reshape(-1, 4)
    H = random_form(rng, 4)
    found, best = (K - K).max_quadratic(H), largest(apart, H, np.zeros(4))
    assert best * (1 - 1e-9) <= found.upper_bound <= best * 1.002
