"""The code of each value in some columns: 1 + the index of its category or bin, or 0.

Each value takes one look-up, for any number of cells.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, final

import narwhals as nw
import numpy as np

from ...errors import DataError, SchemaWarning
from ..schema.dates import is_dated
from ..schema.schema import Attribute, OnOutside, with_infinite
from .batches import batches, joined, number_form, parts
from .codes_lazy import coded_lazily
from .columns import Codes, code_column, distinct, objects_of_arrow, plain_type, wide_codes
from .dates import with_numbers
from .declared import TASK, is_untyped
from .frames import Column, Frame, Lazy, guarded, native_frame
from .opened import Opened, opened
from .persons import PERSON, People, check_engine, check_person_type, dask_person, people_of
from .types import check_type, is_number, is_wide, own_type
from .values import Form, confused

if TYPE_CHECKING:
    import pandas as pd

Batch = TypeVar("Batch")
Result = TypeVar("Result")


def open_for(
    table: object, attributes: Sequence[Attribute], person: str | None, drop: bool
) -> Opened:
    """Open a table whose columns hold attributes, and perhaps the person of each row.

    Raises:
        DataError: a column that is missing, or of a type that does not fit.
        ParameterError: ``person`` is given, and the engine has no window functions.
    """
    wanted = {a.name: own_type(a) for a in attributes}
    source = opened(table, ({} if person is None else {person: nw.Int64()}) | wanted, person)
    if person is not None:
        check_engine(source.engine)
        if not source.untyped:
            check_person_type(person, source.types[person])
    for attribute in attributes:
        check_column(source, attribute, drop)
    return source


def check_column(source: Opened, attribute: Attribute, drop: bool) -> None:
    """Raise DataError for a column whose type cannot hold the values of its attribute.

    With ``drop`` (rows with values outside the schema are left out), more types are accepted.
    """
    name = attribute.name
    if source.untyped:
        list(_confused(source.frame, [attribute], drop))
    if name in source.text or (source.untyped and drop):
        return
    dtype = source.types[name]
    if isinstance(frame := source.frame, nw.DataFrame):
        dtype = guarded(TASK, lambda: plain_type(frame[name], dtype))
    try:
        check_type(attribute, dtype, drop)
    except DataError:
        if not guarded(TASK, lambda: _is_missing(source, name)):
            raise


def _is_missing(source: Opened, column: str) -> bool:
    """Return whether a pandas column holds only nulls, so that every declared type fits."""
    if not (source.untyped and isinstance(source.frame, nw.DataFrame)):
        return False
    own = source.frame.to_native()[column]
    return bool(own.isna().all()) and (len(own) > 0 or own.dtype == object)


def check_categories(table: object, attributes: Sequence[Attribute], on_outside: OnOutside) -> None:
    """Refuse categories that pandas confuses, by the schema and the types of columns alone.

    With "drop", categories that no row can have give a warning only.

    Raises:
        DataError: categories that are equal in a column whose type depends on its rows.
    """
    frame = native_frame(table)
    if isinstance(frame, nw.DataFrame | nw.LazyFrame) and is_untyped(frame):
        for problem in _confused(frame, attributes, on_outside == "drop"):
            warnings.warn(f"{problem}; no row counts as one of them", SchemaWarning, stacklevel=4)


def _confused(frame: Frame, attributes: Sequence[Attribute], drop: bool) -> Iterator[str]:
    """Yield messages on categories that pandas confuses; DataError if rows may have them."""
    for attribute in attributes:
        name = attribute.name
        problem, harmless = confused(attribute)
        if problem is None or name not in frame.columns:
            continue
        text = (
            f"column {name!r}: expected categories that pandas can tell apart, where rows decide "
            f"on the type of a column, got {problem}; hint: give the path of the file, or a table "
            "of polars or pyarrow"
        )
        if not (harmless and drop):
            raise DataError(text)
        yield text


@final
@dataclass(frozen=True, eq=False)
class Streamed(Generic[Batch]):
    """Rows of a table in batches. Each iteration over this object reads the table again."""

    engine: nw.Implementation
    read: Callable[[], Iterator[Batch]]

    def __iter__(self) -> Iterator[Batch]:
        return self.read()


Batches: TypeAlias = list[Batch] | Streamed[Batch]
Coded: TypeAlias = Batches[list[Codes]]  # each batch has a column for every attribute


def each(change: Callable[[Batch], Result], rows: Batches[Batch]) -> Batches[Result]:
    """Return batches with the results of ``change`` for each of the given batches.

    For :class:`Streamed`, ``change`` is called in each iteration.
    """
    if isinstance(rows, list):
        return list(map(change, rows))
    return Streamed(rows.engine, lambda: map(change, rows))


def code_rows(
    source: Opened, attributes: Sequence[Attribute], person: str | None
) -> tuple[Coded, People | None] | Lazy:
    """Return the codes of all rows, and the person of each row.

    Codes are small integers: 1 + the cell of each value, or 0 if there is no cell; for a clipped
    number, 1 + its steps. The result has batches of one column per attribute, and the persons of
    all batches; or columns c0, c1, … and :data:`PERSON` if another engine holds the rows.
    """
    frame, types = source.frame, source.types
    if isinstance(frame, nw.DataFrame):
        people = None if person is None else people_of(frame[person], source.form(person))
        return [[code_of(source, a, frame[a.name]) for a in attributes]], people
    if source.engine == nw.Implementation.DASK:
        return _dask(source, attributes, person)
    if source.engine in (nw.Implementation.DUCKDB, nw.Implementation.POLARS):
        return _streamed(source, attributes, person)
    numbered, attributes, types = with_numbers(frame, attributes, types)
    return coded_lazily(numbered, attributes, types, person)


def _streamed(
    source: Opened, attributes: Sequence[Attribute], person: str | None
) -> tuple[Coded, People | None]:
    """Return the codes of the attributes, and the persons, of a table that is read in batches."""
    order = sorted(range(len(attributes)), key=lambda k: not _is_double(source, attributes[k]))
    ordered = [attributes[k] for k in order]
    numbers = [a.name for a in ordered if _is_double(source, a)]
    others = [a.name for a in ordered[len(numbers) :]] + ([] if person is None else [person])

    def coded(batch: Sequence[Column]) -> list[Codes]:
        own = dict(zip(order, batch, strict=False))
        return [code_of(source, a, own[k]) for k, a in enumerate(attributes)]

    rows = Streamed(source.engine, lambda: iter(batches(source, numbers, others)))
    if person is None:
        return each(coded, rows), None
    # one person's rows may be in several batches, so that all codes are kept in memory
    parts, persons = zip(*((coded(batch), batch[-1]) for batch in rows), strict=True)
    codes = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return [codes], people_of(joined(persons), source.form(person))


def _is_double(source: Opened, attribute: Attribute) -> bool:
    """Return whether an attribute's column is read as doubles."""
    if not is_number(attribute) or is_dated(attribute.edges):
        return False
    # 128-bit integers with bins are read exactly
    return attribute.is_summed or not is_wide(source.types[attribute.name])


