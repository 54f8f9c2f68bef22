"""Functions from options to what is asked for: tables, targets, a budget, a plan."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import OutputError, ParameterError
from ..privacy.definitions import ApproxDP, zCDP
from ..privacy.guarantee import AbstractPrivacy
from ..tables import Budgets, Dialect, Plan, Schema, Target, Weight, budgets, plan
from ..tables.schema.entries import Entry
from ..tables.schema.workload import as_entry, load_workload
from .console import ERR
from .patience import patience


class Asked(NamedTuple):
    """The request of a command line and a schema file, and how accurate it should be."""

    schema: Schema
    workload: int | list[Entry]
    targets: Any  # as plan takes them; None if none are given


def asked_for(
    path: Path,
    marginals: list[str] | None,
    within: float | None = None,
    target: list[str] | None = None,
    written: tuple[str | None, str | None, str | None, str | None] = (None, None, None, None),
) -> Asked:
    """Return what a schema file and the options for tables, accuracy and dialect ask for."""
    schema = Schema.load(path)
    schema = replace(schema, file=dialect_of(schema.file, *written))
    targets: dict[frozenset[str], Target] = dict(map(target_of, target or []))
    if len(targets) < len(target or []):
        raise ParameterError("--target: expected one for each marginal, got two for one")
    if within is not None and targets:
        raise ParameterError("expected --within for all marginals, or --target for each, not both")
    if marginals:
        aims = within if within is not None else targets or None
        return Asked(schema, workload_of(marginals, schema.names), aims)
    wanted = load_workload(path)
    if not wanted:
        raise ParameterError(
            f"expected --marginals (-m), or [[workload]] tables in {path} that say what to ask"
        )
    goals = [
        None if one.within is None else Target(one.within, one.level, one.simultaneous)
        for one in wanted
    ]
    entries = [one.entry for one in wanted]
    if within is not None or all(goal is None for goal in goals):
        return Asked(schema, entries, within if within is not None else targets or None)
    if targets:  # targets of the command line take precedence
        own = {
            frozenset(entry): goal
            for entry, goal in zip(entries, goals, strict=True)
            if goal is not None
        }
        return Asked(schema, entries, own | targets)
    return Asked(schema, entries, goals)


def target_of(text: str) -> tuple[frozenset[str], Target]:
    """Return names and a target, from ``sex,age=50`` or ``age=80@0.99``."""
    names, equals, numbers = text.rpartition("=")
    rows, at, level = numbers.partition("@")
    try:
        goal = (float(rows), float(level) if at else 0.95)
    except ValueError:
        goal = None
    if not equals or goal is None:
        raise ParameterError(
            f"--target: expected NAMES=ROWS or NAMES=ROWS@LEVEL, like age=80@0.99, got {text!r}"
        )
    return frozenset(parts_of(names)), Target(*goal)


def parts_of(text: str) -> list[str]:
    """Return the parts between commas; a part in "…" may contain commas, and "" for a quote.

    >>> parts_of('age:prefix, "pay, net", "pay, gross":ranges')
    ['age:prefix', 'pay, net', 'pay, gross:ranges']
    """
    parts = []
    for part in map(str.strip, _PARTS.findall(text)):
        quoted = _QUOTED.fullmatch(part)
        parts.append(part if quoted is None else quoted[1].replace('""', '"') + (quoted[2] or ""))
    return list(filter(None, parts))


_PARTS = re.compile(r'(?:"(?:[^"]|"")*"|[^,"]|")+')
_QUOTED = re.compile(r'"((?:[^"]|"")*)"\s*(:.*)?', re.DOTALL)


def plan_of(
    asked: Asked,
    budget: tuple[float | None, float | None, float | None],
    neighbors: str,
    p: float,
    rows_per_person: int,
    person: str | None = None,
    weight: str | None = None,
    public: str | None = None,
) -> Plan:
    """Return the plan that all options together ask for."""
    free = asked.targets is not None and budget == (None, None, None)
    relation: Any = neighbors
    with patience(ERR, "planning"):
        return plan(
            asked.schema,
            asked.workload,
            None if free else privacy_of(*budget),
            neighbors=relation,
            p=p,
            targets=asked.targets,
            rows_per_person=rows_per_person,
            person=person,
            weight=None if weight is None else weight_of(weight),
            public=parts_of(public or ""),
        )


def budgets_of(
    asked: Asked,
    delta: float | None,
    neighbors: str,
    p: float,
    rows_per_person: int,
    plot: Path | None,
) -> Budgets:
    """Return what budgets mean before one is chosen, and save a picture if asked for."""
    if plot is not None and os.path.lexists(plot):
        raise OutputError(f"plan: {plot} exists already; hint: choose a new name")
    options: dict[str, Any] = {"neighbors": neighbors, "p": p, "rows_per_person": rows_per_person}
    if delta is not None:
        options["delta"] = delta
    with patience(ERR, "planning"):
        table = budgets(asked.schema, asked.workload, **options)
    if plot is not None:
        try:
            table.plot().savefig(plot)
        except (OSError, ValueError) as error:  # ValueError: a format that matplotlib does not know
            raise OutputError(
                f"plan: cannot write {plot} ({type(error).__name__}); hint: FILE.png"
            ) from None
    return table


def weight_of(text: str) -> Weight:
    """Return a column and its largest weight, from ``COLUMN:MOST``."""
    column, _, most = text.rpartition(":")
    try:
        return Weight(column, float(most))
    except ValueError:
        raise ParameterError(
            f"--weight: expected COLUMN:MOST, a column and the largest weight that counts in full, "
            f"got {text!r:.80}"
        ) from None


def dialect_of(
    base: Dialect,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    quote: str | None = None,
) -> Dialect:
    """Return the dialect ``base``, which a schema states, with the options that are given."""
    delimiter = "\t" if delimiter in ("tab", "\\t") else delimiter
    said = {"delimiter": delimiter, "decimal": decimal, "encoding": encoding, "quote": quote}
    return replace(base, **{name: value for name, value in said.items() if value is not None})


def table_of(paths: list[Path]) -> str | list[str]:
    """Return one table, in one file or several."""
    return str(paths[0]) if len(paths) == 1 else [str(path) for path in paths]


def workload_of(marginals: list[str], known: tuple[str, ...]) -> int | list[Entry]:
    """Return k for all k-way marginals, or the tables one by one."""
    if len(marginals) == 1 and marginals[0].isdigit():
        return int(marginals[0])
    return [
        as_entry([listed] if listed in known else parts_of(listed), known) for listed in marginals
    ]


def privacy_of(rho: float | None, epsilon: float | None, delta: float | None) -> AbstractPrivacy:
    """Return the budget from one of its two forms."""
    if rho is not None and epsilon is None and delta is None:
        return zCDP(rho)
    if rho is None and epsilon is not None and delta is not None:
        return ApproxDP(epsilon, delta)
    raise ParameterError(
        "budget: expected either --rho, or --epsilon with --delta, or --within, or --target"
    )
