"""The cell of every record, found where the records live.

By one look-up a value, however many cells there are.
"""

import bisect
import decimal
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..reading.csv import text_number, with_integers
from ..reading.files import is_csv
from ..reading.frames import guarded, open_table, sql, text_columns, type_name
from ..schema.dates import AS_EDGES, AS_NUMBERS, Edge, is_dated, place
from ..schema.numbers import STEPS
from ..schema.schema import Attribute, OnOutside
from .dates import bounds_of, check_dates, date_finder, numbers_of, with_numbers
from .impossible import Codes, Excluded, check_possible, possible, without
from .numbers import (
    duckdb_number,
    duckdb_steps,
    narwhals_steps,
    polars_steps,
    step_of,
    steps_of,
    with_finite,
)
from .persons import (
    PERSON,
    People,
    PersonLimit,
    check_engine,
    check_person_type,
    dask_person,
    duckdb_person,
    limited_arrays,
    limited_dask,
    limited_duckdb,
    limited_spark,
    no_person,
    people_of,
    spark_person,
)

# an expression, up to here, needs no table in somebody's database
_MOST_COMPARISONS = 100
# up to here comparisons are quicker than a join in duckdb, whose plans of very many joins take long
_FEW = 16


def outside_error(attribute: Attribute) -> DataError:
    """Some record has no cell: a null, NaN, unknown, or outside the edges."""
    if attribute.clip is not None:
        return DataError(
            f"column {attribute.name!r}: expected only numbers, got a null, NaN or another value; "
            'hint: correct the table, or give the attribute a catch-all: other = "…"'
        )
    rule = "finite numbers inside its declared edges"
    if attribute.edges is None:
        rule = "its declared categories"
    elif is_dated(attribute.edges):
        rule = "dates inside its declared edges, without time zone"
    return DataError(
        f"column {attribute.name!r}: expected only {rule}, got a null or another value; "
        'hint: correct the schema, or give the attribute a catch-all: other = "…"'
    )


def code_table(
    table: object,
    attributes: Sequence[Attribute],
    on_outside: OnOutside = "refuse",
    limit: PersonLimit | None = None,
    impossible: Sequence[Excluded] = (),
) -> list[Codes] | nw.LazyFrame[Any]:
    """Small integers: 1 + the cell of each value, 0 where there is none.

    Arrays if the records are here, else columns c0, c1, …. Of a clipped number, 1 + its steps.

    Args:
        table: as for :func:`gaussnoise.tables.counting.count.count_marginals`.
        attributes: at least one.
        on_outside: "refuse" wants columns of a type that fits the attribute. "drop" takes whatever
            a column of pandas or dask holds, since its type there depends on the rows; from other
            engines, which declare types, it takes integer categories in columns of floats besides.
            Rows that have no cell are left out.
        limit: on the rows of each person, of those that are not left out. With "refuse" it looks at
            all rows first.
        impossible: with a limit, what cannot occur in a row: such rows are as those without a cell,
            so that they take no places among a person's.

    Raises:
        DataError: a missing column or wrong type; with a limit, rows that have no cell or no
            person.
        ParameterError: a limit in an engine that has no windows.
    """
    person = None if limit is None else limit.column
    others = [a.name for a in attributes if not _is_written_number(a)]
    numbers = [a.name for a in attributes if a.name not in others]
    numbers += [] if person is None or person in others else [person]
    frame = open_table(table, numbers)
    drop = on_outside == "drop"
    untyped = (
        frame.implementation.is_pandas_like() or frame.implementation == nw.Implementation.DASK
    )

    if person is not None:
        check_engine(frame.implementation)
    needed = [a.name for a in attributes]
    needed += [] if person is None or person in needed else [person]

    def columns() -> tuple[list[str], Mapping[str, nw.dtypes.DType]]:
        names = frame.collect_schema().names() if not untyped else list(frame.columns)
        wanted = [name for name in needed if name in names]
        return names, frame.select(*wanted).collect_schema() if wanted else {}

    names, types = guarded(_TASK, columns, engine=frame.implementation)
    text = text_columns(table, names)
    if isinstance(frame, nw.DataFrame):
        types = guarded(_TASK, lambda: {n: _plain_type(frame[n], t) for n, t in types.items()})
    missing = [name for name in needed if name not in names]
    if missing:
        hint = "; hint: names as the file's first line has them" if is_csv(table) else ""
        raise DataError(
            f"table: expected columns {', '.join(map(repr, missing))}, which are missing{hint}"
        )
    if (
        drop and not is_csv(table) and not untyped
    ):  # a column of nothing but nulls may have no type: no value decides that
        bare = {a.name: _own_type(a) for a in attributes if types[a.name] == nw.Unknown}
        if bare:
            frame = guarded(_TASK, lambda: _cast(frame, bare), engine=frame.implementation)
            types = dict(types) | bare
    if not (drop and untyped):
        for attribute in (a for a in attributes if a.name not in text):
            _check_type(attribute, types[attribute.name], drop)
    if person is not None:
        check_person_type(person, types[person])

    def coded() -> list[Codes] | nw.LazyFrame[Any]:
        records = _coded(frame, attributes, types, text, person)
        if isinstance(records, nw.LazyFrame):
            return _kept(records, attributes, drop, limit, impossible)
        return _kept_here(*records, attributes, drop, limit, impossible)

    return guarded(_TASK, coded, engine=frame.implementation)


