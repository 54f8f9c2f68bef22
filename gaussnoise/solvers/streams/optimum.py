"""The optimal noise for a workload over time, in linear time: leverages and variances by banded
resolvents.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...errors import ParameterError
from ...numerics.norms import norm
from ..design import MAX_STEPS
from .bidiagonal import diagonals, relative_error
from .inverse_root import InverseRoot, inverse_root

Array = NDArray[np.float64]
Report = Callable[[int, float, float], None]

_SLACK = 1e-3  # of the ends of the spectrum
_MIXED = 0.25  # of the tolerance: every weight is at least this share of the mean one
_MEMORY = 8
_DECREASE = 1e-3  # of the lower end, at which a step is taken back
_LONGEST = 3.0  # of a step, in the logarithm of a weight


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What λ and w are worth: with N the inverse root that belongs to them, rounding and rational
    error included.

    Attributes:
        leverages: upper bounds on ``a_i' N⁻¹ a_i``, shape (n,).
        variances: upper bounds on ``N_tt``, shape (n,).
        lower: lower bound on ``tr (W^½ A Λ Aᵀ W^½)^½``.
        root: the rational function of ``W^-½ A⁻ᵀ Λ⁻¹ A⁻¹ W^-½``.
    """

    leverages: Array
    variances: Array
    lower: float
    root: InverseRoot

    def upper(self, p: float) -> float:
        """``‖sd‖_p`` of N, scaled to cover all columns of A."""
        return float(np.sqrt(self.leverages.max()) * norm(np.sqrt(self.variances), p))


def evaluate(
    bands: Array, weights: Array, coordinate_weights: Array, *, widened: float = 1.0
) -> Evaluation:
    """By ``G = Λ^-½ A⁻¹ W^-½``: leverages are ``diag (G Gᵀ)^-½ / λ``, variances
    ``diag (Gᵀ G)^-½ / w``.

    Args:
        bands: of A⁻¹, shape (2, n).
        weights: λ, shape (n,), positive.
        coordinate_weights: w, shape (n,), positive.
        widened: by how much the interval of the rational function is longer at either end: other
            nodes.
    """
    n = len(weights)
    diagonal = bands[0] / np.sqrt(weights * coordinate_weights)
    below = np.zeros(n)
    below[1:] = bands[1, 1:] / np.sqrt(weights[1:] * coordinate_weights[:-1])
    # a power of two, so that nothing rounds
    scale = np.ldexp(1.0, -int(np.frexp(np.abs(diagonal).max() + np.abs(below).max())[1]))
    diagonal, below = np.abs(diagonal) * scale, np.abs(below) * scale
    _, trace, _ = next(diagonals(diagonal, below, np.zeros(1)))
    loose = 1 + relative_error(n)
    # no eigenvalue of the inverse is larger than its trace; no singular value of G than its largest
    # row times column
    low = (1 - _SLACK) / (float(trace.sum()) * loose) / widened
    sums = diagonal + below, diagonal + np.append(below[1:], 0.0)
    high = (1 + _SLACK) * float(sums[0].max() * sums[1].max()) * widened
    root = inverse_root(low, high)
    rows, columns = np.zeros(n), np.zeros(n)
    for j, row, column in diagonals(diagonal, below, root.shifts):
        rows += root.sizes[j] * row
        columns += root.sizes[j] * column
    above = loose * (1 + len(root.sizes) * 2.0**-52)
    return Evaluation(
        leverages=rows * scale * above / (1 - root.error) / weights,
        variances=columns * scale * above / (1 - root.error) / coordinate_weights,
        lower=float(rows.sum()) * scale / above / (1 + root.error),
        root=InverseRoot(root.sizes / scale, root.shifts / scale**2, root.error),
    )


@dataclass(frozen=True, eq=False)
class StreamOptimum:
    """Weights of contributions and of answers, and what they are worth."""

    weights: Array
    coordinate_weights: Array
    evaluation: Evaluation
    p: float
    steps: int = 0
    interrupted: bool = False

    @property
    def upper(self) -> float:
        """Upper end of the bracket."""
        return self.evaluation.upper(self.p)

    @property
    def gap(self) -> float:
        """Upper end over lower end, less one."""
        return self.upper / self.evaluation.lower - 1


def stream_optimum(bands: Array, p: float, *, tol: float, report: Report) -> StreamOptimum:
    """The multiplicative fixed point ``λ_i ∝ λ_i z_i``, ``ω_t ∝ ω_t u_t``, accelerated by
    Anderson's method.

    The iterate is mixed with the uniform one before it is evaluated, so that no weight vanishes.
    The best bracket is kept.

    Source: fixed point of the dual of Nikolov & Tang (2023), Theorem 26; Anderson (1965)
    acceleration in logarithms.
    """
    n = bands.shape[1]
    power = 1 - 2 / p
    point = np.zeros(n if p == 2 else 2 * n)  # logarithms of λ, and of ω
    trail: list[tuple[Array, Array]] = []  # points, and where the fixed point's map would move them
    highest = 0.0
    best: StreamOptimum | None = None
    steps = 0
    try:
        while steps < MAX_STEPS:
            shares = [_mixed(part, _MIXED * tol) for part in point.reshape(-1, n)]
            w = shares[1] ** power if p > 2 else np.ones(n)
            now = evaluate(bands, shares[0], w)
            steps += 1
            found = StreamOptimum(shares[0], w, now, p)
            if best is None or found.gap < best.gap:
                best = found
            report(steps, best.evaluation.lower, best.upper)
            if best.gap <= tol:
                break
            if now.lower < highest * (1 - _DECREASE) and len(trail) > 1:
                # a leap too far: the plain step from where it began
                trail = trail[-1:]
                point = trail[0][0] + trail[0][1]
                continue
            highest = max(highest, now.lower)
            move = [np.log(now.leverages / (shares[0] @ now.leverages))]
            if p > 2:
                loads = now.variances * shares[1] ** (power - 1)
                move.append(np.log(loads / (shares[1] @ loads)))
            trail = [*trail[1 - _MEMORY :], (point, np.concatenate(move))]
            point = _accelerated(trail, np.sqrt(np.concatenate(shares)))
            # not so low that a weight could not come back
            least = math.log(_MIXED * tol / n) - _LONGEST
            point = np.concatenate(
                [np.maximum(part - part.max(), least) for part in point.reshape(-1, n)]
            )
    except KeyboardInterrupt:
        if best is None:
            raise
        return replace(best, steps=steps, interrupted=True)
    if best is None:
        raise ParameterError("stream_optimum: expected at least one step")
    return replace(best, steps=steps)


def _mixed(logarithms: Array, share: float) -> Array:
    """A probability with these logarithms, up to a share of the uniform one."""
    found = np.exp(logarithms - logarithms.max())
    found /= found.sum()
    return (1 - share) * found + share / len(found)


def _accelerated(trail: list[tuple[Array, Array]], size: Array) -> Array:
    """Anderson's next point, from moves weighted by ``size``."""
    point, step = trail[-1]
    if len(trail) > 1:
        pairs = list(itertools.pairwise(trail))
        changes = np.array([(new - old) * size for (_, old), (_, new) in pairs])
        shares = np.linalg.lstsq(changes.T, step * size, rcond=1e-10)[0]
        step = step - shares @ np.array([b + d - a - c for (a, c), (b, d) in pairs])
    return point + np.clip(step, -_LONGEST, _LONGEST)
