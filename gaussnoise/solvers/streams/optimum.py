"""The optimal noise for a workload over time, if people take part once, in linear time.

Leverages and variances are computed from resolvents of banded matrices.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy

from domains.floats import Array

from ...errors import CovarianceError, ParameterError
from ...numerics.norms import dual_power, norm
from ..design import MAX_STEPS
from ..points.fidelity import Fidelity
from ..points.interior import optimal_design
from ..progress import keeps_answer
from . import banded, bidiagonal
from .anderson import LONGEST, MEMORY, accelerated, probability
from .inverse_root import InverseRoot, inverse_root
from .smooth_newton import JUMP, SmoothNewton

Report = Callable[[int, float, float], None]

_SLACK = 1e-3  # relative margin of the bounds on the spectrum
_GUESSED = 0.25  # the least eigenvalue is guessed as this multiple of 1/(squared norm of G⁻¹)
_GUESSES = 8
_SIGNS = 8  # number of vectors that estimate the norm
_BARRIER = 0.3  # the barrier may widen the gap by this fraction of the tolerance
_DECREASE = 1e-3  # a step that decreases the lower bound by a larger fraction is undone
_SHORTER = 4  # the first weights come from a stream this many times shorter
_SHORTEST = 250  # least number of ticks of such a stream
_OF_MATRICES = 64  # the same for each subdiagonal, if its weights are found with matrices
_STEPS_OF_SHORTER = 100  # largest number of steps on that stream
_PATIENCE = 300  # largest number of steps without a smaller gap
# Weights for a longer stream: near the first and last tick, another rule holds up to the
# distance m^_NEAR, m the shorter length, and fades with the power _STEEP of the distance.
_NEAR, _STEEP = 0.75, 8.0
_NEAR_ENOUGH = 1e-2  # largest gap at which Newton's method finds smooth changes
_LASTING = 10  # number of steps for which derivatives are used


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Bounds on the leverages and variances of a covariance N, for weights λ and w.

    λ are dual weights of contributions, w of answers, Λ = diag(λ), W = diag(w), and A is the
    workload with columns a_i. A rational function approximates the inverse square root that
    ``N = W^-½ (W^½ A Λ Aᵀ W^½)^½ W^-½`` needs. All bounds include rounding and the error of this
    approximation.

    Attributes:
        leverages: upper bounds on ``a_i' N⁻¹ a_i``, shape (n,).
        variances: upper bounds on ``N_tt``, shape (n,).
        lower: lower bound on ``tr (W^½ A Λ Aᵀ W^½)^½``.
        root: the rational function that approximates ``(W^-½ A⁻ᵀ Λ⁻¹ A⁻¹ W^-½)^-½``.
    """

    leverages: Array
    variances: Array
    lower: float
    root: InverseRoot

    def upper(self, p: float) -> float:
        """Return the error ``‖sd‖_p`` of N, scaled to cover all columns of the workload."""
        return float(np.sqrt(self.leverages.max()) * norm(np.sqrt(self.variances), p))


def evaluate(
    bands: Array, weights: Array, coordinate_weights: Array, *, widened: float = 1.0
) -> Evaluation:
    """Return bounds on leverages and variances for weights λ of contributions and w of answers.

    With ``G = Λ^-½ A⁻¹ W^-½``, A the workload, Λ = diag(λ) and W = diag(w), the leverages of the
    columns of A are ``diag (G Gᵀ)^-½ / λ``, the variances of the answers ``diag (Gᵀ G)^-½ / w``.

    Args:
        bands: of A⁻¹, shape (b + 1, n), b at least 1 and at most half of n.
        weights: λ, shape (n,), positive.
        coordinate_weights: w, shape (n,), positive.
        widened: factor by which the rational function's interval is extended on both sides; another
            factor gives other nodes.

    Raises:
        CovarianceError: sizes of weights differ too much, or rounding is larger than the least
            eigenvalue.
    """
    G = np.zeros_like(bands)
    for m, band in enumerate(bands):
        lengths = weights[m:] * coordinate_weights[: len(weights) - m]
        G[m, m:] = np.abs(band[m:]) / np.sqrt(lengths)
    # a power of two, so that nothing is rounded
    scale = float(np.ldexp(1.0, -int(np.frexp(G.max(axis=1).sum())[1])))
    G *= scale
    if len(bands) == 2:
        parts = _by_quotients(G, widened)
    else:
        parts = _by_rotations(bands, weights / scale**2, coordinate_weights, G, widened)
    root, sums = parts
    rounding = 1 + len(root.sizes) * 2.0**-52
    return Evaluation(
        leverages=sums.rows * scale * rounding / (1 - root.error) / weights,
        variances=sums.columns * scale * rounding / (1 - root.error) / coordinate_weights,
        lower=sums.trace * scale / rounding / (1 + root.error),
        root=InverseRoot(root.sizes / scale, root.shifts / scale**2, root.error),
    )


