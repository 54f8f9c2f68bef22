"""The list of the files that ticks have counted, so that no file is counted twice by mistake.

A file is recognised by its path or its inode number, together with its size and time of change. Its
content is never used. The list itself is a file that only the owner can read; no published number
depends on it.
"""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..files.disk import read_json
from ..tables.reading.files import is_path, table_files

_NOTE = "files.json"
_MOST_BYTES = 2**27
_File = tuple[str, int, int, int]  # path, inode, size, nanoseconds of the last change


def counted_before(private: Path, tick: int, table: object) -> dict[str, int]:
    """Return {path: earlier tick} for the files of a table that an earlier tick counted.

    Args:
        private: the folder that holds the list of counted files.
        tick: the number of the new tick.
        table: the new rows; rows that do not come from files are never recognised.
    """
    before = {t: files for t, files in _read(private / _NOTE).items() if t < tick}
    seen = {name: t for t, files in before.items() for file in files for name in _keys_of(file)}
    return {
        file[0]: seen[name] for file in _files_of(table) for name in _keys_of(file) if name in seen
    }


def noted(private: Path, tick: int, table: object) -> None:
    """Add the files from which a tick's table is read to the list of counted files.

    Raises:
        OSError: the list cannot be written.
    """
    note, files = private / _NOTE, _files_of(table)
    if files or note.exists():
        before = {t: files for t, files in _read(note).items() if t < tick}
        _write(note, {**before, tick: files})


def _keys_of(file: _File) -> list[tuple[str | int, ...]]:
    """Return two keys of a file: one contains its path, the other its inode number."""
    # a moved file keeps its inode number; a file that is copied and put back keeps its path
    path, inode, size, time = file
    return [("path", path, size, time), ("inode", inode, size, time)]


def _files_of(table: object) -> list[_File]:
    """Return (path, inode, size, time of the last change) of every file of a table."""
    found = []
    with contextlib.suppress(OSError, DataError):  # reported when the rows are read
        for path in table_files(table) if is_path(table) else ():
            status = os.stat(path)
            where = os.path.abspath(path)
            found.append((where, status.st_ino, status.st_size, status.st_mtime_ns))
    return found


def _read(note: Path) -> dict[int, list[Any]]:
    """Return {tick: files that the tick counted} from ``note``; {} if it is missing or damaged."""
    try:
        content = read_json(note, _MOST_BYTES)
        return {int(t): [(str(path), *map(int, of)) for path, *of in content[t]] for t in content}
    except (OSError, ValueError, TypeError, LookupError):
        return {}


def _write(note: Path, content: Mapping[int, Sequence[_File]]) -> None:
    """Replace the list of counted files in one step, by a file that only its owner can read."""
    scratch = note.with_suffix(".partial")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        json.dump(content, file)
    scratch.replace(note)
