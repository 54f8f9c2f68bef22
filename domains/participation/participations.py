"""The changes that one person makes to the answers of a workload over several ticks."""

import abc
import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from ..checks import numbers
from ..domain import AbstractDomain, QuadraticMax
from ..errors import InvalidDomainError
from ..floats import Array
from ..sets.finite import FiniteSet
from .patterns import AbstractPatterns, Indices
from .sensitivity import form_bound, vector_bound

_MOST_POINTS = 2**13  # largest number of listed subsets of patterns; −s is not listed
_ASCENTS = 100
_STARTS = 8


@dataclass(frozen=True, eq=False)
class AbstractParticipations(AbstractDomain):
    """The changes that one person can make to the answers over all ticks of a stream.

    These changes are sums of multiples of columns of the workload matrix.

    Attributes:
        matrix: A, shape (n, n), lower triangular with no zero on the diagonal; tick i adds
            multiples of column i to the answers.
        who: the rule for the ticks that one person may occupy.
    """

    matrix: Array
    who: AbstractPatterns

    def __init__(self, matrix: "ArrayLike", who: AbstractPatterns) -> None:
        name = type(self).__name__
        array = numbers(name, "workload", matrix)
        if (
            array.ndim != 2
            or array.shape[0] != array.shape[1]
            or np.triu(array, 1).any()
            or not array.diagonal().all()
        ):
            raise InvalidDomainError(
                f"{name}: expected a lower-triangular workload of shape (n, n) with no zero on the "
                f"diagonal, got {array.shape}; hint: row t is what is published at time t, column "
                "i what the contribution at time i does to all of it"
            )
        if not isinstance(who, AbstractPatterns) or who.ticks != len(array):
            got = f"{who.ticks}" if isinstance(who, AbstractPatterns) else type(who).__name__
            raise InvalidDomainError(
                f"{name}: expected patterns over {len(array)} ticks, got {got}; hint: "
                f"Epochs({len(array)}, k), Apart({len(array)}, k, b)"
            )
        object.__setattr__(self, "matrix", array)
        object.__setattr__(self, "who", who)

    @property
    def dim(self) -> int:
        return len(self.matrix)

    @property
    def is_symmetric(self) -> bool:
        return True

    @abc.abstractmethod
    def _coefficients(self, gains: Array) -> Array:
        """Return one person's coefficients s with the largest ``gains @ s``, shape (n,)."""

    def _support_point(self, theta: Array) -> Array:
        return self.matrix @ self._coefficients(theta @ self.matrix)

    def _ascended(self, X: Array, pull: Array) -> Array:
        """Return coefficients s of one person at a local maximum of ``s' X s − 2 pull @ s``."""
        starts = [-pull, X.sum(axis=1), *X[np.argsort(X.diagonal())[::-1][:_STARTS]]]
        best, most = np.zeros(self.dim), -math.inf
        for start in starts:
            s, value = self._coefficients(start), -math.inf
            for _ in range(_ASCENTS):
                now = float(s @ X @ s - 2 * pull @ s)
                if not now > value + 1e-12 * abs(now):
                    break
                value, kept = now, s
                if value > most:
                    best, most = kept, value
                s = self._coefficients(X @ s - pull)
        return best


