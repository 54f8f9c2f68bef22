"""The oracle of images of 2-convex bodies: against brute force, an SDP solver, duality and its own
guarantees.
"""

import itertools
import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
import scipy.optimize
from cases import one_test_of
from hypothesis import given, settings
from hypothesis import strategies as st

import domains.oracles.image as image
import domains.oracles.squared_norm as squared_norm
from domains.errors import InvalidDomainError
from domains.oracles.image import ConvexImage, LpBlock, SquaresBlock

ROUNDING = 1e-10


def box(columns, offsets=None):
    columns = np.asarray(columns, dtype=float)
    n = columns.shape[1]
    offsets = np.zeros((1, len(columns))) if offsets is None else np.atleast_2d(offsets)
    return ConvexImage(columns, (LpBlock(n, math.inf),) if n else (), offsets)


def brute(columns, offsets, H, center):
    n = columns.shape[1]
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=n))).reshape(2**n, n)
    points = ((signs @ columns.T)[:, None] + (offsets - center)).reshape(-1, len(columns))
    return np.einsum("ij,ij->i", points @ H, points).max()


def check_bracket(found, best):
    assert found.value <= best * (1 + ROUNDING)
    assert found.upper_bound >= best * (1 - ROUNDING)
    assert found.upper_bound <= math.pi / 2 * best * (1 + 1e-6)


def bracket_only(patch):
    patch.setattr(squared_norm, "EXACT_COLUMNS", -100)
    patch.setattr(squared_norm, "_searched", lambda G, x, upper, y, work: (x, upper))


@pytest.fixture
def no_enumeration(monkeypatch):
    bracket_only(monkeypatch)


entries = st.sampled_from([0.0, 0.0, 1.0, -1.0, 1 + 1e-9, 1e-8, 0.3, -2.5, 7.0])
shapes = st.tuples(st.integers(3, 5), st.integers(1, 7))


@st.composite
def queries(draw):
    d, n = draw(shapes)
    columns = np.array(draw(st.lists(entries, min_size=d * n, max_size=d * n))).reshape(d, n)
    columns *= 10.0 ** np.array(
        draw(st.lists(st.sampled_from([0, 0, 0, -9, -30, 4]), min_size=n, max_size=n))
    )
    columns[:, -1] = columns[:, draw(st.integers(0, n - 1))]
    k = draw(st.sampled_from([1, 1, 2, 4]))
    offsets = np.array(draw(st.lists(entries, min_size=d * k, max_size=d * k))).reshape(k, d)
    offsets *= draw(st.sampled_from([0.0, 1.0, 1e-6, 1e3]))
    center = draw(st.sampled_from([0.0, 1.0])) * np.arange(1.0, d + 1)
    F = np.array(draw(st.lists(entries, min_size=d * d, max_size=d * d))).reshape(d, d)
    return columns, offsets, F.T @ F, center


@settings(derandomize=True, deadline=None, max_examples=75)
@given(queries())
def test_boxes_are_exact_by_enumeration(query):
    columns, offsets, H, center = query
    found, best = box(columns, offsets).max_quadratic(H, center), brute(*query)
    floor = (
        1e-12
        * np.abs(H).max()
        * (np.abs(columns).sum() + np.abs(offsets).max() + np.abs(center).max()) ** 2
    )
    assert found.value == pytest.approx(best, rel=1e-9, abs=floor)
    assert best * (1 - ROUNDING) - floor <= found.upper_bound <= best * (1 + 1e-9) + floor


@settings(derandomize=True, deadline=None, max_examples=75)
@given(queries())
def test_boxes_are_exact_by_branch_and_bound(query):
    columns, offsets, H, center = query
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(squared_norm, "EXACT_COLUMNS", -100)
        found = box(columns, offsets).max_quadratic(H, center)
    best = brute(*query)
    floor = (
        1e-12
        * np.abs(H).max()
        * (np.abs(columns).sum() + np.abs(offsets).max() + np.abs(center).max()) ** 2
    )
    assert found.value == pytest.approx(best, rel=1e-9, abs=floor)
    assert best * (1 - ROUNDING) - floor <= found.upper_bound <= best * (1 + 1e-9) + floor


