"""Streams of a project: the shell commands that start a stream and add ticks to it."""

from typing import NamedTuple

from ..files.disk import file_digest
from ..privacy.ledger import Ledger
from ..streams import Stream, Ticks
from ..tables.release.publish import columns_of
from .jobs import as_words
from .project import LEDGER, SCHEMA, STREAMS, Project

UNFINISHED = ("reserved", "written")  # states of a charge whose result is not published


class StreamWish(NamedTuple):
    """The user's choices for a stream, besides the statements of the schema file."""

    id: str
    ticks: int
    reports: int
    apart: int = 1
    enforced: bool = False
    workload: str = "totals"
    period: str = ""
    late: str = "refuse"
    format: str = "csv"
    purpose: str = ""
    requested_by: str = ""

    @property
    def place(self) -> str:
        """The folder of the stream."""
        return f"{STREAMS}/{self.id}"

    @property
    def over(self) -> Ticks:
        """The ticks of the stream, and the ticks at which one person may take part."""
        return Ticks(
            self.ticks,
            self.reports,
            apart=self.apart,
            workload=self.workload,
            late=self.late,  # pyright: ignore[reportArgumentType] (checked there)
            period=self.period or None,
            enforced=self.enforced,
        )

    def plan_words(self) -> list[str]:
        """Return the command line after ``gaussnoise``, in words, that shows the plan."""
        return ["stream", "plan", "-s", SCHEMA, *self._options()]

    def words(self) -> list[str]:
        """Return the command line after ``gaussnoise``, in words, that starts the stream."""
        given = ["stream", "start", "-s", SCHEMA, "-o", self.place]
        given += ["--ledger", LEDGER, "--id", self.id, *self._options(), "--format", self.format]
        notes = {"--purpose": self.purpose, "--requested-by": self.requested_by}
        return [*given, *as_words(notes)]

    def _options(self) -> list[str]:
        """Return the options of a plan over time that differ from the defaults."""
        given = ["--ticks", str(self.ticks), "--reports", str(self.reports)]
        given += ["--enforced"] * self.enforced
        more = {"--apart": str(self.apart), "--workload": self.workload}
        more |= {"--period": self.period, "--late": self.late}
        usual = ("1", "totals", "", "refuse")
        pairs = zip(more.items(), usual, strict=True)
        return [*given, *as_words({name: own for (name, own), default in pairs if own != default})]


def opened(project: Project, name: str) -> Stream:
    """Return a stream of a project, with the project's ledger if the stream is charged to it.

    The stored path of the ledger may be outdated, if the project has been moved.
    """
    return Stream.open(project.folder / STREAMS / name, _ledger_of(project, name))


def tick_words(project: Project, name: str, file: str, number: int) -> list[str]:
    """Return the command line after ``gaussnoise``, in words, that adds a tick to a stream."""
    own = f"./{file}" if file.startswith("-") else file  # so that it is not read as an option
    given = ["stream", "tick", f"{STREAMS}/{name}", own, "--tick", str(number)]
    return [*given, "--ledger", LEDGER] if _ledger_of(project, name) is not None else given


def _ledger_of(project: Project, name: str) -> Ledger | None:
    """Return the project's ledger if the stream is charged to it."""
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
