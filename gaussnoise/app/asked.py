"""The plan of a project: what its schema file states, as arguments of :func:`gaussnoise.plan`."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ParameterError
from ..privacy.definitions import ApproxDP, zCDP
from ..privacy.per_record import PerRecord
from ..tables import Plan, Schema, Weight, plan
from ..tables.planning.targets import goals_of
from ..tables.release.grammar import parsed
from ..tables.schema.planned import load_plan
from ..tables.schema.schema import stated_toml
from ..tables.schema.workload import Wanted, load_workload

START = 0.1  # ρ of a project that states no budget yet; it is shown, and stated once it is chosen
_OPTIONS = ("neighbors", "public", "p", "rows_per_person", "person", "per_person")


class Asked(NamedTuple):
    """The arguments of a plan."""

    schema: Schema
    workload: list[Any]
    privacy: Any  # None where targets find the least budget
    options: dict[str, Any]

    def plan(self) -> Plan:
        """Return the plan."""
        return plan(self.schema, self.workload, self.privacy, **self.options)


def asked_of(path: Path, privacy: Any = None) -> Asked:
    """Return the arguments that a schema file states, as the shell reads them.

    A budget that is given replaces the stated one.

    Raises:
        ParameterError: it asks for no table, or states no budget and no target.
    """
    stated, wanted = load_plan(path), load_workload(path)
    if not wanted:
        raise ParameterError("expected at least one table; mend it on the page Questions")
    options = {name: stated[name] for name in _OPTIONS if name in stated}
    if "weight" in stated:
        options["weight"] = Weight(**stated["weight"])
    goals = goals_of(wanted)
    if any(goals):
        options["targets"] = goals
    privacy = _privacy(stated) if privacy is None else privacy
    if privacy is None and not any(goals):
        raise ParameterError("expected a budget, or a target; mend it on the page Budget")
    return Asked(Schema.load(path), [w.entry for w in wanted], privacy, options)


def _privacy(stated: dict[str, Any]) -> Any:
    """Return the stated budget, or None."""
    if "epsilon" in stated or "delta" in stated:
        if "rho" in stated or not {"epsilon", "delta"} <= stated.keys():
            raise ParameterError("[plan]: expected either rho, or epsilon with delta")
        privacy: Any = ApproxDP(stated["epsilon"], stated["delta"])
    else:
        privacy = zCDP(stated["rho"]) if "rho" in stated else None
    scales = stated.get("per_record")
    return PerRecord(privacy, scales) if scales and privacy is not None else privacy


def workload_toml(wanted: Sequence[Wanted]) -> list[str]:
    """Return the ``[[workload]]`` tables of entries."""
    usual = {field.name: field.default for field in dataclasses.fields(Wanted)}
    texts = []
    for one in wanted:
        entry = one.entry
        bases = dict.fromkeys([entry] if isinstance(entry, str) else entry)
        bases |= entry if isinstance(entry, dict) else {}
        names = [name if base is None else f"{name}:{base}" for name, base in bases.items()]
        goal = {name: getattr(one, name) for name in usual if name != "entry"}
        goal = {name: value for name, value in goal.items() if value != usual[name]}
        (text,) = stated_toml(workload={"of": names, **goal})
        texts.append(text.replace("[workload]", "[[workload]]", 1))
    return texts


def same_table(one: Wanted, other: Wanted) -> bool:
    """Return whether two entries ask for the same."""
    return _key(one) == _key(other)


def _key(one: Wanted) -> object:
    entry = one.entry
    return frozenset(entry.items() if isinstance(entry, dict) else ((n, None) for n in entry))


def names_in(question: str, schema: Schema) -> tuple[str, ...]:
    """Return the attributes that a question is about: their table answers it.

    Raises:
        ParameterError: the question is not understood.
    """
    found: set[int] = set()

    def walk(part: Any, field: str = "") -> None:
        if isinstance(part, dict):
            found.update(part)
        elif field == "attribute" and isinstance(part, int):
            found.add(part)
        elif field == "on" and isinstance(part, tuple):
            found.update(i for term in part for i in term)
        elif hasattr(part, "_asdict"):
            for name, inner in part._asdict().items():
                walk(inner, name)

    walk(parsed(question, schema))
    if not found:
        raise ParameterError(
            "expected a question that names a column; hint: share of employed=yes given sex"
        )
    return tuple(schema.names[i] for i in sorted(found))
