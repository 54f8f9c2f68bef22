"""The number of rows of each value in a column, counted by the engine that holds the data."""

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np

from ...errors import DataError
from ..reading.batches import batches, joined, parts
from ..reading.columns import Integers, distinct
from ..reading.csv import FORM
from ..reading.files import is_csv
from ..reading.frames import Column, guarded, type_name
from ..reading.opened import Opened, opened
from ..reading.persons import People, check_person_type, people_of
from ..reading.types import WORDS, is_wide
from ..reading.values import Form, Label, label_of
from .persons import PersonLimit, limited_arrays

if TYPE_CHECKING:
    import polars as pl

_TASK = "count the column's values"


def count_values(
    table: object, column: str, most: int, limit: PersonLimit | None = None
) -> dict[Label, int]:
    """Return the number of rows of every text or integer in a column; ignore other values.

    Texts are equal only if their bytes are equal. An engine's collation must not merge texts, since
    then one row could change the text under which many rows are counted.

    Args:
        table: as for :func:`gaussnoise.tables.counting.count.count_marginals`, but of other engines
            only duckdb, polars and dask.
        column: a column of text or integers, whose type the engine declares. In pandas and dask,
            where the type of a column may depend on its rows, it may have any type: 1, 1.0 and "1"
            are one value there, and numbers from 2**53 on are ignored.
        most: the largest number of distinct values.
        limit: the limit on the rows of each person. Rows without a value or person are removed
            first; the columns of values and persons are read into memory.

    Returns:
        {value: number of rows}.

    Raises:
        DataError: the column is missing; its type or engine is another; it has too many values.
    """
    person_type = {} if limit is None else {limit.column: nw.Int64()}
    source = opened(table, {column: nw.String()} | person_type, limit and limit.column)
    engine, dtype = source.engine, source.types[column]
    words = column in source.text or dtype in WORDS
    if not (source.untyped or words or dtype.is_integer()):
        raise DataError(
            f"column {column!r}: expected text or integers, got {type_name(dtype)}; hint: cast it, "
            "or declare edges"
        )
    if not source.comes_here:
        raise DataError(
            "table: expected a CSV, TSV or Parquet file, or a table of polars, pandas, pyarrow, "
            f"duckdb or dask, to count unknown values in, got {engine.name.lower()}; hint: write "
            "the column to a Parquet file"
        )
    if limit is not None and not source.untyped:
        check_person_type(limit.column, source.types[limit.column])

    def counted() -> dict[Label, int]:
        if limit is None:
            return _counted(source, column, words, most)
        return _of_persons(source, column, limit)

    counts = guarded(_TASK, counted, FORM if is_csv(table) else "", engine=engine)
    if len(counts) > most:
        raise DataError(
            f"column {column!r}: expected at most {most} distinct values; hint: leave out "
            "identifiers and free text"
        )
    return counts


def _counted(source: Opened, column: str, words: bool, most: int) -> dict[Label, int]:
    """Return {value: number of rows}; stop as soon as there are more than ``most`` values."""
    frame = source.frame
    if source.engine == nw.Implementation.POLARS:
        return _polars(frame.lazy().to_native(), column, words, most)
    counts: Counter[Label] = Counter()
    for own in parts(source, column):
        labels, places = _labels(source, column, own)
        rows = np.bincount(places[places >= 0], minlength=len(labels)).tolist()
        counts.update({label: n for label, n in zip(labels, rows, strict=True) if n})
        if len(counts) > most:
            break
    return dict(counts)


def _polars(frame: "pl.LazyFrame", column: str, words: bool, most: int) -> dict[Label, int]:
    import polars as pl

    value = pl.col(column).cast(pl.String) if words else pl.col(column)
    counted = (
        frame.select(value.alias("v"))
        .drop_nulls()
        .group_by("v")
        .agg(pl.len().alias("n"))
        .head(most + 1)
        .collect()
    )
    pairs = zip(counted["v"].to_list(), counted["n"].to_list(), strict=True)
    return {v: n for v, n in pairs if label_of(v, Form.TYPED) is not None}


def _labels(source: Opened, column: str, own: Column) -> tuple[list[Label], Integers]:
    """Return a column's distinct texts and integers, and each row's index among them (or −1)."""
    form = source.form(column)
    index, known = distinct(own, form)
    if is_wide(source.types[column]):
        known = list(map(int, known))
    places: dict[Label, int] = {}
    found = [
        -1 if (label := label_of(value, form)) is None else places.setdefault(label, len(places))
        for value in known
    ]
    return list(places), np.array([*found, -1], dtype=np.int64)[index]


def _of_persons(source: Opened, column: str, limit: PersonLimit) -> dict[Label, int]:
    """Return {value: number of rows}, where ``limit`` holds for the rows of each person."""
    values, persons = map(joined, zip(*batches(source, [], [column, limit.column]), strict=True))
    labels, codes = _labels(source, column, values)
    people = people_of(persons, source.form(limit.column))
    fits = (codes >= 0) & (people.index >= 0)
    if not fits.any():
        return {}
    # which rows of a person are counted must not depend on other persons' rows, as an index
    # among all values does: so hashes stand for values
    digests = [
        hashlib.blake2b(repr(label).encode(), digest_size=16, key=limit.key).digest()
        for label in labels
    ]
    words = np.frombuffer(b"".join(digests), dtype="<i8").reshape(-1, 2)
    rows = words[codes[fits]]
    kept = limited_arrays([rows[:, 0], rows[:, 1]], People(people.index[fits], people.names), limit)
    pairs, counts = np.unique(np.stack(kept, axis=1), axis=0, return_counts=True)
    named = dict(zip(digests, labels, strict=True))
    return {named[row.tobytes()]: int(n) for row, n in zip(pairs, counts, strict=True)}
