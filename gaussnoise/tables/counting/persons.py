"""At most k rows of each person, chosen at random and by that person's rows alone.

Every row has a place in a random order: a keyed hash of whose row it is, of its cells, and of its
running number among that person's rows of the same cells, which cannot be told apart. A person's
first k rows are counted. The key is fresh for every release.

Formal guarantees:
    * For every key, known or not, the rows counted of a person are a function of the person's own
      rows, as a multiset: neither their order nor anybody else's rows matter, since equal places
      are ordered by cells and number. So adding or removing one person, with any number of rows,
      adds or removes at most k of the rows that are counted, and noise for k rows protects her.
      This holds whatever the hash does: its quality decides only how even the choice is. So does
      exchanging one person for another: at most k of the counted rows go, and at most k others
      come (:mod:`gaussnoise.tables.planning.exchange`).
    * Rows that do not fit, and combinations that cannot be, are left out before: by themselves
      alone, so that what one person has changes nobody else's rows.
    * A mixture over keys keeps the promise, since the key does not depend on the data. It is
      neither kept nor written, as nothing needs it again: who had it could tell, of rows that are
      known, which were left out.
    * Every set of k rows of a person is equally likely, as far as the hash is random.

Source: OpenDP, ``truncate_per_group(k, keep="sample")``; Tumult Analytics, ``MaxRowsPerID``.
"""

import datetime
import decimal
import hashlib
import math
import secrets
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, ParameterError
from ..reading.frames import guarded, sql, type_name
from .numbers import is_number

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

PERSON = "person"  # what the column is called beside the codes c0, c1, …
_KEY_BYTES = 16
_INEXACT = 2**53  # from here on floats leave integers out


@final
@dataclass(frozen=True)
class PersonLimit:
    """Count at most ``rows`` rows of each person, who is a value of ``column``.

    Every instance has a key of its own from the operating system: one instance serves all passes of
    one release.
    """

    column: str
    rows: int
    key: bytes = field(default_factory=lambda: secrets.token_bytes(_KEY_BYTES), repr=False)


def check_table(table: object) -> None:
    """As :func:`check_engine`; what is no table is refused later."""
    frame = guarded("open it", lambda: nw.from_native(table, pass_through=True))  # pyright: ignore[reportArgumentType, reportCallIssue]
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        check_engine(frame.implementation)


def check_engine(implementation: nw.Implementation) -> None:
    """Refuse engines that cannot order the rows of a person.

    Raises:
        ParameterError: neither in this process nor duckdb, Spark or dask.
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
    """Refuse columns that hold more than one value a row."""
    if dtype in (nw.List, nw.Array, nw.Struct):
        raise DataError(
            f"column {column!r}: expected text, integers or other single values that say whose row "
            f"it is, got {type_name(dtype)}"
        )


def no_person(column: str) -> DataError:
    """Some row does not say whose it is."""
    return DataError(
        f"column {column!r}: expected a person in every row, got a null or empty text; "
        'hint: on_outside="drop" leaves such rows out'
    )


# Where the records are here.


@final
@dataclass(frozen=True, eq=False)
class People:
    """Whose each row is.

    Attributes:
        index: positions in ``names``, −1 for nobody; shape (rows,).
        names: every person once, as bytes that tell persons apart, made when asked for.
    """

    index: Integers
    names: Callable[[Integers], list[bytes]]


def people_of(column: nw.Series[Any]) -> People:
    """Persons of a column of any type; nulls, NaN and empty text are nobody.

    In pandas the type of a column depends on its rows. What a person is called, and who is the same
    person, must not: rows are drawn by names.

    Raises:
        DataError: a column of floats in pandas with numbers that may have been other integers.
    """
    if column.dtype in (nw.Object, nw.Unknown):
        return _people_of_objects(column.to_list())
    untyped = column.implementation.is_pandas_like()
    import pyarrow as pa

    try:
        values = column.to_arrow()
    except Exception:
        if not untyped:
            raise
        return _people_of_objects(column.to_list())  # narwhals looks at the first rows alone
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        numbers = values.cast(pa.float64(), safe=False).fill_null(math.nan).to_numpy() + 0.0
        if untyped and (np.isfinite(numbers) & (np.abs(numbers) >= _INEXACT)).any():
            raise DataError(
                f"column {column.name!r}: expected persons that floats tell apart, got numbers "
                'from two to the 53rd on; hint: text, or integers with gaps, astype("Int64")'
            )
        values = pa.array(numbers, mask=np.isnan(numbers))  # -0.0 has become 0.0
    if column.dtype == nw.String or values.type in (pa.string(), pa.large_string()):
        values = values.cast(pa.large_string())
    index, known = encoded(values)
    if pa.types.is_large_string(known.type):
        index[index == known.index(pa.scalar("", known.type)).as_py()] = -1
    return People(index, lambda wanted: [_name(known[int(k)].as_py()) for k in wanted])


def encoded(values: Any) -> tuple[Integers, Any]:
    """Where each value of an arrow array is in another that has all of them once; −1 for nulls."""
    import pyarrow as pa

    coded = values.dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        if not coded.num_chunks:
            return np.zeros(0, dtype=np.int64), pa.array([], coded.type.value_type)
        coded = coded.combine_chunks()
    index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return index.astype(np.int64), coded.dictionary


def _name(value: object) -> bytes:
    """What a person is called, whatever the type of the column."""
    return repr(_person(value) or value).encode()


def _people_of_objects(values: Sequence[object]) -> People:
    """The same by Python's values: 3, 3.0 and Decimal("3") are the same, the text "3" another."""
    places: dict[tuple[str, object], int] = {}
    index = np.fromiter(
        (
            -1 if (person := _person(value)) is None else places.setdefault(person, len(places))
            for value in values
        ),
        dtype=np.int64,
        count=len(values),
    )
    listed = list(places)
    return People(index, lambda wanted: [repr(listed[int(k)]).encode() for k in wanted])


