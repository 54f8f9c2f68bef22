"""Released tables on disk: written one at a time, and read when they are needed."""

import abc
import contextlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from domains.errors import DomainTooLargeError

from ...errors import OutputError
from ...files.disk import opened, parsed
from ...numerics.intervals import confidence_interval
from ...solvers.tables.boxes import Box, shape_of
from ...solvers.tables.residuals import Subset, part_of
from ..schema.schema import Schema
from .formats import FORMATS, FileFormat, format_of
from .formats.format import UNSAID, AbstractBook, Notes
from .tidy import LEVEL, NUMBERS, arrow_columns

Array = NDArray[np.float64]
Deviation = Callable[[Subset], Array]  # deviations of a table's cells, or one number for all

MOST_READ = 2**28  # most cells of a table that one machine reads: 2 GB
MOST_CHECKED = 2**22  # most cells of a table whose numbers are compared with the plan
MOST_FILES = 1000  # for more marginals, there is one Parquet file per number of attributes
MOST_OF_AN_ENTRY = 2**10  # most bytes of a line that lists a table, without attributes
_ROWS_AT_ONCE = 2**17
_ROUNDING = 1e-9  # relative to the sum of a number and its standard deviation
_NUMBERS_OF_A_ROW = 2**10  # most bytes of a row without its labels
_TOTAL = "Total"
_BYTES_OF_A_CHARACTER = 7  # if it is escaped


@dataclass(frozen=True)
class Place:
    """The location of a table: a file in the release's folder, its first row there, its shape.

    A table that is longer than its file continues in the next numbered file, and so on.
    """

    file: str
    first_row: int
    shape: tuple[int, ...]


class Answers(NamedTuple):
    """A table of the answers to one entry of the workload, to be added to the common workbook.

    If ``is_brief``, the table is shorter, and has means.
    """

    entry: int
    subset: Subset
    title: str
    is_brief: bool


@final
@dataclass(frozen=True)
class ZeroTables(Mapping[Subset, Array]):
    """A mapping {sorted attribute indices: table of zeros}, before the data are read."""

    shapes: Mapping[Subset, tuple[int, ...]]

    def __getitem__(self, S: Subset) -> Array:
        return np.broadcast_to(0.0, self.shapes[S])

    def __iter__(self) -> Iterator[Subset]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


@final
@dataclass(frozen=True, eq=False)
class StoredTables(Mapping[Subset, Array]):
    """A mapping {sorted attribute indices: estimates}, which reads each table from its file."""

    folder: Path
    places: Mapping[Subset, Place]

    def __getitem__(self, S: Subset) -> Array:
        """Return the estimates in the table of the attributes S, read from its file.

        Raises:
            DomainTooLargeError: the table has more cells than one machine reads.
            OutputError: its files are not those of the release.
        """
        place = self.places[S]
        path = self.folder / place.file
        if math.prod(place.shape) > MOST_READ:
            raise DomainTooLargeError(
                f"load: a table of {math.prod(place.shape):.3g} cells, more than the 2^28 that "
                f"are read here; hint: duckdb or Spark read {path.parent} as one dataset"
            )
        (estimate,) = read_numbers(path, ("estimate",), place.first_row, math.prod(place.shape))
        return estimate.reshape(place.shape)

    def fault(self, deviation: Deviation) -> str | None:
        """Return in words the first number in the files that disagrees with the plan; or None.

        Tables of more than 2^22 cells are not read. ``deviation`` is the function that was used for
        writing. Where tables share a file, each row must name the table that the record states.
        """
        number = {S: k for k, S in enumerate(self.places, 1)}
        for run in self._runs():
            place, shapes = self.places[run[0]], [self.places[S].shape for S in run]
            sd = [
                np.broadcast_to(deviation(S), shape).reshape(-1)
                for S, shape in zip(run, shapes, strict=True)
            ]
            sd = np.concatenate(sd)
            path, rows = self.folder / place.file, (place.first_row, sd.size)
            if is_part(place.file) or len(self.places) > MOST_FILES:
                whose = read_numbers(path, ("marginal", "estimate"), *rows)[0]
                sizes = [math.prod(shape) for shape in shapes]
                if (whose != np.repeat([number[S] for S in run], sizes)).any():
                    return f"{place.file!r} has another table where the record says"
            columns = read_numbers(path, NUMBERS, *rows)
            got: dict[str, Array] = dict(zip(NUMBERS, columns, strict=True))
            name = different_column(with_intervals(got["estimate"], sd), got)
            if name == "standard_deviation":
                ends = f"expected up to {sd.max():.6g}, got up to {got[name].max():.6g}"
                return f"{place.file!r} has other standard deviations than its plan: {ends}"
            if name is not None:
                return f"the column {name!r} of {place.file!r} does not follow from its others"
        return None

    def _runs(self) -> Iterator[list[Subset]]:
        """Yield lists of tables that follow each other in a file and are read together."""
        run: list[Subset] = []
        cells, end = 0, ("", 0)
        placed = sorted(self.places.items(), key=lambda item: (item[1].file, item[1].first_row))
        for S, place in placed:
            size = math.prod(place.shape)
            if size > MOST_CHECKED:
                continue
            if run and ((place.file, place.first_row) != end or cells + size > MOST_CHECKED):
                yield run
                run, cells = [], 0
            run.append(S)
            cells, end = cells + size, (place.file, place.first_row + size)
        if run:
            yield run

    def __iter__(self) -> Iterator[Subset]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


