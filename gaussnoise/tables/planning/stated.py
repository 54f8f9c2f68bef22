"""The arguments of a plan, from the values that the ``[plan]`` table of a schema file states."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from ...errors import ParameterError
from ...privacy.definitions import ApproxDP, zCDP
from ...privacy.guarantee import AbstractPrivacy
from ...privacy.per_record import PerRecord
from ..schema.entries import Entry
from ..schema.numbers import Weight
from ..schema.schema import Schema
from .door import plan
from .plan import Plan

BUDGET = ("rho", "epsilon", "delta", "per_record")
_OPTIONS = ("neighbors", "public", "p", "rows_per_person", "person", "per_person")
_NOTES = ("title", "source")  # options of the shell; schema files have them in [about]


@final
@dataclass(frozen=True)
class Asked:
    """The request of a schema file, after options of the shell replaced what the file states.

    Attributes:
        schema: the attributes.
        workload: the tables, as plan takes them.
        targets: the targets, as plan takes them; None without any.
        stated: {key of ``[plan]``: value, or None if not stated}; more keys are allowed.
    """

    schema: Schema
    workload: int | list[Entry]
    targets: Any
    stated: Mapping[str, Any]

    @property
    def has_budget(self) -> bool:
        """Whether a budget is stated, or a part of one."""
        return any(self.stated.get(name) is not None for name in BUDGET)

    @property
    def privacy(self) -> AbstractPrivacy | None:
        """The budget; None where targets find the least one."""
        if self.targets is not None and not self.has_budget:
            return None
        return privacy_of(**{name: self.stated.get(name) for name in BUDGET})

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of a plan besides its schema, tables and budget."""
        said = {"targets": self.targets} | {
            name: self.stated.get(name) for name in (*_OPTIONS, *_NOTES)
        }
        if self.stated.get("weight"):
            said["weight"] = Weight(**self.stated["weight"])
        return {name: value for name, value in said.items() if value is not None}

    def at(self, rho: float) -> "Asked":
        """Return the same request at another budget."""
        return replace(self, stated={**self.stated, **dict.fromkeys(BUDGET), "rho": rho})

    def plan(self) -> Plan:
        """Return the plan."""
        return plan(self.schema, self.workload, self.privacy, **self.options)


def privacy_of(
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    per_record: Mapping[str, float] | None = None,
) -> AbstractPrivacy:
    """Return the budget from one of its two forms, growing with numbers of a record if any.

    Raises:
        ParameterError: none, or both.
    """
    if rho is not None and epsilon is None and delta is None:
        budget: Any = zCDP(rho)
    elif rho is None and epsilon is not None and delta is not None:
        budget = ApproxDP(epsilon, delta)
    elif rho is None and epsilon is not None:
        raise ParameterError(
            "budget: expected delta= with epsilon=, the chance that the loss of privacy exceeds "
            "epsilon, got none; hint: delta=1e-6, at most one in the number of persons; or rho= "
            "alone, which needs no delta"
        )
    else:
        raise ParameterError("budget: expected either rho=, or epsilon= with delta=")
    return PerRecord(budget, per_record) if per_record else budget