def _person(value: object) -> tuple[str, object] | None:
    """A person, as what tells persons apart; None for nobody."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return ("text", str.__str__(value)) if value else None
    if isinstance(value, bytes | bool | uuid.UUID):
        return type(value).__name__, str(value)
    if isinstance(value, datetime.date):
        kind = "time" if isinstance(value, datetime.datetime) else "date"
        return (kind, value.isoformat()) if value == value else None  # NaT is not
    if isinstance(value, int):
        return "number", value
    if isinstance(value, decimal.Decimal) and value.is_nan():
        return None
    if isinstance(value, float | decimal.Decimal) and value == value:
        if not math.isfinite(value):
            return "number", float(value)
        return "number", int(value) if value == int(value) else Fraction(value)
    return None


def limited_arrays(columns: Sequence[NDArray], people: People, limit: PersonLimit) -> list[NDArray]:
    """The rows that are counted, of coded columns or of one without cells; everybody has a name."""
    columns = columns or [np.zeros(len(people.index), dtype=np.int8)]
    if not len(people.index):
        return list(columns)
    crowded = np.bincount(people.index) > limit.rows
    surplus = np.flatnonzero(crowded[people.index])
    if not len(surplus):
        return list(columns)
    kept = np.ones(len(people.index), dtype=bool)
    kept[surplus] = _first_rows(
        people.index[surplus],
        [_words(column[surplus]) for column in columns],
        _person_words(people, np.flatnonzero(crowded), limit.key),
        limit.rows,
    )
    return [column[kept] for column in columns]


def _first_rows(
    index: Integers, cells: Sequence[Words], keyed: Words, rows: int
) -> NDArray[np.bool_]:
    """Which rows have one of the first places among their person's."""
    equal = np.lexsort([*cells, index])
    changes = np.zeros(len(index), dtype=bool)
    changes[0] = True
    for column in (index, *cells):
        ordered = column[equal]
        changes[1:] |= ordered[1:] != ordered[:-1]
    number = np.empty(len(index), dtype=np.int64)
    number[equal] = _since(changes)
    place = keyed[index]
    for column in (*cells, number.astype(np.uint64)):
        place = _mixed(place ^ column)
    order = np.lexsort([number, *cells, place, index])
    begins = np.ones(len(index), dtype=bool)
    begins[1:] = index[order][1:] != index[order][:-1]
    first = np.empty(len(index), dtype=bool)
    first[order] = _since(begins) < rows
    return first


def _since(begins: NDArray[np.bool_]) -> Integers:
    """How far each position is behind the last one that is marked."""
    positions = np.arange(len(begins))
    return positions - np.maximum.accumulate(np.where(begins, positions, 0))


def _words(column: NDArray) -> Words:
    """Values as 64 bits each, equal where they are equal."""
    if np.issubdtype(column.dtype, np.integer):
        return column.astype(np.int64).view(np.uint64)
    return (column.astype(np.float64) + 0.0).view(np.uint64)


def _person_words(people: People, wanted: Integers, key: bytes) -> Words:
    """A keyed hash of each wanted person, at the person's position."""
    words = np.zeros(int(people.index.max()) + 1, dtype=np.uint64)
    digests = [
        hashlib.blake2b(name, digest_size=8, key=key).digest() for name in people.names(wanted)
    ]
    words[wanted] = np.frombuffer(b"".join(digests), dtype="<u8")
    return words


def _mixed(words: Words) -> Words:
    """SplitMix64's finaliser (Steele, Lea & Flood 2014), a permutation of 64 bits; of its input
    plus the golden ratio, so that zero moves.
    """
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


# Where another engine holds them.


