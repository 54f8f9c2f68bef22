"""The request in a project's schema file: tables, budget and targets; and tables as text."""

import dataclasses
import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ParameterError
from ..tables import Schema
from ..tables.planning.stated import Asked
from ..tables.planning.targets import goals_of
from ..tables.release.grammar import parsed
from ..tables.release.question import Question
from ..tables.release.suggestion import answer_or_hint
from ..tables.schema.planned import load_plan
from ..tables.schema.schema import stated_toml
from ..tables.schema.workload import Wanted, load_workload
from ..tables.schema.workload import tables_of as one_by_one


def asked_of(path: Path, rho: float | None = None) -> Asked:
    """Return the tables, targets and budget that a schema file asks for.

    ``rho``, if given, replaces the budget of the file.

    Raises:
        ParameterError: the file asks for no table, or states no budget and no target.
    """
    schema = Schema.load(path)
    wanted = one_by_one(schema, load_workload(path))
    if not wanted:
        raise ParameterError("expected at least one table; mend it on the page Questions")
    goals = goals_of(wanted)
    entries = [one.entry for one in wanted]
    asked = Asked(schema, entries, goals if any(goals) else None, load_plan(path))
    if rho is not None:
        return asked.at(rho)
    if asked.targets is None and not asked.has_budget:
        raise ParameterError("expected a budget, or a target; mend it on the page Budget")
    return asked


def workload_toml(wanted: Sequence[Wanted]) -> list[str]:
    """Return, for each requested table, the TOML text of its ``[[workload]]`` entry."""
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
    """Return whether two requests are for the same table; their accuracy targets may differ."""
    return _key(one) == _key(other)


def _key(one: Wanted) -> object:
    entry = one.entry
    return frozenset(entry.items() if isinstance(entry, dict) else ((n, None) for n in entry))


def names_in(question: str, schema: Schema) -> tuple[str, ...]:
    """Return the names of the attributes whose table answers a question.

    Raises:
        ParameterError: the question is not understood.
    """
    tables = tables_of(schema)
    read = partial(parsed, schema=schema)
    return answer_or_hint(question, schema, None, tables, read, partial(_names, schema))


def tables_of(schema: Schema) -> list[tuple[str, ...]]:
    """Return the attribute names of each table of one or two columns that can be asked for.

    At most one column of such a table is a number to be summed.
    """
    plain = [a.name for a in schema.attributes if not a.is_summed]
    numbers = [(a.name,) for a in schema.attributes if a.is_summed]
    ones = [(name,) for name in plain]
    groups = [*ones, *itertools.combinations(plain, 2)]
    return [*groups, *numbers, *(one + number for one in ones for number in numbers)]


def _names(schema: Schema, asked: Question, _: str) -> tuple[str, ...]:
    """Return the names of all attributes that a parsed question uses."""
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

    walk(asked)
    if not found:
        raise ParameterError("expected a question that names a column")
    return tuple(schema.names[i] for i in sorted(found))
