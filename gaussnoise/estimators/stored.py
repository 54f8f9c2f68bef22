"""Checks of values in stored answers: each returns the value as the type that was written.

For other values they raise ValueError, which readers of files convert into their own errors.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BUDGET = ("rho", "epsilon", "delta", "mu", "alpha")


def fields(value: object, *names: str) -> dict[str, Any]:
    """Return ``value``, or raise ValueError unless it is a JSON object with exactly these names."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise ValueError("another object")
    return value


def text(value: object) -> str:
    """Return ``value`` if it is a string; raise ValueError otherwise."""
    if not isinstance(value, str):
        raise ValueError("no text")
    return value


def real(value: object, low: float = -math.inf, high: float = math.inf) -> float:
    """Return ``value`` as a float, or raise ValueError unless it is in [``low``, ``high``].

    NaN is allowed only without bounds.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("no number")
    number = float(value)
    if not low <= number <= high and not (
        math.isnan(number) and (low, high) == (-math.inf, math.inf)
    ):
        raise ValueError("a number out of range")
    return number


def reals(value: object, low: float = -math.inf) -> NDArray[np.float64]:
    """Return a nonempty list of numbers >= ``low`` as an array; otherwise raise ValueError."""
    array = np.array(value)
    if array.dtype.kind not in "iuf" or not array.size or (array < low).any():
        raise ValueError("no numbers")
    if low > -math.inf and np.isnan(array).any():
        raise ValueError("no bound")
    return array.astype(np.float64)


def texts(value: object) -> dict[str, str]:
    """Return ``value``, or raise ValueError unless it is a JSON object with string values."""
    return {name: text(inner) for name, inner in as_object(value).items()}


def as_object(value: object) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object, with any names; raise ValueError otherwise."""
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def guarantee_record(value: object) -> dict[str, object]:
    """Return ``value``, or raise ValueError unless it is the record of a privacy guarantee."""
    record = as_object(value)
    for name in ("definition", "neighbors", "unit"):
        text(record[name])
    for name in (name for name in _BUDGET if name in record):
        real(record[name], 0.0, math.inf)
    if not any(name in record for name in _BUDGET):
        raise ValueError("no budget")
    return record
