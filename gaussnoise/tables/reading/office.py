"""Workbooks of Excel and files of SPSS, Stata and SAS, as the text that CSV would hold.

The text of a cell depends on this cell, and on what the file says about its column: a date format,
a list of missing values, and labels of values. Labels replace values, unless a schema reads the
column as a number (edges, clip, integer categories).
"""

import datetime
import functools
import importlib
import itertools
import math
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import DataError
from ..schema.dialect import hint
from .values import INEXACT

if TYPE_CHECKING:
    import duckdb

STATISTICS = (".sav", ".zsav", ".dta", ".sas7bdat")
OFFICE = (".xlsx", *STATISTICS)
_ROWS = 2**16  # most rows held as Python objects
_MOST_CELLS = 2**25  # most cells of a sheet, empty ones included: about a gigabyte
_CELL = re.compile(rb"<(?:\w+:)?c\s[^>]*?\br=[\"']([A-Z]{1,3})[0-9]+")
_ROW = re.compile(rb"<(?:\w+:)?row\s[^>]*?\br=[\"']([0-9]{1,7})")

Rows: TypeAlias = Iterable[Sequence[str | None]]
# batches of rows: the text of every column
Columns: TypeAlias = Iterator[Sequence[Sequence[str | None]]]


def is_office(path: str) -> bool:
    """Return whether the file is, by its name, an Excel workbook or an SPSS, Stata or SAS file."""
    return path.lower().endswith(OFFICE)


def check_reader(path: str) -> None:
    """Raise DataError if the package that reads this file is not installed."""
    package = "pyreadstat" if path.lower().endswith(STATISTICS) else "python-calamine"
    try:
        importlib.import_module(package.replace("-", "_"))
    except ImportError:
        raise DataError(
            f"table: such a file is read by {package}, which is not installed; hint: pip install "
            '"gaussnoise[office]"'
        ) from None


def open_office(
    paths: Sequence[str],
    connection: "duckdb.DuckDBPyConnection",
    numbers: Sequence[str] = (),
    skip: int = 0,
) -> "duckdb.DuckDBPyRelation":
    """Return a duckdb relation of text columns, in this machine's memory.

    Args:
        paths: the files.
        connection: a connection of duckdb.
        numbers: columns in which labels do not replace values.
        skip: the number of rows before the names of the columns, in workbooks.

    Raises:
        DataError: no reader is installed, no first row of distinct names, several sheets, or files
            of different columns.
    """
    import pyarrow as pa

    tables = []
    for path in paths:
        check_reader(path)
        names, rows = _read(path, numbers, skip)
        schema = pa.schema([(name, pa.string()) for name in names])
        batches = [
            pa.record_batch([pa.array(column, pa.string()) for column in columns], schema=schema)
            for columns in rows
        ]
        tables.append(pa.Table.from_batches(batches, schema=schema))
    _check_same_columns([table.column_names for table in tables])
    return connection.from_arrow(pa.concat_tables(tables))


def office_names(paths: Sequence[str], skip: int = 0) -> list[str] | None:
    """Return the names of the columns; None if other cells could determine them.

    Raises:
        DataError: as for :func:`open_office`, for reasons that do not depend on rows.
    """
    try:
        for path in paths:
            if not path.lower().endswith(STATISTICS):
                _check_extent(path)
    except Exception:  # noqa: BLE001 (a damaged or huge file: reading it raises the error)
        return None
    try:
        found = [_read(path, (), skip)[0] for path in paths]
    except DataError:
        raise
    except Exception:  # noqa: BLE001 (a damaged file)
        return None
    _check_same_columns(found)
    return found[0]


def _read(path: str, numbers: Sequence[str], skip: int) -> tuple[list[str], Columns]:
    """Return the names of a file's columns, and batches of their text."""
    # of a workbook, skip rows before the names are left out; labels do not replace numbers
    is_sheet = not path.lower().endswith(STATISTICS)
    names, rows = _sheet(path, skip) if is_sheet else _statistics(path, numbers)
    _check_names(names)
    return names, rows


def _check_same_columns(names: Sequence[Sequence[str]]) -> None:
    if any(own != names[0] for own in names):
        raise DataError("table: expected the same columns in the same order in every file")


def _sheet(path: str, skip: int) -> tuple[list[str], Columns]:
    """Return the names (after ``skip`` rows) and the text of the columns in a workbook's sheet."""
    from python_calamine import CalamineWorkbook

    _check_extent(path)
    book = CalamineWorkbook.from_path(path)
    if len(book.sheet_names) != 1:
        raise DataError(
            f"table: expected a workbook of one sheet, got {len(book.sheet_names)}; hint: save a "
            "copy of the sheet alone"
        )
    rows = itertools.islice(book.get_sheet_by_index(0).iter_rows(), skip, None)
    header = [cell_text(value) for value in next(iter(rows), [])]
    # columns without a name are left out
    named = [k for k, name in enumerate(header) if name is not None]

    def columns() -> Columns:
        chosen = ([cell_text(row[k]) for k in named] for row in rows)
        yield from _transposed(row for row in chosen if any(x is not None for x in row))

    return [header[k] or "" for k in named], columns()


