"""Tables in one workbook of Excel.

This module writes workbooks itself. Libraries for workbooks use temporary files, and keep 16 digits
of a number; 16 digits do not determine every double. Workbooks have no formulas: text that begins
with = stays text.
"""

import math
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, final
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from ....files.disk import opened
from ..marks import marks_of
from ..tidy import NUMBERS
from .format import CONTACT, NUMBER_FORMAT, PERIOD, SOURCE, AbstractBook, Notes

_ROWS = 2**20  # most rows of a sheet
_HEADER = 1  # rows above a table
_LONGEST_TEXT = 32767  # most characters of a cell
_LONGEST_NAME = 31  # most characters of a sheet's name, in UTF-16
_ESCAPED = 7  # characters that replace one that XML does not allow
_LARGE = 2**30  # bytes; sheets that may be longer have 64-bit lengths (ZIP64)
_PIECE = 2**16  # bytes of a sheet that are read in one step
_LONGEST_TAG = 2**20  # bytes; this module writes no longer tags
_LONGEST_NUMBER = 64  # most characters of a number
_INEXACT = 2**53  # larger integers are written as text, as sheets have doubles
_NOT_XML = re.compile(r"[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|_(?=x[0-9A-Fa-f]{4}_)")
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\']|[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_PLAIN, _HEAD, _ESTIMATE, _DEVIATION, _TITLE, _WRAPPED, _LINK = range(7)  # indices in _STYLES
_IN_TOTALS = {_PLAIN: 7, _ESTIMATE: 8, _DEVIATION: 9}  # the same styles in bold
_SHEET_STYLES = dict.fromkeys(NUMBERS, _ESTIMATE) | {"standard_deviation": _DEVIATION}
_FIELD_STYLES = {b"0.0": _ESTIMATE, b"0.00": _DEVIATION}

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_BEGIN = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_STYLES = f"""{_BEGIN}<styleSheet xmlns="{_MAIN}">
<numFmts count="1"><numFmt numFmtId="164" formatCode="#,##0.0"/></numFmts>
<fonts count="4"><font><sz val="11"/><name val="Calibri"/></font>
<font><b/><sz val="11"/><name val="Calibri"/></font>
<font><b/><sz val="14"/><name val="Calibri"/></font>
<font><u/><sz val="11"/><color rgb="FF0563C1"/><name val="Calibri"/></font></fonts>
<fills count="3"><fill><patternFill patternType="none"/></fill>
<fill><patternFill patternType="gray125"/></fill>
<fill><patternFill patternType="solid"><fgColor rgb="FFDDE6F0"/></patternFill></fill></fills>
<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>
<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>
<cellXfs count="10"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>
<xf numFmtId="0" fontId="1" fillId="2" borderId="0" xfId="0" applyFont="1" applyFill="1"/>
<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>
<xf numFmtId="4" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>
<xf numFmtId="0" fontId="2" fillId="0" borderId="0" xfId="0" applyFont="1"/>
<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0" applyAlignment="1">\
<alignment vertical="top" wrapText="1"/></xf>
<xf numFmtId="0" fontId="3" fillId="0" borderId="0" xfId="0" applyFont="1"/>
<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>
<xf numFmtId="164" fontId="1" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1"/>
<xf numFmtId="4" fontId="1" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1"/>
</cellXfs>
<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>
</styleSheet>
"""


