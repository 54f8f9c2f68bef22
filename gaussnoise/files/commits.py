"""Files that processes on many machines may write; the first complete file of a name is kept."""

import contextlib
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import final

from .disk import file_digest, remove, sync


@final
@dataclass(frozen=True)
class Commits:
    """A folder of files that are complete when they get their names, and never change.

    A process writes a file under another name, and syncs it to disk. Then a hard link gives the
    file its name. If several processes write the same file, the first one gives the file its name;
    the others discard their files and use the named one. The file system must show all processes
    the same files. It must also make a hard link in one step, which fails if the name is taken.
    Local disks and shared disks like NFS do both; object stores do not.

    Attributes:
        folder: the folder of the files.
        aside: a folder on the same file system for files that are not yet committed; such files of
            dead programs stay there.
    """

    folder: Path
    aside: Path

    def digest(self, name: str) -> str | None:
        """Return the sha256 of the committed file ``name``, or None if it does not exist."""
        try:
            return file_digest(self.folder / name)
        except FileNotFoundError:
            return None

    def commit(self, name: str, write: Callable[[Path], object]) -> str:
        """Let ``write`` write the file ``name``, unless an earlier process has committed it.

        Returns:
            The sha256 of the committed file.

        Raises:
            OSError: the file cannot be written or linked.
        """
        own = self.aside / secrets.token_hex(16)
        try:
            write(own)
            sync(own)
            target = self.folder / name
            # do not create ``self.folder``: if it is missing, another process has ended this commit
            for folder in reversed(Path(name).parents[:-1]):
                (self.folder / folder).mkdir(exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.link(own, target, follow_symlinks=False)
            sync(target.parent, deep=False)  # the first process may have died before its sync
            return file_digest(target)
        finally:
            remove(own)
