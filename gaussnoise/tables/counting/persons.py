"""Random choice of at most k rows of each person, which does not depend on other persons' rows.

Rows are put in a random order, by a keyed hash of the person, the cells and a running number. The
number distinguishes the rows of the person with the same cells. The first k rows of each person are
counted. The key is new for every release.

Formal guarantees:
    * For every key, known or not, the counted rows of a person are a function of the person's own
      rows, as a multiset: neither their order nor other persons' rows matter, since rows with equal
      hashes are ordered by cells and number. So adding or removing one person, with any number of
      rows, adds or removes at most k of the rows that are counted, and noise for k rows protects
      this person. This holds for any hash: its quality decides only how evenly rows are chosen. It
      also holds if one person is replaced by another: at most k counted rows are removed, and at
      most k others added (:mod:`gaussnoise.tables.planning.exchange`).
    * Rows that do not fit, and impossible combinations, are left out first. Each is judged by
      itself alone, so that one person's rows do not change another person's.
    * A random key keeps the privacy guarantee, since it does not depend on the data.
      The key is neither kept nor written, as it is not needed again: with it, an observer could
      compute which of some known rows were left out.
    * Every set of k rows of a person is equally likely, if the hash is random.

Source: OpenDP, ``truncate_per_group(k, keep="sample")``; Tumult Analytics, ``MaxRowsPerID``.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from ..reading.persons import PERSON, People
from .admission import AbstractAdmission
from .admitted import admitted_arrays, admitted_dask, admitted_spark
from .per_person import Reduced, reduced_arrays, reduced_spark

if TYPE_CHECKING:
    import dask.dataframe
    import pandas as pd
    from pyspark.sql import DataFrame

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

_KEY_BYTES = 16


@final
@dataclass(frozen=True)
class PersonLimit:
    """A limit on the counted rows of each person: ``rows`` of them, chosen at random.

    Every instance has its own key from the operating system. One instance serves all passes of one
    release. With ``reduced``, the records of :mod:`gaussnoise.tables.counting.per_person` replace
    rows. With ``admission``, the rows of persons whom it does not admit are left out first.
    """

    column: str
    rows: int
    key: bytes = field(default_factory=lambda: secrets.token_bytes(_KEY_BYTES), repr=False)
    reduced: Reduced = field(default_factory=dict)
    admission: AbstractAdmission | None = field(default=None, repr=False)


def limited_arrays(columns: Sequence[NDArray], people: People, limit: PersonLimit) -> list[NDArray]:
    """Return the columns of the counted rows, as many of each person as ``limit`` allows.

    All given rows must have a person.
    """
    if limit.admission is not None:
        columns, people = admitted_arrays(columns, people, limit.admission)
    if limit.reduced:
        columns, people = reduced_arrays(columns, people, limit.reduced)
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
    """Return whether each row is among its person's first ``rows`` rows, in random order."""
    # index: the person of each row; cells: its codes; keyed: a hash of each person
    # number the equal rows of a person, then sort the rows of each person by keyed hash
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
    """Return for each index how far before it the last true value of ``begins`` is."""
    positions = np.arange(len(begins))
    return positions - np.maximum.accumulate(np.where(begins, positions, 0))


def _words(column: NDArray) -> Words:
    """Return each value as 64 bits, so that equal values have equal bits."""
    if np.issubdtype(column.dtype, np.integer):
        return column.astype(np.int64).view(np.uint64)
    return (column.astype(np.float64) + 0.0).view(np.uint64)


def _person_words(people: People, wanted: Integers, key: bytes) -> Words:
    """Return an array with a keyed 64-bit hash at the index of each person in ``wanted``."""
    words = np.zeros(int(people.index.max()) + 1, dtype=np.uint64)
    digests = [
        hashlib.blake2b(name, digest_size=8, key=key).digest() for name in people.names(wanted)
    ]
    words[wanted] = np.frombuffer(b"".join(digests), dtype="<u8")
    return words


def _mixed(words: Words) -> Words:
    """Return each 64-bit word mixed by SplitMix64's finaliser (Steele, Lea & Flood 2014)."""
    # the golden ratio is added first, so that zero is not a fixed point
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


# The same choice of rows, made by other engines, which hold the records.


def limited_spark(frame: "DataFrame", limit: PersonLimit) -> "DataFrame":
    """Return the counted rows of a Spark dataframe: ``limit`` holds for each person.

    ``frame`` has the codes and the person of each row.
    """
    from pyspark.sql import Window, functions

    if limit.admission is not None:
        frame = admitted_spark(frame, limit.admission)
    if limit.reduced:
        frame = reduced_spark(frame, limit.reduced)
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


def limited_dask(
    frame: "dask.dataframe.DataFrame", limit: PersonLimit
) -> "dask.dataframe.DataFrame":
    """Return the counted rows of a dask dataframe: ``limit`` holds for each person.

    Rows are first moved, so that all rows of a person are in one partition.
    """
    if limit.admission is not None:
        frame, limit = admitted_dask(frame, limit.admission), replace(limit, admission=None)
    own = frame.shuffle(on=PERSON)
    return own.map_partitions(_limited_partition, limit, meta=_limited_partition(own._meta, limit))


def _limited_partition(frame: "pd.DataFrame", limit: PersonLimit) -> "pd.DataFrame":
    import pandas as pd

    index, names = pd.factorize(frame[PERSON])
    people = People(
        np.asarray(index, dtype=np.int64),
        lambda wanted: [bytes.fromhex(str(names[k])) for k in wanted],
    )
    cells = [column for column in frame.columns if column != PERSON]
    kept = limited_arrays([frame[column].to_numpy() for column in cells], people, limit)
    return pd.DataFrame(dict(zip(cells or ["c0"], kept, strict=True)))