@final
class Xlsx(AbstractBook):
    """An Excel workbook: a cover with the privacy guarantee, and one sheet for each table.

    Cells whose noise is large have marks of their reliability.

    Rows are numbered over all sheets, 2²⁰ per sheet, so that a number determines the sheet.

    Source: ECMA-376, Office Open XML, part 1, SpreadsheetML
    """

    ending = ".xlsx"
    holds_records = False
    holds_infinite = False
    first_row = _ROWS + _HEADER
    most_rows = _ROWS - _HEADER
    longest_text = _LONGEST_TEXT

    @contextmanager
    def writer(self, file: Path | IO[bytes], schema: Any, notes: Notes) -> Iterator[Any]:
        title = notes.title_of([name for name in schema.names if name not in NUMBERS])
        with _opened_book(file, [title], notes) as book, book.sheet(0, schema, _LARGE) as rows:
            yield rows

    def book(
        self,
        path: Path,
        titles: Sequence[str],
        notes: Notes,
        later: Sequence[str] = (),
        shown: Sequence[int] | None = None,
    ) -> AbstractContextManager["_Book"]:
        return _opened_book(path, [*titles, *later], notes, shown)

    def row_of(self, k: int) -> int:
        return (k + 1) * _ROWS + _HEADER

    def add(self, path: Path, k: int, rows: Any) -> None:
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            with _Book(archive).sheet(k, rows.schema, _LARGE) as sheet:
                sheet.write_table(rows)

    def numbers(
        self, path: Path, names: Sequence[str], first_row: int, cells: int
    ) -> NDArray[np.float64]:
        sheet, row = divmod(first_row, _ROWS)
        if row != _HEADER:
            raise ValueError
        found = np.empty((cells, len(names)))
        rows = 0
        try:
            with opened(path) as file, zipfile.ZipFile(file) as book:
                for numbers in _numbers(book, _path_of(sheet), names):
                    found[rows] = numbers  # raises IndexError if there are too many
                    rows += 1
        except (zipfile.BadZipFile, zlib.error, expat.ExpatError, EOFError, RuntimeError):
            raise ValueError from None
        if rows != cells:
            raise ValueError
        return found.T


@contextmanager
def _opened_book(
    file: Path | IO[bytes], titles: Sequence[str], notes: Notes, shown: Sequence[int] | None = None
) -> Iterator["_Book"]:
    first = range(len(titles)) if shown is None else shown
    order = dict.fromkeys([*first, *range(len(titles))])  # the others come last
    names = {k: _sheet_name(place, titles[k]) for place, k in enumerate(order, 1)}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, text in _parts(names, len(first)):
            archive.writestr(name, text)
        _write_cover(archive, [(names[k], titles[k]) for k in first], notes)
        yield _Book(archive)


class _Book:
    """A workbook that is being written."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    @contextmanager
    def sheet(self, k: int, schema: Any, most_bytes: int) -> Iterator["_Rows"]:
        """Return a context manager of the writer of table ``k``, of at most ``most_bytes``."""
        names = schema.names
        columns = [*names, "mark"] if {*NUMBERS} <= {*names} else names
        styles = [*map(_style_of, schema), _PLAIN][: len(columns)]
        widths = [
            14 if style or name == "mark" else 26
            for name, style in zip(columns, styles, strict=True)
        ]
        path = _path_of(k + 1)
        with self._archive.open(path, "w", force_zip64=most_bytes >= _LARGE) as part:
            part.write(_head(widths, frozen=_HEADER).encode())
            rows = _Rows(part, columns, styles)
            yield rows
            part.write(b"</sheetData>")
            if rows.filtered > _HEADER:
                last = f"{_column(len(columns) - 1)}{rows.filtered}"
                part.write(f'<autoFilter ref="A{_HEADER}:{last}"/>'.encode())
            part.write(b"</worksheet>")


class _Rows:
    """A writer of arrow tables to one sheet, with ``write_table`` like pyarrow's writers."""

    def __init__(self, part: IO[bytes], columns: Sequence[str], styles: Sequence[int]) -> None:
        self._part, self._styles = part, styles
        self.count = self.filtered = 0  # number of rows, and of rows above the totals
        self._write([columns], [_HEAD] * len(columns))

    def write_table(self, rows: Any) -> None:
        self._write(self._cells(rows), self._styles)
        self.filtered = self.count

    def write_totals(self, rows: Any) -> None:
        """Write rows of totals in bold; readers of numbers skip the rows that have this style."""
        self._write(self._cells(rows), [_IN_TOTALS[style] for style in self._styles], _IN_TOTALS[0])

    def _cells(self, rows: Any) -> Iterable[Sequence[object]]:
        columns = [column.to_pylist() for column in rows.columns]  # two may have one name
        if len(columns) < len(self._styles):
            marks = marks_of(*(rows[name].to_numpy() for name in NUMBERS[:2]))
            columns.append(marks.tolist())
        return zip(*columns, strict=True)

    def _write(
        self, rows: Iterable[Sequence[object]], styles: Sequence[int], of_row: int = _PLAIN
    ) -> None:
        for row in rows:
            self.count += 1
            self._part.write(_row(self.count, row, styles, of_row).encode())


