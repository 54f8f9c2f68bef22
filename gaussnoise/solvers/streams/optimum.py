"""The optimal noise for a workload over time, in linear time.

Leverages and variances come from banded resolvents.
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
from ..progress import keeps_answer
from . import banded, bidiagonal
from .anderson import LONGEST, MEMORY, accelerated, probability
from .inverse_root import InverseRoot, inverse_root

Report = Callable[[int, float, float], None]

_SLACK = 1e-3  # share by which the ends of the spectrum are moved outwards
_GUESSED = 0.25  # the least eigenvalue is guessed as this share of 1/(squared norm of G⁻¹)
_GUESSES = 8
_SIGNS = 8  # number of vectors that estimate the norm
_BARRIER = 0.3  # the barrier may widen the bracket by this share of the tolerance
_DECREASE = 1e-3  # a step that lowers the lower end by a larger share is taken back
_SHORTER = 4  # the first weights come from a stream this many times shorter
_SHORTEST = 250  # least number of ticks of such a stream
_STEPS_OF_SHORTER = 100  # largest number of steps on that stream
_PATIENCE = 300  # steps without a narrower bracket
# Weights for a longer stream: its ends reach over this power of the shorter length, and the effect
# of an end fades with this power of the distance from it.
_NEAR, _STEEP = 0.65, 4.0


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Bounds on leverages and variances for given λ and w.

    N is the covariance for these λ and w, through an inverse root. All bounds include rounding and
    the error of the rational approximation.

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
        """Return ``‖sd‖_p`` of N, scaled to cover all columns of A."""
        return float(np.sqrt(self.leverages.max()) * norm(np.sqrt(self.variances), p))


def evaluate(
    bands: Array, weights: Array, coordinate_weights: Array, *, widened: float = 1.0
) -> Evaluation:
    """Evaluate shares of columns and of answers, by ``G = Λ^-½ A⁻¹ W^-½``.

    Leverages are ``diag (G Gᵀ)^-½ / λ``, variances ``diag (Gᵀ G)^-½ / w``.

    Args:
        bands: of A⁻¹, shape (b + 1, n), b at least 1 and at most half of n.
        weights: λ, shape (n,), positive.
        coordinate_weights: w, shape (n,), positive.
        widened: factor by which the rational function's interval is extended at either end, which
            gives other nodes.

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
    """Sums over resolvents: upper bounds on their diagonals, and a lower bound on the trace.

    Attributes:
        rows: the diagonal of the sum for G Gᵀ, shape (n,).
        columns: the diagonal of the sum for Gᵀ G, shape (n,).
        trace: the trace, which is the same for both.
        least: lower bound on the eigenvalues of G Gᵀ, from the resolvents' traces.
    """

    rows: Array
    columns: Array
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
    """Return an upper bound on the eigenvalues of G Gᵀ, from the sizes of entries: the largest row
    sum times the largest column sum.
    """
    columns = G[0].copy()
    for m in range(1, len(G)):
        columns[:-m] += G[m, m:]
    return (1 + _SLACK) * float(G.sum(axis=0).max() * columns.max())


def _by_quotients(G: Array, widened: float) -> tuple[InverseRoot, _Sums]:
    """Return the sums for one subdiagonal; relative errors are small for any condition."""
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
    """Return the sums for several subdiagonals; the least eigenvalue is guessed, then proven."""
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
    """Estimate the sum of squares of the inverse of G, by a few vectors of signs."""
    n = len(row_weights)
    below = np.zeros_like(bands)  # stored by columns, as LAPACK wants it
    for m, band in enumerate(bands):
        below[m, : n - m] = band[m:]
    turns = np.arange(1.0, n + 1)[:, None] ** 2 * np.sqrt(np.arange(2.0, 2 + _SIGNS))
    signs = np.where(turns % 1 < 0.5, 1.0, -1.0)  # like random signs, but the same on every machine
    x = scipy.linalg.solve_banded((len(bands) - 1, 0), below, np.sqrt(row_weights)[:, None] * signs)
    norm = float((column_weights[:, None] * x**2).sum()) / _SIGNS
    if not 0 < norm < math.inf:
        raise CovarianceError("expected weights and bands of more even sizes")
    return norm


@dataclass(frozen=True, eq=False)
class StreamOptimum:
    """Weights of contributions and of answers, and their evaluation."""

    weights: Array
    coordinate_weights: Array
    evaluation: Evaluation
    p: float
    steps: int = 0
    interrupted: bool = False

    @property
    def upper(self) -> float:
        """The upper end of the bracket."""
        return self.evaluation.upper(self.p)

    @property
    def gap(self) -> float:
        """The ratio of upper to lower end, minus one."""
        return self.upper / self.evaluation.lower - 1


