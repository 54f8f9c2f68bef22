"""One record of each person in each group of rows, in place of the person's rows.

A group is a combination of values of all attributes that are not clipped numbers. The clipped
number of a record is computed from the person's rows in the group, in exact integers. It is the
rounded mean of their steps (:mod:`gaussnoise.tables.reading.steps`), the largest of them, their sum
up to the upper bound, or the number of rows. So a record depends on the rows of its person alone.
It depends neither on their order nor on the engine.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..reading.persons import People
from ..reading.steps import steps_of
from ..schema.numbers import STEPS, PerPerson
from ..schema.schema import Attribute

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Reduced = Mapping[int, tuple[PerPerson, Attribute]]  # by index of the column of codes


def reduced_arrays(
    columns: Sequence[NDArray], people: People, reduced: Reduced
) -> tuple[list[NDArray], People]:
    """Return one record for each person and group, as columns, and the person of each record.

    The rows of a group have equal codes in all columns that are not in ``reduced``. All given rows
    must have a person.
    """
    keys = [people.index, *(codes for k, codes in enumerate(columns) if k not in reduced)]
    order = np.lexsort(keys)
    begins = np.zeros(len(order), dtype=bool)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[order][1:] != key[order][:-1]
    starts = np.flatnonzero(begins)
    records = [
        _number(codes[order], starts, *reduced[k]) if k in reduced else codes[order[starts]]
        for k, codes in enumerate(columns)
    ]
    return records, People(people.index[order[starts]], people.names)


def _number(
    codes: NDArray, starts: NDArray[np.intp], how: PerPerson, attribute: Attribute
) -> NDArray[np.int64]:
    """Return the code of one number, such as the mean, for each group of rows."""
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    codes = codes.astype(np.int64)
    largest = np.maximum.reduceat(codes, starts)
    if how == "max":
        return largest
    number = np.add.reduceat(np.minimum(codes, 1), starts)
    if how == "count":
        code = steps_of(number.astype(np.float64), attribute).astype(np.int64)
    else:
        steps = np.add.reduceat(np.maximum(codes - 1, 0), starts)
        whole = np.maximum(number, 1)
        mean = (2 * steps + whole) // (2 * whole)
        code = 1 + (np.minimum(steps, STEPS) if how == "sum" else mean)
    # 0: no row of the group has a number
    return np.where(largest > 0, code, 0)


def reduced_spark(frame: "DataFrame", reduced: Reduced) -> "DataFrame":
    """Return a Spark dataframe with one record for each person and group.

    ``frame`` has the codes and the person of each row.
    """
    from pyspark.sql import functions

    col, lit = functions.col, functions.lit
    own = {f"c{k}": (how, attribute) for k, (how, attribute) in reduced.items()}
    wanted = []
    for name in own:
        code = col(name).cast("long")
        wanted += [
            functions.max(code).alias(f"{name}_largest"),
            functions.sum(functions.least(code, lit(1))).alias(f"{name}_number"),
            functions.sum(functions.greatest(code - 1, lit(0))).alias(f"{name}_steps"),
        ]

    def code_of(name: str) -> "Column":
        if name not in own:
            return col(name)
        how, attribute = own[name]
        largest, number, steps = (col(f"{name}_{part}") for part in ("largest", "number", "steps"))
        whole = functions.greatest(number, lit(1))
        low, high = attribute.clip or (0.0, 1.0)
        inside = functions.least(functions.greatest(number.cast("double"), lit(low)), lit(high))
        counted = functions.floor((inside - low) / (high - low) * float(STEPS) + 0.5)
        code = {
            "max": largest,
            "count": 1 + functions.least(counted.cast("long"), lit(STEPS).cast("long")),
            "sum": 1 + functions.least(steps, lit(STEPS).cast("long")),
            "mean": 1 + _quotient(2 * steps + whole, 2 * whole),
        }[how]
        return functions.when(largest > 0, code).otherwise(lit(0)).cast("long").alias(name)

    keys = [name for name in frame.columns if name not in own]
    return frame.groupBy(*keys).agg(*wanted).select(*map(code_of, frame.columns))


def _quotient(dividend: "Column", divisor: "Column") -> "Column":
    """Return the quotient of positive integers, rounded down."""
    from pyspark.sql import functions

    return functions.round((dividend - dividend % divisor) / divisor)
