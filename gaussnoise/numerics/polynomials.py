"""Ratios of polynomials in several variables, found by a call of a function on its variables."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, final

import numpy as np

from domains.floats import Array

Monomial = tuple[int, ...]  # indices of variables in order; a variable with power p occurs p times
Terms = Mapping[Monomial, float]

_MOST_TERMS = 2 * 10**5  # as in a polynomial of degree two in 600 variables
_MOST_DEGREE = 6


class NotAlgebraicError(ArithmeticError):
    """The function is not a ratio of polynomials of moderate size."""


class Quadratic(NamedTuple):
    """The function ``x' square x + linear · x + constant`` of a vector x."""

    square: Array
    linear: Array
    constant: float

    @classmethod
    def one(cls, count: int) -> "Quadratic":
        """Return the constant function 1 of ``count`` variables."""
        return cls(np.zeros((count, count)), np.zeros(count), 1.0)

    def value(self, x: Array) -> float:
        """Return the value of the function at the point x."""
        return float(x @ self.square @ x + self.linear @ x + self.constant)

    def less(self, r: float, other: "Quadratic") -> "Quadratic":
        """Return this function minus r times another function."""
        square = self.square - r * other.square
        linear = self.linear - r * other.linear
        return Quadratic(square, linear, self.constant - r * other.constant)


def _between_ratios(operation: Callable[["Rational", "Rational"], "Rational"]) -> Callable:
    """Return an operation on two ratios that also accepts a number as the second argument."""

    # for an array, NotImplemented lets numpy apply it to each entry
    def of(self: "Rational", other: object) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return operation(self, _rational(other))

    return of


@final
class Rational:
    """A ratio of two polynomials; sums, products, quotients and integer powers are ratios again.

    The denominator is stored as a power of a polynomial, so that ratios with the same
    denominator add up without products of denominators.
    """

    __slots__ = "_base", "_power", "top"

    def __init__(self, top: Terms, base: Terms | None = None, power: int = 1) -> None:
        self.top = top
        self._base = {(): 1.0} if base is None else base
        self._power = 0 if base is None else power

    @property
    def bottom(self) -> Terms:
        """The denominator, as a polynomial."""
        return _power(self._base, self._power)

    @_between_ratios
    def __add__(self, other: "Rational") -> "Rational":
        a, b = sorted((self, other), key=lambda ratio: ratio._power)
        if not a._power or a._base == b._base:
            top = _product(a.top, _power(b._base, b._power - a._power))
            return Rational(_sum(top, b.top), b._base, b._power)
        tops = _product(a.top, b.bottom), _product(b.top, a.bottom)
        return Rational(_sum(*tops), _product(a.bottom, b.bottom))

    @_between_ratios
    def __mul__(self, other: "Rational") -> "Rational":
        a, b = sorted((self, other), key=lambda ratio: ratio._power)
        top = _product(a.top, b.top)
        if not a._power or a._base == b._base:
            return Rational(top, b._base, a._power + b._power)
        return Rational(top, _product(a.bottom, b.bottom))

    @_between_ratios
    def __truediv__(self, other: "Rational") -> "Rational":
        a, b = self, other
        if not b._power and set(b.top) <= {()}:  # a number, which must not become a denominator
            return a * (1 / b.top.get((), 0.0))
        if a._power == b._power and (not a._power or a._base == b._base):
            return Rational(a.top, b.top)
        return a * Rational(b.bottom, b.top)

    def __pow__(self, power: object) -> "Rational":
        if isinstance(power, bool) or power not in range(_MOST_DEGREE + 1):
            raise NotAlgebraicError
        result = Rational({(): 1.0})
        for _ in range(int(power)):  # pyright: ignore[reportArgumentType]: one of a few integers
            result = result * self
        return result

    def __neg__(self) -> "Rational":
        return self * -1.0

    @_between_ratios
    def __sub__(self, other: "Rational") -> "Rational":
        return self + -other

    @_between_ratios
    def __rsub__(self, other: "Rational") -> "Rational":
        return other - self

    @_between_ratios
    def __rtruediv__(self, other: "Rational") -> "Rational":
        return other / self

    __radd__ = __add__
    __rmul__ = __mul__


def algebraic(f: Callable[[Array], object], x: Array) -> Rational | None:
    """Return f as a ratio of polynomials in the entries of x; None if f is no such ratio."""
    variables = np.array([Rational({(j,): 1.0}) for j in range(x.size)], dtype=object)
    try:
        found = f(variables.reshape(x.shape))
        if isinstance(found, np.ndarray) and found.size == 1:
            found = found.item()
        ratio = _rational(found)
        return Rational(ratio.top, ratio.bottom)  # may refuse a denominator as too large
    # f may do anything with its argument: if it fails, the caller calls it with numbers instead
    except Exception:  # noqa: BLE001
        return None


def quadratic(terms: Terms, count: int) -> Quadratic | None:
    """Return a polynomial as a quadratic function of ``count`` variables.

    Return None if its degree is above two.
    """
    square, linear, constant = np.zeros((count, count)), np.zeros(count), 0.0
    for m, c in terms.items():
        if len(m) > 2:
            return None
        if len(m) == 2:
            square[m] += c / 2
            square[m[::-1]] += c / 2
        elif m:
            linear[m] += c
        else:
            constant += c
    return Quadratic(square, linear, constant)


def unbiased(terms: Terms, x: Array, covariance: Array) -> Any:
    """Return the unbiased estimate of a polynomial at a Gaussian's mean, from its observed value x.

    A product of variables becomes a Hermite polynomial in several variables.

    Args:
        terms: the polynomial, of k variables.
        x: the observed Gaussian, shape (k,), or several draws of it, shape (k, draws).
        covariance: the covariance of the Gaussian, shape (k, k).
    """

    @cache
    def estimate(m: Monomial) -> Any:
        if not m:
            return 1.0
        j, rest = m[-1], m[:-1]
        total = x[j] * estimate(rest)
        for place, i in enumerate(rest):
            total = total - covariance[i, j] * estimate(rest[:place] + rest[place + 1 :])
        return total

    return sum(c * estimate(m) for m, c in terms.items())


def _rational(value: object) -> Rational:
    """Return a finite number or a ratio as a ratio; raise NotAlgebraicError for other values."""
    if isinstance(value, Rational):
        return value
    if isinstance(value, int | float | np.integer | np.floating) and np.isfinite(value):
        return Rational({(): float(value)})
    raise NotAlgebraicError


def _sum(a: Terms, b: Terms) -> Terms:
    """Return the sum of two polynomials."""
    total = dict(a)
    for m, c in b.items():
        total[m] = total.get(m, 0.0) + c
    return {m: c for m, c in total.items() if c}


def _product(a: Terms, b: Terms) -> Terms:
    """Return the product of two polynomials."""
    if a == {(): 1.0}:
        return b
    if b == {(): 1.0}:
        return a
    if len(a) * len(b) > 2 * _MOST_TERMS:
        raise NotAlgebraicError
    total: dict[Monomial, float] = {}
    for m, c in a.items():
        for n, d in b.items():
            both = tuple(sorted(m + n))
            if len(both) > _MOST_DEGREE:
                raise NotAlgebraicError
            total[both] = total.get(both, 0.0) + c * d
    return {m: c for m, c in total.items() if c}


def _power(terms: Terms, power: int) -> Terms:
    """Return a polynomial to the power of a nonnegative integer."""
    result: Terms = {(): 1.0}
    for _ in range(power):
        result = _product(result, terms)
    return result
