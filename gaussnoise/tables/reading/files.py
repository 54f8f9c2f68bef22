"""The files of a table: one file, several, those of a pattern, or a folder of Parquet."""

import glob
import os
from typing import Any

from ...errors import DataError
from ..schema.dialect import USUAL, Dialect, Files
from .office import is_office

PACKED = (".gz", ".xz", ".zst")
_TEXT = (".csv", ".tsv", ".zip")
_PARQUET = (".parquet", ".pq")


def written_in(table: object, dialect: Dialect) -> object:
    """Return the table with this dialect for its files.

    Files that have a stated dialect keep it, and a table that is no file is returned unchanged.
    """
    return table if isinstance(table, Files) or not is_path(table) else Files(table, dialect)


def dialect_of(table: object) -> Dialect:
    """Return the dialect (delimiter, quote, encoding, …) in which a table's files are read."""
    return table.dialect if isinstance(table, Files) else USUAL


def is_path(table: object) -> bool:
    """Return whether a table is given as the path of a file, or as a list of paths."""
    table = _given(table)
    if isinstance(table, list | tuple):
        return bool(table) and all(isinstance(path, str | os.PathLike) for path in table)
    return isinstance(table, str | os.PathLike)


def is_csv(table: object) -> bool:
    """Return whether a table's files, by their names, have columns that are read as text.

    These are CSV or TSV, perhaps compressed, or files that :mod:`.office` reads.
    """
    if not is_path(table):
        return False
    try:
        names = table_files(table)
    except DataError:  # the function that opens them raises the error
        names, _ = _paths(table)
    return all(_is_text(name.lower()) for name in names)


def _given(table: object) -> object:
    return table.paths if isinstance(table, Files) else table


def _paths(table: object) -> tuple[list[str], bool]:
    """Return the given paths as a list of strings, and whether they were given as a list."""
    given: Any = _given(table)
    several = isinstance(given, list | tuple)
    return [os.fspath(path) for path in (given if several else [given])], several


def _is_text(name: str) -> bool:
    bare = next((name.removesuffix(end) for end in PACKED if name.endswith(end)), name)
    return bare.endswith(_TEXT) or is_office(name)


def is_parquet(path: str) -> bool:
    """Return whether the file's name has the ending of a Parquet file."""
    return path.lower().endswith(_PARQUET)


def table_files(table: object) -> list[str]:
    """Return the distinct files of a table, sorted within a pattern or a folder.

    An existing file is taken by its name, even if this looks like a pattern. A folder means all
    Parquet files at any depth, without names that begin with a dot or an underscore.

    Raises:
        DataError: there are no files, or one file occurs twice.
    """
    paths, several = _paths(table)
    # messages do not quote entries of a list, which may be data by mistake
    said = [f"entry {k} of the list" for k in range(1, len(paths) + 1)] if several else paths
    files = [file for path, name in zip(paths, said, strict=True) for file in _files_of(path, name)]
    # duckdb would expand ~ to the home directory
    files = [os.path.join(os.curdir, file) if file.startswith("~") else file for file in files]
    if len({os.path.realpath(file) for file in files}) < len(files):
        raise DataError("table: expected distinct files, got one twice: its rows would count twice")
    return files


def _files_of(path: str, name: str) -> list[str]:
    if os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        below = glob.iglob(os.path.join(glob.escape(path), "**"), recursive=True)
        files = [file for file in below if is_parquet(file) and os.path.isfile(file)]
        files = [file for file in files if not _hidden(os.path.relpath(file, path))]
        if not files:
            raise DataError(
                f"table: no Parquet files in {name}; hint: for CSV files a pattern: folder/*.csv"
            )
        return sorted(files)
    if os.path.exists(path):  # opening a pipe, a socket or a device may never return
        raise DataError(f"table: {name} is not a regular file; hint: copy what it gives to a file")
    files = sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
    if not files:
        raise DataError(f"table: no such file: {name}")
    return files


def _hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split(os.sep))


def partition_columns(table: object, files: list[str]) -> list[str]:
    """Return the columns that folder names state, as in ``sales/year=2024/part-0.parquet`` (Hive).

    For a folder, these are the names below it; for patterns and lists, those that all files have.

    Raises:
        DataError: the names differ between files of a folder.
    """
    paths, several = _paths(table)
    folder = not several and os.path.isdir(paths[0])
    root = paths[0] if folder else os.curdir
    columns = {keys_of(os.path.relpath(file, root) if folder else file) for file in files}
    names = next(iter(columns))
    if len(columns) == 1 and len(set(names)) == len(names):
        return list(names)
    if not folder:
        return []
    raise DataError(
        f"table: expected the same partitions, like year=2024, above every file in {root}"
    )


def keys_of(path: str) -> tuple[str, ...]:
    """Return the names of columns in a path's folders: ``year`` for a folder ``year=2024``."""
    return tuple(p.partition("=")[0] for p in path.split(os.sep)[:-1] if "=" in p)


def state_of(table: object) -> object:
    """Return name, size and modification time of each of the table's files.

    A change of these shows that files changed. Return None if the table is not in files.
    """
    if not is_path(table):
        return None
    try:
        stats = [(file, os.stat(file)) for file in table_files(table)]
    except (OSError, DataError):
        return None  # the function that opens them raises the error
    return [(file, status.st_size, status.st_mtime_ns) for file, status in stats]
