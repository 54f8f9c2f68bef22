"""The command that compares two releases."""

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ParameterError
from ..streams import Stream
from ..tables import ComparisonTable, TableRelease, difference
from ..tables.release.changes import changes_text, shown_changes
from .asked import entry_of
from .console import check_new, say, show
from .documents import changes_document, tick_changes_document
from .options import AllRowsFit, Format, Json
from .published import published, tick_in


def show_changes(
    january: Annotated[Path, typer.Argument(help="Folder of the earlier release, or tick.")],
    june: Annotated[Path, typer.Argument(help="Folder of the later release, or tick.")],
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
    all_rows_fit: AllRowsFit = False,
    as_json: Json = False,
) -> None:
    """Show changes from one release to another, with intervals. Needs no data.

    For a table with a clipped number, it shows means and sums by the other attributes. It leaves
    out tables with an attribute that the two releases define differently, and names them. For two
    ticks of a stream, like DIR/ticks/0003 and DIR/ticks/0007, it compares the rows of one tick with
    those of the other; intervals use the covariance of their noise.
    """
    check_new("difference", out, january, june)
    ticks = tick_in(january), tick_in(june)
    if ticks[0] is not None and ticks[1] is not None and ticks[0][0] == ticks[1][0]:
        return _show_ticks(ticks[0][0], ticks[0][1], ticks[1][1], of or [], out, as_json=as_json)
    for folder, tick in zip((january, june), ticks, strict=True):
        if tick is not None or (folder / "stream.json").is_file():
            raise ParameterError(
                f"difference: expected two releases, or two ticks of one stream, got {folder}; "
                "hint: gaussnoise difference STREAM/ticks/0003 STREAM/ticks/0007"
            )
    both = published(january, None), published(june, None)
    changes = difference(*both, all_rows_fit=all_rows_fit)
    entries = [entry_of(listed, changes.before.plan.schema.names) for listed in of or []]
    found = shown_changes(changes, entries)
    if out is not None:
        wanted: Any = format  # save checks it
        changes.save(out, wanted, of=entries, title=title)
    if as_json:
        return show(changes_document(changes, found, out, entries))
    say(changes_text(changes, found, entries))
    if out is not None:
        files = sorted({path.relative_to(out).parts[0] for path in out.rglob("*")})
        say(f"\nwrote {out}: {', '.join(files)}")


def _show_ticks(
    folder: Path, earlier: int, later: int, of: list[str], out: Path | None, *, as_json: bool
) -> None:
    """Show changes between the rows of two ticks, with the covariance of their noise."""
    if out is not None:
        raise ParameterError(
            "difference: expected no -o for two ticks of a stream; hint: --json, or gaussnoise "
            f"stream series {shlex.quote(str(folder))} -o FILE, which writes all ticks"
        )
    tables, changes = Stream.open(folder).tables, dict[str, ComparisonTable]()
    for entry in [entry_of(one, tables.plan.schema.names) for one in of] or tables.plan.marginals:
        asked = entry if isinstance(entry, tuple) else partial(TableRelease.answers, entry=entry)
        series = tables.series(asked)
        change = series.difference(series.attributes[0], later, earlier)
        changes[" × ".join(change.attributes) or f"number of {change.noun}"] = change
    if as_json:
        return show(tick_changes_document(changes, earlier, later))
    for k, (name, table) in enumerate(changes.items()):
        said = tables.plan.over.said
        title = f"{name}: {table.noun} of {said(later)} less {said(earlier)}"
        say("\n" * bool(k) + table.text(title=title))
