"""Clipped numbers as steps: the distance of a number from the lower end of its interval.

A record's number becomes ``1 + floor(t m + ½)``, with ``t = (x − low) / (high − low)`` after
clipping and m = :data:`STEPS`; 0 if there is no number. Every engine computes it in doubles by the
same operations. It is restricted to 1 to ``m + 1`` as an integer, so that sensitivity does not
depend on an engine's rounding.
"""

import math
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..schema.numbers import STEPS
from ..schema.schema import Attribute
from .frames import Lazy

if TYPE_CHECKING:
    import polars as pl


def _ends(attribute: Attribute) -> tuple[float, float, float]:
    """Return both ends of the interval, and its length."""
    low, high = attribute.clip or (0.0, 1.0)
    return low, high, high - low


def steps_of(numbers: NDArray[np.float64], attribute: Attribute) -> NDArray[np.int32]:
    """Return each number as an integer step within its interval; 0 for NaN."""
    low, high, width = _ends(attribute)
    present = ~np.isnan(numbers)
    t = (np.clip(np.where(present, numbers, low), low, high) - low) / width
    steps = np.clip(np.floor(t * float(STEPS) + 0.5).astype(np.int64), 0, STEPS)
    return np.where(present, steps + 1, 0).astype(np.int32)


def polars_steps(attribute: Attribute) -> "pl.Expr":
    """Return the steps as an expression of polars."""
    import polars as pl

    low, high, width = _ends(attribute)
    value = pl.col(attribute.name).cast(pl.Float64).fill_nan(None)
    t = (value.fill_null(low).clip(low, high) - low) / width
    steps = (t * float(STEPS) + 0.5).floor().cast(pl.Int32).clip(0, STEPS)
    return pl.when(value.is_not_null()).then(steps + 1).otherwise(0).cast(pl.Int32)


def with_finite(frame: Lazy, k: int) -> Lazy:
    """Return the frame with a column f{k}, which says whether r{k} is a finite number."""
    native = frame.to_native()
    if frame.implementation == nw.Implementation.IBIS and native.get_backend().name == "duckdb":
        import ibis

        @ibis.udf.scalar.builtin(signature=(("float64",), "boolean"))
        def isfinite(x): ...  # pyright: ignore[reportMissingParameterType, reportUnusedParameter]

        finite = isfinite(native[f"r{k}"].cast("float64"))
        return nw.from_native(native.mutate(**{f"f{k}": finite}))
    return frame.with_columns(nw.col(f"r{k}").cast(nw.Float64).is_finite().alias(f"f{k}"))


def not_nan(k: int) -> nw.Expr:
    """Return whether r{k} is a number, also an infinite one, given f{k}."""
    value = nw.col(f"r{k}").cast(nw.Float64)
    return nw.col(f"f{k}") | (value == nw.lit(math.inf)) | (value == nw.lit(-math.inf))


def narwhals_steps(k: int, attribute: Attribute) -> nw.Expr:
    """Return the steps of r{k}, given f{k}, as an expression of any lazy engine."""
    low, high, width = _ends(attribute)
    value = nw.col(f"r{k}").cast(nw.Float64)
    present = not_nan(k)
    inside = nw.when(value > low).then(value).otherwise(nw.lit(low))
    inside = nw.when(value < high).then(inside).otherwise(nw.lit(high))
    steps = (((inside - low) / width) * float(STEPS) + 0.5).floor().cast(nw.Int64)
    steps = nw.when(steps > 0).then(steps).otherwise(nw.lit(0))
    steps = nw.when(steps < STEPS).then(steps).otherwise(nw.lit(STEPS))
    return nw.when(present).then(steps + 1).otherwise(nw.lit(0)).fill_null(0)
