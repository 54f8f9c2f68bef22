"""Opened tables, and the declared types of their columns, which do not depend on rows."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, final

import narwhals as nw

from ...errors import DataError
from .as_read import AsRead
from .columns import arrow_of
from .declared import TASK, check_present, column_names, is_untyped
from .frames import Frame, changed_columns, guarded, open_both, sql, text_columns
from .lines import Lines
from .values import Form

_NO_VALUES = ("null", "void")  # names of types for columns that hold only nulls
_OF_ANY_VALUE = ("variant", "json")  # names of types that hold values of any type
Types: TypeAlias = Mapping[str, nw.dtypes.DType]


@final
@dataclass(frozen=True, eq=False)
class Opened:
    """An open table, from which some requested columns are read.

    Attributes:
        frame: a narwhals frame.
        names: the names of all columns.
        types: the types of the requested columns.
        text: the requested columns that are text because no type is declared for them.
        untyped: whether the types of columns may depend on rows.
        changed: {requested column: replacement}, where text is replaced before it is read.
        lines: the text of all columns without replacements, if arrow reads it.
    """

    frame: Frame
    names: Sequence[str]
    types: Types
    text: Collection[str]
    untyped: bool
    changed: Mapping[str, AsRead] = field(default_factory=dict)
    lines: Lines | None = None

    @property
    def engine(self) -> nw.Implementation:
        """The library that holds the table."""
        return self.frame.implementation

    @property
    def comes_here(self) -> bool:
        """Whether the columns are read in this process, rather than counted by another engine."""
        lazy = (nw.Implementation.DUCKDB, nw.Implementation.POLARS, nw.Implementation.DASK)
        return isinstance(self.frame, nw.DataFrame) or self.engine in lazy

    def form(self, column: str) -> Form:
        """Return the form of a column's values: text, typed or untyped (:class:`.Form`)."""
        if self.untyped:
            return Form.UNTYPED
        return Form.TEXT if column in self.text else Form.TYPED

    def as_written(self, column: str, value: object) -> object:
        """Return a value as it stands in the table's files: the inverse of :meth:`as_read`."""
        if column not in self.changed or not isinstance(value, str):
            return value
        return self.changed[column].written(value)

    def as_read(self, column: str, text: str) -> str:
        """Return the text that replaces a file's text before it is read as a value."""
        return self.changed[column].text(text) if column in self.changed else text


def opened(table: object, wanted: Types, person: str | None = None) -> Opened:
    """Open a table, to read some of its columns.

    Args:
        table: as for :func:`gaussnoise.tables.reading.frames.open_table`.
        wanted: {column: type}. A column that holds only nulls and has no type gets this type. If it
            is a type of numbers or dates, text in the column is read as such, with the decimal mark
            or the date format of the file. Where numbers have labels, the numbers are read.
        person: the column in ``wanted`` that names the person of each row.

    Raises:
        DataError: a column that is missing, or of a type that is not read.
    """
    numbers = [name for name, dtype in wanted.items() if dtype.is_numeric()]
    dates = [name for name, dtype in wanted.items() if dtype.is_temporal()]
    frame, lines = open_both(table, numbers, dates)
    engine = frame.implementation
    untyped = is_untyped(frame)

    def columns() -> tuple[Sequence[str], Types]:
        names = column_names(frame)
        there = [name for name in wanted if name in names]
        if untyped:
            return names, _types_in_pandas(frame, there)
        return names, dict(_selected(frame, there).collect_schema()) if there else {}

    names, types = guarded(TASK, columns, engine=engine)
    check_present(table, list(wanted), names)
    text = text_columns(table, names)
    if not untyped:
        frame, types, text = guarded(
            TASK, lambda: _declared(frame, types, text, wanted, person), engine=engine
        )
    changed = changed_columns(table, numbers, dates)
    return Opened(frame, names, types, frozenset(text), untyped, changed, lines)


def _selected(frame: Frame, names: Sequence[str]) -> Frame:
    """Return the frame with these columns only."""
    if frame.implementation != nw.Implementation.DUCKDB:
        return frame.select(*names)
    # for narwhals' own expressions, newer versions of duckdb compare each with all columns
    return nw.from_native(frame.to_native().project(", ".join(map(sql, names))))


