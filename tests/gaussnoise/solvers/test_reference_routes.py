"""The semidefinite and the ellipsoid route: against each other, closed forms, published values, and
their own theory.
"""

import ast
import itertools
import math
import sys
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
import scipy.linalg
from cases import pairwise

import gaussnoise.solvers.reference.duals as duals_module
import gaussnoise.solvers.reference.ellipsoid as ellipsoid_module
import gaussnoise.solvers.reference.sdp as sdp_module
from domains import DomainTooLargeError
from gaussnoise.errors import NotAvailableError
from gaussnoise.solvers.reference.duals import best_design, coordinates, dual_weights
from gaussnoise.solvers.reference.ellipsoid import cut, ellipsoid, enclosing_ball, symmetric_basis
from gaussnoise.solvers.reference.sdp import sdp

ROUNDING = 1e-10


def by_clarabel(points, p, centered, tol=1e-6):
    return sdp(points, p=p, centered=centered, tol=tol, solver="clarabel")


def by_scs(points, p, centered, tol=1e-6):
    return sdp(points, p=p, centered=centered, tol=tol, solver="scs")


def by_ellipsoid(points, p, centered, tol=1e-4):
    return ellipsoid(points, p=p, centered=centered, tol=tol, max_steps=10**5)


ROUTES = {by_clarabel: 1e-6, by_scs: 1e-4, by_ellipsoid: 1e-4}
every_route = pytest.mark.parametrize("route", ROUTES)
EXPONENTS = [2, 2.5, 3, 8, math.inf]
every_p = pytest.mark.parametrize("p", EXPONENTS)
every_shift = pytest.mark.parametrize("centered", [False, True], ids=["fixed", "centered"])


def bracket(points, design, p, centered):
    """Return (lower, upper) by the definitions."""
    N, d = points.shape
    r = design.factor.shape[1]
    assert design.weights.shape == (N,)
    assert design.coordinate_weights.shape == design.center.shape == (d,)
    assert np.linalg.matrix_rank(design.factor, tol=1e-12) == r
    assert (design.weights >= 0).all()
    assert math.isclose(design.weights.sum(), 1, rel_tol=1e-12)
    w = design.coordinate_weights
    assert (w >= 0).all()
    assert (
        np.linalg.norm(w, math.inf if p == 2 else 1 if p == math.inf else p / (p - 2)) <= 1 + 1e-12
    )
    if p == 2:
        assert (w == 1).all()
    if not centered:
        assert not design.center.any()
    mean = design.weights @ points if centered else np.zeros(d)
    root = np.sqrt(design.weights)[:, None] * (points - mean) * np.sqrt(w)
    lower = np.linalg.norm(root, "nuc")
    assert lower == pytest.approx(
        np.sqrt(np.maximum(np.linalg.eigvalsh(root.T @ root), 0)).sum(), rel=1e-6
    )
    # x'M⁺x on the range of M, and no part of x outside it
    frame, triangle = scipy.linalg.qr(design.factor, mode="economic")
    moved = (points - design.center).T
    assert np.abs(moved - frame @ (frame.T @ moved)).max() <= 1e-13
    reach = np.square(scipy.linalg.solve_triangular(triangle, frame.T @ moved)).sum(axis=0).max()
    M = reach * design.factor @ design.factor.T
    for x in moved.T / math.sqrt(M.trace()):  # [[M, x], [x', 1]] has no negative direction
        assert (
            np.linalg.eigvalsh(np.block([[M / M.trace(), x[:, None]], [x[None], np.ones((1, 1))]]))[
                0
            ]
            >= -1e-12
        )
    upper = np.linalg.norm(np.sqrt(M.diagonal()), p)
    assert upper / lower - 1 == pytest.approx(design.gap, abs=1e-7)
    return lower, upper


