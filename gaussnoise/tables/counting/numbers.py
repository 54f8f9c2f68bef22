"""Sums of clipped numbers and of weights, in exact integers.

A record's steps a of m, of a clipped number (:mod:`gaussnoise.tables.reading.steps`), or later of a
coarser unit m, add ``m − a`` to the first virtual cell and ``a`` to the last; with squares,
``m − 2a + q``, ``2(a − q)`` and ``q``, q = ⌊a²/m⌋, none of which is negative; with a weight of
``w <= m`` steps, ``w − ⌊(w a)/m + ½⌋`` and ``⌊(w a)/m + ½⌋``.
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
WEIGHT, WITHOUT = "w", "z"  # what rows weigh, and how many have no weight


def weight_column(weight: Weight) -> Attribute:
    """What is read of a column of weights."""
    return Attribute(weight.column, clip=(0.0, weight.most))


def sum_names(attributes: Sequence[Attribute], weight: Weight | None) -> list[str]:
    """Columns that are summed: a of every clipped number, q where squares are, weights."""
    names = [f"a{i}" for i, a in enumerate(attributes) if a.clip is not None]
    names += [f"q{i}" for i, a in enumerate(attributes) if has_squares(a)]
    return names + ([] if weight is None else [WEIGHT, WITHOUT])


def has_squares(attribute: Attribute) -> bool:
    """Whether an attribute has the cells that sums of squares take."""
    return isinstance(attribute.base, Clipped) and attribute.base.squares


def summable(
    codes: Mapping[str, Any],
    attributes: Sequence[Attribute],
    weight: Weight | None,
    unit: int = STEPS,
) -> dict[str, Any]:
    """The columns of :func:`sum_names` from steps, arrays or expressions: all in integers.

    Args:
        codes: of every clipped number ``c{i}``, and of weights the last, as 64-bit integers.
        attributes: without the weights.
        weight: of rows.
        unit: how many steps there are to be from end to end.
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
    """Steps above the lower end, at most so many; 0 where there is no number."""
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
    """Codes of records with what is summed of them.

    Of a clipped number, only whether there is one remains to group by.
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
    """The same of arrays: what is grouped by, and what is summed."""
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
    """What groups of records add to the virtual cells of a clipped number, in their order."""
    if q is None:
        return [mass - a, a]
    return [mass - 2 * a + q, 2 * (a - q), q]