_TASK = "read the table's columns"


def _own_type(attribute: Attribute) -> nw.dtypes.DType:
    """A type that holds the attribute."""
    kinds = {str: nw.String(), bool: nw.Boolean(), int: nw.Int64()}
    if is_dated(attribute.edges):
        return nw.Datetime("us")
    return nw.Float64() if _is_number(attribute) else kinds[_kind(attribute)]


def _is_number(attribute: Attribute) -> bool:
    """Whether any number is read, not those that are categories."""
    return attribute.edges is not None or attribute.clip is not None


def _is_written_number(attribute: Attribute) -> bool:
    """Whether text is read as a number."""
    number = _is_number(attribute) and not is_dated(attribute.edges)
    return number or _kind(attribute) is int


def _cast(frame: Any, types: Mapping[str, nw.dtypes.DType]) -> Any:
    """The frame with columns of other types."""
    return frame.with_columns(
        *(nw.col(name).cast(dtype).alias(name) for name, dtype in types.items())
    )


def _check_type(attribute: Attribute, dtype: nw.dtypes.DType, floats: bool) -> None:
    """Refuse a type that cannot hold the attribute; ``floats`` can hold integers."""
    if is_dated(attribute.edges):
        check_dates(attribute, dtype)
        return
    if _is_number(attribute):
        if not dtype.is_numeric():
            given = "edges" if attribute.edges is not None else "ends to clip at"
            known = AS_EDGES if attribute.edges is not None else AS_NUMBERS
            hint = f"; hint: {known}" if dtype.is_temporal() else ""
            raise DataError(
                f"column {attribute.name!r}: expected numbers, as the schema gives {given}; got "
                f"{type_name(dtype)}{hint}"
            )
        return
    kind = _kind(attribute)
    fits = {
        str: dtype in (nw.String, nw.Categorical, nw.Enum),
        bool: dtype == nw.Boolean,
        # integers with gaps are floats to pandas, and in what it writes
        int: dtype.is_integer() or ((floats or attribute.other is not None) and dtype.is_float()),
    }
    if not fits[kind]:
        raise DataError(
            f"column {attribute.name!r}: expected {kind.__name__} categories, as in the schema; "
            "got "
            f"{type_name(dtype)}; hint: cast the column to {_CAST[kind]}"
        )


_CAST = {
    str: "strings",
    int: 'integers (pandas: astype("Int64")), or declare edges',
    bool: 'booleans (pandas: "boolean")',
}


def _kind(attribute: Attribute) -> type:
    return type((attribute.categories or ("",))[0])


