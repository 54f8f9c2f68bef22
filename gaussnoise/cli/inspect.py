"""The command that compares a release with the data, for the owner of the data."""

from typing import Annotated

import typer

from ..errors import ParameterError
from .asked import DatedFileOptions, table_of, with_options
from .console import ERR, say, show
from .options import Json, Published, Tables
from .patience import patience
from .published import published, streamed


@with_options
def inspect_release(
    folder: Published,
    table: Tables,
    tick: Annotated[
        int | None,
        typer.Option("--tick", help="Of a stream: the tick to compare with the table it counted."),
    ] = None,
    written: DatedFileOptions = DatedFileOptions(),
    as_json: Json = False,
) -> None:
    """Compare a release with its data: PASSED or FAILED. NOT private: for their owner alone.

    For a stream, one tick is compared with the table that it counted: --tick 3. Other code counts
    the table again. The differences between released numbers and counts are compared with the
    distribution of the noise. They may be too large (a missing file, a swapped column, more noise)
    or too small (less noise than stated). The verdict depends on exact counts: do not publish it.

    The exit code is 0 if it passes, otherwise 1.
    """
    tables = streamed(folder)
    if (tables is None) != (tick is None):
        raise ParameterError(
            f"inspect: expected --tick with the folder of a stream, and no other, got {folder}; "
            "hint: each tick is compared by itself, --tick 1 with its table"
        )
    release = published(folder, None if tick is None else str(tick))
    read = written.dialect(release.plan.schema.file)
    with patience(ERR, "counting"):
        found = release.inspect(read.table(table_of(table)))
    if as_json:
        show(found.as_dict())
    else:
        say(str(found))
    raise typer.Exit(int(not found.passed))
