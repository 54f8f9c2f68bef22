"""Progress reports of long solves."""

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bar


@dataclass(frozen=True)
class Progress:
    """The number of steps so far, and certified bounds on the error γ.

    Attributes:
        steps: iterations spent.
        lower: lower bound on γ, the least error that any noise can have.
        upper: upper bound on γ: the error of the noise that is returned if the solve stops now.

    >>> brackets = []
    >>> noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)), progress=brackets.append)
    >>> all(progress.lower <= progress.upper for progress in brackets)
    True
    """

    steps: int
    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """The gap ``upper/lower − 1``."""
        return self.upper / self.lower - 1 if self.lower > 0 else math.inf


Watcher = Callable[[Progress], object]


@dataclass(frozen=True)
class Watch:
    """The receiver of a solver's reports, which lists them and passes each one to ``show``."""

    show: Watcher | None
    trace: list[Progress] = field(default_factory=list)

    def scaled(self, size: float) -> Callable[[int, float, float], None]:
        """Return a function report(steps, lower, upper) that multiplies bounds by ``size``.

        The solver works on points divided by ``size``.
        """

        def report(steps: int, lower: float, upper: float) -> None:
            self.trace.append(Progress(steps, size * lower, size * upper))
            if self.show is not None:
                self.show(self.trace[-1])

        return report


def check_progress(progress: object) -> None:
    """Refuse a ``progress`` that is neither True, False, None nor a callable."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise ParameterError(f"progress: expected True, False or a callable, got {progress!r}")


_AFTER = 2.0  # seconds after which a bar is drawn although the caller did not ask for one
_told = ContextVar("told", default=False)


@contextmanager
def told() -> Iterator[None]:
    """Draw no progress bar within this block, unless the caller asks for one."""
    before = _told.set(True)
    try:
        yield
    finally:
        _told.reset(before)


@contextmanager
def drawn_late(bar: "Bar") -> Iterator[None]:
    """Draw the bar two seconds after the block begins, if it runs that long."""
    timer = threading.Timer(_AFTER, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # so that the bar cannot start after it was stopped
        bar.stop()


@contextmanager
def _drawn(bar: "Bar", asked: bool) -> Iterator[None]:
    """Draw the bar during the block: at once if ``asked``, otherwise after two seconds."""
    with told(), bar if asked else drawn_late(bar):
        yield


def _is_silent(progress: object) -> bool:
    """Return whether to draw nothing: if unwanted, inside another report, or without a terminal."""
    if progress is not None:
        return progress is False
    return _told.get() or sys.stderr is None or not sys.stderr.isatty()


@contextmanager
def watching(progress: bool | Watcher | None, tol: float) -> Iterator[Watch]:
    """Yield the object that receives a solver's reports.

    If ``progress`` is a function, each report is passed to it. With True, reports are shown by a
    progress bar; with None, by a bar that is drawn after two seconds if standard error is a
    terminal; with False, they are not shown. ``tol`` is the gap at which the bar is full.
    """
    check_progress(progress)
    if _is_silent(progress):
        with told():
            yield Watch(None)
    elif callable(progress):
        with told():
            yield Watch(progress)
    else:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[gap]}"),
            TimeElapsedColumn(),
        )
        asked = progress is True
        console = None if asked else Console(stderr=True)
        bar = Bar(*columns, console=console, transient=not asked)
        with _drawn(bar, asked):
            task = bar.add_task("solving", total=None, gap="")  # until there is a gap

            def show(now: Progress) -> None:
                done = -math.log(min(max(now.gap, tol), 1.0))
                text = f"gap {now.gap:.1e} of {tol:.0e}"
                bar.update(
                    task,
                    description=f"step {now.steps}",
                    total=-math.log(tol),
                    completed=done,
                    gap=text,
                )

            yield Watch(show)


@contextmanager
def endless(console: "Console", doing: str) -> Iterator[Callable[[str], None]]:
    """Draw a bar of unknown length after two seconds; yield a function that sets its text."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    bar = Bar(*columns, console=console, transient=True)
    task = bar.add_task(doing, total=None)
    with told(), drawn_late(bar):
        yield lambda text: bar.update(task, description=text)


@contextmanager
def working(doing: str) -> Iterator[None]:
    """Draw one bar for a task of several solves, which then draw no bars of their own."""
    if _is_silent(None):
        yield
        return
    from rich.console import Console

    with endless(Console(stderr=True), doing):
        yield


_interrupts_pass = ContextVar("interrupts_pass", default=False)


@contextmanager
def interrupts_pass() -> Iterator[None]:
    """Let Ctrl-C stop the program within this block, even if a solver has an answer to return.

    Use it for a solve that is one step of a larger task: a task that the user stops must not
    continue with a worse answer.
    """
    before = _interrupts_pass.set(True)
    try:
        yield
    finally:
        _interrupts_pass.reset(before)


def keeps_answer() -> bool:
    """Return whether a solver that is interrupted may return its best answer so far."""
    return not _interrupts_pass.get()


Counted = Callable[[int, int], object]  # called with the amount done, and the total


@contextmanager
def counting(progress: bool | Counted | None, total: int, unit: str) -> Iterator[Counted]:
    """Yield a function (done, total) that takes the reports of a task of ``total`` units.

    Reports go to ``progress`` if it is a function. Otherwise they go to a progress bar: with True
    at once, with None after two seconds on a terminal, with False never.
    """
    check_progress(progress)
    if _is_silent(progress):
        with told():
            yield lambda done, total: None
    elif callable(progress):
        with told():
            yield progress
    else:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f} " + unit),
            TimeRemainingColumn(),
        )
        bar = Bar(*columns, console=Console(stderr=True), transient=True)
        with _drawn(bar, progress is True):
            task = bar.add_task("", total=total)
            yield lambda done, total: bar.update(task, completed=done)
