"""Records in, coded records out, in whatever engine holds the table."""

import csv
import glob
import gzip
import itertools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import narwhals as nw

from ..errors import DataError
from ._schema import Attribute

Result = TypeVar("Result")


def code_table(table: object, attributes: Sequence[Attribute]) -> nw.LazyFrame[Any]:
    """Columns c0, c1, … of small integers: 1 + the cell, 0 where there is none. Without attributes, the whole table.

    Raises:
        DataError: a missing column or wrong type.
    """
    frame = open_table(table, [a.name for a in attributes if a.edges is not None or _by_value(a)])
    text = isinstance(table, str | os.PathLike) and is_csv(table)
    types = guarded("read the table's columns", lambda: dict(frame.collect_schema()))
    missing = [a.name for a in attributes if a.name not in types]
    if missing:
        hint = "; hint: CSV needs commas, and column names in its first line" if text else ""
        raise DataError(f"table: expected columns {', '.join(map(repr, missing))}, which are missing{hint}")
    codes = [
        _code(a, types[a.name], text).cast(nw.Int8 if a.size < 2**7 else nw.Int16 if a.size < 2**15 else nw.Int32)
        for a in attributes
    ]
    # eager engines compute here already, so this is guarded too
    named = [code.alias(f"c{k}") for k, code in enumerate(codes)]
    return guarded("read the table's columns", lambda: frame.select(*named)) if named else frame


def outside_error(attribute: Attribute) -> DataError:
    """Some record has no cell: a null, NaN, unknown, or outside the edges."""
    rule = "its declared categories" if attribute.edges is None else "finite numbers inside its declared edges"
    return DataError(
        f"column {attribute.name!r}: expected only {rule}, got a null or another value; "
        'hint: correct the schema, or give the attribute a catch-all: other = "…"'
    )


def open_table(table: object, numeric: Sequence[str] = ()) -> nw.LazyFrame[Any]:
    """The table as a lazy frame. CSV comes as text, except the ``numeric`` columns: NULL where they do not parse."""
    if isinstance(table, str | os.PathLike):
        path = os.fspath(table)
        return nw.from_native(guarded("open the file", lambda: _open_file(path, numeric)))
    frame = guarded("open it", lambda: nw.from_native(table, pass_through=True))  # pyright: ignore[reportArgumentType, reportCallIssue]
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        raise DataError(
            f"table: expected a dataframe (polars, pandas, pyarrow, duckdb, …) or the path of a CSV or Parquet file, "
            f"got {type(table).__name__}"
        )
    return guarded("open it", frame.lazy)


def frame_backend(table: object) -> Any:
    """The dataframe library results come back in: the caller's own if it is eager, else pyarrow."""
    if isinstance(table, str | os.PathLike):
        return "pyarrow"
    implementation = nw.from_native(table).implementation  # pyright: ignore[reportArgumentType, reportCallIssue]
    eager = implementation in (nw.Implementation.PANDAS, nw.Implementation.POLARS, nw.Implementation.MODIN)
    return implementation if eager else "pyarrow"


def guarded(task: str, action: Callable[[], Result]) -> Result:
    """``action()``; an engine's own error is replaced, since it may quote records."""
    try:
        return action()
    except DataError:
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 (every engine has its own errors; polars panics with no Exception)
        kind = type(error).__name__
    # raised outside the handler, so that not even __context__ leads to the original
    raise DataError(f"table: could not {task} ({kind}); the engine's message is withheld because it may quote records")


def is_csv(path: str | os.PathLike[str]) -> bool:
    """Whether the name says CSV or TSV, perhaps compressed."""
    return os.fspath(path).lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def open_csv(path: str) -> Any:
    """A duckdb relation of text columns. Nothing about the file is guessed: the dialect is RFC 4180's."""
    opener = gzip.open if path.lower().endswith(".gz") else open
    delimiter = "\t" if ".tsv" in path.lower()[-7:] else ","
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file, delimiter=delimiter, strict=True), [])
    if not names or len(set(names)) < len(names):
        raise DataError("table: expected a first line of distinct column names")
    return _connect().read_csv(
        glob.escape(path),
        columns=dict.fromkeys(names, "VARCHAR"),
        auto_detect=False,
        header=True,
        delimiter=delimiter,
        quotechar='"',
        escapechar='"',
        comment="",
        skiprows=0,
        strict_mode=True,
        null_padding=False,
        allow_quoted_nulls=False,
        hive_partitioning=False,
    )


