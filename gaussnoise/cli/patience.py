"""A progress bar on a terminal for work that takes longer than two seconds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from ..solvers.progress import endless, told


@contextmanager
def patience(console: Console, doing: str) -> Iterator[Callable[[str], None]]:
    """Show a bar with the elapsed time after two seconds; yield a function that sets its text.

    Args:
        console: the console on standard error; nothing is drawn unless it is a terminal.
        doing: one word for the work.
    """
    if not console.is_terminal:
        with told():
            yield lambda text: None
        return
    with endless(console, doing) as tell:
        yield tell
