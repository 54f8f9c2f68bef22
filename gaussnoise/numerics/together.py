"""The values of a function at many points, in one call if it uses only common arithmetic."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from domains.floats import Array

_CLOSE = 1e-9  # relative tolerance: sums may be computed in another order


def _entrywise(operation: Callable[[Any, Any], Any], *, swapped: bool = False) -> Callable:
    """Return a method that applies ``operation`` to a variable and a variable or number."""

    def of(self: "_Values", other: object) -> Any:
        if not isinstance(other, _Values | int | float | np.integer | np.floating):
            return NotImplemented
        # swapped: as for 2 − x
        both = self.own, other.own if isinstance(other, _Values) else other
        return _Values(operation(*(both[::-1] if swapped else both)))

    return of


def _of_one(operation: Callable[[Any], Any]) -> Callable[["_Values"], "_Values"]:
    return lambda self: _Values(operation(self.own))


class _Values:
    """The values of one variable at all points, with methods that numpy calls for object arrays."""

    __slots__ = ("own",)

    def __init__(self, own: Array) -> None:
        self.own = own

    __add__ = __radd__ = _entrywise(operator.add)
    __mul__ = __rmul__ = _entrywise(operator.mul)
    __sub__, __rsub__ = _entrywise(operator.sub), _entrywise(operator.sub, swapped=True)
    __truediv__ = _entrywise(operator.truediv)
    __rtruediv__ = _entrywise(operator.truediv, swapped=True)
    __pow__, __rpow__ = _entrywise(operator.pow), _entrywise(operator.pow, swapped=True)
    __neg__, __abs__ = _of_one(operator.neg), _of_one(np.abs)
    exp, log, sqrt = _of_one(np.exp), _of_one(np.log), _of_one(np.sqrt)


def at_all(f: Callable[[Array], Any], places: Array, number: Callable[[Any], float]) -> Array:
    """Return the values of f at all columns of ``places``.

    A function that uses only arithmetic, powers, exponentials, logarithms and roots is called once
    for all columns. All other functions, such as those with an ``if``, are called once for each
    column. The same holds for a function of which one call returns a wrong value for the first or
    the last column.

    Args:
        f: maps an array of shape (k,) to one number.
        places: shape (k, m).
        number: converts the value of f to a float.
    """
    variables = np.array([_Values(own) for own in places], dtype=object)
    try:
        found = f(variables)
        found = found.item() if isinstance(found, np.ndarray) else found
        values = np.asarray(found.own, dtype=np.float64)
    # f may do anything with its argument: if it fails, it is called with numbers instead
    except Exception:  # noqa: BLE001
        values = np.empty(())
    if values.shape == places.shape[1:]:
        ends = [number(f(places[:, k].copy())) for k in (0, -1)]
        if np.allclose(values[[0, -1]], ends, rtol=_CLOSE, atol=0, equal_nan=True):
            return values
    return np.array([number(f(place.copy())) for place in places.T])
