"""Dialects of CSV files, stated by the owner: data must not decide how rows are read."""

import codecs
import os
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import final

from ...errors import ParameterError
from .date_format import ISO_FORMAT, check_date_format

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

# encodings with one byte for each character, which read on after damaged bytes
_SINGLE_BYTE = re.compile(r"iso8859-\d+|cp125\d|cp[478]\d\d|koi8-[rtu]|mac-\w+")
GROUP_MARKS = (".", ",", " ", "'", "’", "\u00a0", "\u202f")
_NO_DELIMITER = re.compile(r"[0-9A-Za-z\r\n\x00_+-]|[^\x00-\x7f]")


@final
@dataclass(frozen=True)
class Dialect:
    """The dialect of CSV and TSV files, if it is not RFC 4180 with commas in UTF-8.

    Every part is stated once, and holds for all rows. No part is guessed from them. A schema holds
    a dialect in ``file`` (in TOML, a table ``[file]`` with the same keys), for all files that its
    plans read. Without a schema, :meth:`table` states the dialect of some files.

    Args:
        delimiter: the ASCII character between fields, no letter, digit or sign. None means a comma,
            or a tab in files called ``.tsv``. A first line ``sep=;`` is ignored if it names the
            same delimiter.
        decimal: the decimal mark of numbers, "." or ",". With ",", columns that the schema reads
            as numbers (edges, clip, integer categories) hold ``1,5``; ``1.5`` is then no number.
            Text stays as written.
        encoding: "utf-8", or an encoding of one byte for a character, like "cp1252" (Windows),
            "latin-1", "cp1250", "koi8-r". Bytes that it leaves undefined become characters of
            Unicode's private use area.
        quote: the character around fields that hold delimiters or line ends, doubled within them:
            ``'"'``, ``"'"``, or "" for none. None means ``'"'``, or no quote in files called
            ``.tsv``.
        date_format: the format of columns that the schema reads as dates (edges that are dates), in
            the terms of CSVW: "dd.MM.yyyy", "M/d/yyyy", "yyyyMMdd". dd and MM have two digits, d
            and M one or two. Hours and minutes may follow, ``31.01.2023 08:30``, and seconds. Dates
            like 2023-01-31 are always read; other text is no date.
        thousands: the separator between groups of three digits, in the columns of ``decimal``
            (groupChar in CSVW): ".", ",", " ", "'", "’", or a no-break space, U+00A0 or U+202F.
            With "." and a decimal comma, ``1.234,5`` and ``1234,5`` are one number, and ``12.34``
            is none. None means no separator: then ``1.234,5`` is no number.
        skip: the number of lines before the column names, in every file: a title, empty lines.
            They are skipped, and nothing in them counts. In workbooks, the number of such rows.

    Raises:
        ParameterError: an unsupported delimiter, mark, encoding, quote or date format, or a number
            of lines that is none.

    >>> german = gn.Dialect(delimiter=";", decimal=",", encoding="cp1252")
    >>> schema = gn.Schema([gn.Attribute("pay", edges=[0, 1000.5, 5000])], file=german)
    >>> print(schema.to_toml().splitlines()[:4])
    ['[file]', 'delimiter = ";"', 'decimal = ","', 'encoding = "cp1252"']
    """

    delimiter: str | None = None
    decimal: str = "."
    _: KW_ONLY
    encoding: str = "utf-8"
    quote: str | None = None
    date_format: str = ISO_FORMAT
    thousands: str | None = None
    skip: int = 0

    def __post_init__(self) -> None:
        strange = next(
            (
                field.name
                for field in fields(self)
                if field.name != "skip"
                and not isinstance(value := getattr(self, field.name), str)
                and (value is not None or field.default is not None)
            ),
            None,
        )
        if strange is not None:
            got = type(getattr(self, strange)).__name__
            raise ParameterError(f"dialect: expected {strange} to be text, got {got}")
        if self.delimiter is not None and (
            len(self.delimiter) != 1
            or _NO_DELIMITER.search(self.delimiter)
            or self.delimiter in (self.quote or '"')
        ):
            raise ParameterError(
                "dialect: expected delimiter to be one ASCII character that is no letter, digit, "
                f"sign, quote or line end, got {self.delimiter!r:.50}"
            )
        if self.decimal not in (".", ","):
            raise ParameterError(
                f'dialect: expected decimal to be "." or ",", got {self.decimal!r:.50}'
            )
        if self.quote not in (None, "", '"', "'"):
            raise ParameterError(
                f"""dialect: expected quote to be '"', "'" or "", got {self.quote!r:.50}"""
            )
        if self.thousands is not None and (
            self.thousands not in GROUP_MARKS or self.thousands == self.decimal
        ):
            raise ParameterError(
                "dialect: expected thousands to be one of "
                f"{', '.join(map(repr, GROUP_MARKS))}, and not the decimal mark, got "
                f"{self.thousands!r:.50}"
            )
        if type(self.skip) is not int or self.skip < 0:
            raise ParameterError(
                "dialect: expected skip to be a whole number of lines before the column names, 0 "
                f"or more, got {self.skip!r:.50}"
            )
        check_date_format(self.date_format)
        object.__setattr__(self, "encoding", _encoding(self.encoding))

    def table(self, files: Paths) -> "Files":
        """Return these files in this dialect, for every function that takes a table.

        Args:
            files: a path, a pattern like ``data/*.csv``, or a list of paths.

        >>> table = gn.Dialect(delimiter=";").table("people.csv")
        """
        return Files(files, self)

    @property
    def stated(self) -> dict[str, str | int]:
        """The parts of the dialect that are not the default, {name of the part: value}."""
        return {f.name: x for f in fields(self) if (x := getattr(self, f.name)) != f.default}

    @property
    def skipped(self) -> str:
        """A sentence about the lines that are skipped, "" if there are none."""
        few = self.skip == 1
        lines = "line is no table: it is" if few else f"{self.skip} lines are no table: they are"
        return f"The first {lines} skipped" if self.skip else ""

    @property
    def grouped(self) -> str | None:
        """The regular expression, for Python and duckdb, of numbers with thousands separators.

        The result is None if the dialect has no such separator.
        """
        if self.thousands is None:
            return None
        mark, point = re.escape(self.thousands), re.escape(self.decimal)
        return rf" *[+-]?[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+(?:{point}[0-9]*)? *"

    @property
    def characters(self) -> str | None:
        """The 256 characters that the byte values 0 to 255 stand for; None for UTF-8."""
        if self.encoding == "utf-8":
            return None
        found = [bytes([byte]).decode(self.encoding, "ignore") for byte in range(256)]
        return "".join(one or chr(0xF700 + byte) for byte, one in enumerate(found))

    def of(self, name: str) -> tuple[str, str]:
        """Return the delimiter and the quote character for a file; its name may end in ``.tsv``."""
        tabs = name.lower().endswith(".tsv")
        delimiter = ("\t" if tabs else ",") if self.delimiter is None else self.delimiter
        return delimiter, ("" if tabs else '"') if self.quote is None else self.quote


