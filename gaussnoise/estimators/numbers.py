"""Columns of numbers from any table, with the group of every row."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import DataError, ParameterError
from ..tables.counting.codes import code_column, doubles_of
from ..tables.reading.csv import FORM, text_number
from ..tables.reading.files import is_csv
from ..tables.reading.frames import guarded, open_table, sql, type_name
from ..tables.schema.schema import Attribute
from ..text import near

Array = NDArray[np.float64]

_TASK = "read the table's columns"
_MOST_GROUPS = 10_000


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
        ParameterError: no categories, or too many groups.
    """
    listed = [Attribute(name, list(values)) for name, values in by.items()]
    groups = tuple(
        dict(zip(by, values, strict=True))
        for values in itertools.product(*(a.categories or () for a in listed))
    )
    if not 1 <= len(groups) <= _MOST_GROUPS:
        raise ParameterError(
            f"column_means: expected 1 to {_MOST_GROUPS} groups, got {len(groups)}"
        )
    integers = [a.name for a in listed if isinstance((a.categories or ("",))[0], int)]
    frame = open_table(table, [*columns, *integers])
    engine = frame.implementation
    text = is_csv(table)
    types = guarded(_TASK, lambda: dict(frame.collect_schema()), engine=engine)
    wanted = [*columns, *by, *([person] if person is not None else [])]
    missing = sorted({name for name in wanted if name not in types})
    if missing:
        raise DataError(
            f"table: expected columns {', '.join(map(repr, missing))}, which are "
            f"missing{near(missing[0], types)}"
        )
    for name in columns:
        if not (types[name].is_numeric() or types[name] == nw.String):
            raise DataError(f"column {name!r}: expected numbers, got {type_name(types[name])}")
    attributes = [_as_written(attribute, types[attribute.name]) for attribute in listed]

    def collect() -> nw.DataFrame[Any]:
        # each column once, under a name of its own, whatever role it has
        names = list(dict.fromkeys(wanted))
        if text:
            relation: Any = frame.to_native()
            parts = [f"{text_number(sql(name))} AS x{k}" for k, name in enumerate(columns)]
            parts += [f"{sql(name)} AS g{k}" for k, name in enumerate(names)]
            return nw.from_native(relation.project(", ".join(parts))).collect("pyarrow")
        picked = [nw.col(name).alias(f"x{k}") for k, name in enumerate(columns)]
        picked += [nw.col(name).alias(f"g{k}") for k, name in enumerate(names)]
        return frame.lazy().select(*picked).collect("pyarrow")

    data = guarded(_TASK, collect, FORM if text else "", engine=engine)
    place = {name: f"g{k}" for k, name in enumerate(dict.fromkeys(wanted))}
    numbers = {
        name: guarded(_TASK, lambda k=k: _floats(data[f"x{k}"])) for k, name in enumerate(columns)
    }
    rows = len(data)
    cells = np.zeros(rows, dtype=np.int64)
    for attribute in attributes:
        codes = (
            guarded(_TASK, lambda a=attribute: code_column(data[place[a.name]], a)).astype(np.int64)
            - 1
        )
        cells = np.where((cells >= 0) & (codes >= 0), cells * attribute.size + codes, -1)
    if person is None:
        return Numbers(numbers, cells, groups)
    whose, known = guarded(_TASK, lambda: _labels(data[place[person]]))
    means = {name: _by_person(x, whose, known) for name, x in numbers.items()}
    people = int(whose.max(initial=-1)) + 1
    return Numbers(means, np.zeros(people, dtype=np.int64), groups)


def _as_written(attribute: Attribute, dtype: nw.dtypes.DType) -> Attribute:
    """Categories as the column writes them: digits for text, integers for integers."""
    values: Any = attribute.categories or ()
    if dtype == nw.String and not isinstance(values[0], str):
        return Attribute(
            attribute.name,
            [str(value).lower() if isinstance(value, bool) else str(value) for value in values],
        )
    if dtype.is_integer() and all(
        isinstance(value, str) and value.lstrip("-").isdecimal() for value in values
    ):
        return Attribute(attribute.name, [int(value) for value in values])
    return attribute


def _floats(column: nw.Series[Any]) -> Array:
    """Numbers as floats; nulls and text that is no number as NaN."""
    import pyarrow as pa

    values: Any = column.to_arrow()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return np.array([_parsed(value) for value in values.to_pylist()], dtype=np.float64)
    return doubles_of(values)


def _parsed(text: str | None) -> float:
    try:
        return float(text) if text is not None and "_" not in text else np.nan
    except ValueError:
        return np.nan


def _labels(column: nw.Series[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """A number for every person, and which rows name one."""
    import pyarrow as pa

    values: Any = column.to_arrow()
    encoded: Any = pa.chunked_array(values).combine_chunks().dictionary_encode()
    known = encoded.indices.is_valid().to_numpy(zero_copy_only=False)
    return encoded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), known


def _by_person(x: Array, whose: NDArray[np.int64], known: NDArray[np.bool_]) -> Array:
    """The mean of every person's own finite numbers, by themselves; NaN for people without one."""
    used = known & np.isfinite(x)
    order = np.flatnonzero(used)[np.argsort(whose[used], kind="stable")]
    people = int(whose.max(initial=-1)) + 1
    means = np.full(people, np.nan)
    if len(order):
        starts = np.flatnonzero(np.r_[True, np.diff(whose[order]) > 0])
        for rows in np.split(order, starts[1:]):
            means[whose[rows[0]]] = x[rows].mean()
    return means
