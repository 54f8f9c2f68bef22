"""The probable dialect of files, from their rows: only for drafts.

A release reads a table in the dialect stated by its owner, who checks a draft by hand.
"""

import codecs
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...errors import DataError
from ..schema.dialect import USUAL, Dialect
from .csv import check_quotes, text_number
from .files import dialect_of, is_csv, table_files
from .frames import guarded, open_table, sql
from .office import is_office
from .plain import name_of, unpacked

_SAMPLE = 2**20
_MOST_RECORDS = 200
# a comma before three digits may separate thousands
_COMMA = re.compile(r"\s*[+-]?[0-9]*,([0-9]{1,2}|[0-9]{4,})\s*")
_POINT = re.compile(r"\s*[+-]?[0-9]*\.[0-9]+\s*")


def sniffed(table: object, stated: Dialect = USUAL) -> Dialect:
    """Return the probable dialect of a table's first file.

    Stated parts are kept. If the table is no CSV, the stated dialect is returned.
    """
    path = next(iter(table_files(table) if is_csv(table) else ()), None)
    if path is None or is_office(path):
        return stated
    found, quoted = guarded("look at the file", lambda: _of_text(path, stated))
    usual = USUAL.of(name_of(path))[1]
    if stated.quote is not None:
        return found
    if usual and not _fits(path, found):
        return replace(found, quote="")
    other = replace(found, quote='"')
    return other if not usual and quoted and _fits(path, other) else found


def _fits(path: str, dialect: Dialect) -> bool:
    try:
        check_quotes(path, dialect)
    except DataError:
        return False
    return True


def _of_text(path: str, stated: Dialect) -> tuple[Dialect, bool]:
    """Return the dialect with the stated quote, and whether any field begins with ``"``."""
    encoding = _encoding(path) if stated.encoding == USUAL.encoding else stated.encoding
    with unpacked(path) as file:
        sample = file.read(_SAMPLE).decode(encoding, "replace").removeprefix("\ufeff")
    # the last line of a longer file may be cut off
    lines = list(io.StringIO(sample, newline=""))[: None if len(sample) < _SAMPLE else -1]
    first = lines[0].strip('\r\n"') if lines else ""
    delimiter, quote = stated.delimiter, stated.quote or '"'
    if first[:4].lower() == "sep=" and len(first) == 5:
        delimiter, lines = first[4], lines[1:]
    if delimiter is None:
        delimiter = max(",;\t|", key=lambda mark: _agreement(lines, mark, quote))
    fields = [field for record in _records(lines, delimiter, quote)[1:] for field in record]
    commas, points = (sum(bool(kind.fullmatch(f)) for f in fields) for kind in (_COMMA, _POINT))
    usual = USUAL.of(name_of(path))[0] == delimiter
    found = Dialect(
        None if usual else delimiter,
        "," if commas > points else stated.decimal,
        encoding=encoding,
        quote=stated.quote,
    )
    return found, any(line.startswith('"') or f'{delimiter}"' in line for line in lines)


def _encoding(path: str) -> str:
    """Return UTF-8 if the whole file is valid, otherwise the encoding of Windows in the West."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with unpacked(path) as file:
        try:
            while piece := file.read(_SAMPLE):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "cp1252"
    return "utf-8"


def _records(lines: Sequence[str], delimiter: str, quote: str) -> list[list[str]]:
    records = csv.reader(lines, delimiter=delimiter, quotechar=quote)
    try:
        return list(filter(None, itertools.islice(records, _MOST_RECORDS)))
    except csv.Error:
        return []


def _agreement(lines: Sequence[str], delimiter: str, quote: str) -> tuple[bool, int]:
    """Return whether all records have the same number of fields, and the largest number."""
    lengths = Counter(map(len, _records(lines, delimiter, quote)))
    return len(lengths) == 1, max(lengths, default=0)


def decimal_columns(table: object) -> list[str]:
    """Return CSV columns with decimal commas that a draft reads as numbers.

    Most of their values are numbers, and so are all with a comma or point.
    """
    if dialect_of(table).decimal != "," or not is_csv(table):
        return []
    relation = open_table(table).to_native()
    names = relation.columns
    numbers = [text_number(f"translate({sql(name)}, ',.', '.,')") for name in names]
    tests = (
        f"2 * count({number}) > count({sql(name)}) AND bool_and({number} IS NOT NULL OR "
        f"regexp_full_match(coalesce({sql(name)}, ''), '[^,.]*'))"
        for name, number in zip(names, numbers, strict=True)
    )
    answers = guarded("look for numbers", lambda: relation.aggregate(", ".join(tests)).fetchall())
    return [name for name, yes in zip(names, answers[0], strict=True) if yes]