def read_numbers(path: Path, names: Sequence[str], first_row: int, rows: int) -> Array:
    """Return the columns ``names`` of a file, shape (columns, rows).

    These columns have ``rows`` rows, beginning with ``first_row``.

    Raises:
        OutputError: the file has no such table.
    """
    with _read_errors(path):
        return format_of(path.name).numbers(path, names, first_row, rows)


def with_intervals(estimate: Array, deviation: Array) -> dict[str, Array]:
    """Return {column: numbers} with estimate, standard deviation, low and high of each cell."""
    ends = confidence_interval(estimate, deviation, LEVEL, False)
    return dict(zip(NUMBERS, (estimate, deviation, *ends), strict=True))


def different_column(expected: Mapping[str, Array], got: Mapping[str, Array]) -> str | None:
    """Return the first column whose numbers differ by more than rounding errors; or None."""
    first, second = [*expected][:2]
    size = np.abs(expected[first]) + np.abs(expected[second])
    for name in (second, *expected):
        own, wanted = got[name], expected[name]
        same = (own == wanted) | (np.isnan(own) & np.isnan(wanted))
        with np.errstate(invalid="ignore"):  # infinite bounds have no difference
            near = np.abs(own - wanted) <= _ROUNDING * size
        if not (same | near).all():
            return name
    return None


