"""The optimal covariance of finitely many points: accelerated multiplicative weights, with a second-order finish."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .design import Design
from .fidelity import Evaluation, Fidelity, affine_basis
from .interior import cost, interior_point

Array = NDArray[np.float64]

# Past eight earlier steps the least-squares problem below is dominated by rounding (prefix sums, random points).
_MEMORY = 8
# No weight changes by more than e^5 in one step: far from the optimum, extrapolation overshoots.
_LARGEST_STEP = 5.0
# λ ← λ (z/F)² solves orthogonal points in one step, and halves the steps of prefix sums at p = 2; it need not increase
# F, so that the fallback is the plain λ ← λ z/F.
_RELAXATION = 2.0
_SMALLEST = 1e-300
_ROUNDS = 12  # of the finish, each with the points the one before it left out


def optimal_design(
    fidelity: Fidelity,
    *,
    tol: float,
    max_steps: int,
    start: tuple[Array, Array] | None = None,
    report: Callable[[int, float, float], None] | None = None,
) -> Design:
    """Maximise F over weights on points and shares on coordinates; every step carries a bracket.

    Fixed point ``λ_i ← λ_i z_i/F``, ``ω_j ← w_j u_j/F`` (Yu 2010 for λ alone), with Anderson acceleration in the
    logarithms. All is evaluated at λ, ω mixed with a little of the uniform: points and coordinates that the optimum
    does not use would otherwise make the ellipsoid degenerate, and the bracket closes all the same. Once the steps
    have cost what an interior-point finish would, that takes over.

    Args:
        fidelity: the objective.
        tol: gap to reach.
        max_steps: evaluations allowed.
        start: weights and shares to begin from; uniform if omitted.
        report: called with (steps, lower, upper).
    """
    count, dim = fidelity.points.shape
    uniform = np.full(count, 1 / count), np.full(dim, 1 / dim)
    search = _Search(fidelity, tol, report, uniform)
    interrupted = False
    try:
        search.accelerate(start or uniform, max_steps)
    except KeyboardInterrupt:
        if search.at is None:
            raise
        interrupted = True
    if search.at is None:
        raise RuntimeError("no step was taken")
    return Design(
        weights=search.weights,
        coordinate_weights=fidelity.coordinate_weights(search.shares),
        factor=fidelity.factor(search.at, search.shares),
        center=search.weights @ fidelity.points if fidelity.centered else np.zeros(dim),
        gap=search.gap,
        steps=search.steps,
        note="accelerated multiplicative weights" + (", interior-point finish" if search.finished_inside else ""),
        interrupted=interrupted,
    )


class _Search:
    """The best step so far, and how it was reached."""

    def __init__(
        self,
        fidelity: Fidelity,
        tol: float,
        report: Callable[[int, float, float], None] | None,
        uniform: tuple[Array, Array],
    ) -> None:
        self.fidelity, self.tol, self.report = fidelity, tol, report
        self.weights, self.shares = uniform
        self.at: Evaluation | None = None
        self.gap, self.lower, self.steps = np.inf, 0.0, 0
        self.finished_inside = False

    def seen(self, weights: Array, shares: Array, now: Evaluation, steps: int = 1) -> None:
        self.steps += steps
        if now.gap < self.gap:
            self.gap, self.weights, self.shares, self.at = now.gap, weights, shares, now
        if self.report:
            self.lower = max(self.lower, now.value)
            self.report(self.steps, self.lower, self.lower * (1 + self.gap))

    def accelerate(self, start: tuple[Array, Array], max_steps: int) -> None:
        fidelity, eta = self.fidelity, self.tol / 4
        count, dim = fidelity.points.shape
        both = _log(np.concatenate(start))
        images: list[Array] = []
        moves: list[Array] = []
        plain: Array | None = None
        previous, spent = -np.inf, 0.0
        while self.steps < max_steps:
            logs = both[:count] - both[:count].max(), both[count:] - both[count:].max()
            weights, shares = (np.exp(part) / np.exp(part).sum() for part in logs)
            both = _log(np.concatenate([weights, shares]))
            mixed = (1 - eta) * weights + eta / count, (1 - eta) * shares + eta / dim
            now = fidelity.at(*mixed)
            self.seen(*mixed, now)
            if self.gap <= self.tol:
                return
            if plain is not None and not now.value >= previous:
                # the extrapolation went downhill
                both, plain = plain, None
                images.clear()
                moves.clear()
                continue
            previous = now.value
            spent += _step_cost(fidelity)
            touching = _touching(weights, now)
            if not self.finished_inside and spent >= cost(int(touching.sum()), dim, fidelity.rank, fidelity.p):
                touching[affine_basis(now.coordinates)] = True
                self.finish(touching)
                if self.gap <= self.tol:
                    return
            ratio = np.ones(dim)
            if fidelity.p > 2:
                ratio = now.variances * fidelity.coordinate_weights(mixed[1]) / mixed[1] / now.value
            move = _log(np.concatenate([now.lengths / now.value, ratio]))
            plain = both + move
            images.append(both + _RELAXATION * move)
            moves.append(move)
            del images[: -_MEMORY - 1], moves[: -_MEMORY - 1]
            importance = np.sqrt(np.concatenate([weights, shares]))
            both = both + np.clip(_extrapolate(images, moves, importance) - both, -_LARGEST_STEP, _LARGEST_STEP)

    def finish(self, active: NDArray[np.bool_]) -> None:
        """Interior-point steps on the points that matter, until none outside them is longer."""
        fidelity = self.fidelity
        self.finished_inside = True
        weights, shares = self.weights, self.shares
        for _ in range(_ROUNDS):
            inside = Fidelity(fidelity.points[active], fidelity.p, fidelity.centered, fidelity.basis)
            floor = 1e-3 * self.gap
            kept = weights[active] / weights[active].sum()
            found, shares, _, steps = interior_point(
                inside, (1 - floor) * kept + floor / len(kept), (1 - floor) * shares + floor / len(shares), self.tol / 3
            )
            weights = np.zeros(len(active))
            weights[active] = found
            weights /= weights.sum()
            shares = shares / shares.sum()
            now = fidelity.at(weights, shares)
            self.seen(weights, shares, now, steps)
            longer = now.lengths > now.value * (1 + self.tol / 4)
            if self.gap <= self.tol or not (longer & ~active).any():
                return
            active = active | longer


def _log(values: Array) -> Array:
    return np.log(np.maximum(values, _SMALLEST))


def _touching(weights: Array, now: Evaluation) -> NDArray[np.bool_]:
    """Points that carry weight, or nearly touch the ellipsoid."""
    return (weights > 1e-6 * weights.max()) | (now.lengths > now.value * (1 - 3 * max(now.gap, 1e-3)))


def _step_cost(fidelity: Fidelity) -> float:
    """Estimated floating-point operations of one evaluation."""
    return 25.0 * fidelity.rank**3 + 3.0 * len(fidelity.points) * fidelity.rank**2 + 1e6


def _extrapolate(images: list[Array], moves: list[Array], importance: Array) -> Array:
    """Anderson's combination of past steps, residuals weighted by √λ and √ω so that dying points do not steer."""
    if len(images) == 1:
        return images[0]
    move_changes = np.diff(np.array(moves), axis=0).T
    image_changes = np.diff(np.array(images), axis=0).T
    mix = np.linalg.lstsq(importance[:, None] * move_changes, importance * moves[-1], rcond=1e-10)[0]
    return images[-1] - image_changes @ mix
