"""Codes, numbers and distinct values of columns of pandas or arrow, in memory.

A pandas column is first brought into one of three forms: doubles, text, or distinct values with an
index for each row. A column with a declared type is read through arrow.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..schema.dates import is_dated
from ..schema.schema import Attribute
from .dates import text_moments, ticks_between
from .frames import Arrow, Column
from .short import short_texts
from .steps import steps_of
from .types import NUMPY, category_type, cells_in, edges_in, is_wide, width_of
from .values import Form, Instant, bins_of_codes, codes_of, finder, key_of, number_of

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Scalar = TypeVar("Scalar", bound=np.generic)
Codes = NDArray[np.signedinteger]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]

_FEW_EDGES = 32  # comparing with each of so few edges is faster than a binary search
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
# matches text that may be a number, a truth value, a date, an interval or a null; other text equals
# only itself
_OTHER_THAN_TEXT = r"^[\s\v\p{Zs}]*[-+.0-9iInN]|^[tTfF(\[#<]"


def code_column(column: Column, attribute: Attribute, form: Form) -> Codes:
    """Return the code of each value: 1 + the index of its category or bin, 0 if there is none.

    For a clipped number, it is 1 + the number of steps from the lower bound. ``form`` says whether
    the column is text, typed or untyped.
    """
    if form is Form.TEXT:
        codes = _codes_of_text(arrow_of(column), attribute)
    elif form is Form.UNTYPED and not (is_dated(attribute.edges) and _has_moments(column)):
        codes = untyped(column.to_native()).codes(attribute)
    else:
        codes = _typed_codes(column, attribute)
    if (bins := bins_of_codes(attribute)) is not None:
        own = wide_codes(column, bins) if is_wide(column.dtype) else code_column(column, bins, form)
        codes = np.where(own % 2, 0, codes)
    return codes.astype(NUMPY[width_of(attribute)])


def _has_moments(column: Column) -> bool:
    """Return whether a pandas column has timestamps without a time zone."""
    import pandas as pd

    # such columns are read without Python objects, since some timestamps have none
    dtype = column.to_native().dtype
    if isinstance(dtype, pd.ArrowDtype):
        return _is_moment(dtype.pyarrow_dtype)
    return str(dtype).startswith("datetime64[")


def distinct(column: Column, form: Form) -> tuple[Integers, list[Any]]:
    """Return each row's index in a list of values (−1 for nulls), and this list.

    The list has Python objects. They are distinct, except in a polars column of objects.
    """
    if column.dtype == nw.Object and form is not Form.UNTYPED:  # a column of polars
        return np.arange(len(column)), column.to_list()
    if form is not Form.UNTYPED:
        index, known = encoded(arrow_of(column))
        return index, objects_of_arrow(known)
    own = untyped(column.to_native())
    if own.doubles is not None:
        import pyarrow as pa

        index, known = encoded(pa.array(own.doubles))
        return index, known.to_pylist()
    known = list(own.known) if own.text is None else objects_of(own.known)
    return own.of_rows(np.arange(len(known)), -1), known


# Columns whose type depends on their rows (pandas and dask).


@final
@dataclass(frozen=True, eq=False)
class Untyped:
    """A pandas or dask column, as doubles, text or distinct objects; the other two are None.

    Attributes:
        doubles: shape (rows,), NaN where there is no number.
        text: an arrow array, shape (rows,).
        values: distinct Python objects, and the index of each row's object, −1 for nulls.
    """

    doubles: Doubles | None = None
    text: "Arrow | None" = None
    values: tuple[Sequence[object], Integers] | None = None

    @cached_property
    def _distinct(self) -> tuple[Any, Integers]:
        """The distinct values, and the index of each row's value among them, −1 for nulls."""
        # the values are Python objects, or an arrow array if the column is text
        if self.values is not None:
            return self.values
        index, known = encoded(self.text)
        return known, index

    @property
    def known(self) -> Any:
        """The distinct values: Python objects, or an arrow array of text."""
        return self._distinct[0]

    def codes(self, attribute: Attribute) -> Codes:
        """Return each row's code: 1 + the index of its value's category or bin, or 0."""
        if self.doubles is not None:
            return _codes_of_doubles(self.doubles, attribute)
        if self.text is not None and is_dated(attribute.edges):
            return self.of_rows(_codes_of_dated_text(self.known, attribute), 0)
        find = finder(attribute, Form.UNTYPED)
        if self.text is None or attribute.categories is None:
            return self.of_rows(self.looked_up(find, 0, np.int64), 0)
        # a category that can only be text is compared by its characters
        known = codes_of(attribute)
        texts = {value: k for value, k in known.items() if key_of(value) == ("text", value)}
        codes = _index_in(self.text, texts)
        if len(texts) == len(known):
            return codes
        return np.maximum(codes, self.of_rows(self.looked_up(find, 0, np.int64), 0))

    def numbers(self) -> Doubles:
        """Return the values of all rows as doubles, NaN where there is no number."""
        if self.doubles is not None:
            return self.doubles

        def number(value: Any) -> float:
            found = number_of(value, Form.UNTYPED)
            return math.nan if found is None else found

        return self.of_rows(self.looked_up(number, math.nan, np.float64), math.nan)

    def looked_up(
        self, find: Callable[[Any], float], missing: float, dtype: type[Scalar]
    ) -> NDArray[Scalar]:
        """Return ``find(value)`` for each distinct value; call ``find`` only where it is needed.

        Text that can only be equal to itself (no number, date or truth value) has the result
        ``missing``.
        """
        if self.text is None:
            return np.fromiter(map(find, self.known), dtype=dtype, count=len(self.known))
        import pyarrow.compute as pc

        found = np.full(len(self.known), missing, dtype=dtype)
        more = pc.call_function(
            "match_substring_regex", [self.known], pc.MatchSubstringOptions(_OTHER_THAN_TEXT)
        )
        found[more.to_numpy(zero_copy_only=False)] = [
            find(value) for value in objects_of(self.known.filter(more))
        ]
        return found

    def of_rows(self, known: NDArray[Scalar], missing: float) -> NDArray[Scalar]:
        """Return one result per row, from ``known``, the results of the distinct values.

        A row with a null has the result ``missing``.
        """
        return np.append(known, np.array([missing], dtype=known.dtype))[self._distinct[1]]


