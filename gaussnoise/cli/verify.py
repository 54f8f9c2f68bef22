"""The command ``verify``."""

from pathlib import Path
from typing import Annotated

import typer

from ..verifier import verified
from .console import say

_STYLES = {"checked": "green", "unchecked": "yellow", "UNKNOWN:": "yellow", "FAILED:": "red"}


def verify_folder(
    path: Annotated[
        Path,
        typer.Argument(help="Folder of a release, a stream or a combination; or a saved answer."),
    ],
) -> None:
    """Check a published folder from its files alone, in exact arithmetic. Needs no data."""
    lines = verified(path)
    for line in lines:
        say(line, style=_STYLES[line.split()[0]])
    if not lines[0].startswith("checked"):
        raise typer.Exit(1)
