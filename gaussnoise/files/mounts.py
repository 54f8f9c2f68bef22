"""The file system of a file or folder, and its type, as Linux reports them."""

import contextlib
import os
import re
from pathlib import Path
from typing import NamedTuple

_TABLE = Path("/proc/self/mountinfo")
# Several machines may write to these. Whether locks work there depends on servers and options that
# are not known here.
_SHARED = {
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "gfs", "gfs2", "gpfs",
    "lustre", "ncpfs", "nfs",
    "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "smb2", "smb3",
    "smbfs", "vboxsf", "virtiofs", "vmhgfs",
}  # fmt: skip
# local; containers without root use it. ("fuseblk", which is local too, has no dot.)
_LOCAL_FUSE = {"fuse.fuse-overlayfs"}


class Mount(NamedTuple):
    """A mounted file system, with the folder ``point`` and the type ``kind``."""

    point: str
    kind: str

    @property
    def shared(self) -> bool:
        """Whether other machines may write to this file system."""
        return self.kind in _SHARED or (
            self.kind.startswith("fuse.") and self.kind not in _LOCAL_FUSE
        )


def mount_of(path: Path, table: str | None = None) -> Mount | None:
    """Return the file system of a file or folder; None if it cannot be determined."""
    if table is None:
        with contextlib.suppress(OSError):
            table = _TABLE.read_text(encoding="utf-8", errors="surrogateescape")
    name, deepest = os.path.realpath(path), None
    for line in (table or "").splitlines():
        mount = _mount(line)
        if mount is None or not (name + "/").startswith(mount.point.rstrip("/") + "/"):
            continue
        if deepest is None or len(mount.point) >= len(
            deepest.point
        ):  # a later mount hides earlier ones at the same point
            deepest = mount
    return deepest


def _mount(line: str) -> Mount | None:
    """Return the mounted file system in a line of Linux's ``mountinfo``; None for other lines."""
    # the fifth field is the folder, with blanks as \040, and the type follows " - "
    fields, _, rest = line.partition(" - ")
    try:
        point, kind = fields.split(" ")[4], rest.split(" ")[0]
    except IndexError:
        return None
    return Mount(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), point), kind)
