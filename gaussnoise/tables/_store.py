"""Released tables on disk: written one at a time, read back when asked for."""

import abc
import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from .._intervals import confidence_interval
from .._residuals import Subset
from ._schema import Schema
from ._tidy import NUMBERS, arrow_columns

Array = NDArray[np.float64]
Deviation = Callable[[Subset], Array]  # of every cell, or one for all
FileFormat = Literal["csv", "parquet"]

MOST_FILES = 1000  # beyond so many marginals, one Parquet file for each number of attributes
_ROWS_AT_ONCE = 2**17


@dataclass(frozen=True)
class Place:
    """Where a table is: a file inside the folder, and its rows there."""

    file: str
    first_row: int
    shape: tuple[int, ...]


@final
@dataclass(frozen=True, eq=False)
class StoredTables(Mapping[Subset, Array]):
    """Estimates in files of :func:`table_writer`, by sorted positions of attributes."""

    folder: Path
    places: Mapping[Subset, Place]

    def __getitem__(self, S: Subset) -> Array:
        from pyarrow import csv, parquet

        place = self.places[S]
        path = self.folder / place.file
        cells = int(np.prod(place.shape))
        if path.suffix == ".csv":
            options = csv.ConvertOptions(include_columns=["estimate"], column_types={"estimate": "float64"})
            columns = csv.read_csv(path, convert_options=options)
            return columns["estimate"].to_numpy().reshape(place.shape)
        with parquet.ParquetFile(path) as file:
            ends = np.cumsum([file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)])
            first, last = np.searchsorted(ends, [place.first_row, place.first_row + cells - 1], side="right")
            rows = file.read_row_groups(range(first, last + 1), columns=["estimate"])["estimate"]
            skipped = place.first_row - (int(ends[first - 1]) if first else 0)
            return rows.slice(skipped, cells).to_numpy().reshape(place.shape)

    def __iter__(self) -> Iterator[Subset]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


class AbstractTableWriter(abc.ABC):
    """Writes tables with their intervals to files, in any order."""

    def __init__(self, folder: Path, schema: Schema, subsets: Sequence[Subset], deviation: Deviation) -> None:
        self._folder, self._schema, self._subsets, self._deviation = folder, schema, subsets, deviation
        self._places: dict[Subset, Place] = {}
        self._last: tuple[Subset | None, Array] = None, np.zeros(0)
        (folder / "tables").mkdir()

    def __enter__(self) -> "AbstractTableWriter":
        return self

    @abc.abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    @abc.abstractmethod
    def write(self, S: Subset, estimate: Array) -> None:
        """Add the table of S."""

    @property
    def tables(self) -> StoredTables:
        """What has been written, in the order of the plan."""
        return StoredTables(self._folder, {S: self._places[S] for S in self._subsets})

    def _numbers(self, S: Subset, cells: slice, estimate: Array) -> dict[str, Array]:
        """Some cells of the table of S."""
        if self._last[0] != S:
            self._last = S, np.asarray(self._deviation(S))
        every = self._last[1]
        deviation = every.reshape(-1)[cells] if every.ndim else np.full(estimate.shape, every)
        ends = confidence_interval(estimate, deviation, 0.95, False)
        return dict(zip(NUMBERS, (estimate, deviation, *ends), strict=True))


@final
class FilesWriter(AbstractTableWriter):
    """One tidy file per marginal."""

    def __init__(
        self, folder: Path, schema: Schema, subsets: Sequence[Subset], deviation: Deviation, format: FileFormat
    ) -> None:
        super().__init__(folder, schema, subsets, deviation)
        names = file_names([tuple(schema.names[i] for i in S) for S in subsets], format)
        self._files = dict(zip(subsets, names, strict=True))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def write(self, S: Subset, estimate: Array) -> None:
        from pyarrow import csv, parquet

        self._places[S] = Place(self._files[S], 0, estimate.shape)
        path = self._folder / self._files[S]
        attributes = [self._schema.attributes[i] for i in S]
        with contextlib.ExitStack() as stack:
            writer = None
            for cells in _slices(estimate.size):
                numbers = self._numbers(S, cells, estimate.reshape(-1)[cells])
                rows = arrow_columns([a.name for a in attributes], [a.labels for a in attributes], cells, numbers)
                if writer is None:
                    kind = csv.CSVWriter if path.suffix == ".csv" else parquet.ParquetWriter
                    writer = stack.enter_context(kind(path, rows.schema))
                writer.write_table(rows)


