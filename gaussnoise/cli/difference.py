"""The command that compares two releases."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..tables import difference
from ..tables.release.changes import changes_text, shown_changes
from .asked import entry_of
from .console import check_new, say, show
from .documents import changes_document
from .options import Format, Json
from .published import published


def show_changes(
    january: Annotated[Path, typer.Argument(help="Folder of the earlier release.")],
    june: Annotated[Path, typer.Argument(help="Folder of the later release.")],
    of: Annotated[
        list[str] | None,
        typer.Option(
            "--of",
            help="Table of changes, by names as in -m: --of sex,age --of age:prefix (repeatable). "
            "Left out, the number of rows and all tables that both releases have.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="New directory for tables of changes and a page."),
    ] = None,
    format: Format = "csv",
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
    all_rows_fit: Annotated[
        bool,
        typer.Option(
            "--all-rows-fit",
            help="Assume that no row was left out for a value that did not fit: needed where one "
            "release alone leaves out such rows.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what changed from one release to another, with intervals, from their folders alone.

    A table with a clipped number has its means and sums, by the other attributes. Tables with an
    attribute that is defined differently in each of the releases are left out, and named.
    """
    check_new("difference", out)
    both = published(january, None), published(june, None)
    changes = difference(*both, all_rows_fit=all_rows_fit)
    entries = [entry_of(listed, changes.before.plan.schema.names) for listed in of or []]
    found = shown_changes(changes, entries)
    if out is not None:
        wanted: Any = format  # checked when the files are written
        changes.save(out, wanted, of=entries, title=title)
    if as_json:
        return show(changes_document(changes, found, out, entries))
    say(changes_text(changes, found, entries))
    if out is not None:
        files = sorted({path.relative_to(out).parts[0] for path in out.rglob("*")})
        say(f"\nwrote {out}: {', '.join(files)}")
