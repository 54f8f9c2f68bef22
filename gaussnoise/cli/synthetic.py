"""The command that draws synthetic records from a release."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import OutputError, ParameterError
from ..tables import TableRelease
from .console import check_new, say, show
from .documents import written_document
from .options import Json


def synthetic(
    folder: Annotated[Path, typer.Argument(help="Folder of a release.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="New file, .csv or .parquet.")],
    n: Annotated[
        int | None,
        typer.Option("-n", help="How many records; as many as the release estimates if omitted."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw synthetic records from a published folder alone: made by a model, hence biased."""
    from pyarrow import csv, parquet

    if out.suffix not in (".csv", ".parquet"):
        raise ParameterError(f"synthetic: expected --out FILE.csv or FILE.parquet, got {out}")
    check_new("synthetic", out)
    records = TableRelease.load(folder).synthetic(n)  # of a folder: a pyarrow table
    write = csv.write_csv if out.suffix == ".csv" else parquet.write_table
    try:
        with open(out, "xb") as file:
            write(records, file)
    except OSError as error:
        raise OutputError(f"synthetic: cannot create {out} ({type(error).__name__})") from None
    if as_json:
        return show(written_document(out, records=records.num_rows, biased=True))
    say(f"wrote {out}: {records.num_rows} synthetic records, which no person stands behind")
    say(
        "They are made by a model and biased. For estimates with intervals ask the release: "
        f'gaussnoise ask {folder} "count of …"'
    )
