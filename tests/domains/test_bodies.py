"""Balls, ellipsoids, zonotopes and bodies given by their squares: supports, members, maxima and
refusals.
"""

import itertools
import math

import numpy as np
import pytest

from domains.errors import DomainTooLargeError, InvalidDomainError
from domains.sets.ellipsoid import Ellipsoid
from domains.sets.lp_ball import LpBall
from domains.sets.two_convex import TwoConvex
from domains.sets.zonotope import Zonotope

RNG = np.random.default_rng(0)
FLAT = RNG.normal(size=(4, 2))
BODIES = {
    **{f"ball {q}": LpBall(4, q, radius=2.5) for q in (1, 1.1, 1.5, 2, 2.5, 4, 100, math.inf)},
    "interval": LpBall(1, 3, radius=0.5),
    "tiny ball": LpBall(3, 1.5, radius=1e-150),
    "huge ball": LpBall(3, 4, radius=1e150),
    "ellipsoid": Ellipsoid(np.cov(RNG.normal(size=(4, 9))), [1.0, 2.0, 3.0, 4.0]),
    "flat ellipsoid": Ellipsoid(FLAT @ FLAT.T, 7.0),
    "ellipsoid of many scales": Ellipsoid(np.diag([1e-18, 1.0, 1e12])),
    "zonotope": Zonotope(RNG.normal(size=(7, 3)), [1.0, 0.0, -5.0]),
    "flat zonotope": Zonotope(RNG.normal(size=(5, 2)) @ FLAT.T, 1.0),
    "parallelepiped": Zonotope(RNG.normal(size=(3, 3))),
    "segment": Zonotope([[1.0, -2.0, 0.0]]),
    "zonotope with zero and repeated generators": Zonotope([[0, 0], [1, 1], [1, 1], [2, 0]]),
    "many generators": Zonotope(RNG.normal(size=(40, 5))),
    "squares": TwoConvex(RNG.uniform(size=(3, 5)) ** 4),
    "squares of many scales": TwoConvex(RNG.uniform(size=(3, 4)) * [1e-12, 1, 1e8, 1]),
    "squares with an empty coordinate": TwoConvex([[1.0, 0.0, 2.0], [2.0, 0.0, 1.0]]),
    "box of squares": TwoConvex([[1.0, 4.0, 9.0]]),
    "group norm": TwoConvex([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]),
}
every_body = pytest.mark.parametrize("K", BODIES.values(), ids=BODIES)


def directions(dim, count=12):
    rng = np.random.default_rng(1)
    return [
        *rng.normal(size=(count, dim)),
        *(rng.normal(size=(count, dim)) * 10.0 ** rng.integers(-6, 6, size=dim)),
    ]


def reach(K):
    """Return the half widths of the bounding box."""
    center = K._center()
    return np.array([K.support(axis) - axis @ center for axis in np.eye(K.dim)])


@every_body
def test_support_points_are_on_the_boundary(K):
    center, widths = K._center(), reach(K)
    assert K.is_symmetric == (not center.any())
    assert K.contains(center)
    for theta in directions(K.dim):
        theta = np.divide(theta, widths, out=np.zeros(K.dim), where=widths > 0)
        x = K.support_point(theta)
        assert K.contains(x)
        assert K.contains(2 * center - x)
        assert K.contains(center + 0.5 * (x - center))
        if theta @ (x - center) > 0:
            assert not K.contains(center + (1 + 1e-5) * (x - center))


@every_body
def test_outside_coordinates_are_refused(K):
    for axis, width in zip(np.eye(K.dim), reach(K), strict=True):
        far = 1e-5 * max(width, 1e-3 * reach(K).max())
        assert not K.contains(K.support_point(axis) + far * axis)


def forms(K):
    rng = np.random.default_rng(2)
    widths = np.where(reach(K) > 0, reach(K), 1.0)
    F, thin = rng.normal(size=(K.dim, K.dim)) / widths, rng.normal(size=(1, K.dim)) / widths
    return [F.T @ F, thin.T @ thin, np.diag(1 / widths**2), np.diag(np.arange(K.dim) / widths**2)]


