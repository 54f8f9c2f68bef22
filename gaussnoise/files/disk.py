"""Files and folders that are written completely or not at all, and readers with limits."""

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import CertificateError, OutputError, exists_already

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

MOST_RECORD = 2**24  # largest JSON record in bytes; reading it needs up to 25 times this memory
# On Linux, a path through this folder stays inside an open folder even if the folder is renamed.
_OPEN_FOLDERS = Path("/proc/self/fd")
RESULT = "result"  # name of the result in a scratch folder
RECORD, SIGNATURE = "release.json", "signature.json"  # the files that a record does not list
RECORDS = "stream.json", RECORD, "changes.json"  # one of these is in every published folder
# errors that may be raised while an object is built from an untrusted record
MALFORMED = (ValueError, LookupError, TypeError, ArithmeticError, AttributeError)
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)  # Windows never blocks when opening a file


class NotAFileError(OSError):
    """A pipe, a socket or a device was found where a file was expected."""


def opened(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Return an open regular file for reading; every untrusted path is opened by this function.

    Returns:
        The open file.

    Raises:
        OSError: the file cannot be read, or is not a regular one (opening a pipe might block).
    """
    name = os.fspath(path)  # an integer would be taken as an open file
    try:
        return open(name, "rb", opener=_regular)
    except ValueError:  # a null character in the path
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None


def _regular(path: str, flags: int) -> int:
    """Open a file, check that it is a regular file, and return its file descriptor."""
    handle = os.open(path, flags | _AT_ONCE)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise NotAFileError("not a regular file")


@contextmanager
def held(folder: Path) -> Iterator[Path]:
    """Yield a path to a folder. On Linux, this path is still valid after the folder is moved."""
    if not _OPEN_FOLDERS.is_dir():
        yield folder
        return
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield _OPEN_FOLDERS / str(handle)
    finally:
        os.close(handle)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Create and lock a folder that only this user may enter, and yield a path to it.

    The lock is held within the block; the operating system ends it when the program ends. Other
    users cannot put links into the folder.
    """
    folder.mkdir(mode=0o700)
    if not _OPEN_FOLDERS.is_dir():
        yield folder
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid not in (os.geteuid(), folder.parent.stat().st_uid):
            # Another user has put a folder there. On disks where all files belong to one user, the
            # parent folder also belongs to that user.
            raise PermissionError
        locked(handle)
        yield _OPEN_FOLDERS / str(handle)
    finally:
        os.close(handle)


def locked(handle: int, unknown: bool = False) -> bool:
    """Try to lock an open file, and return whether this program now has the lock.

    ``unknown`` is the answer where the system has no locks for files.
    """
    if fcntl is None:
        return unknown
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return unknown
    return True


@contextmanager
def exclusive_lock(file: Path, unknown: bool = True) -> Iterator[bool]:
    """Try to lock a file for the block, and yield whether this program has the lock.

    ``unknown`` is the answer where the system has no locks for files.

    Raises:
        FileNotFoundError: there is no such file.
    """
    handle = os.open(file, os.O_RDWR)
    try:
        yield locked(handle, unknown)
    finally:
        os.close(handle)


@contextmanager
def aside(target: Path, who: str = "save") -> Iterator[Path]:
    """Yield a path to which the block writes a file; after the block, it is renamed to ``target``.

    If the block fails, the file is removed. Before the block, unfinished files of killed programs
    for the same target are removed.
    """
    with held(target.parent) as parent:
        _clear(parent, target.name)
        scratch = parent / f".{target.name}.{secrets.token_hex(8)}.partial"
        try:
            with new_folder(scratch) as folder:
                yield folder / RESULT
                sync(folder / RESULT)
                publish(folder / RESULT, parent, target, who)
        finally:
            remove(scratch)


def _clear(parent: Path, name: str) -> None:
    """Remove unfinished files for ``name`` of programs that ended within :func:`aside`."""
    if not _OPEN_FOLDERS.is_dir():
        return
    left = re.compile(re.escape(f".{name}.") + r"[0-9a-f]{16}\.partial")
    with contextlib.suppress(OSError):
        for path in [path for path in parent.iterdir() if left.fullmatch(path.name)]:
            with contextlib.suppress(OSError):
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if locked(handle):
                        remove(path)
                finally:
                    os.close(handle)


def result_in(scratch: Path) -> Path:
    """Return the path of the finished file or folder inside a scratch folder.

    For results of older ledgers, the scratch folder itself is the result.
    """
    inner = scratch / RESULT
    return inner if os.path.lexists(inner) else scratch


def publish(scratch: Path | None, parent: Path, place: Path, who: str = "ledger") -> None:
    """Move a complete file or directory to its final name, and sync the folder of this name.

    Args:
        scratch: the file or directory to move, or None if it already has its final name.
        parent: the folder of the final path, as a path from :func:`held`.
        place: the final path, as the caller gave it.
        who: the name of the caller in messages.

    Raises:
        OutputError: the name exists or cannot be created, or its folder was moved.
    """
    named = parent / place.name
    try:
        if scratch is None:
            pass
        elif scratch.is_dir():
            # renaming would replace an empty directory
            if os.path.lexists(named):
                raise FileExistsError
            scratch.rename(named)
        else:
            os.link(scratch, named, follow_symlinks=False)
            scratch.unlink(missing_ok=True)
        sync(parent, deep=False)
        moved = not os.path.lexists(place) or not os.path.samestat(os.lstat(place), os.lstat(named))
    except FileExistsError:
        raise OutputError(
            f"{who}: {place} exists already; hint: move it away and run again"
        ) from None
    except OSError as error:
        raise OutputError(
            f"{who}: cannot create {place} ({type(error).__name__}); hint: run again"
        ) from None
    if moved:
        raise OutputError(
            f"{who}: {place.parent} was moved or replaced meanwhile; the result is in the folder "
            "that had this name"
        )


def sync(path: Path, deep: bool = True) -> None:
    """Sync a file, or a directory with all its content, to the disk."""
    if path.is_dir():
        for inner in path.iterdir() if deep else ():
            sync(inner)
        if os.name == "nt":  # Windows cannot sync directories
            return
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path: Path) -> None:
    """Remove a file, a link or a directory; do nothing if this fails."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def remove_at_once(folder: Path) -> None:
    """Rename a folder and remove it, so that other programs lose it in one step."""
    gone = folder.with_name(f"{folder.name}.{secrets.token_hex(8)}")
    with contextlib.suppress(OSError):
        folder.rename(gone)
    remove(gone)
    remove(folder)


def check_parent(place: Path, who: str) -> None:
    """Raise OutputError if a path exists already, or files cannot be created in its folder."""
    try:
        taken = _exists(place)
        writable = place.parent.is_dir() and os.access(place.parent, os.W_OK | os.X_OK)
    except (OSError, ValueError):
        taken, writable = False, False
    if taken:
        raise exists_already(who, place)
    if not writable:
        raise OutputError(
            f"{who}: cannot write to {place.parent}; hint: name a place inside an existing "
            "directory"
        )


def _exists(place: Path) -> bool:
    """Return whether a path exists, even as a broken link; raise OSError if this is unknown."""
    try:
        place.lstat()
    except FileNotFoundError:
        return False
    return True


def file_digest(path: Path) -> str:
    """Return the sha256 of a regular file, which is read in chunks."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def save_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a new text file completely; after any failure, there is no file.

    Raises:
        OutputError: the file exists, or cannot be written.
    """
    try:
        with (
            aside(Path(os.path.abspath(path))) as scratch,
            open(scratch, "x", encoding="utf-8") as file,
        ):
            file.write(text)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"save: cannot write {os.fspath(path)} ({type(error).__name__})"
        ) from None


@contextmanager
def reading(path: str | os.PathLike[str], writer: str) -> Iterator[None]:
    """Convert errors of reading a file within the block into errors of gaussnoise.

    ``writer`` is the name of the method that writes such files, for the message.

    Raises:
        OutputError: the file cannot be read.
        CertificateError: the file is not one that ``writer`` wrote.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(f"load: cannot read {os.fspath(path)} ({type(error).__name__})") from None
    except MALFORMED:
        raise CertificateError(
            f"load: expected a file written by {writer}, got {os.fspath(path)}"
        ) from None