def check(points, p, centered, expected, routes=ROUTES):
    for route in routes:
        lower, upper = bracket(points, route(points, p, centered), p, centered)
        assert lower <= expected * (1 + ROUNDING)
        assert upper >= expected * (1 - ROUNDING)
        assert upper / lower - 1 <= ROUTES[route]


def _instances():
    rng = np.random.default_rng(5)

    def unit(x):
        return x / np.abs(x).max()

    yield "random", unit(rng.normal(size=(12, 4)))
    yield "one point", unit(rng.normal(size=(1, 3)))
    yield "two points", unit(rng.normal(size=(2, 3)))
    few = unit(rng.normal(size=(5, 3)))
    yield "duplicates", np.vstack([few, few, few[:2]])
    yield "rank 2 in 4 dimensions", unit(rng.normal(size=(9, 2)) @ rng.normal(size=(2, 4)))
    yield "more dimensions than points", unit(rng.normal(size=(3, 8)))
    yield "one coordinate dominates", unit(rng.normal(size=(8, 3)) * [1, 1e-3, 0.3])
    yield "far from the origin", unit(1 + 1e-3 * rng.normal(size=(6, 2)))
    yield "small integers", rng.integers(-2, 3, size=(12, 4)) / 2
    yield "a line", np.array([[1.0], [-0.25], [0.5]])


INSTANCES = dict(_instances())


@pytest.mark.paper("Appendix B", by="semidefinite programs by Clarabel and SCS")
@pytest.mark.parametrize(
    ("name", "p", "centered"),
    [
        *(
            row
            for row in pairwise(list(INSTANCES), [2, 2.5, math.inf], [False, True])
            if row[::2] != ("one point", True)
        ),
        *(
            ("random", p, p > 5) for p in EXPONENTS[2:4]
        ),  # all closed forms below are asked of it, too
    ],
)
def test_the_routes_agree(name, p, centered):
    points = INSTANCES[name]
    brackets = []
    for route, tol in ROUTES.items():
        lower, upper = bracket(points, route(points, p, centered), p, centered)
        assert lower <= upper * (1 + 1e-12)
        assert upper <= lower * (1 + tol)
        brackets.append((lower, upper))
    assert max(lower for lower, _ in brackets) <= min(upper for _, upper in brackets) * (
        1 + ROUNDING
    )


@pytest.mark.parametrize("p", [2.01, 30, 300])
@pytest.mark.parametrize("route", [by_clarabel, by_ellipsoid])
def test_exponents_near_the_ends(route, p):
    points = INSTANCES["random"][:6, :3]
    lower, upper = bracket(points, route(points, p, centered=True, tol=1e-6), p, centered=True)
    assert lower <= upper <= lower * (1 + 1e-6)


# -- closed forms
# ------------------------------------------------------------------------------------------------


@every_p
def test_simplex(p):
    m = 4
    check(np.eye(m), p, True, m ** (1 / p - 1 / 2) * (m - 1) / math.sqrt(m))
    differences = [np.eye(m)[i] - np.eye(m)[j] for i, j in itertools.combinations(range(m), 2)]
    check(np.array(differences), p, False, m ** (1 / p - 1 / 2) * math.sqrt(2 * (m - 1)))


@every_p
@every_shift
def test_cross_polytope_and_cube(p, centered):
    check(np.vstack([np.eye(3), -np.eye(3)]), p, centered, 3 ** (1 / p))
    check(
        np.array(list(itertools.product([-1.0, 1.0], repeat=3))), p, centered, 3 ** (1 / p + 1 / 2)
    )


@every_p
def test_circulant(p):
    column = np.array([1.0, 0.5, -0.25, 0.0, 0.75])
    nuclear = np.abs(np.fft.fft(column)).sum()
    check(scipy.linalg.circulant(column).T, p, False, 5 ** (1 / p - 1 / 2) * nuclear / math.sqrt(5))