SHIFTS = [0.0, 1.0, 1e-7]


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("name", BODIES)
def test_quadratic_maxima_bracket_members(name, shift):
    """Pair every body with every form and every shift, and every form with every shift."""
    K, place = BODIES[name], list(BODIES).index(name)
    widths = reach(K)
    for k, H in enumerate(forms(K)):
        if SHIFTS[(k + place) % len(SHIFTS)] != shift:
            continue
        center = K._center() + shift * widths
        found = K.max_quadratic(H, center)
        best, rng = 0.0, np.random.default_rng(3)
        for theta in rng.normal(size=(6, K.dim)):
            climbed = -1.0
            for _ in range(8):
                x = K.support_point(theta)
                before, climbed = climbed, (x - center) @ H @ (x - center)
                best, theta = max(best, climbed), H @ (x - center)
                if climbed <= before * (1 + 1e-12):  # at the top
                    break
        assert K.contains(found.maximizer)
        moved = found.maximizer - center
        assert moved @ H @ moved == pytest.approx(found.value, rel=1e-9, abs=1e-300)
        assert found.upper_bound >= best * (1 - 1e-10)
        assert found.value >= best * 0.999
        if not (isinstance(K, LpBall) and 1 < K.q < 2):
            assert found.upper_bound <= math.pi / 2 * found.value * (1 + 1e-6)


@every_body
def test_difference_is_the_difference_of_members(K):
    for theta in directions(K.dim):
        expected = K.support(theta) + K.support(-theta)
        assert K._difference().support(theta) == pytest.approx(
            expected, rel=1e-12, abs=1e-12 * expected
        )
    assert K._difference().is_symmetric


@every_body
def test_image_is_the_body(K):
    image = K._image()
    if image is None:
        assert isinstance(K, LpBall)
        assert 1 < K.q < 2
        return
    for theta in directions(K.dim):
        assert theta @ image.support_point(theta) == pytest.approx(K.support(theta), rel=1e-12)


@every_body
def test_printed_form_names_the_body(K):
    assert repr(K).startswith(type(K).__name__)


@pytest.mark.parametrize("q", [1, 1.0001, 1.3, 2, 3, 50, math.inf])
def test_lp_ball_supports_are_dual_norms(q):
    dual = math.inf if q == 1 else 1.0 if q == math.inf else q / (q - 1)
    for theta in directions(6):
        top = np.abs(theta).max()
        expected = 3 * top * np.linalg.norm(theta / top, dual if dual < 1e3 else math.inf)
        assert LpBall(6, q, radius=3).support(theta) == pytest.approx(
            expected, rel=1e-9 if dual < 1e3 else 1e-3
        )


@pytest.mark.parametrize("q", [1, 1.5, 2, 3, math.inf])
def test_lp_ball_members_have_norm_at_most_the_radius(q):
    for x in directions(5):
        x = x / np.abs(x).max()
        x = 2 * x / np.linalg.norm(x, q)
        ball = LpBall(5, q, radius=2)
        assert ball.contains(x)
        assert ball.contains(x * (1 + 5e-10))
        assert not ball.contains(x * (1 + 5e-9))
    assert not LpBall(5, q, radius=2).contains(np.full(5, 1e300))


def test_lp_balls_of_a_million_dimensions():
    ones = np.ones(10**6)
    for q, expected in ((1, 1.0), (2, 1e3), (4, 10**4.5), (math.inf, 1e6)):
        assert LpBall(10**6, q).support(ones) == pytest.approx(expected)
    with pytest.raises(DomainTooLargeError, match=r"1000000 × 1000000 .* GB, more than 1 GB; hint"):
        LpBall(10**6, 2)._image()
    with pytest.raises(DomainTooLargeError, match="GB"):
        TwoConvex(np.ones((1, 20000)))._image()
    assert LpBall(5000, 1)._image() is None


def test_cross_polytope_is_exact():
    rng = np.random.default_rng(4)
    for _ in range(20):
        F, center = rng.normal(size=(5, 5)), rng.normal(size=5)
        H = F.T @ F
        vertices = 3 * np.vstack([np.eye(5), -np.eye(5)]) - center
        best = np.einsum("ij,jk,ik->i", vertices, H, vertices).max()
        found = LpBall(5, 1, radius=3).max_quadratic(H, center)
        assert found.value == found.upper_bound == pytest.approx(best, rel=1e-12)


def sphere_of(q, d):
    """Return a fine grid on the unit sphere of ℓ_q."""
    side = np.linspace(-1, 1, 20001 if d == 2 else 201)
    faces = []
    for axis in range(d):
        others = np.stack(np.meshgrid(*[side] * (d - 1)), axis=-1).reshape(-1, d - 1)
        faces.append(np.insert(others, axis, 1.0, axis=1))
    points = np.vstack(faces)
    return points / (np.abs(points) ** q).sum(axis=1, keepdims=True) ** (1 / q)


