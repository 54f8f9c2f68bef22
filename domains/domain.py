"""The base class of all domains, which checks the arguments of every oracle."""

import abc
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike

from .errors import DimensionError, InvalidDomainError
from .floats import EPS, Array, Map, power_of_two
from .records import doubles, real_array
from .stored import Storable, is_ours

if TYPE_CHECKING:
    from .oracles.image import ConvexImage
    from .sets.finite import FiniteSet

# Relative to their size, bodies accept points this far outside: computed members are rounded.
SLACK = 1e-9


TOO_LARGE = "max_quadratic: the maximum exceeds the largest double; hint: rescale H"


@dataclass(frozen=True, eq=False)
class QuadraticMax:
    """Bounds on the largest ``(x − c)' H (x − c)`` over x in K, for a matrix H and a point c.

    Nikolov & Tang (2023), Definition 29.

    Attributes:
        maximizer: point of K, shape (dim,), at which ``value`` is attained.
        value: lower bound.
        upper_bound: proven; equal to ``value`` when the oracle is exact (up to rounding).

    >>> found = gn.LpBall(2, 2).max_quadratic(np.diag([4.0, 1.0]), np.zeros(2))
    >>> print(found.value, found.upper_bound >= found.value)
    4.0 True
    """

    maximizer: Array
    value: float
    upper_bound: float


