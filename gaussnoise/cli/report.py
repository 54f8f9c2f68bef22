"""The command ``report``."""

from pathlib import Path
from typing import Annotated

import typer

from .console import check_new, say, show
from .documents import written_document
from .options import Json, Published, SomeTicks
from .published import published, streamed


def write_report(
    folder: Published,
    out: Annotated[Path, typer.Option("--out", "-o", help="New HTML file.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
    ask: Annotated[
        list[str] | None,
        typer.Option(
            "--ask", help='Questions that the page answers: --ask "pay by sex" (repeatable).'
        ),
    ] = None,
    ticks: SomeTicks = None,
    as_json: Json = False,
) -> None:
    """Write one page about a release, for readers of any background. Needs no data."""
    check_new("report", out, folder)
    stream = None if ticks is not None else streamed(folder)
    (published(folder, ticks) if stream is None else stream).report(out, title=title, ask=ask or [])
    if as_json:
        return show(written_document(out))
    say(f"wrote {out}")