def _kept_here(
    columns: list[Codes],
    people: People | None,
    attributes: Sequence[Attribute],
    drop: bool,
    limit: PersonLimit | None,
    impossible: Sequence[Excluded],
) -> list[Codes]:
    """The rows that are counted: first those outside are dropped, then those beyond the limit.

    Whether a row is outside is said by the row alone, and which rows are beyond the limit by their
    person's that are not outside: so one person changes nobody else's.
    """
    strict = [k for k, a in enumerate(attributes) if a.other is None]
    if drop and (strict or people is not None):
        marks = [columns[k] > 0 for k in strict]
        inside = np.all([*marks, *([] if people is None else [people.index >= 0])], axis=0)
        columns = [codes[inside] for codes in columns]
        people = people and People(people.index[inside], people.names)
    if people is None or limit is None:
        return columns
    if drop and impossible:
        inside = possible(columns, impossible)
        columns = [codes[inside] for codes in columns]
        people = People(people.index[inside], people.names)
    if (people.index < 0).any():
        raise no_person(limit.column)
    for k in strict:  # before any row is left out: chance is not to decide on a refusal
        if not columns[k].all():
            raise outside_error(attributes[k])
    if not drop:
        check_possible(columns, impossible)
    return limited_arrays(columns, people, limit)


def _kept(
    coded: nw.LazyFrame[Any],
    attributes: Sequence[Attribute],
    drop: bool,
    limit: PersonLimit | None,
    impossible: Sequence[Excluded],
) -> nw.LazyFrame[Any]:
    """The same where another engine holds them."""
    outside = {f"c{k}": nw.col(f"c{k}") == 0 for k, a in enumerate(attributes) if a.other is None}
    if limit is not None:
        outside[PERSON] = nw.col(PERSON).is_null()
    if drop and outside:
        coded = coded.filter(*(~mark for mark in outside.values()))
    if limit is None:
        return coded
    if drop:
        coded = without(coded, impossible)
    else:  # before any row is left out: chance is not to decide on a refusal
        marks = [mark.fill_null(False).any().alias(name) for name, mark in outside.items()]
        row = coded.select(*marks).collect("pyarrow").to_native().to_pylist()[0]
        if row.pop(PERSON):
            raise no_person(limit.column)
        for k in (int(name[1:]) for name, any_outside in row.items() if any_outside):
            raise outside_error(attributes[k])
        check_possible(coded, impossible)
    limited = limited_spark if coded.implementation.is_spark_like() else limited_duckdb
    if coded.implementation == nw.Implementation.DASK:
        limited = limited_dask
    return nw.from_native(limited(coded.to_native(), limit))


def _coded(
    frame: Any,
    attributes: Sequence[Attribute],
    types: Mapping[str, nw.dtypes.DType],
    text: Sequence[str],
    person: str | None,
) -> tuple[list[Codes], People | None] | nw.LazyFrame[Any]:
    """Codes of all rows; beside them, whose they are."""
    if frame.implementation == nw.Implementation.POLARS:
        return _coded_polars(frame, attributes, types, person)
    if isinstance(frame, nw.DataFrame):
        people = None if person is None else people_of(frame[person])
        return [code_column(frame[a.name], a) for a in attributes], people
    if frame.implementation == nw.Implementation.DUCKDB:
        frame, attributes, types = with_numbers(frame, attributes, types, text)
        return _duckdb(frame.to_native(), attributes, types, text, person)
    if frame.implementation == nw.Implementation.DASK:
        # attributes without what is asked about them, which a worker has no use for
        plain = [Attribute(a.name, a.categories, a.edges, a.other, clip=a.clip) for a in attributes]
        needed = dict.fromkeys([*(a.name for a in attributes), *([person] if person else [])])
        native = frame.to_native()[list(needed)]
        whose = None if person is None else (person, native._meta[person].dtype)
        meta = _pandas(native._meta, plain, whose)
        return nw.from_native(native.map_partitions(_pandas, plain, whose, meta=meta))
    return _joined(*with_numbers(frame, attributes, types, text), person)


def _coded_polars(
    frame: Any,
    attributes: Sequence[Attribute],
    types: Mapping[str, nw.dtypes.DType],
    person: str | None,
) -> tuple[list[Codes], People | None] | nw.LazyFrame[Any]:
    """Windows over persons would hold all rows there too, so with persons the codes come here."""
    import polars as pl

    read, own, types = with_numbers(frame.lazy(), attributes, types, ())
    codes = [_polars(a, types[a.name]).alias(f"c{k}") for k, a in enumerate(own)]
    whose = [] if person is None else [pl.col(person).alias(PERSON)]
    coded = read.to_native().select(*codes, *whose)
    if isinstance(frame, nw.LazyFrame) and person is None:
        return nw.from_native(coded)
    here = coded.collect()
    people = None if person is None else people_of(nw.from_native(here[PERSON], series_only=True))
    return [here[f"c{k}"].to_numpy() for k in range(len(codes))], people


