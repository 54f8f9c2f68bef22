"""Tables in JSON-stat."""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from ....files.disk import opened
from ..marks import marks_of
from ..tidy import NUMBERS
from .format import SOURCE, AbstractFormat, Notes, new_file, numbers_of

_START = b'{"version": "2.0", "class": "dataset", "value": [\n'
_LONGEST_LINE = 2**12  # bytes, enough for four numbers; the rest of a longer line is refused


@final
class JsonStat(AbstractFormat):
    """JSON-stat 2.0: a cube of numbers, with the reliability of each cell as its status.

    The last dimension of the cube holds the numbers of one cell: its estimate, its standard
    deviation, and the bounds of its interval.

    Values come first, in one line per cell, so that they can be read without the rest.

    Source: https://json-stat.org/full/
    """

    ending = ".json"
    holds_records = holds_columns = False
    holds_infinite = False
    most_rows = 2**22  # readers keep whole cubes in memory

    @contextmanager
    def writer(self, file: Path | IO[bytes], schema: Any, notes: Notes) -> Iterator[Any]:
        names = [name for name in schema.names if name not in NUMBERS]
        with new_file(file) as own, _written(own, names, notes) as rows:
            yield rows

    def numbers(
        self, path: Path, names: Sequence[str], first_row: int, cells: int
    ) -> NDArray[np.float64]:
        with opened(path) as file:
            if file.readline(len(_START)) != _START:
                raise ValueError
            lines = iter(partial(file.readline, _LONGEST_LINE), b"],\n")
            columns = [NUMBERS.index(name) for name in names]
            return numbers_of(lines, partial(_numbers, columns), len(names), first_row, cells)


@contextmanager
def _written(file: IO[bytes], names: Sequence[str], notes: Notes) -> Iterator["_Cells"]:
    rows = _Cells(file, names)
    file.write(_START)
    yield rows
    measure = "measure"
    while measure in names:
        measure += "_"
    ids = [*names, measure]
    units: dict[str, dict[str, str]] = {}
    for name, own in zip(names, rows.labels, strict=True):
        if own.keys() & notes.units.get(name, {}).keys():  # counts, sums and means in one cube
            units[name] = {label: notes.units[name].get(label, notes.unit) for label in own}
    units = units or {measure: {name: notes.unit for name in NUMBERS}}
    labels = [*(list(labels) for labels in rows.labels), list(NUMBERS)]
    rest = {
        "label": ": ".join(filter(None, [notes.title, notes.title_of(names)])),
        **({"source": notes.said(SOURCE)} if SOURCE in notes.sections else {}),
        "note": notes.sentences,
        "id": ids,
        "size": [len(own) for own in labels],
        "role": {"metric": [*dict.fromkeys([*units, measure])]},
        "dimension": {
            name: {
                "label": notes.heading(name),
                "category": {"index": own, "label": {x: notes.label(name, x) for x in own}}
                | (
                    {"unit": {x: {"label": unit} for x, unit in units[name].items()}}
                    if notes.unit and name in units
                    else {}
                ),
            }
            for name, own in zip(ids, labels, strict=True)
        },
        "status": rows.status,
    }
    file.write(f"\n],\n{json.dumps(rest, ensure_ascii=False)[1:]}\n".encode())


class _Cells:
    """A writer of arrow tables as JSON-stat cells, with ``write_table`` like pyarrow's writers."""

    def __init__(self, file: IO[bytes], names: Sequence[str]) -> None:
        self._file, self._names, self._cells = file, names, 0
        self.labels: list[dict[str, None]] = [{} for _ in names]  # in the order of the cells
        self.status: dict[str, str] = {}

    def write_table(self, rows: Any) -> None:
        for name, labels in zip(self._names, self.labels, strict=True):
            labels.update(dict.fromkeys(map(str, rows[name].to_pylist())))
        numbers = [rows[name].to_numpy() for name in NUMBERS]
        for mark, *cell in zip(marks_of(*numbers[:2]), *numbers, strict=True):
            values = [json.dumps(x if math.isfinite(x) else None) for x in map(float, cell)]
            self._file.write((b",\n" if self._cells else b"") + ", ".join(values).encode())
            if mark:
                self.status[str(len(NUMBERS) * self._cells)] = str(mark)
            self._cells += 1


def _numbers(columns: Sequence[int], line: bytes) -> list[float]:
    """Return the numbers at ``columns`` of a cell's line; ValueError unless it has four numbers."""
    texts = line.rstrip(b",\n").split(b", ")
    values = [float(texts[k]) for k in columns]
    if len(texts) != len(NUMBERS) or not all(map(math.isfinite, values)):
        raise ValueError
    return values