def _types_in_pandas(frame: Frame, names: Sequence[str]) -> Types:
    """Return {column: type} of a pandas or dask frame; Object where narwhals fails."""
    try:
        return dict(frame.select(*names).collect_schema()) if names else {}
    except Exception:  # noqa: BLE001 (objects of any kind may raise any error)
        if len(names) == 1:
            return {names[0]: nw.Object()}
    return {name: own for one in names for name, own in _types_in_pandas(frame, [one]).items()}


def _declared(
    frame: Frame, types: Types, text: Sequence[str], wanted: Types, person: str | None
) -> tuple[Frame, Types, Sequence[str]]:
    """Return the frame with types that can be read, these types, and the names of text columns."""
    kinds = {name: _type_in_engine(frame, name) for name, t in types.items() if t == nw.Unknown}
    if frame.implementation == nw.Implementation.DUCKDB:  # narwhals reports duckdb's JSON as text
        native = frame.to_native()
        pairs = zip(native.columns, native.types, strict=True)
        kinds |= {name: "json" for name, kind in pairs if name in types and str(kind) == "JSON"}
    for name, kind in kinds.items():
        # persons in a variant column are refused: different values may have the same text
        if kind not in (*_NO_VALUES, *_OF_ANY_VALUE, "uuid") or (name, kind) == (person, "variant"):
            zoned = "tz" in kind or "zone" in kind
            readable = "local times without a time zone" if zoned else "text or numbers"
            raise _unreadable(name, kind, readable)
    # columns that hold only nulls and have no type get the wanted one
    own = {name: wanted[name] for name, kind in kinds.items() if kind in _NO_VALUES}
    if own:
        casts = (nw.col(name).cast(dtype).alias(name) for name, dtype in own.items())
        frame = frame.with_columns(*casts)
    # columns with values of any type (JSON, variant) become text
    words = [name for name, kind in kinds.items() if kind in (*_OF_ANY_VALUE, "uuid")]
    for name in words:
        frame = _as_text(frame, name)
    text = [*text, *(name for name in words if kinds[name] != "uuid")]
    return frame, {**types, **own, **dict.fromkeys(words, nw.String())}, text


def _type_in_engine(frame: Frame, name: str) -> str:
    """Return the name that the frame's engine has for the type of a column, without parameters."""
    native = frame.to_native()
    if frame.implementation == nw.Implementation.DUCKDB:
        kind = native.types[native.columns.index(name)]
    elif frame.implementation == nw.Implementation.POLARS:
        kind = native.collect_schema()[name]
    elif frame.implementation == nw.Implementation.PYARROW:
        kind = native.schema.field(name).type
        kind = getattr(kind, "extension_name", kind)  # its name, for arrow.json
    elif frame.implementation == nw.Implementation.IBIS:
        kind = native.schema()[name]
        kind = re.sub(r"unknown\(.*kind=", "", str(kind))
    else:
        kind = native.schema[name].dataType.typeName()
    found = re.match(r"[\w ]+", str(kind).strip('"').lower().removeprefix("arrow."))
    return found[0].strip() if found else "unknown"


def _as_text(frame: Frame, name: str) -> Frame:
    """Return the frame with one of its columns converted to text."""
    native = frame.to_native()
    if frame.implementation == nw.Implementation.DUCKDB:
        return nw.from_native(
            native.project(f"* REPLACE (CAST({sql(name)} AS VARCHAR) AS {sql(name)})")
        )
    if frame.implementation == nw.Implementation.PYARROW:
        import pyarrow as pa

        place, values = native.schema.get_field_index(name), native[name]
        if values.type.extension_name == "arrow.uuid":
            words = [None if value is None else str(value) for value in values.to_pylist()]
            column = pa.array(words, pa.large_string())
        else:
            column = arrow_of(frame[name]).cast(pa.large_string())
        return nw.from_native(native.set_column(place, name, column), eager_only=True)
    raise _unreadable(name, _type_in_engine(frame, name), "text")


def _unreadable(name: str, kind: str, readable: str) -> DataError:
    """Return the error of a column whose type cannot be read; ``readable`` is one that can."""
    return DataError(
        f"column {name!r}: expected a type that can be read, got {kind}; hint: cast it to "
        f"{readable}, before"
    )
