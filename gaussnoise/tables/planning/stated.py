"""The arguments of a plan that a schema file states in its table ``[plan]``."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from ...errors import ParameterError
from ...privacy.definitions import ApproxDP, zCDP
from ...privacy.guarantee import AbstractPrivacy
from ...privacy.per_record import PerRecord
from ..schema.entries import Entry, entry_name, entry_term, one_by_one
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
    """The arguments of a plan, from a schema file and, with precedence, from the shell's options.

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
        """Whether a privacy budget is stated, perhaps not completely."""
        return any(self.stated.get(name) is not None for name in BUDGET)

    @property
    def privacy(self) -> AbstractPrivacy | None:
        """The stated budget; None if only targets are stated, which determine a budget."""
        if self.targets is not None and not self.has_budget:
            return None
        return privacy_of(**{name: self.stated.get(name) for name in BUDGET})

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of :func:`plan` other than the schema, the workload and the budget."""
        said = {"targets": self.targets} | {
            name: self.stated.get(name) for name in (*_OPTIONS, *_NOTES)
        }
        if self.stated.get("weight"):
            said["weight"] = Weight(**self.stated["weight"])
        return {name: value for name, value in said.items() if value is not None}

    def at(self, rho: float) -> "Asked":
        """Return the same arguments with the privacy budget ρ."""
        return replace(self, stated={**self.stated, **dict.fromkeys(BUDGET), "rho": rho})

    def of_counts(self) -> tuple["Asked", list[str]]:
        """Return arguments without tables that sum clipped numbers, and such tables' names."""
        asked, own = self.workload, self.schema
        if isinstance(asked, int):
            asked = list(itertools.combinations(own.names, asked))
        sums = [one for one in asked if self._is_summed(one)]
        if not sums:
            return self, []
        kept = [one for one in asked if one not in sums]
        return replace(self, workload=kept), [entry_name(own, one) for one in sums]

    def _is_summed(self, entry: Entry) -> bool:
        """Return whether a table sums a clipped number, as tables with its mean do."""
        terms = (entry_term(self.schema, one) for _, one in one_by_one(self.schema, [entry]))
        return any(self.schema.attributes[i].is_summed for term in terms for i in term)

    def plan(self) -> Plan:
        """Return the plan with these arguments."""
        return plan(self.schema, self.workload, self.privacy, **self.options)


def privacy_of(
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    per_record: Mapping[str, float] | None = None,
) -> AbstractPrivacy:
    """Return the privacy budget that is stated as ρ, or as ε and δ.

    With ``per_record``, it grows with numbers of a record.

    Raises:
        ParameterError: neither ρ nor ε is given, or both are.
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