class AbstractDomain(Storable, abc.ABC):
    """A nonempty bounded set K in R^dim, known through answers to optimisation questions.

    The methods that answer them are called oracles.

    A domain of your own supplies ``dim`` and two methods, ``_support_point`` and
    ``_max_quadratic``, which receive validated arguments; the public methods validate and delegate.
    Set ``is_symmetric`` if K = −K: answers then take less time and have narrower bounds. For sets
    without a center, ``_difference`` may return K − K as a domain of its own, since the bound of
    the general oracle may be twice the maximum (Jung 1901). With a name like
    ``stored_as = "disc"``, results computed from the domain can be saved. Files then hold the
    arguments of its constructor. Each argument must be an attribute of the same name: a number, an
    array, a tuple or a set.

    >>> class Disc(AbstractDomain):
    ...     dim = 2
    ...     is_symmetric = True
    ...
    ...     def _support_point(self, theta):
    ...         return theta / (np.linalg.norm(theta) or 1.0)
    ...
    ...     def _max_quadratic(
    ...         self, form, center
    ...     ):  # (|x − c|' H (x − c))^(1/2) <= (x' H x)^(1/2) + (c' H c)^(1/2)
    ...         values, axes = np.linalg.eigh(form)
    ...         x = axes[:, -1] * (1.0 if axes[:, -1] @ form @ center <= 0 else -1.0)
    ...         upper = (values[-1] ** 0.5 + (center @ form @ center) ** 0.5) ** 2
    ...         return QuadraticMax(x, (x - center) @ form @ (x - center), upper)
    >>> ([[2.0, 0.0], [0.0, 1.0]] @ Disc() + [5.0, 5.0]).support([1.0, 0.0])
    7.0
    """

    # without this line, numpy would evaluate ``A @ K`` itself, and fail
    __array_ufunc__ = None

    def __init_subclass__(cls) -> None:
        """Wrap the oracles of a user's subclass, so that each call checks the returned values."""
        super().__init_subclass__()
        if not is_ours(cls):
            for name, checked in (
                ("_support_point", _checked_point),
                ("_max_quadratic", _checked_bracket),
            ):
                if name in vars(cls):
                    setattr(cls, name, checked(vars(cls)[name]))

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """The dimension d of the space R^d that contains the set."""

    @abc.abstractmethod
    def _support_point(self, theta: Array) -> Array:
        """Return a support point: a maximizer of <theta, x> over x in K, shape (dim,)."""

    @abc.abstractmethod
    def _max_quadratic(self, form: Array, center: Array) -> QuadraticMax:
        """Return bounds on the largest (x - center)' form (x - center) over x in K."""

    @property
    def is_symmetric(self) -> bool:
        """Whether K = −K is known: −x is in K for every x in K."""
        return False

    def _contains(self, x: Array) -> bool:
        """Return whether x is in K up to ``SLACK``; this default tests the convex hull of K."""
        # imported here, since the modules of oracles and operators import this class
        from .oracles.distance import is_near

        return is_near(self, x)

    @functools.cached_property
    def _axis_points(self) -> Array:
        """The support points along −e_i and +e_i for every unit vector e_i, shape (2, dim, dim)."""
        axes = np.eye(self.dim)
        return np.array([[self._support_point(sign * axis) for axis in axes] for sign in (-1, 1)])

    def _center(self) -> Array | None:
        """Return the center of symmetry of K, shape (dim,), or None if no center is known."""
        return np.zeros(self.dim) if self.is_symmetric else None

    def _image(self) -> "ConvexImage | None":
        """Return K, or its convex hull, as a :class:`ConvexImage`, or None if it is not one."""
        return None

    def _difference(self) -> "AbstractDomain":
        """Return the difference body K − K = {x − y : x, y in K}."""
        from .algebra.differences import DifferenceBody

        return 2 * self if self.is_symmetric else DifferenceBody(self)

    def _listed(self, most: float = np.inf) -> "FiniteSet | None":
        """Return K as a set of points, or points whose hull is K; None above ``most`` numbers."""
        return None

    def _factors(self) -> "list[tuple[slice, AbstractDomain]]":
        """Return the factors of a Cartesian product with their coordinates; [] for other sets."""
        return []

    def _mapped(self, A: Array) -> "AbstractDomain":
        """Return the image A K = {A x : x in K} as a domain of the simplest form."""
        from .algebra.images import LinearImage

        return LinearImage(A, self)

    def _scaled(self, factor: float) -> "AbstractDomain":
        """Return c K = {c x : x in K}, c not zero, as a domain of the simplest form."""
        from .algebra.images import Scaled

        factor = abs(factor) if self.is_symmetric else factor
        return self if factor == 1 else Scaled(self, factor)

    def _moved(self, shift: Array) -> "AbstractDomain":
        """Return the translate K + v for a shift v, as a domain of the simplest form."""
        from .algebra.images import Translate

        return Translate(self, shift) if shift.any() else self

    def _apart(self) -> "tuple[AbstractDomain, Array]":
        """Return a translate L of K near the origin, and the vector v with L + v = K."""
        # near the origin, small sizes keep their digits; v is the rounded sum of all shifts of K
        return self, np.zeros(self.dim)

    def _drift(self, shift: Array) -> float:
        """Return a bound on the rounding error of ``shift``, the vector from :meth:`_apart`."""
        return 4 * float(EPS * self._magnitudes().max()) if shift.any() else 0.0

    def _near(self, X: Array) -> Array | None:
        """Return a member of K near each row of X, or None if there is no quick method."""
        return None

    def _before(self, A: Array, X: Array) -> Array:
        """Return preimages of the rows of X: rows y with A y = x, if such points exist."""
        return X @ np.linalg.pinv(A).T

    def _map_into(self) -> Map | None:
        """Return a function that maps rows into K and keeps members unchanged, or None."""
        return None

    def _magnitudes(self) -> Array:
        """Return a bound on the absolute numbers from which each coordinate is computed."""
        from .oracles.distance import reach_of

        return reach_of(self)

    def _support_gap(self, theta: Array) -> float:
        """Return a bound on how far the support point s is from optimal: sup_x <theta, x − s>."""
        # a set for which no bound is known raises DomainTooLargeError
        return 0.0

    def _product_near(self, x: Array) -> Array | None:
        """Return a member of K near x if K is a Kronecker product, otherwise None."""
        return None

    def _max_pulled(self, A: Array, form: Array) -> QuadraticMax:
        """Return bounds on the largest (A x)' form (A x) over x in K; the maximizer is this x."""
        pulled = A.T @ form @ A
        return self._max_quadratic((pulled + pulled.T) / 2, np.zeros(self.dim))

    def _numbers(self) -> int:
        """Return how many numbers describe a member: coordinates, or weights of generators."""
        return self.dim

    @final
    def support_point(self, theta: "ArrayLike") -> Array:
        """Return a point of K at which ``<theta, x>`` is largest.

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
    def support(self, theta: "ArrayLike") -> float:
        """Return the support function ``sup_{x in K} <theta, x>``, attained at ``support_point``.

        For Kronecker products of bodies, it is the best value found: a lower bound.

        >>> FiniteSet([[0.0, 1.0], [2.0, 0.0]]).support([1.0, 1.0])
        2.0
        """
        direction = self._vector("support", "theta", theta)
        return float(direction @ self._support_point(direction))

    @final
    def max_quadratic(self, H: "ArrayLike", center: "ArrayLike | None" = None) -> QuadraticMax:
        """Return bounds on ``sup_{x in K} (x - center)' H (x - center)``.

        Nikolov & Tang (2023), Definition 29.

        Args:
            H: symmetric positive semidefinite matrix, shape (dim, dim).
            center: shape (dim,); the origin if omitted.

        Returns:
            A :class:`QuadraticMax`: ``value`` and ``upper_bound`` enclose the supremum.

        Raises:
            DimensionError: wrong shape.
            InvalidDomainError: NaN, infinity, or H not symmetric positive semidefinite.
            DomainTooLargeError: no exact or bounded answer at this size.

        >>> FiniteSet([[0.0, 1.0], [2.0, 0.0]]).max_quadratic([[1.0, 0.0], [0.0, 9.0]]).value
        9.0
        """
        form = _finite_array("max_quadratic", "H", (self.dim, self.dim), H)
        size = np.abs(form).max()
        if np.abs(form - form.T).max() > 1e-10 * size:
            raise InvalidDomainError(
                "max_quadratic: expected symmetric H; hint: pass (H + H.T) / 2"
            )
        lowest = np.linalg.eigvalsh(form)[0]
        if lowest < -1e-10 * size * self.dim:
            raise InvalidDomainError(
                f"max_quadratic: expected positive semidefinite H, got eigenvalue {lowest:.3g}"
            )
        origin = (
            np.zeros(self.dim)
            if center is None
            else self._vector("max_quadratic", "center", center)
        )
        # a power of two, so that dividing by it does not round
        scale = power_of_two(size) if size > 0 else 1.0
        form = form / scale
        with np.errstate(over="ignore", invalid="ignore"):
            far = float(np.abs(origin) @ np.abs(form) @ np.abs(origin))
        if not far < np.inf:
            raise InvalidDomainError(
                "max_quadratic: the square of the center exceeds the largest double; hint: a "
                "center near the set"
            )
        bracket = self._max_quadratic(form, origin)
        # this comparison is false for NaN; the factor allows for separate rounding of the two
        if not bracket.value <= bracket.upper_bound * (1 + 1e-9):
            raise InvalidDomainError(
                f"max_quadratic: expected value <= upper_bound from {type(self).__name__}, "
                f"got {bracket.value!r} and {bracket.upper_bound!r}"
            )
        value = min(bracket.value, bracket.upper_bound)
        # subtracting a far center loses digits in directions where H is small
        terms = np.abs(bracket.maximizer) + np.abs(origin)
        rounding = 4 * (self.dim + 16) * EPS * float(terms @ np.abs(form) @ terms)
        digits_left = not origin.any() or rounding <= 1e-11 * value
        upper = bracket.upper_bound if digits_left else max(bracket.upper_bound, value + rounding)
        if not float(upper) * scale < np.inf:
            raise InvalidDomainError(TOO_LARGE)
        return QuadraticMax(bracket.maximizer, value * scale, upper * scale)

    @final
    def contains(self, x: "ArrayLike") -> bool:
        """Return whether ``x``, shape (dim,), is a member of this set.

        Members of finite sets must equal a stored point exactly. Because of rounding, points
        outside a body by up to ``SLACK`` = 1e-9 of its size count as members.

        Raises:
            DimensionError: wrong shape.
            InvalidDomainError: not real numbers, NaN or infinity; the message shows no value.

        >>> FiniteSet([[0.0, 1.0], [2.0, 0.0]]).contains([2.0, 0.0])
        True
        """
        if hasattr(x, "toarray"):
            raise InvalidDomainError(
                f"contains: expected x of shape ({self.dim},), all real numbers, got "
                f"{type(x).__name__}; hint: .toarray()"
            )
        vector = real_array("contains", f"x of shape ({self.dim},)", (self.dim,), x).astype(
            np.float64
        )
        if not np.isfinite(vector).all():
            raise InvalidDomainError("contains: expected finite x, got NaN or infinity")
        return self._contains(vector)

    def __rmatmul__(self, matrix: "ArrayLike") -> "AbstractDomain":
        """Return ``A @ K``, the linear image {A x : x in K}; A of shape (k, dim)."""
        from .algebra.images import linear_image

        return linear_image(matrix, self)

    def __add__(self, other: "AbstractDomain | ArrayLike") -> "AbstractDomain":
        """Return the translate ``K + v`` by a vector v, or the Minkowski sum ``K + L``.

        The Minkowski sum with a set L is {x + y : x in K, y in L}.
        """
        from .algebra.images import translate
        from .algebra.sums import minkowski_sum

        return (
            minkowski_sum(self, other)
            if isinstance(other, AbstractDomain)
            else translate(self, other)
        )

    def __radd__(self, other: "ArrayLike") -> "AbstractDomain":
        return self + other

    def __sub__(self, other: "AbstractDomain | ArrayLike") -> "AbstractDomain":
        """Return the translate ``K − v`` by a vector v, or ``K − L`` = K + (−L) for a set L.

        ``K − K`` is the difference body {x − y : x, y in K}.
        """
        if other is self:
            return self._difference()
        return (
            self + -other
            if isinstance(other, AbstractDomain)
            else self + -np.asarray(other, dtype=np.float64)
        )

    def __rsub__(self, other: "ArrayLike") -> "AbstractDomain":
        return -self + other

    def __mul__(self, factor: float) -> "AbstractDomain":
        """Return the multiple ``c * K`` = {c x : x in K} for a number c."""
        from .algebra.images import scale

        return scale(self, factor)

    def __rmul__(self, factor: float) -> "AbstractDomain":
        return self * factor

    def __neg__(self) -> "AbstractDomain":
        return self * -1.0

    @final
    def _vector(self, method: str, name: str, value: "ArrayLike") -> Array:
        """Return ``value`` as a float64 vector of shape (dim,); errors name the ``method``."""
        return _finite_array(method, name, (self.dim,), value)


def _finite_array(method: str, name: str, shape: tuple[int, ...], value: "ArrayLike") -> Array:
    """Return ``value`` as a finite float64 array of this shape, or raise an error."""
    array = doubles(value)
    if isinstance(array, str):
        raise InvalidDomainError(
            f"{method}: expected {name} of shape {shape}, all real numbers, got {array}"
        )
    if array.shape != shape:
        raise DimensionError(f"{method}: expected {name} of shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidDomainError(f"{method}: expected finite {name}, got NaN or infinity")
    return array


def _checked_point(method: Callable[..., Any]) -> Callable[..., Array]:
    """Return the method with a check that it returns a finite point of R^dim."""

    @functools.wraps(method)
    def support_point(self: AbstractDomain, theta: Array) -> Array:
        return _point_of(self, "_support_point", method(self, theta))

    return support_point


def _checked_bracket(method: Callable[..., Any]) -> Callable[..., QuadraticMax]:
    """Return the method with a check of the consistency of the returned bounds."""

    @functools.wraps(method)
    def max_quadratic(self: AbstractDomain, form: Array, center: Array) -> QuadraticMax:
        bracket = method(self, form, center)
        name = f"{type(self).__name__}._max_quadratic"
        if not isinstance(bracket, QuadraticMax):
            raise InvalidDomainError(
                f"{name}: expected a QuadraticMax, got {type(bracket).__name__}"
            )
        x = _point_of(self, "_max_quadratic", bracket.maximizer) - center
        attained = float(x @ form @ x)
        slack = 1e-9 * float(np.abs(x) @ np.abs(form) @ np.abs(x))
        # these comparisons are false for NaN
        if (
            not max(float(bracket.value), attained)
            <= float(bracket.upper_bound) * (1 + 1e-9) + slack
            < np.inf
        ):
            raise InvalidDomainError(
                f"{name}: expected (x − c)' H (x − c) = value <= upper_bound < ∞ at the maximizer "
                f"x, got {attained!r}, "
                f"value {bracket.value!r} and upper_bound {bracket.upper_bound!r}"
            )
        return QuadraticMax(
            x + center, float(bracket.value), max(float(bracket.upper_bound), attained)
        )

    return max_quadratic


def _point_of(domain: AbstractDomain, method: str, point: "ArrayLike") -> Array:
    """Return ``point`` as a float64 array, or raise if it is no finite point of R^dim."""
    name = f"{type(domain).__name__}.{method}"
    try:
        array = np.array(point, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidDomainError(f"{name}: expected a point, got {type(point).__name__}") from None
    if array.shape != (domain.dim,):
        raise InvalidDomainError(
            f"{name}: expected a point of shape {(domain.dim,)}, got {array.shape}"
        )
    if not np.isfinite(array).all():
        raise InvalidDomainError(f"{name}: expected a finite point, got NaN or infinity")
    return array


class AbstractPolytope(AbstractDomain):
    """The convex hull of listed points.

    >>> square = gn.Polytope([[0, 0], [1, 0], [0, 1], [1, 1]])
    >>> print(isinstance(square, gn.domains.AbstractPolytope), square.vertices.shape)
    True (4, 2)
    """

    @property
    @abc.abstractmethod
    def vertices(self) -> Array:
        """A list of k points whose convex hull is this set, as the rows of an array (k, dim)."""

    def _listed(self, most: float = np.inf) -> "FiniteSet":
        from .sets.finite import FiniteSet

        return FiniteSet(self.vertices)


class AbstractFiniteDomain(AbstractDomain):
    """A domain with finitely many members, which can be listed when they are few.

    >>> cells = gn.Marginals.all_kway([2, 3], 2)
    >>> print(isinstance(cells, gn.domains.AbstractFiniteDomain), cells.cardinality)
    True 6
    """

    @property
    @abc.abstractmethod
    def cardinality(self) -> int:
        """The number of listed members; a member that is listed twice counts twice."""

    @abc.abstractmethod
    def to_finite_set(self) -> "FiniteSet":
        """Return the same set as an explicit :class:`FiniteSet`.

        Raises:
            DomainTooLargeError: the list would need too much memory.
        """

    def _listed(self, most: float = np.inf) -> "FiniteSet | None":
        return self.to_finite_set() if self.cardinality * self.dim <= most else None
