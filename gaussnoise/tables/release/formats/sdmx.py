"""Tables in SDMX-CSV."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from ...planning.facts import marginal_name
from ..marks import LOW_RELIABILITY, marks_of
from ..tidy import LEVEL, NUMBERS, level_text
from .csv import columns_of, write_metadata
from .format import MEASURE, PERIOD, AbstractFormat, Notes

_VALUE = "OBS_VALUE: Observation value"
_STATUS = "OBS_STATUS: Observation status"
_MARK = "RELIABILITY: Mark of the relative standard error"
_ATTRIBUTES = {
    "standard_deviation": "STANDARD_ERROR: Standard error",
    "low": f"LOWER_BOUND: Lower end of the {level_text(LEVEL)} interval",
    "high": f"UPPER_BOUND: Upper end of the {level_text(LEVEL)} interval",
}
_ABOUT = {"TIME_PERIOD: Time period or range": PERIOD, "UNIT_MEASURE: Unit of measure": MEASURE}
_NORMAL, _LOW = "A: Normal value", "U: Low reliability"  # codes of the list CL_OBS_STATUS
_IDENTIFIER = re.compile(r"[A-Z][A-Z0-9_]*")
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_TAKEN = ("STRUCTURE", "STRUCTURE_ID", "ACTION", "SERIES_KEY", "OBS_KEY", "OBS_VALUE", "OBS_STATUS")
_TAKEN += ("STANDARD_ERROR", "LOWER_BOUND", "UPPER_BOUND", "RELIABILITY")
_TAKEN += ("TIME_PERIOD", "UNIT_MEASURE")


@final
class SdmxCsv(AbstractFormat):
    """SDMX-CSV 2.0 with identifiers and names, ``CODE: name``, and the interval as attributes.

    An attribute is identified by its name in capitals, or by ``DIM_1`` and so on where one is no
    identifier of SDMX; a category by its label, or by ``_1`` and so on. The flow is a placeholder
    for the office's own.

    Source: https://github.com/sdmx-twg/sdmx-csv
    """

    ending = "+sdmx.csv"  # names of other tables have no plus sign
    holds_records = holds_columns = False

    def writer(
        self, file: Path | IO[bytes], schema: Any, notes: Notes
    ) -> AbstractContextManager[Any]:
        return _writer(file, schema, notes)

    def numbers(
        self, path: Path, names: Sequence[str], first_row: int, cells: int
    ) -> NDArray[np.float64]:
        own = {"estimate": _VALUE, **_ATTRIBUTES}
        return columns_of(path, [own[name] for name in names], first_row, cells)


@contextmanager
def _writer(file: Path | IO[bytes], schema: Any, notes: Notes) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    names = [name for name in schema.names if name not in NUMBERS]
    about = {
        name: " ".join(said) for name, of in _ABOUT.items() if (said := notes.sections.get(of))
    }
    rows = _Rows(names, list(about.values()))
    texts = ["STRUCTURE", "STRUCTURE_ID", "ACTION", *rows.dimensions]
    fields = [(name, pa.string()) for name in texts]
    fields += [(_VALUE, pa.float64()), (_STATUS, pa.string())]
    fields += [(name, pa.float64()) for name in _ATTRIBUTES.values()] + [(_MARK, pa.string())]
    fields += [(name, pa.string()) for name in about]
    rows.schema = pa.schema(fields)
    if isinstance(file, Path):
        write_metadata(file, {}, rows.dimensions, rows.schema, notes)
    with csv.CSVWriter(file, rows.schema) as writer:
        rows.writer = writer
        yield rows


class _Rows:
    """A writer of arrow tables, with the method of pyarrow's own writers."""

    schema: Any
    writer: Any

    def __init__(self, names: Sequence[str], about: Sequence[str]) -> None:
        ids, self._about = _identifiers(names), about
        self._names, self._codes = names, [_Codes() for _ in names]
        self.dimensions = [f"{id}: {name}" for id, name in zip(ids, names, strict=True)]
        flow = "_BY_".join(ids) or "TOTAL"
        self._start = ["dataflow", f"GAUSSNOISE:{flow}(1.0): {marginal_name(tuple(names))}", "I"]

    def write_table(self, rows: Any) -> None:
        import pyarrow as pa

        count = rows.num_rows
        numbers = {name: rows[name].to_numpy() for name in NUMBERS}
        marks = marks_of(numbers["estimate"], numbers["standard_deviation"])
        columns = [[text] * count for text in self._start]
        columns += [
            codes.of(rows[name].to_pylist())
            for name, codes in zip(self._names, self._codes, strict=True)
        ]
        status = np.where(np.isin(marks, LOW_RELIABILITY), _LOW, _NORMAL)
        columns += [numbers["estimate"], status, *(numbers[name] for name in _ATTRIBUTES), marks]
        columns += [[text] * count for text in self._about]
        arrays = [pa.array(column) for column in columns]
        self.writer.write_table(pa.Table.from_arrays(arrays, schema=self.schema))


def _identifiers(names: Sequence[str]) -> list[str]:
    """Return an identifier for each name, no two the same."""
    numbers = [f"DIM_{k}" for k in range(1, len(names) + 1)]
    found = [
        capital if _IDENTIFIER.fullmatch(capital) and capital not in _TAKEN else number
        for capital, number in zip(map(str.upper, names), numbers, strict=True)
    ]
    return found if len(set(found)) == len(names) else numbers


class _Codes:
    """The codes of the categories of one dimension, in the order in which they come."""

    def __init__(self) -> None:
        self._known: dict[object, str] = {}

    def of(self, labels: Iterable[object]) -> list[str]:
        for label in labels:
            if label not in self._known:
                text = str(label)
                code = text if _CODE.fullmatch(text) else f"_{len(self._known) + 1}"
                self._known[label] = f"{code}: {text}"
        return [self._known[label] for label in labels]
