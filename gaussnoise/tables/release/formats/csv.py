"""Tables in CSV."""

import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from ....files.disk import opened
from ..tidy import LEVEL, NUMBERS, level_text
from .format import MEANING, AbstractFormat, Notes

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")  # names that need no escapes
_WAITS = 1000  # milliseconds
MEANINGS = {
    "estimate": "the estimate",
    "standard_deviation": "the standard deviation of the noise in the estimate",
    "low": f"the lower end of the {level_text(LEVEL)} interval",
    "high": f"the upper end of the {level_text(LEVEL)} interval",
}


@final
class Csv(AbstractFormat):
    """CSV as pyarrow writes it, with a metadata file beside it (W3C, CSV on the Web)."""

    ending = ".csv"

    def writer(
        self, file: Path | IO[bytes], schema: Any, notes: Notes
    ) -> AbstractContextManager[Any]:
        from pyarrow import csv

        if isinstance(file, Path):
            own = {
                f.name: f.metadata[MEANING].decode()
                for f in schema
                if MEANING in (f.metadata or {})
            }
            keys = [name for name in schema.names if name not in NUMBERS and name not in own]
            write_metadata(file, MEANINGS | own, keys, schema, notes)
        return csv.CSVWriter(file, schema)

    def numbers(
        self, path: Path, names: Sequence[str], first_row: int, cells: int
    ) -> NDArray[np.float64]:
        return columns_of(path, names, first_row, cells)


def write_metadata(
    path: Path, meanings: Mapping[str, str], keys: Sequence[str], schema: Any, notes: Notes
) -> None:
    """Write the metadata file that belongs to a CSV file, under the name that the W3C prescribes.

    Args:
        path: the CSV file.
        meanings: {column: its meaning}, for columns whose title does not say it.
        keys: the titles of the columns that identify the cell of a row.
        schema: the arrow schema of the rows.
        notes: sentences about the table.

    Source: https://www.w3.org/TR/tabular-metadata/
    """
    names = {
        title: title if _NAME.fullmatch(title) else f"column.{k}"
        for k, title in enumerate(schema.names, 1)
    }
    columns = [
        {"name": names[field.name], "titles": _titles(field.name, notes)}
        | {"datatype": _datatype(field.type)}
        | ({"schema:unitText": unit} if (unit := notes.measured_in.get(field.name)) else {})
        | ({"dc:description": said} if (said := meanings.get(field.name)) else {})
        for field in schema
    ]
    record = {
        "@context": "http://www.w3.org/ns/csvw",
        "url": path.name,
        "dc:title": notes.title_of(keys),
        "dc:description": "\n".join(notes.sentences),
        "dialect": {"encoding": "utf-8", "header": True},
        "tableSchema": {"columns": columns}
        | ({"primaryKey": [names[key] for key in keys]} if keys else {}),
    }
    text = json.dumps(record, indent=2, ensure_ascii=False)
    path.with_name(f"{path.name}-metadata.json").write_text(text + "\n", encoding="utf-8")


def _titles(name: str, notes: Notes) -> str | list[str]:
    """Return the titles of a column: its name in the file, and the name that readers see."""
    heading = notes.heading(name)
    return name if heading == name else [name, heading]


def _datatype(kind: Any) -> str:
    """Return the name that the W3C's CSV metadata gives to an arrow data type, like "double"."""
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind):
        return "integer"
    return "double" if pa.types.is_floating(kind) else "string"


def columns_of(path: Path, names: Sequence[str], first_row: int, cells: int) -> NDArray[np.float64]:
    """Return the columns ``names`` of a CSV file with a single table, one column per array row."""
    with opened(path) as file:
        own = sys.getrefcount(file)
        found = _numbers(file, names, cells)
        for _ in range(_WAITS):
            # a thread of arrow may use the file a moment longer; if Python ends meanwhile, the
            # process is aborted
            if sys.getrefcount(file) <= own:
                break
            time.sleep(0.001)
    if (first_row, found.shape[1]) != (0, cells):
        raise ValueError
    return found


def _numbers(file: IO[bytes], names: Sequence[str], most: int) -> NDArray[np.float64]:
    """Return the columns ``names`` of a CSV file, each as a row of the array."""
    from pyarrow import csv

    kinds = dict.fromkeys(names, "float64")
    convert = csv.ConvertOptions(include_columns=list(names), column_types=kinds)
    parse = csv.ParseOptions(newlines_in_values=True)  # labels may contain line ends
    found, rows = [], 0
    with csv.open_csv(file, parse_options=parse, convert_options=convert) as blocks:
        for block in blocks:
            found.append([block[name].to_numpy(zero_copy_only=False) for name in names])
            rows += len(block)
            # blocks are read only until there are too many rows, so that memory is bounded
            if rows > most:
                break
    return np.concatenate(found, axis=1)