@settings(derandomize=True, deadline=None, max_examples=75)
@given(queries())
def test_brackets_hold_without_enumeration(query):
    columns, offsets, H, center = query
    with pytest.MonkeyPatch.context() as patch:
        bracket_only(patch)
        found = box(columns, offsets).max_quadratic(H, center)
    best = brute(*query)
    floor = (
        1e-12
        * np.abs(H).max()
        * (np.abs(columns).sum() + np.abs(offsets).max() + np.abs(center).max()) ** 2
    )
    assert found.value <= best * (1 + ROUNDING) + floor
    assert (
        best * (1 - ROUNDING) - floor
        <= found.upper_bound
        <= math.pi / 2 * best * (1 + 1e-6) + floor
    )


def test_hundreds_of_small_boxes_stay_within_half_pi(no_enumeration):
    rng = np.random.default_rng(1)
    worst, met = 1.0, 0
    for _ in range(200):
        d, n = rng.integers(3, 6), rng.integers(3, 9)
        query = (
            rng.normal(size=(d, n)),
            np.zeros((1, d)),
            np.eye(d),
            rng.normal(size=d) * rng.integers(0, 2),
        )
        found, best = box(query[0]).max_quadratic(*query[2:]), brute(*query)
        check_bracket(found, best)
        worst, met = max(worst, found.upper_bound / best), met + (found.value > best * (1 - 1e-9))
    assert worst > 1.01  # the relaxation is not always tight, so hard cases were tested
    assert met >= 196  # and the search nearly always finds the maximum


def test_the_check_has_power(no_enumeration, monkeypatch):
    columns = np.random.default_rng(2).normal(size=(4, 7))
    best = brute(columns, np.zeros((1, 4)), np.eye(4), np.zeros(4))
    check_bracket(box(columns).max_quadratic(np.eye(4), np.zeros(4)), best)
    bound = squared_norm._majorant

    def low(*query):
        upper, y = bound(*query)
        return 0.9 * upper, y

    monkeypatch.setattr(squared_norm, "_majorant", low)
    monkeypatch.setattr(squared_norm, "_witness", lambda G, body, U: np.zeros(7))
    with pytest.raises(AssertionError):
        check_bracket(box(columns).max_quadratic(np.eye(4), np.zeros(4)), best)


@one_test_of("seed", range(20))
def test_zonogons_are_exact(seed, no_enumeration):
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(rng.integers(1, 3), 9))
    columns = columns.round() if seed % 3 == 0 else columns
    d = len(columns)
    center = rng.normal(size=d) * (seed % 2)
    found = box(columns).max_quadratic(np.eye(d), center)
    assert (
        found.value
        == found.upper_bound
        == pytest.approx(brute(columns, np.zeros((1, d)), np.eye(d), center))
    )


def relaxation(Q, q):
    """Return max <Q, Z>, diag Z in the squares of the ℓ_q ball, by Clarabel."""
    Z = cp.Variable(Q.shape, PSD=True)
    limit = cp.diag(Z) <= 1 if q == math.inf else cp.pnorm(cp.diag(Z), q / 2) <= 1
    return cp.Problem(cp.Maximize(cp.trace(Q @ Z)), [limit]).solve(solver="CLARABEL")


@pytest.mark.parametrize("q", [2.5, 3.0, 4.0, 10.0, math.inf])
@pytest.mark.parametrize(("r", "n"), [(3, 6), (6, 6), (9, 6)])
def test_upper_bound_solves_the_semidefinite_relaxation(q, r, n, no_enumeration):
    columns = np.random.default_rng(7).normal(size=(r, n))
    image = ConvexImage(columns, (LpBlock(n, q),), np.zeros((1, r)))
    expected = relaxation(columns.T @ columns, q)
    assert image.max_quadratic(np.eye(r), np.zeros(r)).upper_bound == pytest.approx(
        expected, rel=2e-6
    )


