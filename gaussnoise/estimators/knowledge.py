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
            found = float(value)  # pyright: ignore[reportArgumentType]
            if math.isfinite(found):
                return found
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(f"{function}: expected a finite number {name}, got {value!r}")


def positive(function: str, name: str, value: object) -> float:
    """A finite float above zero."""
    found = number(function, name, value)
    if not found > 0:
        raise ParameterError(f"{function}: expected {name} > 0, got {found!r}")
    return found


def chance(function: str, beta: object) -> float:
    """A probability of failure in (0, 1/2)."""
    found = number(function, "beta", beta)
    if not 0 < found < 0.5:
        raise ParameterError(f"{function}: expected 0 < beta < 0.5, got {found!r}; hint: 0.01")
    return found


def moment_order(function: str, k: object, *, infinite: bool = False) -> float:
    """The order of a moment, at least 2; infinity, where allowed, for bounded distributions."""
    if infinite and isinstance(k, float) and k == math.inf:
        return math.inf
    found = number(function, "k", k)
    if not found >= 2:
        raise ParameterError(f"{function}: expected a moment of order k >= 2, got {found!r}")
    return found


def vector(function: str, name: str, value: ArrayLike, dim: int) -> Array:
    """Finite numbers of shape (dim,); one number stands for all."""
    try:
        found = np.asarray(value, dtype=np.float64)
        if found.shape in ((), (dim,)) and np.isfinite(found).all():
            return np.broadcast_to(found, (dim,)).copy()
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