def code_of(source: Opened, attribute: Attribute, column: Column) -> Codes:
    """Return the codes of the attribute's values in one batch of rows of its column.

    A code is 1 + the index of the value's category or bin, or 0 if there is none.
    """
    if _is_double(source, attribute):
        return code_column(column, attribute, number_form(source, attribute.name))
    if is_wide(source.types[attribute.name]):
        return wide_codes(column, attribute)
    return code_column(column, attribute, source.form(attribute.name))


def _dask(source: Opened, attributes: Sequence[Attribute], person: str | None) -> Lazy:
    # attributes without their bases, which a worker does not need
    plain = []
    for a in attributes:
        own = Attribute(
            a.name,
            a.categories,
            edges=a.edges,
            other=a.other,
            clip=a.clip,
            missing=a.missing,
            spellings=a.spellings,
            unit=a.unit,
        )
        plain.append(with_infinite(own) if a.has_infinite else own)
    needed = [*(a.name for a in attributes), *([person] if person else [])]
    forms = {name: source.form(name) for name in needed}
    native = source.frame.to_native()[list(forms)]
    meta = _partition(native._meta, plain, person, forms)
    return nw.from_native(native.map_partitions(_partition, plain, person, forms, meta=meta))


def _partition(
    frame: "pd.DataFrame",
    attributes: Sequence[Attribute],
    person: str | None,
    forms: Mapping[str, Form],
) -> "pd.DataFrame":
    """Return the codes in a partition of a dask dataframe, and the persons in column ``person``."""
    import pandas as pd

    wrapped = nw.from_native(frame, eager_only=True)
    codes: dict[str, np.ndarray] = {
        f"c{k}": code_column(wrapped[a.name], a, forms[a.name]) for k, a in enumerate(attributes)
    }
    if person is not None:
        codes[PERSON] = np.array(dask_person(wrapped[person], forms[person]), dtype=object)
    # dask aligns columns by the partition's own index
    return pd.DataFrame(codes, index=frame.index)


def values_outside(source: Opened, attribute: Attribute) -> Iterator[tuple[Any, int]]:
    """Yield (value, number of rows) for values that fit no category or bin of the attribute.

    A value may come several times. Values are Python objects, None for nulls: they are private
    data.
    """
    name = attribute.name
    if not source.comes_here:
        frame, [own], types = with_numbers(source.frame.lazy(), [attribute], source.types)
        coded = coded_lazily(frame, [own], types, None, [name]).filter(nw.col("c0") == 0)
        found = coded.group_by("x0").agg(nw.len().alias("n")).collect("pyarrow").to_native()
        yield from zip(objects_of_arrow(found["x0"]), found["n"].to_pylist(), strict=True)
        return
    form, wide = source.form(name), is_wide(source.types[name])
    for own in parts(source, name):
        codes = wide_codes(own, attribute) if wide else code_column(own, attribute, form)
        index, known = distinct(own, form)
        values = [None, *(map(int, known) if wide else known)]  # wide integers come as text
        rows = np.bincount(index[codes == 0] + 1, minlength=len(values)).tolist()
        yield from ((value, n) for value, n in zip(values, rows, strict=True) if n)