def test_every_iterate_gives_a_bound(no_enumeration, monkeypatch):
    columns = np.random.default_rng(3).normal(size=(4, 8))
    best = brute(columns, np.zeros((1, 4)), np.eye(4), np.zeros(4))
    converged = box(columns).max_quadratic(np.eye(4), np.zeros(4)).upper_bound
    solve = scipy.optimize.minimize
    for steps in (0, 1, 2, 5):

        def stopped(*args, steps=steps, options, **kwargs):
            return solve(*args, **kwargs, options=options | {"maxiter": steps})

        monkeypatch.setattr(scipy.optimize, "minimize", stopped)
        upper = box(columns).max_quadratic(np.eye(4), np.zeros(4)).upper_bound
        assert upper >= converged * (1 - 1e-9)
        assert upper >= best


def dual_function(Q, p, still, radius):
    """Return the minimum over μ of the trust-region problem's Lagrangian dual, by line search."""
    values, axes = np.linalg.eigh(Q)
    b = axes.T @ p

    def bound(log_tau):
        mu = values[-1] + math.exp(log_tau)
        return still + mu * radius**2 + np.sum(b**2 / (mu - values))

    grid = np.linspace(-30, 20, 4000)
    at = grid[int(np.argmin([bound(t) for t in grid]))]
    return scipy.optimize.minimize_scalar(
        bound, bounds=(at - 0.05, at + 0.05), method="bounded"
    ).fun


@pytest.mark.parametrize("seed", range(12))
def test_balls_are_exact(seed):
    rng = np.random.default_rng(seed)
    d, n = rng.integers(1, 6), rng.integers(1, 6)
    A, center, radius = (
        rng.normal(size=(d, n)),
        rng.normal(size=d) * 10.0 ** rng.integers(-8, 4),
        0.7,
    )
    F = rng.normal(size=(d, d))
    H = F.T @ F
    found = ConvexImage(A, (LpBlock(n, 2.0, radius),), np.zeros((1, d))).max_quadratic(H, center)
    expected = dual_function(A.T @ H @ A, A.T @ H @ center, center @ H @ center, radius)
    assert found.value == found.upper_bound == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    "center", [[0, 0, 0.1], [0, 0, 1e-9], [0, 0.5, 0.1], [1e-18, 0, 0.1], [0, 0, 1], [0, 0, 5]]
)
@pytest.mark.parametrize("double", [False, True])
def test_hard_cases_of_the_ball(center, double):
    H = np.diag([2.0, 2.0 if double else 1.0, 1.0])
    found = ConvexImage(np.eye(3), (LpBlock(3, 2.0),), np.zeros((1, 3))).max_quadratic(
        H, np.array(center, dtype=float)
    )
    angles = np.linspace(0, np.pi, 601)
    u, v = np.meshgrid(angles, 2 * angles)
    sphere = (
        np.stack([np.sin(u) * np.cos(v), np.sin(u) * np.sin(v), np.cos(u)], axis=-1).reshape(-1, 3)
        - center
    )
    best = ((sphere @ H) * sphere).sum(axis=1).max()
    assert found.value == found.upper_bound
    assert best * (1 - 1e-12) <= found.upper_bound <= best * (1 + 1e-5)
    moved = found.maximizer - center
    assert np.linalg.norm(found.maximizer) <= 1 + 1e-12
    assert moved @ H @ moved == pytest.approx(found.value, rel=1e-12)


@pytest.mark.parametrize("q", [2.0, 2.0 + 1e-9, 2.5, 4.0, 50.0, math.inf])
def test_orthogonal_columns_are_exact(q):
    rng = np.random.default_rng(4)
    turn, _ = np.linalg.qr(rng.normal(size=(30, 30)))
    y = rng.uniform(0.1, 2, size=30)
    found = ConvexImage(turn * np.sqrt(y), (LpBlock(30, q),), np.zeros((1, 30))).max_quadratic(
        np.eye(30), np.zeros(30)
    )
    order = 1 if q == math.inf else math.inf if q == 2 else q / (q - 2)
    expected = y.max() * (np.linalg.norm(y / y.max(), order) if order < 1e6 else 1.0)
    assert found.value == found.upper_bound == pytest.approx(expected, rel=1e-7)


