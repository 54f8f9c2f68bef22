"""The interface of a format of files of tables."""

import abc
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from ...planning.facts import marginal_name


@final
@dataclass(frozen=True)
class Notes:
    """Sentences about tables, for formats that can hold them.

    Attributes:
        title: the title of all tables together.
        sections: {heading: sentences}, the privacy guarantee first.
        unit: the unit of the counts, like "persons"; empty if it is unknown, or a table has
            numbers of different units.
        units: {attribute: {label of an answer: its unit}}, for answers in another unit.
        headings: {attribute: the name that readers see, with its unit}.
        measured_in: {attribute: the unit of its numbers}.
        labels: {attribute: {label: the name that readers see}}, for labels that are numbers.
    """

    title: str = ""
    sections: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unit: str = ""
    units: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    headings: Mapping[str, str] = field(default_factory=dict)
    measured_in: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def sentences(self) -> list[str]:
        """The title, and then the sentences of all sections."""
        return [self.title, *(said for section in self.sections.values() for said in section)]

    def heading(self, name: str) -> str:
        """Return the name that readers see for an attribute."""
        return self.headings.get(name, name)

    def label(self, name: str, label: str) -> str:
        """Return the name that readers see for a label of an attribute."""
        return self.labels.get(name, {}).get(label, label)

    def title_of(self, names: Sequence[str]) -> str:
        """Return the title of the table whose axes are these attributes."""
        return marginal_name(tuple(map(self.heading, names)))

    def said(self, heading: str) -> str:
        """Return the sentences under a heading as one text, or ""."""
        return " ".join(self.sections.get(heading, ()))

    def units_in(self, columns: Mapping[str, Sequence[object]], rows: int) -> list[str]:
        """Return, for each row of a table, the unit of its number, given the columns of labels."""
        found: list[list[str]] = [[] for _ in range(rows)]
        for name in columns:
            own = self.units.get(name, {})
            for units, label in zip(found, columns[name], strict=True):
                units += [own[str(label)]] if str(label) in own else []
        return [" × ".join(units) or self.unit for units in found]


UNSAID = Notes()
NUMBER_FORMAT = b"number"  # key in the metadata of a column: its number format, "0.0" or "0.00"
MEANING = b"meaning"  # key in the metadata of a column: the meaning of its numbers
# headings of SIMS (see .method) for which some formats have a field
SOURCE, PERIOD, CONTACT = "18.1 Source data", "5 Reference period", "1 Contact"


class AbstractFormat(abc.ABC):
    """A format of files of tables.

    Class attributes say what a format can hold; the values here are those of most formats.
    """

    ending: str  # ending of file names; no other format's names end in it
    holds_many = False  # whether one dataset can hold tables too numerous for single files
    holds_records = True  # whether it can hold any rows, also rows without estimates
    holds_columns = True  # whether a cell can have other numbers than one estimate
    holds_infinite = True  # whether infinite numbers and NaN are read back
    first_row = 0  # the row in which a table begins if a file has only this table
    most_rows = math.inf  # most cells of one table
    longest_text = math.inf  # most characters of one label, in UTF-16

    @abc.abstractmethod
    def writer(
        self, file: Path | IO[bytes], schema: Any, notes: Notes
    ) -> AbstractContextManager[Any]:
        """Return a context manager whose value writes a new file: its ``write_table`` adds rows.

        ``notes`` are written if the format can hold them.
        """

    @abc.abstractmethod
    def numbers(
        self, path: Path, names: Sequence[str], first_row: int, cells: int
    ) -> NDArray[np.float64]:
        """Return the columns ``names`` of the table that begins at ``first_row`` of a file.

        The result has one array row for each column, and one array column for each of the table's
        cells.

        A file of another format or length raises an error that is in ``_read_errors`` of
        :mod:`gaussnoise.tables.release.store`. Reading takes no more memory than these columns.
        """

    @final
    def estimates(self, path: Path, first_row: int, cells: int) -> NDArray[np.float64]:
        """Return the column ``estimate`` of the table that begins at ``first_row`` of a file."""
        return self.numbers(path, ("estimate",), first_row, cells)[0]


def new_file(file: Path | IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    """Return a context manager of the file, opened for writing if it is given as a path.

    A file that the caller has opened is not closed at the end.
    """
    return file.open("wb") if isinstance(file, Path) else nullcontext(file)


def numbers_of(
    lines: Iterable[bytes],
    numbers: Callable[[bytes], Sequence[float]],
    columns: int,
    first_row: int,
    cells: int,
) -> NDArray[np.float64]:
    """Return the numbers in the lines of a file, as an array of shape (columns, cells).

    The function ``numbers`` reads one line. ValueError is raised unless there is a line for each
    cell.
    """
    every = chain.from_iterable(map(numbers, islice(lines, cells + 1)))
    found = np.fromiter(every, np.float64)
    if (first_row, len(found)) != (0, columns * cells):
        raise ValueError
    return found.reshape(cells, columns).T


class AbstractBook(AbstractFormat):
    """A format that holds all tables in one file."""

    @abc.abstractmethod
    def book(
        self,
        path: Path,
        titles: Sequence[str],
        notes: Notes,
        later: Sequence[str] = (),
        shown: Sequence[int] | None = None,
    ) -> AbstractContextManager[Any]:
        """Return a context manager of a new file for tables with these titles.

        The file's ``sheet(k, schema, most_bytes)`` is the context manager of a writer of the k-th
        table, counted from 0. The writer's ``write_totals`` adds rows of totals below the table.
        These rows are not read back. Tables with the titles ``later`` are added later, one by one.
        Readers see the tables ``shown`` (numbers from 0) in this order. The other tables come last,
        and are hidden at first. If ``shown`` is left out, readers see all tables.
        """

    @abc.abstractmethod
    def row_of(self, k: int) -> int:
        """Return the index of the row at which the k-th table begins, for :meth:`numbers`."""

    @abc.abstractmethod
    def add(self, path: Path, k: int, rows: Any) -> None:
        """Add the k-th table, whose title is in ``later``, to a finished file."""
