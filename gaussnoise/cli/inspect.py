"""The command that compares a release with the data, for their owner."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ParameterError
from ..tables import TableRelease
from .asked import dialect_of, table_of
from .console import ERR, say, show
from .options import DateFormat, Decimal, Delimiter, Encoding, Json, Quote
from .patience import patience


def inspect_release(
    folder: Annotated[Path, typer.Argument(help="Folder of a release.")],
    data: Annotated[
        list[Path],
        typer.Option(
            "--data", help="The table that was released, as in `gaussnoise release` (repeatable)."
        ),
    ],
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    quote: Quote = None,
    date_format: DateFormat = None,
    as_json: Json = False,
) -> None:
    """Compare a release with its data: PASSED or FAILED. NOT private: for their owner alone.

    The table is counted again by another way, and the differences from the released numbers are
    compared with the law of their noise: too large (a missing file, a swapped column, more noise)
    and too small (less noise than stated). The verdict depends on exact counts: do not publish it.

    The exit code is 0 if it passes, otherwise 1.
    """
    if (folder / "stream.json").is_file():
        raise ParameterError(
            f"inspect: expected one release, got the stream {folder}, whose ticks share their "
            "noise: no inspection of them exists"
        )
    release = TableRelease.load(folder)
    written = dialect_of(release.plan.schema.file, delimiter, decimal, encoding, quote, date_format)
    with patience(ERR, "counting"):
        found = release.inspect(written.table(table_of(data)))
    if as_json:
        show(found.as_dict())
    else:
        say(str(found))
    raise typer.Exit(int(not found.passed))
