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
    """Return the table; its files get this dialect unless they have one."""
    return table if isinstance(table, Files) or not is_path(table) else Files(table, dialect)


def dialect_of(table: object) -> Dialect:
    """Return the dialect of a table's files."""
    return table.dialect if isinstance(table, Files) else USUAL


def is_path(table: object) -> bool:
    """Return whether a table is given by the paths of its files."""
    table = _paths(table)
    if isinstance(table, list | tuple):
        return bool(table) and all(isinstance(path, str | os.PathLike) for path in table)
    return isinstance(table, str | os.PathLike)


def is_csv(table: Any) -> bool:
    """Return whether the names of a table's files say that all columns are read as text.

    These are CSV or TSV, maybe compressed, or the files that :mod:`.office` reads.
    """
    if not is_path(table):
        return False
    try:
        names: list[Any] = table_files(table)
    except DataError:  # the function that opens them raises the error
        paths = _paths(table)
        names = list(paths) if isinstance(paths, list | tuple) else [paths]
    return all(_is_text(os.fspath(name).lower()) for name in names)


def _paths(table: Any) -> Any:
    return table.paths if isinstance(table, Files) else table


def _is_text(name: str) -> bool:
    bare = next((name.removesuffix(end) for end in PACKED if name.endswith(end)), name)
    return bare.endswith(_TEXT) or is_office(name)


def is_parquet(path: str) -> bool:
    """Return whether a file's name says that it is Parquet."""
    return path.lower().endswith(_PARQUET)


def table_files(table: Any) -> list[str]:
    """Return the files of a table, each once, sorted within a pattern or a folder.

    The name of an existing file is that file, even if it has characters of a pattern. Of a folder,
    these are all Parquet files in it and below, without names that begin with a dot or an
    underscore.

    Raises:
        DataError: there are none, or one of them twice.
    """
    table = _paths(table)
    several = isinstance(table, list | tuple)
    paths = [os.fspath(path) for path in (table if several else [table])]
    # a list that was meant as data must not be quoted
    said = [f"entry {k} of the list" for k in range(1, len(paths) + 1)] if several else paths
    files = [file for path, name in zip(paths, said, strict=True) for file in _files_of(path, name)]
    # duckdb expands ~ to the home directory
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
    if os.path.exists(path):  # opening a pipe, a socket or a device might wait forever
        raise DataError(f"table: {name} is not a regular file; hint: copy what it gives to a file")
    files = sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
    if not files:
        raise DataError(f"table: no such file: {name}")
    return files


def _hidden(path: str) -> bool:
    return any(part.startswith(("_", ".")) for part in path.split(os.sep))


def partition_columns(table: object, files: list[str]) -> list[str]:
    """Return the columns in folder names, as in ``sales/year=2024/part-0.parquet`` (Hive).

    For a folder, these are the names below it; for patterns and lists, those that all files have.

    Raises:
        DataError: they differ between files of a folder.
    """
    place: Any = _paths(table)
    folder = isinstance(place, str | os.PathLike) and os.path.isdir(place)
    root = os.fspath(place) if folder else os.curdir
    columns = {keys_of(os.path.relpath(file, root) if folder else file) for file in files}
    names = next(iter(columns))
    if len(columns) == 1 and len(set(names)) == len(names):
        return list(names)
    if not folder:
        return []
    raise DataError(
        f"table: expected the same partitions, like year=2024, above every file in {place}"
    )


def keys_of(path: str) -> tuple[str, ...]:
    """Return the keys in the folder names of a path: ``year`` for ``year=2024``."""
    return tuple(p.partition("=")[0] for p in path.split(os.sep)[:-1] if "=" in p)


def state_of(table: object) -> object:
    """Return names, sizes and modification times of a table's files; None if it is in no file."""
    if not is_path(table):
        return None
    try:
        stats = [(file, os.stat(file)) for file in table_files(table)]
    except (OSError, DataError):
        return None  # the function that opens them raises the error
    return [(file, status.st_size, status.st_mtime_ns) for file, status in stats]