def _width(attribute: Attribute) -> Any:
    codes = attribute.size if attribute.clip is None else STEPS
    return nw.Int8 if codes < 2**7 else nw.Int16 if codes < 2**15 else nw.Int32


def _range(dtype: nw.dtypes.DType) -> tuple[int, int]:
    """Least and largest integer of a type."""
    bits = int(re.sub(r"\D", "", type_name(dtype)) or 64)
    return (
        (0, 2**bits - 1)
        if type_name(dtype).startswith("U")
        else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )


def _possible(attribute: Attribute, dtype: nw.dtypes.DType) -> dict[Any, int]:
    """The code of every category that a column of this type can hold, as a value of that type."""
    cells: dict[Any, int] = {c: k for k, c in enumerate(attribute.categories or (), 1)}
    if _kind(attribute) is not int:
        return cells
    if dtype.is_float():
        return {float(c): k for c, k in cells.items() if abs(c) < 2**1000 and float(c) == c}
    low, high = _range(dtype)
    return {c: k for c, k in cells.items() if low <= c <= high}


def _bounds(edges: Sequence[Edge], dtype: nw.dtypes.DType) -> tuple[list[Any], Any]:
    """Where bins begin, and the last number inside; for integers as integers, since floats are
    fewer.

    A number's code is how many bins begin at it or before, and 0 beyond the last number.
    """
    if is_dated(edges):
        return bounds_of(edges)
    *starts, end = map(place, edges)
    if not dtype.is_integer():
        return starts, end
    low, high = _range(dtype)
    begin = [math.ceil(e) if math.isfinite(e) else low for e in starts]
    last = math.floor(end) if math.isfinite(end) else high
    if last < low:
        return [], high
    return [max(b, low) for b in begin if b <= high], min(last, high)


# Where the records are here: arrow's hash tables and numpy's binary search, or Python for what has
# no type.


def code_column(column: nw.Series[Any], attribute: Attribute) -> Codes:
    """Codes of a column of any type; what does not fit the attribute has none."""
    try:
        codes = _arrow(column.to_arrow(), _plain_type(column, column.dtype), attribute)
    except Exception:  # noqa: BLE001 (objects of any kind raise anything; the values decide)
        codes = None
    if codes is None:
        find = _finder(attribute)
        codes = np.fromiter(map(find, column.to_list()), dtype=np.int32, count=len(column))
    return codes.astype(_NUMPY[_width(attribute)])


_NUMPY = {nw.Int8: np.int8, nw.Int16: np.int16, nw.Int32: np.int32}


