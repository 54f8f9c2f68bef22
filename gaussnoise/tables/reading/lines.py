"""CSV files in which each record is one line: arrow reads them faster than duckdb."""

import contextlib
import importlib.metadata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    import pyarrow as pa

    from .plain import Plain

BLOCK = 2**22  # bytes that are read at once; no line is longer
# versions 15 to 25 of pyarrow refuse some valid files, at the end of a block
IS_USABLE = int(importlib.metadata.version("pyarrow").partition(".")[0]) >= 26


@final
class Lines:
    """CSV files with the same columns, in which each record is one line.

    Quotes are only where RFC 4180 allows them. No line is empty or longer than a block, all lines
    have equally many fields, and the last line has an end. All parsers, arrow's too, agree on such
    files.
    """

    def __init__(self, files: "Sequence[Plain]", names: Sequence[str]) -> None:
        self._files, self._names = files, names
        self._interrupted = False

    def interrupt(self) -> None:
        """Stop :meth:`batches`, if another thread runs it, by KeyboardInterrupt."""
        self._interrupted = True

    def batches(self, columns: Sequence[str]) -> "Iterator[pa.Table]":
        """Yield arrow tables of some rows each, with these columns as text.

        The columns are named x0, x1, … Empty fields without quotes are null.
        """
        import pyarrow as pa
        from pyarrow import csv

        self._interrupted = False
        names = [f"x{k}" for k in range(len(columns))]
        convert = csv.ConvertOptions(
            include_columns=list(dict.fromkeys(columns)),
            column_types=dict.fromkeys(columns, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        read = csv.ReadOptions(block_size=BLOCK, column_names=self._names, skip_rows=1)
        for file in self._files:
            parse = csv.ParseOptions(
                delimiter=file.delimiter,
                quote_char=file.quote or False,
                double_quote=bool(file.quote),
            )
            own = contextlib.nullcontext(file.path) if file.is_usual else file.begin()
            with own as source, csv.open_csv(source, read, parse, convert) as blocks:
                for block in blocks:
                    if self._interrupted:
                        raise KeyboardInterrupt
                    yield pa.table([block[name] for name in columns], names=names)
