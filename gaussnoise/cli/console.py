"""The output of commands: text, one JSON document, or progress on standard error."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from ..errors import OutputError
from ..text import printable
from .documents import Document, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUT = Console(highlight=False, soft_wrap=True, emoji=False)
ERR = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def show(document: Document) -> None:
    """Write a JSON document alone, without a console's formatting."""
    sys.stdout.write(written(document) + "\n")


def say(text: str, to: Console = OUT) -> None:
    """Print lines of text, in which no name or label can send a command to the terminal."""
    to.print(printable(text), markup=False)


def check_new(command: str, file: Path | None) -> None:
    """Raise OutputError if a file that a command is to write exists."""
    if file is not None and os.path.lexists(file):
        raise OutputError(f"{command}: {file} exists already; hint: choose a new name")


def save_picture(command: str, figure: "Figure", file: Path) -> None:
    """Write a picture, or raise OutputError."""
    try:
        figure.savefig(file)
    except (OSError, ValueError) as error:  # ValueError: a format that matplotlib does not know
        raise OutputError(
            f"{command}: cannot write {file} ({type(error).__name__}); hint: FILE.png"
        ) from None