@final
class CountParticipations(AbstractParticipations):
    r"""The changes by one person who adds, or removes, a number from 0 to 1 in each tick.

    Let a_i be column i of ``matrix`` A. The set is ``± {Σ_{i ∈ π} s_i a_i : 0 <= s_i <= 1}`` over
    allowed sets π of ticks.

    ``max_quadratic`` is exact if all subsets of patterns can be listed (up to 8192). It is also
    exact if X = A'HA is elementwise nonnegative and patterns are few: the form then grows with
    every s_i, and is largest at full patterns. Otherwise ``upper_bound`` is found by dynamic
    programming on the positive part of X, since ``s_i X_ij s_j <= max(X_ij, 0)``.

    Args:
        matrix: A, shape (n, n), lower triangular with no zero on the diagonal.
        who: which ticks one person may occupy.

    Raises:
        InvalidDomainError: another shape, a zero on the diagonal, patterns over other ticks.

    >>> K = gn.streams.participations(
    ...     np.tril(np.ones((4, 4))), gn.streams.Epochs(4, 2, kind="counts")
    ... )
    >>> # of ticks 0 and 2: 1 + 1 + 4 + 4
    >>> (K.support(np.ones(4)), K.max_quadratic(np.eye(4)).upper_bound)
    (6.0, 10.0)
    """

    def _coefficients(self, gains: Array) -> Array:
        rows = []
        for sign in (1.0, -1.0):
            values = np.maximum(sign * gains, 0.0)
            s = np.zeros(self.dim)
            chosen = self.who.best(values)
            s[chosen] = sign * (values[chosen] > 0)
            rows.append(s)
        return max(rows, key=lambda s: float(gains @ s))

    @cached_property
    def _subsets(self) -> Array | None:
        """All nonempty sets of ticks of one person as 0-1 vectors; None if they are too many."""
        if self.who.most > 30 or self.who.count * 2**self.who.most > 64 * _MOST_POINTS:
            return None
        subsets = {
            subset
            for row in self.who.maximal().tolist()
            for m in range(1, self.who.most + 1)
            for subset in itertools.combinations([i for i in row if i < self.dim], m)
        }
        if len(subsets) > _MOST_POINTS:
            return None
        s = np.zeros((len(subsets), self.dim))
        for row, subset in zip(s, sorted(subsets), strict=True):
            row[list(subset)] = 1.0
        return s

    @cached_property
    def _points(self) -> Array | None:
        return None if self._subsets is None else self._subsets @ self.matrix.T

    def _listed(self, most: float = np.inf) -> FiniteSet | None:
        if self._points is None or 2 * self._points.size > most:
            return None
        return FiniteSet(np.vstack([self._points, -self._points]))

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        if self._points is not None:
            moved = np.vstack([self._points - center, -self._points - center])
            values = ((moved @ form) * moved).sum(axis=1)
            best = int(values.argmax())
            return QuadraticMax(moved[best] + center, float(values[best]), float(values[best]))
        X = self.matrix.T @ form @ self.matrix
        pull = center @ form @ self.matrix
        x = self.matrix @ self._ascended(X, pull)
        value = float((x - center) @ form @ (x - center))
        upper = 0.0
        for sign in (1.0, -1.0):
            # a convex form is largest at some s in {0, 1}, where s² = s
            positive = np.maximum(X - 2 * sign * np.diag(pull), 0.0)
            upper = max(upper, form_bound(self.who, positive))
        upper += float(center @ form @ center)
        return QuadraticMax(x, value, max(value, upper))

    def __repr__(self) -> str:
        return f"CountParticipations({self.dim} × {self.dim}, {self.who!r})"


@final
class VectorParticipations(AbstractParticipations):
    r"""The changes by one person who adds a vector of length at most one in each tick.

    Let a_i be column i of the workload A. The set is ``{Σ_{i ∈ π} s_i a_i : |s_i| <= 1}`` over
    allowed sets π of ticks.

    The set has one coordinate of the members of ``{Σ_{i ∈ π} a_i ⊗ u_i : ‖u_i‖₂ <= 1}``.

    The vectors u_i, for example gradients, may have any dimension; each of their coordinates gets
    independent noise of covariance M. :func:`optimal_noise` covers all coordinates. So does
    ``upper_bound`` of ``max_quadratic``. With X = A'HA, the largest ``Σ_{ij} X_ij ⟨u_i, u_j⟩`` is a
    semidefinite programme. It is solved exactly if patterns are few.

    Args:
        matrix: A, shape (n, n), lower triangular with no zero on the diagonal.
        who: which ticks one person may occupy.

    Raises:
        InvalidDomainError: another shape, a zero on the diagonal, patterns over other ticks.

    >>> K = gn.streams.participations(np.tril(np.ones((4, 4))), gn.streams.Epochs(4, 2))
    >>> K.support(np.ones(4)), round(K.max_quadratic(np.eye(4)).upper_bound, 6)
    (6.0, 10.0)
    """

    def _coefficients(self, gains: Array) -> Array:
        s = np.zeros(self.dim)
        chosen: Indices = self.who.best(np.abs(gains))
        s[chosen] = np.where(gains[chosen] < 0, -1.0, 1.0)
        return s

    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        X = self.matrix.T @ form @ self.matrix
        x = self.matrix @ self._ascended(X, center @ form @ self.matrix)
        value = float((x - center) @ form @ (x - center))
        # the triangle inequality |x − c| <= |x| + |c| in the norm of the form
        upper = (
            math.sqrt(vector_bound(self.who, X))
            + math.sqrt(max(float(center @ form @ center), 0.0))
        ) ** 2
        return QuadraticMax(x, value, max(value, upper))

    def __repr__(self) -> str:
        return f"VectorParticipations({self.dim} × {self.dim}, {self.who!r})"
