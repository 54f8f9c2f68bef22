"""The names of a table's columns, which are public, found without reading its rows.

Ledgers and streams check that the columns they need exist before they record that they read a
table. No message quotes the first line of a file: it is a record if column names are missing.
"""

from collections.abc import Iterable, Sequence

import narwhals as nw

from ...errors import DataError
from ...text import near
from ..schema.dialect import hint as way
from .csv import csv_names
from .files import dialect_of, is_csv, is_path, table_files
from .frames import Frame, check_opens, guarded, open_table
from .office import is_office, office_names

TASK = "read the table's columns"
_MOST_NAMES = 8  # most names in a message


def check_columns(table: object, wanted: Iterable[str | None]) -> None:
    """Refuse a table that cannot be opened or lacks a column, without reading its rows.

    Tables whose rows may influence the names of columns are accepted: reading them raises the
    error.

    Args:
        table: as for :func:`gaussnoise.tables.reading.frames.open_table`.
        wanted: names of columns; None is ignored.

    Raises:
        DataError: the table cannot be opened, or a column is missing.
    """
    check_opens(table)
    names = _declared_names(table)
    if names is not None:
        check_present(table, [name for name in wanted if name is not None], names)


def check_present(table: object, wanted: Sequence[str], names: Sequence[str]) -> None:
    """Raise DataError if a wanted column is not among ``names``, the columns of a table."""
    wanted = list(dict.fromkeys(wanted))
    missing = [name for name in wanted if name not in names]
    if not missing:
        return
    hint, place = near(missing[0], names), ""
    if is_csv(table):
        known = {name.strip().casefold() for name in names}
        hint = "; hint: names as the file's first line has them"
        if missing[0].strip().casefold() in known:
            hint += f": there, {missing[0]!r} has other capitals or blanks"
        elif missing == wanted:
            hint += f"; for lines before the column names, {way(skip=2)}"
    if is_path(table) and len(files := table_files(table)) == 1:
        place = f" in {files[0]}"
    are = "is" if len(missing) == 1 else "are"
    raise DataError(
        f"table: expected columns {_listed(wanted)}, found other columns{place}: {len(missing)} of "
        f"{len(wanted)} expected ones {are} missing: {_listed(missing)}{hint}"
    )


def _listed(names: Sequence[str]) -> str:
    more = f", … ({len(names)})" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(repr, names[:_MOST_NAMES])) + more


def is_untyped(frame: Frame) -> bool:
    """Return whether the types of a frame's columns may depend on rows (pandas and dask)."""
    engine = frame.implementation
    return engine.is_pandas_like() or engine == nw.Implementation.DASK


def column_names(frame: Frame) -> Sequence[str]:
    """Return the names of a frame's columns, without reading rows."""
    return list(frame.columns) if is_untyped(frame) else frame.collect_schema().names()


def _declared_names(table: object) -> Sequence[str] | None:
    """Return the names of a table's columns, or None if its rows may influence them."""
    if is_csv(table):
        files = table_files(table)
        own = dialect_of(table)
        return office_names(files, own.skip) if is_office(files[0]) else csv_names(files, own)
    frame = open_table(table)
    try:
        return guarded(TASK, lambda: column_names(frame), engine=frame.implementation)
    except DataError:
        # the engine may have read rows to find the names
        return None