@dataclass(frozen=True, eq=False)
class _Sums:
    """Bounds on the diagonals of r(G Gᵀ) (rows) and r(Gᵀ G) (columns), where r(x) is near x^-½."""

    rows: Array
    columns: Array
    # lower bounds: on the trace of both, and on the eigenvalues of G Gᵀ
    trace: float
    least: float


def _summed(root: InverseRoot, resolvents: Iterator[tuple[int, Array, Array, float]]) -> _Sums:
    rows = columns = np.zeros(1)
    trace, least = 0.0, 0.0
    for j, row, column, error in resolvents:
        rows = rows + root.sizes[j] * (1 + error) * row
        columns = columns + root.sizes[j] * (1 + error) * column
        whole = float(row.sum())
        trace += float(root.sizes[j]) * whole / (1 + error)
        # no eigenvalue of a resolvent is larger than its trace
        least = max(least, (1 - _SLACK) / (whole * (1 + error)) - float(root.shifts[j]))
    return _Sums(rows, columns, trace, least)


def _largest(G: Array) -> float:
    """Return the largest row sum times the largest column sum, a bound on eigenvalues of G Gᵀ."""
    columns = G[0].copy()
    for m in range(1, len(G)):
        columns[:-m] += G[m, m:]
    return (1 + _SLACK) * float(G.sum(axis=0).max() * columns.max())


def _by_quotients(G: Array, widened: float) -> tuple[InverseRoot, _Sums]:
    """Return r(x) ≈ x^-½ and bounds on r(G Gᵀ) and r(Gᵀ G), for G with one subdiagonal."""
    diagonal, below = G
    error = bidiagonal.relative_error(len(diagonal))
    _, trace, _ = next(bidiagonal.diagonals(diagonal, below, np.zeros(1)))
    low = (1 - _SLACK) / (float(trace.sum()) * (1 + error))
    root = inverse_root(low / widened, _largest(G) * widened)
    resolvents = bidiagonal.diagonals(diagonal, below, root.shifts)
    return root, _summed(root, ((*found, error) for found in resolvents))


def _by_rotations(
    bands: Array, row_weights: Array, column_weights: Array, G: Array, widened: float
) -> tuple[InverseRoot, _Sums]:
    """Return r(x) ≈ x^-½ and bounds on r(G Gᵀ) and r(Gᵀ G), for G with several subdiagonals."""
    # r must be precise down to the least eigenvalue of G Gᵀ, which is guessed, then proven
    high = _largest(G)
    low = min(_GUESSED / _squared_norm(bands, row_weights, column_weights), high)
    for _ in range(_GUESSES):
        root = inverse_root(low / widened, high * widened)
        given = bands, row_weights, column_weights, root.shifts
        sums = _summed(root, banded.diagonals(*given))
        if sums.least >= low / widened:
            return root, sums
        low = max(sums.least / 2, low / 100)
    raise CovarianceError(
        "expected weights and bands whose spectrum is not lost in rounding; hint: fewer ticks, or "
        "a larger tolerance"
    )


def _squared_norm(bands: Array, row_weights: Array, column_weights: Array) -> float:
    """Estimate the squared Frobenius norm of a weighted inverse, from products with signs."""
    # G = R^-½ B C^-½, with the bands of B and the diagonal matrices R and C of weights
    n = len(row_weights)
    below = np.zeros_like(bands)  # stored by columns, as LAPACK wants it
    for m, band in enumerate(bands):
        below[m, : n - m] = band[m:]
    turns = np.arange(1.0, n + 1)[:, None] ** 2 * np.sqrt(np.arange(2.0, 2 + _SIGNS))
    signs = np.where(turns % 1 < 0.5, 1.0, -1.0)  # like random signs, but the same on every machine
    x = scipy.linalg.solve_banded((len(bands) - 1, 0), below, np.sqrt(row_weights)[:, None] * signs)
    norm = float((column_weights[:, None] * x**2).sum()) / _SIGNS
    if not 0 < norm < math.inf:
        raise CovarianceError(banded.UNEVEN)
    return norm


