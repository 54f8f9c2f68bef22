"""Tables in JSON Lines."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from ....files.disk import opened, parsed
from .format import AbstractFormat, Notes, new_file, numbers_of

_LONGEST_LINE = 2**24  # bytes; the rest of a longer line is taken for another line, and refused


@final
class JsonLines(AbstractFormat):
    """One JSON object per row, in UTF-8, with null for infinite numbers and NaN.

    Source: https://jsonlines.org
    """

    ending = ".jsonl"
    holds_infinite = False

    @contextmanager
    def writer(self, file: Path | IO[bytes], schema: Any, notes: Notes) -> Iterator[Any]:
        with new_file(file) as own:
            yield _Lines(own)

    def numbers(
        self, path: Path, names: Sequence[str], first_row: int, cells: int
    ) -> NDArray[np.float64]:
        with opened(path) as file:
            lines = iter(partial(file.readline, _LONGEST_LINE), b"")
            return numbers_of(lines, partial(_numbers, names), len(names), first_row, cells)


class _Lines:
    """A writer of arrow tables as JSON Lines, with ``write_table`` like pyarrow's writers."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write_table(self, rows: Any) -> None:
        for row in rows.to_pylist():
            plain = {name: _plain(value) for name, value in row.items()}
            line = json.dumps(plain, ensure_ascii=False, allow_nan=False, default=str)
            self._file.write(f"{line}\n".encode())


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _numbers(names: Sequence[str], line: bytes) -> list[float]:
    """Return the numbers ``names`` of a row; ValueError, LookupError or TypeError if invalid."""
    try:
        row = parsed(line)
        values = [row[name] for name in names]
        if not all(type(value) in (int, float) and math.isfinite(value) for value in values):
            raise ValueError
        return list(map(float, values))
    except OverflowError:  # integers too large for doubles
        raise ValueError from None
