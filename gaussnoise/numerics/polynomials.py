"""Ratios of polynomials in several variables, found by calling a function on its variables."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple, final

import numpy as np

from domains.floats import Array

Monomial = tuple[int, ...]  # the variables, in order; one of power p stands p times
Terms = Mapping[Monomial, float]

_MOST_TERMS = 2 * 10**5  # a polynomial of degree two in 600 variables has as many
_MOST_DEGREE = 6
_MOST_ROOT = 400  # terms of a denominator that is compared with the root of another one


class NotAlgebraicError(ArithmeticError):
    """The function is no ratio of polynomials of moderate size."""


class Quadratic(NamedTuple):
    """The function ``x' square x + linear · x + constant``."""

    square: Array
    linear: Array
    constant: float

    @classmethod
    def one(cls, count: int) -> "Quadratic":
        """Return the function 1, of ``count`` variables."""
        return cls(np.zeros((count, count)), np.zeros(count), 1.0)

    def value(self, x: Array) -> float:
        """Return the value at a point."""
        return float(x @ self.square @ x + self.linear @ x + self.constant)

    def less(self, r: float, other: "Quadratic") -> "Quadratic":
        """Return this function less r times another one."""
        square = self.square - r * other.square
        linear = self.linear - r * other.linear
        return Quadratic(square, linear, self.constant - r * other.constant)


@final
class Rational:
    """A ratio of two polynomials. Sums, products, quotients and whole powers are such ratios."""

    __slots__ = "bottom", "top"

    def __init__(self, top: Terms, bottom: Terms | None = None) -> None:
        self.top = top
        self.bottom = {(): 1.0} if bottom is None else bottom

    def __add__(self, other: object) -> "Rational":
        a, b = self, _rational(other)
        if a.bottom == b.bottom:
            return Rational(_sum(a.top, b.top), a.bottom)
        for x, y in ((a, b), (b, a)):
            if len(x.bottom) <= _MOST_ROOT and _product(x.bottom, x.bottom) == y.bottom:
                return Rational(_sum(_product(x.top, x.bottom), y.top), y.bottom)
        tops = _product(a.top, b.bottom), _product(b.top, a.bottom)
        return Rational(_sum(*tops), _product(a.bottom, b.bottom))

    def __mul__(self, other: object) -> "Rational":
        b = _rational(other)
        return Rational(_product(self.top, b.top), _product(self.bottom, b.bottom))

    def __truediv__(self, other: object) -> "Rational":
        b = _rational(other)
        if self.bottom == b.bottom:
            return Rational(self.top, b.top)
        return self * Rational(b.bottom, b.top)

    def __pow__(self, power: object) -> "Rational":
        if isinstance(power, bool) or power not in range(_MOST_DEGREE + 1):
            raise NotAlgebraicError
        result = Rational({(): 1.0})
        for _ in range(int(power)):  # pyright: ignore[reportArgumentType]: one of a few integers
            result = result * self
        return result

    def __neg__(self) -> "Rational":
        return self * -1.0

    def __sub__(self, other: object) -> "Rational":
        return self + -_rational(other)

    def __rsub__(self, other: object) -> "Rational":
        return _rational(other) - self

    def __rtruediv__(self, other: object) -> "Rational":
        return _rational(other) / self

    __radd__ = __add__
    __rmul__ = __mul__


def algebraic(f: Callable[[Array], object], x: Array) -> Rational | None:
    """Return f as a ratio of polynomials in the entries of x; None if it is none."""
    variables = np.array([Rational({(j,): 1.0}) for j in range(x.size)], dtype=object)
    try:
        found = f(variables.reshape(x.shape))
        if isinstance(found, np.ndarray) and found.size == 1:
            found = found.item()
        return _rational(found)
    # f may do anything with its argument: where it fails, it is called with numbers instead
    except Exception:  # noqa: BLE001
        return None


def quadratic(terms: Terms, count: int) -> Quadratic | None:
    """Return a polynomial of degree two at most, of ``count`` variables; None if it has more."""
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


def unbiased(terms: Terms, x: Array, covariance: Array) -> float:
    """Return the unbiased estimate of a polynomial of the mean of a Gaussian that was x.

    A product of variables becomes a Hermite polynomial of several variables.
    """

    @cache
    def estimate(m: Monomial) -> float:
        if not m:
            return 1.0
        j, rest = m[-1], m[:-1]
        total = x[j] * estimate(rest)
        for place, i in enumerate(rest):
            total -= covariance[i, j] * estimate(rest[:place] + rest[place + 1 :])
        return float(total)

    return sum(c * estimate(m) for m, c in terms.items())


def _rational(value: object) -> Rational:
    """Return a number or a ratio as a ratio."""
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
