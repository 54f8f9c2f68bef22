"""A task goes on without its server, and the next server shows that it runs, and its end."""

import asyncio
import os
import subprocess
import sys
import time

import pytest

import gaussnoise.app.jobs as _jobs
from gaussnoise.app.jobs import Jobs
from gaussnoise.errors import ParameterError

# it ends when a file is there, and says what it is given
WORK = """
import os, sys, time
while not os.path.exists("go"):
    time.sleep(0.01)
print(*sys.argv[1:])
"""
# a server that starts a task, and is stopped or killed
SERVER = """
import asyncio, os, sys
import gaussnoise.app.jobs as jobs
from pathlib import Path

jobs._command = lambda words: [sys.executable, "-c", sys.argv[1], *words]

async def serve():
    begun = jobs.Jobs(Path(".")).start("tick 1 of weekly", "stream", "tick")
    while begun.process is None:
        await asyncio.sleep(0.01)
    if sys.argv[2] == "killed":
        os._exit(0)

asyncio.run(serve())
"""
NAME, WORDS = "tick 1 of weekly", ("stream", "tick")


@pytest.fixture(params=["killed", "stopped"])
def left(tmp_path, request):
    """The jobs of a server on a folder in which another one left a task."""
    command = [sys.executable, "-c", SERVER, WORK, request.param]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    yield Jobs(tmp_path)
    (tmp_path / "go").touch()  # it ends, whatever the test finds


def ended(jobs):
    """The last job, once it is over."""
    until = time.monotonic() + 60
    while jobs.is_busy:
        assert time.monotonic() < until
        time.sleep(0.01)
    return jobs.last


def spooled(folder):
    """The files of a task that are not empty."""
    return [path.name for path in (folder / ".task").iterdir() if path.stat().st_size]


def test_a_task_that_another_server_left_is_shown_with_its_end(left, tmp_path):
    job = left.last
    assert (job.name, job.words, job.status) == (NAME, WORDS, None)
    assert job.begun == pytest.approx(time.time(), abs=60)
    assert left.is_busy
    with pytest.raises(ParameterError, match="another task is running"):
        left.start("another", "verify", "x")
    (tmp_path / "go").touch()
    job = ended(left)
    assert (job.name, job.status, job.said, job.warned) == (NAME, 0, "stream tick\n", "")
    assert left.last is job  # as long as this server lives
    assert spooled(tmp_path) == []
    assert Jobs(tmp_path).last is None


def test_it_can_be_cancelled(left, tmp_path):
    left.cancel()
    job = ended(left)
    assert job.status
    assert (job.said, job.warned) == ("", "")
    assert not (tmp_path / "go").exists()
    left.cancel()  # again, and there is nothing left to stop


def test_one_that_was_killed_as_well_failed(left):
    os.kill(left.last.process, 9)
    assert ended(left).status


@pytest.mark.parametrize(
    "record",
    ["", "{}", "[]", '{"name": "x", "words": 1, "begun": 0, "process": null}']
    + [f'{{"name": "x", "words": [], "begun": 0, "process": {p}}}' for p in (-1, 0, 1, '"1"')],
)
def test_a_damaged_record_is_no_task(tmp_path, record):
    (tmp_path / ".task").mkdir()
    for name in ("said", "warned"):
        (tmp_path / ".task" / name).touch()
    (tmp_path / ".task" / "task.json").write_text(record, encoding="utf-8")
    jobs = Jobs(tmp_path)
    assert not jobs.is_busy
    jobs.cancel()
    assert jobs.last is None


def test_a_task_of_this_server_ends_with_its_status_and_text(tmp_path, monkeypatch):
    monkeypatch.setattr(_jobs, "_command", lambda words: [sys.executable, "-c", *words])
    found = []

    async def serve():
        jobs = Jobs(tmp_path)
        jobs.start("good", "print('said')", then=found.append)
        other = Jobs(tmp_path)  # of a second server on this folder
        while jobs.is_busy:
            await asyncio.sleep(0.01)
        good = jobs.last
        assert found == [good]
        jobs.start("bad", "import sys; sys.exit('warned')", then=found.append)
        with pytest.raises(ParameterError, match="another task is running"):
            other.start("worse", "")
        while jobs.is_busy:
            await asyncio.sleep(0.01)
        return good, jobs.last, await jobs.shown("print('shown')")

    good, bad, shown = asyncio.run(serve())
    assert (good.status, good.said, good.warned) == (0, "said\n", "")
    assert (bad.status, bad.said, bad.warned) == (1, "", "warned\n")
    assert found == [good]
    assert shown == ("shown\n", "")
    assert spooled(tmp_path) == []
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / ".task").iterdir()}
    assert modes == {0}  # what a task says may hold data
