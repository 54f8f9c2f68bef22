"""The steps of Spark's tasks. A task may run twice, be killed, or finish too late."""

import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import OutputError
from ...files.commits import Commits
from ...files.disk import file_digest
from ...privacy.sampler import drawn
from ...solvers.tables.boxes import Box, overlap, shape_of, within
from ...solvers.tables.residuals import Subset
from ...text import versions
from ..planning.measure import ResidualQuery
from ..release.files import draw_picture, write_answer
from ..release.formats.format import UNSAID
from ..release.release import TableRelease
from ..release.store import DatasetWriter
from ..release.stream import exact_part, known_part, measured, table_of
from .layout import Layout, keys_of
from .records import Batches

if TYPE_CHECKING:
    import pyarrow as pa

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Parts = Iterable[tuple[int, Counts]]
Step = Callable[[Iterable[int]], Batches]  # work on numbered items; yields a row for every file

LIBRARIES = ("gaussnoise", "opendp", "numpy")
PICTURE = "release.png"
_MOST_OPEN = 2**12  # most open files of measurements; Linux allows about 2^16 in a process


def measured_name(part: int) -> str:
    """Return the name of the file with the measurements of the group ``part`` of attributes."""
    return f"{part:06d}.npy"


def measure(layout: Layout, commits: Commits, parts: Parts) -> Batches:
    """Measure groups of attributes, and commit a file of measurements for each.

    A file holds residuals with noise, and exact tables of public attributes. ``parts`` has pairs
    (index of a group, its counts). Yields a row about each committed file.
    """
    query, draw = layout.query, partial(noise, layout.query)
    for part, counts in parts:
        group = layout.groups[part]
        table = counts.reshape([layout.sizes[i] for i in group])

        def write(
            path: Path, part: int = part, group: Subset = group, table: Counts = table
        ) -> None:
            values = [
                exact_part(table, group, T, query)
                if exact
                else measured(table, group, T, query, draw)
                for T, exact in layout.measured[part]
            ]
            flat = [value.reshape(-1) for value in values]
            with open(path, "xb") as file:
                np.save(file, np.concatenate([np.zeros(0), *flat]))

        name = measured_name(part)
        yield committed_row(part, name, commits.digest(name) or commits.commit(name, write))


def noise(query: ResidualQuery, count: int) -> Counts:
    """Return ``count`` integers of newly drawn noise; zeros if the query needs no noise."""
    return np.zeros(count, dtype=np.int64) if query.query is None else drawn(query.query, count)


def write_tables(
    blank: TableRelease,
    layout: Layout,
    measured: Commits,
    digests: Mapping[str, str],
    commits: Commits,
    parts: Iterable[int],
) -> Batches:
    """Compute the tables of the groups ``parts`` from the measurements, and commit their files.

    ``measured`` is the folder of measurements, ``digests`` has the sha256 of each file in it, and
    ``blank`` is the release with tables of zeros. Yields a row about each committed file.
    """
    open_files = Measured(layout, measured.folder, digests)
    for part in parts:
        write = partial(_write_group, blank, layout, open_files, part)
        yield from committed_group(part, list(layout.files(part)), commits, write)


def write_pieces(
    blank: TableRelease,
    layout: Layout,
    measured: Commits,
    digests: Mapping[str, str],
    commits: Commits,
    numbers: Iterable[int],
) -> Batches:
    """Compute pieces of large tables from the measurements, and commit a file for each piece.

    ``numbers`` are indices in ``layout.large_pieces``; other arguments are as for
    :func:`write_tables`.
    """
    open_files = Measured(layout, measured.folder, digests)
    for number in numbers:
        write = partial(_write_piece, blank, layout, open_files, number)
        yield from committed_group(number, [layout.piece_file(number)], commits, write)


def committed_group(
    part: int, names: Sequence[str], commits: Commits, write: Callable[[Path], None]
) -> Batches:
    """Commit the files ``names`` once, after ``write`` has made them in a temporary folder.

    In that folder, ``tables/2-way/part-000001.parquet`` has the name ``tables/2-way.parquet``.
    Files that are all committed already are not made again. Yields a row about each file.
    """
    found = {name: commits.digest(name) for name in names}
    if not all(found.values()):
        folder = commits.aside / secrets.token_hex(16)
        folder.mkdir()
        try:
            write(folder)
            for name in names:
                own = (folder / name).parent.with_suffix(".parquet")
                found[name] = commits.commit(name, lambda path, own=own: own.rename(path))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    for name in names:
        yield committed_row(part, name, found[name])


