"""The file formats of tables. Each format has one module, and one entry in the registry here."""

from collections.abc import Mapping
from typing import Literal, get_args

from .csv import Csv
from .format import AbstractFormat
from .jsonl import JsonLines
from .jsonstat import JsonStat
from .parquet import Parquet
from .sdmx import SdmxCsv
from .xlsx import Xlsx

FileFormat = Literal["csv", "parquet", "jsonl", "xlsx", "sdmx-csv", "json-stat"]
FORMATS: Mapping[str, AbstractFormat] = {
    "csv": Csv(),
    "parquet": Parquet(),
    "jsonl": JsonLines(),
    "xlsx": Xlsx(),
    "sdmx-csv": SdmxCsv(),
    "json-stat": JsonStat(),
}


def format_of(name: str) -> AbstractFormat:
    """Return the format of a file by the ending of its name; the longest known ending counts.

    Raises:
        LookupError: no format has this ending.
    """
    known = [format for format in FORMATS.values() if name.endswith(format.ending)]
    return sorted(known, key=lambda format: len(format.ending))[-1]


def format_name(file: str) -> FileFormat:
    """Return the name of a file's format, like "csv", given the name of the file."""
    own = format_of(file)
    return next(name for name in get_args(FileFormat) if FORMATS[name] is own)