def _arrow(values: Any, dtype: nw.dtypes.DType, attribute: Attribute) -> Codes | None:
    """By the column's type; None if that says too little."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if attribute.clip is not None:
        if not dtype.is_numeric():
            return None
        return steps_of(doubles_of(values), attribute)
    if is_dated(attribute.edges):
        if pa.types.is_dictionary(values.type) and _words(values):
            dtype = nw.String()
        values, dtype = numbers_of(values, dtype), nw.Int64()
        if values is None:
            return None
    if attribute.edges is not None and dtype.is_numeric():
        begin, last = _bounds(attribute.edges, dtype)
        if dtype.is_integer():
            numbers, present = (
                values.fill_null(0).to_numpy(),
                values.is_valid().to_numpy(zero_copy_only=False),
            )
        else:
            numbers = doubles_of(values)
            present = np.isfinite(numbers)
        codes = np.searchsorted(np.array(begin, dtype=numbers.dtype), numbers, side="right")
        return np.where(present & (numbers <= numbers.dtype.type(last)), codes, 0)
    kind = _kind(attribute)
    if attribute.edges is not None:
        return None
    if pa.types.is_dictionary(values.type) and not _words(values):
        values = values.cast(values.type.value_type)
    if kind is str and (dtype == nw.String or _words(values)):
        values = values.cast(pa.large_string())
    elif not (
        (kind is bool and dtype == nw.Boolean)
        or (kind is int and (dtype.is_integer() or dtype.is_float()))
    ):
        return None
    cells = _possible(attribute, dtype)
    if kind is int and dtype.is_float():
        values = pa.array(
            values.cast(pa.float64()).fill_null(math.nan).to_numpy() + 0.0
        )  # -0.0 becomes 0.0
    places = pc.call_function(
        "index_in", [values], pc.SetLookupOptions(pa.array(list(cells), type=values.type))
    )
    codes = np.array([*cells.values(), 0], dtype=np.int32)
    return codes[places.fill_null(len(cells)).to_numpy()]


def doubles_of(values: Any) -> NDArray[np.float64]:
    """Numbers of arrow as the nearest doubles; NaN for nulls.

    Decimals by way of text: arrow rounds them otherwise, by how many digits the column has.
    """
    import pyarrow as pa

    if pa.types.is_decimal(values.type):
        values = values.cast(pa.string())
    return values.cast(pa.float64(), safe=False).fill_null(math.nan).to_numpy()


def _plain_type(column: nw.Series[Any], dtype: nw.dtypes.DType) -> nw.dtypes.DType:
    """The type of a column's values, where these are numbered categories that are no text."""
    if dtype not in (nw.Categorical, nw.Enum):
        return dtype
    values: Any = column.head(0).to_arrow()
    import pyarrow as pa

    if not pa.types.is_dictionary(values.type) or _words(values):
        return dtype
    return nw.from_native(pa.chunked_array([], values.type.value_type), series_only=True).dtype


def _words(values: Any) -> bool:
    """Whether an arrow array is a dictionary of text."""
    import pyarrow as pa

    kind = getattr(values.type, "value_type", None)
    return pa.types.is_dictionary(values.type) and (
        pa.types.is_string(kind) or pa.types.is_large_string(kind)
    )


def _finder(attribute: Attribute) -> Callable[[Any], int]:
    """The code of one Python object, by its value; 3, 3.0 and Decimal("3") are the same, True is no
    number.
    """
    if is_dated(attribute.edges):
        return date_finder(attribute.edges or ())
    edges = None if attribute.edges is None else [place(edge) for edge in attribute.edges]
    kind, number = _kind(attribute), _is_number(attribute)
    cells: dict[Any, int] = {c: k for k, c in enumerate(attribute.categories or (), 1)}

    def find(value: Any) -> int:
        if isinstance(value, bool | np.bool_):
            return cells.get(bool(value), 0) if not number and kind is bool else 0
        if isinstance(value, str):
            return cells.get(str.__str__(value), 0) if not number and kind is str else 0
        if kind is bool or (not number and kind is str) or isinstance(value, np.timedelta64):
            return 0
        if number and isinstance(value, decimal.Decimal) and math.isfinite(nearest := float(value)):
            value = nearest  # as engines that have decimals do
        if isinstance(value, np.integer):
            value = int(value)
        elif isinstance(value, np.floating):
            value = float(value)
        elif isinstance(value, complex | np.complexfloating):
            value = (
                float(value.real) if value.imag == 0 else math.nan
            )  # one makes all of a column complex
        elif not isinstance(value, int | float | decimal.Decimal):
            return 0
        if attribute.clip is not None:
            return step_of(value, attribute)
        if edges is None:
            return cells.get(value, 0)
        finite = -math.inf < value < math.inf
        return bisect.bisect_right(edges[:-1], value) if finite and value <= edges[-1] else 0

    def found(value: Any) -> int:
        try:
            return find(value)
        except Exception:  # noqa: BLE001 (a signaling NaN, or an object that raises when it is compared)
            return 0

    return found


def _pandas(frame: Any, attributes: Sequence[Attribute], whose: tuple[str, Any] | None) -> Any:
    """A partition's codes, with its index, by which dask brings columns together; beside them,
    whose its rows are, from a column and its type in all partitions.
    """
    import pandas as pd

    wrapped = nw.from_native(frame, eager_only=True)
    codes: dict[str, Any] = {
        f"c{k}": code_column(wrapped[a.name], a) for k, a in enumerate(attributes)
    }
    if whose is not None:
        codes[PERSON] = np.array(dask_person(frame[whose[0]], whose[1]), dtype=object)
    return pd.DataFrame(codes, index=frame.index)