def read_json(path: Path, most: int = MOST_RECORD) -> Any:
    """Return the value in a JSON file of at most ``most`` bytes.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is too long, or :func:`parsed` refuses its content.
    """
    with opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError("too long")
    return parsed(content)


def parsed(content: str | bytes) -> Any:
    """Return the value that a JSON text describes.

    Raises:
        ValueError: the text is no JSON, or an object has the same key twice, which is ambiguous.
    """
    try:
        return json.loads(content, object_pairs_hook=_dict_of)
    except RecursionError:
        raise ValueError("too deep") from None


def _dict_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the dict of a JSON object's (key, value) pairs; refuse a key that occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def files_in(folder: Path) -> Iterator[str]:
    """Yield the paths of all files in a folder and its subfolders; links are not followed.

    Raises:
        OSError: the folder cannot be read.
    """
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        with os.scandir(folder / inside) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{inside}{entry.name}/")
                else:
                    yield inside + entry.name


def digests_in(folder: Path, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return {path: sha256} of all files in a release's folder, except its record and signature.

    ``known`` is {path: sha256} of files that are not read again.
    """
    known = known or {}
    return {
        name: known[name] if name in known else file_digest(folder / name)
        for name in sorted(files_in(folder))
        if name not in (RECORD, SIGNATURE)
    }


def folder_fault(
    folder: Path, files: Mapping[str, str], every: bool, record: str = RECORD
) -> str | None:
    """Return a text about the first changed file of a release; None if no file was changed.

    Args:
        folder: the folder of the release.
        files: the sha256 of each file, by its path inside the folder.
        every: whether other files, except the record and its signature, are a fault.
        record: the name of the record, which lists the files.

    Raises:
        OSError: the files cannot be read.
    """
    there = set()
    for name in files_in(folder):
        if every and name not in files and name not in (record, SIGNATURE):
            return f"{name!r} was not released"
        if stat.S_ISREG(os.lstat(folder / name).st_mode):
            there.add(name)
    for name, sha256 in files.items():
        if name not in there:  # also true for files behind a link, or outside the folder
            return f"{name!r} is missing, or no file inside the folder"
        if file_digest(folder / name) != sha256:
            return f"{name!r} is not what was released: its sha256 differs"
    return None if record in there else f"{record!r} is no file inside the folder"
