"""The optimal covariance of finitely many points as a semidefinite programme, by cvxpy."""

import math
import warnings
from typing import Any, Literal

import numpy as np

from domains.errors import DomainTooLargeError
from domains.floats import Array

from ...errors import NotAvailableError
from ..design import Design
from .duals import best_design, coordinates, dual_norm, dual_weights

Solver = Literal["clarabel", "scs"]

# Measured: Clarabel takes 110 bytes per entry of its system of equations, and 30 to 60 seconds for
# a system of 1.5 GB. SCS decomposes a matrix of order N + r in every iteration; a solve of order
# 400 takes a minute in total.
_BYTES = 110
_MOST_GIGABYTES = 2
_LARGEST_ORDER = 600
_BLOCK = 1200  # memory of cvxpy for building one block, in entries of 110 bytes
_SCS_WORK = 1e12  # iterations times order cubed: a few minutes


def sdp(points: Array, *, p: float, centered: bool, tol: float, solver: Solver) -> Design:
    """Return the optimal covariance M of the points x_i, by a semidefinite programme.

    Let s = p/2, let v be the center, and let X have the columns x_i − v. On the span of the points,
    M = B Q B'. The programme minimises ``‖diag M‖_s`` subject to
    ``[[M, X], [X', Y]] ⪰ 0, diag Y <= 1``. Up to scale, the multipliers of ``diag Y <= 1`` are the
    weights λ of points, and the multipliers of ``diag M <= u`` are the weights w of coordinates. If
    these do not prove ``tol``, weights computed from Q are tried.

    Args:
        points: shape (N, d), entries at most one.
        p: error norm.
        centered: whether v is free (γ_p) or zero (γ°_p).
        tol: gap to reach; the solver's own tolerance is a hundredth of it, within limits.
        solver: "clarabel" (interior point) or "scs" (first order; larger problems, less accurate).

    Raises:
        DomainTooLargeError: there are too many points or dimensions for the solver.
        NotAvailableError: cvxpy or the solver is not installed, or the solver failed.
    """
    origin, B, Y = coordinates(points, centered=centered)
    blocks = _has_block_per_point(solver, *Y.shape)
    Q, v, weights, w, steps = _solve(B, Y, p, centered, tol, solver, blocks)
    # Q may be slightly indefinite: its eigenvalues are raised to the points' width along the axes
    squares, axes = np.linalg.eigh((Q + Q.T) / 2)
    factor = B @ (axes * np.sqrt(np.maximum(squares, np.square((Y - v) @ axes).max(axis=0))))
    center = origin + B @ v
    duals = [(weights / weights.sum(), np.ones(len(B)) if p == 2 else w / dual_norm(w, p))]
    note = f"semidefinite programme by {'Clarabel' if solver == 'clarabel' else 'SCS'}"
    design = best_design(
        points, factor, center, duals, p=p, centered=centered, steps=steps, note=note
    )
    if design.gap <= tol:
        return design
    duals.append(dual_weights(points, factor @ factor.T, center, p, centered))
    return best_design(
        points, factor, center, duals, p=p, centered=centered, steps=steps, note=note
    )


def _has_block_per_point(solver: Solver, N: int, r: int) -> bool:
    """Return whether the programme has a matrix for each point; refuse too many points."""
    side = (r + 1) * (r + 2) // 2
    blocks = solver == "clarabel" and N >= side  # with fewer points, one matrix is smaller
    entries = N * max(side**2 / 2, _BLOCK) if blocks else (N + r) ** 4 / 8
    if solver == "clarabel":
        need, most, unit, hint = (
            entries * _BYTES / 1e9,
            _MOST_GIGABYTES,
            "GB",
            'solver="scs", or method="auto"',
        )
    else:
        need, most, unit, hint = (
            N + r,
            _LARGEST_ORDER,
            "as the order of its matrix",
            'method="auto"',
        )
    if need > most:
        raise DomainTooLargeError(
            f'method="sdp": {N} points of rank {r} would take {solver} about {need:.3g} {unit}, '
            f"more than {most}; hint: {hint}"
        )
    return blocks