def _open_file(path: str, numeric: Sequence[str]) -> Any:
    if not os.path.isfile(path):
        raise DataError(f"table: no such file: {path}")
    if path.lower().endswith((".parquet", ".pq")):
        return _connect().read_parquet(glob.escape(path), hive_partitioning=False)
    if not is_csv(path):
        raise DataError(f"table: expected a .csv, .tsv or .parquet file, got {path}")
    relation = open_csv(path)
    # trim also keeps duckdb from moving the cast into its CSV reader, where it fails instead of giving NULL
    columns = [f"TRY_CAST(trim({sql(c)}) AS DOUBLE) AS {sql(c)}" if c in numeric else sql(c) for c in relation.columns]
    return relation.project(", ".join(columns))


def _connect() -> Any:
    """An engine in memory that never writes: by default duckdb spills into ``.tmp`` of the current directory."""
    import duckdb

    return duckdb.connect(config={"temp_directory": ""})


def sql(name: str) -> str:
    """A quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def _code(attribute: Attribute, dtype: nw.dtypes.DType, text: bool) -> nw.Expr:
    """1 + the cell of each record, 0 where there is none."""
    column = nw.col(attribute.name)
    if attribute.edges is not None:
        if not dtype.is_numeric():
            raise DataError(f"column {attribute.name!r}: expected numbers, as the schema gives edges; got {dtype}")
        return _bin(column, attribute.edges, dtype)
    categories: tuple[Any, ...] = attribute.categories or ()
    kind = type(categories[0])
    if text:
        # CSV knows text only: integers are read by value (3, 03 and 3.0 are 3), true and false in any case
        if not _by_value(attribute):
            column = column.str.to_lowercase() if kind is bool else column
            categories = tuple(str(c).lower() if kind is bool else str(c) for c in categories)
    elif kind is str and dtype in (nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    elif not ({str: dtype == nw.String, bool: dtype == nw.Boolean, int: dtype.is_integer()}[kind]):
        raise DataError(
            f"column {attribute.name!r}: expected {kind.__name__} categories, as in the schema; got {dtype}; "
            f"hint: cast the column to {_CAST[kind]}"
        )
    # engines compare in 64 bits: a category beyond them cannot occur
    low, high = (0, 2**64) if dtype == nw.UInt64 else (-(2**63), 2**63)
    possible = [(k, c) for k, c in enumerate(categories) if kind is not int or text or low <= c < high]
    nothing = column.is_null().cast(nw.Int32) * 0  # one per row, even if no category is possible
    return _sum([nothing, *((column == c).fill_null(False).cast(nw.Int32) * (k + 1) for k, c in possible)])


_CAST = {
    str: "strings",
    int: 'integers (pandas: astype("Int64")), or declare edges',
    bool: 'booleans (pandas: "boolean")',
}


def _by_value(attribute: Attribute) -> bool:
    """Whether CSV text is compared as numbers: integer categories that a double holds exactly."""
    return all(isinstance(c, int) and not isinstance(c, bool) and abs(c) < 2**53 for c in attribute.categories or ("",))


def _bin(column: nw.Expr, edges: tuple[float, ...], dtype: nw.dtypes.DType) -> nw.Expr:
    """1 + the bin of each number, 0 outside the edges; integers are compared as integers, since floats are fewer."""
    if dtype.is_integer():
        value, present = column, ~column.is_null()
        least, most = (0, 2**64 - 1) if dtype == nw.UInt64 else (-(2**63), 2**63 - 1)
    else:
        value, least, most = column.cast(nw.Float64), -math.inf, math.inf
        present = value.is_finite()

    def reaches(edge: float) -> nw.Expr:
        bound = math.ceil(edge) if dtype.is_integer() and math.isfinite(edge) else edge
        return present if bound <= least else ~present & present if bound > most else value >= bound

    last = math.floor(edges[-1]) if dtype.is_integer() and math.isfinite(edges[-1]) else edges[-1]
    below = present if last >= most else ~present & present if last < least else value <= last
    code = _sum([nw.lit(1), *(reaches(edge).cast(nw.Int32) for edge in edges[1:-1])])
    return nw.when(present & reaches(edges[0]) & below).then(code).otherwise(nw.lit(0)).fill_null(0).cast(nw.Int32)


def _sum(terms: list[nw.Expr]) -> nw.Expr:
    """Sum of 32-bit terms as a balanced tree: hundreds in a row would exceed the engines' depth of nesting."""
    while len(terms) > 1:
        terms = [a + b for a, b in itertools.zip_longest(terms[::2], terms[1::2], fillvalue=nw.lit(0))]
    return (terms[0] if terms else nw.lit(0)).cast(nw.Int32)
