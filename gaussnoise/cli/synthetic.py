"""The command that draws synthetic records from a release."""

from pathlib import Path
from typing import Annotated

import typer

from ..errors import OutputError, ParameterError
from ..tables import TableRelease
from ..tables.release.formats import FORMATS
from ..tables.release.formats.format import UNSAID
from .console import check_new, say, show
from .documents import written_document
from .options import Json

_RECORDS = {format.ending: format for format in FORMATS.values() if format.holds_records}


def synthetic(
    folder: Annotated[Path, typer.Argument(help="Folder of a release.")],
    out: Annotated[Path, typer.Option("--out", "-o", help=f"New file, {' or '.join(_RECORDS)}.")],
    n: Annotated[
        int | None,
        typer.Option("-n", help="How many records; as many as the release estimates if omitted."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--report", help="New HTML file: the release, and the records beside it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw synthetic records from a published folder. A model makes them, so they are biased."""
    format = _RECORDS.get(out.suffix)
    if format is None:
        known = " or ".join(f"FILE{ending}" for ending in _RECORDS)
        raise ParameterError(f"synthetic: expected --out {known}, got {out}")
    for new in filter(None, (out, report)):
        check_new("synthetic", new, folder)
    release = TableRelease.load(folder)
    records = release.synthetic(n)  # a pyarrow table, as always from a folder
    try:
        with open(out, "xb") as file, format.writer(file, records.schema, UNSAID) as rows:
            rows.write_table(records)
    except OSError as error:
        raise OutputError(f"synthetic: cannot create {out} ({type(error).__name__})") from None
    found = release.likeness(records)
    if report is not None:
        release.report(report, synthetic=records)
    if as_json:
        rows = [row._asdict() for row in found]
        return show(written_document(out, records=records.num_rows, biased=True, likeness=rows))
    say(f"wrote {out}: {records.num_rows} synthetic records, which no person stands behind")
    say("A model makes them: biased. For estimates with intervals ask the release.")
    if found:
        say(str(found))
    if report is not None:
        say(f"wrote {report}")
