"""Where commands write: text, one JSON document, or a word on standard error."""

import sys

from rich.console import Console

from ..text import printable
from .documents import Document, written

OUT = Console(highlight=False, soft_wrap=True, emoji=False)
ERR = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def show(document: Document) -> None:
    """A document alone, without what a console would make of it."""
    sys.stdout.write(written(document) + "\n")


def say(text: str, to: Console = OUT) -> None:
    """Lines of text, in which no name or label can command a terminal."""
    to.print(printable(text), markup=False)
