"""Checks of the public numbers that describe a distribution to an estimator."""

import hashlib
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains import AbstractDomain
from domains.description import describe

from ..errors import ParameterError

Array = NDArray[np.float64]

# The smallest and largest allowed numbers, in the units of the data. Squares, products and
# quotients of such numbers, and of noise for any budget, neither overflow nor underflow.
SMALLEST, LARGEST = 1e-100, 1e100
_MOST_ORDER = 100.0  # largest order of a moment: 10⁶ to this power is still a float


def shown(value: object) -> str:
    """Return an argument as text for an error message, cut to 80 characters.

    An integer that Python refuses to print is described by its type.
    """
    try:
        return f"{value!r:.80}"
    except ValueError:
        return f"one of type {type(value).__name__}"


def number(function: str, name: str, value: object) -> float:
    """Return an argument as a finite float, or raise ParameterError.

    ``function`` and ``name`` are named in the message.
    """
    try:
        if not isinstance(value, str | bytes | bool):
            real = float(value)  # pyright: ignore[reportArgumentType]
            if math.isfinite(real):
                return real
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(f"{function}: expected a finite number {name}, got {shown(value)}")


def positive(function: str, name: str, value: object) -> float:
    """Return an argument as a float from 1e-100 to 1e100, or raise ParameterError."""
    real = number(function, name, value)
    if not real > 0:
        raise ParameterError(f"{function}: expected {name} > 0, got {real!r}")
    if not SMALLEST <= real <= LARGEST:
        raise ParameterError(
            f"{function}: expected {name} from {SMALLEST:g} to {LARGEST:g}, got {real!r}; hint: "
            "data in another unit"
        )
    return real


def chance(function: str, beta: object) -> float:
    """Return ``beta``, a probability of failure below 1/2, or raise ParameterError."""
    real = number(function, "beta", beta)
    if not SMALLEST <= real < 0.5:
        raise ParameterError(
            f"{function}: expected {SMALLEST:g} <= beta < 0.5, got {real!r}; hint: 0.01"
        )
    return real


def moment_order(function: str, k: object, *, infinite: bool = False) -> float:
    """Return the argument ``order``, the order of a moment, as a float from 2 to 100.

    If ``infinite``, infinity is allowed too, for bounded data. Raise ParameterError for other
    values.
    """
    if infinite and isinstance(k, float) and k == math.inf:
        return math.inf
    real = number(function, "order", k)
    if not real >= 2:
        raise ParameterError(f"{function}: expected order >= 2, got {real!r}")
    if real > _MOST_ORDER:
        raise ParameterError(
            f"{function}: expected order <= {_MOST_ORDER:g}, got {real!r}; hint: "
            f"order={_MOST_ORDER:g} with the same bound, which then holds as well"
        )
    return real


def vector(function: str, name: str, value: "ArrayLike", dim: int) -> Array:
    """Return an argument as an array of finite numbers of shape (dim,).

    A single number is repeated. Raise ParameterError if a number is above 1e100 in size.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind in "iufO" and array.shape in ((), (dim,)):
            array = array.astype(np.float64)
            if (np.abs(array) <= LARGEST).all():  # this is false for NaN
                return np.broadcast_to(array, (dim,)).copy()
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(
        f"{function}: expected {name} to be a number from {-LARGEST:g} to {LARGEST:g}, or {dim} of "
        "them"
    )


def check_box(function: str, name: str, low: Array, high: Array) -> None:
    """Raise ParameterError if a box is outside ±1e100, or all widths are below 1e-100."""
    size, longest = np.abs([low, high]).max(), (high / 2 - low / 2).max()
    if not (size <= LARGEST and longest >= SMALLEST):
        raise ParameterError(
            f"{function}: expected {name} within {LARGEST:g} of the origin, and wider than "
            f"{SMALLEST:g}; hint: data in another unit"
        )


def digest(domain: AbstractDomain) -> list[object]:
    """Return a description of a set for a ledger, in which sha256 values replace arrays."""
    header, arrays = describe(domain)
    return [
        header,
        {name: [a.shape, hashlib.sha256(a.tobytes()).hexdigest()] for name, a in arrays.items()},
    ]
