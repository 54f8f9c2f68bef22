"""Sums of clipped numbers and of weights, in exact integers.

A clipped number is stored as a of m steps (:mod:`gaussnoise.tables.reading.steps`), where m may
later be a coarser unit. A record adds ``m − a`` to the first virtual cell and ``a`` to the last.
With squares, it adds ``m − 2a + q``, ``2(a − q)`` and ``q``, where q = ⌊a²/m⌋. None of these is
negative: q <= a, and q >= 2a − m, which is an integer and at most a²/m. With a weight of
``w <= m`` steps, it adds ``w − ⌊(w a)/m + ½⌋`` and ``⌊(w a)/m + ½⌋``.

A number with a unit is an integer v >= 0 of any size below 2⁵². A record adds ``m − v`` to the
first virtual cell and v to the last, so that the first may be negative. Low and high binary digits
of v are summed apart: neither sum leaves 64 bits before there are 2³⁶ rows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from domains.tables.clipped import Clipped

from ..reading.frames import Lazy
from ..schema.numbers import STEPS, Weight
from ..schema.schema import Attribute
from .impossible import Vector

Integers = NDArray[np.int64]
LOW = 2**26  # numbers with a unit have 26 low binary digits, and 26 above them
WEIGHT, WITHOUT = "w", "z"  # the sum of weights, and the number of rows without a weight


def weight_column(weight: Weight) -> Attribute:
    """Return the attribute by which a column of weights is read."""
    return Attribute(weight.column, clip=(0.0, weight.most))


def sum_names(attributes: Sequence[Attribute], weight: Weight | None) -> list[str]:
    """Return the columns to sum: a of summed numbers, q and h for some of them, and weights."""
    names = [f"a{i}" for i, a in enumerate(attributes) if a.is_summed]
    names += [f"q{i}" for i, a in enumerate(attributes) if has_squares(a)]
    names += [f"h{i}" for i, a in enumerate(attributes) if a.unit is not None]
    return names + ([] if weight is None else [WEIGHT, WITHOUT])


def has_squares(attribute: Attribute) -> bool:
    """Return whether an attribute has the cells that sums of squares need."""
    return isinstance(attribute.base, Clipped) and attribute.base.squares


def keys_and_sums(
    code: Callable[[int], Vector],
    attributes: Sequence[Attribute],
    weight: Weight | None,
    unit: int = STEPS,
) -> tuple[list[Vector], dict[str, Vector]]:
    """Return the codes to group by, and the columns of :func:`sum_names`, in integers.

    For a clipped number, the code to group by says whether there is a number.

    Args:
        code: a function from a position to its codes; the weights come after all attributes.
        attributes: without the weights.
        weight: the weight of rows, or None.
        unit: the number of steps between the two ends.
    """
    keys = [code(i) for i in range(len(attributes))]
    sums: dict[str, Any] = {}
    weights = None if weight is None else _integers(code(len(attributes)), 64)
    w = None if weights is None else _above(weights, unit)
    for i, attribute in enumerate(attributes):
        if not attribute.is_summed:
            continue
        keys[i] = _integers(_when(code(i) > 0, 1, 0), 8)
        if attribute.unit is not None:
            v = _integers(_when(code(i) > 0, code(i) - 1, 0), 64)
            sums |= {f"a{i}": v % LOW, f"h{i}": v // LOW}
            continue
        a = _above(_integers(code(i), 64), unit)
        sums[f"a{i}"] = a if w is None else (w * a + unit // 2) // unit
        if has_squares(attribute):
            sums[f"q{i}"] = (a * a) // unit
    if weights is not None:
        sums |= {WEIGHT: w, WITHOUT: _when(weights < 1, 1, 0)}
    return keys, sums


def _above(code: Any, unit: int) -> Any:
    """Return steps from the lower end, at most ``unit``; 0 if there is no number."""
    steps = _when(code > 0, code - 1, 0)
    return steps if unit == STEPS else (steps * unit + STEPS // 2) // STEPS


def _integers(own: Any, bits: int) -> Any:
    if isinstance(own, np.ndarray):
        return own.astype(f"int{bits}")
    return own.cast({8: nw.Int8, 64: nw.Int64}[bits])


def _when(condition: Any, value: Any, otherwise: int) -> Any:
    if isinstance(condition, np.ndarray):
        return np.where(condition, value, otherwise)
    chosen = value if isinstance(value, nw.Expr) else nw.lit(value)
    return nw.when(condition).then(chosen).otherwise(nw.lit(otherwise))


def with_sums(
    frame: Lazy, attributes: Sequence[Attribute], weight: Weight | None, unit: int
) -> Lazy:
    """Return the codes of records to group by, together with the columns to sum."""
    keys, sums = keys_and_sums(lambda i: nw.col(f"c{i}"), attributes, weight, unit)
    columns = {f"c{i}": key for i, key in enumerate(keys)}
    columns |= {name: _integers(x, 64) for name, x in sums.items()}
    return frame.select(*(column.alias(name) for name, column in columns.items()))


def spread_over(mass: Integers, a: Integers, q: Integers | None) -> list[Integers]:
    """Return the sums that groups of records add to a clipped number's virtual cells, in order."""
    if q is None:
        return [mass - a, a]
    return [mass - 2 * a + q, 2 * (a - q), q]