def _write_group(
    blank: TableRelease, layout: Layout, files: "Measured", part: int, folder: Path
) -> None:
    """Write the tables of a group of attributes to a folder, a file per number of attributes."""
    plan = blank.plan
    with DatasetWriter(folder, plan.schema, plan.tables.subsets, blank.deviation) as writer:
        for tables in layout.files(part).values():
            for S in tables:
                whole = tuple([slice(0, layout.sizes[i]) for i in S])
                writer.write(S, files.table(S, whole))


def _write_piece(
    blank: TableRelease, layout: Layout, files: "Measured", number: int, folder: Path
) -> None:
    """Write the piece ``layout.large_pieces[number]`` of a large table to a file in a folder."""
    plan, (S, box) = blank.plan, layout.large_pieces[number]
    deviation = partial(blank.deviation, box=box)
    with DatasetWriter(folder, plan.schema, plan.tables.subsets, deviation) as writer:
        writer.write(S, files.table(S, box), box)


class Measured:
    """The measurements that tasks committed; the sha256 of a file is checked before it is read."""

    def __init__(self, layout: Layout, folder: Path, digests: Mapping[str, str]) -> None:
        self._layout, self._folder, self._digests = layout, folder, digests
        self._files: dict[str, Array] = {}

    def table(self, S: Subset, box: Box) -> Array:
        """Return the estimated counts in a range of cells of the table of the attributes S."""
        query = self._layout.query
        parts = {
            key: self.values(*key, tuple([box[S.index(i)] for i in key[0]]))
            for key in keys_of(S, query)
        }
        exact = parts.get((known_part(S, query), True), np.zeros(()))
        residuals = {T: values for (T, known), values in parts.items() if not known}
        return table_of(S, exact, residuals, query, box)

    def values(self, T: Subset, exact: bool, box: Box) -> Array:
        """Return some cells of the residual of T, or of the public table of T if ``exact``."""
        if (T, exact) in self._layout.places:
            part, place = self._layout.places[T, exact]
            shape = [self._layout.sizes[i] for i in T]
            return np.asarray(self._file(measured_name(part))[place].reshape(shape)[box])
        matrix, found = self._layout.matrices[T], np.empty(shape_of(box))
        for k, own in enumerate(matrix.boxes):
            both = overlap(box, own)
            if both is not None:
                piece = self._file(matrix.name(k)).reshape(shape_of(own))
                found[within(both, box)] = piece[within(both, own)]
        return found

    def _file(self, name: str) -> Array:
        if name not in self._files:
            if len(self._files) >= _MOST_OPEN:
                self._files.clear()
            path = self._folder / name
            if file_digest(path) != self._digests[name]:
                raise OutputError("release: a measurement is not what was committed")
            self._files[name] = np.load(path, mmap_mode="r", allow_pickle=False)
        return self._files[name]


def write_answers(
    release: TableRelease, answers: Mapping[int, str], commits: Commits, entries: Iterable[int]
) -> Batches:
    """Compute the answers to some entries of the workload, and commit a file for each.

    ``entries`` are indices of entries, and ``answers`` has the file of each; a negative index
    stands for the picture of the release. Yields a row about each committed file.
    """
    for k in entries:
        name = answers[k] if k >= 0 else PICTURE

        def write(path: Path, k: int = k, name: str = name) -> None:
            if k >= 0:
                write_answer(release, k, name, path, UNSAID)
            else:
                draw_picture(release, path)

        try:
            digest = commits.digest(name) or commits.commit(name, write)
        except FileNotFoundError:
            if k >= 0:
                raise
            continue  # a picture that cannot be drawn is left out
        yield committed_row(k, name, digest)


def probe(commits: Commits, numbers: Iterable[int]) -> Batches:
    """Yield rows with the shared files that this task can read, and with its versions of libraries.

    The driver compares the rows of all tasks, to see whether they share one file system.
    """
    for number in numbers:
        own = secrets.token_hex(8)
        commits.commit("first", lambda path, own=own: path.write_text(own, encoding="utf-8"))
        first = (commits.folder / "first").read_text(encoding="utf-8")
        begun = (commits.folder / "begun").read_text(encoding="utf-8")
        yield committed_row(number, f"{begun} {first}", str(versions(*LIBRARIES)))


def numbered(numbers: Sequence[int], work: Step, batches: Batches) -> Batches:
    """Return the rows that ``work`` yields for some ``numbers``; ``batches`` hold their indices."""
    return work(numbers[place] for batch in batches for place in batch["id"].to_pylist())


def committed_row(part: int, name: str, digest: str | None) -> "pa.RecordBatch":
    """Return a row, as a batch of Arrow, that reports a committed file to the driver."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(
        {"part": pa.array([part], pa.int32()), "name": [name], "digest": [digest]}
    )