def _check_extent(path: str) -> None:
    """Refuse a workbook with a cell so far down or right that reading it would use all memory."""
    with zipfile.ZipFile(path) as book:
        for name in filter(re.compile(r"xl/worksheets/[^/]*\.xml").fullmatch, book.namelist()):
            cells, columns, rows, rest = 0, {b"A"}, 1, b""
            with book.open(name) as sheet:
                while piece := sheet.read(2**20):
                    text = rest + piece
                    # the last tag may be incomplete
                    whole = text.rfind(b"<")
                    found = _CELL.findall(text, 0, whole)
                    rows = max(rows, *map(int, _ROW.findall(text, 0, whole)), 1)
                    cells, columns, rest = cells + len(found), columns.union(found), text[whole:]
            widest = max(columns, key=lambda letters: (len(letters), letters))
            width = functools.reduce(lambda known, letter: 26 * known + letter - 64, widest, 0)
            # the reader allocates all cells up to the last one, and ends the process if it cannot
            if width * rows > max(_MOST_CELLS, 64 * cells):
                raise DataError(
                    "table: expected a sheet whose cells are near each other, got one with a cell "
                    "far away; hint: delete what stands outside the table, or save it as CSV"
                )


def _transposed(rows: Rows) -> Columns:
    some: list[Sequence[str | None]] = []
    for row in rows:
        some.append(row)
        if len(some) == _ROWS:
            yield list(zip(*some, strict=True))
            some = []
    if some:
        yield list(zip(*some, strict=True))


def cell_text(value: object) -> str | None:
    """Return the value of a cell as text, as CSV writes it; None for an empty cell."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        whole = value.is_integer() and abs(value) < INEXACT
        return None if math.isnan(value) else str(int(value)) if whole else repr(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    return None if value is None else str(value) or None


_READERS = {".sav": "read_sav", ".zsav": "read_sav", ".dta": "read_dta"}


def _statistics(path: str, numbers: Sequence[str]) -> tuple[list[str], Columns]:
    """Return the names and the text of the columns of an SPSS, Stata or SAS file."""
    import pyreadstat

    end = Path(path).suffix.lower()
    read = getattr(pyreadstat, _READERS.get(end, "read_sas7bdat"))
    # conversion fails for dates beyond Python's calendar; user_missing=False turns values in the
    # file's list of missing values into nulls
    options = {"disable_datetime_conversion": True, "output_format": "dict", "user_missing": False}
    _, said = read(path, metadataonly=True, disable_datetime_conversion=True)
    names = list(said.column_names)
    texts = [
        _text_of(
            said.original_variable_types[name],
            # in columns of numbers, labels do not replace values
            {} if name in numbers else said.variable_value_labels.get(name, {}),
            end,
        )
        for name in names
    ]

    def columns() -> Columns:
        start = 0
        while True:
            data, _ = read(path, row_offset=start, row_limit=_ROWS, **options)
            if not names or not len(data[names[0]]):
                return
            yield [list(map(text, data[name])) for name, text in zip(names, texts, strict=True)]
            start += _ROWS

    return names, columns()


def _text_of(format: str, labels: Mapping[Any, str], end: str) -> Callable[[object], str | None]:
    """Return a function that turns the values of a column into text, by labels and format."""
    date = _as_date(format or "", end)

    def text(value: object) -> str | None:
        if labels and value is not None and value in labels:
            return labels[value]
        return (
            cell_text(value) if date is None or not isinstance(value, int | float) else date(value)
        )

    return text


_SPSS = datetime.datetime(1582, 10, 14)
_SAS_AND_STATA = datetime.datetime(1960, 1, 1)
_SAS_DATES = re.compile(
    r"(DATE|(MMDDYY|DDMMYY|YYMMDD)[BCDNPS]?|WEEKDAT[EX]|(IS|E|B)8601DA|B8601DA)[0-9.]*"
)
_SAS_TIMES = re.compile(r"(DATETIME|DATEAMPM|MDYAMPM|(IS|E|B)8601D[TN])[0-9.]*")


def _as_date(format: str, end: str) -> Callable[[float], str | None] | None:
    """Return a function that turns numbers into text of dates; None if the format has no dates."""
    day, time, origin, seconds = False, False, _SAS_AND_STATA, 1.0
    if end == ".dta":  # days or milliseconds; %tC counts leap seconds and is left as a number
        day, time = format.startswith(("%td", "%d")), format.startswith("%tc")
        seconds = 86400.0 if day else 1e-3
    elif end == ".sas7bdat":
        day, time = (bool(kind.fullmatch(format)) for kind in (_SAS_DATES, _SAS_TIMES))
        seconds = 86400.0 if day else 1.0
    else:
        day = bool(re.match(r"([AEJS]?DATE)(?!TIME)[0-9.]*$", format))
        time, origin = bool(re.match(r"(DATETIME|YMDHMS)", format)), _SPSS
    if not (day or time):
        return None

    def date(value: float) -> str | None:
        if math.isnan(value):
            return None
        try:
            moment = origin + datetime.timedelta(seconds=value * seconds)
        except OverflowError:
            return cell_text(value)  # outside of Python's calendar
        return moment.date().isoformat() if day else moment.isoformat(" ")

    return date


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise DataError(
            "table: expected column names in the first row; hint: begin in cell A1; for rows "
            f"before the column names, {hint(skip=2)}"
        )
    if len({name.lower() for name in names}) < len(names):
        raise DataError(
            "table: expected column names that differ in more than upper and lower case; hint: "
            "rename one, also where neither is asked for"
        )
