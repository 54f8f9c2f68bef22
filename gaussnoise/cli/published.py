"""The published release in a folder, and a warning if a wrong table may have been counted."""

import re
from pathlib import Path

from ..errors import ParameterError
from ..streams import Stream, StreamTables
from ..tables import TableRelease
from ..tables.release.aside import rows_aside
from ..tables.release.noisy import AbstractRelease
from .console import ERR, say


def streamed(folder: Path) -> StreamTables | None:
    """Return the published tables of the stream in a folder; None for a folder without a stream."""
    if not (folder / "stream.json").is_file():
        return None
    tables = Stream.open(folder).tables
    if not len(tables):
        raise ParameterError(f"{folder}: expected a stream with ticks, got none so far")
    return tables


def published(folder: Path, ticks: str | None) -> TableRelease:
    """Return the release in a folder.

    For a stream, ``ticks`` is a text like 5-8, and the release is that of the rows of these ticks.
    Without ``ticks``, it is the release of all rows.
    """
    if (tables := streamed(folder)) is None:
        if ticks is not None:
            raise ParameterError(f"--ticks: expected the folder of a stream, got {folder}")
        if (folder / "changes.json").is_file():
            raise ParameterError(
                f"{folder}: expected a release, got changes from one release to another; hint: "
                "report.html there shows them, and gaussnoise difference --of makes other tables"
            )
        return TableRelease.load(folder)
    if ticks is None:
        return tables.total()
    return tables.window(*ticks_of(ticks))


def tick_in(folder: Path) -> tuple[Path, int] | None:
    """Return (folder of the stream, number of the tick) for the folder of a tick.

    Return None for other folders.
    """
    place = folder.absolute()
    stream = place.parent.parent
    if place.parent.name != "ticks" or not (stream / "stream.json").is_file():
        return None
    return (stream, int(place.name)) if re.fullmatch(r"\d{1,9}", place.name) else None


def ticks_of(text: str) -> tuple[int, int]:
    """Return the first and the last tick in the text of ``--ticks``, like 12 or 5-8."""
    match = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2] or match[1]):
        raise ParameterError(f"--ticks: expected one tick or a range, 12 or 5-8, got {text!r:.80}")
    return int(match[1]), int(match[2] or match[1])


def say_aside(release: AbstractRelease) -> None:
    """Print a warning if the released numbers show that few rows have expected values.

    A wrong table may then have been counted.
    """
    for found in rows_aside(release):
        say(
            f"warning: {found}, by the released numbers; was this the right table, and the right "
            "schema? `gaussnoise check TABLE -s SCHEMA` shows its owner which values they are",
            ERR,
            "yellow",
        )