# Where another engine holds them: in its own terms.


def _polars(attribute: Attribute, dtype: nw.dtypes.DType) -> Any:
    import polars as pl

    if attribute.clip is not None:
        return polars_steps(attribute)
    column, width = pl.col(attribute.name), getattr(pl, _width(attribute).__name__)
    if attribute.edges is not None:
        begin, last = _bounds(attribute.edges, dtype)
        own = getattr(pl, type_name(dtype)) if dtype.is_integer() else pl.Float64
        value = column if dtype.is_integer() else column.cast(pl.Float64)
        present = value.is_not_null() if dtype.is_integer() else value.is_finite()
        codes = pl.lit(pl.Series(begin, dtype=own)).search_sorted(value, side="right")
        return (
            pl.when(present & (value <= pl.lit(last, dtype=own)))
            .then(codes)
            .otherwise(0)
            .cast(width)
        )
    cells = _possible(attribute, dtype)
    if not cells:
        return (column.is_null().cast(width) * 0).fill_null(0)  # one per row
    if _kind(attribute) is str:  # a third quicker than a join
        words = column.cast(pl.String).cast(pl.Enum(list(cells)), strict=False)
        return (words.to_physical().cast(width) + 1).fill_null(0)
    own = getattr(pl, type_name(dtype))
    keys, codes = pl.Series(list(cells), dtype=own), pl.Series(list(cells.values()), dtype=width)
    return column.replace_strict(keys, codes, default=0, return_dtype=width)


def _duckdb(
    relation: Any,
    attributes: Sequence[Attribute],
    types: Mapping[str, nw.dtypes.DType],
    text: Sequence[str],
    person: str | None = None,
) -> nw.LazyFrame[Any]:
    """A left join with the codes of each attribute of more than few categories.

    Keys are bytes: text may compare in other ways there.
    """
    keys = [f"{_duckdb_key(a, types[a.name], text)} AS r{k}" for k, a in enumerate(attributes)]
    whose = []
    if person is not None:
        whose = [PERSON]
        keys.append(f"{duckdb_person(person, types[person])} AS {PERSON}")
    joined = relation.project(", ".join(keys))
    if text:
        joined = with_integers(
            joined,
            [f"r{k}" for k, a in enumerate(attributes) if _kind(a) is int and a.name in text],
        )
    joined = _duckdb_bins(joined, attributes, types, text)
    nothing = relation.limit(0).aggregate(
        "count(*) AS n"
    )  # one row, on the connection of the relation
    codes = []
    for k, attribute in enumerate(attributes):
        if attribute.edges is not None:
            codes.append(f"r{k}")
            continue
        if attribute.clip is not None:
            codes.append(duckdb_steps(f"r{k}", attribute))
            continue
        words = [
            str(c).lower() if isinstance(c, bool) else str(c) for c in attribute.categories or ()
        ]
        listed = [word.encode().hex() for word in words]
        if len(listed) <= _FEW:
            tests = (f"WHEN unhex('{key}') THEN {cell}" for cell, key in enumerate(listed, 1))
            codes.append(f"CASE encode(r{k}) {' '.join(tests)} ELSE 0 END")
            continue
        cells = nothing.project(
            f"unhex(unnest(string_split('{','.join(listed)}', ','))) AS v{k}, "
            f"CAST(unnest(range(1, {len(words) + 1})) AS INTEGER) AS k{k}"
        )
        joined = joined.set_alias("records").join(
            cells.set_alias("cells"), f"encode(records.r{k}) = cells.v{k}", how="left"
        )
        codes.append(f"coalesce(k{k}, 0)")
    widths = [_WIDTHS[_width(a)] for a in attributes]
    pairs = enumerate(zip(codes, widths, strict=True))
    return nw.from_native(
        joined.project(
            ", ".join([*(f"CAST({code} AS {width}) AS c{k}" for k, (code, width) in pairs), *whose])
        )
    )


_WIDTHS = {nw.Int8: "TINYINT", nw.Int16: "SMALLINT", nw.Int32: "INTEGER"}


