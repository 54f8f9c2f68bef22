"""Where commands write: text, one JSON document, or a word on standard error."""

import sys

from rich.console import Console

from .documents import Document, written

OUT = Console(highlight=False, soft_wrap=True, emoji=False)
ERR = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def show(document: Document) -> None:
    """A document alone, without what a console would make of it."""
    sys.stdout.write(written(document) + "\n")


def say(text: str) -> None:
    """A line, as it is."""
    OUT.print(text, markup=False)