@final
class DatasetWriter(AbstractTableWriter):
    """One Parquet file for each number of attributes, row groups of many tables.

    Columns: ``marginal`` (its number in the plan, from 1), ``attribute_1``, ``label_1`` (as text), …, and the numbers.
    """

    def __init__(self, folder: Path, schema: Schema, subsets: Sequence[Subset], deviation: Deviation) -> None:
        super().__init__(folder, schema, subsets, deviation)
        self._number = {S: k for k, S in enumerate(subsets, 1)}
        self._waiting: dict[int, list[tuple[Subset, slice, Array]]] = defaultdict(list)
        self._rows: Counter[int] = Counter()  # written and waiting
        self._writers: dict[int, Any] = {}
        self._names = [a.name for a in schema.attributes]
        self._labels = [str(label) for a in schema.attributes for label in a.labels]
        self._first_label = np.cumsum([0, *(a.size for a in schema.attributes)])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for order in self._waiting if kind is None else ():
                self._flush(order)
        finally:
            for writer in self._writers.values():
                writer.close()

    def write(self, S: Subset, estimate: Array) -> None:
        order = len(S)
        self._places[S] = Place(f"tables/{order}-way.parquet", self._rows[order], estimate.shape)
        for cells in _slices(estimate.size):
            self._waiting[order].append((S, cells, estimate.reshape(-1)[cells]))
            before, self._rows[order] = self._rows[order], self._rows[order] + cells.stop - cells.start
            if self._rows[order] // _ROWS_AT_ONCE > before // _ROWS_AT_ONCE:
                self._flush(order)

    def _flush(self, order: int) -> None:
        """One row group of all that waits."""
        import pyarrow as pa
        from pyarrow import parquet

        waiting = self._waiting[order]
        if not waiting:
            return
        sizes = self._schema.sizes
        lengths = [len(values) for _, _, values in waiting]
        where = [
            np.unravel_index(np.arange(c.start, c.stop), [sizes[i] for i in S]) if S else () for S, c, _ in waiting
        ]
        columns: dict[str, Any] = {
            "marginal": np.repeat(np.array([self._number[S] for S, _, _ in waiting], dtype=np.int32), lengths)
        }
        for k in range(order):
            names = np.repeat(np.array([S[k] for S, _, _ in waiting], dtype=np.int32), lengths)
            labels = np.concatenate([axes[k] for axes in where]) + self._first_label[names]
            columns[f"attribute_{k + 1}"] = pa.DictionaryArray.from_arrays(names, self._names)
            columns[f"label_{k + 1}"] = pa.DictionaryArray.from_arrays(labels.astype(np.int32), self._labels)
        numbers = [self._numbers(*part) for part in waiting]
        for name in NUMBERS:
            columns[name] = np.concatenate([part[name] for part in numbers])
        rows = pa.table(columns)
        if order not in self._writers:
            texts = [name for name in columns if name not in NUMBERS]
            path = self._folder / f"tables/{order}-way.parquet"
            self._writers[order] = parquet.ParquetWriter(path, rows.schema, use_dictionary=texts)  # pyright: ignore[reportArgumentType] (a list of columns, too)
        self._writers[order].write_table(rows)
        waiting.clear()


def table_writer(
    folder: Path, schema: Schema, subsets: Sequence[Subset], deviation: Deviation, format: FileFormat
) -> AbstractTableWriter:
    """Separate files up to 1000 marginals, one dataset beyond."""
    if len(subsets) > MOST_FILES:
        return DatasetWriter(folder, schema, subsets, deviation)
    return FilesWriter(folder, schema, subsets, deviation, format)


def _slices(size: int) -> Iterator[slice]:
    return (slice(start, min(start + _ROWS_AT_ONCE, size)) for start in range(0, size, _ROWS_AT_ONCE))


def file_names(marginals: Sequence[tuple[str, ...]], format: FileFormat, folder: str = "tables") -> list[str]:
    """One path per marginal, numbered so that no two can collide whatever characters are dropped."""
    width = len(str(len(marginals)))
    slugs = ["-by-".join(re.sub(r"[^\w.-]+", "_", name) for name in marginal) or "total" for marginal in marginals]
    short = [slug.encode()[:100].decode(errors="ignore") for slug in slugs]  # file systems count bytes
    return [f"{folder}/{k:0{width}}-{slug}.{format}" for k, slug in enumerate(short, 1)]
