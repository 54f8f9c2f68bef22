"""A progress bar, on a terminal, for work of more than two seconds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from ..solvers.progress import endless, told


@contextmanager
def patience(console: Console, doing: str) -> Iterator[Callable[[str], None]]:
    """Show a progress bar with the elapsed time if the block takes longer than two seconds.

    Yield a function that sets the text of the bar.

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
