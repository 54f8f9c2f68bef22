"""What estimators are told of a distribution: numbers that are public, checked."""

import hashlib
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from domains import AbstractDomain
from domains.description import describe

from ..errors import ParameterError

Array = NDArray[np.float64]


def number(function: str, name: str, value: object) -> float:
    """A plain finite float."""
    try:
        if not isinstance(value, str | bytes | bool):
            real = float(value)  # pyright: ignore[reportArgumentType]
            if math.isfinite(real):
                return real
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(f"{function}: expected a finite number {name}, got {value!r}")


def positive(function: str, name: str, value: object) -> float:
    """A finite float above zero."""
    real = number(function, name, value)
    if not real > 0:
        raise ParameterError(f"{function}: expected {name} > 0, got {real!r}")
    return real


def chance(function: str, beta: object) -> float:
    """A probability of failure in (0, 1/2)."""
    real = number(function, "beta", beta)
    if not 0 < real < 0.5:
        raise ParameterError(f"{function}: expected 0 < beta < 0.5, got {real!r}; hint: 0.01")
    return real


def moment_order(function: str, k: object, *, infinite: bool = False) -> float:
    """The order of a moment, at least 2; infinity, where allowed, for bounded distributions."""
    if infinite and isinstance(k, float) and k == math.inf:
        return math.inf
    real = number(function, "k", k)
    if not real >= 2:
        raise ParameterError(f"{function}: expected a moment of order k >= 2, got {real!r}")
    return real


def vector(function: str, name: str, value: ArrayLike, dim: int) -> Array:
    """Finite numbers of shape (dim,); one number stands for all."""
    try:
        array = np.asarray(value, dtype=np.float64)
        if array.shape in ((), (dim,)) and np.isfinite(array).all():
            return np.broadcast_to(array, (dim,)).copy()
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(f"{function}: expected {name} to be a finite number, or {dim} of them")


def digest(domain: AbstractDomain) -> list[object]:
    """A set as a ledger compares it."""
    header, arrays = describe(domain)
    return [
        header,
        {name: [a.shape, hashlib.sha256(a.tobytes()).hexdigest()] for name, a in arrays.items()},
    ]