def members(blocks, count, rng):
    return np.hstack(
        [block.support_point(rng.normal(size=(count, block.size))) for block in blocks]
    )


rows = np.random.default_rng(5).uniform(size=(4, 5)) ** 2
MIXED = {
    "balls": (LpBlock(3, 2.0), LpBlock(4, 2.0, 3.0)),
    "ball and box": (LpBlock(4, 2.0, 2.0), LpBlock(3, math.inf)),
    "all sorts": (LpBlock(2, 3.0), SquaresBlock(rows), LpBlock(1, 5.0), LpBlock(2, 2.0, 0.1)),
    "squares": (SquaresBlock(rows),),
    "squares with an empty coordinate": (
        SquaresBlock(rows * [1, 1, 0, 1, 1]),
        LpBlock(1, math.inf),
    ),
}


@pytest.mark.parametrize("blocks", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("off_center", [False, True])
def test_mixed_products_bracket_their_members(blocks, off_center):
    rng = np.random.default_rng(6)
    n = sum(block.size for block in blocks)
    for _ in range(2):
        A, center = rng.normal(size=(4, n)), rng.normal(size=4) * off_center
        image = ConvexImage(A, blocks, np.zeros((1, 4)))
        found = image.max_quadratic(np.eye(4), center)
        points = members(blocks, 500, rng) @ A.T
        best = np.square(points - center).sum(axis=1).max()
        for theta in rng.normal(size=(6, 4)):  # climb as well: maxima are at extreme points
            for _ in range(8):
                x = image.support_point(theta)
                theta = x - center
            best = max(best, theta @ theta)
        assert best * (1 - ROUNDING) <= found.upper_bound <= math.pi / 2 * found.value * (1 + 1e-6)
        assert found.value >= 0.98 * best
        moved = found.maximizer - center
        assert moved @ moved == pytest.approx(found.value, rel=1e-9)


def test_one_row_of_squares_is_a_box():
    columns = np.random.default_rng(8).normal(size=(5, 8))
    squares = np.random.default_rng(9).uniform(size=(1, 8))
    image = ConvexImage(columns, (SquaresBlock(squares),), np.zeros((1, 5)))
    found = image.max_quadratic(np.eye(5), np.ones(5))
    assert found.value == found.upper_bound
    assert found.value == pytest.approx(
        brute(columns * np.sqrt(squares), np.zeros((1, 5)), np.eye(5), np.ones(5))
    )


@pytest.mark.parametrize("k", [2, 3, 8])
def test_squares_support_point_maximises_a_concave_function(k):
    rng = np.random.default_rng(k)
    for _ in range(20):
        squares = rng.uniform(size=(k, 6)) * (rng.uniform(size=(k, 6)) < 0.7)
        theta = rng.normal(size=6) * 10.0 ** rng.integers(-4, 4, size=6)
        block = SquaresBlock(squares)
        x = block.support_point(theta)
        # h(θ) <= (Σ|θ_i|x_i + h_T(|θ|/x))/2 for every x > 0, with equality only at the maximum
        used = (squares.max(axis=0) > 0) & (np.abs(x) > 0)
        slopes = np.divide(np.abs(theta), np.abs(x), out=np.zeros(6), where=used)
        assert not theta[(squares.max(axis=0) > 0) & (x == 0)].any()
        upper = (np.abs(theta) @ np.abs(x) + (squares @ slopes).max()) / 2
        assert theta @ x == pytest.approx(upper, rel=1e-12)
        batch = block.support_point(np.stack([theta, theta[::-1], theta]))
        assert theta @ batch[2] == pytest.approx(theta @ x, rel=1e-12)


def test_squares_of_a_simplex_are_a_ball():
    theta = np.array([3.0, -4.0, 1e-7, 0.0])
    x = SquaresBlock(np.eye(4)).support_point(theta)
    np.testing.assert_allclose(x, theta / np.linalg.norm(theta), atol=1e-7)
    assert theta @ x == pytest.approx(np.linalg.norm(theta), rel=1e-13)


@pytest.mark.parametrize("q", [2.0, 2.0 + 1e-12, 2.1, 3.0, 1e3, 1e9, math.inf])
def test_lp_blocks_attain_the_dual_norm(q):
    rng = np.random.default_rng(10)
    for _ in range(20):
        theta = rng.normal(size=7) * 10.0 ** rng.integers(-5, 5, size=7)
        block = LpBlock(7, q, 2.5)
        x = block.support_point(theta)
        dual = 1.0 if q == math.inf else q / (q - 1)
        top = np.abs(theta).max()
        assert theta @ x == pytest.approx(2.5 * top * np.linalg.norm(theta / top, dual), rel=1e-12)
        y = theta**2
        order = 1.0 if q == math.inf else math.inf if q == 2 else q / (q - 2)
        expected = (y / y.max()).max() if order > 1e6 else np.linalg.norm(y / y.max(), order)
        assert y @ block.max_squares(y) ** 2 == pytest.approx(2.5**2 * y.max() * expected, rel=1e-9)
    assert not LpBlock(3, 4.0).max_squares(np.zeros(3)).any()


def test_no_columns_are_plain_points():
    offsets = np.array([[1.0, 0.0], [0.0, -3.0]])
    image = ConvexImage(np.zeros((2, 0)), (), offsets)
    np.testing.assert_array_equal(image.support_point(np.array([1.0, 0.1])), [1, 0])
    found = image.max_quadratic(np.diag([1.0, 4.0]), np.array([0.0, 1.0]))
    assert found.value == found.upper_bound == 64
    np.testing.assert_array_equal(found.maximizer, [0, -3])


@pytest.mark.parametrize(
    "blocks", [(LpBlock(6, math.inf),), (LpBlock(6, 3.0),), (LpBlock(6, 2.0),)]
)
def test_offsets_give_the_largest_of_their_answers(blocks):
    rng = np.random.default_rng(11)
    A, offsets, center = rng.normal(size=(5, 6)), rng.normal(size=(120, 5)), np.ones(5)
    offsets[60:] = 2 * center - offsets[:60]  # offsets mirrored about the center are skipped
    whole = ConvexImage(A, blocks, offsets).max_quadratic(np.eye(5), center)
    apart = [ConvexImage(A, blocks, b[None]).max_quadratic(np.eye(5), center) for b in offsets]
    assert whole.value == pytest.approx(max(f.value for f in apart), rel=1e-9)
    assert whole.upper_bound >= max(f.value for f in apart) * (1 - ROUNDING)
    assert whole.upper_bound <= max(f.upper_bound for f in apart) * (1 + 1e-7)


def test_more_offsets_than_lists_hold(monkeypatch):
    rng = np.random.default_rng(12)
    A, offsets = rng.normal(size=(4, 6)), rng.normal(size=(200, 4))
    at_once = box(A, offsets).max_quadratic(np.eye(4), np.zeros(4))
    monkeypatch.setattr(squared_norm, "EXACT_COLUMNS", 8)  # 2^7 patterns: one offset at a time
    in_turn = box(A, offsets).max_quadratic(np.eye(4), np.zeros(4))
    assert in_turn.value == in_turn.upper_bound == pytest.approx(at_once.value, rel=1e-12)


@pytest.mark.parametrize("columns", [21, 22])
def test_two_million_sign_patterns(columns):
    rng = np.random.default_rng(13)
    A, center = rng.normal(size=(6, columns)), np.ones(6) * (columns == 21)
    found = box(A).max_quadratic(np.eye(6), center)
    assert found.value == found.upper_bound
    bracket = box(np.column_stack([A, np.zeros((6, 2)), 1e-9 * np.ones((6, 2))])).max_quadratic(
        np.eye(6), center
    )
    assert bracket.value == pytest.approx(found.value, rel=1e-6)
    assert bracket.upper_bound >= found.value


@pytest.mark.parametrize("power", [-150, -75, 0, 75, 150])
@pytest.mark.parametrize("enumerated", [True, False])
def test_huge_and_tiny_scales(power, enumerated, monkeypatch):
    if not enumerated:
        bracket_only(monkeypatch)
    rng = np.random.default_rng(14)
    A, F = rng.normal(size=(4, 7)), rng.normal(size=(4, 4))
    best = brute(A, np.zeros((1, 4)), F.T @ F, np.ones(4))
    units = 10.0 ** np.array([power, -power, 0, power / 3])  # each coordinate in units of its own
    half = 10.0 ** (power / 2)  # and a body and a form at opposite ends of the range
    H = (F.T @ F) / units / units[:, None]
    if power in (-150, 150):
        H = (F.T @ F) / half / half
        image, center, scale = box(half * A), half * np.ones(4), 1.0
        best = brute(A, np.zeros((1, 4)), F.T @ F, np.ones(4))
    else:
        image, center, scale = box(units[:, None] * A), units, 1.0
    found = image.max_quadratic(H, center)
    assert found.upper_bound * scale >= best * (1 - 1e-9)
    assert found.upper_bound * scale <= math.pi / 2 * best * (1 + 1e-6)
    assert found.value == pytest.approx(best, rel=1e-9)


def test_columns_of_very_different_lengths(no_enumeration):
    A = np.random.default_rng(15).normal(size=(3, 6)) * 10.0 ** np.array([0, -150, 0, -20, -5, -40])
    query = A, np.zeros((1, 3)), np.eye(3), np.zeros(3)
    check_bracket(box(A).max_quadratic(*query[2:]), brute(*query))


def test_overflow_is_named():
    with pytest.raises(InvalidDomainError, match="exceeds the largest double"):
        box(1e200 * np.eye(2)).max_quadratic(np.eye(2), np.zeros(2))


def test_nothing_to_maximise():
    image = box(np.ones((2, 3)), [1.0, 2.0])
    assert image.max_quadratic(np.zeros((2, 2)), np.ones(2)).upper_bound == 0
    assert (
        box(np.zeros((2, 3)), [1.0, 2.0]).max_quadratic(np.eye(2), np.array([1.0, 2.0])).upper_bound
        == 0
    )
    assert box(np.zeros((2, 3)), [1.0, 2.0]).max_quadratic(np.eye(2), np.zeros(2)).upper_bound == 5


def test_forms_with_dust_on_a_zero_diagonal_stay_bounded():
    H = np.array([[1.0, 1e-11], [1e-11, 0.0]])  # accepted as semidefinite, up to rounding
    found = box(np.eye(2)).max_quadratic(H, np.zeros(2))
    assert found.upper_bound >= 1 + 2e-11


@pytest.mark.parametrize("q", [2.5, 4.0, math.inf])
@pytest.mark.parametrize(("r", "n"), [(20, 100), (60, 60)])
def test_bounds_are_reproducible(q, r, n):
    rng = np.random.default_rng(16)
    A = rng.normal(size=(r, n))
    bounds = []
    for nudge in (0.0, 1e-12, 1e-11):
        nudged = A * (1 + nudge * rng.normal(size=A.shape))
        image = ConvexImage(nudged, (LpBlock(n, q),), np.zeros((1, r)))
        bounds.append(image.max_quadratic(np.eye(r), np.ones(r)).upper_bound)
    assert max(bounds) <= min(bounds) * (1 + 2e-7)


def test_support_point_is_the_best_offset_and_the_best_of_each_block():
    rng = np.random.default_rng(17)
    A, offsets = rng.normal(size=(3, 6)), rng.normal(size=(4, 3))
    image = ConvexImage(A, (LpBlock(4, math.inf), LpBlock(2, 2.0)), offsets)
    for theta in [*rng.normal(size=(10, 3)), 1e200 * np.ones(3), 1e-200 * np.ones(3)]:
        unit = theta / np.abs(theta).max()
        slopes = unit @ A
        expected = (offsets @ unit).max() + np.abs(slopes[:4]).sum() + np.linalg.norm(slopes[4:])
        assert unit @ image.support_point(theta) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("enumerated", [True, False])
def test_bounds_hold_for_the_stored_form_however_badly_conditioned(enumerated, monkeypatch):
    if not enumerated:
        bracket_only(monkeypatch)
    rng = np.random.default_rng(18)
    for _ in range(60):
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        sizes = 10.0 ** -rng.integers(0, 8, size=3)
        columns, center = (
            (turn * sizes) @ rng.normal(size=(3, 3)),
            (turn * sizes) @ rng.normal(size=3),
        )
        H = (turn / sizes**2) @ turn.T
        H = (H + H.T) / 2
        found = box(columns).max_quadratic(H, center)
        exact = [[Fraction(value) for value in row] for row in H.tolist()]
        best = Fraction(0)
        for signs in itertools.product([-1, 1], repeat=3):
            terms = zip(columns.tolist(), center.tolist(), strict=True)
            x = [
                sum(s * Fraction(a) for s, a in zip(signs, row, strict=True)) - Fraction(c)
                for row, c in terms
            ]
            best = max(best, sum(x[i] * exact[i][j] * x[j] for i in range(3) for j in range(3)))
        assert Fraction(found.upper_bound) >= best * (1 - Fraction(1, 10**10))


@pytest.mark.parametrize("q", [2, 3, math.inf])
@pytest.mark.parametrize("offsets", [1, 3])
def test_diagonal_images_have_the_same_points_as_by_products(q, offsets, monkeypatch):
    rng = np.random.default_rng(0)
    matrix = np.diag([1.0, -1e-8, 0.0, 7.0])
    body = ConvexImage(matrix, (LpBlock(4, q),), rng.normal(size=(offsets, 4)))
    directions = np.vstack([np.eye(4), -np.eye(4), rng.normal(size=(20, 4))])
    found = body.support_points(directions)
    monkeypatch.setattr(image, "is_diagonal", lambda _: False)
    by_products = ConvexImage(matrix, body.blocks, body.offsets)
    np.testing.assert_array_equal(found, by_products.support_points(directions))


@pytest.mark.parametrize("q", [2, 3, math.inf])
@pytest.mark.parametrize("sizes", [(1.0, 3.0, 0.1), (1e-9, 0.0, 1e9), (1e150, 7.0, 3e149)])
def test_bounds_of_diagonal_forms_are_above_the_exact_maximum_and_near(q, sizes):
    widths, form = np.array([0.3, 5.0, 7.0]), np.diag(sizes)
    found = ConvexImage(np.diag(widths), (LpBlock(3, q),), np.zeros((1, 3))).max_quadratic(
        form, np.zeros(3)
    )
    squares = [
        Fraction(float(h)) * Fraction(float(w)) ** 2 for h, w in zip(sizes, widths, strict=True)
    ]
    if q == 2:
        exact = float(max(squares))
    elif q == math.inf:
        exact = float(sum(squares))
    else:  # the largest Σ y_i x_i² over Σ |x_i|³ <= 1 is ‖y‖_3
        top = max(squares)
        exact = float(top) * float(sum((y / top) ** 3 for y in squares)) ** (1 / 3)
    assert exact * (1 - 1e-12) <= found.upper_bound <= exact * (1 + 1e-9)
    assert found.value == pytest.approx(exact, rel=1e-12)


def test_the_parts_of_a_diagonal_form_give_it_back():
    form = np.diag([1e-200, 0.0, 1e200, 7.0])
    scale, root, residual = image.unit_diagonal(form)
    assert not (residual < 0).any()
    exactly = [Fraction(float(s)) for s in scale]
    for i in range(4):
        made = sum(Fraction(float(x)) ** 2 for x in root[:, i]) * exactly[i] ** 2
        off = abs(Fraction(float(form[i, i])) - made)
        assert off <= Fraction(float(residual[i, i])) * exactly[i] ** 2
        assert off <= Fraction(1e-14) * Fraction(float(form[i, i]))
