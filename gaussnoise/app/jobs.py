"""Work that reads data: a command of the shell in a process of its own, one at a time."""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from ..errors import GaussNoiseError, ParameterError


@final
@dataclass
class Job:
    """A command that runs or has run; it goes on where a page is closed.

    Attributes:
        name: the work, for the page.
        words: the words after ``gaussnoise``.
        begun: the time at which it began, by a clock that only goes on.
        status: the exit status; None while it runs.
        said: standard output.
        warned: standard error.
    """

    name: str
    words: tuple[str, ...]
    begun: float
    status: int | None = None
    said: str = ""
    warned: str = ""

    @property
    def command(self) -> str:
        """The command, as it is typed."""
        return shlex.join(("gaussnoise", *self.words))


@final
@dataclass
class Jobs:
    """The one job of a project at a time, and the last one."""

    folder: Path
    last: Job | None = None
    _process: asyncio.subprocess.Process | None = field(default=None, init=False)
    _task: asyncio.Task[None] | None = field(default=None, init=False)  # else it may be collected

    @property
    def is_busy(self) -> bool:
        """Whether a job runs."""
        return self.last is not None and self.last.status is None

    def start(self, name: str, *words: str, then: Callable[[Job], None] | None = None) -> Job:
        """Start a command; the page need not stay open.

        Args:
            name: the work, for the page.
            words: the words after ``gaussnoise``.
            then: a function of the job, called after success.

        Raises:
            ParameterError: another one is running.
        """
        if self.is_busy:
            raise ParameterError("app: another task is running; hint: wait for it, or cancel it")
        job = self.last = Job(name, words, time.monotonic())
        self._task = asyncio.create_task(self._run(job, then))
        return job

    async def _run(self, job: Job, then: Callable[[Job], None] | None) -> None:
        status = 70  # where the server ends
        try:
            # lines are broken by the page, not by a terminal
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "gaussnoise", *job.words),
                cwd=self.folder,
                env=os.environ | {"COLUMNS": "1000"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            said, warned = await self._process.communicate()
            job.said, job.warned = (text.decode("utf-8", "replace") for text in (said, warned))
            status = self._process.returncode or 0
            if status == 0 and then is not None:
                then(job)
        except GaussNoiseError as error:
            status, job.warned = 1, f"error: {type(error).__name__}: {error}"
        finally:
            self._process, job.status = None, status

    def cancel(self) -> None:
        """Ask the command to stop, as Ctrl-C does: it removes its unfinished files."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
