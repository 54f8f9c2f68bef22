"""The dual norms γ₂* and γ_F*, by a semidefinite programme with a proof of its result."""

import contextlib
import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal, final, get_args

import numpy as np
from numpy.typing import ArrayLike

from domains.errors import DomainTooLargeError
from domains.floats import EPS, Array

from ..errors import ParameterError
from ..numerics.norms import dual_ball_norm, dual_order, even_weights, norm
from ..numerics.rounding import ROUNDING_MARGIN
from ..numerics.span import placed
from ..solvers.reference.sdp import cvxpy_with
from .factorize import asked_norm, check_matrix, warn_of_gap

Solver = Literal["clarabel", "scs"]

# Eigenvalues below this fraction of the largest one, in the solver's Gram matrix, are due to its
# tolerance: their eigenvectors are dropped.
_NEGLIGIBLE = 1e-12
_CLARABEL_ORDER, _LARGEST_ORDER = 40, 600
# The default tolerance of SCS is 1e-4; 1e-9 gives certified gaps of 1e-9 (40 x 30) at little cost.
_SETTINGS = {"clarabel": {}, "scs": {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 20_000}}


def dual_norm(
    A: "ArrayLike",
    error: str | float = "max",
    *,
    tol: float = 1e-6,
    solver: Solver | Literal["auto"] = "auto",
) -> "DualNorm":
    r"""Return the dual norm ``γ_(p)*(A) = max { Σ A_ij B_ij : γ_(p)(B) <= 1 }``, certified.

    The dual norm equals ``max Σ A_ij <u_i, v_j>`` over vectors with ``‖v_j‖ <= 1`` and
    ``‖(‖u_i‖)_i‖_p <= 1``. At p = ∞ all u_i, v_j are unit vectors. The dual norm is then
    Grothendieck's semidefinite relaxation of the largest ``Σ A_ij s_i t_j`` over signs s_i, t_j.
    The relaxation is at most 1.7823 times as large as the largest sum. By duality,
    ``γ_(p)*(A) = min ‖W^{-1/2} A Λ^{-1/2}‖``, an operator norm, over weights as in
    :class:`Witness`.

    Neither bound relies on the solver's accuracy: the lower bound is recomputed from the normalised
    vectors, and the upper bound from the weights by singular values.

    Args:
        A: shape (queries, cells).
        error: "max" (p = ∞), "mean" (p = 2), or p itself in [2, ∞], as in :func:`factorize`.
        tol: certified relative gap to reach, in (0, 1).
        solver: "clarabel" (interior point), "scs" (first order), or "auto". "auto" is Clarabel up
            to 40 rows and columns together, where it takes a few seconds, and SCS above.

    Returns:
        A :class:`DualNorm`; ``float(...)`` is the lower bound, attained by its vectors.

    Raises:
        ParameterError: A is not a finite real matrix, error or solver is unknown, or tol is outside
            (0, 1).
        DomainTooLargeError: A has more than 600 rows and columns, which would take hours.
        NotAvailableError: cvxpy or the solver is not installed.

    Warns:
        ConvergenceWarning: the gap is wider than ``tol``; both bounds are still valid.

    Source: Grothendieck (1953); Alon & Naor (2006), Section 2, for the programme; for its dual, the
    trace duality of γ₂, and Theorem 26 in Nikolov & Tang (2023).

    >>> # the CHSH game: 2^{3/2} with quantum strategies, 2 without
    >>> bound = gn.dual_norm([[1, 1], [1, -1]])
    >>> print(f"{bound.value:.6f}", bound.gap < 1e-6)
    2.828427 True
    """
    p = asked_norm("dual_norm", error, tol)
    if solver not in ("auto", *get_args(Solver)):
        raise ParameterError(
            f'dual_norm: expected solver="auto", "clarabel" or "scs", got {solver!r}'
        )
    matrix = check_matrix("dual_norm", A)
    order = sum(matrix.shape)
    if order > _LARGEST_ORDER:
        raise DomainTooLargeError(
            f"dual_norm: a semidefinite programme of order {order}, more than {_LARGEST_ORDER}, "
            "would take hours; hint: fewer queries or cells"
        )
    if solver == "auto":
        solver = "clarabel" if order <= _CLARABEL_ORDER else "scs"
    rows, columns = (matrix != 0).any(axis=1), (matrix != 0).any(axis=0)
    if not rows.any():
        q, n = matrix.shape
        weights = even_weights(q, p), np.full(n, 1 / n)
        return DualNorm(p, 0.0, 0.0, np.zeros((q, 0)), np.zeros((n, 0)), *weights, solver)
    size = float(np.abs(matrix).max())
    unit = matrix[np.ix_(rows, columns)] / size
    gram, proposed = _solve(unit, p, solver)
    U, V = _vectors(unit, gram, p)
    lower = float(np.sum(U * (unit @ V)) * (1 - ROUNDING_MARGIN))
    # take the better of two weights: the solver's, and those that follow from its vectors, which
    # are better if some weights are tiny
    queries = np.linalg.norm(unit @ V, axis=1)
    stationary = (
        queries ** ((p - 2) / (p - 1) if p < math.inf else 1.0),
        np.linalg.norm(unit.T @ U, axis=1),
    )
    upper, w, cells = min(
        (_operator_norm(unit, *weights, p) for weights in (proposed, stationary)),
        key=lambda u: u[0],
    )
    result = DualNorm(
        p,
        size * lower,
        size * upper,
        placed(U, rows),
        placed(V, columns),
        placed(w, rows),
        placed(cells, columns),
        solver,
    )
    warn_of_gap("dual_norm", result.gap, tol, "both ends hold")
    return result


