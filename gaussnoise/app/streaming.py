"""Streams of a project: the shell commands that start a stream and add ticks to it."""

from typing import NamedTuple

from ..files.disk import file_digest
from ..privacy.ledger import Ledger
from ..streams import Stream, Ticks
from ..tables.release.publish import columns_of
from .project import LEDGER, SCHEMA, STREAMS, Project

UNFINISHED = ("reserved", "written")  # states of a charge whose result is not published


class StreamWish(NamedTuple):
    """The user's choices for a stream, as the ``[stream]`` table of the schema file has them."""

    id: str
    ticks: int
    reports: int
    apart: int = 1
    enforced: bool = False
    workload: str = "totals"
    period: str = ""
    late: str = "refuse"
    corrections: str = ""
    first: str = ""
    counts: bool = False
    title: str = ""
    format: str = "csv"
    purpose: str = ""
    requested_by: str = ""

    @property
    def place(self) -> str:
        """The folder of the stream, inside the project."""
        return f"{STREAMS}/{self.id}"

    @property
    def over(self) -> Ticks:
        """The ticks (releases) of the stream, and in how many of them a person may have rows."""
        return Ticks(
            self.ticks,
            self.reports,
            apart=self.apart,
            workload=self.workload,
            late=self.late,  # pyright: ignore[reportArgumentType] (checked there)
            period=self.period or None,
            corrections=self.corrections or None,
            first=self.first or None,
            enforced=self.enforced,
        )

    def words(self) -> list[str]:
        """Return the arguments of the shell command ``gaussnoise`` that starts the stream.

        The command reads all other choices from the schema file.
        """
        given = ["stream", "start", "-s", SCHEMA, "-o", self.place, *self._noise_options()]
        return [*given, "--ledger", LEDGER, "--id", self.id]

    def plan_words(self) -> list[str]:
        """Return the arguments of the command ``gaussnoise`` that prints the stream's plan."""
        return ["stream", "plan", "-s", SCHEMA, *self._noise_options()]

    def _noise_options(self) -> list[str]:
        """Return the options that determine the noise, which do not rely on the schema file."""
        return ["--ticks", str(self.ticks), "--reports", str(self.reports)]


def opened(project: Project, name: str) -> Stream:
    """Open the stream ``name`` of a project, with the project's ledger if it charged the stream.

    The stream itself also stores a path of its ledger. This path is wrong if the project was moved.
    """
    return Stream.open(project.folder / STREAMS / name, _ledger_of(project, name))


def tick_words(project: Project, name: str, file: str, number: int) -> list[str]:
    """Return the arguments of the shell command ``gaussnoise`` that adds a tick to a stream.

    Args:
        project: the project.
        name: the name of the stream.
        file: the file with the rows of the tick.
        number: the number of the tick, from 1.
    """
    own = f"./{file}" if file.startswith("-") else file  # so that it is not read as an option
    given = ["stream", "tick", f"{STREAMS}/{name}", own, "--tick", str(number)]
    return [*given, "--ledger", LEDGER] if _ledger_of(project, name) is not None else given


def check_words(project: Project, name: str, file: str, number: int) -> list[str]:
    """Return the arguments of the shell command ``gaussnoise`` that checks the rows of a tick.

    The parameters are those of :func:`tick_words`.
    """
    given = tick_words(project, name, file, number)
    return [given[0], "check", *given[2:]]


def _ledger_of(project: Project, name: str) -> Ledger | None:
    """Return the project's ledger if the stream ``name`` is charged to it, else None."""
    ledger = project.budget()
    record = project.folder / STREAMS / name / "stream.json"
    if ledger is None or not record.is_file():
        return None
    own = file_digest(record)
    return ledger if any(entry.sha256 == own for entry in ledger.entries()) else None


def columns_wanted(stream: Stream) -> list[str]:
    """Return the names of the columns that a tick's file must have."""
    over = stream.plan.over
    names = [*columns_of(stream.plan.one_tick), over.period, over.corrections]
    return [name for name in names if name is not None]
