"""Which files earlier ticks counted, so that the owner is warned when one of them comes again.

A file is known by its path or inode, with its size and time, never by what is in it. The note is
private, it tells the owner alone, and what is published does not depend on it.
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

_MOST_BYTES = 2**27
_File = tuple[str, int, int, int]  # path, inode, size, nanoseconds of the last change


def noted(private: Path, tick: int, table: object) -> dict[str, int]:
    """Note which files a tick's table is in.

    Args:
        private: the folder for it.
        tick: its number.
        table: the new rows; what is in no file is not known again.

    Returns:
        The paths of files that an earlier tick counted, and which tick that was.

    Raises:
        OSError: the note cannot be written.
    """
    note = private / "files.json"
    before = {t: files for t, files in _read(note).items() if t < tick}
    seen = {name: t for t, files in before.items() for file in files for name in _names(file)}
    files = _files_of(table)
    if files or note.exists():
        _write(note, {**before, tick: files})
    return {file[0]: seen[name] for file in files for name in _names(file) if name in seen}


def _names(file: _File) -> list[tuple[object, ...]]:
    """What a file is known by, also when it was moved, or its inode has another number now."""
    path, inode, size, time = file
    return [("path", path, size, time), ("inode", inode, size, time)]


def _files_of(table: object) -> list[_File]:
    """The files of a table, as they are now."""
    found = []
    with contextlib.suppress(OSError, DataError):  # whoever opens them says so
        for path in table_files(table) if is_path(table) else ():
            status = os.stat(path)
            where = os.path.abspath(path)
            found.append((where, status.st_ino, status.st_size, status.st_mtime_ns))
    return found


def _read(note: Path) -> dict[int, list[Any]]:
    """Files by ticks; none where the note is missing or damaged, since it only warns."""
    try:
        content = read_json(note, _MOST_BYTES)
        return {int(t): [(str(path), *map(int, of)) for path, *of in content[t]] for t in content}
    except (OSError, ValueError, TypeError, LookupError):
        return {}


def _write(note: Path, content: Mapping[int, Sequence[_File]]) -> None:
    """All of it or nothing, for the owner alone."""
    scratch = note.with_suffix(".partial")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        json.dump(content, file)
    scratch.replace(note)
