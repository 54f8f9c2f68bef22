"""Columns of numbers from any table, with the group of every row."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..tables.reading.columns import code_column, number_column
from ..tables.reading.csv import FORM
from ..tables.reading.files import is_csv
from ..tables.reading.frames import guarded, sql, type_name
from ..tables.reading.opened import TASK, Opened, opened
from ..tables.reading.persons import check_person_type, people_of
from ..tables.reading.steps import duckdb_number
from ..tables.reading.types import WORDS, check_type, own_type
from ..tables.schema.schema import Attribute

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of each column, NaN where there is none, and every row's group, or −1.

    Attributes:
        columns: arrays of shape (rows,), or (people,).
        cells: shape (rows,).
        groups: category by grouping column, of every group.
    """

    columns: Mapping[str, Array]
    cells: NDArray[np.int64]
    groups: tuple[Mapping[str, object], ...]

    def of(self, column: str) -> tuple[Array, NDArray[np.int64]]:
        """The finite numbers of a column that are in a group, and their groups."""
        x = self.columns[column]
        inside = np.isfinite(x) & (self.cells >= 0)
        return x[inside], self.cells[inside]


def read_numbers(
    table: object, columns: Sequence[str], by: Mapping[str, Sequence[Any]], person: str | None
) -> Numbers:
    """The columns of a table, here, in this machine's memory.

    With ``person``, a person's number is the mean of their own finite ones; rows without a person's
    name are left out.

    Raises:
        DataError: a missing column, or one that is neither numbers nor text.
    """
    attributes = [Attribute(name, list(values)) for name, values in by.items()]
    groups = tuple(
        dict(zip(by, values, strict=True))
        for values in itertools.product(*(a.categories or () for a in attributes))
    )
    named = {attribute.name: own_type(attribute) for attribute in attributes}
    named |= {} if person is None or person in named else {person: nw.Int64()}
    source = opened(table, named | dict.fromkeys(columns, nw.Float64()), person)
    if not source.untyped:
        attributes = _checked(source, columns, attributes, person)
    hint = FORM if is_csv(table) else ""
    data = guarded(
        TASK, lambda: _collected(source, columns, [*by, *named]), hint, engine=source.engine
    )

    def read() -> Numbers:
        numbers = {
            name: number_column(data[f"x{k}"], source.form(name)) for k, name in enumerate(columns)
        }
        cells = np.zeros(len(data), dtype=np.int64)
        for attribute in attributes:
            column = data[f"g{list(named).index(attribute.name)}"]
            codes = code_column(column, attribute, source.form(attribute.name)).astype(np.int64)
            cells = np.where((cells >= 0) & (codes > 0), cells * attribute.size + codes - 1, -1)
        if person is None:
            return Numbers(numbers, cells, groups)
        whose = people_of(data[f"g{list(named).index(person)}"], source.form(person)).index
        means = {name: _by_person(x, whose) for name, x in numbers.items()}
        people = int(whose.max(initial=-1)) + 1
        return Numbers(means, np.zeros(people, dtype=np.int64), groups)

    return guarded(TASK, read)


def _checked(
    source: Opened, columns: Sequence[str], by: Sequence[Attribute], person: str | None
) -> list[Attribute]:
    """The grouping attributes as the columns' declared types write them; other types are refused.

    Raises:
        DataError: a type that does not fit.
    """
    for name in columns:
        dtype = source.types[name]
        if not (dtype.is_numeric() or dtype == nw.String):
            raise DataError(f"column {name!r}: expected numbers, got {type_name(dtype)}")
    if person is not None:
        check_person_type(person, source.types[person])
    attributes = [a if a.name in source.text else _as_written(a, source.types[a.name]) for a in by]
    for attribute in (a for a in attributes if a.name not in source.text):
        check_type(attribute, source.types[attribute.name], True)
    return attributes


def _as_written(attribute: Attribute, dtype: nw.dtypes.DType) -> Attribute:
    """Categories of the column's type, where they are given as text or the column is text."""
    texts = [str(value) for value in attribute.categories or ()]
    if dtype in WORDS:
        return Attribute(attribute.name, texts)
    truth = {"true": True, "false": False}
    if dtype == nw.Boolean and all(text.lower() in truth for text in texts):
        return Attribute(attribute.name, [truth[text.lower()] for text in texts])
    if not dtype == nw.Boolean and all(text.lstrip("-").isdecimal() for text in texts):
        return Attribute(attribute.name, [int(text) for text in texts])
    return attribute


def _collected(source: Opened, columns: Sequence[str], named: Sequence[str]) -> nw.DataFrame[Any]:
    """Numbers as x0, x1, …, and the other columns as g0, g1, …: each under a name of its own."""
    frame, others = source.frame, list(dict.fromkeys(named))
    if source.engine == nw.Implementation.DUCKDB:
        numbers = [duckdb_number(name, source.types[name] == nw.String) for name in columns]
        parts = [f"{number} AS x{k}" for k, number in enumerate(numbers)]
        parts += [f"{sql(name)} AS g{k}" for k, name in enumerate(others)]
        return nw.from_native(frame.to_native().project(", ".join(parts))).collect("pyarrow")
    picked = [nw.col(name).alias(f"x{k}") for k, name in enumerate(columns)]
    picked += [nw.col(name).alias(f"g{k}") for k, name in enumerate(others)]
    chosen = frame.select(*picked)
    if not isinstance(chosen, nw.LazyFrame):
        return chosen
    # arrow would look for the types of what dask holds
    return chosen.collect() if source.untyped else chosen.collect("pyarrow")


def _by_person(x: Array, whose: NDArray[np.int64]) -> Array:
    """The mean of every person's own finite numbers, by themselves; NaN for people without one."""
    used = (whose >= 0) & np.isfinite(x)
    order = np.flatnonzero(used)[np.argsort(whose[used], kind="stable")]
    people = int(whose.max(initial=-1)) + 1
    means = np.full(people, np.nan)
    if len(order):
        starts = np.flatnonzero(np.r_[True, np.diff(whose[order]) > 0])
        for rows in np.split(order, starts[1:]):
            means[whose[rows[0]]] = x[rows].mean()
    return means
