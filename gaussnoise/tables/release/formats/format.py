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
    """Sentences about tables, for formats that have a place for them.

    Attributes:
        title: of all tables together.
        sections: sentences by their heading, the privacy guarantee first.
        unit: what the tables count; empty if numbers of a table have different units, or unknown.
        units: of answers in another unit, by attribute and label of the answer.
        headings: the names of attributes that readers see, their unit included.
        measured_in: the units of the numbers of attributes.
    """

    title: str = ""
    sections: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unit: str = ""
    units: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    headings: Mapping[str, str] = field(default_factory=dict)
    measured_in: Mapping[str, str] = field(default_factory=dict)

    @property
    def sentences(self) -> list[str]:
        """The title and all sentences."""
        return [self.title, *(said for section in self.sections.values() for said in section)]

    def heading(self, name: str) -> str:
        """Return the name that readers see."""
        return self.headings.get(name, name)

    def title_of(self, names: Sequence[str]) -> str:
        """Return the title of a table over these attributes."""
        return marginal_name(tuple(map(self.heading, names)))

    def said(self, heading: str) -> str:
        """Return the sentences under a heading, or an empty text."""
        return " ".join(self.sections.get(heading, ()))

    def units_in(self, columns: Mapping[str, Sequence[object]], rows: int) -> list[str]:
        """Return the unit of each row of a table, from its columns of labels."""
        found: list[list[str]] = [[] for _ in range(rows)]
        for name in columns:
            own = self.units.get(name, {})
            for units, label in zip(found, columns[name], strict=True):
                units += [own[str(label)]] if str(label) in own else []
        return [" × ".join(units) or self.unit for units in found]


UNSAID = Notes()
NUMBER_FORMAT = b"number"  # metadata of a column: "0.0" or "0.00"
MEANING = b"meaning"  # metadata of a column: what its numbers are, in words
# headings of SIMS whose sentences some formats have a place of their own for
SOURCE, PERIOD, CONTACT = "18.1 Source data", "5 Reference period", "1 Contact"


class AbstractFormat(abc.ABC):
    """A format of files of tables.

    A class says what it holds; the values here are those of most formats.
    """

    ending: str  # the end of the files' names; no other format's names end in it
    holds_many = False  # whether one dataset holds the tables that are too many for a file each
    holds_records = True  # whether it holds any rows, also those without estimates
    holds_columns = True  # whether a table can have other numbers than one estimate a cell
    holds_infinite = True  # whether numbers that are not finite come back
    first_row = 0  # the row in which a table in a file of its own begins
    most_rows = math.inf  # most cells of one table
    longest_text = math.inf  # most characters of one label, in UTF-16

    @abc.abstractmethod
    def writer(
        self, file: Path | IO[bytes], schema: Any, notes: Notes
    ) -> AbstractContextManager[Any]:
        """Return a context of a file of rows with an arrow schema; ``write_table`` adds some.

        ``notes`` are written where the format has a place for them.
        """

    @abc.abstractmethod
    def numbers(
        self, path: Path, names: Sequence[str], first_row: int, cells: int
    ) -> NDArray[np.float64]:
        """Return columns of numbers, one row each, of a table that begins in some row of a file.

        A file that is not of this format, or not as long as it should be, raises an error that is
        in ``_read_errors`` of :mod:`gaussnoise.tables.release.store`. It takes no more memory than
        these columns.
        """

    @final
    def estimates(self, path: Path, first_row: int, cells: int) -> NDArray[np.float64]:
        """Return the column ``estimate``, as :meth:`numbers` does."""
        return self.numbers(path, ("estimate",), first_row, cells)[0]


def new_file(file: Path | IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    """Return a context of the open file, which is closed at its end if it is opened here."""
    return file.open("wb") if isinstance(file, Path) else nullcontext(file)


def numbers_of(
    lines: Iterable[bytes],
    numbers: Callable[[bytes], Sequence[float]],
    columns: int,
    first_row: int,
    cells: int,
) -> NDArray[np.float64]:
    """Return the numbers of a file's lines; a ValueError unless there are as many as cells."""
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
        """Return a context of a new file of tables with these titles.

        Its ``sheet(k, schema, most_bytes)`` is the context of a writer of the k-th table, from 0;
        ``write_totals`` adds rows of totals below it, which are not read back.
        After the tables, those with the titles ``later`` are added one by one. Readers see the
        tables ``shown``, numbered from 0, in that order, and at first not the others, which come
        last; if left out, they see all.
        """

    @abc.abstractmethod
    def row_of(self, k: int) -> int:
        """Return the row in which the k-th table begins."""

    @abc.abstractmethod
    def add(self, path: Path, k: int, rows: Any) -> None:
        """Add the k-th table, one of those with titles ``later``, to a file that was closed."""
