"""The probable dialect of CSV files, found from their rows: only for drafts of a schema.

A release reads a table in the dialect stated by its owner, who has to check a draft.
"""

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import DataError
from ..schema.date_format import LIKE_DATES, as_iso_in_sql, likely_formats
from ..schema.dates import ISO
from ..schema.dialect import GROUP_MARKS, USUAL, Dialect, Files
from .as_read import columns_as_read
from .csv import check_quotes, naming_lines, text_number
from .files import dialect_of, is_csv, table_files
from .frames import Relation, guarded, literal, open_table, sql
from .office import is_office
from .plain import name_of, unpacked

_SAMPLE = 2**20
_MOST_RECORDS = 200
_MOST_SKIPPED = 100  # most lines that may stand before the column names
# numbers with a mark that separates no thousands: it is not before exactly three digits, or 0 is
# before it
_COMMA, _POINT = (
    re.compile(rf" *[+-]?([0-9]*{mark}([0-9]{{1,2}}|[0-9]{{4,}})|0?{mark}[0-9]{{3}}) *")
    for mark in (",", r"\.")
)
_MARKED = re.compile(rf"(?=.*[0-9])[0-9+-]*[{re.escape(''.join(GROUP_MARKS))}][-+0-9.,'’\s]*")
_SHAPE = str.maketrans("23456789", "11111111")  # so that numbers of one form are one text
_MOST_DATES = 2**16  # most distinct dates that are considered


def sniffed(table: object, stated: Dialect = USUAL) -> Dialect:
    """Return the probable dialect (delimiter, quote, encoding, …) of a table's first file.

    The date format is found from all files. Parts that ``stated`` gives are kept. If the table is
    no CSV, ``stated`` is returned.
    """
    path = next(iter(table_files(table) if is_csv(table) else ()), None)
    if path is None or is_office(path):
        return stated
    found, quoted = guarded("look at the file", lambda: _of_text(path, stated))
    usual = USUAL.of(name_of(path))[1]
    other = replace(found, quote='"')
    if stated.quote is None and usual and not _fits(path, found):
        found = replace(found, quote="")
    elif stated.quote is None and not usual and quoted and _fits(path, other):
        found = other
    return replace(found, date_format=_date_format(found.table(_given(table)), stated))


def marks_fit(path: str, dialect: Dialect) -> bool:
    """Return whether the first numbers of a CSV file can have a dialect's decimal mark.

    Comma and point are the two possible marks: 0.037 and 2.5 have a point. A mark does not fit if
    more numbers have the other mark. If ``thousands`` is comma or point, a mark does not fit if any
    number has the other mark.
    """
    usual, quote = USUAL.of(name_of(path))

    def found() -> tuple[int, int]:
        lines = _lines(path, dialect.encoding)[dialect.skip :]
        return _decimals(_numbers(lines, dialect.delimiter or usual, dialect.quote or quote or '"'))

    commas, points = guarded("look at the file", found)
    own, other = (commas, points) if dialect.decimal == "," else (points, commas)
    is_mark = dialect.thousands in (",", ".")
    return not other if is_mark else own >= other


def _given(table: object) -> Any:
    return table.paths if isinstance(table, Files) else table


def _date_format(table: Files, stated: Dialect) -> str:
    """Return the stated format of dates, or one that clearly fits best if the usual is stated."""
    if stated.date_format != USUAL.date_format:
        return stated.date_format
    try:
        relation = open_table(table).to_native()
    except DataError:  # the draft will raise it
        return stated.date_format

    def found() -> dict[str, int]:
        texts: Counter[str] = Counter()
        for name in _like_dates(relation):
            # replace minutes and what follows by ":", so that equal dates and hours are one group
            text = f"regexp_replace({sql(name)}, '(:[0-9.]*)+$', ':')"
            counted = relation.aggregate(f"{text} AS text, count(*) AS n", text)
            texts.update({text or "": n for text, n in counted.limit(_MOST_DATES).fetchall()})
        return texts

    with naming_lines(table):
        formats = likely_formats(guarded("look for dates", found))
    # often day and month could be swapped, so that several formats fit best
    return formats[0] if len(formats) == 1 else stated.date_format


def _fits(path: str, dialect: Dialect) -> bool:
    try:
        check_quotes(path, dialect)
    except DataError:
        return False
    return True