def _style_of(field: Any) -> int:
    """Return the index of a column's cell style, from the metadata of its field or its name."""
    own = (field.metadata or {}).get(NUMBER_FORMAT)
    return _SHEET_STYLES.get(field.name, _PLAIN) if own is None else _FIELD_STYLES[own]


def _row(number: int, values: Sequence[object], styles: Sequence[int], of_row: int = _PLAIN) -> str:
    """Return a row of a sheet as XML; ``of_row`` is the index of the whole row's style."""
    cells = "".join(
        _cell(f"{_column(k)}{number}", value, style)
        for k, (value, style) in enumerate(zip(values, styles, strict=True))
    )
    own = f' s="{of_row}" customFormat="1"' if of_row else ""
    return f'<row r="{number}"{own}>{cells}</row>'


def _cell(place: str, value: object, style: int) -> str:
    """Return a cell at a place like "B7" as XML: a number or a text; infinite numbers are empty."""
    if value is None or value == "" or (isinstance(value, float) and not math.isfinite(value)):
        return f'<c r="{place}" s="{style}"/>'
    if isinstance(value, bool):
        return f'<c r="{place}" s="{style}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < _INEXACT):
        return f'<c r="{place}" s="{style}"><v>{value!r}</v></c>'
    text = f'<t xml:space="preserve">{_text(str(value))}</t>'
    return f'<c r="{place}" s="{style}" t="inlineStr"><is>{text}</is></c>'


def _text(text: str) -> str:
    """Return a text escaped for XML; characters that XML forbids are written like ``_x0001_``."""
    return escape(_NOT_XML.sub(lambda found: f"_x{ord(found[0]):04X}_", text))


def _column(k: int) -> str:
    """Return the letters of a column of a sheet, like "AB", given its index from 0."""
    before, last = divmod(k, 26)
    return (_column(before - 1) if before else "") + chr(65 + last)


def _path_of(sheet: int) -> str:
    """Return the path of a sheet inside the workbook's ZIP file; sheet 0 is the cover."""
    return f"xl/worksheets/sheet{sheet + 1}.xml"


def _sheet_name(k: int, title: str) -> str:
    """Return the name of the k-th table's sheet; the number in front makes all names different."""
    name = _NOT_IN_NAMES.sub("_", f"{k} {title}").encode("utf-16-le")[: 2 * _LONGEST_NAME]
    return name.decode("utf-16-le", "ignore").strip()


def _head(widths: Sequence[int], frozen: int = 0) -> str:
    """Return the beginning of a sheet as XML: widths of columns, and rows that stay in view."""
    pane = f'<pane ySplit="{frozen}" topLeftCell="A{frozen + 1}" activePane="bottomLeft" '
    pane += 'state="frozen"/>'
    columns = "".join(
        f'<col min="{k}" max="{k}" width="{width}" customWidth="1"/>'
        for k, width in enumerate(widths, 1)
    )
    return (
        f'{_BEGIN}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0">'
        f"{pane if frozen else ''}</sheetView></sheetViews><cols>{columns}</cols><sheetData>"
    )


def _write_cover(archive: zipfile.ZipFile, tables: Sequence[tuple[str, str]], notes: Notes) -> None:
    """Write the cover sheet: title, source, other sentences, and links to the tables."""
    lines = [(notes.title[:_LONGEST_TEXT], _TITLE), ("", _PLAIN)]
    first = [heading for heading in (SOURCE, PERIOD, CONTACT) if heading in notes.sections]
    for heading in dict.fromkeys([*first, *notes.sections]):
        sentences = notes.sections[heading]
        # readers of a workbook do not know the numbers of SIMS headings
        lines += [(heading.lstrip("0123456789. "), _HEAD)]
        lines += [(sentence[:_LONGEST_TEXT], _WRAPPED) for sentence in sentences] + [("", _PLAIN)]
    lines += [("Tables", _HEAD)]
    above = len(lines) + 1
    lines += [(title[:_LONGEST_TEXT], _LINK) for _, title in tables]
    rows = "".join(_row(k, [text], [style]) for k, (text, style) in enumerate(lines, 1))
    places = [quoteattr(f"'{name}'!A1") for name, _ in tables]
    links = "".join(
        f'<hyperlink ref="A{above + k}" location={place}/>' for k, place in enumerate(places)
    )
    sheet = f"{_head([110])}{rows}</sheetData><hyperlinks>{links}</hyperlinks></worksheet>"
    archive.writestr(_path_of(0), sheet)