@dataclass(frozen=True)
class Files:
    """Files of a table, with a stated dialect.

    Attributes:
        paths: the paths of the files, in any form that functions take for a table.
        dialect: the dialect of the files.
    """

    paths: object
    dialect: Dialect


def hint(**wanted: str | int) -> str:
    """Return a hint, for errors, on how to state one part of a dialect, like ``decimal=","``.

    It shows the way in a schema, in the shell and in Python.
    """
    ((name, value),) = wanted.items()
    shown = "tab" if value == "\t" else f"'{value}'" if value != "'" else f'"{value}"'
    toml = '"\\t"' if value == "\t" else f"'{value}'" if value == '"' else f'"{value}"'
    if isinstance(value, int):
        shown = toml = str(value)
    option = name.replace("_", "-")
    python = f"Dialect({name}={value!r})"
    return f"{name} = {toml} in the schema's [file], --{option} {shown}, or {python}"


def date_hint(formats: Sequence[str]) -> str:
    """Return words for the formats in which dates seem to be written, and how to state one."""
    said, how = f"dates written {' or '.join(formats)}", hint(date_format=formats[0])
    if len(formats) > 1:
        said += ", which are alike here, as no number of a day or month is beyond 12"
        how += "; or the other one"
    return f"{said}; hint: in CSV, state {how}; elsewhere, convert the column to dates"


def _encoding(name: str) -> str:
    """Return Python's name of UTF-8 or a one-byte encoding; ParameterError for other encodings."""
    try:
        known = codecs.lookup(name).name
        if known in ("utf-8", "utf-8-sig", "ascii"):
            return "utf-8"
        ascii = bytes(range(128))
        if _SINGLE_BYTE.fullmatch(known) and ascii.decode(known) == ascii.decode():
            return known
        got = f"got {known}"
    except (LookupError, ValueError):
        got = f"got {name!r:.50}"
    raise ParameterError(
        'dialect: expected encoding to be "utf-8", or one of one byte for a character, like '
        f'"cp1252" or "latin-1", {got}; hint: save the file as UTF-8'
    )


USUAL = Dialect()