@pytest.mark.parametrize(("p", "square"), [(2, 16 * 2.854084800749), (math.inf, 2.90525290259)])
def test_prefix_sums_have_their_published_values(p, square):
    published = math.sqrt(square)
    check(np.tri(16).T, p, False, published, routes=[by_clarabel, by_scs])


@pytest.mark.parametrize("p", [2, math.inf])
def test_prefix_sums_by_the_ellipsoid_method(p):
    exact = bracket(np.tri(5).T, by_clarabel(np.tri(5).T, p, False, tol=1e-8), p, centered=False)
    lower, upper = bracket(
        np.tri(5).T, by_ellipsoid(np.tri(5).T, p, False, 1e-6), p, centered=False
    )
    assert max(lower, exact[0]) <= min(upper, exact[1]) <= max(lower, exact[0]) * (1 + 1e-6)


# -- theory
# ------------------------------------------------------------------------------------------------


def _candidates(rng, Y, centered):
    """Draw random (Q, v): too small, feasible, indefinite, narrow."""
    r = Y.shape[1]
    A = rng.normal(size=(r, r))
    Q = A @ A.T * 10.0 ** rng.uniform(-2, 2) + rng.choice([0.0, 0.0, -1.0]) * np.eye(r)
    return (Q + Q.T) / 2, rng.normal(size=r) * rng.uniform(0, 0.5) * centered


def _feasible(Q, v, Y):
    squares, axes = np.linalg.eigh(Q)
    Q = (axes * np.maximum(squares, 1e-3 * np.abs(squares).max())) @ axes.T
    reach = ((Y - v) @ np.linalg.inv(Q) * (Y - v)).sum(axis=1).max()
    return Q * reach


@pytest.mark.paper("Appendix B", by="random feasible candidates, better ones among them")
@every_shift
@every_p
def test_cuts_keep_everything_feasible_and_better(p, centered):
    rng = np.random.default_rng(11)
    kinds = set()
    for _ in range(60):
        _, B, Y = coordinates(rng.uniform(-1, 1, size=(6, 3)), centered=centered)
        Q, v = _candidates(rng, Y, centered)
        others = [
            (_feasible(Q2, v2, Y), v2)
            for Q2, v2 in (_candidates(rng, Y, centered) for _ in range(7))
        ]
        others += [
            (_feasible((1 - t) * Q + t * Q2, v, Y), v) for Q2, _ in others for t in (0.01, 0.1)
        ]
        worth = [np.linalg.norm(((B @ Q2) * B).sum(axis=1), p / 2) for Q2, _ in others]
        level = float(np.median(worth))
        G, h, depth, own = cut(B, Y, Q, v, p, level, centered)
        kinds.add("gradient" if G.trace() > 0 else "axis" if own == math.inf else "point")
        assert depth >= 0
        size = np.linalg.norm(G)
        for (Q2, v2), value in zip(others, worth, strict=True):
            if value <= min(level, own):
                assert (G * (Q2 - Q)).sum() + h @ (v2 - v) <= -depth + 1e-9 * size * (
                    1 + np.linalg.norm(Q2 - Q)
                )
    assert kinds == {"gradient", "axis", "point"}


def test_the_point_cut_is_the_one_of_nikolov_and_tang():
    Y, Q, v = np.array([[2.0, 1.0], [0.5, -0.5]]), np.diag([1.0, 2.0]), np.array([0.25, 0.0])
    x = Y[0]
    g = np.linalg.inv(Q) @ (x - v)
    G, h, depth, worth = cut(np.eye(2), Y, Q, v, 2, math.inf, True)
    assert np.allclose(G, -np.outer(g, g))
    assert np.allclose(h, -2 * g)
    assert math.isclose(depth, (x - v) @ g - 1)
    assert math.isclose(worth, 3 * (x - v) @ g)