@dataclass(frozen=True, eq=False)
class StreamOptimum:
    """Dual weights λ of contributions and w of answers, and the bounds on the error they prove."""

    weights: Array
    coordinate_weights: Array
    evaluation: Evaluation
    p: float
    steps: int = 0
    interrupted: bool = False

    @property
    def upper(self) -> float:
        """The error of the weights' covariance, scaled to cover all columns: an upper bound."""
        return self.evaluation.upper(self.p)

    @property
    def gap(self) -> float:
        """The gap ``upper/lower − 1``."""
        return self.upper / self.evaluation.lower - 1


def stream_optimum(
    bands: Array, p: float, *, tol: float, report: Report, most: int | None = None
) -> StreamOptimum:
    """Return the optimal dual weights for a stream in which people take part once.

    λ are weights of contributions. ω are shares of answers, and w = ω^{1 − 2/p} are weights of
    answers. z are the leverages of the columns of the workload A, and u the variances of the
    answers. The optimal weights are the fixed point of ``λ_i ← λ_i z_i`` and ``ω_t ← w_t u_t``,
    each scaled to sum one. ``bands`` are those of A⁻¹. Anderson's method accelerates the iteration.
    If the best w are the λ in reverse order (:func:`is_mirrored`), Newton's method finds the smooth
    changes.

    The weights of the smallest gap are returned; ``most`` is the largest number of steps.

    Source: the fixed point of the dual of Nikolov & Tang (2023), Theorem 26; Anderson (1965)
    acceleration in logarithms. The barrier is our own.
    """
    # a barrier adds τ/n to each λ_i z_i, of sum one, so that no weight vanishes: at the fixed point
    # z_i = 1 + τ − τ/(n λ_i), so the upper and lower bound differ by at most a factor 1 + τ. If A⁻¹
    # has the same coefficients at every tick, the first weights are those of a quarter of the
    # ticks, stretched; otherwise equal weights
    point = _first_point(bands, p, tol)
    return _iterated(bands, p, point, tol=tol, most=most or MAX_STEPS, report=report)


