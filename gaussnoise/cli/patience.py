"""A sign of life for what takes longer than two seconds, where somebody watches."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..solvers.progress import drawn_late, told


@contextmanager
def patience(console: Console, doing: str) -> Iterator[Callable[[str], None]]:
    """A bar with the time so far, from two seconds on, on a terminal; gives what changes its text.

    Args:
        console: where to draw, on standard error.
        doing: what takes so long, in one word.
    """
    if not console.is_terminal:
        with told():
            yield lambda text: None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(doing, total=None)
    with told(), drawn_late(bar):
        yield lambda text: bar.update(task, description=text)
