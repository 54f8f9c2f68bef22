"""The command that combines releases."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..tables import combine
from .console import check_new, say, show
from .documents import release_document
from .options import AllRowsFit, Format, Json, Results
from .published import published


def combine_releases(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of two releases of the same rows, or more.")
    ],
    out: Results,
    format: Format = "csv",
    same_rows: Annotated[
        str,
        typer.Option(
            "--same-rows",
            help="tested (releases that differ by more than their noise are refused), or assumed.",
        ),
    ] = "tested",
    all_rows_fit: AllRowsFit = False,
    as_json: Json = False,
) -> None:
    """Combine releases of the same rows into the most accurate release that follows from them.

    The budgets of the releases add up; the combination costs no more. The new folder has the
    releases and the combined tables, and all commands read it as they read a release.
    """
    check_new("combine", out, *folders)
    rule: Any = same_rows  # combine checks it
    wanted: Any = format  # save checks it
    releases = [published(folder, None) for folder in folders]
    combine(releases, same_rows=rule, all_rows_fit=all_rows_fit).save(out, wanted)
    if as_json:
        return show(release_document(out))
    say((out / "summary.txt").read_text(encoding="utf-8"))
    files = sorted(path.name for path in out.iterdir() if path.name != "releases")
    say(f"wrote {out}: {', '.join(files)}")
    say(f"wrote {out}/releases      the releases that were combined, as they were")
