"""The text of a CSV file in UTF-8, decompressed and converted from its encoding.

Each reading decompresses and converts again, block by block: nothing is kept in memory or in
another file.
"""

import codecs
import copy
import gzip
import io
import itertools
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from ...errors import DataError
from ...text import number_of
from ..schema.dialect import Dialect, hint
from .files import PACKED

if TYPE_CHECKING:
    import zipfile

    import duckdb

_PIECE = 2**19
_MARK = codecs.BOM_UTF8
_SEP = re.compile(rb'"?sep=([^\r\n])"?(?:\r\n|\r|\n|\Z)', re.IGNORECASE)  # as Excel reads it
_protocols = itertools.count()


def name_of(path: str) -> str:
    """Return a file's name without the suffix of its compression, like .gz.

    For a .zip archive, return the name of the only file in it.
    """
    if path.lower().endswith(".zip"):
        with _archive(path) as archive:
            return _member(archive)
    return next((path[: -len(end)] for end in PACKED if path.lower().endswith(end)), path)


class Plain:
    """The text of a CSV file from its column names on.

    A byte order mark, a first line ``sep=;`` and the lines that the dialect skips are not in it.

    Attributes:
        path: the path of the file.
        delimiter: the character between fields.
        quote: the character around fields, or "".
        before: the number of lines before the text.
        is_text: whether the bytes of the file, from ``start`` on, are the text.
        is_usual: whether duckdb can read the file without conversion.
        first: bytes in UTF-8 that are put before those of the file.

    Raises:
        DataError: UTF-16; a mark or ``sep=`` that contradicts the dialect; fewer lines than the
            dialect skips; an archive of several files.
    """

    def __init__(self, path: str, dialect: Dialect) -> None:
        self.path, self.first = path, b""
        self.delimiter, self.quote = dialect.of(name_of(path))
        self.characters = dialect.characters
        with unpacked(path) as file:
            first = file.read(16)
        if first[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise DataError('table: expected UTF-8, got UTF-16; hint: save it as "CSV UTF-8"')
        marked = first.startswith(_MARK)
        if marked and self.characters is not None:
            raise DataError(
                f"table: expected {dialect.encoding}, got a mark of UTF-8; hint: "
                f"{hint(encoding='utf-8')}"
            )
        self.start = len(_MARK) if marked else 0
        if line := _SEP.match(first, self.start):
            said = line[1].decode("ascii", "replace")
            if said != self.delimiter:
                raise DataError(
                    f"table: expected the delimiter {self.delimiter!r}, got a first line sep="
                    f"{said}; hint: {hint(delimiter=said)}"
                )
            self.start = line.end()
        self.before = max(dialect.skip, int(line is not None))
        if dialect.skip:
            self.start = _end_of_lines(path, dialect.skip)
        bare = path == name_of(path) or path.lower().endswith(".gz")
        self.is_text = bare and self.characters is None
        self.is_usual = self.is_text and not self.before

    def open(self) -> Any:
        """Return a stream of the text in UTF-8, without a byte order mark."""
        return self.begin() if self.is_usual else io.BufferedReader(_Text(self), _PIECE)

    def instead(self, first: bytes, skipped: int) -> Self:
        """Return the text with ``first``, bytes of UTF-8, in place of ``skipped`` bytes."""
        other = copy.copy(self)
        other.first, other.start = first, self.start + skipped
        other.is_text = other.is_usual = False
        return other

    def begin(self) -> Any:
        """Return a stream of the text's bytes in the file's own encoding, decompressed."""
        file = unpacked(self.path)
        file.read(self.start)
        return file


class _Text(io.RawIOBase):
    """A stream of the text in UTF-8. Seeking back reads the file again from its beginning."""

    def __init__(self, plain: Plain) -> None:
        self._plain = plain
        self._file, self._left, self._at = plain.begin(), plain.first, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            piece = self._file.read(_PIECE)
            if self._plain.characters is not None:
                # characters is a string, which the type stubs do not allow
                text, _ = codecs.charmap_decode(piece, "strict", self._plain.characters)  # pyright: ignore[reportArgumentType]
                piece = text.encode()
            self._left = piece
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        self._at += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET:
            offset += self._at if whence == os.SEEK_CUR else 0
            if whence == os.SEEK_END:
                raise io.UnsupportedOperation("the end is not known")
        if offset < self._at:
            self._file.close()
            self._file, self._left, self._at = self._plain.begin(), self._plain.first, 0
        while self._at < offset and self.read(min(offset - self._at, _PIECE)):
            pass
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self._file.close()
        super().close()


def _end_of_lines(path: str, count: int) -> int:
    """Return the number of bytes in the first ``count`` lines, where quotes have no meaning."""
    # one character a byte: only line ends matter
    with unpacked(path) as file, io.TextIOWrapper(file, encoding="latin-1", newline="") as text:
        lengths = [len(line) for line in itertools.islice(text, count)]
    if len(lengths) < count:
        raise DataError(
            f"table: expected column names after {number_of(count, 'line')}, as skip = {count} "
            "states, got a file with fewer lines; hint: skip is the same for all files of a table"
        )
    return sum(lengths)


def unpacked(path: str) -> Any:
    """Return a stream of the bytes of a file, decompressed by the suffix of its name."""
    end = os.path.splitext(path)[1].lower()
    if end == ".gz":
        return gzip.open(path, "rb")
    if end == ".xz":
        import lzma

        return lzma.open(path, "rb")
    if end == ".zst":
        import pyarrow as pa

        return pa.input_stream(path, compression="zstd")
    if end == ".zip":
        archive = _archive(path)
        return archive.open(_member(archive))
    return open(path, "rb")


def _archive(path: str) -> "zipfile.ZipFile":
    import zipfile

    return zipfile.ZipFile(path)


def _member(archive: "zipfile.ZipFile") -> str:
    """Return the name of the only file in a .zip archive, ignoring files that macOS adds."""
    found = [
        one
        for one in archive.infolist()
        if not one.is_dir() and not one.filename.startswith("__MACOSX/")
    ]
    name = found[0].filename.lower() if found else ""
    if len(found) != 1 or found[0].flag_bits & 1 or not name.endswith((".csv", ".tsv")):
        raise DataError(
            "table: expected a .zip of one .csv or .tsv file without a password; hint: unpack it"
        )
    return found[0].filename


def served(files: Mapping[Plain, int], connection: "duckdb.DuckDBPyConnection") -> list[str]:
    """Register texts with a duckdb connection, and return the names under which it reads them.

    ``files`` has {text: its length in bytes}.
    """
    import datetime

    import fsspec

    protocol_ = f"gaussnoise{next(_protocols)}"
    names = {f"{protocol_}://{k}": plain for k, plain in enumerate(files)}

    class Texts(fsspec.AbstractFileSystem):
        protocol = protocol_
        cachable = False

        def open(self, path: str, *_: object, **__: object) -> Any:
            # duckdb seeks from the beginning of the text, which may be later than that of the file
            return io.BufferedReader(_Text(names[path]), _PIECE)

        def glob(self, path: str, *_: object, **__: object) -> list[str]:
            return [path]

        def size(self, path: str) -> int:
            return files[names[path]]

        def modified(self, path: str) -> datetime.datetime:
            return datetime.datetime.fromtimestamp(os.stat(names[path].path).st_mtime, datetime.UTC)

    connection.register_filesystem(Texts())
    return list(names)
