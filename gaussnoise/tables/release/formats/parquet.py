"""Tables in Parquet."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from ....files.disk import opened
from .format import AbstractFormat, Notes

_OPEN_FILES = Path("/dev/fd")
_MOST_ROWS = 2**22  # most rows of a row group; pyarrow writes 2²⁰, releases 2¹⁸
_MOST_BYTES = 2**28  # most bytes of one column of a row group


@final
class Parquet(AbstractFormat):
    """The format Parquet, as pyarrow writes it."""

    ending = ".parquet"
    holds_many = True

    def writer(
        self, file: Path | IO[bytes], schema: Any, notes: Notes
    ) -> AbstractContextManager[Any]:
        from pyarrow import parquet

        return parquet.ParquetWriter(file, schema)

    def numbers(
        self, path: Path, names: Sequence[str], first_row: int, cells: int
    ) -> NDArray[np.float64]:
        """Return columns of numbers of a table; refuse row groups larger than this class writes."""
        found, rest = [], cells
        while True:
            with _parquet_file(path) as file:
                here = min(rest, file.metadata.num_rows - first_row)
                if here <= 0:
                    raise ValueError
                groups = row_groups(file, names, first_row, here)
                before = sum(file.metadata.row_group(k).num_rows for k in range(groups.start))
                rows = file.read_row_groups(groups, columns=list(names))
                rows = rows.slice(first_row - before, here)
                numbers = np.array([rows[name].to_numpy() for name in names])
            if numbers.dtype != np.float64 or numbers.shape[1:] != (here,):
                raise ValueError
            found.append(numbers)
            rest -= here
            if not rest:
                return found[0] if len(found) == 1 else np.concatenate(found, axis=1)
            path, first_row = _next_file(path), 0


def _next_file(path: Path) -> Path:
    """Return the path of the file in which a table that is longer than one file continues."""
    name, _, number = path.stem.rpartition("-")
    if name != "part":
        raise ValueError
    return path.with_name(f"{name}-{int(number) + 1:0{len(number)}}{path.suffix}")


@contextmanager
def _parquet_file(path: Path) -> Iterator[Any]:
    """Return a context manager of a Parquet file that is open for reading."""
    import pyarrow as pa
    from pyarrow import parquet

    with opened(path) as stored:
        # pyarrow opens the system's path of the open file, if there is one: its threads may let
        # go of a file later, and must not need Python for it, which may have ended
        again = _OPEN_FILES / str(stored.fileno())
        source = pa.OSFile(str(again)) if again.exists() else stored
        with parquet.ParquetFile(source) as file:
            yield file


def row_groups(file: Any, names: Sequence[str], first_row: int, rows: int) -> range:
    """Return the indices of the row groups that contain ``rows`` rows from ``first_row`` on.

    Row groups that claim to be larger than any written here are refused.
    """
    sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    ends = np.cumsum(sizes)
    first, last = np.searchsorted(ends, [first_row, first_row + rows - 1], side="right").tolist()
    for k in range(first, last + 1):
        group = file.metadata.row_group(k)
        columns = [group.column(j) for j in range(group.num_columns)]
        wanted = [column for column in columns if column.path_in_schema.split(".")[0] in names]
        if sizes[k] > _MOST_ROWS or not all(
            column.compression in ("SNAPPY", "UNCOMPRESSED")
            and column.total_uncompressed_size <= _MOST_BYTES
            for column in wanted
        ):
            raise ValueError
    return range(first, last + 1)