def _first_point(bands: Array, p: float, tol: float) -> Array:
    """Return the logarithms of first weights of ticks and, for p > 2, of shares of answers."""
    # from shorter streams, if A⁻¹ has the same coefficients at every tick; else all equal
    mirrored, n = is_mirrored(bands, p), bands.shape[1]
    parts = 1 if p == 2 or mirrored else 2
    shortest = _OF_MATRICES * (len(bands) - 1) if mirrored else _SHORTEST
    lengths = [n]
    while lengths[0] >= _SHORTER * shortest and _is_same_everywhere(bands):
        lengths.insert(0, lengths[0] // _SHORTER)
    if mirrored:
        point = _mirrored_point(bands[:, : lengths[0]], tol)
    else:
        point = np.zeros(parts * lengths[0])
    for shorter, longer in itertools.pairwise(lengths):
        found = _iterated(
            bands[:, :shorter], p, point, tol=tol, most=_STEPS_OF_SHORTER, report=_report_nothing
        )
        if found.interrupted:  # there are no bounds for the requested stream yet
            raise KeyboardInterrupt
        shares = [found.weights]
        if parts == 2:
            shares.append(found.coordinate_weights ** (1 / dual_power(p)))
        point = np.concatenate([stretched(part, longer) for part in shares])
    return point


def _mirrored_point(bands: Array, tol: float) -> Array:
    """Return logarithms of the best weights at p = ∞ for a few ticks, by Newton's method."""
    below = np.array([np.roll(band, -m) for m, band in enumerate(bands)])
    columns = scipy.linalg.solve_banded((len(bands) - 1, 0), below, np.eye(bands.shape[1])).T
    fidelity = Fidelity(np.ascontiguousarray(columns), math.inf, centered=False, basis=None)
    design = optimal_design(fidelity, tol=tol, max_steps=MAX_STEPS)
    if design.interrupted:
        raise KeyboardInterrupt
    return np.log(design.weights + design.coordinate_weights[::-1])


def _is_same_everywhere(bands: Array) -> bool:
    """Return whether A⁻¹, given by its bands, has the same coefficients at every tick."""
    return all((band[m:] == band[m]).all() for m, band in enumerate(bands))


def is_mirrored(bands: Array, p: float) -> bool:
    """Return whether the best weights of answers are those of contributions in reverse order."""
    # in reverse order of ticks, A with the same coefficients at every tick becomes its transpose;
    # at p = ∞ the dual objective is the same for both, and concave
    return math.isinf(p) and _is_same_everywhere(bands)


def stretched(weights: Array, n: int) -> Array:
    """Return logarithms of weights for n ticks, made from the optimal ones for fewer ticks.

    The largest logarithm is zero.

    Args:
        weights: optimal weights of fewer ticks, shape (m,), positive.
        n: number of ticks, more than m.
    """
    # in the middle, weights depend on t/n; near the first and last tick, they depend on the number
    # of ticks from there. Between these parts, weights are close to a power of this number, so both
    # rules agree up to a factor
    logarithms, m = np.log(weights), len(weights)
    jumps = np.flatnonzero(np.abs(np.diff(logarithms)) > JUMP) + 1
    middle = np.interp((np.arange(n) + 0.5) * m / n - 0.5, np.arange(m), logarithms)
    ticks = np.arange(1.0, m // 2 + 1)
    curve = middle.copy()
    for turn, places in ((slice(None), jumps), (slice(None, None, -1), m - jumps)):
        # up to the last jump, weights almost vanish at some ticks: these belong to the end alone
        last = max(places[places <= m // 2], default=0)
        own = logarithms[turn]
        far = np.interp((np.arange(m // 2) + 0.5) * m / n - 0.5, np.arange(last, m), own[last:])
        # the weight of the rule for the middle
        share = 1 / (1 + (max(m**_NEAR, 2 * last) / ticks) ** _STEEP)
        between = share * (1 - share) / ticks
        near = own[: m // 2]
        factor = between @ (far - near) / between.sum()
        curve[turn][: m // 2] = share * far + (1 - share) * (near + factor)
    return curve - curve.max()


def _report_nothing(steps: int, lower: float, upper: float) -> None:
    """Report nothing: bounds for a shorter stream are not those of the requested one."""


def _iterated(
    bands: Array, p: float, point: Array, *, tol: float, most: int, report: Report
) -> StreamOptimum:
    """Return the best dual weights that a fixed-point iteration from ``point`` finds."""
    # Each step multiplies weights by leverages and, for p > 2, shares of answers by variances;
    # Anderson's method accelerates it. The point has logarithms of weights and shares.
    n = bands.shape[1]
    power, mirrored = dual_power(p), is_mirrored(bands, p)
    newton: SmoothNewton | None = None
    made = -_LASTING
    trail: list[tuple[Array, Array]] = []  # points, and the iteration's step at each of them
    highest = 0.0
    best: StreamOptimum | None = None
    steps, narrowed = 0, 0
    try:
        while steps < min(most, narrowed + _PATIENCE):
            shares = [probability(part) for part in point.reshape(-1, n)]
            if mirrored:
                w = shares[0][::-1].copy()
            else:
                w = shares[1] ** power if p > 2 else np.ones(n)
            now = evaluate(bands, shares[0], w)
            steps += 1
            found = StreamOptimum(shares[0], w, now, p)
            if best is None or found.gap < best.gap:
                best, narrowed = found, steps
            report(steps, best.evaluation.lower, best.upper)
            if best.gap <= tol:
                break
            if now.lower < highest * (1 - _DECREASE) and len(trail) > 1:
                # the accelerated step was too long: take the step without acceleration instead
                trail = trail[-1:]
                point = trail[0][0] + trail[0][1]
                continue
            highest = max(highest, now.lower)
            loads = [now.leverages]
            if len(shares) > 1:
                loads.append(now.variances * shares[1] ** (power - 1))
            moves = [
                _log_change(share, load, _BARRIER * tol)
                for share, load in zip(shares, loads, strict=True)
            ]
            if mirrored and best.gap <= _NEAR_ENOUGH:
                if steps >= made + _LASTING:
                    newton, made = SmoothNewton.at(bands, shares[0], now.root), steps
                    trail = trail if newton is None else []
                if newton is not None:
                    moves = [newton.step(shares[0], moves[0], _BARRIER * tol)]
            trail = [*trail[1 - MEMORY :], (np.log(np.concatenate(shares)), np.concatenate(moves))]
            point = accelerated(trail, np.sqrt(np.concatenate(shares)))
            # a smaller weight could not become large again in one step
            least = math.log(_BARRIER * tol / n) - LONGEST
            point = np.concatenate(
                [np.maximum(part - part.max(), least) for part in point.reshape(-1, n)]
            )
    except KeyboardInterrupt:
        if best is None or not keeps_answer():
            raise
        return replace(best, steps=steps, interrupted=True)
    if best is None:
        raise ParameterError("stream_optimum: expected at least one step")
    return replace(best, steps=steps)


def _log_change(shares: Array, loads: Array, barrier: float) -> Array:
    """Return how the logarithms of shares change when shares are multiplied by ``loads``."""
    loads = loads / (shares @ loads)
    # the barrier keeps shares from vanishing
    return np.log((loads + barrier / (len(shares) * shares)) / (1 + barrier))