@contextlib.contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Turn errors of pyarrow in the block into OutputError, since they show content of files."""
    try:
        yield
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        NotImplementedError,
        OverflowError,
        MemoryError,
    ) as error:
        raise OutputError(
            f"load: {path} is not the table that was released ({type(error).__name__}); hint: the "
            "folder as it was "
            "written"
        ) from None


def read_index(path: Path, count: int, longest: int) -> list[dict[str, Any]]:
    """Return ``count`` entries of a list, from its file in JSON lines.

    ``longest`` is the largest number of bytes in a line.
    """
    with _read_errors(path), opened(path) as file:
        entries = [parsed(file.readline(longest + 1)) for _ in range(count)]
        if not all(type(entry) is dict for entry in entries) or file.read(1):
            raise ValueError
    return entries


class AbstractTableWriter(abc.ABC):
    """A writer of tables with their intervals to files, in any order."""

    def __init__(
        self, folder: Path, schema: Schema, subsets: Sequence[Subset], deviation: Deviation
    ) -> None:
        self._folder, self._schema, self._subsets, self._deviation = (
            folder,
            schema,
            subsets,
            deviation,
        )
        self._places: dict[Subset, Place] = {}
        self._last: tuple[Subset | None, Array] = None, np.zeros(0)
        self._stack = contextlib.ExitStack()  # files that stay open for several tables
        (folder / "tables").mkdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @abc.abstractmethod
    def write(self, S: Subset, estimate: Array) -> None:
        """Write the table of the attributes S, with its intervals."""

    @property
    def tables(self) -> StoredTables:
        """The tables that have been written, in the order of the plan."""
        return StoredTables(self._folder, {S: self._places[S] for S in self._subsets})

    def _numbers(self, S: Subset, cells: slice, estimate: Array) -> dict[str, Array]:
        """Return {column: numbers} for some cells of the table of the attributes S."""
        if self._last[0] != S:
            self._last = S, np.asarray(self._deviation(S))
        every = self._last[1]
        deviation = every.reshape(-1)[cells] if every.ndim else np.full(estimate.shape, every)
        return with_intervals(estimate, deviation)

    def _fill(
        self,
        S: Subset,
        estimate: Array,
        opened_writer: Callable[[Any], contextlib.AbstractContextManager[Any]],
    ) -> None:
        """Write the table of the attributes S, with totals, in blocks of rows."""
        attributes = [self._schema.attributes[i] for i in S]
        with contextlib.ExitStack() as stack:
            writer: Any = None
            for cells in _slices(estimate.size):
                numbers = self._numbers(S, cells, estimate.reshape(-1)[cells])
                rows = arrow_columns(
                    [a.name for a in attributes], [a.labels for a in attributes], cells, numbers
                )
                if writer is None:
                    writer = stack.enter_context(opened_writer(rows.schema))
                writer.write_table(rows)
            for rows in self._totals(S, estimate):
                writer.write_totals(rows)

    def _totals(self, S: Subset, estimate: Array) -> Iterator[Any]:
        """Yield rows of totals to write below the table of the attributes S; here none."""
        yield from ()


@final
class FilesWriter(AbstractTableWriter):
    """A writer of one tidy file per marginal."""

    def __init__(
        self,
        folder: Path,
        schema: Schema,
        subsets: Sequence[Subset],
        deviation: Deviation,
        format: FileFormat,
        notes: Notes,
    ) -> None:
        super().__init__(folder, schema, subsets, deviation)
        self._format, self._notes = FORMATS[format], notes
        self._planned = planned_places(schema, subsets, format)

    def write(self, S: Subset, estimate: Array) -> None:
        self._places[S] = self._planned[S]
        path = self._folder / self._planned[S].file
        self._fill(S, estimate, lambda schema: self._format.writer(path, schema, self._notes))


@final
class BookWriter(AbstractTableWriter):
    """A writer of one file that holds all marginals."""

    def __init__(
        self,
        folder: Path,
        schema: Schema,
        subsets: Sequence[Subset],
        deviation: Deviation,
        format: FileFormat,
        notes: Notes,
        answers: Sequence[Answers],
    ) -> None:
        super().__init__(folder, schema, subsets, deviation)
        self._planned = planned_places(schema, subsets, format)
        self._number = {S: k for k, S in enumerate(subsets)}
        answered = {own.subset for own in answers}
        virtual = {i for i, a in enumerate(schema.attributes) if a.is_summed}
        tables = [k for S, k in self._number.items() if S not in answered or not virtual & {*S}]
        later = list(enumerate(answers, len(subsets)))
        brief = [k for k, own in later if own.is_brief]
        full = [k for k, own in later if not own.is_brief]
        self._format: Any = FORMATS[format]
        titles = [notes.title_of([schema.names[i] for i in S]) for S in subsets]
        self._book = self._stack.enter_context(
            self._format.book(
                folder / book_file(self._format),
                titles,
                notes,
                [own.title for own in answers],
                [*brief, *tables, *full],
            )
        )

    def write(self, S: Subset, estimate: Array) -> None:
        k = self._number[S]
        self._places[S] = self._planned[S]
        longest = [max(len(str(x)) for x in self._schema.attributes[i].labels) for i in S]
        row = _NUMBERS_OF_A_ROW + _BYTES_OF_A_CHARACTER * sum(longest)
        cells = math.prod(size + 1 for size in estimate.shape)
        self._fill(S, estimate, lambda schema: self._book.sheet(k, schema, row * cells))

    def _totals(self, S: Subset, estimate: Array) -> Iterator[Any]:
        """Yield rows of totals to write below a table of counts of one or two attributes."""
        attributes = [self._schema.attributes[i] for i in S]
        cells = math.prod(size + 1 for size in estimate.shape)
        if (
            len(S) not in (1, 2)
            or estimate.size == 1
            or any(a.is_summed for a in attributes)
            or cells > self._format.most_rows
        ):
            return
        for T in ((S[:1], S[1:]) if len(S) == 2 else ()) + ((),):
            total = part_of(estimate, S, T)
            deviation = np.broadcast_to(self._deviation(T), total.shape)
            total = np.where(deviation > 0, total, np.rint(total))  # exact totals are integers
            labels = [a.labels if i in T else (_TOTAL,) for i, a in zip(S, attributes, strict=True)]
            numbers = with_intervals(total, deviation)
            names = [a.name for a in attributes]
            yield arrow_columns(names, labels, slice(0, total.size), numbers)


@final
class DatasetWriter(AbstractTableWriter):
    """A writer of Parquet files, one per number of attributes, with row groups of many tables.

    Columns: ``marginal`` (its number in the plan, from 1), ``attribute_1``, ``label_1`` (as text),
    …, and the numbers.
    """

    def __init__(
        self, folder: Path, schema: Schema, subsets: Sequence[Subset], deviation: Deviation
    ) -> None:
        super().__init__(folder, schema, subsets, deviation)
        self._number = {S: k for k, S in enumerate(subsets, 1)}
        self._waiting: dict[int, list[tuple[Subset, Box, slice, Array]]] = defaultdict(list)
        self._rows: Counter[int] = Counter()  # rows written so far, or waiting
        self._writers: dict[int, Any] = {}
        self._names = [a.name for a in schema.attributes]
        self._labels = [str(label) for a in schema.attributes for label in a.labels]
        self._first_label = np.cumsum([0, *(a.size for a in schema.attributes)])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            for order in self._waiting if kind is None else ():
                self._flush(order)
        finally:
            for writer in self._writers.values():
                writer.close()

    def write(self, S: Subset, estimate: Array, box: Box | None = None) -> None:
        """Write the table of the attributes S, or only a box of its cells."""
        order = len(S)
        box = box or tuple([slice(0, self._schema.sizes[i]) for i in S])
        self._places[S] = Place(f"tables/{order}-way.parquet", self._rows[order], estimate.shape)
        for cells in _slices(estimate.size):
            self._waiting[order].append((S, box, cells, estimate.reshape(-1)[cells]))
            before, self._rows[order] = (
                self._rows[order],
                self._rows[order] + cells.stop - cells.start,
            )
            if self._rows[order] // _ROWS_AT_ONCE > before // _ROWS_AT_ONCE:
                self._flush(order)

    def _flush(self, order: int) -> None:
        """Write all waiting rows as one row group."""
        import pyarrow as pa
        from pyarrow import parquet

        waiting = self._waiting[order]
        if not waiting:
            return
        subsets, lengths = [S for S, *_ in waiting], [len(values) for *_, values in waiting]
        where = [
            np.unravel_index(np.arange(c.start, c.stop), shape_of(box)) if box else ()
            for _, box, c, _ in waiting
        ]
        columns: dict[str, Any] = {
            "marginal": np.repeat(
                np.array([self._number[S] for S in subsets], dtype=np.int32), lengths
            )
        }
        for k in range(order):
            names = np.repeat(np.array([S[k] for S in subsets], dtype=np.int32), lengths)
            codes = [
                axes[k] + box[k].start for axes, (_, box, _, _) in zip(where, waiting, strict=True)
            ]
            labels = np.concatenate(codes) + self._first_label[names]
            columns[f"attribute_{k + 1}"] = pa.DictionaryArray.from_arrays(names, self._names)
            columns[f"label_{k + 1}"] = pa.DictionaryArray.from_arrays(
                labels.astype(np.int32), self._labels
            )
        numbers = [self._numbers(S, cells, values) for S, _, cells, values in waiting]
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
    folder: Path,
    schema: Schema,
    subsets: Sequence[Subset],
    deviation: Deviation,
    format: FileFormat,
    notes: Notes = UNSAID,
    answers: Sequence[Answers] = (),
) -> AbstractTableWriter:
    """Return a writer of tables: one file each for up to 1000 marginals, else a Parquet dataset.

    ``notes`` are sentences about the tables, for formats that can hold them. ``answers`` are tables
    that a format of one file gets later: see :class:`AbstractBook`.
    """
    if len(subsets) > MOST_FILES:
        return DatasetWriter(folder, schema, subsets, deviation)
    if isinstance(FORMATS[format], AbstractBook):
        return BookWriter(folder, schema, subsets, deviation, format, notes, answers)
    return FilesWriter(folder, schema, subsets, deviation, format, notes)


def planned_places(
    schema: Schema, subsets: Sequence[Subset], format: FileFormat
) -> dict[Subset, Place]:
    """Return the planned location of each table: a file of its own, or the common workbook."""
    own, shapes = FORMATS[format], [tuple(schema.sizes[i] for i in S) for S in subsets]
    files = file_names([tuple(schema.names[i] for i in S) for S in subsets], format)
    rows = [0] * len(subsets)
    if isinstance(own, AbstractBook):
        files, rows = [book_file(own)] * len(rows), [own.row_of(k) for k, _ in enumerate(rows)]
    return dict(zip(subsets, map(Place, files, rows, shapes), strict=True))


def is_part(file: str) -> bool:
    """Return whether the file with this path is a part of a dataset, written by executors."""
    return file.count("/") > 1


def book_file(format: AbstractBook) -> str:
    """Return the path, inside a release's folder, of the workbook with all tables."""
    return f"tables/tables{format.ending}"


def _slices(size: int) -> Iterator[slice]:
    return (
        slice(start, min(start + _ROWS_AT_ONCE, size)) for start in range(0, size, _ROWS_AT_ONCE)
    )


def file_names(
    marginals: Sequence[tuple[str, ...]], format: FileFormat, folder: str = "tables"
) -> list[str]:
    """Return the path of the file of each marginal, inside the release's folder.

    Paths have numbers, so that they differ even if special characters are dropped.
    """
    width = len(str(len(marginals)))
    slugs = [
        "-by-".join(re.sub(r"[^\w.-]+", "_", name) for name in marginal) or "total"
        for marginal in marginals
    ]
    short = [
        slug.encode()[:100].decode(errors="ignore") for slug in slugs
    ]  # file systems count bytes
    ending = FORMATS[format].ending
    return [f"{folder}/{k:0{width}}-{slug}{ending}" for k, slug in enumerate(short, 1)]
