"""Columns of numbers from a table, with the group of every row."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..tables.reading.batches import batches, joined, number_form
from ..tables.reading.codes import code_of
from ..tables.reading.columns import number_column
from ..tables.reading.csv import FORM
from ..tables.reading.files import is_csv
from ..tables.reading.frames import guarded, type_name
from ..tables.reading.opened import TASK, Opened, opened
from ..tables.reading.persons import check_person_type, no_person, people_of
from ..tables.reading.types import WORDS, check_type, own_type
from ..tables.schema.schema import Attribute, OnOutside
from .samples import exact_mean

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of each column, with NaN for none, and the group of each row, or −1.

    Attributes:
        columns: arrays of shape (rows,), or (people,).
        cells: the groups of the rows, shape (rows,).
        groups: for every group, the category by grouping column.
    """

    columns: Mapping[str, Array]
    cells: NDArray[np.int64]
    groups: tuple[Mapping[str, object], ...]

    def of(self, column: str) -> tuple[Array, NDArray[np.int64]]:
        """Return the finite numbers of a column whose rows are in a group, and these groups."""
        x = self.columns[column]
        inside = np.isfinite(x) & (self.cells >= 0)
        return x[inside], self.cells[inside]


def read_numbers(
    table: object,
    columns: Sequence[str],
    by: Mapping[str, Sequence[Any]],
    person: str | None,
    on_outside: OnOutside = "drop",
) -> Numbers:
    """Read the columns of a table into memory.

    With ``person``, a person's number is the mean of their own finite numbers; rows without a
    person are left out.

    Raises:
        DataError: a column is missing, or is neither numbers nor text; with "refuse", also a row
            without a finite number, a listed category or a person.
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
    named = [*(attribute.name for attribute in attributes), *([] if person is None else [person])]

    def read() -> Numbers:
        numbers: list[list[Array]] = [[] for _ in columns]
        cells: list[NDArray[np.int64]] = []
        persons: list[nw.Series[Any]] = []
        for batch in batches(source, columns, named):
            for k, (name, own) in enumerate(zip(columns, batch, strict=False)):
                numbers[k].append(number_column(own, number_form(source, name)))
            grouped = zip(attributes, batch[len(columns) :], strict=False)
            cells.append(_cells(source, grouped, len(batch[0])))
            persons.append(batch[-1])
        whole = {name: np.concatenate(x) for name, x in zip(columns, numbers, strict=True)}
        found = Numbers(whole, np.concatenate(cells), groups)
        if on_outside == "refuse":
            _check_inside(found)
        if person is None:
            return found
        index = people_of(joined(persons), source.form(person)).index
        if on_outside == "refuse" and (index < 0).any():
            raise no_person(person)
        means = {name: _by_person(x, index) for name, x in whole.items()}
        people = int(index.max(initial=-1)) + 1
        return Numbers(means, np.zeros(people, dtype=np.int64), groups)

    return guarded(TASK, read, hint, engine=source.engine)


def _check_inside(found: Numbers) -> None:
    """Raise DataError for a row without a finite number, or without a listed category."""
    names = [name for name, x in found.columns.items() if not np.isfinite(x).all()]
    if names or (found.cells < 0).any():
        rule = f"column {names[0]!r}: expected only finite numbers" if names else ""
        raise DataError(
            f"{rule or 'by: expected only listed categories'}, got a null or another value; hint: "
            'correct the table, or on_outside="drop" to leave such rows out'
        )


def _cells(
    source: Opened, grouped: Iterable[tuple[Attribute, nw.Series[Any]]], rows: int
) -> NDArray[np.int64]:
    """Return the group of every row, or −1."""
    cells = np.zeros(rows, dtype=np.int64)
    for attribute, own in grouped:
        codes = code_of(source, attribute, own).astype(np.int64)
        cells = np.where((cells >= 0) & (codes > 0), cells * attribute.size + codes - 1, -1)
    return cells


def _checked(
    source: Opened, columns: Sequence[str], by: Sequence[Attribute], person: str | None
) -> list[Attribute]:
    """Return the grouping attributes with categories of the columns' types; refuse other types.

    Raises:
        DataError: a type does not fit.
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
    """Return the attribute with categories of the column's type, if they or the column are text."""
    texts = [str(value) for value in attribute.categories or ()]
    if dtype in WORDS:
        return Attribute(attribute.name, texts)
    truth = {"true": True, "false": False}
    if dtype == nw.Boolean and all(text.lower() in truth for text in texts):
        return Attribute(attribute.name, [truth[text.lower()] for text in texts])
    if not dtype == nw.Boolean and all(text.lstrip("-").isdecimal() for text in texts):
        return Attribute(attribute.name, [int(text) for text in texts])
    return attribute


def _by_person(x: Array, person_of_row: NDArray[np.int64]) -> Array:
    """Return the mean of every person's own finite numbers; NaN for people without one."""
    used = (person_of_row >= 0) & np.isfinite(x)
    order = np.flatnonzero(used)[np.argsort(person_of_row[used], kind="stable")]
    people = int(person_of_row.max(initial=-1)) + 1
    means = np.full(people, np.nan)
    if len(order):
        starts = np.flatnonzero(np.r_[True, np.diff(person_of_row[order]) > 0])
        for rows in np.split(order, starts[1:]):
            means[person_of_row[rows[0]]] = exact_mean(x[rows])
    return means
