"""Time strategies: integer matrices of the weights of ticks in measurements, of least error."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.participation.patterns import Apart
from domains.sets.finite import FiniteSet

from ..errors import ConvergenceWarning, ParameterError
from ..files.pickling import PickledByArguments
from ..noise.optimal_noise import OptimalNoise
from ..noise.patterns import participations
from ..noise.solve import optimal_noise
from ..noise.stream_covariance import StreamCovariance
from ..numerics.integers import exact_type
from ..numerics.norms import norm
from ..solvers.progress import interrupts_pass
from .reports import largest_change, worst_reports
from .ticks import Ticks
from .workloads import matrix, prefix_sums

Array = NDArray[np.float64]

BITS = 20  # bits of the longest column's norm: rounding costs a part in a million
_LEAST_PIVOT = 2**4
_TOLERANCE, _ROUGH_TOLERANCE = 1e-6, 1e-4
_ROUNDS, _FEW_TICKS = (12, 2), 128  # rounds of a search, up to that many ticks and beyond
_MOST_SOLVED = 64  # most ticks for :func:`_of_vectors`, which then takes seconds
_SHARES = (0.03, 0.1, 0.3, 0.5)  # weights of another strategy in a mixture
_WORTH = 1e-4  # relative gain of an error below which a search ends
_FRACTION = 320  # binary digits after the point in a row of C⁻¹


@final
@dataclass(frozen=True, eq=False)
class TimeStrategy(PickledByArguments):
    """The weights of a stream's measurements: a lower triangular integer matrix C.

    The measurement at tick t is ``Σ_{i<=t} C_ti · (answers on tick i's rows)``, with fresh noise.

    Attributes:
        matrix: the matrix C, shape (n, n), int64, with a positive diagonal.
        ticks: the ticks for which C was chosen.
        p: the norm of the error over all answers.
        lower: proven lower bound on the error of every strategy at unit sensitivity; 0 if none is
            known.

    Raises:
        ParameterError: the matrix is not of the right shape, or is not lower triangular with a
            positive diagonal and 32-bit integers.

    >>> import numpy as np
    >>> # each tick alone
    >>> own = gn.streams.TimeStrategy(np.eye(12, dtype=np.int64), gn.streams.Ticks(12), 2, 0.0)
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> best = gn.plan(schema, 1, gn.zCDP(1), over=gn.streams.Ticks(12)).strategy
    >>> print(f"{own.error:.3f} {best.error:.3f} {best.gap < 1e-5}")
    8.832 5.568 True
    """

    matrix: NDArray[np.int64]
    ticks: Ticks
    p: float
    lower: float

    def __post_init__(self) -> None:
        C = np.array(self.matrix)
        if (
            C.shape != (self.ticks.n, self.ticks.n)
            or C.dtype != np.int64
            or np.triu(C, 1).any()
            or not (np.diagonal(C) > 0).all()
            or np.abs(C).max() >= 2**31
        ):
            raise ParameterError(
                "TimeStrategy: expected lower triangular 32-bit integers of shape "
                f"({self.ticks.n}, {self.ticks.n}) "
                f"with a positive diagonal, got {C.dtype} of shape {C.shape}"
            )
        C.flags.writeable = False
        object.__setattr__(self, "matrix", C)

    @cached_property
    def sensitivity_squared(self) -> int:
        """An upper bound on the squared ℓ₂ change of all measurements by all rows of one person.

        Its unit is the largest squared change of the answers of a single tick by one person.
        """
        return self.change_by(self.ticks.most_reports)

    def change_by(self, reports: int) -> int:
        """Return an upper bound on the squared ℓ₂ change by a person with ``reports`` reports.

        Its unit is the largest squared change of the answers of a single tick by one person.
        """
        return largest_change(gram(self.matrix), reports, self.ticks.apart)

    @cached_property
    def inverse(self) -> Array:
        """The inverse of the matrix C in floating point, shape (n, n).

        Row t, applied to the measurements, estimates the counts of tick t.
        """
        size = 2.0 ** math.ceil(math.log2(float(np.abs(self.matrix).max())))
        return np.asarray(np.tril(np.linalg.inv(self.matrix / size)) / size, dtype=np.float64)

    @property
    def error(self) -> float:
        """An upper bound on the p-norm of all answers' standard deviations, at sensitivity 1."""
        return _error(self.ticks.matrix, self.inverse, self.p) * math.sqrt(self.sensitivity_squared)

    @property
    def gap(self) -> float:
        """The relative gap: an upper bound on ``error / least possible error − 1``."""
        return self.error / self.lower - 1 if self.lower > 0 else math.inf

    def variance(self, weights: Array) -> float:
        """Return the variance of ``Σ_t weights[t] · estimate[t]`` for noise of variance 1."""
        return float(np.square(weights @ self.inverse[: len(weights), : len(weights)]).sum())

    def row_of_inverse(self, t: int) -> tuple[list[int], int]:
        """Return row t (from 0) of C⁻¹ as integers r_i and a power of two, P: the row is r_i / P.

        ``Σ_i r_i C_ij`` is P for j = t, and differs from 0 by less than C_jj for j < t. The row is
        found by back substitution in Python integers. If counts are below 2⁶⁰, rounding changes a
        count by less than 2⁻¹⁶⁰.
        """
        C: list[list[int]] = self.matrix[: t + 1, : t + 1].tolist()
        unit = 1 << _FRACTION
        row = [0] * (t + 1)
        for j in range(t, -1, -1):
            rest = sum(row[i] * C[i][j] for i in range(j + 1, t + 1))
            row[j] = ((unit if j == t else 0) - rest) // C[j][j]
        return row, unit


def gram(matrix: NDArray[np.int64]) -> NDArray[Any]:
    """Return ``matrixᵀ @ matrix`` in exact integers."""
    largest, n = int(np.abs(matrix).max()), len(matrix)
    if largest**2 * n < 2**53:  # doubles hold all partial sums exactly
        C = matrix.astype(np.float64)
        return (C.T @ C).astype(np.int64)
    exact = matrix.astype(exact_type(largest**2 * n))
    return exact.T @ exact


def chosen(ticks: Ticks, p: float, bits: int = BITS) -> TimeStrategy:
    """Return the time strategy with the least error of those that are tried.

    A time strategy has, for each measurement, the weights of all ticks so far. For one report per
    person, the result is the certified optimum. For more reports, it is the best of several
    candidates, and a lower bound is proven.

    Args:
        ticks: workload and reports.
        p: norm of the error, in [2, ∞].
        bits: the bits of the longest column's norm.
    """
    # for one report: let A be the workload, and M the optimal noise covariance, which covers the
    # columns of A. Every C with CᵀC = AᵀM⁺A gives noise M to the answers. One such C is lower
    # triangular, so measuring in the order of time loses nothing. For more reports, candidates are
    # that optimum; banded matrices, whose columns at two ticks of one person are orthogonal; optima
    # for chosen sets of reports, with the same row or with rows of opposite signs at all ticks; the
    # optimum for vectors that may differ from tick to tick; and mixtures of their CᵀC, in which
    # error and sensitivity are convex. Sets with the same row prove the lower bound
    with interrupts_pass():
        return _chosen(ticks, p, bits)


def _chosen(ticks: Ticks, p: float, bits: int) -> TimeStrategy:
    A, n = ticks.matrix, ticks.n
    single, lower = _for_one_report(ticks, A, p)
    kinds = [[single], [np.eye(n)]]
    if ticks.most_reports > 1:
        kinds += [[C] for C in _banded(single, ticks)]
        for signed in (False, True):
            found, proven = _optimum_of_sets(ticks, A, p, signed)
            kinds.append(found)
            lower = lower if signed else max(lower, proven)
        if n <= _MOST_SOLVED:
            kinds.append([_of_vectors(ticks, A, p)])

    def strategy(C: Array) -> TimeStrategy:
        return TimeStrategy(_integers(C, bits), ticks, p, lower)

    strategies = [min(map(strategy, kind), key=_error_of) for kind in kinds]
    best = min(strategies, key=_error_of)
    if ticks.most_reports > 1 and n <= _FEW_TICKS:
        others = [_unit_gram(own) for own in strategies]
        for _ in range(_ROUNDS[0]):
            now = _unit_gram(best)
            mixtures = [
                causal_factor((1 - share) * now + share * X) for X in others for share in _SHARES
            ]
            better = min(map(strategy, mixtures), key=_error_of)
            if better.error > best.error * (1 - _WORTH):
                break
            best = better
    return best


def _error_of(strategy: TimeStrategy) -> float:
    return strategy.error


def _unit_gram(strategy: TimeStrategy) -> Array:
    """Return CᵀC for the matrix C of a time strategy, divided by its squared sensitivity."""
    return np.asarray(gram(strategy.matrix) / float(strategy.sensitivity_squared), dtype=np.float64)


def _for_one_report(ticks: Ticks, A: Array, p: float) -> tuple[Array, float]:
    """Return the best time strategy for one report per person, and a lower bound on the error."""
    if not _is_causal(A):
        return _optimum(A, np.eye(ticks.n), p)
    totals = isinstance(ticks.workload, str) and ticks.workload == "totals"
    domain = prefix_sums(ticks.n) if totals else matrix(A)
    noise = optimal_noise(domain, p, neighbors="add-remove", tol=_TOLERANCE)
    return _strategy(noise, A), noise.gamma_lower


def _is_causal(A: Array) -> bool:
    """Return whether A is square and lower triangular, with no zero on its diagonal."""
    return bool(A.shape[0] == A.shape[1] and not np.triu(A, 1).any() and A.diagonal().all())


def _optimum(A: Array, reports: Array, p: float) -> tuple[Array, float]:
    """Return the best strategy if a person's counts are a row of ``reports``, and a lower bound."""
    noise = optimal_noise(FiniteSet(reports @ A.T), p, neighbors="add-remove", tol=_TOLERANCE)
    return _strategy(noise, A), noise.gamma_lower


def _of_vectors(ticks: Ticks, A: Array, p: float) -> Array:
    """Return a strategy for persons who add a different vector of counts in each of their ticks."""
    # up to signs, such changes determine the sensitivity. If A is not lower triangular, another
    # matrix, with the same AᵀA and so the same error at p = 2, replaces it
    if not _is_causal(A):
        upper = np.asarray(np.linalg.qr(A[:, ::-1], mode="r"))
        A, p = upper[::-1, ::-1], 2
    who = Apart(ticks.n, ticks.most_reports, ticks.apart)
    with warnings.catch_warnings():  # the strategy's error is computed afterwards
        warnings.simplefilter("ignore", ConvergenceWarning)
        noise = optimal_noise(
            participations(A, who), p, neighbors="add-remove", tol=_ROUGH_TOLERANCE
        )
    return _strategy(noise, A)


def _strategy(noise: OptimalNoise, A: Array) -> Array:
    """Return the lower triangular C with ``CᵀC = AᵀM⁺A``; M is the covariance of ``noise``."""
    M = noise.covariance
    if isinstance(M, StreamCovariance):  # M is stored by a recursion, not as a matrix
        whitened = scipy.linalg.solve_triangular(np.linalg.cholesky(M.toarray()), A, lower=True)
    else:
        whitened = np.linalg.lstsq(M.factor(), A, rcond=None)[0]
    return causal_factor(whitened.T @ whitened)


def _optimum_of_sets(ticks: Ticks, A: Array, p: float, signed: bool) -> tuple[list[Array], float]:
    """Return the best strategies for growing lists of sets of reports, and a lower bound on γ."""
    n, k, apart = ticks.n, ticks.most_reports, ticks.apart
    steps = {apart, max(apart, n // k), max(apart, (n - 1) // (k - 1))}
    sets = {tuple(row) for row in np.eye(n).tolist()}
    for step in steps:
        for start in range(n):
            row = np.zeros(n)
            row[start::step][:k] = 1.0
            sets.add(tuple(row.tolist()))
    strategies, lower = [], 0.0
    for _ in range(_ROUNDS[n > _FEW_TICKS]):
        C, proven = _optimum(A, np.array(sorted(sets)), p)
        lower = max(lower, proven)
        strategies.append(C)
        worst = worst_reports(C.T @ C, k, apart, signed)
        new = {row for row, value in worst.items() if value > 1 + _WORTH} - sets
        if not new:
            break
        sets |= new
    return strategies, lower


def _banded(C: Array, ticks: Ticks) -> Iterator[Array]:
    """Yield banded strategies near C whose columns are orthogonal if ``apart`` ticks apart."""
    n, width = ticks.n, min(ticks.apart, ticks.n)
    sources = [C]
    if (
        isinstance(ticks.workload, str) and ticks.workload == "totals"
    ):  # the square root of the matrix (Fichtenberger et al. 2023)
        terms = np.cumprod(np.concatenate([[1.0], 1 - 1 / (2 * np.arange(1, n))]))
        sources.append(np.tril(scipy.linalg.toeplitz(terms)))
    for source in sources:
        band = np.tril(source) - np.tril(source, -width)
        yield band / np.linalg.norm(band, axis=0)


def causal_factor(X: Array) -> Array:
    """Return the lower triangular C with positive diagonal and ``CᵀC = X``."""
    return np.asarray(np.linalg.cholesky(X[::-1, ::-1])[::-1, ::-1].T, dtype=np.float64)


def _integers(C: Array, bits: int) -> NDArray[np.int64]:
    scaled = np.rint(np.ldexp(C / np.linalg.norm(C, axis=0).max(), bits)).astype(np.int64)
    if np.diagonal(scaled).min() < _LEAST_PIVOT:
        raise ParameterError(
            f"Ticks: some tick matters less than {_LEAST_PIVOT / 2**bits:.1g} times another, "
            "which cannot be "
            "measured in integers; hint: a workload with more even weights, or a larger budget"
        )
    return np.tril(scaled)


def _error(A: Array, inverse: Array, p: float) -> float:
    return norm(np.linalg.norm(A @ inverse, axis=1), p)