def _duckdb_bins(
    relation: Any,
    attributes: Sequence[Attribute],
    types: Mapping[str, nw.dtypes.DType],
    text: Sequence[str],
) -> Any:
    """The relation with codes for numbers, found by binary search, one step of all columns at a
    time.
    """
    searched: dict[str, tuple[str, str, int]] = {}
    numbers = {f"r{k}" for k, a in enumerate(attributes) if a.edges is not None}
    others = [column for column in relation.columns if column not in numbers]
    starts, finals = [], []
    for k, attribute in enumerate(attributes):
        if attribute.edges is None:
            continue
        dtype = nw.Float64() if attribute.name in text else types[attribute.name]
        begin, last = _bounds(attribute.edges, dtype)
        kind = "HUGEINT" if dtype.is_integer() else "DOUBLE"
        listed = (
            f"CAST(string_split('{','.join(map(str, begin))}', ',') AS {kind}[])"
            if begin
            else f"[]::{kind}[]"
        )
        searched[f"r{k}"] = (f"b{k}", listed, len(begin))
        value = f"TRY_CAST(r{k} AS {kind})"
        inside = "true" if dtype.is_integer() else f"isfinite({value})"
        starts += [
            f"CASE WHEN {inside} AND {value} <= CAST('{last}' AS {kind}) THEN {value} END AS r{k}",
            f"0 AS b{k}",
        ]
        finals.append(f"CASE WHEN r{k} IS NULL THEN 0 ELSE b{k} END AS r{k}")
    if not searched:
        return relation
    relation = relation.project(", ".join([*others, *starts]))
    steps = max(count for _, _, count in searched.values()).bit_length()
    for step in reversed(range(steps)):
        bins = [
            f"{value}, {bin} + CASE WHEN {value} >= list_extract({listed}, {bin} + {2**step}) "
            f"THEN {2**step} ELSE 0 END"
            f" AS {bin}"
            for value, (bin, listed, _) in searched.items()
        ]
        relation = relation.project(", ".join([*others, *bins]))
    return relation.project(", ".join([*others, *finals]))


def _duckdb_key(attribute: Attribute, dtype: nw.dtypes.DType, text: Sequence[str]) -> str:
    """SQL of the number that falls into a bin, or of the text of a category."""
    column, kind, written = sql(attribute.name), _kind(attribute), attribute.name in text
    if attribute.clip is not None:
        return duckdb_number(attribute, written)
    if attribute.edges is not None:
        return text_number(column) if written else column
    if written:
        # CSV knows text only: integers are read by value (3, 03 and 3.0 are 3), true and false in
        # any case
        return f"lower({column})" if kind is bool else column
    if dtype.is_float():
        return (
            f"CASE WHEN {column} = trunc({column}) THEN CAST(TRY_CAST({column} AS HUGEINT) AS "
            "VARCHAR) END"
        )
    return f"CAST({column} AS VARCHAR)"


def _joined(
    frame: nw.LazyFrame[Any],
    attributes: Sequence[Attribute],
    types: Mapping[str, nw.dtypes.DType],
    person: str | None,
) -> nw.LazyFrame[Any]:
    """Spark, ibis and whatever narwhals adds: expressions for few cells, joins with small tables
    for many.
    """
    whose = [] if person is None else [nw.col(person).alias(PERSON)]
    frame = frame.select(*(nw.col(a.name).alias(f"r{k}") for k, a in enumerate(attributes)), *whose)
    if person is not None:
        frame = nw.from_native(spark_person(frame.to_native(), types[person]))
    codes = []
    for k, attribute in enumerate(attributes):
        dtype, column = types[attribute.name], nw.col(f"r{k}")
        if attribute.clip is not None:
            frame = with_finite(frame, k)
            code = narwhals_steps(k, attribute)
        elif attribute.edges is not None:
            frame, code = _joined_bins(frame, attribute, dtype, k)
        else:
            cells = _possible(attribute, dtype)
            if dtype in (nw.Categorical, nw.Enum):
                frame = frame.with_columns(column.cast(nw.String))
            many = len(cells) > _MOST_COMPARISONS
            keyed = (
                _small_table(frame, {f"v{k}": list(cells), f"k{k}": list(cells.values())})
                if many
                else None
            )
            if keyed is None:
                code = _compare(column, cells)
            else:
                frame = frame.join(keyed, left_on=f"r{k}", right_on=f"v{k}", how="left")
                code = nw.col(f"k{k}").fill_null(0)
        codes.append(code.cast(_width(attribute)).alias(f"c{k}"))
    return frame.select(*codes, *([] if person is None else [PERSON]))


