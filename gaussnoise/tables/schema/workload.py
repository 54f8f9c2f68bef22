"""The workload that a schema file states in its ``[[workload]]`` tables, for the shell."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

from ...errors import ParameterError, SchemaError
from .entries import Entry, entry_term, one_by_one
from .schema import Schema, parsed_toml, read_toml, toml_line

_TARGET = ("within", "level", "simultaneous")


@final
@dataclass(frozen=True)
class Wanted:
    """One entry of a workload, and the wanted accuracy.

    Attributes:
        entry: names, or a mapping from names to bases.
        within: the wanted margin of error in rows, at ``level``; None if no accuracy is stated.
        level: the level of the intervals.
        simultaneous: whether the level holds for all answers together.
    """

    entry: Entry
    within: float | None = None
    level: float = 0.95
    simultaneous: bool = False


def load_workload(path: str | os.PathLike[str]) -> list[Wanted]:
    """Return the ``[[workload]]`` tables of a schema file; an empty list if there are none.

    Each has ``of = ["sex", "age:prefix"]``, where a base follows a name after a colon. In ``of =
    ["sex", "income+age:moments"]``, a base follows several names. A table may also have ``within``
    (rows), ``level`` and ``simultaneous``.

    Raises:
        SchemaError: the message starts with ``path:line:``.
    """
    text, name = read_toml(path)
    schema, entries = Schema.loads(text, name), []
    for k, table in enumerate(parsed_toml(text, name).get("workload", ())):
        where = f"{name}:{toml_line(text, ('workload', str(k)))}: workload"
        target = {key: table[key] for key in _TARGET if key in table}
        if target and "within" not in target:
            raise SchemaError(f"{where}: expected within = ROWS beside level or simultaneous")
        try:
            entry = as_entry(table["of"], schema.names)
            for _, one in one_by_one(schema, [entry]):
                entry_term(schema, one)
        except ParameterError as error:
            raise SchemaError(f"{where}: {error}") from None
        entries.append(Wanted(entry, **target))
    return entries


def tables_of(schema: Schema, wanted: Sequence[Wanted]) -> list[Wanted]:
    """Return one entry for each table, with the accuracy wanted by the entry that asked for it."""
    tables = one_by_one(schema, [one.entry for one in wanted])
    return [replace(wanted[k], entry=entry) for k, entry in tables]


def as_entry(names: list[str], known: tuple[str, ...]) -> Entry:
    """Return a workload entry from texts like "sex" or "age:prefix" (name and queries).

    Names in ``known`` are taken as they are, even with a colon.
    """
    if all(name in known or ":" not in name for name in names):
        return tuple(names)
    entry: dict[str, str | None] = {}
    for name in names:
        plain = name in known or ":" not in name
        own, base = (name, None) if plain else (part.strip() for part in name.rsplit(":", 1))
        entry[own or name] = base
    if len(entry) < len(names):
        raise ParameterError(f"expected distinct attributes, got {','.join(names)!r}")
    return entry
