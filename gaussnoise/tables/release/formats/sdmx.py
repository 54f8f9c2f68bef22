"""Tables in SDMX-CSV."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from ..marks import LOW_RELIABILITY, marks_of
from ..tidy import LEVEL, NUMBERS, level_text
from .csv import columns_of, write_metadata
from .format import PERIOD, AbstractFormat, Notes

_VALUE = "OBS_VALUE: Observation value"
_STATUS = "OBS_STATUS: Observation status"
_MARK = "RELIABILITY: Mark of the relative standard error"
_ATTRIBUTES = {
    "standard_deviation": "STANDARD_ERROR: Standard error",
    "low": f"LOWER_BOUND: Lower end of the {level_text(LEVEL)} interval",
    "high": f"UPPER_BOUND: Upper end of the {level_text(LEVEL)} interval",
}
_PERIOD, _UNIT = "TIME_PERIOD: Time period or range", "UNIT_MEASURE: Unit of measure"
_OTHER_PERIOD = "REF_PERIOD: Reference period"  # the column for a period in words
_NORMAL, _LOW = "A: Normal value", "U: Low reliability"  # codes from the code list CL_OBS_STATUS
_IDENTIFIER = re.compile(r"[A-Z][A-Z0-9_]*")
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_TAKEN = ("STRUCTURE", "STRUCTURE_ID", "ACTION", "SERIES_KEY", "OBS_KEY", "OBS_VALUE", "OBS_STATUS")
_TAKEN += ("STANDARD_ERROR", "LOWER_BOUND", "UPPER_BOUND", "RELIABILITY")
_TAKEN += ("TIME_PERIOD", "REF_PERIOD", "UNIT_MEASURE")
# SDMX 2.1, section 6, 4.2: Gregorian and reporting periods, times, and time ranges
_START = r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d)?"
_DURATION = r"P(?=.)(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=.)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?"
_TIMES = re.compile(
    r"(?!0000)\d{4}(?:-(?:0[1-9]|1[0-2]|A1|S[12]|T[1-3]|Q[1-4]|M0[1-9]|M1[0-2]"
    r"|W0[1-9]|W[1-4]\d|W5[0-3]|D00[1-9]|D0[1-9]\d|D[12]\d\d|D3[0-5]\d|D36[0-6]))?"
    rf"|({_START})(?:/{_DURATION})?",
    re.ASCII,
)


@final
class SdmxCsv(AbstractFormat):
    """SDMX-CSV 2.0, with ``CODE: name`` for each category, and intervals as SDMX attributes.

    The identifier of an attribute is its name in capitals. If one name is no identifier of SDMX,
    the identifiers of all attributes are ``DIM_1`` and so on. The identifier of a category is its
    label, or ``_1`` and so on. The dataflow is a placeholder for the dataflow of the statistical
    office. A period in words, which SDMX does not allow, is in a separate column.

    Source: https://github.com/sdmx-twg/sdmx-csv
    """

    ending = "+sdmx.csv"  # names of other CSV tables contain no plus sign
    holds_records = holds_columns = False

    @contextmanager
    def writer(self, file: Path | IO[bytes], schema: Any, notes: Notes) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv

        names = [name for name in schema.names if name not in NUMBERS]
        period = notes.said(PERIOD)
        about = {_PERIOD if is_time_period(period) else _OTHER_PERIOD: period} if period else {}
        rows = _Rows(names, [*about.values()], notes)
        texts = ["STRUCTURE", "STRUCTURE_ID", "ACTION", *rows.dimensions]
        fields = [(name, pa.string()) for name in texts]
        fields += [(_VALUE, pa.float64()), (_STATUS, pa.string())]
        fields += [(name, pa.float64()) for name in _ATTRIBUTES.values()] + [(_MARK, pa.string())]
        fields += [(name, pa.string()) for name in (*about, *([_UNIT] if notes.unit else []))]
        rows.schema = pa.schema(fields)
        if isinstance(file, Path):
            write_metadata(file, {}, rows.dimensions, rows.schema, notes)
        with csv.CSVWriter(file, rows.schema) as writer:
            rows.writer = writer
            yield rows

    def numbers(
        self, path: Path, names: Sequence[str], first_row: int, cells: int
    ) -> NDArray[np.float64]:
        own = {"estimate": _VALUE, **_ATTRIBUTES}
        return columns_of(path, [own[name] for name in names], first_row, cells)


class _Rows:
    """A writer of arrow tables as SDMX-CSV, with ``write_table`` like pyarrow's writers."""

    schema: Any
    writer: Any

    def __init__(self, names: Sequence[str], about: Sequence[str], notes: Notes) -> None:
        ids, self._about, self._notes = _identifiers(names), about, notes
        self._names, self._codes = names, [_Codes(partial(notes.label, name)) for name in names]
        headings = map(notes.heading, names)
        self.dimensions = [f"{id}: {said}" for id, said in zip(ids, headings, strict=True)]
        flow = "_BY_".join(ids) or "TOTAL"
        self._start = ["dataflow", f"GAUSSNOISE:{flow}(1.0): {notes.title_of(names)}", "I"]

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
        if self._notes.unit:
            labels = {name: rows[name].to_pylist() for name in self._names}
            columns.append([*map(_unit, self._notes.units_in(labels, count))])
        arrays = [pa.array(column) for column in columns]
        self.writer.write_table(pa.Table.from_arrays(arrays, schema=self.schema))


def is_time_period(text: str) -> bool:
    """Return whether a text is a time period in SDMX, like 2024, 2024-Q1 or 2024-01-31."""
    found = _TIMES.fullmatch(text)
    try:
        return found is not None and bool(datetime.fromisoformat(found[1] or "2000-01-01"))
    except ValueError:  # not a day of the calendar
        return False


@cache
def _unit(text: str) -> str:
    """Return a unit of measure as ``CODE: name``; a unit has the same code in every file."""
    letters = (x if x.isascii() and x.isalnum() else f"_{ord(x):X}" for x in text.upper())
    return f"{''.join(letters).replace('_20', '_')}: {text}"


def _identifiers(names: Sequence[str]) -> list[str]:
    """Return SDMX identifiers for names: one for each name, all different."""
    numbers = [f"DIM_{k}" for k in range(1, len(names) + 1)]
    found = [
        capital if _IDENTIFIER.fullmatch(capital) and capital not in _TAKEN else number
        for capital, number in zip(map(str.upper, names), numbers, strict=True)
    ]
    return found if len(set(found)) == len(names) else numbers


class _Codes:
    """The codes of the categories of one dimension, in order of their first use."""

    def __init__(self, named: Callable[[str], str]) -> None:
        self._known: dict[object, str] = {}
        self._named = named

    def of(self, labels: Iterable[object]) -> list[str]:
        for label in labels:
            if label not in self._known:
                text = str(label)
                code = text if _CODE.fullmatch(text) else f"_{len(self._known) + 1}"
                self._known[label] = f"{code}: {self._named(text)}"
        return [self._known[label] for label in labels]
