"""The formats of files of tables: one file, and one entry here, for each."""

from collections.abc import Mapping
from typing import Literal

from .csv import Csv
from .format import AbstractFormat
from .jsonl import JsonLines
from .parquet import Parquet

FileFormat = Literal["csv", "parquet", "jsonl"]
FORMATS: Mapping[str, AbstractFormat] = {
    "csv": Csv(),
    "parquet": Parquet(),
    "jsonl": JsonLines(),
}