def _joined_bins(
    frame: nw.LazyFrame[Any], attribute: Attribute, dtype: nw.dtypes.DType, k: int
) -> tuple[nw.LazyFrame[Any], nw.Expr]:
    """Codes of numbers: first the block of bins, then the bin among the block's, whose edges are
    joined.
    """
    begin, last = _bounds(attribute.edges or (), dtype)
    value = nw.col(f"r{k}") if dtype.is_integer() else nw.col(f"r{k}").cast(nw.Float64)
    if not dtype.is_integer():
        frame = with_finite(frame, k)
    present = ~value.is_null() if dtype.is_integer() else nw.col(f"f{k}")

    def search(bounds: Sequence[Any], least: int, most: int) -> nw.Expr:
        """How many bounds the value reaches, known to be one of these numbers and all between."""
        if least == most:
            return nw.lit(least)
        middle = (least + most + 1) // 2
        upper, lower = search(bounds, middle, most), search(bounds, least, middle - 1)
        return nw.when(value >= bounds[middle - 1]).then(upper).otherwise(lower)

    size = math.isqrt(len(begin)) + 1
    blocks = [begin[start : start + size] for start in range(0, len(begin), size)]
    rows = [block + [None] * (size - len(block)) for block in blocks]
    columns = {f"v{k}": list(range(1, len(rows) + 1))}
    columns |= {f"e{k}_{j}": [row[j] for row in rows] for j in range(1, size)}
    keyed = _small_table(frame, columns) if len(begin) > _MOST_COMPARISONS else None
    if keyed is None:
        code = search(begin, 0, len(begin))
    else:
        firsts = [block[0] for block in blocks]
        frame = frame.with_columns(search(firsts, 0, len(firsts)).cast(nw.Int64).alias(f"b{k}"))
        frame = frame.join(keyed, left_on=f"b{k}", right_on=f"v{k}", how="left")
        reached = [
            (value >= nw.col(f"e{k}_{j}")).fill_null(False).cast(nw.Int32) for j in range(1, size)
        ]
        before = (nw.col(f"b{k}") - 1) * size + 1
        code = nw.when(nw.col(f"b{k}") > 0).then(before + _sum(reached)).otherwise(nw.lit(0))
    return frame, nw.when(present & (value <= last)).then(code).otherwise(nw.lit(0)).fill_null(0)


def _small_table(
    frame: nw.LazyFrame[Any], columns: dict[str, list[Any]]
) -> nw.LazyFrame[Any] | None:
    """A table of the frame's engine; None for engines that we cannot give one."""
    if frame.implementation == nw.Implementation.IBIS:
        import ibis
        import pyarrow as pa

        return nw.from_native(ibis.memtable(pa.table(columns)))
    if frame.implementation in (nw.Implementation.PYSPARK, nw.Implementation.PYSPARK_CONNECT):
        from pyspark.sql import functions

        kinds = {int: "long", float: "double", str: "string", bool: "boolean"}
        types = ", ".join(f"{name} {kinds[type(values[0])]}" for name, values in columns.items())
        native = frame.to_native().sparkSession.createDataFrame(
            list(zip(*columns.values(), strict=True)), types
        )
        return nw.from_native(functions.broadcast(native))
    return None


def _compare(column: nw.Expr, cells: dict[Any, int]) -> nw.Expr:
    """Codes by one comparison a category."""
    nothing = column.is_null().cast(nw.Int32) * 0  # one per row, even if no category is possible
    return _sum(
        [nothing, *((column == c).fill_null(False).cast(nw.Int32) * k for c, k in cells.items())]
    )


def _sum(terms: list[nw.Expr]) -> nw.Expr:
    """A balanced tree: hundreds of terms in a row would exceed the engines' depth of nesting."""
    while len(terms) > 1:
        terms = [sum(terms[k + 1 : k + 2], terms[k]) for k in range(0, len(terms), 2)]
    return terms[0]