def untyped(series: "pd.Series") -> Untyped:
    """Return a pandas column in the simplest form that holds it: doubles, text or objects."""
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        index = series.cat.codes.to_numpy(np.int64)
        return Untyped(values=(_objects_of_pandas(series.cat.categories), index))
    if isinstance(dtype, pd.ArrowDtype):
        return _untyped_arrow(arrow_of(nw.from_native(series, series_only=True)))
    kind, width = (dtype.kind, dtype.itemsize) if isinstance(dtype, np.dtype) else ("", 0)
    if hasattr(dtype, "numpy_dtype"):  # pandas' numbers and truth values with a mask of nulls
        truth, missing = dtype.kind == "b", series.isna().to_numpy()
        own = series.to_numpy(np.int64 if truth else np.float64, na_value=0)
        if truth:
            return Untyped(values=([False, True], np.where(missing, -1, own)))
        return Untyped(np.where(missing, np.nan, own))
    with np.errstate(all="ignore"):
        if kind in tuple("iuf") and width <= 8:
            return Untyped(series.to_numpy().astype(np.float64))
        if kind == "c":
            numbers = series.to_numpy()
            return Untyped(
                np.where(np.imag(numbers) == 0, np.real(numbers), np.nan).astype(np.float64)
            )
    if kind == "b":
        return Untyped(values=([False, True], series.to_numpy().astype(np.int64)))
    if kind == "M":
        moments, index = np.unique(series.to_numpy(), return_inverse=True)
        return Untyped(values=(list(moments), index.astype(np.int64)))
    if isinstance(dtype, pd.StringDtype) or (kind == "O" and _is_text(series)):
        import pyarrow as pa

        try:  # with a given type, arrow does not infer one from the values
            return Untyped(text=pa.array(series, type=pa.large_string(), from_pandas=True))
        except Exception:  # noqa: BLE001 (text that is not valid UTF-8)
            pass
    return Untyped(values=(_objects_of_pandas(series), np.arange(len(series))))


