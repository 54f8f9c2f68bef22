"""Tables in CSV."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from ....files.disk import opened
from .format import AbstractFormat


@final
class Csv(AbstractFormat):
    """CSV as pyarrow writes it."""

    holds_many = False

    def writer(self, file: Path | IO[bytes], schema: Any) -> AbstractContextManager[Any]:
        from pyarrow import csv

        return csv.CSVWriter(file, schema)

    def estimates(self, path: Path, first_row: int, cells: int) -> NDArray[np.float64]:
        """Read in blocks, so that a file that is too long takes no more memory."""
        from pyarrow import csv

        convert = csv.ConvertOptions(
            include_columns=["estimate"], column_types={"estimate": "float64"}
        )
        parse = csv.ParseOptions(newlines_in_values=True)  # labels may contain line ends
        found, rows = [], 0
        with (
            opened(path) as file,
            csv.open_csv(file, parse_options=parse, convert_options=convert) as blocks,
        ):
            for block in blocks:
                found.append(block["estimate"].to_numpy(zero_copy_only=False))
                rows += len(block)
                if rows > cells:
                    break
        if (first_row, rows) != (0, cells):
            raise ValueError
        return np.concatenate(found)