def duckdb_person(column: str, dtype: nw.dtypes.DType) -> str:
    """SQL of whose row it is, as bytes: text may compare in other ways there.

    Floats that are integers are called like these, as a null makes them where pandas writes
    files.
    """
    name = sql(column)
    if dtype.is_float():
        number = f"(CAST({name} AS DOUBLE) + CAST(0 AS DOUBLE))"
        whole = f"{number} = trunc({number}) AND abs({number}) < {_INEXACT}"
        integer = f"CAST(TRY_CAST({number} AS BIGINT) AS VARCHAR)"
        text = f"CASE WHEN {whole} THEN {integer} ELSE CAST({number} AS VARCHAR) END"
        return f"CASE WHEN {is_number(number)} THEN encode({text}) END"
    return f"encode(nullif(CAST({name} AS VARCHAR), ''))"


def limited_duckdb(relation: Any, limit: PersonLimit) -> Any:
    """The rows that are counted, of a relation of codes and whose they are."""
    cells = [sql(column) for column in relation.columns if column != PERSON]
    numbered = relation.project(
        f"*, row_number() OVER (PARTITION BY {', '.join([PERSON, *cells])}) AS number"
    )
    parts = [f"'{limit.key.hex()}'", f"hex({PERSON})", *cells, "number"]
    place = f"md5(concat_ws(' ', {', '.join(parts)}))"
    placed = numbered.project(
        f"*, row_number() OVER (PARTITION BY {PERSON} "
        f"ORDER BY {', '.join([place, *cells, 'number'])}) AS place"
    )
    return placed.filter(f"place <= {limit.rows}").project(", ".join(cells or ["place"]))


def spark_person(frame: Any, dtype: nw.dtypes.DType) -> Any:
    """The frame with whose row it is as bytes, since text may compare in other ways."""
    from pyspark.sql import functions

    person = functions.col(PERSON)
    if dtype.is_float():
        person = functions.nanvl(person.cast("double") + functions.lit(0.0), functions.lit(None))
        whole = (person == functions.rint(person)) & (functions.abs(person) < _INEXACT)
        integer = person.cast("long").cast("string")
        person = functions.when(whole, integer).otherwise(person.cast("string"))
    text = person.cast("string")
    return frame.withColumn(PERSON, functions.when(text != "", functions.encode(text, "UTF-8")))


def limited_spark(frame: Any, limit: PersonLimit) -> Any:
    """The same of a Spark dataframe."""
    from pyspark.sql import Window, functions

    cells = [functions.col(column) for column in frame.columns if column != PERSON]
    person = functions.col(PERSON)
    equal = Window.partitionBy(person, *cells).orderBy(person)
    frame = frame.withColumn("number", functions.row_number().over(equal))
    number = functions.col("number")
    parts = [functions.lit(limit.key.hex()), functions.hex(person), *cells, number]
    hashed = functions.sha2(functions.concat_ws(" ", *(p.cast("string") for p in parts)), 256)
    own = Window.partitionBy(person).orderBy(hashed, *cells, number)
    frame = frame.withColumn("place", functions.row_number().over(own))
    return frame.filter(functions.col("place") <= limit.rows).select(*(cells or ["place"]))


def dask_person(column: Any, expected: Any) -> list[str | None]:
    """Whose the rows of a partition are, in words that tell persons apart in all partitions.

    None for nobody.

    By values, not by the partition's own type: what pandas makes of a column depends on its rows,
    so that 1 is a float beside a null. Where numbers could have been rounded, or be text elsewhere,
    one person might be two.
    """
    people = [_person(value) for value in column.tolist()]
    numbers = expected.kind in "iuf"
    if column.dtype.kind != expected.kind and not all(
        person is None or (numbers and _is_exact(*person)) for person in people
    ):
        raise DataError(
            f"column {column.name!r}: expected one type in all partitions, got {column.dtype} and "
            f"{expected}; hint: astype before"
        )
    return [None if person is None else repr(person) for person in people]


def _is_exact(kind: str, value: Any) -> bool:
    """Whether a person is a number that integers and floats hold alike."""
    return kind == "number" and abs(value) < _INEXACT


def limited_dask(frame: Any, limit: PersonLimit) -> Any:
    """The same of a dask dataframe, once all rows of a person are in one partition."""
    own = frame.shuffle(on=PERSON)
    return own.map_partitions(_limited_partition, limit, meta=_limited_partition(own._meta, limit))


def _limited_partition(frame: Any, limit: PersonLimit) -> Any:
    import pandas as pd

    index, names = pd.factorize(frame[PERSON])
    people = People(
        np.asarray(index, dtype=np.int64), lambda wanted: [str(names[k]).encode() for k in wanted]
    )
    cells = [column for column in frame.columns if column != PERSON]
    kept = limited_arrays([frame[column].to_numpy() for column in cells], people, limit)
    return pd.DataFrame(dict(zip(cells or ["c0"], kept, strict=True)))