@final
@dataclass(frozen=True, eq=False)
class DualNorm:
    """Proven bounds ``value <= γ_(p)*(A) <= upper``; made by :func:`gaussnoise.dual_norm`.

    Attributes:
        p: the order of the error's norm.
        value: the lower bound ``Σ A_ij <left_i, right_j>``, which ``left`` and ``right`` attain.
        upper: the upper bound ``‖W^{-1/2} A Λ^{-1/2}‖`` over the rows and columns of A that are not
            zero. It bounds factorization norms from below: ``γ_(p)(B) >= Σ A_ij B_ij / upper`` for
            every B.
        left: vectors u_i as rows, shape (queries, k); the p-norm of their lengths is at most one.
        right: vectors v_j as rows, shape (cells, k), of length at most one.
        query_weights: w, shape (queries,), as in :class:`Witness`; zero for zero rows.
        cell_weights: λ, shape (cells,), a probability vector; zero for zero columns.
        solver: the solver that found these vectors and weights.

    >>> norm = gn.dual_norm(np.eye(3))
    >>> print(f"{norm.value:.4f} {norm.upper:.4f}")
    3.0000 3.0000
    """

    p: float
    value: float
    upper: float
    left: Array
    right: Array
    query_weights: Array
    cell_weights: Array
    solver: Solver

    def __post_init__(self) -> None:
        for array in (self.left, self.right, self.query_weights, self.cell_weights):
            array.flags.writeable = False

    @property
    def lower(self) -> float:
        """The lower bound on the dual norm, the same number as ``value``."""
        return self.value

    @property
    def gap(self) -> float:
        """The gap ``upper / value − 1``; zero when both are zero."""
        if self.upper == 0:
            return 0.0
        return self.upper / self.value - 1 if self.value > 0 else math.inf

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return (
            f"DualNorm({self.value:.10g} <= gamma_({self.p:g})* <= {self.upper:.10g}, gap "
            f"{self.gap:.1e}, vectors by {self.solver})"
        )


def _solve(A: Array, p: float, solver: Solver) -> tuple[Array, tuple[Array, Array]]:
    """Return the solver's Gram matrix of the right vectors, and weights of rows and columns."""
    # Minimise (‖d_u‖_{p/(p−2)} + Σ d_v)/2 with [[diag d_u, −A], [−A', diag d_v]] ⪰ 0, whose
    # multiplier is the Gram matrix of all u_i and v_j. At p = 2, d_u is constant: A'A is enough.
    cp = cvxpy_with(solver, "dual_norm")
    q, n = A.shape
    core = np.linalg.qr(A)[1] if p == 2 and q > n else A
    conjugate: Any = dual_order(p)  # cvxpy's type stubs say int
    d_u, d_v = cp.Variable(1 if p == 2 else len(core)), cp.Variable(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an inaccurate solution is used too
        cost = cp.sum(d_u) if p in (2, math.inf) else cp.pnorm(d_u, conjugate)
        diagonal = cp.diag(d_u if p > 2 else d_u * np.ones(len(core)))
        constraint = cp.bmat([[diagonal, -core], [-core.T, cp.diag(d_v)]]) >> 0
        problem = cp.Problem(cp.Minimize((cost + cp.sum(d_v)) / 2), [constraint])
        with contextlib.suppress(cp.SolverError):
            problem.solve(solver=solver.upper(), **_SETTINGS[solver])
    if any(value is None for value in (constraint.dual_value, d_u.value, d_v.value)):
        return np.eye(n), (np.ones(q), np.ones(n))
    gram, queries, cells = (
        np.asarray(value) for value in (constraint.dual_value, d_u.value, d_v.value)
    )
    if not (np.isfinite(gram).all() and min(np.trace(gram), queries.max(), cells.max()) > 0):
        return np.eye(n), (np.ones(q), np.ones(n))
    return gram[len(core) :, len(core) :], (np.ones(q) if p == 2 else queries, cells)


def _vectors(A: Array, gram: Array, p: float) -> tuple[Array, Array]:
    """Return the u_i that maximise Σ A_ij <u_i, v_j>, and unit v_j with Gram matrix ``gram``."""
    eigenvalues, axes = np.linalg.eigh((gram + gram.T) / 2)
    kept = eigenvalues > _NEGLIGIBLE * eigenvalues[-1]
    V = axes[:, kept] * np.sqrt(eigenvalues[kept])
    lengths = np.linalg.norm(V, axis=1)
    V = np.where(lengths[:, None] > 0, V, np.eye(*V.shape)[:1])
    V /= np.linalg.norm(V, axis=1)[:, None] * (1 + ROUNDING_MARGIN / 4)
    # the u_i maximise Σ A_ij <u_i, v_j>, where the p-norm of their lengths is one
    Y = A @ V
    lengths = np.linalg.norm(Y, axis=1)
    # by Hölder's inequality the best lengths of u_i are proportional to ‖y_i‖^{1/(p−1)}
    sizes = lengths ** (1 / (p - 1))
    sizes /= norm(sizes, p) * (1 + ROUNDING_MARGIN / 4)
    return Y * np.where(lengths > 0, sizes / np.where(lengths > 0, lengths, 1.0), 0.0)[:, None], V


def _operator_norm(A: Array, queries: Array, cells: Array, p: float) -> tuple[float, Array, Array]:
    """Return A's norm over roots of normalised weights, rounded up, and these weights."""
    w, cells = (np.maximum(d, EPS * d.max()) for d in (queries, cells))
    w = w / dual_ball_norm(w, p)
    cells = cells / cells.sum()
    largest = np.linalg.norm(A / np.sqrt(w)[:, None] / np.sqrt(cells), 2)
    return float(largest * (1 + ROUNDING_MARGIN)), w, cells
