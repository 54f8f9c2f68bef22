"""Clipped numbers as steps: the distance of a number from the lower bound of its interval.

Let ``t = (x − low) / (high − low)`` for a record's number x after clipping, and m = :data:`STEPS`.
The number becomes ``1 + floor(t m + ½)``, or 0 if there is no number. Every engine computes this in
doubles by the same operations. The integer is restricted to 1 to ``m + 1``, so that sensitivity
does not depend on an engine's rounding.

A number x with a unit becomes ``1 + floor(x / unit + ½)`` if this is positive and x is below
:data:`MOST_UNITS` units, otherwise 0. No such number is clipped. The budget of a record is a
function of this integer.
"""

import math

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..schema.numbers import MOST_UNITS, STEPS
from ..schema.schema import Attribute
from .frames import Lazy


def _interval_of(attribute: Attribute) -> tuple[float, float, float]:
    """Return the lower bound, the upper bound and the length of the attribute's interval."""
    low, high = attribute.clip or (0.0, 1.0)
    return low, high, high - low


def steps_of(
    numbers: NDArray[np.float64], attribute: Attribute
) -> NDArray[np.int32] | NDArray[np.int64]:
    """Return an integer for each number: 1 + its distance from the lower bound, in steps.

    The number is clipped first, and the interval has :data:`STEPS` equal steps. For an attribute
    with a unit, return 1 + the number in units. The integer is 0 for NaN.
    """
    if attribute.unit is not None:
        return multiples_of(numbers, attribute.unit)
    low, high, width = _interval_of(attribute)
    present = ~np.isnan(numbers)
    t = (np.clip(np.where(present, numbers, low), low, high) - low) / width
    steps = np.clip(np.floor(t * float(STEPS) + 0.5).astype(np.int64), 0, STEPS)
    return np.where(present, steps + 1, 0).astype(np.int32)


def multiples_of(numbers: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
    """Return 1 + each number in units, rounded to an integer; 0 for numbers that do not fit.

    These are NaN, negative numbers, and numbers of :data:`MOST_UNITS` units or more.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = numbers / unit
    present = (numbers >= 0) & (ratio < MOST_UNITS)
    return np.where(present, np.floor(np.where(present, ratio, 0.0) + 0.5).astype(np.int64) + 1, 0)


def with_finite(frame: Lazy, k: int) -> Lazy:
    """Return the frame with an added column f{k}, which says whether column r{k} is finite."""
    native = frame.to_native()
    if frame.implementation == nw.Implementation.IBIS and native.get_backend().name == "duckdb":
        import ibis

        @ibis.udf.scalar.builtin(signature=(("float64",), "boolean"))
        def isfinite(x): ...  # pyright: ignore[reportMissingParameterType, reportUnusedParameter]

        finite = isfinite(native[f"r{k}"].cast("float64"))
        return nw.from_native(native.mutate(**{f"f{k}": finite}))
    return frame.with_columns(nw.col(f"r{k}").cast(nw.Float64).is_finite().alias(f"f{k}"))


def not_nan(k: int) -> nw.Expr:
    """Return an expression for whether column r{k} has a number, which may be infinite.

    The frame must have the column f{k} of :func:`with_finite`.
    """
    value = nw.col(f"r{k}").cast(nw.Float64)
    return nw.col(f"f{k}") | (value == nw.lit(math.inf)) | (value == nw.lit(-math.inf))


def narwhals_steps(k: int, attribute: Attribute) -> nw.Expr:
    """Return :func:`steps_of` the numbers in column r{k}, as an expression for any lazy engine.

    The frame must have the column f{k} of :func:`with_finite`.
    """
    value = nw.col(f"r{k}").cast(nw.Float64)
    if attribute.unit is not None:
        ratio = value / attribute.unit
        present = nw.col(f"f{k}") & (value >= 0) & (ratio < MOST_UNITS)
        inside = nw.when(present).then(ratio).otherwise(nw.lit(0.0))
        units = (inside + 0.5).floor().cast(nw.Int64) + 1
        return nw.when(present).then(units).otherwise(nw.lit(0)).fill_null(0)
    low, high, width = _interval_of(attribute)
    present = not_nan(k)
    inside = nw.when(value > low).then(value).otherwise(nw.lit(low))
    inside = nw.when(value < high).then(inside).otherwise(nw.lit(high))
    steps = (((inside - low) / width) * float(STEPS) + 0.5).floor().cast(nw.Int64)
    steps = nw.when(steps > 0).then(steps).otherwise(nw.lit(0))
    steps = nw.when(steps < STEPS).then(steps).otherwise(nw.lit(STEPS))
    return nw.when(present).then(steps + 1).otherwise(nw.lit(0)).fill_null(0)
