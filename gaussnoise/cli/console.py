"""The output of commands: text, one JSON document, or progress on standard error."""

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
    """Write a JSON document to standard output, without the formatting of the console."""
    sys.stdout.write(written(document) + "\n")


def say(text: str, to: Console = OUT, style: str = "") -> None:
    """Print text that fits the screen; its characters cannot control the terminal.

    ``style`` is applied to the text up to the first colon.
    """
    lines = Text(on_screen(printable(text)))
    lines.stylize(style, 0, text.find(":") + 1)
    to.print(lines)


def say_toml(text: str) -> None:
    """Print part of a schema file: in lines that fit a terminal or COLUMNS, else unchanged.

    In a file, a line broken inside a quoted text would change the schema.
    """
    if OUT.is_terminal or "COLUMNS" in os.environ:
        say(text.removesuffix("\n"))
    else:
        OUT.print(Text(printable(text.removesuffix("\n"))))


def flowing(text: str) -> str:
    """Return a docstring for help, where each paragraph is one line, as help breaks lines itself.

    Indented paragraphs are lists, whose lines are kept.
    """
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(p if p.startswith(" ") else " ".join(p.split()) for p in paragraphs)


def check_new(command: str, file: Path | None, *folders: Path) -> None:
    """Raise OutputError if the file for output exists, or would be inside a published folder.

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
    """Write a picture, or raise OutputError."""
    try:
        figure.savefig(file)
    except (OSError, ValueError) as error:  # ValueError: a format that matplotlib does not know
        raise OutputError(
            f"{command}: cannot write {file} ({type(error).__name__}); hint: FILE.png"
        ) from None
