"""The proven distance of a given strategy from the best possible one."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import scipy
from numpy.typing import NDArray

from domains.domain import AbstractDomain
from domains.floats import EPS, power_of_two
from domains.participation.patterns import AbstractPatterns, Epochs
from domains.sets.finite import FiniteSet
from domains.sets.stream import StreamWorkload

from ..errors import ConvergenceWarning, ParameterError
from ..noise.optimal_noise import OptimalNoise
from ..noise.solve import optimal_noise
from ..numerics.norms import check_order, norm
from ..numerics.rounding import ROUNDING_MARGIN
from .participations import check_participation, dense, participations

Array = NDArray[np.float64]

_RESIDUAL = 1e-9  # share of the workload's largest entry: beyond it, A C⁻¹ has lost too many digits
_ROUNDING = 16 * EPS  # relative error of a squared length, for each tick of a person and in all


@final
@dataclass(frozen=True, eq=False)
class StrategyCertificate:
    """The error of a strategy, and a lower bound on that of every strategy.

    Attributes:
        error: upper bound on ``‖sd‖_p`` of all answers at unit noise multiplier. Noise
            σ·sensitivity on the strategy's answers makes it σ·error; σ = 1/√(2ρ) is ρ-zCDP.
        lower: certified lower bound on this error for every strategy, of any kind, under the same
            participation.
        sensitivity: proven upper bound on how far one person moves the strategy's answers, at their
            given scale.
        p: the norm of the error: 2 is root total variance, ``math.inf`` the largest standard
            deviation.
        participation: who takes part when; None if each person takes part once.
        optimal: the best known noise, with the certificate behind ``lower``.

    >>> found = gn.streams.certify(np.eye(4), gn.streams.prefix_sums(4))
    >>> print(f"{found.factor:.3f}")
    1.206
    """

    error: float
    lower: float
    sensitivity: float
    p: float
    participation: AbstractPatterns | None
    optimal: OptimalNoise

    @property
    def factor(self) -> float:
        """The ratio ``error / lower``, which bounds the error relative to the least possible."""
        return self.error / self.lower

    def explain(self) -> str:
        """Return the numbers in sentences."""
        n = self.optimal.domain.dim
        what, share = "root of the summed p-th powers of the standard deviations", 1.0
        if self.p == 2:
            what, share = f"root mean square error of the {n} answers", math.sqrt(n)
        elif self.p == math.inf:
            what = f"largest standard deviation among the {n} answers"
        who = (
            "Each person takes part once."
            if self.participation is None
            else f"Who takes part: {self.participation!r}."
        )
        best = self.optimal.gamma
        return (
            f"At unit noise multiplier, the {what} is at most {self.error / share:.6g} with this "
            "strategy. No strategy "
            f"of any kind, under the same participation, has less than {self.lower / share:.6g}: "
            "this one is at most "
            f"{100 * (self.factor - 1):.3g} % above the best possible, and the best one known has "
            f"{best / share:.6g}. {who} One person moves the strategy's answers, as they were "
            "given, by at most "
            f"{self.sensitivity:.6g}."
        )

    def __str__(self) -> str:
        return self.explain()


def certify(
    strategy: Any, workload: Any, *, participation: AbstractPatterns | None = None, p: float = 2
) -> StrategyCertificate:
    """Compare a strategy C for a workload A with the best possible noise.

    The published answers are A C⁻¹ (C x + noise).

    Args:
        strategy: C, lower triangular of shape (n, n), at any scale: its sensitivity is computed. Or
            the first column of a Toeplitz matrix, shape (k,), k <= n; or an object with
            ``materialize(n)``, ``materialize()`` or ``toarray()``, such as the matrices of
            jax_privacy.
        workload: A, shape (n, n), lower triangular with no zero on the diagonal, or an object with
            ``toarray()``.
        participation: who takes part when; if omitted, each person takes part once.
        p: error norm in [2, ∞].

    Returns:
        A :class:`StrategyCertificate`.

    Raises:
        ParameterError: the strategy has another shape, is not lower triangular, or is too nearly
            singular; or p < 2.
        InvalidDomainError: the workload is not lower triangular, or the patterns are over other
            ticks.

    Source: the lower end is that of :func:`gaussnoise.optimal_noise` (Nikolov & Tang 2023, Theorem
    26; for repeated participation, see ``ParticipationCertificate``).

    >>> A = np.tril(np.ones((30, 30)))
    >>> root = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, 30))])  # A = C C
    >>> found = gn.streams.certify(
    ...     root[:7], A, participation=gn.streams.Apart(30, 4, 7, kind="counts")
    ... )
    >>> print(f"{found.error / 30**0.5:.3f} {found.lower / 30**0.5:.3f} {found.factor:.3f}")
    4.304 3.941 1.092
    """
    check_order("certify", p)
    if participation is not None:
        check_participation("certify", participation)
    who = participation
    matrix = dense(workload)
    # this checks the workload, for any participation
    A = participations(matrix, Epochs(max(len(np.atleast_1d(matrix)), 1), 1)).matrix
    n = len(A)
    C, scale = _unit(_matrix(strategy, n))
    moved = sensitivity_of(C, who)
    sensitivity = scale * moved
    error = _error(C, A, p) * moved * (1 + n * ROUNDING_MARGIN)
    if not (0 < sensitivity < math.inf and 0 < error < math.inf):
        raise ParameterError(
            "certify: the error, or the sensitivity, is beyond the largest double or below the "
            "least; hint: rescale the workload, or the strategy"
        )
    domain: AbstractDomain = FiniteSet(A.T) if who is None else participations(A, who)
    if who is None and isinstance(workload, StreamWorkload):
        domain = workload
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the sentences state the gap
        best = optimal_noise(domain, p, neighbors="add-remove")
    return StrategyCertificate(error, best.gamma_lower, sensitivity, float(p), who, best)


def _error(C: Array, A: Array, p: float) -> float:
    """Return ``‖sd‖_p`` of the answers for unit noise on those of C, whose entries are near one."""
    workload, size = _unit(A)
    B = scipy.linalg.solve_triangular(C.T, workload.T, lower=False).T
    with np.errstate(over="ignore", invalid="ignore"):
        left = np.abs(B @ C - workload).max()
    if not left <= _RESIDUAL * np.abs(workload).max():
        raise ParameterError(
            "certify: the strategy is too nearly singular for double precision; hint: rescale it"
        )
    rows, largest = _unit(B)
    return norm(np.linalg.norm(rows, axis=1), p) * largest * size


def _unit(matrix: Array) -> tuple[Array, float]:
    """Return the matrix divided by a power of two, with entries of at most about one; the power."""
    size = power_of_two(np.abs(matrix).max())
    return matrix / size, size


def sensitivity_of(C: Array, who: AbstractPatterns | None) -> float:
    """Return a proven bound on the length of one person's move of the strategy's answers."""
    (unit, size), most = _unit(C), 1 if who is None else who.most
    longest = float(np.square(unit).sum(axis=0).max())
    if who is not None:
        longest = participations(unit, who).max_quadratic(np.eye(len(C))).upper_bound
    return size * math.sqrt(longest * (1 + most * len(C) * _ROUNDING))


def _matrix(strategy: Any, n: int) -> Array:
    """Return C as an array (n, n)."""
    given = strategy
    if hasattr(given, "materialize"):
        try:
            given = given.materialize(n)
        except TypeError:  # it knows its own size
            given = given.materialize()
    try:
        array = np.asarray(dense(given), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            "certify: expected a strategy as an array of numbers, or an object with materialize "
            "or toarray, got "
            f"{type(strategy).__name__}"
        ) from None
    if array.ndim == 1 and 0 < len(array) <= n:
        array = np.tril(scipy.linalg.toeplitz(np.append(array, np.zeros(n - len(array)))))
    if array.shape != (n, n) or not np.isfinite(array).all():
        raise ParameterError(
            f"certify: expected a finite strategy of shape ({n}, {n}), or the first column of a "
            "Toeplitz one, of at "
            f"most {n} numbers; got shape {array.shape}"
        )
    if np.triu(array, 1).any() or not array.diagonal().all():
        raise ParameterError(
            "certify: expected a lower-triangular strategy with no zero on the diagonal"
        )
    return array
