"""The work of Spark's tasks for a tick. Tasks may be killed, or run twice."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ...errors import StreamError
from ...files.commits import Commits
from ...files.disk import file_digest
from ...noise.table_covariance import TableCovariance
from ...numerics.integers import MOST_SUM
from ...privacy.sampler import drawn
from ...solvers.tables.residuals import Subset, part_of
from ...tables.release.store import DatasetWriter, StoredTables
from ...tables.release.stream import measured_parts
from ...tables.spark.layout import Layout
from ...tables.spark.records import Batches
from ...tables.spark.tasks import Parts, committed_group, committed_row, measured_name
from ..files import deviation_in
from ..measure import own_residual, own_table, weighted_counts
from ..plan import StreamPlan, drawn_query

Array = NDArray[np.float64]
Integers = NDArray[Any]

PERIOD, CUMULATIVE = "period", "cumulative"


@final
@dataclass(frozen=True)
class Kept:
    """The files of one tick, with the exact counts and noisy integers of each group of tables.

    A group is the set of tables that one Spark task measures.

    Attributes:
        rows: the number of rows.
        counted: the folder of exact counts: NOT public.
        measured: the folder of noisy integers.
        digests: the sha256 of the files in both folders, by folder name and file name.
    """

    rows: int
    counted: Path
    measured: Path
    digests: Mapping[str, str]

    def load(self, folder: Path, part: int) -> Integers:
        """Return the integers of group number ``part`` of the tables, as a flat array.

        Raises:
            StreamError: the file differs from the committed one.
        """
        path = folder / measured_name(part)
        if file_digest(path) != self.digests[kept_name(folder, part)]:
            raise StreamError("stream: a file of the private folder is not what was committed")
        return np.load(path, mmap_mode="r", allow_pickle=False)


@final
@dataclass(frozen=True)
class Drawing:
    """The plan, and the layout of the noisy integers in the file of each group of tables.

    A group is the set of tables that one Spark task measures.

    Attributes:
        plan: the plan of the stream.
        layout: the layout of its groups, with the plan's query.
    """

    plan: StreamPlan
    layout: Layout

    def residuals(self, part: int) -> list[Subset]:
        """Return the attribute sets of the residuals in the file of group number ``part``.

        A residual is the part of a table that no smaller table determines.
        """
        return [T for T, exact in self.layout.measured[part] if not exact]

    @cached_property
    def places(self) -> Mapping[Subset, tuple[int, slice]]:
        """{attribute set: (number of its residual's group, slice of this group's file)}.

        A residual is the part of a table that no smaller table determines.
        """
        places = {}
        for part in range(len(self.layout.groups)):
            start = 0
            for T in self.residuals(part):
                end = start + self.layout.query.rows(T)
                places[T] = part, slice(start, end)
                start = end
        return places


def kept_name(folder: Path, part: int) -> str:
    """Return the name, "folder/file", of the file of group number ``part`` of the tables."""
    return f"{folder.name}/{measured_name(part)}"


def measure(
    drawing: Drawing,
    before: Sequence[Kept],
    rows: int,
    counted: Commits,
    noisy: Commits,
    parts: Parts,
) -> Batches:
    """Write the exact counts of groups of tables to files, then their noisy integers.

    Noisy integers are made from the counts of all ticks so far. Yield the name and the sha256 of
    every file.

    Each file is committed once. Noise is drawn for the committed counts, even if another task
    committed them.

    Args:
        drawing: the plan of the measurements.
        before: the committed files of earlier ticks.
        rows: the number of rows of this tick.
        counted: the folder in which counts are committed.
        noisy: the folder in which measurements are committed.
        parts: pairs (number of a group, its counts).
    """
    plan, most = drawing.plan, max([rows, *(kept.rows for kept in before)])
    for part, counts in parts:
        name = measured_name(part)
        digest = counted.digest(name) or counted.commit(name, partial(_save, counts.reshape(-1)))
        own = Kept(rows, counted.folder, noisy.folder, {kept_name(counted.folder, part): digest})
        found = noisy.digest(name)
        if found is None:
            ticks = [kept.load(kept.counted, part) for kept in [*before, own]]
            group = drawing.layout.groups[part]
            shape = [plan.schema.sizes[i] for i in group]
            weighted = weighted_counts(plan, ticks, most).reshape(shape)
            found = noisy.commit(name, partial(_draw, drawing, part, group, weighted))
        yield committed_row(part, kept_name(counted.folder, part), digest)
        yield committed_row(part, kept_name(noisy.folder, part), found)


def _draw(drawing: Drawing, part: int, group: Subset, weighted: Integers, path: Path) -> None:
    """Write the ``weighted`` counts of a group of tables, plus drawn noise, to a file."""
    query = drawing.layout.query
    noisy = [
        query.noisy(
            T,
            np.asarray(part_of(weighted, group, T), dtype=weighted.dtype),
            drawn(drawn_query(query), query.rows(T)),
        )
        for T in drawing.residuals(part)
    ]
    _save(np.concatenate([np.zeros(0, dtype=np.int64), *noisy]), path)


def _save(values: Integers, path: Path) -> None:
    """Write integers to a new file as int64, or as decimal digits if they are too large."""
    if values.dtype == object:
        small = all(abs(x) < MOST_SUM for x in values)
        values = values.astype(np.int64) if small else np.array([b"%d" % x for x in values])
    with open(path, "xb") as file:
        np.save(file, values)


def write_tables(
    drawing: Drawing,
    on_disk: Sequence[Kept],
    covariances: Mapping[str, TableCovariance],
    before: StoredTables | None,
    before_digests: Mapping[str, str],
    commits: Commits,
    parts: Iterable[int],
) -> Batches:
    """Write the tables of the last tick, and the tables of all ticks so far, to files.

    Args:
        drawing: the plan of the measurements.
        on_disk: the committed files of all ticks so far.
        covariances: the covariances of the tables "period" and "cumulative".
        before: the cumulative tables of the tick before; None at the first tick.
        before_digests: the sha256 of the files of these tables.
        commits: the folder in which the new tables are committed.
        parts: numbers of groups.
    """
    tick = len(on_disk)
    inverse = drawing.plan.strategy.row_of_inverse(tick - 1)

    def write(part: int, folder: Path) -> None:
        plan, layout = drawing.plan, drawing.layout
        residuals = _residuals(drawing, on_disk, inverse, part)
        writers = {}
        for what, covariance in covariances.items():
            (folder / what).mkdir()
            writers[what] = DatasetWriter(
                folder / what, plan.schema, plan.tables.subsets, deviation_in(covariance)
            )
        with writers[PERIOD] as period, writers[CUMULATIVE] as cumulative:
            for S in (S for tables in layout.files(part).values() for S in tables):
                own = own_table(layout.query, S, residuals, on_disk[-1].rows)
                period.write(S, own)
                cumulative.write(S, own if before is None else np.asarray(before[S] + own))

    for part in parts:
        files = list(drawing.layout.files(part))
        if before is not None and not all(
            file_digest(before.folder / name) == before_digests[f"{CUMULATIVE}/{name}"]
            for name in files
        ):
            raise StreamError("stream: a file of the last tick is not what was published")
        names = [f"{what}/{name}" for what in covariances for name in files]
        yield from committed_group(part, names, commits, partial(write, part))


def _residuals(
    drawing: Drawing, ticks: Sequence[Kept], inverse: tuple[list[int], int], part: int
) -> dict[Subset, Array]:
    """Return {T: estimated residual of T} for one group's tables, for the last tick's rows."""
    query = drawing.layout.query
    wanted = {T for S in drawing.layout.tables[part] for T in measured_parts(S, query)}
    files: dict[int, list[Integers]] = {}
    found = {}
    for T in sorted(wanted):
        own, place = drawing.places[T]
        if own not in files:
            files[own] = [kept.load(kept.measured, own) for kept in ticks]
        noisy = [_integers(file[place]) for file in files[own]]
        found[T] = own_residual(query, T, inverse, noisy)
    return found


def _integers(values: Integers) -> Integers:
    """Return the integers in a file that :func:`_save` wrote."""
    if values.dtype == np.int64:
        return values
    return np.array([int(x) for x in values], dtype=object)
