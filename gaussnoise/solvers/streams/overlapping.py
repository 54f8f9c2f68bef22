"""The best noise if the possible sets of one person's ticks overlap, with all sets listed.

A barrier method minimises ``‖diag(A X⁻¹ A')‖_{p/2}`` over X = A'M⁻¹A ≻ 0 such that every set π has
a y_π >= 0 with Σ y_π = 1 and X_ππ ⪯ diag(y_π). Let S_π = diag(y_π) − X_ππ. The central path
minimises ``τ · error − Σ log det S_π``. On this path, all diagonal entries of S_π⁻¹ are equal, say
ν_π, since Σ y_π is fixed. So S_π⁻¹ = ν_π Z_π with a correlation matrix Z_π, and the Z_π with
weights ν_π/Σν solve the dual problem. Let u = diag(A X⁻¹ A'), and a = 1 − 2/p. The norm of u has a
barrier of its own: it is replaced by ``max_ω Σ u_j ω_j^a + (1/τ) Σ log ω_j`` with Σ ω = 1. This
maximum is a smooth function of u.

Newton steps eliminate y_π separately for each set (Boyd & Vandenberghe 2004, Sections 10.4 and
11.3).
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.floats import Array

from ...numerics.norms import dual_power, error_of
from ..points.columns import Report
from ..progress import keeps_answer

Indices = NDArray[np.intp]

MOST_TICKS = 48  # n (n + 1)/2 unknowns
MOST_ENTRIES = 2**23  # number of entries in the Hessians of all sets together
_SHARPER = 8.0
_CENTERED, _NEAR = 0.25, 1e-8  # largest squared Newton decrement near the path, and at its end
_SHARPEST = 1e3
_BACKTRACKS = 40
_MERIT_ROUNDING = 1e-13
_INNER_STEPS = 60


@dataclass(frozen=True, eq=False)
class Overlapping:
    """The best noise that the barrier method found, and its dual proof.

    Attributes:
        factor: L of the covariance L L', shape (n, n), not yet scaled to unit sensitivity.
        correlations: Z, the correlation matrix of every set of ticks, shape (P, k, k).
        weights: the dual weights of the sets, shape (P,).
        coordinate_weights: w, the dual weights of the answers, shape (n,), with ``‖w‖_{s*} <= 1``,
            where 1/s* = 1 − 2/p.
        gap: upper/lower − 1 as the solver computed it.
        steps: Newton steps.
        interrupted: whether Ctrl-C ended the search.
    """

    factor: Array
    correlations: Array
    weights: Array
    coordinate_weights: Array
    gap: float
    steps: int
    interrupted: bool = False


def affordable(n: int, count: int, k: int) -> bool:
    """Return whether the problem with ``count`` sets of k of n ticks takes only seconds."""
    return n <= MOST_TICKS and count * (k * (k + 1) // 2) ** 2 <= MOST_ENTRIES


class _Pairs:
    """Symmetric matrices as vectors of their entries (i, j), i <= j."""

    # the basis: e_i e_j' + e_j e_i' for i < j, and e_i e_i'
    def __init__(self, n: int) -> None:
        self.i, self.j = np.triu_indices(n)
        self.half = np.where(self.i == self.j, 0.5, 1.0)
        self.place = np.zeros((n, n), dtype=np.intp)
        self.place[self.i, self.j] = self.place[self.j, self.i] = np.arange(len(self.i))

    def coordinates(self, G: Array) -> Array:
        """Return inner products of G (…, n, n) with all matrices of the basis."""
        return 2 * self.half * G[..., self.i, self.j]

    def matrix(self, x: Array) -> Array:
        return x[..., self.place]

    def product(self, Q: Array, R: Array) -> Array:
        """Return ``tr(E Q E' R)`` for all pairs E, E' of the basis matrices, shape (…, m, m)."""
        i, j = self.i, self.j
        out = Q[..., j[:, None], i] * R[..., i[:, None], j]
        out += Q[..., j[:, None], j] * R[..., i[:, None], i]
        out += Q[..., i[:, None], i] * R[..., j[:, None], j]
        out += Q[..., i[:, None], j] * R[..., j[:, None], i]
        return out * (self.half[:, None] * self.half)


@dataclass(frozen=True, eq=False)
class _Point:
    X: Array
    y: Array
    inverse: Array  # X⁻¹
    variances: Array
    blocks: Array  # S⁻¹, (P, k, k)
    shares: Array
    error: float  # in the smoothed norm
    logdet: float

    def merit(self, tau: float) -> float:
        return tau * self.error - self.logdet


class _Path:
    def __init__(self, A: Array, sets: Indices, p: float) -> None:
        self.A, self.sets, self.p, self.a = A, sets, p, dual_power(p)
        self.n, k = len(A), sets.shape[1]
        self.outer, self.own = _Pairs(self.n), _Pairs(k)
        padded = np.full((self.n + 1, self.n + 1), len(self.outer.i), dtype=np.intp)
        padded[: self.n, : self.n] = self.outer.place
        # indices of each set's pairs among all pairs; pairs with padding have the index m
        self.places = padded[sets[:, self.own.i], sets[:, self.own.j]]

    def at(self, X: Array, y: Array, tau: float, shares: Array) -> _Point | None:
        """Return the barrier method's point with X and y; None outside the barrier's domain."""
        # X = A'M⁻¹A for the covariance M, and y bounds it on every set π: X_ππ ⪯ diag(y_π)
        k = self.sets.shape[1]
        padded = np.zeros((self.n + 1, self.n + 1))
        padded[: self.n, : self.n] = X
        S = -padded[self.sets[:, :, None], self.sets[:, None, :]]
        S[:, np.arange(k), np.arange(k)] += y
        try:
            roots = np.linalg.cholesky(S)
            inverse = np.linalg.inv(np.linalg.cholesky(X))
        except np.linalg.LinAlgError:
            return None
        inverse = inverse.T @ inverse
        variances = ((self.A @ inverse) * self.A).sum(axis=1)
        logdet = 2 * float(np.log(np.diagonal(roots, axis1=1, axis2=2)).sum())
        if self.p == 2:
            error = float(variances.sum())
        else:
            shares = self._shares(variances, 1 / tau, shares)
            error = float(variances @ shares**self.a + np.log(shares).sum() / tau)
        return _Point(
            X,
            y,
            inverse,
            variances,
            np.asarray(np.linalg.inv(S), dtype=np.float64),
            shares,
            error,
            logdet,
        )

    def _shares(self, u: Array, eps: float, shares: Array) -> Array:
        """Return the shares ω that maximise ``Σ u ω^(1−2/p) + eps Σ log ω``, by Newton's method."""
        a = self.a
        for _ in range(_INNER_STEPS):
            slope = a * u * shares**a
            curvature = (1 - a) * slope + eps
            slope = slope + eps
            # ν is the multiplier of Σ ω = 1; ``change`` is relative
            nu = (shares * slope / curvature).sum() / (shares**2 / curvature).sum()
            change = (slope - nu * shares) / curvature
            size = float((change * change * curvature).sum() / eps)
            length = min(1.0, 0.9 / max(float(-change.min()), 0.9))
            shares = shares * (1 + length * change)
            shares = shares / shares.sum()
            if size < 1e-16:
                break
        return shares

    def newton(self, now: _Point, tau: float) -> tuple[Array, Array, float]:
        """Return the Newton step in X and y of a point, and its squared decrement."""
        A, m, own = self.A, len(self.outer.i), self.own
        P, k = self.sets.shape
        w = now.shares**self.a if self.p > 2 else np.ones(self.n)
        R = A @ now.inverse
        # Σ w_j u_j with u = diag(A X⁻¹ A') has the derivative −⟨price, dX⟩ and the second
        # derivative 2 ⟨dX X⁻¹ dX, price⟩.
        price = R.T @ (w[:, None] * R)
        H = 2 * tau * self.outer.product(now.inverse, price)
        B = now.blocks
        # −log det S has the second derivative ⟨B dS, dS B⟩, which for diagonal dS is B∘B.
        squared = np.square(B)
        # derivative of y by X: diag(B dX B), shape (P, k, q)
        G = 2 * own.half * B[:, :, own.i] * B[:, :, own.j]
        solved = np.linalg.solve(squared, np.concatenate([G, np.ones((P, k, 1))], axis=2))
        by_pair, by_one = solved[:, :, :-1], solved[:, :, -1]
        total = by_one.sum(axis=1)
        # the part of the derivative that keeps Σ y = 1
        kept = by_pair - by_one[:, :, None] * (by_pair.sum(axis=1) / total[:, None])[:, None, :]
        # second derivative by X_ππ after y_π is eliminated: a Schur complement
        local = own.product(B, B) - G.transpose(0, 2, 1) @ kept
        flat = self.places[:, :, None] * (m + 1) + self.places[:, None, :]
        H += np.bincount(flat.ravel(), weights=local.ravel(), minlength=(m + 1) ** 2).reshape(
            m + 1, m + 1
        )[:m, :m]
        diagonal = np.diagonal(B, axis1=1, axis2=2)
        right = tau * self.outer.coordinates(price)
        pushed = own.coordinates(B) - (kept * diagonal[:, :, None]).sum(axis=1)
        right = (
            right - np.bincount(self.places.ravel(), weights=pushed.ravel(), minlength=m + 1)[:m]
        )
        x = self._solved(H, right, now, tau, R, w)
        local_x = np.append(x, 0.0)[self.places]
        free = np.linalg.solve(squared, diagonal[:, :, None])[:, :, 0]
        free = free - by_one * (free.sum(axis=1) / total)[:, None]
        dy = free + (kept @ local_x[:, :, None])[:, :, 0]
        rising = float(right @ x) + float((diagonal * free).sum())
        return self.outer.matrix(x), dy, rising

    def _solved(self, H: Array, right: Array, now: _Point, tau: float, R: Array, w: Array) -> Array:
        """Return the Newton step in X as a vector of the entries (i, j), i <= j."""
        if self.p == 2:
            return scipy.linalg.cho_solve(
                scipy.linalg.cho_factor(H, check_finite=False), right, check_finite=False
            )
        # for p > 2, shares are unknowns too: without them the system is ill-conditioned
        m, n = len(H), self.n
        wide = np.zeros((m + n + 1, m + n + 1))
        wide[:m, :m] = H
        J = 2 * self.outer.half * R[:, self.outer.i] * R[:, self.outer.j]
        wide[m:-1, :m] = -tau * (self.a * w)[:, None] * J
        wide[:m, m:-1] = wide[m:-1, :m].T
        slope = self.a * now.variances * w
        wide[np.arange(m, m + n), np.arange(m, m + n)] = -tau * (1 - self.a) * slope - 1
        wide[-1, m:-1] = wide[m:-1, -1] = -tau * now.shares
        # scaling by the diagonal makes the rows equally large
        sizes = np.append(1 / np.sqrt(np.abs(wide.diagonal()[:-1])), 1 / tau)
        wide *= sizes[:, None] * sizes
        padded = np.concatenate([right, np.zeros(n + 1)])
        solved: Array = np.asarray(np.linalg.solve(wide, sizes * padded), dtype=np.float64)
        return (sizes * solved)[:m]


def overlapping_optimum(
    A: Array, sets: Indices, p: float, *, tol: float, max_steps: int, report: Report | None = None
) -> Overlapping:
    """Return the best noise if the possible sets of one person's ticks overlap.

    A barrier method starts from X = I/(2k). ``A`` is the workload, shape (n, n); ``sets``, shape
    (P, k), padded with n, are all possible sets of ticks, and cover every tick.
    """
    path = _Path(A, sets, p)
    n, (P, k) = len(A), sets.shape
    shares = np.full(n, 1 / n)
    X, y = np.eye(n) / (2 * k), np.full((P, k), 1 / k)
    tau = P * k / float(((A @ np.linalg.inv(X)) * A).sum())
    now = path.at(X, y, tau, shares)
    best: Overlapping | None = None
    lower, steps, interrupted = 0.0, 0, False
    try:
        while now is not None and steps < max_steps:
            try:
                dX, dy, rising = path.newton(now, tau)
            except np.linalg.LinAlgError:
                break  # rounding allows no further step
            steps += 1
            length, tried = 1.0, None
            before = now.merit(tau)
            before += _MERIT_ROUNDING * abs(before)
            for _ in range(_BACKTRACKS):
                tried = path.at(now.X + length * dX, now.y + length * dy, tau, now.shares)
                if tried is not None and tried.merit(tau) <= before - 0.01 * length * rising:
                    break
                tried, length = None, length / 2
            if tried is None:
                break
            now = tried
            if rising > _CENTERED:
                continue
            ended = _result_at(A, sets, p, now, steps)
            lower = max(lower, ended[1])
            if best is None or ended[0].gap < best.gap:
                best = ended[0]
            if report is not None:
                report(steps, lower, lower * (1 + best.gap))
            if best.gap <= tol or tau * now.error > _SHARPEST * (P * k + n) / tol:
                break
            # τ is large enough: the remaining gap is due to the distance from the path
            if tau * now.error > (P * k + n) / tol and rising > _NEAR:
                continue
            tau *= _SHARPER
            now = path.at(now.X, now.y, tau, now.shares)
    except KeyboardInterrupt:
        if best is None or not keeps_answer():
            raise
        interrupted = True
    if best is None:
        raise RuntimeError("no step was taken")
    return replace(best, steps=steps, interrupted=interrupted)


def _result_at(
    A: Array, sets: Indices, p: float, now: _Point, steps: int
) -> tuple[Overlapping, float]:
    """Return the noise, its dual proof and the lower bound at a point of the barrier method."""
    k = sets.shape[1]
    diagonal = np.diagonal(now.blocks, axis1=1, axis2=2)
    # padding is not a tick: its entries do not count
    real = sets < len(A)
    # On the path, S_π⁻¹ = ν_π Z_π, so its diagonal gives the weight of π. Scaled to a unit
    # diagonal, S_π⁻¹ is a correlation matrix, also near the path.
    masses = (diagonal * real).sum(axis=1) / real.sum(axis=1)
    weights = masses / masses.sum()
    roots = np.sqrt(diagonal)
    Z = now.blocks / roots[:, :, None] / roots[:, None, :]
    Z[:, np.arange(k), np.arange(k)] = 1.0
    w = now.shares ** dual_power(p) if p > 2 else np.ones(len(A))
    second = np.zeros((len(A) + 1, len(A) + 1))
    np.add.at(second, (sets[:, :, None], sets[:, None, :]), weights[:, None, None] * Z)
    scaled = np.sqrt(w)[:, None] * A
    squares = np.linalg.eigvalsh(scaled @ second[:-1, :-1] @ scaled.T)
    lower = float(np.sqrt(np.maximum(squares, 0.0)).sum())
    # X_ππ ⪯ diag(y_π) with Σ y_π = 1 means sensitivity at most one: the error is an upper bound
    upper = error_of(now.variances, p)
    factor = scipy.linalg.solve_triangular(np.linalg.cholesky(now.X), A.T, lower=True).T
    return Overlapping(factor, Z, weights, w, upper / lower - 1, steps), lower