def _untyped_arrow(values: Arrow) -> Untyped:
    """Return an arrow array in the simplest form that holds it: doubles, text or objects."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Untyped(doubles_of(values))
    if pa.types.is_boolean(kind):
        index = values.cast(pa.int8()).fill_null(-1).to_numpy()
        return Untyped(values=([False, True], index.astype(np.int64)))
    if _is_string(values):
        return Untyped(text=values.cast(pa.large_string()))
    return Untyped(values=(objects_of_arrow(values), np.arange(len(values))))


def objects_of_arrow(values: Arrow) -> list[Any]:
    """Return the values of an arrow array as Python objects, and numpy's for dates and times."""
    import pyarrow as pa

    kind = values.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        ticks = values.cast(pa.int64()).to_pylist()
        scale = _NANOSECONDS[kind.unit]
        return [None if tick is None else Instant(tick * scale) for tick in ticks]
    if pa.types.is_time(kind):
        values = values.cast(pa.int64() if kind.bit_width == 64 else pa.int32())
        values = values.cast(pa.int64()).cast(pa.duration(kind.unit))
    if pa.types.is_temporal(values.type) and not pa.types.is_interval(values.type):
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        return [value for own in chunks for value in own.to_numpy(zero_copy_only=False)]
    return objects_of(values)


def _is_text(series: "pd.Series") -> bool:
    """Return whether a pandas column of objects holds only text and nulls."""
    import pandas as pd

    try:
        return pd.api.types.infer_dtype(series, skipna=True) == "string"
    except Exception:  # noqa: BLE001 (an object that raises when it is inspected)
        return False


def _objects_of_pandas(values: "pd.Series | pd.Index") -> list[Any]:
    """Return the values of a pandas series or index as objects."""
    import pandas as pd

    if isinstance(values.dtype, pd.ArrowDtype):
        return objects_of_arrow(arrow_of(nw.from_native(pd.Series(values), series_only=True)))
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        scale = _NANOSECONDS[values.dtype.unit]
        moments = pd.DatetimeIndex(values)
        pairs = zip(moments.asi8.tolist(), moments.isna().tolist(), strict=True)
        return [None if missing else Instant(moment * scale) for moment, missing in pairs]
    # dates and times become numpy's objects, since pandas' own cannot hold all of them
    numpy = isinstance(values.dtype, np.dtype) and values.dtype.kind in "mMf"
    return list(values.to_numpy()) if numpy else list(values)


def arrow_of(column: Column) -> Arrow:
    """Return the values of a column as arrow, without a dictionary or an extension type.

    Integers of 128 bits become text. A dictionary is decoded chunk by chunk: all chunks together
    may have more values than the index type can count, and a dictionary may hold nulls.
    """
    import pyarrow as pa

    native = column.to_native()
    polars = column.implementation == nw.Implementation.POLARS
    if polars and is_wide(column.dtype):  # arrow has no type for 128-bit integers
        column = column.cast(nw.String)
    values = native if isinstance(native, pa.ChunkedArray) else column.to_arrow()
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    if pa.types.is_dictionary(values.type):
        return pa.chunked_array(
            [chunk.dictionary.take(chunk.indices) for chunk in chunks], values.type.value_type
        )
    if isinstance(values.type, pa.BaseExtensionType):
        return pa.chunked_array([chunk.storage for chunk in chunks], values.type.storage_type)
    views = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}
    return values.cast(views[str(values.type)]) if str(values.type) in views else values


def objects_of(values: Arrow) -> list[Any]:
    """Return the values of an arrow array as Python objects.

    Bytes that are no UTF-8 become text with surrogates, which equals no category.
    """
    import pyarrow as pa

    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return values.to_pylist()
    found = values.cast(pa.large_binary()).to_pylist()
    return [None if one is None else one.decode(errors="surrogateescape") for one in found]


def encoded(values: Arrow) -> "tuple[Integers, pa.Array]":
    """Return each value's index among the distinct values (−1 for nulls), and these values."""
    import pyarrow as pa

    coded = values.dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        if not coded.num_chunks:
            return np.zeros(0, dtype=np.int64), pa.array([], coded.type.value_type)
        coded = coded.combine_chunks()
    index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return index.astype(np.int64), coded.dictionary


