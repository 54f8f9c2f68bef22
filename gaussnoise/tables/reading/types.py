"""The column types that can hold an attribute's values, and the type of the values' codes."""

import math
import re
from collections.abc import Sequence
from typing import TypeAlias

import narwhals as nw
import numpy as np

from ...errors import DataError
from ..schema.dates import AS_EDGES, AS_NUMBERS, NO_ZONE, Edge, is_dated, place
from ..schema.numbers import STEPS
from ..schema.schema import Attribute, Category
from .frames import is_zoned, type_name
from .values import codes_of, moments_between

WORDS = (nw.String, nw.Categorical, nw.Enum)  # types of text
Width: TypeAlias = type[nw.Int8 | nw.Int16 | nw.Int32 | nw.Int64]
NUMPY: dict[Width, type[np.signedinteger]] = {
    nw.Int8: np.int8,
    nw.Int16: np.int16,
    nw.Int32: np.int32,
    nw.Int64: np.int64,
}

_CAST = {
    str: "strings",
    int: 'integers (pandas: astype("Int64")), or declare edges',
    bool: 'booleans (pandas: "boolean")',
}


def check_type(attribute: Attribute, dtype: nw.dtypes.DType, floats: bool) -> None:
    """Refuse a column type that cannot hold the attribute's values.

    With ``floats``, integer categories may be floats, since pandas turns integers with nulls into
    floats.
    """
    if is_dated(attribute.edges):
        _check_dates(attribute, dtype)
        return
    if is_number(attribute):
        if not dtype.is_numeric():
            given = "edges" if attribute.edges is not None else "ends to clip at"
            given = given if attribute.unit is None else "a unit"
            known = AS_EDGES if attribute.edges is not None else AS_NUMBERS
            hint = f"; hint: {known}" if dtype.is_temporal() else ""
            raise DataError(
                f"column {attribute.name!r}: expected numbers, as the schema gives {given}; got "
                f"{type_name(dtype)}{hint}"
            )
        return
    kind = category_type(attribute)
    fits = {
        str: dtype in WORDS,
        bool: dtype == nw.Boolean,
        # pandas stores integers with nulls as floats, and writes such files
        int: dtype.is_integer()
        or is_whole(dtype)
        or ((floats or attribute.other is not None) and dtype.is_float()),
    }
    if not fits[kind]:
        raise DataError(
            f"column {attribute.name!r}: expected {kind.__name__} categories, as in the schema; "
            "got "
            f"{type_name(dtype)}; hint: cast the column to {_CAST[kind]}"
        )


def _check_dates(attribute: Attribute, dtype: nw.dtypes.DType) -> None:
    """Refuse a column type that holds neither dates nor text; Python objects are accepted."""
    zoned = is_zoned(dtype)
    if zoned or not (dtype in (nw.Date, nw.Datetime, nw.Object) or dtype in WORDS):
        got = type_name(dtype) + (" with a time zone" if zoned else "")
        hint = f"; hint: convert it to {NO_ZONE}, before" if zoned else ""
        raise DataError(
            f"column {attribute.name!r}: expected dates, timestamps without time zone or ISO text, "
            f"as the schema gives dates as edges; got {got}{hint}"
        )


def is_number(attribute: Attribute) -> bool:
    """Return whether the attribute's values are read as numbers: for bins, sums or means."""
    return attribute.edges is not None or attribute.is_summed


def category_type(attribute: Attribute) -> type:
    """Return the Python type of the attribute's categories: str, int or bool."""
    return type((attribute.categories or ("",))[0])


def own_type(attribute: Attribute) -> nw.dtypes.DType:
    """Return a column type that can hold the attribute's values."""
    if is_dated(attribute.edges):
        return nw.Datetime("us")
    if is_number(attribute):
        return nw.Float64()
    return {str: nw.String(), bool: nw.Boolean(), int: nw.Int64()}[category_type(attribute)]


def width_of(attribute: Attribute) -> Width:
    """Return the integer type that stores the codes of the attribute's values."""
    if attribute.unit is not None:
        return nw.Int64
    codes = attribute.size if attribute.clip is None else STEPS
    return nw.Int8 if codes < 2**7 else nw.Int16 if codes < 2**15 else nw.Int32


def is_wide(dtype: nw.dtypes.DType) -> bool:
    """Return whether a column type has 128-bit integers, which arrow lacks."""
    return dtype in (nw.Int128, nw.UInt128)


def is_whole(dtype: nw.dtypes.DType) -> bool:
    """Return whether a type is a decimal with no decimal places: an integer of a database."""
    return dtype == nw.Decimal and getattr(dtype, "scale", None) == 0


def _range(dtype: nw.dtypes.DType) -> tuple[int, int]:
    """Return the least and the largest integer that an integer type holds."""
    bits = int(re.sub(r"\D", "", type_name(dtype)) or 64)
    return (
        (0, 2**bits - 1)
        if type_name(dtype).startswith("U")
        else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )


def cells_in(attribute: Attribute, dtype: nw.dtypes.DType) -> dict[Category | float, int]:
    """Return {value: code} for all values with a category that a column of this type can hold.

    A code is 1 + the index of the category. Keys are doubles for floats, and text for decimals;
    other spellings of categories are included.
    """
    codes = codes_of(attribute)
    if category_type(attribute) is not int:
        return {**codes}
    cells = {c: k for c, k in codes.items() if isinstance(c, int)}
    if dtype.is_float():
        return {float(c): k for c, k in cells.items() if abs(c) < 2**1000 and float(c) == c}
    if dtype == nw.Decimal:
        return {str(c): k for c, k in cells.items()}
    low, high = _range(dtype)
    return {c: k for c, k in cells.items() if low <= c <= high}


def edges_in(
    edges: Sequence[Edge], dtype: nw.dtypes.DType
) -> tuple[Sequence[int | float], int | float]:
    """Return the lower edges of bins, and the largest number inside.

    For integer columns they are integers, since a double cannot hold every integer.

    The code of a number is the number of lower edges <= it, or 0 above the last number.
    """
    if is_dated(edges):
        return moments_between(edges)
    *starts, end = map(place, edges)
    if not dtype.is_integer():
        return starts, end
    low, high = _range(dtype)
    begin = [math.ceil(e) if math.isfinite(e) else low for e in starts]
    last = math.floor(end) if math.isfinite(end) else high
    if last < low:
        return [], high
    return [max(b, low) for b in begin if b <= high], min(last, high)