@pytest.mark.parametrize("q", [1.0001, 1.2, 1.5, 1.9, 1.9999])
@pytest.mark.parametrize("d", [2, 3])
def test_balls_between_one_and_two_are_bracketed(q, d):
    rng, points = np.random.default_rng(5), sphere_of(q, d)
    points = 1.7 * np.vstack([points, -points])
    for size in (0.0, 0.0, 1e-3, 1.0, 1e3):
        F, center = rng.normal(size=(d, d)) ** 3, size * rng.normal(size=d)
        H = F.T @ F
        best = (((points - center) @ H) * (points - center)).sum(axis=1).max()
        found = LpBall(d, q, radius=1.7).max_quadratic(H, center)
        assert found.upper_bound >= best
        assert best * (1 - 1e-9) <= found.value <= best * (1 + 1e-3)
        euclidean = LpBall(d, 2, radius=1.7).max_quadratic(H, center).upper_bound
        assert found.upper_bound <= euclidean * (1 + 1e-9)


def test_interpolation_beats_the_enclosing_ball():
    H = np.ones((6, 6))  # ‖W‖² is 1 from ℓ_1, 6 from ℓ_2
    found = LpBall(6, 1.5).max_quadratic(H)
    assert found.upper_bound == pytest.approx(6 ** (2 - 2 / 1.5))
    assert found.value == pytest.approx(found.upper_bound)  # attained at the all-ones vector


def test_ellipsoid_follows_its_matrix():
    M = np.array([[2.0, 0.5], [0.5, 1.0]])
    K = Ellipsoid(M, [1.0, -1.0])
    np.testing.assert_allclose(K.factor @ K.factor.T, M, rtol=1e-14)
    for theta in directions(2):
        assert K.support(theta) == pytest.approx(
            theta @ [1, -1] + math.sqrt(theta @ M @ theta), rel=1e-12
        )
    found = K.max_quadratic(np.linalg.inv(M), [1.0, -1.0])
    assert found.value == found.upper_bound == pytest.approx(1.0)


def test_singular_ellipsoids_know_their_range():
    K = Ellipsoid(np.ones((3, 3)), [0.0, 0.0, 1.0])
    assert K.factor.shape == (3, 1)
    assert K.contains([1.0, 1.0, 2.0])
    assert not K.contains([1.0, 1.0, 2.0 + 1e-6])
    point = Ellipsoid(np.zeros((2, 2)), [1.0, 2.0])
    assert point.contains([1.0, 2.0])
    assert not point.contains([1.0, 2.0 + 1e-12])
    assert point.max_quadratic(np.eye(2)).upper_bound == pytest.approx(5)
    assert point.support([1.0, 1.0]) == 3


def test_rank_ignores_units():
    units = np.array([1e-100, 1.0, 1e100])
    M = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 1.0]]) * units * units[:, None]
    K = Ellipsoid(M)
    assert K.factor.shape == (3, 3)
    assert K.contains(0.99 * K.factor[:, 0])
    assert K.support([1e100, 0, 0]) == pytest.approx(1.0)


def test_ellipsoids_refuse_what_is_no_covariance():
    for wrong in (np.ones(3), np.ones((2, 3)), np.zeros((0, 0))):
        with pytest.raises(InvalidDomainError, match="expected M of shape"):
            Ellipsoid(wrong)
    with pytest.raises(InvalidDomainError, match=r"symmetric M; hint: pass \(M \+ M.T\) / 2"):
        Ellipsoid([[1.0, 0.1], [0.0, 1.0]])
    for negative in ([[-1.0]], [[1.0, 2.0], [2.0, 1.0]], [[0.0, 1e-3], [1e-3, 1.0]]):
        with pytest.raises(InvalidDomainError, match=r"positive semidefinite M.*hint"):
            Ellipsoid(negative)
    with pytest.raises(InvalidDomainError, match="expected center of shape"):
        Ellipsoid(np.eye(2), [1.0, 2.0, 3.0])
    with pytest.raises(InvalidDomainError, match="finite M"):
        Ellipsoid([[np.nan]])
    with pytest.raises(InvalidDomainError, match="finite center"):
        Ellipsoid(np.eye(2), np.inf)


