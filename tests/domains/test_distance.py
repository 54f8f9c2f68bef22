"""is_near, which knows support points only, slightly inside and outside of known boundaries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from domains import AbstractDomain, DomainTooLargeError
from domains.oracles import distance as _distance
from domains.oracles.distance import bounding_box, is_near


class Oracle(AbstractDomain):
    """A domain with nothing but a support point."""

    def __init__(self, dim, support_point):
        self._dim, self._function = dim, support_point
        self.calls = 0

    @property
    def dim(self):
        return self._dim

    def _support_point(self, theta):
        self.calls += 1
        return self._function(theta)

    def _max_quadratic(self, form, center):
        raise NotImplementedError


def points(V):
    return Oracle(V.shape[1], lambda theta: V[np.argmax(V @ theta)].copy())


def image(A, shift, body):
    return Oracle(len(A), lambda theta: shift + A @ body(theta @ A))


def ball(theta):
    return theta / (np.linalg.norm(theta) or 1.0)


def cube(theta):
    return np.where(theta < 0, -1.0, 1.0)


def lp(q):
    def support_point(theta):
        w = (np.abs(theta) / (np.abs(theta).max() or 1.0)) ** (1 / (q - 1))
        return np.sign(theta) * w / ((w**q).sum() ** (1 / q) or 1.0)

    return support_point


def square_matrix(d, k=0):
    return np.random.default_rng(k).normal(size=(d, d)) / np.sqrt(d)


def direction(d, k=1):
    return np.random.default_rng(k).normal(size=d)


def assert_boundary(domain, x, center, outside=1e-6):
    """Return the boundary point x and its neighbours on the segment from the center."""
    assert is_near(domain, x)
    assert is_near(domain, center + (1 - 1e-6) * (x - center))
    assert is_near(domain, center + 0.5 * (x - center))
    assert is_near(domain, center)
    assert not is_near(domain, center + (1 + outside) * (x - center))
    assert not is_near(domain, center + 3 * (x - center))


@pytest.mark.parametrize("d", [1, 2, 10, 60])
@pytest.mark.parametrize("body", [ball, cube, lp(1.5), lp(8)], ids=["ball", "cube", "l1.5", "l8"])
def test_boundary_points_of_linear_images(d, body):
    A = square_matrix(d)
    assert_boundary(image(A, 0.0, body), A @ body(direction(d)), np.zeros(d))


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_scale_does_not_matter(scale):
    A = scale * square_matrix(6)
    assert_boundary(image(A, 0.0, ball), A @ ball(direction(6)), np.zeros(6))


@pytest.mark.parametrize("body", [ball, cube])
def test_offsets_cost_no_more_than_their_rounding(body):
    A, shift = square_matrix(5), 1e6 * np.arange(1.0, 6.0)
    assert_boundary(image(A, shift, body), shift + A @ body(direction(5)), shift, outside=1e-5)


def test_many_dimensions():
    d = 120  # d = 200 takes seconds if BLAS threads compete
    A = square_matrix(d) + 2 * np.eye(d)
    K = image(A, 0.0, ball)
    x = A @ ball(direction(d))
    assert is_near(K, x)
    assert not is_near(K, x * (1 + 1e-6))
    assert is_near(points(np.eye(d)), np.full(d, 1 / d))
    assert not is_near(points(np.eye(d)), np.full(d, (1 + 1e-6) / d))


@pytest.mark.parametrize("thinness", [1e-4, 1e-8])
def test_thin_ellipsoids(thinness):
    d = 20
    rotation = np.linalg.qr(square_matrix(d))[0]
    A = rotation @ np.diag(np.geomspace(1, thinness, d)) @ np.linalg.qr(square_matrix(d, 5))[0]
    x = A @ ball(direction(d))
    K = image(A, 0.0, ball)
    assert is_near(K, x)
    assert is_near(K, x * (1 - 1e-6))
    assert not is_near(K, x * 10)
    assert is_near(K, 1e-10 * rotation[:, -1])
    assert not is_near(K, 1e-6 * rotation[:, -1]) or thinness > 1e-6


@pytest.mark.parametrize(("d", "rank"), [(3, 1), (6, 3), (40, 20)])
def test_flat_sets(d, rank):
    A = np.random.default_rng(0).normal(size=(d, rank)) / np.sqrt(d)
    shift = np.linspace(-1, 2, d)
    K = image(A, shift, ball)
    x = shift + A @ ball(direction(rank))
    normal = np.linalg.svd(A)[0][:, -1]
    assert_boundary(K, x, shift)
    inside = shift + 0.3 * (x - shift)
    assert is_near(K, inside + 1e-13 * normal)
    assert not is_near(K, inside + 1e-6 * normal)


def test_sums_and_products_of_round_and_edged_bodies():
    d = 30
    A, B = square_matrix(d), square_matrix(d, 2)
    total = Oracle(d, lambda theta: A @ ball(theta @ A) + B @ cube(theta @ B))
    assert_boundary(total, total._support_point(direction(d)), np.zeros(d))
    both = Oracle(
        2 * d, lambda theta: np.concatenate([A @ ball(theta[:d] @ A), B @ cube(theta[d:] @ B)])
    )
    x = np.concatenate([A @ ball(direction(d)), 0.1 * B @ cube(direction(d, 3) @ B)])
    assert is_near(both, x)
    assert not is_near(both, x * (1 + 1e-6))


@settings(derandomize=True, max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_agrees_with_linear_programs_on_integer_points(k, d):
    """Integers make duplicates, flat sets, and query points on faces, edges and vertices."""
    rng = np.random.default_rng(k)
    V = rng.integers(-2, 3, size=(rng.integers(1, 12), d)).astype(float)
    x = V[: rng.integers(1, len(V) + 1)].mean(axis=0) if k % 2 else rng.integers(-2, 3, size=d) / 2
    found = linprog(
        np.zeros(len(V)), A_eq=np.vstack([V.T, np.ones(len(V))]), b_eq=np.append(x, 1.0)
    )
    assert is_near(points(V), x) == (found.status == 0)


@pytest.mark.parametrize("x", [[0.0, 0.0], [3.0, -4.0], [1e300, 1.0]])
def test_one_point(x):
    K = points(np.array([x]))
    assert is_near(K, np.array(x))
    assert not is_near(K, np.array([x[0], x[1] + 1e-3 * (1 + abs(x[0]))]))


def test_slack_is_a_billionth_of_the_width():
    K = points(np.array([[5.0], [7.0]]))
    assert is_near(K, np.array([7 + 1e-9]))
    assert not is_near(K, np.array([7 + 4e-9]))


def test_a_few_calls_settle_what_is_far_inside_or_outside():
    d = 50
    for x, most in [(np.full(d, 0.01), 100), (np.full(d, 2.0), 0)]:
        K = image(np.eye(d), 0.0, ball)
        is_near(K, x)
        assert K.calls - 2 * d <= most


def test_running_out_of_steps_is_an_error_not_an_answer(monkeypatch):
    monkeypatch.setattr(_distance, "_ROUNDS", 0)
    with pytest.raises(
        DomainTooLargeError,
        match="cannot tell members of Oracle from others to 1e-09 in dimension 3",
    ):
        is_near(image(np.eye(3), 0.0, ball), np.array([0.1, 0.2, 0.3]))


def test_bounding_box():
    lower, upper = bounding_box(points(np.array([[1.0, -2.0], [3.0, 5.0]])))
    np.testing.assert_array_equal(lower, [1, -2])
    np.testing.assert_array_equal(upper, [3, 5])