def _of_text(path: str, stated: Dialect) -> tuple[Dialect, bool]:
    """Return the probable dialect of a file, and whether some field begins with ``"``."""
    encoding = _encoding(path) if stated.encoding == USUAL.encoding else stated.encoding
    lines = _lines(path, encoding)
    first = lines[0].strip('\r\n"') if lines else ""
    delimiter, quote, skip = stated.delimiter, stated.quote or '"', stated.skip
    if first[:4].lower() == "sep=" and len(first) == 5:
        delimiter, skip = first[4], max(skip, 1)
    lines = lines[skip:]
    if delimiter is None:
        delimiter = max(",;\t|", key=lambda mark: _agreement(lines, mark, quote))
    if not stated.skip and (before := _lines_before(lines, delimiter, quote)):
        lines, skip = lines[before:], skip + before
    else:
        skip = stated.skip
    numbers = _numbers(lines, delimiter, quote)
    commas, points = _decimals(numbers)
    decimal = "," if commas > points else stated.decimal
    thousands, decimal = _grouped(list(numbers), stated, decimal)
    usual = USUAL.of(name_of(path))[0] == delimiter
    found = Dialect(
        None if usual else delimiter,
        decimal,
        encoding=encoding,
        quote=stated.quote,
        thousands=thousands,
        skip=skip,
    )
    return found, any(line.startswith('"') or f'{delimiter}"' in line for line in lines)


def _lines(path: str, encoding: str) -> list[str]:
    """Return the first lines of a file."""
    with unpacked(path) as file:
        sample = file.read(_SAMPLE).decode(encoding, "replace").removeprefix("\ufeff")
    # in a longer file, the last line of the sample may be incomplete
    return list(io.StringIO(sample, newline=""))[: None if len(sample) < _SAMPLE else -1]


def _numbers(lines: Sequence[str], delimiter: str, quote: str) -> dict[str, int]:
    """Return {shape: number of fields} for numbers with marks; 25,0 has the shape 11,0."""
    _, *records = _records(lines, delimiter, quote, most=None) or [[]]
    shapes = Counter(field.translate(_SHAPE) for record in records for field in record)
    return {shape: rows for shape, rows in shapes.items() if _MARKED.fullmatch(shape)}


def _decimals(numbers: Mapping[str, int]) -> tuple[int, int]:
    """Return how many numbers certainly have a decimal comma, and how many a decimal point."""
    commas, points = (
        sum(rows for shape, rows in numbers.items() if kind.fullmatch(shape))
        for kind in (_COMMA, _POINT)
    )
    return commas, points


def _grouped(fields: Sequence[str], stated: Dialect, decimal: str) -> tuple[str | None, str]:
    """Return the thousands separator and the decimal mark, if the numbers are unambiguous."""
    if stated.thousands is not None:
        return stated.thousands, decimal

    def some(like: str) -> bool:
        return any(re.fullmatch(f" *[+-]?{like} *", field) for field in fields)

    found = []
    for mark in GROUP_MARKS:
        m = re.escape(mark)
        groups = f"[0-9]{{1,3}}(?:{m}[0-9]{{3}})"
        # some number must have both marks, as 1.234,5, or one mark twice, as 1.234.567
        points = [p for p in ".," if p != mark and some(f"{groups}+{re.escape(p)}[0-9]+")]
        if not points and some(f"{groups}{{2,}}"):
            points = [{".": ",", ",": "."}.get(mark, decimal)]
        kept = stated.decimal in (USUAL.decimal, *points)
        # no number may have the mark of thousands before other than three digits
        if len(points) == 1 and kept and not some(f"[0-9]*{m}(?:[0-9]{{0,2}}|[0-9]{{4,}})"):
            found.append((mark, points[0]))
    return found[0] if len(found) == 1 else (None, decimal)