@every_shift
@every_p
def test_the_first_candidates_contain_the_optimum(p, centered):
    for name in (
        "random",
        "one coordinate dominates",
        "rank 2 in 4 dimensions",
        "far from the origin",
    ):
        points = INSTANCES[name]
        origin, B, Y = coordinates(points, centered=centered)
        design = by_clarabel(points, p, centered)
        inner = np.linalg.lstsq(B, design.factor)[0]
        found = np.linalg.lstsq(B, design.center - origin)[0]
        reach = np.square(np.linalg.solve(inner, (Y - found).T)).sum(axis=0).max()
        Q, v, level, shape = enclosing_ball(B, Y, p, centered)
        E = symmetric_basis(len(Q))
        difference = np.tensordot(E, reach * inner @ inner.T - Q)
        if centered:
            difference = np.concatenate([difference, found - v])
        assert np.linalg.norm(np.linalg.solve(shape, difference)) <= 1
        assert math.isclose(level, np.linalg.norm(((B @ Q) * B).sum(axis=1), p / 2))
        assert (((Y - v) @ np.linalg.inv(Q)) * (Y - v)).sum(axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_shrunk_ellipsoid_contains_what_the_cut_leaves(n):
    rng = np.random.default_rng(n)
    for tau in (0.0, 0.3, 0.9):
        middle, shape, ray = (
            rng.normal(size=n),
            rng.normal(size=(n, n)) + 3 * np.eye(n),
            rng.normal(size=n),
        )
        ray /= np.linalg.norm(ray)
        inside = rng.normal(size=(20000, n))
        inside *= (rng.uniform(size=20000) ** (1 / n) / np.linalg.norm(inside, axis=1))[:, None]
        inside[0] = -ray
        kept = inside[inside @ ray <= -tau]
        after, smaller = ellipsoid_module._shrunk(middle, shape, ray, tau)
        lengths = np.linalg.norm(
            np.linalg.solve(smaller, (middle + kept @ shape.T - after).T), axis=0
        )
        assert lengths.max() <= 1 + 1e-9
        assert (
            lengths.max() >= 1 - 1e-9
        )  # and no larger than needed: the far end is on its boundary
        assert abs(np.linalg.det(smaller)) <= abs(np.linalg.det(shape)) * math.exp(
            -1 / (2 * (n + 1))
        )


def test_symmetric_basis_is_orthonormal():
    E = symmetric_basis(4)
    assert E.shape == (10, 4, 4)
    assert np.allclose(np.tensordot(E, E, ((1, 2), (1, 2))), np.eye(10))
    assert np.allclose(E, E.transpose(0, 2, 1))


@every_shift
@every_p
def test_dual_weights_lose_only_the_square_of_an_error_in_the_primal(p, centered):
    for name in ["random"] + ["one coordinate dominates"] * (p == math.inf):
        points = INSTANCES[name]
        design = by_clarabel(points, p, centered)
        exact, _ = bracket(points, design, p, centered)
        noise = np.random.default_rng(3).normal(size=(points.shape[1],) * 2)
        for error in (1e-3, 1e-4, 1e-5, 1e-6):
            L = design.factor + error * noise @ design.factor
            weights, w = dual_weights(points, L @ L.T, design.center, p, centered)
            mean = weights @ points if centered else 0
            lower = np.linalg.norm(np.sqrt(weights)[:, None] * (points - mean) * np.sqrt(w), "nuc")
            assert 1 - 100 * error**2 - 1e-8 <= lower / exact <= 1 + 1e-6


def test_dual_weights_ignore_inactive_points_and_coordinates():
    points = np.array([[1.0, 0.0], [0.0, 0.125], [0.25, 0.0625]])
    weights, w = dual_weights(points, np.diag([1.0, 1 / 64]), np.zeros(2), math.inf, centered=False)
    assert weights == pytest.approx([1, 0, 0], abs=1e-6)
    assert w == pytest.approx([1, 0], abs=1e-6)


def test_the_best_dual_witness_and_center_are_kept():
    square = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    good, poor = np.full(4, 0.25), np.array([0.1, 0.2, 0.3, 0.4])
    for duals, center in itertools.product(
        itertools.permutations([(good, np.ones(2)), (poor, np.ones(2))]),
        [np.full(2, 0.5), np.array([0.4, 0.5])],
    ):
        design = best_design(square, np.eye(2), center, duals, p=2, centered=True, steps=1, note="")
        assert (design.weights == good).all()
        assert (design.center == 0.5).all()
        assert design.gap == pytest.approx(0, abs=1e-12)
    design = best_design(
        square,
        np.eye(2),
        np.full(2, 0.5),
        [(poor, np.ones(2))],
        p=2,
        centered=True,
        steps=1,
        note="",
    )
    assert (design.center == 0.5).all()
    assert design.gap > 1e-3


def test_dual_weights_survive_a_least_squares_solver_that_gives_up(monkeypatch):
    def give_up(*_, **__):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(duals_module.scipy.optimize, "nnls", give_up)
    design = ellipsoid(INSTANCES["random"], p=math.inf, centered=False, tol=1e-6, max_steps=50)
    lower, upper = bracket(INSTANCES["random"], design, math.inf, centered=False)
    assert lower < upper * (1 - 1e-3)


# -- stopping, refusing, failing
# -------------------------------------------------------------------------------------


@every_shift
def test_few_steps_still_give_a_bracket(centered):
    points, seen = INSTANCES["random"], []
    exact = bracket(points, by_clarabel(points, 3, centered), 3, centered)
    for max_steps in (0, 3, 500):
        design = ellipsoid(
            points,
            p=3,
            centered=centered,
            tol=1e-6,
            max_steps=max_steps,
            report=lambda *now: seen.append(now),
        )
        lower, upper = bracket(points, design, 3, centered)
        assert lower <= exact[1]
        assert exact[0] <= upper
        assert design.steps == max_steps
        assert design.gap > 1e-6
    assert [step for step, _, _ in seen] == [3, *range(seen[1][0], 500, seen[1][0]), 500]
    assert all(lower <= exact[1] and exact[0] <= upper for _, lower, upper in seen)
    assert seen[-1][2] < seen[0][2]


def test_the_ellipsoid_method_stops_when_the_gap_is_reached():
    steps = [by_ellipsoid(INSTANCES["random"], 2, False, tol).steps for tol in (1e-1, 1e-3, 1e-6)]
    assert steps[0] < steps[1] < steps[2] < 2000


def test_an_interruption_keeps_the_best_so_far():
    def stop(step, lower, upper):
        raise KeyboardInterrupt

    design = ellipsoid(
        INSTANCES["random"], p=2, centered=False, tol=1e-6, max_steps=10**5, report=stop
    )
    assert design.interrupted
    assert 0 < design.steps < 1000
    lower, upper = bracket(INSTANCES["random"], design, 2, centered=False)
    assert lower < upper


def test_an_inaccurate_answer_is_repaired_and_certified(monkeypatch):
    points = INSTANCES["random"]
    monkeypatch.setattr(sdp_module, "_SCS_WORK", 60 * 16**3)
    design = by_scs(points, 2, False)
    assert design.steps == 60
    lower, upper = bracket(points, design, 2, centered=False)
    exact = bracket(points, by_clarabel(points, 2, False), 2, centered=False)
    assert design.gap > 1e-6
    assert lower <= exact[1]
    assert exact[0] <= upper


@every_p
@pytest.mark.parametrize("route", [by_clarabel, by_scs])
def test_the_multipliers_are_the_dual_weights(route, p, monkeypatch):
    def unused(*_):
        raise AssertionError("the solver's own multipliers should do")

    monkeypatch.setattr(sdp_module, "dual_weights", unused)
    for name in ("random", "more dimensions than points"):
        bracket(INSTANCES[name], route(INSTANCES[name], p, True), p, centered=True)


@every_p
def test_poor_multipliers_are_replaced(p, monkeypatch):
    monkeypatch.setattr(sdp_module, "_positive", np.ones_like)
    lower, upper = bracket(
        INSTANCES["random"], by_clarabel(INSTANCES["random"], p, False), p, centered=False
    )
    assert upper <= lower * (1 + 1e-6)


def test_an_indefinite_answer_is_repaired(monkeypatch):
    solve = sdp_module._solve

    def indefinite(*args):
        Q, *rest = solve(*args)
        return Q - 1.1 * np.linalg.eigvalsh(Q)[0] * np.eye(len(Q)), *rest

    monkeypatch.setattr(sdp_module, "_solve", indefinite)
    lower, upper = bracket(
        INSTANCES["random"], by_clarabel(INSTANCES["random"], 2, False), 2, centered=False
    )
    assert lower * (1 + 1e-6) < upper < 2 * lower


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: by_clarabel(np.eye(200), 2, False),
            r"200 points of rank 200 .* clarabel .* GB.*hint: solver=\"scs\"",
        ),
        (
            lambda: by_clarabel(np.eye(60, 2).repeat(2000, 0), 2, False),
            r"120000 points of rank 2 .*GB",
        ),
        (
            lambda: by_scs(np.eye(301), 2, False),
            r"301 points .* 602 as the order.*more than 600; hint: method=\"auto\"",
        ),
        (
            lambda: by_ellipsoid(np.eye(17), 2, False),
            r"153 unknowns .* 304317 steps; expected at most 150",
        ),
        (lambda: by_ellipsoid(np.eye(17), 2, True), r"152 unknowns for points of rank 16"),
    ],
)
def test_hopeless_sizes_are_refused_at_once(call, message):
    with pytest.raises(DomainTooLargeError, match=message):
        call()