def test_zonotope_agrees_with_its_vertices():
    rng = np.random.default_rng(6)
    generators, center = rng.normal(size=(6, 3)), rng.normal(size=3)
    K = Zonotope(generators, center)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=6)))
    vertices = center + signs @ generators
    for theta in directions(3):
        assert K.support(theta) == pytest.approx((vertices @ theta).max(), rel=1e-12)
    found = K.max_quadratic(np.eye(3), [1.0, 1.0, 1.0])
    assert (
        found.value == found.upper_bound == pytest.approx(np.square(vertices - 1).sum(axis=1).max())
    )
    assert all(K.contains(x) for x in vertices)
    mixed = rng.dirichlet(np.ones(len(vertices)), size=20) @ vertices
    assert all(K.contains(x) for x in mixed)


def test_zonotope_minus_itself_doubles_its_generators():
    K = Zonotope([[1.0, 2.0]], [5.0, 5.0])
    np.testing.assert_array_equal(K._difference().generators, [[2.0, 4.0]])
    assert K._difference().is_symmetric


def test_zonotope_without_generators_is_a_point():
    K = Zonotope(np.zeros((0, 2)), [1.0, 2.0])
    assert K.support([1.0, 1.0]) == 3
    assert K.contains([1.0, 2.0])
    assert not K.contains([1.0, 2.1])
    assert K.max_quadratic(np.eye(2)).upper_bound == pytest.approx(5)


def test_zonotopes_refuse_wrong_shapes():
    for wrong in (np.ones(3), np.ones((2, 0)), 1.0, np.ones((1, 1, 1))):
        with pytest.raises(InvalidDomainError, match="expected generators of shape"):
            Zonotope(wrong)
    with pytest.raises(InvalidDomainError, match="regular array"):
        Zonotope([[1.0], [1.0, 2.0]])
    with pytest.raises(InvalidDomainError, match="finite generators"):
        Zonotope([[np.inf]])
    with pytest.raises(InvalidDomainError, match="expected center of shape"):
        Zonotope([[1.0, 2.0]], [[1.0, 2.0]])


def test_two_convex_special_cases():
    rng = np.random.default_rng(7)
    squares = rng.uniform(0.1, 2, size=4)
    ellipsoid, box = TwoConvex(np.diag(squares)), TwoConvex(squares[None])
    for theta in directions(4):
        assert ellipsoid.support(theta) == pytest.approx(
            Ellipsoid(np.diag(squares)).support(theta), rel=1e-12
        )
        assert box.support(theta) == pytest.approx(np.abs(theta) @ np.sqrt(squares), rel=1e-12)
    group = TwoConvex([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    for theta in directions(4):
        assert group.support(theta) == pytest.approx(
            math.hypot(*np.abs(theta.reshape(2, 2)).sum(axis=1)), rel=1e-12
        )


def test_two_convex_membership_is_a_gauge():
    rng = np.random.default_rng(8)
    group = TwoConvex([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    for x in rng.normal(size=(20, 4)) * 10.0 ** rng.integers(-7, 1, size=(20, 4)):
        x = x / math.hypot(*np.abs(x.reshape(2, 2)).max(axis=1))
        assert group.contains(x)
        assert not group.contains(x * (1 + 1e-7))


def test_diagonal_forms_are_exact():
    rng = np.random.default_rng(9)
    squares, y = rng.uniform(size=(4, 6)), rng.uniform(size=6)
    found = TwoConvex(squares).max_quadratic(np.diag(y))
    assert found.value == found.upper_bound == pytest.approx((squares @ y).max())


def test_two_convex_refuses_wrong_squares():
    for wrong in (np.ones(3), np.ones((0, 3)), np.ones((3, 0))):
        with pytest.raises(InvalidDomainError, match="expected squares of shape"):
            TwoConvex(wrong)
    with pytest.raises(InvalidDomainError, match="nonnegative squares, got -1"):
        TwoConvex([[1.0, -1.0]])
    with pytest.raises(InvalidDomainError, match="finite squares"):
        TwoConvex([[np.nan]])


@pytest.mark.parametrize("dim", [0, -1, 1.5, "2", True])
def test_lp_balls_refuse_dimensions(dim):
    with pytest.raises(InvalidDomainError, match="dim an integer >= 1"):
        LpBall(dim, 2)


@pytest.mark.parametrize("q", [0.5, 0, -1, math.nan, -math.inf, "two", None])
def test_lp_balls_refuse_exponents(q):
    with pytest.raises(InvalidDomainError, match="expected 1 <= q <= inf"):
        LpBall(2, q)


@pytest.mark.parametrize("radius", [0, -1, math.nan, math.inf, "one", None])
def test_lp_balls_refuse_radii(radius):
    with pytest.raises(InvalidDomainError, match="finite radius > 0"):
        LpBall(2, 2, radius=radius)
