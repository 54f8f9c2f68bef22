"""The optimal covariance of finitely many points: an interior-point method on the dual."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from domains.floats import Array

from ..design import Design
from ..progress import keeps_answer
from .fidelity import Fidelity, Hessian

# Two multiplicative steps before the first Newton step bring most problems near enough for it. With
# power 1 each step increases F; power 2 solves orthogonal points in one step. A value between them
# saved most Newton steps.
_PLAIN_STEPS, _PLAIN_POWER = 2, 1.5
_PLAIN_FLOOR = 1e-3  # share of the uniform measure that each step mixes in
# A Newton step aims at this fraction of the present complementarity Σ x_i slack_i: _SHARP after a
# step longer than _ALMOST_FULL, else _GENTLE. On prefix sums, Gaussian and heavy-tailed points this
# took 8 to 30 steps in all, for every p.
_SHARP, _GENTLE, _ALMOST_FULL = 0.03, 0.5, 0.8
_TO_THE_BOUNDARY = 0.99
_BACKTRACKS = 12
# Newton systems are solved to a relative residual of n μ/F, between these limits. Looser limits
# cost steps on random points, tighter ones cost products on all points. Entries of the residual
# below the target complementarity need not be reduced.
_LOOSEST, _TIGHTEST = 0.03, 1e-3
_MAX_PRODUCTS = 300
_ROUNDED = 1e-12  # smaller deviations of sums of weights are rounding
_PATIENCE = 60  # steps without progress after which the search ends: the cause is rounding


def optimal_design(
    fidelity: Fidelity,
    *,
    tol: float,
    max_steps: int,
    start: tuple[Array, Array] | None = None,
    report: Callable[[int, float, float], None] | None = None,
) -> Design:
    """Return the optimal covariance, by maximising F(λ, ω) over weights of points and coordinates.

    Every step gives a lower and an upper bound. The first two steps are multiplicative; the next
    ones apply Newton's method to the optimality conditions of both simplices.

    Args:
        fidelity: the objective.
        tol: gap to reach.
        max_steps: evaluations allowed.
        start: weights and shares to begin from; by default, the result of multiplicative steps
            from uniform ones.
        report: called with (steps, lower, upper).
    """
    # multiplicative steps are like λ_i ← λ_i z_i/F, ω_j ← w_j u_j/F (Yu 2010), where z_i is the
    # squared length of point i and u_j the variance of coordinate j in the present ellipsoid.
    # Newton's method solves ∂F/∂x_i + slack_i = multiplier, x_i slack_i = μ as μ → 0, x = (λ, ω).
    # Unknowns are scaled by x, so that weights of every size have the same relative precision,
    # since points with little effect on F also determine the upper bound. Linear systems are solved
    # by preconditioned conjugate gradients; a product with the Hessian takes two matrix products of
    # the size of the points
    optimum = maximum(fidelity, tol=tol, max_steps=max_steps, start=start, report=report)
    return Design(
        weights=optimum.weights,
        coordinate_weights=fidelity.coordinate_weights(optimum.shares),
        factor=fidelity.factor(optimum.at, optimum.shares),
        center=optimum.weights @ fidelity.points
        if fidelity.centered
        else np.zeros(fidelity.points.shape[1]),
        gap=optimum.at.gap,
        steps=optimum.steps,
        note="interior-point method on the dual",
        interrupted=optimum.interrupted,
    )


class Objective(Protocol):
    """A dual objective F of weights λ and shares ω, with ``w = ω^power``, like :class:`Fidelity`.

    ``at`` returns an object with ``value``, ``gap``, ``lengths`` and ``variances``, as
    :class:`Evaluation` has them.
    """

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def p(self) -> float: ...
    @property
    def power(self) -> float: ...
    def coordinate_weights(self, shares: Array) -> Array: ...
    def at(self, weights: Array, shares: Array) -> Any: ...
    def curvature(self, now: Any, x: Array) -> Hessian: ...


@dataclass(frozen=True, eq=False)
class Maximum:
    """The weights λ and shares ω with the smallest gap, and the dual objective's evaluation there.

    ``steps`` is the number of evaluations; ``interrupted`` says whether Ctrl-C ended the search.
    """

    weights: Array
    shares: Array
    at: Any
    steps: int
    interrupted: bool


def maximum(
    objective: Objective,
    *,
    tol: float,
    max_steps: int,
    start: tuple[Array, Array] | None = None,
    report: Callable[[int, float, float], None] | None = None,
) -> Maximum:
    """Return the maximum of a dual objective F, by multiplicative and then interior-point steps.

    ``tol`` is the gap to reach, ``max_steps`` the evaluations allowed, ``start`` the first weights
    and shares, and ``report`` is called with (steps, lower, upper).
    """
    search = _Search(objective, tol, max_steps, report)
    interrupted = False
    try:
        search.run(*(start or search.plain_steps()))
    except KeyboardInterrupt:
        if search.at is None or not keeps_answer():
            raise
        interrupted = True
    if search.at is None:
        raise RuntimeError("no step was taken")
    return Maximum(search.weights, search.shares, search.at, search.steps, interrupted)


class _Search:
    """A search for the maximum of the dual objective; it keeps the point with the smallest gap."""

    def __init__(
        self,
        fidelity: Objective,
        tol: float,
        max_steps: int,
        report: Callable[[int, float, float], None] | None,
    ) -> None:
        self.fidelity, self.tol, self.max_steps, self.report = fidelity, tol, max_steps, report
        count, dim = fidelity.shape
        self.weights, self.shares = np.full(count, 1 / count), np.full(dim, 1 / dim)
        self.at: Any = None
        self.steps, self.best_step, self.lower = 0, 0, 0.0

    def evaluate(self, weights: Array, shares: Array) -> Any:
        """Evaluate the dual objective; record the result if its gap is the smallest so far."""
        now = self.fidelity.at(weights, shares)
        self.steps += 1
        if self.at is None or now.gap < self.at.gap:
            self.weights, self.shares, self.at, self.best_step = weights, shares, now, self.steps
        if self.report:
            self.lower = max(self.lower, now.value)
            self.report(self.steps, self.lower, self.lower * (1 + self.at.gap))
        return now

    @property
    def finished(self) -> bool:
        solved = self.at is not None and self.at.gap <= self.tol
        return solved or self.steps >= self.max_steps or self.steps > self.best_step + _PATIENCE

    def plain_steps(self) -> tuple[Array, Array]:
        weights, shares = self.weights, self.shares
        for _ in range(_PLAIN_STEPS):
            now = self.evaluate(weights, shares)
            if self.finished:
                break
            weights = _mixed(weights * (now.lengths / now.value) ** _PLAIN_POWER)
            if self.fidelity.p > 2:
                ratio = (
                    self.fidelity.coordinate_weights(shares) * now.variances / shares / now.value
                )
                shares = _mixed(shares * ratio**_PLAIN_POWER)
        return weights, shares

    def run(self, weights: Array, shares: Array) -> None:
        """Take Newton steps until the gap is within the tolerance, or there is no more progress."""
        if self.finished:
            return
        count = len(weights)
        free = len(shares) if self.fidelity.p > 2 else 0
        x = np.concatenate([weights / weights.sum(), shares[:free] / shares.sum()])
        groups = np.zeros((len(x), 2 if free else 1))
        groups[:count, 0] = 1
        groups[count:, -1] = 1
        fixed = shares

        def at(x: Array) -> tuple[Any, Array]:
            shares = x[count:] / x[count:].sum() if free else fixed
            now = self.evaluate(x[:count] / x[:count].sum(), shares)
            return now, _slope(self.fidelity, now, shares)

        now, slope = at(x)
        multipliers = np.array([slope[group > 0].max() for group in groups.T])
        slack = np.maximum(
            groups @ multipliers - slope, max(now.gap, self.tol) * now.value / (2 * count * x)
        )
        length = 1.0
        while not self.finished:
            # Once μ is as small as ``enough``, the gap shrinks by steps towards the central path,
            # not by a smaller μ. Far from this path, a step keeps μ and only comes nearer to it.
            enough = self.tol * now.value / (2 * len(x))
            before = _residual(x, slope, slack, groups, multipliers)
            ease = (
                1.0 if before > float(x @ slack) else _SHARP if length > _ALMOST_FULL else _GENTLE
            )
            # aim at μ = complementarity/n, reduced by ``ease``
            target = max(enough, ease * float(x @ slack) / len(x))
            relative, tilt = _conjugate_gradients(
                self.fidelity.curvature(now, x),
                x * slack,
                x * (slope - groups @ multipliers) + target,
                x[:, None] * groups,
                1 - groups.T @ x,
                forcing=min(max(float(x @ slack) / now.value, _TIGHTEST), _LOOSEST),
                enough=target,
            )
            # linearised x · slack = target
            change = (target - x * slack) / x - slack * relative
            length = min(
                1.0,
                _TO_THE_BOUNDARY / max(float(-relative.min()), 1e-30),
                _TO_THE_BOUNDARY / max(float((-change / slack).max()), 1e-30),
            )
            tried = x, slack, multipliers
            for _ in range(_BACKTRACKS):
                tried = (
                    x * (1 + length * relative),
                    slack + length * change,
                    multipliers + length * tilt,
                )
                now, slope = at(tried[0])
                after = _residual(tried[0], slope, tried[1], groups, tried[2])
                if self.finished or after <= (1 - 0.01 * length) * before + target * len(x):
                    break
                length /= 2
            x, slack, multipliers = tried


def _mixed(values: Array) -> Array:
    return (1 - _PLAIN_FLOOR) * values / values.sum() + _PLAIN_FLOOR / len(values)


def _slope(fidelity: Objective, now: Any, shares: Array) -> Array:
    """Return the derivatives of the dual objective by weights λ and, for p > 2, by shares ω."""
    if fidelity.p == 2:
        return now.lengths / 2
    by_shares = fidelity.power * now.variances * fidelity.coordinate_weights(shares) / shares / 2
    return np.concatenate([now.lengths / 2, by_shares])


def _residual(x: Array, slope: Array, slack: Array, groups: Array, multipliers: Array) -> float:
    return float(np.abs(x * (slope + slack - groups @ multipliers)).sum())


def _conjugate_gradients(
    curvature: Hessian,
    extra: Array,
    right: Array,
    constraints: Array,
    missing: Array,
    *,
    forcing: float,
    enough: float,
) -> tuple[Array, Array]:
    """Return δ, y: (curvature + diag(extra)) δ + constraints y = right, constraints'δ = missing."""
    # Iterations are projected on the constraints (columns of A) and preconditioned by the diagonal.
    diagonal = curvature.diagonal() + extra
    eased = constraints / diagonal[:, None]
    middle = constraints.T @ eased

    def project(residual: Array) -> tuple[Array, Array]:
        y: Array = np.asarray(np.linalg.solve(middle, eased.T @ residual), dtype=np.float64)
        return residual - constraints @ y, y

    delta = np.zeros(len(right))
    if np.abs(missing).max() > _ROUNDED:  # a smaller error is not worth a product
        # this start satisfies the constraints, and all further steps keep them satisfied
        delta = eased @ np.linalg.solve(middle, missing)
        right = right - curvature @ delta - extra * delta
    residual, y = project(right)
    step = residual / diagonal
    size = float(residual @ step)
    goal = forcing**2 * size
    for _ in range(_MAX_PRODUCTS):
        if size <= goal or np.abs(residual).max() <= enough:
            break
        image = curvature @ step + extra * step
        bent = float(step @ image)
        if not bent > 0:
            break
        delta = delta + size / bent * step
        residual, more = project(residual - size / bent * image)
        y = y + more
        previous, size = size, float(residual @ (residual / diagonal))
        step = residual / diagonal + size / previous * step
    return delta, y