def wide_codes(column: Column, attribute: Attribute) -> Codes:
    """Return the codes of a column of 128-bit integers, which come from arrow as text.

    A code is 1 + the index of the integer's category or bin, or 0.
    """
    find = finder(attribute, Form.TYPED)
    codes = _codes_by_value(arrow_of(column), lambda text: find(int(text)))
    return codes.astype(NUMPY[width_of(attribute)])


def _codes_by_value(values: Arrow, find: Callable[[Any], int]) -> Codes:
    """Return ``find(value)`` for each value of an arrow array; equal values share one call."""
    if (short := short_texts(values, find)) is not None:
        return short
    index, known = encoded(values)
    return np.array([*map(find, objects_of(known)), 0], dtype=np.int64)[index]


def _codes_of_text(values: Arrow, attribute: Attribute) -> Codes:
    """Return the codes of text, which is read as the attribute's numbers, dates or categories."""
    if attribute.categories is not None and category_type(attribute) is str:
        import pyarrow as pa

        return _index_in(values.cast(pa.large_string()), cells_in(attribute, nw.String()))
    if is_dated(attribute.edges):
        return _codes_of_dated_text(values, attribute)
    return _codes_by_value(values, finder(attribute, Form.TEXT))


def _codes_of_doubles(numbers: Doubles, attribute: Attribute) -> Codes:
    """Return the codes of numbers (NaN means no number) by an attribute's categories or bins."""
    if attribute.is_summed:
        return steps_of(numbers, attribute)
    if is_dated(attribute.edges):
        return np.zeros(len(numbers), dtype=np.int32)
    if attribute.edges is not None:
        return _binned_doubles(numbers, attribute, nw.Float64())
    import pyarrow as pa

    keys = {key_of(value): k for value, k in codes_of(attribute).items()}
    cells = {float(key[1]): k for key, k in keys.items() if key and key[0] == "number"}  # pyright: ignore[reportArgumentType]
    return _index_in(pa.array(numbers + 0.0), cells)  # turns -0.0 into 0.0


def _binned(
    numbers: NDArray[Any], present: NDArray[np.bool_], begin: Sequence[float], last: float
) -> Codes:
    """Return 1 + the index of each number's bin; 0 outside, or where no number is ``present``."""
    # begin: the lower edges of bins; last: the largest number inside
    edges = np.array(begin, dtype=numbers.dtype)
    if len(edges) <= _FEW_EDGES:
        codes = np.zeros(len(numbers), dtype=np.int8)
        for edge in edges:
            codes += numbers >= edge
    else:
        codes = np.searchsorted(edges, numbers, side="right")
    return np.where(present & (numbers <= numbers.dtype.type(last)), codes, 0)


def _binned_doubles(numbers: Doubles, attribute: Attribute, dtype: nw.dtypes.DType) -> Codes:
    present = ~np.isnan(numbers) if attribute.has_infinite else np.isfinite(numbers)
    return _binned(numbers, present, *edges_in(attribute.edges or (), dtype))


