"""The interface of a format of files of tables."""

import abc
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray


class AbstractFormat(abc.ABC):
    """A format of files of tables, whose name is the end of the files' names."""

    holds_many: bool  # whether one dataset holds the tables that are too many for a file each

    @abc.abstractmethod
    def writer(self, file: Path | IO[bytes], schema: Any) -> AbstractContextManager[Any]:
        """Return a context of a file of rows with an arrow schema; ``write_table`` adds some."""

    @abc.abstractmethod
    def estimates(self, path: Path, first_row: int, cells: int) -> NDArray[np.float64]:
        """Return the column ``estimate`` of a table that begins in some row of a file.

        A file that is not of this format, or not as long as it should be, raises an error that is
        in ``_read_errors`` of :mod:`gaussnoise.tables.release.store`. It takes no more memory than
        the table.
        """
