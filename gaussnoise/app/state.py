"""The state that all pages of one server share: the project, its running task, and its plan."""

from dataclasses import dataclass, field
from typing import final

from nicegui import run

from ..errors import ParameterError
from ..tables import Plan
from ..tables.planning.stated import Asked
from .asked import asked_of
from .jobs import Jobs
from .project import Project


@final
@dataclass
class State:
    """A server's project, with the last plan that was computed for it."""

    project: Project
    jobs: Jobs = field(init=False)
    _solved: tuple[object, Plan] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.project.folder)

    async def plan(self, rho: float | None = None) -> Plan:
        """Return the plan that the project states, at the budget ``rho`` if it is given.

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


async def _solve(asked: Asked) -> Plan:
    solved = await run.io_bound(asked.plan)
    if solved is None:  # the server is stopping
        raise ParameterError("app: the server is stopping")
    return solved
