"""Checks of the arguments of the constructors of bodies."""

import math

import numpy as np
from numpy.typing import ArrayLike

from .errors import DomainTooLargeError, InvalidDomainError
from .floats import EPS, MOST_NUMBERS, Array
from .records import own_array, real_numbers


def numbers(name: str, what: str, values: "ArrayLike") -> Array:
    """Return ``values`` as finite numbers in a new float64 array, or raise InvalidDomainError."""
    array = real_numbers(name, values, f"{what} ")
    if not np.isfinite(array).all():
        raise InvalidDomainError(f"{name}: expected finite {what}, got NaN or infinity")
    return array


def center_of(name: str, center: "ArrayLike", dim: int) -> Array:
    """Return a center of symmetry, shape (dim,); one number stands for all coordinates."""
    array = numbers(name, "center", center)
    if array.shape not in ((), (dim,)):
        raise InvalidDomainError(
            f"{name}: expected center of shape ({dim},) or one number, got {array.shape}"
        )
    return own_array(np.broadcast_to(array, (dim,)) + 0.0)


def whole(name: str, what: str, value: int) -> int:
    """Return the value as an integer >= 1, or raise InvalidDomainError."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidDomainError(f"{name}: expected {what} an integer >= 1, got {value!r}")
    return int(value)


def exponent(name: str, q: float) -> float:
    """Return q as a float if it is an exponent 1 <= q <= ∞, or raise InvalidDomainError."""
    try:
        number = float(q)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number >= 1:
        raise InvalidDomainError(f"{name}: expected 1 <= q <= inf, got {q!r}")
    return number


def positive(name: str, what: str, value: float) -> float:
    """Return the value as a finite number above zero, or raise InvalidDomainError."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < math.inf:
        raise InvalidDomainError(f"{name}: expected a finite {what} > 0, got {value!r}")
    return number


def check_dense(name: str, rows: int, columns: int, hint: str) -> None:
    """Raise DomainTooLargeError if a matrix of this shape takes more than a gigabyte."""
    if rows * columns > MOST_NUMBERS:
        raise DomainTooLargeError(
            f"{name}: a dense {rows} × {columns} matrix needs {rows * columns / MOST_NUMBERS:.1f} "
            f"GB, more than 1 GB; hint: {hint}"
        )


def rounding(*vectors: Array) -> Array:
    """Return a bound, for each coordinate, on the rounding error of the sum of ``vectors``."""
    return 8 * EPS * sum((np.abs(v) for v in vectors), np.zeros_like(vectors[0]))
