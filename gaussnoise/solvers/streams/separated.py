"""The best noise for which X = A'M⁻¹A is zero between any two ticks of one person.

Then the effects of one person's ticks are orthogonal. If patterns are disjoint, this restriction
loses nothing: if X_ππ ⪯ diag(y_π) for every π, then ``X' = X + ⊕(diag(y_π) − X_ππ) ⪰ X`` has the
same sensitivity bound, and M' = A X'⁻¹ A' ⪯ M has no larger variance in any coordinate, so no
larger ‖sd(M)‖_p for any p. If patterns overlap, the optimum of the restricted problem is only an
upper bound.

Let p_π be probabilities of the patterns π, and W = diag(w). The dual problem is to maximise
``F = tr((W^½ A Λ A' W^½)^½)`` over p, w and Λ ⪰ 0 with ``diag Λ = Σ p_π 1_π``. Λ_ij is free if i
and j are in one pattern, and zero otherwise. The derivative of F is infinite where Λ or W is
singular, so Λ ⪰ 0 needs no barrier. Newton's method solves systems with the Hessian by conjugate
gradients; each product takes a few n × n matrix products.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from domains.floats import EPS, Array
from domains.participation.patterns import AbstractPatterns
from domains.participation.sensitivity import form_bound

from ...numerics.norms import dual_power, error_of
from ..points.columns import Report
from ..progress import interrupts_pass, keeps_answer

Indices = NDArray[np.intp]

# Eigenvalues of a Gram matrix lose singular values below the root of machine precision: if their
# ratio is below this number, singular values are computed instead.
_SQUARED_RANGE = 1e-11
_SETTLED = 1e-10  # the search ends once a step gains less than this fraction of the barrier
_FORCING = 0.05
_MOST_PRODUCTS = 300
_BACKTRACKS = 30
_SHARPER = 0.1
_MOST_SETS = 2000
_ROUNDS, _ROUGH_STEPS, _ROUGH = 4, 30, 1e-3


@dataclass(frozen=True, eq=False)
class Separated:
    """The best noise under a constraint, and its dual proof.

    The constraint is that all ticks of one person have orthogonal effects.

    Attributes:
        factor: L of the covariance L L', shape (n, n), not yet scaled to unit sensitivity.
        second_moment: Λ, the second moment of one person's contributions under the dual measure,
            shape (n, n).
        patterns: sets of one person's ticks, shape (P, k), padded with n.
        weights: p, the probabilities of these sets, shape (P,).
        coordinate_weights: w, the dual weights of the answers, shape (n,), with ``‖w‖_{s*} <= 1``,
            where 1/s* = 1 − 2/p.
        lower: F, a lower bound on γ if patterns are disjoint.
        gap: upper/lower − 1 of the problem in which one person's ticks have orthogonal effects.
        steps: Newton steps.
        interrupted: whether Ctrl-C ended the search.
    """

    factor: Array
    second_moment: Array
    patterns: Indices
    weights: Array
    coordinate_weights: Array
    lower: float
    gap: float
    steps: int
    interrupted: bool


@dataclass(frozen=True, eq=False)
class _Point:
    """A point of the search: its variables, and the dual objective with derivatives."""

    weights: Array
    inner: Array
    shares: Array
    second_moment: Array
    coordinate_weights: Array
    value: float
    roots: Array
    axes: Array
    rows: Array  # Y with Y Y' = X
    form: Array  # X
    variances: Array


class _Search:
    def __init__(self, A: Array, who: AbstractPatterns, sets: Indices, p: float) -> None:
        n = len(A)
        self.A, self.who, self.sets, self.p, self.power = A, who, sets, p, dual_power(p)
        self.members = np.zeros((len(sets), n + 1))
        self.members[np.arange(len(sets))[:, None], sets] = 1.0
        self.members = self.members[:, :n]
        self.pairs = np.nonzero(np.triu(who.meet(), 1))

    def start(self) -> _Point:
        """Return a first point, with equal weights of all patterns and of all answers."""
        n, P = len(self.A), len(self.sets)
        lengths = np.linalg.norm(self.A, axis=0)
        cosines = (self.A.T @ self.A) / lengths[:, None] / lengths
        sizes = np.sqrt(self.members.sum(axis=0) / P)
        alike = (cosines * sizes[:, None] * sizes)[self.pairs]
        # two second moments are tried: a diagonal one, and one that is exact for a single set
        tried = [
            self.at(np.full(P, 1 / P), inner, np.full(n, 1 / n))
            for inner in (np.zeros(len(alike)), 0.999 * alike)
        ]
        values = [now for now in tried if now is not None]
        if not values:
            raise RuntimeError("no positive definite start")
        return max(values, key=lambda now: now.value)

    def at(self, weights: Array, inner: Array, shares: Array) -> _Point | None:
        """Return the point with these variables; None if its second moment is not definite."""
        # weights of patterns give the diagonal of Λ, inner its entries between ticks of one pattern
        n = len(self.A)
        L = np.zeros((n, n))
        L[self.pairs] = inner
        L = L + L.T
        L[np.arange(n), np.arange(n)] = weights @ self.members
        w = shares**self.power if self.p > 2 else np.ones(n)
        scaled = np.sqrt(w)[:, None] * self.A
        squares, axes = np.linalg.eigh(scaled @ L @ scaled.T)
        roots = np.sqrt(np.maximum(squares, 0.0))
        if not squares[0] > _SQUARED_RANGE * squares[-1]:
            try:
                axes, roots, _ = np.linalg.svd(scaled @ np.linalg.cholesky(L))
            except np.linalg.LinAlgError:
                return None
            roots = np.maximum(roots, roots[0] * EPS)
        # N = W^-½ U diag(roots) U' W^-½, with U the axes. Hence X = A'N⁻¹A = rows rows', and the
        # variances are the diagonal of N.
        rows = scaled.T @ (axes / np.sqrt(roots))
        variances = np.square(axes * np.sqrt(roots)).sum(axis=1) / w
        return _Point(
            weights,
            inner,
            shares,
            L,
            w,
            float(roots.sum()),
            roots,
            axes,
            rows,
            rows @ rows.T,
            variances,
        )

    def gap(self, now: _Point) -> float:
        sensitivity = form_bound(self.who, np.abs(now.form))
        return error_of(now.variances, self.p, sensitivity) / now.value - 1

    def slopes(self, now: _Point, mu: float) -> tuple[Array, Array, Array]:
        """Return derivatives of objective and barrier by log weights, correlations, log shares."""
        # dF = ½ tr(X dΛ) + ½ Σ u_j dw_j, where a pair stands for two entries of Λ. The barrier μ Σ
        # log adds μ to every relative derivative.
        by_weight = now.weights * (self.members @ now.form.diagonal()) / 2 + mu
        by_pair = now.form[self.pairs] * self._scales(now)
        by_share = np.zeros(0)
        if self.p > 2:
            by_share = self.power * now.coordinate_weights * now.variances / 2 + mu
        return by_weight, by_pair, by_share

    def _scales(self, now: _Point) -> Array:
        sizes = np.sqrt(now.second_moment.diagonal())
        return sizes[self.pairs[0]] * sizes[self.pairs[1]]

    def newton(self, now: _Point, mu: float, enough: float) -> tuple[Array, Array, Array]:
        """Return a Newton step of the weights, correlations and shares, by conjugate gradients."""
        P, m = len(now.weights), len(now.inner)
        n, scales, rows, roots = len(self.A), self._scales(now), now.rows, now.roots
        # −d² tr S^½ = Σ_ab E_ab²/(2 s_a s_b (s_a + s_b)) for a change E of S in its axes, with
        # roots s; ``rows`` already have the factors 1/√s.
        kernel = 1 / (2 * (roots[:, None] + roots))
        half = np.sqrt(roots[:, None] * roots)
        gradient = np.concatenate(self.slopes(now, mu))
        free = n if self.p > 2 else 0
        # relative steps δ keep the sums of weights and of shares: Σ x δ = 0
        groups = np.zeros((len(gradient), 2 if free else 1))
        groups[:P, 0] = now.weights
        if free:
            groups[P + m :, 1] = now.shares
        # the term from the curvature of w = ω^power, which is concave in ω
        bend = (1 - self.power) * self.power * now.variances * now.coordinate_weights / 2

        def product(v: Array) -> Array:
            d = np.zeros((n, n))
            d[self.pairs] = v[P : P + m] * scales
            d = d + d.T
            d[np.arange(n), np.arange(n)] = (v[:P] * now.weights) @ self.members
            feature = rows.T @ d @ rows
            if free:
                feature = feature - half * (
                    now.axes.T @ ((self.power * v[P + m :])[:, None] * now.axes)
                )
            feature = feature * kernel
            back = rows @ feature @ rows.T
            out = np.concatenate(
                [
                    now.weights * (self.members @ back.diagonal()),
                    2 * back[self.pairs] * scales,
                    np.zeros(free),
                ]
            )
            if free:
                out[P + m :] = -self.power * ((now.axes @ (half * feature)) * now.axes).sum(axis=1)
                out[P + m :] += bend * v[P + m :]
                out[P + m :] += mu * v[P + m :]
            out[:P] += mu * v[:P]
            return out

        squares = np.square(rows)
        spread = squares @ kernel @ squares.T
        diagonal = np.concatenate(
            [
                np.square(now.weights) * ((self.members @ spread) * self.members).sum(axis=1) + mu,
                2 * spread[self.pairs] * np.square(scales),
                (
                    self.power**2
                    * (np.square(now.axes) @ (kernel * half**2) * np.square(now.axes)).sum(axis=1)
                    + bend
                    + mu
                )
                if free
                else np.zeros(0),
            ]
        )
        step = _projected(product, diagonal, gradient, groups, enough)
        return step[:P], step[P : P + m], step[P + m :]


def _projected(product, diagonal: Array, gradient: Array, groups: Array, enough: float) -> Array:
    """Return δ, orthogonal to ``groups``, with H δ = gradient; ``product`` multiplies by H."""
    eased = groups / diagonal[:, None]
    middle = groups.T @ eased

    def project(r: Array) -> Array:
        return r - groups @ np.linalg.solve(middle, eased.T @ r)

    delta = np.zeros(len(gradient))
    residual = project(gradient)
    direction = residual / diagonal
    size = float(residual @ direction)
    goal = max(_FORCING**2 * size, enough)
    for _ in range(_MOST_PRODUCTS):
        if size <= goal:
            break
        image = product(direction)
        bent = float(direction @ image)
        if not bent > 0:
            break
        delta = delta + size / bent * direction
        residual = project(residual - size / bent * image)
        previous, size = size, float(residual @ (residual / diagonal))
        direction = residual / diagonal + size / previous * direction
    return delta


def separated_optimum(
    A: Array,
    who: AbstractPatterns,
    sets: Indices,
    p: float,
    *,
    tol: float,
    max_steps: int,
    report: Report | None = None,
) -> Separated:
    """Return the best noise for which the effects of one person's ticks are orthogonal.

    ``A`` is the workload, shape (n, n). Each row of ``sets``, shape (P, k), is a possible set of
    one person's ticks, padded with n; together, the rows have every tick. Newton's method starts
    from equal weights on them.
    """
    search = _Search(A, who, sets, p)
    n, P = len(A), len(sets)
    now = search.start()
    # For p = 2 and disjoint patterns, no weight can vanish: Λ would be singular, where the
    # derivative of F is infinite.
    barrier = p > 2 or not who.are_disjoint
    mu = 0.01 * now.value / (n + P) if barrier else 0.0
    floor = 0.01 * tol * now.value / (n + P)
    # the points with the least upper bound and with the largest lower bound
    best, proof, upper = now, now, now.value * (1 + search.gap(now))
    steps, interrupted = 0, False
    try:
        while steps < max_steps:
            steps += 1
            change = search.newton(now, mu, 1e-30)
            gradient = np.concatenate(search.slopes(now, mu))
            flat = np.concatenate(change)
            rising = float(gradient @ flat)
            length = 1.0
            # relative changes stay above −1, so that weights and shares stay positive
            lowest = float(min(change[0].min(initial=0.0), change[2].min(initial=0.0)))
            if lowest < 0:
                length = min(1.0, 0.99 / -lowest)
            before = _merit(now, mu, p)
            tried = None
            for _ in range(_BACKTRACKS):
                weights = now.weights * (1 + length * change[0])
                shares = now.shares * (1 + length * change[2]) if p > 2 else now.shares
                inner = now.inner + length * change[1] * search._scales(now)
                tried = search.at(
                    weights / weights.sum(), inner / weights.sum(), shares / shares.sum()
                )
                if tried is not None and _merit(
                    tried, mu, p
                ) >= before + 1e-4 * length * rising - 1e-13 * abs(before):
                    break
                length /= 2
            if tried is None:
                break
            now = tried
            proof = now if now.value > proof.value else proof
            reached = now.value * (1 + search.gap(now))
            if reached < upper:
                best, upper = now, reached
            gap = max(upper / proof.value - 1, 0.0)
            if report is not None:
                report(steps, proof.value, proof.value * (1 + gap))
            if gap <= tol or (mu == 0 and rising < 1e-16 * now.value):
                break
            # near the maximum for this μ, continue with a smaller one
            if barrier and rising <= 0.1 * mu * (n + P):
                if mu <= floor and rising <= _SETTLED * mu * (n + P):
                    break
                mu = max(_SHARPER * mu, floor)
    except KeyboardInterrupt:
        if not steps or not keeps_answer():
            raise
        interrupted = True
    w = np.sqrt(best.coordinate_weights)
    factor = best.axes * np.sqrt(best.roots) / w[:, None]
    measure = proof.second_moment, sets, proof.weights, proof.coordinate_weights
    gap = max(upper / proof.value - 1, 0.0)
    return Separated(factor, *measure, proof.value, gap, steps, interrupted)


def covering_sets(A: Array, who: AbstractPatterns, p: float) -> Indices:
    """Return sets of one person's ticks that determine the best noise, or all sets if they are few.

    The best noise is that of :func:`separated_optimum`. If there are many sets, each round adds
    those that the noise for the previous sets does not cover.
    """
    if who.lists_few and who.count <= _MOST_SETS:
        return who.maximal()
    n, k = who.ticks, who.most
    ticks = np.arange(n)
    step = -(-n // k)
    found = {tuple(who.best(1.0 * (ticks % step == i)).tolist()) for i in range(step)}
    found |= {tuple(who.best(1e-9 + (ticks == i)).tolist()) for i in range(n)}
    for _ in range(_ROUNDS):
        sets = np.array([row + (n,) * (k - len(row)) for row in sorted(found)], dtype=np.intp)
        with interrupts_pass():
            now = separated_optimum(A, who, sets, p, tol=_ROUGH, max_steps=_ROUGH_STEPS)
        leverage = np.square(np.linalg.solve(now.factor, A)).sum(axis=0)
        most = float(np.append(leverage, 0.0)[sets].sum(axis=1).max())
        boosted = (who.best(leverage + most * (ticks == i)) for i in range(n))
        new = {
            tuple(row.tolist()) for row in boosted if leverage[row].sum() > most * (1 + _ROUGH / 4)
        }
        if not new - found:
            break
        found |= new
    return np.array([row + (n,) * (k - len(row)) for row in sorted(found)], dtype=np.intp)


def _merit(now: _Point, mu: float, p: float) -> float:
    total = now.value
    if mu:
        total += mu * float(np.log(now.weights).sum())
        if p > 2:
            total += mu * float(np.log(now.shares).sum())
    return total
