"""Sums of clipped numbers and of weights, in exact integers.

A clipped number is stored as steps a of m (:mod:`gaussnoise.tables.reading.steps`), where m may
later be a coarser unit. A record adds ``m − a`` to the first virtual cell and ``a`` to the last.
With squares, it adds ``m − 2a + q``, ``2(a − q)`` and ``q``, where q = ⌊a²/m⌋; none of these is
negative. With a weight of ``w <= m`` steps, it adds ``w − ⌊(w a)/m + ½⌋`` and ``⌊(w a)/m + ½⌋``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from domains import Clipped

from ..schema.numbers import STEPS, Weight
from ..schema.schema import Attribute

Integers = NDArray[np.int64]
WEIGHT, WITHOUT = "w", "z"  # the sum of weights, and the number of rows without a weight


def weight_column(weight: Weight) -> Attribute:
    """Return the attribute by which a column of weights is read."""
    return Attribute(weight.column, clip=(0.0, weight.most))


def sum_names(attributes: Sequence[Attribute], weight: Weight | None) -> list[str]:
    """Return the columns to sum: a of clipped numbers, q for those with squares, and weights."""
    names = [f"a{i}" for i, a in enumerate(attributes) if a.clip is not None]
    names += [f"q{i}" for i, a in enumerate(attributes) if has_squares(a)]
    return names + ([] if weight is None else [WEIGHT, WITHOUT])


def has_squares(attribute: Attribute) -> bool:
    """Return whether an attribute has the cells that sums of squares need."""
    return isinstance(attribute.base, Clipped) and attribute.base.squares


def summable(
    codes: Mapping[str, Any],
    attributes: Sequence[Attribute],
    weight: Weight | None,
    unit: int = STEPS,
) -> dict[str, Any]:
    """Return the columns of :func:`sum_names`, computed in integers from steps.

    Args:
        codes: ``c{i}`` of every clipped number, and last of the weights, as 64-bit integers:
            arrays or expressions.
        attributes: without the weights.
        weight: the weight of rows, or None.
        unit: how many steps there should be between the two ends.
    """
    columns: dict[str, Any] = {}
    numbers = [i for i, a in enumerate(attributes) if a.clip is not None]
    w = None if weight is None else _above(codes[f"c{len(attributes)}"], unit)
    for i in numbers:
        a = _above(codes[f"c{i}"], unit)
        columns[f"a{i}"] = a if w is None else (w * a + unit // 2) // unit
        if has_squares(attributes[i]):
            columns[f"q{i}"] = (a * a) // unit
    if w is not None:
        columns[WEIGHT] = w
        columns[WITHOUT] = _when(codes[f"c{len(attributes)}"] < 1, 1, 0)
    return columns


def _above(code: Any, unit: int) -> Any:
    """Return steps above the lower end, at most ``unit``; 0 if there is no number."""
    steps = _when(code > 0, code - 1, 0)
    return steps if unit == STEPS else (steps * unit + STEPS // 2) // STEPS


def _when(condition: Any, value: Any, otherwise: int) -> Any:
    if isinstance(condition, np.ndarray):
        return np.where(condition, value, otherwise)
    chosen = value if isinstance(value, nw.Expr) else nw.lit(value)
    return nw.when(condition).then(chosen).otherwise(nw.lit(otherwise))


def with_sums(
    frame: nw.LazyFrame[Any], attributes: Sequence[Attribute], weight: Weight | None, unit: int
) -> nw.LazyFrame[Any]:
    """Return the codes of records together with the columns to sum.

    The code of a clipped number is replaced by whether there is a number, to group by.
    """
    numbers = [i for i, a in enumerate(attributes) if a.clip is not None]
    read = [*numbers, *([] if weight is None else [len(attributes)])]
    codes = {f"c{i}": nw.col(f"c{i}").cast(nw.Int64) for i in read}
    sums = summable(codes, attributes, weight, unit)
    columns = [
        nw.when(nw.col(f"c{i}") > 0).then(nw.lit(1)).otherwise(nw.lit(0)).cast(nw.Int8).alias(
            f"c{i}"
        )
        if i in numbers
        else nw.col(f"c{i}")
        for i in range(len(attributes))
    ]  # fmt: skip
    return frame.select(*columns, *(x.cast(nw.Int64).alias(name) for name, x in sums.items()))


def array_sums(
    codes: Sequence[NDArray[Any]],
    attributes: Sequence[Attribute],
    weight: Weight | None,
    unit: int,
) -> tuple[list[NDArray[Any]], dict[str, Integers]]:
    """Return codes to group by and arrays to sum, as :func:`with_sums` does for frames."""
    named = {
        f"c{i}": code.astype(np.int64)
        for i, code in enumerate(codes)
        if i == len(attributes) or attributes[i].clip is not None
    }
    keys = [
        (code > 0).astype(np.int8) if a.clip is not None else code
        for a, code in zip(attributes, codes, strict=False)
    ]
    return keys, summable(named, attributes, weight, unit)


def spread_over(mass: Integers, a: Integers, q: Integers | None) -> list[Integers]:
    """Return what groups of records add to the virtual cells of a clipped number, in order."""
    if q is None:
        return [mass - a, a]
    return [mass - 2 * a + q, 2 * (a - q), q]