def test_the_largest_sizes_are_not_refused():
    assert sdp_module._has_block_per_point("clarabel", 10000, 5)
    assert not sdp_module._has_block_per_point("clarabel", 50, 50)
    assert not sdp_module._has_block_per_point("scs", 300, 300)


def _failing(monkeypatch, solve):
    monkeypatch.setattr(cp.Problem, "solve", solve)
    return pytest.raises(
        NotAvailableError,
        match=r"expected a solution from clarabel, got .*; hint: .*method=\"auto\"",
    )


def test_solver_errors_are_wrapped(monkeypatch):
    def fail(*_, **__):
        raise cp.SolverError("Solver 'CLARABEL' failed.")

    with _failing(monkeypatch, fail) as caught:
        by_clarabel(np.eye(2), 2, False)
    assert isinstance(caught.value.__cause__, cp.SolverError)


def test_answers_without_values_are_refused(monkeypatch):
    with _failing(monkeypatch, lambda *_, **__: None):
        by_clarabel(np.eye(2), 2, False)


def test_answers_that_are_not_numbers_are_refused(monkeypatch):
    def spoil(problem, **_):
        duals = [dual for constraint in problem.constraints for dual in constraint.dual_variables]
        for variable in [*problem.variables(), *duals]:
            variable.save_value(np.full(variable.shape, math.nan))

    with _failing(monkeypatch, spoil):
        by_clarabel(np.eye(2), 2, False)


def test_a_missing_solver_is_named(monkeypatch):
    monkeypatch.setattr(cp, "installed_solvers", lambda: ["CLARABEL"])
    with pytest.raises(
        NotAvailableError, match=r"solver 'scs' is not installed; hint: pip install scs"
    ):
        by_scs(np.eye(2), 2, False)


def test_a_missing_cvxpy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(NotAvailableError, match=r"needs cvxpy; hint: pip install"):
        by_clarabel(np.eye(2), 2, False)


def test_the_routes_share_nothing_with_the_solver_they_check():
    for module in (duals_module, ellipsoid_module, sdp_module):
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        ours = {
            node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and (node.level or (node.module or "").startswith("gaussnoise"))
        }
        assert ours <= {"design", "duals", "errors", "progress"}
