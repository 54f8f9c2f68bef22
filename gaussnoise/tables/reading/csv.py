r"""CSV and TSV files as tables of text: each record is one row, and no format is guessed.

CSV is read by RFC 4180: a quote opens a field, closes it, or is doubled inside a quoted field, and
may occur nowhere else. In more tolerant readers, one row can absorb the following rows, up to the
next quote, so that one person would change more than one row. TSV is read by IANA's
text/tab-separated-values, which has no quotes and no escapes. A :class:`.Dialect` may state another
delimiter, quote, encoding or decimal mark; the rules are the same. A row is a record as parsed: a
quoted field may hold line ends. The reader accepts the CSV of Excel and pandas, of R with
``row.names = FALSE``, and of PostgreSQL's ``COPY … CSV``. It refuses spaces beside quotes, ``\"``
for a quote (MySQL), UTF-16, and files without column names. Text is not
changed: ``NA``, ``\N`` and ``NULL`` are text.
"""

import contextlib
import csv
import glob
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...errors import DataError
from ...text import number_of
from ..schema.dialect import USUAL, Dialect, hint
from .files import dialect_of, is_csv, table_files
from .lines import BLOCK, IS_USABLE, Lines
from .office import is_office
from .plain import Plain, name_of, served

if TYPE_CHECKING:
    from _csv import Reader as _Reader

    import duckdb

FORM = (
    f"in CSV, write UTF-8, or state the encoding, like {hint(encoding='cp1252')}; and as many "
    "fields in every record as in the first line"
)
_PIECE = 2**19
_USUAL_LINE = 2_000_000  # duckdb's default limit, in bytes


def open_csv(
    paths: Sequence[str], connection: "duckdb.DuckDBPyConnection", dialect: Dialect = USUAL
) -> "tuple[duckdb.DuckDBPyRelation, Lines | None]":
    """Return a duckdb relation of text columns, after a separate check of each file.

    Also return the files for arrow's reader, if it may read them.

    Raises:
        DataError: a quote where none is allowed, no first line of column names, or several files
            that differ in column names or in kind.
    """
    files = [Plain(path, dialect) for path in paths]
    names = _same_header(files, dialect)
    delimiter, quote = files[0].delimiter, files[0].quote
    checked = [_check_bytes(file) for file in files]
    several_lines = any(one.several_lines for one in checked)
    longest = max(one.longest for one in checked)
    usual = all(file.is_usual for file in files)
    pairs = zip(files, checked, strict=True)
    plain = IS_USABLE and all(_of_lines(file, one, len(names)) for file, one in pairs)
    lines = Lines(files, names) if plain else None
    lengths = [one.length for one in checked]
    if _misread(names, delimiter, marked=any(file.start for file in files)):
        usual = False
        files, lengths = zip(*map(_renamed, files, lengths), strict=True)
    limit: dict[str, Any] = {} if longest < _USUAL_LINE else {"max_line_size": longest}
    relation = connection.read_csv(
        [glob.escape(path) for path in paths]
        if usual
        else served(dict(zip(files, lengths, strict=True)), connection),
        columns=dict.fromkeys(names, "VARCHAR"),
        auto_detect=False,
        header=True,
        delimiter=delimiter,
        quotechar=quote,
        escapechar=quote,
        comment="",
        skiprows=0,
        strict_mode=True,
        null_padding=False,
        allow_quoted_nulls=False,
        hive_partitioning=False,
        # with several threads, reading can fail if a thread begins inside a quoted field
        parallel=usual and not several_lines,
        **limit,
    )
    return relation, lines


def _misread(names: Sequence[str], delimiter: str, *, marked: bool) -> bool:
    """Return whether duckdb may miss the end of the first line, and so skip all records."""
    # duckdb takes a line end in quotes there for the one between records, and does not see a
    # quote after a byte order mark
    ends = not {"\n", "\r"}.isdisjoint("".join(names))
    return ends or (marked and delimiter in names[0])


def _renamed(plain: Plain, length: int) -> tuple[Plain, int]:
    """Return a text with column names that need no quotes, and its length in bytes."""
    lines: list[str] = []
    with plain.open() as file, _text(file) as text:
        names = next(_records(plain, (lines.append(line) or line for line in text)))
    old = "".join(lines)
    end = old[len(old.rstrip("\r\n")) :]
    new = plain.delimiter.join(f"x{k}" for k in range(len(names))) + end
    size = len(old.encode(errors="surrogateescape"))
    own = size if plain.characters is None else len(old)  # one byte a character
    return plain.instead(new.encode(), own), length - size + len(new)


def _of_lines(file: Plain, checked: "_Checked", columns: int) -> bool:
    """Return whether arrow may read the file: it has records, and each of them is one line."""
    with file.open() as text:
        first = text.readline(BLOCK).count(file.delimiter.encode())
    records = checked.lines - 1
    # delimiters are counted in all lines together: if single lines have too many or too few,
    # both readers refuse the file
    return (
        checked.delimiters - first == records * (columns - 1)
        and records > 0
        and checked.longest <= BLOCK
        and not checked.several_lines
        and file.is_text
        and file.path == name_of(file.path)
    )