def stream_optimum(bands: Array, p: float, *, tol: float, report: Report) -> StreamOptimum:
    """Return the multiplicative fixed point ``λ_i ∝ λ_i z_i``, ``ω_t ∝ ω_t u_t``.

    It is accelerated by Anderson's method.

    The shares ``λ_i z_i`` sum to one. A barrier adds ``τ/n`` to each, which keeps weights from
    vanishing: at the fixed point ``z_i = 1 + τ − τ/(n λ_i)``, so that the ends of the bracket
    differ by at most a factor ``1 + τ``. The best bracket is kept. Where A⁻¹ has the same
    coefficients at every tick, the first weights are the stretched optimal ones of a quarter of the
    ticks; otherwise they are even.

    Source: the fixed point of the dual of Nikolov & Tang (2023), Theorem 26; Anderson (1965)
    acceleration in logarithms. The barrier is our own.
    """
    point = _first_point(bands, p, tol)
    return _improved(bands, p, point, tol=tol, most=MAX_STEPS, report=report)


def _first_point(bands: Array, p: float, tol: float) -> Array:
    """Return logarithms of λ, and for p > 2 of ω."""
    parts, n = 1 if p == 2 else 2, bands.shape[1]
    lengths = [n]
    while lengths[0] >= _SHORTER * _SHORTEST and _is_same_everywhere(bands):
        lengths.insert(0, lengths[0] // _SHORTER)
    point = np.zeros(parts * lengths[0])
    for shorter, longer in itertools.pairwise(lengths):
        found = _improved(
            bands[:, :shorter], p, point, tol=tol, most=_STEPS_OF_SHORTER, report=_report_nothing
        )
        if found.interrupted:  # there is no bracket yet
            raise KeyboardInterrupt
        shares = [found.weights]
        if p > 2:
            shares.append(found.coordinate_weights ** (1 / dual_power(p)))
        point = np.concatenate([stretched(part, longer) for part in shares])
    return point


def _is_same_everywhere(bands: Array) -> bool:
    """Return whether the coefficients of A⁻¹ are those of any shorter stream too."""
    return all((band[m:] == band[m]).all() for m, band in enumerate(bands))


def stretched(weights: Array, n: int) -> Array:
    """Return logarithms of weights for n ticks, the largest of them zero.

    In the middle, weights depend on the share of the stream that is over; near both ends, on the
    number of ticks to the end. In between they are close to a power of this number, so that the
    parts differ by a factor only.

    Args:
        weights: optimal weights of fewer ticks, shape (m,), positive.
        n: number of ticks, more than m.
    """
    logarithms, m = np.log(weights), len(weights)
    middle = np.interp((np.arange(n) + 0.5) * m / n - 0.5, np.arange(m), logarithms)
    ticks = np.arange(1.0, m // 2 + 1)
    share = 1 / (1 + (m**_NEAR / ticks) ** _STEEP)  # share of the rule for the middle
    between = share * (1 - share) / ticks
    curve = middle.copy()
    for turn in (slice(None), slice(None, None, -1)):
        far, near = middle[turn][: m // 2], logarithms[turn][: m // 2]
        factor = between @ (far - near) / between.sum()
        curve[turn][: m // 2] = share * far + (1 - share) * (near + factor)
    return curve - curve.max()


def _report_nothing(steps: int, lower: float, upper: float) -> None:
    """Report nothing: a shorter stream's bracket is not the requested one."""


def _improved(
    bands: Array, p: float, point: Array, *, tol: float, most: int, report: Report
) -> StreamOptimum:
    """Iterate from this point on; see :func:`stream_optimum`."""
    n = bands.shape[1]
    power = dual_power(p)
    trail: list[tuple[Array, Array]] = []  # points, and the moves of the fixed point's map there
    highest = 0.0
    best: StreamOptimum | None = None
    steps, narrowed = 0, 0
    try:
        while steps < min(most, narrowed + _PATIENCE):
            shares = [probability(part) for part in point.reshape(-1, n)]
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
                # the accelerated step was too long: from its start, take the plain step instead
                trail = trail[-1:]
                point = trail[0][0] + trail[0][1]
                continue
            highest = max(highest, now.lower)
            loads = [now.leverages]
            if p > 2:
                loads.append(now.variances * shares[1] ** (power - 1))
            moves = [
                _move(share, load, _BARRIER * tol)
                for share, load in zip(shares, loads, strict=True)
            ]
            trail = [*trail[1 - MEMORY :], (np.log(np.concatenate(shares)), np.concatenate(moves))]
            point = accelerated(trail, np.sqrt(np.concatenate(shares)))
            # a lower weight could not grow back in one step
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


def _move(shares: Array, loads: Array, barrier: float) -> Array:
    """Return how the fixed point's map moves the logarithms of shares."""
    loads = loads / (shares @ loads)
    return np.log((loads + barrier / (len(shares) * shares)) / (1 + barrier))