def _encoding(path: str) -> str:
    """Return "utf-8" if the whole file is valid UTF-8, else "cp1252" (Windows in the West)."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with unpacked(path) as file:
        try:
            while piece := file.read(_SAMPLE):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def _records(
    lines: Sequence[str], delimiter: str, quote: str, most: int | None = _MOST_RECORDS
) -> list[list[str]]:
    """Return at most ``most`` records (lists of fields) in these lines; [] if they are no CSV."""
    records = csv.reader(lines, delimiter=delimiter, quotechar=quote)
    try:
        return list(filter(None, itertools.islice(records, most)))
    except csv.Error:
        return []


def _agreement(lines: Sequence[str], delimiter: str, quote: str) -> tuple[bool, bool, bool, int]:
    """Return a measure of how well a delimiter fits, which is largest for the probable one."""
    # all records have several fields, the same number of them; so have those after lines before
    # the column names; all have the same number; the largest number
    lengths = Counter(map(len, _records(lines, delimiter, quote)))
    same, most = len(lengths) == 1, max(lengths, default=0)
    several = same and most > 1
    return several, several or _lines_before(lines, delimiter, quote) > 0, same, most


def _lines_before(lines: Sequence[str], delimiter: str, quote: str) -> int:
    """Return the number of lines before the line of column names; 0 if that line is uncertain."""
    # all records have as many fields as there are names; lines before have another number. A line
    # with one field less, right above, may itself hold the names, without one for row names
    before: list[int] = []
    for skip, line in enumerate(lines[:_MOST_SKIPPED]):
        records = _records(lines[skip:], delimiter, quote) if line.strip("\r\n") else []
        (size, *others) = {len(record) for record in records} or {0}
        if len(records) > 1 and size > 1 and not others:
            in_doubt = size in before or (before or [0])[-1] == size - 1
            return 0 if in_doubt or not _like_names(records[0]) else skip
        before.append(len(next(iter(_records([line], delimiter, quote)), [])))
    return 0


def _like_names(fields: Sequence[str]) -> bool:
    """Return whether fields may be column names: they differ, and each has a letter."""
    # names may have commas, but no other delimiter; text like "Rome, Italy" has a blank where the
    # next name would begin
    names = {field.strip().lower() for field in fields}
    return (
        len(names) == len(fields)
        and not any(field[:1].isspace() for field in fields)
        and all(re.search(r"[^\W\d_]", name) and not re.search(r"[;|\t]", name) for name in names)
    )


def decimal_columns(table: object) -> list[str]:
    """Return the CSV columns with decimal commas or thousands separators, to be drafted as numbers.

    In such a column, most values are numbers, and every value with a digit and a comma or point is
    a number.
    """
    own = dialect_of(table)
    if (own.decimal == USUAL.decimal and own.thousands is None) or not is_csv(table):
        return []

    def test(name: str) -> str:
        number = text_number(columns_as_read(own, [name], [])[name].sql(sql(name)))
        return (
            f"2 * count({number}) > count({sql(name)}) AND bool_and({number} IS NOT NULL OR "
            f"regexp_full_match(coalesce({sql(name)}, ''), '[^,.]*|[^0-9]*'))"
        )

    return _columns_with(table, open_table(table).to_native().columns, test)


def date_columns(table: object) -> list[str]:
    """Return the CSV columns with dates in the stated format, to be drafted as dates.

    In such a column, most values are dates in this format or in ISO 8601, and some are not in ISO
    8601.
    """
    form = dialect_of(table).date_format
    if form == USUAL.date_format or not is_csv(table):
        return []
    like = guarded("look for dates", lambda: _like_dates(open_table(table).to_native()))

    def test(name: str) -> str:
        column, read = sql(name), as_iso_in_sql(sql(name), form)
        dates = f"count(*) FILTER (regexp_full_match({read}, {literal(ISO)}))"
        present = f"count(*) FILTER ({column} NOT IN ('', 'NA'))"
        return f"2 * {dates} > {present} AND bool_or({read} <> {column})"

    return _columns_with(table, like, test)


def _like_dates(relation: Relation) -> list[str]:
    """Return the columns of text in which most of the first values resemble dates."""
    found = []
    for name in relation.columns:
        rows = relation.filter(f"{sql(name)} NOT IN ('', 'NA')").select(sql(name))
        texts = [text for (text,) in rows.limit(_MOST_RECORDS).fetchall()]
        if 2 * sum(re.match(LIKE_DATES, text) is not None for text in texts) > len(texts):
            found.append(name)
    return found


def _columns_with(table: object, names: list[str], test: Callable[[str], str]) -> list[str]:
    """Return the CSV columns for which ``test(column)``, an aggregate in SQL, is true."""
    if not names:
        return []
    relation, tests = open_table(table).to_native(), ", ".join(map(test, names))
    answers = guarded("look at the columns", lambda: relation.aggregate(tests).fetchall())
    return [name for name, yes in zip(names, answers[0], strict=True) if yes]
