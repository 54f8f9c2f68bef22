"""Watching a long solve."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ..errors import ParameterError


@dataclass(frozen=True)
class Progress:
    """What is certified so far.

    Attributes:
        steps: iterations spent.
        lower: lower end of the bracket on γ.
        upper: upper end, of the noise that stopping now would return.
    """

    steps: int
    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """``upper/lower − 1``."""
        return self.upper / self.lower - 1 if self.lower > 0 else math.inf


Watcher = Callable[[Progress], object]


@dataclass(frozen=True)
class Watch:
    """Records every report, and passes it on."""

    show: Watcher | None
    trace: list[Progress] = field(default_factory=list)

    def scaled(self, size: float) -> Callable[[int, float, float], None]:
        """What a solver reports to whose points are ``size`` times smaller."""

        def report(steps: int, lower: float, upper: float) -> None:
            self.trace.append(Progress(steps, size * lower, size * upper))
            if self.show is not None:
                self.show(self.trace[-1])

        return report


def check_progress(progress: object) -> None:
    """Refuse what nobody can report to."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise ParameterError(f"progress: expected True, False or a callable, got {progress!r}")


@contextmanager
def watching(progress: bool | Watcher | None, tol: float) -> Iterator[Watch]:
    """Where to report to, for the caller's own callback, a progress bar for True, or nobody."""
    check_progress(progress)
    if progress is None or progress is False:
        yield Watch(None)
    elif progress is not True:
        yield Watch(progress)
    else:
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("step {task.fields[steps]}"),
            BarColumn(),
            TextColumn("gap {task.fields[gap]:.1e} of {task.fields[tol]:.0e}"),
            TimeElapsedColumn(),
        )
        with Bar(*columns) as bar:
            task = bar.add_task("", total=-math.log(tol), steps=0, gap=math.inf, tol=tol)

            def show(now: Progress) -> None:
                done = -math.log(min(max(now.gap, tol), 1.0))
                bar.update(task, completed=done, steps=now.steps, gap=now.gap)

            yield Watch(show)


_interrupts_pass = ContextVar("interrupts_pass", default=False)


@contextmanager
def interrupts_pass() -> Iterator[None]:
    """In this block Ctrl-C stops the program, even where a solver has an answer to return.

    For solves that are only a step of a larger task: what the user has stopped must not go on with
    a worse answer.
    """
    before = _interrupts_pass.set(True)
    try:
        yield
    finally:
        _interrupts_pass.reset(before)


def keeps_answer() -> bool:
    """Whether a solver that is interrupted may return its best answer so far."""
    return not _interrupts_pass.get()


Counted = Callable[[int, int], object]  # called with how much is done, and how much there is


@contextmanager
def counting(progress: bool | Counted | None, total: int, unit: str) -> Iterator[Counted]:
    """Where to say how far a task is: the caller's callback, a progress bar for True, or nobody."""
    check_progress(progress)
    if progress is None or progress is False:
        yield lambda done, total: None
    elif progress is not True:
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
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("", total=total)
            yield lambda done, total: bar.update(task, completed=done)
