"""Upper ends of quadratic oracles by themselves: oracles return the larger of bound and value.

A bound that is too low would be hidden by a witness that is found well. So here each bound meets
members found by other means, and is seen to fall below them where a term is missing.
"""

import numpy as np
import pytest

from domains import LpBall, QuadraticMax, SchattenBall, kron
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


@pytest.mark.parametrize("distance", [0.0, 1.0, 100.0])
def test_the_bound_of_a_kronecker_product_is_above_all_members(monkeypatch, distance):
    """Where no member is looked for."""
    monkeypatch.setattr(
        products,
        "bracket",
        lambda support, H, c, upper, starts: QuadraticMax(starts[0], 0.0, upper),
    )
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
    """Of two unitarily invariant balls, the farthest point is a multiple of a unitary matrix."""
    bounds = []
    known = sums.bracket
    monkeypatch.setattr(sums, "bracket", lambda *given: bounds.append(given[3]) or known(*given))
    (SchattenBall((2, 2), 3) + SchattenBall((2, 2), np.inf)).max_quadratic(np.eye(4))
    farthest = 2 * (1 + 2 ** (-1 / 3)) ** 2
    assert farthest * (1 - 1e-12) <= bounds[0] <= 2 * farthest