def _parts(names: Mapping[int, str], seen: int) -> Iterator[tuple[str, str]]:
    """Yield (path, XML) of all files except sheets; sheets after the first ``seen`` are hidden."""
    numbers = range(1, len(names) + 2)
    kinds = "".join(
        f'<Override PartName="/{_path_of(k - 1)}" ContentType="{_KIND}.worksheet+xml"/>'
        for k in numbers
    )
    yield (
        "[Content_Types].xml",
        f'{_BEGIN}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_KIND}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_KIND}.styles+xml"/>{kinds}</Types>',
    )
    relations = f'{_BEGIN}<Relationships xmlns="{_PACKAGE}/relationships">'
    yield (
        "_rels/.rels",
        f'{relations}<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
    )
    sheets = '<sheet name="about" sheetId="1" r:id="rId1"/>' + "".join(
        f"<sheet name={quoteattr(name)} "
        f"""sheetId="{k + 2}"{' state="hidden"' * (place >= seen)} r:id="rId{k + 2}"/>"""
        for place, (k, name) in enumerate(names.items())
    )
    yield (
        "xl/workbook.xml",
        f'{_BEGIN}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{sheets}</sheets>'
        "</workbook>",
    )
    own = "".join(
        f'<Relationship Id="rId{k}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{k}.xml"/>'
        for k in numbers
    )
    yield (
        "xl/_rels/workbook.xml.rels",
        f'{relations}{own}<Relationship Id="rId{len(numbers) + 1}" Type="{_OFFICE}/styles" '
        'Target="styles.xml"/></Relationships>',
    )
    yield "xl/styles.xml", _STYLES


def _numbers(book: zipfile.ZipFile, path: str, names: Sequence[str]) -> Iterator[list[float]]:
    """Yield numbers of the columns ``names`` for each row; ValueError or LookupError if invalid."""
    sheet = _Sheet(names)
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = sheet.start, sheet.end
    parser.CharacterDataHandler = sheet.text
    parser.StartDoctypeDeclHandler = _refuse
    done = 0
    with book.open(path) as part:
        while piece := part.read(_PIECE):
            parser.Parse(piece, False)
            done += len(piece)
            if done - parser.CurrentByteIndex > _LONGEST_TAG:
                raise ValueError
            yield from sheet.found
            sheet.found.clear()
    parser.Parse(b"", True)


def _refuse(*_: object) -> None:
    raise ValueError


class _Sheet:
    """A parser that collects the numbers of columns, named in the first row, and skips totals."""

    def __init__(self, names: Sequence[str]) -> None:
        self.found: list[list[float]] = []
        self._names, self._row, self._place = names, 0, ""
        self._is_total = False
        self._columns: dict[str, str] = {}  # {letters of a column: its name}
        self._numbers: dict[str, float] = {}  # {column: number in this row}
        self._kept: str | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "row":
            self._row += 1
            # only totals have a row style
            self._is_total = "customFormat" in attributes
        elif tag == "c":
            self._place = attributes["r"].rstrip("0123456789")
        elif (tag == "t" and self._row == _HEADER) or (tag == "v" and self._place in self._columns):
            self._kept = ""

    def text(self, text: str) -> None:
        if self._kept is not None:
            self._kept += text
            if len(self._kept) > (
                _ESCAPED * _LONGEST_TEXT if self._row == _HEADER else _LONGEST_NUMBER
            ):
                raise ValueError

    def end(self, tag: str) -> None:
        if tag == "row" and self._numbers:
            if not self._is_total:
                self.found.append([self._numbers[name] for name in self._names])
            self._numbers = {}
        if self._kept is None or tag not in ("t", "v"):
            return
        if tag == "t" and self._kept in self._names:
            self._columns[self._place] = self._kept
        elif tag == "v":
            self._numbers[self._columns[self._place]] = float(self._kept)
            if not math.isfinite(float(self._kept)):
                raise ValueError
        self._kept = None
