"""The state that all pages of one server share: the project, its task, its plan and its check."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, final

from nicegui import run

from ..errors import ParameterError
from ..tables import Plan, Schema
from ..tables.planning.stated import BUDGET, Asked
from ..tables.schema.planned import load_plan
from ..tables.schema.workload import load_workload
from .asked import asked_of
from .jobs import Job, Jobs
from .project import SCHEMA, Project


class _Counted(NamedTuple):
    """All that decides which rows a release counts: columns, schema and plan as text, and files."""

    columns: frozenset[str]
    stated: str
    files: tuple[tuple[str, int, int], ...]


@final
@dataclass
class State:
    """The state that all pages of a server share: the project, jobs, the last plan and check."""

    project: Project
    jobs: Jobs = field(init=False)
    _solved: tuple[object, Plan] | None = field(default=None, init=False)
    _checked: tuple[_Counted, Job] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.project.folder)

    async def plan(self, rho: float | None = None) -> Plan:
        """Return the plan that the schema file asks for, or this plan with the budget ``rho``.

        The noise is computed once, outside the event loop, and then scaled to other budgets.

        Raises:
            GaussNoiseError: the project states no valid plan.
        """
        asked = asked_of(self.project.schema, rho)
        key = repr((asked.schema.to_toml(), asked.workload, asked.options))
        privacy = asked.privacy
        if privacy is None or privacy.scales:
            return await _solve(asked)
        if self._solved is None or self._solved[0] != key:
            self._solved = key, await _solve(asked.at(1.0))
        return self._solved[1].with_budget(privacy)

    def check(self) -> None:
        """Start a job that checks the rows which a release would count.

        Raises:
            ParameterError: another job is running.
        """
        what = _counted(self.project.schema)
        names = ", ".join(os.path.basename(name) for name, *_ in what.files)
        job = self.jobs.start(f"check of {names}", "check", "-s", SCHEMA)
        self._checked = what, job

    @property
    def checked(self) -> Job | None:
        """The finished check of rows; None if the files or the schema were changed after the check.

        Only the server remembers the check, since the output of the check has values of the data.
        If all rows fit, the check also holds for a release that asks for fewer columns.
        """
        if self._checked is None:
            return None
        (what, job), now = self._checked, _counted(self.project.schema)
        fits = now.columns <= what.columns if job.status == 0 else now.columns == what.columns
        is_same = fits and what._replace(columns=now.columns) == now
        return job if is_same and job.said and job.status is not None else None


def _counted(schema: Path) -> _Counted:
    free = *BUDGET, "expected_rows"  # they do not change which rows count
    stated = {name: value for name, value in load_plan(schema).items() if name not in free}
    marks = tuple((str(file), *_mark(file)) for file in stated.get("table", []))
    own, entries = Schema.load(schema), [one.entry for one in load_workload(schema)]
    asked = {x for entry in entries for x in ([entry] if isinstance(entry, str) else entry)}
    columns = frozenset(asked if entries else own.names)  # as the check without tables does
    return _Counted(columns, repr((own.attributes, own.impossible, own.file, stated)), marks)


def _mark(file: Path) -> tuple[int, int]:
    """Return a file's size in bytes and its last change in nanoseconds; (0, 0) without a file."""
    try:
        found = file.stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


async def _solve(asked: Asked) -> Plan:
    solved = await run.io_bound(asked.plan)
    if solved is None:  # the server is stopping
        raise ParameterError("app: the server is stopping")
    return solved