def _solve(
    B: Array, Y: Array, p: float, centered: bool, tol: float, solver: Solver, blocks: bool
) -> tuple[Array, Array, Array, Array, int]:
    """Return covariance, center, multipliers of points and coordinates up to scale, iterations."""
    # Q is the covariance in the coordinates Y of the points, of which B is the basis
    cp = cvxpy_with(solver, 'method="sdp"')
    (N, r), d = Y.shape, len(B)
    Q, v, u = cp.Variable((r, r), symmetric=True), cp.Variable(r), cp.Variable(d)
    shift: Any = v if centered else np.zeros(r)
    unit = B / np.linalg.norm(B, axis=1).max()
    covered = cp.sum(cp.multiply(unit @ Q, unit), axis=1) <= u
    if blocks:
        # the relaxation does not restrict off-diagonal entries of Y: one block per point suffices
        columns = [cp.reshape(y - shift, (r, 1), order="F") for y in Y]
        cones = [cp.bmat([[Q, x], [x.T, np.ones((1, 1))]]) >> 0 for x in columns]
        constraints = [covered, *cones]
    else:
        gram = cp.Variable((N, N), symmetric=True)
        X = Y.T - cp.outer(shift, np.ones(N))
        cones = [cp.bmat([[Q, X], [X.T, gram]]) >> 0]
        constraints = [covered, *cones, cp.diag(gram) <= 1]
    if p == 2 or d == 1:
        objective = cp.sum(u)
    elif p == math.inf:
        objective = cp.max(u)
    else:
        objective, shares = cp.Variable(), cp.Variable(d)
        power = cp.PowCone3D(shares, objective * np.ones(d), u, np.full(d, 2 / p))
        constraints += [power, cp.sum(shares) == objective]
    problem = cp.Problem(cp.Minimize(objective), constraints)
    settings: dict[str, Any] = dict.fromkeys(
        ("tol_gap_abs", "tol_gap_rel", "tol_feas"), np.clip(tol / 100, 1e-11, 1e-8)
    )
    if solver == "scs":
        settings = dict.fromkeys(("eps_abs", "eps_rel"), np.clip(tol / 100, 1e-10, 1e-6))
        settings["max_iters"] = int(min(100_000, _SCS_WORK / (N + r) ** 3))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="Solution may be inaccurate"
            )  # an inaccurate solution is enough: the result is certified afterwards
            problem.solve(solver=solver.upper(), **settings)
    except cp.SolverError as error:
        raise _failure(solver, "an error") from error
    multipliers: list[Any] = [cone.dual_value for cone in cones]
    answers: list[Any] = [
        Q.value,
        v.value if centered else np.zeros(r),
        covered.dual_value,
        *multipliers,
    ]
    if any(answer is None or not np.isfinite(answer).all() for answer in answers):
        raise _failure(solver, f"status {problem.status!r}")
    weights = np.concatenate([multiplier.diagonal()[r:] for multiplier in multipliers])
    return (
        answers[0],
        answers[1],
        _positive(weights),
        _positive(answers[2]),
        problem.solver_stats.num_iters or 0,
    )


def _positive(multipliers: Array) -> Array:
    """Return multipliers with negative ones raised to 0; ones if none is positive."""
    clipped = np.maximum(multipliers, 0.0)
    return clipped if clipped.any() else np.ones_like(clipped)


def _failure(solver: Solver, got: str) -> NotAvailableError:
    return NotAvailableError(
        f'method="sdp": expected a solution from {solver}, got {got}; hint: the other solver, or '
        'method="auto"'
    )


def cvxpy_with(solver: str, who: str) -> Any:
    """Return cvxpy, or raise NotAvailableError if it or this solver is not installed."""
    try:
        import cvxpy as cp
    except ImportError:
        raise NotAvailableError(
            f'{who}: needs cvxpy; hint: pip install "cvxpy[clarabel,scs]"'
        ) from None
    if solver.upper() not in cp.installed_solvers():
        raise NotAvailableError(
            f"{who}: solver {solver!r} is not installed; hint: pip install {solver}"
        )
    return cp
