"""Clipped numbers as integers: how many steps a number lies above the lower end of its interval.

A record's number becomes ``1 + floor(t m + ½)``, ``t = (x − low) / (high − low)`` after clipping,
in :data:`STEPS` m, or later in a coarser unit m; 0 where there is none. Every engine computes it in
doubles by the same operations, and holds it between 1 and ``m + 1`` as an integer, so that privacy
rests on no rounding of any engine. From there on all is integers: a record adds ``m − a`` to the
first virtual cell and ``a`` to the last; with squares, ``m − 2a + q``, ``2(a − q)`` and ``q``, q =
⌊a²/m⌋, none of which is negative; with a weight of ``w <= m`` steps, ``w − ⌊(w a)/m + ½⌋`` and
``⌊(w a)/m + ½⌋``.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from domains import Clipped

from ..reading.csv import text_number
from ..reading.frames import sql
from ..schema.numbers import STEPS, Weight
from ..schema.schema import Attribute

Integers = NDArray[np.int64]
WEIGHT, WITHOUT = "w", "z"  # what rows weigh, and how many have no weight


def weight_column(weight: Weight) -> Attribute:
    """What is read of a column of weights."""
    return Attribute(weight.column, clip=(0.0, weight.most))


def _ends(attribute: Attribute) -> tuple[float, float, float]:
    """Both ends of the interval, and its length."""
    low, high = attribute.clip or (0.0, 1.0)
    return low, high, high - low


def steps_of(numbers: NDArray[np.float64], attribute: Attribute) -> NDArray[np.int32]:
    """Of an array; NaN has none."""
    low, high, width = _ends(attribute)
    present = ~np.isnan(numbers)
    t = (np.clip(np.where(present, numbers, low), low, high) - low) / width
    steps = np.clip(np.floor(t * float(STEPS) + 0.5).astype(np.int64), 0, STEPS)
    return np.where(present, steps + 1, 0).astype(np.int32)


def step_of(value: Any, attribute: Attribute) -> int:
    """Of one Python number of any kind."""
    low, high, width = _ends(attribute)
    if not value == value:
        return 0
    t = (float(min(max(value, low), high)) - low) / width
    return 1 + min(max(math.floor(t * float(STEPS) + 0.5), 0), STEPS)


def polars_steps(attribute: Attribute) -> Any:
    """As an expression of polars."""
    import polars as pl

    low, high, width = _ends(attribute)
    value = pl.col(attribute.name).cast(pl.Float64).fill_nan(None)
    t = (value.fill_null(low).clip(low, high) - low) / width
    steps = (t * float(STEPS) + 0.5).floor().cast(pl.Int32).clip(0, STEPS)
    return pl.when(value.is_not_null()).then(steps + 1).otherwise(0).cast(pl.Int32)


def duckdb_number(attribute: Attribute, text: bool) -> str:
    """SQL of the column as a double; NULL where it is none."""
    column = sql(attribute.name)
    return text_number(column) if text else f"TRY_CAST({column} AS DOUBLE)"


def duckdb_steps(value: str, attribute: Attribute) -> str:
    """SQL of the steps of a double."""
    low, high, width = (f"CAST('{x!r}' AS DOUBLE)" for x in _ends(attribute))
    t = f"(least(greatest({value}, {low}), {high}) - {low}) / {width}"
    steps = f"TRY_CAST(floor({t} * CAST('{STEPS}' AS DOUBLE) + CAST('0.5' AS DOUBLE)) AS INTEGER)"
    inside = f"1 + least(greatest({steps}, 0), {STEPS})"
    return f"CASE WHEN {is_number(value)} THEN {inside} ELSE 0 END"


def is_number(value: str) -> str:
    """SQL of whether a double is neither NULL nor NaN, whatever other rows are.

    Not by duckdb's isnan: of Parquet, it believes what is said about all rows that are not NaN.
    """
    return f"(isfinite({value}) OR isinf({value}))"


def with_finite(frame: nw.LazyFrame[Any], k: int) -> nw.LazyFrame[Any]:
    """The frame with f{k}: whether r{k} is a finite number, whatever other rows are."""
    native = frame.to_native()
    if frame.implementation == nw.Implementation.IBIS and native.get_backend().name == "duckdb":
        import ibis

        @ibis.udf.scalar.builtin(signature=(("float64",), "boolean"))
        def isfinite(x): ...  # pyright: ignore[reportMissingParameterType, reportUnusedParameter]

        finite = isfinite(native[f"r{k}"].cast("float64"))
        return nw.from_native(native.mutate(**{f"f{k}": finite}))
    return frame.with_columns(nw.col(f"r{k}").cast(nw.Float64).is_finite().alias(f"f{k}"))


def narwhals_steps(k: int, attribute: Attribute) -> nw.Expr:
    """Of r{k} beside f{k}, as an expression of any lazy engine."""
    low, high, width = _ends(attribute)
    value = nw.col(f"r{k}").cast(nw.Float64)
    present = nw.col(f"f{k}") | (value == nw.lit(math.inf)) | (value == nw.lit(-math.inf))
    inside = nw.when(value > low).then(value).otherwise(nw.lit(low))
    inside = nw.when(value < high).then(inside).otherwise(nw.lit(high))
    steps = (((inside - low) / width) * float(STEPS) + 0.5).floor().cast(nw.Int64)
    steps = nw.when(steps > 0).then(steps).otherwise(nw.lit(0))
    steps = nw.when(steps < STEPS).then(steps).otherwise(nw.lit(STEPS))
    return nw.when(present).then(steps + 1).otherwise(nw.lit(0)).fill_null(0)


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
