"""The use of Spark's executors: numbered work, and a folder that they share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ....errors import DataError, NotAvailableError, OutputError
from ....files.commits import Commits
from ....files.disk import remove
from ....text import versions
from ...counting.spark import COMMITTED, in_spark
from . import tasks

TASK = "release it with Spark"
ASSUMED = (
    "drawn by Spark executors; every residual was committed once, by a hard link on a file system "
    "that all of them share, before anything was made of it"
)
_PROBES = 16


def in_tasks(
    session: Any, numbers: Sequence[int], work: Callable[[Iterable[int]], Iterator[Any]]
) -> list[tuple[str, str]]:
    """Return names and sha256 of the files that Spark's tasks make of these numbers."""

    def rows() -> list[Any]:
        most = int(session.conf.get("spark.sql.shuffle.partitions"))
        count = max(min(len(numbers), most), 1)
        ids = session.range(0, len(numbers), 1, count)
        return ids.mapInArrow(partial(tasks.numbered, tuple(numbers), work), COMMITTED).collect()

    return [(row["name"], row["digest"]) for row in in_spark(TASK, rows)]


def check_file_system(session: Any, folder: Path, token: str) -> None:
    """Refuse a place that executors do not share, or where no single file can be the first.

    Args:
        session: of Spark.
        folder: a new folder in that place, which is removed again.
        token: a random text.

    Raises:
        OutputError: some executor cannot write there, or does not see what others write.
        NotAvailableError: executors have other versions of the libraries.
    """
    try:
        folder.mkdir(mode=0o700)
        (folder / "begun").write_text(token, encoding="utf-8")
        rows = in_tasks(session, range(_PROBES), partial(tasks.probe, Commits(folder, folder)))
    except (DataError, OSError):
        rows = []
    finally:
        remove(folder)
    if len({name for name, _ in rows}) != 1 or not rows[0][0].startswith(token):
        raise OutputError(
            f"release: executors cannot publish to {folder.parent}; expected this package, with "
            "the Python of the driver, on every executor, and a folder that "
            "the driver and all executors see under this name, and write to as one user, on a "
            "file system with hard links, as local disks and NFS have them; hint: object "
            "stores have none"
        )
    ours = str(versions(*tasks.LIBRARIES))
    if any(digest != ours for _, digest in rows):
        raise NotAvailableError(
            f"release: expected {', '.join(tasks.LIBRARIES)} of the driver's versions on every "
            "executor, got others"
        )