def csv_names(paths: Sequence[str], dialect: Dialect) -> list[str] | None:
    """Return the column names in the first line; None if later bytes could influence them.

    Raises:
        DataError: as for :func:`open_csv`, for reasons that are in the first lines alone.
    """
    try:
        files = [Plain(path, dialect) for path in paths]
        if not all(map(_ends_in_first_line, files)):
            return None
        return _same_header(files, dialect)
    except DataError:
        raise
    except Exception:  # noqa: BLE001 (bytes after the first line are unpacked and decoded too)
        return None


def _ends_in_first_line(plain: Plain) -> bool:
    """Return whether the first record ends with the first line, so that no quote stays open."""
    with plain.open() as file:
        line = file.readline(_PIECE).decode("utf-8", "surrogateescape")
    try:
        list(_records(plain, [line]))
    except csv.Error:
        return False
    return True


def _text(file: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(file, encoding="utf-8", errors="surrogateescape", newline="")


def _records(plain: Plain, lines: Iterable[str]) -> "_Reader":
    quoting = csv.QUOTE_MINIMAL if plain.quote else csv.QUOTE_NONE
    quote = plain.quote or None
    return csv.reader(
        lines, delimiter=plain.delimiter, quotechar=quote, quoting=quoting, strict=True
    )


def _same_header(files: Sequence[Plain], dialect: Dialect) -> list[str]:
    """Return the column names in the first line, after checking that all files have the same."""
    headers = [_header(file, dialect) for file in files]
    kinds = {(file.delimiter, file.quote) for file in files}
    if len(kinds) > 1 or any(header != headers[0] for header in headers):
        raise DataError(
            "table: expected files of one kind with the same first line of column names in each; "
            "hint: the same columns in the same order"
        )
    return headers[0]


@contextlib.contextmanager
def naming_lines(table: object) -> Iterator[None]:
    """Make errors about CSV files in this block name the first record of too many or few fields."""
    try:
        yield
    except DataError:
        files = table_files(table) if is_csv(table) else []
        found = (_odd_record(path, dialect_of(table)) for path in files if not is_office(path))
        if said := next(filter(None, found), None):
            raise DataError(said) from None
        raise


def _odd_record(path: str, dialect: Dialect) -> str | None:
    """Return an error message on the first record with too many or too few fields, or None."""
    try:
        plain = Plain(path, dialect)
        with plain.open() as file, _text(file) as text:
            records = _records(plain, text)
            size, last = len(next(records)), records.line_num
            for record in records:
                line, last = plain.before + last + 1, records.line_num
                if record and size and len(record) != size:
                    break
            else:
                return None
    except Exception:  # noqa: BLE001 (a damaged file)
        return None
    way = "write as many"
    if len(record) > size:
        way += f"; if the column names are in that line, {hint(skip=line - 1)}"
    return (
        f"table: expected {number_of(size, 'field')} in every record, as there are column names, "
        f"got {len(record)} in line {line}; hint: {way}"
    )


def check_quotes(path: str, dialect: Dialect) -> None:
    """Raise DataError if the file has a quote where CSV by RFC 4180 allows none."""
    _check_bytes(Plain(path, dialect))


def text_number(column: str) -> str:
    """Return the SQL expression that reads a text column as doubles, NULL for other text.

    The condition on "_" and "+-" is needed, since duckdb reads 1_0 as ten, and +-1 as minus one.
    CASE is needed, since duckdb otherwise moves the cast into its CSV reader: there, text that is
    no number is an error instead of NULL. The cast without trim comes first. It is faster, and
    refuses only the few numbers with spaces.
    """
    strange = f"contains({column}, '_') OR contains({column}, '+-')"
    number = f"coalesce(TRY_CAST({column} AS DOUBLE), TRY_CAST(trim({column}) AS DOUBLE))"
    return f"CASE WHEN NOT ({strange}) THEN {number} END"


def _header(plain: Plain, dialect: Dialect) -> list[str]:
    # decoding errors raise nothing here, where only first rows are read; duckdb refuses such files
    with plain.open() as file, _text(file) as text:
        try:
            names = next(_records(plain, text), [])
        except csv.Error:
            names = None
    doubtful = dialect.delimiter is None and len(names or ()) < 2
    other = _other_delimiter(plain) if doubtful else None
    if other is not None:
        raise DataError(
            f"table: expected column names with {plain.delimiter!r} between them, got "
            f"{other!r}; hint: {hint(delimiter=other)}"
        )
    if names is None:
        raise DataError(_QUOTES)
    if any("\ud800" <= character <= "\udfff" for name in names for character in name):
        raise DataError(
            f"table: expected column names in UTF-8; hint: {hint(encoding='cp1252')}, or another "
            "encoding"
        )
    if len(names) > 1 and names[-1] == "":
        raise DataError(
            "table: expected a name for every column, got none after the last delimiter of the "
            "first line; hint: write no delimiter after the last field; for lines before the "
            f"column names, {hint(skip=2)}"
        )
    if not names or "" in names:
        raise DataError(
            "table: expected a first line of column names, none empty; "
            "hint: write no row names (pandas: index=False, R: row.names = FALSE); for lines "
            f"before the column names, {hint(skip=2)}"
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:  # the name is not quoted, as it is data if there are no column names
        first, second = [k for k, name in enumerate(names, 1) if name == twice][:2]
        raise DataError(
            f"table: expected distinct column names in the first line, got one twice, in columns "
            f"{first} and {second}; hint: rename one, also where neither is asked for"
        )
    if len({name.lower() for name in names}) < len(names):
        raise DataError(
            "table: expected column names that differ in more than upper and lower case, since "
            "duckdb reads the file; hint: rename one, or read the file with polars or pandas"
        )
    return names


def _other_delimiter(plain: Plain) -> str | None:
    """Return another delimiter that splits the first line into several names, or None."""
    with plain.open() as file:
        line = file.readline(_PIECE).decode("utf-8", "replace")
    for mark in filter(lambda mark: mark != plain.delimiter, ";\t|,"):
        try:
            (names,) = csv.reader([line], delimiter=mark, quotechar=plain.quote or '"', strict=True)
        except (csv.Error, ValueError):
            continue
        if len(names) > 1:
            return mark
    return None


_QUOTES = (
    "table: expected CSV by RFC 4180, where a quote opens a field, closes it, or is doubled "
    "inside a quoted field; "
    'got another one, or a field that never closes; hint: write "" for a quote, not \\", and no '
    f"blanks beside quotes; where quotes mean nothing: {hint(quote='')}"
)


class _Checked(NamedTuple):
    """Facts about the bytes of a file."""

    several_lines: bool  # whether quoted fields hold line ends
    longest: int  # an upper bound on the bytes of a record
    length: int  # the number of bytes
    lines: int  # 0 if a line is empty, if the last has no end, or if all end in "\r" alone
    delimiters: int  # the number of delimiters


def _check_bytes(plain: Plain) -> _Checked:
    """Return facts about a file's bytes; DataError for misplaced quotes or mixed line ends."""
    before, inside, several_lines, run, longest = b"\n", 0, False, 0, 0
    lines, delimiters, empty = 0, 0, False
    kinds: set[bytes] = set()
    quote, delimiter, size = plain.quote.encode(), plain.delimiter.encode(), 0
    beside = np.isin(np.arange(256), list(b"\n\r" + delimiter + quote))
    for piece, after in _pieces(plain):
        size += len(piece)
        quoted = bool(quote) and (inside == 1 or quote in piece)
        mixed = b"\r" in before + piece
        ended = b"\n" in piece
        around = np.frombuffer(before + piece + after, dtype=np.uint8)
        own, following = around[1:-1], around[2:]
        breaks = own == ord("\n")
        lines += int(np.count_nonzero(breaks))
        delimiters += int(np.count_nonzero(own == ord(delimiter)))
        again = (following == ord("\n")) | (following == ord("\r"))
        empty = empty or bool((breaks & again).any())
        if quoted or mixed:
            if mixed:
                breaks |= own == ord("\r")
            breaks = np.flatnonzero(breaks)
            if quoted:
                quotes = np.flatnonzero(own == ord(quote))
                # quotes alternate: a doubled quote closes its field and opens it again
                opening, closing = quotes[inside::2], quotes[1 - inside :: 2]
                if not (beside[around[opening]].all() and beside[around[closing + 2]].all()):
                    raise DataError(_QUOTES)
                # a line end is inside a field if the number of quotes before it is odd
                within = ((np.searchsorted(quotes, breaks) + inside) & 1).astype(bool)
                inside = (inside + len(quotes)) & 1
                several_lines = several_lines or bool(within.any())
                breaks = breaks[~within]
            ends = breaks if mixed else breaks[:0]
            ended = len(breaks) > 0
            last = own[ends]
            paired = np.where(
                last == ord("\n"), around[ends] == ord("\r"), following[ends] == ord("\n")
            )
            kinds |= {b"\r\n"} if paired.any() else set()
            kinds |= {bytes([byte]) for byte in np.unique(last[~paired])}
        if ended and not mixed:
            kinds.add(b"\n")
        if len(kinds) > 1:
            raise DataError(
                "table: expected line ends of one kind; hint: quote fields that hold line ends"
            )
        run = 0 if ended else run + 1
        longest = max(longest, (run + 2) * _PIECE)
        before = piece[-1:]
    if inside:
        raise DataError(_QUOTES)
    lines = 0 if empty or before != b"\n" else lines
    return _Checked(several_lines, longest, size, lines, delimiters)


def _pieces(plain: Plain) -> Iterator[tuple[bytes, bytes]]:
    """Yield the bytes of the text in blocks, each with the byte that follows the block."""
    with plain.open() as file:
        piece = file.read(_PIECE)
        while piece:
            following = file.read(_PIECE)
            yield piece, following[:1] or plain.delimiter.encode()
            piece = following
