"""Files that many processes may write, on any machine: the first complete one stays."""

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
    """A folder of files that are complete and never change, once they have their names.

    Whoever writes a file writes it aside, and has the disk keep it, before a hard link gives it its
    name. Of several that write the same file, the first gives it; the others throw their own away
    and go on with the first one's. This needs a file system where all see the same files, and where
    hard links are made at once and fail if the name is taken: a local disk, or one that machines
    share, like NFS; no object store.

    Attributes:
        folder: of the files.
        aside: on the same file system; what dead programs leave there was never committed.
    """

    folder: Path
    aside: Path

    def digest(self, name: str) -> str | None:
        """sha256 of a committed file; None where there is none."""
        try:
            return file_digest(self.folder / name)
        except FileNotFoundError:
            return None

    def commit(self, name: str, write: Callable[[Path], object]) -> str:
        """sha256 of the file of this name, written by us or whoever was first.

        Raises:
            OSError: it cannot be written, or not linked.
        """
        own = self.aside / secrets.token_hex(16)
        try:
            write(own)
            sync(own)
            target = self.folder / name
            # not the folder itself: whoever comes too late finds it gone
            for folder in reversed(Path(name).parents[:-1]):
                (self.folder / folder).mkdir(exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.link(own, target, follow_symlinks=False)
            sync(target.parent, deep=False)  # the first one may have died before it could
            return file_digest(target)
        finally:
            remove(own)
