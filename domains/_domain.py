"""The interface every domain implements, and the validation every oracle call passes through."""

import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import DimensionError, InvalidDomainError

if TYPE_CHECKING:
    from ._finite import FiniteSet

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class QuadraticMax:
    """A bracket on ``sup_{x in K} (x - c)' H (x - c)`` with its witness (Nikolov & Tang 2023, Definition 29).

    Attributes:
        maximizer: point of K, shape (dim,), at which ``value`` is attained.
        value: lower end of the bracket.
        upper_bound: proven upper end; equal to ``value`` when the oracle is exact (up to rounding).
    """

    maximizer: Array
    value: float
    upper_bound: float


class AbstractDomain(abc.ABC):
    """A nonempty bounded set K in R^dim, known through its oracles.

    A subclass supplies ``dim``, ``is_symmetric`` and the underscored oracles, which receive validated
    arguments; the public methods validate once and delegate.
    """

    # numpy would otherwise take ``A @ K`` for itself and fail inside its own loops
    __array_ufunc__ = None

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """Dimension d of the space the set lives in."""

    @property
    @abc.abstractmethod
    def is_symmetric(self) -> bool:
        """Whether K = -K."""

    @abc.abstractmethod
    def _support_point(self, theta: Array) -> Array:
        """A maximizer of <theta, x> over K."""

    @abc.abstractmethod
    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        """A bracket on the largest (x - center)' form (x - center) over K."""

    @abc.abstractmethod
    def _contains(self, x: Array) -> bool:
        """Whether x belongs to K."""

    @final
    def support_point(self, theta: ArrayLike) -> Array:
        """A point of K at which ``<theta, x>`` is largest.

        Args:
            theta: direction, shape (dim,), finite.

        Returns:
            The maximizer, shape (dim,).

        Raises:
            DimensionError: wrong shape.
            InvalidDomainError: NaN or infinity.

        >>> FiniteSet([[0.0, 1.0], [2.0, 0.0]]).support_point([1.0, 1.0])
        array([2., 0.])
        """
        return self._support_point(self._vector("support_point", "theta", theta))

    @final
    def support(self, theta: ArrayLike) -> float:
        """The support function ``h_K(theta) = sup_{x in K} <theta, x>``, evaluated at ``support_point(theta)``.

        >>> FiniteSet([[0.0, 1.0], [2.0, 0.0]]).support([1.0, 1.0])
        2.0
        """
        direction = self._vector("support", "theta", theta)
        return float(direction @ self._support_point(direction))

    @final
    def max_quadratic(self, H: ArrayLike, center: ArrayLike | None = None) -> QuadraticMax:
        """Bracket ``sup_{x in K} (x - center)' H (x - center)`` (Nikolov & Tang 2023, Definition 29).

        Args:
            H: symmetric positive semidefinite matrix, shape (dim, dim).
            center: shape (dim,); the origin if omitted.

        Returns:
            A :class:`QuadraticMax`; its ``value`` is a lower end, its ``upper_bound`` an upper one.

        Raises:
            DimensionError: wrong shape.
            InvalidDomainError: NaN, infinity, or H not symmetric positive semidefinite.
            DomainTooLargeError: no exact or bounded answer at this size.

        >>> FiniteSet([[0.0, 1.0], [2.0, 0.0]]).max_quadratic([[1.0, 0.0], [0.0, 9.0]]).value
        9.0
        """
        form = np.array(H, dtype=np.float64)
        if form.shape != (self.dim, self.dim):
            raise DimensionError(f"max_quadratic: expected H of shape {(self.dim, self.dim)}, got {form.shape}")
        if not np.isfinite(form).all():
            raise InvalidDomainError("max_quadratic: expected finite H, got NaN or infinity")
        size = np.abs(form).max()
        if np.abs(form - form.T).max() > 1e-10 * size:
            raise InvalidDomainError("max_quadratic: expected symmetric H; hint: pass (H + H.T) / 2")
        lowest = np.linalg.eigvalsh(form)[0]
        if lowest < -1e-10 * size * self.dim:
            raise InvalidDomainError(f"max_quadratic: expected positive semidefinite H, got eigenvalue {lowest:.3g}")
        origin = np.zeros(self.dim) if center is None else self._vector("max_quadratic", "center", center)
        return self._max_quadratic(form, origin)

    @final
    def contains(self, x: ArrayLike) -> bool:
        """Whether ``x``, shape (dim,), is a member of the named set, exactly as stored.

        >>> FiniteSet([[0.0, 1.0], [2.0, 0.0]]).contains([2.0, 0.0])
        True
        """
        return self._contains(self._vector("contains", "x", x))

    @final
    def _vector(self, method: str, name: str, value: ArrayLike) -> Array:
        """``value`` as a finite float64 vector of this space."""
        vector = np.array(value, dtype=np.float64)
        if vector.shape != (self.dim,):
            raise DimensionError(f"{method}: expected {name} of shape {(self.dim,)}, got {vector.shape}")
        if not np.isfinite(vector).all():
            raise InvalidDomainError(f"{method}: expected finite {name}, got NaN or infinity")
        return vector


class AbstractFiniteDomain(AbstractDomain):
    """A domain with finitely many members, which can be listed when they are few."""

    @property
    @abc.abstractmethod
    def cardinality(self) -> int:
        """Number of listed members N (duplicates counted)."""

    @abc.abstractmethod
    def to_finite_set(self) -> "FiniteSet":
        """The same set as an explicit :class:`FiniteSet`.

        Raises:
            DomainTooLargeError: the list would not fit in reasonable memory.
        """


def read_only(values: ArrayLike) -> Array:
    """A private float64 copy that nobody can write to."""
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array
