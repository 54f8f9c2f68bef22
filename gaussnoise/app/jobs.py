"""Jobs, work that reads data: each is a shell command in its own process, one at a time."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, final

from ..errors import GaussNoiseError, OutputError, ParameterError
from ..files.disk import exclusive_lock, locked, read_json

_PLACE = ".task"  # folder of the running job, for its owner only; its files are emptied at the end
_SAID, _WARNED, _RECORD = "said", "warned", "task.json"
_WIDE = {"COLUMNS": "1000"}  # the page breaks lines, so commands must not
_STOPPED = 70  # exit status of a job whose server ended
_OFTEN = 0.1  # seconds from one check of a job to the next


@final
@dataclass
class Job:
    """A command that runs or has run; it continues if a page is closed or the server is stopped.

    Attributes:
        name: a name of the work, shown on the page.
        words: the command line after ``gaussnoise``, in words.
        begun: the time at which it began, in seconds since 1970.
        process: the id of its process; None before it has one.
        status: the exit status; None while it runs.
        said: standard output.
        warned: standard error.
        is_read: whether a page has shown its output.
    """

    name: str
    words: tuple[str, ...]
    begun: float
    process: int | None = None
    status: int | None = None
    said: str = ""
    warned: str = ""
    is_read: bool = False

    @property
    def command(self) -> str:
        """The command line, as a user would type it in a shell."""
        return shlex.join(("gaussnoise", *self.words))


@final
@dataclass
class Jobs:
    """The jobs of a project: at most one runs at a time, and the last one is remembered.

    A job writes its output to a file in the project, and holds the lock of this file until the job
    ends. If the server is stopped, the next server finds the job by this lock, and shows the
    result.
    """

    folder: Path
    _job: Job | None = field(default=None, init=False)
    _task: asyncio.Task[None] | None = field(default=None, init=False)  # else it may be collected

    @property
    def last(self) -> Job | None:
        """The running job, or else the last one that ran; another server may have started it."""
        if self._task is None or self._task.done():
            self._job = self._read_record() or self._job
        return self._job

    @property
    def is_busy(self) -> bool:
        """Whether a job is running."""
        job = self.last
        return job is not None and job.status is None

    def start(self, name: str, *words: str, then: Callable[[Job], None] | None = None) -> Job:
        """Start a command, which continues even if the page is closed or the server is stopped.

        Args:
            name: a name of the work, shown on the page.
            words: the command line after ``gaussnoise``, in words.
            then: a function of the job, called after success if the server still runs.

        Raises:
            ParameterError: another job is running.
            OutputError: the folder cannot be written.
        """
        if self.is_busy:
            raise _busy()
        job = Job(name, words, time.time())
        said = self._lock_output(job)
        self._job = job
        self._task = asyncio.create_task(self._run(job, said, then))
        return job

    def _lock_output(self, job: Job) -> BinaryIO:
        """Return the open, locked file for a job's standard output; also write the job's record."""
        try:
            self._at("").mkdir(mode=0o700, exist_ok=True)
            said = _open_private(self._at(_SAID))
            if not locked(said.fileno(), unknown=True):
                said.close()
                raise _busy()
            said.truncate()
            with _open_private(self._at(_WARNED)) as warned:
                warned.truncate()
            self._write_record(job)
        except OSError as error:
            raise _unwritten(error) from None
        return said

    async def _run(self, job: Job, said: BinaryIO, then: Callable[[Job], None] | None) -> None:
        status = _STOPPED
        try:
            with said, _open_private(self._at(_WARNED)) as warned:
                # not by asyncio, which kills a process when its own objects for it are deleted
                process = subprocess.Popen(
                    _command(job.words),
                    cwd=self.folder,
                    env=os.environ | _WIDE,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=warned,
                    start_new_session=True,  # Ctrl-C ends the server, not the job
                )
            job.process = process.pid
            self._write_record(job)
            while (found := process.poll()) is None:
                await asyncio.sleep(_OFTEN)
            status = found
            with exclusive_lock(self._at(_SAID)) as is_free:
                if is_free:  # if not, another server has started a job in the meantime
                    self._take_output(job)
            if status == 0 and then is not None:
                then(job)
        except OSError as error:
            status, job.warned = 1, f"error: {_unwritten(error)}"
        except GaussNoiseError as error:
            status, job.warned = 1, f"error: {type(error).__name__}: {error}"
        finally:
            job.status = status

    def _read_record(self) -> Job | None:
        """Return the job that another server started, from its record; None without a record."""
        try:
            found = read_json(self._at(_RECORD))
            process, words = found["process"], tuple(map(str, found["words"]))
            if not (process is None or (type(process) is int and process > 1)):
                raise ValueError
            job = Job(str(found["name"]), words, float(found["begun"]), process)
            with exclusive_lock(self._at(_SAID)) as is_over:
                if is_over:
                    self._take_output(job)
                    # a command that succeeds prints its result on standard output
                    job.status = 0 if job.said else _STOPPED
            return job
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def _take_output(self, job: Job) -> None:
        """Read the output of a finished job, and empty its files, since they may hold data."""
        files = self._at(_SAID), self._at(_WARNED)
        job.said, job.warned = (x.read_text(encoding="utf-8", errors="replace") for x in files)
        for file in files:
            os.truncate(file, 0)
        self._at(_RECORD).unlink(missing_ok=True)

    def _write_record(self, job: Job) -> None:
        """Write the record of a job, by which a later server finds the job."""
        record = {name: getattr(job, name) for name in ("name", "words", "begun", "process")}
        scratch = self._at(f"{_RECORD}.partial")
        with _open_private(scratch) as file:
            file.truncate()
            file.write(json.dumps(record).encode())
        scratch.replace(self._at(_RECORD))

    def _at(self, name: str) -> Path:
        return self.folder / _PLACE / name

    async def shown(self, *words: str) -> tuple[str, str]:
        """Return standard output and standard error of a command that reads no rows.

        Such a command is not a job. Any number of them may run. A command is ended if its page is
        closed.
        """
        process = await asyncio.create_subprocess_exec(
            *_command(words),
            cwd=self.folder,
            env=os.environ | _WIDE,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            said, warned = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        return said.decode("utf-8", "replace"), warned.decode("utf-8", "replace")

    def cancel(self) -> None:
        """Stop the running command by SIGTERM, upon which it removes its unfinished files."""
        job = self.last
        if job is not None and job.status is None and job.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(job.process, signal.SIGTERM)


def _command(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "gaussnoise", *words]


def _open_private(path: Path) -> BinaryIO:
    """Open a file for writing, and keep its content; a new file can be read by its owner alone."""
    return open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")


def _busy() -> ParameterError:
    return ParameterError("app: another task is running; hint: wait for it, or cancel it")


def _unwritten(error: OSError) -> OutputError:
    return OutputError(f"app: cannot write {_PLACE} ({type(error).__name__})")
