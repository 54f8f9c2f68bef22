"""The person of each row, in any engine.

Two values are the same person if :func:`gaussnoise.tables.reading.values.person_of` says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, ParameterError
from .columns import arrow_of, encoded, objects_of, untyped
from .frames import Arrow, Column, native_frame, type_name
from .opened import Opened
from .types import is_wide
from .values import INEXACT, Form, Key, person_of

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

Integers = NDArray[np.int64]

PERSON = "person"  # name of the column of persons, beside the codes c0, c1, …


def check_table(table: object) -> None:
    """Refuse a table whose engine cannot order the rows of a person: see :func:`check_engine`.

    Objects that are no dataframe are accepted here, and refused later.
    """
    frame = native_frame(table)
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        check_engine(frame.implementation)


def check_engine(implementation: nw.Implementation) -> None:
    """Refuse engines that cannot order the rows of a person.

    Raises:
        ParameterError: the engine is not in this process, nor duckdb, Spark or dask.
    """
    able = (
        implementation.is_pandas_like()
        or implementation.is_spark_like()
        or implementation
        in (
            nw.Implementation.POLARS,
            nw.Implementation.PYARROW,
            nw.Implementation.DUCKDB,
            nw.Implementation.DASK,
        )
    )
    if not able:
        raise ParameterError(
            "person=: expected a table in pandas, polars, pyarrow, duckdb, Spark or dask, or a "
            f"file, got {implementation.value}; hint: write it to Parquet, and give the path"
        )


def check_person_type(column: str, dtype: nw.dtypes.DType) -> None:
    """Raise DataError if the column that names persons has several values in a row (lists)."""
    single = (nw.Boolean, nw.String, nw.Categorical, nw.Enum, nw.Binary, nw.Time, nw.Object)
    if not (dtype.is_numeric() or dtype.is_temporal() or dtype in single):
        raise DataError(
            f"column {column!r}: expected text, integers or other single values that say whose row "
            f"it is, got {type_name(dtype)}"
        )


def kind_of_persons(source: Opened, column: str) -> str:
    """Return a text for the kind of values that name persons, like "text" or "number".

    The text depends on the column's type alone. If two tables have the same text, in any engines,
    equal values in them mean the same person.
    """
    if source.untyped:
        return "values of pandas or dask"
    dtype, native = source.types[column], source.frame.to_native()
    if source.engine.is_spark_like() and dtype != nw.String:
        exact = dtype.is_integer() or dtype.is_float()
        return f"{'number' if exact else native.schema[column].dataType.simpleString()} of Spark"
    if dtype == nw.Categorical and source.engine == nw.Implementation.PYARROW:
        values = native.schema.field(column).type.value_type
        return "text" if "string" in str(values) else f"categories of type {values}"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "text"
    return "number" if dtype.is_numeric() and not is_wide(dtype) else str(dtype)


def no_person(column: str) -> DataError:
    """Return the error for a row that names no person, in the column with this name."""
    return DataError(
        f"column {column!r}: expected a person in every row, got a null, empty text, or in pandas "
        'a number from 2**53 on; hint: on_outside="drop" leaves such rows out; the path of a file, '
        "or a table of polars or pyarrow, keeps integers exact"
    )


# Tables in this process.


@final
@dataclass(frozen=True, eq=False)
class People:
    """The person of each row.

    Attributes:
        index: for each row, the index of the person in ``names``, −1 for no person.
        names: a function that returns bytes for the persons at given indices; they are distinct.
    """

    index: Integers
    names: Callable[[Integers], list[bytes]]


def people_of(column: Column, form: Form) -> People:
    """Return the person of each row, from a column of any type in this process."""
    if form is Form.UNTYPED:
        return _people_of_untyped(column.to_native())
    if column.dtype == nw.Object:
        return _people_by_value(column.to_list(), form)
    import pyarrow as pa

    values = arrow_of(column)
    if pa.types.is_floating(values.type):
        numbers = values.cast(pa.float64()).fill_null(np.nan).to_numpy() + 0.0  # -0.0 becomes 0.0
        values = pa.array(numbers, mask=np.isnan(numbers))
    elif pa.types.is_temporal(values.type):
        # as integers, since Python has no object for some times
        kind = pa.int64() if values.type.bit_width == 64 else pa.int32()
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        values = pa.chunked_array([chunk.view(kind) for chunk in chunks], kind)
    elif column.dtype == nw.String or pa.types.is_string(values.type):
        values = values.cast(pa.large_string())
    index, known = encoded(values)
    words, data = pa.types.is_large_string(known.type), pa.types.is_large_binary(known.type)
    if words or data or pa.types.is_binary(known.type):
        empty = pa.scalar("" if words else b"", known.type)
        index[index == known.index(empty).as_py()] = -1

    return People(index, lambda wanted: _names(known, wanted, form))


def _people_of_untyped(series: "pd.Series") -> People:
    """Return the person of each row, from a pandas column whose type depends on its rows."""
    column = untyped(series)
    if column.doubles is not None:
        import pyarrow as pa

        numbers = column.doubles + 0.0
        missing = np.isnan(numbers) | ((np.abs(numbers) >= INEXACT) & np.isfinite(numbers))
        index, known = encoded(pa.array(numbers, mask=missing))
        return People(index, lambda wanted: _names(known, wanted, Form.UNTYPED))
    if column.text is None:
        people = _people_by_value(column.known, Form.UNTYPED)
        return People(column.of_rows(people.index, -1), people.names)
    import pyarrow.compute as pc

    codes: dict[Key, int] = {}

    def code(text: str) -> int:
        person = person_of(text, Form.UNTYPED)
        return -1 if person is None else codes.setdefault(person, len(codes))

    alike = column.looked_up(code, -2, np.int64)  # −2: text that equals only itself
    alike[pc.call_function("binary_length", [column.known]).to_numpy() == 0] = -1
    distinct, firsts = np.unique(alike, return_index=True)
    places = np.where(distinct < 0, -1, firsts)[np.searchsorted(distinct, alike)]
    places = np.where(alike == -2, np.arange(len(alike)), places)
    return People(
        column.of_rows(places, -1), lambda wanted: _names(column.known, wanted, Form.UNTYPED)
    )


def _people_by_value(values: Sequence[object], form: Form) -> People:
    places: dict[Key, int] = {}
    index = np.fromiter(
        (
            -1
            if (person := person_of(value, form)) is None
            else places.setdefault(person, len(places))
            for value in values
        ),
        dtype=np.int64,
        count=len(values),
    )
    listed = list(places)
    return People(index, lambda wanted: [_name(listed[int(k)]) for k in wanted])


def _names(known: Arrow, wanted: Integers, form: Form) -> list[bytes]:
    """Return a name, as bytes, for each person at the indices ``wanted`` of an arrow array."""
    import pyarrow as pa

    return [_name(person_of(value, form)) for value in objects_of(known.take(pa.array(wanted)))]


def _name(person: Key | None) -> bytes:
    """Return the name of a person as bytes. Different persons have different names."""
    kind, value = person or ("", "")
    # hexadecimal, since Python refuses very long integers in decimal
    if isinstance(value, int | Fraction):
        value = f"{value.numerator:x}/{value.denominator:x}"
    return f"{kind} {value}".encode(errors="surrogatepass")


# Tables in another engine.


def spark_person(frame: "DataFrame", dtype: nw.dtypes.DType) -> "DataFrame":
    """Return the frame with the names of persons as bytes, in place of the column of persons.

    In text, a collation might make two different names equal.
    """
    from pyspark.sql import functions

    person = functions.col(PERSON)
    if dtype.is_float():
        person = functions.nanvl(person.cast("double") + functions.lit(0.0), functions.lit(None))
        whole = (person == functions.rint(person)) & (functions.abs(person) < INEXACT)
        integer = person.cast("long").cast("string")
        person = functions.when(whole, integer).otherwise(person.cast("string"))
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        # at the end of summer time, one hour occurs twice with the same text
        person = functions.unix_micros(person)
    if dtype != nw.Binary:
        # text keeps its bytes, even if they are not UTF-8
        person = person.cast("string").cast("binary")
    return frame.withColumn(PERSON, functions.when(functions.octet_length(person) > 0, person))


def dask_person(column: Column, form: Form) -> list[str | None]:
    """Return, for each row of a partition, the person's name in hexadecimal digits, or None."""
    people = people_of(column, form)
    known = np.unique(people.index[people.index >= 0])
    named = dict(zip(known.tolist(), people.names(known), strict=True))
    return [named[k].hex() if k >= 0 else None for k in people.index.tolist()]
