"""The output of commands: text or a JSON document, and messages on standard error."""

import inspect
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ..errors import OutputError
from ..files.disk import RECORDS
from ..layout import on_screen
from ..text import printable
from .documents import Document, written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUT = Console(highlight=False, soft_wrap=True, emoji=False)
ERR = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def show(document: Document) -> None:
    """Print a JSON document on standard output, without colours and line breaks for the screen."""
    sys.stdout.write(written(document) + "\n")


def say(text: str, to: Console = OUT, style: str = "") -> None:
    """Print text in lines of the width of the screen, with control characters escaped.

    ``style`` is the style of the text up to the first colon.
    """
    lines = Text(on_screen(printable(text)))
    lines.stylize(style, 0, text.find(":") + 1)
    to.print(lines)


def say_toml(text: str) -> None:
    """Print part of a schema file, in lines of the width of the terminal, or of COLUMNS.

    If the output goes to a file, lines are not broken: a break inside quotes would change the
    schema.
    """
    if OUT.is_terminal or "COLUMNS" in os.environ:
        say(text.removesuffix("\n"))
    else:
        OUT.print(Text(printable(text.removesuffix("\n"))))


def flowing(text: str) -> str:
    """Return a docstring with each paragraph as one line, which the help text breaks.

    Indented paragraphs are lists, and keep their lines.
    """
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(p if p.startswith(" ") else " ".join(p.split()) for p in paragraphs)


def check_new(command: str, file: Path | None, *folders: Path) -> None:
    """Raise OutputError if the output file exists, or is inside a published folder.

    The record of a published folder lists all its files: with one more file, checks would fail.
    """
    if file is None:
        return
    if os.path.lexists(file):
        raise OutputError(f"{command}: {file} exists already; hint: choose a new name")
    for folder in folders:
        is_published = any((folder / name).is_file() for name in RECORDS)
        if is_published and Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder)):
            raise OutputError(
                f"{command}: expected a place outside {folder}, which holds what was published and "
                f"nothing else, got {file}; hint: a place beside it"
            )


def save_picture(command: str, figure: "Figure", file: Path) -> None:
    """Write a picture to a file; raise OutputError if that fails."""
    try:
        figure.savefig(file)
    except (OSError, ValueError) as error:  # ValueError: a format that matplotlib does not know
        raise OutputError(
            f"{command}: cannot write {file} ({type(error).__name__}); hint: FILE.png"
        ) from None
