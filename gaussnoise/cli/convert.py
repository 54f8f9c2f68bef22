"""The command that writes a published folder again, in another format."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ParameterError
from ..files.disk import SIGNATURE
from ..tables.release.formats import FORMATS
from .console import check_new, say, show
from .documents import written_document
from .options import Json, Published, Verifier
from .published import published, streamed


def convert(
    folder: Published,
    out: Annotated[Path, typer.Option("--out", "-o", help="New folder.")],
    format: Annotated[
        str, typer.Option("--format", help=f"Of the table files there: {' or '.join(FORMATS)}.")
    ],
    verifier: Verifier = False,
    as_json: Json = False,
) -> None:
    """Write a release again in another format, without data or budget.

    The new folder is a complete release with the same numbers and record. The commands verify,
    report and ask read it. A combination of releases keeps its releases as they are. Signatures are
    not copied.
    """
    check_new("convert", out, folder)
    if streamed(folder) is not None:
        raise ParameterError(
            f"convert: expected the folder of a release, got a stream, {folder}, whose ticks stay "
            "in its format; hint: gaussnoise stream series "
            f"{shlex.quote(str(folder))} -o FILE.xlsx writes one table over time, in the format "
            "that its name ends in"
        )
    if (folder / "changes.json").is_file():
        raise ParameterError(
            f"convert: expected the folder of a release, got changes, {folder}; hint: gaussnoise "
            f"difference BEFORE AFTER --format {format:.40} -o NEW, with the folders of both "
            "releases"
        )
    wanted: Any = format  # save checks it
    published(folder, None).save(out, wanted, verifier=verifier)
    if as_json:
        return show(written_document(out, format=format))
    say(f"wrote {out}: the tables of {folder} as {format}, at no cost of privacy")
    if (folder / SIGNATURE).exists():
        say(f"{folder} is signed, and {out} is not: gaussnoise sign signs it")