def _index_in(values: Arrow, cells: Mapping[Any, int]) -> Codes:
    """Return ``cells[value]`` for each value of an arrow array; 0 for values not in ``cells``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if (short := short_texts(values, lambda text: cells.get(text, 0))) is not None:
        return short
    options = pc.SetLookupOptions(pa.array(list(cells), type=values.type))
    places = pc.call_function("index_in", [values], options)
    codes = np.array([*cells.values(), 0], dtype=np.int32)
    return codes[places.fill_null(len(cells)).to_numpy()]


def _codes_of_dated_text(values: Arrow, attribute: Attribute) -> Codes:
    """Return the codes of dates written as text, by an attribute whose edges are dates."""
    return _binned(*text_moments(values), *edges_in(attribute.edges or (), nw.Int64()))


def _codes_of_dates(values: Arrow, attribute: Attribute) -> Codes | None:
    """Return the codes of dates, timestamps or text in an arrow array; None for other types."""
    import pyarrow as pa

    kind = values.type
    if _is_string(values):
        return _codes_of_dated_text(values, attribute)
    if not _is_moment(kind):
        return None
    units = {pa.date32(): "day", pa.date64(): "ms"}
    ticks = values.cast(pa.int32()) if kind == pa.date32() else values
    numbers = ticks.cast(pa.int64()).fill_null(0).to_numpy()
    present = values.is_valid().to_numpy(zero_copy_only=False)
    unit = units[kind] if kind in units else kind.unit
    return _binned(numbers, present, *ticks_between(attribute.edges or (), unit))


# Columns with a declared type, by arrow's hash tables and numpy's binary search.


def _typed_codes(column: Column, attribute: Attribute) -> Codes:
    if column.dtype == nw.Object:  # a column of polars
        find = finder(attribute, Form.TYPED)
        return np.fromiter(map(find, column.to_list()), dtype=np.int64, count=len(column))
    values, dtype = arrow_of(column), plain_type(column, column.dtype)
    codes = _codes_of_arrow(values, nw.Decimal() if _is_decimal(values) else dtype, attribute)
    return np.zeros(len(column), dtype=np.int32) if codes is None else codes


def _codes_of_arrow(values: Arrow, dtype: nw.dtypes.DType, attribute: Attribute) -> Codes | None:
    """Return the codes of an arrow array; None if ``dtype`` cannot hold the attribute's values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if attribute.is_summed:
        return steps_of(doubles_of(values), attribute) if dtype.is_numeric() else None
    if is_dated(attribute.edges):
        return _codes_of_dates(values, attribute)
    if attribute.edges is not None and not dtype.is_numeric():
        return None
    if attribute.edges is not None and dtype.is_integer():
        present = values.is_valid().to_numpy(zero_copy_only=False)
        return _binned(values.fill_null(0).to_numpy(), present, *edges_in(attribute.edges, dtype))
    if attribute.edges is not None:
        return _binned_doubles(doubles_of(values), attribute, dtype)
    kind = category_type(attribute)
    if kind is str and (dtype == nw.String or _is_string(values)):
        values = values.cast(pa.large_string())
    elif kind is int and dtype == nw.Decimal:
        places = pc.ReplaceSubstringOptions(r"[.]0+$", "")
        values = pc.call_function("replace_substring_regex", [values.cast(pa.string())], places)
    elif kind is int and dtype.is_float():
        values = pa.array(doubles_of(values) + 0.0)  # turns -0.0 into 0.0
    elif not ((kind is bool and dtype == nw.Boolean) or (kind is int and dtype.is_integer())):
        return None
    return _index_in(values, cells_in(attribute, dtype))


def doubles_of(values: Arrow) -> Doubles:
    """Return arrow's numbers as the nearest doubles, with NaN for nulls.

    Decimals are converted through text, since arrow's own rounding depends on the column's number
    of digits.
    """
    import pyarrow as pa

    if _is_decimal(values):
        values = values.cast(pa.string())
    return values.cast(pa.float64(), safe=False).fill_null(math.nan).to_numpy()


def plain_type(column: Column, dtype: nw.dtypes.DType) -> nw.dtypes.DType:
    """Return the type of a column, or of its categories if these are not text."""
    if dtype not in (nw.Categorical, nw.Enum):
        return dtype
    if column.implementation.is_pandas_like() and hasattr(column.to_native(), "cat"):
        categories = column.to_native().cat.categories.to_series()
        own = nw.from_native(categories, series_only=True).dtype
        return dtype if own == nw.String else own
    import pyarrow as pa

    values = column.head(0).to_arrow()
    if not pa.types.is_dictionary(values.type) or _is_text_dictionary(values):
        return dtype
    return nw.from_native(pa.chunked_array([], values.type.value_type), series_only=True).dtype


def _is_moment(kind: "pa.DataType") -> bool:
    """Return whether an arrow type has dates, or timestamps without a time zone."""
    import pyarrow as pa

    return pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)


def _is_decimal(values: Arrow) -> bool:
    """Return whether an arrow array holds decimals; narwhals misses some widths of decimals."""
    import pyarrow as pa

    return pa.types.is_decimal(values.type)


def _is_string(values: Arrow) -> bool:
    import pyarrow as pa

    return pa.types.is_string(values.type) or pa.types.is_large_string(values.type)


def _is_text_dictionary(values: Arrow) -> bool:
    """Return whether an arrow array is text in dictionary encoding."""
    import pyarrow as pa

    kind = getattr(values.type, "value_type", None)
    return pa.types.is_dictionary(values.type) and (
        pa.types.is_string(kind) or pa.types.is_large_string(kind)
    )
